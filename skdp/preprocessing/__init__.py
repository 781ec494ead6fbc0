"""Prepare tables with public knowledge, which costs no privacy, or with a schema that `LearnedSchema` learns with a budget."""

from skdp.preprocessing._additive_basis import AdditiveBasis, Term
from skdp.preprocessing._cells import hash_bucket
from skdp.preprocessing._column_kinds import Category, LearntScale, Number
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._learned_schema import LearnedSchema
from skdp.preprocessing._pipeline import from_schema
from skdp.preprocessing._read import read_table
from skdp.preprocessing._scaling import BoundedScaler, RowNormClipper
from skdp.preprocessing._schema import Schema

__all__ = [
    "AdditiveBasis",
    "BoundedScaler",
    "Category",
    "LearnedSchema",
    "LearntScale",
    "Number",
    "RowNormClipper",
    "Schema",
    "SchemaColumns",
    "Term",
    "from_schema",
    "hash_bucket",
    "read_table",
]

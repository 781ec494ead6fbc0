"""Prepare tables with public knowledge only. Nothing here learns from the records, so nothing here costs privacy."""

from skdp.preprocessing._additive_basis import AdditiveBasis, Term
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._pipeline import from_schema
from skdp.preprocessing._read import read_table
from skdp.preprocessing._scaling import BoundedScaler, RowNormClipper
from skdp.preprocessing._schema import Category, Number, Schema

__all__ = [
    "AdditiveBasis",
    "BoundedScaler",
    "Category",
    "Number",
    "RowNormClipper",
    "Schema",
    "SchemaColumns",
    "Term",
    "from_schema",
    "read_table",
]

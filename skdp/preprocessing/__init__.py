"""Prepare tables with public knowledge, which costs no privacy, or with a schema that `LearnedSchema` learns with a budget."""

from typing import TYPE_CHECKING, Any

from skdp.preprocessing._cells import hash_bucket
from skdp.preprocessing._column_kinds import Category, LearnedScale, Number
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._learned_schema import LearnedSchema
from skdp.preprocessing._pipeline import from_schema
from skdp.preprocessing._read import read_table
from skdp.preprocessing._scaling import BoundedScaler, RowNormClipper
from skdp.preprocessing._schema import Schema

if TYPE_CHECKING:
    from skdp.estimators.additive._basis import AdditiveBasis, Term

__all__ = [
    "AdditiveBasis",
    "BoundedScaler",
    "Category",
    "LearnedScale",
    "LearnedSchema",
    "Number",
    "RowNormClipper",
    "Schema",
    "SchemaColumns",
    "Term",
    "from_schema",
    "hash_bucket",
    "read_table",
]


def __getattr__(name: str) -> Any:
    """Import the basis of additive models on first use: it belongs to the estimators, which import this package."""
    if name in ("AdditiveBasis", "Term"):
        from skdp.estimators.additive import _basis

        return getattr(_basis, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Prepare tables with public knowledge, which costs no privacy, or with a schema that `LearnedSchema` learns with a budget."""

from typing import TYPE_CHECKING

from skdp._first_use import on_first_use

if TYPE_CHECKING:
    from skdp.estimators.additive._basis import AdditiveBasis as AdditiveBasis
    from skdp.estimators.additive._basis import Term as Term
    from skdp.preprocessing._cells import hash_bucket as hash_bucket
    from skdp.preprocessing._column_kinds import Category as Category
    from skdp.preprocessing._column_kinds import LearnedScale as LearnedScale
    from skdp.preprocessing._column_kinds import Number as Number
    from skdp.preprocessing._columns import SchemaColumns as SchemaColumns
    from skdp.preprocessing._columns import read_table as read_table
    from skdp.preprocessing._learned_schema import LearnedSchema as LearnedSchema
    from skdp.preprocessing._pipeline import from_schema as from_schema
    from skdp.preprocessing._scaling import BoundedScaler as BoundedScaler
    from skdp.preprocessing._scaling import RowNormClipper as RowNormClipper
    from skdp.preprocessing._schema import Schema as Schema
else:
    __getattr__, __dir__, __all__ = on_first_use(__name__)

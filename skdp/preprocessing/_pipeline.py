"""Build the transformer of a whole table from a schema of public facts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from skdp._exported import Exported
from skdp._files._suffixes import imported
from skdp.preprocessing._base import lazily, public_row
from skdp.preprocessing._column_kinds import Indicators
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._scaling import RowNormClipper
from skdp.preprocessing._schema import Schema, TreatmentSchema


@lazily
class SchemaPipeline(Exported, Pipeline):
    """The steps of `from_schema`, which learn nothing; so a table in partitions or a Dask frame is mapped when it is read."""

    def _public_row(self, X: Any) -> Any:
        return public_row(X, self[0].get_feature_names_out())


def from_schema(schema: Any, *, sparse_output: bool = False) -> Pipeline:
    """Return the transformer of a table, which is built from public facts alone.

    Numbers are scaled to [-1, 1] by their bounds. Each category becomes one column, and one more column stands for all other
    values. The rows are divided by the length of a typical row, and rows that are still longer than 1 are scaled down to 1. Use
    ``data_norm=1`` for the estimator that follows. Columns that the schema does not name are dropped.

    Parameters
    ----------
    schema : path-like, dict or Schema
        A JSON file or its content::

            {"columns": {"age": {"kind": "number", "bounds": [0, 120]},
                         "income": {"kind": "number", "bounds": [0, 1e7], "scale": "log", "fill": 0},
                         "smoker": {"kind": "category", "categories": ["no", "yes"]},
                         "name": {"kind": "ignore"}},
             "target": "ill", "classes": ["no", "yes"]}

        "scale", "fill", "target" and "classes" are optional, and a "description" is allowed anywhere. If the target is a number,
        give "target_bounds" instead of "classes". All bounds and categories must come from public knowledge, never from the
        records. A key such as "BILL_*" stands for all columns with matching names: ``Schema.read(schema, X.columns)`` replaces
        it. `LearnedSchema` writes further keys, for what it learned.
    sparse_output : bool, default=False
        Whether to return CSR tables. Useful for thousands of categories.

    Returns
    -------
    Pipeline
        A pipeline for data frames, and for tables in partitions of them. It learns nothing from them, and returns rows of length
        at most 1, with feature names.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    TypeError, ValueError
        If an entry of the schema is missing, misspelt or not filled in; the message names the entry.

    See Also
    --------
    BoundedScaler : Scale numbers by public bounds.
    RowNormClipper : Bound the length of rows.

    Notes
    -----
    **Privacy.** Each row is mapped separately with public facts. Therefore a private estimator that is fitted on the result has
    the same guarantee for the records of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.preprocessing import from_schema
    >>> columns = {"age": {"kind": "number", "bounds": [0, 120]}, "smoker": {"kind": "category", "categories": ["no", "yes"]}}
    >>> prepare = from_schema({"columns": columns}).set_output(transform="pandas")
    >>> prepare.fit_transform(pd.DataFrame({"age": [30, 60], "smoker": ["yes", "?"]})).round(2)
        age  smoker_no  smoker_yes  smoker_other
    0 -0.43        0.0        0.87          0.00
    1  0.00        0.0        0.00          0.87
    """
    facts = Schema.read(schema)
    parts = list(facts.parts(sparse_output))
    if isinstance(facts, TreatmentSchema):
        return _pipeline(facts, parts, sparse_output)
    return _pipeline(facts, parts, sparse_output, {name: 1 / facts.data_norm for name, *_ in parts}, RowNormClipper(1.0))


def unscaled(schema: Schema, in_units: bool) -> Pipeline:
    """Return the transformer of a table whose rows are not divided by any length; indicators are 0 or at most 1.

    Parameters
    ----------
    schema : Schema
        What is known, or was learned, of the columns.
    in_units : bool
        Whether numbers keep their units; otherwise they are centred and scaled.

    Returns
    -------
    Pipeline
        As `from_schema` returns it.
    """
    parts = []
    for columns in schema.alike():
        first, *_ = alike = list(columns.values())
        keeps = in_units and not first.exhaustive
        of_alike = first.in_own_units(alike, False) if keeps else first.transformer(alike, schema.separator, False)
        parts.append((*of_alike, list(columns)))
    return _pipeline(schema, parts, False)


def _pipeline(schema: Schema, parts: list[Any], sparse_output: bool, weights: Any = None, *after: Any) -> Pipeline:
    from sklearn.compose import ColumnTransformer  # heavy, and estimators import this package

    columns = ColumnTransformer(
        parts,
        sparse_threshold=1.0 if sparse_output else 0.0,
        transformer_weights=weights,
        verbose_feature_names_out=False,
    )
    return SchemaPipeline(make_pipeline(SchemaColumns.of(schema), columns, *after).steps)


def prepared_names(schema: Schema) -> np.ndarray:
    """Return the names of the columns that `from_schema` makes, without a table."""
    return names_of(from_schema(schema), schema)


def names_of(preparation: Pipeline, schema: Schema) -> np.ndarray:
    """Return the names of the columns that the transformer of a schema makes, without a table."""
    names = list(schema.columns)
    row = imported("pandas").DataFrame(np.zeros((1, len(names))), columns=names)
    return preparation.fit(row).get_feature_names_out()


def indicators_of(schema: Schema) -> Iterator[Indicators]:
    """Return the indicators of each category and of each number with learned integers, among the columns of `prepared_names`."""
    start, length = 0, schema.data_norm
    for name, column in (item for columns in schema.alike() for item in columns.items()):
        yield from column.indicators(name, start, length)
        start += column.n_features

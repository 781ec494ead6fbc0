"""Read a file as the data frame that a schema describes."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from skdp._files._tables import column_names, to_numbers
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._schema import Schema

__all__ = ["as_described", "read_table"]


def read_table(path: str | os.PathLike[str], schema: Any, *, sep: str = ",") -> Any:
    """Read a table as its schema describes it, so that no value can change the type of a column.

    ``pandas.read_csv`` guesses types: it reads "007" as 7 and "NA" as a missing value, and a single record can change the type of
    a column.

    Parameters
    ----------
    path : path-like
        ``.csv`` or ``.csv.gz`` in UTF-8 with column names in the first line, or ``.parquet``.
    schema : path-like, dict or Schema
        What is public about the table. Patterns such as ``BILL_*`` stand for columns of the table.
    sep : {",", ";", "\\t", "|"}, default=","
        What separates the fields of a CSV.

    Returns
    -------
    pandas.DataFrame
        All columns: numbers as float64, and all other columns of a CSV as text. The target, if the table has it, is returned as
        its classes, or as float64 if the schema has no classes.

    Raises
    ------
    FileNotFoundError, ImportError, TypeError, ValueError
        If the file or the schema cannot be read, or if they do not match; no message quotes data.

    See Also
    --------
    from_schema : Build the transformer of such a table.

    Notes
    -----
    **Privacy.** Each value is read separately, by public rules.
    """
    facts = Schema.read(schema, partial(column_names, Path(path), sep))
    frame = SchemaColumns.of(facts).read(Path(path), sep)
    if facts.target is not None and facts.target in frame.columns:
        _read_target(path, frame, facts)
    return frame


def as_described(path: Any, frame: Any, facts: Schema) -> Any:
    """Return some records of Parquet files with the types that `read_table` gives them."""
    frame = SchemaColumns.of(facts).described(path, frame)
    if facts.target is not None and facts.target in frame.columns:
        _read_target(path, frame, facts)
    return frame


def _read_target(path: Any, frame: Any, facts: Schema) -> None:
    """Replace the target by its classes, or by float64 if the schema has no classes."""
    if facts.classes is not None:
        frame[facts.target] = facts.labels(frame[facts.target])
    elif not to_numbers(frame, str(facts.target)) or frame[facts.target].isna().any():
        raise ValueError(
            f"{path}: the target {facts.target!r} has values that are missing or not finite; expected a number in every record, "
            'or its labels as "classes" in the schema.'
        )

"""Read a file as the data frame that a schema describes."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skdp._files._tables import TextFormat, column_names, to_numbers
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._schema import Schema


def read_table(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    sep: str | None = None,
    skip: int = 0,
    encoding: str = "utf-8",
    decimal: str = ".",
    thousands: str | None = None,
    quotes: bool = True,
    header: Sequence[str] | None = None,
) -> Any:
    """Read a table as its schema describes it, so that no value can change the type of a column.

    ``pandas.read_csv`` guesses types: it reads "007" as 7 and "NA" as a missing value, and a single record can change the type of
    a column.

    Parameters
    ----------
    path : path-like
        Text with column names in the first line, such as ``.csv``, ``.tsv`` or ``.txt``, which may be compressed (``.gz``,
        ``.zip``), or ``.parquet``. Columns without a name, such as an index, are left out.
    schema : path-like, dict or Schema
        What is public about the table. Patterns such as ``BILL_*`` stand for columns of the table.
    sep : {",", ";", "\\t", "|", " "} or None, default=None
        What separates the fields of a text; " " stands for any number of spaces. None means a tab in ``.tsv`` files and a comma
        in others.
    skip : int, default=0
        Number of lines before the column names, such as comments.
    encoding : str, default="utf-8"
        Encoding of a text, such as "latin-1".
    decimal : {".", ","}, default="."
        Decimal sign of the numbers in a text.
    thousands : {",", ".", "'", " "} or None, default=None
        Separator of thousands of the numbers in a text.
    quotes : bool, default=True
        Whether quotation marks may surround a cell of a text; otherwise they are characters like any other.
    header : sequence of str or None, default=None
        Names of the columns of a text that has none.

    Returns
    -------
    pandas.DataFrame
        All columns: numbers as float64, and all other columns of a text as text. The target, if the table has it, is returned as
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
    names = None if header is None else tuple(header)
    form = TextFormat(sep, skip, encoding, decimal, thousands, quotes, names)
    facts = Schema.read(schema, partial(column_names, Path(path), form))
    frame = SchemaColumns.of(facts).read(Path(path), form)
    if facts.target is not None and facts.target in frame.columns:
        read_target(path, frame, facts)
    return frame


def as_described(path: Any, frame: Any, facts: Schema) -> Any:
    """Return some records of Parquet files with the types that `read_table` gives them."""
    frame = SchemaColumns.of(facts).described(path, frame)
    if facts.target is not None and facts.target in frame.columns:
        read_target(path, frame, facts)
    return frame


def read_target(path: Any, frame: Any, facts: Schema) -> None:
    """Replace the target by its classes, or by float64 if the schema has no classes."""
    if facts.classes is not None:
        frame[facts.target] = facts.labels(frame[facts.target])
    elif not to_numbers(frame, str(facts.target)) or frame[facts.target].isna().any():
        raise ValueError(
            f"{path}: the target {facts.target!r} has values that are missing or not finite; expected a number in every record, "
            'or its labels as "classes" in the schema.'
        )

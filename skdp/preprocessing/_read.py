"""A file as the data frame that a schema describes."""

import os
from pathlib import Path
from typing import Any

from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._schema import Schema

__all__ = ["read_table"]


def read_table(path: str | os.PathLike[str], schema: Any) -> Any:
    """Read a table as its schema describes it, so that no value changes the type of a column.

    ``pandas.read_csv`` guesses: it makes 7 of "007" and a missing value of "NA", and one record decides about a column.

    Parameters
    ----------
    path : path-like
        ``.csv`` or ``.csv.gz`` in UTF-8 with column names in the first line, or ``.parquet``.
    schema : path-like, dict or Schema
        What is public about it.

    Returns
    -------
    pandas.DataFrame
        All columns: numbers as float64, everything else of a CSV as text, and the target as its classes where it is there.

    Raises
    ------
    FileNotFoundError, ImportError, TypeError, ValueError
        If file or schema cannot be read or do not fit; no message quotes data.

    See Also
    --------
    from_schema : The transformer of such a table.

    Notes
    -----
    **Privacy.** Reads every value by itself, by public rules.
    """
    facts = Schema.read(schema)
    frame = SchemaColumns.of(facts).read(Path(path))
    if facts.target in frame.columns and facts.classes is not None:
        frame[facts.target] = facts.labels(frame[facts.target])
    return frame

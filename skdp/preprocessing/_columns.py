"""Select the columns that a schema names, as the first step of the preparation."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

from skdp._files._suffixes import imported
from skdp._files._tables import CSV, TextFormat, check_numbers, column_names, empty_gaps, read_frame, to_numbers
from skdp.preprocessing._base import lazily, public_row
from skdp.preprocessing._cells import column_values
from skdp.preprocessing._schema import Schema

# Whether a ColumnTransformer selects columns of frames that are not of pandas, such as those of polars 2, by name.
KNOWS_FRAMES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


@lazily
class SchemaColumns(BaseEstimator):
    """Check that X is a data frame, and select the columns that a schema names.

    Parameters
    ----------
    numbers, categories : list of str
        Column names.
    filled : list of str
        Columns of numbers that may have missing values.
    learned : list of str or None, default=None
        Further columns, of which each cell is read by itself: what an estimator learns, or what a learned schema describes.
    """

    learned: list[str] | None = None  # skdp 0.2.0 wrote files without it

    def __init__(self, numbers: list[str], categories: list[str], filled: list[str], learned: list[str] | None = None) -> None:
        self.numbers = numbers
        self.categories = categories
        self.filled = filled
        self.learned = learned

    @classmethod
    def of(cls, facts: Schema) -> "SchemaColumns":
        """Return the columns of a schema."""
        plain = {name: column for name, column in facts.columns.items() if column.plain}
        numbers = {name: column for name, column in facts.numbers.items() if column.plain}
        categories = [name for name in plain if name not in numbers]
        filled = [name for name, column in numbers.items() if column.fill is not None]
        return cls(list(numbers), categories, filled, [name for name in facts.columns if name not in plain] or None)

    @property
    def names(self) -> list[str]:
        """All columns."""
        return [*self.numbers, *self.categories, *(self.learned or ())]

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: ``transform`` works without ``fit``."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def set_output(self, *, transform: str | None = None) -> "SchemaColumns":
        """Leave the data frame as it is."""
        return self

    def fit(self, X: Any, y: Any = None) -> "SchemaColumns":
        """Check the table; learn nothing."""
        self.transform(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of the schema; errors quote only names."""
        named = self.names
        present = [str(name) for name in getattr(X, "columns", ())]
        if not present:
            raise TypeError(f"X is a {type(X).__name__}; expected a data frame with the columns {named}.")
        if other := [name for name in X.columns if not isinstance(name, str) and str(name) in named]:
            raise ValueError(f"X has the columns {other}; column names must be strings, as in the schema.")
        if missing := [name for name in named if name not in present]:
            raise ValueError(f"X has no columns {missing}; expected all that the schema names.")
        if doubled := sorted({name for name in named if present.count(name) > 1}):
            raise ValueError(f"X has the columns {doubled} more than once; expected different names.")
        if KNOWS_FRAMES or hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
            return X[named]
        return imported("pandas").DataFrame({name: column_values(X[name]) for name in named})

    def _public_row(self, X: Any) -> Any:
        return public_row(X, self.names)

    def read(self, path: Path, form: TextFormat = CSV) -> Any:
        """Return all columns of a file, with numbers as float64; raise an error if a number without a ``fill`` is missing."""
        learned = self.learned or []
        frame = read_frame(path, self.numbers, [*self.categories, *learned], form)
        empty_gaps(path, frame, learned)
        self._check_gaps(path, frame)
        return frame

    def described(self, path: Any, frame: Any) -> Any:
        """Return some records of Parquet files with the types that `read` gives them; errors name the table as ``path``."""
        frame = frame.copy()
        check_numbers(path, frame, self.numbers)
        self._check_gaps(path, frame)
        return frame

    def _check_gaps(self, path: Any, frame: Any) -> None:
        if gaps := [name for name in self.numbers if name not in self.filled and frame[name].isna().any()]:
            raise ValueError(
                f'{path}: numbers are missing in the columns {gaps}; expected none, or a number as "fill" in the schema of the '
                "fit, for every column that can have missing values."
            )

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Return the names of the columns."""
        return self.names


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

"""Read tables from files. No message quotes a value or a row of a table."""

import codecs
import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from skdp._files._suffixes import check_suffix, imported
from skdp.privacy.errors import warn

SUSPECTS = (",", ";", "\t", "|")  # separators that a header shows
SEPARATORS = (*SUSPECTS, " ")
TEXTS = (".csv", ".tsv", ".txt", ".data", ".dat")
PACKED = ("", ".gz", ".zip", ".bz2", ".xz")  # pandas unpacks them
TABLES = (*(text + packed for packed in PACKED for text in TEXTS), ".zip", ".parquet")
OF_FIRST_LINE = " On the command line, --skip N leaves N lines before the names out, and --sep says what separates them."
MISSING = ("", "NA", "NaN", "nan", "null", "?")  # texts of a cell that stand for a missing number
MARKS = {"decimal": (".", ","), "thousands": (None, ",", ".", "'", " ")}
SHOWN = 20  # most names of columns in a message, a choice that keeps it on a few lines


@dataclass(frozen=True)
class TextFormat:
    r"""State how the text of a table is written. All of it is public: no record is read to find it.

    Parameters
    ----------
    sep : {",", ";", "\\t", "|", " "} or None, default=None
        What separates the fields; " " stands for any number of spaces and tabs. None means a tab in ``.tsv`` files and a comma in
        others.
    skip : int, default=0
        Number of lines before the names of the columns, such as comments.
    encoding : str, default="utf-8"
        Encoding of the text.
    decimal : {".", ","}, default="."
        Decimal sign of numbers.
    thousands : {",", ".", "'", " "} or None, default=None
        Separator of thousands in numbers.
    quotes : bool, default=True
        Whether quotation marks may surround a cell. They are characters like any other otherwise.
    header : tuple of str or None, default=None
        Names of the columns of a table that has none; None reads them from the first line.
    """

    sep: str | None = None
    skip: int = 0
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    quotes: bool = True
    header: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.sep not in (None, *SEPARATORS):
            raise ValueError(f"sep={self.sep!r}; expected one of {list(SEPARATORS)}.")
        for name, marks in MARKS.items():
            if getattr(self, name) not in marks:
                raise ValueError(f"{name}={getattr(self, name)!r}; expected one of {list(marks)}.")
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {self.decimal!r}; expected different signs.")
        if isinstance(self.skip, bool) or not isinstance(self.skip, int) or self.skip < 0:
            raise ValueError(f"skip={self.skip!r}; expected the number of lines before the names of the columns.")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError, ValueError):
            raise ValueError(f"encoding={self.encoding!r}; expected one of Python's, such as 'latin-1' or 'utf-16'.") from None

    def separator(self, path: Path) -> str:
        """Return what separates the fields of a file."""
        return self.sep or ("\t" if ".tsv" in path.name.lower() else ",")

    def options(self, path: Path) -> dict[str, Any]:
        """Return the arguments of ``pandas.read_csv`` for a file."""
        sep = self.separator(path)
        return {
            "sep": r"\s+" if sep == " " else sep,
            "skiprows": self.skip,
            "encoding": self.encoding,
            "quoting": csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE,
            "skipinitialspace": True,
        }

    def with_points(self, column: Any) -> Any:
        """Return cells of text. Numbers among them get a decimal point and lose separators of thousands."""
        mark, point = re.escape(self.thousands or ""), re.escape(self.decimal)
        whole = rf"\d{{1,3}}(?:{mark}\d{{3}})+|\d*" if mark else r"\d*"
        numbers = column.str.fullmatch(rf"(?=.*\d)\s*[+-]?(?:{whole})(?:{point}\d*)?(?:[eE][+-]?\d+)?\s*", na=False)
        plain = column if self.thousands is None else column.str.replace(self.thousands, "", regex=False)
        return column.where(~numbers, plain.str.replace(self.decimal, ".", regex=False))


CSV = TextFormat()


def is_parquet(path: Path) -> bool:
    """Return whether a path names a Parquet file."""
    return path.suffix.lower() == ".parquet"


def read_frame(path: Path, numbers: Sequence[str], others: Sequence[str], form: TextFormat = CSV) -> Any:
    """Read a table.

    Parameters
    ----------
    path : Path
        Text with a header, such as CSV, which may be compressed, or Parquet.
    numbers : sequence of str
        Columns to read as float64; missing values become NaN. All other columns of a text are read as text.
    others : sequence of str
        Further columns that the table must have.
    form : TextFormat
        How a text is written.

    Returns
    -------
    pandas.DataFrame
        All columns that have names.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read; the message quotes no data.
    """
    needed = [*numbers, *others]
    present = column_names(path, form, needed)
    missing = [name for name in needed if name not in present]
    if needed and len(missing) == len(needed):
        raise ValueError(
            f"{path} has none of the columns {needed} in its first line: is the header missing, or is "
            f"{form.separator(path)!r} not its separator?"
        )
    if missing:
        raise ValueError(f"{path} has no columns {missing}; expected all that the schema names.{_nearest(missing[0], present)}")
    frame = _read(path, form)
    _check_records(path, frame)
    check_numbers(path, frame, numbers)
    return frame


def check_numbers(path: Any, frame: Any, numbers: Sequence[str]) -> None:
    """Convert columns to float64 in place, with NaN for empty cells; raise ValueError if other cells are not finite numbers."""
    if wrong := [name for name in numbers if not to_numbers(frame, name)]:
        raise ValueError(
            f"{path}: the columns {wrong} have cells that are not finite numbers; expected numbers with a decimal point, "
            "or empty cells. On the command line, --decimal and --thousands state other signs."
        )


def missing_cells(column: Any) -> Any:
    """Return which cells are missing, or are a text that stands for a missing number; each cell is read by itself."""
    texts = column.astype(object).map(lambda cell: isinstance(cell, str) and cell.strip() in MISSING)
    return column.isna() | texts.astype(bool)


def empty_gaps(path: Path, frame: Any, names: Sequence[str]) -> None:
    """Make cells of a text missing, in place, that stand for a missing number."""
    if not is_parquet(path):
        for name in names:
            frame[name] = frame[name].where(~missing_cells(frame[name]), None)


def column_kinds(path: Path, form: TextFormat = CSV, known: Collection[str] = ()) -> dict[str, str]:
    """Return "number", "category" or "ignore" (for dates) by column name, from the types of the file or its reader.

    The reader of a text guesses the types from all records: they are for the owner of these.

    Parameters
    ----------
    path : Path
        A table.
    form : TextFormat
        How a text is written.
    known : collection of str, default=()
        Names that the columns should have, as for `column_names`.

    Returns
    -------
    dict
        Kinds, in the order of the table.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read or has no header; the message quotes no data.
    """
    names, kinds = column_names(path, form, known), {"i": "number", "u": "number", "f": "number", "M": "ignore", "m": "ignore"}
    path = first_file(path)
    frame = _read(path, form, kinds_only=True)
    if not is_parquet(path):  # only the types of a Parquet file are read
        _check_records(path, frame)
    return {name: kinds.get(dtype.kind, "category") for name, dtype in zip(names, frame.dtypes, strict=True)}


def count_records(path: Path, form: TextFormat = CSV) -> int:
    """Return the number of records of a text; the errors are those of `read_frame`."""
    frame = _read(path, form)
    _check_records(path, frame)
    return len(frame)


def column_types(path: Path) -> dict[str, Any]:
    """Return the types of the columns of a Parquet file, or of the first one of a folder, by name; no record is read."""
    return dict(_read(first_file(path), CSV, kinds_only=True).dtypes)


def column_names(path: Path, form: TextFormat = CSV, known: Collection[str] | None = None) -> list[str]:
    """Return the names of the columns that have one; raise an error if the first line holds data instead of names.

    Parameters
    ----------
    path : Path
        A table; only its column names are read.
    form : TextFormat
        How a text is written.
    known : collection of str or None, default=None
        Names that the columns should have. Names that are numbers, such as years, are refused unless one of these is among the
        names, because such a line may be a record; None refuses none.

    Returns
    -------
    list of str
        Names, in the order of the table, without spaces around those of a text.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read or has no header; the message quotes no data.
    """
    path = first_file(path)
    check_suffix("The table", path, TABLES, any_case=True)
    if not path.is_file():
        raise FileNotFoundError(f"There is no table {path}.")
    every = _read(path, form, header_only=True)
    names = [name for name in every if name]
    if not is_parquet(path):
        _check_separator(path, names, form)
    if known is not None and not set(known).intersection(names) and any(map(_is_number, names)):
        raise ValueError(
            f"{path} has no header, or not in this line: expected names separated by {form.separator(path)!r} in its first line, "
            "none of them a number unless the target, or another column that is stated, is there, too. On the command line, "
            "--skip leaves lines before them out, and --header states them."
        )
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{path} has no names, or columns with the same name; expected different names.")
    if nameless := [place for place, name in enumerate(every, 1) if not name]:
        warn(f"{path}: the columns in the places {nameless} have no name, as an index has none, and are ignored.", UserWarning)
    return names


def no_column(path: Path, name: str, names: Sequence[str], option: str) -> ValueError:
    """Return the error that a table has no column of a name; it lists the columns, the nearest names first."""
    return ValueError(f"{option}: {path} has no column {name!r}; expected one of its columns.{_nearest(name, names)}")


def _nearest(name: str, names: Sequence[str]) -> str:
    """Return the names of columns in a sentence; "" if one is a number, so that the line may be a record."""
    if any(map(_is_number, names)):
        return ""
    near = sorted(names, key=lambda other: -SequenceMatcher(None, name.lower(), other.lower()).ratio())
    more = "" if len(near) <= SHOWN else f", and {len(near) - SHOWN} more"
    advice = OF_FIRST_LINE if _is_comment(names) or len(names) == 1 else ""
    return f" The table has, nearest name first: {', '.join(near[:SHOWN])}{more}.{advice}"


def _is_comment(names: Sequence[str]) -> bool:
    """Return whether the first line seems to be a comment."""
    return names[0][:1] in ("#", "%")


def first_file(path: Path) -> Path:
    """Return the first Parquet file of a folder, which has the columns of all, and any other path as it is."""
    if not path.is_dir():
        return path
    found = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith((".", "_")))
    if not found:
        raise ValueError(f"{path} has no Parquet files; expected a folder of these, or a table in one file.")
    return found[0]


def _check_separator(path: Path, names: list[str], form: TextFormat) -> None:
    """Raise an error if another character seems to separate the fields of the header; the header is public, and not quoted."""
    sep = form.separator(path)
    suspects = [other for other in SUSPECTS if other != sep and (len(names) == 1 or other in ";\t")]
    if found := [other for other in suspects if any(other in name for name in names)]:
        if _is_comment(names):
            raise ValueError(f"{path}: the first line is a comment; expected the names of the columns.{OF_FIRST_LINE}")
        count = "one column" if len(names) == 1 else f"{len(names)} columns"
        shown = "tab" if found[0] == "\t" else found[0]
        raise ValueError(
            f"{path}: with the separator {sep!r} the header has {count} and contains {found[0]!r}; expected "
            f"sep={found[0]!r} (on the command line --sep '{shown}')."
        )


def _check_records(path: Path, frame: Any) -> None:
    if not len(frame):
        raise ValueError(f"{path} has a header but no records; expected at least one.")


def _read(path: Path, form: TextFormat, *, header_only: bool = False, kinds_only: bool = False) -> Any:
    """Return the names with "" where there is none, types, or records of the columns that have a name."""
    try:
        if is_parquet(path):
            return _read_parquet(path, header_only, kinds_only)
        return _names(path, form) if header_only else _read_text(path, form, kinds_only)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise any error
        cause = _cause(path, form, error)
    # outside of the except clause: the original error may quote data
    raise ValueError(f"{path} cannot be read: {cause}")


def _cause(path: Path, form: TextFormat, error: Exception) -> str:
    """Return why a file cannot be read, and what to do, by the type of an error and words of pandas that quote no data."""
    if isinstance(error, _Refused):
        return str(error)
    if isinstance(error, UnicodeError):
        return (
            f"it is no text in {form.encoding}; expected encoding='latin-1', 'cp1252', 'utf-16' or another one (on the command "
            "line --encoding latin-1)."
        )
    if "EOF inside string" in str(error):
        return f"a quotation mark begins a cell that never ends; {OF_QUOTES}"
    if "Error tokenizing data" in str(error):
        return OF_FIELDS
    if path.suffix.lower() == ".zip":
        return "expected a zip file that holds one table and nothing else."
    return "expected Parquet, or text with a header and the same number of fields in every row."


OF_FIELDS = (
    "a row has more fields than the first line; expected a name for each column, also for the index that R writes first, and "
    "quotation marks around cells that hold a separator. On the command line, --skip N leaves N lines before the names out."
)
OF_QUOTES = (
    "expected quotation marks in pairs, doubled inside of cells. On the command line, --no-quotes takes them for characters like "
    "any other. A table of texts with line breaks can be read as Parquet."
)


class _Refused(ValueError):
    """A message of this module, which quotes no data."""


def _names(path: Path, form: TextFormat) -> list[str]:
    """Return the names in the first line, or those that are stated, without spaces around them."""
    pandas = imported("pandas")
    options = {**form.options(path), "header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    first = pandas.read_csv(path, **options).iloc[0].fillna("").tolist()
    if form.header is not None and len(form.header) != len(first):
        raise _Refused(f"its first line has {len(first)} fields, and {len(form.header)} names are stated; expected as many.")
    return [name.strip() for name in (first if form.header is None else form.header)]


def _read_text(path: Path, form: TextFormat, kinds_only: bool) -> Any:
    pandas, names = imported("pandas"), _names(path, form)
    options = {**form.options(path), "header": 0 if form.header is None else None}
    if kinds_only:
        options |= {"low_memory": False, "decimal": form.decimal, "thousands": form.thousands}
    else:  # with one column, a blank line is a record
        options |= {"dtype": object, "keep_default_na": False, "skip_blank_lines": len(names) > 1}
    frame = pandas.read_csv(path, **options)  # usecols would accept rows with too many fields
    if not isinstance(frame.index, pandas.RangeIndex):
        raise _Refused(OF_FIELDS)
    _check_lines(frame, form.separator(path))
    frame = frame.set_axis(names, axis=1).loc[:, [bool(name) for name in names]]
    if not kinds_only and (form.decimal, form.thousands) != (CSV.decimal, CSV.thousands):
        frame = frame.apply(form.with_points)
    return frame


def _check_lines(frame: Any, sep: str) -> None:
    """Raise an error if a cell spans lines and holds a separator: between two stray quotation marks, records become one cell."""
    for place, dtype in enumerate(frame.dtypes):
        cells = [] if dtype.kind in "biufcmM" else frame.iloc[:, place].tolist()
        if any(sep in cell for cell in cells if isinstance(cell, str) and ("\n" in cell or "\r" in cell)):
            raise _Refused(f"a cell spans lines and holds separators, as between two stray quotation marks; {OF_QUOTES}")


def _read_parquet(path: Path, header_only: bool, kinds_only: bool) -> Any:
    if not header_only and not kinds_only:
        return imported("pandas").read_parquet(path)
    frame = imported("pyarrow.parquet").read_schema(path).empty_table().to_pandas()
    return [str(name) for name in frame.columns] if header_only else frame


def to_numbers(frame: Any, name: str) -> bool:
    """Convert a column to float64 in place; empty cells become NaN. Return whether all other cells are finite numbers.

    Each cell is read by itself: what the others are changes no bit of it.
    """
    pandas, column = imported("pandas"), frame[name]
    if column.dtype.kind in "Mm":
        return False
    numbers = column if column.dtype.kind in "biuf" else column.astype(object).map(number_in)
    frame[name] = found = pandas.Series(numbers, column.index).astype("float64")
    return bool(missing_cells(column[found.isna()]).all() and (found.abs() != float("inf")).all())


def to_moments(frame: Any, name: str) -> bool:
    """Convert ISO 8601 dates to moments in UTC, in place; other cells stay as they are. Return whether there are none.

    Each cell is read by itself: a unit below microseconds, which pandas would give to all, leaves no room for dates far away.
    """
    pandas, column = imported("pandas"), frame[name]
    if column.dtype.kind in "Mm":
        return True
    empty = missing_cells(column)
    texts = column.where(~empty).astype(object).map(lambda cell: PRECISE.sub(r"\1", cell) if isinstance(cell, str) else cell)
    found = pandas.to_datetime(texts, errors="coerce", format="ISO8601", utc=True)
    found = found.dt.tz_localize(None).dt.as_unit("us")
    dates = bool(found[~empty].notna().all())
    frame[name] = found if dates else found.astype(object).where(found.notna() | empty, column)
    return dates


PRECISE = re.compile(r"(\.\d{6})\d+")  # seconds with more than six decimals


def number_in(cell: Any) -> float:
    """Return the number that a cell holds; NaN if it holds none."""
    try:
        return float("nan") if isinstance(cell, str) and "_" in cell else float(cell)  # Python reads "1_0" as 10
    except (OverflowError, TypeError, ValueError):
        return float("nan")


def _is_number(text: str) -> bool:
    number = number_in(text)
    return number == number

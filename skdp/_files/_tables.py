"""Read tables from files. No message quotes a value or a row of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skdp._files._suffixes import check_suffix, imported

__all__ = [
    "SEPARATORS",
    "check_numbers",
    "column_kinds",
    "column_names",
    "column_types",
    "empty_gaps",
    "read_frame",
    "to_moments",
    "to_numbers",
]

SEPARATORS = (",", ";", "\t", "|")
TABLES = (".csv", ".csv.gz", ".parquet")
MISSING = ("", "NA", "NaN", "nan", "null", "?")  # texts of a cell that stand for a missing number


def read_frame(path: Path, numbers: Sequence[str], others: Sequence[str], sep: str = ",") -> Any:
    """Read a table.

    Parameters
    ----------
    path : Path
        CSV, gzipped CSV with a header, or Parquet.
    numbers : sequence of str
        Columns to read as float64; missing values become NaN. All other columns of a CSV are read as text.
    others : sequence of str
        Further columns that the table must have.
    sep : str, default=","
        What separates the fields of a CSV.

    Returns
    -------
    pandas.DataFrame
        All columns.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read; the message quotes no data.
    """
    present = column_names(path, sep)
    needed = [*numbers, *others]
    missing = [name for name in needed if name not in present]
    if len(missing) == len(needed):
        raise ValueError(
            f"{path} has none of the columns {needed} in its first line: is the header missing, or is {sep!r} not its separator?"
        )
    if missing:
        raise ValueError(f"{path} has no columns {missing}; expected all that the schema names.")
    frame = _read(path, sep)
    _check_records(path, frame)
    check_numbers(path, frame, numbers)
    return frame


def check_numbers(path: Any, frame: Any, numbers: Sequence[str]) -> None:
    """Convert columns to float64 in place, with NaN for empty cells; raise ValueError if other cells are not finite numbers."""
    if wrong := [name for name in numbers if not to_numbers(frame, name)]:
        raise ValueError(
            f"{path}: the columns {wrong} have cells that are not finite numbers; expected numbers with a decimal point, "
            "or empty cells."
        )


def empty_gaps(path: Path, frame: Any, names: Sequence[str]) -> None:
    """Make cells of a CSV missing, in place, that hold a text which stands for a missing number; each cell is read by itself."""
    if path.suffix != ".parquet":
        for name in names:
            frame[name] = frame[name].where(~frame[name].str.strip().isin(MISSING), None)


def column_kinds(path: Path, sep: str = ",") -> dict[str, str]:
    """Return "number", "category" or "ignore" (for dates) by column name, from the types of the file or its reader.

    Parameters
    ----------
    path : Path
        A table.
    sep : str, default=","
        What separates the fields of a CSV.

    Returns
    -------
    dict
        Kinds, in the order of the table.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read or has no header; the message quotes no data.
    """
    names, kinds = column_names(path, sep), {"i": "number", "u": "number", "f": "number", "M": "ignore", "m": "ignore"}
    path = first_file(path)
    frame = _read(path, sep, kinds_only=True)
    if path.suffix != ".parquet":  # only the types of a Parquet file are read
        _check_records(path, frame)
    return {name: kinds.get(dtype.kind, "category") for name, dtype in zip(names, frame.dtypes, strict=True)}


def column_types(path: Path) -> dict[str, Any]:
    """Return the types of the columns of a Parquet file, or of the first one of a folder, by name; no record is read."""
    return dict(_read(first_file(path), ",", kinds_only=True).dtypes)


def column_names(path: Path, sep: str = ",") -> list[str]:
    """Return the column names of a table; raise an error if the first line holds data instead of names.

    Parameters
    ----------
    path : Path
        A table; only its column names are read.
    sep : str, default=","
        What separates the fields of a CSV.

    Returns
    -------
    list of str
        Names, in the order of the table.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read or has no header; the message quotes no data.
    """
    if sep not in SEPARATORS:
        raise ValueError(f"sep={sep!r}; expected one of {list(SEPARATORS)}.")
    path = first_file(path)
    check_suffix("The table", path, TABLES)
    if not path.is_file():
        raise FileNotFoundError(f"There is no table {path}.")
    names = [str(name) for name in _read(path, sep, header_only=True)]
    if path.suffix != ".parquet":
        _check_separator(path, names, sep)
    if not all(names):
        raise ValueError(f"{path} has a column without a name, perhaps an index; expected a name for each (to_csv(index=False)).")
    if any(_is_number(name) for name in names):
        raise ValueError(f"{path} has no header: expected names separated by {sep!r} in its first line, none of them a number.")
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has columns with the same name; expected different names.")
    return names


def first_file(path: Path) -> Path:
    """Return the first Parquet file of a folder, which has the columns of all, and any other path as it is."""
    if not path.is_dir():
        return path
    found = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith((".", "_")))
    if not found:
        raise ValueError(f"{path} has no Parquet files; expected a folder of these, or a table in one file.")
    return found[0]


def _check_separator(path: Path, names: list[str], sep: str) -> None:
    """Raise an error if another character seems to separate the fields of the header; the header is public, and not quoted."""
    suspects = [other for other in SEPARATORS if other != sep and (len(names) == 1 or other in ";\t")]
    if found := [other for other in suspects if any(other in name for name in names)]:
        count = "one column" if len(names) == 1 else f"{len(names)} columns"
        shown = "tab" if found[0] == "\t" else found[0]
        raise ValueError(
            f"{path}: with the separator {sep!r} the header has {count} and contains {found[0]!r}; expected "
            f"sep={found[0]!r} (on the command line --sep '{shown}')."
        )


def _check_records(path: Path, frame: Any) -> None:
    if not len(frame):
        raise ValueError(f"{path} has a header but no records; expected at least one.")


def _read(path: Path, sep: str, *, header_only: bool = False, kinds_only: bool = False) -> Any:
    try:
        if path.suffix == ".parquet":
            return _read_parquet(path, header_only, kinds_only)
        return _read_csv(path, sep, header_only, kinds_only)
    except (ImportError, MemoryError):
        raise
    except Exception:  # a damaged file can raise any error
        pass
    # outside of the except clause: the original error may quote data
    raise ValueError(
        f"{path} cannot be read; expected Parquet, or UTF-8 text with a header and the same number of fields in every row."
    )


def _read_csv(path: Path, sep: str, header_only: bool, kinds_only: bool) -> Any:
    pandas = imported("pandas")
    if header_only:
        return pandas.read_csv(path, sep=sep, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
    if kinds_only:
        return pandas.read_csv(path, sep=sep, low_memory=False)
    blank_is_nothing = len(_read_csv(path, sep, True, False)) > 1  # with one column, a blank line is a record
    # usecols would accept rows with too many fields
    frame = pandas.read_csv(path, sep=sep, dtype=object, keep_default_na=False, skip_blank_lines=blank_is_nothing)
    if not isinstance(frame.index, pandas.RangeIndex):
        raise ValueError("Every row has more fields than the header.")
    return frame


def _read_parquet(path: Path, header_only: bool, kinds_only: bool) -> Any:
    if not header_only and not kinds_only:
        return imported("pandas").read_parquet(path)
    frame = imported("pyarrow.parquet").read_schema(path).empty_table().to_pandas()
    return frame.columns.tolist() if header_only else frame


def to_numbers(frame: Any, name: str) -> bool:
    """Convert a column to float64 in place; empty cells become NaN. Return whether all other cells are finite numbers."""
    pandas, column = imported("pandas"), frame[name]
    if column.dtype.kind in "Mm":
        return False
    empty = column.isna() | column.isin(MISSING)
    frame[name] = pandas.to_numeric(column.where(~empty), errors="coerce").astype("float64")
    return bool((frame[name].abs() < float("inf"))[~empty].all())


def to_moments(frame: Any, name: str) -> bool:
    """Convert a column to dates, in UTC, in place; empty cells become NaT. Return whether all other cells are ISO 8601 dates."""
    pandas, column = imported("pandas"), frame[name]
    if column.dtype.kind in "Mm":
        return True
    empty = column.isna() | column.isin(MISSING)
    found = pandas.to_datetime(column.where(~empty), errors="coerce", format="ISO8601", utc=True)
    frame[name] = found.dt.tz_localize(None)
    return bool(found[~empty].notna().all())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Tables as files. No message quotes a value or a row of a table."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skdp._files import _check_suffix, _imported

__all__ = ["column_kinds", "read_frame"]

TABLES = (".csv", ".csv.gz", ".parquet")
MISSING = ("", "NA", "NaN", "nan", "null", "?")  # cells that hold no number
UNREADABLE = (ValueError, TypeError, OverflowError, OSError, EOFError, NotImplementedError, zlib.error)


def read_frame(path: Path, numbers: Sequence[str], others: Sequence[str]) -> Any:
    """Read a table.

    Parameters
    ----------
    path : Path
        CSV, gzipped CSV with a header, or Parquet.
    numbers : sequence of str
        Columns to be read as float64, NaN where missing. All other columns of a CSV are read as text.
    others : sequence of str
        Further columns that must be there.

    Returns
    -------
    pandas.DataFrame
        All columns.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read; the message quotes no data.
    """
    present = _names(path)
    needed = [*numbers, *others]
    missing = [name for name in needed if name not in present]
    if len(missing) == len(needed):
        raise ValueError(
            f"{path} has none of the columns {needed} in its first line: no header, or no commas between its fields?"
        )
    if missing:
        raise ValueError(f"{path} has no columns {missing}; expected all that the schema names.")
    frame = _read(path)
    if wrong := [name for name in numbers if not _to_numbers(frame, name)]:
        raise ValueError(f"{path}: the columns {wrong} hold something that is no finite number; expected numbers, or nothing.")
    return frame


def column_kinds(path: Path) -> dict[str, str]:
    """Return "number", "category" or "ignore" (for dates) by column name: what type the file, or its reader, gives the column.

    Parameters
    ----------
    path : Path
        A table.

    Returns
    -------
    dict
        Kinds, in the order of the table.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read or has no header; the message quotes no data.
    """
    names, kinds = _names(path), {"i": "number", "u": "number", "f": "number", "M": "ignore", "m": "ignore"}
    dtypes = [dtype.kind for dtype in _read(path, kinds_only=True).dtypes]
    return {name: kinds.get(kind, "category") for name, kind in zip(names, dtypes, strict=True)}


def _names(path: Path) -> list[str]:
    """Column names, after a check that they are names."""
    _check_suffix("The table", path, TABLES)
    if not path.is_file():
        raise FileNotFoundError(f"There is no table {path}.")
    names = [str(name) for name in _read(path, header_only=True)]
    if not all(names):
        raise ValueError(f"{path} has a column without a name, an index perhaps; expected a name for each (to_csv(index=False)).")
    if any(_is_number(name) for name in names) or any(separator in name for name in names for separator in ";\t"):
        raise ValueError(f"{path} has no header: expected names with commas between in its first line, none of them a number.")
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has columns that are named alike; expected different names.")
    return names


def _read(path: Path, *, header_only: bool = False, kinds_only: bool = False) -> Any:
    failed = False
    try:
        read = _read_parquet if path.suffix == ".parquet" else _read_csv
        return read(path, header_only, kinds_only)
    except UNREADABLE:
        failed = True
    if failed:  # outside of the except clause: the original error may quote data
        raise ValueError(f"{path} cannot be read; expected UTF-8 text with a header and as many fields in every row, or Parquet.")


def _read_csv(path: Path, header_only: bool, kinds_only: bool) -> Any:
    pandas = _imported("pandas")
    if header_only:
        return pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
    if kinds_only:
        return pandas.read_csv(path, low_memory=False)
    blank_is_nothing = len(_read_csv(path, True, False)) > 1  # with one column, a blank line is a record
    # usecols would let rows with too many fields pass
    frame = pandas.read_csv(path, dtype=object, keep_default_na=False, skip_blank_lines=blank_is_nothing)
    if not isinstance(frame.index, pandas.RangeIndex):
        raise ValueError("Every row has more fields than the header.")
    return frame


def _read_parquet(path: Path, header_only: bool, kinds_only: bool) -> Any:
    if not header_only and not kinds_only:
        return _imported("pandas").read_parquet(path)
    frame = _imported("pyarrow.parquet").read_schema(path).empty_table().to_pandas()
    return frame.columns.tolist() if header_only else frame


def _to_numbers(frame: Any, name: str) -> bool:
    """Make a column one of float64 in place; False where something in it is no finite number."""
    pandas, column = _imported("pandas"), frame[name]
    if column.dtype.kind in "Mm":
        return False
    empty = column.isna() | column.isin(MISSING)
    frame[name] = pandas.to_numeric(column.where(~empty), errors="coerce").astype("float64")
    return bool((frame[name].abs() < float("inf"))[~empty].all())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

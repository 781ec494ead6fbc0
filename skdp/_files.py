"""Tables, models and reports as files. No message quotes a value or a row of a table."""

import contextlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

__all__ = ["Forgiving", "check_output", "column_kinds", "load_model", "read_frame", "save_model", "write_report"]

TABLES = (".csv", ".csv.gz", ".parquet")
MODELS = (".skops", ".joblib")
REPORTS = (".html", ".json", ".txt")
MISSING = ("", "NA", "NaN", "nan", "null", "?")  # cells that hold no number
UNREADABLE = (ValueError, TypeError, OverflowError, OSError, EOFError, NotImplementedError, zlib.error)
EXTRA = "pip install pandas pyarrow skops brings what the command line needs"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Privacy report</title>
<style>body {{font-family: sans-serif; max-width: 60em; margin: 2em auto}} th, td {{padding: .3em .8em .3em 0}}</style></head>
<body>{}</body></html>
"""


class Forgiving:
    """Writes to a stream as long as somebody reads it: a closed terminal must not end a fit that has spent its budget.

    Parameters
    ----------
    stream : text stream
        Where to write.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or do without."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or do without."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


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


def check_output(path: Path | None, suffixes: tuple[str, ...], *inputs: Path, overwrite: bool = True) -> None:
    """Raise unless a file of that kind can be written there, and is no input: before the budget is spent, not after."""
    if path is None:
        return
    _check_suffix("The output", path, suffixes)
    if any(path.resolve() == given.resolve() for given in inputs):
        raise ValueError(f"{path} is read, too; expected another name for the output.")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already; expected another name, so that nothing is lost.")
    if not os.access(path if path.exists() else path.parent, os.W_OK) or path.is_dir():
        raise ValueError(f"{path} cannot be written; expected a file in a directory that exists.")
    if path.suffix == ".skops":
        _imported("skops.io")


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator or pipeline with its privacy report.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skdp, or a pipeline that ends in one.
    path : path-like
        ``.skops`` (holds data only) or ``.joblib`` (a pickle).

    Raises
    ------
    ImportError, ValueError
        If it cannot be written, or as ``.skops`` holds types that `load_model` would refuse.
    """
    path = Path(path)
    check_output(path, MODELS)
    if path.suffix == ".skops":
        skops = _imported("skops.io")
        content = skops.dumps(model)
        if unknown := _unknown(skops.get_untrusted_types(data=content)):
            raise ValueError(
                f"{path} would hold the types {unknown}, with which load_model refuses it; expected those of skdp, scikit-learn "
                "and NumPy only. A .joblib file can hold others."
            )
        path.write_bytes(content)
    else:
        _imported("joblib").dump(model, path)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save_model` wrote.

    Parameters
    ----------
    path : path-like
        A ``.skops`` file, of which only types of skdp, scikit-learn and NumPy are loaded, or a ``.joblib`` file, which runs
        whatever code is in it.

    Returns
    -------
    estimator
        The fitted estimator.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If it cannot be read.
    """
    path = Path(path)
    _check_suffix("The model", path, MODELS)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model {path}.")
    if path.suffix == ".joblib":
        return _imported("joblib").load(path)
    skops = _imported("skops.io")
    types = skops.get_untrusted_types(file=path)
    if unknown := _unknown(types):
        raise ValueError(f"{path} holds the types {unknown}; expected those of skdp, scikit-learn and NumPy only.")
    return skops.load(path, trusted=types)


def _unknown(types: Sequence[str]) -> list[str]:
    return [name for name in types if not name.startswith(("skdp.", "sklearn.", "numpy."))]


def write_report(report: Any, path: Path) -> None:
    """Write a privacy report as HTML, JSON or text, as the suffix says."""
    content = {".html": lambda: PAGE.format(report._repr_html_()), ".json": report.to_json, ".txt": lambda: str(report)}
    path.write_text(content[path.suffix]() + "\n", encoding="utf-8")


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


def _imported(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{name.split('.')[0]} is missing; {EXTRA}.") from None


def _check_suffix(what: str, path: Path, suffixes: tuple[str, ...]) -> None:
    if not path.name.endswith(suffixes):
        raise ValueError(f"{what} is {path}; expected a name that ends in one of {', '.join(suffixes)}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

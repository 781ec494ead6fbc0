"""Tables, models and reports as files. No message quotes a value or a row of a table."""

import os
from pathlib import Path
from typing import Any

__all__ = ["check_output", "column_kinds", "load_model", "read_frame", "save_model", "write_report"]

TABLES = (".csv", ".csv.gz", ".parquet")
MODELS = (".skops", ".joblib")
REPORTS = (".html", ".json", ".txt")
MISSING = ["", "NA", "NaN", "nan", "null", "?"]  # of a number
EXTRA = "pip install 'skdp[cli]' brings it"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Privacy report</title></head>
<body style="font-family: sans-serif; max-width: 60em; margin: 2em auto">{}</body></html>
"""


def read_frame(path: Path, numbers: list[str], texts: list[str]) -> Any:
    """Read some columns of a table.

    Parameters
    ----------
    path : Path
        CSV, gzipped CSV with a header, or Parquet.
    numbers, texts : list of str
        Columns to be read as float64, NaN where missing, and as text.

    Returns
    -------
    pandas.DataFrame
        These columns.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read; the message quotes no data.
    """
    present = list(column_kinds(path, only_names=True))
    if missing := [name for name in [*numbers, *texts] if name not in present]:
        raise ValueError(f"{path} has no columns {missing}; expected them beside the others: {present}.")
    failed = False
    try:
        frame = _read_parquet(path, [*numbers, *texts]) if path.suffix == ".parquet" else _read_csv(path, numbers, texts)
        frame = frame[[*numbers, *texts]].astype(dict.fromkeys(numbers, "float64"))
    except (ValueError, TypeError, OverflowError, UnicodeError, OSError, EOFError):
        failed = True
    if failed:  # outside of the except clause: the original error may quote data
        raise ValueError(
            f"{path} cannot be read: every row needs as many fields as there are columns, and these columns hold numbers only, "
            f"or nothing: {numbers}."
        )
    return frame


def column_kinds(path: Path, only_names: bool = False) -> dict[str, str]:
    """Return "number" or "category" by column name: what type the file, or its reader, gives the column.

    Parameters
    ----------
    path : Path
        A table.
    only_names : bool, default=False
        Read the header only and call every column of a CSV a category.

    Returns
    -------
    dict
        Kinds, in the order of the table.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the table cannot be read or has no header; the message quotes no data.
    """
    _check_suffix("The table", path, TABLES)
    if not path.is_file():
        raise FileNotFoundError(f"There is no table {path}.")
    pandas = _imported("pandas")
    failed = False
    try:
        if path.suffix == ".parquet":
            schema = _imported("pyarrow.parquet").read_schema(path)
            dtypes = schema.empty_table().to_pandas().dtypes
        else:
            dtypes = pandas.read_csv(path, nrows=0 if only_names else None, low_memory=False).dtypes
    except (ValueError, OSError, EOFError, UnicodeError):
        failed = True
    if failed:
        raise ValueError(f"{path} cannot be read as a table with a header line and as many fields in every row.")
    names = [str(name) for name in dtypes.index]
    if any(_is_number(name) or name.startswith("Unnamed: ") for name in names):
        raise ValueError(f"{path} has no header: its first line must name the columns, and no name may be empty or a number.")
    return {name: "number" if dtype.kind in "iuf" else "category" for name, dtype in zip(names, dtypes, strict=True)}


def check_output(path: Path | None, suffixes: tuple[str, ...]) -> None:
    """Raise unless a file of that kind can be written there: before the budget is spent, not after."""
    if path is None:
        return
    _check_suffix("The output", path, suffixes)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise ValueError(f"{path} cannot be written; expected a file in a directory that exists.")
    if path.suffix == ".skops":
        _imported("skops.io")


def save_model(model: Any, path: Path) -> None:
    """Write a fitted estimator with its privacy report, by skops or joblib as the suffix says."""
    if path.suffix == ".skops":
        _imported("skops.io").dump(model, path)
    else:
        _imported("joblib").dump(model, path)


def load_model(path: Path) -> Any:
    """Read an estimator that `save_model` wrote.

    Parameters
    ----------
    path : Path
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
    _check_suffix("The model", path, MODELS)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model {path}.")
    if path.suffix == ".joblib":
        return _imported("joblib").load(path)
    skops = _imported("skops.io")
    unknown = [name for name in skops.get_untrusted_types(file=path) if not name.startswith(("skdp.", "sklearn.", "numpy."))]
    if unknown:
        raise ValueError(f"{path} holds the types {unknown}; expected those of skdp, scikit-learn and NumPy only.")
    return skops.load(path, trusted=skops.get_untrusted_types(file=path))


def write_report(report: Any, path: Path) -> None:
    """Write a privacy report as HTML, JSON or text, as the suffix says."""
    content = {".html": lambda: PAGE.format(report._repr_html_()), ".json": report.to_json, ".txt": lambda: str(report)}
    path.write_text(content[path.suffix]() + "\n", encoding="utf-8")


def _read_csv(path: Path, numbers: list[str], texts: list[str]) -> Any:
    pandas = _imported("pandas")
    frame = pandas.read_csv(  # without usecols, which lets rows with too many fields pass
        path,
        low_memory=False,
        dtype={**dict.fromkeys(numbers, "float64"), **dict.fromkeys(texts, "object")},
        keep_default_na=False,
        na_values=dict.fromkeys(numbers, MISSING),
    )
    if not isinstance(frame.index, pandas.RangeIndex):
        raise ValueError("Every row has more fields than the header.")
    return frame


def _read_parquet(path: Path, columns: list[str]) -> Any:
    return _imported("pandas").read_parquet(path, columns=columns)


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

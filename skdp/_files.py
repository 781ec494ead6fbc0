"""Models and reports as files."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

__all__ = ["Forgiving", "check_output", "load_model", "save_model", "write_report"]

MODELS = (".skops", ".joblib")
REPORTS = (".html", ".json", ".txt")
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


def _imported(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{name.split('.')[0]} is missing; {EXTRA}.") from None


def _check_suffix(what: str, path: Path, suffixes: tuple[str, ...]) -> None:
    if not path.name.endswith(suffixes):
        raise ValueError(f"{what} is {path}; expected a name that ends in one of {', '.join(suffixes)}.")

"""Write reports by the suffix of the file; helpers that all files share."""

import contextlib
import importlib
import io
from pathlib import Path
from typing import Any, TextIO

REPORTS = (".html", ".json", ".txt")
EXTRA = "pip install pandas pyarrow skops installs what the command line needs"
OF_PARQUET = 'pip install "skdp[parquet]" installs what tables in Parquet files need'


class Forgiving:
    """Write to a stream as long as it is open: a closed terminal must not end a fit that has spent its budget.

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


def report_content(report: Any, path: Path) -> bytes:
    """Return a privacy report as HTML, JSON or text, depending on the suffix."""
    content = {".html": report.to_html, ".json": report.to_json, ".txt": lambda: str(report)}
    return (content[path.suffix]() + "\n").encode()


def picture_content(figure: Any) -> bytes:
    """Return a figure of matplotlib as PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format="png")
    return picture.getvalue()


def imported(name: str, advice: str = EXTRA) -> Any:
    """Return a module that not everybody needs; if it is missing, raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{name.split('.')[0]} is missing; {advice}.") from None


def check_suffix(what: str, path: Path, suffixes: tuple[str, ...], *, any_case: bool = False) -> None:
    """Raise an error unless a file name consists of a stem and one of the suffixes."""
    name = path.name.lower() if any_case else path.name
    if not any(name.removesuffix(suffix) not in (name, "") for suffix in suffixes):
        ends = f"{', '.join(suffixes)}, after a stem, such as name{suffixes[0]}"
        raise ValueError(f"{what} is {path}; expected a name that ends in one of {ends}.")

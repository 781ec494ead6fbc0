"""Write results for all commands: versions, JSON, lines of Markdown, figures."""

import contextlib
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import skdp

__all__ = ["figure", "made_with", "row", "versions", "write_json"]

LIBRARIES = ("scikit-learn", "numpy", "scipy", "dp_accounting", "diffprivlib", "interpret-core")


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed."""
    found = {"skdp": skdp.__version__}
    for library in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def made_with() -> dict[str, Any]:
    """Return the header of a JSON file: versions of libraries and of Python."""
    return {"versions": versions(), "python": platform.python_version()}


def write_json(contents: dict[str, Any], path: Path) -> None:
    """Write a JSON file.

    Parameters
    ----------
    contents : dict
        What it holds.
    path : Path
        Where; its directory is created where needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


def row(texts: list[str]) -> str:
    """Return a line of a Markdown table.

    Parameters
    ----------
    texts : list of str
        Its cells.

    Returns
    -------
    str
        Without a newline.
    """
    return f"| {' | '.join(texts)} |"


def figure(**parameters: Any) -> Any:
    """Return a figure of matplotlib, or None where that is missing.

    Parameters
    ----------
    **parameters : dict
        As matplotlib has them.

    Returns
    -------
    Figure or None
        Not bound to a window.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("No plot: matplotlib is missing; pip install 'skdp[bench]' brings it.")
        return None
    return Figure(layout="constrained", **parameters)

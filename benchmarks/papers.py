"""The experiments of the papers behind the solvers, under accounting that holds; all files have the same interface."""

import time
from pathlib import Path
from typing import Any, Protocol, cast

from benchmarks import coordinate_descent, erm_revisited, high_dimensional, minimax_auc, nonsmooth_rates
from benchmarks.writing import made_with, write_json

__all__ = ["PAPERS", "Experiment", "reproduce"]


class Experiment(Protocol):
    """The interface of the file of an experiment; the first line of its docstring is the title of the results."""

    __doc__: str

    def measure(self, quick: bool, jobs: int | None) -> dict[str, Any]:
        """Return "settings" and "records"; ``quick`` takes less than two minutes, ``jobs`` processes as joblib has it."""

    def markdown(self, contents: dict[str, Any]) -> str:
        """Return the tables, from what `measure` returned; without a title."""

    def draw(self, contents: dict[str, Any], path: Path) -> None:
        """Plot it."""


PAPERS: dict[str, Experiment] = {
    "erm-revisited": cast(Experiment, erm_revisited),
    "high-dimensional": cast(Experiment, high_dimensional),
    "nonsmooth-rates": cast(Experiment, nonsmooth_rates),
    "coordinate-descent": cast(Experiment, coordinate_descent),
    "minimax-auc": cast(Experiment, minimax_auc),
}


def reproduce(name: str, quick: bool, jobs: int | None, out: Path) -> dict[str, Any]:
    """Measure; write JSON, Markdown and a plot, which are named after the experiment.

    Parameters
    ----------
    name : str
        Out of ``PAPERS``.
    quick : bool
        Whether to take less than two minutes.
    jobs : int or None
        Processes.
    out : Path
        Directory.

    Returns
    -------
    dict
        What the JSON holds.
    """
    experiment, start = PAPERS[name], time.perf_counter()
    found = experiment.measure(quick, jobs)
    contents = {**made_with(), "quick": quick, "seconds": round(time.perf_counter() - start, 1), **found}
    stem = out / name.replace("-", "_")
    write_json(contents, stem.with_suffix(".json"))
    stem.with_suffix(".md").write_text(page(name, contents), encoding="utf-8")
    experiment.draw(contents, stem.with_suffix(".png"))
    print(f"Written to {out}: {stem.name}.json, .md and .png", flush=True)
    return contents


def page(name: str, contents: dict[str, Any]) -> str:
    """Return the Markdown: question, command, time, tables.

    Parameters
    ----------
    name : str
        Out of ``PAPERS``.
    contents : dict
        What the JSON holds.

    Returns
    -------
    str
        The whole file.
    """
    experiment = PAPERS[name]
    command = f"python -m benchmarks {name}{' --quick' if contents['quick'] else ''}"
    made = f"Made by `{command}` in {contents['seconds'] / 60:.1f} minutes."
    return f"# {title(name)}\n\n{made}\n\n{experiment.markdown(contents).strip()}\n"


def title(name: str) -> str:
    """Return what an experiment asks.

    Parameters
    ----------
    name : str
        Out of ``PAPERS``.

    Returns
    -------
    str
        The first line of its docstring, without the full stop.
    """
    return PAPERS[name].__doc__.strip().splitlines()[0].rstrip(".")

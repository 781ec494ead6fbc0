"""Write the measurements of a run as JSON and Markdown tables."""

from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plots import OURS, overview, plot
from benchmarks.scores import CHOSEN_BY, SCORES
from benchmarks.writing import row, write_json

__all__ = ["cell", "markdown", "overview", "plot", "write"]

ABOUT = """\
Medians over the fits of a cell, quartiles in brackets; the column "fits" says how many. A star marks a method whose
parameters were chosen *on the test set*, for each cell by itself, at no charge: no such method can be had, it is the optimistic
peer. All its configurations are fitted with the first seed, the three best with all of them. "calibration error" is the expected
one: over 15 bins of equal width of the probability of the label 1, the difference between mean probability and share, weighted by
records. MB is the peak memory that a fit adds to the table, as `tracemalloc` sees it, measured in a fit that is not timed;
compiled code that bypasses NumPy does not show in it."""


def write(results: dict[str, Any], out: Path) -> None:
    """Write ``accuracy.json`` and ``accuracy.md``.

    Parameters
    ----------
    results : dict
        Settings and records of a run.
    out : Path
        Directory that exists.
    """
    write_json(results, out / "accuracy.json")
    (out / "accuracy.md").write_text(markdown(results), encoding="utf-8")


def markdown(results: dict[str, Any]) -> str:
    """Return the results as Markdown: a comparison with the best of the others, then tables for each data set.

    Parameters
    ----------
    results : dict
        Settings and records of a run.

    Returns
    -------
    str
        Text that ends in a newline.
    """
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    settings = results["settings"]
    lines = ["# Test scores", "", f"Up to {settings['repeats']} fits of each private method. The noise is {settings['noise']}."]
    lines += [f"delta = {settings['delta']}. Versions: {versions}.", "", *ABOUT.splitlines()]
    for name, reason in results["skipped"].items():
        lines += ["", f"{name} was skipped: {reason}."]
    lines += comparison(results["records"], settings["epsilons"])
    for _, group in groupby(results["records"], itemgetter("table")):
        lines += ["", *section(list(group), settings["epsilons"])]
    return "\n".join(lines) + "\n"


def comparison(records: list[dict[str, Any]], epsilons: list[float]) -> list[str]:
    """Return lines that compare our default with the best method of others, under the same adjacency."""
    lines: list[str] = []
    for adjacency in sorted({record["adjacency"] for record in records if record["private"]}):
        rows = [texts for _, group in groupby(records, itemgetter("table")) if (texts := duel(list(group), adjacency, epsilons))]
        if rows:
            heads = ["table", "not private", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
            lines += ["", f"## Ours with nothing tuned, and the best of the others, {adjacency}", ""]
            lines += ["AUC, or R2 of a regression. Bold is the better median.", "", row(heads), row(["---"] * len(heads))]
            lines += [row(texts) for texts in rows]
    return lines


def duel(records: list[dict[str, Any]], adjacency: str, epsilons: list[float]) -> list[str]:
    """Return the cells of one table in the comparison; none if one side is missing."""
    score = CHOSEN_BY[records[0]["task"]]
    pairs = [best_of_both(records, adjacency, epsilon, score) for epsilon in epsilons]
    plain = [record[score][1] for record in records if record["method"] == "sklearn"]
    if not any(pairs):
        return []
    return [
        records[0]["table"],
        *(f"{value:.4f}" for value in plain or [np.nan]),
        *(against(*pair) if pair else "" for pair in pairs),
    ]


def best_of_both(records: list[dict[str, Any]], adjacency: str, epsilon: float, score: str) -> Any:
    """Median of ours, median of the best other, and its name."""
    here = [record for record in records if (record["adjacency"], record["epsilon"]) == (adjacency, epsilon)]
    own = [record for record in here if record["method"] == OURS]
    others = [record for record in here if not record["method"].startswith(OURS)]
    if not own or not others:
        return None
    best = max(others, key=lambda record: record[score][1])
    return own[0][score][1], best[score][1], best["method"]


def against(own: float, other: float, name: str) -> str:
    """Two medians, the better one bold."""
    texts = [f"**{number(value, 4)}**" if value == max(own, other) else number(value, 4) for value in (own, other)]
    return f"{texts[0]} / {texts[1]} ({escaped(name)})"


def escaped(name: str) -> str:
    """Return a name with its star escaped for Markdown."""
    return name.replace("*", r"\*")


def section(records: list[dict[str, Any]], epsilons: list[float]) -> list[str]:
    """Lines about one table: the score by which methods are chosen, then the others."""
    first = records[0]
    scores = SCORES[first["task"]]
    chosen = CHOSEN_BY[first["task"]]
    lines = [f"## {first['table']}", "", f"{first['n_train']} training records, {first['n_features']} features."]
    rest = [name for name in scores if name != chosen]
    tables = [([chosen], spread)] + ([(rest, medians)] if rest else [])
    for names, text in tables:
        heads = ["method", "guarantee", *(f"epsilon {epsilon:g}" for epsilon in epsilons), "fits", "seconds", "MB"]
        lines += ["", f"{' / '.join(scores[name].label for name in names)}:", "", row(heads), row(["---"] * len(heads))]
        for (method, adjacency, delta), group in groupby(records, itemgetter("method", "adjacency", "delta")):
            lines.append(line(method, adjacency, delta, list(group), epsilons, lambda record, t=text, n=names: t(record, n)))
    return lines


def line(
    method: str, adjacency: str | None, delta: float | None, group: list[dict[str, Any]], epsilons: list[float], text: Any
) -> str:
    """Line of a method."""
    texts = {record["epsilon"]: text(record) for record in group}
    figures = [texts.get(None if adjacency is None else epsilon, "") for epsilon in epsilons]
    guarantee = "not private" if adjacency is None else adjacency + ", delta 0" * (delta == 0)
    seconds = float(np.median([record["fit_seconds"][1] for record in group]))
    fits = " to ".join(map(str, sorted({record["repeats"] for record in group})))
    return row([escaped(method), guarantee, *figures, fits, f"{seconds:.2g}", f"{group[0]['megabytes']:.3g}"])


def spread(record: dict[str, Any], names: list[str]) -> str:
    """Median and quartiles of one score."""
    digits = SCORES[record["task"]][names[0]].digits
    low, middle, high = (number(value, digits) for value in record[names[0]])
    return f"{middle} [{low}, {high}]" if record["repeats"] > 1 else middle


def medians(record: dict[str, Any], names: list[str]) -> str:
    """Medians of several scores."""
    return " / ".join(number(record[name][1], SCORES[record["task"]][name].digits) for name in names)


def number(value: float, digits: int) -> str:
    """A score; one far beyond its usual range has three digits in all."""
    return f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.3g}"


def cell(record: dict[str, Any]) -> str:
    """Return the medians of all scores of a record.

    Parameters
    ----------
    record : dict
        Quartiles of the scores of one cell.

    Returns
    -------
    str
        In the order of ``SCORES``.
    """
    return medians(record, list(SCORES[record["task"]]))

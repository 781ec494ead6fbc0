"""Write what a run measured: JSON, Markdown tables, plots."""

import json
from itertools import cycle, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.methods import METHODS

__all__ = ["cell", "markdown", "plot", "write"]

SCORES = {"classification": {"accuracy": "accuracy", "auc": "AUC"}, "regression": {"r2": "R2"}}
COLOURS = ("#1f5fa8", "#d95f02", "#1b9e77", "#7b4fa3", "#b8860b", "#c2255c", "#17a2b8", "#5c940d")
GREYS = ("#222222", "#8c8c8c")
STYLES = {
    "replace_one": {"linestyle": "-", "marker": "o"},
    "zero_out": {"linestyle": "--", "marker": "s", "markerfacecolor": "white"},
}


def write(results: dict[str, Any], out: Path) -> None:
    """Write ``accuracy.json`` and ``accuracy.md``.

    Parameters
    ----------
    results : dict
        Settings and records of a run.
    out : Path
        Directory that exists.
    """
    (out / "accuracy.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    (out / "accuracy.md").write_text(markdown(results), encoding="utf-8")


def markdown(results: dict[str, Any]) -> str:
    """Return the results as Markdown, a table for each data set.

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
    lines = ["# Test scores", ""]
    lines += [f"Medians of {settings['repeats']} fits of each private method, {settings['noise']} noise; one fit of each other."]
    lines += [f"delta = {settings['delta']}. Versions: {versions}."]
    for name, reason in results["skipped"].items():
        lines += ["", f"{name} was skipped: {reason}."]
    for _, group in groupby(results["records"], itemgetter("table")):
        lines += ["", *section(list(group), settings["epsilons"])]
    return "\n".join(lines) + "\n"


def section(records: list[dict[str, Any]], epsilons: list[float]) -> list[str]:
    """Lines about one table."""
    first = records[0]
    about = f"{first['n_train']} training records, {first['n_features']} features; {' / '.join(SCORES[first['task']].values())}."
    heads = ["method", "adjacency", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
    lines = [f"## {first['table']}", "", about, "", row(heads), row(["---"] * len(heads))]
    for (method, adjacency, delta), group in groupby(records, itemgetter("method", "adjacency", "delta")):
        figures = [cell(record) for record in group]
        if adjacency is None:
            lines.append(row([method, "not private", *figures * len(epsilons)]))
        else:
            lines.append(row([method, adjacency + ", delta 0" * (delta == 0), *figures]))
    return lines


def row(texts: list[str]) -> str:
    """Line of a Markdown table."""
    return f"| {' | '.join(texts)} |"


def cell(record: dict[str, Any]) -> str:
    """Return the medians of a record.

    Parameters
    ----------
    record : dict
        Quartiles of the scores of one cell.

    Returns
    -------
    str
        Accuracy and AUC, or R2.
    """
    return " / ".join(f"{record[score][1]:.3f}" for score in SCORES[record["task"]])


def plot(records: list[dict[str, Any]], path: Path) -> None:
    """Plot the scores on one table against epsilon.

    Parameters
    ----------
    records : list of dict
        Records of one table; without a private one there is no plot.
    path : Path
        PNG file.
    """
    if not any(record["private"] for record in records):
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("No plot: matplotlib is missing; pip install 'skdp[demo]' brings it.")
        return
    scores = SCORES[records[0]["task"]]
    figure = Figure(figsize=(5 * len(scores), 4.6), layout="constrained")
    for axes, (score, label) in zip(figure.subplots(1, len(scores), squeeze=False)[0], scores.items(), strict=True):
        draw_curves(axes, [record for record in records if record["private"]], score)
        draw_lines(axes, [record for record in records if not record["private"]], score)
        axes.set_ylabel(f"test {label}")
    figure.suptitle(f"{records[0]['table']}: {records[0]['n_train']} training records, {records[0]['n_features']} features")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=120)


def draw_curves(axes: Any, records: list[dict[str, Any]], score: str) -> None:
    """Medians and middle halves of private methods against epsilon."""
    for (method, adjacency), group in groupby(records, itemgetter("method", "adjacency")):
        cells = list(group)
        epsilons = [record["epsilon"] for record in cells]
        low, middle, high = zip(*(record[score] for record in cells), strict=True)
        colour = COLOURS[list(METHODS).index(method) % len(COLOURS)]
        axes.fill_between(epsilons, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(epsilons, middle, color=colour, markersize=5, label=f"{method}, {adjacency}", **STYLES[adjacency])
    ticks = sorted({record["epsilon"] for record in records})
    axes.set(xscale="log", xlabel="epsilon (smaller is more private)")
    axes.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)


def draw_lines(axes: Any, records: list[dict[str, Any]], score: str) -> None:
    """One horizontal line per method without privacy; the AUC of chance does not stretch the picture."""
    by_score = sorted(records, key=lambda record: record[score][1], reverse=True)
    for record, colour in zip(by_score, cycle(GREYS), strict=False):
        view = axes.get_ylim()
        axes.axhline(record[score][1], color=colour, linestyle=":", linewidth=2, label=f"{record['method']}, not private")
        if score == "auc" and record[score][1] == 0.5:
            axes.set_ylim(view)

"""Privacy-utility plots: scores against epsilon."""

import math
from itertools import cycle, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.methods import METHODS
from benchmarks.scores import CHOSEN_BY, SCORES
from benchmarks.writing import figure

__all__ = ["draw_curves", "draw_lines", "overview", "plot"]

SHOWN = {"classification": ("auc", "accuracy"), "regression": ("r2",)}
COLOURS = (
    "#1f5fa8",
    "#d95f02",
    "#1b9e77",
    "#7b4fa3",
    "#b8860b",
    "#c2255c",
    "#17a2b8",
    "#5c940d",
    "#e07b91",
    "#555555",
    "#8c564b",
)
GREYS = ("#222222", "#8c8c8c")
STYLES = {
    "replace_one": {"linestyle": "-", "marker": "o"},
    "zero_out": {"linestyle": "--", "marker": "s", "markerfacecolor": "white"},
}
LOWEST_R2 = -0.25
OURS = "skdp"
IN_OVERVIEW = ("skdp", "dp-gd*", "dp-sgd*", "diffprivlib*", "dp-ebm", "skdp-objective", "sklearn", "constant")


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
    scores = SHOWN[records[0]["task"]]
    page = figure(figsize=(5.5 * len(scores), 5.4))
    if page is None:
        return
    for axes, score in zip(page.subplots(1, len(scores), squeeze=False)[0], scores, strict=True):
        draw(axes, records, score)
        axes.set_ylabel(f"test {SCORES[records[0]['task']][score].label}")
    page.suptitle(f"{records[0]['table']}: {records[0]['n_train']} training records, {records[0]['n_features']} features")
    page.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    page.savefig(path, dpi=110)


def overview(records: list[dict[str, Any]], path: Path) -> None:
    """Plot the main score on every table: our untuned default, and the methods of others.

    Parameters
    ----------
    records : list of dict
        Records of all tables, of which those under ``zero_out`` are shown, or under ``replace_one`` where a method has no others.
    path : Path
        PNG file.
    """
    kept = [record for record in records if record["method"] in IN_OVERVIEW and in_overview(record, records)]
    groups = [(name, list(group)) for name, group in groupby(kept, itemgetter("table"))]
    groups = [(name, group) for name, group in groups if any(record["private"] for record in group)]
    columns = min(3, len(groups))
    page = figure(figsize=(4.2 * columns, 3.4 * math.ceil(len(groups) / columns) + 0.8)) if len(groups) > 1 else None
    if page is None:
        return
    grid = page.subplots(math.ceil(len(groups) / columns), columns, squeeze=False).ravel()
    labels: dict[str, Any] = {}
    for axes, (name, group) in zip(grid, groups, strict=False):
        score = CHOSEN_BY[group[0]["task"]]
        draw(axes, group, score)
        axes.set(title=name, ylabel=f"test {SCORES[group[0]['task']][score].label}")
        handles, texts = axes.get_legend_handles_labels()
        labels |= dict(zip(texts, handles, strict=True))
    for axes in grid[len(groups) :]:
        axes.set_axis_off()
    page.legend(list(labels.values()), list(labels), loc="outside lower center", ncols=3, frameon=False)
    page.savefig(path, dpi=100)


def in_overview(record: dict[str, Any], records: list[dict[str, Any]]) -> bool:
    """Whether a record has no better comparable twin under the other neighbours."""
    if record["adjacency"] != "replace_one":
        return True
    return not any(other["method"] == record["method"] and other["adjacency"] == "zero_out" for other in records)


def draw(axes: Any, records: list[dict[str, Any]], score: str) -> None:
    """Curves and lines of one score."""
    draw_curves(axes, [record for record in records if record["private"]], score)
    draw_lines(axes, [record for record in records if not record["private"]], score)
    if score == "r2":
        low, high = max(axes.get_ylim()[0], LOWEST_R2), max(record[score][2] for record in records)
        axes.set_ylim(low, high + 0.05 * max(high - low, 0.05))  # a score far below the rest does not widen the axis
    if score == "auc":
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.45))


def draw_curves(axes: Any, records: list[dict[str, Any]], score: str) -> None:
    """Draw medians and middle halves of private methods against epsilon.

    Parameters
    ----------
    axes : Axes
        Where.
    records : list of dict
        Of private methods.
    score : str
        Which.
    """
    for (method, adjacency), group in groupby(records, itemgetter("method", "adjacency")):
        cells = list(group)
        epsilons = [record["epsilon"] for record in cells]
        low, middle, high = zip(*(record[score] for record in cells), strict=True)
        colour = colour_of(method)
        first = {"linewidth": 3, "zorder": 5} if method == "skdp" else {"linewidth": 1.3}
        axes.fill_between(epsilons, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(epsilons, middle, color=colour, markersize=5, label=f"{method}, {adjacency}", **STYLES[adjacency], **first)
    ticks = sorted({record["epsilon"] for record in records})
    axes.set(xscale="log", xlabel="epsilon (smaller is more private)")
    axes.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)


def colour_of(method: str) -> str:
    """Return a colour for each method; no other method has that of our default."""
    own, *others = COLOURS
    return own if method == OURS else others[sorted(set(METHODS) - {OURS}).index(method) % len(others)]


def draw_lines(axes: Any, records: list[dict[str, Any]], score: str) -> None:
    """Draw one horizontal line per method without privacy; an AUC at the level of chance does not widen the axis.

    Parameters
    ----------
    axes : Axes
        Where.
    records : list of dict
        Of methods without privacy.
    score : str
        Which.
    """
    by_score = sorted(records, key=lambda record: record[score][1], reverse=True)
    for record, colour in zip(by_score, cycle(GREYS), strict=False):
        view = axes.get_ylim()
        axes.axhline(record[score][1], color=colour, linestyle=":", linewidth=2, label=f"{record['method']}, not private")
        if score == "auc" and record[score][1] == 0.5:
            axes.set_ylim(view)

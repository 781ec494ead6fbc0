"""Write the tables and the plot of `benchmarks/high_dimensional.py` from its measurements."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.nonsmooth_rates import slope
from benchmarks.writing import figure, row
from skdp.solvers import AcceleratedMirrorDescent, GradientDescent, Solver

__all__ = ["CONTESTANTS", "ZERO", "draw", "markdown"]


class Contestant(NamedTuple):
    """A solver, the ball of its coefficients or None, and whether it is for sparse tables alone."""

    solver: str | Solver
    ball: str | None
    sparse: bool = False


CONTESTANTS = {
    "accmd, l1 ball": Contestant("accmd", "l1"),
    "frank_wolfe, l1 ball": Contestant("frank_wolfe", "l1"),
    "gd, l1 ball": Contestant("gd", "l1"),
    "gd, l2 ball": Contestant("gd", "l2"),
    "gd, no set": Contestant("gd", None),
    "default, no set": Contestant("auto", None),
    "accmd 200 steps, l1 ball": Contestant(AcceleratedMirrorDescent(200), "l1", sparse=True),
    "gd 200 steps, l2 ball": Contestant(GradientDescent(200), "l2", sparse=True),
}
ZERO = "all coefficients 0"
SYMBOLS = {"n_features": "p", "n_samples": "n", "epsilon": "epsilon"}
WORDS = {"n_features": "features", "n_samples": "training records"}


@dataclass(frozen=True)
class Section:
    """A table of the page: a population, what grows, and the values of the other two of n_samples, n_features, epsilon."""

    population: str
    axis: str
    fixed: dict[str, float]


ABOUT = {
    "signs": "dense rows of signs, ten coefficients",
    "lasso": "dense rows of signs, ten coefficients, numbers",
    "spread": "dense rows of signs, all coefficients alike",
    "words": "sparse rows of norm 1, ten coefficients",
    "reuters": "Reuters, sparse rows of norm 1",
}
PANELS = (  # section, and what is plotted
    ((0, "excess"), (1, "excess")),
    ((0, "test"), (1, "test")),
    ((5, "excess"), (6, "excess")),
    ((5, "test"), (6, "test")),
    ((4, "excess"), (4, "test")),
)
Lines = dict[str, dict[float, dict[str, Any]]]


def sections(settings: dict[str, Any]) -> tuple[Section, ...]:
    """Return the sections of the page in order."""
    n, p, epsilon = ({name: settings[name]} for name in ("n_samples", "n_features", "epsilon"))
    return (
        Section("signs", "n_features", n | epsilon),
        Section("signs", "n_samples", p | epsilon),
        Section("signs", "epsilon", n | p),
        Section("lasso", "n_features", n | epsilon),
        Section("spread", "n_features", n | {"epsilon": settings["largest_epsilon"]}),
        Section("words", "n_features", n | epsilon),
        Section("words", "n_samples", p | epsilon),
        Section("words", "epsilon", n | p),
        Section("reuters", "epsilon", {}),
    )


def lines_of(records: list[dict[str, Any]], section: Section) -> Lines:
    """Records of a section by name and place; those without privacy are at every epsilon."""
    fits = [record for record in records if record["population"] == section.population]
    fits = [r for r in fits if all(r[name] in (value, None) for name, value in section.fixed.items())]
    places = sorted({record[section.axis] for record in fits if record["epsilon"] is not None})
    found: Lines = {}
    for record in fits:
        radius = record["radius"]
        name = record["contestant"] + ("" if radius is None or record["contestant"].endswith("set") else f", radius {radius:g}")
        for place in places if record[section.axis] is None else [record[section.axis]]:
            if place in places:
                found.setdefault(name, {})[place] = record
    return found


def middle(record: dict[str, Any], quantity: str = "excess") -> float:
    """Median over the fits."""
    return float(record[quantity][1])


def powers(lines: Lines, name: str) -> tuple[float, float]:
    """Powers that the excess and its bound follow, where the excess is at most half of that of coefficients of 0."""
    line, zero = lines[name], lines[ZERO]
    places = [place for place in sorted(line) if 0 < middle(line[place]) <= middle(zero[place]) / 2]
    bounds = [line[place].get("predicted") for place in places]
    return fitted_power(places, [middle(line[place]) for place in places]), fitted_power(places, bounds)


def fitted_power(places: list[float], values: list[Any]) -> float:
    """Slope of logarithms; nan for less than two places or without values."""
    return math.nan if None in values else slope(places, values)


def markdown(contents: dict[str, Any]) -> str:
    """Return a table per section, and one of the bounds.

    Parameters
    ----------
    contents : dict
        As `high_dimensional.measure` returned it.

    Returns
    -------
    str
        Markdown.
    """
    settings, parts = contents["settings"], []
    most = f"{settings['several fits up to']:.0e} numbers"
    head = (
        f"Medians over {settings['repeats']} fits (1 of dense tables of more than {most}),\n"
        f"{settings['adjacency']}, delta {settings['delta']}: excess training loss over the least one in the set of the\n"
        "solver (without a set, in the l2 ball), and test AUC (numbers: R2). Last are the powers of the excess and of its bound\n"
        f"where the excess is at most half of that of {ZERO}. Least losses are known to {settings['gap']:g}, or as `gap` in\n"
        "the JSON says. Populations: `benchmarks/wide_tables.py`; bounds: `benchmarks/high_dimensional.py`."
    )
    for section in sections(settings):
        lines = lines_of(contents["records"], section)
        if lines:
            parts.append("\n".join([f"## {heading(section)}", "", *section_table(lines, section)]))
    return "\n\n".join([head, *parts, "## Bounds", bounds_table(contents["records"], settings)])


def heading(section: Section) -> str:
    """Return the description of a section."""
    fixed = ", ".join(f"{SYMBOLS[name]} = {value:g}" for name, value in section.fixed.items())
    return f"{ABOUT[section.population]}: against {SYMBOLS[section.axis]}{f' ({fixed})' if fixed else ''}"


def section_table(lines: Lines, section: Section) -> list[str]:
    """Rows of a Markdown table."""
    places = sorted({place for line in lines.values() for place in line})
    with_powers = section.axis != "epsilon"
    heads = ["", *(f"{SYMBOLS[section.axis]} = {place:g}" for place in places), *(["power", "bound's"] if with_powers else [])]
    rows = [row(heads), row(["---"] * len(heads))]
    for name, line in lines.items():
        cells = [f"{middle(line[p]):.3f} / {middle(line[p], 'test'):.3f}" if p in line else "" for p in places]
        ends = [("" if math.isnan(power) else f"{power:.2f}") for power in powers(lines, name)] if with_powers else []
        rows.append(row([name, *cells, *ends]))
    return rows


def bounds_table(records: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return bounds and measurements, at the number of features that all populations have."""
    shown = [r for r in records if r.get("predicted") is not None and r["n_samples"] == settings["n_samples"]]
    width = max((r["n_features"] for r in shown if r["n_features"] <= settings["n_features"]), default=0)
    usual, largest = settings["epsilon"], settings["largest_epsilon"]
    shown = [r for r in shown if r["n_features"] == width]
    shown = [r for r in shown if r["epsilon"] == (largest if r["population"] == "spread" else usual)]
    populations = list(dict.fromkeys(r["population"] for r in shown))
    about = f"n = {settings['n_samples']}, p = {width}, epsilon {usual:g} (spread: {largest:g}); bound / measured excess:"
    rows = [about, "", row(["", *populations]), row(["---"] * (1 + len(populations)))]
    for name in dict.fromkeys(r["contestant"] for r in shown):
        by_population = {r["population"]: f"{r['predicted']:.2g} / {middle(r):.2g}" for r in shown if r["contestant"] == name}
        rows.append(row([name, *(by_population.get(population, "") for population in populations)]))
    return "\n".join(rows)


def draw(contents: dict[str, Any], path: Path) -> None:
    """Plot excess, with the power of its bound, and test scores, against features and against records.

    Parameters
    ----------
    contents : dict
        As `high_dimensional.measure` returned it.
    path : Path
        PNG file.
    """
    page = figure(figsize=(9.6, 14.5))
    if page is None:
        return
    grid = page.subplots(len(PANELS), 2)
    for axes, (number, quantity) in zip(grid.ravel(), (panel for pair in PANELS for panel in pair), strict=True):
        section = sections(contents["settings"])[number]
        lines = lines_of(contents["records"], section)
        if lines:
            plot(axes, lines, section, quantity)
    names = {name: handle for axes in grid[1:4, 0] for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    page.legend(list(names.values()), list(names), loc="outside upper center", ncols=3, frameon=False)
    page.savefig(path, dpi=100)


def plot(axes: Any, lines: Lines, section: Section, quantity: str) -> None:
    """One panel."""
    ceiling = "l2 ball, not private" if section.population == "spread" else "l1 ball, not private"
    colors = {name: f"C{number}" for number, name in enumerate(CONTESTANTS)}
    shown = [name for name in colors if name in lines]
    for name in [*shown, *([ceiling] if quantity == "test" else [ZERO])]:
        places, width = sorted(lines[name]), 1.6 if name in colors else 1.0
        low, median, high = np.array([lines[name][place][quantity] for place in places]).T
        style = {"color": colors.get(name, "#222222"), "marker": "o" if name in colors else "", "markersize": 4}
        label, dashes = ("not private", "--") if name == ceiling else (name, "-")
        axes.plot(places, median, **style, linestyle=dashes, linewidth=width, label=label)
        axes.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0)
        bounds = [lines[name][place].get("predicted") for place in places]
        if quantity == "excess" and None not in bounds and median.min() > 0:
            anchor = int(np.argmin(median))
            axes.plot(places, median[anchor] * np.array(bounds) / bounds[anchor], ":", color=style["color"], linewidth=1.2)
    fixed = ", ".join(f"{SYMBOLS[name]} = {value:g}" for name, value in section.fixed.items())
    axes.set_title(f"{section.population}: {fixed}", fontsize=10)
    ticks = sorted(lines[ZERO])
    axes.set(xscale="log", xlabel=WORDS[section.axis], ylabel="excess training loss" if quantity == "excess" else "test AUC")
    if quantity == "excess":
        axes.set_yscale("log")
        highest = max(middle(record) for name in shown for record in lines[name].values())
        axes.set_ylim(top=1.6 * max(highest, *(middle(record) for record in lines[ZERO].values())))
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.25)

"""Draw the panels of an additive model on given axes: curves, bars or heat maps."""

import importlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

COLOURS = ("#1f5fa8", "#d9822b", "#3c8c5a", "#8a4fa3", "#c0392b", "#666666", "#17a2b8", "#7f6000")
DARK = "#333333"
ROOM = 18  # number of categories that fit into a panel of the usual width
LONGEST = 22  # longest name of a category in characters; longer names are cut off
LETTERS = 32  # number of characters that fit below a panel; if there are more, names are vertical
MANY, KEPT = 60, 40  # if a column has more than 60 categories, only 40 are drawn
TICKS = 4  # number of intervals between the labels of an axis of a heat map, which is narrow
DAY, FAR = 86400.0, 700_000  # seconds of a day; days from 1970 up to which matplotlib has dates, less a few years
DATES = 6  # number of dates along an axis at most: with fewer, the locator of matplotlib finds none for 18 to 24 months
PARTS = 8  # number of cells of a heat map between two knots
LEFT_OUT = 0.01  # share of the records whose points may leave an axis, at either end; a choice


@dataclass(frozen=True, eq=False)
class Panel:
    """Hold and draw the content of one axes.

    Parameters
    ----------
    title : str
        Title of the panel.
    grids : tuple of ndarray
        Values of one column, or of two, at which the function is drawn.
    scales : tuple of str
        "linear", "log", "date" or "category", for each column; dates are in days since 1970.
    names : tuple of str
        Names of the columns.
    values : ndarray of shape (k, n_outputs), or (k1, k2, 1)
        Values of the function on the grids.
    band : pair of ndarray of the same shape, or None
        Lower and upper ends of the band.
    labels : tuple of str
        Names of the outputs.
    missing : ndarray of shape (3, n_outputs) or None, default=None
        Value of the function at a missing cell, and the ends of its band.
    inner : pair of ndarray or None, default=None
        Lower and upper ends of a second band, for the noise alone, inside the band.
    shares : ndarray of shape (k,) or (k1, k2), or None, default=None
        Released shares of the records at the grids: where hardly any record is, nothing sets the limits of the axes, and the axis
        of a number ends.
    share_missing : float, default=1.0
        Released share of the missing cells.
    """

    title: str
    grids: tuple[np.ndarray, ...]
    scales: tuple[str, ...]
    names: tuple[str, ...]
    values: np.ndarray
    band: tuple[np.ndarray, np.ndarray] | None
    labels: tuple[str, ...]
    missing: np.ndarray | None = None
    inner: tuple[np.ndarray, np.ndarray] | None = None
    shares: np.ndarray | None = None
    share_missing: float = 1.0

    @property
    def is_pair(self) -> bool:
        """Whether the panel is a heat map."""
        return len(self.grids) == 2

    @property
    def n_units(self) -> int:
        """Width of the panel, in multiples of the usual width."""
        return -(-len(self.grids[0]) // ROOM) if self.scales[0] == "category" else 1

    @property
    def n_upright(self) -> int:
        """Number of letters of the longest name below the panel if the names must be vertical, else 0."""
        if self.scales[0] != "category":
            return 0
        lengths = [len(name) for name in shortened(self.grids[0])]
        widest = max(one + other for one, other in zip(lengths, lengths[1:] or lengths, strict=False)) / 2
        return max(lengths) if (widest + 1) * len(lengths) > LETTERS * self.n_units else 0

    def draw(self, ax: Any) -> None:
        """Draw the panel.

        Parameters
        ----------
        ax : matplotlib.axes.Axes
            Where to draw.
        """
        kind = self._heat_map if self.is_pair else self._bars if self.scales[0] == "category" else self._curves
        known = ax.dataLim.frozen()  # of what was drawn there before
        kind(ax)
        if self.shares is not None and not self.is_pair:
            _limit(ax, known.intervaly, self._limits(self.shares))
            if self.scales[0] != "category":
                _end(ax, known.intervalx, self._ends(0))
        if self.band is not None and not np.isfinite(self.band[0]).any():
            ax.text(0.5, 0.5, "not identified at this budget", transform=ax.transAxes, ha="center", va="center", fontsize="small")
        ax.set_title(plain(self.title), fontsize="medium")

    def _limits(self, shares: np.ndarray) -> tuple[float, float]:
        """Return the lowest and the highest end of the bands, or of the values, where records are."""
        low, high = (self.values, self.values) if self.band is None else self.band
        at = np.broadcast_to(shares[:, None], low.shape)
        lows, highs = (
            [_highest(heights[:, output], at[:, output]) for output in range(low.shape[1])] for heights in (-low, high)
        )
        return -max(lows), max(highs)

    def _ends(self, place: int) -> tuple[float, float]:
        """Return the outermost values of a number beyond which few of the records are, as far as shares of them are known."""
        grid = self.grids[place]
        if self.shares is None:
            return float(grid[0]), float(grid[-1])
        along = self.shares if self.shares.ndim == 1 else self.shares.sum(axis=1 - place)
        first, last = (int(np.searchsorted(np.cumsum(one), LEFT_OUT * one.sum(), side="right")) for one in (along, along[::-1]))
        last = len(grid) - 1 - last
        if first >= last:  # nearly all at one value
            first, last = max(last - 1, 0), min(first + 1, len(grid) - 1)
        return float(grid[first]), float(grid[last])

    def _curves(self, ax: Any) -> None:
        for output, colour in self._outputs():
            values = self._identified(self.values, output)
            ax.plot(self.grids[0], values, color=colour, linewidth=1.6, label=plain(self.labels[output]))
            for band in filter(None, (self.band, self.inner)):
                ends = (self._identified(end, output) for end in band)
                ax.fill_between(self.grids[0], *ends, color=colour, alpha=0.25, linewidth=0)
        ax.axhline(0, color=DARK, linewidth=0.6, zorder=0)
        ax.update_datalim(np.column_stack([self.grids[0], np.zeros(len(self.grids[0]))]))  # where the curve has gaps, too
        ax.margins(x=0.02)
        self._mark(ax.xaxis, 0)
        if self.missing is not None:
            self._beside(ax, self.missing)

    def _beside(self, ax: Any, missing: np.ndarray) -> None:
        """Draw the values at a missing cell in a narrow axes to the right, on the same vertical scale."""
        beside = ax.inset_axes([1.03, 0, 0.1, 1], sharey=ax)
        for output, colour in self._outputs():
            place, (value, low, high) = output - (len(self.labels) - 1) / 2, missing[:, output]
            beside.plot([place], [value], "o", color=colour, markersize=4)
            beside.vlines([place], [low], [high], color=colour, linewidth=1.2)
        beside.axhline(0, color=DARK, linewidth=0.6, zorder=0)
        if self.share_missing <= LEFT_OUT:
            _limit(beside, np.zeros(2), (0.0, 0.0))
        beside.set_xlim(-len(self.labels) / 2 - 0.5, len(self.labels) / 2 + 0.5)
        beside.set_xticks([0], ["missing"], fontsize="small")
        beside.tick_params(left=False, labelleft=False)
        beside.spines[["top", "right", "left"]].set_visible(False)

    def _bars(self, ax: Any) -> None:
        width = 0.8 / len(self.labels)
        for output, colour in self._outputs():
            places = np.arange(len(self.values)) + width * (output - (len(self.labels) - 1) / 2)
            values = self._identified(self.values, output)
            ax.bar(places, values, width, color=colour, alpha=0.55, label=plain(self.labels[output]))
            for band, line in ((self.band, 1.2), (self.inner, 3.0)):
                if band is not None:
                    ax.vlines(places, *(self._identified(end, output) for end in band), color=DARK, linewidth=line)
        self._unidentified(ax)
        ax.axhline(0, color=DARK, linewidth=0.6)
        ax.set_xlim(-0.6, len(self.values) - 0.4)
        self._mark(ax.xaxis, 0)

    def _unidentified(self, ax: Any) -> None:
        """Say of a category that has no bar that noise hides it; without a word it would look like an effect of 0."""
        known = np.ones(len(self.values), dtype=bool) if self.band is None else np.isfinite(self.band[0]).any(axis=1)
        for place in np.flatnonzero(~known) if known.any() else ():  # `draw` says it of a whole panel
            at = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "top", "rotation": 90}
            ax.text(place, 0.98, "not identified", fontsize="x-small", **at)

    def _heat_map(self, ax: Any) -> None:
        grids = list(zip(self.grids, self.scales, strict=True))
        places = [np.arange(len(grid)) if scale == "category" else grid for grid, scale in grids]
        (x_edges, across), (y_edges, along) = (_cells(*grid) for grid in grids)
        heights = np.abs(self.values[:, :, 0])
        largest = _highest(heights.ravel(), None if self.shares is None else self.shares.ravel()) or 1.0
        colours = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
        image = ax.pcolormesh(x_edges, y_edges, along @ self.values[:, :, 0].T @ across.T, shading="flat", **colours)
        if self.band is not None:
            unclear = ((self.band[0] <= 0) & (self.band[1] >= 0))[:, :, 0]
            dots = (mesh[unclear] for mesh in np.meshgrid(*places, indexing="ij"))
            size = min(3.0, max(1.0, 36 / max(map(len, places))))  # many dots would hide the colours
            edge = {"markeredgecolor": "white", "markeredgewidth": size / 6}  # to be seen on any colour
            ax.plot(*dots, "o", color=DARK, markersize=size, clip_on=False, in_layout=False, **edge)
        for axis, place in ((ax.xaxis, 0), (ax.yaxis, 1)):
            self._mark(axis, place)
            if self.scales[place] != "category":
                ax.set(**{f"{axis.axis_name}lim": self._ends(place)})
        ax.set(xlabel=plain(self.names[0]), ylabel=plain(self.names[1]))
        ax.figure.colorbar(image, ax=ax, extend="both" if heights.max() > largest else "neither")

    def _mark(self, axis: Any, place: int) -> None:
        """Label an axis with categories or a few numbers; a logarithmic axis is ``sign(x) * log(1 + abs(x))``, as in schemas."""
        if self.scales[place] == "category":
            names = [plain(name) for name in shortened(self.grids[place])]
            every = -(-len(names) // (ROOM if place else MANY))
            ticks = range(0, len(names), every)
            axis.set_ticks(ticks, names[::every], rotation=90 if place == 0 and self.n_upright else 0, fontsize="small")
        elif self.scales[place] == "log":
            axis.axes.set(**{f"{axis.axis_name}scale": "symlog"})
            if len(powers := _powers_of_ten(*self._ends(place))) > 1:
                axis.set_ticks(powers)
        elif self.scales[place] == "date":
            dates = importlib.import_module("matplotlib.dates")
            locator = dates.AutoDateLocator(minticks=2, maxticks=DATES)
            axis.set_major_locator(locator)
            axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        else:
            axis.get_major_locator().set_params(nbins=TICKS - (self.is_pair and place == 0))

    def _identified(self, values: np.ndarray, output: int) -> np.ndarray:
        """Return the values of an output, NaN where its band is infinite, because they say nothing there."""
        shown = values[:, output]
        return shown if self.band is None else np.where(np.isfinite(self.band[0][:, output]), shown, np.nan)

    def _outputs(self) -> Iterator[tuple[int, str]]:
        return ((output, COLOURS[output % len(COLOURS)]) for output in range(len(self.labels)))


def _highest(heights: np.ndarray, shares: np.ndarray | None) -> float:
    """Return the largest finite height, without those at the top that have few of the records together; 0 if there is none."""
    known = np.isfinite(heights)
    heights, shares = heights[known], None if shares is None else shares[known]
    if not heights.size or shares is None:
        return float(heights.max(initial=0.0))
    order = np.argsort(-heights, kind="stable")
    above = np.cumsum(shares[order])
    return float(heights[order][np.searchsorted(above, LEFT_OUT * above[-1], side="right")])


def _limit(ax: Any, known: np.ndarray, limits: tuple[float, float]) -> None:
    """Let an axes that scales itself hold 0, the limits and what it held before; the rest is clipped."""
    ax.dataLim.intervaly = (min(known[0], limits[0], 0.0), max(known[1], limits[1], 0.0))
    ax.autoscale_view(scalex=False)  # matplotlib may have scaled the axes already, before


def _end(ax: Any, known: Any, ends: tuple[float, float]) -> None:
    """Let the horizontal axis hold the ends of a curve and what it held before; the rest is clipped."""
    ax.dataLim.intervalx = (min(known[0], ends[0]), max(known[1], ends[1]))
    ax.autoscale_view(scaley=False)


def panels_of(function: Any, classes: Sequence[Any] | None, order: str, shares: np.ndarray | None = None) -> list[Panel]:
    """Return the panel of a function; a pair has one panel per class.

    Parameters
    ----------
    function : ShapeFunction
        A function of one column or of two.
    classes : sequence or None
        Labels of the last axis of the values, where they have one.
    order : {"given", "value"}
        Order of the bars of a category.
    shares : ndarray or None, default=None
        Released shares of the records at the points of the grid, the second column fastest, and last that of missing cells.

    Returns
    -------
    list of Panel
        The panels to draw.
    """
    is_pair = len(function.names) == 2
    grids, scales = tuple(function.grid) if is_pair else (function.grid,), tuple(function.scales)
    far = [scale == "date" and np.abs(grid).max() > FAR * DAY for grid, scale in zip(grids, scales, strict=True)]
    scales = tuple("linear" if is_far else scale for is_far, scale in zip(far, scales, strict=True))
    grids = tuple(grid / DAY if scale == "date" else grid for grid, scale in zip(grids, scales, strict=True))
    shape = (*(len(grid) for grid in grids), -1)
    values = np.reshape(function.values, shape)
    band = None if function.lower is None else (np.reshape(function.lower, shape), np.reshape(function.upper, shape))
    inner = None if function.noise is None else (np.reshape(function.noise[0], shape), np.reshape(function.noise[1], shape))
    title, labels = " \N{MULTIPLICATION SIGN} ".join(function.names), tuple(map(str, classes or ("",)))
    missing = None if function.missing is None else np.reshape(function.missing, (3, -1))
    share_missing = 1.0 if shares is None or missing is None else float(shares[-1])
    if missing is not None and scales == ("category",):  # a number that has two values
        grids, values = (np.append(np.asarray(grids[0], dtype=object), "missing"),), np.vstack([values, missing[:1]])
        band = None if band is None else (np.vstack([band[0], missing[1:2]]), np.vstack([band[1], missing[2:]]))
    at = None if shares is None else np.reshape(shares[: math.prod(values.shape[:-1])], values.shape[:-1])
    panel = Panel(title, grids, scales, tuple(function.names), values, band, labels, missing, inner, at, share_missing)
    if not is_pair:
        panel = _clearest(panel) if panel.scales == ("category",) and len(panel.values) > MANY else panel
        return [_by_value(panel) if order == "value" and panel.scales == ("category",) else panel]
    return [_of_output(panel, output) for output in range(len(labels))]


def shortened(categories: Iterable[Any]) -> list[str]:
    """Return the names of categories; names that are too long are cut off.

    Parameters
    ----------
    categories : sequence
        Names.

    Returns
    -------
    list of str
        At most 22 characters each.
    """
    return [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in map(_name, categories)]


def _name(category: Any) -> str:
    return f"{category:.15g}" if isinstance(category, float) else str(category)  # 0 and 1, not 0.0 and 1.0


def plain(text: Any) -> str:
    """Return text that matplotlib does not interpret as mathematics.

    Parameters
    ----------
    text : object
        Name of a column, a category or a class.

    Returns
    -------
    str
        The text with escaped dollar signs.
    """
    return str(text).replace("$", r"\$")


def _cells(grid: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of the cells of a heat map along a column, and the weights of the grid values in each cell.

    A number has several cells between two knots, because its function is linear between them (on a logarithmic scale, if the
    column has one).
    """
    n_places = len(grid)
    if scale == "category":
        return np.arange(n_places + 1) - 0.5, np.eye(n_places)
    n_cells = PARTS * (n_places - 1)
    scaled = np.sign(grid) * np.log1p(np.abs(grid)) if scale == "log" else grid
    edges = np.interp(np.arange(n_cells + 1) / PARTS, np.arange(n_places), scaled)
    edges = np.sign(edges) * np.expm1(np.abs(edges)) if scale == "log" else edges
    edges[::PARTS] = grid
    middles = (np.arange(n_cells) + 0.5) / PARTS
    return edges, np.maximum(0.0, 1.0 - np.abs(middles[:, None] - np.arange(n_places)))


def _powers_of_ten(low: float, high: float) -> list[float]:
    """Return 0 and a few powers of ten of either sign within limits, far enough from each other to label them."""
    longest = math.floor(math.log10(max(-low, high, 1.0)))
    step = max(-(-longest // (2 if low < 0 < high else 3)), 1)
    powers = [10.0**exponent for exponent in range(step, longest + 1, step)]
    return [place for place in (*(-power for power in reversed(powers)), 0.0, *powers) if low <= place <= high]


def _clearest(panel: Panel) -> Panel:
    """Keep the categories whose bands are farthest from 0, in their order."""
    ends = (panel.values,) * 2 if panel.band is None else panel.band
    place = np.sort(np.argsort(-np.maximum(ends[0], -ends[1]).max(axis=1), kind="stable")[:KEPT])
    title = f"{panel.title} ({KEPT} of {len(panel.values)})"
    return replace(_at(panel, place), title=title)


def _by_value(panel: Panel) -> Panel:
    return _at(panel, np.argsort(panel.values.mean(axis=1), kind="stable"))


def _at(panel: Panel, place: np.ndarray) -> Panel:
    """Select categories of a panel, in a new order."""
    bands = {name: getattr(panel, name) for name in ("band", "inner")}
    bands = {name: None if band is None else (band[0][place], band[1][place]) for name, band in bands.items()}
    shares = None if panel.shares is None else panel.shares[place]
    return replace(panel, grids=(np.asarray(panel.grids[0])[place],), values=panel.values[place], shares=shares, **bands)


def _of_output(panel: Panel, output: int) -> Panel:
    """Return the heat map of one output of a pair."""
    if len(panel.labels) == 1:
        return panel
    one, label = slice(output, output + 1), panel.labels[output]
    band = None if panel.band is None else (panel.band[0][..., one], panel.band[1][..., one])
    return replace(panel, title=f"{panel.title}: {label}", values=panel.values[..., one], band=band, labels=(label,))

"""Release counts: single ones, histograms and tables of categories."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._plots import axes_or_new, draw_bins
from skdp._validation import shown
from skdp.preprocessing._categories import category_names
from skdp.preprocessing._column_kinds import OTHER
from skdp.privacy.budget import Budget
from skdp.privacy.errors import silently
from skdp.privacy.queries import JointHistogram, SingleCount
from skdp.privacy.queries._base import WithParameters
from skdp.stats._bounds import Bounds, Pair, checked_bounds
from skdp.stats._intervals import quantile
from skdp.stats._plan import Ask, Statement, StatisticsPlan, as_text, column_of
from skdp.stats._reading import Reading
from skdp.stats._statistic import Statistic, StatisticTable

MOST_CELLS = 2**22  # of a grid of bins: more need more memory than the records
# Epsilon below which counts are projected on those from 0 on that add up to the public number of records; from it on they are cut
# at 0, as the projection spreads the noise over empty cells. From a study of a prototype on adult, california and
# bank (total variation of 20 and 200 bins); it was not measured again.
PROJECTED = 1.0
NO_BOUNDS = Bounds(())  # nothing to learn
MOST_SHOWN = 60  # counts that are printed; a choice
HIDDEN = 0.25  # noise of a count over the number of records from which on a warning says so. A choice.


@dataclass(frozen=True, eq=False, repr=False)
class Counts(StatisticTable):
    """Hold counts in the cells of a grid that were released with noise, and their intervals.

    Parameters
    ----------
    name : str
        What they are, such as "histogram".
    value : ndarray
        Number of records in each cell, with noise, from 0 on; of the shape of the grid.
    axes : tuple of ndarray
        Edges of the bins, or names of the categories, of each side of the grid.
    low, high : ndarray
        Ends of the intervals of the counts, each for the noise and the sampling of the records at ``confidence``.
    confidence : float
        Coverage of the intervals.
    noise_std : float
        Standard deviation of the noise of a count, before counts are cut at 0.
    privacy_report : PrivacyReport
        Guarantee, releases and noise.
    elsewhere : float or None
        Number of records in no cell: those outside the edges, and missing ones; None if records have weights.
    """

    axes: tuple[np.ndarray, ...]  # type: ignore[assignment]
    noise_std: float  # type: ignore[assignment]
    elsewhere: float | None

    @property
    def counts(self) -> np.ndarray:
        """The counts, as ``value``."""
        return self.value

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the intervals."""
        return self.low, self.high

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the counts and the edges of each side, as NumPy returns them."""
        return iter((self.counts, *self.axes))

    @property
    def _labels(self) -> tuple[list[str], ...]:
        return tuple(_labels(axis, size) for axis, size in zip(self.axes, self.counts.shape, strict=True))

    @property
    def _head(self) -> str:
        return "count"

    def plot(self) -> Any:
        """Draw the counts of one or two sides, those of one side with bands for noise and sampling.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        if len(self.axes) > 2:
            raise ValueError(f"The counts have {len(self.axes)} sides; expected one or two for a plot. intervals has them all.")
        ax, labels = axes_or_new(None, (7.0, 4.0)), self._labels
        if len(labels) == 1:
            draw_bins(ax, self.axes[0], self.value, self.low, self.high)
            ax.set_ylabel("count")
        else:
            ax.set_xticks(range(len(labels[1])), labels[1], rotation=90)
            ax.set_yticks(range(len(labels[0])), labels[0])
            ax.figure.colorbar(ax.imshow(self.value, aspect="auto"), label="count")
        return ax.figure

    def __str__(self) -> str:
        """Return the shape, the noise and the cost, and the counts where there are few of one or two sides."""
        shape = " x ".join(map(str, self.counts.shape))
        head = f"{self.name} of {shape} cells, noise {self.noise_std:.3g} each ({self.cost_in_words})"
        if len(self.axes) > 2 or self.counts.size > MOST_SHOWN:
            return head
        axes = self._labels
        titles = [["", *axes[1]]] if len(axes) > 1 else []
        table = self.counts.reshape(len(axes[0]), -1)
        rows = [*titles, *([label, *(f"{count:.0f}" for count in row)] for label, row in zip(axes[0], table, strict=True))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([head, *lines, *([] if self.elsewhere is None else [f"in no cell: {self.elsewhere:.0f}"])])


def _labels(axis: np.ndarray, size: int) -> list[str]:
    if len(axis) == size:
        return [str(name) for name in axis.tolist()]
    return [f"{low:.6g} to {high:.6g}" for low, high in pairwise(axis.tolist())]


@dataclass(frozen=True, eq=False)
class Present(WithParameters):
    """Map cells to 0, and missing ones, or also zeros, to 1.

    Parameters
    ----------
    nonzero : bool, default=False
        Whether zeros do not count.
    """

    nonzero: bool = False

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return 0 for each cell that counts."""
        return (np.isnan(cells) | (self.nonzero & (cells == 0))).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Edges(WithParameters):
    """Map cells to bins between sorted edges; the last one includes its upper edge, as NumPy's does.

    Parameters
    ----------
    edges : ndarray
        Public edges.
    """

    edges: np.ndarray

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return the bin of each cell, the number of bins for one that is in none."""
        size = self.edges.size - 1
        bins = np.searchsorted(self.edges, cells, side="right") - 1
        bins = np.where(cells == self.edges[-1], size - 1, bins)
        return np.where(np.isnan(cells) | (bins < 0), size, np.minimum(bins, size))


@dataclass(frozen=True, eq=False)
class Codes(WithParameters):
    """Map places of listed categories to themselves, and all others to none.

    Parameters
    ----------
    size : int
        Number of categories.
    """

    size: int

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return the bin of each cell."""
        return np.where(cells < self.size, cells, self.size).astype(np.intp)  # NaN is not below


@dataclass(frozen=True, eq=False)
class Side:
    """Hold one side of a grid: bins with public edges, a number of bins between bounds, or listed categories.

    Parameters
    ----------
    name : str
        The column.
    size : int
        Number of bins.
    bounds : tuple of float or None
        Bounds of even bins; None to learn them.
    labels : ndarray or None, default=None
        Public edges, or categories.
    """

    name: str
    size: int
    bounds: Pair | None
    labels: np.ndarray | None = None

    def axis(self, pair: Pair | None) -> np.ndarray:
        """Return edges or categories."""
        return self.labels if self.labels is not None else np.linspace(*(pair or (-1.0, 1.0)), self.size + 1)

    def bins(self, pair: Pair | None) -> Callable[[np.ndarray], np.ndarray]:
        """Return the map of cells to bins."""
        return Codes(self.size) if self.labels is not None and len(self.labels) == self.size else Edges(self.axis(pair))


@silently
def counted(function: str, nonzero: bool, x: Any, *, random_state: Any = None, **given: Any) -> Statistic:
    """Release the number of cells that are there, or of those that are also not zero."""
    with column_of(x, random_state, kind="number" if nonzero else "any", **given) as (table, budget, confidence):
        del x, given
        query = SingleCount((0,), (Present(nonzero),), (1,), table.of_weights)
        plan = _plan(function, [(query, 1.0)], table, budget, {"column": table.names[0], "confidence": confidence})
        found, report = plan.run(table, lambda ask: ask(query) / query.unit, random_state)
    ends = (found, *_interval(found, plan, query, confidence))
    factor = table.max_sample_weight or 1.0
    value, low, high = (float(factor * min(max(end[0], 0.0), table.n_samples)) for end in ends)
    return Statistic(function, value, (low, high), confidence, factor * plan.stds[0] / query.unit, report)


@silently
def in_grid(function: str, x: Any, sides: Callable[[Reading], list[Side]], *, random_state: Any = None, **given: Any) -> Counts:
    """Release the counts in the cells of a grid.

    Parameters
    ----------
    function : str
        Name of the function.
    x : object
        The table.
    sides : callable
        Returns the sides of the grid from what is public.
    random_state : object, default=None
        Seed of the noise in tests.
    **given : Any
        What all functions take.

    Returns
    -------
    Counts
        The counts.
    """
    with column_of(x, random_state, several=True, **given) as (table, budget, confidence):
        del x, given
        of_grid = [replace(side, bounds=table.bounds_of(side.name, side.bounds)) for side in sides(table)]
        if math.prod(side.size for side in of_grid) > MOST_CELLS:
            raise ValueError(f"The grid has more than {MOST_CELLS} cells; expected fewer bins.")
        bounds = Bounds(tuple(side.bounds for side in of_grid), table.of_weights)

        def query(pairs: Sequence[Pair | None]) -> JointHistogram:
            bins = tuple(side.bins(pair) for side, pair in zip(of_grid, pairs, strict=True))
            places = tuple(table.names.index(side.name) for side in of_grid)
            return JointHistogram(places, bins, tuple(side.size for side in of_grid), table.of_weights, True)

        def release(ask: Ask) -> tuple[np.ndarray, list[np.ndarray]]:
            pairs = bounds.learned(ask, plan)
            return ask(query(pairs)) / prototype.unit, [side.axis(pair) for side, pair in zip(of_grid, pairs, strict=True)]

        prototype = query([(-1.0, 1.0)] * len(of_grid))
        facts = {"columns": [side.name for side in of_grid], "cells": [side.size for side in of_grid], "confidence": confidence}
        pairs = [*bounds.queries, (prototype, 1 - bounds.share)]
        plan = _plan(function, pairs, table, budget, {**facts, "bounds": bounds.given}, bounds)
        (found, axes), report = plan.run(table, release, random_state)
    low, high = _interval(found, plan, prototype, confidence)
    factor, shape = table.max_sample_weight or 1.0, tuple(side.size for side in of_grid)
    if table.weighted or budget.epsilon >= PROJECTED:
        found = np.maximum(found, 0.0)
    else:
        found = projected(found, table.n_samples)
    counts, low, high = (factor * np.clip(ends, 0.0, table.n_samples)[:-1].reshape(shape) for ends in (found, low, high))
    elsewhere = None if table.weighted else float(found[-1])
    std = factor * plan.stds[-1] / prototype.unit
    return Counts(function, counts, tuple(axes), low, high, confidence, std, report, elsewhere)


def side_of(name: str, bins: Any, bounds: Any) -> Side:
    """Return a side with a number of bins or with edges; raise TypeError or ValueError for others."""
    if isinstance(bins, Integral) and not isinstance(bins, bool):
        if not 1 <= int(bins) <= MOST_CELLS:
            raise ValueError(f"bins={shown(bins)}; expected a number from 1 to {MOST_CELLS}, or the edges of bins.")
        return Side(name, int(bins), checked_bounds(bounds, "range"))
    edges = np.asarray(bins, dtype=np.float64) if isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, str) else None
    if edges is None or edges.ndim != 1 or edges.size < 2 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise ValueError(f"bins={shown(bins)}; expected a number of bins, or increasing edges from public knowledge.")
    return Side(name, edges.size - 1, (float(edges[0]), float(edges[-1])), edges)


def listed(categories: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the categories of each column; raise TypeError or ValueError for lists that are not there."""
    if not isinstance(categories, Mapping) or not all(name in categories and len(categories[name]) for name in names):
        raise ValueError(
            f"categories={shown(categories)}; expected the categories of {list(names)} from public knowledge, such as "
            f"{{{names[0]!r}: ['no', 'yes'], ...}}: those that occur in the records would leak."
        )
    return {name: np.array(category_names(categories[name], OTHER), dtype=object) for name in names}


def projected(counts: np.ndarray, total: float) -> np.ndarray:
    """Return the nearest counts from 0 on that add up to a total.

    Parameters
    ----------
    counts : ndarray
        Noisy counts.
    total : float
        Their public sum.

    Returns
    -------
    ndarray
        Of the same shape.
    """
    falling = np.sort(counts)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    return np.maximum(counts - shifts[np.flatnonzero(falling > shifts)[-1]], 0.0)


def _plan(
    function: str,
    pairs: list[tuple[Any, float]],
    table: Reading,
    budget: Budget,
    facts: Mapping[str, Any],
    bounds: Bounds = NO_BOUNDS,
) -> StatisticsPlan:
    statement = Statement(
        function, "counts" + bounds.in_words, "a record is in one cell, so that all counts share epsilon", as_text(facts)
    )
    queries, shares = zip(*pairs, strict=True)
    plan = StatisticsPlan.of_queries(queries, shares, True, budget, n_samples=table.n_samples, statement=statement)
    std = plan.stds[-1] / queries[-1].unit
    hidden = bounds.hidden(plan) or ("all counts" if std > HIDDEN * table.n_samples else None)
    return replace(plan, statement=replace(statement, noise_size=f"standard deviation {std:.3g} of a count", hidden=hidden))


def _interval(found: np.ndarray, plan: StatisticsPlan, query: JointHistogram, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals of counts: binomial, with noise.

    The spread of a count at an end is that at the end, as Wilson's interval has it, without its exact solution: a count of which
    noise leaves c is taken for one of c and the square of the normal quantile.
    """
    n, place = plan.n_samples, len(plan.schedule.entries) - 1
    noise = plan.integer_noise(plan.schedule.entries[place][1], plan.changes[place]) if plan.budget.private else None
    square = float(ndtri(0.5 - confidence / 2)) ** 2
    likely = np.clip(found, 0.0, n)
    shares = np.clip((likely + square / 2) / (n + square), 0.0, 1.0)
    spreads = np.sqrt(n * shares * (1 - shares))
    known = np.unique(np.round(np.log(spreads + 1.0), 1))  # quantiles at few spreads, between which they are linear
    reaches = np.interp(
        spreads, np.expm1(known), [quantile(confidence, spread, [(1 / query.unit, noise)]) for spread in np.expm1(known)]
    )
    return likely - reaches, likely + reaches

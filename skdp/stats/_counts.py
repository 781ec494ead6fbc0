"""Release counts: single ones, histograms and tables of categories."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._validation import check_level, check_random_state, shown
from skdp.privacy.errors import silently
from skdp.privacy.queries import JointHistogram, SingleCount
from skdp.privacy.queries._base import WithParameters
from skdp.privacy.report.statement import PrivacyReport, PrivacySpent
from skdp.stats._intervals import quantile
from skdp.stats._numbers import checked_bounds
from skdp.stats._plan import Statement, StatisticsPlan, as_text, budget_of
from skdp.stats._reading import Reading, reading
from skdp.stats._statistic import Statistic

MOST_CELLS = 2**22  # of a grid of bins: more need more memory than the records
# Epsilon below which counts are projected on those from 0 on that add up to the public number of records; from it on they are cut
# at 0, as the projection spreads the noise over empty cells. Set on adult, california and bank (total variation of 20 and 200
# bins), with .1 and 3 on either side.
PROJECTED = 1.0


@dataclass(frozen=True, eq=False)
class Counts:
    """Hold counts in the cells of a grid that were released with noise, and their intervals.

    Parameters
    ----------
    name : str
        What they are, such as "histogram".
    counts : ndarray
        Number of records in each cell, with noise, from 0 on; of the shape of the grid.
    axes : tuple of ndarray
        Edges of the bins, or names of the categories, of each side of the grid.
    low, high : ndarray
        Ends of the intervals of the counts, each for the noise and the sampling of the records at ``confidence``.
    elsewhere : float or None
        Number of records in no cell: those outside the edges, and missing ones; None if records have weights.
    confidence : float
        Coverage of the intervals.
    noise_std : float
        Standard deviation of the noise of a count, before counts are cut at 0.
    privacy_report : PrivacyReport
        Guarantee, releases and noise.
    """

    name: str
    counts: np.ndarray
    axes: tuple[np.ndarray, ...]
    low: np.ndarray
    high: np.ndarray
    elsewhere: float | None
    confidence: float
    noise_std: float
    privacy_report: PrivacyReport

    @property
    def value(self) -> np.ndarray:
        """The counts."""
        return self.counts

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the intervals."""
        return self.low, self.high

    @property
    def privacy_spent(self) -> PrivacySpent:
        """Spent epsilon and delta."""
        return self.privacy_report.spent

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the counts and the edges of each side, as NumPy returns them."""
        return iter((self.counts, *self.axes))

    def to_frame(self) -> Any:
        """Return the counts of one or two sides as a data frame of pandas, with bins or categories as labels.

        Returns
        -------
        DataFrame
            The counts, of one column for one side.
        """
        from skdp._files._suffixes import imported

        if len(self.axes) > 2:
            raise ValueError(f"The counts have {len(self.axes)} sides; expected one or two for a data frame.")
        labels = [_labels(axis, size) for axis, size in zip(self.axes, self.counts.shape, strict=True)]
        table = self.counts.reshape(len(labels[0]), -1)
        return imported("pandas").DataFrame(table, index=labels[0], columns=labels[1] if len(labels) > 1 else ["count"])

    def __str__(self) -> str:
        """Return a line of the shape, the noise and the cost."""
        shape = " x ".join(map(str, self.counts.shape))
        spent = f"epsilon {self.privacy_spent.epsilon:.4g}" if self.privacy_report.private else "not private"
        return f"{self.name} of {shape} cells, noise {self.noise_std:.3g} each ({spent})"

    def __repr__(self) -> str:
        """Return the text of `print`."""
        return str(self)


def _labels(axis: np.ndarray, size: int) -> list[str]:
    if len(axis) == size:
        return [str(name) for name in axis.tolist()]
    return [f"{low:.6g} to {high:.6g}" for low, high in zip(axis[:-1], axis[1:], strict=True)]


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
    """Map codes of listed categories to bins, and NaN to none.

    Parameters
    ----------
    size : int
        Number of categories.
    """

    size: int

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return the bin of each cell."""
        return np.where(np.isnan(cells), self.size, cells).astype(np.intp)


@dataclass(frozen=True, eq=False)
class WithRest(JointHistogram):
    """Count the records in each cell of a grid, and those that are in none, so that all counts add up."""

    @property
    def size(self) -> int:
        """Number of cells, and one."""
        return math.prod(self.sizes) + 1


@silently
def counted(
    function: str, nonzero: bool, x: Any, *, epsilon: float, adjacency: str = "replace_one", random_state: Any = None, **given: Any
) -> Statistic:
    """Release the number of cells that are there, or also not zero."""
    with _read(given, x, random_state) as (table, confidence):
        del x
        weighted = table.weighted or table.unit == "person"
        query = SingleCount((0,), (Present(nonzero),), (1,), weighted)
        budget = budget_of(table, epsilon, 0.0, adjacency)
        facts = as_text({"column": table.names[0], "confidence": confidence})
        statement = Statement(function, "the number of cells that count", "a count alone is pure", facts)
        plan = StatisticsPlan.of_queries([query], [1.0], True, budget, n_samples=table.n_samples, statement=statement)
        plan = _with_noise(plan, query)
        found, report = plan.run(table, lambda ask: ask(query) / query.unit, random_state)
    factor, std = table.max_sample_weight or 1.0, plan.stds[0] / query.unit
    low, high = _interval(found, plan, query, confidence)
    value, low, high = (float(factor * np.clip(ends[0], 0.0, table.n_samples)) for ends in (found, low, high))
    return Statistic(function, value, (low, high), confidence, factor * std, report)

"""Release covariances and correlations of columns, of the records in which no cell is missing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._validation import shown
from skdp.privacy.budget import Budget
from skdp.privacy.errors import silently
from skdp.privacy.noise.laplace import IntegerLaplace
from skdp.privacy.noise.staircase import IntegerStaircase
from skdp.privacy.queries import HalfVectorMoments, ProductMoments
from skdp.privacy.queries.clipped_moments import UNIT
from skdp.stats._bounds import Bounds, Pair, checked_bounds
from skdp.stats._intervals import quantile
from skdp.stats._numbers import FEW
from skdp.stats._plan import Ask, Statement, StatisticsPlan, as_text, column_of
from skdp.stats._reading import Reading
from skdp.stats._statistic import StatisticTable

# Standard deviations of its noise from which on a variance, or a number of records, is divided by. A choice of the design.
DETERMINED = 3.0
# Variance, in half of the range squared, of which a warning says that noise hides it: that of a normal column whose bounds are 4
# standard deviations from its middle. A choice. In 20 calls each at 16 settings of 2 or 5 such columns, 94 to 100 % of the
# correlations were not determined where it warns, and 0 to 19 % elsewhere.
USUAL = 1 / 16


@dataclass(frozen=True)
class Moments:
    """Hold what the noisy sums tell of the covariances, in units of half the range of each column.

    Parameters
    ----------
    sums : ndarray of shape (m, m)
        Noisy sum of ``v v^T``, with v = (1, u).
    noise : float
        Standard deviation of the noise of its entries off the diagonal.
    on_diagonal : float
        How many times that is on it.
    law : IntegerLaplace, IntegerStaircase or None
        Noise of an integer; None if it is normal, or if there is none.
    known : float or None
        Number of complete records, or of persons, where it is public.
    n_samples : int
        Public number of records.
    weighted : bool
        Whether they have weights.
    """

    sums: np.ndarray
    noise: float
    on_diagonal: float
    law: IntegerLaplace | IntegerStaircase | None
    known: float | None
    n_samples: int
    weighted: bool

    @cached_property
    def number(self) -> float:
        """Number of complete records, with noise."""
        return max(float(self.sums[0, 0]), 1.0) if self.known is None else self.known

    @property
    def noise_of_number(self) -> float:
        """Standard deviation of its noise."""
        return self.on_diagonal * self.noise if self.known is None else 0.0

    @cached_property
    def counted(self) -> bool:
        """Whether the number is no noise alone."""
        return self.number > DETERMINED * self.noise_of_number

    @cached_property
    def means(self) -> np.ndarray:
        """Means of the columns."""
        return np.asarray(np.clip(self.sums[0, 1:] / self.number, -1.0, 1.0))

    @cached_property
    def raw(self) -> np.ndarray:
        """Covariances with noise, without bias, which may belong to no table."""
        return self._of_number(self.number)

    @cached_property
    def projected(self) -> np.ndarray:
        """The nearest covariances to those with noise that are positive semidefinite; few missing cells count as none."""
        few = not self.weighted and self.n_samples - self.number < FEW * self.noise_of_number
        values, vectors = np.linalg.eigh(self._of_number(float(self.n_samples) if few else self.number))
        roots = vectors * np.sqrt(np.maximum(values, 0.0))
        found = roots @ roots.T
        return np.asarray((found + found.T) / 2)

    def _of_number(self, number: float) -> np.ndarray:
        mean = self.sums[0, 1:] / number
        # The square of the noise in a mean is known in the mean.
        excess = np.eye(mean.size) * (self.noise / number) ** 2
        return np.asarray(self.sums[1:, 1:] / number - np.outer(mean, mean) + excess)

    @cached_property
    def factors(self) -> np.ndarray:
        """Factors of the noise of four sums in each covariance, of shape (4, d, d): its own, of both columns, of the number."""
        own = np.where(np.eye(self.means.size), self.on_diagonal, 1.0)
        rows, columns = np.broadcast_arrays(self.means[:, None], self.means)
        of_number = (rows * columns - self.raw) * self.on_diagonal * (self.known is None)
        same = np.eye(self.means.size, dtype=bool)  # where both columns are one
        parts = [own, np.where(same, 2.0, 1.0) * rows, np.where(same, 0.0, columns), of_number]
        return np.stack(parts) / self.number

    @cached_property
    def stds(self) -> np.ndarray:
        """Standard deviation of the noise of each covariance."""
        return np.asarray(np.hypot(self.noise * np.linalg.norm(self.factors, axis=0), self._of_squares))

    @property
    def _of_squares(self) -> float:
        """Standard deviation of the product of the noises of two means."""
        return math.sqrt(2.0) * (self.noise / self.number) ** 2

    def sampling(self, z: float) -> np.ndarray:
        """Return a bound on the standard deviations that are due to sampling, with what records that were not seen may add.

        The mean of :math:`x^2 y^2`, for distances x and y from the means, is at most that of x^2 times the largest y^2.
        """
        largest = np.square(1 + np.abs(self.means))
        variances = np.clip(np.diag(self.raw) + np.diag(self.stds), 0.0, 1.0)
        one = np.outer(largest, variances)
        fourth = np.minimum(one, one.T) + z**2 / 2 * np.outer(largest, largest) / self.number
        return np.asarray(np.sqrt(np.maximum(fourth - self.raw**2, 0.0) / self.number))

    def reaches(self, level: float) -> np.ndarray:
        """Return how far covariances with noise are from the true ones, at a level."""
        normal = np.hypot(self.sampling(float(-ndtri(0.5 - level / 2))), self._of_squares)
        if self.law is None:
            return np.asarray(-ndtri(0.5 - level / 2) * np.hypot(normal, self.noise * np.linalg.norm(self.factors, axis=0)))
        found = np.empty_like(normal)
        for row, column in np.ndindex(found.shape):
            if row <= column:
                noises = [(float(factor) / UNIT, self.law) for factor in self.factors[:, row, column]]
                found[row, column] = found[column, row] = quantile(level, float(normal[row, column]), noises)
        return found

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return both ends of the interval of each covariance; none is surely larger than 1, and no variance below 0."""
        least = np.where(np.eye(self.means.size), 0.0, -1.0)
        if not self.counted:
            return least, np.ones_like(least)
        reaches = self.reaches(level)
        return np.clip(self.raw - reaches, least, 1.0), np.clip(self.raw + reaches, least, 1.0)


@dataclass(frozen=True)
class Covariances:
    """Plan the covariances of columns, between bounds that are public or learned, and release them.

    Parameters
    ----------
    table : Reading
        Public facts of the columns.
    budget : Budget
        What is spent.
    confidence : float
        Coverage of each interval.
    learning : Bounds
        What is released to learn bounds.
    """

    table: Reading
    budget: Budget
    confidence: float
    learning: Bounds

    title = "the sums of all products of two columns, of the columns and of the complete records"

    def query(self, pairs: Sequence[Pair], laplace: bool) -> HalfVectorMoments:
        """Return the query between bounds."""
        return (ProductMoments if laplace else HalfVectorMoments)(tuple(range(len(pairs))), np.array(pairs))

    @cached_property
    def plan(self) -> StatisticsPlan:
        """The releases: with Laplace noise, without a delta, or with Gaussian noise where that is smaller."""
        plans = [self._planned(laplace) for laplace in ((True, False) if self.budget.delta else (True,))]
        plan = min(plans, key=lambda plan: plan.stds[-1])
        size = plan.stds[-1] / UNIT / self.table.n_samples
        on_diagonal = size / self.query([(-1.0, 1.0)] * len(self.table.names), plan.laplace).diagonal
        hidden = self.learning.hidden(plan) or ("the covariances" if DETERMINED * on_diagonal > USUAL else None)
        words = f"standard deviation {size:.3g} of a quarter of the product of both ranges, in a mean product"
        reason = f"{'Laplace' if plan.laplace else 'Gaussian'} noise is smaller" if self.budget.delta else "no delta is spent"
        return replace(plan, statement=replace(plan.statement, reason=reason, noise_size=words, hidden=hidden))

    def _planned(self, laplace: bool) -> StatisticsPlan:
        given = [pair or "learned" for pair in self.learning.given]
        facts = {"columns": list(self.table.names), "bounds": given, "confidence": self.confidence}
        query = self.query([(-1.0, 1.0)] * len(given), laplace)
        pairs = [*self.learning.queries, (query, 1 - self.learning.share)]
        return StatisticsPlan.of_queries(
            [query for query, _ in pairs],
            [share for _, share in pairs],
            laplace,
            self.budget,
            n_samples=self.table.n_samples,
            statement=Statement("cov", self.title + self.learning.in_words, "", as_text(facts)),
        )

    def release(self, ask: Ask) -> tuple[Moments, list[Pair]]:
        """Make the releases; return what they tell, and the bounds."""
        plan, pairs = self.plan, self.learning.learned(ask, self.plan)
        query = self.query(pairs, plan.laplace)
        sums = query.matrix(ask(query))
        whole = {*self.table.names} <= self.table.complete and not self.table.weighted
        law = plan.integer_noise(plan.schedule.entries[-1][1], plan.changes[-1]) if plan.laplace and self.budget.private else None
        known, noise = float(self.table.n_samples) if whole else None, plan.stds[-1] / UNIT
        return Moments(sums, noise, 1 / query.diagonal, law, known, plan.n_samples, self.table.weighted), pairs


@silently
def released(name: str, x: Any, *, bounds: Any = None, random_state: Any = None, **given: Any) -> StatisticTable:
    """Read columns, charge and release their covariances, or their correlations."""
    with column_of(x, random_state, several=True, **given) as (table, budget, confidence):
        del x, given
        if len(table.names) < 2:
            raise ValueError("x has one column; expected at least two of them.")
        limits = tuple(map(table.bounds_of, table.names, bounds_of(bounds, table.names)))
        asked = Covariances(table, budget, confidence, Bounds(limits, table.of_weights))
        plan = replace(asked.plan, statement=replace(asked.plan.statement, function=name))
        (moments, pairs), report = plan.run(table, asked.release, random_state)
    named = [(column, *pair) for column, pair, own in zip(table.names, pairs, limits, strict=True) if own is None]
    learned = [f"{column} [{low:.6g}, {high:.6g}]" for column, low, high in named]
    of = " of values clipped to " + ", ".join(learned) if learned else ""
    halves = np.array([high / 2 - low / 2 for low, high in pairs])
    value, low, high, std = (correlations if name == "corr" else covariances)(moments, confidence, halves)
    return StatisticTable(name + of, value, (table.names,) * 2, low, high, confidence, std, report)


def covariances(moments: Moments, confidence: float, halves: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return covariances in the units of the columns, both ends of their intervals, and the noise."""
    low, high = moments.interval(confidence)
    value = moments.projected if moments.counted else np.full_like(low, np.nan)
    unit = np.outer(halves, halves)
    return value * unit, np.fmin(low, value) * unit, np.fmax(high, value) * unit, moments.stds * unit


def correlations(moments: Moments, confidence: float, halves: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return correlations, both ends of their intervals, and the noise; NaN where it hides a variance.

    Each end is the furthest that a covariance and both variances allow, each within an interval of a third of the error.
    """
    low, high = moments.interval(1 - (1 - confidence) / 3)
    variances, same = np.diag(moments.raw), np.eye(halves.size, dtype=bool)
    hidden = (variances < DETERMINED * np.diag(moments.stds)) | (not moments.counted) | (variances <= 0)
    unclear = (hidden[:, None] | hidden) & ~same
    with np.errstate(all="ignore"):
        smallest, largest = (np.sqrt(np.outer(np.diag(ends), np.diag(ends))) for ends in (low, high))
        roots = np.sqrt(np.diag(moments.projected))
        value = np.clip(moments.projected / np.outer(roots, roots), -1.0, 1.0)
        below, above = low / np.where(low < 0, smallest, largest), high / np.where(high < 0, largest, smallest)
        unit = np.where(hidden, np.nan, variances)
        relative = (np.diag(moments.stds) / unit) ** 2
        stds = np.sqrt(moments.stds**2 / np.outer(unit, unit) + value**2 / 4 * np.add.outer(relative, relative))
    value = np.where(same, 1.0, np.where(unclear, np.nan, value))
    ends = [np.clip(np.nan_to_num(part, nan=end), -1.0, 1.0) for part, end in ((below, -1.0), (above, 1.0))]
    below, above = (np.where(unclear, end, part) for part, end in zip(ends, (-1.0, 1.0), strict=True))
    return value, np.where(same, 1.0, np.fmin(below, value)), np.fmax(above, value), np.where(same, 0.0, stds)


def bounds_of(bounds: Any, names: Sequence[str]) -> tuple[Pair | None, ...]:
    """Return public bounds of each column, None for those to learn; raise TypeError or ValueError for others."""
    if bounds is None:
        return (None,) * len(names)
    if isinstance(bounds, Mapping):
        if not {*bounds} <= {*names}:
            raise ValueError(f"bounds={shown(bounds)}; expected the names of columns that are read: {list(names)}.")
        bounds = [bounds.get(name) for name in names]
    elif isinstance(bounds, (Sequence, np.ndarray)) and len(bounds) == 2 and all(isinstance(bound, Real) for bound in bounds):
        bounds = [bounds] * len(names)
    if not isinstance(bounds, (Sequence, np.ndarray)) or isinstance(bounds, str) or len(bounds) != len(names):
        raise ValueError(
            f"bounds={shown(bounds)}; expected (low, high) for all columns, one pair for each of {len(names)}, or a dict by name."
        )
    return tuple(checked_bounds(pair) for pair in bounds)

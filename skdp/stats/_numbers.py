"""Release single numbers of a column: mean, sum, variance and standard deviation."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from scipy.special import ndtri

from skdp.privacy.budget import Budget
from skdp.privacy.errors import silently
from skdp.privacy.noise.laplace import IntegerLaplace
from skdp.privacy.noise.staircase import IntegerStaircase
from skdp.privacy.queries import ClippedMoments, Deviations, Query, WeightedMoments
from skdp.privacy.queries.clipped_moments import UNIT
from skdp.privacy.queries.deviations import CHANGE, MOST
from skdp.stats._bounds import Bounds, checked_bounds
from skdp.stats._intervals import quantile, ratio_interval
from skdp.stats._plan import Ask, Statement, StatisticsPlan, as_text, column_of
from skdp.stats._reading import Reading
from skdp.stats._statistic import Statistic

# Share of epsilon of a mean's spread beside staircase noise; Laplace noise gives it at no cost, and is taken where it has less.
SPREAD = 0.1
# Shares of epsilon of a variance: a rough mean with the number of missing cells, the variance, and the fourth power for the
# interval. Of n epsilon from which on squares about the rough mean are better than the variance itself where
# (1 + |centre|)^2 + CENTRED / (n epsilon) is below 4, or 3 under zero_out: the error of the centre is squared. Computed.
VARIANCE, CENTRED = (0.1, 0.85, 0.05), 1080.0
# Standard deviations of its noise up to which missing cells count as none in the value, not in the interval. A choice.
FEW = 3.0
# Noise of a mean, over half of the bounds, from which on a warning says that noise hides the statistic. A choice.
HIDDEN = 0.25


class Estimate(NamedTuple):
    """A value with its interval and the standard deviation of its noise."""

    value: float
    low: float
    high: float
    noise_std: float


@dataclass(frozen=True)
class Number(ABC):
    """Base of the statistics of a column, between bounds that are public or learned.

    Parameters
    ----------
    table : Reading
        Public facts of the column.
    budget : Budget
        What is spent.
    confidence : float
        Coverage of the interval.
    bounds : tuple of float or None
        Public bounds; None to learn them.
    """

    table: Reading
    budget: Budget
    confidence: float
    bounds: tuple[float, float] | None

    title: ClassVar[str]
    reason: ClassVar[str]

    @abstractmethod
    def queries(self, low: float, high: float) -> list[tuple[Query, float]]:
        """Return prototypes of the queries between bounds, and their shares."""

    @abstractmethod
    def estimate(self, ask: Ask, low: float, high: float) -> Estimate:
        """Ask for these releases, and return the statistic."""

    @property
    def staircases(self) -> tuple[int, ...]:
        """Places of the releases with staircase noise."""
        return ()

    @cached_property
    def learning(self) -> Bounds:
        """What is released to learn bounds."""
        return Bounds((self.bounds,), self.table.of_weights)

    @cached_property
    def missing(self) -> bool:
        """Whether cells can be missing, by the type of the column."""
        return not {*self.table.names} <= self.table.complete

    @cached_property
    def plan(self) -> StatisticsPlan:
        """The releases."""
        low, high = self.bounds or (-1.0, 1.0)
        own, before = self.queries(low, high), self.learning.queries
        pairs = [*before, *((query, share * (1 - self.learning.share)) for query, share in own)]
        plan = StatisticsPlan.of_queries(
            [query for query, _ in pairs],
            [share for _, share in pairs],
            True,
            self.budget,
            [place + len(before) for place in self.staircases],
            n_samples=self.table.n_samples,
            statement=self.statement,
        )
        hidden = self.learning.hidden(plan) or plan.statement.hidden
        return replace(plan, statement=replace(plan.statement, noise_size=self._noise_size(plan), hidden=hidden))

    @property
    def statement(self) -> Statement:
        """What the report says."""
        bounds = "learned" if self.bounds is None else self.bounds
        facts = {"column": self.table.names[0], "bounds": bounds, "confidence": self.confidence}
        name = type(self).__name__.lower()
        hidden = None
        if self.budget.private and 4 / (self.budget.epsilon * self.table.n_samples) > HIDDEN:
            hidden = f"the {name}"
        return Statement(name, self.title + self.learning.in_words, self.reason, as_text(facts), hidden=hidden)

    def _noise_size(self, plan: StatisticsPlan) -> str:
        share = plan.stds[len(self.learning.queries)] / UNIT / 2 / self.table.n_samples
        return f"standard deviation {share:.3g} of the range between the bounds, in a mean of all cells"

    def noise(self, query: Query, place: int) -> IntegerLaplace | IntegerStaircase | None:
        """Return the noise in the answer to a query, one of this statistic by its place."""
        if not self.budget.private:
            return None
        release = self.plan.schedule.entries[len(self.learning.queries) + place][1]
        return self.plan.integer_noise(release, query.l1_sensitivity(self.budget.adjacency))

    def release(self, ask: Ask) -> tuple[Estimate, tuple[float, float]]:
        """Ask for all releases; return the statistic and its bounds."""
        bounds = self.learning.learned(ask, self.plan)[0]
        return self.estimate(ask, *bounds), bounds


class Moments(NamedTuple):
    """What sums of the cells, of their spread and of missing ones tell, in units of half the range."""

    mean: float
    variance: float  # an upper one, for the noise in it and for records that were not seen
    number: float  # of the cells that are there
    raw: tuple[float, float]  # noisy sum, and number of the cells that are there


class Mean(Number):
    """The mean: sums of the cells, of their spread and of missing cells, which cost together what the first one costs alone."""

    title = "the sum of the clipped cells, their spread and the number of missing cells"
    reason = "these cost together what the sum alone costs"
    fill: ClassVar[float | None] = None

    @cached_property
    def counted(self) -> bool:
        """Whether the number of cells has noise."""
        return self.table.weighted or (self.missing and self.fill is None)

    @cached_property
    def staircases(self) -> tuple[int, ...]:
        """The sum alone, if its noise is smaller in this way, and no cell can be missing."""
        if self.counted or not self.budget.private:
            return ()
        epsilon = self.budget.epsilon * (1 - self.learning.share)
        alone = IntegerStaircase.calibrated(sensitivity=UNIT, scale=1 / (epsilon * (1 - SPREAD)))
        return (0,) if alone.std < IntegerLaplace.calibrated(sensitivity=UNIT, scale=1 / epsilon).std else ()

    def queries(self, low: float, high: float) -> list[tuple[Query, float]]:
        """Return one query, or two if the first has staircase noise."""
        joint = self._moments(low, high)
        return [(replace(joint, spread=False), 1 - SPREAD), (joint, SPREAD)] if self.staircases else [(joint, 1.0)]

    def estimate(self, ask: Ask, low: float, high: float) -> Estimate:
        """Return the ratio of two sums, with Fieller's interval."""
        found, noise = self.moments(ask, low, high)
        u, n, half, std = found.mean, found.number, high / 2 - low / 2, 0.0 if noise is None else noise.std / UNIT
        of_number = u * self.counted
        noises = [(1 / UNIT, noise), (of_number / UNIT, noise)]
        variance, spread = n * found.variance, math.sqrt(n * found.variance + std**2 * (1 + of_number**2))
        factor = quantile(self.confidence, math.sqrt(variance), noises) / spread if spread else 0.0
        ends = ratio_interval(*found.raw, variance, (std**2, std**2 * self.counted), factor)
        value, least, most = (low + half * (1 + place) for place in (u, min(ends[0], u), max(ends[1], u)))
        return Estimate(value, least, most, half * std * math.hypot(1, of_number) / n)

    def moments(self, ask: Ask, low: float, high: float) -> tuple[Moments, Any]:
        """Ask for the releases; return what they tell, and the noise of the sum."""
        queries = [query for query, _ in self.queries(low, high)]
        *alone, answer = [ask(query) / UNIT for query in queries]
        noise = self.noise(queries[0], 0)
        total = float(alone[0][0] if alone else answer[0])
        return self._told(total, *answer[1:].tolist(), std_of((1 / UNIT, self.noise(queries[-1], len(alone))))), noise

    def _told(self, total: float, spread: float, *rest: float) -> Moments:
        *counted, std = rest
        n = float(self.table.n_samples)
        number = counted[0] if self.table.weighted else n - sum(counted)
        taken = n if not self.table.weighted and n - number < FEW * std else max(number, 1.0)
        u = min(max(total / taken, -1.0), 1.0)
        variance = 1 - 2 * spread / taken - u**2 + 2 * math.hypot(1, u) * std / taken
        unseen = float(ndtri(0.5 - self.confidence / 2)) ** 2 / 2 * (1 + abs(u)) ** 2 / taken
        return Moments(u, min(max(variance, 0.0), 1 - u**2) + unseen, taken, (total, number))

    def _moments(self, low: float, high: float) -> ClippedMoments:
        kind = WeightedMoments if self.table.weighted else ClippedMoments
        return kind(low, high, missing=self.counted, fill=self.fill if self.missing else None)


class Sum(Mean):
    """The sum: that of cells of which missing ones count as 0; of weighted ones, it follows from the sums of the mean."""

    title = "the sum of the clipped cells and their spread"
    reason = "the spread costs nothing beside the sum"
    fill = 0.0

    @cached_property
    def counted(self) -> bool:
        """Whether the number of cells has noise."""
        return self.table.weighted

    def estimate(self, ask: Ask, low: float, high: float) -> Estimate:
        """Return the sum in the unit of the cells."""
        found, noise = self.moments(ask, low, high)
        low, high = self._moments(low, high).ends
        middle, half, (total, number) = low / 2 + high / 2, high / 2 - low / 2, found.raw
        noises = [(half / UNIT, noise), (middle * self.counted / UNIT, noise)]
        # The weight of all records varies, too: by no more than if it were a number of records of weight 1.
        of_number = middle**2 * number * (1 - number / self.table.n_samples) if self.counted else 0.0
        spread = math.sqrt(found.number * found.variance) * half + math.sqrt(max(of_number, 0.0))
        reach, value = quantile(self.confidence, spread, noises), middle * number + half * total
        return times(self.table.max_sample_weight or 1.0, Estimate(value, value - reach, value + reach, std_of(*noises)))


class Var(Number):
    """The variance: a rough mean, then squares about it or the variance itself, then fourth powers for the interval."""

    title = "a rough mean, the variance or the squares about the rough mean, and their fourth powers"
    reason = "squares about a mean that is not near a bound have less noise than the variance itself"

    @cached_property
    def staircases(self) -> tuple[int, ...]:
        """The variance."""
        return (1,)

    @cached_property
    def rough(self) -> Mean:
        """How the first release is read."""
        return Rough(self.table, self.budget, self.confidence, self.bounds)

    def queries(self, low: float, high: float) -> list[tuple[Query, float]]:
        """Return three queries."""
        prototypes = (self.rough._moments(low, high), Deviations(low, high), Deviations(low, high, power=4))
        return list(zip(prototypes, VARIANCE, strict=True))

    def estimate(self, ask: Ask, low: float, high: float) -> Estimate:
        """Return the variance."""
        first = self.rough._moments(low, high)
        noise = self.noise(first, 0)
        found = self.rough._told(*(ask(first) / UNIT).tolist(), std_of((1 / UNIT, noise)))
        n, total, centre = found.number, self.table.n_samples, found.mean
        squared, reach = (std_of((1 / UNIT, noise)) / n) ** 2 * (1 + centre**2), 1 + abs(centre)
        of_squares = reach**2 + CENTRED / (total * self.budget.epsilon)
        of_variance = 3 if self.budget.adjacency == "zero_out" else 4
        about_mean = not self.table.weighted and total <= MOST and of_squares >= of_variance
        query = Deviations(low, high, centre, 2, about_mean, total)
        unit = 4 * (total - 1) / total if about_mean else reach**2
        factor = unit / CHANGE / n
        # The centre has noise: the squares about it are larger by its square, of which the mean is known.
        excess = squared * ((total - n) / total if about_mean else 1.0)
        value = factor * float(ask(query)[0]) - excess
        fourth = Deviations(low, high, centre, 4)
        of_fourth = reach**4 / CHANGE / n * float(ask(fourth)[0]) + std_of((reach**4 / CHANGE / n, self.noise(fourth, 2)))
        unseen = float(ndtri(0.5 - self.confidence / 2)) ** 2 / 2 * reach**4 / n
        value = min(max(value, 0.0), 1.0)
        sampling = max(min(of_fourth, reach**2 * found.variance) - value**2, 0.0) + unseen
        noises = [(factor, self.noise(query, 1))]
        away = quantile(self.confidence, math.sqrt(sampling / n + 5 * excess**2), noises)
        std = math.hypot(std_of(*noises), math.sqrt(5) * excess)
        return times((high / 2 - low / 2) ** 2, Estimate(value, max(value - away, 0.0), min(value + away, 1.0), std))


class Rough(Mean):
    """The mean of a variance, whose missing cells are counted wherever there may be some."""

    staircases = ()  # type: ignore[assignment]


class Std(Var):
    """The standard deviation: the root of the variance."""

    def estimate(self, ask: Ask, low: float, high: float) -> Estimate:
        """Return the root of the variance, with the difference of roots as standard deviation of its noise."""
        value, least, most, std = super().estimate(ask, low, high)
        return Estimate(math.sqrt(value), math.sqrt(least), math.sqrt(most), math.sqrt(value + std) - math.sqrt(value))


def times(factor: float, found: Estimate) -> Estimate:
    """Return an estimate in another unit."""
    return Estimate(*(factor * number for number in found))


def std_of(*noises: tuple[float, Any]) -> float:
    """Return the standard deviation of independent noises, each times a factor; 0 for None."""
    return math.hypot(*(factor * noise.std for factor, noise in noises if noise is not None))


@silently
def released(kind: type[Number], x: Any, *, bounds: Any = None, random_state: Any = None, **given: Any) -> Statistic:
    """Read a column, charge and release a statistic of it."""
    limits = checked_bounds(bounds)
    with column_of(x, random_state, **given) as (table, budget, confidence):
        del x, given
        limits = table.bounds_of(table.names[0], limits)
        number = kind(table, budget, confidence, limits)
        (found, (low, high)), report = number.plan.run(table, number.release, random_state)
    of = "" if limits else f" of values clipped to [{low:.6g}, {high:.6g}]"
    return Statistic(kind.__name__.lower() + of, found.value, (found.low, found.high), confidence, found.noise_std, report)

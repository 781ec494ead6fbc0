"""Fit counts and positive amounts with a log link: least squares on a logarithm, then releases that set level and slope."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import poisson
from sklearn.isotonic import isotonic_regression

from skdp._extra_facts import ExtraFacts
from skdp.estimators._plan import Plan
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ExposedHistogram, ExposedLinkSums, LinkSums, Query, ScoreOctaves, TargetHistogram
from skdp.privacy.queries.linked_sums import N_BINS, N_OCTAVES, PRODUCTS
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers import SolverResult

LINKS = ("identity", "log", "log_count")

# Most constants were set on bike, bank (campaign, duration), adult (hours), california and eight made-up tables, and looked at on
# claims of pg15training and beMTPL97, house prices, air pollution, airbnb and insurance charges; see docs/defaults.md.
# Signal mu n / k below which the link is the identity: level and slope would be noise.
LEAST_SIGNAL = 150.0
# Shares of the squared budget: of the octaves of y, and of the releases after the fit, clip((AFTER / signal)**2, LEAST, MOST),
# which the octaves of scores share with the sums.
OF_TARGETS, AFTER, LEAST_AFTER, MOST_AFTER, OF_SCORES = 0.03, 120.0, 0.08, 0.35, 0.2
# Offset c of log(y + c): this part of the mean, and at least half a count, which makes the logarithm of rare counts linear.
OF_MEAN, HALF = 0.1, 0.5
OCTAVES_OF_AMOUNTS, MOST_EXPONENT = 14, 60  # octaves below the top, all of them for counts; largest exponent of an end
MIDDLE = 0.72  # of an octave of amounts, over its upper end
SURE, FAINT = 3.0, 2.0  # deviations of noise below which octaves of y count as empty in the mean, and in the clip
IN_TAIL = 0.15  # share of the records at each end of the scores, where a bin that rises again is noise
# The clip of y makes (BIAS * bias)^2 + noise^2 least, is at least twice the mean, and its noise at most MOST_NOISE of the sum.
BIAS, MOST_NOISE = 3.0, 0.15
BEYOND = 0.02  # share of the records beyond the width of the scores
# Deviations of the priors: of the logarithm of the slope around what theory expects, and of the mean around that of the octaves.
PRIOR_OF_SLOPE, PRIOR_OF_MEAN = 0.25, 0.5
LEAST_WIDTH, N_MEANS, N_SLOPES = 1e-9, 4001, 601  # of scores, and of the grids on which mean and slope are found
STEEPEST = 5.0  # logarithm of the ratio of means a width apart
REACH = 1.25  # width up to which predictions follow the line
LEAST_EXPOSURE = 0.05  # mean of the exposures, over their bound
LONG_EXPOSURE = 0.97  # from this mean on, over their bound, nearly all count as the bound: a fit warns. A choice: months reach it
MOST_EXACT = 1e3  # mean of Poisson numbers up to which sums over them are exact
LEAST_MEAN = 0.02  # mean of an identity link that is bent, at least, over the top of the range


@dataclass(frozen=True)
class Octaves:
    """Ranges of targets that end at powers of 2; the first one has all targets below them.

    Parameters
    ----------
    top : float
        Largest target.
    counts : bool
        Whether targets are whole numbers.
    """

    top: float
    counts: bool

    @property
    def exponents(self) -> np.ndarray:
        """Exponents of the upper ends."""
        last = min(max(math.frexp(self.top)[1], 1 if self.counts else -MOST_EXPONENT), MOST_EXPONENT)
        return np.arange(1 if self.counts else last - OCTAVES_OF_AMOUNTS, last + 1)

    @property
    def ends(self) -> np.ndarray:
        """Lower ends of all but the first."""
        return 2.0 ** (self.exponents - 1) - HALF * self.counts

    @property
    def largest(self) -> np.ndarray:
        """Largest target of each."""
        return np.append(0.0, np.minimum(2.0**self.exponents - self.counts, self.top))

    @property
    def middles(self) -> np.ndarray:
        """Middle of each."""
        upper = 2.0**self.exponents
        return np.append(0.0, (1.5 * upper - 1) / 2 if self.counts else MIDDLE * upper)


@dataclass(frozen=True, eq=False)
class Spread:
    """How targets spread, as released.

    Parameters
    ----------
    octaves : Octaves
        The ranges.
    numbers : ndarray
        Noisy numbers of records in them.
    noise : float
        Standard deviation of the noise of each.
    n_samples : int
        Number of records.
    """

    octaves: Octaves
    numbers: np.ndarray
    noise: float
    n_samples: int

    @cached_property
    def positive(self) -> float:
        """Share of the records that are not in the first octave: of amounts, those that are not 0."""
        zeros = float(self.numbers[0])
        return max(1 - zeros / self.n_samples, FAINT * self.noise / self.n_samples, 1e-6) if zeros > SURE * self.noise else 1.0

    @cached_property
    def mean(self) -> float:
        """Rough mean: where noise hides all octaves, that of the records that are not in the first one, as if they were alike."""
        sure = np.where(self.numbers > SURE * self.noise, self.numbers, 0.0)
        middles = np.minimum(self.octaves.middles, self.octaves.top)
        if sure[1:].any():
            return float(sure @ middles / sure.sum())
        usual = 1.0 if self.octaves.counts else float(middles[1 + int(np.argmax(self.numbers[1:]))])
        return min(self.positive, 1.0) * usual

    def clip(self, noise: float) -> float:
        """Return the target at which larger ones are clipped, for the noise of a sum of targets in [0, 1]."""
        largest, middles = self.octaves.largest, self.octaves.middles
        mode = 1 + int(np.argmax(self.numbers[1:]))  # from there on, a larger number is noise
        falling = np.append(self.numbers[:mode], isotonic_regression(self.numbers[mode:], increasing=False))
        kept = np.where(falling > FAINT * self.noise, falling, 0.0)
        best, positive = (math.inf, self.octaves.top), 1.0 if self.octaves.counts else self.positive
        for end in largest[1:].tolist():
            quiet = best[0] == math.inf or noise * end <= MOST_NOISE * self.n_samples * self.mean
            if quiet and end >= min(2 * self.mean / positive, largest[-1]):
                bias = float(kept @ np.maximum(middles - end, 0.0))
                best = min(best, ((BIAS * bias) ** 2 + (noise * end) ** 2, end))
        return best[1]


@dataclass(frozen=True)
class LogTargets:
    """Map targets to logarithms, in the unit in which their range is [-1, 1].

    Parameters
    ----------
    centre, unit : float
        A target t behind the oracle means ``centre + unit * t``.
    offset : float
        What is added before the logarithm.
    ends : tuple of float
        Range of the logarithm.
    rate : float or None, default=None
        Mean of counts per unit of exposure; None without exposures. The mean logarithm of Poisson counts of this rate is taken
        off, so that what is left has mean 0 for every exposure where no column matters.
    """

    centre: float
    unit: float
    offset: float
    ends: tuple[float, float]
    rate: float | None = None

    @property
    def half(self) -> float:
        """Half the width of the range, which rounding leaves none where its ends are close."""
        return max((self.ends[1] - self.ends[0]) / 2, LEAST_WIDTH)

    def __call__(self, targets: np.ndarray, exposure: np.ndarray | None) -> np.ndarray:
        """Return the logarithms."""
        logarithms = np.log(np.maximum(self.centre + self.unit * targets, 0.0) + self.offset)
        if self.rate is not None and exposure is not None:
            places = np.linspace(0.0, 1.0, 201) ** 2
            usual = _of_poisson(self.rate * places, lambda numbers: np.log(numbers + self.offset))
            logarithms -= np.interp(exposure, places, usual)
        return self._in_unit(logarithms)

    def logarithm(self, scaled: float) -> float:
        """Return the logarithm for one in the unit."""
        return sum(self.ends) / 2 + self.half * scaled

    def mean(self, spread: "Spread") -> float:
        """Return the mean, in the unit, for targets that spread as released."""
        if self.rate is not None:
            return float(self._in_unit(np.zeros(1))[0])
        sure = np.maximum(spread.numbers, 0.0) + math.ulp(0.0)
        logarithms = np.log(np.minimum(spread.octaves.middles, spread.octaves.top) + self.offset)
        return float(sure @ self._in_unit(logarithms) / sure.sum())

    def _in_unit(self, logarithms: np.ndarray) -> np.ndarray:
        return np.asarray((logarithms - sum(self.ends) / 2) / self.half)


@dataclass(frozen=True, kw_only=True)
class LogLink(ExtraFacts):
    """Hold what is public about a fit with a log link, and in a `SolverResult` what was released for it.

    Parameters
    ----------
    link : str
        "log" or "log_count".
    bounds : tuple of float
        Range of the targets.
    units : tuple of float
        Centre and unit of the targets behind the oracle.
    exposed : bool, default=False
        Whether records have exposures.
    exposure : float or None, default=None
        Mean exposure, if it is released for an identity link.
    targets : LogTargets or None, default=None
        The map of the targets.
    calibration : LogCalibration or None, default=None
        Level and slope.
    """

    link: str
    bounds: tuple[float, float]
    units: tuple[float, float]
    exposed: bool = False
    exposure: float | None = None
    targets: LogTargets | None = None
    calibration: "LogCalibration | None" = None

    @classmethod
    def planned(cls, signal: float, exposed: bool, **facts: Any) -> "LogLink":
        """Return the public facts, with the releases before and after the fit; an identity link has one for exposures."""
        planned, sums = cls(exposed=exposed, share=share_of_fit(signal), **facts), ExposedLinkSums if exposed else LinkSums
        if signal < LEAST_SIGNAL:
            front = Release(ExposedHistogram, Gaussian(), math.sqrt(2), 2)
            return replace(planned, front=front, share=1 - OF_TARGETS)
        parts = (ScoreOctaves, 1.0, N_OCTAVES, OF_SCORES), (sums, sums.clip_norm, sums.size, 1 - OF_SCORES)
        after = tuple((1, Release(query, Gaussian(1 / math.sqrt(part)), norm, size)) for query, norm, size, part in parts)
        query = (ExposedHistogram if exposed else TargetHistogram)(planned.octaves.ends)
        front = Release(type(query), Gaussian(), query.clip_norm, query.size)
        return replace(planned, front=front, back=Schedule(after))

    @property
    def of_front(self) -> float:
        return OF_TARGETS

    @property
    def counts(self) -> bool:
        """Whether targets are whole numbers."""
        return self.link == "log_count"

    @property
    def octaves(self) -> Octaves:
        """The ranges of the first release."""
        return Octaves(self.bounds[1], self.counts)


@dataclass(frozen=True)
class LogCalibration:
    """Level and slope of a log link, as released, by which logarithms of means follow from scores.

    Parameters
    ----------
    slope : float
        Factor of the coefficients of the fit of the logarithm.
    expected_slope : float
        The one that theory expects.
    slope_noise : float
        Standard deviation of the slope, over the slope.
    level : float
        Logarithm of the mean at the centre of the scores.
    level_noise : float
        Standard deviation of its noise, at most.
    centre : float
        The centre: the fitted logarithm there.
    mean : float
        Mean of the targets.
    mean_noise : float
        Standard deviation of its noise, over the mean.
    clip : float
        Larger targets count as this one in the mean.
    offset : float
        The logarithm was that of the target plus this.
    reach : float
        Largest distance of the logarithm of a prediction from the level.
    exposure : float or None, default=None
        Released mean of the exposures; None without any.
    """

    slope: float
    expected_slope: float
    slope_noise: float
    level: float
    level_noise: float
    centre: float
    mean: float
    mean_noise: float
    clip: float
    offset: float
    reach: float
    exposure: float | None = None

    def per(self, exposure: float) -> "LogCalibration":
        """Return the same for means per unit, from those for an exposure."""
        assert self.exposure is not None
        units = {"mean": self.mean / exposure, "exposure": self.exposure * exposure}
        return replace(self, level=self.level - math.log(exposure), **units)

    def scaled(self, model: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of a model of the fitted logarithm as one of the logarithm of the mean."""
        model = {**model, "coef_": self.slope * model["coef_"], "calibration_": self}
        model["intercept_"] = self._of_mean(model["intercept_"])
        if (trees := model.get("trees_")) is not None:
            model["trees_"] = trees.scaled(self.slope)
        if (noise := model.get("noise_")) is not None:
            common = noise.slope_variance + self.slope_noise**2
            model["noise_"] = replace(noise, unit=self.slope * noise.unit, slope_variance=common)
        if (uncertainty := model.get("uncertainty_")) is not None:
            unit, offset = self.slope * uncertainty.unit, self._of_mean(uncertainty.offset)
            model["uncertainty_"] = replace(uncertainty, unit=unit, offset=offset)
        return model

    def _of_mean(self, fitted: Any) -> Any:
        """Return the logarithm of the mean for a fitted logarithm."""
        return self.level + self.slope * (fitted - self.centre)

    def widened(self, ends: np.ndarray, level: float) -> np.ndarray:
        """Return intervals of logarithms, of shape (m, 2), that cover the noise of level and slope, too."""
        middles, halves = ends.mean(axis=1, keepdims=True), np.diff(ends, axis=1) / 2
        others = np.hypot(self.level_noise, self.slope_noise * (middles - self.level)) * float(ndtri((1 + level) / 2))
        return np.asarray(middles + np.hypot(halves, others) * [-1.0, 1.0])

    def means(self, logarithms: np.ndarray) -> np.ndarray:
        """Return the means for raw predictions, which are logarithms."""
        return np.exp(np.clip(logarithms, self.level - self.reach, self.level + self.reach))

    def __str__(self) -> str:
        return (
            f"mean {self.mean:.4g}, with noise of {self.mean_noise:.1%}, and {self.level_noise:.1%} in the middle; "
            f"slope {self.slope:.3g}, with {self.expected_slope:.3g} expected and noise of {self.slope_noise:.0%}; targets above "
            f"{self.clip:.4g} counted as {self.clip:.4g}; fitted was log(y + {self.offset:.3g})"
            + ("" if self.exposure is None else f"; means are per unit of exposure, of which the mean is {self.exposure:.3g}")
        )


@dataclass(frozen=True)
class BentLine:
    """Keep the predictions of an identity link positive.

    Parameters
    ----------
    mean : float
        Released mean of the targets, below which predictions p become ``mean * exp(p / mean - 1)``.
    exposure : float or None, default=None
        Released mean of the exposures, by which predictions are divided; None without any.
    """

    mean: float
    exposure: float | None = None

    def means(self, predictions: np.ndarray) -> np.ndarray:
        """Return the predictions, all of them positive."""
        low = np.clip(predictions / self.mean - 1, -1.0, 0.0)
        return np.asarray(np.where(predictions >= self.mean, predictions, self.mean * np.exp(low)) / (self.exposure or 1.0))

    def __str__(self) -> str:
        divided = "" if self.exposure is None else f", and all are divided by the released mean exposure {self.exposure:.3g}"
        return f"identity link; predictions p below the released mean m = {self.mean:.4g} are m exp(p / m - 1){divided}"


def share_of_fit(signal: float) -> float:
    """Return the share of the squared Gaussian-DP parameter that the releases of a log link leave; 1 below `LEAST_SIGNAL`."""
    return 1.0 if signal < LEAST_SIGNAL else 1 - OF_TARGETS - min(max((AFTER / signal) ** 2, LEAST_AFTER), MOST_AFTER)


def poisson_slope(mean: float, offset: float) -> float:
    """Return the derivative of log m in the mean of log(Y + c), for a Poisson number Y of mean m."""
    mean = max(mean, 1e-6)
    return 1 / (mean * float(_of_poisson(np.array([mean]), lambda numbers: np.log1p(1 / (numbers + offset)))[0]))


def amount_offset(mean: float, positive: float) -> float:
    """Return the offset for amounts of which a share is positive: with many zeros, about half of those that are not."""
    return mean * (OF_MEAN + HALF * (1 - positive) / positive)


def amount_slope(mean: float, positive: float, offset: float) -> float:
    """Return the derivative of log m in the mean of log(Y + c), for effects on amounts, or on how many are positive."""
    ratio = mean / positive / offset
    return 1 / (positive * ((1 - positive) * math.log1p(ratio) + positive * ratio / (1 + ratio)))


def _of_poisson(means: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the means of a function of Poisson numbers of some means; of large ones by even quantiles of the normal law."""
    top = min(float(means.max()), MOST_EXACT)
    numbers = np.arange(int(top + 12 * math.sqrt(top) + 20))
    exact = poisson.pmf(numbers, np.minimum(means, MOST_EXACT)[:, None]) @ function(numbers)
    usual = np.maximum(means[:, None] + np.sqrt(means)[:, None] * ndtri((np.arange(100) + 0.5) / 100), 0.0)
    return np.asarray(np.where(means > MOST_EXACT, function(usual).mean(axis=1), exact))


class Linking:
    """Makes the releases of a log link around those of a fit.

    Parameters
    ----------
    plan : Plan
        The fit.
    oracle : Oracle
        Answers.
    """

    def __init__(self, plan: Plan, oracle: Oracle) -> None:
        facts = plan.problem.around
        assert isinstance(facts, LogLink)
        self._facts, self._plan, self._oracle, self._n = facts, plan, oracle, plan.problem.n_samples

    def map_targets(self) -> None:
        """Release how targets spread, and map them to logarithms."""
        facts, octaves = self._facts, self._facts.octaves
        centre, unit = facts.units
        query = (ExposedHistogram if facts.exposed else TargetHistogram)((octaves.ends - centre) / unit)
        answer, noise = self._oracle.ask(query), self._noise_of(type(query))
        self._exposure = Exposure(self._n, 0.0) if not facts.exposed else Exposure(float(answer[-1]), noise).within(self._n)
        self._spread = Spread(octaves, answer[: octaves.ends.size + 1], noise, self._n)
        mean, (low, top) = self._spread.mean, facts.bounds
        offset = max(OF_MEAN * mean, HALF) if facts.counts else amount_offset(mean, self._spread.positive)
        self._slope = poisson_slope(mean, offset) if facts.counts else amount_slope(mean, self._spread.positive, offset)
        rate = self._n * mean / self._exposure.total if facts.exposed else None
        ends = (low, top) if rate is None else (0.0, top)
        ends = math.log(ends[0] + offset), math.log(ends[1] + offset)
        if rate is not None:
            ends = ends[0] - math.log(rate + offset), ends[1] - math.log(offset)
        self._targets = LogTargets(centre, unit, offset, ends, rate)
        self._oracle.map_targets(self._targets)

    def mean_exposure(self) -> float:
        """Release the mean exposure, for an identity link."""
        answer, noise = self._oracle.ask(ExposedHistogram(np.empty(0))), self._noise_of(ExposedHistogram)
        return Exposure(float(answer[-1]), noise).within(self._n).total / self._n

    def calibrated(self, result: SolverResult) -> SolverResult:
        """Release level and slope for the model that was fitted; return its result with both."""
        facts, spread, targets = self._facts, self._spread, self._targets
        kind = ExposedLinkSums if facts.exposed else LinkSums
        noise = self._noise_of(kind)
        weight, shift = getattr(result.extra, "weight", None), float(np.sum(getattr(result.extra, "offset", 0.0)))
        if weight is None:  # no trees have scored the records
            self._oracle.bin_rows(no_bins, result.coef)
            weight = 0.0
        centre, least = self._centre(result)
        width, clip = self._width(ScoreOctaves(weight, centre - shift), least), spread.clip(noise)
        zero, span = -facts.units[0] / facts.units[1], clip / facts.units[1]
        answer = self._oracle.ask(kind(weight, centre - shift, width, zero, span))
        total, product = clip * answer[N_BINS : N_BINS + 2] / [1.0, PRODUCTS]
        if facts.exposed:
            self._exposure = self._exposure.combined(Exposure(float(answer[-1]), noise)).within(self._n)
        n = self._exposure.total
        sums = Sums(answer[:N_BINS], float(total), float(product), noise, clip * noise, n)
        per_unit = 1 / (targets.half * width)
        level, level_noise, mean, slope, slope_noise = sums.level_and_slope(spread.mean * self._n / n, self._slope / per_unit)
        calibration = LogCalibration(
            slope * per_unit,
            self._slope,
            slope_noise / slope,
            level,
            level_noise,
            targets.logarithm(centre),
            mean,
            clip * noise / (n * mean),
            clip,
            targets.offset,
            REACH * slope,
            n / self._n if facts.exposed else None,
        )
        moments = None if result.moments is None else replace(result.moments, target=None)  # it is that of a logarithm
        return replace(result, moments=moments, around=replace(facts, targets=targets, calibration=calibration))

    def _noise_of(self, kind: type[Query]) -> float:
        """Return the standard deviation of the noise of an answer to a query of a known clip norm."""
        if not self._plan.problem.budget.private:
            return 0.0
        release = next(line for _, line in self._plan.schedule.entries if line.query is kind)
        assert release.clip_norm is not None
        return noise_multiplier(release, self._plan.scale, self._plan.problem.budget.adjacency) * release.clip_norm

    def _centre(self, result: SolverResult) -> tuple[float, float]:
        """Return the mean of the scores, that of the logarithms, and the least width of scores around it."""
        if result.moments is not None and result.moments.target is not None:
            return float(np.clip(result.moments.target, -1.0, 1.0)), 1.5 * result.moments.target_noise
        return float(np.clip(self._targets.mean(self._spread), -1.0, 1.0)), 0.0

    def _width(self, query: ScoreOctaves, least: float) -> float:
        """Release the distances of scores from their centre; return the one that few exceed."""
        counts, noise = self._oracle.ask(query), self._noise_of(ScoreOctaves)
        left = np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)
        few = left < np.maximum(BEYOND * self._n, 2 * noise * np.sqrt(np.arange(N_OCTAVES)[::-1]))
        return min(max(2.0 ** (int(np.argmax(few)) + 2 - N_OCTAVES), least, LEAST_WIDTH), 2.0)


@dataclass(frozen=True)
class Exposure:
    """Released sum of the exposures of all records.

    Parameters
    ----------
    total : float
        The noisy sum.
    noise : float
        Standard deviation of its noise.
    """

    total: float
    noise: float

    def within(self, n_samples: int) -> "Exposure":
        """Return the same, no larger than the number of records, and no smaller than a part of it."""
        return replace(self, total=min(max(self.total, LEAST_EXPOSURE * n_samples), float(n_samples)))

    def combined(self, other: "Exposure") -> "Exposure":
        """Return the mean of two sums, weighted by their precision."""
        one, two = other.noise**2, self.noise**2
        share = one / (one + two) if one + two else 0.5
        return Exposure(share * self.total + (1 - share) * other.total, math.sqrt(one * two / max(one + two, math.ulp(0.0))))


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the records from which level and slope follow.

    Parameters
    ----------
    bins : ndarray
        Noisy numbers of records by score.
    total, product : float
        Noisy sums of the targets, and of the targets times the scores, which are in [-1, 1].
    noise, of_total : float
        Standard deviations of the noise of a bin, and of ``total``.
    n_samples : float
        Number of records, or the sum of their exposures.
    """

    bins: np.ndarray
    total: float
    product: float
    noise: float
    of_total: float
    n_samples: float

    def level_and_slope(self, mean: float, expected: float) -> tuple[float, float, float, float, float]:
        """Return the logarithm of the mean at a score of 0, with its deviation, the mean, and the slope with its deviation.

        Predictions add up to the sum of the targets, by a bound on how far the mean is from that of the octaves. The slope has
        the largest posterior probability: its likelihood has the noise of all sums, and what sampling adds to it.

        Parameters
        ----------
        mean : float
            Rough mean of the targets.
        expected : float
            The slope that theory expects.
        """
        bins, scores, n = self._smooth(), (np.arange(N_BINS) + 0.5) / N_BINS * 2 - 1, self.n_samples
        of_total, means = max(self.of_total, 1e-9 * n * mean), mean * np.geomspace(0.02, 50.0, N_MEANS)
        posterior = -np.square(self.total - means * n) / (2 * of_total**2) - np.square(np.log(means / mean) / PRIOR_OF_MEAN) / 2
        mean = float(means[np.argmax(posterior)])
        slopes = np.minimum(expected * np.append(0.02, np.geomspace(0.05, 3.0, N_SLOPES)), STEEPEST)
        growth = np.exp(slopes[:, None] * scores)
        sums = growth @ bins
        levels, middles = mean * n / sums, growth * bins @ scores / sums
        apart = np.square(scores - middles[:, None])
        variances = of_total**2 * (PRODUCTS**-2 + middles**2)
        variances += np.square(levels * self.noise) * (np.square(growth) * apart * (bins > 0)).sum(axis=1)
        variances += levels * (growth * bins * apart).sum(axis=1) * max(1.0, mean / 2)
        posterior = -np.square(self.product - mean * n * middles) / (2 * variances)
        posterior -= np.square(np.log(slopes / expected) / PRIOR_OF_SLOPE) / 2
        best = int(np.argmax(posterior))
        weights = np.exp(posterior - posterior[best])
        spread = np.sqrt(weights @ np.square(slopes - slopes[best]) / weights.sum())
        of_bins = self.noise * math.sqrt(float(np.square(growth[best]) @ (bins > 0))) / float(sums[best])
        of_level = math.hypot(of_total / (n * mean), of_bins)
        return math.log(levels[best]), of_level, mean, float(slopes[best]), float(spread)

    def _smooth(self) -> np.ndarray:
        """Return the numbers of records by score, none of them negative, which fall towards both ends of the scores."""
        bins, below = self.bins.copy(), np.cumsum(np.maximum(self.bins, 0.0))
        low, high = np.searchsorted(below, np.array([IN_TAIL, 1 - IN_TAIL]) * below[-1])
        bins[high:] = isotonic_regression(bins[high:], increasing=False)
        bins[: low + 1] = isotonic_regression(bins[: low + 1], increasing=True)
        bins = np.maximum(bins, 0.0)
        return np.asarray(self.n_samples * bins / bins.sum() if bins.any() else np.full(N_BINS, self.n_samples / N_BINS))


def no_bins(rows: Any) -> np.ndarray:
    """Return bins of no columns."""
    return np.empty((0, rows.shape[0]), dtype=np.uint8)

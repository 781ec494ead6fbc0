"""Fit linear models of numbers with a kinked loss, on privately whitened features and rescaled targets: the untuned default."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skdp._validation import check_integer, check_number
from skdp.losses import Quantile
from skdp.privacy.queries import (
    LEAST_EXPONENT,
    DistanceHistogram,
    FeatureSums,
    ResidualSigns,
    SecondMoment,
    ShortenedGradient,
    TargetExponents,
    TargetHistogram,
)
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, SolverResult
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._standardization import mean_noise
from skdp.solvers.adaptive._adaptive_solver import MOST_FOR_HISTOGRAM, MOST_WHITENED, AdaptiveSolver, WhiteningSolver
from skdp.solvers.adaptive._shrinkage import posterior_factors
from skdp.solvers.adaptive._whitening import BINS, Centre, Frame, Shares, hopeless, release_frame, releases, shrunk_mean

# Where no source is named, the constants are choices, made with california and bike in view (docs/defaults.md, "Numbers, a loss
# with a kink").

# Numbers of ranges of the histograms that zoom in: many find targets that are close together, few have less noise in a window.
ZOOMS = 4096, 64, 4096, 64
# Numbers of ranges of the last histogram: in the window with half of the records, and on each side of it. More ranges tell
# quantiles more finely, with more noise.
INNER, OUTER = 16, 8
# Share of the budget of the last histogram, over that of each other: quantiles are read from it.
FOR_LAST = 3.0
# Shares of the records in a window: a window of most targets aims at MOST_SHARE and has at least LEAST_SHARE, the inner one has
# HALF_SHARE. A larger LEAST_SHARE keeps more of the tail, and fails on smaller tables.
MOST_SHARE, LEAST_SHARE, HALF_SHARE = 0.98, 0.8, 0.5
# Largest noise of the densest window that is accepted, as a share of the records; no window is found where it is larger.
FALSE_ALARM = 0.3
# Binary exponents added above the densest window, for the tail of the targets.
HEADROOM = 2
# Where no window is found, the exponents of windows of PRIOR_WINDOW are weighed with a prior that falls by a factor of e per FAR
# exponents away from 0: an unknown unit is more likely near 1.
PRIOR_WINDOW, FAR = 4, 20.0
# Interquartile range over the spread, which is 1.349 for a normal distribution; and the range from 5 % to 95 % over the spread,
# twice the 3.3 of a normal distribution, so that the tail sets the spread only where it is heavy.
QUARTILES, DECILES = 1.349, 6.6
# Largest ratio of the range of most targets to the spread: more than half of the targets may be equal, and their quartiles too.
WIDEST = 64.0
# Least length of a range and least spread: quotients of floats stay finite.
SHORTEST_RANGE = 2.0**-900


class Location(NamedTuple):
    """A quantile of the targets, and a spread, which is the standard deviation of normal targets."""

    centre: float
    spread: float
    median: float = 0.0


def target_releases(problem: Problem, share: float) -> list[tuple[int, Release]]:
    """Return the histograms as entries of the schedule.

    Parameters
    ----------
    problem : Problem
        Public facts.
    share : float
        Share of the squared Gaussian-DP parameter for all of them.

    Returns
    -------
    list of (int, Release)
        Without a public range of the targets a histogram of exponents and four of 4096 and 64 ranges, with one two of these;
        then one of 32.
    """
    bounded, part = _bounded(problem), _part(problem, share)
    lines = [
        *((1, Release(TargetHistogram, Gaussian(1 / math.sqrt(part)), 1.0, size + 2)) for size in _zooms(problem)),
        (1, Release(TargetHistogram, Gaussian(1 / math.sqrt(FOR_LAST * part)), 1.0, INNER + 2 * OUTER + 2)),
    ]
    exponents = Release(TargetExponents, Gaussian(1 / math.sqrt(part)), 1.0, TargetExponents().size)
    return lines if bounded else [(1, exponents), *lines]


def release_location(problem: Problem, share: float, level: float, ask: Ask) -> Location:
    """Ask for the histograms, and return centre and spread of the targets.

    Parameters
    ----------
    problem : Problem
        Public facts.
    share : float
        Share of the squared Gaussian-DP parameter, as in `target_releases`.
    level : float
        Level of the quantile that is the centre, in (0, 1).
    ask : callable
        Answers a query with noise.

    Returns
    -------
    Location
        Without intercept the centre is 0, and the spread is that around 0.
    """
    n = problem.n_samples
    noise = n * mean_noise(problem, TargetExponents(), _part(problem, share))
    least = max(LEAST_SHARE, 1 - min(level, 1 - level) / 2)  # so that the quantile is in the window
    if _bounded(problem):
        high = 1.0
    else:
        high = _largest(ask(TargetExponents()), noise, n, least)
    # Each histogram looks closer at two windows that the one before has found: that of most targets, and that of half of them.
    #   low                                                   high     most targets
    #    |.....................|||||||||||||||..................|      even ranges from low to high
    #                        inner[0]     inner[1]                     half of the targets
    low, inner = -high, (-high, high)
    for size in _zooms(problem):
        edges = np.linspace(low, high, size + 1)
        counts = ask(TargetHistogram(edges))[1:-1]
        inner = _window(counts, edges, noise, n, HALF_SHARE, HALF_SHARE) or (low, high)
        low, high = _window(counts, edges, noise, n, least, MOST_SHARE) or (low, high)
        low, high = min(low, inner[0]), max(high, inner[1])
    edges = _last_edges(low, high, *inner)
    return _location(_cumulated(ask(TargetHistogram(edges)), n), edges, level, bool(problem.intercept_scaling))


def _bounded(problem: Problem) -> bool:
    return problem.target_bound < math.inf


def _part(problem: Problem, share: float) -> float:
    """Return the share of each histogram but the last one."""
    return share / (len(_zooms(problem)) + (not _bounded(problem)) + FOR_LAST)


def _zooms(problem: Problem) -> tuple[int, ...]:
    return ZOOMS[: len(ZOOMS) // 2] if _bounded(problem) else ZOOMS


def _largest(counts: np.ndarray, noise: float, n: int, least: float) -> float:
    """Return a power of two above the absolute values of nearly all targets."""
    exponents, size = counts[1:], counts.size - 1  # counts[0] has the zeros, which say nothing about the unit
    some = max(n - max(float(counts[0]), 0.0), n / 10)
    found = _densest(exponents, noise, some, least, MOST_SHARE)
    if found is None:
        tops = LEAST_EXPONENT + PRIOR_WINDOW + np.arange(size - PRIOR_WINDOW + 1)
        gains = _sums(exponents, PRIOR_WINDOW) * (LEAST_SHARE * some / (PRIOR_WINDOW * max(noise, 1e-9) ** 2))
        top = int(tops[np.argmax(gains - np.abs(tops - 1) / FAR)])
    else:
        top = LEAST_EXPONENT + found[1]
    return math.ldexp(1.0, min(max(top + HEADROOM, -900), 510))


def _sums(counts: np.ndarray, width: int) -> np.ndarray:
    """Return the sums of all runs of ``width`` neighbours."""
    cumulated = np.concatenate([[0.0], np.cumsum(counts)])
    return cumulated[width:] - cumulated[:-width]


def _densest(counts: np.ndarray, noise: float, n: float, least: float, most: float) -> tuple[int, int] | None:
    """Return first place and end (exclusive) of the shortest window with a share of the records; None if noise hides it."""
    width = 1
    while width <= counts.size:
        # Noise of a share of `width` ranges; the largest of `size` such noises is about sqrt(2 log size) times it.
        blur = noise * math.sqrt(width) / n
        if blur * math.sqrt(2 * math.log(counts.size)) > FALSE_ALARM:
            return None
        sums = _sums(counts, width)
        place = int(np.argmax(sums))
        # A window is found if its share is beyond the wanted one, or as near to it as noise allows.
        if sums[place] >= n * max(min(1 - 4 * blur, most), least - blur):
            return place, place + width
        width *= 2
    return None


def _window(counts: np.ndarray, edges: np.ndarray, noise: float, n: int, least: float, most: float) -> tuple[float, float] | None:
    """Return the ends of the densest window, each moved outwards by a quarter of its width."""
    found = _densest(counts, noise, n, least, most)
    if found is None:
        return None
    # The window leaves out a small share of the records, most of which are near it.
    more = max((found[1] - found[0]) // 4, 1)
    return float(edges[max(found[0] - more, 0)]), float(edges[min(found[1] + more, counts.size)])


def _last_edges(low: float, high: float, inner_low: float, inner_high: float) -> np.ndarray:
    """Return the edges of even ranges in the inner window, and of geometrically growing ranges around it."""
    #
    #   low        inner_low                 inner_high        high
    #    |    |   |  | | | | | | | | | | | | | | |  |   |    |
    #     OUTER: growing     INNER: even       OUTER: growing
    width = max((inner_high - inner_low) / INNER, SHORTEST_RANGE)

    def outward(reach: float) -> np.ndarray:
        steps = np.expm1(np.linspace(0.0, math.log1p(max(reach, 0.0) / width), OUTER + 1)[1:])
        return width * steps

    return np.concatenate(
        [
            inner_low - outward(inner_low - low)[::-1],
            np.linspace(inner_low, inner_high, INNER + 1),
            inner_high + outward(high - inner_high),
        ]
    )


def _cumulated(counts: np.ndarray, n: int) -> np.ndarray:
    """Return the shares of the targets below each edge, by the counts below and above it; see `noisy_quantile`."""
    size = counts.size
    below = np.cumsum(counts)[:-1] / n
    above = 1 - (counts.sum() / n - below)
    number = np.arange(1, size)
    return np.clip(np.maximum.accumulate((below * (size - number) + above * number) / size), 0.0, 1.0)


def _location(shares: np.ndarray, edges: np.ndarray, level: float, centred: bool) -> Location:
    # Interpolate quantiles; `np.interp` needs shares that increase.
    rising = shares + np.linspace(0.0, 1e-9, shares.size)
    tail, low, high, other = (float(np.interp(at, rising, edges)) for at in (0.05, 0.25, 0.75, 0.95))
    resolution = max(float(np.diff(edges).min()), float(edges[-1] - edges[0]) / WIDEST, SHORTEST_RANGE)
    if not centred:
        return Location(0.0, max(abs(low), abs(high), abs(tail) / 2, abs(other) / 2, resolution) * 2 / QUARTILES)
    spread = max((high - low) / QUARTILES, (other - tail) / DECILES, resolution)
    return Location(float(np.interp(level, rising, edges)), spread, float(np.interp(0.5, rising, edges)))


# Where no source is named, the constants were chosen on california and bike, with about 20 configurations (docs/defaults.md).

# Default number of steps: WORK / (n * d), which counts the cells of X that all passes read together, within [FEWEST_STEPS,
# STEPS]; NOISELESS for epsilon=inf. More steps cost time, and hardly noise. MOST_STEPS is the largest number that is accepted.
STEPS, NOISELESS, FEWEST_STEPS, WORK, MOST_STEPS = 100, 1000, 30, 1e9, 10**7
# Longest first step, in units of the spread for a derivative of 1. A density of the residuals of 1 makes steps from 2 on
# unstable.
LARGEST_STEP = 1.5
# Least total step length for epsilon=inf, in the same unit: four times the default of `path`. A choice.
NOISELESS_PATH = 240.0
# Total step length from which on the noise does not matter for the start (WARM_LEAST) and for the weights of long rows (1).
# A choice: a larger value lets more tables start at the median.
EASY = 20.0
# Noise of a raw prediction that the steps may gather before contraction, in spreads of the targets. It sets the total step length
# where n is small: more travels further and carries more noise.
TRAVEL = 0.75
# Fraction of the steps that go towards the median, without noise and where noise sets the path. At epsilon 0.1 the mean share of
# the gain that was lost over six cells was .60 without such steps, .51 with half of them, and .40 with 85 %.
WARM_LEAST, WARM_MOST = 0.3, 0.8
# Norm of z from which on rows weigh less, over the usual norm, where noise sets the path. A smaller value has less noise and more
# bias: on bike (median, epsilon 0.1) .39 of the gain was lost with .6, and .46 with 1.
SHORTER = 0.6
# Least factor of the shrinkage of the slopes, and largest prior variance of all slopes together, in squared spreads. Choices:
# with a factor of 0 the intercept, which was fitted beside the slopes, would be wrong.
LEAST_KEPT, LARGEST_PRIOR = 0.05, 10.0
# Fraction of the steps that are averaged. A choice: step lengths fall to 0, so that the last iterates are close together.
TAIL = 0.25
# Density of the residuals over that of the targets, as if the model explained a third of the variance. A choice: a larger value
# takes steps to contract faster and shrinks the slopes less.
NARROWER = 1.25
# Share of the targets' histograms: TARGET_SCALE times the squared noise of a histogram, within [LEAST_FOR_TARGETS,
# MOST_FOR_TARGETS]. A larger value finds the targets on smaller tables and leaves less for the steps.
LEAST_FOR_TARGETS, TARGET_SCALE, MOST_FOR_TARGETS = 0.05, 6000.0, 0.4
# Largest share of the means, where n is small.
MOST_FOR_MEANS = 0.5
# Calibration of the intercept: number of counts, length of the first step over the Newton step, power of the number of the step
# by which steps get shorter, and largest excess of the coverage that a step believes. Choices that follow stochastic
# approximation, where powers between .5 and 1 converge. More counts have more noise each.
COVERAGE_STEPS, COVERAGE_STEP, COVERAGE_DECAY, FURTHEST = 12, 0.8, 0.75, 0.25
# A change of sign of the excess by more than SIGNIFICANT standard deviations of its noise shows that a step was too long:
# further steps are NARROWED times as long. Choices; a lower threshold mistakes noise for it more often.
SIGNIFICANT, NARROWED = 2.0, 0.3


@dataclass(eq=False, repr=False)
class RescaledGradientDescent(WhiteningSolver):
    r"""Gradient steps on privately whitened features and rescaled targets, then private calibration of the intercept.

    1. Histograms of the targets give a centre, which is the quantile that the loss asks for, and a spread s. The first counts
       binary exponents. Four with 4096 and 64 ranges by turns follow, each within the densest window of the one before, and one
       with 32. With a public range of the targets, there is one of each size and none of exponents.
    2. Means of the features, a histogram of the lengths of the centred rows, and their second moment give the map to white rows
       z, as in "whitened_gd".
    3. T steps follow, in units of s, whose lengths fall linearly to 0. A row weighs less where z is longer than usual, for
       negative and positive residuals alike, so that the clip norm :math:`L \sqrt{\mathrm E \|z\|^2}` does not turn one quantile
       into another. For a quantile other than the median the first steps go towards the median: it has less noise, and mostly
       similar slopes.
    4. The result is the average of the last iterates. An empirical Bayes rule shrinks the slopes by their known noise.
    5. For a quantile, twelve noisy counts move the intercept until the wanted share of the targets is below the predictions.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of gradient steps T. None takes 100, on large tables fewer, down to 30; 1000 for ``epsilon=inf``.
    path : float, default=60.0
        Total step length, in units of the spread, for a derivative of 1. It is less where the noise of a raw prediction would
        exceed three quarters of the spread, and where steps would be longer than 1.5.
    target_share : float or None, default=None
        Share of the squared Gaussian-DP parameter for the targets' histograms, in (0, 0.4]. None takes 0.05, and up to 0.4 where
        their noise is large.
    means_share : float, default=0.05
        Share of the means where n is large, in (0, 0.25].
    histogram_share : float, default=0.01
        Share of the histogram of lengths where n is large, in (0, 0.1].
    moment_share : float, default=0.15
        Share of the second moment in what the other shares leave, in (0, 1). The steps get the rest.
    coverage_share : float, default=0.05
        Share of the intercept's calibration, in (0, 0.25]; not used without intercept, nor for the "epsilon_insensitive" loss.

    Notes
    -----
    There is no penalty by default: shrinkage takes its place. The estimator's ``clip_norm`` replaces the one of step 3: it bounds
    gradients in z. With more than 1024 features the solver leaves out the second moment and scales all features alike. Where n is
    so small for epsilon and d that nothing could be learned about the features, only step 1 takes place.

    **Privacy.** Gaussian releases on all records, whose Gaussian-DP parameters square and add up to that of the budget:
    histograms and the second moment with sensitivity 1 (``zero_out``) or :math:`\sqrt 2` (``replace_one``), sums of the features
    over the data norm R and of signs of residuals with sensitivity k, T clipped gradients with sensitivity k C. Ranges, centre,
    spread, geometry and clip norm depend on earlier releases only, and the noise multiplier of every release is fixed in advance.
    Public: the shape of the table, R, and every parameter. The targets may have any range.

    References
    ----------
    .. [1] R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46 (1978).
    .. [2] C. Dwork, J. Lei, "Differential privacy and robust statistics", STOC 2009, Section 4: the scale of numbers from a
       private histogram.
    .. [3] A. Defazio, A. Cutkosky, H. Mehta, K. Mishchenko, "Optimal linear decay learning rate schedules and further
       refinements", 2023: the steps.

    Examples
    --------
    >>> from skdp import DPQuantileRegressor
    >>> from skdp.solvers import RescaledGradientDescent
    >>> model = DPQuantileRegressor(quantile=0.9, solver=RescaledGradientDescent(n_steps=100))
    """

    name = "rescaled_gd"
    title = "gradient descent on privately whitened features and rescaled targets"
    needs = frozenset({"convex", "kinked", "numbers", "plain"})
    constant = "a constant"

    n_steps: int | None = None
    _: KW_ONLY
    path: float = 60.0
    target_share: float | None = None
    means_share: float = 0.05
    histogram_share: float = 0.01
    moment_share: float = 0.15
    coverage_share: float = 0.05

    def _schedule(self, problem: Problem) -> Schedule:
        if hopeless(problem):
            return Schedule(tuple(target_releases(problem, 1.0)))
        d, shares = problem.n_features, self._shares(problem)
        kinds = [
            (1, shares.means, FeatureSums, 1.0, d),
            (1, shares.histogram, DistanceHistogram, 1.0, BINS),
            (1, shares.moment, SecondMoment, 1.0, d * (d + 1) // 2),
            (self._steps(problem), shares.steps, ShortenedGradient, None, None),
            (COVERAGE_STEPS, self._for_coverage(problem), ResidualSigns, 1.0, 1),
        ]
        return Schedule((*target_releases(problem, self._for_targets(problem)), *releases(kinds)))

    def _solve(self, problem: Problem, ask: Ask) -> SolverResult:
        level = _level(problem)
        if hopeless(problem):
            location = release_location(problem, 1.0, level or 0.5, ask)
            return SolverResult(_outer(problem, np.zeros(problem.shape), location), 0)
        location = release_location(problem, self._for_targets(problem), level or 0.5, ask)
        shares = self._shares(problem)
        centre = _release_centre(problem, shares.means, ask)
        frame = release_frame(replace(problem, alpha=problem.alpha * location.spread), shares, centre, ask)
        theta = self._descend(problem, shares.steps, frame, location, ask)
        coef = _outer(problem, frame.geometry.to_rows(theta), location)
        if share := self._for_coverage(problem):
            coef = _covering(problem, share, coef, location, ask)
        return SolverResult(coef, self._steps(problem), moments=centre.released)

    def _descend(self, problem: Problem, share: float, frame: Frame, location: Location, ask: Ask) -> np.ndarray:
        """Return the average of the last iterates in the geometry, with shrunk slopes, in units of the spread."""
        n_steps, level, constant = self._steps(problem), _level(problem) or 0.5, slice(problem.n_features, None)
        # 1. Lengths of the steps fall linearly to 0 and add up to the path. The first `warm` ones go towards the median: raw
        # predictions are relative to the quantile, so the intercept starts at the median, and moves back with the loss.
        length, path, warm = self._journey(problem, share, frame)
        steps = 2 * path / n_steps * (1 - np.arange(n_steps) / n_steps)
        first, shift = n_steps - max(1, round(TAIL * n_steps)), (location.median - location.centre) / location.spread
        theta, average = np.zeros((frame.curvature.size, 1)), np.zeros((frame.curvature.size, 1))
        theta[constant] = shift if warm else 0.0
        for number, step in enumerate(steps):
            loss = Quantile(0.5) if number < warm else problem.loss
            if number == warm > 0:
                theta[constant] -= shift
            terms = length * loss.lipschitz, frame.geometry
            query = ShortenedGradient(loss, theta, *terms, offset=location.centre, unit=location.spread)
            gradient = ask(query)[:, None] / (problem.n_samples * loss.lipschitz)
            theta = (theta - step * gradient) / (1 + step * frame.penalty[:, None])
            if number >= first:
                average += theta / (n_steps - first)
        # 2. The derivative of a mean slope is the density of the residuals at the quantile, here over the largest slope, times
        # the second moment of z. With it, the noise of each step fades in the later ones.
        densities = np.where(np.arange(n_steps) < warm, _density(0.5) / 0.5, _density(level) / problem.loss.lipschitz)
        gains = _gains(steps, densities, frame.curvature, first)
        variances = np.square(gains * (length / (problem.signal_to_noise * math.sqrt(share / n_steps)))).sum(axis=1)
        # 3. Slopes shrink by the variance that the averaged iterates have from all noise.
        slopes = slice(problem.n_features)
        kept = posterior_factors(average[slopes, 0], variances[slopes], LARGEST_PRIOR / frame.size)
        average[slopes, 0] *= np.maximum(kept, LEAST_KEPT)
        return average

    def _journey(self, problem: Problem, share: float, frame: Frame) -> tuple[float, float, int]:
        """Return the norm of z from which on rows weigh less, total step length, and number of steps towards the median."""
        largest, usual = frame.geometry.largest_norm, math.sqrt(frame.size)
        if not problem.budget.private:
            return self._row_bound(problem, largest), max(self.path, NOISELESS_PATH), 0
        # The first step is 2 path / T, at most LARGEST_STEP. Noise sets the path where it is shorter: a raw prediction gathers
        # path * size / (s share**0.5).
        longest = min(self.path, LARGEST_STEP / 2 * self._steps(problem))
        path = min(longest, TRAVEL * problem.signal_to_noise * math.sqrt(share) / frame.size)
        # From 0, where noise sets all, to 1, where it does not matter for the weights of rows and for the start.
        ease = min(path / EASY, 1.0)
        length = self._row_bound(problem, min((SHORTER + (1 - SHORTER) * ease) * usual, largest))
        warm = round((WARM_MOST - (WARM_MOST - WARM_LEAST) * ease) * self._steps(problem))
        return length, path, 0 if _level(problem) in (None, 0.5) else warm

    def _row_bound(self, problem: Problem, length: float) -> float:
        return problem.clip_norm / problem.loss.lipschitz if problem.clip_norm < math.inf else length

    def _for_targets(self, problem: Problem) -> float:
        if self.target_share is not None:
            return float(self.target_share)
        noise = mean_noise(problem, TargetExponents(), 1.0)
        return min(max(TARGET_SCALE * noise**2, LEAST_FOR_TARGETS), MOST_FOR_TARGETS)

    def _for_coverage(self, problem: Problem) -> float:
        return self.coverage_share if problem.intercept_scaling and _level(problem) is not None else 0.0

    def _shares(self, problem: Problem) -> Shares:
        left = 1 - self._for_targets(problem) - self._for_coverage(problem)
        histogram, means = self._histogram_share(problem), 0.0
        if problem.intercept_scaling:
            means = min(self.means_share + self._means_growth(problem), MOST_FOR_MEANS)
        rest = (1 - means - histogram) * left
        moment = self.moment_share * rest if problem.n_features <= MOST_WHITENED else 0.0
        return Shares(means * left, histogram * left, moment, 0.0, rest - moment)

    def _steps(self, problem: Problem) -> int:
        if self.n_steps is not None:
            return int(self.n_steps)
        if not problem.budget.private:
            return NOISELESS
        return int(min(max(WORK / (problem.n_samples * problem.n_features), FEWEST_STEPS), STEPS))

    def _validated(self, problem: Problem) -> AdaptiveSolver:
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("path", self.path, above=0.0, maximum=1e6)
        check_number("target_share", self.target_share, minimum=1e-6, maximum=MOST_FOR_TARGETS, optional=True)
        check_number("means_share", self.means_share, minimum=1e-6, maximum=0.25)
        check_number("histogram_share", self.histogram_share, minimum=1e-6, maximum=MOST_FOR_HISTOGRAM)
        check_number("moment_share", self.moment_share, minimum=1e-6, maximum=0.99)
        check_number("coverage_share", self.coverage_share, minimum=1e-6, maximum=0.25)
        return self._with_floats("path", "means_share", "histogram_share", "moment_share", "coverage_share")


def _level(problem: Problem) -> float | None:
    """Return the quantile that the loss estimates; None for a loss that estimates none."""
    return getattr(problem.loss, "quantile", None)


def _density(level: float) -> float:
    """Return the density of normal residuals at a quantile, in units of the spread of the targets."""
    return NARROWER * math.exp(-(float(ndtri(level)) ** 2) / 2) / math.sqrt(2 * math.pi)


def _outer(problem: Problem, coef: np.ndarray, location: Location) -> np.ndarray:
    """Return the coefficients for rows and targets in the user's units."""
    outer = location.spread * coef
    if problem.intercept_scaling:
        outer[-1] = (outer[-1] + location.centre) / problem.intercept_scaling
    return outer


def _release_centre(problem: Problem, share: float, ask: Ask) -> Centre:
    """Ask for the means of the features, and shrink them, more the noisier they are."""
    d = problem.n_features
    if not share:
        return Centre(np.zeros(d), np.zeros(1), 0.0)
    features = ask(FeatureSums(problem.data_norm, d)) / problem.n_samples
    noise = 1 / (math.sqrt(share) * problem.signal_to_noise)
    released = ReleasedMoments(problem.data_norm * features, problem.data_norm * noise)
    return Centre(shrunk_mean(features, noise), np.zeros(1), 0.0, released)


def _gains(steps: np.ndarray, densities: np.ndarray, curvature: np.ndarray, first: int) -> np.ndarray:
    """Return the factor of each gradient's noise in the average of the iterates from ``first`` on, per coordinate."""
    reached, gains = np.zeros((2, curvature.size, steps.size))
    for number, (step, density) in enumerate(zip(steps, densities, strict=True)):
        # A step contracts all earlier errors, and adds its own.
        reached *= (1 - np.minimum(step * density * curvature, 1.0))[:, None]
        reached[:, number] = step
        if number >= first:
            gains += reached / (steps.size - first)
    return gains


def _covering(problem: Problem, share: float, coef: np.ndarray, location: Location, ask: Ask) -> np.ndarray:
    """Move the intercept until the wanted share of the targets is below the predictions."""
    level = _level(problem) or 0.5
    # Robbins and Monro: steps in proportion to the excess of the coverage over the wanted level, over the density there, which
    # fall with their number.
    unit, moved = location.spread / problem.intercept_scaling, coef.copy()
    noise = math.sqrt(COVERAGE_STEPS / share) / problem.signal_to_noise / 2
    least = min(max(noise, 1 / problem.n_samples), 0.5)  # smaller shares drown in noise: the step is as for this one
    gain, last = COVERAGE_STEP / _density(min(max(level, least), 1 - least)), 0.0
    for number in range(COVERAGE_STEPS):
        # The sum of signs of prediction - y, over n, is twice the share below the prediction, less 1.
        excess = (1 + float(ask(ResidualSigns(moved))[0]) / problem.n_samples) / 2 - level
        if excess * last < 0 and min(abs(excess), abs(last)) > SIGNIFICANT * noise:
            gain *= NARROWED  # the last step was too long, because the residuals are close together
        moved[-1] -= unit * gain / (1 + number) ** COVERAGE_DECAY * min(max(excess, -FURTHEST), FURTHEST)
        last = excess
    return moved

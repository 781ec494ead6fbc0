"""Gradient descent on privately whitened features and rescaled targets: the untuned default for losses of numbers with a kink."""

import copy
import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from skdp._validation import check_integer, check_number
from skdp.losses import Quantile
from skdp.privacy.queries import DistanceHistogram, FeatureSums, ResidualSigns, SecondMoment, ShortenedGradient, TargetExponents
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._standardization import mean_noise
from skdp.solvers.adaptive._shrinkage import posterior_factors
from skdp.solvers.adaptive._target_scale import Location, release_location, target_releases
from skdp.solvers.adaptive._whitening import BINS, Centre, Frame, Shares, half_vector_noise, hopeless, hopelessness, release_frame

__all__ = ["RescaledGradientDescent"]

STEPS, NOISELESS, FEWEST, WORK, MOST_STEPS = 100, 1000, 30, 1e9, 10**7
LARGEST_STEP = 1.5  # the first one: a derivative of 1 and a density of 1 make 2 unstable
NOISELESS_PATH = 240.0
MOST_WHITENED = 1024  # features up to which the second moment is released; the rounding of `Whitening` rests on it
EASY = 20.0  # total step length from which on noise does not set the start and the weights
TRAVEL = 0.75  # noise of a raw prediction, in spreads of the targets, that the steps may gather before contraction
WARM_LEAST, WARM_MOST = 0.3, 0.8  # fraction of the steps towards the median, without noise, and where noise sets the path
SHORTER = 0.6  # norm of z from which on rows weigh less, over the usual norm, where noise sets the path
LEAST_KEPT, LARGEST_PRIOR = 0.05, 10.0  # of slopes that look like noise alone; variance of all slopes together
TAIL = 0.25  # fraction of the steps that are averaged
NARROWER = 1.25  # density of the residuals over that of the targets: a half of their variance may be explained
LEAST_FOR_TARGETS, TARGET_SCALE, MOST_FOR_TARGETS = 0.05, 6000.0, 0.4  # share of the targets' histograms: it grows with the noise
HISTOGRAM_SCALE, MOST_FOR_HISTOGRAM, BLURRED = 300.0, 0.1, 0.15  # and that of the lengths, and from when it is left out
MEANS_SCALE, MOST_FOR_MEANS, MOST_DIRECTIONS = 0.7, 0.5, 8  # and that of the means
COVERAGE_STEPS, COVERAGE_STEP, COVERAGE_DECAY, FURTHEST = 12, 0.8, 0.75, 0.25  # of the intercept's calibration
SIGNIFICANT, NARROWED = 2.0, 0.3  # excess over its noise that tells a step to have been too long, and what is left of it


class RescaledGradientDescent(Solver):
    r"""Gradient steps on privately whitened features and rescaled targets, then private calibration of the intercept.

    1. Where the targets are: a histogram of their binary exponents, four of 4096 and 64 ranges by turns, each within the densest
       window of the one before, and one of 32 tell a centre, which is the quantile that the loss asks for, and a spread s. With
       a public range of the targets, one of each.
    2. Means of the features, a histogram of the lengths of the centred rows, and their second moment, as in "whitened_gd": they
       give the map to white rows z.
    3. T steps with lengths that fall linearly to 0, in units of s. A row weighs less where z is longer than usual, for negative
       and positive residuals alike, so that the clip norm :math:`L \sqrt{\mathrm E \|z\|^2}` does not turn one quantile into
       another. For a quantile other than the median the first steps go towards the median, which is told with less noise and
       mostly has similar slopes.
    4. The average of the last iterates; slopes are shrunk by an empirical Bayes rule, with the noise that is known.
    5. For a quantile, the intercept moves until the share of the predictions above the targets is the wanted one, by twelve
       counts.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of gradient steps T. None takes 100, on large tables fewer, down to 30; 1000 for ``epsilon=inf``.
    path : float, default=60.0
        Total step length, in units of the spread, for a derivative of 1. Less where noise would gather to three quarters of the
        spread in a raw prediction, and where steps would be longer than 1.5.
    target_share : float or None, default=None
        Share of the squared Gaussian-DP parameter for the targets' histograms, in (0, 0.4]. None takes 0.05, and up to 0.4 where
        their noise is large.
    means_share : float, default=0.05
        Share of the means where n is large, in (0, 0.25].
    histogram_share : float, default=0.01
        Share of the histogram of lengths where n is large, in (0, 0.1].
    moment_share : float, default=0.15
        Share of the second moment in what these leave, in (0, 1). The steps get the rest.
    coverage_share : float, default=0.05
        Share of the intercept's calibration, in (0, 0.25]; not used without intercept, nor for the "epsilon_insensitive" loss.

    Notes
    -----
    There is no penalty by default: shrinkage takes its place. The estimator's ``clip_norm`` replaces the one of step 3: it bounds
    gradients in z. With more than 1024 features the second moment is left out, and all features are scaled alike. Where n is so
    small for epsilon and d that nothing could be told of the features, only step 1 takes place.

    **Privacy.** Gaussian releases on all records, whose Gaussian-DP parameters square and add up to that of the budget:
    histograms and the second moment with sensitivity 1 (``zero_out``) or :math:`\sqrt 2` (``replace_one``), sums of the features
    over the data norm R and of signs of residuals with sensitivity k, T clipped gradients with sensitivity k C. Ranges, centre,
    spread, geometry and clip norm depend on earlier releases only, and the noise multiplier of every release is fixed in advance.
    Public: the shape of the table, R, and every parameter. Nothing is assumed of the targets.

    References
    ----------
    .. [1] R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46 (1978).
    .. [2] C. Dwork, J. Lei, "Differential privacy and robust statistics", STOC 2009, Section 4: the unit of numbers from a
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

    def __init__(
        self,
        n_steps: int | None = None,
        *,
        path: float = 60.0,
        target_share: float | None = None,
        means_share: float = 0.05,
        histogram_share: float = 0.01,
        moment_share: float = 0.15,
        coverage_share: float = 0.05,
    ) -> None:
        self.n_steps = n_steps
        self.path = path
        self.target_share = target_share
        self.means_share = means_share
        self.histogram_share = histogram_share
        self.moment_share = moment_share
        self.coverage_share = coverage_share

    def default_alpha(self, problem: Problem) -> float:
        """Return 0: coefficients are shrunk by what is known of the noise."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return ``inf``: the clip norm is set by earlier releases."""
        return math.inf

    def remark(self, problem: Problem) -> str:
        """Return a warning for the report where only a quantile of the targets is estimated.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        str
            A sentence, or nothing.
        """
        if not hopeless(problem):
            return ""
        return (
            f"n = {problem.n_samples} is too small for this epsilon and {problem.n_features} features: only a constant is "
            "estimated, and all coefficients are 0"
        )

    def noise_level(self, problem: Problem) -> float | None:
        """Return the noise level where only a constant is estimated, else None."""
        return hopelessness(problem)

    def schedule(self, problem: Problem) -> Schedule:
        """Return the releases: targets, means, lengths, second moment, T gradients, signs; or those of the targets alone.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        Schedule
            Entries weighted so that their shares of the budget are as stated.

        Raises
        ------
        TypeError, ValueError
            If a parameter of the solver is out of its range.
        """
        return self._settled()._schedule(problem)

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
        lines = [
            (count, Release(query, Gaussian(math.sqrt(count / share)), bound, size))
            for count, share, query, bound, size in kinds
            if share
        ]
        return Schedule((*target_releases(problem, self._for_targets(problem)), *lines))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Find the targets, whiten, descend, calibrate.

        Parameters
        ----------
        problem : Problem
            Public facts.
        ask : callable
            Answers a query with noise.
        rng : Generator
            Not used: nothing public is drawn.

        Returns
        -------
        SolverResult
            Coefficients for rows and targets as they are.
        """
        return self._settled()._solve(problem, ask)

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
        """Average of the last iterates in the geometry, and in units of the spread, with shrunken slopes."""
        n_steps, level, constant = self._steps(problem), _level(problem) or 0.5, slice(problem.n_features, None)
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
        densities = np.where(np.arange(n_steps) < warm, _density(0.5) / 0.5, _density(level) / problem.loss.lipschitz)
        gains = _gains(steps, densities, frame.curvature, first)
        variances = np.square(gains * (length / (problem.signal_to_noise * math.sqrt(share / n_steps)))).sum(axis=1)
        slopes = slice(problem.n_features)
        kept = posterior_factors(average[slopes, 0], variances[slopes], LARGEST_PRIOR / frame.size)
        average[slopes, 0] *= np.maximum(kept, LEAST_KEPT)
        return average

    def _journey(self, problem: Problem, share: float, frame: Frame) -> tuple[float, float, int]:
        """Norm of z from which on rows weigh less, total step length, and the number of steps towards the median."""
        largest, usual = frame.geometry.largest_norm, math.sqrt(frame.size)
        if not problem.budget.private:
            return self._given(problem, largest), max(self.path, NOISELESS_PATH), 0
        longest = min(self.path, LARGEST_STEP / 2 * self._steps(problem))
        path = min(longest, TRAVEL * problem.signal_to_noise * math.sqrt(share) / frame.size)
        ease = min(path / EASY, 1.0)
        length = self._given(problem, min((SHORTER + (1 - SHORTER) * ease) * usual, largest))
        warm = round((WARM_MOST - (WARM_MOST - WARM_LEAST) * ease) * self._steps(problem))
        return length, path, 0 if _level(problem) in (None, 0.5) else warm

    def _given(self, problem: Problem, length: float) -> float:
        return problem.clip_norm / problem.loss.lipschitz if problem.clip_norm < math.inf else length

    def _for_targets(self, problem: Problem) -> float:
        if self.target_share is not None:
            return float(self.target_share)
        noise = mean_noise(problem, TargetExponents(), 1.0)
        return min(max(TARGET_SCALE * noise**2, LEAST_FOR_TARGETS), MOST_FOR_TARGETS)

    def _for_coverage(self, problem: Problem) -> float:
        return self.coverage_share if problem.intercept_scaling and _level(problem) is not None else 0.0

    def _shares(self, problem: Problem) -> Shares:
        noise, left = 1 / problem.signal_to_noise, 1 - self._for_targets(problem) - self._for_coverage(problem)
        histogram = min(max(HISTOGRAM_SCALE * noise**2, self.histogram_share), MOST_FOR_HISTOGRAM)
        if half_vector_noise(problem) * math.sqrt(BINS / histogram) / 2 > BLURRED:
            histogram = 0.0
        means = 0.0
        if problem.intercept_scaling:
            growth = min(1.0, (noise * min(problem.n_features, MOST_DIRECTIONS) / MEANS_SCALE) ** 2)
            means = min(self.means_share + growth, MOST_FOR_MEANS)
        rest = (1 - means - histogram) * left
        moment = self.moment_share * rest if problem.n_features <= MOST_WHITENED else 0.0
        return Shares(means * left, histogram * left, moment, 0.0, rest - moment)

    def _steps(self, problem: Problem) -> int:
        if self.n_steps is not None:
            return int(self.n_steps)
        if not problem.budget.private:
            return NOISELESS
        return int(min(max(WORK / (problem.n_samples * problem.n_features), FEWEST), STEPS))

    def _settled(self) -> "RescaledGradientDescent":
        """A copy whose parameters are checked, and floats whatever type of number they were."""
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("path", self.path, above=0.0, maximum=1e6)
        check_number("target_share", self.target_share, minimum=1e-6, maximum=MOST_FOR_TARGETS, optional=True)
        check_number("means_share", self.means_share, minimum=1e-6, maximum=0.25)
        check_number("histogram_share", self.histogram_share, minimum=1e-6, maximum=MOST_FOR_HISTOGRAM)
        check_number("moment_share", self.moment_share, minimum=1e-6, maximum=0.99)
        check_number("coverage_share", self.coverage_share, minimum=1e-6, maximum=0.25)
        settled = copy.copy(self)
        for name in ("path", "means_share", "histogram_share", "moment_share", "coverage_share"):
            setattr(settled, name, float(getattr(self, name)))
        return settled


def _level(problem: Problem) -> float | None:
    """The quantile that the loss asks for, if it does."""
    return getattr(problem.loss, "quantile", None)


def _density(level: float) -> float:
    """Density of normal residuals at a quantile, in units of the spread of the targets."""
    return NARROWER * math.exp(-(float(ndtri(level)) ** 2) / 2) / math.sqrt(2 * math.pi)


def _outer(problem: Problem, coef: np.ndarray, location: Location) -> np.ndarray:
    """Coefficients for rows and targets as they are."""
    outer = location.spread * coef
    if problem.intercept_scaling:
        outer[-1] = (outer[-1] + location.centre) / problem.intercept_scaling
    return outer


def _release_centre(problem: Problem, share: float, ask: Ask) -> Centre:
    """Means of the features, shrunk by how noisy they are."""
    d = problem.n_features
    if not share:
        return Centre(np.zeros(d), 0.0, 0.0)
    features = ask(FeatureSums(problem.data_norm, d)) / problem.n_samples
    noise, length = 1 / (math.sqrt(share) * problem.signal_to_noise), float(np.linalg.norm(features))
    released = ReleasedMoments(problem.data_norm * features, problem.data_norm * noise)
    return Centre(features * max(0.0, 1 - d * noise**2 / max(length**2, 1e-300)) / max(length, 1.0), 0.0, 0.0, released)


def _gains(steps: np.ndarray, densities: np.ndarray, curvature: np.ndarray, first: int) -> np.ndarray:
    """How much of the noise of each gradient is in the average of the iterates from ``first`` on, by coordinate."""
    reached, gains = np.zeros((2, curvature.size, steps.size))
    for number, (step, density) in enumerate(zip(steps, densities, strict=True)):
        reached *= (1 - np.minimum(step * density * curvature, 1.0))[:, None]
        reached[:, number] = step
        if number >= first:
            gains += reached / (steps.size - first)
    return gains


def _covering(problem: Problem, share: float, coef: np.ndarray, location: Location, ask: Ask) -> np.ndarray:
    """Coefficients with an intercept at which the wanted share of the targets is below the prediction."""
    level = _level(problem) or 0.5
    unit, moved = location.spread / problem.intercept_scaling, coef.copy()
    noise = math.sqrt(COVERAGE_STEPS / share) / problem.signal_to_noise / 2
    least = min(max(noise, 1 / problem.n_samples), 0.5)  # shares below it are not told from 0: steps for them would carry noise
    gain, last = COVERAGE_STEP / _density(min(max(level, least), 1 - least)), 0.0
    for number in range(COVERAGE_STEPS):
        excess = (1 + float(ask(ResidualSigns(moved))[0]) / problem.n_samples) / 2 - level
        if excess * last < 0 and min(abs(excess), abs(last)) > SIGNIFICANT * noise:
            gain *= NARROWED  # it went too far: the residuals are close together
        moved[-1] -= unit * gain / (1 + number) ** COVERAGE_DECAY * min(max(excess, -FURTHEST), FURTHEST)
        last = excess
    return moved

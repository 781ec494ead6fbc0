"""Fit linear models with the squared loss by gradient descent on privately whitened features: the untuned default."""

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.special import ndtri

from skdp._validation import check_integer, check_number
from skdp.privacy.queries import (
    DistanceHistogram,
    FeatureTargetSums,
    ResidualHistogram,
    SecondMoment,
    Standardization,
    StandardizedGradient,
    TargetSum,
)
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, SolverResult
from skdp.solvers._coefficient_noise import CoefficientNoise
from skdp.solvers._standardization import outer_coefficients
from skdp.solvers._uncertainty import Uncertainty
from skdp.solvers.adaptive._adaptive_solver import MOST_WHITENED, AdaptiveSolver, WhiteningSolver
from skdp.solvers.adaptive._shrinkage import posterior_factors, tail_gains
from skdp.solvers.adaptive._whitening import (
    BINS,
    USUAL_LEVEL,
    Centre,
    Frame,
    Shares,
    hopeless,
    release_centre,
    release_frame,
    release_gradient_norm,
    releases,
    residual_bins,
)

# Curvature up to which a direction counts as hidden: h / (h + f) of an eigenvalue h at the half edge e of its noise, with the
# floor f = e / 2 of the whitening. It follows from `FLOOR` there.
HIDDEN = 2 / 3
# Least plausible curvature of a hidden direction, over the estimated one: the reciprocal of `INFLATION`, the variance inflation
# factor of severe collinearity. A smaller value makes intervals wider.
LEAST_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class TailSteps:
    """Gradient steps whose iterates are averaged from ``warm_up`` on, with a Newton finish; see `tail_gains`.

    Parameters
    ----------
    step : float
        Step size.
    finish : ndarray of shape (d,)
        Factor of the average gradient that is added to the average of the iterates.
    warm_up, n_steps : int
        The averages run over iterates and gradients from ``warm_up`` on.
    """

    step: float
    finish: np.ndarray
    warm_up: int
    n_steps: int

    def unlearned(self, curvature: np.ndarray) -> np.ndarray:
        """Return the share of each coefficient that the steps miss, from a start at 0."""
        # A coefficient b starts at 0, so the iterate of step t lacks (1 - step * curvature)^t of it; the finish takes back a
        # part.
        left = (1 - self.step * curvature)[:, None] ** np.arange(self.warm_up, self.n_steps)
        return np.asarray(1 - (1 - left).mean(axis=1) - self.finish * curvature * left.mean(axis=1))

    def plausible_errors(
        self,
        curvature: np.ndarray,
        penalty: np.ndarray,
        noise: np.ndarray,
        squares: np.ndarray,
        n_features: int,
        unclipped: float = 1.0,
    ) -> np.ndarray:
        """Return mean squared errors of the estimates, averaged over plausible curvatures.

        Parameters
        ----------
        curvature, penalty : ndarray of shape (d,)
            Estimated curvature of the loss, and curvature of the penalty.
        noise : ndarray of shape (n_steps,)
            Standard deviation of a coordinate of each gradient.
        squares : ndarray of shape (d,)
            Estimated squares of the coefficients; they may be negative.
        n_features : int
            Number of coordinates without the intercept.
        unclipped : float, default=1.0
            Share of the gradients that are not clipped: clipped ones do not change with the coefficients along their features.

        Returns
        -------
        ndarray of shape (d,)
            Variance of the noise plus squared bias.
        """
        squares, hidden = squares.copy(), hidden_directions(curvature[:n_features])
        if hidden.any():
            # Where noise hides the curvature it hides the coefficients too: they share the mean of their squares.
            squares[:n_features][hidden] = squares[:n_features][hidden].mean()
        squares = np.maximum(squares, 0.0)
        errors = []
        for plausible in plausible_curvatures(curvature):
            bend = unclipped * plausible + penalty
            gains = tail_gains(self.step, bend, self.finish, self.warm_up, self.n_steps)
            errors.append(np.square(gains * noise).sum(axis=1) + np.square(self.unlearned(bend)) * squares)
        return np.asarray(np.mean(errors, axis=0))


def hidden_directions(curvature: np.ndarray) -> np.ndarray:
    """Return which directions of a whitened geometry the noise of the second moment hides."""
    return np.asarray(curvature <= HIDDEN * (1 + 1e-9))


def plausible_curvatures(curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the estimated curvature, the geometric mean of it and the least plausible one, and the least plausible one.

    An eigenvalue h gives the curvature ``c = h / (h + e / 2)``, where e is the half edge of the noise. The true eigenvalue may be
    less by e. Then the curvature is ``3 c - 2``; the least plausible one is that, or ``c / 10`` where this is more.
    """
    least = np.maximum(3 * curvature - 2, LEAST_SHARE * curvature)
    return curvature, np.sqrt(curvature * least), least


# Where no source is named, the constants were chosen on california, bike and 13 small or generated tables (docs/defaults.md).
# Half or twice those that were varied moved R2 by at most .04 at epsilon 0.1 and .01 from 0.5 on, and .05 on the smallest tables.

# Largest number of steps that is accepted (a choice), and largest step in coordinates in which the curvature is at most 1: the
# iteration diverges from 2 on.
MOST_STEPS, LARGEST_STEP = 10**7, 1.0
# Default number of steps: FEW where noise is small, so that a large table is read less often, MANY from the noise MANY_FROM of a
# raw prediction on. Fewer, longer steps let iterates gather noise, which the clip turns into bias, and long rows can make them
# unstable. Of 56 cells of california, bike and made-up tables, 24 in place of 40 moved R2 by at most .005 where the noise is
# below .1, and by up to .018 above. With 20, tables of heavy tails lost .006, with 16 .03 (docs/defaults.md).
FEW, MANY, MANY_FROM = 24, 40, 0.1
# The share of the means grows with the noise by up to MOST_FOR_MEANS; means and two histograms get at most MOST_BUT_HISTOGRAMS
# of the squared Gaussian-DP parameter. Larger values leave less for the gradients on small tables.
MOST_FOR_MEANS, MOST_BUT_HISTOGRAMS = 0.75, 0.9
# Clip norm over the usual norm of z (for targets in [-1, 1]), where the histogram of gradient norms is left out. With .6 the R2
# of 500 records at epsilon 0.1 fell from .42 to below 0: noise grows in proportion to it.
FALLBACK = 0.15
# Share of the gradients' budget that the steps before the average get; more of it makes the noise of the average larger.
WARM_BUDGET = 0.4
# Clip norm over the standard deviation of the residuals, by which the explained variance is compared with all of it. The normal
# quantile in its place was slightly worse. A larger value shrinks the clip norm more.
USUAL = 1.3
# Least factor of the squared clip norm after the warm-up. A constant clip norm lost up to .009 of R2.
LEAST_SHRUNK = 0.15
# Damping of the Newton finish, in units of the curvature, which is at most 1: .1 and .9 moved R2 by at most .01.
DAMPING = 0.3
# Prior variance of the mean of the targets in [-1, 1] where nothing else is released. A choice: shrinking a mean near the end of
# the range costs less than its noise. A smaller value pulls the intercept further to the middle of the range.
LONE_PRIOR = 0.2
# Intervals: least curvature of a coordinate, at most 1, and least share of the variance of the targets that is left
# unexplained. Choices that keep intervals finite and positive where releases are mostly noise: a larger least curvature makes
# intervals narrower, a larger least residual wider.
LEAST_CURVATURE, LEAST_RESIDUAL = 0.05, 0.05
# Intervals are wider by WIDER_BY times the noise of the gradients beyond WIDER_FROM, because clipping makes them too short
# there. Set on tables with skewed residuals, until 95 % intervals held what they promise (docs/defaults.md).
WIDER_FROM, WIDER_BY = 0.03, 40.0
# Clip norm over the norm of the longest z for epsilon=inf. A choice that clips nothing, and stays a finite number.
UNCLIPPED = 1e9


@dataclass(eq=False, repr=False)
class WhitenedGradientDescent(WhiteningSolver):
    r"""Clipped gradient descent on privately whitened features, finished by one Newton step with the average gradient.

    1. One release has the means m of the features and of the targets.
    2. A histogram of the lengths :math:`\|x - m\|` gives the radius B within which 60 % of the rows are.
    3. One release has the second moment of the rows, clipped again to B. A formula for the spectrum of random matrices takes the
       noise off its eigenvalues h. The steps use :math:`z = (A^\top (x - m) / B, 1)` with :math:`A = V (h + f)^{-1/2}`, where
       the floor f follows the noise.
    4. A histogram of the norms of the gradients at the mean target gives the clip norm: the .99 quantile where noise is small,
       a lower one where it dominates.
    5. T gradient steps in z follow. After the warm-up the clip norm shrinks with the residuals.
    6. The result is the average of the last iterates, plus one damped Newton step with the average of their gradients. Its noise
       is that of a single release with the whole budget of these steps, whatever T and the step size are.
    7. An empirical Bayes rule shrinks the coefficients; it knows the variance of their noise exactly.

    Where n is so small for epsilon and d that nothing could be learned about the features, the solver releases only the mean of
    the targets.

    Several targets share all releases. They are a vector of norm at most 1: each of q targets is mapped to
    :math:`[-1/\sqrt q, 1/\sqrt q]`. The gradient of a record is a matrix :math:`z r^\top` then, of norm
    :math:`\lVert z \rVert \lVert r \rVert`, and is clipped as a whole. So every sensitivity is that for one target. Low quantiles
    of step 4 are lowered further, to the multiple of the root mean square that they are for one target.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of gradient steps T. None takes 24 where noise is small, which means fewer passes over large tables, and up to 40
        where it is large; 40 for ``epsilon=inf``.
    path : float, default=12.0
        Total step length; a step is at most 1.
    warm_up : float, default=0.3
        Fraction of the steps before the clip norm shrinks and the average begins, in [0, 1).
    means_share : float, default=0.05
        Share of the squared Gaussian-DP parameter that the means get where n is large, in (0, 0.5).
    histogram_share : float, default=0.01
        Share of each histogram where n is large, in (0, 0.2).
    moment_share : float, default=0.2
        Share of the second moment in what means and histograms leave, in (0, 1). The steps get the rest.

    Notes
    -----
    There is no penalty by default: shrinkage takes its place. The estimator's ``clip_norm`` replaces the quantile of step 4; it
    bounds gradients in z, for targets in [-1, 1]. With more than 1024 features the solver skips step 3 and scales all features
    alike. It skips the histograms where their noise would be too large for a quantile.

    **Privacy.** Gaussian releases on all records, whose Gaussian-DP parameters square and add up to that of the budget: the sums
    of ``(x / R, y)``, y one target or the vector of several, with sensitivity :math:`k \sqrt 2`, two histograms and the second
    moment with sensitivity 1 (``zero_out``) or :math:`\sqrt 2` (``replace_one``), and T clipped gradients with sensitivity k C.
    Centre, radius, geometry and clip norm depend on earlier releases only, and the noise multiplier of every release is fixed in
    advance. Public: the shape of the table, the number and the ranges of the targets, the data norm R, and every parameter.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 4: the steps.
    .. [2] F. Benaych-Georges, R. R. Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank perturbations of large
       random matrices", Advances in Mathematics 227 (2011), Theorem 2.1: what noise does to large eigenvalues.

    Examples
    --------
    >>> from skdp import DPLinearRegression
    >>> from skdp.solvers import WhitenedGradientDescent
    >>> model = DPLinearRegression(target_bounds=(0, 1), solver=WhitenedGradientDescent(n_steps=60))
    """

    name = "whitened_gd"
    title = "gradient descent on privately whitened features, with an averaged Newton finish"
    needs = frozenset({"plain", "least_squares"})
    takes_weights = True
    constant = "the mean of the targets"

    n_steps: int | None = None
    _: KW_ONLY
    path: float = 12.0
    warm_up: float = 0.3
    means_share: float = 0.05
    histogram_share: float = 0.01
    moment_share: float = 0.2

    def _schedule(self, problem: Problem) -> Schedule:
        if hopeless(problem):
            return Schedule(((1, Release(TargetSum, Gaussian(), 1.0, problem.loss.n_outputs)),))
        shares, d = self._shares(problem), problem.n_features
        clip_norm, first = problem.clip_norm if problem.clip_norm < math.inf else None, self._first(problem)
        kinds = [
            (1, shares.means, FeatureTargetSums, math.sqrt(2), d + problem.loss.n_outputs),
            (1, shares.histogram, DistanceHistogram, 1.0, BINS),
            (1, shares.moment, SecondMoment, 1.0, d * (d + 1) // 2),
            (1, shares.histogram, ResidualHistogram, 1.0, residual_bins(problem, shares)),
            (first, shares.warm_up, StandardizedGradient, clip_norm, None),
            (self._steps(problem) - first, shares.steps, StandardizedGradient, clip_norm, None),
        ]
        return Schedule(releases(kinds))

    def _solve(self, problem: Problem, ask: Ask) -> SolverResult:
        if hopeless(problem):
            return mean_only(problem, ask)
        shares = self._shares(problem)
        centre = release_centre(problem, shares, ask)
        frame = release_frame(problem, shares, centre, ask)
        quantile, level, usual = release_gradient_norm(problem, shares, centre, frame, ask)
        clip_norm = _clip_norm(problem, frame, quantile)
        estimates, variances, plausible, left_in = self._descend(problem, shares, centre, frame, (clip_norm, level), ask)
        kept = _shrunk(problem, centre, frame, estimates, variances)
        left_in = _variances_left(problem, centre, estimates, kept, left_in)
        explained = _explained(frame, estimates, variances)
        # Sampling adds the variance that is left of the targets, over n and the curvature, to that of the noise.
        left = _left(0.5 if quantile is None else _spread(quantile, level, frame), explained)
        plausible = plausible + left / (problem.n_samples * np.maximum(frame.curvature, LEAST_CURVATURE))
        for values in (estimates, kept):
            values[:, problem.n_features :] += centre.targets[:, None]
        noise, uncertainty = frame.size / (problem.signal_to_noise * math.sqrt(shares.warm_up + shares.steps)), None
        if problem.loss.n_outputs == 1:  # the lengths of joint gradients do not tell how much of each target is unexplained
            widening = 1 + WIDER_BY * max(0.0, noise - WIDER_FROM)
            uncertainty = Uncertainty(frame.geometry, estimates[0], plausible[0], widening, hidden_directions(frame.curvature))
        centre_noise = problem.data_norm * math.sqrt(2 / shares.means) / problem.signal_to_noise if shares.means else 0.0
        noise_left = CoefficientNoise(frame.geometry, kept.T, left_in.T, centre_noise=centre_noise)
        coef = outer_coefficients(problem, frame.geometry, kept.T)
        scale = None if usual is None else math.sqrt(_left(_spread(usual, min(level, USUAL_LEVEL), frame), explained))
        return SolverResult(
            coef, self._steps(problem), uncertainty, noise=noise_left, moments=centre.released, residual_scale=scale
        )

    def _descend(
        self, problem: Problem, shares: Shares, centre: Centre, frame: Frame, clip: tuple[float, float], ask: Ask
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the averaged iterates with their Newton finish, relative to the mean target, and three variances of their noise.

        The clip norm comes with the share of the gradients below it. The first variance is for the estimated curvature, and the
        same for all outputs. The others are means over plausible curvatures, plus the square of the bias that the steps leave;
        the third takes into account that clipped gradients have no curvature. The average, and these two, have one row for each
        output.
        """
        n_steps, first, (clip_norm, level) = self._steps(problem), self._first(problem), clip
        curvature, step = frame.curvature + frame.penalty, self._step(problem)
        offset = np.zeros((problem.loss.n_outputs, curvature.size))
        offset[:, problem.n_features :] = centre.targets[:, None]
        noise = np.empty(n_steps)
        theta, iterates, gradients = np.zeros((3, *offset.shape))
        # Column i of `fading` is what the noise of warm-up step i has become in the iterate at the end of the warm-up.
        bound, fading = clip_norm, (1 - step * curvature)[:, None] ** np.arange(first)[::-1] * step
        for number in range(n_steps):
            if number == first and problem.clip_norm == math.inf and problem.budget.private:
                # The warm-up explains part of the variance of the targets, so residuals and their gradients are shorter from here
                # on: the clip norm falls in proportion to the standard deviation that is left.
                explained = _explained(frame, theta, np.square(fading * noise[:first]).sum(axis=1))
                usual = clip_norm / (USUAL * math.sqrt(frame.size))
                bound = clip_norm * math.sqrt(min(max(1 - explained / usual**2, LEAST_SHRUNK), 1.0))
            share = shares.warm_up / first if number < first else shares.steps / (n_steps - first)
            noise[number] = bound / (problem.signal_to_noise * math.sqrt(share))
            query = StandardizedGradient(problem.loss, (offset + theta).T, bound, frame.geometry)
            gradient = -ask(query).reshape(problem.shape).T / problem.n_samples - frame.penalty * theta
            if number >= first:
                iterates, gradients = iterates + theta, gradients + gradient
            theta = theta + step * gradient
        # The averaged iterate plus a damped Newton step with the averaged gradient. The noise of step i enters with the factor in
        # column i of `gains`.
        finish = 1 / (curvature + DAMPING)
        gains = tail_gains(step, curvature, finish, first, n_steps)
        average = (iterates + finish * gradients) / (n_steps - first)
        steps = TailSteps(step, finish, first, n_steps)
        variances = np.square(gains * noise).sum(axis=1)
        # Errors over plausible curvatures: for intervals with the squares as they show, and for what is reported as noise with
        # those that noise does not explain, where clipped gradients have no curvature.
        plausible, clipped = (
            np.array(
                [steps.plausible_errors(frame.curvature, frame.penalty, noise, row, problem.n_features, share) for row in rows]
            )
            for rows, share in ((np.square(average), 1.0), (np.square(average) - variances, level))
        )
        return average, variances, plausible, clipped

    def _shares(self, problem: Problem) -> Shares:
        problem = problem.planned
        histogram, means = self._histogram_share(problem), 0.0
        if problem.intercept_scaling:
            means = min(self.means_share + MOST_FOR_MEANS * self._means_growth(problem), MOST_BUT_HISTOGRAMS - 2 * histogram)
        rest = 1 - means - 2 * histogram
        moment = self.moment_share * rest if problem.n_features <= MOST_WHITENED else 0.0
        warm_up = WARM_BUDGET * (rest - moment) if self._first(problem) else 0.0
        return Shares(means, histogram, moment, warm_up, rest - moment - warm_up)

    def _steps(self, problem: Problem) -> int:
        """Return the number of steps, by default from public facts: the noise of a raw prediction of a row of usual length."""
        if self.n_steps is not None:
            return int(self.n_steps)
        if not problem.budget.private:
            return MANY
        problem = problem.planned
        noise = math.sqrt(problem.loss.n_outputs) * problem.shape[0] / problem.signal_to_noise
        return round(FEW + (MANY - FEW) * min(1.0, noise / MANY_FROM))

    def _first(self, problem: Problem) -> int:
        return min(round(self.warm_up * self._steps(problem)), self._steps(problem) - 1)

    def _step(self, problem: Problem) -> float:
        return min(self.path / self._steps(problem), LARGEST_STEP) if problem.budget.private else LARGEST_STEP

    def _validated(self, problem: Problem) -> AdaptiveSolver:
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("path", self.path, above=0.0)
        check_number("warm_up", self.warm_up, minimum=0.0, below=1.0)
        check_number("means_share", self.means_share, minimum=1e-6, below=0.5)
        check_number("histogram_share", self.histogram_share, minimum=1e-6, below=0.2)
        check_number("moment_share", self.moment_share, minimum=1e-6, maximum=0.99)
        return self._with_floats("path", "warm_up", "means_share", "histogram_share", "moment_share")


def mean_only(problem: Problem, ask: Ask) -> SolverResult:
    """Fit an intercept alone: the released means of the targets, shrunk to the middle of their range; coefficients are 0."""
    d, norm, noise, q = problem.n_features, problem.data_norm, 1 / problem.signal_to_noise, problem.loss.n_outputs
    means = np.clip(ask(TargetSum(q)) / problem.n_samples, -1 / math.sqrt(q), 1 / math.sqrt(q))
    estimates, variances, prior = np.zeros(problem.shape), np.full(problem.shape[0], math.inf), LONE_PRIOR / q
    geometry = Standardization(np.zeros(d), np.full(d, 1 / norm), bool(problem.intercept_scaling), norm)
    kept = estimates.copy()
    kept[d:], estimates[d:] = means * prior / (prior + noise**2), means
    left_in = np.zeros(problem.shape)  # all coefficients of features are 0
    left_in[d:] = (noise * prior / (prior + noise**2)) ** 2
    noise_left = CoefficientNoise(geometry, kept, left_in)
    uncertainty = Uncertainty(geometry, estimates[:, 0], variances) if q == 1 else None
    return SolverResult(outer_coefficients(problem, geometry, kept), 0, uncertainty, noise=noise_left)


def _clip_norm(problem: Problem, frame: Frame, quantile: float | None) -> float:
    if problem.clip_norm < math.inf:
        return problem.clip_norm
    if not problem.budget.private:
        return UNCLIPPED * frame.geometry.largest_norm
    return FALLBACK * math.sqrt(frame.size) if quantile is None else min(quantile, math.sqrt(frame.size))


def _spread(quantile: float, level: float, frame: Frame) -> float:
    """Return the standard deviation of the targets from a quantile of the gradients' norms, as if the targets were normal."""
    return quantile / (float(ndtri((1 + level) / 2)) * math.sqrt(frame.size))


def _left(spread: float, explained: float) -> float:
    """Return the variance of the targets that is left unexplained."""
    return max(spread**2 - explained, LEAST_RESIDUAL * spread**2)


def _explained(frame: Frame, theta: np.ndarray, variances: np.ndarray) -> float:
    """Return the variance of all targets that a model explains, less what its noise seems to explain."""
    return max(0.0, sum(float(frame.curvature @ (np.square(row) - variances)) for row in theta))


def _shrunk(problem: Problem, centre: Centre, frame: Frame, estimates: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the coefficients shrunk towards 0, and the intercepts towards the released means, more the noisier they are."""
    if not problem.budget.private:
        return estimates.copy()
    d = problem.n_features
    factors = np.empty(estimates.shape)
    for row, estimate in zip(factors, estimates, strict=True):
        row[:d] = posterior_factors(estimate[:d], variances[:d], 1 / (frame.size * len(estimates)))
        row[d:] = centre.variance / np.maximum(centre.variance + variances[d:], 1e-300)
    return estimates * factors


def _variances_left(
    problem: Problem, centre: Centre, estimates: np.ndarray, kept: np.ndarray, plausible: np.ndarray
) -> np.ndarray:
    """Return the variances of the noise of the shrunk coefficients, in the geometry; see `CoefficientNoise`."""
    if not problem.budget.private:
        return np.zeros(estimates.shape)
    d = problem.n_features
    factors = np.divide(kept, estimates, where=estimates != 0, out=np.zeros(kept.shape))
    variances = plausible * np.abs(factors)  # and not squares, because the factors vary with the noise
    variances[:, d:] += centre.variance
    return variances

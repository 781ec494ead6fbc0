"""Fit linear and logistic models by replicated descents with bounded, unbiased scores, for confidence intervals."""

import bisect
import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp._validation import check_integer, check_number, check_truth
from skdp.losses import BoundedProper, Huber
from skdp.privacy.budget import default_delta
from skdp.privacy.queries import (
    Bread,
    DistanceHistogram,
    FeatureTargetSums,
    InformedLoss,
    Meat,
    ResidualSizes,
    SecondMoment,
    ShortenedGradient,
    half_vector_size,
    symmetric,
)
from skdp.privacy.schedule import Schedule
from skdp.solvers._base import Ask, Problem, SolverResult
from skdp.solvers._inference import Inference
from skdp.solvers._standardization import outer_coefficients
from skdp.solvers.adaptive._adaptive_solver import MOST_FOR_HISTOGRAM, MOST_WHITENED, WhiteningSolver
from skdp.solvers.adaptive._covariance import EstimatedBread, Steps, Unlearned, clear_of_flat, estimated_bread, estimated_meat
from skdp.solvers.adaptive._shrinkage import noisy_quantile
from skdp.solvers.adaptive._whitening import (
    BINS,
    Centre,
    Frame,
    Shares,
    half_vector_noise,
    hopelessness,
    ranges,
    release_centre,
    release_frame,
    releases,
)

# Where no source is named, the constants were chosen on generated tables of 5000 records: a pair with correlation .99 and a block
# of levels, equal correlations of .9, and independent columns. docs/guarantees/intervals.md has the check on others.

# Share of the meat where it is released, and largest half edge of its noise, over its usual mean, for which it is. With .6, 5 and
# 20 columns of 5000 records have it from epsilon .4 and 3 on for numbers, and from .25 and 1.5 on for classes. Where it was left
# out, the noise of the steps was most of the variance: with errors of different sizes, intervals held each coefficient in .92 or
# more of 400 samples.
MEAT, MOST_EDGE_OF_MEAT = 0.08, 0.6
# Steps of the pilot, how many of the last are averaged there and in the descents, and heavy-ball coefficient.
PILOT_STEPS, PILOT_WARM_UP, WARM_UP, MOMENTUM = 30, 0.4, 0.35, 0.8
# Steps for epsilon=inf, with which the results are exact to 1e-6 on well-conditioned tables.
NOISELESS = 1500
# Total step length of a descent over the inverse of the mean curvature: PATH, or less where noise hides which directions are
# flat, PATH_OF_EDGE over the half edge of that noise in units of the mean curvature. Noise adds up along flat directions, with
# the square of this length; on a short path less is learned. That of the pilot is PILOT_PATH of it.
PILOT_PATH, PATH, PATH_OF_EDGE = 0.75, 40.0, 6.0
# Largest noise of a raw prediction during the descents: log-odds, or residuals over the threshold. Larger noise makes the mean
# slope that of a smoothed loss: at .4 and .8 the bias was .9 to 1.8 standard errors. The first limit holds where steps as short
# as this leave a total length of FINISHED over the mean curvature; else they are longer, up to the second limit. For classes,
# .25 alone had a bias of .7 standard errors (5 columns at epsilon 1, 20 at 3) and .15 alone, where the steps then ended early, of
# 2 (20 columns at 1); with both it is .4, .3 and .6.
MOST_NOISE = {"classes": (0.15, 0.25), "numbers": (0.5, 0.5)}
FINISHED = 8.0
# Mean information of a classifier, and of a regression, before it is known; most and least over it that a release may say.
USUAL_INFORMATION = {"classes": 0.22, "numbers": 1.0}
LEAST_OF_USUAL, MOST_OF_USUAL = 0.2, 1.2
# Mean squared slope of a classifier: between .25, without any signal, and .11 for log-odds with a standard deviation of 1.3. The
# bread bounds it from above: without a meat, intervals of classes held 98 to 99 % at epsilon 3, and were a fifth wider.
USUAL_SQUARE_OF_CLASSES = 0.15
# Bound b of the weights of rows, over the usual norm of z. A larger one is nearer to equal weights, and noisier; it holds a
# model that is wrong closer to the unweighted fit, so robust fits have ROBUST_ROW_BOUND.
ROW_BOUND, ROBUST_ROW_BOUND = 1.25, 1.8
# Threshold of Huber's loss over the standard deviation of the residuals, for model-based and for robust fits.
THRESHOLD, ROBUST_THRESHOLD = 1.5, 2.5
# Quantile of residuals that sets the threshold, and its value over the standard deviation for a normal law.
LEVEL, OF_NORMAL = 0.7, 1.036
# Threshold for epsilon=inf: no residual reaches it.
UNBOUNDED = 1e9
# Least curvature for which the noise of the pilot is computed. A choice that keeps it finite where all is hidden.
LEAST_CURVATURE = 0.05
# Threshold of the pilot over that quantile.
PILOT_THRESHOLD = 1.2
# Least and largest share of the bread; between them it is such that the half edge of its noise, over the mean curvature, is about
# EDGE. A larger share leaves more noise in the coefficients, and identifies more of them.
BREAD, MOST_FOR_BREAD, EDGE = 0.1, 0.3, 0.45
# Largest half edge of the noise of a bread, over the mean curvature, with which anything is called identified for classes. In 400
# samples of each of five designs with 20 features, intervals of the largest coefficients held .65 to .88 at .58, where estimates
# were a fifth short on average, and .92 or more at .45. Linear models had no such loss.
MOST_EDGE_OF_CLASSES = 0.5
# Largest part of log-odds that the steps leave undone, as a root mean square over records, with which anything is called
# identified. The loss is not quadratic, so that all coefficients are wrong where the signal is far from learned. Of 20 000
# records with a slope of 16 and one of 1 (epsilon 3), .8 to 3 are left, and intervals for the latter held .1 of 10 samples; with
# 8 and 1, it is .4 to .7, and they held. In 28 cells of 5000 records and log-odds of a standard deviation of 1.3, six fits each,
# it was at most .74. docs/guarantees/intervals.md has a check on other tables.
MOST_UNDONE = 0.75
# Noise of one second derivative, and half edge of the noise of a bread, both over the mean curvature, from which on few
# coefficients are likely to be identified; from half of them on, some may not be. Shares that were identified in 525 cells of 12
# samples each (independent columns, two categories, and a mixture of kinds; linear and logistic; 2, 5, 10 and 20 columns; epsilon
# .3, 1 and 3): from these limits on .27 on average, and .5 or less in 79 % of the cells; from half of them on .80 (.21 to 1);
# below .99 (.88 to 1).
FEW, FEW_OF_EDGE = 0.2, 0.5
# Number of records of a level from which on it is identified, over that with which its information stands out from the noise of
# the bread. Set on four made-up tables (3 to 12 numbers, 3 to 6 other levels, 10 000 to 30 000 records, epsilon 1 to 3, twelve
# fits each): from 1.9 on all of 23 levels were identified, and below 5 of 25. On four others (3 to 12 numbers, 3 to 5 other
# levels, 30 000 to 50 000 records, epsilon .5 to 3), which were looked at once, it was 26 of 28, and 4 of 20.
OF_LEVELS = 2.0
# Numbers of records of two digits, of which a plan names the first that identifies most coefficients.
RECORDS = [digits * 10**zeros for zeros in range(1, 9) for digits in range(10, 100)]
# Least number of records of the rarer class per coefficient for tests of a classifier (Peduzzi et al. 1996), and least number of
# standard deviations of its noise.
EVENTS, EVENTS_OVER_NOISE = 10, 4.0


class InferenceShares(NamedTuple):
    """Shares of the squared Gaussian-DP parameter; they add up to 1."""

    means: float
    lengths: float
    moment: float
    pilot: float
    residuals: float
    bread: float
    meat: float
    steps: float


@dataclass(eq=False, repr=False)
class InferenceDescent(WhiteningSolver):
    r"""Replicated descents with bounded, unbiased scores on privately whitened features, and a released sandwich covariance.

    Confidence intervals need estimates without bias. So nothing is clipped by the size of a gradient, which depends on y: rows
    are weighted by x alone, and the loss has bounded slopes whose mean is 0 at the true coefficients.

    1. Sums of features and targets, a histogram of the lengths of the rows, and their second moment give the geometry z in which
       the features are white, as in "whitened_gd".
    2. A row weighs :math:`w = \min(1, (b / \|z\|)^2)` with b of 1.25 times the usual norm.
    3. The loss is that of Huber for numbers, with a threshold of 1.5 standard deviations of the residuals, and the bounded proper
       loss (`skdp.losses.BoundedProper`) for two classes, whose minimiser is the log-odds.
    4. A pilot of 30 steps comes near. K descents of T steps start there, each with noise of its own, and average their iterates.
    5. One release has the mean second derivatives J of the loss, the bread of the sandwich. A formula for the spectrum of random
       matrices takes the noise off its eigenvalues, and tells which directions may be flat. Directions of single columns that
       are flat, such as those of rare levels, are taken out before, so that no other has a part of them. Each descent ends with
       a damped Newton step; the coefficients are the mean of all.
    6. The variance of a linear combination is that of the noise, averaged over curvatures that the noise of J does not exclude
       and pooled with the spread of the K results; that of pilot and bread; and that of sampling: :math:`J^{-1} V J^{-1} / n`
       with a released V, the meat, or without it :math:`J^{-1} / n`, times a factor of the loss for numbers and an upper bound
       for classes. A direction that may be flat counts as flat.

    The bread gets a tenth of the squared Gaussian-DP parameter, and up to .3 where noise would hide flat directions; the paths
    are shorter there. Both depend on n, the number of features and the budget alone.

    Parameters
    ----------
    n_steps : int, default=40
        Number of steps T of a descent, at least 2.
    n_replicates : int, default=2
        Number of descents K, at least 1. One more has a better estimate of the noise, and more passes.
    robust : bool or None, default=None
        Whether the meat is released. Intervals are then valid for errors whose size depends on the row. None releases it where n,
        the number of features and the budget keep its noise small beside it. True does so in any case, and cuts off fewer errors
        and weighs long rows more, so that a model that is wrong is nearer to least squares; intervals are up to twice as wide.
    row_bound : float or None, default=None
        The bound b over the usual norm of z, at least 1. None takes 1.25, and 1.8 if ``robust``.

    Notes
    -----
    The coefficients are not shrunk, so they predict less well than those of the default solvers where noise is large.

    **Privacy.** Gaussian releases on all records, whose Gaussian-DP parameters square and add up to that of the budget: the sums
    of ``(x / R, y)`` with sensitivity :math:`k \sqrt 2`; histograms of lengths and, for numbers, two of residuals, the second
    moment, the bread and the meat, each with a sensitivity of its bound times 1 (``zero_out``) or :math:`\sqrt 2`
    (``replace_one``); and 30 + K T weighted gradients with sensitivity k C. Geometry, b and thresholds depend on earlier
    releases only, and the noise multiplier of every release is fixed in advance. Public: the shape of the table, the data norm R,
    the range of the targets, and every parameter.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35 (1964).
    .. [2] M. Avella-Medina, C. Bradshaw, P.-L. Loh, "Differentially private inference via noisy optimization", Annals of
       Statistics 51 (2023): intervals from noisy steps and a released sandwich.
    .. [3] P. Peduzzi et al., "A simulation study of the number of events per variable in logistic regression analysis", Journal
       of Clinical Epidemiology 49 (1996): ten records of the rarer class per coefficient.

    Examples
    --------
    >>> from skdp import DPLinearRegression
    >>> from skdp.solvers import InferenceDescent
    >>> model = DPLinearRegression(target_bounds=(0, 1), data_norm=1.0, solver=InferenceDescent(robust=True))
    """

    name = "inference"
    title = "replicated descents with bounded unbiased scores, and a released covariance for confidence intervals"
    needs = frozenset({"plain", "pointwise", "inference"})
    constant = "an intercept"
    histogram_share = 0.01  # of the squared Gaussian-DP parameter, on large tables

    def noise_level(self, problem: Problem) -> float | None:
        """Return 1 or more where no coefficient is identified, else None."""
        return max(hopelessness(problem) or 0.0, 1.0) if self._drowned(problem) else None

    def outlook(self, problem: Problem) -> tuple[float, str]:
        """Return the noise of the bread over that from which on few coefficients are identified, and a sentence for the plan."""
        if not problem.budget.private:
            return 0.0, ""
        level = self._outlook_level(problem)
        # Three sentences, from half of the limits on and from the limits on; then the number of records that would be enough.
        if level < 0.5:
            unless = (
                ", unless a class is rare or columns nearly separate the classes" if problem.loss.targets == "classes" else ""
            )
            return level, f"nearly all coefficients are likely to be identified{unless}; {self._of_levels(problem)}"
        if self._drowned(problem):
            found = "no coefficient is identified, so that there is no interval"
        elif level >= 1:
            found = "half of the coefficients or fewer are likely to be identified, and the others have no interval"
        else:
            found = f"some coefficients may not be identified, and have no interval; {self._of_levels(problem)}"
        place = bisect.bisect_left(RECORDS, True, key=lambda n: self._outlook_level(_with_records(problem, n)) < 0.5)
        enough = f"; about {RECORDS[place]:,} records at this epsilon identify most" if place < len(RECORDS) else ""
        return level, found + enough

    def _of_levels(self, problem: Problem) -> str:
        """Return what a rare level costs, in words.

        The weights of rows bound the information about a level, over the mean curvature, by its share of the records times the
        squared bound.
        """
        # Noise of one second derivative over the mean curvature; the share of records at which information of this size is clear
        # of it.
        noise = self._edge(problem) / math.sqrt(self._shares(problem).bread * problem.shape[0] / 2)
        share = OF_LEVELS * float(clear_of_flat(1.0, np.array(noise))) / (ROW_BOUND**2 * problem.shape[0])
        few = float(f"{share * problem.n_samples:.2g}")
        return (
            f"a level that fewer than about {few:,.0f} records have may not be, and if it is listed first, no level of its column"
        )

    def level_with(self, problem: Problem, n_features: int) -> float:
        """Return the first value of `outlook` for another number of features."""
        return self._outlook_level(replace(problem, n_features=n_features))

    def _outlook_level(self, problem: Problem) -> float:
        # Half edge = noise of one second derivative times sqrt(k / 2); both limits in terms of the edge.
        limit = min(FEW * math.sqrt(problem.shape[0] / 2), FEW_OF_EDGE)
        level = self._edge(problem) / math.sqrt(self._shares(problem).bread) / limit
        return max(problem.extra.correlation_factor * level, float(self._drowned(problem)))

    n_steps: int = 40
    _: KW_ONLY
    n_replicates: int = 2
    robust: bool | None = None
    row_bound: float | None = None

    def _schedule(self, problem: Problem) -> Schedule:
        self._check_unbiased(problem)
        shares, d = self._shares(problem), problem.n_features
        size, descents = half_vector_size(problem.shape[0]), self.n_replicates * self._n_steps(problem)
        return Schedule(
            releases(
                [
                    (1, shares.means, FeatureTargetSums, math.sqrt(2), d + 1),
                    (1, shares.lengths, DistanceHistogram, 1.0, BINS),
                    (1, shares.moment, SecondMoment, 1.0, half_vector_size(d)),
                    (1, shares.residuals / 2, ResidualSizes, 1.0, BINS),
                    (PILOT_STEPS, shares.pilot, ShortenedGradient, None, None),
                    (1, shares.residuals / 2, ResidualSizes, 1.0, BINS),
                    (descents, shares.steps, ShortenedGradient, None, None),
                    (1, shares.bread, Bread, None, size),
                    (1, shares.meat, Meat, None, size),
                ]
            )
        )

    def _solve(self, problem: Problem, ask: Ask) -> SolverResult:
        """Release all, in the steps that the docstring of the class numbers."""
        shares = self._shares(problem)
        # 1. The geometry, z
        first_shares = Shares(shares.means, shares.lengths, shares.moment, 0.0, 0.0)
        centre = release_centre(problem, first_shares, ask)
        frame = release_frame(problem, first_shares, centre, ask)
        # 2. The bound b of the weights of rows
        bound = self._bound(problem, frame)
        # 3. The loss, first that of the pilot; and 4. the pilot, then K descents from where it ends
        start, loss = self._start(problem, centre, frame, ask)
        pilot = self._steps_of(problem, frame, bound, loss, shares.pilot, True)
        slope = partial(self._slope, problem, frame, bound, ask)
        first, _ = pilot.run(partial(slope, loss), start)
        size_of_errors = 1.0
        if problem.loss.targets == "numbers":
            loss, size_of_errors = self._threshold(problem, frame, pilot, first, ask)
        steps = self._steps_of(problem, frame, bound, loss, shares.steps, False)
        ends = [steps.run(partial(slope, loss), first) for _ in range(self.n_replicates)]
        iterates, gradients = (np.array(each) for each in zip(*ends, strict=True))
        # 5. The bread, at the mean of the descents, and a Newton step of each
        bread = self._released_bread(problem, shares.bread, frame, bound, loss, iterates.mean(axis=0), ask)
        moves = -gradients @ bread.newton
        replicates = iterates + moves
        estimates = replicates.mean(axis=0)
        # 6. The parts of the variance
        sampling = self._sampling(problem, shares.meat, frame, bound, loss, bread, estimates, size_of_errors, ask)
        square = float(np.square(estimates[: problem.n_features]).mean())
        own, common = bread.errors(pilot, steps, square)
        unlearned = bread.unlearned(pilot, steps, square)
        inference = Inference(
            geometry=frame.geometry,
            estimates=estimates,
            replicates=replicates,
            directions=bread.directions,
            shown=bread.shown,
            own=own / self.n_replicates,
            common=common,
            flat=bread.shown * (bread.leaks[:, ~bread.shown] @ (own / self.n_replicates + common)[~bread.shown]),
            step_noise=bread.inverse @ bread.moved(moves.mean(axis=0)) @ bread.inverse,
            sampling=sampling,
            unlearned=unlearned,
            identified=self._identifies(problem, centre, frame, unlearned, estimates),
            centre_noise=0.0 if centre.released is None else centre.released.mean_noise,
        )
        coef = outer_coefficients(problem, frame.geometry, estimates)
        return SolverResult(coef, self._n_steps(problem), moments=centre.released, inference=inference)

    def _sampling(
        self,
        problem: Problem,
        share: float,
        frame: Frame,
        bound: float,
        loss: InformedLoss,
        bread: EstimatedBread,
        estimates: np.ndarray,
        size_of_errors: float,
        ask: Ask,
    ) -> np.ndarray:
        """Return the covariance from sampling, in the geometry: with a released meat, or with a factor of the loss."""
        if not share:
            return size_of_errors * bread.inverse / problem.n_samples
        answer = ask(Meat(loss, estimates[:, None], bound, frame.geometry)) / problem.n_samples
        noise = half_vector_noise(problem) * (bound * loss.lipschitz) ** 2 / math.sqrt(share)
        meat = estimated_meat(symmetric(answer, estimates.size), noise)
        return bread.inverse @ meat @ bread.inverse / problem.n_samples

    def _identifies(self, problem: Problem, centre: Centre, frame: Frame, unlearned: Unlearned, estimates: np.ndarray) -> bool:
        """Return whether the releases say enough for any interval."""
        if self._drowned(problem) or not self._shows_both_classes(problem, centre):
            return False
        return problem.loss.targets == "numbers" or _signal_undone(unlearned, estimates, frame) <= MOST_UNDONE

    def _start(self, problem: Problem, centre: Centre, frame: Frame, ask: Ask) -> tuple[np.ndarray, InformedLoss]:
        """Return the coefficients of a constant prediction, and the loss of the pilot."""
        start, d = np.zeros(problem.shape[0]), problem.n_features
        if problem.loss.targets == "classes":
            if centre.released is not None:
                # The log-odds of the released frequency, which noise may move beyond 0 or 1.
                least = min(max(1 / problem.n_samples, centre.released.target_noise), 0.5)
                rate = min(max(centre.released.target or 0.0, least), 1 - least)
                start[d:] = math.log(rate / (1 - rate))
            return start, BoundedProper()
        start[d:] = centre.targets
        quantile = self._residual(problem, frame, start, ask)
        return start, Huber(PILOT_THRESHOLD * quantile if problem.budget.private else UNBOUNDED)

    def _threshold(self, problem: Problem, frame: Frame, pilot: Steps, first: np.ndarray, ask: Ask) -> tuple[InformedLoss, float]:
        """Return the loss of the descents, and the sampling variance over the inverse bread for normal errors."""
        if not problem.budget.private:
            return Huber(UNBOUNDED), (self._residual(problem, frame, first, ask) / OF_NORMAL) ** 2
        shown_spread = self._residual(problem, frame, first, ask) / OF_NORMAL
        # The residuals of the pilot have its own noise in them; what is left of their variance is at least a quarter.
        _, variances = pilot.response(np.maximum(frame.curvature, LEAST_CURVATURE), np.zeros(first.size))
        of_pilot = float(frame.curvature @ variances)
        spread = math.sqrt(max(shown_spread**2 - of_pilot, shown_spread**2 / 4))
        wanted = ROBUST_THRESHOLD if self.robust else THRESHOLD
        threshold = min(wanted * spread, 1.0)
        inside, square = _of_normal(threshold / spread)
        return Huber(threshold), square * spread**2 / inside

    def _residual(self, problem: Problem, frame: Frame, coef: np.ndarray, ask: Ask) -> float:
        """Return the released quantile of the sizes of the residuals."""
        edges = ranges(2.0)
        counts = ask(ResidualSizes(coef[:, None], edges, frame.geometry))
        return noisy_quantile(counts, edges, LEVEL, problem.n_samples)

    def _released_bread(
        self,
        problem: Problem,
        share: float,
        frame: Frame,
        bound: float,
        loss: InformedLoss,
        coef: np.ndarray,
        ask: Ask,
    ) -> EstimatedBread:
        answer = ask(Bread(loss, coef[:, None], bound, frame.geometry)) / problem.n_samples
        # One record adds a matrix of norm at most the most information times bound**2.
        noise = half_vector_noise(problem) * loss.most_information * bound**2 / math.sqrt(share)
        usual = USUAL_INFORMATION[problem.loss.targets]
        limits = (LEAST_OF_USUAL * usual, MOST_OF_USUAL * usual) if problem.budget.private else (0.0, math.inf)
        return estimated_bread(symmetric(answer, coef.size), noise, frame, *limits, problem.extra.blocks)

    def _slope(self, problem: Problem, frame: Frame, bound: float, ask: Ask, loss: InformedLoss, theta: np.ndarray) -> np.ndarray:
        query = ShortenedGradient(loss, theta[:, None], bound * loss.lipschitz, frame.geometry, power=2.0)
        return ask(query) / problem.n_samples

    def _steps_of(self, problem: Problem, frame: Frame, bound: float, loss: InformedLoss, share: float, of_pilot: bool) -> Steps:
        """Return the steps whose noise leaves the loss as it is; ``share`` is that of all replicates."""
        kind, private = problem.loss.targets, problem.budget.private
        n_steps = PILOT_STEPS if of_pilot else self._n_steps(problem)
        releases = n_steps if of_pilot else n_steps * self.n_replicates
        noise = bound * loss.lipschitz * math.sqrt(releases / share) / problem.signal_to_noise if private else 0.0
        usual, path = USUAL_INFORMATION[kind], self._path(problem) * (PILOT_PATH if of_pilot else 1.0)
        least, most = (limit * (loss.lipschitz if kind == "numbers" else 1.0) for limit in MOST_NOISE[kind])
        # Steps are `length * (1 - MOMENTUM)` long; heavy-ball steps are stable below 2 (1 + MOMENTUM) over the curvature. As long
        # as the path, and as is stable; then as long as noise allows.
        stable = 0.9 * (1 + MOMENTUM) / (1 - MOMENTUM) / usual
        length = min(path / usual / n_steps, stable) if private else stable / 2
        if noise:
            # At curvature h, noise of a coefficient settles at the variance length * noise**2 / (2 h), and of a raw prediction at
            # `size` times that. The length for a noise of `least`; up to that of `most` where the steps would not finish.
            longest = 2 * usual / (max(frame.size, 1.0) * noise**2)  # for a noise of 1
            enough = math.inf if of_pilot else FINISHED / usual / n_steps
            length = min(length, max(longest * least**2, min(longest * most**2, enough)))
        return Steps(length, MOMENTUM, round((PILOT_WARM_UP if of_pilot else WARM_UP) * n_steps), n_steps, noise)

    def _path(self, problem: Problem) -> float:
        """Return the total step length over the inverse curvature: shorter where noise hides which directions are flat."""
        edge = self._edge(problem) / math.sqrt(self._shares(problem).bread)
        # Along a flat direction noise adds up with the square of the path.
        return PATH if edge * PATH <= PATH_OF_EDGE else PATH_OF_EDGE / edge

    def _bound(self, problem: Problem, frame: Frame) -> float:
        if not problem.budget.private and self.row_bound is None:
            return frame.geometry.largest_norm
        given = self.row_bound or (ROBUST_ROW_BOUND if self.robust else ROW_BOUND)
        return min(given * math.sqrt(max(frame.size, 1.0)), frame.geometry.largest_norm)

    def _drowned(self, problem: Problem) -> bool:
        """Return whether noise hides the features, or every quantile, or too much of the bread of a classifier."""
        if not problem.budget.private:
            return False
        edge = self._edge(problem) / math.sqrt(self._shares(problem).bread)
        blurred = problem.loss.targets == "classes" and edge > MOST_EDGE_OF_CLASSES
        return blurred or hopelessness(problem) is not None or not self._histogram_share(problem)

    def _shows_both_classes(self, problem: Problem, centre: Centre) -> bool:
        """Return whether a release shows enough records of both classes."""
        if problem.loss.targets != "classes" or centre.released is None:
            return True
        # Frequency of the rarer class.
        rate = min(float(centre.released.target or 0.0), 1 - float(centre.released.target or 0.0))
        return rate * problem.n_samples >= EVENTS * problem.shape[0] and rate >= EVENTS_OVER_NOISE * centre.released.target_noise

    def _shares(self, problem: Problem) -> InferenceShares:
        histogram = self._histogram_share(problem) or MOST_FOR_HISTOGRAM
        # The steps get what the others leave.
        first = InferenceShares(
            means=0.05 if problem.intercept_scaling else 0.0,
            lengths=histogram,
            moment=0.12,
            pilot=0.12,
            residuals=2 * histogram if problem.loss.targets == "numbers" else 0.0,
            bread=min(max((self._edge(problem) / EDGE) ** 2, BREAD), MOST_FOR_BREAD),
            meat=MEAT if self._needs_meat(problem) else 0.0,
            steps=0.0,
        )
        return first._replace(steps=1 - sum(first))

    def _needs_meat(self, problem: Problem) -> bool:
        """Return whether the covariance of the scores is released; the rows of a person depend on each other in unknown ways."""
        if problem.budget.unit == "person":
            if self.robust is False:
                raise ValueError(
                    "robust=False with privacy_unit='person'; expected True or None: rows of a person are not independent."
                )
            return True
        if self.robust is not None:
            return self.robust
        if problem.loss.targets == "classes":
            edge = _edge(problem, BoundedProper.steepest**2 / USUAL_SQUARE_OF_CLASSES)
        else:
            edge = _edge(problem, THRESHOLD**2 / _of_normal(THRESHOLD)[1])
        return edge / math.sqrt(MEAT) <= MOST_EDGE_OF_MEAT

    def _edge(self, problem: Problem) -> float:
        """Return the expected half edge of the noise of a bread with the whole budget, over the mean curvature."""
        kind = problem.loss.targets
        most = BoundedProper.most_information if kind == "classes" else 1.0
        return _edge(problem, most / USUAL_INFORMATION[kind])

    def _check_unbiased(self, problem: Problem) -> None:
        """Raise ValueError for settings that would bias intervals, before anything is spent."""
        if problem.alpha:
            raise ValueError(f"alpha={problem.alpha!r}: a penalty biases intervals; expected None or 0 with solver='inference'.")
        if problem.clip_norm < math.inf:
            raise ValueError(
                f"clip_norm={problem.clip_norm!r}: clipped gradients bias intervals; expected None with solver='inference'."
            )
        if problem.n_features > MOST_WHITENED:
            raise ValueError(f"solver='inference' takes at most {MOST_WHITENED} features, but there are {problem.n_features}.")

    def _n_steps(self, problem: Problem) -> int:
        return self.n_steps if problem.budget.private else NOISELESS

    def _validated(self, problem: Problem) -> Any:
        check_integer("n_steps", self.n_steps, minimum=2, maximum=10**6)
        check_integer("n_replicates", self.n_replicates, minimum=1, maximum=1000)
        check_number("row_bound", self.row_bound, minimum=1.0, maximum=1e6, optional=True)
        check_truth("robust", self.robust, optional=True)
        settled = self._with_floats(*(("row_bound",) if self.row_bound is not None else ()))
        settled.n_steps, settled.n_replicates = int(self.n_steps), int(self.n_replicates)
        settled.robust = None if self.robust is None else bool(self.robust)
        return settled


def _edge(problem: Problem, most: float) -> float:
    """Return the expected half edge of the noise of a sum of matrices with the whole budget, over their mean; from public facts.

    ``most`` is the largest factor of a row, without its weight, over the mean one.
    """
    if not problem.budget.private:
        return 0.0
    k = problem.shape[0]
    return half_vector_noise(problem) * ROW_BOUND**2 * k * math.sqrt(k / 2) * most


def _of_normal(threshold: float) -> tuple[float, float]:
    """Return mean second derivative and mean squared slope of Huber's loss, for standard normal residuals."""
    # Huber's slope is r within the threshold t and t beyond: E[r^2; |r| < t] + t^2 P(|r| > t), by parts.
    inside, density = 2 * float(ndtr(threshold)) - 1, math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi)
    return inside, inside - 2 * threshold * density + threshold**2 * (1 - inside)


def _with_records(problem: Problem, n_samples: int) -> Problem:
    """Return the same problem with another number of records, and with the default delta of these if that is smaller."""
    delta = min(problem.budget.delta, default_delta(n_samples))
    return replace(problem, n_samples=n_samples, budget=replace(problem.budget, delta=delta))


def _signal_undone(unlearned: Unlearned, estimates: np.ndarray, frame: Frame) -> float:
    """Return what the steps leave undone of the raw predictions along their own direction: a root mean square over records."""
    d = frame.geometry.centre.size
    # Unit vector along the coefficients of the features; raw predictions have the second moment `curvature` in z.
    along = np.append(estimates[:d], np.zeros(len(estimates) - d))
    along /= max(float(np.linalg.norm(along)), 1e-300)
    (squared,) = unlearned.along(along[None], estimates)
    return math.sqrt(float(squared) * float(frame.curvature @ np.square(along)))

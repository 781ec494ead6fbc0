"""Fit linear classifiers by gradient descent on privately standardised features, then calibrate them: the untuned default."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdp._validation import check_integer, check_number
from skdp.privacy.queries import (
    Gradient,
    Loss,
    SecondMoment,
    ShortenedGradient,
    Standardization,
    StandardizedGradient,
    Whitening,
    symmetric,
)
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, SolverResult
from skdp.solvers._class_frequencies import ClassFrequencies, class_frequencies, is_binary, labels_query
from skdp.solvers._coefficient_noise import CoefficientNoise
from skdp.solvers._noise_limits import FAINT
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._slope_steps import SlopeSteps
from skdp.solvers._standardization import (
    LEAST_SPREAD,
    Standard,
    mean_noise,
    moments,
    moments_release,
    outer_coefficients,
    released_moments,
    standard,
)
from skdp.solvers.adaptive._accelerated import AcceleratedSteps, accelerated
from skdp.solvers.adaptive._adaptive_solver import MOST_WHITENED, AdaptiveSolver
from skdp.solvers.adaptive._calibration import Calibration, CalibrationByCounts, CalibrationByGradients, CalibrationOfSlope, Level
from skdp.solvers.adaptive._counted_calibration import COUNTED, share_of_counts
from skdp.solvers.adaptive._iterate_noise import KnownSteps, NoisySteps, clipped_bend, mean_bend, variances_left, weighted_bend
from skdp.solvers.adaptive._shrinkage import half_edge
from skdp.solvers.adaptive._step_rules import CLIPPED, LEAST_PER_COEFFICIENT, MOST_PER_COEFFICIENT, WEIGHTED, StepRule, sharpness

# The constants were chosen on one half of a set of generated designs and confirmed on the other half (docs/defaults.md).

# Number of records above which a fit makes few passes: then a pass is what costs. A choice.
LARGE = 10**7
# Number of steps. With frequencies and two kinds of moments a fit has 38 passes; 25 steps left an excess log loss of 4e-4 where
# classes are nearly separated, 35 steps 3e-7.
FEW = 35
# Share of the second moment in what the steps would have. A choice: a larger value whitens better and makes gradients noisier.
MOMENT_SHARE = 0.05
# Norm to which standardised rows are clipped in the second moment, over their usual norm. 2 in place of 4 changed nothing.
WIDEST_ROW = 2.0
# Floor of the eigenvalues: FLOOR times the half edge of their noise, plus SINGULAR, which bounds the scale where noise is
# almost 0. Choices; a larger floor whitens less.
FLOOR, SINGULAR = 1.0, 1e-6
# Largest clip norm over the usual norm of a white row. Rows of skewed features are longer in these coordinates. A larger value
# has less bias and more noise.
WIDEST_WHITE_CLIP = 16.0
# First step length for several outputs, over that for one: the curvature of the softmax reaches its bound only between two
# classes. 1 in place of 1.5 left 5.6e-5 in place of 3.4e-5 where five classes are nearly separated.
LONGER = 1.5
# Share of the last steps whose points are averaged: .5 in place of .3 left 8e-5 where classes are nearly separated.
TAIL = 0.3


def moment_query(standard: Standard) -> SecondMoment:
    """Return the query for the second moment of standardised rows, over the square of the norm to which they are clipped."""
    geometry = standard.geometry
    scale = geometry.scale / (WIDEST_ROW * math.sqrt(standard.usual))
    return SecondMoment(Standardization(geometry.centre, scale, geometry.intercept, geometry.data_norm))


def moment_release(problem: Problem, share: float) -> Release:
    """Return the release of the second moment, with a share of the squared Gaussian-DP parameter."""
    size = problem.n_features * (problem.n_features + 1) // 2
    return Release(SecondMoment, Gaussian(share**-0.5), 1.0, size)


def whitened(problem: Problem, standard: Standard, answer: np.ndarray, share: float) -> Standard:
    r"""Return coordinates in which rows are white, from their released second moment.

    Parameters
    ----------
    problem : Problem
        Public facts.
    standard : Standard
        Centre and scale of the features.
    answer : ndarray of shape (d (d + 1) / 2,)
        Answer to `moment_query`.
    share : float
        Share of the squared Gaussian-DP parameter that the answer has.

    Returns
    -------
    Standard
        Coordinates :math:`z = A^\top (x - m)`. The columns of A are orthogonal, so that a ridge penalty on the coefficients
        of x is one on those of z.
    """
    d, adjacency = problem.n_features, problem.budget.adjacency
    unit = WIDEST_ROW**2 * standard.usual
    # The answer is over the unit to which rows were clipped, n times: back to the second moment of z, and its noise.
    relative = SecondMoment.relative_sensitivity[adjacency] / Gradient.relative_sensitivity[adjacency]
    noise = unit * relative / (problem.signal_to_noise * math.sqrt(share))
    values, vectors = np.linalg.eigh(unit * symmetric(answer / problem.n_samples, d))
    values = np.maximum(values, 0.0)
    # A0 = S V (h + f)^(-1/2), with the scale S of the first moments, whitens x - m. Its singular values give A0 = U T W', and A =
    # A0 W = U T whitens as well, up to a rotation by W, and has orthogonal columns. In those coordinates the variance of column k
    # is the sum of W_jk^2 h_j / (h_j + f_j).
    sizes = values + FLOOR * half_edge(noise, d) + SINGULAR
    rows, scale, turn = np.linalg.svd(standard.geometry.scale[:, None] * vectors / np.sqrt(sizes))
    variances = np.square(turn) @ (values / sizes)
    geometry = standard.geometry
    geometry = Whitening(geometry.centre, rows * scale, geometry.intercept, geometry.data_norm)
    return Standard(geometry, variances, max(float(geometry.intercept) + float(variances.sum()), LEAST_SPREAD))


def first_lengths(problem: Problem, classes: ClassFrequencies, smoothness: float) -> tuple[np.ndarray, float]:
    """Return the first step length of each output, and the largest one that is stable for every table.

    Parameters
    ----------
    problem : Problem
        Public facts.
    classes : ClassFrequencies
        Frequencies and weights of the classes.
    smoothness : float
        Largest second derivative of the loss.

    Returns
    -------
    first : ndarray of shape (n_outputs,)
        Steps for the geometric mean of the largest curvature and of that of a constant prediction: a rare class has a flat loss.
    stable : float
        The inverse of the largest curvature.
    """
    stable = classes.mean_weight / (problem.max_weight * smoothness)
    shares = np.array(classes.shares[-problem.loss.n_outputs :])
    if problem.class_weight is not None or classes.class_weight is not None:
        return np.full(problem.loss.n_outputs, stable), stable
    # A class of frequency p has at most the curvature p (1 - p) at a constant prediction, and 1/4 at the most elsewhere: the
    # geometric mean of p (1 - p) and 1/4 over 1/4 is 2 sqrt(p (1 - p)).
    longer = LONGER if problem.loss.n_outputs > 1 else 1.0
    return longer * stable / np.minimum(2 * np.sqrt(shares * (1 - shares)), 1.0), stable


# Where no source is named, the constants were chosen on adult, mammography, spambase and ijcnn1, and confirmed on bank, mnist,
# covertype and a generated table (docs/defaults.md). Half or twice those that were varied moved the mean AUC by less than fits
# differ.

# Default number of steps: WORK / (n * stored features * outputs), which counts the cells of X that all passes read together,
# within [FEWEST_STEPS, MOST_BY_DEFAULT]; NOISELESS for epsilon=inf. 30 and 120 steps instead of 60 moved the mean AUC by at most
# .002.
WORK, FEWEST_STEPS, MOST_BY_DEFAULT, NOISELESS = 2.5e8, 30, 100, 1000
# From a signal-to-noise ratio of FEW_SUFFICE on there are at least FEWEST_STEPS + FURTHER * log(ratio / FEW_SUFFICE) steps,
# because each forgets a fixed share of the start. Measured on generated tables: at a million records 30 steps left an excess log
# loss of 2.6e-4, 72 steps 1e-5 (docs/defaults.md).
FEW_SUFFICE, FURTHER = 5e4, 55
# Largest number of steps that is accepted. A choice.
MOST_GIVEN = 10**7
# Least and largest share of the squared Gaussian-DP parameter for the class frequencies. Choices.
LABELS_SHARE, MOST_FOR_LABELS = 0.01, 0.4
# Accuracy that a fit may lose on average by not knowing the larger class: the first number, plus the second over n * epsilon. It
# sets the share of the class frequencies: of 22 generated problems below the best constant, 2 are left (docs/defaults.md).
TOLERATED = 0.005, 1.5
# Largest x * Phi(-x): the loss m * Phi(-m t) of accuracy for frequencies that differ by m, times their signal-to-noise ratio t.
WORST_LOSS = 0.17
# Least total step length, for gradients of the mean loss at standardised rows. A choice.
SHORTEST_PATH = 5.0
# Largest clip norm over the usual norm of a standardised row, once noise no longer limits the fit. At a million records the
# excess loss was 1e-5 with 1, and 3e-6 with 4 and more steps (docs/defaults.md). A larger value has less bias and more noise
# there.
WIDEST_CLIP = 4.0
# Largest value that is accepted for `clip`, `noise` and `ridge`: a choice that keeps their products finite.
LARGEST_FACTOR = 1e6
# SHRINK times the noise that the squared length of the coefficients gathers on the way is taken off it, if the curvature is DECAY
# times the variance of a feature; the factor is at least LEAST_KEPT. Choices that matter only where noise is all there is.
DECAY, SHRINK, LEAST_KEPT = 0.1, 0.6, 0.02
# Calibration of the scores of several classes, with the least of its shares; where noise is larger the share is up to that of two
# classes. Up to .2, as for counts, gained nothing, and cost .002 of AUC at ratios of 73 and 141.
# Chosen on bike, adult, mnist and made-up tables of 3 to 10 classes (docs/defaults.md): best slopes were .34 to 1.3, most .5 to
# .7. Offsets gained .005 on one table, and lost as much on others, accuracy too.
SEVERAL = SlopeSteps(share=0.02, n_steps=2, mean=0.6, spread=0.3)
# Smoothness up to which the longest step holds (that of softmax). A choice.
ROUND = 0.5


@dataclass(frozen=True)
class Descent:
    """Settings of the steps, from the first two releases.

    Parameters
    ----------
    standard : Standard
        Centre and scale of the features.
    classes : ClassFrequencies
        Start of the intercept, and weights of the classes.
    clip_norm : float
        Bound on the norm of one record's gradient.
    path : float
        Total step length, for gradients divided by the mean weight of a record.
    rule : StepRule
        Constants of the steps.
    """

    standard: Standard
    classes: ClassFrequencies
    clip_norm: float
    path: float
    rule: StepRule

    def gradient(self, problem: Problem, coef: np.ndarray) -> StandardizedGradient:
        """Return the query of a step."""
        loss, weights = self.rule.loss_of_steps(problem.loss), self.classes.class_weight
        if self.rule.weighted:
            return ShortenedGradient(
                loss, coef, self.clip_norm, self.standard.geometry, class_weight=weights, largest_weight=problem.max_weight
            )
        return StandardizedGradient(loss, coef, self.clip_norm, self.standard.geometry, class_weight=weights)


class FirstReleases(NamedTuple):
    """What the first two releases say.

    Parameters
    ----------
    standard : Standard
        Centre and scale of the features.
    classes : ClassFrequencies
        Start of the intercept, and weights of the classes.
    level : Level
        Class frequencies for the calibration.
    spread : float
        Noise of the moments, over n.
    released : ReleasedMoments
        The moments themselves.
    """

    standard: Standard
    classes: ClassFrequencies
    level: Level
    spread: float
    released: ReleasedMoments


@dataclass(eq=False, repr=False)
class StandardizedGradientDescent(AdaptiveSolver):
    r"""Clipped gradient descent with momentum on privately standardised features, then private calibration.

    1. One release has the class frequencies, which give the start of the intercept. One has the sums of ``(x, x * x / R)``, which
       give the mean m of the features, their variances, and a scale p. The variances get a floor that follows the noise, so that
       the scale does not amplify noise.
    2. T steps of momentum follow, on clipped gradients of :math:`z = (p (x - m), 1)`. The clip norm is a quarter of the usual
       norm :math:`\sqrt\rho` of z, which follows from the moments. The total step length is the one at which a raw prediction
       gathers a noise of 3 (less for unbalanced classes and faint signals), so it follows from n, the budget and :math:`\rho`.
       Where it would exceed 1600, or 27 a step (6.75 over the smoothness of the loss, for hinges), the clip norm grows instead,
       by the root of the excess, up to four usual norms.

       For two classes and the logistic loss, and a signal-to-noise ratio per coefficient from 50 to 2000, nothing is clipped: the
       clip would have a bias that the noise no longer hides. The slopes are those of the bounded proper loss
       (`skdp.losses.BoundedProper`), which are at most 1/2 and have the log-odds as their root, and a row weighs
       :math:`\min(1, .7 \sqrt\rho / \lVert z \rVert)`. The noise of a raw prediction is 2 then, and the longest path 3400.
    3. For two classes, 30 clipped gradients in two dimensions refit slope and offset of the score, because the clip of stage 2
       leaves the order of predictions right but not their probabilities. For the logistic loss, the offset starts at the released
       class frequencies, and the lengths of the steps follow from the curvature that normal scores would have and from the noise,
       so that in a direction that noise hides nothing is learned. For a signal-to-noise ratio below 150, one release counts the
       records by class and score instead, in eight ranges. Scores of a class count as normal there, and slope and offset have the
       least log loss on average over the posterior, given the known noise.

       For more than two classes, two noisy Newton steps in a factor of all scores replace this, with a normal prior. Factors
       below its mean lead to the class frequencies, since scores are mostly noise there. Scores of hinges have no third stage.

    Above ten million records a pass over the data is what costs. Where the second stage would have more than 35 steps, and for at
    most 1024 features, one more release has the second moment of z. The steps are then 35 accelerated ones in coordinates in
    which rows are white. The clip is so wide that two classes need no third stage. That makes 38 passes over the data, and 40
    for more classes.

    Where only the order counts, for `skdp.DPAUCMaximizer`, there is no third stage, and its share goes to the steps. Public class
    frequencies are not released. With ``class_balance`` b, gradients of the larger class are multiplied by
    :math:`(p_{min} / p_{maj})^b` before the clip, with the frequencies of stage 1. Their sum is divided by the mean weight, and
    the noise that a raw prediction may gather follows the weighted frequencies.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of gradient steps T. None takes between 30 and 100, fewer on larger tables. Where noise hardly limits the fit, it
        takes more, by the logarithm of n, or 35 accelerated steps above ten million records; 1000 for ``epsilon=inf``.
    labels_share : float or None, default=None
        Share of the squared Gaussian-DP parameter that the class frequencies get, in (0, 1). None takes 0.01, and up to 0.4 on
        small tables, where not knowing the larger class would cost accuracy. Not used for public frequencies.
    moments_share : float, default=0.09
        Share for the moments of the features, in (0, 1).
    calibration_share : float or None, default=None
        Share for the calibration, in (0, 1); the steps get the rest. None takes 0.05, or 0.02 where nothing is clipped, and up to
        0.2 for counts; for more than two classes 0.02 to 0.05. Not used where only the order counts.
    n_calibration_steps : int, default=30
        Number of steps of the calibration. Not used for counts, nor for more than two classes.
    clip : float or None, default=None
        Clip norm over the usual norm of a record's gradient, with which gradients are clipped whatever the size of the table.
        A short one makes a robust loss: its accuracy can be higher than without privacy, and its probabilities are biased. None
        takes 0.25, and clips nothing where stage 2 says so.
    noise : float or None, default=None
        Noise of a raw prediction that sets the total step length. None takes 3, or 2 where nothing is clipped.
    ridge : float, default=1.0
        L2 penalty on the coefficients of the standardised features, times n: scikit-learn's ``1 / C`` after a StandardScaler.
    momentum : float, default=0.8
        Heavy-ball coefficient in [0, 1).
    tail_average : float, default=0.5
        Fraction of the last iterates that are averaged, in [0, 1].

    Notes
    -----
    Steps of constant length do not settle at a kink. While noise limits the fit, it blurs kinks, and the average of the last
    iterates settles: "hinge" then has the steps of "huber_hinge". For ``epsilon=inf`` its step lengths fall linearly to 0.

    The estimator's ``alpha`` is a further penalty, on the coefficients of the unscaled features, 0 by default. Its
    ``clip_norm`` overrides ``clip``; it bounds gradients in z.

    **Privacy.** One Gaussian release of the class frequencies (sensitivity 1; 2 under ``replace_one``, for more than two classes
    :math:`\sqrt 2`), one of the moments (:math:`\sqrt 2 R`; :math:`3 R / \sqrt 2` under ``replace_one``), in few passes one of
    the second moment (1; :math:`\sqrt 2` under ``replace_one``), T of clipped gradients (k C) and, in many passes, 30 of
    slope and offset (2 k; 8 k for the squared hinge), two in a factor of several scores (:math:`\sqrt 2 k`) or one of counts (1;
    :math:`\sqrt 2` under ``replace_one``). Their Gaussian-DP parameters square and add up to that of the budget.
    Centre, scale, weights of the classes, clip norm and step length depend on earlier releases only, and the noise multiplier of
    every release is fixed in advance. Weights do not enter the sensitivity: the clip is applied after them.
    Public: the shape of the table, the data norm R, and every parameter, including a given share of the second class.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 4: the steps.
    .. [2] A. Buja, W. Stuetzle, Y. Shen, "Loss functions for binary class probability estimation and classification", 2005:
       proper losses.
    .. [3] J. Platt, "Probabilistic outputs for support vector machines", 1999: calibration by slope and offset.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import StandardizedGradientDescent
    >>> model = DPLogisticRegression(epsilon=1.0, solver=StandardizedGradientDescent(n_steps=50))
    """

    name = "standardized_gd"
    title = "gradient descent on privately standardised features, with private calibration"
    needs = frozenset({"classes", "convex", "plain"})
    takes_weights = True

    n_steps: int | None = None
    _: KW_ONLY
    labels_share: float | None = None
    moments_share: float = 0.09
    calibration_share: float | None = None
    n_calibration_steps: int = 30
    clip: float | None = None
    noise: float | None = None
    ridge: float = 1.0
    momentum: float = 0.8
    tail_average: float = 0.5

    def title_for(self, problem: Problem) -> str:
        """Return the title: without the calibration if the fit has none, and with what bounds the gradients."""
        title = self.title if self._calibrates(problem) else self.title.split(",")[0]
        if not self._weighs(problem):
            return title
        ratio = problem.signal_to_noise / (problem.n_features + 1)
        return f"{title}; no gradient is clipped, because the signal-to-noise ratio per coefficient is {ratio:.3g}"

    def _schedule(self, problem: Problem) -> Schedule:
        labels, n_steps = labels_query(problem), self._steps(problem)
        steps = ShortenedGradient if self._weighs(problem) else StandardizedGradient
        # One release with the share s of the squared Gaussian-DP parameter has the noise weight s**-0.5, and T releases that
        # share s have (T / s)**0.5: the inverse squares of all weights add up to 1.
        clip_norm = problem.clip_norm if problem.clip_norm < math.inf else None
        entries = [
            (1, moments_release(problem, self.moments_share**-0.5)),
            (n_steps, Release(steps, Gaussian(math.sqrt(n_steps / self._steps_share(problem))), clip_norm)),
        ]
        if self._few_passes(problem):
            # In the order of `_solve`: frequencies, moments, second moment in few passes, steps, calibration.
            entries.insert(1, (1, moment_release(problem, self._whitening_share(problem))))
        if labels is not None:
            weight = self._labels_share(problem) ** -0.5
            entries.insert(0, (1, Release(type(labels), Gaussian(weight), labels.clip_norm, labels.size)))
        if calibration := self._calibration(problem):
            entries.append(calibration.entry(problem))
        return Schedule(tuple(entries))

    def _solve(self, problem: Problem, ask: Ask) -> SolverResult:
        # 1. Class frequencies and moments: the start of the intercept, centre and scale of the features
        first = self._first_releases(problem, ask)
        # 2. Steps on standardised rows
        descent = self._planned(problem, first.standard, first.classes)
        average, steps = self._descend(problem, descent, ask)
        # 3. Slope and offset of the score
        coef, slope_variance, calibration = average, 0.0, self._calibration(problem)
        if not isinstance(calibration, CalibrationByCounts | CalibrationOfSlope):  # which learn the length of the coefficients
            coef = self._shrunk(problem, descent, average)
        penalty = self._penalty(problem, first.standard)
        if calibration is not None:
            coef, slope_variance = calibration.refit(problem, first.standard, penalty, coef, first.level, ask)
        noise = self._noise_left(problem, first, descent, steps, penalty, average, coef, slope_variance)
        rows = outer_coefficients(problem, first.standard.geometry, coef)
        return SolverResult(rows, self._steps(problem), noise=noise, moments=first.released)

    def _first_releases(self, problem: Problem, ask: Ask) -> FirstReleases:
        """Ask for the class frequencies, the moments of the features, and in few passes for their second moment."""
        labels, query = labels_query(problem), moments(problem)
        counts = None if labels is None else ask(labels) / problem.n_samples
        noise = 0.0 if labels is None else mean_noise(problem, labels, self._labels_share(problem))
        spread = mean_noise(problem, query, self.moments_share)
        answer = ask(query)
        features = standard(problem, answer, spread)
        if self._few_passes(problem):
            features = whitened(problem, features, ask(moment_query(features)), self._whitening_share(problem))
        classes = class_frequencies(problem, counts, noise)
        level = Level(None if counts is None else float(counts[0]), noise, classes.start)
        return FirstReleases(features, classes, level, spread, released_moments(problem, answer, spread))

    def _noise_left(
        self,
        problem: Problem,
        first: FirstReleases,
        descent: Descent,
        steps: NoisySteps | AcceleratedSteps,
        penalty: np.ndarray,
        average: np.ndarray,
        coef: np.ndarray,
        slope_variance: float,
    ) -> CoefficientNoise:
        """Return what noise has left in the coefficients, by the curvature that the released scores imply."""
        features = first.standard
        # 1. The mean second derivative that the steps see, for a row of the usual length: of the records that the clip leaves
        # alone, or of the bounded loss times the weight of the row.
        cap = descent.clip_norm / math.sqrt(features.usual)
        cap = 0.0 if descent.classes.class_weight else cap  # weights change which records are clipped: curvature counts as 0
        bend_of = partial(weighted_bend, weight=min(2 * cap, 1.0)) if descent.rule.weighted else partial(clipped_bend, cap=cap)
        bend = mean_bend(problem, features, bend_of, average)
        # 2. Variances at that curvature, of the released coefficients; and those from the noise of the scale.
        of_steps, of_scale = variances_left(problem, features, steps, penalty, bend, average, coef, self.moments_share)
        # 3. Where the curvature is known, the steps themselves are kept: they give the noise along any direction of the features.
        known = None
        if bend and problem.budget.private and isinstance(steps, NoisySteps):
            found, kept = (float(np.linalg.norm(some[: problem.n_features])) for some in (average, coef))
            factor = kept / max(found, 1e-300)
            known = KnownSteps(steps, bend, float(penalty.min()), factor, of_scale[: problem.n_features, 0])
        variances = of_steps + of_scale
        return CoefficientNoise(features.geometry, coef, variances, slope_variance, centre_noise=first.spread, steps=known)

    def _planned(self, problem: Problem, features: Standard, classes: ClassFrequencies) -> Descent:
        rule = self._rule(problem)
        usual, steepest = features.usual, rule.loss_of_steps(problem.loss).lipschitz
        bound = problem.max_weight * steepest
        # 1. The path. On a path of length K the noise of a raw prediction grows to K C sqrt(usual) / s, with the signal-to-noise
        # ratio s and the clip norm C = clip * slope * sqrt(usual). K is such that this is the noise of the rule, and shorter for
        # unbalanced classes and for signals that noise hides. Gradients are divided by the mean weight of a record.
        faint = min(1.0, problem.signal_to_noise / FAINT) ** 2
        path = faint * rule.noise * classes.balance**rule.balance * problem.signal_to_noise / (rule.clip * steepest * usual)
        path *= classes.mean_weight
        # 2. The clip norm. Beyond the longest path noise does not limit the fit. Instead of the path the clip norm grows, by the
        # root of the excess: half of the excess goes to less bias, half to less noise.
        longest = min(rule.longest_path, _longest_step(problem.loss, rule) * self._steps(problem))
        widest = WIDEST_WHITE_CLIP if self._few_passes(problem) else WIDEST_CLIP
        opened = rule.clip * (1.0 if rule.weighted else max(1.0, min(math.sqrt(path / longest), widest / rule.clip)))
        opened = opened if problem.budget.private else math.inf
        # No row is longer than `largest_norm`, so a larger clip norm would only add noise.
        clip_norm = bound * min(opened * math.sqrt(usual), features.geometry.largest_norm)
        if problem.clip_norm < math.inf:
            clip_norm = problem.clip_norm
        return Descent(features, classes, clip_norm, min(max(path, faint * SHORTEST_PATH), longest), rule)

    def _descend(self, problem: Problem, descent: Descent, ask: Ask) -> tuple[np.ndarray, NoisySteps | AcceleratedSteps]:
        """Return the average of the last iterates, in the geometry of standardised rows, and the steps."""
        steps, classes = self._planned_steps(problem, descent), descent.classes
        n_steps, first, step_size = steps.n_steps, steps.warm_up, steps.step
        coef = np.zeros(problem.shape)
        coef[problem.n_features :] = classes.start
        penalty = self._penalty(problem, descent.standard)

        def mean_gradient(coef: np.ndarray) -> np.ndarray:
            return ask(descent.gradient(problem, coef)).reshape(problem.shape) / (problem.n_samples * classes.mean_weight)

        if self._few_passes(problem):
            ridge = np.concatenate([penalty, np.zeros((problem.shape[0] - problem.n_features, 1))])
            counts = n_steps, n_steps - round(TAIL * n_steps)
            lengths = first_lengths(problem, classes, sharpness(problem.loss))
            return accelerated(mean_gradient, coef, lengths, ridge, counts, steps.noise)
        falling = not problem.budget.private and problem.loss.smoothness == math.inf  # else the iterates oscillate at a kink
        # Heavy ball with an implicit step of the ridge penalty. A step with momentum m moves 1 / (1 - m) times as far in the end,
        # which is what the penalty is multiplied by.
        velocity, average = np.zeros(problem.shape), np.zeros(problem.shape)
        for step in range(n_steps):
            velocity = self.momentum * velocity + mean_gradient(coef)
            length = step_size * (1 - step / n_steps if falling else 1.0)
            coef = coef - length * velocity
            coef[: problem.n_features] /= 1 + length / (1 - self.momentum) * penalty  # implicit: stable for every penalty
            if step >= first:
                average += coef / (n_steps - first)
        return average, steps

    def _planned_steps(self, problem: Problem, descent: Descent) -> NoisySteps:
        n_steps, mean_weight = self._steps(problem), descent.classes.mean_weight
        # T steps of this size make the path, since each step moves 1 / (1 - momentum) times its size in the end. `_planned` takes
        # the slope of a record of weight 1, and gradients are as long as the largest weight allows.
        step_size = descent.path * (1 - self.momentum) / (n_steps * problem.max_weight)
        if not problem.budget.private:  # nothing is clipped, so the step has to be stable
            stable = 1.5 * (1 + self.momentum) / (problem.max_weight * sharpness(problem.loss) * descent.standard.usual)
            step_size = min(step_size, stable * mean_weight)  # a class may weigh 1 / mean_weight times the mean
        first = n_steps - max(1, round(self.tail_average * n_steps))
        noise = descent.clip_norm * math.sqrt(n_steps / self._steps_share(problem)) / (problem.signal_to_noise * mean_weight)
        return NoisySteps(n_steps, first, step_size, self.momentum, noise)

    def _shrunk(self, problem: Problem, descent: Descent, coef: np.ndarray) -> np.ndarray:
        """Return the coefficients without the length that is due to noise; this matters only where noise is all there is."""
        variances, features = descent.standard.variances, slice(problem.n_features)
        noise = (
            descent.clip_norm
            / (problem.max_weight * descent.classes.mean_weight)
            / (problem.signal_to_noise * math.sqrt(self._steps_share(problem)))
        )
        # A path K gathers noise of variance K**2 noise**2 per coefficient without curvature, and with it K noise**2 (1 - exp(-2
        # decay K)) / (2 decay): the second factor K is the time for which an error lasts. Coefficients count with the variance of
        # their feature, so that `length` and `expected` are variances of raw predictions.
        decay = DECAY * variances + 1e-12
        gathered = variances * descent.path * -np.expm1(-2 * decay * descent.path) / (2 * decay)
        length = float((variances[:, None] * coef[features] ** 2).sum())
        expected = noise**2 * float(gathered.sum()) * problem.loss.n_outputs
        kept = coef.copy()
        kept[features] *= max(LEAST_KEPT, 1 - SHRINK * expected / max(length, 1e-30))
        return kept

    def _penalty(self, problem: Problem, standard: Standard) -> np.ndarray:
        """Return the strength of the L2 penalty on each coefficient, in the geometry of standardised rows."""
        scale = standard.geometry.scale
        squares = scale**2 if scale.ndim == 1 else np.square(scale).sum(axis=0)  # the columns of a matrix are orthogonal
        return problem.alpha * squares[:, None] + self.ridge / problem.n_samples

    def _labels_share(self, problem: Problem) -> float:
        """Return the share at which not knowing the larger class costs the tolerated accuracy."""
        problem = problem.planned
        if labels_query(problem) is None:
            return 0.0
        if self.labels_share is not None:
            return float(self.labels_share)
        # With frequencies that differ by m, noise of standard deviation 1 / (s share**0.5) on the difference makes the smaller
        # class look the larger one with probability Phi(-m s share**0.5). The loss of accuracy, m times that, is at most
        # WORST_LOSS / (s share**0.5) for every m; the share is that at which this is the tolerated loss.
        per_record, per_budget = TOLERATED
        tolerated = per_record + per_budget / (problem.n_samples * problem.budget.epsilon)
        return min(max((WORST_LOSS / (problem.signal_to_noise * tolerated)) ** 2, LABELS_SHARE), MOST_FOR_LABELS)

    def _shared_by_steps(self, problem: Problem) -> float:
        """Return the share of the steps and of the whitening before them."""
        calibration = self._rule(problem).calibration_share if self._calibrates(problem) else 0.0
        return 1 - self._labels_share(problem) - self.moments_share - calibration

    def _whitening_share(self, problem: Problem) -> float:
        return MOMENT_SHARE * self._shared_by_steps(problem) if self._few_passes(problem) else 0.0

    def _steps_share(self, problem: Problem) -> float:
        return self._shared_by_steps(problem) - self._whitening_share(problem)

    def _calibrates(self, problem: Problem) -> bool:
        """Return whether there is a calibration: unless only the order counts, or a wide clip, or none, needs none.

        Scores of several classes are calibrated as logarithms of probabilities, which those of hinges are not.
        """
        several = problem.budget.private and getattr(problem.loss, "log_probabilities", False)
        needed = not self._few_passes(problem) if is_binary(problem) else several
        return needed and "pointwise" in problem.offers

    def _calibration(self, problem: Problem) -> Calibration | None:
        """Return the third stage, if there is one."""
        if not self._calibrates(problem):
            return None
        rule = self._rule(problem)
        if not is_binary(problem):
            return CalibrationOfSlope(replace(SEVERAL, share=rule.calibration_share))
        if self._counts_scores(problem):
            return CalibrationByCounts(rule.calibration_share)
        curved = problem.budget.private and not rule.weighted and getattr(problem.loss, "log_odds", False)
        n_steps, momentum = int(self.n_calibration_steps), float(self.momentum)
        return CalibrationByGradients(rule.calibration_share, rule.calibration_noise, n_steps, momentum, curved)

    def _counts_scores(self, problem: Problem) -> bool:
        """Return whether the calibration counts records by score: for a loss of log-odds, where the signal is faint."""
        faint = problem.planned.signal_to_noise < COUNTED and getattr(problem.loss, "log_odds", False)
        return faint and self._calibrates(problem) and labels_query(problem) is not None

    def _few_passes(self, problem: Problem) -> bool:
        """Return whether passes are what costs, and whitening replaces most of them."""
        large = problem.planned.n_samples > LARGE and problem.n_features <= MOST_WHITENED
        return large and self.n_steps is None and problem.budget.private and self._many_steps(problem) > FEW

    def _rule(self, problem: Problem) -> StepRule:
        """Return the constants of the steps, from public facts."""
        names = "clip", "noise", "calibration_share"
        given: dict[str, Any] = {name: float(value) for name in names if (value := getattr(self, name)) is not None}
        if self._counts_scores(problem):
            left = 1 - self._labels_share(problem) - float(self.moments_share)
            given.setdefault("calibration_share", min(share_of_counts(problem.planned.signal_to_noise), left / 2))
        elif not is_binary(problem):
            faint = share_of_counts(problem.planned.signal_to_noise)
            given.setdefault("calibration_share", min(max(SEVERAL.share, faint), CLIPPED.calibration_share))
        return replace(WEIGHTED if self._weighs(problem) else CLIPPED, **given)

    def _weighs(self, problem: Problem) -> bool:
        """Return whether slopes of the bounded proper loss replace clipped ones: for two classes, where noise allows it."""
        if self.clip is not None or problem.clip_norm < math.inf or not getattr(problem.loss, "log_odds", False):
            return False
        ratio = problem.planned.signal_to_noise / (problem.n_features + 1)
        return LEAST_PER_COEFFICIENT <= ratio < MOST_PER_COEFFICIENT and self._calibrates(problem)

    def _steps(self, problem: Problem) -> int:
        if self.n_steps is not None:
            return int(self.n_steps)
        return FEW if self._few_passes(problem) else self._many_steps(problem)

    def _many_steps(self, problem: Problem) -> int:
        """Return the number of steps without whitening."""
        problem = problem.planned
        if not problem.budget.private:
            return NOISELESS
        # As many steps as the work allows, and where noise hardly limits the fit as many as it takes to forget the start.
        cells = problem.n_samples * (problem.n_stored or problem.n_features) * problem.loss.n_outputs
        affordable = min(max(WORK / cells, FEWEST_STEPS), MOST_BY_DEFAULT)
        further = FURTHER * math.log(max(problem.signal_to_noise / FEW_SUFFICE, 1.0))
        return int(min(max(affordable, FEWEST_STEPS + further), NOISELESS))

    def _validated(self, problem: Problem) -> AdaptiveSolver:
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_GIVEN, optional=True)
        check_integer("n_calibration_steps", self.n_calibration_steps, minimum=1, maximum=MOST_GIVEN)
        check_number("labels_share", self.labels_share, above=0.0, below=1.0, optional=True)
        left = 1 - self._labels_share(problem)
        check_number("moments_share", self.moments_share, above=0.0, below=left)
        check_number(
            "calibration_share", self.calibration_share, above=0.0, below=left - float(self.moments_share), optional=True
        )
        check_number("clip", self.clip, above=0.0, maximum=LARGEST_FACTOR, optional=True)
        check_number("noise", self.noise, above=0.0, maximum=LARGEST_FACTOR, optional=True)
        check_number("ridge", self.ridge, minimum=0.0, maximum=LARGEST_FACTOR)
        check_number("momentum", self.momentum, minimum=0.0, below=1.0)
        check_number("tail_average", self.tail_average, minimum=0.0, maximum=1.0)
        settled = self._with_floats("moments_share", "ridge", "momentum", "tail_average")
        settled.n_calibration_steps = int(self.n_calibration_steps)
        return settled


def _longest_step(loss: Loss, rule: StepRule) -> float:
    """Return the largest step on average: that of the logistic loss, or less by the ratio of the smoothness to its 1/4."""
    return rule.longest_step if loss.smoothness <= ROUND else rule.longest_step / (4 * sharpness(loss))

"""Refit slope and offset of a score of two classes, or the slope of several scores: the last stage of standardized_gd."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from skdp.privacy.queries import ScoreCounts, ScoreGradient, SlopeDerivatives
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers._base import Ask, Problem
from skdp.solvers._slope_steps import LEAST_SLOPE, LONGEST_MOVE, SlopeSteps
from skdp.solvers._standardization import Standard, mean_noise, outer_coefficients
from skdp.solvers.adaptive._counted_calibration import CUTS, UNIT, calibrated_line
from skdp.solvers.adaptive._iterate_noise import NoisySteps, bend_of_calibration
from skdp.solvers.adaptive._step_rules import sharpness

# Standard deviation of slope and offset around the start that the steps count with. A larger one learns more, and more noise.
# Excess log loss, in sum over 15 cells of adult, ijcnn1, mammography, spambase, long rows and made-up tables: .203 with .4, .179
# with .6, .180 with .7, .204 with 1 (docs/defaults.md).
PRIOR = 0.6
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def step_matrix(
    point: np.ndarray, free: np.ndarray, penalty: float, class_weight: tuple[float, ...] | None, noise: float, n_steps: int
) -> np.ndarray:
    r"""Return the matrix by which the gradient of a step is multiplied.

    Scores count as standard normal, which gives the curvature h of the log loss in two directions. After a path P, a descent has
    learned the share :math:`1 - e^{-P h}` of what is left. A posterior mean has learned :math:`x / (1 + x)`, with
    :math:`x = (h \tau / g)^2` for a prior of standard deviation :math:`\tau` and noise g. Both agree for
    :math:`P = \log(1 + x) / h`. The path is :math:`2 \log(1 + x / 2) / h`: the same for small x, and longer for large x, because
    the second half of the iterates is averaged.

    Parameters
    ----------
    point : ndarray of shape (2,)
        Slope and offset.
    free : ndarray of shape (2,)
        1 where a coordinate moves, else 0.
    penalty : float
        Curvature of the penalty on the slope.
    class_weight : tuple of float or None
        Factor of each record's loss, by class.
    noise : float
        Standard deviation of the noise of the mean gradient, if all of the budget of the calibration were in one.
    n_steps : int
        Number of steps over which the path is divided.

    Returns
    -------
    ndarray of shape (2, 2)
        Symmetric, positive semidefinite.
    """
    # Probabilities of the weighted problem at normal scores, by quadrature. Where they are p, a record is of the second class
    # with probability p f / (p f + (1 - p) s) for the weights f and s of the classes, so its mean weight is f s / (p f + (1 - p)
    # s).
    p = expit(point[0] * NODES + point[1])
    first, second = class_weight or (1.0, 1.0)
    bend = WEIGHTS * p * (1 - p) * (first * second / (p * first + (1 - p) * second))
    # Second derivatives in slope and offset, and their eigenvectors. A coordinate that does not move is left out.
    columns = np.column_stack([NODES, np.ones_like(NODES)]) * free
    curvature, directions = np.linalg.eigh((columns.T * bend) @ columns + np.diag([penalty, 0.0]))
    curvature = np.maximum(curvature, 1e-12)
    # Along each eigenvector the steps make a path of their own, short where noise hides the curvature.
    path = 2 * np.log1p(np.square(curvature * PRIOR / noise) / 2) / curvature
    return np.asarray((directions * (path / n_steps)) @ directions.T * np.outer(free, free))


# Clip norm of the gradients of slope and offset, over the largest slope of the weighted loss. A choice: it clips records with
# the largest slope and a score beyond 1.7.
CALIBRATION_CLIP = 2.0
# Least variance of a standardised feature in the size of a score: noise can leave no feature any. A choice.
LEAST_SHOWN = 1e-3
# Least length of a score up to which it counts as it is: noise can leave no score any. A choice.
LEAST_REACH = 0.1
# Added to the variance of the score, so that a score that is mostly noise is not scaled up. A choice.
SCORE_OFFSET = 0.25


class Level(NamedTuple):
    """What is known of the frequencies of the classes.

    Parameters
    ----------
    difference : float or None
        Released frequency of the second class minus that of the first; None if it is not released.
    noise : float
        Standard deviation of its noise.
    start : ndarray of shape (n_outputs,)
        Best constant raw predictions.
    """

    difference: float | None
    noise: float
    start: np.ndarray


class Calibration(Protocol):
    """Define a calibration: its releases, and the coefficients that follow from them."""

    def entry(self, problem: Problem) -> tuple[int, Release]:
        """Return its entry of the schedule."""
        ...

    def refit(
        self, problem: Problem, standard: Standard, penalty: np.ndarray, coef: np.ndarray, level: Level, ask: Ask
    ) -> tuple[np.ndarray, float]:
        """Return coefficients of standardised rows with new slope and offset, and the relative variance of the slope."""
        ...


@dataclass(frozen=True)
class CalibrationByCounts:
    """Take the slope and offset that noisy counts by class and score make likely.

    Parameters
    ----------
    share : float
        Share of the squared Gaussian-DP parameter.
    """

    share: float

    def entry(self, problem: Problem) -> tuple[int, Release]:
        """Return one release of counts."""
        query = ScoreCounts(np.zeros(problem.shape), CUTS)
        return 1, Release(ScoreCounts, Gaussian(self.share**-0.5), query.clip_norm, query.size)

    def refit(
        self, problem: Problem, standard: Standard, penalty: np.ndarray, coef: np.ndarray, level: Level, ask: Ask
    ) -> tuple[np.ndarray, float]:
        """Return the direction of the coefficients, of a known length, times the slope; and the offset."""
        features = slice(problem.n_features)
        # 1. A score of known size: the direction of the coefficients, scaled so that its standard deviation is UNIT, by the
        # released variances of the features and as if these were independent.
        shown = np.maximum(standard.variances, LEAST_SHOWN)[:, None]
        length = math.sqrt(max(float((shown * coef[features] ** 2).sum()), 1e-300))
        direction = UNIT / length * coef
        direction[problem.n_features :] = 0.0
        score = outer_coefficients(problem, standard.geometry, direction)
        query = ScoreCounts(score, CUTS)
        # 2. Slope and offset that are likely given the noisy counts of this score.
        slope, offset, variance = calibrated_line(
            ask(query).reshape(2, -1) / problem.n_samples,
            mean_noise(problem, query, self.share),
            problem.n_samples,
            (level.difference or 0.0, level.noise),
            problem.class_weight,
            penalty=problem.alpha * float((np.square(score[features])).sum()),
            intercept=bool(problem.intercept_scaling),
        )
        slope = max(slope, LEAST_SLOPE)
        # 3. The score times the slope; the offset replaces the intercept.
        direction *= slope
        direction[problem.n_features :] = offset
        return direction, variance / slope**2


@dataclass(frozen=True)
class CalibrationOfSlope:
    """Make noisy Newton steps in the slope of the scores of several classes, from the mean of its prior.

    At that slope and above, intercepts are multiplied, too, which leaves the likeliest class what it is. Below, they lead on a
    line to those of the class frequencies, at slope 0: so scores that are noise are not worse than no score.

    Parameters
    ----------
    steps : SlopeSteps
        Constants of the steps.
    """

    steps: SlopeSteps

    def entry(self, problem: Problem) -> tuple[int, Release]:
        """Return the releases of the steps."""
        return self.steps.entry(problem.loss.n_outputs, problem.max_weight)

    def refit(
        self, problem: Problem, standard: Standard, penalty: np.ndarray, coef: np.ndarray, level: Level, ask: Ask
    ) -> tuple[np.ndarray, float]:
        """Return the coefficients and intercepts times the slope, and its relative variance."""
        features, known = slice(problem.n_features), self.steps.mean
        start = np.zeros(coef.shape)
        start[problem.n_features :] = level.start

        def query_at(slope: float) -> SlopeDerivatives:
            base, line = (start[problem.n_features :].sum(axis=0), coef - start / known) if slope < known else (0.0, coef)
            # The reach is the root mean square length of a score, as if the features were independent.
            squares = np.square(line - line.mean(axis=1, keepdims=True)).sum(axis=1)
            squares[features] *= standard.variances
            return SlopeDerivatives(
                outer_coefficients(problem, standard.geometry, line),
                problem.loss.n_outputs,
                slope,
                problem.max_weight,
                base,
                max(math.sqrt(float(squares.sum())), LEAST_REACH),
            )

        noise = mean_noise(problem, query_at(known), self.steps.share / self.steps.n_steps)
        strength = float((penalty * coef[features] ** 2).sum())
        slope, variance = self.steps.slope(query_at, ask, problem.n_samples, noise, strength)
        return slope * coef + max(0.0, 1 - slope / known) * start, variance


@dataclass(frozen=True)
class CalibrationByGradients:
    """Descend in slope and offset on clipped gradients, and average the second half of the iterates.

    Parameters
    ----------
    share : float
        Share of the squared Gaussian-DP parameter.
    noise : float
        Noise that the raw predictions may gather on the way.
    n_steps : int
        Number of releases.
    momentum : float
        Largest momentum of plain steps.
    curved : bool
        Whether the lengths of steps follow from the curvature of normal scores, for log-odds, or from the noise alone.
    """

    share: float
    noise: float
    n_steps: int
    momentum: float
    curved: bool

    def entry(self, problem: Problem) -> tuple[int, Release]:
        """Return the releases of gradients."""
        return self.n_steps, Release(ScoreGradient, Gaussian(math.sqrt(self.n_steps / self.share)), _clip(problem), 2)

    def refit(
        self, problem: Problem, standard: Standard, penalty: np.ndarray, coef: np.ndarray, level: Level, ask: Ask
    ) -> tuple[np.ndarray, float]:
        """Return the coefficients times a factor, with a new offset, and the relative variance of the factor."""
        features = slice(problem.n_features)
        # 1. The score has about unit variance and no offset, so slope and offset are in the units of log-odds.
        length = math.sqrt(float((standard.variances[:, None] * coef[features] ** 2).sum()) + SCORE_OFFSET)
        direction = coef / length
        direction[problem.n_features :] = 0.0
        score = outer_coefficients(problem, standard.geometry, direction)
        weights = None if problem.class_weight is None else np.array(problem.class_weight)
        # 2. The start is the model as it is; for curved steps, whose path is short, its offset is the best constant.
        steps = (CurvedSteps if self.curved else PlainSteps)(problem, self, float((penalty * direction[features] ** 2).sum()))
        offset = (float(level.start[0]) if self.curved else float(coef[-1, 0])) if problem.intercept_scaling else 0.0
        point, average, half = np.array([length, offset]), np.zeros(2), self.n_steps // 2
        # 3. The descent.
        for number in range(self.n_steps):
            point = steps.moved(point, ask(ScoreGradient(problem.loss, score, point, _clip(problem), weights)))
            if number >= half:
                average += point / (self.n_steps - half)
        # 4. The slope replaces the length, which it may shrink but not reverse.
        slope = max(average[0] / length, LEAST_SLOPE)
        calibrated = coef.copy()
        calibrated[features] *= slope
        calibrated[problem.n_features :] = average[1]
        # 5. The noise of the slope is that of the averaged iterates of a descent at the curvature of the score.
        step, momentum = steps.at_the_end(average)
        bend = bend_of_calibration(problem, average, 1 - SCORE_OFFSET / length**2)
        noisy = NoisySteps(self.n_steps, half, step, momentum, self.total_noise(problem) * math.sqrt(self.n_steps))
        return calibrated, float(noisy.variances(np.array([bend]), np.array([steps.penalty]))[0] / (slope * length) ** 2)

    def total_noise(self, problem: Problem) -> float:
        """Return the noise of the mean gradient, if all of the share were in one release."""
        signal = problem.signal_to_noise
        return _clip(problem) / (signal * math.sqrt(self.share)) if signal < math.inf else 0.0


class PlainSteps:
    """Make steps with momentum, whose total length is that at which the gathered noise is the stated one."""

    def __init__(self, problem: Problem, calibration: CalibrationByGradients, penalty: float) -> None:
        n_steps, signal = calibration.n_steps, problem.signal_to_noise
        self.penalty, self._n_samples, self._velocity = penalty, problem.n_samples, np.zeros(2)
        # On a path K slope and offset gather the noise K C / (s share**0.5), with the clip norm C and the signal-to-noise ratio
        # s.
        path = calibration.noise * math.sqrt(calibration.share) * signal / (CALIBRATION_CLIP * problem.loss.lipschitz)
        longest = n_steps / sharpness(problem.loss)
        self._momentum = min(max(1 - longest / path, 0.0), calibration.momentum)  # as much as the path needs: less noise
        self._step = min(path * (1 - self._momentum), longest) / n_steps / problem.max_weight
        self._free = _free(problem)
        self._shrinkage = np.array([1 + self._step / (1 - self._momentum) * penalty, 1.0])  # implicit, as for the coefficients

    def moved(self, point: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return slope and offset after a step."""
        self._velocity = self._momentum * self._velocity + gradient / self._n_samples * self._free
        return np.asarray((point - self._step * self._velocity) / self._shrinkage)

    def at_the_end(self, average: np.ndarray) -> tuple[float, float]:
        """Return the length of a step in the slope, and the momentum."""
        return self._step, self._momentum


class CurvedSteps:
    """Make steps for log-odds, each as long as expected curvature and noise allow; in a direction that noise hides, none."""

    def __init__(self, problem: Problem, calibration: CalibrationByGradients, penalty: float) -> None:
        self.penalty, self._problem, self._n_steps, self._free = penalty, problem, calibration.n_steps, _free(problem)
        self._noise = calibration.total_noise(problem)

    def moved(self, point: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return slope and offset after a step."""
        # The penalty is on the slope alone. A move is cut to LONGEST_MOVE in its larger coordinate.
        move = self._matrix(point) @ (gradient / self._problem.n_samples + self.penalty * point * (1.0, 0.0))
        return np.asarray(point - move * min(1.0, LONGEST_MOVE / max(float(np.abs(move).max()), LONGEST_MOVE)))

    def at_the_end(self, average: np.ndarray) -> tuple[float, float]:
        """Return the length of a step in the slope, and the momentum, which is 0."""
        return float(self._matrix(average)[0, 0]), 0.0

    def _matrix(self, point: np.ndarray) -> np.ndarray:
        return step_matrix(point, self._free, self.penalty, self._problem.class_weight, self._noise, self._n_steps)


def _clip(problem: Problem) -> float:
    return CALIBRATION_CLIP * problem.max_weight * problem.loss.lipschitz


def _free(problem: Problem) -> np.ndarray:
    """Return 1 for the slope, and for the offset of a model with intercept."""
    return np.array([1.0, float(bool(problem.intercept_scaling))])

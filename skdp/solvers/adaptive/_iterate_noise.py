"""Compute the noise that clipped gradient steps leave in a linear model, from linear recursions and released curvatures."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skdp.solvers._base import Problem
from skdp.solvers._standardization import Standard, mean_noise, moments
from skdp.solvers.adaptive._accelerated import AcceleratedSteps
from skdp.solvers.adaptive._shrinkage import momentum_gains

# Factor by which correlated features may make the loss flatter than their variances say: the variance inflation factor from which
# textbooks call collinearity severe. A larger value makes standard errors larger.
INFLATION = 10.0
# Shares of the curvature that correlated features plausibly leave: all of it, the least, and their geometric mean. Variances of
# noise are averaged over them.
PLAUSIBLE_SHARES = (1.0, INFLATION**-0.5, 1 / INFLATION)
# Share of the curvature of the functions of one column that correlated columns leave it, where the likely noise is wanted and not
# a bound. A choice: 1 in place of .5 left more noise on adult and ijcnn1.
LEFT_BY_OTHERS = 0.5
# Largest relative error of the scale of a feature. A choice: the floor under the variances keeps errors below it.
MOST_OF_SCALE = 0.5
# Gauss-Hermite quadrature of means over a normal variable. 41 nodes are a choice; more make the integral more accurate.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class NoisySteps:
    """Heavy-ball steps whose last iterates are averaged.

    Parameters
    ----------
    n_steps, warm_up : int
        Number of steps, and number of steps before the average.
    step, momentum : float
        Step size and heavy-ball coefficient.
    noise : float
        Standard deviation of each coordinate of a gradient.
    """

    n_steps: int
    warm_up: int
    step: float
    momentum: float
    noise: float

    def variances(self, curvature: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Return the variance of the average of the last iterates, per coordinate.

        Parameters
        ----------
        curvature, penalty : ndarray of shape (d,)
            Curvature of the loss, and strength of a ridge penalty whose step is implicit.

        Returns
        -------
        ndarray of shape (d,)
            Variances, which fall with the curvature.
        """
        gains = momentum_gains(self.step, self.momentum, curvature, penalty, self.warm_up, self.n_steps)
        return np.square(gains * self.noise).sum(axis=1)


@dataclass(frozen=True)
class KnownSteps:
    """Steps on a loss of known curvature, and a factor of all that they found.

    Parameters
    ----------
    steps : NoisySteps
        The steps.
    bend : float
        Second derivative of the mean loss in the raw prediction.
    penalty : float
        Strength of the ridge penalty.
    factor : float
        Released coefficients over those that the steps found.
    of_scale : ndarray of shape (n_features,) or float, default=0.0
        Variances that the noise of the scale adds to the coefficients.
    """

    steps: NoisySteps
    bend: float
    penalty: float
    factor: float
    of_scale: np.ndarray | float = 0.0

    def variances(self, curvature: np.ndarray) -> np.ndarray:
        """Return the likely variances of the coefficients of k directions.

        Parameters
        ----------
        curvature : ndarray of shape (k,)
            Variance of the rows in each direction.

        Returns
        -------
        ndarray of shape (k,)
            Variances of the noise.
        """
        return self._variances(curvature, LEFT_BY_OTHERS)

    def plausible_variances(self, curvature: np.ndarray) -> np.ndarray:
        """Return the same, averaged over the shares of the curvature that correlated columns plausibly leave."""
        return np.asarray(np.mean([self._variances(curvature, share) for share in PLAUSIBLE_SHARES], axis=0))

    def _variances(self, curvature: np.ndarray, share: float) -> np.ndarray:
        found = self.steps.variances(share * self.bend * curvature, np.full(curvature.shape, self.penalty))
        return self.factor**2 * found


def mean_bend(problem: Problem, standard: Standard, bend_of: Callable[[float, float], float], average: np.ndarray) -> float:
    """Return the mean second derivative of the loss in the raw prediction; 0 where it is not known.

    Parameters
    ----------
    problem : Problem
        Public facts.
    standard : Standard
        Geometry of the steps.
    bend_of : callable
        Returns the mean second derivative that the steps see, for the mean and the variance of the raw predictions.
    average : ndarray of shape ``problem.shape``
        Average of the last iterates.

    Returns
    -------
    float
        For normal scores and uncorrelated features; 0 for more than two classes, weights of classes, and losses other than the
        logistic one.
    """
    if not _log_odds(problem):
        return 0.0
    d = problem.n_features
    spread = float((standard.variances[:, None] * average[:d] ** 2).sum())
    return bend_of(float(average[d:, 0].sum()), spread)


def variances_left(
    problem: Problem,
    standard: Standard,
    steps: NoisySteps | AcceleratedSteps,
    penalty: np.ndarray,
    bend: float,
    average: np.ndarray,
    coef: np.ndarray,
    moments_share: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variances of released coefficients, which are a multiple of the average of the last iterates.

    Parameters
    ----------
    problem : Problem
        Public facts.
    standard : Standard
        Geometry of the steps.
    steps : NoisySteps or AcceleratedSteps
        The steps.
    penalty : ndarray of shape (n_features, 1)
        Strength of the ridge penalty on each coefficient of the features.
    bend : float
        Mean second derivative of the loss in the raw prediction.
    average, coef : ndarray of shape ``problem.shape``
        Average of the last iterates, and released coefficients in the same geometry.
    moments_share : float
        Share of the budget of the release that sets the scale.

    Returns
    -------
    of_steps : ndarray of shape ``problem.shape``
        Variances from the steps, averaged over plausible curvatures: all, and at least a tenth, of that for normal scores and
        uncorrelated features. A variance inflation factor of 10 counts as severe collinearity. For more than two classes, weights
        of classes, and losses other than the logistic one the curvature is taken to be 0, which gives an upper bound.
    of_scale : ndarray of the same shape
        Variances that the noise of the scale of the features adds.
    """
    of_scale = np.zeros(problem.shape)
    if not problem.budget.private:
        return of_scale, of_scale
    # The intercept has the curvature of its constant 1 and no penalty. Shrinkage and calibration multiply all
    # coefficients of the features, and so their noise.
    d, ones = problem.n_features, np.ones(problem.shape[0] - problem.n_features)
    curvature, ridge = bend * np.append(standard.variances, ones), np.append(penalty, 0 * ones)
    of_shares = steps.variances(np.outer(PLAUSIBLE_SHARES, curvature).ravel(), np.tile(ridge, len(PLAUSIBLE_SHARES)))
    variances = np.mean(of_shares.reshape(len(PLAUSIBLE_SHARES), -1), axis=0)
    variances[:d] *= (np.linalg.norm(coef[:d]) / max(float(np.linalg.norm(average[:d])), 1e-300)) ** 2
    repeated = np.repeat(variances[:, None], problem.loss.n_outputs, axis=1)
    if standard.geometry.scale.ndim == 2:  # the steps reach the minimum, which does not depend on the scale
        return repeated, of_scale
    noise = (
        mean_noise(problem, moments(problem), moments_share) * problem.data_norm
    )  # noise of a variance; scale = variance**-0.5
    signal = np.maximum(np.square(coef[:d]) - repeated[:d], 0.0)
    relative = np.minimum(noise * np.square(standard.geometry.scale) / 2, MOST_OF_SCALE)
    of_scale[:d] = np.square(relative)[:, None] * signal
    return repeated, of_scale


def clipped_bend(mean: float, variance: float, cap: float) -> float:
    """Return the mean second derivative of the logistic loss in the raw prediction, where derivatives are clipped.

    Parameters
    ----------
    mean, variance : float
        Mean and variance of the raw predictions, which are taken to be normal, and to be the true log-odds.
    cap : float
        Bound on the derivatives.

    Returns
    -------
    float
        Mean of ``p (1 - p)`` over the records whose derivative is within the bound.
    """
    p = expit(mean + math.sqrt(variance) * NODES)
    # A record of the second class, with probability p, has the derivative 1 - p in absolute value; one of the first has p.
    unclipped = p * (1 - p < cap) + (1 - p) * (p < cap)
    return float(WEIGHTS @ (p * (1 - p) * unclipped))


def weighted_bend(mean: float, variance: float, weight: float) -> float:
    """Return the mean second derivative of the bounded proper loss in the raw prediction.

    Parameters
    ----------
    mean, variance : float
        Mean and variance of the raw predictions, which are taken to be normal, and to be the true log-odds.
    weight : float
        Weight of a usual row.

    Returns
    -------
    float
        Mean of ``min(p, 1 - p) / 2``, times the weight.
    """
    p = expit(mean + math.sqrt(variance) * NODES)
    return weight * float(WEIGHTS @ np.minimum(p, 1 - p)) / 2


def bend_of_calibration(problem: Problem, point: np.ndarray, variance: float) -> float:
    """Return the second derivative of the mean loss in the slope of a score, minimised over the offset.

    Parameters
    ----------
    problem : Problem
        Public facts.
    point : ndarray of shape (2,)
        Slope and offset.
    variance : float
        Variance of the score, which is taken to be normal.

    Returns
    -------
    float
        0 for losses other than the logistic one, and where classes have weights.
    """
    if not _log_odds(problem):
        return 0.0
    # Second derivatives in slope and offset; the offset is minimised out (Schur complement).
    score = math.sqrt(variance) * NODES
    p = expit(point[0] * score + point[1])
    bends = WEIGHTS * p * (1 - p)
    return float(bends @ score**2 - (bends @ score) ** 2 / max(float(bends.sum()), 1e-300))


def _log_odds(problem: Problem) -> bool:
    """Return whether the minimiser's raw predictions are the log-odds of two classes, which class weights would shift."""
    return getattr(problem.loss, "log_odds", False) and problem.class_weight is None

"""Centre and scale the features by one private release: the first stage of several solvers."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy.queries import Gradient, Moments, Query, Standardization
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers._base import Problem
from skdp.solvers._released import ReleasedMoments

# Floor of the variances: NOISE_FLOOR times the expected largest noise of d variances, plus RELATIVE_FLOOR times their mean,
# plus ABSOLUTE_FLOOR times the squared data norm. Chosen on adult, mammography, spambase and ijcnn1 (docs/defaults.md): twice
# or half of either of the first two moved the mean AUC by at most .003. A larger floor scales narrow features up less.
NOISE_FLOOR, RELATIVE_FLOOR, ABSOLUTE_FLOOR = 0.1, 0.3, 1e-5
# Least value of the largest scaled variance, and of the usual squared norm. A choice that keeps the scale finite where all
# variances are noise.
LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class Standard:
    """Standardisation of the features, from released moments.

    Parameters
    ----------
    geometry : Standardization
        Centre and scale.
    variances : ndarray of shape (n_features,)
        Variances of the scaled features, at most 1.
    usual : float
        Mean squared norm of a standardised row.
    """

    geometry: Standardization
    variances: np.ndarray
    usual: float


def outer_coefficients(problem: Problem, geometry: Standardization, coef: np.ndarray) -> np.ndarray:
    """Return coefficients for rows in the user's units, from those in the geometry, of one output or a column for each."""
    outer = geometry.to_rows(coef if coef.ndim == 2 else coef[:, None])
    if problem.intercept_scaling:
        outer[problem.n_features :] /= problem.intercept_scaling
    return outer


def james_stein(size: int, variance: float, square: float) -> float:
    """Return the factor by which a noisy mean is shrunk, by the rule of James and Stein (1961).

    Parameters
    ----------
    size : int
        Number of coordinates of the mean.
    variance : float
        Variance of the noise of each.
    square : float
        Squared length of the noisy mean.

    Returns
    -------
    float
        In [0, 1].
    """
    return max(0.0, 1 - size * variance / max(square, 1e-300))


def moments(problem: Problem) -> Moments:
    """Return the query for the moments of the features."""
    return Moments(problem.data_norm, problem.n_features)


def moments_release(problem: Problem, weight: float) -> Release:
    """Return the release of the moments, with a noise weight."""
    query = moments(problem)
    return Release(type(query), Gaussian(weight), query.clip_norm, query.size)


def mean_noise(problem: Problem, query: Query, share: float) -> float:
    """Return the noise over n of a release that has a share of the squared Gaussian-DP parameter."""
    adjacency = problem.budget.adjacency
    signal = problem.signal_to_noise * Gradient.relative_sensitivity[adjacency]
    return query.sensitivity(adjacency) / (math.sqrt(share) * signal)


def released_moments(problem: Problem, answer: np.ndarray, noise: float) -> ReleasedMoments:
    """Return the released means of the features and of their squares; ``noise`` is the standard deviation over n."""
    d, norm = problem.n_features, problem.data_norm
    return ReleasedMoments(answer[:d] / problem.n_samples, noise, answer[d:] * norm / problem.n_samples, noise * norm)


def standard(problem: Problem, answer: np.ndarray, noise: float) -> Standard:
    """Return centre and scale of the features, from their released moments.

    Parameters
    ----------
    problem : Problem
        Public facts.
    answer : ndarray of shape (2 * n_features,)
        Released moments.
    noise : float
        Standard deviation of their noise, over n.

    Returns
    -------
    Standard
        `james_stein` shrinks the mean, which is 0 without intercept. The variances get a floor that follows the noise,
        so that the scale does not amplify noise.
    """
    n, d, norm = problem.n_samples, problem.n_features, problem.data_norm
    mean, squares = answer[:d] / n, answer[d:] * norm / n
    # noise * noise, because ** raises where it overflows
    mean *= james_stein(d, noise * noise, float(mean @ mean)) if problem.intercept_scaling else 0.0
    spread = np.maximum(squares - mean**2, 0.0)
    # The largest of d noises is about sqrt(2 log d) standard deviations. Scales are reciprocal roots of floored variances, and
    # then such that the largest scaled variance is 1.
    floor = NOISE_FLOOR * noise * norm * math.sqrt(2 * math.log(d + 1))
    scale = (spread + floor + RELATIVE_FLOOR * spread.mean() + ABSOLUTE_FLOOR * norm**2) ** -0.5
    scale /= math.sqrt(max(float((scale**2 * spread).max()), LEAST_SPREAD))
    variances = scale**2 * spread
    geometry = Standardization(mean, scale, bool(problem.intercept_scaling), norm)
    return Standard(geometry, variances, max(float(geometry.intercept) + float(variances.sum()), LEAST_SPREAD))

"""Private standardisation: the first stage of a solver, which learns how to centre and scale the features."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy.queries import Gradient, Moments, Query, Standardization
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers._base import Problem
from skdp.solvers._released import ReleasedMoments

__all__ = ["Standard", "mean_noise", "moments", "moments_release", "released_moments", "standard"]

NOISE_FLOOR, RELATIVE_FLOOR, ABSOLUTE_FLOOR = 0.1, 0.3, 1e-5  # of the variances: by noise, by their mean, by the data norm
LEAST_SPREAD = 0.1  # the largest scaled variance is taken to be at least this


@dataclass(frozen=True)
class Standard:
    """What a release of the moments says of the features.

    Parameters
    ----------
    geometry : Standardization
        Centre and scale.
    variances : ndarray of shape (n_features,)
        Of the scaled features, at most 1.
    usual : float
        Mean squared norm of a standardised row.
    """

    geometry: Standardization
    variances: np.ndarray
    usual: float

    def to_rows(self, problem: Problem, coef: np.ndarray) -> np.ndarray:
        """Return coefficients for rows as they are, from those for standardised rows; both of shape ``problem.shape``."""
        outer = self.geometry.to_rows(coef)
        if problem.intercept_scaling:
            outer[problem.n_features :] /= problem.intercept_scaling
        return outer


def moments(problem: Problem) -> Moments:
    """Return the query."""
    return Moments(problem.data_norm, problem.n_features)


def moments_release(problem: Problem, weight: float) -> Release:
    """Return the line of the schedule."""
    query = moments(problem)
    return Release(type(query), Gaussian(weight), query.clip_norm, query.size)


def mean_noise(problem: Problem, query: Query, share: float) -> float:
    """Return the standard deviation of a release with a share of the squared Gaussian-DP parameter, over n."""
    adjacency = problem.budget.adjacency
    signal = problem.signal_to_noise * Gradient.relative_sensitivity[adjacency]
    return query.sensitivity(adjacency) / (math.sqrt(share) * signal)


def released_moments(problem: Problem, answer: np.ndarray, noise: float) -> ReleasedMoments:
    """Return the released means of the features and of their squares; ``noise`` is the standard deviation over n."""
    d, norm = problem.n_features, problem.data_norm
    return ReleasedMoments(answer[:d] / problem.n_samples, noise, answer[d:] * norm / problem.n_samples, noise * norm)


def standard(problem: Problem, answer: np.ndarray, noise: float) -> Standard:
    """Return centre and scale.

    Parameters
    ----------
    problem : Problem
        Public facts.
    answer : ndarray of shape (2 * n_features,)
        The released moments.
    noise : float
        Standard deviation of their noise, over n.

    Returns
    -------
    Standard
        The mean is shrunk by James and Stein's rule, and stays 0 without intercept; the variances get a floor that follows the
        noise, so that noise is not blown up.
    """
    n, d, norm = problem.n_samples, problem.n_features, problem.data_norm
    mean, squares = answer[:d] / n, answer[d:] * norm / n
    # the product, as ** raises where it overflows
    mean *= max(0.0, 1 - d * (noise * noise) / max(float(mean @ mean), 1e-300)) if problem.intercept_scaling else 0.0
    spread = np.maximum(squares - mean**2, 0.0)
    floor = NOISE_FLOOR * noise * norm * math.sqrt(2 * math.log(d + 1))
    scale = (spread + floor + RELATIVE_FLOOR * spread.mean() + ABSOLUTE_FLOOR * norm**2) ** -0.5
    scale /= math.sqrt(max(float((scale**2 * spread).max()), LEAST_SPREAD))
    variances = scale**2 * spread
    geometry = Standardization(mean, scale, bool(problem.intercept_scaling), norm)
    return Standard(geometry, variances, max(float(geometry.intercept) + float(variances.sum()), LEAST_SPREAD))

"""Compute bounds of records and of noise in the norm of a mirror map."""

import math

import numpy as np

from skdp.constraints import L1Ball, L2Ball, LpBall
from skdp.mirror_maps import MirrorMap
from skdp.solvers._base import Problem


def mirror_map(problem: Problem) -> MirrorMap:
    """Return the mirror map of the constraint, for all coefficients."""
    return problem.constraint.mirror_map(math.prod(problem.shape))  # type: ignore[union-attr]


def row_bound(problem: Problem, order: float) -> float:
    """Return a bound on the norm of a row, in the norm dual to that of the order, from 1 to 2."""
    if problem.feature_bounds is None:
        return problem.data_norm
    inverse = 1 - 1 / order  # one over the dual order
    bounds = np.broadcast_to(np.asarray(problem.feature_bounds, dtype=float), (problem.n_features,))
    largest = float(bounds.max())
    if inverse == 0:
        return min(largest, problem.data_norm)
    norm = largest * float(((bounds / largest) ** (1 / inverse)).sum()) ** inverse
    return min(norm, largest ** (1 - 2 * inverse) * problem.data_norm ** (2 * inverse), problem.data_norm)


def unit_width(order: float, n_coefficients: int) -> float:
    """Return the mean dual norm of a standard normal vector: the Gaussian width of the norm's unit ball."""
    ball = L1Ball() if order == 1 else L2Ball() if order == 2 else LpBall(1.0, order)
    return ball.gaussian_width(n_coefficients)

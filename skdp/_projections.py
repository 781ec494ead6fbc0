"""Compute norms, and projections onto balls and simplices, for the whole range of float64."""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

# Upper bound on the iterations of `_log_roots`, which usually stops far earlier at its tolerance.
NEWTON_STEPS = 60
# A point whose norm exceeds the radius by at most this relative amount is projected by scaling it down. A choice, above the
# rounding error of a norm.
NEARLY_INSIDE = 1e-12


def norm_of(vector: np.ndarray, order: float) -> float:
    """Return the norm of a given order of a finite vector; ``inf`` only if the norm itself exceeds float64."""
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0 or order == math.inf:
        return largest
    return largest * float(np.sum((np.abs(vector) / largest) ** order)) ** (1 / order)


def support(vector: np.ndarray, order: float) -> np.ndarray:
    """Return the w that maximises ``<vector, w>`` in the unit ball of the norm of an order above 1; 0 for a zero vector."""
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0:
        return np.zeros(vector.shape)
    direction = np.sign(vector) * (np.abs(vector) / largest) ** (1 / (order - 1))
    return direction / norm_of(direction, order)


def onto_simplex(w: np.ndarray, radius: float) -> np.ndarray:
    """Return the nearest vector of non-negative numbers that add up to the radius; the cost is that of a sort."""
    with np.errstate(over="ignore"):
        below = np.maximum(w - w.max(), -radius)  # smaller entries end at 0 anyway
    # Duchi et al.: with the k largest entries kept, the threshold is (their sum - radius) / k; k is the largest number for which
    # all of them exceed it.
    ordered = np.sort(below)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, w.size + 1)
    threshold = excess[np.flatnonzero(ordered > excess)[-1]]
    point = np.maximum(below - threshold, 0.0)
    return point * (radius / float(point.sum()))


def onto_ball(w: np.ndarray, radius: float, order: float) -> np.ndarray:
    r"""Return the nearest vector whose norm of a given order is at most the radius.

    In units of the radius, its absolute values v satisfy :math:`v_j + \nu v_j^{a-1} = |w_j|` for the unique :math:`\nu > 0` at
    which it lies on the sphere. The solution is computed in logarithms.

    Parameters
    ----------
    w : ndarray of shape (p,)
        Finite numbers.
    radius : float
        Radius of the ball.
    order : float
        The order a > 1 of its norm.

    Returns
    -------
    ndarray of shape (p,)
        The projection; up to rounding it lies on the sphere if w is outside the ball.
    """
    size = norm_of(w, order)
    if size <= radius:
        return w.copy()
    if size <= radius * (1 + NEARLY_INSIDE):
        return w * (radius / size)
    used, dual = w != 0, order / (order - 1)
    logs = np.log(np.abs(w[used])) - math.log(radius)
    highest = float(logsumexp(dual * logs)) / dual  # v_j <= (|w_j| / nu)^(1/(a-1))
    beyond = float(logsumexp(order * logs)) / order  # logarithm of the norm; v_j >= |w_j| - nu while v_j <= 1
    lowest = beyond + math.log(-math.expm1(-max(beyond, NEARLY_INSIDE / 2))) - math.log(logs.size) / order

    def excess(log_nu: float) -> float:
        return float(logsumexp(order * _log_roots(logs, log_nu, order)))

    v = np.zeros(w.shape)
    v[used] = np.exp(_log_roots(logs, _root(excess, lowest - 1e-9, highest + 1e-9), order))
    return np.sign(w) * v * (radius / norm_of(v, order))


def _log_roots(logs: np.ndarray, log_nu: float, order: float) -> np.ndarray:
    """Return the logarithms t of the roots of ``v + nu v**(order - 1) = w``, by Newton's method from the right.

    ``logaddexp(t, log_nu + (order - 1) t)`` is increasing and convex in t, and at the start it exceeds log w by at most log 2.
    """
    t = np.minimum(logs, (logs - log_nu) / (order - 1))
    for _ in range(NEWTON_STEPS):
        # Newton for log(v + nu v^(a - 1)) = log w in t = log v; weights of both terms give the derivative.
        power = log_nu + (order - 1) * t
        total = np.logaddexp(t, power)
        step = (total - logs) / (np.exp(t - total) + (order - 1) * np.exp(power - total))
        t = t - np.maximum(step, 0.0)
        if step.max() <= 1e-15 * (1 + np.abs(t).max()):
            break
    return t


def _root(function: Callable[[float], float], lowest: float, highest: float) -> float:
    """Return the root of a decreasing function, or the end of the interval if rounding hides a change of sign."""
    if function(lowest) <= 0:
        return lowest
    if function(highest) >= 0:
        return highest
    return float(brentq(function, lowest, highest, xtol=1e-13, rtol=1e-14))

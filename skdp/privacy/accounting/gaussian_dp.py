r"""Compute epsilon, delta and mu of Gaussian releases exactly.

A Gaussian release with sensitivity :math:`\Delta` and standard deviation :math:`\sigma` is :math:`\mu`-GDP with
:math:`\mu = \Delta / \sigma`. Releases compose by :math:`\mu^2 = \sum_j \mu_j^2`, also if each is chosen after seeing
the earlier ones. :math:`\mu`-GDP is equivalent to (epsilon, delta)-differential privacy for every epsilon with

.. math:: \delta(\varepsilon) = \Phi(-\varepsilon/\mu + \mu/2) - e^\varepsilon \, \Phi(-\varepsilon/\mu - \mu/2).

References
----------
.. [1] J. Dong, A. Roth, W. Su, "Gaussian differential privacy", JRSS B 84 (2022), Corollaries 1 and 4.
.. [2] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, Theorem 8.
"""

import functools
import math

from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta that mu-GDP gives at ``epsilon``.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter, sensitivity over standard deviation; non-negative.
    epsilon : float
        Non-negative privacy parameter.

    Returns
    -------
    float
        The smallest delta for which (epsilon, delta)-DP holds.
    """
    return math.exp(_log_delta(mu, epsilon)) if mu > 0 else 0.0


@functools.lru_cache(maxsize=1024)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon that mu-GDP gives at ``delta``, rounded up.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter; non-negative, ``inf`` for a release without noise.
    delta : float
        Privacy parameter in (0, 1).

    Returns
    -------
    float
        The smallest epsilon for which (epsilon, delta)-DP holds, up to a relative rounding of 1e-9 upwards.
    """
    mu, delta = float(mu), float(delta)  # the cache takes numbers of lower precision for equal: compute in float64 for all
    if mu == math.inf:
        return math.inf
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    log_delta = math.log(delta)
    # at this epsilon the Chernoff bound on Phi(-epsilon/mu + mu/2) equals delta
    highest = mu * mu / 2 + mu * math.sqrt(-2 * log_delta)
    root = brentq(lambda epsilon: _log_delta(mu, epsilon) - log_delta, 0.0, highest, xtol=1e-14 * highest)
    return root * (1 + _slack(mu))


@functools.lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose mu-GDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float
        Positive privacy parameter; ``inf`` gives ``inf``.
    delta : float
        Privacy parameter in (0, 1).

    Returns
    -------
    float
        The Gaussian-DP parameter, rounded down by a relative 1e-9 (by more below mu = 1e-5, where the difference in delta
        loses digits).

    Raises
    ------
    ValueError
        If epsilon is so small that mu would be below 1e-9, where float64 cannot tell the two terms of delta apart.
    """
    epsilon, delta = float(epsilon), float(delta)
    if epsilon == math.inf:
        return math.inf
    log_delta = math.log(delta)
    # the Chernoff bound solved for mu, which is never above the answer
    lowest = 2 * epsilon / (math.sqrt(2 * epsilon - 2 * log_delta) + math.sqrt(-2 * log_delta))
    if lowest < 1e-9:
        raise ValueError(
            f"epsilon={epsilon!r} with delta={delta!r} is too small to calibrate noise for; expected a larger epsilon."
        )
    highest = lowest
    while _log_delta(highest, epsilon) < log_delta:
        highest *= 2
    root = brentq(lambda t: _log_delta(math.exp(t), epsilon) - log_delta, math.log(lowest), math.log(highest), xtol=1e-13)
    return math.exp(root) * (1 - _slack(math.exp(root)))


def _log_delta(mu: float, epsilon: float) -> float:
    """Return the logarithm of delta(epsilon) by a formula that keeps its digits in the tail.

    ``exp(epsilon) * phi(y) == phi(x)`` for the two arguments below, so delta is ``phi(x) * (mills(x) - mills(y))``.
    """
    # delta = Phi(-x) - exp(epsilon) Phi(-y). With the density phi, exp(epsilon) phi(y) = phi(x), so both terms are phi(x) times a
    # Mills ratio. For very negative x the first term is near 1 and loses no digits.
    x, y = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if x < -20:
        return math.log(ndtr(-x) - math.exp(epsilon + log_ndtr(-y)))
    difference = _mills(x) - _mills(y)
    return -x * x / 2 - math.log(math.sqrt(2 * math.pi)) + math.log(difference) if difference > 0 else -math.inf


def _mills(x: float) -> float:
    """Return the Mills ratio of the normal distribution, ``(1 - Phi(x)) / phi(x)``."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _slack(mu: float) -> float:
    """Return a relative rounding to the private side, above the error of the root and of the difference in ``_log_delta``."""
    return max(1e-9, 1e-14 / mu)

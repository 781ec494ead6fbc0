r"""Account for selections, alone or with full-data Gaussian releases, by zero-concentrated differential privacy.

A selection with Gumbel noise is the exponential mechanism. Between neighbours the logarithm of the ratio of its probabilities
stays in an interval of length :math:`\varepsilon_0`, which makes it :math:`\varepsilon_0^2/8`-zCDP [1]_ (proof in
``docs/proofs/noise.md``). A :math:`\mu`-Gaussian release is :math:`\mu^2/2`-zCDP. These numbers add up, also if each release is
chosen after seeing the earlier ones. :math:`\rho`-zCDP implies (epsilon, delta)-differential privacy for every
:math:`\alpha > 1` with [2]_

.. math:: \varepsilon = \alpha\rho + \log(1 - 1/\alpha) - \frac{\log\delta + \log\alpha}{\alpha - 1}.

References
----------
.. [1] M. Cesar, R. Rogers, "Bounding, concentrating, and truncating: unifying privacy loss composition for data analytics",
   ALT 2021: bounded range, and the zCDP that follows.
.. [2] C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Proposition 12 and
   Corollary 13.
"""

import math

from scipy.optimize import brentq

# Relative amount by which epsilon and rho are rounded to the private side. A choice above the float64 error of both formulas.
SLACK = 1e-9

# Smallest epsilon that is accepted. A choice: below it the formula has no correct digits left in float64.
SMALLEST_EPSILON = 1e-9


def zcdp_epsilon(rho: float, delta: float) -> float:
    r"""Return the epsilon that rho-zCDP gives at ``delta``, rounded up.

    The best order :math:`\alpha` solves :math:`\rho (\alpha - 1)^2 + \log\alpha = \log(1/\delta)`, where the derivative of
    epsilon in :math:`\alpha` vanishes; the left side increases. Any other order would also give a valid epsilon.

    Parameters
    ----------
    rho : float
        Parameter of zCDP, non-negative; ``inf`` for a release without noise.
    delta : float
        Privacy parameter in [0, 1); 0 gives ``inf`` unless rho is 0.

    Returns
    -------
    float
        An epsilon for which (epsilon, delta)-DP holds.
    """
    if rho == 0:
        return 0.0
    if rho == math.inf or delta == 0:
        return math.inf
    log_inverse = -math.log(delta)
    highest = min(math.sqrt(log_inverse / rho), math.expm1(min(log_inverse, 700.0)))
    x = brentq(lambda x: rho * x * x + math.log1p(x) - log_inverse, 0.0, highest * (1 + SLACK), xtol=1e-14 * highest)
    return max(0.0, _epsilon(x, rho, log_inverse)) * (1 + SLACK)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho whose rho-zCDP implies (epsilon, delta)-DP by the formula of `zcdp_epsilon`, rounded down.

    Parameters
    ----------
    epsilon : float
        Positive privacy parameter; ``inf`` gives ``inf``.
    delta : float
        Privacy parameter in [0, 1); 0 gives 0.

    Returns
    -------
    float
        The parameter rho.

    Raises
    ------
    ValueError
        If epsilon is below 1e-9, where the formula has no digits left.
    """
    if epsilon == math.inf:
        return math.inf
    if epsilon < SMALLEST_EPSILON:
        raise ValueError(f"epsilon={epsilon!r} is too small to calibrate noise for; expected a larger epsilon.")
    if delta == 0:
        return 0.0
    log_inverse = -math.log(delta)

    def excess(log_x: float) -> float:
        """Return epsilon at the rho for which this order is best, minus the given epsilon; it decreases."""
        x = math.exp(log_x)
        return _epsilon(x, _rho(x, log_inverse), log_inverse) - epsilon

    # Search over the order 1 + x and not over rho: for each x there is one rho for which it is the best order.
    highest = math.log(math.expm1(min(log_inverse, 700.0)))
    lowest = highest - 1.0
    while excess(lowest) < 0:
        lowest -= 2.0
    rho = _rho(math.exp(brentq(excess, lowest, highest, xtol=1e-13)), log_inverse) * (1 - SLACK)
    while zcdp_epsilon(rho, delta) > epsilon:  # happens if delta pays for nearly everything
        rho *= 1 - SLACK
    return rho


def _rho(x: float, log_inverse: float) -> float:
    """Return the rho for which the order ``1 + x`` is best."""
    return max(0.0, (log_inverse - math.log1p(x)) / (x * x))


def _epsilon(x: float, rho: float, log_inverse: float) -> float:
    """Return the epsilon of the order ``1 + x``."""
    return (1 + x) * rho - math.log1p(1 / x) + (log_inverse - math.log1p(x)) / x

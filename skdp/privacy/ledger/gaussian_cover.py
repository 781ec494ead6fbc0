r"""Compute Gaussian covers: Gaussian-DP parameters that dominate a fit and add up exactly, also if later fits are adaptive.

A mechanism is :math:`(\mu, s)`-covered if between any neighbours it is a post-processing of this experiment: with probability
s the two tables are told apart, else one normal with mean 0 or :math:`\mu` is shown. By Blackwell's theorem that holds if,
for every :math:`\varepsilon \ge 0` and in both directions,

.. math:: \delta(\varepsilon) \le s + (1 - s) \, \delta_\mu(\varepsilon),

with the hockey-stick divergence of the mechanism on the left and that of :math:`\mu`-GDP on the right.

References
----------
.. [1] J. Dong, A. Roth, W. Su, "Gaussian differential privacy", JRSS B 84 (2022): trade-off functions, and when one mechanism
   is a post-processing of another.
.. [2] Y. Zhu, J. Dong, Y.-X. Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS 2022:
   dominating pairs compose, also adaptively.
"""

import functools
import math

import numpy as np
from scipy.special import log_ndtr, ndtri

from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget

# Number of values of epsilon at which the two curves are compared. A choice: more points take more time and give a smaller mu.
POINTS = 8000

# Relative precision of mu, which is rounded up. A choice: a smaller number takes more steps of the search.
PRECISION = 1e-4

# Largest mu of a cover; the search gives up beyond it. A choice: no usable ceiling admits a larger one.
LARGEST_MU = 1e3

# Relative amount by which the Gaussian curve is lowered, or mu raised, to cover float64 errors. A choice above these errors.
ROUNDING = 1e-9

# Epsilon below which a line replaces the quantile in `pure_cover`. A choice: the line is larger by a relative 2e-10 at most.
LINEAR = 1e-4


@functools.lru_cache(maxsize=1024)
def gaussian_cover(composition: Composition, budget: Budget, slack: float) -> float:
    """Return the mu of a cover of some releases with noise scale 1.

    Full-data Gaussian releases need no slack and are covered exactly. Selections without samples are covered one by one. For
    subsampled releases, the two curves are compared on a grid of epsilon, each at the less favourable end of every cell, up to
    the epsilon at which the slack alone is enough.

    Parameters
    ----------
    composition : Composition
        The releases.
    budget : Budget
        The guarantee of the releases alone.
    slack : float
        Probability s of the cover, used for subsampled releases only.

    Returns
    -------
    float
        The Gaussian-DP parameter of the cover, rounded up; ``inf`` if the slack is below what float64 convolutions resolve.
    """
    if not composition.sampled:
        selections = [count * selection_cover(2 / weight) ** 2 for count, weight in composition.selections]
        return math.sqrt(math.fsum([composition.full, *selections]))
    # The largest epsilon at which the slack alone does not cover delta; beyond it nothing is to be shown. Then the least mu whose
    # curve is above all that is needed, by bisection.
    distribution, error = composition.losses(1.0, budget)
    if slack <= 2 * error:
        return math.inf
    largest = distribution.get_epsilon_for_delta((slack - error) / 2)
    if largest == math.inf:
        return math.inf
    epsilons = np.linspace(0.0, max(largest, 1e-6), POINTS)
    needed = np.asarray(distribution.get_delta_for_epsilon(epsilons)) + error - slack
    # Double mu until it covers, then bisect in logarithms; `high` always covers.
    low, high = 1e-12, 1.0
    while not _covers(high, slack, epsilons, needed):
        low, high = high, 2 * high
        if high > LARGEST_MU:
            return math.inf
    while high > low * (1 + PRECISION):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _covers(middle, slack, epsilons, needed) else (middle, high)
    return high


def pure_cover(epsilon: float) -> float:
    r"""Return the mu that covers a mechanism with pure epsilon-DP, without slack.

    Proof. Its trade-off function lies above that of randomised response, two straight lines between (0, 1), the point where
    both errors are :math:`1 / (1 + e^\varepsilon)`, and (1, 0). The trade-off function of mu-GDP is convex and goes through the
    same three points for the mu returned here, hence lies below. This mu is concave in :math:`\varepsilon` with slope
    :math:`\sqrt{\pi/2}` at 0, so the line with that slope lies above it and replaces it where the quantile loses its digits.

    Parameters
    ----------
    epsilon : float
        Non-negative privacy parameter.

    Returns
    -------
    float
        The Gaussian-DP parameter.
    """
    if epsilon < LINEAR:
        return math.sqrt(math.pi / 2) * epsilon * (1 + ROUNDING)
    return -2 * float(ndtri(1 / (1 + math.exp(epsilon)))) if epsilon < 700 else math.inf


def selection_cover(epsilon: float) -> float:
    r"""Return the mu that covers an exponential mechanism of a given epsilon, without slack.

    Proof. The logarithm of its likelihood ratio stays in an interval of length :math:`\varepsilon`. Among all such pairs with the
    same interval, the pair whose ratio takes only the two ends as values is the most distinct (convex functions of the ratio are
    largest there). That pair is a coin that shows heads with probability q or p, where the log-odds of p are those of q plus
    :math:`\varepsilon`. Its trade-off function, two straight lines, lies above that of mu-GDP for
    :math:`\mu = \Phi^{-1}(p) - \Phi^{-1}(q)`, as in `pure_cover`. The derivative of :math:`\Phi^{-1}` in the log-odds is one over
    the sum of the hazards of z and -z, which is even and falls with :math:`|z|`. So this mu is largest for log-odds of
    :math:`\pm\varepsilon/2`: the cover of pure :math:`\varepsilon/2`-DP.

    Parameters
    ----------
    epsilon : float
        Length of the interval, non-negative.

    Returns
    -------
    float
        The Gaussian-DP parameter.
    """
    return pure_cover(epsilon / 2)


def _covers(mu: float, slack: float, epsilons: np.ndarray, needed: np.ndarray) -> bool:
    """Return whether mu-GDP covers the curve.

    On a cell both curves fall, so the curve at the left end is compared with that of mu-GDP at the right end.
    """
    return bool(needed[-1] <= 0 and np.all(needed[:-1] <= (1 - slack) * (1 - ROUNDING) * _gaussian_deltas(mu, epsilons[1:])))


def _gaussian_deltas(mu: float, epsilons: np.ndarray) -> np.ndarray:
    first, second = log_ndtr(-epsilons / mu + mu / 2), epsilons + log_ndtr(-epsilons / mu - mu / 2)
    return np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))

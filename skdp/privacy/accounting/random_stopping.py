r"""Account for a search that repeats a trial a secret random number of times and release only the best trial.

Let a trial be :math:`\mu`-GDP, so that its Renyi divergence of order :math:`\alpha` is at most :math:`\alpha\mu^2/2`, and let the
number of trials have the Poisson distribution with mean m. Neither the number of trials nor any other trial is released. Then the
best trial satisfies, for every order [1]_,

.. math:: \varepsilon'(\alpha) \le \alpha\mu^2/2 + m\hat\delta(\alpha) + \frac{\log m}{\alpha - 1},

where the trial is :math:`(\log(1 + 1/(\alpha - 1)), \hat\delta)`-differentially private. With the Poisson distribution, no
trial is run at all with probability :math:`e^{-m}`; the outcome must then be one that does not depend on the records.

A :math:`\mu`-GDP trial has the exact Gaussian curve as :math:`\hat\delta`, below what follows from its Renyi divergences.
Other Gaussian releases add :math:`\alpha\mu_2^2/2`. The curve gives (epsilon, delta) for every order [2]_ by

.. math:: \varepsilon = \varepsilon'(\alpha) + \log(1 - 1/\alpha) - \frac{\log\delta + \log\alpha}{\alpha - 1}.

References
----------
.. [1] N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022, Theorem 6.
.. [2] C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Proposition 12.
"""

import functools
import math

import numpy as np
from scipy.optimize import brentq

from skdp.privacy.accounting.gaussian_dp import gaussian_delta, gaussian_mu

# Orders minus 1 of which the best is taken: any order gives a valid epsilon. A choice; neighbours differ by 5 %.
ORDERS_ABOVE_1 = np.geomspace(1e-2, 1e5, 330)

# Relative amount by which the parameter of a trial is rounded to the private side: above the error of the search for it.
SLACK = 1e-7


def stopping_epsilon(mu: float, mean: float, delta: float, other_mu: float = 0.0) -> float:
    """Return the epsilon at ``delta`` of the best of a Poisson number of trials, composed with a Gaussian release.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter of a trial, positive.
    mean : float
        Mean number of trials, above 1.
    delta : float
        Privacy parameter in (0, 1).
    other_mu : float, default=0.0
        Gaussian-DP parameter of what is released beside the best trial, such as a refit.

    Returns
    -------
    float
        An epsilon for which (epsilon, delta)-DP holds.
    """
    # The two formulas of the module for each order 1 + a; the least epsilon counts.
    a = ORDERS_ABOVE_1
    of_one = np.array([gaussian_delta(mu, math.log1p(1 / x)) for x in a])
    curve = (1 + a) * (mu**2 + other_mu**2) / 2 + mean * of_one + math.log(mean) / a
    return max(0.0, float(np.min(curve - np.log1p(1 / a) - (math.log(delta) + np.log1p(a)) / a)))


@functools.lru_cache(maxsize=128)
def stopping_mu(epsilon: float, mean: float, delta: float, other_mu: float = 0.0) -> float:
    """Return the largest Gaussian-DP parameter of a trial for which the search is (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float
        Budget; ``inf`` gives ``inf``.
    mean : float
        Mean number of trials, above 1.
    delta : float
        Privacy parameter in (0, 1).
    other_mu : float, default=0.0
        Gaussian-DP parameter of what is released beside the best trial.

    Returns
    -------
    float
        The parameter.

    Raises
    ------
    ValueError
        If epsilon is too small for any search.
    """
    if epsilon == math.inf:
        return math.inf
    highest = gaussian_mu(epsilon, delta)
    lowest = highest / 1024

    def excess(log_mu: float) -> float:
        return stopping_epsilon(math.exp(log_mu), mean, delta, other_mu) - epsilon

    if excess(math.log(lowest)) > 0:
        raise ValueError(f"epsilon={epsilon!r} is too small for a search with random stopping; expected a larger epsilon.")
    mu = math.exp(brentq(excess, math.log(lowest), math.log(highest), xtol=1e-9)) * (1 - SLACK)
    while stopping_epsilon(mu, mean, delta, other_mu) > epsilon:
        mu *= 1 - SLACK
    return mu

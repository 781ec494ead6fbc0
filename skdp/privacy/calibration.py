"""The noise that makes a schedule spend a budget, and what a schedule spends."""

import math

from skdp.privacy.accounting import gaussian_epsilon, gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.schedule import Gaussian, Release, Schedule

__all__ = ["calibrate", "noise_multiplier", "spent_epsilon"]


def calibrate(schedule: Schedule, budget: Budget) -> float:
    """Return the noise scale at which the schedule spends exactly the budget.

    Parameters
    ----------
    schedule : Schedule
        Full-data Gaussian releases.
    budget : Budget
        What may be spent.

    Returns
    -------
    float
        Standard deviation over sensitivity of a release of weight 1, rounded up; 0 for ``epsilon=inf``.

    Raises
    ------
    PrivacyAccountingError
        If the schedule has a mechanism that this accounting does not cover.
    """
    return math.sqrt(_inverse_square_weights(schedule)) / gaussian_mu(budget.epsilon, budget.delta)


def spent_epsilon(schedule: Schedule, scale: float, delta: float) -> float:
    """Return the epsilon that the schedule spends at ``delta`` with the given noise scale.

    Parameters
    ----------
    schedule : Schedule
        Full-data Gaussian releases.
    scale : float
        Standard deviation over sensitivity of a release of weight 1.
    delta : float
        Privacy parameter in (0, 1).

    Returns
    -------
    float
        The smallest epsilon for which (epsilon, delta)-DP holds, rounded up; ``inf`` without noise.
    """
    mu = math.sqrt(_inverse_square_weights(schedule)) / scale if scale > 0 else math.inf
    return gaussian_epsilon(mu, delta)


def noise_multiplier(release: Release, scale: float, adjacency: str) -> float:
    """Return the standard deviation of a release over its clip norm.

    Parameters
    ----------
    release : Release
        A Gaussian release.
    scale : float
        Standard deviation over sensitivity of a release of weight 1.
    adjacency : str
        Which tables are neighbours.

    Returns
    -------
    float
        The noise multiplier; 0 without noise.
    """
    return _weight(release) * scale * release.query.relative_sensitivity[adjacency]


def _inverse_square_weights(schedule: Schedule) -> float:
    return sum(count / _weight(release) ** 2 for count, release in schedule.entries)


def _weight(release: Release) -> float:
    if not isinstance(release.mechanism, Gaussian):
        raise PrivacyAccountingError(f"No accounting is known for the mechanism {release.mechanism!r}.")
    return release.mechanism.weight

"""The noise that makes a schedule spend a budget, and what a schedule spends.

Full-data Gaussian releases alone have an exact formula; whatever is subsampled goes through privacy loss distributions.
"""

import math

from skdp.privacy.accounting import gaussian_epsilon, gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule
from skdp.privacy.subsampled import Composition

__all__ = ["calibrate", "noise_multiplier", "spent_epsilon"]


def calibrate(schedule: Schedule, budget: Budget) -> float:
    """Return the noise scale at which the schedule spends the budget.

    Parameters
    ----------
    schedule : Schedule
        Gaussian releases, full-data or subsampled, or one release with a proof of its own.
    budget : Budget
        What may be spent.

    Returns
    -------
    float
        Standard deviation over sensitivity of a release of weight 1, or in the units of its mechanism, rounded up; 0 for
        ``epsilon=inf``.

    Raises
    ------
    PrivacyAccountingError
        If the schedule has a mechanism that this accounting does not cover.
    ValueError
        If delta is too small to account for subsampled releases.
    """
    if (curve := schedule.curve) is not None:
        return curve.scale(budget) if budget.private else 0.0
    composition = _composition(schedule, budget)
    if composition.selections:  # its loss on a grid is a step function of the noise
        raise PrivacyAccountingError("No calibration is known for the mechanism Selection.")
    if composition.sampled:
        return composition.calibrate(budget)
    return math.sqrt(composition.full) / gaussian_mu(budget.epsilon, budget.delta)


def spent_epsilon(schedule: Schedule, scale: float, budget: Budget) -> float:
    """Return the epsilon that the schedule spends at the budget's delta with the given noise scale.

    Parameters
    ----------
    schedule : Schedule
        Gaussian releases, full-data or subsampled.
    scale : float
        Standard deviation over sensitivity of a release of weight 1.
    budget : Budget
        delta and adjacency.

    Returns
    -------
    float
        The smallest epsilon for which (epsilon, delta)-DP holds, rounded up; ``inf`` without noise.
    """
    if scale == 0:
        return math.inf
    if (curve := schedule.curve) is not None:
        return curve.epsilon(scale, budget)
    composition = _composition(schedule, budget)
    if composition.sampled:
        return composition.epsilon(scale, budget)
    return gaussian_epsilon(math.sqrt(composition.full) / scale, budget.delta)


def noise_multiplier(release: Release, scale: float, adjacency: str) -> float:
    """Return the standard deviation of a release over its clip norm.

    Parameters
    ----------
    release : Release
        A Gaussian release, subsampled or not.
    scale : float
        Standard deviation over sensitivity of a release of weight 1.
    adjacency : str
        Which tables are neighbours.

    Returns
    -------
    float
        The noise multiplier; 0 without noise.
    """
    if not isinstance(release.mechanism, (Gaussian, PoissonGaussian)):
        raise PrivacyAccountingError(f"No noise multiplier is known for the mechanism {release.mechanism!r}.")
    return release.mechanism.weight * scale * release.query.relative_sensitivity[adjacency]


def _composition(schedule: Schedule, budget: Budget) -> Composition:
    composition = Composition.of(schedule, budget.adjacency)
    if composition.selections and not composition.sampled:
        raise PrivacyAccountingError("No accounting is known for the mechanism Selection in a schedule without samples.")
    return composition

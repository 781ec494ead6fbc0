"""Compute the noise at which a schedule spends a budget, and the epsilon that a schedule spends.

Full-data Gaussian releases alone have an exact formula. With selections they compose by zCDP. Selections alone also compose by
the sum of their epsilons, and so do Laplace releases, which are in schedules of their own. Schedules with subsampled releases
are accounted by privacy loss distributions.
"""

import math

from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.accounting.zcdp import zcdp_epsilon, zcdp_rho
from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule, Selection, SinglePass

# Relative amount by which sums of epsilons are rounded to the private side. A choice, well above the float64 error of such a sum.
SLACK = 1e-12


def calibrate(schedule: Schedule, budget: Budget) -> float:
    """Return the noise scale at which the schedule spends the budget.

    Parameters
    ----------
    schedule : Schedule
        Gaussian releases, full-data or subsampled, and selections, or Laplace releases, or one release with a proof of its own.
    budget : Budget
        The budget of the fit.

    Returns
    -------
    float
        Standard deviation over sensitivity of a release of weight 1, rounded up; for a selection, the scale of its Gumbel noise
        over sensitivity; for a Laplace release, the scale of its noise over the sum of all changes; for a mechanism with its
        own proof, the scale in its own units; 0 for ``epsilon=inf``.

    Raises
    ------
    PrivacyAccountingError
        If the schedule has a mechanism that this accounting does not cover, or if delta is 0 and a mechanism has no pure
        guarantee.
    ValueError
        If delta is too small to account for subsampled releases, or epsilon is too small for the formulas.
    """
    if (curve := schedule.curve) is not None:
        return curve.scale(budget) if budget.private else 0.0
    if (pure := schedule.pure_epsilon) is not None:
        return pure / budget.epsilon * (1 + 2 * SLACK)
    composition = Composition.of(schedule, budget.adjacency)
    if composition.selections:
        return _selection_scale(composition, budget) if budget.private else 0.0
    if composition.sampled:
        return composition.calibrate(budget)
    return math.sqrt(composition.full) / gaussian_mu(budget.epsilon, budget.delta)


def spent_epsilon(schedule: Schedule, scale: float, budget: Budget) -> float:
    """Return the epsilon that the schedule spends with the given noise scale at the budget's delta.

    Parameters
    ----------
    schedule : Schedule
        Gaussian releases, full-data or subsampled, and selections.
    scale : float
        Standard deviation over sensitivity of a release of weight 1.
    budget : Budget
        Budget with the delta and the adjacency.

    Returns
    -------
    float
        The smallest epsilon for which (epsilon, delta)-DP holds, rounded up; ``inf`` without noise.
    """
    if scale == 0:
        return math.inf
    if (curve := schedule.curve) is not None:
        return curve.epsilon(scale, budget)
    if (pure := schedule.pure_epsilon) is not None:
        return pure / scale * (1 + SLACK)
    composition = Composition.of(schedule, budget.adjacency)
    if composition.sampled:
        return composition.epsilon(scale, budget)
    if composition.selections:
        rho, pure = _costs(composition)
        return min(zcdp_epsilon(rho / scale**2, budget.delta), pure / scale * (1 + SLACK))
    return gaussian_epsilon(math.sqrt(composition.full) / scale, budget.delta)


def noise_multiplier(release: Release, scale: float, adjacency: str) -> float:
    """Return the standard deviation of a release over its clip norm.

    Parameters
    ----------
    release : Release
        Any Gaussian release: full-data, subsampled or single-pass.
    scale : float
        Standard deviation over sensitivity of a release of weight 1.
    adjacency : str
        Which tables are neighbours.

    Returns
    -------
    float
        The noise multiplier; 0 without noise.
    """
    if not isinstance(release.mechanism, (Gaussian, PoissonGaussian, SinglePass)):
        raise PrivacyAccountingError(f"No noise multiplier is known for the mechanism {release.mechanism!r}.")
    return release.mechanism.weight * scale * release.query.relative_sensitivity[adjacency]


def selection_epsilon(mechanism: Selection, scale: float) -> float:
    """Return the epsilon of one selection alone.

    Parameters
    ----------
    mechanism : Selection
        The exponential mechanism.
    scale : float
        Scale of the noise over sensitivity, for a selection of weight 1.

    Returns
    -------
    float
        Length of the interval that contains its privacy loss; ``inf`` without noise.
    """
    return 2 / (mechanism.weight * scale) if scale > 0 else math.inf


def _costs(composition: Composition) -> tuple[float, float]:
    """Return rho of all releases and the sum of their epsilons (finite for selections alone), both at noise scale 1."""
    # A Gaussian release of weight w has mu = 1 / w and rho = mu^2 / 2; a selection has epsilon0 = 2 / w and rho = epsilon0^2 / 8,
    # the same.
    rho = (composition.full + math.fsum(count / weight**2 for count, weight in composition.selections)) / 2
    pure = math.inf if composition.full else 2 * math.fsum(count / weight for count, weight in composition.selections)
    return rho, pure


def _selection_scale(composition: Composition, budget: Budget) -> float:
    """Return the smaller of two noise scales, each of which meets the budget: by zCDP and by the sum of epsilons.

    zCDP gives the smaller one for many releases.
    """
    if composition.sampled:  # the loss of a selection on a grid is a step function of the noise: no root to search for
        raise PrivacyAccountingError("No calibration is known for the mechanism Selection in a schedule that also samples.")
    rho, pure = _costs(composition)
    if budget.delta == 0 and pure == math.inf:
        raise PrivacyAccountingError("Gaussian noise has no pure guarantee; expected a positive delta.")
    by_sum = pure / budget.epsilon * (1 + 2 * SLACK)
    by_zcdp = math.sqrt(rho / zcdp_rho(budget.epsilon, budget.delta)) * (1 + SLACK) if budget.delta > 0 else math.inf
    return min(by_sum, by_zcdp)

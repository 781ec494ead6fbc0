"""Compute the tight epsilon of all entries of a ledger together."""

import functools
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.accounting.privacy_loss import TRANSFORM_ERROR, Composition, loss_distribution

# Spacing of the grid of privacy losses, in units of epsilon. The default of dp_accounting. A finer grid takes more time and
# overstates epsilon less.
DISCRETIZATION = 1e-4

Losses = tuple[Any, int]  # a composed distribution (None for no losses), and the number of transforms in it
Curve = tuple[float, float]  # the guarantee (epsilon, delta) of a release about which nothing else is known


def tight_epsilon(gaussian: Iterable[float], losses: Losses, adjacency: str, delta: float) -> float | None:
    """Return the epsilon of all entries together, which holds for a plan that was fixed in advance.

    Parameters
    ----------
    gaussian : iterable of float
        Squared Gaussian-DP parameters of all full-data releases; alone they compose exactly.
    losses : Losses
        Losses of all other releases, from `compose`.
    adjacency : str
        Which tables are neighbours.
    delta : float
        The delta at which epsilon holds.

    Returns
    -------
    float or None
        An upper bound; None if delta is too small for float64 convolutions.
    """
    # All full-data Gaussian releases compose to one normal, which is composed with the losses of the others.
    full = math.fsum(gaussian)
    distribution, count = losses
    if distribution is None:
        return gaussian_epsilon(math.sqrt(full), delta)
    if full:
        normal = loss_distribution(Composition(adjacency, (), (), full), 1.0, DISCRETIZATION)
        distribution = distribution.compose(normal)
    error = (count + 1) * TRANSFORM_ERROR
    epsilon = distribution.get_epsilon_for_delta(delta - error) if delta > 2 * error else math.inf
    return epsilon if epsilon < math.inf else None


def compose(parts: Iterable[Composition | Curve]) -> Losses:
    """Return the composed losses of entries, without their full-data releases.

    They are computed at every call and never stored in the file, so the result need not be trusted: a hundred fits of ten kinds
    take about 0.2 s, a hundred different fits about 2 s.

    Parameters
    ----------
    parts : iterable of Composition or (epsilon, delta)
        The entries, at noise scale 1.

    Returns
    -------
    Losses
        Losses of all entries together.
    """
    distribution, number = None, 0
    for part, count in Counter(parts).items():
        losses = _of_entry(part)
        if losses is not None:
            losses = losses.self_compose(count)
            distribution = losses if distribution is None else distribution.compose(losses)
            number += count * (part.n_losses if isinstance(part, Composition) else 1)
    return distribution, number


@functools.lru_cache(maxsize=32)
def _of_entry(part: Composition | Curve) -> Any:
    if isinstance(part, Composition):
        rest = Composition(part.adjacency, part.sampled, part.selections, 0.0)
        return loss_distribution(rest, 1.0, DISCRETIZATION) if part.sampled or part.selections else None
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as losses

    parameters = common.DifferentialPrivacyParameters(*part)
    return losses.from_privacy_parameters(parameters, value_discretization_interval=DISCRETIZATION)

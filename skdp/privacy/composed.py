"""The tight epsilon of all entries of a ledger together, with the composed losses kept in its file."""

import functools
import io
import math
import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

from skdp.privacy.accounting import gaussian_epsilon
from skdp.privacy.subsampled import TRANSFORM_ERROR, Composition, loss_distribution

__all__ = ["DISCRETIZATION", "Losses", "cache_key", "compose", "dump", "load", "tight_epsilon"]

DISCRETIZATION = 1e-4  # of the privacy loss: the default of dp_accounting
Losses = tuple[Any, int]  # a composed distribution (None for nothing), and the number of transforms in it
Curve = tuple[float, float]  # an own guarantee (epsilon, delta), of which nothing else is known


def tight_epsilon(gaussian: Iterable[float], losses: Losses, adjacency: str, delta: float) -> float | None:
    """Return the epsilon of everything together, for a plan that was fixed in advance.

    Parameters
    ----------
    gaussian : iterable of float
        Squared Gaussian-DP parameters of all full-data releases; alone they compose exactly.
    losses : Losses
        Everything else, from `compose`.
    adjacency : str
        Which tables are neighbours.
    delta : float
        Where epsilon is read off.

    Returns
    -------
    float or None
        An upper bound; None where delta is too small for float64 convolutions.
    """
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


def compose(start: Losses, parts: Sequence[Composition | Curve]) -> Losses:
    """Return the losses of further entries on top of composed ones; their full-data releases are left out.

    Parameters
    ----------
    start : Losses
        What was composed before.
    parts : sequence of Composition or (epsilon, delta)
        Further entries, at noise scale 1.

    Returns
    -------
    Losses
        All together.
    """
    distribution, number = start
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


def cache_key(head: str) -> str:
    """Return what composed losses depend on.

    Parameters
    ----------
    head : str
        Hash of all entries in them.

    Returns
    -------
    str
        With the versions that computed them.
    """
    versions = [f"{name} {metadata.version(name)}" for name in ("skdp", "dp_accounting", "numpy")]
    return ", ".join([head, f"discretization {DISCRETIZATION}", *versions])


def dump(losses: Losses) -> bytes | None:
    """Return composed losses as bytes.

    Parameters
    ----------
    losses : Losses
        From `compose`.

    Returns
    -------
    bytes or None
        For `load`; None for a sparse distribution, which is quickly computed again.
    """
    try:
        return pickle.dumps(losses)
    except (AttributeError, pickle.PicklingError):  # dp_accounting keeps a local function in it
        return None


def load(content: bytes) -> Losses | None:
    """Read composed losses; whatever is not exactly that is not read.

    Parameters
    ----------
    content : bytes
        From `dump`, by way of a file that others may have written.

    Returns
    -------
    Losses or None
        None on any doubt: then they are computed again.
    """
    try:
        distribution, number = _Reader(io.BytesIO(content)).load()
    except Exception:
        return None
    return (distribution, number) if isinstance(number, int) and hasattr(distribution, "get_epsilon_for_delta") else None


class _Reader(pickle.Unpickler):
    """Builds loss distributions and arrays of numbers, and nothing else."""

    ALLOWED = frozenset({"PrivacyLossDistribution", "DensePLDPmf", "SparsePLDPmf"})
    ARRAYS = frozenset({"_reconstruct", "_frombuffer", "ndarray", "dtype", "scalar"})

    def find_class(self, module: str, name: str) -> Any:
        known = name in self.ALLOWED if module.startswith("dp_accounting.pld.") else name in self.ARRAYS
        if not known or module.split(".")[0] not in ("dp_accounting", "numpy"):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of composed losses.")
        return super().find_class(module, name)

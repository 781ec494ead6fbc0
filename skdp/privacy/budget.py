"""The privacy parameters of one fit."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from skdp.privacy.errors import NotPrivateWarning, WeakPrivacyWarning, warn

__all__ = ["ADJACENCIES", "Budget"]

LARGEST_EPSILON, LARGEST_DELTA = 1e6, 1 - 1e-9  # beyond them float64 cannot tell the guarantee from none

ADJACENCIES = {
    "replace_one": "two tables with the same number of records, one record replaced by any other",
    "zero_out": "two tables with the same number of records, one record replaced by a null record that contributes nothing",
}


@dataclass(frozen=True)
class Budget:
    """What one fit may spend.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, positive; ``inf`` means not private.
    delta : float
        Privacy parameter in (0, 1).
    adjacency : {"replace_one", "zero_out"}
        Which tables the guarantee makes indistinguishable.
    """

    epsilon: float
    delta: float
    adjacency: str

    @classmethod
    def from_parameters(cls, epsilon: object, delta: object, adjacency: object, n_samples: int) -> "Budget":
        """Check the parameters of an estimator and fill in the default delta.

        Parameters
        ----------
        epsilon, delta, adjacency : object
            As given to the estimator; ``delta=None`` means ``max(1 / n_samples**2, 1e-11)``.
        n_samples : int
            Number of records, at least 2.

        Returns
        -------
        Budget
            The checked budget.

        Raises
        ------
        TypeError
            If epsilon or delta is not a number.
        ValueError
            If a value is out of its range.

        Warns
        -----
        NotPrivateWarning
            For ``epsilon=inf``.
        WeakPrivacyWarning
            For a finite ``epsilon > 10`` and for ``delta >= 1 / n_samples``.
        """
        budget = cls(_epsilon(epsilon), _delta(delta, n_samples), _adjacency(adjacency))
        budget._warn_if_weak(n_samples)
        return budget

    @property
    def private(self) -> bool:
        """Whether noise is added at all."""
        return self.epsilon < math.inf

    def _warn_if_weak(self, n_samples: int) -> None:
        if not self.private:
            warn("epsilon=inf adds no noise: the fitted model is not private.", NotPrivateWarning)
        elif self.epsilon > 10:
            warn(f"epsilon={self.epsilon!r} is a weak guarantee; 10 or less is usual.", WeakPrivacyWarning)
        if self.private and self.delta >= 1 / n_samples:
            rule = f"expected less than 1/n_samples = {1 / n_samples!r}"
            warn(f"delta={self.delta!r} allows publishing a whole record; {rule}.", WeakPrivacyWarning)


def _epsilon(epsilon: Any) -> float:
    if not _is_number(epsilon):
        raise TypeError(f"epsilon={epsilon!r} is not a number; expected a positive number, or float('inf') for no privacy.")
    if not (epsilon > 0) or LARGEST_EPSILON < epsilon < math.inf:
        raise ValueError(f"epsilon={epsilon!r}; expected a positive number up to 1e6, or float('inf') for no privacy.")
    return float(epsilon)


def _delta(delta: Any, n_samples: int) -> float:
    if delta is None:
        return max(1 / n_samples**2, 1e-11)
    if not _is_number(delta):
        raise TypeError(f"delta={delta!r} is not a number; expected a number in (0, 1), or None.")
    if delta == 0:
        raise ValueError(f"delta={delta!r}: pure epsilon-DP is supported by no solver yet; expected a number in (0, 1), or None.")
    if not (0 < delta <= LARGEST_DELTA):
        raise ValueError(f"delta={delta!r}; expected a number in (0, 1), or None for max(1 / n_samples**2, 1e-11).")
    return float(delta)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _adjacency(adjacency: object) -> str:
    if not isinstance(adjacency, str) or adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency={adjacency!r}; expected one of {sorted(ADJACENCIES)}.")
    return adjacency

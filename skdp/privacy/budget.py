"""Check the privacy parameters of one fit: epsilon, delta, adjacency and the unit that they protect."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from numbers import Real
from typing import Any

from skdp.privacy.errors import NotPrivateWarning, WeakPrivacyWarning, shown, warn

__all__ = ["ADJACENCIES", "UNITS", "Budget", "default_delta", "neighbours", "to_float", "unit_of"]

# Largest finite epsilon and largest delta that are accepted. Both are choices: larger values guarantee nothing useful, and the
# accounting loses its digits there.
LARGEST_EPSILON, LARGEST_DELTA = 1e6, 0.5
# What delta means, in the words of reports, cards and pages. Of two neighbouring tables, an (epsilon, delta)-DP result tells no
# more than a mechanism that names the table with probability delta and is epsilon-DP otherwise (Kairouz, Oh, Viswanath 2015).
DELTA_IN_WORDS = "delta is a probability with which nothing is promised: it should be far below one over the number of {units}."
# Largest default delta. A choice: a larger one, of fewer than 32 records, promises so little that the user must write it.
LARGEST_DEFAULT = 1e-3

FEWEST_BY_DEFAULT = math.ceil(LARGEST_DEFAULT**-0.5)

# The neighbouring relations and their definitions, which the report prints.
ADJACENCIES = {
    "replace_one": "two tables with the same number of records, one record replaced by any other",
    "zero_out": "two tables with the same number of records, one record replaced by a null record that contributes nothing",
}
# The same for persons, each with all her rows.
OF_PERSONS = {
    "replace_one": (
        "two tables with the same number of persons, all rows of one person replaced by any other rows, any number from 1 on"
    ),
    "zero_out": "two tables with the same number of persons, all rows of one person replaced by rows that contribute nothing",
}
UNITS = ("record", "person")


@dataclass(frozen=True)
class Budget:
    """State what one fit may spend.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, positive; ``inf`` means not private.
    delta : float
        Privacy parameter in [0, 0.5]; 0 is pure epsilon-differential privacy, which few solvers support.
    adjacency : {"replace_one", "zero_out"}
        Which pairs of tables are neighbours.
    unit : {"record", "person"}, default="record"
        What neighbours differ in: one row, or all rows of a person.
    """

    epsilon: float
    delta: float
    adjacency: str
    unit: str = "record"

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):  # equal budgets share cached results, so their numbers need the same precision
            object.__setattr__(self, name, to_float(getattr(self, name)))

    @classmethod
    def from_parameters(
        cls, epsilon: object, delta: object, adjacency: object, n_samples: int, unit: object = "record"
    ) -> "Budget":
        """Check the parameters of an estimator and fill in the default delta.

        Parameters
        ----------
        epsilon, delta, adjacency : object
            Parameters of the estimator; ``delta=None`` means ``max(1 / n_samples**2, 1e-11)``, at most 1e-3.
        n_samples : int
            Number of records, or of persons; at least 2.
        unit : object, default="record"
            What is protected.

        Returns
        -------
        Budget
            The checked budget.

        Raises
        ------
        TypeError
            If epsilon or delta is not a number.
        ValueError
            If a value is out of range, or if the default delta is above 1e-3.

        Warns
        -----
        NotPrivateWarning
            For ``epsilon=inf``.
        WeakPrivacyWarning
            For a finite ``epsilon > 10`` and for ``delta >= 1 / n_samples``.
        """
        budget = cls(_epsilon(epsilon), _delta(delta, n_samples), _one_of("adjacency", adjacency, ADJACENCIES), unit_of(unit))
        if delta is None and budget.private and budget.delta > LARGEST_DEFAULT:
            raise ValueError(
                f"delta=None means 1 / n_samples**2 = {budget.delta:.3g} for {n_samples} {budget.unit}s, a weak promise. "
                f"Write a delta, such as delta=1e-5, or use at least {FEWEST_BY_DEFAULT} {budget.unit}s: so few "
                "are hardly of use at any budget."
            )
        budget._warn_if_weak(n_samples)
        return budget

    @property
    def private(self) -> bool:
        """Whether noise is added."""
        return self.epsilon < math.inf

    @property
    def number(self) -> str:
        """Name of the public number of records, or of persons."""
        return "n_samples" if self.unit == "record" else "n_persons"

    def _warn_if_weak(self, n_samples: int) -> None:
        if not self.private:
            warn("epsilon=inf adds no noise: the result is not private.", NotPrivateWarning)
        elif self.epsilon > 10:
            warn(f"epsilon={self.epsilon!r} is a weak guarantee; 10 or less is usual.", WeakPrivacyWarning)
        if self.private and self.delta >= 1 / n_samples:
            rule = f"expected less than 1/{self.number} = {1 / n_samples!r}"
            warn(f"delta={self.delta!r} allows publishing a whole {self.unit}; {rule}.", WeakPrivacyWarning)


def to_float(value: Any) -> float:
    """Return a real number of any type as a float, infinite if it is beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:  # an integer or a fraction
        return math.inf if value > 0 else -math.inf


def _epsilon(epsilon: Any) -> float:
    if not _is_number(epsilon):
        raise TypeError(f"epsilon={shown(epsilon)} is not a number; expected a positive number, or float('inf') for no privacy.")
    number = to_float(epsilon)
    if not (number > 0) or LARGEST_EPSILON < number < math.inf or (number == math.inf and epsilon != math.inf):
        raise ValueError(f"epsilon={shown(epsilon)}; expected a positive number up to 1e6, or float('inf') for no privacy.")
    return number


def default_delta(n_samples: int) -> float:
    """Return the delta of a fit with ``delta=None``."""
    return max(1 / n_samples**2, 1e-11)


def _delta(delta: Any, n_samples: int) -> float:
    if delta is None:
        return default_delta(n_samples)
    if not _is_number(delta):
        raise TypeError(f"delta={shown(delta)} is not a number; expected a number in (0, 1), or None.")
    number = to_float(delta)
    if not (0 <= number <= LARGEST_DELTA and (number > 0) == (delta > 0)):
        raise ValueError(
            f"delta={shown(delta)}; expected a number in (0, 1), at most 0.5, 0 for pure epsilon-DP, or None for "
            "max(1 / n_samples**2, 1e-11)."
        )
    return number


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def neighbours(adjacency: str, unit: str) -> str:
    """Return which tables are neighbours, in words."""
    return (ADJACENCIES if unit == "record" else OF_PERSONS)[adjacency]


def unit_of(privacy_unit: object, name: str = "privacy_unit") -> str:
    """Return what is protected; raise ValueError, with the name of the parameter, for anything else."""
    return _one_of(name, privacy_unit, UNITS)


def _one_of(name: str, value: object, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={shown(value)}; expected one of {sorted(known)}.")
    return value

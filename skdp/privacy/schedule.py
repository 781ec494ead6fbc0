"""What a solver will release, stated before it runs: releases, their mechanisms, and how many of each."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import Query

__all__ = ["Curve", "Gaussian", "Mechanism", "PoissonGaussian", "Release", "Schedule", "Selection", "SinglePass"]


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise on a query over all records.

    Parameters
    ----------
    weight : float, default=1.0
        Noise relative to the other releases of the schedule: twice the weight, twice the noise multiplier.
    """

    weight: float = 1.0


@dataclass(frozen=True)
class PoissonGaussian:
    """Gaussian noise on a query over a Poisson sample: each record enters independently with the same probability.

    The query must be a sum over records of vectors of norm at most its clip norm.

    Parameters
    ----------
    sampling_rate : float
        Probability that a record enters, in (0, 1].
    weight : float, default=1.0
        Noise relative to the other releases of the schedule.
    """

    sampling_rate: float
    weight: float = 1.0


@dataclass(frozen=True)
class SinglePass:
    """Gaussian noise on a query over records that no other release of this kind in the run has used.

    The query says which: it has an attribute ``records``, sorted numbers that depend on public choices and earlier releases only,
    perhaps none. The oracle counts, and refuses to use a record twice. So all releases of this kind in a schedule together cost
    what the one with the least noise does.

    *Proof.* Take two tables that differ in one record. A release that does not use it is, given the earlier ones, distributed
    alike for both. The one that does, if any, is Gaussian with at least the noise multiplier of the least noise, so its
    Gaussian-DP parameter is at most one over the least weight times the scale. Whether and when that happens may depend on
    earlier releases: squared parameters add up to at most that square on every path, which is all that adaptive composition
    needs (Smith, Thakurta 2022).

    Parameters
    ----------
    batch_size : int
        Number of records that are drawn for one release, at most so many of them unused.
    weight : float, default=1.0
        Noise relative to the other releases of the schedule.
    """

    batch_size: int
    weight: float = 1.0


@dataclass(frozen=True)
class Selection:
    """Exponential mechanism by Gumbel noise: releases the index of a nearly best candidate, by a query on all records.

    Parameters
    ----------
    weight : float, default=1.0
        Noise relative to the other releases of the schedule: scale of the Gumbel noise, where theirs is a standard deviation,
        over sensitivity. Then one costs as much as the other, by zCDP.
    """

    weight: float = 1.0


@dataclass(frozen=True)
class Curve:
    """Mechanism with its own proof of (epsilon, delta); alone in its schedule. Derived classes have the proof.

    Parameters
    ----------
    name : str
        The mechanism, as the report names it.
    """

    name: str

    def scale(self, budget: Budget) -> float:
        """Return the noise, in the units of this mechanism, that spends a finite budget."""
        raise PrivacyAccountingError(f"No accounting is known for the mechanism {self!r}.")

    def epsilon(self, scale: float, budget: Budget) -> float:
        """Return the epsilon that is spent at the budget's delta with positive noise, rounded up."""
        raise PrivacyAccountingError(f"No accounting is known for the mechanism {self!r}.")

    def deltas(self, scale: float, epsilons: np.ndarray, budget: Budget) -> np.ndarray:
        """Return upper bounds of delta at many epsilons, where the noise is calibrated by a budget."""
        raise PrivacyAccountingError(f"No accounting is known for the mechanism {self!r}.")

    def answer(self, query: Any, scale: float, budget: Budget, source: Any, evaluate: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Return the noisy answer; ``evaluate`` gives the un-noised one of a query. Only the oracle calls this."""
        raise PrivacyAccountingError(f"No noise is known for the mechanism {self!r}.")

    def raw_noise(self, scale: float, budget: Budget) -> float:
        """Return the largest root mean square that the noise of a raw prediction can have."""
        raise PrivacyAccountingError(f"No noise is known for the mechanism {self!r}.")

    def in_words(self, scale: float, budget: Budget) -> str:
        """Return the noise in words, for the report."""
        return self.name


Mechanism = Gaussian | PoissonGaussian | SinglePass | Selection | Curve


@dataclass(frozen=True)
class Release:
    """One noisy answer.

    Parameters
    ----------
    query : type of Query
        What is asked.
    mechanism : Mechanism
        What is added to the answer.
    clip_norm : float or None
        Bound on one record's contribution, where it is known in advance; None where earlier releases set it.
    size : int or None
        Number of coordinates of the answer; None for a gradient of the model.
    """

    query: type[Query]
    mechanism: Mechanism
    clip_norm: float | None = None
    size: int | None = None


@dataclass(frozen=True)
class Schedule:
    """All releases of one fit, in order.

    Parameters
    ----------
    entries : tuple of (int, Release)
        Each release with the number of times that it is asked in a row.
    """

    entries: tuple[tuple[int, Release], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", tuple((count, release) for count, release in self.entries))
        for count, release in self.entries:
            weight = getattr(release.mechanism, "weight", 1.0)
            sampling_rate = getattr(release.mechanism, "sampling_rate", 1.0)
            if not isinstance(count, int) or count < 1 or not (1e-6 <= weight <= 1e6) or not (2**-53 <= sampling_rate <= 1):
                raise PrivacyAccountingError(
                    f"The schedule has {count!r} times {release!r}; expected a positive count and a weight from 1e-6 to 1e6, "
                    "and a sampling rate in (0, 1]."
                )

    @property
    def samples(self) -> bool:
        """Whether any release reads a secret sample of the records only."""
        return any(isinstance(release.mechanism, PoissonGaussian) for _, release in self.entries)

    @property
    def by_row(self) -> bool:
        """Whether whole rows are read, so that a table stored by columns has to be converted once."""
        return self.samples or self.passes_once or any(getattr(release.query, "by_row", False) for _, release in self.entries)

    @property
    def passes_once(self) -> bool:
        """Whether any release is of records that no other uses."""
        return any(isinstance(release.mechanism, SinglePass) for _, release in self.entries)

    @property
    def by_column(self) -> bool:
        """Whether columns are read, and no whole rows, so that a sparse table stored by rows has to be converted once."""
        return not self.by_row and any(getattr(release.query, "by_column", False) for _, release in self.entries)

    @property
    def full_gaussian(self) -> bool:
        """Whether all releases are Gaussian and of all records, so that their squared parameters add up."""
        return all(isinstance(release.mechanism, Gaussian) for _, release in self.entries)

    def preceded_by(self, release: Release, share: float) -> "Schedule":
        """Return the schedule with one more release in front; the others keep their weights.

        Parameters
        ----------
        release : Release
            Its own weight does not matter.
        share : float
            Of the squared Gaussian-DP parameter that goes to it, in (0, 1).

        Returns
        -------
        Schedule
            The new release first.

        Raises
        ------
        PrivacyAccountingError
            Unless all releases are Gaussian and of all records: others have no such parameter.
        """
        if not (self.full_gaussian and isinstance(release.mechanism, Gaussian)):
            raise PrivacyAccountingError("Only Gaussian releases of all records can share a budget with one in front of them.")
        total = math.fsum(
            count / line.mechanism.weight**2 for count, line in self.entries if isinstance(line.mechanism, Gaussian)
        )
        first = replace(release, mechanism=Gaussian(math.sqrt((1 - share) / (share * total))))
        return Schedule(((1, first), *self.entries))

    @property
    def curve(self) -> Curve | None:
        """The mechanism with its own proof, if there is one.

        Raises
        ------
        PrivacyAccountingError
            If it is not alone.
        """
        curves = [release.mechanism for _, release in self.entries if isinstance(release.mechanism, Curve)]
        if curves and len(self) != 1:
            raise PrivacyAccountingError(f"The schedule has {len(self)} releases; expected {curves[0].name} to be alone.")
        return curves[0] if curves else None

    def __len__(self) -> int:
        return sum(count for count, _ in self.entries)

    def __iter__(self) -> Iterator[Release]:
        return (release for count, release in self.entries for _ in range(count))

"""Describe what a solver will release, before it runs: the releases, their mechanisms, and how many of each."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.noise.laplace import IntegerLaplace
from skdp.privacy.noise.staircase import IntegerStaircase
from skdp.privacy.queries import Query

__all__ = [
    "Curve",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "PoissonGaussian",
    "Release",
    "Schedule",
    "Selection",
    "SinglePass",
    "Staircase",
]


@dataclass(frozen=True)
class Gaussian:
    """Add Gaussian noise to a query over all records.

    Parameters
    ----------
    weight : float, default=1.0
        Noise relative to the other releases of the schedule: twice the weight means twice the noise multiplier.
    """

    weight: float = 1.0


@dataclass(frozen=True)
class PoissonGaussian:
    """Add Gaussian noise to a query over a Poisson sample: each record enters independently with the same probability.

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
    """Add Gaussian noise to a query over records that no other single-pass release of the run has used.

    The query names its records in the attribute ``records``: sorted row numbers, possibly none, that depend on public choices and
    earlier releases only. The oracle counts the uses of every record and refuses to use a record twice. So all single-pass
    releases of a schedule together cost as much as the one with the least noise. If persons are protected, the numbers are those
    of persons with all their rows, in a secret random order.

    *Proof.* Take two tables that differ in one record. A release that does not use this record has, given the earlier releases,
    the same distribution for both tables. At most one release uses it. That release is Gaussian with at least the smallest noise
    multiplier, so its Gaussian-DP parameter is at most 1 / (smallest weight * scale). Whether and when it happens may depend on
    earlier releases. On every path the squared parameters add up to at most the square of that bound, which is all that adaptive
    composition needs (Smith, Thakurta 2022).

    Parameters
    ----------
    batch_size : int
        Upper bound on the not-yet-used records in one release.
    weight : float, default=1.0
        Noise relative to the other releases of the schedule.
    """

    batch_size: int
    weight: float = 1.0


@dataclass(frozen=True)
class Selection:
    """Release the index of a nearly best candidate by the exponential mechanism: Gumbel noise on scores from all records.

    Parameters
    ----------
    weight : float, default=1.0
        Noise relative to the other releases of the schedule. It compares the scale of the Gumbel noise over sensitivity with
        the standard deviation over sensitivity of Gaussian releases: with equal weights both cost the same zCDP.
    n_choices : int, default=1
        Number of groups of candidates with a winner in each. All together cost what one costs, by the sensitivity of the query.
    """

    weight: float = 1.0
    n_choices: int = 1


@dataclass(frozen=True)
class Laplace:
    """Add discrete Laplace noise to a query of integers over all records, in a schedule of such releases only.

    The query states the sum of the absolute changes of its integers between neighbours in ``l1_sensitivity``.

    Parameters
    ----------
    weight : float, default=1.0
        Noise relative to the other releases of the schedule: twice the weight means half the epsilon.
    """

    weight: float = 1.0

    def noise(self, sensitivity: int, scale: float) -> IntegerLaplace | IntegerStaircase:
        """Return the noise for integers that a record changes by ``sensitivity`` in all."""
        return IntegerLaplace.calibrated(sensitivity=sensitivity, scale=scale * self.weight)


@dataclass(frozen=True)
class Staircase(Laplace):
    """Add staircase noise to a query of a single integer, in a schedule of Laplace and of such releases only.

    It is pure, as Laplace noise is, and has less variance: .98 of its standard deviation at epsilon 1, and .6 at 5.
    """

    def noise(self, sensitivity: int, scale: float) -> IntegerLaplace | IntegerStaircase:
        """Return the noise for an integer that a record changes by ``sensitivity``."""
        return IntegerStaircase.calibrated(sensitivity=sensitivity, scale=scale * self.weight)


@dataclass(frozen=True)
class Curve:
    """Define a mechanism with its own proof of (epsilon, delta), alone in its schedule; derived classes have the proof.

    Parameters
    ----------
    name : str
        Name of the mechanism in the report.
    """

    name: str

    def scale(self, budget: Budget) -> float:
        """Return the noise scale, in the units of this mechanism, that spends a finite budget."""
        raise PrivacyAccountingError(f"No accounting is known for the mechanism {self!r}.")

    def epsilon(self, scale: float, budget: Budget) -> float:
        """Return the epsilon that a positive noise scale spends at the budget's delta, rounded up."""
        raise PrivacyAccountingError(f"No accounting is known for the mechanism {self!r}.")

    def deltas(self, scale: float, epsilons: np.ndarray, budget: Budget) -> np.ndarray:
        """Return upper bounds on delta at many epsilons, for noise that was calibrated with this budget."""
        raise PrivacyAccountingError(f"No accounting is known for the mechanism {self!r}.")

    def admits(self, query: Any, scale: float, budget: Budget) -> bool:
        """Return whether the query is the scheduled one; the oracle refuses any other before it evaluates it."""
        return True

    def answer(self, query: Any, scale: float, budget: Budget, source: Any, evaluate: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Return the noisy answer; ``evaluate`` returns the un-noised answer of a query. Only the oracle calls this."""
        raise PrivacyAccountingError(f"No noise is known for the mechanism {self!r}.")

    def raw_noise(self, scale: float, budget: Budget) -> float:
        """Return an upper bound on the root mean square of the noise in a raw prediction."""
        raise PrivacyAccountingError(f"No noise is known for the mechanism {self!r}.")

    def in_words(self, scale: float, budget: Budget) -> str:
        """Return a description of the noise for the report."""
        return self.name


Mechanism = Gaussian | PoissonGaussian | SinglePass | Selection | Laplace | Curve


@dataclass(frozen=True)
class Release:
    """Describe one noisy answer.

    Parameters
    ----------
    query : type of Query
        The question.
    mechanism : Mechanism
        The noise that is added to the answer.
    clip_norm : float or None
        Bound on one record's contribution if it is known in advance; None if earlier releases set it.
    size : int or None
        Number of coordinates of the answer; None for a gradient of the model.
    """

    query: type[Query]
    mechanism: Mechanism
    clip_norm: float | None = None
    size: int | None = None


@dataclass(frozen=True)
class Schedule:
    """List all releases of one fit, in order.

    Parameters
    ----------
    entries : tuple of (int, Release)
        Each release with the number of times that it is made in a row.
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
        """Whether any release reads only a secret sample of the records."""
        return any(isinstance(release.mechanism, PoissonGaussian) for _, release in self.entries)

    @property
    def grows(self) -> bool:
        """Whether records get new scores between releases, which partitions without a kept copy would compute in each pass."""
        return any(release.query.grows for _, release in self.entries)

    @property
    def by_row(self) -> bool:
        """Whether a release reads whole rows: then a table stored by columns is converted once."""
        return self.samples or self.passes_once or any(release.query.by_row for _, release in self.entries)

    @property
    def passes_once(self) -> bool:
        """Whether any release is a single-pass release."""
        return any(isinstance(release.mechanism, SinglePass) for _, release in self.entries)

    @property
    def by_column(self) -> bool:
        """Whether releases read columns and no whole rows: then a sparse table stored by rows is converted once."""
        return not self.by_row and any(release.query.by_column for _, release in self.entries)

    def need_of_memory(self, unit: str) -> str | None:
        """Return why a table must be in memory, as the end of a sentence about the solver; None if partitions will do."""
        if self.passes_once:
            return "names the records of each release"
        if unit == "person" and self.samples:
            return "draws persons, who may have rows in several partitions"
        if unit == "person" and any(release.query.joins_rows for _, release in self.entries):
            return "multiplies sums over all rows of a person, who may have some in several partitions"
        return next((release.query.in_memory for _, release in self.entries if release.query.in_memory is not None), None)

    @property
    def full_gaussian(self) -> bool:
        """Whether all releases are full-data Gaussian, so that their squared Gaussian-DP parameters add up."""
        return all(isinstance(release.mechanism, Gaussian) for _, release in self.entries)

    @property
    def pure_epsilon(self) -> float | None:
        """Sum of the epsilons of all releases at noise scale 1 if all have Laplace noise, or some are selections, else None.

        Selections alone have no such sum: they may also be accounted by zCDP.

        *Proof.* A release with integers of the Laplace law is epsilon-DP, given the earlier ones, and so is a selection of weight
        w, for 2 / w. Such epsilons add up, even if later queries depend on earlier answers.
        """
        pure = [
            (count, release.mechanism) for count, release in self.entries if isinstance(release.mechanism, Laplace | Selection)
        ]
        if len(pure) < len(self.entries) or not any(isinstance(mechanism, Laplace) for _, mechanism in pure):
            return None
        return math.fsum(count * (2 if isinstance(line, Selection) else 1) / line.weight for count, line in pure)

    @property
    def passes(self) -> int | None:
        """Number of passes over the data, or None where it follows from the records.

        A release over all records is one pass. Consecutive releases of a query with ``shares_partial`` ask for one sum, and
        are one pass together, and so are all single-pass releases. A Poisson sample counts as its expected share of the records,
        and the total is rounded up.
        """
        # Fractions, so that the expected shares of many samples add up without rounding.
        total, sampled, last = 0, Fraction(0), None
        for count, release in self.entries:
            if not release.query.one_pass:
                return None
            if isinstance(release.mechanism, PoissonGaussian):
                sampled += count * Fraction(release.mechanism.sampling_rate)
            elif isinstance(release.mechanism, Gaussian | Selection | Laplace | Curve):
                total += int(release.query is not last) if release.query.shares_partial else count
            last = release.query
        return total + int(self.passes_once) + math.ceil(sampled)

    def preceded_by(self, release: Release, share: float) -> "Schedule":
        """Return the schedule with one more release before the others, which keep their weights.

        Parameters
        ----------
        release : Release
            The new release; its weight is replaced.
        share : float
            Share of the total squared Gaussian-DP parameter that the new release gets, in (0, 1).

        Returns
        -------
        Schedule
            The new release, then the others.

        Raises
        ------
        PrivacyAccountingError
            If a release is not full-data Gaussian and so has no such parameter.
        """
        if not (self.full_gaussian and isinstance(release.mechanism, Gaussian)):
            raise PrivacyAccountingError("Only full-data Gaussian releases can share their budget with a release before them.")
        first = replace(release, mechanism=Gaussian(math.sqrt((1 - share) / (share * self._inverse_squares()))))
        return Schedule(((1, first), *self.entries))

    def followed_by(self, later: "Schedule", share: float) -> "Schedule":
        """Return the schedule with the releases of another one after its own, which keep their weights.

        Parameters
        ----------
        later : Schedule
            Full-data Gaussian releases; their weights are multiplied by one factor.
        share : float
            Share of the total squared Gaussian-DP parameter that the later releases get together, in (0, 1).

        Returns
        -------
        Schedule
            The releases of both.
        """
        # Weights w have the cost sum 1 / w^2. Multiplied by f, the later ones cost their sum over f^2, which must be share / (1 -
        # share) times that of the first ones.
        factor = math.sqrt((1 - share) / share * later._inverse_squares() / self._inverse_squares())
        rest = (
            (count, replace(line, mechanism=Gaussian(line.mechanism.weight * factor)))
            for count, line in later.entries
            if isinstance(line.mechanism, Gaussian)
        )
        return Schedule((*self.entries, *rest))

    @property
    def curve(self) -> Curve | None:
        """The mechanism with its own proof, or None.

        Raises
        ------
        PrivacyAccountingError
            If the schedule has other releases beside it.
        """
        curves = [release.mechanism for _, release in self.entries if isinstance(release.mechanism, Curve)]
        if curves and len(self) != 1:
            raise PrivacyAccountingError(f"The schedule has {len(self)} releases; expected {curves[0].name} to be alone.")
        return curves[0] if curves else None

    def _inverse_squares(self) -> float:
        """Return the sum of the inverse squared weights; raise PrivacyAccountingError if a release is not full-data Gaussian."""
        if not self.full_gaussian:
            raise PrivacyAccountingError("Only full-data Gaussian releases can share their budget with other releases.")
        return math.fsum(count / line.mechanism.weight**2 for count, line in self.entries if isinstance(line.mechanism, Gaussian))

    def __len__(self) -> int:
        return sum(count for count, _ in self.entries)

    def __iter__(self) -> Iterator[Release]:
        return (release for count, release in self.entries for _ in range(count))

"""Count records by target: in ranges that suit every unit, or in given ranges."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import CountQuery, SumQuery

__all__ = ["LEAST_EXPONENT", "ExposedHistogram", "TargetExponents", "TargetHistogram"]

# Smallest and largest binary exponent of a range. They are those of all float64 numbers (-1073 to 1024), with one more for zero.
LEAST_EXPONENT, LARGEST_EXPONENT = -1074, 1024


@dataclass(frozen=True)
class TargetExponents(CountQuery):
    """Count the records by the binary exponent e of the target's absolute value, ``2**(e - 1) <= |y| < 2**e``.

    There is a range for 0, then one for every e from -1073 to 1024, which includes all float64 numbers.
    """

    @property
    def size(self) -> int:
        """Number of ranges, 2099."""
        return LARGEST_EXPONENT - LEAST_EXPONENT + 1

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The range of a record depends on its target only, and is exact: exponents of float64 are read, not computed. So one
        record adds 1 to one count, and a null record to none. Replacing a record lowers one count by 1 and raises another by 1,
        or changes nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        return rows.histogram(self._ranges, self.size)

    def _ranges(self, records: Records) -> np.ndarray:
        exponents = np.frexp(records.targets)[1].astype(np.intp)
        return np.where(records.targets == 0, 0, exponents - LEAST_EXPONENT)


@dataclass(frozen=True, eq=False)
class TargetHistogram(CountQuery):
    """Count the records with a target in each of some ranges, below the first and above the last.

    Parameters
    ----------
    edges : ndarray of shape (size - 1,)
        Ends of the ranges, in any order: public facts, or from earlier releases.
    """

    edges: np.ndarray

    @property
    def size(self) -> int:
        """Number of ranges, including the two unbounded ones."""
        return self.edges.size + 1

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The range of a record depends only on comparisons of its target with sorted numbers, which are the same for both
        tables. So one record adds 1 to one count, and a null record to none. Replacing a record lowers one count by 1 and raises
        another by 1, or changes nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records: below the first edge, between edges, and from the last edge on."""
        edges = np.sort(self.edges)  # if unsorted, a bin could depend on the target before
        return rows.histogram(lambda records: np.searchsorted(edges, records.targets, side="right"), self.size)


@dataclass(frozen=True, eq=False)
class ExposedHistogram(SumQuery):
    """Count the records as `TargetHistogram` does, and sum their exposures, each of which is in [0, 1].

    Parameters
    ----------
    edges : ndarray of shape (size - 2,)
        As of `TargetHistogram`.
    """

    edges: np.ndarray

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(1.5), "zero_out": 1.0}
    in_memory: ClassVar[str] = "takes exposures, which a table in partitions does not have"

    @property
    def clip_norm(self) -> float:
        """Norm of the contribution of one record, at most ``sqrt(2)``."""
        return math.sqrt(2)

    @property
    def size(self) -> int:
        """Number of ranges, and one for the sum of the exposures."""
        return self.edges.size + 2

    def sensitivity(self, adjacency: str) -> float:
        """Return ``sqrt(2)`` under ``zero_out`` and ``sqrt(3)`` under ``replace_one``.

        Proof. A record adds 1 to one count, and its exposure, in [0, 1] by clipping, to the sum: a vector of norm at most
        ``sqrt(2)``. Replacing it moves two counts by 1 at most, and the sum by 1 at most. A null record adds nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, then the sum of the exposures."""
        return np.append(TargetHistogram(self.edges).partial(rows), rows.total_exposure())

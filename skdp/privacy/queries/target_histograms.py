"""How many records have a target in each of some ranges, whatever its unit."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData

__all__ = ["LEAST_EXPONENT", "TargetExponents", "TargetHistogram"]

LEAST_EXPONENT, LARGEST_EXPONENT = -1074, 1024  # of float64, zero having the former


@dataclass(frozen=True)
class TargetExponents:
    """Number of records by the binary exponent of the target's absolute value: e where ``2**(e - 1) <= |y| < 2**e``.

    There is a range for every e from -1073 to 1024, which are all numbers of float64, and before them one for 0.
    """

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, 1."""
        return 1.0

    @property
    def size(self) -> int:
        """Number of ranges, 2099."""
        return LARGEST_EXPONENT - LEAST_EXPONENT + 1

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return no arrays: the query contains public facts only."""
        return ()

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The range of a record follows from its target alone, and exactly: exponents of float64 are read, not computed. So
        one record adds 1 to one count and a null record to none; replacing a record lowers one count by 1 and raises another by
        1, or changes nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def evaluate(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        return rows.histogram(self._ranges, self.size)

    def _ranges(self, records: Records) -> np.ndarray:
        exponents = np.frexp(records.labels)[1].astype(np.intp)
        return np.where(records.labels == 0, 0, exponents - LEAST_EXPONENT)


@dataclass(frozen=True, eq=False)
class TargetHistogram:
    """Number of records with a target in each of some ranges, below them and above.

    Parameters
    ----------
    edges : ndarray of shape (size - 1,)
        Ends of the ranges, which are sorted here: public facts, or from earlier releases.
    """

    edges: np.ndarray

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, 1."""
        return 1.0

    @property
    def size(self) -> int:
        """Number of ranges, the two unbounded ones among them."""
        return self.edges.size + 1

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return the ends of the ranges."""
        return (self.edges,)

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The range of a record follows from comparisons of its target with sorted numbers, the same for both tables. So
        one record adds 1 to one count and a null record to none; replacing a record lowers one count by 1 and raises another by
        1, or changes nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def evaluate(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records: below the first edge, between edges, and from the last edge on."""
        edges = np.sort(self.edges)  # in any other order, the place of a target would depend on the target before it
        return rows.histogram(lambda records: np.searchsorted(edges, records.labels, side="right"), self.size)

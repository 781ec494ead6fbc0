"""Count the records of each class."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries._base import CountQuery, SumQuery

__all__ = ["ClassCounts", "LabelSum"]


@dataclass(frozen=True)
class LabelSum(SumQuery):
    """Sum the labels as -1 and 1 over all records: the count of the second class minus that of the first."""

    clip_norm: ClassVar[float] = 1.0
    size: ClassVar[int] = 1

    def sensitivity(self, adjacency: str) -> float:
        """Return 2 under ``replace_one`` and 1 under ``zero_out``.

        Proof. A record contributes -1 or 1, a null record nothing.
        """
        return self.relative_sensitivity[adjacency]

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised numbers of records of both classes."""
        return rows.label_counts(2)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return their difference, the un-noised sum."""
        return np.diff(total)


@dataclass(frozen=True)
class ClassCounts(CountQuery):
    """Count the records of each class.

    Parameters
    ----------
    size : int
        Number of classes.
    """

    size: int

    def sensitivity(self, adjacency: str) -> float:
        """Return ``sqrt(2)`` under ``replace_one`` and 1 under ``zero_out``.

        Proof. A record adds 1 to one count. Replacing it moves 1 from one count to another, or changes nothing; a null record
        adds nothing.
        """
        return self.relative_sensitivity[adjacency]

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts."""
        return rows.label_counts(self.size)

"""Sum the sample weights of the records."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries._base import SumQuery

__all__ = ["TotalWeight"]


@dataclass(frozen=True)
class TotalWeight(SumQuery):
    """Sum the sample weights of all records, over their public bound: each is in [0, 1]."""

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 1.0, "zero_out": 1.0}
    clip_norm: ClassVar[float] = 1.0
    size: ClassVar[int] = 1
    in_memory: ClassVar[str] = "takes sample_weight, which a table in partitions does not have"

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under both adjacencies.

        Proof. Shared records cancel, also as computed, because weights are multiples of 2**-22. ``TrainingData`` clips a weight
        to [0, 1], so two weights differ by at most 1; a null record has the weight 0.
        """
        return self.relative_sensitivity[adjacency]

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum."""
        return np.array([rows.total_weight()])

"""Sum the features and the targets of a regression."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries._base import SumQuery

__all__ = ["FeatureSums", "FeatureTargetSums", "TargetSum"]


@dataclass(frozen=True)
class TargetSum(SumQuery):
    """Sum the targets, clipped to [-1, 1], or vectors of several targets, clipped to norm 1, over all records.

    Parameters
    ----------
    n_targets : int, default=1
        Number of targets of a record.
    """

    n_targets: int = 1

    clip_norm: ClassVar[float] = 1.0

    @property
    def size(self) -> int:
        """Number of coordinates, that of the targets."""
        return self.n_targets

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and 2 under ``replace_one``.

        Proof. Shared records cancel. A target is in [-1, 1], and a vector of several targets has norm at most 1, because
        ``TrainingData.totals`` clips it, which changes nothing if the public ranges were already mapped there. A null record is
        not counted. Two opposite targets attain the bound for two.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum."""
        return rows.totals()[rows.n_features :]


@dataclass(frozen=True)
class FeatureTargetSums(SumQuery):
    """Sum ``(x / R, y)`` over all records, with rows clipped to R, and a target or vector of targets clipped to norm 1.

    Parameters
    ----------
    data_norm : float
        The bound R.
    n_features : int
        Number of features d.
    n_targets : int, default=1
        Number of targets q of a record.
    """

    data_norm: float
    n_features: int
    n_targets: int = 1

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, ``sqrt(2)``."""
        return math.sqrt(2)

    @property
    def size(self) -> int:
        """Number of coordinates, ``d + q``."""
        return self.n_features + self.n_targets

    def sensitivity(self, adjacency: str) -> float:
        """Return ``sqrt(2)`` under ``zero_out`` and ``2 sqrt(2)`` under ``replace_one``.

        Proof. Shared records cancel. One record contributes ``(x / R, y)`` with ``||x|| <= R`` and ``||y|| <= 1`` by clipping, a
        vector of norm at most ``sqrt(2)``, and a null record nothing. Two opposite records attain the bound for two.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sums of the rows, then of the targets."""
        return rows.totals()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sums of the rows over R, then of the targets."""
        return np.append(total[: self.n_features] / self.data_norm, total[self.n_features :])


@dataclass(frozen=True)
class FeatureSums(SumQuery):
    """Sum ``x / R`` over all records, with rows clipped to R.

    Parameters
    ----------
    data_norm : float
        The bound R.
    n_features : int
        Number of features d.
    """

    data_norm: float
    n_features: int

    clip_norm: ClassVar[float] = 1.0

    @property
    def size(self) -> int:
        """Number of coordinates, d."""
        return self.n_features

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and 2 under ``replace_one``.

        Proof. Shared records cancel. One record contributes ``x / R`` with ``||x|| <= R`` by clipping, and a null record nothing.
        Two opposite records attain the bound for two.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum of the rows."""
        return rows.totals()[: self.n_features]

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sum over R."""
        return total / self.data_norm

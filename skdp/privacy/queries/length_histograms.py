"""Count records by length: by the norm of their standardised rows, or of their gradients."""

from dataclasses import dataclass

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import CountQuery, lengths_of
from skdp.privacy.queries.standardized_gradient import Standardization

__all__ = ["DistanceHistogram", "ResidualHistogram"]


@dataclass(frozen=True, eq=False)
class DistanceHistogram(CountQuery):
    """Count the records by the norm of the row, standardised by earlier releases, in given ranges.

    Parameters
    ----------
    geometry : Standardization
        Map from rows to z; the norm does not include the 1 for the intercept.
    edges : ndarray of shape (size,)
        Upper ends of the ranges, increasing. Longer rows count in the last range.
    """

    geometry: Standardization
    edges: np.ndarray

    @property
    def size(self) -> int:
        """Number of ranges."""
        return self.edges.size

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The range of a record depends on this record and on earlier releases only, also as computed: ``TrainingData``
        computes its length without the other records. So one record adds 1 to one count, and a null record to none. Replacing a
        record lowers one count by 1 and raises another by 1, or changes nothing.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        return self.geometry.view(rows).histogram(self._ranges, self.size)

    def _ranges(self, records: Records) -> np.ndarray:
        edges = np.sort(self.edges)  # if unsorted, a bin could depend on the record before
        return np.minimum(np.searchsorted(edges, self._lengths(records)), self.size - 1)

    def _lengths(self, records: Records) -> np.ndarray:
        return np.sqrt(np.maximum(np.square(lengths_of(records)) - float(self.geometry.intercept), 0.0))


@dataclass(frozen=True, eq=False)
class ResidualHistogram(DistanceHistogram):
    """Count the records by the norm of the gradient of the squared loss at a constant prediction, in given ranges.

    That norm is ``||prediction - y|| ||z||``, where z includes the 1 for the intercept, and y may be a vector of several targets.

    Parameters
    ----------
    geometry : Standardization
        Map from rows to z.
    edges : ndarray of shape (size,)
        Upper ends of the ranges, increasing. Longer gradients count in the last range.
    prediction : float or ndarray of shape (n_targets,)
        The constant prediction; an earlier release.
    """

    prediction: float | np.ndarray

    def _lengths(self, records: Records) -> np.ndarray:
        residuals = self.prediction - records.targets
        if residuals.ndim == 1:
            return np.abs(residuals) * lengths_of(records)
        return np.sqrt(np.einsum("ij,ij->i", residuals, residuals)) * lengths_of(records)

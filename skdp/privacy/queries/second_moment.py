"""Sum second moments of rows that are centred and clipped again with earlier releases."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import NonNegativeQuery, lengths_of
from skdp.privacy.queries._half_vector import half_vector, half_vector_size, square
from skdp.privacy.queries.standardized_gradient import Standardization

__all__ = ["SecondMoment"]


@dataclass(frozen=True, eq=False)
class SecondMoment(NonNegativeQuery):
    """Sum ``v v^T`` with ``v = z min(1, 1 / ||z||)`` over all records, as a half-vector.

    z is the row standardised by earlier releases, without the 1 for the intercept; if z is longer than 1 it is scaled down to
    norm 1.

    Parameters
    ----------
    geometry : Standardization
        Centre m, and one scale per feature.
    """

    geometry: Standardization

    by_row: ClassVar[bool] = True

    clip_norm: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError for a matrix in place of scales, for which the bound on the rounding does not hold."""
        if self.geometry.scale.ndim != 1:
            raise ValueError("The second moment needs one scale per feature.")

    @property
    def size(self) -> int:
        """Number of coordinates, ``d (d + 1) / 2``."""
        return half_vector_size(self.geometry.centre.size)

    @property
    def rounding(self) -> float:
        """Bound on the rounding relative to that of summing z.

        Products of ``(p x, p)``, where p is the largest scale, are summed, centred afterwards, and multiplied by factors of at
        most 1.
        """
        centre = float(np.linalg.norm(self.geometry.centre))
        return 1.0 + 4.0 * (self._largest_scale * (self.geometry.data_norm + centre)) ** 2

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. A half-vector has the diagonal and, times ``sqrt(2)``, the entries above it, so its Euclidean norm is the Frobenius
        norm of the matrix. Shared records cancel. One record contributes :math:`v v^\top` with
        :math:`\|v v^\top\| = \|v\|^2 \le 1` by clipping, and a null record nothing. For two,
        :math:`\|v v^\top - w w^\top\|^2 = \|v\|^4 + \|w\|^4 - 2 (v^\top w)^2 \le 2`, attained by orthogonal unit vectors.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum of products of rows that are not centred, row by row."""
        point = np.zeros((self.geometry.centre.size + self.geometry.intercept, 1))
        return self.geometry.view(rows).gram(point, self._weights).ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the centred sum as a half-vector."""
        total, centre = square(total), self.geometry.centre
        if self.geometry.intercept:
            # sum w (x - m)(x - m)' from the sums of w x x', w x and w, the last column of the sum with the constant 1.
            shift, weight = total[:-1, -1], total[-1, -1]
            total = total[:-1, :-1] - np.outer(shift, centre) - np.outer(centre, shift) + weight * np.outer(centre, centre)
        relative = self.geometry.scale / self._largest_scale
        return half_vector(total * np.outer(relative, relative))

    @property
    def _largest_scale(self) -> float:
        return float(self.geometry.scale.max())

    def _weights(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the square of the largest scale, divided by the squared norm of z if that exceeds 1."""
        squares = np.square(lengths_of(records)) - float(self.geometry.intercept)
        return self._largest_scale**2 / np.maximum(squares, 1.0)[:, None]

"""Sum counts, features and second moments of two classes for discriminant analysis."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import SumQuery, lengths_of
from skdp.privacy.queries._half_vector import half_vector, half_vector_size, square, symmetric
from skdp.privacy.queries.standardized_gradient import Standardization

__all__ = ["ClassMoments"]

N_CLASSES = 2  # number of classes: the solver that uses this query is for two


@dataclass(frozen=True, eq=False)
class ClassMoments(SumQuery):
    r"""Sum for each of two classes 1/2 per record, v and, as a half-vector, :math:`v v^\top`.

    ``v = z min(1, 1 / ||z||)``, where z is the row standardised by earlier releases, without the 1 for the intercept: if z is
    longer than 1 it is scaled down to norm 1.

    Parameters
    ----------
    geometry : Standardization
        Centre, and one scale per feature.
    """

    geometry: Standardization

    count_weight: ClassVar[float] = 0.5  # the largest that costs nothing under replace_one (proof)
    moment_weight: ClassVar[float] = 1.0
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}
    by_row: ClassVar[bool] = True

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, 3/2."""
        return math.sqrt(self.count_weight**2 + 1 + self.moment_weight**2)

    @property
    def size(self) -> int:
        """Number of coordinates of both classes together."""
        d = self.geometry.centre.size
        return N_CLASSES * (1 + d + half_vector_size(d))

    @property
    def rounding(self) -> float:
        """Bound on the rounding relative to that of summing v itself: sums of rows are scaled and centred after summation."""
        reach = float(self.geometry.scale.max()) * (self.geometry.data_norm + float(np.linalg.norm(self.geometry.centre)))
        return 1.0 + 2.0 * reach + 4.0 * reach**2

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 3/2 under ``zero_out`` and ``3 / sqrt(2)`` under ``replace_one``.

        Proof, for any weights g of the counts and h of the second moments, here 1/2 and 1. Shared records cancel, as the geometry
        is the same for both tables. A record of class c contributes :math:`(g, v, h v v^\top)` to the coordinates of c and
        nothing to the others; half-vectors keep the Frobenius norm, so with :math:`a = \|v\|^2 \le 1` its squared norm is
        :math:`g^2 + a + h^2 a^2 \le g^2 + 1 + h^2`, attained by unit vectors, and a null record contributes nothing: that is
        ``zero_out``.

        Two records of different classes contribute to different coordinates, so the squared norms add up, to at most
        :math:`2 (g^2 + 1 + h^2)`, attained by unit vectors. For two of the same class, with b the squared norm of the other
        vector w, and :math:`s = v^\top w`, the counts cancel and

        .. math:: \|v - w\|^2 + h^2 \|v v^\top - w w^\top\|^2 = a + b - 2 s + h^2 (a^2 + b^2 - 2 s^2)
                  \le 2 - 2 s + 2 h^2 (1 - s^2),

        which for s in [-1, 1] is at most :math:`2 + 2 h^2 + 1 / (2 h^2)` if :math:`2 h^2 \ge 1`, at :math:`s = -1 / (2 h^2)`, and
        at most 4 else, at s = -1; both attained by unit vectors. ``replace_one`` is the larger of the two cases. For h = 1 the
        second is 9/2 at s = -1/2, vectors at 120 degrees, and the first is :math:`2 g^2 + 4`: g = 1/2 makes it 9/2, too.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return un-noised counts and sums of both classes, then the products of rows of each, row by row."""
        view, point = self.geometry.view(rows), np.zeros((self.geometry.centre.size + self.geometry.intercept, 1))
        products = [view.gram(point, partial(self._weights, label)).ravel() for label in range(N_CLASSES)]
        return np.concatenate([view.label_counts(N_CLASSES), view.sum(point, self._shortened).ravel(), *products])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return count, sum and half-vector of the first class, then of the second; ``parts`` separates them."""
        d, n_coordinates = self.geometry.centre.size, self.geometry.centre.size + self.geometry.intercept
        counts, sums, *products = np.split(total, np.cumsum([N_CLASSES, N_CLASSES * n_coordinates, n_coordinates**2]))
        sums = self.geometry.from_rows(sums.reshape(n_coordinates, N_CLASSES))[:d]
        parts = []
        for label in range(N_CLASSES):
            moments = half_vector(self._centred(square(products[label])))
            parts += [self.count_weight * counts[[label]], sums[:, label], self.moment_weight * moments]
        return np.concatenate(parts)

    def parts(self, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the parts of an answer without their weights.

        Parameters
        ----------
        answer : ndarray of shape (size,)
            Answer of the oracle.

        Returns
        -------
        counts : ndarray of shape (2,)
            Numbers of records.
        sums : ndarray of shape (2, n_features)
            Sums of v.
        products : ndarray of shape (2, n_features, n_features)
            Sums of ``v v^T``, symmetric.
        """
        d = self.geometry.centre.size
        table = answer.reshape(N_CLASSES, -1)
        products = np.stack([symmetric(half, d) for half in table[:, d + 1 :]])
        return table[:, 0] / self.count_weight, table[:, 1 : d + 1], products / self.moment_weight

    def _shortened(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return ``min(1, 1 / ||z||)`` in the column of the record's class, and 0 in the other column."""
        # Norms of the view have the 1 of the intercept; v does not.
        squares = np.square(lengths_of(records)) - float(self.geometry.intercept)
        factors = 1 / np.sqrt(np.maximum(squares, 1.0))
        return factors[:, None] * (records.targets[:, None] == np.arange(N_CLASSES))

    def _weights(self, label: int, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the squares of these factors for one class."""
        return np.square(self._shortened(raw, records)[:, [label]])

    def _centred(self, products: np.ndarray) -> np.ndarray:
        """Return the sum of ``v v^T``, given the sum of products of ``(x, 1)``."""
        centre, scale = self.geometry.centre, self.geometry.scale
        if self.geometry.intercept:
            shift, weight = products[:-1, -1], products[-1, -1]
            products = products[:-1, :-1] - np.outer(shift, centre) - np.outer(centre, shift) + weight * np.outer(centre, centre)
        return scale[:, None] * products * scale

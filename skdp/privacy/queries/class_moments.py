"""Sum counts, features and second moments of two classes for discriminant analysis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._half_vector import half_vector_size, symmetric
from skdp.privacy.queries._unit_rows import UnitRows

__all__ = ["ClassMoments"]

N_CLASSES = 2  # number of classes: the solver that uses this query is for two


@dataclass(frozen=True, eq=False)
class ClassMoments(UnitRows):
    r"""Sum for each of two classes 1/2 per record, v and, as a half-vector, :math:`v v^\top`.

    ``v = z min(1, 1 / ||z||)``, where z is the row standardised by earlier releases, without the 1 for the intercept: if z is
    longer than 1 it is scaled down to norm 1.

    Parameters
    ----------
    geometry : Standardization
        Centre, and one scale per feature.
    """

    count_weight: ClassVar[float] = 0.5  # the largest that costs nothing under replace_one (proof)
    moment_weight: ClassVar[float] = 1.0
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, 3/2."""
        return math.sqrt(self.count_weight**2 + 1 + self.moment_weight**2)

    @property
    def size(self) -> int:
        """Number of coordinates of both classes together."""
        d = self.geometry.centre.size
        return N_CLASSES * (1 + d + half_vector_size(d))

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
        products = [self._products(rows, partial(_of_classes, [label])) for label in range(N_CLASSES)]
        counts = self.geometry.view(rows).label_counts(N_CLASSES)
        return np.concatenate([counts, self._sums(rows, partial(_of_classes, range(N_CLASSES))), *products])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return count, sum and half-vector of the first class, then of the second; ``parts`` separates them."""
        n_coordinates = len(self._origin)
        counts, sums, *products = np.split(total, np.cumsum([N_CLASSES, N_CLASSES * n_coordinates, n_coordinates**2]))
        parts, means = [], self._means(sums)
        for label in range(N_CLASSES):
            moments = self._half_vector(products[label])
            parts += [self.count_weight * counts[[label]], means[:, label], self.moment_weight * moments]
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


def _of_classes(labels: Sequence[int], records: Records) -> np.ndarray:
    """Return 1 in the column of the record's class, and 0 in the others, of shape (n_records, n_labels)."""
    return np.equal(records.targets[:, None], np.asarray(labels))

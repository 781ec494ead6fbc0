"""Sum the second derivatives of a loss, and the products of its gradients, with smaller weights for long rows."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import CountQuery, Loss, NonNegativeQuery
from skdp.privacy.queries._half_vector import half_vector, half_vector_size, square
from skdp.privacy.queries.shortened_gradient import row_weights
from skdp.privacy.queries.standardized_gradient import Standardization

__all__ = ["Bread", "InformedLoss", "Meat", "ResidualSizes"]


class InformedLoss(Loss, Protocol):
    """Define a loss of one raw prediction that knows the derivative of its mean slope.

    Attributes
    ----------
    most_information : float
        Bound on `information`.
    """

    @property
    def most_information(self) -> float:
        """Bound on `information`."""
        ...

    def information(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative of the mean slope at each record, shape (m, 1), between 0 and `most_information`."""
        ...


@dataclass(frozen=True, eq=False)
class Bread(NonNegativeQuery):
    r"""Sum :math:`w h z z^\top` over all records as a half-vector, with the information h of a loss at the raw prediction.

    The weight is :math:`w = \min(1, (b / \|z\|)^2)`: it depends on the row alone.

    Parameters
    ----------
    loss : InformedLoss
        Pointwise loss of one raw prediction.
    coef : ndarray of shape (n_coordinates, 1)
        Coefficients of z at which the information is taken: an earlier release.
    row_bound : float
        The number b; from earlier releases.
    geometry : Standardization
        Map from rows to z, from earlier releases.
    """

    loss: InformedLoss
    coef: np.ndarray
    row_bound: float
    geometry: Standardization

    by_row: ClassVar[bool] = True

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, the most information times ``b**2``."""
        return self.loss.most_information * self.row_bound**2

    @property
    def size(self) -> int:
        """Number of coordinates, ``k (k + 1) / 2`` for k coordinates of z."""
        return half_vector_size(self.coef.size)

    @property
    def rounding(self) -> float:
        """Bound on the rounding relative to that of summing clipped rows.

        Products of ``(x, 1)`` with weights of at most the most information are summed, then mapped by T, with ``z = T' (x, 1)``.
        Entry by entry the terms after the map are at most the products of the entries of ``|T|' |(x, 1)|``. For rows of norm R
        its squared norm is at most twice the squared Frobenius norm of T, with the rows of the features times R. The sum is
        relative to ``b**2``, and the map itself has at most half of its error. All of this has no unit.
        """
        centre, scale, norm = self.geometry.centre, self.geometry.scale, self.geometry.data_norm
        length = (norm * float(np.linalg.norm(scale))) ** 2
        if self.geometry.intercept:
            length += float(np.square(centre @ scale if scale.ndim > 1 else centre * scale).sum()) + 1.0
        return 1.0 + 4.0 * length / self.row_bound**2

    def sensitivity(self, adjacency: str) -> float:
        r"""Return C under ``zero_out`` and ``sqrt(2) C`` under ``replace_one``, with the clip norm C.

        Proof. Loss, coefficients, geometry and b are public or earlier releases, hence the same for both tables, so shared
        records contribute the same terms and cancel. The norm of a half-vector is the Frobenius norm of the matrix. One record
        contributes :math:`v v^\top` with :math:`\|v\|^2 = w h \|z\|^2 \le h \min(\|z\|^2, b^2) \le C`, and a null record
        nothing. For two, :math:`\|v v^\top - u u^\top\|^2 = \|v\|^4 + \|u\|^4 - 2 (v^\top u)^2 \le 2 C^2`, attained by
        orthogonal vectors.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum of weighted products of rows that are not standardised, row by row."""
        return self.geometry.view(rows).gram(self.geometry.to_rows(self.coef), self._factors).ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sum in standardised coordinates as a half-vector."""
        # z z' = T' (x, 1) (x, 1)' T: map the columns, then the rows.
        half = self.geometry.from_rows(square(total))
        return half_vector(self.geometry.from_rows(half.T))

    def _factors(self, raw: np.ndarray, records: Records) -> np.ndarray:
        found = np.nan_to_num(self.loss.information(raw, records.targets))
        return np.asarray(found * row_weights(records, self.row_bound, 2.0)[:, None])


@dataclass(frozen=True, eq=False)
class Meat(Bread):
    r"""Sum :math:`w^2 s^2 z z^\top` over all records as a half-vector, with the slope s of the loss at the raw prediction.

    These are the products of the gradients ``w s z`` with themselves. The gradient of a person is the weighted sum of those of
    her rows.

    Parameters
    ----------
    loss : InformedLoss
        Pointwise loss of one raw prediction, with bounded slope.
    coef : ndarray of shape (n_coordinates, 1)
        Coefficients of z at which the slope is taken: an earlier release.
    row_bound : float
        The number b; from earlier releases.
    geometry : Standardization
        Map from rows to z, from earlier releases.
    """

    joins_rows: ClassVar[bool] = True

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, the squared product of b and the steepest slope."""
        return (self.row_bound * self.loss.lipschitz) ** 2

    def sensitivity(self, adjacency: str) -> float:
        r"""Return C under ``zero_out`` and ``sqrt(2) C`` under ``replace_one``, with the clip norm C.

        Proof. As for `Bread`, with :math:`\|v\| = w |s| \|z\| \le \min(\|z\|, b^2 / \|z\|) L \le b L`, where L bounds the slope.
        The gradient of a person is a convex combination of such vectors, so it is no longer.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum of products of gradients that are not standardised, person by person."""
        return self.geometry.view(rows).score_products(self.geometry.to_rows(self.coef), self._factors).ravel()

    def _factors(self, raw: np.ndarray, records: Records) -> np.ndarray:
        slopes = np.nan_to_num(self.loss.derivative(raw, records.targets))
        return np.asarray(slopes * row_weights(records, self.row_bound, 2.0)[:, None])


@dataclass(frozen=True, eq=False)
class ResidualSizes(CountQuery):
    """Count the records by the size of the residual ``|z^T coef - y|`` in given ranges.

    Parameters
    ----------
    coef : ndarray of shape (n_coordinates, 1)
        Coefficients of z: an earlier release.
    edges : ndarray of shape (size,)
        Upper ends of the ranges, increasing. Larger residuals count in the last range.
    geometry : Standardization
        Map from rows to z, from earlier releases.
    """

    coef: np.ndarray
    edges: np.ndarray
    geometry: Standardization

    @property
    def size(self) -> int:
        """Number of ranges."""
        return self.edges.size

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The range of a record depends on this record and on earlier releases only, also as computed: its raw prediction
        does not depend on other records. So one record adds 1 to one count, and a null record to none. Replacing a record lowers
        one count by 1 and raises another by 1, or changes nothing. Counts are exact.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        counts, edges = np.zeros(self.size), np.sort(self.edges)

        def count(raw: np.ndarray, records: Records) -> np.ndarray:
            sizes = np.nan_to_num(np.abs(raw[:, 0] - records.targets), nan=np.inf)
            places = np.minimum(np.searchsorted(edges, sizes), self.size - 1)
            counts[:] += np.bincount(places, weights=records.present, minlength=self.size)
            return np.zeros((raw.shape[0], 1))

        self.geometry.view(rows).sum(self.geometry.to_rows(self.coef), count)
        return counts

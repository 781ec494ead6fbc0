"""Sum the products of features with each other and with the target, which determine least squares."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import SumQuery
from skdp.privacy.queries._half_vector import half_vector, half_vector_size, square, symmetric

__all__ = ["JointMoments", "SmallestEigenvalue"]


@dataclass(frozen=True)
class SmallestEigenvalue(SumQuery):
    """Compute the smallest eigenvalue of ``X^T X``, with the intercept's constant as a feature and rows clipped to R.

    Parameters
    ----------
    row_norm : float
        Bound R on the norm of a row with the intercept's constant.
    n_coordinates : int
        Number of features, with the intercept's constant.
    """

    row_norm: float
    n_coordinates: int

    by_row: ClassVar[bool] = True
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 1.0, "zero_out": 1.0}
    size: ClassVar[int] = 1

    @property
    def clip_norm(self) -> float:
        """Bound on the change by one record, ``R^2``."""
        return self.row_norm**2

    @property
    def rounding(self) -> float:
        """Bound on the rounding relative to that of the sum.

        The computed eigenvalue is that of a matrix with an error of ``4 d^2 2^-53 n R^2``. The allowance of the sum is at least
        ``BLOCK 2^-53 n R^2``.
        """
        return 1.0 + 4 * self.n_coordinates**2 / BLOCK

    def sensitivity(self, adjacency: str) -> float:
        """Return ``R^2`` under both adjacencies.

        Proof. A record adds ``x x^T`` to the matrix of the shared records. This is positive semidefinite and of norm
        ``||x||^2 <= R^2``, so by Weyl's inequality it raises the smallest eigenvalue l by 0 to ``R^2``: that is ``zero_out``.
        With either of two records the eigenvalue is between l and ``l + R^2``: that is ``replace_one``. The bound is attained by
        a row along the last eigenvector if the other eigenvalues are large.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum of products, row by row."""
        return _products(rows, self.n_coordinates, self.row_norm).ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised eigenvalue, which is non-negative up to rounding."""
        return np.asarray(eigh(square(total), eigvals_only=True, subset_by_index=[0, 0], check_finite=False, overwrite_a=True))


@dataclass(frozen=True)
class JointMoments(SumQuery):
    """Sum ``X^T X`` as a half-vector, followed by ``sqrt(2) R X^T y``; rows are clipped to R and targets to [-1, 1].

    The intercept's constant is a feature. Both parts are products of the vectors ``(x, R y)``, and each record has the same
    weight in both.

    Parameters
    ----------
    row_norm : float
        Bound R on the norm of a row with the intercept's constant.
    n_coordinates : int
        Number of features, with the intercept's constant.
    """

    row_norm: float
    n_coordinates: int

    by_row: ClassVar[bool] = True
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(8 / 3), "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, ``sqrt(3) R^2``."""
        return math.sqrt(3.0) * self.row_norm**2

    @property
    def size(self) -> int:
        """Number of entries of both parts."""
        return half_vector_size(self.n_coordinates) + self.n_coordinates

    def sensitivity(self, adjacency: str) -> float:
        r"""Return ``sqrt(3) R^2`` under ``zero_out`` and ``2 sqrt(2) R^2`` under ``replace_one``.

        Proof, for any factor c in place of R, with :math:`t = c \max |y| = c \le R`. Half-vectors keep the Frobenius norm. Write
        u for :math:`c y`. One record contributes a vector of squared norm
        :math:`\|x x^\top\|^2 + 2 u^2 \|x\|^2 \le R^4 + 2 t^2 R^2`, and a null record nothing: that is ``zero_out``. For two, with
        :math:`a = \|x\|^2`, :math:`b = \|x'\|^2` and :math:`s = x^\top x'`,

        .. math:: \|x x^\top - x' x'^\top\|^2 + 2 \|u x - u' x'\|^2 = a^2 + b^2 + 2 u^2 a + 2 u'^2 b - 2 s^2 - 4 u u' s,

        and :math:`-2 s^2 - 4 u u' s \le 2 u^2 u'^2`, so all is at most :math:`2 R^4 + 4 t^2 R^2 + 2 t^4 = 2 (R^2 + t^2)^2`. It
        is attained by rows of norm R with :math:`s = -u u' = -t^2`, which exist for :math:`t \le R`; for t = R they are
        opposite rows with equal targets. With t = R the two bounds are :math:`\sqrt 3 R^2` and :math:`2 \sqrt 2 R^2`.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sums of products of features, row by row, then with the target."""

        def targets(raw: np.ndarray, records: Records) -> np.ndarray:
            return np.clip(np.nan_to_num(records.targets), -1.0, 1.0)[:, None] * _shrinkage(records, self.row_norm)

        with_target = rows.sum(np.zeros((self.n_coordinates, 1)), targets)
        return np.concatenate([_products(rows, self.n_coordinates, self.row_norm).ravel(), with_target.ravel()])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return both un-noised parts; ``parts`` separates them."""
        products, with_target = np.split(total, [self.n_coordinates**2])
        return np.concatenate([half_vector(square(products)), math.sqrt(2.0) * self.row_norm * with_target])

    def parts(self, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both parts of an answer, in the units of the data.

        Parameters
        ----------
        answer : ndarray of shape (size,)
            Answer of the oracle.

        Returns
        -------
        second_moment : ndarray of shape (n_coordinates, n_coordinates)
            The noisy ``X^T X``, symmetric.
        cross_moment : ndarray of shape (n_coordinates,)
            The noisy ``X^T y``.
        """
        half = half_vector_size(self.n_coordinates)
        return symmetric(answer[:half], self.n_coordinates), answer[half:] / (math.sqrt(2.0) * self.row_norm)


def _products(rows: TrainingData, n_coordinates: int, row_norm: float) -> np.ndarray:
    """Sum of the products of the clipped rows' coordinates, of shape (n_coordinates, n_coordinates)."""
    return rows.gram(np.zeros((n_coordinates, 1)), lambda raw, records: np.square(_shrinkage(records, row_norm)))


def _shrinkage(records: Records, row_norm: float) -> np.ndarray:
    """Return the factor that clips each row to ``row_norm``, as a column; 0 for null records and rows of zeros."""
    return np.minimum(1.0, row_norm * records.inverse_norms)[:, None]

"""Compute second-order information: the Hessian of the summed loss, and Newton's direction."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from skdp.privacy.data.summation import summation_error
from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import CurvedLoss, NonNegativeQuery, SumQuery
from skdp.privacy.queries._half_vector import half_vector, half_vector_size, square, symmetric

__all__ = ["Curvature", "NewtonDirection"]


@dataclass(frozen=True, eq=False)
class Curvature(NonNegativeQuery):
    """Compute the half-vector of the Hessian ``sum_i h_i x_i x_i^T``, with every ``h_i ||x_i||^2`` clipped to ``clip_norm``.

    With ``upper_bound`` the second derivative is replaced by that of a parabola that touches the loss at the raw prediction
    and is nowhere below it. So a step to the minimum of the sum of the parabolas never increases the sum of the losses.

    Parameters
    ----------
    loss : CurvedLoss
        Pointwise loss of one raw prediction.
    coef : ndarray of shape (n_coordinates, 1)
        Point at which the Hessian is taken: an earlier release or a public start.
    clip_norm : float
        Bound M on the Frobenius norm of one record's matrix.
    upper_bound : bool, default=True
        Whether to use the second derivatives of parabolas above the loss.
    """

    loss: CurvedLoss
    coef: np.ndarray
    clip_norm: float
    upper_bound: bool = True

    by_row: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """Number of entries on and above the diagonal."""
        return half_vector_size(self.coef.shape[0])

    def sensitivity(self, adjacency: str) -> float:
        """Return ``sqrt(2) M`` under ``replace_one`` and M under ``zero_out``, M being the clip norm.

        Proof. Shared records contribute the same matrices, because the coefficients are the same, and cancel. One matrix
        ``h x x^T`` has Frobenius norm ``h ||x||^2``, which half-vectors keep, and ``clip_curvatures`` makes it at most M, with
        ``h >= 0``, whatever the loss returns. Two such matrices have the inner product ``h h' (x^T x')^2 >= 0``, so their
        difference has at most the squared norm ``2 M^2``, attained by orthogonal rows. A null record has ``h = 0``.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised Hessian, row by row."""
        return rows.gram(self.coef, self.clipped_curvatures).ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the Hessian as a half-vector; ``matrix`` converts it back."""
        return half_vector(square(total))

    def matrix(self, answer: np.ndarray) -> np.ndarray:
        """Return the symmetric matrix of an answer.

        Parameters
        ----------
        answer : ndarray of shape (size,)
            Half-vector.

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates)
            The noisy Hessian.
        """
        return symmetric(answer, self.coef.shape[0])

    def clipped_curvatures(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the weights ``h_i`` of the records of a block.

        Parameters
        ----------
        raw : ndarray of shape (m, 1)
            Raw predictions.
        records : Records
            The records of the block.

        Returns
        -------
        ndarray of shape (m, 1)
            Clipped second derivatives.
        """
        curvatures = (self.loss.upper_curvature if self.upper_bound else self.loss.curvature)(raw, records.targets)
        if records.weights is not None:
            curvatures = curvatures * records.weights[:, None]
        return clip_curvatures(curvatures, records.inverse_norms, self.clip_norm)


@dataclass(frozen=True, eq=False)
class NewtonDirection(SumQuery):
    r"""Compute Newton's direction ``(H + diag(ridge))^{-1} gradient``, with the Hessian H of a `Curvature`.

    Parameters
    ----------
    curvature : Curvature
        Query that defines H.
    gradient : ndarray of shape (n_coordinates, 1)
        An earlier release, or computed from earlier releases.
    ridge : ndarray of shape (n_coordinates,)
        Positive numbers that are added to the diagonal; may come from earlier releases.
    n_samples : int
        Number of records.
    """

    curvature: Curvature
    gradient: np.ndarray
    ridge: np.ndarray
    n_samples: int

    by_row: ClassVar[bool] = True
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 1.0, "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        r"""Bound on the change by one record, :math:`M \|g\| / (\lambda (\lambda + M))`; infinite without a positive ridge."""
        least, largest = float(self.ridge.min()), self.curvature.clip_norm
        if not least > 0:
            return math.inf
        return largest / (least + largest) * float(np.linalg.norm(self.gradient)) / least

    @property
    def size(self) -> int:
        """Number of coordinates of the direction."""
        return self.gradient.size

    @property
    def rounding(self) -> float:
        r"""Bound on the rounding of the direction, relative to that of a sum of vectors of norm ``clip_norm``.

        To first order, an error E of H moves the direction by at most :math:`\|E\| \|g\| / \lambda^2`, which is
        :math:`(1 + M / \lambda) \|E\| / M` times ``clip_norm``. As long as :math:`\|E\|` is below :math:`\lambda / 2`, twice that
        is a bound; for a larger E no bound is known. The sum has the error of sums of matrices of norm M. Cholesky's method has
        the error of a matrix of d rows that is changed by at most :math:`4 d (3 d + 1) 2^{-53} (n M + \max \mathrm{ridge})` [1]_.

        References
        ----------
        .. [1] N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002, Theorem 10.4.
        """
        # Error of the matrix over n M: of the sum, and of the factorisation, as if the matrix were changed.
        size, largest, ridge = self.size, self.curvature.clip_norm, float(self.ridge.min())
        solve = 4 * size * (3 * size + 1) * (self.n_samples + float(self.ridge.max()) / largest)
        error = summation_error(self.n_samples, False) + solve * 2.0**-53
        if not error * largest <= ridge / 2:
            return math.inf
        return 2 * (1 + largest / ridge) * error / summation_error(self.n_samples, False)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`M \|g\| / (\lambda (\lambda + M))` under both adjacencies.

        Here M is the clip norm of the curvature and :math:`\lambda` the smallest entry of the ridge.

        Proof. Let A be the matrix of the shared records, the ridge included, so :math:`A \succeq \lambda I`. Coefficients,
        gradient and ridge are the same for both tables. A record, or a person, adds a matrix B with :math:`0 \preceq B \preceq
        M I`: a record :math:`h x x^\top` with :math:`h \|x\|^2 \le M`, a person a convex combination of such matrices. Inversion
        reverses the order of positive matrices, so

        .. math:: 0 \preceq P = A^{-1} - (A + B)^{-1} \preceq A^{-1} - (A + M I)^{-1} \preceq c I, \quad
           c = \frac{1}{\lambda} - \frac{1}{\lambda + M} = \frac{M}{\lambda (\lambda + M)},

        since :math:`1 / a - 1 / (a + M)` falls with the eigenvalue :math:`a \ge \lambda` of A. A null record has B = 0: that is
        ``zero_out``. Two records change the inverse by the difference of two matrices between 0 and :math:`c I`, whose norm is
        also at most c: that is ``replace_one``. Both are attained if A is :math:`\lambda I` and x is along g.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised Hessian, row by row."""
        return self.curvature.partial(rows)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised direction."""
        matrix = square(total)
        matrix[np.diag_indices(self.size)] += self.ridge
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, self.gradient.ravel(), check_finite=False))


def clip_curvatures(curvatures: np.ndarray, inverse_norms: np.ndarray, clip_norm: float) -> np.ndarray:
    """Clip curvatures h_i to non-negative numbers for which ``h_i ||x_i||^2`` is at most ``clip_norm``.

    Parameters
    ----------
    curvatures : ndarray of shape (m, 1)
        Second derivatives of any loss; a NaN counts as 0.
    inverse_norms : ndarray of shape (m,)
        At most one over the norm of each record, finite.
    clip_norm : float
        Bound on the norm of one record's matrix.

    Returns
    -------
    ndarray of shape (m, 1)
        Finite, non-negative numbers.
    """
    limits = np.minimum(clip_norm * np.square(inverse_norms)[:, None], np.finfo(np.float64).max)  # finite for short rows too
    clipped = np.minimum(np.maximum(curvatures, 0.0), limits)
    return np.where(np.isnan(clipped), 0.0, clipped)

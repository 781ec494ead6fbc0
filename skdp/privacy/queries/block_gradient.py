"""Sum clipped per-record gradients over a block of coordinates, and score coordinates for selection."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.errors import shown
from skdp.privacy.queries._base import Loss, Query, Scores, slopes

__all__ = ["BlockGradient", "CoordinateScores"]


@dataclass(frozen=True, eq=False)
class BlockGradient(Query):
    r"""Sum the loss gradient at ``coef`` in the coordinates of a block over all records, each clipped to ``clip_norm``.

    Record i contributes :math:`\mathrm{clip}(x_{i,S} r_i^\top)` with ``r_i = weight_i * loss'(x_i^T coef, y_i)``, where x_i is
    the row clipped to the data norm and extended by the constant of the intercept, and :math:`x_{i,S}` its entries in the block.

    Parameters
    ----------
    loss : Loss
        Pointwise loss.
    coef : ndarray of shape (n_coordinates, n_outputs)
        Point at which the gradient is taken: an earlier release or a public start.
    block : ndarray of int of shape (n_block,)
        Public coordinates, in ascending order; the intercept, if there is one, has the number of features as its index.
    clip_norm : float
        Bound on the Frobenius norm of one record's contribution.

    Raises
    ------
    ValueError
        If the block is empty, not in strictly ascending order, or has other coordinates than those of ``coef``.
    """

    loss: Loss
    coef: np.ndarray
    block: np.ndarray
    clip_norm: float

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2.0, "zero_out": 1.0}
    one_pass: ClassVar[bool] = False
    by_column: ClassVar[bool] = True
    in_memory: ClassVar[str] = "keeps a raw prediction of each record"

    def __post_init__(self) -> None:
        block, n_coordinates = np.array(self.block), len(self.coef)
        if (
            block.ndim != 1
            or block.dtype.kind not in "iu"
            or not block.size
            or (block[1:] <= block[:-1]).any()
            or not (0 <= block[0] and block[-1] < n_coordinates)
        ):
            raise ValueError(f"block={shown(self.block)}; expected ascending coordinates from 0 to {n_coordinates - 1}.")
        block = block.astype(np.intp)
        block.setflags(write=False)
        object.__setattr__(self, "block", block)

    @property
    def size(self) -> int:
        """Number of coordinates of the gradient."""
        return self.block.size * self.coef.shape[1]

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 2C under ``replace_one`` and C under ``zero_out``, C being the clip norm.

        Proof. ``coef``, all points before it, the block, the loss and C are the same for both tables, so the terms of all records
        that the tables share cancel: a raw prediction is updated from point to point with the entries of its own record alone, by
        rules that depend on the points only. What is left is ``h(z) - h(z')`` for the replaced record, at most
        ``||h(z)|| + ||h(z')|| <= 2C``; a null record has ``h(z') = 0``. A term is a rank-one matrix of norm
        :math:`\|x_{i,S}\| \|r_i\|`, and ``TrainingData.block_sum`` shrinks ``r_i`` until that is at most C, for every finite
        record, label, weight and loss and for every choice of C: the norm of the clipped row in the block is computed from the
        same entries that are summed, and for one coordinate and one output the product itself is clipped. The noise has an
        allowance for the rounding of the sum.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def evaluate(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum, in C order of ``coef[block]``."""
        return rows.block_sum(self.coef, self.block, self.residuals, self.clip_norm).ravel()

    def residuals(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the unclipped derivative of each record in its raw predictions; a kernel for ``TrainingData.block_sum``."""
        return slopes(self.loss, raw, records)


@dataclass(frozen=True, eq=False)
class CoordinateScores(Scores):
    r"""Score every coordinate by the absolute value of the gradient, relative to the largest contribution of one record.

    The score of coordinate j is :math:`|\sum_i \mathrm{clip}(x_{ij} r_i, \pm C_j) + o_j| / C_j` with
    ``r_i = weight_i * loss'(x_i^T coef, y_i)``, the row x_i clipped to the data norm and extended by the constant of the
    intercept, and a public o; it is 0 where C_j is 0. The smoothness in a coordinate is proportional to the square of the bound
    of its feature. So if C_j is proportional to that bound, the largest score promises the largest decrease, as in [1]_.

    Parameters
    ----------
    loss : Loss
        Pointwise loss of one raw prediction.
    coef : ndarray of shape (n_coordinates, 1)
        Point at which the gradient is taken: an earlier release or a public start.
    clip_norms : ndarray of shape (n_coordinates,)
        Bound C_j on the absolute value of one record's contribution to coordinate j; non-negative, public.
    offset : ndarray of shape (n_coordinates,)
        Gradient of the terms that do not depend on the records, in the sum form; an earlier release or public.

    Raises
    ------
    ValueError
        If there are several raw predictions, or not one clip norm and offset per coordinate, or if a clip norm is negative.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "High-dimensional private empirical risk minimization by greedy
       coordinate descent", AISTATS 2023, Algorithm 1. The Laplace noise of its choice is Gumbel noise here.
    """

    loss: Loss
    coef: np.ndarray
    clip_norms: np.ndarray
    offset: np.ndarray

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2.0, "zero_out": 1.0}
    clip_norm: ClassVar[float] = 1.0  # in the units of a score
    by_column: ClassVar[bool] = True
    in_memory: ClassVar[str] = "keeps a raw prediction of each record"

    def __post_init__(self) -> None:
        shape = (len(self.coef),)
        if self.coef.shape != (*shape, 1) or np.shape(self.clip_norms) != shape or np.shape(self.offset) != shape:
            raise ValueError(
                f"clip_norms of shape {np.shape(self.clip_norms)} and offset of shape {np.shape(self.offset)}, coef of shape "
                f"{self.coef.shape}; expected one of each per coordinate, and one raw prediction."
            )
        if not (np.asarray(self.clip_norms) >= 0).all():
            raise ValueError("clip_norms has a negative number or NaN; expected bounds.")

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.coef)

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return the point, the clip norms and their squares, and the offset in its own units and in those of a score."""
        with np.errstate(over="ignore"):
            squares = np.square(self.clip_norms)
        return self.coef, self.clip_norms, squares, self.offset, self._in_units(self.offset)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 2 under ``replace_one`` and 1 under ``zero_out``.

        Proof. ``coef``, all points before it, the loss, C and o are the same for both tables, so only the terms of the replaced
        record differ. Before the absolute value is taken, coordinate j moves by :math:`|h_j(z') - h_j(z)| \le 2C_j`, or by at
        most :math:`C_j` for a null record, where ``h(z') = 0``. The absolute value moves by no more. Divided by :math:`C_j` that
        is 2 or 1; where :math:`C_j = 0` the score is 0 for every table. ``TrainingData.clipped_sum`` makes
        :math:`|h_j| \le C_j` for every finite record, label, weight and loss.
        """
        return self.relative_sensitivity[adjacency]

    @staticmethod
    def score_rounding(n_samples: int, n_coefficients: int, summation_error: float, offset: float = 0.0) -> float:
        """Return a bound on the float64 error of a score and of adding noise to it; every score is a separate sum."""
        return Scores.score_rounding(n_samples, 0, summation_error, offset)

    def rounding_error(self, n_samples: int, summation_error: float) -> float:
        """Return a bound on the float64 error of a score and of adding noise to it."""
        return self.score_rounding(
            n_samples, self.size, summation_error, float(np.abs(self._in_units(self.offset)).max(initial=0.0))
        )

    def evaluate(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised scores of the coordinates, which are non-negative; larger is better."""
        gradient = rows.clipped_sum(self.coef, self.residuals, self.clip_norms, kept=True)[:, 0] + self.offset
        return np.abs(self._in_units(gradient))

    def _in_units(self, vector: np.ndarray) -> np.ndarray:
        """Return a vector divided by the clip norms; 0 where a clip norm is 0."""
        known = np.asarray(self.clip_norms) > 0
        with np.errstate(over="ignore"):
            return np.divide(vector, self.clip_norms, where=known, out=np.zeros(known.shape))

"""Count records near public knots of their columns, given rows of hat functions."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from skdp.privacy.data.kernels import Batch
from skdp.privacy.data.storage import row_squares
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries._base import NonNegativeQuery

__all__ = ["HatSums"]


@dataclass(frozen=True, eq=False)
class HatSums(NonNegativeQuery):
    """Sum the entries of the rows in some columns, which should contain non-negative functions (hats) of small norm.

    Negative entries count as 0. If the norm of the other entries of a record exceeds 1, they are scaled down to norm 1.

    Parameters
    ----------
    columns : ndarray of int of shape (size,)
        Public column numbers.
    """

    columns: np.ndarray

    by_row: ClassVar[bool] = True
    clip_norm: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Keep a read-only copy of the columns; raise TypeError for a mask, which would select other columns."""
        given = np.asarray(self.columns)
        if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
            raise TypeError(f"columns has shape {given.shape} and dtype {given.dtype}; expected a vector of integers.")
        own = given.astype(np.intp)
        own.setflags(write=False)
        object.__setattr__(self, "columns", own)

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.columns.size

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. Shared records contribute the same and cancel. One record contributes a vector v of norm at most 1 by clipping. A
        null record, whose row is 0, contributes nothing. For two, :math:`\|v - w\|^2 = \|v\|^2 + \|w\|^2 - 2 v^\top w \le 2`,
        because no entry of v or w is negative, so :math:`v^\top w \ge 0`. Two unit vectors without a common column attain it.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sums, in the order of the columns."""
        return rows.batch_sum(self._sums, self.size)

    def _sums(self, batch: Batch) -> np.ndarray:
        # Non-negative entries, each row divided by its norm where that exceeds 1, and summed by one product.
        part = batch.rows[:, self.columns]  # a copy
        entries = part.data if sparse.issparse(part) else part
        np.maximum(entries, 0.0, out=entries)
        factors = 1.0 / np.maximum(np.sqrt(row_squares(part)), 1.0)
        return part.T @ (factors if batch.present is None else factors * batch.present)

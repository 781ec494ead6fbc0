"""The sum of clipped per-record gradients in a block of coordinates."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.errors import shown
from skdp.privacy.queries._base import Loss, clip_residuals
from skdp.privacy.rows import Records, Rows

__all__ = ["BlockGradient"]


@dataclass(frozen=True, eq=False)
class BlockGradient:
    r"""Sum over all records of the loss gradient at ``coef`` in the coordinates of a block, each clipped to ``clip_norm``.

    Record i contributes :math:`\mathrm{clip}(x_{i,S} r_i^\top)` with ``r_i = weight_i * loss'(x_i^T coef, y_i)``, where x_i is
    the row clipped to the data norm and extended by the constant of the intercept, :math:`x_{i,S}` its entries in the block S.

    Parameters
    ----------
    loss : Loss
        Pointwise loss.
    coef : ndarray of shape (n_coordinates, n_outputs)
        Where the gradient is taken: an earlier release or a public start.
    block : ndarray of int of shape (n_block,)
        Coordinates in ascending order, public; the number of features stands for the intercept where there is one.
    clip_norm : float
        Bound on the Frobenius norm of what one record contributes.

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
    by_column: ClassVar[bool] = True

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

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return the point at which the gradient is taken."""
        return (self.coef,)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 2C under ``replace_one`` and C under ``zero_out``, C being the clip norm.

        Proof. ``coef``, all points before it, the block, the loss and C are the same for both tables, so the terms of all
        records that the tables share cancel: a raw prediction is moved from point to point with the entries of its own record
        alone, by rules that the points decide. What is left is ``h(z) - h(z')`` for the replaced record, at most
        ``||h(z)|| + ||h(z')|| <= 2C``; a null record has ``h(z') = 0``. A term is a rank-one matrix of norm
        :math:`\|x_{i,S}\| \|r_i\|`, and ``clip_residuals`` shrinks ``r_i`` until that is at most C for every finite record,
        label, weight and loss, whatever C was chosen by; the norm of the clipped row in the block is worked out from the very
        entries that are summed. The rounding of the sum is in the noise's allowance.

        Parameters
        ----------
        adjacency : {"replace_one", "zero_out"}
            Which tables are neighbours.

        Returns
        -------
        float
            Bound on the Euclidean norm of the change.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def evaluate(self, rows: Rows) -> np.ndarray:
        """Return the un-noised sum.

        Parameters
        ----------
        rows : Rows
            The training data.

        Returns
        -------
        ndarray of shape (n_block * n_outputs,)
            The sum, in C order of ``coef[block]``.
        """
        return rows.block_sum(self.coef, self.block, self.residuals).ravel()

    def residuals(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the clipped derivative of each record in its raw predictions; a kernel for `Rows.block_sum`."""
        residuals = self.loss.derivative(raw, records.labels)
        if records.weights is not None:
            residuals *= records.weights[:, None]
        return clip_residuals(residuals, records.inverse_norms, self.clip_norm)

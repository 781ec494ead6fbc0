"""Sum the clipped per-record gradients of a linear model."""

from dataclasses import dataclass

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import Loss, SumQuery, clip_residuals, slopes

__all__ = ["Gradient"]


@dataclass(frozen=True, eq=False)
class Gradient(SumQuery):
    """Sum the loss gradient at ``coef`` over all records, each clipped to ``clip_norm``.

    Record i contributes ``clip(x_i r_i^T)`` with ``r_i = weight_i * loss'(x_i^T coef, y_i)``, where x_i is the row clipped to
    the data norm and extended by the constant of the intercept.

    Parameters
    ----------
    loss : Loss
        Pointwise loss.
    coef : ndarray of shape (n_coordinates, n_outputs)
        Point at which the gradient is taken: an earlier release or a public start.
    clip_norm : float
        Bound on the Frobenius norm of one record's gradient.
    records : ndarray of int or None, default=None
        Row numbers of the records that a single-pass release reads; the oracle selects them.
    """

    loss: Loss
    coef: np.ndarray
    clip_norm: float
    records: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of coordinates of the gradient."""
        return self.coef.size

    def sensitivity(self, adjacency: str) -> float:
        """Return 2C under ``replace_one`` and C under ``zero_out``, C being the clip norm.

        Proof. ``coef``, the loss and C are the same for both tables, so the terms of all records that the tables share cancel.
        What is left is ``h(z) - h(z')`` for the replaced record, at most ``||h(z)|| + ||h(z')|| <= 2C``; a null record has
        ``h(z') = 0``. ``clip_residuals`` makes ``||h|| <= C`` for every finite record, label, weight and loss. The shared terms
        also cancel as computed: ``TrainingData`` computes a raw prediction from its record alone, in an order that depends on
        public facts only. The noise has an allowance for the rounding of the sum.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum, in C order of ``coef``."""
        return rows.sum(self.coef, self.residuals).ravel()

    def residuals(self, raw: np.ndarray, records: Records) -> np.ndarray:
        """Return the clipped derivative of each record in its raw predictions; a kernel for ``TrainingData.sum``."""
        return clip_residuals(slopes(self.loss, raw, records), records.inverse_norms, self.clip_norm)

"""Sum clipped differences of per-record gradients at two points, which variance reduction adds to a snapshot's gradient."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp.privacy.data.training_data import SHORTEST, Records, TrainingData
from skdp.privacy.queries._base import Loss, SumQuery, clip_residuals, slopes

__all__ = ["Difference"]


@dataclass(frozen=True, eq=False)
class Difference(SumQuery):
    r"""Sum ``h_i(coef) - h_i(snapshot)`` over the records, where ``h_i`` is the gradient of record i clipped to C.

    Record i contributes the rank-one matrix ``x_i (r_i(coef) - r_i(snapshot))^T``, clipped once more, to
    :math:`D = \min(2 C, \beta \|w - \tilde w\|)`. One pass computes both points, without a matrix per record.

    Parameters
    ----------
    loss : Loss
        Pointwise loss.
    coef : ndarray of shape (n_coordinates, n_outputs)
        Point at which the gradients are taken: an earlier release or a public start.
    snapshot : ndarray of shape (n_coordinates, n_outputs)
        Point at which the subtracted gradients are taken: an earlier release or a public start.
    gradient_clip_norm : float
        Bound C on the Frobenius norm of one record's gradient.
    smoothness : float
        Lipschitz constant :math:`\beta` of one record's gradient, class weight and norm of the row included, so that the clip to
        D has no effect. The guarantee does not depend on it.

    Notes
    -----
    **The clip to D changes nothing** if ``smoothness`` is a Lipschitz constant as stated. For a fixed row, the gradient is
    ``x r^T`` with ``r(w) = weight * loss'(x^T w, y)``. Its clip is the projection of r onto the ball of radius ``C / ||x||``,
    which moves no two points apart: ``||h(w) - h(v)|| <= ||x|| ||r(w) - r(v)||``, at most
    ``weight * loss.smoothness * ||x||**2 ||w - v||`` and so at most ``beta ||w - v||``. It is also at most 2C, as each h is at
    most C. All of this holds for the clipped row x. In float64 the difference of two numbers of size r has an error of a few
    ``2**-53 r``. If D is smaller than that, the clip may cut off rounding errors. This biases the model by about that much and
    does not affect the guarantee.
    """

    loss: Loss
    coef: np.ndarray
    snapshot: np.ndarray
    gradient_clip_norm: float
    smoothness: float

    @cached_property
    def clip_norm(self) -> float:
        """Bound D on the norm of one record's contribution; 0 at the snapshot itself, and if it would be below 2**-480."""
        distance = float(np.linalg.norm(self.coef - self.snapshot))
        bound = min(2 * self.gradient_clip_norm, self.smoothness * distance) if distance else 0.0
        return bound if bound >= SHORTEST else 0.0

    @property
    def size(self) -> int:
        """Number of coordinates of a gradient."""
        return self.coef.size

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return the two points; the other numbers may be infinite, which the clip norm is not."""
        return self.coef, self.snapshot

    def sensitivity(self, adjacency: str) -> float:
        """Return 2D under ``replace_one`` and D under ``zero_out``, D being the clip norm.

        Proof. Both points, C and the smoothness are the same for both tables, so D is too, and the terms of all records that the
        tables share cancel, also as computed: ``TrainingData`` computes the raw predictions of a record at both points from that
        record alone. What is left is the term of the replaced record minus that of its replacement. A term is a rank-one matrix
        of norm ``||x_i|| ||d_i||``. The last operation on ``d_i`` is ``clip_residuals`` to D, which bounds that norm by D for
        every finite record, label, weight, loss and pair of points, whether or not ``smoothness`` is right, and whatever rounding
        errors, infinities or NaN the subtraction produced. The noise has an allowance for the rounding of the clip, which is
        relative to D like the rest of that allowance. It holds because D is 0 or at least 2**-480: a bound below about 2**-530,
        times the scale of a long row, would be a denormal number, which rounding may double. A null record has ``d_i = 0``. With
        D = 0 nothing is read.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum, in C order of ``coef``."""
        return rows.sum(np.concatenate([self.coef, self.snapshot], axis=1), self._residuals).ravel()

    def _residuals(self, raw: np.ndarray, records: Records) -> np.ndarray:
        # Both points in one pass: their raw predictions are the columns of `raw`, half each.
        here, there = (self._clipped(part, records) for part in np.split(raw, 2, axis=1))
        here -= there
        return clip_residuals(here, records.inverse_norms, self.clip_norm)

    def _clipped(self, raw: np.ndarray, records: Records) -> np.ndarray:
        return clip_residuals(slopes(self.loss, raw, records), records.inverse_norms, self.gradient_clip_norm)

"""Sum gradients of a linear model whose rows are centred and scaled by earlier releases."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import Loss, SumQuery, WithParameters, clip_residuals, slopes

__all__ = ["Standardization", "StandardizedGradient", "Whitening"]


@dataclass(frozen=True, eq=False)
class Standardization(WithParameters):
    """Map a row x to ``z = (scale * (x - centre), 1)``, without the 1 for a model without intercept.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_features,)
        Vectors computed from earlier releases.
    intercept : bool
        Whether there is an intercept; without one the centre is zero.
    data_norm : float
        Public bound on the norm of x.
    """

    centre: np.ndarray
    scale: np.ndarray
    intercept: bool
    data_norm: float

    def __post_init__(self) -> None:
        for name in ("centre", "scale"):  # read-only copies, because norms are computed once
            own = np.array(getattr(self, name), dtype=np.float64)
            own.setflags(write=False)
            object.__setattr__(self, name, own)
        if not self.intercept and self.centre.any():  # sums of rows alone cannot be centred, so norms would not bound them
            raise ValueError("A geometry without intercept has a centre; expected zeros.")

    def view(self, rows: TrainingData) -> TrainingData:
        """Return the rows with the norms of z."""
        return rows.standardized(self.centre, self.scale)

    def to_rows(self, coef: np.ndarray) -> np.ndarray:
        """Convert coefficients of z to those of ``(x, 1)`` with the same raw predictions; both of shape (n_coordinates, m)."""
        weights = self._times_scale(coef[: self.centre.size])
        return np.concatenate([weights, coef[self.centre.size :] - self.centre @ weights]) if self.intercept else weights

    def from_rows(self, total: np.ndarray) -> np.ndarray:
        """Convert a sum of ``(x, 1) r^T`` to the sum of ``z r^T``; both of shape (n_coordinates, m)."""
        if not self.intercept:
            return self._scaled(total)
        features, constant = total[:-1], total[-1:]
        return np.concatenate([self._scaled(features - self.centre[:, None] * constant), constant])

    def _times_scale(self, weights: np.ndarray) -> np.ndarray:
        return self.scale[:, None] * weights

    def _scaled(self, features: np.ndarray) -> np.ndarray:
        return self.scale[:, None] * features

    @cached_property
    def rounding(self) -> float:
        """Bound on the rounding of a sum of clipped gradients, relative to that of summing z itself.

        With intercept ``||z|| >= 1``, so residuals are at most C, and rows of norm at most R are scaled after the sum. Without
        intercept there is no centre, and ``||x|| <= ||z|| / min(scale)``.
        """
        largest = float(self.scale.max())
        spread = self.data_norm + float(np.linalg.norm(self.centre)) if self.intercept else 1 / float(self.scale.min())
        return 1.0 + 2.0 * largest * spread

    @cached_property
    def largest_norm(self) -> float:
        """Bound on the norm of z."""
        reach = float(self.scale.max(initial=0.0)) * (self.data_norm + float(np.linalg.norm(self.centre)))
        return float(np.hypot(reach, float(self.intercept)))


class Whitening(Standardization):
    """Map a row x to ``z = (scale.T @ (x - centre), 1)`` with a square matrix as scale, for at most 1024 features."""

    def _times_scale(self, weights: np.ndarray) -> np.ndarray:
        return self.scale @ weights

    def _scaled(self, features: np.ndarray) -> np.ndarray:
        return self.scale.T @ features

    @cached_property
    def rounding(self) -> float:
        """Bound on the rounding of a sum of clipped gradients, relative to that of summing z itself.

        As for `Standardization`, with the largest singular value. The product of the sum and the matrix has an error of up to d
        units of roundoff times the Frobenius norm, at most a quarter of the error of summing a block of 4096 rows.
        """
        largest, length = self._singular_values[1], float(np.linalg.norm(self.scale))
        if self.intercept:
            spread = self.data_norm + float(np.linalg.norm(self.centre))
        else:
            spread = 1 / max(self._singular_values[0], 1e-300)
        return 1.0 + (2.0 * largest + length / 2) * spread

    @cached_property
    def largest_norm(self) -> float:
        """Bound on the norm of z."""
        reach = self._singular_values[1] * (self.data_norm + float(np.linalg.norm(self.centre)))
        return float(np.hypot(reach, float(self.intercept)))

    @cached_property
    def _singular_values(self) -> tuple[float, float]:
        """Lower and upper bound on the singular values by Gershgorin discs, close if the columns are nearly orthogonal."""
        # Gershgorin: each eigenvalue of A'A is within the sum of the other entries of a row from its diagonal entry; the last
        # term covers the rounding of the products.
        products = self.scale.T @ self.scale
        lengths = np.diag(products)
        rest = np.abs(products).sum(axis=1) - lengths + 1e-12 * np.sqrt(lengths * lengths.max())
        return math.sqrt(max(float((lengths - rest).min()), 0.0)), math.sqrt(float((lengths + rest).max()))


@dataclass(frozen=True, eq=False)
class StandardizedGradient(SumQuery):
    """Sum the loss gradient of standardised rows over all records, each clipped to ``clip_norm``.

    Record i contributes ``clip(z_i r_i^T)`` with ``r_i = weight_i * u(y_i) * loss'(z_i^T coef, y_i)``. No standardised row
    is ever stored: the sum over (x, 1) is mapped.

    Parameters
    ----------
    loss : Loss
        Pointwise loss.
    coef : ndarray of shape (n_coordinates, n_outputs)
        Coefficients of z at which the gradient is taken: an earlier release or a public start.
    clip_norm : float
        Bound on the Frobenius norm of one record's gradient; may come from earlier releases.
    geometry : Standardization
        Map from rows to z, from earlier releases.
    records : ndarray of int or None, default=None
        Row numbers of the records that a single-pass release reads; the oracle selects them.
    class_weight : tuple of float or None, default=None
        Factor u of a record's gradient before the clip, per class, in addition to the public weights; from earlier releases.
    """

    loss: Loss
    coef: np.ndarray
    clip_norm: float
    geometry: Standardization
    records: np.ndarray | None = None
    class_weight: tuple[float, ...] | None = None

    @property
    def size(self) -> int:
        """Number of coordinates of the gradient."""
        return self.coef.size

    @property
    def rounding(self) -> float:
        """Factor of the rounding error of the sum."""
        return self.geometry.rounding

    def sensitivity(self, adjacency: str) -> float:
        """Return 2C under ``replace_one`` and C under ``zero_out``, C being the clip norm.

        Proof. Coefficients, geometry, weights of the classes, loss and C are public or earlier releases, hence the same for both
        tables, so shared records contribute the same terms and cancel. One term is a rank-one matrix of norm
        ``||z_i|| ||r_i||``. ``clip_residuals`` shrinks ``r_i``, weight included, until that is at most C for every class. It uses
        a norm of z that is never below the true one, up to rounding, which the noise covers. A null record has ``r_i = 0``.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum in the coordinates of the rows, in C order of ``coef``."""
        return self.geometry.view(rows).sum(self.geometry.to_rows(self.coef), self._residuals).ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sum in standardised coordinates, in C order of ``coef``."""
        return self.geometry.from_rows(total.reshape(self.coef.shape)).ravel()

    def _residuals(self, raw: np.ndarray, records: Records) -> np.ndarray:
        return clip_residuals(self._unclipped(raw, records), records.inverse_norms, self.clip_norm)

    def _unclipped(self, raw: np.ndarray, records: Records) -> np.ndarray:
        residuals = slopes(self.loss, raw, records)
        if self.class_weight is not None:
            residuals *= np.array(self.class_weight)[records.targets, None]
        return residuals

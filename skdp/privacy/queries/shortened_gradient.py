"""Sum gradients of a loss with bounded slope in which long rows have smaller weights, and signs of residuals."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import SumQuery
from skdp.privacy.queries.standardized_gradient import StandardizedGradient

__all__ = ["ResidualSigns", "ShortenedGradient", "row_weights"]


def row_weights(records: Records, bound: float, power: float) -> np.ndarray:
    """Return the weights ``min(1, (bound / ||z||)**power)`` of records, shape (m,); 0 for a null record."""
    with np.errstate(over="ignore"):
        weights = bound * records.inverse_norms
        if power != 1:
            weights **= power
        return np.minimum(1.0, weights, out=weights)


@dataclass(frozen=True, eq=False)
class ShortenedGradient(StandardizedGradient):
    """Sum gradients of a loss with bounded slope at ``offset + unit * raw``, with smaller weights for long rows.

    The weight is ``min(1, (C / (L ||z||))**power)`` with the clip norm C and L, the ``lipschitz`` of the loss times
    ``largest_weight``. It depends on the row and not on the residual, so the steep and the flat side of the loss keep their
    ratio. A clip would shorten only the gradients on the steep side, and so turn one quantile, or one probability, into another.

    Parameters
    ----------
    loss : Loss
        Pointwise loss with bounded slope.
    coef : ndarray of shape (n_coordinates, n_outputs)
        Coefficients of z at which the gradient is taken: an earlier release or a public start.
    clip_norm : float
        Bound on the Frobenius norm of one record's gradient; may come from earlier releases.
    geometry : Standardization
        Map from rows to z, from earlier releases.
    offset, unit : float, default=0.0, 1.0
        A prediction is ``offset + unit * raw``; from earlier releases. The derivative is not multiplied by the unit.
    largest_weight : float, default=1.0
        Largest public weight of a record.
    power : float, default=1.0
        How fast the weight falls with the length of a row, at least 1.
    """

    offset: float = 0.0
    unit: float = 1.0
    largest_weight: float = 1.0
    power: float = 1.0

    def _unclipped(self, raw: np.ndarray, records: Records) -> np.ndarray:
        plain = self.offset == 0 and self.unit == 1
        residuals = super()._unclipped(raw if plain else self.offset + self.unit * raw, records)
        bound = self.clip_norm / (self.loss.lipschitz * self.largest_weight)
        residuals *= row_weights(records, bound, self.power)[:, None]
        return residuals


@dataclass(frozen=True, eq=False)
class ResidualSigns(SumQuery):
    """Sum the signs of the residuals ``prediction - y`` over all records.

    Parameters
    ----------
    coef : ndarray of shape (n_coordinates, 1)
        Coefficients of the prediction, for rows that are not standardised: an earlier release.
    """

    coef: np.ndarray

    clip_norm: ClassVar[float] = 1.0
    size: ClassVar[int] = 1

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and 2 under ``replace_one``.

        Proof. The coefficients are the same for both tables, so shared records contribute the same signs and cancel. One record
        contributes -1, 0 or 1, also if its prediction overflows, and a null record is not counted. Sums of signs are exact.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sum."""
        total = 0.0

        def count(raw: np.ndarray, records: Records) -> np.ndarray:
            nonlocal total
            signs = np.nan_to_num(np.sign(raw[:, 0] - records.targets))
            total += float(signs.sum() if records.present is None else signs @ records.present)
            return np.zeros((raw.shape[0], 1))

        rows.sum(self.coef, count)
        return np.array([total])

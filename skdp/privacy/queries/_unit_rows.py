"""Standardise rows by earlier releases and shorten them to norm 1, for sums of such rows and of their products."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import SumQuery, lengths_of
from skdp.privacy.queries._half_vector import half_vector, square
from skdp.privacy.queries.standardized_gradient import Standardization

Weight = Callable[[Records], np.ndarray | float]


@dataclass(frozen=True, eq=False)
class UnitRows(SumQuery):
    """Base of the sums over ``v = z min(1, 1 / ||z||)``, where z is the row standardised by earlier releases.

    z has no 1 for the intercept. No v is ever stored: sums over the rows are mapped.

    Parameters
    ----------
    geometry : Standardization
        Centre, and one scale per feature.
    """

    geometry: Standardization

    by_row: ClassVar[bool] = True

    @property
    def rounding(self) -> float:
        """Bound on the rounding relative to that of summing v itself: sums of rows are scaled and centred after summation."""
        reach = float(self.geometry.scale.max()) * (self.geometry.data_norm + float(np.linalg.norm(self.geometry.centre)))
        return 1.0 + 2.0 * reach + 4.0 * reach**2

    def _sums(self, rows: TrainingData, weights: Weight = lambda records: 1.0) -> np.ndarray:
        """Return the un-noised sums of ``(x, 1) min(1, 1 / ||z||)``, times columns of weights; flat."""

        def shortened(raw: np.ndarray, records: Records) -> np.ndarray:
            return self._factors(records)[:, None] * weights(records)

        return self.geometry.view(rows).sum(self._origin, shortened).ravel()

    def _products(self, rows: TrainingData, weights: Weight) -> np.ndarray:
        """Return the un-noised sum of ``(x, 1) (x, 1)^T min(1, 1 / ||z||)^2``, times a column of weights; row by row, flat."""

        def shortened(raw: np.ndarray, records: Records) -> np.ndarray:
            return np.square(self._factors(records))[:, None] * weights(records)

        return self.geometry.view(rows).gram(self._origin, shortened).ravel()

    def _means(self, sums: np.ndarray) -> np.ndarray:
        """Return the sums of v, of shape (n_features, n_columns), from the sums of rows."""
        mapped = self.geometry.from_rows(sums.reshape(len(self._origin), -1))
        return np.asarray(mapped[: self.geometry.centre.size])

    def _half_vector(self, products: np.ndarray) -> np.ndarray:
        """Return the sum of ``v v^T`` as a half-vector, from the sum of products of rows."""
        total, centre, scale = square(products), self.geometry.centre, self.geometry.scale
        if self.geometry.intercept:
            # sum w (x - m)(x - m)' from the sums of w x x', w x and w, the last column of the sum with the constant 1.
            shift, weight = total[:-1, -1], total[-1, -1]
            total = total[:-1, :-1] - np.outer(shift, centre) - np.outer(centre, shift) + weight * np.outer(centre, centre)
        return half_vector(scale[:, None] * total * scale)

    def _factors(self, records: Records) -> np.ndarray:
        """Return ``min(1, 1 / ||z||)``; the norms of the view have the 1 of the intercept, and z has none."""
        squares = np.square(lengths_of(records)) - float(self.geometry.intercept)
        return np.asarray(1 / np.sqrt(np.maximum(squares, 1.0)))

    @property
    def _origin(self) -> np.ndarray:
        """A point at which nothing is predicted."""
        return np.zeros((self.geometry.centre.size + self.geometry.intercept, 1))

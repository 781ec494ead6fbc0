"""Clip columns to public bounds and scale them by these bounds, block by block, as they are read."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class ColumnScaling:
    """Map an entry x of column j to ``(clip(x, low_j, high_j) - shift_j) / unit_j``, which lies in [-1, 1].

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        Public bounds.
    shift : ndarray of shape (n_features,)
        Value that is mapped to 0: zero itself, or the bound nearest to zero.
    unit : ndarray of shape (n_features,)
        Divisor of each column, positive.

    Notes
    -----
    **Privacy.** Every entry is mapped alone and with public numbers, so neighbouring tables stay neighbours and the map costs
    nothing. Rows are clipped to ``data_norm`` after the map.
    """

    low: np.ndarray
    high: np.ndarray
    shift: np.ndarray
    unit: np.ndarray

    @classmethod
    def of_bounds(cls, bounds: np.ndarray, shifts: bool) -> "ColumnScaling":
        """Return the map for bounds of shape (n_features, 2).

        Parameters
        ----------
        bounds : ndarray of shape (n_features, 2)
            Low and high by column.
        shifts : bool
            Whether a column whose bounds exclude zero may be shifted. For models without intercept zero must stay zero, so their
            bounds are widened to include it.

        Returns
        -------
        ColumnScaling
            The same map for dense and sparse tables: zero maps to zero, clipped or not, so sparse tables stay sparse.
        """
        low, high = bounds.T
        shift = np.clip(0.0, low, high) if shifts else np.zeros(len(bounds))
        low, high = (low, high) if shifts else (np.minimum(low, 0.0), np.maximum(high, 0.0))
        return cls(low, high, shift, np.maximum(high - shift, shift - low))

    def scaled(self, entries: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        """Return scaled entries in float64; ``columns`` are the columns of the entries, in a form that broadcasts."""
        low, high, shift, unit = (array[columns] if array.ndim else array for array in self._arrays)
        result = np.clip(entries.astype(np.float64, copy=False), low, high)
        if self._shifts:
            result -= shift
        if self._divides:
            result /= unit
        return result

    @property
    def ends(self) -> np.ndarray:
        """Least and largest mapped entry of each column, as computed: rounding keeps the order of numbers."""
        return self.scaled(np.stack([self.low, self.high]))

    @cached_property
    def _shifts(self) -> bool:
        return bool(self.shift.any())

    @cached_property
    def _divides(self) -> bool:
        return bool((self.unit != 1).any())

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        """Bounds, shift and unit, each as one number if that of all columns is the same: NumPy is several times faster then."""
        arrays = (self.low, self.high, self.shift, self.unit)
        return tuple(array[0] if (array == array[0]).all() else array for array in arrays)

    def to_columns(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Convert weights (k, n_features) and intercept (k,) for scaled columns to those for the columns in their own units."""
        outer = weights / self.unit
        return outer, intercept - outer @ self.shift

    def geometry(self, scaled: Any) -> Any:
        """Convert a `Standardization` of scaled rows to one of rows in their own units."""
        scale = scaled.scale / (self.unit if scaled.scale.ndim == 1 else self.unit[:, None])
        return replace(scaled, centre=self.shift + self.unit * scaled.centre, scale=scale)

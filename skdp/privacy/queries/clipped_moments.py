"""Sum one clipped number of each record as an integer, with its spread and the missing cells at no further cost."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.queries._base import SumQuery

__all__ = ["ClippedMoments", "WeightedMoments"]

# Half of the range of the integers that stand for numbers between the bounds. A choice: a number is rounded by at most 2**-23 of
# its range, and a larger one would leave fewer records to sums that are exact.
UNIT = 2**22


@dataclass(frozen=True)
class ClippedMoments(SumQuery):
    """Sum the cells of a column, clipped to public bounds, their spread, and the number of missing ones, as integers.

    A cell z in [-1, 1], in units of half the range from the middle of the bounds, adds ``t = UNIT z``, rounded, and
    ``(UNIT**2 - t**2) / (2 UNIT)``, rounded down. A missing cell adds ``UNIT`` to the last sum alone.

    Parameters
    ----------
    low, high : float
        Bounds, public or from earlier releases; low < high.
    spread : bool, default=True
        Whether the second sum is asked for.
    missing : bool, default=True
        Whether the last one is. Without it, missing cells add nothing.
    column : int, default=0
        Number of the column.
    fill : float or None, default=None
        What a missing cell counts as, without ``missing``; the range of the integers includes it. None for the middle.
    """

    low: float
    high: float
    spread: bool = True
    missing: bool = True
    column: int = 0
    fill: float | None = None

    clip_norm: ClassVar[float] = float(UNIT + 3)
    counts_present: ClassVar[bool] = False

    @property
    def ends(self) -> tuple[float, float]:
        """Numbers for which the integers stand at both ends."""
        return (self.low, self.high) if self.fill is None else (min(self.low, self.fill), max(self.high, self.fill))

    @property
    def size(self) -> int:
        """Number of sums."""
        return 1 + self.spread + self.missing

    def sensitivity(self, adjacency: str) -> float:
        r"""Return ``UNIT + 3`` under ``zero_out`` and ``2 (UNIT + 3)`` under ``replace_one``.

        Proof. With u = ``UNIT``, a present cell adds :math:`(t, r, 0)` with :math:`|t| \le u` and
        :math:`0 \le r \le (u - |t|)(u + |t|) / (2 u) \le u - |t|`, and a missing one :math:`(0, 0, u)`. So the absolute values
        of what a record adds have a sum of at most u, and its Euclidean norm is not larger. A null record adds nothing. Two
        records differ by at most twice that, which the two bounds attain but for the 3.

        A record of weight v in [0, 1] adds v times its integers, and a person a mean of those of her rows; the bound holds for
        both. Their sums are exact, and are rounded down once. Rounding moves the change of each of at most 3 sums by less than 1.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def l1_sensitivity(self, adjacency: str) -> int:
        """Return the same: the proof of `sensitivity` bounds the sum of the absolute changes."""
        return round(self.sensitivity(adjacency))

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised sums, whole and the rest."""
        return rows.integer_sums((self.column,), self._terms)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised sums, as integers."""
        return total[::2] + np.floor(total[1::2])

    def _terms(self, cells: np.ndarray) -> np.ndarray:
        present = ~np.isnan(cells)
        if self.fill is not None:
            cells, present = np.where(present, np.clip(cells, self.low, self.high), self.fill), np.ones_like(present)
        numbers = np.rint(places(cells, *self.ends) * UNIT).astype(np.int64)
        spread = np.where(present, (UNIT**2 - numbers**2) // (2 * UNIT), 0)
        counted = np.where(present == self.counts_present, UNIT, 0)
        return np.stack([numbers, *([spread] if self.spread else []), *([counted] if self.missing else [])])


def places(cells: np.ndarray, low: float, high: float, missing: float = 0.0) -> np.ndarray:
    """Return clipped cells in units of half the range from the middle of the bounds, in [-1, 1].

    Parameters
    ----------
    cells : ndarray
        Numbers, or NaN.
    low, high : float
        The bounds.
    missing : float, default=0.0
        The place of a missing cell.

    Returns
    -------
    ndarray
        Of the same shape.
    """
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    values = np.clip((np.clip(cells, low, high) - middle) / half, -1.0, 1.0)
    return np.where(np.isnan(cells), missing, values)


@dataclass(frozen=True)
class WeightedMoments(ClippedMoments):
    """Sum the same for records with sample weights, with the weight of present cells in place of the number of missing ones."""

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}
    clip_norm: ClassVar[float] = math.sqrt(2.0) * (UNIT + 3)
    counts_present: ClassVar[bool] = True

    def sensitivity(self, adjacency: str) -> float:
        r"""Return ``sqrt(2) (UNIT + 3)`` under ``zero_out`` and ``2 (UNIT + 3)`` under ``replace_one``.

        Proof. With u = ``UNIT``, a present cell of weight v in [0, 1] adds :math:`v (t, r, u)`, where
        :math:`|t| + r \le u`, and a missing one nothing. So does a null record, and the norm is at most :math:`\sqrt 2 u`. Two
        records of weight 1 differ in the first two numbers alone, by at most 2 u. The change is convex in each weight, so that
        weights in between change no more than those of 0 and 1. The 3 is for rounding, as in `ClippedMoments`.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def l1_sensitivity(self, adjacency: str) -> int:
        """Return ``2 (UNIT + 3)``: the absolute values in the proof of `sensitivity` have a sum of at most 2 u in all cases."""
        return 2 * (UNIT + 3)

"""Sum numbers between limits, and their squares, for many columns at once."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.queries._base import SumQuery

__all__ = ["EvenMoments", "LimitedMoments"]

# Numbers between limits are integers from -(STEPS - SPARE) to STEPS - SPARE, in units of 1 / STEPS, so that sums of them have the
# same bits in every order. Choices: the rounding is far below the noise, and SPARE pays for the rounding of squares and of sums.
STEPS, SPARE = 2**20, 4
LARGEST = 1 - SPARE / STEPS


@dataclass(frozen=True, eq=False)
class LimitedMoments(SumQuery):
    r"""Sum u and s u^2 of each of some columns: u is a cell between limits, mapped to +-(1 - 2^-18), and 0 where it is missing.

    The weight of the squares is :math:`s^2 = (1 + \sqrt 5) / (2 (3 - \sqrt 5)^2)`, 2.7725.

    Parameters
    ----------
    columns : tuple of int
        Numbers of the columns of the table.
    limits : ndarray of shape (len(columns), 2)
        Low and high per column, public or from earlier releases; low < high.
    """

    columns: tuple[int, ...]
    limits: np.ndarray

    square_weight: ClassVar[float] = math.sqrt((1 + math.sqrt(5)) / 2) / (3 - math.sqrt(5))
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2 / math.hypot(1, square_weight), "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, ``sqrt(d (1 + s^2))`` for d columns."""
        return math.sqrt(len(self.columns)) * math.hypot(1, self.square_weight)

    @property
    def size(self) -> int:
        """Number of sums, two for each column."""
        return 2 * len(self.columns)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt{d (1 + s^2)}` under ``zero_out`` and :math:`2 \sqrt d` under ``replace_one``, for d columns.

        Proof. Given the earlier releases, the limits are the same for both tables, and shared records contribute the same. By
        clipping, u is in [-1, 1]; so a record adds a vector of squared norm at most :math:`d (1 + s^2)`, and a null record
        nothing. For two records, let t = u + u' and a = u - u' in one column. Their difference there is :math:`(a, s a t)`, of
        squared norm :math:`a^2 (1 + s^2 t^2)`, and :math:`|a| \le 2 - |t|`. That is at most 4 if
        :math:`(2 - t)^2 (1 + s^2 t^2) \le 4`, that is :math:`s^2 \le (4 - t) / (t (2 - t)^2)`, for all t in (0, 2). The right
        side is least where :math:`t^2 - 6 t + 4 = 0`, at :math:`t = 3 - \sqrt 5`, where it is the value of :math:`s^2` above. So
        the squares are free, and u = 1 beside u' = -1 attains the bound. Where s is 1, the same holds.

        Cells are rounded to integers of at most 2^20 - 4, in units of 2^-20, and squares to integers in the same unit. This
        moves the square of a record by at most half a unit, and the sum, which is exact but for one rounding to float64, by at
        most 2^-53 n per record. For tables of up to 2^31 records both are less than the 4 units by which u stays within 1.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised sums of integers, without null records, each as two numbers that are exact."""
        sums = [rows.integer_sums((column,), Powers(*limits)) for column, limits in zip(self.columns, self.limits, strict=True)]
        return np.concatenate([np.zeros(0), *sums])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised sums: u and s u^2 of the first column, then of the second, and so on."""
        sums = total.reshape(-1, 2, 2).sum(axis=2) / STEPS
        return (sums * [1.0, self.square_weight]).ravel()


@dataclass(frozen=True, eq=False)
class EvenMoments(LimitedMoments):
    """Sum u and u^2 of each of some columns, as `LimitedMoments` does with the weight 1, which suits ``zero_out``.

    Parameters
    ----------
    columns, limits : tuple of int and ndarray
        As of `LimitedMoments`.
    """

    square_weight: ClassVar[float] = 1.0
    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2), "zero_out": 1.0}


@dataclass(frozen=True)
class Powers:
    """Map cells to integers for u and for its square, 0 where they are missing."""

    low: float
    high: float

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return integers of shape (2, n_samples)."""
        middle, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
        u = np.clip(np.nan_to_num((cells - middle) / half), -1.0, 1.0)
        steps = np.rint(u * (STEPS - SPARE)).astype(np.int64)
        return np.stack([steps, (steps * steps + STEPS // 2) // STEPS])

"""Ask for the variance of a column, or for a sum of powers of its deviations from a released centre, as one integer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.persons import GRAIN
from skdp.privacy.queries._base import SumQuery
from skdp.privacy.queries.clipped_moments import places

__all__ = ["Deviations"]

# Half of the range of the integers that stand for numbers between the bounds, and what a record changes. Choices: sums of a
# square as two integers of 20 bits; and answers that float64 holds exactly up to MOST records, with noise that is resolved down
# to an epsilon of 2e-4 of a variance, and is 2**12 and more up to one of 20.
HALF, CHANGE = 2**20, 2**22
MOST = 2**30


@dataclass(frozen=True)
class Deviations(SumQuery):
    r"""Ask for the sum of a power of the distances of cells from a centre, or for the variance.

    Cells are clipped to the bounds, and in units of half the range from the middle of the bounds: z in [-1, 1]. About a centre
    c, a cell adds :math:`(|z - c| / (1 + |c|))^p`, in units of 2**-22, rounded down, and a missing cell nothing. About the mean,
    the answer is :math:`2^{22} n^2 / (4 (n - 1))` times the variance of z, rounded down, where missing cells count as c.

    Parameters
    ----------
    low, high : float
        Bounds, public or from earlier releases.
    centre : float, default=0.0
        Centre in [-1, 1], from earlier releases.
    power : {2, 4}, default=2
        The power.
    about_mean : bool, default=False
        Whether the variance itself is asked for.
    n_samples : int, default=2
        Public number of records, or of persons, for the variance.
    column : int, default=0
        Number of the column.
    """

    low: float
    high: float
    centre: float = 0.0
    power: int = 2
    about_mean: bool = False
    n_samples: int = 2
    column: int = 0

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 1.0, "zero_out": 1.0}
    clip_norm: ClassVar[float] = float(CHANGE)
    size: ClassVar[int] = 1

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`2^{22}`.

        Proof. *About a centre*, a record adds an integer from 0 to :math:`2^{22}`, times its weight in [0, 1]; a person adds a
        mean of such integers. Two of these differ by at most :math:`2^{22}`. So do exact sums, also once they are rounded down.

        *About the mean.* Let t be the integers of the cells, in [-h, h]. A record, or a person, is a distribution P of t, with
        mean m and mean square q; a null record is t = 0. With S the sum of the other means,
        :math:`n \operatorname{Var} = \mathrm{const} + f(P)`, :math:`f(P) = q - 2 S m / n - m^2 / n`. For a single t and
        :math:`a = S / (n - 1)`, in [-h, h], :math:`f = (1 - 1/n) ((t - a)^2 - a^2)`, whose values differ by at most
        :math:`(1 - 1/n) 4 h^2`. For others it is the mean of these and :math:`\operatorname{Var}(P) / n`; among distributions of
        a mean, that is largest for one on the two bounds. With the share p of the upper bound and a at :math:`h (2 s - 1)`, f
        above its minimum is :math:`4 h^2 [(1 - 1/n) (p (1 - 2 s) + s^2) + p (1 - p) / n]`, which is convex in s and largest at s
        = 0 or 1, where it is at most :math:`4 h^2 (1 - 1/n)` for n from 2 on. So n Var moves by at most that, and the answer by
        at most :math:`2^{22}`, also once it is rounded down. The sums are exact, and integers of any size multiply them.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def l1_sensitivity(self, adjacency: str) -> int:
        r"""Return :math:`2^{22}`, and :math:`3/4` of it about the mean under ``zero_out``.

        Proof. The null record is t = 0, so f changes by f(P), where :math:`f \le (1 - 1/n) (h^2 + 2 h^2)`, as
        :math:`|S| \le (n - 1) h`, with :math:`(h^2 - m^2) / n` more for a distribution, which is largest at m = h as well. It is
        at least :math:`-(1 - 1/n) h^2`.
        """
        return CHANGE * 3 // 4 if self.about_mean and adjacency == "zero_out" else CHANGE

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised sums of what the answer is computed from, whole and the rest."""
        return rows.integer_sums((self.column,), self._squares if self.about_mean else self._powers)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised answer, an integer."""
        if not self.about_mean:
            return total[:1] + np.floor(total[1:])
        grains = round(1 / GRAIN)
        numbers, upper, lower = (
            int(whole) * grains + round(rest * grains) for whole, rest in zip(total[::2], total[1::2], strict=True)
        )
        squared = self.n_samples * grains * (upper * HALF + lower) - numbers**2  # n^2 Var, in units of GRAIN**2
        return np.array([float(squared * CHANGE // ((self.n_samples - 1) * 4 * HALF**2 * grains**2))])

    def _powers(self, cells: np.ndarray) -> np.ndarray:
        numbers = places(cells, self.low, self.high, self.centre) - self.centre
        terms = np.floor(np.minimum(np.abs(numbers) / (1 + abs(self.centre)), 1.0) ** self.power * CHANGE)
        return np.where(np.isnan(cells), 0, terms).astype(np.int64)[None]

    def _squares(self, cells: np.ndarray) -> np.ndarray:
        numbers = np.rint(places(cells, self.low, self.high, self.centre) * HALF).astype(np.int64)
        return np.stack([numbers, *np.divmod(numbers**2, HALF)])

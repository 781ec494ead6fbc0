"""Sum one bounded loss of each record, as integers, with its square for variances."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.queries._base import SumQuery

__all__ = ["LossSums"]


@dataclass(frozen=True)
class LossSums(SumQuery):
    r"""Sum a number per record in [-1, 1], in steps of one over M, and an eighth of its centred square.

    The number is the loss of a scored record. A record adds the integer z nearest to M times its loss, clipped to [-M, M],
    and with ``squared`` also :math:`\lfloor z^2 / (4M) \rfloor - M / 8`.

    Parameters
    ----------
    loss : callable
        Maps scores and targets of records to their losses, each from its record alone.
    steps : int
        M: 1 for numbers that are -1 or 1, else a multiple of 64.
    squared : bool, default=False
        Whether to sum the squares.
    """

    loss: Callable[[np.ndarray, np.ndarray], np.ndarray]
    steps: int
    squared: bool = False

    @property
    def clip_norm(self) -> float:
        r"""Bound on the norm of one record's contribution: M, or :math:`M \sqrt{65} / 8` with the square."""
        return self.steps * (math.sqrt(65) / 8 if self.squared else 1.0)

    @property
    def size(self) -> int:
        """Number of sums, 2 with the square and 1 without."""
        return 2 if self.squared else 1

    def sensitivity(self, adjacency: str) -> float:
        r"""Return c under ``zero_out`` and 2c under ``replace_one``, c being the clip norm.

        Proof. By clipping z is in [-M, M], and the second integer is in [-M/8, M/8]: a contribution has a norm of at most c,
        which z = M attains. A null record adds nothing, and two contributions are at most 2c apart. (Opposite ones have equal
        squares, so they are 2M apart, less by .8 % with the square.)
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def l1_sensitivity(self, adjacency: str) -> int:
        r"""Return M under ``zero_out`` and 2M under ``replace_one``; with the square, 9M/8 and 2M + 1.

        Proof. A contribution has the sum M of absolute values, with the square M + M/8, which z = M attains. Of two contributions
        with :math:`a = z / M \ge b`, the difference without rounding is :math:`M (a - b) (1 + |a + b| / 4)`. For
        :math:`a + b \ge 0` it falls with b, as its derivative by b is :math:`-M (1 + b / 2) < 0`, and grows with a by
        :math:`M (1 + a / 2)`: it is largest at the ends of [-1, 1], where it is 2M. Reversing both signs gives the other case.
        Rounding down moves the difference of two numbers by less than 1, so that of the integers is at most 2M + 1.
        """
        if not self.squared:
            return 2 * self.steps if adjacency == "replace_one" else self.steps
        return 2 * self.steps + 1 if adjacency == "replace_one" else 9 * self.steps // 8

    def partial(self, rows: ScoredRecords) -> np.ndarray:
        """Return the un-noised sums, without null records. Of a person they have the mean loss of her rows, as of one record."""
        if rows.persons is None:
            return rows.term_sum(lambda records: self._integers(self._clipped(records.scores, records.targets)))
        means, presence = rows.means_of_persons(self._clipped)
        return np.asarray(self._integers(means) @ presence)

    def _clipped(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return np.clip(np.nan_to_num(self.loss(scores, targets)), -1.0, 1.0)

    def _integers(self, losses: np.ndarray) -> np.ndarray:
        z = np.rint(self.steps * losses)
        return np.stack([z, np.floor(z**2 / (4 * self.steps)) - self.steps // 8])[: self.size]

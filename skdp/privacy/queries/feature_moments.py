"""Sum the features and their squares."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries._base import SumQuery

__all__ = ["Moments"]


@dataclass(frozen=True)
class Moments(SumQuery):
    """Sum ``(x, x * x / R)`` over all records, with squares entry by entry.

    Rows are clipped to R first, and do not have the intercept's constant.

    Parameters
    ----------
    data_norm : float
        The bound R.
    n_features : int
        Number of features d.
    """

    data_norm: float
    n_features: int

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 1.5, "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, ``sqrt(2) R``."""
        return math.sqrt(2.0) * self.data_norm

    @property
    def size(self) -> int:
        """Number of coordinates, ``2 d``."""
        return 2 * self.n_features

    def sensitivity(self, adjacency: str) -> float:
        r"""Return ``sqrt(2) R`` under ``zero_out`` and ``3 R / sqrt(2)`` under ``replace_one``.

        Proof. Take R = 1. As :math:`\|x \circ x\| \le \|x\|^2 \le 1`, one record contributes at most
        :math:`1 + 1` to the squared norm, which is ``zero_out``. For two records write :math:`a = \|x\|^2`,
        :math:`b = \|x'\|^2`, :math:`s = x^\top x'` and :math:`t_i = x_i^2 - x_i'^2 = (x_i - x_i')(x_i + x_i')`. The positive
        and the negative :math:`t_i` add up to P and -N with :math:`P - N = a - b`, and by Cauchy and Schwarz
        :math:`(P + N)^2 \le \|x - x'\|^2 \|x + x'\|^2 = (a + b)^2 - 4 s^2`. So
        :math:`\sum t_i^2 \le P^2 + N^2 = ((P + N)^2 + (P - N)^2) / 2 \le a^2 + b^2 - 2 s^2`, and
        :math:`\|x - x'\|^2 + \sum t_i^2 \le a + b - 2 s + a^2 + b^2 - 2 s^2 \le 4 - 2 s - 2 s^2 \le 9/2`, with equality for
        unit vectors in a plane at 120 degrees.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised sums of the rows, then of their squares."""
        return rows.moments().ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sums, the squares over R."""
        sums, squares = np.split(total, 2)
        return np.concatenate([sums, squares / self.data_norm])

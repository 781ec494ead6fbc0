"""First and second moments of the features, jointly with the frequencies of the classes."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.rows import Rows

__all__ = ["ClassMoments", "Moments"]

LABEL = 0.5  # weight of the label, over the data norm


@dataclass(frozen=True)
class Moments:
    """Sum over all records of ``(x, x * x / R, y R / 2)``, squares entry by entry, with the label y = -1 or 1.

    Rows are clipped to R first and have no intercept's constant here.

    Parameters
    ----------
    data_norm : float
        The bound R.
    n_features : int
        Number of features d.
    """

    data_norm: float
    n_features: int

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(5.5) / 1.5, "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, ``1.5 R``."""
        return math.sqrt(2 + LABEL**2) * self.data_norm

    @property
    def size(self) -> int:
        """Number of coordinates, ``2 d + 1``."""
        return 2 * self.n_features + 1

    def parameters(self) -> tuple[np.ndarray, ...]:
        """Return nothing: only public facts are in the question."""
        return ()

    def sensitivity(self, adjacency: str) -> float:
        r"""Return ``1.5 R`` under ``zero_out`` and ``sqrt(5.5) R`` under ``replace_one``.

        Proof. Take R = 1. As :math:`\|x \circ x\| \le \|x\|^2 \le 1`, one record contributes at most
        :math:`1 + 1 + 1/4` to the squared norm, which is ``zero_out``. For two records write :math:`a = \|x\|^2`,
        :math:`b = \|x'\|^2`, :math:`s = x^\top x'` and :math:`t_i = x_i^2 - x_i'^2 = (x_i - x_i')(x_i + x_i')`. The positive
        and the negative :math:`t_i` add up to P and -N with :math:`P - N = a - b`, and by Cauchy and Schwarz
        :math:`(P + N)^2 \le \|x - x'\|^2 \|x + x'\|^2 = (a + b)^2 - 4 s^2`. So
        :math:`\sum t_i^2 \le P^2 + N^2 = ((P + N)^2 + (P - N)^2) / 2 \le a^2 + b^2 - 2 s^2`, and
        :math:`\|x - x'\|^2 + \sum t_i^2 \le a + b - 2 s + a^2 + b^2 - 2 s^2 \le 4 - 2 s - 2 s^2 \le 9/2`, with equality for
        unit vectors in a plane at 120 degrees. The label adds at most 1.

        Parameters
        ----------
        adjacency : {"replace_one", "zero_out"}
            Which tables are neighbours.

        Returns
        -------
        float
            Bound on the Euclidean norm of the change.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def evaluate(self, rows: Rows) -> np.ndarray:
        """Return the un-noised sums.

        Parameters
        ----------
        rows : Rows
            The training data.

        Returns
        -------
        ndarray of shape (size,)
            Sums of the rows, of their squares over R, and of the labels times ``R / 2``.
        """
        sums, squares = rows.moments()
        return np.concatenate([sums, squares / self.data_norm, LABEL * self.data_norm * self._labels(rows)])

    def _labels(self, rows: Rows) -> np.ndarray:
        negative, positive = rows.label_counts(2)
        return np.array([positive - negative])


@dataclass(frozen=True)
class ClassMoments(Moments):
    """The same with one indicator times ``R / 2`` per class in place of the label.

    Parameters
    ----------
    data_norm : float
        The bound R.
    n_features : int
        Number of features d.
    n_classes : int
        Number of classes c.
    """

    n_classes: int

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(5.0) / 1.5, "zero_out": 1.0}

    @property
    def size(self) -> int:
        """Number of coordinates, ``2 d + c``."""
        return 2 * self.n_features + self.n_classes

    def sensitivity(self, adjacency: str) -> float:
        """Return ``1.5 R`` under ``zero_out`` and ``sqrt(5) R`` under ``replace_one``.

        Proof. As for `Moments`, but two indicators times ``R / 2`` differ by at most ``R / sqrt(2)``.

        Parameters
        ----------
        adjacency : {"replace_one", "zero_out"}
            Which tables are neighbours.

        Returns
        -------
        float
            Bound on the Euclidean norm of the change.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def _labels(self, rows: Rows) -> np.ndarray:
        return rows.label_counts(self.n_classes)

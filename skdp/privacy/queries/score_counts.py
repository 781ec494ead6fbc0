"""Count records by class and score, and sum what follows from these counts: gradients of a calibration, and a tree."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdp.privacy.data.scored_records import ScoredRecords, places_on_grid
from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import CountQuery, Loss, SumQuery

__all__ = ["ScoreCounts", "ScoreGradient", "ScoreTree", "tree"]

# Scores are clipped to [-LIMIT, LIMIT], in units of the raw prediction, and rounded to BINS evenly spaced numbers. Both are
# choices, here a spacing of 0.01. They affect the accuracy of the calibration and the time, not the guarantee.
LIMIT, BINS = 3.0, 601


@dataclass(frozen=True, eq=False)
class ScoreGradient(SumQuery):
    """Sum the loss gradient of ``slope * u + offset`` in slope and offset over all records, each clipped to ``clip_norm``.

    u is the raw prediction of a record by ``coef``, clipped to [-3, 3] and rounded to one of 601 numbers. So one pass over the
    data serves all queries with the same ``coef``.

    Parameters
    ----------
    loss : Loss
        Pointwise loss for two classes.
    coef : ndarray of shape (n_coordinates, 1)
        Coefficients of the score: an earlier release.
    point : ndarray of shape (2,)
        Slope and offset at which the gradient is taken: an earlier release.
    clip_norm : float
        Bound on the norm of one record's gradient.
    class_weight : ndarray of shape (2,) or None, default=None
        Factor of each record's loss.
    """

    loss: Loss
    coef: np.ndarray
    point: np.ndarray
    clip_norm: float
    class_weight: np.ndarray | None = None

    size: ClassVar[int] = 2
    shares_partial: ClassVar[bool] = True

    def sensitivity(self, adjacency: str) -> float:
        """Return 2C under ``replace_one`` and C under ``zero_out``, C being the clip norm.

        Proof. A record contributes ``r (u, 1)``, where u is one of 601 numbers and depends on this record and on earlier releases
        only, and r is clipped to ``C / ||(u, 1)||``: a vector of norm at most C. Shared records contribute the same vectors and
        cancel. A null record is not counted.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def summed(self) -> tuple[np.ndarray, ...]:
        """Return the coefficients, on which the histograms depend."""
        return (self.coef,)

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised numbers of records by class and score."""
        return _counts(rows, self.coef).ravel()

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised derivatives in slope and offset."""
        counts = total.reshape(2, BINS)
        scores = np.linspace(-LIMIT, LIMIT, BINS)
        raw, limits = (self.point[0] * scores + self.point[1])[:, None], self.clip_norm / np.hypot(scores, 1.0)
        derivatives = np.zeros(2)
        for label in (0, 1):
            residuals = self.loss.derivative(raw, np.full(BINS, label))[:, 0]
            if self.class_weight is not None:
                residuals = residuals * self.class_weight[label]
            residuals = counts[label] * np.clip(np.nan_to_num(residuals), -limits, limits)
            derivatives += [residuals @ scores, residuals.sum()]
        return derivatives


@dataclass(frozen=True, eq=False)
class ScoreCounts(CountQuery):
    """Count the records by group, class and score, in ranges of the score.

    Parameters
    ----------
    coef : ndarray of shape (n_coordinates, 1) or None
        Coefficients of the score: an earlier release. The score is that of `ScoreGradient` then: the raw prediction, clipped to
        [-3, 3] and rounded to hundredths. None in evaluations, whose scores are log-odds: half of them, and half a hundredth
        more, which makes 0 an end of a range, are clipped and rounded.
    cuts : tuple of int
        Least score of each range but the first, in hundredths, increasing.
    n_classes : int, default=2
        Number of classes; 1 counts the records of both classes together.
    n_groups : int, default=1
        Number of groups; 1 counts the records of all groups together.
    """

    coef: np.ndarray | None
    cuts: tuple[int, ...]
    n_classes: int = 2
    n_groups: int = 1

    @property
    def size(self) -> int:
        """Number of counts."""
        return self.n_groups * self.n_classes * (len(self.cuts) + 1)

    def sensitivity(self, adjacency: str) -> float:
        """Return ``sqrt(2)`` under ``replace_one`` and 1 under ``zero_out``.

        Proof. The group, the class and the score of a record depend on this record and on earlier releases only, and it is in one
        range of one class of one group. So a record adds 1 to one count. Replacing it moves 1 from one count to another, or
        changes nothing; a null record adds nothing.
        """
        return self.relative_sensitivity[adjacency]

    def partial(self, rows: Any) -> np.ndarray:
        """Return the un-noised counts by range: of the first class, then of the second, group by group."""
        if self.coef is None:
            counts = rows.histogram(self._cells, self.n_groups * self.n_classes * BINS).reshape(-1, BINS)
        else:
            counts = _counts(rows, self.coef)
        # A cut in hundredths is a place on the grid of 601 numbers, whose middle is 0.
        starts = np.array([0, *(cut + BINS // 2 for cut in self.cuts)])
        return np.add.reduceat(counts, starts, axis=1).ravel()

    def _cells(self, records: ScoredRecords) -> np.ndarray:
        """Return the index of each record's group, class and rounded score."""
        groups: Any = records.groups if self.n_groups > 1 else 0
        classes: Any = records.targets if self.n_classes > 1 else 0
        return (groups * self.n_classes + classes) * BINS + places_on_grid(0.5 * records.scores + 0.005, LIMIT, BINS)


@dataclass(frozen=True, eq=False)
class ScoreTree(ScoreCounts):
    """Sum differences of the counts by class and score along a binary tree: the Haar coefficients of each class.

    For each class of each group they are the number of records, then for each node of the tree, by levels, the number of records
    in its lower half less that in its upper half. Sums of many neighbouring counts have less noise than from noisy counts.

    Parameters
    ----------
    coef, n_classes, n_groups : ndarray or None, int and int
        As of `ScoreCounts`.
    cuts : tuple of int
        As of `ScoreCounts`; their number and 1 are a power of 2.
    """

    @property
    def clip_norm(self) -> float:
        """Norm of the contribution of one record, the root of the number of levels and 1."""
        return math.sqrt(1 + math.log2(len(self.cuts) + 1))

    def sensitivity(self, adjacency: str) -> float:
        """Return ``c`` under ``zero_out`` and ``c sqrt(2)`` under ``replace_one``, c being the clip norm.

        Proof. A record is in one range of one class of one group. It adds 1 to the number of this class, and 1 or -1 to one node
        of each of the L levels: a vector of norm c with ``c^2 = 1 + L``. Two such vectors of one class and group that share the
        nodes of s >= 1 levels, and part in the last of these, have the inner product ``1 + (s - 1) - 1 >= 0``; of different
        classes or groups it is 0. So their difference has a squared norm of at most ``2 c^2``.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def l1_sensitivity(self, adjacency: str) -> int:
        """Return ``c^2`` under ``zero_out`` and ``2 c^2`` under ``replace_one``: a record adds ``c^2`` numbers 1 or -1."""
        return (2 if adjacency == "replace_one" else 1) * round(self.clip_norm**2)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised coefficients: those of the first class, then those of the second, group by group."""
        return (total.reshape(self.n_groups * self.n_classes, -1) @ tree(len(self.cuts) + 1).T).ravel()


def _counts(rows: TrainingData, coef: np.ndarray) -> np.ndarray:
    """Return the number of records by class and score."""

    def places(raw: np.ndarray, records: Records) -> np.ndarray:
        return records.targets.astype(np.intp) * BINS + places_on_grid(raw[:, 0], LIMIT, BINS)

    return rows.counts_at(coef, places, 2 * BINS).reshape(2, BINS)


def tree(size: int) -> np.ndarray:
    """Return the Haar matrix that maps counts to their sum and to differences of halves, by levels.

    Parameters
    ----------
    size : int
        Number of counts, a power of 2.

    Returns
    -------
    ndarray of shape (size, size)
        Entries of -1, 0 and 1.
    """
    #  size 4:   1  1  1  1     the number of all
    #            1  1 -1 -1     lower half less upper half
    #            1 -1  0  0     the same in each half
    #            0  0  1 -1
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.vstack([np.kron(matrix, [1.0, 1.0]), np.kron(np.eye(len(matrix)), [1.0, -1.0])])
    return matrix

"""Ask for what boosting needs of binned records: counts of bins, sums over leaves, the weight of all trees, and an offset."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.data.kernels import Records
from skdp.privacy.queries._base import Loss, NonNegativeQuery, SumQuery, clip_residuals

__all__ = ["BinCounts", "LeafSums", "ResidualSum", "TreeWeight"]


@dataclass(frozen=True)
class BinCounts(NonNegativeQuery):
    """Count the records in each bin of each column.

    Parameters
    ----------
    sizes : tuple of int
        Number of bins of each column.
    """

    sizes: tuple[int, ...]

    @property
    def clip_norm(self) -> float:
        """Norm of one record's contribution, ``sqrt(q)`` for q columns."""
        return math.sqrt(len(self.sizes))

    @property
    def size(self) -> int:
        """Number of bins of all columns."""
        return sum(self.sizes)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt q` under ``zero_out`` and :math:`\sqrt{2q}` under ``replace_one``.

        Proof. A cell is in one bin of its column, so a record adds a vector with at most one 1 for each of the q columns; its
        norm is at most :math:`\sqrt q`. A null record adds nothing. Two records add vectors whose inner product is not
        negative, so the squared norm of their difference is at most 2q. Two records without a common bin attain it.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: BinnedRecords) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        return rows.counts(list(self.sizes))


@dataclass(frozen=True, eq=False)
class LeafSums(SumQuery):
    """Sum clipped residuals, the negative derivatives of the loss at the scores, over the records of each leaf of a tree.

    Parameters
    ----------
    loss : Loss
        Loss of the scores.
    columns : ndarray of int of shape (depth,)
        Column of each split, from earlier releases and public choices.
    splits : ndarray of bool of shape (depth, n_bins)
        Side of each bin, from the same.
    clip_norm : float
        Bound on the norm of one record's residuals.
    """

    loss: Loss
    columns: np.ndarray
    splits: np.ndarray
    clip_norm: float

    grows: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """Number of leaves times the number of outputs."""
        return self.loss.n_outputs << len(self.columns)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return the clip norm c under ``zero_out`` and 2c under ``replace_one``, for any depth and number of columns.

        Proof. The tree is the same for both tables. The leaf and the score of a record depend on this record, on the tree and on
        earlier releases, so shared records contribute the same and cancel. A record is in one leaf and adds there its residuals,
        a vector of norm at most c by clipping. A null record adds nothing. For two records with residuals r and s, the squared
        norm of the difference is :math:`\|r - s\|^2 \le 4c^2` in the same leaf and :math:`\|r\|^2 + \|s\|^2 \le 2c^2` in
        different ones. Residuals of norm c and opposite signs in the same leaf attain it.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: BinnedRecords) -> np.ndarray:
        """Return the un-noised sums, output by output."""
        return rows.leaf_sums(self.columns, self.splits, self._residuals)

    def _residuals(self, scores: np.ndarray, records: Records) -> np.ndarray:
        return clip_residuals(_residuals(self.loss, scores, records), records.inverse_norms, self.clip_norm)


@dataclass(frozen=True)
class TreeWeight(SumQuery):
    r"""Sum the slopes of the loss in the weight of what all trees have added to the scores, at the weights 0 and 1.

    With scores f before the trees, what the trees have added h, and residuals r, the slope at the weight w is the sum of
    :math:`h^\top r(f + w h)`. It falls with w where the loss is convex, and is 0 at the best weight.

    Parameters
    ----------
    loss : Loss
        Loss of the scores.
    limit : float
        Bound on the norm of h of one record; longer ones are scaled down to it.
    """

    loss: Loss
    limit: float

    size: ClassVar[int] = 2  # the slopes at 0 and at 1

    @property
    def clip_norm(self) -> float:
        r"""Bound on the norm of one record's contribution, :math:`\sqrt 2 H` for the limit H."""
        return self.limit * math.sqrt(2.0)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt 2 H` under ``zero_out`` and :math:`2 \sqrt 2 H` under ``replace_one``.

        Proof. Scores depend on the record and on earlier releases, so shared records contribute the same and cancel. With
        :math:`\|h\| \le H` and residuals of norm at most 1, both by clipping, a slope of one record is in [-H, H]. A null record
        adds nothing. Two records add opposite pairs at most. Both bounds are attained.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: BinnedRecords) -> np.ndarray:
        """Return the un-noised sums."""
        return rows.sums(self._slopes)

    def _slopes(self, base: np.ndarray, trees: np.ndarray, records: Records) -> np.ndarray:
        # h' r at the weights 0 and 1, for h of norm at most the limit and r of norm at most 1.
        h = clip_residuals(trees.copy(), records.inverse_norms, self.limit)
        at = [
            clip_residuals(_residuals(self.loss, scores, records), records.inverse_norms, 1.0) for scores in (base, base + trees)
        ]
        return np.clip(np.stack([np.einsum("ij,ij->i", h, one) for one in at], axis=1), -self.limit, self.limit)


@dataclass(frozen=True)
class ResidualSum(SumQuery):
    """Sum clipped residuals of the model with the weight of its trees.

    Parameters
    ----------
    loss : Loss
        Loss of the scores.
    weight : float
        Weight of all trees, from earlier releases.
    clip_norm : float
        Bound on the norm of one record's residuals.
    """

    loss: Loss
    weight: float
    clip_norm: float

    @property
    def size(self) -> int:
        """Number of outputs."""
        return self.loss.n_outputs

    def sensitivity(self, adjacency: str) -> float:
        r"""Return the clip norm c under ``zero_out`` and 2c under ``replace_one``.

        Proof. Scores depend on the record and on earlier releases, so shared records contribute the same and cancel. A record
        adds a vector of norm at most c by clipping, and a null record nothing. Residuals of norm c and opposite signs attain it.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: BinnedRecords) -> np.ndarray:
        """Return the un-noised sum."""
        return rows.score_sums(self.weight, self._clipped)

    def _clipped(self, scores: np.ndarray, records: Records) -> np.ndarray:
        residuals = _residuals(self.loss, scores, records)
        return clip_residuals(residuals, records.inverse_norms, self.clip_norm)


def _residuals(loss: Loss, scores: np.ndarray, records: Records) -> np.ndarray:
    """Return the negative derivatives of the loss."""
    return -loss.derivative(scores, records.targets)

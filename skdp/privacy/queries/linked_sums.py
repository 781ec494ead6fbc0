"""Sum what calibrates a model with a log link: a histogram of its scores, the targets, and their products with the scores."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.data.kernels import Records
from skdp.privacy.queries._base import CountQuery, SumQuery
from skdp.privacy.queries.target_histograms import ExposedHistogram

__all__ = ["ExposedLinkSums", "LinkSums", "ScoreOctaves"]

# Octaves of a distance of scores, of which the last one ends at the width of the range [-1, 1]; bins of scores. Choices.
N_OCTAVES, N_BINS = 20, 32
# Factor of the products of scores and targets. A choice: with it, they move as far as targets under both adjacencies.
PRODUCTS = 1 / math.sqrt(3)


@dataclass(frozen=True)
class ScoreOctaves(CountQuery):
    """Count the records by the distance of their score from a centre, in ranges that end at powers of 2.

    Parameters
    ----------
    weight : float
        Weight of all trees in the score, from earlier releases.
    centre : float
        The centre, from earlier releases.
    """

    weight: float
    centre: float

    size: ClassVar[int] = N_OCTAVES
    by_row: ClassVar[bool] = True

    def sensitivity(self, adjacency: str) -> float:
        """Return ``sqrt(2)`` under ``replace_one`` and 1 under ``zero_out``.

        Proof. The score of a record depends on this record and on earlier releases only, and it is in one range. So a record adds
        1 to one count. Replacing it moves 1 from one count to another, or changes nothing; a null record adds nothing.
        """
        return self.relative_sensitivity[adjacency]

    def partial(self, rows: BinnedRecords) -> np.ndarray:
        """Return the un-noised counts."""
        return rows.sums(self._octaves)

    def _octaves(self, base: np.ndarray, trees: np.ndarray, records: Records) -> np.ndarray:
        exponents = np.frexp(np.nan_to_num(base + self.weight * trees - self.centre)[:, 0])[1]
        return np.eye(N_OCTAVES)[np.clip(exponents + N_OCTAVES - 2, 0, N_OCTAVES - 1)]


@dataclass(frozen=True)
class LinkSums(SumQuery):
    r"""Sum, over all records, indicators of the bin of the score, the target, and its product with the score.

    The score u is the distance from a centre over a width, clipped to [-1, 1], in one of 32 even bins. The target y is clipped to
    [0, 1] between two values. A record adds :math:`(e_b, y, y u / \sqrt 3)`.

    Parameters
    ----------
    weight : float
        Weight of all trees in the score, from earlier releases.
    centre, width : float
        Of the scores, from earlier releases.
    zero, span : float
        The target that counts as 0, and the distance from it to the one that counts as 1, from earlier releases.
    """

    weight: float
    centre: float
    width: float
    zero: float
    span: float

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(10 / 7), "zero_out": 1.0}
    clip_norm: ClassVar[float] = math.sqrt(7 / 3)
    size: ClassVar[int] = N_BINS + 2
    by_row: ClassVar[bool] = True

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt{7/3}` under ``zero_out`` and :math:`\sqrt{10/3}` under ``replace_one``.

        Proof. Score and bin of a record depend on this record and on earlier releases, so shared records contribute the same and
        cancel. A null record adds nothing. Any other adds 1 to one bin, and y and :math:`y u / \sqrt 3` with y in [0, 1] and u in
        [-1, 1]: a vector of squared norm at most :math:`1 + 1 + 1/3`. Two records move the bins by at most
        :math:`\sqrt 2`. Their targets and products move by

        .. math:: (y - y')^2 + (y u - y' u')^2 / 3 \le (y - y')^2 + (y + y')^2 / 3,

        which is convex in (y, y') and so largest in a corner of the square: 4/3 where one of them is 0, and 4/3 where both are 1.
        Together they are :math:`2 + 4/3`. Both bounds are attained. Of a person, whose rows have weights that add up to 1, the
        sum is a mean of vectors of records. The norm of the difference of two such means is convex in each of them, and so
        largest where each is the vector of one record.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: BinnedRecords) -> np.ndarray:
        """Return the un-noised sums."""
        return rows.sums(self._terms)

    def _terms(self, base: np.ndarray, trees: np.ndarray, records: Records) -> np.ndarray:
        with np.errstate(all="ignore"):
            scores = (base + self.weight * trees - self.centre)[:, 0] / self.width
            targets = ((records.targets if records.amounts is None else records.amounts) - self.zero) / self.span
        scores, targets = np.clip(np.nan_to_num(scores), -1.0, 1.0), np.clip(np.nan_to_num(targets), 0.0, 1.0)
        bins = np.minimum(((scores + 1) / 2 * N_BINS).astype(np.intp), N_BINS - 1)
        return np.column_stack([np.eye(N_BINS)[bins], targets, PRODUCTS * targets * scores])


@dataclass(frozen=True)
class ExposedLinkSums(LinkSums):
    r"""Sum what `LinkSums` does, with exposures w in [0, 1]: a record adds :math:`(w e_b, y, y u / \sqrt 3, w)`."""

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 1.0, "zero_out": 1.0}
    clip_norm: ClassVar[float] = math.sqrt(10 / 3)
    size: ClassVar[int] = N_BINS + 3
    in_memory: ClassVar[str] = ExposedHistogram.in_memory

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt{10/3}` under both adjacencies.

        Proof. As for `LinkSums`, targets and products move by at most 4/3, squared. A record adds w to a bin and to the sum of
        exposures: at most 2. Two records in different bins move both by :math:`w^2 + w'^2 + (w - w')^2`, which is convex and 2 in
        the corners (1, 0) and (1, 1); in the same bin they move them by :math:`2 (w - w')^2 \le 2`. Both bounds are attained.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def _terms(self, base: np.ndarray, trees: np.ndarray, records: Records) -> np.ndarray:
        terms = super()._terms(base, trees, records)
        exposure = np.zeros(len(terms)) if records.exposure is None else records.exposure
        terms[:, :N_BINS] *= exposure[:, None]
        return np.column_stack([terms, exposure])

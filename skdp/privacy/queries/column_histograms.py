"""Count the cells of all columns at once: in bins that suit every unit, then in narrow bins between limits."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.queries._base import NonNegativeQuery

__all__ = ["ColumnHistograms", "FineHistograms"]

# Binary exponents that have a bin of each sign; cells beyond count at the ends. A choice: it includes the units of measurements,
# and more bins would make more false alarms.
LOWEST, HIGHEST = -60, 60
OCTAVES = HIGHEST - LOWEST + 1
# Bins of a column of numbers: negative ones from large to small, 0, positive ones from small to large, missing.
NUMBER_BINS = 2 * OCTAVES + 2
# Hash buckets of a column of text; one more bin counts missing cells. A choice: more buckets join fewer categories by chance.
BUCKETS = 256
# Even bins between two limits. A choice: more bins find narrower columns far from 0, and have more noise together.
EVEN_BINS = 1024
# Largest distance of two limits that have a bin per integer between them. A choice: limits that are two octaves beyond hours,
# days or months are nearer.
WIDEST_INTEGERS = 128
# Even bins of the second look at columns that end in one or two of the others. A choice: fewer have less noise together.
FEW_BINS = 64
# How much a target counts beside a cell: its bins have half the noise. A choice, because predictions are clipped to its range.
TARGET_WEIGHT = 2.0


@dataclass(frozen=True)
class ColumnHistograms(NonNegativeQuery):
    """Count the cells of each column, numbers by sign and binary exponent, and text by hash bucket.

    Parameters
    ----------
    are_text : tuple of (bool or None)
        For each column, whether its cells are numbers of hash buckets; None if each cell is a number or text. Such a column takes
        two columns of the table: the numbers, and the buckets of cells that are no numbers.
    target : bool, default=False
        Whether the targets are counted, too, as a last column of numbers with weight 2.
    """

    are_text: tuple[bool | None, ...]
    target: bool = False

    @property
    def clip_norm(self) -> float:
        """Norm of one record's contribution, ``sqrt(d)`` for d columns, ``sqrt(d + 4)`` with a target."""
        return contribution(len(self.are_text), self.target)

    @property
    def size(self) -> int:
        """Number of bins of all columns."""
        return sum(self.sizes())

    def sizes(self) -> list[int]:
        """Return the number of bins of each column, and of the target."""
        return [SIZES[text] for text in self.are_text] + [NUMBER_BINS] * self.target

    def places(self) -> list[int]:
        """Return the number of the first column of the table that each column takes."""
        return np.cumsum([0, *(1 + (text is None) for text in self.are_text)])[:-1].tolist()

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt{d + w^2}` under ``zero_out`` and :math:`\sqrt{2 (d + w^2)}` under ``replace_one``.

        Proof. There are d columns, and w is 2 with a target and 0 without. The bin of a cell depends on this cell alone:
        exponents of float64 numbers are read, bucket numbers are cut to the bins that exist, and every cell has one bin. A cell
        of a column of either kind has one bin, too: that of its bucket if it has a bucket and no number, and that of its number,
        which may be missing, otherwise. So a record adds a vector with d ones, in different coordinates, and w in one more; its
        norm is :math:`\sqrt{d + w^2}`. A null record adds nothing. Two records add two such vectors, whose inner product is not
        negative, so the squared norm of their difference is at most the sum of their squared norms. It is reached where they
        share no bin.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised counts, without null records; those of the target are multiplied by its weight."""
        counts = [
            rows.counts((place, place + 1) if text is None else (place,), BINS[text], SIZES[text])
            for place, text in zip(self.places(), self.are_text, strict=True)
        ]
        if self.target:
            counts.append(TARGET_WEIGHT * rows.histogram(lambda cells: octave_bins(cells.targets), NUMBER_BINS))
        return np.concatenate(counts)


@dataclass(frozen=True, eq=False)
class FineHistograms(NonNegativeQuery):
    """Count the cells of some columns in even bins between limits, and integers between near limits in a bin each.

    Parameters
    ----------
    columns : tuple of int
        Numbers of the columns of the table; follow from earlier releases.
    limits : ndarray of shape (len(columns) + target, 2)
        Low and high per column, then of the target, from earlier releases; low < high.
    target : bool, default=False
        Whether the targets are counted, too, with weight 2 and without bins of integers.
    even_bins : int, default=1024
        Number of even bins between two limits.
    """

    columns: tuple[int, ...]
    limits: np.ndarray
    target: bool = False
    even_bins: int = EVEN_BINS

    @property
    def clip_norm(self) -> float:
        """Bound on the norm of one record's contribution, ``sqrt(m)`` for m columns, ``sqrt(m + 4)`` with a target."""
        return contribution(len(self.columns), self.target)

    @property
    def size(self) -> int:
        """Number of bins of all columns."""
        return sum(self.sizes())

    def sizes(self) -> list[int]:
        """Return the number of bins of each column, and of the target; those of integers come after the even ones."""
        sizes = [self.even_bins + integers_between(*limits).size for limits in self._of_columns()]
        return sizes + [self.even_bins] * self.target

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`\sqrt{m + w^2}` under ``zero_out`` and :math:`\sqrt{2 (m + w^2)}` under ``replace_one``.

        Proof. Given the earlier releases, the m columns and all bins are the same for both tables; w is 2 with a target and 0
        without. A cell is in at most one bin, which depends on this cell alone: in none outside the limits, in that of its value
        if that is one of the integers, and in an even bin otherwise. So a record adds a vector of at most m ones, in different
        coordinates, and w in one more; its norm is at most :math:`\sqrt{m + w^2}`. A null record adds nothing. The vectors of
        two records have no negative coordinate, so the squared norm of their difference is at most the sum of their squared
        norms. It is reached where both have a bin in every column and share none.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised counts, without null records; those of the target are multiplied by its weight."""
        counts = [
            rows.counts((column,), FineBins(low, high, integers_between(low, high), self.even_bins), size)
            for column, (low, high), size in zip(self.columns, self._of_columns(), self.sizes(), strict=False)
        ]
        if self.target:
            low, high = self.limits[-1].tolist()
            bins = FineBins(low, high, np.zeros(0), self.even_bins)
            counts.append(TARGET_WEIGHT * rows.histogram(lambda cells: bins(cells.targets), self.even_bins))
        return np.concatenate([np.zeros(0), *counts])

    def _of_columns(self) -> list[list[float]]:
        return self.limits[: len(self.columns)].tolist()


@dataclass(frozen=True, eq=False)
class FineBins:
    """Map numbers to the even bins between two limits, and to the bins of given consecutive integers after them.

    Parameters
    ----------
    low, high : float
        The limits.
    integers : ndarray
        Integers within the limits that have a bin each; may be empty.
    even_bins : int, default=1024
        Number of even bins.
    """

    low: float
    high: float
    integers: np.ndarray
    even_bins: int = EVEN_BINS

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the bin of each number; numbers outside the limits and missing ones get the number of bins."""
        #  low |  |  |  |  |  |  |  |  | high        even bins, and after them one bin for each integer in between
        inside = (values >= self.low) & (values <= self.high)  # NaN is not
        values = np.where(inside, values, self.low)
        share = (values - self.low) / (self.high - self.low)
        places = np.clip(np.floor(np.nan_to_num(share) * self.even_bins), 0, self.even_bins - 1).astype(np.intp)
        if self.integers.size:
            whole = values == np.rint(values)
            after = np.where(whole, values - self.integers[0], 0.0).astype(np.intp)
            places = np.where(whole, self.even_bins + np.clip(after, 0, self.integers.size - 1), places)
        return np.where(inside, places, self.even_bins + self.integers.size)


def contribution(n_columns: int, target: bool) -> float:
    """Return the norm of a vector with a one for each column, and the weight of the target."""
    return math.sqrt(n_columns + TARGET_WEIGHT**2 * target)


def octave_bins(values: np.ndarray) -> np.ndarray:
    """Return the bin of each number: by sign and binary exponent, for 0, or for a missing one."""
    #  -2^60 .. -2^-60 |  0 | 2^-60 .. 2^60 | missing       places 0 .. OCTAVES - 1, OCTAVES, OCTAVES + 1 .. 2 OCTAVES, last
    exponents = np.where(np.isinf(values), HIGHEST, np.frexp(values)[1])
    steps = np.clip(exponents, LOWEST, HIGHEST).astype(np.intp) - LOWEST
    places = np.where(values > 0, OCTAVES + 1 + steps, np.where(values < 0, OCTAVES - 1 - steps, OCTAVES))
    return np.where(np.isnan(values), NUMBER_BINS - 1, places)


def octave_ends() -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper end of the bins of numbers, without that of missing ones; those of 0 are 0.

    Returns
    -------
    tuple of ndarray
        Two arrays of shape (243,).
    """
    top = 2.0 ** np.arange(LOWEST, HIGHEST + 1)
    return np.concatenate([-top[::-1], [0.0], top / 2]), np.concatenate([-top[::-1] / 2, [0.0], top])


def bucket_bins(values: np.ndarray) -> np.ndarray:
    """Return the bin of each bucket number; missing ones have the last bin."""
    return np.clip(np.where(np.isnan(values), BUCKETS, values), 0, BUCKETS).astype(np.intp)


def either_bins(values: np.ndarray, buckets: np.ndarray) -> np.ndarray:
    """Return the bin of each cell that is a number or text: those of numbers first, then those of buckets."""
    text = np.isnan(values) & ~np.isnan(buckets)
    return np.where(text, NUMBER_BINS + np.minimum(bucket_bins(buckets), BUCKETS - 1), octave_bins(values))


def integers_between(low: float, high: float) -> np.ndarray:
    """Return the integers between two limits; none if these are further apart than 128."""
    return np.arange(math.ceil(low), math.floor(high) + 1.0) if high - low <= WIDEST_INTEGERS else np.zeros(0)


# By whether a column is text; None if each cell is a number or text.
BINS: dict[bool | None, Callable[..., np.ndarray]] = {False: octave_bins, True: bucket_bins, None: either_bins}
SIZES: dict[bool | None, int] = {False: NUMBER_BINS, True: BUCKETS + 1, None: NUMBER_BINS + BUCKETS}

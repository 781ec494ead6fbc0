"""Hold the bins of the cells of all records and a score of each record, to which trees are added."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skdp.privacy.data.kernels import Kernel, Records, part_of, weighted
from skdp.privacy.data.private_data import PrivateData
from skdp.privacy.data.summation import BLOCK, TreeSum, summation_error

# Blocks of one output whose leaves and terms are computed at a time; a choice. Two threads took as long as one, and twice the
# processor time: NumPy's steps are short, and their temporary arrays are mapped and freed under a lock.
AT_ONCE = 32
Columns = Sequence[np.ndarray] | np.ndarray  # one array to a column


class BinnedRecords(PrivateData):
    """Hold bins, targets and scores for the oracle; a score is a function of its own record and of earlier releases.

    Parameters
    ----------
    bins : sequence of ndarray of unsigned int of shape (n_samples,)
        Bin of each cell, column by column.
    targets : ndarray of shape (n_samples,)
        Class numbers, or numbers.
    scores : ndarray of float32 of shape (n_outputs, n_samples)
        Raw predictions so far.
    presence : ndarray of shape (n_samples,) or None
        Weight of each record in [0, 1], by which its clipped term is multiplied; 0 for a null record. None if all are 1.
    chunk_rows : int
        Public number of rows of a chunk, which sets the order of sums.
    n_samples : int or None, default=None
        Public number of records; None for the number of rows.
    amounts, exposure : ndarray of shape (n_samples,) or None, default=None
        As of `Records`.
    """

    def __init__(
        self,
        bins: Columns,
        targets: np.ndarray,
        scores: np.ndarray,
        presence: np.ndarray | None,
        chunk_rows: int,
        n_samples: int | None = None,
        *,
        amounts: np.ndarray | None = None,
        exposure: np.ndarray | None = None,
    ) -> None:
        self._amounts, self._exposure = amounts, exposure
        self._bins, self._targets, self._base, self._scores = bins, targets, scores, scores
        self._trees = np.zeros_like(scores)  # what the averaged trees have added
        self._presence, self._chunk_rows = presence, chunk_rows
        self._last: tuple[Any, ...] | None = None  # bins, a tree, and the leaves of these records in it
        self.n_features, self.n_samples = len(bins), len(targets) if n_samples is None else n_samples

    @property
    def summation_error(self) -> float:
        """Bound on the float64 error of a sum over the records, relative to the largest norm of a term."""
        return summation_error(self.n_samples, False)

    def grown(self, columns: np.ndarray, splits: np.ndarray, values: np.ndarray, share: float) -> "BinnedRecords":
        """Return the same records with the values of the leaves of a tree added to the scores.

        Parameters
        ----------
        columns, splits : ndarray
            The tree, as `leaves` takes it.
        values : ndarray of float32 of shape (n_outputs, n_leaves)
            What a leaf adds, from earlier releases.
        share : float
            Share of the values that the averaged model has.

        Returns
        -------
        BinnedRecords
            A copy that shares the bins.
        """
        table, found = copy.copy(self), self._leaves(columns, splits)
        table._scores, table._trees = np.empty_like(self._scores), np.empty_like(self._trees)
        for part in self._parts():
            added = np.take(values, found[part], axis=1)
            np.add(self._scores[:, part], added, out=table._scores[:, part])
            np.add(self._trees[:, part], np.multiply(added, np.float32(share), out=added), out=table._trees[:, part])
        return table

    def counts(self, sizes: list[int]) -> np.ndarray:
        """Return the number of records in each bin of each column, one column after the other, without null records."""
        counts = [
            np.bincount(bins, weights=self._presence, minlength=size)[:size] for bins, size in zip(self._bins, sizes, strict=True)
        ]
        return np.concatenate(counts).astype(np.float64)

    def leaf_sums(self, columns: np.ndarray, splits: np.ndarray, kernel: Kernel) -> np.ndarray:
        """Return the sums of a function of the scores over the records of each leaf of a tree.

        Parameters
        ----------
        columns, splits : ndarray
            The tree, as `leaves` takes it.
        kernel : callable
            Maps scores of shape (m, n_outputs) and `Records` to clipped terms of shape (m, n_outputs).

        Returns
        -------
        ndarray of shape (n_outputs * n_leaves,)
            Sums in float64, output by output.
        """
        n_leaves, found = 1 << len(columns), self._leaves(columns, splits)

        def of_blocks(part: slice) -> np.ndarray:
            records = self._records(part)
            terms = weighted(kernel(self._scores[:, part].T.astype(np.float64), records), records.present)
            # One count for all blocks, in each of which leaves have numbers of their own: leaf + n_leaves * block.
            n_blocks = -(-len(terms) // BLOCK)
            places = found[part] + np.repeat(n_leaves * np.arange(n_blocks), BLOCK)[: len(terms)]
            counts = [np.bincount(places, weights=one, minlength=n_blocks * n_leaves) for one in terms.T]
            return np.concatenate([one.reshape(n_blocks, n_leaves) for one in counts], axis=1)

        return self._summed(of_blocks)

    def sums(self, function: Callable[[np.ndarray, np.ndarray, Records], np.ndarray]) -> np.ndarray:
        """Return the sum of a function of the scores before all trees, and of what averaged trees have added, of each record.

        Parameters
        ----------
        function : callable
            Maps two arrays of shape (m, n_outputs) and `Records` to clipped terms of shape (m, size).

        Returns
        -------
        ndarray of shape (size,)
            The sum in float64.
        """

        def of_blocks(part: slice) -> np.ndarray:
            base, trees = (scores[:, part].T.astype(np.float64) for scores in (self._base, self._trees))
            records = self._records(part)
            terms = weighted(function(base, trees, records), records.present)
            return np.stack([terms[start : start + BLOCK].sum(axis=0) for start in range(0, len(terms), BLOCK)])

        return self._summed(of_blocks)

    def score_sums(self, weight: float, kernel: Kernel) -> np.ndarray:
        """Return the sum of a function of the scores with the averaged trees times a weight, and of the targets of the records.

        Parameters
        ----------
        weight : float
            Weight of all trees, from earlier releases.
        kernel : callable
            Maps scores of shape (m, n_outputs) and `Records` to clipped terms of shape (m, size).

        Returns
        -------
        ndarray of shape (size,)
            The sum in float64.
        """
        return self.sums(lambda base, trees, records: kernel(base + weight * trees, records))

    def without(self, indices: np.ndarray) -> "BinnedRecords":
        """Return the same table with some records replaced by null records.

        Parameters
        ----------
        indices : ndarray of int
            Row numbers of the records to replace.

        Returns
        -------
        BinnedRecords
            A table with as many records.
        """
        table = copy.copy(self)
        table._presence = np.ones(len(self._targets)) if self._presence is None else self._presence.copy()
        table._presence[indices] = 0.0
        return table

    def _leaves(self, columns: np.ndarray, splits: np.ndarray) -> np.ndarray:
        """Return the leaf of each record; the last tree's are kept, because a tree is added after its leaves are summed."""
        last = self._last
        if last is None or last[0] is not self._bins or not all(map(np.array_equal, last[1:3], (columns, splits))):
            leaf = leaf_finder(columns, splits)
            found = np.concatenate([leaf(self._bins, part) for part in self._parts()])
            last = self._last = self._bins, columns.copy(), splits.copy(), found
        return np.asarray(last[3])

    def _summed(self, of_blocks: Callable[[slice], np.ndarray]) -> np.ndarray:
        """Return the sum of the terms of all blocks, which a function returns for several of them at a time."""
        total = TreeSum(self._chunk_rows)
        for part in self._parts():
            for start, term in zip(range(part.start, part.stop, BLOCK), of_blocks(part), strict=True):
                total.add(term, min(BLOCK, part.stop - start))
        return total.total()

    def _parts(self) -> list[slice]:
        n, size = len(self._targets), max(1, AT_ONCE // len(self._scores)) * BLOCK
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def _records(self, part: slice) -> Records:
        targets = self._targets[part]
        beside = (part_of(array, part) for array in (self._presence, self._amounts, self._exposure))
        return Records(targets, np.ones(len(targets)), None, *beside)


def leaves(bins: Columns, columns: np.ndarray, splits: np.ndarray, part: slice = slice(None)) -> np.ndarray:
    """Return the number of the leaf of each record in an oblivious tree, whose splits are the same on all paths.

    Parameters
    ----------
    bins : sequence of ndarray of unsigned int of shape (n_samples,)
        Bin of each cell, column by column.
    columns : ndarray of int of shape (depth,)
        Column of each split.
    splits : ndarray of bool of shape (depth, n_bins)
        Side of each bin.
    part : slice, default=slice(None)
        The records, m of them.

    Returns
    -------
    ndarray of int of shape (m,)
        Bit d of the number is the side of split d.
    """
    return leaf_finder(columns, splits)(bins, part)


def leaf_finder(columns: np.ndarray, splits: np.ndarray) -> Callable[[Columns, slice], np.ndarray]:
    """Return what maps bins and a part of the records to `leaves` in a tree."""
    # Eight bits at a time: bytes are several times faster than longer numbers.
    finders = [_byte_finder(columns[start : start + 8], splits[start : start + 8]) for start in range(0, max(1, len(columns)), 8)]

    def found(bins: Columns, part: slice) -> np.ndarray:
        leaf = finders[0](bins, part)
        for place, finder in enumerate(finders[1:], start=1):
            longer = np.min_scalar_type((1 << len(columns)) - 1)
            leaf = leaf | np.left_shift(finder(bins, part), 8 * place, dtype=longer)
        return leaf

    return found


def _byte_finder(columns: np.ndarray, splits: np.ndarray) -> Callable[[Columns, slice], np.ndarray]:
    """Return what maps bins and a part of the records to leaves in a tree of at most eight splits."""
    is_cut = splits[:, -1] & (splits[:, 1:] >= splits[:, :-1]).all(axis=1)  # of a number; comparing is faster than looking up
    sides = zip(columns.tolist(), splits.argmax(axis=1).tolist(), is_cut.tolist(), strict=True)
    cuts = [(column, first, np.uint8(1 << place)) for place, (column, first, cut) in enumerate(sides) if cut]
    tables: dict[int, np.ndarray] = {}  # one look-up for all further splits of a column
    for place in np.flatnonzero(~is_cut).tolist():
        column, table = int(columns[place]), splits[place].view(np.uint8) << np.uint8(place)
        tables[column] = tables[column] | table if column in tables else table

    def found(bins: Columns, part: slice) -> np.ndarray:
        leaf = np.zeros(bins[0][part].size, dtype=np.uint8)
        above, bit = np.empty(leaf.size, dtype=bool), np.empty_like(leaf)
        for column, first, weight in cuts:
            np.greater_equal(bins[column][part], first, out=above)
            leaf |= np.multiply(above.view(np.uint8), weight, out=bit)
        for column, table in tables.items():
            leaf |= np.take(table, bins[column][part])
        return leaf

    return found

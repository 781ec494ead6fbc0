"""Hold the bins of the cells of all records and a score of each record, to which trees are added."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skdp.privacy.data.kernels import Kernel, Records, part_of, weighted
from skdp.privacy.data.private_data import PrivateData
from skdp.privacy.data.summation import BLOCK, TreeSum, summation_error

# Blocks whose leaves and terms are computed at a time; a choice: their arrays stay in a processor's cache.
AT_ONCE = 8
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

        def terms(part: slice) -> tuple[np.ndarray, np.ndarray]:
            records = self._records(part)
            own = weighted(kernel(self._scores[:, part].T.astype(np.float64), records), records.present)
            return own, found[part].astype(np.intp)

        def added(own: np.ndarray, leaf: np.ndarray) -> np.ndarray:
            return np.concatenate([np.bincount(leaf, weights=one, minlength=n_leaves) for one in own.T])

        return self._summed(terms, added)

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

        def terms(part: slice) -> tuple[np.ndarray]:
            base, trees = (scores[:, part].T.astype(np.float64) for scores in (self._base, self._trees))
            records = self._records(part)
            return (weighted(function(base, trees, records), records.present),)

        return self._summed(terms, lambda own: own.sum(axis=0))

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
            found = np.concatenate([leaves(self._bins, columns, splits, part) for part in self._parts()])
            last = self._last = self._bins, columns.copy(), splits.copy(), found
        return np.asarray(last[3])

    def _summed(
        self, terms: Callable[[slice], tuple[np.ndarray, ...]], added: Callable[..., np.ndarray]
    ) -> np.ndarray:
        """Return the sum of what ``added`` makes of the terms of each block, which are computed for several blocks at a time."""
        total = TreeSum(self._chunk_rows)
        for part in self._parts():
            found = terms(part)
            for start in range(0, part.stop - part.start, BLOCK):
                block = [one[start : start + BLOCK] for one in found]
                total.add(added(*block), len(block[0]))
        return total.total()

    def _parts(self) -> list[slice]:
        n, size = len(self._targets), AT_ONCE * BLOCK
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
    leaf = np.zeros(bins[0][part].size, dtype=np.min_scalar_type((1 << len(columns)) - 1))
    for start in range(0, len(columns), 8):  # eight bits at a time: bytes are several times faster than longer numbers
        byte = _byte(bins, columns[start : start + 8], splits[start : start + 8], part)
        leaf |= np.left_shift(byte, start, dtype=leaf.dtype) if start else byte
    return leaf


def _byte(bins: Columns, columns: np.ndarray, splits: np.ndarray, part: slice) -> np.ndarray:
    """Return the number of the leaf of each record in a tree of at most eight splits."""
    byte = np.zeros(bins[0][part].size, dtype=np.uint8)
    above, bit, tables = np.empty(byte.size, dtype=bool), np.empty_like(byte), {}
    for depth, (column, sides) in enumerate(zip(columns.tolist(), splits, strict=True)):
        first = int(sides.argmax())
        if sides[first:].all():  # a cut of a number; comparing is faster than looking up
            np.greater_equal(bins[column][part], first, out=above)
            byte |= np.multiply(above.view(np.uint8), np.uint8(1 << depth), out=bit)
        else:  # one look-up for all further splits of a column
            tables[column] = tables.get(column, 0) | (sides.view(np.uint8) << np.uint8(depth))
    for column, table in tables.items():
        byte |= np.take(table, bins[column][part])
    return byte

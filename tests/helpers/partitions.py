"""Tables in partitions of any cut, on which this process works, for tests of what holds whoever works on them."""

from copy import copy
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from chunks import bounds_of

from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.data.kernels import part_of
from skdp.privacy.data.partition import Chunk, Partition, guarded, joined, partial_sum
from skdp.privacy.data.partitioned_rows import InPartitions, PartitionedCells, PartitionedRows
from skdp.privacy.data.summation import BLOCK

__all__ = ["Here", "cut", "of_cells", "partitioned", "random_cuts"]


class Here:
    """An engine that finishes the partitions in a random order, and joins their sums in random groups.

    ``tamper`` maps the list of these sums to what is joined.
    """

    def __init__(self, partitions, seed=0, tamper=lambda sums: sums):
        self.partitions, self.tamper, self.rng = partitions, tamper, np.random.default_rng(seed)

    def change(self, work, shared, each):
        self.partitions = [work(part, *shared, *own) for part, own in zip(self.partitions, each, strict=True)]

    def reduce(self, query, each):
        sums, tasks = {}, list(zip(self.partitions, each, strict=True))
        for place in self.rng.permutation(len(tasks)):
            part, own = tasks[place]
            sums[place] = guarded(partial_sum, part, query, *own)
        parts = self.tamper([sums[place] for place in range(len(tasks))])
        while len(parts) > 1:
            places = np.unique([0, *self.rng.integers(1, len(parts), (len(parts) - 1) // 2), len(parts)])
            parts = [guarded(joined, *parts[a:b]) for a, b in pairwise(places)]
        return parts[0]

    def close(self):
        self.partitions = []


def cut(X, y, cuts, groups=None, length=BLOCK):
    """The records as partitions between the cuts, each in chunks of some length."""
    partitions = []
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        starts = range(start, stop, length)
        parts = [slice(a, min(a + length, stop)) for a in starts]
        partitions.append(
            Partition(tuple(Chunk(X[part], y[part], None if groups is None else groups[part]) for part in parts), b"")
        )
    return partitions


def partitioned(rows, cuts, null=(), **options):
    """The rows of a table in memory as a table in partitions."""
    if isinstance(rows, BinnedRecords):
        return of_binned(rows, cuts, null, **options)
    return of_records(rows._blocks.table, rows._y, cuts, bounds_of(rows), rows._groups, null, **options)


def of_records(X, y, cuts, bounds, groups=None, null=(), **options):
    """Records as a table in partitions behind the oracle; ``null`` are the numbers of null records."""
    engine, loaded = here(X, y, cuts, groups, **options)
    rows = PartitionedRows(engine, loaded, [None] * len(loaded), bounds)
    rows.without = lambda null: of_records(X, y, cuts, bounds, groups, null)
    without_records(engine, loaded, null)
    return rows


def of_cells(cells, targets, target, cuts, null=(), **options):
    """Cells as a table in partitions behind the oracle; ``null`` are the numbers of null records."""
    engine, loaded = here(cells, targets, cuts, length=999, **options)
    rows = PartitionedCells(engine, loaded, target)
    without_records(engine, loaded, null)
    return rows


def of_binned(rows, cuts, null=(), **options):
    """Binned records as a table in partitions behind the oracle; ``null`` are the numbers of null records."""
    engine, loaded = here(np.empty((rows.n_samples, 0)), rows._targets, cuts, **options)
    places = pairwise(np.cumsum([0] + [len(chunk.y) for part in engine.partitions for chunk in part.chunks]).tolist())
    engine.partitions = [
        replace(part, rows=tuple(slice_of(rows, *next(places)) for _ in part.chunks)) for part in engine.partitions
    ]
    without_records(engine, loaded, null)
    return InPartitions(engine, loaded)


def slice_of(rows, start, stop):
    """Some of the binned records."""
    part = copy(rows)
    for name in ("_bins", "_scores", "_base", "_trees"):
        setattr(part, name, getattr(rows, name)[:, start:stop])
    part._targets, part.n_samples = rows._targets[start:stop], stop - start
    part._presence, part._amounts = (part_of(array, slice(start, stop)) for array in (rows._presence, rows._amounts))
    return part


def here(X, y, cuts, groups=None, length=BLOCK, **options):
    """An engine that holds records between cuts, and what is known of each partition."""
    partitions = cut(X, y, cuts, groups, length)
    loaded = [
        SimpleNamespace(n_rows=sum(len(c.y) for c in part.chunks), n_features=X.shape[1], n_chunks=len(part.chunks), digest=b"")
        for part in partitions
    ]
    return Here(partitions, **options), loaded


def without_records(engine, loaded, null):
    """Replace some records by null records, by their numbers in the whole table."""
    starts = np.cumsum([0] + [part.n_rows for part in loaded])
    engine.change(without, (), [(np.asarray(null, dtype=int) - start,) for start in starts[:-1]])


def without(partition, null):
    """The partition with null records, numbered from its first record."""
    rows, start = [], 0
    for chunk in partition.rows:
        inside = null[(null >= start) & (null < start + chunk.n_samples)] - start
        rows.append(chunk.without(inside) if inside.size else chunk)
        start += chunk.n_samples
    return replace(partition, rows=tuple(rows))


def random_cuts(n_samples, n_partitions, rng):
    """Cuts at random places, of which some make empty partitions and some partitions of one record."""
    cuts = rng.integers(0, n_samples + 1, max(0, n_partitions - 1))
    cuts[1::5] = np.minimum(cuts[:-1:5][: cuts[1::5].size] + 1, n_samples)
    cuts[2::7] = cuts[1:-1:7][: cuts[2::7].size]
    return np.sort(cuts).tolist()

"""Work on one partition of a table: functions of its records, a query and public facts, which have no side effect.

A task may run several times, on any machine. A task that fails returns a `Failure`: a distributed scheduler logs an exception
with its text, which may quote data.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np
from scipy import sparse

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.persons import SomeRows
from skdp.privacy.data.private_data import Sums
from skdp.privacy.data.summation import TreeSum
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import STANDS, SourceError, silent

CHANGED = f"The source changed while it was read. {STANDS}"
FAILED = "Work on a partition failed; the same call with public data in memory and epsilon=inf shows why."
DIGEST_BYTES = 16  # length of a fingerprint: 128 bits, so a change that has the same one is out of the question


@dataclass(frozen=True)
class Failure:
    """What a task returns in place of an error: the type of the error, and a text that quotes no data."""

    kind: type[Exception]
    text: str

    def raised(self) -> NoReturn:
        """Raise the error."""
        raise self.kind(self.text)


class Chunk(NamedTuple):
    """Checked records of a chunk."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None = None

    @property
    def arrays(self) -> Iterator[np.ndarray]:
        """The arrays that hold the records."""
        yield from (self.X.data, self.X.indices, self.X.indptr) if sparse.issparse(self.X) else (self.X,)
        yield self.y
        if self.groups is not None:
            yield self.groups

    def digest(self, secret: bytes) -> bytes:
        """Return a fingerprint, keyed with a secret of the fit: nobody else can compare it with that of known records."""
        fingerprint = hashlib.blake2b(key=secret, digest_size=DIGEST_BYTES)
        for array in self.arrays:
            fingerprint.update(f"{array.dtype.str} {array.shape}".encode())
            fingerprint.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
        return fingerprint.digest()


@dataclass(frozen=True, repr=False, eq=False)
class Partition:
    """Checked records of a partition, chunk by chunk, and the rows behind the oracle once they are prepared.

    Parameters
    ----------
    chunks : tuple of Chunk
        The records.
    digest : bytes
        Fingerprint of the records, made when they were read.
    rows : tuple of (TrainingData or ColumnCells), default=()
        The same records, clipped, or their cells.
    keep : callable or None, default=None
        Stores arrays that `TrainingData` computes once, by name; None keeps them in memory.
    store : callable or None, default=None
        Stores a chunk anew, and returns it with its ``keep``; None keeps in memory what `mapped` makes.
    """

    chunks: tuple[Chunk, ...]
    digest: bytes
    rows: tuple[Any, ...] = ()
    keep: Callable[[str, np.ndarray], np.ndarray] | None = None
    store: Callable[[Chunk], tuple[Chunk, Callable[[str, np.ndarray], np.ndarray]]] | None = None

    def __repr__(self) -> str:
        return "<partition>"


@dataclass(frozen=True, repr=False, eq=False)
class SampleOf:
    """Ask for the sum of a query over the Poisson sample of a key; its ``repr`` has no key, for a scheduler logs it.

    Parameters
    ----------
    query : Sums
        The query.
    key : bytes
        32 secret random bytes, drawn for one release.
    rate : float
        Probability that a record enters the sample.
    """

    query: Sums
    key: bytes
    rate: float

    def partial(self, rows: TrainingData, chunk: int) -> np.ndarray:
        """Return the un-noised sum over the sample of a chunk, whose number decides which of its records are drawn."""
        return self.query.partial(rows.sampled(self.key, self.rate, chunk))


def guarded(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of work on a partition, or a `Failure`; the first failure among the arguments is passed on."""
    for argument in arguments:
        if isinstance(argument, Failure):
            return argument
    try:
        with silent():
            return work(*arguments)
    except SourceError as error:
        return Failure(SourceError, str(error))
    except MemoryError:
        return Failure(MemoryError, "Work on a partition needs more memory than there is; smaller partitions need less.")
    except BaseException:  # a part of the user's may raise anything, and the main thread alone gets interrupts
        return Failure(SourceError, FAILED)


def prepared(
    partition: Partition,
    bounds: dict[str, Any],
    lookup: np.ndarray | None,
    groups: np.ndarray | None = None,
    persons: SomeRows | None = None,
) -> Partition:
    """Return a partition with the rows that queries read.

    Parameters
    ----------
    partition : Partition
        As it was read.
    bounds : dict
        Public constants of `TrainingData`.
    lookup : ndarray or None
        The class number of each label of the partition; None for targets that are numbers.
    groups : ndarray or None, default=None
        The number of each group of the partition; None without groups.
    persons : SomeRows or None, default=None
        Weights of the rows; None if each of them is a record.

    Returns
    -------
    Partition
        The same records, clipped.
    """
    lookups = {"y": lookup, "groups": groups}
    pairs = _with_weights(partition.chunks, persons)
    return replace(partition, rows=tuple(_prepared(chunk, partition.keep, bounds, lookups, own) for chunk, own in pairs))


def _with_weights(chunks: tuple[Chunk, ...], persons: SomeRows | None) -> Iterator[tuple[Chunk, SomeRows | None]]:
    """Yield each chunk of a partition with the weights of its rows, if they have any."""
    start = 0
    for chunk in chunks:
        rows = slice(start, start := start + len(chunk.y))
        yield chunk, None if persons is None else persons.part(rows)


def in_storage(X: Any, dense: bool) -> Any:
    """Return the same table as an array, or as CSR."""
    if dense:
        return X.toarray() if sparse.issparse(X) else X
    return sparse.csr_array(X)


def restored(partition: Partition, dense: bool) -> Partition:
    """Return a partition of the same records, which is not prepared yet, as arrays or as CSR."""
    chunks = (chunk._replace(X=in_storage(chunk.X, dense)) for chunk in partition.chunks)
    return replace(partition, chunks=tuple(chunks))


def counted(partition: Partition, target: bool, persons: SomeRows | None = None) -> Partition:
    """Return a partition with the cells that queries count; its targets are among them if they are numbers to count."""
    pairs = _with_weights(partition.chunks, persons)
    return replace(
        partition,
        rows=tuple(
            ColumnCells(chunk.X, chunk.y if target else None, *(() if own is None else (own.weights, own.n_persons)))
            for chunk, own in pairs
        ),
    )


def _prepared(
    chunk: Chunk, keep: Any, bounds: dict[str, Any], lookups: dict[str, np.ndarray | None], persons: SomeRows | None
) -> TrainingData:
    def column(name: str, codes: np.ndarray | None) -> np.ndarray | None:
        lookup = lookups[name]
        if codes is None or lookup is None:
            return codes
        numbers = np.take(lookup.astype(codes.dtype), codes)
        return numbers if keep is None else keep(name, numbers)

    y, groups = column("y", chunk.y), column("groups", chunk.groups)
    return TrainingData(chunk.X, cast(np.ndarray, y), groups, keep=keep, persons=persons, **bounds)


def mapped(partition: Partition, matrix: Any) -> Partition:
    """Return a partition whose rows are mapped by a matrix, as `TrainingData.mapped` does."""
    store = partition.store

    def stored(*arrays: Any) -> tuple[Any, ...]:
        assert store is not None
        chunk, keep = store(Chunk(*arrays))
        return *chunk, keep

    rows = tuple(rows.mapped(matrix, None if store is None else stored) for rows in partition.rows)
    return replace(partition, rows=rows, chunks=(), keep=None)


def binned(partition: Partition, bins_of: Callable[[Any], np.ndarray], coef: np.ndarray) -> Partition:
    """Return a partition with the bins of its records and a score of each, as `TrainingData.binned` does."""
    return replace(partition, rows=tuple(rows.binned(bins_of, coef) for rows in partition.rows), chunks=(), keep=None)


def retargeted(partition: Partition, function: Callable[..., np.ndarray]) -> Partition:
    """Return a partition whose targets are mapped, as `TrainingData.retargeted` does."""
    return replace(partition, rows=tuple(rows.retargeted(function) for rows in partition.rows))


def grown(partition: Partition, *tree: Any) -> Partition:
    """Return a partition whose scores have a tree added, as `BinnedRecords.grown` does."""
    return replace(partition, rows=tuple(rows.grown(*tree) for rows in partition.rows))


def partial_sum(partition: Partition, query: Sums | SampleOf, first: int, digest: bytes) -> TreeSum:
    """Return the sum of a query over a partition, or over a sample of it.

    Parameters
    ----------
    partition : Partition
        Prepared.
    query : Sums or SampleOf
        The query. A chunk without a record in the sample adds zeros.
    first : int
        Number of chunks before those of the partition.
    digest : bytes
        Fingerprint of the partition when it was read first.

    Returns
    -------
    TreeSum
        The sum of the chunks, which joins the sums of other partitions.

    Raises
    ------
    SourceError
        If the partition was read again and other records came. Norms that were kept would not bound them, and a record could
        be in two partitions.
    """
    if partition.digest != digest:
        raise SourceError(CHANGED)
    total = TreeSum(1, first)
    for chunk, rows in enumerate(partition.rows, first):
        total.add_chunk(_term(query, rows, chunk).copy())
    return total


def _term(query: Sums | SampleOf, rows: TrainingData, chunk: int) -> np.ndarray:
    """Return the sum of a query over a chunk; a part of the user's may raise errors of the classes of this package."""
    try:
        return query.partial(rows, chunk) if isinstance(query, SampleOf) else query.partial(rows)
    except SourceError:
        raise RuntimeError from None


def joined(*sums: TreeSum) -> TreeSum:
    """Return the sum of neighbouring runs of chunks; the arguments are not changed."""
    total = sums[0].copy()
    for later in sums[1:]:
        total.extend(later)
    return total


def chunks_of(parts: Iterable[Chunk], length: int) -> Iterator[Chunk]:
    """Yield the records of a stream of parts in chunks of ``length`` records; the last one may be shorter."""
    waiting: list[Chunk] = []
    for part in parts:
        # Cut a part where chunks end, and put pieces together where a chunk begins in one part and ends in another.
        start, n_rows = 0, len(part.y)
        while start < n_rows:
            stop = min(n_rows, start + length - sum(len(piece.y) for piece in waiting))
            waiting.append(_slice(part, start, stop))
            start = stop
            if sum(len(piece.y) for piece in waiting) == length:
                yield _concatenated(waiting)
                waiting = []
    if waiting:
        yield _concatenated(waiting)


def _slice(part: Chunk, start: int, stop: int) -> Chunk:
    if start == 0 and stop == len(part.y):
        return part
    groups = None if part.groups is None else part.groups[start:stop]
    return Chunk(part.X[start:stop], part.y[start:stop], groups)


def _concatenated(pieces: list[Chunk]) -> Chunk:
    """Return one chunk, whose rows are in C order: BLAS rounds in another way for another order."""
    tables, groups = [piece.X for piece in pieces], [piece.groups for piece in pieces if piece.groups is not None]
    if sparse.issparse(tables[0]):
        X = sparse.csr_array(sparse.vstack(tables, format="csr"))
    else:
        X = np.ascontiguousarray(np.concatenate(tables) if len(tables) > 1 else tables[0])
    return Chunk(X, np.concatenate([piece.y for piece in pieces]), np.concatenate(groups) if groups else None)

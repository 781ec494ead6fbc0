"""Read the cells of a table in partitions, behind an engine that counts them where they are."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from skdp._data_validation import Partitions, quoting_no_data
from skdp._label_types import dtype_of_labels, numbered, refuse_mixed_labels, sorted_labels
from skdp._table_types import TypedColumns, is_dask
from skdp.data._dask import DaskParts, current_client
from skdp.data._on_worker import OnWorker
from skdp.data._table import Table, check_number
from skdp.preprocessing._frame_facts import FrameFacts, finite_targets
from skdp.privacy.data.partition import CHANGED, DIGEST_BYTES, Chunk, Failure, chunks_of
from skdp.privacy.data.partitioned_rows import PartitionedCells
from skdp.privacy.data.summation import chunk_rows
from skdp.privacy.engines.threads import ThreadEngine
from skdp.privacy.errors import SourceError

__all__ = ["Checks", "LoadedCells", "loaded_cells", "typed_columns"]

OTHER_COLUMNS = "The partitions have different columns; expected the same, in the same order, in all of them."


@dataclass(frozen=True)
class LoadedCells:
    """Hold the cells of a table that was read, and what is public about it.

    Parameters
    ----------
    rows : PartitionedCells
        The cells, for the oracle.
    partitions : Partitions
        Where they are.
    labels : ndarray or None
        All labels of the targets, sorted; None if these are not read as labels.
    again : callable
        Returns the table for a second reading, which fails if other cells or targets come.
    """

    rows: PartitionedCells
    partitions: Partitions
    labels: np.ndarray | None
    again: Callable[[], Any]


def typed_columns(X: Any) -> TypedColumns:
    """Return names and types of the columns, by which all partitions are read.

    They are those of Parquet files, or of a Dask frame. Where the source does not state them, as chunks of a function do not,
    they are those of its first batch. The cells of later batches change nothing of how a column is read.

    Parameters
    ----------
    X : Table or dask.dataframe.DataFrame
        The table.

    Returns
    -------
    TypedColumns
        What is public.

    Raises
    ------
    TypeError
        If its batches are no data frames.
    """
    if isinstance(X, Table):
        n_samples, types = X.n_samples, None if X.steps else getattr(X.source, "types", None)
        return _typed(_first(X) if types is None else SimpleNamespace(columns=list(types), dtypes=types), n_samples)
    return _typed(X, None)


@contextmanager
def loaded_cells(X: Any, y: Any, facts: FrameFacts, target: bool, checks: "Checks | None" = None) -> Iterator[LoadedCells]:
    """Read a table once, and keep the cells of its columns that are learned until the context is left.

    One pass over the source is enough for both rounds: a cell takes 8 bytes of the private file, or of the memory of the workers.
    With ``cache=None``, each round reads the source again, and fingerprints are compared.

    Parameters
    ----------
    X : Table or dask.dataframe.DataFrame
        The table.
    y : dask Series or None
        Targets of a Dask frame; None for a table, which names its own.
    facts : FrameFacts
        Which columns are read, and how.
    target : bool
        Whether the targets are numbers to count.
    checks : Checks or None, default=None
        How the targets are read, and what else is checked; None reads them only to count them.

    Yields
    ------
    LoadedCells
        The cells.
    """
    if not is_dask(X) and y is not None:
        raise TypeError("y is given beside a table in partitions, which names its own target; expected fit(table).")
    read = CellReader(facts, Checks(Numbers() if target else None) if checks is None else checks)
    client = current_client() if is_dask(X) else None
    table = Table(DaskParts(X, X if read.checks.of_target is None else y)) if is_dask(X) else replace(X, dtype=None)
    stream = Stream(table, read)
    engine: Any = ThreadEngine(stream.chunks, table.cache is not None) if client is None else _of_workers(client, table, read)
    try:
        loaded = engine.load(*([8 * (read.width + 1), table.n_samples] if client is None else []))
        n_samples = sum(part.n_rows for part in loaded)
        if n_samples < 2:
            raise ValueError(f"X has {n_samples} records; expected at least 2.")
        check_number(table.n_samples, n_samples)
        kept = "a private file" if table.cache else None
        n_workers = None if client is None else engine.n_workers
        place = kept if client is None else f"the memory of {n_workers} Dask workers"
        partitions = Partitions(table.source.description, len(loaded), None, place, n_workers)
        if client is None:
            same = replace(X if isinstance(X, Table) else table, source=Same(stream, n_samples), steps=())
            labels, again = stream.labels, lambda: same
        else:
            found = [part.public.labels for part in loaded if part.n_rows and part.public.labels is not None]
            refuse_mixed_labels(found)
            like = dtype_of_labels(table.source, found[0].dtype) if found else None
            labels = None if like is None else sorted_labels(set().union(*(part.tolist() for part in found)), like)
            again = partial(_again_on_workers, X, y, read, engine.secret, loaded)
        yield LoadedCells(PartitionedCells(engine, loaded, target), partitions, labels, again)
    finally:
        engine.close()


@dataclass(frozen=True)
class Checks:
    """What a reading of the cells reads and checks beside them, before anything is charged.

    Parameters
    ----------
    of_target : callable or None
        Maps the targets of a batch, and its number of records, to numbers and to the labels that they stand for, None without
        labels. None reads no targets.
    transformer : transformer or None, default=None
        Maps a batch, and raises an error for columns that the user describes in another way than they are.
    """

    of_target: Callable[[Any, int], tuple[np.ndarray, np.ndarray | None]] | None
    transformer: Any = None


class Numbers:
    """Reads targets that are numbers."""

    def __call__(self, y: Any, n_samples: int) -> tuple[np.ndarray, None]:
        """Return the numbers."""
        return finite_targets(y, n_samples), None


@dataclass(frozen=True)
class CellReader:
    """Read the cells of a batch, each by itself and by the types of the table, whatever those of the batch are.

    Parameters
    ----------
    facts : FrameFacts
        Which columns are read, and how.
    checks : Checks
        What is read beside them.
    """

    facts: FrameFacts
    checks: Checks

    @property
    def width(self) -> int:
        """Number of columns of cells."""
        return sum(1 + (text is None) for text in self.facts.are_text.values())

    def __call__(self, X: Any, y: Any) -> "tuple[Chunk, Labels]":
        """Return the cells, with the targets or zeros, and the labels."""
        if list(getattr(X, "columns", ())) != list(self.facts.names):
            raise ValueError(OTHER_COLUMNS)
        cells, transformer = quoting_no_data(X, lambda: self.facts.cells(X)), self.checks.transformer
        if transformer is not None:
            quoting_no_data(X, lambda: transformer.fit_transform(X))
        targets, labels = np.zeros(len(cells)), None
        if self.checks.of_target is not None:
            targets, labels = self.checks.of_target(y, len(cells))
        return Chunk(np.ascontiguousarray(cells), targets), Labels(labels)


class Stream:
    """The cells of a table, cut into chunks, and a fingerprint of all that was read; it depends on no batch.

    Parameters
    ----------
    table : Table
        The table.
    read : CellReader
        Reads a batch.
    """

    def __init__(self, table: Table, read: CellReader) -> None:
        self.table, self._read, self._secret = table, read, secrets.token_bytes(32)
        self._known: dict[Any, int] = {}  # labels in the order in which they came
        self._first: bytes | None = None
        self._like: Any = None  # dtype of the labels of the first batch that has some

    @property
    def labels(self) -> np.ndarray | None:
        """All labels, sorted; None without labels."""
        return None if self._like is None else sorted_labels(self._known, self._like)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the cells of a new pass over the table."""
        yield from chunks_of((chunk for chunk, _ in self.parts()), chunk_rows(self._read.width))

    def parts(self) -> Iterator[tuple[Chunk, tuple[Any, ...]]]:
        """Yield the cells of a batch and the batch; raise SourceError if they are not those of the first pass."""
        cells, targets = (hashlib.blake2b(key=self._secret, digest_size=DIGEST_BYTES) for _ in range(2))
        for X, y, groups in self.table.grouped():
            chunk, public = self._read(X, y)
            if public.labels is not None:
                chunk = chunk._replace(y=self._numbers(public.labels)[chunk.y])
            cells.update(chunk.X.data)
            targets.update(np.ascontiguousarray(chunk.y).data)
            yield chunk, (X, y) if groups is None else (X, y, groups)
        found = cells.digest() + targets.digest()
        self._first = self._first or found
        if found != self._first:
            raise SourceError(CHANGED)

    def _numbers(self, labels: np.ndarray) -> np.ndarray:
        if labels.size and self._like is None:
            self._like = dtype_of_labels(self.table.source, labels.dtype)
        return numbered(labels, self._known)


class Same:
    """A source that is read again, after its cells were; the second reading must find the same.

    Parameters
    ----------
    stream : Stream
        What was read.
    n_samples : int
        Number of records that were found.
    """

    def __init__(self, stream: Stream, n_samples: int) -> None:
        source = stream.table.source
        self.description, self.n_samples, self.n_features = source.description, n_samples, stream.table.shape[1]
        self.names, self._stream = stream.table.names, stream
        self.made, self.target_dtype = getattr(source, "made", False), getattr(source, "target_dtype", None)

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield the batches; raise SourceError if other cells or targets came."""
        parts = self._stream.parts()
        while True:
            try:
                _, batch = next(parts)
            except StopIteration:
                return
            except (TypeError, ValueError):  # the first reading found none
                raise SourceError(CHANGED) from None
            yield batch


@dataclass(frozen=True)
class Labels:
    """Hold the labels of a partition, which the numbers in y stand for; None without."""

    labels: np.ndarray | None


def _on_worker(read: CellReader) -> OnWorker:
    return OnWorker(read, (Chunk(np.empty((0, read.width)), np.empty(0)), Labels(None)))


def _of_workers(client: Any, table: Table, read: CellReader) -> Any:
    from skdp.privacy.engines.dask import DaskEngine

    return DaskEngine(client, table.source.parts, _on_worker(read))  # type: ignore[attr-defined]


@dataclass(frozen=True, repr=False)
class SameParts:
    """Pass a partition on if its cells and targets are those of the first reading; its ``repr`` has no key, for Dask logs it.

    Parameters
    ----------
    read : OnWorker
        Reads the cells.
    secret : bytes
        Key of the fingerprints.
    digests : tuple of bytes
        Fingerprints of the first reading.
    """

    read: OnWorker
    secret: bytes
    digests: tuple[bytes, ...]

    def __call__(self, X: Any, y: Any = None, partition_info: Any = None) -> Any:
        """Return X, or raise SourceError."""
        from skdp.privacy.engines.dask import load

        if partition_info is not None:  # Dask tries the function without
            found = load(self.read, self.secret, X, X if y is None else y)
            if isinstance(found, Failure) or found[1].digest != self.digests[partition_info["number"]]:
                raise SourceError(CHANGED)
        return X


def _again_on_workers(X: Any, y: Any, read: CellReader, secret: bytes, loaded: list[Any]) -> Any:
    same = SameParts(_on_worker(read), secret, tuple(part.digest for part in loaded))
    beside = () if read.checks.of_target is None else (y,)
    return X.map_partitions(same, *beside, meta=X._meta, align_dataframes=False)


def _first(table: Table) -> Any:
    """Return the first batch of a table."""
    batches = table.batches()
    try:
        return next(batches, (None,))[0]
    finally:
        batches.close()  # type: ignore[attr-defined]


def _typed(frame: Any, n_samples: int | None) -> TypedColumns:
    names, dtypes = list(getattr(frame, "columns", ())), getattr(frame, "dtypes", None)
    if not names or dtypes is None:
        raise TypeError("The table has no named columns; expected one of data frames, or of Parquet files.")
    types = {name: dtypes[name] for name in names} if hasattr(dtypes, "keys") else dict(zip(names, dtypes, strict=True))
    return TypedColumns(types, n_samples)

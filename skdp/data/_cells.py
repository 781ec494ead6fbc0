"""Read the cells of a table in partitions, behind an engine that counts them where they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from skdp._data_validation import Facts, Part, Partitions, quoting_no_data
from skdp._table_types import TypedColumns, is_dask
from skdp.data._dask import checked_parts, current_client, table_of
from skdp.data._reading import OTHER_COLUMNS, OnWorker, PartitionedTable, Stream
from skdp.data._table import Table
from skdp.preprocessing._frame_facts import FrameFacts
from skdp.privacy.data.partition import CHANGED, Failure
from skdp.privacy.data.partitioned_rows import PartitionedCells
from skdp.privacy.data.persons import SomeRows
from skdp.privacy.errors import SourceError


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


@dataclass(frozen=True)
class CellReader:
    """Read the cells of a batch, each by itself and by the types of the table, whatever those of the batch are.

    Parameters
    ----------
    facts : FrameFacts
        Which columns are read, and how.
    check_target : callable or None, default=None
        Maps the targets of a batch, and its number of records, to numbers and to the labels that they stand for, None without
        labels. None reads no targets.
    described : transformer or None, default=None
        Maps a batch, and raises an error for columns that the user describes in another way than they are.
    """

    facts: FrameFacts
    check_target: Callable[[Any, int], tuple[np.ndarray, np.ndarray | None]] | None = None
    described: Any = None

    @property
    def width(self) -> int:
        """Number of columns of cells."""
        return sum(1 + (text is None) for text in self.facts.are_text.values())

    def __call__(self, X: Any, y: Any) -> Part:
        """Return the cells, with the targets or zeros, and the labels."""
        if list(getattr(X, "columns", ())) != list(self.facts.names):
            raise ValueError(OTHER_COLUMNS)
        cells = quoting_no_data(X, lambda: self.facts.cells(X))
        if self.described is not None:
            quoting_no_data(X, lambda: self.described.fit_transform(X))
        targets, labels = np.zeros(len(cells)), None
        if self.check_target is not None:
            targets, labels = self.check_target(y, len(cells))
        return Part(Facts(len(cells), self.width, classes=labels), np.ascontiguousarray(cells), targets)


@contextmanager
def loaded_cells(
    X: Any, y: Any, read: CellReader, target: bool, stated: bool = False, persons: SomeRows | None = None
) -> Iterator[LoadedCells]:
    """Read a table once, and keep the cells of its columns that are learned until the context is left.

    One pass over the source is enough for both rounds: a cell takes 8 bytes of the private file, or of the memory of the workers.
    With ``cache=None``, each round reads the source again, and fingerprints are compared.

    Parameters
    ----------
    X : Table or dask.dataframe.DataFrame
        The table.
    y : dask Series or None
        Targets of a Dask frame; None for a table, which names its own.
    read : CellReader
        Reads a batch.
    target : bool
        Whether the targets are numbers to count.
    stated : bool, default=False
        Whether the user states the labels.
    persons : SomeRows or None, default=None
        Weights of all rows, if persons are protected.

    Yields
    ------
    LoadedCells
        The cells.
    """
    if not is_dask(X) and y is not None:
        raise TypeError("y is given beside a table in partitions, which names its own target; expected fit(table).")
    client = current_client() if is_dask(X) else None
    table = table_of(X, X if read.check_target is None else y, persons) if is_dask(X) else replace(X, dtype=None)
    with PartitionedTable(table, read, client, stated=stated, twice=True, persons=persons) as cells:
        facts = cells.load(table.n_samples, 8 * (read.width + 1)).facts
        if client is None:
            same = replace(X if isinstance(X, Table) else table, source=Same(cells.stream, facts.n_samples), steps=())
            again: Callable[[], Any] = lambda: same  # noqa: E731
        else:
            again = partial(_again_on_workers, X, y, read, cells.engine.secret, cells.loaded)
        yield LoadedCells(cells.cells(target), replace(facts.partitions, bytes_per_pass=None), facts.classes, again)


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
        self.first_reads = getattr(source, "first_reads", 1)

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


@dataclass(frozen=True, repr=False)
class SameParts:
    """Pass a partition on if its cells and targets are those of the first reading; its ``repr`` has no key, for Dask logs it.

    Parameters
    ----------
    read : OnWorker
        Reads the cells.
    secret : bytes
        Key of the fingerprints.
    """

    read: OnWorker
    secret: bytes

    def __call__(self, X: Any, *others: Any) -> Any:
        """Return X, or raise SourceError; ``others`` are its targets, if they are read, and the first fingerprint."""
        from skdp.privacy.engines.dask import load

        *targets, digest = others
        found = load(self.read, self.secret, X, *(targets or [X]))
        if isinstance(found, Failure) or found[1].digest != digest:
            raise SourceError(CHANGED)
        return X


def _again_on_workers(X: Any, y: Any, read: CellReader, secret: bytes, loaded: list[Any]) -> Any:
    beside = None if read.check_target is None else y
    return checked_parts(X, beside, SameParts(OnWorker(read), secret), (part.digest for part in loaded))


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

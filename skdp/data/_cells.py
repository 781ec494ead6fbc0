"""Read the cells of a table in partitions, behind an engine that counts them where they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from skdp._data_validation import Partitions, len_of, quoting_no_data
from skdp.data._dask import DaskParts, current_client, is_dask
from skdp.data._table import Table
from skdp.preprocessing._frame_facts import FrameFacts, finite_targets
from skdp.privacy.data.partition import Chunk, Failure, chunks_of
from skdp.privacy.data.partitioned_rows import PartitionedCells
from skdp.privacy.data.summation import chunk_rows
from skdp.privacy.engines.threads import ThreadEngine
from skdp.privacy.errors import SourceError

__all__ = ["LoadedCells", "TypedColumns", "loaded_cells", "typed_columns"]

UNKNOWN = 2  # records of a table of which their number is not known, until it is read
OTHER_COLUMNS = "The partitions have different columns; expected the same, in the same order, in all of them."


@dataclass(frozen=True)
class TypedColumns:
    """Hold the public names and types of the columns of a table that is not read, as `FrameFacts.of` takes a frame.

    Parameters
    ----------
    types : dict
        The type of each column, by name.
    shape : tuple of int
        Numbers of records and of columns.
    known : bool
        Whether the number of records is known.
    """

    types: dict[str, Any]
    shape: tuple[int, int]
    known: bool

    @property
    def columns(self) -> list[str]:
        """The names."""
        return list(self.types)

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(dtype=self.types[name])


@dataclass(frozen=True)
class LoadedCells:
    """Hold the cells of a table that was read, and what is public about it.

    Parameters
    ----------
    rows : PartitionedCells
        The cells, for the oracle.
    partitions : Partitions
        Where they are.
    """

    rows: PartitionedCells
    partitions: Partitions


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
def loaded_cells(X: Any, y: Any, facts: FrameFacts, target: bool) -> Iterator[LoadedCells]:
    """Read a table once, and keep the cells of its columns that are learnt until the context is left.

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

    Yields
    ------
    LoadedCells
        The cells.
    """
    if not is_dask(X) and y is not None:
        raise TypeError("y is given beside a table in partitions, which names its own target; expected fit(table).")
    read = CellReader(facts, target)
    client = current_client() if is_dask(X) else None
    table = Table(DaskParts(X, X if y is None or not target else y)) if is_dask(X) else X
    engine = _of_threads(table, read) if client is None else _of_workers(client, table, read)
    try:
        loaded = engine.load(*([8 * (read.width + 1), table.n_samples] if client is None else []))
        n_samples = sum(part.n_rows for part in loaded)
        if n_samples < 2:
            raise ValueError(f"X has {n_samples} records; expected at least 2.")
        if table.n_samples not in (None, n_samples):
            raise SourceError("The source has another number of records than before: it has changed. Nothing was charged.")
        kept = "a private file" if table.cache else None
        n_workers = None if client is None else engine.n_workers
        place = kept if client is None else f"the memory of {n_workers} Dask workers"
        partitions = Partitions(table.source.description, len(loaded), None, place, n_workers)
        yield LoadedCells(PartitionedCells(engine, loaded, target), partitions)
    finally:
        engine.close()


@dataclass(frozen=True)
class CellReader:
    """Read the cells of a batch, each by itself and by the types of the table, whatever those of the batch are.

    Parameters
    ----------
    facts : FrameFacts
        Which columns are read, and how.
    target : bool
        Whether the targets are numbers to count.
    """

    facts: FrameFacts
    target: bool

    @property
    def width(self) -> int:
        """Number of columns of cells."""
        return sum(1 + (text is None) for text in self.facts.are_text.values())

    def __call__(self, X: Any, y: Any) -> Chunk:
        """Return the cells, and the targets or zeros."""
        if list(getattr(X, "columns", ())) != list(self.facts.names):
            raise ValueError(OTHER_COLUMNS)
        cells = quoting_no_data(X, lambda: self.facts.cells(X))
        return Chunk(cells, finite_targets(y, len(cells)) if self.target else np.zeros(len(cells)))


@dataclass(frozen=True)
class OnWorker:
    """Read the cells of a partition on a worker; the text of a failure quotes no data.

    Parameters
    ----------
    read : CellReader
        Reads a batch.
    """

    read: CellReader

    def __call__(self, X: Any, y: Any) -> "tuple[Chunk, None] | Failure":
        """Return the cells, or a failure."""
        if self.read.target and len_of(X) != len_of(y):
            return Failure(
                ValueError, "A partition of X and that of y have different lengths; expected the same partitions in both."
            )
        if not len_of(X):
            return Chunk(np.empty((0, self.read.width)), np.empty(0)), None
        try:
            return self.read(X, y), None
        except (TypeError, ValueError) as error:
            if type(error) not in (TypeError, ValueError):  # such as UnicodeDecodeError, which quotes what it cannot read
                raise
            return Failure(type(error), str(error))


def _of_threads(table: Table, read: CellReader) -> Any:
    def stream() -> Iterator[Chunk]:
        yield from chunks_of((read(X, y) for X, y in table.batches()), chunk_rows(read.width))

    return ThreadEngine(stream, table.cache is not None)


def _of_workers(client: Any, table: Table, read: CellReader) -> Any:
    from skdp.privacy.engines.dask import DaskEngine

    return DaskEngine(client, table.source.parts, OnWorker(read))  # type: ignore[attr-defined]


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
    return TypedColumns(types, (UNKNOWN if n_samples is None else n_samples, len(types)), n_samples is not None)

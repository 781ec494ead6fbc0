"""Read a table in partitions: check it part by part, in this process or on a cluster, and keep the parts for the oracle.

One *reader* checks a batch of a table, a partition of a Dask collection, and a whole table in memory: a function of X and y that
returns a `Part`. All that is public follows from the facts of the parts.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, cast

import numpy as np
from scipy import sparse

from skdp._data_validation import DTYPES, Facts, Part, Partitions, check_label_set, len_of
from skdp._label_types import dtype_of_labels, numbered, refuse_mixed_labels, sorted_labels
from skdp._persons import LENGTHS, without_number
from skdp.data._table import Table, check_number
from skdp.privacy.data.partition import CHANGED, DIGEST_BYTES, Chunk, Failure, chunks_of, in_storage, restored
from skdp.privacy.data.partitioned_rows import PartitionedCells, PartitionedRows
from skdp.privacy.data.persons import SomeRows
from skdp.privacy.data.summation import chunk_rows
from skdp.privacy.engines.threads import ThreadEngine
from skdp.privacy.errors import SourceError

Reader = Callable[[Any, Any], Part]

OTHER_COLUMNS = "The partitions have different columns; expected the same, in the same order, in all of them."
TOO_MANY = "y has too many labels for a table in partitions; expected fewer, or a regression for a y of numbers."
CODES = np.int16  # of labels that are read from a table: 32 767 of them


class PartitionedTable:
    """A checked table in partitions; closes its engine when it is left.

    Parameters
    ----------
    table : Table
        The table.
    read : callable
        Checks a part of it.
    client : distributed.Client or None, default=None
        Client of the cluster that reads a Dask collection; None for threads of this process.
    stated : bool, default=False
        Whether the user states the labels.
    groups : GroupColumn or None, default=None
        Numbers the public groups of the records.
    twice : bool, default=False
        Whether the source is read again, for another purpose, and must be the same.
    persons : SomeRows or None, default=None
        Weights of all rows, if persons are protected. The number of rows, and all that follows from it, is then private.

    Attributes
    ----------
    facts : Facts
        What is public, once it was read.
    given : tuple
        Stands for X and y as given to ``fit``.
    """

    given = (None, None)
    facts: Facts
    loaded: list[Any]
    _lookups: list[np.ndarray | None]
    _groups: list[np.ndarray | None] | None

    def __init__(
        self,
        table: Table,
        read: Reader,
        client: Any = None,
        *,
        stated: bool = False,
        groups: Any = None,
        twice: bool = False,
        persons: SomeRows | None = None,
    ) -> None:
        self.table, self._stated, self._persons = table, stated, persons
        self.stream = Stream(table, read, stated, groups, twice, persons is not None)
        self._of_workers, source = client is not None, cast(Any, table.source)
        self.engine: Any
        if client is None:
            self.engine, self._n_parts = ThreadEngine(self.stream.chunks, table.cache is not None), None
            if table.n_samples is not None and table.shape[1] is not None:
                self._n_parts = number_of_chunks(table.n_samples, table.shape[1])
        else:
            from skdp.privacy.engines.dask import DaskEngine

            self.engine, self._n_parts = DaskEngine(client, source.parts, OnWorker(read, persons is not None)), len(source.parts)

    def __enter__(self) -> "PartitionedTable":
        return self

    def __exit__(self, *exception: object) -> None:
        self.engine.close()

    def load(self, known: int | None, row_bytes: int | None, progress: Callable[[str, int | None], Any] | None = None) -> Any:
        """Read the table once, keep its parts, and set the facts; close the engine if that fails.

        Parameters
        ----------
        known : int or None
            Number of records that the reader was made for, if it is known.
        row_bytes : int or None
            Bytes of a kept row, if they are known.
        progress : callable or None, default=None
            Returns what is called after each partition of a pass, from a verb and the number of partitions.

        Returns
        -------
        PartitionedTable
            The table.
        """
        table, engine = self.table, self.engine
        try:
            if progress is not None:
                engine.on_partition = progress("read", self._n_parts)
            known_size = () if self._of_workers or self._persons is not None else (row_bytes, table.n_samples)
            self.loaded = loaded = engine.load(*known_size)
            if progress is not None:
                engine.on_partition = progress("summed", len(loaded))
            n_samples = sum(part.n_rows for part in loaded) if self._persons is None else self._persons.n_persons
            if n_samples < 2:
                raise ValueError(f"Found array with {n_samples} sample(s) while a minimum of 2 is required.")
            facts, self._lookups, self._groups = self._of_cluster() if self._of_workers else self.stream.found(len(loaded))
            if self._persons is not None and self._persons.n_rows != sum(part.n_rows for part in loaded):
                raise ValueError(LENGTHS)
            check_number(known, n_samples)
            facts = replace(facts, n_samples=n_samples)
            n_workers = engine.n_workers if self._of_workers else None
            number = len(loaded) if self._persons is None else None
            self.facts = replace(facts, partitions=public_partitions(table, facts, number, n_workers))
        except BaseException:
            engine.close()
            raise
        return self

    def rows(self, bounds: dict[str, Any]) -> PartitionedRows:
        """Return the rows for the oracle.

        Parameters
        ----------
        bounds : dict
            Public constants of `TrainingData`.

        Returns
        -------
        PartitionedRows
            The records, clipped.
        """
        return PartitionedRows(self.engine, self.loaded, self._lookups, bounds, self._groups, self._persons)

    def cells(self, target: bool) -> PartitionedCells:
        """Return the records as cells that are counted, with targets that are counted, too, if these are numbers."""
        return PartitionedCells(self.engine, self.loaded, target, self._persons)

    def _of_cluster(self) -> tuple[Facts, list[np.ndarray | None], None]:
        """Return the facts of what the workers have read, and the class number of each label of each partition."""
        known = [part.public for part in self.loaded if part.n_rows]
        facts, nothing = reduce(agreed, known), list[np.ndarray | None]([None]) * len(self.loaded)
        if len({part.storage for part in known}) > 1:  # by a transformer, which may choose by the records of each
            failure = self.engine.change(restored, (facts.storage == "dense",), [()] * len(self.loaded))
            if failure is not None:
                failure.raised()
        if facts.classes is None:
            return facts, nothing, None
        labels = labels_of({label for part in known for label in part.labels}, self.table, facts, self._stated)
        lookups = [np.searchsorted(labels, part.public.labels) if part.n_rows else None for part in self.loaded]
        return replace(facts, classes=labels), lookups, None


class Stream:
    """The checked records of a table, cut into chunks, and what is public about all of them; both depend on no batch.

    Parameters
    ----------
    table : Table
        The table.
    read : callable
        Checks a part of it.
    stated : bool, default=False
        Whether the user states the labels.
    groups : GroupColumn or None, default=None
        Numbers the public groups of the records.
    twice : bool, default=False
        Whether to compare a fingerprint of all that a pass reads with that of the first pass.
    private : bool, default=False
        Whether the numbers of rows are private.
    """

    def __init__(
        self,
        table: Table,
        read: Reader,
        stated: bool = False,
        groups: Any = None,
        twice: bool = False,
        private: bool = False,
    ) -> None:
        self.table, self._read, self._stated, self._groups, self._private = table, read, stated, groups, private
        self._first: Facts | None = None
        self._known: dict[Any, int] = {}  # labels in the order in which they came
        self._secret, self._digest = secrets.token_bytes(32) if twice else None, b""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the records of a new pass over the table."""
        parts = (chunk for chunk, _ in self.parts() if len(chunk.y))
        if (first := next(parts, None)) is not None:
            yield from chunks_of(chain([first], parts), chunk_rows(first.X.shape[1]))

    def parts(self) -> Iterator[tuple[Chunk, tuple[Any, ...]]]:
        """Yield the checked records of each batch, and the batch; raise SourceError for other records than before."""
        prints = [] if self._secret is None else [hashlib.blake2b(key=self._secret, digest_size=DIGEST_BYTES) for _ in range(2)]
        for X, y, labels in self.table.grouped():
            with without_number(len_of(X) if self._private else None):
                part = stored_as(self._first, self._read(X, y))
            if self.table.dtype is not None and part.facts.extra.n_columns is None:
                part = part._replace(X=as_dtype(part.X, np.dtype(self.table.dtype)))
            self._first = agreed(self._first, part.facts)
            codes = part.y if part.facts.classes is None else self._numbers(part.facts.classes)[part.y]
            for fingerprint, array in zip(prints, (part.X, codes), strict=False):
                fingerprint.update(np.ascontiguousarray(array).data)
            groups = None if self._groups is None else self._groups.numbers(labels, len(codes))
            yield Chunk(part.X, codes, groups), (X, y) if labels is None else (X, y, labels)
        found = b"".join(fingerprint.digest() for fingerprint in prints)
        self._digest = self._digest or found
        if found != self._digest:
            raise SourceError(CHANGED)

    def found(self, number: int) -> tuple[Facts, list[np.ndarray | None], list[np.ndarray | None]]:
        """Return what is public once the table was read, and the class and group of each number of a label in each chunk."""
        assert self._first is not None
        facts, lookup, of_groups = self._first, None, None
        if facts.classes is not None:
            labels = labels_of(self._known, self.table, facts, self._stated)
            facts, lookup = replace(facts, classes=labels), np.searchsorted(labels, list(self._known))
        if self._groups is not None:
            facts, of_groups = replace(facts, extra=self._groups.public()), self._groups.lookup
        return facts, [lookup] * number, [of_groups] * number

    def _numbers(self, labels: np.ndarray) -> np.ndarray:
        numbers = numbered(labels, self._known)
        if len(self._known) > np.iinfo(CODES).max:
            raise ValueError(TOO_MANY)
        return numbers.astype(CODES)


@dataclass(frozen=True)
class OnWorker:
    """Read a partition on a worker; the text of a failure quotes no data.

    Parameters
    ----------
    read : callable
        Checks a part of a table.
    private : bool, default=False
        Whether the numbers of rows are private.
    """

    read: Reader
    private: bool = False

    def __call__(self, X: Any, y: Any) -> tuple[Chunk, Facts | None] | Failure:
        """Return the chunk and what is public about it, or a failure."""
        if len_of(X) != len_of(y):
            return Failure(
                ValueError, "A partition of X and that of y have different lengths; expected the same partitions in both."
            )
        if not len_of(X):
            return Chunk(np.empty((0, 0)), np.empty(0)), None
        try:
            with without_number(len_of(X) if self.private else None):
                part = stored_as(None, self.read(X, y))
            if len(part.facts.labels) > np.iinfo(CODES).max:
                raise ValueError(TOO_MANY)
        except (TypeError, ValueError) as error:
            if type(error) not in (TypeError, ValueError):  # such as UnicodeDecodeError, which quotes what it cannot read
                raise
            return Failure(type(error), str(error))
        return Chunk(part.X, part.y if part.facts.classes is None else part.y.astype(CODES)), part.facts


def number_of_chunks(n_samples: int, n_features: int) -> int:
    """Return the number of chunks of a table, each of which is a partition for threads."""
    return -(-n_samples // chunk_rows(n_features))


def stored_type(table: Table) -> np.dtype[Any] | None:
    """Return the type of the numbers of X as they are kept; None if it is not known before the table is read."""
    stated = table.dtype or (None if table.steps else getattr(table.source, "dtype", None))
    return None if stated is None else np.dtype(stated) if np.dtype(stated) in DTYPES else np.dtype(np.float64)


def public_partitions(table: Table, facts: Facts, number: int | None, n_workers: int | None = None) -> Partitions:
    """Return the facts about partitions; a dtype that neither the user nor the source states may depend on the records."""
    kind, kept = stored_type(table), "a private file" if table.cache else None
    unknown = number is None or kind is None or facts.extra.n_columns is not None
    n_bytes = None if unknown else facts.n_samples * facts.n_features * cast(Any, kind).itemsize
    place = kept if n_workers is None else f"the memory of {n_workers} Dask workers"
    return Partitions(table.source.description, number, n_bytes, place, n_workers, getattr(table.source, "first_reads", 1))


def labels_of(known: Any, table: Table, facts: Facts, stated: bool) -> np.ndarray:
    """Return the label set, sorted, in a public dtype: that of stated classes, which is that of the first part, or of y."""
    assert facts.classes is not None
    first = facts.classes.dtype
    labels = sorted_labels(known, first if stated else dtype_of_labels(table.source, first))
    check_label_set(labels)
    return labels


def stored_as(first: Facts | None, part: Part) -> Part:
    """Return a part by rows, sparse if the first part is: a transformer may choose for each part by its records."""
    kind = (part.facts if first is None else first).storage
    dense = kind == "dense"
    return part._replace(facts=replace(part.facts, storage=kind if dense else "CSR"), X=in_storage(part.X, dense))


def as_dtype(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return numbers in the dtype of the table, also those that came as objects: one record decides whether a batch has any."""
    if X.dtype == dtype:
        return X
    with np.errstate(all="ignore"):
        X = X.astype(dtype)
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError(f"Input X contains infinity or a value too large for {dtype!r}.")
    return X


def agreed(first: Facts | None, part: Facts) -> Facts:
    """Return the facts that all parts have in common, or raise ValueError; no message says which part differs."""
    if first is None:
        return part
    names, other = ([] if facts.feature_names is None else list(facts.feature_names) for facts in (first, part))
    if names != other or first.n_features != part.n_features:
        raise ValueError(OTHER_COLUMNS)
    refuse_mixed_labels(facts.classes for facts in (first, part) if facts.classes is not None)
    return first if first.classes is None or first.classes.size else part

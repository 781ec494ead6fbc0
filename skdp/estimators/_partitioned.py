"""Read a table in partitions: its public facts, and its records behind an engine that works on them."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy import sparse

from skdp._data_validation import DTYPES, Facts, Part, Partitions, check_label_set
from skdp._label_types import dtype_of_labels, numbered, refuse_mixed_labels, sorted_labels
from skdp._progress import PartitionProgress, asks_for_data, tells_partitions
from skdp._table_types import is_dask
from skdp.data import Table
from skdp.data._dask import current_client, table_of
from skdp.data._on_worker import OnWorker
from skdp.data._table import check_number
from skdp.estimators._group_labels import GroupColumn
from skdp.estimators._needs_memory import refuse_partitions
from skdp.privacy.data.partition import Chunk, chunks_of, in_storage, restored
from skdp.privacy.data.partitioned_rows import PartitionedRows
from skdp.privacy.data.summation import chunk_rows
from skdp.privacy.engines.threads import ThreadEngine

__all__ = ["PartitionedTable", "planned_partitions", "read_partitions"]

# Numbers of records and of columns for which a plan asks whether a solver takes partitions, where the source does not tell them.
USUAL = 2**20, 20
TOO_MANY = "y has too many labels for a table in partitions; expected fewer, or a regression for a y of numbers."
CODES = np.int16  # of labels that are read from a table: 32 767 of them


class PartitionedTable:
    """A checked training table in partitions; closes its engine when it is left.

    Parameters
    ----------
    facts : Facts
        What is public.
    engine : Engine
        Holds the records.
    loaded : list of Loaded
        What is known of each partition.
    lookups : list of (ndarray or None)
        The class number of each label of a partition.
    given : tuple
        The table as given to ``fit``, if callbacks ask for it.
    groups : list of (ndarray or None) or None, default=None
        The number of each group of a partition; None without groups.
    """

    def __init__(
        self, facts: Facts, engine: Any, loaded: list[Any], lookups: list[Any], given: tuple[Any, Any], groups: Any = None
    ) -> None:
        self.facts, self.given, self._engine, self._loaded = facts, given, engine, loaded
        self._lookups, self._groups = lookups, groups

    def __enter__(self) -> "PartitionedTable":
        return self

    def __exit__(self, *exception: object) -> None:
        self._engine.close()

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
        return PartitionedRows(self._engine, self._loaded, self._lookups, bounds, self._groups)


def read_partitions(task: Any, X: Any, y: Any) -> PartitionedTable:
    """Check a training table in partitions, in one pass over the data; learn only what is public about it."""
    client = current_client() if is_dask(X) else None
    if is_dask(X):
        X = table_of(X, y)
    elif y is not None:
        raise TypeError(
            "y is given beside a table in partitions, which names its own target; expected fit(table) of the estimator or of a "
            "pipeline. Other estimators around it, such as VotingClassifier, need a table in memory."
        )
    if asks_for_data(task):
        raise TypeError("A callback asks for X and y; a table in partitions has none to give. Use callbacks that do not.")
    _refuse_early(task, X)
    reader = task.part_reader(X)
    if client is not None:
        return _read_on_cluster(task, X, reader, client)
    stream = Stream(X, reader, task.takes_groups, partial(_type_of_labels, task, X))
    engine = ThreadEngine(stream.chunks, X.cache is not None)
    try:
        if tells_partitions(task):
            engine.on_partition = PartitionProgress(task, "read", None if None in X.shape else number_of_chunks(*X.shape))
        kind = _stored(X)
        loaded = engine.load(None if kind is None or X.shape[1] is None else X.shape[1] * kind.itemsize, X.shape[0])
        if tells_partitions(task):
            engine.on_partition = PartitionProgress(task, "summed", len(loaded))
        facts = stream.facts(sum(part.n_rows for part in loaded))
        check_number(getattr(reader, "n_samples", None), facts.n_samples)  # the basis was planned for the number that was known
        facts = replace(facts, partitions=_public(X, facts, len(loaded)))
        lookups, groups = [stream.lookup] * len(loaded), [stream.group_lookup] * len(loaded)
        return PartitionedTable(facts, engine, loaded, lookups, (None, None), groups)
    except BaseException:
        engine.close()
        raise


def planned_partitions(table: Any, facts: Facts) -> Partitions | None:
    """Return what a fit of a table would state about its partitions; None for a table in memory."""
    if not isinstance(table, Table):
        return None
    return _public(table, facts, number_of_chunks(facts.n_samples, facts.n_features))


def number_of_chunks(n_samples: int, n_features: int) -> int:
    """Return the number of chunks of a table, each of which is a partition for threads."""
    return -(-n_samples // chunk_rows(n_features))


def _public(table: Table, facts: Facts, number: int) -> Partitions:
    """Return the facts about partitions; a dtype that neither the user nor the source states may depend on the records."""
    read = _stored(table)
    n_bytes = None if read is None or facts.extra.n_columns is not None else facts.n_samples * facts.n_features * read.itemsize
    return Partitions(table.source.description, number, n_bytes, "a private file" if table.cache else None)


def _type_of_labels(task: Any, table: Table, first: np.dtype[Any]) -> np.dtype[Any]:
    """Return the public dtype of the labels: that of stated classes, which is that of the first part, or of y."""
    reads = hasattr(task, "label_set") and task.label_set() is None
    return dtype_of_labels(table.source, first) if reads else first


def _read_on_cluster(task: Any, table: Table, reader: Callable[[Any, Any], Part], client: Any) -> PartitionedTable:
    """Read a Dask collection on the workers of a cluster."""
    from skdp.privacy.engines.dask import DaskEngine

    if task.takes_groups:
        raise TypeError(
            "Groups are taken from tables of skdp.data, such as skdp.data.parquet; expected one of these, or no groups."
        )
    engine = DaskEngine(client, table.source.parts, on_worker(reader))  # type: ignore[attr-defined]
    try:
        if tells_partitions(task):
            engine.on_partition = PartitionProgress(task, "read", len(table.source.parts))  # type: ignore[attr-defined]
        loaded = engine.load()
        if tells_partitions(task):
            engine.on_partition = PartitionProgress(task, "summed", len(loaded))
        known = [part.public for part in loaded if part.n_rows]
        n_samples = sum(part.n_rows for part in loaded)
        if n_samples < 2:
            raise ValueError(f"Found array with {n_samples} sample(s) while a minimum of 2 is required.")
        check_number(getattr(reader, "n_samples", None), n_samples)
        facts, labels = reduce(agreed, known), None
        if len({part.storage for part in known}) > 1:  # by a transformer, which may choose by the records of each
            failure = engine.change(restored, (facts.storage == "dense",), [()] * len(loaded))
            if failure is not None:
                failure.raised()
        lookups: list[np.ndarray | None] = [None] * len(loaded)
        if facts.classes is not None:
            found = set().union(*(part.classes.tolist() for part in known))
            labels = sorted_labels(found, _type_of_labels(task, table, facts.classes.dtype))
            check_label_set(labels)
            lookups = [np.searchsorted(labels, part.public.classes.tolist()) if part.n_rows else None for part in loaded]
        facts = replace(facts, n_samples=n_samples, classes=labels)
        place = f"the memory of {engine.n_workers} Dask workers"
        facts = replace(facts, partitions=replace(_public(table, facts, len(loaded)), kept=place, n_workers=engine.n_workers))
        return PartitionedTable(facts, engine, loaded, lookups, (None, None))
    except BaseException:
        engine.close()
        raise


def on_worker(read: Callable[[Any, Any], Part]) -> OnWorker:
    """Return what checks a partition on a worker by a function that checks a part of a table."""
    return OnWorker(partial(_chunk, read), (Chunk(np.empty((0, 0)), np.empty(0)), None))


def _chunk(read: Callable[[Any, Any], Part], X: Any, y: Any) -> tuple[Chunk, Facts]:
    """Return checked records and what is public about them."""
    part = stored_as(None, read(X, y))
    labels = part.facts.classes
    if labels is not None and labels.size > np.iinfo(CODES).max:
        raise ValueError(TOO_MANY)
    return Chunk(part.X, part.y if labels is None else part.y.astype(CODES)), part.facts


def _stored(table: Table) -> np.dtype[Any] | None:
    """Return the type of the numbers of X as they are kept; None if it is not known before the table is read."""
    stated = table.dtype or (None if table.steps else getattr(table.source, "dtype", None))
    return None if stated is None else np.dtype(stated) if np.dtype(stated) in DTYPES else np.dtype(np.float64)


class Stream:
    """The checked records of a table, cut into chunks, and what is public about all of them.

    Parameters
    ----------
    table : Table
        The table.
    read : callable
        Checks a part of it.
    grouped : bool, default=False
        Whether the records are in public groups.
    like : callable or None, default=None
        Maps the dtype of the labels of the first part to a public one; None takes the first.
    """

    def __init__(self, table: Table, read: Callable[[Any, Any], Part], grouped: bool = False, like: Any = None) -> None:
        self._table, self._read, self._like = table, read, like
        self._first: Facts | None = None
        self._known: dict[Any, int] = {}  # labels in the order in which they came
        self._groups = GroupColumn() if grouped else None

    def chunks(self) -> Iterator[Chunk]:
        """Yield the records of a new pass over the table."""
        parts = self._parts()
        first = next(parts, None)
        if first is None:
            return
        yield from chunks_of(_preceded(first, parts), chunk_rows(first.X.shape[1]))

    def facts(self, n_samples: int) -> Facts:
        """Return what is public about the table, once it was read."""
        if n_samples < 2 or self._first is None:
            raise ValueError(f"Found array with {n_samples} sample(s) while a minimum of 2 is required.")
        classes = None if self._first.classes is None else self._labels()
        extra = self._first.extra if self._groups is None else self._groups.public()
        return replace(self._first, n_samples=n_samples, classes=classes, extra=extra)

    @property
    def lookup(self) -> np.ndarray | None:
        """The class number of each label in the order in which they came; None for targets that are numbers."""
        if self._first is None or self._first.classes is None:
            return None
        return np.searchsorted(self._labels(), list(self._known))

    @property
    def group_lookup(self) -> np.ndarray | None:
        """The number of each group in the order in which they came; None without groups."""
        return None if self._groups is None else self._groups.lookup

    def _labels(self) -> np.ndarray:
        assert self._first is not None and self._first.classes is not None
        first = self._first.classes.dtype
        labels = sorted_labels(self._known, first if self._like is None else self._like(first))
        check_label_set(labels)
        return labels

    def _parts(self) -> Iterator[Chunk]:
        for X, y, labels in self._table.grouped():
            part = stored_as(self._first, self._read(X, y))
            if self._table.dtype is not None and part.facts.extra.n_columns is None:
                part = part._replace(X=as_dtype(part.X, np.dtype(self._table.dtype)))
            self._first = agreed(self._first, part.facts)
            codes = part.y if part.facts.classes is None else self._numbers(part.facts.classes)[part.y]
            groups = None if self._groups is None else self._groups.numbers(labels, len(codes))
            if len(codes):
                yield Chunk(part.X, codes, groups)

    def _numbers(self, labels: np.ndarray) -> np.ndarray:
        numbers = numbered(labels, self._known)
        if len(self._known) > np.iinfo(CODES).max:
            raise ValueError(TOO_MANY)
        return numbers.astype(CODES)


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
        raise ValueError("The partitions have different columns; expected the same, in the same order, in all of them.")
    refuse_mixed_labels(facts.classes for facts in (first, part) if facts.classes is not None)
    return first if first.classes is None or first.classes.size else part


def _refuse_early(task: Any, table: Table) -> None:
    """Refuse a solver that needs a table in memory before the table is read: that depends on no number of records or columns."""
    n_samples, n_features = table.shape
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the budget: the number of records may be another
            classes = task.planned_classes(None)[0]
            plan = task.plan_of(Facts(n_samples or USUAL[0], n_features or USUAL[1], classes=classes))
    except Exception:  # the plan of the table will say what is wrong
        return
    refuse_partitions(plan, task.kind, table.cache is not None)


def _preceded(first: Chunk, others: Iterator[Chunk]) -> Iterator[Chunk]:
    yield first
    yield from others

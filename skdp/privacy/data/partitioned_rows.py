"""Sum functions of the records of a table in partitions; what is un-noised stays with the oracle and the partitions."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from skdp.privacy.data.partition import Failure, SampleOf, binned, counted, grown, mapped, prepared, retargeted
from skdp.privacy.data.persons import SomeRows
from skdp.privacy.data.private_data import PrivateData, Sums
from skdp.privacy.data.summation import TreeSum, summation_error
from skdp.privacy.data.training_data import LastSum
from skdp.privacy.errors import SourceError


class Loaded(Protocol):
    """What the process of the fit knows about a partition.

    The numbers of rows are public, unless persons are protected; the fingerprint is keyed.
    """

    n_rows: int
    n_features: int
    n_chunks: int
    digest: bytes


class Engine(Protocol):
    """Hold the partitions of a table and work on them; two implementations, threads and Dask."""

    def change(self, work: Any, shared: tuple[Any, ...], each: Iterable[tuple[Any, ...]]) -> Failure | None:
        """Replace each partition by ``work(partition, *shared, *own)``."""
        ...

    def reduce(self, query: Sums | SampleOf, each: Iterable[tuple[int, bytes]]) -> TreeSum | Failure:
        """Return the sum over all partitions of ``partial_sum(partition, query, first, digest)``."""
        ...

    def close(self) -> None:
        """Let go of the partitions."""
        ...


class InPartitions(PrivateData):
    """Hold a table in partitions for the oracle; base of what queries of rows, and of cells, are asked.

    The chunks are public, and their sums are added by the tree that also adds the chunks of a table in memory. So a release has
    the same bits whoever sums which partition, and in which order they are done.

    Parameters
    ----------
    engine : Engine
        Holds the partitions.
    loaded : list of Loaded
        What is known of each partition.
    persons : SomeRows or None, default=None
        Weights of all rows, if persons are protected. A row has the weight that it has in memory.
    """

    def __init__(self, engine: Engine, loaded: list[Any], persons: SomeRows | None = None) -> None:
        self._engine, self.n_features = engine, max(part.n_features for part in loaded)  # 0 for a partition without records
        self.n_samples = sum(part.n_rows for part in loaded) if persons is None else persons.n_persons
        firsts = np.cumsum([0] + [part.n_chunks for part in loaded]).tolist()
        self._each = [(first, part.digest) for first, part in zip(firsts, loaded, strict=False)]
        self._last = LastSum()

    def reduced(self, query: Sums) -> np.ndarray:
        """Return the un-noised sum of a query over all records; the last one is kept for queries that ask for the same sum.

        Parameters
        ----------
        query : Sums
            A query of a sum.

        Returns
        -------
        ndarray
            What ``query.finish`` takes.
        """
        return self._last.of(query, lambda: self.summed(query))

    def close(self) -> None:
        """Let go of the partitions."""
        self._engine.close()

    def summed(self, query: Sums | SampleOf) -> np.ndarray:
        """Return the un-noised sum of a query over all records or over a sample, which no other query shares."""
        return self._done(lambda: self._engine.reduce(query, self._each)).total()

    def _change(self, work: Any, shared: tuple[Any, ...], each: list[tuple[Any, ...]]) -> None:
        self._done(lambda: self._engine.change(work, shared, each))

    def _done(self, work: Callable[[], Any]) -> Any:
        """Return the result of a pass of the engine; raise, and keep, what ended it."""
        try:
            result = work()
            if isinstance(result, Failure):
                result.raised()
        except SourceError as error:
            self.failure = error
            raise
        return result


class PartitionedRows(InPartitions):
    """Hold the rows of a table in partitions for the oracle, as `TrainingData` does for a table in memory.

    Each partition is a `TrainingData` per chunk.

    Parameters
    ----------
    engine : Engine
        Holds the partitions.
    loaded : list of Loaded
        What is known of each partition.
    lookups : list of (ndarray or None)
        The class number of each label of a partition; None for targets that are numbers.
    bounds : dict
        Public constants of `TrainingData`.
    groups : list of (ndarray or None) or None, default=None
        The number of each group of a partition; None without groups.
    persons : SomeRows or None, default=None
        Weights of all rows, if persons are protected.
    """

    def __init__(
        self,
        engine: Engine,
        loaded: list[Any],
        lookups: list[np.ndarray | None],
        bounds: dict[str, Any],
        groups: list[np.ndarray | None] | None = None,
        persons: SomeRows | None = None,
    ) -> None:
        super().__init__(engine, loaded, persons)
        self._change(
            prepared, (bounds,), list(zip(lookups, groups or [None] * len(loaded), _weights(persons, loaded), strict=True))
        )

    @property
    def summation_error(self) -> float:
        """Bound on the float64 error of a sum over the rows, relative to the largest norm of a term."""
        return summation_error(self.n_samples, False)

    def sampled(self, key: bytes, rate: float) -> "PartitionedSample":
        """Return the Poisson sample of a key, as `TrainingData.sampled` does; nothing is drawn yet.

        Parameters
        ----------
        key : bytes
            32 secret random bytes, drawn for one release; only the sample keeps them.
        rate : float
            Probability in (0, 1].

        Returns
        -------
        PartitionedSample
            The sample.
        """
        return PartitionedSample(self, key, rate)

    def mapped(self, matrix: Any) -> "PartitionedRows":
        """Map the rows in place, as `TrainingData.mapped` does."""
        self._change(mapped, (matrix,), [() for _ in self._each])
        self.n_features, self._last = matrix.shape[1], LastSum()
        return self

    def retargeted(self, function: Callable[..., np.ndarray]) -> "PartitionedRows":
        """Map the targets in place, as `TrainingData.retargeted` does."""
        self._change(retargeted, (function,), [() for _ in self._each])
        self._last = LastSum()
        return self

    def binned(self, bins_of: Callable[[Any], np.ndarray], coef: np.ndarray) -> "PartitionedRows":
        """Bin the records in place, as `TrainingData.binned` does."""
        self._change(binned, (bins_of, coef), [() for _ in self._each])
        self._last = LastSum()
        return self

    def grown(self, *tree: Any) -> "PartitionedRows":
        """Add a tree to the scores in place, as `BinnedRecords.grown` does."""
        self._change(grown, tree, [() for _ in self._each])
        return self


class PartitionedCells(InPartitions):
    """Hold the cells of a table in partitions for the oracle, as `ColumnCells` does for a table in memory.

    Parameters
    ----------
    engine : Engine
        Holds the partitions.
    loaded : list of Loaded
        What is known of each partition.
    target : bool
        Whether the targets are numbers that queries count.
    persons : SomeRows or None, default=None
        Weights of all rows, if persons are protected.
    """

    summation_error: ClassVar[float] = 0.0  # sums of integers below 2**53, or of multiples of 2**-22 below 2**31, are exact

    def __init__(self, engine: Engine, loaded: list[Any], target: bool, persons: SomeRows | None = None) -> None:
        super().__init__(engine, loaded, persons)
        self._change(counted, (target,), [(own,) for own in _weights(persons, loaded)])


def _weights(persons: SomeRows | None, loaded: list[Any]) -> list[SomeRows | None]:
    """Return the weights of the rows of each partition; None where each row is a record."""
    ends = np.cumsum([0] + [part.n_rows for part in loaded]).tolist()
    return [None if persons is None else persons.part(slice(*own)) for own in pairwise(ends)]


class PartitionedSample(PrivateData):
    """Hold a Poisson sample of the rows of a table in partitions for one release: its key, not its records.

    Parameters
    ----------
    rows : PartitionedRows
        All rows.
    key : bytes
        32 secret random bytes. A partition draws its part of the sample from them, the same one whenever it is asked.
    rate : float
        Probability that a record enters.
    """

    def __init__(self, rows: PartitionedRows, key: bytes, rate: float) -> None:
        self.n_samples, self.n_features = rows.n_samples, rows.n_features
        self._rows, self._key, self._rate = rows, key, rate

    @property
    def summation_error(self) -> float:
        """Bound on the float64 error of a sum over the rows, relative to the largest norm of a term."""
        return self._rows.summation_error

    def reduced(self, query: Sums) -> np.ndarray:
        """Return the un-noised sum of a query over the sample, as `TrainingData.reduced` does."""
        return self._rows.summed(SampleOf(query, self._key, self._rate))

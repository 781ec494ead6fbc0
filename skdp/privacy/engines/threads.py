"""Work on the partitions of a table by threads of this process, which read a private file by its memory map."""

import secrets
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from skdp.privacy.data.partition import CHANGED, Chunk, Failure, Partition, SampleOf, guarded, partial_sum
from skdp.privacy.data.private_data import Sums
from skdp.privacy.data.spill import Spill
from skdp.privacy.data.summation import TreeSum
from skdp.privacy.engines.in_threads import in_order
from skdp.privacy.errors import SourceError, after_charge


@dataclass(frozen=True)
class LoadedChunk:
    """What is known of a chunk after it was read."""

    n_rows: int
    n_features: int
    digest: bytes
    n_chunks: int = 1


class Successor:
    """A private file for what a change makes anew, which is made when it is needed; several threads write to it."""

    def __init__(self) -> None:
        self.spill: Spill | None = None
        self._lock = Lock()

    def keep(self, chunk: Chunk) -> tuple[Chunk, Callable[[str, np.ndarray], np.ndarray]]:
        """Write a chunk to the file, as `Spill.keep` does."""
        with self._lock:
            self.spill = self.spill or Spill()
            return self.spill.keep(chunk)


class ThreadEngine:
    """Hold a stream of chunks, each of which is a partition.

    Parameters
    ----------
    read : callable
        Returns a new iterator over the chunks of the table, checked.
    kept : bool
        Whether the chunks are kept in a private file. If not, each pass reads the source again, and compares fingerprints.

    Attributes
    ----------
    on_partition : callable or None
        Called with the number of partitions that a pass has done, after each of them.
    """

    on_partition: Callable[[int], object] | None = None

    def __init__(self, read: Callable[[], Iterator[Chunk]], kept: bool) -> None:
        self._read, self._spill, self._secret = read, Spill() if kept else None, secrets.token_bytes(32)
        self._partitions: list[Partition] = []
        self._changes: list[tuple[Any, tuple[Any, ...], list[tuple[Any, ...]]]] = []
        self._blas = ThreadpoolController()
        self._n_threads = cpu_count()  # asked once: the answer reads files of the system
        self._pool = ThreadPoolExecutor(self._n_threads, thread_name_prefix="skdp")

    def load(self, row_bytes: int | None = None, n_samples: int | None = None) -> list[LoadedChunk]:
        """Read the source once, and keep its chunks; a copy that finds no space is refused before, if its size is known."""
        loaded = []
        if self._spill is not None and row_bytes is not None and n_samples is not None:
            self._spill.check_space(n_samples, row_bytes)
        for chunk in self._read():
            digest = chunk.digest(self._secret) if self._spill is None else b""
            loaded.append(LoadedChunk(len(chunk.y), chunk.X.shape[1], digest))
            if self._spill is not None:
                chunk, keep = self._spill.keep(chunk)
                self._partitions.append(Partition((chunk,), b"", keep=keep))
            self._tell(len(loaded))
        return loaded

    def change(self, work: Any, shared: tuple[Any, ...], each: list[tuple[Any, ...]]) -> Failure | None:
        """Replace each partition by ``work(partition, *shared, *own)``; without a kept copy, from the next pass on."""
        if self._spill is None:
            self._changes.append((work, shared, each))
            return None
        later, pairs = Successor(), zip(self._partitions, each, strict=True)
        changed = list(self._done((work, replace(partition, store=later.keep), *shared, *own) for partition, own in pairs))
        failures = [result for result in changed if isinstance(result, Failure)]
        if not failures:
            self._partitions = [replace(partition, store=None) for partition in changed]
            if later.spill is not None:
                self._spill.close()
                self._spill = later.spill
        return failures[0] if failures else None

    def reduce(self, query: Sums | SampleOf, each: list[tuple[int, bytes]]) -> TreeSum | Failure:
        """Return the sum of a query over all partitions, in their order."""
        total = TreeSum(1)
        tasks = ((self._summed, place, partition, query, *own) for place, (partition, own) in enumerate(self._with(each)))
        with closing(self._done(tasks)) as results:  # an interrupt must not leave the limit of BLAS threads behind
            for done, result in enumerate(results, start=1):
                if isinstance(result, Failure):
                    return result
                total.extend(result)
                self._tell(done)
        return total

    def close(self) -> None:
        """Stop the threads, and free the file."""
        self._pool.shutdown(cancel_futures=True)
        self._partitions, self._changes = [], []
        if self._spill is not None:
            self._spill.close()

    def _tell(self, done: int) -> None:
        if self.on_partition is not None:
            self.on_partition(done)

    def _with(self, each: list[tuple[int, bytes]]) -> Iterator[tuple[Partition, tuple[int, bytes]]]:
        """Yield each partition, kept or read again, with what is known of it; refuse a source of another length."""
        if self._spill is not None:
            yield from zip(self._partitions, each, strict=True)
            return
        chunks = self._read_again()
        for own in each:
            chunk = next(chunks, None)
            if chunk is None:
                raise SourceError(CHANGED)
            yield Partition((chunk,), chunk.digest(self._secret)), own
        if next(chunks, None) is not None:
            raise SourceError(CHANGED)

    def _read_again(self) -> Iterator[Chunk]:
        try:
            yield from self._read()
        except SourceError as error:
            raise after_charge(error) from None
        except MemoryError:
            raise
        except Exception:  # the checks refuse what they passed when it was read first
            raise SourceError(CHANGED) from None

    def _summed(self, place: int, partition: Partition, query: Sums | SampleOf, first: int, digest: bytes) -> TreeSum:
        if partition.digest != digest:
            raise SourceError(CHANGED)
        for work, shared, each in self._changes:
            partition = work(partition, *shared, *each[place])
        return partial_sum(partition, query, first, digest)

    def _done(self, tasks: Iterable[tuple[Any, ...]]) -> Generator[Any, None, None]:
        """Yield the results of tasks in order; a few of them are under way at a time."""
        with self._blas.limit(limits=1, user_api="blas"):  # threads of their own would compete with these
            yield from in_order(self._pool, self._n_threads, guarded, tasks)

"""Work on the partitions of a table by the workers of a Dask cluster; noise, budget and ledger stay in the process of the fit.

Each task is a pure function of a partition, a query and public facts, so it may run several times. A future is an argument of
the tasks that follow, once, so no failure of a worker can add a partition twice. Nothing is scattered: what a lost worker held
is computed again from the graph of the user.
"""

import contextlib
import hashlib
import platform
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from operator import itemgetter
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import ThreadpoolController

from skdp.privacy.data.partition import DIGEST_BYTES, Failure, Partition, chunks_of, guarded, joined, partial_sum
from skdp.privacy.data.private_data import Sums
from skdp.privacy.data.summation import FAN_IN, TreeSum, chunk_rows
from skdp.privacy.errors import SourceError, after_charge

KEY = "skdp"  # beginning of the keys of all tasks of a fit
LOOK, PATIENCE = 2.0, 120.0  # seconds between two looks at the workers, and without one that works, at most; choices
KILLED = (
    "A partition ended several workers, usually because it needs more memory than a worker has; smaller partitions need less."
)
NO_WORKER = (
    "For {:.0f} s, the Dask cluster had no worker that takes tasks: they ended, or are paused as their memory is full. Usually "
    "a partition needs more memory than a worker has; smaller partitions need less. Where workers take longer to come back, "
    "dask.config.set({{'distributed.scheduler.no-workers-timeout': '1h'}}) makes the fit wait."
)
LOST = (
    "The Dask cluster did not finish its work: a task of the collection failed, or the cluster is gone. The logs of the workers "
    "show more."
)
MIXED = (
    "The workers differ in their processors or in their versions of {what}, and so would round differently; expected workers "
    "that are all alike."
)


@dataclass(frozen=True)
class LoadedPartition:
    """What the process of the fit knows about a partition.

    Parameters
    ----------
    n_rows, n_features, n_chunks : int
        Public sizes.
    digest : bytes
        Fingerprint of the records and of the label set, keyed with a secret of the fit.
    public : object
        Further public facts, for the reader of the table.
    """

    n_rows: int
    n_features: int
    n_chunks: int
    digest: bytes
    public: Any


class DaskEngine:
    """Hold the partitions of a Dask collection in the memory of the workers.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    parts : list of (delayed, delayed)
        X and y of each partition.
    read : callable
        Maps X and y of a partition to its checked records, a `Chunk`, and further public facts; or returns a `Failure`.

    Attributes
    ----------
    on_partition : callable or None
        Called with the number of partitions that a pass has done, after each of them.
    secret : bytes
        Key of the fingerprints of partitions.

    Raises
    ------
    SourceError
        If the workers are not alike.
    """

    on_partition: Callable[[int], object] | None = None

    def __init__(self, client: Any, parts: list[tuple[Any, Any]], read: Callable[[Any, Any], Any]) -> None:
        self._client, self._parts, self._read = client, parts, read
        self._name, self._passes, self.secret = f"{KEY}-{secrets.token_hex(8)}", 0, secrets.token_bytes(32)
        self._partitions: list[Any] = []
        self._under_way: list[Any] = []
        self._machine = self._machine_of_all()

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def load(self) -> list[LoadedPartition]:
        """Read the collection once, and keep its partitions on the workers."""
        self._passes += 1
        task = import_module("dask").delayed(on_worker, pure=False)
        tasks = [
            task(self._machine, load, self._read, self.secret, X, y, dask_key_name=self._key("read", place))
            for place, (X, y) in enumerate(self._parts)
        ]
        pairs = self._client.compute(tasks)  # no future has a key of the user's, whose own tasks must outlive the fit
        self._under_way += pairs
        self._partitions = [self._submit("part", place, itemgetter(0), pair) for place, pair in enumerate(pairs)]
        loaded = self._gathered([self._submit("facts", place, itemgetter(1), pair) for place, pair in enumerate(pairs)])
        for part in loaded:
            if isinstance(part, Failure):
                part.raised()
        self._end()
        return loaded

    def change(self, work: Any, shared: tuple[Any, ...], each: Iterable[tuple[Any, ...]]) -> Failure | None:
        """Replace each partition by ``work(partition, *shared, *own)``."""
        self._passes += 1
        changed = [
            self._submit("part", place, work, partition, *shared, *own)
            for place, (partition, own) in enumerate(zip(self._partitions, each, strict=True))
        ]
        found = self._gathered([self._submit("check", place, failure_of, future) for place, future in enumerate(changed)])
        self._partitions = changed
        self._end()
        return next((failure for failure in found if failure is not None), None)

    def reduce(self, query: Sums, each: Iterable[tuple[int, bytes]]) -> TreeSum | Failure:
        """Return the sum of a query over all partitions, whose sums the workers join by 16 neighbours at a time."""
        self._passes += 1
        sums = [
            self._submit("sum", place, partial_sum, partition, query, *own)
            for place, (partition, own) in enumerate(zip(self._partitions, each, strict=True))
        ]
        level = 0
        while len(sums) > 1:
            level += 1
            groups = [sums[start : start + FAN_IN] for start in range(0, len(sums), FAN_IN)]
            sums = [self._submit(f"join{level}", place, joined, *group) for place, group in enumerate(groups)]
        try:
            (total,) = self._gathered(sums)
        except SourceError as error:  # only releases ask for sums, and they are paid for
            raise after_charge(error) from None
        self._end()
        return total

    def close(self) -> None:
        """Let go of all tasks of the fit: workers stop those that nobody wants, and free the partitions.

        `Client.cancel` of Dask breaks the connection of the user's client where a task of the fit is not wanted any more and one
        that follows from it still is.
        """
        futures, self._partitions, self._under_way = [*self._partitions, *self._under_way], [], []
        for future in futures:
            with contextlib.suppress(Exception):  # the client may be closed
                future.release()

    def _key(self, kind: str, place: int) -> str:
        return f"{self._name}-{self._passes}-{kind}-{place}"

    def _submit(self, kind: str, place: int, work: Callable[..., Any], *arguments: Any) -> Any:
        key = self._key(kind, place)
        future = self._client.submit(on_worker, self._machine, work, *arguments, key=key, pure=False)
        self._under_way.append(future)
        return future

    def _end(self) -> None:
        """Let go of all futures but those of the partitions; what they need to be computed again stays with the scheduler."""
        self._under_way = []

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """Return the results of tasks; the text of an error of the cluster or of the user's own tasks may quote data."""
        distributed, text = import_module("distributed"), LOST
        with self._watched(futures) as left:
            try:
                if self.on_partition is not None and len(futures) > 1:
                    for done, _ in enumerate(distributed.as_completed(futures), start=1):
                        self.on_partition(done)
                return list(self._client.gather(futures))
            except distributed.KilledWorker:
                text = KILLED
            except Exception:
                pass
        raise SourceError(NO_WORKER.format(_patience()) if left.is_set() else text)

    @contextlib.contextmanager
    def _watched(self, futures: list[Any]) -> Iterator[Event]:
        """Cancel tasks, and set the event, once no worker has taken tasks for a while: Dask would wait for workers for ever.

        A `LocalCluster` closes for good a worker whose process ended and is not there 15 s later, even if it ended twice.
        """
        left, done = Event(), Event()

        def watch() -> None:
            last = monotonic()
            while not done.wait(LOOK):
                with contextlib.suppress(Exception):  # no answer is no worker
                    last = monotonic() if self._has_worker() else last
                if monotonic() - last > _patience():
                    left.set()
                    with contextlib.suppress(Exception):
                        self._client.cancel(futures, force=True)
                    return

        thread = Thread(target=watch, name=f"{KEY}-watch", daemon=True)
        thread.start()
        try:
            yield left
        finally:
            done.set()

    def _has_worker(self) -> bool:
        """Return whether a worker takes tasks or is at one; a worker with full memory takes none until it has some again."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return any(
            worker.get("status", "running") == "running" or worker.get("metrics", {}).get("task_counts", {}).get("executing")
            for worker in workers
        )

    def _machine_of_all(self) -> tuple[str, ...]:
        """Return what decides how the workers round, or raise SourceError if it is not the same for all of them."""
        answers = list(self._client.run(machine, on_error="return").values())
        answers = [answer for answer in answers if not isinstance(answer, OSError)]  # of workers that are gone
        found = [answer for answer in answers if not isinstance(answer, BaseException)]
        if len(found) < max(1, len(answers)):
            raise SourceError(
                "There are workers that cannot import skdp, or none at all; expected the same packages on all of them."
            )
        for what, part in ("skdp", slice(1)), ("NumPy, SciPy, scikit-learn or BLAS", slice(1, None)):
            if len({answer[part] for answer in found}) > 1:
                raise SourceError(MIXED.format(what=what))
        if found[0][0] != (own := metadata.version("skdp")):
            raise SourceError(f"The workers have skdp {found[0][0]}; expected {own}, as in the process of the fit.")
        return found[0]


def _patience() -> float:
    """Return how many seconds a fit waits for workers: what the user tells Dask, or a default."""
    given = import_module("dask").config.get("distributed.scheduler.no-workers-timeout", None)
    return PATIENCE if given is None else float(import_module("dask.utils").parse_timedelta(given))


@cache
def machine() -> tuple[str, ...]:
    """Return what decides how this process rounds: the versions and the kinds of BLAS and of processor."""
    blas = sorted(
        "{internal_api} {version} {architecture}".format_map({"architecture": "", **info})
        for info in one_thread().controller.info()
        if info.get("user_api") == "blas"
    )
    return metadata.version("skdp"), np.__version__, scipy.__version__, sklearn.__version__, platform.machine(), *blas


class OneThread(contextlib.AbstractContextManager[None]):
    """Keep BLAS to one thread as long as any thread of the process is inside: its rounding may depend on their number."""

    def __init__(self) -> None:
        self.controller, self._lock, self._inside = ThreadpoolController(), Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = self.controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


@cache
def one_thread() -> OneThread:
    """Return the limit of this process, which several threads of a worker share."""
    return OneThread()


def on_worker(expected: tuple[str, ...], work: Callable[..., Any], *arguments: Any) -> Any:
    """Do the work of a task with one thread of BLAS; refuse it on a worker that joined later and rounds in another way."""
    if machine() != expected:
        return Failure(SourceError, MIXED.format(what="a package"))
    with one_thread():
        return guarded(work, *arguments)


def load(read: Callable[[Any, Any], Any], secret: bytes, X: Any, y: Any) -> Any:
    """Return a partition and what is known of it."""
    result = read(X, y)
    if isinstance(result, Failure):
        return result
    whole, public = result
    n_features = whole.X.shape[1]
    chunks = tuple(chunks_of([whole], chunk_rows(n_features)))
    labels = repr(getattr(public, "labels", None)).encode()  # which the numbers in y stand for
    digest = hashlib.blake2b(whole.digest(secret) + labels, key=secret, digest_size=DIGEST_BYTES).digest()
    return Partition(chunks, digest), LoadedPartition(len(whole.y), n_features, len(chunks), digest, public)


def failure_of(result: Any) -> None:
    """Return None for a partition; `guarded` passes a failure on."""
    return None

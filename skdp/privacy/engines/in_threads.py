"""Do tasks in threads, and yield their results in order."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from skdp.privacy.errors import silently


def thread_count() -> int:
    """Return the number of threads to work with: as many as BLAS has, which users limit, at most one per processor."""
    return min([cpu_count(), *(library["num_threads"] for library in _blas().info())])


def by_parts(function: Callable[[Any], Any], parts: Sequence[Any], n_threads: int) -> Iterator[Any]:
    """Yield what a function returns for each part, in order.

    Parameters
    ----------
    function : callable
        Works on a part. NumPy lets other threads run meanwhile.
    parts : sequence
        The parts.
    n_threads : int
        Number of threads; 1 works in the thread of the caller.

    Yields
    ------
    object
        What the function returns.
    """
    if n_threads == 1:
        yield from map(function, parts)
        return

    yield from in_order(_pool(os.getpid(), n_threads), n_threads, silently(function), ((part,) for part in parts))


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    """Return the threads of a process, which stay; a forked process has none of its parent's."""
    return ThreadPoolExecutor(n_threads)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def in_order(
    pool: Executor, n_ahead: int, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Generator[Any, None, None]:
    """Yield the results of tasks in order; a few of them are under way at a time.

    Parameters
    ----------
    pool : Executor
        Does the tasks.
    n_ahead : int
        Largest number of tasks that are under way, or done, beside the one that is waited for.
    function : callable
        Does a task.
    tasks : iterable of tuple
        Arguments of the function.

    Yields
    ------
    object
        What the function returns.
    """
    waiting: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(function, *task))
            if len(waiting) > n_ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()

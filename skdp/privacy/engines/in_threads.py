"""Do tasks in threads, and yield their results in order."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from typing import Any


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

"""Tasks in threads: their results keep the order, and a failure stops what waits."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from skdp.privacy.engines.in_threads import by_parts, in_order, thread_count


def test_results_come_in_order_and_few_tasks_are_taken_ahead():
    taken = []

    def tasks():
        for number in range(20):
            taken.append(number)
            yield (number,)

    def work(number):
        time.sleep(0.002 * (number % 3))
        return number

    with ThreadPoolExecutor(4) as pool:
        for done, result in enumerate(in_order(pool, 4, work, tasks())):
            assert result == done and len(taken) <= done + 5 + 1
    assert taken == list(range(20))


def test_a_failure_is_raised_and_the_rest_is_not_done():
    done = []

    def work(number):
        if number == 1:
            raise ValueError("one")
        time.sleep(0.05)
        done.append(number)

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="one"):
        list(in_order(pool, 3, work, ((number,) for number in range(50))))
    assert len(done) < 5


@pytest.mark.parametrize("n_parts, n_threads", ((0, 3), (1, 3), (7, 1), (7, 2), (100, 3)))
def test_parts_are_worked_on_by_a_number_of_threads(n_parts, n_threads):
    def work(part):
        return part, threading.get_ident()

    parts, threads = zip(*by_parts(work, range(n_parts), n_threads), strict=True) if n_parts else ((), ())
    assert parts == tuple(range(n_parts))
    assert len(set(threads)) <= n_threads and (threading.get_ident() in threads) == (n_threads == 1)


def test_floating_point_errors_in_threads_are_silent():
    """They would tell of a record; those of the caller's thread are its caller's."""
    with np.errstate(all="raise"):
        assert list(by_parts(lambda part: np.float64(part) / 0.0, [1, 2], 2)) == [np.inf, np.inf]


def test_a_failure_of_a_part_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(by_parts(lambda part: 1 / part, [1, 0, 2], 2))


def test_there_are_as_many_threads_as_blas_may_have():
    with threadpool_limits(1, user_api="blas"):
        assert thread_count() == 1
    assert 1 <= thread_count() <= cpu_count()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    assert list(by_parts(abs, [-1, -2], 2)) == [1, 2]
    child = os.fork()
    if child == 0:
        os._exit(list(by_parts(abs, [-3, -4], 2)) != [3, 4])
    assert os.waitpid(child, 0)[1] == 0

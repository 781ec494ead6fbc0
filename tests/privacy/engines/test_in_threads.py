"""Tasks in threads: their results keep the order, and a failure stops what waits."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from skdp.privacy.engines.in_threads import in_order


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

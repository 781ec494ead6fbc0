"""The ledger against kill -9, and against other processes."""

import multiprocessing
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from releases import witness_releases

from skdp import BudgetExceededError, DPLogisticRegression, LedgerError, PrivacyLedger, WeakPrivacyWarning
from skdp.solvers import GradientDescent

DELTA = 1e-6

X, y = np.random.default_rng(0).normal(size=(300, 3)), np.arange(300) % 2
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
context = multiprocessing.get_context(METHOD)
context.set_forkserver_preload(["skdp", "pytest"])


def fit_forever(address, releases, ready):
    witness_releases(releases)
    with PrivacyLedger(address):
        ready.release()
        while True:
            DPLogisticRegression(0.1, delta=DELTA, solver=GradientDescent(n_steps=20)).fit(X, y)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.slow
@pytest.mark.parametrize("n_kills", (10, pytest.param(50, marks=pytest.mark.exhaustive)))
def test_kill_at_random_moments_never_gives_anything_back(n_kills, address, tmp_path):
    """Kills during runs of fits: all releases are charged, and a charge beyond the ceiling is still refused."""
    releases, ready = tmp_path / "releases", context.Semaphore(0)
    PrivacyLedger(address, epsilon=20, delta=DELTA)
    releases.touch()
    moments = random.Random(0)
    for kills in range(5, n_kills + 1, 5):
        before = releases.stat().st_size
        processes = [context.Process(target=fit_forever, args=(address, str(releases), ready)) for _ in range(5)]
        for process in processes:
            process.start()
        for _ in processes:
            ready.acquire()
        while releases.stat().st_size < before + 5:  # so that a busy machine has fits to kill, too
            assert all(process.is_alive() for process in processes)
            time.sleep(0.001)
        for process in processes:
            time.sleep(moments.uniform(0, 0.05))
            process.kill()
        for process in processes:
            process.join()
            assert process.exitcode == -signal.SIGKILL
        released = releases.stat().st_size
        assert released <= len(PrivacyLedger(address).entries) <= released + kills  # one may die between charge and release
    assert released >= n_kills
    ledger = PrivacyLedger(address)
    with pytest.raises(BudgetExceededError) as caught, ledger, pytest.warns(WeakPrivacyWarning):
        DPLogisticRegression(20.0, delta=DELTA).fit(X, y)
    assert 0 < caught.value.epsilon_left < 20


def race(address, barrier, results):
    ledger = PrivacyLedger(address, epsilon=1.2, delta=DELTA)
    model = DPLogisticRegression(1.0, delta=DELTA, solver=GradientDescent(n_steps=2))
    barrier.wait()
    try:
        with ledger:
            model.fit(X, y)
        results.put("fitted")
    except BudgetExceededError:
        results.put("refused")


def test_of_four_processes_racing_for_the_last_epsilon_one_gets_it(address, tmp_path):
    """They also race to create the file."""
    barrier, results = context.Barrier(4), context.Queue()
    processes = [context.Process(target=race, args=(address, barrier, results)) for _ in range(4)]
    for process in processes:
        process.start()
    outcomes = sorted(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert outcomes == ["fitted", "refused", "refused", "refused"]
    ledger = PrivacyLedger(address)
    assert len(ledger.entries) == 1
    assert list(tmp_path.iterdir()) == ([ledger.path] if ledger.path else [])


@pytest.mark.slow
def test_an_interrupted_write_is_undone(tmp_path):
    """A journal that a killed writer left behind is rolled back, and a ledger whose making was killed does not exist."""
    ledger = PrivacyLedger(tmp_path / "study.sqlite", epsilon=1, delta=DELTA, adjacency="zero_out")
    ledger.add(0.1, note="whole")
    code = f"""
import os, signal
from skdp import PrivacyLedger
from skdp.privacy.ledger._sqlite import _Transaction
append = _Transaction.append
def killed(self, row, head):
    append(self, row, head)
    self._connection.execute("PRAGMA cache_spill = 1")
    os.kill(os.getpid(), signal.SIGKILL)
_Transaction.append = killed
PrivacyLedger({str(ledger.path)!r}).add(0.1, note="half")
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert [entry.spending.estimator for entry in ledger.entries] == ["whole"]
    ledger.add(0.1, note="after")
    assert len(ledger.entries) == 2
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(LedgerError, match="damaged or half-written"):
        PrivacyLedger(tmp_path / "empty.sqlite", epsilon=1, delta=DELTA)

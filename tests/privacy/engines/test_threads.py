"""Fits of one machine whose source fails, changes or is interrupted, and what is left of them."""

import os
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from saddles import Regression
from sklearn.base import clone

from skdp import DPMinimax, PrivacyLedger, SourceError
from skdp.data import chunks, npy
from skdp.estimators import DPLogisticRegression
from skdp.privacy.data import partition, summation
from skdp.privacy.data.partitioned_rows import PartitionedRows
from skdp.privacy.engines.threads import ThreadEngine
from skdp.solvers import SGDA
from skdp.testing import reproducible_noise

N, D, LENGTH = 20_000, 3, 4096
SECRET = "record-a1"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
MODEL = DPLogisticRegression(epsilon=1.0, data_norm=3.0, classes=[0, 1])


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", LENGTH)


def parts(X=X, y=Y, length=3000):
    return ((X[start : start + length], y[start : start + length]) for start in range(0, len(X), length))


class Source:
    """Counts its reads; the read of a number, and all later ones, come from another function."""

    def __init__(self, other=parts, first_other=10**6):
        self.reads, self.other, self.first_other = 0, other, first_other

    def __call__(self):
        self.reads += 1
        return parts() if self.reads < self.first_other else self.other()


def raising(error):
    def broken():
        yield from list(parts())[:2]
        raise error

    return broken


def not_a_table():
    text = X.astype(object)
    text[10_000, 1] = SECRET
    return parts(text)


def everything_of(error):
    """The text of an error and of all errors from which it came."""
    return "" if error is None else f"{error!r} {error} {everything_of(error.__cause__)} {everything_of(error.__context__)}"


def flipped():
    y = Y.copy()
    y[N - 1] = 1 - y[N - 1]
    return parts(y=y)


def permuted():
    return parts(X[::-1], Y[::-1])


def nothing():
    return iter(())


FAILING = {
    "text cell": not_a_table,
    "its own error": raising(ValueError(SECRET)),
    "OSError": raising(OSError(2, "gone", SECRET)),
    "sys.exit": raising(SystemExit(SECRET)),
    "MemoryError": raising(MemoryError(SECRET)),
    "at the call": lambda: [][int(SECRET[-1])],
    "no iterator": lambda: 3,
}
CHANGING = {
    "other rows": lambda: parts(X * [1, 1, 1 + 1e-9]),
    "permuted rows": permuted,
    "a label flipped": flipped,
    "a new label": lambda: parts(y=np.where(np.arange(N) == 5, 2, Y)),
    "fewer rows": lambda: parts(X[:-1], Y[:-1]),
    "fewer chunks": lambda: parts(X[:LENGTH], Y[:LENGTH]),
    "more rows": lambda: parts(np.vstack([X, X[:1]]), np.append(Y, 0)),
    "more chunks": lambda: parts(np.vstack([X, X]), np.append(Y, Y)),
    "no rows": nothing,
    "other columns": lambda: parts(X[:, :2]),
    "an infinity": lambda: parts(np.where(X == X.max(), np.inf, X)),
    "text": not_a_table,
}


@pytest.mark.parametrize("cache", ("disk", None))
@pytest.mark.parametrize("name", FAILING)
def test_a_source_that_fails_when_it_is_read_first_charges_nothing_and_quotes_nothing(name, cache):
    ledger, model = PrivacyLedger(epsilon=1.0, delta=1e-6), clone(MODEL)
    with pytest.raises((SourceError, ValueError, TypeError, MemoryError)) as caught, ledger:
        model.fit(chunks(FAILING[name], cache=cache))
    assert SECRET not in everything_of(caught.value)
    assert not ledger.entries
    assert not hasattr(model, "coef_")


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILING)
def test_a_source_that_fails_later_leaves_the_model_as_it_was(name):
    model = clone(MODEL).fit(chunks(parts))
    before, source, ledger = model.coef_.copy(), Source(FAILING[name], 3), PrivacyLedger(epsilon=1.0, delta=1e-6)
    with pytest.raises((SourceError, MemoryError)) as caught, ledger:
        model.fit(chunks(source, cache=None))
    assert SECRET not in everything_of(caught.value)
    assert isinstance(caught.value, MemoryError) or "The charge stands" in str(caught.value)
    assert len(ledger.entries) == 1
    assert source.reads == 3
    assert np.array_equal(model.coef_, before)


class Telling(Regression):
    """A problem that fails at one record, with an error of any class."""

    def __init__(self, n_features, error):
        super().__init__(n_features)
        self.error = error

    def at(self, batch, primal, dual):
        if (batch.targets == Y.max() + 7).any():
            raise self.error(SECRET)
        return super().at(batch, primal, dual)


@pytest.mark.parametrize("cache", ("disk", None))
@pytest.mark.parametrize("error", (SourceError, GeneratorExit, SystemExit, KeyboardInterrupt, MemoryError))
def test_what_a_problem_of_the_users_raises_in_a_thread_quotes_nothing(error, cache):
    y = np.where(np.arange(N) == 5, Y.max() + 7, Y)
    model = DPMinimax(Telling(D, error), data_norm=3.0, solver=SGDA(2))
    with pytest.raises(MemoryError if error is MemoryError else SourceError, match=r"partition|more memory") as caught:
        model.fit(chunks(lambda: parts(y=y), cache=cache))
    assert SECRET not in everything_of(caught.value)


@pytest.mark.parametrize("first", (2, 3))
@pytest.mark.parametrize("name", CHANGING)
def test_a_source_that_changes_stops_the_fit(name, first):
    source, model = Source(CHANGING[name], first), clone(MODEL)
    with pytest.raises(SourceError) as caught:
        model.fit(chunks(source, cache=None))
    assert str(caught.value) == partition.CHANGED
    assert SECRET not in everything_of(caught.value)
    assert source.reads == first
    assert not hasattr(model, "coef_")


@pytest.mark.slow
def test_a_file_that_changes_after_it_was_copied_changes_no_bit(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    load = ThreadEngine.load

    def then_rewrite(self, *arguments):
        loaded = load(self, *arguments)
        np.save(tmp_path / "X.npy", -X)
        return loaded

    monkeypatch.setattr(ThreadEngine, "load", then_rewrite)
    with reproducible_noise(0):
        memory = clone(MODEL).fit(X, Y)
    with reproducible_noise(0):
        assert np.array_equal(clone(MODEL).fit(npy(tmp_path / "X.npy", tmp_path / "y.npy")).coef_, memory.coef_)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(SourceError) as caught:
        clone(MODEL).fit(npy(tmp_path / "X.npy", tmp_path / "y.npy", cache=None))
    assert str(caught.value) == partition.CHANGED


@pytest.mark.slow
@pytest.mark.parametrize("cache", ("disk", None))
def test_reads_of_the_source(cache, monkeypatch):
    """One with a copy, otherwise one before the charge and one per pass; clipping reads nothing of its own."""
    passes, source, reduce = [], Source(), ThreadEngine.reduce
    monkeypatch.setattr(ThreadEngine, "reduce", lambda *arguments: passes.append(1) or reduce(*arguments))
    model = clone(MODEL).fit(chunks(source, cache=cache))
    assert source.reads == (1 if cache else 1 + len(passes))
    assert model.privacy_report_.public["table"]["reads_of_source"] == source.reads


class Interrupted:
    """Raises KeyboardInterrupt at the call of a number."""

    def __init__(self, monkeypatch, owner, name, number):
        original, calls = getattr(owner, name), []

        def called(*arguments, **named):
            calls.append(1)
            if len(calls) == number:
                raise KeyboardInterrupt
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, called)


def descriptors():
    return len(os.listdir("/proc/self/fd")) if sys.platform.startswith("linux") else 0


def nothing_is_left(before):
    end = time.monotonic() + 5
    while time.monotonic() < end:
        threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("skdp")]
        if not threads and descriptors() <= before:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("cache", ("disk", None))
@pytest.mark.parametrize(
    ("owner", "name", "number", "charged"),
    [
        (partition.Chunk, "arrays", 0, False),
        (ThreadEngine, "_tell", 2, False),
        (PartitionedRows, "_change", 1, True),
        (summation.TreeSum, "extend", 20, True),
    ],
    ids=("unhurt", "load", "prepare", "release"),
)
def test_an_interrupt_leaves_nothing_behind(owner, name, number, charged, cache, monkeypatch, capfd):
    clone(MODEL).fit(chunks(parts, cache=cache))  # what the first fit of a process opens for good
    model, ledger, before = clone(MODEL), PrivacyLedger(epsilon=1.0, delta=1e-6), descriptors()
    if not number:
        model.fit(chunks(parts, cache=cache))
        assert nothing_is_left(before)
        return
    Interrupted(monkeypatch, owner, name, number)
    try:
        with ledger:
            model.fit(chunks(parts, cache=cache))
    except KeyboardInterrupt as interrupt:
        assert ("its budget stays spent" in str(interrupt)) == charged
    else:
        pytest.fail("the fit was not interrupted")
    assert nothing_is_left(before)
    assert len(ledger.entries) == charged
    assert not hasattr(model, "coef_")
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_an_interrupt_while_predicting(monkeypatch):
    model = clone(MODEL).fit(chunks(parts))
    before, state = descriptors(), pickle.dumps(model)
    Interrupted(monkeypatch, type(model), "decision_function", 3)
    with pytest.raises(KeyboardInterrupt):
        model.predict(chunks(parts))
    assert nothing_is_left(before)
    assert pickle.dumps(model) == state


def test_errors_in_threads_become_a_sentence(monkeypatch, capfd):
    def broken(*_):
        raise ValueError(SECRET)

    monkeypatch.setattr("skdp.privacy.engines.threads.partial_sum", broken)
    with pytest.raises(SourceError) as caught:
        clone(MODEL).fit(chunks(parts))
    assert str(caught.value) == f"{partition.FAILED} The charge stands, and nothing else has changed."
    assert SECRET not in everything_of(caught.value)
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_a_model_holds_nothing_of_its_table():
    model = clone(MODEL).fit(chunks(parts))
    content = pickle.dumps(model)
    assert not any(row.tobytes() in content for row in X[::100])
    assert len(content) < 100_000


@pytest.mark.slow
def test_fits_at_the_same_time():
    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(lambda length: clone(MODEL).fit(chunks(lambda: parts(length=length))), (1000, 7000)))
    assert all(model.coef_.shape == (1, D) for model in models)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("skdp")]

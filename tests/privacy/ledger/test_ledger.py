"""Tests the ledger: which fits are charged, which are refused, and what the file contains."""

import copy
import json
import math
import pickle
import sqlite3
import threading
from contextlib import closing, nullcontext

import numpy as np
import pytest
from joblib import Parallel, delayed
from seeded import reproducible_noise
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from stores import held, remove, rewrite

from skdp import BudgetExceededError, DPLogisticRegression, LedgerError, NotPrivateWarning, PrivacyLedger
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger import active
from skdp.privacy.ledger._book import Book
from skdp.privacy.ledger._chain import Chain
from skdp.privacy.ledger._sqlite import File
from skdp.privacy.oracle import Oracle
from skdp.solvers import SGD, GradientDescent

X = np.random.default_rng(0).normal(size=(200, 3))
y = np.arange(200) % 2
DELTA = 1e-6
GD = DPLogisticRegression(0.2, delta=DELTA, solver=GradientDescent(n_steps=3))
SAMPLED = clone(GD).set_params(solver=SGD(n_steps=20, batch_size=20))


@pytest.fixture
def ledger(address):
    return PrivacyLedger(address, epsilon=3, delta=DELTA)


@pytest.fixture(autouse=True)
def nothing_stays_active():
    yield
    assert active.active() == ()


def fit_in_worker(estimator):
    assert active.active() == ()  # the stack did not come along
    return clone(estimator).fit(X, y)


def fit_in_thread(estimator):
    thread = threading.Thread(target=lambda: estimator.fit(X, y))
    thread.start()
    thread.join()


WAYS = {
    "itself": lambda model: model.fit(X, y),
    "clone": lambda model: clone(model).fit(X, y),
    "deepcopy": lambda model: copy.deepcopy(model).fit(X, y),
    "pickle": lambda model: pickle.loads(pickle.dumps(model)).fit(X, y),
    "thread": fit_in_thread,
    "loky": lambda model: Parallel(n_jobs=2)(delayed(fit_in_worker)(model) for _ in range(1)),
    "pipeline": lambda model: make_pipeline(FunctionTransformer(), model).fit(X, y),
}


@pytest.mark.each_value  # of "loky" one case: it starts processes
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("in_memory", (True, False))
def test_every_copy_charges_the_same_ledger_once(way, in_memory, ledger):
    ledger = PrivacyLedger(epsilon=3, delta=DELTA) if in_memory else ledger
    model = clone(GD)
    with ledger:
        WAYS[way](model)
    assert len(ledger.entries) == 1
    WAYS[way](model)  # outside, nothing is charged
    assert len(ledger.entries) == 1
    assert "_ledgers" not in vars(model)


@pytest.mark.parametrize("way", ("deepcopy", "pickle"))
def test_a_copy_made_inside_is_free_after_the_block(way, ledger):
    with ledger:
        copied = {"deepcopy": copy.deepcopy, "pickle": lambda model: pickle.loads(pickle.dumps(model))}[way](GD)
        assert "_ledgers" not in vars(copied)  # the active ledger pays without being named
        copied.fit(X, y)
    copied.fit(X, y)
    assert len(ledger.entries) == 1


def test_a_pickle_made_inside_stays_bound(ledger):
    with ledger:
        pickled = pickle.dumps(clone(GD))
    bound = pickle.loads(pickled)
    clone(copy.deepcopy(bound)).fit(X, y)
    assert len(ledger.entries) == 1
    with ledger:
        bound.fit(X, y)  # active and bound: once
    assert len(ledger.entries) == 2
    assert "_ledgers" not in vars(clone(GD))
    remove(ledger)
    with pytest.raises(LedgerError, match="is gone; nothing can be charged"):
        bound.fit(X, y)
    PrivacyLedger(ledger.address, epsilon=3, delta=DELTA)
    with pytest.raises(LedgerError, match="Another ledger"):
        bound.fit(X, y)


COPIES = {
    "itself": lambda model: model,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_of_a_fitted_estimator_are_charged_in_a_worker(way, ledger):
    """A worker gets a model that was fitted before the block, and fits a copy: in it, or in a worker of its own."""
    fitted = clone(GD).fit(X, y)
    with ledger:
        pickled = pickle.dumps(fitted)
    copied = COPIES[way](pickle.loads(pickled)).fit(X, y)
    assert len(ledger.entries) == 1
    assert ledger.identity.encode() not in pickle.dumps(copied)  # on its way home
    if way != "pickle":
        again = COPIES[way](copied).fit(X, y)
        assert len(ledger.entries) == 2
        assert ledger.identity.encode() not in pickle.dumps(COPIES[way](again))
    assert "_ledgers" not in vars(clone(GD)) and not clone(copied)._paid


def test_searches_are_charged_in_full(ledger):
    with ledger:
        cross_val_score(GD, X, y, cv=KFold(3), n_jobs=2)
        GridSearchCV(GD, {"alpha": [0.1, 0.2]}, cv=KFold(2), n_jobs=2).fit(X, y)
        BaggingClassifier(GD, n_estimators=2, bootstrap=False, max_samples=0.5, n_jobs=2, random_state=0).fit(X, y)
    assert len(ledger.entries) == 3 + (2 * 2 + 1) + 2
    numbers = [entry.number for entry in ledger.entries]
    assert numbers == list(range(1, 11))


def test_an_overdraft_is_refused_before_the_data_go_behind_the_gate(ledger, monkeypatch):
    with ledger:
        GD.fit(X, y)
        before = pickle.dumps(vars(GD)["coef_"])
        for part in (TrainingData, Oracle):
            monkeypatch.setattr(part, "__init__", lambda *a, **k: pytest.fail("the data were touched"))
        with pytest.raises(
            BudgetExceededError, match=r"would spend epsilon=3, .*full-data fit with .* up to 2\.\d+ would still"
        ) as caught:
            clone(GD).set_params(epsilon=3.0).fit(X, y)
        with pytest.raises(BudgetExceededError):
            GD.set_params(epsilon=3.0).fit(X, y)
        GD.set_params(epsilon=0.2)
    assert len(ledger.entries) == 1
    assert pickle.dumps(vars(GD)["coef_"]) == before
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.epsilon_left) == (str(caught.value), caught.value.epsilon_left)
    monkeypatch.undo()
    with ledger:
        clone(GD).set_params(epsilon=caught.value.epsilon_left).fit(X, y)
    assert ledger.epsilon_left() < 0.1


def test_the_charge_stands_when_the_fit_fails(ledger, monkeypatch):
    seen = []

    def interrupted(self, query):
        seen.append(len(ledger.entries))
        raise KeyboardInterrupt

    monkeypatch.setattr(Oracle, "ask", interrupted)
    with ledger, pytest.raises(KeyboardInterrupt):
        clone(GD).fit(X, y)
    assert seen == [1]  # written before the first release
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    "bad", (dict(X=[[np.nan]] * 200), dict(y=[0] * 200), dict(parameters={"alpha": -1}), dict(parameters={"delta": 2}))
)
def test_bad_input_costs_nothing(bad, ledger):
    with ledger, pytest.raises(ValueError):
        clone(GD).set_params(**bad.get("parameters", {})).fit(bad.get("X", X), bad.get("y", y))
    assert ledger.entries == ()


def test_a_fit_without_noise_is_refused(ledger):
    with ledger, pytest.warns(NotPrivateWarning), pytest.raises(BudgetExceededError, match="epsilon=inf"):
        clone(GD).set_params(epsilon=float("inf")).fit(X, y)
    assert ledger.entries == ()


def test_adjacencies_do_not_mix(ledger):
    with ledger:
        clone(GD).set_params(adjacency="zero_out").fit(X, y)
        with pytest.raises(PrivacyAccountingError, match=r"adjacency='replace_one'; the ledger .* counts 'zero_out'"):
            GD.fit(X, y)
    assert ledger.adjacency == "zero_out"
    with (
        pytest.raises(PrivacyAccountingError, match="counts 'replace_one'"),
        PrivacyLedger(epsilon=1, delta=DELTA, adjacency="replace_one"),
    ):
        clone(GD).set_params(adjacency="zero_out").fit(X, y)


def test_gaussian_fits_add_exactly(ledger):
    with ledger:
        for _ in range(4):
            GD.fit(X, y)
    mu = 2 * gaussian_mu(0.2, DELTA)
    assert ledger.summary().tight_epsilon == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-9)
    assert ledger.summary().spent_epsilon == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-3)


@pytest.mark.slow
def test_a_single_fit_may_spend_the_whole_ledger():
    for model in (GD, SAMPLED):
        ledger = PrivacyLedger(epsilon=0.2, delta=DELTA)
        with ledger:
            model.fit(X, y)
            with pytest.raises(BudgetExceededError):
                clone(model).set_params(epsilon=1e-3).fit(X, y)
        assert ledger.entries[0].charge.by_itself
        assert ledger.summary().spent_epsilon <= 0.2


def test_two_active_ledgers_are_both_charged_or_none(ledger):
    small = PrivacyLedger(epsilon=0.25, delta=DELTA)
    with ledger, small, small:
        GD.fit(X, y)
        with pytest.raises(BudgetExceededError):
            GD.fit(X, y)
    assert (len(ledger.entries), len(small.entries)) == (1, 1)


@pytest.mark.parametrize("block", (nullcontext, lambda: reproducible_noise(0)), ids=("secure", "seeded"))
def test_every_charge_has_noise_of_its_own(block, ledger):
    """Otherwise anyone could cancel the noise by comparing two fits."""
    with ledger, block():
        fits = [clone(GD).fit(X, y).coef_ for _ in range(2)]
    assert len(ledger.entries) == 2 and not np.array_equal(*fits)


@pytest.mark.parametrize("way", ("itself", "deepcopy", "pickle", "loky"))
def test_a_model_that_is_pickled_after_the_block_names_no_ledger(way, ledger):
    with ledger:
        model = WAYS[way](clone(GD))
    (model,) = model if way == "loky" else (model,)
    for word in (ledger.token[1], ledger.address.rpartition("/")[2]):
        assert word.encode() not in pickle.dumps(model)


def test_a_ledger_that_is_replaced_while_in_use_is_noticed(ledger):
    with ledger:
        GD.fit(X, y)
        remove(ledger)
        other = PrivacyLedger(ledger.address, epsilon=3, delta=DELTA)
        with pytest.raises(LedgerError, match="was replaced by another one"):
            GD.fit(X, y)
    assert other.entries == ()


def test_a_fit_that_forks_makes_no_second_release():
    oracle = Oracle.__new__(Oracle)
    oracle._process = -1
    with pytest.raises(PrivacyAccountingError, match="was forked"):
        oracle.ask(None)


def test_a_file_system_without_links_makes_one_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr("os.link", lambda *names: (_ for _ in ()).throw(OSError("no links here")))
    path = tmp_path / "study.sqlite"
    first = PrivacyLedger(path, epsilon=3, delta=DELTA)
    assert [file.name for file in tmp_path.iterdir()] == ["study.sqlite"]
    facts = {"epsilon": 3.0, "delta": DELTA, "adjacency": None, "identity": "late", "temporary": False}
    Book.create(File(path), facts, Chain(None))  # a slower process
    assert PrivacyLedger(path).token == first.token
    path.unlink()
    (tmp_path / "study.sqlite.claim").touch()
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(LedgerError, match=r"no file study\.sqlite\.claim is left"):
        PrivacyLedger(path, epsilon=3, delta=DELTA)


def test_entries_say_what_was_done_and_survive_the_session(ledger):
    with ledger:
        GD.fit(X, y)
        SAMPLED.fit(X, y)
    again = PrivacyLedger(ledger.address)
    assert (again.epsilon, again.delta, again.adjacency) == (3.0, DELTA, "replace_one")
    first, second = again.entries
    assert first.spending.estimator == "DPLogisticRegression"
    assert first.spending.parameters["epsilon"] == "0.2"
    assert "random_state" not in first.spending.parameters
    assert first.spending.schedule[0].startswith("3 x Gradient")
    assert first.spending.epsilon == pytest.approx(0.2, rel=1e-3)
    assert first.charge.mu == pytest.approx(gaussian_mu(0.2, DELTA), rel=1e-6)
    assert second.charge.slack > 0 == first.charge.slack
    assert gaussian_mu(0.2, DELTA) * 0.99 < second.charge.mu < gaussian_mu(0.2, DELTA) * 1.1
    assert first.time <= second.time
    document = json.loads(again.to_json())
    assert document["entries"][1]["spending"]["composition"]["sampled"] == [
        [20, 0.1, pytest.approx(second.spending.composition.sampled[0][2])]
    ]
    text = str(again.summary())
    assert "if all fits were fixed in advance" in text
    assert "even if each fit was chosen by earlier results" in text
    assert "DPLogisticRegression: epsilon 0.2" in text


def test_other_releases_can_be_added(ledger):
    with pytest.raises(ValueError, match="no adjacency before its first charge; expected adjacency="):
        ledger.add(0.5, note="a histogram")
    with pytest.raises(ValueError, match="adjacency='both'; expected one of"):
        ledger.add(0.5, note="a histogram", adjacency="both")
    ledger.add(0.5, 1e-7, note="a histogram", adjacency="zero_out")
    assert ledger.adjacency == "zero_out"
    assert ledger.summary().spent_epsilon == pytest.approx(0.5)
    assert ledger.summary().tight_epsilon == pytest.approx(0.5, rel=1e-3)
    for bad in (
        dict(epsilon=-1),
        dict(epsilon=math.inf),
        dict(epsilon=math.nan),
        dict(epsilon=1, delta=1.0),
        dict(epsilon=1, delta=-1),
    ):
        with pytest.raises(ValueError, match="expected a positive number"):
            ledger.add(**bad, note="bad")
    with ledger:
        clone(GD).set_params(adjacency="zero_out").fit(X, y)
    ledger.add(0.1, note="later: by its cover")
    assert not ledger.entries[-1].charge.by_itself
    with pytest.raises(BudgetExceededError, match=r"have delta=9e-10 left.* before the first fit"):
        ledger.add(0.1, 5e-7, note="later, with a delta for which there is no reserve")


@pytest.mark.parametrize(
    "parameters, error",
    (
        (dict(epsilon=1), ValueError),
        (dict(delta=1e-6), ValueError),
        (dict(epsilon=0, delta=1e-6), ValueError),
        (dict(epsilon=math.inf, delta=1e-6), ValueError),
        (dict(epsilon=math.nan, delta=1e-6), ValueError),
        (dict(epsilon=1, delta=1.0), ValueError),
        (dict(epsilon=True, delta=0.1), TypeError),
        (dict(epsilon="1", delta=0.1), TypeError),
        (dict(epsilon=1, delta=0.1, adjacency="both"), ValueError),
    ),
)
def test_parameters_are_checked(parameters, error, tmp_path):
    with pytest.raises(error, match="expected"):
        PrivacyLedger(tmp_path / "new.sqlite", **parameters)
    assert list(tmp_path.iterdir()) == []


def test_a_file_keeps_its_ceiling(ledger):
    for other in (dict(epsilon=4), dict(delta=1e-5), dict(adjacency="zero_out")):
        with pytest.raises(ValueError, match="was made with"):
            PrivacyLedger(ledger.address, **other)
    assert PrivacyLedger(ledger.address, epsilon=3.0, delta=DELTA).token == ledger.token


def in_first_entry(rows, facts):
    number, content, chain = rows[0]
    rows[0] = (number, content.replace('"mu": 0.', '"mu": 0.0'), chain)


DAMAGES = {
    "entry lost": lambda rows, facts: rows.pop(1),
    "first entry lost": lambda rows, facts: rows.pop(0),
    "entries swapped": lambda rows, facts: rows.__setitem__(slice(2), [(1, *rows[1][1:]), (2, *rows[0][1:])]),
    "number skipped": lambda rows, facts: rows.__setitem__(1, (3, *rows[1][1:])),
    "entry changed": in_first_entry,
    "ceiling changed": lambda rows, facts: facts.update(facts=facts["facts"].replace('"epsilon": 3', '"epsilon": 9')),
    "all lost": lambda rows, facts: rows.clear(),
    "facts broken": lambda rows, facts: facts.update(facts=facts["facts"][1:]),
    "no head": lambda rows, facts: facts.pop("head"),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_a_change_of_what_is_stored_is_noticed(change, ledger):
    with ledger:
        GD.fit(X, y)
        GD.fit(X, y)
    rewrite(ledger, change)
    with pytest.raises(LedgerError, match="damaged or half-written"):
        PrivacyLedger(ledger.address).summary()
    with ledger, pytest.raises(LedgerError, match="damaged or half-written"):
        GD.fit(X, y)


def test_a_file_without_a_table_is_damaged(on_file):
    ledger = PrivacyLedger(on_file, epsilon=3, delta=DELTA)
    with closing(sqlite3.connect(on_file)) as connection:
        connection.execute("DROP TABLE entries")
    with ledger, pytest.raises(LedgerError, match="damaged or half-written"):
        GD.fit(X, y)


@pytest.mark.each_value
@pytest.mark.parametrize("value", (-1.0, math.nan, math.inf, "1", None))
@pytest.mark.parametrize(
    "cost", ("charge.epsilon", "charge.delta", "charge.mu", "charge.slack", "spending.epsilon", "spending.delta")
)
def test_an_entry_that_gives_budget_back_is_a_damage(cost, value, on_file):
    """Also if its hash is right: without a key, everybody can compute it."""
    ledger = PrivacyLedger(on_file, epsilon=3, delta=DELTA, adjacency="replace_one")
    ledger.add(0.1, note="one")
    content = json.loads(ledger.entries[0].to_json())
    part, name = cost.split(".")
    content[part][name] = value
    ledger._book.append(lambda *_: json.dumps(content))
    with pytest.raises(LedgerError, match="damaged or half-written"):
        ledger.summary()


@pytest.mark.parametrize("kept", (0, 1, 500, 4096, 5000, 9000, -1))
def test_a_half_written_file_is_noticed(kept, on_file):
    ledger = PrivacyLedger(on_file, epsilon=3, delta=DELTA)
    with ledger:
        for _ in range(8):
            GD.fit(X, y)
    content = ledger.path.read_bytes()
    assert len(content) > 12_000
    ledger.path.write_bytes(content[:kept])
    with pytest.raises(LedgerError, match="damaged or half-written"):
        PrivacyLedger(ledger.path).summary()
    with ledger, pytest.raises(LedgerError, match="damaged or half-written"):
        GD.fit(X, y)


def test_a_writer_that_does_not_end_stops_the_fit(ledger, monkeypatch):
    monkeypatch.setattr("skdp.privacy.ledger._store.PATIENCE", 0.05 if ledger.path else 1.0)
    reason = "database is locked" if ledger.path else "another writer did not end in time, .*"
    with held(ledger), ledger, pytest.raises(LedgerError, match=rf"cannot be used: {reason}\. Nothing was charged"):
        GD.fit(X, y)
    assert ledger.entries == ()


def test_a_temporary_ledger_leaves_no_file():
    ledger = PrivacyLedger(epsilon=1, delta=DELTA)
    directory = ledger.path.parent
    assert directory.is_dir()
    copied = pickle.loads(pickle.dumps(ledger))
    assert copied.path == ledger.path
    del copied
    assert directory.is_dir()
    del ledger
    assert not directory.exists()


def test_a_note_cannot_look_like_other_entries(address):
    """Neither by further lines nor by control characters of a terminal."""
    ledger = PrivacyLedger(address, epsilon=3, delta=DELTA, adjacency="replace_one")
    ledger.add(2, note="small\n   2  2026-01-01T00:00:00Z  none\x1b[2J\u202e")
    last = str(ledger.summary()).splitlines()[-1]
    assert last.startswith("   1") and last.isprintable() and "epsilon 2" in last
    assert "\u202e" not in ledger.to_html() and "\x1b" not in ledger.to_html()

"""Tests ledgers with a key: who can change them, and where the key is stored."""

import contextlib
import copy
import hashlib
import hmac
import os
import pickle
import sqlite3

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from stores import rewrite, stored

from skdp import DPLogisticRegression, LedgerError, PrivacyLedger
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger._book import Book
from skdp.privacy.ledger._sqlite import File
from skdp.solvers import GradientDescent

DELTA = 1e-6
KEY = "an example of a key, which is no secret"
X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
GD = DPLogisticRegression(0.2, delta=DELTA, solver=GradientDescent(n_steps=3))


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch):
    monkeypatch.delenv("SKDP_LEDGER_KEY", raising=False)


@pytest.fixture
def ledger(address):
    ledger = PrivacyLedger(address, epsilon=3, delta=DELTA, adjacency="replace_one", key=KEY)
    ledger.add(0.1, note="one")
    ledger.add(0.1, note="two")
    return ledger


def hashed_again(rows, facts, key=None):
    """Hashes anybody can compute."""

    def link(text):
        return (hmac.new(key, text.encode(), "sha256") if key else hashlib.sha256(text.encode())).hexdigest()

    head = link(f"\n{facts['facts']}")
    for place, (number, content, _) in enumerate(rows):
        head = link(f"{head}\n{content}")
        rows[place] = (number, content, head)
    facts["head"] = head


def last_deleted(rows, facts):
    rows.pop()
    facts["head"] = rows[-1][2]


def last_deleted_and_hashed(rows, facts):
    rows.pop()
    hashed_again(rows, facts)


def hashed_with_a_guess(rows, facts):
    rows.pop()
    hashed_again(rows, facts, b"a guess of what the key may be")


ATTACKS = (last_deleted, last_deleted_and_hashed, hashed_with_a_guess)


@pytest.mark.parametrize("attack", ATTACKS)
def test_with_a_key_a_deleted_entry_is_noticed(attack, ledger):
    rewrite(ledger, attack)
    with pytest.raises(LedgerError, match="damaged or half-written"):
        PrivacyLedger(ledger.address, key=KEY)
    with ledger, pytest.raises(LedgerError, match="damaged or half-written"):
        clone(GD).fit(X, y)


@pytest.mark.parametrize("words", ("moved to ", "moving to "))
def test_with_a_key_a_move_does_not_hide_a_deleted_entry(words, ledger, tmp_path, monkeypatch):
    """Who foresees where a ledger will move to cannot write that it is on its way there."""
    monkeypatch.setenv("SKDP_LEDGER_KEY", KEY)
    there = File(tmp_path / "there.sqlite")

    def on_its_way(rows, facts):
        rows.pop()
        facts["head"] = f"{words}{there.address}"
        if words == "moving to ":
            facts["head"] += "\n" + hashlib.sha256(f"{rows[-1][2]}\n{facts['head']}".encode()).hexdigest()

    rewrite(ledger, on_its_way)
    with pytest.raises(LedgerError, match="damaged or half-written"):
        Book.move(ledger._book.store, there, ledger._book.chain)
    assert not there.exists()


@pytest.mark.parametrize("attack", ATTACKS[:2])
def test_without_a_key_it_is_not(attack, address):
    """As documented: hashes that everybody can compute detect accidents, not manipulation."""
    ledger = PrivacyLedger(address, epsilon=3, delta=DELTA, adjacency="replace_one")
    ledger.add(0.1, note="one")
    ledger.add(0.1, note="two")
    rewrite(ledger, attack)
    assert len(PrivacyLedger(ledger.address).entries) == 1


@pytest.mark.parametrize(
    "odd",
    (
        lambda text: "[" * 100_000 + "]" * 100_000,
        lambda text: "[]",
        lambda text: text.replace('"delta": 0.0', f'"delta": 1{"0" * 400}'),
        lambda text: text.replace('"epsilon": 0.1', '"epsilon": 1e400'),
        lambda text: text.replace('"epsilon": 0.1', '"epsilon": NaN'),
        lambda text: text.replace('"epsilon": 0.1', '"epsilon": "0.1"'),
    ),
    ids=("deep", "no entry", "401 digits", "infinite", "nan", "text"),
)
def test_an_odd_entry_with_a_right_hash_is_damage(odd, ledger):
    """As somebody may append who holds the key, or to a ledger without a key."""

    def append(rows, facts):
        rows[1] = (2, odd(rows[1][1]), "")
        hashed_again(rows, facts, KEY.encode())
        facts["head"] = hmac.new(KEY.encode(), f"head\n{facts['head']}".encode(), "sha256").hexdigest()

    rewrite(ledger, append)
    for read in (ledger.to_html, ledger.summary, lambda: ledger.add(0.1, note="three")):
        with pytest.raises(LedgerError, match="damaged or half-written"):
            read()


def test_a_trigger_that_undoes_charges_is_refused(on_file):
    """It needs no key: after each charge it puts back the last state that the holders of the key wrote."""
    ledger = PrivacyLedger(on_file, epsilon=3, delta=DELTA, adjacency="replace_one", key=KEY)
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute(
            """CREATE TRIGGER undo AFTER UPDATE ON facts BEGIN
            DELETE FROM entries WHERE number = (SELECT max(number) FROM entries);
            UPDATE facts SET value = OLD.value WHERE name = OLD.name; END"""
        )
    for account in (lambda: ledger, lambda: PrivacyLedger(ledger.address, key=KEY)):
        with pytest.raises(LedgerError, match=r"damaged or half-written .*Nothing was charged"):
            account().add(0.1, note="three")


def test_a_key_that_is_taken_out_of_the_file_is_missed(ledger):
    def without(rows, facts):
        content = facts["facts"]
        start = content.index('"key": ')
        facts["facts"] = content[:start] + content[content.index('", ', start) + 3 :]
        hashed_again(rows, facts)

    rewrite(ledger, without)
    assert len(PrivacyLedger(ledger.address).entries) == 2  # an honest file without a key, now
    with pytest.raises(LedgerError, match="has no key, but one is given"):
        PrivacyLedger(ledger.address, key=KEY)


def test_the_right_key_opens(ledger, monkeypatch):
    for key in (KEY, KEY.encode()):
        again = PrivacyLedger(ledger.address, key=key)
        with again:
            clone(GD).fit(X, y)
    monkeypatch.setenv("SKDP_LEDGER_KEY", KEY)
    assert len(PrivacyLedger(ledger.address).entries) == 4
    with PrivacyLedger(epsilon=1, delta=DELTA) as other:
        clone(GD).fit(X, y)
    monkeypatch.delenv("SKDP_LEDGER_KEY")
    with pytest.raises(LedgerError, match="was made with a key"):
        PrivacyLedger(other.address)


def test_two_objects_on_one_file_pay_once(ledger):
    with ledger, PrivacyLedger(ledger.address, key=KEY):
        clone(GD).fit(X, y)
    assert len(ledger.entries) == 3


@pytest.mark.parametrize(
    "key, message",
    (
        (None, r"was made with a key; expected it as key= or in the environment variable SKDP_LEDGER_KEY\. Nothing was charged"),
        (KEY + "!", "was made with another key; expected it as key="),
    ),
)
def test_another_key_or_none_is_refused(key, message, ledger):
    with pytest.raises(LedgerError, match=message):
        PrivacyLedger(ledger.address, key=key)
    assert len(ledger.entries) == 2


@pytest.mark.parametrize(
    "key, error", (("too short", ValueError), (b"", ValueError), (1234567890123456789, TypeError), (["x" * 20], TypeError))
)
def test_a_key_that_is_none_is_refused_and_not_quoted(key, error, tmp_path):
    with pytest.raises(error, match=r"key .*; expected") as caught:
        PrivacyLedger(tmp_path / "new.sqlite", epsilon=1, delta=DELTA, key=key)
    assert not key or str(key) not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_key_is_nowhere(ledger, monkeypatch):
    monkeypatch.setenv("SKDP_LEDGER_KEY", KEY)
    with ledger:
        model = clone(GD).fit(X, y)
        left = [pickle.dumps(model), pickle.dumps(GD), pickle.dumps(ledger), stored(ledger)]
    left += [text.encode() for text in (repr(ledger), ledger.to_json(), ledger._repr_html_(), repr(vars(ledger)))]
    left.append(repr(vars(model)).encode())
    assert not any(KEY.encode() in content for content in left)


@pytest.mark.skipif(os.name != "posix", reason="the environment is text")
def test_a_key_of_any_bytes_goes_through_the_environment(monkeypatch):
    monkeypatch.setenv("SKDP_LEDGER_KEY", os.fsdecode(b"\xff" * 16))
    assert PrivacyLedger(epsilon=1, delta=DELTA, key=b"\xff" * 16).token is not None


def fit_in_worker(model):
    return clone(model).fit(X, y)


@pytest.mark.slow
def test_workers_find_the_key_in_the_environment(ledger, monkeypatch):
    monkeypatch.setenv("SKDP_LEDGER_KEY", KEY)
    with ledger:
        Parallel(n_jobs=2, backend="multiprocessing")(delayed(fit_in_worker)(GD) for _ in range(2))
        copy.deepcopy(GD).fit(X, y)
    assert len(ledger.entries) == 5
    assert len(pickle.loads(pickle.dumps(ledger)).entries) == 5


@pytest.mark.slow
@pytest.mark.parametrize("in_environment", (None, KEY + "!"))
def test_without_it_workers_are_refused_before_any_charge(in_environment, ledger, monkeypatch):
    if in_environment:
        monkeypatch.setenv("SKDP_LEDGER_KEY", in_environment)
    with ledger:
        for copying in (pickle.dumps, copy.deepcopy):
            with pytest.raises(PrivacyAccountingError, match=r"whose key is not in the environment variable SKDP_LEDGER_KEY"):
                copying(GD)
        with pytest.raises(Exception) as caught:
            cross_val_score(GD, X, y, cv=KFold(2), n_jobs=2)
        assert "SKDP_LEDGER_KEY" in str(caught.value) + str(caught.value.__cause__)
        assert len(ledger.entries) == 2
        cross_val_score(GD, X, y, cv=KFold(2))
        Parallel(n_jobs=2, backend="threading")(delayed(fit_in_worker)(GD) for _ in range(2))
    assert len(ledger.entries) == 6


def test_a_worker_that_lost_the_key_charges_nothing(ledger, monkeypatch):
    monkeypatch.setenv("SKDP_LEDGER_KEY", KEY)
    with ledger:
        carried = pickle.dumps(GD)
    monkeypatch.delenv("SKDP_LEDGER_KEY")
    with pytest.raises(LedgerError, match="was made with a key"):
        pickle.loads(carried).fit(X, y)
    assert len(ledger.entries) == 2


def test_the_command_line_takes_the_key_from_the_environment(ledger, monkeypatch, capsys):
    from skdp.__main__ import main

    assert main(["ledger", ledger.address]) == 2
    assert "was made with a key" in capsys.readouterr().err
    monkeypatch.setenv("SKDP_LEDGER_KEY", KEY)
    assert main(["ledger", ledger.address]) == 0
    assert "2 charges" in capsys.readouterr().out

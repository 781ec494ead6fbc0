"""Tests the file of a ledger: one identity under many names, copies, older copies, WAL, and rows without a hash."""

import contextlib
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from sklearn.base import clone
from stores import rewrite

from skdp import DPLogisticRegression, LedgerError, PrivacyLedger
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.ledger._book import Book
from skdp.privacy.ledger._sqlite import File
from skdp.privacy.ledger.entries import Spending
from skdp.solvers import GradientDescent

DELTA = 1e-6
X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
GD = DPLogisticRegression(0.2, delta=DELTA, solver=GradientDescent(n_steps=3))


@pytest.fixture
def ledger(on_file):
    return PrivacyLedger(on_file, epsilon=3, delta=DELTA, adjacency="replace_one")


@pytest.fixture
def anywhere(address):
    return PrivacyLedger(address, epsilon=3, delta=DELTA, adjacency="replace_one")


def execute(path, *statements):
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(*statement)
    connection.close()


def notes(ledger):
    return [entry.spending.estimator for entry in ledger.entries]


@pytest.mark.slow
def test_no_row_beside_the_entries_changes_the_summary(ledger):
    """Files of earlier versions kept composed losses under such a key, without a hash."""
    composition = Composition("replace_one", ((200, 0.05, 4.0),), (), 0.0)
    ledger.charge(Spending("sampled", {}, (), "replace_one", 1.0, DELTA, composition))
    truth = ledger.summary().tight_epsilon
    assert truth > 0.5
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
        (head,) = connection.execute("SELECT chain FROM entries").fetchone()
    versions = [f"{name} {metadata.version(name)}" for name in ("skdp", "dp_accounting", "numpy")]
    key = ", ".join([head, "discretization 0.0001", *versions])
    nothing = privacy_loss_distribution.from_gaussian_mechanism(1e6)
    hollow = object.__new__(type(nothing))
    execute(ledger.path, ("CREATE TABLE IF NOT EXISTS cache (key TEXT PRIMARY KEY, value BLOB NOT NULL)",))
    for losses in (nothing, hollow):
        execute(ledger.path, ("INSERT OR REPLACE INTO cache VALUES (?, ?)", (key, pickle.dumps((losses, 1)))))
        assert PrivacyLedger(ledger.path).summary().tight_epsilon == truth


def test_an_entry_that_is_hollow_under_a_right_hash_is_a_damage(ledger):
    ledger._book.append(lambda *_: "{}")
    with pytest.raises(LedgerError, match="damaged or half-written"):
        ledger.summary()
    with ledger, pytest.raises(LedgerError, match="damaged or half-written"):
        clone(GD).fit(X, y)


def test_one_ledger_under_two_paths_is_charged_once(ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.symlink(ledger.path, tmp_path / "link.sqlite")
    os.symlink(tmp_path, tmp_path / "folder" / "up")
    paths = ("link.sqlite", "study.sqlite", "folder/../study.sqlite", "folder/up/study.sqlite")
    for number, path in enumerate(paths, start=1):
        with ledger, PrivacyLedger(path) as other:
            clone(GD).fit(X, y)
            bound = pickle.dumps(GD)
        assert other.path == ledger.path
        assert len(ledger.entries) == len(other.entries) == 2 * number - 1
        pickle.loads(bound).fit(X, y)  # as in a worker process
        assert len(ledger.entries) == 2 * number


KILLED = """
import os, signal
from skdp import PrivacyLedger
from skdp.privacy.ledger._sqlite import _Transaction
append = _Transaction.append
def killed(self, row, head):
    self._connection.execute("PRAGMA cache_size = 1")
    append(self, row, head)
    self._connection.execute("CREATE TABLE filler (content)")
    for _ in range(200):
        self._connection.execute("INSERT INTO filler VALUES (zeroblob(4000))")
    os.kill(os.getpid(), signal.SIGKILL)
_Transaction.append = killed
PrivacyLedger("study.sqlite").add(0.1, note="half")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills itself")
def test_a_crash_under_one_name_takes_back_no_charge_under_another(ledger, tmp_path, monkeypatch):
    """SQLite's journal belongs to a name: a charge by a hard link was undone when the first name was opened again."""
    monkeypatch.chdir(tmp_path)
    ledger.add(0.1, note="one")
    identity = ledger.identity
    process = subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert process.returncode < 0
    assert (tmp_path / "study.sqlite-journal").exists()
    os.link("study.sqlite", "second.sqlite")
    for name in ("second.sqlite", "study.sqlite"):
        with pytest.raises(LedgerError, match=r"more than one name \(hard links\).*Nothing was charged"):
            PrivacyLedger(name).add(0.1, note="by the other name")
    os.unlink("second.sqlite")
    os.symlink("study.sqlite", "second.sqlite")
    PrivacyLedger("second.sqlite").add(0.1, note="by a symbolic link")
    again = PrivacyLedger("study.sqlite")
    assert (again.identity, notes(again)) == (identity, ["one", "by a symbolic link"])


def test_a_copy_beside_the_original_is_refused(ledger, tmp_path):
    ledger.add(0.1, note="one")
    shutil.copy(ledger.path, tmp_path / "copy.sqlite")
    copied = PrivacyLedger(tmp_path / "copy.sqlite")
    assert copied.identity == ledger.identity
    with ledger, pytest.raises(LedgerError, match="one ledger and a copy of it"):
        copied.__enter__()
    with copied:
        bound = pickle.dumps(GD)
    with ledger:
        model = pickle.loads(bound)
        with pytest.raises(LedgerError, match="one ledger and a copy of it"):
            model.fit(X, y)
    assert notes(ledger) == notes(copied) == ["one"]


def test_of_two_copies_that_part_a_process_goes_on_with_one(ledger, tmp_path):
    ledger.add(0.1, note="one")
    shutil.copy(ledger.path, tmp_path / "copy.sqlite")
    copied = PrivacyLedger(tmp_path / "copy.sqlite")
    ledger.add(0.1, note="two")
    for refused in (lambda: copied.add(0.1, note="other"), lambda: PrivacyLedger(copied.path)):
        with pytest.raises(LedgerError, match="lacks charges that this process has seen"):
            refused()
    assert notes(ledger) == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ("an older copy", "another way on"))
def test_a_file_that_moved_back_is_refused(way, ledger, tmp_path):
    ledger.add(0.1, note="one")
    older = ledger.path.read_bytes()
    ledger.add(0.1, note="two")
    ledger.path.write_bytes(older)
    if way == "another way on":  # with as many entries, by a process that has not seen the first
        code = f"from skdp import PrivacyLedger; PrivacyLedger({str(ledger.path)!r}).add(0.1, note='instead')"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    with pytest.raises(LedgerError, match="lacks charges that this process has seen"):
        ledger.summary()
    with ledger, pytest.raises(LedgerError, match=r"lacks charges .* Nothing was charged"):
        clone(GD).fit(X, y)
    with pytest.raises(LedgerError, match="lacks charges that this process has seen"):
        PrivacyLedger(ledger.path)


def test_a_deleted_last_entry_is_noticed_by_the_process_that_saw_it(anywhere):
    anywhere.add(0.1, note="one")
    anywhere.add(0.1, note="two")

    def delete(rows, facts):
        rows.pop()
        facts["head"] = rows[-1][2]

    rewrite(anywhere, delete, forget=False)
    with pytest.raises(LedgerError, match="lacks charges that this process has seen"):
        anywhere.add(0.1, note="three")


@pytest.mark.slow
def test_charges_by_others_are_no_move_back(anywhere):
    anywhere.add(0.1, note="one")
    code = f"from skdp import PrivacyLedger; PrivacyLedger({anywhere.address!r}).add(0.1, note='two')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    anywhere.add(0.1, note="three")
    assert notes(anywhere) == ["one", "two", "three"]


def test_wal_is_refused_before_any_charge(ledger):
    ledger.add(0.1, note="one")
    execute(ledger.path, ("PRAGMA journal_mode = WAL",))
    with ledger, pytest.raises(LedgerError, match=r"WAL journal mode.*PRAGMA journal_mode=DELETE.*Nothing was charged"):
        clone(GD).fit(X, y)
    with pytest.raises(LedgerError, match="WAL journal mode"):
        PrivacyLedger(ledger.path)
    execute(ledger.path, ("PRAGMA journal_mode = DELETE",))
    ledger.add(0.1, note="two")
    assert notes(ledger) == ["one", "two"]


def test_a_ledger_moves_once(ledger, tmp_path):
    """The same address can lead elsewhere, such as localhost on another machine: there must be no second ledger."""
    old, there = ledger._book.store, File(tmp_path / "there.sqlite")
    ledger.add(0.1, note="one")
    Book.move(old, there, ledger._book.chain)
    PrivacyLedger(there.path).add(0.1, note="two")
    there.path.rename(tmp_path / "another machine.sqlite")
    rewrite(ledger, lambda rows, facts: None)  # a process that has not seen it
    with pytest.raises(LedgerError, match=r"was moved to .*there.sqlite'?; use it there"):
        Book.move(old, there, ledger._book.chain)
    assert not there.exists()


def test_a_charge_of_another_thread_after_reading_is_no_older_copy(anywhere, monkeypatch):
    other, store = PrivacyLedger(anywhere.address), anywhere._book.store
    transaction = store.transaction

    @contextlib.contextmanager
    def late(writing):
        with transaction(writing) as opened:
            yield opened
        other.add(0.1, note="of another thread")

    with monkeypatch.context() as patch:
        patch.setattr(store, "transaction", late)
        assert notes(anywhere) == []
    assert notes(anywhere) == ["of another thread"]

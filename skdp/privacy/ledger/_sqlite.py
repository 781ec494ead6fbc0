"""The file of a ledger: SQLite, one transaction per charge, a chain of hashes over all entries."""

import contextlib
import hmac
import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skdp.privacy.errors import LedgerError
from skdp.privacy.ledger._chain import VARIABLE, Chain

__all__ = ["Store", "damaged", "temporary_file"]

FORMAT = "skdp-ledger-1"
PATIENCE = 120.0  # seconds to wait for other writers
TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, chain TEXT NOT NULL);
"""

_seen: dict[str, tuple[int, str]] = {}  # number of entries and last hash that this process saw, by identity of the ledger
_lock = threading.Lock()


class Store:
    """Facts that never change, and entries that are only appended.

    Every entry carries the hash of itself and of all before it, and the last hash stands beside the facts, so that an entry that
    was changed, lost or half written is noticed. Without a key anybody can compute these hashes: they catch accidents, not
    intent. With a key only its holders can. An older copy of the whole file is noticed only by a process that saw more.

    Parameters
    ----------
    path : Path
        An existing file. Unless its facts say that it is temporary, a charge survives a power failure too.
    chain : Chain
        How entries are hashed.

    Raises
    ------
    LedgerError
        If there is no such file, it is damaged, or it has another key.
    """

    def __init__(self, path: Path, chain: Chain) -> None:
        self.path, self.chain = path, chain
        self.facts: dict[str, Any] = {"temporary": False}
        with self.transaction(writing=False) as connection:
            self.facts = _facts(connection, path)
            self._check_key()
            self.entries(connection)

    @staticmethod
    def create(path: Path, facts: dict[str, Any], chain: Chain) -> None:
        """Write a new file, whole or not at all; an existing one is left as it is.

        Parameters
        ----------
        path : Path
            Where.
        facts : dict
            What never changes.
        chain : Chain
            How entries will be hashed.
        """
        if not path.parent.is_dir():
            raise LedgerError(f"There is no folder {str(path.parent)!r} for the ledger {path.name!r}.")
        handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".new", dir=path.parent)
        os.close(handle)
        fingerprint = chain.fingerprint(facts["identity"])
        content = _text({"format": FORMAT, **facts, **({"key": fingerprint} if fingerprint else {})})
        try:
            with contextlib.closing(sqlite3.connect(name)) as connection, connection:
                connection.executescript(TABLES)
                rows = [("facts", content), ("head", chain.seal(chain.link("", content)))]
                connection.executemany("INSERT INTO facts VALUES (?, ?)", rows)
            with contextlib.suppress(FileExistsError):
                _publish(name, path)
            _await(path)
        except sqlite3.Error:
            raise LedgerError(f"The ledger {str(path)!r} cannot be made; expected a disk with room.") from None
        finally:
            Path(name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def transaction(self, writing: bool) -> Iterator[sqlite3.Connection]:
        """Open the file; a writer holds it alone until the end, and an error undoes what was written.

        Parameters
        ----------
        writing : bool
            Whether to exclude other writers.

        Yields
        ------
        sqlite3.Connection
            A connection of this thread and process.
        """
        if not self.path.is_file():
            raise LedgerError(f"There is no ledger file at {str(self.path)!r}; nothing can be charged to it.")
        _refuse_second_name(self.path)
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA synchronous = {'OFF' if self.facts['temporary'] else 'EXTRA'}")
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                try:
                    _refuse_wal(connection, self.path)
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
        except sqlite3.OperationalError as error:
            if "no such" in str(error) or "decode" in str(error):
                raise damaged(self.path) from None
            raise LedgerError(f"The ledger {str(self.path)!r} cannot be used: {error}. Nothing was charged.") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            raise damaged(self.path) from None

    def entries(self, connection: sqlite3.Connection) -> list[str]:
        """Return all entries, after checking the chain.

        Parameters
        ----------
        connection : sqlite3.Connection
            From `transaction`.

        Returns
        -------
        list of str
            In order, as JSON.

        Raises
        ------
        LedgerError
            If any entry was changed, lost or half written, or the whole file was replaced, also by an older copy.
        """
        rows = connection.execute("SELECT number, content, chain FROM entries ORDER BY number").fetchall()
        facts = _facts(connection, self.path)
        if facts["identity"] != self.facts["identity"]:
            raise LedgerError(
                f"The ledger {str(self.path)!r} was replaced by another one while it was in use. Nothing was charged."
            )
        if connection.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():  # could undo a charge
            raise damaged(self.path)
        hashes = [self.chain.link("", _text(facts))]
        for expected, (number, content, chain) in enumerate(rows, start=1):
            hashes.append(self.chain.link(hashes[-1], content))
            if number != expected or not _same(chain, hashes[-1]):
                raise damaged(self.path)
        if not _same(self._head(connection), self.chain.seal(hashes[-1])):
            raise damaged(self.path)
        self._compare_with_seen(hashes)
        return [content for _, content, _ in rows]

    def append(self, connection: sqlite3.Connection, content: str) -> tuple[int, str]:
        """Write one more entry.

        Parameters
        ----------
        connection : sqlite3.Connection
            From `transaction`, writing, after `entries`.
        content : str
            JSON.

        Returns
        -------
        (int, str)
            For `remember`, once the transaction is done.
        """
        row = connection.execute("SELECT number, chain FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        number, last = row or (0, self.chain.link("", _text(self.facts)))
        chain = self.chain.link(last, content)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number + 1, content, chain))
        connection.execute("UPDATE facts SET value = ? WHERE name = 'head'", (self.chain.seal(chain),))
        return number + 1, chain

    def remember(self, number: int, head: str) -> None:
        """Remember, in this process, how far the ledger went: it never goes back.

        Parameters
        ----------
        number : int
            Of entries, committed.
        head : str
            Hash of all of them.
        """
        with _lock:
            if number >= _seen.get(self.facts["identity"], (0, ""))[0]:
                _seen[self.facts["identity"]] = (number, head)

    def _compare_with_seen(self, hashes: list[str]) -> None:
        number, head = _seen.get(self.facts["identity"], (0, hashes[0]))
        if len(hashes) <= number or not _same(hashes[number], head):
            raise LedgerError(
                f"The ledger {str(self.path)!r} lacks charges that this process has seen: it is an older copy, or one that went "
                "its own way. Expected the file that holds all charges. Nothing was charged."
            )
        self.remember(len(hashes) - 1, hashes[-1])

    def _check_key(self) -> None:
        """Refuse a file that has a key where none is given, the reverse, and another key."""
        known, mine = self.facts.get("key"), self.chain.fingerprint(self.facts["identity"])
        if known == mine:
            return
        expected = f"expected it as key= or in the environment variable {VARIABLE}"
        if mine is None:
            problem = f"was made with a key; {expected}"
        elif known is None:
            problem = f"has no key, but one is given, by key= or the environment variable {VARIABLE}; expected none for this file"
        else:
            problem = f"was made with another key; {expected}"
        raise LedgerError(f"The ledger {str(self.path)!r} {problem}. Nothing was charged.")

    def _head(self, connection: sqlite3.Connection) -> str:
        row = connection.execute("SELECT value FROM facts WHERE name = 'head'").fetchone()
        if row is None:
            raise damaged(self.path)
        return row[0]


def temporary_file(owner: object) -> Path:
    """Return the path of a file, not made yet, that goes with an object, in the process that made it.

    Parameters
    ----------
    owner : object
        Whose end is that of the file.

    Returns
    -------
    Path
        In a directory of its own.
    """
    directory = tempfile.mkdtemp(prefix="skdp-ledger-")
    weakref.finalize(owner, _remove, directory, os.getpid())
    return Path(directory) / "ledger.sqlite"


def _remove(directory: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def _facts(connection: sqlite3.Connection, path: Path) -> dict[str, Any]:
    row = connection.execute("SELECT value FROM facts WHERE name = 'facts'").fetchone()
    facts = None
    with contextlib.suppress(ValueError):
        facts = json.loads(row[0]) if row else None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT or "identity" not in facts:
        raise damaged(path)
    return facts


def _refuse_second_name(path: Path) -> None:
    """Refuse hard links, which SQLite cannot see: the journal of one name may take back a charge made by another name."""
    for _ in range(50):  # a new file has two names, for a moment
        if path.stat().st_nlink < 2:
            return
        time.sleep(0.02)
    raise LedgerError(
        f"The ledger {str(path)!r} has more than one name (hard links). After a crash SQLite could take back a charge that was "
        "made by the other name. Expected one name, and symbolic links to it. Nothing was charged."
    )


def _refuse_wal(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        raise LedgerError(
            f"The ledger {str(path)!r} was set to SQLite's WAL journal mode, where the last charges are not in the file itself. "
            "Expected the mode it was made with: PRAGMA journal_mode=DELETE sets it, in SQLite. Nothing was charged."
        )


def _same(first: object, second: str) -> bool:
    return isinstance(first, str) and hmac.compare_digest(first.encode(), second.encode())


def _publish(name: str, path: Path) -> None:
    """Give the finished file its name, unless another process was faster."""
    try:
        os.link(name, path)
    except FileExistsError:
        raise
    except OSError:  # no hard links on this file system: the one who makes the claim may rename
        claim = Path(f"{path}.claim")
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
        try:
            if path.exists():
                raise FileExistsError(path) from None
            os.rename(name, path)
        finally:
            claim.unlink()


def _await(path: Path) -> None:
    """Wait for the process that was faster, a moment."""
    for _ in range(100):
        if path.exists():
            return
        time.sleep(0.02)
    raise LedgerError(f"The ledger {str(path)!r} could not be made; expected that no file {path.name}.claim is left beside it.")


def damaged(path: Path) -> LedgerError:
    """Return the error about a file that cannot be read as a ledger.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    LedgerError
        To be raised.
    """
    return LedgerError(
        f"The file {str(path)!r} is no ledger, or a damaged or half-written one. Nothing was charged. If it was a ledger, what "
        "was spent cannot be read from it: go back to a copy that holds all entries, or take the budget as spent."
    )


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, allow_nan=False)

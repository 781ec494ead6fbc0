"""Read and write the file of a ledger: SQLite, one transaction per charge, a chain of hashes over all entries."""

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

FORMAT = "skdp-ledger-1"  # version of the file format; files of another version are refused

# Seconds that a charge waits for other writers before it fails. A choice, well above the time of one charge.
PATIENCE = 120.0

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, chain TEXT NOT NULL);
"""

_seen: dict[str, tuple[int, str]] = {}  # by identity of the ledger: number of entries and last hash that this process has seen
_lock = threading.Lock()


class Store:
    """Store facts that never change and entries that are only appended.

    Every entry has a hash of itself and of all entries before it, and the last hash is stored beside the facts. So an entry that
    was changed, lost or half written is detected. Without a key everybody can compute these hashes: they detect accidents, not
    manipulation. With a key only its holders can compute them. Only a process that has seen later entries detects that the whole
    file was replaced by an older copy.

    Parameters
    ----------
    path : Path
        An existing file. A charge also survives a power failure, unless the facts say that the file is temporary.
    chain : Chain
        Hashes of the entries.

    Raises
    ------
    LedgerError
        If the file does not exist, is damaged, or has another key.
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
        """Write a new file, completely or not at all; an existing file is not changed.

        Parameters
        ----------
        path : Path
            Path of the file.
        facts : dict
            Facts that never change.
        chain : Chain
            Hashes of the entries.
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
            raise LedgerError(f"The ledger {str(path)!r} cannot be written; expected a disk with free space.") from None
        finally:
            Path(name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def transaction(self, writing: bool) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction; a writer excludes all others until its end, and an error undoes its writes.

        Parameters
        ----------
        writing : bool
            Whether to exclude other writers.

        Yields
        ------
        sqlite3.Connection
            A connection for this thread and process.
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
        """Check the chain and return all entries.

        Parameters
        ----------
        connection : sqlite3.Connection
            Connection from `transaction`.

        Returns
        -------
        list of str
            Entries as JSON, in order.

        Raises
        ------
        LedgerError
            If an entry was changed, lost or half written, or if the whole file was replaced, for example by an older copy.
        """
        rows = connection.execute("SELECT number, content, chain FROM entries ORDER BY number").fetchall()
        facts = _facts(connection, self.path)
        if facts["identity"] != self.facts["identity"]:
            raise LedgerError(
                f"The ledger {str(self.path)!r} was replaced by another one while it was in use. Nothing was charged."
            )
        if connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')"
        ).fetchone():  # they could undo a charge
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
        """Append an entry.

        Parameters
        ----------
        connection : sqlite3.Connection
            Connection from `transaction` with ``writing=True``, on which `entries` was called.
        content : str
            The entry as JSON.

        Returns
        -------
        (int, str)
            Number of entries and last hash, to pass to `remember` after the commit.
        """
        row = connection.execute("SELECT number, chain FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        number, last = row or (0, self.chain.link("", _text(self.facts)))
        chain = self.chain.link(last, content)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number + 1, content, chain))
        connection.execute("UPDATE facts SET value = ? WHERE name = 'head'", (self.chain.seal(chain),))
        return number + 1, chain

    def remember(self, number: int, head: str) -> None:
        """Remember in this process how many entries the ledger has, so that a file with fewer entries is refused.

        Parameters
        ----------
        number : int
            Number of committed entries.
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
                f"The ledger {str(self.path)!r} lacks charges that this process has seen: it is an older copy, or a copy with "
                "charges of its own. Use the file that holds all charges. Nothing was charged."
            )
        self.remember(len(hashes) - 1, hashes[-1])

    def _check_key(self) -> None:
        """Refuse a file with a key if none is given, a file without a key if one is given, and a file with another key."""
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
    """Return a path for a file that is deleted together with an object, in the process that created the object.

    Parameters
    ----------
    owner : object
        Object whose deletion deletes the file.

    Returns
    -------
    Path
        Path of a file that does not exist yet, in a new directory of its own.
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
    """Refuse hard links: SQLite does not see them, and the journal of one name may undo a charge by another name."""
    for _ in range(50):  # a new file has two names for a moment
        if path.stat().st_nlink < 2:
            return
        time.sleep(0.02)
    raise LedgerError(
        f"The ledger {str(path)!r} has more than one name (hard links). After a crash SQLite could undo a charge that was made "
        "by the other name. Use one name; symbolic links to it are allowed. Nothing was charged."
    )


def _refuse_wal(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        raise LedgerError(
            f"The ledger {str(path)!r} is in SQLite's WAL journal mode, where the last charges are not in the file itself. "
            "Use the original mode, which PRAGMA journal_mode=DELETE sets in SQLite. Nothing was charged."
        )


def _same(first: object, second: str) -> bool:
    return isinstance(first, str) and hmac.compare_digest(first.encode(), second.encode())


def _publish(name: str, path: Path) -> None:
    """Give the finished file its name, unless another process has created a file with that name."""
    try:
        os.link(name, path)
    except FileExistsError:
        raise
    except OSError:  # no hard links on this file system: the process that creates the claim file renames
        claim = Path(f"{path}.claim")
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
        try:
            if path.exists():
                raise FileExistsError(path) from None
            os.rename(name, path)
        finally:
            claim.unlink()


def _await(path: Path) -> None:
    """Wait up to two seconds until another process has published the file."""
    for _ in range(100):
        if path.exists():
            return
        time.sleep(0.02)
    raise LedgerError(
        f"The ledger {str(path)!r} could not be created; expected that no file {path.name}.claim is left beside it."
    )


def damaged(path: Path) -> LedgerError:
    """Return the error about a file that cannot be read as a ledger.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    LedgerError
        The error to raise.
    """
    return LedgerError(
        f"The file {str(path)!r} is not a ledger, or a damaged or half-written one. Nothing was charged. If it was a ledger, the "
        "spent budget cannot be read from it: restore a copy that holds all entries, or regard the whole budget as spent."
    )


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, allow_nan=False)

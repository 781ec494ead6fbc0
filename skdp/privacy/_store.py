"""The file of a ledger: SQLite, one transaction per charge, a chain of hashes over all entries."""

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skdp.privacy.errors import LedgerError

__all__ = ["Store", "temporary_file"]

FORMAT = "skdp-ledger-1"
PATIENCE = 120.0  # seconds to wait for other writers
TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, chain TEXT NOT NULL);
CREATE TABLE cache (key TEXT PRIMARY KEY, value BLOB NOT NULL);
"""


class Store:
    """Facts that never change, entries that are only appended, and a cache that may be lost.

    Every entry carries the hash of itself and of all before it, and the last hash stands beside the facts, so that an entry that
    was changed, lost or half written is noticed. An older copy of the whole file cannot be told from the file.

    Parameters
    ----------
    path : Path
        An existing file. Unless its facts say that it is temporary, a charge survives a power failure too.

    Raises
    ------
    LedgerError
        If there is no such file, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts: dict[str, Any] = {"temporary": False}
        with self.transaction(writing=False) as connection:
            self.facts = _facts(connection, path)

    @staticmethod
    def create(path: Path, facts: dict[str, Any]) -> None:
        """Write a new file, whole or not at all; an existing one is left as it is.

        Parameters
        ----------
        path : Path
            Where.
        facts : dict
            What never changes.
        """
        if not path.parent.is_dir():
            raise LedgerError(f"There is no folder {str(path.parent)!r} for the ledger {path.name!r}.")
        handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".new", dir=path.parent)
        os.close(handle)
        try:
            with contextlib.closing(sqlite3.connect(name)) as connection, connection:
                connection.executescript(TABLES)
                content = _text({"format": FORMAT, **facts})
                connection.executemany("INSERT INTO facts VALUES (?, ?)", [("facts", content), ("head", _chained("", content))])
            with contextlib.suppress(FileExistsError):
                _publish(name, path)
            _await(path)
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
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA synchronous = {'OFF' if self.facts['temporary'] else 'EXTRA'}")
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                try:
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
        except sqlite3.OperationalError as error:
            if "no such" in str(error):
                raise _damaged(self.path) from None
            raise LedgerError(f"The ledger {str(self.path)!r} cannot be used: {error}. Nothing was charged.") from None
        except sqlite3.DatabaseError:
            raise _damaged(self.path) from None

    def entries(self, connection: sqlite3.Connection) -> list[tuple[str, str]]:
        """Return all entries, after checking the chain.

        Parameters
        ----------
        connection : sqlite3.Connection
            From `transaction`.

        Returns
        -------
        list of (str, str)
            In order, as JSON, each with the hash of everything up to it.

        Raises
        ------
        LedgerError
            If any entry was changed, lost or half written, or the whole file was replaced.
        """
        rows = connection.execute("SELECT number, content, chain FROM entries ORDER BY number").fetchall()
        facts = _facts(connection, self.path)
        if facts["identity"] != self.facts["identity"]:
            raise LedgerError(
                f"The ledger {str(self.path)!r} was replaced by another one while it was in use. Nothing was charged."
            )
        hashed = _chained("", _text(facts))
        for expected, (number, content, chain) in enumerate(rows, start=1):
            hashed = _chained(hashed, content)
            if number != expected or chain != hashed:
                raise _damaged(self.path)
        if self.head(connection) != hashed:
            raise _damaged(self.path)
        return [(content, chain) for _, content, chain in rows]

    def append(self, connection: sqlite3.Connection, content: str) -> None:
        """Write one more entry.

        Parameters
        ----------
        connection : sqlite3.Connection
            From `transaction`, writing.
        content : str
            JSON.
        """
        head = _chained(self.head(connection), content)
        number = connection.execute("SELECT count(*) FROM entries").fetchone()[0] + 1
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, content, head))
        connection.execute("UPDATE facts SET value = ? WHERE name = 'head'", (head,))

    def head(self, connection: sqlite3.Connection) -> str:
        """Return the hash of everything.

        Parameters
        ----------
        connection : sqlite3.Connection
            From `transaction`.

        Returns
        -------
        str
            Hexadecimal.
        """
        row = connection.execute("SELECT value FROM facts WHERE name = 'head'").fetchone()
        if row is None:
            raise _damaged(self.path)
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
        raise _damaged(path)
    return facts


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


def _damaged(path: Path) -> LedgerError:
    return LedgerError(
        f"The file {str(path)!r} is no ledger, or a damaged or half-written one. Nothing was charged. If it was a ledger, what "
        "was spent cannot be read from it: go back to a copy that holds all entries, or take the budget as spent."
    )


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, allow_nan=False)


def _chained(head: str, content: str) -> str:
    return hashlib.sha256(f"{head}\n{content}".encode()).hexdigest()

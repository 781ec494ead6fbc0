"""Keep a ledger in a SQLite file, with one transaction per charge."""

import contextlib
import getpass
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from skdp.privacy.errors import LedgerError
from skdp.privacy.ledger import _store
from skdp.privacy.ledger._store import Content, damaged

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, chain TEXT NOT NULL);
"""


class File:
    """Keep a ledger in a SQLite file.

    Parameters
    ----------
    path : str or Path
        Path of the file; links are followed.
    """

    temporary = False
    found_by_workers = True

    def __init__(self, path: str | Path) -> None:
        self.name, self.path = str(path), Path(path).resolve()
        self.address = str(self.path)

    def is_at(self, address: str) -> bool:
        """Return whether a path leads to this file."""
        with contextlib.suppress(OSError):
            return os.path.samefile(self.path, address)
        return False

    def exists(self) -> bool:
        """Return whether the file exists."""
        return self.path.exists()

    def create(self, content: Content) -> None:
        """Write a new file, completely or not at all; an existing file is not changed."""
        path = self.path
        if not path.parent.is_dir():
            raise LedgerError(f"There is no folder {str(path.parent)!r} for the ledger {path.name!r}.")
        handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".new", dir=path.parent)
        os.close(handle)
        try:
            with contextlib.closing(sqlite3.connect(name)) as connection, connection:
                connection.executescript(TABLES)
                rows = [("facts", content.facts), ("head", content.head)]
                connection.executemany("INSERT INTO facts VALUES (?, ?)", rows)
                connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", content.rows)
            with contextlib.suppress(FileExistsError):
                _publish(name, path)
            _await(path)
        except sqlite3.Error:
            raise LedgerError(f"The ledger {self.address!r} cannot be written; expected a disk with free space.") from None
        finally:
            Path(name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def transaction(self, writing: bool) -> Iterator["_Transaction"]:
        """Open the file for one transaction, with a connection for this thread and process."""
        if not self.path.is_file():
            raise LedgerError(f"There is no ledger file at {self.address!r}; nothing can be charged to it.")
        _refuse_second_name(self.path)
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_store.PATIENCE, isolation_level=None)) as connection:
                # the charge also survives a power failure
                connection.execute(f"PRAGMA synchronous = {'OFF' if self.temporary else 'EXTRA'}")
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                try:
                    _refuse_wal(connection, self.path)
                    yield _Transaction(connection, self.address)
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
        except sqlite3.OperationalError as error:
            if "no such" in str(error) or "decode" in str(error):
                raise damaged(self.address) from None
            raise LedgerError(f"The ledger {self.address!r} cannot be used: {error}. Nothing was charged.") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            raise damaged(self.address) from None


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, address: str) -> None:
        self._connection, self._address = connection, address

    def read(self) -> Content:
        rows = self._connection.execute("SELECT number, content, chain FROM entries ORDER BY number").fetchall()
        facts = dict(self._connection.execute("SELECT name, value FROM facts").fetchall())
        foreign = "SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')"  # they could undo a charge
        if not {"facts", "head"} <= facts.keys() or self._connection.execute(foreign).fetchone():
            raise damaged(self._address)
        return Content(facts["facts"], facts["head"], rows)

    def stamp(self) -> tuple[str, str]:
        return now(), _user()

    def append(self, row: tuple[int, str, str], head: str) -> None:
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?)", row)
        self.retire(head)

    def retire(self, head: str) -> None:
        self._connection.execute("UPDATE facts SET value = ? WHERE name = 'head'", (head,))


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


def now() -> str:
    """Return the time of this machine, in ISO 8601, UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _user() -> str:
    """Return the name of the user of this process; empty where the system has none."""
    with contextlib.suppress(OSError, KeyError, ImportError):  # KeyError up to Python 3.12
        return getpass.getuser()
    return ""

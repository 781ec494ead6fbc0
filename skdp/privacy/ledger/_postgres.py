"""Keep ledgers in a PostgreSQL database: one row per study, held by its writer from the first reading to the commit."""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from importlib import import_module, resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from skdp.privacy.errors import LedgerError
from skdp.privacy.ledger import _store
from skdp.privacy.ledger._store import Content

SCHEME = re.compile(r"(?i)postgres(ql)?(\+\w+)?:/")  # also what libpq does not take, so that it is not taken for a file
# All up to the last @ is user and password, whatever characters a password has, and a port has digits only, so that no part of a
# password is taken for a host or port.
ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/]*)(?::(?P<password>.*))?@)?"
    r"(?P<hosts>(?:\[[^]@/?]*\]|[^][@/?:]|:[0-9]*(?![^,/?]))*)(?P<name>/[^?@]*)?(?:\?(?P<query>.*))?",
    re.S,
)
EXPECTED = "expected postgresql://USER@HOST:PORT/DATABASE?study=NAME, without options that libpq does not know"
SECRET = re.compile("password|secret|_key$")  # in names of options of libpq whose values are secret, such as oauth_client_secret

# Options of libpq that a user may overrule. Choices: a server that is not reached in 10 s is not there, and a connection that is
# lost is noticed after half a minute.
OPTIONS = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
    "client_encoding": "UTF8",
    "fallback_application_name": "skdp",
}

AGAIN = 0.1  # seconds between two questions to a server that does not answer; a choice

# Nothing outlives a transaction, so that a pool may lend the connection to others. No name leads to an object of somebody else.
READING = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog, pg_temp; "
    "SET LOCAL statement_timeout = {patience}"
)
# Each statement after `hold` must see what the last writer committed: READ COMMITTED. A user may have turned synchronous commits
# off. A writer that vanished is given up by the server before those that wait for it give up.
WRITING = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL synchronous_commit = on; "
    "SET LOCAL statement_timeout = {patience}; SET LOCAL idle_in_transaction_session_timeout = {idle}"
)
CREATING = 5_390_714_052_663  # any number: two processes that create the schema wait for each other
NOW = """to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')"""

REASONS = {
    "25006": "the server is a read-only replica, or is set to read only; expected the primary server",
    "57014": "another writer did not end in time, or the server is too slow",
    "42501": "the role may not do that; expected skdp_charge for charges, skdp_read for reading, the owner for new studies",
}


class Study:
    """Keep a ledger as one study of a PostgreSQL database.

    Parameters
    ----------
    address : str
        URL as libpq takes it, with or without ``?study=``. A password in it stays in this object.
    study : str or None
        Name of the study; None takes it from the address.

    Raises
    ------
    ValueError
        If the address is wrong, or names no study or another one; no part of it is quoted.
    ImportError
        If psycopg is missing.
    """

    path = None
    temporary = False

    def __init__(self, address: str, study: str | None = None) -> None:
        parts = ADDRESS.fullmatch(address)
        if parts is None:
            raise ValueError(f"The address of a ledger on a server is wrong; {EXPECTED}.")
        asked = (parts["query"] or "").replace("+", "%2B")  # to libpq, + is no space
        query = dict(parse_qsl(asked, keep_blank_values=True))
        secrets = {name: query.pop(name) for name in [*query] if SECRET.search(name)}
        if parts["password"]:
            secrets["password"] = unquote(parts["password"])
        named = query.pop("study", None)
        if not (study or named) or (study and named and study != named):
            raise ValueError(f"study= and the address name {'two studies' if named else 'no study'}; {EXPECTED}, or study=NAME.")
        self.study = str(study or named)
        start = f"postgresql://{parts['user'] + '@' if parts['user'] else ''}{parts['hosts']}{parts['name'] or ''}"
        self._url = f"{start}?{urlencode(query, quote_via=quote)}" if query else start
        self.name = self.address = f"{self._url}{'&' if query else '?'}study={quote(self.study, safe='')}"
        self._secrets = lambda: secrets  # a function, so that no dump of attributes shows them
        self._options = self._checked_options()

    @property
    def found_by_workers(self) -> bool:
        """Whether no secret is in the address alone; libpq reads PGPASSWORD and .pgpass in each process."""
        return self._secrets().items() <= {("password", os.environ.get("PGPASSWORD"))}

    def is_at(self, address: str) -> bool:
        """Return whether an address leads to the same study in the same database of the same server."""
        if not SCHEME.match(address):
            return False
        other = Study(address)
        return (self.study, self._database()) == (other.study, other._database())

    def exists(self) -> bool:
        """Return whether the database has the study."""
        with self._session(READING) as connection:
            return self._has_schema(connection) and self._has_study(connection)

    def create(self, content: Content) -> None:
        """Write a new study, and the schema if there is none; an existing study is not changed."""
        with self._session(WRITING) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATING])
            if not self._has_schema(connection):
                connection.execute(resources.files(__package__).joinpath("postgres.sql").read_text("utf-8"))
            new = "INSERT INTO skdp_ledger.studies VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            if connection.execute(new, [self.study, content.facts, content.head]).rowcount:
                with connection.cursor() as cursor:
                    rows = [(self.study, *row) for row in content.rows]
                    cursor.executemany("INSERT INTO skdp_ledger.entries VALUES (%s, %s, %s, %s)", rows)

    @contextlib.contextmanager
    def transaction(self, writing: bool) -> Iterator["_Transaction"]:
        """Open a connection for one transaction; a writer holds the row of the study."""
        with self._session(WRITING if writing else READING) as connection:
            transaction = _Transaction(connection, self)
            if writing:
                transaction.hold()
            yield transaction

    @contextlib.contextmanager
    def _session(self, begin: str) -> Iterator["_Connection"]:
        """Open a connection and a transaction, which is committed at the end.

        If the answer to the commit is lost, the server is asked whether it has the appended row.
        """
        problem, doubt = "the server undid the transaction", None
        try:
            with self._connected(begin) as connection:
                yield connection
                doubt = connection.appended
                if connection.execute("COMMIT").statusmessage == "COMMIT":
                    return
        except _psycopg().Error as error:
            problem = self._reason(error)
        if doubt is None or not self._has_row(doubt):
            raise LedgerError(f"The ledger {self.address!r} cannot be used: {problem}. Nothing was charged.") from None

    def _has_row(self, row: tuple[int, str, str]) -> bool:
        """Return whether the server has a row, after the transaction that appended it has ended there."""
        deadline = time.monotonic() + _store.PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(_psycopg().Error), self._connected(WRITING) as connection:
                transaction = _Transaction(connection, self)
                transaction.hold()  # which the transaction in doubt holds until it has ended
                return row in transaction.rows(row[0])
            time.sleep(AGAIN)
        raise LedgerError(
            f"The connection to the ledger {self.address!r} was lost while charge {row[0]} was written, and the server does not "
            "answer. Whether the charge was made is not known: regard it as made. Nothing was released."
        )

    @contextlib.contextmanager
    def _connected(self, begin: str) -> Iterator["_Connection"]:
        raw = _psycopg().connect(**{**OPTIONS, **self._options, **self._secrets()}, autocommit=True, prepare_threshold=None)
        try:
            patience = round(1000 * _store.PATIENCE)
            raw.execute(begin.format(patience=patience, idle=patience // 2))
            yield _Connection(raw)
        finally:
            raw.close()  # the server undoes what is not committed

    def _checked_options(self) -> dict[str, Any]:
        psycopg = _psycopg()
        with contextlib.suppress(psycopg.Error):
            return psycopg.conninfo.conninfo_to_dict(self._url)
        raise ValueError(f"The address of a ledger on a server is wrong; {EXPECTED}.")

    def _database(self) -> tuple[Any, ...]:
        # A copy, such as a replica, has the same identifiers, but was started by itself.
        ask = "SELECT extract(epoch FROM pg_postmaster_start_time())::text, system_identifier, oid"
        ask += " FROM pg_control_system(), pg_database WHERE datname = current_database()"
        with self._session(READING) as connection:
            return connection.execute(ask).fetchone()

    def _has_schema(self, connection: "_Connection") -> bool:
        return connection.execute("SELECT FROM pg_namespace WHERE nspname = 'skdp_ledger'").rowcount > 0

    def _has_study(self, connection: "_Connection") -> bool:
        return connection.execute("SELECT FROM skdp_ledger.studies WHERE study = %s", [self.study]).rowcount > 0

    def _reason(self, error: Any) -> str:
        """Return why the server refused, in one line without secrets."""
        text = REASONS.get(error.sqlstate) or error.diag.message_primary or str(error).strip().partition("\n")[0] or "no answer"
        for secret in self._secrets().values():
            text = text.replace(secret, "***") if secret else text
        return text


class _Connection:
    """Execute statements, and remember the row whose commit may be in doubt."""

    def __init__(self, raw: Any) -> None:
        self.execute, self.cursor = raw.execute, raw.cursor
        self.appended: tuple[int, str, str] | None = None


class _Transaction:
    def __init__(self, connection: _Connection, study: Study) -> None:
        self._connection, self._study = connection, study

    def hold(self) -> None:
        """Wait for other writers of the study, and keep them waiting."""
        asked = "SELECT skdp_ledger.hold(%s), current_setting('fsync')"
        if self._connection.execute(asked, [self._study.study]).fetchone()[1] != "on":
            raise LedgerError(f"The server of the ledger {self._study.address!r} has fsync=off, so that it may lose charges.")

    def read(self) -> Content:
        """Return all that is stored."""
        asked = "SELECT facts, head FROM skdp_ledger.studies WHERE study = %s"
        known = self._connection.execute(asked, [self._study.study]).fetchone()
        if known is None:
            raise LedgerError(f"There is no ledger {self._study.address!r}; nothing can be charged to it.")
        return Content(known[0], known[1], self.rows())

    def rows(self, first: int = 0) -> list[tuple[int, str, str]]:
        """Return all rows from a number on."""
        asked = "SELECT number, content, chain FROM skdp_ledger.entries WHERE study = %s AND number >= %s ORDER BY number"
        return self._connection.execute(asked, [self._study.study, first]).fetchall()

    def stamp(self) -> tuple[str, str]:
        """Return the time of the server, and the role that is logged in."""
        return self._connection.execute(f"SELECT {NOW}, session_user").fetchone()

    def append(self, row: tuple[int, str, str], head: str) -> None:
        """Append a row, and replace the head."""
        self._connection.execute("SELECT skdp_ledger.append(%s, %s, %s, %s, %s)", [self._study.study, *row, head])
        self._connection.appended = row

    def retire(self, head: str) -> None:
        """Replace the head."""
        self._connection.execute("UPDATE skdp_ledger.studies SET head = %s WHERE study = %s", [head, self._study.study])


def is_url(address: str | Path | None) -> bool:
    """Return whether an address is that of a server."""
    return SCHEME.match(str(address)) is not None


def _psycopg() -> Any:
    try:
        return import_module("psycopg")
    except ImportError:
        raise ImportError('psycopg is missing; pip install "skdp[postgres]" installs what a ledger on a server needs.') from None

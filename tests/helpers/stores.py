"""What people who reach the file of a ledger, or the database, can do to it beside the package."""

import contextlib
import sqlite3
from urllib.parse import parse_qs, urlsplit

from skdp.privacy.ledger import _book

__all__ = ["held", "remove", "rewrite", "stored"]

OPEN = "SET session_replication_role = replica; SET search_path = skdp_ledger"  # a superuser switches triggers off


@contextlib.contextmanager
def database(ledger):
    """A connection, and the name of the study; None for a file."""
    if ledger.path is not None:
        with contextlib.closing(sqlite3.connect(ledger.path)) as connection, connection:
            yield connection, None
    else:
        import psycopg

        parts = urlsplit(ledger.address)
        with psycopg.connect(parts._replace(query="").geturl()) as connection:
            connection.execute(OPEN)
            yield connection, parse_qs(parts.query)["study"][0]


def rewrite(ledger, change, forget=True):
    """Let somebody work on the rows (number, content, chain) and on the facts; this process may forget that it saw the ledger."""
    with database(ledger) as (connection, study):
        if study is None:
            rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
            facts = dict(connection.execute("SELECT name, value FROM facts"))
            change(rows, facts)
            connection.execute("DELETE FROM entries")
            connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)
            connection.execute("DELETE FROM facts")
            connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
        else:
            asked = "SELECT number, content, chain FROM entries WHERE study = %s ORDER BY number"
            rows = connection.execute(asked, [study]).fetchall()
            found = connection.execute("SELECT facts, head FROM studies WHERE study = %s", [study]).fetchone()
            facts = dict(zip(("facts", "head"), found, strict=True))
            change(rows, facts)
            connection.execute("DELETE FROM entries WHERE study = %s", [study])
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO entries VALUES (%s, %s, %s, %s)", [(study, *row) for row in rows])
            new = [facts["facts"], facts.get("head", ""), study]
            connection.execute("UPDATE studies SET facts = %s, head = %s WHERE study = %s", new)
    if forget:  # as in a process that has not seen it
        _book._seen.clear()


def stored(ledger):
    """All that is stored of a ledger, as bytes."""
    found = [ledger.path.read_bytes()] if ledger.path else []
    rewrite(ledger, lambda rows, facts: found.append(repr((rows, facts)).encode()))
    return b"".join(found)


def remove(ledger):
    """Delete a ledger."""
    if ledger.path is not None:
        ledger.path.unlink()
        return
    with database(ledger) as (connection, study):
        connection.execute("DELETE FROM entries WHERE study = %s", [study])
        connection.execute("DELETE FROM studies WHERE study = %s", [study])


@contextlib.contextmanager
def held(ledger):
    """Be a writer that does not end."""
    with database(ledger) as (connection, study):
        if study is None:
            connection.execute("BEGIN IMMEDIATE")
        else:
            connection.execute("SELECT FROM studies WHERE study = %s FOR UPDATE", [study])
        yield

"""Tests ledgers on a PostgreSQL server: who may do what, passwords, and what is charged when a connection is lost."""

import contextlib
import hashlib
import itertools
import json
import multiprocessing
import pickle
import random
import re
import signal
import socket
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from marks import slow
from releases import witness_releases
from servers import PASSWORD
from sklearn.base import clone

from benchmarks.ledgers import race
from skdp import DPLogisticRegression, LedgerError, PrivacyLedger
from skdp.__main__ import main
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger import _store
from skdp.privacy.ledger._book import Book, store_at
from skdp.privacy.ledger._chain import Chain
from skdp.privacy.ledger._postgres import Study
from skdp.privacy.ledger._sqlite import File
from skdp.solvers import GradientDescent

DELTA = 1e-6
X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
GD = DPLogisticRegression(0.2, delta=DELTA, solver=GradientDescent(n_steps=3))
CEILING = {"epsilon": 3, "delta": DELTA, "adjacency": "replace_one"}
NUMBERS = itertools.count(1)
context = multiprocessing.get_context("forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn")
context.set_forkserver_preload(["skdp.__main__", "benchmarks.ledgers", "psycopg", "pytest"])


@pytest.fixture
def study(server):
    """Address of a study that does not exist yet."""
    return f"{server.url()}?study=own-{next(NUMBERS)}"


@pytest.fixture(scope="module")
def team(server):
    """A database that needs a password, of the role postgres; ann may charge, bob may read, eve may nothing."""
    server.execute("CREATE DATABASE team")
    PrivacyLedger(server.url("team", password=PASSWORD), study="first", **CEILING)
    for name, role in (("ann", "skdp_charge"), ("bob", "skdp_read"), ("eve", None)):
        server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'", *([f"GRANT {role} TO {name}"] if role else []))
    return server


def ledger_of(team, user, study="first", **ceiling):
    return PrivacyLedger(team.url("team", user, PASSWORD), study=study, **ceiling)


def notes(ledger):
    return [entry.spending.estimator for entry in ledger.entries]


def test_a_study_is_charged_like_a_file(study):
    ledger = PrivacyLedger(study, **CEILING)
    with ledger:
        GD.fit(X, y)
        pickle.loads(pickle.dumps(GD)).fit(X, y)
    PrivacyLedger(study).add(0.1, note="by another process")
    assert [entry.user for entry in ledger.entries] == ["postgres"] * 3
    assert ledger.token == (study, ledger.identity) and ledger.path is None
    with pytest.raises(ValueError, match=r"epsilon=4.*was made with epsilon=3.0"):
        PrivacyLedger(study, epsilon=4, delta=DELTA)
    other = PrivacyLedger(study, study=study.partition("=")[2], **CEILING)
    assert other.identity == ledger.identity
    with ledger, other:
        GD.fit(X, y)
    assert len(ledger.entries) == 4


@pytest.mark.slow
def test_one_study_by_two_addresses_is_one_ledger(study):
    ledger, other = PrivacyLedger(study, **CEILING), PrivacyLedger(study.replace("127.0.0.1", "localhost"))
    with ledger, other:
        GD.fit(X, y)
    assert len(ledger.entries) == 1
    with other:
        bound = pickle.dumps(GD)
    with ledger:
        pickle.loads(bound).fit(X, y)
    assert len(ledger.entries) == 2


@pytest.mark.slow
def test_a_copy_of_the_server_is_another_place(study, server):
    ledger = PrivacyLedger(study, **CEILING)
    with server.copied() as twin:
        other = PrivacyLedger(study.replace(str(server.port), str(twin.port)))
        assert other.identity == ledger.identity
        with ledger, pytest.raises(LedgerError, match=r"one ledger and a copy of it.*Nothing was charged"), other:
            pass


@pytest.mark.slow
def test_roles(team):
    ann, bob = ledger_of(team, "ann"), ledger_of(team, "bob")
    with ann:
        GD.fit(X, y)
    assert bob.entries == ann.entries and bob.entries[-1].user == "ann"
    for refused in (
        lambda: bob.add(0.1, note="by a reader"),
        lambda: ledger_of(team, "eve"),
        lambda: ledger_of(team, "ann", "second", **CEILING),
        lambda: ledger_of(team, "bob", "second", **CEILING),
    ):
        with pytest.raises(LedgerError, match=r"the role may not do that; expected skdp_charge .* Nothing was charged"):
            refused()
    with pytest.raises(ValueError, match=r"There is no ledger .* yet; a new one needs a ceiling"):
        ledger_of(team, "ann", "second")
    assert len(ledger_of(team, "bob").entries) == len(ann.entries)


def forged(team, **changes):
    """Arguments of `append`, as a client writes them but for some changes; hashes are computed as they are there."""
    entries = ledger_of(team, "ann").entries
    (chain,) = team.execute("SELECT chain FROM skdp_ledger.entries WHERE number = 2 AND study = 'first'", database="team")[0]
    zone = changes.pop("zone", "+00:00")
    clock = f"clock_timestamp() AT TIME ZONE interval '{zone}'"
    (now,) = team.execute(f"SELECT to_char({clock}, 'YYYY-MM-DD\"T\"HH24:MI:SS.MS') || '{zone}'")[0]
    content = {**json.loads(entries[1].to_json()), "number": 3, "time": now}
    place = changes.pop("place", 3)
    content["charge"].update(changes.pop("charge", {}))
    wrong = changes.pop("chain", None)
    text = json.dumps({**content, **changes}, sort_keys=True)
    hashed = wrong or hashlib.sha256(f"{chain}\n{text}".encode()).hexdigest()
    return "SELECT skdp_ledger.append('first', %s, %s, %s, %s)", [place, text, hashed, hashed]


ROW = "'first', 3, '{}', ''"
TAMPERINGS = {
    "entry changed": "UPDATE skdp_ledger.entries SET content = '{}'",
    "entry held": "SELECT FROM skdp_ledger.entries FOR UPDATE",
    "hash changed": "UPDATE skdp_ledger.entries SET chain = ''",
    "rows swapped": "UPDATE skdp_ledger.entries SET number = 3 - number",
    "last entry deleted": "DELETE FROM skdp_ledger.entries WHERE number = 2",
    "all deleted": "TRUNCATE skdp_ledger.entries, skdp_ledger.studies",
    "row beside the function": f"INSERT INTO skdp_ledger.entries VALUES ({ROW})",
    "row in a query": f"WITH new AS (INSERT INTO skdp_ledger.entries VALUES ({ROW}) RETURNING 1) SELECT * FROM new",
    "ceiling raised": "UPDATE skdp_ledger.studies SET facts = replace(facts, '3.0', '9.0')",
    "head changed": "UPDATE skdp_ledger.studies SET head = ''",
    "study forged": "INSERT INTO skdp_ledger.studies VALUES ('forged', '{}', '')",
    "study deleted": "DELETE FROM skdp_ledger.studies",
    "trigger disabled": "ALTER TABLE skdp_ledger.entries DISABLE TRIGGER ALL",
    "triggers off": "SET session_replication_role = replica",
    "function replaced": "CREATE OR REPLACE FUNCTION skdp_ledger.hold(name text) RETURNS void LANGUAGE sql AS $$ SELECT $$",
    "trigger added": "CREATE TRIGGER undo AFTER INSERT ON skdp_ledger.entries EXECUTE FUNCTION skdp_ledger.refuse()",
    "table dropped": "DROP TABLE skdp_ledger.entries",
    "owner": "SET ROLE postgres",
    "table taken": "ALTER TABLE skdp_ledger.entries OWNER TO ann",
    "gap in the numbers": {"place": 4, "number": 4},
    "number twice": {"place": 2, "number": 2},
    "two numbers": {"number": 4},
    "back-dated": {"time": "2020-01-01T00:00:00+00:00"},
    "dated ahead": {"time": "2099-01-01T00:00:00+00:00"},
    "no time": {"time": None},
    "a word for a time": {"time": "now"},
    "hours back by a time zone": {"zone": "-15:00"},
    "hours ahead by a time zone": {"zone": "+14:00"},
    "text for the number of the entry": {"number": "3"},
    "name of another": {"user": "bob"},
    "budget given back": {"charge": {"epsilon": -1.0}},
    "budget given back by a cover": {"charge": {"mu": -0.5}},
    "text for a number": {"charge": {"mu": "0.5"}},
    "no number": {"charge": {"slack": None}},
    "wrong hash": {"chain": "0" * 64},
}


@pytest.mark.slow
def test_an_appending_role_changes_nothing_that_is_written(team):
    import psycopg

    ann = ledger_of(team, "ann")
    while len(ann.entries) < 2:
        ann.add(0.01, note="one")
    if len(ann.entries) > 2:
        pytest.fail("this test needs a study of two entries")
    before = team.execute("SELECT * FROM skdp_ledger.entries", "SELECT * FROM skdp_ledger.studies", database="team")
    for name, tampering in TAMPERINGS.items():
        statement, values = (tampering, None) if isinstance(tampering, str) else forged(team, **tampering)
        with pytest.raises(psycopg.Error) as caught, team.connect("team", "ann") as connection:
            connection.execute(statement, values)
        assert not isinstance(caught.value, (psycopg.errors.SyntaxError, psycopg.errors.UndefinedFunction)), name
        assert team.execute("SELECT * FROM skdp_ledger.entries", "SELECT * FROM skdp_ledger.studies", database="team") == before
    statement, values = forged(team)  # the twin: without a change it is appended
    with team.connect("team", "ann") as connection:
        connection.execute(statement, values)
    assert len(ann.entries) == 3


@pytest.mark.slow
def test_default_privileges_of_the_owner_give_nobody_more(team):
    team.execute("CREATE DATABASE generous")
    given = [f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO bob, PUBLIC" for kind in ("TABLES", "FUNCTIONS", "SCHEMAS")]
    team.execute(*given, database="generous")
    PrivacyLedger(team.url("generous", password=PASSWORD), study="first", **CEILING)
    found = "SELECT relname, acl.grantee::regrole::text, acl.privilege_type FROM pg_class, aclexplode(relacl) AS acl"
    tables = team.execute(f"{found} WHERE relnamespace = 'skdp_ledger'::regnamespace", database="generous")
    roles = ("skdp_charge", "skdp_read")
    assert {row for row in tables if row[1] != "postgres"} == {
        (table, role, "SELECT") for table in ("studies", "entries") for role in roles
    }
    others = "SELECT acl.grantee::regrole::text FROM pg_proc, aclexplode(proacl) AS acl WHERE pronamespace = {0}"
    others += " UNION SELECT acl.grantee::regrole::text FROM pg_namespace, aclexplode(nspacl) AS acl WHERE oid = {0}"
    granted = team.execute(others.format("'skdp_ledger'::regnamespace"), database="generous")
    assert {role for (role,) in granted} == {"postgres", *roles}


@pytest.mark.slow
def test_who_may_create_functions_does_not_act_as_the_owner(team):
    """Until PostgreSQL 15 everybody may create functions in public, also some that fit a call better than the real ones."""
    team.execute("CREATE DATABASE shared")
    team.execute("GRANT CREATE ON SCHEMA public TO eve", database="shared")
    team.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO bob", database="shared")
    acts = "LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.acts VALUES (current_user); RETURN"
    eve = [
        "CREATE TABLE public.acts (who text)",
        "GRANT INSERT ON public.acts TO PUBLIC",
        f"CREATE FUNCTION public.format(text, text) RETURNS text {acts} pg_catalog.format($1, $2); END $$",
        f"CREATE FUNCTION public.quote_ident(name) RETURNS text {acts} pg_catalog.quote_ident($1::text); END $$",
        *(f"CREATE TABLE public.{name} (study text, number integer)" for name in ("studies", "entries")),
    ]
    team.execute(*eve, "SELECT public.format('%s', '')", database="shared", user="eve")
    ledger = PrivacyLedger(team.url("shared", password=PASSWORD), study="first", **CEILING)
    ledger.add(0.1, note="one")
    assert team.execute("SELECT who FROM public.acts", database="shared") == [("eve",)] and len(ledger.entries) == 1


@pytest.mark.slow
def test_a_database_of_another_encoding_is_refused_when_it_is_new(team):
    """Debian without a locale makes SQL_ASCII, where no charge could be made."""
    team.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(LedgerError, match=r"encoding SQL_ASCII; expected UTF8"):
        PrivacyLedger(team.url("ascii", password=PASSWORD), study="first", **CEILING)


@pytest.mark.slow
def test_the_owner_is_stopped_by_triggers(study, server):
    import psycopg

    PrivacyLedger(study, **CEILING).add(0.1, note="one")
    for statement in list(TAMPERINGS.values())[:12]:
        if not statement.startswith(("INSERT", "WITH", "SELECT")) and "SET head" not in statement:
            with pytest.raises(psycopg.errors.RaiseException, match="only appended"):
                server.execute(statement)


@pytest.mark.slow
def test_no_password_anywhere(team, monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    ledger = ledger_of(team, "ann")
    address = team.url("team", "ann", PASSWORD) + "?study=first"
    found = [repr(ledger), repr(vars(ledger)), repr(vars(ledger._book)), repr(vars(ledger._book.store)), ledger.to_json()]
    found += [str(ledger.summary()), ledger._repr_html_(), ledger.to_html(), pickle.dumps(ledger)]
    with ledger:
        with pytest.raises(PrivacyAccountingError, match="password") as caught:
            pickle.dumps(GD)
        model = clone(GD).fit(X, y)
        found.append(str(caught.value))
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        found += [pickle.dumps(GD), pickle.dumps(model), str(model.privacy_report_), model.privacy_report_.to_json()]
    assert main(["ledger", address, "--html", str(tmp_path / "a.html"), "--out", str(tmp_path / "a.json")]) == 0
    found += [(tmp_path / "a.html").read_bytes(), (tmp_path / "a.json").read_bytes()]
    assert main(["ledger", address.replace("first", "none"), "--debug"]) == 2
    assert main(["ledger", address.replace("ann", "nobody"), "--debug"]) == 2
    found += capsys.readouterr()
    wrong = ("127.0.0.1", "127.0.0.1:1"), ("team", "none"), ("?study=first", ""), ("?", "?pasword=hidden1&"), ("127", "[127")
    for one, other in (*wrong, (f":{team.port}", ":port"), ("postgresql://", "postgresql:/"), ("first", "second")):
        with pytest.raises((ValueError, LedgerError)) as caught:
            PrivacyLedger(address.replace(one, other, 1), key="k" * 20)
        found += [str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value, chain=True))]
        found.append(pickle.dumps(caught.value))
    for raw in ("pa/ss", "pa@ss", "pa:ss", "pa?ss", "pa#ss", "pa%ss", "pa ss", "[pa]ss"):
        with pytest.raises(LedgerError) as caught:
            PrivacyLedger(f"postgresql://ann:{raw}word@127.0.0.1:1/team?study=first")
        assert "ssword" not in str(caught.value)
    texts = [text.decode("latin-1") if isinstance(text, bytes) else text for text in found]
    assert not [text for text in texts if PASSWORD in text or PASSWORD.replace(" ", "%20") in text or "hidden1" in text]
    assert all("first" in text for text in (texts[0], texts[3]))  # the twin: the search finds what is there


@pytest.mark.parametrize(
    "address",
    (
        *(
            f"postgresql://ann@host/db?{name}=pa+ss1"
            for name in ("password", "sslpassword", "oauth_client_secret", "scram_client_key")
        ),
        "postgresql://ann:pa+ss1@host/db",
        "postgresql://ann:pa+ss1/db",  # the @ and the host are missing
        "postgresql://one:5432,ann:pa+ss1",
        "POSTGRES://ann:pa+ss1@host/db",
        "postgresql+psycopg://ann:pa+ss1@host/db",
    ),
)
def test_no_secret_is_in_the_address(address):
    pytest.importorskip("psycopg")
    address += f"{'&' if '?' in address else '?'}study=cohort+7"
    try:
        store = store_at(address)
    except ValueError as error:
        assert "ss1" not in str(error) and not re.match(r"postgresql://(.*@|\w+\?)", address)
    else:
        assert store.address == "postgresql://ann@host/db?study=cohort%2B7" and store.study == "cohort+7"
        assert list(store._secrets().values()) == ["pa+ss1"] and not store.found_by_workers


@pytest.mark.parametrize(
    "start, options",
    (
        ("postgresql://[::1]:5432/db", {"host": "::1", "port": "5432"}),
        ("postgresql://a:1,[fe80::1]:,c/db", {"host": "a,fe80::1,c", "port": "1,,"}),
        ("postgres://%2Frun%2Fpostgresql/db", {"host": "/run/postgresql"}),
        ("postgresql:///db?host=/run/postgresql", {"host": "/run/postgresql"}),
        ("postgresql:///db?service=x", {"service": "x"}),
        ("postgresql://a/db?ssl=true", {"host": "a", "sslmode": "require"}),
        ("postgresql://a/db?sslmode=verify-full&sslkey=/b%20c", {"host": "a", "sslmode": "verify-full", "sslkey": "/b c"}),
    ),
)
def test_forms_of_addresses(start, options):
    pytest.importorskip("psycopg")
    store = Study(f"{start}{'&' if '?' in start else '?'}study=a")
    assert store._options == Study(store.address)._options == {"dbname": "db", **options}


# --- lost connections


# What a charge sends to the server, in order.
STEPS = {
    "begin": b"READ COMMITTED",
    "lock": b"skdp_ledger.hold",
    "facts": b"SELECT facts",
    "entries": b"SELECT number",
    "time": b"session_user",
    "charge": b"skdp_ledger.append",
    "commit": b"COMMIT\0",
    "end": b"X\0\0\0\4",
}
# Before the server has a message, with it, and after its answer, which the client does not get; or some time after it has it.
MOMENTS = [(step, when, 0.0) for step in STEPS for when in ("before", "with", "after")][:-1]  # the end has no answer
MOMENTS += [("commit", "with", 0.0025 * number) for number in range(1, 28)]
SLOW_COMMIT = "&options=-c%20commit_delay%3D50000%20-c%20commit_siblings%3D0"  # 0.05 s before what is committed is on the disk


def n_charged_at(step, when):
    """How many charges a moment leaves; None if that depends on the server."""
    if step == "commit":
        return {"before": 0, "with": None, "after": 1}[when]
    return int(step == "end")


class Link:
    """Hands bytes on between a client and a server, and loses the connection in a charge, at a moment."""

    def __init__(self, client, server, proxy):
        self.client, self.server, self.proxy = client, server, proxy
        self.mute, self.answered = False, threading.Event()
        for copy in (self.ask, self.answer):
            threading.Thread(target=copy, daemon=True).start()

    def answer(self):
        with contextlib.suppress(OSError):
            while data := self.server.recv(65536):
                if self.mute:
                    self.answered.set()
                else:
                    self.client.sendall(data)

    def ask(self):
        charging = False
        with contextlib.suppress(OSError):
            while data := self.client.recv(65536):
                charging = charging or STEPS["begin"] in data
                if charging and self.proxy.moment and STEPS[self.proxy.moment[0]] in data:
                    self.lose(data)
                    break
                self.server.sendall(data)
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def lose(self, data):
        (_, when, seconds), self.proxy.moment = self.proxy.moment, None
        self.mute = True
        if when != "before":
            self.server.sendall(data)
        if when == "after":
            assert self.answered.wait(60)
        time.sleep(seconds)
        self.proxy.act()
        self.proxy.lost.set()


class Proxy:
    """Stands before a server; when it loses a connection, something else may happen, too."""

    def __init__(self, port, moment=None, act=lambda: None):
        self.moment, self.act, self.socket = moment, act, socket.create_server(("127.0.0.1", 0))
        self.lost = threading.Event()
        self.address, self._server = f"postgresql://postgres@127.0.0.1:{self.socket.getsockname()[1]}/postgres", port
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.socket.accept()[0]
                Link(client, socket.create_connection(("127.0.0.1", self._server)), self)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def fit_once(ledger):
    """Fit inside a ledger; return the problem, or an empty text for a model."""
    model, problem = clone(GD), ""
    with ledger:
        try:
            model.fit(X, y)
        except LedgerError as error:
            problem = str(error)
    assert hasattr(model, "coef_") == (not problem)
    return problem


@pytest.mark.slow
@pytest.mark.parametrize("server_goes", (False, True))
@pytest.mark.parametrize("step, when", (("charge", "before"), ("commit", "before"), ("commit", "with"), ("commit", "after")))
def test_a_lost_connection_ends_in_charged_or_not_charged(step, when, server_goes, study, server, monkeypatch):
    """A fit goes on if it was charged, and releases nothing if it was not, or if the server does not answer any more."""
    PrivacyLedger(study, **CEILING)
    proxy = Proxy(server.port)
    ledger = PrivacyLedger(proxy.address, study=study.partition("=")[2])
    proxy.moment = step, when, 0.0
    if server_goes:
        proxy.act = proxy.close
        monkeypatch.setattr(_store, "PATIENCE", 1.0)
    problem = fit_once(ledger)
    assert proxy.lost.wait(60)
    proxy.close()
    entries, expected = PrivacyLedger(study).entries, n_charged_at(step, when)
    assert expected in (None, len(entries))
    if server_goes and step == "commit":
        assert "Whether the charge was made is not known: regard it as made. Nothing was released." in problem
    elif len(entries) == 1:
        assert not problem
    else:
        assert problem.endswith("Nothing was charged.")


def entries_at_rest(address):
    """Entries after all transactions that were begun have ended on the server."""
    ledger = PrivacyLedger(address)
    with ledger._book.store.transaction(writing=True):
        return ledger.entries


def restarted(server):
    server.stop()
    server.start()


def killed(server):
    server.kill()
    server.start()


@pytest.mark.exhaustive
@pytest.mark.parametrize("ends", (restarted, killed))
def test_a_server_that_ends_at_any_step_of_a_charge(ends, study, server):
    """A fit goes on if it was charged, and was not charged if it ends with an error; earlier charges stay."""
    PrivacyLedger(study, **{**CEILING, "epsilon": 30})
    before, counts = (), {}
    for moment in MOMENTS:
        proxy = Proxy(server.port, moment, lambda: ends(server))
        problem = fit_once(PrivacyLedger(proxy.address + SLOW_COMMIT.replace("&", "?"), study=study.partition("=")[2]))
        assert proxy.lost.wait(60), moment
        proxy.close()
        entries, expected = entries_at_rest(study), n_charged_at(*moment[:2])
        charged = len(entries) - len(before)
        assert entries[: len(before)] == before and charged == (not problem), moment
        assert expected in (None, charged) and problem.endswith("Nothing was charged." if problem else ""), moment
        before = entries
        counts[expected, charged] = counts.get((expected, charged), 0) + 1
    print(f"{len(MOMENTS)} ends of the server (expected, charged): {counts}")


def release(address, releases):
    """Fit once; write a byte before the first release."""
    witness_releases(releases)
    fit_once(PrivacyLedger(address))


@pytest.mark.exhaustive
def test_a_client_that_is_killed_at_any_step_of_a_charge(study, server, tmp_path):
    """What it released was charged; earlier charges stay, and nobody is kept waiting."""
    PrivacyLedger(study, **{**CEILING, "epsilon": 30})
    before, counts = (), {}
    for number, moment in enumerate(MOMENTS):
        releases = tmp_path / f"releases{number}"
        releases.touch()
        proxy = Proxy(server.port, moment)
        address = f"{proxy.address}?study={study.partition('=')[2]}{SLOW_COMMIT}"
        process = context.Process(target=release, args=(address, str(releases)))
        proxy.act = process.kill
        process.start()
        process.join(120)
        proxy.close()
        entries, expected = entries_at_rest(study), n_charged_at(*moment[:2])
        charged, released = len(entries) - len(before), releases.stat().st_size
        assert process.exitcode == -signal.SIGKILL and entries[: len(before)] == before, moment
        assert expected in (None, charged) and released <= charged, moment
        before = entries
        counts[expected, charged, released] = counts.get((expected, charged, released), 0) + 1
    assert not fit_once(PrivacyLedger(study))
    print(f"{len(MOMENTS)} kills of the client (expected, charged, released): {counts}")


@pytest.mark.slow
@pytest.mark.parametrize("when", ("", "DEFERRABLE INITIALLY DEFERRED"))
def test_a_full_disk_of_the_server(when, study, server):
    """The server refuses to write an entry, or to commit it."""
    ledger = PrivacyLedger(study, **CEILING)
    fill = "CREATE FUNCTION pg_temp.fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full USING MESSAGE = "
    fill += "'could not extend file: No space left on device'; END $$"
    trigger = f"CREATE CONSTRAINT TRIGGER disk AFTER INSERT ON skdp_ledger.entries {when} FOR EACH ROW EXECUTE FUNCTION"
    with server.connect() as connection:  # the trigger ends with it
        connection.execute(fill)
        connection.execute(f"{trigger} pg_temp.fill()")
        assert "No space left on device. Nothing was charged." in fit_once(ledger)
    assert not fit_once(ledger) and len(ledger.entries) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("killed", (False, True))
def test_a_charge_waits_for_a_synchronous_replica(killed, study, server):
    """It is on the disk of the server, but nobody is told; also a server that is killed then has it afterwards."""
    ledger, problems = PrivacyLedger(study, **CEILING), []
    fit = threading.Thread(target=lambda: problems.append(fit_once(ledger)))
    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    try:
        fit.start()
        fit.join(5)
        assert fit.is_alive() and PrivacyLedger(study).entries == ()
    finally:
        if killed:
            server.kill()
            (server.folder / "data" / "postgresql.auto.conf").unlink()
            server.start()
        else:
            server.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
    fit.join(60)
    assert problems == [""] and len(ledger.entries) == 1


@pytest.mark.exhaustive
def test_a_fail_over_to_a_replica(study, server):
    """A replica is read-only until it is promoted; a process refuses one that lacks charges, which others cannot notice."""
    ledger = PrivacyLedger(study, **CEILING)
    assert not fit_once(ledger)
    with server.copied(standby=True) as replica:
        both = PrivacyLedger(study.replace("/postgres?", f",127.0.0.1:{replica.port}/postgres?"))
        server.stop()
        try:
            assert both.entries == PrivacyLedger(study.replace(str(server.port), str(replica.port))).entries
            assert "read-only replica, or is set to read only; expected the primary server. Nothing was charged" in fit_once(both)
            replica.promote()
            assert not fit_once(both) and len(both.entries) == 2
        finally:
            server.start()
        assert "lacks charges that this process has seen" in fit_once(ledger)


@pytest.mark.slow
def test_an_answer_is_awaited_until_the_transaction_in_doubt_has_ended(study):
    """Who asks waits for the row of the study, which the transaction in doubt holds."""
    ledger = PrivacyLedger(study, **CEILING)
    store, found = ledger._book.store, []
    with store.transaction(writing=True) as transaction:
        moment, user = transaction.stamp()
        charge = {"epsilon": 0.1, "delta": 0.0, "mu": 0.0, "slack": 0.0}
        content, chain = json.dumps({"number": 1, "time": moment, "user": user, "charge": charge}), ledger._book.chain
        row = (1, content, chain.link(chain.link("", transaction.read().facts), content))
        transaction.append(row, row[2])
        asking = threading.Thread(target=lambda: found.append(store._has_row(row)))
        asking.start()
        asking.join(0.5)
        assert asking.is_alive() and not found
    asking.join(60)
    assert found == [True]


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting, reason",
    (
        ("default_transaction_read_only = on", "read-only replica"),
        ("synchronous_commit = off", None),
        ("default_transaction_isolation = serializable", None),
        ("search_path = nowhere", None),
    ),
)
def test_settings_of_a_role(setting, reason, study, server):
    """What a role may set for itself neither weakens a charge nor, as far as possible, stops it."""
    ledger = PrivacyLedger(study, **CEILING)
    server.execute(f"ALTER ROLE postgres SET {setting}")
    try:
        if reason:
            with pytest.raises(LedgerError, match=rf"{reason}.*Nothing was charged"):
                ledger.add(0.1, note="one")
        else:
            ledger.add(0.1, note="one")
    finally:
        server.execute("SET default_transaction_read_only = off", "ALTER ROLE postgres RESET ALL")
    assert len(ledger.entries) == (0 if reason else 1)


@pytest.mark.slow
def test_a_charge_is_committed_synchronously_whatever_a_role_has_set(study):
    store = PrivacyLedger(f"{study}&options=-c%20synchronous_commit%3Doff", **CEILING)._book.store
    with store.transaction(writing=True) as transaction:
        assert transaction._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert transaction._connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


@pytest.mark.slow
def test_a_connection_without_encryption_is_refused_if_the_address_says_so(study):
    """The server of the tests has none."""
    PrivacyLedger(study, **CEILING)
    with pytest.raises(LedgerError, match=r"server does not support SSL, but SSL was required\. Nothing was charged"):
        PrivacyLedger(f"{study}&sslmode=require")


ODD = ("a'b\"c", "%s", "100%", "a&study=b", "?study=b", "#", "x\ny", "..", " ", "ü", "<script>", "\\", "$$", "a" * 500)


@pytest.mark.slow
def test_studies_with_odd_names_are_studies_of_their_own(server):
    """The address leads to the same study, also after a pickle; each has a charge of its own."""
    ledgers = [PrivacyLedger(server.url(), study=name, **CEILING) for name in ODD]
    for name, ledger in zip(ODD, ledgers, strict=True):
        pickle.loads(pickle.dumps(ledger)).add(0.1, note=name)
        assert PrivacyLedger(ledger.address).identity == ledger.identity and "<script" not in ledger.to_html()
    assert [notes(ledger) for ledger in ledgers] == [[name] for name in ODD]
    for name in ("a\0b", "\ud800", "a" * 10_000_000):
        with pytest.raises((ValueError, LedgerError)):
            PrivacyLedger(server.url(), study=name, **CEILING)


@pytest.mark.slow
def test_nothing_of_a_transaction_outlives_it(study):
    """A pool of connections, such as pgbouncer's, lends a connection to others after each transaction."""
    kept = "SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_settings WHERE source = 'session')"
    store = PrivacyLedger(study, **CEILING)._book.store
    with store.transaction(writing=True) as transaction:
        for _ in range(10):
            transaction.rows()
        transaction._connection.execute("COMMIT")
        assert transaction._connection.execute(kept).fetchone() == (0, 0)


@pytest.mark.slow
def test_a_server_that_is_away_and_comes_back(study, server):
    ledger = PrivacyLedger(study, **CEILING)
    ledger.add(0.1, note="one")
    with ledger:
        server.stop()
        for problem in (lambda: ledger.add(0.1, note="two"), lambda: clone(GD).fit(X, y)):
            with pytest.raises(LedgerError, match=r"Connection refused\. Nothing was charged"):
                problem()
        server.start()
        clone(GD).fit(X, y)
    assert notes(ledger) == ["one", "DPLogisticRegression"]


def charge_forever(address, number, ready):
    """Write what each charge ended in to a file of its own: a line before it, and one after it."""
    with open(number, "a", buffering=1) as told:
        ledger = PrivacyLedger(address)
        ready.release()
        for charge in itertools.count():
            note = f"{Path(number).name}-{charge}"
            told.write(f"asked {note}\n")
            try:
                ledger.add(1e-6, note=note)
                told.write(f"charged {note}\n")
            except LedgerError as error:
                word = "not" if "Nothing was charged" in str(error) else "unknown"
                told.write(f"{word} {note}\n")


@pytest.mark.slow
@pytest.mark.parametrize("n_kills", (2, pytest.param(50, marks=pytest.mark.exhaustive)))
def test_a_server_that_is_killed_loses_and_doubles_nothing(n_kills, study, server, tmp_path):
    """All that were told *charged* are in the ledger once, none that were told *not charged* is."""
    PrivacyLedger(study, **CEILING)
    ready, moments = context.Semaphore(0), random.Random(0)
    files = [str(tmp_path / f"client{number}") for number in range(3)]
    clients = [context.Process(target=charge_forever, args=(study, file, ready)) for file in files]
    for client in clients:
        client.start()
    for _ in clients:
        ready.acquire()
    try:
        for _ in range(n_kills):
            time.sleep(moments.uniform(0.05, 0.25))
            server.kill()
            server.start()
    finally:
        for client in clients:
            client.kill()
            client.join()
    told = [line.split() for file in files for line in Path(file).read_text().splitlines()]
    said = {word: {note for other, note in told if other == word} for word in ("asked", "charged", "not", "unknown")}
    found = notes(PrivacyLedger(study))
    assert len(found) == len(set(found)) and not said["unknown"]
    assert said["charged"] <= set(found) and not said["not"] & set(found)
    assert len(set(found) - said["charged"]) <= len(clients)  # those that were killed while they waited for the answer
    assert said["charged"] and said["not"]
    print(f"{n_kills} kills: {len(said['charged'])} charged, {len(said['not'])} not charged")


# --- many writers, moves, commands


@pytest.mark.slow
@pytest.mark.parametrize("n_processes, n_charges", ((3, 8), pytest.param(8, 20, marks=pytest.mark.exhaustive)))
def test_many_processes_are_granted_what_one_is(n_processes, n_charges, address):
    granted = race(address, n_processes, 2, n_charges)
    assert granted["together"] == granted["alone"] < n_processes * 2 * n_charges


@pytest.mark.slow
def test_a_move_keeps_the_chain_and_closes_the_old_place(study, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SKDP_LEDGER_KEY", "a key that is no secret")
    file = str(tmp_path / "study.sqlite")
    ledger = PrivacyLedger(file, **CEILING)
    with ledger:
        GD.fit(X, y)
        bound = pickle.dumps(GD)
    before = ledger.entries
    assert main(["ledger", "move", file, study]) == 0
    assert "1 charge" in capsys.readouterr().out
    moved = PrivacyLedger(study)
    assert (moved.identity, moved.entries) == (ledger.identity, before)
    for refused in (lambda: ledger.add(0.1, note="two"), lambda: PrivacyLedger(file), lambda: pickle.loads(bound).fit(X, y)):
        with pytest.raises(LedgerError, match=rf"was moved to {re.escape(study)}; use it there. Nothing was charged"):
            refused()
    moved.add(0.1, note="two")
    assert main(["ledger", "move", file, study]) == 2
    assert "There is a ledger" in capsys.readouterr().err
    assert main(["ledger", "move", study, file + "2"]) == 0
    assert notes(PrivacyLedger(file + "2")) == ["DPLogisticRegression", "two"]
    with pytest.raises(LedgerError, match="was moved to"):
        moved.add(0.1, note="three")


@contextlib.contextmanager
def interrupted(target, moment):
    """Stop a move to a store: before the copy, after it, or after the old place was closed."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if moment == "closed":
            patch.setattr(target, "transaction", stopping(target.transaction, lambda _, writing: writing))
        else:
            patch.setattr(target, "create", stopping(target.create, lambda *_: True, first=moment == "before"))
        yield


def stopping(method, when, first=True):
    def stops(*arguments, **keywords):
        if not when(0, *arguments, **keywords):
            return method(*arguments, **keywords)
        if not first:
            method(*arguments, **keywords)
        raise KeyboardInterrupt

    return stops


@pytest.fixture(params=("file", *slow("file to server", "server to file")))
def move(request, tmp_path):
    """Where a ledger is, and where it shall move to."""
    files = [File(tmp_path / f"{name}.sqlite") for name in ("old", "new")]
    if request.param == "file":
        return files
    stores = [files[0], Study(request.getfixturevalue("study"))]
    return stores if request.param == "file to server" else stores[::-1]


@pytest.mark.parametrize("moment", ("before", "copied", "closed"))
def test_an_interrupted_move_leaves_one_ledger_or_none(moment, move):
    old, new = move
    ledger = PrivacyLedger(old.address, **CEILING)
    ledger.add(0.1, note="one")
    with interrupted(new, moment):
        Book.move(old, new, Chain(None))
    if moment != "before":
        with pytest.raises(LedgerError, match=r"did not move here completely, from .*repeat the move. Nothing was charged"):
            PrivacyLedger(new.address, **CEILING)
    if moment == "closed":
        for refused in (lambda: ledger.add(0.1, note="two"), lambda: Book.move(old, File("elsewhere"), Chain(None))):
            with pytest.raises(LedgerError, match=rf"was moved to {re.escape(new.address)}; use it there. Nothing was charged"):
                refused()
    else:
        assert notes(ledger) == ["one"]
    Book.move(old, new, Chain(None))
    PrivacyLedger(new.address).add(0.1, note="two")
    with pytest.raises(LedgerError, match="was moved to"):
        ledger.add(0.1, note="three")
    with pytest.raises(LedgerError, match="There is a ledger"):
        Book.move(old, new, Chain(None))
    assert notes(PrivacyLedger(new.address)) == ["one", "two"]


@pytest.mark.parametrize("moment", ("copied", "closed"))
def test_an_interrupted_move_that_is_repeated_elsewhere_makes_no_second_ledger(moment, move, tmp_path, monkeypatch):
    """On another machine the same address can lead to another place."""
    old, new = move
    PrivacyLedger(old.address, **CEILING).add(0.1, note="one")
    with interrupted(new, moment):
        Book.move(old, new, Chain(None))
    elsewhere = File(tmp_path / "other machine" / "new.sqlite")
    elsewhere.path.parent.mkdir()
    elsewhere.address = new.address
    if moment == "closed":
        with pytest.raises(LedgerError, match="was moved to"):
            Book.move(old, elsewhere, Chain(None))
        assert not elsewhere.exists()
    else:
        Book.move(old, elsewhere, Chain(None))
        assert notes(PrivacyLedger(elsewhere.path)) == ["one"]
        with pytest.raises(LedgerError, match="was moved to"):
            Book.move(old, new, Chain(None))
        with pytest.raises(LedgerError, match="did not move here completely"):
            PrivacyLedger(new.address)


def test_a_charge_during_a_move_waits(move, monkeypatch):
    old, new = move
    ledger, create = PrivacyLedger(old.address, **CEILING), new.create

    def late(copy):
        with monkeypatch.context() as patch, pytest.raises(LedgerError, match=r"(locked|not end in time).*Nothing was charged"):
            patch.setattr(_store, "PATIENCE", 0.2)
            ledger.add(0.1, note="late")
        create(copy)

    monkeypatch.setattr(new, "create", late)
    Book.move(old, new, Chain(None))
    assert notes(PrivacyLedger(new.address)) == []


def test_a_charge_after_an_interrupted_move_is_not_lost(move, tmp_path):
    old, new = move
    ledger = PrivacyLedger(old.address, **CEILING)
    with interrupted(new, "copied"):
        Book.move(old, new, Chain(None))
    ledger.add(0.1, note="one")
    with pytest.raises(LedgerError, match=r"did not move: at .* is what an earlier move left"):
        Book.move(old, new, Chain(None))
    with pytest.raises(LedgerError, match="did not move here completely"):
        PrivacyLedger(new.address)
    Book.move(old, File(tmp_path / "third.sqlite"), Chain(None))
    assert notes(PrivacyLedger(tmp_path / "third.sqlite")) == ["one"]


@pytest.mark.slow
def test_commands_charge_a_server(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    facts = {"columns": {"age": {"kind": "number", "bounds": [0, 120]}}, "target": "paid", "classes": ["no", "yes"]}
    Path("facts.json").write_text(json.dumps(facts))
    Path("people.csv").write_text("age,paid\n" + "31,no\n70,yes\n" * 500)
    fit = ["fit", "people.csv", "--schema", "facts.json", "--epsilon", "2", "--quiet", "--model", "a.skops", "--ledger", study]
    assert main(fit) == 2
    assert f"python -m skdp ledger '{study}' --epsilon 3" in capsys.readouterr().err
    assert main(["ledger", study, "--epsilon", "3", "--delta", "1e-6"]) == 0
    assert main(fit) == 0
    assert f"Charged: {study}, number of charges 1; left: " in capsys.readouterr().out
    assert main(["ledger", study, "--out", "time.png", "--html", "page.html"]) == 0
    assert "Written: time.png\nWritten: page.html" in capsys.readouterr().out
    assert "DPTabularClassifier" in Path("page.html").read_text()


@pytest.mark.slow
def test_workers_of_dask_find_a_study_by_its_address(study):
    distributed = pytest.importorskip("distributed")
    ledger = PrivacyLedger(study, **CEILING)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(**options) as local, distributed.Client(local) as client, ledger:
        for fitted in client.map(lambda number, model: model.fit(X, y), range(3), model=clone(GD), pure=False):
            fitted.result()
    assert len(ledger.entries) == 3

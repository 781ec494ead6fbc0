"""Addresses of ledgers in each store."""

import itertools

import pytest
from marks import slow
from servers import MISSING, Server

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server():
    """One server for all tests of a process."""
    if MISSING:
        pytest.skip(MISSING)
    server = Server()
    yield server
    server.close()


@pytest.fixture(params=("file", *slow("server")))
def address(request, tmp_path):
    """Where there is no ledger yet: in a file, or on a server."""
    if request.param == "file":
        return str(tmp_path / "study.sqlite")
    return f"{request.getfixturevalue('server').url()}?study=study-{next(NUMBERS)}"


@pytest.fixture
def on_file(tmp_path):
    """Where there is no ledger yet, for what concerns files alone."""
    return str(tmp_path / "study.sqlite")

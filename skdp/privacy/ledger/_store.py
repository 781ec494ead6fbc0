"""Define where a ledger is kept: facts that never change, and rows that are only appended.

A store keeps text and promises transactions. It knows neither hashes, keys nor ceilings, and nothing else knows which store it
is.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from skdp.privacy.errors import LedgerError

# Seconds that a charge waits for other writers before it fails. A choice, well above the time of one charge.
PATIENCE = 120.0


class Content(NamedTuple):
    """Hold all that a store has of one ledger.

    Parameters
    ----------
    facts : str
        Facts that never change, as JSON.
    head : str
        Text that authenticates the last row.
    rows : list of (int, str, str)
        Number, entry as JSON, and hash of each row, in order.
    """

    facts: str
    head: str
    rows: list[tuple[int, str, str]]


class Transaction(Protocol):
    """Define what a transaction can do; a writer excludes all others until its end, and an error undoes its writes."""

    def read(self) -> Content:
        """Return all that is stored; raise `LedgerError` if it cannot be that of a ledger."""
        ...

    def stamp(self) -> tuple[str, str]:
        """Return the time, in ISO 8601, UTC, and the name of the user who writes."""
        ...

    def append(self, row: tuple[int, str, str], head: str) -> None:
        """Append a row, and replace the head."""
        ...

    def retire(self, head: str) -> None:
        """Replace the head of a ledger that moves."""
        ...


class Store(Protocol):
    """Define a place of one ledger."""

    temporary: bool  # whether nobody needs it after a power failure

    @property
    def name(self) -> str:
        """The address as the user wrote it, for messages; without secrets."""
        ...

    @property
    def address(self) -> str:
        """Where the ledger is, for other processes too; without secrets."""
        ...

    @property
    def path(self) -> Path | None:
        """File of the ledger, if it has one."""
        ...

    @property
    def found_by_workers(self) -> bool:
        """Whether the address is enough for a process with the same environment."""
        ...

    def is_at(self, address: str) -> bool:
        """Return whether an address leads to this place."""
        ...

    def exists(self) -> bool:
        """Return whether a ledger is there."""
        ...

    def create(self, content: Content) -> None:
        """Write a new ledger, completely or not at all; an existing one is not changed."""
        ...

    def transaction(self, writing: bool) -> AbstractContextManager[Transaction]:
        """Open a transaction, which ends with the context; all errors are `LedgerError`."""
        ...


def damaged(address: str) -> LedgerError:
    """Return the error about what cannot be read as a ledger."""
    return LedgerError(
        f"What is at {address!r} is not a ledger, or a damaged or half-written one. Nothing was charged. If it was a ledger, the "
        "spent budget cannot be read from it: restore a copy that holds all entries, or regard the whole budget as spent."
    )

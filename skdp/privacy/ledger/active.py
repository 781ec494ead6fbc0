"""Keep the accounts that are charged for fits: the active ones of this process, and those to which an estimator is bound.

The stack of active accounts belongs to the process, not to a thread. A context variable would reach neither other threads nor
reused worker processes. An estimator that is pickled or deep-copied inside a ``with ledger:`` block is bound to the ledger: it
carries the address and identity of the ledger, and so do its clones. So does a private scorer that is pickled there.
"""

import threading
from typing import Protocol

from skdp.privacy.errors import LedgerError, PrivacyAccountingError
from skdp.privacy.ledger._chain import VARIABLE
from skdp.privacy.ledger.entries import Spending


class Account(Protocol):
    """Define an account to which fits are charged."""

    @property
    def identity(self) -> str:
        """Unique name of the account; accounts with the same identity are one account, which is charged once."""
        ...

    @property
    def address(self) -> str:
        """Where the account is kept; empty for one that exists in this process only."""
        ...

    @property
    def token(self) -> tuple[str, str] | None:
        """Address and identity by which another process finds the account; None if no other process can charge it."""
        ...

    def is_at(self, address: str) -> bool:
        """Return whether an address leads to this account, not to a copy of it."""
        ...

    def check(self, spending: Spending) -> None:
        """Raise `BudgetExceededError` if the charge would exceed the budget."""
        ...

    def charge(self, spending: Spending) -> None:
        """Record the charge before the first release of the fit, or raise an error."""
        ...


_stack: list[Account] = []
_lock = threading.Lock()


def activate(account: Account) -> None:
    """Charge all fits of this process to an account from now on.

    Parameters
    ----------
    account : Account
        Account to push onto the stack.

    Raises
    ------
    LedgerError
        If a copy of it is active.
    """
    with _lock:
        for other in _stack:
            if other.identity == account.identity:
                refuse_copy(other, account.address)
        _stack.append(account)


def deactivate(account: Account) -> None:
    """Undo the last `activate` of this account.

    Parameters
    ----------
    account : Account
        Account on the stack.
    """
    with _lock:
        last = max(place for place, other in enumerate(_stack) if other is account)
        del _stack[last]


def active() -> tuple[Account, ...]:
    """Return the active accounts once each, the outermost first.

    Returns
    -------
    tuple of Account
        Two objects with the same identity count as one.
    """
    with _lock:
        accounts = list(_stack)
    return tuple({account.identity: account for account in accounts}.values())


def carried() -> tuple[tuple[str, str], ...]:
    """Return the tokens of the active accounts, which an estimator takes along when it is copied.

    Returns
    -------
    tuple of (address, identity)
        Tokens; empty outside a ``with ledger:`` block.

    Raises
    ------
    PrivacyAccountingError
        If an active account cannot be found from another process.
    """
    tokens = [account.token for account in active()]
    if None in tokens:
        raise PrivacyAccountingError(
            "An estimator or scorer cannot be pickled or deep-copied while charges go to an account that other processes cannot "
            "reach: diffprivlib's BudgetAccountant, which exists in one process only, or a PrivacyLedger whose key is not in "
            f"the environment variable {VARIABLE}, or whose password is in its address only. Use n_jobs=None, or put the key "
            "into that variable, and the password into PGPASSWORD or .pgpass."
        )
    return tuple(token for token in tokens if token is not None)


def refuse_copy(account: Account, address: str) -> None:
    """Raise an error if a ledger with the identity of an account is at another place.

    Parameters
    ----------
    account : Account
        An active account.
    address : str
        Address of a ledger with the same identity.

    Raises
    ------
    LedgerError
        If it is at another place: a copy, which would miss later charges of the original.
    """
    if not account.is_at(address):
        raise LedgerError(
            f"The ledgers {account.address!r} and {address!r} are one ledger and a copy of it. Use only the one that holds "
            "all charges; for another budget, make a new one. Nothing was charged."
        )

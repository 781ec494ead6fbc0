"""Which ledgers pay for a fit: the active ones of this process, and those that the estimator was copied under.

The stack of active ledgers is process-wide, like what `_store` remembers of their files. A context variable would reach neither
other threads nor reused worker processes; so an estimator that is pickled or deep-copied inside a ``with ledger:`` block carries
the ledger's file with it, and so do its clones.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from skdp.privacy.errors import LedgerError, PrivacyAccountingError
from skdp.privacy.ledger._chain import VARIABLE
from skdp.privacy.ledger.entries import Spending

__all__ = ["Account", "activate", "active", "carried", "deactivate", "refuse_copy"]


class Account(Protocol):
    """Something that fits are charged to."""

    @property
    def identity(self) -> str:
        """What tells it from all others: accounts with one identity are one account, which pays once."""
        ...

    @property
    def path(self) -> Path | None:
        """Its file; None where it has none."""
        ...

    @property
    def token(self) -> tuple[str, str] | None:
        """Path and identity by which another process finds it; None where none can."""
        ...

    def check(self, spending: Spending) -> None:
        """Raise `BudgetExceededError` if the fit does not fit."""
        ...

    def charge(self, spending: Spending) -> None:
        """Write the fit down before its first release, or raise."""
        ...


_stack: list[Account] = []
_lock = threading.Lock()


def activate(account: Account) -> None:
    """Let an account pay for all fits of this process.

    Parameters
    ----------
    account : Account
        Pushed onto the stack.

    Raises
    ------
    LedgerError
        If a copy of its file is active.
    """
    with _lock:
        for other in _stack:
            if other.identity == account.identity and account.path is not None:
                refuse_copy(other, account.path)
        _stack.append(account)


def deactivate(account: Account) -> None:
    """Undo the last `activate` of this account.

    Parameters
    ----------
    account : Account
        On the stack.
    """
    with _lock:
        last = max(place for place, other in enumerate(_stack) if other is account)
        del _stack[last]


def active() -> tuple[Account, ...]:
    """Return the active accounts, each once, the outermost first.

    Returns
    -------
    tuple of Account
        Two objects with one identity count as one.
    """
    with _lock:
        accounts = list(_stack)
    return tuple({account.identity: account for account in accounts}.values())


def carried() -> tuple[tuple[str, str], ...]:
    """Return the tokens that a copy made now has to carry.

    Returns
    -------
    tuple of (path, identity)
        Empty outside of any block.

    Raises
    ------
    PrivacyAccountingError
        If an active account cannot be found from another process.
    """
    tokens = [account.token for account in active()]
    if None in tokens:
        raise PrivacyAccountingError(
            "An estimator cannot be pickled or deep-copied while fits are charged to an account that no worker process can "
            "charge: diffprivlib's BudgetAccountant, which lives in one process, or a PrivacyLedger whose key is not in the "
            f"environment variable {VARIABLE}. Expected n_jobs=None, a ledger without a key, or its key in that variable."
        )
    return tuple(token for token in tokens if token is not None)


def refuse_copy(account: Account, path: str | Path) -> None:
    """Raise if a file that has the identity of an account is not the account's file.

    Parameters
    ----------
    account : Account
        Which pays.
    path : str or Path
        Where a ledger with its identity is said to be.

    Raises
    ------
    LedgerError
        If it is another file: a copy, which would hold other charges from the next one on.
    """
    if account.path is None:
        return
    with suppress(OSError):
        if os.path.samefile(account.path, path):
            return
    raise LedgerError(
        f"The ledgers {str(account.path)!r} and {str(path)!r} are one ledger and a copy of it. Expected only the one that holds "
        "all charges; for another budget, make a new file. Nothing was charged."
    )

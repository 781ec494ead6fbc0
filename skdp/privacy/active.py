"""Which ledgers pay for a fit: the active ones of this process, and those that the estimator was copied under.

The stack of active ledgers is the one process-wide state of the package. A context variable would reach neither other threads nor
reused worker processes; so an estimator that is pickled or deep-copied inside a ``with ledger:`` block carries the ledger's
file with it, and so do its clones.
"""

import threading
from typing import Protocol

from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger_entries import Spending

__all__ = ["Account", "activate", "active", "carried", "deactivate"]


class Account(Protocol):
    """Something that fits are charged to."""

    @property
    def token(self) -> tuple[str, str] | None:
        """Path and identity by which another process finds it; None where it lives in this process only."""
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
    """
    with _lock:
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
        Two objects on the same file count as one.
    """
    with _lock:
        accounts = list(_stack)
    return tuple({account.token or id(account): account for account in accounts}.values())


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
            "An estimator cannot be pickled or deep-copied while fits are charged to an account that lives in this process only "
            "(diffprivlib's BudgetAccountant): its copies would not be charged. A PrivacyLedger can be shared."
        )
    return tuple(token for token in tokens if token is not None)

"""Bridge to diffprivlib: its accountant pays for our fits. The way back is `PrivacyLedger.import_accountant`."""

import contextlib
from collections.abc import Iterator
from typing import Any

from skdp.privacy.errors import BudgetExceededError
from skdp.privacy.ledger import active
from skdp.privacy.ledger.entries import Spending

__all__ = ["charge_accountant"]


@contextlib.contextmanager
def charge_accountant(accountant: Any) -> Iterator[None]:
    """Charge every fit inside the block to a diffprivlib accountant.

    The accountant lives in one process, so estimators cannot be pickled or deep-copied inside; threads and clones are charged.

    Parameters
    ----------
    accountant : diffprivlib.BudgetAccountant
        Its ``spend`` is called with the epsilon and delta of each fit, before its first release.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    BudgetExceededError
        From ``fit``, where the accountant refuses.

    See Also
    --------
    skdp.PrivacyLedger : Counts tighter, survives crashes, and is shared by processes.

    Notes
    -----
    **Privacy.** The guarantee of all fits together is the one that diffprivlib states for the accountant. It knows one epsilon
    and delta per fit, so its total is larger than that of a `skdp.PrivacyLedger`, and it states no adjacency: that is yours to
    keep.
    """
    account = _Account(accountant)
    active.activate(account)
    try:
        yield
    finally:
        active.deactivate(account)


class _Account:
    """A diffprivlib accountant as an `Account`."""

    path = None
    token = None

    def __init__(self, accountant: Any) -> None:
        self._accountant = accountant
        self.identity = f"accountant {id(accountant)}"

    def check(self, spending: Spending) -> None:
        """Raise if the accountant would."""
        self._ask(self._accountant.check, spending)

    def charge(self, spending: Spending) -> None:
        """Let the accountant spend."""
        self._ask(self._accountant.spend, spending)

    def _ask(self, method: Any, spending: Spending) -> None:
        refusal = None
        try:
            method(spending.epsilon, spending.delta)
        except ValueError as error:  # diffprivlib's BudgetError is one
            refusal = BudgetExceededError(f"diffprivlib's accountant refused {spending.estimator}: {error}")
        if refusal is not None:
            raise refusal

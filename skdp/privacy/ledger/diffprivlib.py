"""Charge fits to an accountant of diffprivlib; `PrivacyLedger.import_accountant` does the reverse."""

import contextlib
from collections.abc import Iterator
from typing import Any

from skdp.privacy.errors import BudgetExceededError
from skdp.privacy.ledger import active
from skdp.privacy.ledger.entries import Spending


@contextlib.contextmanager
def charge_accountant(accountant: Any) -> Iterator[None]:
    """Charge every fit inside the block to a diffprivlib accountant.

    The accountant exists in one process only, so estimators cannot be pickled or deep-copied inside the block. Fits of threads
    and of clones are charged.

    Parameters
    ----------
    accountant : diffprivlib.BudgetAccountant
        Accountant whose ``spend`` is called with the epsilon and delta of each fit, before the first release of the fit.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    BudgetExceededError
        From ``fit``, if the accountant refuses the charge.

    See Also
    --------
    skdp.PrivacyLedger : Accounts more tightly, survives crashes, and is shared by processes.

    Notes
    -----
    **Privacy.** The guarantee of all fits together is the one that diffprivlib states for the accountant. It knows only the
    epsilon and delta of each fit, so its total is larger than that of a `skdp.PrivacyLedger`. It does not record the adjacency:
    make sure that all fits have the same one.
    """
    account = _Account(accountant)
    active.activate(account)
    try:
        yield
    finally:
        active.deactivate(account)


class _Account:
    """Wrap a diffprivlib accountant as an `Account`."""

    address = ""
    token = None

    def __init__(self, accountant: Any) -> None:
        self._accountant = accountant
        self.identity = f"accountant {id(accountant)}"

    def is_at(self, address: str) -> bool:
        """Return True: there is no other place."""
        return True

    def check(self, spending: Spending) -> None:
        """Raise an error if the accountant would refuse the charge."""
        self._ask(self._accountant.check, spending)

    def charge(self, spending: Spending) -> None:
        """Charge the fit to the accountant."""
        self._ask(self._accountant.spend, spending)

    def _ask(self, method: Any, spending: Spending) -> None:
        refusal = None
        try:
            method(spending.epsilon, spending.delta)
        except ValueError as error:  # the base class of diffprivlib's BudgetError
            refusal = BudgetExceededError(f"diffprivlib's accountant refused {spending.estimator}: {error}")
        if refusal is not None:
            raise refusal

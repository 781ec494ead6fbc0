"""Charges a fit to every active ledger, and to the ledgers to which its estimator is bound."""

from collections.abc import Iterable

from skdp.privacy.ledger import active
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.ledger.ledger import PrivacyLedger

__all__ = ["pay"]


def pay(spending: Spending, bound: Iterable[tuple[str, str]] = ()) -> None:
    """Charge a fit once to each active account and to each ledger to which its estimator is bound.

    Parameters
    ----------
    spending : Spending
        What the fit will spend.
    bound : iterable of (path, identity)
        Tokens of ledgers, from `skdp.privacy.ledger.active.carried`.

    Raises
    ------
    BudgetExceededError, PrivacyAccountingError, LedgerError
        If one of them refuses the charge, or if two are copies of one file. None is charged then, unless another fit is charged
        to them at the same time.
    """
    accounts = {account.identity: account for account in active.active()}
    for path, identity in bound:
        if identity in accounts:
            active.refuse_copy(accounts[identity], path)
        else:
            accounts[identity] = PrivacyLedger.bound((path, identity))
    for account in accounts.values() if len(accounts) > 1 else ():
        account.check(spending)
    for account in accounts.values():
        account.charge(spending)

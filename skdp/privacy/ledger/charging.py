"""Who pays for a fit: all active accounts, and the ledgers that its estimator is bound to."""

from collections.abc import Iterable

from skdp.privacy.ledger import active
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.ledger.ledger import PrivacyLedger

__all__ = ["pay"]


def pay(spending: Spending, bound: Iterable[tuple[str, str]] = ()) -> None:
    """Charge a fit to all active accounts and to the ledgers that its estimator is bound to, each once.

    Parameters
    ----------
    spending : Spending
        What the fit will spend.
    bound : iterable of (path, identity)
        Tokens of ledgers, from `skdp.privacy.ledger.active.carried`.

    Raises
    ------
    BudgetExceededError, PrivacyAccountingError, LedgerError
        If any of them refuses, or two are copies of one file; where they are asked one after the other, none is charged then.
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

"""Who pays for a fit: all active accounts, and the ledgers that its estimator is bound to."""

from collections.abc import Iterable

from skdp.privacy import active
from skdp.privacy.ledger import PrivacyLedger
from skdp.privacy.ledger_entries import Spending

__all__ = ["pay"]


def pay(spending: Spending, bound: Iterable[tuple[str, str]] = ()) -> None:
    """Charge a fit to all active accounts and to the ledgers that its estimator is bound to, each once.

    Parameters
    ----------
    spending : Spending
        What the fit will spend.
    bound : iterable of (path, identity)
        Tokens of ledgers, from `skdp.privacy.active.carried`.

    Raises
    ------
    BudgetExceededError, PrivacyAccountingError
        If any of them refuses; where they are asked one after the other, none is charged then.
    """
    accounts = {account.token or id(account): account for account in active.active()}
    accounts |= {token: PrivacyLedger.bound(token) for token in bound if token not in accounts}
    for account in accounts.values() if len(accounts) > 1 else ():
        account.check(spending)
    for account in accounts.values():
        account.charge(spending)

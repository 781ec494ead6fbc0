"""Charge a fit to every active ledger, and to the ledgers to which its estimator is bound."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import parent_process

from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger import active
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.ledger.ledger import PrivacyLedger

# Relative amount by which a part may exceed its share of a charge. It covers the rounding of square roots; shares are rounded
# down by more than this.
ROUNDING = 1e-9

Bound = Iterable[tuple[str, str]]
# What is done with a charge in this thread in place of charging the ledgers; a new thread begins without.
_instead: ContextVar[Callable[[Spending, Bound], None] | None] = ContextVar("instead of charging", default=None)

# Ledgers that came along with the scorer or the model of an evaluation; None if neither tells which ledgers were active.
_along: ContextVar[tuple[tuple[str, str], ...] | None] = ContextVar("ledgers that came along", default=None)


class _Scheduled(Exception):
    """End a fit at its charge."""


def pay(spending: Spending, bound: Bound = ()) -> None:
    """Charge a fit once to each active account and to each ledger to which its estimator is bound.

    Parameters
    ----------
    spending : Spending
        What the fit will spend.
    bound : iterable of (address, identity)
        Tokens of ledgers, from `skdp.privacy.ledger.active.carried`.

    Raises
    ------
    BudgetExceededError, PrivacyAccountingError, LedgerError
        If one of them refuses the charge, or if two are copies of one file. None is charged then, unless another fit is charged
        to them at the same time.
    """
    if (instead := _instead.get()) is not None:
        instead(spending, bound)
        return
    accounts = {account.identity: account for account in active.active()}
    for address, identity in bound:
        if identity in accounts:
            active.refuse_copy(accounts[identity], address)
        else:
            accounts[identity] = PrivacyLedger.bound((address, identity))
    for account in accounts.values() if len(accounts) > 1 else ():
        account.check(spending)
    for account in accounts.values():
        account.charge(spending)


def in_worker() -> bool:
    """Return whether another Python process started this one, so that ledgers that are active there are not seen here."""
    return parent_process() is not None


@contextmanager
def along(tokens: Bound | None) -> Iterator[None]:
    """Charge evaluations inside also to the ledgers that a scorer or a model brought along.

    Parameters
    ----------
    tokens : iterable of (address, identity) or None
        Tokens of these ledgers; None if nothing was brought that could have tokens.
    """
    outer = _along.get()
    token = _along.set(outer if tokens is None else tuple(dict.fromkeys((*(outer or ()), *tokens))))
    try:
        yield
    finally:
        _along.reset(token)


def paying() -> bool:
    """Return whether an evaluation will be charged to a ledger."""
    return bool(active.active() or _along.get())


def tokens_along() -> tuple[tuple[str, str], ...]:
    """Return the tokens of the ledgers that were brought along.

    Returns
    -------
    tuple of (address, identity)
        Tokens, for `pay`.

    Raises
    ------
    PrivacyAccountingError
        In a worker process, if nothing tells which ledgers are active in the process that started it.
    """
    tokens = _along.get()
    if tokens is None and in_worker() and not active.active() and _instead.get() is None:
        raise PrivacyAccountingError(
            "An evaluation in a worker process cannot see the ledgers that are active in the process that started it. Use "
            "scoring=dp_scorer(...), n_jobs=None, evaluate with a model of skdp that a block `with ledger:` sends to the worker, "
            "or such a block in the worker. Nothing was released."
        )
    return tokens or ()


@contextmanager
def prepaid(mu: float, adjacency: str, unit: str = "record") -> Iterator[None]:
    """Admit one fit or evaluation, which was charged as a part of a larger whole, up to a Gaussian-DP parameter.

    Parameters
    ----------
    mu : float
        Largest Gaussian-DP parameter of the part.
    adjacency : {"replace_one", "zero_out"}
        Which tables are neighbours.
    unit : {"record", "person"}, default="record"
        What is protected.

    Raises
    ------
    PrivacyAccountingError
        For a second charge, and for one that exceeds the part.
    """
    parts = [mu]

    def take(spending: Spending, bound: Bound) -> None:
        other = (spending.adjacency, spending.unit) != (adjacency, unit)
        if not parts or other or not gaussian_mu_of(spending) <= parts.pop() * (1 + ROUNDING):
            raise PrivacyAccountingError("A part would spend more than was charged for it; nothing was released.")

    token = _instead.set(take)
    try:
        yield
    finally:
        _instead.reset(token)


def scheduled(fit: Callable[[], object]) -> tuple[Spending, tuple[tuple[str, str], ...]]:
    """Run a fit up to its charge, so that it checks its parameters and its records, and return what it would spend.

    Parameters
    ----------
    fit : callable
        Fits an estimator; the records never reach the oracle.

    Returns
    -------
    tuple of Spending and tuple
        What the fit would charge, and the tokens of the ledgers to which its estimator is bound.

    Raises
    ------
    PrivacyAccountingError
        If the fit charges nothing.
    """
    found: list[tuple[Spending, tuple[tuple[str, str], ...]]] = []

    def stop(spending: Spending, bound: Bound) -> None:
        found.append((spending, tuple(bound)))
        raise _Scheduled

    token = _instead.set(stop)
    try:
        fit()
    except _Scheduled:
        return found[0]
    finally:
        _instead.reset(token)
    raise PrivacyAccountingError("A fit would release something without a charge; expected an estimator of skdp.")


def gaussian_mu_of(spending: Spending) -> float:
    """Return the Gaussian-DP parameter of full-data Gaussian releases.

    Parameters
    ----------
    spending : Spending
        What a fit would spend.

    Returns
    -------
    float
        The parameter; ``inf`` without noise.

    Raises
    ------
    PrivacyAccountingError
        For other releases.
    """
    if spending.epsilon == math.inf:
        return math.inf
    composition = spending.composition
    if composition is None or composition.sampled or composition.selections:
        raise PrivacyAccountingError(
            f"{spending.estimator} has releases other than Gaussian ones of all records, which cannot share a budget with "
            "others; expected a solver of full-data Gaussian releases, as 'auto' chooses. Nothing was charged."
        )
    return math.sqrt(composition.full)

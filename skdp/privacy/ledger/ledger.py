"""The budget of a data set, over many fits, processes and sessions."""

import json
import math
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone
from html import escape
from numbers import Real
from pathlib import Path
from typing import Any

from skdp.privacy.budget import ADJACENCIES, LARGEST_DELTA, LARGEST_EPSILON, Budget
from skdp.privacy.errors import BudgetExceededError, LedgerError, PrivacyAccountingError, shown
from skdp.privacy.ledger import active
from skdp.privacy.ledger import composition as composed
from skdp.privacy.ledger._chain import Chain, key_bytes
from skdp.privacy.ledger._html import as_html
from skdp.privacy.ledger._sqlite import Store, damaged, temporary_file
from skdp.privacy.ledger.entries import LedgerEntry, LedgerSummary, Spending, refusal
from skdp.privacy.ledger.gaussian_cover import gaussian_cover, pure_cover
from skdp.privacy.ledger.privacy_filter import Charge, Filter

__all__ = ["PrivacyLedger"]


class PrivacyLedger:
    r"""The budget of a data set: what all fits on it may spend together, kept in a file.

    Inside ``with ledger:`` every fit of the process is charged, whatever estimator, clone or thread makes it; estimators that are
    pickled inside (joblib's workers) are charged wherever they are fitted. A charge is written before the first release and never
    given back. A fit that would exceed the ceiling raises `BudgetExceededError`.

    Parameters
    ----------
    path : str, Path or None, default=None
        SQLite file, made where there is none. None takes a temporary file that goes with this object.
    epsilon : float or None, default=None
        Ceiling, positive and finite. None for a file that exists.
    delta : float or None, default=None
        Ceiling, in (0, 1). None for a file that exists.
    adjacency : {"replace_one", "zero_out"} or None, default=None
        Which tables are neighbours; None takes what the first fit has. All fits of a ledger share it.
    key : bytes, str or None, default=None
        Secret of at least 16 bytes that authenticates the file; ``secrets.token_hex()`` makes one. It is never stored. None takes
        the environment variable ``SKDP_LEDGER_KEY`` where that is set. A ledger that was made with a key opens only with that
        key, and one that was made without a key opens only without.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of its range, or differs from what the file says.
    LedgerError
        If the file is damaged, no ledger, made with another key, in SQLite's WAL mode, hard-linked, or lacks charges that this
        process has seen.

    See Also
    --------
    skdp.inspection.BudgetTimelineDisplay : Plots how the budget was spent.

    Notes
    -----
    **Privacy.** Everything released inside the block is (epsilon, delta)-differentially private together, also when each fit is
    chosen after seeing the results of those before it: see ```skdp.privacy.ledger.privacy_filter``` for the rule and its proof.
    Full-data Gaussian fits compose by :math:`\sum_j \mu_j^2`; fits with samples are charged by the Gaussian that covers them; a
    guarantee of which nothing else is known adds up by epsilon and delta while it comes before all others. The tight figure of
    the summary, by privacy loss distributions, holds for a plan fixed in advance only.

    Not seen are fits outside of the block, estimators that a worker process builds for itself or received before the block, fits
    that are submitted inside and run after it (collect all results inside), fits of a model that a worker fitted and pickled on,
    an older copy of the file that is put back, and anything else computed from the records.

    **The file.** Hashes of all entries catch accidents. They do not stop intent: without a key, whoever writes to the file can
    take charges out and compute the hashes again. With a key only its holders can, and everyone else can still put back an older
    copy of the whole file; a process refuses one if it has seen later charges. A file is known by its identity, not by its path:
    links to it are the same ledger, charged once, and so is a copy, which is refused beside the original. Workers take the key
    from the environment, never from a pickle: without it there, fits with ``n_jobs`` are refused before any charge.

    Fits are charged for the whole data set, also on a part of it. The part must hold each record at most once, and which records
    it holds must not depend on their values: give searches ``cv=KFold(...)`` (their default for classifiers splits by label, and
    one changed label can move many records), and ``BaggingClassifier`` ``bootstrap=False``. The labels of each part are public,
    as those of a table are, unless the estimator has ``classes=[...]``; so are groups of records: neighbours keep them.

    A pickle that is made inside the block names the file, so that a worker process finds it; save models after the block. While
    fits run, leave the file to SQLite: on POSIX systems a process that opens and closes it by other means drops its locks.

    References
    ----------
    .. [1] A. Smith, A. Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.
    .. [2] R. Rogers, A. Roth, J. Ullman, S. Vadhan, "Privacy odometers and filters", NeurIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression, PrivacyLedger
    >>> X, y = make_classification(n_samples=2000, random_state=0)
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    >>> with ledger:
    ...     model = DPLogisticRegression(epsilon=0.5, delta=1e-6).fit(X, y)
    >>> len(ledger.entries)
    1
    >>> ledger.epsilon_left(delta=1e-6)
    0.841
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: str | None = None,
        key: bytes | str | None = None,
    ) -> None:
        facts, chain = _facts(epsilon, delta, adjacency), Chain(key_bytes(key))
        if (path is None or not Path(path).exists()) and (epsilon is None or delta is None):
            known = "A ledger in memory" if path is None else f"There is no ledger {str(path)!r} yet; a new one"
            missing = " and ".join(name for name in ("epsilon", "delta") if facts[name] is None)
            raise ValueError(f"{known} needs a ceiling; expected {missing} too.")
        self.path = (temporary_file(self) if path is None else Path(path)).resolve()
        if not self.path.exists():
            Store.create(self.path, {**facts, "identity": uuid.uuid4().hex, "created": _now(), "temporary": path is None}, chain)
        self._store = Store(self.path, chain)
        for name, value in facts.items():
            if value is not None and value != self._store.facts[name]:
                was = self._store.facts[name]
                raise ValueError(f"{name}={value!r}; the ledger {str(self.path)!r} was made with {name}={was!r}.")

    @classmethod
    def bound(cls, token: tuple[str, str]) -> "PrivacyLedger":
        """Open the ledger that an estimator was bound to.

        Parameters
        ----------
        token : (path, identity)
            From `token`.

        Returns
        -------
        PrivacyLedger
            The same file.

        Raises
        ------
        LedgerError
            If the file is gone, or another ledger is in its place.
        """
        path, identity = token
        if not Path(path).is_file():
            raise LedgerError(f"The ledger {path!r}, to which this copy is bound, is gone; nothing can be charged to it.")
        ledger = cls(path)
        if ledger.identity != identity:
            raise LedgerError(f"Another ledger is at {path!r} than the one to which this copy is bound.")
        return ledger

    @property
    def epsilon(self) -> float:
        """Ceiling of epsilon."""
        return self._store.facts["epsilon"]

    @property
    def delta(self) -> float:
        """Ceiling of delta."""
        return self._store.facts["delta"]

    @property
    def adjacency(self) -> str | None:
        """Which tables are neighbours; None before the first charge of a ledger that leaves it open."""
        return self._neighbours(self.entries)

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All charges so far, read from the file."""
        with self._store.transaction(writing=False) as connection:
            return self._read(connection)

    @property
    def identity(self) -> str:
        """What the file is known by, wherever it is: ledgers with one identity are one ledger."""
        return self._store.facts["identity"]

    @property
    def token(self) -> tuple[str, str] | None:
        """Path and identity, by which a worker process finds the file; None if it would not find the key."""
        return (str(self.path), self.identity) if self._store.chain.found_by_workers() else None

    def __enter__(self) -> "PrivacyLedger":
        active.activate(self)
        return self

    def __exit__(self, *exception: object) -> None:
        active.deactivate(self)

    def __repr__(self) -> str:
        return f"PrivacyLedger({str(self.path)!r}, epsilon={self.epsilon!r}, delta={self.delta!r})"

    def _repr_html_(self) -> str:
        try:
            entries = self.entries
        except LedgerError as error:
            return f"<p>{escape(str(error))}</p>"
        return as_html(str(self.path), self._neighbours(entries), self._filter(entries), entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).bound, ((str(self.path), self.identity),)

    def check(self, spending: Spending) -> None:
        """Raise as `charge` would, and write nothing.

        Parameters
        ----------
        spending : Spending
            What a fit would spend.

        Raises
        ------
        BudgetExceededError, PrivacyAccountingError
            As `charge` does.
        """
        self._admitted(spending, self.entries)

    def charge(self, spending: Spending) -> None:
        """Write a charge down, durably; fits inside ``with ledger:`` do it by themselves.

        Parameters
        ----------
        spending : Spending
            What a fit will spend.

        Raises
        ------
        BudgetExceededError
            If it would exceed the ceiling. Nothing is written then.
        PrivacyAccountingError
            If it has another adjacency than the ledger.
        """
        if spending.composition and spending.composition.sampled:
            self.check(spending)  # computes the cover, which takes time, before the file is locked
        with self._store.transaction(writing=True) as connection:
            entries = self._read(connection)
            charge = self._admitted(spending, entries)
            entry = LedgerEntry(len(entries) + 1, _now(), spending, charge)
            appended = self._store.append(connection, entry.to_json())
        self._store.remember(*appended)

    def add(self, epsilon: float, delta: float = 0.0, *, note: str, adjacency: str | None = None) -> None:
        """Charge another release of the same records: a table that was published, a fit of another library.

        Parameters
        ----------
        epsilon, delta : float
            Its guarantee.
        note : str
            What it was.
        adjacency : {"replace_one", "zero_out"} or None, default=None
            Which tables are neighbours in that guarantee; None takes what the ledger has.

        Raises
        ------
        BudgetExceededError
            If it would exceed the ceiling. Best added before any fit: later only its Gaussian cover has room.
        """
        if not (0 < epsilon < math.inf and 0 <= delta < 1):
            raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}; expected a positive number and one in [0, 1).")
        if adjacency is not None and adjacency not in ADJACENCIES:
            raise ValueError(f"adjacency={shown(adjacency)}; expected one of {sorted(ADJACENCIES)}, or None.")
        neighbours = adjacency or self.adjacency
        if neighbours is None:
            raise ValueError(
                f"The ledger has no adjacency before its first charge; expected adjacency= one of {sorted(ADJACENCIES)}."
            )
        self.charge(Spending(str(note), {}, (), neighbours, float(epsilon), float(delta)))

    def import_accountant(self, accountant: Any, *, adjacency: str | None = None) -> None:
        """Charge the sum of what a ``diffprivlib.BudgetAccountant`` has spent, as one entry.

        Parameters
        ----------
        accountant : diffprivlib.BudgetAccountant
            Its ``spent_budget`` is read.
        adjacency : {"replace_one", "zero_out"} or None, default=None
            Which tables are neighbours; diffprivlib does not state it. None takes what the ledger has.

        Raises
        ------
        BudgetExceededError
            If they exceed the ceiling together. Nothing is written then.
        """
        spent = [(float(epsilon), float(delta)) for epsilon, delta in accountant.spent_budget]
        if spent:
            epsilon, delta = (math.fsum(column) for column in zip(*spent, strict=True))
            self.add(epsilon, delta, note=f"diffprivlib BudgetAccountant, {len(spent)} releases", adjacency=adjacency)

    def epsilon_left(self, delta: float | None = None, n_fits: int = 1) -> float:
        """Return the largest epsilon at which a fit on full data (solver "gd") still fits, or each of several.

        Parameters
        ----------
        delta : float or None, default=None
            The delta of a fit; None takes that of the ledger. At a smaller one, epsilon may be larger.
        n_fits : int, default=1
            How many fits: a grid search makes candidates times folds, plus one.

        Returns
        -------
        float
            Rounded down to four digits; 0 if nothing fits.
        """
        return self._filter(self.entries).epsilon_left(self.delta if delta is None else delta, n_fits)

    @property
    def spent_after_each(self) -> list[float]:
        """Epsilon at the ledger's delta after each charge, by the rule that is enforced."""
        entries = self.entries
        return [self._filter(entries[:count]).spent_epsilon for count in range(1, len(entries) + 1)]

    def summary(self) -> LedgerSummary:
        """Return what was spent: by the rule that is enforced, and tightly for a plan fixed in advance.

        Returns
        -------
        LedgerSummary
            Printed as text, and as plain types by ``to_dict()``.
        """
        entries = self.entries
        losses = composed.compose(entry.part for entry in entries)
        squares = [entry.spending.composition.full for entry in entries if entry.spending.composition]
        adjacency = self._neighbours(entries)
        rule = self._filter(entries)
        tight = composed.tight_epsilon(squares, losses, entries[0].spending.adjacency, self.delta) if entries else 0.0
        if tight is not None:  # selections are coarser as loss distributions, and what is enforced holds for any plan
            tight = min(tight, rule.spent_epsilon)
        return LedgerSummary(
            str(self.path), self.epsilon, self.delta, adjacency, entries, rule.spent_epsilon, rule.epsilon_left(self.delta), tight
        )

    def to_json(self, indent: int | None = 2) -> str:
        """Return the summary and all entries as a JSON document.

        Parameters
        ----------
        indent : int or None, default=2
            Spaces per level; None for one line.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.summary().to_dict(), indent=indent, allow_nan=False)

    def _read(self, connection: Any) -> tuple[LedgerEntry, ...]:
        try:
            return tuple(LedgerEntry.from_json(content) for content in self._store.entries(connection))
        except (KeyError, TypeError, ValueError):  # not what `to_json` writes, although the hashes are right
            raise damaged(self.path) from None

    def _filter(self, entries: Iterable[LedgerEntry]) -> Filter:
        return Filter(self.epsilon, self.delta, tuple(entry.charge for entry in entries))

    def _neighbours(self, entries: tuple[LedgerEntry, ...]) -> str | None:
        return entries[0].spending.adjacency if entries else self._store.facts["adjacency"]

    def _admitted(self, spending: Spending, entries: tuple[LedgerEntry, ...]) -> Charge:
        """The charge of a fit, by its cover if that fits, else by itself."""
        if self._neighbours(entries) not in (None, spending.adjacency):
            raise PrivacyAccountingError(
                f"{spending.estimator} has adjacency={spending.adjacency!r}; the ledger {str(self.path)!r} counts "
                f"{'zero_out' if spending.adjacency == 'replace_one' else 'replace_one'!r}. Expected the same for all fits."
            )
        rule = self._filter(entries)
        if spending.epsilon < math.inf:
            alone = Charge(spending.epsilon, spending.delta, 0.0, 0.0, by_itself=True)
            if spending.composition is None and rule.admits(alone):
                return alone
            charge = _covered(spending, rule.next_slack)
            if rule.admits(charge):
                return charge
            if rule.admits(alone):
                return alone
        left = rule.epsilon_left(spending.delta or self.delta)
        raise BudgetExceededError(refusal(spending, str(self.path), rule, left), left)


def _covered(spending: Spending, slack: float) -> Charge:
    if spending.composition is None:  # with its delta it tells everything, else it is pure
        return Charge(spending.epsilon, spending.delta, pure_cover(spending.epsilon), spending.delta)
    budget = Budget(spending.epsilon, spending.delta, spending.adjacency)
    mu = gaussian_cover(spending.composition, budget, slack)
    return Charge(spending.epsilon, spending.delta, mu, slack if spending.composition.sampled else 0.0)


def _facts(epsilon: object, delta: object, adjacency: object) -> dict[str, Any]:
    for name, value, limit in (("epsilon", epsilon, LARGEST_EPSILON), ("delta", delta, LARGEST_DELTA)):
        number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value <= limit):  # type: ignore[operator]
            raise (ValueError if number else TypeError)(f"{name}={shown(value)}; expected a number above 0, at most {limit:g}.")
    if adjacency is not None and adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency={shown(adjacency)}; expected one of {sorted(ADJACENCIES)}, or None.")
    return {"epsilon": epsilon and float(epsilon), "delta": delta and float(delta), "adjacency": adjacency}  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")

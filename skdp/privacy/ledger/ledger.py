"""Enforce the budget of a data set over many fits, processes and sessions."""

import json
import math
import uuid
from collections.abc import Callable, Iterable
from html import escape
from numbers import Real
from pathlib import Path
from typing import Any

from skdp.privacy.budget import ADJACENCIES, LARGEST_DELTA, LARGEST_EPSILON, Budget, unit_of
from skdp.privacy.errors import BudgetExceededError, LedgerError, PrivacyAccountingError, shown
from skdp.privacy.ledger import active
from skdp.privacy.ledger import composition as composed
from skdp.privacy.ledger._book import Book, store_at
from skdp.privacy.ledger._chain import Chain, key_bytes
from skdp.privacy.ledger._html import as_html, as_page
from skdp.privacy.ledger._sqlite import now
from skdp.privacy.ledger._store import damaged
from skdp.privacy.ledger.entries import LedgerEntry, LedgerSummary, Spending, refusal
from skdp.privacy.ledger.gaussian_cover import gaussian_cover, pure_cover
from skdp.privacy.ledger.privacy_filter import Charge, Filter


class PrivacyLedger:
    r"""Keep the budget of a data set in a file or on a server: a limit (ceiling) on what all fits on it may spend together.

    Inside ``with ledger:`` every fit of the process is charged, including those of clones and threads. Estimators that are
    pickled inside (for joblib's workers) are charged wherever they are fitted. A charge is written before the first release and
    never given back. A fit whose charge would exceed the ceiling raises `BudgetExceededError`.

    Parameters
    ----------
    path : str, Path or None, default=None
        SQLite file, or address of a PostgreSQL database, such as ``"postgresql://ann@host/db"``, which several machines can
        charge at the same time; created if it does not exist. None uses a temporary file that is deleted together with this
        object.
    epsilon : float or None, default=None
        Ceiling of epsilon, positive and finite. None for a ledger that exists.
    delta : float or None, default=None
        Ceiling of delta, in (0, 1). None for a ledger that exists.
    adjacency : {"replace_one", "zero_out"} or None, default=None
        Which tables are neighbours; all fits of a ledger share it. None uses the adjacency of the first fit.
    unit : {"record", "person"} or None, default=None
        What neighbours differ in. A ledger of persons refuses fits that protect records. A ledger of records takes fits that
        protect persons at their price, because each of them protects records, too. None uses the unit of the first fit.
    key : bytes, str or None, default=None
        Secret of at least 16 bytes that authenticates the ledger; ``secrets.token_hex()`` makes one. It is not stored. None uses
        the environment variable ``SKDP_LEDGER_KEY`` if it is set. A ledger that was made with a key opens only with that key. A
        ledger that was made without a key opens only without a key.
    study : str or None, default=None
        Name of the ledger in the database, which may have several. None takes it from the address: ``...?study=cohort-7``. None
        for a file.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of its range, or differs from what the ledger says.
    ImportError
        If psycopg is missing, which a ledger on a server needs.
    LedgerError
        If the server cannot be reached, or does not permit it; or if the ledger is damaged, not a ledger, made with another key,
        in SQLite's WAL mode, hard-linked, or lacks charges that this process has seen.

    See Also
    --------
    skdp.inspection.BudgetTimelineDisplay : Plots how the budget was spent.

    Notes
    -----
    **Privacy.** Everything released inside the block is (epsilon, delta)-differentially private together, also if each fit is
    chosen after seeing the results of earlier fits: see ``skdp.privacy.ledger.privacy_filter`` for the rule and its proof.
    Full-data Gaussian fits compose by :math:`\sum_j \mu_j^2`. Fits with subsampled releases are charged by their Gaussian cover.
    Releases with only a known guarantee add up by epsilon and delta as long as they come before all others. The tight epsilon of
    the summary, by privacy loss distributions, holds only for a plan fixed in advance.

    The ledger does not see fits outside the block, estimators that a worker process builds itself or received before the block,
    fits that are submitted inside the block and run after it (collect all results inside), fits of a model that a worker fitted
    and pickled again, an older copy of the file that is put back, and anything else computed from the records.

    **The file.** Hashes of all entries detect accidents. They do not stop manipulation: without a key, anyone who can write to
    the file can remove charges and compute the hashes again. With a key only its holders can. Others can still put back an older
    copy of the whole file, which a process refuses if it has seen later charges. A ledger is its identity, not its path: links to
    a file are the same ledger and are charged once. A copy is also the same ledger, and is refused if the original is in use.
    Workers take the key from the environment, never from a pickle: if it is missing there, fits with ``n_jobs`` are refused
    before any charge.

    **The server.** A charge is one transaction that holds the row of the study from the first reading to the commit, so that no
    two charges pass together. If the connection is lost while a charge is committed, the server is asked whether the charge was
    made before anything is released. The rights of people, and what the server refuses, are in the page *One budget for a team*
    of the guide. A password comes from ``PGPASSWORD`` or ``.pgpass``, or from the address, from which it never goes anywhere
    else: workers do not find it there.

    A fit on a part of the data set is charged like a fit on all of it. The part must contain each record at most once, and the
    choice of its records must not depend on their values. Give searches ``cv=KFold(...)``: their default for classifiers splits
    by label, and one changed label can move many records. Give ``BaggingClassifier`` ``bootstrap=False``. The set of labels of
    each part is public, as that of a table is, unless the estimator has ``classes=[...]``. Groups of records are public too:
    neighbours keep them.

    A pickle that is made inside the block contains the address of the ledger, so that a worker process finds it; save models
    after the block. While fits run, let only SQLite open the file: on POSIX systems a process that opens and closes it by other
    means drops its own locks.

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
        unit: str | None = None,
        key: bytes | str | None = None,
        study: str | None = None,
    ) -> None:
        facts, chain = _facts(epsilon, delta, adjacency, unit), Chain(key_bytes(key))
        store = store_at(path, study, self)
        if not store.exists():
            missing = " and ".join(name for name in ("epsilon", "delta") if facts[name] is None)
            if missing:
                known = "A temporary ledger" if path is None else f"There is no ledger {store.name!r} yet; a new one"
                raise ValueError(f"{known} needs a ceiling; expected {missing} too.")
            Book.create(store, {**facts, "identity": uuid.uuid4().hex, "created": now(), "temporary": path is None}, chain)
        self._book = Book(store, chain)
        for name, value in facts.items():
            was = self._book.facts.get(name, "record")  # older files have no unit, and count records
            if value is not None and value != was:
                raise ValueError(f"{name}={value!r}; the ledger {self.address!r} was made with {name}={was!r}.")

    @classmethod
    def bound(cls, token: tuple[str, str]) -> "PrivacyLedger":
        """Open the ledger to which an estimator is bound.

        Parameters
        ----------
        token : (address, identity)
            Value of the property ``token``.

        Returns
        -------
        PrivacyLedger
            The ledger at the same address.

        Raises
        ------
        LedgerError
            If the ledger is gone, or another one is in its place.
        """
        address, identity = token
        if not store_at(address).exists():
            raise LedgerError(f"The ledger {address!r}, to which this copy is bound, is gone; nothing can be charged to it.")
        ledger = cls(address)
        if ledger.identity != identity:
            raise LedgerError(f"Another ledger is at {address!r}; expected the one to which this copy is bound.")
        return ledger

    @property
    def address(self) -> str:
        """Where the ledger is: the path of its file, or its address on a server without the password."""
        return self._book.store.address

    @property
    def path(self) -> Path | None:
        """File of the ledger; None for one on a server."""
        return self._book.store.path

    @property
    def epsilon(self) -> float:
        """Ceiling of epsilon."""
        return self._book.facts["epsilon"]

    @property
    def delta(self) -> float:
        """Ceiling of delta."""
        return self._book.facts["delta"]

    @property
    def adjacency(self) -> str | None:
        """Which tables are neighbours; None before the first charge if the ledger was created without adjacency."""
        return self._neighbours(self.entries)

    @property
    def unit(self) -> str | None:
        """What neighbours differ in; None before the first charge if the ledger was created without unit."""
        return self._unit(self.entries)

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All charges so far, read from where the ledger is."""
        return self._read(self._book.entries())

    @property
    def identity(self) -> str:
        """Unique name of the ledger, wherever it is: ledgers with the same identity are one ledger."""
        return self._book.facts["identity"]

    @property
    def token(self) -> tuple[str, str] | None:
        """Address and identity by which a worker process opens the ledger; None if it would not find the key."""
        found = self._book.chain.found_by_workers() and self._book.store.found_by_workers
        return (self.address, self.identity) if found else None

    def is_at(self, address: str) -> bool:
        """Return whether an address leads to the place of this ledger, not of a copy.

        Parameters
        ----------
        address : str
            Address of a ledger with the same identity.

        Returns
        -------
        bool
            True for the same place.
        """
        return address == self.address or self._book.store.is_at(address)

    def __enter__(self) -> "PrivacyLedger":
        active.activate(self)
        return self

    def __exit__(self, *exception: object) -> None:
        active.deactivate(self)

    def __repr__(self) -> str:
        return f"PrivacyLedger({self.address!r}, epsilon={self.epsilon!r}, delta={self.delta!r})"

    def _repr_html_(self) -> str:
        try:
            return self._as(as_html)
        except LedgerError as error:
            return f"<p>{escape(str(error))}</p>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).bound, ((self.address, self.identity),)

    def check(self, spending: Spending) -> None:
        """Raise the errors that `charge` would raise, and write nothing.

        Parameters
        ----------
        spending : Spending
            What a fit would spend.

        Raises
        ------
        BudgetExceededError, PrivacyAccountingError
            The errors of `charge`.
        """
        self._admitted(spending, self.entries)

    def charge(self, spending: Spending) -> None:
        """Write a charge where it lasts; fits inside ``with ledger:`` do this automatically.

        Parameters
        ----------
        spending : Spending
            What a fit will spend.

        Raises
        ------
        BudgetExceededError
            If the charge would exceed the ceiling; nothing is written then.
        PrivacyAccountingError
            If the adjacency differs from that of the ledger.
        """
        if spending.composition and spending.composition.sampled:
            self.check(spending)  # computes (and caches) the cover, which takes time, before others must wait

        def following(earlier: list[str], time: str, user: str) -> str:
            entries = self._read(earlier)
            charge = self._admitted(spending, entries)
            return LedgerEntry(len(entries) + 1, time, spending, charge, user, uuid.uuid4().hex).to_json()

        self._book.append(following)

    def add(self, epsilon: float, delta: float = 0.0, *, note: str, adjacency: str | None = None, unit: str = "record") -> None:
        """Charge another release of the same records, such as a published table or a fit of another library.

        Add such releases before any fit: they cost more later, because they are then charged by a Gaussian cover.

        Parameters
        ----------
        epsilon, delta : float
            Guarantee of the release.
        note : str
            Description of the release.
        adjacency : {"replace_one", "zero_out"} or None, default=None
            Which tables are neighbours in that guarantee; None uses the adjacency of the ledger.
        unit : {"record", "person"}, default="record"
            What neighbours differ in.

        Raises
        ------
        BudgetExceededError
            If the charge would exceed the ceiling.
        PrivacyAccountingError
            If the ledger counts persons, and the guarantee is of records.
        """
        if not (0 < epsilon < math.inf and 0 <= delta < 1):
            raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}; expected a positive number, and a number in [0, 1).")
        if adjacency is not None and adjacency not in ADJACENCIES:
            raise ValueError(f"adjacency={shown(adjacency)}; expected one of {sorted(ADJACENCIES)}, or None.")
        neighbours = adjacency or self.adjacency
        if neighbours is None:
            raise ValueError(
                f"The ledger has no adjacency before its first charge; expected adjacency= one of {sorted(ADJACENCIES)}."
            )
        self.charge(Spending(str(note), {}, (), neighbours, float(epsilon), float(delta), unit=unit_of(unit, "unit")))

    def import_accountant(self, accountant: Any, *, adjacency: str | None = None) -> None:
        """Charge the total that a ``diffprivlib.BudgetAccountant`` has spent, as one entry.

        Parameters
        ----------
        accountant : diffprivlib.BudgetAccountant
            Accountant whose ``spent_budget`` is read.
        adjacency : {"replace_one", "zero_out"} or None, default=None
            Which tables are neighbours; diffprivlib does not state it. None uses the adjacency of the ledger.

        Raises
        ------
        BudgetExceededError
            If the total would exceed the ceiling; nothing is written then.
        """
        spent = [(float(epsilon), float(delta)) for epsilon, delta in accountant.spent_budget]
        if spent:
            epsilon, delta = (math.fsum(column) for column in zip(*spent, strict=True))
            self.add(epsilon, delta, note=f"diffprivlib BudgetAccountant, {len(spent)} releases", adjacency=adjacency)

    def epsilon_left(self, delta: float | None = None, n_fits: int = 1) -> float:
        """Return the largest epsilon that each of ``n_fits`` full-data fits (solver "gd") could still be charged.

        Parameters
        ----------
        delta : float or None, default=None
            The delta of each fit; None uses that of the ledger. A smaller delta lets epsilon be larger.
        n_fits : int, default=1
            Number of fits; a grid search makes one per candidate and fold, plus one.

        Returns
        -------
        float
            Epsilon rounded down to four digits; 0 if nothing more can be charged.
        """
        return self._filter(self.entries).epsilon_left(self.delta if delta is None else delta, n_fits)

    @property
    def spent_after_each(self) -> list[float]:
        """Epsilon at the ledger's delta after each charge, by the rule that is enforced."""
        entries = self.entries
        return [self._filter(entries[:count]).spent_epsilon for count in range(1, len(entries) + 1)]

    def summary(self) -> LedgerSummary:
        """Return what was spent, by the rule that is enforced and by tight accounting for a plan fixed in advance.

        Returns
        -------
        LedgerSummary
            Summary that prints as text and converts to plain types by ``to_dict()``.
        """
        entries = self.entries
        losses = composed.compose(entry.part for entry in entries)
        squares = [entry.spending.composition.full for entry in entries if entry.spending.composition]
        adjacency = self._neighbours(entries)
        rule = self._filter(entries)
        tight = composed.tight_epsilon(squares, losses, entries[0].spending.adjacency, self.delta) if entries else 0.0
        if tight is not None:  # the enforced epsilon holds for any plan; it is smaller for some selections
            tight = min(tight, rule.spent_epsilon)
        return LedgerSummary(
            self.address, self.epsilon, self.delta, adjacency, entries, rule.spent_epsilon, rule.epsilon_left(self.delta), tight
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

    def to_html(self) -> str:
        """Return a page for a data protection officer: what was spent on what by whom, and what is left.

        Returns
        -------
        str
            A complete HTML page without scripts.
        """
        return self._as(as_page)

    def _as(self, render: Callable[..., str]) -> str:
        entries = self.entries
        return render(self.address, self._neighbours(entries), self._filter(entries), entries)

    def _read(self, entries: list[str]) -> tuple[LedgerEntry, ...]:
        try:
            return tuple(LedgerEntry.from_json(content) for content in entries)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):  # hashes are right, entries are not
            raise damaged(self.address) from None

    def _filter(self, entries: Iterable[LedgerEntry]) -> Filter:
        return Filter(self.epsilon, self.delta, tuple(entry.charge for entry in entries))

    def _neighbours(self, entries: tuple[LedgerEntry, ...]) -> str | None:
        return entries[0].spending.adjacency if entries else self._book.facts["adjacency"]

    def _unit(self, entries: tuple[LedgerEntry, ...]) -> str | None:
        return self._book.facts.get("unit", "record") or (entries[0].spending.unit if entries else None)

    def _admitted(self, spending: Spending, entries: tuple[LedgerEntry, ...]) -> Charge:
        """Return the charge of a fit: by its cover if the ceiling admits that, else by its own guarantee."""
        if self._neighbours(entries) not in (None, spending.adjacency):
            raise PrivacyAccountingError(
                f"{spending.estimator} has adjacency={spending.adjacency!r}; the ledger {self.address!r} counts "
                f"{'zero_out' if spending.adjacency == 'replace_one' else 'replace_one'!r}. Use the same for all fits."
            )
        if self._unit(entries) == "person" and spending.unit == "record":
            raise PrivacyAccountingError(
                f"{spending.estimator} protects records; the ledger {self.address!r} counts what is spent of persons, each of "
                "whom may have many. Use privacy_unit='person' with fit(X, y, persons=ids), evaluate(..., persons=ids), "
                "add(..., unit='person') for what protects persons, or another ledger."
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
        raise BudgetExceededError(refusal(spending, self.address, rule, left), left)


def _covered(spending: Spending, slack: float) -> Charge:
    if spending.composition is None:  # with probability delta it tells the tables apart, else it is pure epsilon-DP
        return Charge(spending.epsilon, spending.delta, pure_cover(spending.epsilon), spending.delta)
    budget = Budget(spending.epsilon, spending.delta, spending.adjacency)
    mu = gaussian_cover(spending.composition, budget, slack)
    return Charge(spending.epsilon, spending.delta, mu, slack if spending.composition.sampled else 0.0)


def _facts(epsilon: object, delta: object, adjacency: object, unit: object) -> dict[str, Any]:
    for name, value, limit in (("epsilon", epsilon, LARGEST_EPSILON), ("delta", delta, LARGEST_DELTA)):
        number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value <= limit):  # type: ignore[operator]
            raise (ValueError if number else TypeError)(f"{name}={shown(value)}; expected a number above 0, at most {limit:g}.")
    if adjacency is not None and adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency={shown(adjacency)}; expected one of {sorted(ADJACENCIES)}, or None.")
    if unit is not None:
        unit_of(unit, "unit")
    ceiling = {"epsilon": epsilon and float(epsilon), "delta": delta and float(delta)}  # type: ignore[arg-type]
    return {**ceiling, "adjacency": adjacency, "unit": unit}

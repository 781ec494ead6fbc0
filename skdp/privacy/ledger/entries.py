"""Define the entries of a ledger, one per fit, and its summary."""

import functools
import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.errors import printable
from skdp.privacy.ledger.privacy_filter import Charge, Filter


@dataclass(frozen=True)
class Spending:
    """State what a fit will spend, from public facts only.

    Parameters
    ----------
    estimator : str
        Class of the estimator, or a note on another release.
    parameters : dict
        Parameters of the estimator, as text.
    schedule : tuple of str
        Releases, one line per kind.
    adjacency : str
        Which tables are neighbours.
    epsilon, delta : float
        Guarantee of the fit.
    composition : Composition or None
        Releases at noise scale 1; None if only the guarantee is known.
    unit : {"record", "person"}, default="record"
        What neighbours differ in; entries of older files have none, and are of records.
    """

    estimator: str
    parameters: dict[str, str]
    schedule: tuple[str, ...]
    adjacency: str
    epsilon: float
    delta: float
    composition: Composition | None = None
    unit: str = "record"


@dataclass(frozen=True)
class LedgerEntry:
    """Record one charge.

    Parameters
    ----------
    number : int
        Number of the charge, from 1.
    time : str
        Time of the charge, in ISO 8601, UTC.
    spending : Spending
        What the fit was scheduled to spend.
    charge : Charge
        Cost in the ledger.
    user : str, default=""
        Who was charged; entries of older files do not say it.
    id : str, default=""
        Unique name of the charge; entries of older files have none.
    """

    number: int
    time: str
    spending: Spending
    charge: Charge
    user: str = ""
    id: str = ""

    @property
    def part(self) -> Composition | tuple[float, float]:
        """The releases, or the guarantee if the releases are not known."""
        return self.spending.composition or (self.spending.epsilon, self.spending.delta)

    def to_json(self) -> str:
        """Return the entry as a JSON document.

        Returns
        -------
        str
            Document that `from_json` reads.
        """
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    @functools.lru_cache(maxsize=4096)
    def from_json(cls, document: str) -> "LedgerEntry":
        """Read an entry.

        Parameters
        ----------
        document : str
            Document from `to_json`.

        Returns
        -------
        LedgerEntry
            The entry.
        """
        content = json.loads(document)
        rest = {name: content[name] for name in ("user", "id") if name in content}
        spending = dict(content["spending"], schedule=tuple(content["spending"]["schedule"]))
        if composition := spending["composition"]:
            sampled, selections = (tuple(map(tuple, composition[name])) for name in ("sampled", "selections"))
            spending["composition"] = Composition(composition["adjacency"], sampled, selections, composition["full"])
        charge = Charge(**content["charge"])
        costs = (charge.epsilon, charge.delta, charge.mu, charge.slack, spending["epsilon"], spending["delta"])
        if not all(math.isfinite(cost) and cost >= 0 for cost in costs):
            raise ValueError("A charge below 0 would give budget back.")
        return cls(content["number"], content["time"], Spending(**spending), charge, **rest)

    def __str__(self) -> str:
        spending, charge = self.spending, self.charge
        slack = f", slack {charge.slack:.3g}" if charge.slack else ""
        cost = "charged by itself" if charge.by_itself else f"charged as mu {charge.mu:.4g}{slack}"
        guarantee = f"epsilon {spending.epsilon:.4g}, delta {spending.delta:.3g}"
        guarantee += " of persons" if spending.unit == "person" else ""
        return printable(f"{self.number:>4}  {self.time[:19]}Z  {spending.estimator}: {guarantee}; {cost}")


@dataclass(frozen=True)
class LedgerSummary:
    """State the ceiling of a ledger, what was spent, and what is left.

    Parameters
    ----------
    path : str
        Where the ledger is.
    epsilon, delta : float
        The ceiling.
    adjacency : str or None
        Which tables are neighbours; None before the first charge.
    entries : tuple of LedgerEntry
        All charges.
    spent_epsilon : float
        Epsilon spent at the ceiling's delta, by the rule that is enforced.
    epsilon_left : float
        Largest epsilon that a full-data fit could still be charged at the ceiling's delta.
    tight_epsilon : float or None
        Epsilon spent at the ceiling's delta, valid for a plan fixed in advance; None if delta is too small to compute it.
    """

    path: str
    epsilon: float
    delta: float
    adjacency: str | None
    entries: tuple[LedgerEntry, ...]
    spent_epsilon: float
    epsilon_left: float
    tight_epsilon: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain types.

        Returns
        -------
        dict
            Contents that can be written as JSON.
        """
        return asdict(self)

    def __str__(self) -> str:
        tight = "not computed: delta is too small" if self.tight_epsilon is None else f"epsilon {self.tight_epsilon:.6g}"
        neighbours = self.adjacency or "open until the first charge"
        number = "1 charge" if len(self.entries) == 1 else f"{len(self.entries)} charges"
        spent = f"epsilon {self.spent_epsilon:.6g} at this delta by {number}"
        lines = [
            f"Ledger     {self.path}",
            f"Ceiling    epsilon {self.epsilon!r}, delta {self.delta!r}; neighbours: {neighbours}",
            f"Spent      {spent}, even if each fit was chosen by earlier results",
            f"           {tight}, if all fits were fixed in advance",
            f"Left       a full-data fit with epsilon up to {self.epsilon_left!r}, at the ledger's delta",
        ]
        return "\n".join([*lines, *(str(entry) for entry in self.entries)])

    def __repr__(self) -> str:
        return str(self)


def refusal(spending: Spending, path: str, rule: Filter, left: float) -> str:
    """Return the message about a charge that would exceed the budget.

    Parameters
    ----------
    spending : Spending
        The refused charge.
    path : str
        Where the ledger is.
    rule : Filter
        The ceiling and the earlier charges.
    left : float
        Largest epsilon that a full-data fit could still be charged.

    Returns
    -------
    str
        The refused charge, the spent budget, and what could still be charged.
    """
    asked = f"{spending.estimator} would spend epsilon={spending.epsilon:.6g}, delta={spending.delta:.6g}"
    spent = f"{rule.spent_epsilon:.6g} of epsilon={rule.epsilon!r} at delta={rule.delta!r} is spent"
    if spending.epsilon == math.inf:
        fits = "a fit without noise can never be charged"
    elif spending.composition is None:
        fits = (
            f"releases with only a known guarantee have delta={rule.delta_left:.3g} left, and cost more after the first fit; "
            "expected them before the first fit"
        )
    elif left:
        smaller = " (a fit's delta below the ledger's lets epsilon be larger)" if spending.delta < rule.delta else ""
        fits = f"a full-data fit with this delta and epsilon up to {left!r} would still fit{smaller}"
    else:
        fits = "nothing more fits"
    return f"{asked}; in the ledger {path!r} {spent}, and {fits}. Nothing was charged."

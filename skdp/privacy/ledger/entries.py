"""What stands in a ledger: one entry per fit, and the summary of all."""

import functools
import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.ledger.privacy_filter import Charge, Filter

__all__ = ["LedgerEntry", "LedgerSummary", "Spending", "refusal"]


@dataclass(frozen=True)
class Spending:
    """What a fit will spend, from public facts.

    Parameters
    ----------
    estimator : str
        Class of the estimator, or a note on another release.
    parameters : dict
        Its parameters, as text.
    schedule : tuple of str
        Its releases, one line per kind.
    adjacency : str
        Which tables are neighbours.
    epsilon, delta : float
        Its own guarantee.
    composition : Composition or None
        Its releases at noise scale 1; None where nothing but the guarantee is known.
    """

    estimator: str
    parameters: dict[str, str]
    schedule: tuple[str, ...]
    adjacency: str
    epsilon: float
    delta: float
    composition: Composition | None = None


@dataclass(frozen=True)
class LedgerEntry:
    """One charge.

    Parameters
    ----------
    number : int
        From 1.
    time : str
        When it was charged, in ISO 8601, UTC.
    spending : Spending
        What the fit was to spend.
    charge : Charge
        What it costs in the ledger.
    """

    number: int
    time: str
    spending: Spending
    charge: Charge

    @property
    def part(self) -> Composition | tuple[float, float]:
        """The releases, or the guarantee where they are not known."""
        return self.spending.composition or (self.spending.epsilon, self.spending.delta)

    def to_json(self) -> str:
        """Return the entry as a JSON document.

        Returns
        -------
        str
            For `from_json`.
        """
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    @functools.lru_cache(maxsize=4096)
    def from_json(cls, document: str) -> "LedgerEntry":
        """Read an entry.

        Parameters
        ----------
        document : str
            From `to_json`.

        Returns
        -------
        LedgerEntry
            The entry.
        """
        content = json.loads(document)
        spending = dict(content["spending"], schedule=tuple(content["spending"]["schedule"]))
        if composition := spending["composition"]:
            sampled, selections = (tuple(map(tuple, composition[name])) for name in ("sampled", "selections"))
            spending["composition"] = Composition(composition["adjacency"], sampled, selections, composition["full"])
        return cls(content["number"], content["time"], Spending(**spending), Charge(**content["charge"]))

    def __str__(self) -> str:
        spending, charge = self.spending, self.charge
        slack = f", slack {charge.slack:.3g}" if charge.slack else ""
        cost = "charged by itself" if charge.by_itself else f"charged as mu {charge.mu:.4g}{slack}"
        guarantee = f"epsilon {spending.epsilon:.4g}, delta {spending.delta:.3g}"
        return f"{self.number:>4}  {self.time[:19]}Z  {spending.estimator}: {guarantee}; {cost}"


@dataclass(frozen=True)
class LedgerSummary:
    """What a ledger allowed, what was spent, and what is left.

    Parameters
    ----------
    path : str
        The file.
    epsilon, delta : float
        The ceiling.
    adjacency : str or None
        Which tables are neighbours; None before the first charge.
    entries : tuple of LedgerEntry
        All charges.
    spent_epsilon : float
        By the rule that is enforced, at the ceiling's delta.
    epsilon_left : float
        Largest epsilon, at the ceiling's delta, of a fit on full data that still fits.
    tight_epsilon : float or None
        At the ceiling's delta, valid for a plan fixed in advance; None where delta is too small to compute it.
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
            Ready for JSON.
        """
        return asdict(self)

    def __str__(self) -> str:
        tight = "not computed: delta is too small" if self.tight_epsilon is None else f"epsilon {self.tight_epsilon:.6g}"
        neighbours = self.adjacency or "open until the first charge"
        lines = [
            f"Ledger     {self.path}",
            f"Ceiling    epsilon {self.epsilon!r}, delta {self.delta!r}; neighbours: {neighbours}",
            f"Spent      epsilon {self.spent_epsilon:.6g} by {len(self.entries)} charges, however each was chosen",
            f"           {tight}, valid for a plan fixed in advance",
            f"Left       a full-data fit with epsilon up to {self.epsilon_left!r}, at the ledger's delta",
        ]
        return "\n".join([*lines, *(str(entry) for entry in self.entries)])

    def __repr__(self) -> str:
        return str(self)


def refusal(spending: Spending, path: str, rule: Filter, left: float) -> str:
    """Return the message about a fit that does not fit.

    Parameters
    ----------
    spending : Spending
        What was asked.
    path : str
        File of the ledger.
    rule : Filter
        What was charged before.
    left : float
        Epsilon of a fit on full data that still fits.

    Returns
    -------
    str
        What was asked, what is spent, what would fit.
    """
    asked = f"{spending.estimator} would spend epsilon={spending.epsilon:.6g}, delta={spending.delta:.6g}"
    spent = f"{rule.spent_epsilon:.6g} of epsilon={rule.epsilon!r} at delta={rule.delta!r} is spent"
    if spending.epsilon == math.inf:
        fits = "a fit without noise can never be charged"
    elif spending.composition is None:
        fits = (
            f"releases of which only a guarantee is known have delta={rule.delta_left:.3g} left, and cost much once fits are "
            "charged; expected them before the first fit"
        )
    elif left:
        smaller = " (a fit's delta below the ledger's lets epsilon be larger)" if spending.delta < rule.delta else ""
        fits = f"a full-data fit with this delta and epsilon up to {left!r} would still fit{smaller}"
    else:
        fits = "nothing more fits"
    return f"{asked}; in the ledger {path!r} {spent}, and {fits}. Nothing was charged."

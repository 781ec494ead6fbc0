"""Hold the result of an audit by many fits."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skdp.audit._claim import METHODS, Claim
from skdp.audit._rates import error_rates, split

SEEN = {"transcript": "every release", "final": "the final model"}


@dataclass(frozen=True)
class Bound:
    """Hold the bound that the attack of one view proves.

    Parameters
    ----------
    view : {"transcript", "final"}
        What the adversary saw.
    method : {"gaussian", "subsampled", "proof", "clopper-pearson"}
        How error rates were converted into an epsilon.
    epsilon : float
        Lower confidence bound at the claimed delta.
    mu : float or None
        The bound as a Gaussian-DP parameter, for "gaussian".
    false_positive_rate, false_negative_rate : float
        Upper confidence bounds of the error rates at the threshold.
    threshold : float
        The attack says "canary" if the score is at or above this value.
    provable : float
        Bound if the attack never erred (approximate for "subsampled"). With this number of runs, a larger claim cannot be
        refuted.
    """

    view: str
    method: str
    epsilon: float
    mu: float | None
    false_positive_rate: float
    false_negative_rate: float
    threshold: float
    provable: float


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """Hold lower bounds on the epsilon that an estimator spends, and its claim.

    Parameters
    ----------
    estimator : str
        Name of the audited estimator.
    solver : str
        Name of its algorithm.
    claim : Claim
        Stated releases, noise and budget.
    confidence : float
        Probability that the bound of a view holds.
    n_runs : int
        Number of fits on each of the two tables.
    bounds : tuple of Bound
        One bound per view.
    scores : dict of ndarray of shape (2, n_runs)
        Scores of the runs without and with the canary, by view.
    """

    estimator: str
    solver: str
    claim: Claim
    confidence: float
    n_runs: int
    bounds: tuple[Bound, ...]
    scores: dict[str, np.ndarray]

    @property
    def epsilon(self) -> float:
        """Claimed epsilon."""
        return self.claim.budget.epsilon

    @property
    def delta(self) -> float:
        """Claimed delta."""
        return self.claim.budget.delta

    @property
    def adjacency(self) -> str:
        """Which tables are neighbours."""
        return self.claim.budget.adjacency

    @property
    def consistent(self) -> bool:
        """Whether no bound exceeds the claim."""
        return all(bound.epsilon <= self.epsilon for bound in self.bounds)

    def bound(self, view: str) -> Bound:
        """Return the bound of one view.

        Parameters
        ----------
        view : {"transcript", "final"}
            What the adversary saw.

        Returns
        -------
        Bound
            Error rates and the epsilon that they prove.
        """
        for bound in self.bounds:
            if bound.view == view:
                return bound
        raise ValueError(f"view={view!r} was not audited; expected one of {[bound.view for bound in self.bounds]!r}.")

    def error_rates(self, view: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the observed error rates of the attack at all thresholds, on the runs that determine the bound.

        Parameters
        ----------
        view : {"transcript", "final"}
            What the adversary saw.

        Returns
        -------
        false_positive_rate : ndarray of shape (n_thresholds,)
            Decreases from 1, where the attack always says "canary", to 0.
        false_negative_rate : ndarray of shape (n_thresholds,)
            Increases from 0 to 1.
        """
        self.bound(view)
        _, judged = split(self.scores[view])
        positive, negative = error_rates(judged, np.append(np.unique(judged), np.inf))
        return positive, negative

    def trade_off(self, view: str, false_positive_rate: np.ndarray) -> np.ndarray:
        """Return the smallest false negative rate that the claim permits, by the method of the bound.

        Parameters
        ----------
        view : {"transcript", "final"}
            What the adversary saw.
        false_positive_rate : ndarray of shape (k,)
            False positive rates.

        Returns
        -------
        ndarray of shape (k,)
            Values in [0, 1].
        """
        return self.claim.trade_off(false_positive_rate, self.bound(view).method)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict, without the scores.

        Returns
        -------
        dict
            Ready for JSON.
        """
        facts = {"estimator": self.estimator, "solver": self.solver, **asdict(self.claim.budget)}
        facts |= {"confidence": self.confidence, "n_runs": self.n_runs, "consistent": self.consistent}
        return facts | {"bounds": [asdict(bound) for bound in self.bounds]}

    def plot(self, view: str | None = None, ax: Any = None) -> Any:
        """Plot the error rates of the attack, and those that the claim permits.

        Parameters
        ----------
        view : {"transcript", "final"} or None, default=None
            What the adversary saw; None takes the first view that was audited.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        skdp.inspection.TradeOffDisplay
            The drawing.
        """
        from skdp.inspection import TradeOffDisplay

        return TradeOffDisplay.from_audit(self, view=view, ax=ax)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return a few lines for a reader."""
        strongest = max(bound.epsilon for bound in self.bounds)
        claim = f"the claimed epsilon of {self.epsilon:g} (delta {self.delta:g}, {self.adjacency})"
        verdict = (
            f"No violation found: the attacks prove an epsilon of at least {strongest:.3g}; {claim} may hold."
            if self.consistent
            else f"VIOLATION: the attacks prove an epsilon of at least {strongest:.3g}, above {claim}."
        )
        if all(bound.provable <= self.epsilon for bound in self.bounds):
            most = max(bound.provable for bound in self.bounds)
            verdict = (
                f"INCONCLUSIVE: {self.n_runs} runs can prove no more than epsilon {most:.3g}, below {claim}; more are needed."
            )
        lines = [verdict, f"{self.estimator}, solver {self.solver!r}"]
        lines += [
            f"  with {SEEN[bound.view]}: epsilon >= {bound.epsilon:.3g}, by {METHODS[bound.method]}" for bound in self.bounds
        ]
        return "\n".join(
            [*lines, f"{self.n_runs} fits of each of two neighbouring tables; each bound has confidence {self.confidence:g}."]
        )

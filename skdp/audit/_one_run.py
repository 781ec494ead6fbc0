"""Audit an estimator by one fit with many canaries."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from skdp._validation import check_integer
from skdp.audit._attack import Attack, planned, warnings_said_once
from skdp.audit._canary import make_canaries, random_directions
from skdp.audit._checks import check_attack, check_audit, check_views
from skdp.privacy.budget import Budget

GUESSED = 4  # by default, one in four canaries is guessed
# The search for the bound on epsilon goes up from 0 in steps of STEP to at most LARGEST_EPSILON, and then bisects the last step
# until it is shorter than PRECISION. Choices: a smaller PRECISION makes the bound larger by less than 1e-6.
PRECISION, STEP, LARGEST_EPSILON = 1e-6, 0.05, 100.0


@dataclass(frozen=True, repr=False)
class OneRunResult:
    """Hold a lower bound on epsilon from one fit.

    Parameters
    ----------
    estimator : str
        Name of the audited estimator.
    solver : str
        Name of its algorithm.
    budget : Budget
        Claimed epsilon and delta, and the adjacency.
    view : {"transcript", "final"}
        What the adversary saw.
    confidence : float
        Probability that the bound holds.
    n_canaries, n_guesses, n_correct : int
        Number of canaries, of guesses, and of right guesses.
    bound : float
        Lower confidence bound on epsilon at the claimed delta.
    """

    estimator: str
    solver: str
    budget: Budget
    view: str
    confidence: float
    n_canaries: int
    n_guesses: int
    n_correct: int
    bound: float

    @property
    def consistent(self) -> bool:
        """Whether the bound does not exceed the claim."""
        return self.bound <= self.budget.epsilon

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict.

        Returns
        -------
        dict
            Ready for JSON.
        """
        facts = asdict(self)
        return facts | facts.pop("budget") | {"consistent": self.consistent}

    @property
    def provable(self) -> float:
        """The bound if every guess were right; with this number of guesses, a larger claim cannot be refuted."""
        return guessing_epsilon(self.n_canaries, self.n_guesses, self.n_guesses, self.budget.delta, self.confidence)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return a few lines for a reader."""
        claim = f"the claimed epsilon of {self.budget.epsilon:g} (delta {self.budget.delta:g}, {self.budget.adjacency})"
        verdict = (
            f"No violation found: one fit proves an epsilon of at least {self.bound:.3g}; {claim} may hold."
            if self.consistent
            else f"VIOLATION: one fit proves an epsilon of at least {self.bound:.3g}, above {claim}."
        )
        if self.provable <= self.budget.epsilon:
            verdict = (
                f"INCONCLUSIVE: {self.n_guesses} guesses can prove no more than epsilon {self.provable:.3g}, below {claim}; more "
                f"canaries and guesses are needed. Proved: {self.bound:.3g}."
            )
        guesses = f"{self.n_correct} of {self.n_guesses} guesses right, about {self.n_canaries} canaries"
        return f"{verdict}\n{self.estimator}, solver {self.solver!r}\n{guesses}; confidence {self.confidence:g}."


def audit_one_run(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_canaries: int = 100,
    n_guesses: int | None = None,
    view: str = "final",
    confidence: float = 0.95,
    random_state: int | None = None,
) -> OneRunResult:
    """Compute a lower bound on the epsilon of an estimator from one fit, by guessing which of many canaries it has seen.

    Canaries replace the first records. They are rows at the public norm bound in random directions, which are orthogonal if there
    are at most as many canaries as features. A fair coin decides for each canary whether it is in the table. If not, it is
    replaced as the adjacency allows: by a null record (``zero_out``), or by the same row with another label (``replace_one``).
    The adversary guesses the coins of the canaries with the highest and the lowest scores. If more guesses are right than epsilon
    permits, the claim is refuted.

    Parameters
    ----------
    estimator : DPEstimator
        A private estimator with a finite epsilon. A copy of it is fitted.
    X : array-like, CSR or CSC of shape (n_samples, n_features)
        Records. With many features, canaries are easier to tell apart.
    y : array-like of shape (n_samples,)
        Class labels.
    n_canaries : int, default=100
        Number of records that are replaced, fewer than all.
    n_guesses : int or None, default=None
        Number of canaries that are guessed, half of them as in and half as out; an even number up to ``n_canaries``. Fix it
        before the audit. None uses about a quarter of the canaries.
    view : {"final", "transcript"}, default="final"
        What the adversary sees: the fitted model, or all noisy answers of the oracle.
    confidence : float, default=0.95
        Probability that the bound holds.
    random_state : int or None, default=None
        None audits the real noise; an integer makes canaries, coins and noise reproducible.

    Returns
    -------
    OneRunResult
        The bound, and the number of guesses behind it.

    Raises
    ------
    TypeError, ValueError
        In the same cases as `audit`.

    See Also
    --------
    audit : Audit an estimator by many fits with one canary, which gives stronger bounds.

    Notes
    -----
    **Privacy.** The audit reads X and y without noise, so its result is not private. Use public or made-up records.

    With m coins, r guesses, v right guesses, and :math:`q = 1 / (1 + e^{-\\varepsilon})`, the p-value is

    .. math:: P[B \\ge v] + 2 m \\delta \\max_{1 \\le i \\le v} \\frac1i P[v > B \\ge v - i], \\qquad B \\sim \\mathrm{Bin}(r, q),

    and the bound is the largest epsilon at which it is at most ``1 - confidence``.

    References
    ----------
    .. [1] T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023, Theorem 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.audit import audit_one_run
    >>> model = DPLogisticRegression(epsilon=8.0, delta=1e-5)
    >>> result = audit_one_run(model, np.zeros((400, 100)), np.arange(400) % 2, random_state=0)
    >>> result.consistent
    True
    """
    check_audit(estimator, confidence, random_state)
    if getattr(estimator, "privacy_unit", "record") == "person":
        raise ValueError(
            "privacy_unit='person': the canaries of one run are single rows; expected audit(model, X, y, persons=ids), or "
            "privacy_unit='record'."
        )
    (seen,) = check_views(str(view))
    check_integer("n_canaries", n_canaries, minimum=2)
    n_guesses = 2 * max(1, n_canaries // (2 * GUESSED)) if n_guesses is None else n_guesses
    check_integer("n_guesses", n_guesses, minimum=2)
    if n_guesses % 2 or n_guesses > n_canaries:
        raise ValueError(f"n_guesses={n_guesses!r}; expected an even number up to n_canaries={n_canaries!r}.")
    plan = planned(estimator, X, y)
    check_attack(plan.problem, (seen,))
    if n_canaries >= plan.problem.n_samples:
        raise ValueError(f"n_canaries={n_canaries!r}; expected fewer than the {plan.problem.n_samples} records.")
    rng = np.random.default_rng(random_state)
    directions = random_directions(n_canaries, plan.problem.n_features, rng)
    canaries = make_canaries(estimator, plan.problem, X, y, lambda others: directions, n_canaries)
    present = rng.random(n_canaries) < 0.5
    seed = None if random_state is None else int(rng.integers(2**63))
    with warnings_said_once():
        scores = Attack(estimator, canaries, (seen,)).scores(np.flatnonzero(~present), seed)[0]
    order, half = np.argsort(scores, kind="stable"), n_guesses // 2
    n_correct = int(np.count_nonzero(present[order[-half:]]) + np.count_nonzero(~present[order[:half]]))
    delta = plan.problem.budget.delta
    return OneRunResult(
        estimator=" ".join(repr(estimator).split()),
        solver=plan.solver.name,
        budget=plan.problem.budget,
        view=seen,
        confidence=confidence,
        n_canaries=int(n_canaries),
        n_guesses=int(n_guesses),
        n_correct=n_correct,
        bound=guessing_epsilon(n_canaries, n_guesses, n_correct, delta, confidence),
    )


def p_value(n_canaries: int, n_guesses: int, n_correct: int, epsilon: float, delta: float) -> float:
    """Return an upper bound on the probability of at least this number of right guesses under (epsilon, delta)-DP.

    Parameters
    ----------
    n_canaries, n_guesses, n_correct : int
        Number of coins, of guesses, and of right guesses.
    epsilon, delta : float
        Privacy parameters.

    Returns
    -------
    float
        At most 1.
    """
    guesses = binom(n_guesses, 1 / (1 + np.exp(-epsilon)))
    fewer = np.arange(1, n_correct + 1)
    gaps = (guesses.cdf(n_correct - 1) - guesses.cdf(n_correct - fewer - 1)) / fewer
    return min(1.0, float(guesses.sf(n_correct - 1) + 2 * n_canaries * delta * gaps.max(initial=0.0)))


def guessing_epsilon(n_canaries: int, n_guesses: int, n_correct: int, delta: float, confidence: float) -> float:
    """Return the largest epsilon that this number of right guesses refutes.

    Parameters
    ----------
    n_canaries, n_guesses, n_correct : int
        Coins, guesses, and right guesses.
    delta : float
        Privacy parameter.
    confidence : float
        Probability that the bound holds.

    Returns
    -------
    float
        Non-negative, rounded down.
    """

    def refuted(epsilon: float) -> bool:
        return p_value(n_canaries, n_guesses, n_correct, epsilon, delta) <= 1 - confidence

    low = 0.0
    if not refuted(low):
        return low
    while low < LARGEST_EPSILON and refuted(low + STEP):
        low += STEP
    high = low + STEP
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low

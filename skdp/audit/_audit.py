"""The audit by many fits: half with a canary, half without."""

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from skdp._validation import check_integer
from skdp.audit._attack import VIEWS, Attack, planned, warnings_said_once
from skdp.audit._canary import Canaries, least_direction, make_canaries
from skdp.audit._checks import check_attack, check_audit, check_views
from skdp.audit._claim import Claim
from skdp.audit._rates import best_threshold, error_rates, split, upper_bounds
from skdp.audit._result import AuditResult, Bound

__all__ = ["audit"]

FEWEST_RUNS, ROUNDS = 20, 10
TABLES = np.array([0]), np.array([], dtype=int)  # absent canaries: without it, with it


def audit(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_runs: int = 1000,
    views: Any = VIEWS,
    confidence: float = 0.95,
    method: str = "auto",
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Return an epsilon that the fits of an estimator spend at least, by an attack on many of them.

    The estimator is fitted ``n_runs`` times on each of two neighbouring tables: X and y with a canary in place of the first
    record, and the same with what its adjacency allows instead, a null record (``zero_out``) or the canary with another label
    (``replace_one``). An adversary who knows all other records tells the tables apart by the releases. The better that works,
    the larger the epsilon; if it is above the claim, the guarantee does not hold.

    Parameters
    ----------
    estimator : DPEstimator
        A private estimator with a finite epsilon. It is not fitted itself.
    X : array-like, CSR or CSC of shape (n_samples, n_features)
        Records. Few and short ones make the audit fast; zeros leave the canary alone.
    y : array-like of shape (n_samples,)
        Class labels.
    n_runs : int, default=1000
        Fits of each table, at least 20. A quarter of them chooses the threshold of the attack, the others are judged.
    views : {"transcript", "final"} or sequence of them, default=("transcript", "final")
        What the adversary sees: all noisy answers of the oracle, which the guarantee covers, or the fitted model only.
    confidence : float, default=0.95
        Probability that the bound of a view holds: a correct estimator is accused with probability at most
        ``1 - confidence`` for each view. For continuous integration take 0.9999.
    method : {"auto", "clopper-pearson"}, default="auto"
        How error rates become an epsilon. "auto" uses the shape of the claim: releases with Gaussian noise obey a whole
        trade-off curve, of which (epsilon, delta) is one point. "clopper-pearson" uses the definition of (epsilon, delta)
        alone and is weaker.
    n_jobs : int or None, default=None
        Processes, as in scikit-learn.
    random_state : int or None, default=None
        None audits the noise that is used in earnest; an integer gives each fit a seed of its own, so that the result is
        reproducible, whatever ``n_jobs``.
    verbose : int, default=0
        1 prints about ten lines of progress.

    Returns
    -------
    AuditResult
        A bound per view, and the scores of all runs.

    Raises
    ------
    TypeError
        If ``estimator`` is no private estimator, such as a pipeline.
    ValueError
        If a parameter is out of its range, ``epsilon=inf``, or the estimator has a seed; from the estimator, if it does not
        accept the records.

    See Also
    --------
    audit_one_run : An audit by one fit with many canaries.

    Notes
    -----
    **Privacy.** The audit reads X and y without noise and fits thousands of times: its result is not private. Use public or
    made-up records.

    A bound far below the claim proves nothing: another attack may do better. Both error rates are bounded by Clopper and
    Pearson's method, each wrong with probability at most ``(1 - confidence) / 2``. "gaussian" takes the least mu whose mu-GDP
    permits them [1]_, "subsampled" and "proof" the largest noise at which the privacy profile of the schedule does. The
    arithmetic rounds
    epsilon up by at most one part in 1000, far less than the runs resolve; it stays below the budget where the claim is true.

    References
    ----------
    .. [1] M. Nasr, J. Hayes, T. Steinke, B. Balle, F. Tramer, M. Jagielski, N. Carlini, A. Terzis, "Tight auditing of
       differentially private machine learning", USENIX Security 2023.
    .. [2] M. Jagielski, J. Ullman, A. Oprea, "Auditing differentially private machine learning: how private is private SGD?",
       NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.audit import audit
    >>> from skdp.solvers import GradientDescent
    >>> model = DPLogisticRegression(epsilon=2.0, delta=1e-5, solver=GradientDescent(3, step_size=0.01))
    >>> result = audit(model, np.zeros((50, 2)), np.arange(50) % 2, n_runs=100, random_state=0)
    >>> result.consistent
    True
    """
    check_audit(estimator, confidence, random_state)
    check_integer("n_runs", n_runs, minimum=FEWEST_RUNS)
    views = check_views(views)
    if method not in ("auto", "clopper-pearson"):
        raise ValueError(f"method={method!r}; expected 'auto' or 'clopper-pearson'.")
    plan = planned(estimator, X, y)
    check_attack(plan.problem, views)
    canaries = make_canaries(estimator, plan.problem, X, y, least_direction)
    seeds = None if random_state is None else np.random.SeedSequence(random_state).generate_state(2 * n_runs, np.uint64)
    runs = np.arange(2 * n_runs).reshape(n_runs, 2)  # even numbers are fits without the canary
    scores = _all_scores(estimator, canaries, views, runs, seeds, n_jobs, verbose)
    claim = Claim(plan.schedule, plan.scale, plan.problem.budget)
    chosen = claim.method if method == "auto" else method
    return AuditResult(
        estimator=" ".join(repr(estimator).split()),
        solver=plan.solver.name,
        claim=claim,
        confidence=confidence,
        n_runs=int(n_runs),
        bounds=tuple(lower_bound(view, scores[i], claim, chosen, confidence) for i, view in enumerate(views)),
        scores=dict(zip(views, scores, strict=True)),
    )


def lower_bound(view: str, scores: np.ndarray, claim: Claim, method: str, confidence: float) -> Bound:
    """Return the bound that scores prove.

    Parameters
    ----------
    view : str
        What the adversary saw.
    scores : ndarray of shape (2, n_runs)
        Scores of the runs without and with the canary.
    claim : Claim
        What is to be refuted.
    method : str
        How error rates become an epsilon.
    confidence : float
        Probability that the bound holds.

    Returns
    -------
    Bound
        At the threshold that the pilot runs chose; each of the two error rates gets half of what may go wrong.
    """
    pilot, judged = split(scores)
    n_runs, single = judged.shape[1], 1 - (1 - confidence) / 2
    threshold = best_threshold(pilot, single, lambda rates: claim.strength(rates, method))
    rates = upper_bounds(error_rates(judged, np.array([threshold]))[:, 0], n_runs, single)
    mu = float(claim.strength(rates, method)) if method == "gaussian" else None
    provable = claim.epsilon(upper_bounds(np.zeros(2), n_runs, single), "gaussian" if method == "subsampled" else method)
    return Bound(view, method, claim.epsilon(rates, method), mu, float(rates[0]), float(rates[1]), threshold, provable)


def _all_scores(
    estimator: Any, canaries: Canaries, views: tuple[str, ...], runs: np.ndarray, seeds: Any, n_jobs: Any, verbose: int
) -> np.ndarray:
    """Scores of shape (n_views, 2, n_runs), in rounds of one batch per process."""
    parts: list[np.ndarray] = []
    rounds = np.array_split(runs, min(ROUNDS, len(runs)))
    with Parallel(n_jobs=n_jobs) as pool:
        for done in rounds:
            batches = np.array_split(done, min(effective_n_jobs(n_jobs), len(done)))
            parts += pool(delayed(_batch)(estimator, canaries, views, batch, seeds) for batch in batches)
            if verbose:
                print(f"[audit] {sum(map(len, parts))} of {len(runs)} runs of each table", flush=True)
    return np.moveaxis(np.concatenate(parts), 0, -1)


def _batch(estimator: Any, canaries: Canaries, views: tuple[str, ...], runs: np.ndarray, seeds: Any) -> np.ndarray:
    """Scores of shape (n_runs, n_views, 2); what the plan has warned of is not said again."""
    with warnings_said_once():
        attack = Attack(estimator, canaries, views)
        return np.stack([_pair(attack, (None, None) if seeds is None else seeds[pair].tolist()) for pair in runs])


def _pair(attack: Attack, seeds: Any) -> np.ndarray:
    """Scores of shape (n_views, 2) of a fit without the canary and one with it."""
    fits = [attack.scores(absent, seed) for absent, seed in zip(TABLES, seeds, strict=True)]
    return np.concatenate(fits, axis=1)

"""Audit an estimator by many fits: half with a canary, half without."""

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from skdp._persons import check_given, taken_persons
from skdp._table_types import as_table
from skdp._validation import check_integer
from skdp.audit._attack import VIEWS, Attack, planned, warnings_said_once
from skdp.audit._canary import Canaries, least_direction, make_canaries
from skdp.audit._checks import check_attack, check_audit, check_views
from skdp.audit._claim import Claim
from skdp.audit._rates import best_threshold, error_rates, split, upper_bounds
from skdp.audit._result import AuditResult, Bound

FEWEST_RUNS = 20  # least n_runs. A choice: with fewer runs, confidence bounds on error rates refute hardly any claim
ROUNDS = 10  # number of parts in which the runs are computed, and of progress messages; no effect on the result
TABLES = (
    np.array([0]),
    np.array([], dtype=int),
)  # absent canaries in the table without the canary, and in the table with it


def audit(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    persons: Any = None,
    n_runs: int = 1000,
    views: Any = VIEWS,
    confidence: float = 0.95,
    method: str = "auto",
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Compute a lower bound on the epsilon of an estimator, by an attack on many fits.

    The estimator is fitted ``n_runs`` times on each of two neighbouring tables. In the first table, a canary replaces the first
    record of X and y. In the second table, the canary is replaced as the adjacency allows: by a null record (``zero_out``), or by
    the canary with another label (``replace_one``). An adversary who knows all other records tries to tell the tables apart by
    the releases. The more often this succeeds, the larger is the bound. If it is above the claim, the guarantee does not hold.

    If the estimator protects persons, the canary is a person. She replaces the person of the first record, and has as many rows,
    all equal. In the second table a null person replaces her, or a person with a single row of another label.

    Parameters
    ----------
    estimator : DPEstimator
        A private estimator with a finite epsilon. Copies of it are fitted.
    X : array-like, CSR or CSC of shape (n_samples, n_features)
        Records. The audit is fast for few records with few features. Rows of zeros do not interfere with the canary.
    y : array-like of shape (n_samples,)
        Class labels.
    persons : array-like of shape (n_samples,) or None, default=None
        Whose each record is, for an estimator with ``privacy_unit="person"``. Give the first person many rows.
    n_runs : int, default=1000
        Number of fits on each table, at least 20. A quarter of them chooses the threshold of the attack, the others determine the
        bound.
    views : {"transcript", "final"} or sequence of them, default=("transcript", "final")
        What the adversary sees: all noisy answers of the oracle, which the guarantee covers, or only the fitted model.
    confidence : float, default=0.95
        Probability that the bound of a view holds: for each view, a correct estimator is reported as a violation with a
        probability of at most ``1 - confidence``. Use 0.9999 in continuous integration.
    method : {"auto", "clopper-pearson"}, default="auto"
        How error rates are converted into an epsilon. "auto" uses the trade-off curve of the claim, which releases with Gaussian
        noise obey; (epsilon, delta) is only one point of it. "clopper-pearson" uses the definition of (epsilon, delta) alone, and
        gives weaker bounds.
    n_jobs : int or None, default=None
        Number of processes, as in scikit-learn.
    random_state : int or None, default=None
        None audits the real noise. An integer gives each fit its own seed, so that the result is reproducible for any ``n_jobs``.
    verbose : int, default=0
        1 prints about ten lines of progress.

    Returns
    -------
    AuditResult
        A bound per view, and the scores of all runs.

    Raises
    ------
    TypeError
        If ``estimator`` is not a private estimator, for example if it is a pipeline.
    ValueError
        If a parameter is out of range, if ``epsilon=inf``, if the estimator has a seed, or if it does not accept the records.

    See Also
    --------
    audit_one_run : Audit an estimator by one fit with many canaries.

    Notes
    -----
    **Privacy.** The audit reads X and y without noise and fits thousands of times, so its result is not private. Use public or
    made-up records.

    A bound far below the claim proves nothing, because another attack may be stronger. Both error rates are bounded by Clopper
    and Pearson's method; each bound is wrong with a probability of at most ``(1 - confidence) / 2``. The method "gaussian" uses
    the smallest mu whose mu-GDP permits the rates [1]_. "subsampled" and "proof" use the largest noise at which the privacy
    profile of the schedule permits them. The arithmetic rounds epsilon up by at most one part in 1000, which is far less than the
    runs can resolve; the result stays below the budget if the claim is true.

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
    check_given(getattr(estimator, "privacy_unit", "record"), persons, "audit(model, X, y, persons=ids)")
    check_integer("n_runs", n_runs, minimum=FEWEST_RUNS)
    views = check_views(views)
    if method not in ("auto", "clopper-pearson"):
        raise ValueError(f"method={method!r}; expected 'auto' or 'clopper-pearson'.")
    if persons is None:
        plan = planned(estimator, X, y)
    else:
        X, y, persons = _first_person_first(X, y, persons)
        plan = planned(estimator, X, y, persons=persons)
    check_attack(plan.problem, views)
    canaries = make_canaries(estimator, plan.problem, X, y, least_direction, persons=persons)
    seeds = None if random_state is None else np.random.SeedSequence(random_state).generate_state(2 * n_runs, np.uint64)
    runs = np.arange(2 * n_runs).reshape(n_runs, 2)  # fits with even numbers have no canary
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


def _first_person_first(X: Any, y: Any, persons: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a table whose first rows are all rows of the person of the first record, and the numbers of persons."""
    X = check_array(as_table(X), accept_sparse=["csr", "csc"], ensure_all_finite=False)
    _, group = taken_persons("person", "", X, y, persons)
    order = np.argsort(group.numbers != group.numbers[0], kind="stable")
    return X[order], np.asarray(y)[order], group.numbers[order]


def lower_bound(view: str, scores: np.ndarray, claim: Claim, method: str, confidence: float) -> Bound:
    """Return the bound that follows from the scores.

    Parameters
    ----------
    view : str
        What the adversary saw.
    scores : ndarray of shape (2, n_runs)
        Scores of the runs without and with the canary.
    claim : Claim
        The claim to refute.
    method : str
        How error rates are converted into an epsilon.
    confidence : float
        Probability that the bound holds.

    Returns
    -------
    Bound
        The bound at the threshold that the pilot runs chose. Each of the two error rates gets half of the error probability.
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
    """Return scores of shape (n_views, 2, n_runs), computed in rounds of one batch per process."""
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
    """Return scores of shape (n_runs, n_views, 2); warnings of the plan are not repeated."""
    with warnings_said_once():
        attack = Attack(estimator, canaries, views)
        return np.stack([_pair(attack, (None, None) if seeds is None else seeds[pair].tolist()) for pair in runs])


def _pair(attack: Attack, seeds: Any) -> np.ndarray:
    """Return scores of shape (n_views, 2), of a fit without the canary and of a fit with it."""
    fits = [attack.scores(absent, seed) for absent, seed in zip(TABLES, seeds, strict=True)]
    return np.concatenate(fits, axis=1)

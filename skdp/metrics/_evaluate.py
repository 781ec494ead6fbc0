"""Evaluate a fitted classifier of two classes on sensitive test records with two Gaussian releases."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._software import versions
from skdp._validation import shown
from skdp.metrics._evaluation import Evaluation, metric
from skdp.metrics._noisy_table import METRICS, NoisyTable
from skdp.preprocessing._learning import counting_allowance
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import ADJACENCIES, Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.ledger.charging import pay
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ScoreTree, tree
from skdp.privacy.report.statement import ONE_PERSON, OTHER_FITS, PrivacyReport, describe_releases, noise_multiplier, spent
from skdp.privacy.schedule import Gaussian, Release, Schedule

__all__ = ["evaluate", "plan_evaluation"]

# Log-odds beyond this count as this, as for most classifiers' clipped probabilities. A choice.
LARGEST = 6.0
# The raw prediction of `ScoreTree` is half the log-odds, in steps of a hundredth; the half step more makes 0 an edge.
COEF = np.array([[0.5], [0.005]])
# Ranges of the release that finds where the scores are, its share of the squared budget, and the share of the records that the
# window leaves out on each side; ranges inside the window, and on each side of it. From simulations with scores of which some
# were a tenth as wide: without a window, 32 even ranges had up to 390 times the error of the best way, with it up to 56 times.
FIRST, SHARE, LEFT_OUT, INSIDE, OUTSIDE = 64, 0.2, 0.01, 24, 4
# Largest share that the window leaves out on each side; it is twice the noise of a share, where that is more. Choices: with .01
# alone, noise made the window so wide that intervals of the area under the curve of narrow scores had a coverage of .53.
MOST_LEFT_OUT = 0.2
NARROWEST = 64  # least width of the window in steps of 0.02, which leaves each range at least two
FEWEST = 50  # records
DISJOINT = "the test records are other people than the training records, as the caller stated: then the two budgets do not add up"
SHARED = "the budget adds to that of the fit, unless the test records are other people than the training records"


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    metrics: Iterable[str] = ("accuracy", "roc_auc", "log_loss", "brier_score"),
    epsilon: float = 1.0,
    delta: float | None = None,
    adjacency: str = "replace_one",
    level: float = 0.95,
    disjoint: bool = False,
    random_state: Any = None,
) -> Evaluation:
    r"""Evaluate a fitted classifier of two classes on sensitive test records, with differential privacy for these.

    All metrics follow from two releases, so that one metric costs as much as all. The first shows where the log-odds are. The
    second counts the test records by class and log-odds.

    Parameters
    ----------
    model : classifier
        Fitted, with ``predict_proba`` and two ``classes_``; from skdp or from anywhere else. It is taken for public.
    X : array-like or data frame of shape (n_samples, n_features)
        Test records.
    y : array-like of shape (n_samples,)
        Their labels.
    metrics : iterable of str
        Out of "accuracy", "roc_auc", "log_loss", "brier_score", "recall", "specificity" and "precision". The last three concern
        the second class.
    epsilon, delta : float
        Budget of the evaluation. None as ``delta`` means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables of test records are neighbours.
    level : float, default=0.95
        Coverage of the confidence intervals.
    disjoint : bool, default=False
        Whether nobody in the test records is in the training records, which the report then states.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the noise inside `skdp.testing.reproducible_noise`; it changes nothing elsewhere.

    Returns
    -------
    Evaluation
        A mapping from name to `Metric`, with the privacy report.

    Raises
    ------
    TypeError, ValueError
        For a model that is no fitted classifier of two classes, records that it refuses, labels that it does not know, or
        parameters that are not valid. Nothing is charged then.
    BudgetExceededError
        If an active ledger has too little left.

    Notes
    -----
    **Privacy.** Both releases are Haar coefficients of counts by class and range of the log-odds, which lie in [-6, 6]. A record
    is in one range, so its contribution to L + 1 coefficients of its class has the norm :math:`\sqrt{L + 1}`
    (`skdp.privacy.queries.ScoreTree`). The first release has 64 ranges (L = 6) and a fifth of the squared Gaussian-DP parameter,
    the second 32 (L = 5) and the rest. The ranges of the second follow from the first. The model is public, so its prediction
    for a record is a function of that record alone: a model that looks at other test records when it predicts breaks this.

    **Intervals** cover the noise and the sampling of the test records, as if these were drawn independently. Shares have
    Fieller's interval, the area under the ROC curve too, with the variance of DeLong et al. (1988) and at least half of that of
    Hanley and McNeil (1982). Where an interval is wider than 0.5, no value is given. Log loss and Brier score count log-odds
    beyond 6 as 6, and those within a range as its middle.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(40_000, 3))
    >>> y = (X @ [4, -2, 1] + rng.logistic(size=40_000) / 2 > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, data_norm=1.0, classes=[0, 1]).fit(X[:20_000], y[:20_000])
    >>> found = evaluate(model, X[20_000:], y[20_000:], epsilon=1.0, disjoint=True)
    >>> bool(found["roc_auc"].low < found["roc_auc"].value < found["roc_auc"].high)
    True
    """
    check_level(level)
    names = _checked_metrics(metrics)
    if not isinstance(disjoint, (bool, np.bool_)):
        raise TypeError(f"disjoint={shown(disjoint)}; expected True or False.")
    log_odds, labels = _scores(model, X, y)
    return evaluate_scores(
        *(log_odds, labels, names),
        budget=budget_of(len(labels), epsilon, delta, adjacency),
        level=float(level),
        classes=tuple(model.classes_),
        model=type(model).__name__,
        disjoint=bool(disjoint),
        random_state=random_state,
    )


def evaluate_scores(
    log_odds: np.ndarray,
    labels: np.ndarray,
    names: tuple[str, ...],
    *,
    budget: Budget,
    level: float,
    classes: tuple[Any, ...],
    model: str,
    disjoint: bool = False,
    random_state: Any = None,
) -> Evaluation:
    """Charge the active ledgers and release the metrics of checked log-odds in [-6, 6] and class numbers."""
    n_samples = len(labels)
    schedule, scale = _planned(budget)
    noise = NoiseSource(random_state)
    report = _report(model, names, n_samples, budget, schedule, scale, noise, planned=False, disjoint=disjoint)
    pay(_spending(report, budget, schedule, scale))
    rows = TrainingData(log_odds[:, None], labels, data_norm=LARGEST, intercept_scaling=1.0)
    oracle = Oracle(rows, schedule, budget, scale, noise)
    first = ScoreTree(COEF, _even(FIRST))
    stds = [_noise(release, scale, budget) for _, release in schedule.entries]
    seen = NoisyTable.from_coefficients(oracle.ask(first), tree(FIRST), stds[0], _edges(first.cuts), n_samples)
    second = ScoreTree(COEF, _window(seen))
    answer = oracle.ask(second)
    oracle.finish()
    table = NoisyTable.from_coefficients(answer, tree(INSIDE + 2 * OUTSIDE), stds[1], _edges(second.cuts), n_samples)
    found = {name: metric(name, METRICS[name](table, level), name != "log_loss") for name in names}
    return Evaluation(found, level, table, report, classes)


def plan_evaluation(
    n_samples: int, *, epsilon: float = 1.0, delta: float | None = None, adjacency: str = "replace_one"
) -> PrivacyReport:
    """Return the report of an evaluation before any data is touched.

    Parameters
    ----------
    n_samples : int
        Number of test records.
    epsilon, delta : float
        Budget; None as ``delta`` means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables of test records are neighbours.

    Returns
    -------
    PrivacyReport
        Spent budget, releases and noise.
    """
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < FEWEST:
        raise ValueError(f"n_samples={shown(n_samples)}; expected an integer from {FEWEST} on.")
    budget = budget_of(int(n_samples), epsilon, delta, adjacency)
    schedule, scale = _planned(budget)
    return _report("any", tuple(METRICS), int(n_samples), budget, schedule, scale, NoiseSource(), planned=True, disjoint=False)


def accuracy_noise(n_samples: int, epsilon: float, delta: float, adjacency: str) -> float:
    """Return the standard deviation of the noise of an accuracy, from public facts."""
    budget = budget_of(n_samples, epsilon, delta, adjacency)
    schedule, scale = _planned(budget)
    size = INSIDE + 2 * OUTSIDE
    std = _noise(schedule.entries[1][1], scale, budget)
    table = NoisyTable.from_coefficients(np.zeros(2 * size), tree(size), std, _edges(_even(size)), n_samples)
    right = np.repeat([1.0, 0.0, 0.0, 1.0], size // 2)
    return math.sqrt(max(float(right @ table.covariance @ right), 0.0)) / n_samples


def _checked_metrics(metrics: Iterable[str]) -> tuple[str, ...]:
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    unknown = [name for name in names if name not in METRICS]
    if unknown or not names:
        raise ValueError(f"metrics={shown(list(names))}; expected some of {', '.join(METRICS)}.")
    return tuple(dict.fromkeys(names))


def check_level(level: Any) -> None:
    if not isinstance(level, Real) or isinstance(level, bool) or not 0.5 <= float(level) < 1:
        raise ValueError(f"level={shown(level)}; expected a number from 0.5 on, below 1.")


def _scores(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return clipped log-odds and class numbers."""
    classes = getattr(model, "classes_", None)
    if not hasattr(model, "predict_proba") or classes is None or len(classes) != 2:
        raise TypeError("model has no predict_proba for two classes; expected a fitted classifier of two classes.")
    labels = class_numbers(y, tuple(classes), "the model")
    probabilities = quoting_no_data(X, lambda: np.asarray(model.predict_proba(X), dtype=np.float64))
    if probabilities.shape != (len(labels), 2):
        raise ValueError("X and y differ in length, or predict_proba does not return two columns; expected one row per label.")
    if np.isnan(probabilities[:, 1]).any():
        raise ValueError("predict_proba returns nan; expected a probability for every test record.")
    return log_odds_of(probabilities[:, 1]), labels


def class_numbers(y: Any, classes: tuple[Any, ...], knowing: str) -> np.ndarray:
    """Return the numbers of the classes of checked labels."""
    labels = quoting_no_data(y, lambda: column_or_1d(y))
    places = [labels == label for label in classes]
    if not np.logical_or(*places).all():
        raise ValueError(f"y holds labels that {knowing} does not know; expected {shown(list(classes))} only.")
    if len(labels) < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} test records, of which no metric could be told.")
    return np.asarray(places[1], dtype=np.int8)


def log_odds_of(probabilities: np.ndarray) -> np.ndarray:
    """Return the clipped log-odds of probabilities."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(logit(np.clip(probabilities, 0.0, 1.0)), -LARGEST, LARGEST))


def budget_of(n_samples: int, epsilon: Any, delta: Any, adjacency: Any) -> Budget:
    budget = Budget.from_parameters(epsilon, delta, adjacency, n_samples)
    if budget.delta == 0:
        raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")
    return budget


def _planned(budget: Budget) -> tuple[Schedule, float]:
    entries = []
    for size, share in ((FIRST, SHARE), (INSIDE + 2 * OUTSIDE, 1 - SHARE)):
        query = ScoreTree(COEF, _even(size))
        entries.append((1, Release(ScoreTree, Gaussian(share**-0.5), query.clip_norm, query.size)))
    schedule = Schedule(tuple(entries))
    return schedule, calibrate(schedule, budget)


def _noise(release: Release, scale: float, budget: Budget) -> float:
    """Return the standard deviation of the noise of each coordinate."""
    clip_norm = ScoreTree(COEF, _even(int(release.size or 0) // 2)).clip_norm
    return noise_multiplier(release, scale, budget.adjacency) * clip_norm if budget.private else 0.0


def _even(size: int) -> tuple[int, ...]:
    """Return the cuts of even ranges of [-6, 6] in steps, one of them at 0."""
    steps = round(LARGEST * 50)
    return tuple(int(cut) + 1 for cut in np.rint(np.linspace(-steps, steps, size + 1))[1:-1])


def _edges(cuts: tuple[int, ...]) -> np.ndarray:
    """Return the log-odds at the ends of ranges."""
    return np.concatenate([[-LARGEST], (np.array(cuts) - 1) / 50, [LARGEST]])


def _window(seen: NoisyTable) -> tuple[int, ...]:
    """Return the cuts of the second release: even ones where the records are, wider ones outside, and one at 0."""
    shares = np.maximum.accumulate(np.cumsum(seen.counts.sum(axis=0))) / seen.n_samples
    half_of = np.tile(np.arange(FIRST) < FIRST // 2, 2).astype(float)
    noise = math.sqrt(max(float(half_of @ seen.covariance @ half_of), 0.0)) / seen.n_samples
    left_out = min(max(LEFT_OUT, 2 * noise), MOST_LEFT_OUT)
    steps, least = round(LARGEST * 50), NARROWEST // 2
    low = seen.edges[min(int(np.searchsorted(shares, left_out)), FIRST - 1)]
    high = seen.edges[min(int(np.searchsorted(shares, 1 - left_out)) + 1, FIRST)]
    middle, half = round(25 * (low + high)), max(math.ceil(25 * (high - low)), least)
    room = 2 * OUTSIDE  # each range outside has at least two steps
    start, stop = max(middle - half, -steps + room), min(middle + half, steps - room)
    start, stop = min(start, stop - 2 * least), max(stop, start + 2 * least)
    start, stop = max(start, -steps + room), min(stop, steps - room)
    parts = (
        np.linspace(-steps, start, OUTSIDE + 1)[1:],
        np.linspace(start, stop, INSIDE + 1)[1:],
        np.linspace(stop, steps, OUTSIDE + 1)[1:-1],
    )
    cuts = np.rint(np.concatenate(parts)).astype(int)
    cuts[int(np.argmin(np.abs(cuts)))] = 0
    return tuple(int(cut) + 1 for cut in cuts)


def _report(
    model: str,
    names: tuple[str, ...],
    n_samples: int,
    budget: Budget,
    schedule: Schedule,
    scale: float,
    noise: NoiseSource,
    *,
    planned: bool,
    disjoint: bool,
) -> PrivacyReport:
    allowances = tuple(
        counting_allowance(release, scale, n_samples, int(release.size or 0), budget.adjacency) if budget.private else 0.0
        for _, release in schedule.entries
    )
    one = _noise(schedule.entries[1][1], scale, budget)
    return PrivacyReport(
        estimator="evaluate",
        planned=planned,
        budget=budget,
        adjacency_in_words=ADJACENCIES[budget.adjacency],
        spent=spent(schedule, scale, budget),
        solver="counts",
        solver_title="differences of counts of test records by class and log-odds, along a binary tree",
        solver_reason="the only one; a fifth of the squared budget finds where the log-odds are",
        releases=describe_releases(schedule, scale, budget, allowances),
        reproducible_noise=not noise.secure,
        noise_size=f"{one / n_samples:.3g} of the records in the number of each class and in each difference",
        public={
            "n_samples": n_samples,
            "parameters": {"metrics": ", ".join(names), "model": model},
            "n_releases": len(schedule),
            "passes": schedule.passes,
        },
        assumptions=(
            "the model is public, and its prediction for a record depends on that record alone",
            "every label is one of the two classes of the model",
            DISJOINT if disjoint else SHARED,
            OTHER_FITS,
            ONE_PERSON,
        ),
        versions=versions(),
    )


def _spending(report: PrivacyReport, budget: Budget, schedule: Schedule, scale: float) -> Spending:
    seeded = {"noise": "from a seed: not private"} if report.reproducible_noise else {}
    return Spending(
        estimator=report.estimator,
        parameters={**report.public["parameters"], **seeded},
        schedule=tuple(str(line) for line in report.releases),
        adjacency=budget.adjacency,
        epsilon=report.spent.epsilon,
        delta=budget.delta,
        composition=Composition.of(schedule, budget.adjacency).at(scale) if budget.private else None,
    )

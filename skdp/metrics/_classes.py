"""Release counts of test records by class and log-odds, or one sum of losses, with Laplace or Gaussian noise."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit, ndtr, ndtri
from sklearn.utils.validation import column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._label_types import classes_of, told_apart
from skdp._validation import shown
from skdp.metrics._evaluation import Evaluation, metric
from skdp.metrics._evaluation_plan import FEWEST, EvaluationPlan, less_noise
from skdp.metrics._noisy_mean import LOSSES, NoisyMean, losses_of
from skdp.metrics._noisy_table import METRICS, WIDEST, NoisyTable
from skdp.metrics._predictions import by_record
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import LowSignalWarning, warn
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ScoreCounts, ScoreTree, tree
from skdp.privacy.schedule import Gaussian, Laplace, Release, Schedule

__all__ = [
    "class_numbers",
    "estimate",
    "evaluate_scores",
    "group_numbers",
    "log_odds_of",
    "numbers_of",
    "plan_classes",
    "score_noise",
    "scores_of",
]

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
MOST_GROUPS = 1000
# What the noise of the area under the ROC curve is stated for: a usual area, and a number of simulated evaluations that leaves it
# an error of 7 %. Choices: for classes of equal size, areas from .6 to .95, and scores a fifth as wide, measured noise was .9 to
# 1.4 times as large.
USUAL_AUC, DRAWS = 0.8, 100
LIMITS = {"log_loss": LOSSES["log_loss"]}  # the others lie in [0, 1]
# What is released: the sum of one loss, counts by true and predicted class, or counts by class and log-odds.
LOSS, MATRIX, TABLE = "loss", "matrix", "table"
OF_MATRIX = frozenset(("accuracy", "recall", "specificity", "precision"))
AT_HALF = (1,)  # the cut at the log-odds 0
STATED = {
    LOSS: {
        "title": "the sum of one loss of the test records",
        "reason": "the best one for one metric",
        "unit": "of half the range of the loss in its mean",
    },
    MATRIX: {
        "title": "numbers of test records by true and predicted class",
        "reason": "these metrics need no more",
        "unit": "of the records in each cell of the confusion matrix",
    },
    TABLE: {
        "title": "counts of test records by class and log-odds, or differences of counts along a binary tree",
        "reason": "the only one for these metrics; a fifth of the budget finds where the log-odds are",
        "unit": "of the records in each number",
    },
}


def layout_of(names: tuple[str, ...], groups: int = 0) -> str:
    """Return what is released for some metrics: one sum for one of them, counts for those of predicted classes, or a table."""
    if len(names) == 1 and names[0] in LOSSES and not groups:
        return LOSS
    return MATRIX if set(names) <= OF_MATRIX else TABLE


def estimate(table: Any, name: str, level: float) -> tuple[float, float, float]:
    """Return a metric of a release, with the ends of its interval."""
    found: tuple[float, float, float] = table.interval(level) if isinstance(table, NoisyMean) else METRICS[name](table, level)
    return found


def evaluate_scores(
    log_odds: np.ndarray,
    labels: np.ndarray,
    names: tuple[str, ...],
    *,
    budget: Budget,
    level: float,
    classes: tuple[Any, ...],
    model: str,
    groups: np.ndarray | None = None,
    group_labels: tuple[Any, ...] = (),
    disjoint: bool = False,
    random_state: Any = None,
    noise: str = "auto",
) -> Evaluation:
    """Charge the active ledgers and release the metrics of checked log-odds in [-6, 6], class numbers and group numbers."""
    plan = plan_classes(len(labels), budget, len(group_labels), names, noise)
    _warn_of_noise(plan, names, len(group_labels))
    source = NoiseSource(random_state)
    report = plan.report(names, model, source, disjoint=disjoint)
    plan.pay(report)
    if layout_of(names, len(group_labels)) == LOSS:
        rows = TrainingData(np.zeros((len(labels), 1)), losses_of(names[0], log_odds, labels), data_norm=1.0)
    else:
        cells = labels if groups is None else labels + 2 * groups
        rows = TrainingData(log_odds[:, None], cells, data_norm=LARGEST, intercept_scaling=1.0)
    oracle = Oracle(rows, plan.schedule, plan.budget, plan.scale, source)
    table = _release(oracle, plan, names, len(group_labels))
    oracle.finish()

    def evaluation(table: Any, parts: dict[Any, Evaluation]) -> Evaluation:
        found = {name: metric(name, estimate(table, name, level), LIMITS.get(name, (0.0, 1.0))) for name in names}
        return Evaluation(found, level, table, report, classes, parts)

    parts = table.parts or (table,) * len(group_labels)  # of a single group
    return evaluation(table, {label: evaluation(part, {}) for label, part in zip(group_labels, parts, strict=True)})


def _warn_of_noise(plan: EvaluationPlan, names: tuple[str, ...], groups: int) -> None:
    """Warn, before anything is charged, if noise alone makes intervals so wide that no value is given."""
    layout, n_groups, size = layout_of(names, groups), max(groups, 1), INSIDE + 2 * OUTSIDE
    if layout == LOSS:
        low, high = LOSSES[names[0]]
        noise = (high - low) / 2 * NoisyMean.from_sums(names[0], np.zeros(2), plan.stds[0], plan.laplace, plan.n_samples).noise
    else:  # of the accuracy: the sum of half of the cells of each class and group
        matrix = np.eye(2) if layout == MATRIX else np.eye(size) if plan.laplace else tree(size)
        half = np.linalg.solve(matrix.T, np.repeat([1.0, 0.0], len(matrix) // 2))
        noise = plan.stds[-1] * math.sqrt(2 * n_groups) * float(np.linalg.norm(half)) / plan.n_samples
    if 2 * float(ndtri(0.975)) * noise > WIDEST:
        warn(
            f"Noise is likely to hide the scores of {plan.n_samples} test records at epsilon={plan.budget.epsilon:g}, and the "
            "budget is spent all the same. Use more test records, a larger epsilon, or one metric alone. plan_evaluation "
            "tells the noise before.",
            LowSignalWarning,
        )


def _release(oracle: Oracle, plan: EvaluationPlan, names: tuple[str, ...], groups: int) -> NoisyTable | NoisyMean:
    """Ask for the releases of a plan."""
    layout, n_groups, size = layout_of(names, groups), max(groups, 1), INSIDE + 2 * OUTSIDE
    if layout == LOSS:
        answer = oracle.ask(NoisyMean.query(names[0]))
        return NoisyMean.from_sums(names[0], answer, plan.stds[0], plan.laplace, plan.n_samples)
    if layout == MATRIX:
        counts = ScoreCounts(COEF, AT_HALF, 2 * n_groups)
        answer = oracle.ask(counts)
        return NoisyTable.from_coefficients(answer, np.eye(2), plan.stds[0], _edges(counts.cuts), plan.n_samples, n_groups)
    query, matrix_of = (ScoreCounts, np.eye) if plan.laplace else (ScoreTree, tree)
    cuts = _window(oracle.ask(query(COEF, _even(FIRST), 1)), matrix_of(FIRST), plan.stds[0], plan.n_samples)
    answer = oracle.ask(query(COEF, cuts, 2 * n_groups))
    return NoisyTable.from_coefficients(answer, matrix_of(size), plan.stds[1], _edges(cuts), plan.n_samples, n_groups)


def plan_classes(n_samples: int, budget: Budget, groups: int, names: tuple[str, ...], noise: str) -> EvaluationPlan:
    """Return what the evaluation of a classifier releases; without groups, ``groups`` is 0."""
    layout, n_groups, size = layout_of(names, groups), max(groups, 1), INSIDE + 2 * OUTSIDE

    def make(laplace: bool) -> tuple[EvaluationPlan, float]:
        """Return a plan, and the root mean square of the noise of sums of its answers from the first on."""
        query, matrix_of = (ScoreCounts, np.eye) if laplace else (ScoreTree, tree)
        queries: list[Any] = [NoisyMean.query(names[0])]
        if layout == MATRIX:
            queries = [ScoreCounts(COEF, AT_HALF, 2 * n_groups)]
        elif layout == TABLE:
            queries = [query(COEF, _even(FIRST), 1), query(COEF, _even(size), 2 * n_groups)]
        shares = (SHARE, 1 - SHARE) if layout == TABLE else (1.0,)
        plan = EvaluationPlan(
            n_samples,
            replace(budget, delta=0.0) if laplace else budget,
            Schedule(
                tuple(
                    (
                        1,
                        Release(
                            type(asked), Laplace(1 / share) if laplace else Gaussian(share**-0.5), asked.clip_norm, asked.size
                        ),
                    )
                    for asked, share in zip(queries, shares, strict=True)
                )
            ),
            changes=tuple(asked.l1_sensitivity(budget.adjacency) for asked in queries) if laplace else (),
            assumption="every label is one of the two classes of the model"
            + (f", and every record is in one of the {n_groups} groups that were named" if n_groups > 1 else ""),
            **STATED[layout],
        )
        if not budget.private or layout != TABLE:
            return plan, plan.stds[-1]
        sums = np.tril(np.ones((size, size))) @ np.linalg.inv(matrix_of(size))
        return plan, plan.stds[-1] * math.sqrt(float((sums**2).sum()) / size)

    return less_noise(make, budget, noise)


@lru_cache(maxsize=64)
def score_noise(name: str, n_samples: int, budget: Budget, rate: float = 0.5) -> float:
    """Return the standard deviation of the Gaussian noise of one metric that is evaluated alone, from public facts.

    That of the mean of a loss is known. That of the area under the ROC curve depends on the scores, and on the share of the
    second class: it is simulated for well calibrated scores, with an area of `USUAL_AUC`, and with public random numbers.

    Parameters
    ----------
    name : {"accuracy", "roc_auc", "log_loss", "brier_score"}
        The metric.
    n_samples : int
        Number of test records.
    budget : Budget
        Budget of the evaluation.
    rate : float, default=0.5
        Share of the second class.

    Returns
    -------
    float
        The standard deviation.
    """
    plan = plan_classes(n_samples, budget, 0, (name,), "gaussian")
    if name in LOSSES:
        low, high = LOSSES[name]
        return (high - low) / 2 * NoisyMean.from_sums(name, np.zeros(2), plan.stds[0], False, n_samples).noise
    width, rng, found = math.sqrt(2) * ndtri(USUAL_AUC), np.random.default_rng(0), []
    coarse, fine = tree(FIRST), tree(INSIDE + 2 * OUTSIDE)

    def counts(cuts: tuple[int, ...]) -> np.ndarray:
        """Return the expected counts of both classes by range of the log-odds, which are normal."""
        means = np.array([[-1.0], [1.0]]) * width**2 / 2 + logit(rate)
        below = ndtr((_edges(cuts)[1:-1] - means) / width)
        return n_samples * np.array([[1 - rate], [rate]]) * np.diff(below, prepend=0.0, append=1.0)

    for _ in range(DRAWS):
        first = coarse @ counts(_even(FIRST)).sum(axis=0) + plan.stds[0] * rng.standard_normal(FIRST)
        cuts = _window(first, coarse, plan.stds[0], n_samples)
        answer = (counts(cuts) @ fine.T).ravel() + plan.stds[1] * rng.standard_normal(2 * len(fine))
        found.append(sum(NoisyTable.from_coefficients(answer, fine, plan.stds[1], _edges(cuts), n_samples).auc_estimate()))
    return float(np.std(np.clip(found, 0.0, 1.0)))


def scores_of(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return clipped log-odds of the event, and class numbers: 1 is the event."""
    classes = getattr(model, "classes_", None)
    if not hasattr(model, "predict_proba") or classes is None or len(classes) != 2:
        raise TypeError(
            f"model, a {type(model).__name__}, has no predict_proba for two classes; expected a fitted classifier of two "
            "classes. skdp.load_model(path) reads one from a file."
        )
    known = classes_of(model)
    labels, event = class_numbers(y, known, "the model"), list(classes).index(known[1])
    shape = len(labels), 2
    probabilities, failed = by_record(model, lambda part: np.asarray(model.predict_proba(part), np.float64), X, shape)
    if probabilities.shape != shape:
        raise ValueError("X and y differ in length, or predict_proba does not return two columns; expected one row per label.")
    return log_odds_of(np.where(failed, np.nan, probabilities[:, event])), labels


def class_numbers(y: Any, classes: tuple[Any, ...], knowing: str) -> np.ndarray:
    """Return the numbers of the classes of checked labels."""
    labels = quoting_no_data(y, lambda: column_or_1d(y))
    numbers = numbers_of(labels, classes)
    if (numbers < 0).any():
        raise ValueError(f"y holds labels that {knowing} does not know; expected {shown(np.array(classes).tolist())} only.")
    if len(labels) < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} test records, of which no metric could be told.")
    return numbers


def numbers_of(labels: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
    """Return the number of the class of each label, -1 for other labels."""
    numbers = np.full(labels.shape, -1, dtype=np.intp)
    for number, label in enumerate(classes if told_apart(np.array(classes), labels) else ()):
        numbers[labels == label] = number
    return numbers


def group_numbers(groups: Any, group_labels: Any, n_samples: int) -> tuple[np.ndarray | None, tuple[Any, ...]]:
    """Return the numbers of checked groups, and their names."""
    if (groups is None) != (group_labels is None):
        raise ValueError("Groups need their public names, and names need groups; expected both groups= and group_labels=.")
    if groups is None:
        return None, ()
    known = tuple(group_labels)
    if not 1 <= len(known) <= MOST_GROUPS or len(set(known)) < len(known):
        raise ValueError(f"group_labels has {len(known)} names; expected from 1 to {MOST_GROUPS} different ones.")
    given = quoting_no_data(groups, lambda: column_or_1d(groups))
    if len(given) != n_samples:
        raise ValueError("y and groups differ in length; expected one group per label.")
    numbers = np.full(n_samples, -1)
    for number, label in enumerate(known):
        numbers[given == label] = number
    if (numbers < 0).any():
        raise ValueError("groups holds a group that group_labels does not name; expected those only.")
    return numbers, known


def log_odds_of(probabilities: np.ndarray) -> np.ndarray:
    """Return the clipped log-odds of probabilities, which are clipped to [0, 1]; 0 where there is none (nan)."""
    with np.errstate(all="ignore"):  # a warning would tell of a record
        log_odds = logit(np.clip(np.where(np.isnan(probabilities), 0.5, probabilities), 0.0, 1.0))
        return np.asarray(np.clip(log_odds, -LARGEST, LARGEST))


def _even(size: int) -> tuple[int, ...]:
    """Return the cuts of even ranges of [-6, 6] in steps, one of them at 0."""
    steps = round(LARGEST * 50)
    return tuple(int(cut) + 1 for cut in np.rint(np.linspace(-steps, steps, size + 1))[1:-1])


def _edges(cuts: tuple[int, ...]) -> np.ndarray:
    """Return the log-odds at the ends of ranges."""
    return np.concatenate([[-LARGEST], (np.array(cuts) - 1) / 50, [LARGEST]])


def _window(answer: np.ndarray, matrix: np.ndarray, std: float, n_samples: int) -> tuple[int, ...]:
    """Return the cuts of the second release: even ones where the records are, wider ones outside, and one at 0.

    Parameters
    ----------
    answer : ndarray of shape (FIRST,)
        Noisy coefficients of the counts by range.
    matrix : ndarray of shape (FIRST, FIRST)
        Maps the counts to the coefficients.
    std : float
        Standard deviation of their noise.
    n_samples : int
        Public number of records.

    Returns
    -------
    tuple of int
        The cuts.
    """
    inverse = np.linalg.inv(matrix)
    covariance = std**2 * inverse @ inverse.T
    counts, direction = inverse @ answer, covariance.sum(axis=1)
    half_of = (np.arange(FIRST) < FIRST // 2).astype(float)
    variance = 0.0
    if std > 0:  # the number of records is known
        counts = counts + (n_samples - counts.sum()) * direction / direction.sum()
        variance = float(half_of @ covariance @ half_of) - float(half_of @ direction) ** 2 / float(direction.sum())
    shares, noise = np.maximum.accumulate(np.cumsum(counts)) / n_samples, math.sqrt(max(variance, 0.0)) / n_samples
    edges = _edges(_even(FIRST))
    left_out = min(max(LEFT_OUT, 2 * noise), MOST_LEFT_OUT)
    steps, least = round(LARGEST * 50), NARROWEST // 2
    low = edges[min(int(np.searchsorted(shares, left_out)), FIRST - 1)]
    high = edges[min(int(np.searchsorted(shares, 1 - left_out)) + 1, FIRST)]
    middle, half = round(25 * (low + high)), max(math.ceil(25 * (high - low)), least)
    room = 2 * OUTSIDE  # each range outside has at least two steps
    start, stop = max(middle - half, -steps + room), min(middle + half, steps - room)
    start, stop = min(start, stop - 2 * least), max(stop, start + 2 * least)
    start, stop = max(start, -steps + room), min(stop, steps - room)
    width = (stop - start) / INSIDE
    parts = (
        start - _widening(start + steps, width)[-2::-1],
        np.linspace(start, stop, INSIDE + 1),
        stop + _widening(steps - stop, width)[:-1],
    )
    cuts = np.rint(np.concatenate(parts)).astype(int)
    cuts[int(np.argmin(np.abs(cuts)))] = 0
    return tuple(int(cut) + 1 for cut in cuts)


def _widening(length: float, first: float) -> np.ndarray:
    """Return the far ends of the ranges outside the window: each is wider than the one before by the same factor.

    Most records outside the window are near it. Ranges of one width had a middle too far from them.
    """
    if length <= OUTSIDE * first:
        return np.linspace(0, length, OUTSIDE + 1)[1:]
    factor = brentq(lambda factor: first * sum(factor**k for k in range(OUTSIDE)) - length, 1.0, length / first)
    return np.asarray(np.cumsum(first * factor ** np.arange(OUTSIDE)))

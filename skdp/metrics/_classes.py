"""Release counts of test records by class and log-odds, with two Gaussian releases."""

import math
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._validation import shown
from skdp.metrics._evaluation import Evaluation, metric
from skdp.metrics._evaluation_plan import FEWEST, EvaluationPlan, budget_of
from skdp.metrics._noisy_table import METRICS, NoisyTable
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ScoreTree, tree
from skdp.privacy.schedule import Gaussian, Release, Schedule

__all__ = ["accuracy_noise", "class_numbers", "evaluate_scores", "group_numbers", "log_odds_of", "plan_classes", "scores_of"]

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
LIMITS = {"log_loss": (0.0, math.inf)}


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
) -> Evaluation:
    """Charge the active ledgers and release the metrics of checked log-odds in [-6, 6], class numbers and group numbers."""
    n_samples, n_groups = len(labels), max(len(group_labels), 1)
    plan, noise = plan_classes(n_samples, budget, n_groups), NoiseSource(random_state)
    report = plan.report(names, model, noise, disjoint=disjoint)
    plan.pay(report)
    cells = labels if groups is None else labels + 2 * groups
    rows = TrainingData(log_odds[:, None], cells, data_norm=LARGEST, intercept_scaling=1.0)
    oracle = Oracle(rows, plan.schedule, budget, plan.scale, noise)
    first = ScoreTree(COEF, _even(FIRST))
    seen = NoisyTable.from_coefficients(oracle.ask(first), tree(FIRST), plan.stds[0], _edges(first.cuts), n_samples)
    second = ScoreTree(COEF, _window(seen), 2 * n_groups)
    answer = oracle.ask(second)
    oracle.finish()
    table = NoisyTable.from_coefficients(
        answer, tree(INSIDE + 2 * OUTSIDE), plan.stds[1], _edges(second.cuts), n_samples, n_groups
    )

    def evaluation(table: NoisyTable, parts: dict[Any, Evaluation]) -> Evaluation:
        found = {name: metric(name, METRICS[name](table, level), LIMITS.get(name, (0.0, 1.0))) for name in names}
        return Evaluation(found, level, table, report, classes, parts)

    parts = table.parts or (table,) * len(group_labels)  # of a single group
    return evaluation(table, {label: evaluation(part, {}) for label, part in zip(group_labels, parts, strict=True)})


def plan_classes(n_samples: int, budget: Budget, n_groups: int = 1) -> EvaluationPlan:
    """Return what the evaluation of a classifier releases."""
    entries = []
    for size, share, n_classes in ((FIRST, SHARE, 2), (INSIDE + 2 * OUTSIDE, 1 - SHARE, 2 * n_groups)):
        query = ScoreTree(COEF, _even(size), n_classes)
        entries.append((1, Release(ScoreTree, Gaussian(share**-0.5), query.clip_norm, query.size)))
    return EvaluationPlan(
        n_samples,
        budget,
        Schedule(tuple(entries)),
        title="differences of counts of test records by class and log-odds, along a binary tree",
        reason="the only one; a fifth of the squared budget finds where the log-odds are",
        unit="of the records in the number of each class and in each difference",
        assumption="every label is one of the two classes of the model"
        + (f", and every record is in one of the {n_groups} groups that were named" if n_groups > 1 else ""),
    )


def accuracy_noise(n_samples: int, epsilon: float, delta: float, adjacency: str) -> float:
    """Return the standard deviation of the noise of an accuracy, from public facts."""
    plan = plan_classes(n_samples, budget_of(n_samples, epsilon, delta, adjacency))
    size = INSIDE + 2 * OUTSIDE
    table = NoisyTable.from_coefficients(np.zeros(2 * size), tree(size), plan.stds[1], _edges(_even(size)), n_samples)
    right = np.repeat([1.0, 0.0, 0.0, 1.0], size // 2)
    return math.sqrt(max(float(right @ table.covariance @ right), 0.0)) / n_samples


def scores_of(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
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
    numbers = np.full(labels.shape, -1, dtype=np.intp)
    for number, label in enumerate(classes):
        numbers[labels == label] = number
    if (numbers < 0).any():
        raise ValueError(f"y holds labels that {knowing} does not know; expected {shown(list(classes))} only.")
    if len(labels) < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} test records, of which no metric could be told.")
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
    """Return the clipped log-odds of probabilities."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(logit(np.clip(probabilities, 0.0, 1.0)), -LARGEST, LARGEST))


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

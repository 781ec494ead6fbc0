"""Release sums of the errors of a regression on test records, with one or two Gaussian releases."""

import math
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._validation import shown
from skdp.metrics._evaluation import Evaluation, metric
from skdp.metrics._evaluation_plan import FEWEST, EvaluationPlan
from skdp.metrics._noisy_errors import REGRESSION, NoisyErrors
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ErrorSums, TargetHistogram
from skdp.privacy.schedule import Gaussian, Release, Schedule

__all__ = ["check_bounds", "evaluate_errors", "plan_errors", "predictions_of", "refuse_bounds"]

# The release that finds the bound of the errors counts them in ranges from 2**-32 to 2**32, each sqrt(2) times as wide as the one
# below. Its share of the squared budget, from the design's simulations. A range counts as occupied if its noisy count is above
# 4 standard deviations: in one of 250 releases, noise alone makes a range look so. The bound is the upper end of the last such
# range, times sqrt(2) where 4 standard deviations are at most FINE of the records, else times 2. Above COARSE, the bound is
# refused: it could leave out so large a share of the errors.
EDGES = 2.0 ** (np.arange(-64, 65) / 2)
SHARE, OCCUPIED, FINE, COARSE = 0.15, 4.0, 0.02, 0.1
WIDEST = 0.5  # of the bound of the errors, as for shares


def check_bounds(error_bound: Any, target_bounds: Any, names: tuple[str, ...]) -> None:
    """Raise ValueError if the public bounds are not valid, or lack for a metric."""
    if error_bound is not None and (not _is_number(error_bound) or not 0 < float(error_bound) < math.inf):
        raise ValueError(f"error_bound={shown(error_bound)}; expected a positive number, or None.")
    if target_bounds is not None:
        try:
            low, high = target_bounds
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not (_is_number(low) and _is_number(high) and -math.inf < low < high < math.inf):
            raise ValueError(f"target_bounds={shown(target_bounds)}; expected two numbers, the lower one first.")
    elif "r2" in names:
        raise ValueError("metrics: 'r2' needs the variance of the targets; expected target_bounds=(low, high).")


def refuse_bounds(error_bound: Any, target_bounds: Any) -> None:
    """Raise ValueError if bounds are given for a classifier."""
    if error_bound is not None or target_bounds is not None:
        raise ValueError("error_bound and target_bounds are for regressors; expected None for a classifier.")


def plan_errors(n_samples: int, budget: Budget, error_bound: float | None, target_bounds: Any) -> EvaluationPlan:
    """Return what the evaluation of a regressor releases; ValueError if there are too few records to find a bound."""
    sums, share = ErrorSums(1.0, target_bounds is not None), 0.0 if error_bound is not None else SHARE
    last = 1, Release(ErrorSums, Gaussian((1 - share) ** -0.5), sums.clip_norm, sums.size)
    first = 1, Release(TargetHistogram, Gaussian(SHARE**-0.5), 1.0, EDGES.size + 1)
    plan = EvaluationPlan(
        n_samples,
        budget,
        Schedule((last,) if error_bound is not None else (first, last)),
        title="sums of powers of the clipped errors and targets of the test records",
        reason="the only one" if error_bound is not None else f"the only one; {SHARE:.0%} of the squared budget finds a bound",
        unit="of their bound in the mean absolute error",
        assumption="every target and every prediction is finite",
    )
    if error_bound is None and (least := OCCUPIED * plan.stds[0] / n_samples) > COARSE:
        raise ValueError(
            f"At this budget, {n_samples} test records do not tell a bound of the errors: {least:.0%} of them could hide in the "
            f"noise, more than {COARSE:.0%}. Expected error_bound=, a larger epsilon or more test records."
        )
    return plan


def evaluate_errors(
    targets: np.ndarray,
    predictions: np.ndarray,
    names: tuple[str, ...],
    *,
    budget: Budget,
    level: float,
    model: str,
    error_bound: float | None,
    target_bounds: Any,
    disjoint: bool = False,
    random_state: Any = None,
) -> Evaluation:
    """Charge the active ledgers and release the metrics of checked targets and predictions."""
    n_samples = len(targets)
    plan, noise = plan_errors(n_samples, budget, error_bound, target_bounds), NoiseSource(random_state)
    report = plan.report(names, model, noise, disjoint=disjoint)
    plan.pay(report)
    rows = np.column_stack([np.zeros(n_samples), np.where(targets <= predictions, 0.5, -0.5)])
    half_range = None
    with np.errstate(all="ignore"):  # a warning or an error would reveal a target
        if target_bounds is not None:
            low, high = map(float, target_bounds)
            half_range = high / 2 - low / 2
            targets = np.clip(targets, low, high)
            rows[:, 0] = (targets - (low / 2 + high / 2)) / half_range
        errors = np.minimum(np.abs(targets - predictions), np.finfo(float).max)
    oracle = Oracle(TrainingData(rows, errors, data_norm=2.0), plan.schedule, budget, plan.scale, noise)
    bound = _bound(oracle.ask(TargetHistogram(EDGES)), plan.stds[0], n_samples) if error_bound is None else float(error_bound)
    answer = oracle.ask(ErrorSums(bound, target_bounds is not None))
    oracle.finish()
    table = NoisyErrors.from_sums(answer, plan.stds[-1], bound, half_range, n_samples)
    limits = {"mae": (0.0, bound), "rmse": (0.0, bound), "r2": (-math.inf, 1.0)}
    found = {
        name: metric(
            *(name, REGRESSION[name](table, level), limits.get(name, (0.0, 1.0))),
            widest=WIDEST * bound if name in ("mae", "rmse") else WIDEST,
        )
        for name in names
    }
    return Evaluation(found, level, table, report)


def predictions_of(predict: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return checked targets and predictions."""
    column = quoting_no_data(y, lambda: column_or_1d(y))
    if column.dtype.kind in "mM":
        raise TypeError("y has dates or durations, whose unit may depend on a single record; expected numbers.")
    targets = quoting_no_data(y, lambda: np.asarray(column, dtype=np.float64))
    if len(targets) < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} test records, of which no metric could be told.")
    predictions = quoting_no_data(X, lambda: np.asarray(predict(X), dtype=np.float64))
    predictions = predictions[:, 0] if predictions.ndim == 2 and predictions.shape[1] == 1 else predictions
    if predictions.shape != targets.shape:
        raise ValueError("There is not one prediction per target; expected X and y of the same length, and one output.")
    if not (np.isfinite(targets).all() and np.isfinite(predictions).all()):
        raise ValueError("A target or a prediction is nan or infinite; expected finite numbers.")
    return targets, predictions


def _bound(counts: np.ndarray, noise: float, n_samples: int) -> float:
    """Return the bound of the errors that follows from noisy counts by range."""
    occupied = np.flatnonzero(counts > OCCUPIED * noise)
    last = int(occupied[-1]) if occupied.size else int(np.argmax(counts))
    notches = 1 if OCCUPIED * noise / n_samples <= FINE else 2
    return float(EDGES[min(last + notches, EDGES.size - 1)])


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)

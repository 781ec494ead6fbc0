"""Release sums of the errors of a regression on test records, with one or two Gaussian releases."""

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._validation import check_bounds as check_range
from skdp._validation import check_scale
from skdp.metrics._evaluation import Evaluation, metric
from skdp.metrics._evaluation_plan import FEWEST, EvaluationPlan
from skdp.metrics._noisy_errors import REGRESSION, NoisyErrors
from skdp.metrics._predictions import by_record
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ErrorSums, TargetHistogram
from skdp.privacy.schedule import Gaussian, Release, Schedule

__all__ = ["check_bounds", "column_of", "evaluate_errors", "plan_errors", "predictions_of", "refuse_bounds", "targets_of"]

# The release that finds the bound of the errors counts them in ranges from 2**-32 to 2**32, each sqrt(2) times as wide as the one
# below. Its share of the squared budget, from the design's simulations. A range counts as occupied if its noisy count is above
# 4 standard deviations: in one of 250 releases, noise alone makes a range look so. The bound is the upper end of the last such
# range, times sqrt(2) where 4 standard deviations are at most FINE of the records, else times 2. Above COARSE, the bound is
# refused: it could leave out so large a share of the errors.
EDGES = 2.0 ** (np.arange(-64, 65) / 2)
SHARE, OCCUPIED, FINE, COARSE = 0.15, 4.0, 0.02, 0.1
WIDEST = 0.5  # of the bound of the errors, as for shares


def check_bounds(error_bound: Any, target_bounds: Any, names: tuple[str, ...]) -> None:
    """Raise TypeError or ValueError if the public bounds are not valid, or lack for a metric."""
    check_scale("error_bound", error_bound, optional=True)
    if target_bounds is not None:
        check_range("target_bounds", target_bounds)
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
        assumption="every target is finite",
    )
    if error_bound is None and (least := OCCUPIED * plan.stds[0] / n_samples) > COARSE:
        raise ValueError(
            f"At this budget, {n_samples} test records do not tell a bound of the errors: {least:.0%} of them could hide in the "
            f"noise, more than {COARSE:.0%}. Use error_bound=, a larger epsilon or more test records."
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
    """Charge the active ledgers and release the metrics of checked targets, and of predictions.

    A prediction that is not finite has the largest error that counts. The target of a record without prediction (nan) counts as
    above it.
    """
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
        errors = np.nan_to_num(np.abs(targets - predictions), nan=np.finfo(float).max)  # as of infinite ones
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


def targets_of(y: Any) -> np.ndarray:
    """Return checked targets."""
    column = quoting_no_data(y, lambda: column_or_1d(y))
    if column.dtype.kind in "mM":
        raise TypeError("y has dates or durations, whose unit may depend on a single record; expected numbers.")
    targets = quoting_no_data(y, lambda: np.asarray(column, dtype=np.float64))
    if len(targets) < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} test records, of which no metric could be told.")
    if not np.isfinite(targets).all():
        raise ValueError("A target is nan or infinite; expected finite numbers.")
    return targets


def column_of(predictions: np.ndarray, n_samples: int) -> np.ndarray:
    """Return one prediction per target."""
    predictions = predictions[:, 0] if predictions.ndim == 2 and predictions.shape[1] == 1 else predictions
    if predictions.shape != (n_samples,):
        raise ValueError("There is not one prediction per target; expected X and y of the same length, and one output.")
    return predictions


def predictions_of(model: Any, X: Any, n_samples: int) -> np.ndarray:
    """Return the predictions of a regressor; nan where it has none."""
    found, failed = by_record(model, lambda part: np.asarray(model.predict(part), dtype=np.float64), X, (n_samples,))
    return np.where(failed, np.nan, column_of(found, n_samples))


def _bound(counts: np.ndarray, noise: float, n_samples: int) -> float:
    """Return the bound of the errors that follows from noisy counts by range."""
    occupied = np.flatnonzero(counts > OCCUPIED * noise)
    last = int(occupied[-1]) if occupied.size else int(np.argmax(counts))
    notches = 1 if OCCUPIED * noise / n_samples <= FINE else 2
    return float(EDGES[min(last + notches, EDGES.size - 1)])

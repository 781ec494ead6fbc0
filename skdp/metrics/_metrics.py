"""List the metrics: an entry and, if scikit-learn has such a function, its private twin. All else follows from the entries."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.special import expit

from skdp.metrics._definition import ClassMetric, ErrorMetric, MetricDefinition
from skdp.metrics._functions import score_function
from skdp.metrics._noisy_errors import NoisyDeviances, NoisyErrors
from skdp.metrics._noisy_table import NoisyTable
from skdp.metrics._reading import LOG_ODDS_BOUND

__all__ = [  # exported by skdp.metrics
    "dp_accuracy_score",
    "dp_average_precision_score",
    "dp_brier_score_loss",
    "dp_log_loss",
    "dp_mean_absolute_error",
    "dp_mean_gamma_deviance",
    "dp_mean_poisson_deviance",
    "dp_precision_score",
    "dp_r2_score",
    "dp_recall_score",
    "dp_roc_auc_score",
    "dp_root_mean_squared_error",
]

Interval = tuple[float, float, float]
OF_EVENT = " of the second class"  # detail of the metrics that differ between the classes


Entry = TypeVar("Entry", bound=MetricDefinition)


def _by_name(*entries: Entry) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


def _accuracy(table: NoisyTable, level: float) -> Interval:
    return table.mean(table.predicted, level)


def _correct(log_odds: np.ndarray, positive: Any) -> np.ndarray:
    return np.where((log_odds > 0) == positive, 1.0, 0.0)


def _log_loss(log_odds: np.ndarray, positive: Any) -> np.ndarray:
    return np.logaddexp(0.0, np.where(positive, -log_odds, log_odds))


def _squared_error(log_odds: np.ndarray, positive: Any) -> np.ndarray:
    return np.asarray(expit(np.where(positive, -log_odds, log_odds)) ** 2)


def _mean_of(loss: Callable[[np.ndarray, Any], np.ndarray]) -> Callable[[NoisyTable, float], Interval]:
    def estimate(table: NoisyTable, level: float) -> Interval:
        return table.mean_loss(lambda log_odds: np.stack([loss(log_odds, False), loss(log_odds, True)]), level)

    return estimate


def _recall(table: NoisyTable, level: float) -> Interval:
    return table.ratio(table.cells(1, 1), table.cells(1), level)


def _specificity(table: NoisyTable, level: float) -> Interval:
    return table.ratio(table.cells(0, 0), table.cells(0), level)


def _precision(table: NoisyTable, level: float) -> Interval:
    return table.ratio(table.cells(1, 1), table.cells(predicted=1), level)


def _of_deviance(deviance: str, title: str) -> tuple[ErrorMetric, ErrorMetric]:
    return (
        ErrorMetric(
            f"{deviance}_deviance",
            f"mean {title} deviance",
            NoisyDeviances.mean,
            function=f"mean_{deviance}_deviance",
            scorer=f"neg_mean_{deviance}_deviance",
            in_units=True,
            deviance=deviance,
        ),
        ErrorMetric(
            f"d2_{deviance}",
            f"share of the {title} deviance of a constant that the model explains",
            NoisyDeviances.d2,
            limits=(-math.inf, 1.0),
            deviance=deviance,
            of_constant=True,
        ),
    )


CLASSIFICATION = _by_name(
    ClassMetric(
        "accuracy",
        "accuracy",
        _accuracy,
        detail=" at the probability 1/2",
        function="accuracy_score",
        scorer="accuracy",
        default=True,
        needs_scores=False,
        several=True,
        loss=_correct,
        steps=1,
    ),
    ClassMetric(
        "roc_auc",
        "area under the ROC curve",
        NoisyTable.auc,
        function="roc_auc_score",
        scorer="roc_auc",
        default=True,
        simulate=lambda table: sum(table.auc_estimate()),
    ),
    ClassMetric(
        "log_loss",
        "log loss",
        _mean_of(_log_loss),
        detail=", of log-odds clipped to [-6, 6],",
        function="log_loss",
        scorer="neg_log_loss",
        default=True,
        limits=(math.log1p(math.exp(-LOG_ODDS_BOUND)), math.log1p(math.exp(LOG_ODDS_BOUND))),
        loss=_log_loss,
    ),
    ClassMetric(
        "brier_score",
        "Brier score",
        _mean_of(_squared_error),
        function="brier_score_loss",
        scorer="neg_brier_score",
        default=True,
        loss=_squared_error,
    ),
    ClassMetric("recall", "recall", _recall, OF_EVENT, "recall_score", "recall", needs_scores=False),
    ClassMetric("specificity", "specificity", _specificity, OF_EVENT, needs_scores=False),
    ClassMetric("precision", "precision", _precision, OF_EVENT, "precision_score", "precision", needs_scores=False),
    ClassMetric(
        "average_precision",
        "average precision",
        NoisyTable.average_precision,
        detail=OF_EVENT,
        function="average_precision_score",
        scorer="average_precision",
    ),
)
REGRESSION = _by_name(
    ErrorMetric(
        "mae",
        "mean absolute error",
        NoisyErrors.mae,
        function="mean_absolute_error",
        scorer="neg_mean_absolute_error",
        default=True,
        in_units=True,
    ),
    ErrorMetric(
        "rmse",
        "root of the mean squared error",
        NoisyErrors.rmse,
        function="root_mean_squared_error",
        scorer="neg_root_mean_squared_error",
        default=True,
        in_units=True,
    ),
    ErrorMetric(
        "r2",
        "coefficient of determination",
        NoisyErrors.r2,
        function="r2_score",
        scorer="r2",
        default=True,
        limits=(-math.inf, 1.0),
        needs_range=True,
    ),
    ErrorMetric("coverage", "share of targets at or below the prediction", NoisyErrors.coverage),
    *_of_deviance("poisson", "Poisson"),
    *_of_deviance("gamma", "gamma"),
)
METRICS = {**CLASSIFICATION, **REGRESSION}

dp_accuracy_score = score_function(METRICS["accuracy"])
dp_roc_auc_score = score_function(METRICS["roc_auc"])
dp_log_loss = score_function(METRICS["log_loss"])
dp_brier_score_loss = score_function(METRICS["brier_score"])
dp_recall_score = score_function(METRICS["recall"])
dp_precision_score = score_function(METRICS["precision"])
dp_average_precision_score = score_function(METRICS["average_precision"])
dp_mean_absolute_error = score_function(METRICS["mae"])
dp_root_mean_squared_error = score_function(METRICS["rmse"])
dp_r2_score = score_function(METRICS["r2"])
dp_mean_poisson_deviance = score_function(METRICS["poisson_deviance"])
dp_mean_gamma_deviance = score_function(METRICS["gamma_deviance"])

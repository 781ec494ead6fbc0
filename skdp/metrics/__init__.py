"""Evaluate fitted classifiers and regressors on sensitive test records, with noise and with confidence intervals."""

from skdp.metrics._displays import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay
from skdp.metrics._evaluate import evaluate, plan_evaluation
from skdp.metrics._evaluation import Evaluation, Metric
from skdp.metrics._functions import (
    dp_accuracy_score,
    dp_average_precision_score,
    dp_brier_score_loss,
    dp_log_loss,
    dp_mean_absolute_error,
    dp_precision_score,
    dp_r2_score,
    dp_recall_score,
    dp_roc_auc_score,
    dp_root_mean_squared_error,
)
from skdp.metrics._scorer import DPScorer, dp_scorer

__all__ = [
    "CalibrationDisplay",
    "ConfusionMatrixDisplay",
    "DPScorer",
    "Evaluation",
    "Metric",
    "RocCurveDisplay",
    "dp_accuracy_score",
    "dp_average_precision_score",
    "dp_brier_score_loss",
    "dp_log_loss",
    "dp_mean_absolute_error",
    "dp_precision_score",
    "dp_r2_score",
    "dp_recall_score",
    "dp_roc_auc_score",
    "dp_root_mean_squared_error",
    "dp_scorer",
    "evaluate",
    "plan_evaluation",
]

"""Evaluate fitted classifiers and regressors on sensitive test records, with noise and with confidence intervals."""

from skdp.metrics import _metrics
from skdp.metrics._displays import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay
from skdp.metrics._evaluate import evaluate, plan_evaluation
from skdp.metrics._evaluation import Evaluation, Metric
from skdp.metrics._metrics import *  # noqa: F403
from skdp.metrics._scorer import DPScorer, dp_scorer

__all__ = [
    "CalibrationDisplay",
    "ConfusionMatrixDisplay",
    "DPScorer",
    "Evaluation",
    "Metric",
    "RocCurveDisplay",
    "dp_scorer",
    "evaluate",
    "plan_evaluation",
]
__all__ += _metrics.__all__

"""Evaluate fitted classifiers on sensitive test records, with noise and with confidence intervals."""

from skdp.metrics._displays import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay
from skdp.metrics._evaluate import evaluate, plan_evaluation
from skdp.metrics._evaluation import Evaluation, Metric

__all__ = [
    "CalibrationDisplay",
    "ConfusionMatrixDisplay",
    "Evaluation",
    "Metric",
    "RocCurveDisplay",
    "evaluate",
    "plan_evaluation",
]

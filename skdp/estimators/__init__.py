"""The estimators, one family per file."""

from skdp.estimators._logistic import DPLogisticRegression
from skdp.estimators._regression import DPLinearRegression

__all__ = ["DPLinearRegression", "DPLogisticRegression"]

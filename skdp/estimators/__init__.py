"""The estimators, one family per file."""

from skdp.estimators._logistic import DPLogisticRegression

__all__ = ["DPLogisticRegression"]

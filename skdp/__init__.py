"""Differentially private machine learning for people who use scikit-learn."""

__version__ = "0.1.0.dev0"

from skdp.estimators import DPLogisticRegression
from skdp.privacy import (
    NotPrivateWarning,
    OutsideGuaranteeWarning,
    PrivacyAccountingError,
    PrivacyReport,
    PrivacySpent,
    WeakPrivacyWarning,
)

__all__ = [
    "DPLogisticRegression",
    "NotPrivateWarning",
    "OutsideGuaranteeWarning",
    "PrivacyAccountingError",
    "PrivacyReport",
    "PrivacySpent",
    "WeakPrivacyWarning",
    "__version__",
]

"""Differentially private machine learning for people who use scikit-learn."""

from importlib import import_module
from typing import Any

from skdp._files._models import load_model, save_model
from skdp._version import __version__
from skdp.estimators import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPConstrainedRegression,
    DPGroupDROClassifier,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMinimax,
    DPQuantileRegressor,
    DPRobustRegressor,
)
from skdp.privacy import (
    BudgetExceededError,
    LedgerError,
    LowSignalWarning,
    NotPrivateWarning,
    OutsideGuaranteeWarning,
    PrivacyAccountingError,
    PrivacyLedger,
    PrivacyReport,
    PrivacySpent,
    WeakPrivacyWarning,
)

__all__ = [
    "BudgetExceededError",
    "DPAUCMaximizer",
    "DPAdditiveClassifier",
    "DPAdditiveRegressor",
    "DPConstrainedClassifier",
    "DPConstrainedRegression",
    "DPGroupDROClassifier",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPMinimax",
    "DPQuantileRegressor",
    "DPRobustRegressor",
    "LedgerError",
    "LowSignalWarning",
    "NotPrivateWarning",
    "OutsideGuaranteeWarning",
    "PrivacyAccountingError",
    "PrivacyLedger",
    "PrivacyReport",
    "PrivacySpent",
    "WeakPrivacyWarning",
    "__version__",
    "load_model",
    "save_model",
]

SUBMODULES = (
    *("audit", "constraints", "estimators", "inspection", "losses", "minimax", "mirror_maps", "penalties", "preprocessing"),
    *("privacy", "samplings", "scorers", "solvers", "testing"),
)


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return import_module(f"skdp.{name}")
    raise AttributeError(f"module 'skdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES})

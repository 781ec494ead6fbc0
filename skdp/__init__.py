"""Differentially private machine learning for people who use scikit-learn."""

from importlib import import_module
from typing import Any

from skdp import estimators
from skdp._model_files import load_model, save_model
from skdp._version import __version__
from skdp.estimators import *  # noqa: F403
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
    SourceError,
    TableWarning,
    WeakPrivacyWarning,
)

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "LowSignalWarning",
    "NotPrivateWarning",
    "OutsideGuaranteeWarning",
    "PrivacyAccountingError",
    "PrivacyLedger",
    "PrivacyReport",
    "PrivacySpent",
    "SourceError",
    "TableWarning",
    "WeakPrivacyWarning",
    "__version__",
    "load_model",
    "save_model",
]
__all__ += estimators.__all__

SUBMODULES = (
    *("audit", "constraints", "data", "estimators", "inspection", "losses", "metrics", "minimax"),
    *("mirror_maps", "model_selection", "penalties", "preprocessing", "privacy", "samplings", "scorers", "solvers", "testing"),
)


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return import_module(f"skdp.{name}")
    raise AttributeError(f"module 'skdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES})

"""Defines the exceptions and warnings about the privacy guarantee."""

import reprlib
import sys
import warnings
from typing import Any

__all__ = [
    "BudgetExceededError",
    "DivergedError",
    "LedgerError",
    "LowSignalWarning",
    "NotPrivateWarning",
    "OutsideGuaranteeWarning",
    "PrivacyAccountingError",
    "SourceError",
    "TableWarning",
    "WeakPrivacyWarning",
    "shown",
    "warn",
]

# Shortens values in messages: one level of nesting and 200 characters, a choice that keeps a message on a few lines.
BRIEF = reprlib.Repr()
BRIEF.maxlevel, BRIEF.maxstring, BRIEF.maxother = 1, 200, 200


class PrivacyAccountingError(RuntimeError):
    """Raised for a release that the schedule does not contain or that cannot be accounted for.

    It is raised before any noise is drawn and before the un-noised value can be seen.
    """


class DivergedError(PrivacyAccountingError):
    """Raised if earlier releases led an iteration to numbers that are not finite or too large; records decide nothing else."""


class LedgerError(PrivacyAccountingError):
    """Raised if the file of a ledger is damaged, missing or not the one that an estimator is bound to; nothing is charged."""


class BudgetExceededError(PrivacyAccountingError):
    """Raised if a charge would exceed the ceiling of a ledger, before the oracle sees the data; nothing is charged.

    Parameters
    ----------
    message : str
        The charge, what is left of the budget, and what could still be charged.
    epsilon_left : float, default=0.0
        Largest epsilon that a full-data solver could still be charged at the same delta; 0 if there is none.
    """

    def __init__(self, message: str, epsilon_left: float = 0.0) -> None:
        super().__init__(message)
        self.epsilon_left = epsilon_left

    def __reduce__(self) -> tuple[type, tuple[str, float]]:
        return type(self), (str(self), self.epsilon_left)


class SourceError(PrivacyAccountingError):
    """Raised if a table in partitions changes during a fit, or if a partition cannot be read or worked on; quotes no data."""


class LowSignalWarning(UserWarning):
    """Warns that the noise is large: the model is probably a constant or lacks a part, or a column or an interval stays unknown.

    What concerns the model is computed from public facts before the fit is charged, the rest from releases.
    """


class NotPrivateWarning(UserWarning):
    """Warns that the model is fitted without noise (``epsilon=inf``) and has no guarantee."""


class TableWarning(UserWarning):
    """Warns how a fit will read the columns of a table, from public facts alone, before anything is charged."""


class WeakPrivacyWarning(UserWarning):
    """Warns that the guarantee holds but promises little: ``epsilon > 10`` or ``delta >= 1 / n_samples``."""


class OutsideGuaranteeWarning(UserWarning):
    """Warns that something the user attached to the fit reads the training data without noise."""


def shown(value: Any) -> str:
    """Return a value as text for a message; an array shows its type and shape only, because it may be training data."""
    has_shape = getattr(value, "shape", ()) != ()  # a NumPy scalar has the shape ()
    return f"<{type(value).__name__} of shape {value.shape}>" if has_shape else BRIEF.repr(value)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called skdp.

    Parameters
    ----------
    message : str
        Text of the warning; public facts only.
    category : type of Warning
        Class of the warning.
    """
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").split(".")[0] in ("skdp", "sklearn"):
        if sys._getframe(level).f_back is None:
            break
        level += 1
    warnings.warn(message, category, stacklevel=level + 1)

"""Exceptions and warnings about the guarantee itself."""

import reprlib
import sys
import warnings
from typing import Any

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "LowSignalWarning",
    "NotPrivateWarning",
    "OutsideGuaranteeWarning",
    "PrivacyAccountingError",
    "WeakPrivacyWarning",
    "shown",
    "warn",
]

BRIEF = reprlib.Repr()
BRIEF.maxlevel, BRIEF.maxstring, BRIEF.maxother = 1, 200, 200


class PrivacyAccountingError(RuntimeError):
    """A release was asked for that the schedule does not cover, or that cannot be accounted for.

    Raised before any noise is drawn and before the un-noised value can be seen.
    """


class LedgerError(PrivacyAccountingError):
    """A ledger's file is damaged, missing or not the one that an estimator was bound to: nothing can be charged to it."""


class BudgetExceededError(PrivacyAccountingError):
    """A fit would exceed the ceiling of a ledger. Raised before the data go behind the oracle; nothing was charged.

    Parameters
    ----------
    message : str
        What was asked, what is left, what would still fit.
    epsilon_left : float, default=0.0
        Largest epsilon at which a fit of a full-data solver with the same delta still fits; 0 if none does.
    """

    def __init__(self, message: str, epsilon_left: float = 0.0) -> None:
        super().__init__(message)
        self.epsilon_left = epsilon_left

    def __reduce__(self) -> tuple[type, tuple[str, float]]:
        return type(self), (str(self), self.epsilon_left)


class LowSignalWarning(UserWarning):
    """The noise is so large that a model is likely to be a constant, or that a coefficient has no interval.

    The first is computed from public facts, before the fit is charged; the second from releases.
    """


class NotPrivateWarning(UserWarning):
    """The model is fitted without noise (``epsilon=inf``) and carries no guarantee."""


class WeakPrivacyWarning(UserWarning):
    """The guarantee holds but promises little: ``epsilon > 10`` or ``delta >= 1 / n_samples``."""


class OutsideGuaranteeWarning(UserWarning):
    """Something that the user attached to the fit reads the training data without noise."""


def shown(value: Any) -> str:
    """Return a value for a message; a table that landed in a parameter by mistake shows its type only."""
    has_shape = getattr(value, "shape", ()) != ()  # a NumPy scalar has the shape ()
    return f"<{type(value).__name__} of shape {value.shape}>" if has_shape else BRIEF.repr(value)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called into skdp.

    Parameters
    ----------
    message : str
        What to say; public facts only.
    category : type of Warning
        Its class.
    """
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").split(".")[0] in ("skdp", "sklearn"):
        if sys._getframe(level).f_back is None:
            break
        level += 1
    warnings.warn(message, category, stacklevel=level + 1)

"""State which estimator chose another one, and why."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Choice"]


@dataclass(frozen=True)
class Choice:
    """Hold the estimator that the user fits, which chose another one to be fitted.

    Parameters
    ----------
    user_model : estimator
        The estimator that the user fits. Reports, ledgers and progress name it, and its callbacks are called.
    reason : str
        Why it chose the other one; a function of public facts.
    """

    user_model: Any
    reason: str

"""Define the exceptions and warnings about the privacy guarantee."""

import re
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import RLock
from typing import Any, TypeVar

import numpy as np

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
    "after_charge",
    "shown",
    "silent",
    "silently",
    "told_when_interrupted",
    "warn",
]

Method = TypeVar("Method", bound=Callable[..., Any])

# Shortens values in messages: one level of nesting and 200 characters, a choice that keeps a message on a few lines.
BRIEF = reprlib.Repr()
BRIEF.maxlevel, BRIEF.maxstring, BRIEF.maxother = 1, 200, 200

STANDS = "The charge stands, and nothing else has changed."


class PrivacyAccountingError(RuntimeError):
    """Raised for a release that the schedule does not contain or that cannot be accounted for.

    It is raised before any noise is drawn and before the un-noised value can be seen.
    """


class DivergedError(PrivacyAccountingError):
    """Raised if earlier releases led an iteration to numbers that are not finite or too large; records decide nothing else."""


class LedgerError(PrivacyAccountingError):
    """Raised if a ledger is damaged, missing, out of reach or not the one that an estimator is bound to; nothing is released."""


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
    """Raised if a table in partitions changes while it is used, or a partition cannot be read or worked on; quotes no data."""


class LowSignalWarning(UserWarning):
    """Warn that the noise is large: the model is probably a constant or lacks a part, or a column or an interval stays unknown.

    What concerns the model is computed from public facts before the fit is charged, the rest from releases.
    """


class NotPrivateWarning(UserWarning):
    """Warn that the model is fitted without noise (``epsilon=inf``) and has no guarantee."""


class TableWarning(UserWarning):
    """Warn how a fit will read the columns of a table, from public facts alone, before anything is charged."""


class WeakPrivacyWarning(UserWarning):
    """Warn that the guarantee holds but promises little: ``epsilon > 10`` or ``delta >= 1 / n_samples``."""


class OutsideGuaranteeWarning(UserWarning):
    """Warn that something the user attached to the fit reads the training data without noise."""


def shown(value: Any) -> str:
    """Return a value as text for a message; an array shows its type and shape only, because it may be training data."""
    has_shape = getattr(value, "shape", ()) != ()  # a NumPy scalar has the shape ()
    return f"<{type(value).__name__} of shape {value.shape}>" if has_shape else BRIEF.repr(value)


def printable(text: object) -> str:
    """Return one line without control characters, whatever a file name, a file or a note contains."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


class Silence:
    """Silence all warnings but those of `warn`, as long as any thread of the process is inside.

    One filter is put in front of those of the user, and taken out by the last thread that leaves. So threads that enter and
    leave in any order leave the filters as they were, which `warnings.catch_warnings` in each of them would not.
    """

    FILTER = ("ignore", re.compile(r"(?s:.*)"), Warning, None, 0)

    def __init__(self) -> None:
        self._lock, self._inside = RLock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                warnings.filters.insert(0, self.FILTER)  # type: ignore[attr-defined]
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                warnings.filters[:] = self._without()  # type: ignore[index]

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Let warnings through, by the filters of the user and of this package."""
        with self._lock, warnings.catch_warnings():
            warnings.filters[:] = self._without()  # type: ignore[index]
            yield

    def _without(self) -> list[Any]:
        return [entry for entry in warnings.filters if entry is not self.FILTER]  # type: ignore[attr-defined]


SILENCE = Silence()


class silent:
    """Silence other people's warnings, and floating-point errors, while records are read or worked on.

    Readers, maps of rows, losses, models, ``__array__`` and libraries warn of single records, and programs may turn warnings and
    floating-point errors into exceptions. What `warn` says is public, and is heard.
    """

    def __enter__(self) -> None:
        SILENCE.__enter__()
        self._errors = np.errstate(all="ignore")
        self._errors.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._errors.__exit__(*exception)  # type: ignore[arg-type]
        SILENCE.__exit__()


@contextmanager
def heard() -> Iterator[list[warnings.WarningMessage]]:
    """Collect what `warn` says inside, in `silent`; nothing is shown or raised, and other people's warnings stay silent."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.filters.insert(0, Silence.FILTER)  # type: ignore[attr-defined]
        yield found


def after_charge(error: SourceError) -> SourceError:
    """Return an error after a charge, which says once what stands."""
    return error if STANDS in str(error) else SourceError(f"{error} {STANDS}")


@contextmanager
def told_when_interrupted() -> Iterator[None]:
    """Explain the consequences when Ctrl-C, or the source of the table, ends what has been charged."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.args = ("This was interrupted: its budget stays spent, and nothing else has changed.",)
        raise
    except SourceError as error:
        raise after_charge(error) from None


def silently(method: Method) -> Method:
    """Let a function that reads records run in `silent`."""

    @wraps(method)
    def undisturbed(*arguments: Any, **named: Any) -> Any:
        with silent():
            return method(*arguments, **named)

    return undisturbed  # type: ignore[return-value]


def warn(message: str | Warning, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called skdp; in `silent`, nothing else is heard.

    Parameters
    ----------
    message : str or Warning
        Text of the warning, which tells public facts and releases only; or the warning itself, with a class of its own.
    category : type of Warning
        Class of the warning if `message` is a text.
    """
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").split(".")[0] in ("skdp", "sklearn", "contextlib"):
        if sys._getframe(level).f_back is None:
            break
        level += 1
    with SILENCE.broken():
        warnings.warn(message, category, stacklevel=level + 1)

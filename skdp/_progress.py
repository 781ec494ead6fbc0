"""Report the progress of a fit after each release, by scikit-learn's callbacks (since 1.9) and by printed lines."""

import inspect
from time import monotonic
from typing import Any

from skdp.privacy.errors import OutsideGuaranteeWarning, warn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replace scikit-learn's class in versions without callbacks."""

    def with_callbacks(method: Any) -> Any:  # type: ignore[no-redef]
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "PartitionProgress", "Progress", "asks_for_data", "with_callbacks"]

PAUSE = 5.0  # seconds between two lines about partitions, at least; a choice: short passes print none


class Progress:
    """Count releases, and report them to the user and to callbacks; computations use public numbers only.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted. The callbacks of the one that the user fits are called.
    total : int
        Number of releases on the schedule.
    verbose : int
        0 prints nothing, 1 prints about ten lines, 2 prints one line per release.
    """

    def __init__(self, estimator: Any, total: int, verbose: int) -> None:
        estimator = estimator._user_model
        _warn_of_readers(estimator)
        self._estimator, self._total, self._done = estimator, total, 0
        self._every = 0 if not verbose else 1 if verbose > 1 else max(1, total // 10)
        has_callbacks = hasattr(estimator, "_init_callback_context")
        self._context = estimator._init_callback_context(max_subtasks=total) if has_callbacks else None
        self._heard = bool(_callbacks(estimator))

    def begin(self) -> None:
        """Announce the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_begin(estimator=self._estimator)

    def tick(self) -> None:
        """Announce one release. A callback cannot stop the fit: the number of steps is public."""
        self._done += 1
        if self._context is not None and self._heard:
            task = self._context.subcontext(task_name="release")
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)
        if self._every and (self._done % self._every == 0 or self._done == self._total):
            print(f"[{type(self._estimator).__name__}] {self._done} of {self._total} releases")

    def end(self, attributes: dict[str, Any], given: tuple[Any, Any]) -> None:
        """Announce the end of the fit; callbacks get the released model, and X and y as ``given`` if they ask for them."""
        if self._context is not None:
            X, y = given
            self._context.call_on_fit_task_end(estimator=self._estimator, X=X, y=y, reconstruction_attributes=attributes)


class PartitionProgress:
    """Print how many partitions a pass over the data has done, at most one line every few seconds; all numbers are public.

    Parameters
    ----------
    estimator : estimator
        Named in front of each line.
    verb : str
        What is done with a partition.
    total : int or None
        Number of partitions, if it is known.
    """

    def __init__(self, estimator: Any, verb: str, total: int | None) -> None:
        self._line, self._of = f"[{estimator._name}] {verb}", "" if total is None else f" of {total}"
        self._last = monotonic()

    def __call__(self, done: int) -> None:
        """Announce that so many partitions are done in this pass."""
        if monotonic() - self._last >= PAUSE:
            print(f"{self._line} {done}{self._of} partitions")
            self._last = monotonic()


def asks_for_data(estimator: Any) -> bool:
    """Return whether a callback of the estimator asks for the training data."""
    return bool(_readers(estimator._user_model))


def _warn_of_readers(estimator: Any) -> None:
    """Warn if a callback of the estimator asks for the training data."""
    if readers := _readers(estimator):
        message = f"The callbacks {readers} read the training data without noise: the guarantee does not cover what they show."
        warn(message, OutsideGuaranteeWarning)


def _readers(estimator: Any) -> list[str]:
    return [type(callback).__name__ for callback in _callbacks(estimator) if _asks_for_data(callback)]


def _callbacks(estimator: Any) -> list[Any]:
    return getattr(estimator, "_skl_callbacks", [])


def _asks_for_data(callback: Any) -> bool:
    hooks = (callback.on_fit_task_begin, callback.on_fit_task_end)
    return any({"X", "y"} & set(inspect.signature(hook).parameters) for hook in hooks)

"""Report the progress of a fit after each release, by scikit-learn's callbacks (since 1.9) and by printed lines."""

import inspect
import sys
from multiprocessing import current_process
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


PAUSE = 5.0  # seconds between two lines about partitions, at least; a choice: short passes print none


PATIENCE = 3.0  # seconds of a fit before there is a bar; a choice: shorter fits need none
REFRESH, WIDTH = 0.2, 30  # seconds between two states of a bar, at least; its length in characters; choices


class Bar:
    """Draw a progress bar on the terminal of a fit that takes long; it overwrites itself, and leaves nothing at the end.

    Parameters
    ----------
    title : str
        What takes long.
    total : int
        Number of steps.
    """

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total, self._begun = title, total, monotonic()
        self._next, self._length = self._begun + PATIENCE, 0

    def show(self, done: int) -> None:
        """Draw how many steps are done, if the fit takes long; wipe the bar once all are."""
        if done == self._total:
            self._write(" " * self._length)
        elif monotonic() >= self._next:
            full, seconds = WIDTH * done // self._total, monotonic() - self._begun
            left = seconds * (self._total - done) / done
            text = (
                f"[{self._title}] [{'#' * full}{'.' * (WIDTH - full)}] {done} of {self._total} releases, about {left:.0f} s left"
            )
            self._write(text.ljust(self._length))
            self._next, self._length = monotonic() + REFRESH, max(self._length, len(text))

    def _write(self, text: str) -> None:
        if text:
            print(f"\r{text}", end="\r", file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Return whether a bar can be seen: not in workers, which would draw over each other, and not in files."""
    return current_process().name == "MainProcess" and sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """Count releases, and report them to the user and to callbacks; computations use public numbers only.

    Parameters
    ----------
    estimator : estimator
        The estimator that the user fits, whose callbacks are called.
    total : int
        Number of releases on the schedule.
    verbose : int or None
        None draws a bar on a terminal if the fit takes long, 0 prints nothing, 1 prints about ten lines, 2 prints one line per
        release.
    """

    def __init__(self, estimator: Any, total: int, verbose: int | None) -> None:
        _warn_of_readers(estimator)
        self._estimator, self._total, self._done = estimator, total, 0
        self._every = 0 if not verbose else 1 if verbose > 1 else max(1, total // 10)
        has_callbacks = hasattr(estimator, "_init_callback_context")
        self._context = estimator._init_callback_context(max_subtasks=total) if has_callbacks else None
        self._heard = bool(_callbacks(estimator))
        self._bar = Bar(type(estimator).__name__, total) if verbose is None and not self._heard and on_terminal() else None

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
        if self._bar is not None:
            self._bar.show(self._done)
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
    task : Task
        The fit, whose estimator is named in front of each line.
    verb : str
        What is done with a partition.
    total : int or None
        Number of partitions, if it is known.
    """

    def __init__(self, task: Any, verb: str, total: int | None) -> None:
        self._line, self._of = f"[{task.name}] {verb}", "" if total is None else f" of {total}"
        self._last = monotonic()

    def __call__(self, done: int) -> None:
        """Announce that so many partitions are done in this pass."""
        if monotonic() - self._last >= PAUSE:
            print(f"{self._line} {done}{self._of} partitions")
            self._last = monotonic()


def tells_partitions(task: Any) -> bool:
    """Return whether lines tell of the partitions that a pass has done."""
    return (task.verbose or 0) > 1


def asks_for_data(task: Any) -> bool:
    """Return whether a callback of the estimator asks for the training data."""
    return bool(_readers(task.user_model))


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

"""Explain what an interrupted fit has spent."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["told_when_interrupted"]

INTERRUPTED = "The fit was interrupted: its budget stays spent, and the estimator is as it was before the fit."


@contextmanager
def told_when_interrupted() -> Iterator[None]:
    """Explain the consequences when Ctrl-C ends a fit that has been charged."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.args = (INTERRUPTED,)
        raise

"""Explain what a fit that ends early has spent."""

from collections.abc import Iterator
from contextlib import contextmanager

from skdp.privacy.data.partition import STANDS
from skdp.privacy.errors import SourceError

__all__ = ["told_when_interrupted"]

INTERRUPTED = "The fit was interrupted: its budget stays spent, and the estimator is as it was before the fit."


@contextmanager
def told_when_interrupted() -> Iterator[None]:
    """Explain the consequences when Ctrl-C, or the source of the table, ends a fit that has been charged."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.args = (INTERRUPTED,)
        raise
    except SourceError as error:
        if STANDS in str(error):
            raise
        raise SourceError(f"{error} {STANDS}") from None

"""Call functions of the user's, whose errors may quote a record and whose results may be overwritten."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skdp.privacy.errors import SourceError, silent


def quoting_nothing(work: Callable[[], Any], text: str) -> Any:
    """Return the result of a user's function, without its warnings, or raise SourceError with a text that quotes no record."""
    try:
        with silent():
            return work()
    except MemoryError:
        failure: BaseException = MemoryError("A function that reads or maps the table needs more memory than there is.")
    except KeyboardInterrupt:
        failure = KeyboardInterrupt()
    except BaseException:  # the function may raise SourceError with a text of its own, and what is no Exception
        failure = SourceError(text)
    raise failure  # outside of the except clause, so that the original is not its context


def copied(records: Any) -> Any:
    """Return records that share no memory with those of the user, who may overwrite them while they wait for a chunk.

    A record that came twice would count twice, and one that changes would not be the one whose norm was computed.
    """
    if hasattr(records, "copy"):
        return records.copy()
    return np.array(records) if isinstance(records, memoryview) else records


def is_foreign(step: Callable[..., Any]) -> bool:
    """Return whether a map of rows is the user's own; the errors of this package quote no data."""
    function = getattr(step, "func", step)  # of a partial
    module = getattr(getattr(function, "__self__", function), "__module__", None)
    return str(module).partition(".")[0] != "skdp"

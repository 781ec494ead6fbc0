"""Read a partition of a Dask collection on a worker."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skdp._data_validation import len_of
from skdp.privacy.data.partition import Chunk, Failure

__all__ = ["OnWorker"]


@dataclass(frozen=True)
class OnWorker:
    """Read a partition on a worker; the text of a failure quotes no data.

    Parameters
    ----------
    read : callable
        Maps records and targets to a chunk and to what is public about it.
    empty : tuple
        The same of a partition without records.
    """

    read: Callable[[Any, Any], tuple[Chunk, Any]]
    empty: tuple[Chunk, Any]

    def __call__(self, X: Any, y: Any) -> tuple[Chunk, Any] | Failure:
        """Return the chunk and what is public about it, or a failure."""
        if len_of(X) != len_of(y):
            return Failure(
                ValueError, "A partition of X and that of y have different lengths; expected the same partitions in both."
            )
        if not len_of(X):
            return self.empty
        try:
            return self.read(X, y)
        except (TypeError, ValueError) as error:
            if type(error) not in (TypeError, ValueError):  # such as UnicodeDecodeError, which quotes what it cannot read
                raise
            return Failure(type(error), str(error))

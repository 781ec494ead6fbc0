"""Define what an oracle asks of the holders of private data, and what these need of a query."""

from typing import Protocol

import numpy as np

from skdp.privacy.errors import SourceError


class Sums(Protocol):
    """Define what the holders of private data need of a query of a sum."""

    def summed(self) -> tuple[np.ndarray, ...] | None:
        """Return all that the sum depends on, beside the records and the type of the query; None if no other query shares it."""
        ...

    def partial(self, rows: "PrivateData") -> np.ndarray:
        """Return the un-noised sum over some records."""
        ...


class PrivateData:
    """Base of the holders of private records, in memory or in partitions; only the oracle asks them.

    Attributes
    ----------
    n_samples, n_features : int
        Numbers of records and of columns, which are public.
    failure : SourceError or None
        What ended a pass over partitions. Its text is this package's; that of any other error may be a user's.
    """

    n_samples: int
    n_features: int
    failure: SourceError | None = None

    @property
    def summation_error(self) -> float:
        """Bound on the float64 error of a sum over the records, relative to the largest norm of a term."""
        raise NotImplementedError

    def reduced(self, query: Sums) -> np.ndarray:
        """Return the un-noised sum of a query over all records.

        Parameters
        ----------
        query : Sums
            A query of a sum.

        Returns
        -------
        ndarray
            What ``query.finish`` takes.
        """
        return query.partial(self)

    def sampled(self, key: bytes, rate: float) -> "PrivateData":
        """Return the Poisson sample of a key; only holders of rows draw samples."""
        raise NotImplementedError

    def subset(self, indices: np.ndarray) -> "PrivateData":
        """Return some records, for a single pass; only holders of rows in memory have it."""
        raise NotImplementedError

"""Define a table that is read in batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

__all__ = ["Source", "Table", "check_cache"]

CACHES = ("disk", None)


class Source(Protocol):
    """Where the records of a table come from. All attributes are public facts.

    Attributes
    ----------
    description : str
        What the report says, such as "NumPy file".
    n_samples : int or None
        Number of records, if it is known before they are read.
    n_features : int or None
        Number of columns of X, if it is known before they are read.
    names : list of str or None
        Names of these columns.
    dtype : dtype, optional
        Type of the numbers in X, if it is known before they are read.
    """

    description: str
    n_samples: int | None
    n_features: int | None
    names: list[str] | None

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield X and y (None without target) batch by batch; each call begins anew."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table that is read in batches, and public maps of its rows.

    `skdp.data.npy`, `skdp.data.parquet` and `skdp.data.chunks` make tables. ``fit`` takes one in place of X and y, ``predict`` in
    place of X. The memory that they need does not grow with the number of records.

    Parameters
    ----------
    source : Source
        Where the records come from.
    steps : tuple of callable, default=()
        Maps of X, each of every row alone and by public facts.
    cache : {"disk", None}, default="disk"
        "disk" makes ``fit`` keep a copy of the mapped records in a private file, which has no name and ends with the fit.
        None reads the source once per pass over the data, and needs no space.
    """

    source: Source
    steps: tuple[Callable[[Any], Any], ...] = ()
    cache: str | None = "disk"

    @property
    def n_samples(self) -> int | None:
        """Number of records, or None if it is not known before they are read."""
        return self.source.n_samples

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """Numbers of records and of columns; None for a number that is not known before the table is read."""
        return self.source.n_samples, None if self.steps else self.source.n_features

    def mapped(self, step: Callable[[Any], Any]) -> "Table":
        """Return the table with one more map of its rows.

        Parameters
        ----------
        step : callable
            Maps a batch of X. Each row must be mapped alone and by public facts: what it learns from the records is not covered
            by any guarantee.

        Returns
        -------
        Table
            Nothing is read yet.
        """
        return replace(self, steps=(*self.steps, step))

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield mapped X and y (None without target), batch by batch.

        Yields
        ------
        X : array-like
            Some records.
        y : array-like or None
            Their targets.
        """
        for X, y in self.source.batches():
            for step in self.steps:
                X = step(X)
            yield X, y

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise TypeError: NumPy would pull the table into memory."""
        raise TypeError(
            "A table in partitions is not an array. Private estimators and public transformers of skdp take it as it is; other "
            "transformers, such as StandardScaler, would learn from the records without privacy."
        )

    def __repr__(self) -> str:
        return f"<Table: {self.source.description}>"


def check_cache(cache: Any) -> str | None:
    """Return the parameter, or raise ValueError."""
    if cache not in CACHES:
        raise ValueError(f"cache={cache!r}; expected 'disk', or None to read the source once per pass.")
    return cache

"""Define a table that is read in batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from skdp._validation import shown
from skdp.privacy.errors import SourceError, silent

CACHES = ("disk", None)
DTYPES = ("float32", "float64", None)
FAILED = (
    "A map of the rows of the table failed; its error may quote a record and is left out. Calling it on public rows shows it."
)


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

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield X and y (None without target), and public groups if there are any, batch by batch; each call begins anew."""
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
    dtype : {"float32", "float64", None}, default=None
        What the numbers of the mapped X are converted to; None leaves them as they are.
    width : int or None, default=None
        Number of columns of the mapped X, if it is known. Without steps, the source tells it.
    """

    source: Source
    steps: tuple[Callable[[Any], Any], ...] = ()
    cache: str | None = "disk"
    dtype: str | None = None
    width: int | None = None

    @property
    def n_samples(self) -> int | None:
        """Number of records, or None if it is not known before they are read."""
        return self.source.n_samples

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of X, or None if it has none, or if steps map it."""
        return None if self.steps else self.source.names

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """Numbers of records and of columns of X; None for a number that is not known before the table is read."""
        return self.source.n_samples, self.width if self.steps else self.source.n_features

    def mapped(self, step: Callable[[Any], Any], width: int | None = None) -> "Table":
        """Return the table with one more map of its rows.

        Parameters
        ----------
        step : callable
            Maps a batch of X. Each row must be mapped alone and by public facts: what it learns from the records is not covered
            by any guarantee.
        width : int or None, default=None
            Number of columns of what it returns; None if that is not known.

        Returns
        -------
        Table
            Nothing is read yet.
        """
        return replace(self, steps=(*self.steps, step), width=width)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield mapped X and y (None without target), batch by batch.

        Yields
        ------
        X : array-like
            Some records.
        y : array-like or None
            Their targets.
        """
        for X, y, _ in self.grouped():
            yield X, y

    def grouped(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield mapped X, y and the labels of public groups (each None without), batch by batch.

        Yields
        ------
        X : array-like
            Some records.
        y : array-like or None
            Their targets.
        groups : array-like or None
            Labels of their groups.
        """
        for X, y, *groups in self.source.batches():
            if getattr(X, "shape", (1,))[:1] == (0,):
                continue
            yield self.batch(X), y, groups[0] if groups else None

    def batch(self, X: Any) -> Any:
        """Return some records as the estimator is given them.

        Parameters
        ----------
        X : array-like
            Records of the source.

        Returns
        -------
        array-like
            The mapped records.
        """
        for step in self.steps:
            X = quoting_nothing(partial(_mapped, step, X), FAILED) if is_foreign(step) else step(X)
        return X if self.dtype is None else converted(X, np.dtype(self.dtype))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise TypeError: NumPy would pull the table into memory."""
        raise TypeError(
            "A table in partitions is not an array. Private estimators and public transformers of skdp take it as it is; other "
            "transformers, such as StandardScaler, would learn from the records without privacy. Cross-validation and bagging "
            "select rows, for which they need a table in memory."
        )

    def __repr__(self) -> str:
        return f"<Table: {self.source.description}>"


def _mapped(step: Callable[[Any], Any], X: Any) -> Any:
    """Return what a map of the user's returns, which may overwrite it later."""
    return copied(step(X))


def converted(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return numbers in another dtype, in C order; tables with other columns than numbers as they are."""
    dtypes = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    if not all(getattr(given, "kind", "O") in "biuf" for given in dtypes) or all(given == dtype for given in dtypes):
        return X
    with np.errstate(all="ignore"):  # a warning would tell of the size of a number; `fit` refuses infinities
        return X.astype(dtype) if sparse.issparse(X) or hasattr(X, "dtypes") else np.ascontiguousarray(X, dtype=dtype)


def check_dtype(dtype: Any) -> str | None:
    """Return the parameter, or raise ValueError."""
    if dtype is None or (isinstance(dtype, str) and dtype in DTYPES):
        return dtype
    raise ValueError(f"dtype={shown(dtype)}; expected 'float32', 'float64', or None to leave the numbers as they are.")


def check_number(known: int | None, found: int, consequence: str = " Nothing was charged.") -> None:
    """Raise SourceError if a source has another number of records than the one that was known, if one was."""
    if known not in (None, found):
        raise SourceError(f"The source has another number of records than before: it has changed.{consequence}")


def check_cache(cache: Any) -> str | None:
    """Return the parameter, or raise ValueError."""
    if not (cache is None or (isinstance(cache, str) and cache in CACHES)):
        raise ValueError(f"cache={shown(cache)}; expected 'disk', or None to read the source once per pass.")
    return cache


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

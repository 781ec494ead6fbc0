"""Bring tables to the types that the package reads: frames of other libraries become frames of pandas."""

import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from skdp._files._suffixes import imported

EXCHANGED = ("__arrow_c_stream__", "__dataframe__")  # how libraries pass frames to each other
ADVICE = 'pip install "skdp[parquet]" installs what frames of other libraries need'
READERS = "such as pandas.read_csv(path), or skdp.data.parquet(path) for a table that is larger than memory"
UNKNOWN = 2  # records of a table of which their number is not known, until it is read


@dataclass(frozen=True)
class TypedColumns:
    """Stand for a data frame of which only the number of records, and the names and types of the columns, are known.

    Parameters
    ----------
    types : dict
        The type of each column, by name.
    n_samples : int or None
        Number of records; None if it is not known.
    """

    types: Mapping[str, Any]
    n_samples: int | None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of records and of columns."""
        return UNKNOWN if self.n_samples is None else self.n_samples, len(self.types)

    @property
    def columns(self) -> list[str]:
        """The names."""
        return list(self.types)

    @property
    def dtypes(self) -> list[Any]:
        """The types."""
        return list(self.types.values())

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(dtype=self.types[name])


def as_table(X: Any) -> Any:
    """Return a frame of another library as a frame of pandas, and a matrix as an array; refuse what is no table.

    Parameters
    ----------
    X : object
        A table, or what a user takes for one.

    Returns
    -------
    object
        The table.

    Raises
    ------
    TypeError
        For paths, lists of dicts and dicts, and for a frame that cannot be read; the message quotes no data.
    """
    if isinstance(X, np.matrix):
        return np.asarray(X)
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(f"X is a {type(X).__name__}, which no estimator opens; expected a data frame, {READERS}.")
    if isinstance(X, Mapping) and not sparse.issparse(X):  # dictionaries of keys are both
        raise TypeError("X is a dict; expected a data frame, such as pandas.DataFrame(X), or an array.")
    if isinstance(X, (list, tuple)) and any(isinstance(row, Mapping) for row in X[:1]):
        raise TypeError(f"X is a {type(X).__name__} of dicts; expected a data frame, such as pandas.DataFrame(X), or an array.")
    return as_frame(X)


def as_frame(X: Any) -> Any:
    """Return a frame of another library as a frame of pandas; anything else unchanged.

    Such a frame has ``__arrow_c_stream__`` or ``__dataframe__``. Its columns keep their types, so that a missing cell changes no
    type. Messages quote no data. A lazy frame of polars is refused before its columns are read, because reading them warns.
    """
    check_holds_records(X)
    return _of_arrow(X) if _is_foreign(X) else X


def check_holds_records(X: Any, name: str = "X") -> None:
    """Raise TypeError for a lazy frame or an expression of polars."""
    usual = {"LazyFrame": f"a LazyFrame, {name}.collect()", "Expr": f"an Expr, frame.select({name})"}.get(type(X).__name__)
    if usual is not None:
        what, such = usual.split(", ")
        raise TypeError(f"{name} is {what}, which holds no records yet; expected a table, such as {such}.")


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection; Dask is not imported to find out."""
    dask = sys.modules.get("dask")
    return dask is not None and hasattr(type(X), "__dask_graph__") and bool(dask.is_dask_collection(X))


def is_lazy(X: Any) -> bool:
    """Return whether X is a table in partitions: one of `skdp.data`, or a Dask collection."""
    return is_dask(X) or (hasattr(X, "mapped") and hasattr(X, "batches"))


def _is_foreign(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    known = pandas is not None and isinstance(X, (pandas.DataFrame, pandas.Series))
    is_polars = type(X).__module__.partition(".")[0] == "polars"
    return not (known or is_polars or is_dask(X)) and any(hasattr(type(X), name) for name in EXCHANGED)


def _of_arrow(X: Any) -> Any:
    arrow, pandas = imported("pyarrow", ADVICE), imported("pandas", ADVICE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they may depend on a record
            from_frame = imported("pyarrow.interchange").from_dataframe
            table = arrow.table(X) if hasattr(X, EXCHANGED[0]) else from_frame(X)
            return table.to_pandas(types_mapper=pandas.ArrowDtype)
    except MemoryError:
        raise
    except Exception:  # its message may quote data
        pass
    raise TypeError(f"X is a {type(X).__name__} that cannot be read as a data frame; expected a table, such as X.to_pandas().")

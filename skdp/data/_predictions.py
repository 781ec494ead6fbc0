"""Let methods of fitted models take a table in partitions, batch by batch."""

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from skdp._table_types import is_dask
from skdp.data._dask import lazy_predictions, table_of
from skdp.data._table import Table, check_number

Method = TypeVar("Method", bound=Callable[..., np.ndarray])


def takes_tables(method: Method) -> Method:
    """Let a method that maps each record alone take a table in partitions; only the result is in memory as a whole."""

    @wraps(method)
    def whole(self: Any, X: Any) -> np.ndarray:
        if is_dask(X):
            return lazy_predictions(partial(_unbound, method.__name__, self), X)
        return of_batches(lambda batch: method(self, batch), X) if isinstance(X, Table) else method(self, X)

    return whole  # type: ignore[return-value]


def scored(X: Any, y: Any) -> tuple[Any, Any]:
    """Return what to predict for and its targets: y, or those that a table in partitions names.

    Dask collections come to this process partition by partition.
    """
    if is_dask(X):
        X, y = table_of(X, y), None
    if y is not None:
        return X, y
    columns: list[Any] = [column for _, column in X.batches()] if isinstance(X, Table) else [None]
    if any(column is None for column in columns):
        raise TypeError("y is missing; expected score(X, y), or a table in partitions that names its target.")
    return X, np.concatenate(columns)


def _unbound(name: str, model: Any, X: Any) -> np.ndarray:
    return np.asarray(getattr(model, name)(X))


def of_batches(predict: Callable[[Any], np.ndarray], table: Table) -> np.ndarray:
    """Return the predictions for all records of a table, in their order."""
    if table.n_samples is None:
        return _joined(predict(X) for X, _ in table.batches())
    result, start = np.empty(0), 0
    for X, _ in table.batches():
        part = predict(X)
        if not start:
            result = np.empty((table.n_samples, *part.shape[1:]), part.dtype)
        begin, start = start, start + len(part)
        if start > table.n_samples:
            break
        result[begin:start] = part
    check_number(table.n_samples, start, "")
    return result


def _joined(parts: Iterator[np.ndarray]) -> np.ndarray:
    """Return the parts as one array, which grows in place: a list of them would need the memory twice."""
    result = np.array(next(parts, np.empty(0)))
    for part in parts:
        start = len(result)
        result.resize((start + len(part), *part.shape[1:]), refcheck=False)
        result[start:] = part
    return result

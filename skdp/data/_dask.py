"""Read Dask arrays and data frames, partition by partition."""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from skdp._files._suffixes import imported
from skdp._table_types import is_dask
from skdp.data._table import Table, quoting_nothing

FAILED = "A task of the Dask collection failed; its error may quote a record and is left out. Computing the collection shows it."
OF_DASK = 'pip install "skdp[dask]"'


class DaskParts:
    """A source of two Dask collections with the same partitions.

    Parameters
    ----------
    X : dask array or data frame
        The records.
    y : dask array or series
        Their targets.
    n_persons : int or None, default=None
        Public number of persons, if the rows are theirs; it takes the place of the number of records.

    Raises
    ------
    TypeError, ValueError
        If y is no Dask collection, or is cut in another way.
    """

    description = "Dask collection"

    def __init__(self, X: Any, y: Any, n_persons: int | None = None) -> None:
        if not is_dask(y):
            raise TypeError(
                f"y is {'missing' if y is None else f'a {type(y).__name__}'} beside X of Dask; expected a Dask collection with "
                "the same partitions: fit(ddf[columns], ddf['y'])."
            )
        self.names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        # known without computing anything
        n_rows = int(X.shape[0]) if isinstance(X.shape[0], (int, np.integer)) else None
        self.n_samples, self.first_reads = (n_rows, 1) if n_persons is None else (n_persons, 2)  # their ids were counted
        self.n_features: int | None = int(X.shape[1])
        self.dtype = getattr(X, "dtype", None)
        self.target_dtype = getattr(y, "dtype", None)
        self.parts = list(zip(*_matching(X, y), strict=True))

    def count(self) -> int:
        """Return the number of records, which the workers count."""
        dask = imported("dask", OF_DASK)
        lengths = [dask.delayed(len)(y) for _, y in self.parts]
        return sum(quoting_nothing(lambda: dask.compute(*lengths), FAILED))

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield X and y partition by partition, each computed in this process when it is asked for."""
        dask = imported("dask", OF_DASK)
        for part in self.parts:
            yield quoting_nothing(partial(dask.compute, *part, scheduler="synchronous"), FAILED)


def table_of(X: Any, y: Any, persons: Any = None) -> Table:
    """Return the table of two Dask collections, whose rows may be of persons."""
    return Table(DaskParts(X, y, None if persons is None else persons.n_persons))


def current_client() -> Any:
    """Return the client of the user's cluster, or None."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.get_client()
    except ValueError:  # there is none
        return None


def delayed_parts(X: Any) -> list[Any]:
    """Return a delayed object per partition; an array of two dimensions is cut by rows only.

    Graphs are not optimized here: Dask fuses some of arrays to a cycle.
    """
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1}) if X.ndim == 2 and len(X.chunks[1]) > 1 else X
        return list(X.to_delayed(optimize_graph=False).ravel())
    return list(X.to_delayed(optimize_graph=False))


def checked_parts(X: Any, beside: Any, check: Callable[..., Any], digests: Iterable[bytes]) -> Any:
    """Return a Dask frame whose partitions pass a check when they are computed.

    Parameters
    ----------
    X : dask frame
        Records.
    beside : dask frame, series, array or None
        What else the check takes, in the same partitions; None for nothing.
    check : callable
        Returns a partition of X, or raises an error; takes it, that of ``beside`` if there is one, and a fingerprint.
    digests : iterable of bytes
        Fingerprint of each partition.

    Returns
    -------
    dask frame
        The same records, cut as the user wrote it: Dask may not join partitions that have been checked.
    """
    parts = zip(*map(as_cut, [X] if beside is None else [X, beside]), digests, strict=True)
    checked = imported("dask", OF_DASK).delayed(check, pure=False)
    return imported("dask.dataframe", OF_DASK).from_delayed([checked(*part) for part in parts], meta=X._meta, verify_meta=False)


def lazy_predictions(predict: Callable[[Any], np.ndarray], X: Any) -> Any:
    """Return the predictions for a Dask collection as a Dask array, which nothing is computed for yet.

    Parameters
    ----------
    predict : callable
        Maps some records to their predictions; it is pickled.
    X : dask array or data frame
        Records.

    Returns
    -------
    dask.array.Array
        A chunk per partition.
    """
    arrays, delayed = imported("dask.array", OF_DASK), imported("dask", OF_DASK).delayed
    dummy = X._meta_nonempty if hasattr(X, "_meta_nonempty") else np.zeros((1, X.shape[1]), X.dtype)
    meta, apply = predict(dummy), delayed(_predicted, pure=False)
    parts = delayed_parts(X)
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(parts)  # Dask may join small partitions
    return arrays.concatenate(
        [
            arrays.from_delayed(apply(predict, part, meta[:0]), shape=(length, *meta.shape[1:]), dtype=meta.dtype)
            for part, length in zip(parts, lengths, strict=True)
        ]
    )


def _predicted(predict: Callable[[Any], np.ndarray], part: Any, nothing: np.ndarray) -> np.ndarray:
    return predict(part) if part.shape[0] else nothing


def _matching(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Return the partitions of both; where Dask joins small files, and more of them for fewer columns, those of the user."""
    parts, targets = delayed_parts(X), delayed_parts(y)
    if any(hasattr(Z, "simplify") and len(found) != Z.npartitions for Z, found in ((X, parts), (y, targets))):
        parts, targets = as_cut(X), as_cut(y)
    if len(parts) != len(targets):
        raise ValueError(
            f"X has {len(parts)} partitions and y has {len(targets)}; expected the same partitions in both, such as two columns "
            "of one frame."
        )
    return parts, targets


def as_cut(X: Any) -> list[Any]:
    """Return a delayed object per partition of the graph that the user wrote, which still reads no other columns."""
    return list(X.simplify().to_delayed(optimize_graph=False)) if hasattr(X, "simplify") else delayed_parts(X)

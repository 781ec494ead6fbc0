"""Define the base class of stateless transformers."""

import copy
from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdp._data_validation import quoting_no_data, read_features
from skdp._files._suffixes import imported
from skdp._table_types import as_frame, is_dask, is_lazy
from skdp.privacy.errors import silent

Kind = TypeVar("Kind", bound=type)


def lazily(kind: Kind) -> Kind:
    """Decorate a class of transformers that learn nothing: ``fit`` and ``transform`` take tables in partitions, too.

    ``fit`` then sees one row of public facts, and ``transform`` returns the table with a further map of its rows. Nothing is
    read. scikit-learn's wrapper of ``transform``, which makes frames of what it returns, stays inside.

    Parameters
    ----------
    kind : type
        A class with ``fit``, ``transform`` and perhaps ``fit_transform``, and ``_public_row(X)``, which returns a row as ``fit``
        takes it, made of public facts; None if they are not known yet.

    Returns
    -------
    type
        The class.
    """
    fit: Any = kind.fit  # type: ignore[attr-defined]

    def fitted(self: Any, X: Any) -> Any:
        row = self._public_row(X)
        return self if row is None else fit(self, row)

    def transformed(self: Any, X: Any) -> Any:
        mapping, row = copy.deepcopy(self), self._public_row(X)
        result: Any = None if row is None else mapping.transform(row)
        if is_dask(X):
            return X.map_partitions(mapping.transform, meta=result[:0])
        return X.mapped(mapping.transform, None if result is None else result.shape[1])

    def both(self: Any, X: Any) -> Any:
        return transformed(fitted(self, X), X)

    for name, lazy in (("fit", fitted), ("transform", transformed), ("fit_transform", both)):
        if hasattr(kind, name):
            setattr(kind, name, _either(getattr(kind, name), lazy))
    return kind


def public_row(X: Any, names: list[str] | None = None) -> Any:
    """Return a row of zeros with the columns of a table that is not read; None if these are not known.

    Parameters
    ----------
    X : Table or dask.dataframe.DataFrame
        The table.
    names : list of str or None, default=None
        Its columns; None takes those that it states.

    Returns
    -------
    DataFrame, ndarray or None
        The row.
    """
    names = names or (list(X.columns) if is_dask(X) else X.names)
    if names is None:
        return None if X.shape[1] is None else np.zeros((1, X.shape[1]))
    return imported("pandas").DataFrame(np.zeros((1, len(names))), columns=names)


def _either(method: Callable[..., Any], lazy: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @wraps(method)
    def either(self: Any, X: Any, *others: Any, **further: Any) -> Any:
        with silent():
            by_rows = is_lazy(X) and not hasattr(X, "rechunk")  # a Dask array is computed
            return lazy(self, X) if by_rows else method(self, as_frame(X), *others, **further)

    return either


@lazily
class StatelessTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of transformers that map each row separately, with public parameters; ``fit`` only checks and stores column names."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: ``transform`` works without ``fit``."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check the parameters and the table, and store the number and the names of the columns.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records.
        y : object, default=None
            Ignored.

        Returns
        -------
        self
            The transformer.
        """
        self._check(self._read(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """Map each row separately.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records; not changed.

        Returns
        -------
        ndarray, CSR or CSC of shape (n_samples, n_features)
            The mapped records.
        """
        X = self._read(X, reset=False)
        self._check(X)
        return self._transformed(X)

    def _public_row(self, X: Any) -> Any:
        return public_row(X)

    def _read(self, X: Any, reset: bool) -> Any:
        return read_features(self, X, reset)

    @abstractmethod
    def _check(self, X: Any) -> None:
        """Raise TypeError or ValueError unless the parameters are valid for the table."""

    @abstractmethod
    def _transformed(self, X: Any) -> Any:
        """Return the mapped rows of a checked table."""


class CellTransformer(StatelessTransformer):
    """Base of those that take columns of any type, cell by cell."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: text and missing values are allowed, sparse tables are not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _read(self, X: Any, reset: bool) -> Any:
        return quoting_no_data(X, lambda: self._cells(X, reset))

    @abstractmethod
    def _cells(self, X: Any, reset: bool) -> np.ndarray:
        """Return the cells; errors may quote data."""

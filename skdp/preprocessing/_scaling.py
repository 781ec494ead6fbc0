"""Scale numbers to a known range and rows to a known length, by public bounds."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from skdp._data_validation import read_features
from skdp._validation import (
    check_feature_bounds,
    check_number,
    check_scale,
    check_truth,
    column_labels,
    shown,
    warn_of_two_numbers,
)
from skdp.preprocessing._base import StatelessTransformer


class BoundedScaler(StatelessTransformer):
    """Scale numbers to [-1, 1] by public bounds, in float64; values outside are clipped to them.

    Parameters
    ----------
    bounds : float, pair of float, array-like of shape (n_features, 2), or dict
        A number B for ``|x| <= B``, ``(low, high)`` for all columns, one pair per column, or a dict from column name (x0, x1, ...
        for arrays) to a number or a pair, in the units of X. Bounds must be known without looking at the records (an age lies
        between 0 and 120): bounds that are computed from the records leak.
    centre : bool, default=True
        Whether to map ``[low, high]`` onto [-1, 1]. False divides by the larger of ``abs(low)`` and ``abs(high)``, which keeps
        zeros, so sparse tables stay sparse.
    scale : {"linear", "log"}, default="linear"
        "log" scales ``sign(x) * log(1 + abs(x))``, for amounts and counts with a long tail; bounds stay in the units of X.
    fill : float or None, default=None
        Public number that replaces missing values (NaN). If None, missing values are an error.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, where X had them.

    Raises
    ------
    ValueError
        From ``fit`` and ``transform``, if there are no bounds, or if they do not match the table.

    See Also
    --------
    RowNormClipper : Bound the length of whole rows.
    from_schema : Build the transformer of a whole table.

    Notes
    -----
    **Privacy.** Each row is mapped separately with public numbers. Therefore a private estimator that is fitted on the result has
    the same guarantee for the original records.

    Examples
    --------
    >>> from skdp.preprocessing import BoundedScaler
    >>> BoundedScaler(bounds=[(0, 120), (0, 3)]).fit_transform([[30, 0], [60, 3], [150, 1.5]])
    array([[-0.5, -1. ],
           [ 0. ,  1. ],
           [ 1. ,  0. ]])
    """

    def __init__(self, bounds: Any = None, *, centre: bool = True, scale: str = "linear", fill: float | None = None) -> None:
        self.bounds = bounds
        self.centre = centre
        self.scale = scale
        self.fill = fill

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse tables and missing values are allowed if the parameters support them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.centre
        tags.input_tags.allow_nan = self.fill is not None
        return tags

    def _read(self, X: Any, reset: bool) -> Any:
        check_number("fill", self.fill, optional=True)
        # always float64: a missing value in one record changes the dtype of its column, and could change that of the whole table
        return read_features(self, X, reset, dtype=np.float64, finite="allow-nan" if self.fill is not None else True)

    def _check(self, X: Any) -> None:
        check_truth("centre", self.centre)
        if not isinstance(self.scale, str) or self.scale not in ("linear", "log"):
            raise ValueError(f"scale={shown(self.scale)}; expected 'linear' or 'log'.")
        if self.bounds is None:
            raise ValueError(
                "bounds=None; expected (low, high) from public knowledge, because bounds taken from the records leak."
            )
        low, high = self._limits(X.shape[1])
        warn_of_two_numbers(self.bounds, X.shape[1], parameter="bounds")
        if sparse.issparse(X) and (self.centre or (low > 0).any() or (high < 0).any()):
            raise ValueError(
                f"centre={self.centre!r} with bounds={shown(self.bounds)} would fill the zeros of a sparse X; expected "
                "centre=False and bounds around 0, or a dense X."
            )

    def _transformed(self, X: Any) -> Any:
        low, high = self._limits(X.shape[1])
        with np.errstate(all="ignore"):  # a warning would reveal a value
            if not sparse.issparse(X):
                return self._scaled(X, low, high)
            columns = X.indices if X.format == "csr" else np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
            return type(X)((self._scaled(X.data, low[columns], high[columns]), X.indices, X.indptr), shape=X.shape)

    def _bounded(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return bounded(X, low, high, self.scale, self.fill)

    def _scaled(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        if self.centre:
            return between(*self._bounded(X, low, high))
        scaled, low, high = self._bounded(X, low, high)
        scaled /= np.maximum(np.abs(low), np.abs(high))
        return np.clip(scaled, -1, 1, out=scaled)  # against rounding

    def _limits(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        names = column_labels(getattr(self, "feature_names_in_", None), n_features)
        pairs = check_feature_bounds(self.bounds, n_features, names, parameter="bounds")
        low, high = np.broadcast_to(np.asarray(pairs), (n_features, 2)).T
        return low, high


def bounded(
    X: np.ndarray, low: np.ndarray, high: np.ndarray, scale: str, fill: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return clipped and filled numbers and their bounds, or the logarithms of all three."""
    found = np.clip(X, low, high)
    if fill is not None:
        np.copyto(found, np.clip(fill, low, high), where=np.isnan(found))
    return (signed_log(found), signed_log(low), signed_log(high)) if scale == "log" else (found, low, high)


def between(found: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return where numbers lie between their bounds, from -1 to 1; their array is written over."""
    found -= (low + high) / 2
    found /= (high - low) / 2
    return np.clip(found, -1, 1, out=found)  # against rounding


class BoundedNumbers(BoundedScaler):
    """Clip numbers to public bounds, and leave them in their own units, or in those of the logarithm."""

    def _scaled(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return self._bounded(X, low, high)[0]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns; logarithms say so.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        names = super().get_feature_names_out(input_features)
        return np.array([f"log1p({name})" for name in names], dtype=object) if self.scale == "log" else names


class RowNormClipper(StatelessTransformer):
    """Scale down rows that are longer than a public bound; the other rows do not change.

    A private estimator with ``data_norm=max_norm`` clips its training rows itself. If a pipeline clips them before, prediction
    treats rows in the same way as the fit did.

    Parameters
    ----------
    max_norm : float, default=1.0
        Largest Euclidean length of a row, in the units of X.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, where X had them.

    Raises
    ------
    TypeError, ValueError
        From ``fit`` and ``transform``, if ``max_norm`` is not a positive number.

    See Also
    --------
    BoundedScaler : Scale columns by public bounds.

    Notes
    -----
    **Privacy.** Each row is mapped separately with a public number, so the mapping costs no privacy. A row whose squared norm
    overflows float64 becomes a row of zeros.

    Examples
    --------
    >>> from skdp.preprocessing import RowNormClipper
    >>> RowNormClipper(1.0).fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """

    def __init__(self, max_norm: float = 1.0) -> None:
        self.max_norm = max_norm

    def _check(self, X: Any) -> None:
        check_scale("max_norm", self.max_norm)

    def _transformed(self, X: Any) -> Any:
        # in float64: in float32 a bound or a square may be infinite, and the row nan
        norms = row_norms(X.astype(np.float64)) if sparse.issparse(X) else np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
        factors = (self.max_norm / np.maximum(norms, self.max_norm)).astype(X.dtype)
        return sparse.diags_array(factors, format="csr") @ X if sparse.issparse(X) else X * factors[:, None]


def signed_log(x: np.ndarray) -> np.ndarray:
    """Return ``sign(x) * log(1 + abs(x))``.

    Parameters
    ----------
    x : ndarray
        Numbers.

    Returns
    -------
    ndarray
        Of the same shape.
    """
    return np.copysign(np.log1p(np.abs(x)), x)

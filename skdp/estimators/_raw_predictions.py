"""Compute raw predictions that are finite for every finite row."""

from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.data.exact_products import FEW, products

# Largest absolute raw prediction: a quarter of the largest float, so that sums and differences of two of them are finite.
LARGEST_RAW = float(np.finfo(np.float64).max) / 4


def raw_predictions(rows: Any, coef: np.ndarray, intercept: Any, *, alone: bool = False) -> np.ndarray:
    """Return ``rows @ coef + intercept``, which is finite for every finite row, and raises no warning.

    Products that overflow are computed once more, with rows and coefficients divided by powers of two. So the result has the sign
    of the exact sum, also where infinite terms would cancel to nan. It is clipped to a range that float64 can represent. Whether
    and how a row is computed once more depends on this row alone.

    Parameters
    ----------
    rows : ndarray, CSR or CSC of shape (m, d)
        Finite numbers.
    coef : ndarray of shape (d,) or (d, k)
        Finite coefficients.
    intercept : float or ndarray of shape (k,)
        Finite intercepts.
    alone : bool, default=False
        Compute each row as if it were alone, for a matrix of coefficients: BLAS rounds a row by its place, and the number of rows
        of other persons, which a later fit must not see, decides the places.

    Returns
    -------
    ndarray of shape (m,) or (m, k)
        Raw predictions.
    """
    with np.errstate(all="ignore"):
        found = np.asarray((_products_alone(rows, coef) if alone else rows @ coef) + intercept)
        finite = np.isfinite(found)
        lost = np.flatnonzero(~(finite.all(axis=1) if found.ndim > 1 else finite))
        if lost.size:
            again = _scaled_products(rows[lost], coef.reshape(len(coef), -1)).reshape(-1, *found.shape[1:]) + intercept
            found[lost] = np.where(finite[lost], found[lost], again)
        return np.clip(found, -LARGEST_RAW, LARGEST_RAW, out=found)


def _products_alone(rows: Any, coef: np.ndarray) -> np.ndarray:
    """Return ``rows @ coef``, a few columns at a time, for which `products` rounds nothing to a grid."""
    if sparse.issparse(rows):
        return np.asarray(rows @ coef)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    return np.hstack([products(rows, coef[:, start : start + FEW]) for start in range(0, coef.shape[1], FEW)])


def _scaled_products(rows: Any, coef: np.ndarray) -> np.ndarray:
    """Return ``rows @ coef`` of a matrix of coefficients, where only a product that is too large is infinite."""
    rows = rows.astype(np.float64)
    sizes = abs(rows).max(axis=1)
    of_rows = _exponents(sizes.toarray() if sparse.issparse(sizes) else sizes).reshape(-1, 1)
    of_coef = _exponents(np.abs(coef).max(axis=0, initial=0.0))
    factors = np.ldexp(1.0, -of_rows)
    smaller = sparse.diags_array(factors[:, 0], format="csr") @ rows if sparse.issparse(rows) else rows * factors
    return np.asarray(np.ldexp(_products_alone(smaller, coef * np.ldexp(1.0, -of_coef)), of_rows + of_coef))


def _exponents(sizes: np.ndarray) -> np.ndarray:
    """Return binary exponents above numbers, at least those whose power of two has a finite inverse."""
    return np.maximum(np.frexp(sizes)[1], np.finfo(np.float64).minexp)

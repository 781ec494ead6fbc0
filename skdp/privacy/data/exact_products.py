"""Products of rows with coefficients that do not depend on where in a sample a row stands."""

import math
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["products"]

FEW = 4  # columns of coefficients up to which a loop of NumPy's is as fast as rounding to a grid and BLAS
BITS = 52  # of a sum of products of whole numbers that float64 holds exactly, one to spare
EXTREME = 480  # largest exponent of a unit, up or down


def products(rows: Any, coef: np.ndarray) -> np.ndarray:
    r"""Return ``rows @ coef``, each row as if it were alone.

    BLAS may round a row by its place, and in a Poisson sample that depends on which other records were drawn; the accounting
    compares samples with and without one record, in which all others must contribute the same, to the last bit. Here the entries
    of every row, and of every column of the coefficients, are rounded to multiples of a power of two, so that all partial sums
    are exact and their order does not matter.

    *Proof.* With d entries and :math:`b = (52 - \lceil \log_2 d \rceil) / 2` bits, rounded down, entries are whole numbers of at
    most :math:`2^b` units, so every partial sum of products is a whole number of at most :math:`d\, 2^{2 b} \le 2^{52}` units,
    which float64 holds. The unit follows from the largest absolute value alone, which no order changes. It is at least 2**-480,
    so that products of units are normal numbers, and at most 2**480, so that nothing overflows: rows or columns beyond are NaN.

    Parameters
    ----------
    rows : ndarray or CSR of shape (m, d)
        Finite float64; a CSR row is summed entry by entry, whatever the others are, and not rounded.
    coef : ndarray of shape (d, k)
        Earlier releases, or products of them with the rows.

    Returns
    -------
    ndarray of shape (m, k)
        With a relative precision of about 2**-b of the largest entries, 21 bits for 784 entries; exact up to float64 for at most
        four columns.

    Raises
    ------
    ValueError
        If ``coef`` is no matrix.
    """
    if np.ndim(coef) != 2:
        raise ValueError(
            f"products takes coefficients of two dimensions, not {np.ndim(coef)}; expected coef[:, None] for a vector."
        )
    if sparse.issparse(rows):
        return rows @ coef
    if coef.shape[1] <= FEW:
        doubled = np.repeat(rows, 2, axis=0) if rows.shape[0] == 1 else rows  # einsum sums one wide row in another order
        return np.einsum("ij,kj->ik", doubled, np.ascontiguousarray(coef.T))[: rows.shape[0]]
    bits = (BITS - math.ceil(math.log2(max(rows.shape[1], 1)))) // 2
    return _on_grid(rows, 1, bits) @ _on_grid(coef, 0, bits)


def _on_grid(matrix: np.ndarray, axis: int, bits: int) -> np.ndarray:
    """Entries rounded to multiples of a power of two, 2**-bits of the next one above the largest along the axis."""
    largest = np.maximum(matrix.max(axis=axis, keepdims=True, initial=0.0), -matrix.min(axis=axis, keepdims=True, initial=0.0))
    exponents = np.clip(np.frexp(largest)[1] - bits, -EXTREME, EXTREME)
    rounded = matrix * np.ldexp(1.0, -exponents)
    np.rint(rounded, out=rounded)
    rounded *= np.where(largest <= 2.0 ** (EXTREME + bits), np.ldexp(1.0, exponents), np.nan)
    return rounded

"""Multiply rows by coefficients such that a product does not depend on the position of its row in a sample."""

import math
from typing import Any

import numpy as np
from scipy import sparse

# Number of columns of coefficients up to which einsum sums each row and nothing is rounded to a grid. A choice for speed: up to
# about this many columns einsum is as fast as rounding and BLAS.
FEW = 4

# Number of bits of a sum of products of whole numbers. float64 holds 53 bits exactly; one is spare. More bits would make sums
# inexact, fewer would round entries more.
BITS = 52

# Largest absolute value of the binary exponent of a unit. A choice: products of two units stay normal numbers and finite.
EXTREME = 480


def products(rows: Any, coef: np.ndarray) -> np.ndarray:
    r"""Return ``rows @ coef``, where each product is computed as if its row were alone.

    BLAS may round a product according to the position of its row. In a Poisson sample the position depends on which other records
    were drawn. The accounting compares samples with and without one record, in which all other records must contribute the same
    to the last bit. Here the entries of every row, and of every column of the coefficients, are rounded to multiples of a power
    of two. So all partial sums are exact and their order does not matter.

    *Proof.* With d entries and :math:`b = (52 - \lceil \log_2 d \rceil) / 2` bits, rounded down, entries are whole numbers of at
    most :math:`2^b` units. So every partial sum of products is a whole number of at most :math:`d\, 2^{2 b} \le 2^{52}` units,
    which float64 represents exactly. The unit depends only on the largest absolute value, which no order changes. It is at least
    2**-480, so that products of units are normal numbers, and at most 2**480, so that nothing overflows: rows or columns with
    larger entries become NaN.

    Parameters
    ----------
    rows : ndarray or CSR of shape (m, d)
        Finite float64 rows. A CSR row is summed entry by entry, independently of the other rows, and is not rounded.
    coef : ndarray of shape (d, k)
        Earlier releases, or products of them with the rows.

    Returns
    -------
    ndarray of shape (m, k)
        Products with a precision of about 2**-b relative to the largest entries (21 bits for 784 entries). With at most four
        columns nothing is rounded but by float64.

    Raises
    ------
    ValueError
        If ``coef`` is not a matrix.
    """
    if np.ndim(coef) != 2:
        raise ValueError(f"The coefficients have {np.ndim(coef)} dimensions; expected 2, such as coef[:, None] for a vector.")
    if sparse.issparse(rows):
        return rows @ coef
    if coef.shape[1] <= FEW:
        doubled = np.repeat(rows, 2, axis=0) if rows.shape[0] == 1 else rows  # einsum sums a single wide row in another order
        return np.einsum("ij,kj->ik", doubled, np.ascontiguousarray(coef.T))[: rows.shape[0]]
    # Rows and coefficients get equally many bits, as far as d products of them add up to at most 52 bits.
    bits = (BITS - math.ceil(math.log2(max(rows.shape[1], 1)))) // 2
    return _on_grid(rows, 1, bits) @ _on_grid(coef, 0, bits)


def _on_grid(matrix: np.ndarray, axis: int, bits: int) -> np.ndarray:
    """Round entries to multiples of 2**-bits times the next power of two above the largest entry along the axis."""
    largest = np.maximum(matrix.max(axis=axis, keepdims=True, initial=0.0), -matrix.min(axis=axis, keepdims=True, initial=0.0))
    # frexp: 2**(e - 1) <= largest < 2**e, so entries are below 2**bits units of 2**(e - bits).
    exponents = np.clip(np.frexp(largest)[1] - bits, -EXTREME, EXTREME)
    rounded = matrix * np.ldexp(1.0, -exponents)
    np.rint(rounded, out=rounded)
    rounded *= np.where(largest <= 2.0 ** (EXTREME + bits), np.ldexp(1.0, exponents), np.nan)
    return rounded

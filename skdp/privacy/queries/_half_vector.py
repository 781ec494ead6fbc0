"""Convert symmetric matrices to vectors of the same norm, and back."""

import math

import numpy as np


def square(entries: np.ndarray) -> np.ndarray:
    """Return the square matrix with these entries, row by row; a view."""
    return entries.reshape(math.isqrt(entries.size), -1)


def half_vector_size(order: int) -> int:
    """Return the number of entries on and above the diagonal of a matrix of this order."""
    return order * (order + 1) // 2


def half_vector(matrix: np.ndarray) -> np.ndarray:
    """Return the entries on the diagonal and, times sqrt(2), the entries above it.

    The map is an isometry: the Euclidean norm of the result is the Frobenius norm of the matrix. Equal noise on its entries is
    noise on the matrix whose law does not change under rotations, with half the variance off the diagonal.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        Symmetric matrix; entries below the diagonal are not read.

    Returns
    -------
    ndarray of shape (d * (d + 1) / 2,)
        The half-vector, row by row.
    """
    rows, columns = np.triu_indices(matrix.shape[0])
    return matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))


def symmetric(half: np.ndarray, order: int) -> np.ndarray:
    """Return the symmetric matrix of a half-vector, the inverse of `half_vector`.

    Parameters
    ----------
    half : ndarray of shape (d * (d + 1) / 2,)
        Half-vector from `half_vector`.
    order : int
        The number d.

    Returns
    -------
    ndarray of shape (d, d)
        Exactly symmetric matrix.
    """
    rows, columns = np.triu_indices(order)
    matrix = np.zeros((order, order))
    matrix[rows, columns] = matrix[columns, rows] = half * np.where(rows == columns, 1.0, math.sqrt(0.5))
    return matrix

"""Gradients of many records as products: norms, clipped sums and differences of them without a matrix per record."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.data.kernels import SHORTEST
from skdp.privacy.data.storage import row_squares
from skdp.privacy.errors import PrivacyAccountingError

__all__ = ["CANCELLED", "Factors", "clipped_sum", "differences", "lengths", "n_entries"]

CANCELLED = 2.0**-10  # terms of a difference may be this much longer than it before the clip takes them for longer than they are


@dataclass(frozen=True)
class Factors:
    r"""A part of every record's gradient: the matrix :math:`l_i (r_i, c)^\top`.

    A dense layer with weights and biases has such a gradient, l being the derivative in its outputs, r its inputs and c = 1; a
    vector is the case of r of one entry, 1, or of l of one entry.

    Parameters
    ----------
    left : ndarray of shape (m, k)
        l, one row per record.
    right : ndarray or CSR of shape (m, p)
        r.
    constant : float, default=0.0
        c, which r is extended by where it is not 0.
    """

    left: np.ndarray
    right: Any
    constant: float = 0.0

    @property
    def size(self) -> int:
        """Number of entries, ``k p``, and k more with a constant."""
        return self.left.shape[1] * (self.right.shape[1] + bool(self.constant))

    def total(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted sum over the records: the matrix without the constant's column, in C order, then that column."""
        left = self.left * weights[:, None]
        matrix = np.asarray(left.T @ self.right).ravel()
        return np.concatenate([matrix, self.constant * left.sum(axis=0)]) if self.constant else matrix


def n_entries(parts: Sequence[Factors]) -> int:
    """Return the number of entries of a gradient."""
    return sum(part.size for part in parts)


def lengths(parts: Sequence[Factors]) -> np.ndarray:
    r"""Return the norm of every record's gradient, :math:`\sqrt{\sum \|l_i\|^2 (\|r_i\|^2 + c^2)}` over its parts.

    Parameters
    ----------
    parts : sequence of Factors
        At least one.

    Returns
    -------
    ndarray of shape (m,)
        Never below the norm but for rounding; infinite or NaN where a square overflows.
    """
    return np.sqrt(_added([_length(part.left) ** 2 * (_length(part.right) ** 2 + part.constant**2) for part in parts]))


def clipped_sum(
    parts: Sequence[Sequence[Factors]], norms: np.ndarray, present: np.ndarray | None, clip_norm: float
) -> np.ndarray:
    """Return the sum of the gradients, each scaled down until its norm is at most the clip norm, over the clip norm.

    Parameters
    ----------
    parts : sequence of sequences of Factors
        One after the other; what is in one sequence is added, the first being the longest.
    norms : ndarray of shape (m,)
        Bounds on the norms. A record for which it is not finite contributes nothing.
    present : ndarray of shape (m,) or None
        0 for a null record.
    clip_norm : float
        Below 2**-480 it counts as that much in the scale, as norms do: products of shorter factors have a norm of 0.

    Returns
    -------
    ndarray of shape (n_entries,)
        A sum of vectors of norm at most 1.
    """
    known = np.isfinite(norms)
    if not known.all():
        parts = [[Factors(part.left[known], part.right[known], part.constant) for part in added] for added in parts]
        norms, present = norms[known], None if present is None else present[known]
    weights = 1 / np.maximum(norms, max(clip_norm, SHORTEST))
    if present is not None:
        weights *= present
    totals = []
    for added in parts:
        total = added[0].total(weights)
        for part in added[1:]:
            total[: part.size] += part.total(weights)
        totals.append(total)
    return np.concatenate(totals)


def differences(here: Sequence[Factors], there: Sequence[Factors]) -> tuple[tuple[tuple[Factors, ...], ...], np.ndarray]:
    r"""Return the differences of gradients of the same records at two points, and bounds on their norms.

    A part :math:`l r^\top - l' r'^\top = (l - l') r^\top + l' (r - r')^\top` becomes two, so that nearly equal gradients leave
    short terms and not a small difference of long ones. Where r is the same array at both points, the second is none. The squared
    norm of the part, :math:`\|a\|^2 \|r\|^2 + \|l'\|^2 \|b\|^2 + 2 (a^\top l') (r^\top b)` with :math:`a = l - l'` and
    :math:`b = r - r'`, gets an allowance for the digits that its last term cancels, so the bound is never below the true norm,
    and above it by at most ``CANCELLED`` times the sum of the lengths of the two terms.

    Parameters
    ----------
    here, there : sequence of Factors
        Of the same shapes and constants; r may be sparse where it is the same object.

    Returns
    -------
    parts : tuple of tuples of Factors
        One or two to add for each.
    norms : ndarray of shape (m,)
        Bounds.

    Raises
    ------
    PrivacyAccountingError
        If shapes or constants differ.
    """
    parts: list[tuple[Factors, ...]] = []
    squares = []
    for one, other in zip(here, there, strict=True):
        if (one.left.shape, one.right.shape, one.constant) != (other.left.shape, other.right.shape, other.constant):
            raise PrivacyAccountingError("The factors of gradients at two points differ in shape or constant.")
        left = one.left - other.left
        first = _length(left) * np.hypot(_length(one.right), one.constant)
        if one.right is other.right:
            parts.append((Factors(left, one.right, one.constant),))
            squares.append(first**2)
            continue
        right = one.right - other.right
        second = _length(other.left) * _length(right)
        cross = 2 * _inner(left, other.left) * _inner(one.right, right)
        cross[np.isinf(cross)] = np.inf  # overflow, whatever its sign: the norm is not known
        whole = np.maximum(first**2 + second**2 + cross, 0.0) + (CANCELLED * (first + second)) ** 2
        parts.append((Factors(left, one.right, one.constant), Factors(other.left, right)))
        squares.append(whole)
    return tuple(parts), np.sqrt(_added(squares))


def _added(squares: Sequence[np.ndarray]) -> np.ndarray:
    """Sum over the parts, one after the other: NumPy adds many of one record alone in another order."""
    return reduce(np.add, squares)


def _length(matrix: Any) -> np.ndarray:
    """Norms of rows; short ones, whose squares lose their digits, count as 2**-480."""
    squares = row_squares(matrix) if sparse.issparse(matrix) else _inner(matrix, matrix)
    return np.maximum(np.sqrt(squares), SHORTEST)


def _inner(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Inner products of rows with rows."""
    if len(one) == 1:  # a wide one alone is summed in another order
        return _inner(np.repeat(one, 2, axis=0), np.repeat(other, 2, axis=0))[:1]
    return np.asarray(np.einsum("ij,ij->i", one, other))

"""Compute norms, clipped sums and differences of per-record gradients in factored form, without a matrix per record."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.data.kernels import SHORTEST
from skdp.privacy.data.storage import row_squares
from skdp.privacy.errors import PrivacyAccountingError

# Share of the length of the two terms of a difference by which the bound on its norm is raised (in squares), for the digits that
# cancel. A choice. If the terms are more than 1 / CANCELLED times as long as the difference, the allowance exceeds the norm and
# the clip shrinks the difference more than needed. A smaller share would need more correct digits.
CANCELLED = 2.0**-10


@dataclass(frozen=True)
class Factors:
    r"""Hold a part of every record's gradient as two factors of the matrix :math:`l_i (r_i, c)^\top`.

    A dense layer with weights and biases has such a gradient: l is the derivative in its outputs, r its inputs, and c = 1. A
    vector is the case where r has the single entry 1, or where l has one entry.

    Parameters
    ----------
    left : ndarray of shape (m, k)
        l, one row per record.
    right : ndarray or CSR of shape (m, p)
        r, one row per record.
    constant : float, default=0.0
        c, which is appended to r unless it is 0.
    """

    left: np.ndarray
    right: Any
    constant: float = 0.0

    @property
    def size(self) -> int:
        """Number of entries: ``k p``, or ``k (p + 1)`` with a constant."""
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
        Never below the norm, up to rounding; infinite or NaN where a square overflows.
    """
    return np.sqrt(_added([_length(part.left) ** 2 * (_length(part.right) ** 2 + part.constant**2) for part in parts]))


def clipped_sum(
    parts: Sequence[Sequence[Factors]], norms: np.ndarray, present: np.ndarray | None, clip_norm: float
) -> np.ndarray:
    """Return the sum of the gradients, each scaled down to a norm of at most the clip norm, divided by the clip norm.

    Parameters
    ----------
    parts : sequence of sequences of Factors
        Parts of the gradient, in order. The factors in one inner sequence are added; the first has the most entries.
    norms : ndarray of shape (m,)
        Bounds on the norms of the gradients. A record whose bound is not finite contributes nothing.
    present : ndarray of shape (m,) or None
        0 for a null record, 1 for others.
    clip_norm : float
        Bound on the norm of one gradient. Below 2**-480 it counts as 2**-480 in the scale, as norms do, because products of
        shorter factors have a norm of 0.

    Returns
    -------
    ndarray of shape (n_entries,)
        Sum of vectors of norm at most 1.
    """
    known = np.isfinite(norms)
    if not known.all():
        parts = [[Factors(part.left[known], part.right[known], part.constant) for part in added] for added in parts]
        norms, present = norms[known], None if present is None else present[known]
    # 1 / max(N, C): the caller multiplies the sum by C.
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

    A part :math:`l r^\top - l' r'^\top = (l - l') r^\top + l' (r - r')^\top` becomes two terms. So nearly equal gradients give
    short terms and not a small difference of long ones. If r is the same array at both points, there is no second term. The
    squared norm of the part is :math:`\|a\|^2 \|r\|^2 + \|l'\|^2 \|b\|^2 + 2 (a^\top l') (r^\top b)` with :math:`a = l - l'` and
    :math:`b = r - r'`. It gets an allowance for the digits that its last term cancels. So the bound is never below the true norm,
    and above it by at most ``CANCELLED`` times the sum of the lengths of the two terms.

    Parameters
    ----------
    here, there : sequence of Factors
        Parts of the gradients at both points, with the same shapes and constants; r may be sparse if it is the same object.

    Returns
    -------
    parts : tuple of tuples of Factors
        For each part, the one or two terms to add.
    norms : ndarray of shape (m,)
        Bounds on the norms of the differences.

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
        # Lengths of the two terms (l - l') r' and l' (r - r')'; the squared norm of the sum is |first|^2 + |second|^2 + 2 <first,
        # second>.
        first = _length(left) * np.hypot(_length(one.right), one.constant)
        if one.right is other.right:
            parts.append((Factors(left, one.right, one.constant),))
            squares.append(first**2)
            continue
        right = one.right - other.right
        second = _length(other.left) * _length(right)
        cross = 2 * _inner(left, other.left) * _inner(one.right, right)
        cross[np.isinf(cross)] = np.inf  # an overflow of either sign: the norm is unknown
        whole = np.maximum(first**2 + second**2 + cross, 0.0) + (CANCELLED * (first + second)) ** 2
        parts.append((Factors(left, one.right, one.constant), Factors(other.left, right)))
        squares.append(whole)
    return tuple(parts), np.sqrt(_added(squares))


def _added(squares: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum over the parts in a fixed order; NumPy's sum would use another order for a single record."""
    return reduce(np.add, squares)


def _length(matrix: Any) -> np.ndarray:
    """Return the norms of rows; norms below 2**-480, whose squares lose their digits, count as 2**-480."""
    squares = row_squares(matrix) if sparse.issparse(matrix) else _inner(matrix, matrix)
    return np.maximum(np.sqrt(squares), SHORTEST)


def _inner(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the inner products of rows with rows."""
    if len(one) == 1:  # einsum sums a single wide row in another order
        return _inner(np.repeat(one, 2, axis=0), np.repeat(other, 2, axis=0))[:1]
    return np.asarray(np.einsum("ij,ij->i", one, other))

"""Define the per-block data passed to kernels and saddle problems, and the clip on which every proof rests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

Array = TypeVar("Array", np.ndarray, np.ndarray | None)

# Shortest norm, in the units of the vector; a shorter vector is treated as if it had this norm. A choice whose square is a normal
# number, so that all norms above it are accurate to rounding.
SHORTEST = 2.0**-480


@dataclass(frozen=True)
class Records:
    """Hold what a kernel reads of a block of records in addition to their raw predictions.

    Parameters
    ----------
    targets : ndarray of shape (m,) or (m, n_targets)
        Class numbers, or numbers.
    inverse_norms : ndarray of shape (m,)
        One over the norm of each row after clipping and with the intercept's constant; 0 for a row of norm 0. Norms below
        2**-480, whose squares lose their digits, count as 2**-480.
    weights : ndarray of shape (m,) or None
        Factor of each record's loss, before the clip.
    present : ndarray of shape (m,) or None, default=None
        Sample weight of each record, in [0, 1], by which its clipped term is multiplied; 0 for a null record. None if all are 1.
    amounts : ndarray of shape (m,) or None, default=None
        Targets as they were before a link mapped them; None where none did.
    exposure : ndarray of shape (m,) or None, default=None
        Exposure of each record, in [0, 1]; None if records have none.
    """

    targets: np.ndarray
    inverse_norms: np.ndarray
    weights: np.ndarray | None
    present: np.ndarray | None = None
    amounts: np.ndarray | None = None
    exposure: np.ndarray | None = None


@dataclass(frozen=True)
class Batch:
    """Hold whole rows of some records for a saddle problem, which must not change them.

    Parameters
    ----------
    rows : ndarray or CSR of shape (m, n_features)
        Rows clipped to the data norm, float64.
    targets : ndarray of shape (m,)
        Class numbers, or numbers.
    present : ndarray of shape (m,) or None, default=None
        Weight of each record in [0, 1], by which its clipped term is multiplied; 0 for a null record. None if all are 1.
    groups : ndarray of shape (m,) or None, default=None
        Number of each record's public group; None if the estimator has no groups.
    """

    rows: Any
    targets: np.ndarray
    present: np.ndarray | None = None
    groups: np.ndarray | None = field(default=None, kw_only=True)


def fixed(array: Array) -> Array:
    """Return a read-only view of an array, or None for None.

    Parameters
    ----------
    array : ndarray or None
        Array that its reader must not change.

    Returns
    -------
    ndarray or None
        A view of the same memory.
    """
    if array is None:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def part_of(array: Array, part: Any) -> Array:
    """Return the entries of some records; None for None."""
    return array if array is None else array[part]


def clipped_targets(targets: np.ndarray) -> np.ndarray:
    """Return targets clipped to [-1, 1], or vectors of several targets scaled down to norm 1.

    Parameters
    ----------
    targets : ndarray of shape (m,) or (m, n_targets)
        Numbers; none is NaN.

    Returns
    -------
    ndarray of the same shape
        A new array.
    """
    if targets.ndim == 1:
        return np.clip(targets, -1.0, 1.0)
    return targets / np.maximum(np.sqrt(np.einsum("ij,ij->i", targets, targets)), 1.0)[:, None]


Kernel = Callable[[np.ndarray, Records], np.ndarray]


def weighted(terms: np.ndarray, present: np.ndarray | None) -> np.ndarray:
    """Multiply the clipped terms of records in place by their weights, and return them.

    A weight before the clip would not bound a term by its weight: k records of weight 1 / k could add k clip norms.

    Parameters
    ----------
    terms : ndarray of shape (m, k)
        Finite terms; overwritten.
    present : ndarray of shape (m,) or None
        Weights in [0, 1]; None if all are 1.

    Returns
    -------
    ndarray of shape (m, k)
        ``terms``.
    """
    if present is not None:
        terms *= present[:, None]
    return terms


def clip_residuals(residuals: np.ndarray, inverse_norms: np.ndarray, clip_norm: float) -> np.ndarray:
    """Shrink residuals in place so that every record's gradient ``x_i r_i^T`` has norm at most ``clip_norm``.

    The norm of that rank-one matrix is ``||x_i|| ||r_i||``. The result is finite for every input: a NaN becomes 0, and a record
    of norm 0, or with residuals whose square overflows, contributes nothing.

    Parameters
    ----------
    residuals : ndarray of shape (m, n_outputs)
        Derivatives of the loss in the raw predictions; overwritten.
    inverse_norms : ndarray of shape (m,)
        At most one over the norm of each record, finite.
    clip_norm : float
        Bound on the norm of one record's gradient.

    Returns
    -------
    ndarray of shape (m, n_outputs)
        ``residuals``.
    """
    limits = clip_norm * inverse_norms
    if residuals.shape[1] == 1:
        column = residuals[:, 0]
        np.minimum(column, limits, out=column)
        np.maximum(column, np.negative(limits, out=limits), out=column)
    else:
        lengths = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
        residuals *= np.minimum(1.0, limits / np.maximum(lengths, SHORTEST))[:, None]
    np.copyto(residuals, 0.0, where=np.isnan(residuals))
    return residuals

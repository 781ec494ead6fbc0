"""Some columns of the training table at a time: raw predictions kept from step to step, and sums over a block of coordinates."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.blocks import Blocks, Part, row_squares, scaled

__all__ = ["Margins", "block_products", "column_products"]

WIDEST = 64  # columns of a block of rows that are copied at a time: 2**18 cells
RENEWAL = 10  # the raw predictions are worked out anew after so many times as many columns as there are
SHRINKING = 2.0**20  # or where the coefficients have become so many times smaller, and the rounding of old ones would stay

Residuals = Callable[[Part, np.ndarray], np.ndarray]  # from rows and their squared norms within the block, intercept left out


class Margins:
    """Raw predictions of the clipped rows at one point after another; moving to a point reads the columns that changed.

    A record's raw prediction depends on the record and on the points asked for before, in an order and by rules that
    nothing but these points decides.

    Parameters
    ----------
    blocks : Blocks
        The whole table, dense or CSC.
    scales : ndarray of shape (n_samples,)
        Factor of each row.
    constant : float
        Of the intercept; 0 where there is none.
    n_outputs : int
        Raw predictions per record.
    """

    def __init__(self, blocks: Blocks, scales: np.ndarray, constant: float, n_outputs: int) -> None:
        self._blocks, self._scales, self._constant = blocks, scales, constant
        self._coef: np.ndarray | None = None
        self.n_outputs = n_outputs
        self._raw = np.zeros((blocks.n_samples, n_outputs))
        self._n_read, self._largest = 0, 0.0

    def at(self, coef: np.ndarray) -> np.ndarray:
        """Return the raw predictions at a point.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, n_outputs)
            The point; the last row belongs to the intercept where there is one.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Valid until the next point is asked for.
        """
        last, self._coef = self._coef, None  # none, should this be interrupted
        size = float(np.abs(coef).max(initial=0.0))
        if last is None or self._n_read > RENEWAL * coef.shape[0] or self._largest > SHRINKING * size:
            self._raw[:] = 0.0
            last, self._n_read, self._largest = np.zeros(coef.shape), 0, 0.0
        step = coef - last
        changed = np.flatnonzero(step.any(axis=1))
        self._add(changed[changed < self._blocks.n_features], step)
        if self._constant and changed.size and changed[-1] == self._blocks.n_features:
            self._raw += self._constant * step[-1]
        self._n_read += changed.size
        self._largest, self._coef = max(self._largest, size), coef.copy()
        return self._raw

    def _add(self, changed: np.ndarray, step: np.ndarray) -> None:
        if self._blocks.by_column:
            for place, chunk in chosen_columns(self._blocks, changed):
                self._raw += scaled(chunk, self._scales) @ step[changed[place]]
        elif changed.size:
            for part in self._blocks.parts():
                for group in groups_of(changed):
                    self._raw[part] += entries(self._blocks, part, group, self._scales[part]) @ step[group]


def block_products(blocks: Blocks, scales: np.ndarray, features: np.ndarray, residuals_of: Residuals) -> Iterator[Any]:
    """Yield for each block of rows ``sum_i x_i r_i^T`` over some features of the clipped rows, and the residuals.

    Parameters
    ----------
    blocks : Blocks
        A table or a sample of its rows, not by columns.
    scales : ndarray of shape (n_samples,)
        Factor of each row.
    features : ndarray of int
        Distinct columns; may be empty.
    residuals_of : callable
        Maps rows and their squared norms, of these features alone, to residuals (rows, k).

    Yields
    ------
    tuple of ndarray
        Shapes (features.size, k) and (rows, k).
    """
    groups = groups_of(features)
    for part in blocks.parts():
        factors = scales[part]
        held = [entries(blocks, part, group, factors) for group in groups[:1]]
        squares = np.zeros(factors.size)
        for number, group in enumerate(groups):
            squares += row_squares(held[0] if number == 0 else entries(blocks, part, group, factors))
        residuals = residuals_of(part, squares)
        terms = [
            (held[0] if number == 0 else entries(blocks, part, group, factors)).T @ residuals
            for number, group in enumerate(groups)
        ]
        yield np.concatenate([*terms, residuals[:0]]), residuals


def column_products(blocks: Blocks, scales: np.ndarray, features: np.ndarray, residuals_of: Residuals) -> Iterator[Any]:
    """Yield the same as `block_products` for a table by columns, all rows at once."""
    squares = np.zeros(blocks.n_samples)
    for _, chunk in chosen_columns(blocks, features):
        squares += row_squares(scaled(chunk, scales))
    residuals = residuals_of(slice(0, blocks.n_samples), squares)
    terms = [scaled(chunk, scales).T @ residuals for _, chunk in chosen_columns(blocks, features)]
    yield np.concatenate([*terms, residuals[:0]]), residuals


def groups_of(columns: np.ndarray) -> list[np.ndarray]:
    """Return columns in groups that are copied at a time."""
    return [columns[start : start + WIDEST] for start in range(0, columns.size, WIDEST)]


def entries(blocks: Blocks, part: Part, columns: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return some columns of some clipped rows, shape (rows, columns.size), dense."""
    if sparse.issparse(blocks.table):
        return np.asarray(blocks.rows(part)[:, columns].toarray()) * scales[:, None]
    chosen = np.empty((columns.size, scales.size))
    for row, column in zip(chosen, columns, strict=True):
        np.multiply(blocks.table[part, column], scales, out=row)
    return chosen.T


def chosen_columns(blocks: Blocks, columns: np.ndarray) -> Iterator[tuple[slice, Any]]:
    """Yield float64 columns of a table by columns, a few at a time, and their places among those chosen."""
    width = max(1, WIDEST * 4096 // blocks.n_samples)
    for start in range(0, columns.size, width):
        place = slice(start, min(start + width, columns.size))
        yield place, sparse.csc_matrix(blocks.table[:, columns[place]].astype(np.float64, copy=False))

"""Columns of the training table: raw predictions kept from point to point, and clipped sums over a block of coordinates."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.data.kernels import SHORTEST, clip_residuals
from skdp.privacy.data.storage import BLOCK, Part, Storage, row_squares, scaled

__all__ = ["ColumnCache", "entries"]

WIDEST = 64  # columns of a block of rows that are copied at a time: 2**18 cells
RENEWAL = 10  # raw predictions are worked out anew after so many times as many columns were read as there are
HELD = 4  # columns of all rows that are kept in memory
SHRINKING = 2.0**20  # or where the coefficients have become so many times smaller, and the rounding of old ones would stay

Slopes = Callable[[np.ndarray, Part], np.ndarray]  # from raw predictions (m, k) of some rows to residuals (m, k), not clipped


class ColumnCache:
    """The clipped rows, column by column, and their raw predictions at one point after another.

    Moving to a point reads the columns of the coefficients that changed. A record's raw prediction depends on the record and on
    the points asked for before, in an order and by rules that nothing but these points decides.

    Parameters
    ----------
    blocks : Storage
        The whole table, dense or CSC.
    scales : ndarray of shape (n_samples,)
        Factor of each row.
    constant : float
        What the intercept appends to each row; 0 where there is none.
    """

    def __init__(self, blocks: Storage, scales: np.ndarray, constant: float) -> None:
        self._blocks, self._scales, self._constant = blocks, scales, constant
        self._coef: np.ndarray | None = None
        self._raw = np.zeros((0, 0))
        self._n_read, self._largest = 0, 0.0
        self._held: np.ndarray | None = None  # the columns of a narrow block, which the next step will most likely change,
        self._space = np.empty((0, 0))  # and their clipped entries

    def raw(self, coef: np.ndarray) -> np.ndarray:
        """Return the raw predictions at a point.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, k)
            The point; the last row belongs to the intercept where there is one.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Not to be changed; valid until the next point is asked for.
        """
        last, self._coef = self._coef, None  # none, should this be interrupted
        held, self._held = self._held, None
        size = float(np.abs(coef).max(initial=0.0))
        if last is None or last.shape != coef.shape or self._n_read > RENEWAL * coef.shape[0] or self._largest > SHRINKING * size:
            self._raw = np.zeros((self._blocks.n_samples, coef.shape[1]))
            last, self._n_read, self._largest = np.zeros(coef.shape), 0, 0.0
        step = coef - last
        changed = np.flatnonzero(step.any(axis=1))
        self._move(changed[changed < self._blocks.n_features], step, held)
        if self._constant and changed.size and changed[-1] == self._blocks.n_features:
            self._raw += self._constant * step[-1]
        self._n_read += changed.size
        self._largest, self._coef = max(self._largest, size), coef.copy()
        return self._raw

    def block_sum(self, coef: np.ndarray, block: np.ndarray, slopes: Slopes, clip_norm: float) -> np.ndarray:
        r"""Return :math:`\sum_i \mathrm{clip}(x_{i,S} r_i^\top)` over a block S of coordinates.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, k)
            Where raw predictions are taken.
        block : ndarray of int of shape (n_block,)
            Ascending coordinates.
        slopes : callable
            Maps raw predictions (m, k) of some rows, and which, to residuals (m, k), freshly allocated, of any size.
        clip_norm : float
            Bound on the Frobenius norm of a term.

        Returns
        -------
        ndarray of shape (n_block, k)
            The sum, accumulated in float64.
        """
        raw, features = self.raw(coef), block[block < self._blocks.n_features]
        constant = self._constant if features.size < block.size else 0.0
        if not self._blocks.by_column:
            return self._sum_of_stretches(raw, features, constant, slopes, clip_norm)
        if block.size == 1 and features.size:
            return self._sum_of_stored(raw, features[0], slopes, clip_norm)
        return self._sum_of_columns(raw, features, constant, slopes, clip_norm)

    def _move(self, changed: np.ndarray, step: np.ndarray, kept: np.ndarray | None) -> None:
        """Add the features' part of a step to the raw predictions."""
        if not changed.size:
            return
        if not self._blocks.by_column:
            held = self._space.T if kept is not None and np.array_equal(kept, changed) else None
            for part in self._stretches(changed.size):
                for group in groups_of(changed):
                    self._raw[part] += times(self._read(part, group) if held is None else held[part], step[group])
        elif changed.size == 1:
            for rows, column in self._stored(changed[0]):
                self._raw[rows] += times(column, step[changed])
        else:
            for group, chunk in self._runs(changed):
                self._raw += chunk @ step[group]

    def _stretches(self, n_columns: int) -> Iterator[slice]:
        """Rows of a dense table that are read at a time: the fewer columns, the more."""
        length = BLOCK * max(1, min(16, WIDEST // max(1, n_columns)))
        n_samples = self._blocks.n_samples
        return (slice(start, min(start + length, n_samples)) for start in range(0, n_samples, length))

    def _sum_of_stretches(
        self, raw: np.ndarray, features: np.ndarray, constant: float, slopes: Slopes, clip_norm: float
    ) -> np.ndarray:
        """The sum over a dense table."""
        narrow, self._held = features.size <= HELD, None
        if narrow and self._space.shape != (features.size, len(raw)):
            self._space = np.empty((features.size, len(raw)))
        total = np.zeros((features.size + (constant > 0), raw.shape[1]))
        for part in self._stretches(features.size):
            residuals = slopes(raw[part].copy(), part)
            if narrow:
                chunk = entries(self._blocks, part, features, self._scales[part], self._space[:, part])
                total += clipped_term(chunk, constant, residuals, clip_norm)
            else:
                total += self._wide_term(part, features, constant, residuals, clip_norm)
        self._held = features if narrow else None
        return total

    def _wide_term(
        self, part: slice, features: np.ndarray, constant: float, residuals: np.ndarray, clip_norm: float
    ) -> np.ndarray:
        groups = groups_of(features)
        if len(groups) == 1:
            return clipped_term(self._read(part, features), constant, residuals, clip_norm)
        squares = np.full(len(residuals), constant**2)
        for group in groups:
            squares += row_squares(self._read(part, group))
        residuals = clip_residuals(residuals, inverse_norms_of(squares), clip_norm)
        return np.concatenate(
            [*(product(self._read(part, group), residuals) for group in groups), intercept_term(constant, residuals)]
        )

    def _read(self, part: slice, columns: np.ndarray) -> np.ndarray:
        """Some columns of some clipped rows of a dense table, shape (m, columns.size)."""
        return entries(self._blocks, part, columns, self._scales[part])

    def _sum_of_stored(self, raw: np.ndarray, column: Any, slopes: Slopes, clip_norm: float) -> np.ndarray:
        """The sum of one column of CSC, over records with an entry in it alone."""
        total = np.zeros((1, raw.shape[1]))
        for rows, chunk in self._stored(column):
            total += clipped_term(chunk, 0.0, slopes(raw[rows], rows), clip_norm)
        return total

    def _sum_of_columns(
        self, raw: np.ndarray, features: np.ndarray, constant: float, slopes: Slopes, clip_norm: float
    ) -> np.ndarray:
        squares = np.full(self._blocks.n_samples, constant**2)
        for _, chunk in self._runs(features):
            squares += row_squares(chunk)
        inverse_norms, residuals = inverse_norms_of(squares), np.empty_like(raw)
        for part in self._blocks.parts():
            residuals[part] = clip_residuals(slopes(raw[part].copy(), part), inverse_norms[part], clip_norm)
        terms = [chunk.T @ residuals for _, chunk in self._runs(features)]
        return np.concatenate([*terms, intercept_term(constant, residuals)])

    def _stored(self, column: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows with an entry in a column of CSC, and these clipped rows' entries, shape (m, 1)."""
        table = self._blocks.table
        for start in range(table.indptr[column], table.indptr[column + 1], BLOCK):
            stop = min(start + BLOCK, table.indptr[column + 1])
            rows, stored = table.indices[start:stop], self._blocks.scaled(table.data[start:stop], column)
            yield rows, np.multiply(stored, self._scales[rows], dtype=np.float64)[:, None]

    def _runs(self, columns: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield some columns of CSC and their clipped entries, by columns, about as many cells as a block of rows has."""
        width = max(1, WIDEST * BLOCK // self._blocks.n_samples)
        for start in range(0, columns.size, width):
            group = columns[start : start + width]
            run = sparse.csc_matrix(self._blocks.table[:, group].astype(np.float64))
            run.data = self._blocks.scaled(run.data, np.repeat(group, np.diff(run.indptr)))
            yield group, scaled(run, self._scales)


def clipped_term(chunk: np.ndarray, constant: float, residuals: np.ndarray, clip_norm: float) -> np.ndarray:
    """Return the sum of the clipped terms of some rows, of which all entries of the block are at hand.

    Parameters
    ----------
    chunk : ndarray of shape (m, n_features)
        Clipped rows.
    constant : float
        The intercept's entry; 0 where it is not in the block.
    residuals : ndarray of shape (m, k)
        Of any size; overwritten.
    clip_norm : float
        Bound on the Frobenius norm of a term.

    Returns
    -------
    ndarray of shape (n_block, k)
        The sum.
    """
    if not constant and chunk.shape[1] == residuals.shape[1] == 1:  # products are clipped themselves, without norms
        products = residuals[:, 0]
        products *= chunk[:, 0]
        total = sum_of(np.clip(products, -clip_norm, clip_norm, out=products))
        if math.isnan(total):
            total = sum_of(np.nan_to_num(products, copy=False))
        return np.array([[total]])
    squares = row_squares(chunk)
    squares += constant**2
    residuals = clip_residuals(residuals, inverse_norms_of(squares), clip_norm)
    return np.concatenate([product(chunk, residuals), intercept_term(constant, residuals)])


def inverse_norms_of(squares: np.ndarray) -> np.ndarray:
    """Return at most one over the square root, in place; for a row of zeros any number will do, as long as it is finite."""
    norms = np.sqrt(squares, out=squares)
    return np.divide(1.0, np.maximum(norms, SHORTEST, out=norms), out=norms)


def intercept_term(constant: float, residuals: np.ndarray) -> np.ndarray:
    """Return the intercept's row of the sum; none where the constant is 0."""
    return constant * np.array([[sum_of(column) for column in residuals.T]]) if constant else residuals[:0]


def product(chunk: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Return ``chunk.T @ residuals``, added up from runs of as many rows as the bound on the rounding of a sum counts."""
    total = chunk[:BLOCK].T @ residuals[:BLOCK]
    for start in range(BLOCK, len(residuals), BLOCK):
        total += chunk[start : start + BLOCK].T @ residuals[start : start + BLOCK]
    return total


def sum_of(vector: np.ndarray) -> float:
    """Return the sum, added up from such runs."""
    return float(sum(vector[start : start + BLOCK].sum() for start in range(0, vector.size, BLOCK)))


def times(chunk: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Return ``chunk @ coef``; of one column it may be made in place."""
    return np.multiply(chunk, coef, out=chunk) if coef.shape == (1, 1) else chunk @ coef


def groups_of(columns: np.ndarray) -> list[np.ndarray]:
    """Return columns in groups that are copied at a time."""
    return [columns[start : start + WIDEST] for start in range(0, columns.size, WIDEST)]


def entries(blocks: Storage, part: Part, columns: np.ndarray, scales: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return some columns of some clipped rows of a dense table, shape (m, columns.size), the transpose of ``out``."""
    chosen = np.empty((columns.size, scales.size)) if out is None else out
    for row, column in zip(chosen, columns, strict=True):
        np.multiply(blocks.scaled(blocks.table[part, column], column), scales, out=row)
    return chosen.T

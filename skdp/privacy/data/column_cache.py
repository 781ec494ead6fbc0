"""Keep raw predictions between queries and sums over blocks of coordinates, reading only the columns that are needed."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.data.kernels import SHORTEST, clip_residuals, weighted
from skdp.privacy.data.storage import Part, Storage, row_squares, scaled
from skdp.privacy.data.summation import BLOCK, TreeSum

# Number of columns of a block of rows that are copied at a time: 2**18 cells, 2 MB in float64. A choice for memory and speed.
# It also sets the order of sums, so another value changes their rounding.
WIDEST = 64

# Number of passes over all columns, counted in columns read, after which raw predictions are computed from scratch. A choice:
# more passes save time and let rounding errors add up.
RENEWAL = 10

# Largest number of columns whose clipped entries are kept in memory for the next step, over all rows. A choice for memory.
HELD = 4

# Factor by which the largest coefficient may shrink before raw predictions are computed from scratch. A choice: a larger factor
# keeps the rounding errors of earlier, larger coefficients, which are large relative to the present ones.
SHRINKING = 2.0**20

Slopes = Callable[[np.ndarray, Part], np.ndarray]  # maps raw predictions (m, k) of some rows to residuals (m, k), not clipped


class ColumnCache:
    """Read the clipped rows column by column and keep their raw predictions at the latest point.

    A move to another point reads the columns whose coefficients changed. A record's raw prediction depends only on the record and
    on the points so far; only these points decide the order of the computation.

    Parameters
    ----------
    blocks : Storage
        The whole table, dense or CSC.
    scales : ndarray of shape (n_samples,)
        Factor of each row.
    constant : float
        Constant that the intercept appends to each row; 0 for a model without intercept.
    chunk_rows : int
        Number of rows of a chunk, for `TreeSum`.
    presence : ndarray of shape (n_samples,) or None
        Sample weight of each record, by which its clipped term is multiplied; None if all are 1.
    """

    def __init__(
        self, blocks: Storage, scales: np.ndarray, constant: float, chunk_rows: int, presence: np.ndarray | None
    ) -> None:
        self._blocks, self._scales, self._constant, self._chunk_rows = blocks, scales, constant, chunk_rows
        self._presence = presence
        self._coef: np.ndarray | None = None
        self._raw = np.zeros((0, 0))
        self._n_read, self._largest = 0, 0.0
        self._held: np.ndarray | None = None  # columns of a narrow block, which the next step will probably change
        self._space = np.empty((0, 0))  # clipped entries of these columns

    def raw(self, coef: np.ndarray) -> np.ndarray:
        """Return the raw predictions at a point.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, k)
            The point; the last row belongs to the intercept if there is one.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Raw predictions, which the caller must not change; valid until the next call.
        """
        last, self._coef = self._coef, None  # stays None if an interrupt leaves the predictions half updated
        held, self._held = self._held, None
        # From scratch at a new shape, after many updates, or where rounding of earlier, larger coefficients would show.
        size = float(np.abs(coef).max(initial=0.0))
        if last is None or last.shape != coef.shape or self._n_read > RENEWAL * coef.shape[0] or self._largest > SHRINKING * size:
            self._raw = np.zeros((self._blocks.n_samples, coef.shape[1]))
            last, self._n_read, self._largest = np.zeros(coef.shape), 0, 0.0
        # Raw predictions are linear: add the changed columns times the change of their coefficients.
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
            Point at which raw predictions are taken.
        block : ndarray of int of shape (n_block,)
            Coordinates, in ascending order.
        slopes : callable
            Maps raw predictions (m, k) of some rows, and their row numbers, to newly allocated residuals (m, k) of any norm.
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
        """Add the contribution of the changed features to the raw predictions."""
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
        """Yield the runs of rows of a dense table that are read at a time, longer for fewer columns."""
        length = BLOCK * max(1, min(16, WIDEST // max(1, n_columns)))
        n_samples = self._blocks.n_samples
        return (slice(start, min(start + length, n_samples)) for start in range(0, n_samples, length))

    def _sum_of_stretches(
        self, raw: np.ndarray, features: np.ndarray, constant: float, slopes: Slopes, clip_norm: float
    ) -> np.ndarray:
        """Return the sum over a dense table."""
        narrow, self._held = features.size <= HELD, None
        if narrow and self._space.shape != (features.size, len(raw)):
            self._space = np.empty((features.size, len(raw)))
        total = TreeSum(self._chunk_rows)
        for part in self._stretches(features.size):
            residuals = slopes(raw[part].copy(), part)
            if narrow:
                chunk = entries(self._blocks, part, features, self._scales[part], self._space[:, part])
                total.add(clipped_term(chunk, constant, residuals, clip_norm, self._present(part)), len(chunk))
            else:
                total.add(self._wide_term(part, features, constant, residuals, clip_norm), len(residuals))
        self._held = features if narrow else None
        return total.total()

    def _wide_term(
        self, part: slice, features: np.ndarray, constant: float, residuals: np.ndarray, clip_norm: float
    ) -> np.ndarray:
        groups = groups_of(features)
        if len(groups) == 1:
            return clipped_term(self._read(part, features), constant, residuals, clip_norm, self._present(part))
        # Two readings of the columns: norms first, then the products with clipped residuals.
        squares = np.full(len(residuals), constant**2)
        for group in groups:
            squares += row_squares(self._read(part, group))
        residuals = weighted(clip_residuals(residuals, inverse_norms_of(squares), clip_norm), self._present(part))
        return np.concatenate(
            [*(product(self._read(part, group), residuals) for group in groups), intercept_term(constant, residuals)]
        )

    def _read(self, part: slice, columns: np.ndarray) -> np.ndarray:
        """Return some columns of some clipped rows of a dense table, shape (m, columns.size)."""
        return entries(self._blocks, part, columns, self._scales[part])

    def _sum_of_stored(self, raw: np.ndarray, column: Any, slopes: Slopes, clip_norm: float) -> np.ndarray:
        """Return the sum of one column of CSC; only records with a stored entry in it contribute."""
        total = np.zeros((1, raw.shape[1]))
        for rows, chunk in self._stored(column):
            total += clipped_term(chunk, 0.0, slopes(raw[rows], rows), clip_norm, self._present(rows))
        return total

    def _sum_of_columns(
        self, raw: np.ndarray, features: np.ndarray, constant: float, slopes: Slopes, clip_norm: float
    ) -> np.ndarray:
        squares = np.full(self._blocks.n_samples, constant**2)
        for _, chunk in self._runs(features):
            squares += row_squares(chunk)
        # The clip needs the norm of a row in the whole block, so that columns are read once before for it.
        inverse_norms, residuals = inverse_norms_of(squares), np.empty_like(raw)
        for part in self._blocks.parts():
            clipped = clip_residuals(slopes(raw[part].copy(), part), inverse_norms[part], clip_norm)
            residuals[part] = weighted(clipped, self._present(part))
        terms = [chunk.T @ residuals for _, chunk in self._runs(features)]
        return np.concatenate([*terms, intercept_term(constant, residuals)])

    def _present(self, part: Part) -> np.ndarray | None:
        return None if self._presence is None else self._presence[part]

    def _stored(self, column: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield row numbers with a stored entry in a column of CSC, and the entries of the clipped rows, shape (m, 1)."""
        table = self._blocks.table
        for start in range(table.indptr[column], table.indptr[column + 1], BLOCK):
            stop = min(start + BLOCK, table.indptr[column + 1])
            rows, stored = table.indices[start:stop], self._blocks.scaled(table.data[start:stop], column)
            yield rows, np.multiply(stored, self._scales[rows], dtype=np.float64)[:, None]

    def _runs(self, columns: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield runs of columns of CSC with their clipped entries, about as many cells as a block of rows has."""
        width = max(1, WIDEST * BLOCK // self._blocks.n_samples)
        for start in range(0, columns.size, width):
            group = columns[start : start + width]
            run = sparse.csc_matrix(self._blocks.table[:, group].astype(np.float64))
            run.data = self._blocks.scaled(run.data, np.repeat(group, np.diff(run.indptr)))
            yield group, scaled(run, self._scales)


def clipped_term(
    chunk: np.ndarray, constant: float, residuals: np.ndarray, clip_norm: float, present: np.ndarray | None
) -> np.ndarray:
    """Return the weighted sum of the clipped terms of some rows, given all their entries in the block.

    Parameters
    ----------
    chunk : ndarray of shape (m, n_features)
        Entries of clipped rows.
    constant : float
        Entry of the intercept; 0 if it is not in the block.
    residuals : ndarray of shape (m, k)
        Residuals of any norm; overwritten.
    clip_norm : float
        Bound on the Frobenius norm of a term.
    present : ndarray of shape (m,) or None
        Weight of each term; None if all are 1.

    Returns
    -------
    ndarray of shape (n_block, k)
        The sum.
    """
    if not constant and chunk.shape[1] == residuals.shape[1] == 1:  # clip the products: no norms needed
        products = residuals[:, 0]
        products *= chunk[:, 0]
        np.clip(products, -clip_norm, clip_norm, out=products)
        total = sum_of(weighted(residuals, present)[:, 0])
        if math.isnan(total):
            total = sum_of(np.nan_to_num(products, copy=False))
        return np.array([[total]])
    squares = row_squares(chunk)
    squares += constant**2
    residuals = weighted(clip_residuals(residuals, inverse_norms_of(squares), clip_norm), present)
    return np.concatenate([product(chunk, residuals), intercept_term(constant, residuals)])


def inverse_norms_of(squares: np.ndarray) -> np.ndarray:
    """Compute one over the square root in place, or a smaller number; for a row of zeros any finite number is allowed."""
    norms = np.sqrt(squares, out=squares)
    return np.divide(1.0, np.maximum(norms, SHORTEST, out=norms), out=norms)


def intercept_term(constant: float, residuals: np.ndarray) -> np.ndarray:
    """Return the row of the sum that belongs to the intercept; no row if the constant is 0."""
    return constant * np.array([[sum_of(column) for column in residuals.T]]) if constant else residuals[:0]


def product(chunk: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Return ``chunk.T @ residuals``, summed over runs of `BLOCK` rows, for which the bound on rounding holds."""
    total = chunk[:BLOCK].T @ residuals[:BLOCK]
    for start in range(BLOCK, len(residuals), BLOCK):
        total += chunk[start : start + BLOCK].T @ residuals[start : start + BLOCK]
    return total


def sum_of(vector: np.ndarray) -> float:
    """Return the sum of a vector, summed over runs of `BLOCK` entries."""
    return float(sum(vector[start : start + BLOCK].sum() for start in range(0, vector.size, BLOCK)))


def times(chunk: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Return ``chunk @ coef``; a single column may be overwritten with the result."""
    return np.multiply(chunk, coef, out=chunk) if coef.shape == (1, 1) else chunk @ coef


def groups_of(columns: np.ndarray) -> list[np.ndarray]:
    """Split columns into groups of at most `WIDEST`."""
    return [columns[start : start + WIDEST] for start in range(0, columns.size, WIDEST)]


def entries(blocks: Storage, part: Part, columns: np.ndarray, scales: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return some columns of some clipped rows of a dense table, shape (m, columns.size), as the transpose of ``out``."""
    chosen = np.empty((columns.size, scales.size)) if out is None else out
    for row, column in zip(chosen, columns, strict=True):
        np.multiply(blocks.scaled(blocks.table[part, column], column), scales, out=row)
    return chosen.T

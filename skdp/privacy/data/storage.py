"""Read a dense, CSR, CSC or packed table in float64 blocks of rows or runs of columns, without a copy of the table."""

import copy
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.data.binned_records import Columns
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.data.kernels import part_of
from skdp.privacy.data.packed_rows import PackedRows
from skdp.privacy.data.summation import BLOCK, TreeSum

# Entries of a dense block that are processed at a time where a temporary copy is needed. A choice: 2 MB in float64.
CELLS = 2**18
# Entries of a dense block that are squared at a time. A choice: 256 KB, which stay in the cache of a core. The bits of a row's
# norm do not depend on it.
CACHED = 2**15
ONES = np.ones(BLOCK)

Part = slice | np.ndarray  # rows of one block: a run of rows of the table, or row numbers of a sample


class Storage:
    """Read a table, or a sample of its rows, block by block.

    Parameters
    ----------
    X : ndarray, CSR, CSC or PackedRows of shape (n_samples, n_features)
        Finite records; a sparse table has no duplicate entries. Blocks of packed rows are unpacked to CSR as they are read.
    by_row : bool, default=False
        Convert CSC to CSR once, because queries will read rows.
    by_column : bool, default=False
        Convert CSR to CSC once, because queries will read columns.
    scaling : ColumnScaling or None, default=None
        Public map of the entries, applied to every block as it is read; for a sparse table it must map zero to zero.
    alone : bool, default=False
        Compute each row as if it were alone, as in a sample, because the positions of rows are private.
    """

    def __init__(
        self,
        X: Any,
        by_row: bool = False,
        by_column: bool = False,
        scaling: ColumnScaling | None = None,
        alone: bool = False,
    ) -> None:
        if by_column and not by_row and isinstance(X, PackedRows):
            X = X.rows(slice(0, X.shape[0]))
        converted = (by_row or by_column) and sparse.issparse(X)
        self.table = X if not converted else X.tocsr() if by_row else X.tocsc()
        self.sample: np.ndarray | None = None
        self.n_samples, self.n_features = X.shape
        self.packed = isinstance(self.table, PackedRows)
        self.sparse = self.packed or sparse.issparse(self.table)
        self.by_column = sparse.issparse(self.table) and self.table.format == "csc"
        self._scaling, self.alone = scaling, alone

    def subset(self, indices: np.ndarray) -> "Storage":
        """Return the same table reduced to some of its rows, which are copied block by block when they are read.

        Parameters
        ----------
        indices : ndarray of int
            Sorted row numbers; may be empty.

        Returns
        -------
        Storage
            The sample.

        Raises
        ------
        ValueError
            If the table is stored by columns: every sample would need a conversion.
        """
        if self.by_column:
            raise ValueError("A sample needs a table stored by rows; expected by_row=True.")
        sample = copy.copy(self)
        sample.sample, sample.alone = indices, True
        return sample

    def mapped(self, matrix: Any) -> "Storage":
        """Return the rows times a matrix, where each row is computed alone and in the order of its columns.

        Parameters
        ----------
        matrix : sparse of shape (n_features, m)
            Finite numbers.

        Returns
        -------
        Storage
            Stored as CSR. A NaN becomes 0, and an overflow the largest float64.
        """
        if self._scaling is not None:
            raise ValueError("Rows with scaled columns cannot be mapped; expected a table without scaling.")
        table = self.table.rows(slice(0, self.n_samples)) if self.packed else self.table
        rows = sparse.csr_array(table).astype(np.float64)  # a copy
        rows.sort_indices()
        product = rows @ sparse.csr_array(matrix).astype(np.float64)
        product.sort_indices()
        np.nan_to_num(product.data, copy=False)
        blocks = Storage(product, alone=self.alone)
        blocks.sample = self.sample
        return blocks

    def reach(self, centre: np.ndarray | float = 0.0, scale: np.ndarray | float = 1.0) -> float:
        """Return a bound on the norm of ``scale * (x - centre)`` by the public bounds of the columns; infinity without any.

        It holds for computed norms, too: squares and their sums, from the first column to the last, grow with the entries, also
        rounded. It holds for shortened rows, as zero is within the bounds.
        """
        if self._scaling is None:
            return math.inf
        return float(np.sqrt(squares_in_order(scale * np.abs(self._scaling.ends - centre).max(axis=0, keepdims=True))[0]))

    @property
    def keeps_columns(self) -> bool:
        """Whether single columns of all rows can be read."""
        return not self.alone and (self.by_column or not self.sparse)

    def parts(self) -> Iterator[Part]:
        """Yield the rows of each block; a sample without rows is one empty block."""
        if self.sample is None:
            yield from (slice(start, min(start + BLOCK, self.n_samples)) for start in range(0, self.n_samples, BLOCK))
        else:
            yield from (self.sample[start : start + BLOCK] for start in range(0, max(1, self.sample.size), BLOCK))

    def unpacked(self) -> Iterator[Part]:
        """Yield the rows of each block, in several runs where packed rows need much memory, once they are in CSR.

        A term takes part in fewer additions than in a block as a whole, or one more, which `ADDITIONS` has room for.
        """
        whole = not self.packed or self.sample is not None
        for part in self.parts():
            yield from (part,) if whole else pieces(part, max(1, CELLS // (2 * self.table.n_stored)))

    def rows(self, part: Part) -> Any:
        """Return float64 rows: a view for a run of rows if the dtype allows it, else a copy (samples, scaled columns)."""
        if self.packed:
            return self.table.rows(part)
        if not self.sparse:
            # Of a table in F order, NumPy would sum a single row in another order than several.
            rows = self.table[part].astype(np.float64, order="C" if self.alone else "K", copy=False)
            return self.scaled(rows, slice(None))
        if not isinstance(part, slice):
            rows = self.table[part].astype(np.float64, copy=False)
            return sharing(type(rows), (self.scaled(rows.data, rows.indices), rows.indices, rows.indptr), rows.shape, True)
        return sharing(sparse.csr_matrix, self._compressed(part.start, part.stop), (part.stop - part.start, self.n_features))

    def factor(self, part: Part) -> Any:
        """Return float64 rows for products alone: packed rows are not unpacked."""
        return self.table.block(part) if self.packed and isinstance(part, slice) else self.rows(part)

    def bins(self, bins_of: Callable[[Any], np.ndarray]) -> Columns:
        """Return what a function of rows in CSR returns for all of them, column by column; packed rows are given up for it."""
        if self.packed:
            return list(self.table.into_bins(bins_of))
        found = np.empty((0, 0))
        for part in self.parts():
            block = bins_of(self.rows(part))
            found = np.empty((len(block), self.n_samples), dtype=block.dtype) if not found.size else found
            found[:, part] = block
        return found

    def columns(self) -> Iterator[tuple[slice, Any]]:
        """Yield float64 runs of columns with as many cells as a block of rows.

        Their width depends on public facts only. If it depended on the number of stored entries, one record could change the
        order in which the raw predictions of all other records are summed, and so their rounding.
        """
        # As many cells as a block of rows: width * n_samples = BLOCK * n_features.
        width = max(1, BLOCK * self.n_features // self.n_samples)
        for start in range(0, self.n_features, width):
            stop = min(start + width, self.n_features)
            yield slice(start, stop), sharing(sparse.csc_matrix, self._compressed(start, stop), (self.n_samples, stop - start))

    def predictions(self, block: Any, coef: np.ndarray) -> np.ndarray:
        """Return ``block @ coef``.

        BLAS may round a product according to the position of its row. In a sample the position depends on which other rows were
        drawn, and among rows of persons on the numbers of rows of other persons. The accounting compares sums in which the terms
        of all others are the same. So there every row is computed alone, by einsum.
        """
        if not coef.any():
            return np.zeros((block.shape[0], coef.shape[1]))
        if not self.alone or not isinstance(block, np.ndarray):
            return np.asarray(block @ coef)
        if block.shape[0] == 1:  # einsum sums a single wide row in another order
            return self.predictions(np.repeat(block, 2, axis=0), coef)[:1]
        return np.einsum("ij,kj->ik", block, np.ascontiguousarray(coef.T))

    def _compressed(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return entries, minor indices and offsets of the rows (CSR) or columns (CSC) from ``start`` to ``stop``."""
        first, last = self.table.indptr[start], self.table.indptr[stop]
        entries, minor = self.table.data[first:last].astype(np.float64, copy=False), self.table.indices[first:last]
        offsets = self.table.indptr[start : stop + 1] - first
        if self._scaling is not None:
            columns = np.repeat(np.arange(start, stop), np.diff(offsets)) if self.by_column else minor
            entries = self.scaled(entries, columns)
        return entries, minor, offsets

    def scaled(self, entries: np.ndarray, columns: Any) -> np.ndarray:
        """Return entries of the given columns, scaled if the table has a scaling."""
        return entries if self._scaling is None else self._scaling.scaled(entries, columns)


def sharing(
    kind: type, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], shape: tuple[int, int], of_sample: bool = False
) -> Any:
    """Return a compressed block that shares the arrays; SciPy's constructor would copy parts of long arrays at every pass.

    The shape of a block of a sample is not public, and is not kept.
    """
    block = kind(shape) if of_sample else copy.copy(_empty(kind, shape))
    block.data, block.indices, block.indptr = arrays
    return block


@lru_cache(16)
def _empty(kind: type, shape: tuple[int, int]) -> Any:
    """Return a block without entries: to copy one takes 3 microseconds, and to make one 40."""
    return kind(shape)


def transposed(block: Any, of_sample: bool = False) -> Any:
    """Return the transpose, which shares its arrays."""
    if not sparse.issparse(block):
        return block.T
    kind = sparse.csc_matrix if block.format == "csr" else sparse.csr_matrix
    return sharing(kind, (block.data, block.indices, block.indptr), block.shape[::-1], of_sample)


def pieces(part: Part, length: int) -> Iterator[Part]:
    """Yield the rows of a block in runs of at most ``length``."""
    if isinstance(part, slice):
        yield from (slice(start, min(start + length, part.stop)) for start in range(part.start, part.stop, length))
    else:
        yield from (part[start : start + length] for start in range(0, part.size, length))


def scaled(block: Any, scales: np.ndarray | None) -> Any:
    """Return rows times their scales, in the same storage format; the rows themselves if there are none."""
    if scales is None:
        return block
    if not sparse.issparse(block):
        return block * scales[:, None]
    rows = np.repeat(scales, np.diff(block.indptr)) if block.format == "csr" else scales[block.indices]
    return type(block)((block.data * rows, block.indices, block.indptr), shape=block.shape)


def column_sums(rows: np.ndarray) -> np.ndarray:
    """Return the sum of the rows of an array; NumPy's own sum of a few columns is several times slower than a product."""
    return (ONES[: len(rows)] if len(rows) <= BLOCK else np.ones(len(rows))) @ rows


def squared(block: Any) -> Any:
    """Return the squared entries, in the same storage format."""
    if not sparse.issparse(block):
        return block * block
    return type(block)((block.data * block.data, block.indices, block.indptr), shape=block.shape)


def row_squares(block: Any) -> np.ndarray:
    """Return the squared norm of each row."""
    if not sparse.issparse(block):
        return np.einsum("ij,ij->i", block, block)
    return squared(block) @ np.ones(block.shape[1])


def squares_in_order(block: Any) -> np.ndarray:
    """Return the squared norm of each row, summed from the first column to the last: the same bits for dense and CSR.

    The choice between dense and CSR may depend on the data. If both rounded differently, a norm could be on different sides of a
    public limit, in all rows at once.
    """
    if sparse.issparse(block):
        return row_squares(block)
    squares, length = np.empty(block.shape[0]), max(1, CACHED // block.shape[1])
    for start in range(0, block.shape[0], length):
        columns = np.square(block[start : start + length].T, order="C")
        # Columns are added one after another; a single row would be added up in pairs.
        squares[start : start + length] = columns.sum(axis=0) if columns.shape[1] > 1 else np.add.accumulate(columns)[-1]
    return squares


def entry_sums(blocks: Storage, scales: np.ndarray, chunk_rows: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the weighted sums of the entries of all scaled rows and of their squares, of shape (2, n_features)."""
    if blocks.by_column:
        counts = np.ones(blocks.n_samples) if weights is None else weights
        total = np.zeros((2, blocks.n_features))
        for columns, chunk in blocks.columns():
            chunk = scaled(chunk, scales)
            total[:, columns] = [entries.T @ counts for entries in (chunk, squared(chunk))]
        return total
    sums = TreeSum(chunk_rows)
    for part in blocks.unpacked():
        block = scaled(blocks.rows(part), scales[part])
        counts = np.ones(block.shape[0]) if weights is None else weights[part]
        sums.add(np.array([entries.T @ counts for entries in (block, squared(block))]), block.shape[0])
    return sums.total()


def dense(block: Any) -> np.ndarray:
    """Return rows as an array."""
    return block.toarray() if sparse.issparse(block) else block


def row_norms(blocks: Storage) -> np.ndarray:
    """Return the norm of each row, infinite where its square overflows."""
    squares = np.zeros(blocks.n_samples)
    if blocks.packed and blocks.sample is None:
        squares = blocks.table.squares(np.ones(blocks.n_features))
    elif blocks.by_column:
        for _, chunk in blocks.columns():
            squares += row_squares(chunk)
    else:
        for part in blocks.parts():
            squares[part] = squares_in_order(blocks.rows(part))
    return np.sqrt(squares, out=squares)


def largest_entries(blocks: Storage, limits: np.ndarray) -> np.ndarray:
    """Return the largest absolute value of each row, relative to the limits of the columns; 0 for rows outside the sample."""
    largest = np.zeros(blocks.n_samples)
    if blocks.by_column:
        for columns, chunk in blocks.columns():
            np.maximum(largest, _largest(chunk, limits[columns]), out=largest)
    else:
        for part in blocks.unpacked():
            largest[part] = _largest(blocks.rows(part), limits)
    return largest


def _largest(block: Any, limits: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):  # a limit may be 0: then only 0 is within it
        if not sparse.issparse(block):
            ratios = np.abs(block)
            return np.nan_to_num(np.divide(ratios, limits, out=ratios), copy=False, posinf=np.inf).max(axis=1, initial=0.0)
        ratios = np.nan_to_num(np.abs(block.data) / of_entries(block, limits), copy=False, posinf=np.inf)
    return type(block)((ratios, block.indices, block.indptr), shape=block.shape).max(axis=1).toarray().ravel()


def of_entries(block: Any, limits: np.ndarray) -> np.ndarray:
    """Return for every stored entry the limit of its column."""
    return limits[block.indices] if block.format == "csr" else np.repeat(limits, np.diff(block.indptr))


def clipped_products(
    block: Any, residuals: np.ndarray, largest: np.ndarray, limits: np.ndarray, present: np.ndarray | None = None
) -> np.ndarray:
    """Return ``sum_i v_i clip(x_i r_i^T)``, where every product of an entry and a residual is clipped.

    Rows without a product beyond its limit are summed by one matrix product, other rows product by product. Entries that a sparse
    block does not store are skipped.

    Parameters
    ----------
    block : ndarray, CSR or CSC of shape (m, p)
        Rows, or a run of their columns.
    residuals : ndarray of shape (m, k)
        Finite numbers.
    largest : ndarray of shape (m,)
        Largest absolute value of each row, relative to the limits.
    limits : ndarray of shape (p,)
        Bound on the absolute value of a product, by column.
    present : ndarray of shape (m,) or None, default=None
        Weight v of each record, after the clip; None if all are 1.

    Returns
    -------
    ndarray of shape (p, k)
        The sum.
    """
    with np.errstate(all="ignore"):  # 0 times infinity is NaN, so the row is not plain
        # No product |x_j r| of the row exceeds its limit c_j if max |r| max |x_j| / c_j <= 1.
        plain = np.abs(residuals).max(axis=1, initial=0.0) * largest <= 1
    unclipped = np.where(plain[:, None], residuals, 0.0)
    total = block.T @ (unclipped if present is None else unclipped * present[:, None])
    others = np.flatnonzero(~plain)
    step = others.size if sparse.issparse(block) else max(1, CELLS // block.shape[1])
    for start in range(0, others.size, max(1, step)):
        rows = others[start : start + step]
        part, weights = block[rows], np.ones(rows.size) if present is None else present[rows]
        # Other rows: clip products, then sum over the rows by a product with their weights.
        for output in range(residuals.shape[1]):
            products = scaled(part, residuals[rows, output])
            entries, bounds = (products.data, of_entries(products, limits)) if sparse.issparse(products) else (products, limits)
            np.clip(entries, -bounds, bounds, out=entries)
            total[:, output] += products.T @ weights
    return total


def standardized_squares(blocks: Storage, scales: np.ndarray | None, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the squared norm of each centred and scaled row, rounded up where it comes from a difference or a product.

    For a centre of 0, which is not a release, the result is the same for dense and CSR.

    Parameters
    ----------
    blocks : Storage
        The table.
    scales : ndarray of shape (n_samples,) or None
        Factor of each row x; None if all are 1, where columns are clipped.
    centre : ndarray of shape (n_features,)
        Vector that is subtracted from every row.
    scale : ndarray of shape (n_features,) or (n_features, n_features)
        Rows become ``scale * (x - centre)``, or ``scale.T @ (x - centre)`` for a matrix.

    Returns
    -------
    ndarray of shape (n_samples,)
        Squared norms; 0 for rows outside the sample.

    Raises
    ------
    ValueError
        If the scale is a matrix and the table is stored by columns.
    """
    if scale.ndim == 2:
        return _whitened_squares(blocks, scales, centre, scale)
    if blocks.sparse:
        return _sparse_squares(blocks, scales, centre, scale)
    squares = np.zeros(blocks.n_samples)
    for part in blocks.parts():
        block = scaled(blocks.rows(part), part_of(scales, part))
        if centre.any():
            block -= centre
        if (scale != 1).any():
            block *= scale
        squares[part] = row_squares(block) if centre.any() else squares_in_order(block)
    return squares


def _whitened_squares(blocks: Storage, scales: np.ndarray | None, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    if blocks.by_column:
        raise ValueError("A matrix as scale needs a table stored by rows; expected by_row=True.")
    squares = np.zeros(blocks.n_samples)
    # Products may be rounded up to this much of the norms of both factors; the norm is raised by it, so that it is never too
    # small and the clip holds.
    error = 2 * (blocks.n_features + 8) * 2.0**-53 * float(np.linalg.norm(scale))  # bound for a product, over the row's norm
    for part in blocks.parts():
        block = dense(scaled(blocks.rows(part), part_of(scales, part)))
        block -= centre
        norms = np.sqrt(row_squares(blocks.predictions(block, scale)))
        squares[part] = np.square(norms + error * np.sqrt(row_squares(block)))
    return squares


def _sparse_squares(blocks: Storage, scales: np.ndarray | None, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    # sum_j s_j^2 (x_j - m_j)^2 = sum_j s_j^2 x_j^2 - 2 sum_j s_j^2 m_j x_j + sum_j s_j^2 m_j^2, where the first two sums read
    # stored entries alone. `error` covers the digits that cancel, so that the result is never below the true square.
    sizes, shift = np.square(scale), float(np.sum(np.square(scale * centre)))
    error = 4 * (blocks.n_features + 8) * 2.0**-53
    lost = blocks.n_features * 2.0**-1022 * float(sizes.max(initial=0.0))  # bound for the underflow of squares

    def parts_of(chunk: Any, columns: slice) -> tuple[np.ndarray, np.ndarray | float]:
        if not centre.any():
            chunk.data *= of_entries(chunk, scale[columns])
            return row_squares(chunk), 0.0
        return squared(chunk) @ sizes[columns], chunk @ (sizes * centre)[columns]

    def together(squares: np.ndarray, products: np.ndarray | float) -> np.ndarray:
        if not centre.any():
            return squares
        return np.maximum(squares - 2 * products + shift, 0.0) + error * (squares + shift) + lost

    if blocks.packed and blocks.sample is None and scales is not None:
        found, shifts = blocks.table.squares(sizes), (sizes * centre)[:, None]
        for part in blocks.parts():
            products = (blocks.factor(part) @ shifts)[:, 0]
            found[part] = together(np.square(scales[part]) * found[part], scales[part] * products)
        return found
    found = np.zeros(blocks.n_samples)
    if not blocks.by_column:
        for part in blocks.parts():
            found[part] = together(*parts_of(scaled(blocks.rows(part), part_of(scales, part)), slice(None)))
        return found
    products = np.zeros(blocks.n_samples)
    for columns, chunk in blocks.columns():
        squares, product = parts_of(scaled(chunk, scales), columns)
        found += squares
        products += product
    return together(found, products)

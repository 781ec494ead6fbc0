"""Hold rows of functions of single columns as one or two bytes per cell, and compute with them block by block."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skdp.privacy.data.bins import EDGES, FINEST, NEXT_EDGE, ROUNDING, Bins
from skdp.privacy.data.summation import BLOCK

# A code of a number, two bytes: the number of the knot on its left, and how far it is on the way to the next one.
#    knot  k                k + 1
#     |    .    .    .    .    |        code = k * STEPS + steps from the knot
#          left = k   right = steps / STEPS
# Between two knots value and hats are linear, so numbers per knot (values, hats, sums of residuals) are all that is needed. Codes
# beyond that of the last knot are cells with an indicator; `further` has the code of the place of each.
# Bits of the place of a cell between two knots. A choice: cells are rounded by 1/4096 of the gap at most, and those at knots are
# exact; the other bits hold 32 gaps, of which indicators need some.
BITS = 11
STEPS, MOST_KNOTS = 2**BITS, 24
GONE = "These rows have become bins; expected no query of rows after that."


@dataclass(frozen=True, eq=False)
class PackedCategory:
    """Describe the features of a category, of which one is not 0; a code is the number of that feature.

    Parameters
    ----------
    first, size : int
        The features.
    weight : float
        Value of the one that is not 0.
    """

    first: int
    size: int
    weight: float

    n_stored = 1

    @property
    def codes(self) -> np.ndarray:
        """All codes, in their order."""
        return np.arange(self.size, dtype=np.min_scalar_type(self.size - 1))

    def cells(self, codes: np.ndarray) -> Any:
        """Return what the other methods take."""
        return codes

    def entries(self, codes: Any) -> Iterator[tuple[Any, Any]]:
        """Yield features and values of each cell."""
        yield self.first + codes.astype(np.intp), self.weight

    def add_products(self, codes: Any, coef: np.ndarray, total: np.ndarray) -> None:
        """Add to ``total``, of shape (m,), the products with coefficients of shape (n_features,)."""
        total += (self.weight * coef[self.first : self.first + self.size])[codes]

    def add_sums(self, codes: Any, residuals: np.ndarray, total: np.ndarray) -> None:
        """Add to ``total``, of shape (n_features,), the sums over the cells times residuals of shape (m,)."""
        total[self.first : self.first + self.size] += self.weight * np.bincount(codes, residuals, self.size)

    def bins(self, codes: np.ndarray, missing: bool) -> np.ndarray:
        """Return the bins of the cells."""
        return codes


class NumberCells(NamedTuple):
    """Hold knots on the left of cells, shares of those on the right, and kinds and rows of indicators."""

    left: np.ndarray
    right: np.ndarray
    kinds: Any
    there: Any


@dataclass(frozen=True, eq=False)
class PackedNumber:
    """Describe the features of a number: its value, its hats if it has some, and an indicator for each of some further codes.

    A code is the number of the knot on the left of a cell, times `STEPS`, and the number of even steps from there. Codes beyond
    that of the last knot are cells with an indicator.

    Parameters
    ----------
    first : int
        The feature of the value; hats and indicators follow.
    knots : ndarray of shape (n_knots,)
        Increasing places from -1 to 1: where hats peak, and where the value is 0.
    values : ndarray of shape (n_knots,)
        The value at each knot; it is linear between them, and does not change its sign there.
    hats : ndarray of shape (n_hats, n_knots)
        The same of each hat. There may be no hats.
    further : ndarray of int of shape (n_indicators,)
        The code of the place of each further code.
    indicators : ndarray of shape (n_indicators,)
        Value of each indicator where it is not 0.
    """

    first: int
    knots: np.ndarray
    values: np.ndarray
    hats: np.ndarray
    further: np.ndarray
    indicators: np.ndarray

    @property
    def n_stored(self) -> int:
        """Number of features that may differ from 0 at once."""
        return 1 + 2 * (len(self.hats) > 0) + (self.further.size > 0)

    @property
    def codes(self) -> np.ndarray:
        """All codes, in their order."""
        return np.arange((self.knots.size - 1) * STEPS + 1 + self.further.size, dtype=np.uint16)

    def cells(self, codes: np.ndarray) -> NumberCells:
        """Return what the other methods take."""
        # Cells with an indicator count at the place that `further` names, and are remembered with the number of their indicator.
        there, kinds, last = None, None, (self.knots.size - 1) * STEPS
        if self.further.size:
            there = np.flatnonzero(codes > last)
            kinds, codes = codes[there] - np.uint16(last + 1), codes.copy()
            codes[there] = self.further[kinds]
        right = (codes & np.uint16(STEPS - 1)) * (1 / STEPS)
        return NumberCells((codes >> BITS).astype(np.intp), right, kinds, there)

    def entries(self, cells: NumberCells) -> Iterator[tuple[Any, Any]]:
        """Yield features and values of each cell."""
        yield self.first, self._between(self.values, cells)
        if len(self.hats):
            # In each gap at most two hats are not 0: numbers `lower` and `lower + 1`, the last that rises to the right end and
            # the next.
            gaps = np.arange(self.knots.size)
            ends = np.minimum(gaps + 1, self.knots.size - 1)
            lower = np.clip(len(self.hats) - 1 - (self.hats[::-1] > 0).argmax(axis=0), 1, None)[ends] - 1
            for one in (lower, lower + 1):
                slopes = self.hats[one, ends] - self.hats[one, gaps]
                yield self._hats.start + one[cells.left], self.hats[one, gaps][cells.left] + slopes[cells.left] * cells.right
        if self.further.size:
            features, entries = np.full(cells.left.size, self._others.start), np.zeros(cells.left.size)
            features[cells.there], entries[cells.there] = self._others.start + cells.kinds, self.indicators[cells.kinds]
            yield features, entries

    def add_products(self, cells: NumberCells, coef: np.ndarray, total: np.ndarray) -> None:
        """Add to ``total``, of shape (m,), the products with coefficients of shape (n_features,)."""
        # Value and hats together are one function that is linear between knots, with these numbers at the knots.
        own = self.values * coef[self.first]
        if len(self.hats):
            own += coef[self._hats] @ self.hats
        total += self._between(own, cells)
        if self.further.size:
            total[cells.there] += (self.indicators * coef[self._others])[cells.kinds]

    def add_sums(self, cells: NumberCells, residuals: np.ndarray, total: np.ndarray) -> None:
        """Add to ``total``, of shape (n_features,), the sums over the cells times residuals of shape (m,).

        All are sums over the knots of sums of shares times numbers of one sign in a gap, so that the magnitudes of what is added
        for a cell add up to the magnitude of its own term: the bound for a sum in any order holds. A term takes part in one
        addition per knot beside those in its block. `skdp.privacy.data.summation.ADDITIONS` has room for them: a table in memory
        has less than 16**5 chunks, which leaves three of its levels.
        """
        # A cell at the share r between two knots gives 1 - r of its residual to the left one, and r to the right one.
        later = residuals * cells.right
        sums = np.bincount(cells.left, residuals - later, self.knots.size)
        sums[1:] += np.bincount(cells.left, later, self.knots.size)[:-1]
        total[self.first] += self.values @ sums
        if len(self.hats):
            total[self._hats] += self.hats @ sums
        if self.further.size:
            counts = np.bincount(cells.kinds, residuals[cells.there], self.indicators.size)
            total[self._others] += self.indicators * counts

    def bins(self, codes: np.ndarray, missing: bool) -> np.ndarray:
        """Return the bins of the cells; ``missing`` says that the last indicator is that of missing cells, with a bin.

        Half a step is added, so that a cell at an edge is above it, as it is where a prediction bins it.
        """
        cells = self.cells(self.codes)
        # One bin per code, not per cell; then the cells look their bins up.
        half = np.append(np.diff(self.knots), 0.0)[cells.left] * ((1 + ROUNDING) / (2 * STEPS))
        places = np.clip((self._between(self.knots, cells) + half + 1) / 2, 0.0, 1.0)
        found = NEXT_EDGE[(places * FINEST + ROUNDING).astype(np.intp)]
        if missing:
            found[-1] = EDGES.size + 1
        return np.concatenate([found.take(codes[part]) for part in runs(codes.size)])

    @property
    def _hats(self) -> slice:
        return slice(self.first + 1, self.first + 1 + len(self.hats))

    @property
    def _others(self) -> slice:
        return slice(self._hats.stop, self._hats.stop + self.further.size)

    def _between(self, at_knots: np.ndarray, cells: NumberCells) -> np.ndarray:
        """Return at each cell what is linear between knots."""
        slopes = np.zeros_like(at_knots)
        np.subtract(at_knots[1:], at_knots[:-1], out=slopes[:-1])
        found = slopes.take(cells.left)
        found *= cells.right
        found += at_knots.take(cells.left)
        return found


def code_of(places: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return the codes of places from -1 to 1.

    Parameters
    ----------
    places : ndarray of shape (n,)
        Finite numbers.
    knots : ndarray of shape (n_knots,)
        As `PackedNumber` has them.

    Returns
    -------
    ndarray of uint16 of shape (n,)
        Codes.
    """
    steps = np.interp(places, knots, np.arange(knots.size) * float(STEPS))
    return np.rint(steps, out=steps).astype(np.uint16)


def runs(n_samples: int) -> Iterator[slice]:
    """Yield all rows, some at a time."""
    yield from (slice(start, start + BLOCK) for start in range(0, n_samples, BLOCK))


class PackedRows:
    """Hold the rows of a table as a code for each cell of the columns that their features are functions of.

    Parameters
    ----------
    columns : sequence of PackedCategory or PackedNumber
        Public facts of each column, in the order of their features.
    codes : list of ndarray of shape (n_samples,)
        Code of each cell, column by column: uint16 for a number, and any unsigned type for a category. `into_bins` empties it.
    n_features : int
        Number of features.
    """

    def __init__(self, columns: Sequence[Any], codes: list[np.ndarray], n_features: int) -> None:
        self.columns, self.shape = tuple(columns), (len(codes[0]), n_features)
        if any(len(column) != self.shape[0] for column in codes):
            raise ValueError("The columns have different numbers of cells; expected a cell of each record in each of them.")
        self._codes = codes

    @cached_property
    def n_stored(self) -> int:
        """Number of entries of a row in CSR."""
        return sum(column.n_stored for column in self.columns)

    def block(self, part: slice) -> "PackedBlock":
        """Return a run of rows for products."""
        return PackedBlock(list(self._cells(part)), (part.stop - part.start, self.shape[1]))

    def rows(self, part: slice | np.ndarray) -> sparse.csr_matrix:
        """Return some rows in float64."""
        n_rows = part.stop - part.start if isinstance(part, slice) else part.size
        data, indices, place = np.empty((n_rows, self.n_stored)), np.empty((n_rows, self.n_stored), dtype=np.int32), 0
        for column, cells in self._cells(part):
            for features, entries in column.entries(cells):
                indices[:, place], data[:, place] = features, entries
                place += 1
        # Each row has as many entries, some of them 0, so the offsets are multiples of that number.
        rows = sparse.csr_matrix((n_rows, self.shape[1]))
        rows.data, rows.indices = data.ravel(), indices.ravel()
        rows.indptr = np.arange(0, data.size + 1, self.n_stored, dtype=np.int32 if data.size < 2**31 else np.int64)
        return rows

    def _cells(self, part: slice | np.ndarray) -> Iterator[tuple[Any, Any]]:
        for column, codes in zip(self.columns, self._codes_of_rows(), strict=True):
            yield column, column.cells(codes[part])

    def _codes_of_rows(self) -> list[np.ndarray]:
        if not self._codes:
            raise RuntimeError(GONE)
        return self._codes

    def squares(self, sizes: np.ndarray) -> np.ndarray:
        """Return the sum of the squares of the features of each row, times sizes of shape (n_features,); unpacks no row."""
        total = np.zeros(self.shape[0])
        for column, codes in zip(self.columns, self._codes_of_rows(), strict=True):
            # Squares of all codes of the column, and then a look-up per cell.
            of_codes = sum(sizes[features] * np.square(found) for features, found in column.entries(column.cells(column.codes)))
            for part in runs(total.size):
                total[part] += np.take(of_codes, codes[part])
        return total

    def into_bins(self, bins: Bins) -> list[np.ndarray]:
        """Return the bins of the cells of each column, which take the place of its codes; there are no rows after it."""
        codes, pairs = self._codes_of_rows(), zip(self.columns, bins.columns, strict=True)
        return [column.bins(codes.pop(0), facts.missing) for column, facts in pairs]


class PackedBlock:
    """A run of packed rows as a factor of products, which cost less than to unpack it.

    Parameters
    ----------
    cells : list of (column, cells)
        Each column with the cells of these rows.
    shape : tuple of int
        Numbers of rows and of features.
    """

    def __init__(self, cells: list[tuple[Any, Any]], shape: tuple[int, int]) -> None:
        self.cells, self.shape = cells, shape

    @property
    def T(self) -> "TransposedBlock":
        """The transpose."""
        return TransposedBlock(self)

    def __matmul__(self, coef: np.ndarray) -> np.ndarray:
        """Return the rows times coefficients of shape (n_features, n_outputs)."""
        total = np.zeros((coef.shape[1], self.shape[0]))
        for output, own in zip(total, coef.T, strict=True):
            for column, cells in self.cells:
                column.add_products(cells, own, output)
        return total.T


class TransposedBlock:
    """The transpose of a run of packed rows.

    Parameters
    ----------
    block : PackedBlock
        The run.
    """

    def __init__(self, block: PackedBlock) -> None:
        self._block, self.shape = block, block.shape[::-1]

    def __matmul__(self, residuals: np.ndarray) -> np.ndarray:
        """Return the sum of the rows times residuals of shape (m, n_outputs), in which each row takes part m times at most."""
        total = np.zeros((residuals.shape[1], self.shape[0]))
        for output, factors in zip(total, np.ascontiguousarray(residuals.T), strict=True):
            for column, cells in self._block.cells:
                column.add_sums(cells, factors, output)
        return total.T

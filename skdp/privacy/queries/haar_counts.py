"""Count the cells of columns along a binary tree between public candidates, and categories, all at once."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.queries._base import SumQuery
from skdp.privacy.queries.score_counts import tree

__all__ = ["HaarCounts"]

# Levels of the tree of each column of numbers, and its leaves: one per candidate, one per gap beside candidates, one for missing
# cells. Choices; more levels have more noise together, fewer candidates are further apart.
LEVELS = 10
LEAVES = 1 << LEVELS
CANDIDATES = LEAVES // 2 - 1
# What a category adds, over what a level of a tree adds: the noise of its counts is the noise of a coefficient over this. A
# choice of the prototype, where a category counts half as much as a column of numbers; not tuned.
CATEGORY_WEIGHT = 0.5 * math.sqrt(LEVELS)


@dataclass(frozen=True, eq=False)
class HaarCounts(SumQuery):
    """Sum Haar coefficients of the counts of each column of numbers, and the counts of each category.

    The leaves of a column are its candidates and the gaps between them, in order, and a last one for missing cells. For each
    node of the tree over these leaves, by levels, the coefficient is the number of cells in its lower half less that in its upper
    half. Counts of categories, codes from 0 on and then missing cells, are multiplied by a weight.

    Parameters
    ----------
    numbers : tuple of int
        Numbers of the columns of the table that are numbers.
    edges : ndarray of shape (len(numbers), n_edges)
        Candidates of each of them, at most 511, sorted; equal ones count as one. Public facts, or from earlier releases.
    categories : tuple of tuple of int, default=()
        For each category its column of codes, NaN where there is none; perhaps followed by one of the same cells as numbers.
    n_codes : tuple of int, default=()
        Number of codes of each category. Larger codes count as the last one.
    weighted : bool, default=False
        Whether the total weight of all records is released, too, as the last number.
    """

    numbers: tuple[int, ...]
    edges: np.ndarray
    categories: tuple[tuple[int, ...], ...] = ()
    n_codes: tuple[int, ...] = ()
    weighted: bool = False

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2 + 2 / LEVELS), "zero_out": 1.0}

    @property
    def clip_norm(self) -> float:
        """Norm of one record's contribution, ``sqrt(10 d + 5/2 c)`` for d columns of numbers and c categories."""
        return math.sqrt(LEVELS * len(self.numbers) + CATEGORY_WEIGHT**2 * len(self.categories) + self.weighted)

    @property
    def size(self) -> int:
        """Number of coefficients and counts."""
        return len(self.numbers) * (LEAVES - 1) + sum(self.sizes()) + self.weighted

    def sizes(self) -> list[int]:
        """Return the number of counts of each category: its codes, missing cells, and numbers if they are told from these."""
        return [n + len(columns) for n, columns in zip(self.n_codes, self.categories, strict=True)]

    def sensitivity(self, adjacency: str) -> float:
        r"""Return c under ``zero_out`` and :math:`c \sqrt{2 + 2/L}` under ``replace_one``; c is the clip norm, L is 10.

        Proof. Given the earlier releases, the columns, the candidates and all places are the same for both tables. A cell is in
        one leaf, which depends on comparisons of this cell with sorted numbers alone. So a record adds 1 or -1 to one coefficient
        of each of the L levels of a column, w to one count of each category, and 1 to the total weight: a vector of squared norm
        :math:`c^2 = L d + w^2 c' + 1`, without the last term if that is not asked for. A null record adds nothing.

        Take two records. In a column, let l be the first level at which their coefficients differ; above it they have the same
        nodes and the same signs. At the level l it is the same node with opposite signs, which adds 4 to the squared norm of the
        difference; at each of the L - l levels below, two nodes, which add 2. The sum is at most
        :math:`4 + 2 (L - 1) = L (2 + 2/L)`, for l = 1. A category adds at most :math:`2 w^2`, and the total weight nothing. So
        the squared norm is at most :math:`(2 + 2/L) c^2`, which is reached without categories.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised numbers of cells in each leaf and of each code, without null records; then their weight."""
        leaves = [
            rows.counts((column,), Leaves(edges), LEAVES) for column, edges in zip(self.numbers, np.sort(self.edges), strict=True)
        ]
        codes = [
            rows.counts(columns, Codes(n), size)
            for columns, n, size in zip(self.categories, self.n_codes, self.sizes(), strict=True)
        ]
        weight = [rows.histogram(lambda records: np.zeros(records.n_rows, dtype=np.intp), 1)] if self.weighted else []
        return np.concatenate([np.zeros(0), *leaves, *codes, *weight])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised coefficients, the weighted counts, and the total weight."""
        leaves, codes, weight = np.split(total, np.cumsum([len(self.numbers) * LEAVES, sum(self.sizes())]))
        return np.concatenate([(leaves.reshape(-1, LEAVES) @ haar().T).ravel(), CATEGORY_WEIGHT * codes, weight])

    def split(self, answer: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], float | None]:
        """Return the coefficients of each column, the counts of each category, and the total weight if it was asked for.

        Parameters
        ----------
        answer : ndarray of shape (size,)
            A noisy answer.

        Returns
        -------
        tuple
            An array of shape (n_columns, 1023), a list of arrays whose noise is that of a coefficient over the weight, and a
            float or None.
        """
        coefficients, *counts, weight = np.split(answer, np.cumsum([len(self.numbers) * (LEAVES - 1), *self.sizes()]))
        counts = [count / CATEGORY_WEIGHT for count in counts]
        return coefficients.reshape(-1, LEAVES - 1), counts, float(weight[0]) if self.weighted else None


@dataclass(frozen=True, eq=False)
class Leaves:
    """Map numbers to leaves: 2i for the gap before candidate i, 2i + 1 for itself, and the last one for a missing cell."""

    edges: np.ndarray

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return the leaf of each cell; those beyond the candidates count as the first and the last one."""
        missing = np.isnan(cells)
        cells = np.clip(np.where(missing, self.edges[0], cells), self.edges[0], self.edges[-1])
        places = np.searchsorted(self.edges, cells, "left")
        return np.where(missing, LEAVES - 1, 2 * places + (self.edges[places] == cells))


@dataclass(frozen=True)
class Codes:
    """Map codes to their places; the next one is for missing cells, and one more for cells that are numbers and have no code."""

    n_codes: int

    def __call__(self, codes: np.ndarray, numbers: Any = math.nan) -> np.ndarray:
        """Return the place of each cell."""
        missing = self.n_codes + ~np.isnan(np.broadcast_to(numbers, codes.shape))
        return np.where(np.isnan(codes), missing, np.clip(np.nan_to_num(codes), 0, self.n_codes - 1)).astype(np.intp)


@cache
def haar() -> np.ndarray:
    """Return the matrix of the coefficients of all nodes, by levels, of shape (1023, 1024)."""
    return tree(LEAVES)[1:]

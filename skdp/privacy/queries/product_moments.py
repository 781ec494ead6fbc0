"""Sum the products of all pairs of some columns, with the columns themselves and the number of complete records, as integers."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.queries._base import SumQuery
from skdp.privacy.queries._half_vector import half_vector_size
from skdp.privacy.queries.clipped_moments import UNIT, places

__all__ = ["HalfVectorMoments", "ProductMoments"]


@dataclass(frozen=True, eq=False)
class HalfVectorMoments(SumQuery):
    r"""Sum the entries on and above the diagonal of :math:`v v^\top`, those on it over :math:`\sqrt 2`, for :math:`v = (1, u)`.

    u has the cells of a record, each clipped to bounds and mapped to [-1, 1]. A record with a missing cell adds nothing. Sums
    are in units of ``UNIT``, row by row: the first one is the number of complete records, over :math:`\sqrt 2`.

    Parameters
    ----------
    columns : tuple of int
        Numbers of the columns of the table.
    bounds : ndarray of shape (len(columns), 2)
        Low and high per column, public or from earlier releases; low < high.
    """

    columns: tuple[int, ...]
    bounds: np.ndarray

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": math.sqrt(2.0), "zero_out": 1.0}
    diagonal: ClassVar[float] = math.sqrt(0.5)

    @property
    def order(self) -> int:
        """Length m of v."""
        return 1 + len(self.columns)

    @property
    def clip_norm(self) -> float:
        r"""Bound on the norm of one record's contribution, :math:`m / \sqrt 2` units, and 3 m for rounding."""
        return self.order * (UNIT / math.sqrt(2) + 3)

    @property
    def size(self) -> int:
        """Number of sums, ``m (m + 1) / 2``."""
        return half_vector_size(self.order)

    def sensitivity(self, adjacency: str) -> float:
        r"""Return :math:`m / \sqrt 2` units under ``zero_out`` and m units under ``replace_one``, and rounding.

        Proof. Given the earlier releases, the bounds are the same for both tables, and shared records contribute the same. The
        norms of terms, and of their differences, are those of :math:`v v^\top / \sqrt 2` in Frobenius' norm; smaller factors of
        the diagonal make none larger. A complete record has :math:`\|v\|^2 \le m`, as its entries are in [-1, 1]
        by clipping, and so a norm of at most :math:`m / \sqrt 2`; a null record and one that is not complete add nothing. For
        two complete ones, :math:`\|v v^\top - w w^\top\|^2 = \|v\|^4 + \|w\|^4 - 2 (v^\top w)^2 \le 2 m^2`, attained by
        orthogonal vectors of entries 1 and -1. A person adds a mean of the terms of her rows, and a weight in [0, 1] a mean of a
        term and of 0. The norm of the difference of two such means is convex in each, and so no larger than for two terms.

        Products are rounded down, and so are sums with weights, once. So each change is that of exact numbers within 2. The norm
        of these m (m + 1) / 2 errors is at most 3 m, also where those on the diagonal count :math:`\sqrt 2` times.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised sums, each as whole and rest, one row of the matrix after the other."""
        return np.concatenate([rows.integer_sums(self.columns, Products(self.bounds, row)) for row in range(self.order)])

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised sums."""
        sums = total[::2] + np.floor(total[1::2])
        rows, columns = np.triu_indices(self.order)
        return np.where(rows == columns, sums * (2 * self.diagonal), sums)

    def matrix(self, answer: np.ndarray) -> np.ndarray:
        r"""Return the sum of :math:`v v^\top` of an answer.

        Parameters
        ----------
        answer : ndarray of shape (size,)
            Answer of the oracle.

        Returns
        -------
        ndarray of shape (m, m)
            Symmetric matrix.
        """
        found = np.zeros((self.order, self.order))
        found[np.triu_indices(self.order)] = answer / UNIT
        return np.triu(found, 1) + np.triu(found, 1).T + np.diag(np.diag(found) / self.diagonal)


@dataclass(frozen=True, eq=False)
class ProductMoments(HalfVectorMoments):
    r"""Sum the same with a half in place of :math:`1 / \sqrt 2` on the diagonal: integers, for Laplace noise.

    Parameters
    ----------
    columns, bounds : tuple of int and ndarray
        As of `HalfVectorMoments`.
    """

    diagonal: ClassVar[float] = 0.5

    def l1_sensitivity(self, adjacency: str) -> int:
        r"""Return :math:`m^2 / 2` units under both adjacencies, and 2 for the rounding of each sum.

        Proof. The absolute values of what a complete record adds have the sum :math:`(\sum_i |v_i|)^2 / 2 \le m^2 / 2`. For two,
        let :math:`t_i = |u_i - u_i'|`, so that :math:`|u_i + u_i'| \le 2 - t_i`, and T the sum of the d = m - 1 numbers
        :math:`t_i`. The columns move by T in all, half of the squares by at most :math:`\sum_i t_i (2 - t_i) / 2`, and, as
        :math:`2 (u_i u_j - u_i' u_j') = (u_i - u_i') (u_j + u_j') + (u_i + u_i') (u_j - u_j')`, the products of pairs by at most

        .. math:: \frac 1 2 \sum_{i \ne j} t_i (2 - t_j) = \frac 1 2 \Big(T (2 d - T) - \sum_i t_i (2 - t_i)\Big).

        Together that is at most :math:`T (d + 1) - T^2 / 2 \le m^2 / 2`. Means are as in `sensitivity`.
        """
        return self.order**2 * UNIT // 2 + 2 * self.size


@dataclass(frozen=True)
class Products:
    """Map the cells of records to integers: a row of the products of v, from the diagonal on; 0 where a cell is missing."""

    bounds: np.ndarray
    row: int

    def __call__(self, *cells: np.ndarray) -> np.ndarray:
        """Return integers of shape (m - row, n_samples)."""
        complete = np.logical_and.reduce([~np.isnan(column) for column in cells])
        units = [np.where(complete, UNIT, 0)]
        for column, (low, high) in zip(cells, self.bounds.tolist(), strict=True):
            units.append(np.where(complete, np.rint(places(column, low, high) * UNIT), 0).astype(np.int64))
        own = units[self.row]
        return np.stack([own * own // (2 * UNIT), *(own * other // UNIT for other in units[self.row + 1 :])])

"""Count the records by the bins of their cells in some columns."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.persons import GRAIN
from skdp.privacy.queries._base import NonNegativeQuery

__all__ = ["JointHistogram", "SingleCount"]


@dataclass(frozen=True, eq=False)
class JointHistogram(NonNegativeQuery):
    """Count the records in each cell of a grid. Each side of the grid has the bins of one column.

    Parameters
    ----------
    columns : tuple of int
        Numbers of the columns.
    bins : tuple of callable
        Maps the cells of each column to the index of a bin, the number of bins for a cell that is in none; by public facts or
        earlier releases, each cell alone.
    sizes : tuple of int
        Number of bins of each column.
    weighted : bool, default=False
        Whether records have weights, which are multiples of 2**-22. Then counts are in this unit, so that they are integers.
    rest : bool, default=False
        Whether a last count has the records that are in no cell, so that all counts add up to the number of records.
    """

    columns: tuple[int, ...]
    bins: tuple[Callable[[np.ndarray], np.ndarray], ...]
    sizes: tuple[int, ...]
    weighted: bool = False
    rest: bool = False

    @property
    def unit(self) -> int:
        """What a record of weight 1 adds."""
        return round(1 / GRAIN) if self.weighted else 1

    @property
    def clip_norm(self) -> float:
        """Norm of one record's contribution."""
        return float(self.unit)

    @property
    def size(self) -> int:
        """Number of counts."""
        return math.prod(self.sizes) + self.rest

    def sensitivity(self, adjacency: str) -> float:
        r"""Return ``unit`` under ``zero_out`` and ``sqrt(2) unit`` under ``replace_one``.

        Proof. The bin of a cell depends on this cell alone, so that a record adds its weight to at most one count, and a null
        record nothing. Replacing it lowers one count by at most 1 and raises another by at most 1. A person adds weights of sum
        1 to some counts, which have a norm of at most 1, and so do the differences to another person's in each of both
        directions. In units of 2**-22 all sums are integers and exact.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def l1_sensitivity(self, adjacency: str) -> int:
        """Return ``unit`` under ``zero_out`` and ``2 unit`` under ``replace_one``: both weights add up to at most 1."""
        return (2 if adjacency == "replace_one" else 1) * self.unit

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised counts, without null records."""
        return rows.counts(self.columns, self._places, self.size) * self.unit

    def _places(self, *cells: np.ndarray) -> np.ndarray:
        places = [bins(column) for bins, column in zip(self.bins, cells, strict=True)]
        inside = np.logical_and.reduce([place < size for place, size in zip(places, self.sizes, strict=True)])
        inner = [np.where(inside, place, 0) for place in places]
        return np.where(inside, np.ravel_multi_index(inner, self.sizes), math.prod(self.sizes))


@dataclass(frozen=True, eq=False)
class SingleCount(JointHistogram):
    """Count the records in a single cell of such a grid."""

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 1.0, "zero_out": 1.0}

    def sensitivity(self, adjacency: str) -> float:
        """Return ``unit`` under both adjacencies.

        Proof. A record, or a person, adds a weight in [0, 1], in exact units of 2**-22 if there are weights. Two such numbers
        differ by at most 1, which a record that is counted and one that is not attain.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def l1_sensitivity(self, adjacency: str) -> int:
        """Return the same, as an integer."""
        return self.unit

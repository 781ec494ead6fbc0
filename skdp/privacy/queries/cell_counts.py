"""Count records in the cells of a binary tree that halves a box, level by level."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries._base import CountQuery

__all__ = ["CellCounts"]


@dataclass(frozen=True, eq=False)
class CellCounts(CountQuery):
    """Count the records in the halves of some cells of a binary tree: one level of it.

    A record has one coordinate per axis of a box, its raw predictions, which are clipped to [-1, 1]. Each level of the tree
    halves all cells across one axis. The number of a cell has one bit per level, the first one at the front: whether it is the
    upper half. Records are counted in the cells of the last level once, and releases of all levels add these counts up.

    Parameters
    ----------
    coef : ndarray of shape (n_coordinates, n_axes)
        Coefficients of the coordinates, from earlier releases and public facts.
    axes : tuple of int
        The axis across which each level halves the cells, for all levels.
    level : int
        Number of the level, from 0, on which the halves are counted.
    parents : ndarray of int of shape (n_parents,)
        Numbers of the cells of the level before whose halves are counted, each once; earlier releases decide which.
    """

    coef: np.ndarray
    axes: tuple[int, ...]
    level: int
    parents: np.ndarray

    shares_partial: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """Number of counts, two for each of the halved cells."""
        return 2 * self.parents.size

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The tree, and which cells are counted, are the same for both tables. The coordinates of a record, and with them
        its cell, depend on this record and on earlier releases only, also as computed. So shared records cancel. A record is in
        one cell of the level: it adds 1 to one count, or to none if its cell is not counted, as a null record does; `finish`
        takes each cell once. Replacing a record lowers one count by 1 and raises another by 1 at most.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def summed(self) -> tuple[np.ndarray, ...]:
        """Return coefficients and axes, on which the cells of the last level depend."""
        return self.coef, np.array(self.axes)

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts of all cells of the last level."""
        return rows.counts_at(self.coef, lambda raw, records: cells_of(raw, self.axes), 1 << len(self.axes))

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised counts of the lower and the upper half of each cell, cell by cell."""
        halves = total.reshape(1 << self.level, 2, -1).sum(axis=2)
        return halves[np.unique(self.parents)].ravel()


def cells_of(coordinates: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the number of the cell of each point of a box.

    Parameters
    ----------
    coordinates : ndarray of shape (m, n_axes)
        Any numbers; those outside [-1, 1] count as its ends, and nan as 0.
    axes : tuple of int
        The axis across which each level halves the cells.

    Returns
    -------
    ndarray of int of shape (m,)
        Numbers from 0 to ``2**len(axes) - 1``.
    """
    left = {axis: axes.count(axis) for axis in set(axes)}
    steps = {}
    for axis, bits in left.items():
        share = (np.clip(np.nan_to_num(coordinates[:, axis]), -1.0, 1.0) + 1) / 2
        steps[axis] = np.minimum((share * (1 << bits)).astype(np.intp), (1 << bits) - 1)
    cells = np.zeros(len(coordinates), dtype=np.intp)
    for axis in axes:
        left[axis] -= 1
        cells = 2 * cells + (steps[axis] >> left[axis] & 1)
    return cells

"""Count records in the cells of a binary tree that halves a box, level by level."""

from dataclasses import dataclass

import numpy as np

from skdp.privacy.data.training_data import Records, TrainingData
from skdp.privacy.queries._base import CountQuery

__all__ = ["CellCounts"]


@dataclass(frozen=True, eq=False)
class CellCounts(CountQuery):
    """Count the records in the halves of some cells of a binary tree: one level of it.

    A record has one coordinate per axis of a box, its raw predictions, which are clipped to [-1, 1]. Each level of the tree
    halves all cells across one axis. The number of a cell has one bit per level, the first one at the front: whether it is the
    upper half.

    Parameters
    ----------
    coef : ndarray of shape (n_coordinates, n_axes)
        Coefficients of the coordinates, from earlier releases and public facts.
    axes : tuple of int
        The axis across which each level halves the cells, up to the level that is counted.
    parents : ndarray of int of shape (n_parents,)
        Numbers of the cells of the level before whose halves are counted; earlier releases decide which.
    """

    coef: np.ndarray
    axes: tuple[int, ...]
    parents: np.ndarray

    @property
    def size(self) -> int:
        """Number of counts, two for each of the halved cells."""
        return 2 * self.parents.size

    def sensitivity(self, adjacency: str) -> float:
        """Return 1 under ``zero_out`` and ``sqrt(2)`` under ``replace_one``.

        Proof. The tree, and which cells are counted, are the same for both tables. The coordinates of a record, and with them
        its cell, depend on this record and on earlier releases only, also as computed. So shared records cancel. A record is in
        one cell of the level: it adds 1 to one count, or to none if its cell is not counted, as a null record does. Replacing a
        record lowers one count by 1 and raises another by 1 at most.
        """
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def partial(self, rows: TrainingData) -> np.ndarray:
        """Return the un-noised counts of the lower and the upper half of each cell, cell by cell."""
        # The place of each half in the answer; those that are not counted go behind its end.
        places = np.full((1 << (len(self.axes) - 1), 2), self.size)
        places[self.parents] = np.arange(self.size).reshape(-1, 2)
        table = places.ravel()

        def place(raw: np.ndarray, records: Records) -> np.ndarray:
            return table[cells_of(raw, self.axes)]

        return rows.counts_at(self.coef, place, self.size + 1)[: self.size]


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

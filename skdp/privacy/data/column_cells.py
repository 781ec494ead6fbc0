"""Hold the cells of a table for the oracle, and count them column by column in bins."""

import copy
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from skdp.privacy.data.persons import GRAIN
from skdp.privacy.data.private_data import PrivateData


class ColumnCells(PrivateData):
    """Hold the cells of a table, any real numbers, for queries that count them in bins.

    Rows are not clipped: a cell adds 1 to at most one bin, whatever it holds. A missing cell is NaN, and so is an infinite one. A
    column of text holds the number of a hash bucket per cell. The map from a spelling to its bucket is public and maps each cell
    alone. So it is applied before the table is put here, and costs nothing.

    Parameters
    ----------
    cells : ndarray of shape (n_samples, n_features), or list of ndarray of shape (n_samples,)
        The cells, or those of each column; of any real type, which is float64 when they are counted.
    targets : ndarray of shape (n_samples,) or None, default=None
        Numbers to predict; None if no query counts them.
    presence : ndarray of shape (n_samples,) or None, default=None
        Weight of each record, a multiple of 2**-22 in [0, 1]; 0 for a null record. None if all are 1.
    n_samples : int or None, default=None
        Public number of records; None for the number of rows.
    """

    summation_error: ClassVar[float] = 0.0  # sums of multiples of 2**-22 below 2**31 are exact

    def __init__(
        self,
        cells: np.ndarray | list[np.ndarray],
        targets: np.ndarray | None = None,
        presence: np.ndarray | None = None,
        n_samples: int | None = None,
    ) -> None:
        self._columns, self._targets = cells.T if isinstance(cells, np.ndarray) else cells, targets
        self._presence = presence
        self.n_rows, self.n_features = len(self._columns[0]) if len(self._columns) else len(cells), len(self._columns)
        self.n_samples = self.n_rows if n_samples is None else n_samples

    def without(self, indices: np.ndarray) -> "ColumnCells":
        """Return the same table with some records replaced by null records, which no bin counts.

        Parameters
        ----------
        indices : ndarray of int
            Row numbers of the records to replace.

        Returns
        -------
        ColumnCells
            A table with as many records.
        """
        table = copy.copy(self)
        table._presence = np.ones(self.n_rows) if self._presence is None else self._presence.copy()
        table._presence[indices] = 0.0
        return table

    def counts(self, columns: tuple[int, ...], bins: Callable[..., np.ndarray], size: int) -> np.ndarray:
        """Return the number of records whose cells in some columns are in each bin.

        Parameters
        ----------
        columns : tuple of int
            Numbers of the columns, usually one.
        bins : callable
            Maps arrays of cells, one per column, to the index of the bin of each record, ``size`` for a record that is in none.
        size : int
            Number of bins.

        Returns
        -------
        ndarray of shape (size,)
            Counts, without null records.
        """
        return self._counts(bins(*(finite_cells(self._columns[column]) for column in columns)), size)

    def integer_sums(self, columns: tuple[int, ...], integers: Callable[..., np.ndarray]) -> np.ndarray:
        """Return sums of integers that follow from the cells of some columns, each as two numbers that add up to it.

        Both are multiples of their unit, 1 or a grain of the weights, and exact in every order of the rows, up to 2**31 records.

        Parameters
        ----------
        columns : tuple of int
            Numbers of the columns, usually one.
        integers : callable
            Maps arrays of cells, one per column, to k integers per record, of shape (k, n_samples), whose absolute values are at
            most 2**22.

        Returns
        -------
        ndarray of shape (2 * k,)
            Whole part and rest of the first sum, then of the second, and so on, without null records.
        """
        found = integers(*(finite_cells(self._columns[column]) for column in columns))
        if self._presence is None:
            parts = [found, np.zeros_like(found)]
        else:
            grains = round(1 / GRAIN)
            whole, rest = np.divmod(found * np.rint(self._presence * grains).astype(np.int64), grains)
            parts = [whole, rest]
        return np.stack([parts[0].sum(axis=1), parts[1].sum(axis=1) * GRAIN], axis=1).ravel().astype(np.float64)

    @property
    def targets(self) -> np.ndarray:
        """Numbers to predict."""
        if self._targets is None:
            raise ValueError("The table has no targets to count.")
        return self._targets

    def histogram(self, bins: Callable[["ColumnCells"], np.ndarray], size: int) -> np.ndarray:
        """Return the number of records in each bin, as `TrainingData.histogram` does; ``bins`` reads the targets."""
        return self._counts(bins(self), size)

    def _counts(self, places: np.ndarray, size: int) -> np.ndarray:
        return np.bincount(places, weights=self._presence, minlength=size + 1)[:size].astype(np.float64)


def finite_cells(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in float64, with NaN for infinite ones, and 0.0 for -0.0, since categories of pandas have either of them."""
    cells = numbers.astype(np.float64)
    cells += 0.0
    cells[np.isinf(cells)] = np.nan
    return cells

"""Map rows of functions of columns to a bin of each column, by public facts alone."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

# Edges of the bins of a number between its bounds, from 0 to 1. Choices: 128 even bins, of which the first is divided into finer
# ones, since counts and amounts concentrate there.
EVEN, FINER = 128, 8
EDGES = np.unique(
    np.concatenate([np.arange(1, EVEN) / EVEN, np.outer(0.5 ** np.arange(1, FINER + 1), [1.0, 1.5]).ravel() / EVEN])
)
# All edges are multiples of 1 / FINEST, so a table has the bin of each of its cells; several times faster than a search.
FINEST = EVEN << (FINER + 1)
# What is added before a place is rounded down, so that a cell at an edge is above it however its place was computed.
ROUNDING = 2.0**-20
NEXT_EDGE = np.searchsorted(EDGES, np.arange(FINEST + 1) / FINEST, side="right").astype(np.uint8)


@dataclass(frozen=True)
class ColumnBins:
    """Describe the bins of one column.

    Parameters
    ----------
    first, stop : int
        The features of a row that belong to the column: indicators of a category; or the value of a number, and others after it.
    ends : tuple of float or None, default=None
        Value of a number at its lower and at its upper bound; None for a category.
    missing : bool, default=False
        Whether the last feature of a number is an indicator of missing cells, which have a bin of their own, the last one.
    """

    first: int
    stop: int
    ends: tuple[float, float] | None = None
    missing: bool = False

    @property
    def size(self) -> int:
        """Number of bins."""
        return self.stop - self.first if self.ends is None else EDGES.size + 1 + self.missing

    def of_numbers(self, values: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
        """Return the bins of a number.

        Parameters
        ----------
        values : ndarray of shape (m,)
            Values as they stand in a row.
        missing : ndarray of bool of shape (m,) or None
            Which cells are missing, if these have a bin.

        Returns
        -------
        ndarray of int of shape (m,)
            Numbers of bins.
        """
        assert self.ends is not None
        low, high = self.ends
        places = np.nan_to_num(np.clip((values - low) / (high - low), 0.0, 1.0))
        bins = NEXT_EDGE[(places * FINEST + ROUNDING).astype(np.intp)]
        return bins if missing is None else np.where(missing, EDGES.size + 1, bins)


@dataclass(frozen=True)
class Bins:
    """Map rows to bins: of the value of a number, or of the indicator of a category that is 1.

    Parameters
    ----------
    columns : tuple of ColumnBins
        Public facts of each column.
    """

    columns: tuple[ColumnBins, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each column."""
        return tuple(column.size for column in self.columns)

    def empty(self, n_samples: int) -> np.ndarray:
        """Return an array for the bins of some records, of shape (n_columns, n_samples)."""
        return np.empty((len(self.columns), n_samples), dtype=np.min_scalar_type(max(self.sizes)))

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the bin of each cell.

        Parameters
        ----------
        rows : ndarray or CSR of shape (m, n_features)
            Rows of functions.

        Returns
        -------
        ndarray of unsigned int of shape (n_columns, m)
            Numbers of bins.
        """
        found, dense = self.empty(rows.shape[0]), rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        for place, column in enumerate(self.columns):
            if column.ends is None:
                found[place] = dense[:, column.first : column.stop].argmax(axis=1)
            else:
                missing = dense[:, column.stop - 1] > 0 if column.missing else None
                found[place] = column.of_numbers(dense[:, column.first], missing)
        return found

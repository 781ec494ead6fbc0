"""Map the rows of an additive basis to bins of their columns, by public facts alone."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skdp.preprocessing._additive_basis import AdditiveBasis, TermValues
from skdp.preprocessing._schema import Category

__all__ = ["EDGES", "Bins"]

# Edges of the bins of a number between its bounds, from 0 to 1. Choices: 128 even bins, of which the first is divided into finer
# ones, since counts and amounts concentrate there.
EVEN, FINER = 128, 8
EDGES = np.unique(
    np.concatenate([np.arange(1, EVEN) / EVEN, np.outer(0.5 ** np.arange(1, FINER + 1), [1.0, 1.5]).ravel() / EVEN])
)
# All edges are multiples of 1 / FINEST, so a table has the bin of each of its cells; several times faster than a search.
FINEST = EVEN << (FINER + 1)
NEXT_EDGE = np.searchsorted(EDGES, np.arange(FINEST + 1) / FINEST, side="right").astype(np.uint8)


@dataclass(frozen=True)
class Bins:
    """Map rows of a basis to bins: of the value of a number, or of the indicator of a category that is 1.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis, without pairs of columns.
    """

    basis: AdditiveBasis

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each column; the last one of a number with an indicator of missing cells is for these."""
        return tuple(
            column.n_features if isinstance(column, Category) else EDGES.size + 1 + self._has_missing(name)
            for name, column in self.basis.facts.columns.items()
        )

    @cached_property
    def are_numbers(self) -> tuple[bool, ...]:
        """Whether a column has numbers, whose bins are in order."""
        return tuple(not isinstance(column, Category) for column in self.basis.facts.columns.values())

    def has_missing(self, column: int) -> bool:
        """Return whether the last bin of a column of numbers is for missing cells."""
        return self.sizes[column] > EDGES.size + 1

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the bin of each cell.

        Parameters
        ----------
        rows : CSR of shape (n_samples, n_features)
            Rows of the basis.

        Returns
        -------
        ndarray of unsigned int of shape (n_columns, n_samples)
            Numbers of bins.
        """
        found = np.empty((len(self.sizes), rows.shape[0]), dtype=np.min_scalar_type(max(self.sizes)))
        dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        for place, term in enumerate(self.basis.terms):
            if not self.are_numbers[place]:
                found[place] = dense[:, term.columns].argmax(axis=1)
                continue
            missing = dense[:, term.columns.stop - 1] > 0 if self.has_missing(place) else None
            found[place] = self._of_number(place, dense[:, term.columns.start], missing)
        return found

    def of_values(self, place: int, values: TermValues) -> np.ndarray:
        """Return the bins of one column, which are those of the rows of the basis.

        Parameters
        ----------
        place : int
            Number of the column.
        values : TermValues
            Its term.

        Returns
        -------
        ndarray of unsigned int of shape (n_samples,)
            Numbers of bins.
        """
        if values.value is None:
            assert values.indicators is not None
            return values.indicators.indices  # one to a row
        missing = None
        if self.has_missing(place):
            assert values.indicators is not None
            missing = values.indicators[:, [-1]].toarray()[:, 0] > 0
        return self._of_number(place, values.value, missing)

    def _of_number(self, place: int, values: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
        low, high = self._ends[place]
        bins = NEXT_EDGE[(np.clip((values - low) / (high - low), 0.0, 1.0) * FINEST).astype(np.intp)]
        return bins if missing is None else np.where(missing, EDGES.size + 1, bins)

    def _has_missing(self, name: str) -> bool:
        learnt = getattr(self.basis.facts.columns[name], "learnt", None)
        return learnt is not None and bool(learnt.missing)

    @cached_property
    def _ends(self) -> list[tuple[float, float]]:
        """The values of the basis at the bounds of each number."""
        terms = zip(self.basis.terms, self.are_numbers, strict=True)
        return [self.basis.ends_of(term) if number else (0.0, 1.0) for term, number in terms]

"""Map the rows of an additive basis to bins of their columns, by public facts alone."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skdp.preprocessing._additive_basis import AdditiveBasis
from skdp.preprocessing._schema import Category

__all__ = ["EDGES", "Bins"]

# Edges of the bins of a number between its bounds, from 0 to 1. Choices: 128 even bins, of which the first is divided into finer
# ones, since counts and amounts concentrate there.
EVEN, FINER = 128, 8
EDGES = np.unique(
    np.concatenate([np.arange(1, EVEN) / EVEN, np.outer(0.5 ** np.arange(1, FINER + 1), [1.0, 1.5]).ravel() / EVEN])
)


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
        ndarray of unsigned int of shape (n_samples, n_columns)
            Numbers of bins.
        """
        found = np.empty((rows.shape[0], len(self.sizes)), dtype=np.min_scalar_type(max(self.sizes)))
        dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        for place, (term, ends) in enumerate(zip(self.basis.terms, self._ends, strict=True)):
            if ends is None:
                found[:, place] = dense[:, term.columns].argmax(axis=1)
                continue
            low, high = ends
            found[:, place] = np.searchsorted(EDGES, (dense[:, term.columns.start] - low) / (high - low), side="right")
            if self.has_missing(place):
                found[dense[:, term.columns.stop - 1] > 0, place] = EDGES.size + 1
        return found

    def _has_missing(self, name: str) -> bool:
        learnt = getattr(self.basis.facts.columns[name], "learnt", None)
        return learnt is not None and bool(learnt.missing)

    @cached_property
    def _ends(self) -> list[tuple[float, float] | None]:
        """The values of the basis at the bounds of each number; None for categories."""
        return [
            self.basis.ends_of(term) if number else None for term, number in zip(self.basis.terms, self.are_numbers, strict=True)
        ]

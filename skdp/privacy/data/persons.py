"""Weigh the rows of persons, such that a person with all her rows moves a sum by no more than one record does."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skdp.privacy.noise.sampling import order_of

# Weights are multiples of GRAIN, so that sums of weights are exact in any order, up to 2**31 records. A choice; a larger grain
# would round the weights more.
GRAIN = 2.0**-22


@dataclass(frozen=True, eq=False)
class Persons:
    r"""Hold the number of the person of each row. The number of persons is public; the number of rows is private.

    A row of a person with k rows has a weight of about 1 / k, by which its *clipped* term is multiplied. The weights of a person
    add up to exactly 1.

    *Proof that a sensitivity of a record holds for a person.* Let t(z) be the clipped term of a record, t(null) = 0, and
    :math:`\|\cdot\|` any seminorm with :math:`\|t(z) - t(z')\| \le D` and :math:`\|t(z)\| \le D_0`. A person with rows
    :math:`z_j` and weights :math:`v_j` adds :math:`T = \sum_j v_j t(z_j)`, so :math:`\|T\| \le D_0`. For another person with
    rows :math:`z'_l` and weights :math:`v'_l`, both weights are probabilities, so
    :math:`T - T' = \sum_{j,l} v_j v'_l (t(z_j) - t(z'_l))`, a convex combination of changes by one record, whose
    seminorm is at most D. Terms of other persons are the same, to the last bit if each row is computed alone, and cancel.

    Parameters
    ----------
    numbers : ndarray of int of shape (n_rows,)
        Number of the person of each row, from 0 to ``n_persons - 1``; each person has a row.
    n_persons : int
        Number of persons.
    """

    numbers: np.ndarray
    n_persons: int

    @property
    def n_rows(self) -> int:
        """Number of rows, which is private."""
        return len(self.numbers)

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of each row, in [0, 1]; the first rows of a person get what division by k leaves over."""
        counts = np.bincount(self.numbers, minlength=self.n_persons)
        whole, rest = np.divmod(round(1 / GRAIN), np.maximum(counts, 1))
        places = np.empty(len(self.numbers), dtype=np.int64)
        places[self.order] = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        weights = (whole[self.numbers] + (places < rest[self.numbers])) * GRAIN
        weights.setflags(write=False)
        return weights

    @cached_property
    def order(self) -> np.ndarray:
        """Row numbers, person by person."""
        return np.argsort(self.numbers, kind="stable")

    def in_secret_order(self, key: bytes) -> "Persons":
        """Return the same persons, numbered in the secret order of a key: ids, which decide the numbers, then decide no place."""
        return Persons(order_of(key, self.n_persons)[self.numbers], self.n_persons)

    def rows_of(self, some: np.ndarray) -> np.ndarray:
        """Return the sorted numbers of all rows of some persons."""
        chosen = np.zeros(self.n_persons, dtype=bool)
        chosen[some] = True
        return np.flatnonzero(chosen[self.numbers])


@dataclass(frozen=True, repr=False, eq=False)
class SomeRows:
    """Hold the weights of some rows of persons, who may have others elsewhere.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Weight of each row, as `Persons` computes it from all rows of its person.
    n_persons : int
        Public number of persons of the whole table.
    """

    weights: np.ndarray
    n_persons: int

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what workers get: 4 bytes per row."""
        return _of_grains, (np.rint(self.weights / GRAIN).astype(np.int32), self.n_persons)

    @property
    def n_rows(self) -> int:
        """Number of rows, which is private."""
        return len(self.weights)

    def part(self, rows: slice) -> "SomeRows":
        """Return some neighbouring rows of these."""
        return SomeRows(self.weights[rows], self.n_persons)


def shares_of(weights: np.ndarray | None) -> np.ndarray | None:
    """Return the weights of the records in [0, 1], on the grid; whatever is given, none is outside, or is not a number."""
    return None if weights is None else np.rint(np.clip(np.nan_to_num(weights), 0.0, 1.0) / GRAIN) * GRAIN


def _of_grains(grains: np.ndarray, n_persons: int) -> SomeRows:
    return SomeRows(grains * GRAIN, n_persons)

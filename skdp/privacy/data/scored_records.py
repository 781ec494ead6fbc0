"""Hold scores of records for the queries of evaluations."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skdp.privacy.data.persons import Persons
from skdp.privacy.data.private_data import PrivateData
from skdp.privacy.data.summation import BLOCK, TreeSum, chunk_rows, summation_error


@dataclass(frozen=True, eq=False)
class ScoredRecords(PrivateData):
    """Hold what a public model says about each record, with its target and its group, for the oracle.

    A score is a public function of its own record, so that computing it before costs nothing. Nothing is clipped here: each query
    bounds what a record adds, whatever its numbers are.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,) or (n_samples, n_scores)
        Log-odds, numbers of predicted classes, or several numbers of each record.
    targets : ndarray of shape (n_samples,)
        Class numbers, or absolute errors.
    groups : ndarray of int of shape (n_samples,) or None, default=None
        Number of each record's public group.
    presence : ndarray of shape (n_rows,) or None, default=None
        Weight of each record, a multiple of 2**-22 in [0, 1]; 0 for a null record. None if all are 1.
    persons : Persons or None, default=None
        Whose the rows are; None if each row is a record.
    """

    scores: np.ndarray
    targets: np.ndarray
    groups: np.ndarray | None = None
    presence: np.ndarray | None = None
    persons: Persons | None = None

    def of_persons(self, persons: Persons | None) -> "ScoredRecords":
        """Return the same rows with the weights of persons; unchanged for None."""
        return self if persons is None else replace(self, presence=persons.weights, persons=persons)

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number of records, or of persons, which is public."""
        return len(self.targets) if self.persons is None else self.persons.n_persons

    @property
    def summation_error(self) -> float:
        """Bound on the float64 error of a sum over the records, relative to the largest norm of a term."""
        return summation_error(self.n_samples, False)

    def without(self, indices: np.ndarray) -> "ScoredRecords":
        """Return the same records, of which some are replaced by null records.

        Parameters
        ----------
        indices : ndarray of int
            Row numbers of the records to replace.

        Returns
        -------
        ScoredRecords
            As many records.
        """
        presence = np.ones(len(self.targets)) if self.presence is None else self.presence.copy()
        presence[indices] = 0.0
        return replace(self, presence=presence)

    def histogram(self, bins: Callable[["ScoredRecords"], np.ndarray], size: int) -> np.ndarray:
        """Return the number of records in each bin.

        Parameters
        ----------
        bins : callable
            Maps scored records to the index of the bin of each record.
        size : int
            Number of bins.

        Returns
        -------
        ndarray of shape (size,)
            Counts, without null records.
        """
        return np.bincount(bins(self), weights=self.presence, minlength=size).astype(np.float64)

    def label_counts(self, size: int) -> np.ndarray:
        """Return the number of records by true and by predicted class, where scores are numbers of predicted classes.

        Parameters
        ----------
        size : int
            Number of pairs of classes.

        Returns
        -------
        ndarray of shape (size,)
            The confusion matrix, by rows of one true class, without null records.
        """
        shape = 2 * (round(size**0.5),)
        return self.histogram(lambda records: np.ravel_multi_index((records.targets, records.scores), shape), size)

    def term_sum(self, terms: Callable[["ScoredRecords"], np.ndarray]) -> np.ndarray:
        """Return the sum of a function of the records, added in the order of `TreeSum`.

        Parameters
        ----------
        terms : callable
            Maps scored records to the contribution of each of them, of shape (size, n_samples).

        Returns
        -------
        ndarray of shape (size,)
            The sum in float64, without null records.
        """
        total = TreeSum(chunk_rows(1))
        for start in range(0, len(self.targets), BLOCK):
            block = self._block(slice(start, start + BLOCK))
            found = terms(block)
            total.add(found.sum(axis=1) if block.presence is None else found @ block.presence, block.n_samples)
        return total.total()

    def means_of_persons(self, terms: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of a function of the rows of each person, added in the order of her rows, and her weight.

        Parameters
        ----------
        terms : callable
            Maps scores and targets of rows to a number of each of them.

        Returns
        -------
        means : ndarray of shape (n_persons,)
            Weighted means; 0 for null persons.
        presence : ndarray of shape (n_persons,)
            1, or 0 for null persons.
        """
        assert self.persons is not None and self.presence is not None
        weighted = terms(self.scores, self.targets) * self.presence, self.presence
        means, presence = (np.bincount(self.persons.numbers, weights=of, minlength=self.n_samples) for of in weighted)
        return means, presence

    def _block(self, part: slice) -> "ScoredRecords":
        arrays = (self.scores, self.targets, self.groups, self.presence)
        return ScoredRecords(*(None if array is None else array[part] for array in arrays))  # type: ignore[arg-type]


def places_on_grid(scores: np.ndarray, limit: float, n_places: int) -> np.ndarray:
    """Return the place of each score among evenly spaced numbers from ``-limit`` to ``limit``.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Any numbers; nan counts as 0.
    limit : float
        Scores beyond it count as it.
    n_places : int
        Number of numbers, odd.

    Returns
    -------
    ndarray of int of shape (m,)
        Places from 0 to ``n_places - 1``.
    """
    width = 2 * limit / (n_places - 1)
    return np.rint((np.clip(np.nan_to_num(scores), -limit, limit) + limit) / width).astype(np.intp)

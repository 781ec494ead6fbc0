"""Read the public groups of records: their labels, their sizes and the number of each record's group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from skdp._extra_facts import ExtraFacts
from skdp._label_types import numbered
from skdp._validation import check_integer, shown

CODES = np.int16  # of groups that are read from a table in partitions: 32 767 of them
FEWEST = 2  # smallest number of records in a group; a choice
EXPECTED = "expected one label per record, text or a finite number"
MISSING = "A category of its own can stand for missing."


@dataclass(frozen=True, kw_only=True)
class Groups(ExtraFacts):
    """Hold the public groups of records.

    Parameters
    ----------
    labels : ndarray of shape (n_groups,) or None, default=None
        Sorted group labels; None in a plan without a table.
    sizes : tuple of int, default=()
        Number of records in each group.
    """

    labels: np.ndarray | None = None
    sizes: tuple[int, ...] = ()

    def resized(self, n_samples: int) -> "Groups":
        """Return groups with the same shares for another number of records.

        Raises
        ------
        ValueError
            If there are too few records for all groups.
        """
        sizes = [max(size * n_samples // sum(self.sizes), FEWEST) for size in self.sizes]
        sizes[sizes.index(max(sizes))] += n_samples - sum(sizes)
        if min(sizes) < FEWEST:
            raise ValueError("There are fewer records than the groups need.")
        return replace(self, sizes=tuple(sizes))


def read_groups(groups: Any, n_samples: int) -> tuple[Groups, np.ndarray | None]:
    """Check the groups of a training table.

    Parameters
    ----------
    groups : array-like of shape (n_samples,) or None
        Group label of each record; None means one group.
    n_samples : int
        Number of records.

    Returns
    -------
    public : Groups
        Labels and sizes.
    numbers : ndarray of shape (n_samples,) or None
        Number of each record's group, in the smallest integer type; None for one group.

    Raises
    ------
    TypeError, ValueError
        If a label is missing, or a group has only one record.
    """
    if groups is None:
        return Groups(labels=np.zeros(1, dtype=np.int64), sizes=(n_samples,)), None
    labels, numbers, sizes = np.unique(check_groups(groups, n_samples), return_inverse=True, return_counts=True)
    return public_groups(labels, sizes), numbers.astype(np.min_scalar_type(-labels.size))


class GroupColumn:
    """Numbers the groups of a table that comes part by part, and counts their records."""

    def __init__(self) -> None:
        self._sizes: dict[Any, int] = {}  # by label, in the order in which they came
        self._known: dict[Any, int] = {}  # the number of each, in this order
        self._kinds: set[bool] = set()  # whether labels are text

    def numbers(self, groups: Any, n_samples: int) -> np.ndarray:
        """Return the number of each record's group, in the order in which the groups came; errors quote no label."""
        if groups is None:
            raise ValueError(
                "The table has no groups; expected one that names them, as skdp.data.npy(X, y, groups=...) does, or "
                "DPLogisticRegression, which has none."
            )
        column = check_groups(groups, n_samples)
        labels, numbers, sizes = np.unique(column, return_inverse=True, return_counts=True)
        self._kinds |= {column.dtype.kind == "U"} if n_samples else set()
        if len(self._kinds) > 1:
            raise TypeError(f"groups has labels of several types; {EXPECTED}, and all of one kind.")
        for label, size in zip(labels.tolist(), sizes.tolist(), strict=True):
            self._sizes[label] = self._sizes.get(label, 0) + size
        if len(self._sizes) > np.iinfo(CODES).max:
            raise ValueError("groups has too many labels for a table in partitions; expected fewer than 32768 groups.")
        return numbered(labels, self._known).astype(CODES)[numbers]

    def public(self) -> Groups:
        """Return the groups of the table, once it was read."""
        labels = sorted(self._sizes)
        return public_groups(np.array(labels), np.array([self._sizes[label] for label in labels]))

    @property
    def lookup(self) -> np.ndarray:
        """The number of each group, among the sorted labels, in the order in which they came."""
        return np.argsort(np.argsort(np.array(list(self._sizes))))


def public_groups(labels: np.ndarray, sizes: np.ndarray) -> Groups:
    """Return the groups of a table, or raise ValueError if one has too few records."""
    small = int((sizes < FEWEST).sum())
    if small:
        raise ValueError(f"groups has {small} label(s) of one record each; expected at least {FEWEST} records in every group.")
    return Groups(labels=labels, sizes=tuple(sizes.tolist()))


def check_group_sizes(group_sizes: Any, n_samples: int) -> tuple[int, ...]:
    """Return the group sizes of a planned fit, after checking that they add up.

    Parameters
    ----------
    group_sizes : sequence of int, dict or None
        Number of records in each group, by label in a dict; None means one group.
    n_samples : int
        Number of records in all groups.

    Returns
    -------
    tuple of int
        Sizes.

    Raises
    ------
    TypeError, ValueError
        If they are not integers of at least 2 that add up to ``n_samples``.
    """
    if group_sizes is None:
        return (n_samples,)
    sizes = list(group_sizes.values()) if isinstance(group_sizes, Mapping) else group_sizes
    sizes = sizes.tolist() if hasattr(sizes, "tolist") else sizes
    if not isinstance(sizes, Sequence) or isinstance(sizes, str) or len(sizes) == 0:
        raise TypeError(f"group_sizes={shown(group_sizes)}; expected a list of the numbers of records of all groups, or None.")
    for number, size in enumerate(sizes):
        check_integer(f"group_sizes[{number}]", size, minimum=FEWEST)
    if sum(int(size) for size in sizes) != n_samples:
        raise ValueError(f"group_sizes={shown(group_sizes)}; expected numbers that add up to n_samples={n_samples}.")
    return tuple(int(size) for size in sizes)


def check_groups(groups: Any, n_samples: int) -> np.ndarray:
    """Return the labels of the groups of some records as an array of text or of numbers."""
    try:
        labels = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    except MemoryError:
        raise
    except Exception:  # whatever an object that is no array does
        labels = np.empty((0, 0))
    if labels.ndim != 1 or np.ma.is_masked(groups):
        raise TypeError(
            f"groups is not a list or column of labels, or some are missing; {EXPECTED}: the values, such as frame['region']."
        )
    if len(labels) != n_samples:
        raise ValueError(f"groups has {len(labels)} labels for {n_samples} records; {EXPECTED}.")
    if labels.dtype.kind == "O":
        labels = _of_objects(labels)
    if labels.dtype.kind == "f":
        labels = labels.astype(np.float64)
    if labels.dtype.kind not in "biufU":
        raise TypeError(f"groups has labels of the type {labels.dtype}; {EXPECTED}.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"groups has missing or infinite labels; {EXPECTED}. {MISSING}")
    return labels


def _of_objects(labels: np.ndarray) -> np.ndarray:
    """Return labels that are all of one kind, in an array of that kind."""
    if all(isinstance(label, str) for label in labels):
        return labels.astype(str)
    if all(isinstance(label, (Integral, np.bool_)) for label in labels):
        return np.array(labels.tolist())
    if all(isinstance(label, Real) for label in labels):
        return labels.astype(np.float64)
    raise TypeError(f"groups has labels of several types, or missing ones; {EXPECTED}, and all of one kind. {MISSING}")

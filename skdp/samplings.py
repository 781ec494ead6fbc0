"""Draw the coordinates that a step of coordinate descent moves: random sets, independent of the data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from skdp._validation import check_integer, shown

__all__ = ["Blocks", "Full", "Importance", "Nice", "Sampling", "Uniform", "check_sampling", "draw"]

# Largest excess of a probability over 1 that is accepted, for rounding. A choice.
SLACK = 1e-9


class Sampling(Protocol):
    r"""A random set of coordinates :math:`S`, independent of the data.

    The mean of its sketch, :math:`\mathrm{diag}(1_{j \in S} / p_j)`, is the identity.
    """

    @property
    def probabilities(self) -> np.ndarray:
        """Probability with which the set has each coordinate, shape (n_coordinates,), in (0, 1]."""
        ...

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a set: an array of coordinate numbers, each once, at least one."""
        ...


@dataclass(frozen=True)
class Importance:
    """One coordinate, with a probability proportional to its smoothness constant.

    Parameters
    ----------
    smoothness : sequence of float
        Smoothness constants, positive, one per coordinate; other positive weights are accepted.

    Raises
    ------
    ValueError
        If there is no weight, or a weight is not positive and finite.

    References
    ----------
    .. [1] A. Maranjyan, A. Sadiev, P. Richtárik, "Differentially private random block coordinate descent", arXiv:2412.17054.
    """

    smoothness: Sequence[float]
    _limits: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weights = np.asarray(self.smoothness, dtype=np.float64)
        if weights.ndim != 1 or not weights.size or not ((weights > 0) & (weights < np.inf)).all():
            raise ValueError(f"smoothness={shown(self.smoothness)}; expected positive finite numbers, one per coordinate.")
        limits = np.cumsum(weights / weights.max())
        object.__setattr__(self, "_limits", limits / limits[-1])

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of every coordinate, shape (n_coordinates,)."""
        weights = np.asarray(self.smoothness, dtype=np.float64)
        weights = weights / weights.max()
        return weights / weights.sum()

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Draw one coordinate: an array of shape (1,)."""
        return np.array([np.searchsorted(self._limits, rng.random(), side="right")])


@dataclass(frozen=True)
class Nice:
    """A set of a given size, all equally likely: "tau-nice".

    Parameters
    ----------
    n_coordinates : int
        Number of coordinates d.
    tau : int
        Size of the sets, from 1 to d.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not such an integer.
    """

    n_coordinates: int
    tau: int

    def __post_init__(self) -> None:
        check_integer("n_coordinates", self.n_coordinates, minimum=1)
        check_integer("tau", self.tau, minimum=1, maximum=int(self.n_coordinates))

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of every coordinate, tau / d each, shape (n_coordinates,)."""
        return np.full(int(self.n_coordinates), int(self.tau) / int(self.n_coordinates))

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a set: an array of shape (tau,), sorted."""
        if self.tau == 1:
            return rng.integers(int(self.n_coordinates), size=1)
        return np.sort(rng.choice(int(self.n_coordinates), size=int(self.tau), replace=False))


@dataclass(frozen=True, init=False, repr=False)
class Uniform(Nice):
    """One coordinate, all equally likely.

    Parameters
    ----------
    n_coordinates : int
        Number of coordinates.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "Differentially private coordinate descent for composite empirical risk
       minimization", ICML 2022.
    """

    def __init__(self, n_coordinates: int) -> None:
        super().__init__(n_coordinates, 1)

    def __repr__(self) -> str:
        return f"Uniform({self.n_coordinates!r})"


@dataclass(frozen=True, init=False, repr=False)
class Full(Nice):
    """All coordinates in every step: gradient descent.

    Parameters
    ----------
    n_coordinates : int
        Number of coordinates.
    """

    def __init__(self, n_coordinates: int) -> None:
        super().__init__(n_coordinates, n_coordinates)

    def __repr__(self) -> str:
        return f"Full({self.n_coordinates!r})"

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Return all coordinates; ``rng`` is not used."""
        return np.arange(int(self.n_coordinates))


@dataclass(frozen=True)
class Blocks:
    """One block of a partition, all equally likely, such as the one-hot columns of a categorical variable.

    Parameters
    ----------
    n_coordinates : int
        Number of coordinates.
    partition : sequence of sequence of int
        Blocks of coordinate numbers; no number is in two blocks. Coordinates in no block are blocks of their own.

    Raises
    ------
    TypeError, ValueError
        If a block is empty, or has an entry that is no coordinate number or is in another block.
    """

    n_coordinates: int
    partition: Sequence[Sequence[int]]
    _blocks: tuple[np.ndarray, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_integer("n_coordinates", self.n_coordinates, minimum=1)
        object.__setattr__(self, "_blocks", _completed(self.partition, int(self.n_coordinates)))

    @property
    def blocks(self) -> tuple[np.ndarray, ...]:
        """All blocks: the given ones, then the others."""
        return self._blocks

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of every coordinate, one over the number of blocks each, shape (n_coordinates,)."""
        return np.full(int(self.n_coordinates), 1 / len(self._blocks))

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Draw one block: a sorted array of its coordinates."""
        return self._blocks[rng.integers(len(self._blocks))]


def _completed(partition: Any, n_coordinates: int) -> tuple[np.ndarray, ...]:
    """Sorted blocks, and one more for each coordinate in no block."""
    expected = (
        f"expected a list of lists of different column numbers from 0 to {n_coordinates - 1}, with intercept its number the last"
    )
    if not isinstance(partition, (list, tuple)) or not all(isinstance(block, (list, tuple, np.ndarray)) for block in partition):
        raise TypeError(f"blocks={shown(partition)}; {expected}.")
    for block in partition:
        for number in np.asarray(block, dtype=object).ravel():
            if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)):
                raise TypeError(f"blocks={shown(partition)}; {expected}.")
    seen = [int(number) for block in partition for number in np.asarray(block, dtype=object).ravel()]
    wrong = [number for number, count in Counter(seen).items() if count > 1 or not 0 <= number < n_coordinates]
    if wrong or not all(len(block) for block in partition):
        which = f" ({wrong[0]} is named twice or no column)" if wrong else ""
        raise ValueError(f"blocks={shown(partition)}{which}; {expected}, no block empty.")
    given = [np.sort(np.array([int(number) for number in np.ravel(block)])) for block in partition]
    rest = np.setdiff1d(np.arange(n_coordinates), np.array(seen, dtype=int))
    return (*given, *rest[:, None])


def check_sampling(sampling: Any, n_coordinates: int) -> None:
    """Raise TypeError or ValueError unless an object is a sampling of the given number of coordinates.

    Parameters
    ----------
    sampling : object
        Object that the user gave.
    n_coordinates : int
        Number of coordinates, the intercept included.

    Raises
    ------
    TypeError, ValueError
        If it lacks ``sample`` or ``probabilities``, or does not have one probability in (0, 1] per coordinate.
    """
    coordinates = f"{n_coordinates} coordinates, with intercept the last"
    expected = f"expected an object with sample(rng) and probabilities in (0, 1] of {coordinates}"
    if isinstance(sampling, type) or not callable(getattr(sampling, "sample", None)) or not hasattr(sampling, "probabilities"):
        raise TypeError(f"sampling={shown(sampling)}; {expected}.")
    found = sampling.probabilities
    probabilities = np.asarray(found) if isinstance(found, (list, tuple, np.ndarray)) else np.empty(0)
    if probabilities.shape != (n_coordinates,) or probabilities.dtype.kind not in "fi":
        raise ValueError(f"sampling={shown(sampling)} has probabilities {shown(found)}; {expected}.")
    if not ((probabilities > 0) & (probabilities <= 1 + SLACK)).all():
        raise ValueError(f"sampling={shown(sampling)} has probabilities {shown(found)}; {expected}.")


def draw(sampling: Sampling, rng: np.random.Generator, n_coordinates: int) -> np.ndarray:
    """Draw a set and check it.

    Parameters
    ----------
    sampling : Sampling
        Sampling that draws it.
    rng : Generator
        Public randomness.
    n_coordinates : int
        Number of coordinates.

    Returns
    -------
    ndarray of int
        Sorted numbers of coordinates, each once.

    Raises
    ------
    ValueError
        If the result of ``sample`` is not such an array, or empty.
    """
    drawn = sampling.sample(rng)
    known = isinstance(drawn, np.ndarray) and drawn.ndim == 1 and drawn.dtype.kind in "iu"
    block = np.sort(drawn) if known else np.empty(0)
    if not block.size or block[0] < 0 or block[-1] >= n_coordinates or (block[1:] == block[:-1]).any():
        raise ValueError(
            f"sampling={shown(sampling)} drew {shown(drawn)}; expected a one-dimensional array of different integers from 0 to "
            f"{n_coordinates - 1}, at least one."
        )
    return block.astype(np.intp, copy=False)

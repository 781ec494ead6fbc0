"""Score numbers by how near their ranks are to given ranks, for quantiles: of a whole column, or of disjoint parts of it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.queries._base import Scores, SumQuery, WithParameters

__all__ = ["RankScores", "Ranks"]

# Roundings of a score in units of 2**-53 of the number of records, less those of `Scores.score_rounding`: two interpolations and
# two differences, product and sum of the target, the comparison, all doubled by the division by the larger share. Rounded up.
ROUNDINGS = 16


@dataclass(frozen=True, eq=False)
class Ranks(WithParameters):
    """Describe one choice: the records among which ranks count, the rank that is looked for, and the candidates.

    Parameters
    ----------
    start, stop : float
        Places between which the records are; see `RankScores`.
    share : float
        Share of these records that is to be below the answer, in (0, 1).
    shift : float
        Number of records that is added to the rank.
    low, high : ndarray of shape (m,)
        Places at which each candidate begins and ends; from ``start`` to ``stop``.
    offset : ndarray of shape (m,)
        Public preference for each candidate, which is added to its score.
    """

    start: float
    stop: float
    share: float
    shift: float
    low: np.ndarray
    high: np.ndarray
    offset: np.ndarray

    @property
    def larger_share(self) -> float:
        """Largest change of a score, before it is divided by this number, if a record leaves."""
        return max(self.share, 1 - self.share)


@dataclass(frozen=True, eq=False)
class RankScores(SumQuery, Scores):
    r"""Score candidates for quantiles of a column, each by minus the distance of a rank from its ranks.

    The cells are clipped to the edges. A cell that is an edge has its number, and one between two edges has that of the gap:
    0 is the first edge, 1 the gap after it, 2 the second edge. The record is spread evenly from its number to the next one, so
    that the number of records below a *place* p, ``B(p)``, is piecewise linear. For records between the places a and b, let N be
    ``B(b) - B(a)``. The score of a candidate from l to h, for the share s and the shift t, is

    .. math:: -\max(0,\; B(l) - B(a) - s N - t,\; s N + t - B(h) + B(a)) / \max(s, 1 - s) + \text{offset}.

    Missing cells are nowhere. The candidates of each choice have a winner of their own.

    Parameters
    ----------
    column : int
        Number of the column.
    edges : ndarray of shape (m,)
        Increasing numbers, from public facts or earlier releases.
    choices : tuple of Ranks
        What is chosen; from public facts and earlier releases. No two have a record in common: their places are disjoint.
    """

    column: int
    edges: np.ndarray
    choices: tuple[Ranks, ...]

    relative_sensitivity: ClassVar[dict[str, float]] = {"replace_one": 2.0, "zero_out": 1.0}
    clip_norm: ClassVar[float] = 1.0
    additive: ClassVar[bool] = False
    shares_partial: ClassVar[bool] = True

    def parameters(self) -> tuple[float | np.ndarray, ...]:
        """Return the numbers of all fields and of all choices."""
        return *super().parameters(), *(number for choice in self.choices for number in choice.parameters())

    @property
    def size(self) -> int:
        """Number of candidates of all choices."""
        return sum(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of candidates of each choice."""
        return tuple(choice.low.size for choice in self.choices)

    @property
    def n_leaves(self) -> int:
        """Number of edges and of gaps between them."""
        return 2 * self.edges.size - 1

    def sensitivity(self, adjacency: str) -> float:
        r"""Return 1 under ``zero_out``; 2 under ``replace_one``, or :math:`1 / \max(s, 1 - s)` for a single choice.

        It bounds the sum over the choices of the largest change of a score of each. The log-ratio of the probabilities of one
        choice is in an interval whose length is twice that change over the scale of the noise. Choices have independent noise, so
        that of all of them is in an interval of the sum of these lengths: together they cost what one selection costs.

        Proof. The numbers B are sums over the records, each spread by its own cell and by public edges, given the earlier
        releases. Let a record have the part w of its spread between the places of a choice, of which the part u is below a
        candidate's place p. With it, ``B(p) - B(a) - s N - t`` grows by ``u - s w``, which is in ``[-s w, (1 - s) w]``. A score
        is a maximum of such numbers and 0, with both signs, over ``max(s, 1 - s)``, so it moves by at most w. The places of
        the choices are disjoint, so the w of a record add up to at most 1, also with a weight in [0, 1], and so do those of a
        person, whose rows have weights that add up to 1: ``zero_out``. To replace a record is to take one out and to put one in:
        2. With a single choice, the number above moves by ``(u' - s w') - (u - s w)``. This is at most 1 in absolute value:
        it is linear in w and w', where ``0 <= u <= w`` and ``0 <= u' <= w'``; if both are 1 it is ``u' - u``, and otherwise
        at an end it is s or 1 - s or less.

        Both are attained: for q = 1/2, by a record below the answer that moves above it, and for several choices by one that
        moves from the places of one choice to those of another.
        """
        if adjacency == "replace_one" and len(self.choices) == 1:
            return 1 / self.choices[0].larger_share
        return self.relative_sensitivity[adjacency] * self.clip_norm

    def rounding_error(self, n_samples: int, summation_error: float) -> float:
        """Return a bound on the float64 error of a score and of adding noise to it."""
        offset = max(abs(choice.shift) + float(np.abs(choice.offset).max(initial=0.0)) for choice in self.choices)
        return self.score_rounding(n_samples, ROUNDINGS, summation_error, offset)

    def partial(self, rows: ColumnCells) -> np.ndarray:
        """Return the un-noised number of cells at each edge and in each gap."""
        return rows.counts((self.column,), self._leaves, self.n_leaves)

    def summed(self) -> tuple[np.ndarray, ...]:
        """Return all that the sum depends on: column and edges."""
        return np.array(self.column), self.edges

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the un-noised scores of all candidates, choice by choice."""
        below = np.concatenate([[0.0], np.cumsum(total)])
        return np.concatenate([_scores(choice, below) for choice in self.choices])

    def groups(self, scores: np.ndarray) -> list[np.ndarray]:
        """Return the scores of the candidates of each choice."""
        return np.split(scores, np.cumsum(self.sizes)[:-1])

    def _leaves(self, cells: np.ndarray) -> np.ndarray:
        values = np.clip(cells, self.edges[0], self.edges[-1])  # NaN stays
        places = np.searchsorted(self.edges, values, "left") + np.searchsorted(self.edges, values, "right") - 1
        return np.where(np.isnan(values), self.n_leaves, places)


def _scores(choice: Ranks, below: np.ndarray) -> np.ndarray:
    start, stop = _at(below, np.array([choice.start, choice.stop]))
    target = choice.share * (stop - start) + choice.shift
    beyond, short = _at(below, choice.low) - start - target, target - (_at(below, choice.high) - start)
    return choice.offset - np.maximum(0.0, np.maximum(beyond, short)) / choice.larger_share


def _at(below: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the number of records below places, from those below whole ones."""
    whole = np.minimum(places.astype(np.intp), below.size - 2)
    return below[whole] + (places - whole) * (below[whole + 1] - below[whole])

"""Place the candidates of quantiles on a line of public numbers and of gaps between them."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp.privacy.queries import Ranks
from skdp.stats._candidates import edges_for

# Numbers that are candidates for one quantile and, with several places for each, for several. Choices: more find quantiles of
# columns whose bounds are wider.
CANDIDATES, FEWER = 8192, 2048
# Places of a number, of a gap, of an integer if there are few, and of 0 and the bounds. Choices: many records may share these,
# and those at one place are not divided. Set by coverage on made-up columns, of 60 % zeros, and of Pareto tails in far bounds.
OF_NUMBERS, OF_GAPS, OF_INTEGERS, OF_ENDS, FEW_INTEGERS = 8, 64, 128, 4096, 512


@dataclass(frozen=True, eq=False)
class RankLine:
    """Map places, as `RankScores` counts them, to numbers, and make the candidates of choices.

    Parameters
    ----------
    edges : ndarray of shape (m,)
        Increasing numbers. Leaf 2i is the edge i, and leaf 2i + 1 the gap after it.
    integers : bool
        Whether all cells are integers, by the type of the column.
    """

    edges: np.ndarray
    integers: bool

    @classmethod
    def between(cls, low: float, high: float, most: int, integers: bool) -> "RankLine":
        """Return the line of at most ``most`` numbers between bounds."""
        edges = edges_for(low, high, most)
        whole = np.unique(np.rint(edges[(np.rint(edges) >= low) & (np.rint(edges) <= high)]))
        return cls(whole if integers and whole.size > 1 else edges, integers)

    @property
    def last(self) -> int:
        """Leaf of the last edge."""
        return 2 * self.edges.size - 2

    @cached_property
    def empty(self) -> np.ndarray:
        """Whether no cell can be in a leaf: in the gap between two integers."""
        gaps = np.diff(self.edges, append=self.edges[-1] + 2)
        return np.stack([np.zeros(gaps.size, dtype=bool), self.integers & (gaps <= 1)], axis=1).ravel()[:-1]

    @cached_property
    def steps(self) -> np.ndarray:
        """Number of places of each leaf, powers of 2."""
        whole = self.edges == np.rint(self.edges)
        steps = np.where(np.arange(self.last + 1) % 2 == 1, OF_GAPS, OF_NUMBERS)
        steps[::2][whole & (whole.sum() <= FEW_INTEGERS)] = OF_INTEGERS
        steps[::2][(self.edges == 0) | np.isin(self.edges, self.edges[[0, -1]])] = OF_ENDS
        return np.where(self.empty, 0, steps)

    @cached_property
    def places(self) -> np.ndarray:
        """All places, increasing; multiples of a power of 2, so that numbers of records below them are exact."""
        within = np.arange(self.steps.sum()) - np.repeat(np.cumsum(self.steps) - self.steps, self.steps)
        places = np.repeat(np.arange(self.steps.size), self.steps) + within / np.repeat(self.steps, self.steps)
        return np.append(places, self.last + 1.0)

    def end(self, start: float, stop: float, share: float, shift: float, noise: float) -> Ranks:
        """Return a choice among leaves from one place to another, by their ranks among the records between, for an interval.

        A leaf that holds many records counts as much as an empty one: among places within leaves, those of empty leaves nearby
        would win, and the interval would end before the records.
        """
        leaves = np.arange(min(int(start), self.last), min(math.ceil(stop), self.last + 1))
        leaves = leaves[~self.empty[leaves]] if stop > start else np.array([min(int(start), self.last)])
        low, high = np.clip(leaves, start, stop), np.clip(leaves + 1, start, stop)
        offset = self._preference(leaves, False) * noise / max(share, 1 - share)
        return Ranks(float(start), float(stop), share, shift, low, high, offset)

    def part(self, start: float, stop: float, share: float, noise: float) -> Ranks:
        """Return a choice among places from one to another, by their ranks among the records between."""
        first, last = np.searchsorted(self.places, [start, stop])
        places = self.places[first : last + 1]
        leaves = np.minimum(places.astype(int), self.last)
        offset = (self._preference(leaves, True) - np.log(self.steps[leaves])) * noise / max(share, 1 - share)
        return Ranks(float(start), float(stop), share, 0.0, places, places, offset)

    def whole(self, first: int, last: int, share: float, shift: float, noise: float) -> Ranks:
        """Return a choice among leaves from one to another, by their ranks among all records."""
        leaves = first + np.flatnonzero(~self.empty[first : last + 1])
        offset = self._preference(leaves, (first, last) == (0, self.last)) * noise / max(share, 1 - share)
        return Ranks(0.0, self.last + 1.0, share, shift, leaves.astype(float), leaves + 1.0, offset)

    def _preference(self, leaves: np.ndarray, typical: bool) -> np.ndarray:
        """Return the logarithm of a preference: by number, by length, for the bounds; if typical, for 0 and integers.

        What is typical must not attract the ends of intervals, which would then be too short.
        """
        edges, gap = self.edges[leaves // 2], leaves % 2 == 1
        lengths = np.where(gap, np.diff(self.edges, append=self.edges[-1])[leaves // 2], 0.0)
        ends = (leaves == 0) | (leaves == self.last) | (~gap & (edges == 0) & typical)
        kinds = [np.ones(leaves.size), lengths, ends, ~gap & (edges == np.rint(edges)) & typical]
        kinds = [weight / total for weight in kinds if (total := weight.sum()) > 0]
        return np.log(np.sum(kinds, axis=0) / len(kinds))

    def numbers(self, places: np.ndarray) -> np.ndarray:
        """Return the number at each place; within a gap it is between its edges."""
        leaves = np.minimum(places.astype(int), self.last)
        low, high = self.edges[leaves // 2], self.edges[(leaves + 1) // 2]
        found = low + (places - leaves) * (leaves % 2) * (high - low)
        return np.clip(np.rint(found), self.edges[0], self.edges[-1]) if self.integers else found

    def around(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest edges that are not above places, and those that are not below others."""
        below, above = (np.minimum(places.astype(int), self.last) for places in (low, np.ceil(high)))
        return self.edges[below // 2], self.edges[above // 2]

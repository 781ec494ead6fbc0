"""Plan the choices from which quantiles follow, level by level, and make them; intervals follow from further choices."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skdp.privacy.queries import Query, Ranks, RankScores
from skdp.privacy.schedule import Release, Schedule, Selection

# Numbers that are candidates for one quantile and, with several places for each, for several. Choices: more find quantiles of
# columns whose bounds are wider.
CANDIDATES, FEWER = 8192, 2048
# Places of an edge, of a gap, of an integer if there are few, and of 0 and the bounds. Choices: many records may share these.
OF_EDGES, OF_GAPS, OF_INTEGERS, OF_ENDS, FEW_INTEGERS = 8, 64, 128, 4096, 512
# Share of epsilon for the numbers themselves, if intervals are asked for. A choice: see `docs/user_guide/statistics.md`.
MAIN = 0.8
# Share of the records between two numbers up to which an end of an interval is looked for between them. A choice.
ROOM = 0.75
# Logarithm of how much more preference candidates beyond all records may have than those near a rank, and 3.7 more, so that one of
# them is chosen with a probability of at most .025. Derived: 2**19 candidates of several quantiles in all, a quarter by number.
LARGEST = 17.0


@dataclass(frozen=True)
class Node:
    """Describe a choice of a level: the number of its quantile, and those of the ones around it, already chosen.

    Parameters
    ----------
    quantile : int
        Number of the quantile, from 1 on.
    lower, upper : int
        Numbers of those between which it is; 0 and one more than there are stand for the ends of the range.
    """

    quantile: int
    lower: int
    upper: int


def halved(shares: Sequence[float]) -> list[list[Node]]:
    """Return the levels of a tree over increasing shares, each near the middle of what is around it.

    The tree has the smallest depth that there is.
    """
    ends, blocks, levels = [0.0, *shares, 1.0], [(0, len(shares) + 1)], []
    for depth in range(len(shares).bit_length() - 1, -1, -1):
        most, level = 2**depth - 1, []  # quantiles on either side
        for lower, upper in blocks:
            options = range(max(lower + 1, upper - 1 - most), min(upper, lower + 2 + most))
            middle = (ends[lower] + ends[upper]) / 2
            if options:
                level.append(Node(min(options, key=lambda i: abs(ends[i] - middle)), lower, upper))
        levels.append(level)
        blocks = [block for node in level for block in ((node.lower, node.quantile), (node.quantile, node.upper))]
    return levels


@dataclass(frozen=True)
class End:
    """Describe the choice of an end of an interval: the number of its quantile, and whether it is above it.

    Parameters
    ----------
    quantile : int
        Number of the quantile, from 1 on.
    above : bool
        Whether it is the upper end, between this quantile and the next one.
    records : float
        Number of records between the two.
    """

    quantile: int
    above: bool
    records: float = 0.0


@dataclass(frozen=True)
class RankSearch:
    """Hold the public facts of the choices for quantiles of a column, and make them.

    Parameters
    ----------
    shares : tuple of float
        Increasing shares of the records, in (0, 1).
    adjacency : {"replace_one", "zero_out"}
        Which tables are neighbours.
    n_samples : int
        Public number of records.
    z : float or None
        Quantile of the normal law for the intervals; None without them.
    scale : float, default=0.0
        Scale of the noise over sensitivity, for a release of weight 1.
    ends : tuple of tuple of End, default=()
        Ends of intervals, level by level.
    """

    shares: tuple[float, ...]
    adjacency: str
    n_samples: int
    z: float | None
    scale: float = 0.0
    ends: tuple[tuple[End, ...], ...] = ()

    @classmethod
    def planned(
        cls, shares: Sequence[float], adjacency: str, n_samples: int, z: float | None, calibrated: Callable[[Schedule], float]
    ) -> "RankSearch":
        """Plan the choices; ``calibrated`` returns the scale at which a schedule spends the budget.

        An end of an interval that is further from its number than most of the records up to the next one is no choice: it is
        this one, or another one beyond.
        """
        m = len(shares)
        search = cls(tuple(shares), adjacency, n_samples, z)
        if z is not None and m == 1:
            search = replace(search, ends=((End(1, False),), (End(1, True),)))
        elif z is not None:
            first = (End(1, False), *(End(i, True) for i in range(1, m + 1)))
            search = replace(search, ends=(first, tuple(End(i, False) for i in range(2, m + 1))))
        search = replace(search, scale=calibrated(search.schedule))
        if z is None:
            return search
        kept = [
            tuple(end for end in level if search.sure(end) and search.records_to(end) <= ROOM * search.gap(end)) for level in search.ends
        ]
        search = replace(search, ends=tuple(level for level in kept if level))
        search = replace(search, scale=calibrated(search.schedule))
        return replace(
            search, ends=tuple(tuple(replace(end, records=search.records_to(end)) for end in level) for level in search.ends)
        )

    @cached_property
    def levels(self) -> list[list[Node]]:
        """Levels of the numbers themselves."""
        return halved(self.shares)

    @cached_property
    def weights(self) -> list[float]:
        """Weight of each level, first of the numbers, then of the ends of intervals."""
        ends = [level for level in self.ends if level]
        main = MAIN if ends else 1.0
        return [len(self.levels) / main] * len(self.levels) + [len(ends) / (1 - main) for _ in ends]

    @property
    def schedule(self) -> Schedule:
        """The releases."""
        sizes = [len(level) for level in (*self.levels, *self.ends) if level]
        return Schedule(
            tuple(
                (1, Release(RankScores, Selection(weight, size), RankScores.clip_norm, size))
                for weight, size in zip(self.weights, sizes, strict=True)
            )
        )

    def gap(self, end: End) -> float:
        """Return the number of records between a quantile and the next one on the side of the end."""
        ends = [0.0, *self.shares, 1.0]
        return self.n_samples * abs(ends[end.quantile + (1 if end.above else -1)] - ends[end.quantile])

    def noise(self, level: int, size: int, larger_share: float) -> float:
        """Return the scale of the noise of a choice, in records."""
        sensitivity = RankScores.relative_sensitivity[self.adjacency] * larger_share
        if self.adjacency == "replace_one" and size == 1:
            sensitivity = 1.0
        return self.scale * self.weights[level] * sensitivity

    def sure(self, end: End) -> bool:
        """Return whether a number cannot be beyond all records on the side away from an end, however many candidates are there."""
        ends = [0.0, *self.shares, 1.0]
        for place, level in enumerate(self.levels):
            for node in level:
                if node.quantile == end.quantile:
                    share = (ends[node.quantile] - ends[node.lower]) / (ends[node.upper] - ends[node.lower])
                    noise = self.noise(place, len(level), max(share, 1 - share))
                    away = ends[node.quantile] - ends[node.lower] if end.above else ends[node.upper] - ends[node.quantile]
                    return self.n_samples * away > noise * LARGEST
        raise AssertionError

    @cached_property
    def variances(self) -> list[float]:
        """Variance of the noise in the rank of each number, with 0 for the ends of the range."""
        ends, found = [0.0, *self.shares, 1.0], [0.0] * (len(self.shares) + 2)
        for place, level in enumerate(self.levels):
            for node in level:
                share = (ends[node.quantile] - ends[node.lower]) / (ends[node.upper] - ends[node.lower])
                own = self.noise(place, len(level), max(share, 1 - share))
                found[node.quantile] = 2 * own**2 + (1 - share) ** 2 * found[node.lower] + share**2 * found[node.upper]
        return found

    def records_to(self, end: End) -> float:
        """Return the number of records between a quantile and the end of its interval: for sampling and for noise."""
        share, alone = self.shares[end.quantile - 1], len(self.shares) == 1
        own = self.noise(-1, 1 if alone else 2, max(share, 1 - share) if alone else 1.0)
        spread = self.n_samples * share * (1 - share) + 2 * own**2 + (0.0 if alone else self.variances[end.quantile])
        return float(self.z or 0.0) * math.sqrt(spread)

    def find(self, ask: Callable[[Query], np.ndarray], column: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Make the releases; return the numbers, and the ends of their intervals.

        Parameters
        ----------
        ask : callable
            Returns the noisy answer to a query, `Oracle.ask`.
        column : int
            Number of the column.
        edges : ndarray
            Candidates.

        Returns
        -------
        tuple of ndarray
            Numbers of shape (m,) and intervals of shape (m, 2).
        """
        if len(self.shares) == 1:
            return self._find_one(ask, column, edges)
        line = Line(edges)
        places = np.array([0.0, *[math.nan] * len(self.shares), line.stop])
        ends = [0.0, *self.shares, 1.0]
        for level, nodes in enumerate(self.levels):
            choices = []
            for node in nodes:
                share = (ends[node.quantile] - ends[node.lower]) / (ends[node.upper] - ends[node.lower])
                noise = self.noise(level, len(nodes), max(share, 1 - share))
                choices.append(line.ranks(places[node.lower], places[node.upper], share, 0.0, noise))
            chosen = ask(RankScores(column, edges, tuple(choices))).astype(int)
            for node, choice, index in zip(nodes, choices, chosen, strict=True):
                places[node.quantile] = choice.low[index]
        intervals = self._released(places)
        for level, some in enumerate(self.ends, len(self.levels)):
            choices = []
            for end in some:
                lower = end.quantile - (not end.above)
                noise = self.noise(level, len(some), 1.0)
                shift = end.records if end.above else -end.records
                choices.append(line.ranks(places[lower], places[lower + 1], float(not end.above), shift, noise))
            chosen = ask(RankScores(column, edges, tuple(choices))).astype(int)
            for end, choice, index in zip(some, choices, chosen, strict=True):
                outside = np.clip(index + (1 if end.above else -1), 0, choice.low.size - 1)
                intervals[end.quantile - 1, int(end.above)] = choice.low[outside]
        numbers = line.numbers(places[1:-1])
        low, high = line.below(intervals[:, 0]), line.above(intervals[:, 1])
        return numbers, np.column_stack([np.minimum(low, numbers), np.maximum(high, numbers)])

    def _find_one(self, ask: Callable[[Query], np.ndarray], column: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        line, share = Line(edges), self.shares[0]
        larger = max(share, 1 - share)

        def chosen(first: int, last: int, level: int, shift: float) -> int:
            choice = line.whole(first, last, share, shift, self.noise(level, 1, larger))
            return first + int(ask(RankScores(column, edges, (choice,)))[0])

        found = chosen(0, line.last, 0, 0.0)
        low, high = 0, line.last
        for level, (end,) in enumerate(self.ends, 1):
            if end.above:
                high = chosen(found, line.last, level, end.records)
            else:
                low = chosen(0, found, level, -end.records)
        number = (edges[found // 2] + edges[(found + 1) // 2]) / 2
        return np.array([number]), edges[np.array([[low // 2, (high + 1) // 2]])]

    def _released(self, places: np.ndarray) -> np.ndarray:
        """Return intervals between places that are chosen already, or the ends of the range."""
        ends, found = np.array([0.0, *self.shares, 1.0]), []
        for i in range(1, ends.size - 1):
            reach = float(self.z or 0.0) * np.sqrt(
                np.array(self.variances) + self.n_samples * ends[i] * (1 - ends[i])
            )
            far = self.n_samples * np.abs(ends - ends[i]) >= reach
            low = [j for j in range(i) if j == 0 or far[j] and self.sure(End(j, False))]
            high = [j for j in range(i + 1, ends.size) if j == ends.size - 1 or far[j] and self.sure(End(j, True))]
            found.append([places[low[-1]], places[high[0]]])
        return np.array(found)


@dataclass(frozen=True)
class Line:
    """Map places, as `RankScores` counts them, to numbers, and make the candidates of choices.

    Parameters
    ----------
    edges : ndarray of shape (m,)
        Increasing numbers.
    """

    edges: np.ndarray

    @property
    def stop(self) -> float:
        """Place behind the last edge."""
        return 2.0 * self.edges.size - 1

    @property
    def last(self) -> int:
        """Leaf of the last edge."""
        return 2 * self.edges.size - 2

    @cached_property
    def steps(self) -> np.ndarray:
        """Number of places of each leaf."""
        integers = self.edges == np.rint(self.edges)
        steps = np.full(2 * self.edges.size - 1, OF_EDGES)
        steps[1::2] = OF_GAPS
        steps[::2][integers & (integers.sum() <= FEW_INTEGERS)] = OF_INTEGERS
        steps[::2][(self.edges == 0) | np.isin(self.edges, self.edges[[0, -1]])] = OF_ENDS
        return steps

    @cached_property
    def places(self) -> np.ndarray:
        """All places, increasing; multiples of a power of 2, so that ranks at places are exact."""
        firsts = np.cumsum(self.steps) - self.steps
        within = np.arange(self.steps.sum()) - np.repeat(firsts, self.steps)
        return np.append(np.repeat(np.arange(self.steps.size), self.steps) + within / np.repeat(self.steps, self.steps), self.stop)

    def ranks(self, start: float, stop: float, share: float, shift: float, noise: float) -> Ranks:
        """Return a choice among places, by their ranks among the records from one place to another."""
        first, last = np.searchsorted(self.places, [start, stop])
        places = self.places[first : last + 1]
        leaves = np.minimum(places.astype(int), self.last)
        offset = (self._preference(leaves, True) - np.log(self.steps[leaves])) * noise / max(share, 1 - share)
        return Ranks(float(start), float(stop), share, shift, places, places, offset)

    def whole(self, first: int, last: int, share: float, shift: float, noise: float) -> Ranks:
        """Return a choice among edges and gaps between them, by their ranks among all records."""
        leaves = np.arange(first, last + 1)
        offset = self._preference(leaves, leaves.size == self.steps.size) * noise / max(share, 1 - share)
        return Ranks(0.0, self.stop, share, shift, leaves.astype(float), leaves + 1.0, offset)

    def _preference(self, leaves: np.ndarray, typical: bool) -> np.ndarray:
        """Return the logarithm of a preference for leaves: by number, by length, for the bounds and, if typical, for integers."""
        edges, gap = self.edges[leaves // 2], leaves % 2 == 1
        lengths = np.where(gap, np.diff(self.edges, append=self.edges[-1])[leaves // 2], 0.0)
        ends = (leaves == 0) | (leaves == self.last)
        kinds = [np.ones(leaves.size), lengths, ends | (~gap & (edges == 0) & typical)]
        kinds += [~gap & (edges == np.rint(edges))] if typical else []
        kinds = [weight / total for weight in kinds if (total := weight.sum()) > 0]
        return np.log(sum(kinds) / len(kinds))

    def numbers(self, places: np.ndarray) -> np.ndarray:
        """Return the number at each place; within a gap it is between its edges."""
        leaves = np.minimum(places.astype(int), self.last)
        low, high = self.edges[leaves // 2], self.edges[(leaves + 1) // 2]
        return low + (places - leaves) * (leaves % 2) * (high - low)

    def below(self, places: np.ndarray) -> np.ndarray:
        """Return the nearest edge that is not above each place."""
        return self.edges[np.minimum(places.astype(int), 2 * self.edges.size - 2) // 2]

    def above(self, places: np.ndarray) -> np.ndarray:
        """Return the nearest edge that is not below each place."""
        return self.edges[np.minimum(np.ceil(places).astype(int), 2 * self.edges.size - 2) // 2]


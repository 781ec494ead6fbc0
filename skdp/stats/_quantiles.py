"""Release quantiles of a column: one by a single choice, several by halving, and their intervals by further choices."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._validation import shown
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.errors import silently
from skdp.privacy.queries import RankScores
from skdp.privacy.queries.rank_scores import ROUNDINGS
from skdp.privacy.schedule import Laplace, Release, Schedule, Selection
from skdp.stats._bounds import Bounds, Pair, checked_bounds
from skdp.stats._plan import Ask, Statement, StatisticsPlan, as_text, column_of
from skdp.stats._rank_line import CANDIDATES, FEWER, RankLine
from skdp.stats._statistic import Statistic, StatisticTable

MOST = 255  # quantiles of a call. A choice: the depth of the tree is 8.
# Share of epsilon for the quantiles themselves; the rest is for the ends of their intervals. A choice after a look at california:
# with .7, a median at epsilon .1 has no less error there than that of other libraries, which have no interval.
MAIN = 0.8
# Share of the records between two numbers up to which an end of an interval is looked for between them. A choice.
ROOM = 0.75
# Logarithm of how much more preference candidates beyond all records may have than those near a rank, and 3.7 more, so that a
# choice is one of them with a probability of at most .025. Derived: 2**19 candidates of several quantiles in all, a quarter by
# number.
LARGEST = 17.0
# Share of the cells that is surely there, for intervals, where some can be missing or have weights. A choice.
THERE = 0.5
# Noise of a rank, over the records on the nearer side, from which on a warning says that noise hides the quantile. A choice.
HIDDEN = 0.25


@dataclass(frozen=True)
class Node:
    """Describe the choice of a quantile between two that are chosen already.

    Parameters
    ----------
    quantile : int
        Its number, from 1 on.
    lower, upper : int
        Numbers of those around it; 0 and one more than there are stand for the bounds.
    share : float
        Share of the records between them that is below it.
    """

    quantile: int
    lower: int
    upper: int
    share: float


@dataclass(frozen=True)
class End:
    """Describe the choice of an end of an interval: the number of its quantile, from 1 on, and whether it is above it."""

    quantile: int
    above: bool


def halved(shares: Sequence[float]) -> list[list[Node]]:
    """Return the levels of a tree over increasing shares from 0 to 1, each near the middle of what is around it.

    The tree has the smallest depth that there is. The first and the last share are no nodes.
    """
    blocks, levels = [(0, len(shares) - 1)], []
    for depth in range((len(shares) - 2).bit_length() - 1, -1, -1):
        most, level = 2**depth - 1, []  # quantiles on either side
        for lower, upper in blocks:
            middle = (shares[lower] + shares[upper]) / 2
            options = range(max(lower + 1, upper - 1 - most), min(upper, lower + 2 + most))
            if options:
                best = min(options, key=lambda i: abs(shares[i] - middle))
                share = (shares[best] - shares[lower]) / (shares[upper] - shares[lower])
                level.append(Node(best, lower, upper, share))
        levels.append(level)
        blocks = [block for node in level for block in ((node.lower, node.quantile), (node.quantile, node.upper))]
    return levels


@dataclass(frozen=True)
class RankSearch:
    """Hold the public facts of the choices for quantiles of a column, and make them.

    Parameters
    ----------
    shares : tuple of float
        Increasing shares of the records, from 0 to 1; quantiles of all but the first and the last one.
    budget : Budget
        Pure epsilon, of which ``portion`` is for these choices, and the adjacency.
    portion : float
        Share of epsilon.
    n_samples : int
        Public number of records.
    n_there : float
        Number of cells that are surely there.
    z : float or None
        Quantile of the normal law for the intervals; None without them.
    ends : tuple of tuple of End, default=()
        Ends of intervals, release by release.
    """

    shares: tuple[float, ...]
    budget: Budget
    portion: float
    n_samples: int
    n_there: float
    z: float | None
    ends: tuple[tuple[End, ...], ...] = ()

    def with_ends(self) -> "RankSearch":
        """Return the search with the ends of intervals that are choices of their own.

        An end that is further from its quantile than most of the records up to the next one is a quantile, or a bound, beyond.
        """
        if self.z is None:
            return self
        last = len(self.shares) - 1
        levels = [[End(1, False)], [End(1, True)]] if self.alone else []
        if not self.alone:
            levels = [[End(1, False), *(End(i, True) for i in range(1, last))], [End(i, False) for i in range(2, last)]]
        search = replace(self, ends=tuple(map(tuple, levels)))
        kept = [tuple(end for end in level if search.has_room(end)) for level in search.ends]
        return replace(self, ends=tuple(level for level in kept if level))

    @property
    def alone(self) -> bool:
        """Whether there is one quantile, whose interval follows from ranks among all records."""
        return len(self.shares) == 3

    @cached_property
    def levels(self) -> list[list[Node]]:
        """Levels of the quantiles themselves."""
        return halved(self.shares)

    @cached_property
    def nodes(self) -> dict[int, tuple[int, Node]]:
        """Level and node of each quantile."""
        return {node.quantile: (level, node) for level, nodes in enumerate(self.levels) for node in nodes}

    @cached_property
    def portions(self) -> list[float]:
        """Share of epsilon of each release."""
        main = self.portion * (MAIN if self.ends else 1.0)
        rest = [(self.portion - main) / len(self.ends) for _ in self.ends]
        return [main / len(self.levels) for _ in self.levels] + rest

    @property
    def releases(self) -> list[Release]:
        """The releases."""
        sizes = [len(choices) for choices in (*self.levels, *self.ends)]
        return [
            Release(RankScores, Selection(2 / portion, size), RankScores.clip_norm, size)
            for portion, size in zip(self.portions, sizes, strict=True)
        ]

    def noise(self, release: int, share: float) -> float:
        """Return the scale of the noise in a rank, in records, for the share of the records that is to be below it."""
        several = len((*self.levels, *self.ends)[release]) > 1
        change = max(share, 1 - share) * RankScores.relative_sensitivity[self.budget.adjacency]
        change = 1.0 if self.budget.adjacency == "replace_one" and not several else change
        return 2 * change / (self.portions[release] * self.budget.epsilon)

    def noise_at(self, quantile: int) -> float:
        """Return the scale of the noise in the rank of a quantile among the records around it."""
        level, node = self.nodes[quantile]
        return self.noise(level, node.share)

    @cached_property
    def variances(self) -> np.ndarray:
        """Variance of the noise in the rank of each quantile, with 0 for the bounds."""
        found = np.zeros(len(self.shares))
        for quantile, (_, node) in self.nodes.items():
            inherited = (1 - node.share) ** 2 * found[node.lower] + node.share**2 * found[node.upper]
            found[quantile] = 2 * self.noise_at(quantile) ** 2 + inherited
        return found

    def share_of(self, end: End) -> float:
        """Return the share of the records that is to be below an end: of all, or of those on its side of the quantile."""
        return self.shares[1] if self.alone else float(not end.above)

    def reach(self, end: End) -> float:
        """Return the number of records between a quantile and an end: for sampling and for noise."""
        place = next((i for i, level in enumerate(self.ends) if end in level), len(self.ends) - 1)
        own, share = self.noise(len(self.levels) + place, self.share_of(end)), self.shares[end.quantile]
        of_number = 0.0 if self.alone else float(self.variances[end.quantile])
        return float(self.z or 0.0) * math.sqrt(self.n_samples * share * (1 - share) + of_number + 2 * own**2)

    def has_room(self, end: End) -> bool:
        """Return whether an end is a choice of its own."""
        beyond = self.shares[end.quantile + (1 if end.above else -1)]
        return self.sure(end) and self.reach(end) <= ROOM * self.n_there * abs(beyond - self.shares[end.quantile])

    def sure(self, end: End) -> bool:
        """Return whether a quantile is not beyond all records on the side away from an end, however many candidates are there."""
        _, node = self.nodes[end.quantile]
        beyond = node.lower if end.above else node.upper
        away = self.n_there * abs(self.shares[beyond] - self.shares[end.quantile])
        return away >= LARGEST * self.noise_at(end.quantile)

    def find(self, ask: Ask, line: RankLine) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Make the releases; return the quantiles, and both ends of their intervals."""
        if self.alone:
            return self._find_one(ask, line)
        places = np.append(np.zeros(len(self.shares) - 1), line.last + 1.0)
        for level, nodes in enumerate(self.levels):
            choices = tuple(
                line.part(places[node.lower], places[node.upper], node.share, self.noise(level, node.share)) for node in nodes
            )
            for node, choice, index in zip(nodes, choices, _asked(ask, line, choices), strict=True):
                places[node.quantile] = choice.low[index]
        low, high = self._between(places)
        for release, ends in enumerate(self.ends, len(self.levels)):
            parts = [end.quantile - (not end.above) for end in ends]
            choices = tuple(
                line.end(
                    places[part],
                    places[part + 1],
                    self.share_of(end),
                    self.reach(end) * (1 if end.above else -1),
                    self.noise(release, self.share_of(end)),
                )
                for part, end in zip(parts, ends, strict=True)
            )
            for end, choice, index in zip(ends, choices, _asked(ask, line, choices), strict=True):
                leaf = min(int(choice.low[index]), line.last)
                (high if end.above else low)[end.quantile] = leaf + leaf % 2 if end.above else leaf
        numbers = line.numbers(places[1:-1])
        low, high = line.around(low[1:-1], high[1:-1])
        return numbers, np.minimum(low, numbers), np.maximum(high, numbers)

    def _find_one(self, ask: Ask, line: RankLine) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        def chosen(first: int, last: int, release: int, shift: float) -> float:
            choice = line.whole(first, last, self.shares[1], shift, self.noise(release, self.shares[1]))
            return float(choice.low[_asked(ask, line, (choice,))[0]])

        found = chosen(0, line.last, 0, 0.0)
        low, high = 0.0, float(line.last)
        for release, (end,) in enumerate(self.ends, 1):
            if end.above:
                high = chosen(int(found), line.last, release, self.reach(end))
            else:
                low = chosen(0, int(found), release, -self.reach(end))
        number = line.numbers(np.array([found + 0.5 * (found % 2)]))
        low_end, high_end = line.around(np.array([low]), np.array([high + high % 2]))
        return number, np.minimum(low_end, number), np.maximum(high_end, number)

    def _between(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest quantiles beyond each that are so far as to be ends of its interval, or the bounds."""
        shares, last = np.array(self.shares), len(self.shares) - 1
        low, high = np.zeros(last + 1), np.full(last + 1, places[-1])
        for i in range(1, last):
            spread = self.variances + self.n_samples * shares[i] * (1 - shares[i])
            far = self.n_there * np.abs(shares - shares[i]) >= float(self.z or 0.0) * np.sqrt(spread)
            low[i] = max([places[j] for j in range(1, i) if far[j] and self.sure(End(j, False))], default=0.0)
            high[i] = min([places[j] for j in range(i + 1, last) if far[j] and self.sure(End(j, True))], default=places[-1])
        return low, high


def _asked(ask: Ask, line: RankLine, choices: tuple[Any, ...]) -> list[int]:
    return [int(index) for index in ask(RankScores(0, line.edges, choices))]


@dataclass(frozen=True)
class QuantilesPlan:
    """Plan quantiles of a column between bounds that are public or learned.

    Parameters
    ----------
    search : RankSearch
        The choices.
    learning : Bounds
        What is released before to learn bounds.
    facts : dict
        Parameters for the report.
    name : str
        Name of the function.
    """

    search: RankSearch
    learning: Bounds
    name: str
    facts: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def plan(self) -> StatisticsPlan:
        """The releases: all pure, by shares of epsilon."""
        budget, before = self.search.budget, self.learning.queries
        releases = [Release(type(query), Laplace(1 / share), query.clip_norm, query.size) for query, share in before]
        releases += self.search.releases
        changes = [query.l1_sensitivity(budget.adjacency) for query, _ in before] + [0] * len(self.search.releases)
        schedule = Schedule(tuple((1, release) for release in releases))
        plan = StatisticsPlan(
            schedule=schedule,
            budget=budget,
            n_samples=self.search.n_samples,
            scale=calibrate(schedule, budget),
            changes=tuple(changes) if before else (),
            default_size=ROUNDINGS,
            statement=self._statement(),
        )
        return replace(plan, statement=replace(plan.statement, hidden=self.learning.hidden(plan) or plan.statement.hidden))

    def _statement(self) -> Statement:
        several = not self.search.alone
        title = "nearly best of public candidates, by their ranks" + ", halving the column again and again" * several
        shares = self.search.shares
        sides = [min(share, 1 - share) for share in shares[1:-1]]
        noises = [math.sqrt(variance) for variance in self.search.variances[1:-1]]
        hidden = any(noise > HIDDEN * self.search.n_samples * side for noise, side in zip(noises, sides, strict=True))
        return Statement(
            self.name,
            title + self.learning.in_words,
            "the exponential mechanism names values that many records share, and costs no delta",
            as_text(self.facts),
            noise_size=f"standard deviation {max(noises) / self.search.n_samples:.3g} of the records in a rank, at most",
            hidden=f"the {self.name}" if hidden and self.search.budget.private else None,
        )


@silently
def released(
    name: str, x: Any, q: Any, *, bounds: Any = None, confidence: Any = 0.95, random_state: Any = None, **given: Any
) -> Statistic | StatisticTable:
    """Read a column, charge and release quantiles of it."""
    limits, (shares, order) = checked_bounds(bounds), checked_shares(q)
    level = 0.95 if confidence is None else confidence
    with column_of(x, random_state, confidence=level, **given) as (table, budget, level):
        del x, given
        column, n = table.names[0], table.n_samples
        limits = table.bounds_of(column, limits)
        learning = Bounds((limits,), table.of_weights)
        complete = column in table.complete
        n_there = n * (1.0 if complete and not table.weighted else THERE)
        z = None if confidence is None else float(-ndtri((1 - level) / 2))
        search = RankSearch(shares, budget, 1 - learning.share, n, n_there, z).with_ends()
        facts = {"column": column, "q": q if search.alone else tuple(shares[1:-1]), "bounds": limits or "learned"}
        planned = QuantilesPlan(search, learning, name, facts | {"confidence": confidence}).plan

        def release(ask: Ask) -> tuple[Any, Pair]:
            low, high = learning.learned(ask, planned)[0]
            line = RankLine.between(low, high, CANDIDATES if search.alone else FEWER, column in table.integers)
            return search.find(ask, line), (low, high)

        (found, (low, high)), report = planned.run(table, release, random_state)
    of = "" if limits else f" of values clipped to [{low:.6g}, {high:.6g}]"
    if z is None:
        found = (found[0], np.full(found[0].size, low), np.full(found[0].size, high))
    values, least, most = (numbers[order] for numbers in found)
    if np.ndim(q) == 0:
        return Statistic(name + of, float(values[0]), (float(least[0]), float(most[0])), level, None, report)
    labels = [f"{share:g}" for share in np.asarray(q, dtype=float)]
    return StatisticTable(name + of, values, (tuple(labels),), least, most, level, None, report)


def checked_shares(q: Any) -> tuple[tuple[float, ...], np.ndarray]:
    """Return 0, the different shares of quantiles in order, and 1; and the place of each that was asked for among them."""
    asked = [q] if isinstance(q, Real) else list(q) if isinstance(q, (Sequence, np.ndarray)) and np.ndim(q) == 1 else []
    if not all(isinstance(share, Real) and not isinstance(share, bool) and 0 < float(share) < 1 for share in asked) or not asked:
        raise ValueError(f"q={shown(q)}; expected a number above 0 and below 1, such as 0.5 for 50 %, or several.")
    shares, order = np.unique(np.array(asked, dtype=float), return_inverse=True)
    if len(shares) > MOST:
        raise ValueError(f"q has {len(shares)} different numbers; expected at most {MOST}.")
    return (0.0, *shares.tolist(), 1.0), order

"""Read boosted trees against the released marginals: effects of columns and of pairs, their noise, exact Shapley values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp.estimators.additive._terms import LEVEL, ShapeFunction, Shapes
from skdp.estimators.boosting._trees import Facet, Trees, leaf_shares
from skdp.preprocessing import Term
from skdp.privacy.data.binned_records import leaves
from skdp.privacy.data.bins import EDGES

MIDDLES = np.concatenate([[0.0], (np.append(0.0, EDGES) + np.append(EDGES, 1.0)) / 2, [1.0]])  # of the bins, with both bounds
FACETS = np.linspace(0.0, 1.0, 33)  # where the function of a pair is given for a number; a choice
RAREST = 1e-9  # smallest share of a bin in expectations, where only the released one is 0; a choice


@dataclass(frozen=True, eq=False)
class Effects:
    """Hold the effects of the columns of one tree, and of pairs of them.

    Parameters
    ----------
    facets : dict of Facet
        By column, with the number of its first pattern among all.
    mean : ndarray of shape (n_outputs,)
        Mean of the tree.
    single : ndarray of shape (n_outputs + 1, n_patterns)
        Mean for each pattern of a column, less the mean; and the variance of its noise.
    pair : ndarray of shape (n_outputs + 1, n_patterns, n_patterns)
        Mean for patterns of two columns, less both effects and the mean; and the variance of its noise.
    """

    facets: dict[int, tuple[Facet, int]]
    mean: np.ndarray
    single: np.ndarray
    pair: np.ndarray


class TreeReader:
    """Compute what trees say about columns that are independent and distributed as the released marginals.

    Parameters
    ----------
    trees : Trees
        Of a fitted model.
    """

    def __init__(self, trees: Trees) -> None:
        self._trees, self._splits, self.bins, sizes = trees, trees.splits, trees.bins, trees.bins.sizes
        self.marginals = np.split(trees.background.shares.astype(np.float64), np.cumsum(sizes)[:-1])
        floored = [np.maximum(shares, RAREST) for shares in self.marginals]
        self._shares = [shares / shares.sum() for shares in floored]

    @property
    def mean(self) -> np.ndarray:
        """Mean of all trees, of shape (n_outputs,)."""
        return np.sum([effects.mean for effects in self.effects], axis=0)

    @cached_property
    def effects(self) -> list[Effects]:
        """The effects of each tree."""
        return [self._effects(number) for number in range(len(self._trees.columns))]

    def single(self, column: int) -> np.ndarray:
        """Return the effect of a column, of shape (n_outputs + 1, size); the last one is the variance of its noise."""
        total = np.zeros((self._trees.values.shape[1] + 1, self._shares[column].size))
        for effects in self.effects:
            if column in effects.facets:
                facet, start = effects.facets[column]
                total += effects.single[:, start + facet.of_bins]
        return self._carried(total, column)

    def pair(self, one: int, other: int, among: Sequence[Effects] | None = None) -> np.ndarray:
        """Return the effect of a pair without those of its columns, of shape (n_outputs + 1, size of one, size of the other)."""
        left, right = [], []
        for effects in self.effects if among is None else among:
            if one in effects.facets and other in effects.facets:
                (facet, start), (second, first) = effects.facets[one], effects.facets[other]
                left.append(effects.pair[:, start + facet.of_bins, first : first + second.found.size])
                right.append(second.of_bins == np.arange(second.found.size)[:, None])
        if not left:
            return np.zeros((self._trees.values.shape[1] + 1, self._shares[one].size, self._shares[other].size))
        found = np.concatenate(left, axis=2) @ np.concatenate(right).astype(np.float64)
        return self._carried(self._carried(found, other).swapaxes(1, 2), one).swapaxes(1, 2)

    def _carried(self, values: np.ndarray, column: int) -> np.ndarray:
        """Return values at the bins of a column, the last axis, with means where trees add means; of variances, a bound."""
        if column not in self._trees.averages:
            return values
        weights = self._trees.averages[column]
        return np.where(weights == 0, (values @ weights)[..., None], values)

    def strengths(self) -> dict[tuple[int, int], float]:
        """Return the root mean square of the effect of each pair, less what noise adds to its square, at least 0."""
        among: dict[tuple[int, int], list[Effects]] = {}
        for effects in self.effects:
            for pair in combinations(sorted(effects.facets), 2):
                among.setdefault(pair, []).append(effects)
        found = dict.fromkeys(combinations(range(len(self._shares)), 2), 0.0)
        for (one, other), own in among.items():
            values = self.pair(one, other, own)
            squares = np.square(values[:-1]).mean(axis=0) - values[-1]
            found[one, other] = float(np.sqrt(max(self.marginals[one] @ squares @ self.marginals[other], 0.0)))
        return found

    def explained(self, bins: np.ndarray) -> np.ndarray:
        """Return the Shapley values of each column, of shape (m, n_columns, n_outputs), from bins of shape (n_columns, m)."""
        total = np.zeros((bins.shape[0], self._trees.values.shape[1], bins.shape[1]))
        trees = self._trees.needed(bins)
        for number, splits in enumerate(self._splits):
            facets, table = self._shapley(number)
            columns, sides, values = trees.deeper(number, splits, table)
            added = values[..., leaves(bins, columns, sides)]
            for facet, own in zip(facets, added, strict=True):
                total[facet.column] += own
        return total.transpose(2, 0, 1)

    def _shapley(self, number: int) -> tuple[list[Facet], np.ndarray]:
        """Return the Shapley values at each leaf of a tree, of shape (n_facets, n_outputs, n_leaves).

        The tree is a sum of terms f_T over the sets T of its columns, whose means over each column of T are 0. The value of a
        column is the sum of f_T / k over the sets of k columns with it. Let E_j be the mean over column j. The product of
        E_j + t (1 - E_j) over all columns weights f_T by t^k, and the mean of t^(k - 1) over t from 0 to 1 is 1 / k.
        Gauss-Legendre nodes integrate these polynomials exactly.
        """
        facets, values = self._facets(number), self._trees.values[number].astype(np.float64)
        depth = self._trees.columns.shape[1]
        nodes, weights = np.polynomial.legendre.leggauss(-(-len(facets) // 2))
        t = ((nodes + 1) / 2).reshape(-1, *[1] * (depth + 1))
        grown = values.reshape(1, len(values), *[2] * depth)
        for facet in facets:
            grown = t * grown + (1 - t) * facet.mean(grown, depth)
        joint = np.tensordot(weights / 2, grown / t, axes=1)
        return facets, np.stack([(joint - facet.mean(joint, depth)).reshape(values.shape) for facet in facets])

    def _facets(self, number: int) -> list[Facet]:
        columns, splits = self._trees.columns[number], self._splits[number]
        return [Facet.of(columns, splits, column, self._shares[column]) for column in np.unique(columns).tolist()]

    def _effects(self, number: int) -> Effects:
        """Return sums over leaves, weighted by their share, and variances by its square; all pairs are one matrix product."""
        facets, values = self._facets(number), self._trees.values[number].astype(np.float64)
        leaf, weight, owned = np.arange(values.shape[1]), np.ones(values.shape[1]), []
        for facet in facets:
            patterns = (leaf[:, None] >> facet.bits & 1) @ (1 << np.arange(facet.bits.size))
            weight = weight * facet.shares[patterns]
            owned.append(patterns[:, None] == facet.found)
        member = np.concatenate(owned, axis=1).astype(np.float64)
        weighed = np.concatenate([weight * values, np.square(weight * self._errors(number))[None]])
        sums, mean = member.T @ (weighed[:, :, None] * member), weighed.sum(axis=1)
        odds = 1 / np.concatenate([facet.shares[facet.found] for facet in facets])
        alone, both = np.diagonal(sums, axis1=1, axis2=2), np.outer(odds, odds)
        single, pair = np.empty_like(alone), np.empty_like(sums)
        single[:-1] = alone[:-1] * odds - mean[:-1, None]
        single[-1] = alone[-1] * odds * (odds - 2) + mean[-1]
        pair[:-1] = sums[:-1] * both - single[:-1, :, None] - single[:-1, None] - mean[:-1, None, None]
        pair[-1] = sums[-1] * both * (both - 2 * odds - 2 * odds[:, None] + 4)
        pair[-1] += single[-1][:, None] + single[-1] - mean[-1]
        starts = np.cumsum([0] + [facet.found.size for facet in facets])
        places = {facet.column: (facet, int(start)) for facet, start in zip(facets, starts, strict=False)}
        return Effects(places, mean[:-1], single, pair)

    def _errors(self, number: int) -> np.ndarray:
        """Return the standard deviations of the noise of the leaves of a tree."""
        background = self._trees.background
        shares = leaf_shares(self._trees.columns[number], self._splits[number], self.marginals)
        return np.asarray(background.noise[number] / (shares / background.curvature + 1 / background.step))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoostedShapes(Shapes):
    """Read a boosted model: the additive part, and the effects of the trees.

    Parameters
    ----------
    trees : TreeReader
        The trees.
    """

    trees: TreeReader

    def pair(self, one: str, other: str, squeeze: bool) -> ShapeFunction:
        """Return the function of a pair; ``squeeze`` drops the last axis of a single output."""
        names, grids = (one, other), tuple(self.basis.grid(name, places=FACETS) for name in (one, other))
        places = [list(self.basis.facts.columns).index(name) for name in names]
        found = self.trees.pair(places[0], places[1])
        rows, columns = (self._at(place, grid) for place, grid in zip(places, grids, strict=True))
        *values, variances = found[:, rows[:, None], columns]
        half = float(ndtri((1 + LEVEL) / 2)) * np.sqrt(np.maximum(variances, 0.0))[:, :, None]
        curves = np.stack(values, axis=-1)
        ends = [None if self.noise is None else curves + sign * half for sign in (-1, 1)]
        first, second = (self.trees.marginals[place] for place in places)
        importance = float(np.sqrt(first @ np.square(found[:-1]).mean(axis=0) @ second))
        parts = [part[:, :, 0] if squeeze and part is not None else part for part in (curves, *ends)]
        assert parts[0] is not None
        return ShapeFunction(names, grids, parts[0], parts[1], parts[2], importance, self.scales(names, grids))

    def importances(self) -> np.ndarray:
        """Return the mean square of each column's curve, and half of that of each of its pairs, without what noise adds."""
        found = super().importances()
        for (one, other), strength in self.trees.strengths().items():
            found[[one, other]] += strength**2 / 2
        return found

    def _grids(self, term: Term) -> tuple[np.ndarray, ...]:
        return (self.basis.grid(term.names[0], places=MIDDLES),)

    def _quantiles(self, term: Term, level: float) -> np.ndarray:
        """Return the quantile for independent points, which is not smaller for any other correlation (Sidak 1967)."""
        n_points = self._bins_of(term).size
        return np.full(len(self.coef), float(ndtri((1 + level ** (1 / n_points)) / 2)))

    def _added(self, term: Term, grids: Sequence[np.ndarray]) -> tuple[Any, Any]:
        *values, variances = self.trees.single(self.basis.terms.index(term))[:, self._bins_of(term)]
        return np.stack(values, axis=1), np.maximum(variances, 0.0)[:, None]

    def _importance(self, term: Term, values: np.ndarray, rows: Any) -> float:
        return float(np.sqrt(self._weights(term, rows) @ np.square(values).mean(axis=1)))

    def _has_shares(self, term: Term) -> bool:
        return True

    def _weights(self, term: Term, rows: Any) -> np.ndarray:
        """Return the weights of the points, from the released shares of their bins."""
        place = self.basis.terms.index(term)
        bins, shares = self._bins_of(term), self.trees.marginals[place]
        weights = np.maximum(shares[bins] / np.bincount(bins, minlength=shares.size)[bins], RAREST)
        return np.asarray(weights / weights.sum())

    def _bins_of(self, term: Term) -> np.ndarray:
        """Return the bins of the points of a term, and of missing cells where these have one."""
        bins = self._at(self.basis.terms.index(term), self._grids(term)[0])
        return np.append(bins, EDGES.size + 1) if self._has_missing(term) else bins

    def _at(self, place: int, grid: np.ndarray) -> np.ndarray:
        """Return the bins of the points of a column."""
        column, term = self.trees.bins.columns[place], self.basis.terms[place]
        if column.ends is None:
            return np.arange(grid.size)
        values = self.basis.of_term(term, {term.names[0]: grid})[:, [0]].toarray()[:, 0]
        return column.of_numbers(values, None)

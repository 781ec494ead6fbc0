"""Random oblivious trees on bins: how they are drawn, what their leaves add, and what they say about the columns."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._projections import onto_simplex
from skdp.privacy.data.binned_records import leaf_finder, leaves
from skdp.privacy.data.bins import EDGES, Bins
from skdp.privacy.engines.in_threads import by_parts, thread_count

EVEN_CUTS = 0.5  # share of the cuts of numbers at an even place between the bounds; the others are at a quantile; a choice
QUANTILES = 0.02, 0.98  # between which quantiles a cut may be; a choice
LEAST_WEIGHT, USUAL_WEIGHT = 0.02, 0.5  # limits of the first weight of a category, and that of a number; choices
# Share of the first weights of columns that follows their effects in the additive model, and of the divisions of categories in
# the order of these effects. Together they raised bike from .854 to .890 and ijcnn1 from .968 to .974 at epsilon 1, and changed
# adult by less than .001.
OF_EFFECTS, IN_ORDER = 0.5, 0.5
SURE = 2.0  # standard deviations beyond which a difference of counts is not taken for noise; a choice
# Share of the first weights in the weights of columns, factor of older gains, and standard deviations of noise beside which the
# share of a leaf counts little. With a smaller share ijcnn1 lost .006 of AUC, and with fewer deviations bike .03 of R2.
EXPLORED, KEPT, DAMPING = 0.5, 0.9, 30.0
# Records that a thread predicts at a time. A choice: with fewer, threads wait for each other's short steps. A million records
# with 500 trees took 1.1 s in two threads, and 3.8 s with an eighth.
PART = 2**18


@dataclass(frozen=True, eq=False)
class Tree:
    """Hold a tree whose splits are the same on all paths.

    Parameters
    ----------
    columns : ndarray of int of shape (depth,)
        Column of each split.
    splits : ndarray of bool of shape (depth, n_bins)
        Side of each bin.
    shares : ndarray of shape (n_leaves,)
        Share of the records in each leaf, if columns were independent.
    """

    columns: np.ndarray
    splits: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True, eq=False)
class Background:
    """Hold the released facts with which trees are read.

    Parameters
    ----------
    shares : ndarray of float32 of shape (sum of the numbers of bins,)
        Share of the records in each bin, column by column.
    noise : ndarray of float32 of shape (n_trees,)
        Standard deviation of the noise of a leaf sum per record, times the share of the tree in the model.
    curvature, step : float
        A leaf adds its sum per record, divided by its share over the curvature plus one over the step.
    """

    shares: np.ndarray
    noise: np.ndarray
    curvature: float
    step: float


@dataclass(frozen=True, eq=False)
class Facet:
    """Hold what a tree asks of one column: all its splits of it together divide the bins into patterns.

    Parameters
    ----------
    column : int
        The column.
    bits : ndarray of int of shape (n_splits,)
        The splits.
    shares : ndarray of shape (2 ** n_splits,)
        Share of the records with each pattern of sides.
    of_bins : ndarray of int of shape (size,)
        Number of the pattern of each bin, among those that some bin has.
    found : ndarray of int of shape (n_found,)
        These patterns.
    """

    column: int
    bits: np.ndarray
    shares: np.ndarray
    of_bins: np.ndarray
    found: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, splits: np.ndarray, column: int, shares: np.ndarray) -> "Facet":
        """Return what a tree with these columns and splits asks of one of them, whose bins have some shares."""
        bits = np.flatnonzero(columns == column)
        patterns = (1 << np.arange(bits.size)) @ splits[bits, : shares.size]
        found, of_bins = np.unique(patterns, return_inverse=True)
        return cls(column, bits, np.bincount(patterns, shares, 1 << bits.size), of_bins, found)

    def mean(self, values: np.ndarray, depth: int) -> np.ndarray:
        """Return the mean over the column of values; their last axes are sides of splits, from the last split to the first."""
        axes = tuple((-1 - self.bits).tolist())
        shape = [2 if place - depth in axes else 1 for place in range(depth)]
        return np.asarray((values * self.shares.reshape(shape)).sum(axis=axes, keepdims=True))


@dataclass(frozen=True, eq=False)
class Trees:
    """Hold the trees of a fitted model.

    Parameters
    ----------
    bins : Bins
        Maps rows to bins.
    columns : ndarray of int of shape (n_trees, depth)
        Column of each split.
    sides : ndarray of uint8 of shape (n_trees, depth, ceil(n_bins / 8))
        Side of each bin, eight to a byte.
    values : ndarray of float32 of shape (n_trees, n_outputs, n_leaves)
        What a leaf adds to the raw prediction.
    background : Background
        Released facts with which the trees are read.
    averages : dict of ndarray of shape (size,), default={}
        By column, weights of its bins. At a bin of weight 0 trees add the mean of what they add at the others.
    """

    bins: Bins
    columns: np.ndarray
    sides: np.ndarray
    values: np.ndarray
    background: Background
    averages: Mapping[int, np.ndarray] = field(default_factory=dict)

    def scaled(self, factor: float) -> "Trees":
        """Return trees that add a multiple."""
        background = replace(self.background, noise=self.background.noise * np.float32(factor))
        return replace(self, values=self.values * np.float32(factor), background=background)

    def like(self, column: int, bins: np.ndarray) -> "Trees":
        """Return trees in which each bin of a column is on the sides of another one.

        Parameters
        ----------
        column : int
            The column.
        bins : ndarray of int of shape (size,)
            The other bin.

        Returns
        -------
        Trees
            With other sides.
        """
        splits, size = self.splits, bins.size
        splits[:, :, :size] = np.where((self.columns == column)[:, :, None], splits[:, :, bins], splits[:, :, :size])
        return replace(self, sides=np.packbits(splits, axis=2))

    def staged(self, bins: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what each tree adds to the raw predictions, of shape (n_outputs, m), from bins of shape (n_columns, m)."""
        for columns, sides, values in self.needed(bins).grown():
            yield values[:, leaves(bins, columns, sides)]

    def needed(self, bins: np.ndarray) -> "Trees":
        """Return trees with the weights of columns that have a bin of weight 0 among these."""
        needed = {column: own for column, own in self.averages.items() if (own == 0)[bins[column]].any()}
        return replace(self, averages=needed)

    def grown(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield columns, splits and values of trees that are `deeper` where bins have the weight 0."""
        for number, (splits, values) in enumerate(zip(self.splits, self.values, strict=True)):
            yield self.deeper(number, splits, values)

    def deeper(self, number: int, splits: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return columns, splits and values of a tree that also asks of each of its columns whether a bin has the weight 0.

        Leaves beyond the first ones have means of values, over the columns for which the answer is yes.

        Parameters
        ----------
        number : int
            The tree.
        splits : ndarray of bool of shape (depth, n_bins)
            Its splits.
        values : ndarray of shape (..., n_leaves)
            Values at its leaves.

        Returns
        -------
        columns : ndarray of shape (depth + n_asked,)
            Those of the tree, then those that are asked.
        splits : ndarray of bool of shape (depth + n_asked, n_bins)
            Side of each bin; of the further ones, whether its weight is 0.
        values : ndarray of shape (..., n_leaves * 2**n_asked)
            Values at all leaves.
        """
        asked = [column for column in self.averages if column in self.columns[number]]
        sides = np.zeros((len(asked), splits.shape[1]), dtype=bool)
        for own, column in zip(sides, asked, strict=True):
            own[: self.averages[column].size] = self.averages[column] == 0
        sets = [[column for bit, column in enumerate(asked) if chosen >> bit & 1] for chosen in range(1 << len(asked))]
        means = [self.mean_over(those, number, splits, values) for those in sets]
        columns = np.concatenate([self.columns[number], np.array(asked, dtype=self.columns.dtype)])
        return columns, np.concatenate([splits, sides]), np.concatenate(means, axis=-1).astype(values.dtype)

    def mean_over(self, over: Collection[int], number: int, splits: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return means of values at the leaves of one tree, of shape (..., n_leaves), over some columns."""
        columns = self.columns[number]
        grown = values.reshape(*values.shape[:-1], *[2] * columns.size)
        for column in (column for column in over if column in columns):
            facet = Facet.of(columns, splits, column, self.averages[column])
            grown = np.broadcast_to(facet.mean(grown, columns.size), grown.shape)
        return grown.reshape(values.shape)

    @property
    def splits(self) -> np.ndarray:
        """Side of each bin, of shape (n_trees, depth, n_bins)."""
        return np.unpackbits(self.sides, axis=2, count=max(self.bins.sizes)).view(bool)

    def predicted(self, bins: np.ndarray) -> np.ndarray:
        """Return what all trees add to the raw predictions.

        Parameters
        ----------
        bins : ndarray of shape (n_columns, m)
            Bins of some records.

        Returns
        -------
        ndarray of shape (m, n_outputs)
            Each row is a function of its record alone.
        """
        needed, trees = self.needed(bins), list(self._merged())
        if not needed.averages:
            return self._sum(bins, trees).T
        empty = np.any([(own == 0)[bins[column]] for column, own in needed.averages.items()], axis=0)
        total = np.empty((self.values.shape[1], bins.shape[1]))
        total[:, empty] = self._sum(bins[:, empty], needed.grown())
        total[:, ~empty] = self._sum(bins[:, ~empty], trees)
        return total.T

    def _sum(self, bins: np.ndarray, trees: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return the sum over trees, of shape (n_outputs, m)."""
        total = np.zeros((self.values.shape[1], bins.shape[1]))
        found = [(leaf_finder(columns, splits), values.astype(np.float64)) for columns, splits, values in trees]

        def add(start: int) -> None:
            part = slice(start, start + PART)
            for leaf, values in found:
                total[:, part] += np.take(values, leaf(bins, part), axis=1)

        list(by_parts(add, range(0, bins.shape[1], PART), thread_count() if bins.shape[1] > PART else 1))
        return total

    def _merged(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield columns, splits and values of fewer trees with the same sum, whose leaves still have numbers of one byte."""
        number, splits = max(1, 8 // self.columns.shape[1]), self.splits
        for start in range(0, len(splits), number):
            part = slice(start, start + number)
            #  leaf of both = leaf of the first + 2^depth * leaf of the second
            values = self.values[start].astype(np.float64)
            for one in self.values[start + 1 : start + number]:
                values = (one[:, :, None] + values[:, None, :]).reshape(len(one), -1)
            yield self.columns[part].ravel(), splits[part].reshape(-1, splits.shape[2]), values


class Marginals:
    """The released distribution of each column over its bins, and trees that are drawn with it.

    Parameters
    ----------
    bins : Bins
        Public facts of the columns.
    counts : ndarray of shape (sum of sizes,)
        Released counts.
    noise : float
        Standard deviation of their noise.
    n_samples : int
        Number of records.
    effects : list of ndarray of shape (n_outputs, size)
        What the additive model adds in each bin of each column, from its released coefficients.
    """

    def __init__(self, bins: Bins, counts: np.ndarray, noise: float, n_samples: int, effects: list[np.ndarray]) -> None:
        self.bins = bins
        parts = np.split(counts, np.cumsum(bins.sizes)[:-1])
        self.shares = [
            onto_simplex(part / n_samples, 1.0) if column.ends is None else _of_number(part, noise, n_samples)
            for part, column in zip(parts, bins.columns, strict=True)
        ]
        self._quantiles = [np.cumsum(shares[: EDGES.size + 1]) for shares in self.shares]
        self._effects = effects
        usual = [
            USUAL_WEIGHT if column.ends else min(max(1 - float(np.square(shares).sum()), LEAST_WEIGHT), USUAL_WEIGHT)
            for shares, column in zip(self.shares, bins.columns, strict=True)
        ]
        spread = [_spread_of(shares, effect) for shares, effect in zip(self.shares, effects, strict=True)]
        self.weights = np.array(usual) / sum(usual)
        if sum(spread) > 0:
            self.weights = (1 - OF_EFFECTS) * self.weights + OF_EFFECTS * np.array(spread) / sum(spread)

    def tree(self, depth: int, weights: np.ndarray, rng: np.random.Generator) -> Tree:
        """Draw a tree.

        Parameters
        ----------
        depth : int
            Number of splits.
        weights : ndarray of shape (n_columns,)
            Probability of each column.
        rng : Generator
            For public choices.

        Returns
        -------
        Tree
            Numbers are cut at an even place or at a quantile. Categories are divided at random, or in the order of their effects.
        """
        columns = rng.choice(len(weights), depth, p=weights)
        splits = np.zeros((depth, max(self.bins.sizes)), dtype=bool)
        for place, column in enumerate(columns.tolist()):
            size = self.bins.sizes[column]
            splits[place, :size] = self._cut(column, rng) if self.bins.columns[column].ends else self._divided(column, rng)
            splits[place, size:] = splits[place, size - 1]  # bins that no record is in
        return Tree(columns, splits, leaf_shares(columns, splits, self.shares))

    def _divided(self, column: int, rng: np.random.Generator) -> np.ndarray:
        """Divide the bins of a category: at random, or between those of a small and those of a large effect."""
        shares, effects = self.shares[column], self._effects[column]
        if shares.size == 2:
            return np.arange(2) > 0
        if rng.random() >= IN_ORDER:
            return rng.random(shares.size) < 0.5
        # Order the levels by their effect on a random output, and cut them at a random quantile of the records.
        order = np.argsort(effects[rng.integers(len(effects))], kind="stable")
        cumulated = np.cumsum(shares[order])
        first = int(np.searchsorted(cumulated, cumulated[-1] * rng.uniform(*QUANTILES))) + 1
        above = np.zeros(shares.size, dtype=bool)
        above[order[min(first, shares.size - 1) :]] = True
        return above

    def _cut(self, column: int, rng: np.random.Generator) -> np.ndarray:
        if rng.random() < EVEN_CUTS:
            first = int(np.searchsorted(EDGES, rng.random())) + 1
        else:
            cumulated = self._quantiles[column]
            first = int(np.searchsorted(cumulated, cumulated[-1] * rng.uniform(*QUANTILES))) + 1
        above = np.arange(self.bins.sizes[column]) >= min(max(first, 1), EDGES.size)
        if self.bins.columns[column].missing:
            above[-1] = rng.random() < 0.5
        return above


class ColumnGains:
    """What the splits of each column have gained so far, from released leaf sums.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    """

    def __init__(self, n_columns: int) -> None:
        self._sums, self._counts = np.zeros(n_columns), np.zeros(n_columns)

    def add(self, tree: Tree, sums: np.ndarray, noise: float, n_samples: int) -> None:
        """Add the gains of the splits of a tree, each with the other splits given; expected noise is subtracted.

        Parameters
        ----------
        tree : Tree
            The tree.
        sums : ndarray of shape (n_outputs, n_leaves)
            Released leaf sums.
        noise : float
            Standard deviation of the noise of a sum.
        n_samples : int
            Number of records.
        """
        # The gain of a split is what it lowers the squared loss by: S_low^2 / n_low + S_high^2 / n_high - (S_low + S_high)^2 /
        # (n_low + n_high), with the expected squares of noise subtracted. Noise makes small leaves unsure, so `damping` is added
        # to their shares.
        damping, leaf = (DAMPING * noise + 1) / n_samples, np.arange(tree.shares.size)
        squares = np.square(sums) - noise**2
        gains = (squares / (tree.shares + damping)).sum(axis=0) / n_samples
        for depth, column in enumerate(tree.columns.tolist()):
            if column in tree.columns[:depth]:
                continue
            # Leaves that differ in this split alone: bit `depth` is 0 in `low` and 1 in `high`.
            low = leaf[(leaf >> depth & 1) == 0]
            high = low | 1 << depth
            joint = (np.square(sums[:, low] + sums[:, high]) - 2 * noise**2).sum(axis=0)
            gain = gains[low] + gains[high] - joint / (n_samples * (tree.shares[low] + tree.shares[high] + damping))
            self._sums[column] += gain[(tree.shares[low] > 0) & (tree.shares[high] > 0)].sum()
            self._counts[column] += 1

    def weights(self, first: np.ndarray) -> np.ndarray:
        """Return weights of the columns, half of them the first ones, and let older gains count less from now on."""
        means = np.maximum(self._sums / (self._counts + 1), 0.0)
        self._sums *= KEPT
        self._counts *= KEPT
        return EXPLORED * first + (1 - EXPLORED) * means / means.sum() if means.sum() > 0 else first


def leaf_shares(columns: np.ndarray, splits: np.ndarray, shares: Sequence[np.ndarray]) -> np.ndarray:
    """Return the share of the records in each leaf of a tree, as if all its splits were independent.

    Parameters
    ----------
    columns : ndarray of int of shape (depth,)
        Column of each split.
    splits : ndarray of bool of shape (depth, n_bins)
        Side of each bin.
    shares : sequence of ndarray
        Share of each bin of each column.

    Returns
    -------
    ndarray of shape (n_leaves,)
        Shares.
    """
    # The first split is the lowest bit of a leaf's number: later splits double the list.
    found = np.ones(1)
    for column, sides in zip(columns.tolist(), splits, strict=True):
        above = float(shares[column][sides[: shares[column].size]].sum())
        found = np.concatenate([found * (1 - above), found * above])
    return np.maximum(found, 0.0)


def _spread_of(shares: np.ndarray, effects: np.ndarray) -> float:
    """Return the standard deviation of an effect over the released distribution of its column, over all outputs."""
    total = max(float(shares.sum()), 1e-300)
    means = effects @ shares / total
    return float(np.sqrt(np.square(effects - means[:, None]).sum(axis=0) @ shares / total))


def _of_number(counts: np.ndarray, noise: float, n_samples: int) -> np.ndarray:
    """Return the shares of the bins of a number; differences that noise explains are left out."""
    missing = np.clip(counts[EDGES.size + 1 :], 0.0, n_samples)
    found = np.zeros(EDGES.size + 1)
    _spread(found, counts[: EDGES.size + 1], noise, 0, EDGES.size + 1, n_samples - missing.sum())
    return np.concatenate([found, missing]) / n_samples


def _spread(found: np.ndarray, counts: np.ndarray, noise: float, start: int, stop: int, total: float) -> None:
    """Divide a total between the halves of a run of bins, and so on; evenly unless they differ by more than noise."""
    if stop - start == 1 or total <= 0:
        found[start:stop] = total / (stop - start)
        return
    #  start ....... middle ....... stop     expected in the left half: total * part
    # `difference` is what the left half has beyond its part of the noisy counts; its noise has the variance in the root below.
    middle = (start + stop) // 2
    part = (middle - start) / (stop - start)
    difference = counts[start:middle].sum() * (1 - part) - counts[middle:stop].sum() * part
    if abs(difference) < SURE * noise * np.sqrt((middle - start) * (1 - part) ** 2 + (stop - middle) * part**2):
        difference = 0.0
    left = min(max(total * part + difference, 0.0), total)
    _spread(found, counts, noise, start, middle, left)
    _spread(found, counts, noise, middle, stop, total - left)

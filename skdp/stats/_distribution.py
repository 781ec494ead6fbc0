"""Conclude from noisy Haar coefficients how the cells of a column are distributed, with intervals.

All are functions of releases, of their noise and of public facts.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from sklearn.isotonic import isotonic_regression

from skdp.privacy.queries.haar_counts import LEAVES, LEVELS, haar
from skdp.stats._estimate import Estimate, share_of

# Standard deviations of its noise above which a number of records is told from 0. Ratios to fewer are not determined. A choice:
# the interval of a mean is that of all values between the limits where the noise is little below.
SEEN = 2.0
# Share of the cells that are integers with candidates of their own, from which on a column is one of integers. A choice.
INTEGERS = 0.98
# Leaves on either side over which the noise of a distribution function is averaged: it varies from leaf to leaf. A choice.
NEARBY = 8


@dataclass(frozen=True, eq=False)
class Distribution:
    """Hold the distribution function of a column.

    Parameters
    ----------
    edges : ndarray of shape (n_edges,)
        Candidates, sorted.
    coefficients : ndarray of shape (1023,)
        Noisy Haar coefficients of the numbers of records in the leaves.
    noise : float
        Standard deviation of their noise.
    total : float
        Number of all records, or their total weight.
    complete : bool
        Whether no cell is missing, by the type of the column.
    total_noise : float, default=0.0
        Standard deviation of the noise of the total; 0 where it is public.
    integers : bool, default=False
        Whether the cells are integers or missing, by the type of the column.
    """

    edges: np.ndarray
    coefficients: np.ndarray
    noise: float
    total: float
    complete: bool
    total_noise: float = 0.0
    integers: bool = False

    @cached_property
    def counts(self) -> np.ndarray:
        """Noisy numbers of records in the leaves; the last one is of missing cells."""
        return self.total / LEAVES + haar().T @ (self.coefficients / node_sizes())

    @property
    def bounds(self) -> tuple[float, float]:
        """The first and the last candidate."""
        return float(self.edges[0]), float(self.edges[-1])

    @property
    def n_leaves(self) -> int:
        """Number of leaves that hold numbers."""
        return 2 * self.edges.size + 1

    @property
    def present(self) -> float:
        """Number of records whose cell is there."""
        return float(self.total if self.complete else self.total - self.counts[-1])

    @property
    def present_noise(self) -> float:
        """Standard deviation of its noise."""
        return self.total_noise if self.complete else math.sqrt(float(self._variances()[0][-2]))

    @property
    def records(self) -> float:
        """Number of records whose cell is there, at least 1, from which the sampling error follows."""
        return max(self.present, 1.0)

    @property
    def typical_noise(self) -> float:
        """Median standard deviation of the noise of a number of records up to a leaf."""
        return math.sqrt(float(np.median(self._variances()[0])))

    @property
    def whole(self) -> bool:
        """Whether the cells are integers, by the type of the column or as far as what is beside them tells.

        Without a type, most cells that are not the most frequent number must be integers, whatever the noise.
        """
        if self.integers:
            return True
        beside = np.zeros(LEAVES)
        beside[: self.n_leaves] = 1.0
        beside[1 : self.n_leaves : 2] = self.edges != np.rint(self.edges)
        noise = self.noise * float(np.linalg.norm(haar() @ beside / node_sizes()))
        others = self.present - float(self.counts[1 : self.n_leaves : 2].max())
        most = (1 - INTEGERS) * self.records + SEEN * noise
        return float(self.counts @ beside) < most < others / 2

    @property
    def determined(self) -> bool:
        """Whether the number of records whose cell is there can be told from 0."""
        return self.present > SEEN * self.present_noise

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of each leaf; those of a candidate are equal."""
        #  leaf  0: before the first candidate | 1: the first candidate | 2: the gap behind it | ... | the last one | behind it
        doubled = np.repeat(self.edges, 2)
        return np.append(self.edges[0], doubled), np.append(doubled, self.edges[-1])

    @cached_property
    def uncut(self) -> np.ndarray:
        """Shares of the cells that are there up to the end of each leaf, increasing; may leave [0, 1] by noise."""
        sums = np.cumsum(self.counts[: self.n_leaves])
        return np.maximum.accumulate(isotonic_regression(sums)) / max(self.present, self.present_noise, 1.0)

    @cached_property
    def shares(self) -> np.ndarray:
        """The same in [0, 1], from 0 on; the last one is 1."""
        return np.concatenate([[0.0], np.clip(self.uncut[:-1], 0.0, 1.0), [1.0]])

    @property
    def masses(self) -> tuple[np.ndarray, np.ndarray]:
        """Middle of each leaf, and the share of the cells in it."""
        low, high = self.ends
        return low / 2 + high / 2, np.diff(self.shares)

    def quantile(self, q: float) -> float:
        """Return the number at a share of the cells."""
        low, high = self.ends
        leaf = self._leaf(q)
        below, above = self.shares[leaf], self.shares[leaf + 1]
        part = min(max((q - below) / (above - below), 0.0), 1.0) if above > below else 0.5
        return float(low[leaf] + part * (high[leaf] - low[leaf]))

    def candidate(self, q: float, above: bool) -> float:
        """Return the candidate at a share of the cells, or the next one above or below it."""
        return float(self.ends[above][self._leaf(q)])

    def interval(self, q: float, z: float) -> tuple[float, float]:
        """Return the interval of a quantile, of ``z`` standard deviations of the noise and of sampling."""
        own, shared = self._variances()
        variances = own - 2 * q * shared + (q * self.present_noise) ** 2
        leaf = self._leaf(q)
        nearby = variances[max(leaf - NEARBY, 0) : min(leaf + NEARBY + 1, self.n_leaves)]
        error = math.hypot(float(np.sqrt(nearby).mean()) / self.records, math.sqrt(q * (1 - q) / self.records))
        places = np.searchsorted(self.uncut, [q - z * error, q + z * error], "left")
        first, last = np.minimum(places, self.n_leaves - 1)
        low, high = self.ends
        return float(low[first]), float(high[last])

    def share(self, chosen: np.ndarray, z: float) -> Estimate:
        """Return the share of all records that are in some leaves.

        Parameters
        ----------
        chosen : ndarray of shape (1024,)
            Which leaves; fractions are parts of a leaf.
        z : float
            Half the length of the interval, in standard deviations of the noise and of sampling.

        Returns
        -------
        Estimate
            Not determined where all records may be noise.
        """
        if self.total <= max(SEEN * self.total_noise, 1.0):
            return Estimate()
        count = float(self.counts @ chosen)
        noise = self.noise * float(np.linalg.norm(haar() @ chosen / node_sizes()))
        return share_of(count, math.hypot(noise, self.total_noise * (float(chosen.mean()) - count / self.total)), self.total, z)

    def _variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the variance of the number of records up to each leaf, and its covariance with that of present cells."""
        own, shared = leaf_variances()
        upto = np.arange(1, LEAVES + 1) / LEAVES
        present = 1.0 if self.complete else upto[-2]
        shared = 0 * shared if self.complete else shared
        return self.noise**2 * own + (self.total_noise * upto) ** 2, self.noise**2 * shared + self.total_noise**2 * upto * present

    def _leaf(self, q: float) -> int:
        return min(int(np.searchsorted(self.shares[1:], q, "left")), self.n_leaves - 1)


def typical_variance() -> float:
    """Return the median variance of the noise of a number of records up to a leaf, in units of that of a coefficient."""
    return float(np.median(leaf_variances()[0]))


@cache
def node_sizes() -> np.ndarray:
    """Return the number of leaves of the node of each coefficient."""
    return np.concatenate([np.full(1 << level, LEAVES >> level) for level in range(LEVELS)])


@cache
def leaf_variances() -> tuple[np.ndarray, np.ndarray]:
    """Return, in units of the noise of a coefficient, what it does to the number of records up to each leaf.

    Returns
    -------
    tuple of ndarray of shape (1024,)
        The variance of this number; and its covariance with the number of records whose cell is there.
    """
    # The first p of the w leaves of a node hold p / w of it and min(p, w - p) / w of its coefficient. The leaves up to the last
    # but one are w - 1 of the last node of each level.
    upto = np.arange(1, LEAVES + 1)
    own, shared = np.zeros(LEAVES), np.zeros(LEAVES)
    for level in range(LEVELS):
        width = LEAVES >> level
        place = upto % width
        weight = np.minimum(place, width - place) / width
        own += weight**2
        shared += weight / width * (upto > LEAVES - width)
    return own, shared

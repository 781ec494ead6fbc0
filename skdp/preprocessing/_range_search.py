"""Find the range of a target by few noisy counts, where histograms of all columns at once would hide it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from skdp.preprocessing._octave_rule import Finding
from skdp.privacy.queries import Query, TargetHistogram, TargetSum
from skdp.privacy.queries.column_histograms import HIGHEST, LOWEST
from skdp.privacy.schedule import Gaussian, Release

# Signal s = mu n / k, with the sensitivity k of a mean, below which the range of a target is searched for, and below which the
# mean is all that is fitted. Chosen on insurance charges, bike, california and house prices.
SEARCHED, HARDLY_ANY = 200.0, 40.0
# Noise of a single count with the budget of all of them, as a share of the records, that the share of the squared budget aims at,
# and the limits of this share. The noise of each of the counts is then about a tenth of the records.
AIM, LEAST_SHARE, MOST_SHARE = 1 / 30, 0.03, 0.5
# Counts of the targets that are negative, 0 for all that is asked here, and positive.
AT_ZERO = TargetHistogram(2.0 ** (LOWEST - 1) * np.array([-1.0, 1.0]))
# Number of counts. This and the constants below were set on bike and made-up targets: lognormal ones of tiny unit, with 70 % of
# zeros and with a jump, normal ones, and years. Half or twice of each moved R2 by .02 at the most, but for years, for which 10
# counts in place of 16 lost .1 where only the mean is fitted.
QUESTIONS = 16
# Share of the targets that are not 0 beyond the power 2^m, and its spread over usual targets, by how many octaves m is below the
# power e that most are below: for e - m = -2 and less, -1, 0, 1, 2, and 3 and more.
BEYOND = np.array([[0.01, 0.03], [0.06, 0.08], [0.22, 0.15], [0.62, 0.17], [0.87, 0.12], [0.96, 0.06]])
NEAREST, FARTHEST = -2, 3
# Octaves from 1 by which a power is less likely beforehand by a factor of e.
FAR = 20.0
# Answers over the number of records are clipped to these, so that all numbers stay finite. A choice.
LIKELY_ANSWERS = -2.0, 3.0
# Probability of one power from which on the other counts look closer, and the quantile of the power that is taken: a range that
# is too wide costs more than one that is too narrow.
SURE, TAKEN = 0.9, 0.1
# Share of the targets beyond an end for which the range reaches further, by at most REACH octaves; standard deviations above it
# for one more octave, once the counts that are left are made there; and least share in one half of a range for which that half is
# the range.
TAIL, REACH, CAUTION, NEARLY_ALL = 0.05, 2, 0.5, 0.9
# Standard deviations of a share within which another answer may decide what the first does not. A choice.
USUAL_ERROR = 2.0
# Share of the targets of the other sign from which on the range is symmetric.
OTHER_SIGN = 0.2


def search_share(mu: float, n_samples: int, adjacency: str) -> float:
    """Return the share for the search in the squared Gaussian-DP parameter of a fit; 0 where histograms do as well."""
    if mu * n_samples >= SEARCHED * TargetSum.relative_sensitivity[adjacency]:
        return 0.0
    noise = TargetHistogram.relative_sensitivity[adjacency] / (mu * n_samples)
    return min(max((noise / AIM) ** 2, LEAST_SHARE), MOST_SHARE)


def search_releases() -> tuple[tuple[int, Release], ...]:
    """Return the counts as an entry of a schedule."""
    return ((QUESTIONS, Release(TargetHistogram, Gaussian(), 1.0, 3)),)


@dataclass
class RangeSearch:
    r"""Ask in turn how many targets are below, between and above two thresholds, the next of which follow from the answers.

    First the power of two is found that most of the targets that are not 0 are below, by its probability given the answers. The
    counts that are left look at the tail above it, halve a range that holds nearly all in one half, and look at the tail again.

    Parameters
    ----------
    ask : callable
        Returns the noisy answer to a query.
    n_samples : int
        Number of records.
    noise : float
        Standard deviation of the noise of a count.
    """

    ask: Callable[[Query], np.ndarray]
    n_samples: int
    noise: float
    left: int = QUESTIONS
    answers: list[tuple[float, np.ndarray]] = field(default_factory=list)

    def finding(self) -> Finding:
        """Make all counts, and return the range that they tell."""
        self._count(float(AT_ZERO.edges[1]))
        power = self._power()
        sign = self._sign(2.0**power)
        low, high = self._ends(power, bool(sign))
        limits = (low, high) if sign > 0 else (0.0 - high, 0.0 - low) if sign < 0 else (-high, high)
        return Finding("linear", limits, limits, 0.0, 0.0)

    def _count(self, threshold: float) -> float:
        """Return the share of the targets whose absolute value is beyond a threshold."""
        shares = np.clip(self.ask(TargetHistogram(np.array([-threshold, threshold]))) / self.n_samples, *LIKELY_ANSWERS)
        shares = shares + (1 - shares.sum()) / 3  # all shares together are 1
        self.answers.append((threshold, shares))
        self.left -= 1
        return float(shares[0] + shares[2])

    def _known(self, threshold: float) -> float:
        """Return the share beyond a threshold as the mean of the answers, or of a new one; nan if none is left."""
        known = [float(shares[0] + shares[2]) for asked, shares in self.answers if asked == threshold]
        if not known and self.left:
            known = [self._count(threshold)]
        return float(np.mean(known)) if known else math.nan

    @property
    def _sd(self) -> float:
        """Standard deviation of the noise of a share beyond a threshold."""
        return math.sqrt(2 / 3) * self.noise / self.n_samples

    @property
    def _some(self) -> float:
        """Share of the targets that are not 0, as the first answer and all later ones tell."""
        (_, first), *others = self.answers
        least = max((float(shares[0] + shares[2]) - self._sd for _, shares in others), default=self._sd)
        return min(max(float(first[0] + first[2]), least, self._sd), 1.0)

    def _power(self) -> int:
        """Return the exponent of the power that most targets are below."""
        powers = np.arange(LOWEST - 1, HIGHEST + 2)
        weights = -np.abs(powers) / FAR
        while True:
            chances = np.exp(weights - weights.max())
            chances /= chances.sum()
            below = np.cumsum(chances)
            if not self.left or chances.max() > SURE:
                return int(powers[np.searchsorted(below, TAKEN)])
            asked = min(max(int(powers[np.argmin(np.abs(below - 0.5))]), LOWEST), HIGHEST)
            share = self._count(2.0**asked)
            mean, spread = self._some * BEYOND[np.clip(powers - asked, NEAREST, FARTHEST) - NEAREST].T
            variance = self._sd**2 + spread**2
            weights = weights - (share - mean) ** 2 / (2 * variance) - np.log(variance) / 2

    def _sign(self, power: float) -> int:
        """Return the sign of most targets; 0 if there are some of either."""
        (_, first), *others = self.answers
        below, _, above = np.sum([first, *(shares for asked, shares in others if asked < power)], axis=0)
        other = OTHER_SIGN * (below + above)
        return 1 if below < other else -1 if above < other else 0

    def _ends(self, power: int, one_sided: bool) -> tuple[float, float]:
        """Return the ends of the range of absolute values."""
        low, high = 0.0, 2.0**power
        for _ in range(REACH):
            beyond = self._known(high)
            high = high if beyond <= TAIL * self._some else 2 * high
            if not beyond > TAIL * self._some:  # or unknown
                break
        while one_sided:
            middle = low / 2 + high / 2
            share = self._known(middle)
            if share > NEARLY_ALL:
                low = middle
            elif share < 1 - NEARLY_ALL:
                high = middle
            elif self.left and abs(abs(share - 0.5) - (NEARLY_ALL - 0.5)) < USUAL_ERROR * self._sd:
                self._count(middle)
            else:
                break
        while self.left:  # the number of releases is fixed
            self._count(high)
        further = low == 0 and self._known(high) > TAIL * self._some + CAUTION * self._sd
        return low, 2 * high if further else high

"""Conclude from a noisy fine histogram where the numbers of a column lie, and whether they are few integers.

All are functions of releases and of their noise. The constants are choices, made by the scores of models on public tables.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from skdp.preprocessing._octave_rule import FAR_Z, LEAST_MASS, LEAST_SQUARE, MODE, NEAR_Z, STEP_SQUARE, Finding, Z
from skdp.preprocessing._parts import Shares
from skdp.privacy.queries.column_histograms import EVEN_BINS, integers_between, octave_ends

# Limits are drawn in where records end steeply: the releases exclude, by DEVIATIONS of their noise, that more of them
# are beyond than CAP, and than FALL of those just inside. Inside is NEAR times the length that holds all but SPAN at either end.
# An exponential tail has more beyond than inside; a normal one has FALL only beyond 2.5 standard deviations. So tails stay.
SPAN, NEAR, FALL, CAP, DEVIATIONS = 0.1, 0.25, 0.25, 0.05, 2.0
# Largest share of the records that the place of an end may be wrong by: 4 sigma**2 over their density in a bin, from the
# variance of the place where a step in white noise is likeliest. These constants were set on made-up ages at epsilon 1 and on
# what the limits of california and bike cut off; adult and bank were looked at as well. With CAP alone, as .05, california lost
# .003 to .014 of R2, and adult .0016 of AUC.
UNSURE = 0.04


@dataclass(frozen=True, eq=False)
class EvenCounts:
    """Hold the released shares of a column in even bins, and in octaves.

    Parameters
    ----------
    edges : ndarray of shape (k + 1,)
        Ends of the even bins, increasing.
    shares : ndarray of shape (k,)
        Shares of the records in even bins.
    noise : float
        Standard deviation of the noise of one of these.
    octaves : Shares
        Shares in the octaves, from low to high.
    ends : tuple of ndarray
        The lower and the upper ends of the octaves.
    """

    edges: np.ndarray
    shares: np.ndarray
    noise: float
    octaves: Shares
    ends: tuple[np.ndarray, np.ndarray]

    @property
    def mirrored(self) -> "EvenCounts":
        """The same of numbers of the other sign."""
        octaves = Shares(self.octaves.shares[::-1], self.octaves.noise[::-1])
        lows, highs = (-ends[::-1] for ends in self.ends)
        return EvenCounts(-self.edges[::-1], self.shares[::-1], self.noise, octaves, (highs, lows))

    def beyond(self) -> Shares:
        """Return the shares of the records above each edge: those above the end of an octave, and of the bins between both.

        Of all octaves that is the one with the least noise, so that the choice is public.
        """
        bins, lows = np.arange(self.edges.size), self.ends[0]
        held = (lows >= self.edges[0]) & (lows < self.edges[-1])
        places = np.append(np.interp(lows[held], self.edges, bins), bins[-1])
        above, variances = (
            np.append(np.cumsum(values[held][::-1])[::-1], 0.0) for values in (self.octaves.shares, self.octaves.noise**2)
        )
        upto = np.concatenate([[0.0], np.cumsum(self.shares)])
        variance = variances[:, None] + np.abs(places[:, None] - bins) * self.noise**2
        best = np.argmin(variance, axis=0)
        return Shares((above + np.interp(places, bins, upto))[best] - upto, np.sqrt(variance[best, bins]))

    def last_bin(self, present: float) -> int | None:
        """Return the last even bin that has records; None unless the releases tell that they end there.

        The first edge that passes is within the records or just beyond them. From there on, the likeliest end is where bins no
        longer hold more than half of what those inside have. Tails that count by themselves are added.

        Parameters
        ----------
        present : float
            Share of the cells that are there.
        """
        found = self.beyond()
        most, least = np.searchsorted(-np.minimum.accumulate(found.shares), [-SPAN * present, (SPAN - 1) * present])
        width = int((most - least) * NEAR)
        if width < 1:
            return None
        inside = np.append(np.zeros(width), found.shares[:-width] - found.shares[width:])
        largest = np.maximum(found.shares, 0.0) + DEVIATIONS * found.noise
        passes = np.flatnonzero(largest <= np.minimum(FALL * inside, CAP * present))
        if not passes.size or 4 * self.noise**2 * width > UNSURE * inside[passes[0]]:
            return None
        first = int(passes[0])
        gains = np.cumsum(self.shares[first:] - inside[first] / width / 2)
        last = first - 1 + int(np.argmax(np.append(0.0, gains)))
        return with_tails(self.shares, 0, last, self.noise)[1]


def drawn_in(finding: Finding, counts: EvenCounts) -> Finding:
    """Return the finding with limits where the records end, as far as the releases tell.

    The core stays, and with it the scale of the feature. Skewed columns, which have a tail, and those on a logarithmic scale
    stay as they are.

    Parameters
    ----------
    finding : Finding
        What is known of the column.
    counts : EvenCounts
        Released shares.

    Returns
    -------
    Finding
        The same, or nearer limits.
    """
    if finding.kind != "linear" or finding.logarithm:
        return finding
    present, (low, high) = 1 - finding.missing, finding.limits
    above, below = counts.last_bin(present), counts.mirrored.last_bin(present)
    low = low if below is None else max(low, float(counts.edges[-2 - below]))
    high = high if above is None else min(high, float(counts.edges[above + 1]))
    return replace(finding, limits=(low, high)) if low < high else finding


def with_tails(shares: np.ndarray, first: int, last: int, sigma: float) -> tuple[int, int]:
    """Return ends beyond those of a run as long as some bins next to it hold more than noise together.

    Parameters
    ----------
    shares : ndarray
        Noisy shares of bins.
    first, last : int
        Ends of the run.
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    tuple of int
        The first and the last bin.
    """

    def beyond(beside: np.ndarray) -> int:
        """Return the number of bins, from the run on, that belong to it."""
        noise = Z * sigma * np.sqrt(np.arange(1, beside.size + 1))
        held = np.flatnonzero(np.cumsum(beside) > np.maximum(noise, LEAST_MASS))
        return int(held[0]) + 1 + beyond(beside[held[0] + 1 :]) if held.size else 0

    return first - beyond(shares[:first][::-1]), last + beyond(shares[last + 1 :])


# Share of the cells that are there which a window must hold, and of which the noise of its sum, Z standard deviations, is less.
INSIDE, BLUR = 0.99, 0.25
# Bins of a window over those of the one tried before, and the share of a window that is added on both sides as a margin, for a
# column and for a target: its predictions are clipped. With 1.2 and .4 for 2 and .25, scores of bike, ijcnn1 and adult are level.
LONGER, MARGIN, TARGET_MARGIN = 1.2, 0.4, 0.5
# A target has a margin in proportion to the ratio of the longer to the shorter part beside its median, up to this: the few
# largest values of amounts and counts decide R2, which rose by 0 to .021 on five made-up skewed targets at epsilon 1 and 3.
LONGEST_TAIL = 8.0
# The same of a target whose window is the likeliest one, as noise hides its edges. Without such a window, R2 of a pressure
# (101325, spread 900) was -5.1 at 1000 records and epsilon 1, and is .40 now; margins of 1 and 2 were level on five targets.
# Targets of two clusters far apart, of which the window holds one, lost .01 to .08 of an R2 of 0.
UNSURE_MARGIN = 2.0
# Where noise hides the edges of a window: how much likelier it must be, as a logarithm, that all cells lie evenly in it than that
# they lie evenly between the limits; the share of the cells that it must seem to hold; and its least distance from 0, over
# its length. A column nearer to 0 has its scale from octaves, and a window would cut off its tail.
EVIDENCE, SEEMS_INSIDE, FAR = 15.0, 0.9, 0.25
# Share of the cells that are there which integers that count must hold, for a column to be these integers.
CLEAR = 0.95
# The least share for all integers together if they cannot be told apart; it is larger if less than the rest is in doubt. How many
# standard deviations of their sum are in doubt, and the largest doubt: with .4, 24 hours were no integers in 11 of 12 fits of
# bike at epsilon .3, which cost .22 of R2, and with .7 columns of ten values lost .02 at .2.
TOGETHER, DOUBT, LARGEST_DOUBT = 0.75, 3.0, 0.5
# Share of the mean of a run that a place must add to it: with none, months reached to 21 and to 24 in 2 of 8 fits of bike at
# epsilon 1. A choice.
PRICE = 0.15
# Even bins, with the margins of one on both sides, up to which a column gets narrower ones.
FEW = 4.5
# Smallest and largest number of integers that get an indicator each.
FEWEST_INTEGERS, MOST_INTEGERS = 3, 40


def refine(
    finding: Finding,
    shares: np.ndarray,
    sigma: float,
    target: bool = False,
    n_bins: int = EVEN_BINS,
    octaves: Shares | None = None,
) -> Finding:
    """Return what a fine histogram of a column adds to what is known.

    Parameters
    ----------
    finding : Finding
        What earlier histograms told.
    shares : ndarray
        Noisy counts over n: of even bins between the limits, then of integers.
    sigma : float
        Standard deviation of their noise.
    target : bool, default=False
        Whether the column is to be predicted.
    n_bins : int, default=1024
        Number of even bins.
    octaves : Shares or None, default=None
        Shares of the octaves, which tell with the bins where records end; None, as for a target, leaves limits with a margin.

    Returns
    -------
    Finding
        The same, or narrower limits.
    """
    low, high = finding.limits
    even, at = shares[:n_bins], shares[n_bins:]
    if at.size:
        values = integers_between(low, high)
        few = None if target else _few_integers(finding, values, at, sigma)
        if few is not None:
            return few
        even = even + np.histogram(values, bins=n_bins, range=(low, high), weights=at)[0]  # also where few are integers
    narrowed = _narrowed(finding, even, sigma, target)
    if octaves is None:
        return narrowed
    return drawn_in(narrowed, EvenCounts(np.linspace(low, high, even.size + 1), even, sigma, octaves, octave_ends()))


def _few_integers(finding: Finding, values: np.ndarray, at: np.ndarray, sigma: float) -> Finding | None:
    """Return the integers that the column holds; None if it does not look like few integers."""
    # 1. The run of neighbouring integers that holds most, in two passes: the price of a place in the second one follows from the
    #    mean of the first run.
    present = 1 - finding.missing
    first, last = _best_run(at, max(sigma / 2, LEAST_MASS))
    first, last = _best_run(at, max(sigma / 2, LEAST_MASS, at[first : last + 1].mean() * PRICE))  # where noise is no part of it
    # 2. The integers that count: by less inside of the run than outside.
    inside = (np.arange(at.size) >= first) & (np.arange(at.size) <= last)
    held = at > np.where(inside, max(NEAR_Z[0] * sigma, LEAST_MASS), max(FAR_Z * sigma, LEAST_MASS))
    if not held.any():
        return None
    # 3. Whether the column holds nothing else: by these integers alone, or by the whole run if noise hides single ones.
    clear = at[held].sum() >= CLEAR * present
    doubt = DOUBT * sigma * math.sqrt(last - first + 1)
    enough = min(max(1 - doubt, TOGETHER), CLEAR)  # many zeros beside numbers that are no integers are not enough
    if not clear and not (doubt < LARGEST_DOUBT and at[first : last + 1].sum() > enough * present):
        return None
    # 4. What most cells are, and the ends: of the integers, and of tails next to them that hold more than noise together. Where
    #    noise hides single integers, it also chooses the run, so it cuts off no part of the core that octaves have.
    there = values[held]
    mode, top = float(there[np.argmax(at[held])]), min(float(at[held].max()) / max(present, 1e-9), 1.0)
    first, last = (int(np.flatnonzero(held)[place]) for place in (0, -1)) if clear else (first, last)
    furthest = [float(values[place]) for place in with_tails(at, first, last, sigma)]
    if not clear:
        furthest = [min(furthest[0], finding.core[0]), max(furthest[1], finding.core[1])]
    low, high = float(there[0]), float(there[-1])
    if low == high and clear:
        return replace(finding, kind="constant", limits=(low, low), core=(low, low), centre=low, square=STEP_SQUARE)
    if not clear:
        low, high = float(values[first]), float(values[last])
        low, high = (low - 1, high + 1) if low == high else (low, high)
        there = np.arange(low, high + 1)
    return replace(
        finding,
        kind="integers",
        limits=(min(low, furthest[0]), max(high, furthest[1])),
        core=(low, high),
        centre=min(max(mode, low), high) if top > MODE else (low + high) / 2,
        integers=tuple(there.tolist()) if FEWEST_INTEGERS <= there.size <= MOST_INTEGERS else (),
        square=max((1 - top) / 3, LEAST_SQUARE) if top > MODE else 1 / 3,
        binary=there.size == 2 and furthest == [low, high],
        logarithm=0.0 if there.size <= MOST_INTEGERS else finding.logarithm,
    )


def _best_run(at: np.ndarray, price: float) -> tuple[int, int]:
    """Return the first and last place of the run that holds most, less a price for each place."""
    # Largest sum of a subarray: the largest difference between a cumulated sum and the smallest one before it.
    sums = np.concatenate([[0.0], np.cumsum(at - price)])
    gains = sums - np.minimum.accumulate(sums)
    last = int(np.argmax(gains[1:]))
    return int(np.argmin(sums[: last + 1])), last


def ends_in_few_bins(before: Finding, after: Finding) -> bool:
    """Return whether a column is in so few even bins that narrower ones may tell more: it is far from 0 for its spread."""
    width, whole = (limits[1] - limits[0] for limits in (after.limits, before.limits))
    return after.kind == "linear" and width <= FEW * whole / EVEN_BINS


def may_be_integers(before: Finding, after: Finding) -> bool:
    """Return whether limits are near enough for bins of integers only now, such as those of years.

    Indicators for these raised R2 of linear models from .16 to .89 on a made-up table of 10 000 records with an effect of each
    year (epsilon 1).
    """
    return after.kind == "linear" and integers_between(*before.limits).size == 0 < integers_between(*after.limits).size


def _narrowed(finding: Finding, even: np.ndarray, sigma: float, target: bool) -> Finding:
    """Return the finding with a window and a margin as limits and core, where noise lets one be seen.

    The window is the shortest one that was tried and holds nearly all cells. Where noise hides which does, it is the likeliest
    one, far from 0; a target has a wide margin then, because its values outside would be lost.
    """
    shortest = _shortest(finding, even, sigma)
    found = shortest or _likeliest(finding, even, sigma)
    if found is None:
        return finding
    (place, width), edges = found, np.linspace(*finding.limits, even.size + 1)
    below = above = width * MARGIN
    if target:
        # the median cuts the window in two parts; the longer one is a tail, and gets more margin
        half = int(np.searchsorted(np.cumsum(even[place : place + width]), even[place : place + width].sum() / 2)) + 0.5
        tails = (min(max(ratio, 1.0), LONGEST_TAIL) for ratio in (half / (width - half), width / half - 1))
        below, above = (width * (UNSURE_MARGIN if shortest is None else TARGET_MARGIN * tail) for tail in tails)
    ends = float(edges[max(place - max(int(below), 1), 0)]), float(edges[min(place + width + max(int(above), 1), even.size)])
    zero = finding.zeros > MODE and ends[0] <= 0 <= ends[1]
    return replace(finding, kind="linear", limits=ends, core=ends, centre=finding.centre if zero else sum(ends) / 2)


def _shortest(finding: Finding, even: np.ndarray, sigma: float) -> tuple[int, int] | None:
    """Return first bin and length of the shortest window that holds nearly all cells; None if noise hides which one does."""
    present = 1 - finding.missing
    for width, place, held in _fullest(even, even.size - 1):
        if _blurred(width, sigma, present):
            return None
        if held >= INSIDE * present:
            return place, width
    return None


def _likeliest(finding: Finding, even: np.ndarray, sigma: float) -> tuple[int, int] | None:
    """Return the same of the window, of those that noise hides, in which all cells lie evenly with the largest likelihood."""
    present, best, found = 1 - finding.missing, EVIDENCE, None
    edges = np.linspace(*finding.limits, even.size + 1)
    for width, place, held in _fullest(even, even.size // 2):
        if _blurred(width, sigma, present) and held >= SEEMS_INSIDE * present:
            # Gaussian noise: half the squared distance of the counts from evenly `present / size` each over sigma^2, less that
            # from evenly `present / width` in the window and 0 outside
            gain = (present * (2 * held - present) / width - present**2 / even.size) / (2 * sigma**2)
            low, high = edges[place], edges[place + width]
            if gain > best and max(low, -high) >= FAR * (high - low):
                best, found = gain, (place, width)
    return found


def _blurred(width: int, sigma: float, present: float) -> bool:
    return Z * sigma * math.sqrt(width) > BLUR * present


def _fullest(even: np.ndarray, longest: int) -> Iterator[tuple[int, int, float]]:
    """Yield lengths of windows, the first bin of the one of each length that holds most, and its sum."""
    # sums[i + width] - sums[i] is what the bins i to i + width - 1 hold; lengths grow by the factor LONGER
    sums, width = np.concatenate([[0.0], np.cumsum(even)]), 1
    while width <= longest:
        held = sums[width:] - sums[:-width]
        place = int(np.argmax(held))
        yield width, place, float(held[place])
        width = max(width + 1, int(width * LONGER))

"""Conclude from both histograms of a column where its records end, so that nothing is extrapolated from noise.

All are functions of releases and of their noise.
"""

from dataclasses import dataclass, replace

import numpy as np

from skdp.preprocessing._octave_rule import LEAST_MASS, Finding, Z
from skdp.preprocessing._parts import Shares

__all__ = ["EvenCounts", "drawn_in", "with_tails"]

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

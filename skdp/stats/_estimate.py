"""Hold numbers with intervals that follow from releases."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """Hold a number and its interval, all nan where the releases do not determine it.

    Parameters
    ----------
    value, low, high : float
        The estimate and the ends of its interval.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def determined(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)

    def times(self, factor: float) -> "Estimate":
        """Return the estimate in another unit."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)


def share_of(count: float, noise: float, total: float, z: float) -> Estimate:
    """Return the share of a count in a positive total, whose interval covers noise and sampling.

    Parameters
    ----------
    count : float
        Noisy count.
    noise : float
        Standard deviation of the noise of the count, less what moves with the total.
    total : float
        All records, or their weight.
    z : float
        Half the length of the interval, in standard deviations.

    Returns
    -------
    Estimate
        Between 0 and 1.
    """
    share = min(max(count / total, 0.0), 1.0)
    # where noise hides a small share, sampling may have moved it by as much as it moves one of the size of the noise
    usual = min(max(share, noise / total), 0.5) if share <= 0.5 else max(min(share, 1 - noise / total), 0.5)
    half = z * math.hypot(noise / total, math.sqrt(usual * (1 - usual) / total))
    return Estimate(share, min(max(count / total - half, 0.0), 1.0), max(min(count / total + half, 1.0), 0.0))

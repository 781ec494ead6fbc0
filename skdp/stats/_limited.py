"""Conclude mean and deviation of a column from sums between limits, and choose these limits, from releases alone."""

import math

import numpy as np

from skdp.stats._distribution import Distribution
from skdp.stats._estimate import Estimate

# Shares of the cells beyond a limit, at either end, that are tried beside the bounds; and what a limit is taken to cost beside
# the noise and the mass that is seen beyond it: this share of the largest possible effect of the noise of that mass. Choices of
# the prototype, made on adult and california; bank, mammography and covertype validated them.
TAILS, UNSEEN = (1e-4, 3e-4, 0.001, 0.003, 0.01, 0.02), 0.05
# Largest error between limits over that between the bounds for which values are clipped. A choice: a plain mean is easier to
# read.
GAIN = 0.75


def limits_of(distribution: Distribution, noise: float) -> tuple[float, float]:
    """Return the limits between which the mean has the least error, as far as the releases tell.

    Parameters
    ----------
    distribution : Distribution
        Of the column, between its bounds.
    noise : float
        Standard deviation of the noise of a sum of numbers in [-1, 1].

    Returns
    -------
    tuple of float
        Low and high; the bounds, or candidates.
    """
    bounds = distribution.bounds
    if not distribution.determined:
        return bounds
    middles, masses = distribution.masses
    present, missing = distribution.present, distribution.present_noise
    hidden = UNSEEN * distribution.typical_noise / present
    best, plain = (math.inf, bounds), math.inf
    for high in (bounds[1], *(distribution.candidate(1 - tail, above=True) for tail in TAILS)):
        for low in (bounds[0], *(distribution.candidate(tail, above=False) for tail in TAILS)):
            if low < high:
                half, middle = high / 2 - low / 2, low / 2 + high / 2
                beyond = np.maximum(middles - high, 0) - np.maximum(low - middles, 0)
                place = float(np.clip(middles, low, high) @ masses - middle) / half
                error = math.hypot(
                    float(beyond @ masses),
                    hidden * (bounds[1] - high + low - bounds[0]),
                    half * math.hypot(noise, place * missing) / present,
                )
                plain = min(plain, error) if (low, high) == bounds else plain
                best = min(best, (error, (low, high)))
    return best[1] if best[0] < GAIN * plain else bounds


def moments_of(
    distribution: Distribution, limits: tuple[float, float], sums: np.ndarray, noise: np.ndarray, z: float
) -> tuple[Estimate, Estimate]:
    """Return mean and standard deviation of the cells that are there, clipped to limits.

    Parameters
    ----------
    distribution : Distribution
        Of the column.
    limits : tuple of float
        Low and high.
    sums : ndarray of shape (2,)
        Noisy sums of u and of u^2, where u is a cell mapped to [-1, 1] by the limits.
    noise : ndarray of shape (2,)
        Standard deviations of their noise.
    z : float
        Length of an interval on either side, in standard deviations.

    Returns
    -------
    tuple of Estimate
        The mean and the deviation.
    """
    low, high = limits
    half, middle = high / 2 - low / 2, low / 2 + high / 2
    if not distribution.determined:
        return Estimate(), Estimate()
    present, missing = min(distribution.present, distribution.total), distribution.present_noise
    # In units of the limits: mean and mean square of u, and the noise of the variance.
    mean, square = sums / present
    of_mean, of_square = noise / present
    variance = square - mean**2 + of_mean**2

    def variance_error(largest: float, squared: float = 0.0) -> float:
        return math.hypot(of_square, 2 * largest * of_mean, squared, (2 * largest**2 - square) * missing / present)

    of_variance = variance_error(mean, math.sqrt(2) * of_mean**2)
    spread = min(max(variance, of_variance), 1.0)
    # Fieller: the mean m is in the interval if |sum - m present| is at most z standard deviations of it.
    records, ratio = distribution.records, float(sums[0]) / distribution.present
    a = 1 - (z * missing / distribution.present) ** 2
    c = ratio**2 - z**2 * (of_mean**2 + spread / records)
    root = math.sqrt(max(ratio**2 - a * c, 0.0))
    average = float(np.clip(middle + half * mean, low, high))
    ends = [float(np.clip(middle + half * (ratio + sign * root) / a, low, high)) for sign in (-1, 1)] if a > 0 else [low, high]
    # Sampling error of the variance, from the fourth moment between the limits.
    middles, masses = distribution.masses
    fourth = float((np.clip((middles - middle) / half, -1, 1) - min(max(mean, -1), 1)) ** 4 @ masses)
    sampling = math.sqrt(max(fourth - max(variance, 0.0) ** 2, 0.0) / records)
    # Where noise makes the mean smaller, the variance is too large and its error would seem small, so the lower end takes the
    # mean from above: with an error of e, 2 |m| e - e^2 + o^2 is within 2 z o (|m| - e + c o) up to e = z o for this c.
    above = min(abs(mean) + (z + 1 / z) / 2 * of_mean, 1.0)
    least = variance - z * math.hypot(variance_error(max(above, abs(mean))), sampling)
    most = variance + z * math.hypot(of_variance, sampling)
    deviations = [half * math.sqrt(min(max(v, 0.0), 1.0)) for v in (variance, least, most)]
    return Estimate(average, min(ends[0], average), max(ends[1], average)), Estimate(*deviations)

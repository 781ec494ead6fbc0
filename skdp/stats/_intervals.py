"""Compute intervals that cover sampling, which is normal, and the noise of releases, which is Laplace or a staircase."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.privacy.noise.laplace import IntegerLaplace
from skdp.privacy.noise.staircase import IntegerStaircase

# Points of the grid on which distributions are convolved, and its half-length in standard deviations of the sum. Choices: with
# steps of .006 of them quantiles are within .003, and Laplace noise is beyond the ends with a probability of 1e-14.
POINTS, REACH = 2**13, 24.0

Noise = tuple[float, IntegerLaplace | IntegerStaircase | None]  # what the noise is multiplied by; None without noise


def quantile(level: float, normal: float, noises: Sequence[Noise] = ()) -> float:
    """Return the distance from 0 below which the absolute value of a sum is with probability ``level``.

    Parameters
    ----------
    level : float
        Probability.
    normal : float
        Standard deviation of the normal term.
    noises : sequence of (float, noise)
        Other independent terms.

    Returns
    -------
    float
        The distance.
    """
    terms = [(abs(factor), noise) for factor, noise in noises if noise is not None and factor]
    total = math.hypot(normal, *(factor * noise.std for factor, noise in terms))
    if not terms or total == 0:
        return float(-ndtri((1 - level) / 2)) * total
    edges = np.linspace(-REACH, REACH, POINTS + 1) * total
    cumulative = [_cumulative(edges / factor, noise) for factor, noise in terms]
    if normal > 0:
        cumulative.append(ndtr(edges / normal))
    transform = np.prod([np.fft.rfft(np.diff(part), 4 * POINTS) for part in cumulative], axis=0)
    n_terms = len(cumulative)
    masses = np.fft.irfft(transform, 4 * POINTS)
    places = np.abs(np.arange(4 * POINTS) - n_terms * (POINTS - 1) / 2)  # from the middle, in steps
    order = np.argsort(places, kind="stable")
    inside = np.cumsum(masses[order])
    return float(places[order][min(int(np.searchsorted(inside, level)), order.size - 1)] * 2 * REACH * total / POINTS)


def _cumulative(distances: np.ndarray, noise: IntegerLaplace | IntegerStaircase) -> np.ndarray:
    beyond = noise.survival(np.abs(distances)) / 2
    return np.where(distances > 0, 1 - beyond, beyond)


def ratio_interval(top: float, bottom: float, variance: float, noises: tuple[float, float], factor: float) -> tuple[float, float]:
    """Return Fieller's interval of a ratio in [-1, 1], wholly uncertain where the denominator may be 0.

    Parameters
    ----------
    top, bottom : float
        Noisy numerator and denominator.
    variance : float
        Sampling variance of ``top - ratio * bottom``.
    noises : tuple of float
        Variances of the noise of both.
    factor : float
        Quantile of the error over its standard deviation.

    Returns
    -------
    tuple of float
        The ends.
    """
    square = factor**2
    a, b, c = bottom**2 - square * noises[1], top * bottom, top**2 - square * (noises[0] + variance)
    if a <= 0 or bottom <= 0:
        return -1.0, 1.0
    root = math.sqrt(max(b**2 - a * c, 0.0))
    return max((b - root) / a, -1.0), min((b + root) / a, 1.0)

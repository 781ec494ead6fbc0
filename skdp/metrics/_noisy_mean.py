"""Compute one metric and its confidence interval from a noisy sum of the losses of test records: post-processing."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri

# Steps of a loss on each side of its middle: its rounding is below 1e-5 of its range. A choice; the sums stay exact.
STEPS = 2**16


@dataclass(frozen=True, eq=False)
class NoisyMean:
    """Hold a noisy mean of a loss in [-1, 1], and of its square.

    Parameters
    ----------
    mean, square : float
        Estimates.
    noise : float
        Standard deviation of the noise of the mean; that of the square is eight times as large.
    laplace : bool
        Whether the noise is Laplace (True) or Gaussian.
    n_samples : int
        Public number of test records.
    limits : tuple of float
        Range of the metric: the losses of -1 and of 1.
    steps : int
        Steps on each side of 0 to which losses were rounded; 1 if they are -1 or 1.
    """

    mean: float
    square: float
    noise: float
    laplace: bool
    n_samples: int
    limits: tuple[float, float]
    steps: int

    @classmethod
    def from_sums(
        cls, answer: np.ndarray, std: float, laplace: bool, n_samples: int, limits: tuple[float, float], steps: int
    ) -> "NoisyMean":
        """Return the means that follow from the answer to `skdp.privacy.queries.LossSums`, with the noise ``std`` of each sum."""
        total = steps * n_samples
        square = 1.0 if steps == 1 else 4 * float(answer[1]) / total + 0.5
        return cls(float(answer[0]) / total, square, std / total, laplace, n_samples, limits, steps)

    def interval(self, level: float) -> tuple[float, float, float]:
        """Return the metric with its confidence interval.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end. The interval covers the noise and the sampling of the test records.
        """
        if self.steps == 1:
            low, high = (self._end(level, end) for end in (-1.0, 1.0))
        else:
            # The variance lies between 0 and that of a loss at the ends of its range. Half a standard deviation of noise more: a
            # choice, as a variance that is too small costs more coverage than one that is too large.
            of_square = math.hypot(8 * self.noise, 2 * self.mean * self.noise)
            variance = min(max(self.square - self.mean**2, 0.0) + of_square / 2, max(1 - self.mean**2, 0.0))
            half = half_width(self.noise, math.sqrt(variance / self.n_samples), self.laplace, level)
            low, high = self.mean - half, self.mean + half
        least, most = self.limits
        value, low, high = ((end + 1) / 2 * (most - least) + least for end in (self.mean, low, high))
        return value, low, high

    def _end(self, level: float, end: float) -> float:
        """Return the mean at one end of the interval, with the sampling variance that numbers of -1 and 1 of that mean have."""

        def beyond(mean: float) -> float:
            spread = math.sqrt(max(1 - mean**2, 0.0) / self.n_samples)
            return abs(mean - self.mean) - half_width(self.noise, spread, self.laplace, level)

        start = min(max(self.mean, -1.0), 1.0)
        return end if beyond(end) <= 0 or beyond(start) > 0 else float(brentq(beyond, start, end, xtol=1e-9))


def half_width(noise: float, spread: float, laplace: bool, level: float) -> float:
    """Return the quantile of the absolute sum of noise and a normal.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise.
    spread : float
        Standard deviation of the normal.
    laplace : bool
        Whether the noise is Laplace (True) or normal.
    level : float
        Probability below the quantile.

    Returns
    -------
    float
        The quantile.
    """
    normal = float(ndtri((1 + level) / 2))
    if not laplace or noise <= 1e-3 * spread:  # so little noise changes the quantile as if it were normal
        return normal * math.hypot(noise, spread)
    b = noise / math.sqrt(2)
    if spread < 1e-3 * b:
        return -b * math.log(1 - level) + normal * spread

    def excess(t: float) -> float:
        """Return the probability beyond t, less that of the interval."""
        x, ratio = t / spread, spread / b
        tails = np.exp(ratio**2 / 2 + np.array([-t / b, t / b]) + log_ndtr(np.array([x - ratio, -x - ratio])))
        return float(2 * np.exp(log_ndtr(-x)) + tails[0] - tails[1]) - (1 - level)

    most = -b * math.log(1 - level) + 2 * normal * spread + b
    return float(brentq(excess, 0.0, 2 * most, xtol=1e-9 * most))

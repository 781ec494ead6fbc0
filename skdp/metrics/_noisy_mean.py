"""Compute one metric and its confidence interval from a noisy sum of the losses of test records: post-processing."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr, ndtri

from skdp.privacy.queries import LossSums

__all__ = ["LOSSES", "NoisyMean", "half_width", "losses_of"]

# Steps of a loss on each side of its middle: its rounding is below 1e-5 of its range. A choice; the sums stay exact.
STEPS = 2**16
LARGEST = 6.0  # log-odds, as for tables
# Range of each metric that is the mean of a loss.
LOSSES = {
    "accuracy": (0.0, 1.0),
    "log_loss": (math.log1p(math.exp(-LARGEST)), math.log1p(math.exp(LARGEST))),
    "brier_score": (0.0, 1.0),
}


def losses_of(name: str, log_odds: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return what each record adds to a metric, scaled to [-1, 1]."""
    positive = labels == 1
    if name == "accuracy":
        return np.where((log_odds > 0) == positive, 1.0, -1.0)
    signed = np.where(positive, -log_odds, log_odds)
    losses = np.logaddexp(0.0, signed) if name == "log_loss" else expit(signed) ** 2
    low, high = LOSSES[name]
    return np.asarray((2 * losses - low - high) / (high - low))


@dataclass(frozen=True, eq=False)
class NoisyMean:
    """Hold a noisy mean of a loss in [-1, 1], and of its square.

    Parameters
    ----------
    name : str
        Metric, of which the loss is.
    mean, square : float
        Estimates.
    noise : float
        Standard deviation of the noise of the mean; that of the square is eight times as large.
    laplace : bool
        Whether the noise is of Laplace, or Gaussian.
    n_samples : int
        Public number of test records.
    """

    name: str
    mean: float
    square: float
    noise: float
    laplace: bool
    n_samples: int
    parts: tuple["NoisyMean", ...] = ()

    @classmethod
    def query(cls, name: str) -> LossSums:
        """Return the query of a metric."""
        return LossSums(1) if name == "accuracy" else LossSums(STEPS, squared=True)

    @classmethod
    def from_sums(cls, name: str, answer: np.ndarray, std: float, laplace: bool, n_samples: int) -> "NoisyMean":
        """Return the means that follow from the answer to the query, with the standard deviation of its noise."""
        if name == "accuracy":  # the numbers are -1 or 1
            return cls(name, float(answer[0]) / n_samples, 1.0, std / n_samples, laplace, n_samples)
        total = STEPS * n_samples
        return cls(name, float(answer[0]) / total, 4 * float(answer[1]) / total + 0.5, std / total, laplace, n_samples)

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
        if self.name == "accuracy":
            low, high = (self._end(level, end) for end in (-1.0, 1.0))
        else:
            # The variance lies between 0 and that of a loss at the ends of its range. Half a standard deviation of noise more: a
            # choice, as a variance that is too small costs more coverage than one that is too large.
            of_square = math.hypot(8 * self.noise, 2 * self.mean * self.noise)
            variance = min(max(self.square - self.mean**2, 0.0) + of_square / 2, max(1 - self.mean**2, 0.0))
            half = half_width(self.noise, math.sqrt(variance / self.n_samples), self.laplace, level)
            low, high = self.mean - half, self.mean + half
        least, most = LOSSES[self.name]
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
        Whether the noise is of Laplace, or normal.
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

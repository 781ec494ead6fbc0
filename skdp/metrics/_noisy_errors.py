"""Compute metrics of a regression and their confidence intervals from noisy sums of its errors: post-processing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skdp.metrics._deviances import Constant
from skdp.privacy.queries.error_sums import CENTRES, WEIGHTS


@dataclass(frozen=True, eq=False)
class NoisyErrors:
    """Hold noisy means of powers of clipped errors and targets.

    Parameters
    ----------
    means : ndarray of shape (4,) or (10,)
        Estimated means of e, e^2, e^4 and half the sign of the prediction less the target, then of u, u^2, u^4, e^2 u^2, u^3 and
        e^2 u; e is the absolute error over its bound, and u the centred target over half its range.
    noise : ndarray of the same shape
        Standard deviations of their noise.
    error_bound : float
        Larger errors count as this one: as given, or as released.
    half_range : float or None
        Half the public range of the targets.
    n_samples : int
        Public number of test records.
    """

    means: np.ndarray
    noise: np.ndarray
    error_bound: float
    half_range: float | None
    n_samples: int

    @classmethod
    def from_sums(
        cls, answer: np.ndarray, std: float, error_bound: float, half_range: float | None, n_samples: int
    ) -> "NoisyErrors":
        """Return the means that follow from the answer to `skdp.privacy.queries.ErrorSums`.

        Parameters
        ----------
        answer : ndarray of shape (4,) or (10,)
            Noisy sums.
        std : float
            Standard deviation of the noise of each.
        error_bound : float
            Bound of the errors.
        half_range : float or None
            Half the public range of the targets.
        n_samples : int
            Number of records.

        Returns
        -------
        NoisyErrors
            The means.
        """
        weights = WEIGHTS[: answer.size] * n_samples
        return cls(answer / weights + CENTRES[: answer.size], std / weights, error_bound, half_range, n_samples)

    def mae(self, level: float) -> tuple[float, float, float]:
        """Return the mean absolute error, with a confidence interval.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end.
        """
        mean, low, high = self._interval(0, self.means[1] - self.means[0] ** 2, level)
        return self.error_bound * mean, self.error_bound * low, self.error_bound * high

    def rmse(self, level: float) -> tuple[float, float, float]:
        """Return the root of the mean squared error, with a confidence interval.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end.
        """
        mean, low, high = (math.sqrt(max(end, 0.0)) for end in self._interval(1, self.means[2] - self.means[1] ** 2, level))
        return self.error_bound * mean, self.error_bound * low, self.error_bound * high

    def r2(self, level: float) -> tuple[float, float, float]:
        """Return the coefficient of determination, with Fieller's confidence interval.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end; nan and an infinite interval if the variance of the targets is not above its noise.
        """
        if self.half_range is None:
            raise ValueError("R2 needs the variance of the targets; expected target_bounds.")
        n, scale = self.n_samples, (self.error_bound / self.half_range) ** 2
        _, errors, e4, _, u, u2, u4, e2u2, u3, e2u = map(float, self.means)
        spread = u2 - u**2 + float(self.noise[4]) ** 2  # the last term corrects the bias of the square of a noisy mean
        # Moments of e^2 and of (u - mean)^2. R2 is 1 - scale * rho: the scale comes last, because its square may overflow.
        of_spread = u4 - 4 * u * u3 + 6 * u**2 * u2 - 3 * u**4
        products = e2u2 - 2 * u * e2u + u**2 * errors
        of_errors, of_both = max(e4 - errors**2, 0.0), max(of_spread - spread**2, 0.0)
        noise = float(self.noise[1]) ** 2, float(self.noise[5]) ** 2 + (2 * u * float(self.noise[4])) ** 2
        sampling = of_errors / n, of_both / n, (products - errors * spread) / n
        rho, low, high = fieller(errors, spread, sampling, noise, level)
        return 1 - scale * rho, 1 - scale * high, 1 - scale * low

    def coverage(self, level: float) -> tuple[float, float, float]:
        """Return the share of targets at or below the prediction, with a confidence interval.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end: the solutions of ``(p - estimate)^2 <= q^2 (noise^2 + p (1 - p) / n)``.
        """
        n, share, q2 = self.n_samples, float(self.means[3]) + 0.5, float(ndtri((1 + level) / 2)) ** 2
        square, slope = 1 + q2 / n, -(2 * share + q2 / n)
        root = math.sqrt(max(slope**2 - 4 * square * (share**2 - q2 * float(self.noise[3]) ** 2), 0.0))
        low, high = (float(np.clip((-slope + sign * root) / (2 * square), 0.0, 1.0)) for sign in (-1, 1))
        return float(np.clip(share, 0.0, 1.0)), low, high

    def _interval(self, place: int, variance: float, level: float) -> tuple[float, float, float]:
        """Return a mean with its interval by normal theory."""
        return normal_interval(float(self.means[place]), variance / self.n_samples, float(self.noise[place]), level)


@dataclass(frozen=True, eq=False)
class NoisyDeviances:
    """Hold noisy moments of the deviances of a model, and of a constant.

    Parameters
    ----------
    first : ndarray of shape (1,) or (3,)
        Estimated means of a, and of b and t: deviances of the model and of the constant, over their bounds, and the place of the
        target in its range.
    second : ndarray of shape (1, 1) or (3, 3)
        Estimated means of their products.
    noise : float
        Standard deviation of the noise of each first mean.
    error_bound : float
        Larger deviances of the model count as this one: as given, or as released.
    constant : Constant or None
        The constant, if there is one.
    n_samples : int
        Public number of test records.
    """

    first: np.ndarray
    second: np.ndarray
    noise: float
    error_bound: float
    constant: Constant | None
    n_samples: int

    @classmethod
    def from_sums(
        cls, answer: np.ndarray, std: float, error_bound: float, constant: Constant | None, n_samples: int
    ) -> "NoisyDeviances":
        """Return the moments that follow from the answer to `skdp.privacy.queries.MomentSums`, with the noise of each sum."""
        k = 1 if constant is None else 3
        second = np.empty((k, k))
        second[np.triu_indices(k)] = second.T[np.triu_indices(k)] = 2 * answer[k:] / n_samples + 0.5
        return cls(answer[:k] / n_samples + 0.5, second, std / n_samples, error_bound, constant, n_samples)

    def mean(self, level: float) -> tuple[float, float, float]:
        """Return the mean deviance of the model, with a confidence interval by normal theory.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end.
        """
        value = float(self.first[0])
        found = normal_interval(value, (float(self.second[0, 0]) - value**2) / self.n_samples, self.noise, level)
        return self.error_bound * found[0], self.error_bound * found[1], self.error_bound * found[2]

    def d2(self, level: float) -> tuple[float, float, float]:
        """Return the explained share of the deviance, with Fieller's confidence interval.

        Parameters
        ----------
        level : float
            Coverage of the interval.

        Returns
        -------
        tuple of float
            Estimate, lower and upper end; nan and an infinite interval if the deviance of the constant is not above its noise.
        """
        if self.constant is None:
            raise ValueError("D2 needs the deviance of a constant, which was not released.")
        constant, noise = self.constant, self.noise
        # In units of the bound of b. The deviance of the mean is that of the constant less the one of the mean from the constant;
        # its last term corrects the bias of the square of a noisy mean.
        less, slope, curvature = constant.below(float(self.first[2]))
        top = np.array([self.error_bound / constant.bound, 0.0, 0.0])
        bottom = np.array([0.0, 1.0, -slope])
        spread = float(self.first[1]) - less + curvature * noise**2
        covariance = self.second - np.outer(self.first, self.first)
        sampling = [float(a @ covariance @ b) / self.n_samples for a, b in ((top, top), (bottom, bottom), (top, bottom))]
        noises = float(top @ top) * noise**2, float(bottom @ bottom) * noise**2
        rho, low, high = fieller(float(top @ self.first), spread, sampling, noises, level)
        return 1 - rho, 1 - high, 1 - low


def normal_interval(mean: float, sampling: float, noise: float, level: float) -> tuple[float, float, float]:
    """Return a non-negative mean with its interval by normal theory, from its variance by sampling and its noise."""
    half = float(ndtri((1 + level) / 2)) * math.sqrt(max(sampling, 0.0) + noise**2)
    return max(mean, 0.0), mean - half, mean + half


def fieller(
    errors: float, spread: float, sampling: Sequence[float], noise: Sequence[float], level: float
) -> tuple[float, float, float]:
    """Return the ratio of the errors to the spread, with Fieller's confidence interval; both are non-negative.

    Parameters
    ----------
    errors, spread : float
        Estimates.
    sampling : sequence of three floats
        Variances of both by sampling, and their covariance, as estimated.
    noise : sequence of two floats
        Variances of both by noise.
    level : float
        Coverage of the interval.

    Returns
    -------
    tuple of float
        Ratio, lower and upper end; nan, 0 and inf if the spread is not above its noise.
    """
    of_errors, of_spread = (max(float(variance), 0.0) for variance in sampling[:2])
    both = float(np.clip(sampling[2], -math.sqrt(of_errors * of_spread), math.sqrt(of_errors * of_spread)))
    q2 = float(ndtri((1 + level) / 2)) ** 2
    square = spread**2 - q2 * (of_spread + noise[1])
    slope = -2 * errors * spread + 2 * q2 * both
    constant = errors**2 - q2 * (of_errors + noise[0])
    root = slope**2 - 4 * square * constant
    if square <= 0 or root < 0 or spread <= 0:
        return math.nan, 0.0, math.inf
    low, high = ((-slope + sign * math.sqrt(root)) / (2 * square) for sign in (-1, 1))
    return max(errors, 0.0) / spread, max(low, 0.0), high

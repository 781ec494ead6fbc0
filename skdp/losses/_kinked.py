"""Compute the losses of numbers with a kink: convex, of bounded slope, not smooth."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

__all__ = ["Absolute", "EpsilonInsensitive", "KinkedLoss", "Quantile"]


class KinkedLoss(ABC):
    """A convex, piecewise linear loss of the residual ``r = t - y``. Targets and raw predictions may be any finite numbers."""

    smoothness: ClassVar[float] = math.inf
    n_outputs: ClassVar[int] = 1
    targets: ClassVar[str] = "numbers"
    convex: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each record, shape (m,), for any finite targets."""
        with np.errstate(over="ignore"):
            return self._value(raw[:, 0] - labels)

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative in the raw predictions, shape (m, 1); at a kink the mean of both slopes."""
        with np.errstate(over="ignore"):
            return self._slope(raw - labels[:, None])

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Bound on the absolute derivative, which is attained."""

    @abstractmethod
    def _value(self, residuals: np.ndarray) -> np.ndarray:
        """Loss of each residual."""

    @abstractmethod
    def _slope(self, residuals: np.ndarray) -> np.ndarray:
        """Derivative at each residual."""


@dataclass(frozen=True)
class Quantile(KinkedLoss):
    """The pinball loss ``q max(y - t, 0) + (1 - q) max(t - y, 0)``, whose mean is least at the q-quantile of y.

    Parameters
    ----------
    quantile : float, default=0.5
        q, in (0, 1).

    References
    ----------
    .. [1] R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46 (1978).
    """

    quantile: float = 0.5

    name: ClassVar[str] = "quantile"

    @property
    def lipschitz(self) -> float:
        """Bound on the absolute derivative, the larger of q and 1 - q."""
        return max(self.quantile, 1 - self.quantile)

    def _value(self, residuals: np.ndarray) -> np.ndarray:
        return np.maximum(-self.quantile * residuals, (1 - self.quantile) * residuals)

    def _slope(self, residuals: np.ndarray) -> np.ndarray:
        return np.heaviside(residuals, 0.5) - self.quantile


@dataclass(frozen=True)
class Absolute(KinkedLoss):
    """The absolute error ``|t - y|``, whose mean is least at the median of y."""

    name: ClassVar[str] = "absolute"
    quantile: ClassVar[float] = 0.5

    @property
    def lipschitz(self) -> float:
        """Bound on the absolute derivative, 1."""
        return 1.0

    def _value(self, residuals: np.ndarray) -> np.ndarray:
        return np.abs(residuals)

    def _slope(self, residuals: np.ndarray) -> np.ndarray:
        return np.sign(residuals)


@dataclass(frozen=True)
class EpsilonInsensitive(KinkedLoss):
    """The loss of support vector regression ``max(|t - y| - c, 0)``: residuals up to the threshold c cost nothing.

    Parameters
    ----------
    threshold : float
        c, non-negative, in the units of the targets.

    References
    ----------
    .. [1] H. Drucker, C. Burges, L. Kaufman, A. Smola, V. Vapnik, "Support vector regression machines", NIPS 1996.
    """

    threshold: float

    name: ClassVar[str] = "epsilon_insensitive"

    @property
    def lipschitz(self) -> float:
        """Bound on the absolute derivative, 1."""
        return 1.0

    def _value(self, residuals: np.ndarray) -> np.ndarray:
        return np.maximum(np.abs(residuals) - self.threshold, 0.0)

    def _slope(self, residuals: np.ndarray) -> np.ndarray:
        return np.sign(residuals) * np.heaviside(np.abs(residuals) - self.threshold, 0.5)

"""Compute the squared loss and robust losses of numbers."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

__all__ = ["Cauchy", "Huber", "RobustLoss", "Squared", "SquaredDistance", "Tukey", "Welsch"]

# Largest residual over the threshold: its square is finite in float64. A choice; larger residuals count as this.
LARGEST_RESIDUAL = 1e150


@dataclass(frozen=True)
class Squared:
    """Half the squared error ``(t - y)^2 / 2`` of the raw prediction t of a target y in [-1, 1].

    The derivative is unbounded: ``lipschitz`` bounds it for predictions in [-1, 1], and the clip enforces this bound for all.
    """

    name: ClassVar[str] = "squared"
    quadratic: ClassVar[bool] = True
    least_squares: ClassVar[bool] = True
    lipschitz: ClassVar[float] = 2.0
    smoothness: ClassVar[float] = 1.0
    n_outputs: ClassVar[int] = 1
    targets: ClassVar[str] = "numbers"
    convex: ClassVar[bool] = True
    bounded: ClassVar[bool] = False

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return half the squared residual of each record, shape (m,), for targets in [-1, 1]."""
        return np.square(raw[:, 0] - labels) / 2

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the residuals ``t - y``, the derivative in the raw predictions, shape (m, 1)."""
        return raw - labels[:, None]


@dataclass(frozen=True)
class SquaredDistance:
    """Half the squared distance ``|t - y|^2 / 2`` of the raw predictions t from the targets y, a vector of norm at most 1.

    The derivative is unbounded: ``lipschitz`` bounds its norm for predictions of norm at most 1, and the clip enforces this bound
    for all.

    Parameters
    ----------
    n_outputs : int
        Number of targets.
    """

    n_outputs: int

    name: ClassVar[str] = "joint squared"
    least_squares: ClassVar[bool] = True
    lipschitz: ClassVar[float] = 2.0
    smoothness: ClassVar[float] = 1.0
    targets: ClassVar[str] = "numbers"
    convex: ClassVar[bool] = True
    bounded: ClassVar[bool] = False

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return half the squared distance of each record, shape (m,), for targets of shape (m, n_outputs)."""
        return np.square(raw - labels).sum(axis=1) / 2

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the residuals ``t - y``, the derivative in the raw predictions, shape (m, n_outputs)."""
        return raw - labels


@dataclass(frozen=True)
class RobustLoss(ABC):
    """A loss of the residual ``r = t - y`` whose slope is bounded: quadratic near 0, flatter from the threshold c on.

    The second derivative is 1 at 0 and at most 1 elsewhere. Targets and raw predictions may be any finite numbers: a residual
    beyond the range of float64 has the loss and the slope of the largest ones.

    Parameters
    ----------
    threshold : float
        c, positive, in the units of the targets.
    """

    threshold: float

    name: ClassVar[str]
    steepest: ClassVar[float]
    smoothness: ClassVar[float] = 1.0
    n_outputs: ClassVar[int] = 1
    targets: ClassVar[str] = "numbers"
    bounded: ClassVar[bool] = True

    @property
    def lipschitz(self) -> float:
        """Bound on the absolute derivative, which is attained."""
        return self.steepest * self.threshold

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each record, shape (m,), for any finite targets."""
        with np.errstate(over="ignore"):
            return self.threshold * (self.threshold * self._value(np.abs(self._relative(raw, labels)[:, 0])))

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative in the raw predictions, shape (m, 1), between plus and minus `lipschitz`."""
        return self.threshold * self._slope(self._relative(raw, labels))

    def _relative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Residuals over the threshold, within +-LARGEST_RESIDUAL."""
        with np.errstate(over="ignore"):
            relative = (raw - labels[:, None]) / self.threshold
        return np.clip(relative, -LARGEST_RESIDUAL, LARGEST_RESIDUAL, out=relative)

    @abstractmethod
    def _value(self, size: np.ndarray) -> np.ndarray:
        """Loss at threshold 1, from absolute residuals."""

    @abstractmethod
    def _slope(self, relative: np.ndarray) -> np.ndarray:
        """Derivative at threshold 1."""


@dataclass(frozen=True)
class Huber(RobustLoss):
    """Huber's loss: ``r^2 / 2`` up to the threshold c, ``c |r| - c^2 / 2`` beyond. Convex.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35 (1964).
    """

    name: ClassVar[str] = "huber"
    convex: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0
    most_information: ClassVar[float] = 1.0

    def information(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the second derivatives, shape (m, 1): 1 where the residual is below the threshold, else 0."""
        return np.where(np.abs(self._relative(raw, labels)) < 1, 1.0, 0.0)

    def _value(self, size: np.ndarray) -> np.ndarray:
        # One formula for r^2 / 2 within the threshold and r - 1/2 beyond.
        inner = np.minimum(size, 1.0)
        return inner * (size - inner / 2)

    def _slope(self, relative: np.ndarray) -> np.ndarray:
        return np.clip(relative, -1.0, 1.0)


@dataclass(frozen=True)
class Welsch(RobustLoss):
    """Welsch's loss ``c^2 / 2 (1 - exp(-(r / c)^2))``: bounded, not convex; large residuals have no influence.

    The slope ``r exp(-(r / c)^2)`` is steepest at ``c / sqrt(2)``.

    References
    ----------
    .. [1] J. E. Dennis, R. E. Welsch, "Techniques for nonlinear least squares and robust regression", Comm. Statist. B 7 (1978).
    """

    name: ClassVar[str] = "welsch"
    convex: ClassVar[bool] = False
    steepest: ClassVar[float] = math.exp(-0.5) / math.sqrt(2)

    def _value(self, size: np.ndarray) -> np.ndarray:
        return -np.expm1(-np.square(size)) / 2

    def _slope(self, relative: np.ndarray) -> np.ndarray:
        return relative * np.exp(-np.square(relative))


@dataclass(frozen=True)
class Tukey(RobustLoss):
    """Tukey's biweight ``c^2 / 6 (1 - (1 - (r / c)^2)^3)`` up to the threshold c, ``c^2 / 6`` beyond: bounded, not convex.

    The slope ``r (1 - (r / c)^2)^2`` is steepest at ``c / sqrt(5)`` and 0 from the threshold on.

    References
    ----------
    .. [1] A. E. Beaton, J. W. Tukey, "The fitting of power series, meaning polynomials, illustrated on band-spectroscopic data",
       Technometrics 16 (1974).
    """

    name: ClassVar[str] = "tukey"
    convex: ClassVar[bool] = False
    steepest: ClassVar[float] = 16 / 25 / math.sqrt(5)

    def _value(self, size: np.ndarray) -> np.ndarray:
        # (1 - (1 - s)^3) / 6 for s = r^2, multiplied out: no digits cancel near 0.
        square = np.square(np.minimum(size, 1.0))
        return square * (3 - square * (3 - square)) / 6

    def _slope(self, relative: np.ndarray) -> np.ndarray:
        inside = np.clip(relative, -1.0, 1.0)
        return inside * np.square(1 - np.square(inside))


@dataclass(frozen=True)
class Cauchy(RobustLoss):
    """Cauchy's loss ``c^2 / 2 log(1 + (r / c)^2)``: not convex, it grows as a logarithm.

    The slope ``r / (1 + (r / c)^2)`` is steepest at the threshold c.

    References
    ----------
    .. [1] P. W. Holland, R. E. Welsch, "Robust regression using iteratively reweighted least-squares", Comm. Statist. A 6 (1977).
    """

    name: ClassVar[str] = "cauchy"
    convex: ClassVar[bool] = False
    steepest: ClassVar[float] = 0.5

    def _value(self, size: np.ndarray) -> np.ndarray:
        return np.log1p(np.square(size)) / 2

    def _slope(self, relative: np.ndarray) -> np.ndarray:
        return relative / (1 + np.square(relative))

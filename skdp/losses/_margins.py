"""Compute losses that fall with the margin: those of linear support vector machines, and a proper one of bounded slope."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

__all__ = ["BoundedProper", "Hinge", "HuberHinge", "MarginLoss", "SquaredHinge"]


@dataclass(frozen=True)
class MarginLoss(ABC):
    """Sum over the outputs of a convex, decreasing function of the margin ``z = s t`` with the limit 0.

    With one output, s is +1 for label 1 and -1 for label 0. With one output per class, s is +1 for the record's class and -1 for
    all others: the sum of all one-against-the-rest losses.

    Parameters
    ----------
    n_outputs : int, default=1
        1 for two classes, else their number.
    """

    n_outputs: int = 1

    targets: ClassVar[str] = "classes"
    convex: ClassVar[bool] = True
    one_sided: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of the derivative, which is attained where all outputs are on the wrong side."""
        return self.steepest * math.sqrt(self.n_outputs)

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each record, shape (m,), for class numbers as labels."""
        return self._value(self._signs(labels) * raw).sum(axis=1)

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative in the raw predictions, shape (m, n_outputs); at a kink the mean of both slopes."""
        signs = self._signs(labels)
        slope = self._slope(signs * raw)
        slope *= signs
        return slope

    def constant(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the best constant raw predictions, nearest to 0, shape (n_outputs,), from the weights of the classes."""
        # Each class against the rest, which are two classes with these weights.
        own = np.asarray(frequencies, dtype=np.float64)[-self.n_outputs :]
        rest = np.sum(frequencies) - own
        ratio = np.minimum(own, rest) / np.maximum(np.maximum(own, rest), np.finfo(np.float64).tiny)
        return np.sign(own - rest) * self._furthest(ratio)

    def _signs(self, labels: np.ndarray) -> np.ndarray:
        if self.n_outputs == 1:
            signs = (labels == 1)[:, None].astype(np.float64)
            signs *= 2.0
            signs -= 1.0
            return signs
        return np.where(labels[:, None] == np.arange(self.n_outputs), 1.0, -1.0)

    @abstractmethod
    def _value(self, margins: np.ndarray) -> np.ndarray:
        """Function of the margin."""

    @abstractmethod
    def _slope(self, margins: np.ndarray) -> np.ndarray:
        """Derivative in the margin."""

    @abstractmethod
    def _furthest(self, ratio: np.ndarray) -> np.ndarray:
        """Best constant margin of the heavier of two classes, from the smaller weight over the larger one."""


class CurvedMarginLoss(MarginLoss):
    """A margin loss whose derivative is Lipschitz. At a jump of the second derivative, its value is that of one side."""

    smoothness: ClassVar[float]

    def curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the second derivative in each raw prediction, shape (m, n_outputs): 0 or the smoothness; mixed ones are 0."""
        margins = self._signs(labels) * raw
        return np.where((self._corner[0] < margins) & (margins < self._corner[1]), self.smoothness, 0.0)

    def upper_curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the smoothness for all, shape (m, n_outputs): parabolas with less curvature fall below the loss further on."""
        return np.full(raw.shape, self.smoothness)

    _corner: ClassVar[tuple[float, float]]  # range of margins in which the second derivative is the smoothness; else it is 0


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """The hinge ``max(0, 1 - z)``: not smooth.

    References
    ----------
    .. [1] C. Cortes, V. Vapnik, "Support-vector networks", Machine Learning 20 (1995).
    """

    name: ClassVar[str] = "hinge"
    smoothness: ClassVar[float] = math.inf
    bounded: ClassVar[bool] = True

    def _value(self, margins: np.ndarray) -> np.ndarray:
        return np.maximum(1 - margins, 0.0)

    def _slope(self, margins: np.ndarray) -> np.ndarray:
        return -np.heaviside(1 - margins, 0.5)

    def _furthest(self, ratio: np.ndarray) -> np.ndarray:
        return np.ones_like(ratio)


@dataclass(frozen=True)
class SquaredHinge(CurvedMarginLoss):
    """The squared hinge ``max(0, 1 - z)^2``.

    The derivative is unbounded: ``lipschitz`` bounds it for raw predictions in [-1, 1], and the clip enforces this bound for all.
    """

    name: ClassVar[str] = "squared_hinge"
    smoothness: ClassVar[float] = 2.0
    bounded: ClassVar[bool] = False
    steepest: ClassVar[float] = 4.0
    _corner: ClassVar[tuple[float, float]] = (-math.inf, 1.0)

    def _value(self, margins: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(1 - margins, 0.0))

    def _slope(self, margins: np.ndarray) -> np.ndarray:
        return -2 * np.maximum(1 - margins, 0.0)

    def _furthest(self, ratio: np.ndarray) -> np.ndarray:
        return (1 - ratio) / (1 + ratio)


@dataclass(frozen=True)
class HuberHinge(CurvedMarginLoss):
    """The hinge with a rounded corner: ``1 - z`` below 1/2, 0 above 3/2, ``(3/2 - z)^2 / 2`` between.

    References
    ----------
    .. [1] O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19 (2007), with h = 1/2.
    """

    name: ClassVar[str] = "huber_hinge"
    smoothness: ClassVar[float] = 1.0
    bounded: ClassVar[bool] = True
    _corner: ClassVar[tuple[float, float]] = (0.5, 1.5)

    def _value(self, margins: np.ndarray) -> np.ndarray:
        # As Huber's loss of the part of the margin that is missing.
        missing = np.maximum(1.5 - margins, 0.0)
        inner = np.minimum(missing, 1.0)
        return inner * (missing - inner / 2)

    def _slope(self, margins: np.ndarray) -> np.ndarray:
        return -np.clip(1.5 - margins, 0.0, 1.0)

    def _furthest(self, ratio: np.ndarray) -> np.ndarray:
        return 1.5 - ratio


@dataclass(frozen=True)
class BoundedProper(MarginLoss):
    r"""The loss ``exp(-z) / 2`` for ``z > 0`` and ``(1 - z) / 2`` elsewhere: proper, with slopes of at most 1/2.

    The log-odds minimise its mean. At :math:`t = \log(p / (1 - p))` the mean slope is
    :math:`-p \min(1, (1 - p) / p) / 2 + (1 - p) \min(1, p / (1 - p)) / 2 = 0`. A clipped logistic loss has another minimiser.
    Of two classes alone.
    """

    name: ClassVar[str] = "bounded_proper"
    smoothness: ClassVar[float] = 0.5
    bounded: ClassVar[bool] = True
    steepest: ClassVar[float] = 0.5
    most_information: ClassVar[float] = 0.25

    def information(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative of the mean slope where raw predictions are the log-odds, shape (m, 1); it needs no labels."""
        # min(p, 1 - p) / 2 at log-odds `raw`, without overflow.
        small = np.exp(-np.abs(raw))
        return np.asarray(small / (2 * (1 + small)))

    def _value(self, margins: np.ndarray) -> np.ndarray:
        return np.where(margins > 0, np.exp(-np.maximum(margins, 0.0)), 1 - margins) / 2

    def _slope(self, margins: np.ndarray) -> np.ndarray:
        slope = np.maximum(margins, 0.0)
        np.exp(np.negative(slope, out=slope), out=slope)
        slope *= -0.5
        return slope

    def _furthest(self, ratio: np.ndarray) -> np.ndarray:
        return -np.log(ratio)

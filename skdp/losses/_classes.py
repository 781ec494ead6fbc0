"""Compute the logistic loss and the cross-entropy of class labels."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_softmax, softmax

__all__ = ["Logistic", "Multinomial"]

# Least absolute raw prediction from which the secant of the derivative is taken, which is 0 / 0 at zero. A choice: the secant
# there differs from its limit 1/4 by 2e-8.
FLAT = 1e-3


@dataclass(frozen=True)
class Logistic:
    """Logistic loss ``log(1 + exp(-s t))`` of the raw prediction t, with s = +1 for label 1 and -1 for label 0."""

    name: ClassVar[str] = "logistic"
    log_odds: ClassVar[bool] = True
    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.25
    n_outputs: ClassVar[int] = 1
    targets: ClassVar[str] = "classes"
    convex: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    one_sided: ClassVar[bool] = True

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each record, shape (m,), for labels 0 and 1."""
        return np.logaddexp(0.0, np.where(labels == 1, -raw[:, 0], raw[:, 0]))

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative in the raw predictions, ``expit(t) - label``, shape (m, 1), in [-1, 1]."""
        with np.errstate(over="ignore"):
            slope = np.exp(-raw)  # several times faster than `expit`, and as accurate
        slope += 1.0
        np.divide(1.0, slope, out=slope)
        slope -= labels[:, None]
        return slope

    def curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the second derivative in the raw predictions, ``expit(t) expit(-t)``, shape (m, 1), at most 1/4."""
        return np.asarray(expit(raw) * expit(-raw))

    def upper_curvature(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the secant slope of the derivative between -t and t, in (0, 1/4], for the parabola that touches at both [1]_.

        References
        ----------
        .. [1] T. Jaakkola, M. Jordan, "Bayesian parameter estimation via variational methods", Stat. Comput. 10 (2000).
        """
        ends = np.maximum(np.abs(raw), FLAT)
        return (self.derivative(ends, labels) - self.derivative(-ends, labels)) / (2 * ends)

    def constant(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the log-odds, shape (1,), from positive weights of both classes: the best constant raw prediction."""
        logs = np.log(frequencies)
        return logs[1:] - logs[0]


@dataclass(frozen=True)
class Multinomial:
    """Cross-entropy of the softmax of the raw predictions, one per class.

    Parameters
    ----------
    n_outputs : int
        Number of classes.
    """

    n_outputs: int

    name: ClassVar[str] = "multinomial"
    log_probabilities: ClassVar[bool] = True
    lipschitz: ClassVar[float] = math.sqrt(2.0)
    smoothness: ClassVar[float] = 0.5
    targets: ClassVar[str] = "classes"
    convex: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    def value(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each record, shape (m,), for class numbers as labels."""
        return -np.take_along_axis(log_softmax(raw, axis=1), labels[:, None].astype(np.intp), axis=1)[:, 0]

    def derivative(self, raw: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the derivative in the raw predictions, ``softmax(t) - e_label``: rows of norm at most sqrt(2)."""
        slope = softmax(raw, axis=1)
        slope[np.arange(len(labels)), labels] -= 1.0
        return slope

    def constant(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the logarithms of positive weights of the classes, with mean 0: the best constant raw predictions."""
        logs = np.log(frequencies)
        return logs - logs.mean()

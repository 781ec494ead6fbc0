"""Compute value, gradient and proximal step of penalties on the coefficients; it sees no data."""

from dataclasses import dataclass

import numpy as np

__all__ = ["ElasticNet"]


@dataclass(frozen=True)
class ElasticNet:
    """Penalty ``alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||^2)``: ridge, lasso, or a mixture.

    Parameters
    ----------
    alpha : float
        Strength, non-negative; 0 is no penalty. With the mean loss as data term, ``alpha = 1 / (C n_samples)`` is
        scikit-learn's ``C``.
    l1_ratio : float, default=0.0
        Share of the l1 norm, from 0 (ridge) to 1 (lasso).
    """

    alpha: float
    l1_ratio: float = 0.0

    @property
    def strong_convexity(self) -> float:
        """Strong convexity constant, the factor of ``||w||^2 / 2``."""
        return self.alpha * (1 - self.l1_ratio)

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient of the smooth part, equal to `strong_convexity`."""
        return self.strong_convexity

    def value(self, w: np.ndarray) -> float:
        """Return the penalty of coefficients of any shape."""
        return self.alpha * self.l1_ratio * float(np.abs(w).sum()) + self.strong_convexity / 2 * float(np.vdot(w, w))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of the smooth part, an array of the shape of ``w``."""
        return self.strong_convexity * w

    def prox(self, w: np.ndarray, step_size: float) -> np.ndarray:
        """Return ``argmin_v ||v - w||^2 / 2 + step_size * value(v)``, an array of the shape of ``w``."""
        return self.l1_prox(w, step_size) / (1 + step_size * self.strong_convexity)

    def l1_prox(self, w: np.ndarray, step_size: float | np.ndarray) -> np.ndarray:
        """Return the proximal step of the l1 part alone: entries move towards 0 by ``step_size * alpha * l1_ratio``."""
        if not self.alpha * self.l1_ratio:
            return w
        return np.sign(w) * np.maximum(np.abs(w) - step_size * self.alpha * self.l1_ratio, 0.0)

"""Penalties on the coefficients: value, gradient, proximal operator, strong convexity. They see no data."""

from dataclasses import dataclass

import numpy as np

__all__ = ["L2"]


@dataclass(frozen=True)
class L2:
    """Ridge penalty ``alpha / 2 * ||w||^2``.

    Parameters
    ----------
    alpha : float
        Strength, non-negative. With the mean loss as data term, ``alpha = 1 / (C n_samples)`` is scikit-learn's ``C``.
    """

    alpha: float

    @property
    def strong_convexity(self) -> float:
        """Strong convexity constant, equal to ``alpha``."""
        return self.alpha

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient, equal to ``alpha``."""
        return self.alpha

    def value(self, w: np.ndarray) -> float:
        """Return the penalty of coefficients of any shape."""
        return self.alpha / 2 * float(np.vdot(w, w))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient, an array of the shape of ``w``."""
        return self.alpha * w

    def prox(self, w: np.ndarray, step_size: float) -> np.ndarray:
        """Return ``argmin_v ||v - w||^2 / 2 + step_size * value(v)``, an array of the shape of ``w``."""
        return w / (1 + step_size * self.alpha)

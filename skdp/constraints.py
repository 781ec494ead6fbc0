"""Constraint sets of the coefficients: projection, linear minimisation, size, mirror map. They see no data."""

from typing import Protocol

import numpy as np

__all__ = ["Constraint"]


class Constraint(Protocol):
    """A convex set of vectors of p coefficients, for any p. What a user's own object needs at least."""

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the set, shape (p,)."""
        ...

    def scaled(self, factor: float) -> "Constraint":
        """Return the set of all points times a positive factor: the same set in other units."""
        ...

"""Means that a solver has released, in a form from which an estimator can tell that its assumptions do not hold."""

from dataclasses import dataclass

import numpy as np

__all__ = ["ReleasedMoments"]


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Means over the records behind the oracle, as they were released, with the standard deviations of their noise.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Of the clipped rows.
    mean_noise : float
        Of each entry of ``mean``.
    squares : ndarray of shape (n_features,) or None, default=None
        Means of the squared entries of the clipped rows.
    squares_noise : float, default=0.0
        Of each entry of ``squares``.
    target : float or None, default=None
        Mean of the targets, for targets in [-1, 1].
    target_noise : float, default=0.0
        Of ``target``.
    """

    mean: np.ndarray
    mean_noise: float
    squares: np.ndarray | None = None
    squares_noise: float = 0.0
    target: float | None = None
    target_noise: float = 0.0

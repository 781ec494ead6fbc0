"""Hold released means, by which an estimator checks its assumptions on the data."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Released means over the records, with the standard deviations of their noise.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the clipped rows.
    mean_noise : float
        Standard deviation of each entry of ``mean``.
    squares : ndarray of shape (n_features,) or None, default=None
        Means of the squared entries of the clipped rows.
    squares_noise : float, default=0.0
        Standard deviation of each entry of ``squares``.
    shortened : ndarray of shape (n_features,) or None, default=None
        Means of the squared entries of rows that are clipped further, so that they may be too small.
    shortened_noise : float, default=0.0
        Standard deviation of each entry of ``shortened``.
    target : float or None, default=None
        Mean of the targets, for targets in [-1, 1].
    target_noise : float, default=0.0
        Standard deviation of ``target``.
    pull : ndarray of shape (n_features,) or None, default=None
        How far released gradients are from noise, by feature: about normal with a variance of 1 for one that no record has, and
        in proportion to the size of the gradients where that is large.
    """

    mean: np.ndarray
    mean_noise: float
    squares: np.ndarray | None = None
    squares_noise: float = 0.0
    shortened: np.ndarray | None = None
    shortened_noise: float = 0.0
    target: float | None = None
    target_noise: float = 0.0
    pull: np.ndarray | None = None

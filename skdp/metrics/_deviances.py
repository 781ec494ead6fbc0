"""Compute deviances of counts and of positive amounts, and those of a constant."""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

LEAST = {"poisson": 0.0, "gamma": np.finfo(float).tiny}  # smallest target of each deviance


def unit_deviance(kind: str, targets: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the deviance of each target from its mean; inf where there is none.

    Parameters
    ----------
    kind : {"poisson", "gamma"}
        Which one.
    targets : ndarray of shape (m,)
        Non-negative numbers.
    means : ndarray of shape (m,)
        Predictions. One that is not positive counts as one just above 0.

    Returns
    -------
    ndarray of shape (m,)
        Non-negative numbers.
    """
    with np.errstate(all="ignore"):  # a warning or an error would reveal a record
        means = np.maximum(means, 0.0)
        ratio = targets / means
        if kind == "poisson":
            found = 2 * (np.where(targets > 0, xlogy(targets, ratio), 0.0) - targets + means)
        else:
            found = 2 * (ratio - 1 - np.log(ratio))
        return np.where(np.isnan(found), np.inf, np.maximum(found, 0.0))


@dataclass(frozen=True)
class Constant:
    """Hold a constant prediction, and the range of the targets that its deviance is of.

    Parameters
    ----------
    kind : {"poisson", "gamma"}
        Which deviance.
    low, high : float
        Targets beyond count as these.
    mean : float
        The constant, between them.
    """

    kind: str
    low: float
    high: float
    mean: float

    @property
    def bound(self) -> float:
        """Largest deviance of a target in the range: a deviance is convex in the target."""
        return float(unit_deviance(self.kind, np.array([self.low, self.high]), np.full(2, self.mean)).max())

    def numbers(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the deviance of each target over the bound, and the place of the target in the range, both from 0 to 1."""
        targets = np.clip(targets, self.low, self.high)
        return unit_deviance(self.kind, targets, np.full(len(targets), self.mean)) / self.bound, self._places(targets)

    def below(self, place: float) -> tuple[float, float, float]:
        r"""Return by how much the deviance of the mean of the targets is below that of the constant, over the bound.

        Both deviances differ by :math:`d(\bar y, m)`, d being the deviance of one number, since it is a Bregman divergence.

        Parameters
        ----------
        place : float
            Place of the mean in the range; outside, it counts as the nearer end.

        Returns
        -------
        tuple of float
            The difference, its derivative by the place, and half its second derivative at the constant.
        """
        width, bound = self.high - self.low, self.bound
        mean = max(self.low + width * min(max(place, 0.0), 1.0), float(np.finfo(float).tiny))
        less = float(unit_deviance(self.kind, np.array([mean]), np.array([self.mean]))[0]) / bound
        if self.kind == "poisson":
            slope, curvature = np.log(mean / self.mean), 1 / self.mean
        else:
            slope, curvature = 1 / self.mean - 1 / mean, 1 / self.mean**2
        return less, 2 * width * float(slope) / bound, width**2 * curvature / bound

    def _places(self, targets: np.ndarray) -> np.ndarray:
        return np.asarray((targets - self.low) / (self.high - self.low))

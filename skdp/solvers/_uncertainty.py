"""Compute intervals of coefficients and predictions of a released linear model, from releases alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp.privacy.queries import Standardization

# Largest share of a coefficient's variance from hidden directions, beyond which it has no interval. A choice; a smaller value
# refuses more intervals (docs/defaults.md).
MOST_HIDDEN = 0.5


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Normal estimates with independent errors, in a geometry of earlier releases.

    Parameters
    ----------
    geometry : Standardization
        Map from rows to coordinates.
    estimates : ndarray of shape (n_coordinates,)
        Coefficients in the geometry before shrinkage, the intercept last, for targets in [-1, 1].
    variances : ndarray of shape (n_coordinates,)
        Variances of their errors, from the noise of the releases and from sampling.
    widening : float, default=1.0
        Factor of all half widths.
    hidden : ndarray of bool of shape (n_coordinates,) or None, default=None
        Directions whose curvature is hidden by noise. A coefficient with more than half of its variance from them gets no
        interval.
    offset, unit : float
        A target t in [-1, 1] means ``offset + unit * t`` in the user's units.
    """

    geometry: Standardization
    estimates: np.ndarray
    variances: np.ndarray
    widening: float = 1.0
    hidden: np.ndarray | None = None
    offset: float = 0.0
    unit: float = 1.0

    def coefficients(self, level: float) -> np.ndarray:
        """Return an interval for each feature's coefficient.

        Parameters
        ----------
        level : float
            Probability that an interval holds the coefficient, in (0, 1).

        Returns
        -------
        ndarray of shape (n_features, 2)
            Lower and upper ends, for rows and targets in the user's units; infinite for coefficients that noise hides.
        """
        d, scale = self.geometry.centre.size, self.geometry.scale
        squares, middles = np.square(scale), scale * self.estimates[:d] if scale.ndim == 1 else scale @ self.estimates[:d]
        variances = squares * self.variances[:d] if scale.ndim == 1 else squares @ self.variances[:d]
        if self.hidden is not None:
            # A coefficient is a combination of directions, with the squares of the scale as weights of their variances.
            unseen = np.where(self.hidden[:d], self.variances[:d], 0.0)
            share = (squares * unseen if scale.ndim == 1 else squares @ unseen) / np.maximum(variances, 1e-300)
            variances = np.where(share > MOST_HIDDEN, np.inf, variances)
        return self._ends(0.0, middles, variances, level)

    def predictions(self, X: Any, level: float) -> np.ndarray:
        """Return an interval for the mean of the targets of records like each of these.

        Parameters
        ----------
        X : ndarray, CSR or CSC of shape (n_samples, n_features)
            Records.
        level : float
            Probability that an interval holds the mean, in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends, for targets in the user's units; infinite where a row is so long that they cannot be computed.
        """
        d, scale = self.geometry.centre.size, self.geometry.scale
        matrix = np.diag(scale) if scale.ndim == 1 else scale
        with np.errstate(all="ignore"):  # of rows so long that squares overflow
            z = np.asarray(X @ matrix) - self.geometry.centre @ matrix
            middles, variances = z @ self.estimates[:d], np.square(z) @ np.minimum(self.variances[:d], 1e300)
            if self.geometry.intercept:
                middles, variances = middles + self.estimates[d], variances + self.variances[d]
            ends = self._ends(self.offset, middles, variances, level)
        return np.where(np.isfinite(ends).all(axis=1, keepdims=True), ends, [-np.inf, np.inf])

    def _ends(self, offset: float, middles: np.ndarray, variances: np.ndarray, level: float) -> np.ndarray:
        halves = self.widening * float(ndtri((1 + level) / 2)) * np.sqrt(variances)
        return offset + self.unit * (middles[:, None] + halves[:, None] * [-1.0, 1.0])

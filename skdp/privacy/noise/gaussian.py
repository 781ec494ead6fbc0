r"""Gaussian noise on a grid.

A floating-point normal added to a floating-point sum is not the Gaussian mechanism: the sum is rounded, and which numbers
can come out at all depends on the data. Here the sum is rounded to a grid, the noise is rounded to the same grid, and the two
are added as integers, so that the set of possible outputs is the same for every table [1]_. Rounding the *noise* is rounding
the noisy sum, hence post-processing; rounding the *sum* moves it, and the calibrated sensitivity covers that move.

References
----------
.. [1] I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy.noise.source import NoiseSource

__all__ = ["CELL_ERROR", "RELATIVE_SLACK", "GridGaussian", "power_of_two_below"]

RELATIVE_SLACK = 2.0**-30  # rounding of one record's norm and residual: at most (d + 8) * 2**-53 for d features
MAX_FEATURES = 2**22  # up to here the line above holds
FINEST_GRID = 2.0**-960  # keeps the spacing a normal number for vanishing clip norms
RESOLVED = 2.0**22  # grid points in a standard deviation up to which one normal is enough
STEP, FINE = 2.0**20, 3 * 2.0**20  # spacing of a coarse normal beyond that, and the standard deviation that fills its gaps
CELL_ERROR = 2.0**-49  # relative error of a grid point's probability, root mean square, per grid point in a standard deviation


@dataclass(frozen=True)
class GridGaussian:
    """Gaussian noise on a grid, with a scale that covers the rounding of the sum it is added to.

    Parameters
    ----------
    std : float
        Standard deviation of the noise per coordinate.
    spacing : float
        Distance of neighbouring grid points, a power of two.
    """

    std: float
    spacing: float

    @classmethod
    def calibrated(
        cls, *, clip_norm: float, relative_sensitivity: float, scale: float, n_samples: int, size: int, summation_error: float
    ) -> "GridGaussian":
        """Choose spacing and standard deviation for the sum of ``n_samples`` vectors of norm at most ``clip_norm``.

        Parameters
        ----------
        clip_norm : float
            Bound on one record's contribution, positive.
        relative_sensitivity : float
            Sensitivity of the sum over ``clip_norm``, at least 1.
        scale : float
            Standard deviation over sensitivity, positive.
        n_samples : int
            Number of records.
        size : int
            Number of coordinates of the sum.
        summation_error : float
            Bound on the norm of the float64 error of the sum, over ``clip_norm``.

        Returns
        -------
        GridGaussian
            Noise whose standard deviation is ``scale`` times a sensitivity that includes every rounding.

        Raises
        ------
        ValueError
            If the noise is so large against the grid that the random bits cannot resolve it.
        """
        if CELL_ERROR * RESOLVED * math.sqrt(size) * scale > 0.5:
            raise ValueError(
                f"A noise multiplier of {scale:.3g} on {size} coordinates is beyond what random bits resolve; expected a larger "
                "epsilon, fewer features or fewer steps."
            )
        nominal = relative_sensitivity * clip_norm * scale
        spacing = max(power_of_two_below(min(2.0**-20 * nominal, 2.0**-10 * clip_norm / math.sqrt(size))), FINEST_GRID)
        while True:
            covered = clip_norm * (1 + RELATIVE_SLACK + 2 * summation_error) + spacing * math.sqrt(size)
            std = relative_sensitivity * covered * scale
            if (n_samples * clip_norm * (1 + summation_error) + 40 * std) / spacing < 2**52:
                break
            spacing *= 2
        # The error of each coordinate's probability is a privacy loss of its own, of standard deviation share / scale over all
        # coordinates, beside the 1 / scale of the release: dividing by 1 - share pays for it.
        share = CELL_ERROR * min(std / spacing, RESOLVED) * math.sqrt(size) * scale
        return cls(std / (1 - share), spacing)

    def add_to(self, value: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Return the noisy value, a vector of grid points.

        Parameters
        ----------
        value : ndarray of shape (size,)
            The un-noised sum.
        source : NoiseSource
            Where the noise comes from.

        Returns
        -------
        ndarray of shape (size,)
            Exact integer sum of rounded value and rounded noise, times the spacing.
        """
        noise = self._steps(value.size, source)
        return (np.rint(value / self.spacing) + noise) * self.spacing + 0.0  # no negative zero, which would betray a sign

    def _steps(self, size: int, source: NoiseSource) -> np.ndarray:
        """Noise in grid steps.

        One normal has too few bits to make every one of more than RESOLVED steps as likely as it should be. There a coarse
        normal, in multiples of STEP, is added to a fine one that fills the gaps: a Gaussian of standard deviation 3 STEP beside
        every multiple of STEP makes a Gaussian within exp(-2 (3 pi)^2), so the sum is one of the stated scale, plus the coarse
        one's rounding, which only adds noise as long as the coarse one is wider than its own steps.
        """
        ratio = self.std / self.spacing
        if ratio <= RESOLVED:
            return np.rint(source.normal(size) * ratio)
        coarse = math.sqrt(ratio**2 - FINE**2) / STEP  # at least 2.6
        return STEP * np.rint(source.normal(size) * coarse) + np.rint(source.normal(size) * FINE)


def power_of_two_below(x: float) -> float:
    """Return the largest power of two at most ``x``; 0 where there is none."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1) if x > 0 else 0.0

r"""Add Gaussian noise on a grid.

A floating-point normal added to a floating-point sum is not the Gaussian mechanism: the result is rounded, and the set of
possible results depends on the data. Here the sum is rounded to a grid, the noise is rounded to the same grid, and the two are
added as integers. So the set of possible outputs is the same for every table [1]_. Rounding the *noise* equals rounding the noisy
sum and is post-processing. Rounding the *sum* moves it, and the calibrated sensitivity covers that move.

References
----------
.. [1] I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy.noise.source import NoiseSource

# Relative amount by which a computed contribution may exceed the clip norm. The norm and the residual of a record with d features
# are rounded by at most (d + 8) * 2**-53, which is below this number up to MAX_FEATURES. A larger number adds noise.
RELATIVE_SLACK = 2.0**-30

# Largest number of features, in columns: up to it RELATIVE_SLACK holds (docs/proofs/noise.md). More would need a larger slack.
MAX_FEATURES = 2**22

# Smallest spacing of the grid, in the units of the sum. A choice that keeps the spacing a normal number for tiny clip norms.
FINEST_GRID = 2.0**-960

# Grid points per standard deviation up to which one normal is drawn per coordinate; beyond it a coarse and a fine one are added.
# A choice: it bounds the share of the budget that CELL_ERROR costs. A larger number would raise that share.
RESOLVED = 2.0**22

# For noise of two normals, in grid points: the spacing of the coarse normal, and the standard deviation of the fine one, three
# times that spacing. A choice: `_steps` shows that their sum is within exp(-2 (3 pi)^2) of a Gaussian. A ratio below 3 is worse.
STEP, FINE = 2.0**20, 3 * 2.0**20

# Root mean square of the relative error of a grid point's probability, per grid point in a standard deviation. An allowance for
# random numbers with 51 bits at every binary scale. `calibrated` enlarges the noise to pay for it.
CELL_ERROR = 2.0**-49


@dataclass(frozen=True)
class GridGaussian:
    """Add Gaussian noise on a grid, with a scale that covers the rounding of the sum it is added to.

    Parameters
    ----------
    std : float
        Standard deviation of the noise per coordinate.
    spacing : float
        Distance between neighbouring grid points, a power of two.
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
            Noise whose standard deviation is ``scale`` times a sensitivity that includes all rounding.

        Raises
        ------
        ValueError
            If the noise is so much larger than the spacing that the random bits cannot resolve it.
        """
        if CELL_ERROR * RESOLVED * math.sqrt(size) * scale > 0.5:
            raise ValueError(
                f"A noise multiplier of {scale:.3g} on {size} coordinates is too large for the random bits to resolve; expected "
                "a larger epsilon, fewer features or fewer steps."
            )
        # A spacing far below the noise and the clip norm; it doubles until value and noise, in multiples of it, are integers that
        # float64 adds exactly. Rounding to the grid moves a sum by up to half of it per coordinate, and two sums apart by the
        # root of `size` times it.
        nominal = relative_sensitivity * clip_norm * scale
        spacing = max(power_of_two_below(min(2.0**-20 * nominal, 2.0**-10 * clip_norm / math.sqrt(size))), FINEST_GRID)
        while True:
            covered = clip_norm * (1 + RELATIVE_SLACK + 2 * summation_error) + spacing * math.sqrt(size)
            std = relative_sensitivity * covered * scale
            if (n_samples * clip_norm * (1 + summation_error) + 40 * std) / spacing < 2**52:
                break
            spacing *= 2
        # The errors of the probabilities are a privacy loss of their own, with standard deviation share / scale over all
        # coordinates, in addition to the 1 / scale of the release. Dividing by 1 - share pays for it.
        share = CELL_ERROR * min(std / spacing, RESOLVED) * math.sqrt(size) * scale
        return cls(std / (1 - share), spacing)

    def add_to(self, value: np.ndarray, source: NoiseSource, releases: int = 1) -> np.ndarray:
        """Return the noisy value, a vector of grid points.

        Parameters
        ----------
        value : ndarray of shape (size,)
            The un-noised sum.
        source : NoiseSource
            Source of the noise.
        releases : int, default=1
            Number of releases of this size that come next, this one included, without other noise in between; the source may
            draw their noise together.

        Returns
        -------
        ndarray of shape (size,)
            Exact integer sum of the rounded value and the rounded noise, times the spacing.
        """
        noise = self._steps(value.size, source, releases)
        return (np.rint(value / self.spacing) + noise) * self.spacing + 0.0  # turns -0.0, which would reveal a sign, into 0.0

    def _steps(self, size: int, source: NoiseSource, releases: int) -> np.ndarray:
        """Return noise in units of the spacing.

        One normal has too few bits to give more than RESOLVED grid points per standard deviation their right probabilities.
        Beyond that, a coarse normal in multiples of STEP is added to a fine one that fills the gaps. Gaussians of standard
        deviation 3 STEP around every multiple of STEP add up to a Gaussian within exp(-2 (3 pi)^2). So the sum is Gaussian of the
        stated scale, plus the rounding of the coarse normal, which only adds noise as long as that normal is wider than its
        steps.
        """
        ratio = self.std / self.spacing
        if ratio <= RESOLVED:
            return np.rint(source.normal(size, releases) * ratio)
        coarse = math.sqrt(ratio**2 - FINE**2) / STEP  # at least 2.6
        calls = 2 * releases
        return STEP * np.rint(source.normal(size, calls) * coarse) + np.rint(source.normal(size, calls - 1) * FINE)


def power_of_two_below(x: float) -> float:
    """Return the largest power of two at most ``x``, or 0 if there is none."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1) if x > 0 else 0.0

r"""Draw noise for guarantees with delta = 0, with the density :math:`p(b) \propto \exp(-\|b\| / s)`.

The direction of the noise is uniform. Its norm has a Gamma distribution whose shape is the number of coordinates, p. One
coordinate has the root mean square :math:`s \sqrt{p + 1}`. A draw is the sum of p exponentials times a normalised vector of
normals.

References
----------
.. [1] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization", JMLR 12 (2011),
   section 3.1.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy.noise.gaussian import CELL_ERROR, RELATIVE_SLACK, power_of_two_below
from skdp.privacy.noise.source import NoiseSource

# Minus the natural logarithm of 2**-200, the probability with which a norm may exceed the bound up to which rounding is covered.
# A choice: a larger number raises the bound `GammaNorm.largest`, and with it the tolerance of objective perturbation.
UNLIKELY = 200 * math.log(2)

# Bound on the absolute error of a computed standard normal: its relative error is at most 2**-50, and none exceeds 39.
COORDINATE_ERROR = 2.0**-44

# Bound on the absolute error of a computed standard exponential: none exceeds 746, where the last place of a float64 is 2**-43,
# and the rounding of the uniform number adds at most 2**-52.
EXPONENTIAL_ERROR = 2.0**-42

# Factor on the root mean square error of the log-probability of a grid point, which is taken off epsilon. A choice:
# docs/proofs/objective.md says that this is an estimate, not a proof. A larger factor adds noise.
SAFETY = 8.0

# Largest spacing of the grid, in units of the scale s. A choice: a coarser grid would add visibly to the noise.
COARSEST = 2.0**-10


@dataclass(frozen=True)
class GammaNorm:
    """Draw noise whose density falls exponentially with its norm.

    Parameters
    ----------
    scale : float
        Increase of the norm over which the logarithm of the density falls by 1.
    size : int
        Number of coordinates.
    """

    scale: float
    size: int

    @property
    def root_mean_square(self) -> float:
        """Root mean square of one coordinate."""
        return self.scale * math.sqrt(self.size + 1)

    @property
    def largest(self) -> float:
        """Norm that a draw exceeds with probability below 2**-200 (Chernoff's bound for a Gamma distribution)."""
        return self.scale * (self.size + math.sqrt(2 * self.size * UNLIKELY) + UNLIKELY)

    @property
    def rounding(self) -> float:
        """Bound on the distance between a computed vector of norm up to `largest` and real-valued noise of this law."""
        return 4 * math.sqrt(self.size) * COORDINATE_ERROR * self.largest + self.size * EXPONENTIAL_ERROR * self.scale

    def draw(self, source: NoiseSource) -> np.ndarray:
        """Return a vector of shape (size,)."""
        return self.scale * float(source.exponential(self.size).sum()) * source.direction(self.size)


@dataclass(frozen=True)
class Normal:
    """Draw independent normals.

    Parameters
    ----------
    std : float
        Standard deviation of one coordinate.
    size : int
        Number of coordinates.
    log_probability : float
        Minus the natural logarithm of the probability with which the norm may exceed `largest`.
    """

    std: float
    size: int
    log_probability: float

    @property
    def root_mean_square(self) -> float:
        """Root mean square of one coordinate."""
        return self.std

    @property
    def largest(self) -> float:
        """Norm that a draw exceeds with at most the stated probability (concentration of Lipschitz functions of normals)."""
        return self.std * (math.sqrt(self.size) + math.sqrt(2 * self.log_probability))

    @property
    def rounding(self) -> float:
        """Bound on the distance between a computed vector and real-valued noise of this law."""
        return math.sqrt(self.size) * COORDINATE_ERROR * self.std

    def draw(self, source: NoiseSource) -> np.ndarray:
        """Return a vector of shape (size,)."""
        return self.std * source.normal(self.size)


@dataclass(frozen=True)
class GridGammaNorm:
    """Add the noise of `GammaNorm` on a grid, with a scale that covers the rounding of the vector it is added to.

    Parameters
    ----------
    noise : GammaNorm
        The noise before it is rounded to the grid.
    spacing : float
        Distance between neighbouring grid points, a power of two.
    """

    noise: GammaNorm
    spacing: float

    @classmethod
    def calibrated(cls, *, sensitivity: float, scale: float, size: int, largest: float) -> "GridGammaNorm":
        r"""Choose spacing and scale for a vector of norm at most ``largest``.

        Rounding to a grid of spacing g moves two vectors apart by up to :math:`g \sqrt{p}`. A finer grid leaves fewer random bits
        for each of its points. The spacing is chosen near the one at which both effects cost the same.

        Parameters
        ----------
        sensitivity : float
            Largest change of the vector between neighbours, positive.
        scale : float
            Scale of the noise over sensitivity: one over epsilon.
        size : int
            Number of coordinates.
        largest : float
            Bound on the norm of the vector.

        Returns
        -------
        GridGammaNorm
            Noise whose scale is ``scale`` times a sensitivity that includes all rounding.

        Raises
        ------
        ValueError
            If the noise is so much larger than the spacing that the random bits cannot resolve it.
        """
        nominal, root = sensitivity * scale, math.sqrt(size)
        if not (SAFETY * CELL_ERROR * root * size * scale**2 <= 0.5 and math.isfinite(nominal)):
            raise _unresolved(scale, size)
        # The grid costs spacing * root over the sensitivity, and the random bits in proportion to nominal / spacing. Near this
        # spacing both cost the same.
        spacing = power_of_two_below(nominal * min(COARSEST, math.sqrt(SAFETY * CELL_ERROR * root)))
        while True:
            covered = sensitivity * (1 + RELATIVE_SLACK) + spacing * root
            noise = GammaNorm(covered * scale, size)
            if spacing > 0 and (largest + noise.largest) / spacing < 2**52:
                break
            spacing = max(2 * spacing, 2.0**-1000)
        # The error of the log-probability of a grid point is a privacy loss of its own, in addition to covered / s.
        share = SAFETY * CELL_ERROR * noise.root_mean_square / spacing * root * scale
        if not share <= 0.5:
            raise _unresolved(scale, size)
        return cls(GammaNorm(covered * scale / (1 - share), size), spacing)

    def add_to(self, value: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Return the noisy value, a vector of grid points.

        Parameters
        ----------
        value : ndarray of shape (size,)
            The un-noised vector.
        source : NoiseSource
            Source of the noise.

        Returns
        -------
        ndarray of shape (size,)
            Exact integer sum of the rounded value and the rounded noise, times the spacing.
        """
        steps = np.rint(value / self.spacing) + np.rint(self.noise.draw(source) / self.spacing)
        return steps * self.spacing + 0.0  # turns -0.0, which would reveal a sign, into 0.0


def _unresolved(scale: float, size: int) -> ValueError:
    return ValueError(
        f"Noise of {scale:.3g} times the sensitivity on {size} coordinates is too large for the random bits to resolve; expected "
        "a larger epsilon or fewer features."
    )

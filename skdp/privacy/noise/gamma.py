r"""Noise for guarantees with delta = 0: its density falls with the Euclidean norm, :math:`p(b) \propto \exp(-\|b\| / s)`.

Its direction is uniform, and its norm has a Gamma distribution whose shape is the number of coordinates, p; a coordinate has the
root mean square :math:`s \sqrt{p + 1}`. It is drawn as a sum of p exponentials times a normalised vector of normals.

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

__all__ = ["GammaNorm", "GridGammaNorm", "Normal"]

UNLIKELY = 200 * math.log(2)  # minus the logarithm of the probability of a norm for which rounding is not covered
COORDINATE_ERROR = 2.0**-44  # rounding of one normal: relative 2**-50 at most, and none is above 39
EXPONENTIAL_ERROR = 2.0**-42  # rounding of one exponential: relative 2**-51 at most, and none is above 746
SAFETY = 8.0  # times the root mean square error of the logarithm of a grid point's probability
COARSEST = 2.0**-10  # spacing over s


@dataclass(frozen=True)
class GammaNorm:
    """Noise whose density falls exponentially with its norm.

    Parameters
    ----------
    scale : float
        Norm by which the logarithm of the density falls by 1.
    size : int
        Number of coordinates.
    """

    scale: float
    size: int

    @property
    def root_mean_square(self) -> float:
        """Of one coordinate."""
        return self.scale * math.sqrt(self.size + 1)

    @property
    def largest(self) -> float:
        """Norm that is exceeded with probability below 2**-200 (Chernoff's bound for a Gamma distribution)."""
        return self.scale * (self.size + math.sqrt(2 * self.size * UNLIKELY) + UNLIKELY)

    @property
    def rounding(self) -> float:
        """Bound on the distance of a computed vector from real-valued noise of this law, up to the norm above."""
        return 4 * math.sqrt(self.size) * COORDINATE_ERROR * self.largest + self.size * EXPONENTIAL_ERROR * self.scale

    def draw(self, source: NoiseSource) -> np.ndarray:
        """Return a vector of shape (size,)."""
        return self.scale * float(source.exponential(self.size).sum()) * source.direction(self.size)


@dataclass(frozen=True)
class Normal:
    """Independent normals.

    Parameters
    ----------
    std : float
        Standard deviation of one coordinate.
    size : int
        Number of coordinates.
    log_probability : float
        Minus the logarithm of the probability of a norm for which rounding is not covered.
    """

    std: float
    size: int
    log_probability: float

    @property
    def root_mean_square(self) -> float:
        """Of one coordinate."""
        return self.std

    @property
    def largest(self) -> float:
        """Norm that is exceeded with the stated probability at most (concentration of Lipschitz functions of normals)."""
        return self.std * (math.sqrt(self.size) + math.sqrt(2 * self.log_probability))

    @property
    def rounding(self) -> float:
        """Bound on the distance of a computed vector from real-valued noise of this law."""
        return math.sqrt(self.size) * COORDINATE_ERROR * self.std

    def draw(self, source: NoiseSource) -> np.ndarray:
        """Return a vector of shape (size,)."""
        return self.std * source.normal(self.size)


@dataclass(frozen=True)
class GridGammaNorm:
    """The same noise on a grid, with a scale that covers the rounding of what it is added to.

    Parameters
    ----------
    noise : GammaNorm
        Before it is rounded.
    spacing : float
        Distance of neighbouring grid points, a power of two.
    """

    noise: GammaNorm
    spacing: float

    @classmethod
    def calibrated(cls, *, sensitivity: float, scale: float, size: int, largest: float) -> "GridGammaNorm":
        r"""Choose spacing and scale for a vector of norm at most ``largest``.

        A grid of spacing g moves two vectors apart by up to :math:`g \sqrt{p}`, and the finer it is, the fewer random bits
        decide for one of its points: about the spacing at which the two cost the same is taken.

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
            Noise whose scale is ``scale`` times a sensitivity that includes every rounding.

        Raises
        ------
        ValueError
            If the noise is so large against the grid that the random bits cannot resolve it.
        """
        nominal, root = sensitivity * scale, math.sqrt(size)
        if not (SAFETY * CELL_ERROR * root * size * scale**2 <= 0.5 and math.isfinite(nominal)):
            raise _unresolved(scale, size)
        spacing = power_of_two_below(nominal * min(COARSEST, math.sqrt(SAFETY * CELL_ERROR * root)))
        while True:
            covered = sensitivity * (1 + RELATIVE_SLACK) + spacing * root
            noise = GammaNorm(covered * scale, size)
            if spacing > 0 and (largest + noise.largest) / spacing < 2**52:
                break
            spacing = max(2 * spacing, 2.0**-1000)
        # The error of the logarithm of a point's probability is a privacy loss of its own, beside the covered / s of the release.
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
            Where the noise comes from.

        Returns
        -------
        ndarray of shape (size,)
            Exact integer sum of rounded value and rounded noise, times the spacing.
        """
        steps = np.rint(value / self.spacing) + np.rint(self.noise.draw(source) / self.spacing)
        return steps * self.spacing + 0.0  # no negative zero, which would betray a sign


def _unresolved(scale: float, size: int) -> ValueError:
    return ValueError(
        f"Noise of {scale:.3g} times the sensitivity on {size} coordinates is beyond what random bits resolve; expected a larger "
        "epsilon or fewer features."
    )

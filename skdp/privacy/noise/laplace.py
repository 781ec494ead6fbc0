r"""Add discrete Laplace noise to integers.

The noise is an integer k with a probability proportional to :math:`e^{-|k|/s}` ([1]_, [2]_). Sums of integers are exact, so there
is no grid, and no rounding of sums to cover.

References
----------
.. [1] A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.
.. [2] C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skdp.privacy.noise.source import NoiseSource

# Bound on the error of the logarithm of the ratio between the probabilities of two neighbouring integers. The docstring of
# `IntegerLaplace.draw` derives 2**-41; a larger number would add noise.
RATIO_ERROR = 2.0**-40

# Log-odds of a binary digit beyond which it counts as 0. Digits beyond it are neglected: exp(-700) is 1e-304. So the guarantee is
# pure up to a delta of that size, and a scale below 1/700 has no noise.
LARGEST_LOG_ODDS = 700.0

# Largest scale of the noise: the digits of a larger one would not fit into 53 bits.
LARGEST_SCALE = 2.0**39


@dataclass(frozen=True)
class IntegerLaplace:
    """Add discrete Laplace noise to integers.

    Parameters
    ----------
    scale : float
        Scale s of the noise: the probabilities of k and k + 1, for k from 0 on, have the ratio ``exp(1 / s)``.
    """

    scale: float

    @classmethod
    def calibrated(cls, *, sensitivity: int, scale: float) -> "IntegerLaplace":
        r"""Choose the scale that also covers the rounding of probabilities.

        Proof. Let neighbours move the integers by a vector of :math:`\ell_1` norm at most :math:`\Delta`. Moving one integer by
        one step changes the logarithm of a probability by at most :math:`1/s + \eta`, where `RATIO_ERROR` is :math:`\eta`.
        Altogether that is at most :math:`\Delta (1/s + \eta)`, which is one over ``scale``, b, for
        :math:`s = \Delta b / (1 - \eta \Delta b)`.

        Parameters
        ----------
        sensitivity : int
            Largest change of all integers together between neighbours.
        scale : float
            One over the epsilon of the release, positive.

        Returns
        -------
        IntegerLaplace
            Noise that makes the release private.

        Raises
        ------
        ValueError
            If the noise is so large that the random bits do not resolve it.
        """
        nominal = sensitivity * scale
        if not nominal < LARGEST_SCALE:
            raise ValueError(too_large("Laplace", nominal))
        return cls(nominal / (1 - RATIO_ERROR * nominal))

    @property
    def std(self) -> float:
        r"""Standard deviation, :math:`\sqrt{2 e^{-1/s}} / (1 - e^{-1/s})`."""
        return math.sqrt(2 * math.exp(-1 / self.scale)) / -math.expm1(-1 / self.scale)

    def survival(self, distance: np.ndarray) -> np.ndarray:
        """Return the probability that the noise is further from 0 than each distance, for a scale of many integers."""
        return np.exp(-distance / self.scale)

    def draw(self, size: int, source: NoiseSource) -> np.ndarray:
        r"""Draw noise, as the difference of two geometric numbers.

        Binary digits of a number k from 0 on with :math:`P(k) \propto e^{-k/s}` are independent, and digit j is 1 with the odds
        :math:`e^{-2^j/s}`. Proof: :math:`e^{-k/s}` is the product of :math:`e^{-2^j/s}` over the digits that are 1. The
        difference of two such numbers has :math:`P(k) \propto e^{-|k|/s}`.

        *Rounding.* A coin of the source has a probability with a relative error of at most :math:`2^{-51}`, plus that of the
        computed probability p of the digit, which is below :math:`2^{-50}`. As p is at most 1/2, its log-odds are off by at most
        :math:`2^{-48}`. One step of k changes at most 50 digits, so the logarithm of the ratio of neighbouring probabilities is
        off by less than :math:`2^{-42}`. The probability of a difference d from 0 on is the sum of :math:`P(j) P(j + d)`. Each
        term has that error, so the sum has it, too; the difference is symmetric. All digits have one scale, which is within a
        factor of :math:`1 \pm 2^{-52}` of s; that adds :math:`2^{-52}/s` with 1/s at most 700, less than :math:`2^{-42}`.

        Parameters
        ----------
        size : int
            Number of draws.
        source : NoiseSource
            Source of the bits.

        Returns
        -------
        ndarray of shape (size,)
            Integers, as float64.
        """
        numbers = geometric(1 / self.scale, 2 * size, source).reshape(2, size)
        return numbers[0] - numbers[1]

    def add_to(self, value: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Return integers with noise.

        Parameters
        ----------
        value : ndarray of shape (size,)
            Integers.
        source : NoiseSource
            Source of the noise.

        Returns
        -------
        ndarray of shape (size,)
            Noisy integers, exact below 2**53.
        """
        return np.rint(value) + self.draw(value.size, source) + 0.0  # turns -0.0, which would reveal a sign, into 0.0


def too_large(noise: str, scale: float) -> str:
    """Return the message of an error for noise that the random bits do not resolve, in proportion to 1 / epsilon."""
    least = f"an epsilon at least {scale / LARGEST_SCALE:.3g} times as large"
    return f"{noise} noise of scale {scale:.3g} is too large to resolve; expected {least}."


def geometric(exponent: float, size: int, source: NoiseSource) -> np.ndarray:
    """Draw integers k from 0 on with probabilities in proportion to ``exp(-exponent * k)``, as `IntegerLaplace.draw` proves.

    Parameters
    ----------
    exponent : float
        Logarithm of the ratio of the probabilities of neighbours.
    size : int
        Number of draws.
    source : NoiseSource
        Source of the bits.

    Returns
    -------
    ndarray of shape (size,)
        Integers, as float64.
    """
    # Digit by digit, until a digit is 1 with a probability that is negligible.
    numbers, digit = np.zeros(size), 1.0
    while exponent * digit <= LARGEST_LOG_ODDS:
        numbers += digit * source.coins(float(expit(-exponent * digit)), size)
        digit *= 2
    return numbers

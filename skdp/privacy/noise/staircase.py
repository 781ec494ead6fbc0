"""Add staircase noise to an integer: of all noise that gives pure differential privacy to one number, that of least variance."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy.noise.laplace import LARGEST_SCALE, RATIO_ERROR, geometric, too_large
from skdp.privacy.noise.source import NoiseSource

# Epsilon below which the best first step is taken for half of a step: their difference is below 2 %, and the formula loses
# digits. Its standard deviation is then within 1e-5 of the least.
SMALLEST = 0.05
# Bound on the mean number of draws until one is kept. A choice: it makes the first step longer than the best one from an epsilon
# of 20 on, where that is 1e-3 of what a record changes.
MOST_DRAWS = 1024


@dataclass(frozen=True)
class IntegerStaircase:
    r"""Add noise whose probabilities are a staircase, to one integer.

    With ``a`` the distance from -1/2, rounded down, the probability of the noise k is in proportion to :math:`e^{-\eta l}`, where
    :math:`l = \lfloor (a + D - r) / D \rfloor` is the number of the step: the first step has r integers on either side of -1/2,
    each further one D [1]_.

    Parameters
    ----------
    step : int
        Number of integers D of a step.
    exponent : float
        Logarithm of the ratio of neighbouring steps, eta.
    first : int
        Number of integers r of half of the first step, from 1 to D.

    References
    ----------
    .. [1] Q. Geng, P. Viswanath, "The optimal mechanism in differential privacy", ISIT 2014.
    """

    step: int
    exponent: float
    first: int

    @classmethod
    def calibrated(cls, *, sensitivity: int, scale: float) -> "IntegerStaircase":
        r"""Choose the steps, from public facts alone.

        Proof. Let neighbours move the integer by at most D, which moves the distance a from -1/2 of any noise by at most D: the
        reflection at -1/2 maps integers to integers, and distances on both sides add up to at most D if it is crossed. The number
        l of the step does not fall as a grows, and :math:`l(a + D) = l(a) + 1`. So the number of the step moves by at most 1, and
        the logarithm of the probability by at most :math:`\eta` and the error of the ratio of two steps, which is at most
        `RATIO_ERROR`. With :math:`\eta` = 1 / ``scale`` - `RATIO_ERROR`, both are at most 1 / ``scale``.

        Parameters
        ----------
        sensitivity : int
            Largest change of the integer between neighbours.
        scale : float
            One over the epsilon of the release, positive.

        Returns
        -------
        IntegerStaircase
            Noise that makes the release private.

        Raises
        ------
        ValueError
            If the noise is so large that the random bits do not resolve it.
        """
        if not sensitivity * scale < LARGEST_SCALE:
            raise ValueError(too_large("Staircase", sensitivity * scale))
        exponent = 1 / scale - RATIO_ERROR
        b, share = math.exp(-exponent), 0.5
        if exponent > SMALLEST:
            share = ((b - 2 * b**2 + 2 * b**4 - b**5) / 2) ** (1 / 3) / (1 - b) ** 2 - b / (1 - b)
        return cls(sensitivity, exponent, min(max(round(share * sensitivity), sensitivity // MOST_DRAWS, 1), sensitivity))

    @property
    def scale(self) -> float:
        """Number of integers over which the probability falls by a factor of e, on average."""
        return self.step / self.exponent

    @property
    def std(self) -> float:
        """Standard deviation; for one that is small beside a step, within a hundredth of an integer."""
        low, high, masses = self._steps()
        return math.sqrt(float(masses @ (low**2 + low * high + high**2)) / 3)

    def survival(self, distance: np.ndarray) -> np.ndarray:
        """Return the probability that the noise is further from 0 than each distance, for long steps."""
        low, high, masses = self._steps()
        above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        edges = np.append(low, high[-1])
        return np.interp(distance, edges, above)

    def _steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the ends of the steps on one side, and their probabilities on both sides."""
        numbers = np.arange(max(2, math.ceil(60 / self.exponent)))
        high = (numbers + 1.0) * self.step - (self.step - self.first)
        low = np.append(0.0, high[:-1])
        masses = (high - low) * np.exp(-self.exponent * numbers)
        return low, high, masses / masses.sum()

    def draw(self, size: int, source: NoiseSource) -> np.ndarray:
        r"""Draw noise.

        An integer :math:`t = D g + u`, with g from 0 on, :math:`P(g) \propto e^{-\eta g}`, and u uniform from 0 to D - 1, has
        :math:`P(t) \propto e^{-\eta \lfloor t / D \rfloor}`. Given that it is not below D - r, which is drawn again until it is
        so, :math:`a = t - (D - r)` has the probabilities of the staircase on one side. A fair coin tells the side: a, or -1 - a.
        As all u and both sides are equally likely, the error of the ratio of two probabilities is that of g, at most
        `RATIO_ERROR` per step (see `skdp.privacy.noise.laplace.IntegerLaplace.draw`). The number of draws depends on the noise
        alone.

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
        found = np.zeros(0)
        while found.size < size:
            numbers = self.step * geometric(self.exponent, size, source) + source.integers(self.step, size)
            found = np.append(found, numbers[numbers >= self.step - self.first] - (self.step - self.first))
        found = found[:size]
        return np.where(source.coins(0.5, size), found, -1 - found)

    def add_to(self, value: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Return integers with noise, each of its own; exact below 2**53."""
        return np.rint(value) + self.draw(value.size, source) + 0.0

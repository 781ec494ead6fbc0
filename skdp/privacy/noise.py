r"""The only place that draws privacy noise: where its randomness comes from, its shape, and the grid it lives on.

A floating-point normal added to a floating-point sum is not the Gaussian mechanism: the sum is rounded, and which numbers
can come out at all depends on the data. Here the sum is rounded to a grid, the noise is rounded to the same grid, and the two
are added as integers, so that the set of possible outputs is the same for every table [1]_. Rounding the *noise* is rounding
the noisy sum, hence post-processing; rounding the *sum* moves it, and the calibrated sensitivity covers that move.

References
----------
.. [1] I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy.special import ndtri

from skdp.privacy.errors import shown

__all__ = [
    "CELL_ERROR",
    "RELATIVE_SLACK",
    "GridGaussian",
    "GumbelNoise",
    "NoiseSource",
    "power_of_two_below",
    "reproducible_noise",
]

RELATIVE_SLACK = 2.0**-30  # rounding of one record's norm and residual: at most (d + 8) * 2**-53 for d features
MAX_FEATURES = 2**22  # up to here the line above holds
FINEST_GRID = 2.0**-960  # keeps the spacing a normal number for vanishing clip norms
RESOLVED = 2.0**22  # grid points in a standard deviation up to which one normal is enough
STEP, FINE = 2.0**20, 3 * 2.0**20  # spacing of a coarse normal beyond that, and the standard deviation that fills its gaps
GUMBEL_ERROR = 2.0**-42  # of a Gumbel variable below 512 in absolute value, and of adding it, over its scale
LARGEST_SENSITIVITY = 1e280  # of scores, and of their rounding: below it neither a score nor a sum of noise and score overflows
CELL_ERROR = 2.0**-49  # relative error of a grid point's probability, root mean square, per grid point in a standard deviation


_forced: list[tuple[int, int, np.random.Generator]] = []  # blocks of `reproducible_noise`: process, seed, and one stream


@contextmanager
def reproducible_noise(seed: int) -> Iterator[None]:
    """Draw the noise of all fits of this process from a seed: for tests and benchmarks only.

    Fits inside the block are not private, and their reports say so (``private: False``). The seed never reaches an estimator, a
    pickle, a ledger or another process: a joblib worker draws secure noise unless it enters a block of its own. Of nested
    blocks the last one counts. Fits whose ``random_state`` is an integer draw the same noise each time, as scikit-learn's checks
    expect; all others share one stream, so that each has other noise. Threads share the block, too.

    Parameters
    ----------
    seed : int
        Non-negative.

    Raises
    ------
    TypeError, ValueError
        If the seed is of another type, or negative.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.testing import reproducible_noise
    >>> X, y = np.linspace(-1, 1, 200).reshape(-1, 1), np.arange(200) >= 100
    >>> with reproducible_noise(0):
    ...     model = DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[False, True]).fit(X, y)
    >>> model.privacy_report_.to_dict()["private"]
    False
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool):
        raise TypeError(f"seed={shown(seed)}; expected a non-negative integer.")
    if seed < 0:
        raise ValueError(f"seed={shown(seed)}; expected a non-negative integer.")
    entry = os.getpid(), int(seed), np.random.default_rng(int(seed))
    _forced.append(entry)
    try:
        yield
    finally:
        del _forced[max(place for place, other in enumerate(_forced) if other is entry)]


class NoiseSource:
    """Random bits of the operating system's cryptographic generator, and the normals and samples made of them.

    Only inside a block of `reproducible_noise`, in the process that entered it, the bits come from a seed.

    Parameters
    ----------
    random_state : object, default=None
        The estimator's. Inside a block an integer starts a stream that belongs to it and to the seed of the block; outside
        it changes nothing.
    """

    def __init__(self, random_state: object = None) -> None:
        blocks = [(seed, stream) for process, seed, stream in _forced if process == os.getpid()]
        self.secure = not blocks
        self.read: Callable[[int], bytes] = os.urandom
        if blocks:
            seed, stream = blocks[-1]
            alone = isinstance(random_state, Integral)
            self.read = (np.random.default_rng([seed, int(random_state)]) if alone else stream).bytes  # type: ignore[call-overload]

    def normal(self, size: int) -> np.ndarray:
        """Draw standard normals whose tail has no holes.

        Two 64-bit words make ``u``, uniform on (0, 1/2) with 51 random bits at *every* binary scale, and a sign; ``ndtri`` does
        the rest. A plain 53-bit uniform has a coarse lattice of points beyond 6.6 standard deviations.

        Parameters
        ----------
        size : int
            How many.

        Returns
        -------
        ndarray of shape (size,)
            Independent standard normals.
        """
        positive, u = self._halves(size)
        return np.where(positive, 1.0, -1.0) * ndtri(u)

    def exponential(self, size: int) -> np.ndarray:
        """Draw standard exponentials, as exact near 0 as in the tail.

        Parameters
        ----------
        size : int
            How many.

        Returns
        -------
        ndarray of shape (size,)
            Independent positive numbers, up to 745.
        """
        small, u = self._halves(size)
        return np.where(small, -np.log1p(-u), -np.log(u))

    def gumbel(self, size: int) -> np.ndarray:
        """Draw standard Gumbel variables: minus the logarithm of a standard exponential.

        Parameters
        ----------
        size : int
            How many.

        Returns
        -------
        ndarray of shape (size,)
            Independent numbers from -6.7 on.
        """
        return -np.log(self.exponential(size))

    def direction(self, size: int) -> np.ndarray:
        """Draw a unit vector, uniform on the sphere.

        The length of a vector of normals is independent of its direction, so short vectors, whose direction float64 rounds
        worse, are drawn again.

        Parameters
        ----------
        size : int
            Number of coordinates.

        Returns
        -------
        ndarray of shape (size,)
            A vector of norm 1.
        """
        length = 0.0
        while length < math.sqrt(size) / 2:
            vector = self.normal(size)
            length = float(np.linalg.norm(vector))
        return vector / length

    def sample(self, n_samples: int, sampling_rate: float) -> np.ndarray:
        """Draw a Poisson sample: every record enters independently with the same probability.

        A record enters where a 53-bit integer is below ``floor(sampling_rate * 2**53)``. Its first 8 bits nearly always
        decide, so the other 45 are drawn only where they are needed.

        Parameters
        ----------
        n_samples : int
            Number of records.
        sampling_rate : float
            Probability in (0, 1], rounded down to a multiple of 2**-53.

        Returns
        -------
        ndarray of int
            Sorted numbers of the records that entered.
        """
        if sampling_rate == 1:
            return np.arange(n_samples)
        first, rest = divmod(math.floor(sampling_rate * 2**53), 2**45)
        words = np.frombuffer(self.read(n_samples), dtype=np.uint8)
        enters = words < first
        undecided = np.flatnonzero(words == first)
        enters[undecided] = self._words(undecided.size) >> np.uint64(19) < rest
        return np.flatnonzero(enters)

    def _halves(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Fair coins, and numbers uniform on (0, 1/2) with 51 random bits at every binary scale."""
        word = self._words(size)
        mantissa = (word & np.uint64(2**51 - 1)).astype(np.float64)
        u = np.ldexp(1.0 + (2.0 * mantissa + 1.0) * 2.0**-52, -(self._leading_zeros(size) + 2))
        return word >> np.uint64(63) > 0, u

    def _leading_zeros(self, size: int) -> np.ndarray:
        """Number of zeros before the first one in an endless stream of fair bits: P(e) = 2**-(e + 1)."""
        count = np.zeros(size, dtype=np.int64)
        pending = np.arange(size)
        while pending.size:
            word = self._words(pending.size) >> np.uint64(11)  # 53 bits: exact in float64
            count[pending] += 53 - np.frexp(word.astype(np.float64))[1]
            pending = pending[word == 0]
        return count

    def _words(self, size: int) -> np.ndarray:
        return np.frombuffer(self.read(8 * size), dtype="<u8").astype(np.uint64, copy=False)


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


@dataclass(frozen=True)
class GumbelNoise:
    r"""Gumbel noise on scores, of which only the place of the largest is released: the exponential mechanism.

    Parameters
    ----------
    scale : float
        Scale b of the noise: place v is chosen with a probability proportional to ``exp(score_v / b)``.
    """

    scale: float

    @classmethod
    def calibrated(cls, *, sensitivity: float, scale: float, rounding: float) -> "GumbelNoise":
        r"""Choose the scale that covers the rounding of the scores, too.

        Proof. Let every noisy score, as computed, be within e of ``u_v + b g_v`` with real scores u and true Gumbel variables g.
        What is then chosen as the largest would be a largest one in earnest if its score were raised by 2e, so it has at most
        :math:`\exp(2e/b)` times its true probability; and it is chosen whenever it is the largest with its score lowered by
        2e, so it has at least :math:`\exp(-2e/b)` times. Hence the logarithm of the ratio between two tables moves by
        at most 4e/b up or down, and its range, :math:`2 \Delta / b` for sensitivity :math:`\Delta`, grows by at most 8e/b, as
        much as if the sensitivity were :math:`\Delta + 4e`. Ties are within that argument. e is ``rounding`` plus
        GUMBEL_ERROR times b: a variable comes from a uniform number of relative precision 2**-52 through two logarithms. One
        beyond 512, of probability exp(-512), is neglected. What is lost below the smallest normal number is less than
        FINEST_GRID, which e has besides.

        Parameters
        ----------
        sensitivity : float
            Largest change of a real score between neighbours, non-negative.
        scale : float
            Scale over sensitivity, positive: 2 over the epsilon of the selection.
        rounding : float
            Bound on the float64 error of a score and of adding to it.

        Returns
        -------
        GumbelNoise
            Noise of the scale that makes the selection private.

        Raises
        ------
        ValueError
            If the noise is so large that float64 does not resolve it, or sensitivity or rounding is not finite or beyond 1e280.
        """
        share = 4 * GUMBEL_ERROR * scale
        if share > 0.5:
            raise ValueError(
                f"A Gumbel noise of {scale:.3g} times the sensitivity is beyond what float64 resolves; expected a larger epsilon "
                "or fewer steps."
            )
        if not (0 <= sensitivity <= LARGEST_SENSITIVITY and 0 <= rounding <= LARGEST_SENSITIVITY):
            raise ValueError(f"A selection needs scores with a finite sensitivity, up to {LARGEST_SENSITIVITY:g}.")
        return cls(scale * (sensitivity + 4 * (rounding + FINEST_GRID)) / (1 - share))

    def select(self, scores: np.ndarray, source: NoiseSource) -> int:
        """Return the place of the largest noisy score.

        Parameters
        ----------
        scores : ndarray of shape (m,)
            Un-noised, finite.
        source : NoiseSource
            Where the noise comes from.

        Returns
        -------
        int
            From 0 to m - 1.
        """
        return int(np.argmax(scores + self.scale * source.gumbel(scores.size)))


def power_of_two_below(x: float) -> float:
    """Return the largest power of two at most ``x``; 0 where there is none."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1) if x > 0 else 0.0

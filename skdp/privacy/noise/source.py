"""Draw the random numbers of privacy noise: from the operating system, or from a seed inside `reproducible_noise`."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp.privacy.errors import shown

# Normals that are drawn together, at most. A choice: it bounds their memory, and more at a time are hardly quicker.
TOGETHER = 2**14

_forced: list[tuple[int, int, np.random.Generator]] = []  # open blocks of `reproducible_noise`: process, seed, shared stream


@contextmanager
def reproducible_noise(seed: int) -> Iterator[None]:
    """Draw the noise of all fits of this process from a seed: for tests and benchmarks only.

    Fits inside the block are not private, and their reports say so (``private: False``). The seed never reaches an estimator, a
    pickle, a ledger or another process: a joblib worker draws secure noise unless it enters a block of its own. The innermost of
    nested blocks counts. Fits whose ``random_state`` is an integer draw the same noise each time, as scikit-learn's checks
    expect. All other fits share one stream, so each draws different noise. Threads share the block.

    Parameters
    ----------
    seed : int
        Non-negative integer.

    Raises
    ------
    TypeError, ValueError
        If the seed is not an integer, or negative.

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
    """Draw normals, exponentials, coins and keys of samples from the operating system's cryptographic generator.

    The bits come from a seed only inside a block of `reproducible_noise` and only in the process that entered the block.

    Parameters
    ----------
    random_state : object, default=None
        Parameter of the estimator. Inside a block, an integer starts a stream that depends on it and on the seed of the block.
        Outside, it changes nothing.
    """

    def __init__(self, random_state: object = None) -> None:
        blocks = [(seed, stream) for process, seed, stream in _forced if process == os.getpid()]
        self.secure = not blocks
        self.read: Callable[[int], bytes] = os.urandom
        self._ahead: tuple[int, list[np.ndarray]] = 0, []  # a process, and normals that no call has returned yet, the next last
        if blocks:
            seed, stream = blocks[-1]
            alone = isinstance(random_state, Integral)
            self.read = (np.random.default_rng([seed, int(random_state)]) if alone else stream).bytes  # type: ignore[call-overload]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is drawn ahead: a copy must not return it, too."""
        return {**vars(self), "_ahead": (0, [])}

    def normal(self, size: int, calls: int = 1) -> np.ndarray:
        """Draw standard normals whose tail has no holes.

        Two 64-bit words give a sign and ``u``, which is uniform on (0, 1/2) with 51 random bits at *every* binary scale; the
        normal is ``ndtri(u)`` with that sign. A plain 53-bit uniform number would give a coarse lattice of points beyond 6.6
        standard deviations.

        Parameters
        ----------
        size : int
            Number of draws.
        calls : int, default=1
            Number of calls with this size that come next, this one included, without other draws in between. Some are drawn
            together with this one. They are the same normals as if each were drawn alone, and each is returned once.

        Returns
        -------
        ndarray of shape (size,)
            Independent standard normals.
        """
        process, ahead = self._ahead
        if not ahead or ahead[-1].size != size or process != os.getpid():
            count = max(1, min(calls, TOGETHER // max(size, 1)))
            positive, u = self._halves(size, count)
            ahead = [*(np.where(positive, 1.0, -1.0) * ndtri(u)).reshape(count, size)[::-1]]
            self._ahead = os.getpid(), ahead
        return ahead.pop()

    def exponential(self, size: int) -> np.ndarray:
        """Draw standard exponentials that are as accurate near 0 as in the tail.

        Parameters
        ----------
        size : int
            Number of draws.

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
            Number of draws.

        Returns
        -------
        ndarray of shape (size,)
            Independent numbers, at least -6.7.
        """
        return -np.log(self.exponential(size))

    def coins(self, probability: float, size: int) -> np.ndarray:
        """Draw coins, also rare ones: their probability has a relative error of at most 2**-51 at every scale.

        Parameters
        ----------
        probability : float
            Probability of True, in [0, 1/2].
        size : int
            Number of draws.

        Returns
        -------
        ndarray of bool of shape (size,)
            Independent coins.
        """
        fair, u = self._halves(size)
        return fair & (u < probability)

    def integers(self, below: int, size: int) -> np.ndarray:
        """Draw integers from 0 to ``below - 1``, all with exactly the same probability.

        Parameters
        ----------
        below : int
            From 1 to 2**53; bits that give a larger integer are drawn again.
        size : int
            Number of draws.

        Returns
        -------
        ndarray of shape (size,)
            Integers, as float64.
        """
        mask, found = np.uint64(2 ** (below - 1).bit_length() - 1), np.zeros(0)
        while found.size < size:
            numbers = (self._words(size) & mask).astype(np.float64)
            found = np.append(found, numbers[numbers < below])
        return found[:size]

    def direction(self, size: int) -> np.ndarray:
        """Draw a unit vector, uniform on the sphere.

        The length of a vector of normals is independent of its direction. So short vectors, whose direction has a larger float64
        error, are drawn again.

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

    def key(self) -> bytes:
        """Draw the secret key of one Poisson sample.

        Returns
        -------
        bytes
            32 random bytes, for `sample_of`.
        """
        return self.read(32)

    def _halves(self, size: int, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return fair coins, and numbers uniform on (0, 1/2) with 51 random bits at every binary scale, for ``count`` draws."""
        #  one word:  | coin | 12 bits unused | 51 bits m |     another word: e, its number of leading zeros
        # u is in [2^-(e + 2), 2^-(e + 1)), with probability 2^-(e + 1), and has the middle of one of 2^51 equal parts of it.
        words = self._words(2 * count * size).reshape(count, 2, size)
        word = words[:, 0].ravel()
        mantissa = (word & np.uint64(2**51 - 1)).astype(np.float64)
        u = np.ldexp(1.0 + (2.0 * mantissa + 1.0) * 2.0**-52, -(self._leading_zeros(words[:, 1].ravel()) + 2))
        return word >> np.uint64(63) > 0, u

    def _leading_zeros(self, words: np.ndarray) -> np.ndarray:
        """Return the number of zeros before the first one in endless streams of fair bits that begin with these words.

        P(e) = 2**-(e + 1).
        """
        bits = words >> np.uint64(11)  # 53 bits: exact in float64
        count = 53 - np.frexp(bits.astype(np.float64))[1]
        if not bits.all():
            zero = bits == 0
            count[zero] += self._leading_zeros(self._words(int(zero.sum())))
        return count

    def _words(self, size: int) -> np.ndarray:
        return np.frombuffer(self.read(8 * size), dtype="<u8").astype(np.uint64, copy=False)

"""Gumbel noise for selections: the exponential mechanism, with its rounding covered."""

from dataclasses import dataclass

import numpy as np

from skdp.privacy.noise.gaussian import FINEST_GRID
from skdp.privacy.noise.source import NoiseSource

__all__ = ["GumbelNoise"]

GUMBEL_ERROR = 2.0**-42  # of a Gumbel variable below 512 in absolute value, and of adding it, over its scale
LARGEST_SENSITIVITY = 1e280  # of scores, and of their rounding: below it neither a score nor a sum of noise and score overflows


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

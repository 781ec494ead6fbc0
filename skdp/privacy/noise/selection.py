"""Select candidates by the exponential mechanism: Gumbel noise on scores, with a scale that covers their rounding."""

from dataclasses import dataclass

import numpy as np

from skdp.privacy.noise.gaussian import FINEST_GRID
from skdp.privacy.noise.source import NoiseSource

# Bound on the error of computing a Gumbel variable below 512 in absolute value and of adding it, in units of the noise scale.
# The docstring of `GumbelNoise.calibrated` derives it. A larger number would add noise.
GUMBEL_ERROR = 2.0**-42

# Largest sensitivity and largest rounding error of a score, in units of the score. A choice: neither a score nor its sum with
# noise overflows below it.
LARGEST_SENSITIVITY = 1e280


@dataclass(frozen=True)
class GumbelNoise:
    r"""Add Gumbel noise to scores and release only the index of the largest: the exponential mechanism.

    Parameters
    ----------
    scale : float
        Scale b of the noise: index v is chosen with a probability proportional to ``exp(score_v / b)``.
    """

    scale: float

    @classmethod
    def calibrated(cls, *, sensitivity: float, scale: float, rounding: float, n_choices: int = 1) -> "GumbelNoise":
        r"""Choose the scale that also covers the rounding of the scores.

        Proof. Let every noisy score, as computed, be within e of ``u_v + b g_v`` with real scores u and true Gumbel variables g.
        The chosen candidate would truly be a largest one if its score were raised by 2e, so its probability is at most
        :math:`\exp(2e/b)` times the true one. It is chosen whenever it is the largest with its score lowered by 2e, so its
        probability is at least :math:`\exp(-2e/b)` times the true one. Hence the logarithm of the ratio between two tables moves
        by at most 4e/b up or down. Its range, :math:`2 \Delta / b` for sensitivity :math:`\Delta`, grows by at most 8e/b, as much
        as if the sensitivity were :math:`\Delta + 4e`. The argument includes ties. e is ``rounding`` plus GUMBEL_ERROR times b:
        a Gumbel variable comes from a uniform number of relative precision 2**-52 through two logarithms. A variable beyond 512,
        of probability exp(-512), is neglected. The loss below the smallest normal number is less than FINEST_GRID, which is added
        to e. Ranges of independent choices add up, so k of them grow by k times as much.

        Parameters
        ----------
        sensitivity : float
            Largest change of a real score between neighbours, non-negative.
        scale : float
            Scale over sensitivity, positive: 2 over the epsilon of the selection.
        rounding : float
            Bound on the float64 error of a score and of adding noise to it.
        n_choices : int, default=1
            Number of choices that are released together; ``sensitivity`` is that of the sum of the largest changes of each.

        Returns
        -------
        GumbelNoise
            Noise of the scale that makes the selection private.

        Raises
        ------
        ValueError
            If the noise is too large for float64 to resolve, or if sensitivity or rounding is not finite or exceeds 1e280.
        """
        share = 4 * n_choices * GUMBEL_ERROR * scale
        if share > 0.5:
            raise ValueError(
                f"Gumbel noise of {scale:.3g} times the sensitivity is too large for float64 to resolve; expected a larger "
                "epsilon or fewer steps."
            )
        if not (0 <= sensitivity <= LARGEST_SENSITIVITY and 0 <= rounding <= LARGEST_SENSITIVITY):
            raise ValueError(f"A selection needs scores with a finite sensitivity, up to {LARGEST_SENSITIVITY:g}.")
        return cls(scale * (sensitivity + 4 * n_choices * (rounding + FINEST_GRID)) / (1 - share))

    def select(self, scores: np.ndarray, source: NoiseSource) -> int:
        """Return the index of the largest noisy score.

        Parameters
        ----------
        scores : ndarray of shape (m,)
            Un-noised, finite scores.
        source : NoiseSource
            Source of the noise.

        Returns
        -------
        int
            Index from 0 to m - 1.
        """
        return int(np.argmax(scores + self.scale * source.gumbel(scores.size)))

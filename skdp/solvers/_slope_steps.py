"""Calibrate released scores of classes by noisy Newton steps in their slope, with a prior."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from skdp.privacy.queries import SlopeDerivatives
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers._base import Ask

# Largest change of a slope in a step, and least slope, so that a noisy one does not reverse the order of predictions. Choices.
LONGEST_MOVE, LEAST_SLOPE = 1.0, 0.02
# Least noise of a mean, so that there is a prior where there is none. A choice.
LEAST_NOISE = 1e-6
# Least second derivative over its noise, so that a step is short where noise hides the curvature. A choice; half of it changed
# the log loss by less than fits differ.
FLOOR = 2.0


@dataclass(frozen=True)
class SlopeSteps:
    """Hold the public constants of the steps.

    Parameters
    ----------
    share : float
        Share of the squared Gaussian-DP parameter.
    n_steps : int
        Number of steps, each of them a release.
    mean, spread : float
        Mean and standard deviation of the normal prior of the slope. Steps start at the mean: from 1, two of them overshot where
        scores were twice as long as they should be.
    """

    share: float
    n_steps: int
    mean: float
    spread: float

    def entry(self, n_outputs: int, largest_weight: float = 1.0) -> tuple[int, Release]:
        """Return the entry of the schedule."""
        query = SlopeDerivatives(1.0, n_outputs, self.mean, largest_weight)
        noise = Gaussian(math.sqrt(self.n_steps / self.share))
        return self.n_steps, Release(SlopeDerivatives, noise, query.clip_norm, query.size)

    def slope(
        self,
        query_at: Callable[[float], SlopeDerivatives],
        ask: Ask,
        n_samples: int,
        noise: float,
        penalty: float = 0.0,
    ) -> tuple[float, float]:
        """Return the slope that makes the scores log-odds, and its relative posterior variance.

        Parameters
        ----------
        query_at : callable
            Returns the query at a slope.
        ask : callable
            Answers it.
        n_samples : int
            Number of records.
        noise : float
            Standard deviation of the noise of an answer, over the number of records.
        penalty : float, default=0.0
            Strength of an L2 penalty on the slope.

        Returns
        -------
        slope : float
            At least 0.02.
        variance : float
            Posterior variance over its square.
        """
        noise, slope, variance = max(noise, LEAST_NOISE), self.mean, self.spread**2
        for _ in range(self.n_steps):
            query = query_at(slope)
            first, second = (ask(query) / n_samples).tolist()
            # Along u = s / reach the mean descent g is `bend` times what is missing of the slope. With the noise of g and the
            # prior, the posterior mean follows.
            bend = query.reach * max(second, FLOOR * noise) + penalty / query.reach
            descent = first - penalty * slope / query.reach
            variance = 1 / ((bend / noise) ** 2 + self.spread**-2)
            move = variance * (bend * descent / noise**2 + (self.mean - slope) / self.spread**2)
            slope = max(slope + min(max(move, -LONGEST_MOVE), LONGEST_MOVE), LEAST_SLOPE)
        return slope, variance / slope**2

"""Provide what the adaptive solvers share: validated copies, default shares of the budget, and the remark on small tables."""

import copy
import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from skdp.privacy.schedule import Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers.adaptive._whitening import BINS, half_vector_noise, hopeless, hopelessness

# Number of features up to which the second moment is released, d * (d + 1) / 2 numbers. The bound on the rounding error in
# `Whitening` is proved up to this number. A smaller value whitens fewer tables; beyond it all features share one scale.
MOST_WHITENED = 1024
# Share of a histogram: HISTOGRAM_SCALE / signal_to_noise**2, at least the parameter `histogram_share` and at most
# MOST_FOR_HISTOGRAM. Chosen on california, bike and generated tables (docs/defaults.md): 100 or 900 in place of 300 changed R2
# by at most .02, but for .18 on the smallest table. A larger value gives small tables a better radius and clip norm, and noisier
# gradients.
HISTOGRAM_SCALE, MOST_FOR_HISTOGRAM = 300.0, 0.1
# Standard deviation of a cumulated share of the records, from which a histogram is left out: no quantile could be read from it.
# A choice; a larger value keeps histograms on smaller tables, where they mislead.
BLURRED = 0.15
# The share of the means grows with the square of min(d, MOST_DIRECTIONS) / (MEANS_SCALE * signal_to_noise), up to its largest
# value at 1. Chosen on the same tables; .35 in place of .7 had an R2 of -6 on single seeds of small tables. A larger scale gives
# the means less where n is small.
MEANS_SCALE, MOST_DIRECTIONS = 0.7, 8


class AdaptiveSolver(Solver):
    """Base of the solvers that release centre, scale and clip norm before the gradients."""

    def default_alpha(self, problem: Problem) -> float:
        """Return 0: the solver shrinks its coefficients in its own geometry."""
        return 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return ``inf``: earlier releases set the clip norm."""
        return math.inf

    def schedule(self, problem: Problem) -> Schedule:
        """Return the releases that the class describes, in its order, weighted by their shares; raises for invalid parameters."""
        return self._validated(problem)._schedule(problem)

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the steps that the class describes; ``rng`` is not used."""
        return self._validated(problem)._solve(problem, ask)

    @abstractmethod
    def _validated(self, problem: Problem) -> "AdaptiveSolver":
        """Return a validated copy with parameters converted to Python numbers."""

    @abstractmethod
    def _schedule(self, problem: Problem) -> Schedule:
        """Return the schedule of a validated copy."""

    @abstractmethod
    def _solve(self, problem: Problem, ask: Ask) -> SolverResult:
        """Return the result of a validated copy."""

    def _with_floats(self, *names: str) -> "AdaptiveSolver":
        """Return a copy in which the named parameters are floats."""
        settled = copy.copy(self)
        for name in names:
            setattr(settled, name, float(getattr(self, name)))
        return settled


class WhiteningSolver(AdaptiveSolver):
    """Base of the solvers for numbers, which whiten the features, or fit a constant where n is too small.

    Attributes
    ----------
    constant : str
        What the solver estimates where n is too small for anything else.
    """

    constant: ClassVar[str]
    histogram_share: float

    def remark(self, problem: Problem) -> str:
        """Return a warning for the report where the solver estimates only a constant."""
        if not hopeless(problem):
            return ""
        return (
            f"n = {problem.n_samples} is too small for this epsilon and {problem.n_features} features: only {self.constant} is "
            "estimated, and all coefficients are 0"
        )

    def noise_level(self, problem: Problem) -> float | None:
        """Return the noise level where the solver estimates only a constant, else None."""
        return hopelessness(problem)

    def _histogram_share(self, problem: Problem) -> float:
        """Return the share of one histogram; 0 where its noise would be too large for a quantile.

        Here and in the share of the means, several targets count as one with the noise that each of them has, for which the
        constants were chosen.
        """
        root = math.sqrt(problem.loss.n_outputs)
        # The last number is the noise of a share in the middle of the histogram, the mean of two estimates of it from half of the
        # BINS counts each.
        wanted = max(HISTOGRAM_SCALE * (root / problem.signal_to_noise) ** 2, self.histogram_share)
        share = min(wanted, max(MOST_FOR_HISTOGRAM, self.histogram_share))
        return share if root * half_vector_noise(problem) * math.sqrt(BINS / share) / 2 <= BLURRED else 0.0

    def _means_growth(self, problem: Problem) -> float:
        """Return how far the share of the means has grown with the noise, in [0, 1]."""
        noise = math.sqrt(problem.loss.n_outputs) / problem.signal_to_noise
        return min(1.0, (noise * min(problem.n_features, MOST_DIRECTIONS) / MEANS_SCALE) ** 2)

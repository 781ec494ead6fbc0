"""Implement what the solvers that release a minimum share: its public facts, and defaults that follow from the noise."""

import math
from abc import abstractmethod

import numpy as np

from skdp.privacy.queries import Gradient, Minimum
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.privacy.schedule import Mechanism, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult

# Signal-to-noise ratio from which nothing is clipped; below half of it gradients are clipped to half of their largest norm. A
# choice, the same as for "gd": a larger value clips longer.
CLEAR = 3000.0


class MinimumSolver(Solver):
    """Base of the solvers that release one noisy minimum of the penalised sum of losses, in which the intercept is penalised."""

    needs = frozenset({"binary", "bounded", "convex", "curved", "plain", "pointwise", "smooth"})
    pure = True
    penalizes_intercept = True

    def default_clip_norm(self, problem: Problem) -> float:
        """Return half the largest norm of a gradient while noise limits the fit, up to all of it; all for ``epsilon=inf``."""
        return min(max(_signal_to_noise(problem) / CLEAR, 0.5), 1.0) * problem.lipschitz

    def schedule(self, problem: Problem) -> Schedule:
        """Return one entry: a noisy minimum; raises for invalid parameters, and a penalty too weak for proof or float64."""
        query = self._query(problem)
        return Schedule(((1, Release(Minimum, self._mechanism(problem), query.clip_norm, query.size)),))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Ask for the minimum; ``n_iter`` is None, because the number of steps behind the oracle depends on the data."""
        return SolverResult(ask(self._query(problem)).reshape(problem.shape), None)

    @abstractmethod
    def _mechanism(self, problem: Problem) -> Mechanism:
        """Return the mechanism that adds the noise."""

    @abstractmethod
    def _query(self, problem: Problem) -> Minimum:
        """Query for the minimum."""


def minimization(problem: Problem) -> Minimization:
    """Return the public facts of the penalised sum of losses; ``n_samples * alpha`` is its strong convexity.

    Parameters
    ----------
    problem : Problem
        Public facts of the fit.

    Returns
    -------
    Minimization
        Facts for clipped gradients; every bound includes the largest class weight.

    Raises
    ------
    ValueError
        If there is no penalty: without one there may be no minimum.
    """
    strength = problem.n_samples * problem.alpha
    if not strength > 0:
        raise ValueError(f"alpha={problem.alpha!r}; expected a positive number: without a penalty there may be no minimum.")
    return Minimization(
        n_samples=problem.n_samples,
        size=math.prod(problem.shape),
        clip_norm=min(problem.clip_norm, problem.lipschitz),
        smoothness=problem.smoothness,
        strength=strength,
        value=problem.max_weight * float(problem.loss.value(np.zeros((2, 1)), np.array([0, 1])).max()),
        one_sided=bool(getattr(problem.loss, "one_sided", False)),
    )


def _signal_to_noise(problem: Problem) -> float:
    """Return the largest possible sum of clipped gradients over the noise of one coordinate of a sum."""
    budget = problem.budget
    if budget.delta > 0:
        return problem.signal_to_noise
    # Noise of exponential norm on p coordinates has a root mean square of k / epsilon sqrt(p + 1) per coordinate.
    replaced = Gradient.relative_sensitivity[budget.adjacency]
    return problem.n_samples * budget.epsilon / (replaced * math.sqrt(math.prod(problem.shape) + 1))


def unit_noise(problem: Problem) -> float:
    """Return the noise per coordinate that the whole budget puts on a sum of gradients of norm 1.

    Parameters
    ----------
    problem : Problem
        Public facts, with a finite epsilon.

    Returns
    -------
    float
        Root mean square.
    """
    return problem.n_samples / _signal_to_noise(problem)

"""Momentum on noisy gradients, with a total step length that the noise sets: what "gd" and "sgd" share."""

from abc import abstractmethod

import numpy as np

from skdp._validation import check_integer, check_number
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult

__all__ = ["MomentumSolver"]

TRAVEL = 3.0  # noise of a raw prediction that a fit may gather, before contraction
FAINT = 50.0  # signal-to-noise below which a fit travels less: there even the larger class is hard to tell
MOST_STEPS = 10**7
CLEAR = 3000.0  # signal-to-noise from which on nothing is clipped by default


class MomentumSolver(Solver):
    """Heavy-ball steps on noisy mean gradients, averaged over the last iterates.

    Subclasses have the parameters ``n_steps``, ``step_size``, ``momentum`` and ``tail_average``.
    """

    def default_clip_norm(self, problem: Problem) -> float:
        """Return between half and all of the largest norm that a gradient can have.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        float
            Clip norm for ``clip_norm=None``.
        """
        return min(max(problem.signal_to_noise / CLEAR, 0.5), 1.0) * problem.lipschitz

    def schedule(self, problem: Problem) -> Schedule:
        """Return T Gaussian releases of the clipped gradient sum, all on the same terms.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        Schedule
            One entry.

        Raises
        ------
        TypeError, ValueError
            If a parameter of the solver is out of its range.
        """
        self._check(problem)
        return Schedule(((self._steps(problem), Release(Gradient, self._mechanism(problem), problem.clip_norm)),))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the T steps from the public start of the problem.

        Parameters
        ----------
        problem : Problem
            Public facts.
        ask : callable
            Answers a query with noise.
        rng : Generator
            Not used: nothing public is drawn.

        Returns
        -------
        SolverResult
            Average of the last iterates.
        """
        n_steps, mechanism = self._steps(problem), self._mechanism(problem)
        step_size = self._step_size(problem, n_steps)
        expected_size = getattr(mechanism, "sampling_rate", 1.0) * problem.n_samples
        first = n_steps - max(1, round(self.tail_average * n_steps))
        coef, velocity, average = problem.start, np.zeros(problem.shape), np.zeros(problem.shape)
        for step in range(n_steps):
            gradient = ask(Gradient(problem.loss, coef, problem.clip_norm)).reshape(problem.shape)
            velocity = self._beta * velocity + gradient / expected_size + problem.penalty_gradient(coef)
            coef = coef - step_size * velocity
            if step >= first:
                average += coef / (n_steps - first)
        return SolverResult(average, n_steps)

    @abstractmethod
    def _steps(self, problem: Problem) -> int:
        """Number of steps, from public facts."""

    @abstractmethod
    def _mechanism(self, problem: Problem) -> Gaussian | PoissonGaussian:
        """How a gradient is released: of all records, or of a sample."""

    def _check(self, problem: Problem) -> None:
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("step_size", self.step_size, above=0.0, optional=True)
        check_number("momentum", self.momentum, minimum=0.0, below=1.0)
        check_number("tail_average", self.tail_average, minimum=0.0, maximum=1.0)

    @property
    def _beta(self) -> float:
        """Momentum in float64, whatever number was given."""
        return float(self.momentum)

    def _step_size(self, problem: Problem, n_steps: int) -> float:
        if self.step_size is not None:
            return float(self.step_size)
        return min(self._path(problem) * (1 - self._beta) / n_steps, self._largest_step(problem))

    def _path(self, problem: Problem) -> float:
        """Total step length at which the gathered noise of a raw prediction reaches TRAVEL."""
        signal = problem.signal_to_noise
        return TRAVEL * min(1.0, signal / FAINT) * signal / (problem.clip_norm * problem.row_norm)

    def _largest_step(self, problem: Problem) -> float:
        return 1.5 * (1 + self._beta) / (problem.smoothness + problem.penalty.smoothness)

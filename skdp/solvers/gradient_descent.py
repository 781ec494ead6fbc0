"""DP-GD: full-data gradient descent on noisy clipped gradients."""

import math

import numpy as np

from skdp._validation import check_integer, check_number
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult

__all__ = ["GradientDescent"]

TRAVEL = 3.0  # noise of a raw prediction that a fit may gather, before contraction
FAINT = 50.0  # signal-to-noise below which a fit travels less: there even the larger class is hard to tell
CLEAR = 3000.0  # signal-to-noise from which on nothing is clipped by default
FEWEST, MOST, NOISELESS = 50, 200, 1000  # numbers of steps
WORK, FEWEST_ON_LARGE_TABLES = 3e8, 30  # cells of X that the passes of a default fit may read, and the steps taken anyway


class GradientDescent(Solver):
    r"""Gradient descent with momentum on noisy full-data gradients, averaged over the last iterates.

    Every step releases :math:`\sum_i \mathrm{clip}(\nabla \ell_i(w_t)) + N(0, \sigma^2 I)` and moves by

    .. math:: v_{t+1} = \beta v_t + \tilde g_t / n + \nabla r(w_t), \qquad w_{t+1} = w_t - \eta v_{t+1}.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each one release. None takes as many as the default path below needs at the largest stable step,
        between 50 and 200, fewer on large tables but at least 30; 1000 for ``epsilon=inf``.
    step_size : float or None, default=None
        Step :math:`\eta` on the mean gradient. None makes the total path :math:`K = T \eta / (1 - \beta)` equal to
        :math:`3 s / (C R)` with :math:`s = \mu n / k`: the noise that a path of length K adds to one raw prediction has
        standard deviation at most :math:`K C R / s`, so the rule makes it 3, whatever the table (less for s below 50).
        The step stays below three quarters of the stability limit :math:`2 (1 + \beta) / L` of the heavy-ball method.
    momentum : float, default=0.9
        Heavy-ball coefficient :math:`\beta` in [0, 1).
    tail_average : float, default=0.5
        Fraction of the last iterates that are averaged, in [0, 1]; 0 returns the last one.

    Notes
    -----
    Here :math:`\mu` is the Gaussian-DP parameter of the budget, k is 2 under ``replace_one`` and 1 under ``zero_out``, C the
    clip norm, R the row norm and L the smoothness. Step size, momentum and average are post-processing.

    The estimator's ``clip_norm=None`` means half the largest norm that a gradient can have while noise limits the fit, and
    opens in proportion to s until nothing is clipped from s = 3000 on: clipping by half costs less than the noise it saves.

    **Privacy.** T releases of the clipped gradient sum, each with sensitivity k C and noise multiplier
    :math:`k \sqrt{T} / \mu`; they compose exactly to :math:`\mu`-GDP, also though each depends on the ones before. Public:
    the shape of the table, the norm bounds, and every parameter.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 4.
    .. [2] B. T. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Comp. Math. 4 (1964):
       the heavy-ball method and its stability limit.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import GradientDescent
    >>> model = DPLogisticRegression(epsilon=1.0, solver=GradientDescent(n_steps=100))
    >>> model.set_params(solver__momentum=0.8).solver.momentum
    0.8
    """

    name = "gd"
    title = "DP-GD, full-data gradient descent with momentum and tail averaging (Wang, Ye, Xu 2017, Algorithm 4)"
    needs = frozenset({"smooth"})

    def __init__(
        self,
        n_steps: int | None = None,
        *,
        step_size: float | None = None,
        momentum: float = 0.9,
        tail_average: float = 0.5,
    ) -> None:
        self.n_steps = n_steps
        self.step_size = step_size
        self.momentum = momentum
        self.tail_average = tail_average

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
        """Return T full-data Gaussian releases of the clipped gradient sum.

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
        self._check()
        return Schedule(((self._steps(problem), Release(Gradient, Gaussian(), problem.clip_norm)),))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the T steps from the public start of the problem.

        Parameters
        ----------
        problem : Problem
            Public facts.
        ask : callable
            Answers a query with noise.
        rng : Generator
            Not used: nothing is drawn.

        Returns
        -------
        SolverResult
            Average of the last iterates.
        """
        n_steps = self._steps(problem)
        step_size = self._step_size(problem, n_steps)
        first = n_steps - max(1, round(self.tail_average * n_steps))
        coef, velocity, average = problem.start, np.zeros(problem.shape), np.zeros(problem.shape)
        for step in range(n_steps):
            gradient = ask(Gradient(problem.loss, coef, problem.clip_norm)).reshape(problem.shape)
            velocity = self.momentum * velocity + gradient / problem.n_samples + problem.penalty_gradient(coef)
            coef = coef - step_size * velocity
            if step >= first:
                average += coef / (n_steps - first)
        return SolverResult(average, n_steps)

    def _check(self) -> None:
        check_integer("n_steps", self.n_steps, minimum=1, optional=True)
        check_number("step_size", self.step_size, above=0.0, optional=True)
        check_number("momentum", self.momentum, minimum=0.0, below=1.0)
        check_number("tail_average", self.tail_average, minimum=0.0, maximum=1.0)

    def _steps(self, problem: Problem) -> int:
        if self.n_steps is not None:
            return int(self.n_steps)
        if not problem.budget.private:
            return NOISELESS
        cells = problem.n_samples * problem.shape[0] * problem.shape[1]
        needed = self._path(problem) * (1 - self.momentum) / self._largest_step(problem)
        affordable = max(WORK / cells, FEWEST_ON_LARGE_TABLES)
        return math.ceil(min(max(needed, FEWEST), affordable, MOST))

    def _step_size(self, problem: Problem, n_steps: int) -> float:
        if self.step_size is not None:
            return self.step_size
        return min(self._path(problem) * (1 - self.momentum) / n_steps, self._largest_step(problem))

    def _path(self, problem: Problem) -> float:
        """Total step length at which the gathered noise of a raw prediction reaches TRAVEL."""
        signal = problem.signal_to_noise
        return TRAVEL * min(1.0, signal / FAINT) * signal / (problem.clip_norm * problem.row_norm)

    def _largest_step(self, problem: Problem) -> float:
        return 1.5 * (1 + self.momentum) / (problem.smoothness + problem.penalty.smoothness)

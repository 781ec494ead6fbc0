"""Fit linear models by DP-Newton: second-order steps from noisy gradients and noisy curvature."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import cast

import numpy as np

from skdp._validation import check_integer, check_number, check_option, check_truth
from skdp.privacy.queries import Curvature, CurvedLoss, Gradient, NewtonDirection, Query
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._noise_limits import noise_limited_clip_norm

# The choices below were made on adult, bank and three to five further tables (docs/defaults.md, "The classical solvers").

# Default number of steps, number for epsilon=inf, and largest number that is accepted. Choices.
DEFAULT_STEPS, NOISELESS, MOST_STEPS = 30, 300, 10**4
# Largest number of coefficients: a matrix with its square is kept in memory, 128 MB here. A choice.
MOST_COORDINATES = 4096
# Largest value that is accepted for `noise`. A choice.
LARGEST_NOISE = 1e6
# Least ridge over the largest possible Hessian. A choice: float64 solves such systems to about ten digits.
LEAST_RIDGE = 1e-6
# Least eigenvalue of a released Hessian over the edge of the spectrum of its noise. A choice; a smaller one makes longer steps in
# directions that are all noise.
FLOOR = 0.5
# Noise of a raw prediction by all directions together (log-odds). A choice; a larger value means a smaller ridge.
DIRECTION_NOISE = 0.5
# Default share of the squared Gaussian-DP parameter for Hessians and for directions. Choices.
HESSIAN_SHARE, DIRECTION_SHARE = 0.2, 0.5
HESSIANS = ("released", "direction")

Step = Callable[[int, np.ndarray], np.ndarray]


@dataclass(eq=False, repr=False)
class Newton(Solver):
    r"""Newton's method on noisy clipped gradients, with the curvature released as well.

    Every step releases the clipped gradient sum :math:`\tilde g_t` and moves by

    .. math:: w_{t+1} = w_t - (\tilde H + \lambda I + n \alpha D)^{-1} (\tilde g_t + n \alpha D w_t),

    where D spares the intercept. The curvature takes a share of the budget, in one of two ways:

    - ``hessian="released"``: the first ``n_hessians`` steps release the Hessian, and raise its eigenvalues to a multiple of those
      that the noise alone has. Later steps use the last one.
    - ``hessian="direction"``: each step releases the direction instead of the Hessian (double noise). The ridge
      :math:`\lambda` grows with the released gradient, because the noise of a direction is proportional to
      :math:`\|\tilde g_t\| / \lambda^2`.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each with one gradient. None takes 30; 300 for ``epsilon=inf``.
    hessian : {"released", "direction"}, default="released"
        Which form of the curvature is released.
    n_hessians : int or None, default=None
        Number of first steps that release a Hessian, at most T. None takes 1, and T for ``epsilon=inf``. Not used for
        ``hessian="direction"``, where every step releases its direction.
    curvature_share : float or None, default=None
        Share of the squared Gaussian-DP parameter that the curvature gets, in (0, 1). None takes 0.2 for released Hessians and
        0.5 for directions; the gradients get the rest.
    noise : float, default=10.0
        Noise of a raw prediction that sets the ridge: the ridge is at least :math:`k C R T / (\mu \cdot \mathrm{noise})`, at
        which the noise of T gradients without contraction adds up to this standard deviation.
    upper_bound : bool, default=True
        Whether the curvature is that of parabolas above the loss, with which no step is too long; else the second derivative.
    tail_average : float, default=0.25
        Fraction of the last iterates that are averaged, in [0, 1]; 0 returns the last one.

    Notes
    -----
    Here n is the number of records, :math:`\mu` the Gaussian-DP parameter of the gradients, k is 2 under ``replace_one`` and 1
    under ``zero_out``, C the clip norm and R the row norm. For two classes only, and for at most 4096 coefficients.

    A single Hessian is taken at zero, where every parabola has the smoothness s of the loss (1/4 for the logistic one). It is s
    times the second moment of the rows, and bounds the Hessian everywhere, so one release is enough for all steps [2]_.

    The estimator's ``clip_norm=None`` means half the largest norm of a gradient while noise limits the fit, as for
    `GradientDescent`.

    **Privacy.** T clipped gradient sums of sensitivity k C, and Hessians of sensitivity M (``zero_out``) or :math:`\sqrt 2 M`
    (``replace_one``), or directions of sensitivity :math:`M \|\tilde g\| / (\lambda (\lambda + M))` for both adjacencies, where
    :math:`M = s R^2` bounds one record's Hessian by clipping. Their Gaussian-DP parameters square and add up to that of the
    budget. The noise of a direction depends on earlier releases; its noise multiplier is fixed in advance. Public: the shape of
    the table, the norm bounds, and every parameter.

    References
    ----------
    .. [1] A. Ganesh, M. Haghifam, T. Steinke, A. Thakurta, "Faster Differentially Private Convex Optimization via Second-Order
       Methods", NeurIPS 2023, Algorithm 4 (double noise) and Lemma 4.1 (the bound by parabolas).
    .. [2] D. Böhning, B. Lindsay, "Monotonicity of quadratic-approximation algorithms", Ann. Inst. Statist. Math. 40 (1988):
       one Hessian that bounds all.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import Newton
    >>> model = DPLogisticRegression(epsilon=1.0, solver=Newton(hessian="direction"))
    """

    name = "newton"
    title = "Newton's method with private curvature (Ganesh, Haghifam, Steinke, Thakurta 2023)"
    needs = frozenset({"binary", "convex", "curved", "plain", "pointwise", "smooth"})

    n_steps: int | None = None
    _: KW_ONLY
    hessian: str = "released"
    n_hessians: int | None = None
    curvature_share: float | None = None
    noise: float = 10.0
    upper_bound: bool = True
    tail_average: float = 0.25

    def default_clip_norm(self, problem: Problem) -> float:
        """Return the clip norm of "gd": between half and all of the largest norm of a gradient."""
        return noise_limited_clip_norm(problem)

    def schedule(self, problem: Problem) -> Schedule:
        """Return T gradients, each after a Hessian or before a direction; raises for invalid parameters."""
        return self._validated(problem).schedule()

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Take the T steps and return the average of the last iterates; ``rng`` is not used."""
        settled = self._validated(problem)
        first = settled.n_steps - max(1, round(float(self.tail_average) * settled.n_steps))
        take = settled.hessians(ask) if settled.released else settled.directions(ask)
        coef, average = problem.start, np.zeros(problem.shape)
        for step in range(settled.n_steps):
            coef = take(step, coef)
            if step >= first:
                average += coef / (settled.n_steps - first)
        return SolverResult(average, settled.n_steps)

    def _validated(self, problem: Problem) -> "NewtonSteps":
        """Checked parameters, with numbers in place of None."""
        self._check(problem)
        released, private = self.hessian == "released", problem.budget.private
        n_steps = int(self.n_steps or (DEFAULT_STEPS if private else NOISELESS))
        n_hessians = min(int(self.n_hessians or 1), n_steps) if released and private else n_steps
        share = float(self.curvature_share or (HESSIAN_SHARE if released else DIRECTION_SHARE))
        return NewtonSteps(problem, released, n_steps, n_hessians, share, float(self.noise), bool(self.upper_bound))

    def _check(self, problem: Problem) -> None:
        if problem.shape[0] > MOST_COORDINATES:
            raise ValueError(
                f"solver='newton' keeps a {problem.shape[0]} x {problem.shape[0]} matrix in memory; expected at most "
                f"{MOST_COORDINATES} coefficients. solver='gd' has no such limit."
            )
        if not isinstance(problem.loss, CurvedLoss):
            raise TypeError(f"The {problem.loss.name} loss has no method curvature; expected its second derivative.")
        check_option("hessian", self.hessian, list(HESSIANS))
        check_truth("upper_bound", self.upper_bound)
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_STEPS, optional=True)
        check_integer("n_hessians", self.n_hessians, minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("curvature_share", self.curvature_share, above=0.0, below=1.0, optional=True)
        check_number("noise", self.noise, above=0.0, maximum=LARGEST_NOISE)
        check_number("tail_average", self.tail_average, minimum=0.0, maximum=1.0)


@dataclass(frozen=True)
class NewtonSteps:
    """Settings of one fit, all public.

    Parameters
    ----------
    problem : Problem
        Public facts.
    released : bool
        Whether Hessians are released; else directions.
    n_steps, n_hessians : int
        Numbers of gradients and of releases of the curvature.
    share : float
        Share of the squared Gaussian-DP parameter for the curvature.
    noise : float
        Noise of a raw prediction by all gradients.
    upper_bound : bool
        Whether the curvature bounds the loss from above.
    """

    problem: Problem
    released: bool
    n_steps: int
    n_hessians: int
    share: float
    noise: float
    upper_bound: bool

    def schedule(self) -> Schedule:
        """Return the schedule of all releases."""
        gradient = Release(Gradient, Gaussian(math.sqrt(self.n_steps / (1 - self.share))), self.problem.clip_norm)
        weight, start = Gaussian(math.sqrt(self.n_hessians / self.share)), self.curvature(self.problem.start)
        if not self.released:
            return Schedule(((1, gradient), (1, Release(NewtonDirection, weight, None, self.problem.shape[0]))) * self.n_steps)
        # The last Hessian serves all gradients that are left, so these are one entry.
        hessian, rest = (1, Release(Curvature, weight, start.clip_norm, start.size)), self.n_steps - self.n_hessians
        return Schedule((hessian, (1, gradient)) * (self.n_hessians - 1) + (hessian, (rest + 1, gradient)))

    def hessians(self, ask: Ask) -> Step:
        """Return the step with a released Hessian, whose eigenvalues are raised to `FLOOR` times the edge of the noise."""
        order = self.problem.shape[0]
        # Largest eigenvalue of the noise of a symmetric matrix, sigma sqrt(2 p), over the clip norm.
        edge = self._noise(Curvature, self.n_hessians, self.share) * math.sqrt(2 * order)
        ridge, inverse = self._penalty + self._least_ridge, np.empty((order, order))

        def take(step: int, coef: np.ndarray) -> np.ndarray:
            if step < self.n_hessians:
                query = self.curvature(coef if self.n_hessians > 1 else np.zeros_like(coef))
                values, vectors = np.linalg.eigh(query.matrix(ask(query)))
                hessian = (vectors * np.maximum(values, FLOOR * edge * query.clip_norm)) @ vectors.T
                inverse[:] = np.linalg.inv(hessian + np.diag(ridge))
            return coef - inverse @ self._gradient(coef, ask)

        return take

    def directions(self, ask: Ask) -> Step:
        """Return the step along a released direction; the noise of all adds up to `DIRECTION_NOISE` in a raw prediction."""
        noise = self._noise(NewtonDirection, self.n_steps, self.share) * math.sqrt(self.n_steps)
        noise *= self.problem.row_norm / DIRECTION_NOISE

        def take(step: int, coef: np.ndarray) -> np.ndarray:
            gradient, curvature = self._gradient(coef, ask), self.curvature(coef)
            # The noise of a direction is M |g| / (ridge (ridge + M)) times its multiplier. The ridge at which it is as wanted
            # solves ridge**2 + M ridge = M |g| noise; half is M / 2.
            half = curvature.clip_norm / 2
            ridge = math.sqrt(half * half + 2 * half * noise * float(np.linalg.norm(gradient))) - half
            ridges = self._penalty + max(ridge, self._least_ridge)
            return coef - ask(NewtonDirection(curvature, gradient, ridges, self.problem.n_samples)).reshape(coef.shape)

        return take

    def curvature(self, coef: np.ndarray) -> Curvature:
        """Return the query for the Hessian at a point."""
        upper_bound = self.upper_bound or self.n_hessians == 1  # the second derivative at zero bounds no other one
        return Curvature(cast(CurvedLoss, self.problem.loss), coef, self.problem.smoothness, upper_bound)

    def _gradient(self, coef: np.ndarray, ask: Ask) -> np.ndarray:
        """Return the noisy gradient of the summed loss and penalty."""
        released = ask(Gradient(self.problem.loss, coef, self.problem.clip_norm)).reshape(coef.shape)
        return released + self.problem.n_samples * self.problem.penalty_gradient(coef)

    def _noise(self, query: type[Query], count: int, share: float) -> float:
        """Return the standard deviation over clip norm of one of ``count`` releases that together have a share of the budget."""
        relative = Gradient.relative_sensitivity[self.problem.budget.adjacency]
        mu = self.problem.signal_to_noise * relative / self.problem.n_samples
        return query.relative_sensitivity[self.problem.budget.adjacency] * math.sqrt(count / share) / mu

    @property
    def _penalty(self) -> np.ndarray:
        """Second derivative of the penalty of the summed loss, per coefficient."""
        penalty = np.full(self.problem.shape[0], self.problem.n_samples * self.problem.alpha)
        penalty[self.problem.n_features :] = 0.0
        return penalty

    @property
    def _least_ridge(self) -> float:
        gathered = self._noise(Gradient, self.n_steps, 1 - self.share) * math.sqrt(self.n_steps)
        ridge = gathered * self.problem.clip_norm * self.problem.row_norm / self.noise
        return max(ridge, LEAST_RIDGE * self.problem.n_samples * max(self.problem.smoothness, self.problem.alpha))

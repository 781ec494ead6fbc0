"""Solve saddle problems by DP-SGDA: simultaneous descent and ascent on noisy gradients."""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from skdp.privacy.queries import JointGradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule
from skdp.solvers._base import Ask, Problem, SolverResult
from skdp.solvers.minimax._problem import MinimaxProblem
from skdp.solvers.minimax._saddle_steps import SaddleSettings, SaddleSolver, mechanism, signal


@dataclass(eq=False, repr=False)
class SGDA(SaddleSolver):
    r"""Gradient descent in the primal variables w and projected ascent in the dual ones v, from one release per step.

    Every step releases the sums of the clipped gradients of both sides at the same point, over all records or over a sample that
    has each record with probability q, and moves both:

    .. math:: w_{t+1} = P_w(w_t - \eta_w (\tilde g_t / (q n m) + \nabla_w r)), \qquad
       v_{t+1} = P_v(v_t + \eta_v (\tilde h_t / (q n m) + \nabla_v r)),

    where r is the public part of the objective, which no record enters, m the divisor of the problem, and P projects onto public
    sets.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each one release. None takes 100, 1000 for ``epsilon=inf``. With samples it takes the number that
        reads every record 20 times on average, between 100 and 2000.
    batch_size : float or None, default=None
        Expected number of records in a sample, :math:`q n`, from 1 to n. None takes that of the problem: 2048 for networks, all
        records (no sampling) for linear scores.
    primal_step_size : float or None, default=None
        Step :math:`\eta_w`. None follows the problem's ``step_sizes``, from public facts.
    dual_step_size : float or None, default=None
        Step :math:`\eta_v`. None follows the problem's ``step_sizes``.
    primal_clip_norm : float or None, default=None
        Bound :math:`C_1` on the norm of one record's primal gradient. None takes that of the problem.
    dual_clip_norm : float or None, default=None
        Bound :math:`C_0` on the norm of one record's dual gradient. None takes that of the problem.
    dual_share : float, default=0.1
        Share of the dual gradients in the squared Gaussian-DP parameter of the steps, in (0, 1).
    preparation_share : float, default=0.1
        Share of the releases before the steps, in (0, 1): a fifth of it for the class frequencies, the rest for the moments of
        the features. The steps get the part that the problem does not need.
    standardize : bool or None, default=None
        Whether the problem centres and scales the features by released moments, if it can. None lets the problem decide: it does
        for linear scores, not for networks.
    output : {"average", "last", "random"}, default="average"
        Which iterate is returned. "average": the mean of the second half. "last": the last one. "random": one of the T points at
        which gradients were released, whose number is drawn uniformly before the first step, as in the paper. The privacy is the
        same.

    Notes
    -----
    The gradient of an L2 penalty of strength ``alpha``, 0 by default, is added to the primal one.

    CSC tables are converted to CSR once, because whole rows are read.

    **Privacy.** After the releases of the preparation, T releases: each is one Gaussian release of the pair :math:`(\sqrt{1 - s}
    \sum g_i / C_1, \sqrt s \sum h_i / C_0)` with the clipped gradients of both sides of the same records, to which one record
    contributes a vector of norm at most 1, so its sensitivity is k (k is 2 under ``replace_one``, 1 under ``zero_out``), given
    the sample. The noise multiplier is fixed in advance; clip norms may follow from earlier releases. Releases of all records
    compose exactly; with samples the privacy loss distributions are composed numerically, rounded up, and delta must be at least
    1e-12. Public: the shape of the table, the norm bounds, the problem, and every parameter. Steps, projections and averages are
    post-processing. The problem class must guarantee that the gradients of a record depend on no other record.

    References
    ----------
    .. [1] R. Zhang et al., "Improved Rates of Differentially Private Nonconvex-Strongly-Concave Minimax Optimization", AAAI 2025,
       Algorithm 1.
    .. [2] T. Lin, C. Jin, M. I. Jordan, "On gradient descent ascent for nonconvex-concave minimax problems", ICML 2020.

    Examples
    --------
    >>> from skdp.solvers import SGDA
    >>> SGDA(200, batch_size=2048, output="last")
    SGDA(batch_size=2048, n_steps=200, output='last')
    """

    name = "sgda"
    title = "DP-SGDA, descent and ascent on jointly released gradients of a saddle problem (Zhang et al. 2025, Algorithm 1)"
    _length = "n_steps"

    n_steps: int | None = None

    def schedule(self, problem: Problem) -> Schedule:
        """Return the releases of the preparation, then one joint gradient per step; raises for invalid parameters."""
        facts = cast(MinimaxProblem, problem)
        settings = self._settings(facts)
        joint = Release(JointGradient, self._mechanism(facts, settings), JointGradient.clip_norm, sum(facts.sizes))
        before = facts.preparation(float(self.preparation_share), self.standardize)
        return Schedule((*before, (settings.n_steps, joint)))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Make all steps from the public start; ``rng`` draws the start and the number of a random output."""
        facts = cast(MinimaxProblem, problem)
        settings = self._settings(facts)
        descent = self._descent(facts, ask, rng, settings)
        for _ in range(settings.n_steps):
            primal, dual = descent.primal, descent.dual
            clip_norms = descent.primal_clip_norm(dual), descent.clip_norms[1]
            query = JointGradient(descent.saddle, primal, dual, *clip_norms, settings.dual_share)
            primal_total, dual_total = query.split(ask(query))
            descent.move(descent.primal_gradient(primal_total, primal, dual), descent.ascended(dual_total, primal, dual))
        return descent.result()

    def _mechanism(self, problem: MinimaxProblem, settings: SaddleSettings) -> Gaussian | PoissonGaussian:
        return mechanism(problem, settings.n_steps, 1 - settings.preparation_share, settings.rate)

    def _signal(self, problem: MinimaxProblem, settings: SaddleSettings) -> float:
        both = signal(problem, self._mechanism(problem, settings), settings.n_steps)
        return both * math.sqrt(1 - settings.dual_share)

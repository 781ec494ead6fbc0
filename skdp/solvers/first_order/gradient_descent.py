"""Fit linear models by DP-GD: full-data gradient descent on noisy clipped gradients."""

import math
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from skdp._validation import check_option
from skdp.privacy.schedule import Gaussian
from skdp.solvers._base import Problem
from skdp.solvers.first_order._momentum import MomentumSolver

OUTPUTS = ("average", "last", "random")
# Default number of steps: what the path needs at the largest stable step, within [FEWEST_STEPS, MOST_BY_DEFAULT]; NOISELESS for
# epsilon=inf. Choices: more steps cost time and no privacy, fewer leave the path short.
FEWEST_STEPS, MOST_BY_DEFAULT, NOISELESS = 50, 200, 1000
# Cells of X that all passes of a default fit may read together; at least FEWEST_ON_LARGE_TABLES steps
# are made whatever they read. Choices.
WORK, FEWEST_ON_LARGE_TABLES = 3e8, 30
# The same two limits for losses with a kink. They are larger, because the path grows only with the root of the number of steps.
MOST_WITH_KINKS, WORK_WITH_KINKS = 1000, 1e9


@dataclass(eq=False, repr=False)
class GradientDescent(MomentumSolver):
    r"""Gradient descent with momentum on noisy full-data gradients, averaged over the last iterates.

    Every step releases :math:`\sum_i \mathrm{clip}(\nabla \ell_i(w_t)) + N(0, \sigma^2 I)` and moves by

    .. math:: v_{t+1} = \beta v_t + \tilde g_t / n + \nabla r(w_t), \qquad w_{t+1} = w_t - \eta v_{t+1}.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each one release. None takes the number that the default path below needs at the largest stable step,
        between 50 and 200, fewer on large tables but at least 30; 1000 for ``epsilon=inf``.
    step_size : float or None, default=None
        Step :math:`\eta` on the mean gradient. None makes the total path :math:`K = T \eta / (1 - \beta)` equal to
        :math:`z s / (C R)` with :math:`s = \mu n / k`. The noise that a path of length K adds to one raw prediction has
        standard deviation at most :math:`K C R / s`, so the rule makes it z for every table (less for s below 50). z is 3 for
        classes, where raw predictions are log-odds. It is 1 for numbers, where they are in units of half the range of y, or of
        the threshold of the loss. The step is at most three quarters of the stability limit :math:`2 (1 + \beta) / L` of the
        heavy-ball method.
    momentum : float, default=0.9
        Heavy-ball coefficient :math:`\beta` in [0, 1).
    tail_average : float, default=0.5
        Fraction of the last iterates that are averaged, in [0, 1]; 0 returns the last one. Only for ``output="average"``.
    output : {"average", "last", "random"}, default="average"
        Which model is returned. "average": the mean of the last iterates. "last": the last iterate, for which Theorem 6.2 holds.
        "random": one of the T points at which a gradient was released, drawn uniformly and independently of the data, whose
        gradient Theorem 6.3 bounds without convexity. The privacy is the same.
    radius : float or None, default=None
        Radius D of the ball around 0 onto which the features' coefficients are projected after each step; the intercept is free.
        None projects only for a loss with a kink, onto :math:`D = z \sqrt p / R` with p coefficients: there the step of the
        theorem tends to the default step above. With ``standardize``, D bounds the coefficients of the standardised features.
        Not together with a constraint.
    standardize : float or None, default=None
        Share of the budget, in (0, 1), for a release of the features' moments before the steps. The steps then use centred and
        scaled features, as in `StandardizedGradientDescent`; 0.1 is enough. None is the algorithm of the paper.

    Notes
    -----
    Here :math:`\mu` is the Gaussian-DP parameter of the budget, k is 2 under ``replace_one`` and 1 under ``zero_out``, C the
    clip norm, R the row norm and L the smoothness. Step size, momentum and the choice of the output are post-processing.

    The estimator's ``clip_norm=None`` means half the largest norm of a gradient while noise limits the fit: clipping by half
    costs less than the noise that it saves. It grows in proportion to s, from 1500 on, until nothing is clipped from s = 3000 on.
    For numbers it means half the norm for a residual of one unit (a quarter of the largest for squared errors, where a
    prediction and a target may be two units apart), and grows from s = 3000 on.

    **Losses with a kink** (hinge, absolute, quantile) have no L. Their largest step is :math:`(1 - \beta) D / \sqrt{T (G^2 + p
    \tau^2)}`, with D the ``radius``, G a bound on the gradient, p the number of coefficients and :math:`\tau = C \sqrt T / s` the
    noise of one coordinate of a mean gradient. Without momentum and averaged over all steps, the mean loss then exceeds the least
    in the ball by at most :math:`D \sqrt{(G^2 + p \tau^2) / T}`. More steps never harm, and from :math:`T = s^2 / p` on they gain
    little; this is the default number, up to 1000. Over a constraint with a mirror map, without intercept, the steps are mirror
    steps without momentum, of the size that the same theorem gives in that geometry.

    With an l1 penalty or a constraint, the step is proximal: :math:`w_{t+1} = \mathrm{prox}(w_t + \beta (w_t - w_{t-1}) - \eta
    (\tilde g_t / n + \nabla r(w_t)))`. Without them it is the step above.

    **Privacy.** T releases of the clipped gradient sum, each with sensitivity k C and noise multiplier
    :math:`k \sqrt{T} / \mu`; they compose exactly to :math:`\mu`-GDP, although each depends on the ones before. With
    ``standardize``, a release of the moments comes first, and clip norm and geometry depend on it. Public:
    the shape of the table, the norm bounds, and every parameter.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 4, Theorems 6.2 and 6.3.
    .. [2] B. T. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Comp. Math. 4 (1964):
       the heavy-ball method and its stability limit.
    .. [3] R. Arora, T. V. Marinov, E. Ullah, "Private stochastic convex optimization: efficient algorithms for non-smooth
       objectives", 2020, Theorem 4: the step for losses with a kink.

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

    n_steps: int | None = None
    _: KW_ONLY
    step_size: float | None = None
    momentum: float = 0.9
    tail_average: float = 0.5
    output: str = "average"
    radius: float | None = None
    standardize: float | None = None

    def _check(self, problem: Problem) -> None:
        super()._check(problem)
        check_option("output", self.output, OUTPUTS)

    def _averaged_iterates(self, batches: Sequence[np.ndarray | None], rng: np.random.Generator) -> Collection[int]:
        if self.output == "average":
            return super()._averaged_iterates(batches, rng)
        n_steps = len(batches)
        chosen = n_steps if self.output == "last" else int(rng.integers(n_steps))
        return range(chosen, chosen + 1)

    def _mechanism(self, problem: Problem) -> Gaussian:
        return Gaussian()

    def _steps(self, problem: Problem) -> int:
        if self.n_steps is not None:
            return int(self.n_steps)
        if not problem.budget.private:
            return NOISELESS
        cells = problem.n_samples * problem.shape[0] * problem.shape[1]
        needed = self._needed_steps(problem)
        most, work = (MOST_BY_DEFAULT, WORK) if "smooth" in problem.offers else (MOST_WITH_KINKS, WORK_WITH_KINKS)
        affordable = max(work / cells, FEWEST_ON_LARGE_TABLES)
        return math.ceil(min(max(needed, FEWEST_STEPS), affordable, most))

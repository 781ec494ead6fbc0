"""Fit linear models by objective perturbation: release the minimum of a randomly tilted objective."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from skdp._validation import check_number
from skdp.privacy.budget import Budget
from skdp.privacy.objective_perturbation import TiltedObjective, smallest_strength
from skdp.privacy.queries import Minimum
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.solvers._base import Problem
from skdp.solvers.perturbation._defaults import MinimumSolver, minimization

# Default noise of a raw prediction that sets the penalty: SLOPE times the signal n C / sigma, between LEAST_NOISE and MOST_NOISE
# (log-odds). Chosen on adult, bank and three to five further tables (docs/defaults.md, "The classical solvers"). A larger value
# means a weaker penalty.
LEAST_NOISE, MOST_NOISE, SLOPE = 1.5, 6.0, 1.5e-3
# Least and largest value that is accepted for `noise`, and largest logarithm of a penalty: exp(700) is finite in float64.
# Choices.
SMALLEST_NOISE, LARGEST_NOISE, LARGEST_LOG = 1e-6, 1e6, 700.0
# Name of the release in the report.
ONE = "objective perturbation"


@dataclass(eq=False, repr=False)
class ObjectivePerturbation(MinimumSolver):
    r"""Objective perturbation: a random linear term is added to the objective, and its minimum is released.

    .. math:: J(w) = \sum_i \ell_i(w) + \frac{n \alpha}{2} \|w\|^2 + b^\top w

    with b normal, or, for ``delta=0``, with a density proportional to :math:`\exp(-\|b\| / s)`. In directions with much data b
    hardly moves the minimum; in others the penalty holds it. There are no steps to tune.

    Parameters
    ----------
    noise : float or None, default=None
        Sets the penalty for ``alpha=None``: the root mean square of the noise of a raw prediction if only the penalty resisted
        it, :math:`R \sigma / (n \alpha)`. None takes between 1.5 and 6, in proportion to the signal :math:`n C / \sigma`, with
        1.5 below 1000.

    Notes
    -----
    The penalty includes the intercept, as the proof needs it. The estimator's ``clip_norm=None`` means half the largest norm of a
    gradient while noise limits the fit. It grows in proportion to :math:`\mu n / k`, until nothing is clipped from 3000 on; a
    clipped loss is still convex. ``alpha`` must exceed a bound, which the error message gives: a weaker penalty leaves no epsilon
    for b. There is no ``n_iter_``, because the number of steps of the minimisation depends on the data.

    **Privacy.** One release. Of epsilon and delta 99 % are for the exact minimum: the change of one record shifts b by at
    most k C in a direction that is bounded by vertices, and changes the log-determinant of the Hessian by at most
    :math:`\kappa = \log(1 + L / (n \alpha))`, with C the clip norm and L the smoothness of one record's loss, class weights
    included. The minimum is approximated to a public norm of the gradient, 1000 times what float64 may round, and the
    remaining 1 % is for noise that hides the difference. Public: the shape of the table, the norm bounds, and every
    parameter. For one raw prediction per record only.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization", JMLR 12 (2011),
       Algorithm 2 and Theorem 9.
    .. [2] D. Kifer, A. Smith, A. Thakurta, "Private convex empirical risk minimization and high-dimensional regression",
       COLT 2012.
    .. [3] R. Iyengar, J. P. Near, D. Song, O. Thakkar, A. Thakurta, L. Wang, "Towards practical differentially private convex
       optimization", IEEE S&P 2019.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> model = DPLogisticRegression(epsilon=1.0, delta=0, solver="objective")
    """

    name = "objective"
    title = (
        "objective perturbation, the minimum of a randomly tilted objective (Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 2)"
    )

    noise: float | None = None

    def default_alpha(self, problem: Problem) -> float:
        """Return the penalty at which a raw prediction has the wanted noise, above the least that the proof allows."""
        check_number("noise", self.noise, minimum=SMALLEST_NOISE, maximum=LARGEST_NOISE, optional=True)
        if not problem.budget.private:
            return 1 / problem.n_samples
        facts = minimization(replace(problem, alpha=1.0, clip_norm=self.default_clip_norm(problem)))
        lowest = math.log(_smallest(facts, problem.budget)) + 1e-6

        def excess(log_strength: float) -> float:
            """Return the logarithm of the noise over the wanted one; decreases in the strength."""
            strength = math.exp(log_strength)
            tilted = TiltedObjective(ONE, replace(facts, strength=strength))
            noise = tilted.raw_noise(tilted.scale(problem.budget), problem.budget)
            return math.log(problem.row_norm * noise / self._noise(facts.n_samples * facts.clip_norm / (strength * noise)))

        if excess(lowest) <= 0:
            return math.exp(lowest) / problem.n_samples
        highest = next((end for end in np.arange(lowest + 1, LARGEST_LOG, 5.0) if excess(end) <= 0), None)
        if highest is None:
            raise _too_small(problem.budget)
        return math.exp(brentq(excess, lowest, highest, xtol=1e-6)) / problem.n_samples

    def _noise(self, signal: float) -> float:
        return min(max(LEAST_NOISE, SLOPE * signal), MOST_NOISE) if self.noise is None else float(self.noise)

    def _mechanism(self, problem: Problem) -> TiltedObjective:
        check_number("noise", self.noise, minimum=SMALLEST_NOISE, maximum=LARGEST_NOISE, optional=True)
        facts, budget = minimization(problem), problem.budget
        if budget.private and facts.strength < (smallest := _smallest(facts, budget)):
            raise ValueError(
                f"alpha={problem.alpha!r} is too small for solver='objective' at epsilon={budget.epsilon!r}; expected at least "
                f"{smallest / problem.n_samples * (1 + 1e-12)!r}."
            )
        return TiltedObjective(ONE, facts)

    def _query(self, problem: Problem) -> Minimum:
        return Minimum(problem.loss, self._mechanism(problem).with_tilt(problem.budget))


def _smallest(facts: Minimization, budget: Budget) -> float:
    """Return the least penalty constant that the proof allows."""
    smallest = smallest_strength(facts.smoothness, budget.epsilon, budget.unit)
    if not smallest < math.exp(LARGEST_LOG):
        raise _too_small(budget)
    return smallest


def _too_small(budget: Budget) -> ValueError:
    return ValueError(f"epsilon={budget.epsilon!r} is too small to calibrate noise for; expected a larger epsilon.")

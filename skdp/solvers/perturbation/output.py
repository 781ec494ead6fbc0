"""Fit linear models by output perturbation: release the minimum with noise."""

from dataclasses import dataclass

from skdp._validation import check_number
from skdp.privacy.objective_perturbation import ExponentialNorm
from skdp.privacy.queries import Minimum
from skdp.privacy.schedule import Gaussian, Mechanism
from skdp.solvers._base import Problem
from skdp.solvers.perturbation._defaults import MinimumSolver, minimization, unit_noise

# Least and largest value that is accepted for `noise`. Choices.
SMALLEST_NOISE, LARGEST_NOISE = 1e-6, 1e6


@dataclass(eq=False, repr=False)
class OutputPerturbation(MinimumSolver):
    r"""Output perturbation: the minimum of the penalised sum of losses is released with noise.

    The noise is normal, or, for ``delta=0``, has a density proportional to :math:`\exp(-\|b\| / s)`. It is as large in
    directions with much data as in others, so `ObjectivePerturbation` is nearly always more accurate; this solver is the
    classical baseline.

    Parameters
    ----------
    noise : float, default=0.7
        Sets the penalty for ``alpha=None``: the root mean square of the noise of the raw prediction of a row of the largest
        norm. A stronger penalty has less noise and more bias.

    Notes
    -----
    The penalty includes the intercept, as the proof needs it. The estimator's ``clip_norm=None`` means half the largest norm of a
    gradient while noise limits the fit. It grows in proportion to :math:`\mu n / k`, until nothing is clipped from 3000 on; a
    clipped loss is still convex. There is no ``n_iter_``, because the number of steps of the minimisation depends on the data.

    **Privacy.** One release. One record moves the minimum by at most :math:`(k C + 2 \tau) / (n \alpha)`: C is the clip norm,
    k is 2 under ``replace_one`` and 1 under ``zero_out``, and :math:`\tau` the norm of the gradient to which the minimum is
    approximated, 1000 times what float64 may round. Public: the shape of the table, the norm bounds, and every parameter.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization", JMLR 12 (2011),
       Algorithm 1 and Theorem 6.
    .. [2] X. Wu, F. Li, A. Kumar, K. Chaudhuri, S. Jha, J. Naughton, "Bolt-on differential privacy for scalable stochastic
       gradient descent-based analytics", SIGMOD 2017.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> model = DPLogisticRegression(epsilon=1.0, solver="output")
    """

    name = "output"
    title = "output perturbation, noise on the minimum (Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 1)"

    noise: float = 0.7

    def default_alpha(self, problem: Problem) -> float:
        """Return the penalty at which the noise of a raw prediction is ``self.noise``; ``1 / n_samples`` for ``epsilon=inf``."""
        check_number("noise", self.noise, minimum=SMALLEST_NOISE, maximum=LARGEST_NOISE)
        if not problem.budget.private:
            return 1 / problem.n_samples
        spread = self.default_clip_norm(problem) * unit_noise(problem)
        return problem.row_norm * spread / float(self.noise) / problem.n_samples

    def _mechanism(self, problem: Problem) -> Mechanism:
        check_number("noise", self.noise, minimum=SMALLEST_NOISE, maximum=LARGEST_NOISE)
        if problem.budget.delta > 0:
            return Gaussian()
        return ExponentialNorm("noise of exponential norm", minimization(problem))

    def _query(self, problem: Problem) -> Minimum:
        return Minimum(problem.loss, minimization(problem))

"""Fit linear models by DP-SVRG++: variance reduction with epochs that double, without strong convexity."""

import math

import numpy as np

from skdp.solvers._base import Problem
from skdp.solvers.first_order._variance_reduction import MOST_THEOREM_STEPS, VarianceReduction

# Reciprocal of the step of Theorem 4.4 (Wang, Ye, Xu 2017) times the smoothness; also the length of the first epoch over it.
THEOREM_STEP = 13.0


class SVRGPlusPlus(VarianceReduction):
    r"""Stochastic gradients with reduced variance and proximal steps; every epoch is twice as long as the one before.

    The steps are those of `SVRG`. The average of an epoch's iterates is the next snapshot, as there, but the next epoch starts
    from the last iterate. The average of the last epoch is the model.

    Parameters
    ----------
    n_epochs : int or None, default=None
        Number of epochs. None takes 4; 10 for ``epsilon=inf``.
    n_inner : int or None, default=None
        Inner steps of the first epoch. None takes the number that the default path needs at the largest step, where all epochs
        together have from 25 to 500 steps per epoch.
    batch_size : float or None, default=None
        Expected number of records in a sample, as for `SVRG`.
    step_size : float, "bb" or None, default=None
        As for `SVRG`.
    snapshot_share : float, default=0.8
        As for `SVRG`.
    difference_clip : float, default=0.5
        As for `SVRG`.
    theorem : bool, default=False
        Whether parameters that are None take the values of Theorem 4.4: samples of one record, :math:`\eta = 1 / (13 \beta)`, a
        first epoch of :math:`13 \beta` steps, which is a path of 1, and :math:`\log_2(s / (\sqrt p C))` epochs; at most 10**6
        inner steps.

    Notes
    -----
    Path, batch size, weights and the departures from the paper are those of `SVRG`, with m for the steps of the longest epoch.
    The paper's Theorem 4.4 needs no strong convexity.

    **Privacy.** The releases are those of `SVRG`, with other counts: per epoch one clipped gradient sum of all records, and
    clipped differences on Poisson samples, whose clip norm earlier releases set.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 2, Theorem 4.4.
    .. [2] Z. Allen-Zhu, Y. Yuan, "Improved SVRG for non-strongly-convex or sum-of-non-convex objectives", ICML 2016,
       Algorithm 1.
    .. [3] C. Tan, S. Ma, Y.-H. Dai, Y. Qian, "Barzilai-Borwein step size for stochastic gradient descent", NIPS 2016.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import SVRGPlusPlus
    >>> model = DPLogisticRegression(epsilon=1.0, alpha=0.01, solver=SVRGPlusPlus(n_epochs=3))
    """

    name = "svrg++"
    title = "DP-SVRG++, variance reduction by released differences, epochs that double (Wang, Ye, Xu 2017, Algorithm 2)"
    noiseless_epochs = 10

    def _proportions(self, n_epochs: int) -> list[float]:
        return [2.0**epoch for epoch in range(n_epochs)]

    def _restart(self, last: np.ndarray, average: np.ndarray) -> np.ndarray:
        return last

    def _theorem(self, problem: Problem) -> tuple[int, int, float]:
        accuracy = problem.signal_to_noise / (problem.clip_norm * math.sqrt(math.prod(problem.shape)))
        first = int(min(max(1.0, math.ceil(THEOREM_STEP * problem.smoothness)), MOST_THEOREM_STEPS))
        most = int(math.log2(MOST_THEOREM_STEPS / first + 1))
        n_epochs = self.n_epochs or min(max(1, math.ceil(math.log2(min(max(accuracy, 1.0), 2.0**50)))), most)
        return n_epochs, first, 1 / (THEOREM_STEP * max(problem.smoothness, 1e-300))

"""Fit linear models by DP-SVRG: variance-reduced proximal gradient descent that restarts at the average of each epoch."""

import math

import numpy as np

from skdp.solvers._base import Problem
from skdp.solvers.first_order._variance_reduction import MOST_EPOCHS, MOST_THEOREM_STEPS, THEOREM_STEP, VarianceReduction

# Inner steps of an epoch over the condition number, by Theorem 4.2 (Wang, Ye, Xu 2017).
THEOREM_LENGTH = 200.0


class SVRG(VarianceReduction):
    r"""Stochastic gradients with reduced variance and proximal steps; every epoch ends at its average.

    An epoch releases the gradient sum :math:`\tilde g` at its snapshot :math:`\tilde w`, and in each of m inner steps the sum of
    differences to it over a sample S in which each record is with probability q,

    .. math:: d_t = \sum_{i \in S} \mathrm{clip}(\nabla \ell_i(w_t) - \nabla \ell_i(\tilde w)) + N(0, \sigma_t^2 I), \qquad
       w_{t+1} = \mathrm{prox}_{\eta r}(w_t - \eta (d_t / (q n) + \tilde g / n)).

    The average of its iterates is the next snapshot and the next start; the last one is the model.

    Parameters
    ----------
    n_epochs : int or None, default=None
        Number of epochs, at most 1000. None takes 4; 20 for ``epsilon=inf``.
    n_inner : int or None, default=None
        Inner steps of each epoch. None takes the number that the default path needs at the largest step, from 25 to 500.
    batch_size : float or None, default=None
        Expected number of records in a sample, :math:`q n`, from 1 to n; 1 is the nearest to the paper. None takes
        :math:`1.2 \sqrt{1 - a}\, s / \sqrt M`, at which the noise multiplier of a difference is about 1.2. It is at least 32, and
        so small that the differences read at most four times as many records as the snapshots.
    step_size : float, "bb" or None, default=None
        Step :math:`\eta`. None makes the path :math:`M \eta` as long as noise and penalty permit (see Notes), with
        :math:`\eta \le 1.5 / \beta`. "bb" is the rule of Barzilai and Borwein from the second epoch on,
        :math:`q n \|\Delta w\|^2 / (m \langle \Delta w, \Delta g \rangle)` with the changes of the snapshot and of the gradient
        released there (a step on q n records counts as q n steps), between :math:`1 / (48 \beta)` and the step of None.
    snapshot_share : float, default=0.8
        Share a of the budget for the gradients at snapshots, in (0, 1); the rest is for the differences. Half of it is for the
        last snapshot, a quarter for the one before, and so on, because later epochs contract the noise of earlier snapshots.
    difference_clip : float, default=0.5
        Clip norm of differences over the least one that never clips, in (0, 1]; 1 for ``epsilon=inf``. All differences vanish at
        the snapshot whatever their clip norm, so the clip has no bias where an epoch starts from the minimum. On the way it costs
        curvature: at most half of it for 0.5.
    theorem : bool, default=False
        Whether parameters that are None take the values of Theorem 4.2: samples of one record, :math:`\eta = 1 / (48 \beta)`,
        :math:`m = 200 \beta / \nu` with the penalty's strong convexity :math:`\nu`, and :math:`\log_2(s^2 \nu / (p C^2))` epochs,
        where each epoch halves the gap; at most 10**6 inner steps in all. Such a fit takes seconds to calibrate and minutes to
        run, and needs a delta of about 1e-15 for each release.

    Notes
    -----
    Here M is the number of all inner steps, p that of coefficients, C the clip norm, R the row norm, :math:`\beta` the Lipschitz
    constant of one record's gradient, and :math:`s = \mu n / k` with the Gaussian-DP parameter :math:`\mu` of the budget; k is 2
    under ``replace_one`` and 1 under ``zero_out``.

    **Departures from the paper.** It adds noise of one size to every inner step. Here the gradient at the snapshot is released
    once per epoch, and the noise of a difference is in proportion to :math:`\|w_t - \tilde w\|`: it vanishes where the iterate
    comes to rest. Penalty and constraint are in the proximal step alone. Theorem 4.2 prints :math:`\eta \le 1 / (12 \beta)`,
    where its inequality (4) needs less than :math:`1 / (24 \beta)`. The defaults differ from the theorem, whose constants are
    worst cases for samples of one record: samples of many records allow a step near the stability limit of gradient descent.

    **Default path.** :math:`M \eta` is the largest for which three things hold. The noise that the snapshots give to a raw
    prediction is at most that of "gd" (see `GradientDescent`). The noise that the differences of the longest epoch gather,
    relative to the distance that it is proportional to, :math:`c \beta M \eta \sqrt{p m / M} / (\sqrt{1 - a}\, s)` with c for
    ``difference_clip``, is at most 1: beyond that, noise would amplify itself. And :math:`m \eta` is at most :math:`2 / \nu`, the
    scale on which strong convexity contracts.

    CSC tables are converted to CSR once, because samples are gathered by rows. The default clip norm is that of "gd".

    **Privacy.** Per epoch one release of the clipped gradient sum of all records, with sensitivity k C, and m releases of sums of
    clipped differences over a fresh Poisson sample, each of norm at most :math:`D_t = \min(2 C, c \beta \|w_t - \tilde w\|)`,
    with sensitivity :math:`k D_t` given the sample. :math:`D_t` comes from earlier releases; the noise over it is set in advance.
    All compose by their privacy loss distributions, rounded up. Needs delta of at least 1e-12. Public: the shape of the table,
    the norm bounds, the smoothness of the loss, and every parameter.

    References
    ----------
    .. [1] D. Wang, M. Ye, J. Xu, "Differentially Private Empirical Risk Minimization Revisited: Faster and More General",
       NeurIPS 2017, Algorithm 1, Theorem 4.2.
    .. [2] L. Xiao, T. Zhang, "A proximal stochastic gradient method with progressive variance reduction", SIAM J. Optim. 24
       (2014), Theorem 3.1.
    .. [3] C. Tan, S. Ma, Y.-H. Dai, Y. Qian, "Barzilai-Borwein step size for stochastic gradient descent", NIPS 2016.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import SVRG
    >>> model = DPLogisticRegression(epsilon=1.0, alpha=0.01, solver=SVRG(n_epochs=3))
    """

    name = "svrg"
    title = "DP-SVRG, variance reduction by released differences, epochs of one length (Wang, Ye, Xu 2017, Algorithm 1)"
    noiseless_epochs = 20

    def _proportions(self, n_epochs: int) -> list[float]:
        return [1.0] * n_epochs

    def _restart(self, last: np.ndarray, average: np.ndarray) -> np.ndarray:
        return average

    def _theorem(self, problem: Problem) -> tuple[int, int, float]:
        convexity = problem.penalty.strong_convexity
        if not convexity > 0:
            raise ValueError(
                "theorem=True needs a strongly convex penalty; expected alpha > 0 and l1_ratio < 1, or solver='svrg++'."
            )
        accuracy = problem.signal_to_noise / problem.clip_norm * math.sqrt(convexity / math.prod(problem.shape))
        n_epochs = self.n_epochs or min(max(1, math.ceil(2 * math.log2(min(max(accuracy, 1.0), 2.0**50)))), MOST_EPOCHS)
        length = min(max(1.0, THEOREM_LENGTH * problem.smoothness / convexity), MOST_THEOREM_STEPS / n_epochs)
        return n_epochs, int(length), 1 / (THEOREM_STEP * max(problem.smoothness, 1e-300))

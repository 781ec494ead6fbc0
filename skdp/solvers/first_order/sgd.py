"""DP-SGD: gradient descent on noisy clipped gradients of Poisson samples."""

import math
from collections.abc import Collection, Sequence

import numpy as np

from skdp._validation import check_number, shown
from skdp.privacy.schedule import PoissonGaussian, SinglePass
from skdp.solvers._base import Problem
from skdp.solvers.first_order._momentum import MOST_STEPS, MomentumSolver
from skdp.solvers.first_order._single_pass import draws_for_half, fresh_batches, steps_for_half

__all__ = ["SGD"]

MULTIPLIER = 4.0  # noise multiplier aimed at: above it, sampling costs next to no privacy; below 1.5, noticeably much
FEWEST, MOST = 300, 3000  # numbers of steps
FEWEST_ONCE, CLEAR = 10, 4.0  # steps of a single pass; a mean gradient is so much shorter than the longest of a record
SAMPLINGS = ("poisson", "single_pass")
WORK = 1e9  # cells of X that the samples of a default fit may read
SMALLEST_BATCH, NOISELESS_BATCH = 32, 1024


class SGD(MomentumSolver):
    r"""Stochastic gradient descent with momentum on Poisson samples, averaged over the last iterates.

    Every step draws a sample S in which each record is with probability q, releases
    :math:`\sum_{i \in S} \mathrm{clip}(\nabla \ell_i(w_t)) + N(0, \sigma^2 I)`, divides it by the expected size
    :math:`q n`, and moves as "gd" does. The size of the sample is secret; an empty one is a release too.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each one release. None takes as many as the default path of "gd" needs at the largest stable step,
        between 300 and 3000, fewer on large tables but at least 300.
    batch_size : float or None, default=None
        Expected number of records in a sample, :math:`q n`, from 1 to n; of a single pass the number of draws, rounded up.
        None takes :math:`4 \mu n / (k \sqrt T)`, the size at which the noise multiplier is about 4, and at least 32: from
        there on the noise of all steps together is that of full-data steps to within a few per cent, so larger samples would
        cost time and gain little. 1024 for ``epsilon=inf``.
    step_size : float or None, default=None
        Step :math:`\eta` on the mean gradient. None follows the rule of "gd" (see `GradientDescent`).
    momentum : float, default=0.9
        Heavy-ball coefficient in [0, 1).
    tail_average : float, default=0.5
        Fraction of the last iterates that are averaged, in [0, 1]; 0 returns the last one.
    radius : float or None, default=None
        Radius D of the ball around 0 onto which the features' coefficients are projected after each step; the intercept is free,
        as in every constraint. None projects where the loss is not smooth, and there onto :math:`D = z \sqrt p / R` with p
        coefficients: the radius at which the step of the theorem tends to that of the noise, the default above. With
        ``standardize``, it is that of the standardised features. Not together with a constraint.
    standardize : float or None, default=None
        Share of the budget, in (0, 1), for a release of the features' moments before the steps, which then go on centred and
        scaled features, as in `StandardizedGradientDescent`; 0.1 is plenty. None is the algorithm of the paper.
    sampling : {"poisson", "single_pass"}, default="poisson"
        "single_pass" uses no record twice. A mini-batch of ``batch_size`` numbers is drawn uniformly, with replacement; the
        gradients of those that were not drawn before are summed, and divided by the size of the batch. Where there is none the
        step is noise alone, and from where half of the records were used the rest of the T steps is ignored. Returned is the
        average of the points that the last of the other steps lead to. By default there are as many steps as half of the records
        need, in batches of :math:`4 n \sqrt p / s`, at which the noise of a step is a quarter of the longest gradient; at least
        10 steps, at most about 3000. They are no longer than those of losses with a kink, whatever the loss.

    Notes
    -----
    Here :math:`\mu` is the Gaussian-DP parameter of the budget and k is 2 under ``replace_one``, 1 under ``zero_out``: by the
    central limit theorem T releases are about :math:`k q \sqrt T / z`-GDP for a noise multiplier z of 1.5 and more. The noise
    itself is calibrated by privacy loss distributions, not by this rule.

    Losses with a kink have the step of "gd" for them. ``SGD(momentum=0, tail_average=1.0, radius=D, sampling="single_pass")`` is
    the algorithm of its paper [4]_.

    CSC tables are converted to CSR once, because samples are gathered by rows. The default clip norm is that of "gd".

    **Privacy.** T releases, each a Gaussian release of the clipped gradient sum of a fresh Poisson sample, with contributions
    of norm at most C (so sensitivity k C given the sample). Each is dominated by the pair of mixtures :math:`(1 - q) N(0, z^2)
    + q N(\pm 1, z^2)` (``replace_one``), or one of them and :math:`N(0, z^2)` (``zero_out``), also though it depends on the
    releases before; their privacy loss distributions are composed numerically, rounded up. Which records were drawn is not
    released. In a single pass each record enters one release at most, and which one depends on public draws alone, so that the
    releases are (k / z)-GDP, however many they are: exact, for any delta. The oracle counts the uses of each record and refuses
    a second. With ``standardize``, a full-data release of the moments comes first. Samples need delta of at least 1e-12.

    References
    ----------
    .. [1] R. Bassily, A. Smith, A. Thakurta, "Private empirical risk minimization: efficient algorithms and tight error
       bounds", FOCS 2014, Algorithm 1.
    .. [2] M. Abadi, A. Chu, I. Goodfellow, H. B. McMahan, I. Mironov, K. Talwar, L. Zhang, "Deep learning with differential
       privacy", CCS 2016, Algorithm 1.
    .. [3] Z. Bu, J. Dong, Q. Long, W. Su, "Deep learning with Gaussian differential privacy", HDSR 2020: the central limit
       theorem for Poisson samples.
    .. [4] R. Arora, T. V. Marinov, E. Ullah, "Private stochastic convex optimization: efficient algorithms for non-smooth
       objectives", 2020, Algorithm 1 and Theorem 4.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.solvers import SGD
    >>> model = DPLogisticRegression(epsilon=1.0, solver=SGD(n_steps=500, batch_size=256))
    """

    name = "sgd"
    title = "DP-SGD, mini-batches by Poisson sampling or in a single pass, with momentum (Bassily et al. 2014, Arora et al. 2020)"

    def __init__(
        self,
        n_steps: int | None = None,
        *,
        batch_size: float | None = None,
        step_size: float | None = None,
        momentum: float = 0.9,
        tail_average: float = 0.5,
        radius: float | None = None,
        standardize: float | None = None,
        sampling: str = "poisson",
    ) -> None:
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.step_size = step_size
        self.momentum = momentum
        self.tail_average = tail_average
        self.radius = radius
        self.standardize = standardize
        self.sampling = sampling

    def _check(self, problem: Problem) -> None:
        super()._check(problem)
        if not isinstance(self.sampling, str) or self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling={shown(self.sampling)}; expected one of {SAMPLINGS}.")
        check_number("batch_size", self.batch_size, minimum=1.0, maximum=problem.n_samples, optional=True)

    def _mechanism(self, problem: Problem) -> PoissonGaussian | SinglePass:
        if self._once:
            return SinglePass(self._draws(problem))
        batch_size = self._batch(problem, self._steps(problem)) if self.batch_size is None else self.batch_size
        return PoissonGaussian(min(1.0, float(batch_size) / problem.n_samples))

    def _steps(self, problem: Problem) -> int:
        if self.n_steps is not None:
            return int(self.n_steps)
        if self._once:
            return min(steps_for_half(problem.n_samples, self._draws(problem)), MOST_STEPS)
        if not problem.budget.private:
            return MOST
        needed = self._needed_steps(problem)
        cells_per_root_step = self._batch(problem, 1) * math.prod(problem.shape)
        affordable = (WORK / cells_per_root_step) ** 2  # the samples of T steps have sqrt(T) times that many cells
        return math.ceil(min(max(min(needed, affordable), FEWEST), MOST))

    def _batch(self, problem: Problem, n_steps: int) -> float:
        """Expected size at which ``n_steps`` releases have the noise multiplier aimed at."""
        if not problem.budget.private:
            return NOISELESS_BATCH
        return max(MULTIPLIER * problem.signal_to_noise / math.sqrt(n_steps), SMALLEST_BATCH)

    @property
    def _once(self) -> bool:
        return self.sampling == "single_pass"

    def _draws(self, problem: Problem) -> int:
        """Size of a mini-batch of a single pass."""
        if self.batch_size is not None:
            return math.ceil(float(self.batch_size))
        total = draws_for_half(problem.n_samples)
        if self.n_steps is not None:
            return max(1, int(total / int(self.n_steps)))
        balance = CLEAR * problem.n_samples * math.sqrt(math.prod(problem.shape)) / problem.signal_to_noise
        return math.ceil(min(max(balance, total / MOST), total / FEWEST_ONCE))

    def _batches(self, problem: Problem, rng: np.random.Generator) -> Sequence[np.ndarray | None]:
        if not self._once:
            return super()._batches(problem, rng)
        n_steps = self._steps(problem)
        fresh = fresh_batches(problem.n_samples, self._draws(problem), n_steps, rng)
        return fresh + [np.empty(0, dtype=np.intp)] * (n_steps - len(fresh))

    def _kept(self, batches: Sequence[np.ndarray | None], rng: np.random.Generator) -> Collection[int]:
        if not self._once:
            return super()._kept(batches, rng)
        after = [step + 1 for step, records in enumerate(batches) if records is not None and records.size]
        return frozenset(after[-max(1, round(self.tail_average * len(after))) :])

    def _step_size(self, problem: Problem, n_steps: float) -> float:
        if not self._once:
            return super()._step_size(problem, n_steps)
        return super()._step_size(problem, max(min(n_steps, draws_for_half(problem.n_samples) / self._draws(problem)), 1))

    def _largest_step(self, problem: Problem, n_steps: float) -> float:
        """In a single pass, whose batches are small, that of the theorem for every loss."""
        largest = super()._largest_step(problem, n_steps)
        return min(largest, self._theorem_step(problem, n_steps)) if self._once else largest

    def _signal(self, problem: Problem, n_steps: float) -> float:
        drawn = self._draws(problem) / problem.n_samples * math.sqrt(n_steps) if self._once else 1.0
        return drawn * super()._signal(problem, n_steps)

"""Fit linear models by DP-SGD: gradient descent on noisy clipped gradients of Poisson samples, or in a single pass."""

import math
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from skdp._validation import check_number, check_option
from skdp.privacy.schedule import PoissonGaussian, SinglePass
from skdp.solvers._base import Problem
from skdp.solvers.first_order._momentum import MOST_STEPS, MomentumSolver

# Draws beyond their mean number, over sqrt(n): seven standard deviations, by the proof in `steps_for_half`. A smaller value makes
# it more likely that a pass ends before half of the records were used.
ROOM = 4.0


def draws_for_half(n_samples: int) -> float:
    """Return the mean number of uniform draws until half of the records were drawn, ``n log 2``."""
    return n_samples * math.log(2)


def steps_for_half(n_samples: int, batch_size: int) -> int:
    """Return a number of mini-batches in which half of the records are drawn, except with probability 1e-11.

    Parameters
    ----------
    n_samples : int
        Number of records.
    batch_size : int
        Draws per mini-batch.

    Returns
    -------
    int
        At least 1. *Proof.* The number of draws is a sum of n / 2 independent geometric variables, with mean at most n log 2 +
        1 and variance n (1 - log 2).
    """
    return max(1, math.ceil((draws_for_half(n_samples) + ROOM * math.sqrt(n_samples) + 1) / batch_size))


def fresh_batches(n_samples: int, batch_size: int, n_steps: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw mini-batches uniformly with replacement, and keep the records of each that were not drawn before.

    Parameters
    ----------
    n_samples : int
        Number of records.
    batch_size : int
        Draws per mini-batch.
    n_steps : int
        Largest number of mini-batches.
    rng : Generator
        Generator of public choices.

    Returns
    -------
    list of ndarray of int
        Sorted record numbers of each mini-batch, which may be empty. The list ends when half of the records, rounded up, were
        used.
    """
    batches: list[np.ndarray] = []
    used, left = np.zeros(n_samples, dtype=bool), (n_samples + 1) // 2
    while left and len(batches) < n_steps:
        drawn = np.unique(rng.integers(n_samples, size=batch_size))
        fresh = drawn[~used[drawn]]
        if fresh.size > left:
            fresh = np.sort(rng.choice(fresh, left, replace=False))
        used[fresh] = True
        left -= fresh.size
        batches.append(fresh)
    return batches


# Noise multiplier that the default batch size aims at. From there on all steps together have the noise of full-data steps to
# within a few per cent; below 1.5 sampling costs noticeably more. A larger value means larger samples.
MULTIPLIER = 4.0
# Least and largest default number of steps. Choices; more steps cost time, and calibration of the noise.
FEWEST_STEPS, MOST_BY_DEFAULT = 300, 3000
# Single pass: least default number of steps, and length of the longest gradient over the noise of a step. Choices; a larger
# CLEAR_GRADIENT means larger batches and fewer steps.
FEWEST_ONCE, CLEAR_GRADIENT = 10, 4.0
SAMPLINGS = ("poisson", "single_pass")
# Cells of X that all samples of a default fit may read together. A choice that bounds the time of a fit.
WORK = 1e9
# Least default batch size, and the one for epsilon=inf, in records. Choices.
SMALLEST_BATCH, NOISELESS_BATCH = 32, 1024


@dataclass(eq=False, repr=False)
class SGD(MomentumSolver):
    r"""Stochastic gradient descent with momentum on Poisson samples, averaged over the last iterates.

    Every step draws a sample S that has each record with probability q, releases
    :math:`\sum_{i \in S} \mathrm{clip}(\nabla \ell_i(w_t)) + N(0, \sigma^2 I)`, divides it by the expected size
    :math:`q n`, and moves as "gd" does. The size of the sample is secret; an empty one is a release too.

    Parameters
    ----------
    n_steps : int or None, default=None
        Number of steps T, each one release. None takes the number that the default path of "gd" needs at the largest stable step,
        between 300 and 3000, fewer on large tables but at least 300.
    batch_size : float or None, default=None
        Expected number of records in a sample, :math:`q n`, from 1 to n; of a single pass the number of draws, rounded up.
        None takes :math:`4 \mu n / (k \sqrt T)`, at which the noise multiplier is about 4, and at least 32. All steps together
        then have the noise of full-data steps to within a few per cent, so larger samples would cost time and gain little. 1024
        for ``epsilon=inf``.
    step_size : float or None, default=None
        Step :math:`\eta` on the mean gradient. None follows the rule of "gd" (see `GradientDescent`).
    momentum : float, default=0.9
        Heavy-ball coefficient in [0, 1).
    tail_average : float, default=0.5
        Fraction of the last iterates that are averaged, in [0, 1]; 0 returns the last one.
    radius : float or None, default=None
        Radius D of the ball around 0 onto which the features' coefficients are projected after each step; the intercept is free.
        None projects only for a loss with a kink, onto :math:`D = z \sqrt p / R` with p coefficients: there the step of the
        theorem tends to the default step above. With ``standardize``, D bounds the coefficients of the standardised features.
        Not together with a constraint.
    standardize : float or None, default=None
        Share of the budget, in (0, 1), for a release of the features' moments before the steps. The steps then use centred and
        scaled features, as in `StandardizedGradientDescent`; 0.1 is enough. None is the algorithm of the paper.
    sampling : {"poisson", "single_pass"}, default="poisson"
        "single_pass" uses no record twice. It draws a mini-batch of ``batch_size`` record numbers uniformly, with replacement,
        sums the gradients of the records that were not drawn before, and divides by the size of the batch. A step without such
        records is noise alone. Steps after half of the records were used are ignored. The model is the average of the points
        after the last of the other steps. By default there are enough steps for half of the records, in batches of
        :math:`4 n \sqrt p / s`, at which the noise of a step is a quarter of the longest gradient; at least 10 steps, at most
        about 3000. For every loss, the steps are no longer than those for losses with a kink.

    Notes
    -----
    Here :math:`\mu` is the Gaussian-DP parameter of the budget and k is 2 under ``replace_one``, 1 under ``zero_out``: by the
    central limit theorem T releases are about :math:`k q \sqrt T / z`-GDP for a noise multiplier z of 1.5 and more. The noise
    itself is calibrated by privacy loss distributions, not by this rule.

    For losses with a kink the step is that of "gd". ``SGD(momentum=0, tail_average=1.0, radius=D, sampling="single_pass")`` is
    the algorithm of [4]_.

    CSC tables are converted to CSR once, because samples are gathered by rows. The default clip norm is that of "gd".

    **Privacy.** T releases, each a Gaussian release of the clipped gradient sum of a fresh Poisson sample, with contributions
    of norm at most C (so sensitivity k C given the sample). Each is dominated by the pair of mixtures :math:`(1 - q) N(0, z^2)
    + q N(\pm 1, z^2)` (``replace_one``), or one of them and :math:`N(0, z^2)` (``zero_out``), although it depends on the
    releases before; their privacy loss distributions are composed numerically, rounded up. Which records were drawn is not
    released. In a single pass each record enters one release at most, and which one depends on public draws alone, so that the
    releases are (k / z)-GDP, whatever their number: exact, for any delta. The oracle counts the uses of each record and refuses
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

    n_steps: int | None = None
    _: KW_ONLY
    batch_size: float | None = None
    step_size: float | None = None
    momentum: float = 0.9
    tail_average: float = 0.5
    radius: float | None = None
    standardize: float | None = None
    sampling: str = "poisson"

    def _check(self, problem: Problem) -> None:
        super()._check(problem)
        check_option("sampling", self.sampling, SAMPLINGS)
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
            return MOST_BY_DEFAULT
        needed = self._needed_steps(problem)
        cells_per_root_step = self._batch(problem, 1) * math.prod(problem.shape)
        affordable = (WORK / cells_per_root_step) ** 2  # the samples of T steps have sqrt(T) * cells_per_root_step cells
        return math.ceil(min(max(min(needed, affordable), FEWEST_STEPS), MOST_BY_DEFAULT))

    def _batch(self, problem: Problem, n_steps: int) -> float:
        """Return the expected batch size at which ``n_steps`` releases have the noise multiplier `MULTIPLIER`."""
        if not problem.budget.private:
            return NOISELESS_BATCH
        return max(MULTIPLIER * problem.signal_to_noise / math.sqrt(n_steps), SMALLEST_BATCH)

    @property
    def _once(self) -> bool:
        return self.sampling == "single_pass"

    def _draws(self, problem: Problem) -> int:
        """Return the size of a mini-batch of a single pass."""
        if self.batch_size is not None:
            return math.ceil(float(self.batch_size))
        total = draws_for_half(problem.n_samples)
        if self.n_steps is not None:
            return max(1, int(total / int(self.n_steps)))
        balance = CLEAR_GRADIENT * problem.n_samples * math.sqrt(math.prod(problem.shape)) / problem.signal_to_noise
        return math.ceil(min(max(balance, total / MOST_BY_DEFAULT), total / FEWEST_ONCE))

    def _batches(self, problem: Problem, rng: np.random.Generator) -> Sequence[np.ndarray | None]:
        if not self._once:
            return super()._batches(problem, rng)
        n_steps = self._steps(problem)
        fresh = fresh_batches(problem.n_samples, self._draws(problem), n_steps, rng)
        return fresh + [np.empty(0, dtype=np.intp)] * (n_steps - len(fresh))

    def _averaged_iterates(self, batches: Sequence[np.ndarray | None], rng: np.random.Generator) -> Collection[int]:
        if not self._once:
            return super()._averaged_iterates(batches, rng)
        after = [step + 1 for step, records in enumerate(batches) if records is not None and records.size]
        return frozenset(after[-max(1, round(self.tail_average * len(after))) :])

    def _step_size(self, problem: Problem, n_steps: float) -> float:
        if not self._once:
            return super()._step_size(problem, n_steps)
        return super()._step_size(problem, max(min(n_steps, draws_for_half(problem.n_samples) / self._draws(problem)), 1))

    def _largest_step(self, problem: Problem, n_steps: float) -> float:
        """Return the largest step; in a single pass, with small batches, at most that of the theorem for losses with a kink."""
        largest = super()._largest_step(problem, n_steps)
        return min(largest, self._theorem_step(problem, n_steps)) if self._once else largest

    def _signal(self, problem: Problem, n_steps: float) -> float:
        drawn = self._draws(problem) / problem.n_samples * math.sqrt(n_steps) if self._once else 1.0
        return drawn * super()._signal(problem, n_steps)

"""Implement what "gd" and "sgd" share: momentum on noisy gradients, with a total step length that the noise sets."""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from skdp._validation import LARGEST, SMALLEST, check_integer, check_number, check_scale, shown
from skdp.constraints import L2Ball
from skdp.mirror_maps import MirrorMap
from skdp.privacy.queries import Gradient, StandardizedGradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule, SinglePass
from skdp.solvers._base import Ask, Problem, Solver, SolverResult
from skdp.solvers._noise_limits import bearable_noise, largest_prediction, noise_limited_clip_norm
from skdp.solvers._standardization import mean_noise, moments, moments_release, outer_coefficients, standard
from skdp.solvers.first_order._mirror_geometry import mirror_map, row_bound, unit_width


class Move(Protocol):
    """State of an iteration.

    Attributes
    ----------
    coef : ndarray
        The iterate, of the shape of the problem.
    """

    coef: np.ndarray

    def move(self, gradient: np.ndarray) -> None:
        """Take one step on a gradient, of the shape of the problem."""
        ...


class HeavyBall:
    """Proximal gradient steps with momentum.

    Parameters
    ----------
    problem : Problem
        Public facts.
    step_size, momentum : float
        Step and heavy-ball coefficient.
    """

    def __init__(self, problem: Problem, step_size: float, momentum: float) -> None:
        self._problem, self._step_size, self._momentum = problem, step_size, momentum
        self.coef = self._before = problem.start

    def move(self, gradient: np.ndarray) -> None:
        """Take one proximal step: momentum, gradient, l1 penalty, projection."""
        moved = self.coef + self._momentum * (self.coef - self._before) - self._step_size * gradient
        self.coef, self._before = self._problem.l1_prox(moved, self._step_size), self.coef


class MirrorSteps:
    """Mirror steps over the constraint, from the minimum of the mirror map.

    Parameters
    ----------
    problem : Problem
        Public facts.
    mirror : MirrorMap
        Mirror map of the constraint.
    step_size : float
        Step.
    """

    def __init__(self, problem: Problem, mirror: MirrorMap, step_size: float) -> None:
        self._mirror, self._step_size, self._state = mirror, step_size, mirror.start()
        self.coef: np.ndarray = mirror.point(self._state).reshape(problem.shape)

    def move(self, gradient: np.ndarray) -> None:
        """Take one mirror step; the oracle refuses the next query if a gradient was not finite."""
        self._state = self._mirror.step(self._state, gradient.ravel(), self._step_size)
        self.coef = self._mirror.point(self._state).reshape(gradient.shape)


def default_radius(problem: Problem) -> float:
    """Return the norm of coefficients at which raw predictions have their usual size.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    float
        ``z sqrt(p) / R``: with p coefficients of this norm in a random direction, the raw prediction of a row of the largest norm
        R has a root mean square of z, 3 for classes and 1 for numbers.
    """
    radius = largest_prediction(problem) * math.sqrt(math.prod(problem.shape)) / problem.row_norm
    return min(max(radius, SMALLEST), LARGEST)


def steps_in_balance(problem: Problem) -> float:
    """Return ``s**2 / p``, the number of full-data steps from which on the theorem's bound is mostly noise."""
    return problem.signal_to_noise * problem.signal_to_noise / math.prod(problem.shape)


def euclidean_step(problem: Problem, radius: float, n_steps: float, noise: float) -> float:
    r"""Return the step :math:`D / \sqrt{T (G^2 + p \sigma^2)}` for a convex loss, smooth or not.

    *Proof.* With w* at most D from the start, :math:`\|w_{t+1} - w^*\|^2 \le \|w_t - w^*\|^2 - 2 \eta (F(w_t) - F(w^*)) + \eta^2
    (G^2 + p \sigma^2)` in expectation, so the mean of the T values is above the least by at most
    :math:`D^2 / (2 \eta T) + \eta (G^2 + p \sigma^2) / 2`, which is least at this step. G bounds the gradient of the mean loss
    and of the penalty within the ball.

    Parameters
    ----------
    problem : Problem
        Public facts.
    radius : float
        D, bound on the distance of an optimum from the start.
    n_steps : float
        T.
    noise : float
        Standard deviation :math:`\sigma` of a coordinate of the noise on the mean gradient.

    Returns
    -------
    float
        The step; 0 if D is 0.
    """
    slope = min(problem.clip_norm, problem.lipschitz) + problem.penalty.smoothness * radius
    return _least(radius, slope, noise * math.sqrt(math.prod(problem.shape)), n_steps)


def mirror_step(problem: Problem, mirror: MirrorMap, n_steps: float, noise: float) -> float:
    r"""Return the same step in the geometry of a mirror map: :math:`\sqrt{2 B / (T (G^2 + \sigma^2 E\|g\|_*^2))}`.

    B bounds the Bregman distance from the start, G the dual norm of a gradient. The dual norm changes by at most the Euclidean
    norm of a change, so the mean of its square for a standard normal g is above the square of its mean by at most 1.

    Parameters
    ----------
    problem : Problem
        Public facts.
    mirror : MirrorMap
        Mirror map of the constraint.
    n_steps : float
        T.
    noise : float
        Standard deviation of a coordinate of the noise on the mean gradient.

    Returns
    -------
    float
        The step; 0 if B is 0.
    """
    distance = math.sqrt(2 * mirror.spread)
    loss = problem.max_weight * problem.loss.lipschitz * row_bound(problem, mirror.norm)
    slope = (
        min(problem.clip_norm, loss) + problem.penalty.smoothness * 2 * distance
    )  # two points of the set are up to twice the distance apart
    width = math.hypot(unit_width(mirror.norm, math.prod(problem.shape)), 1.0)
    return _least(distance, slope, noise * width, n_steps)


def _least(distance: float, slope: float, noise: float, n_steps: float) -> float:
    return distance / (max(math.hypot(slope, noise), 1e-300) * math.sqrt(n_steps))


# Largest number of steps that is accepted. A choice.
MOST_STEPS = 10**7
# Least noise weight of the release of the moments, relative to a gradient's (and largest one, by its reciprocal): what a schedule
# accepts. Least norm that standardised rows are taken to have, so that nothing is divided by 0. Both are choices.
LEAST_WEIGHT, LEAST_NORM = 1e-6, 1e-3


class MomentumSolver(Solver):
    """Heavy-ball steps on noisy mean gradients, averaged over the last iterates.

    Subclasses have the parameters ``n_steps``, ``step_size``, ``momentum``, ``tail_average``, ``radius`` and ``standardize``.
    """

    def default_alpha(self, problem: Problem) -> float:
        """Return ``1 / n_samples``; 0 with ``standardize``, where a ridge in the units of X would shrink narrow features to 0."""
        return super().default_alpha(problem) if self.standardize is None else 0.0

    def default_clip_norm(self, problem: Problem) -> float:
        """Return part of the largest norm of a gradient while noise limits the fit; ``inf`` with ``standardize``."""
        return noise_limited_clip_norm(problem) if self.standardize is None else math.inf

    def schedule(self, problem: Problem) -> Schedule:
        """Return one entry of T gradients, with ``standardize`` after one of the moments; raises for invalid parameters."""
        self._check(problem)
        n_steps, mechanism = self._steps(problem), self._mechanism(problem)
        if self.standardize is None:
            return Schedule(((n_steps, Release(Gradient, mechanism, problem.clip_norm)),))
        clip_norm = problem.clip_norm if problem.clip_norm < math.inf else None
        share = float(self.standardize)
        if isinstance(mechanism, SinglePass):
            # All releases of a single pass count as one (see `SinglePass`).
            weight = math.sqrt((1 - share) / share)
        else:  # by the central limit theorem, T samples spend as much as q sqrt(T) full-data releases
            weight = math.sqrt((1 - share) / share / n_steps) / getattr(mechanism, "sampling_rate", 1.0)
        first = moments_release(problem, min(max(weight, LEAST_WEIGHT), 1 / LEAST_WEIGHT))
        return Schedule(((1, first), (n_steps, Release(StandardizedGradient, mechanism, clip_norm))))

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the T steps from the public start; ``rng`` makes public choices: of an iterate, of the records of a single pass."""
        batches = self._batches(problem, rng)
        kept = self._averaged_iterates(batches, rng)
        if self.standardize is None:

            def plain(coef: np.ndarray, records: np.ndarray | None) -> np.ndarray:
                return ask(Gradient(problem.loss, coef, problem.clip_norm, records))

            return SolverResult(self._descend(problem, batches, kept, plain), len(batches))
        query, share = moments(problem), float(self.standardize)
        features = standard(problem, ask(query), mean_noise(problem, query, share))
        # The problem in standardised coordinates: rows have their usual norm, and the penalty, which is on unscaled features, is
        # multiplied by the squares of the scale.
        constant = float(features.geometry.intercept)
        norm, scales = math.sqrt(max(features.usual - constant, LEAST_NORM)), features.geometry.scale[:, None] ** 2
        inner = replace(problem, data_norm=norm, intercept_scaling=constant, alpha=problem.alpha * float(scales.max()))
        if problem.clip_norm == math.inf:
            largest = problem.max_weight * problem.loss.lipschitz * features.geometry.largest_norm
            inner = replace(inner, clip_norm=noise_limited_clip_norm(inner) if problem.budget.private else largest)

        def gradient(coef: np.ndarray, records: np.ndarray | None) -> np.ndarray:
            return ask(StandardizedGradient(problem.loss, coef, inner.clip_norm, features.geometry, records))

        coef = self._descend(inner, batches, kept, gradient, scales / scales.max())
        return SolverResult(outer_coefficients(problem, features.geometry, coef), len(batches))

    def _descend(
        self,
        problem: Problem,
        batches: Sequence[np.ndarray | None],
        kept: Collection[int],
        gradient: Callable[[np.ndarray, np.ndarray | None], np.ndarray],
        penalized: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """Return the average of the kept iterates; ``penalized`` is the factor of the penalty on each feature's coefficients."""
        n_steps, expected_size = len(batches), self._expected_size(problem)
        # Number of steps up to the last one with records.
        moving = 1 + max(step for step, records in enumerate(batches) if records is None or records.size)
        iteration = self._start(problem, n_steps)
        average = np.zeros(problem.shape)
        for step, records in enumerate(batches):
            coef = iteration.coef
            if step in kept:
                average += coef / len(kept)
            released = gradient(coef, records).reshape(problem.shape)
            penalty = problem.penalty_gradient(coef)
            penalty[: problem.n_features] *= penalized
            if step < moving:  # later batches are empty, and their releases noise alone
                iteration.move(released / expected_size + penalty)
        return average + iteration.coef / len(kept) if n_steps in kept else average

    def _start(self, problem: Problem, n_steps: int) -> Move:
        """Return the iteration at its start: mirror steps if `_in_mirror`, and heavy-ball steps otherwise."""
        step_size = self._step_size(problem, n_steps)
        if _in_mirror(problem):
            return MirrorSteps(problem, mirror_map(problem), step_size)
        radius = self._radius(problem) if problem.budget.private or self.radius is not None else None
        inside = problem if radius is None else replace(problem, constraint=L2Ball(radius))
        return HeavyBall(inside, step_size, self._beta)

    def _batches(self, problem: Problem, rng: np.random.Generator) -> Sequence[np.ndarray | None]:
        """Return the publicly chosen record indices per step; None for all records, or for a secret sample."""
        return [None] * self._steps(problem)

    def _averaged_iterates(self, batches: Sequence[np.ndarray | None], rng: np.random.Generator) -> Collection[int]:
        """Return the numbers of the iterates that are averaged; the start is number 0."""
        n_steps = len(batches)
        return range(n_steps + 1 - max(1, round(self.tail_average * n_steps)), n_steps + 1)

    def _expected_size(self, problem: Problem) -> float:
        mechanism = self._mechanism(problem)
        if isinstance(mechanism, SinglePass):
            return mechanism.batch_size
        return getattr(mechanism, "sampling_rate", 1.0) * problem.n_samples

    @abstractmethod
    def _steps(self, problem: Problem) -> int:
        """Return the number of steps, from public facts."""

    @abstractmethod
    def _mechanism(self, problem: Problem) -> Gaussian | PoissonGaussian | SinglePass:
        """Return the mechanism of a gradient: of all records, of a Poisson sample, or of records that are used once."""

    def _check(self, problem: Problem) -> None:
        check_integer("n_steps", self.n_steps, minimum=1, maximum=MOST_STEPS, optional=True)
        check_number("step_size", self.step_size, above=0.0, optional=True)
        check_number("momentum", self.momentum, minimum=0.0, below=1.0)
        check_number("tail_average", self.tail_average, minimum=0.0, maximum=1.0)
        check_number("standardize", self.standardize, above=0.0, below=1.0, optional=True)
        check_scale("radius", self.radius, optional=True)
        if self.radius is not None and problem.constraint is not None:
            raise ValueError(f"radius={shown(self.radius)} with a constraint; expected None: the constraint bounds coefficients.")
        if self.standardize is not None and not {"plain", "classes"} <= problem.offers:
            raise ValueError(
                f"standardize={shown(self.standardize)} is for class labels, without constraint or l1 penalty; expected None."
            )

    @property
    def _beta(self) -> float:
        """Momentum as a float."""
        return float(self.momentum)

    def _radius(self, problem: Problem) -> float | None:
        """Return the radius of the ball of the features' coefficients; None without a ball."""
        if self.radius is not None:
            return float(self.radius)
        return None if "smooth" in problem.offers or problem.constraint is not None else default_radius(problem)

    def _step_size(self, problem: Problem, n_steps: float) -> float:
        if self.step_size is not None:
            return float(self.step_size)
        if _in_mirror(problem):
            return mirror_step(problem, mirror_map(problem), n_steps, self._noise(problem, n_steps))
        return min(self._path(problem, n_steps) * (1 - self._beta) / n_steps, self._largest_step(problem, n_steps))

    def _signal(self, problem: Problem, n_steps: float) -> float:
        """Return the signal-to-noise ratio of the sum of all releases; that of samples is nearly that of all records."""
        return problem.signal_to_noise

    def _path(self, problem: Problem, n_steps: float) -> float:
        """Return the total step length at which a raw prediction gathers the noise that `bearable_noise` allows."""
        return bearable_noise(problem) * self._signal(problem, n_steps) / (problem.clip_norm * problem.row_norm)

    def _noise(self, problem: Problem, n_steps: float) -> float:
        """Return the standard deviation of a coordinate of the noise on a mean gradient."""
        return problem.clip_norm / self._signal(problem, n_steps) * math.sqrt(n_steps)

    def _needed_steps(self, problem: Problem) -> float:
        """Return the number of steps that the path needs at the largest step; for a loss with a kink see `steps_in_balance`."""
        if "smooth" not in problem.offers:
            return steps_in_balance(problem)
        return self._path(problem, 1) * (1 - self._beta) / self._largest_step(problem, 1)

    def _theorem_step(self, problem: Problem, n_steps: float) -> float:
        radius = self._radius(problem) or default_radius(problem)
        return (1 - self._beta) * euclidean_step(problem, radius, n_steps, self._noise(problem, n_steps))

    def _largest_step(self, problem: Problem, n_steps: float) -> float:
        if "smooth" not in problem.offers:
            return self._theorem_step(problem, n_steps)
        return 1.5 * (1 + self._beta) / (problem.smoothness + problem.penalty.smoothness)


def _in_mirror(problem: Problem) -> bool:
    """Return whether steps use the mirror map of the constraint: for a loss with a kink, where the theorem gives their size."""
    return "smooth" not in problem.offers and "mirror" in problem.offers and not problem.l1_ratio

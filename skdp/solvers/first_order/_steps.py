"""Move first-order solvers along a noisy gradient, and compute the steps that theory gives for losses with a kink."""

import math
from typing import Protocol

import numpy as np

from skdp._validation import LARGEST, SMALLEST
from skdp.mirror_maps import MirrorMap
from skdp.solvers._base import Problem
from skdp.solvers._noise_limits import largest_prediction
from skdp.solvers.first_order._mirror_geometry import row_bound, unit_width


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

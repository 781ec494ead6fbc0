r"""Provide mirror maps: convex functions whose Bregman distances suit the geometry of a constraint set; they see no data.

A mirror map :math:`\psi` [1]_ of a set has a norm in which it is 1-strongly convex on the set [2]_:
:math:`B(z, z') = \psi(z) - \psi(z') - \langle \nabla\psi(z'), z - z' \rangle \ge \|z - z'\|^2 / 2`. A function with another
constant is scaled to 1. The steps are exact minima; huge gradients neither overflow nor leave the set.

References
----------
.. [1] A. Beck, M. Teboulle, "Mirror descent and nonlinear projected subgradient methods for convex optimization", Operations
   Research Letters 31 (2003).
.. [2] S. Shalev-Shwartz, "Online learning and online convex optimization", 2012, Lemmas 2.16 and 2.17: strong convexity of the
   entropy and of squared p-norms.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skdp._projections import norm_of, support

__all__ = ["Entropy", "Euclidean", "MirrorMap", "PNorm", "SignedEntropy"]

# Least logarithm of a weight: logarithms stay finite, and such a weight is 0 in float64 anyway. A choice.
LEAST_LOG = -1e300
# Largest float64, for step sizes that would overflow.
LARGEST_FLOAT = float(np.finfo(float).max)


class MirrorMap(Protocol):
    """Geometry of a set of p coefficients. A state represents a point; `point` returns it.

    Attributes
    ----------
    norm : float
        Order of the norm in which the map is 1-strongly convex.
    spread : float
        Bound on the Bregman distance of any point of the set from `start`.
    """

    @property
    def norm(self) -> float:
        """Order of the norm, from 1 to 2."""
        ...

    @property
    def spread(self) -> float:
        """Bound on the Bregman distance from the start."""
        ...

    def start(self) -> np.ndarray:
        """Return the state of the minimum of the map."""
        ...

    def point(self, state: np.ndarray) -> np.ndarray:
        """Return the point of the set that a state represents, shape (p,)."""
        ...

    def step(self, state: np.ndarray, gradient: np.ndarray, step_size: float) -> np.ndarray:
        """Return the state of ``argmin_z <gradient, z> + B(z, point(state)) / step_size`` over the set."""
        ...


@dataclass(frozen=True)
class Euclidean:
    r"""Half the squared Euclidean norm: a mirror step is a projected gradient step. States are points.

    Parameters
    ----------
    project : callable
        Projection onto the set.
    n_coefficients : int
        p.
    spread : float
        Bound on :math:`\|z - z_0\|^2 / 2` for the start :math:`z_0`, the point of the set nearest to 0.
    """

    project: Callable[[np.ndarray], np.ndarray]
    n_coefficients: int
    spread: float
    norm: float = 2.0

    def start(self) -> np.ndarray:
        """Return the point nearest to 0."""
        return self.project(np.zeros(self.n_coefficients))

    def point(self, state: np.ndarray) -> np.ndarray:
        """Return the state: it is the point."""
        return state

    def step(self, state: np.ndarray, gradient: np.ndarray, step_size: float) -> np.ndarray:
        """Return the projection of ``state - step_size * gradient``."""
        with np.errstate(over="ignore"):
            return self.project(_finite(state - step_size * gradient))


@dataclass(frozen=True)
class PNorm:
    r"""Half the squared norm of order a in (1, 2], over a - 1, on a ball of the same norm. States are points.

    :math:`\|z\|_a^2 / 2` is (a - 1)-strongly convex in its norm. It depends only on that norm, so a step in the ball is the step
    without constraint, shortened: with :math:`\theta = \nabla\psi(z_k) - \eta g`, the minimum of
    :math:`\psi(z) - \langle \theta, z \rangle` at a given length has the direction of :math:`\nabla\psi^*(\theta)`.

    Parameters
    ----------
    radius : float
        Radius of the ball.
    norm : float
        Order a.
    n_coefficients : int
        p.
    """

    radius: float
    norm: float
    n_coefficients: int

    @property
    def spread(self) -> float:
        """Bound on the Bregman distance from 0: ``radius**2 / (2 (a - 1))``."""
        return self.radius**2 / (2 * (self.norm - 1))

    def start(self) -> np.ndarray:
        """Return 0."""
        return np.zeros(self.n_coefficients)

    def point(self, state: np.ndarray) -> np.ndarray:
        """Return the state: it is the point."""
        return state

    def step(self, state: np.ndarray, gradient: np.ndarray, step_size: float) -> np.ndarray:
        """Return the step in the dual coordinates, shortened to the ball."""
        # The gradient of |z|_a^2 / 2 is |z|_a times the unit vector that z supports in the dual norm; a - 1 scales the map to
        # strong convexity 1.
        dual = self.norm / (self.norm - 1)
        with np.errstate(over="ignore"):
            shift = _finite((self.norm - 1) * step_size * gradient)
            moved = _finite(norm_of(state, self.norm) * support(state, dual) - shift)
        return min(norm_of(moved, dual), self.radius) * support(moved, self.norm)


@dataclass(frozen=True)
class Entropy:
    r"""Negative entropy on the simplex of a given radius, in its units: :math:`B(z, z') = r^2 \mathrm{KL}(z / r, z' / r)`.

    It is 1-strongly convex in the l1 norm by Pinsker's inequality. States are the logarithms of z / r, so that weights below the
    smallest float are not lost.

    Parameters
    ----------
    radius : float
        Sum of the coefficients.
    n_coefficients : int
        p.
    """

    radius: float
    n_coefficients: int
    norm: float = 1.0

    @property
    def spread(self) -> float:
        """Bound on the Bregman distance from the uniform point: ``radius**2 log(p)``."""
        return self.radius**2 * math.log(self.n_coefficients)

    def start(self) -> np.ndarray:
        """Return the uniform point."""
        return np.full(self.n_coefficients, -math.log(self.n_coefficients))

    def point(self, state: np.ndarray) -> np.ndarray:
        """Return the coefficients, non-negative, with the radius as sum."""
        weights = np.exp(state)
        return self.radius / float(weights.sum()) * weights

    def step(self, state: np.ndarray, gradient: np.ndarray, step_size: float) -> np.ndarray:
        """Return the logarithms of the weights times ``exp(-step_size * gradient / radius)``, normalised."""
        with np.errstate(over="ignore"):
            above = gradient / 2 - float(gradient.min()) / 2  # non-negative, and no overflow
            logs = np.maximum(state - above * min(2 * step_size / self.radius, LARGEST_FLOAT), LEAST_LOG)
        logs -= logs.max()
        return np.maximum(logs - math.log(float(np.exp(logs).sum())), LEAST_LOG)


@dataclass(frozen=True)
class SignedEntropy:
    r"""Negative entropy on the doubled simplex :math:`w = r (u - v)`, :math:`\sum u + \sum v = 1`, which covers the l1 ball.

    It is 1-strongly convex in the l1 norm of (u, v), which is no less than that of w. States are logarithms of u, then of v.

    Parameters
    ----------
    radius : float
        Radius of the l1 ball.
    n_coefficients : int
        p.
    """

    radius: float
    n_coefficients: int
    norm: float = 1.0

    @property
    def spread(self) -> float:
        """Bound on the Bregman distance from 0: ``radius**2 log(2 p)``."""
        return self._doubled.spread

    @property
    def _doubled(self) -> Entropy:
        return Entropy(self.radius, 2 * self.n_coefficients)

    def start(self) -> np.ndarray:
        """Return the state of 0."""
        return self._doubled.start()

    def point(self, state: np.ndarray) -> np.ndarray:
        """Return the coefficients, whose absolute values add up to at most the radius."""
        weights = self._doubled.point(state)
        return weights[: self.n_coefficients] - weights[self.n_coefficients :]

    def step(self, state: np.ndarray, gradient: np.ndarray, step_size: float) -> np.ndarray:
        """Return the step of the entropy for the gradient in (u, v)."""
        return self._doubled.step(state, np.concatenate([gradient, -gradient]), step_size)


def _finite(vector: np.ndarray) -> np.ndarray:
    """Vector with the largest float for infinities, and 0 for NaN, which infinities of opposite sign give."""
    return np.nan_to_num(vector, nan=0.0)

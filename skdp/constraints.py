"""Provide constraint sets of the coefficients: projection, linear minimisation, size, mirror map; they see no data."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from skdp._projections import norm_of, onto_ball, onto_simplex, support
from skdp._validation import check_bounds, check_number, check_scale, shown
from skdp.mirror_maps import Entropy, Euclidean, MirrorMap, PNorm, SignedEntropy

__all__ = ["Box", "Constraint", "L1Ball", "L2Ball", "LpBall", "Simplex", "constraint_of"]

# Default tolerance of `contains`, relative to the size of the set: a choice far above the rounding errors of a projection.
TOLERANCE = 1e-9


class Constraint(Protocol):
    """A convex set of vectors of p coefficients, for any p: the methods that your own set must have.

    The sets of this module also have ``contains(w)``, ``linear_minimizer(gradient)`` and ``diameter(p)`` in the Euclidean norm.
    ``gaussian_width(p)`` is the mean of ``max_w <g, w>`` for a standard normal g, or a stated bound on it. "accmd" needs
    ``mirror_map(p)``. "frank_wolfe" needs ``vertices(p)``, an array or sparse matrix with one vertex per row, which polytopes
    with few vertices have. All methods see released or public numbers only. The report shows the object's ``repr``.
    """

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the set, shape (p,)."""
        ...

    def scaled(self, factor: float) -> "Constraint":
        """Return the set in other units: all points times a positive factor."""
        ...


def constraint_of(constraint: Any, radius: Any = 1.0) -> Any:
    """Return the set for an estimator's parameters.

    Parameters
    ----------
    constraint : {"l1", "l2", "simplex", "box"} or Constraint
        Name of a set of the given radius (of a box, the bound on every coefficient's absolute value), or the set itself.
    radius : float, default=1.0
        Size of a named set.

    Returns
    -------
    Constraint
        The set.

    Raises
    ------
    TypeError, ValueError
        If the name is unknown, the object is no constraint, or the radius is not a number from 1e-50 to 1e50.
    """
    expected = "expected 'l1', 'l2', 'simplex', 'box', or an object with the methods project and scaled"
    if isinstance(constraint, str):
        if constraint not in ("l1", "l2", "simplex", "box"):
            raise ValueError(f"constraint={shown(constraint)}; {expected}.")
        check_scale("radius", radius)
        size = float(radius)
        return Box(-size, size) if constraint == "box" else {"l1": L1Ball, "l2": L2Ball, "simplex": Simplex}[constraint](size)
    if isinstance(constraint, type) or not all(callable(getattr(constraint, name, None)) for name in ("project", "scaled")):
        raise TypeError(f"constraint={shown(constraint)}; {expected}.")
    return constraint


@dataclass(frozen=True)
class _Sized:
    """Base of the sets with a radius."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        check_scale("radius", self.radius)
        object.__setattr__(self, "radius", float(self.radius))

    def scaled(self, factor: float) -> Any:
        """Return the set of all points times a positive factor."""
        return replace(self, radius=self.radius * factor)


class _Ball(_Sized, ABC):
    """Ball of a norm around 0."""

    @property
    @abstractmethod
    def norm(self) -> float:
        """Order of the norm."""

    def contains(self, w: np.ndarray, tolerance: float = TOLERANCE) -> bool:
        """Return whether the norm is at most the radius, up to a relative tolerance."""
        return norm_of(w, self.norm) <= self.radius * (1 + tolerance)

    def linear_minimizer(self, gradient: np.ndarray) -> np.ndarray:
        """Return a point of the ball at which ``<gradient, w>`` is least; 0 for a gradient of 0."""
        return -self.radius * support(gradient, self.norm)


@dataclass(frozen=True)
class L1Ball(_Ball):
    """All vectors whose absolute values add up to at most the radius: sparse models.

    Parameters
    ----------
    radius : float, default=1.0
        Bound on the l1 norm, from 1e-50 to 1e50.

    References
    ----------
    .. [1] J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient projections onto the l1-ball for learning in high
       dimensions", ICML 2008: the projection, in the time of a sort.
    """

    norm = 1.0

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the ball."""
        with np.errstate(over="ignore"):
            if np.abs(w).sum() <= self.radius:
                return w.copy()
        # The projection keeps signs, and its absolute values are those of the simplex.
        return np.sign(w) * onto_simplex(np.abs(w), self.radius)

    def linear_minimizer(self, gradient: np.ndarray) -> np.ndarray:
        """Return the vertex at which ``<gradient, w>`` is least."""
        place = int(np.argmax(np.abs(gradient)))
        return _axis(gradient.size, place, -self.radius if gradient[place] > 0 else self.radius)

    def diameter(self, n_coefficients: int) -> float:
        """Return twice the radius."""
        return 2 * self.radius

    def gaussian_width(self, n_coefficients: int) -> float:
        """Return ``radius * sqrt(2 log(2 p))``, which exceeds the mean of ``radius * max |g_j|`` by less than a half."""
        return self.radius * math.sqrt(2 * math.log(2 * n_coefficients))

    def mirror_map(self, n_coefficients: int) -> MirrorMap:
        """Return the entropy on the doubled simplex."""
        return SignedEntropy(self.radius, n_coefficients)

    def vertices(self, n_coefficients: int) -> sparse.csr_array:
        """Return the 2 p vertices, one per row: for each coefficient the radius, then for each minus the radius."""
        axes = _axes(n_coefficients, self.radius)
        return sparse.vstack([axes, -axes], format="csr")


@dataclass(frozen=True)
class L2Ball(_Ball):
    """All vectors of Euclidean norm up to the radius.

    Parameters
    ----------
    radius : float, default=1.0
        Bound on the norm, from 1e-50 to 1e50.
    """

    norm = 2.0

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the ball."""
        return w.copy() if norm_of(w, 2) <= self.radius else self.radius * support(w, 2)

    def diameter(self, n_coefficients: int) -> float:
        """Return twice the radius."""
        return 2 * self.radius

    def gaussian_width(self, n_coefficients: int) -> float:
        """Return the mean of ``radius * ||g||``, exactly."""
        return self.radius * math.sqrt(2) * math.exp(gammaln((n_coefficients + 1) / 2) - gammaln(n_coefficients / 2))

    def mirror_map(self, n_coefficients: int) -> MirrorMap:
        """Return half the squared norm."""
        return Euclidean(self.project, n_coefficients, self.radius**2 / 2)


@dataclass(frozen=True)
class LpBall(_Ball):
    """All vectors whose norm of a given order is at most the radius.

    Parameters
    ----------
    radius : float, default=1.0
        Bound on the norm, from 1e-50 to 1e50.
    order : float, default=1.5
        Order of the norm, from 1.01 to 100; `L1Ball` and `Box` are its limits.
    """

    order: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("order", self.order, minimum=1.01, maximum=100.0)
        object.__setattr__(self, "order", float(self.order))

    @property
    def norm(self) -> float:
        """Order of the norm."""
        return self.order

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the ball."""
        return onto_ball(w, self.radius, self.order)

    def diameter(self, n_coefficients: int) -> float:
        """Return twice the largest Euclidean norm in the ball, ``radius * p**max(0, 1/2 - 1/order)``."""
        return 2 * self.radius * n_coefficients ** max(0.0, 0.5 - 1 / self.order)

    def gaussian_width(self, n_coefficients: int) -> float:
        """Return ``radius * (p E|g_1|**q)**(1/q)``, which exceeds the width by less than a half.

        q is the order of the dual norm, or ``max(2, 2 log p)`` if that is less, because norms decrease in their order.
        """
        # E|g|^q of a normal is 2^(q / 2) Gamma((q + 1) / 2) / sqrt(pi); logarithms, because q may be large.
        dual = min(self.order / (self.order - 1), max(2.0, 2 * math.log(n_coefficients)))
        log_moment = dual / 2 * math.log(2) + gammaln((dual + 1) / 2) - math.log(math.pi) / 2
        return self.radius * math.exp((math.log(n_coefficients) + log_moment) / dual)

    def mirror_map(self, n_coefficients: int) -> MirrorMap:
        """Return the squared norm for orders up to 2; else the Euclidean one, because the squared norm is not strongly convex."""
        if self.order <= 2:
            return PNorm(self.radius, self.order, n_coefficients)
        return Euclidean(self.project, n_coefficients, self.diameter(n_coefficients) ** 2 / 8)


@dataclass(frozen=True)
class Simplex(_Sized):
    """All vectors of non-negative numbers that add up to the radius: mixtures.

    Parameters
    ----------
    radius : float, default=1.0
        The sum, from 1e-50 to 1e50.
    """

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the simplex."""
        return onto_simplex(w, self.radius)

    def contains(self, w: np.ndarray, tolerance: float = TOLERANCE) -> bool:
        """Return whether the numbers are non-negative and add up to the radius, up to a tolerance relative to it."""
        return bool(w.min() >= -tolerance * self.radius and abs(w.sum() - self.radius) <= tolerance * self.radius)

    def linear_minimizer(self, gradient: np.ndarray) -> np.ndarray:
        """Return the vertex at which ``<gradient, w>`` is least."""
        return _axis(gradient.size, int(np.argmin(gradient)), self.radius)

    def diameter(self, n_coefficients: int) -> float:
        """Return ``sqrt(2)`` times the radius, 0 for a single coefficient."""
        return math.sqrt(2) * self.radius if n_coefficients > 1 else 0.0

    def gaussian_width(self, n_coefficients: int) -> float:
        """Return ``radius * sqrt(2 log p)``, at most 2.1 times the mean of ``radius * max g_j``."""
        return self.radius * math.sqrt(2 * math.log(n_coefficients))

    def mirror_map(self, n_coefficients: int) -> MirrorMap:
        """Return the entropy."""
        return Entropy(self.radius, n_coefficients)

    def vertices(self, n_coefficients: int) -> sparse.csr_array:
        """Return the p vertices, one per row: for each coefficient the radius."""
        return _axes(n_coefficients, self.radius)


@dataclass(frozen=True)
class Box:
    """All vectors between bounds.

    Parameters
    ----------
    low, high : float or tuple of float
        Bounds of all coefficients, or of each; ``low < high``, up to 1e50.
    """

    low: float | tuple[float, ...] = -1.0
    high: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        many = [len(side) for side in (self.low, self.high) if isinstance(side, (tuple, list, np.ndarray))]
        if len(set(many)) > 1 or 0 in many:
            raise ValueError(f"low and high of a Box have lengths {many}; expected as many bounds as coefficients, or numbers.")
        pairs = [check_bounds("(low, high)", pair) for pair in zip(_each(self.low, many), _each(self.high, many), strict=True)]
        for name, side in (("low", 0), ("high", 1)):
            values = tuple(pair[side] for pair in pairs)
            object.__setattr__(self, name, values if many else values[0])

    def scaled(self, factor: float) -> "Box":
        """Return the set of all points times a positive factor."""
        sides = (side if isinstance(side, tuple) else (side,) for side in (self.low, self.high))
        low, high = (tuple(factor * value for value in side) for side in sides)
        return Box(low, high) if isinstance(self.low, tuple) else Box(low[0], high[0])

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest point of the box: each number clipped to its bounds."""
        return np.clip(w, *self._bounds(w.size))

    def contains(self, w: np.ndarray, tolerance: float = TOLERANCE) -> bool:
        """Return whether all numbers are within the bounds, up to a tolerance relative to the largest bound."""
        low, high = self._bounds(w.size)
        slack = tolerance * max(np.abs(low).max(), np.abs(high).max())
        return bool((w >= low - slack).all() and (w <= high + slack).all())

    def linear_minimizer(self, gradient: np.ndarray) -> np.ndarray:
        """Return a corner at which ``<gradient, w>`` is least."""
        low, high = self._bounds(gradient.size)
        return np.where(gradient > 0, low, high)

    def diameter(self, n_coefficients: int) -> float:
        """Return the distance of opposite corners."""
        low, high = self._bounds(n_coefficients)
        return norm_of(high - low, 2)

    def gaussian_width(self, n_coefficients: int) -> float:
        """Return half the sum of the sides times the mean of ``|g_1|``, exactly."""
        low, high = self._bounds(n_coefficients)
        return float((high - low).sum()) / math.sqrt(2 * math.pi)

    def mirror_map(self, n_coefficients: int) -> MirrorMap:
        """Return half the squared Euclidean norm."""
        low, high = self._bounds(n_coefficients)
        nearest = np.clip(0.0, low, high)
        spread = norm_of(np.maximum(high - nearest, nearest - low), 2) ** 2 / 2
        return Euclidean(self.project, n_coefficients, spread)

    def _bounds(self, n_coefficients: int) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.low, tuple) and len(self.low) != n_coefficients:
            raise ValueError(
                f"The Box has bounds of {len(self.low)} coefficients; expected {n_coefficients}: one per feature, with more than "
                "two classes one per feature and class."
            )
        low, high = (np.broadcast_to(np.asarray(side), (n_coefficients,)) for side in (self.low, self.high))
        return low, high


def _each(side: Any, many: list[int]) -> list[Any]:
    return list(side) if isinstance(side, (tuple, list, np.ndarray)) else [side] * (many[0] if many else 1)


def _axis(n_coefficients: int, place: int, value: float) -> np.ndarray:
    point = np.zeros(n_coefficients)
    point[place] = value
    return point


def _axes(n_coefficients: int, value: float) -> sparse.csr_array:
    return value * sparse.eye_array(n_coefficients, format="csr")

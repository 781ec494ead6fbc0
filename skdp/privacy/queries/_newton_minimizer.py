"""Minimise strongly convex functions by Newton's method up to a given norm of the gradient, without a limit on steps."""

from collections.abc import Callable

import numpy as np

# Smallest factor of Newton's direction that is tried before gradient descent takes over. A choice. It affects the speed only.
SHORTEST_FACTOR = 2.0**-36

# Number of steps of gradient descent before Newton's method is tried again. A choice. It affects the speed only.
GRADIENT_STEPS = 100

# Conjugate gradients end at this norm of the residual relative to the right-hand side, or after this number of matrix products.
# Both are choices that affect the speed only.
LEAST_RESIDUAL, MOST_PRODUCTS = 0.1, 200

Point = np.ndarray


def minimize(
    gradient: Callable[[Point], np.ndarray],
    newton: Callable[[Point, np.ndarray], np.ndarray],
    size: int,
    step: float,
    enough: float,
) -> np.ndarray:
    """Return a point at which the norm of the gradient is at most ``enough``.

    A step along Newton's direction is shortened until it makes the gradient shorter. If no step does, gradient descent, which
    converges from every point, continues for a number of steps. There is no limit on the number of steps: the guarantee rests on
    the norm that is reached.

    Parameters
    ----------
    gradient : callable
        Gradient of a strongly convex function.
    newton : callable
        Maps a point and its gradient to a direction of descent.
    size : int
        Number of coordinates.
    step : float
        One over the Lipschitz constant of the gradient.
    enough : float
        Norm to reach, above the float64 error of the gradient.

    Returns
    -------
    ndarray of shape (size,)
        The point.
    """
    point = np.zeros(size)
    slope, waiting = gradient(point), 0
    while not np.linalg.norm(slope) <= enough:
        # Newton, until no shortened step helps; then some steps of gradient descent, and Newton again.
        better = None if waiting else _damped(gradient, point, slope, newton(point, slope))
        if better is None:
            point = point - step * slope
            slope, waiting = gradient(point), (waiting or GRADIENT_STEPS) - 1
        else:
            point, slope = better
    return point


def _damped(
    gradient: Callable[[Point], np.ndarray], point: Point, slope: np.ndarray, direction: np.ndarray
) -> tuple[Point, np.ndarray] | None:
    """Return the first shortened step that makes the gradient shorter, and the gradient there; None if no step does."""
    factor, norm = 1.0, np.linalg.norm(slope)
    while factor >= SHORTEST_FACTOR:
        moved = point + factor * direction
        if np.isfinite(moved).all():
            there = gradient(moved)
            if np.linalg.norm(there) <= (1 - factor / 4) * norm:
                return moved, there
        factor /= 2
    return None


def conjugate_gradients(product: Callable[[np.ndarray], np.ndarray], right: np.ndarray) -> np.ndarray:
    """Return an approximate solution of a positive definite system.

    Parameters
    ----------
    product : callable
        Maps a vector to the product of the matrix and the vector.
    right : ndarray of shape (size,)
        Right-hand side.

    Returns
    -------
    ndarray of shape (size,)
        Solution with a residual at most a tenth as long as ``right``, or the one after 200 products.
    """
    solution, residual = np.zeros_like(right), right.copy()
    direction, square = right.copy(), float(right @ right)
    least = LEAST_RESIDUAL**2 * square
    for _ in range(MOST_PRODUCTS):
        if not square > least:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0:  # underflow of float64
            break
        along = square / curvature
        solution += along * direction
        residual -= along * image
        square, previous = float(residual @ residual), square
        direction = residual + square / previous * direction
    return solution

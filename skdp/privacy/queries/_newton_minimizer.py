"""Newton's method for strongly convex functions, to a given norm of the gradient, however long it takes."""

from collections.abc import Callable

import numpy as np

__all__ = ["conjugate_gradients", "minimize"]

SHORTEST = 2.0**-36  # factor of Newton's direction that is tried last
GRADIENT_STEPS = 100  # before Newton's method is tried again
LEAST, MOST_PRODUCTS = 0.1, 200  # relative residual and number of products at which conjugate gradients end

Point = np.ndarray


def minimize(
    gradient: Callable[[Point], np.ndarray],
    newton: Callable[[Point, np.ndarray], np.ndarray],
    size: int,
    step: float,
    enough: float,
) -> np.ndarray:
    """Return a point at which the norm of the gradient is at most ``enough``.

    Newton's direction is shortened until the gradient is; where it never is, gradient descent goes on for a while, which
    converges from anywhere. There is no limit on the number of steps: the guarantee rests on the norm that is reached.

    Parameters
    ----------
    gradient : callable
        Of a strongly convex function.
    newton : callable
        From a point and its gradient to a direction of descent.
    size : int
        Number of coordinates.
    step : float
        One over the Lipschitz constant of the gradient.
    enough : float
        Norm to reach; above the float64 error of the gradient.

    Returns
    -------
    ndarray of shape (size,)
        The point.
    """
    point = np.zeros(size)
    slope, waiting = gradient(point), 0
    while not np.linalg.norm(slope) <= enough:
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
    """The first of the shortened steps that shortens the gradient, and the gradient there."""
    factor, norm = 1.0, np.linalg.norm(slope)
    while factor >= SHORTEST:
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
        From a vector to the matrix times it.
    right : ndarray of shape (size,)
        Right-hand side.

    Returns
    -------
    ndarray of shape (size,)
        With a residual a tenth as long as ``right``, or after 200 products.
    """
    solution, residual = np.zeros_like(right), right.copy()
    direction, square = right.copy(), float(right @ right)
    least = LEAST**2 * square
    for _ in range(MOST_PRODUCTS):
        if not square > least:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0:  # below the range of float64
            break
        along = square / curvature
        solution += along * direction
        residual -= along * image
        square, previous = float(residual @ residual), square
        direction = residual + square / previous * direction
    return solution

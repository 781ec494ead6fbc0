"""Take accelerated gradient steps with restarts, and compute the noise that they leave."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Standard deviations of noise by which the slope along the last move must be positive for a restart. With 0, noise restarted so
# often that an excess log loss of 2.5e-4 was left where five classes are nearly separated, with 3 it is 1e-4 (docs/defaults.md).
BEYOND = 3.0


@dataclass(frozen=True)
class AcceleratedSteps:
    """Steps that were taken, each with its length and its momentum, which follow from releases.

    Parameters
    ----------
    lengths : tuple of ndarray of shape (n_outputs,)
        Step lengths.
    momenta : tuple of float
        Factor of the last move that is added after a step.
    warm_up : int
        Number of steps before the average.
    noise : float
        Standard deviation of each coordinate of a gradient.
    """

    lengths: tuple[np.ndarray, ...]
    momenta: tuple[float, ...]
    warm_up: int
    noise: float

    def variances(self, curvature: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Return the variance of the result, per coordinate, for the output with the longest steps.

        Parameters
        ----------
        curvature, penalty : ndarray of shape (d,)
            Curvature of the loss, and strength of a ridge penalty.

        Returns
        -------
        ndarray of shape (d,)
            Variances. The recursion is linear in the noise, so it runs on the factors of all gradients at once.
        """
        n_steps = len(self.lengths)
        bend, ridge = curvature[:, None], penalty[:, None]
        look, point, looks, slopes = (np.zeros((curvature.size, n_steps)) for _ in range(4))
        for number, (lengths, momentum) in enumerate(zip(self.lengths, self.momenta, strict=True)):
            length = float(lengths.max())
            # Column i is the response to a unit error in the gradient of step i, by the recursion of `accelerated`.
            slope = bend * look
            slope[:, number] += 1.0
            if number >= self.warm_up:
                looks, slopes = looks + look, slopes + slope
            following = (look - length * slope) / (1 + length * ridge)
            look, point = following + momentum * (following - point), following
        gains = (looks - length * slopes) / (1 + length * ridge) / (n_steps - self.warm_up)
        return np.asarray(np.square(gains * self.noise).sum(axis=1))


def accelerated(
    gradient: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    lengths: tuple[np.ndarray, float],
    penalty: np.ndarray,
    counts: tuple[int, int],
    noise: float,
) -> tuple[np.ndarray, AcceleratedSteps]:
    r"""Minimise a convex function by Nesterov's steps, which restart where the loss rises along the last move.

    Parameters
    ----------
    gradient : callable
        Returns the noisy gradient of the mean loss, without penalty, at a point.
    start : ndarray of shape (n_coordinates, n_outputs)
        The first point.
    lengths : (ndarray of shape (n_outputs,), float)
        First lengths of the steps, and the largest one that is stable for every table. The first ones are halved, down to the
        other one, whenever a step without momentum went too far.
    penalty : ndarray of shape (n_coordinates, 1)
        Strength of a ridge penalty, whose step is implicit.
    counts : (int, int)
        Number of steps, and number of steps before the average.
    noise : float
        Standard deviation of each coordinate of a gradient.

    Returns
    -------
    result : ndarray of shape (n_coordinates, n_outputs)
        One step from the average of the last points, with the average of their gradients.
    steps : AcceleratedSteps
        The steps.

    References
    ----------
    .. [1] B. O'Donoghue, E. Candes, "Adaptive restart for accelerated gradient schemes", Found. Comput. Math. 15 (2015).
    """
    (length, stable), (n_steps, warm_up) = lengths, counts
    look, point, move = start, start, np.zeros_like(start)
    looks, slopes = np.zeros_like(start), np.zeros_like(start)
    taken: list[tuple[np.ndarray, float]] = []
    weight, momentum = 1.0, 0.0
    for number in range(n_steps):
        slope = gradient(look)
        if number >= warm_up:
            looks, slopes = looks + look / (n_steps - warm_up), slopes + slope / (n_steps - warm_up)
        # Restart: the loss rises along the last move by more than noise explains. If even a step without momentum went too far,
        # it was too long.
        if float((slope * move).sum()) > BEYOND * noise * float(np.linalg.norm(move)):
            if not momentum:
                length = np.maximum(length / 2, np.minimum(length, stable))
            weight = 1.0
        following = (look - length * slope) / (1 + length * penalty)
        # Nesterov's weights t_{k+1} = (1 + sqrt(1 + 4 t_k^2)) / 2, and momentum (t_k - 1) / t_{k+1}.
        grown = (1 + math.sqrt(1 + 4 * weight**2)) / 2
        momentum, weight = (weight - 1) / grown, grown
        move = following - point
        look, point = following + momentum * move, following
        taken.append((length, momentum))
    steps = AcceleratedSteps(tuple(step for step, _ in taken), tuple(factor for _, factor in taken), warm_up, noise)
    return (looks - length * slopes) / (1 + length * penalty), steps

"""Choose the steps of the calibration of log-odds: as long as their expected curvature and the noise allow."""

import numpy as np
from scipy.special import expit

# Standard deviation of slope and offset around the start that the steps count with. A larger one learns more, and more noise.
# Excess log loss, in sum over 15 cells of adult, ijcnn1, mammography, spambase, long rows and made-up tables: .203 with .4, .179
# with .6, .180 with .7, .204 with 1 (docs/defaults.md).
PRIOR = 0.6
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def step_matrix(
    point: np.ndarray, free: np.ndarray, penalty: float, class_weight: tuple[float, ...] | None, noise: float, n_steps: int
) -> np.ndarray:
    r"""Return the matrix by which the gradient of a step is multiplied.

    Scores count as standard normal, which gives the curvature h of the log loss in two directions. After a path P, a descent has
    learned the share :math:`1 - e^{-P h}` of what is left. A posterior mean has learned :math:`x / (1 + x)`, with
    :math:`x = (h \tau / g)^2` for a prior of standard deviation :math:`\tau` and noise g. Both agree for
    :math:`P = \log(1 + x) / h`. The path is :math:`2 \log(1 + x / 2) / h`: the same for small x, and longer for large x, because
    the second half of the iterates is averaged.

    Parameters
    ----------
    point : ndarray of shape (2,)
        Slope and offset.
    free : ndarray of shape (2,)
        1 where a coordinate moves, else 0.
    penalty : float
        Curvature of the penalty on the slope.
    class_weight : tuple of float or None
        Factor of each record's loss, by class.
    noise : float
        Standard deviation of the noise of the mean gradient, if all of the budget of the calibration were in one.
    n_steps : int
        Number of steps over which the path is divided.

    Returns
    -------
    ndarray of shape (2, 2)
        Symmetric, positive semidefinite.
    """
    # Probabilities of the weighted problem at normal scores, by quadrature. Where they are p, a record is of the second class
    # with probability p f / (p f + (1 - p) s) for the weights f and s of the classes, so its mean weight is f s / (p f + (1 - p)
    # s).
    p = expit(point[0] * NODES + point[1])
    first, second = class_weight or (1.0, 1.0)
    bend = WEIGHTS * p * (1 - p) * (first * second / (p * first + (1 - p) * second))
    # Second derivatives in slope and offset, and their eigenvectors. A coordinate that does not move is left out.
    columns = np.column_stack([NODES, np.ones_like(NODES)]) * free
    curvature, directions = np.linalg.eigh((columns.T * bend) @ columns + np.diag([penalty, 0.0]))
    curvature = np.maximum(curvature, 1e-12)
    # Along each eigenvector the steps make a path of their own, short where noise hides the curvature.
    path = 2 * np.log1p(np.square(curvature * PRIOR / noise) / 2) / curvature
    return np.asarray((directions * (path / n_steps)) @ directions.T * np.outer(free, free))

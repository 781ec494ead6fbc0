"""What a statistician makes of noisy releases: quantiles, eigenvalues, shrinkage. Post-processing only."""

import math

import numpy as np

__all__ = ["deconvolved", "half_edge", "momentum_gains", "noisy_quantile", "posterior_factors", "tail_gains"]

PRIORS = np.concatenate([[0.0], np.geomspace(1e-7, 1.0, 71)])  # variances that a prior may have, over the largest


def noisy_quantile(counts: np.ndarray, edges: np.ndarray, level: float, n_samples: int) -> float:
    """Return a quantile from noisy counts.

    The share below an edge is counted from below and, because the number of records is public, from above too; each has the more
    noise the more counts it adds, and so they are weighted. Within a range the quantile is interpolated on a logarithmic scale.

    Parameters
    ----------
    counts : ndarray of shape (size,)
        Noisy numbers of records per range.
    edges : ndarray of shape (size,)
        Upper ends of the ranges, a geometric sequence.
    level : float
        Which quantile, in (0, 1).
    n_samples : int
        Number of records.

    Returns
    -------
    float
        The quantile.
    """
    size = len(edges)
    below = np.cumsum(counts) / n_samples
    above = 1 - (counts.sum() - np.cumsum(counts)) / n_samples
    number = np.arange(1, size + 1)
    shares = np.clip(np.maximum.accumulate((below * (size - number) + above * number) / size), 0.0, 1.0)
    shares[-1] = 1.0
    place = int(np.searchsorted(shares, level))
    least = shares[place - 1] if place else 0.0
    within = min(max((level - least) / max(shares[place] - least, 1e-9), 0.0), 1.0)
    ratio = edges[1] / edges[0]
    return float(edges[place] * ratio ** (within - 1))


def deconvolved(eigenvalues: np.ndarray, noise: float, least_trace: float) -> np.ndarray:
    r"""Return eigenvalues of a positive matrix of trace at most 1, from those of the matrix with symmetric Gaussian noise.

    Noise with standard deviation s off the diagonal times :math:`\sqrt 2` on it has its eigenvalues below 2 e with
    :math:`e = s \sqrt{d / 2}`. A larger eigenvalue h of the matrix shows as :math:`h + e^2 / h`; those that do not show share
    what the trace leaves.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Of the noisy matrix.
    noise : float
        The half edge e.
    least_trace : float
        Lower bound on the trace.

    Returns
    -------
    ndarray of shape (d,)
        Non-negative values.
    """
    shown = eigenvalues > 2 * noise
    roots = np.sqrt(np.maximum(np.square(eigenvalues) - 4 * noise**2, 0.0))
    values = np.where(shown, (eigenvalues + roots) / 2, 0.0)
    trace = min(max(float(eigenvalues.sum()), least_trace), 1.0)
    hidden = max(int(np.count_nonzero(~shown)), 1)
    rest = min(max((trace - float(values.sum())) / hidden, 0.0), noise)
    return np.maximum(values, rest)


def tail_gains(step: float, curvature: np.ndarray, finish: np.ndarray, warm_up: int, n_steps: int) -> np.ndarray:
    """Return how much of the noise of each gradient is in the averaged iterate with its Newton finish.

    The iteration ``theta += step (noise - curvature theta)`` is linear, so noise of step i reaches iterate t as
    ``step (1 - step curvature)^(t - 1 - i)``.

    Parameters
    ----------
    step : float
        Step size.
    curvature : ndarray of shape (d,)
        Believed curvature of each coordinate.
    finish : ndarray of shape (d,)
        Factor of the average gradient that is added to the average of the iterates.
    warm_up, n_steps : int
        The averages run over iterates and gradients from ``warm_up`` on.

    Returns
    -------
    ndarray of shape (d, n_steps)
        Factors of the noise.
    """
    powers = (1 - step * curvature)[:, None] ** np.arange(n_steps)
    reached = np.concatenate([np.zeros((len(curvature), 1)), np.cumsum(powers, axis=1)], axis=1)  # sums of so many powers
    number = np.arange(n_steps)
    sums = reached[:, n_steps - 1 - number] - reached[:, np.maximum(warm_up - 1 - number, 0)]
    gains = step * (1 - finish * curvature)[:, None] * sums
    gains[:, warm_up:] += finish[:, None]
    return gains / (n_steps - warm_up)


def momentum_gains(
    step: float, momentum: float, curvature: np.ndarray, penalty: np.ndarray, warm_up: int, n_steps: int
) -> np.ndarray:
    """Return how much of the noise of each gradient is in the average of the last iterates of heavy-ball steps.

    The iteration ``velocity = momentum velocity + curvature theta + noise``, ``theta = (theta - step velocity) / shrinkage``,
    with ``shrinkage = 1 + step / (1 - momentum) penalty``, is linear: an impulse of noise runs through it once, and later ones
    like it.

    Parameters
    ----------
    step, momentum : float
        Step size and heavy-ball coefficient.
    curvature, penalty : ndarray of shape (d,)
        Of each coordinate: of the loss, and of a penalty that is dealt with implicitly.
    warm_up, n_steps : int
        The average runs over the iterates after the steps from number ``warm_up`` on, counted from 0.

    Returns
    -------
    ndarray of shape (d, n_steps)
        Factors of the noise.
    """
    shrinkage = 1 + step / (1 - momentum) * penalty
    velocity, theta, reached = np.ones(curvature.size), np.zeros(curvature.size), np.zeros((curvature.size, n_steps + 1))
    for number in range(n_steps):
        if number:
            velocity = momentum * velocity + curvature * theta
        theta = (theta - step * velocity) / shrinkage
        reached[:, number + 1] = reached[:, number] + theta
    left = n_steps - np.arange(n_steps)  # iterates that an impulse reaches, and those before the average
    return (reached[:, left] - reached[:, np.maximum(left - (n_steps - warm_up), 0)]) / (n_steps - warm_up)


def posterior_factors(estimates: np.ndarray, variances: np.ndarray, largest: float) -> np.ndarray:
    """Return factors that shrink estimates towards 0, as if their true values were normal with a variance of their own choice.

    Parameters
    ----------
    estimates, variances : ndarray of shape (d,)
        Independent estimates, and the variances of their noise.
    largest : float
        Largest variance that the true values may have.

    Returns
    -------
    ndarray of shape (d,)
        Posterior means over estimates, for the prior variance of maximum likelihood among 0 and 71 others.
    """
    total = np.maximum(variances[:, None] + largest * PRIORS, 1e-300)
    likelihoods = -(np.log(total) + np.square(estimates)[:, None] / total).sum(axis=0)
    prior = largest * PRIORS[int(np.argmax(likelihoods))]
    return prior / np.maximum(prior + variances, 1e-300)


def half_edge(noise: float, n_features: int) -> float:
    """Return half of the largest eigenvalue of a symmetric matrix with noise of that size in half-vector coordinates."""
    return noise * math.sqrt(n_features / 2)

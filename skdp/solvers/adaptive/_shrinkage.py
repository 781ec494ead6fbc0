"""Estimate quantiles and eigenvalues, and shrink coefficients, from noisy releases; post-processing."""

import math

import numpy as np

# Variances that the prior of `posterior_factors` may have, over the largest one: 0, and 71 values that are 1.26 times each other.
# A choice; a finer grid costs time.
PRIORS = np.concatenate([[0.0], np.geomspace(1e-7, 1.0, 71)])


def noisy_quantile(counts: np.ndarray, edges: np.ndarray, level: float, n_samples: int) -> float:
    """Return a quantile from noisy counts.

    The number of records is public, so the share below an edge follows both from the counts below and from those above it. The
    noise of each grows with the number of counts that it adds, and their weights follow from that. Within a range the quantile is
    interpolated on a logarithmic scale.

    Parameters
    ----------
    counts : ndarray of shape (size,)
        Noisy numbers of records per range.
    edges : ndarray of shape (size,)
        Upper ends of the ranges, a geometric sequence.
    level : float
        Level of the quantile, in (0, 1).
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
    # The noise of k added counts has k times the variance of one, so the two estimates of a share weigh in inverse proportion.
    # Shares grow from edge to edge, which noise may hide.
    shares = np.clip(np.maximum.accumulate((below * (size - number) + above * number) / size), 0.0, 1.0)
    shares[-1] = 1.0
    place = int(np.searchsorted(shares, level))
    least = shares[place - 1] if place else 0.0
    within = min(max((level - least) / max(shares[place] - least, 1e-9), 0.0), 1.0)
    # Edges are a geometric sequence: interpolate their logarithms.
    ratio = edges[1] / edges[0]
    return float(edges[place] * ratio ** (within - 1))


def deconvolved(eigenvalues: np.ndarray, noise: float, least_trace: float) -> np.ndarray:
    r"""Return eigenvalues of a positive matrix of trace at most 1, from those of the matrix with symmetric Gaussian noise.

    Noise with standard deviation s on the diagonal and :math:`s / \sqrt 2` off it has eigenvalues below 2 e, where
    :math:`e = s \sqrt{d / 2}`. An eigenvalue h of the matrix above e shows as :math:`h + e^2 / h`. The hidden eigenvalues share
    what the others leave of the trace.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Eigenvalues of the noisy matrix.
    noise : float
        Half edge e of the noise's spectrum.
    least_trace : float
        Lower bound on the trace.

    Returns
    -------
    ndarray of shape (d,)
        Non-negative values.
    """
    # The eigenvalue h shows as v = h + e^2 / h; the larger root of h^2 - v h + e^2 = 0 takes the noise off.
    shown = eigenvalues > 2 * noise
    roots = np.sqrt(np.maximum(np.square(eigenvalues) - 4 * noise**2, 0.0))
    values = np.where(shown, (eigenvalues + roots) / 2, 0.0)
    trace = min(max(float(eigenvalues.sum()), least_trace), 1.0)
    hidden = max(int(np.count_nonzero(~shown)), 1)
    rest = min(max((trace - float(values.sum())) / hidden, 0.0), noise)
    return np.maximum(values, rest)


def tail_gains(step: float, curvature: np.ndarray, finish: np.ndarray, warm_up: int, n_steps: int) -> np.ndarray:
    """Return the factor of each gradient's noise in the averaged iterate with its Newton finish.

    The iteration ``theta += step (noise - curvature theta)`` is linear, so the noise of step i enters iterate t with the factor
    ``step (1 - step curvature)^(t - 1 - i)``.

    Parameters
    ----------
    step : float
        Step size.
    curvature : ndarray of shape (d,)
        Estimated curvature of each coordinate.
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
    reached = np.concatenate([np.zeros((len(curvature), 1)), np.cumsum(powers, axis=1)], axis=1)  # column k sums k powers
    number = np.arange(n_steps)
    # Sum of the factors with which noise number i enters the iterates from `warm_up` to the last but one.
    sums = reached[:, n_steps - 1 - number] - reached[:, np.maximum(warm_up - 1 - number, 0)]
    # Averaged gradient = noise - curvature * averaged iterate, so the finish leaves 1 - finish * curvature of the iterate and
    # adds the noise of the gradients from `warm_up` on.
    gains = step * (1 - finish * curvature)[:, None] * sums
    gains[:, warm_up:] += finish[:, None]
    return gains / (n_steps - warm_up)


def momentum_gains(
    step: float, momentum: float, curvature: np.ndarray, penalty: np.ndarray, warm_up: int, n_steps: int
) -> np.ndarray:
    """Return the factor of each gradient's noise in the average of the last iterates of heavy-ball steps.

    The iteration ``velocity = momentum velocity + curvature theta + noise``, ``theta = (theta - step velocity) / shrinkage``,
    with ``shrinkage = 1 + step / (1 - momentum) penalty``, is linear and the same in each step. So one impulse of noise in the
    first step gives the factors of all.

    Parameters
    ----------
    step, momentum : float
        Step size and heavy-ball coefficient.
    curvature, penalty : ndarray of shape (d,)
        Curvature of the loss in each coordinate, and strength of a ridge penalty whose step is implicit.
    warm_up, n_steps : int
        The average runs over the iterates after the steps from number ``warm_up`` on, counted from 0.

    Returns
    -------
    ndarray of shape (d, n_steps)
        Factors of the noise.
    """
    shrinkage = 1 + step / (1 - momentum) * penalty
    # Response to one impulse of noise: column k of `reached` is the sum of the k iterates after it.
    velocity, theta, reached = np.ones(curvature.size), np.zeros(curvature.size), np.zeros((curvature.size, n_steps + 1))
    for number in range(n_steps):
        if number:
            velocity = momentum * velocity + curvature * theta
        theta = (theta - step * velocity) / shrinkage
        reached[:, number + 1] = reached[:, number] + theta
    left = n_steps - np.arange(n_steps)  # number of iterates that each impulse enters
    return (reached[:, left] - reached[:, np.maximum(left - (n_steps - warm_up), 0)]) / (n_steps - warm_up)


def posterior_factors(estimates: np.ndarray, variances: np.ndarray, largest: float) -> np.ndarray:
    """Return factors that shrink estimates towards 0, for a normal prior whose variance has the largest likelihood.

    Parameters
    ----------
    estimates, variances : ndarray of shape (d,)
        Independent estimates, and the variances of their noise.
    largest : float
        Largest variance that the true values may have.

    Returns
    -------
    ndarray of shape (d,)
        Posterior means over estimates. The prior variance is 0 or one of 71 others.
    """
    total = np.maximum(variances[:, None] + largest * PRIORS, 1e-300)
    # Twice the log-likelihood of the estimates, which are normal with the sum of prior and noise variance.
    likelihoods = -(np.log(total) + np.square(estimates)[:, None] / total).sum(axis=0)
    prior = largest * PRIORS[int(np.argmax(likelihoods))]
    return prior / np.maximum(prior + variances, 1e-300)


def half_edge(noise: float, n_features: int) -> float:
    """Return half of the largest eigenvalue of a symmetric noise matrix; ``noise`` is that of half-vector coordinates."""
    return noise * math.sqrt(n_features / 2)

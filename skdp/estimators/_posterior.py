"""Estimate released coefficients better by what is known of their noise."""

import numpy as np


def posterior_mean(
    estimates: np.ndarray, covariance: np.ndarray, root: np.ndarray, free: np.ndarray, deviations: np.ndarray
) -> np.ndarray:
    """Return the posterior mean of coefficients, averaged over the scale of the prior by its restricted likelihood.

    Parameters
    ----------
    estimates : ndarray of shape (k,)
        Released coefficients.
    covariance : ndarray of shape (k, k)
        Covariance of their noise.
    root : ndarray of shape (k, q)
        Root of the prior covariance of the coefficients, for a standard deviation of 1.
    free : ndarray of shape (k, m)
        Directions that the prior leaves free; m may be 0.
    deviations : ndarray of shape (s,)
        Standard deviations that the prior may have, which are equally likely.

    Returns
    -------
    ndarray of shape (k,)
        Coefficients.

    Notes
    -----
    **Privacy.** Computed from releases and public facts: post-processing.
    """
    prior, n = root @ root.T, len(estimates)
    jitter = 1e-10 * float(np.trace(covariance)) / n * np.eye(n)
    likelihoods, means = [], []
    for deviation in deviations:
        lower = np.linalg.cholesky(covariance + deviation**2 * prior + jitter)
        white_free, white = np.linalg.solve(lower, free), np.linalg.solve(lower, estimates)
        bend = white_free.T @ white_free
        level = np.linalg.solve(bend, white_free.T @ white)
        rest = white - white_free @ level
        likelihoods.append(-np.log(np.diag(lower)).sum() - np.linalg.slogdet(bend)[1] / 2 - rest @ rest / 2)
        means.append(free @ level + deviation**2 * prior @ np.linalg.solve(lower.T, rest))
    with np.errstate(under="ignore"):
        weights = np.exp(np.array(likelihoods) - max(likelihoods))
        return np.asarray(weights @ np.array(means) / weights.sum())

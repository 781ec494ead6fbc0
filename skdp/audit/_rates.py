"""Compute error rates of an attack, their upper confidence bounds, and the most informative threshold."""

from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv

PILOT = 4  # one run in four serves to choose the threshold, and is not used for the bound


def split(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split the scores into those that choose the threshold and those that determine the bound.

    Parameters
    ----------
    scores : ndarray of shape (2, n_runs)
        Scores of the runs without and with the canary.

    Returns
    -------
    pilot : ndarray of shape (2, n_runs // 4)
        The first quarter.
    judged : ndarray of shape (2, n_runs - n_runs // 4)
        The other scores, which are independent of the first.
    """
    n_pilot = scores.shape[1] // PILOT
    return scores[:, :n_pilot], scores[:, n_pilot:]


def error_rates(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the error rates of the attack that says "canary" if a score is at or above a threshold.

    Parameters
    ----------
    scores : ndarray of shape (2, m)
        Scores of the runs without and with the canary.
    thresholds : ndarray of shape (k,)
        Candidates.

    Returns
    -------
    ndarray of shape (2, k)
        False positive rate and false negative rate.
    """
    without, canary = np.sort(scores, axis=1)
    below = np.stack([np.searchsorted(without, thresholds), np.searchsorted(canary, thresholds)]) / scores.shape[1]
    return np.stack([1 - below[0], below[1]])


def upper_bounds(rates: np.ndarray, n_runs: int, confidence: float) -> np.ndarray:
    r"""Return Clopper-Pearson upper bounds of probabilities, each wrong with probability at most ``1 - confidence``.

    With k events in n runs the bound is the p at which as few events have probability ``1 - confidence``: the quantile of
    the beta distribution with parameters k + 1 and n - k.

    Parameters
    ----------
    rates : ndarray
        Observed rates.
    n_runs : int
        Number of independent runs.
    confidence : float
        Probability in (0, 1) that a bound holds.

    Returns
    -------
    ndarray
        Upper bounds; 1 if every run has the event.

    References
    ----------
    .. [1] C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
       Biometrika 26 (1934).
    """
    events = np.round(rates * n_runs)
    misses = n_runs - events
    return np.where(misses > 0, betaincinv(events + 1, np.maximum(misses, 1), confidence), 1.0)


def best_threshold(pilot: np.ndarray, confidence: float, value: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the threshold at which the pilot runs alone would give the largest bound, or the fewest errors if all bounds are 0.

    Parameters
    ----------
    pilot : ndarray of shape (2, m)
        Scores of runs without and with the canary, which are used for nothing else.
    confidence : float
        Probability that one bound of a rate holds.
    value : callable
        Function that maps bounds of the rates, of shape (2, k), to the number to maximise.

    Returns
    -------
    float
        One of the pilot scores.
    """
    thresholds = np.unique(pilot)
    rates = error_rates(pilot, thresholds)
    values = value(upper_bounds(rates, pilot.shape[1], confidence))
    return float(thresholds[np.argmax(values if values.any() else -rates.sum(axis=0))])

"""Divide the log-odds of test records into ranges: even ones first, then a window where the records are."""

import math

import numpy as np
from scipy.optimize import brentq

from skdp.metrics._reading import LOG_ODDS_BOUND

# Ranges of the release that finds where the scores are, its share of the squared budget, and the share of the records that the
# window leaves out on each side; ranges inside the window, and on each side of it. From simulations with scores of which some
# were a tenth as wide: without a window, 32 even ranges had up to 390 times the error of the best way, with it up to 56 times.
FIRST, SHARE, LEFT_OUT, INSIDE, OUTSIDE = 64, 0.2, 0.01, 24, 4
SECOND = INSIDE + 2 * OUTSIDE  # ranges of the second release
# Largest share that the window leaves out on each side; it is twice the noise of a share, where that is more. Choices: with .01
# alone, noise made the window so wide that intervals of the area under the curve of narrow scores had a coverage of .53.
MOST_LEFT_OUT = 0.2
NARROWEST = 64  # least width of the window in steps of 0.02, which leaves each range at least two


def even_cuts(size: int) -> tuple[int, ...]:
    """Return the cuts of even ranges of [-6, 6] in steps, one of them at 0."""
    steps = round(LOG_ODDS_BOUND * 50)
    return tuple(int(cut) + 1 for cut in np.rint(np.linspace(-steps, steps, size + 1))[1:-1])


def edges_of(cuts: tuple[int, ...]) -> np.ndarray:
    """Return the log-odds at the ends of ranges."""
    return np.concatenate([[-LOG_ODDS_BOUND], (np.array(cuts) - 1) / 50, [LOG_ODDS_BOUND]])


def window(answer: np.ndarray, matrix: np.ndarray, std: float, n_samples: int) -> tuple[int, ...]:
    """Return the cuts of the second release: even ones where the records are, wider ones outside, and one at 0.

    Parameters
    ----------
    answer : ndarray of shape (FIRST,)
        Noisy coefficients of the counts by range.
    matrix : ndarray of shape (FIRST, FIRST)
        Maps the counts to the coefficients.
    std : float
        Standard deviation of their noise.
    n_samples : int
        Public number of records.

    Returns
    -------
    tuple of int
        The cuts.
    """
    inverse = np.linalg.inv(matrix)
    covariance = std**2 * inverse @ inverse.T
    counts, direction = inverse @ answer, covariance.sum(axis=1)
    half_of = (np.arange(FIRST) < FIRST // 2).astype(float)
    variance = 0.0
    if std > 0:  # the number of records is public: spread the difference to it by the covariance of the noise
        counts = counts + (n_samples - counts.sum()) * direction / direction.sum()
        variance = float(half_of @ covariance @ half_of) - float(half_of @ direction) ** 2 / float(direction.sum())
    # The window holds all but a share of the records on each side, as far as the noise of that share allows.
    shares, noise = np.maximum.accumulate(np.cumsum(counts)) / n_samples, math.sqrt(max(variance, 0.0)) / n_samples
    edges = edges_of(even_cuts(FIRST))
    left_out = min(max(LEFT_OUT, 2 * noise), MOST_LEFT_OUT)
    steps, least = round(LOG_ODDS_BOUND * 50), NARROWEST // 2
    low = edges[min(int(np.searchsorted(shares, left_out)), FIRST - 1)]
    high = edges[min(int(np.searchsorted(shares, 1 - left_out)) + 1, FIRST)]
    # In steps of 0.02: widen the window to its least width, and move it so that the ranges outside have room.
    middle, half = round(25 * (low + high)), max(math.ceil(25 * (high - low)), least)
    room = 2 * OUTSIDE  # each range outside has at least two steps
    start, stop = max(middle - half, -steps + room), min(middle + half, steps - room)
    start, stop = min(start, stop - 2 * least), max(stop, start + 2 * least)
    start, stop = max(start, -steps + room), min(stop, steps - room)
    # Even ranges inside; outside, each range is wider than the one before, away from the window:
    #   -6 |   |  | | ||||||||||||||| | |  |   | 6
    width = (stop - start) / INSIDE
    parts = (
        start - _widening(start + steps, width)[-2::-1],
        np.linspace(start, stop, INSIDE + 1),
        stop + _widening(steps - stop, width)[:-1],
    )
    cuts = np.rint(np.concatenate(parts)).astype(int)
    cuts[int(np.argmin(np.abs(cuts)))] = 0  # the cut of predicted classes
    return tuple(int(cut) + 1 for cut in cuts)


def _widening(length: float, first: float) -> np.ndarray:
    """Return the far ends of the ranges outside the window: each is wider than the one before by the same factor.

    Most records outside the window are near it. Ranges of one width had a middle too far from them.
    """
    if length <= OUTSIDE * first:
        return np.linspace(0, length, OUTSIDE + 1)[1:]
    factor = brentq(lambda factor: first * sum(factor**k for k in range(OUTSIDE)) - length, 1.0, length / first)
    return np.asarray(np.cumsum(first * factor ** np.arange(OUTSIDE)))

"""Place the candidates of a statistic between public limits, from these limits alone."""

import math

import numpy as np

# Shortest of the steps that grow away from 0, as a share of the length; integers where the length is above WHOLE. Choices, for
# columns whose limits are far wider than their values: amounts, counts, durations.
FINEST, WHOLE = 1e-5, 1e3
# Share of the length beyond 0, or beyond the limit that is nearer to it, below which no steps grow in this direction. A choice.
LEAST_SIDE = 0.02


def edges_for(low: float, high: float, most: int = 511) -> np.ndarray:
    """Return public candidates for the quantiles of a column.

    They are the integers where these are few enough, among evenly spaced numbers. Otherwise they are evenly spaced numbers, and
    numbers whose distance from 0, or from the limit that is nearer to it, grows by a factor.

    Parameters
    ----------
    low, high : float
        Limits of the column, from public knowledge or an earlier release; low < high.
    most : int, default=511
        Largest number of candidates, at least 8.

    Returns
    -------
    ndarray of shape (n_candidates,)
        Increasing numbers; the first and the last one are the limits.
    """
    length = high - low
    if length <= most - 3:
        chosen = np.arange(math.ceil(low), math.floor(high) + 1.0)
    else:
        origin = min(max(0.0, low), high)
        sides = [side for side in (-1, 1) if (high - origin if side > 0 else origin - low) > LEAST_SIDE * length]
        shortest = max(FINEST * length, 1.0 if length > WHOLE else 0.0)
        steps = np.geomspace(shortest, length, (most // 2) // len(sides) - 1)
        steps = np.append(0.0, np.rint(steps) if shortest >= 1 else steps)
        chosen = np.concatenate([origin + side * steps for side in sides])
    chosen = np.unique(np.clip(chosen, low, high))
    return np.unique(np.concatenate([chosen, np.linspace(low, high, most - chosen.size)]))

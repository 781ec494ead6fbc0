"""Conclude from a noisy histogram by octave how common true and false are in a column whose type says that there is nothing else.

The limits follow from the type, which is public, so that they are 0 and 1 however large the noise is.
"""

import numpy as np

from skdp.preprocessing._octave_rule import LEAST_MASS, LEAST_SQUARE, MODE, Finding, Z, missing_share
from skdp.privacy.queries.column_histograms import octave_bins

FALSE_BIN, TRUE_BIN = octave_bins(np.array([0.0, 1.0])).tolist()
ENDS = 0.0, 1.0


def place_truths(shares: np.ndarray, sigma: float) -> Finding:
    """Return what the first histogram tells of a column whose cells are true, false or missing.

    Parameters
    ----------
    shares : ndarray of shape (244,)
        Noisy counts over n, by octave; the last is of missing cells.
    sigma : float
        Standard deviation of their noise.

    Returns
    -------
    Finding
        Limits are 0 and 1. What most cells are is mapped to 0.
    """
    missing = missing_share(shares, sigma)
    if missing == 1:
        return Finding("undetermined", ENDS, ENDS, 0.5, missing, binary=True)
    seen = {float(value): float(shares[place]) for value, place in ((0, FALSE_BIN), (1, TRUE_BIN))}
    mode = max(seen, key=seen.__getitem__)
    top = min(seen[mode] / (1 - missing), 1.0)
    if not (top > MODE and seen[mode] > max(Z * sigma, LEAST_MASS)):
        return Finding("integers", ENDS, ENDS, 0.5, missing, binary=True)
    return Finding("integers", ENDS, ENDS, mode, missing, square=max((1 - top) / 3, LEAST_SQUARE), binary=True)

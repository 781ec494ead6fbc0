"""What a kernel may know of a block of records."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["SHORTEST", "Kernel", "Records"]

SHORTEST = 2.0**-480  # its square is a normal number: norms above it are accurate to rounding, shorter ones count as this


@dataclass(frozen=True)
class Records:
    """What a kernel may know of a block of records beside their raw predictions.

    Parameters
    ----------
    labels : ndarray of shape (m,)
        Encoded labels or targets.
    inverse_norms : ndarray of shape (m,)
        One over the norm of each row, clipped and extended by the intercept's constant; 0 for a row of norm 0. Norms below
        2**-480, whose squares lose their digits, are taken as 2**-480.
    weights : ndarray of shape (m,) or None
        Factor of each record's loss.
    present : ndarray of shape (m,) or None, default=None
        1 for each record, 0 for a null record; None where there is no null record.
    """

    labels: np.ndarray
    inverse_norms: np.ndarray
    weights: np.ndarray | None
    present: np.ndarray | None = None


Kernel = Callable[[np.ndarray, Records], np.ndarray]

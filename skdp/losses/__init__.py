"""Provide pointwise losses of the raw prediction: value, derivative, constants.

Raw predictions have the shape (m, n_outputs). Labels are class numbers 0, 1, ..., n_classes - 1. For regression they are targets:
in [-1, 1] for the squared loss, vectors in the unit ball for several targets, any finite numbers for losses of bounded slope.
"""

from skdp.losses import _classes, _kinked, _margins, _numbers
from skdp.losses._classes import *  # noqa: F403
from skdp.losses._kinked import *  # noqa: F403
from skdp.losses._margins import *  # noqa: F403
from skdp.losses._numbers import *  # noqa: F403

__all__ = [name for family in (_classes, _kinked, _margins, _numbers) for name in family.__all__]

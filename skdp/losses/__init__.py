"""Pointwise losses on the raw prediction: value, derivative, constants.

They act on arrays of raw predictions of shape (m, n_outputs) and on labels encoded as integers 0, 1, ..., n_classes - 1, or for
regression on targets: brought to [-1, 1] for the squared loss, any finite numbers for those of bounded slope.
"""

from skdp.losses._classes import Logistic, Multinomial
from skdp.losses._kinked import Absolute, EpsilonInsensitive, Quantile
from skdp.losses._margins import Hinge, HuberHinge, SquaredHinge
from skdp.losses._numbers import Cauchy, Huber, Squared, Tukey, Welsch

__all__ = [
    "Absolute",
    "Cauchy",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "HuberHinge",
    "Logistic",
    "Multinomial",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "Tukey",
    "Welsch",
]

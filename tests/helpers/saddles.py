"""Small saddle problems for tests."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.minimax import Factors, SaddleProblem, products

__all__ = ["Instrumented", "Regression"]


@dataclass(frozen=True)
class Point:
    rows: Any
    fits: np.ndarray
    residuals: np.ndarray

    def primal(self):
        return [Factors(self.fits, self.rows)]

    def dual(self):
        return [Factors(self.residuals - self.fits, self.rows)]


class Regression(SaddleProblem):
    """Least squares as a saddle: ``f(w, v; x, y) = (x'w - y) x'v - (x'v)^2 / 2``, at its best where w is and v = 0."""

    name = "regression"
    primal_clip_norm = dual_clip_norm = 2.0

    def __init__(self, n_features):
        self.n_primal = self.n_dual = n_features

    def at(self, batch, primal, dual):
        fits = products(batch.rows, dual[:, None])
        return Point(batch.rows, fits, products(batch.rows, primal[:, None]) - batch.targets[:, None])

    def step_sizes(self, signal, n_steps):
        return 0.5, 0.5


class Instrumented(Regression):
    """The same over bounded sets, with a public part ``w'v / 4 - v'v / 8`` and another divisor; it starts at random."""

    divisor = 0.5
    difference_slope = 0.7

    def start(self, rng):
        return rng.normal(size=self.n_primal), rng.normal(size=self.n_dual)

    def project(self, primal, dual):
        return np.clip(primal, -1.5, 1.5), np.clip(dual, -0.5, 0.5)

    def public_gradient(self, primal, dual):
        return dual / 4, primal / 4 - dual / 4

    def penalized(self, primal):
        return np.append(primal[:-1], 0.0)

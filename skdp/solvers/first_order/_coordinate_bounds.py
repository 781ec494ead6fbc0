"""Compute bounds, smoothness constants and clip norms of coordinates and blocks, from public facts."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skdp.samplings import Sampling, draw
from skdp.solvers._base import Problem
from skdp.solvers._noise_limits import bearable_noise

# Number of draws over which sizes and constants of blocks are averaged. A choice; they come from a fixed seed.
PROBES = 32
# Raw predictions of an optimum over the noise that one may gather (1 for log-odds). A choice; a larger value means more steps.
NEAR = 1 / 3
# Largest number of inner steps, and least divisor: choices that keep quotients finite.
MOST_INNER, LEAST_DIVISOR = 1e9, 1e-300


@dataclass(frozen=True)
class Coordinates:
    """Public constants of the coordinates of a problem; the intercept is the last one.

    Parameters
    ----------
    problem : Problem
        Public facts.
    bounds : ndarray of shape (n_coordinates,)
        Bounds on the absolute values of the features, and the constant of the intercept.
    """

    problem: Problem
    bounds: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> "Coordinates":
        """Return the constants of a problem: without ``feature_bounds``, equal parts of ``data_norm``.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        Coordinates
            Bounds are at most ``data_norm``, to which rows are clipped.
        """
        given = problem.feature_bounds
        part = problem.data_norm / math.sqrt(problem.n_features) if given is None else np.asarray(given, dtype=np.float64)
        features = np.broadcast_to(np.minimum(part, problem.data_norm), (problem.n_features,))
        constant = [problem.intercept_scaling] if problem.intercept_scaling else []
        return cls(problem, np.concatenate([features, constant]))

    @property
    def smoothness_of_each(self) -> np.ndarray:
        """Smoothness constants M of single coordinates, of one record's loss and the penalty, shape (n_coordinates,)."""
        return self.slope * self.bounds**2 + self.ridge(np.arange(self.bounds.size))

    @property
    def clip_norms(self) -> np.ndarray:
        """Clip norms of single coordinates, shape (n_coordinates,)."""
        return self.problem.clip_norm * (self.bounds / self.problem.row_norm)

    def clip_norm(self, block: np.ndarray) -> float:
        """Return the clip norm of a block: the problem's, times the share of the row norm that a row can have in the block.

        Parameters
        ----------
        block : ndarray of int
            Sorted numbers of coordinates.

        Returns
        -------
        float
            Positive.
        """
        return float(self.problem.clip_norm * (self._norm(block) / self.problem.row_norm))

    def smoothness(self, block: np.ndarray) -> np.ndarray:
        r"""Return a separable bound v of the smoothness of a block: a step of :math:`1 / v_j` per coordinate is safe.

        For a record with :math:`|x_j| \le B_j`, :math:`(\sum_j x_j h_j)^2 \le \sum_j v_j h_j^2` holds for
        :math:`v_j = B_j \sum_k B_k`, by the Cauchy-Schwarz inequality with weights, and for the squared norm of its part in the
        block; this is taken where no :math:`v_j` is below it.

        Parameters
        ----------
        block : ndarray of int
            Sorted numbers of coordinates.

        Returns
        -------
        ndarray of shape (block.size,)
            Including the smoothness of the penalty.
        """
        # v_j = B_j sum_k B_k, or the squared norm of the part if it is below all of them.
        bounds, isotropic = self.bounds[block], self._norm(block) ** 2
        separate = bounds * bounds.sum()
        loss = np.full(block.size, isotropic) if (separate >= isotropic).all() else separate
        return self.slope * loss + self.ridge(block)

    def _norm(self, block: np.ndarray) -> float:
        """Return a bound on the norm of a row's part in a block."""
        if block.size == 1:
            return float(self.bounds[block[0]])
        features = self.bounds[block[block < self.problem.n_features]]
        constant = self.problem.intercept_scaling if block[-1] == self.problem.n_features else 0.0
        return math.hypot(min(float(np.linalg.norm(features)), self.problem.data_norm), constant)

    def ridge(self, block: np.ndarray) -> np.ndarray:
        """Return the strength of the ridge penalty on the coordinates of a block, 0 for the intercept.

        Parameters
        ----------
        block : ndarray of int
            Numbers of coordinates.

        Returns
        -------
        ndarray of shape (block.size,)
            Its strong convexity and smoothness.
        """
        return np.where(block < self.problem.n_features, self.problem.penalty.strong_convexity, 0.0)

    @property
    def slope(self) -> float:
        """Smoothness of one record's loss in its raw predictions, class weights included."""
        return self.problem.max_weight * self.problem.loss.smoothness


class Terms(NamedTuple):
    """Constants of a sampling in the two theorems: the excess risk is ``distance / (2 K) + K noise / (2 s^2)`` after K steps.

    Parameters
    ----------
    size : float
        Mean number of coordinates in a block.
    distance : float
        Squared distance of the start from an optimum, in the norm in which all steps are 1.
    noise : float
        Noise that a step adds at a signal-to-noise ratio of 1.
    convexity : float
        Strong convexity in that norm.
    risk : float
        Excess risk of the start.
    """

    size: float
    distance: float
    noise: float
    convexity: float
    risk: float

    @classmethod
    def of(cls, coordinates: Coordinates, sampling: Sampling) -> "Terms":
        """Return the constants of a sampling, from a fixed sequence of its draws.

        Parameters
        ----------
        coordinates : Coordinates
            Public constants.
        sampling : Sampling
            Sampling that draws the blocks.

        Returns
        -------
        Terms
            Positive numbers; the convexity is 0 without ridge.
        """
        problem, rng = coordinates.problem, np.random.default_rng(0)
        # Means over a fixed sequence of draws. `coupling` is by how much steps in a block are shorter than those of single
        # coordinates.
        single, n_coordinates = coordinates.smoothness_of_each, problem.shape[0]
        blocks = [draw(sampling, rng, n_coordinates) for _ in range(PROBES)]
        steps = [coordinates.smoothness(block) for block in blocks]
        size = float(np.mean([block.size for block in blocks]))
        coupling = float(np.mean([(step / single[block]).mean() for block, step in zip(blocks, steps, strict=True)]))
        clip_norms = [coordinates.clip_norm(block) for block in blocks]
        noise = float(np.mean([clip**2 * (1 / step).sum() for clip, step in zip(clip_norms, steps, strict=True)]))
        # Risk and distance of an optimum whose raw predictions are NEAR times the noise that they may gather.
        risk = coordinates.slope * (NEAR * bearable_noise(problem)) ** 2
        ratios = coordinates.ridge(np.arange(n_coordinates)) * np.asarray(sampling.probabilities) / (coupling * single)
        convexity = float(ratios[: problem.n_features].min())
        return cls(size, risk * coupling * n_coordinates / size, noise * problem.loss.n_outputs, convexity, risk / 2)

    def convex(self, signal_to_noise: float) -> float:
        """Return the number of steps at which both terms of the excess risk are equal.

        Parameters
        ----------
        signal_to_noise : float
            Signal-to-noise ratio of the problem.

        Returns
        -------
        float
            Positive.
        """
        return signal_to_noise * math.sqrt(self.distance / max(self.noise, LEAST_DIVISOR))

    def strongly_convex(self, signal_to_noise: float) -> tuple[int, int]:
        """Return the number of rounds, and of steps per round: each round halves the excess risk down to that of the noise.

        Parameters
        ----------
        signal_to_noise : float
            Signal-to-noise ratio of the problem.

        Returns
        -------
        tuple of int
            T and K.
        """
        # A round of K steps halves the risk; T rounds take it down to what the noise of one round leaves.
        n_inner = math.ceil(min(2 * (1 + 1 / max(self.convexity, LEAST_DIVISOR)), MOST_INNER))
        floor = max(n_inner * self.noise / 2 / signal_to_noise**2, LEAST_DIVISOR)
        return 1 + math.ceil(math.log2(max(self.risk / floor, 1.0))), n_inner

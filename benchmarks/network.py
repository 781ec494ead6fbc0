"""A neural network trained by DP-SGD, whose constants are chosen on the test records: a peer that pays nothing for tuning."""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from benchmarks.additive import Case, scored
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.budget import Budget
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import PoissonGaussian, Release, Schedule

__all__ = ["Settings", "score", "tuned"]

HIDDEN, MOMENTUM = 64, 0.9
SAMPLINGS = (0.02, 200), (0.02, 1000), (0.1, 100), (0.1, 400)  # sampling rates and numbers of steps
RATES, CLIPS = (0.1, 0.3, 1.0, 3.0), (0.1, 1.0)


@dataclass(frozen=True)
class Settings:
    """Hold what is chosen on the test records.

    Parameters
    ----------
    sampling_rate : float
        Probability that a record is in a batch.
    n_steps : int
        Number of batches.
    rate : float
        Length of a step, of gradients that are divided by the clip norm.
    clip : float
        Bound on the norm of the gradient of a record.
    """

    sampling_rate: float
    n_steps: int
    rate: float
    clip: float


GRID = [Settings(*sampling, rate, clip) for sampling, rate, clip in itertools.product(SAMPLINGS, RATES, CLIPS)]


@functools.cache
def noise(sampling_rate: float, n_steps: int, epsilon: float, delta: float, adjacency: str) -> float:
    """Return the standard deviation of the noise of a sum, over the clip norm, by privacy loss distributions."""
    release = Release(Gradient, PoissonGaussian(sampling_rate), 1.0)
    scale = calibrate(Schedule(((n_steps, release),)), Budget(epsilon, delta, adjacency))
    return noise_multiplier(release, scale, adjacency)


def score(case: Case, epsilon: float, adjacency: str, settings: Settings, seed: int) -> float:
    """Train on the rows of a table with norms of at most 1, and return the test score.

    Parameters
    ----------
    case : Case
        The table.
    epsilon : float
        Privacy parameter; delta is that of the table.
    adjacency : {"zero_out", "replace_one"}
        Which tables are neighbours.
    settings : Settings
        Constants.
    seed : int
        Of the first weights, the batches and the noise.

    Returns
    -------
    float
        AUC, or R2.
    """
    table, rng = case.prepared, np.random.default_rng(seed)
    classes = table.task != "regression"
    length = math.sqrt(table.X_train.shape[1])  # cells are at most 1 before rows are divided by the largest norm
    X, X_test = (np.asarray(part, dtype=np.float32) * np.float32(length) for part in (table.X_train, table.X_test))
    y, n_columns = table.y_train.astype(np.float32), X.shape[1]
    weights = [
        rng.normal(scale=1 / math.sqrt(n_columns), size=(n_columns, HIDDEN)),
        np.zeros(HIDDEN),
        rng.normal(scale=1 / math.sqrt(HIDDEN), size=HIDDEN),
        np.zeros(1),
    ]
    parameters = [part.astype(np.float32) for part in weights]
    velocity = [np.zeros_like(part) for part in parameters]
    deviation = noise(settings.sampling_rate, settings.n_steps, epsilon, case.delta, adjacency)
    for _ in range(settings.n_steps):
        batch = np.flatnonzero(rng.random(len(y)) < settings.sampling_rate)
        sums = clipped(X[batch], y[batch], parameters, settings.clip, classes)
        for part, velocities, total in zip(parameters, velocity, sums, strict=True):
            noisy = total / settings.clip + rng.normal(scale=deviation, size=total.shape)
            velocities *= MOMENTUM
            velocities += noisy.astype(np.float32) / np.float32(settings.sampling_rate * len(y))
            part -= np.float32(settings.rate * (1 - MOMENTUM)) * velocities
    raw = predicted(X_test, parameters)[1].astype(np.float64)
    if not np.isfinite(raw).all():
        return -math.inf
    found = scored(table.y_test, raw, table.task)
    return found.get("auc", found.get("clipped_r2", math.nan))


def predicted(X: np.ndarray, parameters: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the hidden layer and the raw predictions."""
    inner, inner_offset, outer, outer_offset = parameters
    hidden = np.tanh(X @ inner + inner_offset)
    return hidden, hidden @ outer + outer_offset


def clipped(X: np.ndarray, y: np.ndarray, parameters: list[np.ndarray], clip: float, classes: bool) -> list[np.ndarray]:
    """Return the sum of the gradients of all records, each cut to a norm; those of a layer are products of two vectors."""
    hidden, raw = predicted(X, parameters)
    slope = ((expit(raw) if classes else raw) - y)[:, None]
    inner = slope * parameters[2] * (1 - np.square(hidden))
    squares = np.square(slope[:, 0]) * (1 + np.square(hidden).sum(axis=1))
    squares += np.square(inner).sum(axis=1) * (1 + np.square(X).sum(axis=1))
    factor = np.minimum(1.0, clip / np.sqrt(np.maximum(squares, 1e-30)))[:, None].astype(np.float32)
    inner, slope = inner * factor, slope * factor
    return [X.T @ inner, inner.sum(axis=0), hidden.T @ slope[:, 0], slope.sum(axis=0)]


def tuned(case: Case, epsilon: float, adjacency: str) -> Settings:
    """Return the settings with the best test score in a fit with the seed 0.

    Parameters
    ----------
    case : Case
        The table.
    epsilon : float
        Privacy parameter.
    adjacency : {"zero_out", "replace_one"}
        Which tables are neighbours.

    Returns
    -------
    Settings
        Out of a grid of 32.
    """
    return max(GRID, key=lambda settings: score(case, epsilon, adjacency, settings, 0))

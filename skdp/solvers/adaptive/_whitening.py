"""Private centre, radius, whitening and usual gradient of a regression: the releases before the steps of "whitened_gd"."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skdp.privacy.queries import (
    DistanceHistogram,
    FeatureTargetSums,
    Gradient,
    ResidualHistogram,
    SecondMoment,
    Standardization,
    Whitening,
    symmetric,
)
from skdp.solvers._base import Ask, Problem
from skdp.solvers._released import ReleasedMoments
from skdp.solvers.adaptive._shrinkage import deconvolved, half_edge, noisy_quantile

__all__ = [
    "BINS",
    "PRIOR",
    "Centre",
    "Frame",
    "Shares",
    "half_vector_noise",
    "hopeless",
    "hopelessness",
    "release_centre",
    "release_frame",
    "release_gradient_norm",
]

BINS = 12  # ranges of a histogram
BESIDE = 1 + 2.0**-30  # how rows of length 1 are rounded depends on their storage, which one record may decide for all
RADIUS_LEVEL, LEAST_TRACE = 0.6, 0.7  # quantile of the lengths that the radius is, and least trace of the second moment there
FLOOR = 0.5  # of the eigenvalues, over the half edge of their noise
HIGH_LEVEL, LOW_LEVEL, LEVEL_SCALE = 0.9, 0.4, 0.15  # quantile of the gradients, and how it falls with the noise
LARGEST_LENGTH = 4.0  # of gradients, over the usual norm of a row
HOPELESS = 0.8  # noise of a mean, times the size of the problem, from which nothing is told of the features
LEAST_SIZE, MOST_SIZE = 5, 25  # the size is d + 5, and 25 at most
PRIOR = 0.1  # variance of the mean of the targets before any release
SINGULAR = 1e-12  # without noise: floor of the eigenvalues


class Shares(NamedTuple):
    """Parts of the squared Gaussian-DP parameter; together they are 1."""

    means: float
    histogram: float
    moment: float
    warm_up: float
    steps: float


@dataclass(frozen=True)
class Centre:
    """Means of the features, over the data norm, and of the targets, with the variance of the latter's error."""

    features: np.ndarray
    target: float
    variance: float
    released: ReleasedMoments | None = None


@dataclass(frozen=True)
class Frame:
    """The geometry of the steps.

    Parameters
    ----------
    geometry : Standardization
        Map from rows to z.
    curvature, penalty : ndarray of shape (n_coordinates,)
        Of the mean loss and of the penalty, as far as the releases tell; together at most 1.
    """

    geometry: Standardization
    curvature: np.ndarray
    penalty: np.ndarray

    @property
    def size(self) -> float:
        """Usual squared norm of z."""
        return max(float(self.curvature.sum()), 0.5)


def hopeless(problem: Problem) -> bool:
    """Whether the noise of a mean leaves nothing of the features to be told."""
    return hopelessness(problem) is not None


def hopelessness(problem: Problem) -> float | None:
    """Noise of a mean over the largest that leaves something of the features to be told; None where it leaves something."""
    level = min(problem.n_features + LEAST_SIZE, MOST_SIZE) / (problem.signal_to_noise * HOPELESS)
    return level if level >= 1 else None


def release_centre(problem: Problem, shares: Shares, ask: Ask) -> Centre:
    """Means of features and targets, shrunk by how noisy they are."""
    n, d = problem.n_samples, problem.n_features
    if not shares.means:
        return Centre(np.zeros(d), 0.0, 0.0)
    answer = ask(FeatureTargetSums(problem.data_norm, d)) / n
    noise = math.sqrt(2 / shares.means) / problem.signal_to_noise
    released = ReleasedMoments(problem.data_norm * answer[:d], problem.data_norm * noise, None, 0.0, float(answer[d]), noise)
    features, target = answer[:d], min(max(float(answer[d]), -1.0), 1.0)
    length = float(np.linalg.norm(features))
    features = features * max(0.0, 1 - d * noise**2 / max(length**2, 1e-300)) / max(length, 1.0)
    known = PRIOR / (PRIOR + noise**2)
    return Centre(features, target * known, noise**2 * known, released)


def release_frame(problem: Problem, shares: Shares, centre: Centre, ask: Ask) -> Frame:
    """Radius of the rows around their centre, and the geometry in which they are white within it.

    Without a second moment all features are scaled alike, by the geometric mean of what suits equal eigenvalues and a single one.
    """
    n, d, norm = problem.n_samples, problem.n_features, problem.data_norm
    intercept, top = bool(problem.intercept_scaling), 1 + float(np.linalg.norm(centre.features))
    radius, trace = top, LEAST_TRACE / 2
    if shares.histogram:
        edges = ranges(top)
        lengths = Standardization(norm * centre.features, np.full(d, 1 / norm), intercept, norm)
        counts = ask(DistanceHistogram(lengths, edges))
        if problem.budget.private:
            radius, trace = noisy_quantile(counts, edges, RADIUS_LEVEL, n), LEAST_TRACE
    unit = Standardization(norm * centre.features, np.full(d, 1 / (norm * radius)), intercept, norm)
    ridge = problem.alpha / (norm * radius) ** 2
    if not shares.moment:
        size = trace / math.sqrt(d) + FLOOR * half_edge(half_vector_noise(problem), d) + ridge
        geometry = Standardization(unit.centre, unit.scale / math.sqrt(size), intercept, norm)
        return _frame_of(geometry, np.full(d, trace / d), size, ridge)
    noise = half_vector_noise(problem) / math.sqrt(shares.moment)
    values, vectors = np.linalg.eigh(symmetric(ask(SecondMoment(unit)) / n, d))
    values = deconvolved(values, half_edge(noise, d), trace)
    sizes = values + max(FLOOR * half_edge(noise, d), SINGULAR) + ridge
    geometry = Whitening(unit.centre, vectors / np.sqrt(sizes) / (norm * radius), intercept, norm)
    return _frame_of(geometry, values, sizes, ridge)


def release_gradient_norm(problem: Problem, shares: Shares, centre: Centre, frame: Frame, ask: Ask) -> tuple[float | None, float]:
    """A quantile of the norms of the gradients at the mean target, None where it is not known, and of which level."""
    if not shares.histogram:
        return None, HIGH_LEVEL
    edges = ranges(LARGEST_LENGTH * math.sqrt(frame.size))
    counts = ask(ResidualHistogram(frame.geometry, edges, centre.target))
    noise = frame.size / (problem.signal_to_noise * math.sqrt(shares.warm_up + shares.steps))
    level = HIGH_LEVEL - (HIGH_LEVEL - LOW_LEVEL) * min(1.0, noise / LEVEL_SCALE)
    return noisy_quantile(counts, edges, level, problem.n_samples), level


def ranges(top: float) -> np.ndarray:
    """Upper ends of the ranges of a histogram, a little above round lengths such as 1, to which transformers scale rows."""
    return BESIDE * top * 2.0 ** (-np.arange(BINS)[::-1] / 2)


def half_vector_noise(problem: Problem) -> float:
    """Noise, per record, of a release of sensitivity 1 or sqrt(2) with the whole budget."""
    adjacency = problem.budget.adjacency
    relative = SecondMoment.relative_sensitivity[adjacency] / Gradient.relative_sensitivity[adjacency]
    return relative / problem.signal_to_noise


def _frame_of(geometry: Standardization, values: np.ndarray, sizes: np.ndarray | float, ridge: float) -> Frame:
    """Frame from eigenvalues and what they were divided by."""
    intercept = float(geometry.intercept)
    curvature, penalty = values / sizes, np.full(values.size, ridge) / sizes
    if intercept:
        curvature, penalty = np.append(curvature, 1.0), np.append(penalty, 0.0)
    return Frame(geometry, curvature, penalty)

"""Release centre, radius, whitening and usual gradient norm of a regression, before the steps of "whitened_gd"."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincinv

from skdp.privacy.queries import (
    DistanceHistogram,
    FeatureTargetSums,
    Gradient,
    Query,
    ResidualHistogram,
    SecondMoment,
    Standardization,
    Whitening,
    symmetric,
)
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers._base import Ask, Problem
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._standardization import james_stein
from skdp.solvers.adaptive._shrinkage import deconvolved, half_edge, noisy_quantile

# Where no source is named, the constants were chosen on california, bike and 13 small or generated tables (docs/defaults.md).

# Number of ranges of a histogram, whose ends grow by the root of 2. Fewer or wider ranges lost tables with small residuals; more
# have more noise in a cumulated share.
BINS = 12
# Number of those of residuals where the noise of a count is at most SHARP of the records. Residuals can be small beside the range
# of the targets: with a range 64 times as wide as needed, 20 in place of 12 raised R2 of additive and boosted models from .59 and
# below 0 to .76 and .84 (epsilon 1, 15 000 made-up records). At epsilon .1, where the noise is .04, 20 lost up to .04.
RESIDUAL_BINS, SHARP = 20, 0.02
# Factor of the ends of the ranges, so that no row of length 1 is at one: how such a length is rounded depends on the storage of
# the table, which one record may decide for all. Any value above the rounding errors will do.
BESIDE = 1 + 2.0**-30
# The radius is this quantile of the lengths of the rows: .4 and .8 lost up to .1 of R2 on single tables and gained up to .03.
# LEAST_TRACE is the least trace of the second moment of rows clipped to that radius; it is at least .4, and mostly above .7.
RADIUS_LEVEL, LEAST_TRACE = 0.6, 0.7
# Floor of the eigenvalues, over the half edge of their noise. A smaller one scales noisy directions up, a larger one whitens
# less: 1 lost up to .04 of R2, and .25 was within .02.
FLOOR = 0.5
# The clip norm is this quantile of the gradients' norms, where noise is 0 and from LEVEL_SCALE on, linear between them. A higher
# quantile has less bias and more noise: .99 in place of .9 gained up to .058 of R2 for skewed targets, and lost at most .004.
# FALLBACK_LEVEL stands for the share of the gradients below a clip norm that follows from no histogram.
HIGH_LEVEL, LOW_LEVEL, LEVEL_SCALE, FALLBACK_LEVEL = 0.99, 0.4, 0.15, 0.9
USUAL_LEVEL = 0.9  # of the quantile from which the scale of residuals follows that trees clip by, at most
# Upper end of the histogram of the gradients' norms, over the usual norm of z, for targets in [-1, 1]. A choice: longer gradients
# count as this.
LARGEST_LENGTH = 4.0
# Noise of a mean times the size of the problem, from which on the solver learns nothing about the features. The size is
# d + LEAST_SIZE, and at most MOST_SIZE. A larger limit fits features on smaller tables: at 1.2 medians rose by up to .08 of R2,
# while the worst tenth fell from -.24 to -.67.
HOPELESS = 0.8
LEAST_SIZE, MOST_SIZE = 5, 25
# Prior variance of the mean of the targets in [-1, 1], to be divided among several. A smaller value shrinks the released mean
# more.
PRIOR = 0.1
# Floor of the eigenvalues for epsilon=inf, over the squared radius: float64 solves what is above it. A choice.
SINGULAR = 1e-12


class Shares(NamedTuple):
    """Shares of the squared Gaussian-DP parameter; they add up to 1."""

    means: float
    histogram: float
    moment: float
    warm_up: float
    steps: float


@dataclass(frozen=True)
class Centre:
    """Means of the features over the data norm, means of the targets, and variance of the error of each of the latter."""

    features: np.ndarray
    targets: np.ndarray
    variance: float
    released: ReleasedMoments | None = None


@dataclass(frozen=True)
class Frame:
    """Geometry of the steps.

    Parameters
    ----------
    geometry : Standardization
        Map from rows to z.
    curvature, penalty : ndarray of shape (n_coordinates,)
        Estimated second derivatives of the mean loss and of the penalty; their sum is at most 1.
    errors : ndarray of shape (n_coordinates,)
        Standard deviations of the noise of the second moment of z, on its diagonal; 0 for the intercept.
    """

    geometry: Standardization
    curvature: np.ndarray
    penalty: np.ndarray
    errors: np.ndarray

    @property
    def size(self) -> float:
        """Usual squared norm of z."""
        return max(float(self.curvature.sum()), 0.5)


def releases(kinds: Iterable[tuple[int, float, type[Query], float | None, int | None]]) -> tuple[tuple[int, Release], ...]:
    """Return the entries of a schedule, from count, common share, query, clip norm and size of each; a share of 0 drops one."""
    return tuple(
        (count, Release(query, Gaussian(math.sqrt(count / share)), bound, size))
        for count, share, query, bound, size in kinds
        if share
    )


def hopeless(problem: Problem) -> bool:
    """Tell whether noise hides the features, so that the solver fits a constant only."""
    return hopelessness(problem) is not None


def hopelessness(problem: Problem) -> float | None:
    """Return the noise of a mean over the largest with which features are fitted; None where it is smaller than that.

    Each of q targets has a root of q less of the signal, because the vector of them has norm at most 1.
    """
    signal = problem.planned.signal_to_noise / math.sqrt(problem.loss.n_outputs)
    level = max(min(problem.n_features + LEAST_SIZE, MOST_SIZE) / (signal * HOPELESS), problem.faintness)
    return level if level >= 1 else None


def release_centre(problem: Problem, shares: Shares, ask: Ask) -> Centre:
    """Ask for the means of features and targets, and shrink them, more the noisier they are."""
    n, d, q = problem.n_samples, problem.n_features, problem.loss.n_outputs
    if not shares.means:
        return Centre(np.zeros(d), np.zeros(q), 0.0)
    # The sensitivity is sqrt(2) times that of a clipped sum, and so is the noise of the means.
    answer = ask(FeatureTargetSums(problem.data_norm, d, q)) / n
    noise, single = math.sqrt(2 / shares.means) / problem.signal_to_noise, float(answer[d]) if q == 1 else None
    released = ReleasedMoments(problem.data_norm * answer[:d], problem.data_norm * noise, target=single, target_noise=noise)
    features, targets = answer[:d], np.clip(answer[d:], -1 / math.sqrt(q), 1 / math.sqrt(q))
    features = shrunk_mean(features, noise)
    # Posterior mean and variance of the targets' means, for a normal prior around 0; `james_stein` shrinks the features.
    prior = PRIOR / q
    known = prior / (prior + noise**2)
    return Centre(features, targets * known, noise**2 * known, released)


def shrunk_mean(features: np.ndarray, noise: float) -> np.ndarray:
    """Return a noisy mean of features over the data norm: shrunk, and no longer than it may be."""
    length = float(np.linalg.norm(features))
    return features * james_stein(features.size, noise**2, length**2) / max(length, 1.0)


def release_frame(problem: Problem, shares: Shares, centre: Centre, ask: Ask) -> Frame:
    """Ask for the radius of the rows around their centre and for the second moment within it, and return the whitening.

    Without a second moment all features have the same scale: the geometric mean of those that suit equal eigenvalues and a
    single one.
    """
    n, d, norm = problem.n_samples, problem.n_features, problem.data_norm
    intercept, top = bool(problem.intercept_scaling), 1 + float(np.linalg.norm(centre.features))
    # 1. The radius B of the rows around their centre: a quantile of their lengths, which are at most `top` data norms.
    radius, trace = top, LEAST_TRACE / 2
    if shares.histogram:
        edges = ranges(top)
        lengths = Standardization(norm * centre.features, np.full(d, 1 / norm), intercept, norm)
        counts = ask(DistanceHistogram(lengths, edges))
        if problem.budget.private:
            radius, trace = noisy_quantile(counts, edges, RADIUS_LEVEL, n), LEAST_TRACE
    # 2. The second moment of x - m over B, for rows that are clipped to norm 1 again.
    unit = Standardization(norm * centre.features, np.full(d, 1 / (norm * radius)), intercept, norm)
    ridge = problem.alpha / (norm * radius) ** 2
    if not shares.moment:
        # The eigenvalues are between trace / d, if all are equal, and trace, if there is one.
        size = trace / math.sqrt(d) + FLOOR * half_edge(half_vector_noise(problem), d) + ridge
        geometry = Standardization(unit.centre, unit.scale / math.sqrt(size), intercept, norm)
        return _frame_of(geometry, np.full(d, trace / d), size, ridge, 0.0)
    noise = half_vector_noise(problem) / math.sqrt(shares.moment)
    # 3. The whitening A = V (h + f)^(-1/2), with eigenvalues h without noise, and a floor f that follows the noise.
    values, vectors = np.linalg.eigh(symmetric(ask(SecondMoment(unit)) / n, d))
    values = deconvolved(values, half_edge(noise, d), trace)
    sizes = values + max(FLOOR * half_edge(noise, d), SINGULAR) + ridge
    geometry = Whitening(unit.centre, vectors / np.sqrt(sizes) / (norm * radius), intercept, norm)
    return _frame_of(geometry, values, sizes, ridge, noise)


def release_gradient_norm(
    problem: Problem, shares: Shares, centre: Centre, frame: Frame, ask: Ask
) -> tuple[float | None, float, float | None]:
    """Ask for norms of gradients at the mean target; return a quantile, its level, and the usual norm of long ones.

    The latter is a quantile of at most `USUAL_LEVEL`, which few large residuals do not move. Without a histogram, both are None.
    """
    if not shares.histogram:
        return None, FALLBACK_LEVEL, None
    edges = ranges(LARGEST_LENGTH * math.sqrt(frame.size), residual_bins(problem, shares))
    counts = ask(ResidualHistogram(frame.geometry, edges, centre.targets))
    # Noise of a raw prediction after one full step: a clip norm of the usual length of z makes sqrt(size) / s per coordinate of a
    # mean gradient, and z has the usual squared norm `size`.
    noise = frame.size / (problem.signal_to_noise * math.sqrt(shares.warm_up + shares.steps)) * math.sqrt(problem.loss.n_outputs)
    level = HIGH_LEVEL - (HIGH_LEVEL - LOW_LEVEL) * min(1.0, noise / LEVEL_SCALE)
    quantile, usual = (noisy_quantile(counts, edges, q, problem.n_samples) for q in (level, min(level, USUAL_LEVEL)))
    if problem.loss.n_outputs > 1:
        quantile, level = _lowered(quantile, level, problem.loss.n_outputs)
    return quantile, level, usual


def _lowered(quantile: float, level: float, n_outputs: int) -> tuple[float, float]:
    """Return a clip norm that is the same multiple of the root mean square as for one output, or less, and its level.

    Norms of many residuals are all alike, so that a low quantile of them is not short. Residuals count as normal here.
    """
    # The square of one normal residual, and of the norm of n_outputs of them, follow gamma laws with these shapes.
    alone, half = 2 * float(gammaincinv(0.5, level)), n_outputs / 2  # squares, over the mean square
    ratio = min(1.0, alone * half / float(gammaincinv(half, level)))
    return quantile * math.sqrt(ratio), float(gammainc(half, ratio * gammaincinv(half, level)))


def residual_bins(problem: Problem, shares: Shares) -> int:
    """Return the number of ranges of the residuals."""
    problem = problem.planned
    noise = half_vector_noise(problem) * math.sqrt(problem.loss.n_outputs / shares.histogram) if shares.histogram else math.inf
    return RESIDUAL_BINS if noise <= SHARP else BINS


def ranges(top: float, number: int = BINS) -> np.ndarray:
    """Return the upper ends of a histogram's ranges, a little above round lengths such as 1, to which transformers scale rows."""
    return BESIDE * top * 2.0 ** (-np.arange(number)[::-1] / 2)


def half_vector_noise(problem: Problem) -> float:
    """Return the noise over n of a release with sensitivity 1 (sqrt(2) under ``replace_one``) and the whole budget."""
    adjacency = problem.budget.adjacency
    relative = SecondMoment.relative_sensitivity[adjacency] / Gradient.relative_sensitivity[adjacency]
    return relative / problem.signal_to_noise


def _frame_of(geometry: Standardization, values: np.ndarray, sizes: np.ndarray | float, ridge: float, noise: float) -> Frame:
    """Return the frame from eigenvalues, their divisors, and the noise of the second moment."""
    # In z the second moment h, the ridge and the noise are divided by h + f + ridge; a curvature is at most 1. The intercept has
    # the curvature of its constant 1.
    curvature, penalty, errors = values / sizes, np.full(values.size, ridge) / sizes, np.full(values.size, noise) / sizes
    if geometry.intercept:
        curvature, penalty, errors = np.append(curvature, 1.0), np.append(penalty, 0.0), np.append(errors, 0.0)
    return Frame(geometry, curvature, penalty, errors)

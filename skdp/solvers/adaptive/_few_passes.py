"""Whiten the features of a large table and set the lengths of accelerated steps, for fits in few passes."""

import math

import numpy as np

from skdp.privacy.queries import Gradient, SecondMoment, Standardization, Whitening, symmetric
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers._base import Problem
from skdp.solvers._class_frequencies import ClassFrequencies
from skdp.solvers._standardization import LEAST_SPREAD, Standard
from skdp.solvers.adaptive._shrinkage import half_edge

# The constants were chosen on one half of a set of generated designs and confirmed on the other half (docs/defaults.md).

# Number of records above which a fit makes few passes: then a pass is what costs. A choice.
LARGE = 10**7
# Number of steps. With frequencies and two kinds of moments a fit has 38 passes; 25 steps left an excess log loss of 4e-4 where
# classes are nearly separated, 35 steps 3e-7.
FEW = 35
# Share of the second moment in what the steps would have. A choice: a larger value whitens better and makes gradients noisier.
MOMENT_SHARE = 0.05
# Norm to which standardised rows are clipped in the second moment, over their usual norm. 2 in place of 4 changed nothing.
WIDEST_ROW = 2.0
# Floor of the eigenvalues: FLOOR times the half edge of their noise, plus SINGULAR, which bounds the scale where there is hardly
# any noise. Choices; a larger floor whitens less.
FLOOR, SINGULAR = 1.0, 1e-6
# Largest clip norm over the usual norm of a white row. Rows of skewed features are longer in these coordinates. A larger value
# has less bias and more noise.
WIDEST_WHITE_CLIP = 16.0
# First step length for several outputs, over that for one: the curvature of the softmax reaches its bound only between two
# classes. 1 in place of 1.5 left 5.6e-5 in place of 3.4e-5 where five classes are nearly separated.
LONGER = 1.5
# Share of the last steps whose points are averaged: .5 in place of .3 left 8e-5 where classes are nearly separated.
TAIL = 0.3


def moment_query(standard: Standard) -> SecondMoment:
    """Return the query for the second moment of standardised rows, over the square of the norm to which they are clipped."""
    geometry = standard.geometry
    scale = geometry.scale / (WIDEST_ROW * math.sqrt(standard.usual))
    return SecondMoment(Standardization(geometry.centre, scale, geometry.intercept, geometry.data_norm))


def moment_release(problem: Problem, share: float) -> Release:
    """Return the release of the second moment, with a share of the squared Gaussian-DP parameter."""
    size = problem.n_features * (problem.n_features + 1) // 2
    return Release(SecondMoment, Gaussian(share**-0.5), 1.0, size)


def whitened(problem: Problem, standard: Standard, answer: np.ndarray, share: float) -> Standard:
    r"""Return coordinates in which rows are white, from their released second moment.

    Parameters
    ----------
    problem : Problem
        Public facts.
    standard : Standard
        Centre and scale of the features.
    answer : ndarray of shape (d (d + 1) / 2,)
        Answer to `moment_query`.
    share : float
        Share of the squared Gaussian-DP parameter that the answer has.

    Returns
    -------
    Standard
        Coordinates :math:`z = A^\top (x - m)`. The columns of A are orthogonal, so that a ridge penalty on the coefficients
        of x is one on those of z.
    """
    d, adjacency = problem.n_features, problem.budget.adjacency
    unit = WIDEST_ROW**2 * standard.usual
    # The answer is over the unit to which rows were clipped, n times: back to the second moment of z, and its noise.
    relative = SecondMoment.relative_sensitivity[adjacency] / Gradient.relative_sensitivity[adjacency]
    noise = unit * relative / (problem.signal_to_noise * math.sqrt(share))
    values, vectors = np.linalg.eigh(unit * symmetric(answer / problem.n_samples, d))
    values = np.maximum(values, 0.0)
    # A0 = S V (h + f)^(-1/2), with the scale S of the first moments, whitens x - m. Its singular values give A0 = U T W', and A =
    # A0 W = U T whitens as well, up to a rotation by W, and has orthogonal columns. In those coordinates the variance of column k
    # is the sum of W_jk^2 h_j / (h_j + f_j).
    sizes = values + FLOOR * half_edge(noise, d) + SINGULAR
    rows, scale, turn = np.linalg.svd(standard.geometry.scale[:, None] * vectors / np.sqrt(sizes))
    variances = np.square(turn) @ (values / sizes)
    geometry = standard.geometry
    geometry = Whitening(geometry.centre, rows * scale, geometry.intercept, geometry.data_norm)
    return Standard(geometry, variances, max(float(geometry.intercept) + float(variances.sum()), LEAST_SPREAD))


def first_lengths(problem: Problem, classes: ClassFrequencies, smoothness: float) -> tuple[np.ndarray, float]:
    """Return the first step length of each output, and the largest one that is stable for every table.

    Parameters
    ----------
    problem : Problem
        Public facts.
    classes : ClassFrequencies
        Frequencies and weights of the classes.
    smoothness : float
        Largest second derivative of the loss.

    Returns
    -------
    first : ndarray of shape (n_outputs,)
        Steps for the geometric mean of the largest curvature and of that of a constant prediction: a rare class has a flat loss.
    stable : float
        The inverse of the largest curvature.
    """
    stable = classes.mean_weight / (problem.max_weight * smoothness)
    shares = np.array(classes.shares[-problem.loss.n_outputs :])
    if problem.class_weight is not None or classes.class_weight is not None:
        return np.full(problem.loss.n_outputs, stable), stable
    # A class of frequency p has at most the curvature p (1 - p) at a constant prediction, and 1/4 at the most elsewhere: the
    # geometric mean of p (1 - p) and 1/4 over 1/4 is 2 sqrt(p (1 - p)).
    longer = LONGER if problem.loss.n_outputs > 1 else 1.0
    return longer * stable / np.minimum(2 * np.sqrt(shares * (1 - shares)), 1.0), stable

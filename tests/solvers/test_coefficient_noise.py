"""Noise of released coefficients: the recursion, the algebra of standard errors, and how fits of the same records differ."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import seeded
import sklearn
from marks import slow
from packaging.version import Version
from scipy import sparse

from skdp import DPLinearRegression, DPLogisticRegression, NotPrivateWarning
from skdp.losses import Multinomial
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.queries import ClassCounts, SlopeDerivatives, Standardization, StandardizedGradient, Whitening
from skdp.solvers import CoefficientNoise, Problem, StandardizedGradientDescent, WhitenedGradientDescent
from skdp.solvers._standardization import Standard
from skdp.solvers.adaptive._iterate_noise import NoisySteps, clipped_bend, variances_left
from skdp.solvers.adaptive._shrinkage import momentum_gains

pytestmark = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"),
    reason="NumPy and SciPy alone, which are the newest beside every scikit-learn: once is enough",
)

RNG = np.random.default_rng(0)
RESULTS = []  # of all fits: an estimator runs a copy of its solver


class Standardized(StandardizedGradientDescent):
    """The same, but its results are kept."""

    def solve(self, problem, ask, rng):
        RESULTS.append(super().solve(problem, ask, rng))
        return RESULTS[-1]


class Whitened(WhitenedGradientDescent):
    """The same, but its results are kept."""

    def solve(self, problem, ask, rng):
        RESULTS.append(super().solve(problem, ask, rng))
        return RESULTS[-1]


def records(n, d=4, n_classes=2, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) / np.sqrt(d)
    return X, rng.integers(n_classes, size=n)


def fitted(kind, X, y, epsilon=1.0, seed=0, **params):
    if kind == "classes":
        solver, estimator = Standardized(**params), DPLogisticRegression
        model = estimator(epsilon, delta=1e-8, data_norm=1.0, solver=solver)
    else:
        solver = Whitened(**params)
        model = DPLinearRegression(epsilon, delta=1e-8, data_norm=1.0, target_bounds=(-1, 1), solver=solver)
        y = y - 0.5 if y.dtype.kind == "i" else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        seeded.fitted(model, X, y, seed=seed)
    return model, RESULTS[-1].noise


@pytest.mark.parametrize("momentum", (0.0, 0.8))
@pytest.mark.parametrize("warm_up, n_steps", ((0, 1), (0, 7), (3, 8), (9, 10)))
def test_gains_are_those_of_the_recursion_run_with_noise(momentum, warm_up, n_steps):
    curvature, penalty, step = np.array([0.0, 0.05, 0.4]), np.array([0.0, 0.02, 0.001]), 1.7
    noise = RNG.normal(size=(3, n_steps))
    theta, velocity, average = np.zeros((3, 3))
    for number in range(n_steps):
        velocity = momentum * velocity + curvature * theta + noise[:, number]
        theta = (theta - step * velocity) / (1 + step / (1 - momentum) * penalty)
        if number >= warm_up:
            average = average + theta / (n_steps - warm_up)
    gains = momentum_gains(step, momentum, curvature, penalty, warm_up, n_steps)
    assert (gains * noise).sum(axis=1) == pytest.approx(average, rel=1e-12)


def test_variances_of_steps_fall_with_the_curvature():
    steps = NoisySteps(30, 15, 5.4, 0.8, 0.002)
    variances = steps.variances(np.array([0.0, 1e-4, 1e-3, 1e-2]), np.zeros(4))
    assert (np.diff(variances) < 0).all()


@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, sparse.csr_matrix))
@pytest.mark.parametrize("white", (False, True))
@pytest.mark.parametrize("intercept", (False, True))
@pytest.mark.parametrize("n_outputs", (1, 3))
def test_standard_errors_are_those_of_the_covariance_written_out(storage, white, intercept, n_outputs):
    d = 5
    scale = RNG.normal(size=(d, d)) if white else RNG.uniform(0.5, 2.0, d)
    geometry = (Whitening if white else Standardization)(RNG.normal(size=d) * intercept, scale, intercept, 1.0)
    estimates, variances = RNG.normal(size=(d + intercept, n_outputs)), RNG.uniform(0.1, 1.0, (d + intercept, n_outputs))
    noise = CoefficientNoise(geometry, estimates, variances, slope_variance=0.3, unit=7.0)
    rows, matrix = RNG.normal(size=(6, d)) * (RNG.uniform(size=(6, d)) < 0.5), scale if white else np.diag(scale)
    stated = noise.standard_errors(storage(rows))
    assert stated.shape == (6, n_outputs)
    for k in range(n_outputs):
        coef = matrix @ estimates[:d, k]
        covariance = matrix @ np.diag(variances[:d, k]) @ matrix.T + 0.3 * np.outer(coef, coef)
        assert stated[:, k] == pytest.approx(7.0 * np.sqrt(np.diag(rows @ covariance @ rows.T)))


@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, sparse.csr_matrix))
def test_blocks_replace_the_variances_of_their_features(storage):
    d, root = 5, RNG.normal(size=(2, 2))
    geometry = Standardization(np.zeros(d), RNG.uniform(0.5, 2.0, d), True, 1.0)
    variances = RNG.uniform(0.1, 1.0, (d + 1, 1))
    noise = CoefficientNoise(geometry, np.zeros((d + 1, 1)), variances, blocks=((1, root @ root.T),))
    covariance = np.diag(np.square(geometry.scale) * variances[:d, 0])
    covariance[1:3, 1:3] = root @ root.T
    rows = RNG.normal(size=(6, d))
    assert noise.standard_errors(storage(rows))[:, 0] == pytest.approx(np.sqrt(np.diag(rows @ covariance @ rows.T)))


@pytest.mark.parametrize("kind", ("classes", "numbers"))
def test_without_privacy_there_is_no_noise(kind):
    X, y = records(300)
    _, noise = fitted(kind, X, y, epsilon=float("inf"))
    assert not noise.variances.any()
    assert not noise.standard_errors(X[:3]).any()


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_gradients_of_nothing_but_noise_leave_what_is_stated(adjacency):
    """No records, three classes: 100 fits of 60 coefficients over their standard errors, so the mean square is 1 +- 0.02.

    Six times that, 0.12, has a probability below 1e-8.
    """
    budget, d, rng = Budget(1.0, 1e-6, adjacency), 20, np.random.default_rng(2)
    problem = Problem(10_000, d, Multinomial(3), budget, data_norm=1.0, intercept_scaling=1.0)
    solver = StandardizedGradientDescent(30)
    schedule = solver.schedule(problem)
    multiplier = calibrate(schedule, budget) * schedule.entries[2][1].mechanism.weight

    def ask(query):
        if isinstance(query, StandardizedGradient):
            return multiplier * query.sensitivity(adjacency) * rng.normal(size=query.size)
        if isinstance(query, SlopeDerivatives):  # which tell that the slope is right
            return np.array([0.0, 1e6])
        return 10_000 * (np.full(3, 1 / 3) if isinstance(query, ClassCounts) else np.repeat([0.0, 1 / d], d))

    squares = []
    for _ in range(100):
        result = solver.solve(problem, ask, rng)
        squares.append(np.square(result.coef[:d] / result.noise.standard_errors(np.eye(d))))
    assert np.mean(squares) == pytest.approx(1.0, abs=0.12)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize(
    "kind, n_classes, epsilon", (("classes", 3, 0.1), ("classes", 3, 1.0), ("classes", 2, 1.0), ("numbers", 2, 1.0))
)
def test_stated_deviations_are_not_too_small_and_not_beyond_what_is_not_believed(kind, n_classes, epsilon):
    """Over 40 fits of the same records, root mean square over the coefficients: at least 160 squares, nearly independent.

    A ratio below 0.8, for a true one of 1, has a probability below 1e-3 by the chi-squared law with 150 degrees of freedom. A
    curvature that is believed to a tenth makes deviations at most ten times as large.
    """
    X, y = records(1000, n_classes=n_classes)
    params = {"n_steps": 30} if kind == "classes" else {}
    outcomes = [fitted(kind, X, y, epsilon, seed, **params) for seed in range(40)]
    coefs = np.array([model.coef_.ravel() for model, _ in outcomes])
    stated = np.array([noise.standard_errors(np.eye(4)).T.ravel() for _, noise in outcomes])
    assert 0.8 < np.sqrt(np.square(stated).mean() / coefs.var(axis=0, ddof=1).mean()) < 10


@pytest.mark.parametrize("n_classes", (2, 3))
def test_each_output_has_its_standard_error(n_classes):
    X, y = records(500, n_classes=n_classes)
    model, noise = fitted("classes", X, y)
    assert noise.standard_errors(X[:5]).shape == (5, len(np.atleast_2d(model.coef_)))
    assert noise.geometry.to_rows(noise.estimates)[:4].T == pytest.approx(np.atleast_2d(model.coef_))
    assert noise.slope_variance > 0


def test_where_only_the_mean_is_estimated_coefficients_have_no_noise():
    X, y = records(30)
    model, noise = fitted("numbers", X, y, epsilon=0.1)
    assert not model.coef_.any() and not noise.standard_errors(X).any()
    assert noise.variances[-1] > 0


@pytest.mark.parametrize("kind", ("classes", "numbers"))
def test_it_is_pickled_with_nothing_of_the_records(kind):
    sizes = []
    for n in (1000, 4000):
        _, noise = fitted(kind, *records(n))
        copy = pickle.loads(pickle.dumps(noise))
        assert np.array_equal(copy.standard_errors(np.eye(4)), noise.standard_errors(np.eye(4)))
        assert replace(copy, unit=2.0).standard_errors(np.eye(4)) == pytest.approx(2 * noise.standard_errors(np.eye(4)))
        sizes.append(len(pickle.dumps(noise)))
    assert sizes[0] == sizes[1]


def left(n, factor):
    """Variances of two coefficients that are a multiple of averages 3 and 4, for a table of n rows."""
    problem = Problem(n, 2, Multinomial(3), Budget(1.0, 1e-6, "zero_out"), data_norm=1.0, intercept_scaling=1.0)
    geometry = Standardization(np.zeros(2), np.full(2, 2.0), True, 1.0)
    average = np.repeat([[3.0], [4.0], [0.0]], 3, axis=1)
    standard, steps = Standard(geometry, np.full(2, 0.8), 2.6), NoisySteps(30, 15, 5.0, 0.8, 1e-3)
    return sum(variances_left(problem, standard, steps, np.zeros((2, 1)), 0.5, average, factor * average, 0.09))[:2]


def test_variances_go_with_the_square_of_a_factor():
    assert left(10**9, 0.5) == pytest.approx(0.25 * left(10**9, 1.0), rel=1e-6)


def test_the_noise_of_the_scale_is_a_share_of_the_signal_and_a_half_at_most():
    steps, signal = left(10**9, 1.0), np.repeat([[9.0], [16.0]], 3, axis=1)
    assert (left(10**3, 1.0) > 1.01 * steps).all()
    assert left(1, 1.0) == pytest.approx(steps + 0.25 * (signal - steps), rel=1e-6)


def test_clipped_records_do_not_bend():
    """All derivatives of log-odds 0 are one half: a bound under it clips them all."""
    assert clipped_bend(0.0, 0.0, 0.51) == pytest.approx(0.25)
    assert clipped_bend(0.0, 0.0, 0.49) == 0.0
    assert clipped_bend(0.3, 2.0, 0.2) < clipped_bend(0.3, 2.0, 0.5) < clipped_bend(0.3, 2.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("numbers", *slow("classes")))
def test_noise_of_the_centre_is_that_of_its_release(kind):
    """Over 100 refits with 8 columns: within 15 %, 6 standard errors of the standard deviation of 800 numbers."""
    X, y = records(1500, 8)
    noises = [fitted(kind, X + 0.3, y, epsilon=2.0, seed=seed, n_steps=4)[1] for seed in range(100)]
    spread = np.sqrt(np.var([noise.geometry.centre for noise in noises], axis=0).mean())
    assert abs(spread / noises[0].centre_noise - 1) < 0.15
    weights = np.array([[1.0, -2.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(noises[0].centre_errors(weights), [3 * noises[0].centre_noise])

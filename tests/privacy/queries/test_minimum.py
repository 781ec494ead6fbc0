"""The query for a minimum: its sensitivity, its precision, and the search for it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize as reference
from scipy.special import expit

from skdp.losses import HuberHinge, Logistic
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import Gradient, Minimum
from skdp.privacy.queries import minimum as module
from skdp.privacy.queries._newton_minimizer import conjugate_gradients, minimize
from skdp.privacy.queries._strong_convexity import Minimization

R = 1.2
STORAGES = {
    "C": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
}


def facts(n_samples, size, strength=2.0, clip_norm=R, weight=1.0, scaling=0.0):
    smoothness = weight * 0.25 * (R**2 + scaling**2)
    return Minimization(n_samples, size, clip_norm, smoothness, strength, weight * math.log(2), True)


def table(rng, n=60, d=3):
    X = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 10.0], size=(n, 1))
    X[0], X[1] = 0.0, [1e100, -1e130, 1e10][:d]
    return X, rng.integers(0, 2, n).astype(np.int8)


def clipped(X):
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(X, axis=1)
    return X * np.where(np.isfinite(norms), R / np.maximum(norms, R), 0.0)[:, None]


def value_and_gradient(w, x, y, weights, clip_norm, strength, tilt):
    """Of the clipped logistic loss, a straight line beyond the clip."""
    norms, total, slope = np.linalg.norm(x, axis=1), strength / 2 * w @ w + tilt @ w, strength * w + tilt
    for row, label, weight, norm in zip(x, y, weights, norms, strict=True):
        limit = min(clip_norm / norm if norm else math.inf, weight * (1 - 1e-15))
        sign = 1 if label else -1
        t, knot = sign * row @ w, math.log(weight / limit - 1)  # the derivative in t is -limit at the knot and below
        inner = weight * np.logaddexp(0, -max(t, knot))
        total += inner + limit * max(knot - t, 0.0)
        slope = slope - sign * min(weight * expit(-t), limit) * row
    return total, slope


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("clip_norm", (0.3, R))
@pytest.mark.parametrize("scaling", (0.0, 0.5))
@pytest.mark.parametrize("hessian", (True, False))
@pytest.mark.parametrize("null", (False, True))
def test_the_minimum_is_that_of_the_clipped_loss(storage, clip_norm, scaling, hessian, null, rng, monkeypatch):
    if not hessian:
        monkeypatch.setattr(module, "LARGEST_HESSIAN", 0)
    X, y = table(rng)
    given = STORAGES[storage](X.clip(-1e15, 1e15) if storage == "float32" else X)
    weights, size = np.array([0.5, 2.0]), 3 + bool(scaling)
    tilt, known = rng.normal(size=size), facts(60, size, 1.5, clip_norm, 2.0, scaling)
    rows = TrainingData(given, y, data_norm=R, intercept_scaling=scaling, class_weight=weights, by_row=True)
    x = clipped(X if storage != "float32" else X.clip(-1e15, 1e15))
    x = np.column_stack([x, np.full(60, scaling)]) if scaling else x
    kept = np.ones(60, dtype=bool)
    if null:
        rows, kept[5:9] = rows.without(np.arange(5, 9)), False
    arguments = (x[kept], y[kept], weights[y[kept]], clip_norm, 1.5, tilt)
    expected = reference(value_and_gradient, np.zeros(size), arguments, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    found = Minimum(Logistic(), replace(known, tilt=10.0), tilt).evaluate(rows)
    np.testing.assert_allclose(found, expected, atol=1e-6 if storage == "float32" else 1e-7)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_no_pair_of_neighbours_moves_the_minimum_further_and_one_comes_near(adjacency, rng):
    largest = 0.0
    for trial in range(150):
        n, strength, clip_norm = int(rng.integers(1, 4)), 10.0 ** rng.integers(-1, 3), float(rng.choice([0.05, 0.4, R]))
        x = rng.normal(size=(n + 1, 2)) * 3
        x[n] = x[0] * rng.choice([-1, 1]) if trial % 2 else x[n]
        labels = rng.integers(0, 2, n + 1).astype(np.int8)
        labels[n] = 1 - labels[0] if trial % 3 else labels[n]
        known = facts(n, 2, strength, clip_norm)
        query = Minimum(Logistic(), replace(known, tilt=3.0), rng.normal(size=2))
        first = TrainingData(x[:n], labels[:n], data_norm=R)
        second = first.without(np.array([0])) if adjacency == "zero_out" else TrainingData(x[1:], labels[1:], data_norm=R)
        if adjacency == "replace_one":
            second = TrainingData(np.roll(x[1:], 1, axis=0), np.roll(labels[1:], 1), data_norm=R)
        moved = np.linalg.norm(query.evaluate(first) - query.evaluate(second))
        assert moved <= query.sensitivity(adjacency)
        largest = max(largest, moved / query.sensitivity(adjacency))
    assert largest > 0.99


@pytest.mark.parametrize("storage", (np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix))
@pytest.mark.parametrize("row", (5e-324, 1e-200, 1e-150, 1.0, 1e152, 1e154, 1e300, 1.7e308))
def test_the_gradient_of_every_finite_record_is_monotone(storage, row, rng):
    """Also of one whose products with the coefficients overflow at some of them only."""
    X, y = np.stack([np.full(4, row), row * rng.choice([-1, 1], 4)]), np.array([0, 1], dtype=np.int8)
    rows = TrainingData(storage(X), y, data_norm=R, intercept_scaling=0.5)
    points = rng.normal(size=(200, 5)) * 10.0 ** rng.uniform(-2, 1, (200, 1))
    with np.errstate(all="ignore"):
        values = np.array([Gradient(Logistic(), point[:, None], 0.4).evaluate(rows) for point in points])
    products = np.einsum("ijk,ijk->ij", points[:, None] - points, values[:, None] - values)
    assert products.min() >= -1e-13


def test_records_whose_products_overflow_move_the_minimum_no_further():
    """Near the point where they do, one record decides whether 40 others pull at the intercept."""
    X, y = np.full((60, 8), 1.7e308), np.ones(60, dtype=np.int8)
    X[40:], X[40:50], y[40:50] = 1 / 8**0.5, -1 / 8**0.5, 0
    tables = [TrainingData(X, np.append(y[:-1], label), data_norm=R, intercept_scaling=1.0) for label in (0, 1)]
    for strength in np.geomspace(15, 30, 20):
        query = Minimum(Logistic(), facts(60, 9, strength, scaling=1.0))
        with np.errstate(all="ignore"):
            moved = np.linalg.norm(np.subtract(*(query.evaluate(rows) for rows in tables)))
        assert moved <= query.sensitivity("replace_one")


def test_sensitivity_has_both_records_and_both_errors():
    query = Minimum(Logistic(), facts(100, 3, 2.0, 0.7))
    tau = query.facts.precision
    assert query.sensitivity("zero_out") == (0.7 + 2 * tau) / 2
    assert query.sensitivity("replace_one") == 2 * query.sensitivity("zero_out")
    assert 0 < tau < 1e-6


@pytest.mark.parametrize("scale", (1e-3, 1.0, 1e3))
@pytest.mark.parametrize("clip_norm", (0.1, R))
def test_the_rounding_of_gradients_is_below_its_bound(scale, clip_norm, rng):
    """Against the same in 80 bits; rows at the norm bound and a point as far out as the bound holds for."""
    n, d = 5000, 40
    X = rng.normal(size=(n, d))
    X *= R / np.linalg.norm(X, axis=1, keepdims=True) * 0.999
    y = rng.integers(0, 2, n).astype(np.int8)
    known = replace(facts(n, d, strength=scale, clip_norm=clip_norm), tilt=5.0)
    w = rng.normal(size=d)
    w *= 2 * known.largest / np.linalg.norm(w)
    x, long = X.astype(np.longdouble), w.astype(np.longdouble)
    residuals = np.exp(-np.logaddexp(0, -(x @ long))) - y
    limits = clip_norm / np.sqrt((x * x).sum(axis=1))
    exact = x.T @ np.clip(residuals, -limits, limits) + known.strength * long
    computed = Gradient(Logistic(), w[:, None], clip_norm).evaluate(TrainingData(X, y, data_norm=R)) + known.strength * w
    error = float(np.linalg.norm(computed - exact))
    assert 0 < error <= known.gradient_error
    assert known.precision == 1000 * known.gradient_error


def test_the_rounding_of_raw_predictions_is_in_the_bound(rng):
    """Equal rows across a long w: their raw predictions are what rounding leaves, and err together."""
    largest = 0.0
    for _ in range(20):
        known = replace(facts(50, 40, strength=1e-4), tilt=5.0)
        w = rng.normal(size=40)
        w *= 2 * known.largest / np.linalg.norm(w)
        row = rng.normal(size=40)
        row -= w * (row @ w) / (w @ w)
        X, y = np.repeat(row[None] * R / np.linalg.norm(row), 50, axis=0), np.zeros(50, dtype=np.int8)
        long = np.float64(1) * X[0].astype(np.longdouble) @ w.astype(np.longdouble)
        exact = 50 * X[0] / (1 + np.exp(-long))
        error = float(np.linalg.norm(Gradient(Logistic(), w[:, None], R).evaluate(TrainingData(X, y, data_norm=R)) - exact))
        assert error <= known.gradient_error
        largest = max(largest, error)
    assert largest > replace(known, strength=1e6, tilt=0.0).gradient_error  # where raw predictions are short


def test_the_minimum_has_a_gradient_below_the_precision_and_a_norm_below_the_bound(rng):
    for _ in range(40):
        n, strength, size = int(rng.integers(1, 60)), 10.0 ** rng.uniform(-4, 2), 3
        X, y = table(rng, max(n, 2))
        known = facts(len(X), size, strength)
        tilt = rng.normal(size=size) * 10.0 ** rng.integers(-2, 3)
        known = replace(known, tilt=float(np.linalg.norm(tilt)))
        rows = TrainingData(X, y, data_norm=R)
        found = Minimum(Logistic(), known, tilt).evaluate(rows)
        slope = Gradient(Logistic(), found[:, None], known.clip_norm).evaluate(rows) + strength * found + tilt
        assert np.linalg.norm(slope) <= known.precision * (1 - 1e-3)
        assert np.linalg.norm(found) <= known.largest + known.precision / strength


@pytest.mark.parametrize("change", ({"strength": 1e-12}, {"n_samples": 2**53}, {"strength": math.inf}))
def test_an_objective_that_float64_cannot_minimise_is_refused(change):
    with pytest.raises(ValueError, match="for float64 to find the minimum") as caught:
        assert replace(facts(100, 3), **change).precision
    if change == {"strength": 1e-12}:
        least = 100 * float(str(caught.value).split("at least ")[1].rstrip("."))
        assert replace(facts(100, 3), strength=least).precision > 0
        with pytest.raises(ValueError, match="for float64"):
            assert replace(facts(100, 3), strength=least / 4).precision


def test_a_table_of_another_size_is_refused(rng):
    with pytest.raises(PrivacyAccountingError, match="another number of records"):
        Minimum(Logistic(), facts(61, 3)).evaluate(TrainingData(*table(rng), data_norm=R))


@pytest.mark.parametrize("row", (0.0, 1e-57, 1e-58, 1e-59))
def test_a_direction_below_the_range_of_float64_does_not_end_the_search(row):
    """One record could decide whether the search ends."""
    X = np.zeros((4, module.LARGEST_HESSIAN + 1))
    X[0, 0] = row
    known = Minimization(4, X.shape[1], 1e-100, 0.25e-150, 4e-110, 1e-50, True)
    rows = TrainingData(X, np.zeros(4, dtype=np.int8), data_norm=1e-50, class_weight=np.full(2, 1e-50))
    found = Minimum(Logistic(), known).evaluate(rows)
    assert np.linalg.norm(found) <= known.largest


def test_a_hessian_that_cannot_be_solved_does_not_end_the_search(rng, monkeypatch):
    def fail(*arguments, **options):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(module, "solve", fail)
    rows, known = TrainingData(*table(rng), data_norm=R), facts(60, 3)
    found = Minimum(Logistic(), known).evaluate(rows)
    slope = Gradient(Logistic(), found[:, None], known.clip_norm).evaluate(rows) + known.strength * found
    assert np.linalg.norm(slope) <= known.precision


def quadratic(rng, size=5, condition=50.0):
    root = np.linalg.qr(rng.normal(size=(size, size)))[0] * np.geomspace(1, math.sqrt(condition), size)
    matrix, goal = root @ root.T, rng.normal(size=size)
    return matrix, goal, lambda w: matrix @ (w - goal)


@pytest.mark.parametrize("newton", ("right", "wrong way", "nan", "tiny", "huge"))
def test_the_search_ends_at_the_minimum_whatever_newton_says(newton, rng):
    matrix, goal, gradient = quadratic(rng)
    steps = {
        "right": lambda w, g: -np.linalg.solve(matrix, g),
        "wrong way": lambda w, g: g,
        "nan": lambda w, g: g * math.nan,
        "tiny": lambda w, g: -1e-9 * g,
        "huge": lambda w, g: -1e6 * g,
    }
    found = minimize(gradient, steps[newton], 5, 1 / 50, 1e-9)
    assert np.linalg.norm(gradient(found)) <= 1e-9
    np.testing.assert_allclose(found, goal, atol=1e-8)


def test_newton_is_damped_where_it_would_diverge():
    """The square root of 1 + w^2, on which an undamped Newton step from 2 leads to -8."""
    calls = []

    def gradient(w):
        calls.append(w)
        return w / np.sqrt(1 + w**2) + 1e-3 * w - 0.8

    found = minimize(gradient, lambda w, g: -g / (1e-3 + (1 + w**2) ** -1.5), 1, 0.5, 1e-12)
    assert abs(gradient(found)[0]) <= 1e-12 and len(calls) < 40


def test_a_kink_at_the_end_of_a_plain_does_not_take_forever():
    """Newton's step from the plain, where only the penalty is curved, is 1e5 times too long; gradient descent needs 1e5."""
    calls = []

    def gradient(w):
        calls.append(w)
        assert len(calls) < 3000
        return 1e-7 * w + np.clip(1e3 * (w - 10), -0.1, 0.1)

    def newton(w, g):
        return -g / (1e-7 + 1e3 * (np.abs(w - 10) < 1e-4))

    assert abs(gradient(minimize(gradient, newton, 1, 1e-3, 1e-10))[0]) <= 1e-10


def test_bends_that_a_short_clip_leaves_are_seen(monkeypatch):
    """The clip leaves of Huber's hinge bends as wide as 1e-4; Newton's method is blind to what it measures with wider steps."""
    evaluate, calls, rng = Gradient.evaluate, [], np.random.default_rng(5)

    def counted(query, rows):
        calls.append(query)
        assert len(calls) < 2000
        return evaluate(query, rows)

    monkeypatch.setattr(Gradient, "evaluate", counted)
    for strength in (1.2e-3, 3.6e-3) * 5:
        known = Minimization(1000, 2, 1e-4, 1.0, strength, 1.0, True)
        X, y = rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000)
        tilt = rng.normal(size=2) / 1e4
        Minimum(HuberHinge(), known, tilt).evaluate(TrainingData(X, y, data_norm=1.0))
        calls.clear()


def test_conjugate_gradients_leave_a_tenth_and_end():
    rng = np.random.default_rng(3)
    matrix, goal, _ = quadratic(rng, 30, 1e4)
    right = matrix @ goal
    solution = conjugate_gradients(lambda v: matrix @ v, right)
    assert np.linalg.norm(matrix @ solution - right) <= 0.1 * np.linalg.norm(right) * (1 + 1e-6)
    assert not conjugate_gradients(lambda v: v, np.zeros(3)).any()

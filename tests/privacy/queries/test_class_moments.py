"""The joint release of discriminant analysis: its definition, and its sensitivity searched for over neighbours."""

import math
import os

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ClassMoments, Standardization

R, N, D = 1.3, 60, 4


def geometry(rng, size=1.0, intercept=True):
    centre = rng.normal(size=D) / 4 if intercept else np.zeros(D)
    return Standardization(centre, size * rng.uniform(0.3, 3.0, D), intercept, R)


def contribution(query, x, label):
    constant = 1.0 * query.geometry.intercept
    return query.evaluate(TrainingData(np.atleast_2d(x), np.array([label]), data_norm=R, intercept_scaling=constant))


@pytest.mark.slow
@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("labels", ((0, 0), (1, 1), (0, 1)))
def test_no_pair_moves_it_further_than_the_sensitivity_and_some_come_near(intercept, labels, rng):
    """Both cases of the proof, of one class and of two, attain the bound."""
    query = ClassMoments(geometry(rng, 4.0, intercept))

    def moved(flat):
        first, second = query.geometry.centre + flat.reshape(2, D)
        return -np.linalg.norm(contribution(query, first, labels[0]) - contribution(query, second, labels[1]))

    starts = rng.normal(size=(5, 2 * D)) * rng.choice([0.03, 0.3, 3.0], size=(5, 1))
    found = max(-minimize(moved, start, method="Nelder-Mead", options={"maxfev": 800}).fun for start in starts)
    assert 0.99 < found / query.sensitivity("replace_one") <= 1 + 1e-9


def bound(g, h):
    """Returns the bound of the proof."""
    alike = 2 + 2 * h**2 + 1 / (2 * h**2) if 2 * h**2 >= 1 else 4.0
    return math.sqrt(max(alike, 2 * (g**2 + 1 + h**2)))


@pytest.mark.parametrize("g", (0.0, 0.3, 0.5, 2.0))
@pytest.mark.parametrize("h", (0.1, 0.6, 1.0, 3.0))
def test_the_bound_of_the_proof_holds_for_all_weights(g, h, rng):
    """The pairs of one class or two, their lengths, and the cosine s of their angle, on a grid and at random."""
    a, b = rng.uniform(size=(2, 40_000)) ** 0.1
    a[:20_000] = b[:20_000] = 1.0
    s = np.sqrt(a * b) * np.cos(rng.uniform(0, math.pi, 40_000))
    alike = a + b - 2 * s + h**2 * (a**2 + b**2 - 2 * s**2)
    other = 2 * g**2 + a + b + h**2 * (a**2 + b**2)
    largest = math.sqrt(max(alike.max(), other.max()))
    assert 0.999 < largest / bound(g, h) <= 1 + 1e-12
    if (g, h) == (ClassMoments.count_weight, ClassMoments.moment_weight):
        assert bound(g, h) == pytest.approx(math.sqrt(2 * (g**2 + 1 + h**2)))


@pytest.mark.parametrize("size", (0.0, 1e-170, 1.0, 1e150))
@pytest.mark.parametrize("scale", (1e-6, 1.0, 1e6))
@pytest.mark.parametrize("intercept", (True, False))
def test_rows_of_any_size_in_any_geometry_are_clipped(size, scale, intercept, rng):
    query = ClassMoments(geometry(rng, scale, intercept))
    for storage in (np.asarray, sparse.csr_matrix):
        rows = TrainingData(
            storage(rng.normal(size=(1, D)) * size), np.array([1]), data_norm=R, intercept_scaling=1.0 * intercept
        )
        allowed = query.clip_norm * (1 + 2.0**-30 + rows.summation_error * query.rounding)
        assert np.linalg.norm(query.evaluate(rows)) <= allowed


def test_a_geometry_without_a_bound_on_its_rounding_is_refused():
    oracle = Oracle.__new__(Oracle)
    oracle._process = os.getpid()
    with pytest.raises(PrivacyAccountingError, match="has no bound"):
        oracle.ask(ClassMoments(Standardization(np.zeros(2), np.full(2, 1e100), True, 1.0)))


def test_rounding_stays_within_its_allowance(rng):
    """Rows near a centre that is far from 0 at the scale of the geometry, against sums in extended precision."""
    X = np.full(D, 0.6) + 1e-4 * rng.normal(size=(5000, D))
    X *= R / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), R)
    y, frame = rng.integers(0, 2, 5000), Standardization(X.mean(axis=0), np.full(D, 5e3), True, R)
    query, rows = ClassMoments(frame), TrainingData(X, y, data_norm=R, intercept_scaling=1.0)
    z = (X.astype(np.longdouble) - frame.centre) * frame.scale
    v = z / np.maximum(np.sqrt(np.square(z).sum(axis=1, keepdims=True)), 1)
    _, sums, products = query.parts(query.evaluate(rows))
    exact = [v[y == label] for label in (0, 1)]
    error = math.sqrt(
        sum(np.sum((sums[c] - m.sum(axis=0)) ** 2) + np.sum((products[c] - m.T @ m) ** 2) for c, m in enumerate(exact))
    )
    plain = query.clip_norm * rows.summation_error
    assert plain < error <= plain * query.rounding

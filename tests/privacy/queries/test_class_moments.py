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

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: X.clip(-1e15, 1e15).astype(np.int64),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
}
R, N, D = 1.3, 60, 4
NULL = np.array([0, 3])
G = 0.5


@pytest.fixture
def table(rng):
    X = 2 * rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    X[4], X[5] = [1e15, -1e15, 0.0, 1e10], 0.0
    X[6] = 1e200  # its squared norm overflows: a row of zeros
    return X, rng.integers(0, 2, N)


def geometry(rng, size=1.0, intercept=True):
    centre = rng.normal(size=D) / 4 if intercept else np.zeros(D)
    return Standardization(centre, size * rng.uniform(0.3, 3.0, D), intercept, R)


def clipped(X):
    X = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(X, axis=1)
    return X * np.where(np.isfinite(norms), R / np.maximum(norms, R), 0.0)[:, None]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("null", (False, True))
@pytest.mark.parametrize("size", (0.1, 1.0, 10.0))
def test_it_is_what_it_says(storage, intercept, null, size, table, rng):
    X, y = STORAGES[storage](table[0].clip(-1e15, 1e15) if storage == "float32" else table[0]), table[1]
    frame = geometry(rng, size, intercept)
    rows, kept = TrainingData(X, y, data_norm=R, intercept_scaling=0.7 * intercept, by_row=True), np.ones(N, dtype=bool)
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    z = (clipped(X) - frame.centre) * frame.scale
    v = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1.0)
    query = ClassMoments(frame)
    answer = query.evaluate(rows)
    assert answer.shape == (query.size,)
    counts, sums, products = query.parts(answer)
    squares = 0.0
    for label in (0, 1):
        members = v[kept & (y == label)]
        assert counts[label] == len(members)
        np.testing.assert_allclose(sums[label], members.sum(axis=0), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(products[label], members.T @ members, rtol=1e-6, atol=1e-6)
        squares += np.sum(members.sum(axis=0) ** 2) + np.sum((members.T @ members) ** 2) + (G * len(members)) ** 2
    assert np.linalg.norm(answer) ** 2 == pytest.approx(squares, rel=1e-5)


def test_a_table_by_columns_is_converted(table, rng):
    assert ClassMoments.by_row
    with pytest.raises(ValueError, match="by_row=True"):
        ClassMoments(geometry(rng)).evaluate(
            TrainingData(sparse.csc_matrix(table[0]), table[1], data_norm=R, intercept_scaling=1.0)
        )


def contribution(query, x, label):
    constant = 1.0 * query.geometry.intercept
    return query.evaluate(TrainingData(np.atleast_2d(x), np.array([label]), data_norm=R, intercept_scaling=constant))


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


@pytest.mark.parametrize("intercept", (True, False))
def test_no_record_moves_it_further_than_the_sensitivity_and_some_come_near(intercept, rng):
    """A thousand records at the bounds and beyond, at the centre, of any size, alone and in pairs."""
    query = ClassMoments(geometry(rng, 4.0, intercept))
    directions = np.concatenate([np.eye(D), -np.eye(D), rng.normal(size=(25, D))])
    near = [query.geometry.centre + size * row for row in directions for size in (0.0, 1e-9, 0.01, 0.1)]
    records = [*near, *(size * row for row in directions for size in (0.3, 1.0, 1e6, 1e200))]
    vectors = np.stack([contribution(query, x, label) for x in records for label in (0, 1)])
    squares = np.square(vectors).sum(axis=1)
    gaps = squares[:, None] + squares - 2 * vectors @ vectors.T
    assert 0.99 < math.sqrt(squares.max()) / query.sensitivity("zero_out") <= 1 + 1e-9
    assert 0.99 < math.sqrt(gaps.max()) / query.sensitivity("replace_one") <= 1 + 1e-9
    assert query.sensitivity("zero_out") == query.clip_norm == 1.5
    assert query.sensitivity("replace_one") == pytest.approx(math.sqrt(4.5))


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

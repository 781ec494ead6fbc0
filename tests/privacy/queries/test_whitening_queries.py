"""The queries of whitened_gd: their definitions, and their sensitivities searched for over neighbours."""

import math
import os

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import Squared, SquaredDistance
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import (
    DistanceHistogram,
    FeatureTargetSums,
    ResidualHistogram,
    SecondMoment,
    Standardization,
    StandardizedGradient,
    TargetSum,
    Whitening,
    half_vector,
    symmetric,
)

STORAGES = {"C": np.ascontiguousarray, "float32": lambda X: X.astype(np.float32), "csr": sparse.csr_matrix}
R, N, D = 1.3, 60, 4
NULL = np.array([0, 3])
EDGES = 2.0 ** (-np.arange(12)[::-1] / 2)


@pytest.fixture
def table(rng):
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    X[4], X[5] = [1e15, -1e15, 0.0, 1e10], 0.0
    X[6] = 1e200  # its squared norm overflows: a row of zeros
    return X, rng.uniform(-1, 1, N)


def stored(storage, X):
    return STORAGES[storage](X if storage != "float32" else X.clip(-1e15, 1e15))


def clipped(X):
    X = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(X, axis=1)
    return X * np.where(np.isfinite(norms), R / np.maximum(norms, R), 0.0)[:, None]


def rows_of(X, y, intercept, null):
    rows, kept = TrainingData(X, y, data_norm=R, intercept_scaling=0.7 * intercept, by_row=True), np.ones(len(y), dtype=bool)
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    return rows, kept


def alike(rng, scale, intercept=True):
    """All features scaled by the same number."""
    return Standardization(rng.normal(size=D) / 4 if intercept else np.zeros(D), np.full(D, scale), intercept, R)


def unlike(rng, scale, intercept=True):
    """Each feature scaled by a number of its own."""
    return Standardization(alike(rng, scale, intercept).centre, scale * np.geomspace(1, 0.1, D), intercept, R)


def whitening(rng, intercept=True):
    return Whitening(rng.normal(size=D) / 4 if intercept else np.zeros(D), rng.normal(size=(D, D)) * 2, intercept, R)


product = pytest.mark.parametrize("intercept", (True, False))
null_or_not = pytest.mark.parametrize("null", (False, True))
every_storage = pytest.mark.parametrize("storage", STORAGES)


@pytest.mark.parametrize("storage", [*STORAGES, "csc"])
@product
@null_or_not
def test_sums_are_those_of_clipped_rows_and_of_targets(storage, intercept, null, table):
    X, y = table
    X = sparse.csc_matrix(X) if storage == "csc" else stored(storage, X)
    rows, kept = TrainingData(X, y, data_norm=R, intercept_scaling=0.7 * intercept), np.ones(N, dtype=bool)
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    expected = np.append(clipped(X)[kept].sum(axis=0) / R, y[kept].sum())
    np.testing.assert_allclose(FeatureTargetSums(R, D).evaluate(rows), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(TargetSum().evaluate(rows), expected[-1:])


@pytest.mark.parametrize("query", (TargetSum(), FeatureTargetSums(R, D)), ids=lambda query: type(query).__name__)
def test_targets_without_public_range_move_sums_no_further(query):
    """A loss of bounded slope lets targets of any size behind the oracle."""
    for adjacency, other in (("replace_one", -1e150), ("zero_out", None)):
        tables = [TrainingData(np.zeros((3, D)), np.array([0.5, 0.5, y or 0.0]), data_norm=R) for y in (1e150, other)]
        moved = query.evaluate(tables[0]) - query.evaluate(tables[1] if other else tables[0].without(np.array([2])))
        assert np.linalg.norm(moved) <= query.sensitivity(adjacency)


@every_storage
@product
@null_or_not
def test_histograms_count_records_by_length(storage, intercept, null, table, rng):
    X, y = stored(storage, table[0]), table[1]
    rows, kept = rows_of(X, y, intercept, null)
    for geometry in (alike(rng, 1 / R, intercept), whitening(rng, intercept)):
        scale = geometry.scale if geometry.scale.ndim == 2 else np.diag(geometry.scale)
        lengths = np.linalg.norm((clipped(X) - geometry.centre) @ scale, axis=1)
        norms = np.abs(0.2 - y) * np.hypot(lengths, float(intercept))
        for query, sizes in (
            (DistanceHistogram(geometry, EDGES), lengths),
            (ResidualHistogram(geometry, EDGES, 0.2), norms),
        ):
            places = np.minimum(np.searchsorted(EDGES, sizes), 11)
            assert query.evaluate(rows).tolist() == np.bincount(places[kept], minlength=12).tolist()


@every_storage
@product
@null_or_not
@pytest.mark.parametrize("scale", (0.2, 1.0, 10.0))
def test_the_second_moment_is_that_of_rows_clipped_anew(storage, intercept, null, scale, table, rng):
    X, y = stored(storage, table[0]), table[1]
    rows, kept = rows_of(X, y, intercept, null)
    for geometry in (alike(rng, scale, intercept), unlike(rng, scale, intercept)):
        z = (clipped(X) - geometry.centre) * geometry.scale
        z = (z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1.0))[kept]
        matrix = symmetric(SecondMoment(geometry).evaluate(rows), D)
        np.testing.assert_allclose(matrix, z.T @ z, rtol=1e-6, atol=1e-6)


@every_storage
@product
@null_or_not
@pytest.mark.parametrize("clip_norm", (0.1, 100.0))
def test_the_gradient_is_that_of_whitened_rows(storage, intercept, null, clip_norm, table, rng):
    X, y = stored(storage, table[0]), table[1]
    rows, kept = rows_of(X, y, intercept, null)
    geometry = whitening(rng, intercept)
    z = (clipped(X) - geometry.centre) @ geometry.scale
    z = np.column_stack([z, np.ones(N)]) if intercept else z
    coef = rng.normal(size=(z.shape[1], 1))
    residuals = ((z @ coef)[:, 0] - y) * kept
    residuals *= np.minimum(1, clip_norm / np.maximum(np.abs(residuals) * np.linalg.norm(z, axis=1), 1e-300))
    value = StandardizedGradient(Squared(), coef, clip_norm, geometry).evaluate(rows)
    np.testing.assert_allclose(value, z.T @ residuals, rtol=1e-5, atol=1e-5)


def test_a_table_by_columns_is_converted_or_refused(table):
    X, y = table
    assert SecondMoment.by_row
    rows = TrainingData(sparse.csc_matrix(X), y, data_norm=R, intercept_scaling=1.0)
    with pytest.raises(ValueError, match="by_row=True"):
        rows.standardized(np.zeros(D), np.eye(D))


def test_half_vectors_keep_the_norm(rng):
    matrix = rng.normal(size=(5, 5))
    matrix += matrix.T
    half = half_vector(matrix)
    assert half.size == 15
    assert np.linalg.norm(half) == pytest.approx(np.linalg.norm(matrix))
    np.testing.assert_allclose(symmetric(half, 5), matrix)


def contribution(query, x, y, intercept=True):
    """Returns the contribution of one record."""
    return query.evaluate(TrainingData(np.atleast_2d(x), np.array([y]), data_norm=R, intercept_scaling=1.0 * intercept))


def candidates(rng, centre):
    """Records at the bounds and beyond, near the centre, opposite and orthogonal ones."""
    directions = np.concatenate([np.eye(D), -np.eye(D), rng.normal(size=(20, D))])
    around = [centre + size * row / np.linalg.norm(row) for row in directions for size in (1e-9, 0.01, 0.1, 0.9 * R)]
    return [np.zeros(D), centre, *around, *(size * row for row in directions for size in (0.3, 1.0, 1e6, 1e200))]


def moves(query, rng, centre, intercept=True, targets=(-1.0, 1.0)):
    """Largest contribution of one record, and largest difference of two, over the candidates."""
    vectors = np.stack([contribution(query, x, y, intercept) for x in candidates(rng, centre) for y in targets])
    squares = np.square(vectors).sum(axis=1)
    gaps = squares[:, None] + squares - 2 * vectors @ vectors.T
    return math.sqrt(squares.max()), math.sqrt(gaps.max())


def the_queries(rng, intercept):
    geometry, white = alike(rng, 5 / R, intercept), whitening(rng, intercept)
    loss, size = Squared(), D + intercept
    return [
        (TargetSum(), np.zeros(D)),
        (FeatureTargetSums(R, D), np.zeros(D)),
        (DistanceHistogram(geometry, EDGES), geometry.centre),
        (ResidualHistogram(white, 4 * EDGES, -0.3), white.centre),
        (SecondMoment(geometry), geometry.centre),
        (SecondMoment(unlike(rng, 50 / R, intercept)), geometry.centre),
        (StandardizedGradient(loss, np.zeros((size, 1)), 0.3, white), white.centre),
        (StandardizedGradient(loss, 100 * rng.normal(size=(size, 1)), 0.3, white), white.centre),
    ]


@product
@pytest.mark.parametrize("place", range(8))
def test_no_record_moves_a_query_further_than_its_sensitivity_and_some_come_near(place, intercept, rng):
    query, centre = the_queries(rng, intercept)[place]
    alone, pair = moves(query, rng, centre, intercept)
    assert 0.99 < alone / query.sensitivity("zero_out") <= 1 + 1e-9
    assert 0.99 < pair / query.sensitivity("replace_one") <= 1 + 1e-9
    assert query.sensitivity("zero_out") == pytest.approx(query.clip_norm)
    assert query.size == contribution(query, np.ones(D), 1.0, intercept).size


def vectors(rng):
    """Vectors of three targets: opposite ones of norm 1 and beyond, and some that only their norm takes out of the ball."""
    unit = rng.normal(size=3) / math.sqrt(3)
    return [sign * size * unit / np.linalg.norm(unit) for sign in (1.0, -1.0) for size in (1.0, 50.0)] + [
        np.full(3, 0.9),
        np.eye(3)[0],
    ]


@product
@pytest.mark.parametrize("place", range(5))
def test_no_vector_of_targets_moves_a_joint_query_further_than_one_target_may(place, intercept, rng):
    white, size = whitening(rng, intercept), D + intercept
    query, centre, bound = [
        (TargetSum(3), np.zeros(D), 1.0),
        (FeatureTargetSums(R, D, 3), np.zeros(D), math.sqrt(2)),
        (ResidualHistogram(white, 4 * EDGES, np.array([-0.3, 0.1, 0.2])), white.centre, 1.0),
        (StandardizedGradient(SquaredDistance(3), np.zeros((size, 3)), 0.3, white), white.centre, 0.3),
        (StandardizedGradient(SquaredDistance(3), rng.normal(size=(size, 3)), 0.3, white), white.centre, 0.3),
    ][place]
    alone, pair = moves(query, rng, centre, intercept, vectors(rng))
    assert query.sensitivity("zero_out") == pytest.approx(bound)
    assert 0.99 < alone / query.sensitivity("zero_out") <= 1 + 1e-9
    assert 0.99 < pair / query.sensitivity("replace_one") <= 1 + 1e-9
    assert query.size == contribution(query, np.ones(D), np.ones(3), intercept).size


@pytest.mark.parametrize("storage", [*STORAGES, "csc"])
@null_or_not
def test_joint_queries_are_what_they_say(storage, null, table, rng):
    X, Y = table[0], rng.normal(size=(N, 3)) / 2  # some are longer than 1
    X = sparse.csc_matrix(X) if storage == "csc" else stored(storage, X)
    rows, kept = TrainingData(X, Y, data_norm=R, intercept_scaling=0.7, by_row=storage != "csc"), np.ones(N, dtype=bool)
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    short = Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), 1.0)
    expected = np.append(clipped(X)[kept].sum(axis=0) / R, short[kept].sum(axis=0))
    np.testing.assert_allclose(FeatureTargetSums(R, D, 3).evaluate(rows), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(TargetSum(3).evaluate(rows), expected[D:])
    if storage == "csc":
        return
    geometry, coef, middle = whitening(rng), rng.normal(size=(D + 1, 3)), np.array([0.1, 0.0, -0.2])
    z = np.column_stack([(clipped(X) - geometry.centre) @ geometry.scale, np.ones(N)])
    sizes = np.linalg.norm(middle - Y, axis=1) * np.linalg.norm(z, axis=1)
    counts = np.bincount(np.minimum(np.searchsorted(4 * EDGES, sizes), 11)[kept], minlength=12)
    assert ResidualHistogram(geometry, 4 * EDGES, middle).evaluate(rows).tolist() == counts.tolist()
    residuals = (z @ coef - Y) * kept[:, None]
    lengths = np.maximum(np.linalg.norm(residuals, axis=1) * np.linalg.norm(z, axis=1), 1e-300)
    residuals *= np.minimum(1, 2.0 / lengths)[:, None]
    value = StandardizedGradient(SquaredDistance(3), coef, 2.0, geometry).evaluate(rows)
    np.testing.assert_allclose(value, (z.T @ residuals).ravel(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("storage", ("C", "csr"))
@pytest.mark.parametrize("spread", (1.0, 1e3, 1e6))
def test_norms_of_whitened_rows_are_never_too_small(storage, spread, rng):
    """Rows at the centre of a geometry with directions of very different scale, where norms come from differences."""
    X = rng.normal(size=(300, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True) / R
    X[:100] = X[0] * (1 + 1e-9 * rng.normal(size=(100, 1)))
    frame = Whitening(X[0].copy(), np.linalg.qr(rng.normal(size=(D, D)))[0] * np.geomspace(1, spread, D), True, R)
    rows = TrainingData(STORAGES[storage](X), rng.uniform(-1, 1, 300), data_norm=R, intercept_scaling=1.0)
    inverse = rows.standardized(frame.centre, frame.scale)._inverse_norms
    exact = (clipped(X).astype(np.longdouble) - frame.centre) @ frame.scale.astype(np.longdouble)
    norms = np.sqrt(np.square(exact).sum(axis=1) + 1)
    assert (inverse * norms <= 1 + 2.0**-40).all()
    assert (inverse * norms >= 1 - 1e-6).all()


@pytest.mark.parametrize("intercept", (True, False))
def test_rounding_of_a_whitening_is_bounded_by_its_singular_values(intercept, rng):
    scale = np.linalg.qr(rng.normal(size=(D, D)))[0] * [0.5, 1.0, 20.0, 300.0]
    frame = Whitening(np.full(D, 0.1) * intercept, scale, intercept, R)
    low, high = frame._singular_values
    assert 0.5 - 1e-9 <= low * (1 + 1e-6) <= 0.5 * (1 + 1e-6) and 300 <= high <= 300 * (1 + 1e-6)
    assert frame.rounding >= 1 + 600 * ((R + 0.2) if intercept else 2.0)
    skew = Whitening(np.zeros(D), rng.normal(size=(D, D)), intercept, R)
    values = np.linalg.svd(skew.scale, compute_uv=False)
    assert skew._singular_values[0] <= values.min() <= values.max() <= skew._singular_values[1]
    assert skew.largest_norm >= values.max() * R


def test_maps_to_and_from_rows_are_adjoint(rng):
    frame = whitening(rng)
    coef, total = rng.normal(size=(D + 1, 1)), rng.normal(size=(D + 1, 1))
    assert (frame.to_rows(coef).T @ total).item() == pytest.approx((coef.T @ frame.from_rows(total)).item())


def test_a_geometry_without_a_bound_on_its_rounding_is_refused():
    oracle = Oracle.__new__(Oracle)
    oracle._process = os.getpid()
    for query in (
        SecondMoment(Standardization(np.zeros(2), np.full(2, 1e100), True, 1.0)),
        StandardizedGradient(Squared(), np.zeros((2, 1)), 1.0, Whitening(np.zeros(2), np.ones((2, 2)), False, 1.0)),
    ):
        with pytest.raises(PrivacyAccountingError, match="has no bound"):
            oracle.ask(query)


def test_the_second_moment_needs_one_scale_per_feature():
    """The bound of the query requires it."""
    with pytest.raises(ValueError, match="one scale per feature"):
        SecondMoment(Whitening(np.zeros(2), np.eye(2), True, 1.0))

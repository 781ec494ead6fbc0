"""The queries of whitened_gd: their definitions, and their sensitivities searched for over neighbours."""

import os

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import Squared
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import (
    FeatureTargetSums,
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


@pytest.fixture
def table(rng):
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    X[4], X[5] = [1e15, -1e15, 0.0, 1e10], 0.0
    X[6] = 1e200  # its squared norm overflows: a row of zeros
    return X, rng.uniform(-1, 1, N)


def clipped(X):
    X = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(X, axis=1)
    return X * np.where(np.isfinite(norms), R / np.maximum(norms, R), 0.0)[:, None]


def whitening(rng, intercept=True):
    return Whitening(rng.normal(size=D) / 4 if intercept else np.zeros(D), rng.normal(size=(D, D)) * 2, intercept, R)


@pytest.mark.parametrize("query", (TargetSum(), FeatureTargetSums(R, D)), ids=lambda query: type(query).__name__)
def test_targets_without_public_range_move_sums_no_further(query):
    """A loss of bounded slope lets targets of any size behind the oracle."""
    for adjacency, other in (("replace_one", -1e150), ("zero_out", None)):
        tables = [TrainingData(np.zeros((3, D)), np.array([0.5, 0.5, y or 0.0]), data_norm=R) for y in (1e150, other)]
        moved = query.evaluate(tables[0]) - query.evaluate(tables[1] if other else tables[0].without(np.array([2])))
        assert np.linalg.norm(moved) <= query.sensitivity(adjacency)


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

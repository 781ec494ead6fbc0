"""The queries of rescaled_gd: their definitions, and their sensitivities searched for over neighbours."""

import math
import os
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import Absolute, EpsilonInsensitive, Quantile
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import (
    LEAST_EXPONENT,
    DistanceHistogram,
    FeatureSums,
    ResidualSigns,
    ShortenedGradient,
    Standardization,
    TargetExponents,
    TargetHistogram,
    Whitening,
)

STORAGES = {"C": np.ascontiguousarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}
R, D, N = 1.3, 3, 40
NULL = np.array([0, 3])
ANY = np.array(
    [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 0.5, -0.75, 1.0, -1.0, 3.0, 1e6, -1e6, 1e150, 1e308, -1.7976931348623157e308]
)
EDGES = np.array([-2.0, -1.0, -1.0, 0.0, 0.5, 3.0])
every_storage = pytest.mark.parametrize("storage", STORAGES)
null_or_not = pytest.mark.parametrize("null", (False, True))


def rows_of(storage, X, y, null, intercept=True):
    rows, kept = (
        TrainingData(STORAGES[storage](X), y, data_norm=R, intercept_scaling=0.7 * intercept),
        np.ones(len(y), dtype=bool),
    )
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    return rows, kept


@every_storage
@null_or_not
def test_every_target_falls_into_the_range_of_its_exponent(storage, null):
    rows, kept = rows_of(storage, np.zeros((ANY.size, D)), ANY, null)
    query = TargetExponents()
    counts = query.evaluate(rows)
    assert counts.size == query.size and counts.sum() == kept.sum()
    assert counts[0] == np.count_nonzero(ANY[kept] == 0)
    for exponent in (-1073, -1021, 0, 1, 2, 20, 499, 1024):
        ends = [math.ldexp(1.0, exponent - 1), math.ldexp(1.0, exponent) if exponent < 1024 else math.inf]
        inside = (ends[0] <= np.abs(ANY)) & (np.abs(ANY) < ends[1]) & kept
        assert counts[exponent - LEAST_EXPONENT] == np.count_nonzero(inside)


@every_storage
@null_or_not
def test_targets_are_counted_between_the_edges(storage, null):
    rows, kept = rows_of(storage, np.zeros((ANY.size, D)), ANY, null)
    ends = [-math.inf, *EDGES, math.inf]
    expected = [np.count_nonzero((a <= ANY) & (ANY < b) & kept) for a, b in pairwise(ends)]
    assert TargetHistogram(EDGES).evaluate(rows).tolist() == expected
    assert TargetHistogram(EDGES).size == EDGES.size + 1


@pytest.mark.parametrize("kind", ("targets", "lengths"))
def test_a_record_moves_no_other_where_the_edges_are_in_disorder(kind, rng):
    """A binary search may begin where that of the record before ended, which is right in sorted edges only."""
    plain = Standardization(np.zeros(1), np.ones(1), False, 9.0)
    for edges in rng.uniform(0, 3, size=(200, 8)):
        query = TargetHistogram(edges) if kind == "targets" else DistanceHistogram(plain, edges)
        values, changed = rng.uniform(0, 3, size=(2, N))
        changed[1:] = values[1:]
        first, second = (query.evaluate(TrainingData(v[:, None], v, data_norm=9.0)) for v in (values, changed))
        assert np.linalg.norm(first - second) <= query.sensitivity("replace_one") + 1e-12


def shortened(query, X, y, kept, intercept):
    """The definition of a shortened gradient."""
    X = X * (R / np.maximum(np.linalg.norm(X, axis=1), R))[:, None]
    z = (X - query.geometry.centre) @ (query.geometry.scale if query.geometry.scale.ndim == 2 else np.diag(query.geometry.scale))
    z = np.column_stack([z, np.ones(len(z))]) if intercept else z
    residuals = query.loss.derivative(query.offset + query.unit * (z @ query.coef), y)[:, 0]
    weights = np.minimum(1, query.clip_norm / query.loss.lipschitz / np.linalg.norm(z, axis=1))
    return z.T @ (weights * residuals * kept)


@pytest.mark.parametrize("storage", ("C", "csr"))
@null_or_not
@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("loss", (Quantile(0.9), Absolute(), EpsilonInsensitive(2.0)), ids=lambda loss: loss.name)
@pytest.mark.parametrize("clip_norm", (0.5, 100.0))
def test_rows_weigh_less_whatever_their_residual(storage, null, intercept, loss, clip_norm, rng):
    X, y = rng.normal(size=(N, D)), 1e3 + 20 * rng.normal(size=N)
    rows, kept = rows_of(storage, X, y, null, intercept)
    centre = rng.normal(size=D) / 4 if intercept else np.zeros(D)
    geometry = Whitening(centre, 2 * rng.normal(size=(D, D)), intercept, R)
    query = ShortenedGradient(loss, rng.normal(size=(D + intercept, 1)), clip_norm, geometry, offset=1e3, unit=10.0)
    np.testing.assert_allclose(query.evaluate(rows), shortened(query, X, y, kept, intercept), rtol=1e-6, atol=1e-9)


@every_storage
@null_or_not
def test_signs_are_those_of_residuals(storage, null, rng):
    X, y = rng.normal(size=(N, D)) / 3, rng.normal(size=N)
    X[5], y[5] = 0.0, 0.7 * 0.25  # a residual of exactly 0
    y[NULL] = -9.0
    rows, kept = rows_of(storage, X, y, null)
    coef = np.array([[1.0], [-2.0], [0.5], [0.25]])
    X = X * (R / np.maximum(np.linalg.norm(X, axis=1), R))[:, None]
    signs = np.sign(X @ coef[:-1, 0] + 0.7 * 0.25 - y)
    assert signs[5] == 0
    assert ResidualSigns(coef).evaluate(rows).tolist() == [signs[kept].sum()]


def queries(rng, intercept):
    geometry = Standardization(np.zeros(D) if not intercept else np.full(D, 0.2), np.full(D, 5 / R), intercept, R)
    coef = rng.normal(size=(D + intercept, 1))
    losses = (Quantile(0.1), Absolute(), EpsilonInsensitive(1e-3))
    return [
        TargetExponents(),
        TargetHistogram(EDGES),
        FeatureSums(R, D),
        ResidualSigns(coef),
        *(ShortenedGradient(loss, 10 * coef, 0.3, geometry, offset=5.0, unit=1e3) for loss in losses),
        ShortenedGradient(losses[0], coef, 1e3, geometry, offset=1e300, unit=1e300),
    ]


def moves(query, rng, intercept):
    """Largest contribution of one record, and largest difference of two, over hostile records."""
    directions = np.concatenate([np.eye(D), -np.eye(D), rng.normal(size=(20, D))])
    records = [np.zeros(D), *(size * row / np.linalg.norm(row) for row in directions for size in (1e-9, 0.2, 1.0, R, 1e6, 1e200))]
    vectors = np.stack(
        [
            query.evaluate(TrainingData(x[None], np.array([y]), data_norm=R, intercept_scaling=1.0 * intercept))
            for x in records
            for y in (0.0, 0.3, -1e308, 1e308)
        ]
    )
    squares = np.square(vectors).sum(axis=1)
    return math.sqrt(squares.max()), math.sqrt((squares[:, None] + squares - 2 * vectors @ vectors.T).max())


@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("place", range(8))
def test_no_record_moves_a_query_further_than_its_sensitivity_and_some_come_near(place, intercept, rng):
    """A clip norm that no gradient reaches is not attained."""
    query = queries(rng, intercept)[place]
    with np.errstate(over="ignore", invalid="ignore"):
        alone, pair = moves(query, rng, intercept)
    near = 0.99 if place < 7 else 0.0
    if isinstance(query, ShortenedGradient) and isinstance(query.loss, Quantile):
        assert near < alone / query.sensitivity("zero_out") <= 1 + 1e-9
        assert pair / query.sensitivity("replace_one") <= 1 + 1e-9
        return
    assert near < alone / query.sensitivity("zero_out") <= 1 + 1e-9
    assert near < pair / query.sensitivity("replace_one") <= 1 + 1e-9


def test_two_opposite_rows_attain_the_sensitivity_of_a_quantile_without_intercept():
    geometry = Standardization(np.zeros(1), np.ones(1), False, R)
    query = ShortenedGradient(Quantile(0.1), np.zeros((1, 1)), 0.9, geometry)
    sums = [query.evaluate(TrainingData(np.array([[x]]), np.array([-1.0]), data_norm=R))[0] for x in (R, -R)]
    assert sums[0] - sums[1] == pytest.approx(query.sensitivity("replace_one"))


@pytest.mark.parametrize("offset, unit", ((math.nan, 1.0), (0.0, math.inf)))
def test_a_unit_that_is_not_finite_is_refused(offset, unit):
    oracle = Oracle.__new__(Oracle)
    oracle._process = os.getpid()
    geometry = Standardization(np.zeros(2), np.ones(2), True, 1.0)
    with pytest.raises(PrivacyAccountingError, match="not finite"):
        oracle.ask(ShortenedGradient(Absolute(), np.zeros((3, 1)), 1.0, geometry, offset=offset, unit=unit))
    with pytest.raises(PrivacyAccountingError, match="not finite"):
        oracle.ask(TargetHistogram(np.array([0.0, math.nan])))

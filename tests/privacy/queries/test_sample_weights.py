"""Sample weights in sums over records: no sensitivity grows, sums are of repeated records, and weight 0 is a null record."""

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import BoundedProper, Logistic, Multinomial, Squared
from skdp.privacy.data.training_data import GRAIN, TrainingData
from skdp.privacy.queries import (
    ClassCounts,
    ClassMoments,
    DistanceHistogram,
    FeatureTargetSums,
    LabelSum,
    Moments,
    ResidualHistogram,
    ScoreCounts,
    ScoreGradient,
    SecondMoment,
    ShortenedGradient,
    Standardization,
    StandardizedGradient,
    TargetSum,
    TotalWeight,
    Whitening,
)

R, D = 1.5, 3
GEOMETRY = Standardization(np.array([0.2, -0.1, 0.0]), np.array([0.9, 2.0, 0.6]), True, R)
WHITE = Whitening(GEOMETRY.centre, np.array([[1.0, 0.3, 0.0], [-0.3, 1.0, 0.0], [0.0, 0.0, 2.0]]), True, R)
POINT, SCORE = np.array([[0.8], [-0.5], [0.3], [0.1]]), np.array([[1.0], [2.0], [-1.0], [0.0]])
OF_CLASSES = [
    TotalWeight(),
    LabelSum(),
    ClassCounts(2),
    Moments(R, D),
    SecondMoment(GEOMETRY),
    ClassMoments(GEOMETRY),
    StandardizedGradient(Logistic(), POINT, 0.4, GEOMETRY),
    StandardizedGradient(Multinomial(3), np.hstack([POINT, -POINT, POINT / 2]), 0.4, WHITE),
    ShortenedGradient(BoundedProper(), POINT, 0.5, GEOMETRY),
    ScoreGradient(Logistic(), SCORE, np.array([1.2, -0.3]), 0.5),
    ScoreCounts(SCORE, (-50, 0, 50)),
    DistanceHistogram(GEOMETRY, np.array([0.3, 0.6, 1.2])),
]
OF_NUMBERS = [
    TargetSum(),
    FeatureTargetSums(R, D),
    ResidualHistogram(GEOMETRY, np.array([0.3, 0.6, 1.2]), 0.2),
    StandardizedGradient(Squared(), POINT, 0.4, WHITE),
]
QUERIES = [*OF_CLASSES, *OF_NUMBERS]
STORAGES = {"dense": np.asarray, "csr": sparse.csr_array, "csc": sparse.csc_array}


def name_of(query):
    return f"{type(query).__name__}{query.size}"


def storages_of(query):
    """A matrix as scale, and products of rows, need whole rows."""
    by_row = query.by_row or getattr(query, "geometry", None) is WHITE
    return [name for name in STORAGES if name != "csc" or not by_row]


def behind(X, y, weights, storage="dense"):
    return TrainingData(STORAGES[storage](X), y, data_norm=R, intercept_scaling=1.0, sample_weight=weights)


def targets(query, rng, n):
    return rng.integers(2, size=n).astype(np.int8) if query in OF_CLASSES else rng.uniform(-1, 1, size=n)


def records(rng, n):
    """Rows on the sphere of the bound, many at the corners that attain the sensitivities."""
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7)
    X[: n // 4] = np.eye(D)[rng.integers(D, size=n // 4)] * rng.choice([-1, 1], size=(n // 4, 1))
    turn = 2 * np.pi / 3 * np.arange(n // 4)  # at 120 degrees, in a plane
    X[n // 4 : 2 * (n // 4)] = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(n // 4)])
    return X * R * rng.choice([1.0, 3.0], size=(n, 1)) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)


@pytest.mark.parametrize("query", QUERIES, ids=name_of)
def test_no_weights_exceed_the_sensitivity_without_weights(query, rng):
    X = records(rng, 60)
    y = targets(query, rng, 60)
    y[1::2] = 1 - y[::2] if query in OF_CLASSES else -np.sign(y[::2])
    y[::2] = y[::2] if query in OF_CLASSES else np.sign(y[::2])
    alone = [query.evaluate(behind(X[[i]], y[[i]], np.ones(1))) for i in range(60)]
    null = query.evaluate(behind(X[[0]], y[[0]], np.zeros(1)))
    assert not null.any()
    weights = np.round(rng.choice([0.0, 1.0, 0.5, *rng.random(3)], size=60) / GRAIN) * GRAIN
    weighted = [query.evaluate(behind(X[[i]], y[[i]], weights[[i]])) for i in range(60)]
    for one, term, weight in zip(alone, weighted, weights, strict=True):
        np.testing.assert_allclose(term, weight * one, rtol=1e-9, atol=1e-12)
    every = np.array(alone + weighted)
    slack = 1 + 1e-9
    assert np.linalg.norm(every, axis=1).max() <= slack * query.sensitivity("zero_out")
    distances = np.linalg.norm(every[:, None] - every[None], axis=2)
    assert distances.max() <= slack * query.sensitivity("replace_one")
    assert query.sensitivity("zero_out") <= query.sensitivity("replace_one")


@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
def test_the_sensitivity_of_the_total_is_attained(adjacency, rng):
    X, weights = records(rng, 8), rng.random(8)
    weights[0] = 1.0
    other = weights.copy()
    other[0] = 0.0
    moved = TotalWeight().evaluate(behind(X, np.zeros(8), weights)) - TotalWeight().evaluate(behind(X, np.zeros(8), other))
    assert moved == TotalWeight().sensitivity(adjacency)


@pytest.mark.parametrize("query", QUERIES, ids=name_of)
def test_a_weight_repeats_its_record_and_zero_is_a_null_record(query, rng):
    """In every storage: weights k / 4 give a quarter of the sum over k copies of each record."""
    X, y, copies = records(rng, 40), targets(query, rng, 40), rng.integers(5, size=40)
    null = np.flatnonzero(copies == 0)
    for storage in storages_of(query):
        weighted = query.evaluate(behind(X, y, copies / 4, storage))
        repeated = query.evaluate(behind(np.repeat(X, copies, axis=0), np.repeat(y, copies), None, storage))
        np.testing.assert_allclose(4 * weighted, repeated, rtol=1e-9, atol=1e-10)
        ones = np.ones(40)
        ones[null] = 0.0
        absent = query.evaluate(behind(X, y, ones, storage))
        np.testing.assert_array_equal(absent, query.evaluate(behind(X, y, None, storage).without(null)))
        np.testing.assert_array_equal(absent, query.evaluate(behind(X, y, np.ones(40), storage).without(null)))
        assert np.abs(weighted - query.evaluate(behind(X, y, None, storage))).max() > 0.1  # weights do something


def test_a_sample_and_mapped_rows_keep_their_weights(rng):
    X, y, weights = records(rng, 40), rng.integers(2, size=40).astype(np.int8), rng.integers(5, size=40) / 4
    query, some, matrix = Moments(R, D), np.arange(0, 40, 3), sparse.csr_array(np.array([[1.0, 2, 0], [0, 1, 0], [0, 0, 0.5]]))
    rows = behind(X, y, weights)
    np.testing.assert_allclose(
        query.evaluate(rows.subset(some)), query.evaluate(behind(X[some], y[some], weights[some])), rtol=1e-12
    )
    assert TotalWeight().evaluate(rows.subset(some)) == weights[some].sum()
    expected = query.evaluate(behind(X @ matrix.toarray(), y, weights))
    np.testing.assert_allclose(query.evaluate(rows.mapped(matrix)), expected, rtol=1e-12)


@pytest.mark.parametrize("hostile", (np.nan, np.inf, -np.inf, -1.0, 2.0, 1e308, -5e-324))
def test_the_door_clips_whatever_weights_get_there(hostile, rng):
    X, y = records(rng, 8), np.zeros(8, dtype=np.int8)
    weights = np.ones(8)
    weights[0] = hostile
    total = TotalWeight().evaluate(behind(X, y, weights))
    assert total == (8 if hostile > 0 else 7)


def test_sums_of_weights_are_exact_in_any_order(rng):
    X, weights = np.zeros((5000, 1)), rng.random(5000)
    totals = {
        float(TotalWeight().evaluate(TrainingData(X, X[:, 0], data_norm=1.0, sample_weight=weights[order]))[0])
        for order in (rng.permutation(5000) for _ in range(5))
    }
    assert len(totals) == 1
    assert abs(totals.pop() - weights.sum()) <= 5000 * GRAIN

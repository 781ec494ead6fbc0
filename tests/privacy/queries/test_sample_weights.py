"""Sample weights in sums over records: no sensitivity grows, sums are of repeated records, and weight 0 is a null record."""

import numpy as np
import pytest
from scipy import sparse

from skdp.privacy.data.persons import GRAIN
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import (
    Moments,
    TotalWeight,
)

R, D = 1.5, 3
POINT, SCORE = np.array([[0.8], [-0.5], [0.3], [0.1]]), np.array([[1.0], [2.0], [-1.0], [0.0]])
STORAGES = {"dense": np.asarray, "csr": sparse.csr_array, "csc": sparse.csc_array}


def behind(X, y, weights, storage="dense"):
    return TrainingData(STORAGES[storage](X), y, data_norm=R, intercept_scaling=1.0, sample_weight=weights)


def records(rng, n):
    """Rows on the sphere of the bound, many at the corners that attain the sensitivities."""
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7)
    X[: n // 4] = np.eye(D)[rng.integers(D, size=n // 4)] * rng.choice([-1, 1], size=(n // 4, 1))
    turn = 2 * np.pi / 3 * np.arange(n // 4)  # at 120 degrees, in a plane
    X[n // 4 : 2 * (n // 4)] = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(n // 4)])
    return X * R * rng.choice([1.0, 3.0], size=(n, 1)) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)


@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
def test_the_sensitivity_of_the_total_is_attained(adjacency, rng):
    X, weights = records(rng, 8), rng.random(8)
    weights[0] = 1.0
    other = weights.copy()
    other[0] = 0.0
    moved = TotalWeight().evaluate(behind(X, np.zeros(8), weights)) - TotalWeight().evaluate(behind(X, np.zeros(8), other))
    assert moved == TotalWeight().sensitivity(adjacency)


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

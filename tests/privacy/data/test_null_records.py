"""Tests that a null record contributes nothing to any query, as the adjacency ``zero_out`` requires."""

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import Logistic, Multinomial
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import Gradient

NULL = np.array([0, 3])
OTHERS = np.array([1, 2, 4, 5, 6, 7])


@pytest.mark.parametrize("storage", (np.ascontiguousarray, sparse.csr_matrix, sparse.csc_matrix), ids=lambda s: s.__name__)
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(3)), ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept_scaling", (0.0, 0.7))
def test_the_sum_is_that_of_the_others(storage, loss, intercept_scaling, rng):
    X, y = rng.normal(size=(8, 3)), np.arange(8) % max(2, loss.n_outputs)
    query = Gradient(loss, rng.normal(size=(3 + bool(intercept_scaling), loss.n_outputs)), 0.8)
    constants = {"data_norm": 1.2, "intercept_scaling": intercept_scaling}
    rows = TrainingData(storage(X), y, **constants)
    whole = query.evaluate(rows)
    expected = query.evaluate(TrainingData(storage(X[OTHERS]), y[OTHERS], **constants))
    np.testing.assert_allclose(query.evaluate(rows.without(NULL)), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(query.evaluate(rows), whole)
    assert rows.without(NULL).n_samples == 8
    assert np.abs(whole - expected).max() > 0.1


@pytest.mark.parametrize("intercept_scaling", (0.0, 0.7))
def test_samples_may_draw_null_records(intercept_scaling, rng):
    X, y = rng.normal(size=(8, 3)), np.arange(8) % 2
    query = Gradient(Logistic(), rng.normal(size=(3 + bool(intercept_scaling), 1)), 0.8)
    rows = TrainingData(X, y, data_norm=1.2, intercept_scaling=intercept_scaling)
    drawn, left = np.array([0, 2, 3, 6]), np.array([2, 6])
    expected = query.evaluate(rows.subset(left))
    np.testing.assert_allclose(query.evaluate(rows.without(NULL).subset(drawn)), expected, rtol=1e-12)
    np.testing.assert_allclose(query.evaluate(rows.subset(drawn).without(NULL)), expected, rtol=1e-12)
    assert not query.evaluate(rows.without(NULL).subset(NULL)).any()


def test_the_table_is_not_copied(rng):
    X = rng.normal(size=(8, 3))
    null = TrainingData(X, np.zeros(8, dtype=int), data_norm=1.0).without(NULL)
    assert np.shares_memory(null._blocks.table, X)

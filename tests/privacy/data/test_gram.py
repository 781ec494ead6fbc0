"""Sums of weighted products of rows equal the definition, in every storage, with null records left out."""

import numpy as np
import pytest
from scipy import sparse

from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData


@pytest.mark.parametrize("storage", (np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix))
@pytest.mark.parametrize("intercept_scaling", (0.0, 0.7))
@pytest.mark.parametrize("n", (8, BLOCK + 3))
def test_a_gram_matrix_equals_the_definition(storage, intercept_scaling, n, rng):
    X, y, null = rng.normal(size=(n, 3)), np.arange(n) % 2, np.array([1, n - 2])
    coef = rng.normal(size=(3 + bool(intercept_scaling), 1))
    bounds = {"data_norm": 1.2, "intercept_scaling": intercept_scaling, "by_row": True}
    rows = TrainingData(storage(X), y, class_weight=np.array([1.0, 3.0]), **bounds).without(null)
    Z = X * np.minimum(1, 1.2 / np.linalg.norm(X, axis=1))[:, None]
    Z = np.hstack([Z, np.full((n, 1), intercept_scaling)]) if intercept_scaling else Z
    factors = np.where(y == 1, 3.0, 1.0) * np.exp(Z @ coef)[:, 0]
    factors[null] = 0.0
    gram = rows.gram(coef, lambda raw, records: np.exp(raw) * np.stack([records.weights, -records.weights], axis=1))
    expected = np.column_stack([(Z * factors[:, None]).T @ Z, -factors @ Z])
    np.testing.assert_allclose(gram, expected, rtol=1e-10, atol=1e-12)


def test_a_table_by_columns_has_no_rows_to_multiply():
    with pytest.raises(ValueError, match="by_row=True"):
        TrainingData(sparse.csc_matrix(np.eye(3)), np.zeros(3, dtype=int), data_norm=1.0).gram(np.zeros((3, 1)), None)

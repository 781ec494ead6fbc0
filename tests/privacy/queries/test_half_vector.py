"""Half-vectors: an isometry, and its inverse."""

import numpy as np
import pytest

from skdp.privacy.queries._half_vector import half_vector, half_vector_size, symmetric


@pytest.mark.parametrize("order", (1, 2, 7))
def test_norms_and_inner_products_are_kept_and_the_matrix_comes_back(order, rng):
    first, second = (matrix + matrix.T for matrix in rng.normal(size=(2, order, order)))
    assert half_vector(first).shape == (half_vector_size(order),)
    assert half_vector(first) @ half_vector(second) == pytest.approx(np.sum(first * second))
    np.testing.assert_allclose(symmetric(half_vector(first), order), first, rtol=1e-15)


def test_the_matrix_is_exactly_symmetric(rng):
    matrix = symmetric(rng.normal(size=half_vector_size(9)), 9)
    np.testing.assert_array_equal(matrix, matrix.T)


def test_nothing_below_the_diagonal_is_read(rng):
    matrix = rng.normal(size=(4, 4))
    np.testing.assert_array_equal(half_vector(matrix), half_vector(np.triu(matrix)))

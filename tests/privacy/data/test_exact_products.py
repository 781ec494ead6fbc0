"""Tests products of rows and coefficients: their precision, and that the other rows do not change them by a bit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_array

from skdp.privacy.data.exact_products import BITS, EXTREME, FEW, products
from skdp.privacy.data.storage import squares_in_order

STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sparse.csr_matrix, "csr_array": sparse.csr_array}
every_storage = pytest.mark.parametrize("storage", STORAGES)


@pytest.mark.each_pair
@every_storage
@pytest.mark.parametrize("n_features", (1, 2, 7, 784, 8193, 20_000))
@pytest.mark.parametrize("n_columns", (1, FEW, FEW + 1, 33))
def test_a_row_is_worked_out_alike_whatever_sample_it_is_in(storage, n_features, n_columns, rng):
    """Bit by bit, over samples of many sizes."""
    rows = rng.normal(size=(150, n_features)) * 10 ** rng.uniform(-3, 3, size=(150, 1))
    coef, stored = rng.normal(size=(n_features, n_columns)), STORAGES[storage](rows)
    whole = products(stored, coef)
    for size in (1, 1, 2, 3, *rng.integers(1, 150, 12)):
        chosen = np.sort(rng.choice(150, size, replace=False))
        sample = stored[chosen] if sparse.issparse(stored) else np.ascontiguousarray(stored[chosen])
        expected = whole if storage != "F" or n_columns > FEW else products(np.ascontiguousarray(stored), coef)
        np.testing.assert_array_equal(products(sample, coef), expected[chosen])


@pytest.mark.parametrize("n_features", (1, 5, 64, 784, 3000))
def test_all_orders_of_summation_agree_to_the_last_bit(n_features, rng):
    """Features and columns in any order, layouts, parts of the columns: on the grid all partial sums are exact."""
    rows = rng.normal(size=(40, n_features)) * 10 ** rng.uniform(-9, 9, size=(40, n_features))
    coef = rng.normal(size=(n_features, 12)) * 10 ** rng.uniform(-9, 9, size=(n_features, 1))
    value = products(rows, coef)
    for _ in range(5):
        order, columns = rng.permutation(n_features), rng.permutation(12)
        np.testing.assert_array_equal(products(rows[:, order], coef[order][:, columns]), value[:, columns])
        np.testing.assert_array_equal(products(np.asfortranarray(rows), np.asfortranarray(coef)), value)
    np.testing.assert_array_equal(products(rows, coef[:, :7]), value[:, :7])


@pytest.mark.parametrize("n_features", (1, 2, 5, 64, 784, 3000))
def test_relative_precision_is_as_stated(n_features, rng):
    """Against exact fractions: an entry is off by half a unit at most, 2**-b of the power of two above the largest."""
    rows, coef = rng.normal(size=(3, n_features)), rng.normal(size=(n_features, FEW + 2))
    unit = 2.0 ** -((BITS - math.ceil(math.log2(n_features))) // 2)
    largest = [2.0 ** np.frexp(np.abs(matrix).max(axis=axis))[1] for matrix, axis in ((rows, 1), (coef, 0))]
    offs = unit / 2 * (largest[0][:, None] * np.abs(coef).sum(axis=0) + np.abs(rows).sum(axis=1)[:, None] * largest[1])
    offs += n_features * unit**2 / 4 * np.outer(*largest)
    value = products(rows, coef)
    for i, j in np.ndindex(value.shape):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(rows[i].tolist(), coef[:, j].tolist(), strict=True))
        assert abs(Fraction(float(value[i, j])) - exact) <= Fraction(float(offs[i, j]))
    assert unit <= 2**-20


@every_storage
@pytest.mark.parametrize("n_columns", (1, FEW))
def test_few_columns_are_exact_up_to_float64(storage, n_columns, rng):
    rows, coef = rng.normal(size=(30, 784)), rng.normal(size=(784, n_columns))
    np.testing.assert_allclose(products(STORAGES[storage](rows), coef), rows @ coef, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", (5e-324, 1e-310, 1e-200, 2.0**-EXTREME, 1.0, 1e100, 2.0**EXTREME, 1e160, 1.7e308))
@pytest.mark.parametrize("other", (5e-324, 1e-200, 1.0, 2.0**EXTREME, 1.7e308))
def test_extreme_entries_give_the_product_zero_or_nothing_finite(scale, other, rng):
    """Units from 2**-480 to 2**480: below, entries round to zero; beyond, rows and columns are NaN, so the record is left out."""
    rows, coef = np.full((2, 3), scale), np.full((3, FEW + 1), other)
    rows[1] = 1.0
    with np.errstate(all="ignore"):
        value = products(rows, coef)
        alone = products(rows[:1], coef)
    np.testing.assert_array_equal(value[:1], alone)
    for entry, row in zip(value[:, 0], rows[:, 0], strict=True):
        exact = 3 * Fraction(float(row)) * Fraction(other)
        small = min(row, other) < 2.0 ** -(EXTREME - 26)
        assert (
            not np.isfinite(entry) or (small and abs(Fraction(float(entry))) <= 2 * exact) or entry == pytest.approx(float(exact))
        )
        assert np.isfinite(entry) or max(row, other) > 2.0**EXTREME
        assert not np.isfinite(entry) or max(row, other) < 2.0 ** (EXTREME + 27)


@pytest.mark.parametrize("entry", (np.nan, np.inf, -np.inf))
@pytest.mark.parametrize("n_columns", (1, FEW + 1))
def test_a_row_that_is_not_finite_stays_so_and_alone(entry, n_columns, rng):
    rows, coef = rng.normal(size=(5, 3)), rng.normal(size=(3, n_columns))
    expected = products(rows, coef)
    rows[2, 1] = entry
    with np.errstate(all="ignore"):
        value = products(rows, coef)
    assert not np.isfinite(value[2]).any()
    np.testing.assert_array_equal(np.delete(value, 2, axis=0), np.delete(expected, 2, axis=0))


@pytest.mark.parametrize("n_columns", (1, FEW + 1))
def test_nothing_is_changed_and_no_rows_give_none(n_columns, rng):
    rows, coef = rng.normal(size=(5, 3)), rng.normal(size=(3, n_columns))
    rows.setflags(write=False)
    coef.setflags(write=False)
    assert products(rows, coef).shape == (5, n_columns)
    assert products(rows[:0], coef).shape == (0, n_columns)


@pytest.mark.parametrize("n_rows", (1, 2, 3, 8, 129))
@pytest.mark.parametrize("n_columns", (1, 7, 9, 129, 1000))
def test_squares_are_added_from_the_first_column_to_the_last(n_rows, n_columns, rng):
    """Whatever adds the columns, also for a single row, which NumPy would add up in pairs; and so in CSR."""
    block = rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.integers(-8, 8, (n_rows, n_columns))
    expected = np.add.accumulate(np.square(block), axis=1)[:, -1]
    for stored in (block, np.asfortranarray(block), csr_array(block)):
        np.testing.assert_array_equal(squares_in_order(stored), expected)

"""Sums of hats: their definition, and their sensitivity searched for over hostile rows."""

import math

import numpy as np
import pytest
from scipy import sparse

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import HatSums

STORAGES = {"C": np.ascontiguousarray, "csr": sparse.csr_matrix, "csc": sparse.csc_array}
R, D = 1.5, 6
COLUMNS = np.array([1, 2, 3, 5])
LONGEST = 1 + 1e-9  # the rounding of a norm, which the noise covers
every_storage = pytest.mark.parametrize("storage", STORAGES)


def rows_of(storage, X, norm=R):
    return TrainingData(STORAGES[storage](X), np.zeros(len(X)), data_norm=norm, intercept_scaling=0.7, by_row=True)


def hostile(rng):
    """Rows of one long hat, of many, of the other columns, with signs, huge and tiny, and hats of real bases."""
    directions = np.concatenate([np.eye(D), -np.eye(D), np.ones((1, D)), rng.normal(size=(40, D)), rng.random((40, D))])
    hats = rng.dirichlet(np.ones(4), size=40)
    real = np.zeros((40, D))
    real[:, COLUMNS] = hats
    sizes = (1e-300, 1e-9, 0.5, 1.0, R, 1e6, 1e160, 1e300)
    return np.concatenate([real, *(size * directions for size in sizes)])


@every_storage
@pytest.mark.parametrize("norm", (R, 1e150))
def test_no_record_moves_the_sums_further_than_stated_and_some_come_near(storage, norm, rng):
    """The data norm, which is another clip, is of no help in one of the two cases."""
    query, rows = HatSums(COLUMNS), hostile(rng)
    moved = np.array([query.evaluate(rows_of(storage, row[None], norm)) for row in rows])
    assert np.isfinite(moved).all()
    alone = np.linalg.norm(moved, axis=1).max() / query.sensitivity("zero_out")
    squares = np.square(moved).sum(axis=1)
    pair = math.sqrt((squares[:, None] + squares - 2 * moved @ moved.T).max()) / query.sensitivity("replace_one")
    assert 0.99 < alone <= LONGEST and 0.99 < pair <= LONGEST


@pytest.mark.parametrize("columns", (np.array([False, True, False]), [1.0], [[1]], [], 1))
def test_columns_are_places(columns):
    """A mask would select one column and count as three: its sum would move all of them."""
    with pytest.raises(TypeError, match="expected a vector of integers"):
        HatSums(np.array(columns))


def test_what_is_asked_of_a_batch_has_the_stated_shape(rng):
    rows = rows_of("C", rng.normal(size=(10, D)))
    with pytest.raises(ValueError, match=r"expected \(3,\)"):
        rows.batch_sum(lambda batch: np.ones(1), 3)


def test_nobody_can_change_a_question(rng):
    places = COLUMNS.copy()
    query = HatSums(places)
    places[:] = 0
    np.testing.assert_array_equal(query.columns, COLUMNS)
    with pytest.raises(ValueError, match="read-only"):
        query.columns[0] = 0

"""Sums of errors: their definition, and a search for neighbours that move them further than stated."""

import math
from itertools import product

import numpy as np
import pytest

from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import ErrorSums

BOUND = 0.7
GRID = (
    np.concatenate([np.linspace(0, 1.2, 13) * BOUND, [1e300, np.finfo(float).max, 5e-324]]),
    np.concatenate([np.linspace(-1.2, 1.2, 13), [1e-300, 1.7]]),
    (0.5, -0.5),
)


def answer(query, errors, rows, null=()):
    table = TrainingData(np.asarray(rows, dtype=float), np.asarray(errors, dtype=float), data_norm=2.0)
    return query.evaluate(table.without(np.array(null, dtype=int)) if len(null) else table)


@pytest.mark.parametrize("with_target", (False, True))
def test_sums_are_those_of_the_definition(with_target, rng):
    errors, u, s = rng.exponential(BOUND, 50), rng.uniform(-1.2, 1.2, 50), rng.choice([0.5, -0.5], 50)
    found = answer(ErrorSums(BOUND, with_target), errors, np.column_stack([u, s]))
    e, u = np.minimum(errors / BOUND, 1), np.clip(u, -1, 1)
    expected = [e - 0.5, e**2 - 0.5, (e**4 - 0.5) / 2, s]
    expected += [u, u**2 - 0.5, (u**4 - 0.5) / 2, (e**2 * u**2 - 0.5) / 2, u**3 / 2, e**2 * u / 2] if with_target else []
    np.testing.assert_allclose(found, np.sum(expected, axis=1))


@pytest.mark.parametrize("with_target", (False, True))
def test_no_record_moves_the_sums_further_than_the_sensitivity(with_target):
    query = ErrorSums(BOUND, with_target)
    found = np.array([answer(query, [e], [[u, s]]) for e, u, s in product(*GRID)])
    norms = np.linalg.norm(found, axis=1)
    assert norms.max() == pytest.approx(query.sensitivity("zero_out"), rel=1e-12)  # attained
    squares = np.square(found).sum(axis=1)
    apart = math.sqrt((squares[:, None] + squares - 2 * found @ found.T).max())
    assert 0.85 < apart / query.sensitivity("replace_one") <= 1


def test_a_null_record_adds_nothing(rng):
    errors, rows = rng.exponential(BOUND, 9), rng.uniform(-1, 1, (9, 2))
    query = ErrorSums(BOUND, True)
    kept = np.delete(np.arange(9), [2, 7])
    np.testing.assert_allclose(answer(query, errors, rows, [2, 7]), answer(query, errors[kept], rows[kept]))

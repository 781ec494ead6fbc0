"""Knots where the records are: which places are chosen, and how a coarse basis follows from a fine one."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from skdp.estimators.additive._knot_placement import FINEST, finest, hat_columns, place_knots, placed, refinement
from skdp.preprocessing import AdditiveBasis, Schema

FACTS = Schema.read(
    {
        "columns": {
            "age": {"kind": "number", "bounds": [0, 100]},
            "sex": {"kind": "category", "categories": ["f", "m"]},
            "income": {"kind": "number", "bounds": [-10, 1e5], "scale": "log"},
        }
    }
)
PAIRS = (("age", "sex"), ("income", "age"))
BASIS = AdditiveBasis(FACTS, 4, PAIRS)


def people(rng, n):
    extreme = [0.0, 100.0, -1e300, 1e300, 5e-324, 50.0]
    age = np.where(rng.random(n) < 0.8, rng.uniform(0, 100, n), rng.choice(extreme, n))
    return pd.DataFrame({"age": age, "sex": rng.choice(["f", "m", "?"], n), "income": rng.choice([*extreme, 1e5, 1e3, -3.0], n)})


def shares(rng):
    """Noisy shares of any kind: likely ones, drowned ones, none at all, huge ones."""
    concentrated = rng.dirichlet(np.full(FINEST.size, 0.05), size=20)
    return [
        *concentrated,
        *(concentrated + 0.05 * rng.normal(size=(20, FINEST.size))),
        *(10.0**power * rng.normal(size=FINEST.size) for power in (-300, -3, 0, 6, 300)),
        *(sign * np.ones(FINEST.size) for sign in (-1, 0, 1)),
    ]


@pytest.mark.parametrize("size", (3, 4, 5, 9, 13, 21, 37))
def test_knots_are_fine_places_from_end_to_end(size, rng):
    even = {3: 1, 4: 1, 5: 2, 9: 4, 13: 4, 21: 4, 37: 4}[size]
    for noisy in shares(rng):
        found = place_knots(noisy, size)
        assert found.size == size and (np.diff(found) > 0).all() and (found[0], found[-1]) == (0, 1)
        assert np.isin(found, FINEST).all() and np.isin(np.arange(even + 1) / even, found).all()
        np.testing.assert_array_equal(place_knots(noisy.copy(), size), found)


def test_each_further_knot_is_in_the_middle_of_the_records_of_the_fullest_interval(rng):
    """Without noise; what is at a knot counts half on either side, and at the ends of the range whole."""
    for exact in rng.dirichlet(np.full(FINEST.size, 0.5), size=20):
        below = np.cumsum(exact) - exact / 2
        below[[0, -1]] = 0, 1
        for size in range(9, 25):
            before, after = place_knots(exact, size), place_knots(exact, size + 1)
            (new,) = np.setdiff1d(after, before)
            places = np.searchsorted(FINEST, before)
            full = {(a, b): below[b] - below[a] for a, b in pairwise(places) if b - a > 1}
            a, b = max((pair for pair in full if FINEST[pair[0]] < new < FINEST[pair[1]]), key=full.get)
            assert full[a, b] >= max(full.values()) - 0.02  # a hundredth of the weight is spread over the range
            distances = np.abs(below[a + 1 : b] - (below[a] + below[b]) / 2)
            assert distances[np.searchsorted(FINEST, new) - a - 1] <= distances.min() + 0.02


def test_knots_crowd_where_the_records_are():
    counts = np.exp(-0.5 * ((FINEST - 0.66) / 0.03) ** 2)
    found = place_knots(counts / counts.sum(), 13)
    assert np.count_nonzero(np.abs(found - 0.66) < 0.1) >= 5


def test_hat_columns_are_those_of_numbers_and_short(rng):
    fine = finest(BASIS)
    part = fine.transform(people(rng, 300)).toarray()[:, hat_columns(fine)]
    assert part.shape == (300, 2 * FINEST.size) and (part >= -1e-15).all()
    np.testing.assert_allclose(part.sum(axis=1), np.sqrt(2))
    assert np.linalg.norm(part, axis=1).max() <= 1 + 1e-12


@pytest.mark.each_value
@pytest.mark.parametrize("pairs", ((), PAIRS))
@pytest.mark.parametrize("intervals, dyadic", ((4, True), (7, True), (4, False), (16, True)))
def test_rows_of_the_coarse_basis_are_those_of_the_fine_one_times_the_matrix(pairs, intervals, dyadic, rng):
    basis = AdditiveBasis(FACTS, intervals, pairs, dyadic)
    frame = people(rng, 300)
    for _ in range(3):
        found = placed(basis, rng.dirichlet(np.full(FINEST.size, 0.2), size=2).ravel() + 0.01 * rng.normal(size=2 * FINEST.size))
        assert found.knots_of("age").size == basis.knots.size and found.n_features == basis.n_features
        matrix = refinement(finest(basis), found)
        mapped = (finest(basis).transform(frame) @ matrix).toarray()
        np.testing.assert_allclose(mapped, found.transform(frame).toarray(), atol=1e-13)
    assert not np.array_equal(found.knots_of("age"), found.knots_of("income"))

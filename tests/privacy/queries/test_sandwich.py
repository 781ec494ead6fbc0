"""The queries of "inference": their definitions, and their sensitivities searched for over neighbours."""

import numpy as np
import pytest
from test_whitening_queries import (
    NULL,
    STORAGES,
    D,
    N,
    R,
    alike,
    candidates,
    clipped,
    contribution,
    moves,
    rows_of,
    stored,
    whitening,
)

from skdp.losses import BoundedProper, Huber
from skdp.privacy.queries import Bread, Meat, ResidualSizes, ShortenedGradient, Whitening, symmetric

BOUND = 1.7
LOSSES = {"classes": BoundedProper(), "numbers": Huber(0.4)}


@pytest.fixture
def table(rng):
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    X[4], X[5] = [1e15, -1e15, 0.0, 1e10], 0.0
    X[6] = 1e200
    return X, rng.uniform(-1, 1, N)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("null", (False, True))
def test_sums_are_those_of_weighted_rows(kind, storage, intercept, null, table, rng):
    X, y, loss = stored(storage, table[0]), table[1], LOSSES[kind]
    y = (y > 0).astype(int) if kind == "classes" else y
    rows, kept = rows_of(X, y, intercept, null)
    for geometry in (alike(rng, 5 / R, intercept), whitening(rng, intercept)):
        scale = geometry.scale if geometry.scale.ndim == 2 else np.diag(geometry.scale)
        z = (clipped(X) - geometry.centre) @ scale
        z = np.column_stack([z, np.ones(N)]) if intercept else z
        coef = 0.3 * rng.normal(size=(z.shape[1], 1))
        raw, lengths = z @ coef, np.linalg.norm(z, axis=1)
        weights = np.square(BOUND / np.maximum(lengths, BOUND)) * kept
        if kind == "classes":
            margins = np.abs(raw[:, 0])
            information = 0.5 * np.exp(-margins) / (1 + np.exp(-margins))
            signed = np.where(y == 1, 1, -1)
            slopes = -0.5 * signed * np.exp(-np.maximum(signed * raw[:, 0], 0))
        else:
            information = np.abs(raw[:, 0] - y) < 0.4
            slopes = np.clip(raw[:, 0] - y, -0.4, 0.4)
        bread = symmetric(Bread(loss, coef, BOUND, geometry).evaluate(rows), z.shape[1])
        np.testing.assert_allclose(bread, z.T @ (z * (weights * information)[:, None]), rtol=1e-5, atol=1e-5)
        meat = symmetric(Meat(loss, coef, BOUND, geometry).evaluate(rows), z.shape[1])
        np.testing.assert_allclose(meat, z.T @ (z * np.square(weights * slopes)[:, None]), rtol=1e-5, atol=1e-5)
        gradient = ShortenedGradient(loss, coef, BOUND * loss.lipschitz, geometry, power=2.0).evaluate(rows)
        np.testing.assert_allclose(gradient, z.T @ (weights * slopes), rtol=1e-5, atol=1e-5)
        edges = np.array([0.1, 0.5, 1.0, 2.0])
        places = np.minimum(np.searchsorted(edges, np.abs(raw[:, 0] - y)), 3)
        counts = ResidualSizes(coef, edges, geometry).evaluate(rows)
        assert counts.tolist() == np.bincount(places[kept.astype(bool)], minlength=4).tolist()


def the_queries(rng, intercept):
    """Each query with targets that move it most."""
    white, size = whitening(rng, intercept), D + intercept
    still, far = np.zeros((size, 1)), 100 * rng.normal(size=(size, 1))
    edges = np.array([0.1, 0.5, 1.0])
    proper, huber = LOSSES["classes"], LOSSES["numbers"]
    return [
        (Bread(proper, still, BOUND, white), white, (0, 1)),
        (Bread(huber, still, BOUND, white), white, (0.0, 0.2)),
        (Meat(proper, still, BOUND, white), white, (0, 1)),
        (Meat(huber, far, BOUND, white), white, (-1.0, 1.0)),
        (ShortenedGradient(huber, far, BOUND * 0.4, white, power=2.0), white, (-1.0, 1.0)),
        (ResidualSizes(far, edges, white), white, (-1.0, 1.0)),
    ]


@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("place", range(6))
def test_no_record_moves_a_query_further_than_its_sensitivity_and_some_come_near(place, intercept, rng):
    query, geometry, targets = the_queries(rng, intercept)[place]
    alone, pair = moves(query, rng, geometry.centre, intercept, targets)
    near = [*candidates(rng, geometry.centre), *of_length(geometry, BOUND, intercept, rng)]
    vectors = np.stack([contribution(query, x, y, intercept) for x in near for y in targets])
    alone = max(alone, np.linalg.norm(vectors, axis=1).max())
    squares = np.square(vectors).sum(axis=1)
    pair = max(pair, np.sqrt((squares[:, None] + squares - 2 * vectors @ vectors.T).max()))
    assert 0.99 < alone / query.sensitivity("zero_out") <= 1 + 1e-9
    assert 0.9 < pair / query.sensitivity("replace_one") <= 1 + 1e-9
    assert query.sensitivity("zero_out") == pytest.approx(query.clip_norm)
    assert query.size == contribution(query, np.ones(D), 0, intercept).size


def of_length(geometry, bound, intercept, rng):
    """Rows whose z has a length near the bound, in the directions of the geometry and against each other."""
    length = np.sqrt(bound**2 - intercept)
    inverse = np.linalg.inv(geometry.scale)
    directions = np.concatenate([np.eye(D), -np.eye(D), np.linalg.qr(rng.normal(size=(D, D)))[0]])
    return geometry.centre + length * directions @ inverse


@pytest.mark.parametrize("intercept", (True, False))
def test_rounding_has_no_unit(intercept, rng):
    """Data times any number, with the geometry that goes with it, have the same bound, at least that of the exact products."""
    scale, centre = rng.normal(size=(D, D)), intercept * rng.normal(size=D) / 4
    found = []
    for unit in (1e-6, 1.0, 1e6):
        geometry = Whitening(unit * centre, scale / unit, intercept, unit * R)
        found.append(Bread(LOSSES["numbers"], np.zeros((D + intercept, 1)), BOUND, geometry).rounding)
    assert found == pytest.approx([found[1]] * 3)
    whole = np.vstack([R * scale, centre @ scale])
    assert found[1] >= 1 + 2 * np.square(whole).sum() / BOUND**2


def test_null_records_and_their_places_add_nothing(rng):
    X, y = rng.normal(size=(N, D)) / 4, rng.uniform(-1, 1, N)
    rows, _ = rows_of(X, y, True, True)
    moved = X.copy()
    moved[NULL] = 7.0
    others, _ = rows_of(moved, y, True, True)
    for query, _, _ in the_queries(rng, True):
        np.testing.assert_array_equal(query.evaluate(rows), query.evaluate(others))

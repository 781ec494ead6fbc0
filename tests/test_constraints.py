"""Constraint sets: projections against their definition and SciPy, linear minima, sizes, vertices, hostile numbers."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from skdp.constraints import Box, L1Ball, L2Ball, LpBall, Simplex, constraint_of

SETS = [
    L1Ball(1.0),
    L1Ball(30.0),
    L2Ball(2.0),
    Simplex(1.0),
    Simplex(0.1),
    *(LpBall(1.5, order) for order in (1.01, 1.2, 2.0, 3.0, 100.0)),
    Box(-0.5, 2.0),
    Box(1.0, 3.0),
]
BALLS = [kind for kind in SETS if not isinstance(kind, (Simplex, Box))]
HOSTILE = [
    np.zeros(4),
    np.array([5e-324, -5e-324, 0.0, 1e-310]),
    np.array([1e300, -1e300, 1.0, 0.0]),
    np.full(4, 1.7e308),
    np.array([1.7e308, -1.7e308, 1.7e308, -1.7e308]),
    np.array([1e300, 1e-300, 1e-300, -5e-324]),
    np.array([1.0, 1.0, 1.0, 1.0]),
    np.array([-3.0, -3.0, 3.0, -3.0]),
    np.array([1e16, 1e16 + 2, 1e16 - 2, 1.0]),
    np.array([2.0]),
    np.array([-1e-320]),
    np.ones(100_000),
    np.linspace(-1, 1, 100_000) ** 3,
]
VECTORS = hnp.arrays(float, st.integers(1, 8), elements=st.floats(-1e3, 1e3) | st.sampled_from([0.0, 1.0, -1.0, 0.5]))


@cache
def corners(constraint, p):
    """Points of the set in many directions, among them those where a linear function is least."""
    rng = np.random.default_rng(p)
    directions = np.concatenate([np.eye(p), -np.eye(p), rng.normal(size=(20, p)), rng.normal(size=(20, p)) ** 3])
    return [constraint.linear_minimizer(direction) for direction in directions]


@pytest.mark.slow
@pytest.mark.parametrize("constraint", SETS, ids=repr)
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(VECTORS)
def test_projection_satisfies_the_inequality_that_defines_it(constraint, w):
    """<w - P(w), v - P(w)> <= 0 for every v of the set; the set is the hull of its corners."""
    point = constraint.project(w)
    assert constraint.contains(point, 1e-9)
    scale = (1 + np.abs(w).max()) * (1 + np.abs(point).max())
    for v in [*corners(constraint, w.size), constraint.linear_minimizer(point - w)]:
        assert (w - point) @ (v - point) <= 2e-9 * scale * w.size
    np.testing.assert_allclose(constraint.project(point), point, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_projection_is_scipys(constraint, rng):
    """Of two formulations, SciPy's minimum is no nearer than ours."""
    for w in rng.normal(size=(3, 4)) * 3:
        ours = constraint.project(w)
        kinds = {
            L1Ball: lambda v: constraint.radius - np.sqrt(v * v + 1e-12).sum(),
            Simplex: lambda v: constraint.radius - v.sum(),
        }
        bounds = [(0, None)] * 4 if isinstance(constraint, Simplex) else None
        if isinstance(constraint, Box):
            bounds, conditions = [(constraint.low, constraint.high)] * 4, []
        else:
            inside = kinds.get(
                type(constraint), lambda v: constraint.radius - (np.abs(v) ** constraint.norm).sum() ** (1 / constraint.norm)
            )
            conditions = [{"type": "eq" if isinstance(constraint, Simplex) else "ineq", "fun": inside}]
        theirs = minimize(
            lambda v, w=w: ((v - w) ** 2).sum(),
            ours * 0.9 + 1e-3,
            bounds=bounds,
            constraints=conditions,
            method="SLSQP",
            tol=1e-12,
        ).x
        if constraint.contains(theirs, 1e-6):
            assert ((ours - w) ** 2).sum() <= ((theirs - w) ** 2).sum() * (1 + 1e-5)
        smaller = constraint.project(theirs)
        assert ((ours - w) ** 2).sum() <= ((smaller - w) ** 2).sum() * (1 + 1e-9)


@pytest.mark.each_value
@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("w", HOSTILE, ids=lambda w: f"{w[0]:g}-{w.size}")
def test_hostile_numbers_stay_in_the_set(constraint, w):
    for point in (constraint.project(w), constraint.linear_minimizer(w), constraint.project(-w)):
        assert point.shape == w.shape and np.isfinite(point).all()
        assert constraint.contains(point, 1e-9)


@pytest.mark.parametrize("radius", (1e-50, 1e-20, 1e20, 1e50))
@pytest.mark.parametrize("kind", (L1Ball, L2Ball, Simplex, LpBall))
def test_any_radius_will_do(kind, radius, rng):
    constraint, w = kind(radius), rng.normal(size=50)
    for size in (1e-300, 1e-50, 1.0, 1e50, 1e300):
        assert constraint.contains(constraint.project(size * w))
    unit = kind(1.0).project(3 * w)
    np.testing.assert_allclose(constraint.project(3 * radius * w) / radius, unit, rtol=1e-9, atol=1e-12)
    assert kind(1.0).scaled(radius) == constraint


@pytest.mark.parametrize("order", (1.01, 1.3, 1.9, 2.5, 7.0, 100.0))
def test_lp_projections_between_the_known_ones(order, rng):
    """Order 2 is the Euclidean ball; near 1 and far above 2, the l1 ball and the box are near."""
    w = 5 * rng.normal(size=30)
    np.testing.assert_allclose(LpBall(1.0, 2.0).project(w), L2Ball(1.0).project(w), rtol=1e-12)
    nearest = LpBall(1.0, order).project(w)
    assert (np.abs(nearest) ** order).sum() == pytest.approx(1.0, abs=1e-9)
    if order == 100.0:
        np.testing.assert_allclose(nearest, np.clip(w, -1, 1), atol=0.1)
    if order == 1.01:
        np.testing.assert_allclose(nearest, L1Ball(1.0).project(w), atol=0.1)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_linear_minimum_is_nowhere_beaten(constraint, rng):
    for p in (1, 2, 7):
        points = np.array([constraint.project(w) for w in rng.normal(size=(50, p)) * 3] + corners(constraint, p))
        for gradient in [*rng.normal(size=(20, p)), np.zeros(p), np.ones(p)]:
            least = constraint.linear_minimizer(gradient)
            assert constraint.contains(least)
            assert gradient @ least <= (points @ gradient).min() + 1e-12


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_diameter_is_not_exceeded_and_attained(constraint, rng):
    for p in (1, 2, 9):
        points = np.array(corners(constraint, p) + [constraint.linear_minimizer(s) for s in (np.ones(p), -np.ones(p))])
        largest = np.linalg.norm(points[:, None] - points, axis=2).max()
        assert largest <= constraint.diameter(p) * (1 + 1e-12)
        assert largest >= constraint.diameter(p) * (1 - 1e-9)


@pytest.mark.each_value
@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("p", (1, 2, 3, 30, 3000))
def test_gaussian_width_is_a_bound_within_its_factor(constraint, p, rng):
    """Against Monte Carlo, with 6 standard errors of room: a false alarm in 1e9."""
    n_draws = 4000 if p < 3000 else 300
    draws = np.array([g @ constraint.linear_minimizer(-g) for g in rng.normal(size=(n_draws, p))])
    mean, room = draws.mean(), 6 * draws.std() / math.sqrt(n_draws)
    exact, factor = isinstance(constraint, (L2Ball, Box)), 2.1 if isinstance(constraint, Simplex) else 1.5
    width = constraint.gaussian_width(p)
    assert width >= mean - room
    assert width <= (1.0 if exact else factor) * mean + 3 * room


@pytest.mark.parametrize("constraint", (L1Ball(2.0), Simplex(3.0)), ids=repr)
def test_vertices(constraint, rng):
    p, gradient = 5, rng.normal(size=5)
    vertices = constraint.vertices(p).toarray()
    assert len(np.unique(vertices, axis=0)) == len(vertices) == {L1Ball: 10, Simplex: 5}[type(constraint)]
    assert all(constraint.contains(v) for v in vertices)
    np.testing.assert_allclose(constraint.linear_minimizer(gradient), vertices[np.argmin(vertices @ gradient)])
    assert (np.abs(vertices).sum(axis=1) == constraint.radius).all()


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_scaling_a_set_scales_its_points(constraint, rng):
    w = rng.normal(size=6)
    np.testing.assert_allclose(constraint.scaled(3.0).project(3 * w), 3 * constraint.project(w), rtol=1e-9, atol=1e-15)
    assert constraint.scaled(3.0).gaussian_width(6) == pytest.approx(3 * constraint.gaussian_width(6))


def test_contains_sees_what_is_outside():
    for constraint in SETS:
        assert not constraint.contains(np.full(3, 40.0)) and not constraint.contains(np.array([4.0, -40.0, 0.0]))
        edge = constraint.linear_minimizer(-np.ones(3))
        assert constraint.contains(edge) and not constraint.contains(edge * (1 + 1e-6))


def test_a_box_of_its_own_bounds_per_coefficient():
    box = Box((0.0, -1.0), (1.0, 5.0))
    np.testing.assert_array_equal(box.project(np.array([-2.0, 9.0])), [0.0, 5.0])
    assert box.scaled(2.0) == Box((0.0, -2.0), (2.0, 10.0))
    assert Box(0, (1, 2)).low == (0.0, 0.0)
    with pytest.raises(ValueError, match="bounds of 2 coefficients; expected 3"):
        box.project(np.zeros(3))


def test_names_of_sets():
    assert constraint_of("l1", 2) == L1Ball(2.0)
    assert constraint_of("l2", Fraction(1, 2)) == L2Ball(0.5)
    assert constraint_of("simplex") == Simplex(1.0)
    assert constraint_of("box", 3.0) == Box(-3.0, 3.0)
    given = LpBall(1.0, 3.0)
    assert constraint_of(given, 7.0) is given
    with pytest.raises(ValueError, match="constraint='l0'; expected 'l1'"):
        constraint_of("l0", 1.0)
    for wrong in (None, 3, L1Ball, object()):
        with pytest.raises(TypeError, match="expected 'l1', 'l2', 'simplex', 'box', or an object"):
            constraint_of(wrong)


@pytest.mark.parametrize(
    "make, message",
    (
        (lambda: L1Ball(0.0), "radius=0.0; expected a finite number > 0"),
        (lambda: Simplex(math.nan), "radius=nan"),
        (lambda: L2Ball(math.inf), "radius=inf"),
        (lambda: L1Ball(1e60), "radius=1e.60"),
        (lambda: L1Ball("1"), "radius='1'"),
        (lambda: LpBall(1.0, 1.0), "order=1.0; expected a finite number >= 1.01 and <= 100"),
        (lambda: LpBall(1.0, True), "order=True"),
        (lambda: Box(1.0, 1.0), "low < high"),
        (lambda: Box(-math.inf, 1.0), "low < high"),
        (lambda: Box((0.0, 0.0), (1.0,)), "lengths"),
        (lambda: Box((), ()), "lengths"),
        (lambda: constraint_of("l1", -1), "radius=-1"),
    ),
)
def test_parameters_are_checked(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()

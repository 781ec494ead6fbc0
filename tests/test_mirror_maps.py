"""Mirror maps: every step against the definition of a mirror step, strong convexity, hostile gradients."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp.constraints import Box, L1Ball, L2Ball, LpBall, Simplex
from skdp.mirror_maps import Entropy, Euclidean, PNorm, SignedEntropy

SETS = [L1Ball(2.0), Simplex(0.5), L2Ball(3.0), *(LpBall(1.5, order) for order in (1.05, 1.5, 2.0, 4.0)), Box(-0.5, 2.0)]


def distance(mirror, z, state):
    """Bregman distance by its definition; of the signed entropy, in the doubled simplex."""
    if isinstance(mirror, (Entropy, SignedEntropy)):
        u, v = z / mirror.radius, np.exp(state)
        return mirror.radius**2 * float(
            np.sum(np.where(u > 0, u * (np.log(np.maximum(u, 1e-300)) - state), 0.0)) + v.sum() - u.sum()
        )
    return psi(mirror, z) - psi(mirror, state) - slope(mirror, state) @ (z - state)


def psi(mirror, z):
    constant = mirror.norm - 1 if isinstance(mirror, PNorm) else 1.0
    return float((np.abs(z) ** mirror.norm).sum() ** (2 / mirror.norm)) / (2 * constant)


def slope(mirror, z):
    constant = mirror.norm - 1 if isinstance(mirror, PNorm) else 1.0
    length = max(np.linalg.norm(z, mirror.norm), 1e-300)
    return np.sign(z) * np.abs(z) ** (mirror.norm - 1) * length ** (2 - mirror.norm) / constant


def lifted(mirror, state):
    """The point whose distance is taken: of the signed entropy, the one in the doubled simplex."""
    return mirror.radius * np.exp(state) if isinstance(mirror, (Entropy, SignedEntropy)) else state


def doubled(mirror, gradient):
    return np.concatenate([gradient, -gradient]) if isinstance(mirror, SignedEntropy) else gradient


@pytest.mark.each_value
@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("size", (0.1, 1.0, 10.0))
def test_steps_are_the_minima_of_their_definition(constraint, size, rng):
    """No point of the set that SciPy or chance finds is better."""
    mirror, step_size, gradients = constraint.mirror_map(4), 0.3, size * rng.normal(size=(2, 4))
    state = mirror.step(mirror.start(), gradients[0], step_size)
    new = mirror.step(state, gradients[1], step_size)
    inner = Simplex(constraint.radius) if isinstance(constraint, L1Ball) else constraint

    def objective(z):
        return float(doubled(mirror, gradients[1]) @ z) + distance(mirror, z, state) / step_size

    best, found = objective(lifted(mirror, new)), lifted(mirror, new)
    assert constraint.contains(mirror.point(new), 1e-9)
    for spread in (1e-4, 1e-2, 1.0):
        others = [inner.project(found + spread * rng.normal(size=found.size)) for _ in range(100)]
        assert min(objective(z) for z in others) >= best - 1e-9 * (1 + abs(best))
    scipys = minimize(lambda z: objective(inner.project(z)), found + 1e-3, method="Nelder-Mead", options={"maxiter": 4000})
    assert scipys.fun >= best - 1e-8 * (1 + abs(best))


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_distances_are_at_least_half_the_square_of_the_norm(constraint, rng):
    """1-strongly convex, and the spread bounds the distance from the start."""
    p = 5
    mirror = constraint.mirror_map(p)
    states = [mirror.start()]
    for _ in range(30):
        states.append(mirror.step(states[rng.integers(len(states))], 3 * rng.normal(size=p), float(rng.exponential())))
    largest = 0.0
    for state in states:
        for other in states[::3]:
            b = distance(mirror, lifted(mirror, state), other)
            apart = np.linalg.norm(mirror.point(state) - mirror.point(other), mirror.norm)
            assert b >= apart**2 / 2 - 1e-6
    ends = [constraint.linear_minimizer(g) for g in [*np.eye(p), *-np.eye(p), np.ones(p), -np.ones(p)]]
    for w in ends:
        z = np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)]) if isinstance(mirror, SignedEntropy) else w
        largest = max(largest, distance(mirror, z, mirror.start()))
    assert largest <= mirror.spread * (1 + 1e-9)
    assert largest >= mirror.spread * 0.2


def test_geometries():
    assert isinstance(L1Ball().mirror_map(3), SignedEntropy) and isinstance(Simplex().mirror_map(3), Entropy)
    assert isinstance(L2Ball().mirror_map(3), Euclidean) and isinstance(Box().mirror_map(3), Euclidean)
    assert isinstance(LpBall(1.0, 1.5).mirror_map(3), PNorm) and isinstance(LpBall(1.0, 3.0).mirror_map(3), Euclidean)
    np.testing.assert_allclose(SignedEntropy(2.0, 3).point(SignedEntropy(2.0, 3).start()), np.zeros(3))
    np.testing.assert_allclose(Entropy(2.0, 4).point(Entropy(2.0, 4).start()), np.full(4, 0.5))


def test_the_p_norm_of_order_2_is_euclidean(rng):
    plain, squared = L2Ball(1.0).mirror_map(6), LpBall(1.0, 2.0).mirror_map(6)
    state = plain.start()
    for gradient in rng.normal(size=(10, 6)):
        one, other = plain.step(state, gradient, 0.7), squared.step(state, gradient, 0.7)
        np.testing.assert_allclose(one, other, atol=1e-14)
        state = one


def test_weights_below_the_smallest_float_come_back():
    """After a long way towards one vertex and back, the entropy is where it was."""
    mirror = Simplex(1.0).mirror_map(3)
    state = mirror.start()
    for sign in (1, -1):
        for _ in range(100):
            state = mirror.step(state, sign * np.array([1.0, 2.0, 3.0]), 50.0)
    np.testing.assert_allclose(mirror.point(state), np.full(3, 1 / 3), rtol=1e-9)


GRADIENTS = [
    np.zeros(3),
    np.array([1e300, -1e300, 0.0]),
    np.array([1.7e308, -1.7e308, 1.7e308]),
    np.full(3, 1.7e308),
    np.array([5e-324, 0.0, -5e-324]),
    np.array([1e300, 1e-300, 1.0]),
    np.ones(3),
]


@pytest.mark.each_value
@pytest.mark.parametrize("step_size", (1e-300, 1e-10, 1.0, 1e10, 1e300))
@pytest.mark.parametrize("constraint", [*SETS, L1Ball(1e-50), Simplex(1e50), L2Ball(1e-50), LpBall(1e-50, 1.01)], ids=repr)
def test_hostile_gradients_stay_in_the_set(constraint, step_size):
    mirror = constraint.mirror_map(3)
    for first in GRADIENTS:
        state = mirror.step(mirror.start(), first, step_size)
        for second in (first, -first, np.array([1.0, -2.0, 0.5]), *GRADIENTS):
            state = mirror.step(state, second, step_size)
            point = mirror.point(state)
            assert np.isfinite(point).all() and constraint.contains(point, 1e-9)


@pytest.mark.parametrize("constraint", [L1Ball(2.0), L2Ball(2.0), LpBall(2.0, 1.3), Box(-2.0, 2.0)], ids=repr)
def test_a_single_coefficient(constraint):
    mirror = constraint.mirror_map(1)
    assert mirror.point(mirror.start()) == pytest.approx([0.0])
    assert mirror.point(mirror.step(mirror.start(), np.array([-1e6]), 1e6)) == pytest.approx([2.0])
    assert mirror.norm <= 2 and 0 < mirror.spread < math.inf


def test_a_simplex_of_a_single_coefficient_is_a_point():
    mirror = Simplex(2.0).mirror_map(1)
    assert mirror.point(mirror.step(mirror.start(), np.array([5.0]), 3.0)) == pytest.approx([2.0])
    assert mirror.spread == 0

"""Hessians and Newton directions: their definitions, and their sensitivities searched for over neighbours."""

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.losses import Logistic
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Curvature, NewtonDirection
from skdp.privacy.queries._half_vector import symmetric

R, M = 1.3, 0.25 * 1.3**2


class Foreign(Logistic):
    """A loss with arbitrary second derivatives, such as a user's."""

    def __init__(self, curvatures):
        self.curvatures = np.array(curvatures, dtype=float)

    def curvature(self, raw, labels):
        return np.resize(self.curvatures, raw.shape)

    upper_curvature = derivative = curvature


def rows_of(X, scaling=0.0, y=None, **more):
    y = np.zeros(X.shape[0], dtype=np.int8) if y is None else y
    return TrainingData(X, y, data_norm=R, intercept_scaling=scaling, by_row=True, **more)


def by_hand(raw, upper_bound):
    t = np.abs(raw)
    p = 1 / (1 + np.exp(-t))
    return np.where(t < 1e-3, 0.25, np.tanh(t / 2) / (2 * np.maximum(t, 1e-3))) if upper_bound else p * (1 - p)


def test_the_parabola_touches_the_loss_and_is_nowhere_below(rng):
    """With the weight of one record, read off a table of one unit row."""
    for t in [0.0, 1e-6, 1e-3, *rng.normal(size=30) * 5]:
        (h,) = Curvature(Logistic(), np.array([[t]]), 1.0).evaluate(rows_of(np.ones((1, 1))))
        u, zeros = np.linspace(-30, 30, 601), np.zeros(601)
        value = Logistic().value(np.array([[t]]), zeros[:1]) + Logistic().derivative(np.array([[t]]), zeros[:1])[:, 0] * (u - t)
        assert (Logistic().value(u[:, None], zeros) <= value + h / 2 * (u - t) ** 2 + 1e-6).all()
        assert h == pytest.approx(by_hand(t, True), rel=1e-6)


def moved(query, first, second):
    """Distance of the answers for two tables."""
    return np.linalg.norm(query.evaluate(rows_of(first)) - query.evaluate(rows_of(second)))


@pytest.mark.slow
@pytest.mark.parametrize("ridge", (0.02, 1.0, 50.0))
def test_directions_never_move_further_than_the_sensitivity_and_come_near(ridge, rng):
    """Neighbours at random, and the worst case: shared records of zeros, and a record along the gradient."""
    largest = {"replace_one": 0.0, "zero_out": 0.0}
    for trial in range(400):
        coef = rng.normal(size=(3, 1)) * rng.choice([0.0, 0.1, 10.0])
        gradient = rng.normal(size=(3, 1))
        shared = rng.normal(size=(10, 3)) * rng.choice([0.0, 0.1, 1.0])
        pair = rng.normal(size=(2, 3)) * rng.choice([0.5, R, 100.0], size=(2, 1))
        if trial % 2:
            along = gradient[:, 0] / np.linalg.norm(gradient)
            coef, shared, pair = np.zeros((3, 1)), np.zeros((10, 3)), np.array([R * along, 0 * along])
        query = NewtonDirection(Curvature(Logistic(), coef, M), gradient, np.full(3, ridge), 11)
        tables = [np.vstack([shared, record]) for record in pair]
        largest["replace_one"] = max(largest["replace_one"], moved(query, *tables) / query.sensitivity("replace_one"))
        alone = rows_of(tables[0])
        change = np.linalg.norm(query.evaluate(alone) - query.evaluate(alone.without(np.array([10]))))
        largest["zero_out"] = max(largest["zero_out"], change / query.sensitivity("zero_out"))
        expected = M * np.linalg.norm(gradient) / (ridge * (ridge + M))
        assert query.sensitivity("zero_out") == query.sensitivity("replace_one") == pytest.approx(expected)
    assert all(0.99 < found <= 1 + 1e-9 for found in largest.values())


def test_the_smallest_ridge_counts():
    gradient = np.array([[3.0], [4.0]])
    query = NewtonDirection(Curvature(Logistic(), np.zeros((2, 1)), M), gradient, np.array([7.0, 0.5]), 10)
    assert query.clip_norm == pytest.approx(M * 5 / (0.5 * (0.5 + M)))


WEIRD = st.sampled_from([math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, 5e-324, 0.25, -1.0])


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(WEIRD, min_size=1, max_size=6), st.booleans(), st.sampled_from([0.0, 1e-200, 1e-30, 1.0, 1e150]))
def test_no_loss_can_exceed_the_clip(curvatures, upper_bound, size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3)) * size
    query = Curvature(Foreign(curvatures), rng.normal(size=(3, 1)), M, upper_bound)
    direction = NewtonDirection(query, rng.normal(size=(3, 1)), np.ones(3), 1)
    with np.errstate(all="ignore"):
        for row in X:
            answer = query.evaluate(rows_of(row[None]))
            assert np.linalg.norm(answer) <= M * (1 + 1e-9)
            assert np.linalg.eigvalsh(symmetric(answer, 3))[0] >= -1e-12
            change = direction.evaluate(rows_of(row[None])) - direction.gradient[:, 0]
            assert np.linalg.norm(change) <= direction.clip_norm * (1 + 1e-9)


@pytest.mark.parametrize("length", (1e-120, 1e-140, 1e-144, 1e-160))
def test_no_loss_is_infinite_where_the_limit_of_a_short_row_overflows(length):
    clip_norm, X = 0.25e100, np.array([[length, 0.0]])
    query = Curvature(Foreign([math.inf]), np.zeros((2, 1)), clip_norm, upper_bound=False)
    with np.errstate(all="ignore"):
        answer = query.evaluate(TrainingData(X, np.zeros(1, dtype=np.int8), data_norm=1e50, by_row=True))
    assert np.linalg.norm(answer) <= clip_norm * (1 + 1e-9)


def test_labels_and_weights_do_not_lift_the_clip():
    X = np.full((1, 2), 10.0)
    for label in (0, 1):
        rows = rows_of(X, y=np.array([label], dtype=np.int8), class_weight=np.array([1e6, 1e6]))
        assert np.linalg.norm(Curvature(Logistic(), np.zeros((2, 1)), M).evaluate(rows)) == pytest.approx(M)


@pytest.mark.parametrize("ridge", (0.0, -1.0, math.nan, math.inf, 1e-12))
def test_a_ridge_without_a_bound_is_refused_before_data_are_read(ridge):
    oracle = Oracle.__new__(Oracle)
    oracle._process = os.getpid()
    query = NewtonDirection(Curvature(Logistic(), np.zeros((2, 1)), M), np.ones((2, 1)), np.array([1.0, ridge]), 10**9)
    with pytest.raises(PrivacyAccountingError), np.errstate(all="ignore"):
        oracle.ask(query)


def test_rounding_is_bounded_by_the_allowance(rng):
    """Against exact sums: the error of a direction, over the clip norm, is at most the stated multiple of that of a sum."""
    X = rng.normal(size=(5000, 6))
    coef, gradient = np.zeros((6, 1)), rng.normal(size=(6, 1))
    query = NewtonDirection(Curvature(Logistic(), coef, M), gradient, np.full(6, 0.01), 5000)
    rows = rows_of(X)
    order = rng.permutation(5000)
    error = np.linalg.norm(query.evaluate(rows) - query.evaluate(rows_of(X[order])))
    assert 0 < error <= 2 * query.clip_norm * rows.summation_error * query.rounding

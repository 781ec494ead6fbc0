"""Losses: derivatives against finite differences, constants against search, extremes."""

import numpy as np
import pytest
from scipy.special import softmax

from skdp.losses import Logistic, Multinomial, Squared

LOSSES = (Logistic(), Multinomial(2), Multinomial(5), Squared())


def some_labels(loss, rng, size):
    if loss.targets == "numbers":
        return rng.choice([-1.0, 1.0], size) * rng.random(size) ** 0.01  # many near the ends
    return rng.integers(0, max(2, loss.n_outputs), size).astype(np.int8)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivative_equals_finite_differences(loss, rng):
    raw = 3 * rng.normal(size=(200, loss.n_outputs))
    labels = some_labels(loss, rng, 200)
    derivative = loss.derivative(raw, labels)
    for k in range(loss.n_outputs):
        step = np.zeros(loss.n_outputs)
        step[k] = 1e-5
        numerical = (loss.value(raw + step, labels) - loss.value(raw - step, labels)) / 2e-5
        np.testing.assert_allclose(derivative[:, k], numerical, atol=1e-9)


def test_curvature_equals_finite_differences_and_is_at_most_the_smoothness(rng):
    raw, labels = 3 * rng.normal(size=(200, 1)), rng.integers(0, 2, 200).astype(np.int8)
    numerical = (Logistic().derivative(raw + 1e-5, labels) - Logistic().derivative(raw - 1e-5, labels)) / 2e-5
    np.testing.assert_allclose(Logistic().curvature(raw, labels), numerical, atol=1e-9)
    extremes = Logistic().curvature(np.array([[0.0], [800.0], [-800.0], [1e300]]), np.zeros(4, dtype=np.int8))
    np.testing.assert_array_equal(extremes[:, 0], [Logistic.smoothness, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_lipschitz_constant_is_attained_and_never_exceeded(loss, rng):
    """For targets in [-1, 1] that holds of predictions in [-1, 1]."""
    raw = 1000 * rng.normal(size=(500, loss.n_outputs))
    raw = raw.clip(-1, 1) if loss.targets == "numbers" else raw
    labels = some_labels(loss, rng, 500)
    largest = np.linalg.norm(loss.derivative(raw, labels), axis=1).max()
    assert 0.99 * loss.lipschitz <= largest <= loss.lipschitz * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_smoothness_is_attained_and_never_exceeded(loss, rng):
    raw = rng.normal(size=(2000, loss.n_outputs)) * 10 ** rng.uniform(-3, 1, (2000, 1))
    if loss.n_outputs > 1:
        raw[:, 2:] -= 50  # two classes compete: the worst case
    step = 1e-4 * rng.normal(size=raw.shape)
    labels = np.zeros(2000, dtype=np.int8)
    change = np.linalg.norm(loss.derivative(raw + step, labels) - loss.derivative(raw, labels), axis=1)
    ratio = (change / np.linalg.norm(step, axis=1)).max()
    assert 0.95 * loss.smoothness <= ratio <= loss.smoothness * (1 + 1e-6)


def test_values_of_the_logistic_loss():
    raw = np.array([[0.0], [800.0], [-800.0], [800.0]])
    np.testing.assert_allclose(Logistic().value(raw, np.array([1, 1, 1, 0])), [np.log(2), 0.0, 800.0, 800.0])


def test_two_classes_agree(rng):
    """The softmax of (0, t) is the logistic model."""
    raw, labels = rng.normal(size=(50, 1)), rng.integers(0, 2, 50)
    pair = np.column_stack([np.zeros(50), raw])
    np.testing.assert_allclose(Multinomial(2).value(pair, labels), Logistic().value(raw, labels))
    np.testing.assert_allclose(Multinomial(2).derivative(pair, labels)[:, 1:], Logistic().derivative(raw, labels), atol=1e-15)
    np.testing.assert_allclose(Multinomial(2).derivative(pair, labels) + np.eye(2)[labels], softmax(pair, axis=1))

"""Losses: derivatives against finite differences, constants against search, extremes."""

from inspect import isabstract

import numpy as np
import pytest
from scipy.special import softmax

import skdp.losses
from skdp.losses import (
    Absolute,
    BoundedProper,
    EpsilonInsensitive,
    Logistic,
    MarginLoss,
    Multinomial,
    Quantile,
    RobustLoss,
    Squared,
    SquaredDistance,
)
from skdp.privacy.budget import Budget
from skdp.privacy.queries import CurvedLoss
from skdp.solvers import NoLoss, Problem


def subclasses(base):
    """The losses of a base that the package exports."""
    kinds = [getattr(skdp.losses, name) for name in skdp.losses.__all__]
    return tuple(kind for kind in kinds if issubclass(kind, base) and kind is not base)


THRESHOLDS = (0.1, 1.0, 7.0)
ROBUST_KINDS = subclasses(RobustLoss)
ONE_AGAINST_REST = tuple(kind for kind in subclasses(MarginLoss) if kind is not BoundedProper)  # which is of two classes
ROBUST = tuple(kind(threshold) for kind in ROBUST_KINDS for threshold in THRESHOLDS)
KINKED = (Absolute(), Quantile(0.5), Quantile(0.1), Quantile(0.95), EpsilonInsensitive(0.0), EpsilonInsensitive(0.3))
MARGINS = (BoundedProper(), *(kind(k) for kind in ONE_AGAINST_REST for k in (1, 4)))
LOSSES = (Logistic(), Multinomial(2), Multinomial(5), Squared(), SquaredDistance(3), *ROBUST, *KINKED, *MARGINS)
CURVED = tuple(loss for loss in (Logistic(), *MARGINS) if isinstance(loss, CurvedLoss))
SMOOTH = tuple(loss for loss in LOSSES if loss.smoothness < np.inf)


def some_labels(loss, rng, size):
    if isinstance(loss, SquaredDistance):
        return np.outer(rng.choice([-1.0, 1.0], size) * rng.random(size) ** 0.01, np.ones(3) / np.sqrt(3))
    if loss.targets == "numbers":
        return rng.choice([-1.0, 1.0], size) * rng.random(size) ** 0.01  # many near the ends
    return rng.integers(0, max(2, loss.n_outputs), size).astype(np.int8)


def test_every_loss_is_here():
    kinds = [getattr(skdp.losses, name) for name in skdp.losses.__all__]
    assert {type(loss) for loss in LOSSES} == {kind for kind in kinds if not isabstract(kind)}


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivative_equals_finite_differences(loss, rng):
    raw = 3 * rng.normal(size=(200, loss.n_outputs))
    labels = some_labels(loss, rng, 200)
    if loss in ROBUST:  # away from the kinks
        raw = raw[keep := np.abs(np.abs(raw[:, 0] - labels) - loss.threshold) > 1e-4]
        labels = labels[keep]
    elif loss in KINKED or loss in MARGINS:
        raw = np.round(raw, 2) + 0.00317  # targets are far from them in the last digits
        labels = np.round(labels, 2) if loss in KINKED else labels
    derivative = loss.derivative(raw, labels)
    for k in range(loss.n_outputs):
        step = np.zeros(loss.n_outputs)
        step[k] = 1e-5
        numerical = (loss.value(raw + step, labels) - loss.value(raw - step, labels)) / 2e-5
        np.testing.assert_allclose(derivative[:, k], numerical, atol=1e-9)


@pytest.mark.parametrize("loss", CURVED, ids=repr)
def test_curvature_equals_finite_differences_and_is_at_most_the_smoothness(loss, rng):
    """Kinks of the derivative are half a unit apart, and no point is near one in the last digits."""
    raw = np.round(3 * rng.normal(size=(200, loss.n_outputs)), 2) + 0.00317
    labels = some_labels(loss, rng, 200)
    numerical = (loss.derivative(raw + 1e-5, labels) - loss.derivative(raw - 1e-5, labels)) / 2e-5
    np.testing.assert_allclose(loss.curvature(raw, labels), numerical, atol=1e-9)
    assert loss.curvature(raw, labels).max() <= loss.smoothness
    if loss.name != "squared_hinge":
        far = loss.curvature(np.full((2, loss.n_outputs), 800.0) * [[1], [-1]], np.zeros(2, dtype=np.int8))
        np.testing.assert_array_equal(far, np.zeros_like(far))


@pytest.mark.parametrize("loss", [loss for loss in CURVED if loss.n_outputs == 1], ids=repr)
def test_parabolas_touch_the_loss_and_are_nowhere_below(loss, rng):
    around = np.linspace(-30, 30, 601)
    for t in [0.0, 1e-6, 1e-3, 0.5, 1.0, 1.5, *rng.normal(size=30) * 5]:
        for label in (0, 1):
            at, labels = np.array([[t]]), np.full(601, label)
            slope, bend = loss.derivative(at, labels[:1])[0, 0], loss.upper_curvature(at, labels[:1])[0, 0]
            parabola = loss.value(at, labels[:1])[0] + slope * (around - t) + bend / 2 * (around - t) ** 2
            assert (loss.value(around[:, None], labels) <= parabola + 1e-6).all()
            assert 0 < bend <= loss.smoothness


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if hasattr(loss, "constant")], ids=repr)
def test_no_constant_is_better_than_the_best_one(loss, rng):
    """The slope of the mean loss there is 0, or has opposite signs on either side."""
    n_classes = max(2, loss.n_outputs)
    for frequencies in (*rng.dirichlet(np.ones(n_classes), 20), np.full(n_classes, 1.0), np.eye(n_classes)[0] + 1e-6):
        best = loss.constant(frequencies)
        around = best + np.concatenate([np.zeros((1, loss.n_outputs)), 0.1 * rng.normal(size=(200, loss.n_outputs))])
        values = sum(share * loss.value(around, np.full(201, label)) for label, share in enumerate(frequencies))
        assert best.shape == (loss.n_outputs,) and (values >= values[0] - 1e-12).all()
    if loss in MARGINS and loss.n_outputs == 1:
        assert loss.constant(np.ones(2)).tolist() == [0.0]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_lipschitz_constant_is_attained_and_never_exceeded(loss, rng):
    """For losses whose slope has no bound, that holds of targets and predictions in [-1, 1]."""
    raw = 1000 * rng.normal(size=(2000, loss.n_outputs)) * 10 ** rng.uniform(-5, 2, size=(2000, 1))
    raw = raw if loss.bounded else raw.clip(-1, 1)
    raw = raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1) if isinstance(loss, SquaredDistance) else raw
    labels = some_labels(loss, rng, 2000)
    raw = raw + labels[:, None] if loss in ROBUST else raw
    largest = np.linalg.norm(loss.derivative(raw, labels), axis=1).max()
    assert 0.99 * loss.lipschitz <= largest <= loss.lipschitz * (1 + 1e-12)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_smoothness_is_attained_and_never_exceeded(loss, rng):
    raw = rng.normal(size=(2000, loss.n_outputs)) * 10 ** rng.uniform(-3, 1, (2000, 1))
    if isinstance(loss, Multinomial) and loss.n_outputs > 1:
        raw[:, 2:] -= 50  # two classes compete: the worst case
    step = 1e-4 * rng.normal(size=raw.shape)
    step[::2] = np.abs(step[::2]).max() * np.eye(loss.n_outputs)[rng.integers(0, loss.n_outputs, 1000)]  # along one axis
    labels = np.zeros(raw.shape if isinstance(loss, SquaredDistance) else 2000, dtype=np.int8)
    if loss in ROBUST:
        step *= loss.threshold
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


@pytest.mark.parametrize("loss", ROBUST, ids=repr)
def test_convexity_is_as_stated(loss):
    """The slope of a convex loss never falls; that of the others falls towards 0."""
    raw = loss.threshold * np.linspace(-50, 50, 20001)[:, None]
    slopes = loss.derivative(raw, np.zeros(20001))[:, 0]
    assert bool((np.diff(slopes) >= 0).all()) == loss.convex
    assert loss.convex or abs(slopes[-1]) < 0.05 * loss.lipschitz


@pytest.mark.parametrize("loss", KINKED + MARGINS, ids=repr)
def test_slopes_of_losses_with_kinks_and_margins_never_fall(loss):
    """They are convex in each output, also at the kinks."""
    raw = np.zeros((20001, loss.n_outputs))
    raw[:, -1] = np.linspace(-5, 5, 20001)
    for label in (0, 1):
        assert (np.diff(loss.derivative(raw, np.full(20001, label))[:, -1]) >= 0).all()


def test_pinball_loss_is_least_at_the_quantile(rng):
    targets = rng.normal(size=999)
    for quantile in (0.1, 0.5, 0.9):
        costs = [Quantile(quantile).value(np.full((999, 1), t), targets).sum() for t in np.sort(targets)]
        assert np.argmin(costs) == int(999 * quantile)


def test_margin_losses_of_one_against_the_rest_add_up(rng):
    raw, labels = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    for kind in ONE_AGAINST_REST:
        parts = [kind().value(raw[:, [k]], (labels == k).astype(int)) for k in range(3)]
        np.testing.assert_allclose(kind(3).value(raw, labels), np.sum(parts, axis=0))


@pytest.mark.parametrize("size", (1e150, 1.7e308))
@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_slopes_with_kinks_are_bounded_whatever_the_residual_is(loss, size):
    ends = np.array([-size, 0.0, size])
    slopes = loss.derivative(np.repeat(ends, 3)[:, None], np.tile(ends, 3))
    assert (np.abs(slopes) <= loss.lipschitz).all()


@pytest.mark.parametrize("loss", ROBUST, ids=repr)
def test_robust_losses_are_even_and_look_like_the_squared_loss_near_zero(loss, rng):
    """That makes the smoothness 1 at every threshold, and the loss grow with the residual."""
    raw, zeros = loss.threshold * 1e-4 * rng.normal(size=(50, 1)), np.zeros(50)
    np.testing.assert_allclose(loss.value(raw, zeros), raw[:, 0] ** 2 / 2, rtol=1e-6)
    np.testing.assert_allclose(loss.derivative(raw, zeros), raw, rtol=1e-6)
    wide = loss.threshold * np.sort(10 ** rng.uniform(-8, 8, 50))[:, None]
    np.testing.assert_array_equal(loss.value(wide, zeros), loss.value(-wide, zeros))
    np.testing.assert_array_equal(loss.derivative(wide, zeros), -loss.derivative(-wide, zeros))
    assert (np.diff(loss.value(wide, zeros)) >= 0).all()


@pytest.mark.parametrize("size", (1e20, 1e150, 1e200, 1.7e308))
@pytest.mark.parametrize("threshold", (1e-50, 1.0, 1e50))
@pytest.mark.parametrize("kind", ROBUST_KINDS)
def test_robust_losses_stay_finite_whatever_the_residual_is(kind, threshold, size):
    """Raw predictions and targets near the end of float64, also of opposite signs, overflow without a warning or a NaN."""
    loss, ends = kind(threshold), np.array([-size, 0.0, size])
    raw, labels = np.repeat(ends, 3)[:, None], np.tile(ends, 3)
    slopes = loss.derivative(raw, labels)[:, 0]
    assert (np.abs(slopes) <= loss.lipschitz * (1 + 1e-12)).all()
    assert not np.isnan(loss.value(raw, labels)).any()
    far = raw[:, 0] != labels if size >= 1e150 else np.zeros(9, dtype=bool)
    limit = np.sign(raw[:, 0] / 2 - labels / 2) * loss.lipschitz if loss.convex else np.zeros(9)
    np.testing.assert_allclose(slopes[far], limit[far], rtol=1e-12, atol=1e-90 * threshold)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_what_a_loss_states_beside_the_protocol_is_so(loss, rng):
    raw, labels = rng.uniform(-1, 1, size=(1000, loss.n_outputs)), some_labels(loss, rng, 1000)
    if getattr(loss, "quadratic", False):
        np.testing.assert_allclose(loss.value(raw, labels), np.square(raw[:, 0] - labels) / 2)
    if getattr(loss, "log_odds", False) or getattr(loss, "log_probabilities", False):
        raw = np.column_stack([np.zeros(1000), raw]) if loss.n_outputs == 1 else raw
        found = np.exp(-loss.value(raw[:, -loss.n_outputs :], labels))
        np.testing.assert_allclose(found, softmax(raw, axis=1)[np.arange(1000), labels.astype(int)])
    if (quantile := getattr(loss, "quantile", None)) is not None:
        slope = loss.derivative(np.full((1000, 1), quantile), np.linspace(0, 1, 1000)).mean()
        assert abs(slope) < 0.01


def test_solvers_go_by_what_a_loss_states_and_not_by_its_name():
    named, stated = NoLoss("squared"), type("Own", (NoLoss,), {"quadratic": True})("my own")
    offers = [Problem(100, 3, loss, Budget(1.0, 1e-6, "zero_out"), 1.0, 1.0).offers for loss in (named, stated, Squared())]
    assert ["squared" in offer for offer in offers] == [False, True, True]


@pytest.mark.parametrize("p", (0.001, 0.2, 0.5, 0.97))
def test_log_odds_are_the_root_of_the_mean_slope_of_the_bounded_proper_loss(p):
    at = np.full((2, 1), np.log(p / (1 - p)))
    slopes = BoundedProper().derivative(at, np.array([0, 1]))[:, 0]
    assert slopes @ [1 - p, p] == pytest.approx(0, abs=1e-15)
    assert np.abs(slopes).max() == BoundedProper().lipschitz == 0.5
    assert BoundedProper().constant(np.array([1 - p, p])) == pytest.approx(at[0])

"""Plots of coefficients: what is drawn of intervals, of odds ratios, and of what is not identified."""

import sys

import matplotlib
import numpy as np
import pytest
from marks import slow
from seeded import fitted
from sklearn.exceptions import NotFittedError

from skdp import DPAdditiveRegressor, DPLinearRegression, DPLogisticRegression
from skdp.inspection import CoefficientDisplay
from skdp.inspection._coefficient_display import MOST_TICKS

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 3))
    score = X @ [1.0, -0.5, 0.0]
    given = {"feature_bounds": 1.0, "inference": True}
    linear = fitted(DPLinearRegression(target_bounds=(-3, 3), **given), X, score + 0.3 * rng.normal(size=4000))
    return linear, fitted(DPLogisticRegression(**given), X, (rng.random(4000) < 1 / (1 + np.exp(-score))).astype(int))


def drawn(display):
    """Ends of the thin lines, from top to bottom."""
    lines = [line for line in display.ax_.lines if line.get_linewidth() == 2 and len(line.get_xdata()) == 2]
    return np.array([line.get_xdata() for line in lines if line.get_color() != "#777777"])


def test_intervals_are_those_of_the_model(models):
    linear, logistic = models
    display = CoefficientDisplay.from_estimator(linear)
    np.testing.assert_allclose(drawn(display), np.asarray(linear.confidence_intervals())[:3])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["x0", "x1", "x2"]
    assert (display.noise[:, 0] > display.confidence[:, 0]).all() and (display.noise[:, 1] < display.confidence[:, 1]).all()
    ratios = CoefficientDisplay.from_estimator(logistic, features=["x1", "x0"], units={"x0": 0.5})
    ends = np.asarray(logistic.confidence_intervals())
    np.testing.assert_allclose(drawn(ratios), np.exp([ends[1], 0.5 * ends[0]]))
    assert ratios.ax_.get_xscale() == "log" and ratios.names == ["x1", "x0 (per 0.5)"]
    plain = CoefficientDisplay.from_estimator(logistic, odds_ratios=False)
    assert plain.ax_.get_xscale() == "linear"


def test_what_is_not_identified_has_a_note_and_no_interval(rng):
    X = rng.uniform(-1, 1, (400, 3))
    model = DPLinearRegression(0.2, target_bounds=(-1, 1), feature_bounds=1.0, inference=True)
    with pytest.warns(UserWarning, match="drown the signal"):
        model.fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="3 of 3 combinations of coefficients are not identified") as found:
        display = CoefficientDisplay.from_estimator(model)
    assert len(found) == 1
    assert drawn(display).size == 0
    assert [text.get_text() for text in display.ax_.texts] == ["not identified at this budget"] * 3


@pytest.mark.parametrize("largest", [1.2, 9.0, *slow(1.5, 1.9, 2.9, 90.0)])
def test_long_names_leave_room_and_ticks_are_few(largest):
    ends = np.log([[1 / largest, largest]] * 2)
    names = [f"marital status_married, spouse in the {service} service (against never married)" for service in ("civil", "armed")]
    given = {"confidence": ends, "noise": ends / 2, "estimable": np.ones(2, dtype=bool), "level": 0.95, "odds": True}
    display = CoefficientDisplay(names=names, estimate=np.zeros(2), **given).plot()
    display.figure_.draw_without_rendering()
    assert display.ax_.get_window_extent().width > 0.5 * display.figure_.bbox.width
    upper, lower = (label.get_window_extent() for label in display.ax_.get_yticklabels())
    assert upper.y0 > lower.y1 and upper.x0 >= 0
    assert 3 <= len(display.ax_.get_xticks()) <= MOST_TICKS


def test_mistakes_are_refused(models):
    linear, _ = models
    with pytest.raises(ValueError, match=r"no features \['age'\]; expected some of \['x0', 'x1', 'x2'\]"):
        CoefficientDisplay.from_estimator(linear, features=["age"])
    with pytest.raises(ValueError, match=r"no features \['age'\]"):
        CoefficientDisplay.from_estimator(linear, units={"age": 10})
    with pytest.raises(ValueError, match="only a classifier has odds"):
        CoefficientDisplay.from_estimator(linear, odds_ratios=True)
    with pytest.raises(NotFittedError, match="This DPLinearRegression instance is not fitted yet"):
        CoefficientDisplay.from_estimator(DPLinearRegression())
    usual = fitted(DPLinearRegression(feature_bounds=1.0, target_bounds=(-1, 1)), np.zeros((200, 3)), np.zeros(200))
    with pytest.raises(AttributeError, match="not fitted for inference; expected inference=True"):
        CoefficientDisplay.from_estimator(usual)
    curves = fitted(DPAdditiveRegressor(feature_bounds=1.0, target_bounds=(-1, 1), knots=2), np.zeros((200, 3)), np.zeros(200))
    with pytest.raises(TypeError, match=r"a DPAdditiveRegressor; expected a DPLogisticRegression or .*AdditiveDisplay draws"):
        CoefficientDisplay.from_estimator(curves)


def test_a_plot_without_matplotlib_says_what_is_missing(monkeypatch):
    given = {"names": [], "estimate": np.zeros(0), "confidence": np.zeros((0, 2)), "noise": np.zeros((0, 2))}
    display = CoefficientDisplay(**given, estimable=np.zeros(0, dtype=bool), level=0.95, odds=False, event=None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="A plot needs matplotlib, which is missing"):
        display.plot()

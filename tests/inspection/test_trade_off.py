"""The display of an audit shows what the result holds."""

import sys

import numpy as np
import pytest

from skdp import DPLogisticRegression
from skdp.audit import audit
from skdp.inspection import TradeOffDisplay
from skdp.solvers import SGD, GradientDescent

pyplot = pytest.importorskip("matplotlib.pyplot")
X, Y = np.zeros((20, 2)), np.arange(20) % 2


def audited(solver=None, **params):
    model = DPLogisticRegression(2.0, delta=1e-5, solver=solver or GradientDescent(2))
    return audit(model, X, Y, n_runs=40, random_state=0, **params)


@pytest.fixture(scope="module")
def result():
    return audited()


@pytest.fixture(autouse=True)
def closed_figures():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


@pytest.mark.parametrize("view", ("transcript", "final"))
def test_the_curve_and_the_point_are_those_of_the_result(result, view):
    display = TradeOffDisplay.from_audit(result, view=view)
    bound = result.bound(view)
    positive, negative = result.error_rates(view)
    np.testing.assert_array_equal(display.line_.get_xydata(), np.column_stack([positive, negative]))
    assert (positive[0], negative[0], positive[-1], negative[-1]) == (1, 0, 0, 1)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"confidence bound, $\\varepsilon$ ≥ {bound.epsilon:.3g}" in texts
    points = [line.get_xydata().tolist() for line in display.ax_.lines]
    assert [[bound.false_positive_rate, bound.false_negative_rate]] in points
    assert display.figure_ is display.ax_.figure


def test_the_result_draws_itself_on_given_axes(result):
    _, ax = pyplot.subplots()
    assert result.plot(ax=ax).ax_ is ax
    assert result.plot().view == "transcript"
    with pytest.raises(ValueError, match="view='model' was not audited"):
        result.plot("model")


@pytest.mark.slow
@pytest.mark.parametrize("params", ({}, {"solver": SGD(2, batch_size=10)}, {"method": "clopper-pearson"}), ids=str)
def test_the_shaded_region_ends_at_guessing(params):
    positive, least = audited(**params).plot().permitted
    assert (least <= 1 - positive + 1e-9).all()
    assert least[0] == pytest.approx(1, abs=1e-3)


def test_missing_matplotlib_is_said(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="A plot needs matplotlib, which is missing"):
        result.plot()

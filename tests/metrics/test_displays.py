"""Displays of a private evaluation: what they draw follows from the released table, and its intervals hold the truth."""

import math
import sys

import matplotlib
import numpy as np
import pytest
from made_scores import Scores, records
from matplotlib import pyplot
from scipy.special import expit
from sklearn.metrics import confusion_matrix

from skdp.metrics import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay, evaluate
from skdp.testing import reproducible_noise

matplotlib.use("Agg")
EVERY = (RocCurveDisplay, CalibrationDisplay, ConfusionMatrixDisplay)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def found(n=5000, seed=0, epsilon=1.0, factor=1.0):
    with reproducible_noise(seed):
        return evaluate(Scores(factor), *records(n, seed=seed), epsilon=epsilon, adjacency="zero_out")


@pytest.mark.parametrize("normalize", (None, "true", "pred", "all"))
@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_without_noise_the_matrix_is_that_of_scikit_learn(normalize):
    X, y = records(5000)
    display = ConfusionMatrixDisplay.from_evaluation(evaluate(Scores(), X, y, epsilon=math.inf), normalize=normalize)
    expected = confusion_matrix(y, np.where(X[:, 0] >= 0, "yes", "no"), normalize=normalize)
    np.testing.assert_allclose(display.confusion_matrix, expected, rtol=1e-9)
    assert (display.interval[:, :, 0] < expected).all() and (expected < display.interval[:, :, 1]).all()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["no", "yes"]


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_without_noise_the_curve_has_the_rates_at_its_thresholds():
    X, y = records(5000)
    display = RocCurveDisplay.from_evaluation(evaluate(Scores(), X, y, epsilon=math.inf))
    p = expit(np.clip(X[:, 0], -6, 6))
    for label, rate in (("no", display.fpr), ("yes", display.tpr)):
        # Scores are counted in hundredths of half the log-odds, so those within 0.01 of an edge can fall on either side.
        expected = [np.mean(p[y == label] >= threshold) for threshold in display.thresholds]
        np.testing.assert_allclose(rate, expected, atol=0.01)


@pytest.mark.exhaustive
def test_intervals_cover_the_true_rates_at_their_level():
    X, y = records(400_000, seed=10**6)
    p, labels = expit(np.clip(X[:, 0], -6, 6)), y == "yes"
    inside, shares, ax = [], [], pyplot.figure().gca()
    for seed in range(30):
        evaluation = found(2000, seed)
        roc = RocCurveDisplay.from_evaluation(evaluation, ax=ax)
        for k in range(1, len(roc.thresholds) - 1, 6):
            above = p >= roc.thresholds[k]
            rates = np.mean(above[~labels]), np.mean(above[labels])
            ends = roc.fpr_interval[k], roc.tpr_interval[k]
            inside.append(all(low <= rate <= high for rate, (low, high) in zip(rates, ends, strict=True)))
        calibration = CalibrationDisplay.from_evaluation(evaluation, ax=ax)
        for (low, high), (start, stop) in zip(calibration.interval, calibration.ranges, strict=True):
            within = (p >= start) & (p <= stop)
            shares.append(low <= labels[within].mean() <= high)
    # By simulation .989 and .950; in 30 evaluations, below these limits in fewer than one of a thousand.
    assert np.mean(inside) > 0.93 and np.mean(shares) > 0.9
    assert len(shares) > 150


@pytest.mark.parametrize("kind", EVERY)
def test_a_display_reads_the_evaluation_only(kind):
    one, other = kind.from_evaluation(found()), kind.from_evaluation(found())
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(other, name))
    _, ax = pyplot.subplots()
    assert one.plot(ax) is one and one.ax_ is ax and one.figure_ is ax.figure
    with pytest.raises(TypeError, match=r"what skdp\.metrics\.evaluate returned"):
        kind.from_evaluation(Scores())


@pytest.mark.parametrize("kind", EVERY)
def test_few_records_are_drawn_as_not_determined(kind):
    display = kind.from_evaluation(found(60, epsilon=0.05))
    display.figure_.canvas.draw()
    if kind is RocCurveDisplay:
        assert (np.diff(display.tpr) >= 0).all() and (np.diff(display.fpr) >= 0).all()
        assert "AUC not determined" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    elif kind is ConfusionMatrixDisplay:
        assert np.isnan(display.confusion_matrix).any()
    else:
        assert len(display.prob_true) == 0 and "noise hides" in display.ax_.texts[0].get_text()
        assert display.ax_.get_ylabel() == "share of class yes"


def test_wrong_parameters_are_refused():
    evaluation = found()
    with pytest.raises(ValueError, match="expected 'true', 'pred', 'all' or None"):
        ConfusionMatrixDisplay.from_evaluation(evaluation, normalize="rows")
    with pytest.raises(ValueError, match="expected 2"):
        ConfusionMatrixDisplay.from_evaluation(evaluation, display_labels=["no"])
    with pytest.raises(ValueError, match="expected an integer from 1 on"):
        CalibrationDisplay.from_evaluation(evaluation, n_bins=0)


@pytest.mark.parametrize("kind", EVERY)
def test_a_plot_without_matplotlib_says_what_is_missing(kind, monkeypatch):
    evaluation = found()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="A plot needs matplotlib, which is missing"):
        kind.from_evaluation(evaluation)

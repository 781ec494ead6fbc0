"""Evaluations of few metrics: releases that these need, kinds of noise, intervals, and what they do not tell."""

import math

import numpy as np
import pytest
from made_scores import Scores, records
from scipy.stats import norm
from test_evaluate import exact

from skdp import PrivacyLedger
from skdp.metrics import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay, evaluate, plan_evaluation
from skdp.metrics._definition import MetricDefinition
from skdp.metrics._metrics import CLASSIFICATION
from skdp.metrics._noisy_mean import STEPS, NoisyMean, half_width
from skdp.metrics._score_kinds import LossMean
from skdp.testing import reproducible_noise

MATRIX = ("accuracy", "recall", "specificity", "precision")
KINDS = ("laplace", "gaussian")
LOSSES = {name: metric.limits for name, metric in CLASSIFICATION.items() if metric.loss}


def found(names, n=2000, seed=0, rate=0.4, **given):
    with reproducible_noise(seed):
        return evaluate(Scores(), *records(n, rate, seed=seed), metrics=names, **given)


@pytest.mark.parametrize("names", [(name,) for name in LOSSES] + [MATRIX, ("recall",)])
@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_without_noise_the_metrics_are_those_of_scikit_learn(names):
    for name, one in found(names, 5000, epsilon=math.inf).items():
        assert one.value == pytest.approx(exact(*records(5000))[name], abs=1e-5)
        assert one.low < one.value < one.high


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "names, queries",
    (
        (("accuracy",), ["LossSums"]),
        (("log_loss",), ["LossSums"]),
        (("brier_score",), ["LossSums"]),
        (("precision",), ["ScoreCounts"]),
        (MATRIX, ["ScoreCounts"]),
        (("roc_auc",), ["ScoreCounts", "ScoreCounts"]),
        (tuple(CLASSIFICATION), ["ScoreCounts", "ScoreCounts"]),
    ),
)
def test_a_release_is_as_large_as_its_metrics_need(names, queries, kind):
    given = {"metrics": names, "epsilon": 0.5, "adjacency": "zero_out", "noise": kind}
    report, planned = (
        found(names, **{k: v for k, v in given.items() if k != "metrics"}).privacy_report,
        plan_evaluation(2000, **given),
    )
    assert [str(line) for line in planned.releases] == [str(line) for line in report.releases]
    trees = [query.replace("ScoreCounts", "ScoreTree") for query in queries] if len(queries) == 2 else queries
    assert [line.query for line in report.releases] == (trees if kind == "gaussian" else queries)
    assert all(("Laplace" in str(line)) == (kind == "laplace") for line in report.releases)
    assert report.spent.delta == (0 if kind == "laplace" else 1 / 2000**2) and 0.4999 < report.spent.epsilon <= 0.5


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
@pytest.mark.parametrize("name", LOSSES)
def test_one_metric_has_the_noise_that_its_sensitivity_needs(name, adjacency, kind):
    """In the units of a loss in [-1, 1]."""
    seen, stated, loss = [], None, LossMean(CLASSIFICATION[name], 1).query.loss
    for seed in range(100):
        table = found((name,), seed=seed, epsilon=1.0, adjacency=adjacency, noise=kind).table
        X, y = records(2000, seed=seed)
        seen.append(table.mean - loss(np.clip(X[:, 0], -6, 6), (y == "yes").astype(int)).mean())
        stated = table.noise
    assert np.std(seen) == pytest.approx(stated, rel=0.35) and abs(np.mean(seen)) < 5 * stated / 10
    if kind == "laplace":
        moved = 2.0 if adjacency == "replace_one" else 1.0 if name == "accuracy" else 1.125
        assert stated * 2000 == pytest.approx(math.sqrt(2) * moved, rel=0.05)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOSSES)
def test_intervals_of_one_metric_cover_noise_and_sampling(name, kind):
    truth, repeats, inside = exact(*records(400_000, seed=10**6))[name], 150, 0
    for seed in range(repeats):
        metric = found((name,), 500, seed, epsilon=0.3, adjacency="zero_out", noise=kind)[name]
        inside += metric.low <= truth <= metric.high
    assert 131 <= inside  # 142 on average; fewer than 131 in one of 10 000


def test_quantiles_are_those_of_the_sum_of_noise_and_a_normal(rng):
    for noise, spread in ((1.0, 0.3), (0.3, 1.0), (1.0, 1e-5), (1e-3, 1.0), (1e-14, 1.0)):
        draws = rng.laplace(scale=noise / math.sqrt(2), size=400_000) + spread * rng.normal(size=400_000)
        assert np.mean(np.abs(draws) <= half_width(noise, spread, True, 0.95)) == pytest.approx(0.95, abs=0.002)
    assert half_width(3.0, 4.0, False, 0.9) == pytest.approx(5 * norm.ppf(0.95))
    assert half_width(0.0, 2.0, True, 0.9) == pytest.approx(2 * norm.ppf(0.95))
    assert half_width(0.0, 0.0, True, 0.9) == 0 < half_width(1e-3, 0.0, True, 0.9)
    assert half_width(0.9999e-3, 1.0, True, 0.9) == pytest.approx(half_width(1.0001e-3, 1.0, True, 0.9), rel=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("epsilon", (70.0, 100.0, 150.0))
@pytest.mark.filterwarnings("ignore::skdp.privacy.WeakPrivacyWarning")
def test_hardly_any_noise_has_an_interval_too(name, epsilon):
    (one,) = found((name,), epsilon=epsilon, noise="laplace").values()
    assert one.value == pytest.approx(exact(*records(2000))[name], abs=1e-4) and one.low < one.value < one.high


@pytest.mark.parametrize("names", [(name,) for name in CLASSIFICATION] + [tuple(CLASSIFICATION)], ids="-".join)
def test_values_lie_in_their_intervals_and_these_in_the_range_and_wide_ones_have_none(names):
    seen = dict.fromkeys(names, 0)
    for seed in range(12):
        for n, epsilon in ((60, 0.5), (200, 0.5), (300, 1.0), (5000, 1.0)):
            for name, one in found(names, n, seed=seed, rate=0.1, epsilon=epsilon).items():
                least, most = CLASSIFICATION[name].limits
                assert least <= one.low <= one.high <= most
                if math.isnan(one.value):
                    assert (one.low, one.high) == (least, most)
                else:
                    assert one.low <= one.value <= one.high and one.high - one.low <= 0.5
                    seen[name] += 1
    assert min(seen.values()) > 0


@pytest.mark.parametrize(
    "raw, published",
    (
        ((-0.02, -0.15, 0.1), (0.0, 0.0, 0.1)),
        ((1.1, 0.9, 1.3), (1.0, 0.9, 1.0)),
        ((-0.4, -0.5, -0.3), (0.0, 0.0, 0.0)),
        ((0.3, 0.0, 0.6), (math.nan, 0.0, 1.0)),
        ((math.nan, 0.0, math.inf), (math.nan, 0.0, 1.0)),
    ),
)
def test_what_is_published_is_clipped_to_the_range(raw, published):
    clipped = MetricDefinition("any", "metric", lambda table, level: raw).metric(None, 0.95)
    assert (clipped.value, clipped.low, clipped.high) == pytest.approx(published, nan_ok=True)


def test_an_accuracy_beyond_its_range_has_an_interval_within():
    for mean in (1.2, -1.2, 1.0):
        value, low, high = NoisyMean(mean, 1.0, 0.3, True, 500, (0.0, 1.0), 1).interval(0.95)
        assert 0 <= low <= high <= 1 and (mean <= 1) == (value <= 1)


def test_the_noise_is_the_smaller_one_and_gaussian_under_a_ledger():
    small = plan_evaluation(5000, epsilon=0.5, adjacency="zero_out")
    assert small.spent.delta == 0 and "Laplace noise, which has less error" in small.solver_reason
    large = plan_evaluation(5000, epsilon=0.5, adjacency="replace_one", delta=1e-4)  # a delta for which Gaussian noise is small
    assert large.spent.delta == 1e-4 and "Gaussian noise, which has less error" in large.solver_reason
    with PrivacyLedger(epsilon=1.0, delta=1e-3):
        pure = found(("accuracy",), epsilon=0.4, noise="laplace").privacy_report
        shared = found(("accuracy",), epsilon=0.4).privacy_report
    assert shared.releases[0].noise_multiplier is not None and "costs less in a ledger" in shared.solver_reason
    assert pure.spent.delta == 0 and "pure 0.4-differential privacy" in str(plan_evaluation(5000, epsilon=0.4, delta=0))


@pytest.mark.slow
def test_all_noise_of_one_budget_is_worse_than_that_of_one_metric():
    errors = {"alone": [], "all": []}
    for seed in range(30):
        for key, names in (("alone", ("log_loss",)), ("all", ("log_loss", "roc_auc"))):
            value = found(names, seed=seed, epsilon=0.5, adjacency="zero_out")["log_loss"].value
            errors[key].append(value - exact(*records(2000, seed=seed))["log_loss"])
    assert np.std(errors["all"]) > 2 * np.std(errors["alone"])


def test_displays_refuse_releases_that_tell_too_little():
    one, four = found(("accuracy",), epsilon=1.0), found(MATRIX, epsilon=1.0)
    for display in (RocCurveDisplay, CalibrationDisplay):
        for evaluation in (one, four):
            with pytest.raises(TypeError, match="expected 'roc_auc' among its metrics"):
                display.from_evaluation(evaluation)
    with pytest.raises(TypeError, match="expected 'recall' among its metrics"):
        ConfusionMatrixDisplay.from_evaluation(one)
    from matplotlib import pyplot

    display = ConfusionMatrixDisplay.from_evaluation(four, normalize="true")
    assert display.confusion_matrix[1, 1] == pytest.approx(four["recall"].value)
    pyplot.close("all")


def test_losses_are_rounded_to_less_than_a_hundred_thousandth():
    assert max(high - low for low, high in LOSSES.values()) / (2 * STEPS) < 1e-4


def test_metrics_of_groups_of_one_metric_are_from_counts():
    X, y = records(4000)
    groups = np.where(np.arange(4000) % 4 == 0, "a", "b")
    with reproducible_noise(0):
        evaluation = evaluate(Scores(), X, y, metrics="accuracy", groups=groups, group_labels=["a", "b"], epsilon=1.0)
    assert [line.query for line in evaluation.privacy_report.releases] == ["ScoreCounts"]
    for name in ("a", "b"):
        metric, value = evaluation.groups[name]["accuracy"], exact(X[groups == name], y[groups == name])["accuracy"]
        assert metric.low < value < metric.high


def test_laplace_noise_is_not_for_regressors():
    from test_error_metrics import Column
    from test_error_metrics import records as of_errors

    with pytest.raises(ValueError, match="noise='laplace' is for classifiers"):
        evaluate(Column(), *of_errors(500), error_bound=1.0, noise="laplace")
    with pytest.raises(ValueError, match="noise='laplace' is for classifiers"):
        plan_evaluation(500, metrics="mae", error_bound=1.0, noise="laplace")

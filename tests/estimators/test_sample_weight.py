"""Sample weights with a public bound: what a weighted fit estimates, spends, refuses and says."""

import math
import pickle
import re
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.validation import has_fit_parameter

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedRegression,
    DPGradientBoostingClassifier,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPQuantileRegressor,
    DPRobustRegressor,
    DPTabularClassifier,
    PrivacyLedger,
)
from skdp._data_validation import Facts
from skdp.data import npy
from skdp.privacy.oracle import Oracle
from skdp.solvers import SOLVERS, Solver, StandardizedGradientDescent, WhitenedGradientDescent
from skdp.testing import reproducible_noise

RNG = np.random.default_rng(5)
N = 2000
X = RNG.uniform(-1, 1, size=(N, 3))
SCORE = X @ [1.0, -2.0, 0.5] + 0.3
LABELS = (SCORE + RNG.logistic(size=N) > 0).astype(int)
SEVERAL = LABELS + (SCORE > 1)
NUMBERS = np.clip(0.3 * SCORE + 0.1 * RNG.normal(size=N), -1, 1)
WEIGHTS = RNG.integers(1, 5, size=N) * np.where(LABELS == 1, 0.5, 1.0)
TARGETS = {"number": NUMBERS, "class": LABELS, "classes": SEVERAL}
SHORT = StandardizedGradientDescent(10, n_calibration_steps=6)
KINDS = {
    "logistic": (DPLogisticRegression, "class", {"solver": SHORT}),
    "several": (DPLogisticRegression, "classes", {"solver": SHORT}),
    "svm": (DPLinearSVC, "class", {"solver": SHORT}),
    "linear": (DPLinearRegression, "number", {"target_bounds": (-1, 1)}),
    "additive": (DPAdditiveClassifier, "class", {"solver": SHORT}),
    "additive regression": (DPAdditiveRegressor, "number", {"target_bounds": (-1, 1)}),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def model(name, epsilon=1.0, largest=4.0, **parameters):
    kind, _, own = KINDS[name]
    return kind(epsilon, **{"feature_bounds": 1.0, "max_sample_weight": largest, **own, **parameters})


def target(name):
    return TARGETS[KINDS[name][1]]


def fitted(estimator, *table, seed=3, **arguments):
    """Fit with the same noise every time."""
    with warnings.catch_warnings(), reproducible_noise(seed):
        warnings.simplefilter("ignore")
        return estimator.fit(*table, **arguments)


def released(estimator):
    return np.append(np.ravel(estimator.coef_), estimator.intercept_)


@every_kind
def test_the_total_comes_first_and_the_fit_spends_its_epsilon(name):
    estimator = model(name)
    with PrivacyLedger(epsilon=5.0, delta=1e-3) as ledger:
        fitted(estimator, X, target(name), sample_weight=WEIGHTS)
    (entry,) = ledger.entries
    assert entry.spending.epsilon == estimator.privacy_spent_.epsilon
    assert estimator.privacy_spent_.epsilon <= 1.0
    assert estimator.privacy_spent_.epsilon == pytest.approx(1.0, rel=1e-3)
    plain = fitted(model(name, largest=None), X, target(name)).privacy_report_
    first, *others = estimator.privacy_report_.releases
    assert (first.query, first.count) == ("TotalWeight", 1)
    assert [(line.query, line.count) for line in others] == [(line.query, line.count) for line in plain.releases]
    for line, before in zip(others, plain.releases, strict=True):  # at most: the class frequencies keep their noise
        assert (1 - 1e-9) * before.noise_multiplier < line.noise_multiplier < 1.2 * before.noise_multiplier


@every_kind
def test_a_plan_has_the_releases_of_the_fit(name):
    estimator = fitted(model(name), X, target(name), sample_weight=WEIGHTS)
    kind = KINDS[name][1]
    planned = model(name).plan(X.shape, **({} if kind == "number" else {"n_classes": 2 if kind == "class" else 3}))
    assert planned.releases == estimator.privacy_report_.releases
    for text in (str(planned), str(estimator.privacy_report_)):
        text = " ".join(text.split())
        assert "max_sample_weight=4.0" in text
        assert "the weights of the records are private parts of them" in text


@pytest.mark.parametrize(("name", "epsilon"), [*((name, 1.0) for name in KINDS), ("logistic", 0.02), ("linear", 0.02)])
def test_a_record_of_weight_zero_leaves_no_trace(name, epsilon):
    """Bit by bit, whatever the record is: this is the null record of zero_out."""
    other, y, weights = X.copy(), target(name).copy(), WEIGHTS.copy()
    weights[7] = 0.0
    other[7], y[7] = 3.0, y.max() + y.min() - y[7]
    here, there = (
        released(fitted(model(name, epsilon), *table, sample_weight=weights)) for table in ((X, target(name)), (other, y))
    )
    np.testing.assert_array_equal(here, there)
    weights[7] = 4.0
    assert not np.array_equal(here, released(fitted(model(name, epsilon), other, y, sample_weight=weights)))


@every_kind
def test_only_the_ratio_to_the_bound_counts(name):
    same = [fitted(model(name, largest=4.0 * unit), X, target(name), sample_weight=unit * WEIGHTS) for unit in (1.0, 2.0**40)]
    np.testing.assert_array_equal(*map(released, same))
    above = np.where(WEIGHTS > 2, 1e300, WEIGHTS)  # counts as the bound
    clipped = [fitted(model(name, largest=2.0), X, target(name), sample_weight=w) for w in (above, np.minimum(WEIGHTS, 2.0))]
    np.testing.assert_array_equal(*map(released, clipped))


@pytest.mark.parametrize("name", ("logistic", "additive regression"))
def test_weights_do_not_depend_on_their_container(name):
    forms = (WEIGHTS, WEIGHTS.tolist(), pd.Series(WEIGHTS, index=np.arange(N)[::-1]), WEIGHTS.astype(np.float32))
    results = [released(fitted(model(name), X, target(name), sample_weight=form)) for form in forms]
    assert all(np.array_equal(results[0], result) for result in results)


@every_kind
def test_without_weights_a_fit_is_as_before(name):
    plain = model(name, largest=None)
    assert np.array_equal(
        released(fitted(plain, X, target(name))), released(fitted(clone(plain), X, target(name), sample_weight=None))
    )
    assert "sample_weight" not in str(plain.privacy_report_).replace("max_sample_weight=None", "")


def test_weights_repeat_records():
    """Without noise and penalty only the number of steps could differ, which is public: the fits agree up to rounding."""
    copies = RNG.integers(0, 3, size=300)
    repeated = np.repeat(np.arange(300), copies)
    solver = StandardizedGradientDescent(100, ridge=0.0)
    for name, own in (("logistic", {"solver": solver}), ("several", {"solver": solver}), ("linear", {})):
        weighted = fitted(model(name, math.inf, largest=2.0, **own), X[:300], target(name)[:300], sample_weight=copies)
        plain = fitted(model(name, math.inf, largest=None, **own), X[repeated], target(name)[repeated])
        np.testing.assert_allclose(released(weighted), released(plain), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, sparse.csc_array))
def test_without_noise_the_estimate_is_that_of_scikit_learn(storage):
    """The calibration of a classifier clips scores and rounds them to hundredths, which moves its slope by 1 %."""
    expected = LogisticRegression(C=np.inf).fit(X, LABELS, sample_weight=WEIGHTS)
    solver = StandardizedGradientDescent(300, ridge=0.0)
    found = fitted(model("logistic", math.inf, solver=solver), storage(X), LABELS, sample_weight=WEIGHTS)
    np.testing.assert_allclose(released(found), np.append(expected.coef_, expected.intercept_), rtol=0.02)
    expected = LinearRegression().fit(X, NUMBERS, sample_weight=WEIGHTS)
    found = fitted(model("linear", math.inf), storage(X), NUMBERS, sample_weight=WEIGHTS)
    np.testing.assert_allclose(released(found), np.append(expected.coef_, expected.intercept_), atol=1e-6)


def test_a_record_of_half_the_bound_is_half_a_record():
    """All sums, and the number that they are divided by, are half: a ridge penalty has twice the strength."""
    half, plain = (StandardizedGradientDescent(100, ridge=ridge) for ridge in (20.0, 40.0))
    weighted = fitted(model("logistic", math.inf, solver=half), X[:300], LABELS[:300], sample_weight=np.full(300, 2.0))
    other = fitted(model("logistic", math.inf, largest=None, solver=plain), X[:300], LABELS[:300])
    np.testing.assert_allclose(released(weighted), released(other), rtol=1e-9)


def survey():
    """A population, and a sample of which one part, with another level of y, was drawn four times as often."""
    rng = np.random.default_rng(11)
    x, often = rng.uniform(-1, 1, size=(100_000, 1)), rng.random(100_000) < 0.5
    level = 0.5 * x[:, 0] + np.where(often, 0.4, -0.4)
    drawn = rng.random(100_000) < np.where(often, 0.4, 0.1)
    return x, level, drawn, np.where(often, 2.5, 10.0)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_weights_undo_the_bias_of_a_survey(adjacency):
    """The means of the population and of the sample differ by .24; noise and sampling move a fit by less than .03."""
    x, level, drawn, weights = survey()
    labels, numbers = level + 0.3 * np.random.default_rng(1).normal(size=len(x)) > 0, np.clip(level, -1, 1)
    bounds, own = {"feature_bounds": 1.0, "adjacency": adjacency}, {"max_sample_weight": 10.0}
    linear, logistic = DPLinearRegression(1.0, target_bounds=(-1, 1), **bounds), DPLogisticRegression(1.0, **bounds)
    means = {}
    for weighted in (False, True):
        given = {"sample_weight": weights[drawn]} if weighted else {}
        models = [clone(some).set_params(**(own if weighted else {})) for some in (linear, logistic)]
        fitted(models[0], x[drawn], numbers[drawn], **given)
        fitted(models[1], x[drawn], labels[drawn], **given)
        means[weighted] = models[0].predict(x).mean(), models[1].predict_proba(x)[:, 1].mean()
    for of_sample, of_population, truth in zip(means[False], means[True], (numbers.mean(), labels.mean()), strict=True):
        assert abs(of_population - truth) < 0.05
        assert of_sample - truth > 0.15


def test_a_constant_is_a_mean_over_the_released_total():
    """Where the solver fits a mean alone: with the total 600, as of 600 records, but for the share of the budget."""
    problem = model("linear", 0.04)._task().plan_of(Facts(N, 3)).problem
    others = replace(problem, n_samples=600, max_sample_weight=None)
    of_total, of_records = (
        WhitenedGradientDescent().solve(some, lambda query: np.array([180.0]), RNG).coef[-1, 0]
        for some in (problem.weighing(600.0), others)
    )
    assert of_total == pytest.approx(of_records, rel=0.15)
    noise = model("linear", 0.04).plan(X.shape).releases[0].noise_multiplier  # the least total that is believed
    assert [problem.weighing(total).n_samples for total in (-5.0, 600.5, 1e9)] == [pytest.approx(noise, rel=1e-3), 600.5, N]
    assert problem.weighing(600.0).planned == problem
    assert problem.weighing(600.0).total_share == problem.total_share == 0.2


@every_kind
def test_extreme_weights_give_finite_models(name):
    none, tiny, huge, one = np.zeros(200), np.full(200, 5e-324), np.full(200, 1.7e308), np.eye(1, 200)[0]
    for epsilon, weights in ((1.0, none), (1.0, one), *((math.inf, some) for some in (none, tiny, huge, one))):
        assert np.isfinite(released(fitted(model(name, epsilon), X[:200], target(name)[:200], sample_weight=weights))).all()


SECRET = 31415.9265
HOSTILE = [
    np.full(N, math.nan),
    np.r_[math.inf, np.full(N - 1, SECRET)],
    np.r_[-SECRET, np.ones(N - 1)],
    np.full(N - 1, SECRET),
    np.full((N, 1), SECRET),
    [str(SECRET)] * N,
    np.array(["secret"] * N, dtype=object),
    np.full(N, np.timedelta64(1, "ns")),
    ["secret"] * N,
    [SECRET, None] * (N // 2),
    np.full(N, 1j),
    np.full(N, np.datetime64("2031-04-15")),
    pd.Series([SECRET, pd.NA] * (N // 2), dtype="Float64"),
    [[SECRET], [SECRET, 2]] * (N // 2),
    [10**400] * N,
    sparse.csr_array(np.ones((1, N))),
    SECRET,
    {"secret": SECRET},
]


@pytest.mark.parametrize("weights", HOSTILE, ids=lambda weights: type(weights).__name__)
@pytest.mark.parametrize("name", ("logistic", "additive regression"))
def test_bad_weights_are_refused_before_a_charge_and_never_quoted(weights, name):
    with (
        PrivacyLedger(epsilon=5.0, delta=1e-3) as ledger,
        pytest.raises((TypeError, ValueError), match="sample_weight") as caught,
    ):
        model(name).fit(X, target(name), sample_weight=weights)
    assert not ledger.entries
    seen, error = "", caught.value
    while error is not None:
        seen, error = f"{seen} {error!r}", error.__cause__ or error.__context__
    assert not re.search(r"secret|31415|2031|nan\b", seen)


@pytest.mark.parametrize("largest", (0.0, -1.0, math.inf, math.nan, "1", [1.0], True))
def test_bad_bounds_are_refused(largest):
    with pytest.raises((TypeError, ValueError), match="max_sample_weight="):
        model("logistic", largest=largest).fit(X, LABELS, sample_weight=WEIGHTS)


def test_weights_and_their_bound_come_together():
    with pytest.raises(TypeError, match=r"sample_weight: a weight is part of a record.*max_sample_weight"):
        model("logistic", largest=None).fit(X, LABELS, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=r"max_sample_weight=4\.0 without sample_weight"):
        model("logistic").fit(X, LABELS)


def refused(estimator, y, match, kind=ValueError):
    with PrivacyLedger(epsilon=5.0, delta=1e-3) as ledger, pytest.raises(kind, match=match):
        fitted(estimator, X, y, sample_weight=WEIGHTS)
    assert not ledger.entries


@pytest.mark.slow
def test_solvers_that_divide_by_n_refuse_weights():
    for solver in sorted(SOLVERS):
        if not SOLVERS[solver].takes_weights:
            refused(model("logistic", solver=solver), LABELS, "takes no sample_weight|needs")
            refused(model("linear", solver=solver), NUMBERS, "takes no sample_weight|needs")
    assert {name for name, kind in SOLVERS.items() if kind.takes_weights} == {"standardized_gd", "whitened_gd"}
    assert not Solver.takes_weights  # so that a user's solver is refused
    refused(model("logistic", solver="gd"), LABELS, "'gd' takes no sample_weight, .* is private.*: standardized_gd")
    refused(model("linear", inference=True), NUMBERS, "'inference' takes no sample_weight")
    refused(model("logistic", delta=0, solver="auto"), LABELS, "'objective' takes no sample_weight")
    refused(model("linear", l1_ratio=0.5), NUMBERS, "'gd' takes no sample_weight, .*: none")
    refused(model("additive", 20.0, knots="private"), LABELS, "knots='private'")


@pytest.mark.parametrize(
    "kind",
    (
        DPAUCMaximizer,
        DPConstrainedRegression,
        DPGradientBoostingClassifier,
        DPQuantileRegressor,
        DPRobustRegressor,
        DPTabularClassifier,
    ),
)
def test_other_estimators_refuse_weights(kind):
    y = NUMBERS if "Regress" in kind.__name__ else LABELS
    refused(kind(1.0), y, f"{kind.__name__} does not take sample_weight: a weight is part of a record", TypeError)


def test_tables_in_partitions_have_no_weights(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", LABELS)
    table = npy(tmp_path / "X.npy", tmp_path / "y.npy")
    with pytest.raises(TypeError, match="partitions"):
        model("logistic").fit(table, sample_weight=WEIGHTS)
    with pytest.raises((TypeError, ValueError), match="partitions"):
        model("logistic").plan(table)


@pytest.mark.slow
def test_columns_of_a_frame_are_learned_without_weights_and_fitted_with_them():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = DPLogisticRegression(3.0, max_sample_weight=4.0)
    fitted(estimator, frame, LABELS, sample_weight=WEIGHTS)
    queries = dict.fromkeys(line.query for line in estimator.privacy_report_.releases)
    assert list(queries)[:3] == ["ColumnHistograms", "FineHistograms", "TotalWeight"]
    rate = np.average(LABELS, weights=WEIGHTS)
    assert abs(estimator.predict_proba(frame)[:, 1].mean() - rate) < 0.06 < LABELS.mean() - rate
    with PrivacyLedger(epsilon=5.0, delta=1e-3) as ledger, pytest.raises(ValueError, match="sample_weight has negative"):
        clone(estimator).fit(frame, LABELS, sample_weight=-WEIGHTS)
    assert not ledger.entries
    other, weights = frame.copy(), WEIGHTS.copy()
    weights[7] = 0.0
    other.loc[7, "a"] = frame.loc[8, "a"]
    totals = [fitted(clone(estimator), some, LABELS, sample_weight=weights) for some in (frame, frame)]
    np.testing.assert_array_equal(*map(released, totals))


def test_scikit_learn_passes_weights_by_routing_only():
    estimator = model("logistic")
    assert not has_fit_parameter(estimator, "sample_weight")  # AdaBoost computes weights from all records: it stays out
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asking = clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_val_score(asking, X, LABELS, params={"sample_weight": WEIGHTS}, cv=folds)
        search = GridSearchCV(asking, {"max_sample_weight": [4.0, 8.0]}, cv=folds).fit(X, LABELS, sample_weight=WEIGHTS)
    assert scores.min() > 0.6
    assert search.best_estimator_.privacy_report_.releases[0].query == "TotalWeight"
    with warnings.catch_warnings(), pytest.raises(ValueError, match="without sample_weight"):
        warnings.simplefilter("ignore")
        cross_val_score(estimator, X, LABELS, cv=folds, error_score="raise")


@every_kind
def test_parameters_and_pickles(name):
    estimator = clone(model(name)).set_params(max_sample_weight=5.0)
    assert estimator.get_params()["max_sample_weight"] == 5.0
    weights = RNG.uniform(0, 5, size=N)
    fitted(estimator, X, target(name), sample_weight=weights)
    document = pickle.dumps(estimator)
    same = pickle.loads(document)
    np.testing.assert_array_equal(released(same), released(estimator))
    assert not any(value.tobytes() in document for value in np.r_[weights, weights / 5.0])
    assert np.isfinite(estimator.score(X, target(name), sample_weight=weights))


def test_errors_of_floating_point_tell_nothing_of_the_weights():
    for extreme in (1.7e308, 5e-324):
        with np.errstate(all="raise"):
            fitted(model("linear", largest=1e-3), X, NUMBERS, sample_weight=np.r_[extreme, WEIGHTS[1:]])


def parts(value):
    """Arrays in a value, and in lists and dicts of it."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from parts(part)


def test_no_frame_holds_the_weights_while_the_fit_runs(monkeypatch):
    weights, held = WEIGHTS.copy(), []
    asked = Oracle.ask

    def watched(oracle, query):
        frame = sys._getframe(1)
        while frame is not None and "Histograms" not in type(query).__name__:  # of the columns: then the table is not yet read
            if "/skdp/" in frame.f_code.co_filename and frame.f_code.co_name != "fit":
                held.extend(value for value in parts(list(frame.f_locals.values())) if np.shares_memory(value, weights))
            frame = frame.f_back
        return asked(oracle, query)

    monkeypatch.setattr(Oracle, "ask", watched)
    for X_given in (X, pd.DataFrame(X, columns=list("abc"))):
        fitted(DPLogisticRegression(2.0, solver=SHORT, max_sample_weight=4.0), X_given, LABELS, sample_weight=weights)
    assert not held


def test_fit_leaves_the_weights_alone():
    weights = np.r_[9.0, WEIGHTS[1:]]
    before = weights.copy()
    weights.setflags(write=False)
    fitted(model("logistic"), X, LABELS, sample_weight=weights)
    np.testing.assert_array_equal(weights, before)

"""The estimators to start with: what public facts choose, and what the chosen estimator answers."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from marks import slow
from seeded import fitted

import skdp
from skdp import (
    DPAdditiveClassifier,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPTabularClassifier,
    DPTabularRegressor,
    PrivacyLedger,
)
from skdp.data import chunks
from skdp.estimators.boosting import _rule
from skdp.estimators.boosting._rule import LEAST_OF_NUMBERS
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.testing import reproducible_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-8}


def table(n, rng):
    frame = pd.DataFrame({"age": rng.integers(18, 90, n), "job": rng.choice(["a", "b", "c"], n), "wind": rng.random(n)})
    return frame, (frame["age"] > 40 + 20 * (frame["job"] == "b")).astype(int)


@pytest.mark.parametrize(
    "shape, classifier, regressor",
    [
        ((1000, 3), DPLogisticRegression, DPLinearRegression),
        ((12_000, 40), DPAdditiveClassifier, DPLinearRegression),
        ((40_000, 3), DPGradientBoostingClassifier, DPGradientBoostingRegressor),
    ],
)
def test_public_facts_choose(shape, classifier, regressor):
    for tabular, kind, given in (
        (DPTabularClassifier, classifier, {"classes": [0, 1]}),
        (DPTabularRegressor, regressor, {"target_bounds": (0, 1)}),
    ):
        report = tabular(**BUDGET, feature_bounds=1.0, **given).plan(*shape)
        assert report.estimator == tabular.__name__ and report.public["family"].startswith(f"{kind.__name__}: ")


@pytest.mark.slow
@pytest.mark.parametrize("n, kind", [(1000, DPLogisticRegression), (20_000, DPGradientBoostingClassifier)])
def test_a_fit_is_that_of_the_chosen_estimator(n, kind, rng, monkeypatch):
    monkeypatch.setattr(_rule, "N_TREES", 3)
    frame, y = table(n, rng)
    model, other = fitted(DPTabularClassifier(), frame, y), fitted(kind(), frame, y)
    assert type(model.estimator_) is kind and model.feature_names_in_.tolist() == list(frame)
    assert np.array_equal(model.predict_proba(frame), other.predict_proba(frame))
    assert [str(line) for line in model.privacy_report_.releases] == [str(line) for line in other.privacy_report_.releases]
    assert model.schema_ == other.schema_ and model.privacy_spent_ == other.privacy_spent_
    *_, last = model.staged_predict_proba(frame)
    assert np.allclose(last, model.predict_proba(frame))
    if kind is DPGradientBoostingClassifier:
        assert np.array_equal(model.feature_importances_, other.feature_importances_)
        assert np.array_equal(model.explain(frame[:5]), other.explain(frame[:5]))
        assert model.interactions_ == other.interactions_ and model.shape_functions_.keys() == other.shape_functions_.keys()
        return
    for name in ("shape_functions_", "interactions_", "feature_importances_", "baseline_"):
        with pytest.raises(AttributeError, match="DPLogisticRegression, has no"):
            getattr(model, name)


@pytest.mark.slow
def test_what_columns_that_are_learned_leave_decides(rng):
    """Between the ratio of the whole budget and that of the second stage, an estimator with trees would fit none."""
    frame, _ = table(4000, rng)
    least = LEAST_OF_NUMBERS * 3
    shares = set()
    for n in range(3000, 3400, 20):
        model = DPTabularRegressor(**BUDGET)
        plan, whole = model.plan(frame[:n]), gaussian_mu(**BUDGET) * n / 2
        ratio = float(re.search(r"ratio is ([\d.]+) for 3 columns", plan.public["family"])[1])
        assert 0.9 * whole < ratio < 0.995 * whole
        assert plan.public["family"].startswith("DPGradientBoosting") == (ratio >= least)
        assert ("trees" in plan.public["resolved"]) == (ratio >= least)
        assert "none" not in plan.public["resolved"].get("trees", "")
        shares.add((ratio >= least, whole >= least))
    assert (False, True) in shares


def test_columns_that_are_ignored_do_not_count(rng):
    frame, _ = table(4000, rng)
    for schema, n in (({"wind": "ignore"}, 2), (None, 3)):
        assert f" for {n} columns" in DPTabularRegressor(**BUDGET, schema=schema).plan(frame).public["family"]


def test_a_fit_is_charged_once(rng):
    frame, y = table(1000, rng)
    with PrivacyLedger(epsilon=4.0, delta=1e-5) as ledger:
        DPTabularClassifier().fit(frame, y)
        known = {name: {"kind": "number", "bounds": [0, 90]} for name in ("age", "wind")}
        DPTabularClassifier(schema={"columns": known}).fit(frame, y)
    assert [entry.spending.estimator for entry in ledger.entries] == ["DPTabularClassifier"] * 2


@pytest.mark.slow
def test_the_number_of_records_of_a_table_in_partitions_decides(monkeypatch):
    """The table is counted before it is read for the fit."""
    monkeypatch.setattr(_rule, "N_TREES", 3)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = (X[:, 0] > 0).astype(int)
    stored = chunks(lambda: ((X[s : s + 5000], y[s : s + 5000]) for s in range(0, len(X), 5000)))
    with reproducible_noise(0):
        model = DPTabularClassifier(feature_bounds=1.0, random_state=0).fit(stored)
    assert isinstance(model.estimator_, DPGradientBoostingClassifier)
    with reproducible_noise(0):
        other = DPTabularClassifier(feature_bounds=1.0, random_state=0).fit(X, y)
    assert np.array_equal(model.decision_function(X), other.decision_function(X))


class Telling:
    """A table whose conversion fails with a cell in the text."""

    def __array__(self, dtype=None, copy=None):
        raise ValueError("record-a1")


@pytest.mark.parametrize("X", [Telling(), [[1.0, "record-a1"], [2.0]]])
def test_a_table_that_cannot_be_read_is_not_quoted(X):
    with pytest.raises((TypeError, ValueError)) as caught:
        DPTabularClassifier().fit(X, [0, 1])
    assert "record-a1" not in str(caught.value) and "inhomogeneous" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("n", (2000, *slow(40_000)))
def test_a_fitted_model_is_saved_and_loaded(n, rng, tmp_path):
    """The chosen estimator keeps nothing that it was lent for the fit."""
    frame, y = table(n, rng)
    model = fitted(DPTabularClassifier(**BUDGET, random_state=0), frame, y)
    assert "_chosen_by" not in vars(model.estimator_)
    skdp.save_model(model, tmp_path / "model.skops")
    assert np.array_equal(skdp.load_model(tmp_path / "model.skops").predict_proba(frame), model.predict_proba(frame))


def test_an_array_without_bounds_warns_whatever_is_chosen(rng):
    """Before the charge: as an error, nothing is spent."""
    X = rng.uniform(0, 6, (1000, 3))
    model = DPTabularClassifier(**BUDGET, classes=[False, True])
    assert isinstance(model._chosen(1000, 3)[0], DPLogisticRegression)
    with PrivacyLedger(epsilon=2.0, delta=1e-5) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Neither schema nor feature_bounds"):
            model.fit(X, X[:, 0] > 3)
    assert not ledger.entries
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(DPTabularClassifier(**BUDGET, feature_bounds=6, classes=[False, True]), X, X[:, 0] > 3)


@pytest.mark.parametrize("kind", (DPTabularRegressor, DPLinearRegression))
def test_a_score_quotes_no_target(kind, rng):
    X = rng.uniform(-1, 1, (500, 2))
    model = fitted(kind(epsilon=1.0, delta=1e-6, target_bounds=(-1, 1), feature_bounds=1), X, X[:, 0])
    with pytest.raises((TypeError, ValueError)) as raised:
        model.score(X, np.array(["secret", *X[1:, 0]], dtype=object))
    assert "secret" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", (DPTabularClassifier, DPTabularRegressor, DPLogisticRegression))
def test_columns_of_an_array_are_learned_on_request(kind, rng):
    """In a plan, a shape alone stands for numbers."""
    X = rng.normal(size=(1000, 2))
    learning = fitted(kind(**BUDGET, schema="learn"), X, (X[:, 0] > 0).astype(int))
    assert list(learning.schema_.columns) == ["x0", "x1"] and not hasattr(learning, "feature_names_in_")
    planned, of_table = (kind(**BUDGET, schema="learn").plan(*shape) for shape in ((1000, 2), (X,)))
    assert planned.releases == of_table.releases and planned.public == of_table.public
    for text, schema, n_features in (("which these are", {"x0": "number"}, 2), ("n_features=None", "learn", None)):
        with pytest.raises(TypeError, match=text):
            kind(**BUDGET, schema=schema).plan(1000, n_features)


@pytest.mark.parametrize(
    "kind, given", [(DPGradientBoostingClassifier, {"classes": [0, 1]}), (DPGradientBoostingRegressor, {"target_bounds": (0, 1)})]
)
def test_reports_of_boosted_models_speak_of_the_trees(kind, given):
    """The solver is that of the additive part, and a plan says how many records trees need."""
    model = kind(**BUDGET, feature_bounds=1.0, **given)
    without, tabular = model.plan(2000, 5), kind.__name__.replace("GradientBoosting", "Tabular")
    needed = int(re.search(r"; trees need about ([\d,]+) records at this epsilon$", without.noise_size)[1].replace(",", ""))
    assert "trees" not in without.solver_title and model.plan(int(0.9 * needed), 5).public["resolved"]["trees"].startswith("none")
    for found in (model, getattr(skdp, tabular)(**BUDGET, feature_bounds=1.0, **given)):
        report = found.plan(int(1.1 * needed), 5)
        assert report.solver_title.startswith("additive model by ") and report.solver_title.endswith("; then random trees")
        assert "trees need" not in report.noise_size and report.public["resolved"]["trees"].startswith("1000 of depth")

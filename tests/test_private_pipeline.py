"""Test DPPipeline: one budget for several steps, one charge, and nothing of the records but the releases."""

import math
import pickle
import warnings

import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeded import fitted
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPPCA,
    DPGradientBoostingClassifier,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    LowSignalWarning,
    NotPrivateWarning,
    PrivacyAccountingError,
    PrivacyLedger,
    load_model,
    save_model,
)
from skdp.data import chunks
from skdp.inspection import ClusterDisplay, CoefficientDisplay, ScreeDisplay, check_pipeline
from skdp.model_selection import DPGridSearchCV
from skdp.pipeline import DPPipeline
from skdp.preprocessing import LearnedSchema
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.oracle import Oracle
from skdp.privacy.schedule import Schedule
from skdp.solvers import GradientDescent

N = 1200
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": 100 * RNG.normal(size=N), "b": RNG.exponential(size=N), "c": RNG.choice(["x", "y", "z"], N)})
Y = np.where(X["a"] / 100 + (X["c"] == "x") + RNG.normal(size=N) > 0, "yes", "no")
FEW_STEPS = GradientDescent(3)  # which take less time
TWO = [("columns", LearnedSchema()), ("model", DPLogisticRegression(classes=["no", "yes"], solver=FEW_STEPS))]
THREE = [TWO[0], ("pca", DPPCA(n_components=3)), TWO[1]]
NUMBERS = X[["a", "b"]].to_numpy() / 500
ON_ARRAYS = [("pca", DPPCA(n_components=1, feature_bounds=1.0)), ("model", DPLinearRegression(target_bounds=(-1.0, 1.0)))]


@pytest.fixture(name="oracles")
def all_oracles(monkeypatch):
    """Every oracle that a test makes."""
    made, start = [], Oracle.__init__
    monkeypatch.setattr(Oracle, "__init__", lambda self, *given, **named: made.append(self) or start(self, *given, **named))
    return made


def squared_mu(oracle):
    schedule = Schedule(tuple((1, release) for release in oracle.transcript))
    return Composition.of(schedule, oracle._budget.adjacency).at(oracle._scale).full


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("steps", (TWO, THREE), ids=("two", "three"))
def test_the_transcripts_are_the_joined_schedules_and_their_squares_add_up(steps, adjacency, oracles):
    with PrivacyLedger(epsilon=9, delta=1e-4, adjacency=adjacency) as ledger:
        model = DPPipeline(steps, epsilon=2.0, adjacency=adjacency).fit(X, Y)
    assert len(oracles) == len(steps) and all(oracle.transcript == oracle._schedule for oracle in oracles)
    assert [release.query.__name__ for oracle in oracles for release in oracle.transcript] == [
        line.query for line in model.privacy_report_.releases for _ in range(line.count)
    ]
    squares = [squared_mu(oracle) for oracle in oracles]
    whole = gaussian_mu(2.0, model.privacy_spent_.delta) ** 2
    shares = [0.1, 0.9] if steps is TWO else [0.1, 0.25, 0.65]
    assert_allclose(np.array(squares) / whole, shares, rtol=1e-7)
    (entry,) = ledger.entries
    assert math.fsum(squares) <= entry.spending.composition.full * (1 + 1e-9) <= whole * (1 + 1e-9)
    assert entry.spending.composition.full > whole * (1 - 1e-7)
    assert model.privacy_spent_.epsilon == pytest.approx(2.0, rel=1e-6) and model.privacy_spent_.epsilon <= 2.0
    assert entry.spending.schedule[:3] == tuple(map(str, model["columns"].privacy_report_.releases))
    planned = DPPipeline(steps, epsilon=2.0, adjacency=adjacency).plan(X)
    found = [[(line.query, line.count) for line in report.releases] for report in (planned, model.privacy_report_)]
    assert found[0] == found[1] and planned.spent.epsilon == pytest.approx(2.0)


def test_shares_are_those_that_are_given(oracles):
    DPPipeline(THREE, epsilon=2.0, shares={"columns": 0.2, "pca": 0.3}).fit(X, Y)
    squares = np.array([squared_mu(oracle) for oracle in oracles])
    assert_allclose(squares / squares.sum(), [0.2, 0.3, 0.5], rtol=1e-6)


def test_the_report_has_a_heading_for_each_step():
    report = DPPipeline(TWO).fit(X, Y).privacy_report_
    text, page = str(report), report.to_html()
    assert text.count("Step ") == 2 and "Step model: DPLogisticRegression, Spent epsilon = 0.9" in text
    assert "Releases of columns (LearnedSchema)" in page and "Releases of model (DPLogisticRegression)" in page
    assert report.to_dict()["steps"]["columns"]["estimator"] == "LearnedSchema"


def test_reports_say_which_parameters_follow_from_earlier_releases():
    model = DPPipeline(ON_ARRAYS, epsilon=9.0).fit(NUMBERS, NUMBERS[:, 0])
    line = "data_norm of the step model: from what earlier steps released"
    for report in (model.privacy_report_, model["model"].privacy_report_, DPPipeline(ON_ARRAYS, epsilon=9.0).plan(NUMBERS)):
        text = " ".join(str(report).split())
        assert line in text and "no other parameter was computed from the data: all other public values" in text
        assert "no parameter was" not in text and "data: data_norm" not in text
    given = [ON_ARRAYS[0], ("model", DPLinearRegression(target_bounds=(-1.0, 1.0), data_norm=1.0))]
    assert "no parameter was computed" in str(DPPipeline(given, epsilon=9.0).fit(NUMBERS, NUMBERS[:, 0]).privacy_report_)


def test_assumptions_of_steps_do_not_contradict_each_other():
    report = DPPipeline(THREE, epsilon=9.0).fit(X, Y).privacy_report_
    for one in (report, DPPipeline(THREE, epsilon=9.0).plan(X)):
        assert not any("finite" in line for line in one.assumptions)  # cells of the table may be anything
        assert "step pca: its rows are what earlier steps make of the records; y is not read" in one.assumptions
        assert sum("was computed from the data" in line for line in one.assumptions) == 1


class Other(LearnedSchema):
    """A user's step."""


class Named(DPLogisticRegression):
    """A user's model."""


Named.__module__, Named.__qualname__ = DPLogisticRegression.__module__, DPLogisticRegression.__qualname__


def test_derived_classes_are_unreviewed_alone_and_as_steps():
    model = Named(classes=["no", "yes"], solver=FEW_STEPS)
    said = " is unreviewed: it sees the data and is not part of skdp"
    whole = DPPipeline([("columns", Other()), ("model", model)]).fit(X, Y).privacy_report_
    assert {f"step columns: Other{said}", f"step model: DPLogisticRegression{said}"} <= {*whole.assumptions}
    assert f"DPLogisticRegression{said}" in model.plan(100, 2).assumptions and f"Other{said}" in Other().plan(X).assumptions
    assert said not in str(DPPipeline(TWO).plan(X))


def test_methods_are_there_if_all_steps_that_they_need_have_them():
    no_way_back, both = DPPipeline([("columns", LearnedSchema()), ("pca", DPPCA(2))]), DPPipeline([("pca", DPPCA(2))])
    assert not hasattr(no_way_back, "inverse_transform") and hasattr(no_way_back, "transform")
    assert hasattr(both, "inverse_transform") and hasattr(both, "get_feature_names_out")
    assert not hasattr(DPPipeline(TWO), "get_feature_names_out")


WRONG = {
    "the labels": (TWO, X, np.where(np.arange(N) == 7, "maybe", Y), {}, ValueError, "classes"),
    "the length of y": (TWO, X, Y[1:], {}, ValueError, "different lengths|inconsistent numbers"),
    "numbers that are missing": (
        [TWO[0], ("model", DPLinearRegression(target_bounds=(0, 1)))],
        X,
        np.full(N, np.nan),
        {},
        ValueError,
        "NaN|finite",
    ),
    "an infinite cell": (
        ON_ARRAYS,
        np.where(np.arange(2 * N).reshape(N, 2) == 3, np.inf, NUMBERS),
        Y,
        {},
        ValueError,
        "infinity",
    ),
    "a step with a budget": (
        [("columns", LearnedSchema(epsilon=0.3)), TWO[1]],
        X,
        Y,
        {},
        ValueError,
        "'columns' sets its own epsilon",
    ),
    "a step for persons": (
        [TWO[0], ("model", DPLogisticRegression(privacy_unit="person", delta=1e-5))],
        X,
        Y,
        {},
        ValueError,
        "'model' sets its own delta and privacy_unit",
    ),
    "a step without noise": ([("scale", StandardScaler()), TWO[1]], X, Y, {}, TypeError, "'scale' is .*a transformer of skdp"),
    "a model in between": ([("first", TWO[1][1]), TWO[1]], X, Y, {}, TypeError, "(?s)'first' is .*a transformer of skdp"),
    "a last step of others": ([TWO[0], ("model", StandardScaler())], X, Y, {}, TypeError, "'model' is .*an estimator of skdp"),
    "a solver that samples": (
        [TWO[0], ("model", DPLogisticRegression(solver="sgd", classes=["no", "yes"]))],
        X,
        Y,
        {},
        PrivacyAccountingError,
        "'model': .*other than Gaussian",
    ),
    "a curve": (
        [TWO[0], ("model", DPLogisticRegression(solver="objective", classes=["no", "yes"]))],
        X,
        Y,
        {},
        PrivacyAccountingError,
        "'model': .*other than Gaussian",
    ),
    "a pure budget": (TWO, X, Y, {"delta": 0.0}, ValueError, "delta=0"),
    "a faint share": (TWO, X, Y, {"shares": {"columns": 1e-15}}, ValueError, "no epsilon for the step 'columns'"),
    "a share of the last step": (TWO, X, Y, {"shares": {"columns": 0.1, "model": 0.9}}, ValueError, "each step but the last"),
    "too large a share": (TWO, X, Y, {"shares": {"columns": 1.0}}, ValueError, "shares"),
    "shares of 1": (THREE, X, Y, {"shares": {"columns": 0.5, "pca": 0.5}}, ValueError, "nothing for the last"),
    "no steps": ([], X, Y, {}, ValueError, "steps"),
    "a class": ([("model", DPLogisticRegression)], X, Y, {}, TypeError, "'model' is"),
    "persons": (TWO, X, Y, {"privacy_unit": "person"}, ValueError, "without persons"),
    "partitions": (TWO, chunks(lambda: iter([(X, Y)])), None, {}, TypeError, "a table in memory"),
    "an array": (TWO, NUMBERS, Y, {}, (TypeError, ValueError), "data frame"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_come_before_the_charge(name, oracles):
    steps, table, y, given, error, match = WRONG[name]
    with PrivacyLedger(epsilon=9, delta=1e-4) as ledger, pytest.raises(error, match=match):
        DPPipeline(steps, **given).fit(table, y)
    assert not oracles and not ledger.entries


class Replayed:
    """Answers of one fit, given to the next one."""

    def __init__(self, monkeypatch):
        self.answers, self.replays, ask = [], False, Oracle.ask

        def answered(oracle, query):
            if not self.replays:
                self.answers.append(ask(oracle, query))
                return self.answers[-1]
            oracle._transcript.append(oracle._admit(query))
            return self.answers.pop(0)

        monkeypatch.setattr(Oracle, "ask", answered)


@pytest.mark.parametrize("steps", (TWO, THREE), ids=("two", "three"))
def test_nothing_but_the_answers_depends_on_the_records(steps, monkeypatch):
    """The same answers about other records, with cells of any kind, give the same model, report and warnings."""
    replay, models, heard = Replayed(monkeypatch), [], []
    other = X[::-1].reset_index(drop=True)
    other.loc[3, ["a", "b"]] = [np.nan, -1e300]
    other.loc[4, "c"] = "a category of its own"
    for table, y in ((X, Y), (other, Y)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            models.append(DPPipeline(steps).fit(table, y))
        heard.append([str(one.message) for one in said])
        replay.replays = True
    assert not replay.answers and heard[0] == heard[1]
    assert str(models[0].privacy_report_) == str(models[1].privacy_report_)
    assert_array_equal(models[0]["model"].coef_, models[1]["model"].coef_)


@pytest.mark.parametrize("steps", (TWO, THREE), ids=("two", "three"))
def test_one_record_changes_no_row_of_others(steps, monkeypatch):
    """Rows of the last step, given the same answers."""
    replay, rows, fit = Replayed(monkeypatch), [], DPLogisticRegression.fit
    monkeypatch.setattr(DPLogisticRegression, "fit", lambda self, X, y, **named: rows.append(X) or fit(self, X, y, **named))
    other = X.copy()
    other.loc[3] = [-1e300, np.inf, "a category of its own"]
    for table in (X, other):
        DPPipeline(steps).fit(table, Y)
        replay.replays = True
    (first, second), differing = ([made for made in rows if np.any(made)], np.arange(N) == 3)
    assert_array_equal((first != second).any(axis=1), differing)
    assert np.isfinite(second).all()


def test_copies_parameters_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = DPPipeline(THREE, epsilon=2.0).fit(X, Y)
    assert model["columns"] is model.named_steps["columns"] and not hasattr(THREE[0][1], "schema_")
    save_model(model, "model.skops")
    for copy in (pickle.loads(pickle.dumps(model)), load_model("model.skops")):
        assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        assert str(copy.privacy_report_) == str(model.privacy_report_)
    again = clone(model).set_params(pca__n_components=2, shares={"columns": 0.2, "pca": 0.2})
    assert not hasattr(again, "steps_") and again.fit(X, Y)["model"].coef_.shape == (1, 2)
    assert model.n_features_in_ == 3 and [*model.feature_names_in_] == ["a", "b", "c"] and [*model.classes_] == ["no", "yes"]
    assert model["pca"].components_.shape[0] == 3


def test_more_components_than_features_are_cut(recwarn):
    """How many features a schema has is learned; the number of components must not fail after the charge."""
    model = DPPipeline([("columns", LearnedSchema()), ("pca", DPPCA(n_components=50)), TWO[1]], epsilon=3.0).fit(X[["a", "b"]], Y)
    assert len(model["pca"].components_) == model["columns"].transform(X[["a", "b"]]).shape[1]


@pytest.mark.slow
def test_the_first_step_may_learn_how_many_features_there_are():
    """Their number is then no public fact, and its lack must not fail after the charge."""
    steps = [("pca", DPPCA(n_components=1)), ("model", DPKMeans(2))]
    model = DPPipeline(steps, epsilon=5.0).fit(X)
    assert model.privacy_report_.public["n_features"] == 3 == DPPipeline(steps, epsilon=5.0).plan(X).public["n_features"]


def test_persons_are_protected_by_all_steps():
    ids = np.arange(N) // 3
    model = DPPipeline(THREE, epsilon=2.0, privacy_unit="person").fit(X.assign(id=ids), Y, persons="id")
    assert model.privacy_report_.public["n_persons"] == N / 3 and model.n_features_in_ == 3
    assert all(step.privacy_report_.budget.unit == "person" for _, step in model.steps_)
    plan = DPPipeline(TWO, privacy_unit="person").plan(X.assign(id=ids), persons="id")
    assert plan.public["n_persons"] == N / 3 and plan.public["n_features"] == 3


def test_more_rows_of_a_person_change_no_bit_of_the_rows_of_others():
    """The number of rows is private, and BLAS rounds a row by its place: the next step would see other rows of other persons."""
    rows = np.random.default_rng(1).normal(size=(203, 64))
    with pytest.warns(NotPrivateWarning):
        model = DPPCA(1, epsilon=math.inf, feature_bounds=3.0).fit(rows)
    for made in (np.ascontiguousarray, np.asfortranarray):
        scores = [model.transform(made(rows[first:])) for first in range(40)]
        assert all(one[-150:].tobytes() == scores[0][-150:].tobytes() for one in scores)


def test_low_signal_warns_before_the_charge_and_once():
    with PrivacyLedger(epsilon=9, delta=1e-4) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        with pytest.raises(LowSignalWarning):
            DPPipeline(TWO, epsilon=0.02).fit(X, Y)
        assert not ledger.entries
    with pytest.warns(LowSignalWarning) as said:
        DPPipeline(TWO, epsilon=0.02).fit(X, Y)
    texts = [str(one.message)[:40] for one in said]
    assert len(texts) == len(set(texts))


@pytest.mark.slow
def test_searches_charge_each_fit_or_spend_one_budget(oracles):
    grid, cv = {"model__alpha": [1e-4, 1e-2]}, KFold(2)
    with PrivacyLedger(epsilon=9, delta=1e-4) as ledger:
        GridSearchCV(DPPipeline(TWO, delta=1e-6), grid, cv=cv).fit(X, Y)
        assert len(ledger.entries) == 5
    with PrivacyLedger(epsilon=9, delta=1e-4) as ledger:
        search = DPGridSearchCV(DPPipeline(TWO), grid, epsilon=2.0).fit(X, Y)
    (entry,) = ledger.entries
    assert entry.spending.epsilon <= 2.0 and search.best_params_["model__alpha"] in grid["model__alpha"]


def test_checks_of_pipelines_tell_several_budgets_from_one():
    several = check_pipeline(make_pipeline(LearnedSchema(epsilon=0.3), DPLogisticRegression()))
    assert "2 budgets, which add up; skdp.pipeline.DPPipeline spends one" in str(several) and several.ok
    one = check_pipeline(DPPipeline(TWO, epsilon=0.5))
    assert "budgets" not in str(one) and "spends epsilon=0.5" in str(one) and len(one.steps) == 1 and one.ok


def test_the_last_step_may_be_any_that_shares(recwarn):
    model = DPPipeline([TWO[0], ("model", DPGradientBoostingClassifier(classes=["no", "yes"]))], epsilon=2.0)
    assert model.fit(X, Y).score(X, Y) > 0.6
    scores = DPPipeline([TWO[0], ("pca", DPPCA(n_components=2))], epsilon=2.0).fit_transform(X)
    assert scores.shape == (N, 2)
    with pytest.raises(AttributeError, match="no fit_predict"):
        DPPipeline(TWO).fit_predict(X, Y)


@pytest.mark.parametrize("first", ([TWO[0]], [TWO[0], ("pca", DPPCA(n_components=2))]), ids=("columns", "components"))
def test_clusters_may_be_the_last_step(first, oracles):
    """They find what the columns of this table have: two groups, in which all three columns differ."""
    group = np.arange(3 * N) % 2
    noise = np.random.default_rng(1).normal(size=(2, 3 * N))
    table = pd.DataFrame({"a": 100 * group + 9 * noise[0], "b": 3 * group + noise[1] / 4, "c": np.array(["x", "y"])[group]})
    table.loc[::10, "b"] = np.nan
    steps = [*first, ("clusters", DPKMeans(2, random_state=0))]
    with PrivacyLedger(epsilon=9, delta=1e-4) as ledger:
        model = fitted(DPPipeline(steps, epsilon=3.0), table)
    assert len(ledger.entries) == 1 and all(oracle.transcript == oracle._schedule for oracle in oracles)
    assert np.mean(model.predict(table) == group) in (0.0, 1.0)
    assert model.privacy_spent_.epsilon == pytest.approx(3.0, rel=1e-6) and "Step clusters: DPKMeans" in str(
        model.privacy_report_
    )
    assert model.transform(table).shape == (3 * N, 2)


@pytest.mark.parametrize(
    "display, steps",
    [
        (ClusterDisplay, [TWO[0], ("clusters", DPKMeans(2))]),
        (ScreeDisplay, [TWO[0], ("pca", DPPCA(n_components=2))]),
        (CoefficientDisplay, [TWO[0], ("model", DPLogisticRegression(classes=["no", "yes"], inference=True))]),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_displays_draw_the_fitted_last_step(display, steps):
    matplotlib.use("Agg")
    model = fitted(DPPipeline(steps, epsilon=3.0), X, Y)
    assert display.from_estimator(model).figure_.axes
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("output", ("standardized", "units"))
def test_the_last_step_gets_the_bounds_of_what_is_not_divided(output):
    """Also of a constant column."""
    table = X.assign(zero=0.0)
    last = DPLogisticRegression(classes=["no", "yes"])
    model = fitted(DPPipeline([("columns", LearnedSchema(output=output)), ("model", last)], epsilon=3.0), table, Y)
    bounds, length = model["model"].feature_bounds, model["model"].data_norm
    if output == "standardized":
        assert (bounds, length) == (None, model["columns"].schema_.data_norm)
    else:
        made, (low, high) = model["columns"].transform(table), np.transpose(bounds)
        assert length is None and ((made >= low) & (made <= high)).all()
    assert model.score(table, Y) > 0.6


def test_labels_are_predicted_as_well_as_by_a_model_that_learns_its_columns():
    usual = fitted(DPLogisticRegression(schema="learn"), X, Y).score(X, Y)
    assert fitted(DPPipeline([TWO[0], ("model", DPLogisticRegression())]), X, Y).score(X, Y) > usual - 0.05

"""Test DPLogisticRegression from the user's side: from tables to a model and its privacy report."""

import json
import math

import numpy as np
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPLogisticRegression, PrivacyReport, WeakPrivacyWarning
from skdp._data_validation import Facts
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers import GradientDescent, SolverResult


@pytest.fixture
def table(rng):
    X = rng.integers(-4, 5, size=(600, 5)) / 4  # exact in float32
    return X, (X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=600) > 0).astype(int)


@pytest.mark.parametrize("dtype", (np.float32, np.int8, np.int64, np.uint8, bool, np.float16, object))
def test_every_dtype_gives_the_same_model(dtype, table):
    X = np.abs(np.rint(table[0])).astype(dtype)
    expected = fitted(DPLogisticRegression(5.0), X.astype(float), table[1])
    np.testing.assert_allclose(fitted(DPLogisticRegression(5.0), X, table[1]).coef_, expected.coef_, atol=1e-6)


@pytest.mark.slow
def test_duplicate_entries_of_a_sparse_table_are_added_up(rng):
    """Twice 0.9 in one cell is a row of norm 1.8: clipped as such, or the sensitivity would be wrong."""
    rows, columns = np.repeat(np.arange(100), 2), np.zeros(200, dtype=int)
    split = sparse.coo_matrix((np.full(200, 0.9), (rows, columns)), shape=(100, 2))
    doubled = sparse.csr_matrix((np.full(200, 0.9), columns, np.arange(0, 201, 2)), shape=(100, 2))
    y = np.arange(100) % 2
    for X in (split, doubled, doubled.tocsc()):
        model = fitted(DPLogisticRegression(1.0, data_norm=1.0), X, y)
        expected = fitted(DPLogisticRegression(1.0, data_norm=1.0), split.toarray(), y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert doubled.nnz == 200  # the user's table is as it was


@pytest.mark.each_value
@pytest.mark.parametrize("labels", ([0, 1], ["no", "yes"], [-1, 1], [False, True], ["a", "b", "c"], [3, 1, 2, 7]))
@pytest.mark.parametrize("fit_intercept", (True, False))
def test_shapes_and_labels(labels, fit_intercept, rng):
    X = rng.normal(size=(400, 3))
    y = np.array(labels)[rng.integers(0, len(labels), 400)]
    model = fitted(DPLogisticRegression(10.0, fit_intercept=fit_intercept), X, y)
    outputs = 1 if len(labels) == 2 else len(labels)
    assert model.classes_.tolist() == sorted(labels)
    assert model.coef_.shape == (outputs, 3)
    assert model.intercept_.shape == (outputs,)
    assert model.intercept_.any() == fit_intercept
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (400, len(labels))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities), atol=1e-12)
    assert np.array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])


def test_classes_without_rows_are_no_error(table):
    X, _ = table
    model = fitted(DPLogisticRegression(1.0, classes=["low", "middle", "high"]), X, ["low"] * 600)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert "is read from y" not in str(model.privacy_report_)
    assert "is read from y" in str(fitted(DPLogisticRegression(), *table).privacy_report_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("intercept_scaling", (1.0, 3.0))
def test_class_weight_and_intercept_scaling_are_scikit_learns(intercept_scaling, rng):
    X = rng.normal(size=(500, 2))
    y = (X[:, 0] + rng.normal(size=500) > 1).astype(int)
    solver = GradientDescent(4000, step_size=0.1, tail_average=0.0)
    given = {"class_weight": {1: 5.0}, "intercept_scaling": intercept_scaling}
    ours = DPLogisticRegression(math.inf, solver=solver, data_norm=50.0, **given).fit(X, y)
    theirs = LogisticRegression(class_weight={1: 5.0}, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-3)


@pytest.mark.slow
def test_pipeline_grid_search_and_cross_validation(table):
    X, y = table
    pipeline = make_pipeline(FunctionTransformer(np.tanh), DPLogisticRegression())
    name = "dplogisticregression__epsilon"
    search = fitted(GridSearchCV(pipeline, {name: [0.01, 5.0]}, cv=3), X, y)
    assert search.best_params_ == {name: 5.0}
    assert search.best_estimator_[-1].privacy_spent_.epsilon == pytest.approx(5.0, rel=1e-6)
    scores = cross_val_score(DPLogisticRegression(5.0), X, y, cv=4, n_jobs=2)
    assert scores.shape == (4,)
    assert scores.mean() > 0.8  # noise of workers does not repeat; measured: .912 with a standard deviation of .005


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("n_classes", (2, 4))
def test_attributes_state_what_was_spent(adjacency, n_classes, rng):
    X, y = rng.normal(size=(300, 3)), np.arange(300) % n_classes
    model = fitted(DPLogisticRegression(0.7, adjacency=adjacency, solver="gd"), X, y)
    assert 0.999 * 0.7 <= model.privacy_spent_.epsilon <= 0.7
    assert model.privacy_spent_.delta == 1 / 300**2
    (line,) = model.privacy_report_.releases
    assert line.count == model.n_iter_
    assert line.noise_multiplier == model.noise_multiplier_
    assert line.query == "Gradient"
    assert model.n_features_in_ == 3


def test_no_single_noise_multiplier_stands_for_several_kinds_of_release(table):
    model = fitted(DPLogisticRegression(), *table)
    assert len(model.privacy_report_.releases) == 4
    assert not hasattr(model, "noise_multiplier_")


def test_report_in_all_its_forms(table):
    model = DPLogisticRegression(class_weight={0: 2.0}, solver=GradientDescent(60)).fit(*table)
    report = model.privacy_report_
    content = json.loads(report.to_json())
    assert content == report.to_dict()
    assert content["schema_version"] == "2.2"
    assert (content["private"], content["reproducible_noise"]) == (True, False)
    assert content["planned"] is False
    assert (content["epsilon"], content["delta"], content["adjacency"]) == (1.0, 1 / 600**2, "replace_one")
    assert content["adjacency_in_words"] == "two tables with the same number of records, one record replaced by any other"
    assert content["solver"] == "gd"
    assert content["spent"] == {"epsilon": model.privacy_spent_.epsilon, "delta": 1 / 600**2}
    assert content["releases"] == [
        {
            "query": "Gradient",
            "mechanism": "Gaussian",
            "count": 60,
            "noise_multiplier": model.noise_multiplier_,
            "clip_norm": report.releases[0].clip_norm,
            "rounding_allowance": report.releases[0].rounding_allowance,
            "sampling_rate": 1.0,
            "in_words": "",
        }
    ]
    assert content["public"]["n_samples"] == 600
    assert content["public"]["classes"] == [0, 1]
    assert content["public"]["parameters"]["class_weight"] == "{0: 2.0}"
    text, page = " ".join(str(report).split()), report._repr_html_()
    for piece in (
        "(1, 2.77778e-06)-differential privacy",
        "one record replaced",
        "gd:",
        "secure: the operating system",
    ):
        assert piece in text
        assert piece in page.replace("&#x27;", "'")
    assert "60 x Gradient" in text


def test_the_report_of_a_fit_in_a_block_of_reproducible_noise_guarantees_nothing(table):
    report = fitted(DPLogisticRegression(), *table).privacy_report_
    content = json.loads(report.to_json())
    assert (content["private"], content["reproducible_noise"]) == (False, True)
    for text in (" ".join(str(report).split()), report._repr_html_()):
        assert "NONE: the noise came from a seed" in text and "reproducible noise" in text
        assert "secure: the operating system" not in text and "-differential privacy of the training records" not in text


@pytest.mark.parametrize("class_weight", (None, {1: 3.0}, {0: 0.5}, {1: 0.5}, {0: 0.1, 1: 0.2}))
def test_plan_states_the_same_before_any_data(class_weight, table):
    estimator = DPLogisticRegression(0.5, class_weight=class_weight)
    plan, report = estimator.plan(600, 5), estimator.fit(*table).privacy_report_
    assert isinstance(plan, PrivacyReport)
    assert plan.planned and not report.planned
    assert (plan.budget, plan.spent, plan.releases, plan.noise_size) == (
        report.budget,
        report.spent,
        report.releases,
        report.noise_size,
    )
    assert "the largest possible mean gradient" in str(plan)
    assert not hasattr(DPLogisticRegression(), "coef_")
    three = DPLogisticRegression(classes=["a", "b", "c"])
    assert (
        three.plan(100, 2).releases == three.plan(100, 2, n_classes=7).releases == DPLogisticRegression().plan(100, 2, 3).releases
    )


def test_noise_that_cannot_be_resolved_is_refused_before_the_data_are_read(table, monkeypatch):
    monkeypatch.setattr(TrainingData, "__init__", lambda *args, **given: pytest.fail("the data were read"))
    model = DPLogisticRegression(2e-6, delta=1e-9, solver=GradientDescent(10_000))
    for call in (lambda: model.fit(*table), lambda: model.plan(600, 5)):
        with pytest.raises(ValueError, match="expected a larger epsilon"):
            call()


def test_rounding_allowance_is_small_and_grows_for_long_columns():
    """CSC sums columns whole; a plan is for blocks of rows."""
    (line,) = DPLogisticRegression(solver="gd").plan(10**6, 50).releases
    assert 0 < line.rounding_allowance < 2**-9
    model = DPLogisticRegression(solver="gd")._task().plan_of(Facts(10**8, 50, storage="CSC", classes=np.arange(2)))
    assert model.rounding_allowances[0] > 2


def test_plan_takes_numpy_integers():
    plan = DPLogisticRegression().plan(np.int32(100_000), np.int64(5), np.int8(3))
    assert plan.budget.delta == 1e-10
    assert json.loads(plan.to_json())["public"]["n_samples"] == 100_000


def test_plan_noise_hint_is_noise_over_the_largest_mean():
    plan = DPLogisticRegression(clip_norm=2.0, solver=GradientDescent(9)).plan(1000, 4)
    share = plan.releases[0].noise_multiplier / 1000
    assert f"{share:.3g} times the largest possible mean gradient in each release" in plan.noise_size
    assert f"{share / 3:.3g} times in the average" in plan.noise_size
    assert f"{share / 3 * math.sqrt(5):.3g} times over the 5 coordinates" in plan.noise_size


class Scripted(GradientDescent):
    """A solver that returns what it is given, after the scheduled releases."""

    def __init__(self, coef=None):
        super().__init__(3)
        self.coef = coef

    def solve(self, problem, ask, rng):
        super().solve(problem, ask, rng)
        return SolverResult(np.array(self.coef), 3)


@pytest.mark.parametrize("coef", ([[np.nan]] * 6, [[1.0]] * 7, 1.0))
def test_a_solver_must_return_finite_coefficients_of_the_right_shape(coef, table):
    with pytest.raises(ValueError, match=r"no finite array of shape \(6, 1\)"):
        DPLogisticRegression(solver=Scripted(coef)).fit(*table)


class OwnGradient(Gradient):
    """A query of the user's."""


class Asking(GradientDescent):
    """A solver with a query of its own."""

    def schedule(self, problem):
        return Schedule(((1, Release(OwnGradient, Gaussian())),))

    def solve(self, problem, ask, rng):
        return SolverResult(-ask(OwnGradient(problem.loss, problem.start, 1.0)).reshape(problem.shape), 1)


def test_code_from_elsewhere_that_sees_the_data_is_reported(table):
    model = DPLogisticRegression(solver=Asking()).fit(*table)
    assert "OwnGradient is unreviewed" in str(model.privacy_report_)
    assert "unreviewed" not in str(DPLogisticRegression().plan(10, 2))


def test_report_is_made_before_anything_can_change_the_parameters(table, monkeypatch):
    model = DPLogisticRegression(2.0)
    solve = GradientDescent.solve

    def meddle(self, problem, ask, rng):
        model.set_params(epsilon=0.001, adjacency="zero_out")
        return solve(self, problem, ask, rng)

    monkeypatch.setattr(GradientDescent, "solve", meddle)
    report = model.fit(*table).privacy_report_
    assert (report.budget.epsilon, report.budget.adjacency) == (2.0, "replace_one")
    assert report.public["parameters"]["epsilon"] == "2.0"


def test_labels_of_every_kind_reach_the_json():
    X = np.linspace(-1, 1, 40)[:, None]
    y = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")[np.arange(40) % 2]
    assert "2020-01-02" in DPLogisticRegression().fit(X, y).privacy_report_.to_json()


@pytest.mark.parametrize("given", ({"epsilon": 11.0}, {"delta": 0.01}))
def test_weak_guarantees_warn(given, table):
    with pytest.warns(WeakPrivacyWarning):
        fitted(DPLogisticRegression(**given), *table)


@pytest.mark.filterwarnings("ignore::skdp.WeakPrivacyWarning")
def test_every_kind_of_budget_number_is_taken(table):
    for epsilon in (1, np.float32(1.0), np.float64(1.0), np.int64(1)):
        assert fitted(DPLogisticRegression(epsilon, delta=np.float64(1e-5)), *table).privacy_spent_.epsilon <= 1


def test_the_report_says_when_noise_drowns_the_signal():
    assert "expect a useless model" in DPLogisticRegression(0.1).plan(20, 5).noise_size
    assert "expect a useless model" not in DPLogisticRegression(1.0).plan(20_000, 5).noise_size

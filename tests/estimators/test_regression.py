"""Test DPLinearRegression from the user's side: from tables and targets to a model and its privacy report."""

import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from seeded import fitted, reproducible_noise
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPLinearRegression, DPLogisticRegression, NotPrivateWarning
from skdp._data_validation import TargetReader
from skdp.solvers import SolverResult, WhitenedGradientDescent

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcde")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcde")),
}
BOUNDS = (0, 20)


def estimator(epsilon=5.0, **params):
    return DPLinearRegression(epsilon, **{"target_bounds": BOUNDS, **params})


@pytest.fixture
def table(rng):
    X = rng.integers(-4, 5, size=(600, 5)) / 4  # exact in float32
    return X, 10 + 3 * X[:, 0] + 2 * X[:, 1] + rng.normal(size=600)


@pytest.mark.parametrize("storage", STORAGES)
def test_every_storage_gives_the_same_model(storage, table):
    X, y = table
    expected, stored = fitted(estimator(data_norm=2.0), X, y), STORAGES[storage](X)
    model = fitted(estimator(data_norm=2.0), stored, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.score(stored, y) == pytest.approx(expected.score(X, y))
    assert model.score(stored, y) > 0.6
    np.testing.assert_allclose(model.predict(stored, 0.9)[1], expected.predict(X, 0.9)[1], atol=1e-6)
    if storage in ("pandas", "polars"):
        assert model.feature_names_in_.tolist() == list("abcde")
        with pytest.raises(ValueError, match="feature names"):
            model.predict(pd.DataFrame(X, columns=list("edcba")))


@pytest.mark.parametrize("dtype", (np.float32, np.int8, np.uint64, bool, np.float16, np.longdouble, object, "Int64", "list"))
def test_targets_of_every_kind(dtype, table):
    X, y = table[0], (table[1] > 10).astype(int) if dtype is bool else np.rint(table[1]).astype(int)
    expected = fitted(estimator(), X, y.astype(float))
    given = y.tolist() if dtype == "list" else pd.Series(y, dtype=dtype) if dtype == "Int64" else y.astype(dtype)
    np.testing.assert_allclose(fitted(estimator(), X, given).coef_, expected.coef_)


def test_shapes_and_attributes(table):
    model = fitted(estimator(1.0), *table)
    assert model.coef_.shape == (5,) and np.ndim(model.intercept_) == 0
    assert model.n_features_in_ == 5 and model.n_iter_ == 37 and not hasattr(model, "noise_multiplier_")
    assert model.target_bounds_ == (0.0, 20.0)
    assert 0.999 <= model.privacy_spent_.epsilon <= 1 and model.privacy_spent_.delta == 1 / 600**2
    assert model.predict(table[0]).shape == (600,)
    assert fitted(estimator(fit_intercept=False), table[0], table[1] - 10).intercept_ == 0


@pytest.mark.filterwarnings("ignore:X has rows that are more than")
def test_predictions_stay_in_the_bounds_of_the_fit(table):
    model = fitted(estimator(), *table)
    far = 1000 * np.sign(model.coef_)[None]
    assert model.predict(far).tolist() == [20.0] and model.predict(-far).tolist() == [0.0]
    predictions, intervals = model.predict(np.concatenate([far, -far]), return_interval=0.9)
    assert predictions.tolist() == [20.0, 0.0]
    assert (0 <= intervals).all() and (intervals <= 20).all()
    model.set_params(target_bounds=(0, 1))
    assert model.predict(far).tolist() == [20.0]


@pytest.mark.parametrize("bounds", ((-1.0, 1.0), (3, 7), (-1e6, -1e5)))
def test_targets_go_behind_the_gate_clipped_centred_and_scaled(bounds, rng):
    class Scratch(DPLinearRegression):
        pass

    middle, half = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
    y = middle + half * np.concatenate([rng.uniform(-1, 1, 50), [-1, 1, -1e300, 1e300, 3, 1 + 1e-9]])
    targets = TargetReader(middle, half, bounded=True)(rng.normal(size=(y.size, 2)), y, Scratch()).y
    expected = np.clip((y - middle) / half, -1, 1)
    np.testing.assert_allclose(targets, expected, atol=1e-9)
    assert targets.dtype == np.float64 and np.abs(targets).max() == 1


def test_clipped_targets_are_as_good_as_given_so(table):
    X, y = table
    outliers = np.where(np.arange(600) % 7 == 0, 1e6 * np.sign(y - 10), y)
    np.testing.assert_array_equal(fitted(estimator(), X, outliers).coef_, fitted(estimator(), X, outliers.clip(*BOUNDS)).coef_)


@pytest.mark.parametrize("kind, least", (("shifted", 1e-9), ("scaled", 1e-9)))
def test_units_of_the_targets_do_not_matter(kind, least, table):
    X, y = table
    shift, factor = (100.0, 1.0) if kind == "shifted" else (0.0, 8.0)
    expected = fitted(estimator(1.0), X, y)
    bounds = tuple(factor * end + shift for end in BOUNDS)
    model = fitted(estimator(1.0, target_bounds=bounds), X, factor * y + shift)
    np.testing.assert_allclose(model.coef_, factor * expected.coef_, rtol=1e-6)
    assert model.intercept_ == pytest.approx(factor * expected.intercept_ + shift, rel=least)


def test_without_an_intercept_targets_are_not_centred(table):
    X, y = table
    y = (y - 10).clip(0, 20)  # of a range on one side of zero
    with pytest.warns(NotPrivateWarning):
        model = fitted(estimator(math.inf, fit_intercept=False), X, y)
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-8)


@pytest.mark.parametrize(
    "bounds, error",
    (
        ((1, 1), ValueError),
        ((2, 1), ValueError),
        ((0, math.nan), ValueError),
        ((-math.inf, 0), ValueError),
        ((0, 1e51), ValueError),
        ((0, 1e-60), ValueError),
        ((0, 1, 2), TypeError),
        ("ab", TypeError),
        ({0, 1}, TypeError),
        (1.0, TypeError),
        ((0, "1"), TypeError),
    ),
)
def test_bounds_that_are_none_are_refused(bounds, error, table):
    with pytest.raises(error, match=r"target_bounds=.*expected \(low, high\)"):
        fitted(estimator(target_bounds=bounds), *table)


@pytest.mark.parametrize(
    "y",
    (
        ["secret"] * 600,
        np.array(["3.1415"] * 600),
        np.full(600, math.nan),
        np.full(600, math.inf),
        np.full(600, 3.1415 + 1j),
        np.full(600, "2020-01-01", dtype="M8[D]"),
        np.full((600, 2, 1), 3.1415),
        np.full(599, 3.1415),
    ),
)
def test_targets_that_are_no_numbers_are_refused_without_a_quote(y, table):
    with pytest.raises(ValueError) as caught:
        fitted(estimator(), table[0], y)
    assert "secret" not in str(caught.value) and "3.14" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("target", (1e-310, 1e300))
@pytest.mark.parametrize("entry", (1.0, 1.7e308))
def test_errors_of_floating_point_tell_nothing_of_the_records(target, entry, table):
    """Where a program turns them into exceptions, which of them come up would follow from the size of a target or feature."""
    X, y = table[0].copy(), table[1].copy()
    y[7], X[:200] = target, np.where(np.arange(200) % 2, entry, -entry)[:, None]
    with np.errstate(over="raise", under="raise", invalid="raise"):
        for half_width in (1e-40, 1e10):
            TargetReader(0.0, half_width, bounded=True)(X, y, estimator())


@pytest.mark.parametrize(
    "value", (None, "nan", "inf", math.inf, np.float32(math.nan), 10**400, pd.NA, Decimal("NaN"), Decimal("inf"))
)
@pytest.mark.parametrize("solver", ("whitened_gd", "ssp"))
def test_objects_that_are_no_finite_targets_are_refused_before_anything_is_released(value, solver, table, monkeypatch):
    """A NaN behind the oracle would come out of it whatever the noise is."""
    monkeypatch.setattr("skdp.estimators._base.pay", lambda *given: pytest.fail("it was paid for"))
    for y in ([value, *table[1][1:].tolist()], pd.Series([*table[1][1:].tolist(), value], dtype=object)):
        with pytest.raises((TypeError, ValueError)):
            fitted(estimator(solver=solver), table[0], y)


def with_duplicates(storage, last):
    """Fifty records that have a cell of twenty entries each, which cancel in part, and a last record of the given entries."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.full(len(last), 50), np.repeat(np.arange(50), 21)])
    columns = np.concatenate([list(last), np.tile(np.append(np.zeros(20), 1), 50)]).astype(int)
    values = (rng.normal(size=(50, 21)) * 10.0 ** rng.integers(-16, 17, size=(50, 21))).ravel()
    values = np.concatenate([list(last.values()), values])
    if storage == "coo":
        return sparse.coo_array((values, (rows, columns)), shape=(51, 3))
    major, minor, size = (rows, columns, 51) if storage == "csr" else (columns, rows, 3)
    order = np.argsort(major, kind="stable")
    offsets = np.searchsorted(major[order], np.arange(size + 1))
    return getattr(sparse, f"{storage}_array")((values[order], minor[order], offsets), shape=(51, 3))


@pytest.mark.parametrize("storage", ("csr", "csc", "coo"))
@pytest.mark.parametrize("last", ({0: 1.0}, {2: 1.0, 1: 2.0}, {2: 1.0, 0: 3.0}))
def test_duplicates_of_a_record_add_up_to_the_same_whatever_the_other_records_are(storage, last):
    """Else one record could move all others by more than the rounding that the noise covers."""
    tables = (with_duplicates(storage, entries) for entries in ({}, last))
    one, other = (TargetReader(0.0, 1.0, bounded=True)(table, np.zeros(51), estimator()).X.toarray() for table in tables)
    np.testing.assert_array_equal(one[:50], other[:50])
    np.testing.assert_array_equal(other[50], [last.get(column, 0.0) for column in range(3)])


def test_text_for_a_target_is_said_to_be_about_y(table):
    with pytest.raises(ValueError, match="In y, a regression takes numbers only"):
        fitted(estimator(), table[0], np.where(table[1] > 10, "secret", "low"))


def test_what_cannot_exist_is_refused_with_the_reason(table):
    with pytest.raises(TypeError, match="sample_weight: a weight is part of a record"):
        fitted(estimator(), *table, sample_weight=np.ones(600))
    with pytest.raises(TypeError, match="does not take warm_start"):
        DPLinearRegression(warm_start=True)
    with pytest.raises(TypeError, match=r"does not take max_iter: .* n_steps of an object of skdp\.solvers"):
        DPLinearRegression(max_iter=100)
    with pytest.raises(AttributeError, match="no partial_fit"):
        estimator().partial_fit(*table)


def test_solvers_of_classes_and_of_numbers_are_told_apart(table):
    with pytest.raises(ValueError, match=r"solver='newton' needs exactly two classes.*Solvers that fit: .*whitened_gd"):
        fitted(estimator(solver="newton"), *table)
    with pytest.raises(ValueError, match="solver='whitened_gd' needs a number to predict"):
        DPLogisticRegression(solver="whitened_gd").fit(table[0], table[1] > 10)
    assert "chosen by solver='auto'" in estimator().plan(1000, 5).solver_reason
    assert estimator().plan(1000, 5).solver == "whitened_gd"


@pytest.mark.parametrize("epsilon", (0.5, 0.01))
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_plan_states_the_same_before_any_data(epsilon, adjacency, table):
    model = estimator(epsilon, adjacency=adjacency)
    plan, report = model.plan(600, 5), model.fit(*table).privacy_report_
    assert (plan.budget, plan.spent, plan.releases, plan.noise_size) == (
        report.budget,
        report.spent,
        report.releases,
        report.noise_size,
    )
    assert plan.planned and not report.planned


def test_report_in_all_its_forms(table):
    report = fitted(estimator(1.0), *table).privacy_report_
    content = json.loads(report.to_json())
    assert content["public"]["parameters"]["target_bounds"] == "(0, 20)"
    assert "classes" not in content["public"]
    assert any("what lies outside of target_bounds is clipped" in line for line in content["assumptions"])
    assert sum(line["count"] for line in content["releases"]) == content["public"]["n_releases"] == 41
    assert "whitened_gd" in report._repr_html_()


def test_pipeline_grid_search_and_cross_validation(table):
    X, y = table
    pipeline = make_pipeline(FunctionTransformer(np.tanh), estimator())
    name = "dplinearregression__epsilon"
    search = fitted(GridSearchCV(pipeline, {name: [0.01, 5.0]}, cv=3), X, y)
    assert search.best_params_ == {name: 5.0}
    with reproducible_noise(0):
        assert cross_val_score(estimator(), X, y, cv=4).mean() > 0.6


class Untold(WhitenedGradientDescent):
    """A solver that tells no uncertainty."""

    def solve(self, problem, ask, rng):
        result = super().solve(problem, ask, rng)
        return SolverResult(result.coef, result.n_iter)


def test_intervals_need_a_solver_that_tells_its_uncertainty(table):
    model = fitted(estimator(solver=Untold()), *table)
    assert model.predict(table[0]).shape == (600,)
    for call in (model.coef_interval, lambda: model.predict(table[0], return_interval=0.9)):
        with pytest.raises(AttributeError, match="tells no uncertainty"):
            call()

"""Test parameters that all estimators share: the kind of penalty and the public bounds of the features."""

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from products import GIVEN, KINDS
from seeded import fitted
from sklearn.base import clone

import skdp.estimators
from skdp import DPLinearRegression, DPLogisticRegression
from skdp._data_validation import Facts
from skdp.estimators.additive._base import ColumnModel


def having(*parameters):
    """Names of the estimators that have some parameters."""
    given = {name: getattr(skdp.estimators, name)._get_param_names() for name in KINDS}
    return [name for name in KINDS if {*parameters} <= {*given[name]}]


# Estimators of which bounds scale the features, and have no data norm beside them.
COLUMNS = [name for name in KINDS if issubclass(getattr(skdp.estimators, name), ColumnModel)]
every = pytest.mark.parametrize("name", having("feature_bounds"))
unscaled = pytest.mark.parametrize("name", [name for name in having("feature_bounds", "data_norm") if name not in COLUMNS])
FORMS = {
    "one number": 2.0,
    "an integer": 2,
    "a fraction": Fraction(2),
    "a pair": (-2, 2.0),
    "a list": [Fraction(-2), 2],
    "pairs": [(-2, 2), (-2, 2), [-2.0, 2]],
    "an array of pairs": np.array([[-2, 2]] * 3),
    "of float32": np.array([[-2, 2]] * 3, dtype=np.float32),
    "of objects": np.array([[-2, Fraction(2)]] * 3, dtype=object),
    "a series": pd.Series([-2.0, 2.0]),
    "a frame": pd.DataFrame({"low": [-2.0] * 3, "high": [2.0] * 3}),
    "of polars": pl.Series([-2.0, 2.0]),
    "by name": {"x2": (-2, 2), "x0": 2, "x1": (-2, 2)},
}


def estimator_named(name, **parameters):
    return getattr(skdp.estimators, name)(**{**GIVEN.get(name, {}), **parameters})


@pytest.mark.each_value
@unscaled
@pytest.mark.parametrize("form", FORMS)
def test_feature_bounds_of_every_form_give_the_same_fit(name, form):
    """They set the norm of a row: it is that of the corner of their box, and a bound that is given goes before."""
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    model = clone(estimator_named(name, feature_bounds=FORMS[form]))
    coef = fitted(model, X, y).coef_
    np.testing.assert_array_equal(coef, fitted(estimator_named(name, feature_bounds=2.0), X, y).coef_)
    assert model.privacy_report_.public["resolved"]["data_norm"] == pytest.approx(longest(name, (2, 2, 2)))
    assert model.feature_bounds is not None and json.loads(model.privacy_report_.to_json())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).coef_, coef)
    given = model.set_params(data_norm=1.5).plan(60, 3)
    assert given.public["resolved"]["data_norm"] == 1.5


def longest(name, bounds):
    """The default of ``data_norm``: of scaled columns, or of a row in the corner of the box."""
    return np.linalg.norm(bounds if "Constrained" in name else np.ones(len(bounds)))


@unscaled
def test_bounds_of_each_feature_reach_the_problem(name):
    model = estimator_named(name, feature_bounds=[(-3, 1), (0, 4), (-12, -1)])
    plan = model.plan(100, 3)
    assert plan.public["resolved"]["data_norm"] == pytest.approx(longest(name, (3, 4, 12)))
    facts = Facts(100, 3, classes=np.arange(2) if "classes" in model.get_params() else None)
    kept = "Constrained" in name  # others scale by them
    assert model._task().plan_of(facts).problem.feature_bounds == ((3.0, 4.0, 12.0) if kept else 1.0)
    assert estimator_named(name, feature_bounds=7)._task().plan_of(facts).problem.feature_bounds == (7.0 if kept else 1.0)
    assert estimator_named(name)._task().plan_of(facts).problem.feature_bounds is None


@every
@pytest.mark.parametrize("bounds", (np.tile([0, 1], (4, 1)), [(0, 1)] * 2))
def test_bounds_must_be_as_many_as_features(name, bounds, monkeypatch):
    """They are compared with the width of the table before anything is paid for."""
    monkeypatch.setattr("skdp.estimators._base.pay", lambda *given: pytest.fail("it was paid for"))
    model = estimator_named(name, feature_bounds=bounds)
    for call in (lambda: model.fit(np.eye(6, 3), np.arange(6) % 2), lambda: model.plan(100, 3)):
        with pytest.raises(ValueError, match=f"feature_bounds=.* is for {len(bounds)} features; expected bounds for 3"):
            call()


@pytest.mark.parametrize(
    "bounds, error",
    (
        ([(0, 1), (0, 1), (1, 0)], ValueError),
        ([(0, 1), (0, 1), (1, 1)], ValueError),
        ([(0, 1), (0, 1), (0, math.nan)], ValueError),
        ([(0, 1), (0, 1), (0, 1e60)], ValueError),
        (np.ones(3), TypeError),
        ([3, 2, 1], TypeError),
        ((2, 1), ValueError),
        ({}, TypeError),
        ({"x0": 1, "x1": 1, "x2": "1"}, TypeError),
        ({"x0": 1, "x1": 1, "x2": [(0, 1)]}, TypeError),
        (np.ones((3, 3)), TypeError),
        (np.ones((3, 2, 1)), TypeError),
        (np.ones(3, dtype=bool), TypeError),
        (np.array(["1", "1", "1"]), TypeError),
        (pd.DataFrame({"a": ["b"] * 3}), TypeError),
        ([[1.0], [1.0, 2.0], [1.0]], TypeError),
    ),
)
def test_bounds_that_are_none_are_refused(bounds, error):
    with pytest.raises(error, match=r"feature_bounds.*=.*expected a positive number B"):
        DPLogisticRegression(feature_bounds=bounds).plan(100, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", (np.asarray, list))
def test_many_bounds_survive_copies_and_are_brief_in_reports(kind):
    bounds = kind(np.column_stack([np.zeros(5000), np.linspace(1, 2, 5000)]).tolist())
    model = clone(DPLogisticRegression(feature_bounds=bounds))
    np.testing.assert_array_equal(model.feature_bounds, bounds)
    assert len(repr(model)) < 2000
    report = model.plan(10**6, 5000)
    assert len(report.public["parameters"]["feature_bounds"]) < 1000 and len(str(report)) < 6000
    assert report.public["resolved"]["data_norm"] == pytest.approx(math.sqrt(5000))


@pytest.mark.parametrize(
    "given, expected",
    (
        ({"alpha": 0.0, "solver": "gd"}, "none"),
        ({"alpha": 0.25, "solver": "gd"}, "ElasticNet(alpha=0.25, l1_ratio=0.0), which spares the intercept"),
        ({"alpha": 0.25, "l1_ratio": 0.5}, "ElasticNet(alpha=0.25, l1_ratio=0.5), which spares the intercept"),
        ({"alpha": 0.25, "l1_ratio": 1, "fit_intercept": False}, "ElasticNet(alpha=0.25, l1_ratio=1.0)"),
        ({"alpha": 0.25, "solver": "objective"}, "ElasticNet(alpha=0.25, l1_ratio=0.0), which includes the intercept"),
    ),
)
def test_the_report_tells_the_penalty(given, expected):
    assert DPLogisticRegression(**given).plan(1000, 3).public["resolved"]["penalty"] == expected


@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression))
@pytest.mark.parametrize("l1_ratio", (0.3, 1, Fraction(1, 2)))
def test_an_l1_penalty_takes_a_solver_with_proximal_steps(kind, l1_ratio):
    model = kind(l1_ratio=l1_ratio, **({"target_bounds": (-1, 1)} if kind is DPLinearRegression else {}))
    assert model.plan(1000, 3).solver == "gd"
    assert model.set_params(l1_ratio=0.0).plan(1000, 3).solver in ("standardized_gd", "whitened_gd")
    solver = "objective" if kind is DPLogisticRegression else "ssp"
    with pytest.raises(ValueError, match=r"without l1 penalty, but the problem has .* l1_ratio=.* Solvers that fit: gd, .*sgd"):
        model.set_params(l1_ratio=l1_ratio, solver=solver).plan(1000, 3)


def test_a_strong_l1_penalty_sets_coefficients_to_zero():
    """Those of features without signal; the last iterate of a proximal step has exact zeros."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(5000, 6))
    y = X[:, 0] + 0.3 * rng.normal(size=5000) > 0
    solver = skdp.solvers.GradientDescent(50, tail_average=0.0)
    coef = fitted(DPLogisticRegression(5.0, alpha=0.1, l1_ratio=1.0, solver=solver), X, y).coef_[0]
    assert coef[0] > 0.3 and (coef[1:] == 0).all()

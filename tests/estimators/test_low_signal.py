"""Test that hopeless fits warn before the budget is spent, and that plans state what would be enough."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from saddles import Instrumented
from seeded import fitted
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import MinMaxScaler

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPConstrainedRegression,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPGroupDROClassifier,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMinimax,
    DPQuantileRegressor,
    DPRobustRegressor,
    DPTabularClassifier,
    LowSignalWarning,
    PrivacyLedger,
)
from skdp.audit import audit
from skdp.estimators.boosting import _rule
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.solvers import SGD

BOUNDS = {"target_bounds": (-1.0, 1.0)}
MODELS = (
    DPLogisticRegression(),
    DPLogisticRegression(solver="sgd"),
    DPLogisticRegression(solver="objective"),
    DPLogisticRegression(solver="output", delta=0),
    DPLinearSVC(),
    DPConstrainedClassifier(),
    DPAdditiveClassifier(feature_bounds=1.0),
    DPAUCMaximizer(),
    DPAUCMaximizer(solver="moments"),
    DPAUCMaximizer(scorer="mlp"),
    DPGroupDROClassifier(),
    DPLinearRegression(**BOUNDS),
    DPLinearRegression(**BOUNDS, solver="ssp"),
    DPConstrainedRegression(**BOUNDS),
    DPAdditiveRegressor(**BOUNDS, feature_bounds=1.0),
    DPQuantileRegressor(),
    DPRobustRegressor(),
    DPMinimax(Instrumented),
)


CASES = [pytest.param(model, id=f"{type(model).__name__}-{getattr(model, 'scorer', '')}-{model.solver}") for model in MODELS]


def table(n_samples, n_features, numbers):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_samples, n_features))
    return X, np.clip(X[:, 0], -1, 1) if numbers else (X[:, 0] > 0).astype(int)


@pytest.fixture
def heard():
    """Every warning that was given, this one too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [item for item in caught if item.category is LowSignalWarning]


@pytest.mark.each_value
@pytest.mark.parametrize("epsilon", (0.02, 3.0))
@pytest.mark.parametrize("model", CASES)
def test_a_fit_warns_once_exactly_where_its_plan_asks_for_more(model, epsilon, heard):
    model = clone(model).set_params(epsilon=epsilon)
    needed = model.plan(60, 3).needed
    asked = needed is not None and (needed.epsilon is None or needed.epsilon > epsilon)
    assert asked or epsilon > 1 or needed is None
    model.fit(*table(60, 3, "classes" not in model.get_params()))
    assert len(heard()) == asked
    for warning in heard():
        assert warning.filename == __file__
        assert str(needed) in str(warning.message) and f"epsilon={epsilon:g} and n_samples=60" in str(warning.message)


@pytest.mark.parametrize("model", CASES)
def test_what_a_plan_asks_for_is_enough_and_little_less_is_not(model):
    """Two digits are rounded up, so a tenth less is too little; samples have a rough search."""
    plan = clone(model).set_params(epsilon=0.05).plan(200, 3)
    if plan.needed is None:
        assert model.solver not in ("ssp", "objective", "output", "sgd", "moments")
        return
    slack = 0.8 if plan.releases[-1].sampling_rate < 1 else 0.89

    def asked(n_samples, epsilon):
        return clone(model).set_params(epsilon=epsilon).plan(int(n_samples), 3).needed

    assert asked(plan.needed.n_samples, 0.05).n_samples <= 1.1 * plan.needed.n_samples
    assert asked(slack * plan.needed.n_samples, 0.05).n_samples > slack * plan.needed.n_samples
    if plan.needed.epsilon is not None:
        assert asked(200, plan.needed.epsilon).epsilon <= 1.1 * plan.needed.epsilon
        assert asked(200, slack * plan.needed.epsilon).epsilon > slack * plan.needed.epsilon


@pytest.mark.slow
def test_fewer_records_than_a_batch_has_do_not_end_the_search():
    model = DPLogisticRegression(0.5, delta=1e-9, solver=SGD(n_steps=100, batch_size=1000))
    needed = model.plan(5000, 3).needed.n_samples
    assert 1000 < needed < 5000 and model.plan(needed, 3).needed.n_samples <= needed


SMALL = {"breast": (load_breast_cancer, (0.05, 0.1)), "wine": (load_wine, (0.1, 0.3)), "iris": (load_iris, (0.1, 0.2))}


@pytest.mark.parametrize("name", SMALL)
def test_constants_are_announced_on_real_tables(name, heard):
    """9 fits in 10 and more are no better than the larger class here, and hardly any at ten times the epsilon."""
    load, hopeless = SMALL[name]
    X, y = load(return_X_y=True)
    X = MinMaxScaler((-1, 1)).fit_transform(X)
    for epsilon in hopeless:
        model = fitted(DPLogisticRegression(epsilon, classes=np.unique(y)), X, y)
        assert heard() and model.score(X, y) < np.bincount(y).max() / len(y) + 0.05
    asked = len(heard())
    model = fitted(DPLogisticRegression(5.0, classes=np.unique(y)), X, y)
    assert len(heard()) == asked and model.score(X, y) > np.bincount(y).max() / len(y) + 0.1


def test_a_regression_that_can_only_be_the_mean_is_announced(heard):
    X, y = load_diabetes(return_X_y=True)
    model = fitted(DPLinearRegression(0.2, target_bounds=(0, 350)), X, y)
    assert len(heard()) == 1 and not model.coef_.any()


def test_it_comes_before_the_charge():
    X, y = table(50, 3, False)
    with PrivacyLedger(epsilon=1.0, delta=1e-3) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        with pytest.raises(LowSignalWarning):
            DPLogisticRegression(0.1, delta=1e-6, classes=[0, 1]).fit(X, y)
        assert not ledger.entries


BOOSTED = {
    "classes": (DPGradientBoostingClassifier(classes=[0, 1], feature_bounds=1.0), 1600),
    "many columns": (DPGradientBoostingClassifier(classes=[0, 1], feature_bounds=1.0), 2000),
    "numbers": (DPGradientBoostingRegressor(**BOUNDS, feature_bounds=1.0), 300),
    "learned": (DPGradientBoostingClassifier(classes=[0, 1]), 1600),
    "ignored": (DPGradientBoostingRegressor(**BOUNDS, schema={"c0": "ignore"}), 200),
}


@pytest.mark.parametrize("name", BOOSTED)
def test_boosting_warns_once_that_it_fits_no_trees_before_the_charge(name, heard):
    """The ratio is mu n / 2, of the second stage where columns are learned; the plan, the report and the warning state it."""
    model, least = BOOSTED[name]
    model = clone(model).set_params(epsilon=1.0, delta=1e-6)
    X, y = table(800, 50 if name == "many columns" else 3, name in ("numbers", "ignored"))
    X = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]) if name in ("learned", "ignored") else X
    mu = gaussian_mu(1.0, 1e-6)
    words = f"and trees need {least} for {2 if name == 'ignored' else X.shape[1]} columns"
    planned = model.plan(X).public["resolved"]["trees"]
    ratio = float(re.search(r"the signal-to-noise ratio is ([\d.]+), ", planned)[1])
    assert words in planned and planned.startswith("none")
    assert (
        0.94 * mu * 400 < ratio < 0.995 * mu * 400
        if name in ("learned", "ignored")
        else ratio == pytest.approx(mu * 400, rel=1e-3)
    )
    with PrivacyLedger(epsilon=1.0, delta=1e-3) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        with pytest.raises(LowSignalWarning):
            model.fit(X, y)
        assert not ledger.entries
    model.fit(X, y)
    (warning,) = (item for item in heard() if "No trees will be fitted" in str(item.message))
    assert warning.filename == __file__ and planned.partition("alone: ")[2] in str(warning.message)
    assert model.privacy_report_.public["resolved"]["trees"] == planned and model.trees_ is None


@pytest.mark.slow
def test_trees_and_a_choice_between_models_give_no_such_warning(heard):
    X, y = table(30_000, 2, False)
    model = DPGradientBoostingClassifier(feature_bounds=1.0, classes=[0, 1])
    assert "; the signal-to-noise ratio is " in model.plan(X).public["resolved"]["trees"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_rule, "N_TREES", 2)
        model.fit(X, y)
    DPTabularClassifier(feature_bounds=1.0, classes=[0, 1]).fit(X[:2000], y[:2000])
    assert model.trees_ is not None and not heard()


def test_a_pure_budget_has_no_trees(heard):
    X, y = table(30_000, 2, False)
    model = DPGradientBoostingClassifier(delta=0, feature_bounds=1.0, classes=[0, 1]).fit(X, y)
    assert model.trees_ is None and "delta=0" in model.plan(X).public["resolved"]["trees"]
    (warning,) = heard()
    assert "Use a positive delta" in str(warning.message)


@pytest.mark.exhaustive
def test_plans_audits_and_fits_without_noise_are_silent(heard):
    X, y = table(50, 3, False)
    DPLogisticRegression(0.01).plan(X)
    audit(DPLogisticRegression(0.1, classes=[0, 1]), X, y, n_runs=20)
    DPLogisticRegression(float("inf"), classes=[0, 1]).fit(X, y)
    assert not heard()
    assert DPLogisticRegression(float("inf")).plan(50, 3).needed is None


@pytest.mark.parametrize("model", CASES)
def test_numbers_a_shape_and_a_table_are_planned_alike(model):
    class Shaped:
        """A table of which names and types may be asked for, and nothing else read."""

        shape = (1000, 3)

        def __getattr__(self, name):
            raise (AttributeError if name in ("source", "columns", "dtypes") else AssertionError)(name)

    numbers, shape, of_table = (model.plan(*given) for given in ((1000, 3), ((1000, 3),), (Shaped(),)))
    assert str(numbers) == str(shape) and numbers.releases == of_table.releases and numbers.needed == of_table.needed
    assert dict(of_table.public) == {**numbers.public, "read": "the shape of the given table, and nothing else of it"}


@pytest.mark.parametrize("records", ([0.123, 0.456], (0.123, 0.456, 0.789), [[0.123, 0.456]], {"a": [0.123]}, {"a": 0.123}))
def test_records_given_for_a_number_are_not_quoted(records):
    with pytest.raises(TypeError, match=r"n_samples is a .* of length .*expected a number") as caught:
        DPLogisticRegression().plan(records)
    assert "123" not in str(caught.value)


def test_what_a_plan_asks_for_is_printed_and_written():
    plan = DPLogisticRegression(0.3).plan(569, 30)
    assert f"about {plan.needed.n_samples:,} records at this epsilon" in " ".join(str(plan).split())
    assert json.loads(plan.to_json())["needed"] == {"n_samples": plan.needed.n_samples, "epsilon": plan.needed.epsilon}
    assert isinstance(plan.needed.n_samples, int)


def test_classes_are_planned_as_they_are_known_or_said_to_be_assumed():
    def coordinates(plan):
        return int(plan.noise_size.split("over the ")[1].split()[0])

    two, three = DPLogisticRegression().plan(1000, 4), DPLogisticRegression(classes=["a", "b", "c"]).plan((1000, 4))
    assert coordinates(two) == 5 and coordinates(three) == 15
    assert "assumed" in two.public["n_classes"] and "n_classes" not in three.public
    assert "n_classes" not in DPLogisticRegression().plan(1000, 4, 2).public
    assert coordinates(DPLogisticRegression(class_weight={0: 1.0, 1: 2.0, 2: 1.0}).plan(1000, 4)) == 15
    schema = {"columns": {"a": {"kind": "number", "bounds": [0, 1]}}, "classes": ["x", "y", "z"]}
    assert "n_classes" not in DPAdditiveClassifier(schema=schema).plan(1000).public
    with pytest.raises(TypeError, match="n_classes=2; expected None"):
        DPLinearRegression(**BOUNDS).plan(1000, 4, 2)


@pytest.mark.parametrize("given", (((5,),), ((5, 2, 1),), ((1000, 3), 3), ("many", 3), (1000,), ((1000.0, 3),)))
@pytest.mark.parametrize("model", (DPLogisticRegression(), DPLinearRegression(**BOUNDS), DPMinimax(Instrumented)))
def test_a_shape_that_is_none_is_refused(model, given):
    with pytest.raises((TypeError, ValueError), match="expected"):
        model.plan(*given)


def test_groups_keep_their_shares():
    plan = DPGroupDROClassifier(0.1).plan(1000, 3, group_sizes=[900, 100])
    n = plan.needed.n_samples
    assert n > DPGroupDROClassifier(0.1).plan(1000, 3).needed.n_samples
    enough = DPGroupDROClassifier(0.1).plan(n, 3, group_sizes=[n - n // 10, n // 10]).needed
    assert enough.epsilon <= 0.102


def test_what_a_plan_asks_for_is_said_to_be_the_least():
    text = " ".join(str(DPLinearRegression(target_bounds=(0, 1)).plan(200, 10)).split())
    assert "To predict more than a constant, a model needs about" in text and "a good model needs several times as much" in text

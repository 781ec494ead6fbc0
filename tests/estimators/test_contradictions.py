"""Test warnings about released moments that contradict assumptions: they cost no budget and are silent otherwise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp import (
    DPAUCMaximizer,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPQuantileRegressor,
    DPRobustRegressor,
)
from skdp._data_validation import Facts
from skdp.estimators import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.estimators._contradictions import contradictions, surely
from skdp.privacy.errors import TableWarning
from skdp.solvers import ReleasedMoments

N = 20_000
NUMBERS = {
    DPLinearRegression: {"target_bounds": (-3, 4)},
    DPQuantileRegressor: {},
    DPRobustRegressor: {"loss": "absolute"},
}
KINDS = [DPLogisticRegression, DPLinearSVC, DPAUCMaximizer, *NUMBERS]


def raw(seed=0, width=1e7):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, size=(N, 2))
    y = 3 * X[:, 0] - 2 * X[:, 1] + rng.normal(0, 0.3, N)
    return X * [1, width], y


def told(kind, X, y, **given):
    """The model, and what its fit warned of, but for how an array without bounds is read."""
    target = y if kind in NUMBERS or kind is DPAdditiveRegressor else y > 0.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", TableWarning)
        model = fitted(kind(**{**NUMBERS.get(kind, {}), **given}), X, target)
    return model, [str(warning.message) for warning in caught], target


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_raw_columns_are_told_at_the_fit_and_at_the_prediction(kind):
    X, y = raw()
    frame = pd.DataFrame(X, columns=["share", "income"])
    model, said, target = told(kind, X, y)
    assert len(said) == 1 and "taken to lie in [-1, 1], but column 1 goes far beyond" in said[0]
    assert "feature_bounds" in said[0] and "0," not in said[0]
    with pytest.warns(UserWarning, match="rows that are more than 10 times as long as data_norm=1.414"):
        score = model.score(X, target)
    assert score > -20  # no R2 of -1e16: predictions stay in a range
    model, said, target = told(kind, frame, y, feature_bounds={"share": (0, 1), "income": (0, 1e7)})
    assert not said and model.score(frame, target) > 0.85
    model, said, target = told(kind, frame, y)
    assert not said and model.score(frame, target) > 0.85 and model.learnt_["income"]["high"] > 9e6


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", ("uniform", "signs", "one-hot", "standard"))
def test_tables_that_keep_to_the_assumptions_are_fitted_in_silence(kind, table):
    """Four tables within the limits, among them the corners; a false alarm has a probability below 1e-5 each."""
    rng = np.random.default_rng(1)
    X = {
        "uniform": lambda: rng.uniform(-1, 1, size=(N, 4)),
        "signs": lambda: rng.choice([-1.0, 1.0], size=(N, 4)),
        "one-hot": lambda: np.eye(4)[rng.choice(4, p=[0.9, 0.06, 0.03, 0.01], size=N)],
        "standard": lambda: rng.normal(size=(N, 4)),
    }[table]()
    y = X[:, 0] - X[:, 1] + 0.5 + rng.normal(0, 0.2, N)
    assert told(kind, X, y)[1] == [] and told(kind, X, y, epsilon=0.1)[1] == []


def test_rows_that_are_all_cut_are_told():
    X, y = raw()
    _, said, _ = told(DPLogisticRegression, X, y, data_norm=1.0)
    assert len(said) == 1 and "nearly all rows of X are cut to data_norm=1" in said[0]
    lengths = np.linalg.norm(X / [1, 1e7], axis=1, keepdims=True)
    assert told(DPLogisticRegression, X / [1, 1e7] / lengths, y, data_norm=1.0)[1] == []  # all are as long as that, and differ


def test_columns_and_targets_at_an_end_are_told():
    X, y = raw()
    _, said, _ = told(DPLogisticRegression, X, y, feature_bounds=(0, 1))
    assert len(said) == 1 and "column 1 are at the upper end of feature_bounds" in said[0]
    for bounds, end in (((-300, 1), "upper"), ((-3, 4000), "lower"), ((-100, -50), "upper")):
        _, said, _ = told(DPLinearRegression, X / [1, 1e7], y, target_bounds=bounds)
        assert len(said) == 1 and f"nearly all targets are at the {end} end" in said[0] and f"target_bounds={bounds}" in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind, given", ((DPAdditiveClassifier, {}), (DPAdditiveRegressor, {"target_bounds": (-4, 4)})))
def test_additive_models_tell_of_categories_and_bounds_that_do_not_fit(kind, given):
    rng = np.random.default_rng(0)
    town, age = rng.choice(["Bonn", "Kiel"], N), rng.uniform(20, 60, N)
    frame, y = pd.DataFrame({"town": town, "age": age}), (town == "Bonn") + 0.02 * age - 1.0

    def said(categories, bounds):
        columns = {"town": {"kind": "category", "categories": categories}, "age": {"kind": "number", "bounds": bounds}}
        return told(kind, frame, y, schema={"columns": columns}, **given)[1]

    assert said(["Bonn", "Kiel"], [0, 100]) == []
    assert [*map(len, (said(["bonn", "kiel"], [0, 100]), said(["Bonn", "Kiel"], [0, 1])))] == [1, 1]
    assert "values of column 'town' are none of its categories" in said(["bonn", "kiel"], [0, 100])[0]
    assert "values of column 'age' are at an end of its bounds" in said(["Bonn", "Kiel"], [0, 1])[0]


@pytest.mark.slow
def test_noise_speaks_as_rarely_as_stated():
    """100 000 releases of a table at its limits, with noise alone: the chance of ten warnings, at 1e-5 each, is below 1e-7."""
    rng, d = np.random.default_rng(0), 3
    task = DPLinearRegression(target_bounds=(-1, 1))._task()
    plan = task.plan_of(Facts(1000, d))
    alarms = 0
    for _ in range(100_000 // d):
        found = ReleasedMoments(
            *(np.zeros(d) + 0.3 * rng.normal(size=d), 0.3),
            *(np.ones(d) * 1.1 + 0.3 * rng.normal(size=d), 0.3),
            *(0.97 + 0.3 * rng.normal(), 0.3),
        )
        alarms += bool(list(contradictions(task, plan, found, None)))
    assert alarms < 10
    assert surely(1.0, 1) > 4 and surely(1.0, 1000) > surely(1.0, 1)


def test_a_warning_that_is_an_error_leaves_the_fitted_model():
    X, y = raw()
    model = DPLogisticRegression(classes=[False, True])
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="releases contradict"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TableWarning)
        fitted(model, X, y > 0.5)
    assert model.coef_.shape == (1, 2)

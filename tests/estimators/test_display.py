"""Test representations: they always show epsilon, and the budget that a fit has spent."""

import inspect

import numpy as np
import pytest
from products import GIVEN
from seeded import fitted
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp.estimators
import skdp.model_selection
import skdp.preprocessing
from skdp import DPLinearSVC, DPLogisticRegression
from skdp.preprocessing import BoundedScaler

EVERY = pytest.mark.parametrize("name", skdp.estimators.__all__)
X, Y = np.random.default_rng(0).normal(size=(600, 3)), np.arange(600) % 2
LONG = {"classes": [0, 1], "class_weight": {0: 1.0, 1: 3.0}, "clip_norm": 1.0, "data_norm": 2.0}


def made(name, **given):
    return getattr(skdp.estimators, name)(**GIVEN.get(name, {}), **given)


@EVERY
def test_epsilon_is_shown_where_it_has_its_default(name):
    for model in (made(name), made(name, epsilon=1.0), clone(made(name))):
        assert "epsilon=1.0" in repr(model)
        assert "epsilon=1.0" in model._repr_html_()
        for nested in (make_pipeline(BoundedScaler((-1, 1)), model), GridSearchCV(model, {})):
            assert "epsilon=1.0" in repr(nested)
            assert "epsilon=1.0" in nested._repr_html_()


def test_a_diagram_with_folded_parameters_has_the_budget_below():
    below = DPLogisticRegression(0.25)._repr_html_().rpartition("<p ")[2]
    assert "epsilon = 0.25<" in below and "epsilon = 0.25" in DPLogisticRegression(0.25)._repr_mimebundle_()["text/html"]
    assert "<b>" not in DPLogisticRegression("<b>")._repr_html_().rpartition("<p ")[2]


@pytest.mark.parametrize("name", (*skdp.estimators.__all__, "DPGridSearchCV", "DPRandomizedSearchCV", "LearnedSchema"))
def test_what_a_fit_sets_says_before_that_there_is_none(name):
    """As scikit-learn's methods do; an object of another class would be blamed otherwise."""
    kind = getattr(skdp.preprocessing if name == "LearnedSchema" else skdp.model_selection, name, None)
    model = made(name) if kind is None else kind() if name == "LearnedSchema" else kind(DPLogisticRegression(), {})
    methods = [call for call in ("summary", "confidence_intervals") if hasattr(type(model), call)]
    for call in ("privacy_report_", "privacy_spent_", *methods):
        with pytest.raises(NotFittedError, match=f"^This {name} instance is not fitted yet"):
            getattr(model, call)()
        assert hasattr(model, call) == (call in methods)


@EVERY
def test_what_needs_a_fit_says_so_before_it_looks_at_a_table(name):
    model = made(name)
    for method in ("predict", "predict_proba", "decision_function", "explain", "interaction", "bands", "score"):
        if hasattr(model, method):
            with pytest.raises(NotFittedError, match=f"^This {name} instance is not fitted yet"):
                getattr(model, method)(*{"bands": (), "interaction": ("a", "b"), "score": (X, Y)}.get(method, (X,)))


@EVERY
def test_other_defaults_are_not_shown(name):
    assert "random_state" not in repr(made(name)) and "delta" not in repr(made(name))


@EVERY
def test_help_shows_the_default(name):
    kind = getattr(skdp.estimators, name)
    assert inspect.signature(kind).parameters["epsilon"].default == 1.0
    assert list(inspect.signature(kind).parameters) == list(inspect.signature(kind.__init__).parameters)[1:]
    assert "epsilon" not in GIVEN.get(name, {}) and made(name).epsilon == 1.0


def test_long_ones_are_wrapped_and_cut_as_scikit_learn_does():
    model = make_pipeline(BoundedScaler((-1, 1)), DPLogisticRegression(**LONG))
    lines = repr(model).splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 80
    assert "..." in model[-1].__repr__(N_CHAR_MAX=30) and len("".join(model[-1].__repr__(N_CHAR_MAX=30).split())) <= 80
    with config_context(print_changed_only=False):
        assert "delta=None" in repr(model[-1])


def test_a_fitted_one_shows_what_was_spent():
    model = DPLogisticRegression(epsilon=0.5, delta=1e-5)
    assert str(model) == repr(model) and "Spent" not in model._repr_html_()
    model.fit(X, Y)
    spent = f"Spent epsilon = {model.privacy_spent_.epsilon:.6g}, delta = 1e-05 (replace_one)"
    assert str(model).splitlines() == [repr(model), spent]
    bundle = model._repr_mimebundle_()
    assert all(spent in text for text in (model._repr_html_(), bundle["text/html"], bundle["text/plain"]))
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_") and set(model._repr_mimebundle_()) == {"text/plain"}


@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
def test_one_without_a_guarantee_says_so():
    for model in (DPLinearSVC(float("inf")).fit(X, Y), fitted(DPLinearSVC(), X, Y)):
        assert "Not private: " in str(model) and "Spent" not in str(model)
        assert "Not private: " in model._repr_html_()


def test_showing_changes_nothing():
    model = DPLogisticRegression(**LONG).fit(X, Y)
    before = dict(vars(model))
    str(model), repr(model), model._repr_html_(), model._repr_mimebundle_()
    assert vars(model) == before
    assert clone(model).get_params() == model.get_params()


@EVERY
@pytest.mark.parametrize("parameter, advice", (("ledger", "with PrivacyLedger"), ("accountant", "with PrivacyLedger")))
def test_an_account_as_parameter_is_answered_with_the_ledger(name, parameter, advice):
    with pytest.raises(TypeError, match=f"{name} does not take {parameter}: .*{advice}"):
        made(name, **{parameter: None})
    with pytest.raises(TypeError, match=advice):
        made(name).set_params(**{parameter: 1})


@EVERY
def test_a_schema_is_taken_or_answered_with_what_takes_it(name):
    if "schema" in made(name).get_params():
        assert made(name, schema="table.json").schema == "table.json"
    else:
        with pytest.raises(TypeError, match=f"{name} does not take schema: .*from_schema"):
            made(name, schema={})

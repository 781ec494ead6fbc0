"""The laws of every estimator: each law with each public estimator, so that a new one is tested by being listed in the package.

`tests/test_no_side_door.py` and `tests/solvers/test_every_solver.py` go through the solvers, too; `test_scikit_learn.py` has
scikit-learn's own checks.
"""

import inspect
import json
import math
import pickle
import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from products import GIVEN, UNLABELLED, kinds_of
from scipy import sparse
from seeded import fitted
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

import skdp.estimators
from skdp import DPLogisticRegression, NotPrivateWarning, PrivacyLedger, load_model, save_model
from skdp._commands._estimator_names import ELSEWHERE, ESTIMATORS, settings, unfitted
from skdp._validation import shown
from skdp.estimators.boosting import _rule
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV
from skdp.preprocessing import Schema
from skdp.privacy.budget import Budget
from skdp.privacy.oracle import Oracle
from skdp.privacy.report.statement import PrivacyReport
from skdp.solvers import GradientDescent
from skdp.solvers.adaptive import rescaled_gd, standardized_gd
from skdp.solvers.first_order import frank_wolfe

NAMES = list(skdp.estimators.__all__)
EVERY = pytest.mark.parametrize("name", NAMES)
N, COLUMNS = 400, list("abc")
RNG = np.random.default_rng(0)
X = RNG.integers(-8, 9, size=(N, 3)) / 8  # exact in float32
SECRET = 31415.9265
LABELS, TARGETS = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)], (X[:, 0] + X[:, 1] / 4).clip(-1, 1)
FRAME = pd.DataFrame(X, columns=COLUMNS)


@pytest.fixture(autouse=True, scope="module")
def few_trees_and_steps():
    """Twenty trees, and without noise twenty steps, show what a thousand do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rule, "N_TREES", 20)
        for solver in (standardized_gd, rescaled_gd, frank_wolfe):
            patch.setattr(solver, "NOISELESS", 20)
        yield


def made(name, **given):
    """An estimator with public bounds of the features, and with what it cannot fit without."""
    kind = getattr(skdp.estimators, name)
    model = kind(**{**GIVEN.get(name, {}), **given})
    return model.set_params(feature_bounds=1.0) if "feature_bounds" in model.get_params() else model


def target(name):
    """Labels for a classifier, and for what ranks; numbers for a regressor."""
    return LABELS if is_classifier(made(name)) or "classes" in made(name).get_params() else TARGETS


@cache
def fit_of(name):
    """A fit that tests read and never change."""
    return fitted(made(name), FRAME, target(name))


def attributes(model):
    """Names of what a fit has set."""
    return {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}


def released(model):
    """What a model says of the records that it was fitted to, as numbers; the solution of a saddle problem."""
    table = FRAME if hasattr(model, "feature_names_in_") else X
    method = next((name for name in ("decision_function", "transform", "predict") if hasattr(model, name)), None)
    return getattr(model, method)(table) if method else model.primal_


@pytest.fixture
def asked(monkeypatch):
    """Queries that an oracle was asked."""
    queries, ask = [], Oracle.ask
    monkeypatch.setattr(Oracle, "ask", lambda self, query: queries.append(query) or ask(self, query))
    return queries


@EVERY
def test_parameters_are_those_of_the_constructor_and_a_clone_has_them_alone(name):
    model = fit_of(name)
    assert list(model.get_params(deep=False)) == sorted(model.get_params(deep=False))
    copy = clone(model)
    assert copy.get_params() == model.get_params() and repr(copy) == repr(model) and not attributes(copy)
    assert copy.set_params(epsilon=3.0, delta=1e-7).get_params() == {**model.get_params(), "epsilon": 3.0, "delta": 1e-7}
    if "solver" in copy.get_params():
        copy.set_params(solver=GradientDescent(5)).set_params(solver__n_steps=7)
        assert clone(copy).get_params()["solver__n_steps"] == 7


@EVERY
def test_help_describes_every_parameter_and_attribute(name):
    """Entries that bases share come in at import, where the lint of sources does not see them."""
    validate = pytest.importorskip("numpydoc.validate").validate(f"skdp.estimators.{name}")
    assert [error for error in validate["errors"] if error[0].startswith("PR") and error[0] != "PR08"] == []
    described = pytest.importorskip("numpydoc.docscrape").ClassDoc(getattr(skdp.estimators, name))
    assert all(entry.type and entry.desc for entry in described["Attributes"])


@EVERY
def test_names_and_numbers_of_columns_are_those_of_the_table(name):
    model = fit_of(name)
    assert model.feature_names_in_.tolist() == COLUMNS and model.n_features_in_ == 3
    assert model.privacy_report_.public["n_features"] == 3 and model.privacy_report_.public["n_samples"] == N
    methods = ("predict", "predict_proba", "decision_function", "transform")
    for method in (name for name in methods if hasattr(model, name)):
        for frame in (FRAME[["c", "a", "b"]], FRAME.set_axis(["x", "b", "c"], axis=1), FRAME[["a", "b"]]):
            with pytest.raises(ValueError, match="feature names"):
                getattr(model, method)(frame)
        with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features as input"):
            getattr(model, method)(X[:, :2])
        with pytest.warns(UserWarning, match="no feature names, but fit had them"):
            getattr(model, method)(X)


@EVERY
def test_a_second_fit_forgets_the_first_and_a_failed_one_changes_nothing(name):
    model, y = fitted(made(name), FRAME, target(name)), target(name)
    before = dict(vars(model))
    for wrong in ((FRAME, y[:-1]), (FRAME.assign(a=np.nan), y), (FRAME[:0], y[:0]))[name in UNLABELLED :]:
        with pytest.raises(ValueError):
            model.fit(*wrong)
        assert vars(model) == before
    fitted(model, X[:, :2], y)
    assert model.n_features_in_ == 2 and not hasattr(model, "feature_names_in_")
    assert set(attributes(model)) == set(attributes(fitted(made(name), X[:, :2], y)))


@EVERY
def test_noise_repeats_in_blocks_of_the_same_seed_and_for_no_random_state(name):
    np.testing.assert_array_equal(released(fitted(made(name), FRAME, target(name))), released(fit_of(name)))
    others = [
        fitted(made(name), FRAME, target(name), seed=1),
        *(made(name, random_state=0).fit(FRAME, target(name)) for _ in "ab"),
    ]
    assert len({released(model).tobytes() for model in (fit_of(name), *others)}) == 4


@EVERY
def test_pickles_and_files_give_the_same_model(name, tmp_path):
    model = fit_of(name)
    restored = [pickle.loads(pickle.dumps(model))]
    if name != "DPMinimax":  # whose problem is a class of the user's
        save_model(model, tmp_path / "model.skops")
        restored.append(load_model(tmp_path / "model.skops"))
    for other in restored:
        np.testing.assert_array_equal(released(other), released(model))
        assert other.privacy_report_ == model.privacy_report_ and str(other) == str(model)


@EVERY
def test_a_plan_states_what_the_fit_states(name):
    report = fit_of(name).privacy_report_
    plan = made(name).plan(FRAME.shape)
    assert isinstance(plan, PrivacyReport) and plan.planned and not report.planned
    assert (plan.budget, plan.spent, plan.releases, plan.noise_size) == (
        report.budget,
        report.spent,
        report.releases,
        report.noise_size,
    )
    assert plan.public["resolved"] == report.public["resolved"] and plan.solver == report.solver


@EVERY
def test_a_report_says_the_same_in_all_its_forms(name):
    model = fit_of(name)
    report, spent = model.privacy_report_, model.privacy_spent_
    content = json.loads(report.to_json())
    assert content == report.to_dict() and content["reproducible_noise"] is True and content["planned"] is False
    assert content["spent"] == {"epsilon": spent.epsilon, "delta": spent.delta}
    assert 0.9 < spent.epsilon <= 1.0 and spent.delta <= 1 / N**2
    assert content["public"]["n_releases"] == sum(line["count"] for line in content["releases"])
    text, page = " ".join(str(report).split()), report.to_html()
    for line in report.releases:
        assert line.query in text and line.query in page
    assert "epsilon" in text and repr(SECRET) not in text


@EVERY
def test_a_fit_is_charged_once(name, tmp_path):
    with PrivacyLedger(tmp_path / "ledger", epsilon=5.0, delta=1e-3) as ledger:
        model = made(name).fit(FRAME, target(name))
    (entry,) = ledger.entries
    assert (entry.spending.epsilon, entry.spending.delta) == (model.privacy_spent_.epsilon, model.privacy_spent_.delta)


OPEN = {("DPMinimax", "no labels")}  # a problem may have no targets
OF_LABELS = ("records without labels", "a label that is none", "three axes of labels", "no labels")
OPEN |= {(name, case) for name in UNLABELLED for case in OF_LABELS}  # y is not read


def bad_tables(y):
    """Tables and labels that no estimator takes, with the error; the private numbers in them are one secret."""
    cell = FRAME.copy()
    cell.iloc[7, 1] = SECRET * math.inf
    odd = y.astype(object)
    odd[3] = {"a": SECRET}
    return {
        "an infinite cell": (cell, y),
        "one column": (SECRET * X[:, 0], y),
        "three axes": (SECRET * X[None], y),
        "records without labels": (SECRET * X, y[:9]),
        "no records": (X[:0], y[:0]),
        "one record": (SECRET * X[:1], y[:1]),
        "no columns": (X[:, :0], y),
        "no table": (SECRET, y),
        "complex numbers": (X + SECRET * 1j, y),
        "a label that is none": (X, odd),
        "three axes of labels": (X, np.stack([y, y])[None]),
        "no labels": (X, None),
    }


@pytest.mark.parametrize(
    "name, case", [(name, case) for name in NAMES for case in bad_tables(TARGETS) if (name, case) not in OPEN]
)
def test_bad_tables_are_refused_before_the_charge_and_not_quoted(name, case, tmp_path, asked):
    table = bad_tables(target(name))[case]
    with PrivacyLedger(tmp_path / "ledger", epsilon=5.0, delta=1e-3) as ledger, pytest.raises((ValueError, TypeError)) as error:
        made(name).fit(*table)
    link = error.value
    while link is not None:
        assert str(link) and "3141" not in str(link)
        link = link.__context__ or link.__cause__
    assert not asked and not ledger.entries


WRONG = {
    "epsilon": (0, -1.0, math.nan, "1", None),
    "delta": (-1e-9, 1.0, math.nan, "1"),
    "privacy_unit": ("persons", None, 1),
    "adjacency": ("add", None, 1),
    "random_state": ("seed",),
    "solver": ("unheard_of", 1),
    "feature_bounds": ((1, 0), math.nan, "wide"),
    "data_norm": (0, -1.0, math.nan, "1"),
    "alpha": (-1.0, math.nan, "1"),
    "clip_norm": (0, -1.0, "1"),
    "target_bounds": ((1, 0), (0, math.inf), 3),
    "link": ("logit", None, 1),
    "max_exposure": (0, -1.0, "1"),
    "max_sample_weight": (0, -1.0, "1"),
    "fit_intercept": ("yes",),
    "verbose": ("loud",),
}


@pytest.mark.parametrize("name, parameter", [(name, one) for name in NAMES for one in WRONG if one in made(name).get_params()])
def test_wrong_parameters_are_named_before_the_charge(name, parameter, tmp_path, asked):
    for value in WRONG[parameter]:
        with PrivacyLedger(tmp_path / "ledger", epsilon=5.0, delta=1e-3) as ledger:
            with pytest.raises((ValueError, TypeError), match=parameter):
                made(name).set_params(**{parameter: value}).fit(X, target(name))
        assert not asked and not ledger.entries


WEIGHTED = (
    *("DPAdditiveClassifier", "DPAdditiveRegressor", "DPKMeans", "DPLinearRegression", "DPLinearSVC", "DPLogisticRegression"),
)
GROUPED = ("DPGroupDROClassifier",)
REFUSED = ("warm_start", "max_iter", "tol", "C", "penalty", "n_jobs", "ledger", "accountant", "bounds")


@EVERY
def test_what_cannot_exist_is_refused_with_the_reason(name):
    for parameter in REFUSED:
        for call in (lambda given: made(name, **given), lambda given: made(name).set_params(**given)):
            with pytest.raises(TypeError, match=f"^{name} does not take {parameter}: .{{20}}"):
                call({parameter: 1})
    with pytest.raises(AttributeError, match=f"{name} has no partial_fit: every call would be one more private fit"):
        made(name).partial_fit(X, target(name))


@EVERY
def test_further_inputs_of_a_fit_change_the_model_or_are_refused_before_the_charge(name, tmp_path, asked):
    """None of them is ignored."""
    weighted = made(name, max_sample_weight=2.0) if "max_sample_weight" in made(name).get_params() else made(name)
    assert (weighted.get_params().get("max_sample_weight") is not None) == (name in WEIGHTED)
    for word, model, value, other, taking in (
        ("sample_weight", weighted, 2.0 * (X[:, 1] > 0), 2.0 * (X[:, 1] <= 0), WEIGHTED),
        ("groups", made(name), np.arange(N) % 3, np.arange(N) < N // 5, GROUPED),
        ("sample_wieght", made(name), np.ones(N), None, ()),
    ):
        if name in taking:
            fits = [released(fitted(clone(model), X, target(name), **{word: given})) for given in (value, other)]
            assert not np.array_equal(*fits)
            continue
        asked.clear()
        with PrivacyLedger(tmp_path / word, epsilon=5.0, delta=1e-3) as ledger, pytest.raises(TypeError, match=word):
            model.fit(X, target(name), **{word: value})
        assert not asked and not ledger.entries


STORAGES = {
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "list": lambda X: X.tolist(),
    "polars": lambda X: pl.DataFrame(X, schema=COLUMNS),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
}


def bounded():
    """Estimators with bounds of columns and, where they have this parameter, of rows."""
    for name in NAMES:
        yield pytest.param(name, {}, id=f"{name}-columns")
        if "data_norm" in made(name).get_params():
            without = {"feature_bounds": None} if "feature_bounds" in made(name).get_params() else {}
            yield pytest.param(name, {**without, "data_norm": 2.0}, id=f"{name}-rows")


@pytest.mark.parametrize("name, bounds", list(bounded()))
def test_every_storage_gives_the_same_model(name, bounds):
    """Up to rounding, which is another one for sums over columns. There are three classes where the estimator takes them."""
    model = made(name).set_params(**bounds)
    several = bounds and any("multinomial" in kind for kind in kinds_of(name))
    y = np.arange(N) % 3 if several else target(name)
    expected = released(fitted(model, X, y))
    for kind, stored in STORAGES.items():
        if sparse.issparse(stored(X)) and not model.__sklearn_tags__().input_tags.sparse:
            with pytest.raises(TypeError, match=r"[sS]parse"):
                clone(model).fit(stored(X), y)
            continue
        other = fitted(clone(model), stored(X), y)
        assert hasattr(other, "feature_names_in_") == (kind == "polars")
        np.testing.assert_allclose(released(other), expected, atol=1e-5)


@EVERY
def test_its_methods_say_which_tables_they_take(name):
    """Sparse tables are tried above."""
    kind, model = getattr(skdp.estimators, name), made(name)
    texts = [method.__doc__ or "" for method in vars(kind).values() if inspect.isfunction(method)]
    assert not [text for text in texts if re.search(r"\{\w+\}", text)]
    refused = not model.__sklearn_tags__().input_tags.sparse
    assert ("Sparse tables are refused" in kind.fit.__doc__) is refused is ("CSR" not in kind.fit.__doc__)
    assert ("missing cells" in kind.fit.__doc__) is ("schema" in model.get_params())
    if "schema" not in model.get_params():
        with pytest.raises(ValueError, match="cannot be read"):
            model.fit(FRAME.assign(d="x"), target(name))


@EVERY
def test_searches_of_scikit_learn_take_it(name):
    model = made(name)
    scoring = None if hasattr(model, "score") else lambda model, X, y: -abs(released(model)).sum()
    search = fitted(GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=2, scoring=scoring), X, target(name))
    assert search.best_estimator_.privacy_spent_.epsilon <= search.best_params_["epsilon"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@EVERY
def test_a_fit_changes_neither_the_table_nor_the_parameters(name):
    table, y = X.copy(), target(name).copy()
    table.flags.writeable = y.flags.writeable = False
    model = made(name)
    before = model.get_params()
    fitted(model, table, y)
    assert model.get_params() == before
    np.testing.assert_array_equal(table, X)


@EVERY
def test_without_noise_it_warns_and_guarantees_nothing(name):
    with pytest.warns(NotPrivateWarning, match="not private"):
        model = made(name, epsilon=math.inf).fit(X, target(name))
    assert model.privacy_spent_.epsilon == math.inf and json.loads(model.privacy_report_.to_json())["private"] is False
    assert all(line.noise_multiplier == 0 for line in model.privacy_report_.releases)
    assert "NONE" in str(model.privacy_report_) and json.loads(model.privacy_report_.to_json())["epsilon"] == "inf"


@EVERY
def test_predictions_agree_with_scores_and_probabilities(name):
    model = fit_of(name)
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(model.predict(FRAME), model.classes_[(model.decision_function(FRAME) > 0).astype(int)])
        assert model.classes_.tolist() == ["no", "yes"]
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(FRAME)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(FRAME))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(FRAME)), shares, rtol=1e-9)


OPTIONS = {  # another value than the default of every parameter
    "adjacency": "zero_out",
    "privacy_unit": "person",
    "delta": 1e-7,
    "epsilon": 2.5,
    "random_state": 7,
    "verbose": 2,
    "feature_bounds": 3.0,
    "schema": {"columns": {name: {"kind": "number", "bounds": [-1, 1]} for name in COLUMNS}},
    "alpha": 0.375,
    "data_norm": 1.5,
    "solver": "gd",
    "clip_norm": 0.625,
    "classes": ["no", "yes"],
    "target_bounds": (-3.0, 3.0),
    "link": "log_count",
    "max_exposure": 2.5,
    "fit_intercept": False,
    "intercept_scaling": 0.25,
    "class_weight": {"yes": 2.5},
    "max_sample_weight": 2.5,
    "l1_ratio": 0.5,
    "inference": True,
    "loss": "huber",
    "interactions": [(0, 1)],
    "knots": 5,
    "monotone": {0: 1},
    "constraint": "box",
    "radius": 0.75,
    "threshold": 0.5,
    "class_balance": 0.5,
    "hidden_layer_sizes": (4,),
    "positive_rate": 0.25,
    "scorer": "mlp",
    "quantile": 0.75,
    "n_components": 2,
    "n_clusters": 2,
    "scale": False,
    "whiten": True,
}
OTHER_VALUES = {  # where an estimator takes another one
    ("DPLinearSVC", "loss"): "squared_hinge",
    ("DPAUCMaximizer", "solver"): "sgda",
    ("DPGroupDROClassifier", "solver"): "privatediff",
    ("DPMinimax", "solver"): "privatediff",
    ("DPConstrainedClassifier", "fit_intercept"): True,
    ("DPConstrainedRegression", "fit_intercept"): True,
}


def option_cases():
    for name in NAMES:
        for option in made(name).get_params(deep=False):
            if option != "saddle":  # which DPMinimax cannot be without
                yield name, option


@pytest.mark.parametrize("name, option", list(option_cases()))
def test_every_option_is_known_wherever_options_are(name, option):
    """To the constructor, copies, plans, and all forms of the report. An option without a value here fails."""
    value = OTHER_VALUES.get((name, option), OPTIONS[option])
    given = {
        "schema": {"feature_bounds": None},
        "class_weight": {"classes": ["no", "yes"]},
        "link": {"target_bounds": (0.0, 3.0)},
    }
    given = given.get(option, {})
    if (name, option) == ("DPQuantileRegressor", "l1_ratio"):  # which needs the unit of y
        given = {"target_bounds": (-3.0, 3.0)}
    model = made(name).set_params(**given, **{option: value})
    assert clone(model).get_params()[option] == value and f"{option}=" in repr(model)
    plan = model.plan(FRAME.shape)
    listed = plan.to_dict()["public"]
    if option in ("random_state", "schema"):  # a seed that is no public fact of the fit; a schema is listed by its columns
        return
    assert listed["parameters"][option] == repr(value)
    assert repr(value) in plan.to_html().replace("&#x27;", "'")


COMMANDED = {kind.__name__: (name, labels) for name, kinds in ESTIMATORS.items() for labels, kind in kinds.items()}
MEANT = {  # what the command line cannot do without, in units of the target
    "DPRobustRegressor": ["threshold=300"],
    "DPConstrainedRegression": ["radius=3000"],
    "DPConstrainedClassifier": ["fit_intercept=true"],
}


def test_the_command_line_has_every_estimator():
    # which need code of the user's, and rows of counts, or predict no target
    assert {*COMMANDED} == {*NAMES} - {"DPMinimax", "DPMultinomialNB", *UNLABELLED}


@pytest.mark.parametrize("name", COMMANDED)
def test_every_option_is_set_by_the_command_line(name):
    """With ``--set``, or its error names what sets the option instead."""
    command, labels = COMMANDED[name]
    target = {"target": "y", **({"classes": ["no", "yes"]} if labels else {"target_bounds": (-3.0, 3.0)})}
    for option in made(name).get_params(deep=False):
        value = OTHER_VALUES.get((name, option), OPTIONS[option])
        words = [f"{option}={json.dumps(value)}"]
        if option in ELSEWHERE:
            with pytest.raises(ValueError, match=re.escape(f"{option} is set by {ELSEWHERE[option]}; expected it only there")):
                settings(words)
            continue
        words += [word for word in MEANT.get(name, ()) if not word.startswith(option)]
        model = unfitted(Schema.read({**OPTIONS["schema"], **target}), command, settings(words), solver="auto")[-1]
        assert type(model).__name__ == name and json.dumps(model.get_params()[option]) == json.dumps(value)


OF_SEARCHES = {  # another value than the default of every parameter of a search
    **{option: OPTIONS[option] for option in ("adjacency", "delta", "epsilon", "random_state")},
    "estimator": DPLogisticRegression(classes=["no", "yes"], feature_bounds=1.0),
    "param_grid": {"alpha": [0.25, 0.5]},
    "param_distributions": {"alpha": [0.25, 0.5, 1.0]},
    "n_iter": 2,
    "scoring": "accuracy",
    "mechanism": "random_stopping",
    "mean_trials": 7.5,
    "refit": True,
    "validation_size": 0.25,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", (DPGridSearchCV, DPRandomizedSearchCV))
def test_every_option_of_a_search_is_known_wherever_options_are(kind):
    """To the constructor, copies, plans, and all forms of the report. An option without a value here fails."""
    given = {option: OF_SEARCHES[option] for option in inspect.signature(kind).parameters}
    search = kind(**given)
    copy = clone(search)
    assert repr(copy.get_params()) == repr(search.get_params()) and copy.plan(N).budget == Budget(2.5, 1e-7, "zero_out")
    assert all(f"{option}=" in repr(search) for option in given)
    report = fitted(copy, FRAME, LABELS).privacy_report_
    listed, page = report.to_dict()["public"]["parameters"], report.to_html().replace("&#x27;", "'")
    for option in given.keys() - {"random_state"}:  # a seed that is no public fact of the search
        assert listed[option] == shown(given[option]) and listed[option] in page

"""Test additive models: public functions of the columns, then an ordinary fit."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import seeded
from people import BOUNDS, COLUMNS, GIVEN, SCHEMA, fitted, numbers, people
from scipy import sparse
from sklearn.base import clone

from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPLinearRegression, DPLogisticRegression, PrivacyLedger
from skdp.estimators.additive import _task
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.privacy import NotPrivateWarning
from skdp.solvers import StandardizedGradientDescent, WhitenedGradientDescent

both = pytest.mark.parametrize("kind", GIVEN)


@pytest.mark.parametrize(
    "kind, plain, solver",
    [
        (DPAdditiveClassifier, DPLogisticRegression, StandardizedGradientDescent(20)),
        (DPAdditiveRegressor, DPLinearRegression, WhitenedGradientDescent(10)),
    ],
)
def test_a_fit_is_the_ordinary_one_on_the_functions(kind, plain, solver, rng, monkeypatch):
    """But for the smoothing of the released functions, which is post-processing."""
    monkeypatch.setattr(_task, "smoothed", lambda basis, result: result)
    X, y = numbers(rng)
    model = fitted(kind, X, y, feature_bounds=BOUNDS, solver=solver, interactions=[(0, 1)], knots=3)
    basis = AdditiveBasis(model.basis_.facts, 3, [("x0", "x1")], dyadic=kind is DPAdditiveClassifier)
    table = basis.transform(X)
    other = seeded.fitted(plain(**GIVEN[kind], solver=solver, data_norm=math.sqrt(3)), table, y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    np.testing.assert_allclose(model.predict(X), other.predict(table), rtol=1e-12)  # column by column, not as a product
    assert [str(line) for line in model.privacy_report_.releases] == [str(line) for line in other.privacy_report_.releases]


@pytest.mark.each_value
@both
@pytest.mark.parametrize("knots", ("auto", 0, 5))
def test_nothing_public_depends_on_the_records(kind, knots, rng):
    """Knots, bounds, categories, width and schedule of quite different tables of one shape are the same."""
    models = []
    for scale in (1.0, 1e-6, 1e9):
        frame = people(rng).assign(age=scale * rng.normal(size=400), town=rng.choice(["a", "x"], 400))
        y = (frame["age"] > 0).astype(int)
        models.append(
            fitted(kind, frame, y, schema={"columns": COLUMNS}, knots=knots, classes=[0, 1])
            if "classes" in kind().get_params()
            else fitted(kind, frame, y, schema={"columns": COLUMNS}, knots=knots)
        )
    first = models[0]
    for model in models[1:]:
        assert model.basis_ == first.basis_ and model.basis_.terms == first.basis_.terms
        np.testing.assert_array_equal(model.basis_.knots, first.basis_.knots)
        assert [str(line) for line in model.privacy_report_.releases] == [str(line) for line in first.privacy_report_.releases]
        assert model.privacy_report_.public == first.privacy_report_.public


@pytest.mark.parametrize(
    "s, m", [(5.99, 0), (6.0, 4), (102, 4), (295, 5), (480, 5), (826, 6), (933, 7), (1183, 7), (2639, 9), (3659, 11), (1e9, 16)]
)
def test_the_rule_for_classes(s, m):
    """The examples of the study that the rule comes from."""
    basis = AdditiveBasis(Schema.read({"columns": {name: {"kind": "number", "bounds": [0, 1]} for name in "abc"}}), 0)
    assert DPAdditiveClassifier()._task()._n_intervals(3 * s, basis) == m
    assert DPAdditiveClassifier()._task()._n_intervals(math.inf, basis) == 16


@pytest.mark.parametrize("m", (4, 8, 16))
def test_the_rule_for_numbers(m):
    """The most intervals m for which the signal-to-noise ratio per function is at least 13 m / 4."""
    basis = AdditiveBasis(Schema.read({"columns": COLUMNS}), 0, dyadic=False)
    size = 2 * (1 + m + 1) + 4
    model = DPAdditiveRegressor(target_bounds=(0, 1))
    assert model._task()._n_intervals(13 * m / 4 * size * (1 + 1e-9), basis) == m
    assert model._task()._n_intervals(13 * m / 4 * size * (1 - 1e-9), basis) == {4: 0, 8: 4, 16: 8}[m]


def test_only_numbers_are_expanded(rng):
    columns = {"town": COLUMNS["town"]}
    model = fitted(DPAdditiveClassifier, people(rng), np.arange(400) % 2, schema={"columns": columns})
    assert model.basis_.n_intervals == 0 and model.coef_.shape == (1, 4)


@pytest.mark.slow
@both
def test_bounds_in_all_forms_are_the_same(kind, rng):
    X, _ = numbers(rng)
    y, frame = np.arange(400) % 2, pd.DataFrame(X, columns=["a", "b"])
    forms = [
        fitted(kind, X, y, feature_bounds=[(-100, 100), (-100, 100)]),
        fitted(kind, X, y, feature_bounds=100),
        fitted(kind, X, y, feature_bounds=(-100.0, 100.0)),
        fitted(kind, frame, y, feature_bounds={"b": (-100, 100), "a": (-100, 100)}),
        fitted(kind, frame[["b", "a"]][["a", "b"]], y, feature_bounds=np.array([[-100.0, 100.0]] * 2)),
        fitted(kind, frame, y, schema={"columns": {name: {"kind": "number", "bounds": [-100, 100]} for name in "ab"}}),
    ]
    for model in forms:
        np.testing.assert_array_equal(model.coef_, forms[0].coef_)
        assert model.n_features_in_ == 2
    np.testing.assert_array_equal(fitted(kind, X / 100, y).coef_, forms[0].coef_)
    by_name = fitted(kind, frame, y, feature_bounds={"b": (-2, 2), "a": (0, 100)})
    np.testing.assert_array_equal(by_name.coef_, fitted(kind, X, y, feature_bounds=BOUNDS).coef_)
    assert forms[3].feature_names_in_.tolist() == ["a", "b"]


@both
def test_values_outside_the_bounds_are_those_at_the_bounds_and_unknown_categories_are_others(kind, rng):
    frame = people(rng)
    model = fitted(kind, frame, np.arange(400) % 2, schema={"columns": COLUMNS})
    rows = frame.head(3)
    for one, other in (
        ({"age": 1e300}, {"age": 100.0}),
        ({"age": -1.0}, {"age": 0.0}),
        ({"income": np.nan}, {"income": 0.0}),
        ({"town": "Paris"}, {"town": None}),
        ({"town": "Paris"}, {"town": "other"}),
    ):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X has what no training record had")
            np.testing.assert_array_equal(model.predict(rows.assign(**one)), model.predict(rows.assign(**other)))
    np.testing.assert_array_equal(model.predict(rows[["income", "town", "age"]]), model.predict(rows))


@both
def test_a_gap_is_refused_before_anything_is_paid_for(kind, rng):
    frame = people(rng)
    model = kind(schema={"columns": COLUMNS}, **GIVEN[kind])
    y = np.arange(400) % 2
    with PrivacyLedger(epsilon=10, delta=1e-4) as ledger:
        for broken, message in (
            (frame.assign(age=frame["age"].where(frame["age"] < 50)), "contains NaN"),
            (frame.assign(age=np.inf), "infinity"),
            (frame.assign(age="77.25 years"), "cannot be read|neither all text"),
            (frame.drop(columns="town"), r"no columns \['town'\]"),
            (frame[["town", "age", "income"]].to_numpy(), "expected a data frame"),
        ):
            with pytest.raises((TypeError, ValueError), match=message) as error:
                model.fit(broken, y)
            assert "77.25" not in str(error.value)
        assert not hasattr(model, "coef_") and not ledger.entries


MISTAKES = [
    ({"schema": SCHEMA, "feature_bounds": 1.0}, "one of them"),
    ({"schema": {"columns": {}}}, "columns"),
    ({"feature_bounds": {"a": (0, 1)}}, r"keys \['a'\]"),
    ({"feature_bounds": {"x0": (1, 0), "x1": (0, 1)}}, "low < high"),
    ({"feature_bounds": [(0, 1)] * 3}, "bounds for 2"),
    ({"interactions": "age"}, "list of pairs"),
    ({"interactions": [(0,)]}, "list of pairs"),
    ({"interactions": [(0, 1), (1, 0)]}, "each pair once"),
    ({"interactions": [(0, "x0")]}, "different columns"),
    ({"interactions": [(0, 7)]}, "interactions has 7"),
    ({"interactions": [("x0", "x9")]}, "interactions has 'x9'"),
    ({"schema": {"columns": {"a": {"kind": "number", "bounds": [1e16, 1e16 + 2], "scale": "log"}}}}, "same logarithm"),
    ({"knots": -1}, "knots=-1"),
    ({"knots": "many"}, "knots='many'"),
    ({"knots": 2.5}, "knots=2.5"),
    ({"monotone": {"x0": 2}}, "never falls"),
    ({"monotone": ["x0"]}, "never falls"),
    ({"monotone": {"x7": 1}}, "monotone has 'x7'"),
]


@both
@pytest.mark.parametrize("parameters, message", MISTAKES)
def test_mistakes_are_named_before_anything_is_paid_for(kind, parameters, message, rng):
    X, y = numbers(rng)
    with PrivacyLedger(epsilon=10, delta=1e-4) as ledger, pytest.raises((TypeError, ValueError), match=message):
        kind(**GIVEN[kind], **parameters).fit(X, y)
    assert not ledger.entries


@both
def test_bounds_that_nobody_gave_are_warned_of(kind, rng):
    X, y = numbers(rng)
    for call in (lambda model: model.fit(X, y), lambda model: model.plan(400, 2)):
        with pytest.warns(UserWarning, match=r"taken to lie in \[-1, 1\]"):
            call(kind(**GIVEN[kind]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(kind(**GIVEN[kind], feature_bounds=1.0))


def test_text_without_a_schema_and_sparse_tables_say_what_to_do(rng):
    with pytest.raises(ValueError, match=r"\['name', 'town', 'ill'\].*schema="):
        DPAdditiveClassifier(feature_bounds=1.0).fit(people(rng), np.arange(400) % 2)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        DPAdditiveClassifier().fit(sparse.csr_array(numbers(rng)[0]), np.arange(400) % 2)
    X, y = numbers(rng)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fitted(DPAdditiveClassifier, X, y, feature_bounds=BOUNDS).predict(sparse.csr_array(X))
    with pytest.raises(ValueError, match="3 classes"):
        DPAdditiveClassifier(monotone={0: 1}).fit(numbers(rng)[0], np.arange(400) % 3)


def test_what_one_value_is_shows_in_no_warning(rng):
    """Also where a program makes errors of overflow and underflow."""
    X, y = numbers(rng)
    X[7] = 1e-310
    with np.errstate(all="raise"):
        for bounds in (1.0, 1e50, BOUNDS):
            fitted(DPAdditiveClassifier, X, y, feature_bounds=bounds)


@both
def test_dates_are_no_numbers(kind, rng):
    """One record with a finer unit would change those of all others."""
    frame = people(rng)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["age"], unit="D")
    y = np.arange(400) % 2
    for given, parameters in (
        (frame.assign(age=days), {"schema": {"columns": COLUMNS}}),
        (frame.assign(age=days - days[0]), {"schema": {"columns": COLUMNS}}),
        (pd.DataFrame({"age": days}), {"feature_bounds": 1e19}),
        (days.to_numpy()[:, None], {"feature_bounds": 1e19}),
    ):
        with pytest.raises(TypeError, match="dates or durations"):
            kind(**GIVEN[kind], **parameters).fit(given, y)


@pytest.mark.slow
def test_a_schema_that_changes_while_it_is_read_is_read_once(rng, monkeypatch, tmp_path):
    frame, path, contents = people(rng), tmp_path / "schema.json", []
    path.write_text("{}")
    other = {"columns": {**COLUMNS, "age": {"kind": "number", "bounds": [0, 200]}}}
    for module in ("_schema", "_frame_facts"):
        monkeypatch.setattr(f"skdp.preprocessing.{module}.read_json", lambda path: contents.pop())
    outcomes = set()
    for reads in range(10):
        contents[:] = [other] * 20 + [{"columns": COLUMNS}] * reads
        with PrivacyLedger(epsilon=10, delta=1e-4) as ledger:
            model = fitted(DPAdditiveClassifier, frame, np.arange(400) % 2, schema=path, knots=3)
            outcomes.add(model.basis_.facts.columns["age"].bounds)
            assert model.basis_.n_features == model.coef_.size and ledger.entries
    assert outcomes == {(0.0, 100.0), (0.0, 200.0)}


@both
def test_pure_privacy_has_knots_too(kind, rng):
    X, y = numbers(rng)
    solver = "objective" if kind is DPAdditiveClassifier else "gd"
    if kind is DPAdditiveClassifier:
        model = fitted(kind, X, y, feature_bounds=BOUNDS, delta=0, solver=solver)
        assert model.privacy_spent_.delta == 0
        assert model.basis_ == fitted(kind, X, y, feature_bounds=BOUNDS).basis_
    else:
        with pytest.raises(ValueError, match="delta=0"):
            fitted(kind, X, y, feature_bounds=BOUNDS, delta=0, solver=solver)


@pytest.mark.slow
def test_gaps_of_all_kinds_are_filled(rng):
    frame, y = people(rng), np.arange(400) % 2
    whole = frame["income"].round()
    gaps = whole.where(np.arange(400) % 7 > 0)
    models = [
        fitted(DPAdditiveClassifier, frame.assign(income=column), y, schema={"columns": COLUMNS})
        for column in (gaps.fillna(0), gaps, gaps.astype("Int64"), gaps.astype("Float64").astype(object))
    ]
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_classes_of_a_schema_are_public(rng):
    frame = people(rng)
    model = fitted(DPAdditiveClassifier, frame, frame["ill"], schema=SCHEMA)
    assert model.classes_.tolist() == ["no", "yes"]
    assert "one of the given classes" in str(model.privacy_report_)
    only = frame[frame["ill"] == "no"]
    assert fitted(DPAdditiveClassifier, only, only["ill"], schema=SCHEMA).classes_.tolist() == ["no", "yes"]
    given = fitted(DPAdditiveClassifier, frame, np.arange(400) % 3, schema=SCHEMA, classes=[0, 1, 2])
    assert given.classes_.tolist() == [0, 1, 2] and given.predict_proba(frame).shape == (400, 3)


@both
def test_a_plan_is_what_a_fit_does(kind, rng):
    X, y = numbers(rng)
    frame = people(rng)
    for table, parameters in (
        (X, {"feature_bounds": BOUNDS, "interactions": [(0, 1)]}),
        (pd.DataFrame(X, columns=["a", "b"]), {"feature_bounds": 100, "interactions": [("a", "b")]}),
        (frame, {"schema": {"columns": COLUMNS}, "interactions": [("age", "town")]}),
    ):
        model = fitted(kind, table, y, **parameters)
        planned = clone(model).plan(400, None if "schema" in parameters else 2)
        assert [str(line) for line in planned.releases] == [str(line) for line in model.privacy_report_.releases]
        assert planned.public["resolved"] == model.privacy_report_.public["resolved"]
        assert planned.public["n_features"] == model.n_features_in_
    with pytest.raises(TypeError, match="n_features=None"):
        kind(**GIVEN[kind]).plan(400)
    for bounds in (BOUNDS, np.array(BOUNDS), {"a": (0, 1), "b": (0, 1)}):
        assert kind(**GIVEN[kind], feature_bounds=bounds).plan(400).public["n_features"] == 2


@both
def test_pickles_clones_and_names(kind, rng):
    frame = people(rng)
    model = fitted(kind, frame, np.arange(400) % 2, schema={"columns": COLUMNS})
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert model.feature_names_in_.tolist() == list(COLUMNS) and model.n_features_in_ == 3
    assert clone(model).get_params() == model.get_params() and not hasattr(clone(model), "basis_")
    for refused in ("max_bins", "n_knots", "fit_intercept", "l1_ratio"):
        with pytest.raises(TypeError, match=f"does not take {refused}"):
            kind(**{refused: 1})


def test_a_weak_guarantee_is_warned_of_once():
    with pytest.warns(NotPrivateWarning) as caught:
        seeded.fitted(
            DPAdditiveClassifier(float("inf"), feature_bounds=1.0, knots="private"), np.zeros((40, 1)), np.arange(40) % 2
        )
    assert len(caught) == 1


@pytest.mark.parametrize(
    "knots, n, said",
    (
        ("auto", 10, "numbers: 2, with no hats, whose noise would win; categories: 0; pairs: 1; functions: "),
        (0, 10, "numbers: 2, with no hats, as asked for; categories: 0; pairs: 1; functions: "),
        (3, 10, "numbers: 2, with hats on 8 knots each, placed by their bounds; categories: 0; pairs: 1; functions: "),
        ("private", 10**6, "numbers: 2, with hats on 21 knots each, placed by the first release; categories: 0; pairs: 1"),
    ),
)
def test_the_report_says_what_the_functions_are(knots, n, said):
    plan = DPAdditiveClassifier(knots=knots, interactions=[(0, 1)]).plan(n, 2)
    assert said in " ".join(str(plan).split())


def test_an_additive_regressor_takes_the_range_of_y_from_its_schema():
    """At epsilon 100 and without errors in y, R2 below .9 has a probability that is negligible."""
    schema = {"columns": {"a": {"kind": "number", "bounds": [-3, 3]}}, "target": "y", "target_bounds": [100, 400]}
    x = np.random.default_rng(0).uniform(-3, 3, 2000)
    table, y = pd.DataFrame({"a": x}), 250 + 40 * x
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "epsilon=")
        model = seeded.fitted(DPAdditiveRegressor(epsilon=100.0, schema=schema), table, y)
        other = seeded.fitted(DPAdditiveRegressor(epsilon=100.0, schema=schema, target_bounds=(0, 500)), table, y)
    assert model.target_bounds_ == (100, 400) and model.score(table, y) > 0.9
    assert other.target_bounds_ == (0, 500)

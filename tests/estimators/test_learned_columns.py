"""Estimators that learn the columns of a raw frame: the budget of both stages, what is refused, and what a fit leaves behind."""

import html
import json
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from marks import slow
from seeded import fitted
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skdp import (
    BudgetExceededError,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPConstrainedRegression,
    DPGradientBoostingRegressor,
    DPGroupDROClassifier,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRobustRegressor,
    DPTabularClassifier,
    DPTabularRegressor,
    PrivacyLedger,
)
from skdp.estimators import _two_stages
from skdp.estimators._two_stages import Learning
from skdp.estimators.boosting import _rule
from skdp.preprocessing import LearnedSchema, Schema, from_schema
from skdp.preprocessing._range_search import QUESTIONS
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.errors import LowSignalWarning, NotPrivateWarning, PrivacyAccountingError, WeakPrivacyWarning
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ColumnHistograms, FineHistograms
from skdp.testing import reproducible_noise

N = 3000
MANY = "y has more than {} different labels"
LEARN = [DPLogisticRegression, DPLinearSVC, DPAUCMaximizer, DPLinearRegression]


@pytest.fixture
def frame(rng):
    """Columns in their own units, with text, gaps and dates."""
    z = rng.normal(size=(3, N))
    return pd.DataFrame(
        {
            "height": 1e-6 * (z[0] + 3),
            "income": np.exp(3 * z[1]),
            "hour": rng.integers(0, 24, N),
            "gaps": np.where(rng.random(N) < 0.2, np.nan, z[2]),
            "city": rng.choice(["A", "B", "C", None], N, p=[0.5, 0.3, 0.1, 0.1]),
            "day": np.datetime64("2031-04-15", "s") + rng.integers(0, 10**6, N),
        }
    )


@pytest.fixture
def labels(frame):
    return np.where(frame["height"] > 3e-6 + 1e-6 * (frame["city"] == "A"), "yes", "no")


def target(kind, frame, labels):
    return 100 + 5e6 * frame["height"].to_numpy() if hasattr(kind(), "target_bounds") else labels


@pytest.mark.each_value
@pytest.mark.parametrize("kind", LEARN)
@pytest.mark.parametrize("schema", [None, "learn", {}, {"hour": "category"}])
def test_a_raw_frame_is_fitted(kind, schema, frame, labels):
    y = target(kind, frame, labels)
    model = fitted(kind(3.0, adjacency="zero_out", schema=schema, random_state=0), frame, y)
    assert list(model.feature_names_in_) == list(frame) and model.n_features_in_ == frame.shape[1]
    assert model.score(frame, y) > 0.7
    assert model.learnt_["hour"]["kind"] == ("category" if schema and "hour" in schema else "integers")
    assert list(model.prepared_features_) == list(from_schema(model.schema_).fit(frame).get_feature_names_out())
    assert model.privacy_report_.releases[0].query == "ColumnHistograms"
    assert model.privacy_report_.public["n_columns"] == frame.shape[1]


@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression])
def test_both_stages_spend_the_budget_and_no_more(kind, epsilon, adjacency, frame, labels, monkeypatch):
    """The noise of every release of both oracles, by an independent sum of squares."""
    asked, kinds = [], []
    answer = Oracle._answer

    def watched(self, query, release, records):
        asked.append(self._budget.private and 1 / (self._scale * release.mechanism.weight) ** 2)
        kinds.append(type(query).__name__)
        return answer(self, query, release, records)

    monkeypatch.setattr(Oracle, "_answer", watched)
    model = fitted(kind(epsilon, adjacency=adjacency), frame, target(kind, frame, labels))
    delta = model.privacy_spent_.delta
    assert gaussian_epsilon(math.sqrt(math.fsum(asked)), delta) <= epsilon * (1 + 1e-8)
    assert gaussian_epsilon(math.sqrt(math.fsum(asked)), delta) >= epsilon * (1 - 1e-6)
    assert model.privacy_spent_.epsilon == pytest.approx(epsilon, rel=1e-8)
    assert len(asked) == model.privacy_report_.public["n_releases"] == sum(r.count for r in model.privacy_report_.releases)
    first = kinds.index("ColumnHistograms")  # after the search for the range of a target, where there is one
    assert 0.02 - 1e-9 <= math.fsum(asked[first : first + 2]) / math.fsum(asked[first:]) <= 0.1 + 1e-9


def test_one_fit_is_charged_once_and_exactly(frame, labels, tmp_path):
    with PrivacyLedger(tmp_path / "ledger", epsilon=1.0, delta=1e-6) as ledger:
        fitted(DPLogisticRegression(1.0, delta=1e-6), frame, labels)
        with pytest.raises(BudgetExceededError):
            DPLogisticRegression(0.1, delta=1e-6).fit(frame, labels)
    assert len(ledger.entries) == 1
    entry = ledger.entries[0].spending
    assert entry.composition is not None and entry.epsilon == pytest.approx(1.0, rel=1e-8)
    assert any("ColumnHistograms" in line for line in entry.schedule) and "learned columns" in entry.schedule[-1]


def refuse_release(monkeypatch):
    monkeypatch.setattr(Oracle, "ask", lambda self, query: pytest.fail("a release was made"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DPLogisticRegression(schema="learn", solver="svrg"), "cannot share a budget"),
        (DPLogisticRegression(schema="learn", delta=0), "positive delta"),
        (DPLogisticRegression(schema="learn", data_norm=1.0), "data_norm=1.0 beside schema"),
        (DPLogisticRegression(schema="learn", feature_bounds=1.0), "feature_bounds=1.0 beside schema"),
        (DPLogisticRegression(schema={"no such": "category"}), "which X does not have"),
        (
            DPLogisticRegression(schema={"hour": "text"}),
            r"expected \{'kind': 'number', 'bounds': \[low, high\]\} or .*, or one of",
        ),
        (DPLogisticRegression(schema={"gaps": {"kind": "number", "bounds": [-9, 9]}}), "contains NaN"),
        (DPLogisticRegression(schema="learn", classes=["a", "b"]), "labels outside classes"),
        (DPLogisticRegression(schema="learn", alpha=-1), "alpha=-1"),
        (DPAUCMaximizer(schema="learn", scorer="mlp"), "cannot share a budget"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_fitted_is_refused_before_any_charge(model, message, frame, labels, tmp_path, monkeypatch):
    refuse_release(monkeypatch)
    with PrivacyLedger(tmp_path / "ledger", epsilon=9.0, delta=1e-3) as ledger, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, ValueError), match=message):
            model.fit(frame, labels)
    assert not ledger.entries
    with pytest.raises(NotFittedError):
        model.predict(frame)


@pytest.mark.slow
def test_groups_are_checked_before_any_charge(frame, labels, monkeypatch):
    with monkeypatch.context() as patch:
        refuse_release(patch)
        with pytest.raises(ValueError):
            DPGroupDROClassifier(schema="learn").fit(frame, labels, groups=[0, 1])
    groups = frame["hour"] > 12
    model = fitted(DPGroupDROClassifier(5.0, adjacency="zero_out", schema="learn"), frame, labels, groups=groups)
    assert model.score(frame, labels) > 0.7 and list(model.groups_) == [False, True]
    sizes = groups.value_counts(sort=False).tolist()
    plan = DPGroupDROClassifier(5.0, adjacency="zero_out", schema="learn").plan(frame, group_sizes=sizes)
    assert plan.spent == model.privacy_report_.spent and plan.releases[:3] == model.privacy_report_.releases[:3]
    assert f"of the smallest group ({min(sizes)} records)" in plan.noise_size


def test_a_constraint_of_a_fixed_number_of_coefficients_is_refused(frame, labels, monkeypatch):
    """How many features are learned is not known before the charge."""
    refuse_release(monkeypatch)
    for size in (6, 7, 8):
        box = [(-1.0, 1.0)] * size
        with pytest.raises((TypeError, ValueError)):
            DPConstrainedClassifier(schema="learn", constraint="box", radius=np.array(box)).fit(frame, labels)


@pytest.mark.parametrize("kind", [DPConstrainedClassifier, DPConstrainedRegression])
def test_constraints_hold_for_the_prepared_features(kind, frame, labels):
    y = target(kind, frame, labels)
    model = fitted(kind(3.0, adjacency="zero_out", schema="learn", constraint="l1", radius=0.5), frame, y)
    assert np.abs(model.coef_).sum() <= 0.5 * (1 + 1e-9)


@pytest.mark.slow
def test_frames_with_stated_bounds_are_not_learned(rng):
    X = pd.DataFrame(rng.uniform(-1, 1, size=(1000, 2)), columns=["a", "b"])
    y = (X["a"].to_numpy() > 0).astype(int)
    for given in ({"data_norm": 1.5}, {"feature_bounds": 1.0}, {"solver": "svrg"}, {"delta": 0, "solver": "objective"}):
        assert not hasattr(fitted(DPLogisticRegression(3.0, **given), X, y), "schema_")
    assert not hasattr(fitted(DPLogisticRegression(3.0), X.to_numpy(), y), "schema_")


def test_an_array_is_learned_where_that_is_asked_for(rng):
    X = np.column_stack([1e6 * rng.normal(size=N), 50 + rng.normal(size=N)])
    y = (X[:, 0] > 0).astype(int)
    model = fitted(DPLogisticRegression(3.0, adjacency="zero_out", schema="learn"), X, y)
    assert model.score(X, y) > 0.9 and not hasattr(model, "feature_names_in_") and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="X has 1 features"):
        model.predict(X[:, :1])


@pytest.mark.slow
def test_the_learned_schema_costs_nothing_the_next_time(frame, labels):
    model = fitted(DPLogisticRegression(3.0, adjacency="zero_out"), frame, labels)
    again = fitted(DPLogisticRegression(3.0, adjacency="zero_out", schema=model.schema_.to_dict()), frame, labels)
    assert again.privacy_report_.releases[0].query != "ColumnHistograms"
    assert list(again.prepared_features_) == list(model.prepared_features_)
    assert again.score(frame, labels) > 0.8


def test_a_schema_file_with_an_entry_to_learn(frame, labels, tmp_path):
    content = '{"columns": {"hour": "category", "day": {"kind": "ignore"}}, "target": "ill", "classes": ["no", "yes"]}'
    (tmp_path / "schema.json").write_text(content)
    model = fitted(DPLogisticRegression(3.0, schema=tmp_path / "schema.json"), frame, labels)
    assert model.learnt_["hour"]["kind"] == "category" and "day" not in model.schema_.columns
    assert "day" not in model.learnt_ and model.schema_.classes == ("no", "yes")
    assert model.predict(frame).shape == (N,)


def test_described_columns_cost_nothing(frame, labels):
    described = {"height": {"kind": "number", "bounds": [0, 1e-5]}, "city": {"kind": "category", "categories": ["A", "B"]}}
    model = fitted(DPLogisticRegression(1.0, schema=described), frame, labels)
    assert set(model.learnt_) == {"income", "hour", "gaps", "day"}
    assert model.schema_.columns["height"].bounds == (0, 1e-5)
    assert model.privacy_report_.releases[0].clip_norm == pytest.approx(2.0)  # root of four columns


COMPLETE = {
    "income": {"kind": "number", "bounds": [0, 1000], "scale": "log"},
    "city": {"kind": "category", "categories": ["A", "B", "C"]},
    "hour": {"kind": "number", "bounds": [0, 23]},
    "height": "ignore",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier, DPAdditiveClassifier, DPLinearRegression])
def test_a_dict_that_describes_every_column_is_a_complete_schema(kind, frame, labels, monkeypatch):
    """Nothing is learned, and the word for columns that are left out may be in a complete schema."""
    monkeypatch.setattr(_rule, "N_TREES", 20)
    X, bounds = frame[list(COMPLETE)], {"target_bounds": (80, 120)} if hasattr(kind(), "target_bounds") else {}
    given = [
        fitted(kind(8.0, schema=schema, **bounds), X, target(kind, frame, labels))
        for schema in (COMPLETE, {"columns": COMPLETE}, {"columns": {**COMPLETE, "height": {"kind": "ignore"}}})
    ]
    for model in given:
        assert not any("Histograms" in line.query and "Column" in line.query for line in model.privacy_report_.releases)
        assert model.privacy_report_.learned is None and list(model.schema_.columns) == ["income", "city", "hour"]
        np.testing.assert_array_equal(model.predict(X.drop(columns="height")), given[0].predict(X))
    assert kind(8.0, schema=COMPLETE, **bounds).plan(X).public["n_features"] == given[0].privacy_report_.public["n_features"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        DPLinearRegression(8.0, schema=COMPLETE),
        DPLinearRegression(8.0, schema=COMPLETE, inference=True),
        DPTabularRegressor(8.0, schema=COMPLETE),
        DPAdditiveRegressor(8.0, schema=COMPLETE),
    ],
    ids=("linear", "inference", "tabular", "additive"),
)
def test_of_described_columns_the_range_of_the_target_is_learned_alone(model, frame):
    X, y = frame[list(COMPLETE)], 1000 + 9 * frame["hour"].to_numpy()
    model = fitted(clone(model), X, y)
    low, high = model.schema_.target_bounds
    assert 700 < low <= 1000 and 1207 <= high < 1500
    assert model.predict(X).min() >= low and model.score(X, y) > 0.9
    counts = next(line for line in model.privacy_report_.releases if line.query == "ColumnHistograms")
    assert counts.clip_norm == 2  # a target counts as four columns
    assert set(model.privacy_report_.learned) - {"hardly_seen"} == {"y"} and model.privacy_report_.public["read_as"] == {}
    assert model.privacy_report_.spent.epsilon <= 8


def test_the_report_has_the_limits_that_the_model_takes(frame, labels):
    model = fitted(DPLogisticRegression(0.5, schema="learn"), frame, labels)
    stated = model.privacy_report_.learned
    for name, row in model.learnt_.items():
        assert stated[name] == ", ".join(f"{key} {value}" for key, value in row.items())
        if "low" in row:
            assert (row["low"], row["high"]) == model.schema_.columns[name].bounds


@pytest.mark.slow
@pytest.mark.parametrize("model", (DPLogisticRegression(3.0), DPAdditiveClassifier(3.0)))
def test_the_report_lists_nothing_that_was_learned_as_public(model, frame, labels):
    """Limits are values with noise, which the guarantee protects; so are the features that follow from them."""
    model = fitted(clone(model), frame, labels)
    report, limits = model.privacy_report_, [f"high {row['high']}" for row in model.learnt_.values() if "high" in row]
    content = json.loads(report.to_json())
    assert limits and all(limit in " ".join(content["learned"].values()) for limit in limits)
    assert not any(limit in json.dumps(content["public"]) for limit in (*limits, "bucket", "functions: "))
    for text, heading, following in (
        (str(report), "Learned from the records, with noise:", "Assumes"),
        (report.to_html(), "<h2>Learned from the records, with noise</h2>", "<h2>Assumptions"),
    ):
        before, found, after = " ".join(text.split()).partition(heading)
        assert found and all(limit in after.partition(following)[0] and limit not in before for limit in limits)
    assert "Learned" not in str(model.plan(frame))


@pytest.mark.slow
def test_a_solver_whose_passes_follow_from_the_records(frame, labels):
    model = fitted(DPLogisticRegression(3.0, solver="skgd"), frame, labels)
    assert model.privacy_report_.public["passes"] == "follows from the records"


@pytest.mark.slow
def test_the_report_assumes_finite_numbers_of_described_columns_alone(frame, labels):
    described = {"height": {"kind": "number", "bounds": [0, 1e-5]}}
    cases = (("learn", "the cells of X may be anything"), (described, "every number of a described column"))
    for schema, words in cases:
        assumed = " ".join(fitted(DPLogisticRegression(3.0, schema=schema), frame, labels).privacy_report_.assumptions)
        assert words in assumed


@pytest.mark.slow
def test_a_plan_has_both_stages(frame):
    plan = DPLogisticRegression(1.0).plan(frame, n_classes=3)
    assert plan.planned and plan.spent.epsilon == pytest.approx(1.0, rel=1e-8)
    assert [line.query for line in plan.releases][:2] == ["ColumnHistograms", "FineHistograms"]
    assert "signal s" in plan.noise_size and plan.needed is not None
    few = DPLogisticRegression(0.1, schema="learn").plan(frame.iloc[:300])
    assert "write bounds for the columns that you know" in few.noise_size


def test_a_fit_that_noise_drowns_says_so_before_it_spends(frame, labels, monkeypatch):
    refuse_release(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        with pytest.raises(LowSignalWarning):
            DPLogisticRegression(0.01).fit(frame, labels)


@pytest.mark.parametrize("fit", [DPLogisticRegression().fit, lambda X, y: LearnedSchema().fit(X)])
def test_columns_that_noise_hides_are_told_before_the_charge(fit, frame, monkeypatch):
    refuse_release(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)
        warnings.filterwarnings("error", "Noise is likely to hide most columns.*: write bounds", LowSignalWarning)
        with pytest.raises(LowSignalWarning):
            fit(frame[:3], [0, 1, 0])


@pytest.mark.slow
def test_few_records_hear_no_less_than_with_a_schema(frame):
    """The records that a fit needs are those at the delta of so many records, and for both stages."""
    known = {"columns": {"height": {"kind": "number", "bounds": [0, 1]}, "hour": {"kind": "number", "bounds": [0, 23]}}}
    few = frame[["height", "hour"]][:3]
    stated, learned = (DPLogisticRegression(schema=schema).plan(few).needed for schema in (known, "learn"))
    assert stated.n_samples < learned.n_samples < 1.5 * stated.n_samples
    enough = DPLogisticRegression(schema="learn").plan(frame[["height", "hour"]][: learned.n_samples]).needed
    assert enough.n_samples == learned.n_samples and enough.epsilon == pytest.approx(1, rel=0.05)
    with pytest.warns(LowSignalWarning, match=f"at epsilon=1 and n_samples=3: .* about {learned.n_samples} records"):
        DPLogisticRegression(schema="learn").fit(few, [0, 1, 0])


@pytest.mark.slow
def test_types_are_assumed_public_where_one_decides(frame):
    words = dict.fromkeys(frame, "either")
    for model in (DPLogisticRegression(), LearnedSchema()):
        for schema, assumed in (
            (words, False),
            (words | {"day": "number"}, False),
            (words | {"hour": "category"}, True),  # for the names of its codes
            (words | {"day": "learn"}, True),
        ):
            text = " ".join(clone(model).set_params(schema=schema).plan(frame).assumptions)
            assert ("types of the columns are public" in text) == assumed


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("schema", [None, "learn"])
@pytest.mark.parametrize(("epsilon", "kind"), [(20.0, WeakPrivacyWarning), (math.inf, NotPrivateWarning)])
def test_a_weak_budget_is_told_once(epsilon, kind, schema, frame, labels):
    model = DPLogisticRegression(epsilon, schema=schema)
    for call in (lambda: fitted(model, frame, labels), lambda: model.plan(frame)):
        with pytest.warns(kind) as caught:
            call()
        assert [str(warning.message).split()[0] for warning in caught] == [f"epsilon={epsilon}"]


def test_tables_to_predict_for_have_the_columns_of_the_fit(frame, labels):
    model = fitted(DPLogisticRegression(3.0), frame, labels)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.drop(columns="city"))
    assert np.array_equal(model.predict(frame.head()), model.predict(frame)[:5])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict(frame.head().to_numpy()), model.predict(frame)[:5])
    odd = frame.head().assign(city="somewhere", income=[np.inf, -np.inf, np.nan, 1e300, 0.0])
    with pytest.warns(UserWarning, match="5 of 5 cells of 'city' are of no category"):
        assert np.isfinite(model.decision_function(odd)).all()


@pytest.mark.slow
def test_the_second_stage_sees_releases_alone(frame, labels, rng, monkeypatch):
    """A disjoint table with the same answers to the histograms has the same schema."""
    fixed = {}

    def answer(self, query):
        if isinstance(query, (ColumnHistograms, FineHistograms)):
            return fixed.setdefault(type(query), np.abs(np.random.default_rng(7).normal(size=query.size)) * N / 20)
        return original(self, query)

    original = Oracle.ask
    monkeypatch.setattr(Oracle, "ask", answer)
    monkeypatch.setattr(Oracle, "finish", lambda self: None)
    other = frame.assign(height=9.0, income=-1.0, hour=99, gaps=np.nan, city="Z", day=np.datetime64("1950-01-01", "s"))
    one, two = (DPLogisticRegression(3.0).fit(table, labels) for table in (frame, other))
    assert one.schema_ == two.schema_ and one.learnt_ == two.learnt_


def test_copies_of_the_estimator(frame, labels):
    model = fitted(DPLogisticRegression(3.0, schema={"hour": "category"}), frame, labels)
    assert clone(model).get_params() == model.get_params() and not hasattr(clone(model), "schema_")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))


def test_a_learned_schema_before_an_estimator_is_not_learned_again(frame, labels):
    pipeline = make_pipeline(LearnedSchema(1.0), DPLogisticRegression(1.0, data_norm=1)).set_output(transform="pandas")
    assert not hasattr(fitted(pipeline, frame, labels)[-1], "schema_")


def test_a_second_stage_with_other_releases_is_refused(frame, labels, monkeypatch):
    """If what is learned changed the kind of releases, the budget of both stages would not be what was charged."""
    planned = _two_stages._gaussian
    calls = []

    def once(plan):
        calls.append(plan)
        if len(calls) < 4:
            return planned(plan)
        raise ValueError("cannot share a budget")

    monkeypatch.setattr(_two_stages, "_gaussian", once)
    with pytest.raises(ValueError, match="cannot share"):
        DPLogisticRegression(3.0).fit(frame, labels)
    assert len(calls) == 4


def test_interruptions_say_that_the_budget_stays_spent(frame, labels, monkeypatch):
    monkeypatch.setattr(Oracle, "ask", lambda self, query: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt, match="its budget stays spent"):
        DPLogisticRegression(3.0).fit(frame, labels)


def test_stated_facts_are_part_of_the_learned_schema(frame):
    model = DPLogisticRegression(schema={"day": "ignore", "hour": {"kind": "number", "bounds": [0, 24]}})
    facts = Learning.of(model._task(), frame).facts
    assert list(facts.likely().columns) == ["height", "income", "hour", "gaps", "city"]
    assert isinstance(facts.stated, Schema) and list(facts.stated.columns) == ["hour"]


def test_errors_of_the_oracle_pass_through(frame, labels, monkeypatch):
    monkeypatch.setattr(Oracle, "finish", lambda self: (_ for _ in ()).throw(PrivacyAccountingError("0 of 2")))
    with pytest.raises(PrivacyAccountingError, match="0 of 2"):
        DPLogisticRegression(3.0).fit(frame, labels)


def test_a_skewed_column_has_two_features_of_a_linear_model_and_one_function_of_an_additive_one(rng):
    frame = pd.DataFrame({"rooms": np.exp(0.7 * rng.normal(size=N)) * 1000, "age": rng.uniform(0, 90, N)})
    y = np.log(frame["rooms"]) + frame["age"] / 50
    linear = fitted(DPLinearRegression(3.0, adjacency="zero_out", random_state=0), frame, y)
    assert (
        list(linear.prepared_features_) == ["rooms", "rooms_log", "age"] and linear.learnt_["rooms"]["scale"] == "linear and log"
    )
    logarithms = np.asarray(from_schema(linear.schema_).fit_transform(frame))[:, 1]
    inside = frame["rooms"].between(*linear.schema_.columns["rooms"].learned.core).to_numpy()
    assert inside.mean() > 0.9 and (np.abs(logarithms[inside]) <= 1).all()
    assert np.corrcoef(logarithms, np.log(frame["rooms"]))[0, 1] > 0.97
    assert linear.schema_.n_features == 3 and Schema.read(linear.schema_.to_dict()) == linear.schema_
    assert linear.score(frame, y) > 0.9
    alone = {name: column.on_one_scale() for name, column in linear.schema_.columns.items()}
    schemas = linear.schema_, replace(linear.schema_, columns=alone)
    made = [fitted(DPAdditiveRegressor(3.0, adjacency="zero_out", schema=schema, random_state=0), frame, y) for schema in schemas]
    assert np.array_equal(*(model.predict(frame) for model in made)) and made[0].score(frame, y) > 0.9


def test_an_additive_model_takes_nearer_limits_of_learned_columns_alone(rng):
    """Noise puts the limits 4 cores away."""
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    stated = {"kind": "number", "bounds": [-9, 9], "core": [-1, 1]}
    y = frame["a"] + frame["b"]
    model = fitted(DPAdditiveRegressor(0.1, adjacency="zero_out", schema={"a": stated}, random_state=0), frame, y)
    a, b = model.schema_.columns.values()
    assert a.bounds == (-9, 9) and b.learned.core[1] < b.bounds[1] <= 2 * b.learned.core[1]
    assert model.learnt_["b"]["high"] == b.bounds[1]


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("most, kind", ((20, int), (50, str)))
@pytest.mark.parametrize("learns", (False, True))
def test_many_labels_that_are_read_from_y_warn_once_before_the_charge(learns, most, kind):
    """21 numbers or 51 texts, of an array and of a frame whose columns are learned; not where classes or a schema state them."""
    labels = np.arange(most + 1) if kind is int else np.array([f"c{number:02}" for number in range(most + 1)])
    y = labels[np.arange(N) % (most + 1)]
    given = {} if learns else {"feature_bounds": 1.0}
    X = pd.DataFrame({"a": np.linspace(-1, 1, N)}) if learns else np.linspace(-1, 1, N)[:, None]
    with PrivacyLedger(epsilon=10.0, delta=1e-3) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LowSignalWarning)
        with pytest.raises(UserWarning, match=MANY.format(most)):
            DPLogisticRegression(1.0, **given).fit(X, y)
        assert not ledger.entries
        DPLogisticRegression(1.0, classes=labels, **given).fit(X, y)
        DPLogisticRegression(1.0, **given).fit(X, labels[np.arange(N) % most])
        if learns:
            schema = {"columns": {"a": "learn"}, "target": "y", "classes": labels.tolist()}
            DPLogisticRegression(1.0, schema=schema).fit(X, y)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        DPLogisticRegression(1.0, **given).fit(X, y)
    assert len([item for item in heard if MANY.format(most) in str(item.message)]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", (DPLogisticRegression, LearnedSchema))
def test_columns_of_which_nothing_is_learned_warn_once_after_the_fit(kind):
    """Empty columns of text and of numbers; not those of a boolean type, and not what is known."""
    n = 20_000
    frame = pd.DataFrame({"id": pd.Series([None] * n, dtype=object), "a": np.arange(n) % 24, "none": np.full(n, np.nan)})
    frame["truth"] = pd.array([None] * n, dtype="boolean")
    model = kind(3.0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        fitted(model, frame, frame["a"].to_numpy() > 12)
    (told,) = [item for item in heard if "Nothing was learned of" in str(item.message)]
    assert told.category is LowSignalWarning and "of ['id', 'none']:" in str(told.message)
    assert model.learnt_["truth"]["kind"] == "undetermined" and model.learnt_["a"]["kind"] == "integers"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(kind(3.0, schema={"id": "ignore", "none": "ignore"}), frame, frame["a"].to_numpy() > 12)


def test_one_word_of_knowledge_decides_where_noise_hides_each_code(frame, rng):
    """An effect of each hour; as a number the column is of no use, and no hour is common enough to be seen."""
    y = rng.normal(size=24)[frame["hour"]] + 0.2 * rng.normal(size=N)
    told = fitted(DPLinearRegression(0.5, schema={"hour": "category"}), frame, y)
    assert {f"hour_{hour}" for hour in range(24)} <= {str(name) for name in told.prepared_features_}
    assert told.score(frame, y) > 0.5 > 0.2 > fitted(DPLinearRegression(0.5), frame, y).score(frame, y)


def test_years_are_integers_though_they_are_far_from_zero(frame, rng):
    """The second release has no bins of integers from 1024 to 2048, and the third one has them where all years are."""
    year = rng.integers(0, 20, N)
    y = rng.normal(size=20)[year] + 0.2 * rng.normal(size=N)
    model = fitted(DPLinearRegression(3.0), frame.assign(year=2001 + year), y)
    assert {"year_2001", "year_2020"} <= {str(name) for name in model.prepared_features_}
    assert model.score(frame.assign(year=2001 + year), y) > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression, DPAdditiveRegressor))
def test_a_frame_whose_names_are_numbers_is_learned(kind, rng):
    """As an array with schema="learn": its columns have no names. One of numbers alone is taken for an array, with a warning."""
    X = pd.DataFrame({0: rng.normal(1e4, 1e3, N), 1: rng.choice(["a", "b"], N)})
    y = (X[0] > 1e4).astype(int) if kind is DPLogisticRegression else X[0] / 1e3 + (X[1] == "a")
    model = fitted(kind(10.0, random_state=0), X, y)
    assert model.score(X, y) > 0.8 and not hasattr(model, "feature_names_in_") and list(model.learnt_)[:2] == ["x0", "x1"]
    np.testing.assert_array_equal(model.predict(X), model.predict(X.to_numpy(dtype=object)))
    assert str(model.plan(X)).startswith("Privacy plan")
    with pytest.raises(ValueError, match=r"no strings, or the same name twice: \[1\]; expected .*astype\(str\)"):
        kind(10.0).fit(X.rename(columns={0: "a"}), y)
    numbers = X[[0]]
    with pytest.warns(UserWarning, match="taken for an array"):
        assert not hasattr(kind(10.0).fit(numbers, y), "learnt_")
    assert hasattr(fitted(kind(10.0, schema="learn"), numbers, y), "learnt_")


@pytest.mark.each_value
@pytest.mark.parametrize("cell", (math.inf, -math.inf))
@pytest.mark.parametrize("kind", (DPLogisticRegression, DPAdditiveClassifier))
def test_infinite_cells_count_as_missing(kind, cell, rng):
    x = rng.normal(50, 10, N)
    some = rng.random(N) < 0.3
    frames = [pd.DataFrame({"x": np.where(some, gap, x)}) for gap in (cell, math.nan)]
    models = [fitted(kind(10.0, random_state=0, classes=[0, 1]), frame, (x > 50).astype(int)) for frame in frames]
    assert models[0].learnt_ == models[1].learnt_ and models[0].learnt_["x"]["missing"] > 0.2
    for frame in frames:
        np.testing.assert_array_equal(models[0].decision_function(frame), models[1].decision_function(frames[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    (DPLogisticRegression, *slow(DPAdditiveClassifier, DPTabularClassifier)),
)
def test_a_report_says_that_a_given_schema_was_learned_and_shows_all_of_it(kind, frame, labels):
    """Whether it is given as an object or as JSON; what a fit learns itself is within its budget."""
    learned = fitted(kind(3.0, adjacency="zero_out"), frame, labels)
    content = learned.schema_.to_dict()
    stated = "no parameter was computed from the data"
    for report in (learned.privacy_report_, kind(3.0, adjacency="zero_out").plan(frame)):
        assert "schema" not in report.public and any(line.startswith(stated) for line in report.assumptions)
    for given in (learned.schema_, json.loads(json.dumps(content))):
        model = fitted(kind(3.0, adjacency="zero_out", schema=given), frame, labels)
        assert model.schema_ == learned.schema_
        for report in (model.privacy_report_, kind(3.0, adjacency="zero_out", schema=given).plan(len(frame))):
            assert report.to_dict()["public"]["schema"] == content
            assert any("learned from records by an earlier private fit" in line for line in report.assumptions)
            assert not any(line.startswith(stated) for line in report.assumptions)
            text, page = str(report).replace("\n              ", " "), html.unescape(report.to_html())
            for name, facts in content["columns"].items():
                assert f"schema of {name} = {facts['kind']}: " in text and "Schema(" not in text + page
                shown = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in facts.get("integers", ())]
                assert f"integers [{', '.join(shown)}]" in text or not shown
    known = {"columns": {"hour": {"kind": "number", "bounds": [0, 23]}}}
    assert any(line.startswith(stated) for line in kind(3.0, schema=known).plan(len(frame)).assumptions)


@pytest.mark.slow
def test_a_schema_that_is_learned_in_part_is_said_to_be(frame, labels):
    """Entries that an earlier fit has learned, beside columns to learn: the earlier fit had a budget of its own."""
    learned = LearnedSchema(5.0).fit(frame).schema_.to_dict()["columns"]
    for schema, said in (({"height": learned["height"]}, True), ({"hour": {"kind": "number", "bounds": [0, 23]}}, False)):
        text = " ".join(DPLogisticRegression(5.0, schema=schema).plan(frame).assumptions)
        assert ("was learned from records by an earlier private fit" in text) == said
        assert ("no other parameter was computed" in text) == said and ("no parameter was computed" in text) != said


def test_a_tabular_plan_takes_integers_of_numpy():
    one, two = (DPTabularClassifier(classes=[0, 1]).plan(n, 10) for n in (5000, np.int64(5000)))
    assert one.public["family"] == two.public["family"] and "for 10 columns" in one.public["family"]


@pytest.mark.slow
def test_a_target_left_among_the_columns_is_named_before_the_budget_is_spent(tmp_path):
    """Names are public. A name that no column has, a column that is no part of the model, and y without a name are silent."""
    X = pd.DataFrame({"age": np.arange(500) % 90, "sick": np.arange(500) % 2})
    for y in (X["sick"], pl.Series("sick", X["sick"])):
        with (
            PrivacyLedger(tmp_path / f"{type(y).__module__}.sqlite", epsilon=1.0, delta=1e-5) as ledger,
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("error", "X has a column 'sick', the name of y", UserWarning)
            with pytest.raises(UserWarning, match=r"Leave it out, such as by X.drop\(columns=\['sick'\]\)"):
                DPLogisticRegression(1.0, delta=1e-6, classes=[0, 1]).fit(X, y)
            assert not ledger.entries
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for y in (X["sick"].rename("ill"), X["sick"].to_numpy()):
            fitted(DPLogisticRegression(1.0, classes=[0, 1]), X, y)
        fitted(DPLogisticRegression(1.0, schema={"sick": "ignore"}, classes=[0, 1]), X, X["sick"])
    assert not any("the name of y" in str(one.message) for one in heard)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPLinearRegression, DPRobustRegressor])
def test_a_line_goes_on_flat_from_where_the_records_of_a_learned_column_end(kind):
    """It went on to 88, to 94 or to 256 (standard deviations at 100: 104 and 46, of 1.0 and .7 at 41)."""
    rng, n = np.random.default_rng(4), 30_000
    X = pd.DataFrame({"age": rng.integers(18, 66, n), "city": rng.choice(["Ulm", "Bonn"], n)})
    y = 10 * X["age"] + 40 * (X["city"] == "Ulm") + rng.normal(0, 50, n)
    far = pd.DataFrame({"age": [65, 100], "city": "Ulm"})
    for seed in range(2):
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ages beyond the range of the fit
            at_65, at_100 = kind(1.0, schema="learn").fit(X, y).predict(far)
        assert abs(at_100 - at_65) < 40


FEW = {  # families whose models of few records are the mean of y alone
    "linear": DPLinearRegression(),
    "of few columns": DPLinearRegression(l1_ratio=0.5),
    "additive": DPAdditiveRegressor(knots="private"),
    "boosted": DPGradientBoostingRegressor(),
    "chosen": DPTabularRegressor(),
    "robust": DPRobustRegressor(loss="huber"),
}


def few(frame, n=400):
    """A raw frame of few records, with a column of codes, and positive targets of a tiny unit."""
    return frame.assign(code=np.arange(N) % 5).iloc[:n], 1e-9 * np.exp(1e6 * frame["height"].to_numpy() / 2)[:n]


@pytest.mark.filterwarnings("error::UserWarning")  # of records to predict for
@pytest.mark.parametrize("name", ["chosen", *slow(*(name for name in FEW if name != "chosen"))])
def test_of_few_records_the_mean_alone_is_learned(name, frame):
    """At s = 24; the mean of targets of a tiny unit is found, all of the budget is spent, and predictions look at no cell."""
    X, y = few(frame)
    model = clone(FEW[name]).set_params(
        epsilon=0.3, delta=1e-6, adjacency="zero_out", schema={"code": "category"}, random_state=0
    )
    with pytest.warns(LowSignalWarning, match="the model is the mean of y alone.*needs about") as heard:
        fitted(model, X, y)
    assert len(heard) == 1 and "fewer features" not in str(heard[0].message)
    report, predicted = model.privacy_report_, model.predict(frame.assign(code=9).iloc[400:])
    assert [(line.count, line.query) for line in report.releases] == [(QUESTIONS, "TargetHistogram"), (1, "TargetSum")]
    assert np.ptp(predicted) == 0 and abs(predicted[0] - y.mean()) < 0.5 * y.std()
    assert [*model.learnt_] == ["y"] and {*report.learned} == {"y"} and list(model.schema_.columns) == list(X)
    assert report.public["passes"] == QUESTIONS + 1 and report.spent.epsilon == pytest.approx(0.3, rel=1e-6)
    assert model.target_bounds_ == model.schema_.target_bounds and 0 <= model.target_bounds_[0] < model.target_bounds_[1] < 1e-7
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame.assign(code=9).iloc[400:]), predicted)


@pytest.mark.slow
def test_what_few_records_are_told_to_be_enough_is_enough(frame):
    """Of records and of epsilon; a tenth less is not."""
    X, _ = few(frame)
    model = DPTabularRegressor(0.3, delta=1e-6)

    def is_mean(model, n_samples):
        return "only the mean" in model.plan(X.iloc[:1].reindex(range(n_samples))).noise_size

    needed = model.plan(X).needed
    assert is_mean(model, len(X)) and is_mean(model, int(0.9 * needed.n_samples)) and not is_mean(model, needed.n_samples)
    assert is_mean(clone(model).set_params(epsilon=0.9 * needed.epsilon), len(X))
    assert not is_mean(clone(model).set_params(epsilon=needed.epsilon), len(X))


@pytest.mark.filterwarnings("ignore::skdp.privacy.errors.LowSignalWarning")
@pytest.mark.parametrize(
    "model", [DPLinearRegression(solver="gd"), DPLinearRegression(fit_intercept=False), DPConstrainedRegression()]
)
def test_a_named_solver_and_a_constraint_keep_the_columns_of_few_records(model, frame):
    X, y = few(frame)
    fitted(model.set_params(epsilon=0.3, delta=1e-6, adjacency="zero_out"), X, y)
    queries = [line.query for line in model.privacy_report_.releases]
    assert queries[:2] == ["TargetHistogram", "ColumnHistograms"] and {*X} < {*model.learnt_}


@pytest.mark.filterwarnings("ignore::skdp.privacy.errors.LowSignalWarning")
@pytest.mark.parametrize("adjacency, epsilon", [("zero_out", 2.0), ("replace_one", 3.0)])
def test_the_range_of_a_target_is_searched_for_at_a_small_signal(adjacency, epsilon, frame, monkeypatch):
    """Then histograms count columns alone; the noise of all releases, by a sum of squares, is that of the budget."""
    asked, answer = [], Oracle._answer

    def watched(self, query, release, records):
        asked.append((query, 1 / (self._scale * release.mechanism.weight) ** 2))
        return answer(self, query, release, records)

    monkeypatch.setattr(Oracle, "_answer", watched)
    X, y = few(frame)
    model = fitted(DPLinearRegression(epsilon, delta=1e-6, adjacency=adjacency), X, y)
    queries, squares = zip(*asked, strict=True)
    assert [type(query).__name__ for query in queries[:QUESTIONS]] == ["TargetHistogram"] * QUESTIONS
    assert all(not query.target for query in queries[QUESTIONS : QUESTIONS + 3])
    assert len({float(query.edges[1]) for query in queries[:QUESTIONS]}) > 5
    assert epsilon * (1 - 1e-6) <= gaussian_epsilon(math.sqrt(math.fsum(squares)), 1e-6) <= epsilon * (1 + 1e-8)
    assert 0.03 - 1e-9 <= math.fsum(squares[:QUESTIONS]) / math.fsum(squares) <= 0.3
    low, high = model.target_bounds_
    assert np.mean((y >= low) & (y <= high)) > 0.9 and high - low < 20 * y.std()
    assert model.learnt_["y"]["low"] == low and {*model.learnt_} == {*X, "y"}


def test_with_a_large_signal_the_range_of_a_target_is_in_the_histograms(frame):
    X, _ = few(frame, N)
    assert "TargetHistogram" not in [line.query for line in DPLinearRegression(2.0, delta=1e-6).plan(X).releases]
    given = DPLinearRegression(0.1, delta=1e-6, target_bounds=(0.0, 1.0), schema="learn").plan(X)
    assert "TargetHistogram" not in [line.query for line in given.releases]


@pytest.mark.filterwarnings("ignore::skdp.privacy.errors.LowSignalWarning")
@pytest.mark.parametrize("epsilon", (0.3, 2.0))
@pytest.mark.parametrize("values", [[0.0], *slow([7], [-1e300], [True, False], np.float32([0.1, 0.2]))], ids=str)
def test_targets_of_any_values_have_a_model_of_few_records(values, epsilon, frame):
    X, _ = few(frame)
    model = fitted(DPTabularRegressor(epsilon, delta=1e-6, adjacency="zero_out"), X, np.resize(values, len(X)))
    assert np.isfinite(model.predict(X)).all() and np.isfinite(model.target_bounds_).all()


@pytest.mark.filterwarnings("ignore::skdp.privacy.errors.LowSignalWarning")
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", (0.3, 2.0))
def test_weights_and_persons_change_no_count_of_a_search(epsilon, frame):
    """Records of weight 1, and persons of two rows that are alike, have the model of the records."""
    X, y = few(frame)
    plain = DPLinearRegression(epsilon, delta=1e-6, adjacency="zero_out")
    weighted = clone(plain).set_params(max_sample_weight=2.0)
    fitted(weighted, X, y, sample_weight=np.ones(len(X)))
    persons = clone(plain).set_params(privacy_unit="person")
    fitted(persons, pd.concat([X, X], ignore_index=True), np.tile(y, 2), persons=np.tile(np.arange(len(X)), 2))
    fitted(plain, X, y)
    assert plain.target_bounds_ == persons.target_bounds_ == weighted.target_bounds_
    np.testing.assert_allclose(persons.predict(X), plain.predict(X), rtol=1e-9)
    assert weighted.privacy_report_.releases[0].query == "TargetHistogram"

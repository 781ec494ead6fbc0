"""Models as ONNX files: the same predictions, whatever the cells; nothing but what was released."""

import hashlib
import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import skdp
from skdp import estimators as all_estimators
from skdp.estimators import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedRegression,
    DPGradientBoostingClassifier,
    DPKMeans,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMultinomialNB,
    DPQuantileRegressor,
    DPTabularClassifier,
)
from skdp.estimators._tabular import TabularModel
from skdp.estimators.additive._bins import bins_of
from skdp.estimators.boosting._trees import Trees
from skdp.export import _plain
from skdp.export._columns import spelt
from skdp.export._graph import Graph
from skdp.export._models import labels_of
from skdp.model_selection import DPGridSearchCV
from skdp.pipeline import DPPipeline
from skdp.preprocessing import BoundedScaler, LearnedSchema, RowNormClipper, from_schema
from skdp.preprocessing._categories import KnownCategories
from skdp.preprocessing._scaling import BoundedNumbers
from skdp.preprocessing._schema import Schema, TreatmentSchema
from skdp.privacy.data.bins import EDGES
from tests.helpers.sums import fits

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def slowly(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


N, D = 600, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, D))
SCORE = X @ [1.0, -1.0, 0.5]
LABELS, THREE = np.where(SCORE > 0, "yes", "no"), np.digitize(SCORE, [-0.3, 0.3])
ODD = np.vstack([X[:50], 1e3 * X[:10], np.eye(3), np.full((1, 3), 1e300), [[1e308, -1e308, 0], [1e300, 1, -0.0], [0, 5e-324, 1]]])
LOUD = {"epsilon": 100.0, "delta": 1e-3}

FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "income": np.where(RNG.random(N) < 0.1, np.nan, np.exp(RNG.normal(8, 2, N))),
        "work": RNG.choice(np.array(["clerk", "nurse", None], dtype=object), N),
        "code": RNG.integers(1, 4, N),
    }
)
SCHEMA = {
    "age": {"kind": "number", "bounds": [0, 128]},
    "income": {"kind": "number", "bounds": [0, 1e7], "scale": "log", "fill": 10},
    "work": {"kind": "category", "categories": ["clerk", "nurse"]},
    "code": {"kind": "category", "categories": [1, 2]},
}
NEW = pd.DataFrame(
    {
        "age": [18, 64.0, 128, 0, -5, 1e300, -1e300, 32, 1 / 3, 5e-324],  # knots and edges of bins are at multiples of 128 / 2^k
        "income": [np.nan, 0, 1e-12, 1e7, 1e300, -3, 10, 1, np.nan, 2.5],
        "work": ["clerk", " clerk ", "unlisted", "", None, "nurse", "other", "CLERK", "nurse", "clerk"],
        "code": [1, "1", "1.0", 2.0, "2", "01", 3, None, "zz", 1.0],
    },
)
KNOWN = {"work": ["clerk", "nurse", "unlisted", "other", "CLERK"]}
AGE, PAY = (FRAME["age"] > 50).map({True: "old", False: "young"}), FRAME["age"] + 20 * (FRAME["work"] == "nurse")


def answers(content, table):
    """Return the outputs of a model by name, from a runtime that knows nothing of the package."""
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feed = {}
    for entry in session.get_inputs():
        if entry.type == "tensor(string)":
            cells = ["" if cell is None or cell != cell else str(cell) for cell in table[entry.name]]
            feed[entry.name] = np.array(cells, dtype=object)[:, None]
        elif hasattr(table, "columns"):
            feed[entry.name] = pd.to_numeric(table[entry.name], errors="coerce").to_numpy(dtype=float)[:, None]
        else:
            feed[entry.name] = np.asarray(table, dtype=float)
    return dict(zip([entry.name for entry in session.get_outputs()], session.run(None, feed), strict=True))


METHODS = {
    **{name: "predict" for name in ("label", "prediction", "cluster")},
    **{name: "transform" for name in ("scores", "features")},
    "probabilities": "predict_proba",
    "decision": "decision_function",
}


def check_equal(model, table, categories=None):
    """Assert that an exported model gives the predictions of the model; return the names of the outputs."""
    found = answers(skdp.to_onnx(model, categories=categories).SerializeToString(), table)
    for name, values in found.items():
        own = np.asarray(getattr(model, METHODS[name])(table))
        assert values.shape == own.shape
        assert values.dtype.kind == own.dtype.kind or own.dtype.kind in "UO"
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, own, rtol=1e-12, atol=1e-12)
        else:
            assert values.tolist() == own.tolist()
    return list(found)


CLASSES, NUMBERS, THREE_CLASSES = (X, LABELS), (X, SCORE), (X, THREE)
OF_ARRAYS = [
    (DPLogisticRegression(**LOUD, data_norm=1.0), CLASSES, ["label", "probabilities", "decision"]),
    (DPLogisticRegression(**LOUD, data_norm=1.0), THREE_CLASSES, ["label", "probabilities", "decision"]),
    (DPLinearSVC(**LOUD, data_norm=1.0), CLASSES, ["label", "decision"]),
    (DPLinearSVC(**LOUD, data_norm=1.0), (X, THREE.astype(float)), ["label", "decision"]),
    (DPLinearSVC(**LOUD, data_norm=1.0), (X, SCORE > 0), ["label", "decision"]),
    (DPLinearRegression(**LOUD, data_norm=1.0, target_bounds=(-1, 1)), NUMBERS, ["prediction"]),
    (DPLinearRegression(**LOUD, data_norm=1.0, target_bounds=[(-1, 1), (0, 9)]), (X, X[:, :2]), ["prediction"]),
    (DPLinearRegression(**LOUD, data_norm=1.0, target_bounds=(0, 9), link="log"), (X, SCORE**2), ["prediction"]),
    (DPLinearRegression(epsilon=0.5, data_norm=1.0, target_bounds=(0, 9), link="log"), (X, SCORE**2), ["prediction"]),
    (DPQuantileRegressor(**LOUD, data_norm=1.0), NUMBERS, ["prediction"]),
    (DPConstrainedRegression(**LOUD, target_bounds=(-1, 1)), NUMBERS, ["prediction"]),
    (DPAUCMaximizer(**LOUD), CLASSES, ["label", "decision"]),
    (DPAUCMaximizer(**LOUD, scorer="mlp", hidden_layer_sizes=(4, 3)), CLASSES, ["label", "decision"]),
    (DPMultinomialNB(**LOUD, data_norm=2.0), (np.abs(X), THREE), ["label", "probabilities", "decision"]),
    slowly(DPKMeans(3, **LOUD), (X,), ["cluster"]),
    (DPPCA(2, **LOUD), (X,), ["scores"]),
    (DPPCA(2, **LOUD, whiten=True), (X,), ["scores"]),
    (
        DPAdditiveClassifier(**LOUD, feature_bounds=1.0, interactions=[(0, 1), (1, 2)]),
        CLASSES,
        ["label", "probabilities", "decision"],
    ),
    (DPAdditiveRegressor(**LOUD, feature_bounds=1.0, target_bounds=(-1, 1)), NUMBERS, ["prediction"]),
    (
        make_pipeline(BoundedScaler(2.0, centre=False), RowNormClipper(), DPLinearSVC(**LOUD, data_norm=1.0)),
        CLASSES,
        ["label", "decision"],
    ),
    (DPPipeline([("p", DPPCA(2, feature_bounds=1.0)), ("m", DPLinearSVC())], **LOUD), CLASSES, ["label", "decision"]),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, given, names", OF_ARRAYS, ids=lambda value: type(value).__name__)
def test_arrays_give_the_same_predictions(model, given, names):
    assert check_equal(model.fit(*given), ODD) == names


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, X, y, groups", [(*fit, None)[:4] for fit in fits()], ids=lambda value: type(value).__name__)
def test_fits_of_all_kinds_give_the_same_predictions(model, X, y, groups):
    check_equal(model.fit(X, y, **({} if groups is None else {"groups": groups})), np.vstack([X[:2000], 1e3 * X[:50]]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model, y",
    (
        (from_schema(SCHEMA), None),
        (DPAdditiveRegressor(**LOUD, schema=SCHEMA, target_bounds=(0, 150), link="log"), PAY),
        slowly(make_pipeline(from_schema(SCHEMA), DPLinearSVC(**LOUD, data_norm=1.0)), AGE),
        slowly(DPLogisticRegression(**LOUD, schema=SCHEMA), AGE),
        slowly(DPLogisticRegression(**LOUD, schema=SCHEMA, inference=True), AGE),
        slowly(DPAdditiveClassifier(**LOUD, schema=SCHEMA, interactions=[("age", "work"), ("age", "income")]), AGE),
        slowly(DPKMeans(2, **LOUD, schema=SCHEMA), None),
    ),
    ids=lambda value: type(value).__name__,
)
def test_frames_give_the_same_predictions(model, y):
    check_equal(model.fit(FRAME, y), NEW)


def test_every_estimator_is_exported_or_refused_with_a_reason():
    """A new estimator needs a line in one of the tables."""
    from skdp.export._columns import TRANSFORMERS
    from skdp.export._models import PREDICTORS
    from skdp.export._onnx import REFUSED

    known = {*PREDICTORS, *TRANSFORMERS, *REFUSED}
    kinds = [getattr(all_estimators, name) for name in all_estimators.__all__]
    assert [kind.__name__ for kind in kinds if kind not in known and not issubclass(kind, TabularModel)] == []


@pytest.mark.parametrize(
    "model, error, message",
    (
        (DPLinearSVC(), NotFittedError, "not fitted"),
        (LogisticRegression().fit(X, LABELS), TypeError, "LogisticRegression is not exported to ONNX"),
        (make_pipeline(StandardScaler(), DPLinearSVC(**LOUD)), TypeError, "StandardScaler is not exported to ONNX"),
        (
            make_pipeline(ColumnTransformer([("n", BoundedScaler(1.0), [0])]), DPLinearSVC(**LOUD)),
            TypeError,
            "as from_schema makes it alone",
        ),
        (type("Own", (DPLinearSVC,), {"__init__": DPLinearSVC.__init__})(**LOUD), TypeError, "Own is not exported"),
    ),
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_exported_is_named(model, error, message):
    fitted = model if error is NotFittedError else model.fit(X, LABELS)
    with pytest.raises(error, match=message):
        skdp.to_onnx(fitted)


@pytest.mark.filterwarnings("ignore")
def test_the_file_is_whole_and_states_the_guarantee(tmp_path):
    import onnx

    model = DPLinearSVC(**LOUD, data_norm=1.0).fit(X, LABELS)
    found = model.to_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == found.SerializeToString(deterministic=True)
    facts = {entry.key: entry.value for entry in onnx.load(tmp_path / "model.onnx").metadata_props}
    report = model.privacy_report_
    assert facts == {
        "skdp.version": skdp.__version__,
        "skdp.private": "true",
        "skdp.epsilon": repr(model.privacy_spent_.epsilon),
        "skdp.delta": repr(model.privacy_spent_.delta),
        "skdp.adjacency": "replace_one",
        "skdp.privacy_unit": "record",
        "skdp.report_sha256": hashlib.sha256(report.to_json().encode()).hexdigest(),
        "skdp.classes": json.dumps(["no", "yes"]),
    }
    assert found.doc_string == report.summary
    with pytest.raises(ValueError, match="expected a name that ends in one of"):
        model.to_onnx(tmp_path / "model.pb")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_states_the_budgets_of_its_steps_as_their_reports_do():
    """A private pipeline within it spent one budget, and not the sum of those of its steps; so it is with a search."""
    steps = [("columns", DPPCA(2, feature_bounds=2.0)), ("model", DPLogisticRegression(classes=["no", "yes"]))]
    private = DPPipeline(steps, epsilon=3.0, delta=1e-5)
    found = skdp.to_onnx(make_pipeline(BoundedScaler((-2, 2)), private).fit(X, LABELS))
    facts = {entry.key: entry.value for entry in found.metadata_props}
    assert (float(facts["skdp.epsilon"]), float(facts["skdp.delta"])) == private.privacy_spent_


@pytest.mark.filterwarnings("ignore")
def test_a_file_is_private_if_all_steps_are():
    steps = DPPCA(2, epsilon=np.inf, feature_bounds=1.0), DPLinearSVC(**LOUD, data_norm=1.0)
    found = skdp.to_onnx(make_pipeline(*steps).fit(X, LABELS))
    assert {entry.key: entry.value for entry in found.metadata_props}["skdp.private"] == "false"
    columns = ColumnTransformer([("age", BoundedScaler((0, 99)), ["age"])], remainder="passthrough").fit(FRAME[["age", "income"]])
    with pytest.raises(TypeError, match="as from_schema makes it alone"):
        skdp.to_onnx(columns)
    with pytest.raises(TypeError, match="a pipeline may shorten rows"):
        skdp.to_sklearn(make_pipeline(BoundedScaler(2.0), steps[1]))


def test_a_saddle_problem_has_no_predictions_to_export():
    model = skdp.DPMinimax(None)
    model.primal_ = np.zeros(2)
    with pytest.raises(TypeError, match="DPMinimax is not exported to ONNX: it has no predictions"):
        model.to_onnx()


OF_PLAIN = [
    (DPLogisticRegression(**LOUD, data_norm=1.0), CLASSES, "LogisticRegression"),
    (DPLogisticRegression(**LOUD, data_norm=1.0), THREE_CLASSES, "LogisticRegression"),
    (DPLinearSVC(**LOUD, data_norm=1.0), (X, THREE.astype(float)), "LinearSVC"),
    (DPAUCMaximizer(**LOUD), CLASSES, "LinearSVC"),
    (DPQuantileRegressor(**LOUD, data_norm=1.0), NUMBERS, "TransformedTargetRegressor"),
    (DPLinearRegression(**LOUD, data_norm=1.0, target_bounds=[(-1, 1), (0, 0.5)]), (X, X[:, :2]), "TransformedTargetRegressor"),
    (DPLinearRegression(**LOUD, data_norm=1.0, target_bounds=(0, 9), link="log"), (X, SCORE**2), "TransformedTargetRegressor"),
    (DPAdditiveClassifier(**LOUD, feature_bounds=1.0), CLASSES, "Pipeline"),
    (DPAdditiveRegressor(**LOUD, feature_bounds=1.0, target_bounds=(-1, 1)), NUMBERS, "Pipeline"),
    slowly(DPKMeans(3, **LOUD, feature_bounds=2.0), (X,), "Pipeline"),
    (DPPCA(2, **LOUD, feature_bounds=2.0, whiten=True), (X,), "Pipeline"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, given, kind", OF_PLAIN, ids=lambda value: type(value).__name__)
def test_plain_objects_of_arrays_give_the_same_predictions(model, given, kind):
    model.fit(*given)
    check_plain(model, np.vstack([X[:50], 9 * X[:50], np.eye(3)]), kind)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model, y",
    (
        (DPAdditiveClassifier(**LOUD, schema={name: SCHEMA[name] for name in ("age", "income", "work")}), AGE),
        slowly(
            DPLogisticRegression(**LOUD, schema={name: SCHEMA[name] for name in ("age", "income", "work")}, inference=True), AGE
        ),
        slowly(DPLogisticRegression(**LOUD, schema={"work": SCHEMA["work"]}), AGE),
    ),
    ids=lambda value: type(value).__name__,
)
def test_plain_objects_of_frames_give_the_same_predictions(model, y):
    names = list(model.schema)
    check_plain(model.fit(FRAME[names], y), NEW.loc[NEW.index != 1, names])  # whose text has blanks around it


@pytest.mark.filterwarnings("ignore")
def test_plain_objects_fill_columns_of_any_type():
    """A column of integers has no missing cells, and one of objects may have None."""
    model = DPAdditiveClassifier(**LOUD, schema={"age": SCHEMA["age"] | {"fill": 50}}).fit(FRAME[["age"]], AGE)
    for cells in (np.arange(3), np.array([1, None, 90], dtype=object), np.array([1, np.nan, 90], dtype=np.float32)):
        check_plain(model, pd.DataFrame({"age": cells}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("schema", (Schema, TreatmentSchema))
def test_plain_columns_are_those_of_the_schema(schema):
    """Numbers of a schema shorten rows, unless it keeps their units."""
    names, table = ["work", "again"] if schema is Schema else ["age", "income", "work"], NEW.assign(again=NEW["work"])
    facts = Schema.read({name: {**SCHEMA, "again": SCHEMA["work"]}[name] for name in names})
    facts = facts if schema is Schema else TreatmentSchema.of(facts)
    table = table.loc[table.index != 1, names]
    found = _plain.columns_of(SimpleNamespace(schema_=facts)).transform(table)
    np.testing.assert_allclose(found, from_schema(facts).fit(table).transform(table), rtol=1e-14)


def test_columns_that_plain_objects_have_not_are_named():
    for step, facts, reason in (
        (_plain.in_units, FACTS["far"], "numbers were learned"),
        (_plain.in_units, {"kind": "number", "bounds": [-1, 1], "scale": "log"}, "logarithms of negative numbers"),
        (_plain.levels, {"kind": "category", "buckets": [1]}, "by a hash"),
        (_plain.levels, {"kind": "category", "categories": ["u", "other"]}, "several spellings, and so has 'other'"),
        (_plain.levels, {"kind": "category", "categories": ["True"]}, "several spellings"),
    ):
        with pytest.raises(_plain.NotPlain, match=reason):
            step(Schema.read({"c": facts}).columns["c"])
    with pytest.raises(ValueError, match="NaN"):
        _plain.in_units(Schema.read({"c": SCHEMA["age"]}).columns["c"]).fit_transform(np.array([[np.nan]]))


@pytest.mark.filterwarnings("ignore")
def test_plain_objects_hold_copies_and_names_and_the_least_variance():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DPLinearSVC(**LOUD, feature_bounds=1.0).fit(frame, LABELS)
    plain = model.to_sklearn()
    assert plain.feature_names_in_.tolist() == ["a", "b", "c"] and not np.shares_memory(plain.coef_, model.coef_)
    components = DPPCA(2, **LOUD, feature_bounds=2.0, whiten=True).fit(X)
    components.explained_variance_ = np.array([1.0, 0.4]) * components.noise_edge_
    check_plain(components, X[:9])
    assert components.to_sklearn()[0].var_.tolist() == (components.scale_**2).tolist()
    clusters = DPKMeans(2, **LOUD)
    clusters.cluster_centers_, clusters.scale_ = np.array([[1.0, 2.0], [4.0, 5.0]]), np.array([1.0, 2.0])
    assert clusters.to_sklearn()[-1].cluster_centers_.tolist() == [[1.0, 1.0], [4.0, 2.5]]
    clusters.n_features_in_ = 2
    check_equal(clusters, np.array([[1.0, 2.0], [4.0, 4.0], [2.0, 4.5]]))


@pytest.mark.filterwarnings("ignore")
def test_boosted_models_are_plain_where_they_have_no_trees():
    model = DPAdditiveClassifier(**LOUD, feature_bounds=1.0).fit(*CLASSES)
    boosted = with_trees(model, DPGradientBoostingClassifier(**LOUD, feature_bounds=1.0), 1)
    with pytest.raises(TypeError, match="no public class"):
        boosted.to_sklearn()
    boosted.trees_ = None
    check_plain(boosted, X[:9], "Pipeline")


def check_plain(model, table, kind=None):
    plain = model.to_sklearn()
    assert kind in (None, type(plain).__name__) and type(plain).__module__.startswith("sklearn.")
    assert b"skdp" not in pickle.dumps(plain)
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(model, name) and not (name == "transform" and isinstance(model, DPKMeans)):
            own, others = getattr(model, name)(table), getattr(plain, name)(table)
            if name == "predict" and not hasattr(model, "target_bounds_"):
                assert others.tolist() == own.tolist()
            else:
                np.testing.assert_allclose(others, own, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model, given, reason",
    (
        (DPMultinomialNB(**LOUD), (np.abs(X), LABELS), "no public class"),
        (DPAdditiveClassifier(**LOUD, feature_bounds=1.0, interactions=[(0, 1)]), CLASSES, "pairs of columns"),
        (DPLinearSVC(**LOUD, schema={"age": SCHEMA["age"]}), (FRAME[["age"]], AGE), "longer than 1"),
        (DPLinearSVC(**LOUD, schema={"code": SCHEMA["code"]}), (FRAME[["code"]], AGE), "several spellings"),
        (DPLinearRegression(epsilon=0.5, data_norm=1.0, target_bounds=(0, 9), link="log"), (X, SCORE**2), "bent"),
    ),
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_plain_object_names_the_other_export(model, given, reason):
    with pytest.raises(TypeError, match=f"{reason}.*to_onnx"):
        model.fit(*given).to_sklearn()


LEARNED = pd.DataFrame(
    {**FRAME.drop(columns="code"), "day": RNG.integers(0, 1000, N) * 86400.0, "code": RNG.integers(1, 4, N).astype(str)}
)
# Texts of blanks alone count as missing.
BLANK = LEARNED[40:42].assign(work=[" ", "  "])
LATER = pd.concat([LEARNED[:40], BLANK, pd.DataFrame({**NEW, "day": [np.nan, np.inf, -np.inf, *range(7)]})], ignore_index=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model, y",
    (
        (LearnedSchema(**LOUD), None),
        slowly(LearnedSchema(**LOUD, output="units"), None),
        slowly(DPLogisticRegression(**LOUD), AGE),
        slowly(DPLinearRegression(**LOUD), PAY),
        slowly(DPPCA(**LOUD), None),
        slowly(DPAdditiveClassifier(**LOUD), AGE),
        slowly(DPGradientBoostingClassifier(**LOUD), AGE),
        slowly(DPTabularClassifier(**LOUD), AGE),
        slowly(DPPipeline([("s", LearnedSchema()), ("p", DPPCA(2)), ("m", DPLogisticRegression())], **LOUD), AGE),
        slowly(DPGridSearchCV(DPLogisticRegression(), {"alpha": [0.0, 0.1]}, **LOUD), AGE),
    ),
    ids=lambda value: type(value).__name__,
)
def test_learned_columns_give_the_same_predictions(model, y):
    model.fit(LEARNED, y)
    check_equal(model, LATER, {**KNOWN, "code": [1, 2, 3, "zz"]})


# What may be learned of a number: each scale, a core of one value, a fill that is not the centre, indicators, ends far away.
FACTS = {
    "sign": {"kind": "number", "bounds": [0, 5], "scale": "sign", "core": [2, 2], "centre": 2.5},
    "flat": {"kind": "number", "bounds": [3, 4], "core": [3, 3], "centre": 3},
    "log": {
        "kind": "number",
        "bounds": [-9, 1e6],
        "scale": "log",
        "core": [1, 99],
        "centre": 5,
        "unit": 2.5,
        "fill": 7,
        "missing": True,
    },
    "whole": {"kind": "number", "bounds": [0, 9], "core": [0, 3], "centre": 1, "integers": [0, 1, 2.5], "weight": 0.5},
    "far": {"kind": "number", "bounds": [-1e9, 1e9], "core": [0, 1], "centre": 0.5, "logarithm": 0.25},
    "near": {"kind": "number", "bounds": [-100, 200], "core": [0, 100], "centre": 50, "logarithm": 1000.0},
}
ENDS = [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -1.0, 0.0, 1.0, 2.5, 2.75, 3.0, 3.5, 50.0, 1e6]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FACTS)
def test_learned_facts_of_numbers_give_the_same_rows(name):
    schema, table = {name: FACTS[name]}, pd.DataFrame({name: ENDS})
    check_equal(from_schema(schema).fit(table), table)
    rows = pd.DataFrame({name: np.resize(ENDS[5:], 400)})
    model = DPAdditiveClassifier(**LOUD, schema=schema).fit(rows, rows[name] > 2)
    check_equal(model, table)
    boosted = with_trees(model, DPGradientBoostingClassifier(**LOUD, schema=schema), 1)
    check_equal(boosted, table)


@pytest.mark.filterwarnings("ignore")
def test_codes_need_no_spellings_and_missing_text_has_none():
    codes = {"code": {"kind": "category", "buckets": [0, 1, 2], "codes": True, "missing": True}}
    table = pd.DataFrame({"code": [0, 1.0, "2", 3, None, "zz"]})
    check_equal(from_schema(codes).fit(table), table)
    texts = {"work": {"kind": "category", "buckets": [7, 9], "missing": True}}
    check_equal(from_schema(texts).fit(LATER[["work"]]), LATER[["work"]], {"work": [None, *KNOWN["work"]]})
    units = LearnedSchema(**LOUD, output="units").fit(LEARNED[["age"]])
    check_equal(units, pd.DataFrame({"age": [1e300, -1e300, 50.0]}))


@pytest.mark.filterwarnings("ignore")
def test_learned_text_needs_spellings_that_the_user_knows():
    model = LearnedSchema(**LOUD).fit(LEARNED[["age", "work"]])
    with pytest.raises(ValueError, match=r"'work' was learned by a hash .* to_onnx\(categories=\{'work': "):
        model.to_onnx()
    with pytest.raises(ValueError, match=r"categories has the columns \['wrok'\]"):
        model.to_onnx(categories={"work": ["clerk"], "wrok": ["clerk"]})
    with pytest.raises(TypeError, match=r"categories=\['clerk'\]; expected a dict"):
        model.to_onnx(categories=["clerk"])
    found = answers(model.to_onnx(categories={"work": ["clerk"]}).SerializeToString(), LATER[["age", "work"]])
    others = LATER[["age", "work"]].assign(
        work=LATER["work"].where(LATER["work"].isin(["clerk", " clerk ", "", " ", "  ", None]), "any other")
    )
    np.testing.assert_allclose(found["features"], model.transform(others), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_outputs", (1, pytest.param(3, marks=pytest.mark.slow)))
def test_trees_at_edges_of_bins_and_means_over_columns(n_outputs):
    """Made-up trees: public draws, with a column of bin weights 0, as where the releases tell next to nothing of a part."""
    y = AGE if n_outputs == 1 else FRAME["code"]
    model = DPAdditiveClassifier(**LOUD, schema=SCHEMA).fit(FRAME, y)
    boosted = with_trees(model, DPGradientBoostingClassifier(**LOUD, schema=SCHEMA), n_outputs)
    check_equal(boosted, NEW)
    # At edges of bins up to rounding, as the logarithms are, and less than half a fine bin below them; leaves beyond 8 bits.
    edges = np.concatenate([EDGES, EDGES - 2.0**-18])
    deep = with_trees(model, DPGradientBoostingClassifier(**LOUD, schema=SCHEMA), n_outputs, depth=9)
    rows = {"age": 128 * edges, "income": np.expm1(edges * np.log1p(1e7)), "work": "nurse", "code": 1}
    check_equal(deep, pd.DataFrame(rows))
    assert (boosted.decision_function(NEW) != model.decision_function(NEW)).any()
    nodes = [node.op_type for node in boosted.to_onnx().graph.node]
    end = len(nodes) - nodes[::-1].index("ReduceSum")
    # Sides of all columns, then their sums: the other order takes the memory of all columns at the same time.
    assert nodes[end - 8 : end] == ["Cast", "Add", "Add", "Add", "Add", "Gather", "Cast", "ReduceSum"]


def with_trees(model, boosted, n_outputs, depth=3):
    """Return a boosted model with the functions of an additive one, and made-up trees."""
    vars(boosted).update({name: value for name, value in vars(model).items() if name.endswith("_")})
    boosted.trees_ = made_trees(model.basis_, n_outputs, depth)
    return boosted


def made_trees(basis, n_outputs, depth):
    rng, bins, n_trees = np.random.default_rng(1), bins_of(basis), 20
    columns = rng.integers(len(bins.columns), size=(n_trees, depth))
    splits = rng.random((n_trees, depth, max(bins.sizes))) < 0.5
    values = rng.normal(size=(n_trees, n_outputs, 2**depth)).astype(np.float32)
    averages = {
        place: (np.arange(bins.sizes[place]) % 2) / (bins.sizes[place] // 2) for place in (0, 2) if place < len(bins.sizes)
    }
    return Trees(bins, columns, np.packbits(splits, axis=2), values, None, averages)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind, y",
    (
        (LearnedSchema, None),
        slowly(DPLogisticRegression, AGE),
        slowly(DPGradientBoostingClassifier, AGE),
    ),
)
def test_no_record_and_no_number_of_rows_is_in_a_file(kind, y):
    """A rare text and a rare number; with persons, the number of rows is private."""
    ids = np.arange(N) // 2
    frame = LEARNED.assign(
        age=LEARNED["age"].where(LEARNED.index != 7, 77.1234567), work=LEARNED["work"].where(LEARNED.index != 7, "canary")
    )
    model = kind(epsilon=1.0, delta=1e-3, privacy_unit="person").fit(frame, y, persons=ids)
    found = model.to_onnx(categories=KNOWN | {"code": [1, 2, 3]})
    content, numbers = found.SerializeToString(), constants(found)
    assert b"canary" not in content and b"77.1234567" not in content
    assert not np.isin([77.1234567, 77.1234567 / 2, float(N)], numbers).any()
    assert not any(str(N) in entry.value for entry in found.metadata_props if "sha" not in entry.key)


def constants(found):
    """Return all numbers of a file."""
    from onnx import numpy_helper

    arrays = [numpy_helper.to_array(tensor) for tensor in found.graph.initializer]
    return np.concatenate([array.ravel().astype(float) for array in arrays if array.dtype.kind in "fiu"])


@pytest.mark.filterwarnings("ignore")
def test_exports_read_no_attribute_that_a_fit_has_not_released(monkeypatch):
    """What is exported of a model equals what is exported of its released attributes alone, whatever else it holds."""
    model = DPLinearSVC(**LOUD, data_norm=1.0).fit(X, LABELS)
    content = model.to_onnx().SerializeToString(deterministic=True)
    model.records_ = X
    assert model.to_onnx().SerializeToString(deterministic=True) == content


TEXTS, CELLS = pd.DataFrame({"t": ["a", "b", "c", "b"]}), np.array([[-9.0, 0.5], [0.25, 9.0], [-0.0, -0.75]])


@pytest.mark.parametrize(
    "step, table",
    (
        (BoundedScaler([(-4, 1), (0, 2)], centre=False), CELLS),
        (BoundedScaler([(-4, 1), (0, 2)], scale="log"), CELLS),
        (BoundedScaler([(-4, 1), (0, 2)], fill=5.0), np.where(CELLS > 1, np.nan, CELLS)),
        (BoundedScaler(2.0, centre=False, scale="log"), 1e-12 * CELLS),  # as exact as where numbers are larger
        (BoundedNumbers([(-4, 1), (0, 2)], fill=5.0), np.where(CELLS > 1, np.nan, CELLS)),
        (make_pipeline(BoundedScaler(9.0), RowNormClipper(0.5)), CELLS),
        (make_pipeline(BoundedScaler(9.0), RowNormClipper(0.5)), CELLS / 99),
        (OneHotEncoder(categories=[["a", "b", "c"]], drop=["b"], sparse_output=False), TEXTS),
        (OneHotEncoder(categories=[["b", "a"]], handle_unknown="ignore", sparse_output=False), TEXTS),
    ),
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_transformers_alone_give_the_same_rows(step, table):
    step.fit(table[:2] if isinstance(step, OneHotEncoder) and step.drop is None else table)
    found = answers(skdp.to_onnx(step).SerializeToString(), table)["features"]
    np.testing.assert_allclose(found, step.transform(table), rtol=1e-14)


def test_text_is_no_number():
    with pytest.raises(TypeError, match="The model takes text as numbers; expected OneHotEncoder"):
        skdp.to_onnx(KnownCategories(["a", "b"]).fit(TEXTS))


def test_encoders_that_learn_or_refuse_text():
    """Where the encoder raises an error, an output means nothing, and is no row of another text."""
    encoder = OneHotEncoder(categories=[["a", "b"]], sparse_output=False).fit(TEXTS[:2])
    found = answers(skdp.to_onnx(encoder).SerializeToString(), TEXTS)["features"]
    assert np.isnan(found[2]).all() and found[[0, 1, 3]].tolist() == [[1, 0], [0, 1], [0, 1]]
    for given in ({}, {"categories": [["a", "b", "c"]], "drop": "first"}):
        with pytest.raises(ValueError, match="expected lists of what there is and of what to drop"):
            skdp.to_onnx(OneHotEncoder(**given).fit(TEXTS))


def test_files_have_an_old_version_that_many_programs_read():
    found = from_schema(SCHEMA).to_onnx()
    assert (found.ir_version, {entry.domain: entry.version for entry in found.opset_import}) == (8, {"": 17, "ai.onnx.ml": 3})


@pytest.mark.filterwarnings("ignore")
def test_a_decision_of_0_and_means_of_counts_with_exposures():
    model = DPLinearSVC(**LOUD, data_norm=1.0).fit(X, LABELS)
    several = DPLinearSVC(**LOUD, data_norm=1.0).fit(X, THREE)
    for each in (model, several):  # the first of several classes
        each.coef_, each.intercept_ = 0 * each.coef_, 0 * each.intercept_
        check_equal(each, X[:3])
    counts = DPLinearRegression(epsilon=0.5, data_norm=1.0, target_bounds=(0, 9), link="log_count", max_exposure=1.0)
    counts.fit(X, np.rint(9 * SCORE**2).clip(0, 9), exposure=RNG.uniform(0.2, 0.8, N))
    assert counts.calibration_.exposure not in (None, 1.0)
    check_equal(counts, ODD)


def test_classes_that_a_file_cannot_have_are_named():
    with pytest.raises(TypeError, match=r"The classes have the type datetime64\[D\], which ONNX has not"):
        labels_of(np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"))


def test_outputs_give_way_to_columns_of_their_names():
    schema = {"features": {"kind": "number", "bounds": [0, 1]}}
    found = answers(from_schema(schema).to_onnx().SerializeToString(), pd.DataFrame({"features": [0.0, 1.0]}))
    assert list(found) == ["features_"] and found["features_"].shape == (2, 1)


@pytest.mark.filterwarnings("ignore")
def test_products_that_overflow_one_row_and_the_order_of_inputs():
    """Rows with products that overflow although their sum does not, and tiny ones; a table of one row."""
    model = DPLinearSVC(**LOUD, data_norm=1.0).fit(X, LABELS)
    big = 2.0**600  # products of powers of 2 are exact
    model.coef_, model.intercept_ = np.array([[big, -big, 0.0]]), np.array([0.25])
    check_equal(model, np.array([[big, big, 1.0], [-big, -big, 0.5], [4 / big, 0.0, 1.0], [-big, 0.0, 1.0]]))
    check_equal(model, X[:1])
    schema = {name: SCHEMA[name] for name in ("work", "age")}  # in the graph numbers come first
    other = DPLinearSVC(**LOUD, schema=schema).fit(FRAME[["work", "age"]], AGE)
    assert [entry.name for entry in other.to_onnx().graph.input] == ["work", "age"]
    check_equal(other, NEW[["work", "age"]])


def test_constants_are_stored_once_if_type_and_shape_are_the_same():
    graph, values = Graph({}), (0.0, np.int64(0), np.zeros(1), np.zeros((1, 1)), np.zeros((2, 1)), np.zeros((1, 2)))
    assert len({graph.constant(value) for value in (*values, *values)}) == len(values)


def test_text_may_have_a_blank_on_each_side_and_the_first_category_counts():
    assert spelt({"a": 0}) == {"a": 0, " a": 0, "a ": 0, " a ": 0}
    assert {*spelt({"1": 0, "1.0": 1}).values()} == {0}

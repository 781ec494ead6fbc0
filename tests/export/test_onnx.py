"""Models as ONNX files: the same predictions, whatever the cells; nothing but what was released."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import estimators as all_estimators
from skdp.estimators import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedRegression,
    DPKMeans,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMultinomialNB,
    DPQuantileRegressor,
)
from skdp.estimators._tabular import TabularModel
from skdp.pipeline import DPPipeline
from skdp.preprocessing import BoundedScaler, RowNormClipper, from_schema
from tests.helpers.sums import fits

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

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


def slowly(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


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
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, own, rtol=1e-12, atol=1e-12)
        else:
            assert values.dtype.kind == own.dtype.kind or own.dtype.kind in "UO"
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
    (DPMultinomialNB(**LOUD), (np.abs(X), THREE), ["label", "probabilities", "decision"]),
    (DPKMeans(3, **LOUD), (X,), ["cluster"]),
    (DPPCA(2, **LOUD), (X,), ["scores"]),
    (DPPCA(2, **LOUD, whiten=True), (X,), ["scores"]),
    (DPAdditiveClassifier(**LOUD, feature_bounds=1.0, interactions=[(0, 1)]), CLASSES, ["label", "probabilities", "decision"]),
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
    with pytest.raises(ValueError, match="expected a name that ends in one of"):
        model.to_onnx(tmp_path / "model.pb")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]

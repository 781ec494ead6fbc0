"""Model files: what save_model writes comes back, and a crafted file runs no code."""

import contextlib
import functools
import importlib
import inspect
import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import joblib
import lasting_models
import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, StandardScaler

import skdp
from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    _model_files,
    load_model,
    save_model,
)
from skdp.__main__ import main
from skdp._model_files import ESTIMATORS, TRUSTED
from skdp._scikit_learn.copies import BoundToLedgers
from skdp.data import chunks
from skdp.estimators.boosting import _rule
from skdp.minimax import AUCSaddle
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV
from skdp.preprocessing import Schema
from skdp.scorers import LinearScorer
from skdp.solvers import SOLVERS, GradientDescent, Solver

MARKER = "code-was-run"
TOUCH = f"import pathlib; pathlib.Path({MARKER!r}).touch()"


class Payload:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return exec, (TOUCH,)


def text(value):
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value), "is_json": True}


def sequence(*nodes, kind="tuple"):
    return {"__class__": kind, "__module__": "builtins", "__loader__": f"{kind.title()}Node", "content": list(nodes)}


def called(name, *arguments):
    """A node that calls what it names."""
    module, _, attribute = name.rpartition(".")
    kind = {"__class__": attribute, "__module__": module, "__loader__": "ConstructorFromReduceNode"}
    return {**kind, "content": sequence(*arguments)}


def write_crafted(path, node):
    protocol = json.loads(zipfile.ZipFile(io.BytesIO(skops.io.dumps(1))).read("schema.json"))["protocol"]
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("schema.json", json.dumps({**node, "protocol": protocol, "_skops_version": "0"}))
    return path


EMPTY = {
    **{"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "content": {}},
    "key_types": sequence(kind="list"),
}
EVALUATED = f"__import__('pathlib').Path({MARKER!r}).touch()"
CRAFTED = {
    "numpy.testing.runstring": called("numpy.testing.runstring", text(TOUCH), EMPTY),
    "numpy.f2py.crackfortran.myeval": called("numpy.f2py.crackfortran.myeval", text(EVALUATED)),
    "skdp.load_model": called("skdp.load_model", text("inner.joblib")),
    "sklearn.utils._testing.check_output": called(
        "sklearn.utils._testing.check_output", sequence(text(sys.executable), text("-c"), text(TOUCH), kind="list")
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with a table and a pickle that runs code."""
    monkeypatch.chdir(tmp_path)
    joblib.dump(Payload(), "inner.joblib")
    Path("table.csv").write_text("a\n1\n")
    return tmp_path


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_runs_no_code(name, folder, capsys):
    path = write_crafted(Path("crafted.skops"), CRAFTED[name])
    with pytest.raises(ValueError, match=r"holds the types .*which are not loaded because they could run code") as caught:
        load_model(path)
    assert name in str(caught.value)
    with pytest.raises(ValueError, match="holds the types"):
        load_model(path, trust=True)  # which is for .joblib
    assert main(["predict", "crafted.skops", "table.csv"]) == 2
    assert name in capsys.readouterr().err and not Path(MARKER).exists()


@pytest.mark.parametrize("name", [name for name in CRAFTED if name != "skdp.load_model"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_crafted_files_would_run_code(name, folder):
    """The twin: with the names trusted that begin with the name of a known package, each of them does."""
    path = write_crafted(Path("crafted.skops"), CRAFTED[name])
    assert all(given.startswith(("skdp.", "sklearn.", "numpy.")) for given in skops.io.get_untrusted_types(file=path))
    with contextlib.suppress(ValueError):  # of myeval, afterwards
        skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    assert Path(MARKER).exists()


def test_a_pickle_is_read_only_where_it_is_trusted(folder, capsys):
    with pytest.raises(ValueError, match=r"can run any code while it is read.*trust=True"):
        load_model("inner.joblib")
    with pytest.raises(ValueError, match="can run any code"):
        load_model("inner.joblib", trust="yes")
    assert main(["predict", "inner.joblib", "table.csv"]) == 2
    error = capsys.readouterr().err
    assert "--trust" in error and error.count("\n") == 1 and not Path(MARKER).exists()
    assert main(["predict", "inner.joblib", "table.csv", "--trust"]) == 2
    assert capsys.readouterr().err.startswith("warning: inner.joblib can run any code while it is read")
    assert Path(MARKER).exists()  # the twin: it does run code


def test_a_method_of_a_trusted_class_is_not_trusted(folder):
    skops.io.dump(StandardScaler().fit, "method.skops")
    ours = {"__class__": "Full", "__module__": "skdp.samplings"}
    held = {**ours, "__loader__": "MethodNode", "content": {"func": "scaled", "obj": {**ours, "__loader__": "ObjectNode"}}}
    write_crafted(Path("ours.skops"), held)
    for path in ("method.skops", "ours.skops"):
        with pytest.raises(ValueError, match="holds the types"):
            load_model(path)


def by(loader, name, **content):
    """A node of a name, built by any loader."""
    module, _, attribute = name.rpartition(".")
    return {"__class__": attribute, "__module__": module, "__loader__": loader, **content}


TANH, STATE = by("FunctionNode", "numpy.tanh"), by("DictNode", "builtins.dict", content={}, key_types=sequence(kind="list"))
PARTIAL = {"func": TANH, "args": sequence(), "kwds": STATE, "namespace": text(None)}
MISBUILT = {  # whose names are all on the list
    "partial": by("PartialNode", "numpy.dtype", content=PARTIAL),
    "call": by("ConstructorFromReduceNode", "skdp.samplings.Nice", content=sequence(text(3))),
    "scikit-learn's class, called": by("LossNode", "sklearn.utils._bunch.Bunch", __reduce__={"args": sequence()}, content=STATE),
    "list": by("ListNode", "skdp.samplings.Nice", content=[text(3)]),
    "array": by("NdArrayNode", "skdp.samplings.Nice", type="json", content=[], shape=sequence(text(0))),
    "function": by("FunctionNode", "skdp.constraints.Box"),
    "within": by("ListNode", "builtins.list", content=[by("PartialNode", "numpy.dtype", content=PARTIAL)]),
    "within an estimator": by(
        "ObjectNode",
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
        content={**STATE, "content": {"func": by("PartialNode", "numpy.dtype", content=PARTIAL)}},
    ),
}


@pytest.mark.parametrize("name", MISBUILT)
def test_names_on_the_list_are_built_as_they_are_written_only(name, folder):
    """What a loader makes may be another thing than its name says: a partial under the name of a dtype."""
    path = write_crafted(Path("crafted.skops"), MISBUILT[name])
    types = skops.io.get_untrusted_types(file=path)
    assert set(types) <= set(TRUSTED)
    with pytest.raises(ValueError, match=r"holds the types \['[\w.]+ by \w+Node'\], which are not loaded"):
        load_model(path)


def test_a_misbuilt_name_would_be_loaded(folder):
    """The twin: by names alone, what comes is of a type that is on no list."""
    path = write_crafted(Path("crafted.skops"), MISBUILT["partial"])
    loaded = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    assert type(loaded) is functools.partial


@pytest.mark.parametrize("name", TRUSTED)
def test_the_list_names_classes(name):
    """No prefix, no function. What only the oldest scikit-learn has may be missing."""
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute, None)
    if found is None:
        assert module.startswith("sklearn.")
        return
    assert inspect.isclass(found) and f"{found.__module__}.{found.__qualname__}" == name
    assert not issubclass(found, (io.IOBase, skdp.PrivacyLedger))


HOOKS = {"__new__", "__setstate__", "__reduce__", "__reduce_ex__", "__setattr__", "__del__"}  # what reading a file may run


SEARCHES = (DPGridSearchCV, DPRandomizedSearchCV)


@pytest.mark.parametrize("kind", [*ESTIMATORS, *SOLVERS.values(), *SEARCHES], ids=lambda kind: kind.__name__)
def test_no_class_that_the_package_adds_to_the_list_runs_code_when_it_is_read(kind):
    """Estimators and solvers are on the list without a line of their own: one with a hook needs a review.

    Reviewed: `BoundToLedgers.__setstate__` makes a list; `Solver.__setattr__` sets an attribute or raises.
    """
    ours = {base for base in kind.__mro__ if base.__module__.startswith("skdp.")}
    reviewed = {(BoundToLedgers, "__setstate__"), (Solver, "__setattr__")}
    assert {(base, hook) for base in ours for hook in HOOKS & set(vars(base))} <= reviewed


class Derived(GradientDescent):
    """A solver of a user, with a name on the list and another class."""


def test_a_subclass_of_a_listed_class_is_not_trusted(folder):
    model = DPLogisticRegression(solver=Derived())
    with pytest.raises(ValueError, match=r"would hold the types \['[\w.]*test_model_files.Derived'\]"):
        save_model(model, "model.skops")
    skops.io.dump(model, "dumped.skops")
    with pytest.raises(ValueError, match="could run code"):
        load_model("dumped.skops")


def public_classes():
    """Classes of the package whose objects may be parameters, or steps of a pipeline."""
    found = {*SOLVERS.values(), *(thing for name in skdp.__all__ if isinstance(thing := getattr(skdp, name), type))}
    for unit in ("constraints", "samplings", "scorers", "preprocessing"):
        module = importlib.import_module(f"skdp.{unit}")
        found |= {thing for name in module.__all__ if isinstance(thing := getattr(module, name), type)}
    abstract = {"Constraint", "Sampling", "Scored", "Scorer", "PrivacyLedger"}
    return sorted((c for c in found if c.__name__ not in abstract and not issubclass(c, BaseException)), key=lambda c: c.__name__)


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_the_list_is_complete(kind):
    assert f"{kind.__module__}.{kind.__qualname__}" in TRUSTED


def private():
    return DPLogisticRegression(1.0, delta=1e-5, classes=[0, 1])


def numbers():
    return DPLinearRegression(1.0, delta=1e-5, target_bounds=(0, 1))


CHOSEN = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["c"]), (FunctionTransformer(np.arctan), ["b"]))
SEARCH = {"epsilon": 3.0, "delta": 1e-5, "validation_size": 0.5}
MODELS = {
    "additive": DPAdditiveClassifier(1.0, delta=1e-5, feature_bounds=[(-1, 1)] * 2, interactions=[(0, 1)], knots="private"),
    "additive numbers": DPAdditiveRegressor(1.0, delta=1e-5, feature_bounds=[(-1, 1)] * 2, target_bounds=(0, 1)),
    "link": DPLinearRegression(5.0, delta=1e-3, target_bounds=(0, 1), link="log_count"),
    "additive inference": DPAdditiveRegressor(1.0, delta=1e-5, feature_bounds=1.0, target_bounds=(0, 1), inference=True),
    "bagging": BaggingClassifier(private(), 2),
    "voting": VotingClassifier([("first", private()), ("second", private())]),
    "calibrated": CalibratedClassifierCV(private(), cv=2),
    "grid": GridSearchCV(private(), {"alpha": [0.01, 0.1]}, cv=2),
    "private grid": DPGridSearchCV(private(), [{"alpha": [0.1]}, {"data_norm": [1.0]}], **SEARCH),
    "drawn": DPRandomizedSearchCV(private(), {"alpha": [0.1, 0.2]}, n_iter=2, **SEARCH),
    "columns": make_pipeline(CHOSEN, private()),
    "dtypes": make_pipeline(SimpleImputer(), KBinsDiscretizer(2), PolynomialFeatures(), private()),  # a dtype, sparse columns
    "margins": VotingClassifier([("private", private()), ("public", SGDClassifier())]),
    "threshold": FixedThresholdClassifier(private(), threshold=0.4),
    "units": TransformedTargetRegressor(numbers(), func=np.sqrt, inverse_func=np.square, check_inverse=False),
    **{f"solver {name}": DPLogisticRegression(solver=solver()) for name, solver in SOLVERS.items()},
}


@pytest.mark.each_value
@pytest.mark.parametrize("suffix", (".skops", ".joblib"))
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_models_come_back(name, suffix, folder, rng):
    model, table = MODELS[name], pd.DataFrame(rng.uniform(-1, 1, (200, 2)), columns=["a", "b"])
    if not name.startswith("solver"):
        table = table.assign(c=np.where(table["a"] > 0, "u", "v")) if name == "columns" else table
        model = model.fit(table, (table["a"] > 0).astype(int))
    save_model(model, f"model{suffix}")
    restored = load_model(f"model{suffix}", trust=True)
    if not name.startswith("solver"):
        np.testing.assert_array_equal(restored.predict(table), model.predict(table))
    assert isinstance(restored, BaseEstimator) and repr(restored) == repr(model)
    if hasattr(model, "plan_"):
        assert restored.plan_ == model.plan_ and skdp.model_card(restored) == skdp.model_card(model)


N = 400
STATED = {
    "a": {"kind": "number", "bounds": [-1, 1]},
    "hour": {"kind": "number", "bounds": [0, 24], "fill": 3, "scale": "log"},
    "c": {"kind": "category", "categories": ["u", "v", "w"]},
    "b": {"kind": "category", "categories": [True, False]},
}


def people():
    """Columns of all kinds, the first of which decides the target."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, N), "hour": rng.integers(0, 24, N), "c": rng.choice(list("uvw"), N)})
    frame = frame.assign(b=rng.random(N) < 0.5, kind=pd.Categorical(rng.choice(list("xy"), N)), s=frame["c"].astype("string"))
    return frame.assign(
        day=pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"), code=rng.integers(3, size=N)
    )


def inputs():
    """Kinds of tables by name: X, and the parameters that state its columns."""
    frame = people()
    stated, rows = frame[list(STATED)], np.ascontiguousarray(frame[["a", "hour"]]) / [1, 24]
    names = {"kind": "category", "a": {"kind": "number", "bounds": [-1, 1]}}
    return {
        "array": (rows, {"feature_bounds": 1.0}),
        "sparse": (csr_array(rows), {}),
        "bounds by name": (frame[["a"]], {"feature_bounds": {"a": 1.0}}),
        "schema": (stated, {"schema": {"columns": STATED}}),
        "read schema": (stated, {"schema": Schema.read({"columns": STATED})}),
        "learned": (frame, {"schema": "learn"}),
        "partly learned": (frame, {"schema": names}),
        "chunks": (rows, {"feature_bounds": 1.0}),
    }


OPTIONS = {  # by parameter: values that may put another kind of part into a model
    "inference": [True],
    "fit_intercept": [False],
    "interactions": [[("a", "hour")], [(0, 1)]],
    "knots": ["private"],
    "monotone": [{"a": 1}],
    "loss": ["absolute", "huber"],
    "adjacency": ["zero_out"],
    "class_weight": [{0: 1.0, 1: 2.0}],
    "max_sample_weight": [2.0],
    "link": ["log", "log_count"],
    "delta": [0.0],
    "scorer": ["mlp"],
    "epsilon": [float("inf")],
    "whiten": [True],
}
# Values of these are numbers, texts and what other tests save, or are set by `inputs`.
PLAIN = {"alpha", "class_balance", "classes", "clip_norm", "constraint", "data_norm", "feature_bounds", "hidden_layer_sizes"}
PLAIN |= {"intercept_scaling", "l1_ratio", "positive_rate", "quantile", "radius", "random_state", "saddle", "schema", "solver"}
PLAIN |= {"max_exposure", "privacy_unit", "target_bounds", "threshold", "verbose", "n_components", "n_clusters", "scale"}


def options_of(kind):
    return [{}, *({name: value} for name in OPTIONS if name in kind._get_param_names() for value in OPTIONS[name])]


def fitted_as(kind, table, option):
    """A model, or None where the estimator does not go with the table and the option."""
    X, given = inputs()[table]
    a = X["a"].to_numpy() if isinstance(X, pd.DataFrame) else (X.toarray() if table == "sparse" else X)[:, 0]
    of_target = {"target_bounds": (-2.0 * ("link" not in option), 2.0)} if "target_bounds" in kind._get_param_names() else {}
    names = {"hidden_layer_sizes": (3,), "data_norm": 1.0 if kind is skdp.DPMinimax else None, **of_target, **given, **option}
    params = {name: value for name, value in names.items() if name in kind._get_param_names()}
    saddle = {"saddle": AUCSaddle(LinearScorer(X.shape[1]), positive_rate=0.5)} if kind is skdp.DPMinimax else {}
    model = kind(**saddle, **{"epsilon": 3.0, "delta": 1e-5, **params})
    y = (a > 0.1).astype(int) if "classes" in kind._get_param_names() or saddle else a
    inner = (chunks(lambda: [(X, y)]),) if table == "chunks" else (X, y)
    extra = {"sample_weight": np.ones(N)} if "max_sample_weight" in option else {}
    extra |= {"groups": np.arange(N) % 2} if kind is skdp.DPGroupDROClassifier else {}
    with contextlib.suppress(TypeError, ValueError, skdp.PrivacyAccountingError):
        return model.fit(*inner, **extra)
    return None


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_thought_of(kind):
    """A new one has a value in `OPTIONS`, if it puts another kind of part into a model."""
    assert set(kind._get_param_names()) <= PLAIN | set(OPTIONS)


def check_file(model, folder):
    """The file holds the model, also after all that it computes when it is asked; no part is left out."""
    if hasattr(model, "summary") and model.get_params().get("inference"):
        model.summary()
    save_model(model, "model.skops")
    restored = load_model("model.skops")
    assert repr(restored.get_params()) == repr(model.get_params())
    assert sorted(vars(restored)) == sorted(vars(model))
    for form in ("md", "html"):
        assert skdp.model_card(restored, format=form) == skdp.model_card(model, format=form)
    return restored


@pytest.mark.slow  # `test_a_fit_for_inference_is_saved` shows the most important case
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")
def test_what_any_fit_leaves_can_be_saved(kind, folder, monkeypatch):
    """Every input, and every option with two of them."""
    monkeypatch.setattr(_rule, "N_TREES", 2)
    cases = [
        *((table, {}) for table in inputs()),
        *((table, option) for option in options_of(kind)[1:] for table in ("array", "schema")),
    ]
    found = [model for table, option in cases if (model := fitted_as(kind, table, option)) is not None]
    for model in found:
        check_file(model, folder)
    assert len(found) > 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression))
@pytest.mark.filterwarnings("ignore")
def test_a_fit_for_inference_is_saved(kind, folder):
    for table in ("schema", "read schema", "bounds by name"):
        model = fitted_as(kind, table, {"inference": True})
        restored = check_file(model, folder)
        X = inputs()[table][0]
        np.testing.assert_array_equal(restored.predict(X), model.predict(X))
        assert str(restored.summary()) == str(model.summary())


@pytest.mark.parametrize("source", (np.random.RandomState(0), np.random.default_rng(0)))
def test_public_random_sources_come_back(source, folder):
    save_model(private().set_params(random_state=source), "model.skops")
    assert type(load_model("model.skops").random_state) is type(source)


@pytest.mark.parametrize("cut", (0, 1, 100, 2000))
@pytest.mark.parametrize("suffix", (".skops", ".joblib"))
def test_a_damaged_model_is_one_clear_error(suffix, cut, folder):
    path = Path(f"model{suffix}")
    save_model(make_pipeline(StandardScaler(), private()), path)
    path.write_bytes(path.read_bytes()[: min(cut, path.stat().st_size // 2)])
    with pytest.raises(ValueError, match="cannot be read as a model; expected a file that save_model"):
        load_model(path, trust=True)


# Of each version; those of 0.2.0 as it was released have format 0, and were compressed afterwards.
WRITTEN = sorted((Path(__file__).parent / "model_files").glob("*/*.skops"))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name} {path.stem}")
@pytest.mark.filterwarnings("ignore")
def test_models_of_earlier_versions_predict_as_they_did(path):
    """Whatever scikit-learn wrote them."""
    said = json.loads((path.parent / "predictions.json").read_text())[path.stem]
    X, model = lasting_models.inputs(8, 1)[said.pop("table")], load_model(path)
    found = lasting_models.answers(model, X)
    assert found.keys() == said.keys()
    for method, expected in said.items():
        np.testing.assert_allclose(found[method], expected, rtol=1e-12, atol=1e-12)
    assert "the noise came from a seed" in skdp.model_card(model)


def test_this_version_has_written_all_its_models():
    assert {path.stem for path in WRITTEN if path.parent.name == skdp.__version__} == {
        name for name, *_ in lasting_models.models()
    }


def rewritten(path, name, change):
    """Change a file within a model file."""
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        parts = {inner: file.read(inner) for inner in file.namelist()}
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w") as file:
        for inner, part in parts.items():
            if part is not None:
                file.writestr(inner, part)


@pytest.mark.filterwarnings("ignore")
def test_a_file_has_no_trace_of_the_run_that_wrote_it(folder):
    """No address in memory and no time: two copies, which lie at different places, are written with the same bytes."""
    model = DPAdditiveClassifier(3.0, delta=1e-5).fit(people()[["a", "c"]], np.arange(N) % 2)
    stored = pickle.dumps(pickle.loads(pickle.dumps(model)))
    copies = [pickle.loads(stored) for _ in range(2)]
    files = [_model_files.model_content(copy, Path("model.skops")) for copy in copies]
    assert files[0] == files[1]
    names = zipfile.ZipFile(io.BytesIO(files[0])).namelist()
    assert any(name.endswith(".npy") for name in names) and all(len(name.partition(".")[0]) < 9 for name in names)


@pytest.mark.parametrize("name", (_model_files.VERSIONS, "schema.json", "other"))
def test_a_file_that_grows_without_bounds_is_refused_before_it_is_unpacked(name, folder, monkeypatch):
    path = Path("model.skops")
    save_model(private(), path)
    monkeypatch.setattr(_model_files, "MOST", 10**6)
    content = _model_files._with_member(path.read_bytes(), name, " " * 10**7)
    path.write_bytes(content)
    monkeypatch.setattr(zipfile.ZipFile, "read", None)
    with pytest.raises(ValueError, match="would grow to more than 100 times its size"):
        load_model(path)


def test_a_file_says_which_version_wrote_it_and_a_later_format_is_refused(folder, rng):
    model, path = private().fit(rng.uniform(-0.5, 0.5, (50, 2)), np.arange(50) % 2), Path("model.skops")
    save_model(model, path)
    rewritten(path, "skdp.json", lambda part: None)  # as files were written before there was a format
    assert repr(load_model(path)) == repr(model)
    save_model(model, path)
    rewritten(path, "skdp.json", lambda part: json.dumps({**json.loads(part), "format": 99, "skdp": "9.9"}).encode())
    with pytest.raises(ValueError, match=r"has format 99, by skdp '9.9'; expected at most 1.*Install a newer skdp"):
        load_model(path)


def test_classes_that_have_moved_or_were_renamed_are_found(folder, rng, monkeypatch):
    """Without its line in `PLACES`, a class with another name is refused."""
    model, path = private().fit(rng.uniform(-0.5, 0.5, (50, 2)), np.arange(50) % 2), Path("model.skops")
    save_model(model, path)
    rewritten(path, "schema.json", lambda part: part.replace(b"skdp.privacy.report.statement", b"skdp.privacy.reports"))
    assert load_model(path).privacy_report_ == model.privacy_report_
    rewritten(path, "schema.json", lambda part: part.replace(b"PrivacyReport", b"Statement"))
    with pytest.raises(ValueError, match="holds the types"):
        load_model(path)
    monkeypatch.setitem(_model_files.PLACES, "Statement", "skdp.privacy.report.statement.PrivacyReport")
    assert load_model(path).privacy_report_ == model.privacy_report_

"""Nothing that leaves with a model was read from records: exports are functions of answers and of public facts."""

import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp.estimators import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPGroupDROClassifier,
    DPKMeans,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMultinomialNB,
    DPQuantileRegressor,
    DPRobustRegressor,
    DPTabularClassifier,
)
from skdp.estimators.boosting import _rule
from skdp.model_selection import DPGridSearchCV
from skdp.pipeline import DPPipeline
from skdp.preprocessing import LearnedSchema
from skdp.privacy.oracle import Oracle
from skdp.testing import reproducible_noise

pytest.importorskip("onnx")

N = 400
BUDGET = {"epsilon": 50.0, "delta": 1e-3}
GIVEN = BUDGET | {"random_state": 0}
BOUNDED, FRAME, RANGE = GIVEN | {"feature_bounds": 1.0}, GIVEN | {"schema": "learn"}, {"target_bounds": (-1, 1)}
SCHEMA = {
    "n": {"kind": "number", "bounds": [-1, 1]},
    "amount": {"kind": "number", "bounds": [0, 9000], "scale": "log"},
    "t": {"kind": "category", "categories": ["x", "y"]},
}
# Cells, targets, labels of rows and persons of the first table; their bytes and digits are looked for in all that leaves.
NUMBERS, TEXT, PERSON = (0.7312345678912345, -0.6187654321987654, 0.5243219876123456), "zz-canary", 771234567
CANARIES = [
    *(kind(number * factor).tobytes() for number in NUMBERS for kind in (np.float32, np.float64) for factor in (1, 0.5)),
    *(text.encode() for text in (TEXT, str(PERSON), "7312345", "6187654", "5243219")),
    np.int64(PERSON).tobytes(),
]
KNOWN = {"t": ["x", "y", "w"]}


def arrays(which):
    """A table of numbers and targets; the two tables share no cell."""
    rng = np.random.default_rng(which)
    X = rng.uniform(-1, 1, (N, 3))
    if which == 1:
        X[7] = NUMBERS
    return X, X[:, 0] if which == 1 else -X[::-1, 0]


def frames(which):
    """A table with labels of rows, text and amounts."""
    X, y = arrays(which)
    text = np.array(["x", "y"] if which == 1 else ["w", None], dtype=object)[np.arange(N) % 2]
    frame = pd.DataFrame({"n": X[:, 0], "amount": 1000 * np.abs(X[:, 1]), "t": text})
    if which == 1:
        frame.loc[7, "t"] = TEXT
        frame.index = pd.Index([f"{TEXT} {row}" for row in range(N)])
    return frame, y


def left_by(model, given, which, answer, folder, monkeypatch):
    """All that leaves with a model, uncompressed, by name; its table is gone before."""
    X, y = frames(which) if "frame" in given else arrays(which)
    X = np.abs(X) if "counts" in given else X
    y = None if "none" in given else y if "numbers" in given else np.digitize(y, [-0.3, 0.3]) if "three" in given else y > 0
    further = {"groups": np.arange(N) // which % 2} if "groups" in given else {}
    further |= {"exposure": np.linspace(0.2 * which, 1, N)} if "exposure" in given else {}
    further |= {"persons": (PERSON if which == 1 else 0) + np.arange(N) // 2} if "persons" in given else {}
    with monkeypatch.context() as patched, warnings.catch_warnings(), reproducible_noise(0):
        warnings.simplefilter("ignore")
        patched.setattr(_rule, "N_TREES", 4)
        patched.setattr(Oracle, "_answer", answer)
        model.fit(X, y, **further)
    if "frame" not in given:
        X[:], y = np.nan, None
    return exports(model, {"categories": KNOWN} if "learned" in given else {}, folder)


def exports(model, given, folder):
    """All that leaves with a model, uncompressed, by name."""
    found = {f"card.{form}": skdp.model_card(model, format=form).encode() for form in ("md", "html")}
    found["onnx"] = skdp.to_onnx(model, **given).SerializeToString(deterministic=True)
    try:
        found["sklearn"] = pickle.dumps(skdp.to_sklearn(model))
    except TypeError as error:
        found["sklearn"] = str(error).encode()
    return found | uncompressed(model, folder)


def uncompressed(model, folder):
    """The content of a file."""
    skdp.save_model(model, folder / "model.skops")
    with zipfile.ZipFile(folder / "model.skops") as file:
        return {"skops": b"".join(name.encode() + file.read(name) for name in file.namelist())}


def canaries_in(found):
    """Which canaries are in which files."""
    return [(name, canary) for name, content in found.items() for canary in CANARIES if canary in content]


def both(model, given, folder, monkeypatch):
    """What leaves with the fits to both tables, the second one with the answers of the first."""
    answers, honest = [], Oracle._answer

    def recorded(self, *asked):
        answers.append(honest(self, *asked))
        return answers[-1]

    one = left_by(model, given, 1, recorded, folder, monkeypatch)
    left = iter(answers)
    two = left_by(model, given, 2, lambda self, *asked: next(left).copy(), folder, monkeypatch)
    assert next(left, None) is None
    return one, two


def slowly(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


FAMILIES = [
    (DPLogisticRegression(**BOUNDED), "two"),
    (DPLinearRegression(**BOUNDED, **RANGE), "numbers"),
    (DPPCA(2, **BOUNDED), "none"),
    (DPAdditiveClassifier(**BOUNDED), "two"),
    (DPMultinomialNB(**GIVEN), "counts three"),
    (LearnedSchema(**GIVEN), "frame none learned"),
    slowly(DPLogisticRegression(**BOUNDED), "three"),
    slowly(DPLogisticRegression(**GIVEN, schema=SCHEMA), "frame two"),
    slowly(DPLogisticRegression(**GIVEN, schema=SCHEMA, inference=True), "frame two"),
    slowly(DPLogisticRegression(**FRAME, privacy_unit="person"), "frame two learned persons"),
    slowly(DPLinearSVC(**FRAME), "frame three learned"),
    slowly(DPConstrainedClassifier(**BOUNDED), "two"),
    slowly(DPConstrainedClassifier(**BOUNDED, solver="frank_wolfe"), "two"),
    slowly(DPGroupDROClassifier(**BOUNDED), "two groups"),
    slowly(DPAUCMaximizer(**BOUNDED), "two"),
    slowly(DPAUCMaximizer(**BOUNDED, scorer="mlp", hidden_layer_sizes=(4,)), "two"),
    slowly(DPLogisticRegression(**BOUNDED, solver="objective"), "two"),
    slowly(DPLogisticRegression(**BOUNDED, solver="sgd"), "two"),
    slowly(DPLinearRegression(**FRAME, **RANGE), "frame numbers learned"),
    slowly(DPLinearRegression(**BOUNDED, link="log_count", max_exposure=1.0, target_bounds=(0, 9)), "numbers exposure"),
    slowly(DPQuantileRegressor(**BOUNDED), "numbers"),
    slowly(DPRobustRegressor(**BOUNDED), "numbers"),
    slowly(DPKMeans(3, **BOUNDED), "none"),
    slowly(DPAdditiveClassifier(**FRAME, knots="private", interactions=[("n", "t")]), "frame two learned"),
    slowly(DPAdditiveRegressor(**GIVEN, **RANGE, schema=SCHEMA), "frame numbers"),
    slowly(DPGradientBoostingClassifier(**FRAME), "frame three learned"),
    slowly(DPGradientBoostingRegressor(**BOUNDED, **RANGE), "numbers"),
    slowly(DPTabularClassifier(**FRAME, privacy_unit="person"), "frame two learned persons"),
    slowly(DPPipeline([("s", LearnedSchema()), ("p", DPPCA(2)), ("m", DPLogisticRegression())], **BUDGET), "frame two learned"),
    slowly(DPGridSearchCV(DPLogisticRegression(feature_bounds=1.0), {"alpha": [0.0, 0.1]}, **GIVEN), "two"),
]


@pytest.mark.parametrize("model, given", FAMILIES, ids=lambda value: type(value).__name__)
def test_exports_are_functions_of_answers(model, given, tmp_path, monkeypatch):
    """Nothing of a table is in a file: no cell, target, label of a row or person; nor what follows from them without noise."""
    one, two = both(model, given, tmp_path, monkeypatch)
    assert [name for name in one if one[name] != two[name]] == []
    assert canaries_in(one) == []


def test_what_reads_a_record_is_caught(tmp_path, monkeypatch):
    """Twins: a fit that answers without noise, one that keeps a record, and one whose coefficients are a record."""
    model = DPLogisticRegression(**BOUNDED)
    one, two = (
        left_by(model, "two", which, lambda self, query, *_: query.evaluate(self._rows), tmp_path, monkeypatch)
        for which in (1, 2)
    )
    assert [name for name in one if one[name] == two[name]] == []
    model.kept_ = np.array(NUMBERS)
    assert {name for name, _ in canaries_in(exports(model, {}, tmp_path))} == {"skops"}
    model.coef_ = np.array(NUMBERS)
    assert {name for name, _ in canaries_in(exports(model, {}, tmp_path))} == {"skops", "onnx", "sklearn"}


@pytest.mark.parametrize("canary", (f"{TEXT} 7", PERSON, {PERSON: 1}, NUMBERS[0], [np.array(NUMBERS, dtype=np.float32)], (TEXT,)))
def test_a_canary_is_found_wherever_it_is_kept(canary, tmp_path):
    """Twins: a label of a row, a person, a cell and a text, as an attribute."""
    model = DPLinearSVC()
    model.kept_ = canary
    assert canaries_in(uncompressed(model, tmp_path)) != []
    del model.kept_
    assert canaries_in(uncompressed(model, tmp_path)) == []

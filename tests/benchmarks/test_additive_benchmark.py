"""Benchmark of additive models: same records in both forms, scores, what counts as short of the reference, what is written."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from packaging.version import Version
from scipy.special import ndtri
from seeded import fitted
from sklearn.base import clone

from benchmarks import additive, additive_page
from benchmarks.additive_reference import EPSILONS, REFERENCE
from benchmarks.frames import FRAMES, Frame
from benchmarks.tables import Table
from skdp import DPAdditiveRegressor, DPLinearRegression

pytestmark = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"), reason="benchmarks run with the newest libraries: once is enough"
)

COLUMNS = {
    "age": {"kind": "number", "bounds": [0, 100]},
    "job": {"kind": "category", "categories": ["a", "b"]},
    "id": {"kind": "ignore"},
}


def made_up(rng, task="classification", n=300):
    age, job = rng.uniform(0, 100, n), rng.choice(["a", "b"], n)
    frame = pd.DataFrame({"id": np.arange(n), "age": age, "job": job})
    y = np.abs(age / 50 - 1) - 0.5 + 0.1 * (job == "a")
    y = y if task == "regression" else (y > 0).astype(int)
    X = np.column_stack([age / 100, job == "a"]) / 1.5
    return additive.Case("bank", Frame(Table(frame, y, frame, y, task), {"columns": COLUMNS}), Table(X, y, X, y, task))


def record(model, scores, epsilon=1.0, table="bank"):
    about = {"table": table, "model": model, "epsilon": epsilon, "signal_per_number": 50.0}
    return about | {"scores": {name: list(values) for name, values in scores.items()}}


def test_reference_figures_are_complete():
    assert set(REFERENCE) == set(FRAMES)
    for models in REFERENCE.values():
        assert list(models) == list(additive.MODELS)
        assert all(len(values) == len(EPSILONS) for scores in models.values() for values in scores.values())
        assert models["linear"].keys() == models["additive"].keys() <= additive_page.LABELS.keys()


def test_subsets_have_the_same_records_in_both_forms(rng):
    case = made_up(rng)
    part, other = case.subset(40, 1), case.subset(40, 2)
    ages = part.frame.table.X_train["age"].to_numpy()
    assert np.unique(part.frame.table.X_train["id"]).size == 40
    np.testing.assert_allclose(part.prepared.X_train[:, 0], ages / 150)
    np.testing.assert_array_equal(part.prepared.y_train, case.prepared.y_train[part.frame.table.X_train["id"]])
    assert set(other.frame.table.X_train["id"]) != set(part.frame.table.X_train["id"])
    assert part.delta == 1 / 1600 and len(part.prepared.y_test) == 300


@pytest.mark.parametrize(
    "model", (DPLinearRegression(), DPAdditiveRegressor(schema={"columns": COLUMNS})), ids=lambda m: type(m).__name__
)
def test_predictions_of_regressions_are_scored_before_the_clip(rng, model):
    table = made_up(rng, "regression")
    table = table.prepared if isinstance(model, DPLinearRegression) else table.frame.table
    model = fitted(clone(model).set_params(target_bounds=(-1, 1)), table.X_train, table.y_train)
    model.coef_ = 100 * model.coef_
    raw = additive.raw_predictions(model, table.X_test, "regression")
    assert np.abs(raw).max() > 1
    np.testing.assert_allclose(np.clip(raw, -1, 1), model.predict(table.X_test))


def test_scores():
    y, raw = np.array([0, 0, 1, 1]), np.array([-2.0, 1.0, -1.0, 2.0])
    found = additive.scored(y, raw, "classification")
    assert found["auc"] == 0.75 and found["accuracy"] == 0.5
    assert found["log_loss"] == pytest.approx((math.log1p(math.exp(-2)) + math.log1p(math.exp(1))) / 2)
    y, raw = np.array([-1.0, 1.0]), np.array([-2.0, 1.0])
    assert additive.scored(y, raw, "regression") == {"r2": 0.5, "clipped_r2": 1.0}


def test_standard_error_of_a_median():
    """Of normal values it is 1.2533 times that of the mean; seeds are fixed, so there is no false alarm."""
    values = record("additive", {"auc": ndtri((np.arange(2000) + 0.5) / 2000)})
    expected = 1.2533 / math.sqrt(2000)
    assert additive_page.error(values, "auc") == pytest.approx(expected, rel=0.08)
    assert additive_page.error(values, "auc", 500) == pytest.approx(2 * expected, rel=0.08)


def test_errors_are_positive_where_ours_is_better():
    reference = REFERENCE["bank"]["additive"]
    place = EPSILONS.index(1.0)
    for score, sign in (("auc", 1), ("accuracy", 1), ("log_loss", -1)):
        value = reference[score][place]
        for step in (-0.01, 0.0, 0.01):
            cell = record("additive", {score: value + step + np.linspace(-1e-3, 1e-3, 21)})
            other, errors = additive_page.compared(cell, score)
            assert other == value
            assert errors == pytest.approx(0, abs=1e-6) if step == 0 else errors * sign * step > 0


def test_cells_that_fall_short_are_listed():
    place, values = EPSILONS.index(1.0), REFERENCE["bank"]["additive"]
    spread = np.linspace(-1e-3, 1e-3, 21)
    good = record("additive", {score: values[score][place] + spread for score in values})
    linear = record("linear", good["scores"])
    lines = additive_page.failures([linear, good])
    assert sum(line == "- none" for line in lines) == 2
    worse = record("additive", {**good["scores"], "auc": np.array(good["scores"]["auc"]) - 0.007})
    lines = additive_page.failures([linear, worse])
    assert "- none" not in lines
    assert any(line.startswith("- bank at 1, AUC") and "errors" in line for line in lines)
    assert any(line.startswith("- bank at 1 (s = 50), AUC: mean -0.0070") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("task", ("classification", "regression"))
def test_what_is_written(tmp_path, rng, monkeypatch, task):
    case = made_up(rng, task)
    monkeypatch.setattr(additive.Case, "of", lambda name: case)
    monkeypatch.setattr(additive, "EPSILONS", (1.0, 3.0))
    monkeypatch.setattr(additive, "SUBSET_SIZES", (100,))
    monkeypatch.setattr(additive, "BOOSTED", ())
    monkeypatch.setitem(additive_page.REFERENCE, "bank", REFERENCE["bank" if task == "classification" else "bike"])
    monkeypatch.setattr(additive, "SUBSET_TABLES", ("bank",) if task == "classification" else ())
    results = additive.compare(["bank"], 2, 2, 1, tmp_path)
    assert json.loads((tmp_path / "additive.json").read_text(encoding="utf-8")) == results
    assert [(r["model"], r["epsilon"]) for r in results["records"]] == [(m, e) for m in additive.MODELS for e in (1.0, 3.0)]
    assert len(results["ceilings"]) == 3 and all(len(r["scores"][s]) == 2 for r in results["records"] for s in r["scores"])
    text = (tmp_path / "additive.md").read_text(encoding="utf-8")
    assert ("## Small tables" in text) == ("**100 steps**" in text) == (task == "classification")
    assert (tmp_path / "additive.png").stat().st_size > 1000


@pytest.mark.slow
def test_time_is_taken_of_all_records(rng, monkeypatch):
    case = made_up(rng)
    monkeypatch.setattr(additive.Case, "of", lambda name: case)
    found = additive.speed(1)
    assert found["n_records"] == 600 and found["n_functions"] >= 4
    assert found["ratio_to_scikit_learn"] == pytest.approx(found["ours_ms"] / found["scikit_learn_ms"], rel=0.05)
    (sentences,) = ["\n".join(additive_page.timing(found))]
    assert "600 records" in sentences and additive_page.timing({}) == []

"""The benchmark of private metrics: true metrics, what it counts, and what it writes."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, precision_score, roc_auc_score

from benchmarks import metrics
from benchmarks.__main__ import main


@pytest.mark.slow
@pytest.mark.parametrize("scores, rate", (("good", 0.5), ("squeezed", 0.1)))
def test_true_metrics_are_those_of_many_records(scores, rate):
    distance, factor = metrics.SCORES[scores]
    cell = {"kind": "classes", "scores": scores, "rate": rate, "n": 100_000}
    X, y = metrics.drawn(cell, np.random.default_rng(0))
    z = np.clip(factor * X[:, 0], -6, 6)
    found, p = metrics.true_metrics(distance, factor, rate), expit(z)
    expected = {
        "accuracy": np.mean((z > 0) == y),
        "roc_auc": roc_auc_score(y, X[:, 0]),
        "log_loss": log_loss(y, p),
        "brier_score": brier_score_loss(y, p),
        "recall": np.mean(z[y == 1] > 0),
        "specificity": np.mean(z[y == 0] <= 0),
        "precision": precision_score(y, z > 0),
        "average_precision": average_precision_score(y, X[:, 0]),
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=0.01), name


def test_true_errors_are_clipped():
    found = metrics.true_errors(np.array([-3.0, 0.5, 0.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0]), 1.0)
    assert found == {"mae": 0.625, "rmse": 0.75, "r2": pytest.approx(1 - 0.5625 / 1.25), "coverage": 0.5}


@pytest.mark.slow
def test_a_run_writes_what_it_measures(tmp_path, monkeypatch):
    kept = [
        cell
        for cell in metrics.cells(quick=True)
        if cell["n"] == 500
        and (cell["rate"], cell["scores"]) in ((0.5, "good"), (None, "normal"))
        and cell["adjacency"] == "zero_out"
    ]
    kept = [{**cell, "n": 2000 if cell["kind"] == "regression" else 1500} for cell in kept] + [kept[-1]]
    monkeypatch.setattr(metrics, "cells", lambda quick: kept)
    monkeypatch.setattr(metrics, "TRUE", 10_000)
    main(["metrics", "--quick", "--repeats", "3", "--out", str(tmp_path)])
    classes, regression, refused = json.loads((tmp_path / "metrics.json").read_text())["records"]
    assert "do not tell a bound" in refused["refused"]
    for record in (classes, regression):
        for found in record["metrics"].values():
            assert 0 <= found["coverage"] <= 1 == found["determined"] and found["width"] > found["width_without_noise"] > 0
    assert classes["metrics"]["accuracy"]["error_alone"] < classes["metrics"]["accuracy"]["error"]
    assert "error_alone" not in classes["metrics"]["roc_auc"]
    page = (tmp_path / "metrics.md").read_text()
    assert (
        "Refused before anything is spent: At this budget" in page and "| zero_out | good | 0.5 | 1500 | 0.5 | log_loss |" in page
    )


def test_a_coverage_that_is_surely_too_small_is_named():
    of_one = {"determined": 1.0, "width": 0.1, "width_without_noise": 0.1, "coverage_if_determined": None, "error": 0.1}
    about = {"kind": "regression", "adjacency": "zero_out", "scores": "normal", "rate": None, "n": 500, "epsilon": 1.0}
    names = ("mae", "rmse", "r2", "coverage")
    record = {**about, "metrics": {name: {**of_one, "coverage": 0.95} for name in names}}
    record["metrics"]["r2"] = {**of_one, "coverage": 0.85}
    page = metrics.markdown([record], {"repeats": 400})
    assert "1 are below\n0.93 and 0 above 0.99. 1 of them are outside" in page and "r2 of zero_out, normal, , 500, 1" in page

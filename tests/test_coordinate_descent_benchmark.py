"""Benchmarks of columns of different scales, and of hinges: what a pass is, blocks of columns, and what is written."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import coordinate_descent, margins
from benchmarks.tables import Table
from skdp import DPLogisticRegression
from skdp.solvers import SGD


def made_up(rng, task):
    X = rng.uniform(-1, 1, size=(300, 3)) * [1.0, 100.0, 1.0]
    raw = X[:, 0] + X[:, 1] / 100
    return Table(X, np.clip(raw / 2, -1, 1) if task == "regression" else (raw > 0).astype(int), X, (raw > 0).astype(int), task)


def test_columns_are_centred_and_one_hot_ones_are_a_block():
    frame = pd.DataFrame({"number": [0.0, 30.0, 50.0], "word": ["b", "a", "c"]})
    X, bounds, blocks = coordinate_descent.columns(frame, {"number": (0, 40)}, {"word": ["a", "b"]})
    assert X.tolist() == [[-20, 0, 1], [10, 1, 0], [20, 0, 0]]
    assert bounds.tolist() == [20, 1, 1] and blocks == [[0], [1, 2]]


def test_passes_count_the_share_of_the_records():
    model = DPLogisticRegression(solver=SGD(10, batch_size=30), random_state=0)
    model.fit(np.ones((300, 2)), np.arange(300) % 2)
    assert coordinate_descent.passes(model) == pytest.approx(1.0)


@pytest.mark.parametrize("task", ("classification", "regression"))
def test_no_model_is_below_the_least_risk(rng, task):
    raw = coordinate_descent.RawTable(made_up(rng, task), np.array([1.0, 100.0, 1.0]), [[0], [1], [2]])
    best = coordinate_descent.least_risk(raw)

    class Constant:
        coef_, intercept_ = np.zeros(3), 0.0

    assert 0 <= best < coordinate_descent.risk(raw.table, Constant)


def test_coordinates_are_written(tmp_path, monkeypatch, rng):
    raw = coordinate_descent.RawTable(made_up(rng, "classification"), np.array([1.0, 100.0, 1.0]), [[0], [1, 2]])
    monkeypatch.setattr(coordinate_descent, "RAW_TABLES", {"made up": lambda directory: raw})
    monkeypatch.setattr(coordinate_descent, "EPSILONS", (1.0,))
    records = coordinate_descent.compare(["made up"], 1, tmp_path)
    assert [record["solver"] for record in records] == list(coordinate_descent.contestants(raw))
    assert json.loads((tmp_path / "coordinates.json").read_text(encoding="utf-8"))["records"] == records
    assert (tmp_path / "coordinates.md").read_text(encoding="utf-8").count("| made up |") == len(records)
    assert (tmp_path / "coordinates.png").exists()


def test_margins_are_written(tmp_path, monkeypatch, rng):
    monkeypatch.setattr(margins, "load", lambda name: made_up(rng, "classification"))
    monkeypatch.setattr(margins, "EPSILONS", (1.0,))
    records = margins.compare(["adult"], 2, tmp_path)
    assert [record["model"] for record in records] == list(margins.MODELS)
    assert all(0 <= record["accuracy"] <= 1 and record["deviation"] >= 0 for record in records)
    assert json.loads((tmp_path / "margins.json").read_text(encoding="utf-8"))["records"] == records
    assert (tmp_path / "margins.md").read_text(encoding="utf-8").count("| adult |") == len(records)
    assert (tmp_path / "margins.png").exists()

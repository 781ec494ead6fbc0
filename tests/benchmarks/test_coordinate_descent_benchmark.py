"""Benchmarks of columns of different scales, and of hinges: what a pass is, blocks of columns, and what is written."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import coordinate_descent, margins
from benchmarks.__main__ import main
from benchmarks.tables import Table, data_directory
from skdp import DPLogisticRegression
from skdp.solvers import SGD


def made_up(rng, task):
    X = rng.uniform(-1, 1, size=(300, 3)) * [1.0, 100.0, 1.0]
    raw = X[:, 0] + X[:, 1] / 100 + 0.2 * rng.normal(size=300)
    return Table(X, np.clip(raw / 2, -1, 1) if task == "regression" else (raw > 0).astype(int), X, (raw > 0).astype(int), task)


def test_columns_are_centred_and_one_hot_ones_are_a_block():
    frame = pd.DataFrame({"number": [0.0, 30.0, 50.0], "word": ["b", "a", "c"]})
    X, bounds, blocks = coordinate_descent.columns(frame, {"number": (0, 40)}, {"word": ["a", "b"]})
    assert X.tolist() == [[-20, 0, 1], [10, 1, 0], [20, 0, 0]]
    assert bounds.tolist() == [20, 1, 1] and blocks == [[0], [1, 2]]


def test_passes_count_the_share_of_the_records():
    model = DPLogisticRegression(solver=SGD(10, batch_size=30))
    model.fit(np.ones((300, 2)), np.arange(300) % 2)
    assert coordinate_descent.passes(model) == pytest.approx(1.0)


@pytest.mark.parametrize("task", ("classification", "regression"))
def test_no_model_is_below_the_least_risk(rng, task):
    raw = coordinate_descent.RawTable(made_up(rng, task), np.array([1.0, 100.0, 1.0]), [[0], [1], [2]])
    minimum = coordinate_descent.least(raw)
    best = coordinate_descent.risk(raw.table, minimum)
    for move in np.vstack([np.eye(3), -np.eye(3)]) / raw.feature_bounds / 100:
        assert best < coordinate_descent.risk(raw.table, minimum._replace(coef_=minimum.coef_ + move))


def test_importance_has_the_better_bound_where_coefficients_grow_with_widths(rng):
    """The ratio of the two distances of the theorem, written out; 1 for equal coefficients, whatever the widths."""
    widths, coefs = rng.uniform(0.1, 10, size=5), rng.normal(size=5)
    smoothness = np.append(widths, 1) ** 2 / 4
    found = coordinate_descent.bound_ratio(widths, coordinate_descent.Line(coefs, 0.5))
    distances = []
    for probabilities in (smoothness / smoothness.sum(), np.full(6, 1 / 6)):
        distances.append(np.sum(smoothness * np.append(coefs, 0.5) ** 2 / probabilities))
    assert found == pytest.approx(np.sqrt(distances[0] / distances[1]))
    assert coordinate_descent.bound_ratio(widths, coordinate_descent.Line(np.ones(5), -1.0)) == pytest.approx(1)
    assert coordinate_descent.bound_ratio(widths, coordinate_descent.Line(widths, 0.0)) < 1
    assert coordinate_descent.bound_ratio(widths, coordinate_descent.Line(1 / widths, 1.0)) > 1


@pytest.mark.slow
def test_files_of_coordinate_descent_are_written(tmp_path, monkeypatch, rng):
    raw = coordinate_descent.RawTable(made_up(rng, "classification"), np.array([1.0, 100.0, 1.0]), [[0], [1, 2]])
    monkeypatch.setattr(coordinate_descent, "RAW_TABLES", {"made up": lambda directory: raw})
    monkeypatch.setattr(coordinate_descent, "QUICK_TABLES", ("made up",))
    monkeypatch.setattr(coordinate_descent, "EPSILONS", (1.0,))
    main(["coordinate-descent", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    contents = json.loads((tmp_path / "coordinate_descent.json").read_text(encoding="utf-8"))
    assert [record["solver"] for record in contents["records"]] == list(coordinate_descent.contestants(raw))
    excesses = {record["solver"]: record["excess_risk"] for record in contents["records"]}
    assert min(map(min, excesses.values())) > 0 and excesses["gd, scaled"] != excesses["gd"]
    text = (tmp_path / "coordinate_descent.md").read_text(encoding="utf-8")
    assert text.count("| made up |") == len(contents["records"]) + 1
    assert (tmp_path / "coordinate_descent.png").exists()


@pytest.mark.parametrize("name", coordinate_descent.RAW_TABLES)
def test_columns_are_within_their_public_bounds(name):
    """What solvers are told about the columns is true, of test records too, and the blocks are a partition."""
    try:
        raw = coordinate_descent.RAW_TABLES[name](data_directory())
    except FileNotFoundError as error:
        pytest.skip(str(error))
    for X in (raw.table.X_train, raw.table.X_test):
        assert (np.abs(X) <= raw.feature_bounds).all()
    assert sorted(itertools.chain(*raw.blocks)) == list(range(raw.feature_bounds.size))


@pytest.mark.slow
def test_margins_are_written(tmp_path, monkeypatch, rng):
    monkeypatch.setattr(margins, "load", lambda name: made_up(rng, "classification"))
    monkeypatch.setattr(margins, "EPSILONS", (1.0,))
    records = margins.compare(["adult"], 2, tmp_path)
    assert [record["model"] for record in records] == list(margins.MODELS)
    assert all(0 <= record["accuracy"] <= 1 and record["deviation"] >= 0 for record in records)
    assert json.loads((tmp_path / "margins.json").read_text(encoding="utf-8"))["records"] == records
    assert (tmp_path / "margins.md").read_text(encoding="utf-8").count("| adult |") == len(records)
    assert (tmp_path / "margins.png").exists()

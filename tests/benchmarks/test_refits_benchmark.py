"""The benchmark of fits of one table: its measures, and what it writes."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import refits
from benchmarks.__main__ import main
from benchmarks.frames import Frame
from benchmarks.tables import Table


@pytest.fixture
def straight(monkeypatch):
    """A table that keeps to a linear model: y = .4 a - .2 b."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (6000, 2)), columns=["a", "b"])
    y = np.clip(X.to_numpy() @ [0.4, -0.2] + 0.1 * rng.normal(size=6000), -1, 1)
    columns = {name: {"kind": "number", "bounds": [-1, 1]} for name in X}
    frame = Frame(Table(X[:5500], y[:5500], X[5500:], y[5500:], "regression"), {"columns": columns})
    monkeypatch.setattr(refits, "load_frame", {"bike": frame}.__getitem__)
    return frame


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", refits.WAYS)
def test_intervals_of_a_linear_model_hold_all_that_they_claim(way, straight):
    found = refits.cell({"table": "bike", "way": way, "epsilon": 3.0}, "zero_out", 12, None)
    assert found["identified"] == found["predictions: not whole"] == 1
    assert min(found[name] for name in ("mean", "noise: mean", "least squares", "predictions: mean")) > 0.8
    assert 0.4 < found["width"] and 0 < found["predictions: width"] < 0.2
    assert way == "default" or found["width"] < 4  # intervals of the default have the sampling error, too


def test_least_squares_is_in_the_units_of_the_model(straight):
    one = refits.once({"table": "bike", "way": "inference", "epsilon": 3.0}, "zero_out", 0)
    np.testing.assert_allclose(one["least squares"], [0.4, -0.2], atol=0.01)
    np.testing.assert_allclose(one["wanted"], straight.table.X_test[: refits.N_PREDICTED].to_numpy() @ [0.4, -0.2], atol=0.01)


def test_intervals_that_miss_are_counted(monkeypatch, straight):
    def shifted(about, adjacency, seed):
        one = once(about, adjacency, seed)
        return {**one, "least squares": one["least squares"] + 1, "wanted": one["wanted"] + 1}

    once = refits.once
    monkeypatch.setattr(refits, "once", shifted)
    found = refits.cell({"table": "bike", "way": "default", "epsilon": 3.0}, "zero_out", 3, None)
    assert found["least squares"] == found["predictions: least squares"] == 0 < found["mean"]


def test_what_few_fits_identify_does_not_count(monkeypatch):
    def blind(about, adjacency, seed):
        ends = np.array([[0.5, 0.6] if seed == 0 else [-1.0, 1.0], [-0.1, 0.1]])
        noise = np.array([[5.0, 6.0] if seed == 0 else [-np.inf, np.inf], [-0.1, 0.1]]) + 0.01 * seed
        each = {"estimate": refits.middle(noise), "interval": noise, "noise": noise, "least squares": np.zeros(2)}
        return each | {"predicted": refits.middle(ends), "ends": ends, "wanted": np.zeros(2)}

    monkeypatch.setattr(refits, "once", blind)
    found = refits.cell({}, "zero_out", 4, None)
    assert found["identified"] == found["predictions: not whole"] == 5 / 8
    assert found["mean"] == found["least squares"] == found["predictions: least squares"] == 1


@pytest.mark.slow
def test_a_run_writes_what_it_measures(tmp_path, straight):
    main(["refits", "--tables", "bike", "--ways", "default", "--epsilons", "1", "--repeats", "3", "--out", str(tmp_path)])
    (record,) = json.loads((tmp_path / "refits.json").read_text())["records"]
    assert f"| bike | default | 1 | {record['identified']:.3f} |" in (tmp_path / "refits.md").read_text()

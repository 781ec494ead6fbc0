"""The count of gradient evaluations: what a pass is, where a curve reaches a gap, and what is written."""

import json
import math

import numpy as np
import pytest

from benchmarks import evaluations
from benchmarks.tables import Table
from skdp import DPLogisticRegression
from skdp.solvers import SGD, SVRG, GradientDescent


@pytest.mark.parametrize(
    "solver, expected",
    ((GradientDescent(7), 7), (SGD(10, batch_size=20), 1), (SVRG(3, n_inner=5, batch_size=20), 3 + 2 * 15 * 0.1)),
)
def test_passes_count_gradients(solver, expected):
    """A difference takes two gradients of every record that is drawn."""
    assert evaluations.passes(DPLogisticRegression(solver=solver).plan(200, 3)) == pytest.approx(expected)


def test_a_gap_is_reached_between_two_points_of_a_curve():
    records = [{"passes": 10, "gap": 1e-2}, {"passes": 40, "gap": 1e-4}, {"passes": 90, "gap": 1e-3}]
    assert evaluations.needed(records, 1.0) == 10
    assert evaluations.needed(records, 1e-3) == pytest.approx(20)
    assert evaluations.needed(records, 1e-5) == math.inf


def test_what_is_written(tmp_path, monkeypatch, rng):
    """On a made-up table: gaps are positive, and every solver and length has its line."""
    X = rng.normal(size=(400, 3)) / 4
    y = (X[:, 0] + rng.logistic(size=400) / 4 > 0).astype(np.int8)
    monkeypatch.setattr(evaluations, "load", lambda name: Table(X, y, X, y))
    short = {"gd": (GradientDescent(3), GradientDescent(9)), "svrg": (SVRG(2, n_inner=5),)}
    monkeypatch.setattr(evaluations, "SOLVERS", short)
    monkeypatch.setattr(evaluations, "EPSILON", 100.0)
    with pytest.warns(UserWarning, match="epsilon"):
        records = evaluations.compare(["adult"], 2, tmp_path)
    assert [record["passes"] for record in records][:2] == [3, 9]
    assert len(records) == 2 * 3 and all(gap > 0 for record in records for gap in record["gaps"])
    assert json.loads((tmp_path / "evaluations.json").read_text(encoding="utf-8"))["records"] == records
    assert (tmp_path / "evaluations.md").read_text(encoding="utf-8").count("SVRG(") == 2
    assert (tmp_path / "evaluations.png").exists()

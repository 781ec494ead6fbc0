"""Benchmark of saddle problems: groups of digits, what is written, and the difference of two solvers."""

import json

import numpy as np
import pytest

from benchmarks import minimax_auc
from benchmarks.tables import Table


def test_groups_of_digits(tmp_path, rng):
    """Five classes each; a tenth of the training records are positive, all test records are there."""
    for part, size in (("train", 4000), ("test", 300)):
        X, y = rng.integers(0, 256, size=(size, 4)).astype(np.uint8), np.arange(size) % 10
        X[:, 0] = 25 * y
        np.savez(tmp_path / f"mnist_{part}.npz", X=X, y=y)
    table = minimax_auc.digit_groups(tmp_path)
    digits = [np.rint(X[:, 0] * 255 / 25).astype(int) for X in (table.X_train, table.X_test)]
    positive = set(digits[1][table.y_test == 1])
    assert len(positive) == 5 and positive.isdisjoint(digits[1][table.y_test == 0])
    assert set(digits[0][table.y_train == 1]) == positive
    assert np.bincount(table.y_train).tolist() == [2000, 222] and len(table.y_test) == 300


def test_what_is_written(tmp_path, rng, monkeypatch):
    X = rng.uniform(-1, 1, size=(400, 3)) / 2
    y = (X[:, 0] > 0).astype(int)
    monkeypatch.setattr(minimax_auc, "load", lambda name: Table(X, y, X, y))
    monkeypatch.setattr(minimax_auc, "EPSILONS", {"linear": (1.0, 10.0), "network": ()})
    records = minimax_auc.compare(["bank"], 2, 1, 1, tmp_path)
    assert json.loads((tmp_path / "minimax.json").read_text())["records"] == records
    assert len(records) == 2 * len(minimax_auc.LINEAR) + 1
    assert all(len(record["scores"]) == 2 for record in records if record["epsilon"])
    lines = (tmp_path / "minimax.md").read_text().splitlines()
    assert {line.split(" | ")[0].strip("| ") for line in lines if line.startswith("|")} >= {
        *minimax_auc.LINEAR,
        "privatediff - sgda",
    }
    assert (tmp_path / "minimax.png").stat().st_size > 1000


def test_the_difference_is_that_of_the_means(rng):
    scores = {"sgda": rng.normal(size=5), "mlp, privatediff": rng.normal(size=5)}
    records = [{"table": "t", "epsilon": 1.0, "model": model, "scores": list(found)} for model, found in scores.items()]
    mean, error = minimax_auc.paired(records, "t", 1.0)
    one, other = scores.values()
    assert mean == pytest.approx(other.mean() - one.mean())
    assert error == pytest.approx(np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 5))
    assert minimax_auc.paired(records[:1], "t", 1.0) is None

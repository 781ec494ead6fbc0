"""Benchmark of saddle problems: groups of digits, what is written, and the difference of two solvers."""

import json

import numpy as np
import pytest

from benchmarks import minimax_auc
from benchmarks.__main__ import main
from benchmarks.tables import Table


@pytest.fixture
def images(tmp_path, rng):
    """A directory with small digits, the first pixel of which tells which they are."""
    for part, size in (("train", 4000), ("test", 300)):
        X, y = rng.integers(0, 256, size=(size, 4)).astype(np.uint8), np.arange(size) % 10
        X[:, 0] = 25 * y
        np.savez(tmp_path / f"mnist_{part}.npz", X=X, y=y)
    return tmp_path


@pytest.mark.parametrize(("rate", "size", "counts"), [(0.1, None, [2000, 222]), (0.5, None, [1111, 1111]), (0.1, 50, [45, 5])])
def test_groups_of_digits(images, rate, size, counts):
    """Five classes each; training records are as many as asked for, no record twice, all test records are there."""
    table = minimax_auc.digit_groups(images, rate, size)
    digits = [np.rint(X[:, 0] * 255 / 25).astype(int) for X in (table.X_train, table.X_test)]
    positive = set(digits[1][table.y_test == 1])
    assert len(positive) == 5 and positive.isdisjoint(digits[1][table.y_test == 0])
    assert set(digits[0][table.y_train == 1]) <= positive and positive.isdisjoint(digits[0][table.y_train == 0])
    assert np.bincount(table.y_train).tolist() == counts and len(table.y_test) == 300
    assert len(np.unique(table.X_train, axis=0)) == len(table.y_train)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_files_are_written(tmp_path, images, rng, monkeypatch):
    """Every cell once, and a path for each network that is watched."""
    X = rng.uniform(-1, 1, size=(300, 3)) / 2
    y = (X[:, 0] > 0).astype(int)
    monkeypatch.setattr(minimax_auc, "load", lambda name: Table(X, y, X, y))
    monkeypatch.setattr(minimax_auc, "data_directory", lambda: images)
    for name, value in {"QUICK_SIZE": 200, "QUICK_HIDDEN": (3,), "BATCH": 50, "PASSES": 1, "PLACES": 2}.items():
        monkeypatch.setattr(minimax_auc, name, value)
    monkeypatch.setattr(minimax_auc, "EPSILONS", {"linear": (3.0,), "network": (10.0,)})
    main(["minimax-auc", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    contents = json.loads((tmp_path / "minimax_auc.json").read_text())
    cells = [(record["table"], record["model"], record["epsilon"]) for record in contents["records"]]
    assert len(set(cells)) == len(cells) == 2 * (3 + 2 + 1) + len(minimax_auc.LINEAR) + 1
    assert all(len(record["scores"]) == 1 + (record["model"] in minimax_auc.LINEAR) for record in contents["records"])
    watched = {(path["table"], path["model"], path["epsilon"]) for path in contents["paths"]}
    assert watched == {
        (table, f"mlp, {s}", e) for table in minimax_auc.GROUPS for s in ("sgda", "privatediff") for e in (10, None)
    }
    assert all(path["step"] == [0, 2] and np.shape(path["squared_error"]) == (2, 2) for path in contents["paths"])
    text = (tmp_path / "minimax_auc.md").read_text()
    assert text.count("| mlp, privatediff |") == 2 and text.count("| privatediff - sgda |") == 1
    assert (tmp_path / "minimax_auc.png").stat().st_size > 1000


def test_the_difference_is_that_of_the_means(rng):
    scores = {"sgda": rng.normal(size=5), "mlp, privatediff": rng.normal(size=5)}
    records = [{"epsilon": 1.0, "model": model, "scores": list(found)} for model, found in scores.items()]
    mean, error = minimax_auc.paired(records, 1.0)
    one, other = scores.values()
    assert mean == pytest.approx(other.mean() - one.mean())
    assert error == pytest.approx(np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 5))
    assert minimax_auc.paired(records[:1], 1.0) is None

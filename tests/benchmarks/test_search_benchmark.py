"""The benchmark of private searches: its candidates, its measures, and what it writes."""

import json

import numpy as np
import pytest

from benchmarks import search
from benchmarks.__main__ import main
from benchmarks.tables import Table


def made(name):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(3000, 2))
    y = X[:, 0] - 0.28 + rng.normal(size=3000) / 10
    return Table(X[:2000], y[:2000], X[2000:], y[2000:], "regression")


def test_candidates_are_different_and_the_default_comes_first():
    for kind, models in search.CANDIDATES.items():
        assert len({repr(model) for model in models}) == len(models) == int(kind.partition("-")[0])
        assert repr(models[0]) in (repr(search.DEFAULT), repr(search.CANDIDATES["30-constants"][0]))


@pytest.mark.slow
def test_a_run_writes_what_it_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "load", made)
    words = "search --tables california --candidates 8-constants --epsilons 3 --n-records 700 --repeats 1"
    main([*words.split(), "--out", str(tmp_path)])
    (record,) = json.loads((tmp_path / "search.json").read_text())["records"]
    assert record["repeats"] == len(record["chosen"]) == 1
    assert 0.8 < record["search"] <= 1 and 0.8 < record["default"] <= record["oracle"] <= 1
    page = (tmp_path / "search.md").read_text()
    assert "| california | 8-constants | 3 |" in page and "at most 700 training records" in page


def test_medians_and_the_oracle():
    runs = [{"alone": [0.7, 0.8], "search": 0.75, "chosen": 1}, {"alone": [0.9, 0.6], "search": 0.85, "chosen": 0}]
    runs.append({"alone": [0.8, 0.7], "search": 0.7, "chosen": 0})
    found = search.summary(runs)
    assert (found["default"], found["search"], found["oracle"], found["best"]) == (0.8, 0.75, 0.8, 0)
    assert found["better"] == 1 / 3

"""The benchmark of tables in partitions, on small ones."""

import json

import pytest

from benchmarks import scale
from benchmarks.__main__ import main


@pytest.mark.slow
def test_a_small_run_measures_every_source(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "SHAPES", {"wide": (20_000, 50), "narrow": (50_000, 6)})
    monkeypatch.setattr(scale, "FRESH", 5000)
    main(["scale", "--quick", "--n-samples", "20000", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "scale.json").read_text())
    sources = {"memory", "kept copy", "kept copy, 2 threads", "kept copy, float32", "read anew"}
    for seconds in results["seconds"].values():
        assert sources <= set(seconds)
        assert min(seconds.values()) > 0
    (fit,) = results["generated"]
    assert fit["n_samples"] == 20_000
    assert fit["n_passes"] > 1
    assert fit["sgd_auc"] > 0.7
    assert "| kept copy, 2 threads |" in (tmp_path / "scale.md").read_text()


def test_generated_records_are_the_same_each_time():
    first, again = (next(scale.generated(10, 3)) for _ in range(2))
    assert (first[0] == again[0]).all()
    assert not (next(scale.generated(10, 3, 1))[0] == first[0]).any()

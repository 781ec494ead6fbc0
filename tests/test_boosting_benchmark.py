"""The benchmark of boosted models: what is written."""

import json

import pytest

from benchmarks import boosting
from benchmarks.__main__ import main
from benchmarks.tables import data_directory
from skdp.estimators.boosting import _rule


@pytest.mark.skipif(not (data_directory() / "spambase.npz").exists(), reason="data sets are not in the repository")
def test_the_quick_mode_writes_both_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(_rule, "N_TREES", 3)
    monkeypatch.setattr(boosting, "EPSILONS", (3.0,))
    monkeypatch.setattr(boosting, "RAW_EPSILONS", (3.0,))
    main(["boosting", "--quick", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "boosting.json").read_text())
    assert [len(results[part]) for part in ("schema", "raw")] == [2, 2]
    assert all(
        len(record["tabular"]) == 2 and record["tabular"] in (record["linear"], record["additive"]) for record in results["raw"]
    )
    page = (tmp_path / "boosting.md").read_text()
    assert "| spambase | 3.0 | zero_out |" in page and "no trees" in page


def test_the_share_of_the_way_is_that_from_the_additive_model():
    record = {"table": "t", "epsilon": 1.0, "adjacency": "zero_out", "not private": 0.9, "trees": True}
    line = boosting.of_schema({**record, "additive": [0.7, 0.7], "boosted": [0.8, 0.8]})
    assert line.endswith("| +0.1000 ± 0.0000 | 0.900 | 50% |")

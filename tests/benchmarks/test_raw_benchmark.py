"""The benchmark of raw tables: what is changed in them, and what is written."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import raw, raw_frames
from benchmarks.__main__ import main
from benchmarks.raw_page import markdown
from benchmarks.tables import data_directory

FRAME = pd.DataFrame({"x": np.arange(1000.0), "word": ["a", "b"] * 500})


@pytest.mark.slow
def test_changes_keep_records_and_change_what_they_say():
    names = {}
    for name, change in {**raw_frames.CHANGES, **raw_frames.TYPES}.items():
        table = change(FRAME, np.random.default_rng(0))
        assert len(table) == len(FRAME)
        names[name] = table
    assert (names["plus 1e5"]["x"] == FRAME["x"] + 1e5).all()
    assert names["5 % missing"]["x"].isna().mean() == pytest.approx(0.05, abs=0.03)
    assert set(names["negated"]["word"]) == {"a", "b"}
    assert names["IDs added"]["id_text"].nunique() == len(FRAME)
    assert names["50 columns of noise added"].shape == (1000, 52)


def test_a_page_has_the_medians_of_both_ways_and_of_their_differences():
    scores = {"learned": [0.7, 0.8, 0.9], "learned seconds": 0.5, "schema": [0.6, 0.9, 0.9], "schema seconds": 0.25}
    text = markdown({"settings": {"repeats": 3, "delta": "d"}, "whole": [{"table": "adult", "epsilon": 1.0, **scores}]})
    assert "| adult | 1.0 | 0.800 ± 0.072 | 0.900 ± 0.125 | +0.000 ± 0.072 |" in text


def test_a_page_tells_the_cells_that_miss_the_goal():
    about = {"model": "linear", "adjacency": "zero_out", "learned seconds": 0.5, "schema": [0.8], "schema seconds": 0.25}
    cells = [(1.0, 120.0, 0.7951), (2.0, 500.0, 0.7949), (0.1, 119.0, 0.5)]
    records = [{"table": "bank", "epsilon": e, "s": s, "learned": [score], **about} for e, s, score in cells]
    text = markdown({"settings": {"repeats": 1, "delta": "d"}, "whole": records})
    assert "1 of 2 cells of linear models are within 0.005 of the schema" in text
    assert "The others: bank zero_out 2.0 (-0.005)." in text


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.skipif(not (data_directory() / "spambase.npz").exists(), reason="no data")
def test_a_quick_run_learns_as_well_as_a_schema_knows(tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "EPSILONS", (3.0,))
    main(["raw", "--quick", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "raw.json").read_text())
    kinds = [(record["model"], record["adjacency"]) for record in results["whole"]]
    assert kinds == [(model, adjacency) for model in ("linear", "additive") for adjacency in ("zero_out", "replace_one")]
    for record in results["whole"]:
        assert min(record["learned"]) > 0.96
    assert "| spambase | linear | zero_out | 3.0 |" in (tmp_path / "raw.md").read_text()


def test_made_up_tables_are_logistic_in_what_the_oracle_knows():
    table, known = raw_frames.made_up(500, 4, True, 0, 100)
    z = np.log(table.X_train / table.X_train.median()) / 3
    assert np.linalg.norm(known.X_train, axis=1).max() <= 1 + 1e-12
    assert np.corrcoef(z.iloc[:, 0], known.X_train[:, 0])[0, 1] > 0.9

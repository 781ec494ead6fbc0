"""The benchmark of statistics: coverage of what a name says, and its page."""

import json

import numpy as np
import pytest

from benchmarks import statistics
from benchmarks.__main__ import main


def test_an_interval_covers_what_the_name_says_and_a_short_one_does_not(monkeypatch):
    """Of 40 intervals of 95 %, at least 33 hold but in one run of 10**4; of those of 50 %, fewer do but in one of 10**5."""
    population = np.random.default_rng(0).exponential(size=2000)
    for bounds in ((0.0, 2.0), None):
        assert statistics.covered("mean", np.clip(population, 0, 2), bounds, 500, 1.0, 40) >= 33 / 40
    shorter = statistics.of_ours
    monkeypatch.setattr(statistics, "of_ours", lambda *given: shorter(*given, confidence=0.5))
    assert statistics.covered("mean", np.clip(population, 0, 2), (0.0, 2.0), 500, 1.0, 40) < 33 / 40


@pytest.mark.slow
def test_the_quick_mode_writes_a_page(tmp_path):
    pytest.importorskip("diffprivlib")
    main(["statistics", "--quick", "--out", str(tmp_path)])
    contents = json.loads((tmp_path / "statistics.json").read_text())
    assert {cell["function"] for cell in contents["single"]} == {*statistics.SINGLE}
    assert all(0 <= rate <= 1 for cell in contents["coverage"] for rate in cell["rates"].values())
    page = (tmp_path / "statistics.md").read_text()
    assert "| mammography | 2000 | 0 | 3 |" in page and "| `std`, learned bounds | mammography | 500 |" in page

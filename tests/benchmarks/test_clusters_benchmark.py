"""The benchmark of clusters: its mixtures, and its page."""

import json

import numpy as np
import pytest
from sklearn.cluster import KMeans

from benchmarks import clusters
from benchmarks.__main__ import main


def test_mixtures_have_the_stated_ratio():
    rows = clusters.mixture(4000, 5, 4, 6.0, 0)
    best = KMeans(4, n_init=3, random_state=0).fit(rows)
    assert clusters.squares(rows, best.cluster_centers_) == pytest.approx(best.inertia_)
    assert clusters.squares(rows, rows.mean(axis=0)[None]) / best.inertia_ == pytest.approx(6.0, rel=0.15)
    assert np.abs(rows).max() <= 1


@pytest.mark.slow
def test_the_page_has_a_line_for_each_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "TIMED", ((500, 2, 2),))
    monkeypatch.setattr(clusters, "COUNTED", (50,))
    monkeypatch.setattr(clusters, "EPSILONS", (1.0, 3.0))
    monkeypatch.setattr(clusters, "_mixed", lambda name, repeats: [name])
    main(["clusters", "--cases", "small mixture", "--repeats", "1", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "clusters.json").read_text())["results"]
    text = (tmp_path / "clusters.md").read_text()
    for found in results:
        assert " | ".join([found["model"], *(f"{ratio:.2f}" for ratio in found["ratios"].values())]) in text
    assert "| heavy tails | 50 |" in text and "| 500 x 2 | 2 |" in text and "| small mixture |" in text

"""The benchmark of counts and amounts: its tables, scores and page."""

import json

import numpy as np
import pytest
from sklearn.metrics import d2_tweedie_score

from benchmarks import counts
from benchmarks.__main__ import main


@pytest.mark.parametrize("kind", ("poisson", "negative binomial", "zeros", "gamma", "costs", "sums", "exposure"))
def test_made_up_tables_have_the_stated_means_and_bounds(kind):
    table = counts.made_up(kind, 4.0, 3000)
    (X, y, w), (low, high) = table.train(), table.bounds
    assert (
        X.shape == (3000, 8)
        and (y >= low).all()
        and (y <= high).all()
        and table.counts == (kind not in ("gamma", "costs", "sums"))
    )
    assert (w is None) == (kind != "exposure") and (table.loss == "gamma") == (low > 0) == (kind in ("gamma", "sums"))
    rates = y if w is None else y / w
    assert 3.9 < rates.mean() / 4 < 4.6 if kind == "sums" else 1.3 < rates.mean() / 4 < 1.6  # 4.25 where effects add up, or 1.44
    assert rates[X["x0"] > 0.5].mean() > (1.1 if kind == "sums" else 1.3) * rates[X["x0"] < -0.5].mean()


def test_scores_are_those_of_scikit_learn_above_the_floor():
    table = counts.made_up("exposure", 4.0, 3000)
    rates = np.exp(np.random.default_rng(0).normal(1.4, 2.0, counts.TEST))
    y, w, floor = table.y[3000:], table.exposure[3000:], counts.FLOOR * table.y[:3000].mean()
    found = table.scores(lambda X: rates)
    expected = d2_tweedie_score(y / w, np.clip(rates, floor, table.bounds[1]), sample_weight=w, power=1)
    assert found["d2"] == pytest.approx(expected, abs=1e-5)
    assert found["balance"] == pytest.approx((w * np.clip(rates, floor, table.bounds[1])).sum() / y.sum(), abs=1e-5)


@pytest.mark.slow
def test_the_quick_mode_writes_a_page(tmp_path):
    main(["counts", "--quick", "--out", str(tmp_path)])
    (record,) = json.loads((tmp_path / "counts.json").read_text())["records"]
    cell = record["cells"][3]
    assert cell["epsilon"] == 3.0 and cell["log"][0]["d2"] > cell["identity"][0]["d2"] + 0.02
    assert record["GLM"]["d2"] > cell["log"][0]["d2"] > 0.85
    page = (tmp_path / "counts.md").read_text()
    assert "Of 5 cells" in page and "| Poisson 50 | 5000 |" in page

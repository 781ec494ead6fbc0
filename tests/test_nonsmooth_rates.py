"""The benchmark of rates: what is taken for the best model is, and what is written."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks import nonsmooth_rates as rates
from benchmarks.__main__ import main
from skdp.solvers import SGD, GradientDescent


@pytest.mark.parametrize("name", rates.POPULATIONS)
def test_the_best_model_is_a_multiple_of_the_first_feature(name):
    """No model of all features is better by more than what 20 000 records say by chance."""
    population = rates.POPULATIONS[name]
    X, y = rates.draw_records(population, 20_000, 0)
    best = rates.least(population, X[:, 0], y)
    start = np.zeros(X.shape[1])
    start[0] = 5.0 if name == "hinge" else 1.0
    found = minimize(lambda w: population.loss(X @ w, y).mean(), start, method="Powell", options={"maxiter": 3})
    assert best - 0.002 < found.fun
    assert best < population.loss(0 * y, y).mean() - 0.02


def test_the_rate_falls_by_the_powers_of_its_parts():
    """First between one over n and its root, as noise is a part of it, then as one over the root of n."""
    sizes = [10**3, 10**4]
    assert -0.9 < rates.slope(sizes, rates.rate(sizes)) < -0.55
    large = [10**9, 10**10]
    assert rates.slope(large, rates.rate(large)) == pytest.approx(-0.5, abs=0.01)
    assert rates.slope([1, 2, 4], [8, 2, 0.5]) == pytest.approx(-2)
    assert math.isnan(rates.slope([10], [1.0]))


def test_files_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "SIZES", (200, 400))
    monkeypatch.setattr(rates, "N_TEST", 2000)
    monkeypatch.setattr(rates, "SOLVERS", {"gd": GradientDescent(5), "sgd single pass": SGD(5, sampling="single_pass")})
    main(["nonsmooth-rates", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    contents = json.loads((tmp_path / "nonsmooth_rates.json").read_text())
    assert len(contents["records"]) == 2 * 2 * 2
    assert contents["quick"] and contents["seconds"] > 0
    text = (tmp_path / "nonsmooth_rates.md").read_text()
    assert all(text.count(f"| {name} | {solver} |") == 1 for name in rates.POPULATIONS for solver in rates.SOLVERS)
    assert (tmp_path / "nonsmooth_rates.png").stat().st_size > 1000

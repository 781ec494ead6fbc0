"""The benchmark of rates: the risks are those of the populations, the powers those of the theory, and what is written."""

import json
import math

import numpy as np
import pytest
from seeded import fitted

from benchmarks import nonsmooth_rates as rates
from benchmarks.__main__ import main
from skdp import DPLinearSVC
from skdp.solvers import SGD, GradientDescent


def sampled_loss(name, X, y, coef):
    raw = X @ coef
    return np.abs(raw - y) if name.startswith("absolute") else np.maximum(1 - np.where(y == 1, raw, -raw), 0.0)


@pytest.mark.parametrize("name", rates.POPULATIONS)
def test_quadrature_agrees_with_records(name, rng):
    """Differences of two models' risks, to 5 standard errors of 40 000 records: a false alarm in 4e5 models."""
    population, n_samples = rates.POPULATIONS[name], 40_000
    X, y = rates.draw_records(population, n_samples, 0)
    zero = np.zeros(X.shape[1])
    for scale in (0.5, 2.0, 8.0):
        coef = zero + rng.normal(size=zero.size) * scale / 3
        coef[0] += scale
        gained = sampled_loss(name, X, y, coef) - sampled_loss(name, X, y, zero)
        expected = rates.excess_risk(population, coef, n_samples) - rates.excess_risk(population, zero, n_samples)
        assert abs(gained.mean() - expected) < 5 * gained.std() / math.sqrt(n_samples)


@pytest.mark.parametrize("name", rates.POPULATIONS)
def test_no_model_is_better_than_a_multiple_of_the_first_feature(name, rng):
    population = rates.POPULATIONS[name]
    for scale in (0.01, 0.3, 3.0):
        coef = rng.normal(size=rates.N_FEATURES) * scale
        coef[0] = 1.0 if name.startswith("absolute") else 3.0 * scale
        assert rates.excess_risk(population, coef, 1000) > 1e-9 * scale


@pytest.mark.parametrize("growth", [2.0, 4.0])
def test_the_excess_of_numbers_grows_with_the_stated_power(growth):
    coef, errors = np.zeros(rates.N_FEATURES), np.array([0.4, 0.8])
    excesses = []
    for error in errors:
        coef[:2] = 1.0, error
        excesses.append(rates.excess_risk(rates.Numbers(growth), coef, 1000))
    assert rates.slope(errors, excesses) == pytest.approx(growth, abs=1e-3)


def test_the_excess_of_signs_is_quadratic_near_the_minimum():
    """Across the best multiple, 6.226; by a fiftieth of it, and twice that."""
    population, coef = rates.POPULATIONS["hinge"], np.zeros(rates.N_FEATURES)
    excesses = []
    for error in (0.125, 0.25):
        coef[:2] = 6.226, error
        excesses.append(rates.excess_risk(population, coef, 1000))
    assert rates.slope([0.125, 0.25], excesses) == pytest.approx(2.0, abs=0.1)


def test_the_rate_falls_by_the_powers_of_its_parts():
    """First between one over n and its root, as noise is a part of it, then as one over the root of n; so does a single pass."""
    sizes = [10**3, 10**4]
    assert -0.9 < rates.slope(sizes, rates.rate(sizes)) < -0.55
    large = [10**9, 10**10]
    assert rates.slope(large, rates.rate(large)) == pytest.approx(-0.5, abs=0.01)
    assert rates.slope(sizes, rates.rate(sizes, once=True)) == pytest.approx(-0.5, abs=0.05)
    for name, times in (("hinge", 2.0), ("absolute error, flat", 4 / 3), ("hinge, faint", 1.0)):
        assert rates.slope(large, rates.theory(name, "sgd", large)) == pytest.approx(-0.5 * times, abs=0.02)


def test_powers_have_standard_errors(rng):
    """A median of n normal logarithms has sqrt(pi / 2 n) of their deviation, a mean of their exponentials far more."""
    assert rates.slope([1, 2, 4], [8, 2, 0.5]) == pytest.approx(-2)
    assert rates.slope_error([10, 100, 1000], np.full((3, 5), 0.1)) == pytest.approx(0, abs=1e-15)
    excesses = np.exp(3 * rng.normal(size=(2, 400)))
    expected = 3 * math.sqrt(2) * math.sqrt(math.pi / 2 / 400) / math.log(100)
    assert rates.slope_error([10, 1000], excesses) == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize(
    ("solver", "count"), [(GradientDescent(7), 7 * 300), (SGD(20, batch_size=30), 600), (SGD(5, sampling="single_pass"), 150)]
)
def test_gradients_are_counted_per_record(solver, count):
    model = fitted(DPLinearSVC(solver=solver), np.ones((300, 2)), np.arange(300) % 2)
    assert rates.gradients(model.privacy_report_, 300) == pytest.approx(count)


@pytest.mark.slow
def test_files_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "SIZES", (200, 400))
    monkeypatch.setattr(rates, "SOLVERS", {"gd": GradientDescent(5), rates.ONCE: SGD(5, sampling="single_pass")})
    main(["nonsmooth-rates", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    contents = json.loads((tmp_path / "nonsmooth_rates.json").read_text())
    assert len(contents["records"]) == 4 * 2 * 2
    assert all(len(record["excess"]) == 3 and min(record["excess"]) > 0 for record in contents["records"])
    assert contents["quick"] and contents["seconds"] > 0
    text = (tmp_path / "nonsmooth_rates.md").read_text()
    assert all(text.count(f"| {name} | {solver} |") == 1 for name in rates.POPULATIONS for solver in rates.SOLVERS)
    assert "| gd | 1e+03 | 2e+03 | 1.00 |" in text and f"| {rates.ONCE} | 1e+02 | 2e+02 | 1.00 |" in text
    assert (tmp_path / "nonsmooth_rates.png").stat().st_size > 1000

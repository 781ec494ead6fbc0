"""Smoothed functions of additive classifiers: posterior means, given the known noise."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from seeded import fitted as seeded_fit

from skdp import DPAdditiveClassifier
from skdp.estimators.additive import _smoothing, _task
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.preprocessing._column_kinds import LearnedScale, Number
from skdp.privacy.queries import Standardization
from skdp.solvers import CoefficientNoise, SolverResult
from skdp.solvers.adaptive._iterate_noise import KnownSteps, NoisySteps

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore:Neither schema nor feature_bounds"),
]
FACTS = {"x": {"kind": "number", "bounds": [0, 1]}, "c": {"kind": "category", "categories": list("abcde")}}


def functions():
    """A basis of one number with hats and one column of categories."""
    return AdditiveBasis(Schema.read({"columns": FACTS}), 4)


def noise_of(basis, size, means):
    """Noise of steps so short that the curvature has no effect: each coordinate has the same, in standardised units."""
    d = basis.n_features
    geometry = Standardization(means, np.linspace(1.0, 3.0, d), True, 1.0)
    steps = KnownSteps(NoisySteps(10, 5, 1.0, 0.0, size), 1e-12, 0.0, 1.0)
    return CoefficientNoise(geometry, np.zeros((d + 1, 1)), np.full((d + 1, 1), size**2), steps=steps)


def result_of(coef, noise):
    """A result of a solver."""
    return SolverResult(coef[:, None], 10, noise=noise)


def uniform(basis, n=20_000):
    """Functions of records that are even in both columns."""
    rng = np.random.default_rng(0)
    return basis.transform(pd.DataFrame({"x": rng.random(n), "c": rng.choice(list("abcde"), n)}))


def test_without_noise_nothing_changes(rng):
    basis = functions()
    rows = uniform(basis)
    noise = noise_of(basis, 1e-9, np.asarray(rows.mean(axis=0)).ravel())
    coef = rng.normal(size=basis.n_features + 1)
    found = _smoothing.smoothed(basis, result_of(coef, noise)).coef[:, 0]
    np.testing.assert_allclose(rows @ found[:-1] + found[-1], rows @ coef[:-1] + coef[-1], atol=1e-4)


def test_noise_gives_way_to_neighbours_and_the_mean_prediction_stays(rng):
    basis = functions()
    rows = uniform(basis)
    noise = noise_of(basis, 2.0, np.asarray(rows.mean(axis=0)).ravel())
    curve, _ = basis.terms
    coef = np.zeros(basis.n_features + 1)
    at_knots = basis.of_term(curve, {"x": basis.grid("x", fine=False)}).toarray()
    coef[curve.columns] = np.linalg.lstsq(at_knots, 4 * basis.knots_of("x"), rcond=None)[0]
    noisy = coef.copy()
    noisy[curve.columns] += rng.normal(size=curve.columns.stop) * 2.0 * noise.geometry.scale[curve.columns]
    after = _smoothing.smoothed(basis, result_of(noisy, noise))
    found = after.coef[:, 0]
    errors = [np.std(at_knots @ (some - coef)[curve.columns]) for some in (noisy, found)]
    assert errors[1] < 0.7 * errors[0]
    assert (rows @ found[:-1] + found[-1]).mean() == pytest.approx((rows @ noisy[:-1] + noisy[-1]).mean(), abs=0.05)
    np.testing.assert_allclose(noise.geometry.to_rows(after.noise.estimates)[:-1, 0], found[:-1])
    np.testing.assert_array_equal(after.noise.variances, noise.variances)


def test_rare_categories_are_drawn_to_the_level_of_the_others():
    basis, (_, bars) = functions(), functions().terms
    means = np.zeros(basis.n_features)
    weight = basis.of_term(bars, {"c": np.array(list("abcde"), dtype=object)}).max()
    shares = np.append([0.4, 0.3, 0.2, 0.0999, 0.0001], np.zeros(bars.columns.stop - bars.columns.start - 5))
    means[bars.columns], coef = weight * shares, np.zeros(basis.n_features + 1)
    noise = noise_of(basis, 1.0, means)
    scale = noise.geometry.scale.copy()
    scale[bars.columns] = 0.05
    scale[bars.columns.start + 4] = 8.0  # a rare category is scaled up, with its noise
    noise = CoefficientNoise(Standardization(means, scale, True, 1.0), noise.estimates, noise.variances, steps=noise.steps)
    coef[bars.columns.start + 4] = 9.0 / weight
    contributions = _smoothing.smoothed(basis, result_of(coef, noise)).coef[bars.columns, 0] * weight
    assert abs(contributions[4] - contributions[0]) < 4
    np.testing.assert_allclose(contributions[:4] - contributions[0], 0.0, atol=0.1)


def test_the_functions_of_even_records_have_the_assumed_covariance():
    basis = functions()
    rows = uniform(basis, 200_000)
    for term in basis.terms:
        columns = _smoothing._smooth_columns(basis, term)
        part = rows[:, columns].toarray()
        _, _, mean, gram = _smoothing._prior(basis, term, columns, part.mean(axis=0))
        np.testing.assert_allclose(mean, part.mean(axis=0), atol=0.03 * part.max())
        np.testing.assert_allclose(gram, np.cov(part.T), atol=0.06 * np.square(part).mean(axis=0).max())


def test_the_noise_of_steps_is_that_of_a_simulation(rng):
    root = rng.normal(size=(3, 3))
    gram, scale = root @ root.T / 3, np.array([0.5, 1.0, 2.0])
    steps = NoisySteps(40, 20, 0.5, 0.6, 0.3)
    known = KnownSteps(steps, 0.2, 0.01, 1.5)
    noise = CoefficientNoise(Standardization(np.zeros(3), scale, True, 1.0), np.zeros((4, 1)), np.zeros((4, 1)), steps=known)
    curvature = 0.5 * 0.2 * scale[:, None] * gram * scale
    theta, velocity, total = (np.zeros((20_000, 3)) for _ in range(3))
    for step in range(40):
        velocity = 0.6 * velocity + theta @ curvature + 0.3 * rng.normal(size=theta.shape)
        theta = (theta - 0.5 * velocity) / (1 + 0.5 / 0.4 * 0.01)
        total += theta / 20 if step >= 20 else 0.0
    found = np.cov((1.5 * scale * total).T)
    np.testing.assert_allclose(noise.covariance(slice(0, 3), gram), found, atol=0.05 * found.max())


@pytest.mark.exhaustive
@pytest.mark.parametrize("epsilon", (0.5, 2.0))
def test_curves_are_nearer_to_those_without_noise(epsilon, monkeypatch):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.beta(1, 2, 5000), rng.random(5000)])  # few records at the upper end of the first column
    log_odds = 4 * (X[:, 0] > 0.3) + 2 * (X[:, 1] > 0.5) - 1.5
    y = (rng.random(5000) < 1 / (1 + np.exp(-log_odds))).astype(int)
    given = {"delta": 1e-7, "adjacency": "zero_out", "feature_bounds": np.array([[0, 1], [0, 1]]), "classes": [0, 1], "knots": 6}
    exact = seeded_fit(DPAdditiveClassifier(math.inf, **{**given, "delta": None}), X, y).shape_functions_
    errors = {}
    for way in ("smoothed", "as released"):
        if way == "as released":
            monkeypatch.setattr(_task, "smoothed", lambda basis, result: result)
        models = [seeded_fit(DPAdditiveClassifier(epsilon, **given), X, y, seed=seed) for seed in range(8)]
        errors[way] = np.mean([np.square(m.shape_functions_["x0"].values - exact["x0"].values).mean() for m in models])
    assert errors["smoothed"] < 0.9 * errors["as released"]


@pytest.mark.slow
def test_it_needs_noise_of_known_curvature(monkeypatch):
    rng = np.random.default_rng(3)
    X, seen = rng.random((1000, 2)), []
    y = (X[:, 0] + rng.random(1000) > 1).astype(int)
    monkeypatch.setattr(
        _task,
        "smoothed",
        lambda basis, result: (seen.append(result.noise is not None and result.noise.steps is not None), result)[1],
    )
    given = {"delta": 1e-6, "feature_bounds": np.array([[0, 1], [0, 1]]), "knots": 3}
    for changes, n_calls in (
        ({"epsilon": 2.0}, 1),
        ({"epsilon": math.inf, "delta": None}, 0),
        ({"epsilon": 2.0, "class_weight": {0: 1.0, 1: 0.5}}, 0),
        ({"epsilon": 2.0, "solver": "gd"}, 0),
    ):
        seen.clear()
        seeded_fit(DPAdditiveClassifier(**{**given, **changes}, classes=[0, 1]), X, y)
        assert sum(seen) == n_calls
    seen.clear()
    seeded_fit(DPAdditiveClassifier(2.0, **given, classes=[0, 1, 2]), X, np.arange(1000) % 3)
    assert not any(seen)


def test_learned_numbers_stay_as_released():
    facts = Schema.read({"columns": FACTS})
    learned = replace(facts.columns["x"], learned=LearnedScale((0.2, 0.8), 0.5))
    basis = AdditiveBasis(replace(facts, columns={**facts.columns, "x": learned}), 4)
    assert [_smoothing._smooth_columns(basis, term) is None for term in basis.terms] == [True, False]


def test_numbers_of_two_values_stay_as_released(rng):
    basis = functions()
    frame = pd.DataFrame({"x": rng.integers(0, 2, 5000).astype(float), "c": rng.choice(list("abcde"), 5000)})
    noise = noise_of(basis, 2.0, np.asarray(basis.transform(frame).mean(axis=0)).ravel())
    coef = rng.normal(size=basis.n_features + 1)
    found = _smoothing.smoothed(basis, result_of(coef, noise)).coef[:, 0]
    curve, bars = basis.terms
    np.testing.assert_array_equal(found[curve.columns], coef[curve.columns])
    assert (found[bars.columns] != coef[bars.columns]).all()


def test_integers_of_a_learned_number_are_shrunk_and_its_function_is_as_released(rng):
    learned = LearnedScale((0.0, 4.0), 2.0, integers=(0.0, 1.0, 2.0, 3.0, 4.0), missing=True, weight=0.5)
    basis = AdditiveBasis(Schema({"few": Number((0.0, 4.0), "linear", None, learned)}, None, None), 4)
    frame = pd.DataFrame({"few": rng.choice([0, 1, 2, 3, 4, np.nan], 5000)})
    rows = basis.transform(frame).toarray()
    start = basis.hats_of(basis.terms[0]).stop
    integers = _smoothing._integers_of(basis, basis.terms[0])
    assert integers.columns == slice(start, start + 5) and start + 6 == basis.n_features
    assert integers.weight == rows[:, integers.columns].max() and not integers.exhaustive
    noise = noise_of(basis, 1.0, rows.mean(axis=0))
    coef = rng.normal(size=basis.n_features + 1)
    found = _smoothing.smoothed(basis, result_of(coef, noise)).coef[:, 0]
    assert np.linalg.norm(found[integers.columns]) < 0.5 * np.linalg.norm(coef[integers.columns])
    np.testing.assert_array_equal(found[:start], coef[:start])
    assert found[-2] == coef[-2]  # missing cells
    assert (rows @ found[:-1]).mean() + found[-1] == pytest.approx((rows @ coef[:-1]).mean() + coef[-1])

"""Coefficients of indicators are shrunk by the known covariance of their noise."""

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp import DPLogisticRegression
from skdp.estimators import _logistic
from skdp.estimators._shrunk_indicators import FEWEST, shrunk_indicators
from skdp.preprocessing import Schema, from_schema
from skdp.preprocessing._pipeline import indicators_of, prepared_names
from skdp.privacy.queries import Standardization
from skdp.solvers import CoefficientNoise, SolverResult
from skdp.solvers.adaptive._iterate_noise import KnownSteps, NoisySteps

pytestmark = pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
LEARNT = {"centre": 5, "core": [1, 9]}
COLUMNS = {
    "plain": {"kind": "number", "bounds": [0, 1]},
    "c": {"kind": "category", "categories": ["a", "b", "other"]},
    "hashed": {"kind": "category", "buckets": [3, 17, 200], "missing": True},
    "skewed": {"kind": "number", "bounds": [1, 9], **LEARNT, "logarithm": 2.0, "integers": [1, 2, 9], "missing": True},
    "far": {"kind": "number", "bounds": [1, 9], **LEARNT},
    "light": {"kind": "number", "bounds": [1, 9], **LEARNT, "integers": [4, 5, 6, 7], "weight": 0.5},
    "two": {"kind": "category", "categories": ["no"]},
}
LEVELS = 24


def facts():
    """A schema with every kind of column."""
    return Schema.read({"columns": COLUMNS})


def result_of(coef, size, means):
    """A result of steps so short that the curvature has no effect: each coordinate has the same noise, in standardised units."""
    d = len(coef) - 1
    steps = KnownSteps(NoisySteps(10, 5, 1.0, 0.0, size), 1e-12, 0.0, 1.0)
    noise = CoefficientNoise(
        Standardization(means, np.ones(d), True, 1.0), np.zeros((d + 1, 1)), np.full((d + 1, 1), size**2), steps=steps
    )
    return SolverResult(coef[:, None], 10, noise=noise)


def one_column():
    """A schema of one column of categories, and the means of its prepared rows."""
    schema = Schema.read({"columns": {"c": {"kind": "category", "categories": [*map(str, range(LEVELS)), "other"]}}})
    return schema, np.full(LEVELS + 1, 1 / (LEVELS + 1) / schema.data_norm)


def table(n, rng):
    """Records of a number and of categories with small effects, and labels."""
    effects, levels = rng.normal(size=LEVELS) / 10, rng.integers(LEVELS, size=n)
    x = rng.uniform(-1, 1, n)
    frame = pd.DataFrame({"x": x, "c": levels.astype(str)})
    return frame, (effects[levels] + x + rng.logistic(size=n) > 0).astype(int)


def schema_of_table():
    """What is public of the records."""
    names = sorted(map(str, range(LEVELS)))
    return {"columns": {"x": {"kind": "number", "bounds": [-1, 1]}, "c": {"kind": "category", "categories": names}}}


def test_indicators_are_found_among_the_prepared_columns():
    schema = facts()
    names, found = prepared_names(schema), list(indicators_of(schema))
    groups = [[str(name) for name in names[block.columns]] for block in found]
    integers = [["skewed_1", "skewed_2", "skewed_9"], ["light_4", "light_5", "light_6", "light_7"]]
    hashed = ["hashed_bucket3", "hashed_bucket17", "hashed_bucket200", "hashed_missing", "hashed_other"]
    assert groups == [*integers, hashed, ["c_a", "c_b", "c_other"], ["two_no", "two_other"]]
    assert [block.exhaustive for block in found] == [False, False, True, True, True]
    row = pd.DataFrame({"plain": [0.5], "c": ["b"], "hashed": ["?"], "skewed": [9], "far": [5], "light": [4], "two": ["yes"]})
    values = from_schema(schema)[:-1].fit_transform(row)[0]  # rows are not shortened
    np.testing.assert_allclose([values[block.columns].max() for block in found], [block.weight for block in found])
    assert sum(np.count_nonzero(values[block.columns]) for block in found) == len(found)


def test_without_noise_nothing_changes(rng):
    schema, means = one_column()
    coef = rng.normal(size=LEVELS + 2)
    np.testing.assert_allclose(shrunk_indicators(schema, result_of(coef, 1e-9, means)).coef[:, 0], coef, atol=1e-6)


def test_equal_effects_stay_equal_and_the_mean_prediction_stays(rng):
    schema, means = one_column()
    means = means * np.linspace(0.2, 1.8, LEVELS + 1)
    coef = np.append(2.0 + rng.normal(size=LEVELS + 1), -1.0)
    found = shrunk_indicators(schema, result_of(coef, 3.0, means)).coef[:, 0]
    assert means @ found[:-1] + found[-1] == pytest.approx(means @ coef[:-1] + coef[-1])
    assert np.std(found[:-1]) < 0.3 * np.std(coef[:-1])
    assert found[:-1].mean() == pytest.approx(coef[:-1].mean())  # the level of categories is free


@pytest.mark.parametrize("effect, most", [(0.0, 0.5), (0.5, 0.7), (20.0, 1.02)])
def test_errors_are_smaller_than_those_of_released_coefficients(effect, most, rng):
    """Mean squared errors of 50 draws, so that their ratio has a standard error of about .03."""
    schema, means = one_column()
    errors = np.zeros(2)
    for _ in range(50):
        truth = np.append(effect * rng.normal(size=LEVELS + 1), 0.0)
        released = truth + np.append(rng.normal(size=LEVELS + 1), 0.0)
        found = shrunk_indicators(schema, result_of(released, 1 / np.sqrt(5), means)).coef[:, 0]  # five steps of noise
        errors += [np.square(found - truth)[:-1].sum(), np.square(released - truth)[:-1].sum()]
    assert errors[0] < most * errors[1]


def test_columns_with_few_indicators_and_other_features_are_as_released(rng):
    schema = facts()
    names = prepared_names(schema)
    coef = rng.normal(size=len(names) + 1)
    found = shrunk_indicators(schema, result_of(coef, 1.0, np.full(len(names), 0.05)))
    blocks = [block.columns for block in indicators_of(schema) if block.columns.stop - block.columns.start >= FEWEST]
    inside = np.isin(np.arange(len(names)), np.concatenate([np.arange(len(names))[columns] for columns in blocks]))
    changed = found.coef[:-1, 0] != coef[:-1]
    assert changed.tolist() == inside.tolist() and inside.sum() == 15
    np.testing.assert_array_equal(found.noise.estimates[:-1], found.coef[:-1])  # the scale of the geometry is 1


def test_releases_are_the_same_and_log_losses_fall(monkeypatch, rng):
    frame, y = table(4000, rng)
    model = DPLogisticRegression(0.3, adjacency="zero_out", schema=schema_of_table(), classes=[0, 1])
    after = fitted(model, frame, y).privacy_report_.to_dict(), model.predict_proba(frame)
    monkeypatch.setattr(_logistic, "shrunk_indicators", lambda schema, result: result)
    before = fitted(model, frame, y).privacy_report_.to_dict(), model.predict_proba(frame)
    assert after[0] == before[0]
    losses = [-np.log(p[np.arange(len(y)), y]).mean() for _, p in (after, before)]
    assert losses[0] < losses[1] - 0.001


@pytest.mark.parametrize("given", [{"epsilon": np.inf}, {"solver": "gd"}, {"classes": [0, 1, 2]}, {"schema": None}])
def test_where_no_noise_is_known_nothing_changes(given, monkeypatch, rng):
    frame, y = table(600, rng)
    given = {"epsilon": 1.0, "schema": schema_of_table(), "classes": [0, 1], **given}
    X = frame if given["schema"] else frame[["x"]].to_numpy()
    model = DPLogisticRegression(**given, data_norm=None if given["schema"] else 1.0)
    after = fitted(model, X, y).coef_
    monkeypatch.setattr(_logistic, "shrunk_indicators", lambda schema, result: result)
    np.testing.assert_array_equal(after, fitted(model, X, y).coef_)

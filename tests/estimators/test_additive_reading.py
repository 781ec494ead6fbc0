"""Test the reading of additive models: functions, contributions, monotone functions, and results without noise."""

import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from people import BOUNDS, COLUMNS, GIVEN, fitted, numbers, people, silent

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.estimators.additive._bins import bins_of
from skdp.estimators.additive._support import supports
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.preprocessing._parts import Shares
from skdp.solvers import ReleasedMoments
from skdp.testing import reproducible_noise

both = pytest.mark.parametrize("kind", GIVEN)


@pytest.mark.slow
def test_a_pair_of_many_knots_fits_into_memory(rng):
    """Its 4761 products on a grid of as many points, beside those of the columns."""
    X, y = numbers(rng, 50)
    model = fitted(DPAdditiveClassifier, X, y, feature_bounds=BOUNDS, interactions=[(0, 1)], knots=64, monotone={0: 1})
    tracemalloc.start()
    shape = model.shape_functions_["x0", "x1"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert shape.values.shape == shape.lower.shape == (69, 69)
    assert peak < 8 * shape.values.size**2  # a grid of all the products, at once


def test_without_noise_a_sum_of_functions_is_found(rng):
    """One that is piecewise linear with the knots of the model, and of which a linear model explains little."""
    X = np.column_stack([rng.uniform(0, 4, 20_000), rng.uniform(0, 4, 20_000)])
    shapes = [np.array([0.0, 1, -1, 1, 0]), np.array([1.0, 0, 0, 0, 1])]
    y = sum(np.interp(column, range(5), shape) for column, shape in zip(X.T, shapes, strict=True))
    facts = {"feature_bounds": [(0, 4), (0, 4)], "target_bounds": (-3, 3), "data_norm": math.sqrt(2)}  # no row is longer
    model = silent(DPAdditiveRegressor, X, y, knots=4, **facts)
    assert model.score(X, y) > 0.9999
    assert silent(DPAdditiveRegressor, X, y, knots=0, **facts).score(X, y) < 0.2
    for found, shape in zip(model.shape_functions_.values(), shapes, strict=True):
        values = np.interp(range(5), found.grid, found.values)
        np.testing.assert_allclose(values - values.mean(), shape - shape.mean(), atol=0.02)


@pytest.mark.slow
def test_an_interaction_that_is_named_is_found(rng):
    X, y = numbers(rng, 20_000)
    alone, together = (
        silent(DPAdditiveClassifier, X, y, feature_bounds=BOUNDS, knots=8, interactions=pairs).score(X, y)
        for pairs in ((), [(0, 1)])
    )
    assert alone < 0.9 < 0.97 < together


@pytest.mark.each_value
@both
@pytest.mark.parametrize("interactions", ((), [("age", "town"), ("age", "income")]))
def test_contributions_add_up(kind, interactions, rng):
    frame = people(rng)
    model = fitted(kind, frame, np.arange(400) % 2, schema={"columns": COLUMNS}, interactions=interactions, knots=4)
    raw = model.decision_function(frame) if kind is DPAdditiveClassifier else model.predict(frame)
    inside = np.abs(raw) < 4 if kind is DPAdditiveRegressor else np.full(400, True)
    assert inside.any()
    np.testing.assert_allclose((model.explain(frame).sum(axis=1) + model.baseline_)[inside], raw[inside], atol=1e-9)
    assert list(model.shape_functions_) == ["age", "income", "town", *interactions]


def test_contributions_of_three_classes_add_up(rng):
    frame = people(rng)
    model = fitted(DPAdditiveClassifier, frame, np.arange(400) % 3, schema={"columns": COLUMNS}, knots=4)
    contributions = model.explain(frame)
    assert contributions.shape == (400, 3, 3)
    np.testing.assert_allclose(contributions.sum(axis=1) + model.baseline_, model.decision_function(frame), atol=1e-9)
    assert all(shape.values.shape[-1] == 3 for shape in model.shape_functions_.values())


@both
def test_shape_functions_are_the_contributions(kind, rng):
    frame = people(rng)
    model = fitted(kind, frame, np.arange(400) % 2, schema={"columns": COLUMNS}, interactions=[("age", "town")], knots=4)
    explained = model.explain(frame)
    for place, (name, shape) in enumerate(model.shape_functions_.items()):
        if name == "age":
            wanted = np.interp(frame["age"], shape.grid, shape.values)
        elif name == "income":
            wanted = np.interp(np.log1p(frame["income"].clip(upper=1e5)), np.log1p(shape.grid), shape.values)
        elif name == "town":
            assert shape.grid.tolist() == ["a", "b", "c", "other"]
            wanted = frame["town"].map(dict(zip(shape.grid, shape.values, strict=True))).fillna(shape.values[-1])
        else:
            ages, towns = shape.grid
            column = {town: np.interp(frame["age"], ages, shape.values[:, i]) for i, town in enumerate(towns)}
            wanted = [column.get(town, column["other"])[i] for i, town in enumerate(frame["town"])]
        np.testing.assert_allclose(explained[:, place], wanted, atol=1e-9)


@pytest.mark.each_value
@both
@pytest.mark.parametrize("knots", (0, 4))
@pytest.mark.parametrize("direction", (1, -1))
def test_functions_are_monotone_where_that_is_asked(kind, knots, direction, rng):
    """Also where the records say the opposite, and the rest of the model is as it was."""
    frame = people(rng)
    y = (frame["age"] + rng.normal(size=400) > 50).astype(int)
    parameters = {"schema": {"columns": COLUMNS}, "knots": knots, "epsilon": 10.0}
    free = fitted(kind, frame, y, **parameters)
    bound = fitted(kind, frame, y, monotone={"age": direction, 1: -direction}, **parameters)
    for name, way in (("age", direction), ("income", -direction)):
        shape = bound.shape_functions_[name]
        for curve in (shape.values, shape.lower, shape.upper):
            assert (way * np.diff(curve) >= -1e-12).all()
        assert (shape.lower <= shape.values + 1e-12).all() and (shape.values <= shape.upper + 1e-12).all()
    np.testing.assert_array_equal(bound.shape_functions_["town"].values, free.shape_functions_["town"].values)
    if direction == 1:
        assert np.ptp(bound.shape_functions_["age"].values) > 0.5 * np.ptp(free.shape_functions_["age"].values)


@both
def test_functions_that_hardly_anybody_meets_matter_less(kind, rng):
    """Of two columns with the same function the one whose records lie where it is level; without hats all places count alike."""
    X = np.column_stack([rng.uniform(-1, 1, 4000), rng.uniform(-1, -0.5, 4000)])
    y = (np.maximum(X, 0).sum(axis=1) > 0.4).astype(int)
    shapes = fitted(kind, X, y, epsilon=10.0, feature_bounds=1.0, knots=4).shape_functions_
    assert shapes["x0"].importance > 2 * shapes["x1"].importance
    for shape in fitted(kind, X, y, feature_bounds=1.0, knots=0).shape_functions_.values():
        np.testing.assert_allclose(shape.importance, np.sqrt(np.square(shape.values).mean()))


@pytest.mark.parametrize("seed", range(3))
def test_a_number_of_two_values_without_effect_is_not_important_for_what_its_curve_does_between_them(seed):
    """Noise moves the curve there, where nobody is; the average over the whole grid made it 1.2 to 1.8 times the other."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 2, 30_000), rng.uniform(0.18, 0.8, 30_000)])
    y = (X[:, 1] + rng.normal(0, 0.25, 30_000) > 0.55).astype(int)
    with reproducible_noise(seed):
        model = DPAdditiveClassifier(1.0, classes=[0, 1], feature_bounds=(0, 1)).fit(X, y)
    truths, others = model.shape_functions_.values()
    assert np.abs(truths.values).max() > 0.5 > 0.1 > np.abs(truths.values[[0, -1]]).max()
    assert truths.importance < 0.6 * others.importance


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("schema", ("stated", "learned"))
@both
def test_what_no_record_had_is_predicted_like_what_records_had(kind, schema, rng):
    """Over 3 fits, deviations of a town that nobody had, against those of ages that are there."""
    n = 20_000
    frame = pd.DataFrame({"age": rng.integers(18, 66, n), "town": rng.choice(["Ulm", "Bonn"], n)})
    risk = 0.06 * (frame["age"] - 40) + (frame["town"] == "Ulm") + rng.logistic(size=n)
    columns = {
        "age": {"kind": "number", "bounds": [0, 120]},
        "town": {"kind": "category", "categories": ["Ulm", "Bonn", "Kiel"]},
    }
    facts = {"schema": {"columns": columns} if schema == "stated" else "learn"}
    facts |= {"target_bounds": (-8.0, 8.0)} if "Regressor" in kind.__name__ else {}
    y = risk if "Regressor" in kind.__name__ else (risk > 0).astype(int)
    there = pd.DataFrame({"age": [18, 25, 40, 60, 65], "town": "Ulm"})
    beyond = pd.DataFrame({"age": [40, 40, 100], "town": ["Kiel", None, "Ulm"]})
    known, unknown = [], []
    for seed in range(3):
        with reproducible_noise(seed):
            model = kind(epsilon=3.0, random_state=0, **facts).fit(frame, y)
        known.append(np.ravel(model._raw(there)))
        with pytest.warns(UserWarning, match="X has what no training record had"):
            unknown.append(np.ravel(model._raw(beyond)))
            total = model.explain(beyond).sum(axis=1) + model.baseline_
        assert total == pytest.approx(unknown[-1], abs=1e-4)
        assert "town" in model.hardly_seen_ and "hardly_seen" in model.privacy_report_.learned
        if schema == "stated":
            assert 60 < max(low for (low, _), _ in model.hardly_seen_["age"]) < 100
    assert np.std(unknown, axis=0).max() <= 2 * np.std(known, axis=0).max()
    assert np.mean(unknown, axis=0)[:2] == pytest.approx(np.mean(known, axis=0)[2] - 0.5, abs=0.15)


@pytest.mark.parametrize(("deviations", "kept"), ((2.0, False), (2.9, True)))
def test_what_is_not_listed_keeps_its_effect_if_its_share_stands_out(deviations, kept):
    """Levels that are too rare to be listed may decide, such as four months of a year of campaigns."""
    town = {"kind": "category", "categories": ["Bonn", "Ulm", "Kiel"]}
    basis = AdditiveBasis(Schema.read({"columns": {"town": town}}), 24)
    term, noise = basis.terms[0], 0.01
    labels = basis.facts.columns["town"].labels
    shares = np.where(np.array(labels) == "other", deviations * noise, 0.3)
    moments = ReleasedMoments(shares / basis.length_in_force, noise / basis.length_in_force)
    found = supports(basis, moments, {}, {})
    coef = np.where(np.array(labels) == "other", 5.0, 1.0)
    carried = found["town"].levels @ coef if found else coef
    assert term.columns.stop == len(labels) and carried[labels.index("other")] == pytest.approx(5.0 if kept else 1.0)


@pytest.mark.parametrize("noise", (1e-4, 1e-2))
def test_where_nobody_is_the_curve_takes_the_value_before_the_last_records(noise):
    """Of ages from 18 to 65, two of 100 records are beyond the place if bins tell; else it is the last knot near records."""
    basis = AdditiveBasis(Schema.read({"columns": {"age": {"kind": "number", "bounds": [0, 120]}}}), 24)
    ages = np.arange(18, 66, 0.01)[:, None]
    rows = basis.transform(ages).toarray()
    bins = np.bincount(bins_of(basis)(rows)[0], minlength=bins_of(basis).sizes[0]) / len(ages)
    shares = {"age": Shares(bins, np.full(bins.size, noise))}
    support = supports(basis, ReleasedMoments(rows.mean(axis=0), 1e-4), {}, shares)["age"]
    expected = np.quantile(ages, [0.02, 0.98]) if noise < 1e-3 else [15.0, 70.0]
    assert 120 * np.array(support.places) == pytest.approx(expected, abs=0.5)  # a bin is .94 wide, a knot every 5
    coef = np.random.default_rng(0).normal(size=basis.n_features)
    carried = support.carries(basis, basis.terms[0]) @ coef
    raw = basis.transform(np.array([[20.0], [60.0], *([120 * place] for place in support.places)])).toarray() @ coef
    found = basis.transform(np.array([[20.0], [60.0], [1.0], [100.0]])).toarray() @ carried
    assert found == pytest.approx(raw)


def test_the_signs_of_a_number_leave_knots_that_no_value_reaches():
    """A number of which little is learned is -1, 0 or 1; where no record is negative, the curve is carried on to -1."""
    basis = AdditiveBasis(
        Schema.read({"columns": {"loss": {"kind": "number", "bounds": [-1, 1], "scale": "sign", "core": [0, 0], "centre": 0}}}),
        24,
    )
    values = np.array([[0.0]] * 95 + [[1.0]] * 5)
    moments = ReleasedMoments(basis.transform(values).toarray().mean(axis=0), 1e-4)
    support = supports(basis, moments, {}, {})["loss"]
    coef = np.random.default_rng(0).normal(size=basis.n_features)
    carried = basis.transform(np.array([[-1.0], [0.0], [1.0]])).toarray() @ (support.carries(basis, basis.terms[0]) @ coef)
    assert carried == pytest.approx(basis.transform(np.array([[0.0], [0.0], [1.0]])).toarray() @ coef)

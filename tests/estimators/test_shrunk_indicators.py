"""Coefficients of indicators are shrunk by the known covariance of their noise, and to the average where no record has them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from seeded import fitted
from sklearn.base import clone

from skdp import (
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPGroupDROClassifier,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPQuantileRegressor,
    DPRobustRegressor,
    load_model,
    save_model,
)
from skdp.estimators import _logistic
from skdp.estimators._kept_moments import KeptMoments
from skdp.estimators._shrunk_indicators import FEWEST, average_effects, shrunk_indicators
from skdp.preprocessing import Schema, from_schema
from skdp.preprocessing._parts import Shares, support
from skdp.preprocessing._pipeline import indicators_of, prepared_names
from skdp.privacy.queries import Standardization
from skdp.solvers import CoefficientNoise, GradientDescent, InferenceDescent, ReleasedMoments, SolverResult
from skdp.solvers.adaptive._iterate_noise import KnownSteps, NoisySteps

pytestmark = pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
LEARNED = {"centre": 5, "core": [1, 9]}
COLUMNS = {
    "plain": {"kind": "number", "bounds": [0, 1]},
    "c": {"kind": "category", "categories": ["a", "b", "other"]},
    "hashed": {"kind": "category", "buckets": [3, 17, 200], "missing": True},
    "skewed": {"kind": "number", "bounds": [1, 9], **LEARNED, "logarithm": 2.0, "integers": [1, 2, 9], "missing": True},
    "far": {"kind": "number", "bounds": [1, 9], **LEARNED},
    "light": {"kind": "number", "bounds": [1, 9], **LEARNED, "integers": [4, 5, 6, 7], "weight": 0.5},
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


N = 3000
CITIES = {
    "columns": {
        "age": {"kind": "number", "bounds": [18, 90]},
        "city": {"kind": "category", "categories": ["Ulm", "Bonn"]},
        "sex": {"kind": "category", "categories": ["m"]},
    }
}
# Models, the target of each, and how far the mean prediction for a new level may be from that for all records: well within the
# distance of known levels (.5 in log-odds, 50 of the number) but for the saddle problem, whose scores are smaller. Noise put new
# levels 1 to 5 and 100 to 400 away (root mean square of 8 fits).
FAMILIES = {
    "logistic": (DPLogisticRegression(), "two", 0.3),
    "several": (DPLogisticRegression(), "three", 0.3),
    "svc": (DPLinearSVC(), "two", 0.3),
    "ranking": (DPAUCMaximizer(), "two", 0.3),
    "saddle": (DPAUCMaximizer(solver="sgda"), "two", 0.1),
    "groups": (DPGroupDROClassifier(), "two", 0.2),
    "ball": (DPConstrainedClassifier(constraint="l2", radius=10.0), "two", 0.3),
    "gd": (DPLogisticRegression(solver="gd"), "two", 0.3),
    "least squares": (DPLinearRegression(target_bounds=(0, 1000)), "number", 20.0),
    "robust": (DPRobustRegressor(target_bounds=(0, 1000)), "number", 20.0),
    "quantile": (DPQuantileRegressor(target_bounds=(0, 1000)), "number", 20.0),
}


def cities(rng):
    """Records of two cities, whose effects differ, and targets of several kinds."""
    X = pd.DataFrame({"age": rng.integers(18, 90, N), "city": rng.choice(["Ulm", "Bonn"], N), "sex": rng.choice(["m", "f"], N)})
    score = 0.06 * (X["age"] - 55) + np.where(X["city"] == "Ulm", 0.5, -0.5) + rng.logistic(size=N)
    number = 500 + 100 * (score + rng.normal(size=N) / 2)
    return X, {"two": (score > 0).to_numpy(), "three": np.digitize(score, [-1, 1]), "number": number.to_numpy()}


def mean_prediction(model, X):
    """Mean raw predictions."""
    return (model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)).mean(axis=0)


def in_silence(function, *given):
    """What a function returns; that columns warn is tested by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*given)


@pytest.mark.each_value
@pytest.mark.parametrize("schema", ["learn", CITIES], ids=["learned", "stated"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_level_that_no_record_has_gets_the_average_effect(family, schema, rng):
    X, targets = cities(rng)
    model, target, near = FAMILIES[family]
    model = in_silence(fitted, clone(model).set_params(schema=schema), X, targets[target])
    usual = mean_prediction(model, X)
    for cell in ("Kiel", None):
        new = in_silence(mean_prediction, model, X.assign(city=cell))
        np.testing.assert_allclose(new, usual, rtol=0, atol=near)
    assert [part for part, _ in model.hardly_seen_["city"]] == ["other"]
    told = "no share is released" if schema is CITIES and family in ("ball", "gd", "robust") else "at most"  # gradients judge
    assert f"city: other ({told}" in model.privacy_report_.learned["hardly_seen"]


@pytest.mark.slow
def test_the_first_layer_of_a_network_has_the_average_effect(rng):
    X, targets = cities(rng)
    model = fitted(DPAUCMaximizer(scorer="mlp", hidden_layer_sizes=(3,), schema=CITIES), X, targets["two"])
    names, layer = model.prepared_features_.tolist(), model.coefs_[0]
    ulm, bonn, other = (layer[names.index(f"city_{name}")] for name in ("Ulm", "Bonn", "other"))
    np.testing.assert_allclose(other, (ulm + bonn) / 2, rtol=0, atol=0.05 * np.abs(layer).max())


def test_what_is_not_listed_beside_a_single_level_keeps_its_effect(rng):
    X, targets = cities(rng)
    schema = {"columns": {"city": {"kind": "category", "categories": ["Ulm"]}}}
    for solver in ("auto", "gd"):
        model = fitted(DPLogisticRegression(3.0, schema=schema, solver=solver), X, targets["two"])
        ulm, other = model.coef_[0]
        assert ulm - other > 0.4 and not model.hardly_seen_


def test_a_listed_level_that_no_record_has_is_told_where_noise_leaves_room_for_it(rng):
    X, targets = cities(rng)
    schema = {"columns": {"city": {"kind": "category", "categories": ["Ulm", "Bonn", "Kiel"]}}}
    model = fitted(DPLinearRegression(2.0, schema=schema, target_bounds=(0, 1000)), X, targets["number"])
    assert [part for part, _ in model.hardly_seen_["city"]] == ["Kiel", "other"]
    many = {"columns": {"age": {"kind": "category", "categories": list(range(18, 90))}}}
    model = fitted(DPLinearRegression(0.5, schema=many, target_bounds=(0, 1000)), X, targets["number"])
    assert [part for part, _ in model.hardly_seen_["age"]] == ["other"]  # a level of the mean share does not stand out


@pytest.mark.parametrize("model", [DPRobustRegressor(4.0), DPLinearRegression(4.0, solver="gd")], ids=["robust", "gd"])
def test_released_gradients_tell_a_listed_level_that_no_record_has(model, rng):
    """Noise put it 200 to 400 away (root mean square of 4 fits)."""
    X, targets = cities(rng)
    schema = {"columns": {"city": {"kind": "category", "categories": ["Ulm", "Bonn", "Kiel"]}}}
    model = fitted(clone(model).set_params(schema=schema, target_bounds=(0, 2000)), X, targets["number"])
    assert [part for part, _ in model.hardly_seen_["city"]] == ["Kiel", "other"]
    ulm, bonn, *rest = model.coef_
    np.testing.assert_allclose(rest, (ulm + bonn) / 2)  # gradients do not tell shares
    assert np.isnan([share for _, share in model.hardly_seen_["city"]]).all()
    assert "city: Kiel (no share is released)" in model.privacy_report_.learned["hardly_seen"]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (DPLogisticRegression(1.0, solver="skgd"), "solver='skgd' releases no counts"),
        (DPLogisticRegression(1.0, solver="objective"), "solver='objective' releases no counts"),
        (DPLogisticRegression(3.0, inference=True), "inference leaves all effects as released"),
        (DPLogisticRegression(3.0, solver="gd"), None),
    ],
    ids=["skgd", "objective", "inference", "gd"],
)
def test_the_report_tells_where_nothing_is_known_of_levels(model, why, rng):
    X, targets = cities(rng)
    model = in_silence(fitted, clone(model).set_params(schema=CITIES), X, targets["two"])
    told = (model.privacy_report_.learned or {}).get("hardly_seen", "")
    expected = f"Nothing is known of levels that no record had: {why}; predictions for them may be noise"
    assert (expected in told) if why else ("Nothing is known" not in told)


@pytest.mark.parametrize("n_steps", (30, 100))
def test_the_pull_of_a_feature_without_records_is_standard_normal(n_steps, rng):
    """Of 2000 features: mean and variance within four standard errors, and .05 for Fisher's approximation."""
    report, d = DPLogisticRegression(solver=GradientDescent(n_steps)), 2000
    X, labels = np.zeros((1000, d)), np.arange(1000) % 2
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeptMoments, "beside", lambda self, result: kept.append(self._pull()[:d]) or result)
        fitted(report.set_params(data_norm=1.0), X, labels)
    assert abs(kept[0].mean()) < 4 / np.sqrt(d) + 0.05 and abs(kept[0].var() - 1) < 4 * np.sqrt(2 / d) + 0.05


@pytest.mark.slow
def test_predictions_for_what_no_record_has_warn_and_saved_models_do(rng, tmp_path):
    X, targets = cities(rng)
    model = fitted(DPLogisticRegression(schema=CITIES, classes=[False, True]), X, targets["two"])
    model.predict(X)  # is silent
    save_model(model, tmp_path / "m.skops")
    for one in (model, load_model(tmp_path / "m.skops")):
        for method in ("predict", "predict_proba", "decision_function"):
            with pytest.warns(UserWarning, match="'city'"):
                getattr(one, method)(X.assign(city=None))


def test_support_is_the_posterior_probability_of_a_share(rng):
    """The share of empty parts among those with such a release, of 400 000; the tolerance is five standard errors at least."""
    noise, size = 0.05, 400_000
    there = rng.random(size) < 0.25
    released = np.where(there, rng.uniform(0, 1, size), 0.0) + noise * rng.normal(size=size)
    for share in (-0.05, 0.0, 0.1, 0.15, 0.3):
        near = np.abs(released - share) < 0.01
        expected = there[near].mean()
        found = support(Shares(np.array([share, 0.5]), np.full(2, noise)), np.array([3.0, 3.0]))[0]
        assert abs(found - expected) < 5 * np.sqrt(0.25 / near.sum()) + 0.02  # the window is wide
    nothing = support(Shares(np.full(3, 1 / 3), np.full(3, np.inf)), np.array([0.0, 1.0, 99.0]))
    np.testing.assert_allclose(nothing, [1.0, 0.5, 0.01], rtol=1e-6)


def test_levels_whose_released_shares_are_all_far_below_0_leave_finite_coefficients():
    """Noise of an epsilon of 1e-6 hides everything; a model without numbers would lose the budget."""
    schema, weights = Schema.read({"columns": {"c": {"kind": "category", "categories": ["a", "b", "c"]}}}), np.arange(4.0)
    moments = ReleasedMoments(np.array([-1e6, -2e6, -3e6, -1e6]), 1e6)
    average_effects(schema, changed := weights[:, None].copy(), moments, {})
    assert np.isfinite(changed).all()


@pytest.mark.parametrize(
    "given",
    [{"epsilon": np.inf}, {"inference": True, "epsilon": 3.0}, {"solver": InferenceDescent(n_steps=8), "epsilon": 3.0}],
)
def test_models_without_noise_and_for_inference_keep_every_effect(given, rng):
    X, targets = cities(rng)
    model = fitted(DPLogisticRegression(**{"schema": CITIES, **given}), X, targets["two"])
    assert not hasattr(model, "hardly_seen_")

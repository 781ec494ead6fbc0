"""What boosted fits release: exactly what the plan says, with its noise, and nothing else that depends on the data."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from marks import slow

from skdp import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from skdp.estimators.boosting import _rule
from skdp.estimators.boosting._rule import rule_of
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BinCounts, LeafSums, ResidualSum, SlopeDerivatives, TreeWeight
from skdp.solvers._slope_steps import SlopeSteps
from skdp.testing import reproducible_noise

N, DELTA, N_TREES = 3000, 1e-7, 100
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
KINDS = {
    "classifier": (DPGradientBoostingClassifier, {"classes": [0, 1]}),
    "three classes": (DPGradientBoostingClassifier, {"classes": [0, 1, 2], "class_weight": {0: 2.0}}),
    "regressor": (DPGradientBoostingRegressor, {"target_bounds": (-1, 1)}),
}


def data(name, rng):
    X = rng.uniform(-1, 1, (N, 2))
    score = X[:, 0] * X[:, 1]
    return X, {"classifier": score > 0, "three classes": np.digitize(score, [-0.1, 0.1])}.get(name, score).astype(float)


@pytest.fixture
def few_trees(monkeypatch):
    """Fits of fewer trees are as those of many."""
    monkeypatch.setattr(_rule, "N_TREES", N_TREES)


@pytest.fixture
def heard(monkeypatch):
    """All queries, their releases and the noise of the answers."""
    found = []

    def answer(self, query, release, records, honest=Oracle._answer):
        exact = query.evaluate(self._rows)
        found.append((query, release, honest(self, query, release, records) - exact))
        return exact + found[-1][2]

    monkeypatch.setattr(Oracle, "_answer", answer)
    return found


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
@pytest.mark.parametrize("name", KINDS)
def test_the_releases_are_those_of_the_plan_with_its_noise(name, adjacency, heard, rng, few_trees):
    """By the report's noise another accountant finds the epsilon; the answers have this noise, on every query that was asked."""
    kind, given = KINDS[name]
    model = kind(8.0, delta=DELTA, adjacency=adjacency, feature_bounds=1.0, random_state=0, **given)
    planned = model.plan(N, 2)
    with reproducible_noise(0):
        model.fit(*data(name, rng))
    report, accountant, squares, noise, asked = model.privacy_report_, PLDAccountant(), {}, {}, iter(heard)
    assert model.trees_ is not None and planned.releases == report.releases
    for line in report.releases:
        relative = None
        for _ in range(line.count):
            query, release, added = next(asked)
            relative = query.relative_sensitivity[adjacency]
            assert type(query).__name__ == line.query and type(query) is release.query
            assert release.clip_norm in (None, query.clip_norm) and release.size in (None, query.size)
            assert query.sensitivity(adjacency) == pytest.approx(relative * query.clip_norm, rel=1e-12)
            noise.setdefault(line.query, []).append(added / (line.noise_multiplier * query.clip_norm))
        accountant.compose(GaussianDpEvent(line.noise_multiplier / relative), line.count)
        squares[line.query] = squares.get(line.query, 0.0) + line.count * (relative / line.noise_multiplier) ** 2
    assert next(asked, None) is None and len(heard) == report.public["n_releases"]
    after = [BinCounts, *[LeafSums] * N_TREES, TreeWeight, SlopeDerivatives if "classes" in given else ResidualSum]
    assert [type(query) for query, _, _ in heard][-len(after) :] == after
    assert accountant.get_epsilon(DELTA) == pytest.approx(8.0, rel=2e-3)
    total = gaussian_mu(8.0, DELTA) ** 2
    assert squares["BinCounts"] / total == pytest.approx(0.03, rel=1e-4)
    assert squares["TreeWeight"] / total == pytest.approx(0.04, rel=1e-4)
    assert (relative / report.releases[-1].noise_multiplier) ** 2 / total == pytest.approx(0.01, rel=1e-4)
    assert sum(squares.values()) == pytest.approx(total, rel=1e-4)
    for answers in noise.values():  # within six standard deviations of their spread
        answers = np.concatenate(answers).ravel()
        assert np.std(answers) == pytest.approx(1.0, abs=6 / math.sqrt(2 * answers.size))
    assert model.privacy_spent_ == (pytest.approx(8.0, rel=1e-6), DELTA) and model.privacy_spent_.epsilon <= 8 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ("classifier", "three classes"))
def test_the_slope_multiplies_all_scores_and_what_reads_them(name, monkeypatch, rng, few_trees):
    """Predictions, explanations, functions and bands; weights of classes, which no query sees, count afterwards."""
    kind, given = KINDS[name]
    (X, y), found, honest = data(name, rng), [], SlopeSteps.slope
    weights = np.zeros(3 if name == "three classes" else 1)
    if "class_weight" in given:
        weights = np.log([2.0, 1.0, 1.0]) - np.log(2.0) / 3
    for slope in (1.0, 0.5):

        def after(steps, *rest, slope=slope):
            answered = honest(steps, *rest)
            return (slope, 0.0) if steps.n_steps == 1 else answered

        monkeypatch.setattr(SlopeSteps, "slope", after)
        with reproducible_noise(0):
            model = kind(8.0, delta=DELTA, feature_bounds=1.0, random_state=0, **given).fit(X, y)
        curve, explained, scores = model.shape_functions_["x0"], model.explain(X), model.decision_function(X)
        np.testing.assert_allclose(explained.sum(axis=1) + np.squeeze(model.baseline_), scores, atol=1e-4)
        found.append([scores - np.squeeze(weights), explained, curve.values, curve.upper - curve.lower])
    for one, half in zip(*found, strict=True):
        np.testing.assert_allclose(half, one / 2, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("width", (*slow(1.0), 8.0))
def test_residuals_are_clipped_by_their_released_scale(width, heard, rng):
    """Not by the range of the targets, which can be as wide as the user likes: .6 of their deviation, which is .2 here."""
    X = rng.uniform(-1, 1, (N, 2))
    model = DPGradientBoostingRegressor(50.0, delta=DELTA, feature_bounds=1.0, target_bounds=(-width, width), random_state=0)
    with reproducible_noise(0):
        model.fit(X, np.sign(X[:, 0] * X[:, 1]) * 0.2)
    norms = {query.clip_norm for query, _, _ in heard if isinstance(query, LeafSums)}
    (norm,) = norms
    assert 0.06 < norm * width < 0.24 and heard[-2][0].limit == pytest.approx(norm * 2.5 / 0.6)
    assert model.score(X, np.sign(X[:, 0] * X[:, 1]) * 0.2) > 0.8


@pytest.mark.slow
def test_skewed_targets_have_their_mean(rng):
    """Leaf sums clip residuals, which alone would predict a law with a long tail too low."""
    X = rng.uniform(-1, 1, (N, 2))
    y = 0.02 * np.exp(0.3 * X[:, 0] + 1.2 * rng.normal(size=N))
    model = DPGradientBoostingRegressor(50.0, delta=DELTA, feature_bounds=1.0, target_bounds=(-1, 1), random_state=0)
    with reproducible_noise(0):
        mean = model.fit(X, y).predict(X).mean()
    assert mean == pytest.approx(np.clip(y, -1, 1).mean(), rel=0.05)


def test_a_scale_of_residuals_that_is_not_released_is_a_usual_one():
    rule = rule_of(10_000.0, 2, of_classes=False)
    assert rule.in_units(None) == rule.in_units(0.2) and rule.in_units(0.2).clip == pytest.approx(0.12)
    of_classes = rule_of(10_000.0, 2, of_classes=True)
    assert of_classes.in_units(0.2) is of_classes and of_classes.clip == 0.5


SCHEMA = {
    "n": {"kind": "number", "bounds": [0, 9]},
    "t": {"kind": "category", "categories": ["x", "y"]},
}
GIVEN = {"bounds": {"feature_bounds": (0, 9)}, "schema": {"schema": {"columns": SCHEMA}}, "learn": {"schema": "learn"}}


def table(which, name, given):
    """A table, and labels or targets; the two tables share no cell, but names and types."""
    one = {"n": np.arange(N) / 7 % 9, "t": ["x"] * N}
    two = {"n": [-1e200, 1e300] * (N // 2), "t": ["y", "z" if given == "learn" else "y"] * (N // 2)}
    frame = pd.DataFrame(one if which == 1 else two).astype({"t": object})
    y = {"classifier": np.arange(N) % 2, "three classes": np.arange(N) % 3}.get(name, np.sin(np.arange(N)))
    other = {"classifier": (np.arange(N) + 1) % 2, "three classes": (np.arange(N) + 1) % 3}.get(name, np.full(N, -1e200))
    return frame if given != "bounds" else frame[["n", "n"]].to_numpy() * [1.0, 0.5], y if which == 1 else other


def left_by(name, given, which, seed, monkeypatch, exact=False):
    """All bits that a fit leaves, and the warnings that it gives, with answers from a seed."""
    rng = np.random.default_rng(seed)

    def answer(self, query, release, records):
        query.evaluate(self._rows)
        return query.evaluate(self._rows) if exact else rng.normal(N / 20, N / 30, query.size)

    kind, parameters = KINDS[name]
    model = kind(8.0, random_state=0, **parameters, **GIVEN[given])
    X, y = table(which, name, given)
    with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as said, reproducible_noise(0):
        patched.setattr(Oracle, "_answer", answer)
        warnings.simplefilter("always")
        model.fit(X, y)
    assert model.trees_ is not None
    report = model.privacy_report_
    texts = [str(report), json.dumps(report.to_dict()), report._repr_html_(), repr(vars(model))]
    return pickle.dumps(model), texts, [str(warning.message) for warning in said], model


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", KINDS)
def test_disjoint_tables_with_the_same_answers_leave_the_same_bits(name, given, monkeypatch, few_trees):
    """Trees, importances, report and warnings among them."""
    (*one, model), (*two, other) = (left_by(name, given, which, 0, monkeypatch) for which in (1, 2))
    assert one == two
    np.testing.assert_array_equal(model.feature_importances_, other.feature_importances_)


@pytest.mark.slow
def test_the_comparison_can_fail(monkeypatch, few_trees):
    (*one, _), (*two, _) = (left_by("classifier", "bounds", which, 0, monkeypatch, True) for which in (1, 2))
    assert one[0] != two[0]


@pytest.mark.parametrize("n_samples, n_trees", ((100_000, 1000), (100_001, 500)))
def test_many_records_get_half_as_many_trees(n_samples, n_trees):
    report = DPGradientBoostingClassifier(3.0, classes=[0, 1], feature_bounds=1.0).plan(n_samples, 2)
    assert {line.query: line.count for line in report.releases}["LeafSums"] == n_trees

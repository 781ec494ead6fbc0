"""Test knots that follow the records: their release, and that they depend on nothing else in the records."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPLogisticRegression
from skdp._extra_facts import ExtraFacts
from skdp.estimators.additive import _task
from skdp.estimators.additive._knot_placement import FINEST, finest, hat_columns, place_knots
from skdp.losses import Logistic
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.errors import NotPrivateWarning
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import HatSums
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers import SGD, Problem, StandardizedGradientDescent, WhitenedGradientDescent

SCHEMA = {
    "columns": {
        "age": {"kind": "number", "bounds": [0, 100]},
        "income": {"kind": "number", "bounds": [0, 1e5], "scale": "log"},
        "town": {"kind": "category", "categories": ["a", "b"]},
    }
}
BRIEF = {DPAdditiveClassifier: StandardizedGradientDescent(3), DPAdditiveRegressor: WhitenedGradientDescent(3)}
GIVEN = {DPAdditiveClassifier: {"classes": [0, 1]}, DPAdditiveRegressor: {"target_bounds": (0, 1)}}
both = pytest.mark.parametrize("kind", GIVEN)
adjacencies = pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))


def people(rng, n=3000, centre=30.0):
    age = rng.normal(centre, 3, n)
    frame = pd.DataFrame({"age": age, "income": rng.exponential(10 * centre, n), "town": rng.choice(["a", "b", "c"], n)})
    return frame, (age > centre).astype(int)


def model_of(kind, **parameters):
    given = {"schema": SCHEMA, "knots": "private", "solver": BRIEF[kind], "epsilon": 3.0}
    return kind(**{**given, **GIVEN[kind], **parameters})


class Watch:
    """Keeps what is asked of each oracle, and its schedule; answers hat sums with given numbers where there are any."""

    def __init__(self, monkeypatch, answer=None):
        self.asked, self.mapped, self.oracle = [], [], None
        ask, map_rows = Oracle.ask, Oracle.map_rows

        def asking(oracle, query):
            self.oracle = oracle
            found = ask(oracle, query)
            self.asked.append(query)
            return answer if answer is not None and isinstance(query, HatSums) else found

        def mapping(oracle, matrix):
            self.mapped.append((len(self.asked), matrix))
            map_rows(oracle, matrix)

        monkeypatch.setattr(Oracle, "ask", asking)
        monkeypatch.setattr(Oracle, "map_rows", mapping)


@pytest.mark.each_value
@both
@adjacencies
@pytest.mark.parametrize("pairs", ((), [("age", "town"), ("age", "income")]))
def test_the_first_release_is_of_hats_and_the_transcript_is_the_schedule(kind, adjacency, pairs, rng, monkeypatch):
    watch = Watch(monkeypatch)
    model = fitted(model_of(kind, adjacency=adjacency, interactions=pairs), *people(rng))
    first, *others = watch.oracle.transcript
    assert [type(query) for query in watch.asked] == [line.query for line in watch.oracle.transcript]
    assert first.query is HatSums and HatSums not in [line.query for line in others] and first.size == 2 * FINEST.size
    assert [place for place, _ in watch.mapped] == [1]
    scale, budget = watch.oracle._scale, watch.oracle._budget
    made = Schedule(tuple((1, line) for line in watch.oracle.transcript))
    assert spent_epsilon(made, scale, budget) == pytest.approx(3.0, rel=1e-6)
    assert model.privacy_spent_.epsilon == pytest.approx(3.0, rel=1e-6)
    mu = [
        line.query.relative_sensitivity[adjacency] / noise_multiplier(line, scale, adjacency) for line in watch.oracle.transcript
    ]
    assert mu[0] ** 2 / np.square(mu).sum() == pytest.approx(0.05)
    plan = model.plan(3000) if kind is DPAdditiveRegressor else model.plan(3000, n_classes=2)
    for report in (plan, model.privacy_report_):
        assert report.releases[0].query == "HatSums" and "placed by the first release" in report.public["resolved"]["basis"]
        assert report.releases[0].noise_multiplier == pytest.approx(noise_multiplier(first, scale, adjacency))


def test_a_solver_is_told_how_much_noise_it_has():
    """From the part of the budget that is left, which its schedule has after a release in front."""
    budget = Budget(0.7, 1e-6, "zero_out")
    whole = Problem(1000, 3, Logistic(), budget, 1.0, 1.0)
    part = replace(whole, extra=ExtraFacts(share=0.75))
    assert part.signal_to_noise == pytest.approx(math.sqrt(0.75) * whole.signal_to_noise)
    schedule = StandardizedGradientDescent().schedule(part)
    front = Release(HatSums, Gaussian(), 1.0, 4)
    assert calibrate(schedule.preceded_by(front, 0.25), budget) == pytest.approx(1000 / part.signal_to_noise)
    assert calibrate(schedule, budget) == pytest.approx(1000 / whole.signal_to_noise)


@pytest.mark.slow
@both
def test_knots_depend_on_the_records_through_that_release_alone(kind, rng, monkeypatch):
    """Quite different tables have the same knots where its answer is the same, and others where it is not."""
    tables = [people(rng, centre=centre) for centre in (10.0, 80.0)]
    free = [fitted(model_of(kind), *table).basis_ for table in tables]
    assert free[0] != free[1]
    bases = []
    for seed in (0, 1):
        with monkeypatch.context() as patch:
            Watch(patch, 3000 * np.random.default_rng(seed).dirichlet(np.full(FINEST.size, 0.1), size=2).ravel())
            bases.append([fitted(model_of(kind), *table).basis_ for table in tables])
    for one, other in bases:
        assert one == other and one.terms == free[0].terms
    assert bases[0][0] != bases[1][0]


@both
def test_public_knots_know_nothing_of_the_records(kind, rng):
    bases = [fitted(model_of(kind, knots="auto"), *people(rng, centre=centre)).basis_ for centre in (10.0, 80.0)]
    assert bases[0] == bases[1] and not bases[0].placed


def test_without_noise_knots_are_those_of_exact_sums_and_the_fit_is_the_ordinary_one(rng, monkeypatch):
    """On functions of the records with these knots; the matrix of the oracle rounds in other places."""
    monkeypatch.setattr(_task, "supports", lambda *given: {})  # which changes curves where no record is
    X, y = people(rng, 400)
    with pytest.warns(NotPrivateWarning):
        model = fitted(model_of(DPAdditiveClassifier, epsilon=math.inf, interactions=[("age", "town")]), X, y)
    fine = finest(model.basis_)
    hats = fine.transform(X).toarray()[:, hat_columns(fine)]
    for name, part in zip(("age", "income"), hats.mean(axis=0).reshape(2, -1) * math.sqrt(2), strict=True):
        np.testing.assert_array_equal(model.basis_.knots_of(name), place_knots(part, model.basis_.knots.size))
    table = model.basis_.transform(X)
    with pytest.warns(NotPrivateWarning):
        plain = DPLogisticRegression(math.inf, solver=BRIEF[DPAdditiveClassifier], data_norm=model.basis_.data_norm)
        plain = plain.fit(table, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(table), atol=1e-9)
    for name in ("age", "income"):
        grid = model.shape_functions_[name].grid
        assert grid.size == 16 * (model.basis_.knots.size - 1) + 1


@both
@pytest.mark.parametrize("n, epsilon", ((60, 3.0), (300, 0.4)))
def test_where_noise_would_drown_the_sums_knots_are_public_and_nothing_is_spent_on_them(kind, n, epsilon, rng):
    X, y = people(rng, n)
    models = [fitted(model_of(kind, epsilon=epsilon, knots=knots), X, y) for knots in ("private", "auto")]
    assert models[0].basis_ == models[1].basis_ and not models[0].basis_.placed
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].privacy_report_.releases == models[1].privacy_report_.releases


@both
def test_solvers_with_other_releases_are_refused_before_anything_is_read(kind, rng, monkeypatch):
    watch = Watch(monkeypatch)
    with pytest.raises(ValueError, match=r"solver=SGD\(\) uses releases that are not full-data Gaussian"):
        fitted(model_of(kind, solver=SGD()), *people(rng))
    with pytest.raises(ValueError, match="'private' or a number"):
        fitted(model_of(kind, knots="privately"), *people(rng))
    assert watch.oracle is None


def test_more_classes_and_numbers_without_a_schema(rng):
    X = rng.uniform(-1, 1, (3000, 2)) ** 5
    y = np.digitize(np.abs(X[:, 0]), [0.01, 0.2])
    model = fitted(DPAdditiveClassifier(3.0, feature_bounds=1.0, knots="private", interactions=[(1, 0)]), X, y)
    assert model.coef_.shape == (3, model.basis_.n_features) and list(model.basis_.placed) == ["x0", "x1"]
    assert np.abs(model.basis_.knots_of("x0") - 0.5).min() == 0 and model.score(X, y) > 0.7

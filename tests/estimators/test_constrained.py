"""Test estimators with constraints: the model lies in the set in the user's units, whatever the solver's units are."""

import json
import math
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from products import KINDS, brief, estimator_of, fitting, labels_of
from scipy import sparse
from seeded import fitted
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skdp import DPConstrainedClassifier, DPConstrainedRegression, load_model, save_model
from skdp.constraints import Box, L1Ball, L2Ball, LpBall, Simplex
from skdp.solvers import SOLVERS, GradientDescent

KINDS_WITH_A_SET = [kind for kinds in KINDS.values() for kind in kinds if kind.startswith("constrained")]
SETS = {
    "l1": L1Ball(0.7),
    "l2": L2Ball(0.7),
    "simplex": Simplex(0.7),
    "box": Box(-0.7, 0.7),
    "lp": LpBall(0.7, 1.5),
    "one-sided box": Box(0.0, 0.3),
}


@dataclass(frozen=True)
class HalfSpaces:
    """A user's own set: no coefficient above a limit."""

    limit: float = 0.2

    def project(self, w):
        return np.minimum(w, self.limit)

    def scaled(self, factor):
        return HalfSpaces(factor * self.limit)


@pytest.fixture
def table(rng):
    X = rng.choice([-1.0, 1.0], size=(300, 4))
    return X, X @ [1.0, 0.5, -0.5, 0.0] + 0.2 * rng.normal(size=300)


def labels(kind, y):
    return {"numbers": y, "binary": y > 0, "multinomial": np.digitize(y, [-0.5, 0.5])}[labels_of(kind)]


@pytest.mark.each_value
@pytest.mark.parametrize("kind, solver", [(kind, solver) for kind in KINDS_WITH_A_SET for solver in fitting(kind)])
@pytest.mark.parametrize("name", SETS)
def test_the_model_lies_in_the_set_in_the_units_of_the_user(kind, name, solver, table):
    """The range of y makes the unit of the solver 37; a set and the name of one are the same."""
    bounds = {"target_bounds": (-37.0, 20.0)} if labels_of(kind) == "numbers" else {}
    models = [estimator_of(kind, solver=brief(SOLVERS[solver]), constraint=SETS[name], **bounds)]
    if hasattr(models[0], "loss"):
        models.append(clone(models[0]).set_params(loss="huber", threshold=Fraction(1, 3), target_bounds=None))
    for model in models:
        try:
            fitted(model, table[0], labels(kind, table[1]))
        except ValueError as error:  # the set has no mirror map, or too many vertices
            assert f"solver={solver!r} needs" in str(error) and name not in ("l1", "simplex")
            continue
        assert SETS[name].contains(model.coef_.T.ravel(), 1e-9)
        assert "constraint" in model.privacy_report_.public["resolved"]
        if name in ("l1", "l2", "simplex", "box"):
            named = fitted(clone(model).set_params(constraint=name, radius=0.7), table[0], labels(kind, table[1]))
            np.testing.assert_array_equal(named.coef_, model.coef_)


@pytest.mark.parametrize("kind", KINDS_WITH_A_SET)
def test_solvers_that_cannot_keep_to_a_set_are_refused(kind, table):
    others = SOLVERS.keys() - set(fitting(kind))
    assert others
    for solver in others:
        with pytest.raises(ValueError, match=f"solver='{solver}' needs"):
            estimator_of(kind, solver=solver).fit(table[0], labels(kind, table[1]))


@pytest.mark.parametrize("kind", KINDS_WITH_A_SET)
def test_a_set_of_the_user_goes_with_solvers_that_project(kind, table):
    model = estimator_of(kind, constraint=HalfSpaces(), epsilon=5.0)
    fitted(model, table[0], labels(kind, table[1]))
    assert 0.15 < model.coef_.max() <= 0.2 + 1e-12 and "HalfSpaces(limit=0.2)" in str(model.privacy_report_)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(table[0]), model.predict(table[0]))
    assert clone(model).constraint == HalfSpaces()


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize(
    "loss, bounds, fit_intercept, shift",
    (
        ("squared", (-10.0, 40.0), False, 0.0),
        ("squared", (-10.0, 40.0), True, 5.0),
        ("squared", (1.0, 9.0), True, 5.0),
        ("huber", (-10.0, 40.0), False, 0.0),
        ("huber", (1.0, 9.0), True, 5.0),
        ("huber", None, False, 0.0),
        ("huber", None, True, 5.0),
    ),
)
def test_a_wide_set_leaves_the_optimum_alone(loss, bounds, fit_intercept, shift, table):
    """Without noise and within a large ball it is that of least squares, perhaps reweighted, in the units of y."""
    X, y = table[0], table[1] + shift
    solver = GradientDescent(1500, tail_average=0.0, step_size=0.3, momentum=0.5)
    given = {"loss": loss, "threshold": 0.3, "target_bounds": bounds, "radius": 100.0, "data_norm": 2.0, "clip_norm": 1e9}
    model = DPConstrainedRegression(math.inf, solver=solver, fit_intercept=fit_intercept, **given).fit(X, y)
    expected = reweighted(X, y, 0.3 if loss == "huber" else math.inf, fit_intercept)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-6)


def reweighted(X, y, threshold, fit_intercept):
    """Least squares with weights of residuals as Huber's loss has them, at its fixed point."""
    model, weights = LinearRegression(fit_intercept=fit_intercept), np.ones(len(y))
    for _ in range(200 if threshold < math.inf else 1):
        residuals = np.abs(y - model.fit(X, y, weights).predict(X))
        weights = 1 / np.maximum(residuals / threshold, 1)
    return model


@pytest.mark.parametrize("kind", KINDS_WITH_A_SET)
def test_an_intercept_takes_a_solver_that_knows_how(kind, table):
    X, y = table[0], labels(kind, table[1])
    assert not estimator_of(kind).fit_intercept
    model = estimator_of(kind, fit_intercept=True, radius=0.5)
    assert model.plan(1000, 4).solver == "gd"
    fitted(model, X, y)
    assert np.any(model.intercept_) and L1Ball(0.5).contains(model.coef_.ravel())
    for solver in {"accmd", "frank_wolfe"} & set(SOLVERS):
        with pytest.raises(
            ValueError, match=rf"'{solver}' needs .*no intercept.*, but the problem has .*an intercept\. Solvers that fit: gd, "
        ):
            model.set_params(solver=solver).fit(X, y)


@pytest.mark.parametrize("factor", (4.0, 0.125))
def test_units_of_the_targets_do_not_matter(factor, table):
    """All that is in units of y moves with it."""
    X, y = table
    given = {"loss": "huber", "epsilon": 2.0}
    expected = fitted(DPConstrainedRegression(threshold=0.5, radius=0.7, **given), X, y)
    model = fitted(DPConstrainedRegression(threshold=0.5 * factor, radius=0.7 * factor, **given), X, factor * y)
    np.testing.assert_allclose(model.coef_, factor * expected.coef_, rtol=1e-9)
    bounded = fitted(DPConstrainedRegression(target_bounds=(-4, 3), radius=0.7), X, y)
    scaled = DPConstrainedRegression(target_bounds=(-4 * factor, 3 * factor), radius=0.7 * factor)
    np.testing.assert_allclose(fitted(scaled, X, factor * y).coef_, factor * bounded.coef_, rtol=1e-9)


def test_far_targets_count_as_far_as_huber_lets_them(table):
    """One of 1e300 is as one of 1e3: the slope has a bound."""
    X, y = table
    far = [np.where(np.arange(300) == 7, size, y) for size in (1e3, 1e300, 1.7e308)]
    given = {"loss": "huber", "threshold": 1e-10}
    fits = [fitted(DPConstrainedRegression(**given), X, each).coef_ for each in far]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])


def test_predictions_stay_in_the_bounds_where_there_are_bounds(table):
    X, y = table
    bounded = fitted(DPConstrainedRegression(5.0, target_bounds=(-2, 2), radius=3.0), X, y)
    free = fitted(DPConstrainedRegression(5.0, loss="huber", radius=3.0), X, y)
    far = 1e6 * np.sign(bounded.coef_)[None]
    with pytest.warns(UserWarning, match="more than 10 times as long as data_norm"):
        assert bounded.predict(far).tolist() == [2.0] and bounded.target_bounds_ == (-2.0, 2.0)
    with pytest.warns(UserWarning, match="more than 10 times as long as data_norm"):
        assert abs(free.predict(far)[0]) > 1e5 and free.target_bounds_ is None
    assert any("what lies outside of target_bounds" in line for line in bounded.privacy_report_.assumptions)
    assert not any("target_bounds" in line for line in free.privacy_report_.assumptions)


@pytest.mark.parametrize("n_classes", (2, 3))
def test_a_classifier_gives_probabilities_and_takes_weights(n_classes, table):
    X, y = table[0], np.array(["a", "b", "c"])[np.digitize(table[1], [-0.5, 0.5] if n_classes == 3 else [0.0])]
    model = fitted(
        DPConstrainedClassifier(5.0, radius=2.0, class_weight={"b": 2.0}, data_norm=2.0), pd.DataFrame(X, columns=list("wxyz")), y
    )
    probabilities = model.predict_proba(pd.DataFrame(X, columns=list("wxyz")))
    assert probabilities.shape == (300, n_classes) and model.feature_names_in_.tolist() == list("wxyz")
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.coef_.shape == ((1, 4) if n_classes == 2 else (3, 4)) and np.abs(model.coef_).sum() <= 2 + 1e-9
    dense = fitted(DPConstrainedClassifier(5.0, radius=2.0), X, y)
    assert dense.score(X, y) > (0.85 if n_classes == 2 else 0.5)
    for storage in (sparse.csr_matrix, sparse.csc_array):
        np.testing.assert_allclose(fitted(clone(dense), storage(X), y).coef_, dense.coef_, atol=1e-6)


@pytest.mark.parametrize(
    "given, error, message",
    (
        ({"constraint": "l3"}, ValueError, "constraint='l3'; expected 'l1'"),
        ({"constraint": L1Ball}, TypeError, "constraint=.*project and scaled"),
        ({"constraint": 1.0}, TypeError, "constraint=1.0; expected"),
        ({"radius": 0.0}, ValueError, "radius=0.0; expected"),
        ({"radius": "1"}, TypeError, "radius='1'; expected"),
        ({"constraint": Box((0.0,) * 3, (1.0,) * 3)}, ValueError, "3 coefficients; expected 4"),
        ({"alpha": -1.0}, ValueError, "alpha=-1.0; expected"),
    ),
)
@pytest.mark.parametrize("kind", KINDS_WITH_A_SET[:2])
def test_sets_that_are_none_are_refused(kind, given, error, message, table, monkeypatch):
    """Before anything is paid for."""
    monkeypatch.setattr("skdp.estimators._base.pay", lambda *given: pytest.fail("it was paid for"))
    with pytest.raises(error, match=message):
        estimator_of(kind, **given).fit(table[0], labels(kind, table[1]))


class Scatter(HalfSpaces):
    """A set whose projection fails."""

    def project(self, w):
        return np.full(w.size - 1, 0.5)


def test_a_set_that_projects_to_something_else_is_refused(table, monkeypatch):
    monkeypatch.setattr("skdp.estimators._base.pay", lambda *given: pytest.fail("it was paid for"))
    with pytest.raises(ValueError, match=r"0 is projected to no finite vector of shape \(4,\)"):
        DPConstrainedClassifier(constraint=Scatter()).fit(table[0], table[1] > 0)


class Nowhere(HalfSpaces):
    """A set that is none in other units."""

    def scaled(self, factor):
        return None


def test_a_set_that_scales_to_something_else_is_refused(table, monkeypatch):
    monkeypatch.setattr("skdp.estimators._base.pay", lambda *given: pytest.fail("it was paid for"))
    with pytest.raises(TypeError, match=r"scaled\(factor\) returned None; expected a set with project"):
        DPConstrainedRegression(constraint=Nowhere(), target_bounds=(-2, 2)).fit(*table)


def test_a_model_that_could_not_be_read_again_is_not_written(table, tmp_path):
    model = DPConstrainedRegression(constraint=HalfSpaces(), target_bounds=(-1, 1)).fit(*table)
    with pytest.raises(ValueError, match=r"would hold the types \[.*HalfSpaces.*\.joblib"):
        save_model(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    save_model(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(load_model(tmp_path / "model.joblib", trust=True).coef_, model.coef_)


@pytest.mark.parametrize(
    "given, message",
    (
        ({"loss": "welsch"}, "loss='welsch'; expected one of"),
        ({"loss": None}, "loss=None; expected one of"),
        ({"loss": "huber", "threshold": 0.0}, "threshold=0.0; expected"),
        ({"loss": "huber", "threshold": 1e-40, "target_bounds": (-1e40, 1e40)}, "threshold=1e-40; expected a number comparable"),
    ),
)
def test_losses_that_are_none_are_refused(given, message, table):
    for call in (lambda model: model.fit(*table), lambda model: model.plan(100, 4)):
        with pytest.raises(ValueError, match=message):
            call(DPConstrainedRegression(**given))


class Outside(GradientDescent):
    """A solver that leaves the set."""

    def solve(self, problem, ask, rng):
        result = super().solve(problem, ask, rng)
        return replace(result, coef=100 * result.coef)


@pytest.mark.parametrize("kind", KINDS_WITH_A_SET)
def test_what_a_solver_returns_is_projected_once_more(kind, table):
    model = fitted(estimator_of(kind, solver=Outside(5, tail_average=0.0)), table[0], labels(kind, table[1]))
    assert np.abs(model.coef_).sum() == pytest.approx(1.0) and L1Ball(1.0).contains(model.coef_.ravel())


def test_a_set_is_saved_with_the_model(table, tmp_path):
    for constraint in ("simplex", L2Ball(0.5), Box((-1.0,) * 4, (1.0,) * 4)):
        model = fitted(DPConstrainedRegression(constraint=constraint, target_bounds=(-3, 3)), *table)
        for path in (tmp_path / "model.joblib", tmp_path / "model.skops"):
            save_model(model, path)
            restored = load_model(path, trust=True)
            assert np.array_equal(restored.predict(table[0]), model.predict(table[0])) and restored.constraint == constraint
    assert json.loads(model.privacy_report_.to_json())["public"]["parameters"]["constraint"] == repr(constraint)

"""Test DPMinimax: user-defined problems, errors in them before anything is charged, and releases."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from saddles import Instrumented, Point, Regression
from scipy import sparse
from seeded import fitted
from sklearn.base import clone

from skdp import DPMinimax, PrivacyLedger
from skdp.minimax import AUCSaddle, Factors, products
from skdp.privacy.oracle import Oracle
from skdp.scorers import LinearScorer
from skdp.solvers import SGDA, PrivateDiff

SOLVERS = pytest.mark.parametrize("solver", ("sgda", "privatediff", PrivateDiff(20, batch_size=100)), ids=str)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 3))
    return X, X @ [0.5, -0.3, 0.0] + 0.1 * rng.normal(size=400)


@pytest.mark.each_value
@SOLVERS
@pytest.mark.parametrize("store", (np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix, pd.DataFrame))
def test_attributes_are_released_variables_whatever_the_storage(solver, store, table):
    X, y = table
    model = DPMinimax(Regression, solver=solver)
    dense = fitted(clone(model), X, y)
    made = fitted(model, store(X), y)
    np.testing.assert_allclose(made.primal_, dense.primal_, rtol=1e-6)
    np.testing.assert_allclose(made.dual_, dense.dual_, rtol=1e-6)
    assert made.primal_.shape == made.dual_.shape == (3,) and made.n_features_in_ == 3
    assert 0.999 < made.privacy_spent_.epsilon <= 1.0
    assert made.n_iter_ == (20 if isinstance(solver, PrivateDiff) else 100)
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.primal_, made.primal_)


def test_a_problem_may_be_given_or_made_and_auto_is_sgda(table):
    X, y = table
    made = fitted(DPMinimax(Regression), X, y)
    for saddle in (Regression(3), lambda n_features: Regression(n_features)):
        given = fitted(DPMinimax(saddle, solver="auto"), X, y)
        np.testing.assert_array_equal(given.primal_, made.primal_)
        assert given.privacy_report_.solver == "sgda"
    assert "goes with every saddle problem" in given.privacy_report_.solver_reason


def test_targets_reach_the_problem_as_they_are_and_none_are_zeros(table):
    X, y = table
    seen = []

    class Watched(Regression):
        def at(self, batch, primal, dual):
            seen.append(batch.targets)
            return super().at(batch, primal, dual)

    for targets in (7 * y + 100, None):
        seen.clear()
        fitted(DPMinimax(Watched, solver=SGDA(1)), X, targets)
        expected = np.zeros(400) if targets is None else targets
        assert sum(part.size == 400 and np.array_equal(part, expected) for part in seen) == 1


class Fails(Regression):
    def at(self, batch, primal, dual):
        raise RuntimeError("no such thing")


class WrongStart(Regression):
    def start(self, rng):
        return np.zeros(self.n_primal + 1), np.zeros(self.n_dual)


class NoPair(Regression):
    def project(self, primal, dual):
        return primal


class NotFinite(Regression):
    def public_gradient(self, primal, dual):
        return np.full(self.n_primal, np.nan), dual


class NoClip(Regression):
    dual_clip_norm = 0.0


class NoStep(Regression):
    def step_sizes(self, signal, n_steps):
        return 0.1, math.nan


class NoSample(Regression):
    batch_size = -1.0


class NoSlope(Regression):
    difference_slope = math.inf


class NoTwoSteps(Regression):
    def step_sizes(self, signal, n_steps):
        return 0.1


class NoReach(Regression):
    def primal_reach(self, dual):
        return 0.0


class TwoWeights(Regression):
    dual_weights = np.ones(2)


class NoWeight(Regression):
    dual_weights = math.nan


class NoSize(Regression):
    def __init__(self, n_features):
        self.n_primal = n_features


class EmptySamples(Regression):
    batch_size = 0


class WholeStart(Regression):
    def start(self, rng):
        return np.zeros(3, dtype=int), np.zeros(3)


class NoFactors(Regression):
    """Gradients themselves."""

    def at(self, batch, primal, dual):
        point = super().at(batch, primal, dual)
        return type("", (), {"primal": lambda self: point.fits * batch.rows, "dual": point.dual})()


class Flat(Regression):
    def at(self, batch, primal, dual):
        point = super().at(batch, primal, dual)
        return type(point)(point.rows, point.fits[:, 0], point.residuals)


class NoPoint(Regression):
    def at(self, batch, primal, dual):
        return super().at(batch, primal, dual).primal()


class NeverFinite(Regression):
    def at(self, batch, primal, dual):
        point = super().at(batch, primal, dual)
        return type(point)(point.rows, point.fits / 0.0, point.residuals)


class Blas(Regression):
    """Matrix products by BLAS, which rounds a row by its place, of all columns but the last."""

    def __init__(self, n_features):
        self.n_primal = self.n_dual = n_features - 1

    def at(self, batch, primal, dual):
        rows = batch.rows[:, :-1]
        return Point(rows, (rows @ dual)[:, None], products(rows, primal[:, None]) - batch.targets[:, None])


class TooFew(Regression):
    def at(self, batch, primal, dual):
        point = super().at(batch, primal, dual)
        return type("", (), {"primal": point.primal, "dual": lambda self: [Factors(point.fits, np.ones_like(point.fits))]})()


class ByPlace(Regression):
    """A record's gradient depends on the other ones, as a mean over the batch does."""

    def at(self, batch, primal, dual):
        point = super().at(batch, primal, dual)
        residuals = point.residuals - point.residuals.mean()
        return type(point)(point.rows, point.fits, residuals)


class FirstIsSpecial(Regression):
    """So does its last bit."""

    def at(self, batch, primal, dual):
        point = super().at(batch, primal, dual)
        fits = point.fits.copy()
        fits[1:] = np.nextafter(fits[1:], np.inf)
        return type(point)(point.rows, fits, point.residuals)


BROKEN = (
    (None, TypeError, "saddle=None; expected a SaddleProblem, or what makes one of the number of features"),
    ("regression", TypeError, "saddle='regression'; expected a SaddleProblem"),
    (lambda n_features: n_features, TypeError, r"saddle\(3\) returned 3; expected a SaddleProblem"),
    (Regression(4), ValueError, "fails on 65 made-up records of 3 features, dense"),
    (Fails, ValueError, "fails on 65 made-up records of 3 features, dense: no such thing"),
    (
        WrongStart,
        ValueError,
        r"start returned an array of float64 of shape \(4,\); expected .* floats of shapes \(3,\) and \(3,\)",
    ),
    (NoPair, TypeError, "project returned .*; expected a pair of finite arrays"),
    (NotFinite, ValueError, r"public_gradient returned an array of float64 of shape \(3,\) that is not finite"),
    (NoClip, ValueError, "dual_clip_norm=0.0; expected a finite number > 0"),
    (NoStep, ValueError, "step of the ascent=nan; expected a finite number > 0"),
    (NoSample, ValueError, "batch_size=-1.0; expected a finite number >= 1, or None"),
    (NoSlope, ValueError, "difference_slope=inf; expected a finite number >= 0"),
    (NoTwoSteps, TypeError, "step_sizes returned 0.1; expected two numbers, the steps of the descent and of the ascent"),
    (NoReach, ValueError, "primal_reach=0.0; expected a finite number > 0"),
    (TwoWeights, ValueError, r"dual_weights=.*; expected a finite number, or one per dual variable"),
    (NoWeight, ValueError, "dual_weights=nan; expected a finite number"),
    (NoSize, TypeError, "NoSize.n_dual=None; expected an integer >= 1"),
    (EmptySamples, ValueError, "EmptySamples.batch_size=0; expected a finite number >= 1, or None"),
    (WholeStart, ValueError, r"start returned an array of int64 of shape \(3,\); expected .* of floats"),
    (
        NoFactors,
        ValueError,
        r"primal\(\) of what at returned gives a ndarray; expected a list of skdp.minimax.Factors",
    ),
    (
        Flat,
        ValueError,
        r"gradient of 65 records is float64 of shape \(65,\); expected float64 of shape \(65, number of entries\)",
    ),
    (NoPoint, ValueError, r"at returned a list of Factors; expected an object with methods primal\(\) and dual\(\)"),
    (NeverFinite, ValueError, "the primal gradients of all records are NaN or infinite"),
    (Blas, ValueError, "not the same, to the last bit, alone and among others"),
    (TooFew, ValueError, "The dual gradient has 1 entries; expected n_dual=3"),
    (ByPlace, ValueError, "not the same, to the last bit, alone and among others"),
    (FirstIsSpecial, ValueError, "not the same, to the last bit, alone and among others"),
)


@pytest.mark.each_value
@pytest.mark.parametrize("saddle, error, message", BROKEN)
@pytest.mark.parametrize("solver", ("sgda", "privatediff"))
def test_what_is_wrong_with_a_problem_is_said_before_anything_is_paid_for(saddle, error, message, solver, table, monkeypatch):
    monkeypatch.setattr(Oracle, "ask", None)
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-2)
    model = DPMinimax(saddle, solver=solver)
    with ledger, pytest.raises(error, match=message):
        model.fit(*table)
    assert not ledger.entries and not hasattr(model, "primal_")
    with pytest.raises(error, match=message):
        model.plan(400, 3)


def test_solvers_of_losses_are_refused(table):
    with pytest.raises(ValueError, match=r"solver='gd' needs .*regression.* Solvers that fit: privatediff, sgda\."):
        DPMinimax(Regression, solver="gd").fit(*table)
    with pytest.raises(ValueError, match="solver='sgda' does not support pure epsilon-DP"):
        DPMinimax(Regression, delta=0).fit(*table)


def test_the_report_names_the_problem_as_unreviewed(table):
    report = DPMinimax(Instrumented).fit(*table).privacy_report_
    assert "Instrumented is unreviewed: it sees the data and is not part of skdp" in report.assumptions
    assert "NoLoss" not in str(report) and "100 x JointGradient" in str(report)
    planned = DPMinimax(Instrumented).plan(400, 3)
    assert planned.releases == report.releases and planned.noise_size == report.noise_size


@pytest.mark.slow
def test_the_report_names_a_scorer_from_elsewhere(table):
    class Own(LinearScorer):
        pass

    for scorer, named in ((Own, True), (LinearScorer, False)):
        assumed = DPMinimax(AUCSaddle(scorer(3), 0.5)).plan(400, 3).assumptions
        assert any("Own is unreviewed" in line for line in assumed) is named
        assert any("unreviewed" in line for line in assumed) is named


def test_a_problem_that_writes_to_targets_is_found_out_before_anything_is_paid_for(table):
    class Signs(Regression):
        def at(self, batch, primal, dual):
            batch.targets[batch.targets == 0] = -1  # the same when it is done twice
            return super().at(batch, primal, dual)

    with pytest.raises(ValueError, match=r"Signs.* fails on 65 made-up records.*read-only"):
        DPMinimax(Signs).plan(400, 3)


def test_a_penalty_shrinks_what_it_is_on():
    """The last coefficient of `Instrumented` is spared; without noise."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 3))
    y, fits = X @ [0.5, -0.5, 0.5], []
    for alpha in (None, 0.0, 10.0):
        with pytest.warns(UserWarning, match="not private"):
            fits.append(DPMinimax(Regression, epsilon=math.inf, alpha=alpha, solver=SGDA(50, primal_step_size=0.05)).fit(X, y))
    np.testing.assert_array_equal(fits[0].primal_, fits[1].primal_)
    assert np.abs(fits[2].primal_).max() < 0.1 * np.abs(fits[1].primal_).min()


@pytest.mark.parametrize("name", ("classes", "feature_bounds", "loss", "target_bounds", "max_iter"))
def test_parameters_of_other_estimators_are_refused_with_the_reason(name):
    with pytest.raises(TypeError, match=f"DPMinimax does not take {name}: .{{20}}"):
        DPMinimax(Regression, **{name: 1})

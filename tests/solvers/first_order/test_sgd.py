"""DP-SGD: its update, its optimum without noise, its public defaults, and that they are as good as those of DP-GD."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.tables import data_directory, load
from skdp import DPLogisticRegression
from skdp.losses import Logistic, Multinomial
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.budget import Budget
from skdp.privacy.schedule import PoissonGaussian
from skdp.solvers import SGD, GradientDescent, Problem

ADJACENCIES = ("replace_one", "zero_out")
LOGISTIC = Logistic()


def problem(epsilon=1.0, adjacency="replace_one", n_samples=5000, loss=LOGISTIC, **changes):
    budget = Budget(epsilon, 1e-7, adjacency)
    facts = Problem(n_samples, 10, loss, budget, data_norm=1.0, intercept_scaling=1.0, alpha=0.01, clip_norm=1.0)
    return replace(facts, **changes)


def test_answers_are_divided_by_the_expected_size(rng):
    """Otherwise the steps are those of "gd", which has its own test."""
    answers = rng.normal(size=(6, 11))

    def ask_from(answers):
        remaining = iter(answers)
        return lambda query: next(remaining)

    given = {"step_size": 0.5, "momentum": 0.3}
    ours = SGD(6, batch_size=250, **given).solve(problem(), ask_from(answers), rng)
    theirs = GradientDescent(6, **given).solve(problem(), ask_from(answers * 5000 / 250), rng)
    np.testing.assert_allclose(ours.coef, theirs.coef)
    assert ours.n_iter == 6


@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize(
    "n_classes, storage",
    [
        (2, np.asarray),
        pytest.param(3, sparse.csr_array, marks=pytest.mark.slow),
        pytest.param(2, sparse.csc_array, marks=pytest.mark.slow),
    ],
)
def test_optimum_without_noise_is_scikit_learns(n_classes, storage, rng):
    X = rng.normal(size=(500, 4))
    y = np.minimum(rng.integers(0, n_classes, 500) + (X[:, 0] > 0), n_classes - 1)
    solver = SGD(5000, batch_size=200, step_size=0.04, momentum=0.0, tail_average=0.8)
    given = {"alpha": 0.1, "data_norm": 100.0, "clip_norm": 1e4}
    ours = fitted(DPLogisticRegression(math.inf, solver=solver, **given), storage(X), y)
    theirs = LogisticRegression(C=1 / (500 * 0.1), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-2)


@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (1e-2, 0.1, 1.0, 10.0))
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(4)), ids=lambda loss: loss.name)
def test_defaults_are_public_bounded_and_stable(adjacency, epsilon, loss):
    solver = SGD()
    for n_samples in (2, 300, 10**5, 10**8):
        facts = problem(epsilon, adjacency, n_samples, loss)
        facts = replace(facts, clip_norm=solver.default_clip_norm(facts), alpha=solver.default_alpha(facts))
        schedule = solver.schedule(facts)
        ((n_steps, release),) = schedule.entries
        rate = release.mechanism.sampling_rate
        assert isinstance(release.mechanism, PoissonGaussian)
        assert 300 <= n_steps <= 3000
        assert min(32 / n_samples, 1.0) <= rate <= 1.0
        assert 0 < solver._step_size(facts, n_steps) * (facts.smoothness + facts.alpha) < 2 * (1 + solver.momentum)
        multiplier = noise_multiplier(release, calibrate(schedule, facts.budget), adjacency)
        assert rate == 1.0 or rate * n_samples == pytest.approx(32) or 3 < multiplier < 5


@pytest.mark.parametrize(
    "parameters, error",
    (
        ({"batch_size": 0.1}, ValueError),
        ({"batch_size": 5001}, ValueError),
        ({"batch_size": math.nan}, ValueError),
        ({"batch_size": "auto"}, TypeError),
        ({"n_steps": 0}, ValueError),
        ({"momentum": 1.0}, ValueError),
    ),
)
def test_parameters_are_checked(parameters, error):
    name, value = next(iter(parameters.items()))
    with pytest.raises(error, match=f"{name}={value!r}"):
        SGD(**parameters).schedule(problem())


def test_the_report_states_samples(rng):
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    report = DPLogisticRegression(solver=SGD(10, batch_size=20)).fit(sparse.csc_array(X), y).privacy_report_
    (line,) = report.releases
    assert (line.count, line.mechanism, line.sampling_rate) == (10, "PoissonGaussian", 0.1)
    assert "10 x Gradient on a Poisson sample of rate 0.1" in str(report)
    assert "privacy loss distributions" in str(report) and "dp_accounting" in report.versions
    assert f"per coordinate, {line.noise_multiplier / 20:.3g} times the largest possible mean gradient" in report.noise_size
    plain = DPLogisticRegression(solver=GradientDescent(5)).fit(X, y).privacy_report_
    assert "exact accounting" in str(plain) and "Poisson" not in str(plain)


def test_a_delta_too_small_for_samples_is_refused_before_the_fit(rng):
    model = DPLogisticRegression(delta=1e-13, solver="sgd")
    with pytest.raises(ValueError, match=r"delta=1e-13 is too small.*Full-data solvers \(gd\)"):
        model.fit(rng.normal(size=(50, 2)), np.arange(50) % 2)
    assert not hasattr(model, "coef_")


@pytest.mark.exhaustive
@pytest.mark.parametrize("epsilon", (0.5, pytest.param(1.0, marks=pytest.mark.slow), pytest.param(3.0, marks=pytest.mark.slow)))
def test_defaults_are_as_good_as_those_of_gd(epsilon):
    """Census income, medians of seven seeds."""
    if not (data_directory() / "adult.csv.gz").exists():
        pytest.skip("no data sets: SKDP_DATA names no directory that holds adult.csv.gz")
    table = load("adult")
    aucs = {}
    for solver in ("gd", "sgd"):
        given = {"adjacency": "zero_out", "data_norm": 1.0, "solver": solver}
        models = [fitted(DPLogisticRegression(epsilon, **given), table.X_train, table.y_train, seed=s) for s in range(7)]
        aucs[solver] = np.median([roc_auc_score(table.y_test, model.decision_function(table.X_test)) for model in models])
    assert aucs["sgd"] >= aucs["gd"] - 0.004

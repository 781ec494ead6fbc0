"""standardized_gd on large tables: few passes, the same schedule below, and the log loss of many passes."""

import math

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from skdp import DPLogisticRegression
from skdp.losses import Hinge, Logistic, Multinomial
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import Moments, ScoreGradient, SecondMoment, StandardizedGradient
from skdp.solvers import Problem, StandardizedGradientDescent
from skdp.solvers.adaptive import standardized_gd
from skdp.solvers.adaptive._accelerated import accelerated

LARGE = 10**8


def problem(n=LARGE, d=20, loss=None, epsilon=1.0, adjacency="replace_one", **more):
    return Problem(n, d, loss or Logistic(), Budget(epsilon, 1e-12, adjacency), data_norm=1.0, intercept_scaling=1.0, **more)


@pytest.mark.parametrize("loss", (Logistic(), Hinge(), Multinomial(4)))
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("n, d, epsilon", ((10**7 + 1, 5, 0.1), (10**7 + 1, 20, 3.0), (LARGE, 20, 1.0), (10**9, 100, 10.0)))
def test_large_tables_are_fitted_in_at_most_40_passes(n, d, epsilon, adjacency, loss):
    facts = problem(n, d, loss, epsilon, adjacency)
    schedule = StandardizedGradientDescent().schedule(facts)
    assert 30 <= schedule.passes <= 40
    scale = calibrate(schedule, facts.budget)
    spent = sum(count / (release.mechanism.weight * scale) ** 2 for count, release in schedule.entries)
    assert spent == pytest.approx(gaussian_mu(epsilon, 1e-12) ** 2)


def test_the_plan_of_the_default_classifier_has_few_passes():
    report = DPLogisticRegression(epsilon=1.0, classes=[0, 1]).plan(LARGE, 20)
    assert sum(line.count for line in report.releases) == 38


@pytest.mark.parametrize(
    "facts, steps",
    (
        (problem(10**7), 179),
        (problem(LARGE, 1025), 306),
        (problem(10**7 + 1, epsilon=0.01), 30),
        (problem(epsilon=math.inf), 1000),
    ),
)
def test_other_tables_keep_their_schedule(facts, steps):
    entries = StandardizedGradientDescent(clip=0.25).schedule(facts).entries
    assert [release.query for _, release in entries[1:]] == [Moments, StandardizedGradient, ScoreGradient]
    assert entries[2][0] == steps


def test_a_given_number_of_steps_is_taken():
    entries = StandardizedGradientDescent(50).schedule(problem()).entries
    assert entries[2][0] == 50 and SecondMoment not in {release.query for _, release in entries}


def rows_of(kind, n_classes, rng, n=4000, d=8):
    Z = rng.normal(size=(n, d))
    if kind == "correlated":
        Z = Z @ (np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(1, 0.03, d))
    if kind == "skewed":
        Z = np.exp(Z)
    raw = (Z / Z.std(axis=0)) @ rng.normal(size=(d, n_classes)) / 2
    if n_classes == 2:
        y = (rng.random(n) < expit(raw[:, 0] - (5.0 if kind == "unbalanced" else 0.0))).astype(int)
    else:
        y = np.argmax(raw + rng.gumbel(size=raw.shape), axis=1)
    return Z / np.linalg.norm(Z, axis=1).max(), y


def log_loss(coef, X, y):
    raw = X @ coef[:-1] + coef[-1]
    raw = np.column_stack([np.zeros(len(y)), raw]) if raw.shape[1] == 1 else raw
    return np.mean(logsumexp(raw, axis=1) - raw[np.arange(len(y)), y])


def fit(X, y, facts, seed):
    """The coefficients of a fit to many copies of the records: their sums, with the noise of the plan."""
    rng, rows, solver = np.random.default_rng(seed), TrainingData(X, y, data_norm=1.0, intercept_scaling=1.0), None
    solver = StandardizedGradientDescent()
    schedule = solver.schedule(facts)
    releases, scale = iter(schedule), calibrate(schedule, facts.budget)

    def ask(query):
        total = query.evaluate(rows) * (facts.n_samples / len(y))
        deviation = query.sensitivity(facts.budget.adjacency) * next(releases).mechanism.weight * scale
        return total + deviation * rng.normal(size=total.shape)

    result = solver.solve(facts, ask, rng)
    assert next(releases, None) is None
    return result


@pytest.mark.each_value
@pytest.mark.parametrize("n_classes", (2, 3))
@pytest.mark.parametrize("kind", ("round", "correlated", "skewed", "unbalanced"))
def test_few_passes_reach_the_log_loss_of_many(kind, n_classes, monkeypatch):
    X, y = rows_of(kind, n_classes, np.random.default_rng(3))
    facts = problem(d=8, loss=Logistic() if n_classes == 2 else Multinomial(3))
    few = [log_loss(fit(X, y, facts, seed).coef, X, y) for seed in range(2)]
    monkeypatch.setattr(standardized_gd, "LARGE", math.inf)
    many = log_loss(fit(X, y, facts, 0).coef, X, y)
    assert max(few) < many + 1e-5


def test_the_stated_noise_is_that_of_repeated_fits():
    """An upper bound, for predictions: curvature is rather taken too small."""
    X, y = rows_of("correlated", 2, np.random.default_rng(4))
    facts = problem(10**7 + 1, 8, epsilon=0.5)
    results = [fit(X, y, facts, seed) for seed in range(20)]
    found = np.std([X[:50] @ result.coef[:-1, 0] for result in results], axis=0)
    stated = results[0].noise.standard_errors(X[:50])[:, 0]
    assert (np.sqrt(np.mean(found**2)) < np.sqrt(np.mean(stated**2))) and stated.max() < 100 * found.max()


def test_an_l2_penalty_is_one_on_the_coefficients_of_the_rows():
    """White coordinates are turned such that the penalty is diagonal there; the minimum is that without coordinates."""
    X, y = rows_of("correlated", 2, np.random.default_rng(5))
    coef = fit(X, y, problem(d=8, alpha=0.001), 0).coef
    gradient = X.T @ (expit(X @ coef[:-1, 0] + coef[-1, 0]) - y) / len(y) + 0.001 * coef[:-1, 0]
    assert np.abs(gradient).max() < 1e-4 < 0.001 * np.abs(coef[:-1]).max()


def test_accelerated_steps_find_a_minimum_and_shorten_steps_that_are_too_long():
    curvature = np.array([1.0, 0.3, 0.05])[:, None]
    no_penalty = np.zeros((3, 1))
    point, steps = accelerated(lambda w: curvature * (w - 1), np.zeros((3, 1)), (np.array([4.0]), 1.0), no_penalty, (80, 70), 0.0)
    np.testing.assert_allclose(point, 1, atol=1e-4)
    assert steps.lengths[0] == 4 and 1 <= steps.lengths[-1] < 2


def test_the_variance_of_accelerated_steps_is_that_of_many_runs():
    rng, curvature, penalty = np.random.default_rng(6), np.array([1.0, 0.1, 0.01]), np.array([0.0, 0.02, 0.0])
    bend = np.repeat(curvature, 2000)[:, None]
    point, steps = accelerated(
        lambda w: bend * w + 1e-3 * rng.normal(size=w.shape),
        np.zeros((6000, 1)),
        (np.array([1.0]), 1.0),
        np.repeat(penalty, 2000)[:, None],
        (20, 14),
        1e-3,
    )
    # 2000 runs: the standard error of a variance is 3 %; five of them are a false alarm of 1e-6 for three coordinates
    np.testing.assert_allclose(point.reshape(3, 2000).var(axis=1), steps.variances(curvature, penalty), rtol=0.16)

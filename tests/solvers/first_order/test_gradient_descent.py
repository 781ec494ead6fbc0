"""DP-GD: its update, its optimum without noise, its public defaults."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, NotPrivateWarning
from skdp.losses import Huber, Logistic, Multinomial, Squared
from skdp.privacy.budget import Budget
from skdp.solvers import GradientDescent, Problem, choose_solver

ADJACENCIES = ("replace_one", "zero_out")


LOGISTIC = Logistic()


def problem(epsilon=1.0, adjacency="replace_one", n_samples=5000, loss=LOGISTIC, **changes):
    budget = Budget(epsilon, 1e-7, adjacency)
    facts = Problem(n_samples, 10, loss, budget, data_norm=1.0, intercept_scaling=1.0, alpha=0.01, clip_norm=1.0)
    return replace(facts, **changes)


def test_updates_are_those_of_the_formula(rng):
    """Heavy ball on the answers divided by n, the penalty added after, the second half averaged."""
    answers = rng.normal(size=(4, 11))
    facts, asked = problem(), []

    def ask(query):
        asked.append(query.coef)
        return answers[len(asked) - 1]

    result = GradientDescent(4, step_size=0.5, momentum=0.3, tail_average=0.5).solve(facts, ask, rng)
    iterates, velocity = [np.zeros((11, 1))], 0.0
    for answer in answers:
        ridge = 0.01 * iterates[-1] * (np.arange(11) < 10)[:, None]
        velocity = 0.3 * velocity + answer[:, None] / 5000 + ridge
        iterates.append(iterates[-1] - 0.5 * velocity)
    np.testing.assert_allclose(asked, iterates[:-1])
    np.testing.assert_allclose(result.coef, (iterates[-1] + iterates[-2]) / 2)
    assert result.n_iter == 4


@pytest.mark.parametrize("output", ("average", "last", "random"))
def test_outputs_are_the_average_the_last_iterate_or_one_of_the_points_asked_at(output, rng):
    """ "random" returns each of the T points about equally often: 4000 draws, 5 standard deviations."""
    answers, asked, facts = rng.normal(size=(4, 11)), [], problem()

    def ask(query):
        asked.append(query.coef)
        return answers[(len(asked) - 1) % 4]

    solver = GradientDescent(4, step_size=0.5, tail_average=0.75, output=output)
    results = [solver.solve(facts, ask, rng).coef for _ in range(4000 if output == "random" else 1)]
    last = GradientDescent(4, step_size=0.5, tail_average=0.0).solve(facts, ask, rng).coef
    if output == "random":
        counts = [sum(np.array_equal(result, point) for result in results) for point in asked[:4]]
        assert sum(counts) == 4000 and max(abs(count - 1000) for count in counts) < 5 * math.sqrt(750)
    else:
        expected = last if output == "last" else (asked[2] + asked[3] + last) / 3
        np.testing.assert_allclose(results[0], expected)


@pytest.mark.parametrize("momentum", (0.0, 0.9))
def test_momentum_leaves_the_l1_penalty_as_it_is(momentum, rng):
    """Slopes of half of the penalty keep coefficients at zero, those of twice as much do not."""
    facts = problem(alpha=0.2, l1_ratio=1.0)
    slopes = 5000 * np.append(np.repeat([0.1, 0.4], 5), 0.0)
    solver = GradientDescent(300, step_size=0.5, momentum=momentum, output="last")
    coef = solver.solve(facts, lambda query: slopes + 5000 * query.coef[:, 0], rng).coef[:, 0]
    np.testing.assert_allclose(coef, np.append(np.repeat([0.0, -0.2], 5), 0.0), atol=1e-6)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("n_classes", (2, 3))
@pytest.mark.parametrize("alpha", (0.1, 0.01))
def test_optimum_without_noise_is_scikit_learns(n_classes, alpha, rng):
    X = rng.normal(size=(300, 4))
    y = rng.integers(0, n_classes, 300) + (X[:, 0] > 0)
    y = np.minimum(y, n_classes - 1)
    solver = GradientDescent(3000, step_size=0.3, momentum=0.9, tail_average=0.0)
    ours = DPLogisticRegression(math.inf, solver=solver, alpha=alpha, data_norm=100.0, clip_norm=1e4).fit(X, y)
    theirs = LogisticRegression(C=1 / (300 * alpha), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (1e-3, 0.1, 1.0, 10.0, math.inf))
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(4), Squared(), Huber(0.5)), ids=lambda loss: loss.name)
def test_defaults_are_public_bounded_and_stable(adjacency, epsilon, loss):
    solver = GradientDescent()
    for n_samples in (2, 300, 10**5, 10**8):
        facts = problem(epsilon, adjacency, n_samples, loss)
        facts = replace(facts, clip_norm=solver.default_clip_norm(facts), alpha=solver.default_alpha(facts))
        n_steps = len(solver.schedule(facts))
        fewest = 50 if n_samples < 10**6 else 30
        assert fewest <= n_steps <= 200 or (n_steps == 1000 and epsilon == math.inf)
        unit = loss.smoothness * facts.row_norm if loss.targets == "numbers" else facts.lipschitz
        assert 0.5 * min(unit, facts.lipschitz) <= facts.clip_norm <= facts.lipschitz
        assert facts.clip_norm == facts.lipschitz or facts.signal_to_noise < 12_000
        largest_curvature = facts.smoothness + facts.alpha
        assert 0 < solver._step_size(facts, n_steps) * largest_curvature < 2 * (1 + solver.momentum)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "loss, promised", ((Logistic(), 3.0), (Squared(), 1.0), (Huber(0.5), 1.0)), ids=("log-odds", "y", "huber")
)
def test_noise_that_a_fit_gathers_is_what_the_step_rule_promises(loss, promised):
    """A raw prediction of a record at the norm bound, from noise alone and with the average off."""
    facts = problem(0.1, "zero_out", 20_000, loss, alpha=0.0)
    solver = GradientDescent(200, momentum=0.5, tail_average=0.0)
    mu = facts.signal_to_noise / 20_000
    deviation = facts.clip_norm * math.sqrt(200) / mu
    rng = np.random.default_rng(0)
    ends = [solver.solve(facts, lambda query: deviation * rng.standard_normal(11), rng).coef[0, 0] for _ in range(400)]
    assert np.std(ends) * facts.row_norm == pytest.approx(promised, rel=0.15)  # 4 standard errors


@pytest.mark.parametrize(
    "parameters, error",
    (
        ({"n_steps": 0}, ValueError),
        ({"n_steps": 2.5}, TypeError),
        ({"n_steps": True}, TypeError),
        ({"step_size": 0.0}, ValueError),
        ({"step_size": math.nan}, ValueError),
        ({"momentum": 1.0}, ValueError),
        ({"momentum": "fast"}, TypeError),
        ({"tail_average": 1.5}, ValueError),
        ({"output": "best"}, ValueError),
        ({"output": None}, ValueError),
    ),
)
def test_parameters_are_checked(parameters, error):
    name, value = next(iter(parameters.items()))
    with pytest.raises(error, match=f"{name}={value!r}"):
        GradientDescent(**parameters).schedule(problem())


def test_divergence_is_a_clear_error(rng):
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    solver = GradientDescent(100, step_size=1e300)
    with pytest.warns(NotPrivateWarning), pytest.raises(RuntimeError, match="smaller step size"):
        DPLogisticRegression(math.inf, solver=solver).fit(X, y)


class Bent(Logistic):
    """A loss that is not smooth."""

    name, smoothness = "bent", math.inf


def test_solvers_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"solver='svrg' needs a smooth loss, but the problem has the bent loss.*fit: gd, sgd"):
        choose_solver("svrg", problem(loss=Bent()))

"""Losses with a kink in "gd" and "sgd": the optimum without noise, the bound of the theorem with it, the ball, mirror steps."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from seeded import source
from sklearn.metrics import roc_auc_score

from skdp.constraints import Box, L1Ball, L2Ball, LpBall, Simplex
from skdp.estimators._plan import Plan
from skdp.losses import Absolute, EpsilonInsensitive, Hinge, Logistic, Quantile
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.solvers import SGD, GradientDescent, Problem

N, P = 150, 3
RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, size=(N, P))
SIGNAL = X @ [1.0, -0.6, 0.3] / 2 + 0.1
NUMBERS = np.clip(SIGNAL + 0.15 * RNG.standard_t(2, size=N), -1, 1)
BINARY = (4 * SIGNAL + RNG.logistic(size=N) > 0).astype(int)
THREE = np.digitize(4 * SIGNAL + RNG.logistic(size=N), [-0.7, 0.7])
CASES = {
    "hinge": (Hinge(), BINARY),
    "hinges": (Hinge(3), THREE),
    "absolute": (Absolute(), NUMBERS),
    "quantile": (Quantile(0.8), NUMBERS),
    "tube": (EpsilonInsensitive(0.1), NUMBERS),
}
cases = pytest.mark.parametrize("case", CASES)
PAPER = {"momentum": 0.0, "tail_average": 1.0}
warning = pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")


def problem(loss=None, epsilon=1.0, n_samples=N, **changes):
    budget = Budget(epsilon, 1e-6, "replace_one")
    given = {"data_norm": 2.0, "intercept_scaling": 1.0} | changes
    return Problem(n_samples, P, loss or Hinge(), budget, **given)


def fitted(facts, y, solver, table=X, seed=0):
    """The coefficients of a solver's fit through the oracle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = Plan.make(facts, solver, 0.0, None)
    noise = source(seed)
    rng = np.random.default_rng(int.from_bytes(noise.read(16), "little"))
    rows = TrainingData(table, y, **plan.row_bounds)
    oracle = Oracle(rows, plan.schedule, plan.problem.budget, plan.scale, noise)
    coef = plan.solver.solve(plan.problem, oracle.ask, rng).coef
    oracle.finish()
    return coef


def extended(facts):
    return np.column_stack([X, np.ones(N)])[:, : facts.shape[0]]


def objective(facts, coef, y):
    return facts.loss.value(extended(facts) @ coef, y).mean()


def pieces(loss, y, k):
    """Slopes and offsets of the lines under output k of a loss whose largest is the loss, shape (n, ) each; 0 is another."""
    ones = np.ones(N)
    if isinstance(loss, Hinge):
        signs = np.where(y == (1 if loss.n_outputs == 1 else k), 1.0, -1.0)
        return [(-signs, ones)]
    if isinstance(loss, Quantile):
        q = loss.quantile
        return [(-q * ones, q * y), ((1 - q) * ones, (q - 1) * y)]
    width = getattr(loss, "threshold", 0.0)
    return [(ones, -y - width), (-ones, y - width)]


def least(facts, y, radius=math.inf):
    """The least objective by linear programming; over the l1 ball of a radius."""
    table, m = extended(facts), facts.loss.n_outputs
    size = table.shape[1]
    total = 0.0
    assert m == 1 or radius == math.inf  # outputs are apart
    for k in range(m):
        lines = pieces(facts.loss, y, k)
        A = np.vstack([np.hstack([a[:, None] * table, -a[:, None] * table, -np.eye(N)]) for a, _ in lines])
        b = -np.concatenate([offset for _, offset in lines])
        if radius < math.inf:
            A, b = np.vstack([A, np.r_[np.ones(2 * size), np.zeros(N)]]), np.append(b, radius)
        found = linprog(np.r_[np.zeros(2 * size), np.ones(N) / N], A_ub=A, b_ub=b)
        assert found.status == 0
        total += found.fun
    return total


@pytest.mark.slow
@pytest.mark.each_value
@warning
@cases
@pytest.mark.parametrize("solver", (GradientDescent(3000), GradientDescent(10_000, **PAPER), SGD(3000, batch_size=N)), ids=str)
def test_the_optimum_without_noise_is_that_of_the_linear_program(case, solver):
    loss, y = CASES[case]
    facts = problem(loss, math.inf)
    best = least(facts, y)
    assert -1e-9 < objective(facts, fitted(facts, y, solver), y) / best - 1 < 1e-2


@pytest.mark.each_value
@cases
@pytest.mark.parametrize("n_steps", (10, 150))
def test_the_mean_loss_is_above_the_least_by_no_more_than_the_theorem_says(case, n_steps):
    """With exact normal noise, over 20 runs; the bound has a factor of two and more to spare here."""
    loss, y = CASES[case]
    facts = replace(problem(loss, 4.0, clip_norm=problem(loss).lipschitz), alpha=0.0)
    table, best, radius = extended(facts), least(facts, y), 4.0
    noise = facts.clip_norm * math.sqrt(n_steps) / facts.signal_to_noise
    rng = np.random.default_rng(0)

    def ask(query):
        gradient = table.T @ loss.derivative(table @ query.coef, y)
        return (gradient + N * noise * rng.normal(size=gradient.shape)).ravel()

    solver = GradientDescent(n_steps, radius=radius, **PAPER)
    size = math.prod(facts.shape)
    step = radius / math.sqrt(n_steps * (facts.lipschitz**2 + size * noise**2))
    assert solver._largest_step(facts, n_steps) == pytest.approx(step)
    solver.step_size = step
    above = np.mean([objective(facts, solver.solve(facts, ask, rng).coef, y) for _ in range(20)]) - best
    assert above < radius * math.sqrt((facts.lipschitz**2 + size * noise**2) / n_steps)


@pytest.mark.parametrize("solver", (GradientDescent, SGD))
@pytest.mark.parametrize("loss, radius, expected", ((Hinge(), None, 3.0), (Absolute(), None, 1.0), (Logistic(), 0.7, 0.7)))
def test_features_stay_in_the_ball_and_the_intercept_is_free(solver, loss, radius, expected, rng):
    """The default is ``z sqrt(p) / R``; smooth losses have none."""
    facts, asked = problem(loss, clip_norm=1.0), []
    reach = expected * math.sqrt(4) / math.sqrt(5) if radius is None else radius

    def ask(query):
        asked.append(query.coef)
        return np.full(4, -1e5 * N)

    coef = solver(30, step_size=1.0, radius=radius).solve(facts, ask, rng).coef
    norms = [np.linalg.norm(point[:P]) for point in [*asked, coef]]
    assert max(norms) <= reach * (1 + 1e-12) and norms[-2] == pytest.approx(reach)
    assert coef[P, 0] > 1e5
    asked.clear()
    solver(30, step_size=1.0).solve(replace(facts, loss=Logistic()), ask, rng)
    assert np.linalg.norm(asked[-1][:P]) > 1e5


@pytest.mark.parametrize("loss", (Hinge(), Absolute()))
def test_more_steps_are_never_shorter_together(loss):
    """The total step grows with T towards what the noise allows, the path of "gd"."""
    facts = problem(loss, n_samples=20_000, clip_norm=1.0)
    totals = [T * GradientDescent()._step_size(facts, T) / 0.1 for T in (1, 10, 10**3, 10**5, 10**9)]
    path = GradientDescent()._path(facts, 1)
    assert np.all(np.diff(totals) > 0) and totals[-1] < path and totals[-1] == pytest.approx(path, rel=1e-2)


SETS = (L1Ball(0.5), L2Ball(0.4), LpBall(0.5, 1.5), Simplex(0.6), Box(-0.1, 0.3))


@pytest.mark.parametrize("constraint", SETS, ids=str)
@pytest.mark.parametrize("solver", (GradientDescent, SGD))
def test_steps_are_those_of_the_mirror_map_in_its_set(constraint, solver, rng):
    facts = problem(Absolute(), intercept_scaling=0.0, constraint=constraint, clip_norm=1.0, alpha=0.1)
    answers, asked = N * rng.normal(size=(6, P)), []

    def ask(query):
        asked.append(query.coef)
        return answers[len(asked) - 1]

    chosen = solver(6, batch_size=N, tail_average=1.0) if solver is SGD else solver(6, tail_average=1.0)
    result = chosen.solve(facts, ask, rng)
    mirror, step = constraint.mirror_map(P), chosen._step_size(facts, 6)
    state = mirror.start()
    points = [mirror.point(state)]
    for answer in answers:
        state = mirror.step(state, answer / N + 0.1 * points[-1], step)
        points.append(mirror.point(state))
    np.testing.assert_allclose(np.ravel(asked), np.ravel(points[:-1]))
    np.testing.assert_allclose(result.coef[:, 0], np.mean(points[1:], axis=0))
    assert all(constraint.contains(point.ravel()) for point in [*asked, result.coef])


@pytest.mark.slow
@pytest.mark.each_value
@warning
@pytest.mark.parametrize("case", ("hinge", "absolute"))
@pytest.mark.parametrize("solver", (GradientDescent(2000), SGD(2000, batch_size=N)), ids=str)
def test_the_optimum_in_the_l1_ball_is_that_of_the_linear_program(case, solver):
    loss, y = CASES[case]
    facts = problem(loss, math.inf, intercept_scaling=0.0, constraint=L1Ball(0.5), feature_bounds=1.0)
    reached = objective(facts, fitted(facts, y, solver), y)
    assert -1e-9 < reached / least(facts, y, 0.5) - 1 < 1e-2


@pytest.mark.exhaustive
@pytest.mark.parametrize("solver", (GradientDescent(), SGD(1000, batch_size=100)))
def test_standardisation_finds_what_is_hidden_by_offsets_and_scales(solver, rng):
    """The hinge, whose ball is then one of the standardised features."""
    z = rng.normal(size=(4000, 3))
    y = (z @ [1.0, 1.0, -1.0] + rng.logistic(size=4000) > 0.5).astype(int)
    table = 0.12 * (z * (1.0, 0.05, 0.3) + [2.0, -3.0, 1.0])
    auc = {}
    for share in (None, 0.1):
        facts = problem(Hinge(), 3.0, 4000, data_norm=1.0)
        fits = [fitted(facts, y, solver.set_params(standardize=share), table, seed) for seed in range(3)]
        auc[share] = np.median([roc_auc_score(y, table @ coef[:3, 0]) for coef in fits])
    best = roc_auc_score(y, z @ [1.0, 1.0, -1.0])
    assert auc[0.1] > best - 0.04 and auc[None] < best - 0.05


@pytest.mark.parametrize("loss", (Hinge(), Hinge(3), Absolute(), Quantile(0.9)), ids=str)
@pytest.mark.parametrize("epsilon", (1e-3, 1.0, 100.0, math.inf))
@pytest.mark.parametrize("kind", (GradientDescent, SGD))
def test_defaults_are_public_and_bounded(loss, epsilon, kind):
    solver = kind()
    for n_samples in (2, 300, 10**5, 10**8):
        facts = problem(loss, epsilon, n_samples)
        facts = replace(facts, clip_norm=solver.default_clip_norm(facts))
        assert 0.5 * facts.lipschitz <= facts.clip_norm <= facts.lipschitz
        n_steps = len(solver.schedule(facts))
        assert 30 <= n_steps <= 3000
        assert 0 < solver._step_size(facts, n_steps) < math.inf


@pytest.mark.parametrize("solver", (GradientDescent, SGD))
@pytest.mark.parametrize("radius, error", ((0.0, ValueError), (-1, ValueError), (math.nan, ValueError), ("big", TypeError)))
def test_the_radius_is_checked(solver, radius, error):
    with pytest.raises(error, match=f"radius={radius!r}"):
        solver(radius=radius).schedule(problem(clip_norm=1.0))
    with pytest.raises(ValueError, match=r"radius=2\.0 with a constraint; expected None"):
        solver(radius=2.0).schedule(problem(clip_norm=1.0, constraint=L2Ball(1.0)))


@pytest.mark.parametrize("kind", (GradientDescent, SGD))
def test_a_ball_of_any_size_and_rows_of_any_norm_leave_finite_models(kind):
    for data_norm in (1e-50, 1e50):
        for radius in (None, 1e-50, 1e50):
            facts = problem(Hinge(), 1.0, data_norm=data_norm, intercept_scaling=0.0)
            table = X * min(data_norm, 1e40)
            assert np.isfinite(fitted(facts, BINARY, kind(3, radius=radius), table)).all()

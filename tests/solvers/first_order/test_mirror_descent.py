"""Accelerated mirror descent: its update, its bound, its optimum without noise, its public defaults."""

import itertools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from seeded import source

from skdp.constraints import Box, L1Ball, L2Ball, LpBall, Simplex
from skdp.estimators._plan import Plan
from skdp.losses import Huber, Logistic, Multinomial, Squared
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.solvers import AcceleratedMirrorDescent, Problem, choose_solver
from skdp.solvers.first_order._mirror_geometry import mirror_map, row_bound
from skdp.solvers.first_order.mirror_descent import _smoothness

ADJACENCIES = ("replace_one", "zero_out")
SETS = [L1Ball(0.8), Simplex(0.8), L2Ball(0.5), LpBall(0.7, 1.3), LpBall(0.7, 3.0), Box(-0.1, 0.4)]
LOSSES = [Logistic(), Multinomial(3), Squared(), Huber(0.3)]
SQUARED = Squared()


def problem(constraint, loss=SQUARED, epsilon=1.0, adjacency="zero_out", n_samples=5000, n_features=4, **changes):
    budget = Budget(epsilon, 1e-7, adjacency)
    facts = Problem(n_samples, n_features, loss, budget, data_norm=2.0, intercept_scaling=0.0, constraint=constraint)
    return replace(facts, **{"clip_norm": 1.0, **changes})


def table(loss, rng, n_samples=200, n_features=4):
    X = rng.choice([-1.0, 1.0], size=(n_samples, n_features))
    raw = X @ np.linspace(0.6, -0.2, n_features) + 0.2 * rng.normal(size=n_samples)
    return X, np.digitize(raw, [-0.4, 0.4][: loss.n_outputs - 1] or [0.0]) if loss.targets == "classes" else np.clip(raw, -1, 1)


def objective(loss, X, y, alpha):
    return lambda coef: float(loss.value(X @ coef, y).mean() + alpha / 2 * (coef**2).sum())


def minimum(constraint, function, shape):
    """SciPy's, over a parameterisation of the set in which it is smooth; from several starts."""
    size = math.prod(shape)
    if isinstance(constraint, (L1Ball, Simplex)):
        doubled = isinstance(constraint, L1Ball)

        def point(u):
            return (u[:size] - u[size:] if doubled else u).reshape(shape)

        bounds = [(0, None)] * (size * (1 + doubled))
        sign = {"type": "ineq"} if doubled else {"type": "eq"}
        conditions = [{**sign, "fun": lambda u: constraint.radius - u.sum()}]
        start = np.full(len(bounds), constraint.radius / len(bounds) / 2)
    elif isinstance(constraint, Box):
        point, bounds, conditions, start = (
            (lambda u: u.reshape(shape)),
            [(constraint.low, constraint.high)] * size,
            [],
            np.zeros(size),
        )
    else:
        order = constraint.norm

        def inside(u):
            return constraint.radius**order - (np.abs(u) ** order).sum()

        point, bounds, conditions = (lambda u: u.reshape(shape)), None, [{"type": "ineq", "fun": inside}]
        start = np.full(size, 1e-2)
    found = minimize(
        lambda u: function(point(u)),
        start,
        bounds=bounds,
        constraints=conditions,
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    inner = constraint.project(point(found.x).ravel()).reshape(shape)
    return function(inner)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_updates_are_those_of_the_formula(constraint, rng):
    """One answer per step, used for z by its mirror step and for y by the move of z; the ridge added after."""
    answers, asked = 5000 * rng.normal(size=(4, 4)), []
    facts = problem(constraint, alpha=0.1, epsilon=math.inf)

    def ask(query):
        asked.append(query.coef.ravel())
        return answers[len(asked) - 1]

    result = AcceleratedMirrorDescent(4, step_scale=0.3).solve(facts, ask, rng)
    mirror = constraint.mirror_map(4)
    L = facts.loss.smoothness * 4.0 + 0.1
    state = mirror.start()
    y = z = mirror.point(state)
    for k, answer in enumerate(answers):
        alpha = 0.3 * (k + 2) / (4 * L)
        r = 2 / (k + 2)
        x = r * z + (1 - r) * y
        np.testing.assert_allclose(asked[k], x, atol=1e-12)
        state = mirror.step(state, answer / 5000 + 0.1 * x, alpha)
        y = (1 - r) * y + r * mirror.point(state)
        z = mirror.point(state)
    np.testing.assert_allclose(result.coef.ravel(), y, atol=1e-12)
    assert result.n_iter == 4 and constraint.contains(result.coef.ravel())


CASES = list(itertools.product(SETS, LOSSES, (0.0, 0.1)))


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("constraint, loss, alpha", CASES, ids=str)
def test_optimum_without_noise_is_scipys(constraint, loss, alpha, rng):
    X, y = table(loss, rng)
    facts = problem(constraint, loss, math.inf, n_samples=200, alpha=alpha, feature_bounds=1.0, clip_norm=1e6)
    rows = TrainingData(X, y, data_norm=2.0)
    result = AcceleratedMirrorDescent(1000, step_scale=2.0).solve(facts, lambda query: query.evaluate(rows), rng)
    function = objective(loss, X, y, alpha)
    best = minimum(constraint, function, facts.shape)
    assert function(result.coef) <= best * (1 + 1e-4)
    assert constraint.contains(result.coef.ravel(), 1e-9)
    assert function(result.coef) >= best * (1 - 1e-6)  # else SciPy's was none


@pytest.mark.each_value
@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("noise", (0.0, 0.3))
def test_objective_is_within_the_bound_of_the_notes(constraint, noise, rng):
    """With noise on average over 20 runs; the bound is loose enough for a false alarm never to happen."""
    X, y = table(SQUARED, rng, n_features=12)
    rows = TrainingData(X, y, data_norm=math.sqrt(12.0))
    facts = problem(constraint, epsilon=math.inf, n_samples=200, n_features=12, feature_bounds=1.0, clip_norm=1e6)
    facts = replace(facts, data_norm=math.sqrt(12.0))
    mirror, function = mirror_map(facts), objective(SQUARED, X, y, 0.0)
    L, best = _smoothness(facts, mirror), minimum(constraint, function, (12, 1))
    dual = math.inf if mirror.norm == 1 else mirror.norm / (mirror.norm - 1)
    for n_steps in (1, 3, 10, 40):
        gaps, squares = [], []
        for _ in range(20 if noise else 1):

            def ask(query, squares=squares):
                drawn = noise * rng.normal(size=12)
                squares.append(np.linalg.norm(drawn, dual) ** 2)
                return query.evaluate(rows) + 200 * drawn

            gaps.append(function(AcceleratedMirrorDescent(n_steps).solve(facts, ask, rng).coef) - best)
        T = n_steps
        from_noise = (T + 2) * (2 * T + 3) / (12 * (T + 1) * L) * np.mean(squares)
        assert np.mean(gaps) <= 8 * L * mirror.spread / (T + 1) ** 2 + from_noise + 1e-9


@pytest.mark.each_value
@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(3), Squared()), ids=lambda loss: loss.name)
@pytest.mark.parametrize("bounds", (None, 1.5, (3.0, 0.3, 1.5, 0.6)))
def test_smoothness_is_never_exceeded(constraint, loss, bounds, rng):
    """Rows at their bounds, in the dual norm of the mirror map; the bound of a row is attained within 1 %."""
    facts = problem(constraint, loss, data_norm=3.0, feature_bounds=bounds)
    mirror = mirror_map(facts)
    dual = math.inf if mirror.norm == 1 else mirror.norm / (mirror.norm - 1)
    L, limit, largest = _smoothness(facts, mirror), np.broadcast_to(math.inf if bounds is None else bounds, (4,)), 0.0
    axes = [sign * e for e in np.eye(4) for sign in (1, -1)]
    for direction in [*axes, *(sparsity * rng.normal(size=4) for sparsity in rng.integers(0, 2, size=(200, 4)))]:
        x = np.clip(30 * direction, -limit, limit)
        x = x / max(1.0, np.linalg.norm(x) / 3)
        largest = max(largest, np.linalg.norm(x, dual))
        coef = rng.normal(size=facts.shape)
        other = coef + 1e-3 * (
            np.outer(x, rng.normal(size=facts.shape[1])) if rng.random() < 0.5 else rng.normal(size=facts.shape)
        )
        label = np.array([1]) if loss.targets == "classes" else np.array([0.3])
        slopes = [np.outer(x, loss.derivative((x @ w)[None], label)) for w in (coef, other)]
        change = np.linalg.norm((slopes[0] - slopes[1]).ravel(), dual)
        assert change <= L * np.linalg.norm((coef - other).ravel(), mirror.norm) * (1 + 1e-9)
    assert largest <= row_bound(facts, mirror.norm) * (1 + 1e-12)
    if bounds is None or mirror.norm in (1, 2):
        assert largest >= 0.99 * row_bound(facts, mirror.norm)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (1e-3, 0.1, 1.0, 10.0, math.inf))
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_defaults_are_public_and_bounded(adjacency, epsilon, loss):
    solver, counts, clips = AcceleratedMirrorDescent(), [], []
    for n_samples in (2, 300, 10**5, 10**7, 10**12):
        facts = problem(L1Ball(2.0), loss, epsilon, adjacency, n_samples)
        facts = replace(facts, clip_norm=solver.default_clip_norm(facts), alpha=solver.default_alpha(facts))
        counts.append(len(solver.schedule(facts)))
        clips.append(facts.clip_norm / facts.lipschitz)
    assert all(10 <= n <= 200 for n in counts) if epsilon < math.inf else counts == [1000] * 5
    least = 0.2 if loss.name == "squared" else 0.5
    assert sorted(clips) == clips and least <= clips[0] <= clips[-1] == pytest.approx(1.0)


@pytest.mark.slow
def test_more_steps_than_the_default_add_no_noise():
    """Where all that moves the model is noise, five times as many steps move it as far."""
    facts = problem(L1Ball(1.0), n_samples=2000, n_features=50, feature_bounds=1.0)
    rng, mu, lengths = np.random.default_rng(0), facts.signal_to_noise / 2000, []
    default = len(AcceleratedMirrorDescent().schedule(facts))
    for n_steps in (default, 5 * default):
        deviation, solver = facts.clip_norm * math.sqrt(n_steps) / mu, AcceleratedMirrorDescent(n_steps)
        ends = [solver.solve(facts, lambda query, s=deviation: s * rng.normal(size=50), rng).coef for _ in range(100)]
        lengths.append(np.mean([np.linalg.norm(end) for end in ends]))
    assert lengths[1] == pytest.approx(lengths[0], rel=0.15)  # about 4 standard errors


def fitted(facts, X, y, solver, seed=0):
    plan = Plan.make(facts, solver, None, None)
    oracle = Oracle(TrainingData(X, y, **plan.row_bounds), plan.schedule, facts.budget, plan.scale, source(seed))
    result = plan.solver.solve(plan.problem, oracle.ask, np.random.default_rng(0))
    oracle.finish()
    return result.coef, plan


@pytest.mark.exhaustive
def test_few_large_coefficients_among_many_features_are_found():
    """Half of the zero predictor's error, in 2000 features with the noise of epsilon = 1 and nothing tuned."""
    rng = np.random.default_rng(0)
    X = 2 * rng.integers(0, 2, size=(24_000, 2000), dtype=np.int8) - 1
    w = np.where(np.arange(2000) < 20, 1 / 20, 0.0)
    y = X @ w + 0.05 * rng.normal(size=24_000)
    facts = Problem(
        20_000,
        2000,
        Squared(),
        Budget(1.0, 1 / 20_000**2, "zero_out"),
        data_norm=math.sqrt(2000),
        intercept_scaling=0.0,
        constraint=L1Ball(1.0),
        feature_bounds=1.0,
    )
    coef, _ = fitted(facts, X[:20_000], np.clip(y[:20_000], -1, 1), "accmd")
    X, y = X[20_000:], y[20_000:]
    assert np.mean((X @ coef[:, 0] - y) ** 2) < 0.5 * np.mean(y**2)
    assert L1Ball(1.0).contains(coef[:, 0], 1e-9)


@pytest.mark.parametrize("form", ("csr", "csc"))
def test_a_sparse_table_is_never_made_dense(form, rng):
    X = sparse.coo_array((np.ones(60_000), rng.integers(0, [[7770], [8315]], size=(2, 60_000))), shape=(7770, 8315)).asformat(
        form
    )
    y = rng.integers(0, 2, size=7770)
    facts = Problem(7770, 8315, Logistic(), Budget(1.0, 1e-8, "zero_out"), data_norm=2.0, intercept_scaling=0.0)
    tracemalloc.start()
    coef, _ = fitted(replace(facts, constraint=L1Ball(20.0), feature_bounds=1.0), X, y, AcceleratedMirrorDescent(2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert coef.any() and peak < 7770 * 8315 * 8 / 20


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("size", (1e-300, 1.0, 1e150, 1e300))
def test_any_answers_end_in_the_set(constraint, size, rng):
    facts = problem(constraint, loss=Multinomial(3), alpha=0.1)
    result = AcceleratedMirrorDescent(5).solve(facts, lambda query: size * rng.normal(size=12), rng)
    assert result.coef.shape == (4, 3) and constraint.contains(result.coef.ravel(), 1e-9)


def test_it_is_what_auto_takes_for_a_constraint_with_a_mirror_map():
    solver, reason = choose_solver("auto", problem(L1Ball()))
    assert solver.name == "accmd" and "mirror map" in reason
    assert choose_solver("auto", problem(L1Ball(), intercept_scaling=1.0))[0].name == "gd"
    with pytest.raises(ValueError, match=r"solver='accmd' needs a constraint with a mirror map, as .* have, and no intercept"):
        choose_solver("accmd", problem(L1Ball(), intercept_scaling=1.0))


@pytest.mark.parametrize(
    "parameters, error",
    (
        ({"n_steps": 0}, ValueError),
        ({"n_steps": 2.5}, TypeError),
        ({"n_steps": 10**8}, ValueError),
        ({"step_scale": 0.0}, ValueError),
        ({"step_scale": math.nan}, ValueError),
        ({"step_scale": "1"}, TypeError),
    ),
)
def test_parameters_are_checked(parameters, error):
    name, value = next(iter(parameters.items()))
    with pytest.raises(error, match=f"{name}={value!r}"):
        AcceleratedMirrorDescent(**parameters).schedule(problem(L1Ball()))

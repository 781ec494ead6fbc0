"""Without noise and clipping, every solver reaches SciPy's optimum through the estimators, for all losses, penalties and sets.

Solvers are taken by what they need, so that a new one is here as soon as it is registered.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp import (
    DPConstrainedClassifier,
    DPConstrainedRegression,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRobustRegressor,
)
from skdp._data_validation import Facts
from skdp.constraints import Box, L1Ball, L2Ball, LpBall, Simplex
from skdp.solvers import SOLVERS

N, P, ALPHA = 120, 4, 0.05
RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, size=(N, P))
SIGNAL = X @ [1.0, -0.6, 0.3, 0.0] / 2 + 0.1
NUMBERS = np.clip(SIGNAL + 0.15 * RNG.standard_t(2, size=N), -1, 1)
BINARY = (4 * SIGNAL + RNG.logistic(size=N) > 0).astype(int)
THREE = np.digitize(4 * SIGNAL + RNG.logistic(size=N), [-0.7, 0.7])
PUBLIC = {"data_norm": 2.0, "feature_bounds": 1.0, "clip_norm": 1e6, "alpha": ALPHA}
NUMERIC = {**PUBLIC, "target_bounds": (-1, 1)}  # the units of the solver are those of y
ROBUST = {"threshold": 1.0, **PUBLIC}
SETS = (L1Ball(0.5), L2Ball(0.4), LpBall(0.5, 1.5), Simplex(0.6), Box(-0.1, 0.3))
MARGINS = (("squared_hinge", 0.0), ("huber_hinge", 0.0), ("huber_hinge", 1.0))

PLAIN = {
    **{f"logistic {ratio}": (DPLogisticRegression(l1_ratio=ratio, **PUBLIC), BINARY) for ratio in (0.0, 0.4, 1.0)},
    **{f"multinomial {ratio}": (DPLogisticRegression(l1_ratio=ratio, **PUBLIC), THREE) for ratio in (0.0, 1.0)},
    **{f"{loss} {ratio}": (DPLinearSVC(loss=loss, l1_ratio=ratio, **PUBLIC), BINARY) for loss, ratio in MARGINS},
    "huber_hinge of three": (DPLinearSVC(**PUBLIC), THREE),
    **{f"squared {ratio}": (DPLinearRegression(l1_ratio=ratio, **NUMERIC), NUMBERS) for ratio in (0.0, 0.4, 1.0)},
    **{f"huber {ratio}": (DPRobustRegressor(loss="huber", l1_ratio=ratio, **ROBUST), 9 * NUMBERS) for ratio in (0.0, 1.0)},
}
CONSTRAINED = {
    f"{name} {kind}": (model.set_params(constraint=kind), y)
    for kind in SETS
    for name, model, y in (
        ("logistic", DPConstrainedClassifier(**PUBLIC), BINARY),
        ("multinomial", DPConstrainedClassifier(**PUBLIC), THREE),
        ("squared", DPConstrainedRegression(**NUMERIC), NUMBERS),
        ("huber", DPConstrainedRegression(loss="huber", **ROBUST), 3 * NUMBERS),
    )
}
CONVEX = {**PLAIN, **CONSTRAINED}
NOT_CONVEX = {loss: (DPRobustRegressor(loss=loss, **ROBUST), 3 * NUMBERS) for loss in ("welsch", "tukey", "cauchy")}

GENEROUS = {"n_steps": 250, "step_size": 1.5, "momentum": 0.5, "tail_average": 0.0, "output": "last", "batch_size": N}
GENEROUS |= {"n_epochs": 8, "n_inner": 40, "step_scale": 2.0}
LENGTHS = {"svrg++": {"n_inner": 4}, "skgd": {"n_rounds": 5, "n_inner": 200}}  # of epochs that double; of single coordinates
ITS_OWN = ("newton", "standardized_gd", "whitened_gd")  # with steps of another kind
OTHER_OPTIMUM = ("moments", "rescaled_gd", "standardized_gd", "whitened_gd", "ssp")  # penalties in the geometry of the features
OTHER_OPTIMUM += ("sgda", "privatediff", "inference")  # saddle points, and losses of its own
TOLERANCES = {"frank_wolfe": 1e-2}


def facts_of(model, y):
    """The problem as solvers see it."""
    classes = np.arange(y.max() + 1) if hasattr(model, "classes") else None
    return model._task().plan_of(Facts(N, P, classes=classes)).problem


def pairs(cases):
    """Every case with every solver that fits it."""
    return [
        pytest.param(case, solver, id=f"{case}-{solver}")
        for case, (model, y) in cases.items()
        for solver, kind in SOLVERS.items()
        if kind.needs <= facts_of(model, y).offers and solver not in OTHER_OPTIMUM
        if solver in ("gd", "accmd") or "LpBall" not in case  # projections onto it are slow
    ]


def generous(solver, smoothness):
    kind, given = SOLVERS[solver], {**GENEROUS, "step_size": GENEROUS["step_size"] / max(smoothness, 1.0)}
    given = {} if solver in ITS_OWN else {**given, **LENGTHS.get(solver, {})}
    return kind(**{name: value for name, value in given.items() if name in kind().get_params()})


def fitted(model, y, solver):
    """Without noise: the flat coefficients of the solver's problem, features first, and the problem."""
    smoothness = facts_of(model, y).loss.smoothness
    model = model.__class__(**{**model.get_params(deep=False), "epsilon": math.inf, "solver": generous(solver, smoothness)})
    with pytest.warns(UserWarning, match="not private"):
        model.fit(X, y)
        facts = facts_of(model, y)
    parts = [np.atleast_2d(model.coef_).T]
    return np.concatenate([*parts, np.atleast_2d(model.intercept_)] if facts.intercept_scaling else parts).ravel(), facts


def smooth(facts, y, everywhere=False):
    """Value and gradient of the mean loss and the L2 penalty, on flat coefficients; perhaps with a penalty on the intercept."""
    table = np.column_stack([X, np.ones(N)])[:, : facts.shape[0]]

    def value_and_gradient(flat):
        coef = flat.reshape(facts.shape)
        raw, penalized = table @ coef, coef if everywhere else coef[:P]
        gradient = table.T @ facts.loss.derivative(raw, y) / N
        gradient[: len(penalized)] += facts.penalty.strong_convexity * penalized
        return facts.loss.value(raw, y).mean() + facts.penalty.strong_convexity / 2 * np.sum(penalized**2), gradient.ravel()

    return value_and_gradient


def split(value_and_gradient, weights):
    """The same in positive and negative parts, with weights on both: an l1 norm as a linear function."""

    def of_parts(parts):
        value, gradient = value_and_gradient(parts[: weights.size] - parts[weights.size :])
        return value + np.tile(weights, 2) @ parts, np.concatenate([gradient + weights, weights - gradient])

    return of_parts


def least(facts, y, everywhere):
    """The least objective, by SciPy."""
    size, kind, target = math.prod(facts.shape), facts.constraint, smooth(facts, y, everywhere)
    weights = np.where(np.arange(size) < P * facts.shape[1], facts.alpha * facts.l1_ratio, 0.0)
    start, bounds, conditions = np.full(size, 1e-3), None, []
    if kind is None or isinstance(kind, L1Ball):
        target, start, bounds = split(target, weights), np.full(2 * size, 1e-3), [(0, None)] * (2 * size)
    if isinstance(kind, L1Ball):
        conditions = [{"type": "ineq", "fun": lambda parts: kind.radius - parts.sum()}]
    elif isinstance(kind, Simplex):
        start, bounds = np.full(size, kind.radius / size), [(0, None)] * size
        conditions = [{"type": "eq", "fun": lambda w: w.sum() - kind.radius}]
    elif isinstance(kind, Box):
        bounds = [(kind.low, kind.high)] * size
    elif kind is not None:
        conditions = [{"type": "ineq", "fun": lambda w: kind.radius**kind.norm - np.sum(np.abs(w) ** kind.norm)}]
    found = minimize(
        target, start, jac=True, bounds=bounds, constraints=conditions, method="SLSQP", tol=1e-14, options={"maxiter": 2000}
    )
    assert found.success or found.status == 8, found.message  # 8: no descent left at this tolerance
    return found.fun


@pytest.mark.each_value
@pytest.mark.parametrize("case, solver", pairs(CONVEX))
def test_the_least_objective_is_reached(case, solver):
    """No further above it than the tolerance, and never below, which would be outside of the set."""
    model, y = CONVEX[case]
    flat, facts = fitted(model, y, solver)
    everywhere = SOLVERS[solver].penalizes_intercept
    reached = smooth(facts, y, everywhere)(flat)[0] + facts.alpha * facts.l1_ratio * np.abs(flat[: P * facts.shape[1]]).sum()
    best = least(facts, y, everywhere)
    assert -1e-6 < reached / best - 1 < TOLERANCES.get(solver, 1e-4)


@pytest.mark.parametrize("case, solver", pairs(NOT_CONVEX))
def test_a_stationary_point_is_reached_without_convexity(case, solver):
    model, y = NOT_CONVEX[case]
    flat, facts = fitted(model, y, solver)
    assert np.linalg.norm(smooth(facts, y)(flat)[1]) < 1e-4
    assert np.linalg.norm(smooth(facts, y)(np.zeros(flat.size))[1]) > 0.02


@pytest.mark.slow
def test_every_solver_is_here():
    """In the products above, or with an optimum of its own, which its own tests look for."""
    seen = {pair.values[1] for pair in pairs(CONVEX)}
    assert seen == set(SOLVERS) - set(OTHER_OPTIMUM)

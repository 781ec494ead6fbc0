"""Without noise and clipping the solvers of smooth problems find the minimum that SciPy finds, for all that they go with."""

import math

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize
from seeded import source

from skdp.constraints import Box, L1Ball, L2Ball, Simplex
from skdp.losses import Huber, Logistic, Multinomial, Squared
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.solvers import SVRG, GradientDescent, Problem, SVRGPlusPlus

LOSSES = (Logistic(), Multinomial(3), Squared(), Huber(0.5))
L1_RATIOS = (0.0, 0.5, 1.0)
CONSTRAINTS = (L1Ball(0.7), L2Ball(0.6), Simplex(0.9), Box(-0.2, 0.3))
ALPHA, N, D = 0.05, 240, 4
EXACT, AVERAGE = 1e-4, 1e-2
SOLVERS = {
    "gd": (GradientDescent(500, step_size=0.3, momentum=0.9, output="last"), EXACT),
    "gd average": (GradientDescent(200, step_size=0.3, momentum=0.9), AVERAGE),
    "svrg": (SVRG(14, n_inner=50, batch_size=120, step_size=0.5), EXACT),
    "svrg++": (SVRGPlusPlus(7, n_inner=8, batch_size=120, step_size=0.5), EXACT),
}


def table(loss):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D))
    raw = X @ rng.normal(size=(D, loss.n_outputs)) + 0.3
    if loss.targets == "numbers":
        return X, np.clip(0.3 * raw[:, 0] + 0.2 * rng.normal(size=N), -1, 1)
    noisy = raw + rng.logistic(size=raw.shape)
    return X, (noisy[:, 0] > 0).astype(np.int8) if loss.n_outputs == 1 else noisy.argmax(axis=1).astype(np.int8)


def problem_of(loss, l1_ratio=0.0, constraint=None):
    budget = Budget(math.inf, 1e-6, "zero_out")
    facts = {"data_norm": 10.0, "intercept_scaling": 1.0, "alpha": ALPHA, "clip_norm": 1e4}
    return Problem(N, D, loss, budget, l1_ratio=l1_ratio, constraint=constraint, **facts)


def objective(facts, X, y):
    """Value and gradient of what is smooth, on coefficients with the intercept's row last."""
    extended = np.column_stack([X, np.ones(N)])
    ridge = facts.penalty.strong_convexity

    def smooth(flat):
        coef = flat.reshape(facts.shape)
        raw = extended @ coef
        value = facts.loss.value(raw, y).mean() + ridge / 2 * np.sum(coef[:D] ** 2)
        gradient = extended.T @ facts.loss.derivative(raw, y) / N
        gradient[:D] += ridge * coef[:D]
        return value, gradient.ravel()

    return smooth


def total(facts, X, y, coef):
    return objective(facts, X, y)(coef.ravel())[0] + ALPHA * facts.l1_ratio * np.abs(coef[:D]).sum()


def minimum(facts, X, y):
    """By SciPy: the l1 norm as a sum of two positive parts, constraints as constraints."""
    smooth, size = objective(facts, X, y), math.prod(facts.shape)
    features = D * facts.shape[1]
    if facts.constraint is None:
        weight = np.append(np.full(features, ALPHA * facts.l1_ratio), np.zeros(size - features))

        def split(parts):
            value, gradient = smooth(parts[:size] - parts[size:])
            return value + np.tile(weight, 2) @ parts, np.concatenate([gradient + weight, weight - gradient])

        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 50_000}
        return minimize(
            split, np.zeros(2 * size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * size, options=options
        ).fun
    bounds, constraints = None, []
    match facts.constraint:
        case Box(low, high):
            bounds = [(low, high)] * features + [(None, None)] * (size - features)
        case L2Ball(radius):
            constraints = [NonlinearConstraint(lambda w: w[:features] @ w[:features], -np.inf, radius**2)]
        case Simplex(radius):
            bounds = [(0, None)] * features + [(None, None)] * (size - features)
            constraints = [LinearConstraint(np.append(np.ones(features), np.zeros(size - features)), radius, radius)]
        case L1Ball(radius):

            def split(parts):
                value, gradient = smooth(np.append(parts[:features] - parts[features : 2 * features], parts[2 * features :]))
                return value, np.concatenate([gradient[:features], -gradient[:features], gradient[features:]])

            sums = LinearConstraint(np.append(np.ones(2 * features), np.zeros(size - features)), -np.inf, radius)
            free = [(0, None)] * 2 * features + [(None, None)] * (size - features)
            start = np.zeros(size + features)
            return minimize(split, start, jac=True, method="SLSQP", bounds=free, constraints=[sums], options=SLSQP).fun
    start = facts.project(np.zeros(facts.shape)).ravel()
    return minimize(smooth, start, jac=True, method="SLSQP", bounds=bounds, constraints=constraints, options=SLSQP).fun


SLSQP = {"ftol": 1e-13, "maxiter": 1000}
CASES = [(loss, {"l1_ratio": ratio}) for loss in LOSSES for ratio in L1_RATIOS]
CASES += [(loss, {"constraint": constraint}) for loss in LOSSES for constraint in CONSTRAINTS]


@pytest.mark.each_value
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss, given", CASES, ids=lambda value: getattr(value, "name", None) or str(next(iter(value.values()))))
def test_the_minimum_is_found(solver, loss, given):
    facts, (X, y) = problem_of(loss, **given), table(loss)
    chosen, tolerance = SOLVERS[solver]
    schedule = chosen.schedule(facts)
    rows = TrainingData(X, y, data_norm=facts.data_norm, intercept_scaling=1.0, by_row=True)
    oracle = Oracle(rows, schedule, facts.budget, 0.0, source())
    coef = chosen.solve(facts, oracle.ask, np.random.default_rng(0)).coef
    oracle.finish()
    best = minimum(facts, X, y)
    assert best * (1 - 1e-6) <= total(facts, X, y, coef) <= best * (1 + tolerance)
    if facts.constraint is not None:
        np.testing.assert_allclose(facts.project(coef), coef, atol=1e-9)

"""The saddle problems of the gallery: gradients, and saddle points in closed form. Their scripts run in test_examples."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from seeded import fitted

from skdp import DPMinimax
from skdp.minimax import Batch, check_saddle
from skdp.solvers import SGDA

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def definitions(name):
    """Imports, constants in capitals, functions and classes of an example, which does not run."""
    script = ast.parse((EXAMPLES / f"{name}.py").read_text())
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    script.body = [
        part
        for part in script.body
        if isinstance(part, kinds) or (isinstance(part, ast.Assign) and ast.unparse(part.targets[0]).isupper())
    ]
    found = {}
    exec(compile(script, name, "exec"), found)
    return found


@pytest.fixture(scope="module")
def td():
    return definitions("plot_td_learning")


@pytest.fixture(scope="module")
def digits():
    return definitions("plot_wasserstein_digits")


def transitions(rng, n_states=200, n_features=3):
    """Features of both states of made-up transitions, shorter in the second, and rewards."""
    now = rng.normal(size=(n_states, n_features))
    return np.hstack([now, 0.5 * now @ rng.normal(size=(n_features, n_features)) / 2]), rng.uniform(-1, 1, size=n_states)


def test_temporal_differences_are_gradients_of_their_value(td, rng):
    X, y = transitions(rng)
    check_saddle(td["PolicyEvaluation"](6), X, y)


def test_temporal_difference_learning_ends_at_the_fixed_point(td, rng):
    """Where the mean of error times features is zero; nothing is clipped, and there is no noise."""
    X, y = transitions(rng)
    now, then = X[:, :3], X[:, 3:]
    exact = np.linalg.solve(now.T @ (now - td["DISCOUNT"] * then), now.T @ y)
    solver = SGDA(1000, primal_clip_norm=1e3, dual_clip_norm=1e3, primal_step_size=0.5, dual_step_size=0.5)
    with pytest.warns(UserWarning, match="not private"):
        model = DPMinimax(td["PolicyEvaluation"], epsilon=math.inf, data_norm=1e3, solver=solver).fit(X, y)
    np.testing.assert_allclose(model.primal_, exact, atol=1e-2 * np.abs(exact).max())
    np.testing.assert_allclose(model.dual_, 0, atol=1e-2)


def test_the_critic_has_the_gradients_of_its_value_and_records_none_in_the_generator(digits, rng):
    check_saddle(digits["Generator"](), rng.uniform(size=(40, 64)), np.arange(40) % 10)


def test_the_public_part_of_the_generator_is_a_gradient(digits, rng):
    """Of the critic's mean over generated images and half its squared norm, both with a minus, by finite differences."""
    problem, draws, n_digits = digits["Generator"](), digits["DRAWS"], digits["N_DIGITS"]
    labels = draws[:, :n_digits] @ np.arange(n_digits)

    def public_value(primal, dual):
        images = digits["generate"](primal, draws)
        return -problem.value(Batch(images, labels), primal, dual).mean() - dual @ dual / 2

    point = rng.normal(size=problem.n_primal), rng.normal(size=problem.n_dual)
    for side, gradient in enumerate(problem.public_gradient(*point)):
        for move in 1e-4 * rng.normal(size=(5, gradient.size)):
            ends = [[part + way * move if place == side else part for place, part in enumerate(point)] for way in (1, -1)]
            change = public_value(*ends[0]) - public_value(*ends[1])
            np.testing.assert_allclose(change, 2 * gradient @ move, rtol=1e-3, atol=1e-9)


def test_the_best_critic_is_the_difference_of_mean_features(digits, rng):
    """With a generator that stands still, and without noise."""
    problem = digits["Generator"]()
    X, y = rng.uniform(0.2, 0.4, size=(50, 64)), np.arange(50) % 10
    solver = SGDA(100, primal_step_size=1e-12, dual_step_size=0.3, output="last")
    with pytest.warns(UserWarning, match="not private"):
        model = fitted(DPMinimax(problem, epsilon=math.inf, solver=solver), X, y)

    def mean_features(labels, images):
        left, right = digits["sides"](labels, images)
        return left.T @ right / len(left)

    draws = digits["DRAWS"]
    made = mean_features(draws[:, : digits["N_DIGITS"]], digits["generate"](model.primal_, draws))
    best = mean_features(digits["one_hot"](y), X) - made
    np.testing.assert_allclose(model.dual_, best.ravel(), atol=1e-6 * np.abs(best).max())

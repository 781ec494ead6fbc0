"""DP-SkGD: its update, its optima without noise, its transcript, its defaults, and when it beats gradient descent."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from seeded import fitted

from skdp import DPConstrainedClassifier, DPLogisticRegression
from skdp.constraints import Box
from skdp.losses import Huber, Logistic, Multinomial, Squared
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BlockGradient
from skdp.samplings import Importance, Nice
from skdp.solvers import BlockCoordinateDescent, GradientDescent, Problem
from skdp.solvers.first_order.block_coordinate import Coordinates

ADJACENCIES = ("replace_one", "zero_out")
LOGISTIC = Logistic()
BOUNDS = (2.0, 0.5, 1.0)
PAIRS = [(-bound, bound) for bound in BOUNDS]
BLOCKS = [[0, 2]]


def problem(epsilon=1.0, adjacency="replace_one", n_samples=5000, loss=LOGISTIC, **changes):
    facts = Problem(n_samples, 3, loss, Budget(epsilon, 1e-7, adjacency), data_norm=2.2, intercept_scaling=1.0, alpha=0.01)
    facts = replace(facts, **{"feature_bounds": BOUNDS, **changes})
    return facts if facts.clip_norm < math.inf else replace(facts, clip_norm=facts.lipschitz)


class Asked:
    """An oracle that answers with noise alone, and keeps what was asked."""

    def __init__(self, rng):
        self.rng, self.queries, self.answers = rng, [], []

    def __call__(self, query):
        self.queries.append(query)
        self.answers.append(self.rng.normal(size=query.size) * query.clip_norm * 100)
        return self.answers[-1]


@pytest.mark.parametrize("sampling", ("uniform", "importance"))
def test_single_coordinates_satisfy_the_update_of_dp_cd(sampling, rng):
    """Step 1 / M_j on the coordinate asked, its clip norm L B_j, the average of a round, the next one from there."""
    facts, ask = problem(), Asked(rng)
    result = BlockCoordinateDescent(sampling, n_rounds=2, n_inner=30, step_size=1.0).solve(facts, ask, rng)
    bounds, ridge = np.array([*BOUNDS, 1.0]), np.array([0.01, 0.01, 0.01, 0.0])
    smoothness = bounds**2 / 4 + ridge
    coef, asked = np.zeros(4), set()
    for start in (0, 30):
        iterates = []
        for query, answer in zip(ask.queries[start : start + 30], ask.answers[start : start + 30], strict=True):
            (j,) = query.block
            np.testing.assert_allclose(query.coef[:, 0], coef, atol=1e-12)
            assert query.clip_norm == pytest.approx(bounds[j])
            coef = coef.copy()
            coef[j] -= (answer[0] / 5000 + ridge[j] * coef[j]) / smoothness[j]
            iterates.append(coef)
            asked.add(j)
        coef = np.mean(iterates, axis=0)
    np.testing.assert_allclose(result.coef[:, 0], coef, atol=1e-12)
    assert result.n_iter == 60 and asked == {0, 1, 2, 3}


def test_a_block_step_is_proximal_in_each_coordinate(rng):
    """Thresholds and bounds with the step of each coordinate; the intercept has neither."""
    facts = problem(alpha=0.2, l1_ratio=0.5, constraint=Box(-0.1, 0.1))
    facts, slopes = replace(facts, loss=Multinomial(3)), np.array([-2, 0.05, 2, 1, -0.02, -1.5, 0.5, 0.09, -0.7, 1, 2, 3])
    solver = BlockCoordinateDescent("full", n_rounds=1, n_inner=1, step_size=0.5)
    result = solver.solve(facts, lambda query: 5000 * slopes, rng)
    bounds = np.array([*BOUNDS, 1.0])
    steps = 0.5 / (0.5 * bounds * bounds.sum() + [0.1, 0.1, 0.1, 0.0])
    moved = -steps[:, None] * slopes.reshape(4, 3)
    shrunk = np.sign(moved) * np.maximum(np.abs(moved) - 0.1 * steps[:, None], 0)
    expected = np.vstack([np.clip(shrunk[:3], -0.1, 0.1), moved[3:]])
    np.testing.assert_allclose(result.coef, expected, atol=1e-12)
    assert (expected[:3] == 0).any() and (np.abs(expected[:3]) == 0.1).any()


def test_full_is_gd_step_for_step_under_the_same_noise(rng, monkeypatch):
    """Equal bounds, the step 1 / (s R^2), no momentum: the same points are asked at, and the same model is returned."""
    X = np.asfortranarray(rng.uniform(-1, 1, size=(400, 4)))
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)
    asked = []
    ask = Oracle.ask
    monkeypatch.setattr(Oracle, "ask", lambda self, query: (asked.append(query.coef), ask(self, query))[1])

    def path_of(solver):
        asked.clear()
        given = {"delta": 1e-5, "fit_intercept": False, "feature_bounds": 1.0, "alpha": 0.0, "clip_norm": 1.0}
        model = fitted(DPLogisticRegression(1.0, solver=solver, **given), X, y, seed=3)
        return np.array(asked), model.coef_

    points, coef = path_of(GradientDescent(20, step_size=1.0, momentum=0.0, tail_average=1.0))
    same_points, same_coef = path_of(BlockCoordinateDescent("full", n_rounds=1, n_inner=20, step_size=1.0))
    assert np.linalg.norm(points[-1]) > 0.1
    np.testing.assert_allclose(same_points, points, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(same_coef, coef, rtol=1e-9)


def solver_of(sampling, **parameters):
    own = {"own": Nice(4, 3)}.get(sampling, sampling)
    return BlockCoordinateDescent(own, blocks=BLOCKS if sampling == "blocks" else None, **parameters)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize(
    "sampling, case",
    [*itertools.product(("uniform", "importance", "nice", "full", "blocks", "own"), ("ridge", "l1", "box")), ("greedy", "ridge")],
)
def test_every_sampling_reaches_the_optimum_without_noise(sampling, case):
    """The coefficients to 1e-3, by SciPy."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(150, 3)) * BOUNDS
    y = (X @ [0.8, 1.5, -0.4] + 0.3 + rng.logistic(size=150) > 0).astype(int)
    public = {
        "epsilon": math.inf,
        "feature_bounds": PAIRS,
        "alpha": 0.05,
        "clip_norm": 1e6,
        "fit_intercept": True,
        "random_state": 0,
    }
    public["solver"] = solver_of(sampling, n_rounds=4, n_inner=150, step_size=1.5)
    if case == "box":
        model = DPConstrainedClassifier(constraint=Box(-0.2, 0.3), **public).fit(X, y)
    else:
        model = DPLogisticRegression(l1_ratio=0.7 if case == "l1" else 0.0, **public).fit(X, y)
    weights = np.tile([0.035, 0.035, 0.035, 0.0], 2) if case == "l1" else np.zeros(8)
    above, below = ((0, 0.3), (0, 0.2)) if case == "box" else ((0, None), (0, None))
    table, ridge = np.column_stack([X, np.ones(150)]), 0.05 * np.array([1, 1, 1, 0]) * (0.3 if case == "l1" else 1.0)

    def objective(parts):
        coef = parts[:4] - parts[4:]
        raw = table @ coef
        slope = table.T @ (1 / (1 + np.exp(-raw)) - y) / 150 + ridge * coef
        value = np.mean(np.logaddexp(0, raw) - y * raw) + ridge @ coef**2 / 2 + weights @ parts
        return value, np.concatenate([slope, -slope]) + weights

    bounds = [*[above] * 3, (0, None), *[below] * 3, (0, None)]
    parts = minimize(objective, np.zeros(8), jac=True, bounds=bounds, tol=1e-14, options={"maxiter": 5000}).x
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), parts[:4] - parts[4:], atol=1e-3)


@pytest.mark.parametrize("sampling", ("uniform", "nice", "full"))
def test_smoothness_of_a_block_bounds_every_record(sampling, rng):
    """(sum_j x_j h_j)^2 <= sum_j v_j h_j^2 for rows at their bounds and the worst direction h; attained for equal bounds."""
    for bounds in ((2.0, 0.5, 1.0), (1.0, 1.0, 1.0), 1.0, None):
        facts = problem(alpha=0.0, feature_bounds=bounds, data_norm=math.sqrt(3) if bounds in (1.0, None) else 2.2)
        coordinates = Coordinates.of(facts)
        block = {"uniform": [1], "nice": [0, 2, 3], "full": [0, 1, 2, 3]}[sampling]
        step = 4 * coordinates.smoothness(np.array(block))
        longest = np.sum(coordinates.bounds[block] ** 2 / step)  # the largest eigenvalue of x x^T in the norm of v
        assert longest <= 1 + 1e-12
        assert sampling == "full" or bounds not in (1.0, None) or longest == pytest.approx(1)
    short = Coordinates.of(problem(alpha=0.0, feature_bounds=1.0, data_norm=1.2, intercept_scaling=0.0))
    np.testing.assert_allclose(4 * short.smoothness(np.arange(3)), 1.44)  # rows that are shorter than their bounds allow


def test_constants_of_coordinates_come_from_public_bounds():
    """No bound is above the data norm; without bounds they are equal parts of it; importance is in proportion to smoothness."""
    facts = problem(feature_bounds=(3.0, 0.5, 1.0), alpha=0.02)
    coordinates = Coordinates.of(facts)
    np.testing.assert_allclose(coordinates.bounds, [2.2, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(coordinates.smoothness_of_each, np.square([2.2, 0.5, 1.0, 1.0]) / 4 + [0.02, 0.02, 0.02, 0.0])
    np.testing.assert_allclose(coordinates.clip_norms, [2.2, 0.5, 1.0, 1.0])
    assert coordinates.clip_norm(np.array([0, 1])) == 2.2
    sampling = BlockCoordinateDescent("importance")._sampling(facts)
    shares = coordinates.smoothness_of_each / coordinates.smoothness_of_each.sum()
    np.testing.assert_allclose(sampling.probabilities, shares)
    np.testing.assert_allclose(Coordinates.of(problem(feature_bounds=None)).bounds, [*[2.2 / math.sqrt(3)] * 3, 1.0])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sampling", ("uniform", "importance", "nice", "full", "blocks", "greedy", "own"))
def test_transcript_and_noise_are_those_of_the_schedule(sampling, adjacency, rng, monkeypatch):
    """T K releases of one noise multiplier, k sqrt(T K) / mu; a clip norm is stated where it is that of every block."""
    X, y = rng.uniform(-1, 1, size=(60, 3)) * BOUNDS, np.arange(60) % 2
    asked, ask, deviations = [], Oracle.ask, []
    monkeypatch.setattr(Oracle, "ask", lambda self, query: (asked.append(query), ask(self, query))[1])
    add_to = GridGaussian.add_to
    monkeypatch.setattr(
        GridGaussian, "add_to", lambda self, *arguments: (deviations.append(self.std), add_to(self, *arguments))[1]
    )
    solver = solver_of(sampling, n_rounds=2, n_inner=6)
    model = DPLogisticRegression(2.0, delta=1e-5, adjacency=adjacency, solver=solver, feature_bounds=PAIRS).fit(X, y)
    report, factor = model.privacy_report_, {"replace_one": 2, "zero_out": 1}[adjacency]
    gradients = [query for query in asked if isinstance(query, BlockGradient)]
    assert sum(line.count for line in report.releases) == len(asked) == (24 if sampling == "greedy" else 12)
    assert len(gradients) == 12 == model.n_iter_
    assert 1.998 < report.spent.epsilon <= 2.0
    (multiplier,) = {line.noise_multiplier for line in report.releases if line.query == "BlockGradient"}
    if sampling != "greedy":
        assert multiplier == pytest.approx(factor * math.sqrt(12) / gaussian_mu(2.0, 1e-5), rel=1e-9)
    np.testing.assert_allclose(deviations, [multiplier * query.clip_norm for query in gradients], rtol=1e-3)
    stated = {line.clip_norm for line in report.releases if line.query == "BlockGradient"}
    assert stated == ({gradients[0].clip_norm} if sampling == "full" else {None})
    assert ("clip norm that of its block" in str(report).replace("\n              ", " ")) == (sampling != "full")
    for query in gradients:
        constant = 1.0 if query.block[-1] == 3 else 0.0
        norm = math.hypot(min(np.linalg.norm([BOUNDS[j] for j in query.block if j < 3]), math.sqrt(5.25)), constant)
        assert query.clip_norm == pytest.approx(norm / 2)  # half of the largest slope, 1


def test_the_blocks_are_drawn_without_a_look_at_the_data(rng):
    """Tables that differ in everything are asked about the same coordinates, with the same public randomness."""
    blocks = []
    for scale in (1.0, 1e6):
        asked = Asked(np.random.default_rng(7))
        BlockCoordinateDescent("nice", n_inner=50).solve(
            problem(), lambda query, scale=scale, asked=asked: scale * asked(query), np.random.default_rng(1)
        )
        blocks.append([query.block.tolist() for query in asked.queries])
    assert blocks[0] == blocks[1] and len({tuple(block) for block in blocks[0]}) > 1


@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (1e-3, 1.0, 10.0, math.inf))
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(4), Squared(), Huber(0.5)), ids=lambda loss: loss.name)
def test_defaults_are_public_bounded_and_stable(adjacency, epsilon, loss):
    """Between 5 and 200 passes, fewer with a strong penalty; steps no longer than the paper's, more of them for more records."""
    for sampling in ("uniform", "importance", "nice", "full", "blocks"):
        passes = []
        for n_samples in (2, 300, 10**5, 10**8):
            facts, solver = problem(epsilon, adjacency, n_samples, loss), solver_of(sampling)
            facts = replace(facts, clip_norm=solver.default_clip_norm(facts), alpha=solver.default_alpha(facts))
            plan = solver._sampling(facts), Coordinates.of(facts)
            n_rounds, n_inner, factor = solver._lengths(facts, *plan)
            assert len(solver.schedule(facts)) == n_rounds * n_inner
            assert 0 < factor <= 1
            passes.append(n_rounds * n_inner * plan[0].probabilities.sum() / 4)
        assert epsilon == math.inf or 3 <= min(passes) <= max(passes) <= 250
        assert passes[0] <= passes[1] + 0.01 <= passes[2] + 1


def test_more_steps_than_the_noise_bears_are_shorter():
    """The path, steps times factor, is that of the default."""
    facts = problem()
    paths = []
    for n_inner in (None, 3000, 30_000):
        solver = BlockCoordinateDescent(n_inner=n_inner)
        lengths = solver._lengths(facts, solver._sampling(facts), Coordinates.of(facts))
        paths.append(lengths.n_inner * lengths.factor)
    np.testing.assert_allclose(paths, paths[0], rtol=0.01)


def test_a_strong_ridge_takes_rounds_that_halve_the_risk():
    """Then the steps of the second theorem are fewer than those of the first."""
    weak, strong = problem(epsilon=5.0, n_samples=50_000, alpha=1e-4), problem(epsilon=5.0, n_samples=50_000, alpha=2.0)
    (one, many), (rounds, few) = (
        solver._lengths(facts, solver._sampling(facts), Coordinates.of(facts))[:2]
        for solver, facts in ((BlockCoordinateDescent(), weak), (BlockCoordinateDescent(), strong))
    )
    assert one == 1 and rounds > 1 and rounds * few < many


@pytest.mark.parametrize(
    "parameters, error, name",
    (
        ({"sampling": "best"}, ValueError, "sampling='best'"),
        ({"sampling": None}, TypeError, "sampling=None"),
        ({"sampling": Nice(3, 2)}, ValueError, "sampling=Nice"),
        ({"n_rounds": 0}, ValueError, "n_rounds=0"),
        ({"n_inner": 2.5}, TypeError, "n_inner=2.5"),
        ({"n_rounds": 10**4, "n_inner": 10**4}, ValueError, "n_rounds=10000 times n_inner=10000"),
        ({"sampling": "greedy", "n_inner": 10**5}, ValueError, "n_inner=100000"),
        ({"step_size": 0.0}, ValueError, "step_size=0.0"),
        ({"step_size": math.nan}, ValueError, "step_size=nan"),
        ({"sampling": "nice", "tau": 5}, ValueError, "tau=5"),
        ({"tau": 2}, ValueError, "tau=2 with sampling='uniform'"),
        ({"sampling": "blocks", "blocks": [[0, 1], [1]]}, ValueError, r"1 is named twice"),
        ({"blocks": [[0]]}, ValueError, "blocks="),
        ({"sampling": "blocks"}, ValueError, "blocks=None"),
        ({"sampling": "blocks", "blocks": [[0, 4]]}, ValueError, "blocks="),
    ),
)
def test_parameters_are_checked(parameters, error, name):
    with pytest.raises(error, match=name):
        BlockCoordinateDescent(**parameters).schedule(problem())


@pytest.mark.parametrize(
    "changes", ({"loss": Multinomial(3)}, {"l1_ratio": 0.5}, {"constraint": Box()}), ids=("outputs", "l1", "box")
)
def test_greedy_says_what_it_cannot_compare(changes):
    with pytest.raises(ValueError, match="sampling='greedy' compares slopes"):
        BlockCoordinateDescent("greedy").schedule(problem(**changes))


@pytest.mark.slow
def test_greedy_finds_the_coordinates_of_a_sparse_model(rng):
    """At epsilon 4, three of 40 coefficients: those that are not zero are among the largest, in 5 of 5 fits."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.choice([-1.0, 1.0], size=(4000, 40))
        y = (X[:, :3] @ [1.0, -1.0, 1.0] + 0.5 * rng.logistic(size=4000) > 0).astype(int)
        model = fitted(DPLogisticRegression(4.0, delta=1e-5, solver=BlockCoordinateDescent("greedy")), X, y, seed=seed)
        assert set(np.argsort(-np.abs(model.coef_[0]))[:3]) == {0, 1, 2}


def test_a_sampling_of_ones_own_may_be_given_and_is_checked(rng):
    """An object that draws what is no block fails before anything is released."""

    class Wrong:
        probabilities = np.full(4, 0.5)

        def sample(self, generator):
            return np.array([3, 3])

    for given in ({}, {"n_rounds": 1, "n_inner": 2, "step_size": 1.0}):
        with pytest.raises(ValueError, match="drew"):
            DPLogisticRegression(1.0, solver=BlockCoordinateDescent(Wrong(), **given)).plan(100, 3)
    weights = BlockCoordinateDescent(Importance((1.0, 2.0, 1.0, 1.0)), n_inner=5)
    assert weights.schedule(problem()).entries[0][0] == 5


def wide_and_narrow(seed):
    """Three wide columns among 37 narrow ones, with smoothness constants from 1 to 1e-4; the signal is in proportion to width."""
    rng = np.random.default_rng(seed)
    bounds = np.append(np.ones(3), np.logspace(-1, -2, 37))
    X = np.asfortranarray(rng.uniform(-1, 1, size=(2000, 40)) * bounds)
    coef = rng.choice([-1.0, 1.0], size=40) * 4 / np.linalg.norm(bounds)
    return X, (X @ coef + 0.5 + rng.logistic(size=2000) > 0).astype(int), bounds


def risk(X, y, parameters):
    raw = X @ parameters[:-1] + parameters[-1]
    slope = (1 / (1 + np.exp(-raw)) - y) / len(y)
    value = np.mean(np.logaddexp(0, raw) - y * raw) + np.sum(parameters[:-1] ** 2) / (2 * len(y))
    return value, np.append(X.T @ slope + parameters[:-1] / len(y), slope.sum())


@pytest.mark.slow
def test_importance_beats_gradient_descent_where_smoothness_is_spread():
    """The same ridge, else defaults, epsilon 1: at most three quarters of the median excess risk over five tables, fewer passes.

    Measured: ratios of medians from 0.46 to 0.63 over groups of five out of twelve tables. The noise is seeded.
    """
    excess = {"gd": [], "skgd": []}
    for seed in range(5):
        X, y, bounds = wide_and_narrow(seed)
        least = minimize(lambda w, X=X, y=y: risk(X, y, w), np.zeros(41), jac=True, tol=1e-12).fun
        passes = {}
        for name, solver in (("gd", "gd"), ("skgd", BlockCoordinateDescent("importance"))):
            known = {"feature_bounds": np.column_stack([-bounds, bounds])} if name == "skgd" else {}
            given = {"delta": 1e-5, "alpha": 1 / len(y), "data_norm": np.linalg.norm(bounds), **known}
            model = fitted(DPLogisticRegression(1.0, solver=solver, **given), X, y, seed=seed)
            excess[name].append(risk(X, y, np.append(model.coef_, model.intercept_))[0] - least)
            passes[name] = model.n_iter_ / (1 if name == "gd" else 41)
        assert passes["skgd"] <= passes["gd"]
    assert np.median(excess["skgd"]) < 0.75 * np.median(excess["gd"])

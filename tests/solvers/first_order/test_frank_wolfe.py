"""DP Frank-Wolfe: minima without noise, the set, the schedule, its defaults, and what it refuses."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from seeded import source

from skdp import DPConstrainedClassifier, PrivacyLedger
from skdp.constraints import Box, L1Ball, L2Ball, Simplex
from skdp.estimators._plan import Plan
from skdp.losses import Huber, Logistic, Multinomial, Squared
from skdp.privacy.accounting.noise_calibration import calibrate, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.ledger.gaussian_cover import selection_cover
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Vertex, Vertices
from skdp.solvers import FrankWolfe, Problem

ADJACENCIES = ("replace_one", "zero_out")
LOSSES = (Logistic(), Multinomial(3), Squared(), Huber(1.0))
N_SAMPLES, N_FEATURES = 300, 4


class Triangle:
    """A user's own polytope: a few vertices, wherever."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def __repr__(self):
        return f"Triangle({self.factor})"

    def vertices(self, size):
        return self.factor * np.random.default_rng(7).normal(size=(5, size))

    def project(self, w):
        return w

    def scaled(self, factor):
        return Triangle(self.factor * factor)


POLYTOPES = (L1Ball(0.7), L1Ball(15.0), Simplex(1.3), Triangle())


def problem(loss=Logistic(), polytope=L1Ball(), epsilon=math.inf, delta=1e-6, adjacency="zero_out", **facts):  # noqa: B008
    budget = Budget(epsilon, delta, adjacency)
    return Problem(
        **{"n_samples": N_SAMPLES, "n_features": N_FEATURES, "data_norm": 10.0, "intercept_scaling": 0.0, **facts},
        loss=loss,
        budget=budget,
        constraint=polytope,
    )


def table(loss, rng):
    X = rng.normal(size=(N_SAMPLES, N_FEATURES))
    raw = X @ rng.normal(size=(N_FEATURES, loss.n_outputs)) + rng.logistic(size=(N_SAMPLES, loss.n_outputs))
    if loss.targets == "numbers":
        return X, np.clip(raw[:, 0] / 5, -1, 1)
    return X, raw.argmax(axis=1) if loss.n_outputs > 1 else (raw[:, 0] > 0).astype(np.int8)


def fit(facts, solver, X, y, alpha=None, clip_norm=None, seed=0):
    plan = Plan.make(facts, solver, alpha, clip_norm)
    oracle = Oracle(TrainingData(X, y, **plan.row_bounds), plan.schedule, facts.budget, plan.scale, source(seed))
    result = plan.solver.solve(plan.problem, oracle.ask, None)
    oracle.finish()
    return result, plan


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("polytope", POLYTOPES, ids=repr)
@pytest.mark.parametrize("alpha", (0.0, 0.3))
def test_the_constrained_minimum_is_reached_without_noise(loss, polytope, alpha, rng):
    """Against SciPy's minimum over the shares of the vertices."""
    X, y = table(loss, rng)
    shape = (N_FEATURES, loss.n_outputs)
    size = math.prod(shape)
    vertices = Vertices(polytope.vertices(size))
    vertices = np.array([vertices.vertex(i) for i in range(vertices.shape[0])])

    def objective(w):
        return loss.value(X @ w.reshape(shape), y).mean() + alpha / 2 * (w**2).sum()

    def slope(shares):
        w = vertices.T @ shares
        return vertices @ ((X.T @ loss.derivative(X @ w.reshape(shape), y)).ravel() / N_SAMPLES + alpha * w)

    start = np.full(len(vertices), 1 / len(vertices))
    best = minimize(
        lambda shares: objective(vertices.T @ shares),
        start,
        jac=slope,
        bounds=[(0, 1)] * len(vertices),
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert best.success
    result, _ = fit(problem(loss, polytope), FrankWolfe(n_steps=1000), X, y, alpha)
    assert best.fun * (1 - 1e-6) <= objective(result.coef.ravel()) <= best.fun * 1.01


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("polytope", (L1Ball(0.7), Simplex(1.3)), ids=repr)
@pytest.mark.parametrize("epsilon", (0.01, 1.0, 30.0))
def test_the_result_is_in_the_set_and_a_mixture_of_few_vertices(adjacency, polytope, epsilon, rng):
    X, y = table(Logistic(), rng)
    result, _ = fit(problem(polytope=polytope, epsilon=epsilon, adjacency=adjacency), FrankWolfe(n_steps=3), X, y)
    assert polytope.contains(result.coef[:, 0], 1e-9)
    assert np.count_nonzero(result.coef) <= 3 == result.n_iter
    assert np.ptp(np.abs(result.coef[result.coef != 0]) * 6 / polytope.radius % 1) < 1e-9  # shares of sixths


@pytest.mark.each_pair
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (0.05, 1.0, 8.0))
@pytest.mark.parametrize("delta", (0.0, 1e-6))
@pytest.mark.parametrize("polytope", POLYTOPES, ids=repr)
def test_the_transcript_is_the_schedule_and_spends_the_budget(adjacency, epsilon, delta, polytope, rng):
    X, y = table(Multinomial(3), rng)
    facts = problem(Multinomial(3), polytope, epsilon, delta, adjacency)
    result, plan = fit(facts, "frank_wolfe", X, y)
    ((count, release),) = plan.schedule.entries
    assert (release.query, release.size) == (Vertex, polytope.vertices(3 * N_FEATURES).shape[0])
    assert count == result.n_iter and release.clip_norm == plan.problem.clip_norm
    assert 0.999 * epsilon <= spent_epsilon(plan.schedule, plan.scale, facts.budget) <= epsilon
    assert 0 < plan.rounding_allowances[0] < 1e-6


def test_noise_shows_in_the_result_and_privacy_costs_accuracy(rng):
    X, y = table(Logistic(), rng)
    weak, strong = (
        [fit(problem(epsilon=epsilon, polytope=L1Ball(3.0)), FrankWolfe(10), X, y, seed=seed)[0].coef for seed in range(8)]
        for epsilon in (0.01, 1e4)
    )
    losses = [[Logistic().value(X @ coef, y).mean() for coef in side] for side in (weak, strong)]
    assert len({coef.tobytes() for coef in weak}) == 8
    assert max(losses[1]) < min(losses[0])


def default_steps(**facts):
    return len(Plan.make(problem(**{"epsilon": 1.0, **facts}), "frank_wolfe", None, 1.0).schedule)


def test_the_number_of_steps_follows_the_theorem():
    """Powers of 2/3 of the number of records and of what the noise costs; of 1/2 for sums of epsilons; capped."""
    many = [default_steps(n_samples=n, data_norm=1.0) for n in (10**4, 8 * 10**4, 64 * 10**4)]
    assert [b / a for a, b in pairwise(many)] == pytest.approx([4, 4], rel=0.05)
    pure = [default_steps(n_samples=n, data_norm=1.0, delta=0.0) for n in (10**5, 4 * 10**5)]
    assert pure[1] / pure[0] == pytest.approx(2, rel=0.05)
    assert default_steps(n_samples=10**9) == default_steps(epsilon=math.inf) == 1000
    assert default_steps(epsilon=1e-3, n_samples=10) == 1
    radii = [default_steps(n_samples=10**5, data_norm=1.0, polytope=L1Ball(r)) for r in (0.5, 4.0)]
    assert radii[1] / radii[0] == pytest.approx(4, rel=0.05)


def test_feature_bounds_set_the_clip_and_the_steps():
    for bounds, largest in ((None, 10.0), (0.5, 0.5), ((0.1, 0.2, 3.0, 0.4), 3.0), (50.0, 10.0)):
        loud, free = (
            Plan.make(problem(epsilon=e, feature_bounds=bounds), "frank_wolfe", None, None).problem for e in (1.0, math.inf)
        )
        assert (loud.clip_norm, free.clip_norm) == pytest.approx((largest / 2, largest))
    quiet = Plan.make(problem(epsilon=100.0, n_samples=10**8, feature_bounds=2.0), "frank_wolfe", None, None).problem
    assert quiet.clip_norm == 2.0
    assert default_steps(n_samples=10**4, feature_bounds=0.1) < default_steps(n_samples=10**4)


def test_entries_within_their_bounds_are_not_clipped_without_noise(rng):
    X, y = table(Squared(), rng)
    X /= np.abs(X).max()
    facts = problem(Squared(), L1Ball(1.0), feature_bounds=1.0)
    default, wide = (fit(facts, FrankWolfe(200), X, y, clip_norm=clip)[0].coef for clip in (None, 1e3))
    np.testing.assert_array_equal(default, wide)


@pytest.mark.parametrize(
    "facts",
    ({"polytope": None}, {"polytope": L2Ball()}, {"polytope": Box()}, {"intercept_scaling": 1.0}),
    ids=("none", "l2", "box", "intercept"),
)
def test_what_has_no_vertices_is_refused(facts):
    with pytest.raises(
        ValueError, match="needs a constraint that is a polytope with few vertices, such as 'l1' or 'simplex', and no intercept"
    ):
        Plan.make(problem(**{"epsilon": 1.0, **facts}), "frank_wolfe", None, None)


@pytest.mark.parametrize(
    "n_steps, error", ((0, ValueError), (10**7 + 1, ValueError), (2.5, TypeError), ("3", TypeError), (True, TypeError))
)
def test_parameters_are_checked(n_steps, error):
    with pytest.raises(error, match="n_steps="):
        FrankWolfe(n_steps).schedule(problem(epsilon=1.0))


def test_noise_that_float64_does_not_resolve_is_refused():
    with pytest.raises(ValueError, match="too large for float64 to resolve; expected a larger epsilon or fewer steps"):
        Plan.make(problem(epsilon=1e-6, delta=0.0), FrankWolfe(10**7), None, None)


def test_the_remark_bounds_the_mean_error_of_a_choice(rng):
    """Over Gumbel noise on equal but one scores, worst case of none: the mean loss is below what is stated."""
    facts = Plan.make(problem(epsilon=2.0, n_samples=1000, data_norm=1.0), FrankWolfe(20), None, None)
    words = facts.solver.remark(facts.problem)
    stated = float(words.split("at most ")[1].split(" ")[0])
    scale = calibrate(facts.schedule, facts.problem.budget) * facts.problem.clip_norm / 1000
    for gap in np.linspace(0, 10, 30) * scale:
        scores = np.concatenate([[gap], np.zeros(7)])
        chosen = (scores + scale * source(1).gumbel(4000 * 8).reshape(4000, 8)).argmax(axis=1)
        assert (gap - scores[chosen]).mean() <= stated


@pytest.mark.parametrize("n_steps", (1, 40))
def test_a_ledger_charges_the_cover_of_the_selections(n_steps):
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    ledger = PrivacyLedger(epsilon=4, delta=1e-5)
    for _ in range(2):
        with ledger:
            model = DPConstrainedClassifier(1.0, delta=1e-6, solver=FrankWolfe(n_steps)).fit(X, y)
    mechanism = ledger.entries[0].spending.composition.selections
    assert mechanism == ((n_steps, pytest.approx(2 / selection_of(model), rel=1e-3)),)
    for entry in ledger.entries:
        assert not entry.charge.by_itself and entry.charge.slack == 0
        assert entry.charge.mu == pytest.approx(math.sqrt(n_steps) * selection_cover(selection_of(model)), rel=1e-3)
    summary = ledger.summary()
    assert 1 < summary.spent_epsilon < 4
    assert 1 < summary.tight_epsilon <= summary.spent_epsilon
    assert model.privacy_spent_.epsilon == pytest.approx(1.0, rel=1e-3)
    assert not hasattr(model, "noise_multiplier_")


def selection_of(model):
    """Epsilon of one selection, as the report states it."""
    (line,) = model.privacy_report_.releases
    return float(line.in_words.split("epsilon ")[1].split(" ")[0])


def test_the_report_states_the_accounting_and_a_polytope_of_ones_own_needs_no_review(rng):
    X, y = rng.normal(size=(100, 3)), np.arange(100) % 2
    known, own = (
        DPConstrainedClassifier(1.0, delta=delta, solver="frank_wolfe", constraint=polytope).fit(X, y)
        for delta, polytope in ((1e-6, "l1"), (0.0, Triangle()))
    )
    known_text, own_text = (" ".join(str(model.privacy_report_).split()) for model in (known, own))
    assert "by zero-concentrated differential privacy of all releases or the sum of their epsilons" in known_text
    assert "unreviewed" not in known_text
    assert "Triangle" in own_text and "unreviewed" not in own_text
    assert "pure 1-differential privacy" in own_text
    assert own.privacy_spent_ == (pytest.approx(1.0), 0.0)


def test_the_report_of_a_pure_guarantee_speaks_of_the_noise_that_there_is():
    for n_steps in (1, 50):
        assumed = DPConstrainedClassifier(delta=0.0, solver=FrankWolfe(n_steps)).plan(1000, 3).assumptions
        assert any("delta = 0" in line and "Gumbel" in line for line in assumed)
        assert not any("grid" in line for line in assumed)

"""DP-SGDA: its updates, its public defaults, shares of the budget, and the saddle point of the linear AUC problem."""

import math
import re

import numpy as np
import pytest
from marks import slow
from saddles import Instrumented, Regression
from seeded import fitted

from skdp import DPAUCMaximizer, DPMinimax, PrivacyLedger
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import JointGradient
from skdp.privacy.schedule import PoissonGaussian
from skdp.scorers import MLPScorer
from skdp.solvers import SGDA, MinimaxProblem, NoLoss, PrivateDiff

ADJACENCIES = ("replace_one", "zero_out")
SOLVERS = (SGDA, PrivateDiff)
both = pytest.mark.parametrize("kind", SOLVERS, ids=lambda kind: kind.name)
one = pytest.mark.parametrize("kind", (SGDA, *slow(PrivateDiff)), ids=lambda kind: kind.name)  # where the law is that of both


def problem(epsilon=1.0, adjacency="replace_one", n_samples=1000, saddle=None, alpha=0.0):
    budget = Budget(epsilon, 1e-7, adjacency)
    saddle = Instrumented(3) if saddle is None else saddle
    return MinimaxProblem(n_samples, 3, NoLoss("test"), budget, data_norm=1.0, intercept_scaling=0.0, saddle=saddle, alpha=alpha)


def run(solver, facts, rng, seed=3):
    """Queries and random answers of one run, and what it returns."""
    asked, answers = [], []

    def ask(query):
        asked.append(query)
        answers.append(rng.normal(size=query.size) * facts.n_samples / 4)
        return answers[-1]

    return asked, answers, solver.solve(facts, ask, np.random.default_rng(seed))


def averaged(iterates, output, chosen):
    if output == "average":
        return np.mean(iterates[-math.ceil((len(iterates) - 1) / 2) :], axis=0)
    return iterates[-1 if output == "last" else chosen]


@pytest.mark.parametrize("output", ("average", "last", "random"))
@pytest.mark.parametrize("alpha", (0.0, 0.3))
@pytest.mark.parametrize("batch_size", (None, 250))
def test_updates_are_those_of_the_algorithm(output, alpha, batch_size, rng):
    """Both sides move from the same point, by sums over the expected size and the divisor, and by the exact parts."""
    facts = problem(alpha=alpha)
    solver = SGDA(6, batch_size=batch_size, primal_step_size=0.2, dual_step_size=0.3, dual_share=0.36, output=output)
    asked, answers, result = run(solver, facts, rng)
    public, saddle = np.random.default_rng(3), facts.saddle
    chosen = int(public.integers(6)) if output == "random" else None
    w, v = saddle.project(*saddle.start(public))
    primals, duals = [w], [v]
    for query, answer in zip(asked, answers, strict=True):
        assert type(query) is JointGradient
        assert (query.primal_clip_norm, query.dual_clip_norm, query.dual_share) == (2.0, 2.0, 0.36)
        np.testing.assert_allclose(query.primal, w, atol=1e-14)
        np.testing.assert_allclose(query.dual, v, atol=1e-14)
        scale = (batch_size or 1000) * 0.5
        gradient = 2 / 0.8 * answer[:3] / scale + v / 4 + alpha * w * [1, 1, 0]
        ascent = 2 / 0.6 * answer[3:] / scale + (w - v) / 4
        w, v = np.clip(w - 0.2 * gradient, -1.5, 1.5), np.clip(v + 0.3 * ascent, -0.5, 0.5)
        primals, duals = [*primals, w], [*duals, v]
    assert len(asked) == result.n_iter == 6
    np.testing.assert_allclose(result.coef, averaged(primals, output, chosen)[:, None])
    np.testing.assert_allclose(result.dual, averaged(duals, output, chosen))


@pytest.mark.slow
@both
def test_a_random_iterate_is_any_of_those_at_which_gradients_were_released(kind, rng):
    """600 draws of 5: each is seen 120 times, 80 to 160 at 4 standard deviations; and it is fixed before the first answer."""
    facts, seen = problem(), []
    for seed in range(600):
        firsts = []
        for scale in (0.0, 1.0):
            points = []

            def ask(query, points=points, scale=scale):
                points.append(query.primal)
                return scale * rng.normal(size=query.size) * 500

            coef = kind(5, output="random").solve(facts, ask, np.random.default_rng(seed)).coef[:, 0]
            points = list(dict.fromkeys(map(tuple, points)))
            firsts.append(next((place for place, point in enumerate(points) if np.allclose(coef, point)), None))
        seen.append(firsts[1])
    counts = np.bincount(seen, minlength=5)
    assert counts.size == 5 and counts.min() >= 80


@both
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (0.2, 4.0))
def test_default_steps_read_the_data_how_often(kind, adjacency, epsilon):
    facts = problem(epsilon, adjacency)
    for batch_size, rounds in ((None, 100), (1000, 100), (500, 100), (50, 400), (1, 2000)):
        schedule = kind(batch_size=batch_size).schedule(facts)
        assert len(schedule) == rounds * (1 if kind is SGDA else 2)
        sampled = [isinstance(release.mechanism, PoissonGaussian) for _, release in schedule.entries]
        assert all(sampled) if batch_size in (500, 50, 1) else not any(sampled)
    assert len(kind(7).schedule(facts)) == 7 * (1 if kind is SGDA else 2)
    assert len(kind().schedule(problem(math.inf))) == 1000 * (1 if kind is SGDA else 2)


def of_joint(schedule, facts):
    """Multiplier of the primal part of the releases of a schedule of joint ones alone, and their number."""
    ((count, release),) = schedule.entries
    return noise_multiplier(release, calibrate(schedule, facts.budget), facts.budget.adjacency), count


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_full_batches_spend_the_budget_exactly(adjacency):
    facts = problem(1.0, adjacency)
    multiplier, count = of_joint(SGDA(40).schedule(facts), facts)
    k = 2 if adjacency == "replace_one" else 1
    assert k * math.sqrt(count) / multiplier == pytest.approx(gaussian_mu(1.0, 1e-7), rel=1e-6)


@pytest.mark.each_value
@both
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("batch_size", (None, 200))
def test_the_step_is_told_the_signal_that_the_noise_leaves(kind, adjacency, batch_size, monkeypatch):
    """For samples nearly so, as the weights follow from the central limit theorem."""
    told, facts = [], problem(1.0, adjacency)
    monkeypatch.setattr(Instrumented, "step_sizes", lambda self, *given: (told.append(given), (0.1, 0.1))[1])
    solver = kind(60, batch_size=batch_size, dual_share=0.2)
    schedule = solver.schedule(facts)
    solver.solve(facts, lambda query: np.zeros(query.size), np.random.default_rng(0))
    scale = calibrate(schedule, facts.budget)
    noisy = [
        (count, noise_multiplier(release, scale, adjacency))
        for count, release in schedule.entries
        if release.query.__name__ in ("JointGradient", "PrimalGradient")
    ]
    count, multiplier = sum(count for count, _ in noisy), noisy[0][1] / (math.sqrt(0.8) if kind is SGDA else 1)
    drawn = batch_size or facts.n_samples
    assert told == [(pytest.approx(drawn * math.sqrt(count) / multiplier, rel=1e-6 if batch_size is None else 0.05), 60)]


# clip norms that clip nothing, and rows that are not clipped
FREE = {"primal_clip_norm": 1e3, "dual_clip_norm": 1e3}


def two_classes(n=400, share=0.25):
    """Two normal classes with different covariances and scales."""
    rng = np.random.default_rng(5)
    y = (np.arange(n) < share * n).astype(int)
    X = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.4, 0.0], [0.0, 0.7, 0.2], [0.1, 0.0, 2.0]])
    X[y == 1] = 0.6 * X[y == 1] + [0.5, -0.4, 1.5]
    return X + np.array([1.0, 0.0, -2.0]), y


def saddle_point(X, y):
    """Coefficients, class means of the scores x'w, and alpha: the problem without a, b and alpha is a quadratic one."""
    positive, negative = X[y == 1], X[y == 0]
    apart = positive.mean(axis=0) - negative.mean(axis=0)
    spread = np.cov(positive.T, bias=True) + np.cov(negative.T, bias=True)
    w = np.linalg.solve(spread, apart)
    w /= 1 + apart @ w
    a, b = positive.mean(axis=0) @ w, negative.mean(axis=0) @ w
    return w, (a, b), b - a


def long(kind, **more):
    rounds = {"n_steps": 1200} if kind is SGDA else {"n_rounds": 1200}
    return kind(**rounds, **FREE, **more)


def kept_by(name, number):
    """Make `DPAUCMaximizer` keep an argument, by its number, of every call of a method."""
    calls, method = [], getattr(DPAUCMaximizer._task_class, name)

    def keeping(self, *arguments):
        calls.append(arguments[number])
        return method(self, *arguments)

    patch = pytest.MonkeyPatch()
    patch.setattr(DPAUCMaximizer._task_class, name, keeping)
    return calls, patch


@pytest.mark.slow
@pytest.mark.each_value
@both
@pytest.mark.parametrize("share", (0.25, 0.7))
@pytest.mark.parametrize("standardize", (None, False))
def test_without_noise_the_saddle_point_of_the_linear_auc_problem_is_reached(kind, share, standardize):
    """Whatever the class frequencies, which weigh the same; the threshold is halfway between the mean scores."""
    X, y = two_classes(share=share)
    X, step = (X, None) if standardize is None else ((X - X.mean(axis=0)) / X.std(axis=0), 0.1)
    w, (a, b), alpha = saddle_point(X, y)
    model = DPAUCMaximizer(math.inf, solver=long(kind, standardize=standardize, primal_step_size=step), data_norm=20.0)
    results, patch = kept_by("model", 1)
    with pytest.warns(UserWarning, match="not private"):
        model.fit(X, y)
    patch.undo()
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-3 * np.abs(w).max())
    np.testing.assert_allclose(model.intercept_, -(a + b) / 2, atol=1e-3)
    np.testing.assert_allclose(results[0].dual, [alpha], atol=1e-3)


@pytest.mark.slow
@one
def test_without_noise_a_saddle_of_ones_own_is_solved(kind):
    """Ridge regression, in full batches; with samples of a third nearly so."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(300, 3)) / 2
    y = X @ [1.0, -0.5, 0.2] + 0.1 * rng.normal(size=300)
    spread = X.T @ X / 300
    middle = spread @ np.linalg.solve(spread, spread)  # of v maximised out
    ridge = np.linalg.solve(middle + 0.05 * np.eye(3), X.T @ y / 300)
    for batch_size, tolerance in ((None, 1e-3), (100, 0.05)):
        solver = long(kind, primal_step_size=2.0, dual_step_size=2.0, batch_size=batch_size)
        with pytest.warns(UserWarning, match="not private"):
            model = fitted(DPMinimax(Regression(3), epsilon=math.inf, alpha=0.05, solver=solver, data_norm=2.0), X, y)
        np.testing.assert_allclose(model.primal_, ridge, atol=tolerance)


@pytest.mark.slow
@one
def test_the_gradient_of_the_primal_function_of_a_network_falls(kind):
    """From one public start, by finite differences of its closed form; full batches, nothing clipped: no randomness."""
    X, y = two_classes(120)
    X, found = (X - X.mean(axis=0)) / X.std(axis=0), []
    for steps, size in ((1, 1e-9), (4000, 0.05)):
        rounds = {"n_steps": steps} if kind is SGDA else {"n_rounds": steps, "difference_slope": 1e6}
        solver = kind(**rounds, **FREE, primal_step_size=size, dual_step_size=0.5, output="last")
        model = DPAUCMaximizer(math.inf, scorer="mlp", hidden_layer_sizes=(4,), solver=solver, data_norm=20.0)
        with pytest.warns(UserWarning, match="not private"):
            fitted(model, X, y)
        found.append(primal_function(model, X, y))
    (value_before, slope_before), (value_after, slope_after) = found
    assert value_after < 0.5 * value_before and slope_after < 0.4 * slope_before


def primal_function(model, X, y):
    """``max_v min_ab`` of a network, but for a factor, and the norm of its gradient in the parameters."""
    scorer = MLPScorer(X.shape[1], (4,))
    released = np.concatenate([np.append(w.T.ravel(), b) for w, b in zip(model.coefs_, model.intercepts_, strict=True)])

    def value(parameters):
        scores = scorer.at(X, parameters).scores
        positive, negative = scores[y == 1], scores[y == 0]
        return positive.var() + negative.var() + (1 - positive.mean() + negative.mean()) ** 2

    steps = 1e-6 * np.eye(released.size)
    return value(released), np.linalg.norm([(value(released + step) - value(released - step)) / 2e-6 for step in steps])


BAD = (
    ({"batch_size": 0.5}, ValueError),
    ({"batch_size": 1001}, ValueError),
    ({"batch_size": "all"}, TypeError),
    ({"primal_step_size": 0.0}, ValueError),
    ({"dual_step_size": math.inf}, ValueError),
    ({"primal_clip_norm": -1.0}, ValueError),
    ({"dual_clip_norm": 1e60}, ValueError),
    ({"dual_share": 0.0}, ValueError),
    ({"dual_share": 1.0}, ValueError),
    ({"preparation_share": None}, TypeError),
    ({"standardize": 1}, TypeError),
    ({"output": "best"}, ValueError),
    ({"output": ["last"]}, ValueError),
)


@both
@pytest.mark.parametrize("parameters, error", BAD)
def test_parameters_are_checked_before_anything_is_paid_for(kind, parameters, error):
    ((name, value),) = parameters.items()
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-2)
    X, y = np.zeros((1000, 2)), np.arange(1000) % 2
    with ledger, pytest.raises(error, match=re.escape(f"{name}={value!r}")):
        DPAUCMaximizer(solver=kind(**parameters)).fit(X, y)
    assert not ledger.entries


@both
@pytest.mark.parametrize("value, error", ((0, ValueError), (2.5, TypeError), (10**7, ValueError)))
def test_numbers_of_steps_are_checked(kind, value, error):
    name = "n_steps" if kind is SGDA else "n_rounds"
    with pytest.raises(error, match=f"{name}={value!r}"):
        kind(value).schedule(problem())


@both
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("batch_size", (None, 50))
def test_every_point_that_is_asked_at_follows_from_answers(kind, adjacency, batch_size, monkeypatch):
    """Two tables, the same noisy answers: the same questions, whatever the un-noised values are."""
    seen, answers = [], np.random.default_rng(1)

    def answer(self, query, release, records):
        values = tuple(np.concatenate([np.ravel(part) for part in query.parameters()]))
        seen.append((type(query), values, query.clip_norm))
        query.evaluate(self._rows)
        return answers.normal(size=query.size) * 10

    monkeypatch.setattr(Oracle, "_answer", answer)
    transcripts = []
    for shift in (0.0, 0.4):
        seen.clear()
        answers = np.random.default_rng(1)
        X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 3)) + shift
        solver = kind(6, batch_size=batch_size)
        fitted(DPMinimax(Instrumented(3), adjacency=adjacency, solver=solver, data_norm=1.0), X, X[:, 0])
        transcripts.append(list(seen))
    assert transcripts[0] == transcripts[1] and len(transcripts[0]) == (6 if kind is SGDA else 12)


@both
def test_the_report_says_how_large_the_noise_is(kind):
    facts = problem(1.0, "zero_out")
    size = (
        f"{1 / (facts.signal_to_noise * math.sqrt(0.9 if kind is SGDA else 0.63)):.3g} times the largest possible mean gradient"
    )
    report = DPMinimax(Instrumented(3), delta=1e-7, adjacency="zero_out", solver=kind(50), data_norm=1.0).plan(1000, 3)
    assert size in report.noise_size and "over the 3 primal variables" in report.noise_size
    assert report.public["resolved"]["clip_norm"] == 2.0


@pytest.mark.slow
def test_weights_are_those_of_the_exact_composition():
    """The mechanisms of all kinds of release have the shares of the central limit theorem that they are meant to have."""
    for adjacency in ADJACENCIES:
        facts = problem(1.0, adjacency, n_samples=20_000)
        schedule = PrivateDiff(300, batch_size=1000, dual_share=0.2, restart_share=0.6, restart_every=3).schedule(facts)
        scale = calibrate(schedule, facts.budget)
        kinds = {release.query.__name__: release.mechanism for _, release in schedule.entries}
        counts = {"DualGradient": 300, "PrimalGradient": 100, "PrimalDifference": 200}
        k = 2 if adjacency == "replace_one" else 1
        parts = {
            name: Composition(adjacency, ((counts[name], how.sampling_rate, how.weight * k),), (), 0.0).central_limit_mu(scale)
            ** 2
            for name, how in kinds.items()
        }
        shares = {name: part / sum(parts.values()) for name, part in parts.items()}
        assert shares == {
            name: pytest.approx(share, rel=0.03)
            for name, share in (("DualGradient", 0.2), ("PrimalGradient", 0.48), ("PrimalDifference", 0.32))
        }
        assert sum(parts.values()) == pytest.approx(gaussian_mu(1.0, 1e-7) ** 2, rel=0.1)

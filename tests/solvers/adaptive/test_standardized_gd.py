"""standardized_gd: shares of the budget, geometry, accuracy against the non-private optimum, and what it does with little."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
from marks import slow
from scipy import sparse
from scipy.optimize import minimize_scalar
from seeded import fitted
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import DPLinearSVC, DPLogisticRegression
from skdp.losses import Hinge, HuberHinge, Logistic, Multinomial, SquaredHinge
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.kernels import Records
from skdp.privacy.queries import ShortenedGradient, SlopeDerivatives, StandardizedGradient
from skdp.solvers import AUCProblem, Problem, StandardizedGradientDescent, signal_to_noise
from skdp.solvers._slope_steps import SlopeSteps
from skdp.solvers.adaptive._step_rules import CLIPPED
from skdp.solvers.adaptive.standardized_gd import _longest_step

BUDGET = Budget(1.0, 1e-6, "zero_out")


def estimator(epsilon, solver="standardized_gd", **params):
    return DPLogisticRegression(epsilon, solver=solver, **params)


def problem(n=10_000, d=8, loss=None, budget=BUDGET, kind=Problem, **more):
    return kind(n, d, loss or Logistic(), budget, data_norm=1.0, intercept_scaling=1.0, **more)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize(
    "loss, clip, shares",
    (
        (Logistic(), None, (0.01, 0.09, 0.88, 0.02)),
        (Logistic(), 0.25, (0.01, 0.09, 0.85, 0.05)),
        (Multinomial(3), None, (0.01, 0.09, 0.88, 0.02)),
    ),
)
def test_the_budget_is_shared_as_stated(adjacency, loss, clip, shares):
    budget = Budget(1.0, 1e-6, adjacency)
    n = 10_000 if loss.n_outputs == 1 else 100_000
    schedule = StandardizedGradientDescent(clip=clip).schedule(problem(n, loss=loss, budget=budget))
    scale = calibrate(schedule, budget)
    spent = [count / (release.mechanism.weight * scale) ** 2 for count, release in schedule.entries]
    assert spent == pytest.approx([share * gaussian_mu(1.0, 1e-6) ** 2 for share in shares])


@pytest.mark.parametrize("n, d, steps", ((1000, 10, 100), (100_000, 50, 50), (150_000, 100, 30)))
def test_steps_follow_from_the_size_of_the_table(n, d, steps):
    assert StandardizedGradientDescent().schedule(problem(n, d)).entries[2][0] == steps
    assert StandardizedGradientDescent(7).schedule(problem(n, d)).entries[2][0] == 7


def test_steps_grow_again_where_noise_hardly_limits_the_fit():
    """By the logarithm of n: every step leaves a fixed share of the error of the start, and noise falls with a power of n."""
    few, many = (StandardizedGradientDescent().schedule(problem(n, 50)).entries[2][0] for n in (10**6, 4 * 10**6))
    assert 60 < few
    assert many - few == pytest.approx(55 * math.log(4), abs=3)


def shifted(rng, n=4000, scales=(1.0, 0.05, 0.3)):
    """Features far from zero, of different spread: what standardisation is for."""
    z = rng.normal(size=(n, 3))
    y = (z @ [1.0, 1.0, -1.0] + rng.logistic(size=n) > 0.5).astype(int)
    return 0.12 * (z * scales + [2.0, -3.0, 1.0]), y


@pytest.mark.slow
def test_it_finds_what_the_noise_leaves(rng):
    """AUC within 0.01 of the non-private model, where gradient descent without standardisation loses 0.05."""
    X, y = shifted(rng)
    reference = roc_auc_score(y, LogisticRegression(C=1e4).fit(X, y).decision_function(X))
    auc = {}
    for solver in ("standardized_gd", "gd"):
        fits = [fitted(estimator(3.0, data_norm=1.0, solver=solver), X, y, seed=seed) for seed in range(5)]
        auc[solver] = np.median([roc_auc_score(y, fit.decision_function(X)) for fit in fits])
    assert auc["standardized_gd"] > reference - 0.01
    assert auc["gd"] < reference - 0.05


def test_probabilities_are_calibrated(rng):
    X, y = shifted(rng, n=20_000)
    model = fitted(estimator(3.0, data_norm=1.0), X, y)
    raw = model.decision_function(X)
    recalibrated = LogisticRegression(C=1e6).fit(raw[:, None], y)
    assert recalibrated.coef_[0, 0] == pytest.approx(1.0, abs=0.1)
    assert recalibrated.intercept_[0] == pytest.approx(0.0, abs=0.1)


def of_slope(slope, scores, y, weights, penalty=0.0):
    """Weighted mean log loss of a multiple of scores, with a penalty."""
    loss = Logistic() if scores.shape[1] == 1 else Multinomial(scores.shape[1])
    return np.average(loss.value(slope * scores, y), weights=weights) + penalty * slope**2 / 2


def best_slope(scores, y, weights=None, penalty=0.0):
    return minimize_scalar(of_slope, bounds=(0.01, 3), method="bounded", args=(scores, y, weights, penalty)).x


@pytest.mark.parametrize("given", ({}, *slow({"fit_intercept": False}, {"class_weight": {0: 3.0}})), ids=str)
def test_scores_of_several_classes_are_neither_too_long_nor_too_short(given, rng, monkeypatch):
    """Steps alone leave them too long; the calibration changes no decision."""
    X = rng.uniform(-1, 1, (5000, 3))
    y = (2 * X @ rng.normal(size=(3, 3)) + [1.0, 0.0, 0.0] + rng.gumbel(size=(5000, 3))).argmax(axis=1)
    weights = np.where(y == 0, 3.0, 1.0) if "class_weight" in given else None
    model = fitted(estimator(5.0, data_norm=2.0, **given), X, y)
    honest = SlopeSteps.slope
    monkeypatch.setattr(SlopeSteps, "slope", lambda *inputs: honest(*inputs) and (1.0, 0.0))
    without = fitted(estimator(5.0, data_norm=2.0, **given), X, y)
    assert weights is not None or best_slope(without.decision_function(X), y) < 0.8
    assert best_slope(model.decision_function(X), y, weights) == pytest.approx(1.0, abs=0.08)
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


@pytest.mark.parametrize("n_fits", (4, *slow(12)))
def test_scores_of_several_classes_that_are_noise_lead_to_the_class_frequencies(n_fits):
    """Excess log loss over these. It was 0.13 where scores, and so intercepts, were multiplied only: shorter ones are even."""
    p, excess = np.array([0.6, 0.3, 0.1]), []
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1, 1, (3000, 30)), rng.choice(3, 3000, p=p)
        model = fitted(estimator(0.3, delta=1e-6, data_norm=30**0.5), X, y, seed=seed)
        excess.append(p @ np.log(p) - (np.log(model.predict_proba(X)) @ p).mean())
    assert np.mean(excess) < 0.07


@pytest.mark.parametrize("penalty", (0.0, 0.1))
@pytest.mark.parametrize("n_outputs", (1, 3))
def test_steps_in_the_slope_find_the_best_one_where_there_is_no_noise(n_outputs, penalty, rng):
    """Of scores up to 6, which count as they are; from the mean of the prior."""
    scores = np.clip(rng.normal(size=(2000, n_outputs)), -3, 3)
    y = (0.6 * np.pad(scores, ((0, 0), (n_outputs == 1, 0))) + rng.gumbel(size=(2000, max(2, n_outputs)))).argmax(axis=1)

    def ask(query):
        return query._terms(scores, Records(y, np.ones(2000), None)).sum(axis=0)

    steps = SlopeSteps(0.1, 8, mean=0.9, spread=0.2)
    slope, variance = steps.slope(partial(SlopeDerivatives, 1.0, n_outputs), ask, 2000, 0.0, penalty)
    assert slope == pytest.approx(best_slope(scores, y, penalty=penalty), abs=1e-4) and variance < 1e-8
    assert slope < 0.8


@pytest.mark.parametrize("answer", ((0.0, 0.0), (1e12, -1e12), (-1e12, -1e12)))
def test_a_slope_that_noise_hides_is_nearly_that_of_the_prior(answer):
    """And never below .02, whatever the noise."""
    steps = SlopeSteps(0.1, 2, mean=0.8, spread=0.3)
    slope, variance = steps.slope(partial(SlopeDerivatives, 1.0, 3), lambda query: np.array(answer), 10, 1e3)
    assert slope == pytest.approx(0.8) if not any(answer) else 0.02 <= slope <= 2.8
    assert 0 < variance <= (0.3 / 0.02) ** 2


@pytest.mark.each_value
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("n_classes", (2, 4))
@pytest.mark.parametrize("alpha", (0.0, 1e-2))
def test_without_noise_it_is_the_model_of_scikit_learn(fit_intercept, n_classes, alpha, rng):
    X = rng.normal(size=(500, 3)) / 3
    y = (X @ rng.normal(size=(3, n_classes)) * 2 + rng.gumbel(size=(500, n_classes))).argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver = StandardizedGradientDescent(ridge=0.0)
        ours = estimator(math.inf, solver, alpha=alpha, data_norm=3.0, fit_intercept=fit_intercept).fit(X, y)
    theirs = LogisticRegression(C=1 / max(500 * alpha, 1e-8), fit_intercept=fit_intercept, tol=1e-8, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("storage", (sparse.csr_matrix, sparse.csc_matrix))
@pytest.mark.parametrize("n_classes", (2, 3))
def test_sparse_tables_give_the_same_model(storage, n_classes, rng):
    X, y = rng.normal(size=(400, 5)) * (rng.random((400, 5)) < 0.4), np.arange(400) % n_classes
    dense, thin = (fitted(estimator(2.0), table, y) for table in (X, storage(X)))
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-5)


@pytest.mark.slow
def test_a_table_that_says_nothing_gives_the_larger_class(rng):
    """At 300 records and epsilon 0.1 nothing but the class frequencies could be told, if that."""
    y = (rng.random(300) < 0.2).astype(int)
    found = [
        fitted(estimator(0.5), rng.normal(size=(300, 20)), y, seed=s).score(rng.normal(size=(300, 20)), y) for s in range(20)
    ]
    assert np.mean(found) > 0.65
    coefs = [np.abs(fitted(estimator(0.05), rng.normal(size=(300, 20)), y, seed=s).coef_).max() for s in range(5)]
    assert max(coefs) < 1


def test_class_weights_move_the_threshold(rng):
    X, y = shifted(rng)
    shares = [fitted(estimator(3.0, data_norm=1.0, class_weight={1: w}), X, y).predict(X).mean() for w in (0.2, 1.0, 5.0)]
    assert shares[0] < 0.6 * shares[1] < shares[1] < 0.9 * shares[2]


def test_a_ridge_shrinks_and_any_strength_of_penalty_is_stable(rng):
    X, y = shifted(rng)
    fits = [
        fitted(estimator(3.0, StandardizedGradientDescent(ridge=ridge), data_norm=1.0, alpha=alpha), X, y)
        for ridge, alpha in ((0.0, 0.0), (100.0, 0.0), (1e6, 0.0), (0.0, 1e3))
    ]
    lengths = [np.linalg.norm(fit.coef_) for fit in fits]
    assert lengths[0] > 1.1 * lengths[1] > 10 * lengths[2]
    assert lengths[3] < 0.1 * lengths[0]


def test_a_clip_norm_of_the_user_is_kept(rng):
    X, y = shifted(rng, 500)
    seen = []

    class Watched(StandardizedGradientDescent):
        def _descend(self, problem, standard, ask):
            seen.append(standard.clip_norm)
            return super()._descend(problem, standard, ask)

    estimator(1.0, data_norm=1.0, clip_norm=0.123, solver=Watched()).fit(X, y)
    estimator(1.0, data_norm=1.0, solver=Watched()).fit(X, y)
    assert seen[0] == 0.123 < seen[1]


@pytest.mark.parametrize(
    "bad",
    (
        {"n_steps": 0},
        {"moments_share": 0.0},
        {"labels_share": 1.0},
        {"moments_share": 1.0},
        {"calibration_share": 0.95},
        {"clip": 0},
        {"noise": -1},
        {"momentum": 1.0},
        {"ridge": -1.0},
    ),
)
def test_parameters_out_of_range_are_refused(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=name):
        StandardizedGradientDescent(**bad).schedule(problem())


@pytest.mark.each_value
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("epsilon", (1.0, math.inf))
@pytest.mark.parametrize("d", (1, 3))
def test_tables_without_spread_are_estimator(fit_intercept, epsilon, d):
    y = np.arange(200) % 2
    for X in (np.zeros((200, d)), np.full((200, d), 0.3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = estimator(epsilon, fit_intercept=fit_intercept).fit(X, y)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("loss, length", ((Logistic(), 27.0), (Multinomial(3), 27.0), (HuberHinge(), 6.75), (Hinge(3), 6.75)))
def test_the_longest_step_is_shorter_the_sharper_the_loss_bends(loss, length):
    """Steps beyond that go around corners."""
    assert _longest_step(loss, CLIPPED) == length
    assert _longest_step(SquaredHinge(), CLIPPED) == 3.375


@pytest.mark.exhaustive
def test_a_hinge_with_hardly_any_noise_is_at_its_least(rng):
    """A hundred thousand records: within half a percent of what the fit without noise has."""
    Z = rng.normal(size=(100_000, 4))
    X, y = Z / 5, (6 * Z @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=100_000) > 0).astype(int)
    losses = []
    for epsilon in (3.0, math.inf):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(DPLinearSVC(epsilon, data_norm=1.0), X, y)
        losses.append(HuberHinge().value(model.decision_function(X)[:, None], y).mean())
    assert losses[0] < 1.005 * losses[1]


def steps_of(rate, balance, noise=0.2):
    """Where ten steps lead, from moments of unit spread and a gradient of ones, and how it was planned."""
    answers = {"Moments": np.repeat([0.0, 0.05], 8) * 10_000, "StandardizedGradient": np.ones(9)}
    planned, reached = [], []

    class Watched(StandardizedGradientDescent):
        def _descend(self, problem, descent, ask):
            planned.append(descent)
            reached.append(super()._descend(problem, descent, ask))
            return reached[0]

    facts = problem(kind=AUCProblem, positive_rate=rate, class_balance=balance)
    Watched(10, ridge=0.0, noise=noise).solve(facts, lambda query: answers[type(query).__name__], None)
    return planned[0], reached[0][0] - np.append(np.zeros(8), planned[0].classes.start)[:, None]


@pytest.mark.parametrize("balance", (0.0, 0.3, 1.0))
def test_both_classes_are_alike_to_class_balance(balance):
    (rare, moved), (common, moved_too) = steps_of(0.03, balance), steps_of(0.97, balance)
    assert rare.path == pytest.approx(common.path) and rare.classes.start == pytest.approx(-common.classes.start)
    np.testing.assert_allclose(moved, moved_too)


def test_classes_that_weigh_the_same_gather_the_same_noise_whatever_their_frequencies():
    """The clip is the same, and so is the way along a given sum of gradients; without weights a rare class makes it shorter."""
    plans, moves = zip(*(steps_of(rate, 1.0) for rate in (0.05, 0.2, 0.5)), strict=True)
    for plan, moved in zip(plans, moves, strict=True):
        assert plan.clip_norm == plans[0].clip_norm and plan.classes.start == pytest.approx(0)
        np.testing.assert_allclose(moved, moves[0])
    plan, moved = steps_of(0.5, 0.0)
    np.testing.assert_allclose(moved, 1.5 * moves[0])  # 3 in place of 2
    rare = [np.abs(steps_of(0.05, balance)[1]).max() for balance in (0.0, 0.5, 1.0)]
    assert rare == sorted(rare)


def test_the_longest_way_is_in_units_of_the_mean_weight():
    """It is that of a mean loss, and so are stable steps: the same weights times a constant would change nothing."""
    (plan, moved), (equal, moved_too) = (steps_of(rate, 1.0, noise=1e3) for rate in (0.05, 0.5))
    assert plan.path == equal.path == 270 and plan.classes.mean_weight == pytest.approx(0.1)
    np.testing.assert_allclose(moved, 10 * moved_too)


def test_equal_classes_need_no_weights():
    plan, _ = steps_of(0.5, 1.0)
    assert plan.classes.class_weight == (1.0, 1.0) and plan.classes.mean_weight == 1


def query_of(facts, **parameters):
    return StandardizedGradientDescent(**parameters).schedule(facts).entries[2][1].query


def of_ratio(ratio, d=8, **more):
    """Facts of a table with about this signal-to-noise ratio per coefficient."""
    n = next(n for n in range(10, 10**8, 10) if signal_to_noise(BUDGET, n) >= ratio * (d + 1))
    return problem(n, d, **more)


def test_gradients_are_not_clipped_where_the_bias_would_show():
    """A function of public facts alone: n, d and the budget."""
    for ratio, query in (
        (49, StandardizedGradient),
        (50, ShortenedGradient),
        (1990, ShortenedGradient),
        (2001, StandardizedGradient),
    ):
        assert query_of(of_ratio(ratio)) is query
    facts = of_ratio(500)
    assert query_of(facts, clip=0.25) is query_of(facts, clip=1.0) is StandardizedGradient
    assert query_of(problem(facts.n_samples, 8, clip_norm=1.0)) is StandardizedGradient
    for loss in (Multinomial(3), Hinge(), HuberHinge(), SquaredHinge()):
        assert query_of(problem(facts.n_samples, 8, loss)) is StandardizedGradient
    assert query_of(problem(facts.n_samples, 8, kind=AUCProblem)) is StandardizedGradient
    title = StandardizedGradientDescent().title_for(facts)
    assert "no gradient is clipped" in title and "ratio per coefficient is 500" in title


@pytest.mark.slow
def test_weights_of_classes_weigh_rows_that_are_not_clipped(rng):
    """The log-odds of weighted classes, whatever the unit of the weights."""
    X = rng.normal(size=(20_000, 2)) / 3
    y = (6 * X[:, 0] - 1 + rng.logistic(size=20_000) > 0).astype(int)
    models = [
        fitted(estimator(1.0, adjacency="zero_out", data_norm=2.0, class_weight={0: unit, 1: 3 * unit}), X, y)
        for unit in (1.0, 0.2)
    ]
    exact = LogisticRegression(class_weight={0: 1, 1: 3}).fit(X, y)
    for model in models:
        assert "no gradient is clipped" in model.privacy_report_.solver_title
        np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.5)
        np.testing.assert_allclose(model.intercept_, exact.intercept_, atol=0.15)


def test_steps_without_a_clip_know_the_largest_weight():
    """Else the clip would cut the gradients of the heavier class."""
    facts, asked = of_ratio(500, class_weight=(0.5, 4.0)), []

    def ask(query):
        asked.append(query)
        return np.zeros(query.size)

    StandardizedGradientDescent().solve(facts, ask, np.random.default_rng(0))
    steps = [query for query in asked if isinstance(query, ShortenedGradient)]
    assert len(steps) > 20 and {query.largest_weight for query in steps} == {4.0}
    (bound,) = {query.clip_norm / (4.0 * query.loss.lipschitz) for query in steps}
    assert bound == pytest.approx(0.7)  # rows of no spread have the usual norm 1

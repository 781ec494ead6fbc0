"""moments: the closed form without noise, what noise is taken off, shares of the budget, and what it refuses."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from seeded import fitted
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

from skdp import DPAUCMaximizer
from skdp.losses import Logistic
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.queries import ClassMoments, Moments, half_vector
from skdp.solvers import AUCProblem, DiscriminantAnalysis, Problem, choose_solver
from skdp.solvers.statistics.discriminant_analysis import _estimates, _nominal

D = 4


def problem(n=10_000, d=8, adjacency="zero_out", epsilon=1.0, kind=AUCProblem, **more):
    budget = Budget(epsilon, 1e-6, adjacency)
    return kind(n, d, Logistic(), budget, data_norm=1.0, **{"intercept_scaling": 1.0, **more})


def classes_of_different_shape(rng, n=900, rate=0.1):
    """Two classes of unequal number and covariance, far from 0, on features of different scale."""
    y = (rng.random(n) < rate).astype(int)
    z = rng.normal(size=(n, D)) * [1.0, 1.0, 3.0, 0.3]
    z[y == 1] = z[y == 1] @ rng.normal(size=(D, D)) + [0.7, -0.4, 0.5, 0.6]
    return 0.05 * (z * [1.0, 0.1, 1.0, 2.0] + [2.0, 1.0, -3.0, 0.0]), y


def noiseless(X, y, solver="moments", **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPAUCMaximizer(math.inf, solver=solver, data_norm=50.0, **more).fit(X, y)


def statistics(X, y):
    parts = [X[y == label] for label in (0, 1)]
    return [part.mean(axis=0) for part in parts], [np.cov(part.T, bias=True) for part in parts]


def direction(vector):
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("storage", (np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix))
def test_without_noise_it_is_balanced_discriminant_analysis(storage, rng):
    X, y = classes_of_different_shape(rng)
    means, covariances = statistics(X, y)
    model = noiseless(storage(X), y)
    expected = np.linalg.solve(sum(covariances), means[1] - means[0])
    np.testing.assert_allclose(direction(model.coef_[0]), direction(expected), atol=1e-7)
    scores = [float(mean @ model.coef_[0] + model.intercept_[0]) for mean in means]
    assert scores[1] == pytest.approx(-scores[0], rel=1e-6) and scores[1] > 0
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))


def test_pooled_it_is_fishers_discriminant(rng):
    X, y = classes_of_different_shape(rng)
    pooled = noiseless(X, y, DiscriminantAnalysis("pooled")).coef_[0]
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).coef_[0]
    np.testing.assert_allclose(direction(pooled), direction(theirs), atol=1e-7)
    assert direction(pooled) @ direction(noiseless(X, y).coef_[0]) < 0.995


@pytest.mark.parametrize("alpha", (0.0, 1e-3))
@pytest.mark.parametrize("covariance", ("balanced", "pooled"))
def test_without_noise_it_is_the_minimum_of_the_surrogate(alpha, covariance, rng):
    """By SciPy, with its length: of the mean of both variances or, pooled, of all records' within their class."""
    X, y = classes_of_different_shape(rng)
    (low, high), (first, second) = statistics(X, y)
    rate = y.mean()
    weights = (1 - rate, rate) if covariance == "pooled" else (0.5, 0.5)

    def surrogate(w):
        spread = 2 * (weights[0] * w @ first @ w + weights[1] * w @ second @ w)
        return rate * (1 - rate) * (spread + (1 - w @ (high - low)) ** 2) + alpha / 2 * w @ w

    model = noiseless(X, y, DiscriminantAnalysis(covariance), alpha=alpha)
    found = minimize(surrogate, np.zeros(D), method="BFGS", options={"gtol": 1e-12})
    assert surrogate(model.coef_[0]) <= found.fun * (1 + 1e-9)
    np.testing.assert_allclose(model.coef_[0], found.x, rtol=1e-3, atol=1e-3 * np.abs(found.x).max())


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_budget_is_shared_as_stated(adjacency):
    task = problem(adjacency=adjacency)
    schedule = DiscriminantAnalysis().schedule(task)
    scale, mu = calibrate(schedule, task.budget), gaussian_mu(1.0, 1e-6)
    spent = [(release.query, (release.mechanism.weight * scale) ** -2 / mu**2) for release in schedule]
    assert spent == [(Moments, pytest.approx(0.15)), (ClassMoments, pytest.approx(0.85))]
    assert [release.clip_norm for release in schedule] == [pytest.approx(math.sqrt(2)), 1.5]
    assert [release.size for release in schedule] == [16, 2 * (1 + 8 + 36)]


def oracle_of(task, solver, rng, answers):
    """Answers with stated values of the joint release, and with its noise; the moments are those of unit variances."""
    schedule = list(solver.schedule(task))
    scale = calibrate(solver.schedule(task), task.budget)

    def ask(query):
        release, n = schedule.pop(0), task.n_samples
        assert type(query) is release.query
        if type(query) is Moments:
            return np.append(np.zeros(task.n_features), np.full(task.n_features, n / (2 * task.n_features)))
        answers["query"], answers["std"] = query, release.mechanism.weight * scale * query.sensitivity(task.budget.adjacency)
        return answers["joint"](query) + answers.get("noise", 0.0) * answers["std"] * rng.normal(size=query.size)

    return ask


def joint(shares, means, seconds):
    """The joint release of tables with these frequencies, means and second moments, per 10 000 records."""

    def answer(query):
        n, parts = 10_000, []
        for share, mean, second in zip(shares, means, seconds, strict=True):
            parts += [[query.count_weight * n * share], n * share * mean, query.moment_weight * n * share * half_vector(second)]
        return np.concatenate(parts)

    return answer


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("rate", (0.5, 0.05))
@pytest.mark.parametrize("covariance", ("balanced", "pooled"))
def test_the_edge_is_that_of_the_noise_of_the_covariance(adjacency, rate, covariance, rng, monkeypatch):
    """For 150 features the largest eigenvalue of noise alone is within a tenth of what is taken off, twice the half edge."""
    task, solver, d, seen = problem(10_000, 150, adjacency, 20.0), DiscriminantAnalysis(covariance), 150, []
    answers = {"noise": 1.0, "joint": joint((1 - rate, rate), np.zeros((2, d)), np.zeros((2, d, d)))}

    def deconvolved(values, noise, trace):
        seen.extend([np.abs(values).max(), 2 * noise])
        return np.maximum(values, noise)

    monkeypatch.setattr("skdp.solvers.statistics.discriminant_analysis.deconvolved", deconvolved)
    solver.solve(task, oracle_of(task, solver, rng, answers), rng)
    assert seen[1] == pytest.approx(seen[0], rel=0.1)


@pytest.mark.parametrize("covariance", ("balanced", "pooled"))
def test_the_noise_of_the_means_is_known(covariance, rng, monkeypatch):
    """Shrinkage is told variances that are the mean squares of what noise alone leaves in each coordinate, within 15 %."""
    task, d, ratios = problem(10_000, 40, epsilon=5.0), 40, []
    answers = {"noise": 1.0, "joint": joint((0.9, 0.1), np.zeros((2, d)), np.stack([np.eye(d) / d] * 2))}

    def factors(estimates, variances, largest):
        ratios.append(np.mean(estimates**2 / variances))
        return np.ones(d)

    monkeypatch.setattr("skdp.solvers.statistics.discriminant_analysis.posterior_factors", factors)
    for _ in range(20):  # 800 squares of normals: a standard deviation of 5 %
        DiscriminantAnalysis(covariance).solve(task, oracle_of(task, DiscriminantAnalysis(covariance), rng, answers), rng)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("rate, given", ((0.3, None), (0.0, None), (1.0, None), (0.3, 0.2)))
def test_frequencies_are_released_or_public_and_never_0(rate, given, rng):
    """A class of which nothing is left after noise still has a mean."""
    task = problem(positive_rate=given)
    means = np.stack([np.zeros(8), np.full(8, 0.2)])
    answers = {"joint": joint((1 - rate, rate), means, np.stack([np.eye(8) / 8] * 2))}
    coef = DiscriminantAnalysis(floor=0.0).solve(task, oracle_of(task, DiscriminantAnalysis(), rng, answers), rng).coef[:, 0]
    assert np.isfinite(coef).all()
    if rate == 0.3:  # scores of both means are opposite, if the frequencies are right
        unit = answers["query"].geometry
        scores = (means * [[1.0], [rate / (given or rate)]]) / unit.scale @ coef[:8] + coef[8]
        assert scores[1] == pytest.approx(-scores[0]) and scores[1] > 0


@pytest.mark.parametrize("count", (-1e9, 1e9))
def test_frequencies_stay_a_standard_deviation_away_from_0_and_1(count):
    task, query = problem(), _nominal(problem())
    answer = np.zeros(query.size)
    answer[query.size // 2] = count
    least = 3.0 / (0.5 * math.sqrt(2)) / 10_000  # of half the difference of two counts that have half the noise
    expected = [least, 1 - least] if count > 0 else [1 - least, least]
    np.testing.assert_allclose(_estimates(task, query, answer, 3.0 / 10_000).shares, expected)
    for noise, closest in ((0.0, 1e-4), (9.0, 0.25)):
        assert _estimates(task, query, answer, noise).shares.min() == pytest.approx(closest)


@pytest.mark.parametrize("floor", (0.5, 2.0))
def test_rows_have_their_usual_norm_and_eigenvalues_are_raised_by_the_floor(floor, rng, monkeypatch):
    """With all eigenvalues 0 and nothing shrunk, the coefficients are the difference of the means over the floor alone."""
    task, solver, difference = problem(), DiscriminantAnalysis(floor=floor), 0.1 * rng.normal(size=8)
    monkeypatch.setattr("skdp.solvers.statistics.discriminant_analysis.deconvolved", lambda values, noise, trace: np.zeros(8))
    monkeypatch.setattr(
        "skdp.solvers.statistics.discriminant_analysis.posterior_factors", lambda estimates, variances, largest: np.ones(8)
    )
    answers = {"joint": joint((0.8, 0.2), np.stack([np.zeros(8), difference]), np.zeros((2, 8, 8)))}
    coef = solver.solve(task, oracle_of(task, solver, rng, answers), rng).coef[:8, 0]
    scale = answers["query"].geometry.scale
    assert scale**2 @ np.full(8, 1 / 16) == pytest.approx(1.0)
    noise = answers["std"] / 10_000 * math.hypot(0.5 / 0.8, 0.5 / 0.2)
    solution = difference / (floor * noise * math.sqrt(8 / 2))
    np.testing.assert_allclose(coef / scale, solution / (2 + difference @ solution / 2), rtol=1e-5)


def test_where_no_effect_shows_the_direction_is_that_of_the_mean_difference(rng):
    """All coordinates are shrunk to nearly nothing, those of little variance most: their ratios are those of the means."""
    task = problem(epsilon=0.01)
    difference = 1e-9 * rng.normal(size=8)
    spread = np.diag(np.linspace(0.5, 2, 8)) / 8
    answers = {"joint": joint((0.5, 0.5), np.stack([-difference, difference]), np.stack([spread] * 2))}
    coef = DiscriminantAnalysis().solve(task, oracle_of(task, DiscriminantAnalysis(), rng, answers), rng).coef[:8, 0]
    np.testing.assert_allclose(direction(coef / answers["query"].geometry.scale), direction(difference), atol=1e-4)


@pytest.mark.parametrize("epsilon", (1.0, math.inf))
def test_units_do_not_matter(epsilon, rng):
    """A power of 2, so that the grid of the noise grows with the data, too."""
    X, y = classes_of_different_shape(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (fitted(DPAUCMaximizer(epsilon, solver="moments", data_norm=unit), unit * X, y) for unit in (1.0, 64.0))
    np.testing.assert_allclose(64 * theirs.coef_, ours.coef_, rtol=1e-6)
    np.testing.assert_allclose(theirs.intercept_, ours.intercept_, rtol=1e-6)


def test_it_ranks_with_noise(rng):
    """Median AUC of 5 fits within 0.02 of the closed form (0.003 was measured), and a threshold that is fair."""
    X, y = classes_of_different_shape(rng, n=20_000)
    fits = [fitted(DPAUCMaximizer(2.0, solver="moments", data_norm=0.6), X, y, seed=seed) for seed in range(5)]
    exact = roc_auc_score(y, noiseless(X, y).decision_function(X))
    assert np.median([roc_auc_score(y, fit.decision_function(X)) for fit in fits]) > exact - 0.02
    shares = [[(fit.predict(X[y == label]) == label).mean() for label in (0, 1)] for fit in fits]
    assert np.abs(np.diff(np.median(shares, axis=0))) < 0.15


@pytest.mark.parametrize("case", ("constant", "zeros", "one class", "few"))
@pytest.mark.parametrize("epsilon", (1e-3, 1.0, math.inf))
def test_tables_that_say_little_give_finite_models(case, epsilon, rng):
    X, y = rng.normal(size=(30, D)), np.arange(30) % 2
    if case == "constant":
        X[:] = 0.3
    elif case == "zeros":
        X[:] = 0.0
    elif case == "one class":
        y[:] = 1
    else:
        X, y = X[:2], y[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(DPAUCMaximizer(epsilon, delta=1e-6, solver="moments", classes=[0, 1]), X, y)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()


@pytest.mark.parametrize(
    "bad",
    (
        {"covariance": "diagonal"},
        {"covariance": 1},
        {"moments_share": 0.0},
        {"moments_share": 1.0},
        {"floor": -1.0},
        {"floor": "1"},
    ),
)
def test_parameters_out_of_range_are_refused_by_name(bad):
    (name,) = bad
    with pytest.raises((ValueError, TypeError), match=f"{name}="):
        DiscriminantAnalysis(**bad).schedule(problem())
    assert DiscriminantAnalysis(moments_share=Fraction(1, 2)).schedule(problem())


def test_tables_that_are_too_wide_are_refused_before_data_are_read():
    model = DPAUCMaximizer(solver="moments")
    with pytest.raises(ValueError, match=r"noisy 1025 x 1025 matrices, .* at most 1024 features\. solver='auto' has no"):
        model.plan(10**6, 1025)
    assert model.plan(10**6, 1024).releases


def test_other_problems_are_refused():
    with pytest.raises(ValueError, match="needs two classes to rank"):
        choose_solver("moments", problem(kind=Problem))


def test_the_report_warns_where_noise_hides_the_table():
    model = DPAUCMaximizer(solver="moments")
    assert "expect a useless model" in model.plan(100, 60).noise_size
    assert "useless" not in model.plan(10**6, 3).noise_size

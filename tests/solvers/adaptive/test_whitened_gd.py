"""whitened_gd: shares of the budget, accuracy against least squares, intervals, and what it does with little."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score

from benchmarks.tables import load
from skdp import DPLinearRegression
from skdp.losses import Squared
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.queries import StandardizedGradient
from skdp.solvers import Problem, WhitenedGradientDescent

BOUNDS = (-1.0, 1.0)


def estimator(epsilon, **params):
    return DPLinearRegression(epsilon, **{"target_bounds": BOUNDS, **params})


def problem(n=100_000, d=8, epsilon=1.0, adjacency="zero_out", **more):
    budget = Budget(epsilon, 1e-6, adjacency)
    return Problem(n, d, Squared(), budget, **{"data_norm": 1.0, "intercept_scaling": 1.0, "clip_norm": math.inf, **more})


def linear(rng, n, d, noise=0.15, shift=0.0):
    """Rows in the unit ball, targets well within [-1, 1], and the coefficients with the intercept last."""
    X = rng.normal(size=(n, d)) / (2 * math.sqrt(d)) + shift
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    coef = rng.normal(size=d)
    coef *= 0.2 / (X @ coef).std()
    intercept = 0.05 - X.mean(axis=0) @ coef
    return X, X @ coef + intercept + noise * rng.normal(size=n), np.append(coef, intercept)


def watching():
    """A solver, and the clip norms of its gradients, which its fits add to a list."""
    seen = []

    class Watched(WhitenedGradientDescent):
        def solve(self, problem, ask, rng):
            def watch(query):
                if isinstance(query, StandardizedGradient):
                    seen.append(query.clip_norm)
                return ask(query)

            return super().solve(problem, watch, rng)

    return seen, Watched()


def spent(solver, setting):
    """Query, count, and share of the squared Gaussian-DP parameter."""
    schedule = solver.schedule(setting)
    scale, mu = calibrate(schedule, setting.budget), gaussian_mu(setting.budget.epsilon, setting.budget.delta)
    return [(r.query.__name__, count, count / (r.mechanism.weight * scale * mu) ** 2) for count, r in schedule.entries]


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_budget_is_shared_as_stated(adjacency):
    """On a large table: 5 % for means, 1 % per histogram, a fifth of the rest for the second moment, 2 : 3 for the steps."""
    names, counts, shares = zip(*spent(WhitenedGradientDescent(), problem(10**6, adjacency=adjacency)), strict=True)
    assert names == (
        "FeatureTargetSums",
        "DistanceHistogram",
        "SecondMoment",
        "ResidualHistogram",
        "StandardizedGradient",
        "StandardizedGradient",
    )
    assert counts == (1, 1, 1, 1, 7, 17)
    assert shares == pytest.approx((0.05, 0.01, 0.186, 0.01, 0.2976, 0.4464), rel=1e-2)


def test_noise_sets_the_number_of_steps_unless_it_is_given():
    """Few where a prediction has little noise, 40 where it has much."""

    def n_steps(solver, *facts, **more):
        return sum(count for name, count, _ in spent(solver, problem(*facts, **more)) if name == "StandardizedGradient")

    few, many = n_steps(WhitenedGradientDescent(), 10**6, 10), n_steps(WhitenedGradientDescent(), 400, 10)
    between = n_steps(WhitenedGradientDescent(), 20_000, 50)
    assert (few, many) == (24, 40) and 24 < between < 40
    assert n_steps(WhitenedGradientDescent(31), 10**6, 10) == 31


@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("n", (50, 200, 1000, 10_000, 10**6))
@pytest.mark.parametrize("d", (1, 10, 3000))
@pytest.mark.parametrize("n_steps", (1, 2, 40))
def test_shares_add_up_and_follow_from_public_facts(n, d, fit_intercept, n_steps):
    setting = problem(n, d, intercept_scaling=1.0 * fit_intercept)
    entries = spent(WhitenedGradientDescent(n_steps), setting)
    names, counts, shares = zip(*entries, strict=True)
    assert sum(shares) == pytest.approx(1.0)
    if names == ("TargetSum",):
        return
    assert ("FeatureTargetSums" in names) == fit_intercept
    assert ("SecondMoment" in names) == (d <= 1024)
    assert sum(count for name, count in zip(names, counts, strict=True) if "StandardizedGradient" in name) == n_steps


@pytest.mark.slow
def test_only_the_mean_is_released_where_nothing_else_could_be_told(rng):
    """The report and the plan warn; a rule on public facts decides."""
    X, y, _ = linear(rng, 200, 5)
    model = fitted(estimator(0.05), X, y + 0.3)
    assert [line.query for line in model.privacy_report_.releases] == ["TargetSum"]
    assert not model.coef_.any() and model.n_iter_ == 0
    warning = "n = 200 is too small for this epsilon and 5 features: only the mean of the targets"
    assert warning in model.privacy_report_.noise_size and warning in estimator(0.05).plan(200, 5).noise_size
    assert "too small" not in estimator(1.0).plan(20_000, 5).noise_size
    assert np.isinf(model.coef_interval()).all()
    _, intervals = model.predict(X[:3], return_interval=0.9)
    assert intervals.tolist() == [[-1.0, 1.0]] * 3
    means = [fitted(estimator(0.2, adjacency="zero_out"), X[:100], 0 * y[:100] + 0.5, seed=s).intercept_ for s in range(100)]
    assert np.median(means) == pytest.approx(0.5, abs=0.15)


@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("d", (1, 4, 30))
def test_without_noise_it_is_least_squares(fit_intercept, d, rng):
    X, y, _ = linear(rng, 500, d, shift=0.2)
    X *= np.geomspace(1, 1e-3, d)
    theirs = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    ours = estimator(math.inf, data_norm=2.0, target_bounds=(-3, 4), fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
def test_the_penalty_is_that_of_ridge_regression(rng):
    """In units in which targets are in [-1, 1]: alpha is ridge's over the number of records, whatever the bounds."""
    X, y, _ = linear(rng, 500, 4, shift=0.2)
    theirs = Ridge(alpha=0.02 * 500).fit(X, y)
    for bounds in ((-1, 1), (-3, 4)):
        ours = estimator(math.inf, data_norm=1.0, target_bounds=bounds, alpha=0.02).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)
    noisy = [fitted(estimator(3.0, data_norm=1.0, alpha=a), X, y).coef_ for a in (0.0, 0.02, 10.0)]
    assert np.linalg.norm(noisy[2]) < 0.2 * np.linalg.norm(noisy[1]) < np.linalg.norm(noisy[0])


@pytest.mark.parametrize("shift", (0.0, 0.25))
def test_it_finds_what_the_noise_leaves(shift, rng):
    """Within 0.01 of least squares at epsilon 1 where rows are far from the origin and fill a small part of the ball."""
    X, y, _ = linear(rng, 20_000, 6, shift=shift)
    X *= [1, 0.3, 0.1, 0.3, 1, 0.1]
    reference = LinearRegression().fit(X, y).score(X, y)
    scores = [fitted(estimator(1.0, data_norm=1.0), X, y, seed=seed).score(X, y) for seed in range(5)]
    assert np.median(scores) > reference - 0.01


@pytest.mark.parametrize("factor", (1.0, 10.0))
def test_bounds_that_are_too_wide_hardly_matter(factor, rng):
    """The radius and the clip norm are learned: bounds ten times too large cost 0.03."""
    X, y, _ = linear(rng, 20_000, 6)
    reference = LinearRegression().fit(X, y).score(X, y)
    fits = [
        fitted(estimator(0.5, data_norm=factor, target_bounds=(-factor, factor), adjacency="zero_out"), X, y, seed=s)
        for s in range(5)
    ]
    assert np.median([fit.score(X, y) for fit in fits]) > reference - 0.03


def test_a_range_of_targets_that_is_much_too_wide_costs_little(rng):
    """Where noise is small, 20 ranges of residuals reach further down than 12: the clip norm has the same quantile."""
    X, y, _ = linear(rng, 20_000, 6)
    norms, scores = [], []
    for bound in (1.0, 60.0):
        seen, watched = watching()
        model = fitted(estimator(1.0, data_norm=1.0, target_bounds=(-bound, bound), solver=watched), X, y, seed=0)
        scores.append(model.score(X, y))
        norms.append(seen[0] * bound)
    assert norms[1] < 1.5 * norms[0] and scores[1] > scores[0] - 0.01


def test_skewed_targets_are_hardly_clipped_where_noise_is_small(rng):
    """The few largest ones decide R2."""
    X, y, _ = linear(rng, 20_000, 3, noise=0.5)
    y = np.exp(2 * y / np.std(y))
    y = np.minimum(y / np.quantile(y, 0.995), 1.0)
    reference = LinearRegression().fit(X, y).score(X, y)
    assert fitted(estimator(3.0, data_norm=1.0, target_bounds=(0, 1)), X, y, seed=0).score(X, y) > 0.9 * reference


@pytest.mark.slow
def test_small_tables_at_a_small_epsilon(rng):
    """500 isotropic rows of 3 features, epsilon 0.1: the median of 20 fits explains at least 0.3 of the variance."""
    X, y, _ = linear(rng, 5500, 3)
    test = slice(500, None)
    fits = [fitted(estimator(0.1, data_norm=1.0, adjacency="zero_out"), X[:500], y[:500], seed=seed) for seed in range(20)]
    assert np.median([r2_score(y[test], fit.predict(X[test])) for fit in fits]) >= 0.3


@pytest.mark.slow
@pytest.mark.parametrize("d", (30, 1100))
def test_many_features_in_the_noise_are_shrunk_away(d, rng):
    """Where nothing can be learned of the features, a fit is not much worse than the mean."""
    X, y, _ = linear(rng, 3000, d)
    scores = [fitted(estimator(0.2, data_norm=1.0), X[:2000], y[:2000], seed=s).score(X[2000:], y[2000:]) for s in range(3)]
    assert np.median(scores) > -0.1


@pytest.mark.parametrize("name, epsilon, least", (("california", 1.0, 0.60), ("bike", 0.1, 0.55)))
def test_accuracy_on_public_tables(name, epsilon, least):
    try:
        table = load(name)
    except FileNotFoundError:
        pytest.skip("the data set is not on this machine")
    n = len(table.y_train)
    given = {"delta": 1 / n**2, "adjacency": "zero_out", "data_norm": 1.0}
    fits = [fitted(estimator(epsilon, **given), table.X_train, table.y_train, seed=s) for s in range(3)]
    assert np.median([r2_score(table.y_test, fit.predict(table.X_test)) for fit in fits]) >= least


@pytest.mark.each_value
@pytest.mark.parametrize("storage", (sparse.csr_matrix, sparse.csc_matrix, sparse.csc_array))
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("d", (5, 1030))
def test_sparse_tables_give_the_same_model(storage, fit_intercept, d, rng):
    X, y = rng.normal(size=(400, d)) * (rng.random((400, d)) < 0.4), rng.uniform(-1, 1, 400)
    dense, thin = (fitted(estimator(5.0, fit_intercept=fit_intercept), table, y) for table in (X, storage(X)))
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-5 * np.abs(dense.coef_).max())


@pytest.mark.exhaustive
@pytest.mark.parametrize("epsilon", (0.5, 3.0))
def test_intervals_hold_what_they_promise(epsilon, rng):
    """40 tables of a linear model: on average 95 % intervals hold at least 92 % of coefficients and of means, and are not vast.

    A table's share has standard deviation at most 0.11, so that the mean of 40 misses by 0.03 with probability below 0.05 if the
    coverage were just 0.95; it is about 0.98.
    """
    held, means, widths = [], [], []
    for seed in range(40):
        X, y, coef = linear(rng, 5000, 5)
        model = fitted(estimator(epsilon, data_norm=1.0, adjacency="zero_out"), X, y, seed=seed)
        ends = model.coef_interval(0.95)
        held.append(((ends[:, 0] <= coef[:-1]) & (coef[:-1] <= ends[:, 1])).mean())
        predictions, ends = model.predict(X[:200], return_interval=0.95)
        truth = X[:200] @ coef[:-1] + coef[-1]
        means.append(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
        widths.append(np.diff(ends, axis=1).mean())
        assert predictions.shape == (200,)
    assert np.mean(held) > 0.92 and np.mean(means) > 0.92
    assert np.mean(widths) < 0.2  # of a range of 2


def test_intervals_grow_with_the_level_and_are_in_the_units_of_the_targets(rng):
    X, y, _ = linear(rng, 3000, 3)
    unit = fitted(estimator(1.0, data_norm=1.0), X, y)
    large = fitted(estimator(1.0, data_norm=1.0, target_bounds=(0, 200)), X, 100 * y + 100)
    np.testing.assert_allclose(large.coef_interval(0.8), 100 * unit.coef_interval(0.8), rtol=1e-6)
    np.testing.assert_allclose(large.predict(X, 0.8)[1], 100 * unit.predict(X, 0.8)[1] + 100, rtol=1e-6)
    narrow, wide = (np.diff(unit.coef_interval(level), axis=1) for level in (0.5, 0.99))
    assert (0 < narrow).all() and (narrow < wide).all()
    for bad in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="level"):
            unit.coef_interval(bad)
        with pytest.raises(ValueError, match="return_interval"):
            unit.predict(X, return_interval=bad)


def test_the_clip_norm_shrinks_after_the_warm_up_unless_it_is_given(rng):
    X, y, _ = linear(rng, 20_000, 3, noise=0.05)
    seen, watched = watching()
    fitted(estimator(1.0, data_norm=1.0, solver=watched), X, y)
    assert len(seen) == 24 and len(set(seen)) == 2 and seen[7] < 0.98 * seen[6]
    seen.clear()
    estimator(1.0, data_norm=1.0, clip_norm=0.123, solver=watched).fit(X, y)
    assert set(seen) == {0.123}


@pytest.mark.parametrize(
    "bad",
    (
        {"n_steps": 0},
        {"path": 0.0},
        {"warm_up": 1.0},
        {"means_share": 0.5},
        {"histogram_share": 0.2},
        {"moment_share": 1.0},
        {"moment_share": math.nan},
    ),
)
def test_parameters_out_of_range_are_refused(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=name):
        WhitenedGradientDescent(**bad).schedule(problem())


@pytest.mark.each_value
@pytest.mark.parametrize("fit_intercept", (True, False))
@pytest.mark.parametrize("epsilon", (0.05, 1.0, 100.0, math.inf))
@pytest.mark.parametrize("d", (1, 3))
def test_tables_without_spread_are_fitted(fit_intercept, epsilon, d):
    for X in (np.zeros((300, d)), np.full((300, d), 0.3)):
        for y in (np.zeros(300), np.ones(300), np.arange(300) % 2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fitted(estimator(epsilon, fit_intercept=fit_intercept), X, y)
            assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)
            predictions, intervals = model.predict(X, return_interval=0.95)
            assert np.abs(predictions).max() <= 1 and np.isfinite(intervals).all()


def test_repeated_and_constant_columns_do_no_harm(rng):
    X, y, _ = linear(rng, 5000, 3)
    wide = np.column_stack([X, X, np.full(5000, 0.2), np.zeros(5000)])
    fits = [fitted(estimator(2.0, data_norm=2.0), wide, y, seed=seed).score(wide, y) for seed in range(3)]
    assert np.median(fits) > LinearRegression().fit(X, y).score(X, y) - 0.02

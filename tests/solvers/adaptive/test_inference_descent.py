"""inference: shares of the budget, exactness without noise beside statsmodels, coverage, and what it refuses."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import expit
from seeded import fitted

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.losses import BoundedProper, Huber, Logistic, Squared
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.queries import Standardization, Whitening, symmetric
from skdp.solvers import InferenceDescent, Problem
from skdp.solvers._inference import Inference
from skdp.solvers.adaptive._covariance import Steps, Unlearned, estimated_bread, estimated_meat
from skdp.solvers.adaptive._whitening import Frame

N, D = 4000, 4
Y_BOUNDS = (-2.0, 2.0)


def problem(loss, epsilon=1.0, adjacency="zero_out", n=20_000, d=8, **more):
    budget = Budget(epsilon, 1e-6, adjacency)
    return Problem(n, d, loss, budget, **{"data_norm": 1.0, "intercept_scaling": 1.0, **more})


def sample(seed=0, n=N, d=D, uneven=True):
    """Rows in [-1, 1] with two related columns, targets with uneven errors, and classes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[:, 1] = 0.7 * X[:, 0] + 0.3 * X[:, 1]
    coef = np.linspace(-0.5, 0.4, d)
    error = 0.1 * (1 + 2 * np.abs(X[:, 0])) if uneven else 0.2
    y = X @ coef + 0.1 + error * rng.normal(size=n)
    return X, y, (rng.random(n) < expit(4 * (X @ coef))).astype(int)


def noiseless(kind, X, y, **params):
    bounds = {"target_bounds": Y_BOUNDS} if kind is DPLinearRegression else {}
    model = kind(math.inf, feature_bounds=1.0, solver=InferenceDescent(**params), **bounds)
    with pytest.warns(UserWarning, match="not private"):
        return model.fit(X, y)


@pytest.mark.parametrize("robust", (False, True))
@pytest.mark.parametrize("loss", (Squared(), Logistic()), ids=("numbers", "classes"))
@pytest.mark.parametrize("intercept", (0.0, 1.0))
@pytest.mark.parametrize("n", (50, 20_000))
def test_the_schedule_spends_the_budget_in_the_stated_shares(loss, robust, intercept, n):
    setting = problem(loss, intercept_scaling=intercept, n=n)
    schedule = InferenceDescent(robust=robust).schedule(setting)
    scale, mu = calibrate(schedule, setting.budget), gaussian_mu(setting.budget.epsilon, setting.budget.delta)
    spent = [(r.query.__name__, c, c / (r.mechanism.weight * scale * mu) ** 2) for c, r in schedule.entries]
    assert sum(share for *_, share in spent) == pytest.approx(1.0)
    expected = {"SecondMoment": 0.12, "Bread": 0.1 if n > 50 else 0.3} | ({"Meat": 0.08} if robust else {})
    expected |= {"FeatureTargetSums": 0.05} if intercept else {}
    found = {name: share for name, _, share in spent if name in {*expected, "Meat", "FeatureTargetSums"}}
    assert found == pytest.approx(expected)
    assert [count for name, count, _ in spent if name == "ShortenedGradient"] == [30, 80]
    assert [name for name, *_ in spent].count("ResidualSizes") == (2 if isinstance(loss, Squared) else 0)


@pytest.mark.parametrize(("n", "d"), [(5000, 5), (3000, 20), (5000, 20), (1000, 5), (60_000, 20)])
@pytest.mark.parametrize("loss", (Squared(), Logistic()), ids=("numbers", "classes"))
def test_the_meat_is_released_where_its_noise_is_small(loss, n, d):
    """Intervals do not hold for errors of different sizes without it; where its noise is large, that of the steps is larger."""
    setting = problem(loss, n=n, d=d)
    edge = gaussian_mu(setting.budget.epsilon, setting.budget.delta) * n / (d + 1) ** 1.5
    released = [release.query.__name__ for _, release in InferenceDescent().schedule(setting).entries]
    assert ("Meat" in released) == (edge > (19 if isinstance(loss, Squared) else 11)), edge
    assert InferenceDescent(robust=False).schedule(setting).entries != InferenceDescent(robust=True).schedule(setting).entries


@pytest.mark.parametrize("n", (1000, 1500, 3000, 8000))
def test_steps_of_classes_are_short_where_enough_is_left_of_them(n):
    """Their noise in a raw prediction is .15 log-odds, or up to .25 where the path would end before 8 mean curvatures."""
    setting, solver, usual, geometry = problem(Logistic(), n=n, d=5), InferenceDescent(), 0.22, frame(np.ones(6), np.zeros(6))
    steps = solver._steps_of(setting, geometry, 3.0, BoundedProper(), 0.5, False)
    noise = math.sqrt(steps.length * geometry.size * steps.noise**2 / (2 * usual))
    path, wanted = steps.length * usual * steps.n_steps, solver._path(setting)
    if path == pytest.approx(wanted):
        assert noise < 0.15
    elif noise == pytest.approx(0.15):
        assert 8 <= path < wanted
    else:
        assert 0.15 < noise < 0.25 + 1e-9
        assert path == pytest.approx(8) or (noise == pytest.approx(0.25) and path < 8)


@pytest.mark.slow
def test_without_noise_it_is_least_squares_with_the_sandwich_of_statsmodels():
    X, y, _ = sample()
    model = noiseless(DPLinearRegression, X, y, robust=True)
    known = sm.OLS(y, np.column_stack([X, np.ones(N)])).fit(cov_type="HC0")
    found = model.contrast(np.eye(D + 1))
    np.testing.assert_allclose(found.estimate, known.params, atol=1e-8)
    np.testing.assert_allclose(found.standard_error, known.bse, rtol=1e-6)
    np.testing.assert_allclose(np.column_stack([found.lower, found.upper]), known.conf_int(), atol=1e-6)
    np.testing.assert_allclose(found.pvalue, known.pvalues, atol=1e-6)
    assert found.noise_share.max() < 1e-12
    both = np.eye(D)[[0, 1]]
    theirs = known.wald_test(np.column_stack([both, np.zeros(2)]), use_f=True, scalar=True)
    assert model.wald_test(both).statistic == pytest.approx(theirs.statistic, rel=1e-6)
    np.testing.assert_allclose([*model.coef_, model.intercept_], known.params, atol=1e-8)


@pytest.mark.slow
def test_without_noise_it_is_the_minimum_of_the_bounded_proper_loss_with_its_sandwich():
    X, _, y = sample()
    model, Z = noiseless(DPLogisticRegression, X, y, robust=True), np.column_stack([X, np.ones(N)])
    loss = BoundedProper()

    def mean(coef):
        raw = (Z @ coef)[:, None]
        return loss.value(raw, y).mean(), Z.T @ loss.derivative(raw, y)[:, 0] / N

    coef = minimize(mean, np.zeros(D + 1), jac=True, tol=1e-12).x
    raw = (Z @ coef)[:, None]
    bread = Z.T @ (Z * loss.information(raw, y)) / N
    meat = Z.T @ (Z * np.square(loss.derivative(raw, y))) / N
    errors = np.sqrt(np.diag(np.linalg.inv(bread) @ meat @ np.linalg.inv(bread)) / N)
    found = model.contrast(np.eye(D + 1))
    np.testing.assert_allclose(found.estimate, coef, atol=1e-4)
    np.testing.assert_allclose(found.standard_error, errors, rtol=1e-3)
    known = sm.Logit(y, Z).fit(disp=0)
    assert (np.abs(found.estimate - known.params) < known.bse).all()
    assert (np.abs(found.standard_error / known.bse - 1) < 0.05).all()  # its efficiency is .97 to .99
    of_model = noiseless(DPLogisticRegression, X, y).contrast(np.eye(D + 1)).standard_error
    assert (of_model >= found.standard_error).all() and (of_model < 1.3 * found.standard_error).all()


def test_information_is_the_derivative_of_the_mean_slope():
    raw = np.linspace(-3, 3, 13)[:, None]
    for t in raw[:, 0]:
        p, ends = expit(t), []
        for u in (t - 1e-6, t + 1e-6):
            slopes = BoundedProper().derivative(np.full((2, 1), u), np.array([1, 0]))[:, 0]
            ends.append(p * slopes[0] + (1 - p) * slopes[1])
        information = BoundedProper().information(np.array([[t]]), np.array([0])).item()
        assert information == pytest.approx((ends[1] - ends[0]) / 2e-6, rel=1e-4) or t == 0
    assert BoundedProper().information(raw, None).max() == BoundedProper.most_information == 0.25
    assert Huber(0.5).information(np.array([[0.4], [0.6], [-0.6]]), np.zeros(3)).tolist() == [[1.0], [0.0], [0.0]]


@pytest.mark.slow
def test_the_response_of_steps_is_that_of_a_simulation(rng):
    curvature, finish = np.array([0.05, 0.4, 1.0]), np.array([3.0, 2.0, 0.9])
    steps = Steps(1.7, 0.8, 14, 40, 0.3)
    rest, variances = steps.response(curvature, finish)
    start, ends = np.array([1.0, -2.0, 0.5]), []
    for _ in range(4000):
        average, gradient = steps.run(lambda theta: curvature * theta + 0.3 * rng.normal(size=3), start)
        ends.append(average - finish * gradient)
    np.testing.assert_allclose(np.mean(ends, axis=0), rest * start, atol=5 * np.sqrt(variances / 4000).max())
    np.testing.assert_allclose(np.var(ends, axis=0), variances, rtol=0.12)


def frame(curvature, errors):
    k = len(curvature)
    geometry = Whitening(np.zeros(k - 1), np.eye(k - 1), True, 1.0)
    return Frame(geometry, np.asarray(curvature), np.zeros(k), np.asarray(errors))


def noisy(truth, size, rng):
    """The curvature behind a matrix that is released with noise, and the released matrix."""
    k = len(truth)
    released = truth + symmetric(size * rng.normal(size=k * (k + 1) // 2), k)
    return estimated_bread(released, size, frame(np.ones(k), np.zeros(k)), 0.1, 2.0), released


def test_without_noise_a_released_bread_is_what_it_is(rng):
    truth = 0.8 * np.eye(6) + 0.1 * np.ones((6, 6))
    exact, _ = noisy(truth, 0.0, rng)
    np.testing.assert_allclose(exact.directions * exact.values @ exact.directions.T, truth, atol=1e-12)
    assert exact.shown.all() and not exact.variances.any() and not exact.leaks.any()


def test_the_spread_of_noise_is_taken_off_curvatures(rng):
    """Along noisy eigenvectors, the curvatures of equal and of two different values are a third as wrong as eigenvalues."""
    for truth in (0.8 * np.eye(20), np.diag(np.repeat([0.4, 1.2], 10))):
        found, released = noisy(truth, 0.07, rng)
        known = np.einsum("ai,ab,bi->i", found.directions, truth, found.directions)
        error, raw = found.values - known, np.linalg.eigvalsh(released) - known
        assert np.square(error).mean() < np.square(raw).mean() / 9


def test_a_flat_direction_shows_unless_noise_is_too_large(rng):
    """At half edges of about .3 and 1 of the mean curvature."""
    k = 20
    truth = 0.8 * np.eye(k)
    truth[3, 3] = 0.0
    for _ in range(5):
        found, _ = noisy(truth, 0.07, rng)
        assert not found.shown[0] and found.shown[1:].sum() >= k - 2 and found.directions[3, 0] ** 2 > 0.6
        assert found.leaks[1:, 0].max() < 0.1 and not noisy(truth, 0.25, rng)[0].shown.any()


@pytest.mark.parametrize("size", (0.07, 0.15))
def test_a_column_without_information_is_taken_out_before_other_directions_are_judged(size, rng):
    """At half edges of .26 and .56 of the mean curvature, of which the second makes eigenvectors of the flat column useless."""
    k, column = 12, 3
    truth = 0.8 * np.eye(k)
    truth[column, column] = 0.0
    truth[column, 5] = truth[5, column] = 0.01
    for _ in range(5):
        found, released = noisy(truth, size, rng)
        place = np.argmax(np.square(found.directions[column]))
        np.testing.assert_allclose(np.square(found.directions[column]), np.eye(k)[place], atol=1e-12)
        assert not found.shown[place] and np.delete(found.shown, place).all()
        np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(k), atol=1e-12)
        other = 0 if place else 1  # what is not known of the column reaches others by the released second derivatives alone
        between = found.directions[:, other] @ released[:, column]
        assert found.leaks[other, place] == pytest.approx((between / found.floored[other]) ** 2)
    unlike = 0.8 * np.eye(k)
    unlike[:2, :2] = 0.4  # a flat difference of two columns that have information
    for _ in range(5):
        found, _ = noisy(unlike, 0.07, rng)
        assert not found.shown.all() and np.square(found.directions[:k]).max() < 0.99


def test_where_no_column_has_information_no_other_direction_is_left_to_judge():
    """With a category whose levels are all flat, the constant is among the directions that are taken out."""
    released = -np.eye(2) + 0.1
    found = estimated_bread(released, 0.3, frame(np.ones(2), np.zeros(2)), 0.1, 2.0, (slice(0, 1),))
    assert not found.shown.any() and np.isfinite(found.floored).all()


def test_errors_of_a_released_matrix_move_a_step_as_stated(rng):
    k, size, move = 6, 0.1, rng.normal(size=6)
    found, _ = noisy(np.eye(k), size, rng)
    draws = [symmetric(size * rng.normal(size=k * (k + 1) // 2), k) @ move for _ in range(3000)]
    np.testing.assert_allclose(np.cov(np.array(draws).T), found.moved(move), atol=0.1 * found.moved(move).max())


def test_noise_is_taken_off_a_released_meat(rng):
    k = 30
    truth = np.diag(np.linspace(0.5, 2.0, k))
    released = truth + symmetric(0.1 * rng.normal(size=k * (k + 1) // 2), k)
    assert np.linalg.eigvalsh(estimated_meat(released, 0.1)).min() > 0
    spread = np.linalg.eigvalsh(released).max() - 2.0
    assert abs(np.linalg.eigvalsh(estimated_meat(released, 0.1)).max() - 2.0) < max(spread, 0.05)
    hidden = symmetric(0.1 * rng.normal(size=k * (k + 1) // 2), k)
    assert np.linalg.eigvalsh(estimated_meat(hidden, 0.1)).min() >= 0


@pytest.mark.slow  # test_interval_coverage.py has fewer tables
@pytest.mark.parametrize("robust", (None, False, True))
@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression))
def test_intervals_cover(kind, robust):
    """Forty samples and fits; the benchmark has 400, and more designs."""
    coef, held, n_known = np.append(np.linspace(-0.5, 0.4, D), 0.1), 0, 0
    coef = 4 * coef * (np.arange(D + 1) < D) if kind is DPLogisticRegression else coef
    bounds = {"target_bounds": Y_BOUNDS} if kind is DPLinearRegression else {"classes": [0, 1]}
    for seed in range(40):
        X, numbers, classes = sample(seed, uneven=robust is not False)
        model = kind(1.0, feature_bounds=1.0, solver=InferenceDescent(robust=robust), **bounds)
        found = fitted(model, X, numbers if kind is DPLinearRegression else classes, seed=seed).contrast(np.eye(D + 1))
        known = found.estimable
        held += (((found.lower <= coef) & (coef <= found.upper)) & known).sum()
        n_known += known.sum()
    assert n_known > 0.6 * 40 * (D + 1)
    assert held / n_known > 0.92


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0.1}, "alpha=0.1: a penalty biases intervals"),
        ({"clip_norm": 1.0}, "clip_norm=1.0: clipped gradients bias"),
        ({"class_weight": {0: 1.0, 1: 2.0}}, "without class weights"),
        ({"classes": [0, 1, 2]}, "inference=True with 3 classes; expected two"),
        ({"l1_ratio": 0.5}, "without l1 penalty"),
        ({"delta": 0}, "does not support pure epsilon-DP"),
    ],
)
def test_what_would_bias_intervals_is_refused(given, message):
    model = DPLogisticRegression(feature_bounds=1.0, inference=True, **given)
    with pytest.raises(ValueError, match=message):
        model.plan(5000, 3)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"n_steps": 1}, ValueError),
        ({"n_replicates": 0}, ValueError),
        ({"row_bound": 0.5}, ValueError),
        ({"robust": "yes"}, TypeError),
    ],
)
def test_parameters_are_checked(given, error):
    with pytest.raises(error, match=next(iter(given))):
        InferenceDescent(**given).schedule(problem(Squared()))


def test_more_than_1024_features_are_refused():
    with pytest.raises(ValueError, match="at most 1024 features"):
        InferenceDescent().schedule(problem(Squared(), d=1025))


@pytest.mark.parametrize(
    "loss, epsilon, d, identified",
    ((Logistic(), 0.5, 20, False), (Logistic(), 1.0, 20, True), (Logistic(), 0.5, 10, True), (Squared(), 0.5, 20, True)),
)
def test_no_coefficient_of_a_classifier_is_identified_where_its_estimates_were_short(loss, epsilon, d, identified):
    """By public facts alone, so that a plan tells it."""
    level = InferenceDescent().noise_level(problem(loss, epsilon, "replace_one", 5000, d))
    assert level is None if identified else level >= 1


@pytest.mark.parametrize("loss", (Logistic(), Squared()))
@pytest.mark.parametrize("epsilon", (0.3, 1.0, 3.0))
@pytest.mark.parametrize("d", (2, 5, 20))
def test_the_outlook_names_the_number_of_records_from_which_it_is_good(loss, epsilon, d):
    def outlook(n):
        return InferenceDescent().outlook(problem(loss, epsilon, "replace_one", n, d))

    level, words = outlook(40)
    assert level >= 1 and words.startswith(("no coefficient", "half of the"))
    records = int(re.search(r"about ([\d,]+) records", words)[1].replace(",", ""))
    unless = ", unless a class is rare or columns nearly separate the classes" if isinstance(loss, Logistic) else ""
    rare = r"a level that fewer than about ([\d,]+) records have may not be, and if it is listed first, no level of its column"
    good, fair = outlook(int(1.3 * records))[1], outlook(int(0.7 * records))[1]
    assert re.fullmatch(f"nearly all coefficients are likely to be identified{unless}; {rare}", good)
    assert re.match(f"some coefficients may not be identified, and have no interval; {rare}; about ", fair)
    assert outlook(40 * records)[0] < level and InferenceDescent().outlook(problem(loss, math.inf, d=d)) == (0.0, "")


def test_a_combination_that_leaves_the_visible_directions_is_not_estimable():
    """Even if the variance that is computed for the hidden direction is small."""
    k = 3
    none = np.zeros((k, k))
    inference = Inference(
        Standardization(np.zeros(k), np.ones(k), False, 1.0),
        np.zeros(k),
        np.zeros((1, k)),
        np.eye(k),
        np.array([True, True, False]),
        np.ones(k),
        np.zeros(k),
        np.zeros(k),
        none,
        np.eye(k),
        Unlearned(np.eye(k), none, none, np.array([0.1, 1.0]), np.zeros(2), 1.0),
    )
    aside = np.array([0.0, 0.04, 0.06, 1.0])
    rows = np.column_stack([np.sqrt(1 - aside), np.zeros(4), np.sqrt(aside)])
    found = inference.contrasts(rows, np.zeros(4), np.array(list("abcd")), 0.95, "confidence")
    np.testing.assert_array_equal(found.estimable, [True, True, False, False])


def test_what_steps_leave_undone_is_that_of_the_curvature_along_a_combination():
    """A flat coefficient, whose direction no eigenvector shows, has the squared bias that noiseless steps have."""
    truth, curvatures, newton = np.array([2.0, 0.1, -3.0]), np.array([1.0, 0.6, 0.1]), np.eye(3) / 0.8
    pilot, steps = Steps(0.3, 0.8, 12, 30, 0.0), Steps(0.2, 0.8, 14, 40, 0.0)
    first, _ = pilot.run(lambda theta: curvatures * (theta - truth), np.zeros(3))
    middle, slope = steps.run(lambda theta: curvatures * (theta - truth), first)
    estimates = middle - newton @ slope
    grid = np.geomspace(0.05, 10, 60)
    rest = pilot.response(grid, np.zeros(60))[0] * steps.response(grid, np.zeros(60))[0]
    unlearned = Unlearned(np.diag(curvatures), np.zeros((3, 3)), newton, grid, rest, 0.0)
    rows = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 5], [0, 0, 0]])
    found = unlearned.along(rows, truth)
    assert abs(estimates - truth)[2] > 0.5 > 0.01 > abs(estimates - truth)[0]
    np.testing.assert_allclose(found, np.square(rows @ (estimates - truth)), rtol=0.02, atol=1e-6)
    wide = replace(unlearned, variances=np.full((3, 3), 0.01)).along(rows, truth)  # a convex function of an uncertain curvature
    assert wide[1] > found[1] and replace(unlearned, size=100.0).along(rows, truth)[2] > found[2]

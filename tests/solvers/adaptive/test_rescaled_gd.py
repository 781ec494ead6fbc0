"""rescaled_gd: shares of the budget, where it finds the targets, residuals close together, and what it does with little."""

import math

import numpy as np
import pytest
from seeded import fitted

from skdp import DPQuantileRegressor, DPRobustRegressor
from skdp.losses import Absolute, EpsilonInsensitive, Huber, Quantile
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import TargetHistogram
from skdp.solvers import Problem, RescaledGradientDescent
from skdp.solvers._standardization import mean_noise
from skdp.solvers.adaptive.rescaled_gd import release_location, target_releases

COEF = np.array([1.0, -0.5, 0.0])


def problem(n=100_000, d=8, epsilon=1.0, adjacency="zero_out", loss=None, **more):
    budget = Budget(epsilon, 1e-6, adjacency)
    return Problem(
        n, d, loss or Quantile(0.5), budget, **{"data_norm": 1.0, "intercept_scaling": 1.0, **more, "clip_norm": math.inf}
    )


def spent(solver, setting):
    """Query, count, and share of the squared Gaussian-DP parameter."""
    schedule = solver.schedule(setting)
    scale, mu = calibrate(schedule, setting.budget), gaussian_mu(setting.budget.epsilon, setting.budget.delta)
    return [(r.query.__name__, count, count / (r.mechanism.weight * scale * mu) ** 2) for count, r in schedule.entries]


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_budget_is_shared_as_stated(adjacency):
    """On a large table: 5 % for the targets and for coverage, 5 % and 1 % of the rest for means and lengths, 15 % for moments."""
    names, counts, shares = zip(*spent(RescaledGradientDescent(), problem(10**7, adjacency=adjacency)), strict=True)
    first = ("TargetExponents", *["TargetHistogram"] * 5, "FeatureSums", "DistanceHistogram", "SecondMoment")
    assert names == (*first, "ShortenedGradient", "ResidualSigns")
    assert counts == (*[1] * 9, 30, 12)
    assert sum(shares[:6]) == pytest.approx(0.05) and shares[5] == pytest.approx(3 * shares[0])
    assert shares[6:] == pytest.approx((0.045, 0.009, 0.1269, 0.7191, 0.05), rel=1e-2)


@pytest.mark.each_value
@pytest.mark.parametrize("loss", (Quantile(0.9), Absolute(), EpsilonInsensitive(0.1)), ids=lambda loss: loss.name)
@pytest.mark.parametrize("constant", (0.0, 1.0))
@pytest.mark.parametrize("n", (50, 1000, 10**6))
@pytest.mark.parametrize("d", (1, 10, 3000))
@pytest.mark.parametrize("bound", (1.0, math.inf))
def test_shares_add_up_and_follow_from_public_facts(loss, constant, n, d, bound):
    entries = spent(RescaledGradientDescent(), problem(n, d, loss=loss, intercept_scaling=constant, target_bound=bound))
    names, _, shares = zip(*entries, strict=True)
    assert sum(shares) == pytest.approx(1.0)
    assert ("TargetExponents" in names) == (bound == math.inf)
    if "ShortenedGradient" in names:
        assert ("FeatureSums" in names) == bool(constant)
        assert ("SecondMoment" in names) == (d <= 1024)
        assert ("ResidualSigns" in names) == (bool(constant) and loss.name != "epsilon_insensitive")


@pytest.mark.filterwarnings("ignore::skdp.WeakPrivacyWarning")
def test_only_a_quantile_is_released_where_nothing_else_could_be_told(rng):
    X, y = rng.uniform(-1, 1, (300, 6)), 50 + rng.normal(size=300)
    model = fitted(DPQuantileRegressor(0.1), X, y)
    assert {line.query for line in model.privacy_report_.releases} == {"TargetExponents", "TargetHistogram"}
    assert not model.coef_.any() and model.n_iter_ == 0
    warning = "n = 300 is too small for this epsilon and 6 features: only a constant is estimated"
    assert warning in model.privacy_report_.noise_size and warning in DPQuantileRegressor(0.1).plan(300, 6).noise_size


def located(y, epsilon, level, seed, constant=1.0, bound=math.inf, share=0.05):
    """What histograms with noise tell, by the noise that the schedule has."""
    setting = problem(len(y), epsilon=epsilon, intercept_scaling=constant, target_bound=bound)
    rng, rows = np.random.default_rng(seed), TrainingData(np.zeros((len(y), 1)), y, data_norm=1.0)
    weights = iter([release.mechanism.weight for _, release in target_releases(setting, share)])

    def ask(query):
        noise = len(y) * mean_noise(setting, query, 1.0) * next(weights)
        return query.evaluate(rows) + noise * rng.normal(size=query.size)

    location = release_location(setting, share, level, ask)
    assert next(weights, None) is None  # all that the schedule states were asked
    return location


BASE = np.random.default_rng(8).normal(size=20_000)
PLACES = {"standard": (0, 1), "house prices": (2e5, 8e4), "time": (1.7e9, 1e5), "1e6 +- 1": (1e6, 1), "1e9 +- 1": (-1e9, 1)}
PLACES |= {"denormals": (0, 1e-250), "large": (1e140, 1e139)}


@pytest.mark.each_value
@pytest.mark.parametrize("level", (0.1, 0.5, 0.95))
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(3))
def test_centre_and_spread_are_found_in_every_unit(place, level, seed):
    """The noise of a cumulated share is below 0.01 here."""
    offset, unit = PLACES[place]
    location = located(offset + unit * BASE, 1.0, level, seed)
    assert np.mean(offset + unit * BASE <= location.centre) == pytest.approx(level, abs=0.05)
    assert np.mean(offset + unit * BASE <= location.median) == pytest.approx(0.5, abs=0.05)
    assert location.spread / unit == pytest.approx(1, rel=0.25)


@pytest.mark.parametrize("seed", range(5))
def test_noise_makes_the_place_less_certain_but_not_wrong_by_orders_of_magnitude(seed):
    location = located(1e5 + 1e4 * BASE[:5000], 0.2, 0.5, seed, share=0.25)
    assert abs(location.centre - 1e5) < 2e4 and 4e3 < location.spread < 5e4


def test_within_public_bounds_and_around_zero():
    inside = located(np.clip(0.3 + 0.01 * BASE, -1, 1), 1.0, 0.5, 0, bound=1.0)
    assert inside.centre == pytest.approx(0.3, abs=0.002) and inside.spread == pytest.approx(0.01, rel=0.25)
    around = located(5.0 + BASE, 1.0, 0.5, 0, constant=0.0)
    assert around.centre == 0 and 5 < around.spread < 15


@pytest.mark.parametrize("y", (np.zeros(20_000), np.full(20_000, 5.0), np.full(20_000, -1e308), np.full(20_000, 5e-324)))
def test_equal_targets_have_a_small_positive_spread(y):
    location = located(np.clip(y, -1e150, 1e150), 1.0, 0.5, 0)
    assert 0 < location.spread <= max(2e-6 * min(abs(y[0]), 1e150), 1e-3) and math.isfinite(location.centre)
    assert abs(location.centre - np.clip(y[0], -1e150, 1e150)) <= 100 * location.spread


def test_targets_that_are_mostly_equal_have_the_spread_of_the_others():
    y = np.where(np.arange(20_000) % 10 < 7, 0.0, 100 * np.exp(BASE))
    location = located(y, 1.0, 0.9, 0)
    assert 5 < location.spread < 500 and np.mean(y <= location.centre) == pytest.approx(0.9, abs=0.05)


def test_noise_around_a_spike_does_not_make_the_spread_vanish():
    y = np.where(np.arange(5000) % 10 < 7, 0.0, 100 * np.exp(BASE[:5000]))
    assert min(located(y, 0.2, 0.9, seed, share=0.1).spread for seed in range(10)) > 0.5


@pytest.mark.parametrize("level", (0.5, 0.9))
@pytest.mark.parametrize("noise", (1.0, 0.05, 0.005))
def test_the_intercept_is_calibrated_also_where_residuals_are_close_together(level, noise, rng):
    """The noise of the last counts is below 0.02."""
    X = rng.uniform(-1, 1, (6000, 3))
    y = 1e3 + X @ COEF + noise * rng.normal(size=6000)
    model = fitted(DPQuantileRegressor(2.0, quantile=level), X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(level, abs=0.08)
    np.testing.assert_allclose(model.coef_, COEF, atol=0.1 * max(noise, 0.8))


@pytest.mark.parametrize("loss", ("absolute", "epsilon_insensitive"))
def test_robust_regression_with_these_losses_needs_no_unit(loss, rng):
    X = rng.uniform(-1, 1, (6000, 3))
    y = 2e4 + 1e3 * (X @ COEF + 0.3 * rng.normal(size=6000))
    y[::20] = 1e9
    model = fitted(DPRobustRegressor(2.0, loss=loss, threshold=10.0), X, y)
    assert model.privacy_report_.solver == "rescaled_gd"
    np.testing.assert_allclose(model.coef_ / 1e3, COEF, atol=0.15)
    assert model.intercept_ / 1e3 == pytest.approx(20, abs=0.15)


def test_an_alpha_shrinks_coefficients_in_the_unit_of_the_targets(rng):
    X = rng.uniform(-1, 1, (6000, 3))
    y = X @ COEF + 0.3 * rng.normal(size=6000)
    models = [fitted(DPQuantileRegressor(2.0, alpha=alpha), X, y) for alpha in (0.0, 0.2, 100.0)]
    lengths = [np.linalg.norm(model.coef_) for model in models]
    assert lengths[0] > 1.2 * lengths[1] > 10 * lengths[2]
    assert np.mean(y <= models[2].predict(X)) == pytest.approx(0.5, abs=0.05)


def test_a_smooth_loss_and_classes_are_not_for_it():
    assert not RescaledGradientDescent.needs <= problem(loss=Huber(1.0)).offers
    with pytest.raises(ValueError, match="needs a loss of bounded slope with a kink"):
        DPRobustRegressor(loss="huber", solver="rescaled_gd").plan(1000, 3)


@pytest.mark.parametrize(
    "given", ({"n_steps": 0}, {"path": 0.0}, {"target_share": 0.5}, {"means_share": 0.3}, {"coverage_share": math.nan})
)
def test_parameters_are_checked(given):
    (name,) = given
    with pytest.raises((TypeError, ValueError), match=f"{name}="):
        RescaledGradientDescent(**given).schedule(problem())


def test_the_gate_sees_the_ranges():
    assert TargetHistogram(np.array([0.0, 1.0])).parameters()[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("quantile", (5e-324, 1e-9, 1 - 1e-9))
def test_a_quantile_that_no_count_can_tell_stays_near_the_targets(quantile, rng):
    """The density there is next to nothing: a step in proportion to one over it would carry the noise of the counts away."""
    X, y = rng.uniform(-1, 1, size=(3000, 2)), rng.normal(size=3000)
    model = fitted(DPQuantileRegressor(quantile=quantile), X, y)
    assert abs(model.intercept_) < 30

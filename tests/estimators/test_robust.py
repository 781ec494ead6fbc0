"""Test DPRobustRegressor: outliers do not move it, with and without bounds of the targets."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp import DPConstrainedRegression, DPRobustRegressor
from skdp._data_validation import Facts
from skdp.estimators._regressor import ROBUST
from skdp.losses import RobustLoss, Welsch
from skdp.solvers import GradientDescent

KINDS = {name: kind for name, kind in ROBUST.items() if issubclass(kind, RobustLoss)}
COEF = np.array([1.0, -0.5, 0.0])


@pytest.fixture
def table(rng):
    """Every tenth target is an outlier, all on one side."""
    X = rng.integers(-4, 5, size=(4000, 3)) / 4
    y = X @ COEF + 0.2 * rng.normal(size=4000)
    return X, y, np.where(np.arange(4000) % 10 == 0, 8.0, y)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:threshold=1 is small for a range of y:UserWarning")
@pytest.mark.parametrize("bounds", (None, (-10.0, 10.0)))
@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_outliers_move_it_less_than_least_squares(loss, bounds, adjacency, table):
    """Those that are not convex forget them; a tenth of them shifts least squares by a tenth of 8.

    The noise of the coefficients is below 0.02, so that a bound of 0.15 is not missed.
    """
    X, _, spoilt = table
    given = {"target_bounds": bounds, "adjacency": adjacency, "threshold": 1.0}
    solver = GradientDescent(300, step_size=0.3)
    model = fitted(DPRobustRegressor(2.0, loss=loss, solver=solver, **given), X, spoilt)
    far = 0.3 if KINDS[loss].convex else 0.15
    np.testing.assert_allclose(model.coef_, COEF, atol=0.15)
    assert abs(model.intercept_) < far
    assert np.linalg.lstsq(np.column_stack([X, np.ones(4000)]), spoilt)[0][-1] > 0.7


@pytest.mark.filterwarnings("ignore:threshold=0.5 is small for a range of y:UserWarning")
@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize("bounds, unit", ((None, 0.5), ((-3.0, 5.0), 4.0), ((0.0, 1.0), 0.5)))
def test_the_threshold_is_in_the_units_of_the_targets(loss, bounds, unit):
    model = DPRobustRegressor(loss=loss, threshold=0.5, target_bounds=bounds)
    assert model._task().plan_of(Facts(1000, 3)).problem.loss == KINDS[loss](0.5 / unit)
    assert model.plan(1000, 3).solver == "gd"


@pytest.mark.each_value
@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize("factor", (16.0, 1 / 64))
def test_units_of_the_targets_do_not_matter(loss, factor, table):
    X, y, _ = table
    for bounds, threshold in ((None, 1.0), ((-2.0, 3.0), 1.0), ((-2.0, 3.0), None)):
        scaled = None if bounds is None else tuple(factor * end for end in bounds)
        expected = fitted(DPRobustRegressor(loss=loss, target_bounds=bounds, threshold=threshold), X, y)
        given = None if threshold is None else factor
        model = fitted(DPRobustRegressor(loss=loss, target_bounds=scaled, threshold=given), X, factor * y)
        np.testing.assert_allclose(model.coef_, factor * expected.coef_, rtol=1e-9)
        assert model.intercept_ == pytest.approx(factor * expected.intercept_, rel=1e-9)


@pytest.mark.filterwarnings("ignore:Noise hides where the numbers to predict lie:UserWarning")
@pytest.mark.parametrize("kind, loss", (*((DPRobustRegressor, loss) for loss in KINDS), (DPConstrainedRegression, "huber")))
def test_the_range_of_y_is_learned_with_the_columns(kind, loss, table):
    """Around 0 with a threshold of 1, all of these targets would be outliers. Of 60 fits the lowest score was .68."""
    X, y, spoilt = table
    frame = pd.DataFrame(X).add_prefix("x")
    given = {} if kind is DPRobustRegressor else {"radius": 500.0, "fit_intercept": True}
    model = kind(5.0, loss=loss, **given).fit(frame, 5000 + 100 * (y if KINDS[loss].convex else spoilt))
    assert model.score(frame, 5000 + 100 * y) > 0.5
    low, high = model.target_bounds_
    assert 0 < low < high < 20_000
    assert model.privacy_report_.public["n_releases"] > 3


@pytest.mark.filterwarnings("ignore:Noise hides where the numbers to predict lie:UserWarning")
@pytest.mark.parametrize("loss", KINDS)
def test_targets_of_a_wrong_unit_are_not_in_the_range_that_is_learned(loss, table):
    X, y, _ = table
    y = 5000 + 100 * y
    wrong = np.where(np.arange(4000) % 20 == 0, 1000 * y, y)
    model = DPRobustRegressor(5.0, loss=loss).fit(pd.DataFrame(X).add_prefix("x"), wrong)
    assert model.target_bounds_[1] < 50_000 and np.sqrt(np.mean((model.predict(pd.DataFrame(X).add_prefix("x")) - y) ** 2)) < 200


@pytest.mark.parametrize("loss", KINDS)
def test_a_threshold_that_does_not_reach_from_the_middle_of_the_range_is_named(loss):
    def told(**given):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            DPRobustRegressor(loss=loss, target_bounds=(0, 20_000), **given).plan(5000, 3)
        return [
            str(one.message) for one in seen if "threshold=1000 is small for a range of y from 0 to 20000" in str(one.message)
        ]

    assert bool(told(threshold=1000.0)) != KINDS[loss].convex
    assert not told() and not told(threshold=3000.0)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:threshold=.* is small for a range of y:UserWarning")
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize("bounds", (None, (90.0, 120.0)))
def test_bounds_centre_the_targets(loss, bounds, table):
    """With an intercept the fit is that of the centred targets, whether bounds centre them or the user does."""
    X, y, _ = table
    solver = GradientDescent(400, step_size=0.5, tail_average=0.0)
    given = {"loss": loss, "threshold": 2.0, "solver": solver, "alpha": 0.0, "clip_norm": 1e6, "data_norm": 2.0}
    centre = 105.0 if bounds else 0.0
    model = DPRobustRegressor(math.inf, target_bounds=bounds, **given).fit(X, y + centre)
    expected = DPRobustRegressor(math.inf, **given).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-5)
    assert model.intercept_ - centre == pytest.approx(expected.intercept_, abs=1e-5)


@pytest.mark.filterwarnings("ignore:X has rows that are more than")
def test_predictions_stay_in_a_range_whether_there_are_bounds_or_not(table):
    X, y, _ = table
    bounded = fitted(DPRobustRegressor(target_bounds=(-1, 1)), X, y)
    free = fitted(DPRobustRegressor(), X, y)
    far = 1e6 * np.sign(bounded.coef_)[None]
    assert bounded.predict(far).tolist() == [1.0] and bounded.target_bounds_ == (-1.0, 1.0)
    reach = np.sqrt(X.shape[1]) * np.linalg.norm(free.coef_)  # of rows as long as the default of data_norm
    assert free.target_bounds_ == pytest.approx((free.intercept_ - reach, free.intercept_ + reach))
    assert free.predict(far).tolist() == [free.target_bounds_[1]]


@pytest.mark.parametrize(
    "given, message",
    (
        (
            {"loss": "squared"},
            "loss='squared'; expected one of " + re.escape(str(sorted(("absolute", *ROBUST)))),
        ),
        ({"loss": Welsch}, "loss=.*expected one of"),
        ({"threshold": -1.0}, "threshold=-1.0; expected a finite number > 0"),
        ({"target_bounds": (1, 0)}, r"target_bounds=\(1, 0\); expected"),
        ({"target_bounds": (-1e30, 1e30), "threshold": 1e-30}, "threshold=1e-30; expected a number comparable"),
        ({"l1_ratio": 2.0}, "l1_ratio=2.0; expected"),
        ({"solver": "whitened_gd"}, "needs a number to predict, with the squared loss"),
        ({"solver": "objective"}, "needs exactly two classes and a convex loss"),
    ),
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DPRobustRegressor(**given).plan(1000, 3)

"""Test regressors without a public range of y: they use a documented range, and warn with advice."""

import warnings

import numpy as np
import pytest
from seeded import fitted

from skdp import DPConstrainedRegression, DPLinearRegression, DPRobustRegressor, PrivacyLedger
from skdp.estimators import DPAdditiveRegressor


@pytest.mark.parametrize("kind", (DPLinearRegression, DPConstrainedRegression, DPAdditiveRegressor))
def test_without_bounds_y_is_taken_to_lie_in_the_unit_interval(kind):
    X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    y = 40 * X[:, 0]
    given = {"feature_bounds": 1.0}
    with pytest.warns(
        UserWarning, match=r"target_bounds is not given: y is taken to lie in \[-1.0, 1.0\].*target_bounds=\(low, high\)"
    ):
        model = fitted(kind(**given), X, y)
    stated = fitted(kind(**given, target_bounds=(-1, 1)), X, y)  # without a warning
    np.testing.assert_array_equal(model.coef_, stated.coef_)
    assert model.target_bounds_ == (-1.0, 1.0) and np.abs(model.predict(X)).max() <= 1
    with pytest.warns(UserWarning, match="target_bounds is not given"):
        report = kind(**given).plan(5000, 2)
    assert any("clipped" in line for line in report.assumptions)


ROBUST = "Neither threshold nor target_bounds: y is taken to lie within a few units of 0"


@pytest.mark.filterwarnings("default:Neither threshold nor target_bounds")
@pytest.mark.parametrize(
    "model, warns",
    (
        (DPRobustRegressor(), True),
        (DPRobustRegressor(loss="huber"), True),
        (DPConstrainedRegression(loss="huber"), True),
        (DPRobustRegressor(loss="absolute"), False),
        (DPRobustRegressor(loss="epsilon_insensitive"), False),
        (DPRobustRegressor(threshold=100.0), False),
        (DPRobustRegressor(target_bounds=(0, 1)), False),
    ),
    ids=repr,
)
def test_robust_losses_say_what_their_default_threshold_assumes(model, warns):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.plan(5000, 2)
    assert any(str(warning.message).startswith(ROBUST) for warning in seen) == warns


@pytest.mark.parametrize(
    "model",
    (DPLinearRegression(inference=True), DPLinearRegression(solver="inference"), DPAdditiveRegressor(inference=True)),
)
def test_intervals_need_bounds_of_the_target_before_anything_is_spent(model):
    """Targets beyond a range that nobody stated would bias intervals in silence."""
    X, y = np.linspace(-1, 1, 300)[:, None], 10 * np.linspace(-1, 1, 300)
    with (
        PrivacyLedger(epsilon=5.0, delta=1e-3) as ledger,
        pytest.raises(ValueError, match=r"without target_bounds; expected target_bounds=\(low, high\)"),
    ):
        model.set_params(feature_bounds=1.0).fit(X, y)
    assert not ledger.entries

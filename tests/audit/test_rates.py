"""Error rates: their confidence bounds hold as often as they say, and the threshold has not seen what it judges."""

import numpy as np
import pytest
from scipy.stats import binom

from skdp.audit._rates import best_threshold, error_rates, split, upper_bounds


@pytest.mark.parametrize("n_runs", (1, 20, 300))
@pytest.mark.parametrize("confidence", (0.5, 0.95, 1 - 5e-5))
def test_bounds_cover_every_rate_and_are_the_least_that_do(n_runs, confidence):
    """By the binomial distribution itself, not by simulation."""
    counts = np.arange(n_runs + 1)
    bounds = upper_bounds(counts / n_runs, n_runs, confidence)
    for rate in np.linspace(0.001, 0.999, 97):
        assert binom.pmf(counts[bounds < rate], n_runs, rate).sum() <= 1 - confidence
    np.testing.assert_allclose(binom.cdf(counts[:-1], n_runs, bounds[:-1]), 1 - confidence, rtol=1e-8)
    assert bounds[-1] == 1


def test_error_rates_by_hand():
    scores = np.array([[0.0, 1.0, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0]])
    positive, negative = error_rates(scores, np.array([-1.0, 2.0, 2.5, 9.0]))
    np.testing.assert_array_equal(positive, [1, 0.5, 0.25, 0])
    np.testing.assert_array_equal(negative, [0, 0, 0.25, 1])


def test_the_pilot_is_a_quarter_and_judges_nothing():
    scores = np.arange(42.0).reshape(2, 21)
    pilot, judged = split(scores)
    assert pilot.shape == (2, 5)
    np.testing.assert_array_equal(np.hstack([pilot, judged]), scores)


def test_the_threshold_separates_what_is_separable(rng):
    pilot = np.stack([rng.uniform(0, 1, 50), rng.uniform(2, 3, 50)])
    threshold = best_threshold(pilot, 0.99, lambda rates: 1 - rates.sum(axis=0))
    assert 1 < threshold <= pilot[1].min()


def test_a_pilot_that_proves_nothing_still_finds_a_threshold(rng):
    """The bounds of 50 runs are 0 at a confidence at which those of the other 150 are not."""
    pilot = np.stack([rng.normal(size=50), rng.normal(1.0, size=50)])
    assert not value(upper_bounds(error_rates(pilot, np.unique(pilot)), 50, 1 - 5e-5)).any()
    threshold = best_threshold(pilot, 1 - 5e-5, value)
    assert error_rates(pilot, np.array([threshold])).sum() < 0.8


def value(rates):
    return np.maximum(1 - rates.sum(axis=0), 0.0)

"""The accounting of a secret number of trials, against dp_accounting and against the theorem computed otherwise."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy.special import ndtr

from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.random_stopping import stopping_epsilon, stopping_mu

CASES = [(epsilon, mean, delta) for epsilon in (0.1, 1.0, 3.0) for mean in (5, 8, 30) for delta in (1e-5, 4e-8)]


def by_hand(mu, mean, delta, other=0.0):
    """Theorem 6 of Papernot and Steinke, at a grid of orders of its own."""
    order = 1 + np.geomspace(1e-2, 1e4, 4000)
    e = np.log(order / (order - 1))
    of_trial = ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu)
    renyi = order * (mu**2 + other**2) / 2 + mean * of_trial + math.log(mean) / (order - 1)
    return np.min(renyi + np.log1p(-1 / order) - np.log(delta * order) / (order - 1))


@pytest.mark.parametrize("epsilon, mean, delta", CASES)
@pytest.mark.parametrize("share", (0.0, 0.5))
def test_the_theorem_computed_otherwise_agrees(epsilon, mean, delta, share):
    other = share * gaussian_mu(epsilon, delta)
    mu = stopping_mu(epsilon, mean, delta, other)
    assert 0.999 * epsilon < stopping_epsilon(mu, mean, delta, other) <= epsilon
    assert by_hand(mu, mean, delta, other) == pytest.approx(epsilon, rel=2e-3)


@pytest.mark.parametrize("epsilon, mean, delta", CASES)
def test_dp_accounting_states_no_less(epsilon, mean, delta):
    """It takes the delta of a trial from its Renyi divergences, which is a larger one."""
    mu = stopping_mu(epsilon, mean, delta)
    accountant = RdpAccountant()
    accountant.compose(dp_event.RepeatAndSelectDpEvent(dp_event.ZCDpEvent(mu**2 / 2), mean, math.inf))
    assert epsilon * 0.999 < accountant.get_epsilon(delta) < 1.6 * epsilon


def test_the_best_of_many_trials_is_attacked_within_the_claim():
    """The exact privacy loss of the best score: its distribution function is exp(-m (1 - F)), with a mass at no trial."""
    mean, delta = 8, 1e-5
    mu = stopping_mu(1.0, mean, delta)
    grid = np.linspace(-9, 9 + mu, 400_001)
    ours, other = (np.exp(-mean * ndtr(shift - grid)) for shift in (0.0, mu))
    for p, q in ((ours, other), (other, ours)):
        excess = np.maximum(np.diff(p) - math.e * np.diff(q), 0).sum()
        assert excess <= delta
    worse = np.exp(-mean * ndtr(6 * mu - grid))  # the twin: six times the claim of a trial
    assert np.maximum(np.diff(worse) - math.e * np.diff(ours), 0).sum() > delta


def test_a_budget_that_no_trial_fits_in_is_refused():
    assert stopping_mu(math.inf, 8, 1e-6) == math.inf
    with pytest.raises(ValueError, match="too small for a search"):
        stopping_mu(0.5, 8, 1e-6, gaussian_mu(0.5, 1e-6))

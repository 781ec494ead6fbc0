"""Exact accounting against the privacy-loss-distribution accountant, against quadrature, and at the extremes."""

import math
from itertools import pairwise

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.integrate import quad
from scipy.stats import norm

from skdp.privacy.accounting.gaussian_dp import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.privacy.budget import Budget

EPSILONS = (0.01, 0.1, 1.0, 3.0, 10.0)
DELTAS = (1e-2, 1e-5, 1e-8)
RELATIONS = {
    "replace_one": (2, dp_accounting.NeighboringRelation.REPLACE_ONE),
    "zero_out": (1, dp_accounting.NeighboringRelation.REPLACE_SPECIAL),
}


def delta_by_quadrature(mu, epsilon):
    """delta is the integral of phi(-epsilon/t + t/2) over t in (0, mu), which has no cancellation."""
    start = epsilon / 45  # left of it the integrand is below phi(-45)
    points = np.geomspace(start, mu, 30) if start < mu else ()
    pieces = [quad(lambda t: norm.pdf(-epsilon / t + t / 2), a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pairwise(points)]
    return sum(pieces)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("mu", (1e-3, 0.1, 1.0, 5.0))
def test_delta_equals_its_integral(mu, epsilon):
    expected = delta_by_quadrature(mu, epsilon)
    if expected > 1e-280:
        assert gaussian_delta(mu, epsilon) == pytest.approx(expected, rel=1e-8)


@pytest.mark.exhaustive
@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("noise_over_clip", (pytest.param(1.0, marks=pytest.mark.slow), 4.0, 20.0))
def test_delta_equals_the_pld_accountant(adjacency, noise_over_clip):
    factor, relation = RELATIONS[adjacency]
    accountant = PLDAccountant(neighboring_relation=relation, value_discretization_interval=1e-5)
    accountant.compose(dp_accounting.GaussianDpEvent(noise_over_clip))
    epsilons = [gaussian_epsilon(factor / noise_over_clip, delta) for delta in DELTAS]
    np.testing.assert_allclose([accountant.get_delta(epsilon) for epsilon in epsilons], DELTAS, rtol=1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("adjacency", RELATIONS)
def test_composition_equals_the_pld_accountant(adjacency):
    """Composed on a grid of losses, the accountant rounds up at each step: it is above ours, by little."""
    factor, relation = RELATIONS[adjacency]
    accountant = PLDAccountant(neighboring_relation=relation, value_discretization_interval=1e-5)
    accountant.compose(dp_accounting.GaussianDpEvent(10.0), 50)
    ours = gaussian_epsilon(math.sqrt(50) * factor / 10.0, 1e-6)
    assert ours * (1 - 2e-9) <= accountant.get_epsilon(1e-6) <= ours + 50 * 1e-5


@pytest.mark.parametrize("epsilon", (1e-6, *EPSILONS, 100.0, 1e6))
@pytest.mark.parametrize("delta", (0.3, *DELTAS, 1e-11, 1e-100, 1e-300))
def test_mu_spends_the_budget_and_no_more(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_epsilon(mu, delta) <= epsilon
    assert gaussian_delta(mu * (1 + 1e-6), epsilon) > delta * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_nearly_all_of_epsilon_is_spent(epsilon, delta):
    assert gaussian_epsilon(gaussian_mu(epsilon, delta), delta) >= 0.99999 * epsilon


def test_no_noise_and_no_release():
    assert gaussian_mu(math.inf, 1e-5) == math.inf
    assert gaussian_epsilon(math.inf, 1e-5) == math.inf
    assert gaussian_epsilon(0.0, 1e-5) == 0.0
    assert gaussian_delta(0.0, 1.0) == 0.0


def test_epsilon_below_the_resolution_is_refused():
    with pytest.raises(ValueError, match=r"epsilon=1e-09.*larger epsilon"):
        gaussian_mu(1e-9, 1e-300)


@pytest.mark.parametrize("kind", (np.float16, np.float32))
@pytest.mark.parametrize("function", (gaussian_mu, gaussian_epsilon))
def test_numbers_of_lower_precision_are_accounted_for_as_exactly(kind, function):
    """They are equal to floats, whose results are cached."""
    for value in (0.5, 1.0, 4.0):
        function.cache_clear()
        expected = function(value, 1e-5)
        function.cache_clear()
        assert function(kind(value), 1e-5) == expected == function(value, 1e-5)


def test_equal_budgets_are_of_one_type():
    budget = Budget(np.float16(1.0), np.float32(2.0**-20), "zero_out")
    assert budget == Budget(1.0, 2.0**-20, "zero_out")
    assert type(budget.epsilon) is type(budget.delta) is float

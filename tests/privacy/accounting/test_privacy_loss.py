"""Accounting of subsampled releases against quadrature, against the PLD accountant, and against its known faults."""

import math
from itertools import product

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from pairwise import pairwise
from scipy.optimize import brentq
from scipy.stats import binom, norm

from skdp.privacy.accounting import privacy_loss as subsampled
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule, Selection

ADJACENCIES = ("replace_one", "zero_out")
RELATIONS = {"replace_one": NeighboringRelation.REPLACE_ONE, "zero_out": NeighboringRelation.REPLACE_SPECIAL}
THOUSAND = Schedule(((1000, Release(Gradient, PoissonGaussian(0.01), 1.0)), (10, Release(Gradient, Gaussian(weight=10.0), 1.0))))


def sampled(count, rate, weight=1.0):
    return Schedule(((count, Release(Gradient, PoissonGaussian(rate, weight), 1.0)),))


def epsilon_by_accountant(schedule, scale, budget, spacing):
    """Returns the epsilon of the library's accountant, with every release as an event."""
    accountant = PLDAccountant(RELATIONS[budget.adjacency], spacing)
    for count, release in schedule.entries:
        event = GaussianDpEvent(noise_multiplier(release, scale, budget.adjacency))
        if isinstance(release.mechanism, PoissonGaussian):
            event = PoissonSampledDpEvent(release.mechanism.sampling_rate, event)
        accountant.compose(event, count)
    return accountant.get_epsilon(budget.delta)


def epsilon_by_quadrature(rate, multiplier, adjacency, delta):
    """One release: the larger hockey-stick divergence of the two orders, by integration."""
    x = np.linspace(-1 - 12 * multiplier, 1 + 12 * multiplier, 200_001)
    p, opposite = ((1 - rate) * norm.pdf(x, 0, multiplier) + rate * norm.pdf(x, sign, multiplier) for sign in (1, -1))
    q = opposite if adjacency == "replace_one" else norm.pdf(x, 0, multiplier)

    def excess(epsilon):
        orders = (np.trapezoid(np.maximum(a - math.exp(epsilon) * b, 0), x) for a, b in ((p, q), (q, p)))
        return math.log(max(orders) / delta)

    return brentq(excess, 1e-3, 5, xtol=1e-6)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rate, multiplier", ((0.1, 0.8), (0.5, 2.0)))
def test_one_release_equals_its_integral(adjacency, rate, multiplier):
    budget = Budget(1.0, 1e-4, adjacency)
    scale = multiplier / Gradient.relative_sensitivity[adjacency]
    exact = epsilon_by_quadrature(rate, multiplier, adjacency, 1e-4)
    assert exact <= spent_epsilon(sampled(1, rate), scale, budget) <= 1.003 * exact


SCHEDULES = {"two kinds": THOUSAND, "many": sampled(300, 0.2), "few": sampled(20, 1e-3)}


@pytest.mark.slow
@pytest.mark.parametrize("adjacency, epsilon, name", pairwise(product(ADJACENCIES, (0.1, 1.0, 8.0), SCHEDULES)))
def test_calibration_spends_the_budget_by_the_accountants_count(adjacency, epsilon, name):
    schedule, budget = SCHEDULES[name], Budget(epsilon, 1e-6, adjacency)
    scale = calibrate(schedule, budget)
    assert 0.999 * epsilon <= spent_epsilon(schedule, scale, budget) <= epsilon
    assert 0.997 * epsilon <= epsilon_by_accountant(schedule, scale, budget, 1e-4) <= epsilon
    more = Schedule((*schedule.entries, (1 + len(schedule) // 50, schedule.entries[0][1])))
    assert spent_epsilon(more, scale, budget) > epsilon


@pytest.mark.exhaustive
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (0.3, pytest.param(2.0, marks=pytest.mark.slow)))
def test_noise_is_within_two_parts_in_a_thousand_of_the_finest(adjacency, epsilon):
    budget = Budget(epsilon, 1e-6, adjacency)
    scale = calibrate(THOUSAND, budget)

    def excess(factor):
        return epsilon_by_accountant(THOUSAND, factor * scale, budget, 5e-5) - epsilon

    assert brentq(excess, 0.99, 1.001, xtol=1e-5) >= 0.998


def test_calibration_takes_few_evaluations_and_repeats_none(monkeypatch):
    """Fault of the library: calibration without a bracket takes minutes on full-data releases."""
    evaluations = []
    compose = subsampled.loss_distribution
    monkeypatch.setattr(subsampled, "loss_distribution", lambda *given: (evaluations.append(given), compose(*given))[1])
    subsampled._calibrate.cache_clear()
    subsampled._epsilon.cache_clear()
    schedule = Schedule(((100, Release(Gradient, Gaussian(), 1.0)), (100, Release(Gradient, PoissonGaussian(0.1), 1.0))))
    for epsilon in (0.02, 1.0, 50.0):
        evaluations.clear()
        scale = calibrate(schedule, Budget(epsilon, 1e-6, "replace_one"))
        assert 3 <= len(evaluations) <= 15
        again = Schedule(schedule.entries)
        assert calibrate(again, Budget(epsilon, 1e-6, "replace_one")) == scale
        spent_epsilon(again, scale, Budget(epsilon, 1e-6, "replace_one"))
        assert len(evaluations) <= 15


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("scale", (0.7, 3.0))
def test_the_relation_is_not_ignored(adjacency, scale):
    """Fault of the library: its Renyi accountant reports half of epsilon under replace_one.

    With a sampling rate near 1, a release costs as much as on all records, under both adjacencies.
    """
    exact = gaussian_epsilon(math.sqrt(5) / scale, 1e-6)
    assert spent_epsilon(sampled(5, 1 - 1e-12), scale, Budget(1.0, 1e-6, adjacency)) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("count", (1, 20))
def test_the_number_of_selections_counts(count):
    """Fault of the library: its accountant drops the count of randomised responses."""
    faint = (1, Release(Gradient, PoissonGaussian(1e-3, weight=1e3), 1.0))
    schedule = Schedule(((count, Release(Gradient, Selection(), 1.0)), faint))
    log_odds, delta = 0.5, 1e-6
    truths = np.arange(count + 1)

    def delta_of(epsilon):
        likely, unlikely = (binom.pmf(truths, count, 1 / (1 + math.exp(-sign * log_odds))) for sign in (1, -1))
        return np.maximum(likely - math.exp(epsilon) * unlikely, 0).sum()

    exact = brentq(lambda epsilon: delta_of(epsilon) - delta, 0.0, count * log_odds)
    assert exact <= spent_epsilon(schedule, 2 / log_odds, Budget(1.0, delta, "replace_one")) <= 1.02 * exact


def test_what_convolutions_cannot_resolve_is_refused():
    for schedule, delta in ((sampled(10, 0.1), 9e-13), (sampled(10**6, 1e-3), 1e-11)):
        with pytest.raises(ValueError, match=rf"delta={delta!r} is too small.*Full-data solvers \(gd\)"):
            calibrate(schedule, Budget(1.0, delta, "zero_out"))


@pytest.mark.slow
def test_rounding_of_the_transforms_is_paid_for():
    """Where the true mass is 0, the convolution reports masses of both signs; the stated bound is above them."""
    composition = subsampled.Composition.of(sampled(7000, 4e-4), "zero_out")
    distribution = subsampled.loss_distribution(composition, 0.4, 2e-3)
    empty = max(abs(distribution.get_delta_for_epsilon(epsilon)) for epsilon in (20.0, 25.0, 30.0))
    assert 1e-15 < empty < composition.n_losses * subsampled.TRANSFORM_ERROR
    schedule, budget = sampled(1000, 0.01), Budget(1.0, 1e-11, "zero_out")
    scale = calibrate(schedule, budget)
    assert spent_epsilon(schedule, scale, budget) > (1 + 1e-4) * epsilon_by_accountant(schedule, scale, budget, 5e-4)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (1e-3, 100.0))
@pytest.mark.parametrize("count, rate", ((1, 3e-6), (1, 0.999), (20_000, 1e-4), (20_000, 0.5)))
def test_extremes_are_calibrated(adjacency, epsilon, count, rate):
    budget = Budget(epsilon, 1e-6, adjacency)
    schedule = sampled(count, rate)
    scale = calibrate(schedule, budget)
    assert 0.999 * epsilon <= spent_epsilon(schedule, scale, budget) <= epsilon


def test_a_program_that_makes_underflow_an_error_gets_the_same_noise():
    scales = []
    for under in ("raise", "ignore"):
        subsampled._calibrate.cache_clear()
        subsampled._epsilon.cache_clear()
        with np.errstate(under=under):
            scales.append(calibrate(sampled(300, 32 / 60), Budget(0.9, 1e-4, "replace_one")))
    assert scales[0] == scales[1]


def test_a_delta_that_would_pay_for_publishing_the_batch_is_refused():
    with pytest.raises(ValueError, match=r"delta=1e-06 allows publishing it without noise.*larger batches"):
        calibrate(sampled(2, 9e-7), Budget(1.0, 1e-6, "zero_out"))


@pytest.mark.parametrize("rate", (0.0, -0.1, 1.5, math.nan))
def test_rates_that_are_no_probability_are_refused(rate):
    with pytest.raises(PrivacyAccountingError, match="sampling rate"):
        sampled(1, rate)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("schedule", (sampled(4, 0.5), THOUSAND), ids=("few", "many"))
def test_the_profile_is_the_inverse_of_epsilon(adjacency, schedule):
    budget = Budget(2.0, 1e-5, adjacency)
    composition, scale = subsampled.Composition.of(schedule, adjacency), calibrate(schedule, budget)
    distribution, error = composition.losses(scale, budget)
    deltas = distribution.get_delta_for_epsilon(np.array([0.0, composition.epsilon(scale, budget), 100.0])) + error
    assert deltas[1] == pytest.approx(budget.delta, rel=1e-3)
    assert 0 <= deltas[2] < 1e-9 < 1e-2 < deltas[0] < 1


def test_losses_beyond_float64_are_no_guarantee():
    """With almost no noise the library would count a difference of 1 as 0."""
    composition = subsampled.Composition("zero_out", ((4, 0.005, 0.02),), (), 1.0)
    assert composition.epsilon(2.3689521091486754e-10, Budget(2.5, 0.5, "zero_out")) == math.inf

"""Tests the tight epsilon of a ledger, and Gaussian covers."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from seeded import fitted

from skdp import DPLogisticRegression, PrivacyLedger
from skdp.privacy.accounting.gaussian_dp import gaussian_delta, gaussian_mu
from skdp.privacy.accounting.privacy_loss import Composition, K
from skdp.privacy.budget import Budget
from skdp.privacy.ledger import composition as composed
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.ledger.gaussian_cover import gaussian_cover, pure_cover

RELATIONS = {
    "replace_one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    "zero_out": dp_accounting.NeighboringRelation.REPLACE_SPECIAL,
}
DELTA = 1e-6


def fits(adjacency):
    """A hundred fits of four kinds, with their events."""
    kinds = []
    for kind in range(4):
        multiplier, count, rate = 6.0 + kind, 40 + 20 * kind, 0.02 * kind
        if rate:
            composition = Composition(adjacency, ((count, rate, multiplier),), (), 0.0)
            event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
        else:
            multiplier *= 40
            composition = Composition(adjacency, (), (), count * (K[adjacency] / multiplier) ** 2)
            event = dp_accounting.GaussianDpEvent(multiplier)
        spending = Spending(f"kind {kind}", {}, (), adjacency, 0.5, DELTA, composition)
        kinds.append((spending, dp_accounting.SelfComposedDpEvent(event, count)))
    return [kinds[number % 4] for number in range(101)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("adjacency", RELATIONS)
def test_a_hundred_fits_compose_as_dp_accounting_composes_them(adjacency, tmp_path):
    ledger = PrivacyLedger(tmp_path / "study.sqlite", epsilon=1000, delta=DELTA)
    planned = fits(adjacency)
    for spending, _ in planned[:100]:
        ledger.charge(spending)
    assert ledger.summary().tight_epsilon > 0
    ledger.charge(planned[100][0])
    found = PrivacyLedger(ledger.path).summary()
    accountant = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=composed.DISCRETIZATION)
    accountant.compose(dp_accounting.ComposedDpEvent([event for _, event in planned]))
    assert found.tight_epsilon == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-5)
    assert found.tight_epsilon <= found.spent_epsilon <= 1.1 * found.tight_epsilon


def test_a_delta_below_what_transforms_resolve_has_no_tight_figure():
    losses = composed.compose([fits("zero_out")[1][0].composition])
    assert composed.tight_epsilon([], losses, "zero_out", 1e-15) is None


SAMPLED = [
    Composition(adjacency, ((count, rate, multiplier),), (), full)
    for adjacency in RELATIONS
    for count, rate, multiplier, full in ((200, 0.05, 4.0, 0.0), (1000, 0.002, 1.5, 0.01), (3, 0.6, 9.0, 0.0))
]


@pytest.mark.slow
@pytest.mark.parametrize("composition", SAMPLED)
@pytest.mark.parametrize("slack", (1e-8, 1e-11))
def test_a_cover_covers(composition, slack):
    """Checked on a finer grid of epsilon; the cover is tight: a mu two percent smaller would not cover."""
    budget = Budget(composition.epsilon(1.0, Budget(1.0, DELTA, composition.adjacency)), DELTA, composition.adjacency)
    mu = gaussian_cover(composition, budget, slack)
    distribution, _ = composition.losses(1.0, budget)
    epsilons = np.linspace(0, 3 * budget.epsilon, 20_011)
    needed = np.array(distribution.get_delta_for_epsilon(epsilons))
    covered = np.array([gaussian_delta(mu, epsilon) for epsilon in epsilons])
    assert (needed <= slack + (1 - slack) * covered).all()
    less = np.array([gaussian_delta(0.98 * mu, epsilon) for epsilon in epsilons])
    assert (needed > slack + (1 - slack) * less).any()


def test_covers_of_what_is_not_sampled():
    budget = Budget(1.0, DELTA, "zero_out")
    assert gaussian_cover(Composition("zero_out", (), (), 0.25), budget, 0.0) == 0.5
    selections = Composition("zero_out", (), ((3, 4.0),), 0.25)  # three of epsilon 2 / 4, whose losses have that range
    assert gaussian_cover(selections, budget, 0.0) == pytest.approx(math.sqrt(0.25 + 3 * pure_cover(0.25) ** 2))
    assert gaussian_cover(SAMPLED[0], budget, 1e-16) == math.inf


@pytest.mark.parametrize("epsilon", (0.01, 0.5, 3.0))
def test_a_pure_guarantee_lies_under_its_cover(epsilon):
    mu = pure_cover(epsilon)
    for other in np.linspace(0, epsilon, 50):  # hockey-stick divergence of randomised response
        p = 1 / (1 + math.exp(-epsilon))
        assert p - math.exp(other) * (1 - p) <= gaussian_delta(mu, other) + 1e-12
    assert p - (1 - p) == pytest.approx(gaussian_delta(mu, 0.0))
    assert pure_cover(1000.0) == math.inf


@pytest.mark.parametrize("epsilon", (1e-300, 1e-17, 3e-16, 3.6e-12, 1e-7, 0.99e-4, 1.01e-4, 0.01))
def test_a_cover_of_hardly_anything_is_not_rounded_to_nothing(epsilon):
    """If it were charged as 0, any number of fits would be admitted. Compared with the first terms of a series."""
    least = math.sqrt(math.pi / 2) * (epsilon - (4 - math.pi) / 48 * epsilon**3)
    assert least * (1 - 1e-11) <= pure_cover(epsilon) <= least * (1 + 3e-9)


@pytest.mark.slow
def test_the_charge_of_a_sampled_fit_is_near_that_of_a_full_one():
    X, y = np.random.default_rng(0).normal(size=(500, 3)), np.arange(500) % 2
    ledger = PrivacyLedger(epsilon=3, delta=DELTA)
    with ledger:
        fitted(DPLogisticRegression(1.0, delta=DELTA, solver="sgd"), X, y)
    (entry,) = ledger.entries
    assert 1.0 <= entry.charge.mu / gaussian_mu(1.0, DELTA) < 1.05

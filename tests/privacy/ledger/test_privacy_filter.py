"""Tests the filter of a ledger against analysts who choose each release after seeing the earlier ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from skdp.privacy.accounting.gaussian_dp import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.privacy.ledger.privacy_filter import Charge, Filter


def gaussian(mu, slack=0.0):
    return Charge(1.0, 1e-6, mu, slack)


def alone(epsilon, delta):
    return Charge(epsilon, delta, 0.0, 0.0, by_itself=True)


def charged(rule, *charges):
    for charge in charges:
        assert rule.admits(charge)
        rule = Filter(rule.epsilon, rule.delta, (*rule.charges, charge))
    return rule


EMPTY = Filter(3.0, 1e-6, ())


def test_gaussian_charges_add_by_their_squares():
    rule = charged(EMPTY, gaussian(0.3), gaussian(0.4))
    assert rule.spent_epsilon == pytest.approx(gaussian_epsilon(0.5, 1e-6 - rule.reserve), rel=1e-12)
    assert rule.mu_left == pytest.approx(math.sqrt(rule.largest_mu**2 - 0.25), rel=1e-12)
    assert rule.admits(gaussian(rule.mu_left * (1 - 1e-9)))
    assert not rule.admits(gaussian(rule.mu_left * (1 + 1e-6)))


@pytest.mark.parametrize("delta, cost", ((1e-9, 1 / 200), (1e-6, 1 / 15_000), (1e-4, 1 / 10_000)))
def test_what_the_reserve_costs(delta, cost):
    """Of the epsilon at which a single fit on full data is charged by its cover."""
    rule = Filter(3.0, delta, ())
    assert (1 - cost) * 3.0 < gaussian_epsilon(rule.largest_mu, delta) < 3.0
    assert 1e-10 <= rule.reserve <= 0.1 * delta


def test_slack_is_limited_by_the_reserve():
    assert EMPTY.admits(gaussian(0.1, EMPTY.reserve))
    assert not EMPTY.admits(gaussian(0.1, 1.01 * EMPTY.reserve))
    rule = EMPTY
    for _ in range(150):  # the next slack shrinks with the rest, and what is charged is counted
        assert 0 < rule.next_slack <= rule.slack_left / 50
        rule = charged(rule, gaussian(1e-3, rule.next_slack))
    assert math.fsum(charge.slack for charge in rule.charges) == pytest.approx(EMPTY.reserve - rule.slack_left)


def test_guarantees_of_which_nothing_else_is_known_add_up_and_come_first():
    rule = charged(EMPTY, alone(1.0, 4e-7), alone(0.5, 0.0))
    assert rule.spent_epsilon == pytest.approx(1.5)
    assert rule.rest == pytest.approx((1.5, 6e-7))
    assert not rule.admits(alone(1.6, 0.0))
    assert not rule.admits(alone(0.1, 7e-7))
    assert rule.largest_mu == gaussian_mu(rule.rest[0], rule.rest[1] - rule.reserve)
    rule = charged(rule, gaussian(0.1))
    assert not rule.admits(alone(0.1, 0.0))
    assert rule.spent_epsilon == pytest.approx(1.5 + gaussian_epsilon(0.1, rule.rest[1] - rule.reserve))


def test_a_whole_ceiling_can_be_spent_at_once_and_then_nothing():
    rule = charged(EMPTY, alone(3.0, 1e-6))
    assert rule.epsilon_left(1e-6) == 0
    assert not rule.admits(gaussian(1e-9, 0.0))
    assert not rule.admits(alone(1e-9, 0.0))


@pytest.mark.slow
@given(
    st.floats(0.01, 8),
    st.floats(1e-10, 1e-3),
    st.floats(1e-10, 1e-3),
    st.lists(st.floats(0, 0.5), max_size=4),
    st.floats(0, 0.9),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_is_said_to_be_left_fits(epsilon, delta, fit_delta, mus, share):
    rule = Filter(epsilon, delta, ())
    if share > 0.1:
        rule = charged(rule, alone(share * epsilon, share * delta))
    for mu in mus:
        if rule.admits(gaussian(mu)):
            rule = charged(rule, gaussian(mu))
    left = rule.epsilon_left(fit_delta)
    if left:
        by_cover = rule.admits(gaussian(gaussian_mu(left, fit_delta)))
        assert by_cover or rule.admits(alone(left, fit_delta))
        more = left * 1.002 + 1e-6
        assert not rule.admits(gaussian(gaussian_mu(more, fit_delta)))
        assert not rule.admits(alone(more, fit_delta))


LOSSES = np.linspace(-12, 12, 200_001)


def gain(loss, mu, epsilon):
    """What a further Gaussian release of parameter mu adds to ``P(S) - exp(epsilon) Q(S)``, in the mean over P, from a loss."""
    rest = epsilon - loss
    return norm.cdf(-rest / mu + mu / 2) - np.exp(np.minimum(rest, 700)) * norm.cdf(-rest / mu - mu / 2)


def response(loss, epsilon, own, delta):
    """The same for a release that tells all with probability delta, else is randomised response of parameter ``own``."""
    p = 1 / (1 + math.exp(-own))
    parts = [weight * np.maximum(0, -np.expm1(epsilon - loss - sign * own)) for weight, sign in ((p, 1), (1 - p, -1))]
    return delta + (1 - delta) * sum(parts)


def value(mu, *choices):
    """Hockey-stick divergence of one Gaussian release, after which the best of some further releases is taken."""
    weight = norm.pdf(LOSSES, mu**2 / 2, mu) * (LOSSES[1] - LOSSES[0])
    return (weight * np.maximum.reduce(choices)).sum()


def test_an_analyst_who_turns_after_a_look_stays_under_the_ceiling():
    """The analyst uses the slack if the rest of the Gaussian budget is useless, and otherwise that rest."""
    epsilon, delta = 1.0, 1e-3
    rule = Filter(epsilon, delta, ())
    for share in (0.05, 0.3, 0.7, 0.95):
        first = math.sqrt(share) * rule.largest_mu
        after = charged(rule, gaussian(first))
        rest, slack = after.mu_left, after.slack_left
        turned = slack + (1 - slack) * gain(LOSSES, rest, epsilon)
        found = value(first, gain(LOSSES, rest, epsilon), turned)
        assert 0.99 * delta < found <= delta * (1 + 1e-6)


def test_turning_to_sums_of_guarantees_after_a_look_would_break_the_ceiling():
    """Shows why there is a reserve: all of delta for Gaussian fits, then zCDP plus sums for other fits, is not a filter."""
    epsilon, delta = 1.0, 1e-3
    first = 0.5 * gaussian_mu(epsilon, delta)
    rest = math.sqrt(gaussian_mu(epsilon, delta) ** 2 - first**2)
    assert value(first, gain(LOSSES, rest, epsilon)) == pytest.approx(delta, rel=1e-3)
    other, own = 0.9 * delta, 0.147
    zcdp = first**2 / 2 + math.sqrt(2 * first**2 * math.log(1 / (delta - other)))
    assert zcdp + own <= epsilon  # the other rule admits the turn
    assert gaussian_delta(math.hypot(first, rest), epsilon) <= delta * (1 + 1e-6)
    found = value(first, gain(LOSSES, rest, epsilon), response(LOSSES, epsilon, own, other))
    assert found > 1.4 * delta


def test_what_is_left_for_several_fits_fits_several_times():
    rule = charged(EMPTY, gaussian(0.2))
    left = rule.epsilon_left(1e-6, n_fits=7)
    each = gaussian(gaussian_mu(left, 1e-6))
    rule = charged(rule, *[each] * 7)
    assert rule.epsilon_left(1e-6) < 0.1 * left

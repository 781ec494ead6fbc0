"""From error rates to epsilon: inverse to the trade-off of the claim, valid as often as stated, and not vacuous."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim, definition_epsilon, gaussian_parameter
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.objective_perturbation import TiltedObjective
from skdp.privacy.queries import Gradient
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.privacy.schedule import Curve, Gaussian, PoissonGaussian, Release, Schedule, Selection

ADJACENCIES = ("replace_one", "zero_out")


TILTED = TiltedObjective("objective", Minimization(40, 2, 0.5, 0.25, 100.0, 0.7, True))


def name(mechanism):
    return "objective" if mechanism is TILTED else str(mechanism)


def claim(mechanism, count=4, epsilon=4.0, adjacency="replace_one"):
    count = 1 if isinstance(mechanism, Curve) else count
    schedule, budget = Schedule(((count, Release(Gradient, mechanism, 1.0)),)), Budget(epsilon, 1e-5, adjacency)
    return Claim(schedule, calibrate(schedule, budget), budget)


def scores_of(claimed, rate, shift, n_runs, rng):
    """Scores of the worst case: normal answers, with the canary in some of them or its opposite."""
    noise = claimed.scale * Gradient.relative_sensitivity[claimed.budget.adjacency]
    absent = -1.0 if claimed.budget.adjacency == "replace_one" else 0.0
    sides = []
    for centre in (absent, 1.0):
        answers = shift * centre * (rng.random((n_runs, len(claimed.schedule))) < rate) + noise * rng.normal(
            size=(n_runs, len(claimed.schedule))
        )
        exponents = (answers[..., None] * [1.0, absent] - 0.5 * np.square([1.0, absent])) / noise**2
        ratios = np.log(1 - rate + rate * np.exp(exponents))
        sides.append((ratios[..., 0] - ratios[..., 1]).sum(axis=1))
    return np.array(sides)


@pytest.mark.parametrize("epsilon", (0.1, 1.0, 4.0))
@pytest.mark.parametrize("positive", (0.001, 0.2, 0.7))
def test_the_definition_gives_back_its_epsilon(epsilon, positive):
    delta = 1e-5
    negative = max(1 - delta - np.exp(epsilon) * positive, np.exp(-epsilon) * (1 - delta - positive))
    assert definition_epsilon(np.array([positive, negative]), delta) == pytest.approx(epsilon, rel=1e-9)
    assert definition_epsilon(np.array([negative, positive]), delta) == pytest.approx(epsilon, rel=1e-9)


def test_guessing_proves_nothing():
    rates = np.array([0.3, 0.7])
    assert definition_epsilon(rates, 1e-5) == 0
    assert gaussian_parameter(rates) == pytest.approx(0, abs=1e-12)
    assert claim(PoissonGaussian(0.5)).epsilon(rates, "subsampled") == 0


@pytest.mark.parametrize("mu", (0.1, 0.9, 2.5))
@pytest.mark.parametrize("positive", (0.001, 0.2, 0.7))
def test_the_gaussian_trade_off_gives_back_its_mu(mu, positive):
    rates = np.array([positive, ndtr(ndtri(1 - positive) - mu)])
    assert gaussian_parameter(rates) == pytest.approx(mu, rel=1e-9)
    assert claim(Gaussian()).epsilon(rates, "gaussian") == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=1e-8)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", (Gaussian(), PoissonGaussian(0.5), PoissonGaussian(0.02), Selection(), TILTED), ids=name)
@pytest.mark.parametrize("positive", (0.01, 0.3))
def test_rates_on_the_claimed_trade_off_give_back_the_claim(adjacency, mechanism, positive):
    claimed = claim(mechanism, adjacency=adjacency)
    rates = np.array([positive, *claimed.trade_off(np.array([positive]), claimed.method)])
    assert claimed.epsilon(rates, claimed.method) == pytest.approx(4, rel=1e-8 if claimed.method == "gaussian" else 1e-2)
    assert claimed.epsilon(rates, "clopper-pearson") < 4


@pytest.mark.parametrize("mechanism", (Gaussian(), PoissonGaussian(0.5), Selection()), ids=str)
def test_the_trade_off_is_a_trade_off(mechanism):
    claimed = claim(mechanism)
    for method in ("clopper-pearson", claimed.method):
        least = claimed.trade_off(np.linspace(0, 1, 101), method)
        assert least[0] >= 1 - 1e-3
        assert least[-1] == pytest.approx(0, abs=1e-12)
        assert (np.diff(least) <= 1e-12).all()
        assert (np.diff(least, 2) >= -1e-9).all()
    positive = np.linspace(0.01, 0.99, 50)
    for method in ("clopper-pearson", claimed.method):  # either table may be the one with the canary
        twice = claimed.trade_off(claimed.trade_off(positive, method), method)
        np.testing.assert_allclose(twice, positive, atol=5e-3)
    assert (claimed.trade_off(positive, claimed.method) >= claimed.trade_off(positive, "clopper-pearson")).all()


@pytest.mark.parametrize("strength", (10.0, 100.0))
@pytest.mark.parametrize("delta", (0.0, 1e-5))
def test_a_proof_adds_nothing_to_rates_that_any_noise_permits(strength, delta):
    """What a log-determinant costs is spent, but no attack that nearly guesses has shown it."""
    mechanism = TiltedObjective("objective", Minimization(40, 2, 0.5, 25.0, strength, 0.7, True))
    schedule, budget = Schedule(((1, Release(Gradient, mechanism, 1.0)),)), Budget(4.0, delta, "zero_out")
    claimed = Claim(schedule, calibrate(schedule, budget), budget)
    rates = np.array([0.47, 0.5])
    assert mechanism.facts.log_determinant > 0.2
    assert claimed.epsilon(rates, "proof") == definition_epsilon(rates, delta) < 0.1


@pytest.mark.parametrize("positive", (1e-4, 0.01, 0.2))
def test_a_proof_refutes_whatever_the_definition_refutes(positive):
    budget = Budget(4.0, 0.0, "zero_out")
    schedule = Schedule(((1, Release(Gradient, TILTED, 1.0)),))
    claimed = Claim(schedule, calibrate(schedule, budget), budget)
    rates = np.array([positive, max(1 - np.exp(4.001) * positive, np.exp(-4.001) * (1 - positive))])
    assert claimed.epsilon(rates, "proof") > 4.0


def test_the_method_is_the_strongest_that_holds():
    assert claim(Gaussian()).method == claim(PoissonGaussian(1.0)).method == "gaussian"
    assert claim(PoissonGaussian(0.5)).method == "subsampled"
    assert claim(Selection()).method == "cover"
    assert claim(TILTED).method == "proof"


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("method", ("gaussian", "clopper-pearson"))
def test_bounds_exceed_the_truth_as_seldom_as_stated(adjacency, method, rng):
    """At confidence 0.8, 1000 audits of the worst case: 268 wrong ones have probability 1e-7 if each has 0.2."""
    claimed = claim(Gaussian(), adjacency=adjacency)
    bounds = [lower_bound("final", scores_of(claimed, 1.0, 1.0, 200, rng), claimed, method, 0.8) for _ in range(1000)]
    assert sum(bound.epsilon > 4 for bound in bounds) <= 268
    if method == "gaussian":
        assert np.median([bound.epsilon for bound in bounds]) > 2


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rate", (0.2, 0.7))
def test_subsampled_bounds_are_near_the_truth_and_see_a_larger_signal(adjacency, rate, rng):
    """The first bound is wrong with probability at most 1e-4."""
    claimed = claim(PoissonGaussian(rate), adjacency=adjacency)
    right = lower_bound("transcript", scores_of(claimed, rate, 1.0, 100_000, rng), claimed, "subsampled", 1 - 1e-4)
    assert 0.8 * 4 <= right.epsilon <= 4
    wrong = lower_bound("transcript", scores_of(claimed, rate, 2.0, 10_000, rng), claimed, "subsampled", 1 - 1e-4)
    assert wrong.epsilon > 4


def test_the_judged_runs_do_not_choose_the_threshold(rng):
    claimed, scores = claim(Gaussian()), rng.normal(size=(2, 100))
    scores[1] += 3
    first = lower_bound("final", scores, claimed, "gaussian", 0.95)
    scores[:, 25:] = rng.normal(size=(2, 75))
    second = lower_bound("final", scores, claimed, "gaussian", 0.95)
    assert first.threshold == second.threshold
    assert first.threshold in scores[:, :25]
    assert first.epsilon > second.epsilon


def test_both_error_rates_share_what_may_go_wrong(rng):
    """Half of it each: no run of 75 wrong gives the bound ``1 - 0.025**(1 / 75)`` at confidence 0.95."""
    scores = np.stack([np.zeros(100), np.ones(100)])
    bound = lower_bound("final", scores, claim(Gaussian()), "clopper-pearson", 0.95)
    assert bound.false_positive_rate == pytest.approx(1 - 0.025 ** (1 / 75))
    assert bound.false_negative_rate == pytest.approx(1 - 0.025 ** (1 / 75))

"""Objective perturbation and noise of exponential norm: exact densities against the claims, calibration, the oracle."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from pairwise import pairwise
from scipy.stats import gamma, kstest
from seeded import source

from skdp.losses import HuberHinge, Logistic
from skdp.privacy.accounting.gaussian_dp import gaussian_delta
from skdp.privacy.accounting.noise_calibration import calibrate, spent_epsilon
from skdp.privacy.budget import ADJACENCIES, Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.objective_perturbation import ExponentialNorm, TiltedObjective, smallest_strength, tilted_delta
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Gradient, Minimum
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.privacy.schedule import Release, Schedule

R, N = 1.0, 4
FALSE_ALARM = 1e-6
SMOOTHNESS = Logistic.smoothness * R**2


class Huber:
    """Absolute error of numbers that labels 0 and 1 stand for, rounded off: a derivative of either sign."""

    name, lipschitz, smoothness, n_outputs, targets, one_sided = "huber", 1.0, 4.0, 1, "classes", False

    def value(self, raw, labels):
        size = np.abs(4 * (raw[:, 0] - self.goal(labels)))
        return np.where(size <= 1, size**2 / 8, (size - 0.5) / 4)

    def derivative(self, raw, labels):
        return np.clip(4 * (raw - self.goal(labels)[:, None]), -1, 1)

    def goal(self, labels):
        return 0.6 * (2 * np.asarray(labels) - 1)


LOGISTIC = Logistic()


def facts(loss=LOGISTIC, strength=1.0, clip_norm=R, size=1, n_samples=N):
    smoothness = loss.smoothness * R**2
    return Minimization(n_samples, size, clip_norm, smoothness, strength, 1.0, loss.one_sided)


def gradients(points, records, loss, strength, clip_norm):
    """Gradient of the objective in one dimension, and its derivative, at many points; a null record is None."""
    total, slope = strength * points, np.full_like(points, strength)
    for x, label in (record for record in records if record is not None):
        residuals = [
            np.clip(loss.derivative((x * at)[:, None], np.full(at.size, label))[:, 0], -clip_norm / abs(x), clip_norm / abs(x))
            for at in (points, points - 1e-6, points + 1e-6)
        ]
        total, slope = total + x * residuals[0], slope + x * (residuals[2] - residuals[1]) / 2e-6
    return total, slope


def log_density(points, records, loss, strength, clip_norm, log_noise):
    total, slope = gradients(points, records, loss, strength, clip_norm)
    return log_noise(total) + np.log(slope)


def others(rng):
    """Records that both tables have: none, clusters at either label, scattered ones."""
    yield []
    yield [(R, 1)] * (N - 1)
    yield [(R, 0), (-R, 1), (R / 2, 0)]
    yield [(float(x), int(label)) for x, label in zip(rng.uniform(-R, R, N - 1), rng.integers(0, 2, N - 1), strict=True)]


PAIRS = {
    "zero_out": [((R, 1), None), ((R, 0), None), ((R / 2, 1), None)],
    "replace_one": [((R, 1), (R, 0)), ((R, 1), (-R, 1)), ((R, 1), (R / 3, 0)), ((R, 1), (R, 1))],
}


def normal(sigma):
    return lambda b: -((b / sigma) ** 2) / 2 - math.log(sigma * math.sqrt(2 * math.pi))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", (Logistic(), HuberHinge(), Huber()), ids=lambda loss: loss.name)
def test_the_exact_density_never_exceeds_the_claim_and_comes_near(adjacency, loss, rng):
    """In one dimension the law of the minimum is an integral: over adversarial neighbours, in both directions."""
    largest = 0.0
    for epsilon in (0.5, 2.0):
        for strength in (1.3 * smallest_strength(loss.smoothness * R**2, epsilon), 20.0, 1000.0):
            for clip_norm in (R, R / 4):
                for target in (1e-2, 1e-6):
                    claimed = facts(loss, strength, clip_norm)
                    mechanism = TiltedObjective("objective", claimed)
                    budget = Budget(epsilon, target, adjacency)
                    sigma = mechanism.scale(budget) * clip_norm
                    bound = tilted_delta(0.99 * epsilon, clip_norm / sigma, claimed.log_determinant, adjacency, loss.one_sided)
                    assert bound == pytest.approx(0.99 * target, rel=1e-5) and bound <= 0.99 * target
                    for shared in others(rng):
                        for pair in PAIRS[adjacency]:
                            found = max(
                                hockey_stick(shared, pair[::sign], loss, strength, clip_norm, sigma, 0.99 * epsilon)
                                for sign in (1, -1)
                            )
                            assert found <= bound * (1 + 1e-4)
                            largest = max(largest, found / bound)
    assert largest > (0.95 if loss.one_sided else 0.4)


def hockey_stick(shared, pair, loss, strength, clip_norm, sigma, epsilon):
    """Integral of the positive part of p - exp(epsilon) q; the points are the minima for evenly spaced b."""
    grid = np.linspace(-12, 12, 12001 if isinstance(loss, HuberHinge) else 6001)  # its density jumps
    points = grid * (sigma + N * clip_norm / 6) / strength
    first, second = (log_density(points, [*shared, record], loss, strength, clip_norm, normal(sigma)) for record in pair)
    assert np.trapezoid(np.exp(first), points) == pytest.approx(1, abs=0.02)  # up to the kinks of the clip
    gap = np.where(first > second + epsilon, -np.expm1(np.minimum(second + epsilon - first, 0.0)), 0.0)
    return float(np.trapezoid(np.exp(first) * gap, points))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", (Logistic(), Huber()), ids=lambda loss: loss.name)
def test_with_exponential_noise_no_outcome_is_more_telling_than_epsilon(adjacency, loss, rng):
    largest = 0.0
    for epsilon in (0.5, 2.0):
        for strength in (1.3 * smallest_strength(loss.smoothness * R**2, epsilon), 1000.0):
            for clip_norm in (R, R / 4):
                scale = TiltedObjective("objective", facts(loss, strength, clip_norm)).scale(Budget(epsilon, 0.0, adjacency))
                points = np.linspace(-1, 1, 4001) * 20 * (scale + N) * clip_norm / strength
                noise = (lambda s: lambda b: -np.abs(b) / s)(scale * clip_norm)
                for shared in others(rng):
                    for pair in PAIRS[adjacency]:
                        logs = [log_density(points, [*shared, one], loss, strength, clip_norm, noise) for one in pair]
                        found = float(np.abs(logs[0] - logs[1]).max())
                        assert found <= 0.99 * epsilon * (1 + 1e-6)
                        largest = max(largest, found / epsilon)
    assert largest > 0.9


class Steep(Huber):
    """A derivative that changes its sign within 1e-4."""

    def derivative(self, raw, labels):
        return np.clip(1e4 * raw, -1, 1)


def test_the_factor_of_losses_of_both_signs_is_needed():
    """A null record in place of one that pulls to 0 from both sides gives mass to both: up to twice what one sign would allow."""
    one = gaussian_delta(0.5, 1.0)
    found = hockey_stick([], (None, (R, 1)), Steep(), 1.0, R, R / 0.5, 1.0)
    assert 1.9 * one < found <= 2 * one


BUDGETS = [(epsilon, delta) for epsilon in (0.01, 0.3, 1.0, 8.0, 500.0) for delta in (1e-290, 1e-11, 1e-3, 0.5)]


@pytest.mark.parametrize(
    "adjacency, one_sided, spent, above",
    pairwise(product(ADJACENCIES, (True, False), [*BUDGETS, (0.3, 0.0), (8.0, 0.0)], (1.0, 1.5, 1e6))),
)
def test_calibration_spends_the_budget(adjacency, one_sided, spent, above):
    epsilon, delta = spent
    budget = Budget(epsilon, delta, adjacency)
    strength = above * smallest_strength(SMOOTHNESS, epsilon)
    schedule = scheduled(TiltedObjective("objective", replace(facts(strength=strength), one_sided=one_sided)))
    scale = calibrate(schedule, budget)
    assert 0.999 * epsilon <= spent_epsilon(schedule, scale, budget) <= epsilon
    assert spent_epsilon(schedule, 0.9 * scale, budget) > epsilon
    assert calibrate(schedule, replace(budget, epsilon=math.inf)) == 0.0
    assert spent_epsilon(schedule, 0.0, budget) == math.inf


@pytest.mark.parametrize("epsilon", (0.01, 1.0, 100.0))
def test_noise_on_the_minimum_spends_epsilon(epsilon):
    budget, schedule = Budget(epsilon, 0.0, "zero_out"), scheduled(ExponentialNorm("noise", facts()))
    scale = calibrate(schedule, budget)
    assert scale * epsilon >= 1
    assert 0.999 * epsilon <= spent_epsilon(schedule, scale, budget) <= epsilon


def scheduled(mechanism, count=1):
    return Schedule(((count, Release(Minimum, mechanism, None, mechanism.facts.size)),))


def test_deltas_of_a_curve_fall_with_epsilon_and_hold_the_budget():
    budget = Budget(1.0, 1e-4, "replace_one")
    for mechanism in (TiltedObjective("objective", facts(strength=5.0)), ExponentialNorm("noise", facts())):
        for now in (budget, replace(budget, delta=0.0)):
            if now.delta or isinstance(mechanism, TiltedObjective):
                deltas = mechanism.deltas(mechanism.scale(now), np.linspace(0, 3, 40), now)
                assert (np.diff(deltas) <= 0).all() and deltas[-1] < deltas[0] <= 1
                assert mechanism.deltas(mechanism.scale(now), np.array([1.0]), now)[0] <= now.delta * (1 + 1e-6)


@pytest.mark.parametrize("smoothness", (1e-3, 0.5, 1e6))
@pytest.mark.parametrize("epsilon", (1e-3, 1.0, 50.0))
def test_the_smallest_strength_leaves_a_hundredth_of_epsilon(smoothness, epsilon):
    smallest = replace(facts(), smoothness=smoothness, strength=smallest_strength(smoothness, epsilon))
    assert smallest.log_determinant == pytest.approx(0.99**2 * epsilon, rel=1e-6)
    assert smallest.log_determinant <= 0.99**2 * epsilon


def test_a_curve_is_alone_in_its_schedule():
    for schedule in (scheduled(ExponentialNorm("noise", facts()), count=2),):
        with pytest.raises(PrivacyAccountingError, match="to be alone"):
            calibrate(schedule, Budget(1.0, 0.0, "zero_out"))


def test_a_delta_below_what_float64_divides_is_refused():
    with pytest.raises(ValueError, match="or 0 for pure"):
        TiltedObjective("objective", facts()).scale(Budget(1.0, 1e-300, "zero_out"))


LONE = np.array([[1.0, 0.0]] * 2), np.array([0, 1], dtype=np.int8)


def asked(mechanism, budget, scale, seed, query=None):
    rows = TrainingData(*LONE, data_norm=1.0)
    query = query or Minimum(Logistic(), bounded(mechanism, budget))
    schedule = Schedule(((1, Release(Minimum, mechanism, query.clip_norm, 2)),))
    oracle = Oracle(rows, schedule, budget, scale, source(seed))
    return oracle.ask(query)


def bounded(mechanism, budget):
    return mechanism.with_tilt(budget) if isinstance(mechanism, TiltedObjective) else mechanism.facts


LAWS = {
    "normal": (TiltedObjective, 1e-5),
    "exponential norm": (TiltedObjective, 0.0),
    "exponential norm of the result": (ExponentialNorm, 0.0),
}


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("law", LAWS)
def test_released_minima_have_the_stated_noise(law, adjacency):
    """A strong penalty makes the minimum -b / strength, and what is left of two records cancels; false alarm below 1e-6."""
    kind, delta = LAWS[law]
    mechanism, budget = kind("law", facts(size=2, n_samples=2, strength=1e4)), Budget(1.0, delta, adjacency)
    scale = mechanism.scale(budget)
    draws = np.array([asked(mechanism, budget, scale, seed) for seed in range(2000)]) * 1e4
    if law == "normal":
        draws, expected = draws.ravel(), "norm"
    else:
        draws, expected = np.linalg.norm(draws, axis=1), gamma(2).cdf
    stated = scale if kind is TiltedObjective else scale * {"replace_one": 2, "zero_out": 1}[adjacency]
    assert kstest(draws / stated, expected).pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(draws / (wrong * stated), expected).pvalue < FALSE_ALARM


def test_the_gate_refuses_another_minimum_than_the_scheduled_one():
    budget = Budget(1.0, 1e-5, "zero_out")
    mechanism = TiltedObjective("objective", facts(size=2, n_samples=2))
    scale, right = mechanism.scale(budget), mechanism.with_tilt(budget)
    for wrong in (replace(right, strength=2.0), replace(right, tilt=right.tilt / 2), replace(right, tilt_error=0.0)):
        with pytest.raises(PrivacyAccountingError, match="not the one that was scheduled"):
            asked(mechanism, budget, scale, 0, Minimum(Logistic(), wrong))
    pure = replace(budget, delta=0.0)
    with pytest.raises(PrivacyAccountingError, match="not the one that was scheduled"):
        asked(ExponentialNorm("noise", right), pure, 1.0, 0, Minimum(Logistic(), replace(right, strength=2.0)))


def test_gradients_of_this_file_are_those_of_the_query():
    X, y, w = np.array([[0.3], [-1.0], [0.9]]), np.array([1, 0, 0], dtype=np.int8), np.array([-2.0, 0.0, 3.0])
    rows = TrainingData(X, y, data_norm=R)
    ours = gradients(w, [(float(x[0]), int(label)) for x, label in zip(X, y, strict=True)], Logistic(), 0.0, 0.4)[0]
    theirs = [Gradient(Logistic(), np.array([[at]]), 0.4).evaluate(rows)[0] for at in w]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)

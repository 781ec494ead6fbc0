"""Selections: what they spend, against the library and exact worst cases, and that the oracle chooses as the mechanism says."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import seeded
from dp_accounting import ZCDpEvent
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri, softmax
from scipy.stats import binom, chisquare, gumbel_r, kstest

from skdp.losses import Logistic
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon
from skdp.privacy.accounting.noise_calibration import calibrate, selection_epsilon, spent_epsilon
from skdp.privacy.accounting.zcdp import zcdp_epsilon, zcdp_rho
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger.gaussian_cover import pure_cover, selection_cover
from skdp.privacy.noise.selection import GUMBEL_ERROR, GumbelNoise
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Gradient, Scores
from skdp.privacy.report.statement import describe_releases
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule, Selection

ADJACENCIES = ("replace_one", "zero_out")
FALSE_ALARM = 1e-6
DELTAS = (0.3, 1e-2, 1e-5, 1e-9, 1e-100)
EPSILONS = (1e-4, 0.1, 1.0, 4.0, 100.0)


@dataclass(frozen=True)
class Votes(Scores):
    """The number of records of each class: a record moves a score by at most 1."""

    clip_norm: float = 1.0
    size: int = 4
    error: float = 0.0
    relative_sensitivity: ClassVar = {"replace_one": 1.0, "zero_out": 1.0}

    def parameters(self):
        return ()

    def sensitivity(self, adjacency):
        return self.clip_norm

    def rounding_error(self, n_samples, summation_error):
        return self.error

    def evaluate(self, rows):
        return rows.label_counts(5)[: self.size]


def selections(count, weight=1.0, clip_norm=1.0):
    return Schedule(((count, Release(Votes, Selection(weight), clip_norm, size=4)),))


def electorate(counts=(3, 1, 0, 2)):
    labels = np.repeat(np.arange(len(counts), dtype=np.int8), counts)
    return TrainingData(np.zeros((len(labels), 1)), labels, data_norm=1.0)


def oracle_for(schedule, epsilon, rows=None, delta=1e-6, adjacency="replace_one", seed=0):
    budget = Budget(epsilon, delta, adjacency)
    return Oracle(rows or electorate(), schedule, budget, calibrate(schedule, budget), seeded.source(seed))


@pytest.mark.parametrize("rho", (1e-6, 1e-3, 0.05, 1.0, 50.0))
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_takes_the_best_of_all_orders(rho, delta):
    x = np.geomspace(1e-6, 1e12, 400_001)
    best = ((1 + x) * rho - np.log1p(1 / x) - (math.log(delta) + np.log1p(x)) / x).min()
    assert zcdp_epsilon(rho, delta) == pytest.approx(max(best, 0.0), rel=1e-7, abs=1e-12)
    mu = math.sqrt(2 * rho)
    assert zcdp_epsilon(rho, delta) > gaussian_epsilon(mu, delta) or gaussian_epsilon(mu, delta) == 0


@pytest.mark.parametrize("rho", (1e-3, 0.05, 1.0))
@pytest.mark.parametrize("delta", (1e-2, 1e-5, 1e-9))
def test_zcdp_is_what_the_library_says(rho, delta):
    """The library tries only some orders, so its epsilon is slightly above ours."""
    accountant = RdpAccountant(1 + np.geomspace(0.5, 1e3, 500)).compose(ZCDpEvent(rho / 10), 10)
    assert (1 - 1e-8) * zcdp_epsilon(rho, delta) <= accountant.get_epsilon(delta) <= 1.001 * zcdp_epsilon(rho, delta)


@pytest.mark.parametrize("epsilon", (1e-9, 1e-6, *EPSILONS, 1e6))
@pytest.mark.parametrize("delta", (*DELTAS, 1e-300))
def test_rho_spends_the_budget_and_no_more(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert 0 < zcdp_epsilon(rho, delta) <= epsilon
    assert zcdp_epsilon(rho * (1 + 1e-7), delta) > epsilon or epsilon < 1e-8
    if epsilon >= 1e-6:
        assert zcdp_epsilon(rho, delta) >= 0.999 * epsilon


def test_no_noise_no_release_no_delta():
    assert zcdp_epsilon(0.0, 1e-5) == zcdp_rho(1.0, 0.0) == 0.0
    assert zcdp_epsilon(math.inf, 1e-5) == zcdp_rho(math.inf, 1e-5) == zcdp_epsilon(1.0, 0.0) == math.inf
    with pytest.raises(ValueError, match="epsilon=1e-10 is too small"):
        zcdp_rho(1e-10, 1e-5)


@pytest.mark.parametrize("length", (0.01, 0.5, 3.0))
@pytest.mark.parametrize("order", (1.001, 1.5, 2.0, 7.0, 100.0))
def test_a_loss_of_bounded_range_is_as_concentrated_as_stated(length, order):
    """Two values at the ends of the interval are the worst case; the constant 1/8 is attained by short intervals."""
    odds = np.linspace(-30, 30, 3001)
    p, q = expit(odds + length), expit(odds)
    moments = np.logaddexp(order * np.log(p) + (1 - order) * np.log(q), order * np.log1p(-p) + (1 - order) * np.log1p(-q))
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(moments) / (order - 1)
    assert largest <= order * length**2 / 8 * (1 + 1e-9) + 1e-12
    if length * order < 0.1:
        assert largest >= 0.99 * order * length**2 / 8


def exact_epsilon(count, log_odds, delta):
    """Epsilon of a number of coins whose log-odds are either of plus and minus ``log_odds / 2``."""
    heads = np.arange(count + 1)
    likely, unlikely = (binom.pmf(heads, count, expit(sign * log_odds / 2)) for sign in (1, -1))

    def excess(epsilon):
        return np.maximum(likely - math.exp(epsilon) * unlikely, 0).sum() - delta

    return brentq(excess, 0.0, count * log_odds) if excess(0.0) > 0 else 0.0


@pytest.mark.parametrize("count", (1, 5, 40, 1000))
@pytest.mark.parametrize("epsilon", (0.1, 1.0, 4.0))
@pytest.mark.parametrize("delta", (1e-3, 1e-6))
def test_selections_cost_no_less_than_their_worst_case_and_no_more_than_pure_losses(count, epsilon, delta):
    budget, schedule = Budget(epsilon, delta, "zero_out"), selections(count)
    scale = calibrate(schedule, budget)
    single = selection_epsilon(Selection(), scale)
    assert exact_epsilon(count, single, delta) <= epsilon
    if count >= 40:
        assert exact_epsilon(count, single, delta) >= 0.8 * epsilon
    flip = 2 / (1 + math.exp(single))
    pure = privacy_loss_distribution.from_randomized_response(flip, 2, value_discretization_interval=1e-4).self_compose(count)
    assert epsilon <= pure.get_epsilon_for_delta(delta) + 2 * delta + 1e-3


@pytest.mark.parametrize("count", (1, 4))
@pytest.mark.parametrize("epsilon", (0.5, 6.0))
def test_the_sum_of_epsilons_is_attained(count, epsilon):
    """One of a million candidates gains what a record can add the others lose it; its probability rises nearly by the bound."""
    budget = Budget(epsilon, 0.0, "zero_out")
    scale = calibrate(selections(count), budget)
    before, after = np.zeros(10**6), np.full(10**6, -1.0)
    after[0] = 1.0
    ratio = count * math.log(softmax(after / scale)[0] / softmax(before / scale)[0])
    assert 0.999 * epsilon <= ratio <= spent_epsilon(selections(count), scale, budget) <= epsilon


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", (0.0, 1e-9, 1e-2))
def test_calibration_spends_the_budget(adjacency, epsilon, delta):
    budget = Budget(epsilon, delta, adjacency)
    mixed = Schedule((*selections(3, 0.5).entries, *selections(100, 2.0).entries))
    normal = Schedule((*mixed.entries, (7, Release(Gradient, Gaussian(3.0), 1.0))))
    for schedule in (selections(1), selections(1000, 3.0), mixed, *((normal,) if delta else ())):
        scale = calibrate(schedule, budget)
        assert 0.999 * epsilon <= spent_epsilon(schedule, scale, budget) <= epsilon
        more = Schedule((*schedule.entries, *selections(1).entries))
        assert spent_epsilon(more, scale, budget) > epsilon
    assert calibrate(mixed, Budget(math.inf, delta, adjacency)) == 0.0
    assert spent_epsilon(mixed, 0.0, budget) == math.inf


def test_a_selection_costs_as_much_as_a_gaussian_release_of_the_same_weight():
    both = Schedule((*selections(1).entries, (1, Release(Gradient, Gaussian(), 1.0))))
    budget = Budget(1.0, 1e-6, "zero_out")
    twice = Schedule((*both.entries, *both.entries))
    assert spent_epsilon(both, 5.0, budget) == pytest.approx(zcdp_epsilon(2 / 50, 1e-6), rel=1e-12)
    assert calibrate(twice, budget) == pytest.approx(math.sqrt(2) * calibrate(both, budget), rel=1e-9)


def test_what_has_no_accounting_is_refused():
    sampled = Schedule((*selections(1).entries, (1, Release(Gradient, PoissonGaussian(0.5), 1.0))))
    with pytest.raises(PrivacyAccountingError, match="in a schedule that also samples"):
        calibrate(sampled, Budget(1.0, 1e-6, "zero_out"))
    normal = Schedule((*selections(1).entries, (1, Release(Gradient, Gaussian(), 1.0))))
    with pytest.raises(PrivacyAccountingError, match="no pure guarantee"):
        calibrate(normal, Budget(1.0, 0.0, "zero_out"))


@pytest.mark.parametrize("epsilon", (0.01, 0.7, 4.0, 20.0))
def test_a_selection_lies_under_its_cover(epsilon):
    """Every coin whose log-odds differ by epsilon; some need all of it."""
    mu, odds = selection_cover(epsilon), np.linspace(-20, 20, 4001) - epsilon / 2
    needed = ndtri(expit(odds + epsilon)) - ndtri(expit(odds))
    assert needed[np.isfinite(needed)].max() == pytest.approx(mu, rel=1e-4)
    assert (needed[np.isfinite(needed)] <= mu * (1 + 1e-9)).all()
    assert 0.62 * epsilon < mu * max(1.0, epsilon / 2) and mu < min(pure_cover(epsilon), 0.63 * epsilon)
    kink = expit(-epsilon / 2)
    assert ndtr(-ndtri(kink) - mu) == pytest.approx(kink, rel=1e-9)


def test_gumbel_noise_is_gumbel():
    noise = seeded.source().gumbel(40_000)
    assert kstest(noise, gumbel_r.cdf).pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert kstest(wrong * noise, gumbel_r.cdf).pvalue < FALSE_ALARM


class Fixed(NoiseSource):
    """Words that give coins and uniform numbers known in advance."""

    def __init__(self, small, u):
        self.given = small, u

    def _halves(self, size):
        return self.given


def test_gumbel_variables_are_as_precise_as_the_proof_needs(rng):
    """Against long double, at both ends of the cell of the uniform number that float64 has in its middle."""
    u = np.ldexp(rng.uniform(1, 2, 200_000), -rng.integers(2, 800, 200_000))
    u[:5] = np.nextafter(0.5, 0), 0.25, 2.0**-184, 1 / np.e, 1 - np.exp(-1.0)
    u = np.minimum(u, np.nextafter(0.5, 0))
    for small in (True, False):
        computed = Fixed(np.full(u.size, small), u).gumbel(u.size)
        for shift in (-(2.0**-52), 2.0**-52):
            cell = u.astype(np.longdouble) * (1 + np.longdouble(shift))
            exact = -np.log(-np.log1p(-cell) if small else -np.log(cell))
            near = np.abs(exact) < 512
            error = np.abs(computed - exact) + 2.0**-52 * np.abs(exact)  # and two roundings of the product and the sum
            assert near.mean() > 0.6
            assert error[near].max() <= GUMBEL_ERROR


def test_the_scale_covers_rounding():
    """Scores with the stated error in the worst direction: the ratio stays in the interval that the scale covers."""
    scale, error = 3.0, 0.05
    noise = GumbelNoise.calibrated(sensitivity=1.0, scale=scale, rounding=error)
    assert noise.scale == pytest.approx(scale * 1.2, rel=1e-9) and noise.scale > scale * 1.2
    u, v = np.array([0.0, 2.0, 1.0]), np.array([1.0, 1.0, 2.0])
    b, spans = noise.scale, []
    for first in (error, -error):
        wrong = [(scores + sign * np.array([first, -first, first])) / b for scores, sign in ((u, 1), (v, -1))]
        ratio = np.log(softmax(wrong[0]) / softmax(wrong[1]))
        spans.append(np.ptp(ratio))
    assert max(spans) == pytest.approx((2 + 4 * error) / b) and max(spans) <= 2 / scale
    with pytest.raises(ValueError, match="too large for float64 to resolve"):
        GumbelNoise.calibrated(sensitivity=1.0, scale=1e12, rounding=0.0)
    for wrong in (math.nan, math.inf, -1.0, 1e281):
        for bounds in ((wrong, 0.0), (0.0, wrong)):
            with pytest.raises(ValueError, match="finite sensitivity"):
                GumbelNoise.calibrated(sensitivity=bounds[0], scale=1.0, rounding=bounds[1])


@pytest.mark.slow
@pytest.mark.parametrize("size", (5e-324, 1e-323, 1e-300, 1e279))
def test_the_smallest_and_the_largest_scores_are_private(size):
    """Near 0 the noise would have only a few values, and far out sums would be infinite: ties would reveal data."""
    count, source, noise = 4000, seeded.source(), GumbelNoise.calibrated(sensitivity=size, scale=2 / 6.0, rounding=0.0)
    with np.errstate(over="raise", invalid="raise"):
        chosen = [
            np.array([noise.select(size * np.array(scores), source) for _ in range(count)]) for scores in ((1.0, 0.0), (0.0, 1.0))
        ]
    first, other = ((choice == 0).mean() for choice in chosen)
    assert first <= math.exp(6.0) * other + 5 / math.sqrt(count) and other > 0


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("weight", (1.0, 2.0))
def test_the_oracle_chooses_as_the_exponential_mechanism_does(adjacency, weight):
    """Frequencies of 8000 choices; deleting or halving the noise, or ignoring a weight, fails here."""
    count, counts = 8_000, np.array([12, 4, 0, 8])
    schedule = Schedule(((count, Release(Votes, Selection(weight), 1.0)), (1, Release(Votes, Selection(), 1.0))))
    oracle = oracle_for(schedule, 1e3, electorate(counts), adjacency=adjacency)
    scale = calibrate(schedule, Budget(1e3, 1e-6, adjacency)) * weight
    chosen = np.array([oracle.ask(Votes())[0] for _ in range(count)])
    observed = np.bincount(chosen, minlength=4)
    assert chosen.shape == (count,) and np.issubdtype(chosen.dtype, np.integer)
    assert chisquare(observed, count * softmax(counts / scale)).pvalue > FALSE_ALARM
    for wrong in (0.5, 0.8, 1.25):
        assert chisquare(observed, count * softmax(counts / (wrong * scale))).pvalue < FALSE_ALARM


def test_equal_scores_are_chosen_alike():
    rows = TrainingData(np.zeros((3, 1)), np.full(3, 4, dtype=np.int8), data_norm=1.0)
    oracle = oracle_for(selections(2000), 10.0, rows)
    observed = np.bincount([oracle.ask(Votes())[0] for _ in range(2000)], minlength=4)
    assert chisquare(observed).pvalue > FALSE_ALARM


def test_without_privacy_the_best_is_chosen():
    oracle = oracle_for(selections(5), math.inf, electorate((1, 0, 4, 4)))
    assert [oracle.ask(Votes()).tolist() for _ in range(5)] == [[2]] * 5


def test_clip_norm_zero_chooses_the_first_and_reads_nothing():
    class Unread(TrainingData):
        def label_counts(self, n_classes):
            raise AssertionError

    rows = Unread(np.zeros((6, 1)), np.arange(6) % 4, data_norm=1.0)
    oracle = oracle_for(selections(1, clip_norm=None), 1.0, rows)
    assert oracle.ask(Votes(clip_norm=0.0)).tolist() == [0]
    oracle.finish()


def test_a_query_without_scores_is_refused_before_it_is_read():
    schedule = Schedule(((1, Release(Gradient, Selection(), 1.0)),))
    with pytest.raises(PrivacyAccountingError, match="Gradient has no scores to select by"):
        oracle_for(schedule, 1.0).ask(Gradient(Logistic(), np.zeros((1, 1)), 1.0))


@pytest.mark.parametrize("mechanism", (Gaussian(), PoissonGaussian(0.5)))
def test_scores_are_not_released_with_gaussian_noise(mechanism):
    """The bound is for each score alone; the norm of all scores may move more, by a factor of the root of their number."""

    class Unread(TrainingData):
        def label_counts(self, n_classes):
            raise AssertionError

    rows = Unread(np.zeros((4, 1)), np.arange(4, dtype=np.int8), data_norm=1.0)
    schedule = Schedule(((1, Release(Votes, mechanism, 1.0)),))
    with pytest.raises(PrivacyAccountingError, match="Votes bounds each of its scores alone"):
        oracle_for(schedule, 1.0, rows).ask(Votes())


def test_the_report_says_what_was_selected_and_how():
    budget, schedule = Budget(1.0, 1e-6, "zero_out"), selections(20)
    scale = calibrate(schedule, budget)
    (line,) = describe_releases(schedule, scale, budget, (1e-4,))
    assert (line.mechanism, line.count, line.noise_multiplier, line.clip_norm) == ("Selection", 20, None, 1.0)
    assert str(line) == (
        f"20 x Votes, exponential mechanism (Gumbel noise of scale {scale:.6g} times the sensitivity, epsilon {2 / scale:.4g} "
        "each), each coordinate clipped to 1, 0.01% more for rounding"
    )
    (line,) = describe_releases(schedule, 0.0, Budget(math.inf, 1e-6, "zero_out"), (0.0,))
    assert "no noise, epsilon inf each" in str(line)

"""Discrete Laplace noise: its law, its rounding, what a schedule of it spends, and an audit with a broken twin."""

import math

import numpy as np
import pytest
import seeded
from mpmath import mp, mpf
from scipy.special import expit
from scipy.stats import beta, chisquare, kstest, laplace

from skdp.privacy.accounting.noise_calibration import calibrate, spent_epsilon
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.noise.laplace import LARGEST_LOG_ODDS, RATIO_ERROR, IntegerLaplace
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ClassCounts, ErrorSums, LossSums
from skdp.privacy.schedule import Gaussian, Laplace, Release, Schedule

FALSE_ALARM = 1e-6
DRAWS = 40_000
ADJACENCIES = ("replace_one", "zero_out")


def law(scale, most):
    """Probabilities of the numbers from -most to most, the last ones with all beyond."""
    k = np.arange(-most, most + 1)
    found = np.tanh(1 / (2 * scale)) * np.exp(-np.abs(k) / scale)
    found[[0, -1]] = (1 - found[1:-1].sum()) / 2
    return found


@pytest.mark.parametrize("noise", (NoiseSource(), seeded.source(7)), ids=("secure", "seeded"))
@pytest.mark.parametrize("scale", (0.5, 2.83, 10.0))
def test_the_noise_has_the_stated_law_and_no_other(scale, noise):
    most, draws = math.ceil(3 * scale), IntegerLaplace(scale).draw(DRAWS, noise)
    seen = np.bincount((np.clip(draws, -most, most) + most).astype(int), minlength=2 * most + 1)
    assert chisquare(seen, DRAWS * law(scale, most)).pvalue > FALSE_ALARM
    for wrong in (0.8, 1.25):
        assert chisquare(seen, DRAWS * law(wrong * scale, most)).pvalue < FALSE_ALARM
    assert draws.std() == pytest.approx(IntegerLaplace(scale).std, rel=0.05)


@pytest.mark.parametrize("scale", (1e5, 2.0**38))
def test_noise_of_a_large_scale_is_nearly_continuous(scale):
    draws = IntegerLaplace(scale).draw(DRAWS, seeded.source(3))
    assert (draws == np.rint(draws)).all() and kstest(draws / scale, laplace.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", (0.002, 0.7, 20.0, 2.0**38))
def test_neighbouring_numbers_have_the_stated_ratio_of_probabilities(scale):
    """The log-odds of all digits that a step may change are off by less than the allowance, of which half is for coins."""
    mp.prec = 200
    exponent, error, n_digits = 1 / scale, mpf(0), 0
    while exponent * 2.0**n_digits <= LARGEST_LOG_ODDS:
        p = mpf(float(expit(-exponent * 2.0**n_digits)))
        error += abs(mp.log(p / (1 - p)) + mpf(2) ** n_digits / mpf(scale))
        n_digits += 1
    assert n_digits <= 50 and error + n_digits * mpf(2) ** -50 < RATIO_ERROR / 2


def test_the_scale_covers_the_error_of_the_ratio():
    noise = IntegerLaplace.calibrated(sensitivity=2**17, scale=100.0)
    assert noise.scale > 100 * 2**17
    assert 2**17 * (1 / noise.scale + RATIO_ERROR) <= 0.01 * (1 + 1e-15)
    with pytest.raises(ValueError, match="too large to resolve"):
        IntegerLaplace.calibrated(sensitivity=2**17, scale=1e8)


def test_noise_too_small_for_a_digit_is_zero():
    assert IntegerLaplace(1e-6).std == 0 and not IntegerLaplace(1e-6).draw(100, seeded.source()).any()


def schedule(*weights):
    return Schedule(tuple((2, Release(ClassCounts, Laplace(weight), 1.0, 3)) for weight in weights))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_epsilons_of_releases_add_up(adjacency):
    budget = Budget(0.8, 0.0, adjacency)
    scale = calibrate(schedule(1.0, 4.0), budget)
    assert scale == pytest.approx((2 + 2 / 4) / 0.8)
    assert 0.8 * (1 - 1e-9) < spent_epsilon(schedule(1.0, 4.0), scale, budget) <= 0.8
    assert calibrate(schedule(1.0), Budget(math.inf, 0.0, adjacency)) == 0
    assert spent_epsilon(schedule(1.0), 0.0, budget) == math.inf


def test_laplace_and_gaussian_releases_are_not_mixed():
    mixed = Schedule((*schedule(1.0).entries, (1, Release(ClassCounts, Gaussian(), 1.0, 3))))
    for work in (lambda: calibrate(mixed, Budget(1.0, 1e-6, "zero_out")), lambda: Composition.of(mixed, "zero_out")):
        with pytest.raises(PrivacyAccountingError, match="Laplace"):
            work()


def released(labels, epsilon, adjacency="zero_out", noise=None, query=None):
    rows = TrainingData(np.zeros((len(labels), 1)), np.array(labels), data_norm=1.0)
    query = query or ClassCounts(3)
    plan, budget = Schedule(((1, Release(type(query), Laplace(), query.clip_norm, query.size)),)), Budget(epsilon, 0.0, adjacency)
    return Oracle(rows, plan, budget, calibrate(plan, budget), noise or NoiseSource()).ask(query)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency, scale", (("zero_out", 0.5), ("replace_one", 1.0)))
def test_the_oracle_adds_the_noise_that_the_schedule_states(adjacency, scale):
    source = seeded.source(1)
    found = np.array([released([0, 0, 1], 2.0, adjacency, source) for _ in range(500)]) - [2, 1, 0]
    most = 3
    seen = np.bincount((np.clip(found.ravel(), -most, most) + most).astype(int), minlength=2 * most + 1)
    assert chisquare(seen, found.size * law(scale, most)).pvalue > FALSE_ALARM


def test_the_oracle_refuses_queries_that_do_not_count():
    with pytest.raises(PrivacyAccountingError, match="does not count"):
        released([0.0, 1.0], 1.0, query=ErrorSums(1.0, False))


def audited(scale, claim=1.0):
    """Lower bound on the epsilon of a count of which one table has one record less, wrong with a probability of 1e-4."""
    draws = [IntegerLaplace(scale).draw(DRAWS, seeded.source(seed)) for seed in (0, 1)]
    hits, alarms = int((draws[0] + 1 >= 1).sum()), int((draws[1] >= 1).sum())
    return math.log(beta.ppf(5e-5, hits, DRAWS - hits + 1) / beta.ppf(1 - 5e-5, alarms + 1, DRAWS - alarms))


def test_an_audit_of_a_count_stays_below_the_claim_and_its_twin_with_half_the_noise_does_not():
    assert 0.9 < audited(1.0) <= 1.0
    assert audited(0.5) > 1.5


def score(scores, targets):
    """A loss that is the score."""
    return scores


@pytest.mark.parametrize(
    "query",
    (LossSums(score, 1), LossSums(score, 64, True), LossSums(score, 256, True)),
    ids=lambda query: f"{query.steps}-{query.squared}",
)
def test_no_record_moves_sums_of_losses_further_than_stated(query):
    numbers = np.concatenate([np.linspace(-1, 1, 2 * query.steps + 1), [-1e300, 1e300, 0.3, np.nan]])
    found = np.array([query.evaluate(ScoredRecords(np.array([x]), np.zeros(1))) for x in numbers])
    assert (found == np.rint(found)).all()
    apart = found[:, None] - found[None]
    for adjacency, moved in (("zero_out", found), ("replace_one", apart)):
        largest = np.abs(moved).sum(axis=-1).max(), np.linalg.norm(moved, axis=-1).max()
        stated = query.l1_sensitivity(adjacency), query.sensitivity(adjacency)
        for most, bound in zip(largest, stated, strict=True):
            assert 0.99 * bound <= most <= bound * (1 + 1e-12)


@pytest.mark.parametrize("steps", (1, 64))
def test_sums_of_losses_leave_out_null_records(steps):
    rows = ScoredRecords(np.array([1.0, -1.0, 1.0]), np.zeros(3)).without(np.array([1]))
    assert LossSums(score, steps, steps > 1).evaluate(rows).tolist() == [2 * steps, 2 * (16 - 8)][: 1 + (steps > 1)]

"""Tests the oracle: what it refuses and records, and that its noise is the noise that the schedule states."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest
from seeded import source

from skdp.losses import Logistic
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError, SourceError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Gradient
from skdp.privacy.schedule import Curve, Gaussian, PoissonGaussian, Release, Schedule

ADJACENCIES = ("replace_one", "zero_out")
FALSE_ALARM = 1e-6
N_FEATURES = 20_000


class Watched(TrainingData):
    """Counts how often the data are read."""

    reads = 0

    def sum(self, coef, kernel):
        self.reads += 1
        return super().sum(coef, kernel)


class OtherGradient(Gradient):
    """A query type that no schedule here contains."""


def table(n_features=N_FEATURES):
    X = np.zeros((10, n_features))
    X[:, 0] = 1.0
    return Watched(X, np.zeros(10, dtype=np.int8), data_norm=1.0)


def query(rows, clip_norm=1.0, point=0.0):
    return Gradient(Logistic(), np.full((rows.n_features, 1), point), clip_norm)


def oracle_for(rows, schedule, epsilon=1.0, adjacency="replace_one", seed=0, on_release=None):
    budget = Budget(epsilon, 1e-6, adjacency)
    return Oracle(rows, schedule, budget, calibrate(schedule, budget), source(seed), on_release)


def gaussian_schedule(count, weight=1.0, clip_norm=1.0):
    return Schedule(((count, Release(Gradient, Gaussian(weight), clip_norm)),))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("weights", ((1.0,), (1.0, 3.0)))
def test_noise_on_each_answer_is_what_the_schedule_states(adjacency, weights):
    """Deleting the noise, halving the sensitivity or ignoring a weight fails here."""
    schedule = Schedule(tuple((1, Release(Gradient, Gaussian(weight), 1.0)) for weight in weights))
    rows = table()
    oracle = oracle_for(rows, schedule, adjacency=adjacency)
    scale = calibrate(schedule, Budget(1.0, 1e-6, adjacency))
    mu = math.sqrt(sum(1 / (weight * scale) ** 2 for weight in weights))
    assert spent_epsilon(schedule, scale, Budget(1.0, 1e-6, adjacency)) == pytest.approx(1.0, rel=1e-6)
    for weight, (_, release) in zip(weights, schedule.entries, strict=True):
        expected = {"replace_one": 2.0, "zero_out": 1.0}[adjacency] * weight * math.sqrt(sum(w**-2 for w in weights)) / mu
        noise = oracle.ask(query(rows)) - Gradient(Logistic(), np.zeros((N_FEATURES, 1)), 1.0).evaluate(rows)
        assert kstest(noise / expected, "norm").pvalue > FALSE_ALARM
        for wrong in (0.5, 0.8, 1.25):
            assert kstest(noise / (wrong * expected), "norm").pvalue < FALSE_ALARM
        assert noise_multiplier(release, scale, adjacency) == pytest.approx(expected)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rate", (0.03, 0.6))
def test_noise_on_a_sample_is_what_the_schedule_states(adjacency, rate):
    """The features that are zero in every record show the noise alone."""
    schedule = Schedule(((7, Release(Gradient, PoissonGaussian(rate, weight=2.0), 1.0)),))
    rows = table()
    answer = oracle_for(rows, schedule, adjacency=adjacency).ask(query(rows))[1:]
    scale = calibrate(schedule, Budget(1.0, 1e-6, adjacency))
    expected = noise_multiplier(schedule.entries[0][1], scale, adjacency)
    assert expected == pytest.approx({"replace_one": 2.0, "zero_out": 1.0}[adjacency] * 2.0 * scale)
    assert kstest(answer / expected, "norm").pvalue > FALSE_ALARM
    for wrong in (0.5, 0.8, 1.25):
        assert kstest(answer / (wrong * expected), "norm").pvalue < FALSE_ALARM


def test_every_subsampled_release_draws_a_fresh_sample():
    """Without noise, the sum counts the records that were drawn; its distribution is binomial (false alarm below 1e-6)."""
    X = np.ones((1000, 1))
    rows = TrainingData(X, np.zeros(1000, dtype=np.int8), data_norm=1.0)
    schedule = Schedule(((400, Release(Gradient, PoissonGaussian(0.3), 1.0)),))
    oracle = oracle_for(rows, schedule, epsilon=math.inf)
    drawn = np.array([oracle.ask(query(rows))[0] / 0.5 for _ in range(400)])
    oracle.finish()
    assert np.array_equal(drawn, np.rint(drawn))
    assert abs(drawn.mean() - 300) < 5 * math.sqrt(210 / 400)
    assert 0.65 < drawn.var() / 210 < 1.45


def test_every_sample_has_a_key_of_its_own_and_full_data_need_none(monkeypatch):
    """A release without a sample leaves the stream where it was, and a sample that is repeated has another key."""
    drawn, sampled = [], TrainingData.sampled
    monkeypatch.setattr(TrainingData, "sampled", lambda rows, *how: drawn.append(how) or sampled(rows, *how))
    full, part = (Release(Gradient, how, 1.0) for how in (Gaussian(), PoissonGaussian(0.3)))
    rows, schedule = table(3), Schedule(((2, full), (3, part), (1, full)))
    answers = {}
    for seed in (0, 0, 1):
        oracle = oracle_for(rows, schedule, seed=seed)
        answers.setdefault(seed, []).append(np.array([oracle.ask(query(rows)) for _ in schedule]))
    keys = [key for key, _ in drawn]
    assert {len(key) for key in keys} == {32} and {rate for _, rate in drawn} == {0.3}
    assert keys[:3] == keys[3:6] and len(set(keys)) == 6
    np.testing.assert_array_equal(*answers[0])
    alone = oracle_for(rows, Schedule(((2, full),)), seed=0)
    again = np.array([alone.ask(query(rows)) for _ in range(2)])
    scales = [calibrate(chosen, Budget(1.0, 1e-6, "replace_one")) for chosen in (schedule, Schedule(((2, full),)))]
    exact = query(rows).evaluate(rows)
    np.testing.assert_allclose((answers[0][0][:2] - exact) / scales[0], (again - exact) / scales[1], rtol=1e-4)


def test_transcript_is_the_schedule():
    ticks = []
    rows, schedule = table(3), gaussian_schedule(4)
    oracle = oracle_for(rows, schedule, on_release=lambda: ticks.append(len(oracle.transcript)))
    for _ in range(4):
        oracle.ask(query(rows))
    oracle.finish()
    assert oracle.transcript == tuple(schedule)
    assert ticks == [1, 2, 3, 4]


def test_unscheduled_releases_are_refused_before_the_data_are_read():
    rows = table(3)
    oracle = oracle_for(rows, gaussian_schedule(1))
    for wrong in (OtherGradient(Logistic(), np.zeros((3, 1)), 1.0), query(rows, clip_norm=2.0)):
        fresh = oracle_for(rows, gaussian_schedule(1))
        with pytest.raises(PrivacyAccountingError, match="the schedule expects"):
            fresh.ask(wrong)
    assert rows.reads == 0
    oracle.ask(query(rows))
    with pytest.raises(PrivacyAccountingError, match="no further release"):
        oracle.ask(query(rows))
    assert rows.reads == 1


def test_unfinished_schedule_is_an_error():
    rows = table(3)
    oracle = oracle_for(rows, gaussian_schedule(2))
    oracle.ask(query(rows))
    with pytest.raises(PrivacyAccountingError, match="1 of the 2"):
        oracle.finish()


@pytest.mark.parametrize("clip_norm, point", ((math.nan, 0.0), (math.inf, 0.0), (-1.0, 0.0), (1.0, math.nan), (1.0, math.inf)))
def test_queries_that_are_not_finite_are_refused(clip_norm, point):
    rows = table(3)
    oracle = oracle_for(rows, gaussian_schedule(1, clip_norm=None))
    with pytest.raises(PrivacyAccountingError, match="not finite"):
        oracle.ask(query(rows, clip_norm, point))
    assert rows.reads == 0


def test_a_mask_hides_no_number_that_is_not_finite():
    rows = table(3)
    point = np.ma.array([[math.nan], [0.0], [0.0]], mask=[[True], [False], [False]])
    with pytest.raises(PrivacyAccountingError, match="not finite"):
        oracle_for(rows, gaussian_schedule(1)).ask(Gradient(Logistic(), point, 1.0))
    assert rows.reads == 0


def test_clip_norm_zero_releases_zero_reads_nothing_and_counts():
    rows = table(3)
    oracle = oracle_for(rows, gaussian_schedule(1, clip_norm=None))
    assert not oracle.ask(query(rows, 0.0)).any()
    oracle.finish()
    assert rows.reads == 0


def test_without_privacy_there_is_no_noise_and_no_grid():
    rows = table(3)
    exact = query(rows).evaluate(rows)
    assert np.array_equal(oracle_for(rows, gaussian_schedule(1), epsilon=math.inf).ask(query(rows)), exact)


def test_oracle_refuses_a_scale_without_noise():
    with pytest.raises(PrivacyAccountingError, match="noise scale"):
        Oracle(table(3), gaussian_schedule(1), Budget(1.0, 1e-6, "zero_out"), 0.0, source())


def test_mechanisms_without_accounting_are_refused():
    schedule = Schedule(((1, Release(Gradient, Curve("objective"), 1.0)),))
    with pytest.raises(PrivacyAccountingError, match="No accounting"):
        calibrate(schedule, Budget(1.0, 1e-6, "zero_out"))


@pytest.mark.parametrize(
    "count, weight", ((-1, 1.0), (0, 1.0), (2.0, 1.0), (1, 0.0), (1, -1.0), (1, math.nan), (1, math.inf), (1, 1e-200))
)
def test_schedules_that_would_forge_the_sum_are_refused(count, weight):
    with pytest.raises(PrivacyAccountingError, match="expected a positive count and a weight"):
        Schedule(((count, Release(Gradient, Gaussian(weight), 1.0)),))


def test_a_schedule_does_not_grow_after_it_was_made():
    entries = list(gaussian_schedule(2).entries)
    schedule = Schedule(entries)
    rows = table(3)
    oracle = oracle_for(rows, schedule)
    entries.append(entries[0])
    assert len(schedule) == 2
    for _ in range(2):
        oracle.ask(query(rows))
    oracle.finish()


class Quoting(Logistic):
    """A loss that fails with data in its message."""

    def __init__(self, error):
        self.error = error

    def derivative(self, raw, labels):
        raise self.error(float(raw[0, 0]), "secret")


@pytest.mark.parametrize("error", (KeyError, SystemExit, SourceError, PrivacyAccountingError, GeneratorExit, BaseException))
def test_errors_of_an_evaluation_do_not_quote_the_data(error):
    rows = table(3)
    failing = Gradient(Quoting(error), np.ones((3, 1)), 1.0)
    oracle = oracle_for(rows, gaussian_schedule(1))
    with pytest.raises(PrivacyAccountingError, match="Gradient failed") as caught:
        oracle.ask(failing)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    with pytest.raises(PrivacyAccountingError, match="0 of the 1"):
        oracle.finish()  # a failure is no release
    with pytest.raises(error):
        oracle_for(rows, gaussian_schedule(1), epsilon=math.inf).ask(failing)


def test_an_interrupt_of_an_evaluation_stays_one_and_quotes_nothing():
    rows = table(3)
    with pytest.raises(KeyboardInterrupt) as caught:
        oracle_for(rows, gaussian_schedule(1)).ask(Gradient(Quoting(KeyboardInterrupt), np.ones((3, 1)), 1.0))
    assert caught.value.args == () and caught.value.__context__ is None


class Telling(Gradient):
    """A query whose answer is not a vector of numbers."""

    answer = None

    def evaluate(self, rows):
        return self.answer


@pytest.mark.parametrize(
    "answer", (np.array(["secret"] * 3), np.array([ValueError("secret")] * 3), np.zeros(4), np.zeros((3, 1)))
)
def test_an_answer_that_is_no_vector_of_numbers_is_not_quoted(answer, monkeypatch):
    monkeypatch.setattr(Telling, "answer", answer)
    rows = table(3)
    with pytest.raises(PrivacyAccountingError, match=r"^Telling failed") as caught:
        oracle_for(rows, Schedule(((1, Release(Telling, Gaussian(), 1.0)),))).ask(Telling(Logistic(), np.ones((3, 1)), 1.0))
    assert caught.value.__context__ is None


class QuotingCurve(Curve):
    """A mechanism that fails with the value in its message."""

    def scale(self, budget):
        return 1.0

    def answer(self, query, scale, budget, source, evaluate):
        raise PrivacyAccountingError(f"secret {evaluate(query)}")


def test_an_error_of_a_mechanism_does_not_quote_the_answer():
    rows = table(3)
    schedule = Schedule(((1, Release(Gradient, QuotingCurve("quoting"), 1.0)),))
    with pytest.raises(PrivacyAccountingError, match=r"^Gradient failed") as caught:
        Oracle(rows, schedule, Budget(1.0, 1e-6, "replace_one"), 1.0, source(0)).ask(query(rows))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (0.05, 1.0, 10.0))
def test_calibration_spends_the_budget(adjacency, epsilon):
    budget = Budget(epsilon, 1e-7, adjacency)
    mixed = Schedule(gaussian_schedule(1, 2.0).entries + gaussian_schedule(100, 0.5).entries)
    for schedule in (gaussian_schedule(1), gaussian_schedule(1000), mixed):
        spent = spent_epsilon(schedule, calibrate(schedule, budget), budget)
        assert 0.999 * epsilon <= spent <= epsilon
        more = Schedule(schedule.entries + gaussian_schedule(1).entries)
        assert spent_epsilon(more, calibrate(schedule, budget), budget) > epsilon
    assert calibrate(gaussian_schedule(5), replace(budget, epsilon=math.inf)) == 0.0

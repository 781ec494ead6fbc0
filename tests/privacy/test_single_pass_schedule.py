"""Tests single-pass releases: what the oracle refuses and counts, their noise, and their cost together."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest
from seeded import source

from skdp.losses import Logistic
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier, spent_epsilon
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget
from skdp.privacy.data.persons import Persons
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.ledger.gaussian_cover import gaussian_cover
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Gradient, Moments
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule, SinglePass

ADJACENCIES = ("replace_one", "zero_out")
FALSE_ALARM = 1e-6
N = 12


class Watched(TrainingData):
    """Counts how often the data are read."""

    def __init__(self, *args, **bounds):
        super().__init__(*args, **bounds)
        self.reads = []

    def sum(self, coef, kernel):
        self.reads.append(True)
        return super().sum(coef, kernel)


def rows(width=3, storage=np.asarray, **bounds):
    X = np.random.default_rng(0).normal(size=(N, width))
    return Watched(storage(X), np.arange(N) % 2, data_norm=1.0, **bounds)


def schedule_of(count, mechanism=None):
    return Schedule(((count, Release(Gradient, mechanism or SinglePass(4), 1.0)),))


def oracle_of(table, schedule, epsilon=1.0, adjacency="replace_one"):
    budget = Budget(epsilon, 1e-6, adjacency)
    return Oracle(table, schedule, budget, calibrate(schedule, budget), source())


def query(table, records):
    records = np.array(records, dtype=np.int64) if isinstance(records, list) else records
    return Gradient(Logistic(), np.zeros((table.n_features, 1)), 1.0, records)


@pytest.mark.parametrize("epsilon", (1.0, math.inf))
@pytest.mark.parametrize("second", ([2], [2, 3], [0, 5, 9, 11]))
def test_a_record_is_refused_a_second_time_before_it_is_read(second, epsilon):
    table = rows()
    oracle = oracle_of(table, schedule_of(2), epsilon)
    oracle.ask(query(table, [0, 1, 2]))
    reads = len(table.reads)
    with pytest.raises(PrivacyAccountingError, match="earlier release of the single pass has used"):
        oracle.ask(query(table, second))
    assert len(table.reads) == reads
    np.testing.assert_array_equal(oracle.uses, np.arange(N) < 3)


WRONG = {
    "unsorted": [2, 1],
    "twice": [1, 1],
    "negative": [-1, 2],
    "beyond": [3, N],
    "many": [0, 1, 2, 3, 4],
    "floats": np.array([1.0, 2.0]),
    "mask": np.arange(4) < 2,
    "table": np.array([[1, 2]]),
    "none": None,
    "text": np.array(["1"]),
}


@pytest.mark.parametrize("records", WRONG.values(), ids=WRONG)
def test_other_than_sorted_numbers_of_few_rows_are_refused(records):
    table = rows()
    oracle = oracle_of(table, schedule_of(1))
    with pytest.raises(PrivacyAccountingError, match="single pass"):
        oracle.ask(query(table, records))
    assert not table.reads and not oracle.uses.any()


@pytest.mark.parametrize("records", (np.array([100, -100], dtype=np.int8), np.array([0, 2**63 - 1, -2, 5])))
def test_numbers_whose_differences_overflow_are_refused(records):
    """As bytes, -100 is 56 more than 100; both would be the same row, which enters twice and is counted once."""
    table = Watched(np.ones((200, 1)), np.arange(200) % 2, data_norm=1.0)
    oracle = oracle_of(table, schedule_of(1))
    with pytest.raises(PrivacyAccountingError, match="not sorted, distinct numbers"):
        oracle.ask(query(table, records))
    assert not table.reads and not oracle.uses.any()


@pytest.mark.parametrize("mechanism", (Gaussian(), PoissonGaussian(0.5)))
def test_records_are_for_a_single_pass_only(mechanism):
    table = rows()
    with pytest.raises(PrivacyAccountingError, match="expected a single pass"):
        oracle_of(table, schedule_of(1, mechanism)).ask(query(table, [1]))
    assert oracle_of(table, schedule_of(1, mechanism)).uses.size == 0


@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, sparse.csc_array), ids=lambda s: s.__name__)
def test_the_named_records_enter_and_no_others(storage):
    """Also where columns are stored, after the conversion that the schedule asks for; none gives noise alone."""
    schedule = schedule_of(3)
    assert schedule.by_row and schedule.passes_once and not schedule.samples
    table = rows(storage=storage, by_row=schedule.by_row)
    oracle = oracle_of(table, schedule, math.inf)
    for records in ([1, 4, 7], [], [0, 11]):
        alone = query(table, None).evaluate(rows().subset(np.array(records, dtype=int)))
        np.testing.assert_allclose(oracle.ask(query(table, records)), alone)
    np.testing.assert_array_equal(np.flatnonzero(oracle.uses), [0, 1, 4, 7, 11])


def test_named_persons_enter_with_all_their_rows_in_a_secret_order():
    """Which person a number names does not follow from the order of ids; each is read once."""
    who = np.r_[np.arange(6), 0, 0, 3, 3, 3, 5]
    table, budget, first = rows(persons=Persons(who, 6), by_row=True), Budget(math.inf, 1e-6, "zero_out", "person"), []
    for seed in range(20):
        oracle, answers = Oracle(table, schedule_of(3), budget, 0.0, source(seed)), []
        assert oracle.uses.shape == (6,)
        for named in ([0], [1, 4], [2, 3, 5]):
            answers.append(oracle.ask(query(table, named)))
        np.testing.assert_allclose(sum(answers), query(table, None).evaluate(table), rtol=1e-12)
        alone = [query(table, None).evaluate(table.subset(np.array([person]))) for person in range(6)]
        first += [int(np.argmin([abs(answers[0] - one).max() for one in alone]))]
        np.testing.assert_array_equal(answers[0], alone[first[-1]])
    assert len(set(first)) > 2  # 20 uniform draws of 6: a false alarm has a probability below 1e-8


def test_what_is_counted_is_what_is_read():
    """A query that names other records at every access."""
    names = iter(([3], [5], [7], [9]))

    class Shifting(Gradient):
        @property
        def records(self):
            return np.array(next(names))

        @records.setter
        def records(self, value):
            raise AssertionError

    table = rows()
    shifting = object.__new__(Shifting)
    for name, value in (("loss", Logistic()), ("coef", np.zeros((3, 1))), ("clip_norm", 1.0)):
        object.__setattr__(shifting, name, value)
    oracle = oracle_of(table, Schedule(((1, Release(Shifting, SinglePass(4), 1.0)),)), math.inf)
    answer = oracle.ask(shifting)
    (used,) = np.flatnonzero(oracle.uses)
    np.testing.assert_allclose(answer, query(table, None).evaluate(rows().subset(np.array([used]))))


def test_the_counter_that_is_shown_is_a_copy():
    table = rows()
    oracle = oracle_of(table, schedule_of(2))
    oracle.ask(query(table, [0, 1]))
    oracle.uses[:] = 0
    with pytest.raises(PrivacyAccountingError):
        oracle.ask(query(table, [1]))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("weight", (1.0, 3.0))
def test_the_noise_is_that_of_one_release(adjacency, weight):
    """Normal with the stated deviation, whatever the number of releases; a wrong one is seen."""
    width = 20_000
    table = Watched(np.zeros((N, width)), np.arange(N) % 2, data_norm=1.0)
    oracle = oracle_of(table, schedule_of(50, SinglePass(4, weight)), 1.0, adjacency)
    noise = oracle.ask(query(table, [0, 3]))
    expected = {"replace_one": 2.0, "zero_out": 1.0}[adjacency] / gaussian_mu(1.0, 1e-6)
    assert kstest(noise / expected, "norm").pvalue > FALSE_ALARM
    for wrong in (0.5, 0.8, 1.25):
        assert kstest(noise / (wrong * expected), "norm").pvalue < FALSE_ALARM


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon, delta", ((0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-100)))
def test_all_cost_what_one_does(adjacency, epsilon, delta):
    """(k C / sigma)-GDP whatever their number, at any delta; the least noise counts."""
    budget = Budget(epsilon, delta, adjacency)
    k = {"replace_one": 2.0, "zero_out": 1.0}[adjacency]
    for count in (1, 7, 10**6):
        schedule = schedule_of(count)
        scale = calibrate(schedule, budget)
        multiplier = noise_multiplier(schedule.entries[0][1], scale, adjacency)
        assert gaussian_epsilon(k / multiplier, delta) == pytest.approx(epsilon, rel=1e-6)
        assert 0.999999 * epsilon <= spent_epsilon(schedule, scale, budget) <= epsilon
    releases = [Release(Gradient, SinglePass(4, weight), 1.0) for weight in (2.0, 0.5, 1.0)]
    mixed = Composition.of(Schedule(tuple((3, release) for release in releases)), adjacency)
    assert mixed.full == pytest.approx(4.0) and not mixed.sampled
    assert gaussian_cover(mixed, budget, 0.0) == pytest.approx(2.0)


def test_other_releases_of_all_records_come_on_top():
    first = Release(Moments, Gaussian(0.5), 1.0, 6)
    schedule = Schedule(((2, first), (100, Release(Gradient, SinglePass(4, 2.0), 1.0))))
    assert Composition.of(schedule, "zero_out").full == pytest.approx(2 / 0.5**2 + 1 / 2.0**2)
    sampled = Schedule((*schedule.entries, (5, Release(Gradient, PoissonGaussian(0.1), 1.0))))
    assert Composition.of(sampled, "zero_out").full == pytest.approx(8.25)
    assert len(Composition.of(sampled, "zero_out").sampled) == 1

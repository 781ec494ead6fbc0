"""Samples of tables in partitions: the same bits as in memory, whoever draws the part of a chunk, and as often as it is drawn."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from chunks import chunk_of
from scipy import sparse
from seeded import fitted

from skdp.data import chunks
from skdp.estimators import DPLogisticRegression
from skdp.losses import Logistic
from skdp.privacy.data import summation
from skdp.privacy.data.partition import Chunk, Partition, SampleOf, joined, partial_sum
from skdp.privacy.data.partitioned_rows import PartitionedRows
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.engines.threads import ThreadEngine
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.queries import Gradient
from skdp.solvers import SGD, SVRG, SVRGPlusPlus
from skdp.testing import reproducible_noise

N, D, KEY = 5 * BLOCK + 100, 4, bytes(range(32))
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.4, 0.4, size=(N, D))
Y = (X @ RNG.normal(size=D) > 0).astype(int)
QUERY = Gradient(Logistic(), RNG.normal(size=(D + 1, 1)), 1.0)
RATES = (0.00005, 0.001, 0.3, 1.0)  # one record of the table, some chunks without a record, many records, all
SOLVERS = {
    **{f"sgd {size}": SGD(batch_size=size, n_steps=10) for size in (1, 500, 18_000)},
    "standardised sgd": SGD(batch_size=500, n_steps=10, standardize=0.2),
    "svrg": SVRG(n_epochs=2, n_inner=5, batch_size=4),
    "svrg++": SVRGPlusPlus(n_epochs=2, n_inner=5, batch_size=400),
}


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that the table has six."""
    monkeypatch.setattr(summation, "LONGEST", BLOCK)


def table(storage=np.asarray, length=777, **given):
    return chunks(lambda: ((storage(X[s : s + length]), Y[s : s + length]) for s in range(0, N, length)), **given)


def model(solver, **given):
    return DPLogisticRegression(2.0, classes=[0, 1], data_norm=1.0, solver=solver, **given)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, np.float32), ids=("dense", "csr", "float32"))
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_source_changes_no_bit(solver, storage):
    estimator, fits = model(SOLVERS[solver]), []
    for given in ((storage(X), Y), (table(storage),), (table(storage, 10_000),)):
        with reproducible_noise(0):
            fits.append(fitted(estimator, *given).coef_)
    assert np.array_equal(fits[1], fits[0]) and np.array_equal(fits[2], fits[0])


@pytest.fixture
def rows():
    return TrainingData(X, Y, data_norm=1.0, intercept_scaling=1.0)


def parts_of(rows, cuts):
    """The table in partitions that begin at these chunks."""
    parts = []
    for first, last in zip(cuts, [*cuts[1:], 6], strict=True):
        starts = [chunk * BLOCK for chunk in range(first, last)]
        parts.append(Partition((), b"", tuple(chunk_of(rows, s, min(s + BLOCK, N)) for s in starts)))
    return parts


@pytest.mark.parametrize("cuts", ([0], [0, 1, 2, 3, 4, 5], [0, 4], [0, 1, 1, 5]))
@pytest.mark.parametrize("rate", RATES)
def test_the_cut_into_partitions_changes_no_bit(cuts, rate, rows):
    """Partitions of one chunk, of several and of none; the parts are drawn in another order, by several threads, and twice."""
    asked, expected = SampleOf(QUERY, KEY, rate), QUERY.evaluate(rows.sampled(KEY, rate))
    partitions = parts_of(rows, cuts)
    with ThreadPoolExecutor(3) as pool:
        for again in (asked, pickle.loads(pickle.dumps(asked))):
            order = RNG.permutation(len(cuts))
            tasks = {place: pool.submit(partial_sum, partitions[place], again, cuts[place], b"") for place in order}
            sums = [tasks[place].result() for place in range(len(cuts))]
            assert np.array_equal(QUERY.finish(joined(*sums).total()), expected)


def test_a_chunk_without_a_record_in_the_sample_adds_zeros_of_the_shape_of_a_sum(rows):
    (partition,), asked = parts_of(rows, [0]), SampleOf(QUERY, KEY, RATES[0])
    terms = [asked.partial(chunk, number) for number, chunk in enumerate(partition.rows)]
    drawn = rows.sampled(KEY, RATES[0])._blocks.sample // BLOCK
    assert 0 < len(set(drawn)) < 5
    for number, term in enumerate(terms):
        assert term.shape == terms[0].shape and term.any() == (number in drawn)


class Shared(Gradient):
    """A query whose sum other queries share, as those of a calibration do."""

    def summed(self):
        return (self.coef,)


def test_samples_share_no_sum(rows):
    """Neither with each other nor with all records, also if their queries ask for the same sum of other records."""
    engine = ThreadEngine(lambda: (Chunk(X[s : s + BLOCK], Y[s : s + BLOCK]) for s in range(0, N, BLOCK)), kept=True)
    try:
        parts = PartitionedRows(engine, engine.load(), [None] * 6, {"data_norm": 1.0, "intercept_scaling": 1.0})
        query, keys = Shared(QUERY.loss, QUERY.coef, 1.0), (KEY, KEY[::-1], KEY)
        samples = [parts] + [parts.sampled(key, 0.3) for key in keys] + [parts]
        expected = [rows] + [rows.sampled(key, 0.3) for key in keys] + [rows]
        for sample, same in zip(samples, expected, strict=True):
            assert np.array_equal(sample.reduced(query), same.reduced(QUERY))
            assert (sample.n_samples, sample.summation_error) == (same.n_samples, same.summation_error)
    finally:
        engine.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask
def test_workers_of_a_cluster_draw_the_same_records():
    """Partitions of one chunk, of several, and of none."""
    distributed, array = pytest.importorskip("distributed"), pytest.importorskip("dask.array")
    estimator = model(SOLVERS["sgd 500"])
    fits = [fitted(estimator, X, Y).coef_]
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=2):
        for cut in ((BLOCK, 3 * BLOCK, 0, BLOCK + 100), (5 * BLOCK, 100)):
            fits.append(fitted(estimator, array.from_array(X, chunks=(cut, D)), array.from_array(Y, chunks=(cut,))).coef_)
    assert np.array_equal(fits[1], fits[0]) and np.array_equal(fits[2], fits[0])


def test_a_task_that_runs_twice_draws_the_same_records(monkeypatch):
    """Each sum of each fit is asked twice, and the first answer lost."""
    reduce = ThreadEngine.reduce

    def twice(engine, query, each):
        reduce(engine, query, each)
        return reduce(engine, query, each)

    estimator = model(SOLVERS["svrg++"])
    with reproducible_noise(0):
        once = estimator.fit(table()).coef_
    monkeypatch.setattr(ThreadEngine, "reduce", twice)
    with reproducible_noise(0):
        assert np.array_equal(estimator.fit(table()).coef_, once)


@pytest.mark.slow
def test_every_release_has_a_key_of_its_own_and_every_chunk_its_number(monkeypatch):
    drawn, keys, sampled, key = [], [], TrainingData.sampled, NoiseSource.key
    monkeypatch.setattr(NoiseSource, "key", lambda source: keys.append(key(source)) or keys[-1])
    monkeypatch.setattr(TrainingData, "sampled", lambda rows, *call: drawn.append(call) or sampled(rows, *call))
    model(SGD(batch_size=500, n_steps=7)).fit(table())
    assert len(keys) == len(set(keys)) == 7
    assert sorted(drawn) == sorted((key, 500 / N, chunk) for key in keys for chunk in range(6))


def test_the_question_hides_its_key_when_it_is_printed():
    """Schedulers log the arguments of tasks."""
    asked = SampleOf(QUERY, b"a key that must not be in a log.", 0.5)
    assert "key that must" not in repr(asked) + str(asked) + f"{asked}"


@pytest.mark.slow
def test_samples_need_a_kept_copy():
    """Each would read the whole source; refused before it is read."""

    def unread():
        raise AssertionError("the table was read")

    for solver in ("sgd", "svrg", "svrg++"):
        with pytest.raises(ValueError, match=r"expected a table with cache='disk'"):
            model(solver).fit(chunks(unread, n_features=D, cache=None))
        with pytest.raises(ValueError, match=r"expected a table with cache='disk'"):
            model(solver).fit(table(cache=None))
    with pytest.raises(ValueError, match="needs a table in memory"):
        model(SGD(sampling="single_pass")).fit(chunks(unread, n_features=D))

"""Samples of a table: the samples of its chunks, with the same sum to the last bit."""

import warnings

import numpy as np
import pytest
from chunks import chunk_of
from scipy import sparse
from seeded import fitted

import skdp.privacy.data.training_data as training_data
from skdp.estimators import DPAUCMaximizer, DPGroupDROClassifier, DPLogisticRegression
from skdp.losses import Logistic
from skdp.privacy.data.persons import Persons
from skdp.privacy.data.summation import BLOCK, TreeSum
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.sampling import sample_of
from skdp.privacy.queries import Gradient, SumQuery
from skdp.solvers import SGD, SGDA, SVRG, PrivateDiff, SVRGPlusPlus

KEY = bytes(range(32))
LENGTH = 64
N, D = 20 * LENGTH + 10, 3


@pytest.fixture
def short_chunks(monkeypatch):
    monkeypatch.setattr(training_data, "chunk_rows", lambda d: LENGTH)


def table(rng, n=N, storage=np.asarray):
    X, y = rng.normal(size=(n, D)), rng.integers(0, 2, n)
    return TrainingData(storage(X), y, data_norm=1.0, intercept_scaling=1.0)


@pytest.mark.parametrize("n", (1, LENGTH - 1, LENGTH, LENGTH + 1, N))
@pytest.mark.parametrize("rate", (0.05, 0.6, 1.0))
def test_the_sample_of_a_table_is_that_of_its_chunks(n, rate, rng, short_chunks):
    rows, starts = table(rng, n), range(0, n, LENGTH)
    drawn = rows.sampled(KEY, rate)._blocks.sample
    expected = [s + sample_of(KEY, c, min(LENGTH, n - s), rate) for c, s in enumerate(starts)]
    np.testing.assert_array_equal(drawn, np.concatenate(expected))
    np.testing.assert_array_equal(rows.sampled(KEY, rate)._blocks.sample, drawn)
    for middle in starts:  # two parts of the table, cut between chunks
        later = chunk_of(rows, middle, n).sampled(KEY, rate, first_chunk=middle // LENGTH)
        np.testing.assert_array_equal(middle + later._blocks.sample, drawn[drawn >= middle])


class CoinPerRow(TrainingData):
    """Rows of persons that each have a coin of their own."""

    def sampled(self, key, rate):
        return self._of_rows(sample_of(key, 0, self._n_rows, rate))


@pytest.mark.parametrize("kind", (TrainingData, CoinPerRow))
def test_a_person_has_one_coin_for_all_her_rows(kind, rng, short_chunks):
    """It depends on her number alone, not on the order and the number of rows. The twin with a coin per row is caught."""
    n = 3 * LENGTH
    numbers = np.r_[np.arange(n), rng.integers(n, size=N), np.full(500, 7)]
    drawn = np.concatenate([LENGTH * chunk + sample_of(KEY, chunk, LENGTH, 0.3) for chunk in range(3)])
    right = []
    for who in (numbers, rng.permutation(numbers), numbers[:-500]):
        X = rng.normal(size=(len(who), D))
        rows = kind(X, np.zeros(len(who), dtype=int), data_norm=1.0, persons=Persons(who, n))
        right.append(np.array_equal(rows.sampled(KEY, 0.3)._blocks.sample, np.flatnonzero(np.isin(who, drawn))))
    assert all(right) if kind is TrainingData else not any(right)


def test_chunks_have_samples_of_their_own(rng, short_chunks):
    drawn = table(rng).sampled(KEY, 0.5)._blocks.sample
    patterns = {tuple(drawn[drawn // LENGTH == chunk] % LENGTH) for chunk in range(N // LENGTH)}
    assert len(patterns) == N // LENGTH


def test_a_key_is_not_kept(rng, short_chunks):
    sample = table(rng).sampled(KEY, 0.5)
    held = [*vars(sample).values(), *vars(sample._blocks).values()]
    assert not any(isinstance(thing, bytes) for thing in held)


@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array), ids=("dense", "csr"))
@pytest.mark.parametrize("rate", (0.0, 0.002, 0.3))
def test_samples_of_parts_of_null_records_and_without_records(rate, storage, rng, short_chunks):
    """Some chunks without a record, all without one, and null records."""
    rows = table(rng, storage=storage).without(np.arange(0, N, 7))
    query = Gradient(Logistic(), rng.normal(size=(D + 1, 1)), 1.0)
    drawn = rows.sampled(KEY, rate)._blocks.sample
    present = np.setdiff1d(drawn, np.arange(0, N, 7))
    answers = [
        query.evaluate(sample)
        for sample in (rows.subset(drawn), rows.subset(present), rows.subset(drawn).without(np.arange(0, N, 7)))
    ]
    for answer in answers:
        np.testing.assert_allclose(answer, query.partial(rows.subset(drawn)), rtol=1e-12, atol=1e-13)
    assert bool(answers[0].any()) == bool(present.size)


@pytest.mark.parametrize("rate", (0.001, 0.01, 0.2))
def test_chunks_without_a_record_keep_their_place_in_the_tree(rate, rng, short_chunks):
    """300 chunks: the nodes of the tree that a chunk belongs to follow from its number, not from what was drawn."""
    rows = table(rng, 300 * LENGTH)
    query, sums = Gradient(Logistic(), rng.normal(size=(D + 1, 1)), 1.0), TreeSum(LENGTH)
    for chunk in range(300):
        part = chunk_of(rows, chunk * LENGTH, (chunk + 1) * LENGTH).sampled(KEY, rate, chunk)
        sums.add_chunk(query.partial(part))
    np.testing.assert_array_equal(query.evaluate(rows.sampled(KEY, rate)), sums.total())


def fits():
    """Fits that ask queries of samples, with chunks that no record, few or many records of are drawn."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.4, 0.4, size=(5 * BLOCK + 100, 4))
    classes, groups = (X @ rng.normal(size=4) > 0).astype(int), np.arange(len(X)) % 3
    two = {"epsilon": 2.0, "classes": [0, 1], "data_norm": 1.0}
    few = {"n_steps": 12}
    for solver in (
        *(SGD(batch_size=size, **few) for size in (3, 500, 18_000)),
        SGD(batch_size=500, standardize=0.2, **few),
        SVRG(n_epochs=2, batch_size=4, n_inner=30),
        SVRGPlusPlus(n_epochs=2, batch_size=4, n_inner=20),
    ):
        yield DPLogisticRegression(solver=solver, **two), X, classes
    for solver in (SGDA(batch_size=400, **few), PrivateDiff(batch_size=400, n_rounds=6)):
        yield DPAUCMaximizer(solver=solver, **two), X, classes
    yield DPGroupDROClassifier(solver=SGDA(batch_size=400, **few), **two), X, classes, groups


@pytest.mark.parametrize(
    "storage", (np.asarray, pytest.param(sparse.csr_array, marks=pytest.mark.exhaustive)), ids=("dense", "csr")
)
def test_sums_of_samples_of_chunks_are_the_sum_to_the_last_bit(storage, monkeypatch):
    """What every query of a fit makes of the samples of chunks, added up by the tree, is what it makes of the sample."""
    monkeypatch.setattr(training_data, "chunk_rows", lambda d: BLOCK)
    whole, sampled, compared, drawn = SumQuery.evaluate, TrainingData.sampled, [], []

    def sampling(rows, key, rate):
        drawn.append((rows, key, rate))
        return sampled(rows, key, rate)

    def evaluate(query, rows):
        answer = whole(query, rows)
        if rows._blocks.sample is not None:
            (table, key, rate), sums = drawn.pop(), TreeSum(BLOCK)
            for chunk, start in enumerate(range(0, table.n_samples, BLOCK)):
                part = chunk_of(table, start, min(start + BLOCK, table.n_samples))
                sums.add_chunk(query.partial(sampled(part, key, rate, chunk)).astype(np.float64))
            np.testing.assert_array_equal(query.finish(sums.total()), answer)
            compared.append(type(query).__name__)
        return answer

    monkeypatch.setattr(TrainingData, "sampled", sampling)
    monkeypatch.setattr(SumQuery, "evaluate", evaluate)
    for model, X, y, *groups in fits():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fitted(model, storage(X), y, **({"groups": groups[0]} if groups else {}))
        assert not drawn and compared
    assert {"Gradient", "StandardizedGradient", "Difference"} <= set(compared) and len(set(compared)) >= 5

"""Binned records: their leaves and scores, in memory and in partitions, and what the oracle refuses."""

import math

import numpy as np
import pytest
from partitions import partitioned, random_cuts
from scipy import sparse
from seeded import source

import skdp.privacy.data.binned_records as binned_records
import skdp.privacy.data.training_data as training_data
from skdp.losses import Logistic, Multinomial
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.binned_records import BinnedRecords, leaves
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BinCounts, LeafSums, ResidualSum, SlopeDerivatives, TreeWeight
from skdp.privacy.schedule import Gaussian, Release, Schedule

N, D, SIZES = 2 * BLOCK + 100, 3, (6, 6, 6)
NULL = np.array([0, 3, BLOCK - 1, BLOCK, N - 1])
STORAGES = {"C": np.ascontiguousarray, "float32": np.float32, "csr": sparse.csr_array}
every_storage = pytest.mark.parametrize("storage", STORAGES)
EDGES = np.array([-1.0, -0.3, 0.0, 0.2, 1.0])


def bins_of(rows):
    """Six bins of each column."""
    dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return np.searchsorted(EDGES, dense).T.astype(np.uint8)


def tree(rng, depth, n_outputs, n_columns=D, n_bins=6):
    """A tree, half of whose splits are cuts of numbers, and what it adds."""
    columns = rng.integers(0, n_columns, depth)
    cuts, sides = np.arange(n_bins) >= rng.integers(0, n_bins + 1, depth)[:, None], rng.random((depth, n_bins)) < 0.5
    splits = np.where(np.arange(depth)[:, None] % 2 == 0, cuts, sides)
    return columns, splits, rng.normal(size=(n_outputs, 1 << depth)).astype(np.float32)


def table(rng, storage="C", n_classes=3, n=N):
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7)
    bounds = {"data_norm": 0.5, "intercept_scaling": 0.7, "by_row": True}  # most rows are longer
    return X, TrainingData(STORAGES[storage](X), rng.integers(0, n_classes, n), **bounds)


def questions(loss, *trees):
    yield from (LeafSums(loss, columns, splits, 0.5) for columns, splits, _ in trees)
    yield BinCounts(SIZES)
    yield TreeWeight(loss, 3.0)
    yield ResidualSum(loss, 0.7, 1.0)
    yield SlopeDerivatives(0.7, loss.n_outputs, 0.9)


@pytest.mark.parametrize("depth", (1, 2, 7, 8, 9, 10))
def test_a_leaf_has_a_bit_per_split(depth, rng):
    bins = rng.integers(0, 6, (D, 500)).astype(np.uint8)
    columns, splits, _ = tree(rng, depth, 1)
    splits[rng.integers(depth)] = rng.random() < 0.5  # one that all records are on one side of
    found = leaves(bins, columns, splits)
    for record, leaf in enumerate(found.tolist()):
        assert leaf == sum(int(splits[place, bins[column, record]]) << place for place, column in enumerate(columns))


@every_storage
def test_bins_and_scores_are_those_of_the_rows_as_given(storage, rng):
    """Scores are raw predictions of rows that are not clipped; null records stay null."""
    X, rows = table(rng, storage)
    coef = rng.normal(size=(D + 1, 3))
    given = X.astype(np.float32) if storage == "float32" else X
    binned = rows.without(NULL).binned(bins_of, coef)
    np.testing.assert_array_equal(binned._bins, bins_of(given))
    np.testing.assert_allclose(binned._scores.T, given @ coef[:D] + 0.7 * coef[D], rtol=1e-4, atol=1e-4)
    assert binned._scores.dtype == np.float32 and binned._scores.shape == (3, N)
    assert np.flatnonzero(binned._presence == 0).tolist() == NULL.tolist()
    assert (binned.n_samples, binned.n_features) == (N, D)
    assert binned.summation_error == rows.summation_error


def test_scores_that_overflow_stay_finite():
    rows = TrainingData(np.array([[1e200, 1e200], [1.0, 1.0]]), np.array([0, 1]), data_norm=1e300, by_row=True)
    with np.errstate(all="ignore"):
        binned = rows.binned(lambda rows: np.zeros((2, 2), dtype=np.uint8), np.array([[1e300, 1.0], [-1e300, 2.0]]))
    assert np.isfinite(binned._scores).all()
    np.testing.assert_array_equal(binned._scores[1, 1], np.float32(3.0))


def test_a_table_stored_by_columns_is_refused(rng):
    X, _ = table(rng, n=50)
    with pytest.raises(ValueError, match="stored by rows"):
        TrainingData(sparse.csc_array(X), np.zeros(50), data_norm=1.0).binned(bins_of, np.zeros((D, 1)))


def test_a_tree_is_added_to_a_copy(rng):
    """Whoever holds the records before a tree, such as an oracle whose fit was stopped, has what it had."""
    _, rows = table(rng)
    before = rows.binned(bins_of, rng.normal(size=(D + 1, 3)))
    first, second = tree(rng, 3, 3), tree(rng, 9, 3)
    held = [getattr(before, name).copy() for name in ("_bins", "_base", "_scores", "_trees")]
    once = before.grown(*first, 1.0)
    twice, again = once.grown(*second, 0.25), once.grown(*second, 0.25)
    for name, array in zip(("_bins", "_base", "_scores", "_trees"), held, strict=True):
        np.testing.assert_array_equal(getattr(before, name), array)
    one, two = (values[:, leaves(before._bins, columns, splits)] for columns, splits, values in (first, second))
    np.testing.assert_array_equal(once._scores, held[2] + one)
    np.testing.assert_array_equal(once._trees, one)
    np.testing.assert_array_equal(twice._scores, held[2] + one + two)
    np.testing.assert_array_equal(twice._trees, one + np.float32(0.25) * two)
    np.testing.assert_array_equal(twice._base, held[1])
    np.testing.assert_array_equal(twice._scores, again._scores)


@every_storage
@pytest.mark.parametrize("null", (False, True))
def test_answers_from_partitions_are_those_of_the_table(storage, null, rng, monkeypatch):
    """To the last bit where partitions end with chunks, and within the allowance for rounding anywhere else."""
    monkeypatch.setattr(training_data, "chunk_rows", lambda d: BLOCK)
    loss, trees = Multinomial(3), [tree(rng, depth, 3) for depth in (2, 8, 9)]
    _, rows = table(rng, storage)
    coef = rng.normal(size=(D + 1, 3))
    whole = (rows.without(NULL) if null else rows).binned(bins_of, coef)
    aligned, other = (
        partitioned(rows, cuts, NULL if null else ()).binned(bins_of, coef)
        for cuts in ([BLOCK, BLOCK, 2 * BLOCK], random_cuts(N, 20, rng))
    )
    for share, one in zip((1.0, 1.0, 0.3), trees, strict=True):
        for query in questions(loss, *trees):
            answer = query.evaluate(whole)
            np.testing.assert_array_equal(query.evaluate(aligned), answer)
            assert np.linalg.norm(query.evaluate(other) - answer) <= 2 * whole.summation_error * query.clip_norm
        whole, aligned, other = (records.grown(*one, share) for records in (whole, aligned, other))
    assert not np.array_equal(BinCounts(SIZES).evaluate(whole), BinCounts(SIZES).evaluate(rows.binned(bins_of, coef))) or not null


@pytest.mark.parametrize("depth", (3, 9))
def test_how_many_blocks_are_worked_on_at_a_time_changes_no_bit(depth, rng, monkeypatch):
    _, rows = table(rng)
    (*first, share), (*second, _) = (*tree(rng, depth, 3), 0.3), (*tree(rng, 2, 3), 1.0)
    coef, answers = rng.normal(size=(D + 1, 3)), []
    for at_once in (1, 6, 32):
        monkeypatch.setattr(binned_records, "AT_ONCE", at_once)
        records = rows.binned(bins_of, coef).grown(*first, share)
        found = [query.evaluate(records) for query in questions(Multinomial(3), first, second)]
        answers.append(np.concatenate([*found, records._scores.ravel(), records._trees.ravel()]))
    assert all(np.array_equal(answers[0], other) for other in answers[1:])


def test_the_order_of_sums_follows_from_the_chunks(rng):
    """Forty chunks are more than one node of the tree adds from left to right."""
    n, (columns, splits, _) = 40 * BLOCK - 7, tree(rng, 3, 1)
    bins, labels = rng.integers(0, 6, (D, n)).astype(np.uint8), rng.integers(0, 2, n)
    whole = BinnedRecords(bins, labels, rng.normal(size=(1, n)).astype(np.float32), None, BLOCK)
    query = LeafSums(Logistic(), columns, splits, 0.5)
    for cuts in ([], [5 * BLOCK], [BLOCK, 17 * BLOCK, 18 * BLOCK, 37 * BLOCK]):
        np.testing.assert_array_equal(query.evaluate(partitioned(whole, cuts)), query.evaluate(whole))
    long = BinnedRecords(bins, labels, whole._scores, None, 8 * BLOCK)
    assert not np.array_equal(query.evaluate(long), query.evaluate(whole))


def test_sums_keep_to_the_allowance_for_rounding(rng):
    """Against sums without rounding; a sum in float32 does not."""
    _, rows = table(rng)
    records = rows.binned(bins_of, rng.normal(size=(D + 1, 3)))
    columns, splits, values = tree(rng, 2, 3)
    records, query = records.grown(columns, splits, values, 1.0), LeafSums(Multinomial(3), columns, splits, 0.5)
    terms = []
    records.leaf_sums(columns, splits, lambda *block: terms.append(query._residuals(*block)) or terms[-1])
    leaf, terms = leaves(records._bins, columns, splits), np.concatenate(terms)
    exact = np.array([[math.fsum(one[leaf == number]) for number in range(4)] for one in terms.T]).ravel()
    allowed = records.summation_error * query.clip_norm
    assert np.linalg.norm(query.evaluate(records) - exact) <= allowed
    short = np.array([[one[leaf == number].astype(np.float32).sum() for number in range(4)] for one in terms.T]).ravel()
    assert np.linalg.norm(short - exact) > allowed


def test_the_score_of_a_record_is_the_same_whatever_the_others_are(rng):
    """Shared records of neighbours have the same scores to the last bit, so that they cancel."""
    X, _ = table(rng, n=60)
    coef, trees = rng.normal(size=(D, 2)), [tree(rng, 4, 2) for _ in range(5)]

    def scores(X):
        records = TrainingData(X, np.zeros(60, dtype=int), data_norm=1.0, by_row=True).binned(bins_of, coef)
        for one in trees:
            records = records.grown(*one, 0.5)
        return np.concatenate([records._scores, records._trees])

    for store in (np.asarray, sparse.csr_array):
        usual = scores(store(X))
        for hostile in (np.zeros(D), np.full(D, 1e200), rng.normal(size=D)):
            other = X.copy()
            other[17] = hostile
            with np.errstate(all="ignore"):
                found = scores(store(other))
            np.testing.assert_array_equal(np.delete(found, 17, axis=1), np.delete(usual, 17, axis=1))


def oracle_of(rows, *queries):
    schedule = Schedule(tuple((1, Release(type(query), Gaussian())) for query in queries))
    budget = Budget(math.inf, 1e-6, "zero_out")
    return Oracle(rows, schedule, budget, calibrate(schedule, budget), source())


def test_the_oracle_asks_of_grown_records(rng):
    _, rows = table(rng, n=200)
    coef, one, loss = rng.normal(size=(D + 1, 3)), tree(rng, 3, 3), Multinomial(3)
    asked = list(questions(loss, one))
    oracle = oracle_of(rows, *asked)
    oracle.bin_rows(bins_of, coef)
    oracle.add_tree(*one, 0.5)
    for query in asked:
        np.testing.assert_array_equal(oracle.ask(query), query.evaluate(rows.binned(bins_of, coef).grown(*one, 0.5)))
    oracle.finish()


@pytest.mark.parametrize("bad", (math.nan, math.inf, -math.inf))
def test_models_and_trees_that_are_not_finite_are_refused_and_nothing_changes(bad, rng):
    _, rows = table(rng, n=200)
    coef, (columns, splits, values) = rng.normal(size=(D + 1, 3)), tree(rng, 3, 3)
    query = LeafSums(Multinomial(3), columns, splits, 0.5)
    oracle = oracle_of(rows, query)
    with pytest.raises(PrivacyAccountingError, match="finite coefficients"):
        oracle.bin_rows(bins_of, np.where(coef == coef[1, 1], bad, coef))
    oracle.bin_rows(bins_of, coef)
    with pytest.raises(PrivacyAccountingError, match="not finite"):
        oracle.add_tree(columns, splits, np.where(values == values[1, 1], bad, values).astype(np.float32), 1.0)
    np.testing.assert_array_equal(oracle.ask(query), query.evaluate(rows.binned(bins_of, coef)))


def test_no_tree_is_added_while_a_query_is_answered(rng):
    """A query is trusted, but must not change the records while it is answered."""
    _, rows = table(rng, n=200)
    one, seen = tree(rng, 3, 3), []

    class Growing(BinCounts):
        def partial(self, rows):
            for change in (lambda: oracle.add_tree(*one, 1.0), lambda: oracle.bin_rows(bins_of, np.zeros((D + 1, 3)))):
                with pytest.raises(PrivacyAccountingError, match="between two releases") as error:
                    change()
                seen.append(error)
            return super().partial(rows)

    oracle = oracle_of(rows, Growing(SIZES))
    oracle.bin_rows(bins_of, np.zeros((D + 1, 3)))
    oracle.ask(Growing(SIZES))
    assert len(seen) == 2


@pytest.mark.parametrize("kind, shown", ((MemoryError, MemoryError), (ValueError, PrivacyAccountingError)))
def test_a_failing_tree_quotes_nothing(kind, shown, rng, monkeypatch):
    X, rows = table(rng, n=200)

    def failing(self, *tree):
        raise kind(f"no room for {X[3, 0]} {X[4, 0]}")

    def bad_bins(rows):
        return failing(None)

    oracle = oracle_of(rows)
    with pytest.raises(shown, match="The bins of rows") as caught:
        oracle.bin_rows(bad_bins, np.zeros((D + 1, 3)))
    assert str(X[4, 0]) not in str(caught.value) and caught.value.__context__ is None
    oracle.bin_rows(bins_of, np.zeros((D + 1, 3)))
    monkeypatch.setattr(BinnedRecords, "grown", failing)
    with pytest.raises(shown, match="A tree") as caught:
        oracle.add_tree(*tree(rng, 3, 3), 1.0)
    assert str(X[4, 0]) not in str(caught.value) and caught.value.__context__ is None


def test_a_loss_of_one_output_has_one_sum_per_leaf(rng):
    _, rows = table(rng, n_classes=2)
    columns, splits, values = tree(rng, 4, 1)
    records = rows.binned(bins_of, rng.normal(size=(D + 1, 1))).grown(columns, splits, values, 1.0)
    assert LeafSums(Logistic(), columns, splits, 0.5).evaluate(records).shape == (16,)

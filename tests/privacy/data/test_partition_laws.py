"""Sums over partitions: of an aligned cut the sums of the table to the last bit, of any other cut within the allowance."""

import warnings
from itertools import cycle, pairwise

import numpy as np
import pytest
from partitions import of_cells, partitioned, random_cuts
from scipy import sparse
from seeded import fitted
from sums import fits

import skdp.privacy.data.training_data as training_data
from skdp.estimators.additive._base import ColumnModel
from skdp.estimators.boosting import _rule
from skdp.privacy import queries
from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.partition import Chunk, chunks_of
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.queries import NonNegativeQuery, SumQuery


def halves(cells):
    """Two bins, below 0 and from 0 on; missing cells are in none."""
    return np.where(np.isnan(cells), 2, cells >= 0).astype(int)


PLACES = np.arange(0, 4.5, 0.25)
OF_CELLS = {  # asked of cells, and counted exactly; that of targets of rows, too
    queries.TargetHistogram: (queries.TargetHistogram(np.array([-0.25, 0.25])),),
    queries.ColumnHistograms: (
        queries.ColumnHistograms((False, True, None), target=True),
        queries.ColumnHistograms((None, True)),
    ),
    queries.FineHistograms: (
        queries.FineHistograms((0, 3), np.array([[0.0, 9.0], [-1e3, 1e3], [-2.0, 2.0]]), target=True),
        queries.FineHistograms((), np.zeros((0, 2))),
    ),
    queries.HaarCounts: (
        queries.HaarCounts((0, 3), np.array([[-1.0, 0.0, 1.0], [-2.0, 1.0, 7.0]]), ((1, 0),), (9,)),
        queries.HaarCounts((), np.zeros((0, 3)), ((1,),), (256,), weighted=True),
    ),
    queries.LimitedMoments: (queries.LimitedMoments((0, 3), np.array([[0.0, 9.0], [-1e3, 1e3]])),),
    queries.ProductMoments: (queries.ProductMoments((0, 3), np.array([[0.0, 9.0], [-1e3, 1e3]])),),
    queries.HalfVectorMoments: (queries.HalfVectorMoments((1, 3), np.array([[0.0, 9.0], [-1e3, 1e3]])),),
    queries.EvenMoments: (queries.EvenMoments((3,), np.array([[-2.0, 1.0]])),),
}
OF_CELLS |= {
    queries.ClippedMoments: (queries.ClippedMoments(-1.0, 2.0), queries.ClippedMoments(0.0, 9.0, False, True, 3)),
    queries.Deviations: (
        queries.Deviations(-1.0, 2.0, 0.3),
        queries.Deviations(-1.0, 2.0, 0.3, about_mean=True, n_samples=3 * BLOCK, column=1),
    ),
    queries.JointHistogram: (queries.JointHistogram((0, 3), (halves, halves), (2, 2)),),
    queries.SingleCount: (queries.SingleCount((1,), (halves,), (1,), True),),
    queries.RankScores: (
        queries.RankScores(3, np.array([-1.0, 0.0, 2.0]), (queries.Ranks(0.0, 5.0, 0.3, 2.0, PLACES, PLACES + 0.5, 0 * PLACES),)),
    ),
}
OF_SAMPLES = {queries.Difference}  # asked by solvers of samples alone
OF_SCORES = {
    queries.ScoreCounts,
    queries.ScoreTree,
    queries.ErrorSums,
    queries.LossSums,
    queries.MomentSums,
}  # evaluations have their records in memory
# Tables in partitions have no sample weights and no exposures.
IN_MEMORY = {queries.WeightedMoments, queries.TotalWeight, queries.ExposedHistogram, queries.ExposedLinkSums}
STORAGES = {"dense": np.asarray, "float32": np.float32, "csr": sparse.csr_array}
NULL = np.array([0, 3, BLOCK - 1, BLOCK, 2 * BLOCK + 99])


def allowance(query, rows):
    """Bound on the difference of two answers that sum in different orders."""
    if hasattr(query, "rounding_error"):
        return 2 * np.sqrt(query.size) * query.rounding_error(rows.n_samples, rows.summation_error)
    return 2 * rows.summation_error * query.clip_norm * query.rounding


def aligned(n):
    """Cuts at chunks, with an empty partition."""
    return [BLOCK, BLOCK, 2 * BLOCK] if n > 2 * BLOCK else [0]


class Compared:
    """Compares what every query of a fit answers with its answers from partitions; the rest once per kind of query and fit."""

    def __init__(self, whole):
        self.whole, self.kinds, self.seen, self.tables = whole, set(), set(), {}
        self.numbers = cycle((1000, 1, 2, 7, 61, 3, 20, 2, 5, 30))
        self.rng, self.broken = np.random.default_rng(0), []

    def __call__(self, query, rows):
        answer = self.whole(query, rows)
        if isinstance(rows, BinnedRecords) or (rows._blocks.sample is None and not rows._by_column):
            if self.tables.get("rows") is not rows:
                self.tables = {"rows": rows, "aligned": partitioned(rows, aligned(rows.n_samples))}
            try:
                self.compare(query, rows, answer)
            except AssertionError as error:  # of which the oracle would not tell
                self.broken.append(f"{type(query).__name__}: {error}")
        return answer

    def compare(self, query, rows, answer):
        np.testing.assert_array_equal(query.finish(self.tables["aligned"].reduced(query)), answer)
        if type(query) not in self.seen:
            self.seen.add(type(query))
            self.any_cut(query, rows, answer)
            self.null_records(query, rows)
            self.tampered(query, rows, answer)

    def any_cut(self, query, rows, answer):
        cuts = random_cuts(rows.n_samples, next(self.numbers), self.rng)
        first, again = (query.finish(partitioned(rows, cuts, seed=seed).reduced(query)) for seed in (0, 1))
        np.testing.assert_array_equal(first, again)  # in whichever order the partitions are done and joined
        assert np.linalg.norm(first - answer) <= allowance(query, rows)

    def null_records(self, query, rows):
        answer = self.whole(query, rows.without(NULL))
        parts = partitioned(rows, aligned(rows.n_samples), NULL)
        np.testing.assert_array_equal(query.finish(parts.reduced(query)), answer)
        parts = partitioned(rows, random_cuts(rows.n_samples, 20, self.rng), NULL)
        assert np.linalg.norm(query.finish(parts.reduced(query)) - answer) <= allowance(query, rows)

    def tampered(self, query, rows, answer):
        """One part dropped or doubled shows: the other tests can fail."""
        if not answer.any():  # sums of zeros
            return
        for tamper in (lambda sums: sums[:-1], lambda sums: [*sums, sums[-1]], lambda sums: [*sums[:2], *sums[1:]]):
            parts = partitioned(rows, [BLOCK, 2 * BLOCK], tamper=tamper)
            assert not np.linalg.norm(query.finish(parts.reduced(query)) - answer) <= allowance(query, rows)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["dense", pytest.param("float32", marks=pytest.mark.exhaustive), "csr"])
def test_sums_over_partitions_are_those_of_the_table(storage, monkeypatch):
    monkeypatch.setattr(training_data, "chunk_rows", lambda d: BLOCK)
    monkeypatch.setattr(_rule, "N_TREES", 20)
    compared = Compared(SumQuery.evaluate)
    monkeypatch.setattr(SumQuery, "evaluate", lambda query, rows: compared(query, rows))
    kinds = set()
    for model, X, y, *groups in fits():
        if storage != "csr" or not isinstance(model, ColumnModel):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # some have no range of y
                fitted(model, STORAGES[storage](X), y, **({"groups": groups[0]} if groups else {}))
            assert not compared.broken
            kinds, compared.seen = kinds | compared.seen, set()
    if storage != "csr":
        every = {kind for kind in vars(queries).values() if isinstance(kind, type) and issubclass(kind, SumQuery)}
        assert {
            kind.__name__
            for kind in every
            - kinds
            - OF_SAMPLES
            - OF_SCORES
            - IN_MEMORY
            - set(OF_CELLS)
            - {SumQuery, NonNegativeQuery, queries.CountQuery}
        } == set()


@pytest.mark.slow
@pytest.mark.parametrize("query", [query for some in OF_CELLS.values() for query in some], ids=lambda query: type(query).__name__)
def test_counts_over_partitions_are_those_of_the_table(query):
    """Of any cut, to the last bit, without null records, and with hostile cells in a single record."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((BLOCK, 4)) < 0.5, rng.normal(size=(BLOCK, 4)), rng.integers(-300, 300, (BLOCK, 4)))
    cells[rng.random(cells.shape) < 0.1] = np.nan
    cells[77] = np.inf, 1e300, np.nan, -0.0
    targets = rng.normal(size=BLOCK)
    target = getattr(query, "target", isinstance(query, queries.TargetHistogram))
    whole = ColumnCells(cells, targets if target else None)
    answer = query.evaluate(whole)
    for n_partitions in (1, 2, 7, 61, 1000):
        cuts = random_cuts(BLOCK, n_partitions, rng)
        parts, hollow = (of_cells(cells, targets, target, cuts, null) for null in ((), NULL[:3]))
        assert (parts.n_samples, parts.n_features, parts.summation_error) == (BLOCK, 4, 0)
        np.testing.assert_array_equal(query.evaluate(parts), answer)
        np.testing.assert_array_equal(query.evaluate(hollow), query.evaluate(whole.without(NULL[:3])))
    for tamper in (lambda sums: sums[:-1], lambda sums: [*sums, sums[-1]], lambda sums: [*sums[:2], *sums[1:]]):
        tampered = query.evaluate(of_cells(cells, targets, target, [1000, 2000], tamper=tamper))
        assert not answer.size or not np.array_equal(tampered, answer)


@pytest.mark.parametrize("storage", STORAGES)
def test_where_chunks_begin_follows_from_the_number_of_records_alone(storage):
    """Whatever the batches of the source are, empty ones among them, a record has the same place in the same chunk."""
    rng = np.random.default_rng(0)
    X, y = STORAGES[storage](rng.normal(size=(1000, 2))), np.arange(1000)
    for n_batches in (1, 2, 7, 61, 1000):
        batches = pairwise([0, *random_cuts(1000, n_batches, rng), 1000])
        found = list(chunks_of((Chunk(X[a:b], y[a:b]) for a, b in batches), 128))
        assert [len(chunk.y) for chunk in found] == [128] * 7 + [104]
        np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in found]), y)
        for chunk, start in zip(found, range(0, 1000, 128), strict=True):
            here, there = (part.toarray() if sparse.issparse(part) else part for part in (chunk.X, X[start : start + 128]))
            np.testing.assert_array_equal(here, there)
            assert sparse.issparse(here) or here.flags.c_contiguous  # BLAS rounds in another way for another order

"""Queries of saddle problems: their definition, and their sensitivity searched for over adversarial neighbours."""

import math
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hostile import TABLES
from hostile import y as HOSTILE_LABELS
from pairwise import pairwise
from scipy import sparse

from skdp.minimax import AUCSaddle, Batch, Factors, SaddleProblem
from skdp.privacy.data.gradient_factors import CANCELLED
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import DualGradient, JointGradient, PrimalDifference, PrimalGradient
from skdp.scorers import LinearScorer, MLPScorer

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: np.rint(20 * X).astype(np.int16),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "csc float32": lambda X: sparse.csc_array(X.astype(np.float32)),
}
CENTRE, SCALE = np.array([0.3, -0.1, 0.0]), np.array([2.0, 0.5, 30.0])
SADDLES = {
    "linear": AUCSaddle(LinearScorer(3), 0.5),
    "standardised": AUCSaddle(LinearScorer(3, CENTRE, SCALE), 0.5),
    "unbalanced": AUCSaddle(LinearScorer(3), 0.02),
    "one layer": AUCSaddle(MLPScorer(3, (6,)), 0.5),
    "two layers": AUCSaddle(MLPScorer(3, (5, 4)), 0.5),
    "standardised network": AUCSaddle(MLPScorer(3, (5,), CENTRE, SCALE), 0.5),
}
ADJACENCIES = {"replace_one": 2.0, "zero_out": 1.0}
QUERIES = ("primal", "dual", "joint", "difference")
every_saddle = pytest.mark.parametrize("saddle", SADDLES.values(), ids=SADDLES)
every_storage = pytest.mark.parametrize("storage", STORAGES)
every_query = pytest.mark.parametrize("kind", QUERIES)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
R = 1.7


def rows_of(X, y, storage="C"):
    return TrainingData(STORAGES[storage](X), y, data_norm=R, by_row=True)


def points(rng, saddle, spread=1.0, distance=1.0):
    """Two points, a distance apart."""
    primal = np.append(saddle.scorer.start(rng), [0.0, 0.0]) + rng.normal(size=saddle.n_primal)
    primal, dual = spread * primal, spread * rng.normal(size=1)
    return primal, dual, primal + distance * rng.normal(size=primal.size), dual + distance * rng.normal(size=1)


def query_of(kind, saddle, here, clip_norm, share=0.3):
    """With the clip norm for all: of the primal side, the dual side, and the difference."""
    primal, dual, previous_primal, previous_dual = here
    return {
        "primal": lambda: PrimalGradient(saddle, primal, dual, clip_norm),
        "dual": lambda: DualGradient(saddle, primal, dual, clip_norm),
        "joint": lambda: JointGradient(saddle, primal, dual, clip_norm, 0.7 * clip_norm, share),
        "difference": lambda: PrimalDifference(saddle, primal, dual, previous_primal, previous_dual, 1e30, 0.0, clip_norm),
    }[kind]()


def gradients(saddle, rows, label, primal, dual):
    """Explicit gradients of one record on both sides."""
    point = saddle.at(saddle.read(Batch(rows[None], np.array([label]))), primal, dual)
    return [np.concatenate([part.total(np.ones(1)) for part in parts]) for parts in (point.primal(), point.dual())]


def clipped(vector, clip_norm):
    return vector * min(1.0, clip_norm / max(np.linalg.norm(vector), 1e-300))


def by_hand(query, X, y):
    """One record after the other, from the definition: the sum, and that of the norms."""
    terms = []
    for row, label in zip(np.asarray(X, dtype=float), y, strict=True):
        row = row * min(1.0, R / max(np.linalg.norm(row), 1e-300))
        primal, dual = gradients(query.saddle, row, label, query.primal, query.dual)
        if isinstance(query, JointGradient):
            sides = zip((primal, dual), (query.primal_clip_norm, query.dual_clip_norm), strict=True)
            unit = [clipped(side, norm) / norm for side, norm in sides]
            terms.append(np.concatenate([math.sqrt(0.7) * unit[0], math.sqrt(0.3) * unit[1]]))
        elif isinstance(query, PrimalDifference):
            before, _ = gradients(query.saddle, row, label, query.previous_primal, query.previous_dual)
            terms.append(clipped(primal - before, query.clip_norm))
        else:
            terms.append(clipped(primal if isinstance(query, PrimalGradient) else dual, query.clip_norm))
    return sum(terms), sum(np.linalg.norm(term) for term in terms)


@pytest.mark.parametrize("saddle, storage, kind, clip_norm", pairwise(product(SADDLES, STORAGES, QUERIES, (0.3, 1e4))))
def test_sums_equal_the_definition(saddle, storage, kind, clip_norm, rng):
    """To 25 bits, as rows clipped in another way may be rounded to another place of the grid on which products are worked out.

    A difference that is clipped may be shorter by as much as its terms are longer than it, times 2**-10.
    """
    X, y = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.7), rng.integers(0, 2, 40).astype(np.int8)
    query = query_of(kind, SADDLES[saddle], points(rng, SADDLES[saddle]), clip_norm)
    rows, X = rows_of(X, y, storage), np.asarray(sparse.csr_matrix(STORAGES[storage](X)).todense())
    precision = CANCELLED if kind == "difference" and clip_norm < 1 else 1e-6
    null, sample = np.array([0, 3]), np.array([1, 5, 6, 38])
    for part, kept in (
        (rows, np.arange(40)),
        (rows.without(null), np.delete(np.arange(40), null)),
        (rows.subset(sample), sample),
    ):
        expected, size = by_hand(query, X[kept], y[kept])
        np.testing.assert_allclose(query.evaluate(part), expected, rtol=0, atol=precision * size)


@every_saddle
@pytest.mark.parametrize("distance", (1e-12, 1e-6, 1e-2, 1.0))
def test_differences_are_those_of_the_gradients_where_nothing_is_clipped(saddle, distance, rng):
    """To the digits that the difference of the two sums has left."""
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40).astype(np.int8)
    primal, dual, previous_primal, previous_dual = points(rng, saddle, distance=distance)
    query = PrimalDifference(saddle, primal, dual, previous_primal, previous_dual, 1e30, 0.0, 1e9)
    here = PrimalGradient(saddle, primal, dual, 1e9).evaluate(rows_of(X, y))
    there = PrimalGradient(saddle, previous_primal, previous_dual, 1e9).evaluate(rows_of(X, y))
    np.testing.assert_allclose(query.evaluate(rows_of(X, y)), here - there, rtol=1e-9, atol=1e-13 * np.linalg.norm(here))


def test_split_gives_both_sums_back(rng):
    saddle, X, y = SADDLES["one layer"], rng.normal(size=(40, 3)), rng.integers(0, 2, 40).astype(np.int8)
    primal, dual, *_ = points(rng, saddle)
    query = JointGradient(saddle, primal, dual, 0.4, 2.5, 0.2)
    sides = query.split(query.evaluate(rows_of(X, y)))
    np.testing.assert_allclose(sides[0], PrimalGradient(saddle, primal, dual, 0.4).evaluate(rows_of(X, y)), rtol=1e-12)
    np.testing.assert_allclose(sides[1], DualGradient(saddle, primal, dual, 2.5).evaluate(rows_of(X, y)), rtol=1e-12)


def test_the_clip_norm_of_a_difference_follows_the_distance():
    saddle = SADDLES["linear"]
    for moved, expected in ((0.0, 0.1), (2.0, 2.0 * 0.5 + 0.1), (1e9, 3.0)):
        query = PrimalDifference(saddle, np.full(5, moved / 5**0.5), np.zeros(1), np.zeros(5), np.zeros(1), 0.5, 0.1, 3.0)
        assert query.clip_norm == pytest.approx(expected)
    query = PrimalDifference(saddle, np.zeros(5), np.ones(1), np.zeros(5), np.zeros(1), 0.5, 0.0, 3.0)
    assert query.clip_norm == 0.5


def neighbours(adjacency, X, y, other_row, storage):
    if adjacency == "zero_out":
        return rows_of(X, y, storage), rows_of(X, y, storage).without(np.array([0]))
    return rows_of(X, y, storage), rows_of(np.vstack([other_row, X[1:]]), np.append(1 - y[:1], y[1:]), storage)


@pytest.mark.parametrize("saddle, kind, adjacency, storage", pairwise(product(SADDLES, QUERIES, ADJACENCIES, STORAGES)))
def test_sensitivity_is_never_exceeded(saddle, kind, adjacency, storage, rng):
    saddle = SADDLES[saddle]
    for _ in range(6):
        X, y = rng.normal(size=(5, 3)) * 10 ** rng.uniform(-2, 3), rng.integers(0, 2, 5).astype(np.int8)
        here = points(rng, saddle, 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-9, 2))
        query = query_of(kind, saddle, here, 10 ** rng.uniform(-4, 3))
        tables = neighbours(adjacency, np.clip(X, -1000, 1000), y, 10 * rng.normal(size=(1, 3)), storage)
        first, second = (query.evaluate(rows) for rows in tables)
        assert np.linalg.norm(first - second) <= query.sensitivity(adjacency) * (1 + 1e-9)


@every_saddle
@every_query
@pytest.mark.parametrize("storage", ("C", "csr"))
def test_a_sample_with_and_without_a_record_differs_by_no_more(saddle, kind, storage, rng):
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50).astype(np.int8)
    query = query_of(kind, saddle, points(rng, saddle, distance=1e-6), 1e-3)
    rows = rows_of(X, y, storage)
    for size in (1, 2, 7, 50):
        sample = np.sort(rng.choice(50, size, replace=False))
        moved = query.evaluate(rows.subset(sample)) - query.evaluate(rows.subset(np.delete(sample, size // 2)))
        assert np.linalg.norm(moved) <= query.sensitivity("zero_out") * (1 + 1e-9)


HOSTILE = [name for name, X in TABLES.items() if type(X) is np.ndarray and X.dtype == float and X.shape == (24, 3)]
HOSTILE = [name for name in HOSTILE if np.isfinite(TABLES[name]).all()]


@pytest.mark.parametrize(
    "name, saddle, kind, storage", pairwise(product(HOSTILE, ("linear", "standardised", "two layers"), QUERIES, ("C", "csr")))
)
def test_hostile_rows_do_not_exceed_it_either(name, saddle, kind, storage, rng):
    saddle, X, y = SADDLES[saddle], TABLES[name], HOSTILE_LABELS.astype(np.int8)
    with np.errstate(all="ignore"):
        rows = rows_of(X, y, storage)
        for spread in (1e-300, 1.0, 1e150, 1e300):
            for distance in (1e-300, 1e-9, 1.0, 1e300):
                query = query_of(kind, saddle, points(rng, saddle, spread, distance), 1e-3)
                if not query.clip_norm > 0 or not all(np.isfinite(point).all() for point in query.parameters()):
                    continue  # the oracle refuses it
                for record in (0, 2, 5):
                    moved = query.evaluate(rows) - query.evaluate(rows.without(np.array([record])))
                    assert np.linalg.norm(moved) <= query.sensitivity("zero_out") * (1 + 1e-9)


def test_hostile_tables_are_found():
    assert {"all 1e308", "denormal", "zeros", "max"} <= set(HOSTILE)


@pytest.mark.parametrize("saddle", [SADDLES[name] for name in SADDLES if name != "unbalanced"], ids=lambda saddle: saddle.scorer)
@every_query
@every_adjacency
@pytest.mark.parametrize("storage", ("C", "int", "csc float32"))
def test_sensitivity_is_attained(saddle, kind, adjacency, storage, rng):
    """By the label alone: while scores are small, it turns the whole gradient around."""
    X, y = np.full((1, 3), 1.0), np.zeros(1, dtype=np.int8)
    primal = 1e-3 * np.append(np.abs(saddle.scorer.start(rng)), [0.0, 0.0])
    primal[:-2] += 1e-4
    here = (primal, np.zeros(1), primal, np.ones(1))
    query = query_of(kind, saddle, here, 1e-6)
    first = query.evaluate(rows_of(X, y, storage))
    second = query.evaluate(rows_of(X, y, storage).without([0]) if adjacency == "zero_out" else rows_of(X, 1 - y, storage))
    assert 0.99 <= np.linalg.norm(first - second) / query.sensitivity(adjacency) <= 1 + 1e-9


@every_storage
@pytest.mark.parametrize("width", (1, 5, 33))
def test_one_record_does_not_change_how_the_others_are_rounded(storage, width, rng):
    """Where the scores are nothing but rounding, and D far below that: without the first record all others move on by one."""
    X, y = np.ones((517, 64)), np.zeros(517, dtype=np.int8)
    saddle, half = AUCSaddle(MLPScorer(64, (width,)), 0.5), 1e18 * rng.normal(size=(width, 32))
    coef = rng.permuted(np.hstack([half, -half]), axis=1)
    point = np.concatenate([coef.ravel(), np.zeros(width), np.ones(width + 3)])
    moved = point.copy()
    moved[-3] += 1e-9
    query = PrimalDifference(saddle, moved, np.zeros(1), point, np.zeros(1), 1.0, 0.0, 1.0)
    rows = TrainingData(STORAGES[storage](X), y, data_norm=8.0, by_row=True)
    assert query.clip_norm == pytest.approx(1e-9, rel=1e-6)
    for stop in (2, 3, 4, 5, 8, 18, 517):
        first, second = (query.evaluate(rows.subset(np.arange(start, stop))) for start in (0, 1))
        assert np.linalg.norm(first - second) <= query.sensitivity("zero_out") * (1 + 1e-6)


class Foreign(SaddleProblem):
    """A problem with arbitrary factors, looked up by the target, which is the number of the record."""

    n_primal, n_dual = 4, 1

    def __init__(self, left, right, dual, constant=0.0):
        self.left, self.right, self.other, self.constant = left, right, dual, constant

    def at(self, batch, primal, dual):
        self.batch, self.sign = batch, dual[0]
        return self

    def primal(self):
        return [Factors(self.sign * self.left[self.batch.targets], self.right[self.batch.targets], self.constant)]

    def dual(self):
        return [Factors(self.other[self.batch.targets], np.ones((len(self.batch.targets), 1)))]


EXTREMES = [0.0, 5e-324, 1e-310, 1e-170, 1e-30, 1.0, -1.0, 1e30, 1e150, 1e160, -1e300, 1.7e308, np.inf, -np.inf, np.nan]


@every_query
@pytest.mark.parametrize("clip_norm", (1e-50, 1e-3, 1.0, 1e50))
def test_no_record_of_a_foreign_problem_contributes_more_than_the_clip_norm(kind, clip_norm, rng):
    """Every pair of extreme factors, signs and points included; what is not finite contributes nothing."""
    left, right = (part.reshape(-1, 1) for part in np.meshgrid(EXTREMES, EXTREMES))
    n, fixed = len(left), np.full((len(left), 2), 0.5)
    fixed[:, :1] = left
    saddle = Foreign(fixed, np.hstack([right, np.ones_like(right)]), left)
    rows = TrainingData(np.ones((n, 1)), np.arange(n), data_norm=1.0)
    for sign in (1.0, -1.0, 1e-300, 1e300):
        here = (np.zeros(4), np.full(1, sign), np.zeros(4), np.full(1, -0.5 * sign))
        query = query_of(kind, saddle, here, clip_norm)
        if query.clip_norm == 0:
            continue  # the oracle does not ask
        with np.errstate(all="ignore"):
            for record in range(n):
                value = query.evaluate(rows.subset(np.array([record])))
                assert np.isfinite(value).all() and np.linalg.norm(value / query.clip_norm) <= 1 + 2**-30
            total = query.evaluate(rows)
        assert np.isfinite(total).all()


def test_a_record_whose_one_side_is_not_finite_adds_the_other():
    for left, dual, expected in (
        (np.nan, 3.0, [0, 0, 0, 0, 0.6]),
        (0.0, np.inf, [0, 0, 0, 0, 0]),
        (30.0, np.nan, [0.4] * 4 + [0]),
    ):
        saddle = Foreign(np.full((1, 2), left), np.ones((1, 2)), np.full((1, 1), dual))
        query = JointGradient(saddle, np.zeros(4), np.ones(1), 1.0, 1.0, 0.36)
        np.testing.assert_allclose(query.evaluate(TrainingData(np.ones((1, 1)), np.zeros(1, dtype=int), data_norm=1.0)), expected)


def twice(matrix):
    """CSR with every entry stored in two halves."""
    m, p = matrix.shape
    return sparse.csr_array((np.repeat(matrix.ravel() / 2, 2), np.tile(np.repeat(np.arange(p), 2), m), 2 * p * np.arange(m + 1)))


WRONG = {
    "too few records": (lambda part: part[:-1], None),
    "one for all": (lambda part: part[:1], None),
    "too many entries": (lambda part: np.hstack([part, part]), None),
    "flat": (lambda part: part[:, 0], None),
    "three dimensions": (lambda part: part[:, :, None], None),
    "integers, whose squares wrap around": (lambda part: (part * 16).astype(np.int8), None),
    "complex": (lambda part: part + 1j, None),
    "float32": (lambda part: part.astype(np.float32), None),
    "objects": (lambda part: part.astype(object), None),
    "a list": (lambda part: part.tolist(), None),
    "a matrix": (lambda part: part.view(np.matrix), None),
    "masked": (np.ma.masked_array, None),
    "stored twice": (None, twice),
    "csc": (None, sparse.csc_array),
    "sparse integers": (None, lambda part: sparse.csr_array(part.astype(int))),
}


@pytest.mark.parametrize("wrong", WRONG)
@every_query
def test_factors_that_are_no_gradients_are_refused(wrong, kind):
    class Broken(Foreign):
        def primal(self):
            left, right = (change or (lambda part: part) for change in WRONG[wrong])
            return [Factors(left(np.ones((len(self.batch.targets), 2))), right(np.ones((len(self.batch.targets), 2))))]

        def dual(self):
            left, right = (change or (lambda part: part) for change in WRONG[wrong])
            return [Factors(left(np.ones((len(self.batch.targets), 1))), right(np.ones((len(self.batch.targets), 1))))]

    rows = TrainingData(np.ones((3, 1)), np.arange(3), data_norm=1.0)
    query = query_of(kind, Broken(None, None, None), (np.zeros(4), np.ones(1), np.zeros(4), np.zeros(1)), 1.0)
    with pytest.raises((PrivacyAccountingError, AttributeError), match=r"Factors of gradients must be|one row per record|shape"):
        query.evaluate(rows)


@pytest.mark.parametrize("first, second", (((2, 2, 0.0), (4, 1, 0.0)), ((4, 1, 0.0), (1, 4, 0.0)), ((1, 4, 0.0), (1, 3, 1.0))))
def test_shapes_that_change_between_two_points_are_refused(first, second):
    class Changing(Foreign):
        def primal(self):
            k, p, constant = first if self.sign > 0 else second
            return [Factors(np.ones((3, k)), np.ones((3, p)), constant)]

    query = query_of("difference", Changing(None, None, None), (np.zeros(4), np.ones(1), np.zeros(4), -np.ones(1)), 1.0)
    with pytest.raises(PrivacyAccountingError, match="differ in shape"):
        query.evaluate(TrainingData(np.ones((3, 1)), np.arange(3), data_norm=1.0))


def test_unsorted_entries_are_no_harm(rng):
    """Tests CSR with entries in any order and without duplicates."""
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 2, 20).astype(np.int8)
    order = np.argsort(rng.random((20, 3)), axis=1)
    shuffled = sparse.csr_array((np.take_along_axis(X, order, axis=1).ravel(), order.ravel(), 3 * np.arange(21)), shape=(20, 3))
    query = PrimalGradient(SADDLES["linear"], *points(rng, SADDLES["linear"])[:2], 0.5)
    value = query.evaluate(TrainingData(shuffled, y, data_norm=R))
    np.testing.assert_allclose(value, query.evaluate(rows_of(X, y)), rtol=1e-12)


@every_query
def test_a_table_by_columns_is_refused(kind, rng):
    rows = TrainingData(sparse.csc_array(np.eye(3)), np.zeros(3, dtype=np.int8), data_norm=1.0)
    with pytest.raises(ValueError, match="by_row=True"):
        query_of(kind, SADDLES["linear"], points(rng, SADDLES["linear"]), 1.0).evaluate(rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind, storage", (("primal", "C"), ("difference", "C"), ("difference", "float32")))
def test_memory_of_a_batch_of_4096_on_a_large_network(kind, storage):
    """Far below 200 MB for 784-256-128-1; measured are 26 and 43, the rows of the sample included."""
    rng = np.random.default_rng(0)
    saddle = AUCSaddle(MLPScorer(784, (256, 128)), 0.1)
    X, y = rng.normal(size=(4096, 784)), rng.integers(0, 2, 4096).astype(np.int8)
    rows, query = rows_of(X, y, storage), query_of(kind, saddle, points(rng, saddle, 0.1, 1e-3), 1.0)
    tracemalloc.start()
    query.evaluate(rows.subset(np.arange(4096)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6

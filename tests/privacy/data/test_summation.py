"""Sums by a fixed tree over public chunks: how many additions a term takes part in, and sums of parts."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from chunks import chunk_of
from scipy import sparse
from seeded import fitted

import skdp.privacy.data.training_data as training_data
from skdp.estimators import (
    DPAdditiveClassifier,
    DPAUCMaximizer,
    DPConstrainedRegression,
    DPGroupDROClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    DPQuantileRegressor,
)
from skdp.privacy import queries
from skdp.privacy.data.summation import ADDITIONS, BLOCK, FAN_IN, LEVELS, LONGEST, TreeSum, chunk_rows, summation_error
from skdp.privacy.queries import SumQuery
from skdp.solvers import Newton, SufficientStatistics

N, D = 2 * BLOCK + 100, 4


class Counted:
    """A term that counts in how many additions it takes part, and how often it is in the sum."""

    def __init__(self, depths):
        self.depths = depths

    def __add__(self, other):
        assert not self.depths.keys() & other.depths.keys()  # no term is added twice
        return Counted({name: depth + 1 for part in (self, other) for name, depth in part.depths.items()})


def tree_of(terms, length=1, n_rows=1):
    sums = TreeSum(length)
    for term in terms:
        sums.add(term, n_rows)
    return sums.total()


@pytest.mark.parametrize("n_chunks", (1, 2, 15, 16, 17, 31, 255, 256, 257, 4096, 5000))
@pytest.mark.parametrize("n_blocks", (1, 3))
def test_every_term_is_added_once_and_few_times(n_chunks, n_blocks):
    number = n_chunks * n_blocks
    terms = (np.array([Counted({name: 0})], dtype=object) for name in range(number))
    depths = tree_of(terms, length=n_blocks)[0].depths
    assert set(depths) == set(range(number))
    levels = math.ceil(math.log(n_chunks, FAN_IN) - 1e-9)
    assert max(depths.values()) <= n_blocks - 1 + (FAN_IN - 1) * max(1, levels)


def test_the_bound_counts_blocks_chunks_and_levels():
    """More than 2**44 rows, 2**49 of a narrow table, would need another level."""
    assert ADDITIONS >= BLOCK + LONGEST // BLOCK + (FAN_IN - 1) * LEVELS
    assert FAN_IN**LEVELS * BLOCK >= 2**44
    for n in (1, BLOCK, 10**6, 10**9):
        assert summation_error(n, False) == ADDITIONS * 2.0**-53 * n
        assert summation_error(n, True) >= max(n, ADDITIONS) * 2.0**-53 * n


@pytest.mark.parametrize(
    "terms",
    (
        np.where(np.arange(70_000) % 2, 2.0**-53, 1.0),
        1 / np.arange(1.0, 70_001),
        np.ones(70_000) * 0.1,
        np.where(np.arange(70_000) % 2, -1.0, 1 - 2.0**-30),
    ),
    ids=("small", "falling", "equal", "cancelling"),
)
def test_the_error_is_within_the_bound(terms):
    got = float(tree_of(terms[:, None].copy(), length=16)[0])
    exact = sum(map(Fraction, terms.tolist()))
    assert abs(Fraction(got) - exact) <= Fraction(summation_error(terms.size, False) * float(np.abs(terms).max()))


def test_the_length_of_a_chunk_is_a_public_power_of_two():
    lengths = [chunk_rows(d) for d in (1, 50, 64, 65, 500, 5000, 10**6)]
    assert lengths[:4] == [LONGEST, LONGEST, LONGEST, LONGEST // 2] and lengths[-1] == BLOCK
    assert all(
        length & (length - 1) == 0 and (length == BLOCK or 8 * length * d <= 2**26)
        for length, d in zip(lengths, (1, 50, 64, 65, 500, 5000, 10**6), strict=True)
    )


def fits():
    """Fits that ask every kind of sum of all records."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.4, 0.4, size=(N, D))
    score = X @ rng.normal(size=D)
    classes, numbers, groups = (score > 0).astype(int), np.clip(score, -1, 1), np.arange(N) % 3
    two, bounds = (
        {"epsilon": 2.0, "classes": [0, 1], "data_norm": 1.0},
        {"epsilon": 2.0, "target_bounds": (-1, 1), "data_norm": 1.0},
    )
    for solver in ("auto", "newton", Newton(hessian="direction")):
        yield DPLogisticRegression(solver=solver, **two), X, classes
    yield DPLogisticRegression(epsilon=2.0, classes=[0, 1, 2], data_norm=1.0), X, np.digitize(score, [-0.1, 0.1])
    yield DPConstrainedRegression(solver="frank_wolfe", constraint="l1", alpha=0.1, fit_intercept=False, **bounds), X, numbers
    for solver in ("auto", SufficientStatistics(adaptive=True)):
        yield DPLinearRegression(solver=solver, **bounds), X, numbers
    yield DPLinearRegression(**{**bounds, "epsilon": 1e-4}), X, numbers  # an intercept alone
    for fit_intercept in (True, False):
        yield DPQuantileRegressor(epsilon=2.0, data_norm=1.0, fit_intercept=fit_intercept), X, 50 * numbers
    for solver in ("moments", "sgda", "privatediff"):
        yield DPAUCMaximizer(solver=solver, **two), X, classes
    yield DPGroupDROClassifier(**two), X, classes, groups
    yield DPAdditiveClassifier(epsilon=20.0, feature_bounds=0.4, classes=[0, 1], knots="private"), X, classes


OF_SAMPLES = {queries.Difference}  # asked by solvers of samples alone


@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array), ids=("dense", "csr"))
def test_sums_of_chunks_are_the_sum_to_the_last_bit(storage, monkeypatch):
    """What every query of a fit makes of its chunks, added up by the tree, is what it makes of the table."""
    monkeypatch.setattr(training_data, "chunk_rows", lambda d: BLOCK)
    whole, compared = SumQuery.evaluate, set()

    def evaluate(query, rows):
        answer = whole(query, rows)
        if rows._blocks.sample is None and not rows._by_column:
            sums = TreeSum(BLOCK)
            for start in range(0, rows.n_samples, BLOCK):
                chunk = chunk_of(rows, start, min(start + BLOCK, rows.n_samples))
                sums.add_chunk(query.partial(chunk).astype(np.float64))
            np.testing.assert_array_equal(query.finish(sums.total()), answer)
            compared.add(type(query))
        return answer

    monkeypatch.setattr(SumQuery, "evaluate", evaluate)
    for model, X, y, *groups in fits():
        if storage is np.asarray or not isinstance(model, DPAdditiveClassifier):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # some have no range of y
                fitted(model, storage(X), y, **({"groups": groups[0]} if groups else {}))
    if storage is np.asarray:
        kinds = {kind for kind in vars(queries).values() if isinstance(kind, type) and issubclass(kind, SumQuery)}
        assert {kind.__name__ for kind in kinds - compared - OF_SAMPLES - {SumQuery}} == set()


@pytest.mark.parametrize(
    "model",
    (DPLogisticRegression(data_norm=1.0), DPLinearRegression(data_norm=1.0, target_bounds=(-1, 1))),
    ids=lambda m: type(m).__name__,
)
def test_a_billion_records_need_hardly_more_noise_for_rounding(model):
    """With a bound that grows with the square of n it would be 5 % more, where a geometry multiplies it up to 139 %."""
    allowances = [line.rounding_allowance for line in model.plan(10**9, 20).releases]
    assert 0 < max(allowances) < 0.002

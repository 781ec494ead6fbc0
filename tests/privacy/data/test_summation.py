"""Sums by a fixed tree over public chunks: how many additions a term takes part in, and sums of parts."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from partitions import of_records, random_cuts
from scipy import sparse

from skdp._data_validation import Facts
from skdp.data import chunks
from skdp.estimators import DPLinearRegression, DPLogisticRegression
from skdp.estimators._partitioned import USUAL
from skdp.privacy.data import summation
from skdp.privacy.data.partition import joined
from skdp.privacy.data.summation import ADDITIONS, BLOCK, FAN_IN, LEVELS, LONGEST, TreeSum, chunk_rows, summation_error
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.queries import Standardization, StandardizedGradient
from skdp.testing import reproducible_noise


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


def runs_of(n_chunks, rng):
    """Ends of neighbouring runs of chunks, of which some are empty."""
    ends = rng.integers(0, n_chunks + 1, rng.integers(0, min(n_chunks, 30) + 1))
    return [0, *np.sort(np.append(ends, ends[:1])).tolist(), n_chunks]


def joined_at_random(n_chunks, rng):
    """The sum of counted terms, from runs that are joined in random groups, these again, and so on."""
    parts = []
    for start, stop in pairwise(runs_of(n_chunks, rng)):
        part = TreeSum(1, start)
        for name in range(start, stop):
            part.add_chunk(np.array([Counted({name: 0})], dtype=object))
        parts.append(part)
    while len(parts) > 1:
        ends = np.unique([0, *rng.integers(1, len(parts), (len(parts) - 1) // 2), len(parts)])
        parts = [joined(*parts[start:stop]) for start, stop in pairwise(ends)]
    return parts[0].total()[0]


@pytest.mark.parametrize("n_chunks", (*range(1, 40), 255, 256, 257, 300, 4096, 5000))
def test_runs_joined_in_any_groups_add_each_term_once_and_as_the_tree_does(n_chunks):
    """To the last bit they are one sum if every term has its place: the same depth, beside the same terms."""
    rng = np.random.default_rng(n_chunks)
    want = tree_of(np.array([Counted({name: 0})], dtype=object) for name in range(n_chunks))[0]
    terms = rng.normal(size=(n_chunks, 3)) * 10.0 ** rng.integers(-8, 8, size=(n_chunks, 1))
    numbers = tree_of(terms.copy())
    for _ in range(3 if n_chunks < 1000 else 1):
        assert joined_at_random(n_chunks, rng).depths == want.depths
        ends = runs_of(n_chunks, rng)
        runs = [TreeSum(1, start) for start in ends[:-1]]
        for run, start, stop in zip(runs, ends, ends[1:], strict=False):
            for term in terms[start:stop]:
                run.add_chunk(term.copy())
        np.testing.assert_array_equal(joined(*runs).total(), numbers)
    assert max(want.depths.values()) <= (FAN_IN - 1) * LEVELS <= ADDITIONS - BLOCK - LONGEST // BLOCK


def test_a_tree_with_more_chunks_than_its_levels_hold_is_no_sum(monkeypatch):
    """Many small partitions make many chunks: at most n / length + P. Beyond the levels there is no bound, and no sum."""
    monkeypatch.setattr(summation, "LEVELS", 2)
    terms = np.ones((FAN_IN**2, 1))
    assert tree_of(terms[1:].copy()) == FAN_IN**2 - 1
    with pytest.raises(IndexError):
        tree_of(terms.copy())
    assert FAN_IN**LEVELS == 2**32


def test_the_bound_counts_blocks_chunks_and_levels():
    """More than 2**44 rows, 2**49 of a narrow table, would need another level."""
    assert ADDITIONS >= BLOCK + LONGEST // BLOCK + (FAN_IN - 1) * LEVELS
    assert FAN_IN**LEVELS * BLOCK >= 2**44
    for n in (1, BLOCK, 10**6, 10**9):
        assert summation_error(n, False) == ADDITIONS * 2.0**-53 * n
        assert summation_error(n, True) >= max(n, ADDITIONS) * 2.0**-53 * n


def of_partitions(terms, n_partitions):
    """The sum of terms in partitions of random lengths, whose chunks have 16 of them."""
    runs, first = [], 0
    for start, stop in pairwise([0, *random_cuts(len(terms), n_partitions, np.random.default_rng(0)), len(terms)]):
        run, chunks = TreeSum(1, first), range(start, stop, 16)
        for chunk in chunks:
            sums = TreeSum(16)
            for term in terms[chunk : min(chunk + 16, stop)]:
                sums.add(term, 1)
            run.add_chunk(sums.total())
        runs, first = [*runs, run], first + len(chunks)
    return joined(*runs)


@pytest.mark.slow
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
    exact = sum(map(Fraction, terms.tolist()))
    for n_partitions in (1, 7, 977):
        got = float(of_partitions(terms[:, None].copy(), n_partitions).total()[0])
        assert abs(Fraction(got) - exact) <= Fraction(summation_error(terms.size, False) * float(np.abs(terms).max()))


def test_the_length_of_a_chunk_is_a_public_power_of_two():
    lengths = [chunk_rows(d) for d in (1, 50, 64, 65, 500, 5000, 10**6)]
    assert lengths[:4] == [LONGEST, LONGEST, LONGEST, LONGEST // 2] and lengths[-1] == BLOCK
    assert all(
        length & (length - 1) == 0 and (length == BLOCK or 8 * length * d <= 2**26)
        for length, d in zip(lengths, (1, 50, 64, 65, 500, 5000, 10**6), strict=True)
    )


@pytest.mark.parametrize(
    "model",
    (DPLogisticRegression(data_norm=1.0), DPLinearRegression(data_norm=1.0, target_bounds=(-1, 1))),
    ids=lambda m: type(m).__name__,
)
def test_a_billion_records_need_hardly_more_noise_for_rounding(model):
    """With a bound that grows with the square of n it would be 5 % more, where a geometry multiplies it up to 139 %."""
    allowances = [line.rounding_allowance for line in model.plan(10**9, 20).releases]
    assert 0 < max(allowances) < 0.002


def test_plan_tables_and_oracle_allow_for_the_same_error(monkeypatch):
    """Of a table in memory, dense or by rows, and of one in partitions of any cut."""
    n, rng = 3 * BLOCK, np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    bounds, cuts = {"data_norm": 1.0}, random_cuts(n, 50, rng)
    tables = TrainingData(X, y, **bounds), TrainingData(sparse.csr_array(X), y, **bounds), of_records(X, y, cuts, bounds)
    assert {table.summation_error for table in tables} == {summation_error(n, False)}
    allowed, calibrated = [], GridGaussian.calibrated
    monkeypatch.setattr(GridGaussian, "calibrated", lambda **given: allowed.append(given) or calibrated(**given))
    for data in ((chunks(lambda: [(X, y)]),), (X, y)):
        with reproducible_noise(0):
            DPLogisticRegression(epsilon=1.0, data_norm=1.0, solver="gd").fit(*data)
    of_table = [given for given in allowed if given["n_samples"] == n]  # others are of the plan before it is read
    assert {given["summation_error"] for given in of_table} == {summation_error(n, False)}
    assert len(of_table) > 4 and {given["n_samples"] for given in allowed} <= {n, USUAL[0]}


def test_standardised_gradients_of_a_billion_records_need_hardly_more_noise():
    """Columns of a wide scale multiply the allowance by 25; with one that grows with the square of n that is 139 %."""
    n, frame = 10**9, Standardization(np.zeros(49), np.full(49, 1.7), True, 7.0)
    plan = DPLogisticRegression(data_norm=7.0)._task().plan_of(Facts(n, 49, classes=np.arange(2)))
    (weight,) = {r.mechanism.weight for _, r in plan.schedule.entries if r.query is StandardizedGradient}
    assert 24 < frame.rounding < 27
    noise = GridGaussian.calibrated(
        clip_norm=1.0,
        relative_sensitivity=2.0,
        scale=plan.scale * weight,
        n_samples=n,
        size=50,
        summation_error=summation_error(n, False) * frame.rounding,
    )
    assert 0 < noise.std / (2.0 * plan.scale * weight) - 1 < 0.03

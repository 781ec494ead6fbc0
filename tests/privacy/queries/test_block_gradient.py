"""Gradients in a block of coordinates: definitions, kept raw predictions, neighbours, and how tables are read."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from block_tables import NULL, STORAGES, WEIGHTS, D, R, Steep, clipped, make, nasty, oracle_of, table
from scipy import sparse

from skdp.losses import Logistic, Multinomial
from skdp.privacy.data import column_cache as columns
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.queries import BlockGradient, Curvature, Gradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian, Release, Schedule


@pytest.fixture(params=("one stretch", "many"))
def stretches(request, monkeypatch):
    """Tables of a few rows are read as those of many thousands are."""
    if request.param == "many":
        monkeypatch.setattr(columns, "BLOCK", 8)
        monkeypatch.setattr(columns, "WIDEST", 2)
        monkeypatch.setattr(columns, "HELD", 1)


def blocks_of(n_coordinates):
    """One feature, the last coordinate, both, some, nearly all, and all."""
    last = n_coordinates - 1
    return [
        np.array(block) for block in ([2], [last], [0, last], [1, 2, 4], range(last), range(1, last + 1), range(last + 1), [3])
    ]


@pytest.mark.parametrize("storage, constant", list(product(STORAGES, (0.0, 0.7))))
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(3)), ids=lambda loss: loss.name)
@pytest.mark.parametrize("null", (False, True))
def test_the_sum_is_that_of_gradients_clipped_in_the_block(storage, constant, loss, null, stretches, rng):
    X, y = table(rng, n_classes=max(2, loss.n_outputs))
    rows = make(storage, X, y, intercept_scaling=constant, class_weight=WEIGHTS)
    rows = rows.without(NULL) if null else rows
    x = clipped(STORAGES[storage](X), constant)
    coef = rng.normal(size=(x.shape[1], loss.n_outputs))
    for block, clip_norm in product(blocks_of(len(coef)), (0.3, 100.0)):
        residuals = WEIGHTS[y][:, None] * loss.derivative(x @ coef, y)
        lengths = np.linalg.norm(x[:, block], axis=1) * np.linalg.norm(residuals, axis=1)
        residuals *= np.minimum(1, clip_norm / np.maximum(lengths, 1e-300))[:, None]
        residuals[NULL] *= not null
        query = BlockGradient(loss, coef, block, clip_norm)
        value = query.evaluate(rows)
        assert value.shape == (query.size,)
        np.testing.assert_allclose(value, (x[:, block].T @ residuals).ravel(), rtol=1e-9, atol=1e-9)
        coef = coef.copy()
        coef[block] -= 0.1 * rng.normal(size=(block.size, loss.n_outputs))


@pytest.mark.parametrize("storage", STORAGES)
def test_all_coordinates_are_the_gradient(storage, rng):
    X, y = table(rng)
    coef = rng.normal(size=(D + 1, 1))
    first, second = (make(storage, X, y, intercept_scaling=0.7) for _ in range(2))
    value = BlockGradient(Logistic(), coef, np.arange(D + 1), 0.3).evaluate(first)
    np.testing.assert_array_equal(value, Gradient(Logistic(), coef, 0.3).evaluate(second))


@pytest.mark.parametrize("storage", ("C", "F", "csc"))
@pytest.mark.parametrize("n_outputs", (1, 3))
def test_raw_predictions_that_are_kept_are_those_worked_out_anew(storage, n_outputs, stretches, rng):
    """Along steps of all sizes, also where coefficients shrink from 1e12 to 1e-3 and the digits of old ones must go."""
    X, y = table(rng)
    rows, x, coef = make(storage, X, y, intercept_scaling=0.7), clipped(X, 0.7), rng.normal(size=(D + 1, n_outputs))
    for step in range(300):
        raw = rows._kept_columns().raw(coef)
        size = np.abs(coef).max() * (1 if step % 50 else 2.0**20)  # what a renewal may still leave
        np.testing.assert_allclose(raw, x @ coef, rtol=0, atol=1e-13 * max(size, np.abs(coef).max() * 2.0**20))
        block = np.sort(rng.choice(D + 1, rng.integers(1, 4), replace=False))
        BlockGradient(Logistic() if n_outputs == 1 else Multinomial(3), coef, block, 0.3).evaluate(rows)
        coef = coef.copy()
        if step % 50 == 48:
            coef *= 1e12
        elif step % 50 == 49:
            coef *= 1e-15
        else:
            coef[block] += rng.normal(size=(block.size, n_outputs))


@pytest.mark.parametrize("storage", ("C", "F", "csc"))
def test_points_may_be_asked_for_between_blocks_and_changed_in_place(storage, rng):
    """The columns of the last block serve one step only, and a point is compared with a copy of the last."""
    X, y = table(rng)
    rows, x, coef = make(storage, X, y), clipped(X), rng.normal(size=(D, 1))
    BlockGradient(Logistic(), coef, np.array([2]), 0.3).evaluate(rows)
    for _ in range(3):
        coef[2] += 2.0
        np.testing.assert_allclose(rows._kept_columns().raw(coef), x @ coef, atol=1e-12)


def test_a_step_that_was_interrupted_leaves_nothing_behind(rng, monkeypatch):
    """The columns of the last block are multiplied in place: half of them may be no longer what they were."""
    X, y = table(rng, n=3 * columns.BLOCK)
    monkeypatch.setattr(columns, "WIDEST", 1)
    rows, x, coef = make("F", X, y), clipped(X), np.zeros((D, 1))
    BlockGradient(Logistic(), coef, np.array([2]), 0.3).evaluate(rows)
    coef[2], multiplied, calls = 3.0, columns.times, []

    def interrupted(*factors):
        calls.append(multiplied(*factors))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return calls[-1]

    with monkeypatch.context() as during:
        during.setattr(columns, "times", interrupted)
        with pytest.raises(KeyboardInterrupt):
            rows._kept_columns().raw(coef)
    np.testing.assert_allclose(rows._kept_columns().raw(coef), x @ coef, atol=1e-12)


def test_old_raw_predictions_go_from_time_to_time(rng):
    """Rounding does not pile up: everything is worked out anew after a public number of columns."""
    X, y = table(rng)
    rows, coef, places = make("F", X, y), np.ones((D, 1)), set()
    for step in range(1000):
        coef = coef.copy()
        coef[step % D] += 0.1
        rows._kept_columns().raw(coef)
        places.add(id(rows._columns._raw))
        assert rows._columns._n_read <= (columns.RENEWAL + 1) * D
    rows._columns._raw += 1.0  # whatever went wrong is gone then
    for step in range(11 * D):
        coef = coef.copy()
        coef[step % D] += 0.1
        raw = rows._kept_columns().raw(coef)
    np.testing.assert_allclose(raw, clipped(X) @ coef, rtol=1e-12)


@pytest.mark.parametrize("storage", ("C", "F", "csc"))
def test_a_step_reads_the_columns_of_the_block_and_of_the_last_step(storage, rng, monkeypatch):
    X, y = table(rng)
    rows, coef, read = make(storage, X, y, intercept_scaling=0.7), rng.normal(size=(D + 1, 1)), []

    def watched(name, columns_of, make_it):
        def reading(*arguments):
            read.extend(np.ravel(columns_of(*arguments)).tolist())
            return make_it(*arguments)

        return reading

    monkeypatch.setattr(columns, "entries", watched("entries", lambda _, part, block, *rest: block, columns.entries))
    for name in ("_stored", "_runs"):
        monkeypatch.setattr(columns.ColumnCache, name, watched(name, lambda _, block: block, getattr(columns.ColumnCache, name)))
    BlockGradient(Logistic(), coef, np.array([2]), 0.3).evaluate(rows)
    for block, last in (([4], [2]), ([1, 2, 7], [4]), ([0], [1, 2]), ([7], [0]), ([3], [])):
        coef = coef.copy()
        coef[[*last, *([7] if 0 in block else [])]] += 1.0
        read.clear()
        BlockGradient(Logistic(), coef, np.array(block), 0.3).evaluate(rows)
        assert set(read) <= {*block, *last} - {7}
        assert {*block} - {7} <= set(read)


@pytest.mark.slow
@pytest.mark.each_pair
@pytest.mark.parametrize("storage", ("C", "F", "csr", "csc"))
@pytest.mark.parametrize("constant, n_outputs", list(product((0.0, 0.7), (1, 3))))
def test_no_pair_of_records_is_further_apart_than_the_sensitivity(storage, constant, n_outputs, rng):
    """Search over rows, slopes, points, their histories and blocks: never exceeded, and attained within 1 %."""
    loss, clip_norm, X = Steep(n_outputs), 0.3, nasty(rng)
    n_coordinates = 3 + (constant > 0)
    points = [rng.uniform(-1, 1, (n_coordinates, n_outputs)) * 10.0**power for power in (0, 3, 200, 308, 0)]
    points.append(points[-1] + 1.0)
    furthest, longest = 0.0, 0.0
    for block in blocks_of(n_coordinates)[:4] if n_coordinates > 3 else map(np.array, ([0], [1, 2], [0, 1, 2])):
        block = block[block < n_coordinates]
        terms = []
        for number, x in enumerate(X):
            y = np.array([number % len(loss.slopes)], dtype=np.int8)
            with np.errstate(all="ignore"):
                rows = TrainingData(STORAGES[storage](x[None]), y, data_norm=R, intercept_scaling=constant)
                terms += [BlockGradient(loss, coef, block, clip_norm).evaluate(rows) for coef in points]
                assert not BlockGradient(loss, points[0], block, clip_norm).evaluate(rows.without(np.array([0]))).any()
        query, terms = BlockGradient(loss, points[0], block, clip_norm), np.array(terms)
        assert np.isfinite(terms).all()
        lengths = np.linalg.norm(terms, axis=1)
        apart = max(np.linalg.norm(terms - term, axis=1).max() for term in terms)
        assert lengths.max() <= query.sensitivity("zero_out") * (1 + 2.0**-30)
        assert apart <= query.sensitivity("replace_one") * (1 + 2.0**-30)
        assert apart > 0.99 * query.sensitivity("replace_one")
        furthest, longest = max(furthest, apart), max(longest, lengths.max())
    assert longest > 0.99 * clip_norm


@pytest.mark.parametrize("storage", ("C", "F", "csr", "csc", "converted"))
@pytest.mark.parametrize("block", ([1], [0, 2], [3], [1, 3]))
def test_neighbours_along_a_run_differ_by_no_more_than_is_covered(storage, block, rng):
    """Rounding included, and raw predictions kept from points of all sizes: others' terms do not feel the record that differs."""
    n, clip_norm, block = 3 * columns.BLOCK + 5, 0.05, np.array(block)
    X, y = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7), (np.arange(n) % 2).astype(np.int8)
    points = [np.zeros((4, 1))]
    for power in (0, 12, 300, 308, 0, 0):
        points.append(points[-1].copy())
        points[-1][rng.choice(4, 2, replace=False)] = 10.0**power * rng.normal(size=(2, 1)).clip(-1, 1)
    for other in ([1e300, -1e300, 1.0], [5e-324, 0.0, -1e150], [0.0, 0.0, 0.0]):
        changed, labels = X.copy(), y.copy()
        changed[n // 2], labels[n // 2] = other, 1 - y[n // 2]
        with np.errstate(all="ignore"):
            first, second = (make(storage, *pair, intercept_scaling=0.5) for pair in ((X, y), (changed, labels)))
            nobody = first.without(np.array([n // 2]))
            for coef in points:
                query = BlockGradient(Logistic(), coef, block, clip_norm)
                a, b, c = (query.evaluate(rows) for rows in (first, second, nobody))
                error = 2 * first.summation_error * clip_norm
                assert np.linalg.norm(a - b) <= query.sensitivity("replace_one") * (1 + 2.0**-30) + error
                assert np.linalg.norm(a - c) <= query.sensitivity("zero_out") * (1 + 2.0**-30) + error


@pytest.mark.parametrize("storage", ("C", "F", "csc"))
@pytest.mark.parametrize("block", ([0], [0, 1]))
def test_sums_are_within_their_allowance(storage, block, rng):
    """Against the exact sum, of terms of mixed signs and sizes."""
    n = 9 * columns.BLOCK + 5
    X = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] * (1 - 2.0**-30 * rng.random((n, 2)))
    rows = TrainingData(STORAGES[storage](np.column_stack([X, np.zeros(n)])), np.zeros(n, dtype=np.int8), data_norm=R)
    value = BlockGradient(Steep(), np.zeros((3, 1)), np.array(block), 10.0).evaluate(rows)
    for column, got in zip(X.T, value, strict=False):
        assert abs(Fraction(math.fsum(column)) - Fraction(float(got))) <= Fraction(rows.summation_error * math.sqrt(len(block)))


def test_other_tables_keep_raw_predictions_of_their_own(rng):
    X, y = table(rng)
    rows, coef, block = make("F", X, y, intercept_scaling=0.7), rng.normal(size=(D + 1, 1)), np.array([1])
    BlockGradient(Logistic(), coef, block, 0.3).evaluate(rows)
    view = rows.standardized(np.zeros(D), np.ones(D))
    for other in (rows.without(NULL), rows.subset(np.arange(20)), view):
        assert other._columns is None
        BlockGradient(Logistic(), coef, block, 0.3).evaluate(other)
    assert rows.subset(NULL)._columns is None


@pytest.mark.parametrize("storage", ("C", "F", "csr"))
def test_samples_and_rows_that_are_not_converted_are_summed_by_row(storage, rng):
    X, y = table(rng)
    coef, chosen = rng.normal(size=(D + 1, 1)), np.array([1, 2, 30])
    rows, few = make(storage, X, y, intercept_scaling=0.7), make("F", X[chosen], y[chosen], intercept_scaling=0.7)
    for block in blocks_of(D + 1):
        query = BlockGradient(Logistic(), coef, block, 0.3)
        np.testing.assert_allclose(query.evaluate(rows.subset(chosen)), query.evaluate(few), rtol=1e-12, atol=1e-14)
        assert not query.evaluate(rows.subset(chosen[:0])).any()


def test_no_loss_can_change_what_is_kept(rng):
    class Careless(Logistic):
        def derivative(self, raw, labels):
            raw += 1.0
            return raw

    X, y = table(rng)
    rows, coef = make("F", X, y), rng.normal(size=(D, 1))
    for block in ([0], [1, 2]):
        BlockGradient(Careless(), coef, np.array(block), 0.3).evaluate(rows)
        np.testing.assert_allclose(rows._columns.raw(coef), clipped(X) @ coef, atol=1e-12)


@pytest.mark.parametrize("storage", ("C", "csr", "csc"))
@pytest.mark.parametrize("constant, block", ((0.0, [0, D]), (0.7, [D, D + 1, D + 2])))
def test_coefficients_of_other_coordinates_than_the_table_has_are_refused(storage, constant, block, rng):
    """The sum of one coordinate would be taken for those that do not exist, and a record would count several times."""
    X, y = table(rng)
    rows = make(storage, X, y, intercept_scaling=constant)
    for n_coordinates in (D + 3, 3):
        query = BlockGradient(Logistic(), np.zeros((n_coordinates, 1)), np.array(block if n_coordinates > D else [0, 1]), 0.3)
        with pytest.raises(ValueError, match="one row of coefficients for every coordinate"):
            query.evaluate(rows)


@pytest.mark.parametrize("kind", (np.float16, np.float32))
def test_noise_is_calibrated_in_double_precision(kind, rng, monkeypatch):
    """Whatever type of number a clip norm is."""
    stds, add_to = [], GridGaussian.add_to
    monkeypatch.setattr(GridGaussian, "add_to", lambda self, *rest: stds.append(self.std) or add_to(self, *rest))
    X, y = table(rng)
    clip_norm = kind(0.1)
    for given in (float(clip_norm), clip_norm):
        schedule = Schedule(((1, Release(BlockGradient, Gaussian(), None, 1)),))
        oracle_of(schedule, make("C", X, y)).ask(BlockGradient(Logistic(), np.zeros((D, 1)), np.array([2]), given))
    assert isinstance(stds[1], float)
    assert stds[0] == stds[1]


@pytest.mark.parametrize("block", ([], [1, 1], [2, 1], [-1, 0], [8], [[0]], [0.5], [True]))
def test_blocks_that_are_none_are_refused(block):
    with pytest.raises(ValueError, match="expected ascending coordinates from 0 to 7"):
        BlockGradient(Logistic(), np.zeros((8, 1)), np.array(block), 1.0)


def test_a_block_cannot_be_changed_afterwards():
    block = np.array([1, 2])
    query = BlockGradient(Logistic(), np.zeros((8, 1)), block, 1.0)
    block[:] = 3
    assert query.block.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        query.block[0] = 0


# Plans and reports.


def test_a_schedule_says_how_it_reads():
    block, rows = Release(BlockGradient, Gaussian(), 1.0), Release(Curvature, Gaussian(), 1.0)
    whole, sample = Release(Gradient, Gaussian(), 1.0), Release(BlockGradient, PoissonGaussian(0.1), 1.0)
    for releases, expected in (
        ((block,), True),
        ((whole,), False),
        ((whole, block), True),
        ((block, rows), False),
        ((sample,), False),
    ):
        assert Schedule(tuple((1, release) for release in releases)).by_column == expected


def test_a_table_is_converted_once_and_not_copied_otherwise(rng):
    X, y = table(rng)
    for storage, given in (("C", np.ascontiguousarray(X)), ("F", np.asfortranarray(X)), ("csc", sparse.csc_matrix(X))):
        assert TrainingData(given, y, data_norm=R, by_column=True)._blocks.table is given, storage
    csr = sparse.csr_matrix(X)
    assert TrainingData(csr, y, data_norm=R, by_column=True)._blocks.by_column
    assert TrainingData(csr, y, data_norm=R)._blocks.table is csr

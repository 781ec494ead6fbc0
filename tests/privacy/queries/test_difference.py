"""The difference query: its definition, and its sensitivity searched for over adversarial neighbours."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import pairwise
from scipy import sparse
from seeded import source

from skdp.losses import Cauchy, Logistic, Multinomial, Squared, Welsch
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Difference, Gradient
from skdp.privacy.schedule import PoissonGaussian, Release, Schedule

STORAGES = {
    "C": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
}
ADJACENCIES = {"replace_one": 2, "zero_out": 1}
R, SCALING = 1.3, 0.7
ROW = float(np.hypot(R, SCALING))
NULL = np.array([0, 3])


class Saddle:
    """Convex for one label and concave for the other: differences point either way."""

    name, lipschitz, smoothness, n_outputs, convex = "saddle", 1.0, 1.0, 1, False

    def derivative(self, raw, labels):
        return raw * (2.0 * labels[:, None] - 1)


class Steep:
    """A loss with arbitrary derivatives, which violate its stated smoothness."""

    name, lipschitz, smoothness, n_outputs = "steep", 1.0, 1.0, 2

    def __init__(self, slopes):
        self.slopes = iter(slopes)

    def derivative(self, raw, labels):
        return np.full_like(raw, next(self.slopes))


LOSSES = (Logistic(), Multinomial(3), Squared(), Saddle())
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
every_storage = pytest.mark.parametrize("storage", STORAGES)


def rows_of(X, y, storage="C", scaling=SCALING, weights=None):
    return TrainingData(STORAGES[storage](X), y, data_norm=R, intercept_scaling=scaling, class_weight=weights)


def points(rng, loss, distance, scaling=SCALING, n_features=4):
    coef = rng.normal(size=(n_features + bool(scaling), loss.n_outputs))
    return coef, coef + distance * rng.normal(size=coef.shape)


@pytest.mark.parametrize(
    "loss, storage, scaling, clip_norm, distance, null",
    pairwise(product(LOSSES, STORAGES, (0.0, SCALING), (0.2, 1e3), (1e-6, 1.0, 30.0), (False, True))),
    ids=lambda value: getattr(value, "name", None),
)
def test_it_is_the_difference_of_the_clipped_gradients(storage, loss, scaling, clip_norm, distance, null, rng):
    """The clip to D cuts nothing off, so the sum is what two gradient queries give; class weights included."""
    X, y = rng.normal(size=(40, 4)) * (rng.random((40, 4)) < 0.7), rng.integers(0, 2, 40).astype(np.int8)
    rows = rows_of(X, y, storage, scaling, np.array([0.5, 2.0, 1.0]))
    rows = rows.without(NULL) if null else rows
    coef, snapshot = points(rng, loss, distance, scaling)
    query = Difference(loss, coef, snapshot, clip_norm, 2.0 * loss.smoothness * (R**2 + scaling**2))
    expected = Gradient(loss, coef, clip_norm).evaluate(rows) - Gradient(loss, snapshot, clip_norm).evaluate(rows)
    np.testing.assert_allclose(query.evaluate(rows), expected, rtol=1e-9, atol=1e-12 * max(1.0, distance))
    assert query.clip_norm <= 2 * clip_norm


@every_loss
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("clip_norm", (0.5, 1e3))
@every_storage
def test_sensitivity_is_never_exceeded(loss, adjacency, clip_norm, storage, rng):
    for _ in range(60):
        X, y = rng.normal(size=(5, 4)) * 10 ** rng.uniform(-2, 3), rng.integers(0, 2, 5).astype(np.int8)
        coef, snapshot = (10 ** rng.uniform(-2, 2) * point for point in points(rng, loss, 10 ** rng.uniform(-9, 2)))
        query = Difference(loss, coef, snapshot, clip_norm, loss.smoothness * ROW**2)
        rows = rows_of(X, y, storage)
        if adjacency == "zero_out":
            other = rows.without(np.array([0]))
        else:
            other = rows_of(np.vstack([10 * rng.normal(size=(1, 4)), X[1:]]), np.append(1 - y[:1], y[1:]), storage)
        moved = np.linalg.norm(query.evaluate(rows) - query.evaluate(other))
        assert moved <= query.sensitivity(adjacency) * (1 + 1e-6 if storage == "float32" else 1 + 2**-30) + 1e-12 * clip_norm


def steepest(loss, distance):
    """Points at which, and a row and labels for which, the gradient changes the fastest: close to where classes are level."""
    row = np.array([R, 0.0, 0.0, 0.0])
    direction = (
        np.append(row, SCALING)[:, None] / ROW * (np.array([[1.0, -1.0, 0.0]]) / np.sqrt(2) if loss.n_outputs > 1 else 1.0)
    )
    snapshot = np.zeros((5, loss.n_outputs))
    if loss.n_outputs > 1:
        snapshot[-1, 2] = -60.0  # a third class that nobody has
    return snapshot + distance * direction, snapshot, row[None]


@every_loss
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@every_storage
def test_sensitivity_is_attained(loss, adjacency, storage):
    """Near the snapshot. Convex losses bend one way only, so that replacing a record moves them half as far as it may."""
    coef, snapshot, row = steepest(loss, 1e-3)
    query = Difference(loss, coef, snapshot, 1e3, loss.smoothness * ROW**2)
    one, other = (query.evaluate(rows_of(row, np.array([label]), storage)) for label in (0, 1))
    moved = np.linalg.norm(one) if adjacency == "zero_out" else np.linalg.norm(one - other)
    if adjacency == "replace_one" and loss.convex:
        moved = 2 * np.linalg.norm(one)  # against a record across the difference, which does not move at all
    assert 0.99 <= moved / query.sensitivity(adjacency) <= 1 + 1e-6


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_twice_the_clip_norm_is_attained_far_from_the_snapshot(adjacency):
    coef, snapshot, row = steepest(Saddle(), 1e3)
    query = Difference(Saddle(), coef, 2 * snapshot - coef, 0.5, ROW**2)
    one, other = (query.evaluate(rows_of(row, np.array([label]))) for label in (0, 1))
    moved = np.linalg.norm(one) if adjacency == "zero_out" else np.linalg.norm(one - other)
    assert query.clip_norm == 1.0
    assert moved == pytest.approx(query.sensitivity(adjacency))


SLOPES = [0.0, 5e-324, 1e-30, 1.0, -1.0, 1e160, -1e300, np.inf, -np.inf, np.nan]


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    entry=st.sampled_from([0.0, 5e-324, 1e-160, 1e-30, 1.0, 1e150, 1e300]),
    slopes=st.tuples(*[st.sampled_from(SLOPES)] * 2),
    clip_norm=st.sampled_from([1e-50, 1e-3, 1.0, 1e50]),
    distance=st.sampled_from([5e-324, 1e-200, 1e-9, 1.0, 1e100, 1e300]),
    scaling=st.sampled_from([0.0, 1.0]),
    storage=st.sampled_from(["C", "csr", "csc"]),
)
def test_no_record_contributes_more_than_the_clip_norm(entry, slopes, clip_norm, distance, scaling, storage):
    with np.errstate(all="ignore"):
        rows = rows_of(np.full((1, 3), entry), np.zeros(1, dtype=np.int8), storage, scaling)
        snapshot = np.zeros((3 + bool(scaling), 2))
        query = Difference(Steep(slopes), snapshot + distance, snapshot, clip_norm, 1.0)
        value = query.evaluate(rows)
    assert np.isfinite(value).all() and query.clip_norm <= 2 * clip_norm
    largest = np.abs(value).max()
    assert largest == 0 or largest * np.linalg.norm(value / largest) <= query.clip_norm * (1 + 2**-30)


@pytest.mark.parametrize("storage", ("C", "csr", "csc"))
@pytest.mark.parametrize("entry", (1e50, 1e100, 1e150))
@pytest.mark.parametrize("norm", (1e-50, 1e-20))
def test_bounds_that_scales_make_denormal_are_kept(storage, entry, norm):
    """A long row is scaled to a tiny norm, so that D times the scale has few digits, or none."""
    for distance in np.geomspace(1e-160, 1e-20, 300):
        query = Difference(Steep([1.0, -1.0]), np.full((1, 2), distance), np.zeros((1, 2)), 1e-50, norm**2)
        with np.errstate(all="ignore"):
            rows = TrainingData(STORAGES[storage](np.full((1, 1), entry)), np.zeros(1, dtype=np.int8), data_norm=norm)
            largest = np.abs(query.evaluate(rows)).max()
        assert largest == 0 or largest * np.sqrt(2) <= query.clip_norm * (1 + 2**-30)


@every_storage
def test_one_record_does_not_change_how_the_others_are_rounded(storage):
    """Where the difference is nothing but rounding, and D far below that."""
    X, coef = np.ones((5042, 64)), np.zeros((64, 1))
    coef[50:53, 0] = 40.0, -1e18, 1e18
    snapshot = coef.copy()
    snapshot[1] = 1e-9
    query, y = Difference(Logistic(), coef, snapshot, 8.0, 16.0), np.zeros(5042, dtype=np.int8)
    other = X.copy()
    other[0] = 0.0
    first, second = (query.evaluate(TrainingData(STORAGES[storage](table), y, data_norm=8.0)) for table in (X, other))
    assert np.linalg.norm(first - second) <= query.sensitivity("zero_out") * (1 + 1e-6)


@every_loss
def test_a_sample_sums_its_own_rows(loss, rng):
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300).astype(np.int8)
    query = Difference(loss, *points(rng, loss, 0.3), 0.8, loss.smoothness * ROW**2)
    chosen = np.sort(rng.choice(300, 40, replace=False))
    sample = query.evaluate(rows_of(X, y).subset(chosen))
    np.testing.assert_allclose(sample, query.evaluate(rows_of(X[chosen], y[chosen])), rtol=1e-10, atol=1e-13)
    assert not query.evaluate(rows_of(X, y).subset(np.array([], dtype=int))).any()


@pytest.mark.parametrize("loss", (*LOSSES, Multinomial(11), Welsch(0.7), Cauchy(1.3)), ids=lambda loss: loss.name)
@pytest.mark.parametrize("storage", ("C", "csr"))
def test_residuals_do_not_depend_on_who_else_is_in_the_sample(loss, storage, rng):
    """Bit by bit, over samples of many sizes: exponentials, sums over classes, and clips go by vectors of several records."""
    X, y = rng.normal(size=(300, 9)), rng.integers(0, 2, 300).astype(np.int8)
    rows = TrainingData(STORAGES[storage](X), y, data_norm=R, intercept_scaling=SCALING, class_weight=np.linspace(0.5, 2.0, 11))
    query, known = Difference(loss, *points(rng, loss, 1e-9, n_features=9), 0.8, loss.smoothness * ROW**2), {}
    for size in (300, 299, 1, 1, 2, 3, 5, 17, 64, 131):
        chosen, kept = np.sort(rng.choice(300, size, replace=False)), []

        def kernel(raw, records, kept=kept):
            kept.append(query._residuals(raw, records).copy())
            return np.zeros_like(kept[-1])

        rows.subset(chosen).sum(np.concatenate([query.coef, query.snapshot], axis=1), kernel)
        for record, residual in zip(chosen, np.concatenate(kept), strict=True):
            np.testing.assert_array_equal(known.setdefault(record, residual), residual)


def answers(distance, times=400):
    """Of the oracle, less the un-noised sums, on a table of rows of zeros without intercept: noise alone."""
    budget = Budget(1.0, 1e-6, "zero_out")
    schedule = Schedule(((times, Release(Difference, PoissonGaussian(0.1), None)),))
    rows = TrainingData(np.zeros((50, 10)), np.zeros(50, dtype=np.int8), data_norm=1.0, by_row=True)
    oracle = Oracle(rows, schedule, budget, calibrate(schedule, budget), source())
    snapshot, coef = np.zeros((10, 1)), np.zeros((10, 1))
    coef[0] = distance
    return np.concatenate([oracle.ask(Difference(Logistic(), coef, snapshot, 1.0, 0.25)) for _ in range(times)])


@pytest.mark.slow
def test_noise_shrinks_with_the_distance_to_the_snapshot():
    """In proportion, until twice the clip norm is reached; at the snapshot there is none. 4000 draws: 1.1 % standard error."""
    far = answers(1e3).std()
    for distance in (8.0, 1.0, 1e-3, 1e-9):
        assert answers(distance).std() / far == pytest.approx(min(2.0, 0.25 * distance) / 2, rel=0.08)
    assert not answers(0.0).any()

"""The gradient query: its algebra, and its sensitivity searched for over adversarial neighbours."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skdp.losses import Logistic, Multinomial
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import Gradient
from skdp.privacy.queries._base import clip_residuals

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "csr_array": sparse.csr_array,
    "csc float32": lambda X: sparse.csc_array(X.astype(np.float32)),
}
LOSSES = (Logistic(), Multinomial(3))
EXTREMES = [0.0, 5e-324, 1e-310, 1e-170, 1e-160, 1e-30, 1.0, 1e30, 1e150, 1e160, 1e300, 1.7e308]


class Steep:
    """A loss with arbitrary derivatives, such as a user's."""

    name, lipschitz, smoothness = "steep", 1.0, 1.0

    def __init__(self, slopes):
        self.slopes = np.array(slopes, dtype=float)
        self.n_outputs = self.slopes.shape[1]

    def derivative(self, raw, labels):
        return self.slopes[: len(raw)].copy()


def gradient_by_hand(X, y, loss, coef, clip_norm, data_norm, intercept_scaling, weights):
    """One record after the other, from the definition."""
    total = np.zeros_like(coef)
    for row, label in zip(np.asarray(X, dtype=float), y, strict=True):
        length = np.linalg.norm(row)
        row = row * (data_norm / length if length > data_norm else 1.0)
        row = np.append(row, intercept_scaling) if intercept_scaling else row
        term = np.outer(row, weights[label] * loss.derivative((row @ coef)[None], np.array([label]))[0])
        total += term * min(1.0, clip_norm / max(np.linalg.norm(term), 1e-300))
    return total.ravel()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept_scaling", (0.0, 0.7))
@pytest.mark.parametrize("clip_norm", (0.2, 100.0))
def test_sum_equals_the_definition(storage, loss, intercept_scaling, clip_norm, rng):
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.6)
    y = rng.integers(0, max(2, loss.n_outputs), 60).astype(np.int8)
    weights = np.array([0.5, 2.0, 1.0])
    coef = rng.normal(size=(4 + bool(intercept_scaling), loss.n_outputs))
    stored = STORAGES[storage](X)
    rows = TrainingData(stored, y, data_norm=1.3, intercept_scaling=intercept_scaling, class_weight=weights)
    X = np.asarray(stored.astype(np.float64).todense() if sparse.issparse(stored) else stored)
    expected = gradient_by_hand(X, y, loss, coef, clip_norm, 1.3, intercept_scaling, weights)
    np.testing.assert_allclose(Gradient(loss, coef, clip_norm).evaluate(rows), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_samples", (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3))
@pytest.mark.parametrize("storage", ("C", "csr", "csc"))
def test_blocks_meet_without_gap_or_overlap(n_samples, storage, rng):
    X = rng.normal(size=(n_samples, 3))
    y = rng.integers(0, 2, n_samples).astype(np.int8)
    coef = rng.normal(size=(4, 1))
    value = Gradient(Logistic(), coef, 10.0).evaluate(TrainingData(STORAGES[storage](X), y, data_norm=9.0, intercept_scaling=1.0))
    extended = np.column_stack([X, np.ones(n_samples)])
    expected = extended.T @ (1 / (1 + np.exp(-extended @ coef[:, 0])) - y)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-8)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    entries=st.lists(st.sampled_from(EXTREMES), min_size=3, max_size=3),
    slopes=st.lists(st.sampled_from([*EXTREMES, np.inf, np.nan, -1.0, -1e300, -np.inf]), min_size=2, max_size=2),
    data_norm=st.sampled_from([1e-50, 1e-3, 1.0, 1e50]),
    clip_norm=st.sampled_from([1e-50, 1e-3, 1.0, 1e50]),
    intercept_scaling=st.sampled_from([0.0, 1e-50, 1.0, 1e50]),
    n_outputs=st.sampled_from([1, 2]),
    storage=st.sampled_from(["C", "csr", "csc"]),
)
def test_no_record_contributes_more_than_the_clip_norm(
    entries, slopes, data_norm, clip_norm, intercept_scaling, n_outputs, storage
):
    X = STORAGES[storage](np.array([entries]))
    coef = np.zeros((3 + bool(intercept_scaling), n_outputs))
    with np.errstate(all="ignore"):
        rows = TrainingData(X, np.zeros(1, dtype=np.int8), data_norm=data_norm, intercept_scaling=intercept_scaling)
        value = Gradient(Steep([slopes[:n_outputs]]), coef, clip_norm).evaluate(rows)
    assert np.isfinite(value).all()
    largest = np.abs(value).max()
    assert largest == 0 or largest * np.linalg.norm(value / largest) <= clip_norm * (1 + 2**-30)


@pytest.mark.parametrize("storage", ("C", "F", "csr", "csc"))
def test_float_error_of_the_sum_stays_within_its_bound(storage, rng):
    """Against an exact rational sum, with residuals looked up by a label that numbers the rows."""
    X, slopes = rng.normal(size=(9000, 1)), rng.normal(size=(9000, 1))
    rows = TrainingData(STORAGES[storage](X), np.arange(9000), data_norm=1e3)
    value = rows.sum(np.zeros((1, 1)), lambda raw, records: slopes[records.targets])
    exact = sum(Fraction(float(x)) * Fraction(float(s)) for x, s in zip(X[:, 0], slopes[:, 0], strict=True))
    assert abs(float(Fraction(float(value[0, 0])) - exact)) <= rows.summation_error * float(np.abs(X * slopes).max())


@pytest.mark.parametrize("storage", STORAGES)
def test_one_record_does_not_change_how_the_others_are_rounded(storage, rng):
    """At a point where rounding is everything, the change is still that of the one record, zeros and duplicates included."""
    X = np.ones((5042, 64))
    coef = np.zeros((64, 1))
    coef[50:53, 0] = 40.0, -1e18, 1e18
    query, y = Gradient(Logistic(), coef, 8.0), np.zeros(5042, dtype=np.int8)
    other = X.copy()
    other[0] = 0.0
    first, second = (query.evaluate(TrainingData(STORAGES[storage](table), y, data_norm=8.0)) for table in (X, other))
    assert np.linalg.norm(first - second) <= query.sensitivity("zero_out") * (1 + 1e-6)


@np.errstate(invalid="ignore")
def test_clip_handles_not_a_number():
    residuals = clip_residuals(np.array([[np.nan], [np.inf], [-3.0]]), np.ones(3), 2.0)
    assert residuals.tolist() == [[0.0], [2.0], [-2.0]]
    residuals = clip_residuals(np.array([[np.nan, 1.0], [np.inf, 1.0], [3.0, 4.0]]), np.ones(3), 2.0)
    np.testing.assert_allclose(residuals, [[0.0, 0.0], [0.0, 0.0], [1.2, 1.6]])


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("size", (0, 1, 17, 2 * BLOCK + 5))
def test_a_sample_sums_its_own_rows(storage, loss, size, rng):
    n = 3 * BLOCK
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.6)
    y = rng.integers(0, max(2, loss.n_outputs), n).astype(np.int8)
    bounds = {"data_norm": 1.2, "intercept_scaling": 0.7, "class_weight": np.array([1.0, 2.0, 3.0])}
    query = Gradient(loss, rng.normal(size=(5, loss.n_outputs)), 0.8)
    chosen = np.sort(rng.choice(n, size, replace=False))
    sample = query.evaluate(TrainingData(STORAGES[storage](X), y, by_row=True, **bounds).subset(chosen))
    X = np.asarray(STORAGES[storage](X).todense() if sparse.issparse(STORAGES[storage](X)) else STORAGES[storage](X))
    expected = query.evaluate(TrainingData(X[chosen], y[chosen], **bounds)) if size else np.zeros(5 * loss.n_outputs)
    np.testing.assert_allclose(sample, expected, rtol=1e-12, atol=1e-12 * max(size, 1))


@pytest.mark.slow
@pytest.mark.parametrize("storage", ("C", "F", "csr"))
@pytest.mark.parametrize("n_features", (1, 8, 53, 8193, 20_000))
@pytest.mark.parametrize("n_outputs", (1, 3))
def test_a_record_is_worked_out_alike_whatever_sample_it_is_in(storage, n_features, n_outputs, rng):
    """BLAS would round a row by its position in the block; compared bit by bit over samples of many sizes."""
    X = 1e3 * rng.normal(size=(300, n_features))
    rows = TrainingData(STORAGES[storage](X), np.arange(300, dtype=np.int16), data_norm=1e6)
    coef = rng.normal(size=(n_features, n_outputs))
    seen: dict[int, bytes] = {}

    def kernel(raw, records):
        for label, row in zip(records.targets.tolist(), raw, strict=True):
            assert seen.setdefault(label, row.tobytes()) == row.tobytes()
        return raw

    for size in (300, 1, 2, 3, *rng.integers(1, 130, 60)):
        rows.subset(np.sort(rng.choice(300, size, replace=False))).sum(coef, kernel)
    assert len(seen) == 300


def test_a_table_by_columns_gives_no_samples():
    rows = TrainingData(sparse.csc_array(np.eye(3)), np.zeros(3, dtype=np.int8), data_norm=1.0)
    with pytest.raises(ValueError, match="by_row=True"):
        rows.subset(np.array([0]))

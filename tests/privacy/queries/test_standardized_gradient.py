"""The queries of standardized_gd: their definitions, and their sensitivities searched for over neighbours."""

import math
import os

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from skdp.losses import BoundedProper, Logistic, Multinomial
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import (
    ClassCounts,
    LabelSum,
    Moments,
    ScoreCounts,
    ScoreGradient,
    ShortenedGradient,
    Standardization,
    StandardizedGradient,
    Whitening,
)

STORAGES = {
    "C": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
}
R = 1.3
NULL = np.array([0, 3])


def table(rng, n=50, d=4, n_classes=2):
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[4] = [1e200, -1e300, 0.0, 1e10]  # its squared norm overflows: a row of zeros
    return X, rng.integers(0, n_classes, n).astype(np.int8)


def clipped(X):
    X = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(X, axis=1)
    return X * np.where(np.isfinite(norms), R / np.maximum(norms, R), 0.0)[:, None]


def geometry(rng, d=4, intercept=True):
    centre = rng.normal(size=d) / 3 if intercept else np.zeros(d)
    return Standardization(centre, rng.uniform(0.3, 4.0, d), intercept, R)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("intercept_scaling", (0.0, 0.7))
@pytest.mark.parametrize("null", (False, True))
def test_moments_are_the_sums(storage, intercept_scaling, null, rng):
    X, y = table(rng, n_classes=3)
    X = STORAGES[storage](X if storage != "float32" else X.clip(-1e15, 1e15))
    rows = TrainingData(X, y, data_norm=R, intercept_scaling=intercept_scaling)
    x, kept = clipped(X), np.ones(50, dtype=bool)
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    expected = [x[kept].sum(axis=0), (x[kept] ** 2).sum(axis=0) / R]
    np.testing.assert_allclose(Moments(R, 4).evaluate(rows), np.concatenate(expected), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(ClassCounts(3).evaluate(rows), np.bincount(y[kept], minlength=3))
    y2 = (y > 0).astype(np.int8)
    rows = TrainingData(X, y2, data_norm=R, intercept_scaling=intercept_scaling)
    rows = rows.without(NULL) if null else rows
    assert LabelSum().evaluate(rows) == [(2.0 * y2[kept] - 1).sum()]


@pytest.mark.parametrize("query, n_labels", ((LabelSum(), 2), (ClassCounts(2), 2), (ClassCounts(4), 4)))
def test_labels_move_as_far_as_the_sensitivity(query, n_labels):
    values = [query.evaluate(TrainingData(np.ones((1, 1)), np.array([label]), data_norm=R)) for label in range(n_labels)]
    assert max(np.linalg.norm(a - b) for a in values for b in values) == query.sensitivity("replace_one")
    assert max(np.linalg.norm(a) for a in values) == query.sensitivity("zero_out") == query.clip_norm


def test_moments_never_move_further_than_the_sensitivity_and_come_near(rng):
    query = Moments(R, 3)

    def contribution(x, label):
        return query.evaluate(TrainingData(np.array([x]), np.array([label], dtype=np.int8), data_norm=R))

    def moved(flat):
        return -np.linalg.norm(contribution(flat[:3], 0) - contribution(flat[3:], 1))

    starts = rng.normal(size=(12, 6)) * rng.choice([0.3, 1.0, 3.0], size=(12, 1))
    found = max(-minimize(moved, start, method="Nelder-Mead", options={"maxiter": 2000}).fun for start in starts)
    assert 0.99 < found / query.sensitivity("replace_one") <= 1 + 1e-12
    alone = max(np.linalg.norm(contribution(x, 1)) for x in [*rng.normal(size=(200, 3)) * 3, [9.0, 0, 0]])
    assert 0.99 < alone / query.sensitivity("zero_out") <= 1 + 1e-12
    assert query.sensitivity("zero_out") == pytest.approx(query.clip_norm)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(3)), ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept_scaling", (0.0, 0.7))
@pytest.mark.parametrize("clip_norm", (0.2, 100.0))
@pytest.mark.parametrize("null", (False, True))
def test_the_gradient_is_that_of_standardised_rows(storage, loss, intercept_scaling, clip_norm, null, rng):
    X, y = table(rng, n_classes=max(2, loss.n_outputs))
    X = STORAGES[storage](X if storage != "float32" else X.clip(-1e15, 1e15))
    weights, frame = np.array([0.5, 2.0, 1.0]), geometry(rng, intercept=bool(intercept_scaling))
    z = frame.scale * (clipped(X) - frame.centre)
    z = np.column_stack([z, np.ones(50)]) if intercept_scaling else z
    coef = rng.normal(size=(z.shape[1], loss.n_outputs))
    residuals = weights[y][:, None] * loss.derivative(z @ coef, y)
    sizes = np.linalg.norm(z, axis=1) * np.linalg.norm(residuals, axis=1)
    residuals *= np.minimum(1, clip_norm / np.maximum(sizes, 1e-300))[:, None]
    rows = TrainingData(X, y, data_norm=R, intercept_scaling=intercept_scaling, class_weight=weights)
    if null:
        rows, residuals[NULL] = rows.without(NULL), 0.0
    value = StandardizedGradient(loss, coef, clip_norm, frame).evaluate(rows)
    np.testing.assert_allclose(value, (z.T @ residuals).ravel(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("clip_norm", (0.2, 100.0))
@pytest.mark.parametrize("public", (None, np.array([2.0, 0.5])))
@pytest.mark.parametrize("null", (False, True))
def test_released_weights_of_the_classes_are_as_public_ones(storage, clip_norm, public, null, rng):
    """And multiply them, before the clip."""
    X, y = table(rng)
    X, released = STORAGES[storage](X if storage != "float32" else X.clip(-1e15, 1e15)), (0.03, 1.0)
    frame, coef = geometry(rng), rng.normal(size=(5, 1))
    answers = []
    for weights, class_weight in ((public, released), (np.array(released) * (1.0 if public is None else public), None)):
        rows = TrainingData(X, y, data_norm=R, intercept_scaling=1.0, class_weight=weights)
        rows = rows.without(NULL) if null else rows
        answers.append(StandardizedGradient(Logistic(), coef, clip_norm, frame, class_weight=class_weight).evaluate(rows))
    np.testing.assert_allclose(*answers, rtol=1e-12, atol=1e-12)
    assert StandardizedGradient(Logistic(), coef, clip_norm, frame, class_weight=released).parameters()[-1].tolist() == [
        0.03,
        1.0,
    ]


@pytest.mark.parametrize("weights", ((1.0, 1.0), (1e-3, 1.0), (1.0, 40.0), (1e150, 1e-150), (math.inf, 1.0), (math.nan, 0.0)))
def test_whatever_the_weights_no_pair_of_records_moves_the_sum_beyond_the_sensitivity(weights, rng):
    """Searched for over rows, labels and coefficients; come near where a weight lets a gradient reach the clip."""
    near, largest = geometry(rng), {"replace_one": 0.0, "zero_out": 0.0}
    frame = Standardization(near.centre, 30 * near.scale, True, R)  # rows so long that the constant hardly counts
    for trial in range(300):
        coef = rng.normal(size=(5, 1)) * 10.0 ** rng.integers(-3, 4)
        query = StandardizedGradient(Logistic(), coef, 0.3, frame, class_weight=weights)
        pair = rng.normal(size=(2, 4)) * 10.0 ** rng.integers(-2, 3, size=(2, 1))
        pair[1] = 2 * frame.centre - pair[0] if trial % 2 else pair[1]
        labels = rng.integers(0, 2, 2)
        with np.errstate(all="ignore"):
            one, other = (
                query.evaluate(TrainingData(pair[[i]], labels[[i]].astype(np.int8), data_norm=R, intercept_scaling=1.0))
                for i in (0, 1)
            )
        largest["zero_out"] = max(largest["zero_out"], np.linalg.norm(one))
        largest["replace_one"] = max(largest["replace_one"], np.linalg.norm(one - other))
    for adjacency, moved in largest.items():
        assert moved <= query.sensitivity(adjacency) * (1 + 1e-9)
    if 1.0 <= max(weights) < 100:
        assert largest["zero_out"] > 0.99 * 0.3 and largest["replace_one"] > 0.99 * 0.6


@pytest.mark.parametrize("storage", STORAGES)
def test_one_standardised_gradient_never_exceeds_the_clip_and_reaches_it(storage, rng):
    """Rows near the centre of a wide scale, where norms come from differences; margins of any size."""
    largest = 0.0
    for scale in (1e-3, 1.0, 1e3, 1e6):
        X = rng.normal(size=(300, 4))
        X /= np.linalg.norm(X, axis=1, keepdims=True) / R
        X[:100] = X[0] * (1 + 1e-9 * rng.normal(size=(100, 1)))
        frame = Standardization(X[0].copy(), scale * rng.uniform(0.5, 1, 4), True, R)
        coef = rng.normal(size=(5, 1)) * 10.0 ** rng.integers(-3, 4)
        query = StandardizedGradient(Logistic(), coef, 0.3, frame)
        table = STORAGES[storage](X)
        for label in (0, 1):
            rows = TrainingData(table, np.full(300, label, dtype=np.int8), data_norm=R, intercept_scaling=1.0)
            view = rows.standardized(frame.centre, frame.scale)
            x = clipped(table)
            z = np.column_stack([frame.scale * (x - frame.centre), np.ones(300)])
            true = np.linalg.norm(z, axis=1)
            assert (view._inverse_norms * true <= 1 + 2.0**-31).all()
            for i in (0, 50, 200):
                record = (
                    rows.subset(np.array([i]))
                    if storage != "csc"
                    else TrainingData(table.tocsr(), np.full(300, label), data_norm=R, intercept_scaling=1.0).subset(
                        np.array([i])
                    )
                )
                size = np.linalg.norm(query.evaluate(record))
                assert size <= 0.3 * (1 + 2.0**-30) + 1e-12 * frame.rounding
                largest = max(largest, size)
    assert largest > 0.99 * 0.3


def test_views_are_kept_for_the_same_geometry_only(rng):
    X, y = table(rng)
    rows, frame = TrainingData(X, y, data_norm=R, intercept_scaling=1.0), geometry(rng)
    view = rows.standardized(frame.centre, frame.scale)
    assert rows.standardized(frame.centre, frame.scale) is view
    scale = frame.scale.copy()
    assert rows.standardized(frame.centre.copy(), scale) is view
    scale *= 1000  # the norms of a changed scale are worked out anew
    assert rows.standardized(frame.centre, scale) is not view
    with pytest.raises(ValueError, match="read-only"):
        frame.scale[0] = 1.0
    assert rows.without(NULL)._view is None and rows.subset(NULL)._view is None


@pytest.mark.parametrize("null", (False, True))
def test_the_score_gradient_is_that_of_rounded_scores(null, rng):
    X, y = table(rng)
    rows, kept = TrainingData(X, y, data_norm=R, intercept_scaling=0.7), np.ones(50, dtype=bool)
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    coef, point, weights = rng.normal(size=(5, 1)) * 3, np.array([1.7, -0.4]), np.array([0.5, 2.0])
    u = np.clip(np.column_stack([clipped(X), np.full(50, 0.7)]) @ coef, -3, 3)[:, 0]
    u = np.rint((u + 3) * 100) / 100 - 3
    residuals = weights[y] * Logistic().derivative((point[0] * u + point[1])[:, None], y)[:, 0]
    limits = 0.9 / np.hypot(u, 1)
    residuals = np.clip(residuals, -limits, limits) * kept
    query = ScoreGradient(Logistic(), coef, point, 0.9, weights)
    np.testing.assert_allclose(query.evaluate(rows), [residuals @ u, residuals.sum()], rtol=1e-9, atol=1e-9)
    before = rows.reduced(query)
    ScoreGradient(Logistic(), coef.copy(), point + 1, 0.9, weights).evaluate(rows)
    assert rows.reduced(query) is before  # one pass serves all
    coef *= 2
    ScoreGradient(Logistic(), coef, point, 0.9, weights).evaluate(rows)
    assert rows.reduced(query) is not before


def test_one_score_gradient_never_exceeds_the_clip_and_reaches_it(rng):
    sizes = []
    for _ in range(300):
        X, label = rng.normal(size=(1, 2)) * 10.0 ** rng.integers(-2, 3), int(rng.integers(2))
        coef, point = rng.normal(size=(3, 1)) * 10.0 ** rng.integers(-1, 4), rng.normal(size=2) * 10.0 ** rng.integers(-1, 4)
        rows = TrainingData(X, np.array([label], dtype=np.int8), data_norm=R, intercept_scaling=1.0)
        sizes.append(np.linalg.norm(ScoreGradient(Logistic(), coef, point, 0.9).evaluate(rows)))
    assert 0.99 * 0.9 < max(sizes) <= 0.9 * (1 + 1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("null", (False, True))
def test_counts_are_those_of_scores_between_the_cuts(storage, null, rng):
    X, y = table(rng)
    X = STORAGES[storage](X if storage != "float32" else X.clip(-1e15, 1e15))
    rows, kept = TrainingData(X, y, data_norm=R, intercept_scaling=0.7), np.ones(50, dtype=bool)
    if null:
        rows, kept[NULL] = rows.without(NULL), False
    coef, cuts = rng.normal(size=(5, 1)) / 3, (-60, -7, 0, 40)
    u = np.clip(np.column_stack([clipped(X), np.full(50, 0.7)]) @ coef, -3, 3)[:, 0]
    edges = [-np.inf, *((cut - 0.5) / 100 for cut in cuts), np.inf]
    expected = [np.histogram(u[kept & (y == label)], edges)[0] for label in (0, 1)]
    counts = ScoreCounts(coef, cuts).evaluate(rows)
    np.testing.assert_array_equal(counts, np.concatenate(expected))
    assert counts.size == ScoreCounts(coef, cuts).size and np.count_nonzero(counts) > 5


def test_counts_move_as_far_as_the_sensitivity(rng):
    query = ScoreCounts(np.array([[1.0], [0.0]]), (-200, 0, 200))
    cells = [-1e300, -R, -0.005, -0.0, 0.0, 0.004, 0.005, R, 1e300, np.nan, np.inf]
    values = [
        query.evaluate(TrainingData(np.array([[x]]), np.array([label], dtype=np.int8), data_norm=R, intercept_scaling=1.0))
        for x in np.nan_to_num(cells, posinf=1e308)
        for label in (0, 1)
    ]
    assert all(value.sum() == 1 and set(value) == {0, 1} for value in values)
    assert max(np.linalg.norm(a - b) for a in values for b in values) == query.sensitivity("replace_one")
    assert max(np.linalg.norm(a) for a in values) == query.sensitivity("zero_out") == query.clip_norm


def test_sensitivities_of_gradients_are_twice_the_clip_or_once(rng):
    frame = geometry(rng)
    for query in (
        StandardizedGradient(Logistic(), np.zeros((5, 1)), 0.3, frame),
        ScoreGradient(Logistic(), np.zeros((5, 1)), np.zeros(2), 0.3),
    ):
        assert (query.sensitivity("replace_one"), query.sensitivity("zero_out")) == (0.6, 0.3)
    assert frame.rounding >= 1 + 2 * frame.scale.max() * R
    assert geometry(rng, intercept=False).rounding > 3
    assert math.isfinite(frame.largest_norm)


@pytest.mark.parametrize("storage", ("C", "csr", "csc"))
def test_squares_that_underflow_are_not_lost(storage):
    """Entries of 1e-162 in a geometry of 1e53, under a loss of anybody's: the clip holds."""

    class Steep:
        name, lipschitz, smoothness, n_outputs = "steep", 1.0, 1.0, 1

        def derivative(self, raw, labels):
            return np.full_like(raw, 1e300)

    X = np.full((1, 1001), 1.5e-162)
    frame = Standardization(np.zeros(1001), np.full(1001, 1e53), False, 1e-50)
    rows = TrainingData(STORAGES[storage](X), np.zeros(1, dtype=np.int8), data_norm=1e-50)
    with np.errstate(all="ignore"):
        assert np.linalg.norm(StandardizedGradient(Steep(), np.zeros((1001, 1)), 1.0, frame).evaluate(rows)) <= 1 + 1e-9


def test_a_geometry_without_a_bound_on_its_rounding_is_refused():
    oracle = Oracle.__new__(Oracle)
    oracle._process = os.getpid()
    frame = Standardization(np.zeros(2), np.array([1e200, 1.0]), True, 1.0)
    with pytest.raises(PrivacyAccountingError, match="rounding of StandardizedGradient has no bound"):
        oracle.ask(StandardizedGradient(Logistic(), np.zeros((3, 1)), 1.0, frame))


@pytest.mark.parametrize("kind", (Standardization, Whitening))
def test_a_geometry_without_intercept_has_no_centre(kind):
    with pytest.raises(ValueError, match="expected zeros"):
        kind(np.array([0.0, 1.0]), np.ones(2), False, 1.0)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("weights", (None, np.array([0.5, 4.0])))
@pytest.mark.parametrize("null", (False, True))
def test_bounded_slopes_of_weighted_rows_need_no_clip(storage, weights, null, rng):
    """The definition has none, and the largest weight is that of the classes."""
    X, y = table(rng)
    X, clip_norm = STORAGES[storage](X if storage != "float32" else X.clip(-1e15, 1e15)), 0.3
    largest = 1.0 if weights is None else float(weights.max())
    frame, coef = geometry(rng), rng.normal(size=(5, 1))
    z = np.column_stack([frame.scale * (clipped(X) - frame.centre), np.ones(50)])
    shorter = np.minimum(1, 2 * clip_norm / (largest * np.linalg.norm(z, axis=1)))
    slopes = (1.0 if weights is None else weights[y]) * shorter * BoundedProper().derivative(z @ coef, y)[:, 0]
    rows = TrainingData(X, y, data_norm=R, intercept_scaling=1.0, class_weight=weights)
    if null:
        rows, slopes[NULL] = rows.without(NULL), 0.0
    query = ShortenedGradient(BoundedProper(), coef, clip_norm, frame, largest_weight=largest)
    np.testing.assert_allclose(query.evaluate(rows), z.T @ slopes, rtol=1e-6, atol=1e-6)


def test_bounded_slopes_of_weighted_rows_reach_the_sensitivity_and_never_exceed_it(rng):
    largest = {"replace_one": 0.0, "zero_out": 0.0}
    for trial in range(300):
        frame = Standardization(rng.normal(size=4) / 3, 10.0 ** rng.integers(-1, 3) * rng.uniform(0.3, 4.0, 4), True, R)
        coef = rng.normal(size=(5, 1)) * 10.0 ** rng.integers(-3, 4)
        query = ShortenedGradient(BoundedProper(), coef, 0.3, frame)
        pair = rng.normal(size=(2, 4)) * 10.0 ** rng.integers(-2, 3, size=(2, 1))
        pair[1] = 2 * frame.centre - pair[0] if trial % 2 else pair[1]
        answers = [
            query.evaluate(TrainingData(pair[[i]], rng.integers(0, 2, 1).astype(np.int8), data_norm=R, intercept_scaling=1.0))
            for i in (0, 1)
        ]
        largest["zero_out"] = max(largest["zero_out"], *map(np.linalg.norm, answers))
        largest["replace_one"] = max(largest["replace_one"], np.linalg.norm(answers[0] - answers[1]))
    for adjacency, moved in largest.items():
        assert 0.99 < moved / query.sensitivity(adjacency) <= 1 + 1e-9

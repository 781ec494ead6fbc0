"""The queries of standardized_gd: their definitions, and their sensitivities searched for over neighbours."""

import math
import os

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import Logistic
from skdp.privacy.data import training_data
from skdp.privacy.data.storage import standardized_squares
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import (
    ScoreGradient,
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
def test_distances_from_one_centre_are_computed_once_and_do_not_depend_on_earlier_views(storage, rng, monkeypatch):
    """Two scales are the same in all columns; the third has large digits where squares of distances have none left."""
    X, computed = table(rng)[0] / 1e3, []
    X[3:5] = np.array([[0.0], [1e-170]])
    one, other = rng.normal(size=4) / 9, np.zeros(4)
    asked = [(one, 2.0), (other, 0.3), (one, 0.7), (other, 0.7), (other, 1e190), (other, 0.3)]

    def squares(*arguments):
        computed.append(arguments)
        return standardized_squares(*arguments)

    monkeypatch.setattr(training_data, "standardized_squares", squares)
    rows = TrainingData(STORAGES["C" if storage == "float32" else storage](X), np.zeros(50), data_norm=R, intercept_scaling=1.0)
    for centre, scale in asked:
        view = rows.standardized(centre, np.full(4, scale))._inverse_norms
        fresh = rows._copied().standardized(centre, np.full(4, scale))._inverse_norms
        np.testing.assert_array_equal(view, fresh)
        with np.errstate(over="ignore"):
            lengths = np.hypot(1.0, np.linalg.norm(scale * (clipped(X) - centre), axis=1))
        np.testing.assert_allclose(view, 1 / lengths, rtol=1e-11)
    assert len(computed) - len(asked) == 5  # the last view has the same centre as the last but two


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

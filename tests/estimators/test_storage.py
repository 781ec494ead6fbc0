"""Test that nothing stored or printed reveals storage and dtype of a table, which may depend on its records."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder

from skdp import (
    DPAdditiveClassifier,
    DPAUCMaximizer,
    DPLinearRegression,
    DPLogisticRegression,
    DPQuantileRegressor,
    PrivacyLedger,
)
from skdp.preprocessing import RowNormClipper
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.queries import DistanceHistogram, Standardization
from skdp.solvers import SGDA
from skdp.solvers.adaptive._whitening import ranges

N = 100
Y = np.arange(N) % 2
KEPT = ("relative_sensitivity", "scale", "n_samples", "size")  # clip norms and roundings may follow from releases
CLASSIFIERS = [
    *(DPLogisticRegression(data_norm=2.0, solver=name) for name in ("auto", "gd", "sgd", "skgd", "newton", "objective")),
    DPAUCMaximizer(data_norm=2.0, solver="sgda"),
]


def stored(model):
    """A chain whose table is dense from 60 stored entries on, and CSR below."""
    encoder = OneHotEncoder(categories=[["a", "b", "c"]], drop="first")
    return Pipeline([("columns", ColumnTransformer([("code", encoder, ["code"])])), ("model", clone(model))])


def frame(n_stored):
    return pd.DataFrame({"code": np.where(np.arange(N) < n_stored, np.where(Y, "b", "c"), "a")})


def fit(model, X, y, monkeypatch):
    """The fitted model, all that the noise was calibrated by, and the ledger's entry."""
    calibrated, seen = GridGaussian.calibrated, []
    with monkeypatch.context() as patch, PrivacyLedger(epsilon=50, delta=1e-2) as ledger:
        patch.setattr(
            GridGaussian, "calibrated", lambda **given: seen.append([given[name] for name in KEPT]) or calibrated(**given)
        )
        model.fit(X, y)
    return model, sorted(seen), ledger.entries[0].spending


def public(model):
    """Names and types of the fitted attributes, and the report in all its forms."""
    report = model.privacy_report_
    types = {name: (type(value), getattr(value, "dtype", None)) for name, value in vars(model).items()}
    return types, report.to_dict(), str(report), report._repr_html_()


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
def test_neighbours_at_the_threshold_of_a_column_transformer_have_equal_reports(model, monkeypatch):
    tables = [frame(60), frame(59)]
    kinds = [sparse.issparse(stored(model)[:-1].fit_transform(X)) for X in tables]
    assert kinds == [False, True]
    (dense, *noise), (thin, *other) = (fit(stored(model), X, Y, monkeypatch) for X in tables)
    assert public(dense[-1]) == public(thin[-1])
    assert noise == other


@pytest.mark.parametrize("model", (DPLogisticRegression(), DPLinearRegression(target_bounds=(0, 1))), ids=repr)
@pytest.mark.parametrize("kind", (np.int64, np.float32, bool, sparse.csr_array, np.asfortranarray))
def test_a_dtype_does_not_show(model, kind, monkeypatch):
    X = (np.arange(3 * N).reshape(N, 3) % 5 > 2).astype(float)
    changed = kind(X) if not isinstance(kind, type) or kind is sparse.csr_array else X.astype(kind)
    (plain, *noise), (same, *other) = (fit(clone(model), table, Y, monkeypatch) for table in (X, changed))
    assert public(plain) == public(same)
    assert noise == other


OF_TYPES = [
    *CLASSIFIERS[:5],
    DPAUCMaximizer(data_norm=2.0, solver=SGDA(5)),
    DPLogisticRegression(feature_bounds=4.0, inference=True),
    DPAdditiveClassifier(feature_bounds=4.0),
    DPLinearRegression(feature_bounds=4.0, target_bounds=(0, 1)),
]


@pytest.mark.parametrize("model", OF_TYPES, ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_a_dtype_changes_no_bit(model):
    """So partitions may have dtypes of their own: one record may decide that of its partition."""
    X = np.random.default_rng(0).integers(0, 4, (N, 3)).astype(float)
    plain = fitted(clone(model), X, Y)
    for kind in (np.int64, np.int8, np.float32, object):
        other = fitted(clone(model), X.astype(kind), Y)
        predict = "decision_function" if hasattr(plain, "classes_") else "predict"
        assert np.array_equal(getattr(other, predict)(X), getattr(plain, predict)(X))


@pytest.mark.parametrize("n", (100, 5000, 20_000))
@pytest.mark.parametrize("by_row, by_column", ((False, False), (True, False), (False, True), (True, True)))
def test_the_bound_on_the_rounding_of_sums_is_one_for_dense_and_csr(n, by_row, by_column):
    tables = (np.eye(n, 2), np.asfortranarray(np.eye(n, 2)), sparse.csr_array(np.eye(n, 2)))
    bounds = {TrainingData(X, np.zeros(n), data_norm=1.0, by_row=by_row, by_column=by_column).summation_error for X in tables}
    assert len(bounds) == 1
    columns = TrainingData(
        sparse.csc_array(np.eye(n, 2)), np.zeros(n), data_norm=1.0, by_row=by_row, by_column=by_column
    ).summation_error
    assert bounds == {columns} if by_row or by_column else max(bounds) <= columns


@pytest.mark.parametrize("solver", ("gd", "auto"))
def test_bounds_that_leave_out_zero_scale_dense_and_csr_alike(solver):
    """Else a record that decides the storage would decide how all others are scaled."""
    X = np.arange(3 * N).reshape(N, 3) % 7.0
    model = DPLogisticRegression(solver=solver, feature_bounds=(2.0, 6.0))
    dense, thin = (fitted(clone(model), table, Y, seed=0) for table in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6)
    np.testing.assert_allclose(thin.intercept_, dense.intercept_, rtol=1e-6)


@pytest.mark.parametrize("model", (DPLinearRegression(target_bounds=(0, 1)), DPQuantileRegressor(target_bounds=(0, 1))), ids=repr)
@pytest.mark.parametrize("bounds", (None, 2.0))
def test_rows_as_long_as_a_public_limit_are_counted_alike(model, bounds, monkeypatch):
    """Else a record that decides the storage would move the counts of all others."""
    evaluate, seen = DistanceHistogram.evaluate, []
    monkeypatch.setattr(DistanceHistogram, "evaluate", lambda query, rows: seen.append(evaluate(query, rows)) or seen[-1])
    X = np.eye(8)[np.arange(2000) % 8]  # of length 1 and, over a data_norm of sqrt(8), at the end of a range
    model = clone(model).set_params(fit_intercept=False, feature_bounds=bounds)
    for table in (X, sparse.csr_array(X)):
        model.fit(table, np.arange(2000) % 2)
    dense, *_ = seen
    np.testing.assert_array_equal(seen[len(seen) // 2], dense)


@pytest.mark.parametrize("transformer", (Normalizer(), RowNormClipper(1.0)), ids=repr)
def test_rows_that_a_transformer_made_of_length_1_are_counted_alike(transformer, rng):
    X = rng.normal(size=(2000, 40))
    rows = [TrainingData(transformer.fit_transform(table), np.zeros(2000), data_norm=2.0) for table in (X, sparse.csr_array(X))]
    lengths = Standardization(np.zeros(40), np.full(40, 0.5), False, 2.0)
    dense, thin = (DistanceHistogram(lengths, ranges(1.0)).evaluate(stored) for stored in rows)
    np.testing.assert_array_equal(thin, dense)


def test_lengths_of_rows_are_one_for_dense_and_csr_to_the_last_bit(rng):
    X = rng.normal(size=(5000, 40)) * (rng.random(size=(5000, 40)) < 0.7)
    scale, y = rng.uniform(0.5, 2.0, size=40), np.zeros(5000)
    lengths = []
    for table in (X, np.asfortranarray(X), sparse.csr_array(X)):
        rows = TrainingData(table, y, data_norm=6.0)
        view = rows.standardized(np.zeros(40), scale)
        lengths.append(np.stack([rows._scales, rows._inverse_norms, view._inverse_norms]))
    np.testing.assert_array_equal(lengths[1], lengths[0])
    np.testing.assert_array_equal(lengths[2], lengths[0])

"""Test that public bounds of the features set the unit of each column, by the same convention everywhere."""

import inspect
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from products import GIVEN
from scipy import sparse
from seeded import fitted
from sklearn.base import clone

import skdp.estimators
from skdp import (
    DPAUCMaximizer,
    DPConstrainedRegression,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPQuantileRegressor,
    DPRobustRegressor,
)
from skdp.estimators import DPAdditiveRegressor, DPGroupDROClassifier
from skdp.preprocessing import BoundedScaler, Schema
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import FirstMoment, Standardization

WIDE = [(0, 1), (0, 1e7)]
SCALING = (
    *(DPLogisticRegression, DPLinearSVC, DPLinearRegression, DPRobustRegressor, DPQuantileRegressor),
    *(DPAUCMaximizer, DPGroupDROClassifier),
)
scaling = pytest.mark.parametrize("kind", SCALING)


def raw_table(n=20_000, seed=0):
    """Columns of very different units, a target in them, and a label."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, size=(n, 2))
    y = 3 * X[:, 0] - 2 * X[:, 1] + rng.normal(0, 0.3, n)
    return X * [1, 1e7], y, y > 0.5


def made(kind, **params):
    given = {name: value for name, value in GIVEN.get(kind.__name__, {}).items() if name != "feature_bounds"}
    return kind(**{**given, **params})


def targets_of(kind, y, labels):
    return labels if hasattr(kind, "classes") or "classes" in inspect.signature(kind).parameters else y


@scaling
def test_bounds_make_columns_of_any_unit_usable(kind):
    """The score is that of the same columns in [0, 1], up to the noise: at epsilon 1 and 20 000 records it is .02 at most."""
    X, y, labels = raw_table()
    target, given = targets_of(kind, y, labels), {} if kind is not DPLinearRegression else {"target_bounds": (-3, 4)}
    model = fitted(made(kind, feature_bounds=WIDE, **given), X, target)
    assert model.score(X, target) > 0.85


@scaling
def test_the_fit_is_that_of_columns_scaled_beforehand(kind):
    """Same noise, same answers: clipped and scaled within the blocks, or before the fit."""
    X, y, labels = raw_table(300)
    target = targets_of(kind, y, labels)
    X[::7, 1] *= 30  # beyond the bounds
    inner = np.clip(X / [1, 1e7], 0, 1)
    model = fitted(made(kind, feature_bounds=WIDE, random_state=0), X, target)
    other = fitted(made(kind, random_state=0), inner, target)
    np.testing.assert_allclose(np.ravel(model.coef_) * [1, 1e7], np.ravel(other.coef_), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-7, atol=1e-9)
    assert "clipped to feature_bounds" in model.privacy_report_.public["resolved"]["columns"]


def test_a_column_far_from_zero_is_shifted():
    """Years between 1990 and 2020: without the shift they would be a constant."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1990, 2020, 20_000), rng.uniform(-1, 1, 20_000)])
    y = (X[:, 0] - 2005) / 15 + X[:, 1]
    model = fitted(DPLinearRegression(1.0, feature_bounds=[(1990, 2020), (-1, 1)], target_bounds=(-2, 2)), X, y)
    assert model.score(X, y) > 0.95
    mid = float(model.predict([[2005.0, 0.0]])[0])
    low, high = model.predict([[2005.0, 0.0]], return_interval=0.999)[1][0]
    assert low < mid < high and high - low < 0.5  # intervals are in the units of X, too
    assert (model.coef_interval(0.999)[0] * 15 > 0.5).all() and (model.coef_interval(0.999)[0] * 15 < 1.5).all()


@pytest.mark.each_value
@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression, DPAUCMaximizer))
@pytest.mark.parametrize("form", (sparse.csr_array, sparse.csc_array, np.asfortranarray, lambda X: X.astype(np.float32)))
def test_every_storage_gives_the_same_fit(kind, form):
    """Bounds with zero in them never fill the zeros of a sparse table."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-50, 5000, size=(300, 3)).round() * (rng.random((300, 3)) < 0.4)
    target = targets_of(kind, np.sin(X[:, 0]), X[:, 0] > 0)
    bounds = [(-40, 4000), (0, 4000), (-5000, 0)]
    dense = fitted(made(kind, feature_bounds=bounds, solver="gd" if kind is not DPAUCMaximizer else "auto"), X, target)
    other = fitted(clone(dense), form(X), target)
    np.testing.assert_allclose(other.coef_, dense.coef_, rtol=1e-6, atol=1e-9 * np.abs(dense.coef_).max())


@pytest.mark.parametrize("shifts", (True, False))
@pytest.mark.parametrize("form", (np.asarray, sparse.csr_array, sparse.csc_array))
def test_no_scaled_row_is_longer_than_one_per_column(form, shifts, rng):
    """Whatever the entries are: sums over rows are those of the mapped table, whose entries lie in [-1, 1]."""
    X = rng.normal(size=(500, 4)) * [1e-8, 1, 1e8, 1e300] * (rng.random((500, 4)) < 0.5)
    bounds = np.array([[-1e-8, 2e-8], [0.5, 1.5], [-1e9, -1e7], [-1.0, 1.0]])
    mapping = ColumnScaling.of_bounds(bounds, shifts)
    expected = mapping.scaled(X)
    assert np.abs(expected).max() <= 1
    rows = TrainingData(form(X), np.zeros(500, dtype=int), data_norm=2.0, scaling=mapping)
    np.testing.assert_allclose(rows.moments(), [expected.sum(axis=0), (expected**2).sum(axis=0)], rtol=1e-9, atol=1e-9)
    coef = np.ones((4, 1))
    everything = rows.sum(coef, lambda raw, records: raw)
    np.testing.assert_allclose(everything, expected.T @ (expected @ coef), rtol=1e-9, atol=1e-9)
    for block in ([1, 2], [3]):  # read column by column
        part = rows.block_sum(coef, np.array(block), lambda raw, records: raw, 1e9)
        np.testing.assert_allclose(part, everything[block], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", (np.asarray, sparse.csr_array, sparse.csc_array))
@pytest.mark.parametrize("bounds", ([[-1, 1]] * 3, [[-1, 2], [0, 5], [3, 4]]))
def test_bounds_that_keep_rows_short_give_the_bits_that_norms_give(form, bounds, rng):
    """And rows that may be longer are shortened, by the norm or around a centre."""
    mapping = ColumnScaling.of_bounds(np.array(bounds, dtype=float), True)
    X = np.concatenate([rng.uniform(-3, 6, (300, 3)) * (rng.random((300, 3)) < 0.7), [mapping.low, mapping.high]])
    X, Z = form(X), form(mapping.scaled(X))
    reach = np.sqrt(np.square(mapping.scaled(np.stack([mapping.low, mapping.high]))).max(axis=0).sum())
    for norm in (reach, 0.8 * reach):
        facts = {"data_norm": norm, "intercept_scaling": 1.0}
        bounded, measured = TrainingData(X, np.zeros(302), scaling=mapping, **facts), TrainingData(Z, np.zeros(302), **facts)
        assert (bounded._norms is None) == (norm == reach)
        np.testing.assert_array_equal(bounded._scales, measured._scales)
        for centre in (np.zeros(3), np.full(3, 0.3)):
            for length in (1.0, 0.6):
                query = FirstMoment(Standardization(centre, np.full(3, 1 / (length * bounded.reach(centre, 1.0))), True, norm))
                np.testing.assert_allclose(query.evaluate(bounded), query.evaluate(measured), rtol=1e-12, atol=1e-12)
        coef = rng.normal(size=(4, 1))
        kernel = lambda raw, records: raw * records.inverse_norms[:, None]  # noqa: E731
        np.testing.assert_array_equal(bounded.sum(coef, kernel), measured.sum(coef, kernel))


@pytest.mark.slow
def test_memory_of_a_scaled_fit_is_that_of_blocks():
    """No second table: tracemalloc sees what NumPy allocates."""
    import tracemalloc

    X = np.random.default_rng(0).uniform(0, 100, size=(40_000, 20))
    y = X[:, 0] > 50
    tracemalloc.start()
    fitted(DPLogisticRegression(feature_bounds=(0, 100), classes=[False, True]), X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * X.nbytes


def test_constraints_and_skgd_keep_bounds_in_the_units_of_x():
    X, y, labels = raw_table(300)
    constrained = DPConstrainedRegression(feature_bounds=WIDE, target_bounds=(-3, 4))
    report = fitted(constrained, X, y).privacy_report_.public["resolved"]
    assert report["data_norm"] == pytest.approx(math.hypot(1, 1e7)) and "columns" not in report
    blockwise = DPLogisticRegression(feature_bounds=WIDE, solver="skgd")
    assert blockwise.plan(300, 2).public["resolved"]["data_norm"] == pytest.approx(math.hypot(1, 1e7))
    named = {"b": (0, 1e7), "a": (0, 1)}  # in the order of the columns, whatever that of the dict is
    frame = pd.DataFrame(X, columns=["a", "b"])
    by_name = fitted(DPLogisticRegression(feature_bounds=named, solver="skgd", delta=1e-6), frame, labels)
    by_place = fitted(DPLogisticRegression(feature_bounds=WIDE, solver="skgd", delta=1e-6), X, labels)
    np.testing.assert_array_equal(by_name.coef_, by_place.coef_)


NAMED = {"b": 5, "a": (0, 10)}


@pytest.mark.parametrize("kind", (DPLogisticRegression, DPConstrainedRegression, DPAdditiveRegressor, BoundedScaler))
def test_a_dict_has_exactly_the_columns(kind):
    def using(bounds):
        if kind is BoundedScaler:
            return BoundedScaler(bounds)
        return made(kind, feature_bounds=bounds)

    frame, y = pd.DataFrame({"a": np.arange(60) % 11.0, "b": np.arange(60) % 5.0}), np.arange(60) % 2
    using(NAMED).fit(frame, y)
    using({"x1": 5, "x0": (0, 10)}).fit(frame.to_numpy(), y)
    for wrong in ({"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 1, "c": 1}):
        with pytest.raises(ValueError, match=r"bounds has the keys .*expected the columns of X: \['a', 'b'\]"):
            using(wrong).fit(frame, y)


def test_scalers_and_schemas_take_the_same_forms():
    X = np.array([[-4.0, 1.0], [9.0, 2.0]])
    for bounds in (5, (-5, 5), [(-5, 5)] * 2, np.array([[-5, 5]] * 2), {"x1": 5, "x0": (-5, 5)}):
        np.testing.assert_array_equal(BoundedScaler(bounds).fit_transform(X), [[-0.8, 0.2], [1, 0.4]])
    for bounds in ([1, 2, 3], np.ones(2), "wide", True, None):
        with pytest.raises((TypeError, ValueError), match="bounds="):
            BoundedScaler(bounds).fit(X)
    assert Schema.read({"columns": {"a": {"kind": "number", "bounds": 5}}}).columns["a"].bounds == (-5.0, 5.0)


@pytest.mark.parametrize("bounds", ([3.0, 10.0, 2.0], np.array([3.0, 10.0, 2.0])))
def test_one_number_per_column_is_refused_with_what_to_write(bounds):
    with pytest.raises(TypeError, match=r"one number per column is written as pairs: \[\(-3, 3\), \(0, 10\)\]"):
        DPLogisticRegression(feature_bounds=bounds).plan(100, 3)


def test_all_docstrings_state_the_one_convention():
    for name in skdp.estimators.__all__:
        text = inspect.getdoc(getattr(skdp.estimators, name))
        if "feature_bounds :" in text:
            assert "feature_bounds : float, pair of float, array-like of shape (n_features, 2), dict or None" in text
            assert "a pair (low, high) for all columns" in " ".join(text.split()), name
    assert "column_scaling" in (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


X = np.random.default_rng(0).uniform((-3, 0), (3, 10), size=(2000, 2))
Y = (X[:, 0] > 0).astype(int)


def said(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("two", [[3, 10], np.array([3, 10])], ids=["list", "array"])
def test_two_numbers_for_two_columns_warn_once_per_fit(two):
    """They could be meant as one number per column."""
    for work in (
        lambda: DPLogisticRegression(feature_bounds=two, classes=[0, 1]).fit(X, Y),
        lambda: BoundedScaler(bounds=two).fit(X),
    ):
        (message,) = said(work)
        assert "is taken as (low, high) for both columns" in message and "[(-3, 3), (0, 10)]" in message


@pytest.mark.parametrize("bounds", [(3, 10), [(-3, 3), (0, 10)], 10.0])
def test_bounds_that_can_mean_one_thing_only_do_not_warn(bounds):
    assert not said(lambda: DPLogisticRegression(feature_bounds=bounds, classes=[0, 1]).fit(X, Y))
    assert not said(lambda: DPLogisticRegression(feature_bounds=[-3, 10], classes=[0, 1]).fit(X[:, [0, 1, 1]], Y))


def test_the_place_of_a_wrong_pair_is_shown():
    with pytest.raises(ValueError, match=r"\(the pair at feature_bounds\[1\]\); expected"):
        DPLogisticRegression(feature_bounds=[(-3, 3), (10, 0)]).fit(X, Y)


def test_bounds_by_name_of_a_table_without_names_say_what_to_give():
    with pytest.raises(ValueError, match="one pair per column, in order"):
        DPLogisticRegression(feature_bounds={"a": 3, "b": 10}).fit(X, Y)
    with pytest.raises(ValueError, match=r"the columns of X: \['a', 'b'\]\.$"):
        DPLogisticRegression(feature_bounds={"a": 3}).fit(pd.DataFrame(X, columns=["a", "b"]), Y)

"""Packed rows: what they stand for, products with them, the bins that they become, and fits to them."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from marks import slow

import skdp.estimators.additive._basis as additive_basis
from skdp import DPAdditiveRegressor, DPGradientBoostingClassifier
from skdp.estimators.additive._basis import AdditiveBasis
from skdp.estimators.additive._bins import bins_of
from skdp.preprocessing._column_kinds import Category, LearnedScale, Number
from skdp.preprocessing._schema import Schema
from skdp.privacy.data.packed_rows import PackedCategory, PackedRows
from skdp.privacy.data.storage import Storage
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData

FACTS = Schema(
    {
        "even": Number((0.0, 10.0), "linear", None),
        "amount": Number((-5.0, 3.0), "log", 0.0),
        "kind": Category(("a", "b", "c")),
        "few": Number((0.0, 4.0), "linear", 1.0, LearnedScale((0.0, 3.0), 1.0, 1.0, (0.0, 1.0, 2.0, 3.0), True, weight=0.5)),
        "gaps": Number((0.0, 4.0), "linear", 1.0, LearnedScale((0.0, 3.0), 1.0, missing=True)),
        "sign": Number((0.0, 1.0), "linear", 0.0, LearnedScale((0.0, 1.0), 0.0, binary=True)),
    },
    None,
    None,
)
N = BLOCK + 500
PARTS = [slice(0, BLOCK), slice(BLOCK, N)]
every = pytest.mark.parametrize("basis", [AdditiveBasis(FACTS, m) for m in (0, 4, 5)], ids=lambda basis: str(basis.n_intervals))


def records(rng, n=N):
    return pd.DataFrame(
        {
            "even": rng.choice([*np.arange(129) * 10 / 128, -1e300, 1e300], n),  # at the edges of bins, and far outside
            "amount": 3 * rng.normal(size=n),
            "kind": rng.choice(list("abcd"), n),
            "few": rng.choice([0, 1, 2, 3, 3.5, np.nan], n),
            "gaps": rng.choice([0, 1.25, 4, np.nan], n),
            "sign": rng.integers(0, 2, n),
        }
    )


@every
def test_rows_are_those_of_the_basis_rounded_to_steps(basis, rng):
    frame = records(rng)
    expected, packed = basis.transform(frame).toarray(), basis.packed(frame)
    assert all(codes.nbytes <= 2 * len(frame) for codes in packed._codes) and packed.shape == expected.shape
    rows = np.vstack([packed.rows(part).toarray() for part in PARTS])
    np.testing.assert_allclose(rows, expected, atol=2 / 4096)
    of_kind = basis.terms[2].columns
    np.testing.assert_array_equal(rows[:, of_kind], expected[:, of_kind])
    np.testing.assert_array_equal(rows == 0, np.where(np.abs(expected) < 2 / 4096, rows == 0, expected == 0))
    assert np.linalg.norm(rows, axis=1).max() <= basis.row_norm * (1 + 1e-12)
    sample = rng.permutation(N)[:40]
    np.testing.assert_array_equal(packed.rows(sample).toarray(), rows[sample])
    np.testing.assert_array_equal(basis.packed(frame.iloc[sample]).rows(slice(0, 40)).toarray(), rows[sample])


@every
def test_products_are_those_of_the_rows(basis, rng):
    """Sums keep to the allowance for rounding, of each term's own magnitude."""
    packed, coef, residuals = basis.packed(records(rng)), rng.normal(size=(basis.n_features, 2)), rng.normal(size=(N, 2))
    for part in PARTS:
        rows, block, own = packed.rows(part).toarray(), packed.block(part), residuals[part]
        np.testing.assert_allclose(block @ coef, rows @ coef, atol=1e-12)
        sums = block.T @ own
        for feature in range(basis.n_features):
            terms = rows[:, feature] * own[:, 0]
            allowed = 2.0**-53 * len(rows) * np.abs(terms).sum()
            assert abs(sums[feature, 0] - math.fsum(terms)) <= allowed + 1e-300


@every
def test_bins_are_those_of_predictions_at_edges_too(basis, rng):
    frame = records(rng)
    bins, packed = bins_of(basis), basis.packed(frame)
    found, expected = packed.into_bins(bins), bins(basis.transform(frame))
    assert all(codes.nbytes == len(frame) for codes in found)
    differ = (np.array(found) != expected).mean(axis=1)
    assert differ[1] < 0.01 and not np.delete(differ, 1).any()  # a cell next to an edge may be rounded across it
    with pytest.raises(RuntimeError, match="have become bins"):
        packed.rows(PARTS[0])
    with pytest.raises(RuntimeError, match="have become bins"):
        packed.into_bins(bins)
    with pytest.raises(RuntimeError, match="have become bins"):
        packed.squares(np.ones(basis.n_features))


def test_answers_are_those_of_the_unpacked_table(rng):
    basis = AdditiveBasis(FACTS, 4)
    packed, labels, norm = basis.packed(records(rng)), rng.integers(0, 2, N), 0.9 * basis.row_norm
    whole = packed.rows(slice(0, N))
    one, two = (TrainingData(X, labels, data_norm=norm, intercept_scaling=0.5) for X in (packed, whole))
    coef = rng.normal(size=(basis.n_features + 1, 1))

    def kernel(raw, records):
        return np.tanh(raw)

    null = np.array([0, 7, N - 1])
    for first, second in ((one, two), (one.without(null), two.without(null)), (one.subset(null), two.subset(null))):
        np.testing.assert_allclose(first.sum(coef, kernel), second.sum(coef, kernel), atol=1e-9)
        np.testing.assert_allclose(first.moments(), second.moments(), atol=1e-9)
        np.testing.assert_allclose(first.gram(coef, kernel), second.gram(coef, kernel), atol=1e-9)
        np.testing.assert_allclose(first._inverse_norms, second._inverse_norms, rtol=1e-14)
        views = [rows.standardized(np.full(basis.n_features, 0.1), np.full(basis.n_features, 2.0)) for rows in (first, second)]
        np.testing.assert_allclose(views[0]._inverse_norms, views[1]._inverse_norms, rtol=1e-12)
    assert one.summation_error == two.summation_error
    by_column = Storage(packed, by_column=True)
    np.testing.assert_array_equal(by_column.table.toarray(), whole.toarray())
    np.testing.assert_allclose(Storage(packed).mapped(whole.T[:, :3]).table.toarray(), (whole @ whole.T[:, :3]).toarray())


def test_columns_of_different_lengths_are_refused():
    """A frame may lie: cells beyond the last record would count it several times."""
    columns, codes = [PackedCategory(0, 2, 1.0), PackedCategory(2, 2, 1.0)], [np.zeros(n, np.uint8) for n in (BLOCK, 3 * BLOCK)]
    with pytest.raises(ValueError, match="different numbers of cells"):
        PackedRows(columns, codes, 4)


def test_an_empty_sample_has_an_answer(rng):
    for X in (AdditiveBasis(FACTS, 4).packed(records(rng)), rng.uniform(-1, 1, (N, 3))):
        rows = TrainingData(X, np.zeros(N, dtype=int), data_norm=1.0, by_row=True).subset(np.array([], dtype=int))
        assert not rows.moments().any()


def test_public_facts_decide():
    basis = AdditiveBasis(FACTS, 4)
    assert basis.packs(10**6) and not basis.packs(1000)
    for other in (
        replace(basis, interactions=(("even", "kind"),)),
        replace(basis, placed={"even": (0.0, 0.5, 1.0)}),
        replace(basis, n_intervals=100),
    ):
        assert not other.packs(10**6)


@pytest.mark.parametrize("model", (DPAdditiveRegressor, *slow(DPGradientBoostingClassifier)))
@pytest.mark.filterwarnings("ignore")
def test_a_fit_to_packed_rows_is_that_to_rows_up_to_their_steps(model, rng, monkeypatch):
    X = rng.uniform(-1, 1, (3000, 3))
    y = np.clip(X[:, 0] + X[:, 1] * X[:, 2], -1, 1)
    bounds, y = ({"target_bounds": (-1, 1)}, y) if model is DPAdditiveRegressor else ({"random_state": 0}, (y > 0).astype(int))
    usual = model(np.inf, feature_bounds=1.0, **bounds).fit(X, y)
    monkeypatch.setattr(additive_basis, "LARGE_BYTES", 0)
    packed = model(np.inf, feature_bounds=1.0, **bounds).fit(X, y)
    scale = np.abs(usual.coef_).max()
    np.testing.assert_allclose(packed.coef_, usual.coef_, atol=0.01 * scale)
    assert not np.array_equal(packed.coef_, usual.coef_)


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_weights_have_the_same_effect_on_packed_rows(rng, monkeypatch):
    X = rng.uniform(-1, 1, (3000, 3))
    y, weights = np.clip(X[:, 0] + np.abs(X[:, 1]), -1, 1), rng.choice([0.0, 0.5, 2.0], 3000)
    model = DPAdditiveRegressor(np.inf, feature_bounds=1.0, target_bounds=(-1, 1), max_sample_weight=2.0)
    usual = model.fit(X, y, sample_weight=weights).predict(X)
    monkeypatch.setattr(additive_basis, "LARGE_BYTES", 0)
    np.testing.assert_allclose(model.fit(X, y, sample_weight=weights).predict(X), usual, atol=0.01)
    hidden = np.where(weights == 0, -1.0, y)  # what a record of weight 0 says has no effect
    np.testing.assert_allclose(model.fit(X, hidden, sample_weight=weights).predict(X), usual, atol=0.01)
    assert np.abs(model.fit(X, hidden, sample_weight=np.ones(3000)).predict(X) - usual).max() > 0.1

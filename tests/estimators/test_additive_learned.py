"""Additive models of learned schemas: the basis of learned facts, its norms, reading a model, and the budget."""

import pickle

import numpy as np
import pandas as pd
import pytest
from marks import slow
from seeded import fitted

from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPLinearRegression
from skdp.estimators.additive._knot_placement import finest, hat_columns, refinement
from skdp.inspection import AdditiveDisplay
from skdp.preprocessing import AdditiveBasis, Category, LearnedScale, Number, Schema

N = 4000
LEARNED = Schema(
    {
        "hour": Number((0, 23), "linear", 11.5, LearnedScale((0, 23), 11.5, integers=tuple(range(24)), mean_square=4 / 3)),
        "income": Number((0, 1e6), "log", 0.0, LearnedScale((0, 1e4), 0.0, unit=10.0, missing=True)),
        "gain": Number((-1, 1), "sign", 0.0, LearnedScale((-1, 1), 0.0)),
        "age": Number((0, 100), "linear", None),
        "city": Category((), (17, 203), missing=True),
    },
    None,
    None,
)
HOSTILE = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0, 5e-324, 7, 7.5, 23, 1e6, "x", None]


def hostile(rng, n=600):
    cells = np.array(HOSTILE, dtype=object)
    frame = pd.DataFrame({name: rng.choice(cells, n) for name in LEARNED.columns})
    return frame.assign(age=rng.uniform(-1e9, 1e9, n), city=rng.choice(["A", "B", "C", None, "", "bucket 17"], n))


@pytest.fixture
def frame(rng):
    return pd.DataFrame(
        {
            "hour": rng.integers(0, 24, N),
            "income": np.where(rng.random(N) < 0.2, np.nan, np.exp(2 * rng.normal(size=N))),
            "height": 1e-6 * (3 + rng.normal(size=N)),
            "city": rng.choice(["A", "B", "C", None], N, p=[0.5, 0.3, 0.1, 0.1]),
        }
    )


@pytest.fixture
def y(frame):
    return 50 + 5.0 * (frame["hour"] % 12 == 5) + 2e6 * frame["height"] - 3 * (frame["city"] == "A") + frame["income"].isna()


@pytest.mark.parametrize("n_intervals", [0, 4])
@pytest.mark.parametrize("length", [None, 0.5])
def test_rows_of_hostile_cells_are_no_longer_than_stated(n_intervals, length, rng):
    basis = AdditiveBasis(LEARNED, n_intervals, [("hour", "city"), ("income", "gain")], length=length)
    rows = basis.transform(hostile(rng))
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    assert rows.shape[1] == basis.n_features and np.isfinite(rows.data).all()
    assert norms.max() <= basis.row_norm * (1 + 1e-12)
    assert np.diff(rows.indptr).max() <= basis.n_stored


@pytest.mark.slow
def test_a_record_is_mapped_by_itself(rng):
    basis, table = AdditiveBasis(LEARNED, 4), hostile(rng)
    rows = basis.transform(table).toarray()
    for place in range(0, 600, 37):
        assert np.array_equal(basis.transform(table.iloc[[place]]).toarray()[0], rows[place])


def test_blocks_of_learned_columns():
    basis = AdditiveBasis(LEARNED, 4, length=1.0)
    by_name = {term.names[0]: term for term in basis.terms}
    table = pd.DataFrame({"hour": [5.0], "income": [np.nan], "gain": [-3.0], "age": [100.0], "city": [None]})
    row = basis.transform(table).toarray()[0]
    hour = row[by_name["hour"].columns]
    assert hour[0] == pytest.approx((5 - 11.5) / 11.5) and hour[-24:].tolist() == np.eye(24)[5].tolist()
    income = row[by_name["income"].columns]
    assert income[0] == 0 and income[-1] == 1 and income[1:-1].sum() * np.sqrt(4) == pytest.approx(1)
    assert row[by_name["gain"].columns][0] == -1 and row[by_name["age"].columns][0] == 1
    assert row[by_name["city"].columns].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("name", ["hour", "income", "gain"])
def test_places_and_numbers_are_inverse(name):
    facts = LEARNED.columns[name]
    places = np.array([-1.0, 0.0, 1.0]) if facts.scale == "sign" else np.linspace(-1, 1, 21)
    numbers = facts.from_between(places)
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_allclose(facts.between_bounds(numbers), places, atol=1e-12)


def test_released_knots_map_rows(rng):
    coarse = AdditiveBasis(LEARNED, 4, [("hour", "city")])
    fine, table = finest(coarse), hostile(rng)
    mapped = (fine.transform(table) @ refinement(fine, coarse)).toarray()
    np.testing.assert_allclose(mapped, coarse.transform(table).toarray(), atol=1e-9)
    hats = fine.transform(table)[:, hat_columns(fine)]
    np.testing.assert_allclose(hats.sum(axis=1), np.sqrt(4), atol=1e-9)  # four numbers, each with hats that add up to 1


@pytest.mark.each_value
@pytest.mark.parametrize("knots", ["auto", "private", 0])
@pytest.mark.parametrize("kind", [DPAdditiveClassifier, DPAdditiveRegressor])
def test_raw_frames_are_fitted_and_read(kind, knots, frame, y):
    target = y if kind is DPAdditiveRegressor else np.where(y > 55.5, "yes", "no")
    model = fitted(kind(8.0, adjacency="zero_out", knots=knots, interactions=[("hour", "city")]), frame, target)
    assert model.score(frame, target) > 0.6
    assert model.privacy_spent_.epsilon == pytest.approx(8.0, rel=1e-8)
    assert list(model.feature_names_in_) == list(frame) and set(model.learnt_) >= set(frame)
    parts = model.explain(frame)
    raw = model.decision_function(frame) if kind is DPAdditiveClassifier else None
    if raw is not None:
        np.testing.assert_allclose(parts.sum(axis=1) + model.baseline_[0], raw, atol=1e-9)
    functions = model.shape_functions_
    assert functions["city"].grid.dtype == object and functions["city"].grid[-1] == "other"
    assert functions["hour"].grid.tolist() == list(range(24))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(frame), model.predict(frame))


def test_the_curve_of_integers_shows_them(frame, y):
    model = fitted(DPAdditiveRegressor(10.0, adjacency="zero_out"), frame, y)
    hour = model.shape_functions_["hour"]
    assert set(np.argsort(hour.values)[-2:].tolist()) == {5, 17}
    rows = frame.head(24).assign(hour=range(24), income=1.0, height=3e-6, city="B")
    np.testing.assert_allclose(model.explain(rows)[:, 0], hour.values, atol=1e-9)


def test_monotone_columns_have_no_indicators(frame, y):
    model = fitted(DPAdditiveRegressor(10.0, adjacency="zero_out", monotone={"hour": 1, "height": 1}), frame, y)
    assert model.schema_.columns["hour"].learned.integers == ()
    rows = frame.head(24).assign(hour=np.linspace(-3, 26, 24), income=1.0, height=3e-6, city="B")
    assert (np.diff(model.explain(rows)[:, 0]) >= -1e-9).all()
    with pytest.raises(ValueError, match="a column of categories"):
        DPAdditiveRegressor(monotone={"city": 1}, schema="learn").fit(frame, y)


@pytest.mark.slow
def test_learned_models_are_drawn(frame, y):
    model = fitted(DPAdditiveRegressor(8.0, adjacency="zero_out", interactions=[("hour", "city")]), frame, y)
    figure = AdditiveDisplay.from_estimator(model).figure_
    texts = {label.get_text() for ax in figure.axes for label in ax.get_xticklabels()}
    assert any(text.startswith("bucket ") for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["boolean", *slow(bool, float)])
def test_two_values_are_drawn_as_two_bars(type_, frame, y):
    """Where noise lets them be told from a range; what was learned says so, and so does its schema as a file holds it."""
    X = frame[["height"]].assign(member=pd.Series(np.arange(N) % 3 == 0).astype(type_), codes=1.0 + (np.arange(N) % 2))
    if type_ == "boolean":
        X.loc[::7, "member"] = pd.NA
    model = fitted(
        DPAdditiveRegressor(8.0, adjacency="zero_out", interactions=[("member", "codes")]), X, y + 3 * (X["codes"] == 2)
    )
    figure = AdditiveDisplay.from_estimator(model).figure_
    labels = {ax.get_title(): [label.get_text() for label in ax.get_xticklabels()] for ax in figure.axes}
    bars = {ax.get_title(): len(ax.patches) for ax in figure.axes}
    for name, low in (("member", 0), ("codes", 1)):
        function, two = model.shape_functions_[name], pd.DataFrame({"height": 1e-6, "member": 0, "codes": [1, 1]})
        two[name] = [low, low + 1]
        assert function.grid.tolist() == [low, low + 1] and function.scales == ("category",)
        place = list(X).index(name)
        np.testing.assert_allclose(function.values, model.explain(two)[:, place], atol=1e-12)
        expected = [str(low), str(low + 1)] + ["missing"] * (name == "member" and type_ == "boolean")
        assert labels[name] == expected and bars[name] == len(expected)
    assert model.shape_functions_["height"].scales == model.shape_functions_["member", "codes"].scales[:1] == ("linear",)
    assert Schema.read(model.schema_.to_dict()) == model.schema_ and "binary" not in model.schema_.to_dict()["columns"]["height"]


@pytest.mark.slow
def test_codes_have_their_own_names(frame, y):
    """An integer below 256 is its own bucket, so that the type of the column and the word of the user tell its name."""
    for typed, names in ((frame, {"0", "17"}), (frame.assign(hour=frame["hour"].astype(str)), {"bucket 0", "bucket 17"})):
        model = fitted(DPAdditiveRegressor(8.0, adjacency="zero_out", schema={"hour": "category"}), typed, y)
        assert names < set(model.shape_functions_["hour"].grid) and Schema.read(model.schema_.to_dict()) == model.schema_
        figure = AdditiveDisplay.from_estimator(model).figure_
        assert names < {label.get_text() for ax in figure.axes for label in ax.get_xticklabels()}
        linear = fitted(DPLinearRegression(8.0, adjacency="zero_out", schema={"hour": "category"}), typed, y)
        assert {f"hour_{name.replace(' ', '')}" for name in names} < set(linear.prepared_features_)
    hashed = Category((), (3, 53, 122), codes=True)  # of larger numbers, or fractions
    assert hashed.labels[0] == "bucket 3" and Category((), tuple(range(1, 9)), codes=True).labels[0] == "1"
    with pytest.raises(ValueError, match="codes=1; expected true or false"):
        Schema.read({"columns": {"hour": {"kind": "category", "buckets": [1], "codes": 1}}})
    with pytest.raises(ValueError, match="codes=True; expected it beside buckets only"):
        Schema.read({"columns": {"hour": {"kind": "category", "categories": ["1"], "codes": True}}})

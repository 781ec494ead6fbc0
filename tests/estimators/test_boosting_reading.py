"""Reading of boosted models: effects, their noise and Shapley values against definitions, curves, pairs and displays."""

import warnings
from copy import copy
from dataclasses import replace
from itertools import combinations, permutations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from marks import slow
from matplotlib import pyplot
from seeded import fitted

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    load_model,
    save_model,
)
from skdp.data import chunks
from skdp.estimators.boosting import _rule, _trees
from skdp.estimators.boosting._reading import RAREST, TreeReader
from skdp.estimators.boosting._trees import Background, Trees
from skdp.inspection import AdditiveDisplay
from skdp.privacy.data.bins import EDGES, Bins, ColumnBins

matplotlib.use("agg")

BINS = Bins((ColumnBins(0, 5), ColumnBins(5, 8), ColumnBins(8, 9, (-1.0, 1.0)), ColumnBins(9, 11)))
DEPTH, N_TREES = 4, 3


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


def trees(rng, values=None, depth=DEPTH):
    """Of two outputs; in one of them all splits are of one column, and the release says that a category has no records."""
    columns = np.vstack([rng.integers(0, 4, (N_TREES - 1, depth)), np.zeros((1, depth), int)])
    columns[0, :2] = 2, 2
    splits = rng.random((N_TREES, depth, max(BINS.sizes))) < 0.5
    shares = [rng.dirichlet(np.ones(size)) for size in BINS.sizes]
    shares[0] = np.array([0.0, 0.4, 0.3, 0.2, 0.1])
    background = Background(np.concatenate(shares).astype(np.float32), np.array([0.1, 0.2, 0.05], np.float32), 4.0, 0.5)
    values = rng.normal(size=(N_TREES, 2, 1 << depth)).astype(np.float32)
    return Trees(BINS, columns.astype(np.uint8), np.packbits(splits, axis=2), values, background)


def everywhere(model):
    """What the trees add in each combination of bins, of shape (*sizes, n_outputs), and the marginals."""
    bins = np.stack([place.ravel() for place in np.indices(BINS.sizes)])
    shares = np.split(model.background.shares.astype(float), np.cumsum(BINS.sizes)[:-1])
    shares = [np.maximum(part, RAREST) / np.maximum(part, RAREST).sum() for part in shares]
    return model.predicted(bins).reshape(*BINS.sizes, -1), shares


@pytest.mark.parametrize("depth, n_merged", ((2, 1), (4, 2), (5, 3), (9, 3)))
def test_a_prediction_adds_what_all_trees_add(depth, n_merged, rng, monkeypatch):
    """In one block or in several, the last one short; how many records there are changes no bit of the others."""
    model = trees(rng, depth=depth)
    assert len(list(model._merged())) == n_merged
    bins = np.stack([rng.integers(0, size, 5000) for size in BINS.sizes]).astype(np.uint8)
    whole = model.predicted(bins)
    assert whole == pytest.approx(sum(model.staged(bins)).T, abs=1e-5)
    np.testing.assert_array_equal(model.predicted(bins[:, :3]), whole[:3])
    assert model.predicted(bins[:, :0]).shape == (0, 2)
    monkeypatch.setattr(_trees, "PART", 700)
    monkeypatch.setattr(_trees, "thread_count", lambda: 3)
    np.testing.assert_array_equal(model.predicted(bins), whole)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", (DPGradientBoostingRegressor, *slow(DPGradientBoostingClassifier)))
def test_predictions_do_not_depend_on_how_many_rows_are_predicted_at_once(kind, rng, monkeypatch):
    monkeypatch.setattr(_rule, "N_TREES", 20)
    X = rng.uniform(-1, 1, (3000, 3))
    score, given = X[:, 0] * X[:, 1] + X[:, 2], {"target_bounds": (-2, 2)}
    if kind is DPGradientBoostingClassifier:
        score, given = np.digitize(score, [-0.5, 0.5]), {}
    model = kind(20.0, feature_bounds=1.0, **given).fit(X, score)
    many, raw = np.resize(X, (2**16, 3)), "decision_function" if hasattr(model, "classes_") else "predict"
    whole = getattr(model, raw)(many)
    for rows in (1, len(X)):
        np.testing.assert_allclose(getattr(model, raw)(X[:rows]), whole[:rows], rtol=0, atol=1e-13)


def mean_given(values, shares, known):
    """The mean over all columns but the known ones, which keep their axes."""
    for column, part in enumerate(shares):
        if column not in known:
            values = np.average(values, axis=column, weights=part, keepdims=True) + np.zeros_like(values[:1, :1, :1, :1])
    return values


def effects(values, shares, one, other=None):
    """The definition of the effect of a column, or of a pair."""
    mean = mean_given(values, shares, ())
    single = [mean_given(values, shares, (column,)) - mean for column in (one, other) if column is not None]
    total = single[0] if other is None else mean_given(values, shares, (one, other)) - sum(single) - mean
    axes = tuple(column for column in range(4) if column not in (one, other))
    return np.moveaxis(total.squeeze(axis=axes), -1, 0)


def test_effects_are_differences_of_means_over_independent_columns(rng):
    model = trees(rng)
    reader, (values, shares) = TreeReader(model), everywhere(model)
    np.testing.assert_allclose(reader.mean, mean_given(values, shares, ()).ravel(), atol=1e-6)
    for column in range(4):
        np.testing.assert_allclose(reader.single(column)[:-1], effects(values, shares, column), atol=1e-6)
    for one, other in combinations(range(4), 2):
        wanted = effects(values, shares, one, other)
        np.testing.assert_allclose(reader.pair(one, other)[:-1], wanted, atol=1e-6)
        np.testing.assert_allclose(reader.pair(other, one)[:-1], wanted.transpose(0, 2, 1), atol=1e-6)


def test_shapley_values_are_means_over_all_orders_of_the_columns(rng):
    model = trees(rng)
    values, shares = everywhere(model)
    bins = np.stack([rng.integers(0, size, 50) for size in BINS.sizes]).astype(np.uint8)
    known = {subset: mean_given(values, shares, subset) for k in range(5) for subset in combinations(range(4), k)}
    whole = {subset: np.broadcast_to(part, values.shape)[tuple(bins)] for subset, part in known.items()}
    wanted = np.zeros((50, 4, 2))
    for order in permutations(range(4)):
        for place, column in enumerate(order):
            before, after = tuple(sorted(order[:place])), tuple(sorted(order[: place + 1]))
            wanted[:, column] += (whole[after] - whole[before]) / 24
    np.testing.assert_allclose(TreeReader(model).explained(bins), wanted, atol=1e-6)


def test_variances_are_those_of_independent_noise_in_the_leaves(rng):
    """The effects of each leaf alone, squared and summed up. A leaf has the step of its share."""
    model = trees(rng)
    reader, background = TreeReader(model), model.background
    shares = np.split(background.shares.astype(float), np.cumsum(BINS.sizes)[:-1])
    single, pair = [np.zeros(size) for size in BINS.sizes], np.zeros((5, 3))
    for number, pairs in enumerate(zip(model.columns, model.splits, strict=True)):
        both = list(zip(*pairs, strict=True))
        for leaf in range(1 << DEPTH):
            sides = [shares[c][s[: BINS.sizes[c]] == (leaf >> d & 1)].sum() for d, (c, s) in enumerate(both)]
            error = background.noise[number] / (np.prod(sides) / background.curvature + 1 / background.step)
            values = np.zeros_like(model.values)
            values[number, 0, leaf] = error
            alone = TreeReader(Trees(BINS, model.columns, model.sides, values, background))
            for column in range(4):
                single[column] += np.square(alone.single(column)[0])
            pair += np.square(alone.pair(0, 1)[0])
    for column in range(4):
        np.testing.assert_allclose(reader.single(column)[-1], single[column], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(reader.pair(0, 1)[-1], pair, rtol=1e-4, atol=1e-9)


def test_strengths_are_root_mean_squares_less_noise(rng):
    model = trees(rng)
    reader, (values, shares) = TreeReader(model), everywhere(model)
    found = reader.strengths()
    assert list(found) == list(combinations(range(4), 2)) and max(found.values()) > 0
    for one, other in found:
        squares = np.square(effects(values, shares, one, other)).mean(axis=0) - reader.pair(one, other)[-1]
        np.testing.assert_allclose(found[one, other], max(shares[one] @ squares @ shares[other], 0) ** 0.5, atol=1e-4)
    loud = Trees(BINS, model.columns, model.sides, model.values, Background(model.background.shares, np.full(3, 1e3), 4.0, 0.5))
    assert set(TreeReader(loud).strengths().values()) == {0.0}


@pytest.fixture(scope="module")
def product():
    """A product of two columns, and a curve of a third one that is skewed."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (10_000, 2)), rng.exponential(10, 10_000).clip(0, 100)])
    y = 200 * X[:, 0] * X[:, 1] + 100 * (X[:, 2] > 10)
    model = DPGradientBoostingRegressor(
        3.0, feature_bounds=[(-1, 1), (-1, 1), (0, 100)], target_bounds=(-300, 300), random_state=0
    )
    return fitted(model, X, y), X, y


@pytest.mark.slow
def test_a_product_is_found_and_drawn_in_its_units(product):
    model, *_ = product
    strengths = model.interactions_
    assert next(iter(strengths)) == ("x0", "x1") and list(strengths.values()) == sorted(strengths.values(), reverse=True)
    assert 50 < strengths["x0", "x1"] < 75 and max(list(strengths.values())[1:]) < 20  # 200 / 3
    function = model.interaction("x1", 0)
    (across, along), inner = function.grid, slice(2, -2)
    assert function.names == ("x1", "x0") and function.scales == ("linear", "linear")
    error = (function.values - 200 * np.outer(across, along))[inner, inner]
    assert np.sqrt(np.square(error).mean()) < 20
    assert ((function.lower < function.values) & (function.values < function.upper)).all()
    assert 10 < np.median(function.upper - function.lower) < 100
    one, other = model.interaction("x2", "x0"), model.interaction("x0", "x2")
    np.testing.assert_allclose(one.values, other.values.T, atol=1e-9)
    curve = model.shape_functions_["x2"]
    assert curve.grid[0] == 0 and curve.grid[-1] == 100 and (np.diff(curve.grid) > 0).all()
    low, high = np.interp([5, 20], curve.grid, curve.values)
    assert 70 < high - low < 110 and curve.importance == pytest.approx(48, abs=5)
    assert model.shape_functions_["x0"].importance < 15


@pytest.mark.slow
def test_importances_are_shares_of_the_variance_of_the_whole_model(product):
    """A product of 200 x0 x1 has a mean square of 200^2 / 9, of which each column gets half; the curve of x2 one of 100^2 p q."""
    model, *_ = product
    share = np.exp(-1.0)
    wanted = np.array([2e4 / 9, 2e4 / 9, 1e4 * share * (1 - share)])
    np.testing.assert_allclose(model.feature_importances_, wanted / wanted.sum(), atol=0.06)
    additive = copy(model)
    additive.trees_ = None
    assert additive.feature_importances_[2] > 0.95  # whose curve the additive part has


@pytest.mark.slow
def test_importances_are_those_of_the_columns_of_the_table(rng):
    """In their order, without those that the schema leaves out."""
    X = pd.DataFrame(rng.uniform(-1, 1, (4000, 4)), columns=list("abcd"))
    number = {"kind": "number", "bounds": [-1, 1]}
    model = DPGradientBoostingRegressor(2.0, schema={"columns": dict.fromkeys("dab", number)}, target_bounds=(-2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the column that is left out
        found = fitted(model, X, X["b"] + 0.1 * X["d"]).feature_importances_
    assert found.shape == (model.n_features_in_,) and found.sum() == pytest.approx(1.0)
    assert dict(zip(model.feature_names_in_, found > 0.9, strict=True)) == {"d": False, "a": False, "b": True}


@pytest.mark.slow
def test_curves_are_those_of_the_additive_part_and_of_the_trees(product):
    """At the middle of each bin and at both bounds, with the variances of both."""
    model, *_ = product
    additive, reader = copy(model), TreeReader(model.trees_)
    additive.trees_ = None
    for place, (name, base) in enumerate(additive.shape_functions_.items()):
        curve, (low, high) = model.shape_functions_[name], model.feature_bounds[place]
        *values, variances = reader.single(place)[:, np.searchsorted(EDGES, (curve.grid - low) / (high - low), side="right")]
        np.testing.assert_allclose(curve.values, np.interp(curve.grid, base.grid, base.values) + values[0], atol=1e-6)
        importance = np.sqrt(reader.marginals[place] @ np.square(curve.values[1:-1]))
        assert curve.importance == pytest.approx(importance, rel=0.05)
        wanted = np.hypot((base.upper - base.lower)[[0, -1]], 2 * 1.959964 * np.sqrt(variances[[0, -1]]))
        np.testing.assert_allclose((curve.upper - curve.lower)[[0, -1]], wanted, rtol=1e-5)


@pytest.mark.slow
def test_contributions_of_a_regressor_add_up(product):
    model, X, _ = product
    explained = model.explain(X[:2000])
    raw = model.predict(X[:2000])
    inside = np.abs(raw) < 299
    assert explained.shape == (2000, 3) and inside.mean() > 0.9
    np.testing.assert_allclose((explained.sum(axis=1) + model.baseline_)[inside], raw[inside], atol=1e-5 * 300)
    np.testing.assert_array_equal(model.explain(chunks(lambda: iter([X[:1000], X[1000:2000]]))), explained)


@pytest.mark.slow
def test_contributions_of_classes_add_up_with_missing_cells_and_categories(rng, monkeypatch):
    monkeypatch.setattr(_rule, "N_TREES", 100)
    n = 8000
    frame = pd.DataFrame({"age": rng.integers(20, 60, n) * 1.0, "town": rng.choice(["a", "b", "c"], n), "x": rng.normal(size=n)})
    y = (frame["age"] > 40).astype(int) + (frame["town"] == "b")
    frame.loc[rng.random(n) < 0.2, "age"] = np.nan
    model = fitted(DPGradientBoostingClassifier(10.0), frame, y)
    some = frame[:500]
    explained = model.explain(some)
    assert model.trees_ is not None and explained.shape == (500, 3, 3)
    np.testing.assert_allclose(explained.sum(axis=1) + model.baseline_, model.decision_function(some), atol=1e-5)
    assert model.interaction("age", "town").values.shape[-1] == 3
    assert model.shape_functions_["town"].values.shape == (len(model.shape_functions_["town"].grid), 3)


@pytest.mark.slow
def test_displays_draw_curves_and_any_pair(product):
    model, *_ = product
    display = AdditiveDisplay.from_estimator(model, features=[("x2", "x0"), "x2"])
    assert [ax.get_title() for ax in display.axes_[:2]] == ["x2 \N{MULTIPLICATION SIGN} x0", "x2"]
    assert len(AdditiveDisplay.from_estimator(model).axes_) == 3
    for wrong in (("x2", "x7"), ("x2", "x2"), "x7"):
        with pytest.raises(ValueError, match=r"x7|different columns"):
            AdditiveDisplay.from_estimator(model, features=[wrong])


@pytest.mark.slow
def test_a_model_from_a_file_is_read_alike(product, tmp_path):
    pytest.importorskip("skops")
    model, *_ = product
    save_model(model, tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").interactions_ == model.interactions_


def test_without_trees_the_additive_model_is_read(rng):
    X = rng.uniform(-1, 1, (300, 3))
    model, additive = (
        fitted(kind(0.1, feature_bounds=1.0, target_bounds=(-1, 1)), X, X[:, 0])
        for kind in (DPGradientBoostingRegressor, DPAdditiveRegressor)
    )
    assert model.trees_ is None and model.interactions_ == {}
    np.testing.assert_array_equal(model.explain(X), additive.explain(X))
    np.testing.assert_array_equal(model.baseline_, additive.baseline_)
    for name, shape in additive.shape_functions_.items():
        np.testing.assert_array_equal(model.shape_functions_[name].upper, shape.upper)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="There are no trees"):
        model.interaction(0, 1)


@pytest.mark.slow
def test_bands_cover_the_mean_of_refits(product):
    """As the page about boosting says, they are wide."""
    model, X, y = product
    shapes = [fitted(model, X[:4000], y[:4000], seed=seed).shape_functions_["x2"] for seed in range(4)]
    mean = np.mean([shape.values for shape in shapes], axis=0)
    assert np.mean([(shape.lower < mean) & (mean < shape.upper) for shape in shapes]) > 0.95
    assert np.mean([shape.upper - shape.lower for shape in shapes]) < 250


@pytest.fixture(scope="module")
def gaps():
    """An effect of missing cells of a number alone, and a number of two values."""
    rng = np.random.default_rng(5)
    missing = rng.random(8000) < 0.25
    X = pd.DataFrame({"lab": np.where(missing, np.nan, rng.normal(10, 2, 8000)), "w": rng.normal(size=8000)})
    X["flag"] = np.where(rng.random(8000) < 0.1, np.nan, rng.integers(0, 2, 8000))
    return X, np.where(rng.random(8000) < 0.2, 2, rng.random(8000) < 1 / (1 + np.exp(1 - 3.0 * missing)))


@pytest.mark.parametrize(
    "kind, n_classes",
    (
        (DPAdditiveClassifier, 3),
        (DPGradientBoostingClassifier, 2),
        pytest.param(DPAdditiveClassifier, 2, marks=pytest.mark.slow),
        pytest.param(DPGradientBoostingClassifier, 3, marks=pytest.mark.slow),
    ),
)
def test_the_effect_of_missing_cells_is_read_tested_and_drawn(kind, n_classes, gaps):
    X, y = gaps[0], np.minimum(gaps[1], n_classes - 1)
    model = fitted(kind(8.0, schema="learn"), X, y)
    functions, contributions = model.shape_functions_, model.explain(X)
    for place, (name, function) in enumerate(functions.items()):
        if (gap := X[name].isna()).any():
            value, lower, upper = function.missing
            found = contributions[gap.to_numpy(), place]
            shared = 0.0 if kind is DPAdditiveClassifier else 0.15  # what a record's other columns have of the effect of a pair
            np.testing.assert_allclose(found.mean(axis=0), value, atol=1e-6 + shared)
            assert (np.ptp(found, axis=0) < 1e-6).all() or shared
            assert (lower < value).all() and (value < upper).all()
        else:
            assert function.missing is None
    if n_classes == 2:
        squares = np.mean(np.square(contributions[:, list(functions).index("lab")]))
        assert functions["lab"].importance == pytest.approx(np.sqrt(squares), rel=0.1)
    if kind is DPAdditiveClassifier and n_classes == 2:
        assert model.column_tests()["lab"].pvalue < 1e-6
    display = AdditiveDisplay.from_estimator(model, features=["lab", "w", "flag"])
    beside = [axes.child_axes for axes in display.axes_]
    assert list(map(len, beside)) == [1, 0, 0]
    drawn = [line.get_ydata().item() for line in beside[0][0].lines[:-1]]
    assert drawn == functions["lab"].missing[0].reshape(-1).tolist()
    assert [tick.get_text() for tick in display.axes_[2].get_xticklabels()] == ["0", "1", "missing"]
    one = AdditiveDisplay.from_estimator(model, features=["lab"], target=2) if n_classes == 3 else display
    assert np.ndim(one.functions[0].missing) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", (DPGradientBoostingClassifier, *slow(DPGradientBoostingRegressor)))
def test_trees_and_curves_give_what_no_record_had_what_records_had(kind, rng):
    """Over 3 fits, deviations at a town and an age that nobody had, against those at ages that are there."""
    n = 8000
    frame = pd.DataFrame({"age": rng.integers(18, 66, n), "town": rng.choice(["Ulm", "Bonn"], n)})
    risk = 0.06 * (frame["age"] - 40) + (frame["town"] == "Ulm") + rng.logistic(size=n)
    columns = {
        "age": {"kind": "number", "bounds": [0, 120]},
        "town": {"kind": "category", "categories": ["Ulm", "Bonn", "Kiel"]},
    }
    classes = kind is DPGradientBoostingClassifier
    facts = {"classes": [0, 1]} if classes else {"target_bounds": (-8.0, 8.0)}
    there = pd.DataFrame({"age": [20, 30, 40, 50, 60], "town": "Ulm"})
    beyond = pd.DataFrame({"age": [40, 40, 100], "town": ["Kiel", None, "Ulm"]})
    known, unknown = [], []
    for seed in range(3):
        model = fitted(kind(5.0, schema={"columns": columns}, **facts), frame, (risk > 0) * 1 if classes else risk, seed=seed)
        assert model.trees_ is not None and set(model.hardly_seen_) == {"age", "town"}
        known.append(np.ravel(model._raw(there)))
        with pytest.warns(UserWarning, match="X has what no training record had"):
            unknown.append(np.ravel(model._raw(beyond)))
            total = model.explain(beyond).sum(axis=1) + model.baseline_
        assert total == pytest.approx(unknown[-1], abs=1e-4)
        both = model._raw(pd.DataFrame({"age": 40, "town": ["Ulm", "Bonn"]}))
        assert unknown[-1][:2] == pytest.approx(np.mean(both), abs=0.02)  # their shares differ by less than .02
    assert np.std(unknown, axis=0).max() <= 3 * np.std(known, axis=0).max()
    assert np.mean(unknown, axis=0)[:2] == pytest.approx(np.mean(known, axis=0)[2] - 0.5, abs=0.3)


def test_levels_without_records_add_the_mean_over_the_others(rng):
    """Of one column, of two, and of none: predictions, stages, Shapley values, effects; other records keep all bits."""
    model = trees(rng)
    averages = {0: np.array([0.0, 0.5, 0.5, 0.0, 0.0]), 1: np.array([0.25, 0.75, 0.0])}
    averaged = replace(model, averages=averages)
    plain, _ = everywhere(model)
    expected = plain.copy()
    for axis, weights in averages.items():
        mean = np.average(expected, axis=axis, weights=weights, keepdims=True)
        empty = (weights == 0).reshape(np.where(np.arange(plain.ndim) == axis, -1, 1))
        expected = np.where(empty, mean, expected)
    found, _ = everywhere(averaged)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_array_equal(found[1:3, :2], plain[1:3, :2])
    bins = np.stack([place.ravel() for place in np.indices(BINS.sizes)]).astype(np.uint8)
    flat = expected.reshape(bins.shape[1], -1)
    np.testing.assert_allclose(sum(averaged.staged(bins)).T, flat, atol=1e-5)
    one = averaged.predicted(bins[:, 200:])
    np.testing.assert_array_equal(one, averaged.predicted(bins)[200:])  # whatever the others are
    reader, plainly = TreeReader(averaged), TreeReader(model)
    np.testing.assert_allclose(reader.explained(bins).sum(axis=1) + reader.mean, flat, atol=1e-5)
    values, were = reader.single(0)[:-1], plainly.single(0)[:-1]
    np.testing.assert_allclose(values[:, [0, 3, 4]], np.repeat(were @ averages[0], 3).reshape(2, 3), atol=1e-12)
    pair, raw = reader.pair(0, 1)[0], plainly.pair(0, 1)[0]
    np.testing.assert_allclose(pair[0], np.append((averages[0] @ raw)[:2], averages[0] @ raw @ averages[1]), atol=1e-12)
    np.testing.assert_array_equal(pair[1:3, :2], raw[1:3, :2])

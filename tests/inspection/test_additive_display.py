"""The display of an additive model draws its functions, and nothing else."""

import re
import sys
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from marks import slow
from matplotlib import pyplot
from seeded import fitted
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGradientBoostingClassifier,
    DPLogisticRegression,
    DPTabularClassifier,
)
from skdp.estimators.additive._terms import ShapeFunction
from skdp.inspection import AdditiveDisplay
from skdp.inspection._additive_panels import Panel

matplotlib.use("agg")

AGES = np.array([0.0, 10.0, 50.0, 120.0])
JOBS = np.array(["nurse", "mayor of $mall places and large ones", "other"], dtype=object)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


def function(names, grid, importance, scales, shape, band=True):
    """Made up, seeded by its name."""
    values = np.random.default_rng(len(names[0])).normal(size=shape)
    return ShapeFunction(names, grid, values, values - 0.3 if band else None, values + 0.5 if band else None, importance, scales)


def model(n_classes=2, band=True, **particular):
    """What the display asks of an additive model."""
    last = () if n_classes == 2 else (n_classes,)
    made_up = (
        function(("age",), AGES, 0.5, ("linear",), (4, *last), band),
        function(("job",), JOBS, 2.0, ("category",), (3, *last), band),
        function(("gain",), AGES, 1.0, ("log",), (4, *last), band),
        function(("age", "job"), (AGES, JOBS), 0.1, ("linear", "category"), (4, 3, *last), band),
    )
    functions = {names[0] if len(names := one.names) == 1 else names: one for one in made_up}
    usual = {"shape_functions_": functions, "classes_": np.array(["no", "yes", "unknown"][:n_classes])}
    return SimpleNamespace(**{**usual, **particular})


def titles(display):
    return [ax.get_title() for ax in display.axes_]


def band_of(ax):
    """Lower and upper ends of what is shaded."""
    (path,) = ax.collections[0].get_paths()
    middle = len(path.vertices) // 2
    return path.vertices[1:middle], path.vertices[middle + 1 : -1][::-1]


def ages_of(ax):
    """The ages in the middle of the cells of a heat map."""
    edges = ax.collections[0].get_coordinates()[0, :, 0]
    return (edges[1:] + edges[:-1]) / 2


def test_panels_are_in_order_of_importance():
    display = AdditiveDisplay.from_estimator(model())
    assert titles(display) == ["job", "gain", "age", "age × job"]  # noqa: RUF001
    assert display.figure_ is display.axes_[0].figure
    assert display.figure_.get_supylabel() == "added to the log-odds of yes"
    assert display.figure_.get_supxlabel() == ""


def test_the_least_important_are_left_out_and_that_is_said():
    display = AdditiveDisplay.from_estimator(model(), n_terms=2)
    assert titles(display) == ["job", "gain"]
    assert display.figure_.get_supxlabel() == "the 2 most important of 4 functions"


def test_named_features_come_in_the_order_of_their_names():
    display = AdditiveDisplay.from_estimator(model(), features=["gain", ("job", "age")])
    assert titles(display) == ["gain", "age × job"]  # noqa: RUF001
    assert display.figure_.get_supxlabel() == ""


@pytest.mark.parametrize("name", ("age", "gain"))
def test_curve_and_band_are_those_of_the_function(name):
    (ax,) = AdditiveDisplay.from_estimator(model(), features=[name]).axes_
    shape = model().shape_functions_[name]
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([AGES, shape.values]))
    lower, upper = band_of(ax)
    np.testing.assert_allclose(lower[: len(AGES)], np.column_stack([AGES, shape.lower]))
    np.testing.assert_allclose(upper[-len(AGES) :], np.column_stack([AGES, shape.upper]))
    assert ax.get_xscale() == {"age": "linear", "gain": "symlog"}[name]
    assert list(ax.lines[1].get_ydata()) == [0, 0]


@pytest.mark.parametrize("order", ("given", "value"))
def test_bars_and_their_ends_are_those_of_the_function(order):
    (ax,) = AdditiveDisplay.from_estimator(model(), features=["job"], order=order).axes_
    shape = model().shape_functions_["job"]
    place = np.argsort(shape.values) if order == "value" else np.arange(3)
    np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], shape.values[place])
    ends = np.array(ax.collections[0].get_segments())
    np.testing.assert_array_equal(ends[:, :, 1], np.column_stack([shape.lower, shape.upper])[place])
    np.testing.assert_allclose(ends[:, :, 0], np.repeat(np.arange(3)[:, None], 2, axis=1), atol=1e-12)
    assert list(ax.lines[0].get_ydata()) == [0, 0]
    short = np.array(["nurse", r"mayor of \$mall places…", "other"])
    assert [label.get_text() for label in ax.get_xticklabels()] == short[place].tolist()
    ax.figure.canvas.draw()


def test_a_pair_is_a_heat_map_around_zero_with_dots_where_noise_may_have_made_it():
    (ax,) = AdditiveDisplay.from_estimator(model(), features=[("age", "job")]).axes_
    shape = model().shape_functions_[("age", "job")]
    image = ax.collections[0]
    between = [np.interp(ages_of(ax), AGES, row) for row in shape.values.T]
    np.testing.assert_allclose(image.get_array().reshape(3, -1), between, atol=1e-12)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 120), (-0.5, 2.5))
    assert image.get_clim() == (-np.abs(shape.values).max(), np.abs(shape.values).max())
    unclear = (shape.lower <= 0) & (shape.upper >= 0)
    assert 0 < unclear.sum() < unclear.size
    expected = {(AGES[one], other) for one, other in np.argwhere(unclear)}
    assert {tuple(point) for point in ax.lines[0].get_xydata()} == expected
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "job")
    assert ax.get_yticklabels()[0].get_text() == "nurse"


@pytest.mark.parametrize("n_classes", (2, 3))
def test_without_a_band_none_is_drawn(n_classes):
    display = AdditiveDisplay.from_estimator(model(n_classes, band=False))
    assert all(type(one).__name__ == "QuadMesh" for ax in display.axes_ for one in ax.collections)
    assert not any(ax.lines for ax in display.axes_ if "×" in ax.get_title())  # noqa: RUF001


@pytest.mark.parametrize("scales", (("log", "linear"), ("linear", "log"), ("log", "category")))
def test_cells_of_a_pair_are_linear_between_knots_on_the_scales_of_its_columns(scales):
    grids = (np.array([-100.0, 0, 3, 1000]), JOBS if scales[1] == "category" else np.array([-1.0, 2, 30]))
    shape = function(("gain", "other"), grids, 1, scales, (4, 3))
    display = AdditiveDisplay([shape], response="")
    display.plot()
    mesh = display.axes_[0].collections[0]
    columns = (mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1])
    assert (columns[0][0], columns[0][-1]) == (-100, 1000) == display.axes_[0].get_xlim()
    assert (columns[1][0], columns[1][-1]) == ((-0.5, 2.5) if scales[1] == "category" else (-1, 30))
    values = shape.values
    for axis, (edges, grid, scale) in enumerate(zip(columns, grids, scales, strict=True)):
        if scale == "category":
            continue
        scaled, marks = (np.sign(x) * np.log1p(abs(x)) if scale == "log" else x for x in (edges, grid))
        between = np.interp((scaled[1:] + scaled[:-1]) / 2, marks, np.arange(len(marks)))
        values = np.apply_along_axis(lambda f, at=between: np.interp(at, np.arange(len(f)), f), axis, values)
    np.testing.assert_allclose(mesh.get_array().reshape(values.T.shape), values.T, atol=1e-9)


def test_every_class_has_a_colour_and_a_heat_map():
    display = AdditiveDisplay.from_estimator(model(3))
    assert titles(display)[3:] == [f"age × job: {label}" for label in ("no", "yes", "unknown")]  # noqa: RUF001
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["no", "yes", "unknown"]
    job, gain = (display.axes_[place] for place in (0, 1))
    shapes = model(3).shape_functions_
    np.testing.assert_array_equal([bar.get_height() for bar in job.patches], shapes["job"].values.T.ravel())
    np.testing.assert_array_equal([line.get_ydata() for line in gain.lines[:3]], shapes["gain"].values.T)
    for output, ax in enumerate(display.axes_[3:]):
        between = [np.interp(ages_of(ax), AGES, row) for row in shapes["age", "job"].values[..., output].T]
        np.testing.assert_allclose(ax.collections[0].get_array().reshape(3, -1), between, atol=1e-12)


def test_one_class_can_be_drawn_alone():
    display = AdditiveDisplay.from_estimator(model(3), target="unknown")
    shapes = model(3).shape_functions_
    assert titles(display) == ["job", "gain", "age", "age × job"]  # noqa: RUF001
    np.testing.assert_array_equal(display.axes_[2].lines[0].get_ydata(), shapes["age"].values[:, 2])
    np.testing.assert_allclose(band_of(display.axes_[2])[0][:4, 1], shapes["age"].lower[:, 2])
    assert display.figure_.get_supylabel() == "added to the score of unknown"
    assert not display.figure_.legends


def test_a_level_that_the_budget_does_not_identify_is_not_drawn_as_an_effect_of_0():
    ends = np.array([[1.0], [np.inf]])
    panel = Panel("stage", (np.array(["I", "rare"]),), ("category",), ("stage",), np.array([[0.5], [0.2]]), (-ends, ends), ("",))
    ax = pyplot.figure().subplots()
    panel.draw(ax)
    assert [(text.get_text(), text.get_position()[0]) for text in ax.texts] == [("not identified", 1)]


@pytest.mark.slow
def test_curves_and_bars_share_their_heights():
    display = AdditiveDisplay.from_estimator(model())
    assert len({ax.get_ylim() for ax in display.axes_[:3]}) == 1
    assert display.axes_[3].get_ylim() != display.axes_[0].get_ylim()
    written = [ax.yaxis.get_tick_params()["labelleft"] for ax in display.axes_[:3]]
    assert written == [True, False, False]
    display.plot(n_cols=2)
    assert [ax.yaxis.get_tick_params()["labelleft"] for ax in display.axes_[:3]] == [True, False, True]


def test_what_is_written_under_a_panel_is_apart_from_the_title_of_the_next():
    display = AdditiveDisplay.from_estimator(model(), features=[("age", "job"), "age"], n_cols=1)
    display.figure_.canvas.draw()
    above, below = display.axes_[0].xaxis.label.get_window_extent(), display.axes_[1].title.get_window_extent()
    assert above.y0 - below.y1 > below.height


def test_each_panel_can_have_heights_of_its_own():
    display = AdditiveDisplay.from_estimator(model(), sharey=False)
    assert len({ax.get_ylim() for ax in display.axes_[:3]}) > 1
    assert all(ax.yaxis.get_tick_params()["labelleft"] for ax in display.axes_)


@pytest.fixture(scope="module")
def with_a_sparse_tail():
    """A fit for inference: one record in 60 has a number above 4, and the bounds reach to 40."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(1.0, 20_000), rng.uniform(0, 10, 20_000)])
    y = (rng.random(20_000) < 1 / (1 + np.exp(-np.sin(X[:, 1]) - np.minimum(X[:, 0], 3) / 2 + 0.7))).astype(int)
    bounds = [(0, 40), (0, 10)]
    return fitted(DPAdditiveClassifier(3.0, delta=1e-6, feature_bounds=bounds, classes=[0, 1], inference=True), X, y)


@pytest.mark.slow
@pytest.mark.parametrize("sharey", (True, False))
def test_a_sparse_tail_does_not_set_the_limits(with_a_sparse_tail, sharey):
    """The band of the tail leaves the axis; that of the other curve, which has effects of 1, fills at least a third of it."""
    functions = with_a_sparse_tail.shape_functions_
    assert np.ptp([functions["x0"].lower[-1], functions["x0"].upper[-1]]) > 10
    display = AdditiveDisplay.from_estimator(with_a_sparse_tail, features=["x0", "x1"], sharey=sharey)
    display.figure_.canvas.draw()
    tail, even = (ax.get_ylim() for ax in display.axes_)
    assert (tail == even) == sharey
    assert np.ptp(tail) < 5 and np.ptp(functions["x1"].values) > np.ptp(even) / 3
    shares, shape = display.shares["x0",], functions["x0"]
    leave = np.array([shape.lower < tail[0], shape.upper > tail[1]])
    assert leave[:, -1].all() and (leave @ shares <= 0.01).all()
    assert all(artist.get_clip_on() for artist in display.axes_[0].collections)


def drawn_with_shares(function, shares, **params):
    return AdditiveDisplay([function], response="", shares={function.names: np.array(shares)}, **params).plot().axes_[0]


def test_limits_hold_all_but_one_percent_of_the_records_at_either_end():
    """Of bars and curves, in any order, whatever the output; and all that was drawn there before."""
    values = np.array([1.0, -2.0, 30.0, -40.0])
    for names, grid, scale in ((("job",), np.array(list("abcd"), dtype=object), "category"), (("age",), AGES, "linear")):
        shape = ShapeFunction(names, grid, values, values - 0.5, values + 0.5, 1.0, (scale,))
        for shares, expected in (
            ((0.5, 0.48, 0.01, 0.01), (-2.5, 1.5)),
            ((0.5, 0.47, 0.02, 0.01), (-2.5, 30.5)),
            ((0.5, 0.47, 0.01, 0.02), (-40.5, 1.5)),
        ):
            for order in ("given", "value"):
                display = AdditiveDisplay([shape], response="", shares={names: np.array(shares)}).plot(order=order)
                assert tuple(display.axes_[0].dataLim.intervaly) == expected
        (ax,) = AdditiveDisplay([shape], response="").plot().axes_
        assert tuple(ax.dataLim.intervaly) == pytest.approx((-40.5, 30.5))
        display = AdditiveDisplay([shape], response="", shares={names: np.array((0.5, 0.48, 0.01, 0.01))}).plot(ax=ax)
        assert tuple(display.axes_[0].dataLim.intervaly) == pytest.approx((-40.5, 30.5))
    two = replace(shape, values=np.column_stack([values, -values]), lower=None, upper=None)
    ax = drawn_with_shares(two, (0.5, 0.48, 0.01, 0.01), classes=["no", "yes"])
    assert tuple(ax.dataLim.intervaly) == (-2, 2)
    nowhere = replace(shape, lower=np.full(4, -np.inf), upper=np.full(4, np.inf))
    assert tuple(drawn_with_shares(nowhere, np.full(4, 0.25)).dataLim.intervaly) == (0, 0)


@pytest.mark.parametrize(
    "shares, expected",
    (
        ((0.5, 0.48, 0.01, 0.01), (0, 50)),
        ((0.5, 0.47, 0.02, 0.01), (0, 50)),
        ((0.005, 0.005, 0.495, 0.495), (50, 120)),
        ((0.0, 1.0, 0.0, 0.0), (0, 50)),
        ((0.3, 0.3, 0.3, 0.1), (0, 120)),
    ),
)
def test_the_axis_of_a_number_ends_where_released_shares_end(shares, expected):
    """Of a curve with the margin that it had, of a heat map without one, and with what was drawn there before."""
    shape = ShapeFunction(("age",), AGES, np.ones(4), None, None, 1.0, ("linear",))
    ax = drawn_with_shares(shape, shares)
    margin = 0.02 * (expected[1] - expected[0])
    assert ax.get_xlim() == pytest.approx((expected[0] - margin, expected[1] + margin))
    ax = pyplot.figure().subplots()
    ax.plot([-30, 60], [0, 0])
    AdditiveDisplay([shape], response="", shares={("age",): np.array(shares)}).plot(ax=ax)
    assert tuple(ax.dataLim.intervalx) == (-30, max(60, expected[1]))
    pair = ShapeFunction(("age", "job"), (AGES, JOBS), np.ones((4, 3)), None, None, 1.0, ("linear", "category"))
    assert drawn_with_shares(pair, np.repeat(np.array(shares) / 3, 3)).get_xlim() == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", (DPAdditiveClassifier(), DPAdditiveClassifier(inference=True), DPGradientBoostingClassifier()), ids=str
)
def test_curves_end_where_records_end_and_not_at_the_bounds(model, rng):
    """Ages are normal from 18 to 79, and the bounds reach to 120."""
    X = np.clip(rng.normal(48, 10, (20_000, 1)), 18, 79)
    params = {"epsilon": 3.0, "delta": 1e-6, "feature_bounds": [(0, 120)], "classes": [0, 1]}
    fit = fitted(clone(model).set_params(**params), X, (X[:, 0] > 48).astype(int))
    (ax,) = AdditiveDisplay.from_estimator(fit).axes_
    low, high = ax.get_xlim()
    assert 10 < low < 30 and 65 < high < 90
    (curve,) = fit.shape_functions_.values()
    assert (curve.grid[0], curve.grid[-1]) == (0, 120)


def test_a_line_of_which_nothing_was_counted_reaches_from_bound_to_bound(rng):
    X = rng.uniform(18, 79, (2000, 1))
    params = {"delta": 1e-6, "feature_bounds": [(0, 120)], "classes": [0, 1], "knots": 0}
    fit = fitted(DPAdditiveClassifier(3.0, **params), X, (X[:, 0] > 48).astype(int))
    display = AdditiveDisplay.from_estimator(fit)
    assert display.axes_[0].get_xlim() == pytest.approx((-2.4, 122.4)) and not display.shares


def test_ranges_that_hardly_any_record_has_are_left_out_of_the_axis(rng):
    """The display takes them from the model, as names of parts and pairs of numbers."""
    X = rng.uniform(0, 120, (20_000, 1))
    fit = fitted(DPAdditiveClassifier(3.0, delta=1e-6, feature_bounds=[(0, 120)], classes=[0, 1]), X, (X[:, 0] > 48).astype(int))
    assert AdditiveDisplay.from_estimator(fit).axes_[0].get_xlim() == pytest.approx((0, 120), abs=6)
    fit.hardly_seen_ = {"x0": [("missing", 0.1), ((-np.inf, 30.0), 0.01), ((90.0, np.inf), 0.01)]}
    assert AdditiveDisplay.from_estimator(fit).axes_[0].get_xlim() == pytest.approx((30, 90), abs=6)


@pytest.mark.parametrize("share, low, high", ((0.005, -1.0, 1.0), (0.5, -1.0, 60.0)))
def test_missing_cells_set_the_limits_if_there_are_some(share, low, high):
    ends = np.ones(4)
    shape = ShapeFunction(("age",), AGES, 0 * ends, -ends, ends, 1.0, ("linear",), np.array([50.0, 40.0, 60.0]))
    ax = drawn_with_shares(shape, [*(ends * (1 - share) / 4), share])
    ax.figure.canvas.draw()
    margin = 0.05 * (high - low)
    assert ax.get_ylim() == pytest.approx((low - margin, high + margin))


def test_colours_of_a_pair_follow_the_cells_where_records_are():
    values = np.array([[1.0, -2.0, 50.0], [0.5, 0.0, -1.0]])
    shape = ShapeFunction(("age", "job"), (AGES[:2], JOBS), values, None, None, 1.0, ("linear", "category"))
    ax = drawn_with_shares(shape, [0.3, 0.3, 0.005, 0.2, 0.1, 0.095])
    image = ax.collections[0]
    assert image.get_clim() == (-2, 2) and image.colorbar.extend == "both"
    ax = AdditiveDisplay([shape], response="").plot().axes_[0]
    assert ax.collections[0].get_clim() == (-50, 50) and ax.collections[0].colorbar.extend == "neither"


@pytest.mark.parametrize(
    "features, expected",
    (
        ([0, 2], ["age", "gain"]),
        (np.array([1]), ["job"]),
        (np.int64(1), ["job"]),
        (2, ["gain"]),
        (("gain", 0), ["gain", "age"]),
        ([(0, 1), "gain", 1], ["age × job", "gain", "job"]),  # noqa: RUF001
        ([("job", 0)], ["age × job"]),  # noqa: RUF001
        (np.array([[1, 0]]), ["age × job"]),  # noqa: RUF001
        (pd.Index(["job", "age"]), ["job", "age"]),
    ),
    ids=str,
)
def test_features_are_names_and_places_as_in_scikit_learn(features, expected):
    assert titles(AdditiveDisplay.from_estimator(model(), features=features)) == expected


def test_places_are_those_of_the_columns_of_x():
    other = model(feature_names_in_=np.array(["gain", "age", "job"], dtype=object))
    assert titles(AdditiveDisplay.from_estimator(other, features=[0, (1, 2)])) == ["gain", "age × job"]  # noqa: RUF001


@pytest.mark.parametrize("wrong", (-1, 3, True, 1.0, None, (0, 1, 2), (0, 0), (0, 9)), ids=str)
def test_features_that_do_not_exist_are_named_with_those_that_do(wrong):
    for pairs, particular in (("", {}), (", pairs of different columns", {"interaction": lambda *names: pytest.fail("called")})):
        message = (
            f"features has {wrong!r}; expected some of ['age', 'job', 'gain', ('age', 'job')]{pairs}, or the places of columns"
        )
        with pytest.raises(ValueError, match=re.escape(f"{message}, from 0 to 2.")):
            AdditiveDisplay.from_estimator(model(**particular), features=["age", wrong])


def test_features_that_are_no_list_are_refused():
    with pytest.raises(TypeError, match=r"features=1\.5; expected a list of names of columns, their places, or pairs"):
        AdditiveDisplay.from_estimator(model(), features=1.5)


def test_the_former_name_of_features_warns():
    with pytest.warns(FutureWarning, match=r"terms is deprecated; use features=\.\.\. Version 0\.5 removes terms"):
        assert titles(AdditiveDisplay.from_estimator(model(), terms=["gain"])) == ["gain"]


@pytest.mark.slow
def test_panels_are_read_in_their_order_however_wide_they_are():
    grids = {f"column {size}": np.arange(size).astype(str).astype(object) for size in (3, 50, 4, 20, 5)}
    functions = {name: function((name,), grid, 1, ("category",), len(grid)) for name, grid in grids.items()}
    display = AdditiveDisplay.from_estimator(SimpleNamespace(shape_functions_=functions), features=list(grids))
    cells = [ax.get_subplotspec() for ax in display.axes_]
    places = [(cell.rowspan.start, cell.colspan.start) for cell in cells]
    assert places == sorted(places) == [(0, 0), (1, 0), (2, 0), (2, 1), (3, 0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale, grid",
    (
        ("log", [-1e4, -10, 0, 10, 1e3, 1e5]),
        ("log", [-1e3, 0, 1e3]),
        ("log", [-10, 0, 1e6]),
        ("log", [0, 99999]),
        ("log", [0, 1e9]),
        ("log", [1e3, 1e7]),
        ("linear", [-124.35, -119.2, -114.31]),
        ("linear", [0, 40000]),
    ),
    ids=str,
)
def test_numbers_along_an_axis_do_not_run_together(scale, grid):
    one, two = (function((name,), np.array(grid), 1, (scale,), len(grid)) for name in "ab")
    pair = function(("a", "b"), (np.array(grid, dtype=float),) * 2, 1, (scale, scale), (len(grid), len(grid)))
    display = AdditiveDisplay([one, pair, two], response="").plot()
    display.figure_.canvas.draw()
    for ax in display.axes_:
        labels = [label for label in ax.get_xticklabels() if ax.get_xlim()[0] <= label.get_position()[0] <= ax.get_xlim()[1]]
        boxes = [label.get_window_extent() for label in labels if label.get_text()]
        assert len(boxes) >= 2
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("band", (True, False))
def test_of_very_many_categories_those_are_drawn_that_are_clearly_not_zero(band):
    names = np.arange(500).astype(str).astype(object)
    shape = function(("town",), names, 1, ("category",), 500, band)
    (ax,) = AdditiveDisplay([shape], response="").plot().axes_
    assert ax.get_title() == "town (40 of 500)"
    heights = np.abs(shape.values) if not band else np.maximum(shape.lower, -shape.upper)
    drawn = [label.get_text() for label in ax.get_xticklabels()]
    assert drawn == [str(place) for place in np.flatnonzero(heights >= np.sort(heights)[-40])]
    np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], shape.values[[int(name) for name in drawn]])
    pair = function(("age", "town"), (AGES, names), 1, ("linear", "category"), (4, 500))
    assert len(AdditiveDisplay([pair], response="").plot().axes_[0].get_yticks()) <= 18


@pytest.mark.slow
def test_many_categories_take_more_room_and_no_panel_covers_another():
    grids = {f"column {size}": np.arange(size).astype(str).astype(object) for size in (5, 20, 3, 60, 19, 4)}
    functions = {name: function((name,), grid, 1, ("category",), len(grid)) for name, grid in grids.items()}
    display = AdditiveDisplay.from_estimator(SimpleNamespace(shape_functions_=functions))
    display.figure_.canvas.draw()
    boxes = [ax.get_position() for ax in display.axes_]
    assert [display.axes_[place].get_xticklabels()[0].get_rotation() for place in (0, 1, 3)] == [0, 0, 90]
    widths = np.array([box.width for box in boxes])
    assert (widths[[3]] > 1.3 * widths[[1, 4]]).all() and (widths[[1, 4]] > 1.5 * widths[[0, 2, 5]].max()).all()
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_it_is_drawn_where_it_is_wanted():
    _, axes = pyplot.subplots(2, 2)
    display = AdditiveDisplay.from_estimator(model(), ax=axes)
    assert display.axes_.tolist() == axes.ravel().tolist()
    assert axes[0, 0].get_ylabel() == "added to the log-odds of yes"
    _, ax = pyplot.subplots()
    for features in (["age"], "age"):
        assert AdditiveDisplay.from_estimator(model(), features=features, ax=ax).axes_.tolist() == [ax]
    display = AdditiveDisplay.from_estimator(model(), ax=ax)
    assert display.figure_ is ax.figure and len(display.axes_) == 4 and ax not in display.axes_
    assert not ax.axison
    assert display.plot(n_cols=1).figure_ is not ax.figure


def test_what_the_heights_are_is_said_for_a_regressor():
    functions = model().shape_functions_
    assert AdditiveDisplay.from_estimator(SimpleNamespace(shape_functions_=functions)).response == "added to the prediction"
    of_log = SimpleNamespace(shape_functions_=functions, link_="log")
    assert AdditiveDisplay.from_estimator(of_log).response == "added to the logarithm of the prediction"
    basis = SimpleNamespace(facts=SimpleNamespace(target="price in $"))
    display = AdditiveDisplay.from_estimator(SimpleNamespace(shape_functions_=functions, basis_=basis))
    assert display.figure_.get_supylabel() == r"added to price in \$"


@pytest.mark.parametrize(
    "params, message",
    (
        ({"features": ["wage"]}, r"features has 'wage'; expected some of \['age', 'job', 'gain', \('age', 'job'\)\]"),
        ({"features": [("age", "gain")]}, r"features has \('age', 'gain'\); expected some of"),
        ({"features": []}, r"features=\[\]; expected"),
        ({"features": [3]}, r"features has 3; expected some of"),
        ({"n_terms": 0}, "n_terms=0; expected a positive number"),
        ({"order": "size"}, "order='size'; expected 'given' or 'value'"),
        ({"n_cols": 0}, "n_cols=0; expected a positive number"),
        ({"target": "yes"}, "target='yes'; expected None: the model has one function per column"),
        ({"ax": [None]}, "ax has 1 axes; expected one for each of 4 panels"),
    ),
    ids=str,
)
def test_what_makes_no_sense_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        AdditiveDisplay.from_estimator(model(), **params)


def test_more_panels_than_a_single_axes_has_room_for_are_refused():
    with pytest.raises(
        ValueError, match=r"a single axes, which has no room for 6 panels; expected at most 4: .* features=\[...\], or"
    ):
        AdditiveDisplay.from_estimator(model(3), ax=pyplot.figure().add_subplot())


def test_an_unknown_class_is_refused():
    with pytest.raises(ValueError, match=r"target='maybe'; expected one of \['no', 'yes', 'unknown'\]"):
        AdditiveDisplay.from_estimator(model(3), target="maybe")


def test_only_fitted_additive_models_have_functions():
    X, y = np.random.default_rng(0).uniform(-1, 1, (40, 1)), np.arange(40) % 2
    linear = fitted(DPLogisticRegression(1.0, data_norm=1.0, classes=[0, 1]), X, y)
    for estimator in (linear, make_pipeline(linear)):
        with pytest.raises(
            TypeError, match="is a DPLogisticRegression; expected an additive model, or a pipeline that ends in one"
        ):
            AdditiveDisplay.from_estimator(estimator)
        with pytest.raises(TypeError, match=r" CoefficientDisplay draws linear models\.$"):
            AdditiveDisplay.from_estimator(linear)
    chosen = fitted(DPTabularClassifier(1.0, feature_bounds=1.0, classes=[0, 1]), X, y)
    with pytest.raises(TypeError, match=r"DPTabularClassifier; expected .* The chosen estimator, DPLogisticRegression, has no"):
        AdditiveDisplay.from_estimator(chosen)
    for estimator in (DPAdditiveClassifier(), make_pipeline(DPAdditiveClassifier())):
        with pytest.raises(NotFittedError, match="not fitted"):
            AdditiveDisplay.from_estimator(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", (2, 3))
def test_of_pipelines_and_searches_the_model_in_them_is_drawn(n_classes):
    inner = model(n_classes)
    pipeline = Pipeline([("scale", "passthrough"), ("model", inner)])
    for whole in (pipeline, SimpleNamespace(best_estimator_=inner), SimpleNamespace(best_estimator_=pipeline)):
        display = AdditiveDisplay.from_estimator(whole)
        assert (titles(display), display.response) == (titles(drawn := AdditiveDisplay.from_estimator(inner)), drawn.response)


def test_a_model_tells_the_scale_of_each_column():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"job": rng.choice(["nurse", "mayor"], 200), "gain": rng.uniform(0, 9, 200), "age": rng.uniform(0, 9, 200)}
    )
    columns = {"job": {"kind": "category", "categories": ["nurse", "mayor"]}, "age": {"kind": "number", "bounds": [0, 9]}}
    columns["gain"] = {"kind": "number", "bounds": [0, 9], "scale": "log"}
    model = DPAdditiveClassifier(schema={"columns": columns, "classes": [0, 1]}, interactions=[("gain", "job")])
    done = fitted(model, table, rng.integers(2, size=200))
    scales = {names: shape.scales for names, shape in done.shape_functions_.items()}
    pair = {("gain", "job"): ("log", "category")}
    assert scales == {"job": ("category",), "age": ("linear",), "gain": ("log",), **pair}
    drawn = AdditiveDisplay.from_estimator(done, features=["gain", ("job", "gain")]).axes_
    assert [ax.get_xscale() for ax in drawn] == ["symlog", "symlog"]


@pytest.mark.slow
def test_functions_are_drawn_for_the_event_and_it_is_named():
    """With two classes in another order than sorted, functions are negated, with their bands and missing cells."""
    usual = model()
    known = usual.shape_functions_
    known["age"] = replace(
        known["age"],
        missing=np.array([0.3, 0.1, 0.6]),
        noise=(known["age"].lower + 0.1, known["age"].upper - 0.1),
    )
    display = AdditiveDisplay.from_estimator(model(event_="no", shape_functions_=known))
    for drawn, one in zip(display.functions, AdditiveDisplay.from_estimator(usual).functions, strict=True):
        assert drawn.names == one.names
        np.testing.assert_array_equal(drawn.values, -one.values)
        np.testing.assert_array_equal(drawn.lower, -one.upper)
        np.testing.assert_array_equal(drawn.upper, -one.lower)
        if one.missing is not None:
            np.testing.assert_array_equal(drawn.missing, [-0.3, -0.6, -0.1])
            np.testing.assert_array_equal(drawn.noise[0], -one.noise[1])
    assert display.response == "added to the log-odds of no"
    assert AdditiveDisplay.from_estimator(model(event_="yes")).response == "added to the log-odds of yes"


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", (0, 2, 3))
def test_models_are_drawn_as_they_are(n_classes):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    params = {"feature_bounds": 1.0, "interactions": [(0, 1)], "knots": 3}
    if n_classes:
        model = fitted(DPAdditiveClassifier(1.0, classes=range(n_classes), **params), X, rng.integers(n_classes, size=3000))
    else:
        model = fitted(DPAdditiveRegressor(1.0, target_bounds=(-1, 1), **params), X, X[:, 0] ** 2)
    display = AdditiveDisplay.from_estimator(model, features=["x0", "x1", ("x0", "x1")])
    assert len(display.axes_) == 2 + (3 if n_classes == 3 else 1)
    drawn = [line.get_ydata() for line in display.axes_[0].lines[: max(n_classes - 1, 1) if n_classes < 3 else 3]]
    np.testing.assert_array_equal(np.squeeze(drawn).T, model.shape_functions_["x0"].values)
    display.figure_.canvas.draw()


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        AdditiveDisplay.from_estimator(model())


@pytest.mark.slow
@pytest.mark.parametrize(
    "of_frame", (pd.Timestamp, *slow(lambda text: pd.Timestamp(text).to_period("D"))), ids=("dates", "periods")
)
def test_a_learned_column_of_dates_is_drawn_in_dates(of_frame, rng):
    """Its numbers are seconds since 1970, of its type alone; an axis that leaves matplotlib's dates has the numbers."""
    n = 4000
    days = [
        of_frame(f"2021-{month:02}-{day:02}") for month, day in zip(rng.integers(1, 13, n), rng.integers(1, 28, n), strict=True)
    ]
    X = pd.DataFrame({"admitted": days, "age": rng.uniform(18, 80, n)})
    model = fitted(DPAdditiveClassifier(5.0, classes=[0, 1]), X, (X["age"].to_numpy() > 50).astype(int))
    assert model.schema_.to_dict()["columns"]["admitted"]["dates"] is True
    assert DPAdditiveClassifier(5.0, schema=model.schema_.to_dict()).fit(X, X["age"] > 50).schema_ == model.schema_
    assert [model.shape_functions_[name].scales for name in X] == [("date",), ("linear",)]
    display = AdditiveDisplay.from_estimator(model, features=["admitted", "age"])
    display.figure_.canvas.draw()
    admitted, age = (" ".join(tick.get_text() for tick in ax.get_xticklabels()) for ax in display.axes_)
    assert "202" in admitted and not re.search(r"\de|e\d", admitted) and "202" not in age
    far = ShapeFunction(("t",), np.array([0.0, 1e15]), np.zeros(2), None, None, 1.0, ("date",))
    display = AdditiveDisplay.from_estimator(SimpleNamespace(shape_functions_={"t": far}, classes_=np.array(["no", "yes"])))
    display.figure_.canvas.draw()

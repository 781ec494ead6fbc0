"""Additive models that are fitted for inference: bands and tests of the population, and what has none."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPLogisticRegression
from skdp.estimators.additive._inferred import CLEAR, INTERVALS, OF_NOISE, all_means, independent, intervals_for_inference
from skdp.estimators.additive._knot_placement import FINE, FINEST, OUTER, place_knots, quantile_knots
from skdp.estimators.additive._knots import MOST_OF_KNOTS, moves
from skdp.inspection import AdditiveDisplay
from skdp.losses import Logistic, Squared
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.privacy.budget import Budget
from skdp.solvers import InferenceDescent, Problem

N = 20_000
COLUMNS = {
    "age": {"kind": "number", "bounds": [18, 90]},
    "dose": {"kind": "number", "bounds": [0, 100], "scale": "log"},
    "stage": {"kind": "category", "categories": ["I", "II", "III"]},
    "town": {"kind": "category", "categories": ["Ulm", "other"]},
    "noise": {"kind": "number", "bounds": [-1, 1]},
}
GIVEN = {
    DPAdditiveClassifier: {"schema": {"columns": COLUMNS}, "classes": [0, 1]},
    DPAdditiveRegressor: {"schema": {"columns": COLUMNS, "target_bounds": [-4, 4]}},
}
KINDS = pytest.mark.parametrize("kind", GIVEN)


def effects(X):
    """True functions: one has a bend, one is a line on the scale of the column, one has a step, and two are 0."""
    bend = np.where(X["age"] < 54, X["age"] - 36, 72 - X["age"]) / 18
    return {"age": bend, "dose": 0.4 * np.log1p(X["dose"]), "stage": 0.8 * (X["stage"] == "II")}


def sample(seed, n=N):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(18, 90, n),
            "dose": np.expm1(rng.uniform(0, np.log(101), n)),
            "stage": rng.choice(["I", "II", "III"], n),
            "town": rng.choice(["Ulm", "Bonn"], n),
            "noise": rng.normal(0, 0.3, n).clip(-1, 1),
        }
    )
    raw = sum(effects(X).values()) - 2
    return X, raw, (rng.random(n) < 1 / (1 + np.exp(-raw))).astype(int), raw + 0.5 * rng.normal(size=n)


def model_of(kind, seed=0, epsilon=3.0, n=N, **given):
    X, _, labels, numbers = sample(seed, n)
    model = kind(epsilon, **{**GIVEN[kind], "inference": True, **given})
    return fitted(model, X, labels if kind is DPAdditiveClassifier else numbers, seed=seed)


@pytest.mark.parametrize("n_intervals", (0, 1, 5))
@pytest.mark.parametrize("dyadic", (False, True))
def test_what_is_fitted_has_full_rank_and_tells_the_means_of_all_functions(n_intervals, dyadic):
    X, *_ = sample(0, 2000)
    basis = AdditiveBasis(Schema.read({"columns": COLUMNS}), n_intervals, dyadic=dyadic)
    rows = basis.transform(X).toarray()
    some = rows[:, independent(basis)]
    both = np.column_stack([some, np.ones(len(some))])
    assert np.linalg.matrix_rank(both) == both.shape[1]
    spread = np.linalg.matrix_rank(np.column_stack([rows, np.ones(len(rows))]))
    assert spread == both.shape[1]  # so that nothing is lost
    np.testing.assert_allclose(all_means(basis, some.mean(axis=0)), rows.mean(axis=0), atol=1e-12)


@pytest.mark.slow
@KINDS
def test_bands_count_more_noise_than_tests(kind):
    """By a factor that refits of the same records set."""
    model = model_of(kind)
    shapes, raw = replace(model._shapes(), kind="noise"), model.inference_
    for name in ("own", "common", "flat", "step_noise"):
        np.testing.assert_allclose(getattr(shapes._louder, name), OF_NOISE**2 * getattr(raw, name))
    (term,) = (term for term in shapes.basis.terms if term.names == ("age",))
    usual = replace(shapes)
    vars(usual)["_louder"] = raw
    wide, narrow = (one.function(term, True) for one in (shapes, usual))
    ratio = (wide.upper - wide.lower) / (narrow.upper - narrow.lower)
    assert 1 < ratio.min() <= ratio.max() <= OF_NOISE  # less than the factor: the noise of the means is as it was
    np.testing.assert_array_equal(model.bands(kind="noise")["age"].upper, wide.upper)
    assert model.column_tests()["age"] == usual.test(term)


@pytest.mark.slow
@KINDS
def test_bands_of_noise_count_that_of_the_knots_where_a_function_bends(kind):
    """In proportion to the noise of the release that placed them; knots in even places have none."""
    shapes = replace(model_of(kind)._shapes(), kind="noise")
    budget = Budget(1.0, 1e-6, "replace_one")
    sizes = [moves(budget, n, shapes.basis) for n in (1000, 20_000, 40_000)]
    assert sizes[0] == MOST_OF_KNOTS and sizes[1] == pytest.approx(2 * sizes[2]) and 0 < shapes.moved <= MOST_OF_KNOTS
    assert (
        moves(budget, 1000, replace(shapes.basis, placed={})) == moves(Budget(math.inf, 0.0, "zero_out"), 1000, shapes.basis) == 0
    )
    still = replace(shapes, moved=0.0)
    for term in shapes.basis.terms:
        wide, narrow = (one.function(term, True) for one in (shapes, still))
        bends, known = shapes.bends(term), np.isfinite(wide.upper)
        size = len(wide.upper)
        grown = (np.square(wide.upper - wide.values) - np.square(narrow.upper - narrow.values))[known]
        bends = np.broadcast_to(bends[-size:] if bends.size > 1 else bends, size)[known]
        assert ((grown > 0) == (bends > 0)).all() and (term.names[0] == "age") <= (bends > 0).any()


@pytest.mark.slow
def test_values_that_no_category_lists_count_as_the_first_one():
    model, (X, *_) = model_of(DPAdditiveRegressor, n=5000), sample(1, 10)
    function = model.shape_functions_["stage"]
    assert function.grid.tolist() == ["I", "II", "III"] and function.noise[0].shape == (3,)
    assert model.shape_functions_["town"].grid.tolist() == ["Ulm", "other"]  # it is listed, and is its own
    np.testing.assert_array_equal(model.predict(X.assign(stage="IV")), model.predict(X.assign(stage="I")))


@pytest.mark.exhaustive
@KINDS
def test_bands_hold_the_curves_of_the_population(kind):
    """Forty samples and fits; `python -m benchmarks bands` has more. A share of .95 of 240 points has an error of .014."""
    held = []
    for seed in range(40):
        many, *_ = sample(1000 + seed, 50_000)
        truth = effects(many)
        for name, function in model_of(kind, seed).bands().items():
            known = truth.get(name, pd.Series(np.zeros(len(many))))
            if name in ("stage", "town"):
                groups = known.groupby(many[name]).mean() - known.mean()
                wanted, places = groups["II" if name == "stage" else "Ulm"], [1 if name == "stage" else 0]
            else:
                places = np.searchsorted(function.grid, many[name].quantile([0.2, 0.5, 0.8]))
                x = pd.DataFrame({key: np.take(function.grid, places) for key in ("age", "dose")}).assign(stage="I")
                wanted = effects(x)[name] - known.mean() if name in truth else 0.0
            held += np.ravel((function.lower[places] <= wanted) & (wanted <= function.upper[places])).tolist()
    assert np.mean(held) > 0.92


@pytest.mark.slow
@KINDS
def test_tests_find_what_matters_in_the_population(kind):
    tests = model_of(kind).column_tests()
    assert all(tests[name].pvalue < 1e-4 for name in ("age", "dose", "stage"))
    assert min(tests["noise"].pvalue, tests["town"].pvalue) > 1e-3
    assert tests["stage"].df[0] == 2 and tests["noise"].df[0] in INTERVALS


@pytest.mark.slow
@KINDS
def test_bands_of_both_kinds_of_points_and_of_whole_curves(kind):
    model = model_of(kind)
    usual, noise, whole = model.bands(), model.bands(kind="noise"), model.bands(simultaneous=True)
    for name, function in usual.items():
        np.testing.assert_array_equal(function.values, noise[name].values)
        inside = (function.lower <= noise[name].lower) & (noise[name].upper <= function.upper)
        assert inside.all() and (whole[name].lower <= function.lower).all()
        np.testing.assert_array_equal(function.noise, [noise[name].lower, noise[name].upper])
        assert noise[name].noise is None
        shown = model.shape_functions_[name]
        np.testing.assert_array_equal([shown.lower, shown.upper], [function.lower, function.upper])
    wider = [np.median((f.upper - f.lower) / (usual[name].upper - usual[name].lower)) for name, f in whole.items()]
    assert 1.0 < min(wider) and max(wider) < 2.0
    nothing = np.zeros((2, independent(model.basis_).size))  # as of a curve of which the centre alone is not exact
    assert model.inference_.joint_quantile(nothing, 0.95, "noise") == pytest.approx(1.96, abs=0.001)


@pytest.mark.slow
def test_a_bend_between_knots_widens_the_confidence_band_alone():
    """Knots at 4 intervals see that age bends, and not where; noise is around the curve that these records have."""
    model = model_of(DPAdditiveRegressor, epsilon=9.0, n=40_000, knots=4)
    confidence, noise = model.bands()["age"], model.bands(kind="noise")["age"]
    line, of_line = model.bands()["noise"], model.bands(kind="noise")["noise"]
    ratio = [np.max((a.upper - a.lower) / (b.upper - b.lower)) for a, b in ((confidence, noise), (line, of_line))]
    assert ratio[0] > 2 * ratio[1]


@pytest.mark.slow
def test_no_row_is_longer_than_the_norm_that_the_oracle_enforces():
    """A row that is shortened is another one, which would bias intervals."""
    X, *_ = sample(0, 500)
    ends = pd.DataFrame({"age": [-1e9, 18, 90, 1e9], "dose": [0, 1e9, 100, 0], "stage": ["I", "X", "III", "II"], "town": "Ulm"})
    for columns in (["age", "dose", "stage", "town"], ["age", "dose"], ["stage", "town"], ["age"]):
        for knots in (0, 1, 2, "auto"):
            schema = {"columns": {name: COLUMNS[name] for name in columns}}
            model = DPAdditiveClassifier(9.0, schema=schema, inference=True, knots=knots)
            additive = model._task().additive(500, len(columns), columns)
            for table in (X, ends):
                rows = additive.rows(additive.behind, table[columns])
                assert np.sqrt(rows.power(2).sum(axis=1)).max() <= additive.data_norm * (1 + 1e-12), (columns, knots)


@pytest.mark.slow
def test_a_table_whose_columns_say_nothing_has_finite_and_infinite_ends_and_no_error():
    """A category with one value, a number beyond its bounds, and a category whose values are all spelt otherwise."""
    X, _, y, _ = sample(0, 5000)
    one, beyond = {"kind": "category", "categories": ["x"]}, {"kind": "number", "bounds": [200, 300]}
    schema = {"columns": {"age": COLUMNS["age"], "one": one, "beyond": beyond, "stage": COLUMNS["stage"]}}
    table = X.assign(one="x", beyond=X["age"], stage="?")
    model = DPAdditiveClassifier(9.0, schema=schema, classes=[0, 1], inference=True, knots=4)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(table, y)
    told = " ".join(str(one.message) for one in seen)
    assert "nearly all values of column 'stage' are its first category, 'I', or none" in told
    with pytest.warns(UserWarning, match="are not identified"):
        assert not model.column_tests()["one"].estimable
    for simultaneous in (False, True):
        for function in model.bands(simultaneous=simultaneous).values():
            assert not np.isnan([function.lower, function.upper]).any()


def test_labels_of_which_nearly_all_are_the_same_are_no_contradiction():
    """Their share is a released mean of targets, which for numbers would show a wrong range."""
    X, *_ = sample(0, 5000)
    y = (np.arange(5000) % 100 > 0).astype(int)
    for kind, given in ((DPAdditiveClassifier, GIVEN[DPAdditiveClassifier]), (DPLogisticRegression, {"feature_bounds": 100.0})):
        table = X if kind is DPAdditiveClassifier else X[["age", "dose"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert kind(9.0, **{**given, "classes": [0, 1]}, inference=True).fit(table, y).coef_.size


def test_beyond_the_outer_knots_an_interval_allows_for_what_the_curve_may_do():
    """A line, which goes on where the model is constant."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(0, 0.2, (N, 1)), -1, 1)
    y = X[:, 0] + 0.1 * rng.normal(size=N)
    model = fitted(DPAdditiveRegressor(5.0, feature_bounds=1.0, target_bounds=(-2, 2), inference=True), X, y)
    points = np.array([[0.9], [-0.9], [0.0]])
    low, high = model.predict_interval(points).T
    assert ((low <= points[:, 0]) & (points[:, 0] <= high))[:2].all() and (high - low)[2] < 0.1 < (high - low)[:2].min()
    function = model.shape_functions_["x0"]
    assert ((function.lower <= function.grid) & (function.grid <= function.upper)).mean() > 0.9


@pytest.mark.slow
@KINDS
def test_intervals_of_predictions_hold_the_truth(kind):
    model, (X, raw, *_) = model_of(kind), sample(7, 500)
    wanted = 1 / (1 + np.exp(-raw)) if kind is DPAdditiveClassifier else raw
    low, high = model.predict_interval(X).T
    assert np.isfinite([low, high]).all()
    assert np.mean((low <= wanted) & (wanted <= high)) > 0.9
    middle = model.predict_proba(X)[:, 1] if kind is DPAdditiveClassifier else model.predict(X)
    assert ((low <= middle) & (middle <= high)).all()


@pytest.mark.slow
def test_what_the_budget_does_not_identify_has_no_band():
    with pytest.warns(UserWarning, match="no coefficient is identified, so that there is no interval"):
        model = model_of(DPAdditiveClassifier, epsilon=0.1, n=3000)
    function = model.shape_functions_["age"]
    assert np.isinf(function.lower).all() and np.isinf(function.upper).all()
    with pytest.warns(UserWarning, match=r"The functions of \['age', .*\] are not identified at this budget"):
        assert np.isnan(model.column_tests()["age"].pvalue)
    pytest.importorskip("matplotlib").use("Agg")
    display = AdditiveDisplay.from_estimator(model, features=["age"])
    assert "not identified at this budget" in [text.get_text() for text in display.axes_[0].texts]


def test_a_model_without_inference_has_no_confidence_band():
    model = model_of(DPAdditiveRegressor, n=3000, inference=False)
    with pytest.raises(AttributeError, match="was not fitted for inference"):
        model.bands(kind="confidence")
    with pytest.raises(AttributeError, match="was not fitted for inference"):
        model.predict_interval(sample(0, 10)[0])
    with pytest.raises(ValueError, match="kind='both'; expected one of"):
        model.bands(kind="both")
    assert model.bands(kind="noise")["age"].upper is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"interactions": [("age", "dose")]}, r"inference=True with interactions="),
        ({"monotone": {"age": 1}}, "inference=True with monotone="),
        ({"data_norm": 1.0}, "inference=True with data_norm=1.0"),
        ({"inference": np.array([True, False])}, "inference=.*; expected True or False"),
        ({"schema": None}, "inference=True needs bounds and categories of all columns"),
        ({"schema": "learn"}, "inference=True needs bounds and categories of all columns"),
        ({"schema": {"age": COLUMNS["age"]}}, "inference=True needs bounds and categories of all columns"),
        ({"solver": "standardized_gd"}, "inference=True with solver='standardized_gd'; expected 'auto'"),
        ({"classes": [0, 1, 2]}, "inference=True with 3 classes"),
        ({"alpha": 0.1}, "alpha=0.1: a penalty biases intervals"),
        ({"max_sample_weight": 1.0}, "weights"),
        ({"inference": "yes"}, "inference='yes'; expected True or False"),
    ],
)
def test_what_has_no_intervals_is_refused_before_anything_is_spent(given, message, monkeypatch):
    monkeypatch.setattr("skdp.estimators._planned_fit.pay", lambda *_: pytest.fail("charged"), raising=False)
    X, _, y, _ = sample(0, 3000)
    model = DPAdditiveClassifier(**{**GIVEN[DPAdditiveClassifier], "inference": True, **given})
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X, y)


def test_the_solver_for_inference_needs_inference():
    X, _, y, _ = sample(0, 3000)
    for solver in ("inference", InferenceDescent()):
        with pytest.raises(ValueError, match="inference=True"):
            DPAdditiveClassifier(**GIVEN[DPAdditiveClassifier], solver=solver).fit(X, y)
    assert DPLogisticRegression(solver="inference", feature_bounds=1.0).plan(5000, 3).solver == "inference"


@pytest.mark.parametrize("loss", (Logistic(), Squared()))
def test_the_number_of_knots_follows_from_public_facts(loss):
    def chosen(n, epsilon):
        problem = Problem(n, 1, loss, Budget.from_parameters(epsilon, 1 / n**2, "replace_one", n), 1.0, 1.0)
        return intervals_for_inference(problem, basis_of)

    def basis_of(m):
        return AdditiveBasis(Schema.read({"columns": COLUMNS}), m, dyadic=False)

    found = [chosen(n, epsilon) for n in (1000, 10_000, 100_000) for epsilon in (0.3, 1.0, 3.0)]
    assert found[0] == INTERVALS[-1] and found[-1] == INTERVALS[0] and set(found) <= set(INTERVALS)
    plan = DPAdditiveClassifier(3.0, **GIVEN[DPAdditiveClassifier], inference=True).plan(100_000)
    assert "nearly all coefficients are likely to be identified" in plan.noise_size and CLEAR < 0.5


@pytest.mark.slow
def test_quantile_knots_are_different_increasing_and_hold_the_outer_quantiles(rng):
    for size in (2, 3, 9, FINE.size):
        for _ in range(50):
            shares = rng.normal(size=FINE.size) * rng.choice([0, 1e-3, 1]) + 3 * (rng.random(FINE.size) < 0.1)
            found = quantile_knots(shares, size)
            assert len(found) == size and (np.diff(found) > 0).all() and set(found) <= set(FINE)
    x = np.clip(rng.normal(0.5, 0.1, 100_000), 0, 1)
    shares = np.array([np.interp(x, FINE, hat).mean() for hat in np.eye(FINE.size)])
    found = quantile_knots(shares, 9)
    np.testing.assert_allclose(found[1:-1], np.quantile(x, np.linspace(*OUTER, 9))[1:-1], atol=1 / 128)
    assert found[0] <= np.quantile(x, OUTER[0]) and np.quantile(x, OUTER[1]) <= found[-1]
    counts = np.zeros(FINE.size)  # few values, of which one has most records
    values = np.searchsorted(FINE, np.arange(1, 15) / 15)
    counts[values] = [1, 1, 1, 2, 60, 3, 2, 9, 1, 9, 3, 4, 2, 2]
    inner = quantile_knots(counts / counts.sum(), 9)[1:-1]
    nearest = np.abs(inner[:, None] - FINE[values]).argmin(axis=1)
    assert np.abs(inner - FINE[values][nearest]).max() <= 1 / 128 and len(set(nearest)) == len(inner)
    assert place_knots(np.ones(FINEST.size), 9)[0] == 0  # other models have the ends of the range

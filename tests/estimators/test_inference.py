"""Models fitted for inference: intervals, contrasts, tests and summaries, their units, and what is refused."""

import pickle
import re
import warnings
from contextlib import nullcontext
from dataclasses import fields

import numpy as np
import pandas as pd
import polars as pl
import pytest
from marks import slow
from scipy import sparse, stats
from scipy.special import expit
from seeded import fitted
from sklearn.base import clone
from sklearn.metrics import get_scorer

import skdp
from skdp import DPLinearRegression, DPLogisticRegression
from skdp.inspection import CoefficientDisplay
from skdp.preprocessing import Schema, from_schema
from skdp.preprocessing._schema import TreatmentSchema
from skdp.privacy import PrivacyLedger
from skdp.privacy.errors import LowSignalWarning
from skdp.solvers import InferenceDescent
from skdp.solvers._inference import BLOCK

N, NAMES = 6000, ["age", "dose", "rest"]
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (N, 3))
SCORE = X @ [0.8, -0.5, 0.0] + 0.2
NUMBERS = SCORE + 0.3 * RNG.normal(size=N)
CLASSES = (RNG.random(N) < expit(2 * SCORE)).astype(int)
GIVEN = {"feature_bounds": 1.0, "inference": True}
LINEAR = DPLinearRegression(1.0, target_bounds=(-3, 3), **GIVEN)
LOGISTIC = DPLogisticRegression(1.0, classes=[0, 1], **GIVEN)
BOTH = pytest.mark.parametrize(("model", "y"), [(LINEAR, NUMBERS), (LOGISTIC, CLASSES)], ids=("linear", "logistic"))


def of(model, y, rows=X, **changes):
    return fitted(clone(model).set_params(**changes), rows, y)


@BOTH
def test_contrasts_are_those_of_coefficients(model, y):
    model = of(model, y)
    coef = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
    each = model.contrast(np.eye(4))
    np.testing.assert_allclose(each.estimate, coef)
    ends = np.asarray(model.confidence_intervals())
    np.testing.assert_allclose(ends.mean(axis=1), coef)
    np.testing.assert_allclose(ends[:, 0], each.lower)
    half = stats.t.ppf(0.975, each.df) * each.standard_error
    np.testing.assert_allclose(each.upper - each.estimate, half)
    np.testing.assert_allclose(each.pvalue, 2 * stats.t.sf(np.abs(each.estimate / each.standard_error), each.df))
    mixed = model.contrast([[1, -1, 0], [0, 2, 0]], ["difference", "twice"])
    np.testing.assert_allclose(mixed.estimate, [coef[0] - coef[1], 2 * coef[1]])
    assert mixed.standard_error[1] == pytest.approx(2 * each.standard_error[1]) and mixed.names.tolist() == [
        "difference",
        "twice",
    ]
    wide, narrow = (np.asarray(model.confidence_intervals(level)) for level in (0.99, 0.5))
    assert (wide[:, 1] > ends[:, 1]).all() and (narrow[:, 1] < ends[:, 1]).all()
    noise = np.asarray(model.confidence_intervals(kind="noise"))
    assert (noise[:, 1] - noise[:, 0] < ends[:, 1] - ends[:, 0]).all()
    assert ((each.noise_share > 0.1) & (each.noise_share < 0.95)).all()


@BOTH
def test_the_length_of_a_row_changes_no_test(model, y):
    """Squares of such rows overflow or vanish."""
    model = of(model, y)
    usual, named = model.contrast([0, 1, 0]), model.contrast(["x1", "x2"])
    for size in (1e-200, 1e160):
        found = model.contrast([0, size, 0])
        assert found.estimable.all() and found.lower[0] == pytest.approx(size * usual.lower[0])
        both = model.wald_test([[0, size, 0], [0, 0, 1 / size]])
        assert both.statistic == pytest.approx(model.wald_test(["x1", "x2"]).statistic)
    table = named.to_frame()
    assert table.index.tolist() == ["x1", "x2"] and table["lower"].iloc[0] == pytest.approx(usual.lower[0])


def test_many_rows_have_the_intervals_of_each():
    model = of(LINEAR, NUMBERS)
    many = np.tile(X, (2, 1))
    assert len(many) > 2 * BLOCK
    parts = [model.predict_interval(many[start : start + 1000]) for start in range(0, len(many), 1000)]
    np.testing.assert_allclose(model.predict_interval(many), np.vstack(parts), rtol=1e-12)


def test_a_level_next_to_one_hides_no_standard_error():
    found = of(LINEAR, NUMBERS).contrast(np.eye(4), level=1 - 1e-16)
    assert found.estimable.all() and np.isfinite(found.upper).all()


def test_parameters_that_are_set_after_a_fit_change_no_interval():
    model = of(LINEAR, NUMBERS)
    before = model.predict_interval(X[:3]), np.asarray(model.confidence_intervals())
    model.set_params(fit_intercept=False)
    np.testing.assert_array_equal(model.predict_interval(X[:3]), before[0])
    np.testing.assert_array_equal(model.confidence_intervals(), before[1])


@pytest.mark.slow
def test_where_the_signal_is_far_from_learned_nothing_is_identified(rng):
    """Nearly separable classes: coefficients of other columns are wrong, too."""
    rows = rng.uniform(-1, 1, (20_000, 3))
    for slope, known in ((4, True), (30, False)):
        y = (rng.random(len(rows)) < expit(rows @ [slope, 1, 0])).astype(int)
        model = of(LOGISTIC, y, rows, epsilon=3.0)
        with nullcontext() if known else pytest.warns(LowSignalWarning, match="4 of 4 combinations.*nearly separate the classes"):
            assert (model.contrast(np.eye(4)).estimable == known).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:epsilon=inf adds no noise")
@BOTH
def test_columns_that_are_equal_are_not_identified_without_noise(model, y):
    rows = X.copy()
    rows[:, 2] = rows[:, 1]
    for intercept in (True, False):
        found = of(model, y, rows, epsilon=np.inf, fit_intercept=intercept)
        with pytest.warns(UserWarning, match="are not identified"):
            assert not found.contrast(np.eye(3)).estimable[1:].any()
        assert found.contrast([0, 1, 1]).estimable.all()


@BOTH
def test_a_wald_test_of_one_row_is_the_square_of_its_t(model, y):
    model = of(model, y)
    one, single = model.wald_test([0, 1, 0]), model.contrast([0, 1, 0])
    assert one.statistic == pytest.approx(single.statistic[0] ** 2) and one.df == pytest.approx((1, single.df[0]))
    assert one.pvalue == pytest.approx(single.pvalue[0])
    both = model.wald_test(np.eye(3)[:2])
    assert both.pvalue < 1e-6 and both.df[0] == 2
    again = model.wald_test([[1, 1, 0], [0, -3, 0]])  # the same hypothesis
    assert again.statistic == pytest.approx(both.statistic, rel=0.05)


def test_intervals_of_predictions_are_within_their_range_and_hold_them():
    linear, logistic = of(LINEAR, NUMBERS), of(LOGISTIC, CLASSES)
    rows = np.vstack([X[:5], [[1e3, 0, 0], [1e308, 0, 0]]])
    with np.errstate(all="raise"), pytest.warns(UserWarning, match="10 times as long"):
        numbers, chances = linear.predict_interval(rows), logistic.predict_interval(rows)
    predicted = linear.predict(X[:5])
    assert ((numbers[:5, 0] < predicted) & (predicted < numbers[:5, 1])).all()
    assert numbers.min() >= -3 and numbers.max() <= 3 and chances.min() >= 0 and chances.max() <= 1
    probability = logistic.predict_proba(X[:5])[:, 1]
    assert ((chances[:5, 0] < probability) & (probability < chances[:5, 1])).all()
    np.testing.assert_allclose(linear.predict_interval(sparse.csr_matrix(X[:5])), numbers[:5])


@pytest.mark.parametrize("unit", (1e-6, 1.0, 1e6))
def test_units_of_columns_and_targets_are_those_of_the_user(unit):
    """Other units of X and y, with the same noise, give the same tests."""
    model = DPLinearRegression(1.0, target_bounds=(-3 * unit, 3 * unit), data_norm=2 / unit, inference=True)
    found = fitted(model, X / unit, NUMBERS * unit).contrast(np.eye(4))
    plain = fitted(DPLinearRegression(1.0, target_bounds=(-3, 3), data_norm=2.0, inference=True), X, NUMBERS).contrast(np.eye(4))
    factor = np.array([unit**2] * 3 + [unit])
    np.testing.assert_allclose(found.statistic, plain.statistic, rtol=1e-3)
    np.testing.assert_allclose(found.standard_error, plain.standard_error * factor, rtol=1e-3)


def test_shifted_bounds_and_a_shifted_target_move_the_intercept_alone():
    shifted = fitted(
        DPLinearRegression(1.0, target_bounds=(97, 103), feature_bounds=(9, 11), inference=True), X + 10, NUMBERS + 100
    )
    found = shifted.contrast(np.eye(4))
    np.testing.assert_allclose(found.estimate[:3], [0.8, -0.5, 0.0], atol=0.1)
    assert found.lower[3] < 100.2 - 10 * 0.3 < found.upper[3]
    row = shifted.contrast([[10, 10, 10, 1]])
    assert row.lower[0] < 100.2 < row.upper[0] and row.standard_error[0] < 0.1


def test_names_of_columns_are_kept():
    for frame in (pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)):
        model = of(LOGISTIC, CLASSES, frame)
        named = model.contrast([{"age": 1, "dose": -2}, {"(intercept)": 1}])
        np.testing.assert_allclose(named.estimate, model.contrast([[1, -2, 0, 0], [0, 0, 0, 1]]).estimate)
        with pytest.raises(
            ValueError, match=r"L names \['height'\]; expected some of \['age', 'dose', 'rest', '\(intercept\)'\]"
        ):
            model.wald_test({"height": 1})
        with pytest.raises(TypeError, match=r"L has the factors \{'age': '1'\}, which are text; expected numbers"):
            model.contrast({"age": "1"})
        factors = pd.Series({"age": 1, "dose": -2})
        for row in (factors, pd.Series([1, -2, 0])):
            np.testing.assert_allclose(model.contrast(row).estimate, named.estimate[:1], rtol=1e-12)
        table = model.summary().to_frame()
        assert list(table.index) == list(model.confidence_intervals().index) == [*NAMES, "(intercept)"]
        np.testing.assert_allclose(table["odds_ratio"], np.exp(table["coef"]))
        np.testing.assert_allclose(table["odds_upper"], np.exp(table["upper"]))
    assert "odds_ratio" not in of(LINEAR, NUMBERS).summary().to_frame()


def test_a_summary_is_text_and_html():
    model = of(LOGISTIC, CLASSES, pd.DataFrame(X, columns=["<b>", "dose", "rest"]))
    text, page = str(model.summary(0.9)), model.summary(0.9)._repr_html_()
    assert text.splitlines()[0].startswith("DPLogisticRegression: n = 6000, epsilon = 1, delta = 2.8e-08")
    for word in ("coef", "noise %", "P>|t|", "[0.05", "0.95]", "odds ratio", "dose", "(intercept)"):
        assert word in text and word.replace(">", "&gt;") in page
    assert "<b>" not in page and "&lt;b&gt;" in page and page.count("<tr>") == 5
    assert len({len(line) for line in text.splitlines()[1:8]}) == 1  # columns are aligned


def test_what_the_budget_does_not_identify_is_said_and_has_no_interval():
    few = X[:500]
    model = DPLogisticRegression(0.2, classes=[0, 1], **GIVEN)
    with pytest.warns(LowSignalWarning, match="drown the signal"):
        model.fit(few, CLASSES[:500])
    with pytest.warns(LowSignalWarning, match="4 of 4 combinations of coefficients are not identified"):
        found = model.contrast(np.eye(4))
    assert not found.estimable.any() and np.isnan([found.estimate, found.pvalue]).all() and np.isinf(found.upper).all()
    assert found.to_frame()[["estimate", "statistic", "pvalue"]].isna().all(axis=None)
    with pytest.warns(LowSignalWarning):
        text = str(model.summary())
    assert text.count("not identified at this budget") == 4
    test = model.wald_test(np.eye(3))
    assert not test.estimable and np.isnan(test.pvalue)
    with pytest.warns(LowSignalWarning):
        assert model.predict_interval(few[:2]).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    "n, words", [(500, "half of the coefficients or fewer"), (1500, "some coefficients"), (6000, "nearly all")]
)
def test_plans_and_fits_say_what_is_likely_to_be_identified(n, words):
    """A fit warns before the charge if that is half or less; measured with five columns: 0 of 200 with 500 records."""
    model = DPLogisticRegression(1.0, classes=[0, 1], feature_bounds=1.0, inference=True)
    assert f"; intervals: {words}" in model.plan(n, 5).noise_size
    table, ledger = RNG.uniform(-1, 1, (n, 5)), PrivacyLedger(epsilon=2.0, delta=1e-4)
    with ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LowSignalWarning, match=words) if n == 500 else nullcontext():
            model.fit(table, table[:, 0] > 0)
    assert len(ledger.entries) == (n > 500)
    assert "intervals" not in DPLogisticRegression(1.0, classes=[0, 1], feature_bounds=1.0).plan(n, 5).noise_size


@pytest.mark.parametrize(("epsilon", "n", "d"), [(0.5, 10, 7), (0.5, 2000, 7), (1.0, 500, 5), (3.0, 50, 20)])
def test_the_number_of_records_of_a_plan_identifies_most(epsilon, n, d):
    """The default delta falls as the table grows, so a number in proportion to the noise would not do."""
    model = DPLogisticRegression(epsilon, classes=[0, 1], feature_bounds=1.0, inference=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (named,) = re.findall(r"about ([\d,]+) records at this epsilon identify most", model.plan(n, d).noise_size)
        enough = int(named.replace(",", ""))
        assert "nearly all" in model.plan(enough, d).noise_size
        assert "identify most" in model.plan(enough * 9 // 10, d).noise_size


def test_a_list_of_names_tests_several_columns_at_once():
    model = of(LOGISTIC, CLASSES, pd.DataFrame(X, columns=NAMES))
    for names in (["age", "dose"], ("age", "dose")):
        assert model.wald_test(names) == model.wald_test(np.eye(3)[:2])
        np.testing.assert_allclose(model.contrast(names).estimate, model.coef_[0, :2], rtol=1e-12)
    with pytest.raises(ValueError, match=r"^L='other' is no column"):
        model.wald_test(["age", "other"])
    for mixed in (["age", {"dose": 1}], [["age"]], np.array(["age"])):
        with pytest.raises(TypeError, match=r"^L=.*; expected numbers, the name of a column, a list of names"):
            model.wald_test(mixed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "levels", (["I", "II", "III", "IV", "rare"], *slow(["rare", "I", "II", "III", "IV"])), ids=("last", "first")
)
def test_a_rare_level_takes_no_interval_of_another_column(levels):
    """123 of 30 000 records have it. Noise turns the direction of its effect into those of others."""
    n, of_level = 30_000, ["stage_rare"] if levels[-1] == "rare" else [f"stage_{level}" for level in levels[1:]] + ["(intercept)"]
    for seed, kind in enumerate((DPLogisticRegression, DPLinearRegression)):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"age": rng.uniform(30, 80, n), "bmi": np.clip(rng.normal(27, 4, n), 15, 45)})
        frame["smoker"], frame["sex"] = rng.choice(["no", "yes"], n, p=[0.7, 0.3]), rng.choice(["f", "m"], n)
        frame["stage"] = rng.choice(["I", "II", "III", "IV"], n, p=[0.4, 0.3, 0.2, 0.1])
        frame.loc[rng.permutation(n)[:123], "stage"] = "rare"
        raw = 0.03 * (frame["age"] - 55) + 0.6 * (frame["smoker"] == "yes") + 1.5 * (frame["stage"] == "rare") - 0.5
        columns = {
            "age": {"kind": "number", "bounds": [30, 80]},
            "bmi": {"kind": "number", "bounds": [15, 45]},
            "smoker": {"kind": "category", "categories": ["no", "yes"]},
            "sex": {"kind": "category", "categories": ["f", "m"]},
            "stage": {"kind": "category", "categories": levels},
        }
        given = {"classes": [0, 1]} if kind is DPLogisticRegression else {"target_bounds": (-6, 6)}
        y = rng.random(n) < expit(raw) if kind is DPLogisticRegression else np.clip(raw + rng.normal(size=n), -6, 6)
        model = fitted(kind(0.4, schema={"columns": columns}, inference=True, **given), frame, y, seed=seed)
        with pytest.warns(
            LowSignalWarning, match=f"{len(of_level)} of 9 coefficients.*leave out rare levels, list a frequent"
        ) as said:
            table = model.summary().to_frame()
        found, values = table["estimable"], table[["coef", "t", "p", *(["odds_ratio"] if "odds_ratio" in table else [])]]
        assert values[~found].isna().all(axis=None) and values[found].notna().all(axis=None)
        assert [*found.index[~found]] == of_level and f"not identified at this budget, {of_level}: " in str(said[0].message)
        assert model.contrast({"stage_II": 1, "stage_III": -1}).estimable.all()
        ends = model.predict_interval(frame[frame["stage"] != "rare"][:20])
        assert (np.ptp(ends, axis=1) < 0.9 if kind is DPLogisticRegression else np.ptp(ends, axis=1) < 10).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression))
def test_a_plan_says_how_many_records_a_level_needs(kind):
    """Levels of a third and of three times the number; it hardly depends on the number of records of the table."""
    rng = np.random.default_rng(0)
    n, given = 20_000, {"classes": [0, 1]} if kind is DPLogisticRegression else {"target_bounds": (-2, 2)}
    number = {"kind": "number", "bounds": [-1, 1]}
    columns = {"a": number, "b": number, "c": {"kind": "category", "categories": ["I", "II", "few", "many"]}}
    model = kind(1.0, schema={"columns": columns}, inference=True, **given)
    stated = [re.search(r"a level that fewer than about ([\d,]+) records", model.plan(m).noise_size)[1] for m in (n, 3 * n)]
    one, two = (int(text.replace(",", "")) for text in stated)
    assert 50 < one < two < 1.3 * one
    levels = rng.choice(["I", "II"], n).astype(object)
    levels[: one // 3], levels[one // 3 : one // 3 + 3 * one] = "few", "many"
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, n), "b": rng.uniform(-1, 1, n), "c": levels})
    y = (
        rng.random(n) < expit(frame["a"])
        if kind is DPLogisticRegression
        else np.clip(frame["a"] + 0.3 * rng.normal(size=n), -2, 2)
    )
    with pytest.warns(LowSignalWarning, match="1 of 6 coefficients"):
        known = fitted(model, frame, y).summary().to_frame()["estimable"]
    assert [*known.index[~known]] == ["c_few"]


def test_a_single_class_identifies_nothing():
    model = of(LOGISTIC, np.zeros(N, dtype=int))
    with pytest.warns(LowSignalWarning, match="4 of 4"):
        assert not model.contrast(np.eye(4)).estimable.any()
    rare = (RNG.random(N) < 0.004).astype(int)  # 24 records for 4 coefficients
    with pytest.warns(LowSignalWarning, match="4 of 4"):
        assert not of(LOGISTIC, rare).contrast(np.eye(4)).estimable.any()


def test_all_levels_of_a_category_are_not_identified_but_their_difference_is(rng):
    levels = np.eye(3)[rng.integers(0, 3, 20_000)]
    y = levels @ [0.5, 0.0, -0.5] + 0.3 * rng.normal(size=20_000)
    model = fitted(DPLinearRegression(3.0, target_bounds=(-2, 2), data_norm=1.0, inference=True), levels, y)
    with pytest.warns(LowSignalWarning):
        assert not model.contrast(np.eye(4)).estimable.any()
    found = model.contrast([[1, -1, 0], [1, 0, -1]])
    assert found.estimable.all() and (found.lower < [0.5, 1.0]).all() and (found.upper > [0.5, 1.0]).all()


@BOTH
def test_pickles_and_files_keep_the_inference(model, y, tmp_path):
    model = of(model, y)
    path = tmp_path / "model.skops"
    skdp.save_model(model, path)
    for other in (pickle.loads(pickle.dumps(model)), skdp.load_model(path)):
        for field in fields(model.inference_):
            one, two = getattr(model.inference_, field.name), getattr(other.inference_, field.name)
            if field.name not in ("geometry", "unlearned"):
                np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(other.contrast(np.eye(4)).lower, model.contrast(np.eye(4)).lower)


@BOTH
def test_the_inference_of_another_fit_is_gone(model, y):
    model = of(model, y)
    fitted(model.set_params(inference=False), X, y)
    for call in (
        model.summary,
        model.confidence_intervals,
        lambda: model.contrast([1, 0, 0]),
        lambda: model.predict_interval(X[:2]),
    ):
        with pytest.raises(AttributeError, match="not fitted for inference; expected inference=True"):
            call()


@BOTH
def test_a_solver_object_is_for_inference_too(model, y):
    given = {"solver": InferenceDescent(20, n_replicates=3, robust=True), "inference": False}
    found = of(model, y, **given)
    assert found.inference_.replicates.shape == (3, 4)
    assert "Meat" in [line.query for line in found.privacy_report_.releases]
    with pytest.raises(ValueError, match="feature_bounds or data_norm"):
        of(model, y, **given, feature_bounds=None)


PARTIAL = {"columns": {name: {"kind": "learn"} if name == "rest" else {"kind": "number", "bounds": [-1, 1]} for name in NAMES}}


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"feature_bounds": None}, ValueError, "inference=True needs schema, feature_bounds or data_norm"),
        ({"feature_bounds": None, "schema": "learn"}, ValueError, "inference=True with columns that are learned"),
        ({"feature_bounds": None, "schema": PARTIAL}, ValueError, r"that are learned, \['rest'\]"),
        ({"solver": "gd"}, ValueError, "inference=True with solver='gd'; expected 'auto', 'inference'"),
        ({"inference": "yes"}, TypeError, "inference='yes'; expected True or False"),
        ({"alpha": 1.0}, ValueError, "a penalty biases intervals"),
    ],
)
@BOTH
def test_mistakes_cost_nothing(model, y, given, error, message):
    frame, ledger = pd.DataFrame(X, columns=NAMES), PrivacyLedger(epsilon=1.5, delta=1e-5)
    wrong = clone(model).set_params(**given)
    with ledger, pytest.raises(error, match=message):
        wrong.fit(frame, y)
    assert not ledger.entries
    with ledger:
        of(model, y)
    assert len(ledger.entries) == 1


LEVELS = RNG.choice(["A", "B", "C"], N, p=[0.5, 0.3, 0.2])
FRAME = pd.DataFrame({"age": 50 + 30 * X[:, 0], "stage": LEVELS, "sex": RNG.choice(["f", "m"], N), "dose": np.exp(X[:, 1])})
SCHEMA = {
    "columns": {
        "age": {"kind": "number", "bounds": [20, 80]},
        "stage": {"kind": "category", "categories": ["B", "A", "C"]},
        "sex": {"kind": "category", "categories": ["m"]},
        "dose": {"kind": "number", "bounds": [0, 3], "scale": "log"},
    }
}
OF_FRAME = ["age", "log1p(dose)", "stage_A", "stage_C", "sex_m"]
TRUTH = np.array([0.02, 0.8, -0.5, 1.0, 0.0, -1.0])
OUTCOME = np.column_stack([FRAME["age"], np.log1p(FRAME["dose"]), LEVELS == "A", LEVELS == "C"]) @ TRUTH[:4] - 1
OF_SCHEMA = pytest.mark.parametrize(
    ("model", "y"),
    [
        (clone(LINEAR).set_params(epsilon=10.0), OUTCOME + 0.3 * RNG.normal(size=N)),
        (clone(LOGISTIC).set_params(epsilon=10.0), (RNG.random(N) < expit(OUTCOME)).astype(int)),
    ],
    ids=("linear", "logistic"),
)


@pytest.mark.each_value
@OF_SCHEMA
@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=("pandas", "polars"))
def test_categories_are_relative_to_their_first_level(model, y, frame):
    model = of(model, y, frame, feature_bounds=None, schema=SCHEMA)
    table = model.summary().to_frame()
    assert table.index.tolist() == [*OF_FRAME, "(intercept)"] and table["estimable"].all()
    assert (np.abs(table["coef"] - TRUTH) < 4 * table["se"]).all() and table["se"]["stage_C"] < 0.3
    assert "relative to stage=B, sex=other" in str(model.summary())
    np.testing.assert_allclose(model.coef_.ravel(), table["coef"][:-1])
    assert "relative to stage=B, sex=other" in model.privacy_report_.public["resolved"]["columns"]
    assert model.wald_test("stage").pvalue < 1e-4 and model.wald_test("sex").df[0] == 1
    assert model.wald_test("stage_A") == model.wald_test({"stage_A": 1})
    found = model.contrast(["stage", "age", "(intercept)"])
    assert found.names.tolist() == ["stage_A", "stage_C", "age", "(intercept)"]
    assert found.estimate[-1] == pytest.approx(np.ravel(model.intercept_)[0])
    for L in ({"stage": 1}, {"stage_B": 1}, "stage_B"):
        with pytest.raises(
            ValueError, match=r"The coefficients of 'stage' are \['stage_A', 'stage_C'\], relative to 'B', which has none\.$"
        ):
            model.contrast(L)
    for empty in ({}, [{"stage_A": 1}, {}]):
        with pytest.raises(ValueError, match=r"expected dicts with the factor of at least one of \["):
            model.contrast(empty)
    assert model.contrast({"stage_A": 1}, "A against B").names.tolist() == ["A against B"]
    missing = 'Missing cells and values that are not listed count as "other"'
    assert missing in str(model.summary()) and missing in model.privacy_report_.public["resolved"]["columns"]
    np.testing.assert_allclose(model.wald_test("stage").statistic, model.wald_test([{"stage_A": 1}, {"stage_C": 1}]).statistic)
    with pytest.raises(ValueError, match=r"L='color' is no column; expected one of \['age', 'dose', 'stage', 'sex'\]"):
        model.wald_test("color")
    ends = model.predict_interval(frame[:5])
    middle = model.predict_proba(frame[:5])[:, 1] if hasattr(model, "classes_") else model.predict(frame[:5])
    assert (ends[:, 0] < middle).all() and (middle < ends[:, 1]).all()


@BOTH
def test_a_column_with_the_name_of_the_intercept_is_refused_before_anything_is_charged(model, y):
    for given in ({"inference": True}, {"inference": False, "solver": "inference"}):
        with (
            PrivacyLedger(epsilon=1.0, delta=1e-3) as ledger,
            pytest.raises(ValueError, match=r"^X has a column '\(intercept\)'"),
        ):
            clone(model).set_params(**given).fit(pd.DataFrame(X, columns=["age", "(intercept)", "rest"]), y)
        assert not ledger.entries


def test_bounds_may_be_an_array():
    pairs = np.tile([-1.0, 1.0], (3, 1))
    np.testing.assert_array_equal(of(LINEAR, NUMBERS, feature_bounds=pairs).coef_, of(LINEAR, NUMBERS).coef_)


TEXTS = np.where(CLASSES > 0, "case", "control")


@pytest.mark.parametrize("order", (["control", "case"], None))
def test_the_second_of_two_stated_classes_is_the_event(order):
    """Sorted classes_, signs and columns are those of scikit-learn, whatever the order is; odds are those of the event."""
    frame = pd.DataFrame(X, columns=NAMES)
    model, usual = (of(LOGISTIC, TEXTS, frame, classes=classes) for classes in (order, None))
    event = "control" if order is None else order[1]
    sign = 1 if event == "control" else -1
    assert model.classes_.tolist() == ["case", "control"] and model.event_ == event
    age = pd.DataFrame(np.outer([-1, 1], [1, 0, 0]), columns=NAMES)
    np.testing.assert_array_equal(model.coef_, usual.coef_)
    assert model.coef_[0, 0] < 0 and np.diff(model.decision_function(age)) < 0 and np.diff(model.predict_proba(age)[:, 1]) < 0
    assert model.predict(age).tolist() == ["control", "case"] and np.diff(model.predict_interval(age)[:, 0]) < 0
    for scoring in ("roc_auc", "neg_log_loss"):
        assert get_scorer(scoring)(model, frame, TEXTS) == get_scorer(scoring)(usual, frame, TEXTS)
    table = model.summary().to_frame()
    assert (table["event"] == event).all() and table["estimable"].all()
    np.testing.assert_allclose(table["coef"][:-1], sign * model.coef_[0])
    np.testing.assert_allclose(table["odds_ratio"], np.exp(sign * np.append(model.coef_, model.intercept_)))
    assert (table["odds_lower"] < table["odds_ratio"]).all() and (table["odds_ratio"] < table["odds_upper"]).all()
    assert (table["t"] * table["coef"] > 0).all()
    np.testing.assert_array_equal(model.confidence_intervals(), table[["lower", "upper"]])
    one = model.contrast("age").to_frame()
    assert one["event"].tolist() == [event] and one["estimate"].iloc[0] == pytest.approx(table["coef"].iloc[0])
    other = "case" if event == "control" else "control"
    assert f"Odds are those of {event!r} against {other!r}." in str(model.summary())
    display = CoefficientDisplay.from_estimator(model)
    np.testing.assert_allclose(display.estimate, table["coef"][:-1])
    assert ((display.noise[:, 0] < display.estimate) & (display.estimate < display.noise[:, 1])).all()
    assert display.ax_.get_xlabel().startswith(f"odds ratio of {event} (log scale)")
    assert model.wald_test("age") == usual.wald_test("age")


@pytest.mark.slow
def test_the_event_is_a_class_in_the_type_of_y():
    for classes, y, event in (
        (["1", "0"], CLASSES, 0),
        ([1, 0], CLASSES, 0),
        ([True, False], CLASSES > 0, False),
        ([1, 0], CLASSES.astype(str), "0"),
        (pd.Index([0, 1]), CLASSES, 1),
    ):
        model = of(LOGISTIC, y, classes=classes)
        assert model.event_ == event and type(model.event_) is type(event) and model.coef_[0, 0] > 0
    assert of(LOGISTIC, CLASSES, classes=None).event_ == 1
    stated = {**SCHEMA, "target": "ill", "classes": ["case", "control"]}
    model = of(LOGISTIC, TEXTS, FRAME, classes=None, feature_bounds=None, schema=stated, epsilon=10.0)
    assert model.event_ == "control" and clone(model).fit(FRAME, TEXTS).summary().to_frame()["event"].iloc[0] == "control"
    many = DPLogisticRegression(1.0, classes=[2, 1, 0], feature_bounds=1.0)
    assert not hasattr(fitted(many, X, RNG.integers(0, 3, N)), "event_")


def test_odds_ratios_of_columns_in_large_units_are_per_power_of_ten():
    """Per unit they would print as 1, 1 and 1."""
    frame = pd.DataFrame({"age": 55 + 25 * X[:, 0], "income": 1e5 + 1e5 * X[:, 1], "sugar": 200 + 100 * X[:, 2]})
    model = of(LOGISTIC, CLASSES, frame, feature_bounds={"age": (30, 80), "income": (0, 2e5), "sugar": (100, 300)})
    table = model.summary().to_frame()
    assert table["odds_per"].tolist() == [1, 10_000, 10, 1]
    for end, ends in (("coef", "odds_ratio"), ("lower", "odds_lower"), ("upper", "odds_upper")):
        np.testing.assert_allclose(table[ends], np.exp(table[end] * table["odds_per"]))
    assert table.loc["income", "odds_upper"] < 0.97  # -1 in log-odds for 100 000
    text = " ".join(str(model.summary()).split())
    assert "Odds ratios are per 10,000 of income, 10 of sugar, and per unit of other columns." in text
    assert f"{table.loc['income', 'odds_ratio']:.4g}" in text
    shown = CoefficientDisplay.from_estimator(model)
    assert shown.names == ["age", "income (per 10000)", "sugar (per 10)"]
    np.testing.assert_allclose(np.exp(shown.estimate), table["odds_ratio"][:-1])
    assert CoefficientDisplay.from_estimator(model, units={"income": 1000}).names[1] == "income (per 1000)"
    assert CoefficientDisplay.from_estimator(model, odds_ratios=False).names == list(frame)
    assert "Odds ratios are per" not in str(of(LOGISTIC, CLASSES).summary())


def test_a_plot_names_the_reference_level():
    display = CoefficientDisplay.from_estimator(of(LINEAR, NUMBERS, FRAME, feature_bounds=None, schema=SCHEMA), units={"age": 10})
    expected = ["age (per 10)", "log1p(dose)", "stage_A (against B)", "stage_C (against B)", "sex_m (against other)"]
    assert display.names == expected
    with pytest.raises(ValueError, match="categories and fit_intercept=False"):
        of(LINEAR, NUMBERS, FRAME, feature_bounds=None, schema=SCHEMA, fit_intercept=False)


@OF_SCHEMA
def test_what_is_not_listed_is_the_reference_level(model, y):
    model = of(model, y, FRAME, feature_bounds=None, schema=SCHEMA)
    odd = pd.DataFrame({"age": [50, 50, 900.0], "stage": ["B", None, "Z"], "sex": ["f", 3, None], "dose": [1, 1, 1.0]})
    first, other, clipped = model.decision_function(odd) if hasattr(model, "classes_") else model.predict(odd)
    assert first == other and clipped - first == pytest.approx(30 * model.coef_.ravel()[0])


def test_rows_of_a_schema_keep_their_public_length():
    """A category adds one to the squared length, whatever the number of its levels; hostile cells do not change that."""
    coded = TreatmentSchema.of(Schema.read(SCHEMA))
    hostile = FRAME[:6].copy()
    hostile["age"] = [1e308, -1e308, 1e300, -1e300, 80, -0.0]
    hostile["stage"] = ["A", "C", "1", None, np.nan, 7]
    rows = from_schema(coded).fit_transform(pd.concat([FRAME, hostile]))
    low, high = np.array(coded.row_facts["feature_bounds"]).T
    assert rows.shape[1] == coded.n_features == len(OF_FRAME) and (rows >= low).all() and (rows <= high).all()
    shift = np.clip(0, low, high)
    lengths = np.linalg.norm((rows - shift) / np.maximum(high - shift, shift - low), axis=1)
    assert lengths.max() <= coded.row_facts["data_norm"] == 2.0
    longest = pd.DataFrame({"age": [80], "stage": ["C"], "sex": ["m"], "dose": [3.0]})
    row = from_schema(coded).fit_transform(longest)[0]
    assert np.linalg.norm((row - shift) / np.maximum(high - shift, shift - low)) == pytest.approx(2.0)


@BOTH
def test_combinations_are_checked(model, y):
    model = of(model, y)
    for rows, message in (
        (np.eye(2), r"L has shape \(2, 2\); expected \(m, 3\), or \(m, 4\)"),
        ([np.nan, 0, 0], "not finite"),
        (np.zeros((0, 3)), "expected"),
    ):
        with pytest.raises(ValueError, match=message):
            model.contrast(rows)
    for dependent in ([[1, 0, 0], [2, 0, 0]], [[0, 0, 0]], [[1, 0, 0, 0], [1e-14, 0, 0, 0]]):
        with pytest.raises(ValueError, match="linearly dependent"):
            model.wald_test(dependent)
    assert model.wald_test([[0, 0, 0, 1.0]]).df[0] == 1  # of the intercept alone
    with pytest.raises(ValueError, match="2 names; expected 1"):
        model.contrast([1, 0, 0], ["a", "b"])
    with pytest.raises(ValueError, match="kind='both'"):
        model.confidence_intervals(kind="both")
    with pytest.raises(ValueError, match="level"):
        model.confidence_intervals(95)
    without = of(model, y, fit_intercept=False)
    assert len(without.summary().to_frame()) == 3
    with pytest.raises(ValueError, match="the model has none"):
        without.contrast([0, 0, 0, 1])


def test_a_plan_says_what_a_fit_for_inference_releases():
    report = LOGISTIC.plan(5000, 3)
    assert report.solver == "inference" and [line.query for line in report.releases][-2:] == ["Bread", "Meat"]
    assert "inference=True" in str(report)
    assert report.solver_reason == "chosen by inference=True"


def test_more_than_two_classes_are_refused_before_anything_is_charged():
    with (
        PrivacyLedger(epsilon=10, delta=1e-3) as ledger,
        pytest.raises(ValueError, match="inference=True with 3 classes; expected two"),
    ):
        of(LOGISTIC, CLASSES + (X[:, 0] > 0.5), classes=[0, 1, 2])
    assert not ledger.entries

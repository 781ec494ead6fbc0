"""Mistakes at a raw frame: each error names what is wrong, and not the text that learning would have read."""

import json
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from marks import slow
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedClassifier,
    DPConstrainedRegression,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPGroupDROClassifier,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMinimax,
    DPQuantileRegressor,
    DPRobustRegressor,
    DPTabularClassifier,
    DPTabularRegressor,
    LowSignalWarning,
    NotPrivateWarning,
    PrivacyLedger,
    TableWarning,
)
from skdp.data import parquet
from skdp.estimators import _two_stages
from skdp.metrics import evaluate
from skdp.minimax import AUCSaddle
from skdp.model_selection import DPGridSearchCV
from skdp.preprocessing import LearnedSchema, _learning, from_schema
from skdp.privacy import budget
from skdp.scorers import LinearScorer
from skdp.testing import reproducible_noise

N = 400
UNREADABLE = {
    "interval[int64, right]": lambda: pd.interval_range(0, N),
    "category of interval[int64, right]": lambda: pd.Series(pd.interval_range(0, N)).astype("category"),
}


@pytest.fixture
def frame(rng):
    """A column of numbers, one of text, and one of dates as text."""
    dates = rng.choice(["2020-01-31", "2021-12-01"], N)
    return pd.DataFrame({"age": rng.normal(50, 9, N), "town": rng.choice(["Ulm", "Bonn"], N), "since": dates})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "^epsilon=0; expected"),
        ({"solver": "unheard_of"}, "^solver='unheard_of'; expected"),
        ({"solver": "sgd"}, r"^solver=SGD.* cannot share a budget"),
        ({"delta": 0}, "^delta=0: columns are learned with Gaussian noise"),
        ({"schema": {"since": {"kind": "number", "bounds": [0, 1]}}}, r"^schema gives bounds to the columns \['since'\]"),
    ],
)
def test_a_frame_of_text_gets_the_error_of_the_parameter(parameters, message, frame):
    labels = np.arange(N) % 2
    with pytest.raises(ValueError, match=message) as caught:
        DPLogisticRegression(**{"epsilon": 1.0, **parameters}).fit(frame, labels)
    assert "2020" not in str(caught.value) and caught.value.__context__ is None


def test_a_frame_with_some_numbers_as_names_gets_the_error_of_its_names(frame):
    with pytest.raises(ValueError, match="column names that are no strings"):
        DPLogisticRegression(epsilon=1.0).fit(frame.set_axis(["a", 1, 2], axis=1), np.arange(N) % 2)


def test_a_target_that_cannot_be_read_is_not_blamed_on_the_columns(frame):
    with pytest.raises(ValueError, match=r"^y has values that cannot be read\. In y, a regression takes numbers") as caught:
        DPLinearRegression(epsilon=1.0).fit(frame, np.where(np.arange(N) % 2, "secret", "other"))
    assert "schema" not in str(caught.value) and "secret" not in str(caught.value)


def test_text_that_holds_numbers_may_have_bounds(frame):
    schema = {"age": {"kind": "number", "bounds": [0, 120]}}
    model = DPLogisticRegression(epsilon=9.0, schema=schema).fit(frame.assign(age=frame["age"].astype(str)), np.arange(N) % 2)
    assert "age" not in model.learnt_ and "town" in model.learnt_


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("schema", [None, "learn", {"town": "category"}])
@pytest.mark.parametrize("dtype", UNREADABLE)
def test_types_of_which_no_cell_can_be_read_are_refused(dtype, schema, frame):
    """No cell of them is a number, a date or text, so that the column would be learned as one of missing cells."""
    X = frame.assign(since=UNREADABLE[dtype](), later=frame["since"])
    with pytest.raises(TypeError, match=r"^The columns \{'since': '" + re.escape(dtype)) as caught:
        DPLogisticRegression(epsilon=1.0, schema=schema).fit(X, np.arange(N) % 2)
    assert "(0" not in str(caught.value)
    with pytest.raises(TypeError, match=r"^The columns"):
        LearnedSchema(schema=schema).plan(X)
    for word in ("ignore", "either"):  # the type decides nothing then
        DPLogisticRegression(epsilon=1.0, schema={"since": word}).plan(X)


@pytest.mark.parametrize("dtype", ["list<item: int64>", "binary", "struct<a: int64>"])
def test_types_of_arrow_are_refused_too(dtype):
    arrow = pytest.importorskip("pyarrow")
    kinds = {"b": arrow.binary(), "l": arrow.list_(arrow.int64()), "s": arrow.struct([("a", arrow.int64())])}
    X = pd.DataFrame({"a": np.zeros(N), "c": pd.Series([None] * N, dtype=pd.ArrowDtype(kinds[dtype[0]]))})
    with pytest.raises(TypeError, match=r"^The columns \{'c': '" + re.escape(dtype)):
        LearnedSchema().fit(X)


@pytest.mark.parametrize("word", ["auto", "category", "Learn"])
@pytest.mark.parametrize("kind", [DPLogisticRegression, LearnedSchema])
def test_an_unknown_word_for_a_schema_gets_those_that_work(kind, word, frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (lambda model: model.fit(frame, np.arange(N) % 2), lambda model: model.plan(frame)):
        with pytest.raises(ValueError, match=f"^schema='{word}'; expected \"learn\", the path of a JSON file, a dict"):
            call(kind(epsilon=1.0, schema=word))
    with pytest.raises(FileNotFoundError, match=f"There is no schema {word}.json"):
        kind(epsilon=1.0, schema=f"{word}.json").fit(frame, np.arange(N) % 2)
    (tmp_path / word).write_text('{"since": "ignore"}')  # a file needs no suffix
    kind(epsilon=1.0, schema=word).plan(frame)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 0.4), (1e-3, 0.1), (1e-4, 1e-2)])
def test_a_budget_that_leaves_the_fit_no_epsilon_is_named_as_it_was_given(epsilon, delta, frame):
    message = rf"^epsilon={epsilon:g} with delta={delta:g} leaves no epsilon for the fit beside the columns that are learned"
    model = DPLogisticRegression(epsilon=epsilon, delta=delta, schema="learn")
    for call in (lambda: model.fit(frame, np.arange(N) % 2), lambda: model.plan(frame)):
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert caught.value.__cause__ is None


def test_a_lazy_frame_is_refused_without_asking_for_its_types(rng):
    """Polars warns that the types of a lazy frame are slow to find out."""
    frame = pl.DataFrame({"a": rng.normal(size=24), "b": rng.normal(size=24)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", pl.exceptions.PerformanceWarning)
        with pytest.raises(
            TypeError, match=r"X is a LazyFrame, which holds no records yet; expected a table, such as X.collect\(\)"
        ):
            DPLogisticRegression().fit(frame.lazy(), [0, 1] * 12)


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier])
def test_a_lazy_frame_is_refused_wherever_a_table_goes_in(kind, rng):
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, 400), "b": rng.uniform(-1, 1, 400)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(8.0, delta=1e-4, classes=[0, 1], schema="learn").fit(frame, [0, 1] * 200)
    stated = from_schema({"columns": {name: {"kind": "number", "bounds": [-1, 1]} for name in "ab"}})
    lazy = pl.from_dict(frame.to_dict("list")).lazy()
    for call in (
        lambda: model.predict(lazy),
        lambda: model.plan(lazy),
        lambda: LearnedSchema().fit(lazy),
        lambda: LearnedSchema().plan(lazy),
        lambda: stated.fit_transform(lazy),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", pl.exceptions.PerformanceWarning)
            with pytest.raises(TypeError, match=r"X is a LazyFrame, which holds no records yet; expected a table"):
                call()


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression, DPTabularClassifier])
def test_a_forgotten_target_is_named(kind, frame):
    with pytest.raises(ValueError, match=r"^y is missing; expected fit\(X, y\)"):
        kind(epsilon=1.0).fit(frame)


@pytest.mark.parametrize("dtype", ["object", "string", "category"])
@pytest.mark.parametrize("place", [0, N - 1])
def test_a_missing_label_is_said_to_be_missing_and_not_where(dtype, place, frame):
    labels = pd.Series(np.where(np.arange(N) % 2, "ill", "well"), dtype=dtype)
    labels[place] = None
    with pytest.raises((TypeError, ValueError), match=r"missing.* Leave records without a target out of X and y") as caught:
        DPLogisticRegression(epsilon=1.0).fit(frame, labels)
    assert not {"ill", "well", str(place)} & set(re.findall(r"\w+", str(caught.value)))


def comma(column):
    return column.astype(str).str.replace(".", ",")


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier])
@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_text_where_the_fit_had_numbers_is_named_when_it_predicts(kind, dtype, frame):
    """Its cells would be missing ones, and the predictions others, without a word."""
    X = frame.assign(alone=np.arange(N) % 2 == 0, code=np.arange(N) % 3)
    model = kind(epsilon=9.0, schema={"code": "category", "town": "learn", "height": "number"}).fit(
        X.assign(height=X["age"].astype(str)), np.arange(N) % 2
    )
    again = X.assign(height=X["age"].astype(str), code=X["code"].astype(str))  # of these, text is read as before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = model.predict_proba(again)
    for wrong in ({"age": comma(X["age"]).astype(dtype)}, {"alone": X["alone"].astype(str).astype(dtype)}):
        with pytest.warns(
            UserWarning, match=rf": {N} of {N} cells of '{next(iter(wrong))}' are no numbers and count as missing\."
        ):
            found = model.predict_proba(again.assign(**wrong))
        assert found.shape == expected.shape


def test_dates_where_the_fit_had_numbers_are_named_when_it_predicts_and_the_other_way_round(frame):
    X = frame.assign(since=pd.to_datetime(frame["since"]))
    model = DPLogisticRegression(epsilon=9.0).fit(X, np.arange(N) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        model.predict(X.assign(since=np.nan, age=np.nan).head(3))  # missing cells have the type of numbers
    for wrong in ({"age": X["since"]}, {"since": X["age"]}):
        with pytest.warns(
            UserWarning, match=rf"The columns \{{'{next(iter(wrong))}': .*\}} held dates in the fit and do not here, or"
        ):
            model.predict(X.assign(**wrong))


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPAdditiveClassifier, DPTabularClassifier])
def test_one_record_without_a_table_and_a_column_twice_are_named_when_it_predicts(kind, frame):
    model = kind(epsilon=9.0).fit(frame, np.arange(N) % 2)
    with pytest.raises(ValueError, match=r"^X is a Series, one row or column; expected a table, such as X\.iloc\[\[0\]\]"):
        model.predict(frame.iloc[0])
    with pytest.raises(ValueError, match=r"^X has columns of the same name: \['age'\]; expected each column of the fit once"):
        model.predict(pd.concat([frame, frame[["age"]]], axis=1))


def test_columns_of_a_frame_with_text_and_without_strings_for_names_are_learned_without_a_word_on_bounds(frame):
    two = frame.set_axis(pd.MultiIndex.from_product([["a"], frame.columns]), axis=1)
    model = DPTabularClassifier(epsilon=9.0).fit(two, np.arange(N) % 2)  # warnings are errors
    assert set(model.learnt_["x1"]) & {"kind"} and model.predict(two).shape == (N,)


def test_a_direction_that_is_no_number_is_named(frame):
    with pytest.raises(ValueError, match=r"^monotone=\{'age': 'up'\}; expected a dict from column to 1"):
        DPAdditiveClassifier(epsilon=9.0, monotone={"age": "up"}).fit(frame, np.arange(N) % 2)


def test_a_table_to_prepare_or_in_files_is_checked_by_its_types_too(frame, tmp_path):
    learned = LearnedSchema(epsilon=9.0).fit(frame)
    assert learned.to_schema()["columns"]["age"]["typed"] is True
    with pytest.warns(UserWarning, match="'age'.* held numbers, dates or truths"):
        learned.transform(frame.assign(age=comma(frame["age"]).astype("string")))
    model = DPLogisticRegression(epsilon=9.0).fit(frame, np.arange(N) % 2)
    frame.assign(age=comma(frame["age"])).to_parquet(tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match=f"{N} of {N} cells of 'age' are no numbers"):
        model.predict(parquet(tmp_path / "t.parquet"))


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_one_text_among_records_to_prepare_is_not_told(dtype, frame):
    """They may be training records, whose types are the same for neighbours; a warning would tell one table from the other."""
    learned = LearnedSchema(epsilon=9.0).fit(frame)
    cells = frame["age"].astype(object)
    cells[7] = "forty"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned.transform(frame.assign(age=cells.astype(dtype)))


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier])
def test_a_column_that_the_schema_ignores_may_be_missing_when_it_predicts(kind, frame):
    model = kind(epsilon=9.0, schema={"since": "ignore"}).fit(frame, np.arange(N) % 2)
    assert (model.predict(frame.drop(columns="since")) == model.predict(frame)).all()
    for wrong in (frame.drop(columns="age"), frame.drop(columns="since")[["town", "age"]], frame.assign(more=1)):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong)


def test_an_array_of_objects_is_told_how_to_stay_a_frame(frame):
    model = make_pipeline(make_column_transformer(("passthrough", ["town", "age"])), DPLogisticRegression(epsilon=9.0))
    with pytest.raises(ValueError, match=r'set_output\(transform="pandas"\) of the transformer'):
        model.fit(frame, np.arange(N) % 2)
    model[0].set_output(transform="pandas")
    assert set(model.fit(frame, np.arange(N) % 2)[-1].learnt_) == {"passthrough__town", "passthrough__age"}


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda frame: frame.to_dict("list"), "a dict; expected a data frame"),
        (lambda frame: frame.to_dict("records"), "a list of dicts; expected a data frame"),
        (lambda frame: "table.csv", r"a str, .*pandas\.read_csv"),
        (lambda frame: Path("table.csv"), "a PosixPath, which no estimator opens"),
    ],
)
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier])
def test_what_is_no_table_is_named(kind, wrong, told, frame):
    y, wrong = np.arange(N) % 2, wrong(frame)
    model = kind(epsilon=9.0).fit(frame, y)
    calls = (model.predict, lambda X: kind(schema="learn").fit(X, y), lambda X: kind().fit(X, y), LearnedSchema().fit)
    for call in (*calls, lambda X: evaluate(model, X, y)):
        with pytest.raises(TypeError, match=f"^X is {told}"):
            call(wrong)


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier])
def test_a_column_in_place_of_the_table_or_of_its_labels_is_named(kind, frame):
    y = np.arange(N) % 2
    with pytest.raises(ValueError, match=r"^X is one column or row; expected a table, such as frame\[\['age'\]\]"):
        kind(feature_bounds=(0, 120)).fit(frame["age"], y)
    with pytest.raises(ValueError, match=r"^y should be a 1d array, and is a single value; .*table\[y\]"):
        kind(epsilon=9.0).fit(frame, "age")


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_records_are_counted(n, frame, monkeypatch):
    monkeypatch.setattr(budget, "LARGEST_DEFAULT", 1e-3)  # the tests of this file allow more
    with pytest.raises(ValueError, match=f"^X has {n} records; expected at least 2"):
        DPTabularClassifier().fit(frame[:n], np.zeros(n))


class OfInterchange:
    """A frame of a library that has the older protocol alone."""

    def __init__(self, frame):
        self._frame = frame

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self._frame.__dataframe__(nan_as_null, allow_copy)


class OfArrow:
    """A frame of a library that has the newer protocol alone."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


@pytest.mark.slow
@pytest.mark.parametrize("made", [pa.Table.from_pandas, *slow(OfArrow, OfInterchange)])
def test_frames_of_other_libraries_are_read_as_those_of_pandas(made, rng):
    """In fit, predict, score, plans, schema learning, evaluations, transformers and searches."""
    numbers = {"age": rng.integers(18, 90, 600), "weight": rng.normal(70, 9, 600)}
    frame = pd.DataFrame({**numbers, "town": ["Ulm", "Bonn", "Ulm"] * 200})
    y, other = np.array(["old", "young"])[(frame["age"] < 50).astype(int)], made(frame)
    with reproducible_noise(0):
        for kind in (DPTabularClassifier, DPAdditiveClassifier):
            models = [kind(epsilon=4.0, random_state=0).fit(X, y) for X in (frame, other)]
            np.testing.assert_array_equal(*(model.predict_proba(frame) for model in models))
            np.testing.assert_array_equal(*(models[0].predict_proba(X) for X in (frame, other)))
            assert models[0].learnt_ == models[1].learnt_ and models[0].score(frame, y) == models[1].score(other, y) > 0.9
            assert str(kind().plan(frame)) == str(kind().plan(other))
        scores = [evaluate(models[0], X, y, random_state=0)["roc_auc"].value for X in (frame, other)]
        learned = [LearnedSchema(epsilon=4.0, random_state=0).fit(X) for X in (frame, other)]
    search = DPGridSearchCV(DPLogisticRegression(), {"alpha": [1e-3, 1e-2]}, epsilon=9.0)
    assert clone(search).fit(other, y).score(other, y) > 0.9 and str(search.plan(frame)) == str(search.plan(other))
    assert scores[0] == scores[1] and learned[0].to_schema() == learned[1].to_schema()
    assert str(LearnedSchema().plan(frame)) == str(LearnedSchema().plan(other))
    np.testing.assert_array_equal(learned[0].transform(frame), learned[1].transform(other))
    prepared = [from_schema(learned[0].schema_).fit_transform(X) for X in (frame, other)]
    np.testing.assert_array_equal(*prepared)


def test_a_table_of_numbers_of_arrow_is_bounded_as_a_frame_and_keeps_its_gaps(rng):
    frame = pd.DataFrame({"a": rng.uniform(-3, 3, 500), "b": rng.uniform(0, 1, 500)})
    with reproducible_noise(0):
        models = [DPLogisticRegression(feature_bounds={"a": 3, "b": 1}, random_state=0) for _ in range(2)]
        ours, theirs = (
            model.fit(X, frame["a"] > 0) for model, X in zip(models, (frame, pa.Table.from_pandas(frame)), strict=True)
        )
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    with pytest.raises(ValueError, match=r"contains NaN.* values: 'b'"):
        ours.fit(pa.table({"a": [1, 2, 3], "b": [None, 2, 3]}), [0, 1, 0])


def test_an_arrow_table_that_cannot_be_read_quotes_nothing():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("secret")

    with pytest.raises(TypeError, match=r"^X is a Broken that cannot be read") as caught:
        DPLogisticRegression().fit(Broken(), [0, 1])
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [sparse.dok_array, sparse.dok_matrix])
def test_a_sparse_dictionary_of_keys_is_a_table(kind, rng):
    X = sparse.random_array((N, 3), density=0.5, rng=rng)
    with reproducible_noise(0):
        ours, theirs = (
            DPLogisticRegression(feature_bounds=1, random_state=0).fit(table, np.arange(N) % 2) for table in (kind(X), X)
        )
    np.testing.assert_array_equal(ours.predict(kind(X)), theirs.predict(X))


def test_a_matrix_is_an_array(rng):
    X = sparse.random(N, 3, density=0.5, rng=rng).todense()
    with reproducible_noise(0):
        ours, theirs = (DPLogisticRegression(feature_bounds=1, random_state=0).fit(table, np.arange(N) % 2) for table in (X, X.A))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X.A))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier])
def test_truths_among_objects_are_labels(kind, frame):
    """As they are left where missing labels were dropped."""
    y = pd.Series([*(frame["age"] > 50), None], dtype=object).dropna()
    with reproducible_noise(0):
        ours, theirs = (kind(epsilon=9.0, random_state=0).fit(frame, labels) for labels in (y, y.astype(bool)))
    assert ours.classes_.dtype == bool
    np.testing.assert_array_equal(ours.predict_proba(frame), theirs.predict_proba(frame))
    assert evaluate(ours, frame, y)["accuracy"].value > 0.7
    with pytest.raises(TypeError, match="labels that are missing"):
        kind().fit(frame, pd.Series([*y[1:], None], dtype=object))


ALL = [
    *(DPLogisticRegression, DPLinearSVC, DPAUCMaximizer, DPConstrainedClassifier, DPGroupDROClassifier, DPAdditiveClassifier),
    *(DPLinearRegression, DPQuantileRegressor, DPRobustRegressor, DPConstrainedRegression, DPAdditiveRegressor),
    *(DPTabularClassifier, DPTabularRegressor, DPGradientBoostingClassifier, DPGradientBoostingRegressor),
    partial(DPMinimax, AUCSaddle(LinearScorer(3), positive_rate=0.5)),
]


@pytest.mark.filterwarnings("default::skdp.TableWarning", "ignore:target_bounds is not given", "ignore:Neither threshold")
@pytest.mark.parametrize("kind", ALL)
def test_an_array_without_bounds_warns_before_the_charge(kind, rng):
    X, y = rng.uniform(0, 90, (300, 3)), np.arange(300) % 2
    with PrivacyLedger(epsilon=2.0, delta=1e-4) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        with pytest.raises(TableWarning, match=r"^(Neither schema nor feature_bounds|No data_norm).* \[-1, 1\]"):
            kind().fit(X, y)
    assert not ledger.entries
    bounds = {"data_norm": 150} if isinstance(kind, partial) else {"feature_bounds": (0, 90)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        kind(**bounds).fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("default::skdp.TableWarning")
def test_a_search_over_an_array_without_bounds_warns_before_the_charge(rng):
    X, y = rng.uniform(0, 90, (300, 3)), np.arange(300) % 2
    with PrivacyLedger(epsilon=2.0, delta=1e-4), pytest.warns(TableWarning, match="Neither schema nor feature_bounds"):
        DPGridSearchCV(DPLogisticRegression(), {"alpha": [1e-3, 1e-2]}).fit(X, y)


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPAdditiveClassifier, DPTabularClassifier])
def test_columns_that_a_complete_schema_leaves_out_are_named_before_the_charge(kind, frame, tmp_path):
    age, y = {"kind": "number", "bounds": [0, 120]}, np.arange(N) % 2
    frame, path = frame.assign(age_at_start=frame["age"], ill=y), tmp_path / "schema.json"
    schema = {"columns": {"age": age, "age_at_start": "ignore"}, "target": "ill"}
    path.write_text(json.dumps(schema))
    with PrivacyLedger(epsilon=2.0, delta=1e-4) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        for given in (schema, path):
            with pytest.raises(TableWarning, match=r"leaves out \['town', 'since'\] of X"):
                kind(schema=given).fit(frame, y)
            with pytest.raises(TableWarning, match=r"leaves out \['town', 'since'\] of X"):
                kind(schema=given).plan(frame)
        assert not ledger.entries
        every = {"age": age, "age_at_start": "ignore", "town": "ignore", "since": "ignore"}
        kind(schema={**schema, "columns": every}).fit(frame, y)


@pytest.mark.parametrize(("n_samples", "searched", "told"), [(600, False, True), (6000, True, False), (N * 25, True, False)])
def test_a_target_whose_place_noise_hides_is_named_alone(n_samples, searched, told, rng, monkeypatch):
    """Advice to ignore it, as for a column, would make no sense. Counts that search for it hide it no more."""
    if not searched:
        monkeypatch.setattr(_two_stages, "search_share", lambda *given: 0.0)
    X = pd.DataFrame(rng.normal(size=(n_samples, 20)), columns=[f"c{place}" for place in range(20)])
    y = 1013.25 + X["c0"].to_numpy()
    with reproducible_noise(0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPLinearRegression(epsilon=0.3, random_state=0).fit(X, y)
    messages = [str(item.message) for item in caught]
    assert told == any(re.match("Noise hides where the numbers to predict lie .* Use target_bounds", text) for text in messages)
    assert not any("'y'" in text for text in messages)


@pytest.mark.parametrize(("apart", "told"), [(0.1, False), (-1.0, True)])
def test_a_target_from_near_zero_is_not_said_to_be_hidden(apart, told, rng, monkeypatch):
    """Noise hides where it lies, but its powers of two are about as far apart as it spreads."""
    monkeypatch.setattr(_learning, "APART", apart)
    X = pd.DataFrame(rng.normal(size=(4000, 5)), columns=list("abcde"))
    with reproducible_noise(0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPLinearRegression(epsilon=1.0, random_state=0).fit(X, rng.integers(1, 900, 4000).astype(float))
    assert told == any("numbers to predict lie" in str(item.message) for item in caught)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPTabularClassifier])
def test_dates_with_bounds_are_named(kind, complete, frame):
    columns = {"day": {"kind": "number", "bounds": [1.5e9, 1.8e9]}, "age": {"kind": "number", "bounds": [0, 120]}}
    X = frame.assign(day=pd.date_range("2024-01-01", periods=N, freq="h"))
    with pytest.raises(TypeError, match=r"X has dates or durations in the columns \['day'\], which are not numeric"):
        kind(epsilon=1.0, schema={"columns": columns} if complete else columns).fit(X, np.arange(N) % 2)


def published(rng, n=6000):
    """Areas as text, of which some cells are ranges, and prices."""
    area, rooms = np.round(rng.gamma(6, 220, n), -1).astype(int), rng.integers(1, 5, n)
    cells = np.where(rng.random(n) < 0.02, [f"{size - 100} - {size + 100}" for size in area], area.astype(str))
    return pd.DataFrame({"area": cells, "rooms": rooms}), 0.07 * area + 8 * rooms + rng.normal(0, 10, n)


@pytest.mark.slow
@pytest.mark.parametrize("made", [lambda X: X.astype({"area": object}), pa.Table.from_pandas, *slow(lambda X: X, pl.from_pandas)])
def test_text_that_holds_numbers_is_read_cell_by_cell(made, rng):
    """As the command line reads it: R2 was .05 where all cells were taken for text."""
    X, price = published(rng)
    model = DPTabularRegressor(epsilon=3.0, random_state=0)
    with reproducible_noise(0), warnings.catch_warnings():
        warnings.filterwarnings("error", message="Nothing|X does not look")
        model.fit(made(X), price)
        assert model.score(made(X), price) > 0.8
    assert model.learnt_["area"]["kind"] in ("linear", "log") and 0.01 < model.learnt_["area"]["other_at_most"] < 0.06
    assert model.privacy_report_.public["read_as"]["area"] == "number or text, cell by cell"


def test_the_kind_of_text_is_learned_with_noise_and_that_of_categories_is_public(rng):
    """Neighbours have the same releases: the share of numbers decides by its noisy count alone."""
    halves = pd.Series(np.where(np.arange(N) % 2, "7", "seven"), dtype=object)
    kinds = set()
    for seed in range(20):
        with reproducible_noise(seed):
            kinds.add(LearnedSchema(epsilon=3.0, random_state=seed).fit(pd.DataFrame({"a": halves})).learnt_["a"]["kind"])
    assert "category" in kinds and len(kinds) > 1
    one = LearnedSchema(epsilon=3.0).plan(pd.DataFrame({"a": halves}))
    assert str(one) == str(LearnedSchema(epsilon=3.0).plan(pd.DataFrame({"a": pd.Series(["x"] * N, dtype=object)})))
    codes = LearnedSchema(epsilon=9.0).fit(pd.DataFrame({"a": pd.Series(np.arange(N) % 3).astype("category")}))
    assert codes.learnt_["a"]["kind"] == "category"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPAdditiveClassifier])
def test_cells_that_the_fit_did_not_know_are_counted_when_it_predicts(kind, rng):
    """Of True and False, 0 and 1 or YES and NO where the fit had yes and no, and of decimal commas in some cells."""
    n = 4000
    X = pd.DataFrame({"age": rng.integers(18, 90, n), "smoker": rng.choice(["no", "yes"], n), "dose": rng.normal(5, 1, n)})
    y, yes = (X["age"] > 50).to_numpy(), X["smoker"] == "yes"
    model = kind(epsilon=9.0, classes=[False, True]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        model.predict(X.assign(smoker=[*["seldom"] * 3, *X["smoker"][3:]]))  # a few are as good as none
        model.predict(X.assign(dose=np.nan, age=X["age"].astype(str)))  # nothing is misread
    for other in (yes, yes.astype(int), X["smoker"].str.upper(), pd.Categorical(yes.astype(int)), "xyz"):
        with pytest.warns(UserWarning, match=f": {n} of {n} cells of 'smoker' are of no category of the fit\\. "):
            model.predict(X.assign(smoker=other))
    commas = np.where(np.arange(n) % 20, X["dose"].astype(str), X["dose"].astype(str).str.replace(".", ","))
    with pytest.warns(UserWarning, match=f": {n // 20} of {n} cells of 'dose' are no numbers and count as missing\\. "):
        model.score(X.assign(dose=commas), y)
    days = X.assign(age=365 * X["age"])
    with pytest.warns(UserWarning, match=f": {n} of {n} cells of 'age' are beyond the range of the fit and count as its end\\. "):
        model.predict(days)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="X has what no training record had.*: 'age': above")  # of curves
        model.predict(X.assign(age=np.where(np.arange(n) % 3, X["age"], 500)))  # a third
        evaluate(model, X.assign(dose=commas), y)  # whose records are private
        evaluate(model, days, y)
    columns = {"age": {"kind": "number", "bounds": [18, 90]}, "smoker": {"kind": "category", "categories": ["no", "yes"]}}
    model = kind(epsilon=9.0, classes=[False, True], schema={"columns": columns}).fit(X, y)
    with pytest.warns(UserWarning, match=f"{n} of {n} cells of 'smoker' are of no category"):
        model.predict(X.assign(smoker=yes))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="X does not look")  # as many may have been in the fit
        warnings.filterwarnings("ignore", message="X has what")
        model.predict(X.assign(smoker=np.where(np.arange(n) % 3, X["smoker"], "seldom")))
    with pytest.warns(UserWarning, match=f"{n} of {n} cells of 'age' are beyond the range"):
        model.predict(days)


@pytest.mark.filterwarnings("default::skdp.TableWarning")
@pytest.mark.parametrize(
    "kind", [DPLogisticRegression, DPLinearRegression, DPAdditiveClassifier, DPTabularClassifier, LearnedSchema]
)
def test_columns_with_names_of_ids_are_named_before_the_charge(kind, frame):
    """Unless the schema says what they are."""
    ids = {"customer_id": np.arange(N), "PatientId": np.arange(N).astype(str), "Unnamed: 0": np.arange(N), "user": np.arange(N)}
    others = {"paid": np.arange(N) % 7, "id": pd.Timestamp(0), "client": np.arange(N) % 2 == 0, "covid": 1.0}
    X, y = frame.assign(**ids, **others), np.arange(N) % 2
    with PrivacyLedger(epsilon=9.0, delta=1e-3) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        for schema in (None, "learn", {"customer_id": "learn"}):
            with pytest.raises(TableWarning, match=rf"^The columns {re.escape(str([*ids]))} have names of ids"):
                kind(schema=schema).fit(X, y)
            with pytest.raises(TableWarning, match=rf"^The columns {re.escape(str([*ids]))} have names of ids"):
                kind(schema=schema).plan(X)
            with pytest.raises(TableWarning, match=r"names of ids"):
                kind(schema=schema).fit(pl.from_pandas(X), y)
        assert not ledger.entries
        said = dict(zip(ids, ("ignore", "number", "category", {"kind": "number", "bounds": [0, N]}), strict=True))
        kind(schema=said).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        with pytest.raises(TableWarning, match=r"\['customer_id', 'user'\] have names of ids"):
            DPLogisticRegression(feature_bounds=(0, N)).fit(X[["customer_id", "user"]], y)
        DPLogisticRegression(feature_bounds={"customer_id": (0, N)}).fit(X[["customer_id"]], y)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:target_bounds is not given")
@pytest.mark.parametrize("kind", [*ALL, LearnedSchema])
@pytest.mark.parametrize("n_samples", [3, 31])
def test_a_large_default_delta_is_refused_before_the_charge(kind, n_samples, frame, monkeypatch):
    """It must be written; with 3 records it was .111."""
    monkeypatch.setattr(budget, "LARGEST_DEFAULT", 1e-3)
    X, y, learns = frame[["age"]].iloc[:n_samples], np.arange(n_samples) % 2, kind is LearnedSchema
    X = X if learns else np.column_stack([X] * 3)
    with PrivacyLedger(epsilon=9.0, delta=0.5) as ledger:
        for call in (lambda: kind().fit(X, y), lambda: kind().plan(n_samples, 3)):
            with pytest.raises(ValueError, match=rf"^delta=None means 1 / n_samples\*\*2 = .* {n_samples} records.* 32 records"):
                call()
        assert not ledger.entries
    kind(delta=1e-5).plan(n_samples, 3)
    kind().plan(32, 3)
    with pytest.warns(NotPrivateWarning):
        kind(epsilon=float("inf")).plan(n_samples, 3)


@pytest.mark.filterwarnings("default::skdp.LowSignalWarning")
@pytest.mark.parametrize("metrics", [None, ["accuracy", "recall"], "log_loss"])
def test_an_evaluation_that_noise_hides_warns_before_the_charge(metrics, rng):
    X, y = rng.uniform(-1, 1, (4000, 2)), np.arange(4000) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DPLogisticRegression(epsilon=9.0, feature_bounds=1.0).fit(X, y)
        evaluate(model, X, y, metrics=metrics)
    n = 100 if metrics is None else 50
    with PrivacyLedger(epsilon=9.0, delta=1e-3) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        with pytest.raises(LowSignalWarning, match=f"hide the scores of {n} test records at epsilon=0.5"):
            evaluate(model, X[:n], y[:n], metrics=metrics, epsilon=0.5)
    assert not ledger.entries


def test_text_in_x_points_to_a_schema():
    with pytest.raises(ValueError, match='schema="learn"'):
        DPLogisticRegression(data_norm=1.0).fit(pd.DataFrame({"a": ["u", "v"] * 10}), [0, 1] * 10)

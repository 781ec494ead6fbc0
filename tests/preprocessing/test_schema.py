"""Schemas: what they refuse, the transformer they give, and that it learns nothing."""

import copy
import json
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from seeded import fitted
from sklearn.base import clone

from skdp import DPAdditiveClassifier, DPLogisticRegression, load_model, save_model
from skdp.preprocessing import BoundedScaler, Schema, from_schema
from skdp.preprocessing._categories import KnownCategories
from skdp.preprocessing._column_kinds import KINDS, Number

FACTS = {
    "description": "patients",
    "columns": {
        "age": {"kind": "number", "bounds": [0, 120], "description": "in years"},
        "income": {"kind": "number", "bounds": [0, 1e6], "scale": "log", "fill": 0},
        "name": {"kind": "ignore"},
        "smoker": {"kind": "category", "categories": ["no", "yes"]},
        "grade": {"kind": "category", "categories": [1, 2, 3]},
    },
    "target": "ill",
    "classes": [0, 1],
}
FRAME = pd.DataFrame(
    {
        "grade": [1, 2, 9],
        "smoker": ["yes", " no ", None],
        "age": [30, 60, 200],
        "income": [0.0, 999.0, np.nan],
        "name": ["a", "b", "c"],
        "ill": [0, 1, 1],
    }
)
# By kind of column: an entry with all keys that users write, some cells, and entries that are refused.
ENTRIES = {
    "number": (
        {"kind": "number", "bounds": [0.0, 120.0], "scale": "log", "fill": 40.0},
        [30, 18.5, None, 200, -1e300],
        [{"bounds": [3, 3]}, {"bounds": ["0", "1"]}, {"bounds": [0, float("nan")]}, {"bounds": [0, 1], "scale": "sqrt"}],
    ),
    "category": (
        {"kind": "category", "categories": ["no", "yes"]},
        ["yes", " no ", None, 7, b"\xff", [1, 2]],
        [{"categories": "yes"}, {"categories": [1, 1.0]}, {"categories": [None]}, {"categories": ["ja", 1]}],
    ),
}
every_kind = pytest.mark.parametrize("kind", ENTRIES)


def changed(*path, value):
    facts = copy.deepcopy(FACTS)
    place = facts
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return facts


def test_the_prepared_table_is_what_the_schema_says():
    prepare = from_schema(FACTS).set_output(transform="pandas")
    usual = np.sqrt(2 + 2 / 3)
    expected = pd.DataFrame(
        {
            "age": [-0.5, 0.0, 1.0],
            "income": [-1.0, 2 * np.log1p(999) / np.log1p(1e6) - 1, -1.0],  # so the second row is shorter than 1
            "smoker_no": [0.0, 1, 0],
            "smoker_yes": [1.0, 0, 0],
            "smoker_other": [0.0, 0, 1],
            "grade_1": [1.0, 0, 0],
            "grade_2": [0.0, 1, 0],
            "grade_3": [0.0, 0, 0],
            "grade_other": [0.0, 0, 1],
        }
    )
    expected = (expected / usual).div(np.maximum(1, np.linalg.norm(expected / usual, axis=1)), axis=0)
    prepared = prepare.fit_transform(FRAME)
    pd.testing.assert_frame_equal(prepared, expected)
    assert Schema.read(FACTS).n_features == prepared.shape[1]
    assert prepare.get_feature_names_out().tolist() == expected.columns.tolist()


def test_a_file_a_dict_and_a_schema_are_the_same(tmp_path):
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(FACTS))
    expected = from_schema(FACTS).fit_transform(FRAME)
    for source in (path, str(path), Schema.read(FACTS)):
        np.testing.assert_array_equal(from_schema(source).fit_transform(FRAME), expected)


def test_nothing_is_learned():
    """Fitted on a table without a value in common, it maps the first one in the same way."""
    other = pd.DataFrame(
        {
            "age": [7, 8],
            "income": [5e5, 2e5],
            "name": ["x", "y"],
            "smoker": ["seldom", "sometimes"],
            "grade": [11, 12],
            "ill": [0, 0],
        }
    )
    here, there = from_schema(FACTS).fit(FRAME), from_schema(FACTS).fit(other)
    np.testing.assert_array_equal(here.transform(FRAME), there.transform(FRAME))
    np.testing.assert_array_equal(here.transform(other), there.transform(other))
    floats = FRAME.astype({"age": "float64", "grade": "float64"})  # the type of a column is public
    assert pickle.dumps(from_schema(FACTS).fit(floats)) == pickle.dumps(from_schema(FACTS).fit(floats.iloc[::-1] * 1))
    for value in ("sometimes", "seldom"):
        assert value.encode() not in pickle.dumps(there)


def test_rows_are_mapped_by_themselves():
    prepare = from_schema(FACTS)
    alone = np.vstack([prepare.fit_transform(FRAME.iloc[[i]]) for i in range(len(FRAME))])
    np.testing.assert_array_equal(prepare.fit_transform(FRAME), alone)


def test_sparse_output_gives_the_same():
    expected = from_schema(FACTS).fit_transform(FRAME)
    prepared = from_schema(FACTS, sparse_output=True).fit_transform(FRAME)
    assert sparse.issparse(prepared) and prepared.format == "csr"
    np.testing.assert_allclose(prepared.toarray(), expected, rtol=1e-15)


def test_a_polars_frame_gives_the_same():
    expected = from_schema(FACTS).fit_transform(FRAME)
    frame = polars.DataFrame({name: FRAME[name].astype(object).where(FRAME[name].notna(), None).tolist() for name in FRAME})
    np.testing.assert_allclose(clone(from_schema(FACTS)).fit_transform(frame), expected, rtol=1e-15)


def test_no_row_is_longer_than_one(rng):
    frame = pd.DataFrame({"age": [120] * 5, "income": [1e6] * 5, "smoker": ["yes"] * 5, "grade": [1] * 5})
    lengths = np.linalg.norm(from_schema(FACTS).fit_transform(frame), axis=1)
    assert (lengths <= 1 + 1e-15).all() and lengths[0] == pytest.approx(1)


@pytest.mark.parametrize(
    "given, message",
    (
        ([], "expected a path to a JSON file, or a dict"),
        ({}, "columns=None"),
        (changed("columns", value={}), "columns={}"),
        (changed("colums", value={}), r"\['colums'\]; expected keys among .*, perhaps \['columns'\]"),
        (changed("columns", "age", "bound", value=[0, 1]), r"\['bound'\]; expected .*'scale'\], perhaps \['bounds'\]"),
        (changed("columns", "age", value={"kind": "category", "mising": 1}), r"'missing'\], perhaps \['missing'\]"),
        (changed("columns", "age", value={"kind": "numeric"}), "column 'age': .*kind is one of"),
        (changed("columns", "age", "bounds", value=[]), "not filled in yet: bounds of 'age'; expected"),
        (changed("columns", "age", "bounds", value=[3, 3]), "column 'age': bounds"),
        (changed("columns", "age", "bounds", value=["0", "1"]), "column 'age': bounds"),
        (changed("columns", "age", "bounds", value=[0, float("nan")]), "column 'age': bounds"),
        (changed("columns", "age", "scale", value="sqrt"), "column 'age': scale='sqrt'"),
        (changed("columns", "age", "fill", value="none"), "column 'age': fill='none'"),
        (changed("columns", "age", "fill", value=999), "column 'age': fill=999; expected a number within the bounds"),
        (changed("columns", value={"name": {"kind": "ignore"}}), "every column is ignored"),
        (changed("columns", "age", "categories", value=[1]), r"column 'age' has \['categories'\]"),
        (changed("columns", "smoker", "categories", value=[]), "not filled in yet: categories of 'smoker'"),
        (changed("columns", "smoker", "categories", value="yes"), "column 'smoker'"),
        (changed("columns", "grade", "categories", value=[1, 1.0]), "column 'grade': .*different"),
        (changed("columns", "grade", "categories", value=[None]), "column 'grade'"),
        (changed("columns", "grade", "categories", value=["ja", 1]), "column 'grade': .*all of one kind"),
        (changed("target", value=""), "not filled in yet: target"),
        (changed("target", value=3), "target=3"),
        (changed("target", value="age"), "'age' is also among the other columns"),
        (changed("classes", value=[1]), r"classes=\[1\]; expected a list of at least two"),
        (changed("classes", value=["a", "a"]), "different"),
    ),
)
def test_what_is_wrong_is_named(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        from_schema(given)


def test_a_column_of_a_template_can_be_ignored_by_its_kind_alone():
    for left_over in ({"bounds": []}, {"categories": []}):
        facts = Schema.read(changed("columns", "name", value={"kind": "ignore", **left_over}))
        assert "name" not in facts.columns


def test_fills_that_look_alike_stay_apart():
    number = {"kind": "number", "bounds": [0, 1]}
    columns = {name: {**number, "fill": fill} for name, fill in (("a", 0.1234567), ("b", 0.1234568))}
    prepared = from_schema({"columns": columns}).fit_transform(pd.DataFrame({"a": [np.nan], "b": [np.nan]}))
    assert prepared[0, 0] < prepared[0, 1]


def test_files_that_are_no_schema_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        from_schema(tmp_path / "nothing.json")
    path = tmp_path / "facts.json"
    for text, message in (("{", "is not JSON: .*line 1"), ('{"columns": {"a": 1, "a": 2}}', r"\['a'\] more than once")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            from_schema(path)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"X has no columns \['smoker'\]; expected all"):
        from_schema(FACTS).fit(FRAME.drop(columns="smoker"))


def test_a_number_that_is_missing_is_refused_without_quoting_a_row():
    with pytest.raises(ValueError, match="Input X contains NaN"):
        from_schema(changed("columns", "income", value={"kind": "number", "bounds": [0, 1]})).fit(FRAME)
    with pytest.raises(ValueError) as caught:
        from_schema(FACTS).fit(FRAME.astype({"age": object}).replace({"age": {30: "thirty"}}))
    assert "thirty" not in str(caught.value)


@pytest.mark.parametrize(
    "values, categories, expected",
    (
        ([1, 2, 3], ["1", "2"], ["1", "2", "other"]),
        ([1.0, 2.0, np.nan], [1, 2], ["1", "2", "other"]),
        ([1.0, 7.0, np.nan, "2"], [1, "other", 2], ["1", "other", "other", "2"]),
        ([True, None], [True, "other"], ["True", "other"]),
        (["01", "1", " 1"], ["1"], ["other", "1", "1"]),
        (["01", "1"], ["01"], ["01", "other"]),
        ([True, False], [True], ["True", "other"]),
        (["a", None, np.nan, pd.NA], ["a"], ["a", "other", "other", "other"]),
        ([2**53 + 1, float(2**53), 10**5000], [str(2**53 + 1), str(2**53)], ["other", "other", "other"]),
        ([b"a", "a", pd.Timestamp(0), 1j], ["a"], ["other", "a", "other", "other"]),
        ([0.5, "0.5", ".5"], [0.5], ["0.5", "0.5", "other"]),
    ),
)
def test_values_are_compared_as_text(values, categories, expected):
    column = np.array(values, dtype=object)[:, None]
    assert KnownCategories(categories).fit_transform(column)[:, 0].tolist() == expected


def test_a_value_is_spelt_alike_whatever_else_is_in_the_table():
    """scikit-learn would give all columns one type, and one missing value gives a column another."""
    frame = pd.DataFrame({"flag": [True, False, True], "rooms": [1, 2, 3], "text": ["1", "x", "y"]})
    known = KnownCategories([[True, False], [1, 2], ["1", "x"]])
    expected = [["True", "1", "1"], ["False", "2", "x"], ["True", "other", "other"]]
    assert known.fit_transform(frame).tolist() == expected
    assert known.fit_transform(polars.DataFrame(frame.to_dict("list"))).tolist() == expected
    assert known.fit_transform(frame.to_numpy(dtype=object)).tolist() == expected
    assert known.fit_transform(frame.to_numpy(dtype=object).tolist()).tolist() == expected
    assert KnownCategories([[True], [1]]).fit_transform([[True, 1]]).tolist() == [["True", "1"]]
    for name in frame:
        gap = frame.astype(object)
        gap.loc[2, name] = None
        assert known.fit_transform(gap.infer_objects()).tolist()[:2] == expected[:2]


@pytest.mark.parametrize("given", ([{"age": 3123, "smoker": "secret"}], [3123.0, 456.0], np.array([b"secret"]), "secret", 3123))
def test_what_is_no_data_frame_is_refused_without_quoting_it(given):
    for call in (from_schema(FACTS).fit, from_schema(FACTS).fit(FRAME).transform):
        with pytest.raises(TypeError, match="expected a data frame with the columns") as caught:
            call(given)
        assert "secret" not in str(caught.value) and "3123" not in str(caught.value)


def test_codes_can_have_an_other():
    """A mixture of kinds is refused otherwise; the classes of a target have no "other"."""
    columns = {"smoker": {"kind": "category", "categories": [0, 1, "other"]}}
    coded = from_schema({"columns": columns}).fit_transform(pd.DataFrame({"smoker": [0, 1, 2, None]}))
    np.testing.assert_array_equal(coded, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])
    assert Schema.read(Schema.read({"columns": columns}).to_dict()) == Schema.read({"columns": columns})
    for categories in ([0, 1, "x"], [0, True, "other"], ["other", "other", 1]):
        with pytest.raises(ValueError, match=r"^The schema, column 'smoker': categories="):
            Schema.read({"columns": {"smoker": {"kind": "category", "categories": categories}}})
    with pytest.raises(ValueError, match="all of one kind"):
        Schema.read({"columns": columns, "target": "y", "classes": [0, 1, "other"]})


@pytest.mark.parametrize("value", (b"\xffsecret", [1, 2], 10**5000, {"secret": 1}, np.ones(3)), ids="abcde")
def test_odd_cells_are_no_category_and_no_message(value):
    frame = FRAME.astype({"smoker": object})
    frame.at[0, "smoker"] = value
    prepared = from_schema(FACTS).fit_transform(frame)
    np.testing.assert_array_equal(prepared[1:], from_schema(FACTS).fit_transform(FRAME)[1:])
    with pytest.raises(ValueError) as caught:
        Schema.read(FACTS).labels(pd.Series([0, value], dtype=object))
    assert "secret" not in str(caught.value) and caught.value.__context__ is None


def test_labels_become_the_classes_of_the_schema():
    facts = Schema.read(FACTS)
    assert facts.labels(["1", "0", " 1", 1.0]).tolist() == [1, 0, 1, 1]
    spelt = Schema.read(changed("classes", value=["True", "1"]))
    assert spelt.labels([True, True, 1]).tolist() == spelt.labels([True, True, "1"]).tolist() == ["True", "True", "1"]
    named = Schema.read(changed("classes", value=["b", "a", "c"]))
    assert named.labels(["a", "b", "c", "a"]).tolist() == ["a", "b", "c", "a"]
    with pytest.raises(ValueError, match=r"has values that are missing or outside classes=\[0, 1\]") as caught:
        facts.labels(["0", "secret"])
    assert "secret" not in str(caught.value)


def test_the_examples_are_schemas():
    examples = sorted((Path(__file__).parents[2] / "examples" / "schemas").glob("*.json"))
    assert [path.stem for path in examples] == ["adult", "bank"]
    for path in examples:
        facts = Schema.read(path)
        assert facts.target and len(facts.classes) == 2


@pytest.mark.parametrize("fill", (None, 2.5))
@pytest.mark.parametrize("scale", ("linear", "log"))
@pytest.mark.parametrize("dtype", (np.float64, np.float32, np.float16, np.longdouble, np.int8, np.uint64, np.bool_))
def test_numbers_of_additive_models_are_scaled_as_by_the_scaler(dtype, scale, fill):
    """To the last bit, without its checks; an infinite number gets its error."""
    column, bounds = np.array([[0.0], [1.0], [3.0], [41.0], [100.0]]).astype(dtype), (0.5, 41.0)
    if fill is not None and column.dtype.kind == "f":
        column[2] = np.nan
    given = column.copy()
    expected = BoundedScaler([bounds], scale=scale, fill=fill).fit_transform(given)
    np.testing.assert_array_equal(Number(bounds, scale, fill).scaled("age", column), expected)
    np.testing.assert_array_equal(column, given)
    if column.dtype.kind == "f":
        column[1] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            Number(bounds, scale, fill).scaled("age", column)


def test_every_kind_has_an_entry():
    assert list(ENTRIES) == list(KINDS)


@every_kind
def test_an_entry_comes_back(kind):
    entry = ENTRIES[kind][0]
    facts = Schema.read({"columns": {"x": entry}})
    assert set(entry) - {"kind"} <= KINDS[kind].keys
    assert facts.to_dict()["columns"] == {"x": entry} and Schema.read(json.loads(json.dumps(facts.to_dict()))) == facts


@every_kind
def test_entries_that_are_refused_name_the_column(kind):
    for refused in ENTRIES[kind][2]:
        with pytest.raises(ValueError, match="column 'x'"):
            Schema.read({"columns": {"x": {"kind": kind, **refused}}})
    with pytest.raises(ValueError, match=f"not filled in yet: {KINDS[kind].required} of 'x'"):
        Schema.read({"columns": {"x": {"kind": kind, KINDS[kind].required: []}}})


@every_kind
def test_each_cell_is_read_by_itself(kind):
    """Also where another cell changes the type of the column."""
    entry, cells, _ = ENTRIES[kind]
    facts = Schema.read({"columns": {"x": entry}})

    def prepared(cells, dtype=object, **given):
        return from_schema(facts, **given).fit_transform(pd.DataFrame({"x": pd.Series(cells, dtype=dtype)}))

    alone = np.vstack([prepared([cell]) for cell in cells])
    assert alone.shape == (len(cells), facts.n_features) and np.linalg.norm(alone, axis=1).max() <= 1 + 1e-15
    assert len(np.unique(alone, axis=0)) > 1
    for first, dtype in product(range(len(cells)), (object, None)):
        np.testing.assert_array_equal(prepared(cells[first:], dtype), alone[first:])
    np.testing.assert_array_equal(sparse.csr_array(prepared(cells, sparse_output=True)).toarray(), alone)


@every_kind
def test_a_column_serves_a_fit_from_its_plan_to_its_file(kind, tmp_path):
    """A kind that is neither a number nor levels is refused where these are needed, before a record is read."""
    entry, cells, _ = ENTRIES[kind]
    X, y = pd.DataFrame({"x": pd.Series([*cells] * 20, dtype=object)}), np.arange(20 * len(cells)) % 2
    facts = {"columns": {"x": entry}}
    model = fitted(DPLogisticRegression(schema=facts), X, y)
    assert len(model.prepared_features_) == model.coef_.size == Schema.read(facts).n_features
    assert f"n_samples = {len(X)}" in str(model.plan(len(X)))
    save_model(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(X), model.predict(X))
    column = Schema.read(facts).columns["x"]
    for other, message in (
        (DPAdditiveClassifier(), "neither numbers nor categories"),
        (DPLogisticRegression(inference=True), kind),
    ):
        other.set_params(schema=facts)
        if column.exhaustive or column.ends:
            assert fitted(other, X, y).predict(X).shape == y.shape
        else:
            with pytest.raises(ValueError, match=message):
                other.plan(len(X))

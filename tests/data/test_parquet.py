"""Tables in Parquet files: the same bits as in memory, and refusals before anything is read."""

import pickle
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import skdp.data._parquet
from skdp.data import chunks, npy, parquet
from skdp.estimators import DPLinearRegression, DPLogisticRegression
from skdp.preprocessing import from_schema, read_table
from skdp.privacy import PrivacyLedger
from skdp.privacy.data import summation
from skdp.privacy.errors import OutsideGuaranteeWarning, SourceError
from skdp.testing import reproducible_noise

N, NAMES = 13_000, ["a", "b", "c"]
SECRET = "record-a1"


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, len(NAMES)))
    score = X @ [1.0, -1.0, 0.5]
    return X, np.array(["no", "yes"])[(score + rng.normal(size=N) > 0).astype(int)], np.clip(score, -3, 3)


def write(folder, X, y=None, parts=(0, 5000, 5000, 11_000, N), **options):
    """Write a table as some files of row groups that no chunk is aligned with; one file is empty."""
    folder.mkdir(exist_ok=True)
    frame = pd.DataFrame(X, columns=NAMES) if isinstance(X, np.ndarray) else X
    for number, (start, stop) in enumerate(pairwise(parts)):
        part = frame if y is None else frame.assign(y=y)
        part.iloc[start:stop].to_parquet(folder / f"{number}.parquet", **{"row_group_size": 1777, "index": False, **options})
    return folder


CLASSIFIER, REGRESSION = DPLogisticRegression(data_norm=3.0), DPLinearRegression(data_norm=3.0, target_bounds=(-3, 3))


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize(
    "estimator, target, dtype, cache",
    (
        (CLASSIFIER, 1, None, "disk"),
        (CLASSIFIER, 1, "float32", "disk"),
        (REGRESSION, 2, None, None),
        (REGRESSION, 2, "float32", None),
    ),
)
def test_the_files_change_no_bit(estimator, target, dtype, cache, table, tmp_path):
    X, y = table[0], table[target]
    frame = pd.DataFrame(X.astype(dtype or float), columns=NAMES, copy=False)
    with reproducible_noise(0):
        memory = estimator.fit(frame, y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = parquet(write(tmp_path / "table", X, y), target="y", cache=cache, dtype=dtype)
    assert source.shape == (N, 3) and source.names == NAMES
    for other in (source, npy(tmp_path / "X.npy", tmp_path / "y.npy", dtype=dtype), chunks(lambda: [(X, y)], dtype=dtype)):
        with reproducible_noise(0):
            model = estimator.fit(other)
        assert np.array_equal(model.coef_, memory.coef_)
    with reproducible_noise(0):
        model = estimator.fit(source)
    assert model.feature_names_in_.tolist() == NAMES
    assert np.array_equal(model.predict(source), memory.predict(frame))


def test_files_datasets_and_lists_are_the_same_table(table, tmp_path):
    folder = write(tmp_path / "table", *table[:2])
    files = sorted(folder.iterdir())
    dataset = pyarrow.dataset.dataset(folder)
    for source in (folder, str(folder), files, dataset):
        read = list(parquet(source, target="y").batches())
        assert np.array_equal(np.concatenate([X for X, _ in read]), table[0])
        assert np.concatenate([y for _, y in read]).tolist() == table[1].tolist()
    assert parquet(files[0], columns=["b"], target="y").shape == (5000, 1)
    assert parquet(folder, columns=["c", "a"]).names == ["c", "a"]


def test_numbers_of_all_types_become_float64(tmp_path):
    frame = pd.DataFrame({"a": np.arange(5, dtype="int8"), "b": np.arange(5, dtype="float32"), "c": [True, False] * 2 + [True]})
    frame.to_parquet(tmp_path / "table.parquet", index=False)
    ((X, _),) = parquet(tmp_path / "table.parquet").batches()
    assert set(X.dtypes) == {np.dtype("float64")} and X.to_numpy().flags.c_contiguous
    assert np.array_equal(X, frame.astype(float))
    ((X, _),) = parquet(tmp_path / "table.parquet", columns=["b"]).batches()
    assert set(X.dtypes) == {np.dtype("float32")}


def test_the_index_of_a_frame_is_no_column(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"]).to_parquet(tmp_path / "table.parquet")
    assert parquet(tmp_path / "table.parquet").names == ["a"]


@pytest.fixture
def uncharged():
    """A ledger, which is empty at the end."""
    with PrivacyLedger(epsilon=10, delta=1e-4) as ledger:
        yield
    assert not ledger.entries


@pytest.mark.parametrize("column", (pd.array([1, None] * 500, dtype="Int64"), [None, True] * 500, [np.nan, 1.0] * 500))
def test_missing_values_are_refused_as_in_memory(column, tmp_path, uncharged):
    pd.DataFrame({"a": np.zeros(1000), "b": column, "y": [0, 1] * 500}).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="missing or infinite values: 'b'"):
        DPLogisticRegression(feature_bounds=1.0).fit(parquet(tmp_path / "table.parquet", target="y"))


@pytest.mark.parametrize("place, message", (("b", r"not numeric: \['b'\]"), ("y", "one label or number per row")))
def test_text_is_not_quoted(place, message, tmp_path, uncharged):
    columns = {"a": np.zeros(1000), "b": np.ones(1000), "y": np.linspace(-1, 1, 1000)}
    pd.DataFrame({**columns, place: ["1", SECRET] * 500}).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match=message) as error:
        DPLinearRegression(feature_bounds=1.0, target_bounds=(-1, 1)).fit(parquet(tmp_path / "table.parquet", target="y"))
    assert SECRET not in str(error.value) and error.value.__context__ is None


def test_numbers_that_do_not_fit_into_float32_are_refused(tmp_path, uncharged):
    pd.DataFrame({"a": [1e300, 1.0] * 500, "y": [0, 1] * 500}).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="infinity"):
        DPLogisticRegression(feature_bounds=1.0).fit(parquet(tmp_path / "table.parquet", target="y", dtype="float32"))


def test_unlike_files_are_refused(table, tmp_path):
    folder = write(tmp_path / "table", table[0])
    frame = pd.DataFrame(table[0][:9], columns=NAMES)
    for other in (frame[["b", "a", "c"]], frame[["a", "b"]], frame.assign(d=1.0), frame.astype({"b": "float32"})):
        other.to_parquet(folder / "4.parquet", index=False)
        with pytest.raises(ValueError, match="different columns or types"):
            parquet(folder)
    assert parquet(folder, columns=["a"]).shape == (N + 9, 1)


def test_row_groups_that_fill_the_memory_are_refused(table, tmp_path, monkeypatch):
    folder = write(tmp_path / "table", table[0])
    monkeypatch.setattr(skdp.data._parquet, "LARGEST", 1777 * 3 * 8)
    parquet(folder)
    monkeypatch.setattr(skdp.data._parquet, "LARGEST", 1777 * 3 * 8 - 1)
    with pytest.raises(ValueError, match="row_group_size=888"):
        parquet(folder)
    assert parquet(folder, columns=["a"]).n_samples == parquet(folder, dtype="float32").n_samples == N


@pytest.mark.slow
@pytest.mark.parametrize("named", ("year", "name"))
def test_folders_that_are_named_by_a_column_warn(named, table, tmp_path):
    frame = pd.DataFrame(table[0], columns=NAMES).assign(y=table[1])
    frame[named] = np.where(table[0][:, 0] > 0, *((2020, 2021) if named == "year" else ("x", "z")))
    frame.to_parquet(tmp_path / "table", partition_cols=[named])
    with pytest.warns(OutsideGuaranteeWarning, match=named):
        source = parquet(tmp_path / "table", target="y")
    assert source.names == [*NAMES, named] and named in source.source.description
    with pytest.warns(OutsideGuaranteeWarning):
        model = DPLogisticRegression(data_norm=3.0).fit(parquet(tmp_path / "table", target="y", columns=NAMES))
    assert model.coef_.shape == (1, 3)
    first = next(source.batches())[0]
    assert set(first[named]) == {2020} if named == "year" else {"x"}
    parquet(tmp_path / "table" / f"{named}={2020 if named == 'year' else 'x'}")  # one folder: nothing to warn of


@pytest.mark.parametrize(
    "options, error, message",
    (
        ({"target": "d"}, ValueError, r"no columns \['d'\]"),
        ({"columns": ["a", "d"]}, ValueError, r"no columns \['d'\]"),
        ({"columns": ["a", "a"]}, ValueError, "different names"),
        ({"columns": ["a"], "target": "a"}, ValueError, "different names"),
        ({"columns": "a"}, TypeError, "a list of names"),
        ({"cache": "memory"}, ValueError, "cache='memory'"),
        ({"dtype": "float16"}, ValueError, "dtype='float16'"),
        ({"schema": {"columns": {"a": {"kind": "number", "bounds": 1}}}, "columns": ["a"]}, ValueError, "schema alone"),
    ),
)
def test_parameters_are_checked(options, error, message, table, tmp_path):
    with pytest.raises(error, match=message):
        parquet(write(tmp_path / "table", table[0]), **options)


def test_sources_are_checked(table, tmp_path):
    folder = write(tmp_path / "table", table[0])
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        parquet(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="expected a path"):
        parquet(3)
    with pytest.raises(ValueError, match="without"):
        parquet(pyarrow.dataset.dataset(folder).filter(pyarrow.dataset.field("a") > 0))
    with pytest.raises(TypeError, match="not in Parquet"):
        parquet(pyarrow.dataset.dataset(pa.table({"a": [1.0]})))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no Parquet files"):
        parquet(tmp_path / "empty")
    (folder / "text.parquet").write_text(SECRET)
    with pytest.raises(ValueError, match="cannot be read"):
        parquet(folder)


def test_a_table_without_target_is_to_predict_for(table, tmp_path, uncharged):
    with pytest.raises(ValueError, match=r"y is missing; .*names its target"):
        CLASSIFIER.fit(parquet(write(tmp_path / "table", table[0])))


def test_a_file_that_is_damaged_after_it_was_found_quotes_nothing(table, tmp_path, uncharged):
    source = parquet(write(tmp_path / "table", *table[:2]), target="y")
    (tmp_path / "table" / "2.parquet").write_text(SECRET)
    with pytest.raises(SourceError, match="damaged, or was it changed") as error:
        CLASSIFIER.fit(source)
    assert SECRET not in str(error.value) and error.value.__context__ is None


SCHEMA = {
    "columns": {
        "age": {"kind": "number", "bounds": [0, 100], "fill": 40},
        "income": {"kind": "number", "bounds": [0, 10]},
        "job": {"kind": "category", "categories": ["1", "2"]},
    },
    "target": "ill",
    "classes": ["no", "yes"],
}


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "name": [SECRET] * N,
            "job": pd.array(rng.choice([1, 2, 3], N), dtype="Int64"),
            "age": rng.choice(["30", "60", "", None], N),
            "income": rng.uniform(0, 10, N),
            "ill": rng.choice(["yes", " no"], N),
        }
    )


def test_a_schema_reads_the_types_of_read_table(people, tmp_path):
    people.loc[::3, "job"] = None
    folder = write(tmp_path / "table", people)
    people.to_parquet(tmp_path / "whole.parquet", index=False)
    whole = read_table(tmp_path / "whole.parquet", SCHEMA)
    source = parquet(folder, schema=SCHEMA)
    assert source.names == list(SCHEMA["columns"]) and source.n_samples == N
    X, y = zip(*source.batches(), strict=True)
    assert np.concatenate(y).tolist() == whole["ill"].tolist()
    read, expected = pd.concat(X, ignore_index=True), whole[source.names]
    pd.testing.assert_frame_equal(read[["age", "income"]], expected[["age", "income"]])
    prepare = from_schema(SCHEMA)
    assert np.array_equal(prepare.fit_transform(read), prepare.fit_transform(expected))


@pytest.mark.parametrize(
    "column, value, message",
    (
        ("income", SECRET, r"\['income'\] have cells"),
        ("income", None, r"missing in the columns \['income'\]"),
        ("ill", SECRET, "outside classes"),
    ),
)
def test_values_that_contradict_a_schema_are_not_quoted(column, value, message, people, tmp_path):
    people[column] = people[column].astype(object)
    people.loc[N - 3, column] = value
    people[column] = people[column].map(lambda cell: None if cell is None else str(cell))
    source = parquet(write(tmp_path / "table", people), schema=SCHEMA)
    with pytest.raises(ValueError, match=message) as error:
        list(source.batches())
    assert SECRET not in str(error.value) and "3.parquet" not in str(error.value)


def test_patterns_of_a_schema_name_columns_of_the_files(table, tmp_path):
    source = parquet(write(tmp_path / "table", table[0]), schema={"columns": {"*": {"kind": "number", "bounds": 9}}})
    assert source.names == NAMES


def test_the_extra_is_named(table, tmp_path, monkeypatch):
    folder = write(tmp_path / "table", table[0])
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r"skdp\[parquet\]"):
        parquet(folder)


def test_a_table_is_pickled(table, tmp_path):
    source = pickle.loads(pickle.dumps(parquet(write(tmp_path / "table", *table[:2]), target="y")))
    assert np.array_equal(np.concatenate([X for X, _ in source.batches()]), table[0])


def test_predictions_for_a_table_of_another_length_are_refused(table, tmp_path):
    model = CLASSIFIER.fit(pd.DataFrame(table[0], columns=NAMES), table[1])
    for length in (N - 1, N + 1):
        source = chunks(lambda: [pd.DataFrame(table[0], columns=NAMES)])
        source.source.n_samples = length
        with pytest.raises(SourceError, match="changed"):
            model.predict(source)

"""Additive models of tables in partitions: the basis is the map of each part, and the bits are those of memory."""

import mmap

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from skdp.data import chunks, npy, parquet
from skdp.estimators import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.preprocessing import BoundedScaler
from skdp.privacy import PrivacyLedger
from skdp.privacy.data import summation
from skdp.privacy.data.spill import Spill
from skdp.privacy.engines import threads
from skdp.privacy.engines.threads import ThreadEngine
from skdp.privacy.errors import SourceError
from skdp.testing import reproducible_noise

N = 13_000
COLUMNS = {
    "age": {"kind": "number", "bounds": [0, 100], "fill": 40},
    "income": {"kind": "number", "bounds": [0, 1e5], "scale": "log"},
    "job": {"kind": "category", "categories": ["clerk", "nurse"]},
}
SCHEMA = {"columns": COLUMNS, "target": "ill", "classes": ["no", "yes"]}
NUMBERS = {"columns": COLUMNS, "target": "cost", "target_bounds": [0, 100]}


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.1, np.nan, rng.uniform(0, 100, N)),
            "job": rng.choice(["nurse", "clerk", "judge"], N),
            "income": np.exp(rng.uniform(0, 11, N)),
        }
    )
    frame["cost"] = np.clip(frame["age"].fillna(40) + 10 * (frame["job"] == "nurse"), 0, 100)
    frame["ill"] = np.where(frame["cost"] + 20 * rng.normal(size=N) > 50, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    path = tmp_path_factory.mktemp("people")
    people[:5000].to_parquet(path / "0.parquet", row_group_size=1777)
    people[5000:].to_parquet(path / "1.parquet")
    return path


FITS = {
    "classes": (DPAdditiveClassifier(epsilon=3, schema=SCHEMA), SCHEMA),
    "pairs": (DPAdditiveClassifier(epsilon=3, schema=SCHEMA, interactions=[("age", "job")], solver="newton"), SCHEMA),
    "private knots": (DPAdditiveClassifier(epsilon=3, schema=SCHEMA, knots="private"), SCHEMA),
    "numbers": (DPAdditiveRegressor(epsilon=3, schema=NUMBERS), NUMBERS),
}


@pytest.mark.parametrize(
    "name, cache",
    (
        *(pytest.param(name, "disk", marks=pytest.mark.slow) for name in FITS if name != "pairs"),
        ("pairs", "disk"),
        pytest.param("pairs", None, marks=pytest.mark.slow),
    ),
)
def test_parquet_changes_no_bit(name, cache, people, folder):
    model, schema = FITS[name]
    with reproducible_noise(0):
        memory = model.fit(people, people[schema["target"]])
    coef, predictions, contributions = memory.coef_, memory.predict(people), memory.explain(people)
    table = parquet(folder, schema=schema, cache=cache)
    with reproducible_noise(0):
        model.fit(table)
    assert np.array_equal(model.coef_, coef)
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    assert np.array_equal(model.predict(table), predictions)
    assert np.array_equal(model.explain(table), contributions)
    planned = model.plan(table).public["table"]
    assert planned == model.privacy_report_.public["table"]


@pytest.mark.slow
@pytest.mark.parametrize("named", (True, False))
def test_numbers_alone_need_no_schema(named, people, folder, tmp_path):
    frame = people[["income", "cost"]]
    X, y = np.ascontiguousarray(frame), people["ill"].to_numpy(dtype=str)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    model = DPAdditiveClassifier(feature_bounds=[(0, 1e5), (0, 100)], solver="newton")
    with reproducible_noise(0):
        coef = model.fit(X, y).coef_
    sources = [npy(tmp_path / "X.npy", tmp_path / "y.npy"), chunks(lambda: [(X[:777], y[:777]), (X[777:], y[777:])])]
    if named:
        given = pd.DataFrame(X, columns=list(frame))
        sources = [parquet(folder, columns=list(frame), target="ill"), chunks(lambda: [(given[:9], y[:9]), (given[9:], y[9:])])]
    for source in sources:
        with reproducible_noise(0):
            model.fit(source)
        assert np.array_equal(model.coef_, coef)
        assert hasattr(model, "feature_names_in_") == named


def test_a_mapped_table_has_the_columns_of_its_first_records(people, folder):
    scaled = BoundedScaler([(0, 1e5), (0, 100)]).fit_transform(parquet(folder, columns=["income", "cost"], target="ill"))
    model = DPAdditiveClassifier(feature_bounds=1.0, solver="newton").fit(scaled)
    assert model.n_features_in_ == 2 and list(model.shape_functions_) == ["x0", "x1"]


@pytest.mark.slow
@pytest.mark.parametrize("cache", ("disk", None))
def test_a_source_of_unknown_length_is_counted_in_one_more_pass(cache, people):
    calls = []

    def factory():
        calls.append(None)
        yield people, people["ill"].to_numpy()

    model = DPAdditiveClassifier(schema=SCHEMA, solver="newton").fit(chunks(factory, cache=cache))
    assert len(calls) == (2 if cache else 2 + model.privacy_report_.public["passes"])


def test_a_source_that_changes_its_length_is_refused(people):
    lengths = iter((N, N - 1))

    def factory():
        length = next(lengths)
        yield people[:length], people["ill"].to_numpy()[:length]

    with PrivacyLedger(epsilon=10, delta=1e-4) as ledger, pytest.raises(SourceError, match="has changed"):
        DPAdditiveClassifier(schema=SCHEMA).fit(chunks(factory))
    assert not ledger.entries


@pytest.mark.parametrize(
    "change, message",
    (
        ({"age": "record-a1"}, "numbers"),
        ({"income": np.nan}, "NaN"),
        ({"ill": "record-a1"}, "outside classes"),
    ),
)
def test_values_that_contradict_the_schema_are_not_quoted(change, message, people):
    wrong = people.astype(object)
    wrong.loc[N - 5, list(change)] = list(change.values())

    def factory():
        yield people[:9000], people["ill"][:9000]
        yield wrong[9000:], wrong["ill"][9000:]

    with PrivacyLedger(epsilon=10, delta=1e-4) as ledger, pytest.raises(ValueError, match=message) as error:
        DPAdditiveClassifier(schema=SCHEMA).fit(chunks(factory))
    assert "record-a1" not in str(error.value) and not ledger.entries


def test_parts_with_other_columns_are_refused(people):
    def factory():
        yield people[["age", "income"]][:9000].fillna(0), people["ill"][:9000]
        yield people[["income", "age"]][9000:].fillna(0), people["ill"][9000:]

    with pytest.raises(ValueError, match="different columns"):
        DPAdditiveClassifier(feature_bounds=1.0).fit(chunks(factory))


@pytest.mark.slow
@pytest.mark.parametrize("sparse_ones", ((0,), (1,), (0, 1)))
def test_parts_may_be_sparse(sparse_ones):
    """A transformer makes a part sparse or dense by its records, so that one of these would decide about an error."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (200, 2)), np.arange(200) % 2
    parts = [(X[:120], y[:120]), (X[120:], y[120:])]
    mixed = [(csr_array(rows) if place in sparse_ones else rows, labels) for place, (rows, labels) in enumerate(parts)]
    found = []
    for table in (parts, mixed):
        with reproducible_noise(0):
            found.append(DPAdditiveClassifier(feature_bounds=1.0, random_state=0).fit(chunks(lambda table=table: table)))
    assert np.array_equal(found[0].coef_, found[1].coef_)


def test_rows_with_private_knots_are_in_a_file_and_the_first_file_is_freed(folder, monkeypatch):
    """The mapped rows are as large as the table."""
    reduce, spills, stored = ThreadEngine.reduce, [], []

    class Recorded(Spill):
        def __init__(self):
            super().__init__()
            spills.append(self._file)

    def observed(engine, *arguments):
        tables = [rows._blocks.table.data for partition in engine._partitions for rows in partition.rows]
        stored.append((len(spills), spills[0].closed, all(in_a_file(table) for table in tables)))
        return reduce(engine, *arguments)

    monkeypatch.setattr(threads, "Spill", Recorded)
    monkeypatch.setattr(ThreadEngine, "reduce", observed)
    DPAdditiveClassifier(epsilon=3, schema=SCHEMA, knots="private", solver="newton").fit(parquet(folder, schema=SCHEMA))
    assert stored[0] == (1, False, True) and set(stored[1:]) == {(2, True, True)}
    assert [file.closed for file in spills] == [True, True]


def in_a_file(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", array), mmap.mmap)

"""LearnedSchema on tables in partitions: the releases of a frame in memory, whatever the source and the types of its parts."""

import gc
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hostile import SECRETS
from seeded import fitted
from sklearn import __version__ as sklearn_version

from skdp import DPLogisticRegression, PrivacyLedger, SourceError
from skdp.data import chunks, npy, parquet
from skdp.preprocessing import LearnedSchema
from skdp.privacy.data import summation
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.partitioned_rows import PartitionedCells
from skdp.privacy.engines.threads import ThreadEngine

pytest.importorskip("pyarrow")
N = 6000
OLD = tuple(map(int, sklearn_version.split(".")[:2])) < (1, 8)  # its ColumnTransformer does not know polars


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture
def frozen():
    """What was there before the test is out of sight of the collector."""
    gc.freeze()


@pytest.fixture(scope="module")
def frame():
    """Columns of many types, and a target."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4, N))
    return pd.DataFrame(
        {
            "height": 1e-6 * (z[0] + 3),
            "income": np.exp(3 * z[1]).astype(np.float32),
            "hour": rng.integers(0, 24, N),
            "gaps": pd.array(np.where(rng.random(N) < 0.3, None, rng.integers(0, 9, N)), dtype="Int64"),
            "city": rng.choice(["A", "B", "C", None], N, p=[0.5, 0.3, 0.1, 0.1]),
            "grade": pd.Series(rng.choice(["low", "high"], N)).astype("category"),
            "day": np.datetime64("2031-04-15", "us") + rng.integers(0, 10**12, N),
            "member": rng.random(N) < 0.3,
            "target": 50 + z[2],
        }
    )


def learned(*data, **given):
    return fitted(LearnedSchema(**{"epsilon": 3.0, "adjacency": "zero_out", "learn_target": True, **given}), *data)


def of_frames(frame, length, cache="disk", of=lambda part: part):
    def parts():
        for start in range(0, len(frame), length):
            part = frame.iloc[start : start + length]
            yield of(part.drop(columns="target")), part["target"].to_numpy()

    return chunks(parts, cache=cache)


def in_files(frame, folder, lengths=(4096, 1, 1903), **given):
    start = 0
    for number, length in enumerate(lengths):
        frame.iloc[start : start + length].to_parquet(folder / f"{number}.parquet", row_group_size=1500)
        start += length
    assert start == len(frame)
    return parquet(folder, target="target", **given)


def same(here, there):
    assert here.schema_ == there.schema_ and here.learnt_ == there.learnt_
    assert here.privacy_spent_ == there.privacy_spent_


@pytest.mark.slow
@pytest.mark.parametrize("cache", ("disk", None))
def test_the_source_changes_no_release(cache, frame, tmp_path):
    X, y = frame.drop(columns="target"), frame["target"]
    memory = learned(X, y)
    assert {row["kind"] for row in memory.learnt_.values()} == {"linear", "log", "integers", "category"}
    files = in_files(frame, tmp_path, cache=cache)
    tables = [files, of_frames(frame, 777, cache), of_frames(frame, N, cache)]
    for table in tables if OLD else [*tables, of_frames(frame, 1000, cache, pl.from_pandas)]:
        model = learned(table)
        same(model, memory)
        assert model.n_features_in_ == 8 and model.feature_names_in_.tolist() == list(X)
        stated = model.privacy_report_.public["table"]
        assert stated["reads_of_source"] == (1 if cache else 1 + model.privacy_report_.public["passes"]) and stated[
            "partitions"
        ] == math.ceil(N / 4096)
        rows = np.vstack([np.asarray(part) for part, _ in model.transform(table).batches()])
        np.testing.assert_array_equal(rows, memory.transform(X))
    assert LearnedSchema(3.0, adjacency="zero_out", learn_target=True).plan(files).releases == memory.privacy_report_.releases


@pytest.mark.slow
def test_a_pipeline_fits_a_table(frame, tmp_path):
    from sklearn.pipeline import make_pipeline

    frame = frame.assign(target=frame["target"] > 50)
    pipeline = make_pipeline(
        LearnedSchema(1.0, random_state=0), DPLogisticRegression(1.0, data_norm=1.0, classes=[False, True], random_state=0)
    )
    X, y = frame.drop(columns="target"), frame["target"]
    memory = fitted(pipeline, X, y)[-1].coef_
    table = in_files(frame, tmp_path)
    np.testing.assert_array_equal(fitted(pipeline, table)[-1].coef_, memory)
    np.testing.assert_array_equal(pipeline.predict(table), fitted(pipeline, X, y).predict(X))


def test_the_type_of_a_part_does_not_change_how_its_cells_are_read(frame):
    """One cell of one part is a text, which makes its column one of objects. It is missing, and all others are as before."""
    plain = frame.drop(columns="grade")
    odd = plain.astype({"height": object, "hour": object}).copy()
    odd.loc[5000, "height"], odd.loc[5000, "hour"] = "secret", "secret"
    kinds = [str(odd.iloc[s : s + 1000].infer_objects().dtypes["hour"]) for s in (0, 5000)]
    assert kinds == ["int64", "object"]
    gap = plain.copy()
    gap["hour"] = gap["hour"].astype(float)
    gap.loc[5000, ["height", "hour"]] = math.nan
    model = learned(of_frames(odd, 1000, of=lambda part: part.infer_objects()))
    same(model, learned(gap.drop(columns="target"), gap["target"]))
    assert model.privacy_report_.public["read_as"]["hour"] == "number"


def test_files_state_the_types(frame, tmp_path):
    """Not the records of a batch; a schema of public facts states them, too."""
    table = in_files(frame, tmp_path)
    types = table.source.types
    assert types["income"] == "float" and types["grade"] == "category" and types["member"] == "bool" and "time" in types["day"]
    described = parquet(
        tmp_path, schema={"columns": {"hour": {"kind": "category", "categories": [1]}, "height": {"kind": "number", "bounds": 9}}}
    )
    assert described.source.types == {"hour": "str", "height": "float64"}


@pytest.mark.parametrize("by_cell", (False, True))
def test_tables_of_text(by_cell, frame):
    """As of CSV files that are read without types."""
    text = (
        frame.astype(object).map(lambda cell: "" if cell is None or cell is pd.NA else str(cell)).assign(target=frame["target"])
    )
    schema = dict.fromkeys(text.columns.drop("target"), "either" if by_cell else "number")
    memory = learned(text.drop(columns="target"), text["target"], schema=schema)
    same(learned(of_frames(text, 999), schema=schema), memory)
    assert (memory.learnt_["city"]["kind"] == "category") == by_cell


def test_tables_without_names_or_with_other_columns_are_refused(frame, tmp_path):
    np.save(tmp_path / "X.npy", np.ones((9, 2)))
    arrays = chunks(lambda: iter([np.ones((9, 2))]))
    for table in (npy(tmp_path / "X.npy"), arrays):
        with pytest.raises(TypeError, match="no named columns"):
            LearnedSchema().fit(table)
    with pytest.raises(TypeError, match="names its own target"):
        LearnedSchema().fit(of_frames(frame, 999), frame["target"])
    with pytest.raises(ValueError, match="y is missing"):
        LearnedSchema(learn_target=True).fit(chunks(lambda: iter([frame])))
    swapped = lambda part: part[part.columns[::-1]] if part.index[0] else part  # noqa: E731
    with pytest.raises(ValueError, match="partitions have different columns"):
        LearnedSchema().fit(of_frames(frame, 999, of=swapped))
    with pytest.raises(ValueError, match="does not tell its number of records"):
        LearnedSchema().plan(of_frames(frame, 999))
    with pytest.raises(ValueError, match="minimum of 2"):
        LearnedSchema().fit(of_frames(frame.iloc[:1], 9))


def test_a_source_that_changes_stops_the_fit_and_the_charge_stands(frame, tmp_path):
    calls = []

    def parts():
        calls.append(1)
        changed = frame.assign(hour=frame["hour"] + (len(calls) > 3))
        return ((changed.iloc[s : s + 999].drop(columns="target"), None) for s in range(0, N, 999))

    model = LearnedSchema(0.5, delta=1e-8)
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=5.0, delta=1e-6) as ledger:
        with pytest.raises(SourceError, match=r"changed while it was read\. The charge stands, and nothing else has changed\.$"):
            model.fit(chunks(parts, cache=None))
        assert len(calls) == 4 and len(ledger.entries) == 1 and not hasattr(model, "schema_")


@pytest.mark.parametrize("kind", (ValueError, MemoryError, SystemExit))
@pytest.mark.parametrize("cache", ("disk", None))
def test_errors_of_the_gate_quote_nothing_and_close_the_table(kind, cache, frame, frozen, monkeypatch):
    def broken(self, *args):
        raise kind("secret 31415")

    monkeypatch.setattr(ColumnCells, "counts", broken)
    model = LearnedSchema(1.0)
    with pytest.raises((SourceError, MemoryError)) as refusal:
        model.fit(of_frames(frame, 999, cache))
    assert not SECRETS.search(str(refusal.value)) and not hasattr(model, "schema_")
    del refusal
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, (ColumnCells, PartitionedCells, ThreadEngine))]


def test_errors_of_a_batch_quote_nothing_and_charge_nothing(frame, tmp_path):
    hostile = [
        frame.drop(columns="target").assign(height="secret", target=pd.Series(["secret 31415"] * N, dtype=object)),
        frame.assign(target=np.where(np.arange(N) == 5000, math.nan, 31415.0)),
    ]
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=5.0, delta=1e-6) as ledger:
        for table in hostile:
            with pytest.raises(ValueError) as refusal:
                LearnedSchema(0.5, delta=1e-8, learn_target=True).fit(of_frames(table, 999))
            assert not SECRETS.search(str(refusal.value))
        assert ledger.entries == () or list(ledger.entries) == []


def test_a_model_holds_nothing_of_its_table(frame, frozen):
    model = learned(of_frames(frame, 999))
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, (ColumnCells, PartitionedCells, ThreadEngine))]
    assert b"ColumnCells" not in pickle.dumps(model) and b"Partition" not in pickle.dumps(model)

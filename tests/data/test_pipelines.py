"""Pipelines of public steps on tables in partitions: nothing is read before the fit, and the bits are those of memory."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp.data import chunks, parquet
from skdp.estimators import DPLogisticRegression
from skdp.preprocessing import BoundedScaler, RowNormClipper, from_schema
from skdp.preprocessing._categories import KnownCategories
from skdp.privacy.data import summation
from skdp.testing import reproducible_noise

N = 9000
SCHEMA = {
    "columns": {
        "age": {"kind": "number", "bounds": [0, 100], "fill": 40},
        "income": {"kind": "number", "bounds": [0, 1e5], "scale": "log"},
        "job": {"kind": "category", "categories": ["clerk", "nurse"]},
    },
    "target": "ill",
    "classes": [0, 1],
}
CLASSIFIER = DPLogisticRegression(data_norm=1.0, classes=[0, 1], solver="newton")


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.1, np.nan, rng.uniform(0, 100, N)),
            "job": rng.choice(["nurse", "clerk", "judge"], N),
            "income": rng.uniform(0, 1e5, N),
        }
    )
    frame["ill"] = ((frame["job"] == "nurse") ^ (rng.random(N) < 0.2)).astype(int)
    frame.to_parquet(tmp_path / "people.parquet", row_group_size=2500)
    return frame


def unread(n_features=None):
    def factory():
        raise AssertionError("the table was read")

    return chunks(factory, n_features=n_features)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("output", ("default", "pandas"))
@pytest.mark.parametrize("target", ({"target": "ill"}, {"schema": SCHEMA}))
def test_a_pipeline_from_a_schema_has_the_bits_of_memory(target, output, people, tmp_path):
    pipeline = make_pipeline(from_schema(SCHEMA).set_output(transform=output), CLASSIFIER)
    with reproducible_noise(0):
        memory = clone(pipeline).fit(people.drop(columns="ill"), people["ill"])
    table = parquet(tmp_path / "people.parquet", **target)
    with reproducible_noise(0):
        fitted = pipeline.fit(table)
    assert np.array_equal(fitted[-1].coef_, memory[-1].coef_)
    assert np.array_equal(fitted.predict(table), memory.predict(people))
    assert np.array_equal(fitted.predict_proba(table), memory.predict_proba(people))
    assert vars(fitted[-1]).get("feature_names_in_", np.array([])).tolist() == (
        ["age", "income", "job_clerk", "job_nurse", "job_other"] if output == "pandas" else []
    )


def test_sparse_output_has_the_bits_of_memory(people, tmp_path):
    pipeline = make_pipeline(from_schema(SCHEMA, sparse_output=True), CLASSIFIER)
    with reproducible_noise(0):
        memory = clone(pipeline).fit(people.drop(columns="ill"), people["ill"])
    with reproducible_noise(0):
        fitted = pipeline.fit(parquet(tmp_path / "people.parquet", schema=SCHEMA))
    assert np.array_equal(fitted[-1].coef_, memory[-1].coef_)


def test_nothing_is_read_before_the_fit():
    prepare = from_schema(SCHEMA)
    assert prepare.fit(unread()) is prepare
    table = prepare.transform(unread())
    assert table.shape == (None, 5)
    scaler = BoundedScaler(bounds=1.0)
    assert make_pipeline(scaler, RowNormClipper()).fit_transform(unread(n_features=3)).shape == (None, 3)
    assert scaler.n_features_in_ == 3
    assert RowNormClipper().set_output(transform="pandas").fit_transform(unread()).shape == (None, None)
    assert KnownCategories(["a"]).fit_transform(unread(n_features=2)).shape == (None, 2)
    assert make_pipeline(from_schema(SCHEMA), BoundedScaler(1.0)).fit_transform(unread()).shape == (None, 5)


def test_parameters_are_checked_before_the_table_is_read():
    with pytest.raises(ValueError, match="bounds"):
        BoundedScaler(bounds=[(0, 1)] * 2).fit(unread(n_features=3))


def test_steps_are_fixed_when_a_table_is_mapped():
    """A later change of the transformer would map training rows and rows to predict for in different ways."""
    clipper = RowNormClipper(1.0)
    table = clipper.fit_transform(chunks(lambda: [np.full((2, 1), 9.0)]))
    clipper.set_params(max_norm=2.0)
    ((X, _),) = table.batches()
    assert X.tolist() == [[1.0], [1.0]]


def test_dtype_converts_what_steps_return():
    table = RowNormClipper().fit_transform(chunks(lambda: [np.ones((2, 1))], dtype="float32"))
    ((X, _),) = table.batches()
    assert X.dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("cache", ("disk", None))
def test_a_source_is_read_once_with_a_kept_copy_else_once_per_pass(cache, people):
    X, y, calls = people.drop(columns="ill"), people["ill"], []

    def factory():
        calls.append(None)
        yield X, y

    fitted = make_pipeline(from_schema(SCHEMA), CLASSIFIER).fit(chunks(factory, cache=cache))
    assert len(calls) == fitted[-1].privacy_report_.public["table"]["reads_of_source"]
    assert len(calls) == (1 if cache else 1 + fitted[-1].privacy_report_.public["passes"])


@pytest.mark.parametrize("learner", (StandardScaler(), OneHotEncoder()))
def test_steps_that_learn_are_refused(learner):
    for steps in ((learner, CLASSIFIER), (from_schema(SCHEMA), learner, CLASSIFIER)):
        with pytest.raises(TypeError, match="would learn from the records without privacy"):
            make_pipeline(*steps).fit(unread())


@pytest.mark.slow
def test_pipelines_are_cloned_and_pickled(people, tmp_path):
    table = parquet(tmp_path / "people.parquet", schema=SCHEMA)
    fitted = make_pipeline(clone(from_schema(SCHEMA)), CLASSIFIER).fit(table)
    expected = fitted.predict(people)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(table), expected)
    mapped = pickle.loads(pickle.dumps(fitted[:-1].transform(table)))
    assert np.array_equal(fitted[-1].predict(mapped), expected)


def test_a_dask_frame_is_mapped_partition_by_partition(people):
    dask = pytest.importorskip("dask.dataframe")
    prepare = from_schema(SCHEMA)
    mapped = prepare.fit_transform(dask.from_pandas(people, npartitions=3))
    assert mapped.shape[1] == 5
    assert np.array_equal(mapped.compute(), prepare.fit_transform(people))
    frame = dask.from_pandas(people[["age"]], npartitions=2)
    scaled = BoundedScaler({"age": (0, 100)}, fill=0).set_output(transform="pandas").fit_transform(frame)
    assert list(scaled.columns) == ["age"] and len(scaled.compute()) == N

"""What plans and reports state about tables in partitions: source, passes, bytes and whom the guarantee trusts."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from scipy.sparse import csr_array

from skdp import DPConstrainedRegression, DPLinearRegression, DPLogisticRegression
from skdp._data_validation import Facts, Partitions
from skdp.data import chunks, npy
from skdp.estimators._report import report
from skdp.privacy.data import summation
from skdp.privacy.noise.source import NoiseSource

N, D = 10_000, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, D)).astype(np.float32)
Y = (X[:, 0] > 0).astype(float)
MODELS = {
    "auto": DPLogisticRegression(feature_bounds=1.0, classes=[0, 1]),
    "newton": DPLogisticRegression(feature_bounds=1.0, classes=[0, 1], solver="newton"),
    "whitened": DPLinearRegression(feature_bounds=1.0, target_bounds=(0, 1)),
    "ssp": DPLinearRegression(feature_bounds=1.0, target_bounds=(0, 1), solver="ssp"),
    "frank_wolfe": DPConstrainedRegression(feature_bounds=1.0, target_bounds=(0, 1), solver="frank_wolfe"),
}


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that the table has three."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    return tmp_path / "X.npy", tmp_path / "y.npy"


@pytest.mark.each_value
@pytest.mark.parametrize("cache", ("disk", None))
@pytest.mark.parametrize("name", MODELS)
def test_the_report_says_how_often_the_source_is_read(name, cache):
    reads = []

    def counted():
        reads.append(1)
        return ((X[start : start + 3000], Y[start : start + 3000]) for start in range(0, N, 3000))

    public = MODELS[name].fit(chunks(counted, cache=cache)).privacy_report_.public
    assert len(reads) == public["table"]["reads_of_source"] == (1 if cache else 1 + public["passes"])
    assert public["passes"] <= public["n_releases"]


@pytest.mark.slow
@pytest.mark.parametrize("cache", ("disk", None))
def test_a_plan_states_of_a_table_what_the_fit_states(files, cache):
    table, model = npy(*files, cache=cache), MODELS["auto"]
    planned, fitted = model.plan(table), model.fit(table).privacy_report_
    stated = fitted.public["table"]
    assert planned.public["table"] == stated
    assert (stated["source"], stated["partitions"], stated["bytes_per_pass"]) == ("NumPy file", ceil(N / 4096), 4 * N * D)
    assert (stated["kept_copy"] == "a private file") == (cache == "disk")
    assert planned.public["passes"] == fitted.public["passes"] == model.plan(N, D).public["passes"]
    assert planned.assumptions == fitted.assumptions
    in_memory = MODELS["auto"].fit(X, Y).privacy_report_
    assert "table" not in in_memory.public
    (trusted,) = set(fitted.assumptions) - set(in_memory.assumptions)
    assert ("private file of this machine" in trusted) == (cache == "disk")
    assert ("fingerprints" in trusted) == (cache is None)


def test_all_forms_of_the_report_have_the_table(files):
    statement = MODELS["auto"].fit(npy(*files)).privacy_report_
    content, page, text = statement.to_dict(), statement.to_html(), " ".join(str(statement).split())
    assert content["public"]["table"] == statement.public["table"]
    assert "table = source=NumPy file, partitions=3, kept_copy=a private file, reads_of_source=1" in text
    assert f"passes = {statement.public['passes']}" in text
    for name, value in {**statement.public["table"], "passes": statement.public["passes"]}.items():
        assert f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' in page
    assert all(line in page for line in statement.assumptions)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ("float32", "float64", None))
def test_bytes_follow_from_shape_and_stated_dtype_alone(dtype):
    """A batch may be sparse, or of integers, by its records: the report is the same."""

    def stated(kind, zeros=0):
        table = X.copy()
        table[:zeros] = 0
        return MODELS["auto"].fit(chunks(lambda: [(kind(table), Y)], dtype=dtype)).privacy_report_.public["table"]

    first = stated(np.asarray)
    assert all(
        stated(kind, 9000) == first for kind in (np.asarray, csr_array, np.float64, lambda table: table.round().astype(int))
    )
    assert first.get("bytes_per_pass") == (None if dtype is None else np.dtype(dtype).itemsize * N * D)


def test_passes_that_the_records_decide_are_no_number():
    assert DPLogisticRegression(solver="objective").plan(N, D).public["passes"] == "follows from the records"


def test_a_cluster_is_trusted():
    model, cluster = MODELS["auto"], Partitions("Dask", 96, None, "the memory of the workers", n_workers=3)
    facts = Facts(N, D, classes=np.arange(2), partitions=cluster)
    statement = report(model._task(), model._task().plan_of(facts), NoiseSource(), facts)
    (trusted,) = [line for line in statement.assumptions if "cluster" in line]
    assert "3 worker(s) of a Dask cluster: these, the scheduler, their disks, logs and network are trusted" in trusted
    assert "Which machine computes a partition does not depend on the records" in trusted
    assert not any("private file" in line for line in statement.assumptions)
    assert statement.public["table"]["n_workers"] == 3
    alone = report(
        model._task(), model._task().plan_of(facts), NoiseSource(), replace(facts, partitions=replace(cluster, n_workers=None))
    )
    assert "n_workers" not in alone.public["table"]


@pytest.mark.parametrize("table", (chunks(list), chunks(list, n_features=3)))
def test_a_plan_needs_a_shape(table):
    with pytest.raises(TypeError, match=r"not known before it is read; expected plan\(n_samples, n_features\)"):
        MODELS["auto"].plan(table)


def test_a_plan_of_mapped_columns_asks_for_their_number(files):
    with pytest.raises(TypeError, match="not known before it is read"):
        MODELS["auto"].plan(npy(*files).mapped(lambda batch: batch[:, :2]))

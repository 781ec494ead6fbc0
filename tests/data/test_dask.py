"""Fits of Dask collections on a cluster of this machine: the same bits as in memory, whatever happens to a worker."""

import gc
import logging
import os
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from marks import slow
from scipy import sparse
from sklearn.base import clone

from skdp import PrivacyLedger
from skdp.data import chunks
from skdp.data._reading import OnWorker
from skdp.estimators import (
    DPAdditiveRegressor,
    DPGradientBoostingRegressor,
    DPLinearRegression,
    DPLogisticRegression,
)
from skdp.estimators import _two_stages as learned_estimators
from skdp.estimators.boosting import _rule
from skdp.preprocessing import LearnedSchema
from skdp.privacy.budget import Budget
from skdp.privacy.data import partition
from skdp.privacy.engines import dask as engine
from skdp.privacy.errors import SourceError
from skdp.privacy.noise.source import NoiseSource
from skdp.solvers import GradientDescent, Newton
from skdp.testing import reproducible_noise

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask

D = 2100  # so many columns that a chunk has 4096 rows
LENGTH, N = 4096, 4 * 4096 + 100
NARROW = 6


@pytest.fixture(scope="module")
def cluster():
    workers = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0)
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10m"})  # a busy machine restarts workers slowly
    with patient, workers as local, distributed.Client(local, set_as_default=True) as client:
        yield client


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    X = np.zeros((N, D))
    X[:, :NARROW] = rng.normal(size=(N, NARROW))
    return X, np.where(X[:, 0] + rng.normal(size=N) > 0, "yes", "no"), np.clip(X[:, 0] + X[:, 1], -2, 2)


@pytest.fixture(scope="module")
def narrow():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, NARROW))
    return X, (X[:, 0] + rng.normal(size=3000) > 0).astype(int)


GD = GradientDescent(n_steps=5)
STEPS = DPLogisticRegression(data_norm=3.0, classes=[0, 1], solver=Newton(n_steps=4))


def fitted(estimator, X, y):
    with reproducible_noise(0):
        return clone(estimator).fit(X, y)  # a fit of the same object would overwrite what it is compared with


def left_on(client):
    return client.run_on_scheduler(lambda dask_scheduler: [key for key in map(str, dask_scheduler.tasks) if "skdp" in key])


def eventually(condition, seconds=5, looks=10):
    """Whether the condition holds in several looks in a row: a graph may reach the scheduler after the interrupt."""
    end, held = time.time() + seconds, 0
    while time.time() < end and held < looks:
        held = held + 1 if condition() else 0
        time.sleep(0.05)
    return held == looks


@pytest.mark.slow
def test_aligned_partitions_change_no_bit(cluster, narrow):
    X, y = narrow
    memory = fitted(STEPS, X, y)
    model = fitted(STEPS, da.from_array(X, chunks=(3000, 4)), da.from_array(y, chunks=3000))
    assert np.array_equal(model.coef_, memory.coef_)
    lazy = model.predict_proba(da.from_array(X, chunks=(700, 6)))
    assert hasattr(lazy, "dask") and np.array_equal(lazy.compute(), memory.predict_proba(X))
    assert model.privacy_report_.public["table"]["n_workers"] == 2
    assert eventually(lambda: not left_on(cluster))


@pytest.mark.slow
def test_a_log_link_maps_the_targets_of_partitions(cluster, narrow):
    X = narrow[0]
    y = np.floor(np.exp(X[:, 0] + 1))
    model = DPLinearRegression(4.0, delta=1e-6, feature_bounds=3.0, target_bounds=(0, 40), link="log_count")
    memory = fitted(model, X, y)
    lazy = fitted(model, da.from_array(X, chunks=(3000, 4)), da.from_array(y, chunks=3000))
    assert memory.link_ == "log_count" and memory.calibration_ == lazy.calibration_
    assert np.array_equal(lazy.predict(X), memory.predict(X))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_aligned_partitions_of_several_chunks_change_no_bit(cluster, wide):
    X, _, y = wide
    estimator = DPLinearRegression(data_norm=3.0, target_bounds=(-2, 2), solver=GD)
    memory = fitted(estimator, X, y)
    for length in (LENGTH, 3 * LENGTH):
        model = fitted(estimator, da.from_array(X, chunks=(length, -1)), da.from_array(y, chunks=length))
        assert np.array_equal(model.coef_, memory.coef_)


@pytest.mark.slow
def test_any_cut_gives_the_same_sum_within_rounding_and_itself_again(cluster, narrow):
    X, y = narrow
    cut = (1, 0, 999, 1500, 500)
    parts = da.from_array(X, chunks=(cut, 6)), da.from_array(y, chunks=(cut,))
    one, two, memory = fitted(STEPS, *parts), fitted(STEPS, *parts), fitted(STEPS, X, y)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.allclose(one.coef_, memory.coef_, atol=1e-9)


@pytest.mark.slow
def test_frames_keep_names_and_labels_of_their_partitions(cluster, narrow):
    X, _ = narrow
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["y"] = np.repeat(["low", "mid", "top"], 1000)  # each partition has other labels
    ddf = dd.from_pandas(frame, npartitions=3)
    model = fitted(DPLogisticRegression(data_norm=3.0, solver=GD), ddf[list("abcdef")], ddf["y"])
    memory = fitted(DPLogisticRegression(data_norm=3.0, solver=GD), frame[list("abcdef")], frame["y"])
    assert model.classes_.tolist() == ["low", "mid", "top"] and model.feature_names_in_.tolist() == list("abcdef")
    assert np.allclose(model.coef_, memory.coef_, atol=1e-9)
    assert model.score(ddf[list("abcdef")], ddf["y"]) == model.score(frame[list("abcdef")], frame["y"])
    assert (model.predict(ddf[list("abcdef")]).compute() == model.predict(frame[list("abcdef")])).all()


@pytest.mark.slow
def test_files_that_dask_joins_are_cut_alike_in_both(cluster, narrow, tmp_path):
    X = pd.DataFrame(narrow[0], columns=list("abcdef")).assign(y=narrow[1])
    for part in range(4):
        X[750 * part : 750 * (part + 1)].to_parquet(tmp_path / f"{part}.parquet")
    ddf = dd.read_parquet(tmp_path)
    assert len(ddf["y"].to_delayed()) < ddf.npartitions  # Dask joins them
    for names in (["a"], list("abcdef")):
        model, memory = fitted(STEPS, ddf[names], ddf["y"]), fitted(STEPS, X[names], X["y"])
        assert np.allclose(model.coef_, memory.coef_, atol=1e-9)
        assert model.score(ddf[names], ddf["y"]) == model.score(X[names], X["y"])
        assert (model.predict(ddf[names]).compute() == model.predict(X[names])).all()
    learned = DPLogisticRegression(classes=[0, 1], schema="learn", solver=GD)
    model, memory = fitted(learned, ddf[["a", "b"]], ddf["y"]), fitted(learned, X[["a", "b"]], X["y"])
    assert np.allclose(model.coef_, memory.coef_, atol=1e-9)


@pytest.mark.slow
def test_additive_models_map_columns_on_the_workers(cluster, narrow):
    X = pd.DataFrame(narrow[0], columns=list("abcdef"))
    X["y"] = np.clip(X["a"], -1, 1)
    ddf, names = dd.from_pandas(X, npartitions=2), list("abcdef")
    estimator = DPAdditiveRegressor(feature_bounds=3.0, target_bounds=(-1, 1))
    model, memory = fitted(estimator, ddf[names], ddf["y"]), fitted(estimator, X[names], X["y"])
    assert np.allclose(model.predict(X[names]), memory.predict(X[names]), atol=1e-6)


@pytest.mark.slow
def test_boosted_models_keep_scores_on_the_workers(cluster, narrow, monkeypatch):
    """Bins, scores and trees of each partition are where its rows were; nothing is left."""
    monkeypatch.setattr(_rule, "N_TREES", 6)
    X, targets = narrow[0], np.clip(narrow[0][:, 0] * narrow[0][:, 1], -1, 1)
    estimator = DPGradientBoostingRegressor(8.0, delta=1e-6, feature_bounds=3.0, target_bounds=(-1, 1), random_state=0)
    memory, one, three = (
        fitted(estimator, *given)
        for given in ((X, targets), *((da.from_array(X, (n, -1)), da.from_array(targets, n)) for n in (3000, 1000)))
    )
    np.testing.assert_array_equal(one.trees_.values, memory.trees_.values)
    np.testing.assert_array_equal(one.predict(X), memory.predict(X))
    np.testing.assert_allclose(three.predict(X), memory.predict(X), atol=1e-3)
    eventually(lambda: not left_on(cluster))


@pytest.fixture(scope="module")
def raw():
    """A frame with columns of several types, and its target as the last one."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"far": 1e5 + rng.normal(size=3000), "hour": rng.integers(0, 24, 3000)})
    frame["city"], frame["gaps"] = rng.choice(["A", "B", "C"], 3000), np.where(rng.random(3000) < 0.2, np.nan, frame["hour"])
    frame.loc[2900:, "gaps"] = np.nan  # a whole partition of them
    return frame.assign(y=3.0 * frame["hour"])


@pytest.mark.slow
@pytest.mark.parametrize("npartitions", (3, *slow(1, 30)))
def test_columns_are_learned_on_the_workers(npartitions, cluster, raw):
    ddf, names = dd.from_pandas(raw, npartitions=npartitions), list(raw)[:-1]
    estimator = LearnedSchema(3.0, learn_target=True)
    model, memory = fitted(estimator, ddf[names], ddf["y"]), fitted(estimator, raw[names], raw["y"])
    assert model.schema_ == memory.schema_ and model.learnt_ == memory.learnt_
    assert model.learnt_["hour"]["kind"] == "integers" and model.learnt_["gaps"]["missing"] > 0.15
    stated = model.privacy_report_.public["table"]
    assert (stated["partitions"], stated["reads_of_source"], stated["n_workers"]) == (npartitions, 1, 2)
    np.testing.assert_array_equal(np.asarray(model.transform(ddf[names]).compute()), memory.transform(raw[names]))
    alone = fitted(LearnedSchema(3.0), ddf[names], None)
    assert alone.schema_ == fitted(LearnedSchema(3.0), raw[names], None).schema_
    assert eventually(lambda: not left_on(cluster))


@pytest.mark.slow
def test_estimators_learn_columns_on_the_workers(cluster, raw):
    ddf, names = dd.from_pandas(raw, npartitions=1), list(raw)[:-1]
    estimator = DPLinearRegression(2.0, schema="learn")
    model, memory = fitted(estimator, ddf[names], ddf["y"]), fitted(estimator, raw[names], raw["y"])
    assert model.schema_ == memory.schema_ and np.array_equal(model.coef_, memory.coef_)
    assert model.privacy_report_.public["table"]["reads_of_source"] == 2
    several = fitted(estimator, *(dd.from_pandas(raw, npartitions=3)[part] for part in (names, "y")))
    assert several.schema_ == memory.schema_ and np.allclose(several.coef_, memory.coef_, atol=1e-9)
    assert eventually(lambda: not left_on(cluster))


@pytest.mark.slow
@pytest.mark.parametrize("column", ("hour", "y"))
def test_a_source_that_changes_between_the_stages_stops_the_fit(column, cluster, raw, tmp_path, monkeypatch):
    path = tmp_path / "charged"
    ddf = dd.from_pandas(raw, npartitions=3).map_partitions(changing, column, str(path), meta=raw.iloc[:0])
    with PrivacyLedger(epsilon=5.0, delta=1e-5) as ledger:
        monkeypatch.setattr(learned_estimators, "pay", lambda *args, of=learned_estimators.pay: of(*args) or path.touch())
        with pytest.raises(SourceError, match="charge stands"):
            DPLinearRegression(1.0, delta=1e-7, schema="learn").fit(ddf[list(raw)[:-1]], ddf["y"])
        assert len(ledger.entries) == 1 and path.exists()


def changing(part, column, path):
    return part.assign(**{column: part[column] + 1}) if os.path.exists(path) else part


@pytest.mark.slow
def test_types_of_a_partition_do_not_change_how_its_cells_are_read(cluster, raw):
    """They are those of the frame: a partition with a text among numbers has a missing one."""
    names = list(raw)[:-1]
    odd = dd.from_pandas(raw[names], npartitions=3).map_partitions(with_a_text, meta=raw[names].iloc[:0])
    model, gap = fitted(LearnedSchema(3.0), odd, None), raw[names].astype({"hour": float})
    gap.loc[7, "hour"] = np.nan
    assert model.schema_ == fitted(LearnedSchema(3.0), gap, None).schema_
    assert model.privacy_report_.public["read_as"]["hour"] == "number"


def with_a_text(part):
    part = part.astype({"hour": object})
    if 7 in part.index:
        part.loc[7, "hour"] = "record-a1"
    return part


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("os", "memory", "columns", "lengths", "nan"))
def test_cells_that_cannot_be_read_quote_nothing_and_charge_nothing(kind, cluster, raw, caplog):
    names, ledger = list(raw)[:-1], PrivacyLedger(epsilon=5.0, delta=1e-5)
    ddf = dd.from_pandas(raw, npartitions=3)
    X, y = ddf[names], ddf["y"]
    if kind in ("os", "memory"):
        X = X.map_partitions(failing(kind), meta=raw[names].iloc[:0])
    elif kind == "columns":
        X = X.map_partitions(lambda part: part.assign(**{"record-a1": 1}), meta=raw[names].iloc[:0])
    elif kind == "lengths":
        y = y.map_partitions(lambda part: part.iloc[1:], meta=raw["y"].iloc[:0])
    else:
        y = y.map_partitions(lambda part: part.where(part < 60), meta=raw["y"].iloc[:0])
    with ledger, caplog.at_level(logging.DEBUG), pytest.raises((ValueError, SourceError)) as caught:
        LearnedSchema(1.0, delta=1e-7, learn_target=True).fit(X, y)
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert not any("record-a1" in str(error) for error in chain if error is not None)
    assert not ledger.entries and eventually(lambda: not left_on(cluster))


@pytest.mark.slow
def test_learning_sends_no_noise_and_refuses_a_source_that_changes(cluster, raw, monkeypatch):
    held, submit, load = [], distributed.Client.submit, engine.DaskEngine.load

    def spied(self, function, *arguments, **options):
        held.append(pickle.dumps([part for part in arguments if not isinstance(part, distributed.Future)]))
        return submit(self, function, *arguments, **options)

    def reloaded(self):
        parts = load(self)
        self._partitions = [self._submit("again", place, other, part) for place, part in enumerate(self._partitions)]
        return parts

    ddf = dd.from_pandas(raw, npartitions=3)[list(raw)[:-1]]
    monkeypatch.setattr(distributed.Client, "submit", spied)
    with PrivacyLedger(epsilon=5.0, delta=1e-5) as ledger:
        LearnedSchema(1.0, delta=1e-7).fit(ddf)
        monkeypatch.setattr(engine.DaskEngine, "load", reloaded)
        with pytest.raises(SourceError, match=partition.CHANGED[:20]):
            LearnedSchema(1.0, delta=1e-7).fit(ddf)
        assert len(ledger.entries) == 2
    for name in (NoiseSource.__name__, Budget.__name__, PrivacyLedger.__name__, "Oracle", "LearnedSchema"):
        assert not any(name.encode() in payload for payload in held)


@pytest.mark.slow
@pytest.mark.parametrize("first", (float, int))
@pytest.mark.parametrize("stated", ("int64", "Int64"))
@pytest.mark.parametrize("schema", ("learn", None))
@pytest.mark.filterwarnings("ignore::skdp.privacy.LowSignalWarning", "ignore::skdp.TableWarning")
def test_labels_have_the_type_that_the_collection_states(schema, stated, first, cluster):
    """A reader may give floats for one partition; types of pandas that NumPy does not know follow from the label set."""
    rng = np.random.default_rng(0)
    frame, y = pd.DataFrame(rng.uniform(-1, 1, (600, 2)), columns=["a", "b"]), pd.Series(rng.integers(0, 2, 600))
    parts = [(frame[:300], y[:300].astype(first)), (frame[300:], y[300:].astype(stated))]
    X = dd.from_delayed([dask.delayed(one) for one, _ in parts], meta=frame[:0])
    labels = dd.from_delayed([dask.delayed(one) for _, one in parts], meta=(None, stated), verify_meta=False)
    model = DPLogisticRegression(schema=schema).fit(X, labels)
    assert model.classes_.tolist() == [0, 1] and model.classes_.dtype == np.int64


def test_without_a_client_partitions_are_read_one_by_one(narrow, monkeypatch):
    def none():
        raise ValueError("no client")

    X, y = narrow
    monkeypatch.setattr(distributed, "get_client", none)
    model = fitted(STEPS, da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000))
    assert "n_workers" not in model.privacy_report_.public["table"]
    assert np.array_equal(model.coef_, fitted(STEPS, X, y).coef_)


def killing(client, after):
    """Kill a worker once ``after`` tasks of a fit are in memory."""

    def work():
        for _ in range(2000):
            done = client.run_on_scheduler(
                lambda dask_scheduler: sum(
                    "skdp" in str(key) and task.state == "memory" for key, task in dask_scheduler.tasks.items()
                )
            )
            if done >= after:
                break
            time.sleep(0.02)
        pids = list(client.run(os.getpid).values())
        os.kill(pids[0], signal.SIGKILL)

    return work


@pytest.mark.slow
@pytest.mark.parametrize("after", (2, 5))
def test_a_killed_worker_changes_no_bit(after, narrow, monkeypatch):
    X, y = narrow
    cut = (500,) * 6
    drawn = []
    normal = NoiseSource.normal
    monkeypatch.setattr(NoiseSource, "normal", lambda self, *sizes: drawn.append(sizes[0]) or normal(self, *sizes))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as local:
        with distributed.Client(local) as client:
            parts = da.from_array(X, chunks=(cut, 6)), da.from_array(y, chunks=(cut,))
            quiet = fitted(STEPS, *parts)
            count = len(drawn)
            killer = threading.Thread(target=killing(client, after))
            killer.start()
            ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
            with ledger:
                disturbed = fitted(STEPS, *parts)
            killer.join()
    assert np.array_equal(quiet.coef_, disturbed.coef_)
    assert len(drawn) == 2 * count and len(ledger.entries) == 1


def failing(kind):
    def work(block):
        if kind == "text":
            return np.array([["record-b2"] * NARROW] * len(block), dtype=object)
        raise {"os": OSError("record-a1"), "memory": MemoryError("record-a1"), "exit": SystemExit("record-a1")}[kind]

    return work


@pytest.mark.parametrize("kind", ("text", *slow("os", "memory")))
def test_a_failing_partition_quotes_nothing_and_charges_nothing(kind, cluster, narrow, caplog):
    X, y = narrow
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
    parts = (
        da.from_array(X, chunks=(1000, 6)).map_blocks(failing(kind), dtype=object, meta=np.empty((0, 0))),
        da.from_array(y, chunks=1000),
    )
    with ledger, caplog.at_level(logging.DEBUG), pytest.raises((ValueError, SourceError)) as caught:
        DPLogisticRegression(data_norm=3.0, classes=[0, 1], solver=GD).fit(*parts)
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert not any(cell in str(error) for error in chain if error is not None for cell in ("record-a1", "record-b2"))
    assert "charge" not in str(caught.value) and not ledger.entries
    if kind == "text":  # a failure of ours; the cluster logs those of the user's own tasks, in other tests with another text
        logs = str(cluster.get_worker_logs(n=50)) + str(cluster.get_scheduler_logs(n=50))
        assert "record-b2" not in logs
    assert eventually(lambda: not left_on(cluster))


@pytest.mark.slow
def test_collections_that_do_not_match_are_refused(cluster, narrow):
    X, y = narrow
    dX = da.from_array(X, chunks=(1000, 6))
    with pytest.raises(TypeError, match="y is a ndarray beside X of Dask; expected a Dask collection"):
        STEPS.fit(dX, y)
    with pytest.raises(TypeError, match="y is missing beside X of Dask"):
        STEPS.fit(dX)
    with pytest.raises(ValueError, match="3 partitions and y has 2"):
        STEPS.fit(dX, da.from_array(y, chunks=1500))
    with pytest.raises(ValueError, match="different lengths"):
        STEPS.fit(dX, da.from_array(y, chunks=((900, 1100, 1000),)))
    with pytest.raises(ValueError, match="needs a table in memory"):
        DPLogisticRegression(solver="objective", classes=[0, 1]).fit(dX, da.from_array(y, chunks=1000))


@pytest.mark.slow
def test_workers_that_round_in_another_way_are_refused(cluster, narrow, monkeypatch):
    X, y = narrow
    parts = da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000)
    reports = cluster.run(engine.machine)
    mixed = {worker: (*report[:-1], f"other BLAS {place}") for place, (worker, report) in enumerate(reports.items())}
    monkeypatch.setattr(type(cluster), "run", lambda self, *args, **kwargs: mixed)
    with pytest.raises(SourceError, match="round differently"):
        STEPS.fit(*parts)
    alike = dict.fromkeys(reports, (*next(iter(reports.values()))[:-1], "of another kind"))
    monkeypatch.setattr(type(cluster), "run", lambda self, *args, **kwargs: alike)
    with pytest.raises(SourceError, match="round differently"):  # each task looks again: workers may join later
        STEPS.fit(*parts)


def test_tasks_hold_no_noise_no_budget_and_no_ledger(cluster, narrow, monkeypatch):
    X, y = narrow
    held = []
    submit = distributed.Client.submit

    def spied(self, function, *arguments, **options):
        held.append(pickle.dumps([part for part in arguments if not isinstance(part, distributed.Future)]))
        return submit(self, function, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "submit", spied)
    with PrivacyLedger(epsilon=5.0, delta=1e-5):
        model = STEPS.fit(da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000))
    assert len(held) > 20
    for name in (NoiseSource.__name__, Budget.__name__, PrivacyLedger.__name__, "Oracle"):
        assert not any(name.encode() in payload for payload in held)
    cells = [cell.tobytes() for cell in X[:200].ravel()]
    content = pickle.dumps(model)
    assert not any(cell in content for cell in cells)


@pytest.mark.slow
def test_a_source_that_changes_stops_the_fit(cluster, narrow):
    X, y = narrow
    loaded = engine.DaskEngine.load

    def reloaded(self):
        parts = loaded(self)
        self._partitions = [self._submit("again", place, other, part) for place, part in enumerate(self._partitions)]
        return parts

    estimator, before = DPLogisticRegression(data_norm=3.0, classes=[0, 1], solver=GD), None
    engine.DaskEngine.load = reloaded
    try:
        with pytest.raises(SourceError, match=partition.CHANGED[:20]):
            estimator.fit(da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000))
    finally:
        engine.DaskEngine.load = loaded
    assert getattr(estimator, "coef_", None) is before


def other(part):
    """The same partition, as if other records had come."""
    from dataclasses import replace

    return replace(part, digest=b"another")


@pytest.mark.slow
def test_an_interrupt_leaves_no_task(cluster, narrow, monkeypatch):
    X, y = narrow
    model, calls = DPLogisticRegression(data_norm=3.0, classes=[0, 1], solver=GD), []
    reduce = engine.DaskEngine.reduce

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return reduce(self, *arguments)

    monkeypatch.setattr(engine.DaskEngine, "reduce", interrupted)
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
    with ledger, pytest.raises(KeyboardInterrupt, match="budget stays spent"):
        model.fit(da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000))
    assert len(ledger.entries) == 1 and not hasattr(model, "coef_")
    gc.collect()
    assert eventually(lambda: not left_on(cluster))


@pytest.mark.slow
def test_an_interrupt_while_the_table_is_read_leaves_no_task(cluster, narrow, monkeypatch):
    X, y = narrow
    model = DPLogisticRegression(data_norm=3.0, classes=[0, 1], solver=GD)

    def interrupted(self, futures):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.DaskEngine, "_gathered", interrupted)
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
    with ledger, pytest.raises(KeyboardInterrupt) as caught:
        model.fit(da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000))
    assert not ledger.entries and not hasattr(model, "coef_")
    assert eventually(lambda: not left_on(cluster)) and caught.tb is not None  # a notebook keeps the traceback, and its futures


@pytest.mark.exhaustive
@pytest.mark.slow
def test_stolen_tasks_change_no_bit(cluster, narrow, monkeypatch):
    """All partitions come from one worker, whose tasks take so long that the idle one steals some."""
    X, y = narrow
    expected = fitted(STEPS, da.from_array(X, chunks=(150, 6)), da.from_array(y, chunks=150))
    first, *_ = cluster.scheduler_info()["workers"]
    stored = [
        cluster.persist(part, workers=[first]) for part in (da.from_array(X, chunks=(150, 6)), da.from_array(y, chunks=150))
    ]
    distributed.wait(stored)
    submit = engine.DaskEngine._submit

    def slow(self, kind, place, work, *arguments):
        return submit(self, kind, place, slowed(work) if kind in ("part", "sum") else work, *arguments)

    def slowed(work):
        def waits(*arguments):
            import time

            time.sleep(0.05)
            return work(*arguments)

        return waits

    monkeypatch.setattr(engine.DaskEngine, "_submit", slow)
    before = cluster.run_on_scheduler(stolen)
    assert np.array_equal(fitted(STEPS, *stored).coef_, expected.coef_)
    assert cluster.run_on_scheduler(stolen) > before


def stolen(dask_scheduler):
    """Number of times that a task went to another worker."""
    return dask_scheduler.extensions["stealing"].count


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_partition_is_summed_once_though_tasks_run_twice(cluster, narrow, monkeypatch):
    X, y = narrow
    cut = (150,) * 20  # two levels of the tree of joins
    parts = da.from_array(X, chunks=(cut, 6)), da.from_array(y, chunks=(cut,))
    quiet = fitted(STEPS, *parts)
    submit, joined = engine.DaskEngine._submit, []

    def twice(self, kind, place, work, *arguments):
        future = submit(self, kind, place, work, *arguments)
        if kind == "sum":
            distributed.wait(future)
            self._client.run_on_scheduler(forget, key=future.key)  # the result is lost, and the task runs again
        if kind.startswith("join"):
            joined.append((kind, [str(part.key) for part in arguments]))
        return future

    monkeypatch.setattr(engine.DaskEngine, "_submit", twice)
    assert np.array_equal(fitted(STEPS, *parts).coef_, quiet.coef_)
    first_level = [key for kind, keys in joined if kind == "join1" for key in keys]
    assert len(first_level) == len(set(first_level)) and len(first_level) % 20 == 0


def forget(dask_scheduler, key):
    task = dask_scheduler.tasks.get(key)
    if task is not None and task.state == "memory":
        for worker in list(task.who_has):
            dask_scheduler.remove_replica(task, worker)
        dask_scheduler.transitions({key: "released"}, stimulus_id="test")


@pytest.mark.slow
def test_a_fit_that_fails_leaves_the_collections_of_the_user_alone(cluster, narrow):
    """The twin cancels what it computes from, and with it the results that the user keeps."""
    X, y = narrow
    kept = da.from_array(X, chunks=(1000, 6)).persist()
    distributed.wait(kept)
    with pytest.raises(ValueError, match="y contains NaN"):
        STEPS.fit(kept, da.from_array(np.where(np.arange(3000) == 7, np.nan, y), chunks=1000))
    assert np.isclose(kept.sum().compute(), X.sum())


def as_stated(parts, dtype=None):
    """An array of parts, whose dtypes are not looked at."""
    delayed = pytest.importorskip("dask").delayed
    dtype = parts[0].dtype if dtype is None else dtype
    return da.concatenate([da.from_delayed(delayed(part), part.shape, dtype) for part in parts])


TYPES = {  # of a partition of small whole numbers
    "int64": lambda part: part.astype(np.int64),
    "float64": lambda part: part.astype(np.float64),
    "float32": lambda part: part.astype(np.float32),
    "object": lambda part: part.astype(object),
    "fortran": np.asfortranarray,
    "int8": lambda part: part.astype(np.int8),
}


@pytest.mark.slow
def test_the_types_of_partitions_change_no_bit(cluster, narrow):
    """One record may decide it: a reader takes integers for integers, and a single .5 among them makes all of them floats."""
    X, y = narrow[0].round().clip(-2, 2), narrow[1]
    parts = [(X[start : start + 500], y[start : start + 500]) for start in range(0, 3000, 500)]
    odd = [
        (make(part), y if name in ("object", "fortran") else make(y))
        for (part, y), (name, make) in zip(parts, TYPES.items(), strict=True)
    ]
    plain, model = (
        fitted(
            DPLogisticRegression(data_norm=3.0, solver=GradientDescent(2)),
            as_stated([X for X, _ in tables], float),
            as_stated([y for _, y in tables], y.dtype),
        )
        for tables in (parts, odd)
    )
    assert left_behind(model) == left_behind(plain)


def left_behind(model):
    """Names, types and bits of the fitted attributes that are arrays or numbers, and the report."""
    found = {name: value for name, value in vars(model).items() if isinstance(value, (np.ndarray, float, tuple, str))}
    report = {**model.privacy_report_.to_dict(), "versions": None}
    return {name: (type(value), getattr(value, "dtype", None), pickle.dumps(value)) for name, value in found.items()}, str(report)


@pytest.mark.slow
def test_partitions_that_are_sparse_and_dense_are_stored_as_the_first(cluster, narrow):
    """A transformer may choose by the records of each partition."""
    X, y = narrow[0].round(), da.from_array(narrow[1], chunks=1500)
    for first, second in ((sparse.csr_array, np.asarray), (np.asarray, sparse.csr_array)):
        alike = fitted(STEPS, as_stated([first(X[:1500]), first(X[1500:])], float), y)
        model = fitted(STEPS, as_stated([first(X[:1500]), second(X[1500:])], float), y)
        assert left_behind(model) == left_behind(alike)


@pytest.mark.slow
@pytest.mark.parametrize("given", ({"schema": "learn"}, {"feature_bounds": 24.0}), ids=("learned", "stated"))
def test_the_types_of_the_columns_of_partitions_change_no_bit(given, cluster, raw):
    frame = raw[["hour"]].assign(day=raw["hour"] % 7, y=(raw["hour"] > 12).astype(int))
    ddf, names = dd.from_pandas(frame, npartitions=5), ["hour", "day"]
    estimator = DPLogisticRegression(3.0, solver=GradientDescent(2), **given)
    odd = ddf.map_partitions(of_several_types, meta=frame.iloc[:0])
    plain, model = (fitted(estimator, table[names], table["y"]) for table in (ddf, odd))
    assert left_behind(model) == left_behind(plain)


def of_several_types(part):
    kind = ("int64", "float64", "object", "Int64", "int8")[part.index[0] // 600]
    return part.astype({"hour": kind, "day": kind, "y": "int8" if kind == "object" else kind})


@pytest.mark.slow
def test_labels_of_text_and_numbers_are_refused(cluster, narrow):
    X, y = narrow
    with pytest.raises(ValueError, match="labels of the partitions have different types"):
        DPLogisticRegression(solver=GD).fit(da.from_array(X, chunks=(1500, 6)), as_stated([y[:1500], y[1500:].astype(str)]))


@pytest.mark.slow
def test_sparse_chunks(cluster, narrow):
    X, y = narrow[0].round(), narrow[1]
    chunks = da.from_array(X, chunks=(1500, 6)).map_blocks(sparse.csr_array)
    model = fitted(STEPS, chunks, da.from_array(y, chunks=1500))
    assert np.allclose(model.coef_, fitted(STEPS, sparse.csr_array(X), y).coef_, rtol=1e-9)
    assert np.array_equal(model.predict(chunks).compute(), model.predict(sparse.csr_array(X)))


def test_fingerprints_tell_other_labels_and_another_order(narrow):
    """The numbers that stand for labels may be the same where the labels differ."""
    X, y = narrow[0][:50], np.repeat(["a", "b"], 25)
    read = OnWorker(DPLogisticRegression()._task().part_reader(None))
    tables = ((X, y), (X[::-1], y), (X, np.repeat(["a", "c"], 25)), (X, y[::-1]))
    digests = {engine.load(read, bytes(32), *table)[1].digest for table in tables}
    assert len(digests) == len(tables)
    assert engine.load(read, bytes(32), X, y)[1].digest in digests


class Undecodable:
    def __call__(self, X, y):
        raise UnicodeDecodeError("utf-8", b"record-a1", 0, 1, "invalid")


def test_an_error_of_another_type_is_not_quoted():
    failure = partition.guarded(OnWorker(Undecodable()), np.ones((2, 2)), np.ones(2))
    assert failure.kind is SourceError and "record-a1" not in failure.text


@pytest.mark.slow
def test_blas_has_one_thread_until_the_last_task_ends():
    """The twin: a limit per task, which the first one that ends takes off the others."""
    limit, seen = engine.OneThread(), []
    blas = [library for library in limit.controller.lib_controllers if library.user_api == "blas"]
    with limit.controller.limit(limits=2, user_api="blas"):
        limit.__enter__()
        limit.__enter__()
        limit.__exit__()
        seen += [library.num_threads for library in blas]
        limit.__exit__()
        assert set(seen) == {1} and {library.num_threads for library in blas} == {2}


class Deadly:
    """Ends the worker that reads a part, as the system does when memory is short."""

    def __call__(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_partition_that_ends_workers_is_told(cluster, narrow, monkeypatch):
    X, y = narrow
    monkeypatch.setattr(DPLogisticRegression._task_class, "part_reader", lambda self, X: Deadly())
    with PrivacyLedger(epsilon=5.0, delta=1e-5) as ledger, pytest.raises(SourceError) as caught:
        STEPS.fit(da.from_array(X, chunks=(1500, 6)), da.from_array(y, chunks=1500))
    assert str(caught.value) == engine.KILLED and not ledger.entries
    cluster.wait_for_workers(2, timeout=120)


def ended(client):
    """End all workers for good, as a `LocalCluster` does."""

    async def closed():
        for nanny in client.cluster.workers.values():
            await nanny.close()

    client.cluster.sync(closed)


def paused(client):
    client.run(lambda dask_worker: setattr(dask_worker, "status", distributed.core.Status.paused))


@pytest.mark.slow
@pytest.mark.parametrize("how", (ended, paused))
@pytest.mark.parametrize("step", ("facts", "sum"))
def test_a_cluster_without_workers_is_told(step, how, narrow, monkeypatch):
    X, y = narrow
    monkeypatch.setattr(engine, "LOOK", 0.1)
    submit, calls = engine.DaskEngine._submit, []

    def leaving(self, kind, *arguments):
        if kind == step and not calls:
            calls.append(how(self._client))
        return submit(self, kind, *arguments)

    monkeypatch.setattr(engine.DaskEngine, "_submit", leaving)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    parts = da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000)
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
    with distributed.LocalCluster(**options) as local, distributed.Client(local), ledger:
        monkeypatch.setattr(engine, "PATIENCE", 1.0)
        with pytest.raises(SourceError, match="For 1 s, the Dask cluster had no worker that takes tasks") as caught:
            STEPS.fit(*parts)
    assert len(ledger.entries) == ("charge stands" in str(caught.value)) == (step == "sum")


@pytest.mark.slow
def test_a_fit_waits_for_workers_as_long_as_dask_is_told(cluster, monkeypatch):
    with dask.config.set({"distributed.scheduler.no-workers-timeout": "3m"}):
        assert engine._patience() == 180
    assert engine._patience() == engine.PATIENCE
    work = engine.DaskEngine(cluster, [], None)
    of_workers = {"a": {"status": "paused", "metrics": {"task_counts": {"executing": 1}}}, "b": {"status": "paused"}}
    monkeypatch.setattr(type(cluster), "scheduler_info", lambda self, n_workers: {"workers": of_workers})
    assert work._has_worker()  # a paused worker ends the task that it is at
    del of_workers["a"]
    assert not work._has_worker()


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("step, number", (("facts", 1), ("check", 2), ("sum", 2), ("join1", 1)))
def test_workers_that_end_in_any_step_change_no_bit(step, number, cluster, narrow, monkeypatch):
    X, y = narrow
    parts = da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000)
    quiet = fitted(STEPS, *parts).coef_
    submit, ended = engine.DaskEngine._submit, []

    def ending(self, kind, place, *arguments):
        future = submit(self, kind, place, *arguments)
        if kind == step and not ended:
            ended.extend(list(cluster.run(os.getpid).values())[:number])
            for process in ended:
                os.kill(process, signal.SIGKILL)
        return future

    monkeypatch.setattr(engine.DaskEngine, "_submit", ending)
    assert np.array_equal(fitted(STEPS, *parts).coef_, quiet) and len(ended) == number
    cluster.wait_for_workers(2, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("workers, threads, processes", ((1, 1, True), (3, 1, True), (1, 3, False)))
def test_the_number_of_workers_changes_no_bit(workers, threads, processes, cluster, narrow):
    X, y = narrow
    cut = (100,) * 30
    parts = da.from_array(X, chunks=(cut, 6)), da.from_array(y, chunks=(cut,))
    here = fitted(STEPS, *parts)
    options = {"n_workers": workers, "threads_per_worker": threads, "processes": processes, "dashboard_address": None}
    with distributed.LocalCluster(**options) as local, distributed.Client(local):
        assert np.array_equal(fitted(STEPS, *parts).coef_, here.coef_)


@pytest.mark.slow
def test_warnings_about_records_do_not_leave_a_fit(cluster, narrow, caplog):
    """The size of the graph is that of the records in it, and tasks of the user may run in this process."""
    X, y = narrow
    table = da.from_array(X, chunks=(1500, 6)), da.from_array(y, chunks=1500)
    small = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1kB"})
    with small, caplog.at_level(logging.WARNING), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        fitted(DPLogisticRegression(data_norm=3.0, classes=[0, 1], solver=GradientDescent(2)), *table)
        fitted(LearnedSchema(9.0), dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=2), None)
    assert not [str(w.message) for w in heard] and not [r.getMessage() for r in caplog.records if "size" in r.getMessage()]


@pytest.mark.slow
@pytest.mark.parametrize("ids", ("column", "series", "in memory"))
def test_rows_of_persons_weigh_what_they_weigh_in_memory(ids, cluster, narrow, caplog):
    X, y = pd.DataFrame(narrow[0], columns=list("abcdef")), narrow[1]
    who = np.random.default_rng(2).permutation(np.repeat(np.arange(600), 5))
    model = DPLogisticRegression(data_norm=3.0, classes=[0, 1], solver=GD, privacy_unit="person", epsilon=np.inf)
    with reproducible_noise(0):
        memory = clone(model).fit(X, y, persons=who)
    frame = X.assign(y=y, patient=[f"secret{one}" for one in who])
    for npartitions in (1, 4):
        ddf = dd.from_pandas(frame, npartitions=npartitions)
        persons = {"column": "patient", "series": ddf["patient"], "in memory": who}[ids]
        table = ddf[[*"abcdef", *(["patient"] if ids == "column" else [])]]
        with reproducible_noise(0):
            part = clone(model).fit(table, ddf["y"], persons=persons)
        np.testing.assert_allclose(part.coef_, memory.coef_, rtol=0, atol=1e-15)
    public, expected = part.privacy_report_.public, memory.privacy_report_.public
    assert public.pop("table").keys() == {"source", "kept_copy", "reads_of_source", "n_workers"} and public == expected
    assert b"secret" not in pickle.dumps(part) and "secret" not in caplog.text
    assert eventually(lambda: not cluster.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))


@pytest.mark.slow
def test_ids_of_dask_that_do_not_tell_persons_are_refused(cluster, narrow):
    frame = pd.DataFrame(narrow[0], columns=list("abcdef")).assign(
        y=narrow[1], patient=[f"secret{one // 3}" for one in range(3000)]
    )
    ddf, model = dd.from_pandas(frame, npartitions=3), DPLogisticRegression(data_norm=3.0, privacy_unit="person")
    X, y = ddf[list("abcdef")], ddf["y"]
    late = ddf["patient"].map_partitions(lambda ids: ids.where(ids != "secret999", None), meta=("patient", object))
    for persons, kind, message in (
        (late, ValueError, "missing ids"),
        (dd.from_pandas(frame["patient"], npartitions=2), TypeError, "does not fit X"),
        ("person", ValueError, "no column of X"),
        (np.arange(7), ValueError, "different lengths"),
    ):
        with pytest.raises(kind, match=message) as caught:
            model.fit(X, y, persons=persons)
        assert "secret" not in str(caught.value)
    with pytest.raises(TypeError, match="expected ids in memory"):
        model.fit(chunks(lambda: [(narrow[0], narrow[1])]), persons=ddf["patient"])


@pytest.mark.slow
def test_ids_of_dask_that_change_stop_the_fit(cluster, narrow):
    ddf = dd.from_pandas(pd.DataFrame(narrow[0], columns=list("abcdef")).assign(y=narrow[1]), npartitions=2)

    def other(part):
        """Return ids that are others each time."""
        return pd.Series(np.random.default_rng().integers(9, size=len(part)), index=part.index, name="patient")

    ids = ddf["a"].map_partitions(other, meta=("patient", int))
    with pytest.raises(SourceError, match="did not finish its work"):
        DPLogisticRegression(data_norm=3.0, classes=[0, 1], privacy_unit="person").fit(ddf[list("abcdef")], ddf["y"], persons=ids)

"""No path from the data around the oracle: frames, pickles, reports; every estimator, every solver."""

import gc
import inspect
import pickle
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from grouped import brief as brief_groups
from marks import slow
from packaging.version import Version
from pairwise import pairwise
from places import place_of
from products import GIVEN, brief, fitting, kinds_of, labels_of, needs_of, of_kind, released_by
from scipy import sparse
from seeded import fitted
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
import skdp.estimators
from skdp.data import chunks
from skdp.estimators import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
)
from skdp.estimators._base import DPEstimator
from skdp.estimators._tabular import TabularModel
from skdp.estimators.additive._inferred import independent
from skdp.estimators.additive._knot_placement import finest
from skdp.estimators.boosting import _rule
from skdp.estimators.boosting._base import BoostedModel
from skdp.preprocessing import BoundedScaler
from skdp.privacy.data import summation
from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.partition import Partition
from skdp.privacy.data.partitioned_rows import PartitionedCells, PartitionedRows, PartitionedSample
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.engines.threads import ThreadEngine
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Gradient
from skdp.solvers import SOLVERS, GradientDescent, Solver
from skdp.solvers.adaptive import standardized_gd
from skdp.solvers.statistics.clusters import ClusterDescent
from skdp.solvers.statistics.naive_bayes import NaiveBayes
from skdp.solvers.statistics.principal_components import PrincipalComponents

PACKAGE = Path(skdp.__file__).parent
TRUSTED = ("privacy/data/", "privacy/queries/", "privacy/oracle.py", "privacy/engines/", "losses/", "scorers.py", "minimax/")
LABELS = {
    "binary": np.arange(300) % 2,
    "multinomial": np.arange(300) % 3,
    "numbers": np.random.default_rng(1).normal(size=300).clip(-3, 3),
}
STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int8": lambda X: (20 * X).astype(np.int8),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "csc float32": lambda X: sparse.csc_array(X.astype(np.float32)),
    "duplicates": lambda X: sparse.csr_array((np.repeat(X.ravel(), 2), np.tile([0, 0, 1, 1, 2, 2], 300), 6 * np.arange(301))),
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=list("abc")),
}


DENSE = ["C", "F", "float32", "list", "frame"]


def every_estimator():
    """Every public estimator with every registered solver that fits a problem of its."""
    for name in skdp.estimators.__all__:
        kind = getattr(skdp.estimators, name)
        for solver in SOLVERS.values() if "solver" in kind(**GIVEN.get(name, {})).get_params() else ():
            if any(fitting(problem, solver) for problem in kinds_of(name)):
                yield pytest.param(
                    kind(solver=brief(solver), **GIVEN.get(name, {}), **needs_of(solver)), id=f"{name}-{solver.name}"
                )


ESTIMATORS = list(every_estimator())


def leading_estimators():
    """The first estimator of every solver, and the first solver of every estimator."""
    seen = set()
    for p in ESTIMATORS:
        kinds = {type(p.values[0]), type(p.values[0].solver)}
        if kinds - seen:
            yield p
        seen |= kinds


LEADING = list(leading_estimators())
FREE = ("DPKMeans", "DPMultinomialNB", "DPPCA")  # which have one algorithm, and no parameter for it
every = pytest.mark.parametrize(
    "estimator", [pytest.param(*p.values, id=p.id, marks=() if p in LEADING else pytest.mark.slow) for p in ESTIMATORS]
)
IN_MEMORY = {"skgd", "objective", "output"}  # solvers that need a table in memory


def storages_of(estimator, names):
    """Those of the ways to store a table that an estimator takes."""
    return names if estimator.__sklearn_tags__().input_tags.sparse else [name for name in names if name in DENSE]


def solved(estimator, solver, kind):
    """An estimator of a kind of problem with a solver of few steps, all by name."""
    given = {**GIVEN.get(estimator, {}), **needs_of(solver)}
    return of_kind(getattr(skdp.estimators, estimator)(solver=brief(SOLVERS[solver]), **given), kind)


def every_storage(names):
    """Estimator, solver, kind of problem and storage, by name: all that go together, pairwise."""
    return pairwise(
        (type(p.values[0]).__name__, p.values[0].solver.name, kind, storage)
        for p in ESTIMATORS
        for kind in kinds_of(type(p.values[0]).__name__)
        if fitting(kind, p.values[0].solver)
        for storage in storages_of(p.values[0], names)
    )


twin = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"), reason="what is tried is the watch itself: once is enough"
)
FAMILIES = ("skdp.estimators", "skdp.solvers")  # an audit derives its own, to watch them


def test_no_estimator_and_no_solver_is_left_out():
    """The cross product has every class that the package defines, registered or not; those without solver have their own test."""
    for base, seen in (
        (
            DPEstimator,
            {type(p.values[0]) for p in ESTIMATORS}
            | {*subclasses(BoostedModel), *subclasses(TabularModel), *(getattr(skdp, name) for name in FREE)},
        ),
        (Solver, {type(p.values[0].solver) for p in ESTIMATORS} | {ClusterDescent, NaiveBayes, PrincipalComponents}),
    ):
        kinds = [kind for kind in subclasses(base) if kind.__module__.startswith(FAMILIES) and not inspect.isabstract(kind)]
        kinds = [kind for kind in kinds if getattr(sys.modules[kind.__module__], kind.__name__, None) is kind]  # no test's own
        kinds = [kind for kind in kinds if base is Solver or hasattr(kind, "_task_class")]  # bases and mixins fit nothing
        assert kinds and set(kinds) == seen


def subclasses(base):
    return [kind for child in base.__subclasses__() for kind in (child, *subclasses(child))]


def stored_arrays(X):
    return (X.data, X.indices, X.indptr) if sparse.issparse(X) else (np.asarray(X),)


def arrays_in(value, depth=2):
    """Arrays that a variable is, contains or has as attributes; tables stay behind `TrainingData` and `BinnedRecords`."""
    if sparse.issparse(value) or isinstance(value, np.ndarray):
        return list(stored_arrays(value))
    if isinstance(value, (type, TrainingData, BinnedRecords)) or not depth:
        return []
    held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    attributes = vars(value).values() if type(value).__module__.startswith("skdp.") and hasattr(value, "__dict__") else ()
    return [array for part in (*held, *attributes) for array in arrays_in(part, depth - 1)]


def frames_with_data(estimator, X, y, table=None, **more):
    """Files and functions of the package that are entered after validation and hold the table, its labels or their codes.

    ``table`` is the same one in partitions, whose chunks are guarded, too: those in the private file.
    """
    guarded = [y] if isinstance(X, list) else [*stored_arrays(X), y]
    found, validated = set(), []

    def watch(frame, event, argument):
        name = place_of(frame.f_code.co_filename)
        if name is None or event not in ("call", "return"):
            return
        if name == "privacy/data/training_data.py" and frame.f_code.co_name == "_clip" and event == "return":
            rows = frame.f_locals["self"]
            guarded.extend([*stored_arrays(rows._blocks.table), rows._y])  # what it holds may be a copy
            guarded.extend([] if rows._groups is None else [rows._groups])
            validated.append(True)
        if name == "privacy/data/binned_records.py" and frame.f_code.co_name in ("__init__", "grown") and event == "return":
            rows = frame.f_locals["self" if frame.f_code.co_name == "__init__" else "table"]
            guarded.extend([rows._bins, rows._scores, rows._base, rows._trees])
        if not validated or name.startswith(TRUSTED):
            return
        if event == "return" and frame.f_code.co_name == "fit":
            return  # entered with X and y, before validation
        arrays = [array for value in (*frame.f_locals.values(), argument) for array in arrays_in(value)]
        if any(np.shares_memory(array, kept) for array in arrays for kept in guarded):
            found.add((name, frame.f_code.co_name))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        fitted(estimator, *((X, y) if table is None else (table,)), **more)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert validated
    return found


@pytest.mark.each_value
@pytest.mark.parametrize("estimator, solver, kind, storage", every_storage(list(STORAGES)))
def test_no_frame_but_the_gates_holds_the_data(estimator, solver, kind, storage, rng):
    X, y = STORAGES[storage](rng.normal(size=(300, 3))), LABELS[labels_of(kind)]
    assert frames_with_data(solved(estimator, solver, kind), X, y) == set()


WAYS = {
    "table": lambda rows: rows._blocks.table,
    "part": lambda rows: stored_arrays(rows._blocks.table)[0][1:],
    "labels": lambda rows: rows._y,
    "in a list": lambda rows: [1, rows._blocks.table],
    "on a solver": lambda rows: setattr(solver := GradientDescent(), "kept", rows._y[:2]) or solver,
}


def leak(monkeypatch, what, kind=Oracle, method="ask"):
    """Make the oracle, or a query, hand what it holds to a function of the package's own."""
    code = compile("def peek(table):\n    return table\n", str(PACKAGE / "solvers" / "_base.py"), "exec")
    scope, ask = {}, getattr(kind, method)
    exec(code, scope)

    def asking(self, asked):
        held = self._rows if kind is Oracle else asked
        if not isinstance(held, ColumnCells):  # of the first of two stages; the second one leaks
            scope["peek"](what(held))
        return ask(self, asked)

    monkeypatch.setattr(kind, method, asking)


def watched():
    """Every way with the first estimator stored in every way, and with each of the others in one, in turn."""
    for number, p in enumerate(LEADING):
        for turn, way in enumerate(WAYS):
            names = storages_of(p.values[0], list(STORAGES))
            for storage in names if not number else [names[(number + turn) % len(names)]]:
                yield pytest.param(p.values[0], storage, way, id=f"{p.id}-{storage}-{way}")


@pytest.mark.each_value
@pytest.mark.slow
@twin
@pytest.mark.parametrize("estimator, storage, way", list(watched()))
def test_the_watch_sees_a_side_door(estimator, storage, way, rng, monkeypatch):
    """The twin: whoever is handed the table, a part of it or the labels is caught, also where they are copies or wrapped."""
    leak(monkeypatch, WAYS[way])
    X = STORAGES[storage](rng.normal(size=(300, 3)))
    assert ("solvers/_base.py", "peek") in frames_with_data(clone(estimator), X, LABELS["binary"])


@pytest.mark.each_value
@pytest.mark.parametrize("inference", (False, True))
@pytest.mark.parametrize("kind", (DPAdditiveClassifier, partial(DPAdditiveRegressor, target_bounds=(0, 1))))
def test_no_frame_holds_rows_that_the_gate_has_mapped(kind, inference, rng, monkeypatch):
    """Those of an additive model with private knots; the twin hands them out."""
    X, y = rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000)
    model = kind(epsilon=9.0, feature_bounds=1.0, knots="private", inference=inference)
    assert frames_with_data(model, X, y) == set()
    width = independent(model.basis_).size if inference else model.basis_.n_features
    assert model.basis_.placed and width < finest(model.basis_).n_features
    leak(monkeypatch, lambda rows: rows._blocks.table if rows.n_features == width else None)
    assert frames_with_data(model, X, y) == {("solvers/_base.py", "peek")}


@pytest.mark.parametrize(
    "kind", (partial(DPGradientBoostingRegressor, target_bounds=(0, 1)), *slow(DPGradientBoostingClassifier))
)
def test_no_frame_holds_bins_and_scores(kind, rng, monkeypatch):
    """Those of a boosted model, in memory and in partitions; the twins hand out the bins, the scores and the labels."""
    monkeypatch.setattr(_rule, "N_TREES", 3)
    monkeypatch.setattr(standardized_gd, "NOISELESS", 3)  # the largest number of steps
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)
    X, y = rng.normal(size=(6000, 3)), rng.integers(0, 2, 6000)
    model, table = (
        kind(epsilon=9.0, feature_bounds=1.0),
        chunks(lambda: ((X[s : s + 1000], y[s : s + 1000]) for s in range(0, 6000, 1000))),
    )
    assert frames_with_data(model, X, y) == frames_with_data(model, X, y, table) == set() and model.trees_ is not None
    for what in ("_bins", "_scores", "_base", "_trees"):
        with monkeypatch.context() as twin:
            leak(twin, lambda rows, what=what: getattr(rows, what, None))
            assert frames_with_data(model, X, y) == {("solvers/_base.py", "peek")}


@pytest.mark.parametrize("name", FREE)
def test_no_frame_holds_the_rows_of_estimators_without_solver(name, rng, monkeypatch):
    """The twin hands them out."""
    X, model = np.abs(rng.normal(size=(300, 3))), getattr(skdp, name)()
    model = model.set_params(feature_bounds=1.0) if "feature_bounds" in model.get_params() else model
    assert frames_with_data(model, X, LABELS["binary"]) == set()
    leak(monkeypatch, lambda rows: rows._blocks.table)
    assert frames_with_data(model, X, LABELS["binary"]) == {("solvers/_base.py", "peek")}


def test_no_frame_holds_the_groups(rng, monkeypatch):
    """Nor the numbers that stand for them behind the oracle; the twin hands these out."""
    X, y, groups = rng.normal(size=(300, 3)), LABELS["binary"], np.arange(300) % 3
    model = brief_groups()
    assert frames_with_data(model, X, y, groups=groups) == set()
    leak(monkeypatch, lambda rows: rows._groups)
    assert frames_with_data(model, X, y, groups=groups) == {("solvers/_base.py", "peek")}


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks of 128 records, so that the table has three."""
    monkeypatch.setattr(summation, "LONGEST", 128)


def in_partitions(estimator, X, y):
    """The table in partitions, with groups for an estimator that takes them."""
    columns = [X, y, *([np.arange(300) % 3] if estimator._task_class.takes_groups else [])]
    return chunks(lambda: (tuple(column[s : s + 100] for column in columns) for s in range(0, 300, 100)))


def named(value):
    """Name of an estimator or a storage."""
    return value if isinstance(value, str) else f"{type(value).__name__}-{value.solver.name}"


PARTITIONED = [p.values[0] for p in LEADING if p.values[0].solver.name not in IN_MEMORY]
WAYS_IN_PARTITIONS = {
    "table": lambda rows: rows._engine._partitions[1].rows[0]._blocks.table,
    "part": lambda rows: stored_arrays(rows._engine._partitions[1].chunks[0].X)[0][1:],
    "labels": lambda rows: rows._engine._partitions[2].rows[0]._y,
    "in a list": lambda rows: [1, rows._engine._partitions[0].chunks[0].X],
}


@pytest.mark.each_value
@pytest.mark.parametrize("estimator, storage", [(p, s) for p in PARTITIONED for s in storages_of(p, ["C", "csr"])], ids=named)
def test_no_frame_but_the_gates_holds_a_part_of_a_table(estimator, storage, rng, short_chunks):
    """In the thread of the fit, and in those that work on partitions."""
    X, y = STORAGES[storage](rng.normal(size=(300, 3))), LABELS["binary"]
    assert frames_with_data(clone(estimator), X, y, in_partitions(estimator, X, y)) == set()


@pytest.mark.each_value
@twin
@pytest.mark.parametrize("way", (*WAYS_IN_PARTITIONS, "in a thread"))
@pytest.mark.parametrize("solver", ("gd", "sgd"))
def test_the_watch_sees_a_part_of_a_table(solver, way, rng, short_chunks, monkeypatch):
    """The twin: whoever is handed a part of the private file is caught."""
    if way == "in a thread":
        leak(monkeypatch, lambda rows: rows._blocks.table, Gradient, "partial")
    else:
        leak(monkeypatch, WAYS_IN_PARTITIONS[way])
    model = skdp.DPLogisticRegression(solver=brief(SOLVERS[solver]))
    for storage in ("C", "csr"):
        X, y = STORAGES[storage](rng.normal(size=(300, 3))), LABELS["binary"]
        assert frames_with_data(model, X, y, in_partitions(model, X, y)) == {("solvers/_base.py", "peek")}


def training_values(thing, X, y):
    """Training values that a pickle of a thing has among its bytes, as float64 or float32 in either byte order."""
    content = pickle.dumps(thing)
    numbers = np.concatenate([np.ravel(stored_arrays(X)[0]), np.ravel(y)]).astype(float)
    casts = [np.dtype(order + kind) for order in "<>" for kind in ("f8", "f4")]
    return [value for value in numbers for cast in casts if np.array(value).astype(cast).tobytes() in content]


def printed_values(thing, X):
    """Training values whose first seven digits are printed by a thing."""
    text = " ".join([str(thing), repr(thing), thing._repr_html_(), getattr(thing, "to_json", str)()])
    return [value for value in np.ravel(stored_arrays(X)[0]).astype(float) if f"{abs(value):.9f}"[:9] in text]


REAL_STORAGES = [name for name in STORAGES if name != "int8"]  # eight random bits are found by chance


@pytest.mark.each_value
@pytest.mark.parametrize("estimator, solver, kind, storage", every_storage(REAL_STORAGES))
def test_a_pickle_holds_no_training_value(estimator, solver, kind, storage, rng):
    """Nor does the report, in any of its forms; targets are random doubles too, and class labels are public as a set."""
    X, y = STORAGES[storage](rng.normal(size=(300, 3))), LABELS[labels_of(kind)]
    model = fitted(solved(estimator, solver, kind), X, y)
    if labels_of(kind) == "numbers":
        assert (
            training_values(model, X, y) == training_values(model, X, y / 4) == training_values(model.privacy_report_, X, y) == []
        )
    assert training_values(model, released_by(model)[..., 1:], [])  # the search finds what is there
    assert training_values(model, X, []) == []
    assert training_values(model.privacy_report_, X, []) == []
    assert printed_values(model.privacy_report_, X) == []


@every
def test_neither_does_a_pipeline_hold_any(estimator, rng):
    """Of given features, of scaled ones, and with data frames between the steps."""
    X, y = rng.normal(size=(300, 3)), LABELS["binary"]
    for output in ("default", "pandas"):
        pipeline = fitted(make_pipeline(BoundedScaler((-3, 3)), clone(estimator)).set_output(transform=output), X, y)
        assert hasattr(pipeline[-1], "feature_names_in_") == (output == "pandas")
        scaled = np.asarray(pipeline[:-1].transform(X))
        scaled = scaled[np.abs(scaled) < 1]  # which are public bounds
        assert training_values(pipeline, released_by(pipeline[-1])[..., 1:], [])
        assert training_values(pipeline, np.append(X, scaled), []) == []
        assert printed_values(pipeline[-1].privacy_report_, np.append(X, scaled)) == []


KEPT = {
    "rows": lambda X: X[7:9],
    "float": lambda X: float(X[3, 1]),
    "float32": lambda X: np.float32(X[0, 0]),
    "big-endian": lambda X: X[:1].astype(">f8"),
}


@pytest.mark.each_value
@twin
@pytest.mark.parametrize(
    "estimator, solver, kind, kept", pairwise((*chosen[:3], kept) for chosen in every_storage(DENSE) for kept in KEPT)
)
def test_the_search_sees_what_is_kept(estimator, solver, kind, kept, rng):
    """The twin: one value, in any precision, on the model or in its report, is found."""
    X, keep = rng.normal(size=(300, 3)), KEPT[kept]
    model = fitted(solved(estimator, solver, kind), X, LABELS[labels_of(kind)])
    model.kept_ = keep(X)
    assert training_values(model, X, [])
    assert printed_values(replace(model.privacy_report_, noise_size=f"the largest is {X.max()}"), X) == [X.max()]
    assert training_values(replace(model.privacy_report_, noise_size=keep(X)), X, [])


@pytest.fixture
def frozen():
    """What was there before the test is out of sight of the collector, so that it looks through what the test makes alone."""
    gc.freeze()


def held_by(estimator):
    """Tables, oracles and sources of noise that outlive a fit, and forbidden kinds that hang on the estimator at any depth."""
    gc.collect()
    rows = [thing for thing in gc.get_objects() if isinstance(thing, HOLDERS)]
    content = pickle.dumps(vars(estimator))
    return rows, {kind for kind in FORBIDDEN if kind in content}


HOLDERS = (TrainingData, Oracle, NoiseSource, Partition, PartitionedCells, PartitionedRows, PartitionedSample, ThreadEngine)
FORBIDDEN = {
    b"Oracle",
    b"Partition",
    b"NoiseSource",
    b"generator_ctor",
    b"randomstate_ctor",
    b"TrainingData",
    b"Records",
}  # as pickles name them


@every
def test_a_fitted_estimator_keeps_no_rows_and_no_generator(estimator, rng, frozen):
    model = fitted(clone(estimator), rng.normal(size=(50, 2)), np.arange(50) % 2)
    assert held_by(model) == ([], set())


@pytest.mark.parametrize("estimator", PARTITIONED, ids=named)
def test_neither_does_one_that_was_fitted_to_a_table_in_partitions(estimator, rng, frozen, short_chunks):
    """Nor a training value, in the model or in its report."""
    X, y = rng.normal(size=(300, 3)), LABELS["binary"]
    model = fitted(clone(estimator), in_partitions(estimator, X, y))
    assert held_by(model) == ([], set())
    assert training_values(model, X, []) == training_values(model.privacy_report_, X, []) == []
    assert printed_values(model.privacy_report_, X) == []


@twin
@every
def test_what_is_kept_is_seen(estimator, rng, frozen):
    """The twin: rows anywhere, and a generator inside of another object."""
    X, y = rng.normal(size=(50, 2)), np.arange(50) % 2
    model = fitted(clone(estimator), X, y)
    model.kept_ = {"deep": [TrainingData(X, y, data_norm=1.0)]}
    rows, kinds = held_by(model)
    assert [type(thing) for thing in rows] == [TrainingData] and b"TrainingData" in kinds
    del rows
    model.kept_ = {"deep": [np.random.default_rng(0)]}
    assert held_by(model) == ([], {b"generator_ctor"})

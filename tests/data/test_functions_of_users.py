"""Functions of the user's that yield or map records: what they overwrite, and what their errors quote."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pandas as pd
import pytest
from saddles import Regression
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline

from skdp import LowSignalWarning, OutsideGuaranteeWarning, SourceError, WeakPrivacyWarning
from skdp.data import chunks
from skdp.data._reading import Stream
from skdp.estimators import DPGroupDROClassifier, DPLinearRegression, DPLogisticRegression, DPMinimax, DPTabularClassifier
from skdp.metrics import dp_accuracy_score, evaluate
from skdp.model_selection import DPGridSearchCV
from skdp.preprocessing import LearnedSchema, from_schema
from skdp.privacy.data import summation
from skdp.privacy.errors import Silence, silent, warn
from skdp.solvers import SGDA, GradientDescent
from skdp.testing import reproducible_noise

N, LENGTH, SECRET = 10_000, 500, "record-a1"
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 3))
Y = (X[:, 0] > 0).astype(int)
MODEL = DPLogisticRegression(epsilon=1.0, feature_bounds=1.0, classes=[0, 1])


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


def fresh(length=LENGTH):
    for start in range(0, N, length):
        yield X[start : start + length].copy(), Y[start : start + length].copy()


def overwriting(length=LENGTH):
    table, targets = np.empty((length, 3)), np.empty(length, dtype=int)
    for x, y in fresh(length):
        table[: len(x)], targets[: len(y)] = x, y
        yield table[: len(x)], targets[: len(y)]


def fitted(table):
    with reproducible_noise(0):
        return MODEL.fit(table).coef_.copy()


class Overwriting:
    def __init__(self):
        self.result = np.empty((LENGTH, 3))

    def __call__(self, x):
        self.result[:] = x
        return self.result


@pytest.mark.exhaustive
@pytest.mark.parametrize("cache", ("disk", None))
@pytest.mark.parametrize("length", (LENGTH, summation.BLOCK))  # chunks of several parts, and of one
def test_a_function_that_fills_one_array_again_and_again_repeats_no_record(cache, length):
    assert np.array_equal(fitted(chunks(lambda: overwriting(length), cache=cache)), fitted(chunks(fresh)))


@pytest.mark.slow
def test_a_map_that_fills_one_array_again_and_again_repeats_no_record():
    assert np.array_equal(fitted(chunks(fresh).mapped(Overwriting())), fitted(chunks(fresh)))


@pytest.mark.parametrize("error", (ValueError, SourceError, SystemExit, GeneratorExit))
@pytest.mark.parametrize("cache", ("disk", None))
def test_a_map_of_the_user_that_fails_quotes_no_record(cache, error):
    def failing(x):
        raise error(SECRET)

    with pytest.raises(SourceError) as caught:
        fitted(chunks(fresh, cache=cache).mapped(failing))
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_task_of_a_dask_collection_that_fails_without_a_cluster_quotes_no_record():
    arrays = pytest.importorskip("dask.array")

    def failing(block):
        raise ValueError(SECRET)

    table = arrays.from_array(X, chunks=(2500, 3)).map_blocks(failing, dtype=float, meta=np.zeros((0, 3)))
    with pytest.raises(SourceError) as caught:
        MODEL.fit(table, arrays.from_array(Y, chunks=2500))
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_one_record_of_objects_does_not_change_how_the_others_are_rounded():
    def objects():
        for number, (x, y) in enumerate(fresh()):
            yield (x.astype(object) if number == 3 else x), y

    first, second = (list(Stream(chunks(f, dtype="float32"), MODEL._task().part_reader(None)).chunks()) for f in (objects, fresh))
    assert all(np.array_equal(a.X, b.X) and a.X.dtype == np.float32 for a, b in zip(first, second, strict=True))


def test_a_number_of_objects_that_is_too_large_for_the_dtype_is_refused():
    def objects():
        for x, y in fresh():
            x[0, 0] = 1e300
            yield x.astype(object), y

    with pytest.raises(ValueError, match="too large for dtype"):
        MODEL.fit(chunks(objects, dtype="float32"))


def careless(result):
    """Return the result, after warnings and floating-point errors that one record may decide."""
    warnings.warn(SECRET, UserWarning, stacklevel=2)
    warnings.warn(SECRET, FutureWarning, stacklevel=2)
    np.log(np.zeros(1)) + np.exp(np.full(1, 1e3))
    return result


class Carelessly:
    """An array that is converted with warnings, also when it is asked for its shape."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return careless(np.array(self.array, dtype=dtype))

    def __len__(self):
        return careless(len(self.array))

    @property
    def shape(self):
        return careless(self.array.shape)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.array, name)


class Frame(pd.DataFrame):
    """A frame that warns where it is read."""

    _constructor = property(lambda self: Frame)

    def __getitem__(self, name):
        return careless(super().__getitem__(name))

    def __array__(self, *given, **more):
        return careless(super().__array__(*given, **more))


class CarelessSaddle(Regression):
    """A saddle problem that warns where it sees records."""

    def at(self, batch, primal, dual):
        return careless(super().at(batch, primal, dual))


class CarelessMap(BaseEstimator, TransformerMixin):
    """A step that warns where it sees records."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return careless(X)


class CarelessModel:
    """A model that warns where it sees records."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return careless(np.full((len(X), 2), 0.5))


class CarelessCallback:
    """A callback that gets records, and warns of them."""

    def setup(self, estimator, context):
        """Nothing to do."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, X=None):
        careless(X)


def warning_chunks():
    yield careless((X[:1000], Y[:1000]))
    careless(None)
    yield X[1000:2000], Y[1000:2000]


SMALL, LABELS = X[:2000], Y[:2000]
FRAME = pd.DataFrame(SMALL, columns=["a", "b", "c"])
GIVEN = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": 1.0}
FEW = DPLogisticRegression(**GIVEN, classes=[0, 1], solver=GradientDescent(2))
WEIGHED = DPLogisticRegression(**GIVEN, classes=[0, 1], max_sample_weight=1.0)


STATED = {name: {"kind": "number", "bounds": [-1, 1]} for name in FRAME}


def dask_arrays(work=careless):
    da = pytest.importorskip("dask.array")
    return da.from_array(SMALL, chunks=(1000, 3)).map_blocks(work, meta=np.empty((0, 0))), da.from_array(LABELS, chunks=1000)


def searched():
    pipeline = Pipeline([("map", CarelessMap()), ("clf", DPLogisticRegression(feature_bounds=1.0, solver=GradientDescent(2)))])
    return DPGridSearchCV(pipeline, {"clf__alpha": [0.01, 0.1]}, epsilon=2.0, delta=1e-6).fit(SMALL, LABELS)


CARELESS = {
    "chunks": lambda: clone(FEW).fit(chunks(warning_chunks)),
    "chunks each pass": lambda: clone(FEW).fit(chunks(warning_chunks, cache=None)),
    "map": lambda: clone(FEW).fit(chunks(lambda: [(SMALL, LABELS)]).mapped(careless)),
    "X": lambda: clone(FEW).fit(Carelessly(SMALL), LABELS),
    "y": lambda: clone(FEW).fit(SMALL, Carelessly(LABELS)),
    "targets": lambda: DPLinearRegression(**GIVEN, target_bounds=(0, 1)).fit(SMALL, Carelessly(LABELS)),
    "weights": lambda: clone(WEIGHED).fit(SMALL, LABELS, sample_weight=Carelessly(np.ones(2000))),
    "groups": lambda: DPGroupDROClassifier(**GIVEN, classes=[0, 1], solver=SGDA(5)).fit(SMALL, LABELS, groups=Carelessly(LABELS)),
    "frame": lambda: clone(FEW).fit(Frame(FRAME), LABELS),
    "frame to learn": lambda: DPLogisticRegression(8.0, delta=1e-6, schema="learn", solver=GradientDescent(2)).fit(
        Frame(FRAME), LABELS
    ),
    "chosen": lambda: DPTabularClassifier(1.0, delta=1e-6, feature_bounds=1.0).fit(Carelessly(SMALL), LABELS),
    "schema": lambda: LearnedSchema(8.0, delta=1e-6).fit(Frame(FRAME)),
    "saddle": lambda: DPMinimax(CarelessSaddle, epsilon=1.0, data_norm=2.0).fit(SMALL, SMALL[:, 0]),
    "evaluate": lambda: evaluate(CarelessModel(), SMALL, LABELS, epsilon=1.0),
    "score": lambda: dp_accuracy_score(Carelessly(LABELS), Carelessly(np.full(2000, 0.5)), epsilon=1.0),
    "search": searched,
    "dask without a cluster": lambda: clone(FEW).fit(*dask_arrays()),
    "public transformer": lambda: from_schema({"columns": STATED}).fit_transform(Frame(FRAME)),
}


OURS = (LowSignalWarning, OutsideGuaranteeWarning)


@pytest.mark.slow
@pytest.mark.parametrize("how", ("always", "error"))
def test_no_warning_of_code_that_sees_records_is_heard(how):
    """One record may decide whether there is one; as an error, and with floating-point errors raised, it would stop the fit."""
    before = list(warnings.filters)
    for name, work in CARELESS.items():
        with warnings.catch_warnings(record=True) as heard, np.errstate(all="raise" if how == "error" else "warn"):
            warnings.simplefilter(how)
            for ours in OURS:
                warnings.filterwarnings("always", category=ours)
            work()
        assert not [str(w.message) for w in heard if w.category not in OURS], name
    assert warnings.filters == before


def test_what_the_package_says_is_heard_all_the_same():
    with pytest.warns(UserWarning, match="Neither schema nor feature_bounds"):
        DPTabularClassifier(1.0, delta=1e-6, classes=[0, 1]).fit(Carelessly(SMALL), LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(WeakPrivacyWarning):
            DPLogisticRegression(11.0, delta=1e-6, feature_bounds=1.0, classes=[0, 1]).fit(SMALL, LABELS)
    assert silent_filters() == 0


def silent_filters():
    return sum(entry is Silence.FILTER for entry in warnings.filters)


def test_threads_that_leave_in_any_order_leave_the_filters_as_they_were():
    """The twin: `warnings.catch_warnings` in each of two threads, the second of which restores what the first one set."""
    before, inside = list(warnings.filters), Barrier(2)
    first_left = Event()

    def first():
        with silent():
            inside.wait()
        first_left.set()

    def second():
        with silent():
            inside.wait()
            first_left.wait()
            assert silent_filters() == 1

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result()
    assert warnings.filters == before
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with silent(), silent():
            warn("public", UserWarning)
            careless(None)
        careless(None)
    assert [str(w.message) for w in heard[:3]] == ["public", SECRET, SECRET]


def test_a_callback_that_gets_records_tells_nothing_by_warnings():
    pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        clone(FEW).set_callbacks(CarelessCallback()).fit(SMALL, LABELS)
    assert [w.category.__name__ for w in heard] == ["OutsideGuaranteeWarning"]

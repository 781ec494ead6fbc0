"""Functions of the user's that yield or map records: what they overwrite, and what their errors quote."""

import numpy as np
import pytest

from skdp import SourceError
from skdp.data import chunks
from skdp.estimators import DPLogisticRegression
from skdp.estimators._partitioned import Stream
from skdp.privacy.data import summation
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

    first, second = (list(Stream(chunks(f, dtype="float32"), MODEL._part_reader(None)).chunks()) for f in (objects, fresh))
    assert all(np.array_equal(a.X, b.X) and a.X.dtype == np.float32 for a, b in zip(first, second, strict=True))


def test_a_number_of_objects_that_is_too_large_for_the_dtype_is_refused():
    def objects():
        for x, y in fresh():
            x[0, 0] = 1e300
            yield x.astype(object), y

    with pytest.raises(ValueError, match="too large for dtype"):
        MODEL.fit(chunks(objects, dtype="float32"))

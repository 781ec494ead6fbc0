"""Fits of tables in partitions: the same bits as in memory, whatever the source."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import SourceError
from skdp.data import chunks, npy
from skdp.estimators import DPLinearRegression, DPLogisticRegression, DPQuantileRegressor
from skdp.privacy.data import summation
from skdp.solvers import SGD, GradientDescent
from skdp.testing import reproducible_noise

N, D = 13_000, 3  # four chunks of one block, the last one short


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    score = X @ rng.normal(size=D)
    return X, np.array(["no", "yes"])[(score + rng.normal(size=N) > 0).astype(int)], np.clip(score, -3, 3)


def in_chunks(X, y, length):
    return lambda: ((X[start : start + length], y[start : start + length]) for start in range(0, len(X), length))


KINDS = {
    "dense": np.asarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "int": lambda X: X.astype(np.int64),
    "float32": np.float32,
}
FITS = {
    "logistic": (DPLogisticRegression(data_norm=3.0), 1),
    "newton": (DPLogisticRegression(data_norm=3.0, classes=["no", "yes"], solver="newton"), 1),
    "linear": (DPLinearRegression(data_norm=3.0, target_bounds=(-3, 3)), 2),
    "ssp": (DPLinearRegression(data_norm=3.0, target_bounds=(-3, 3), solver="ssp"), 2),
    "quantile": (DPQuantileRegressor(data_norm=3.0, target_bounds=(-3, 3)), 2),
}


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("cache", ("disk", None))
@pytest.mark.parametrize("name", FITS)
def test_the_source_changes_no_bit(name, cache, table, short_chunks, tmp_path):
    estimator, target = FITS[name]
    X, y = table[0], table[target]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    with reproducible_noise(0):
        memory = estimator.fit(X, y).coef_
    for source in (npy(tmp_path / "X.npy", tmp_path / "y.npy", cache=cache), chunks(in_chunks(X, y, 777), cache=cache)):
        with reproducible_noise(0):
            model = estimator.fit(source)
        assert np.array_equal(model.coef_, memory)
        assert np.array_equal(model.predict(source), model.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ("dense, csr", "csr, dense", "csc, csr", "dense, int", "dense, float32"))
def test_how_a_part_is_stored_changes_nothing(kinds, table, short_chunks):
    """Transformers and readers of files choose it by the records, part by part."""
    first, *others = (KINDS[kind] for kind in kinds.split(", "))
    X, y, model = table[0].round(), table[1], FITS["logistic"][0]

    def parts(*kinds):
        return lambda: (
            (kinds[min(i, len(kinds) - 1)](X[s : s + 3000]), y[s : s + 3000]) for i, s in enumerate(range(0, N, 3000))
        )

    with reproducible_noise(0):
        mixed = model.fit(chunks(parts(first, *others)))
    with reproducible_noise(0):
        alike = model.fit(chunks(parts(first if first is not sparse.csc_array else sparse.csr_array)))
    assert np.array_equal(mixed.coef_, alike.coef_)
    assert mixed.privacy_report_.to_dict()["releases"] == alike.privacy_report_.to_dict()["releases"]
    assert mixed.privacy_report_.public == alike.privacy_report_.public


def test_a_source_that_changes_stops_the_fit_by_a_sentence_that_quotes_nothing(table):
    X, y, reads = *table[:2], []

    def changing():
        reads.append(1)
        changed = X * [1, 1, 1 + 1e-9] if len(reads) == 3 else X
        return ((changed[s : s + 4000], y[s : s + 4000]) for s in range(0, N, 4000))

    model = clone(FITS["logistic"][0])
    with pytest.raises(SourceError, match=r"^The source changed during the fit\. The charge stands"):
        model.fit(chunks(changing, cache=None))
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("solver", ("objective", "output", "skgd", SGD(sampling="single_pass")))
def test_solvers_that_need_memory_are_refused_before_the_table_is_read(solver, table):
    def unread():
        raise AssertionError("the table was read")

    model = DPLogisticRegression(solver=solver, classes=["no", "yes"])
    with pytest.raises(ValueError, match="needs a table in memory"):
        model.fit(chunks(unread, n_features=D))


AS_LABELS = {
    "int64": np.asarray,
    "float64": lambda y: y.astype(float),
    "bool": lambda y: y.astype(bool),
    "int8": lambda y: y.astype(np.int8),
}


@pytest.mark.parametrize("classes", (None, [0, 1]))
@pytest.mark.parametrize("cache", ("disk", None))
def test_the_types_of_the_labels_of_later_parts_change_nothing(cache, classes, table, short_chunks):
    """One record may decide that of a part: with a label 1.0 among integers, all are floats."""
    X, y = table[0], (table[1] == "yes").astype(int)
    starts = range(0, N, N // len(AS_LABELS))
    parts = [(X[start : start + N // 4], y[start : start + N // 4]) for start in starts]
    odd = [(X, make(y)) for (X, y), make in zip(parts, AS_LABELS.values(), strict=True)]
    model, other = (
        fitted_part_by_part(DPLogisticRegression(data_norm=3.0, classes=classes, solver=GradientDescent(3)), given, cache)
        for given in (parts, odd)
    )
    assert np.array_equal(model.coef_, other.coef_)
    assert model.classes_.tolist() == [0, 1] and model.classes_.dtype == other.classes_.dtype == np.int64


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.privacy.LowSignalWarning")
def test_the_type_of_the_labels_of_the_first_part_changes_nothing(table, short_chunks):
    """A label 1.0 among integers decides it, where a function of the user's makes the parts; text and truths stay as they are."""
    X, y = table[0], (table[1] == "yes").astype(int)
    for make, expected in ((list, np.int64), (lambda y: [*y[:-1].tolist(), float(y[-1])], np.int64), (lambda y: y == 1, bool)):
        parts = [(X[: N // 2], make(y[: N // 2])), (X[N // 2 :], y[N // 2 :])]
        model = fitted_part_by_part(DPLogisticRegression(data_norm=3.0, solver=GradientDescent(3)), parts, None)
        assert model.classes_.dtype == expected and model.classes_.tolist() == [0, 1]
        frames = [(pd.DataFrame(rows, columns=[f"c{place}" for place in range(X.shape[1])]), labels) for rows, labels in parts]
        model = fitted_part_by_part(DPLogisticRegression(schema="learn", solver=GradientDescent(3)), frames, None)
        assert model.classes_.dtype == expected and model.classes_.tolist() == [0, 1]


def fitted_part_by_part(estimator, parts, cache):
    with reproducible_noise(0):
        return estimator.fit(chunks(lambda: iter(parts), cache=cache))

"""Fits of tables in partitions: the same bits as in memory, whatever the source."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import seeded
from scipy import sparse
from sklearn.base import clone

from skdp import SourceError, _progress
from skdp.data import chunks, npy, parquet
from skdp.estimators import DPLinearRegression, DPLogisticRegression, DPQuantileRegressor
from skdp.metrics import evaluate
from skdp.preprocessing import LearnedSchema
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
    with pytest.raises(SourceError, match=r"^The source changed while it was read\. The charge stands"):
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


SIZES = np.random.default_rng(5).geometric(0.3, N)
WHO = np.random.default_rng(6).permutation(np.repeat(np.arange(N), SIZES)[:N])  # rows of a person are all over the table
OF_PERSONS = DPLogisticRegression(data_norm=3.0, classes=["no", "yes"], privacy_unit="person", solver=GradientDescent(3))


def rows_of_persons(table, ids=WHO):
    """A frame of the records with a column of ids, and the labels."""
    frame = pd.DataFrame(table[0], columns=list("abc"))
    frame.insert(1, "patient", np.array([f"secret{one}" for one in ids]))
    return frame, table[1]


def quietly(model, *given, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the missing noise
        return seeded.fitted(clone(model), *given, **named)


@pytest.mark.parametrize("learned", (False, True))
def test_rows_of_persons_weigh_what_they_weigh_in_memory(learned, table, short_chunks, tmp_path):
    """Without noise, one misplaced weight would show."""
    frame, y = rows_of_persons(table)
    X = frame.drop(columns="patient")
    model = clone(OF_PERSONS).set_params(epsilon=np.inf)
    if learned:
        model.set_params(epsilon=9.0, data_norm=None, schema="learn")
    memory = quietly(model, X, y, persons=WHO)
    frame.assign(y=y).to_parquet(tmp_path / "a.parquet", row_group_size=999)
    tables = [(chunks(in_chunks(frame, y, length)), "patient") for length in (N, 4400, 1900)]  # 1, 3 and 7 of them
    tables += [(parquet(tmp_path / "a.parquet", target="y", cache=cache), "patient") for cache in ("disk", None)]
    for source, ids in (*tables[2 * learned :], (chunks(in_chunks(X, y, 1900)), WHO)):
        part = quietly(model, source, persons=ids)
        assert np.array_equal(part.coef_, memory.coef_) and part.feature_names_in_.tolist() == list("abc")
    public = [one.privacy_report_.public for one in (part, memory)]
    assert public[0].pop("table").keys() == {"source", "kept_copy", "reads_of_source"} and public[0] == public[1]


def test_nothing_tells_the_number_of_rows_of_a_person_in_partitions(table, short_chunks, tmp_path, capsys, monkeypatch):
    """What is stated, printed and warned of is the same if a person has 9000 more rows, in more chunks and files."""
    monkeypatch.setattr(_progress, "PAUSE", 0.0)
    seen, (frame, y) = [], rows_of_persons(table)
    for more in (0, 9000):
        rows = np.r_[np.arange(N), np.full(more, 7)]
        (tmp_path / str(more)).mkdir()
        for start in range(0, rows.size, 4000):
            part = rows[start : start + 4000]
            frame.iloc[part].assign(y=y[part]).to_parquet(tmp_path / str(more) / f"{start:05}.parquet")
        source = parquet(tmp_path / str(more), target="y")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            models = [
                seeded.fitted(clone(OF_PERSONS).set_params(verbose=2, epsilon=1.0), source, persons="patient"),
                seeded.fitted(LearnedSchema(1.0, privacy_unit="person"), source, persons="patient"),
            ]
        reports = [model.privacy_report_.to_dict() for model in models]
        reports += [clone(OF_PERSONS).set_params(epsilon=1.0).plan(source, persons="patient").to_dict()]
        for report in reports:
            report.pop("learned")
        left = pickle.dumps(models) + capsys.readouterr().out.encode()
        assert b"secret" not in left and b"partitions" not in left and not any("secret" in str(one.message) for one in heard)
        seen.append((json.dumps(reports), [str(one.message) for one in heard]))
    assert seen[0] == seen[1] and str(N) not in seen[0][0] and '"partitions"' not in seen[0][0]


def missing(frame):
    return frame.assign(patient=frame["patient"].where(frame.index != N - 1, None))


OF_IDS = {
    "missing": (missing, "patient", ValueError, "persons has missing ids"),
    "mixed": (
        lambda frame: frame.assign(patient=frame.index if frame.index[0] else frame["patient"]),
        "patient",
        TypeError,
        "nor all",
    ),
    "other column": (lambda frame: frame, "person", ValueError, "persons='person' is no column of X"),
    "no column": (np.asarray, "patient", ValueError, "persons='patient' is no column of X"),
    "length": (lambda frame: frame[["a", "b"]], WHO[1:], ValueError, "X, y and persons have different lengths"),
    "one": (lambda frame: frame.assign(patient=3), "patient", ValueError, "one person only"),
}


@pytest.mark.parametrize("case", OF_IDS)
def test_ids_in_partitions_that_do_not_tell_persons_are_refused(case, table):
    change, persons, kind, message = OF_IDS[case]
    frame, y = rows_of_persons(table)

    def parts():
        return ((change(frame[s : s + 5000]), y[s : s + 5000]) for s in range(0, N, 5000))

    with pytest.raises(kind, match=message) as caught:
        OF_PERSONS.fit(chunks(parts), persons=persons)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("cache, reading", (("disk", 2), (None, 3)))
def test_ids_that_change_stop_the_fit(cache, reading, table):
    """A weight would be that of a row of somebody else."""
    frame, y = rows_of_persons(table)
    other, reads = frame.assign(patient=np.roll(frame["patient"], 1)), []

    def changing():
        reads.append(1)
        return in_chunks(other if len(reads) >= reading else frame, y, 4000)()

    with pytest.raises(SourceError, match=r"other ids of persons.*has changed\.$" if reading == 2 else "The charge stands"):
        clone(OF_PERSONS).fit(chunks(changing, cache=cache), persons="patient")


def test_what_needs_all_rows_of_a_person_at_once_is_refused_in_partitions(table):
    frame, y = rows_of_persons(table)
    source = chunks(in_chunks(frame, y, 5000))
    for solver in ("inference", "sgd", "skgd"):
        with pytest.raises(ValueError, match="it needs a table in memory"):
            clone(OF_PERSONS).set_params(solver=solver, epsilon=1.0).fit(source, persons="patient")
    with pytest.raises(TypeError, match="cannot predict for one person after the other"):
        evaluate(DPLogisticRegression(data_norm=3.0), source, y, persons=WHO)
    with pytest.raises(ValueError, match="shape \\(n_rows, 2\\)"):
        clone(OF_PERSONS).fit(chunks(in_chunks(frame, np.c_[y, y], 5000)), persons="patient")

"""Benchmark tables in their own units: rows and targets are those of the prepared tables, in the same order."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from benchmarks import tables
from benchmarks.frames import FRAMES, load_frame
from skdp.preprocessing import AdditiveBasis
from skdp.preprocessing._column_kinds import OTHER
from skdp.preprocessing._schema import Schema

pytestmark = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"),
    reason="tables for benchmarks, which run with the newest libraries: once is enough",
)

# A column of the prepared table before rows are shortened, and what it is of the raw one
SAME = {
    "adult": (-5, lambda X: (X["age"] - 17) / 73),
    "bank": (-1, lambda X: np.log1p(X["previous"]) / np.log1p(300)),
    "mammography": (5, lambda X: X["x5"].clip(-4, 4) / 4),
    "covertype": (10 + 4 + 21, lambda X: X["soil type"] == 22),
    "ijcnn1": (7, lambda X: X["x7"]),
    "spambase": (54, lambda X: np.log1p(X["average run of capitals"]) / np.log1p(1200)),
    "california": (-1, lambda X: np.log1p(X["households"]) / np.log1p(6100) / 3),
    "bike": (-2, lambda X: X["hum"] / np.sqrt(12)),
}
N_COLUMNS = {
    "adult": 13,
    "bank": 16,
    "mammography": 6,
    "covertype": 12,
    "ijcnn1": 22,
    "spambase": 57,
    "california": 9,
    "bike": 12,
}


def test_every_frame_is_checked_here():
    assert list(SAME) == list(N_COLUMNS) == list(FRAMES)


@pytest.mark.parametrize("name", SAME)
def test_frames_have_the_rows_and_targets_of_the_tables(name, monkeypatch):
    if not tables.data_directory().exists():
        pytest.skip("no data sets: SKDP_DATA names no directory")
    monkeypatch.setattr(tables, "bounded_rows", lambda X: X)
    prepared, frame = tables.load(name), load_frame(name)
    place, column_of = SAME[name]
    assert frame.table.task == prepared.task
    for part in ("train", "test"):
        np.testing.assert_array_equal(getattr(frame.table, f"y_{part}"), getattr(prepared, f"y_{part}"))
        expected = getattr(prepared, f"X_{part}")[:, place]
        assert np.unique(expected).size > 1
        np.testing.assert_allclose(column_of(getattr(frame.table, f"X_{part}")), expected, rtol=1e-12)
    facts = Schema.read(frame.schema)
    basis = AdditiveBasis(facts, 4).transform(frame.table.X_test[:50])
    assert basis.shape == (50, AdditiveBasis(facts, 4).n_features) and len(facts.columns) == N_COLUMNS[name]


@pytest.mark.parametrize("name", ("adult", "bank", "covertype", "california", "bike"))
def test_hardly_any_category_is_unknown(name):
    """Categories that were misspelt would all be "other"."""
    if not tables.data_directory().exists():
        pytest.skip("no data sets: SKDP_DATA names no directory")
    frame = load_frame(name)
    facts = Schema.read(frame.schema)
    basis = AdditiveBasis(facts, 0)
    rows = basis.transform(frame.table.X_train[:2000])
    ends = {name: term.columns.stop - 1 for term in basis.terms for name in term.names if name in basis.categories}
    others = [end for name, end in ends.items() if OTHER not in facts.columns[name].categories]
    assert others and (rows[:, others] != 0).mean() < 0.03


def test_unknown_frame_lists_the_known():
    with pytest.raises(ValueError, match=r"'nothing'; expected one of adult, bank, .*bike"):
        load_frame("nothing")


@pytest.mark.parametrize("name", SAME)
def test_missing_file_names_the_variable(name, monkeypatch, tmp_path):
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="SKDP_DATA"):
        load_frame(name)

"""Predictions for tables in partitions, as Parquet files: written whole, in the order of the records, or not at all."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skdp.data import chunks, parquet, write_predictions
from skdp.estimators import DPAUCMaximizer, DPLinearRegression, DPLogisticRegression
from skdp.preprocessing import RowNormClipper
from skdp.privacy.data import summation
from skdp.privacy.errors import SourceError

N = 9000


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture
def trips(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(N, 2)), columns=["a", "b"])
    frame = frame.assign(y=np.where(frame["a"] > 0, "yes", "no"), z=frame["a"] / 2, trip=[f"trip {i}" for i in range(N)])
    frame.to_parquet(tmp_path / "trips.parquet", row_group_size=2500)
    return frame


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("out", ("out.parquet", "out"))
@pytest.mark.parametrize(
    "model, target, names",
    (
        (DPLogisticRegression(feature_bounds=1.0), "y", ["prediction", "probability of no", "probability of yes"]),
        (DPLinearRegression(feature_bounds=1.0, target_bounds=(-1, 1)), "z", ["prediction"]),
        (DPAUCMaximizer(feature_bounds=1.0, classes=["no", "yes"]), "y", ["score of yes"]),
        (make_pipeline(RowNormClipper(), DPLogisticRegression(data_norm=1.0)), "y", None),
    ),
)
def test_predictions_are_in_the_order_of_the_records(model, target, names, out, trips, tmp_path):
    table = parquet(tmp_path / "trips.parquet", columns=["a", "b"], target=target)
    model.fit(table)
    write_predictions(model, table, tmp_path / out, columns=["trip"])
    written = pd.read_parquet(tmp_path / out)
    assert written["trip"].tolist() == trips["trip"].tolist()
    names = names or ["prediction", "probability of no", "probability of yes"]
    assert list(written) == ["trip", *names]
    if target == "y" and "prediction" in names:
        assert written["prediction"].tolist() == model.predict(trips[["a", "b"]]).tolist()
    else:
        expected = model.decision_function(trips[["a", "b"]]) if target == "y" else model.predict(trips[["a", "b"]])
        np.testing.assert_allclose(written[names[0]], expected, rtol=1e-12, atol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["trips.parquet", out])
    assert (tmp_path / out).is_file() or len(list((tmp_path / out).iterdir())) == 3


@pytest.mark.parametrize("out", ("out.parquet", "out"))
@pytest.mark.parametrize("broken", ("in the middle", "too short"))
def test_nothing_is_written_if_the_source_fails(broken, out, trips, tmp_path):
    def factory():
        yield trips[["a", "b"]][:5000]
        if broken == "in the middle":
            raise SourceError("broken")

    table = chunks(factory)
    table.source.n_samples = N
    model = DPLogisticRegression(feature_bounds=1.0).fit(trips[["a", "b"]], trips["y"])
    with pytest.raises(SourceError):
        write_predictions(model, table, tmp_path / out)
    assert [path.name for path in tmp_path.iterdir()] == ["trips.parquet"]


def test_what_cannot_be_written_is_refused_before_the_table_is_read(trips, tmp_path):
    def factory():
        raise AssertionError("the table was read")

    model = DPLogisticRegression(feature_bounds=1.0).fit(trips[["a", "b"]], trips["y"])
    (tmp_path / "taken").mkdir()
    for out, message in (("taken", "exists already"), ("nowhere/out.parquet", "cannot be written")):
        with pytest.raises(ValueError, match=message):
            write_predictions(model, chunks(factory), tmp_path / out)
    with pytest.raises(TypeError, match="further columns"):
        write_predictions(model, chunks(factory), tmp_path / "out", columns=["trip"])
    table = parquet(tmp_path / "trips.parquet", columns=["a", "b"])
    with pytest.raises(ValueError, match=r"no columns \['ride'\]"):
        write_predictions(model, table, tmp_path / "out", columns=["ride"])
    with pytest.raises(TypeError, match="expected a table"):
        write_predictions(model, trips, tmp_path / "out")
    with pytest.raises(ValueError, match="no records"):
        write_predictions(model, chunks(lambda: []), tmp_path / "out")

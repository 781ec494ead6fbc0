"""Estimators that learn the columns of tables in partitions: the models of a frame, and nothing charged for a bad table."""

import numpy as np
import pandas as pd
import pytest
from hostile import SECRETS
from marks import slow
from seeded import fitted

from skdp import DPGroupDROClassifier, DPLinearRegression, DPLogisticRegression, PrivacyLedger, SourceError
from skdp.data import chunks, parquet
from skdp.estimators import _two_stages
from skdp.preprocessing import LearnedSchema
from skdp.privacy.data import summation

pytest.importorskip("pyarrow")
N = 9000
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2, N))
    frame = pd.DataFrame({"far": 1e5 + z[0], "hour": rng.integers(0, 24, N), "city": rng.choice(["A", "B", None], N)})
    return frame.assign(y=100.0 * (z[0] + z[1]))


def in_chunks(frame, cache="disk"):
    return chunks(lambda: ((frame.iloc[s : s + 777, :-1], frame.iloc[s : s + 777]["y"]) for s in range(0, N, 777)), cache=cache)


FITS = {
    "logistic": (DPLogisticRegression(2.0, schema="learn"), lambda y: np.where(y > 0, "yes", "no")),
    "classes": (DPLogisticRegression(2.0, schema="learn", classes=[0, 1]), lambda y: (y > 0).astype(int)),
    "linear": (DPLinearRegression(2.0, schema={"city": "either", "hour": {"kind": "number", "bounds": [0, 23]}}), lambda y: y),
    "searched": (DPLinearRegression(0.1, delta=1e-6, schema="learn"), lambda y: y),
    "mean": (DPLinearRegression(0.02, delta=1e-6, schema="learn"), lambda y: y),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", *slow("classes", "linear", "searched", "mean")])
def test_the_source_changes_no_bit(name, frame, tmp_path):
    estimator, target_of = FITS[name]
    frame = frame.assign(y=target_of(frame["y"]))
    frame.iloc[:5000].to_parquet(tmp_path / "a.parquet")
    frame.iloc[5000:].to_parquet(tmp_path / "b.parquet")
    X, files = frame.drop(columns="y"), parquet(tmp_path, target="y")
    memory = fitted(estimator, X, frame["y"])
    coef, schema, report, predicted = memory.coef_, memory.schema_, memory.privacy_report_, memory.predict(X)
    for table in (*((in_chunks(frame), in_chunks(frame, None)) if name == "linear" else ()), files):
        model = fitted(estimator, table)
        assert model.schema_ == schema and model.feature_names_in_.tolist() == list(X)
        np.testing.assert_array_equal(model.coef_, coef)
        assert model.privacy_report_.spent == report.spent and model.privacy_report_.releases == report.releases
        assert (report.releases[0].query == "TargetHistogram") == (name in ("searched", "mean")) and coef.any() == (
            name != "mean"
        )
        passes, stated = model.privacy_report_.public["passes"], model.privacy_report_.public["table"]
        assert stated["reads_of_source"] == (2 if table.cache else 2 + passes)
    np.testing.assert_array_equal(model.predict(files), predicted)
    if name == "classes":
        assert estimator.plan(files).releases == estimator.plan(X).releases


@pytest.mark.slow
def test_a_date_that_python_has_not_is_read_from_files(tmp_path):
    """As from a frame, of dates, of factors of dates and of times; an error would tell exactly that a record has one."""
    arrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    steps = np.arange(1000, dtype=np.int64) % 700
    steps[7] = np.iinfo(np.int32).max
    days, times = arrow.array(steps.astype(np.int32)).cast(arrow.date32()), arrow.array(steps).cast(arrow.time64("us"))
    columns = {"day": days, "factor": days.dictionary_encode(), "time": times, "y": (steps > 300).astype(int)}
    frame = pd.DataFrame({name: pd.Series(steps * unit).astype("m8[us]") for name, unit in (("day", 86400 * 10**6), ("time", 1))})
    files.write_table(arrow.table(columns), tmp_path / "a.parquet")
    model = fitted(DPLogisticRegression(3.0, schema={"factor": "ignore"}), parquet(tmp_path, target="y"))
    other = fitted(DPLogisticRegression(3.0, schema="learn"), frame, columns["y"])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    fitted(DPLogisticRegression(3.0, schema="learn"), parquet(tmp_path, target="y"))


@pytest.mark.slow
def test_groups_are_refused_before_the_table_is_read(frame, tmp_path, monkeypatch):
    """By the plan, too; with the schema of all columns that the message asks for, the fit works."""
    X, y, groups = frame.drop(columns="y"), np.where(frame["y"] > 0, "yes", "no"), np.where(frame["hour"] > 12, "late", "early")
    table = chunks(lambda: ((X.iloc[s : s + 777], y[s : s + 777], groups[s : s + 777]) for s in range(0, N, 777)))
    model = DPGroupDROClassifier(0.5, delta=1e-8, schema={"hour": "number"})
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=5.0, delta=1e-6) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(_two_stages, "loaded_cells", lambda *given: pytest.fail("the table was read"))
            for call in (model.fit, model.plan):
                with pytest.raises(TypeError, match=r"^DPGroupDROClassifier takes groups, .* LearnedSchema\(\)"):
                    call(table)
        assert not ledger.entries
    schema = fitted(LearnedSchema(2.0), table).schema_
    assert fitted(DPGroupDROClassifier(2.0, schema=schema), table).groups_.tolist() == ["early", "late"]


@pytest.mark.each_value
@pytest.mark.parametrize("of", (lambda frame: frame.assign(hour=frame["hour"] + 1), lambda frame: frame.assign(y=-frame["y"])))
@pytest.mark.parametrize("cache", ("disk", None))
def test_a_source_that_changes_between_the_stages_stops_the_fit_and_the_charge_stands(of, cache, frame, tmp_path):
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=5.0, delta=1e-6) as ledger:

        def parts():
            table = of(frame) if len(ledger.entries) else frame
            return ((table.iloc[s : s + 777, :-1], table.iloc[s : s + 777]["y"]) for s in range(0, N, 777))

        model = DPLinearRegression(0.5, delta=1e-8, schema="learn")
        with pytest.raises(SourceError, match=r"changed while it was read\. The charge stands, and nothing else has changed\.$"):
            model.fit(chunks(parts, cache=cache))
        assert len(ledger.entries) == 1 and not hasattr(model, "coef_")


@pytest.mark.slow
def test_bad_tables_are_refused_before_the_charge(frame, tmp_path):
    described = {"hour": {"kind": "number", "bounds": [0, 23]}}
    hostile = frame.assign(hour=pd.Series(frame["hour"], dtype=object))
    hostile.loc[8000, "hour"] = "secret 31415"
    labels = frame.assign(y=np.where(frame["y"] > 0, "yes", "no"))
    labels.loc[8000, "y"] = "secret 31415"
    targets = frame.assign(y=np.where(np.arange(N) == 8000, np.nan, frame["y"]))
    cases = [
        (DPLinearRegression(0.5, delta=1e-8, schema=described), hostile, ValueError),
        (DPLogisticRegression(0.5, delta=1e-8, schema="learn", classes=["no", "yes"]), labels, ValueError),
        (DPLinearRegression(0.5, delta=1e-8, schema="learn"), targets, ValueError),
        (DPLinearRegression(0.5, delta=1e-8, schema="learn", solver="objective"), frame, ValueError),
    ]
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=5.0, delta=1e-6) as ledger:
        for estimator, table, kind in cases:
            with pytest.raises(kind) as refusal:
                estimator.fit(in_chunks(table))
            assert not SECRETS.search(str(refusal.value))
        with pytest.raises(ValueError, match="does not tell its number of records"):
            DPLinearRegression(schema="learn").plan(in_chunks(frame))
        assert len(ledger.entries) == 0


def test_labels_of_two_kinds_are_refused_before_the_charge(frame, tmp_path):
    """By the message of a fit that learns no columns."""
    numbers = frame.assign(y=(frame["y"] > 0).astype(int))
    parts = lambda: ((part.iloc[:, :-1], part["y"]) for part in (numbers[:999], frame[999:].assign(y="a")))  # noqa: E731
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=5.0, delta=1e-6) as ledger:
        for schema in ("learn", {"hour": "number"}):
            with pytest.raises(ValueError, match="all text or all numbers"):
                DPLogisticRegression(0.5, delta=1e-8, schema=schema).fit(chunks(parts))
        assert not ledger.entries

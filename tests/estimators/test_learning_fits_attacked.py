"""Attacks on fits that learn their columns: a cell that decides how others are read, and failures after the charge."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest
import sklearn
from seeded import fitted

from skdp import DPAdditiveClassifier, DPLogisticRegression, PrivacyLedger
from skdp.preprocessing._frame_facts import FrameFacts, framed
from skdp.privacy.errors import OutsideGuaranteeWarning

N = 1000
HOURS = np.arange(N) % 24
LABELS = (HOURS > 11).astype(int)


@pytest.mark.parametrize("cell", [datetime(2031, 4, 15), np.timedelta64(7, "s"), pd.Timestamp("2031-04-15", tz="UTC")])
def test_one_cell_of_an_array_of_objects_does_not_decide_how_its_column_is_read(cell):
    """Pandas makes dates of a column of objects if all its cells are dates."""
    one = np.full((N, 1), cell, dtype=object)
    other = one.copy()
    other[7] = "secret"
    tables = [framed(one), framed(other)]
    facts = [FrameFacts.of(table, "learn") for table in tables]
    assert facts[0] == facts[1]
    cells = [np.delete(facts[0].cells(table), 7, axis=0) for table in tables]
    np.testing.assert_array_equal(*cells)


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["learn", {"city": {"kind": "category", "categories": ["A", "B"]}}])
def test_the_output_that_a_program_sets_changes_no_fit(schema):
    """Data frames of scikit-learn cannot be sparse, as the functions of additive models are."""
    frame = pd.DataFrame({"hour": HOURS, "height": HOURS / 7, "city": np.where(HOURS < 5, "A", "B")})
    given = {"epsilon": 8.0, "adjacency": "zero_out", "schema": schema, "random_state": 0}
    for kind in (DPAdditiveClassifier, DPLogisticRegression):
        usual = fitted(kind(**given), frame, LABELS)
        with sklearn.config_context(transform_output="pandas"):
            model = fitted(kind(**given), frame, LABELS)
            np.testing.assert_array_equal(model.decision_function(frame), usual.decision_function(frame))


def test_a_callback_gets_the_model_that_the_fit_returns():
    """It fails if what was learned is missing, after the charge."""
    callback = pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")
    frame = pd.DataFrame({"hour": HOURS, "height": HOURS / 7, "city": np.where(HOURS < 5, "A", "B")})
    for kind in (DPAdditiveClassifier, DPLogisticRegression):
        monitor = callback.ScoringMonitor(scoring="accuracy")
        with pytest.warns(OutsideGuaranteeWarning, match="ScoringMonitor"):
            model = fitted(kind(8.0, adjacency="zero_out").set_callbacks(monitor), frame, LABELS)
        assert monitor.get_logs(select="most_recent").data[-1]["accuracy"] == model.score(frame, LABELS)


class Longer(pd.DataFrame):
    """A frame that states more records than it has."""

    shape = property(lambda self: (len(self) + 1, len(self.columns)))


def test_a_frame_whose_shape_is_not_that_of_its_columns_is_refused_before_the_charge(tmp_path):
    frame = Longer({"hour": HOURS})
    with PrivacyLedger(tmp_path / "ledger", epsilon=9.0, delta=1e-3) as ledger:
        with pytest.raises(ValueError, match="another number of records than its columns"):
            DPLogisticRegression(8.0, schema="learn").fit(frame, np.append(LABELS, 0))
        assert not ledger.entries

"""Boosted models read a table alike when they are fitted and when they predict, whatever is in its cells."""

import numpy as np
import pandas as pd
import pytest

from skdp import DPGradientBoostingClassifier
from skdp.estimators.boosting import _rule
from skdp.privacy.oracle import Oracle
from skdp.testing import reproducible_noise

N = 4000
STATED = {
    "n": {"kind": "number", "bounds": [-2, 2], "fill": 0},
    "t": {"kind": "category", "categories": ["A", "B"]},
    "h": {"kind": "number", "bounds": [1, 1e6], "scale": "log"},
}


@pytest.fixture
def frame(rng):
    """Missing cells, texts that a schema does not name, and numbers beyond their bounds."""
    gaps, texts = np.where(rng.random(N) < 0.2, np.nan, 2 * rng.normal(size=N)), rng.choice(["A", "B", "z", None], N)
    return pd.DataFrame({"n": gaps, "t": texts, "h": rng.choice([1.0, 40.0, 1e6, 0.0, 1e9], N)})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("schema", ("learn", {"columns": STATED}), ids=("learnt", "stated"))
def test_bins_and_scores_of_a_prediction_are_those_of_the_fit(schema, frame, rng, monkeypatch):
    monkeypatch.setattr(_rule, "N_TREES", 3)
    kept = []

    def kept_of(oracle, bins, coef, honest=Oracle.bin_rows):
        honest(oracle, bins, coef)
        kept[:] = oracle._rows._bins, oracle._rows._base

    monkeypatch.setattr(Oracle, "bin_rows", kept_of)
    with reproducible_noise(0):
        model = DPGradientBoostingClassifier(8.0, classes=[0, 1], schema=schema).fit(frame, rng.integers(0, 2, N))
    raw, bins = model._read_to_predict(frame)
    np.testing.assert_array_equal(bins, kept[0])
    np.testing.assert_allclose(raw.T, kept[1], rtol=1e-5, atol=1e-5)
    assert all(np.unique(column).size > 2 for column in bins)
    *_, last = model.staged_predict_proba(frame)
    np.testing.assert_allclose(last, model.predict_proba(frame), atol=1e-6)
    assert np.isfinite(model.predict_proba(frame.assign(t="unseen", h=-1e300, n=np.nan))).all()

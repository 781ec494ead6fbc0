"""Boosted models read a table alike when they are fitted and when they predict, whatever is in its cells."""

import numpy as np
import pandas as pd
import pytest

from skdp import DPGradientBoostingClassifier
from skdp.estimators.additive import _task
from skdp.estimators.boosting import _rule
from skdp.privacy.oracle import Oracle
from skdp.solvers._slope_steps import SlopeSteps
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
@pytest.mark.parametrize("schema", ("learn", {"columns": STATED}), ids=("learned", "stated"))
def test_bins_and_scores_of_a_prediction_are_those_of_the_fit(schema, frame, rng, monkeypatch):
    monkeypatch.setattr(_rule, "N_TREES", 3)
    monkeypatch.setattr(_task, "supports", lambda *given: {})  # which changes curves where hardly any record is
    kept = []

    def kept_of(oracle, bins, coef, honest=Oracle.bin_rows):
        honest(oracle, bins, coef)
        kept[:] = oracle._rows._bins, oracle._rows._base

    honest = SlopeSteps.slope
    monkeypatch.setattr(SlopeSteps, "slope", lambda *given: honest(*given) and (1.0, 0.0))
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("weights", ((1.0, 30.0), (2.0, 1.0, 8.0)), ids=("two", "three"))
def test_weights_of_classes_shift_the_log_odds_by_their_logarithms(weights, rng, monkeypatch):
    """The weighted loss of all functions is least there; for more classes, but for a constant."""
    monkeypatch.setattr(_rule, "N_TREES", 20)
    X, labels = rng.uniform(-1, 1, (N, 2)), [f"c{number}" for number in range(len(weights))]
    y = rng.choice(labels, N, p=np.arange(1, len(labels) + 1)[::-1] / sum(range(1, len(labels) + 1)))
    raw = []
    for given in (None, dict(zip(labels, weights, strict=True))):
        with reproducible_noise(0):
            model = DPGradientBoostingClassifier(8.0, classes=labels, class_weight=given, feature_bounds=1.0).fit(X, y)
        assert model.trees_ is not None
        raw.append(model.decision_function(X))
        np.testing.assert_allclose(
            model.explain(X).sum(axis=1) + model.baseline_, np.reshape(raw[-1], (N, -1)).squeeze(), atol=1e-4
        )
    logarithms = np.log(weights)
    expected = logarithms[1] - logarithms[0] if len(weights) == 2 else logarithms - logarithms.mean()
    np.testing.assert_allclose(raw[1] - raw[0], np.broadcast_to(expected, raw[0].shape), atol=1e-5)

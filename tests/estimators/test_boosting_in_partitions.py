"""Boosted models of tables in partitions: the bits of memory, and a kept copy of the table."""

import numpy as np
import pandas as pd
import pytest

from skdp import DPGradientBoostingClassifier, DPGradientBoostingRegressor, PrivacyLedger
from skdp.data import chunks
from skdp.estimators.boosting import _rule
from skdp.privacy.data import summation
from skdp.testing import reproducible_noise

N = 9000
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
CELLS = {"n": {"kind": "number", "bounds": [0, 24]}, "t": {"kind": "category", "categories": ["A", "B"]}}
FITS = {
    "two classes": (
        DPGradientBoostingClassifier,
        {"classes": [0, 1], "schema": {"columns": CELLS}},
        lambda y: (y > 0).astype(int),
    ),
    "three classes": (
        DPGradientBoostingClassifier,
        {"schema": {"columns": CELLS}, "class_weight": {"no": 3.0}},
        np.vectorize(lambda y: "no" if y < -0.3 else "yes" if y > 0.3 else "some"),
    ),
    "numbers": (DPGradientBoostingRegressor, {"target_bounds": (-1, 1), "schema": {"columns": CELLS}}, lambda y: y),
    "learned": (DPGradientBoostingRegressor, {"schema": "learn"}, lambda y: 100 * y),
}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Chunks of one block, so that small tables have several, and few trees."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)
    monkeypatch.setattr(_rule, "N_TREES", 20)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.integers(0, 24, N) * 1.0, "t": rng.choice(["A", "B"], N)})
    return frame.assign(y=np.where(frame["t"] == "A", 1, -1) * np.sin(frame["n"] / 4))


def in_chunks(frame, y, cache="disk", size=777):
    return chunks(lambda: ((frame[s : s + size], y[s : s + size]) for s in range(0, N, size)), cache=cache)


def fitted(kind, given, *table, seed=0):
    with reproducible_noise(seed):
        model = kind(8.0, delta=1e-6, random_state=0, **given).fit(*table)
    assert model.trees_ is not None and model.trees_.columns.shape[0] == 20
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_the_bits_are_those_of_memory(name, frame):
    kind, given, target_of = FITS[name]
    X, y = frame.drop(columns="y"), target_of(frame["y"].to_numpy())
    memory, parts = fitted(kind, given, X, y), fitted(kind, given, in_chunks(X, y))
    for attribute in ("coef_", "intercept_", "feature_importances_"):
        np.testing.assert_array_equal(getattr(parts, attribute), getattr(memory, attribute))
    for attribute in ("columns", "sides", "values"):
        np.testing.assert_array_equal(getattr(parts.trees_, attribute), getattr(memory.trees_, attribute))
    assert parts.privacy_report_.releases == memory.privacy_report_.releases
    np.testing.assert_array_equal(parts.predict(X), memory.predict(X))
    assert not np.array_equal(fitted(kind, given, X, y, seed=1).trees_.values, memory.trees_.values)


@pytest.mark.parametrize("given", ({"feature_bounds": 1.0}, {"schema": "learn"}))
def test_a_copy_must_be_kept_and_nothing_is_charged_before_it_is_asked_for(given, frame, tmp_path):
    """Each pass would add all earlier trees again."""
    model, (X, y) = DPGradientBoostingRegressor(8.0, delta=1e-6, **given), (frame[["n"]], frame["y"].to_numpy())
    table = in_chunks(X if "schema" in given else X.to_numpy(), y, cache=None)
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=9.0, delta=1e-5) as ledger:
        with pytest.raises(ValueError, match=r"DPGradientBoostingRegressor adds trees .* expected a table with cache='disk'"):
            model.fit(table)
        assert not ledger.entries


def test_a_copy_is_asked_for_before_the_table_is_read():
    def unread():
        raise AssertionError("the table was read")

    model = DPGradientBoostingClassifier(8.0, classes=[0, 1], feature_bounds=1.0)
    with pytest.raises(ValueError, match="adds trees"):
        model.fit(chunks(unread, n_features=2, cache=None))


@pytest.mark.slow
def test_without_trees_no_copy_is_needed(frame):
    """Public facts choose the additive model alone."""
    table = in_chunks(frame[["n"]].to_numpy(), frame["y"].to_numpy(), cache=None, size=4000)
    with reproducible_noise(0):
        model = DPGradientBoostingRegressor(0.01, feature_bounds=(0, 24), target_bounds=(-1, 1)).fit(table)
    assert model.trees_ is None

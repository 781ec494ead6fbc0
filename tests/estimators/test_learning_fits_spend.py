"""What fits that learn their columns spend: worked out again from the noise of every answer, and charged for every fit."""

import copy
import math
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import sklearn
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from hostile import SECRETS
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import (
    BudgetExceededError,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    PrivacyLedger,
)
from skdp.privacy import release_plan
from skdp.privacy.oracle import Oracle
from skdp.testing import reproducible_noise

N = 400
pytestmark = pytest.mark.filterwarnings("ignore::skdp.privacy.errors.LowSignalWarning")
KINDS = {"classifier": DPLogisticRegression, "svc": DPLinearSVC, "regression": DPLinearRegression}
ADDITIVE = {"additive classifier": DPAdditiveClassifier, "additive regression": DPAdditiveRegressor}


@pytest.fixture
def frame(rng):
    """Units, gaps and text."""
    columns = {"a": 1e6 + rng.normal(size=N), "b": np.exp(3 * rng.normal(size=N)), "hour": rng.integers(0, 24, N)}
    return pd.DataFrame({**columns, "gaps": np.where(rng.random(N) < 0.2, np.nan, 31415.0), "city": rng.choice(["A", "B"], N)})


def target(kind, frame):
    return frame["b"].to_numpy() * 7 if "regression" in kind else np.where(frame["hour"] > 11, "yes", "no")


def epsilon_of(multipliers, delta):
    """Epsilon of Gaussian releases by their noise over their sensitivity, as dp_accounting has it."""
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    counts = Counter()
    for multiplier, count in multipliers:
        counts[multiplier] += count
    for multiplier, count in counts.items():
        accountant.compose(GaussianDpEvent(multiplier), count)
    return accountant.get_epsilon(delta)


@pytest.fixture
def heard(monkeypatch):
    """All queries, their releases and the noise of the answers, of all oracles."""
    found = []

    def answer(self, query, release, records, honest=Oracle._answer):
        found.append((query, release, honest(self, query, release, records) - query.evaluate(self._rows)))
        return query.evaluate(self._rows) + found[-1][2]

    monkeypatch.setattr(Oracle, "_answer", answer)
    return found


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
@pytest.mark.parametrize("kind", [*KINDS, *ADDITIVE])
def test_the_noise_of_both_stages_is_that_of_the_budget(kind, adjacency, frame, heard, tmp_path):
    """The report's noise, by another accountant, spends the budget; the answers have it; the ledger has one entry of it."""
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=9.0, delta=1e-5, adjacency=adjacency) as ledger, reproducible_noise(0):
        model = {**KINDS, **ADDITIVE}[kind](1.0, delta=1e-7, adjacency=adjacency, schema="learn").fit(frame, target(kind, frame))
    report, released = model.privacy_report_, []
    for line in report.releases:
        for _ in range(line.count):
            query, release, noise = heard[len(released)]
            assert type(query).__name__ == line.query and type(query) is release.query
            released.append((line.noise_multiplier / query.relative_sensitivity[adjacency], 1))
            if query.clip_norm:  # the third release counts nothing if no column needs it
                assert query.sensitivity(adjacency) == query.relative_sensitivity[adjacency] * query.clip_norm
                noise = noise / (line.noise_multiplier * query.clip_norm)
            heard[len(released) - 1] = noise[:0] if not query.clip_norm else noise
    assert len(released) == len(heard) == report.public["n_releases"]
    assert epsilon_of(released, 1e-7) == pytest.approx(1.0, rel=2e-3)
    for standard in (heard[0], np.concatenate(heard[2:]).ravel()):  # within six standard deviations of their spread
        assert np.std(standard) == pytest.approx(1.0, abs=6 / math.sqrt(2 * standard.size))
    assert np.std(heard[1]) == pytest.approx(1.0, abs=6 / math.sqrt(2 * heard[1].size))
    assert model.privacy_spent_ == (pytest.approx(1.0, rel=1e-6), 1e-7) and model.privacy_spent_.epsilon <= 1 + 1e-9
    (entry,) = ledger.entries
    assert (entry.spending.epsilon, entry.spending.delta) == model.privacy_spent_
    assert ledger.spent_after_each == [pytest.approx(epsilon_of(released, 1e-5), rel=5e-3)]


@pytest.mark.slow  # the test above has the charge of a fit, those of ledgers that of copies and searches
@pytest.mark.filterwarnings("ignore::skdp.privacy.errors.OutsideGuaranteeWarning")
@pytest.mark.filterwarnings("ignore:X does not look like", "ignore:X has what no")  # at epsilon 0.1 noise decides what is learned
def test_every_fit_around_it_is_charged_once(frame, tmp_path, monkeypatch):
    """Copies, searches, folds and pipelines; what predicts, copies or describes is charged nothing."""
    y, given = target("classifier", frame), {"delta": 1e-9, "schema": {"hour": "category"}, "classes": ["no", "yes"]}
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=9.0, delta=1e-5) as ledger:

        def charged():
            number, charged.before = len(ledger.entries) - charged.before, len(ledger.entries)
            assert all(entry.spending.composition for entry in ledger.entries)
            return number

        charged.before = 0
        model = DPLogisticRegression(0.1, **given)
        fresh = clone(model)
        assert fresh.get_params() == model.get_params() and fresh.schema == {"hour": "category"} and charged() == 0
        assert model.fit(frame, y).schema == {"hour": "category"} and charged() == 1
        copies = [copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))]
        for copied in copies:
            np.testing.assert_array_equal(copied.decision_function(frame), model.decision_function(frame))
        assert repr(model) and model.plan(frame) and model._repr_html_() and charged() == 0
        for copied in (*copies, clone(model)):
            copied.fit(frame, y)
            assert charged() == 1
        assert cross_val_score(model, frame, y, cv=KFold(3)).shape == (3,) and charged() == 3
        search = GridSearchCV(model, {"alpha": [0.1, 1.0], "schema": ["learn", {"hour": "number"}]}, cv=KFold(2)).fit(frame, y)
        assert charged() == 2 * 2 * 2 + 1 and search.best_estimator_.schema_.columns.keys() == set(frame)
        pipeline = make_pipeline(FunctionTransformer(), clone(model)).set_output(transform="pandas")
        assert pipeline.fit(frame, y).score(frame, y) >= 0 and charged() == 1
        with sklearn.config_context(transform_output="pandas"):
            other = clone(model).fit(frame, y)
            assert other.predict(frame).shape == (N,) and charged() == 1
        with sklearn.config_context(enable_metadata_routing=True):
            clone(model).fit(frame, y)
        assert charged() == 1
        assert len(ledger.entries) == 20


def test_a_ledger_that_is_full_refuses_before_a_record_is_counted(frame, tmp_path, monkeypatch):
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=0.5, delta=1e-5) as ledger:
        monkeypatch.setattr(release_plan, "Oracle", lambda *args: pytest.fail("the records were put behind the gate"))
        with pytest.raises(BudgetExceededError):
            DPLogisticRegression(1.0, delta=1e-7, schema="learn").fit(frame, target("classifier", frame))
        assert not ledger.entries


HOSTILE_CELLS = [math.nan, math.inf, -math.inf, 1e300, "31415", "secret", None, b"secret", 10**400, object(), [31415], 1j]


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:X does not look like the records of the fit")  # odd cells are told when it predicts
@pytest.mark.filterwarnings("ignore:X has what no training record had")  # a rare level may look like none
@pytest.mark.parametrize("kind", ("classifier", "regression"))
@pytest.mark.parametrize("cell", HOSTILE_CELLS, ids=lambda cell: type(cell).__name__)
def test_no_cell_makes_a_fit_fail_after_its_charge(kind, cell, frame, tmp_path):
    """One cell of every column that is learned; columns are read as stated, so that no type follows from it."""
    words = {"a": "number", "b": "number", "hour": "category", "gaps": "either", "city": "either"}
    y = target(kind, frame)
    odd = frame.astype(object)
    for place, name in enumerate(odd):
        odd.at[place, name] = cell
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=9.0, delta=1e-5) as ledger:
        model = KINDS[kind](1.0, delta=1e-7, schema=words).fit(odd, y)
        assert len(ledger.entries) == 1
    assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(odd) == y).all()
    assert not SECRETS.search(str(model.privacy_report_) + repr(vars(model)))


@pytest.mark.parametrize("kind", KINDS)
def test_targets_that_are_not_valid_are_refused_before_a_charge_and_not_quoted(kind, frame, tmp_path):
    y = np.array(target(kind, frame), dtype=object)
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=9.0, delta=1e-5) as ledger:
        for bad in (None, math.nan, "secret 31415", [31415], object()):
            odd = y.copy()
            odd[3] = bad
            classes = {} if kind == "regression" else {"classes": ["no", "yes"]}
            with pytest.raises((TypeError, ValueError)) as refusal:
                KINDS[kind](1.0, delta=1e-7, schema="learn", **classes).fit(frame, odd)
            assert not SECRETS.search(str(refusal.value)) and refusal.value.__context__ is None
        assert not ledger.entries


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("classifier", "regression"))
def test_no_name_of_a_column_makes_a_fit_fail_after_its_charge(kind, rng, tmp_path):
    """Indicators of learned columns get names of their own, whatever is learned and however the columns are called."""
    n = 4000
    gaps, hours, texts = (
        np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        rng.integers(0, 4, n),
        rng.choice(["x", "z"], n),
    )
    frame = pd.DataFrame({"a": gaps, "a_missing": gaps, "h": hours, "h_3": hours, "h__3": hours, "t": texts, "t_other": hours})
    frame = frame.assign(t_bucket79=texts, y=hours, c_d=gaps, c=rng.choice(["d_missing", "e"], n))
    given = {"c": {"kind": "category", "categories": ["d_missing", "e"]}}
    target_ = 10.0 * hours if kind == "regression" else hours > 1
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=9.0, delta=1e-5, adjacency="zero_out") as ledger:
        model = KINDS[kind](5.0, adjacency="zero_out", delta=1e-8, schema=given).fit(frame, target_)
        assert len(ledger.entries) == 1
    names = list(model.prepared_features_)
    assert len(set(names)) == len(names) == model.coef_.size
    assert {"a", "a___missing", "a_missing", "h___3", "h_3", "h__3", "c_d___missing", "c_d_missing", "c_e"} <= set(names)
    assert model.learnt_["y"]["kind"] == "integers" and ("y (target)" in model.learnt_) == (kind == "regression")
    model = KINDS[kind](5.0, adjacency="zero_out", schema="learn").fit(frame[["a", "h"]], target_)
    assert {"a_missing", "h_3"} < set(model.prepared_features_)  # as a rule

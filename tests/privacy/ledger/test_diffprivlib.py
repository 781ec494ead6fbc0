"""Tests the conversions to and from diffprivlib's accountant, with the package itself if it is installed."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skdp import BudgetExceededError, DPLogisticRegression, PrivacyLedger
from skdp.privacy import charge_accountant
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle

try:
    from diffprivlib.accountant import BudgetAccountant
except ImportError as error:
    pytest.skip(f"diffprivlib does not import: {error}", allow_module_level=True)

X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 2
MODEL = DPLogisticRegression(0.3, delta=1e-6)


def test_our_fits_charge_their_accountant():
    accountant = BudgetAccountant(epsilon=1, delta=1e-5)
    with charge_accountant(accountant):
        MODEL.fit(X, y)
        clone(MODEL).fit(X, y)
    clone(MODEL).fit(X, y)
    assert [delta for _, delta in accountant.spent_budget] == [1e-6, 1e-6]
    assert [epsilon for epsilon, _ in accountant.spent_budget] == [pytest.approx(0.3, rel=1e-3)] * 2


def test_their_accountant_refuses_before_the_data_go_behind_the_gate(monkeypatch):
    accountant = BudgetAccountant(epsilon=0.5, delta=1e-5)
    with charge_accountant(accountant):
        MODEL.fit(X, y)
        monkeypatch.setattr(Oracle, "__init__", lambda *given, **named: pytest.fail("the data were touched"))
        with pytest.raises(BudgetExceededError, match="accountant refused DPLogisticRegression"):
            clone(MODEL).fit(X, y)
    assert len(accountant) == 1


def test_copies_that_would_not_be_charged_are_refused():
    with (
        charge_accountant(BudgetAccountant(epsilon=1, delta=1e-5)),
        pytest.raises(PrivacyAccountingError, match="cannot be pickled"),
    ):
        pickle.dumps(MODEL)
    pickle.dumps(MODEL)


def test_their_spent_list_goes_into_a_ledger():
    accountant = BudgetAccountant(epsilon=2, delta=1e-5)
    for epsilon, delta in ((0.5, 0.0), (0.7, 1e-8)):
        accountant.spend(epsilon, delta)
    ledger = PrivacyLedger(epsilon=3, delta=1e-6, adjacency="replace_one")
    ledger.import_accountant(BudgetAccountant())
    assert ledger.entries == ()
    ledger.import_accountant(accountant)
    assert ledger.summary().spent_epsilon == pytest.approx(1.2)
    assert ledger.entries[0].spending.delta == pytest.approx(1e-8)
    assert "2 releases" in ledger.entries[0].spending.estimator
    with pytest.raises(BudgetExceededError):
        PrivacyLedger(epsilon=1, delta=1e-6, adjacency="replace_one").import_accountant(accountant)

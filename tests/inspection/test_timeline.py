"""The timeline of a ledger shows what the ledger says."""

import sys

import matplotlib
import numpy as np
import pytest

from skdp import PrivacyLedger
from skdp.inspection import BudgetTimelineDisplay

matplotlib.use("agg")


@pytest.fixture
def ledger():
    ledger = PrivacyLedger(epsilon=3, delta=1e-6, adjacency="zero_out")
    for number in range(7):
        ledger.add(0.1 * (1 + number % 3), note=f"table {number % 6}")
    return ledger


def test_steps_are_the_spent_epsilon_after_each_charge(ledger):
    display = BudgetTimelineDisplay.from_ledger(ledger)
    assert display.line_.get_ydata() == pytest.approx(np.cumsum([0, 0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1]))
    assert display.spent[-1] == ledger.summary().spent_epsilon
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["table 0 (2)", "table 1 (1)", "table 2 (1)", "table 3 (1)", "others (2)", "ceiling: epsilon 3, delta 1e-06"]
    assert ledger.entries[0].time[:10] in display.ax_.get_xlabel()
    assert BudgetTimelineDisplay.from_ledger(ledger, ax=display.ax_).figure_ is display.figure_
    matplotlib.pyplot.close(display.figure_)


def test_an_empty_ledger_is_drawn_too():
    display = BudgetTimelineDisplay.from_ledger(PrivacyLedger(epsilon=3, delta=1e-6))
    assert display.ax_.get_xlabel() == "charges (none yet)"
    matplotlib.pyplot.close(display.figure_)


def test_a_missing_matplotlib_is_named(ledger, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        BudgetTimelineDisplay.from_ledger(ledger)

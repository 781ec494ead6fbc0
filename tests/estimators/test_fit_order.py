"""Test that a fit reads, plans, pays, runs and sets attributes, in this order, and keeps no needless copy of the table."""

import weakref

import numpy as np
import pytest
from scipy import sparse

from skdp import DPConstrainedRegression, DPLinearRegression, DPLogisticRegression
from skdp._data_validation import Facts, Table
from skdp.estimators import _base
from skdp.estimators._base import DPEstimator
from skdp.estimators._planned_fit import PlannedFit
from skdp.estimators._task import Task
from skdp.privacy.oracle import Oracle

STEPS = ["read", "plan", "pay", "behind the oracle", "release", "model", "attributes"]


@pytest.fixture
def steps(monkeypatch):
    """Names of the steps of a fit as they are taken; a step that is taken again at once counts once."""
    taken = []

    def watch(owner, name, step):
        work = getattr(owner, name)

        def watched(*args, **given):
            result = work(*args, **given)
            if taken[-1:] != [step]:
                taken.append(step)
            return result

        monkeypatch.setattr(owner, name, watched)

    watch(Task, "checked", "read")
    watch(PlannedFit, "of", "plan")
    watch(_base, "pay", "pay")
    watch(Table, "rows", "behind the oracle")
    watch(Oracle, "ask", "release")
    watch(DPLinearRegression._task_class, "model", "model")
    watch(DPLogisticRegression._task_class, "model", "model")
    watch(DPEstimator, "_commit", "attributes")
    return taken


@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression))
def test_the_budget_is_spent_before_the_records_are_behind_the_oracle(kind, steps, rng):
    X = rng.uniform(-1, 1, size=(2000, 2))
    given = {"target_bounds": (0, 1)} if kind is DPLinearRegression else {}
    kind(3.0, **given).fit(X, (X[:, 0] > 0).astype(int))
    assert steps == STEPS


@pytest.mark.slow
def test_a_converted_copy_of_the_table_is_let_go(monkeypatch, rng):
    """Triples become rows when they are read, and columns behind the oracle: the rows are gone at the first release."""
    X = rng.uniform(-1, 1, size=(2000, 4))
    copies, alive = [], []
    read, ask = DPConstrainedRegression._task_class.read, Oracle.ask

    def watched(self, *given):
        facts, table, y = read(self, *given)
        copies.append(weakref.ref(table))
        return facts, table, y

    monkeypatch.setattr(DPConstrainedRegression._task_class, "read", watched)
    monkeypatch.setattr(Oracle, "ask", lambda self, query: alive.append(copies[0]() is not None) or ask(self, query))
    model = DPConstrainedRegression(3.0, constraint="box", target_bounds=(-1, 1), solver="skgd")
    model.fit(sparse.coo_array(X), X[:, 0])
    assert alive and not any(alive)


def test_the_records_of_a_table_are_taken_once():
    table = Table(Facts(3, 2), np.ones((3, 2)), np.ones(3))
    assert table.rows({"data_norm": 2.0}).totals().tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="were taken out before"):
        table.rows({"data_norm": 2.0})

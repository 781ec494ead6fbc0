"""Test public groups of records: labels of every kind, and errors before anything is charged."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from grouped import brief, table
from scipy import sparse
from seeded import fitted

from skdp import DPGroupDROClassifier, PrivacyLedger
from skdp.privacy.oracle import Oracle

KINDS = {
    "integers": lambda groups: groups,
    "a list": lambda groups: groups.tolist(),
    "unsigned": lambda groups: groups.astype(np.uint8),
    "floats": lambda groups: groups / 4,
    "text": lambda groups: np.array(["a", "b", "c"])[groups],
    "a list of text": lambda groups: ["abc"[group] for group in groups],
    "objects": lambda groups: np.array(["a", "b", "c"], dtype=object)[groups],
    "whole objects": lambda groups: groups.astype(object),
    "a tuple of numbers": lambda groups: tuple(float(group) if group else 0 for group in groups),
    "a series": lambda groups: pd.Series(groups, index=np.arange(len(groups))[::-1]),
    "a series of text": lambda groups: pd.Series(["abc"[group] for group in groups], dtype="string"),
    "categories": lambda groups: pd.Categorical.from_codes(groups, ["x", "y", "z", "never"]),
    "a series of categories": lambda groups: pd.Series(pd.Categorical.from_codes(groups, ["x", "y", "z"])),
    "of polars": lambda groups: pl.Series(["abc"[group] for group in groups]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_every_kind_give_the_same_fit(kind):
    X, y, groups = table(100)
    fits = [fitted(brief(), X, y, groups=given) for given in (groups, KINDS[kind](groups))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].group_weights_, fits[1].group_weights_)
    assert fits[1].groups_.tolist() == sorted(fits[1].groups_.tolist()) == sorted(set(np.asarray(KINDS[kind](groups)).tolist()))
    assert fits[1].groups_.dtype.kind != "O"
    assert json.loads(fits[1].privacy_report_.to_json())["public"]["groups"] == fits[1].groups_.tolist()
    assert fits[1].privacy_report_.public["resolved"]["group_sizes"] == "[60, 30, 10]"


def test_two_labels_of_truth_are_groups_too():
    X, y, groups = table(100)
    model = fitted(brief(), X, y, groups=groups > 0)
    assert model.groups_.tolist() == [False, True] and model.group_weights_.shape == (2,)


def test_many_groups():
    """More than an int8 holds, of two records each."""
    X, y, _ = table(600)
    model = fitted(brief(), X, y, groups=np.arange(600) // 2)
    np.testing.assert_array_equal(model.group_sizes_, np.full(300, 2))
    assert model.group_weights_.shape == (300,) and model.group_weights_.sum() == pytest.approx(1)
    assert len(str(model.privacy_report_)) < 6000


GROUPS = np.array([0] * 60 + [1] * 38 + [2, 3])
REFUSED = {
    "too few": (GROUPS[:-1], ValueError, "groups has 99 labels for 100 records"),
    "too many": (np.append(GROUPS, 0), ValueError, "groups has 101 labels for 100 records"),
    "alone": (GROUPS, ValueError, r"groups has 2 label\(s\) of one record each; expected at least 2"),
    "each alone": (np.arange(100), ValueError, r"groups has 100 label\(s\) of one record each"),
    "a number": (3, TypeError, "groups is not a list or column"),
    "a word": ("abc", TypeError, "groups is not a list or column"),
    "a table": (np.zeros((100, 2)), TypeError, "groups is not a list or column"),
    "a column": (np.zeros((100, 1)), TypeError, "groups is not a list or column"),
    "ragged": ([[1], [1, 2]] * 50, TypeError, "several types, or missing ones"),
    "a frame": (pd.DataFrame({"group": GROUPS}), TypeError, "groups is not a list or column"),
    "sparse": (sparse.csr_array(np.ones((1, 100))), TypeError, "groups is not a list or column"),
    "masked": (np.ma.array(GROUPS % 2, mask=np.arange(100) < 3), TypeError, "or some are missing"),
    "NaN": (np.where(np.arange(100) < 5, np.nan, 1.0), ValueError, "missing or infinite labels"),
    "infinite": (np.where(np.arange(100) < 5, np.inf, 1.0), ValueError, "missing or infinite labels"),
    "None": ([None] * 5 + ["a"] * 95, TypeError, "several types, or missing ones"),
    "NaN in text": (np.array([np.nan] * 5 + ["a"] * 95, dtype=object), TypeError, "several types, or missing ones"),
    "missing": (pd.Series([pd.NA] * 5 + ["a"] * 95, dtype="string"), TypeError, "several types, or missing ones"),
    "a category missing": (pd.Categorical.from_codes([-1] * 5 + [0] * 95, [7]), ValueError, "missing or infinite labels"),
    "mixed": ([1] * 50 + ["1"] * 50, TypeError, "several types, or missing ones"),
    "dates": (np.array(["2020-01-01"] * 100, dtype="M8[D]"), TypeError, r"labels of the type datetime64"),
    "complex": (np.full(100, 1j), TypeError, "labels of the type complex128"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_groups_that_do_not_go_with_the_records_are_refused_before_anything_is_paid_for(case, monkeypatch):
    groups, error, message = REFUSED[case]
    monkeypatch.setattr(Oracle, "ask", None)
    X, y, _ = table(100)
    ledger, model = PrivacyLedger(epsilon=5.0, delta=1e-2), DPGroupDROClassifier()
    with ledger, pytest.raises(error, match=message):
        model.fit(X, y, groups=groups)
    assert not ledger.entries and not hasattr(model, "coef_")


def test_labels_are_no_groups_and_groups_have_a_name():
    """Where other classifiers have weights of records, a list would become public groups."""
    X, y, groups = table(100)
    with pytest.raises(ValueError, match="groups is y"):
        DPGroupDROClassifier().fit(X, y, groups=y)
    with pytest.raises(TypeError, match="positional"):
        DPGroupDROClassifier().fit(X, y, groups)


@pytest.mark.parametrize("labels", ([0] * 30, np.arange(30) % 3))
def test_other_numbers_of_classes_cost_nothing(labels):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-2)
    with ledger, pytest.raises(ValueError, match="class"):
        DPGroupDROClassifier().fit(np.eye(30, 3), labels, groups=np.arange(30) % 2)
    with ledger, pytest.raises(ValueError, match=r"Only binary classification is supported.* 3 classes; expected two"):
        DPGroupDROClassifier(classes=[0, 1, 2]).plan(100, 3)
    assert not ledger.entries
    with pytest.raises(ValueError, match="n_classes=3"):
        DPGroupDROClassifier().plan(100, 3, 3)


@pytest.mark.parametrize(
    "sizes, error, message",
    (
        ([50, 40], ValueError, "expected numbers that add up to n_samples=100"),
        ([99, 1], ValueError, r"group_sizes\[1\]=1; expected an integer >= 2"),
        ([50.0, 50.0], TypeError, r"group_sizes\[0\]=50.0; expected an integer"),
        ([], TypeError, "expected a list of the numbers of records"),
        ("50", TypeError, "expected a list of the numbers of records"),
        (100, TypeError, "expected a list of the numbers of records"),
    ),
)
def test_sizes_of_a_plan_must_add_up(sizes, error, message):
    with pytest.raises(error, match=message):
        DPGroupDROClassifier().plan(100, 3, group_sizes=sizes)

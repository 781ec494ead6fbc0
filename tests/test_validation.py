"""Bad input: a clear error before any release, which quotes parameters but never data."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from seeded import fitted
from sklearn import config_context

from skdp import DPLogisticRegression
from skdp.privacy.oracle import Oracle

SECRET = 31415.9265
X = np.array([[SECRET, 1.0], [0.5, -SECRET], [0.25, 2.0], [1.0, SECRET]])
y = np.array([0, 1, 0, 1])
NAN = math.nan


@pytest.fixture(autouse=True)
def no_release(monkeypatch):
    """Nothing may be asked of the data before the input is known to be good."""

    def refuse(self, query):
        raise AssertionError("a release was made")

    monkeypatch.setattr(Oracle, "ask", refuse)


PARAMETERS = [
    ({"epsilon": 0}, ValueError),
    ({"epsilon": -1.0}, ValueError),
    ({"epsilon": NAN}, ValueError),
    ({"epsilon": "1"}, TypeError),
    ({"epsilon": 1e7}, ValueError),
    ({"epsilon": 10**400}, ValueError),
    ({"epsilon": None}, TypeError),
    ({"epsilon": True}, TypeError),
    ({"delta": 0.0, "solver": "gd"}, ValueError),
    ({"delta": 1.0}, ValueError),
    ({"delta": -1e-5}, ValueError),
    ({"delta": 1 - 1e-15}, ValueError),
    ({"delta": NAN}, ValueError),
    ({"delta": "small"}, TypeError),
    ({"adjacency": "add_remove"}, ValueError),
    ({"adjacency": None}, ValueError),
    ({"solver": "saga"}, ValueError),
    ({"solver": 3}, TypeError),
    ({"data_norm": 0.0}, ValueError),
    ({"data_norm": -1.0}, ValueError),
    ({"data_norm": math.inf}, ValueError),
    ({"data_norm": 1e60}, ValueError),
    ({"data_norm": 10**400}, ValueError),
    ({"data_norm": "1"}, TypeError),
    ({"clip_norm": 0.0}, ValueError),
    ({"clip_norm": NAN}, ValueError),
    ({"clip_norm": [1.0]}, TypeError),
    ({"alpha": -0.1}, ValueError),
    ({"alpha": "auto"}, TypeError),
    ({"l1_ratio": -0.1}, ValueError),
    ({"l1_ratio": 1.1}, ValueError),
    ({"l1_ratio": None}, TypeError),
    ({"l1_ratio": NAN}, ValueError),
    ({"feature_bounds": 0.0}, ValueError),
    ({"feature_bounds": -1}, ValueError),
    ({"feature_bounds": math.inf}, ValueError),
    ({"feature_bounds": True}, TypeError),
    ({"feature_bounds": "wide"}, TypeError),
    ({"feature_bounds": []}, TypeError),
    ({"feature_bounds": [1.0, NAN]}, ValueError),
    ({"feature_bounds": [1.0, "2"]}, TypeError),
    ({"feature_bounds": (1.0, 0.0)}, ValueError),
    ({"feature_bounds": (1.0, 2.0, 3.0)}, TypeError),
    ({"intercept_scaling": 0.0}, ValueError),
    ({"fit_intercept": "yes"}, TypeError),
    ({"classes": [1]}, ValueError),
    ({"classes": [1, 1]}, ValueError),
    ({"classes": 3}, ValueError),
    ({"classes": [0.0, NAN]}, ValueError),
    ({"classes": [0, "a", None]}, ValueError),
    ({"class_weight": "balanced"}, ValueError),
    ({"class_weight": [1.0, 2.0]}, TypeError),
    ({"class_weight": {0: -1.0}}, ValueError),
    ({"class_weight": {0: "heavy"}}, TypeError),
    ({"class_weight": {5: 1.0}}, ValueError),
    ({"random_state": -1}, ValueError),
    ({"random_state": "seed"}, TypeError),
    ({"verbose": -1}, ValueError),
    ({"verbose": "loud"}, TypeError),
]


@pytest.mark.parametrize("given, error", PARAMETERS, ids=[str(given) for given, _ in PARAMETERS])
def test_parameters(given, error):
    """The message has the name, the value and what is expected; fit and plan agree."""
    (name, value), estimator = next(iter(given.items())), DPLogisticRegression(**given)
    with pytest.raises(error) as caught:
        estimator.fit(X, y)
    message = str(caught.value)
    assert name in message
    assert "expected" in message
    inner = next(iter(value.items())) if isinstance(value, dict) else (value, value)
    assert repr(inner[0])[:15] in message or repr(inner[1])[:15] in message
    if given != {"class_weight": {5: 1.0}}:
        with pytest.raises(error):
            estimator.plan(4, 2)


@pytest.mark.parametrize("given", ((1, 2), (4, 0), (4, 2, 1), (4.0, 2), ("many", 2)))
def test_plan_checks_the_shape(given):
    with pytest.raises((ValueError, TypeError), match="expected an integer"):
        DPLogisticRegression().plan(*given)


def replaced(value):
    table = X.astype(object)
    table[2, 1] = value
    return table


class Secretive:
    """A cell whose conversion fails with an error of its own."""

    def __float__(self):
        raise RuntimeError("secret 31415")


TABLES = {
    "NaN": (np.where(X == 2.0, NAN, X), y, ValueError, r"contains NaN\. .*Fill missing values with a public constant"),
    "infinity": (np.where(X == 2.0, math.inf, X), y, ValueError, "infinity"),
    "complex": (X + 1j, y, ValueError, "Complex data not supported"),
    "text": (replaced("secret"), y, ValueError, "cannot be read"),
    "text column": (pd.DataFrame({"a": ["secret", "b", "c", "d"]}), y, ValueError, r"cannot be read.*not numeric: \['a'\]"),
    "mixed names": (pd.DataFrame(X, columns=["a", 0]), y, TypeError, "Feature names are only supported"),
    "missing": (pd.DataFrame({"a": pd.array([31415, None, 1, 2], dtype="Int64")}), y, ValueError, "NaN"),
    "objects": (replaced({"secret": 1}), y, TypeError, "must be a string or a number"),
    "own error": (replaced(Secretive()), y, ValueError, "cannot be read"),
    "too large an integer": (replaced(10**400), y, ValueError, "cannot be read"),
    "flat": (X[:, 0], y, ValueError, "Reshape your data"),
    "flat list": ([SECRET, 1.0, 2.0, 3.0], y, ValueError, "Reshape your data"),
    "three dimensions": (X[None], y, ValueError, "dim 3"),
    "ragged": ([[SECRET], [1.0, 2.0], [1.0], [2.0]], y, ValueError, "cannot be read"),
    "no rows": (X[:0], y[:0], ValueError, "X has no records; expected at least one"),
    "one row": (X[:1], y[:1], ValueError, "1 sample|minimum of 2"),
    "no columns": (X[:, :0], y, ValueError, "0 feature"),
    "None": (None, y, ValueError, "cannot be read|2-dimensional"),
    "lengths differ": (X, y[:3], ValueError, "inconsistent"),
    "no y": (X, None, ValueError, "requires y"),
    "one class": (X, np.full(4, 31415), ValueError, "only one class"),
    "a label that is missing": (
        X,
        np.array([None, "a"] * (len(X) // 2), dtype=object),
        TypeError,
        "y has labels that are missing",
    ),
    "continuous y": (X, X[:, 0], ValueError, "Unknown label type: continuous"),
    "NaN in y": (X, [0.0, 1.0, NAN, 1.0], ValueError, r"NaN\. Leave records without a target out"),
    "mixed y": (X, np.array([0, "secret", 0, 1], dtype=object), (ValueError, TypeError), "label"),
    "matrix y": (X, np.stack([y, y], axis=1), ValueError, "1d array"),
    "sparse infinity": (sparse.csr_matrix(np.where(X == 2.0, math.inf, X)), y, ValueError, "infinity"),
    "overflowing duplicates": (
        sparse.csr_matrix((np.full(8, 1.7e308), [0] * 8, [0, 2, 4, 6, 8]), shape=(4, 2)),
        y,
        ValueError,
        "infinity",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables(case):
    """The message names the rule; no value of the table is in it, in its causes, or in a warning."""
    table, labels, error, rule = TABLES[case]
    with warnings.catch_warnings(record=True) as caught_warnings, pytest.raises(error, match=rule) as caught:
        warnings.simplefilter("always")
        DPLogisticRegression(data_norm=2.0).fit(table, labels)
    messages = [str(warning.message) for warning in caught_warnings]
    link = caught.value
    while link is not None:
        messages.append(str(link))
        link = link.__context__ or link.__cause__
    assert not re.search(r"secret|31415|e\+?308", " ".join(messages))


def test_not_even_assume_finite_lets_nan_through():
    with config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
        DPLogisticRegression().fit(np.where(X == 2.0, NAN, X), y)


@pytest.mark.parametrize("kind", (sparse.csr_matrix, sparse.csc_array))
def test_sparse_indices_out_of_range_are_refused(kind):
    table = kind(X)
    table.indices = table.indices + 2
    with pytest.raises(ValueError, match="cannot be read"):
        DPLogisticRegression().fit(table, y)


def test_labels_outside_the_classes_are_named_by_rule():
    with pytest.raises(ValueError, match=r"y has labels outside classes=\[0, 2\]"):
        DPLogisticRegression(classes=[0, 2]).fit(X, y)
    with pytest.raises(ValueError, match="y has labels outside"):
        DPLogisticRegression(classes=["a", "b"]).fit(X, y)
    with pytest.raises(ValueError, match="y has labels outside"):
        DPLogisticRegression(classes=[0, 1]).fit(X, np.array(["a", "b", "a", "b"], dtype=object))


def test_a_table_in_the_place_of_a_parameter_is_not_quoted():
    for call in (lambda: DPLogisticRegression().plan(X, 2), lambda: DPLogisticRegression(classes=X).fit(X, y)):
        with pytest.raises((TypeError, ValueError), match=r"<ndarray of shape \(4, 2\)>") as caught:
            call()
        assert "31415" not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        DPLogisticRegression(classes=X.tolist()).fit(X, y)
    assert "31415" not in str(caught.value)


def test_warnings_point_at_the_line_of_the_user(monkeypatch):
    monkeypatch.undo()
    for call in (lambda: DPLogisticRegression(11.0).plan(100, 2), lambda: DPLogisticRegression(11.0).fit(X, y)):
        with pytest.warns(UserWarning, match="weak guarantee") as caught:
            call()
        assert caught[0].filename == __file__


def test_no_weights_are_no_weights(monkeypatch):
    monkeypatch.undo()
    assert fitted(DPLogisticRegression(), X, y, sample_weight=None).n_features_in_ == 2


@pytest.mark.parametrize("name", ("warm_start", "sample_weight", "partial_fit", "max_iter", "tol", "C", "penalty", "n_jobs"))
def test_what_cannot_exist_is_refused_with_the_reason(name):
    reason = f"does not take {name}: .{{20,}}"
    with pytest.raises(TypeError, match=reason):
        DPLogisticRegression(**{name: 1})
    with pytest.raises(TypeError, match=reason):
        DPLogisticRegression().set_params(**{name: 1})
    with pytest.raises(TypeError, match=reason):
        DPLogisticRegression().fit(X, y, **{name: 1})
    with pytest.raises(TypeError, match="expected X and y only"):
        DPLogisticRegression().fit(X, y, callback=print)
    with pytest.raises(TypeError, match="Ids of persons are fit"):
        DPLogisticRegression().fit(X, y, groups=y)


def test_predict_checks_the_features(monkeypatch):
    monkeypatch.undo()
    model = fitted(DPLogisticRegression(), np.tile(X, (10, 1)), np.tile(y, 10))
    with pytest.raises(ValueError, match="X has 1 features"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="Reshape your data"):
        model.predict_proba(X[0])


def test_too_many_features_are_refused():
    with pytest.raises(ValueError, match="features; expected at most"):
        DPLogisticRegression().plan(100, 2**22 + 1)

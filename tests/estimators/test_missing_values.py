"""Missing and infinite numbers: the message names the column, which is public, and neither a row nor a value."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.estimators import DPAdditiveClassifier
from skdp.preprocessing import BoundedScaler

NAMES = ["age", "income", "height"]
FORMS = {
    "pandas": (lambda X: pd.DataFrame(X, columns=NAMES), "'income'"),
    "nullable": (lambda X: pd.DataFrame(X, columns=NAMES).convert_dtypes(), "'income'"),
    "polars": (lambda X: pl.DataFrame(dict(zip(NAMES, X.T, strict=True))), "'income'"),
    "array": (lambda X: X, "1, counted from 0"),
    "list": (lambda X: X.tolist(), "1, counted from 0"),
    "csr": (sparse.csr_array, "1, counted from 0"),
    "csc": (sparse.csc_array, "1, counted from 0"),
}


def gapped(value):
    X = np.random.default_rng(0).uniform(0.125, 1, size=(40, 3))
    X[17, 1] = value
    return X


@pytest.mark.each_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", (np.nan, np.inf))
@pytest.mark.parametrize("kind", (DPLogisticRegression, DPLinearRegression, DPAdditiveClassifier, BoundedScaler))
def test_the_column_with_a_gap_is_named(kind, value, form, monkeypatch):
    if form in ("csr", "csc") and kind is DPAdditiveClassifier:
        pytest.skip("takes dense tables")
    monkeypatch.setattr("skdp.estimators._base.pay", lambda *given: pytest.fail("it was paid for"))
    made, named = FORMS[form]
    bounds = {DPAdditiveClassifier: {"feature_bounds": 1.0}, BoundedScaler: {"bounds": 1, "centre": False}}
    given = {DPLogisticRegression: {"data_norm": 1.5}, DPLinearRegression: {"target_bounds": (0, 1), "data_norm": 1.5}, **bounds}
    with pytest.raises(ValueError, match="Columns with missing or infinite values: " + named) as caught:
        kind(**given.get(kind, {})).fit(made(gapped(value)), np.arange(40) % 2)
    text = str(caught.value)
    assert "17" not in text and "age" not in text.split("Fill")[0] and caught.value.__context__ is None


def test_predictions_name_it_too_and_long_lists_are_cut():
    X = np.full((40, 30), np.nan)
    model = DPLogisticRegression().fit(np.ones((40, 30)) / 30, np.arange(40) % 2)
    with pytest.raises(ValueError, match=r"values: 0, 1, .*, 9 and 20 more, counted from 0\. Fill missing values"):
        model.predict(X)


def test_a_column_of_an_additive_model_is_named_as_its_schema_names_it():
    frame = pd.DataFrame({"age": np.ones(40), "pressure": gapped(np.nan)[:, 1], "prior": np.ones(40)})
    schema = {"columns": {name: {"kind": "number", "bounds": [0, 2]} for name in frame}}
    with pytest.raises(ValueError, match=r"missing or infinite values: 'pressure'\. Fill"):
        DPAdditiveClassifier(schema=schema).fit(frame, np.arange(40) % 2)

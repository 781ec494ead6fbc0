"""Test the messages that a first-time user gets."""

import warnings

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp import DPAdditiveRegressor, DPLinearRegression, DPLogisticRegression
from skdp.preprocessing import BoundedScaler

N = 2000
RNG = np.random.default_rng(0)
X = RNG.uniform((-3, 0), (3, 10), size=(N, 2))
Y = (X[:, 0] > 0).astype(int)


def said(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("two", [[3, 10], np.array([3, 10])], ids=["list", "array"])
def test_two_numbers_for_two_columns_warn_once_per_fit(two):
    """They could be meant as one number per column."""
    for work in (
        lambda: DPLogisticRegression(feature_bounds=two, classes=[0, 1]).fit(X, Y),
        lambda: BoundedScaler(bounds=two).fit(X),
    ):
        (message,) = said(work)
        assert "is taken as (low, high) for both columns" in message and "[(-3, 3), (0, 10)]" in message


@pytest.mark.parametrize("bounds", [(3, 10), [(-3, 3), (0, 10)], 10.0])
def test_bounds_that_can_mean_one_thing_only_do_not_warn(bounds):
    assert not said(lambda: DPLogisticRegression(feature_bounds=bounds, classes=[0, 1]).fit(X, Y))
    assert not said(lambda: DPLogisticRegression(feature_bounds=[-3, 10], classes=[0, 1]).fit(X[:, [0, 1, 1]], Y))


def test_the_place_of_a_wrong_pair_is_shown():
    with pytest.raises(ValueError, match=r"\(the pair at feature_bounds\[1\]\); expected"):
        DPLogisticRegression(feature_bounds=[(-3, 3), (10, 0)]).fit(X, Y)


def test_bounds_by_name_of_a_table_without_names_say_what_to_give():
    with pytest.raises(ValueError, match="one pair per column, in order"):
        DPLogisticRegression(feature_bounds={"a": 3, "b": 10}).fit(X, Y)
    with pytest.raises(ValueError, match=r"the columns of X: \['a', 'b'\]\.$"):
        DPLogisticRegression(feature_bounds={"a": 3}).fit(pd.DataFrame(X, columns=["a", "b"]), Y)


def test_an_additive_regressor_takes_the_range_of_y_from_its_schema():
    """At epsilon 100 and without errors in y, R2 below .9 has a probability that is negligible."""
    schema = {"columns": {"a": {"kind": "number", "bounds": [-3, 3]}}, "target": "y", "target_bounds": [100, 400]}
    table = pd.DataFrame({"a": X[:, 0]})
    y = 250 + 40 * X[:, 0]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "epsilon=")
        model = fitted(DPAdditiveRegressor(epsilon=100.0, schema=schema), table, y)
        other = fitted(DPAdditiveRegressor(epsilon=100.0, schema=schema, target_bounds=(0, 500)), table, y)
    assert model.target_bounds_ == (100, 400) and model.score(table, y) > 0.9
    assert other.target_bounds_ == (0, 500)


def test_text_in_x_points_to_a_schema():
    with pytest.raises(ValueError, match='schema="learn"'):
        DPLogisticRegression(data_norm=1.0).fit(pd.DataFrame({"a": ["u", "v"] * 10}), [0, 1] * 10)


def test_what_a_plan_asks_for_is_said_to_be_the_least():
    text = " ".join(str(DPLinearRegression(target_bounds=(0, 1)).plan(200, 10)).split())
    assert "To predict more than a constant, a model needs about" in text and "a good model needs several times as much" in text


def test_entries_of_a_mapping_are_not_called_parameters_in_the_page():
    page = DPLogisticRegression(feature_bounds={"a": 3, "b": 10}).plan(2000, 2).to_html()
    assert "entries</summary>" in page and "parameters</summary>" not in page

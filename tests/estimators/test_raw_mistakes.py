"""Mistakes at a raw frame: each error names what is wrong, and not the text that learning would have read."""

import numpy as np
import pandas as pd
import pytest

from skdp import DPLinearRegression, DPLogisticRegression

N = 400


@pytest.fixture
def frame(rng):
    """A column of numbers, one of text, and one of dates as text."""
    dates = rng.choice(["2020-01-31", "2021-12-01"], N)
    return pd.DataFrame({"age": rng.normal(50, 9, N), "town": rng.choice(["Ulm", "Bonn"], N), "since": dates})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "^epsilon=0; expected"),
        ({"solver": "unheard_of"}, "^solver='unheard_of'; expected"),
        ({"solver": "sgd"}, r"^solver=SGD.* cannot share a budget"),
        ({"delta": 0}, "^delta=0: columns are learnt with Gaussian noise"),
        ({"schema": {"since": {"kind": "number", "bounds": [0, 1]}}}, r"^schema gives bounds to the columns \['since'\]"),
    ],
)
def test_a_frame_of_text_gets_the_error_of_the_parameter(parameters, message, frame):
    labels = np.arange(N) % 2
    with pytest.raises(ValueError, match=message) as caught:
        DPLogisticRegression(**{"epsilon": 1.0, **parameters}).fit(frame, labels)
    assert "2020" not in str(caught.value) and caught.value.__context__ is None


def test_a_frame_with_numbers_as_names_gets_the_error_of_its_names(frame):
    with pytest.raises(ValueError, match="column names that are no strings"):
        DPLogisticRegression(epsilon=1.0).fit(frame.set_axis(range(3), axis=1), np.arange(N) % 2)


def test_a_target_that_cannot_be_read_is_not_blamed_on_the_columns(frame):
    with pytest.raises(ValueError, match=r"^y has values that cannot be read\. In y, a regression takes numbers") as caught:
        DPLinearRegression(epsilon=1.0).fit(frame, np.where(np.arange(N) % 2, "secret", "other"))
    assert "schema" not in str(caught.value) and "secret" not in str(caught.value)


def test_text_that_holds_numbers_may_have_bounds(frame):
    schema = {"age": {"kind": "number", "bounds": [0, 120]}}
    model = DPLogisticRegression(epsilon=9.0, schema=schema).fit(frame.assign(age=frame["age"].astype(str)), np.arange(N) % 2)
    assert "age" not in model.learnt_ and "town" in model.learnt_

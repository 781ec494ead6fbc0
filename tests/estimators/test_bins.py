"""Bins of the columns of an additive basis: those of rows and of columns, and what the functions add in each."""

import numpy as np
import pandas as pd
import pytest

from skdp.estimators.additive._bins import bin_effects, bins_of, bins_of_values
from skdp.preprocessing import AdditiveBasis, Schema
from skdp.privacy.data.bins import EDGES

HOURS = [float(hour) for hour in range(24)]
SCHEMA = {
    "columns": {
        "age": {"kind": "number", "bounds": [-20, 60]},
        "income": {"kind": "number", "bounds": [0, 1e6], "scale": "log", "fill": 0},
        "hour": {
            "kind": "number",
            "bounds": [0, 23],
            "core": [2, 20],
            "centre": 11,
            "integers": HOURS,
            "missing": True,
            "mean_square": 1.0,
        },
        "job": {"kind": "category", "categories": ["a", "b"]},
    }
}
MIDDLES = (np.concatenate([[0.0], EDGES]) + np.concatenate([EDGES, [1.0]])) / 2


@pytest.fixture(params=[0, 3])
def basis(request):
    return AdditiveBasis(Schema.read(SCHEMA), request.param)


def frame(rng, n=500):
    hours = rng.integers(0, 24, n).astype(float)
    hours[::9] = np.nan
    columns = {"age": rng.uniform(-40, 80, n), "income": rng.exponential(1e4, n), "hour": hours}
    return pd.DataFrame({**columns, "job": rng.choice(["a", "b", "?"], n)})


def test_bins_of_rows_are_those_of_columns(basis, rng):
    X, bins = frame(rng), bins_of(basis)
    found = bins(basis.transform(X))
    for place, values in enumerate(basis.values_of(X)):
        assert np.array_equal(bins_of_values(bins, place, values), found[place])
    assert bins.sizes == (EDGES.size + 1, EDGES.size + 1, EDGES.size + 2, 3)
    assert np.array_equal(found[0], np.searchsorted(EDGES, np.clip((X["age"] + 20) / 80, 0, 1), side="right"))
    assert np.array_equal(found[2] == EDGES.size + 1, X["hour"].isna())
    assert np.array_equal(found[3], X["job"].map({"a": 0, "b": 1, "?": 2}))


def test_raw_predictions_of_columns_add_up_to_those_of_rows(basis, rng):
    X, coef = frame(rng), rng.normal(size=(2, basis.n_features))
    total = sum(basis.raw(values, coef) for values in basis.values_of(X))
    np.testing.assert_allclose(total, basis.transform(X) @ coef.T, rtol=1e-10, atol=1e-12)


def test_effects_are_those_at_the_centres_of_bins(basis, rng):
    """Numbers lie at the middle of their bin, integers of a learned schema add theirs, and missing cells lie at the centre."""
    coef, bins = rng.normal(size=(2, basis.n_features)), bins_of(basis)
    effects = bin_effects(basis, bins, coef)
    n = MIDDLES.size
    X = pd.DataFrame({"age": -20 + 80 * MIDDLES, "income": np.zeros(n), "hour": np.full(n, 0.5), "job": ["b"] * n})
    age, _, _, job = (basis.raw(values, coef) for values in basis.values_of(X))
    np.testing.assert_allclose(effects[0], age.T, rtol=1e-9)
    np.testing.assert_allclose(effects[3][:, 1], job[0])
    cells = pd.DataFrame({"age": [0.0] * 25, "income": 0.0, "hour": [*HOURS, np.nan], "job": "a"})
    values = list(basis.values_of(cells))[2]
    hour, found = basis.raw(values, coef), bins_of_values(bins, 2, values)
    near = effects[2][:, found].T
    np.testing.assert_allclose(near[-1], hour[-1])
    assert np.abs(near - hour)[:-1].max() < 0.05 * np.ptp(hour)  # an integer is not at the middle of its bin

"""Fits of tables in partitions: the same bits as in memory, whatever the source."""

import numpy as np
import pytest

from skdp.data import chunks, npy
from skdp.estimators import DPLinearRegression, DPLogisticRegression, DPQuantileRegressor
from skdp.privacy.data import summation
from skdp.testing import reproducible_noise

N, D = 30_000, 3


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks of one block, so that small tables have several."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    score = X @ rng.normal(size=D)
    return X, np.array(["no", "yes"])[(score + rng.normal(size=N) > 0).astype(int)], np.clip(score, -3, 3)


def in_chunks(X, y, length):
    return lambda: ((X[start : start + length], y[start : start + length]) for start in range(0, len(X), length))


FITS = {
    "logistic": (DPLogisticRegression(data_norm=3.0), 1),
    "newton": (DPLogisticRegression(data_norm=3.0, classes=["no", "yes"], solver="newton"), 1),
    "linear": (DPLinearRegression(data_norm=3.0, target_bounds=(-3, 3)), 2),
    "ssp": (DPLinearRegression(data_norm=3.0, target_bounds=(-3, 3), solver="ssp"), 2),
    "quantile": (DPQuantileRegressor(data_norm=3.0, target_bounds=(-3, 3)), 2),
}


@pytest.mark.parametrize("cache", ("disk", None))
@pytest.mark.parametrize("name", FITS)
def test_the_source_changes_no_bit(name, cache, table, short_chunks, tmp_path):
    estimator, target = FITS[name]
    X, y = table[0], table[target]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    with reproducible_noise(0):
        memory = estimator.fit(X, y).coef_
    for source in (npy(tmp_path / "X.npy", tmp_path / "y.npy", cache=cache), chunks(in_chunks(X, y, 777), cache=cache)):
        with reproducible_noise(0):
            model = estimator.fit(source)
        assert np.array_equal(model.coef_, memory)
        assert np.array_equal(model.predict(source), model.predict(X))


@pytest.mark.parametrize("solver", ("objective", "output", "skgd", "sgd"))
def test_solvers_that_need_memory_are_refused_before_the_table_is_read(solver, table):
    def unread():
        raise AssertionError("the table was read")

    model = DPLogisticRegression(solver=solver, classes=["no", "yes"])
    with pytest.raises(ValueError, match="needs a table in memory"):
        model.fit(chunks(unread, n_features=D))

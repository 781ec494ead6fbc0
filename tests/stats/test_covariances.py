"""Covariances and correlations: what they are without noise, of complete records alone, projected, and their intervals."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from skdp import PrivacyLedger, stats
from skdp.privacy.errors import LowSignalWarning
from skdp.stats._covariances import Moments
from skdp.testing import reproducible_noise

BOUNDS = {"a": (0, 50), "b": (-10, 10), "c": (0, 1)}


def drawn(n, seed=0, missing=0.0):
    """Correlated columns: one of integers, one with a tail beyond its bounds, and one with two values."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 51, n)
    frame = pd.DataFrame({"a": a, "b": a / 10 + 3 * rng.standard_t(3, n), "c": (rng.random(n) < a / 60).astype(int)})
    frame.loc[rng.random(n) < missing, "b"] = np.nan
    return frame


def clipped(frame):
    low, high = np.array([*BOUNDS.values()]).T
    return frame.clip(pd.Series(low, BOUNDS), pd.Series(high, BOUNDS), axis=1)


@pytest.mark.filterwarnings("ignore:.*not private")
@pytest.mark.parametrize("missing", (0.0, 0.3))
def test_without_noise_they_are_those_of_the_complete_records(missing):
    frame = drawn(4000, missing=missing)
    known = clipped(frame.dropna())
    found = stats.cov(frame, epsilon=math.inf, bounds=BOUNDS)
    np.testing.assert_allclose(found.table, known.cov(ddof=0), rtol=1e-5)  # cells are rounded
    assert found.table.index.tolist() == found.table.columns.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(stats.corr(frame, epsilon=math.inf, bounds=BOUNDS).table, known.corr(), rtol=1e-5)


@pytest.mark.parametrize("call", (stats.cov, stats.corr))
def test_what_is_released_is_positive_semidefinite_and_within_its_interval(call):
    frame = drawn(400)[["a", "b"]].assign(again=lambda t: t["a"], half=lambda t: t["a"] / 2)  # of rank 2: noise is below 0
    least = []
    for seed in range(5):
        with reproducible_noise(seed):
            found = call(frame, epsilon=9.0, bounds=[(0, 50), (-10, 10), (0, 50), (0, 25)])
        least.append(np.linalg.eigvalsh(found.value).min() / np.abs(found.value).max())
        assert np.all((found.low <= found.value) & (found.value <= found.high)) and np.array_equal(found.value, found.value.T)
        if call is stats.corr:
            assert np.all(np.diag(found.value) == 1) and np.abs(found.value).max() <= 1
    assert np.min(least) > -1e-9 and np.median(least) < 1e-9  # the nearest matrix is on the border


@pytest.mark.filterwarnings("ignore:Noise is likely to hide")
def test_correlations_that_noise_hides_are_not_determined():
    with reproducible_noise(0):
        found = stats.corr(drawn(50).round().astype(int), epsilon=0.1, bounds=BOUNDS)  # the number of records is public
    apart = ~np.eye(3, dtype=bool)
    assert np.isnan(found.value[apart]).all() and np.all(found.low[apart] == -1) and np.all(found.high[apart] == 1)
    assert "not determined" in str(found) and np.all(np.diag(found.value) == 1)


@pytest.mark.filterwarnings("ignore:Noise is likely to hide")
def test_a_variance_below_three_standard_deviations_of_its_noise_is_not_divided_by():
    """That of the second column is at one; it is above three with a probability of 2 %, and below 0 with one of 16 %."""
    nans = []
    for seed in range(10):
        with reproducible_noise(seed):
            found = stats.corr(drawn(200).round().astype(int), epsilon=0.3, bounds=BOUNDS)
        nans.append(np.isnan(found.value[1, 0]))
    assert np.mean(nans) > 0.6


def test_the_smaller_noise_is_taken_and_no_delta_is_spent_for_laplace_noise():
    wide = np.tile(np.arange(300.0)[:, None] % 7, 12)
    for columns, delta, spends in ((2, None, False), (12, None, True), (12, 0, False)):
        found = stats.cov(wide[:, :columns], epsilon=5.0, bounds=(0, 7), delta=delta)
        assert (found.privacy_spent.delta > 0) == spends and found.privacy_spent.epsilon <= 5.0
    assert found.table.columns.tolist() == [f"x{place}" for place in range(12)]


def test_learned_bounds_are_in_the_name():
    with reproducible_noise(0):
        found = stats.cov(drawn(3000)[["a", "b"]], epsilon=3.0, bounds={"b": (-10, 10)})
    assert found.name.startswith("cov of values clipped to a [") and ", b" not in found.name


@pytest.mark.parametrize("bounds", ({"nobody": (0, 1)}, [(0, 1)], (1, 0), "ab", 3, [(0, 1), (2, 1), None]))
def test_bounds_that_are_none_are_refused(bounds):
    with pytest.raises((TypeError, ValueError), match="bounds="):
        stats.cov(drawn(50), epsilon=1.0, bounds=bounds)


def test_one_column_is_refused():
    with pytest.raises(ValueError, match="at least two"):
        stats.cov(drawn(50)["a"], epsilon=1.0)


def coverage(call, n, epsilon, repetitions, missing=0.0):
    """Return the least share of intervals, over the entries, that hold that of the law of the clipped cells."""
    law = clipped(drawn(50_000, 99))
    truth = (law.cov(ddof=0) if call is stats.cov else law.corr()).to_numpy()
    held = np.zeros((3, 3))
    for seed in range(repetitions):
        with reproducible_noise(seed):
            found = call(drawn(n, seed, missing), epsilon=epsilon, bounds=BOUNDS)
        held += (found.low <= truth) & (truth <= found.high)
    return (held / repetitions).min()


def test_intervals_hold_the_covariances_of_the_law():
    """At least 8 of 10 of each of six: a false alarm in 15 if 95 % hold it, of which the seeds have none."""
    assert coverage(stats.cov, 300, 2.0, 10) >= 0.8


@pytest.mark.slow  # a twin of half a second is above
@pytest.mark.filterwarnings("ignore:Noise is likely to hide")
@pytest.mark.parametrize("call", (stats.cov, stats.corr))
def test_intervals_hold_the_law_with_missing_cells_and_both_noises(call, monkeypatch):
    """95 % of 100, but for binomial error of 4 standard deviations, which is 9 %: a false alarm in 2000."""
    for n, epsilon, missing in ((300, 0.5, 0.0), (2000, 1.0, 0.4), (5000, 3.0, 0.01)):
        assert coverage(call, n, epsilon, 100, missing) > 0.86
    monkeypatch.setattr(Moments, "sampling", lambda self, z: np.zeros_like(self.raw))
    assert coverage(call, 2000, 10.0, 50) < 0.86  # a twin with intervals for the noise alone


@pytest.mark.parametrize("function", (stats.cov, stats.corr))
def test_noise_that_hides_usual_variances_is_warned_of_before_the_charge(function):
    """Of four columns at epsilon 0.1, no correlation was determined in 20 of 20 calls; at 1, all were."""
    x, ledger = np.random.default_rng(0).normal(size=(5000, 4)), PrivacyLedger(epsilon=1.0, delta=1e-5)
    function(x, bounds=(-4, 4), epsilon=1.0)
    with ledger, warnings.catch_warnings(), pytest.raises(LowSignalWarning, match="hide the covariances"):
        warnings.simplefilter("error")
        function(x, bounds=(-4, 4), epsilon=0.1)
    assert not ledger.entries

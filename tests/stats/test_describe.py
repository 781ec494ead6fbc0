"""Descriptions of tables: what they say without noise, their intervals, their schema, and what they refuse."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp.privacy.errors import LowSignalWarning, NotPrivateWarning, TableWarning
from skdp.privacy.queries.haar_counts import LEAVES, haar
from skdp.stats import describe, plan_describe
from skdp.stats._candidates import edges_for
from skdp.stats._distribution import Distribution, leaf_variances, node_sizes
from skdp.stats._limited import moments_of
from skdp.stats._statistic import short
from skdp.testing import reproducible_noise

N = 4000
KNOWN = {
    "age": {"kind": "number", "bounds": [0, 100]},
    "gain": {"kind": "number", "bounds": [0, 1e5]},
    "town": {"kind": "category", "categories": ["Kent", "York"]},
}


def made_up(seed=0, n=N):
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.2, np.nan, rng.integers(17, 90, n))
    gain = np.where(rng.random(n) < 0.8, 0.0, np.floor(rng.exponential(9000.0, n)))
    town = rng.choice(["Kent", "York", "Bath", None], n, p=[0.5, 0.3, 0.1, 0.1])
    return pd.DataFrame({"age": age, "gain": gain, "town": town})


FRAME = made_up()


def without_noise(frame, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return describe(frame, epsilon=math.inf, **given)


def test_without_noise_it_says_what_pandas_says():
    found = without_noise(FRAME, schema=KNOWN, quantiles=(0.1, 0.5, 0.9))
    expected = FRAME[["age", "gain"]].describe(percentiles=(0.1, 0.5, 0.9))
    for row, precision in (("count", 1e-9), ("mean", 1e-5), ("std", 1e-3)):
        np.testing.assert_allclose(found.table.loc[row], expected.loc[row], rtol=precision)
    np.testing.assert_allclose(found.table.loc[["10%", "50%", "90%"], "age"], expected.loc[["10%", "50%", "90%"], "age"])
    assert found.table.loc["50%", "gain"] == 0.0  # an atom
    assert found.table.loc["missing", "age"] == pytest.approx(FRAME["age"].isna().mean())
    shares = FRAME["town"].value_counts(normalize=True, dropna=False)
    named = {"Kent": shares["Kent"], "York": shares["York"], "other": shares["Bath"], "(missing)": FRAME["town"].isna().mean()}
    assert found.categories.loc["town", "value"].to_dict() == pytest.approx(named)


def test_columns_that_nobody_describes_are_learned():
    found = without_noise(FRAME.assign(code=np.arange(N) % 3))
    low, high = found.limits.loc["age", ["low", "high"]]
    assert low <= 17 and 89 <= high <= 256 and found.limits.loc["age", "bounds"] == "learned"
    assert found.table.loc["mean of clipped values", "age"] == pytest.approx(FRAME["age"].mean(), rel=1e-4)
    assert {f"bucket {skdp.preprocessing.hash_bucket('Kent')}", "(other)", "(missing)"} <= {*found.categories.loc["town"].index}
    assert found.table.loc["mean of clipped values", "code"] == pytest.approx(1.0, abs=1e-3)


def test_intervals_cover_noise_and_sampling():
    """Of 25 tables with 11 numbers each, at least 245 intervals do, and of the 75 of means and deviations at least 64.

    Either fails by chance in about 1 run of 10**4. Those of quantiles and of shares are too wide to show one that is too short.
    """
    moments, shares, hits = 0, {"Kent": 0.5, "York": 0.3, "other": 0.1, "(missing)": 0.1}, 0
    ages, gain = np.arange(17, 90), 1800 - 0.1
    for seed in range(25):
        with reproducible_noise(seed):
            found = describe(made_up(seed + 1, 1000), epsilon=1.0, schema=KNOWN, clip="bounds", quantiles=(0.25, 0.5, 0.75))
        expected = {
            ("age", "mean"): ages.mean(),
            ("age", "std"): ages.std(),
            ("age", "share missing"): 0.2,
            ("gain", "mean"): gain,
        }
        expected |= {("age", f"quantile {q:g}"): np.quantile(ages, q) for q in (0.25, 0.5, 0.75)}
        rows = [(found.intervals.loc[name], value) for name, value in expected.items()]
        rows += [(found.categories.loc[("town", name)], value) for name, value in shares.items()]
        held = {row.name: row["low"] <= value <= row["high"] for row, value in rows}
        hits, moments = hits + sum(held.values()), moments + sum(held[name] for name in expected if name[1] in ("mean", "std"))
    assert hits >= 245 and moments >= 64


def test_the_name_of_a_row_says_what_is_clipped():
    frame = FRAME.assign(gain=np.minimum(FRAME["gain"], 20.0))
    with reproducible_noise(0):
        found = describe(frame, epsilon=1.0, schema=KNOWN)
        plain = describe(frame, epsilon=1.0, schema=KNOWN, clip="bounds")
    low, high = found.limits.loc["gain", ["low", "high"]]
    assert high < 1e5 and f"mean of values clipped to [{low:.6g}, {high:.6g}]" in found.intervals.loc["gain"].index
    assert f"gain to [{low:.6g}, {high:.6g}]" in str(found)
    width = found.intervals.loc["gain"].iloc[2]
    assert "mean" in plain.intervals.loc["gain"].index and "clipped" not in str(plain)
    assert width["high"] - width["low"] < 0.1 * (plain.intervals.loc[("gain", "mean")] @ [0, -1, 1])


@pytest.mark.parametrize("schema", (KNOWN, None, {"age": KNOWN["age"]}), ids=("known", "learned", "part"))
def test_a_fit_with_its_schema_learns_nothing(schema):
    with reproducible_noise(0):
        found = describe(FRAME, epsilon=8.0, delta=1e-6, schema=schema)
        for model in (skdp.DPLogisticRegression, skdp.DPAdditiveClassifier):
            fitted = model(epsilon=1.0, schema=found.schema, classes=[0, 1]).fit(FRAME.fillna({"age": 50}), np.arange(N) % 2)
            assert "ColumnHistograms" not in str(fitted.privacy_report_)
    assert {*found.schema.columns} == {*FRAME.columns}


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"quantiles": (0.5, 1.5)}, "quantiles"),
        ({"clip": "none"}, "clip"),
        ({"delta": 0}, "delta=0"),
        ({"schema": {"age": "ignore", "gain": "ignore", "town": "ignore"}}, "schema"),
        ({"schema": {"columns": {"nobody": KNOWN["age"]}}}, "nobody"),
    ],
    ids=str,
)
def test_what_it_refuses_before_the_charge(wrong, message):
    ledger = skdp.PrivacyLedger(epsilon=10.0, delta=1e-5)
    with ledger, pytest.raises(ValueError, match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        describe(FRAME, **{"epsilon": 1.0, "schema": KNOWN, **wrong})
    assert not len(ledger.entries)


def test_it_warns_before_the_charge_where_noise_hides_all():
    ledger = skdp.PrivacyLedger(epsilon=10.0, delta=1e-3)
    with ledger, warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        for schema in (KNOWN, None):
            with pytest.raises(LowSignalWarning):
                describe(FRAME[:300], epsilon=0.05, schema=schema)
    assert not len(ledger.entries)


def test_noise_that_hides_all_is_said_and_breaks_nothing():
    for seed in range(2):
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore", LowSignalWarning)
            found = describe(FRAME[:50], epsilon=0.02, delta=1e-5, schema=KNOWN)
        assert "not determined" in str(found) and "not determined" in found._repr_html_()
        assert found.plot() is not None


def test_a_plan_states_what_a_description_spends():
    with reproducible_noise(0):
        found = describe(FRAME, epsilon=1.0, schema=KNOWN).privacy_report
    for planned in (
        plan_describe(FRAME, epsilon=1.0, schema=KNOWN),
        plan_describe(N, epsilon=1.0, schema={"columns": KNOWN}),
    ):
        assert planned.planned and planned.noise_size == found.noise_size
        assert "quantiles=" in str(found) and "quantiles=" not in str(planned)  # which cost nothing
        assert [str(line) for line in planned.releases] == [str(line) for line in found.releases]
    assert "rank of a quantile" in plan_describe(N, 5, epsilon=1.0).noise_size


def test_it_prints_and_draws():
    pytest.importorskip("matplotlib").use("agg")
    with reproducible_noise(0):
        found = describe(FRAME, epsilon=3.0, schema=KNOWN)
    assert "Kent" in str(found) and str(found).endswith(found.privacy_report.summary) and repr(found) == str(found)
    page = found._repr_html_()
    assert page.count("<svg") == 2 + 4 and "Kent" in page
    figure = found.plot()
    assert [ax.get_title() for ax in figure.axes] == list(FRAME.columns)


@pytest.mark.parametrize(
    "low, high", [(0.0, 1.0), (0.0, 120.0), (0.5, 510.9), (0.0, 1e5), (-3e5, 3e5), (5e5, 1e6), (0.0, 1e-9), (-10.0, 1e9)]
)
@pytest.mark.parametrize("most", (8, 511, 8192))
def test_candidates_are_public_and_between_the_limits(low, high, most):
    edges = edges_for(low, high, most)
    assert edges[0] == low and edges[-1] == high and edges.size <= most and (np.diff(edges) > 0).all()
    if high - low <= most - 3:
        assert np.isin(np.arange(math.ceil(low), math.floor(high) + 1.0), edges).all()


def test_the_noise_of_a_distribution_function_is_what_it_says(rng):
    counts = rng.integers(0, 50, LEAVES).astype(float)
    exact, edges = haar() @ counts, np.arange(511.0)
    found = Distribution(edges, exact, 1.0, counts.sum(), False)
    np.testing.assert_allclose(found.counts, counts, atol=1e-9)
    noises = rng.normal(size=(2000, LEAVES - 1))
    sums = np.cumsum(noises / node_sizes() @ haar(), axis=1)
    own, shared = leaf_variances()
    np.testing.assert_allclose(sums.var(axis=0)[:-1], own[:-1], rtol=0.25)
    np.testing.assert_allclose((sums * sums[:, [-2]]).mean(axis=0), shared, atol=0.1)


def test_intervals_of_deviations_cover_where_noise_is_as_large_as_the_mean(rng):
    """All records are at a bound. Of 2000 intervals of 95 %, at most 80 start above 0 but in one of 10**5 runs."""
    counts = np.eye(1, LEAVES, 1)[0] * 500
    distribution = Distribution(np.arange(511.0), haar() @ counts, 1e-6, 500.0, True)
    noise = np.array([150.0, 90.0])
    sums = [-500.0, 500.0] + noise * rng.normal(size=(2000, 2))
    lows = [moments_of(distribution, (0.0, 510.0), both, noise, 1.96)[1].low for both in sums]
    assert np.count_nonzero(lows) <= 80


def test_means_are_determined_where_noise_leaves_the_number_of_cells_above_two_standard_deviations(rng):
    counts = np.eye(1, LEAVES, 1)[0] * 300 + np.eye(1, LEAVES, LEAVES - 1)[0] * 700
    for present_noise, determined in ((100.0, True), (160.0, False)):
        noise = present_noise / math.sqrt(leaf_variances()[0][-2])
        distribution = Distribution(np.arange(511.0), haar() @ counts, noise, 1000.0, False)
        mean, _ = moments_of(distribution, (0.0, 510.0), np.array([-300.0, 300.0]), np.array([5.0, 5.0]), 3.5)
        assert mean.determined == determined
        assert not determined or (mean.low, mean.high) == (0.0, 510.0)  # as many cells as noise may make of none


def test_moments_are_shown_as_dates_and_their_deviation_in_days():
    """In print and on the page; numbers in `table` and `intervals` stay seconds."""
    hours = np.random.default_rng(0).integers(0, 300 * 24, 5000)
    frame = pd.DataFrame({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, "h"), "one": 1.0})
    with reproducible_noise(0):
        found = describe(frame, epsilon=3.0)
    text, page = str(found), found.to_html()
    assert "2024-0" in text and " days" in text and "170" not in text
    assert "2024-0" in page and " days<br>" in page and found.table.loc["50%", "day"] > 1.7e9
    assert "1.0000000000" not in text  # of a column without spread, whose interval is shorter than digits help


def test_numbers_have_the_digits_that_intervals_support():
    assert short(1e300, 1.0) == "1e+300" and short(12345678.123, 1e-9) == "12345678.1" and short(0.5, 0.01) == "0.500"


@pytest.mark.parametrize("kind", (int, float))
def test_bins_of_a_picture_have_as_many_integers_each(kind):
    frame = pd.DataFrame({"day": (np.arange(20_000) % 73 + 18).astype(kind)})
    with pytest.warns(NotPrivateWarning):
        found = describe(frame, epsilon=math.inf, schema={"day": {"kind": "number", "bounds": [0, 120]}})
    ends, bars = found.numbers[0].bars(1.0)
    assert {*np.diff(ends)} == {4.0} and ends[0] % 1 == 0.5
    assert np.ptp([bar.value for bar in bars[1:-1]]) < 1e-3  # evenly, as the days are


def test_bins_of_integers_hold_as_many_each_by_type_or_as_far_as_noise_tells():
    """Where cells may be missing; a column with one frequent integer among others is none of integers."""
    days, n = np.arange(2000) % 73 + 18, 2000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"typed": days, "float": days.astype(float), "other": np.where(rng.random(n) < 0.9, 0.0, days / 7)})
    known = {name: {"kind": "number", "bounds": [0, 120]} for name in frame}
    with reproducible_noise(0):
        found = {one.name: one for one in describe(frame.astype({"typed": "Int64"}), epsilon=1.0, schema=known).numbers}
    for name, whole in (("typed", True), ("float", True), ("other", False)):
        ends, _ = found[name].bars(1.0)
        assert (len({*np.diff(ends)}) == 1 and np.diff(ends)[0] % 1 == 0 and ends[0] % 1 == 0.5) == whole, name


@pytest.mark.parametrize("known", (None, {"smokes": {"kind": "number", "bounds": [0, 1]}}), ids=("learned", "known"))
@pytest.mark.parametrize("kind", (bool, "boolean"))
def test_of_truths_the_share_of_true_ones_is_told(kind, known):
    frame = pd.DataFrame({"smokes": np.arange(4000) % 10 == 0}).astype(kind)
    with reproducible_noise(0):
        found = describe(frame, epsilon=3.0, schema=known)
    assert [*found.table.index] == ["count", "missing", "share true"] and found.table.loc[
        "share true", "smokes"
    ] == pytest.approx(0.1, abs=0.01)
    assert "clipped" not in str(found) and "learned" not in str(found.limits)
    low, high = found.intervals.loc[("smokes", "share true of those that are there"), ["low", "high"]]
    assert 0.05 < low < 0.1 < high < 0.15


def test_texts_that_noise_hides_are_not_described_as_missing_numbers():
    """Cells of a CSV are read one by one. Each bucket of 400 different dates is far below the noise."""
    days = pd.date_range("2020-01-01", periods=400).strftime("%Y-%m-%d").astype(object)
    frame = pd.DataFrame({"day": days, "age": (np.arange(400) % 60 + 20).astype(object)})
    for seed in range(3):
        with reproducible_noise(seed), pytest.warns(LowSignalWarning, match=r"most cells of \['day'\] are text.*to_datetime"):
            found = describe(frame, epsilon=3.0)
        assert [one.name for one in found.numbers] == ["age"]
        shares = found.categories.loc["day", "value"]
        assert shares["(other)"] > 0.8 and shares["(missing)"] < 0.1 and shares["(numbers)"] < 0.1


def test_numbers_that_noise_hides_are_counted_and_warned_of():
    """They lie in more octaves than any noise lets one see."""
    sizes = np.exp(np.random.default_rng(0).normal(0, 12, 400))
    with reproducible_noise(0), pytest.warns(LowSignalWarning, match=r"most cells of \['size'\] are numbers"):
        found = describe(pd.DataFrame({"size": sizes.astype(object)}), epsilon=1.5)
    assert found.categories.loc[("size", "(numbers)"), "value"] > 0.8


@pytest.mark.parametrize("words", ("number", {"kind": "number", "bounds": [0, 9]}), ids=("learned", "bounds"))
def test_texts_that_are_described_as_numbers_are_warned_of_before_the_charge(words):
    """By their type: cells of objects may be anything, and say nothing."""
    texts, ledger = (
        pd.DataFrame({"size": pd.array(["3", "large"] * 3000, dtype="string")}),
        skdp.PrivacyLedger(epsilon=9.0, delta=1e-5),
    )
    describe(texts.astype(object), epsilon=5.0, schema={"size": words})
    with ledger, warnings.catch_warnings(), pytest.raises(TableWarning, match=r"'size': 'string'.* have types of text"):
        warnings.simplefilter("error")
        describe(texts, epsilon=5.0, schema={"size": words})
    assert not ledger.entries

"""All functions of `skdp.stats` alike: tables of all kinds, persons, weights, ledgers, errors before the charge, replay."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skdp
from skdp import stats
from skdp.privacy.errors import LowSignalWarning, WeakPrivacyWarning
from skdp.privacy.oracle import Oracle
from skdp.testing import reproducible_noise

N = 600
FRAME = pd.DataFrame({"age": np.random.default_rng(0).integers(17, 90, N).astype(float), "who": np.arange(N) // 3})
FRAME["size"] = FRAME["age"] % 7
FRAME.loc[::7, "age"] = np.nan


def described(x, **given):
    """A description, which warns of noise for so few records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)
        ids = {} if "persons" in given else {"who": "ignore"}
        return stats.describe(
            x, epsilon=1.0, schema={"age": {"kind": "number", "bounds": [0, 100]}, "size": "ignore", **ids}, **given
        )


def in_two(x, **given):
    """A grid, whose second side is learned; a wrong column stands for one of two."""
    columns = ("age", given.pop("column", "size"))
    return stats.histogram2d(x, bins=(4, 3), epsilon=1.0, range=[(0, 100), None], column=columns, **given)


def in_three(x, **given):
    wrong = given.pop("column", None)
    return stats.histogramdd(x, bins=3, epsilon=1.0, range=[(0, 100)], column=(wrong or "age",), **given)


def crossed(x, **given):
    """Categories of texts and numbers; a column that is text is none that is wrong."""
    wrong = given.pop("column", "kind")
    index = "nobody" if wrong == "text" else wrong
    frame = x.assign(kind=x["age"] // 10) if hasattr(x, "assign") else x.with_columns(kind=x["age"] // 10)
    return stats.crosstab(frame, index, "age", categories={index: [1, 2, 3], "age": [20, 30, 40]}, epsilon=1.0, **given)


def products(x, function=stats.cov, bounds={"age": (0, 100)}, **given):  # noqa: B006 - nothing changes it
    """Covariances of two columns, one of them between learned bounds; a wrong column stands for one of two."""
    columns = ("age", given.pop("column", "size"))
    return function(x, epsilon=2.0, bounds=bounds, column=columns, **given)


FUNCTIONS = {  # name: how it is called on a table with the columns "age" and "who", of which "age" has missing cells
    "mean": lambda x, **given: stats.mean(x, epsilon=1.0, bounds=(0, 100), **{"column": "age", **given}),
    "count": lambda x, **given: stats.count(
        x, epsilon=1.0, column={"text": "nobody"}.get(given.get("column"), given.pop("column", "age")), **given
    ),
    "sum": lambda x, **given: stats.sum(x, epsilon=1.0, bounds=(10, 100), **{"column": "age", **given}),
    "var": lambda x, **given: stats.var(x, epsilon=1.0, bounds=(0, 100), **{"column": "age", **given}),
    "std": lambda x, **given: stats.std(x, epsilon=1.0, **{"column": "age", **given}),  # learns bounds
    "count_nonzero": lambda x, **given: stats.count_nonzero(x, epsilon=1.0, **{"column": "size", **given}),
    "median": lambda x, **given: stats.median(x, epsilon=2.0, bounds=(0, 100), **{"column": "age", **given}),
    "quantile": lambda x, **given: stats.quantile(x, [0.7, 0.2, 0.5], epsilon=2.0, **{"column": "age", **given}),  # learns bounds
    "histogram": lambda x, **given: stats.histogram(x, 5, epsilon=0.9, range=(0, 100), **{"column": "age", **given}),
    "histogram2d": in_two,
    "histogramdd": in_three,
    "crosstab": crossed,
    "cov": products,
    "corr": lambda x, **given: products(x, stats.corr, [(15, 90), (0, 7)], **given),
    "describe": described,
}
every_function = pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)


def numbers(found):
    """All numbers of a result."""
    return np.ravel(found.intervals if isinstance(found, stats.Description) else found.value).tolist()


def with_seed(call, *args, **given):
    with reproducible_noise(0):
        return numbers(call(*args, **given))


def test_every_function_is_in_the_table():
    assert {name for name in stats.__all__ if name.islower() and not name.startswith("plan")} == {*FUNCTIONS}


@every_function
def test_tables_of_all_kinds_give_the_same_bits(call):
    polars, dask = pytest.importorskip("polars"), pytest.importorskip("dask.dataframe")
    expected = with_seed(call, FRAME)
    assert with_seed(call, polars.from_pandas(FRAME)) == expected
    assert with_seed(call, dask.from_pandas(FRAME, npartitions=3)) == expected


@every_function
def test_persons_and_their_partitions(call):
    dask = pytest.importorskip("dask.dataframe")
    found = with_seed(call, FRAME, persons="who")
    assert found == with_seed(call, dask.from_pandas(FRAME, npartitions=3), persons="who")
    assert found != with_seed(call, FRAME)


@every_function
def test_weights_of_one_change_no_value_but_noise(call):
    weighted = with_seed(call, FRAME, sample_weight=np.full(N, 2.0), max_sample_weight=4.0)
    assert np.isfinite(weighted).all()
    with pytest.raises(ValueError, match="max_sample_weight"):
        call(FRAME, sample_weight=np.ones(N))


@every_function
@pytest.mark.parametrize(
    "wrong",
    [{"confidence": 2.0}, {"adjacency": "add"}, {"column": "nobody"}, {"persons": np.arange(5)}, {"column": "text"}],
    ids=str,
)
def test_errors_come_before_the_charge(call, wrong):
    ledger = skdp.PrivacyLedger(epsilon=10.0, delta=1e-5)
    with ledger, pytest.raises((TypeError, ValueError)):
        call(FRAME.assign(text="a"), **wrong)
    assert not len(ledger.entries)


@pytest.mark.parametrize(
    "cells", (["a", "a secret text"], ["a", b"a secret text"], [1.0, [2.0] * 13]), ids=("text", "bytes", "list")
)
def test_errors_about_cells_quote_neither_them_nor_their_length(cells):
    with pytest.raises((TypeError, ValueError)) as raised:
        skdp.stats.mean(cells, epsilon=1.0)
    assert not any(part in str(raised.value) for part in ("secret", "13", "(2,)"))


def changing_source():
    reads = []

    def changing():
        reads.append(1)
        return iter([pd.DataFrame({"age": np.full(N, float(len(reads)))})])

    return skdp.data.chunks(changing, cache=None)


INTERRUPTED = {  # what ends a release, and the error
    "source": (changing_source, skdp.SourceError, None),
    "key": (lambda: FRAME, KeyboardInterrupt, KeyboardInterrupt()),
}


@pytest.mark.parametrize("of, error, raised", INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_end_after_the_charge_says_so_and_speaks_of_no_fit(of, error, raised, monkeypatch):
    ledger = skdp.PrivacyLedger(epsilon=10.0, delta=1e-5)
    if raised is not None:
        monkeypatch.setattr(Oracle, "ask", lambda self, query: (_ for _ in ()).throw(raised))
    with ledger, pytest.raises(error, match=r"charge stands|budget stays spent") as found:
        stats.mean(of(), epsilon=1.0, bounds=(0, 100), column="age")
    assert not any(word in str(found.value) for word in ("estimator", "fit")) and len(ledger.entries) == 1


WRONG = {
    "ragged": ([[1.0, 2.0], [3.0]], "^x has something that cannot be read"),
    "sparse": (sparse.eye_array(3, format="csr"), "^x is sparse"),
}


@pytest.mark.parametrize("x, message", WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_refused_in_words_about_x(x, message):
    with pytest.raises((TypeError, ValueError), match=message):
        stats.mean(x, epsilon=1.0, bounds=(0, 1))


def test_the_type_of_the_first_partition_says_nothing_of_missing_cells_and_fractions_in_others():
    """As chunks of a CSV are: integers, until one has a gap."""
    parts = [pd.DataFrame({"v": np.arange(3000) % 10}), pd.DataFrame({"v": np.where(np.arange(3000) < 2900, np.nan, 5.5)})]
    table = skdp.data.chunks(lambda: iter(parts))
    known = {"v": {"kind": "number", "bounds": [0, 10]}}
    with reproducible_noise(0):
        found = stats.describe(table, epsilon=5.0, schema=known)
        assert stats.quantile(skdp.data.chunks(lambda: iter([parts[1]] * 4)), 0.5, epsilon=5.0, bounds=(0, 10)).value % 1 > 0
    assert found.table.loc["missing", "v"] == pytest.approx(2900 / 6000, abs=0.01)
    assert found.table.loc["mean", "v"] == pytest.approx(4.53, abs=0.1)


def test_what_files_state_says_nothing_of_a_table_that_is_mapped(tmp_path):
    """The first batch that is mapped has integers, and others fractions."""
    pd.DataFrame({"v": np.arange(4000) % 10}).to_parquet(tmp_path / "t.parquet")
    batches = iter(range(100))
    table = skdp.data.parquet(tmp_path / "t.parquet").mapped(lambda X: X * 0.0 + 5.5 if next(batches) else X.astype(int))
    with reproducible_noise(0):
        assert stats.quantile(table, 0.5, epsilon=5.0, bounds=(0, 10), column="v").value % 1 > 0


@pytest.mark.parametrize("name", ("mean", "count", "cov", "describe"))
def test_columns_of_the_same_name_are_refused(name):
    with pytest.raises(ValueError, match="same name twice"):
        FUNCTIONS[name](pd.concat([FRAME, FRAME], axis=1))


def test_masked_cells_are_missing():
    cells = np.ma.array(np.arange(N), mask=np.arange(N) % 2 == 0)
    expected = with_seed(stats.count, cells.astype(float).filled(np.nan), epsilon=1.0)
    assert with_seed(stats.count, cells, epsilon=1.0) == expected and expected[0] < 0.6 * N


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_call_is_charged_once(name):
    ledger = skdp.PrivacyLedger(epsilon=10.0, delta=1e-5)
    with ledger:
        found = FUNCTIONS[name](FRAME)
    assert len(ledger.entries) == 1 and found.privacy_spent.epsilon <= 2.0
    assert found.privacy_report.guarantee.endswith(f"of the records, for one call of {name}")


@pytest.mark.parametrize(
    "call, text",
    (
        (lambda: stats.mean(np.ones((5, 2)), column=0, epsilon=1.0), "column=0; expected the name of a column"),
        (lambda: stats.corr(FRAME, column=("age", 1), epsilon=1.0), "; expected the name of a column, or several names"),
        (lambda: stats.mean(FRAME.assign(text="a"), column="text", epsilon=1.0), "not of numbers; expected numbers, .* describe"),
        (lambda: stats.mean(np.ones(5), bounds=("2020-01-01", "2021-01-01"), epsilon=1.0), "expected two numbers"),
        (
            lambda: stats.quantile(np.ones(5), 50, epsilon=1.0),
            "q=50; expected a number above 0 and below 1, such as 0.5 for 50 %",
        ),
        (lambda: stats.histogram(np.ones(5), bins=10**9, range=(0, 1), epsilon=1.0), "expected a number from 1 to [0-9]+,"),
        (lambda: stats.describe(np.ones((5, 2)), epsilon=1.0), "frame is a ndarray; expected a data frame"),
        (lambda: stats.describe(FRAME["size"], epsilon=1.0), "frame is a Series; expected a data frame"),
        (lambda: stats.describe(FRAME[[]], epsilon=1.0), "expected a data frame in memory with columns"),
        (lambda: stats.mean(FRAME, column=[], epsilon=1.0), r"column=\[\]; expected the name of a column, or None"),
        (lambda: stats.cov(FRAME, column=(), epsilon=1.0), r"column=\(\); expected the name of a column, or several names"),
        (lambda: stats.crosstab(FRAME, "age", "age", categories={"age": [1]}, epsilon=1.0), "column=.* has a name twice"),
        (lambda: stats.histogram2d(FRAME, column=("age", "age"), epsilon=1.0), "column=.* has a name twice"),
        (lambda: stats.mean(pytest.importorskip("polars").col("a"), epsilon=1.0), "x is an Expr, .* such as frame.select"),
        (lambda: stats.mean(FRAME["size"], range=(0, 7), epsilon=1.0), "'range'; bounds are the public bounds of a column"),
        (lambda: stats.histogram(FRAME["size"], bounds=(0, 7), epsilon=1.0), "'bounds'; range has the public ends of bins"),
        (lambda: stats.describe(FRAME, bounds={}, epsilon=1.0), "^describe.*'bounds'; schema has what is known, such as"),
        (lambda: stats.describe(FRAME, columns=["age"], epsilon=1.0), "'columns'; describe.frame.* takes some of the columns"),
        (lambda: skdp.model_card(None, scores={}), "^model_card.*'scores'; evaluation has scores with noise"),
        (lambda: stats.var(np.ones(5), bounds=(0, 2), epsilon=1e-6), "too large .* an epsilon at least [0-9.]+ times as large"),
        (lambda: stats.mean(np.ones(5), bounds=(0, 2), epsilon=1.0, accountant=None), "'accountant'; `with PrivacyLedger"),
    ),
)
def test_errors_say_what_was_given_and_what_is_expected(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()


def test_an_index_counts_as_a_column():
    index = FRAME.set_index("size").index
    assert with_seed(stats.mean, index, bounds=(0, 6), epsilon=1.0) == with_seed(
        stats.mean, FRAME["size"], bounds=(0, 6), epsilon=1.0
    )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("given", [{"epsilom": 1.0}, {"epsilon": 1.0, "kind": "category"}, {}], ids=str)
def test_errors_about_keywords_name_the_function(name, given):
    more = {"crosstab": {"index": "a", "columns": "b", "categories": {}}, "quantile": {"q": 0.5}}.get(name, {})
    with pytest.raises(TypeError, match=rf"^{name}\(\) (got an unexpected keyword argument|missing .*epsilon)"):
        getattr(stats, name)(np.ones(5), **more, **given)


OTHER = FRAME.assign(age=np.r_[1e300, np.inf, np.zeros(N - 2)], size=np.r_[-1e300, np.full(N - 1, np.nan)])


def said(found):
    """All that a result holds, as text that has all digits."""
    if isinstance(found, stats.Description):
        tables = [table.to_csv() for table in (found.table, found.intervals, found.categories, found.limits)]
        return [*tables, found.schema.to_dict(), found.to_html()]
    names = [name for name in ("counts", "axes", "low", "high", "elsewhere", "value", "interval") if hasattr(found, name)]
    parts = [getattr(found, name) for name in (*names, "noise_std")]
    return [repr([np.asarray(part).tolist() for part in (each if isinstance(each, tuple) else (each,))]) for each in parts]


def replayed(monkeypatch, call, other=OTHER):
    """What a function says of two tables, if the answers for the second one are those for the first; with its warnings."""
    honest, tape = Oracle._answer, []

    def answer(self, query, release, records):
        found = honest(self, query, release, records)
        return tape.pop(0) if replaying else tape.append(found) or found

    results = []
    for frame, replaying in ((FRAME, False), (other, True)):  # noqa: B007 - read by `answer`
        with warnings.catch_warnings(record=True) as heard, monkeypatch.context() as patched:
            patched.setattr(Oracle, "_answer", answer)
            warnings.simplefilter("always")
            results.append((said(call(frame)), [str(one.message) for one in heard]))
    assert not tape
    return results


PEOPLE = pd.concat([OTHER, OTHER[:50]], ignore_index=True).assign(who=np.arange(N + 50) % (N // 3))  # with other numbers of rows


@every_function
@pytest.mark.parametrize("other, given", [(OTHER, {}), (PEOPLE, {"persons": "who"})], ids=("records", "persons"))
@pytest.mark.parametrize("partitions", (0, 3))
def test_nothing_leaves_but_the_answers(call, other, given, partitions, monkeypatch):
    def called(x):
        return call(pytest.importorskip("dask.dataframe").from_pandas(x, npartitions=partitions) if partitions else x, **given)

    first, second = replayed(monkeypatch, called, other)
    assert first == second


def test_the_replay_catches_a_value_without_noise(monkeypatch):
    """The twin takes a bound from the records."""
    first, second = replayed(
        monkeypatch, lambda x: stats.mean(x, epsilon=1.0, bounds=(0, 100 + x["age"].isna().sum()), column="age")
    )
    assert first != second


LEARNS = {
    "mean": lambda x, **given: stats.mean(x, **given),
    "median": lambda x, **given: stats.median(x, **given),
    "histogram": lambda x, **given: stats.histogram(x, 4, **given),
    "cov": lambda x, **given: stats.cov(np.column_stack([x, x]), **given),
}


@pytest.mark.parametrize("call", LEARNS.values(), ids=LEARNS)
def test_bounds_that_noise_hides_are_warned_of_before_the_charge(call):
    """With stated bounds, or ten times the epsilon, the same table needs no warning."""
    x, ledger = np.random.default_rng(0).exponential(900.0, 5000), skdp.PrivacyLedger(epsilon=1.0, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(x, epsilon=0.5)
        with ledger, pytest.raises(LowSignalWarning, match="hide the bounds, which are learned, and so the result"):
            call(x, epsilon=0.02)
    assert not ledger.entries


def test_counts_and_clipped_values_are_printed():
    x = np.arange(10_000) % 100
    counts = stats.histogram(x, 4, epsilon=1.0, range=(0, 100))
    head, *lines = str(counts).splitlines()
    assert "4 cells" in head and lines[0].split()[:3] == ["0", "to", "25"] and len(lines) == 5
    grid = stats.histogram2d(np.column_stack([x, x]), bins=2, epsilon=1.0, range=[(0, 100), (0, 100)])
    assert len(str(grid).splitlines()) == 5 and "50 to 100" in str(grid).splitlines()[1]
    assert len(str(stats.histogram(x, 100, epsilon=1.0, range=(0, 100))).splitlines()) == 1
    assert "; clipped to [" in str(stats.mean(x, epsilon=1.0)) and "clipped" not in str(
        stats.mean(x, epsilon=1.0, bounds=(0, 99))
    )


def test_results_count_as_their_values_in_formulas():
    found = stats.mean(FRAME["size"], epsilon=1.0, bounds=(0, 6))
    value = found.value
    assert (found + 1, 2 * found, -found, round(found, 2), int(found)) == (
        value + 1,
        2 * value,
        -value,
        round(value, 2),
        int(value),
    )
    assert found == value and found < value + 1 and np.sqrt(found) == np.sqrt(value) and sum([found, found]) == 2 * value
    counts = stats.histogram(FRAME["size"], 3, epsilon=1.0, range=(0, 6))
    np.testing.assert_array_equal(counts / N, counts.counts / N)
    np.testing.assert_array_equal(np.asarray(counts), counts.counts)


def test_counts_of_any_number_of_sides_are_tables():
    given = {"epsilon": 1.0, "range": [(0, 100), (0, 7), (0, N)]}
    one = stats.histogram(FRAME["size"], 3, epsilon=1.0, range=(0, 6))
    three = stats.histogramdd(FRAME, (2, 3, 4), column=("age", "size", "who"), **given)
    assert one.table.columns.tolist() == ["count"] and one.to_frame().equals(one.table) and one.intervals.shape == (3, 3)
    assert three.table.shape == (6, 4) and three.table.iloc[4, 1] == three.counts[1, 1, 1]
    assert three.intervals["high"].tolist() == three.high.ravel().tolist()


@pytest.mark.parametrize("n_sides", (1, 2, 3))
def test_plots_of_counts(n_sides):
    plt = pytest.importorskip("matplotlib.pyplot")
    found = stats.histogramdd(np.zeros((50, n_sides)), 2, range=[(-1, 1)] * n_sides, epsilon=1.0)
    if n_sides == 3:
        with pytest.raises(ValueError, match="3 sides; expected one or two"):
            found.plot()
    else:
        figure = found.plot()
        assert [ax.get_ylabel() for ax in figure.axes][-1] == "count"
        plt.close(figure)


@pytest.mark.parametrize("of", (pd.Series, lambda x: pd.Series(x, dtype="boolean")), ids=("bool", "boolean"))
def test_bounds_of_truths_follow_from_their_type(of):
    """No part of epsilon learns them."""
    truths = of(np.arange(N) % 3 == 0)
    assert "clipped" not in str(stats.mean(truths, epsilon=1.0)) and stats.median(truths, epsilon=1.0).interval[1] <= 1
    assert stats.histogram(truths, 2, epsilon=1.0).axes[0].tolist() == [0, 0.5, 1]
    assert stats.cov(pd.DataFrame({"a": truths, "b": truths}), epsilon=1.0).name == "cov"
    assert len(stats.mean(truths, epsilon=1.0).privacy_report.releases) == 1


@pytest.mark.parametrize(
    "cells", (["a", "b", None], [1, "b", None], pd.Categorical(["a", "b", None])), ids=("text", "mixed", "category")
)
def test_cells_of_text_are_counted(cells):
    """Noise of scale 1/10: one count in 1e26 is 6 or further from the cells that are there."""
    column = pd.Series(cells).repeat(200).reset_index(drop=True).rename("ward")
    assert abs(float(stats.count(column, epsilon=10.0)) - 400) < 6
    dask = pytest.importorskip("dask.dataframe").from_pandas(column.to_frame(), npartitions=3)
    assert abs(float(stats.count(dask, column="ward", epsilon=10.0)) - 400) < 6


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "describe"])
def test_results_say_that_persons_are_protected(name):
    assert ", persons" in str(FUNCTIONS[name](FRAME, persons="who")) and "persons" not in str(FUNCTIONS[name](FRAME))


def test_a_variance_has_noise_that_is_resolved_at_small_and_large_epsilons():
    x = np.tile([0.0, 1.0], 10_000)
    assert 0 <= stats.var(x, bounds=(0, 1), epsilon=0.001) <= 0.25
    with pytest.warns(WeakPrivacyWarning):
        assert abs(stats.var(x, bounds=(0, 1), epsilon=200.0) - 0.25) < 1e-3


def test_a_column_that_is_none_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"column='agee' is no column of x; expected one of \['age'"):
        stats.mean(FRAME, epsilon=1.0, column="agee")

"""Cells are read one by one: no record changes how another is read, whatever type its column takes on."""

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdp.preprocessing._categories import KnownCategories
from skdp.preprocessing._cells import bucket_cells, either_cells, hash_bucket, is_number, number_cells

TEXTS = ["a", " a ", "A", "", "1", 1, 1.0, True, np.True_, np.int8(1), "1.0", None, math.nan, pd.NA, pd.NaT, -0.0, 0, 0.5, 2**60]
TEXTS += ["\ud800", "ä", b"a", Decimal(1), {"a": 1}, [1], np.float32(0.5), "True", math.inf, 10**400]
NUMBERS = [1, 1.5, "2.5", " 3 ", "x", "", None, pd.NA, pd.NaT, math.nan, -math.inf, True, 10**400, -(10**400), Decimal("0.5")]
NUMBERS += [Fraction(1, 4), Decimal("sNaN"), np.float32(0.25), "1e300", b"1", {"a": 1}, date(1970, 1, 2), datetime(1970, 1, 1, 1)]
NUMBERS += [timedelta(hours=1), datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))), np.datetime64("1970-01-03")]
NUMBERS += [pd.Timestamp("1970-01-01T00:00:07.25"), np.timedelta64(90, "s"), np.datetime64("NaT")]
VALUES = [1, 1.5, 2.5, 3, *[math.nan] * 7, 1, math.nan, math.nan, 0.5]
VALUES += [0.25, math.nan, 0.25, 1e300, math.nan, math.nan, 86400, 3600, 3600, 3600, 2 * 86400, 7.25, 90, math.nan]

BUCKETS = {"Private": 222, "Self-emp-inc": 214, "ä": 57}


@pytest.mark.parametrize(
    "cell", (*BUCKETS, " Private ", 1, "1", 1.0, True, None, "", math.nan, date(2020, 1, 1), np.datetime64("2020-01-01"))
)
def test_the_bucket_of_a_spelling_is_that_of_its_column(cell):
    """Alone, in a series and in an array of its type."""
    found = hash_bucket(cell)
    for column in (objects([cell]), pd.Series([cell]), np.array([cell])):
        (bucket,) = bucket_cells(column)
        assert (found is None and math.isnan(bucket)) or (type(found) is int and found == bucket)
    assert found == BUCKETS.get(str(cell).strip(), found)


def objects(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def known_cells(column):
    return KnownCategories([["0", "1", "a", "True"]]).fit_transform(column[:, None])[:, 0]


@pytest.mark.parametrize(
    "read, cells",
    ((bucket_cells, TEXTS), (number_cells, NUMBERS), (either_cells, TEXTS + NUMBERS), (known_cells, TEXTS)),
    ids=("text", "numbers", "either", "known"),
)
def test_a_cell_is_read_alone(read, cells, rng):
    alone = np.concatenate([read(objects([cell])) for cell in cells])
    np.testing.assert_array_equal(read(objects(cells)), alone)
    for _ in range(50):
        chosen = rng.permutation(len(cells))[: rng.integers(1, len(cells))]
        np.testing.assert_array_equal(read(objects([cells[i] for i in chosen])), alone[chosen])


def test_numbers_are_what_they_say():
    np.testing.assert_array_equal(number_cells(objects(NUMBERS)), VALUES)


def test_cells_of_either_kind_are_numbers_or_text():
    cells = ["12", "a", "", None, " -0.5 ", "1e3", "?", "nan", "inf", "1_0", True, pd.NA, "12 km"]
    numbers, buckets = either_cells(objects(cells)).T
    np.testing.assert_array_equal(numbers, number_cells(objects(cells)))
    text = [cell in ("a", "?", "nan", "1_0", "12 km") for cell in cells[:-2]] + [False, True]
    np.testing.assert_array_equal(buckets, np.where(text, bucket_cells(objects(cells)), math.nan))
    missing = [cell is None or cell is pd.NA or cell in ("", "inf") for cell in cells[:-2]] + [True, False]
    assert (np.isnan(numbers) & np.isnan(buckets)).tolist() == missing
    for column in (np.array([1, 2]), np.array(["NaT", "2031-04-15"], dtype="datetime64[D]"), np.array([True, False])):
        assert np.isnan(either_cells(column)[:, 1]).all()


def test_spellings_share_a_bucket_and_buckets_are_fixed():
    same = [
        ["a", " a "],
        ["1", 1, 1.0, np.int8(1), np.float64(1)],
        ["True", True, np.True_],
        [0, -0.0, "0"],
        [0.5, np.float32(0.5), "0.5"],
    ]
    for cells in same:
        assert len(set(bucket_cells(objects(cells)))) == 1
    assert np.isnan(bucket_cells(objects(["", "  ", None, math.nan, pd.NA, pd.NaT, b"a", {"a": 1}]))).all()
    # blake2b of the text, the first 8 bytes as a big-endian number, modulo 256
    assert bucket_cells(objects(["Private", "Self-emp-inc", "ä"])).tolist() == [
        BUCKETS[t] for t in ("Private", "Self-emp-inc", "ä")
    ]
    assert bucket_cells(objects([0, 7.0, "42", 255])).tolist() == [0, 7, 42, 255]  # small codes share no bucket
    others = ["256", "-1", "007", "1.5", "٣"]
    assert bucket_cells(objects(others)).tolist() == [
        int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % 256 for text in others
    ]
    buckets = bucket_cells(objects([f"spelling {i}" for i in range(20_000)]))
    assert set(buckets) == set(range(256)) and np.bincount(buckets.astype(int)).max() < 130  # 78 expected


@pytest.mark.parametrize("column", ("ints", "dates", "truths", "texts"))
def test_no_type_that_a_record_brings_about_changes_the_others(column):
    """A gap makes integers floats, one moment makes dates finer, one number makes text objects."""
    plain, mixed, read = {
        "ints": (pd.Series([1, 2, 2**52, 2**62]), pd.Series([1, 2, 2**52, 2**62, None]), number_cells),
        "dates": (
            pd.Series(np.array(["2031-04-15", "1969-12-31T23:00:00.003"], dtype="M8[ms]")),
            pd.Series(np.array(["2031-04-15", "1969-12-31T23:00:00.003", "2020-01-01T00:00:00.000000007"], dtype="M8[ns]")),
            number_cells,
        ),
        "truths": (pd.Series([True, False]), pd.Series([True, False, None], dtype=object), number_cells),
        "texts": (pd.Series(["1", "b", "c"]), pd.Series(["1", "b", "c", 1], dtype=object), bucket_cells),
    }[column]
    np.testing.assert_array_equal(read(mixed)[: len(plain)], read(plain))


@pytest.mark.parametrize("unit", ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "2D", "10s", "3ms"))
def test_dates_are_seconds_in_every_unit(unit):
    moments = np.array([0, 1, 7, -3, "NaT"], dtype=f"M8[{unit}]")
    expected = (moments[:-1].astype("M8[ns]") - np.datetime64(0, "ns")) / np.timedelta64(1, "s")
    np.testing.assert_allclose(number_cells(moments)[:-1], expected, rtol=1e-15, atol=1e-15)
    assert np.isnan(number_cells(moments)[-1])


@pytest.mark.parametrize("freq", ("Y", "Y-MAR", "Q", "M", "W", "D", "h", "15min", "s", "ms", "us", "ns"))
def test_periods_are_the_dates_on_which_they_start(freq):
    """Whether a column has their type or holds objects, or has them as categories; the last one is a gap."""
    periods = pd.Series(pd.PeriodIndex(["2031-04-15 12:30", "1969-12-31", None], freq=freq))
    dates = periods.dt.to_timestamp(how="start")
    assert dates.isna().tolist() == [False, False, True]
    for column in (periods, periods.astype(object), periods.astype("category")):
        for read in (number_cells, bucket_cells, either_cells):
            np.testing.assert_array_equal(read(column), read(dates))


def test_periods_beyond_all_dates_are_missing():
    periods = pd.Series(pd.PeriodIndex.from_ordinals([-(10**9), 10**9], freq="Y"))
    assert np.isnan(number_cells(periods)).all()


def test_types_decide_what_is_a_number():
    frame = pd.DataFrame({"i": [1], "f": [1.0], "b": [True]})
    frame = frame.assign(d=pd.Timestamp(0), z=pd.Timestamp(0, tz="UTC"), t=pd.Timedelta(0), s=pd.arrays.SparseArray([1.0]))
    frame = frame.assign(p=pd.period_range("2031-4", periods=1))
    frame = frame.assign(I=pd.array([1], "Int64"), F=pd.array([1.0], "Float32"), B=pd.array([True], "boolean"))
    assert all(is_number(dtype) for dtype in frame.dtypes)
    for dtype in ("int64[pyarrow]", "double[pyarrow]", "timestamp[ns][pyarrow]", "date32[day][pyarrow]", "bool[pyarrow]"):
        assert is_number(pd.Series([None], dtype=dtype).dtype)
    texts = pd.DataFrame({"o": np.array(["a"], dtype=object), "s": pd.array(["a"], "string"), "c": pd.Categorical([1])})
    texts = texts.assign(v=pd.interval_range(0, periods=1))
    assert not any(is_number(dtype) for dtype in texts.dtypes)
    frame = pl.DataFrame(
        {"i": [1], "f": [1.0], "b": [True], "d": [date(2031, 4, 15)], "t": [datetime(2031, 4, 15)], "u": [timedelta(1)]}
    )
    assert all(is_number(dtype) for dtype in frame.dtypes)
    frame = pl.DataFrame({"s": ["a"], "l": [[1]], "c": pl.Series(["a"], dtype=pl.Categorical), "n": [None]})
    assert not any(is_number(dtype) for dtype in frame.dtypes)


def test_frames_of_pandas_and_polars_hold_the_same_cells():
    cells = {
        "i": [1, 2, None],
        "f": [0.5, None, math.inf],
        "b": [True, None, False],
        "d": [datetime(2031, 4, 15), None, datetime(1970, 1, 1)],
    }
    polars = pl.DataFrame(cells)
    for dtypes in ({}, {"i": "Int64", "f": "Float64", "b": "boolean"}):
        pandas = pd.DataFrame(cells).astype(dtypes)
        for name in cells:
            np.testing.assert_array_equal(number_cells(pandas[name]), number_cells(polars[name]))
    texts = ["a", None, " b"]
    for column in (pd.Series(texts), pd.Series(texts, dtype="string"), pd.Series(texts, dtype="category"), pl.Series(texts)):
        np.testing.assert_array_equal(bucket_cells(column), bucket_cells(objects(texts)))


def test_the_first_and_the_last_moment_have_a_number_in_every_time_zone():
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))
    first, last = datetime.min.replace(tzinfo=east), datetime.max.replace(tzinfo=west)
    cells = number_cells(np.array([first, 3.0, last, datetime(1970, 1, 2, 14, tzinfo=east), None], dtype=object))
    assert np.isfinite(cells[:4]).all() and cells[0] < cells[1] < cells[2]
    assert cells[3] == 86400.0 and np.isnan(cells[4])


@pytest.mark.parametrize("unit", ("s", "ms", "us", "ns"))
def test_buckets_of_dates_are_those_of_their_seconds(unit):
    days = np.array(["1970-01-02", "2020-05-17", "NaT"], dtype=f"datetime64[{unit}]")
    assert np.array_equal(bucket_cells(days), bucket_cells(np.array([86400.0, 1589673600.0, np.nan])), equal_nan=True)
    assert np.isfinite(bucket_cells(days)[:2]).all()


LOWEST, DAY, INT32, INT64 = np.iinfo(np.int64).min, 86400, np.iinfo(np.int32), np.iinfo(np.int64)


def of_arrow(kind):
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return lambda steps: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(steps, type=width).cast(kind)])))


def with_zone(unit):
    return lambda steps: pd.Series(np.array(steps).view(f"M8[{unit}]")).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")


def of_factors(steps):
    return with_zone("us")(steps).astype("category")


@pytest.mark.parametrize(
    "made, per_second, ends",
    [
        *((with_zone(unit), 1000**power, (LOWEST + 1, INT64.max)) for power, unit in enumerate(("s", "ms", "us", "ns"))),
        (of_factors, 10**6, (LOWEST + 1, INT64.max)),
        (of_arrow(pa.date32()), 1 / DAY, (INT32.min, INT32.max)),
        (of_arrow(pa.date64()), 1000, (-(2**62) // (1000 * DAY) * 1000 * DAY, 2**62 // (1000 * DAY) * 1000 * DAY)),
        (of_arrow(pa.time64("us")), 10**6, (LOWEST + 1, INT64.max)),
        (of_arrow(pa.timestamp("us", "Europe/Berlin")), 10**6, (LOWEST + 1, INT64.max)),
        (of_arrow(pa.duration("s")), 1, (LOWEST + 1, INT64.max)),
    ],
)
def test_moments_that_objects_cannot_hold_are_numbers_as_all_others_are(made, per_second, ends):
    """An error would tell exactly that a record has one."""
    usual = [0, 1000 * DAY, 2000 * DAY]
    for end in ends:
        column = made([*usual, end])
        expected = np.array([*usual, end]) / per_second
        np.testing.assert_allclose(number_cells(column), expected, rtol=1e-12)
        np.testing.assert_array_equal(number_cells(column)[:3], number_cells(made([*usual, 0]))[:3])
        np.testing.assert_array_equal(bucket_cells(column), bucket_cells(number_cells(column)))
    assert np.isnan(number_cells(column.where([True, False, True, True]))).tolist() == [False, True, False, False]

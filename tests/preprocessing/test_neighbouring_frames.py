"""Whole frames that differ in one record: no other cell is read differently, and the counts move by at most the sensitivity.

Cells of all kinds, hostile ones for the record that changes, and all types that pandas and polars give to columns of them. A cell
may force another type upon its column, or another unit upon its dates. What the column is read as is stated, as in a schema.
"""

import math
import warnings
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from marks import slow

from skdp.preprocessing import _frame_facts as module
from skdp.preprocessing._cells import bucket_cells, either_cells, number_cells
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.queries import ColumnHistograms, FineHistograms, TargetHistogram

EAST = timezone(timedelta(hours=3))
COLUMNS = {
    "integers": [1, 2, 3, 0],
    "long integers": [2**53 + 1, 2**53 - 1, 2**62 + 3, 5],
    "unsigned": [np.uint64(2**64 - 1), np.uint64(2**63), np.uint64(1), np.uint64(0)],
    "bytes wide": [np.int8(1), np.int8(2), np.int8(3), np.int8(-4)],
    "floats": [0.1, 1.0, -0.0, 5e-324],
    "short floats": [np.float32(0.1), np.float32(1), np.float32(2.5), np.float32(1e-45)],
    "truths": [True, False, True, True],
    "texts": ["1", "b", " c ", "True"],
    "numbers as texts": ["1", "1.0", "2e3", "0x1"],
    "all sorts": [1, "1", 1.0, True],
    "days": [date(2031, 4, 15), date(1969, 12, 31), date(2000, 1, 1), date(1900, 1, 1)],
    "moments": [
        datetime(2031, 4, 15, 1, 2, 3),
        datetime(1969, 12, 31, 23, 0, 0, 300001),
        datetime(2000, 1, 1),
        datetime(1900, 1, 1),
    ],
    "nanoseconds": [
        pd.Timestamp(f"{day}.123456789") for day in ("2031-04-15T01:02:03", "1969-12-31T23:59:59", "2000-01-01T00:00:00")
    ]
    + [pd.Timestamp(0)],
    "zones": [datetime(2031, 4, 15, 0, 0, 0, 7, tzinfo=timezone.utc), datetime(1969, 12, 31, tzinfo=timezone.utc)] * 2,
    "zones and nanoseconds": [pd.Timestamp("2031-04-15T00:00:00.123456789", tz="UTC"), pd.Timestamp("1969-12-31", tz="UTC")] * 2,
    "durations": [timedelta(1), timedelta(microseconds=3), timedelta(microseconds=-1), timedelta(0)],
    "short durations": [pd.Timedelta(3, "ns"), pd.Timedelta(1, "s"), pd.Timedelta(-7, "ns"), pd.Timedelta(0)],
    "times": [time(1, 2, 3, 400001), time(0), time(23, 59, 59, 999999), time(12)],
    "periods": [pd.Period(f"{day} 12:30", "M") for day in ("2031-04-15", "1969-12-31", "2000-01-01", "1900-01-01")],
    "decimals": [Decimal("0.1"), Decimal("1"), Decimal("1.0"), Decimal("7e18")],
    "fractions": [Fraction(1, 3), Fraction(2), Fraction(-1, 7), Fraction(0)],
    "complex": [1j, 1 + 0j, 2.5 + 0j, 0j],
    "bytes": [b"a", b"1", b"", b"z"],
}
HOSTILE = [
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    -0.0,
    5e-324,
    "1",
    1,
    1.0,
    True,
    "unseen",
    "",
    " ",
    "nan",
    "\ud800",
    None,
    pd.NA,
    pd.NaT,
]
HOSTILE += [
    Decimal("0.5"),
    Decimal("sNaN"),
    Decimal("1e400"),
    Fraction(1, 3),
    2**63,
    2**64,
    -(2**63),
    10**400,
    1j,
    2 + 0j,
    b"x",
    [1],
    {"a": 1},
]
HOSTILE += [
    np.float32(0.1),
    np.float16(0.1),
    np.int8(3),
    np.uint64(2**64 - 1),
    np.bool_(True),
    np.longdouble("1e4000"),
    np.complex64(1),
    object,
]
HOSTILE += [
    date(2031, 1, 1),
    date(1, 1, 1),
    datetime(2031, 4, 15, 0, 0, 0, 7),
    datetime(9999, 12, 31, 23),
    time(3),
    timedelta(days=300000),
]
HOSTILE += [
    datetime(2031, 4, 15, tzinfo=timezone.utc),
    datetime(2031, 4, 15, tzinfo=EAST),
    pd.Timestamp("1900-01-01", tz="Asia/Tokyo"),
]
HOSTILE += [pd.Timestamp("2031-04-15T00:00:00.000000007"), pd.Timedelta(7, "ns"), np.datetime64("2031"), np.timedelta64(3, "ps")]
HOSTILE += [np.datetime64("2031-04-15T00:00:00.000000000007")]
HOSTILE += [pd.Period("2031-04-15", "M"), pd.Period("1900", "Y"), pd.Period(year=99999, freq="Y"), pd.Interval(0, 1)]


def objects(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


MAKERS = {  # of a column from cells; an error says that there is no such column
    "inferred": pd.Series,
    "objects": lambda cells: pd.Series(objects(cells), dtype=object),
    "inferred late": lambda cells: pd.Series(objects(cells)).infer_objects(),
    "nullable": lambda cells: pd.Series(cells).convert_dtypes(),
    "arrow": lambda cells: pd.Series(cells).convert_dtypes(dtype_backend="pyarrow"),
    "categorical": lambda cells: pd.Series(cells).astype("category"),
    "categorical objects": lambda cells: pd.Series(objects(cells)).astype("category"),
    "sparse": lambda cells: pd.Series(pd.arrays.SparseArray(cells)),
    "joined": lambda cells: pd.concat([pd.Series([cell]) for cell in cells], ignore_index=True),
    "polars": lambda cells: pl.Series(cells, strict=True),
    "polars objects": lambda cells: pl.Series(cells, dtype=pl.Object),
}
KINDS = {"number": number_cells, "category": bucket_cells, "either": either_cells}


def made(maker, cells):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return MAKERS[maker](cells)
        except BaseException as error:  # polars panics on some cells, which is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return None


def replaced(cells, place, cell):
    return [*cells[:place], cell, *cells[place + 1 :]]


@pytest.fixture(autouse=True)
def as_in_a_fit():
    """NumPy is as quiet as where a fit reads a frame."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("place", (0, 3))
@pytest.mark.parametrize("maker", MAKERS)
def test_a_cell_changes_how_no_other_cell_is_read(maker, place):
    others, compared = [other for other in range(4) if other != place], 0
    for name, cells in COLUMNS.items():
        plain = made(maker, cells)
        if plain is None:
            continue
        read = {kind: reader(plain)[others].tobytes() for kind, reader in KINDS.items()}
        for cell in HOSTILE:
            changed = made(maker, replaced(cells, place, cell))
            if changed is None or not same(changed, plain, others):
                continue
            for kind, reader in KINDS.items():
                there = reader(changed)
                assert there.shape == ((4, 2) if kind == "either" else (4,))
                assert there[others].tobytes() == read[kind], (name, kind, repr(cell), plain.dtype, changed.dtype)
                compared += 1
    assert compared > 300


def same(here, there, places):
    """Whether two columns hold the same cells; a library may convert some: pandas joins True and 1, or 3 ps, in categories."""
    return all(alike(here.to_list()[place], there.to_list()[place]) for place in places)


def alike(here, there):
    kinds = (bool | np.bool_, str, np.timedelta64 | np.datetime64)  # a duration of NumPy equals the number of its units
    if any(isinstance(here, kind) != isinstance(there, kind) for kind in kinds):
        return False
    if isinstance(here, int | np.integer) and isinstance(there, float | np.floating):  # longer than 53 bits
        here = float(here)
    try:
        return bool(here == there)
    except TypeError:
        return False


def frames(place, n_frames, rng):
    """Yield pairs of frames with the facts of their columns, of which the second has another record at a place.

    All columns that a maker can make of the cells are in both; those whose other cells the library converts are left out.
    """
    for _ in range(n_frames):
        here, there, kinds = {}, {}, {}
        for name, cells in COLUMNS.items():
            maker = rng.choice([maker for maker in MAKERS if not maker.startswith("polars")])
            plain, changed = (
                made(maker, column) for column in (cells, replaced(cells, place, HOSTILE[rng.integers(len(HOSTILE))]))
            )
            if plain is None or changed is None or not same(changed, plain, [other for other in range(4) if other != place]):
                continue
            for kind in KINDS:
                here[f"{name}, {kind}"], there[f"{name}, {kind}"], kinds[f"{name}, {kind}"] = plain, changed, kind
        yield pd.DataFrame(here), pd.DataFrame(there), kinds


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("place", (0, *slow(3)))
def test_the_counts_of_neighbouring_frames_differ_by_at_most_the_sensitivity(place, rng):
    """Both rounds, both adjacencies, with and without a target; some frames reach the bound of the first round."""
    reached, others = 0, [other for other in range(4) if other != place]
    for here, there, kinds in frames(place, 25, rng):
        facts, changed = (module.FrameFacts.of(frame, kinds) for frame in (here, there))
        assert facts.are_text == changed.are_text and facts.read_as.keys() == set(here)
        cells = [fact.cells(frame) for fact, frame in ((facts, here), (changed, there))]
        assert cells[0][others].tobytes() == cells[1][others].tobytes()
        y = [np.arange(4.0), np.arange(4.0)]
        y[1][place] = rng.choice([-1e300, 5e-324, 17.0])
        rows = [ColumnCells(*pair) for pair in zip(cells, y, strict=True)]
        kept = ColumnHistograms(tuple(facts.are_text.values()))
        numbers = tuple(place for place, text in zip(kept.places(), kept.are_text, strict=True) if not text)
        ends = [-1e18, -1.0, 0.0, 0.5, 2.0, 40.0, 64.0, 1e10]
        limits = np.sort([rng.choice(ends, 2, replace=False) for _ in range(len(numbers) + 1)], axis=1)
        for target in (False, True):
            first = ColumnHistograms(tuple(facts.are_text.values()), target)
            second = FineHistograms(numbers, limits if target else limits[:-1], target)
            counts = [TargetHistogram(2.0**power * np.array([-1.0, 1.0])) for power in (-61, 4, 5)] if target else []
            for query in (first, second, *counts):
                moved = np.linalg.norm(query.evaluate(rows[0]) - query.evaluate(rows[1]))
                lost = np.linalg.norm(query.evaluate(rows[0]) - query.evaluate(rows[0].without(np.array([place]))))
                assert moved <= query.sensitivity("replace_one") * (1 + 1e-12)
                assert lost <= query.sensitivity("zero_out") * (1 + 1e-12)
                assert query is second or query in counts or lost == pytest.approx(query.sensitivity("zero_out"), rel=1e-12)
                reached = max(reached, moved / query.sensitivity("replace_one"))
    assert reached > 0.85


def test_a_frame_reaches_both_bounds_in_both_rounds():
    """A record of ones against one of sixty-fours, a text against another, and their targets."""
    here = pd.DataFrame({"a": [1, 2.5], "b": ["x", "y"], "c": [Decimal(3), 2], "d": pd.Categorical(["u", "v"])})
    there = pd.DataFrame({"a": ["no number", 2.5], "b": [None, "y"], "c": [-math.inf, 2], "d": pd.Categorical([b"", "v"])})
    far = here.assign(a=[7.25, 2.5], c=[math.pi, 2])
    kinds = {"a": "number", "b": "category", "c": "number", "d": "category"}

    def rows(frame, target):
        facts = module.FrameFacts.of(frame, kinds)
        return ColumnCells(facts.cells(frame), np.array([target, 0.0]))

    limits = np.array([[0.0, 8.0], [0.0, 4.0], [-100.0, 100.0]])
    first = ColumnHistograms((False, True, False, True), target=True)
    second = FineHistograms((0, 2), limits, target=True)
    for query, other in ((first, there), (second, far)):
        one, two = query.evaluate(rows(here, 1.0)), query.evaluate(rows(other, -99.0))
        assert np.linalg.norm(one - two) == pytest.approx(query.sensitivity("replace_one"), rel=1e-14)
        without = query.evaluate(rows(here, 1.0).without(np.array([0])))
        assert np.linalg.norm(one - without) == pytest.approx(query.sensitivity("zero_out"), rel=1e-14)


def test_cells_that_hold_several_numbers_or_wide_ones_have_one_number_each():
    """A column of vectors would be several columns, and move those after it."""
    frame = pl.DataFrame(
        {
            "pair": [{"a": 1, "b": 2}, {"a": 3, "b": 4}],
            "vector": pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.Array(pl.Float64, 2)),
            "list": [[1.0, 2.0], [3.0, 4.0]],
            "wide": pl.Series([2**64, 5], dtype=pl.Int128),
            "last": [5.0, 6.0],
        }
    )
    for kind, numbers in (("number", [2.0**64, 5.0]), ("category", None), ("either", [2.0**64, 5.0])):
        cells = module.FrameFacts.of(frame, dict.fromkeys(frame.columns, kind)).cells(frame)
        if kind == "either":
            assert cells.shape == (2, 10) and np.isnan(cells[:, 1::2]).all()
            cells = cells[:, ::2]
        assert cells.shape == (2, 5) and np.isnan(cells[:, :3]).all()
        if numbers:
            assert cells[:, 3].tolist() == numbers and cells[:, 4].tolist() == [5.0, 6.0]

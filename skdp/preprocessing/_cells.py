"""Read the cells of data frames, each by itself: as numbers, or as spellings that a public hash maps to buckets."""

import hashlib
import importlib
import math
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from skdp._files._tables import number_in
from skdp.preprocessing._categories import Known, of_each, spelling
from skdp.privacy.data.column_cells import finite_cells
from skdp.privacy.queries.column_histograms import BUCKETS

# Types of pandas, polars and pyarrow whose cells are numbers, dates, periods or durations; every other type is text.
NUMBERS = re.compile(
    r"(sparse\[)?(u?int\d|float|halffloat|double|decimal|bool|date|time|duration|period)",  # timestamp, timedelta, datetime, too
    re.IGNORECASE,
)
INTEGERS = re.compile(r"(sparse\[)?(u?int\d|bool)", re.IGNORECASE)  # those of them whose cells are integers
TRUTHS = re.compile(r"(sparse\[)?bool", re.IGNORECASE)  # those of them whose cells are true or false
CATEGORIES = re.compile("category|categorical|enum|dictionary", re.IGNORECASE)  # types of which the user says that they are some
DATES = re.compile("date|timestamp|period", re.IGNORECASE)  # those whose cells are moments
# Types of which no cell is a number, a moment or text.
OTHERS = re.compile(
    r"(extension<pandas\.)?interval|month_day_nano|(large_|fixed_size_)?(binary|list)|array|map|struct", re.IGNORECASE
)
SMALL = re.compile("0|[1-9][0-9]{0,2}")  # integers that may be buckets themselves
EPOCH = datetime(1970, 1, 1)
DAY = 86400.0  # seconds
MOMENTS = (date, time, timedelta, np.datetime64, np.timedelta64)  # a datetime is a date
WIDE = ("Int128", "UInt128")  # types of polars that NumPy has not


def is_number(dtype: Any) -> bool:
    """Return whether the cells of a column are numbers, by its type alone."""
    return NUMBERS.match(str(dtype)) is not None


def is_integer(dtype: Any) -> bool:
    """Return whether the cells of a column are integers or missing, by its type alone."""
    return INTEGERS.match(str(dtype)) is not None


def is_truth(dtype: Any) -> bool:
    """Return whether the cells of a column are true, false or missing, by its type alone."""
    return TRUTHS.match(str(dtype)) is not None


def read_as_text(dtype: Any) -> bool | None:
    """Return how a column is read, by its type alone: whether it is text; None if each cell is a number or text."""
    return False if is_number(dtype) else True if CATEGORIES.match(str(dtype)) else None


def is_date(dtype: Any) -> bool:
    """Return whether the cells of a column are dates, times of a date or periods, by its type alone."""
    return DATES.match(str(dtype)) is not None


def without_cells(dtype: Any) -> str | None:
    """Return the name of a type, or of the type of its categories, if no cell of such a column can be read; else None."""
    inner = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    return None if OTHERS.match(str(inner)) is None else f"{'category of ' * (inner is not dtype)}{inner}"


def number_cells(column: Any) -> np.ndarray:
    """Return the cells of a column as float64; dates, and starts of periods, are seconds since 1970; what is no number is NaN.

    Infinite numbers, such as quotients by 0, are NaN, too: they would set the limits of the column. Each cell is read alone: the
    unit of dates, a gap or a number that only an object can hold changes no other cell.

    Parameters
    ----------
    column : Series or ndarray
        A column.

    Returns
    -------
    ndarray of shape (n_samples,)
        Numbers or NaN.
    """
    return finite_cells(_numbers(column_values(column)))


def bucket_cells(column: Any) -> np.ndarray:
    """Return the number of the hash bucket of each cell's spelling as float64, NaN where a cell is empty or no text or number.

    The hash is fixed, has no key, and reads one cell. Cells of the same spelling, such as 1, 1.0 and "1", share a bucket. An
    integer from 0 to 255 is its own bucket, so that small codes share none. Dates are spelt as seconds since 1970, whether their
    column has the type of dates or holds objects.

    Parameters
    ----------
    column : Series or ndarray
        A column.

    Returns
    -------
    ndarray of shape (n_samples,)
        Numbers from 0 to 255, or NaN.
    """
    values = column_values(column)
    if values.dtype.kind in "mM":
        values = _seconds(values)  # objects would be whole numbers of a unit, which one record may change
    return np.array(of_each(_bucket, values.astype(object).tolist()), dtype=np.float64)


def unread_cells(column: Any) -> int:
    """Return how many cells of a column to be read as numbers are neither empty nor numbers, and so are taken for missing ones.

    Parameters
    ----------
    column : Series or ndarray
        A column of records to predict for.

    Returns
    -------
    int
        Number of cells.
    """
    values = column_values(column)
    if values.dtype.kind in "biufmM":
        return 0
    return sum(bool(spelling(cell)) for cell in values[np.isnan(_numbers(values))].tolist())


def hash_bucket(cell: Any) -> int | None:
    """Return the bucket by which a learned column knows a category.

    Parameters
    ----------
    cell : object
        A cell of a column that is learned as text, such as ``"nurse"``.

    Returns
    -------
    int or None
        Number from 0 to 255; None for an empty cell, which has no bucket.

    Notes
    -----
    **Privacy.** The hash is public. It reads no records, and whoever knows the spelling of a category can name its bucket.

    Examples
    --------
    >>> from skdp.preprocessing import hash_bucket
    >>> hash_bucket("nurse")
    242
    >>> hash_bucket(17)
    17
    >>> hash_bucket(None) is None
    True
    """
    found = bucket_cells(np.array([cell]) if isinstance(cell, np.generic) else np.fromiter([cell], dtype=object, count=1))[0]
    return None if math.isnan(found) else int(found)


def either_cells(column: Any) -> np.ndarray:
    """Return the cells of a column, each of which is a number or text, whatever the type of the column and its other cells.

    Parameters
    ----------
    column : Series or ndarray
        A column.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        The number of each cell, NaN where it is no number; and the bucket of its spelling, NaN where it is a number or empty.
    """
    values = column_values(column)
    numbers = _numbers(values)
    none, buckets = np.isnan(numbers), np.full(numbers.shape, math.nan)
    buckets[none] = bucket_cells(values[none])
    return np.column_stack([finite_cells(numbers), buckets])


def columns_of(X: Any) -> Iterator[Any]:
    """Yield the columns of a data frame or of an array."""
    yield from (X[name] for name in X.columns) if hasattr(X, "columns") else np.asarray(X).T


def column_values(column: Any) -> np.ndarray:
    """Return the cells as a vector; those that hold several numbers each, or are wider than NumPy's, are objects.

    Dates and durations are those of NumPy: making objects of them fails for a date that Python or pandas has not.
    """
    if (moments := _moments(column)) is not None:
        return moments
    if str(getattr(column, "dtype", "")) not in WIDE and (values := np.asarray(column)).ndim == 1:
        return values
    return np.fromiter(column.to_list() if hasattr(column, "to_list") else column, dtype=object, count=len(column))


def _moments(column: Any) -> np.ndarray | None:
    """Return dates with a time zone of pandas, in UTC, and dates, times and durations of Arrow; None for other types."""
    dtype: Any = getattr(column, "dtype", None)
    if (inner := getattr(dtype, "categories", None)) is not None and hasattr(inner, "array"):
        found = _moments(inner)
        return None if found is None else np.append(found, np.array("NaT", dtype=found.dtype))[np.asarray(column.array.codes)]
    if hasattr(dtype, "tz") and hasattr(dtype, "unit"):
        return np.asarray(column.to_numpy(dtype=f"M8[{dtype.unit}]"))
    if not hasattr(dtype, "pyarrow_dtype"):
        return None
    arrow = importlib.import_module("pyarrow")
    kind, cells = dtype.pyarrow_dtype, arrow.array(column.array)
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
        cells = cells.cast(kind)
    if not arrow.types.is_temporal(kind) or arrow.types.is_interval(kind):
        return None
    letter = "M" if arrow.types.is_date(kind) or arrow.types.is_timestamp(kind) else "m"
    unit = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(kind)) or kind.unit
    steps = cells.cast(f"int{kind.bit_width}").cast("int64").fill_null(np.iinfo(np.int64).min)  # the latter is NaT
    return np.asarray(steps.to_numpy()).view(f"{letter}8[{unit}]")


def _numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "mM":
        return _seconds(values)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "c":  # one complex number makes all numbers of a column complex
        return np.where(values.imag == 0, values.real, math.nan).astype(np.float64)
    known = Known(number_in)  # most columns of text repeat few texts
    found = [known[cell] if type(cell) is str else _number(cell) for cell in values.astype(object).ravel().tolist()]
    return np.array(found, dtype=np.float64).reshape(values.shape)


def _bucket(value: Any) -> float:
    text = spelling(_number(value) if isinstance(value, (*MOMENTS, Decimal, Fraction)) or _is_period(value) else value)
    if not text:
        return math.nan
    if SMALL.fullmatch(text) and int(text) < BUCKETS:
        return float(text)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") % BUCKETS)


def _seconds(values: np.ndarray) -> np.ndarray:
    """Return dates or durations in seconds, whatever their unit, which one record may change."""
    unit, count = np.datetime_data(values.dtype)
    if unit in ("Y", "M"):
        return _seconds(values.astype(f"{values.dtype.kind}8[D]"))
    if unit == "generic":
        return np.full(values.shape, math.nan)
    per_second = {"W": 7 * DAY, "D": DAY, "h": 3600.0, "m": 60.0, "s": 1.0}
    parts = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
    steps = values.astype(np.int64) * count
    if unit in per_second:
        seconds = steps * per_second[unit]
    else:
        whole, rest = np.divmod(steps, parts[unit])
        seconds = whole + rest / parts[unit]  # the same for the same moment in another unit
    return np.where(np.isnat(values), math.nan, seconds)


def _number(value: Any) -> float:
    if isinstance(value, str):
        return number_in(value)
    if value is None or isinstance(value, (bool, np.bool_)):
        return math.nan if value is None else float(value)
    if isinstance(value, MOMENTS):
        return _of_moment(value)
    if isinstance(value, (int, float, np.integer, np.floating, Decimal, Fraction)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
        except ValueError:  # a signalling NaN
            return math.nan
    if isinstance(value, (complex, np.complexfloating)):
        return float(value.real) if value.imag == 0 else math.nan
    return _of_period(value) if _is_period(value) else math.nan


def _of_moment(value: Any) -> float:
    """Return a date or a duration in seconds, with the same bits as `_seconds`."""
    for exact in ("to_datetime64", "to_timedelta64"):  # of pandas, which may have nanoseconds
        if hasattr(value, exact):
            value = getattr(value, exact)()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return float(_seconds(np.asarray(value)))
    if isinstance(value, datetime):
        since, offset = value.replace(tzinfo=None) - EPOCH, value.utcoffset()
        value = since if offset is None else since - offset  # `astimezone` fails at the first and the last day
    elif isinstance(value, date):
        value -= EPOCH.date()
    elif isinstance(value, time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 10**6
    return value.days * DAY + value.seconds + value.microseconds / 10**6


def _is_period(value: Any) -> bool:
    """Return whether a cell is a period of pandas, which need not be imported."""
    return type(value).__name__ == "Period" and hasattr(value, "to_timestamp")


def _of_period(value: Any) -> float:
    """Return the start of a period in seconds; infinite if it is beyond the moments of pandas."""
    try:
        return _of_moment(value.to_timestamp(how="start"))
    except (OverflowError, ValueError):
        return math.copysign(math.inf, value.year - EPOCH.year)

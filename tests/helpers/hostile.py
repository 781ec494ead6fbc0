"""Hostile parameters, tables and labels; what is private in them is made of a few recognisable secrets."""

import math
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

from skdp.solvers import GradientDescent

SECRETS = re.compile(r"secret|(?<![\d.])(31415|2718281)", re.IGNORECASE)  # every hostile table and no parameter is made of them
SECRET, NAN = 31415.9265, math.nan
X = np.random.default_rng(0).normal(size=(24, 3))
X[5] *= SECRET
QUOTABLE = [np.full((3, 2), SECRET), pd.DataFrame({"a": ["secret"] * 3}), [[SECRET] * 2] * 3]
y = np.arange(24) % 2

NUMBERS = [NAN, math.inf, -math.inf, 0, 0.0, -0.0, -1, -1.0, 1, 2, 7, 0.5, 1e-3, 1e-9, 1e-30, 1e-320, 1e30, 1e150, 1e250, 1e308]
NUMBERS += [10**20, 10**400, -(10**400), True, False, np.True_, np.float64(0.5), np.float32(0.5), np.float16(0.5), np.int8(1)]
NUMBERS += [np.uint64(2**64 - 1), np.longdouble(1) / 3, Fraction(1, 3), Fraction(1, 10**400), Fraction(10**400, 3)]
NUMBERS += [Decimal("0.5"), Decimal("NaN"), 0.5j, np.complex128(1), np.array(0.5), np.array([0.5]), *QUOTABLE]
OTHERS = [
    None,
    "",
    "1",
    "nan",
    b"1",
    [],
    [0.5],
    (1,),
    {},
    {0: 1.0},
    {1},
    object(),
    GradientDescent,
    date(2020, 1, 1),
    pd.NA,
    pd.NaT,
]
OTHERS += [
    [0, 1],
    [1, 0],
    [0, 1, 2],
    ["a", "b"],
    [[0], [0, 1]],
    [0, None],
    [0, NAN],
    [0, 1j],
    range(2),
    {0: 2.0, 1: Fraction(1, 3)},
]
OTHERS += [{0: NAN}, {0: 1e50}, {0: 1e-50, 1: 1e50}, {"a": 1.0}, {0: np.longdouble(2)}, {(0, 1): 1.0}, np.array([0, 1])]
OTHERS += [[Fraction(0), Fraction(1)], [pd.NaT, pd.Timestamp(0)], np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")]
OTHERS += [(0, 1), (-1, 1), (1, 0), (0.5, Fraction(1, 3)), (-Decimal(1), 1), (NAN, 1), (-math.inf, 1), (-1e50, 1e50), (0, 1e-50)]
OTHERS += [np.random.default_rng(0), np.random.RandomState(0), np.random.SeedSequence(0), pd.Series([0, 1]), "gd", "zero_out"]

T = np.where(np.arange(72).reshape(24, 3) == 7, SECRET, X)
F = pd.DataFrame(T, columns=list("abc"))


def cell(value):
    table = T.astype(object)
    table[2, 1] = value
    return table


def label(value):
    labels = y.astype(object)
    labels[3] = value
    return labels


class Hostile:
    """Conversions of it fail with errors that quote it."""

    def __float__(self):
        raise RuntimeError("secret")

    def __array__(self, *args, **kwargs):
        raise ValueError("secret 31415")


TABLES = {
    "list": T.tolist(),
    "tuple": tuple(map(tuple, T.tolist())),
    "ragged": [[SECRET], [1.0, 2.0]] * 12,
    **{
        f"dtype {d}": T.astype(d)
        for d in (
            "f2",
            "f4",
            "f8",
            "g",
            ">f4",
            ">f8",
            "i1",
            "u1",
            "i2",
            ">i4",
            "i8",
            "u8",
            "?",
            "c8",
            "c16",
            "S9",
            "U9",
            "O",
            "M8[s]",
            "m8[s]",
        )
    },
    "structured": np.array([(SECRET, "secret", 1.0)] * 24, dtype=[("a", "f8"), ("b", "U9"), ("c", "f4")]),
    "void": np.zeros((24, 3), dtype="V8"),
    "masked": np.ma.masked_equal(T, SECRET),
    "masked nan": np.ma.masked_invalid(np.where(T == SECRET, NAN, T)),
    "matrix": T.view(np.matrix),
    "memmap-like": T.copy(order="F"),
    "strided": np.repeat(T, 2, axis=0)[::2],
    "negative strides": T[::-1, ::-1],
    "readonly": T.copy(),
    "broadcast": np.broadcast_to(np.array([1.0, 2.0, SECRET]), (24, 3)),
    **{f"sparse {f}": sparse.csr_matrix(T).asformat(f) for f in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")},
    **{f"sparse array {f}": sparse.csr_array(T).asformat(f) for f in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")},
    "sparse complex": sparse.csr_matrix(T.astype(complex)),
    "sparse bool": sparse.csc_matrix(T > 0),
    "sparse longdouble": sparse.csr_matrix(T.astype("g")),
    "sparse 1d": sparse.coo_array(T[:, 0]),
    "sparse nan": sparse.csr_matrix(np.where(T == SECRET, NAN, T)),
    "sparse empty": sparse.csr_matrix((24, 3)),
    "sparse int64 idx": sparse.csr_array(
        (T.ravel(), np.tile(np.arange(3), 24).astype(np.int64), np.arange(0, 73, 3).astype(np.int64)), shape=(24, 3)
    ),
    "pandas": F,
    "pandas int names": pd.DataFrame(T),
    "pandas tuple names": pd.DataFrame(T, columns=pd.MultiIndex.from_tuples([(1, 2), (1, 3), (2, 2)])),
    "pandas twice": pd.DataFrame(T, columns=["a", "a", "b"]),
    "pandas float names": pd.DataFrame(T, columns=[1.5, 2.5, NAN]),
    "pandas nullable": F.astype("Float64"),
    "pandas nullable NA": F.astype("Float64").mask(F == SECRET),
    "pandas text": F.astype(str).replace("31415.9265", "secret"),
    "pandas category": pd.DataFrame({"a": pd.Categorical([SECRET, 1.0] * 12)}),
    "pandas category text": pd.DataFrame({"a": pd.Categorical(["secret", "b"] * 12)}),
    "pandas bool": F > 0,
    "pandas boolean": (F > 0).astype("boolean"),
    "pandas dates": pd.DataFrame({"a": pd.date_range("2031-4-15", periods=24)}),
    "pandas delta": pd.DataFrame({"a": pd.timedelta_range("31415s", periods=24)}),
    "pandas period": pd.DataFrame({"a": pd.period_range("2031-4", periods=24)}),
    "pandas interval": pd.DataFrame({"a": pd.interval_range(31415, periods=24)}),
    "pandas sparse": F.astype(pd.SparseDtype(float)),
    "pandas string": F.astype("string"),
    "pandas complex": F.astype(complex),
    "pandas objects": F.astype(object),
    "pandas decimal": F.map(lambda v: Decimal(str(v))),
    "series": F["a"],
    "index": pd.Index(T[:, 0]),
    "polars": pl.DataFrame(T, schema=list("abc")),
    "polars text": pl.DataFrame({"a": ["secret"] * 24}),
    "polars null": pl.DataFrame({"a": [31415.9, None] * 12}),
    "polars list": pl.DataFrame({"a": [[31415.9]] * 24}),
    "polars lazy": pl.DataFrame(T, schema=list("abc")).lazy(),
    "flat": T[:, 0],
    "0d": np.array(SECRET),
    "3d": T[None],
    "4d": T[None, None],
    "empty": T[:0],
    "no columns": T[:, :0],
    "one row": T[:1],
    "one column": T[:, :1],
    "two rows": T[:2],
    "nan": np.where(T == SECRET, NAN, T),
    "inf": np.where(T == SECRET, math.inf, T),
    "-inf": np.where(T == SECRET, -math.inf, T),
    "1e308": np.where(T == SECRET, 3.1415e307, T),
    "all 1e308": np.full((24, 3), 1.31415e308),
    "denormal": np.where(T == SECRET, 5e-324, T) * 1e-310,
    "zeros": np.zeros((24, 3)),
    "max": np.full((24, 3), np.finfo(float).max) * np.sign(X),
    "cell text": cell("secret"),
    "cell None": cell(None),
    "cell nan": cell(NAN),
    "cell NA": cell(pd.NA),
    "cell NaT": cell(pd.NaT),
    "cell dict": cell({"secret": 31415}),
    "cell list": cell([SECRET]),
    "cell array": cell(np.array([SECRET])),
    "cell decimal": cell(Decimal("31415.9")),
    "cell Decimal nan": cell(Decimal("sNaN")),
    "cell fraction": cell(Fraction(31415, 3)),
    "cell huge": cell(31415 * 10**400),
    "cell complex": cell(31415j),
    "cell bytes": cell(b"secret"),
    "cell date": cell(date(2020, 3, 14)),
    "cell hostile": cell(Hostile()),
    "cell number text": cell("31415.9"),
    "None": None,
    "text": "secret",
    "bytes": b"secret31415",
    "number": SECRET,
    "dict": {"a": T[:, 0].tolist()},
    "set": {SECRET, 1.0},
    "range": range(24),
    "function": len,
    "hostile": Hostile(),
    "hostile rows": [Hostile()] * 24,
    "type": float,
    "NA": pd.NA,
    "text rows": ["secret"] * 24,
    "bytes rows": [b"secret"] * 24,
    "nested text": [["secret", "1", "2"]] * 24,
    "number text": [["31415.9", "1", "2"]] * 24,
    "list of arrays": list(T),
    "list of series": [F["a"]] * 3,
    "array of arrays": np.array([None] * 24, dtype=object),
    "datetime list": [[date(2020, 3, 14)]] * 24,
}
LABELS = {
    "ints": y,
    "list": y.tolist(),
    "strings": np.array(["no", "yes"])[y],
    "object strings": np.array(["no", "yes"], dtype=object)[y],
    "bytes": np.array([b"a", b"b"])[y],
    "bools": y > 0,
    "floats": y.astype(float),
    "float half": y / 2,
    "continuous": T[:, 0],
    "one class": np.zeros(24),
    "three": np.arange(24) % 3,
    "many": np.arange(24),
    "column": y[:, None],
    "row": y[None],
    "matrix": np.stack([y, y], 1),
    "3d": y[:, None, None],
    "0d": np.array(1),
    "short": y[:5],
    "long": np.arange(48) % 2,
    "empty": [],
    "None": None,
    "secret": "secret",
    "number": SECRET,
    "nan": np.where(y == 0, NAN, 1.0),
    "inf": np.where(y == 0, math.inf, 1.0),
    "huge": y * 3.1415e300,
    "huge ints": label(31415 * 10**400),
    "uint64": y.astype("u8") + np.uint64(2**64 - 2),
    "int8": (y - 128).astype("i1"),
    "longdouble": y.astype("g"),
    ">i4": y.astype(">i4"),
    "f2": y.astype("f2"),
    "complex": y + 31415j,
    "complex0": y.astype(complex),
    "dates": np.array(["2031-04-15", "2031-04-16"], dtype="M8[D]")[y],
    "NaT": np.array(["NaT", "2031-04-16"], dtype="M8[D]")[y],
    "delta": y.astype("m8[s]"),
    "structured": np.array([(1, 31415)] * 24, dtype=[("a", int), ("b", int)]),
    "series": pd.Series(y),
    "frame": pd.DataFrame({"y": y}),
    "frame2": pd.DataFrame({"y": y, "z": y}),
    "Int64": pd.Series(y, dtype="Int64"),
    "Int64 NA": pd.Series([31415, None] * 12, dtype="Int64"),
    "boolean": pd.Series(y > 0, dtype="boolean"),
    "category": pd.Series(["a", "b"] * 12, dtype="category"),
    "category nan": pd.Series(["secret", None] * 12, dtype="category"),
    "string": pd.Series(["a", "b"] * 12, dtype="string"),
    "string NA": pd.Series(["secret", pd.NA] * 12, dtype="string"),
    "period": pd.Series(pd.period_range("2031-4", periods=24)),
    "polars": pl.Series(y),
    "polars text": pl.Series(["a", "b"] * 12),
    "polars null": pl.Series(["secret", None] * 12),
    "mixed": label("secret"),
    "with None": label(None),
    "with nan": label(NAN),
    "with NA": label(pd.NA),
    "with dict": label({"secret": 1}),
    "with list": label([SECRET]),
    "with hostile": label(Hostile()),
    "all None": [None] * 24,
    "decimals": [Decimal("0.1"), Decimal("31415")] * 12,
    "fractions": [Fraction(1, 3), Fraction(31415)] * 12,
    "tuples": [(0, 31415), (1, 2)] * 12,
    "sets": [{1}, {31415}] * 12,
    "ragged": [[0], [1, 31415]] * 12,
    "sparse": sparse.csr_matrix(y[:, None]),
    "sparse row": sparse.csr_matrix(y),
    "masked": np.ma.masked_equal(y, 1),
    "dict": dict(enumerate(y)),
    "set": {0, 1},
    "range": range(24),
    "text digits": list("01" * 12),
    "long text": ["a" * 1000, "b"] * 12,
    "nan text": ["nan", "a"] * 12,
    "negative zero": np.where(y == 0, -0.0, 1.0),
    "minmax": np.where(y == 0, -1.7e308, 1.7e308),
    "denormal": y * 5e-324,
    "object ints": y.astype(object),
    "object floats": y.astype(float).astype(object),
    "object bools": (y > 0).astype(object),
    "void": np.zeros(24, dtype="V8"),
    "hostile": Hostile(),
    "empty strings": ["", "a"] * 12,
    "surrogates": ["\ud800", "a"] * 12,
    "NUL": ["a\0", "a"] * 12,
}

"""Describe kinds of columns, a class each: what a schema states of a column, and how its cells become features."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp._data_validation import MISSING, quoting_no_data
from skdp._validation import shown
from skdp.preprocessing._categories import KnownCategories, category_names, named, of_each, spelling, spellings
from skdp.preprocessing._cells import bucket_cells, column_values, is_date, number_cells, unread_cells
from skdp.preprocessing._learned_columns import ColumnMap
from skdp.preprocessing._scaling import BoundedNumbers, BoundedScaler, between, bounded, signed_log
from skdp.privacy.queries.column_histograms import BUCKETS, bucket_bins

OTHER = "other"
MOST_INTEGERS = 64  # with an indicator each
FURTHEST = 4.0  # largest scaled value, in sizes of the core; a choice: the bounds are at most this far
LARGEST = 1e290  # of a cell, so that differences are finite
# Weight of the indicators of integers for a classifier: the number beside them has most of the effect, as a rule, and many
# indicators of weight 1 make rows long. Chosen with bank in view: .7, .5 and .35 for 1 gave +.002, +.003 and +.004 in AUC there
# (linear, epsilon 1, replace_one); adult and made-up frames with linear or smooth effects +-.001, those with effects of single
# integers -.0005 and -.001 (additive: -.002 and -.005) at .5 and .35. Regressions keep 1: on bike they lose up to .04 at .5.
LIGHT = 0.5
BEYOND = "are beyond the range of the fit and count as its end"


@dataclass(frozen=True)
class Indicators:
    """Say which prepared columns are the indicators of one column of a table.

    Parameters
    ----------
    columns : slice
        The prepared columns.
    weight : float
        Value of an indicator that is not 0, in a row that is not shortened.
    exhaustive : bool
        Whether each record has one of them; integers stand beside the number, and records may have none.
    name : str, default=""
        The column of the table.
    parts : tuple of str, default=()
        What each indicator of an exhaustive column stands for, as in ``Category.labels``.
    """

    columns: slice
    weight: float
    exhaustive: bool
    name: str = ""
    parts: tuple[str, ...] = ()


class Column(ABC):
    """Base of the kinds of columns: a frozen dataclass each, which holds what is known of one column.

    Attributes
    ----------
    kind : str
        Name of the kind in a schema.
    keys, learned_keys : frozenset of str
        Keys of an entry that users write, and those that only a private fit writes.
    required : str
        The key that a template leaves empty.
    example : str
        An entry, for messages.
    exhaustive : bool, default=False
        Whether each feature is an indicator and each record has exactly one of them. Additive models and boosted trees take such
        columns and those that have `ends`, which are numbers.
    dtype : str, default="str"
        Type of the column in the frames that are read.
    """

    kind: ClassVar[str]
    keys: ClassVar[frozenset[str]]
    learned_keys: ClassVar[frozenset[str]] = frozenset()
    required: ClassVar[str]
    example: ClassVar[str]
    exhaustive: ClassVar[bool] = False
    dtype: ClassVar[str] = "str"
    learned: "LearnedScale | None" = None  # further facts of a number that a private fit writes

    @classmethod
    @abstractmethod
    def read(cls, where: str, facts: Mapping[str, Any]) -> "Column":
        """Return the column of an entry whose keys are known; raise a ValueError that starts with ``where``."""

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a schema."""
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {"kind": self.kind, **fields}

    @property
    def plain(self) -> bool:
        """Whether all that is known can be stated by a user."""
        return self.learned is None

    @property
    @abstractmethod
    def parts(self) -> list[str]:
        """What each feature stands for, to stand behind the name of the column; empty for the number itself."""

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return len(self.parts)

    @property
    @abstractmethod
    def mean_square(self) -> float:
        """What the column adds to the squared length of a typical row."""

    @property
    def treatment(self) -> tuple[Any, ...]:
        """What columns with a transformer in common are alike in; starts with the place of the transformer among others."""
        return 4, self.kind

    def transformer(self, alike: Sequence[Any], separator: str, sparse_output: bool) -> tuple[str, Any]:
        """Return a name, and the transformer of columns of the same treatment, of which this one is the first."""
        return self.kind, ColumnMap(list(alike), separator)

    def in_own_units(self, alike: Sequence[Any], sparse_output: bool) -> tuple[str, Any]:
        """Return the same for treatment coding, in which numbers keep their units."""
        raise ValueError(f"inference=True takes no columns of the kind {self.kind!r}; expected numbers and categories.")

    @abstractmethod
    def cells(self, column: Any) -> np.ndarray:
        """Return the cells of a column as `map` takes them, each of which is read by itself."""

    @abstractmethod
    def map(self, cells: np.ndarray) -> np.ndarray:
        """Return the features of each cell."""

    def coded(self, column: Any) -> np.ndarray:
        """Return the cells of a column as numbers: themselves, or the places of their labels, NaN where missing."""
        return self.cells(column)

    def indicators(self, name: str, start: int, length: float) -> Iterator[Indicators]:
        """Yield the indicators of a column whose features begin at ``start`` and are divided by ``length``."""
        return iter(())

    def parts_of_cells(self, column: Any) -> np.ndarray:
        """Return which part, of `labels`, "missing" or "", each cell of a column to predict for has."""
        return np.full(len(column), "", dtype=object)

    def unusual(self, cells: Any, learned: Mapping[str, Any], usual: float, most: float) -> Iterator[tuple[int, float, str]]:
        """Yield the number of cells to predict for that a fit does not expect, their usual share, and what they are."""
        return iter(())

    def typed(self, dates: bool) -> "Column":
        """Return the column as one whose type is a number, perhaps a date."""
        return self

    @property
    def labels(self) -> list[str]:
        """What each feature of an exhaustive column stands for."""
        return []

    @property
    def levels(self) -> list[str]:
        """Levels of a plain category for treatment coding, the reference level first; none for numbers."""
        return []

    @property
    def implies_other(self) -> bool:
        """Whether values that are not listed have an indicator that is not listed either."""
        return False

    @property
    def ends(self) -> tuple[float, float] | None:
        """Bounds of a number."""
        return None

    @property
    def integers(self) -> tuple[float, ...]:
        """Values that have indicators beside the number."""
        return () if self.learned is None else self.learned.integers

    @property
    def weight(self) -> float:
        """Value of the indicators of `integers`."""
        return 1.0 if self.learned is None else self.learned.weight

    @property
    def gaps(self) -> bool:
        """Whether missing cells of a number have an indicator."""
        return self.learned is not None and self.learned.missing

    @property
    def binary(self) -> bool:
        """Whether the bounds of a number are its only two values."""
        return self.learned is not None and self.learned.binary

    def nearer(self, factor: float) -> "Column":
        """Return the column with limits at most ``factor`` times the far ends of its core, if it has one on a linear scale."""
        return self

    def lighter(self) -> "Column":
        """Return the column with indicators of integers of less weight, for a classifier."""
        return self

    def on_one_scale(self) -> "Column":
        """Return the column without a logarithm beside the number: on a logarithmic scale instead."""
        return self

    def without_indicators(self) -> "Column":
        """Return the column without indicators beside the number."""
        return self


class Levels(Column):
    """Base of kinds whose features are indicators of levels, of which each record has exactly one."""

    exhaustive: ClassVar[bool] = True

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """What each feature stands for."""

    @abstractmethod
    def places(self, cells: np.ndarray) -> np.ndarray:
        """Return which feature of each cell is 1."""

    @property
    def parts(self) -> list[str]:
        """The labels."""
        return self.labels

    @property
    def mean_square(self) -> float:
        """What the column adds to the squared length of a row."""
        return 1.0

    def map(self, cells: np.ndarray) -> np.ndarray:
        """Return the indicators of each cell."""
        return np.eye(self.n_features)[self.places(cells)]

    def indicators(self, name: str, start: int, length: float) -> Iterator[Indicators]:
        """Yield all features."""
        yield Indicators(slice(start, start + self.n_features), 1 / length, True, name, tuple(self.labels))

    def parts_of_cells(self, column: Any) -> np.ndarray:
        """Return the label of each cell."""
        return np.array(self.labels, dtype=object)[self.places(self.cells(column))]


@dataclass(frozen=True)
class Number(Column):
    """Describe a numeric column.

    Parameters
    ----------
    bounds : tuple of float
        Lowest and highest value, from public knowledge.
    scale : {"linear", "log"}
        Scale on which the column is mapped to [-1, 1].
    fill : float or None
        Value that replaces missing values; None if there must be none.
    learned : LearnedScale or None, default=None
        Further facts, which replace the map of the bounds to [-1, 1]; the scale may then be "sign", too.
    """

    kind: ClassVar[str] = "number"
    keys: ClassVar[frozenset[str]] = frozenset({"bounds", "scale", "fill"})
    learned_keys: ClassVar[frozenset[str]] = frozenset(
        ("core", "centre", "unit", "integers", "missing", "mean_square", "binary", "logarithm", "weight", "typed", "dates")
    )
    required: ClassVar[str] = "bounds"
    example: ClassVar[str] = "{'kind': 'number', 'bounds': [low, high]}"
    dtype: ClassVar[str] = "float64"

    bounds: tuple[float, float]
    scale: str
    fill: float | None
    learned: "LearnedScale | None" = None

    @classmethod
    def read(cls, where: str, facts: Mapping[str, Any]) -> "Number":
        """Return the column of an entry."""
        scale, fill = facts.get("scale", "linear"), facts.get("fill")
        given: Any = facts.get("bounds")
        bounds = check_bounds(where, "bounds", [-given, given] if _is_number(given) and given > 0 else given)
        learned = LearnedScale.read(where, facts, bounds) if cls.learned_keys & set(facts) else None
        if scale not in ("linear", "log") and not (learned is not None and scale == "sign"):
            raise ValueError(f"{where}: scale={shown(scale)}; expected 'linear' or 'log', or 'sign' beside a core and a centre.")
        if scale == "log" and learned is None and not _logarithm(bounds[0]) < _logarithm(bounds[1]):
            raise ValueError(
                f"{where}: bounds={shown(bounds)} have the same logarithm in float64; expected bounds that are farther apart."
            )
        if fill is not None and not (_is_number(fill) and bounds[0] <= fill <= bounds[1]):
            raise ValueError(f"{where}: fill={shown(fill)}; expected a number within the bounds, which replaces missing values.")
        return cls(bounds, scale, fill, learned)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a schema."""
        fill = {} if self.fill is None else {"fill": self.fill}
        further = {} if self.learned is None else self.learned.to_dict()
        return {"kind": self.kind, "bounds": list(self.bounds), "scale": self.scale, **fill, **further}

    @property
    def parts(self) -> list[str]:
        """What each feature stands for; empty for the scaled number."""
        logarithm = ["log"] if self.learned is not None and self.learned.logarithm else []
        return ["", *logarithm, *(f"{value:.15g}" for value in self.integers), *(["missing"] if self.gaps else [])]

    @property
    def mean_square(self) -> float:
        """What the column adds to the squared length of a typical row."""
        return 1 / 3 if self.learned is None else self.learned.mean_square + (self.learned.logarithm > 0) / 3

    @property
    def shown_on(self) -> str:
        """Scale of an axis: the scale, or "date" for moments on a linear one."""
        return "date" if self.learned is not None and self.learned.dates and self.scale == "linear" else self.scale

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds."""
        return self.bounds

    @property
    def centre(self) -> float:
        """Value that is mapped to 0: that which was learned, or 0."""
        return 0.0 if self.learned is None else self.learned.centre

    @property
    def treatment(self) -> tuple[Any, ...]:
        """The scale and the fill; learned numbers have a transformer in common."""
        return (0, self.scale, self.fill) if self.learned is None else (1,)

    @property
    def _treatment_in_words(self) -> str:
        return f"{self.scale} numbers" + ("" if self.fill is None else f", {self.fill!r} where missing")

    def transformer(self, alike: Sequence["Number"], separator: str, sparse_output: bool) -> tuple[str, Any]:
        """Return the scaler of plain numbers, or the map of learned ones."""
        if self.learned is not None:
            return "learned numbers", ColumnMap(list(alike), separator)
        return self._treatment_in_words, BoundedScaler([column.bounds for column in alike], scale=self.scale, fill=self.fill)

    def in_own_units(self, alike: Sequence["Number"], sparse_output: bool) -> tuple[str, Any]:
        """Return what clips numbers to their bounds, and fills gaps of learned ones by the centre."""
        if self.learned is not None:
            return "learned numbers", ColumnMap([NumberInUnits.of(column) for column in alike])
        return self._treatment_in_words, BoundedNumbers([column.bounds for column in alike], scale=self.scale, fill=self.fill)

    def indicators(self, name: str, start: int, length: float) -> Iterator[Indicators]:
        """Yield the indicators of the integers."""
        if self.integers:
            stop = start + self.n_features - self.gaps
            yield Indicators(slice(stop - len(self.integers), stop), self.weight / length, False, name)

    def cells(self, column: Any) -> np.ndarray:
        """Return the cells as numbers."""
        return number_cells(column)

    def parts_of_cells(self, column: Any) -> np.ndarray:
        """Return "missing" or "" for each cell."""
        return np.where(np.isnan(self.cells(column)), "missing", "").astype(object)

    def unusual(self, cells: Any, learned: Mapping[str, Any], usual: float, most: float) -> Iterator[tuple[int, float, str]]:
        """Yield the number of cells that are no numbers, and of those beyond the bounds."""
        if self.learned is not None:
            yield unread_cells(cells), usual, "are no numbers and count as missing"
            if self.learned.dates != is_date(cells.dtype):  # `warn_of_types` tells that
                return
        if self.scale != "sign" and learned.get("kind") != "undetermined":
            numbers, (low, high) = number_cells(cells), self.bounds
            yield int(((numbers < low) | (numbers > high)).sum()), most, BEYOND

    def typed(self, dates: bool) -> "Number":
        """Return the learned number as one whose type is a number, perhaps a date."""
        return replace(self, learned=replace(self._known, typed=True, dates=dates))

    def nearer(self, factor: float) -> "Number":
        """Return a learned number on a linear scale with limits at most a factor beyond its core; others as they are."""
        if self.learned is None or self.scale != "linear":
            return self
        low, high = further(*self.learned.core, factor)
        low, high = max(low, self.bounds[0]), min(high, self.bounds[1])
        return replace(self, bounds=(low, high)) if low < high else self

    def lighter(self) -> "Number":
        """Return a number whose integers have indicators of less weight, for a classifier; others as they are."""
        if self.learned is None or not self.integers:
            return self
        square = self.learned.mean_square - self.weight**2 + LIGHT**2
        return replace(self, learned=replace(self.learned, weight=LIGHT, mean_square=square))

    def on_one_scale(self) -> "Number":
        """Return a skewed number on a logarithmic scale alone; others as they are."""
        if self.learned is None or not self.learned.logarithm:
            return self
        return replace(self, scale="log", learned=replace(self.learned, unit=self.learned.logarithm, logarithm=0.0))

    def without_indicators(self) -> "Number":
        """Return the number alone."""
        return self if self.learned is None else replace(self, learned=replace(self.learned, integers=(), missing=False))

    def map(self, cells: np.ndarray) -> np.ndarray:
        """Return the features of cells of a learned number, NaN where missing."""
        filled = self._filled(cells)
        beside = [self._logarithms(filled)] if self._known.logarithm else []
        return np.column_stack([self._scaled(filled), *beside, self.beside(cells)])

    def beside(self, cells: np.ndarray) -> np.ndarray:
        """Return the indicators of the learned integers of a number, and then that of missing cells if it has one.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
            Numbers, NaN where missing.

        Returns
        -------
        ndarray of shape (n_samples, n_indicators)
            0, or the weight of indicators of integers, or 1 for missing cells.
        """
        missing = np.isnan(cells)[:, None] if self._known.missing else np.empty((len(cells), 0))
        return np.hstack([(cells[:, None] == np.array(self.integers)) * self.weight, missing])

    def between_bounds(self, cells: np.ndarray) -> np.ndarray:
        """Return where cells of a learned number lie between the bounds, on its scale; missing ones at the centre or at the fill.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
            Any numbers, NaN where missing.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers in [-1, 1]; -1, 0 or 1 for a column of scale "sign".
        """
        filled = self._filled(cells)
        if self.scale == "sign":
            return np.sign(filled - self.centre)
        low, high = self._on_scale(np.array(self.bounds))
        width = max(float(high - low), math.ulp(0.0))
        with np.errstate(all="ignore"):  # a warning would reveal a cell
            return np.clip(2 * ((self._on_scale(np.clip(filled, *self.bounds)) - low) / width) - 1, -1.0, 1.0)

    def scaled(self, name: str, column: Any) -> np.ndarray:
        """Return the cells of a table of one column, scaled to [-1, 1] by the bounds."""
        if self.learned is not None:
            return self.between_bounds(number_cells(single(column)))[:, None]
        numbers = column if type(column) is np.ndarray else quoting_no_data(column, lambda: _cells(column))
        if self.fill is None and numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            raise ValueError(f"Input X contains NaN or infinity. Columns with missing or infinite values: {name!r}.{MISSING}")
        plain = numbers.dtype.kind in "fiub" and numbers.dtype.itemsize <= 8 and numbers.size
        if not plain or np.isinf(numbers).any():  # the scaler raises the error, if it is one
            return np.asarray(BoundedScaler([self.bounds], scale=self.scale, fill=self.fill).fit_transform(numbers))
        with np.errstate(all="ignore"):  # a warning would reveal a cell
            low, high = np.array(self.bounds)[:, None]
            return between(*bounded(numbers, low, high, self.scale, self.fill))

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers at places from one bound (0) to the other one (1), increasing."""
        if self.learned is not None:
            return np.asarray(self.from_between(2 * places - 1))
        low, high = self.bounds
        if self.scale == "linear":
            return low + (high - low) * places
        low, high = (_logarithm(end) for end in self.bounds)
        logarithms = low + (high - low) * places
        return np.clip(np.copysign(np.expm1(np.abs(logarithms)), logarithms), *self.bounds)

    def from_between(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers that `between_bounds` maps to these places, increasing; one on each side for the scale "sign"."""
        low, high = self.bounds
        if self.scale == "sign":
            return np.where(places < 0, min(low, self.centre), np.where(places > 0, max(high, self.centre), self.centre))
        if self.scale == "linear":
            return low + (high - low) * (places + 1) / 2
        unit, (low, high) = self._known.unit, self._on_scale(np.array(self.bounds))
        logarithms = low + (high - low) * (places + 1) / 2
        return np.clip(np.copysign(np.expm1(np.abs(logarithms)) * unit, logarithms), *self.bounds)

    @property
    def own_range(self) -> tuple[float, float]:
        """The bounds, or their logarithms on a logarithmic scale."""
        low, high = signed_log(np.array(self.bounds)) if self.scale == "log" else self.bounds
        return float(low), float(high)

    @property
    def _known(self) -> "LearnedScale":
        if self.learned is None:
            raise ValueError("The column has bounds alone; expected a core and a centre.")
        return self.learned

    def _filled(self, cells: np.ndarray) -> np.ndarray:
        usual = self._known.centre if self.fill is None else self.fill
        return np.where(np.isnan(cells), usual, np.clip(cells, -LARGEST, LARGEST))

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        """Return the distance from the centre, on the scale of the column and in sizes of its core."""
        learned = self._known
        if self.scale == "sign":
            return np.sign(values - learned.centre)
        around = self._on_scale(np.array([learned.centre, *learned.core]))
        size = max(float(np.abs(around[1:] - around[0]).max()), math.ulp(0.0))
        return np.clip((self._on_scale(np.clip(values, *self.bounds)) - around[0]) / size, -FURTHEST, FURTHEST)

    def _logarithms(self, values: np.ndarray) -> np.ndarray:
        """Return logarithms of numbers, of which those of the core are in [-1, 1]."""
        learned = self._known
        low, high = signed_log(np.array(learned.core) / learned.logarithm)
        places = signed_log(np.clip(values, *self.bounds) / learned.logarithm)
        return np.clip((2 * places - low - high) / max(float(high - low), math.ulp(0.0)), -FURTHEST, FURTHEST)

    def _on_scale(self, values: np.ndarray) -> np.ndarray:
        return signed_log(values / self._known.unit) if self.scale == "log" else values


class NumberInUnits(Number):
    """A learned number that is clipped to its bounds, and neither centred nor scaled."""

    @classmethod
    def of(cls, number: Number) -> "NumberInUnits":
        """Return the number alone, with the indicator of missing cells if it has one."""
        return cls(number.bounds, "linear", number.fill, replace(number._known, integers=(), logarithm=0.0))

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        return np.clip(values, *self.bounds)


@dataclass(frozen=True)
class LearnedScale:
    """Describe how a number is scaled where bounds alone do not tell it.

    Parameters
    ----------
    core : tuple of float
        Lowest and highest value that are mapped to about [-1, 1]; values up to the bounds may be mapped to [-4, 4].
    centre : float
        Value that is mapped to 0.
    unit : float, default=1.0
        Unit of the logarithm ``sign(x) * log(1 + abs(x / unit))``.
    integers : tuple of float, default=()
        Values that get an indicator each, beside the number.
    missing : bool, default=False
        Whether missing values get an indicator.
    mean_square : float, default=1/3
        What the column, without a logarithm beside it, adds to the squared length of a typical row.
    binary : bool, default=False
        Whether the bounds are its only two values, so that plots show these alone.
    logarithm : float, default=0.0
        Unit of a logarithm that is a feature beside the number; 0 if there is none.
    weight : float, default=1.0
        Value of the indicator of an integer where it is not 0, at most 1.
    typed : bool, default=False
        Whether the column had a type of numbers, so that text in a table to predict for is a mistake.
    dates : bool, default=False
        Whether the numbers are moments, in seconds since 1970, so that plots show dates.
    """

    core: tuple[float, float]
    centre: float
    unit: float = 1.0
    integers: tuple[float, ...] = ()
    missing: bool = False
    mean_square: float = 1 / 3
    binary: bool = False
    logarithm: float = 0.0
    weight: float = 1.0
    typed: bool = False
    dates: bool = False

    @classmethod
    def read(cls, where: str, facts: Mapping[str, Any], bounds: tuple[float, float]) -> "LearnedScale":
        """Return the further facts of an entry of a number."""
        core, centre = facts.get("core", list(bounds)), facts.get("centre")
        if not isinstance(core, (list, tuple)) or len(core) != 2 or not all(map(_is_number, core)) or not core[0] <= core[1]:
            raise ValueError(f"{where}: core={shown(core)}; expected [low, high], low <= high.")
        centre = sum(core) / 2 if centre is None else centre
        positive = {name: facts.get(name, default) for name, default in (("unit", 1.0), ("mean_square", 1 / 3))}
        positive |= {name: facts[name] for name in ("logarithm", "weight") if name in facts}
        for name, value in (("centre", centre), *positive.items()):
            if not _is_number(value) or (name in positive and not value > 0):
                raise ValueError(f"{where}: {name}={shown(value)}; expected a {'positive ' * (name in positive)}number.")
        if positive.get("weight", 1) > 1:
            raise ValueError(f"{where}: weight={shown(facts['weight'])}; expected at most 1.")
        integers, flags = (
            facts.get("integers", []),
            {name: facts.get(name, False) for name in ("missing", "binary", "typed", "dates")},
        )
        listed = isinstance(integers, (list, tuple)) and len(integers) <= MOST_INTEGERS and all(map(_is_number, integers))
        if not listed or len(set(integers)) < len(integers):
            raise ValueError(f"{where}: integers={shown(integers)}; expected at most {MOST_INTEGERS} different numbers.")
        _check_flags(where, flags)
        further: dict[str, Any] = flags | {name: float(value) for name, value in positive.items()}
        ends = float(core[0]), float(core[1])
        return cls(ends, float(centre), integers=tuple(map(float, integers)), **further)

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of a schema."""
        given = {**vars(self), "core": list(self.core), "integers": list(self.integers)}
        usual = {name: getattr(LearnedScale, name, None) for name in given} | {"integers": []}
        return {name: value for name, value in given.items() if name not in usual or value != usual[name]}


@dataclass(frozen=True)
class Category(Levels):
    """Describe a categorical column.

    Parameters
    ----------
    categories : tuple of str
        Categories that get a column each, from public knowledge; empty if buckets get them.
    buckets : tuple of int or None, default=None
        Buckets from 0 to 255 of the hash of spellings that get a column each, in place of categories.
    missing : bool, default=False
        Whether missing values get a column; with buckets only.
    codes : bool, default=False
        Whether all spellings are numbers, as the type of the column says; with buckets only. A bucket then has the name of the
        integer that it holds.
    """

    kind: ClassVar[str] = "category"
    keys: ClassVar[frozenset[str]] = frozenset({"categories", "buckets", "missing", "codes"})
    required: ClassVar[str] = "categories"
    example: ClassVar[str] = "{'kind': 'category', 'categories': [one, another]}"

    categories: tuple[str, ...]
    buckets: tuple[int, ...] | None = None
    missing: bool = False
    codes: bool = False

    @classmethod
    def read(cls, where: str, facts: Mapping[str, Any]) -> "Category":
        """Return the column of an entry, with categories or with buckets."""
        if "buckets" in facts:
            return cls._hashed(where, facts)
        if alone := [name for name in ("missing", "codes") if name in facts]:
            raise ValueError(f"{where}: {alone[0]}={shown(facts[alone[0]])}; expected it beside buckets only.")
        try:
            return cls(tuple(category_names(facts.get("categories"), OTHER)))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    @classmethod
    def _hashed(cls, where: str, facts: Mapping[str, Any]) -> "Category":
        buckets, flags = facts["buckets"], {name: facts.get(name, False) for name in ("missing", "codes")}
        known = isinstance(buckets, (list, tuple)) and all(type(bucket) is int and 0 <= bucket < 256 for bucket in buckets)
        if not known or len(set(buckets)) < len(buckets) or "categories" in facts:
            raise ValueError(f"{where}: buckets={shown(buckets)}; expected different integers from 0 to 255, and no categories.")
        _check_flags(where, flags)
        return cls((), tuple(buckets), **flags)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a schema."""
        if self.buckets is None:
            return {"kind": self.kind, "categories": list(self.categories)}
        flags = {name: True for name, flag in (("missing", self.missing), ("codes", self.codes)) if flag}
        return {"kind": self.kind, "buckets": list(self.buckets), **flags}

    @property
    def plain(self) -> bool:
        """Whether the categories have names."""
        return self.buckets is None

    @property
    def are_codes(self) -> bool:
        """Whether buckets are taken for the codes themselves: 0 or 1 and all that follow; others may be hashes of anything."""
        buckets = self.buckets or (2,)
        return self.codes and buckets[0] <= 1 and buckets == tuple(range(buckets[0], buckets[0] + len(buckets)))

    @property
    def labels(self) -> list[str]:
        """What each feature stands for: the categories with "other", unless it is listed, or such as "bucket 17"."""
        return self._labels("bucket ")

    @property
    def parts(self) -> list[str]:
        """The labels as names of features have them, without blanks."""
        return self._labels("bucket")

    def _labels(self, prefix: str) -> list[str]:
        if self.buckets is None:
            return [*self.categories, *([OTHER] if self.implies_other else [])]
        prefix = "" if self.are_codes else prefix
        return [*(f"{prefix}{bucket}" for bucket in self.buckets), *(["missing"] if self.missing else []), OTHER]

    @property
    def levels(self) -> list[str]:
        """At least two levels for treatment coding, the reference level first."""
        return list(self.categories) if len(self.categories) > 1 else [OTHER, *self.categories]

    @property
    def implies_other(self) -> bool:
        """Whether "other" is not listed."""
        return OTHER not in self.categories

    @property
    def treatment(self) -> tuple[Any, ...]:
        """Buckets or categories."""
        return (3,) if self.buckets is None else (2,)

    def transformer(self, alike: Sequence["Category"], separator: str, sparse_output: bool) -> tuple[str, Any]:
        """Return the encoder of categories, or the map of buckets."""
        if self.buckets is not None:
            return "hashed categories", ColumnMap(list(alike), separator)
        encoder = OneHotEncoder(categories=[column.labels for column in alike], sparse_output=sparse_output)
        return "categories", make_pipeline(KnownCategories([list(column.categories) for column in alike], other=OTHER), encoder)

    def in_own_units(self, alike: Sequence["Category"], sparse_output: bool) -> tuple[str, Any]:
        """Return the encoder of all levels but the reference level, which other values are, unless "other" is a level."""
        levels = [column.levels for column in alike]
        others = [OTHER if OTHER in names else names[0] for names in levels]
        encoder = OneHotEncoder(categories=levels, drop=[names[0] for names in levels], sparse_output=sparse_output)
        return "categories", make_pipeline(KnownCategories(levels, other=others), encoder)

    def cells(self, column: Any) -> np.ndarray:
        """Return numbers of buckets, NaN where missing, or the cells as they are."""
        return quoting_no_data(column, lambda: np.asarray(column).astype(object)) if self.plain else bucket_cells(column)

    def coded(self, column: Any) -> np.ndarray:
        """Return the places of the labels of the cells, NaN where a cell is empty and of no category."""
        cells = self.cells(column)
        places = self.places(cells).astype(np.float64)
        if self.plain:
            empty = np.array(of_each(lambda cell: not spelling(cell), cells.tolist()), dtype=bool)
            empty &= places == self.labels.index(OTHER)
        else:
            empty = np.isnan(cells)
        return np.where(empty, math.nan, places)

    def unusual(self, cells: Any, learned: Mapping[str, Any], usual: float, most: float) -> Iterator[tuple[int, float, str]]:
        """Yield the number of cells that are neither empty nor of a category."""
        if self.buckets is not None:
            found = bucket_cells(cells)
            unknown = int(((self.places(found) == self.n_features - 1) & ~np.isnan(found)).sum())
        else:
            known = {text for name in self.categories for text in spellings(name)}
            texts = [spelling(cell) for cell in column_values(cells).astype(object).tolist()]
            unknown = 0 if OTHER in known else sum(bool(text) and text not in known for text in texts)
        yield unknown, usual, "are of no category of the fit"

    def typed(self, dates: bool) -> "Category":
        """Return the category as one of codes."""
        return replace(self, codes=True)

    def places(self, cells: np.ndarray) -> np.ndarray:
        """Return which indicator of each cell is 1: that of a hash bucket or category, of missing cells, or of all others.

        Parameters
        ----------
        cells : ndarray of shape (n_samples,)
            Numbers of buckets, NaN where missing; or any cells, for categories.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            Numbers of indicators.
        """
        if self.buckets is None:
            numbers = {category: place for place, category in enumerate(self.labels)}
            names = named(self.categories, OTHER, cells.tolist())
            return np.fromiter(map(numbers.__getitem__, names), dtype=np.int32, count=len(names))
        kept = [*self.buckets, *[BUCKETS] * self.missing]
        places = np.full(BUCKETS + 1, len(kept))
        places[kept] = np.arange(len(kept))
        return np.take(places, bucket_bins(cells))


KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Number, Category)}


def single(table: Any) -> Any:
    """Return the only column of a table."""
    return table[table.columns[0]] if hasattr(table, "columns") else np.asarray(table)[:, 0]


def _cells(column: Any) -> np.ndarray:
    """Return the cells of a table of one numeric column, with NaN for missing values of any kind."""
    if not hasattr(column, "to_numpy"):
        return np.asarray(column)
    found = column.to_numpy()
    return column.to_numpy(dtype=object, na_value=np.nan) if found.dtype == object and hasattr(column, "iloc") else found


def further(low: float, high: float, factor: float) -> tuple[float, float]:
    """Return limits beyond the far end, or ends, of a core."""
    if high >= -low and -low >= high:
        return low * factor, high * factor
    if high > -low:
        return (low / factor if low > 0 else low), high * factor
    return low * factor, (high / factor if high < 0 else high)


def check_bounds(where: str, name: str, bounds: Any) -> tuple[float, float]:
    """Return bounds as floats; raise a ValueError that starts with ``where``."""
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2 or not all(map(_is_number, bounds)) or not bounds[0] < bounds[1]:
        learning = ' The word "number" in place of the dict learns them.' if bounds is None else ""
        raise ValueError(
            f"{where}: {name}={shown(bounds)}; expected [low, high], low < high, known without looking at the records.{learning}"
        )
    return float(bounds[0]), float(bounds[1])


def _check_flags(where: str, flags: Mapping[str, Any]) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"{where}: {name}={shown(flag)}; expected true or false.")


def _logarithm(bound: float) -> float:
    return math.copysign(math.log1p(abs(bound)), bound)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e50

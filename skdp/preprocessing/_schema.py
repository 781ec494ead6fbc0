"""Read and check schemas: JSON files with the columns of a table, their kinds, bounds and categories, and the target."""

import glob
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from skdp._validation import shown
from skdp.preprocessing._categories import KnownCategories, category_names

__all__ = [
    "OTHER",
    "Category",
    "LearntScale",
    "Number",
    "Schema",
    "columns_and_target",
    "encoded",
    "matching",
    "read_json",
    "template",
]

EXAMPLES = "{'kind': 'number', 'bounds': [low, high]} or {'kind': 'category', 'categories': [one, another]}"
OTHER = "other"
LEAST_SQUARE = 0.01  # of the length of a typical row; a choice, so that rows of columns that are nearly all 0 are not blown up
MOST_INTEGERS = 64  # with an indicator each

ADVICE = (
    "This template is for the owner of the records: its kinds are guesses from them, and no release. Fill in from public "
    "knowledge, never from the records. A column whose numbers are codes (1 = single, 2 = married) is better described as a "
    'category: "kind": "category", "categories": [1, 2]. A key such as BILL_* stands for all columns with such names. '
    "The target has classes if it is a label, target_bounds if it is a number."
)

PARTICULAR = {
    "core",
    "centre",
    "unit",
    "integers",
    "missing",
    "mean_square",
    "binary",
    "logarithm",
    "weight",
    "typed",
    "dates",
}  # of a number that was learnt
OF_FILE = {"columns", "target", "classes", "target_bounds", "description"}  # keys of a schema as a file holds it
ANY = {"kind", "description", "exact"}
KEYS = {
    "number": {"bounds", "scale", "fill"} | ANY,
    "category": {"categories", "buckets", "missing", "codes"} | ANY,
    "ignore": {"bounds", "scale", "fill", "categories"} | ANY,  # a template may have left any of these keys
}


@dataclass(frozen=True)
class Number:
    """Describe a numeric column.

    Parameters
    ----------
    bounds : tuple of float
        Lowest and highest value, from public knowledge.
    scale : {"linear", "log"}
        Scale on which the column is mapped to [-1, 1].
    fill : float or None
        Value that replaces missing values; None if there must be none.
    learnt : LearntScale or None, default=None
        Further facts, which replace the map of the bounds to [-1, 1]; the scale may then be "sign", too.
    """

    bounds: tuple[float, float]
    scale: str
    fill: float | None
    learnt: "LearntScale | None" = None

    @property
    def plain(self) -> bool:
        """Whether bounds, scale and fill are all that is known."""
        return self.learnt is None

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return 1 if self.learnt is None else 1 + (self.learnt.logarithm > 0) + len(self.learnt.integers) + self.learnt.missing

    @property
    def mean_square(self) -> float:
        """What the column adds to the squared length of a typical row."""
        return 1 / 3 if self.learnt is None else self.learnt.mean_square + (self.learnt.logarithm > 0) / 3

    @property
    def shown_on(self) -> str:
        """Scale of an axis: the scale, or "date" for moments on a linear one."""
        return "date" if self.learnt is not None and self.learnt.dates and self.scale == "linear" else self.scale

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a schema."""
        fill = {} if self.fill is None else {"fill": self.fill}
        further = {} if self.learnt is None else self.learnt.to_dict()
        return {"kind": "number", "bounds": list(self.bounds), "scale": self.scale, **fill, **further}


@dataclass(frozen=True)
class LearntScale:
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

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of a schema."""
        given = {**vars(self), "core": list(self.core), "integers": list(self.integers)}
        usual = {name: getattr(LearntScale, name, None) for name in given} | {"integers": []}
        return {name: value for name, value in given.items() if name not in usual or value != usual[name]}


@dataclass(frozen=True)
class Category:
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

    categories: tuple[str, ...]
    buckets: tuple[int, ...] | None = None
    missing: bool = False
    codes: bool = False

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
        """What each prepared column stands for."""
        if self.buckets is None:
            return encoded(self.categories)
        prefix = "" if self.are_codes else "bucket "
        return [*(f"{prefix}{bucket}" for bucket in self.buckets), *(["missing"] if self.missing else []), OTHER]

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return len(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a schema."""
        if self.buckets is None:
            return {"kind": "category", "categories": list(self.categories)}
        flags = {name: True for name, flag in (("missing", self.missing), ("codes", self.codes)) if flag}
        return {"kind": "category", "buckets": list(self.buckets), **flags}


@dataclass(frozen=True)
class Schema:
    """Hold what is public about a table.

    Parameters
    ----------
    columns : dict
        `Number` or `Category` by column name, without ignored columns.
    target : str or None
        Column to predict.
    classes : tuple or None
        Labels of the target.
    target_bounds : tuple of float or None, default=None
        Lowest and highest value of the target, if it is a number.
    """

    columns: Mapping[str, Number | Category]
    target: str | None
    classes: tuple[Any, ...] | None
    target_bounds: tuple[float, float] | None = None

    @classmethod
    def read(cls, source: Any, names: Iterable[str] | Callable[[], Iterable[str]] | None = None) -> "Schema":
        """Read and check a schema.

        Parameters
        ----------
        source : path-like, dict or Schema
            A JSON file, or its content; or a dict from column name to facts alone.
        names : iterable of str, callable or None, default=None
            Column names of the table, which patterns such as ``BILL_*`` are matched with; or a function that returns them, called
            only if there is a pattern.

        Returns
        -------
        Schema
            The checked facts.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        TypeError, ValueError
            If an entry is missing, misspelt or not filled in; the message names the entry.
        """
        if isinstance(source, Schema):
            return source
        where = "The schema"
        if isinstance(source, (str, os.PathLike)):
            where = f"{os.fspath(source)}"
            source = read_json(Path(source))
        if not isinstance(source, Mapping):
            raise TypeError(f"{where} is a {type(source).__name__}; expected a path to a JSON file, or a dict.")
        if columns_and_target(source)[0] is source and source and all(_states(facts) for facts in source.values()):
            source = {"columns": source}
        _check_keys(where, source, OF_FILE, set())
        given = source.get("columns")
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{where}: columns={shown(given)}; expected an object from column name to its facts.")
        _check_filled_in(where, source)
        target = source.get("target")
        columns = {str(name): _column(f"{where}, column {name!r}", facts) for name, facts in given.items()}
        if patterns := [str(name) for name, facts in given.items() if _is_pattern(str(name)) and not _is_exact(facts)]:
            columns = _without_patterns(where, columns, patterns, names, target)
        if not any(columns.values()):
            raise ValueError(f"{where}: every column is ignored; expected at least one column to predict from.")
        if target is not None and (not isinstance(target, str) or not target):
            raise ValueError(f"{where}: target={shown(target)}; expected the name of the column to predict.")
        if target in columns and columns[target] is not None:
            raise ValueError(f"{where}: the target {target!r} is also among the other columns; expected it only as the target.")
        return cls({n: c for n, c in columns.items() if c is not None}, target, *_target_values(where, source))

    @property
    def has_learnt(self) -> bool:
        """Whether an entry has keys that only a private fit writes, such as a core or buckets."""
        return not all(column.plain for column in self.columns.values())

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return sum(column.n_features for column in self.columns.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a schema, which can be edited, written as JSON and read again.

        Returns
        -------
        dict
            Columns, and what is known of the target.
        """
        further = {"target": self.target, "classes": self.classes, "target_bounds": self.target_bounds}
        return {
            "columns": {name: {**column.to_dict(), **_exact(name)} for name, column in self.columns.items()},
            **{name: list(value) if isinstance(value, tuple) else value for name, value in further.items() if value is not None},
        }

    def labels(self, values: Any) -> np.ndarray:
        """Return the classes whose spellings a target column contains.

        Parameters
        ----------
        values : array-like of shape (n_samples,)
            Text or numbers.

        Returns
        -------
        ndarray of shape (n_samples,)
            Entries of ``classes``.

        Raises
        ------
        ValueError
            If there are no classes, or if a value is not one of them.
        """
        if self.classes is None:
            raise ValueError("The schema has no classes; expected the labels of the target.")
        names, outside = category_names(self.classes), ""
        texts = KnownCategories(names, other=outside).transform(_as_column(values))[:, 0]
        if (texts == outside).any():
            raise ValueError(
                f"The target {self.target!r} has values that are missing or outside classes={list(self.classes)!r}; expected in "
                "every record one of the classes, spelt as the table spells it: upper case counts."
            )
        position = np.argsort(names)
        return np.array(self.classes)[position[np.searchsorted(np.array(names)[position], texts.astype(str))]]

    @property
    def data_norm(self) -> float:
        """Typical length of a prepared row before scaling; its square is 1 per category plus 1/3 per number in [-1, 1]."""
        squares = (1.0 if isinstance(column, Category) else column.mean_square for column in self.columns.values())
        return math.sqrt(max(sum(squares), LEAST_SQUARE))


def _as_column(values: Any) -> np.ndarray:
    column = np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values).astype(object)
    if column.ndim != 1:
        raise ValueError(f"The target has {column.ndim} dimensions; expected one label per record.")
    return column[:, None]


def encoded(categories: Sequence[str]) -> list[str]:
    """Return the categories with "other", unless it is already among them."""
    return [*categories] if OTHER in categories else [*categories, OTHER]


def template(kinds: Mapping[str, str], target: str = "") -> dict[str, Any]:
    """Return a template of a schema, to fill in from public knowledge.

    Parameters
    ----------
    kinds : dict
        "number", "category" or "ignore" by column name.
    target : str, default=""
        Column to predict.

    Returns
    -------
    dict
        All bounds, categories and classes are empty, and so is the target if none is given.
    """
    empty: dict[str, dict[str, Any]] = {"number": {"bounds": []}, "category": {"categories": []}, "ignore": {}}
    columns = {name: {"kind": kind, **empty[kind]} for name, kind in kinds.items() if name != target}
    values: dict[str, Any] = {"classes": []} if kinds.get(target) == "category" else {"classes": [], "target_bounds": []}
    return {"description": ADVICE, "columns": columns, "target": target, **values}


def read_json(path: Path) -> Any:
    """Return the content of a schema file; raise an error that names the file."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no schema {path}.")
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_unique, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not JSON: it is not UTF-8 text.") from None
    except RecursionError:
        raise ValueError(f"{path} is not a schema: its brackets are nested too deeply.") from None


def _integer(digits: str) -> float:
    return int(digits) if len(digits) < 1000 else float(digits)  # Python refuses integers of more digits


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"The schema has {doubled} more than once in one object; expected different names.")
    return dict(pairs)


def _check_keys(where: str, given: Mapping[str, Any], known: set[str], learnt: set[str]) -> None:
    """Raise an error that names unknown keys, and those that people write; ``learnt`` ones are allowed besides."""
    if unknown := sorted(set(map(str, given)) - known - learnt):
        likely = [near for key in unknown for near in get_close_matches(key, sorted(known), 1)]
        meant = f", perhaps {likely}" if likely else ""
        raise ValueError(f"{where} has {unknown}; expected keys among {sorted(known)}{meant}.")


def _check_filled_in(where: str, source: Mapping[str, Any]) -> None:
    """Raise an error that names all entries which `template` left empty."""
    read = {name: facts for name, facts in source["columns"].items() if isinstance(facts, Mapping)}
    columns = {name: facts for name, facts in read.items() if facts.get("kind") != "ignore"}
    empty = [f"{key} of {name!r}" for name, facts in columns.items() for key in ("bounds", "categories") if facts.get(key) == []]
    empty += ["target"] if source.get("target") == "" else []
    values = [key for key in ("classes", "target_bounds") if key in source]
    if values and all(source[key] == [] for key in values):
        empty.append(" or ".join(values))
    if empty:
        raise ValueError(
            f"{where} is not filled in yet: {', '.join(empty)}; expected what is known without looking at the records."
        )


def columns_and_target(content: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], dict[str, Any]]:
    """Return the columns of a schema and what it states of the target; a dict of columns alone is the former."""
    columns = content.get("columns")
    if not isinstance(columns, Mapping) or not set(content) <= OF_FILE:
        return content, {}
    return columns, {name: value for name, value in content.items() if name not in ("columns", "description")}


def _states(facts: Any) -> bool:
    """Return whether an entry looks like the facts of a column, which are checked elsewhere."""
    return facts == "ignore" or (isinstance(facts, Mapping) and "kind" in facts and facts["kind"] != "learn")


def _column(where: str, facts: Any) -> Number | Category | None:
    if facts == "ignore":
        return None
    if not isinstance(facts, Mapping) or facts.get("kind") not in [*KEYS]:  # a list is not hashable
        raise ValueError(
            f"{where}: {shown(facts)}; expected an object whose kind is one of {sorted(KEYS)}, such as {EXAMPLES}, or for an "
            'estimator, which can learn the column, the word "learn", "number", "category" or "either" alone.'
        )
    _check_keys(where, facts, KEYS[facts["kind"]], PARTICULAR if facts["kind"] == "number" else set())
    if not isinstance(facts.get("exact", False), bool):
        raise ValueError(f"{where}: exact={shown(facts['exact'])}; expected true or false.")
    if facts["kind"] == "ignore":
        return None
    if facts["kind"] == "category" and "buckets" in facts:
        return _hashed(where, facts)
    if facts["kind"] == "category":
        if alone := [name for name in ("missing", "codes") if name in facts]:
            raise ValueError(f"{where}: {alone[0]}={shown(facts[alone[0]])}; expected it beside buckets only.")
        try:
            return Category(tuple(category_names(facts.get("categories"), OTHER)))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    scale, fill = facts.get("scale", "linear"), facts.get("fill")
    given: Any = facts.get("bounds")
    bounds = _bounds(where, "bounds", [-given, given] if _is_number(given) and given > 0 else given)
    learnt = _learnt(where, facts, bounds)
    if scale not in ("linear", "log") and not (learnt is not None and scale == "sign"):
        raise ValueError(f"{where}: scale={shown(scale)}; expected 'linear' or 'log', or 'sign' beside a core and a centre.")
    if scale == "log" and learnt is None and not _logarithm(bounds[0]) < _logarithm(bounds[1]):
        raise ValueError(
            f"{where}: bounds={shown(bounds)} have the same logarithm in float64; expected bounds that are farther apart."
        )
    if fill is not None and not (_is_number(fill) and bounds[0] <= fill <= bounds[1]):
        raise ValueError(f"{where}: fill={shown(fill)}; expected a number within the bounds, which replaces missing values.")
    return Number(bounds, scale, fill, learnt)


def _hashed(where: str, facts: Mapping[str, Any]) -> Category:
    buckets, flags = facts["buckets"], {name: facts.get(name, False) for name in ("missing", "codes")}
    known = isinstance(buckets, (list, tuple)) and all(type(bucket) is int and 0 <= bucket < 256 for bucket in buckets)
    if not known or len(set(buckets)) < len(buckets) or "categories" in facts:
        raise ValueError(f"{where}: buckets={shown(buckets)}; expected different integers from 0 to 255, and no categories.")
    _check_flags(where, flags)
    return Category((), tuple(buckets), **flags)


def _check_flags(where: str, flags: Mapping[str, Any]) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"{where}: {name}={shown(flag)}; expected true or false.")


def _learnt(where: str, facts: Mapping[str, Any], bounds: tuple[float, float]) -> LearntScale | None:
    """Return the further facts of a number; None if there are none."""
    if not PARTICULAR & set(facts):
        return None
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
    return LearntScale(ends, float(centre), integers=tuple(map(float, integers)), **further)


def _bounds(where: str, name: str, bounds: Any) -> tuple[float, float]:
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2 or not all(map(_is_number, bounds)) or not bounds[0] < bounds[1]:
        learning = ' The word "number" in place of the dict learns them.' if bounds is None else ""
        raise ValueError(
            f"{where}: {name}={shown(bounds)}; expected [low, high], low < high, known without looking at the records.{learning}"
        )
    return float(bounds[0]), float(bounds[1])


def _is_pattern(name: str) -> bool:
    """Return whether a name is a pattern; only ``*`` is special, because names often have brackets and question marks."""
    return "*" in name


def _is_exact(facts: Mapping[str, Any]) -> bool:
    """Return whether an entry says that its name is that of one column, whatever letters it has."""
    return facts.get("exact") is True


def _exact(name: str) -> dict[str, bool]:
    """Return what an entry must have so that its name is no pattern."""
    return {"exact": True} if _is_pattern(name) else {}


def _without_patterns(where: str, columns: Mapping[str, Any], patterns: Sequence[str], names: Any, target: Any) -> dict[str, Any]:
    """Replace each pattern by the matching columns, except for the target and for columns that have a key of their own."""
    if names is None:
        raise ValueError(
            f"{where} has the patterns {patterns}, which need the columns of a table; expected names, or Schema.read(schema, "
            'X.columns) as the schema (for the command plan: a TABLE), or "exact": true in the entry of a column whose '
            "name has a star."
        )
    present = [str(name) for name in (names() if callable(names) else names)]
    free = [name for name in present if name not in columns and name != target]
    expanded: dict[str, Any] = {}
    for key, facts in columns.items():
        matched = matching(key, free) if key in patterns and key not in present else [key]
        if not matched:
            raise ValueError(f"{where}: the pattern {key!r} matches no column without a key of its own; expected one or more.")
        if any(name in expanded for name in matched):
            raise ValueError(f"{where}: {key!r} and another pattern match the same column; expected one pattern for each column.")
        expanded |= dict.fromkeys(matched, facts)
    return expanded


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that a pattern stands for, in which only ``*`` is special."""
    escaped = "*".join(map(glob.escape, pattern.split("*")))
    return [name for name in names if fnmatchcase(name, escaped)]


def _target_values(where: str, source: Mapping[str, Any]) -> tuple[tuple[Any, ...] | None, tuple[float, float] | None]:
    """Return classes and bounds of the target; a template has both, and the one that does not apply may stay empty."""
    values = (source.get(key) for key in ("classes", "target_bounds"))
    classes, bounds = (None if value == [] else value for value in values)
    if classes is not None and bounds is not None:
        raise ValueError(f"{where} has classes and target_bounds; expected classes for labels, or target_bounds for a number.")
    return _classes(where, classes), None if bounds is None else _bounds(where, "target_bounds", bounds)


def _classes(where: str, classes: Any) -> tuple[Any, ...] | None:
    if classes is None:
        return None
    if not isinstance(classes, (list, tuple)) or len(classes) < 2:
        raise ValueError(f"{where}: classes={shown(classes)}; expected a list of at least two labels of the target.")
    category_names(classes)
    return tuple(classes)


def _logarithm(bound: float) -> float:
    return math.copysign(math.log1p(abs(bound)), bound)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e50

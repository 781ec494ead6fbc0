"""Read and check schemas: JSON files with the columns of a table, their kinds, bounds and categories, and the target."""

import glob
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from skdp._validation import shown
from skdp.preprocessing._categories import KnownCategories, category_names
from skdp.preprocessing._column_kinds import KINDS, Column, check_bounds

LEAST_SQUARE = 0.01  # of the length of a typical row; a choice, so that rows of columns that are nearly all 0 are not blown up

EXAMPLES = " or ".join(kind.example for kind in KINDS.values())
REQUIRED = [kind.required for kind in KINDS.values()]
ADVICE = (
    "This template is for the owner of the records: its kinds are guesses from them, and no release. Fill in from public "
    "knowledge, never from the records. A column whose numbers are codes (1 = single, 2 = married) is better described as a "
    'category: "kind": "category", "categories": [1, 2]. A key such as BILL_* stands for all columns with such names. '
    "The target has classes if it is a label, target_bounds if it is a number."
)

OF_FILE = frozenset({"columns", "target", "classes", "target_bounds", "description"})  # keys of a schema as a file holds it
ANY = frozenset({"kind", "description", "exact"})
KEYS: dict[str, frozenset[str]] = {
    **{name: kind.keys | ANY for name, kind in KINDS.items()},
    "ignore": ANY | {"bounds", "scale", "fill", "categories"},  # a template may have left any of these keys
}


@dataclass(frozen=True)
class Schema:
    """Hold what is public about a table.

    Parameters
    ----------
    columns : dict
        What is known of each column, by name, without ignored columns.
    target : str or None
        Column to predict.
    classes : tuple or None
        Labels of the target.
    target_bounds : tuple of float or None, default=None
        Lowest and highest value of the target, if it is a number.
    """

    columns: Mapping[str, Column]
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
        _check_keys(where, source, OF_FILE, frozenset())
        given = source.get("columns")
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{where}: columns={shown(given)}; expected an object from column name to its facts.")
        _check_filled_in(where, source)
        target = source.get("target")
        columns = {str(name): _column(f"{where}, column {name!r}", facts) for name, facts in given.items()}
        if patterns := [str(name) for name, facts in given.items() if _is_pattern(str(name)) and facts.get("exact") is not True]:
            columns = _without_patterns(where, columns, patterns, names, target)
        if not any(columns.values()):
            raise ValueError(f"{where}: every column is ignored; expected at least one column to predict from.")
        if target is not None and (not isinstance(target, str) or not target):
            raise ValueError(f"{where}: target={shown(target)}; expected the name of the column to predict.")
        if target in columns and columns[target] is not None:
            raise ValueError(f"{where}: the target {target!r} is also among the other columns; expected it only as the target.")
        return cls({n: c for n, c in columns.items() if c is not None}, target, *_target_values(where, source))

    @property
    def has_learned(self) -> bool:
        """Whether an entry has keys that only a private fit writes, such as a core or buckets."""
        return not all(column.plain for column in self.columns.values())

    @property
    def numbers(self) -> dict[str, Any]:
        """The columns of numbers, by name."""
        return {name: column for name, column in self.columns.items() if column.ends is not None}

    def alike(self) -> list[dict[str, Column]]:
        """Return the columns that one transformer maps together, by name, in the order of the features."""
        found: dict[tuple[Any, ...], dict[str, Column]] = {}
        for name, column in sorted(self.columns.items(), key=lambda item: int(item[1].treatment[0])):
            found.setdefault(column.treatment, {})[name] = column
        return list(found.values())

    def parts(self, sparse_output: bool) -> Iterator[tuple[str, Any, list[str]]]:
        """Yield the parts of the preparation: a name, a transformer, and the columns that it takes.

        Parameters
        ----------
        sparse_output : bool
            Whether indicators are in CSR.
        """
        for columns in self.alike():
            alike = list(columns.values())
            yield (*alike[0].transformer(alike, self.separator, sparse_output), list(columns))

    @property
    def separator(self) -> str:
        """The fewest underscores that give no feature of a learned column the name of a column, or of a given category.

        Whether a fit that has learned its columns can name its features must not depend on what was learned.
        """
        given = (f"{name}_{part}" for name, facts in self.columns.items() if facts.plain for part in facts.parts if part)
        learned = [(name, part) for name, facts in self.columns.items() if not facts.plain for part in facts.parts if part]
        taken, separator = {*self.columns, *given}, "_"
        while any(f"{name}{separator}{part}" in taken for name, part in learned):
            separator += "_"
        return separator

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
        exact = {name: {"exact": True} for name in self.columns if _is_pattern(name)}
        return {
            "columns": {name: {**column.to_dict(), **exact.get(name, {})} for name, column in self.columns.items()},
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
        squares = (column.mean_square for column in self.columns.values())
        return math.sqrt(max(sum(squares), LEAST_SQUARE))


def _as_column(values: Any) -> np.ndarray:
    column = np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values).astype(object)
    if column.ndim != 1:
        raise ValueError(f"The target has {column.ndim} dimensions; expected one label per record.")
    return column[:, None]


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
    empty: dict[str, dict[str, Any]] = {name: {kind.required: []} for name, kind in KINDS.items()}
    columns = {name: {"kind": kind, **empty.get(kind, {})} for name, kind in kinds.items() if name != target}
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


def _check_keys(where: str, given: Mapping[str, Any], known: frozenset[str], learned: frozenset[str]) -> None:
    """Raise an error that names unknown keys, and those that people write; ``learned`` ones are allowed besides."""
    if unknown := sorted(set(map(str, given)) - known - learned):
        likely = [near for key in unknown for near in get_close_matches(key, sorted(known), 1)]
        meant = f", perhaps {likely}" if likely else ""
        raise ValueError(f"{where} has {unknown}; expected keys among {sorted(known)}{meant}.")


def _check_filled_in(where: str, source: Mapping[str, Any]) -> None:
    """Raise an error that names all entries which `template` left empty."""
    read = {name: facts for name, facts in source["columns"].items() if isinstance(facts, Mapping)}
    columns = {name: facts for name, facts in read.items() if facts.get("kind") != "ignore"}
    empty = [f"{key} of {name!r}" for name, facts in columns.items() for key in REQUIRED if facts.get(key) == []]
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


def _column(where: str, facts: Any) -> Column | None:
    if facts == "ignore":
        return None
    if not isinstance(facts, Mapping) or facts.get("kind") not in [*KEYS]:  # a list is not hashable
        raise ValueError(
            f"{where}: {shown(facts)}; expected an object whose kind is one of {sorted(KEYS)}, such as {EXAMPLES}, or for an "
            'estimator, which can learn the column, the word "learn", "number", "category" or "either" alone.'
        )
    kind = KINDS.get(facts["kind"])
    _check_keys(where, facts, KEYS[facts["kind"]], frozenset() if kind is None else kind.learned_keys)
    if not isinstance(facts.get("exact", False), bool):
        raise ValueError(f"{where}: exact={shown(facts['exact'])}; expected true or false.")
    return None if kind is None else kind.read(where, facts)


def _is_pattern(name: str) -> bool:
    """Return whether a name is a pattern; only ``*`` is special, because names often have brackets and question marks."""
    return "*" in name


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
    return _classes(where, classes), None if bounds is None else check_bounds(where, "target_bounds", bounds)


def _classes(where: str, classes: Any) -> tuple[Any, ...] | None:
    if classes is None:
        return None
    if not isinstance(classes, (list, tuple)) or len(classes) < 2:
        raise ValueError(f"{where}: classes={shown(classes)}; expected a list of at least two labels of the target.")
    category_names(classes)
    return tuple(classes)


@dataclass(frozen=True)
class TreatmentSchema(Schema):
    """Describe the same columns as a schema, with treatment coding of the categories.

    Numbers stay in their own units. The first category of a column is its reference level, and each other category has an
    indicator. Indicators of all levels would add up to 1, which is the intercept, so that no budget could tell them apart. Values
    that are not listed belong to "other" if it is listed, and to the reference level if not. Where one category is listed, all
    other values are the reference level.
    """

    @classmethod
    def of(cls, schema: Schema) -> "TreatmentSchema":
        """Return the treatment coding of a schema.

        Parameters
        ----------
        schema : Schema
            Public facts about the columns.

        Returns
        -------
        TreatmentSchema
            The same columns.

        Raises
        ------
        ValueError
            If columns were learned.
        """
        if learned := [name for name, column in schema.columns.items() if not column.plain]:
            raise ValueError(
                f"inference=True with columns that are learned, {learned}: the coefficients would have no units, and categories "
                "no names. Use bounds and categories of all columns, from public knowledge."
            )
        return cls(schema.columns, schema.target, schema.classes, schema.target_bounds)

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return sum(map(_size, self.columns.values()))

    @property
    def references(self) -> dict[str, str]:
        """Reference level of each category."""
        return {name: column.levels[0] for name, column in self.columns.items() if column.exhaustive}

    @property
    def row_facts(self) -> dict[str, Any]:
        """Parameters of an estimator of the prepared rows: ``feature_bounds``, and a ``data_norm`` that no row exceeds.

        A number adds at most 1 to the squared length of a row in units of its bounds, and so does a category, as a record has at
        most one of its levels.
        """
        numbers = self.numbers
        bounds = [
            pair
            for name, place in self.blocks()
            for pair in ([numbers[name].own_range] if name in numbers else [(0.0, 1.0)] * (place.stop - place.start))
        ]
        return {"feature_bounds": bounds, "data_norm": math.sqrt(len(self.columns))}

    def blocks(self) -> Iterator[tuple[str, slice]]:
        """Yield each column and the places of its features, in the order of the features."""
        start = 0
        for name, column in (item for columns in self.alike() for item in columns.items()):
            yield name, slice(start, start + _size(column))
            start += _size(column)

    def parts(self, sparse_output: bool) -> Iterator[tuple[str, Any, list[str]]]:
        """Yield the parts of the preparation, as for a schema; numbers keep their units."""
        for columns in self.alike():
            alike = list(columns.values())
            yield (*alike[0].in_own_units(alike, sparse_output), list(columns))


def _size(column: Column) -> int:
    return max(len(column.levels) - 1, 1)

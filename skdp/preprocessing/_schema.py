"""A table's public facts, written down as JSON: columns, kinds, bounds, categories, target and classes."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skdp._validation import shown
from skdp.preprocessing._categories import KnownCategories, category_names

__all__ = ["OTHER", "Category", "Number", "Schema", "encoded", "template"]

OTHER = "other"

KEYS = {
    "number": {"kind", "bounds", "scale", "fill", "description"},
    "category": {"kind", "categories", "description"},
    "ignore": {"kind", "bounds", "scale", "fill", "categories", "description"},  # as a template may have left them
}


@dataclass(frozen=True)
class Number:
    """A column of numbers.

    Parameters
    ----------
    bounds : tuple of float
        Lowest and highest value, from public knowledge.
    scale : {"linear", "log"}
        How it is scaled.
    fill : float or None
        What takes the place of a missing value.
    """

    bounds: tuple[float, float]
    scale: str
    fill: float | None


@dataclass(frozen=True)
class Category:
    """A column of categories.

    Parameters
    ----------
    categories : tuple of str
        All that have a column of their own, from public knowledge.
    """

    categories: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    """What is public about a table.

    Parameters
    ----------
    columns : dict
        `Number` or `Category` by column name; columns that are ignored are left out.
    target : str or None
        Column to predict.
    classes : tuple or None
        Its labels.
    """

    columns: Mapping[str, Number | Category]
    target: str | None
    classes: tuple[Any, ...] | None

    @classmethod
    def read(cls, source: Any) -> "Schema":
        """Read and check a schema.

        Parameters
        ----------
        source : path-like, dict or Schema
            A JSON file, or its content.

        Returns
        -------
        Schema
            The checked facts.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        TypeError, ValueError
            If something is missing, misspelt or not filled in; the message names the place.
        """
        if isinstance(source, Schema):
            return source
        where = "The schema"
        if isinstance(source, (str, os.PathLike)):
            where = f"{os.fspath(source)}"
            source = _loads(Path(source))
        if not isinstance(source, Mapping):
            raise TypeError(f"{where} is a {type(source).__name__}; expected a path to a JSON file, or a dict.")
        _check_keys(where, source, {"columns", "target", "classes", "description"})
        given = source.get("columns")
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{where}: columns={shown(given)}; expected an object from column name to its facts.")
        _check_filled_in(where, source)
        columns = {str(name): _column(f"{where}, column {name!r}", facts) for name, facts in given.items()}
        if not any(columns.values()):
            raise ValueError(f"{where}: every column is ignored; expected at least one that predicts.")
        target, classes = source.get("target"), source.get("classes")
        if target is not None and (not isinstance(target, str) or not target):
            raise ValueError(f"{where}: target={shown(target)}; expected the name of the column to predict.")
        if target in columns and columns[target] is not None:
            raise ValueError(f"{where}: the target {target!r} is among the columns that predict it; expected it in one place.")
        return cls({n: c for n, c in columns.items() if c is not None}, target, _classes(where, classes))

    @property
    def n_features(self) -> int:
        """Number of prepared columns."""
        return sum(len(encoded(c.categories)) if isinstance(c, Category) else 1 for c in self.columns.values())

    def labels(self, values: Any) -> np.ndarray:
        """Return the classes that a target column spells.

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
            If there are no classes, or a value is none of them.
        """
        if self.classes is None:
            raise ValueError("The schema has no classes; expected the labels of the target.")
        names, outside = category_names(self.classes), ""
        texts = KnownCategories(names, other=outside).transform(_as_column(values))[:, 0]
        if (texts == outside).any():
            raise ValueError(f"The target {self.target!r} is missing somewhere, or outside classes={list(self.classes)!r}.")
        position = np.argsort(names)
        return np.array(self.classes)[position[np.searchsorted(np.array(names)[position], texts.astype(str))]]

    @property
    def data_norm(self) -> float:
        """Length of a usual prepared row before it is scaled to 1: a category counts 1, a number in [-1, 1] a third."""
        return math.sqrt(sum(1.0 if isinstance(column, Category) else 1 / 3 for column in self.columns.values()))


def _as_column(values: Any) -> np.ndarray:
    column = np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values).astype(object)
    if column.ndim != 1:
        raise ValueError(f"The target has {column.ndim} dimensions; expected one label per record.")
    return column[:, None]


def encoded(categories: Sequence[str]) -> list[str]:
    """Return the categories with one more for every other value, unless it is among them."""
    return [*categories] if OTHER in categories else [*categories, OTHER]


def template(kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return a schema to be filled in from public knowledge.

    Parameters
    ----------
    kinds : dict
        "number", "category" or "ignore" by column name.

    Returns
    -------
    dict
        Every bound, category list and class is empty, and so is the target.
    """
    empty: dict[str, dict[str, Any]] = {"number": {"bounds": []}, "category": {"categories": []}, "ignore": {}}
    columns = {name: {"kind": kind, **empty[kind]} for name, kind in kinds.items()}
    return {"columns": columns, "target": "", "classes": []}


def _loads(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"There is no schema {path}.")
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON: {error}.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"The schema has {doubled} more than once in one object; expected different names.")
    return dict(pairs)


def _check_keys(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(map(str, given)) - known):
        raise ValueError(f"{where} has {unknown}; expected keys among {sorted(known)}.")


def _check_filled_in(where: str, source: Mapping[str, Any]) -> None:
    """Name all at once what is still as `template` left it."""
    read = {name: facts for name, facts in source["columns"].items() if isinstance(facts, Mapping)}
    columns = {name: facts for name, facts in read.items() if facts.get("kind") != "ignore"}
    empty = [f"{key} of {name!r}" for name, facts in columns.items() for key in ("bounds", "categories") if facts.get(key) == []]
    empty += [key for key, blank in (("target", ""), ("classes", [])) if source.get(key) == blank]
    if empty:
        raise ValueError(
            f"{where} is not filled in yet: {', '.join(empty)}; expected what is known without looking at the records."
        )


def _column(where: str, facts: Any) -> Number | Category | None:
    if not isinstance(facts, Mapping) or facts.get("kind") not in KEYS:
        raise ValueError(f"{where}: {shown(facts)}; expected an object whose kind is one of {sorted(KEYS)}.")
    _check_keys(where, facts, KEYS[facts["kind"]])
    if facts["kind"] == "ignore":
        return None
    if facts["kind"] == "category":
        try:
            return Category(tuple(category_names(facts.get("categories"))))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    bounds, scale, fill = facts.get("bounds"), facts.get("scale", "linear"), facts.get("fill")
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2 or not all(map(_is_number, bounds)) or not bounds[0] < bounds[1]:
        raise ValueError(
            f"{where}: bounds={shown(bounds)}; expected [low, high], low < high, known without looking at the records."
        )
    if scale not in ("linear", "log"):
        raise ValueError(f"{where}: scale={shown(scale)}; expected 'linear' or 'log'.")
    if scale == "log" and not _logarithm(bounds[0]) < _logarithm(bounds[1]):
        raise ValueError(f"{where}: bounds={shown(bounds)} have the same logarithm in float64; expected some distance.")
    if fill is not None and not (_is_number(fill) and bounds[0] <= fill <= bounds[1]):
        raise ValueError(
            f"{where}: fill={shown(fill)}; expected a number within the bounds, which takes the place of a missing one."
        )
    return Number((float(bounds[0]), float(bounds[1])), scale, fill)


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

"""Map cells by the facts of a learnt schema: numbers around a centre, and spellings by hash bucket."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._data_validation import keep_names, quoting_no_data
from skdp._validation import column_labels
from skdp.preprocessing._base import StatelessTransformer
from skdp.preprocessing._cells import bucket_cells, columns_of, number_cells
from skdp.preprocessing._schema import OTHER, Category, LearntScale, Number
from skdp.privacy.queries.column_histograms import BUCKETS, bucket_bins

__all__ = [
    "HashedCategories",
    "LearntNumbers",
    "between_bounds",
    "bucket_codes",
    "from_between",
    "number_indicators",
    "separator_of",
]

FURTHEST = 4.0  # largest scaled value, in sizes of the core; a choice: the bounds are at most this far
LARGEST = 1e290  # of a cell, so that differences are finite


class ColumnMap(StatelessTransformer):
    """Base of transformers that map each cell of a frame to a block of columns, by the public facts of its column.

    Parameters
    ----------
    facts : list of Number or Category
        The facts of each column.
    separator : str, default="_"
        What is between the name of a column and that of an indicator.
    """

    def __init__(self, facts: list[Any], separator: str = "_") -> None:
        self.facts = facts
        self.separator = separator

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: text and missing values are allowed, sparse tables are not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Any:
        """Store the number and the names of the columns; no cell is read."""
        quoting_no_data(X, lambda: self._named(X, reset=True))
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the prepared columns."""
        check_is_fitted(self, "n_features_in_")
        given = getattr(self, "feature_names_in_", input_features)
        names = column_labels(None if given is None else np.asarray(given), self.n_features_in_)
        pairs = zip(names, self.facts, strict=True)
        return np.array([name for column, facts in pairs for name in self._names(column, facts)], dtype=object)

    def _names(self, column: str, facts: Any) -> list[str]:
        return [f"{column}{self.separator}{part}" if part else column for part in parts_of(facts)]

    def _read(self, X: Any, reset: bool) -> Any:
        return quoting_no_data(X, lambda: self._cells(X, reset))

    def _cells(self, X: Any, reset: bool) -> np.ndarray:
        self._named(X, reset)
        return np.column_stack([self._column(column) for column in columns_of(X)])

    def _named(self, X: Any, reset: bool) -> None:
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            keep_names(self, X)
        if len(self.facts) != self.n_features_in_:
            raise ValueError(f"facts has {len(self.facts)} entries; expected one for each of {self.n_features_in_} columns.")

    def _check(self, X: np.ndarray) -> None:
        """Accept all cells."""

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):  # a warning would reveal a cell
            return np.hstack([self._block(facts, X[:, column]) for column, facts in enumerate(self.facts)])


class LearntNumbers(ColumnMap):
    """Map numbers to about [-1, 1] around a centre; indicators of some integers and of missing cells follow.

    Parameters
    ----------
    facts : list of Number
        The facts of each column, each with a `LearntScale`.
    separator : str, default="_"
        What is between the name of a column and that of an indicator.
    """

    _column = staticmethod(number_cells)

    def _block(self, facts: Number, cells: np.ndarray) -> np.ndarray:
        filled = _filled(facts, cells)
        beside = [_logarithm(facts, filled)] if _learnt(facts).logarithm else []
        return np.column_stack([_scaled(facts, filled), *beside, number_indicators(facts, cells)])


class HashedCategories(ColumnMap):
    """Map spellings to indicators of some hash buckets, of missing cells if these have one, and of all others.

    Parameters
    ----------
    facts : list of Category
        The facts of each column, each with buckets.
    separator : str, default="_"
        What is between the name of a column and that of an indicator.
    """

    _column = staticmethod(bucket_cells)

    def _block(self, facts: Category, cells: np.ndarray) -> np.ndarray:
        return np.eye(len(parts_of(facts)))[bucket_codes(facts, cells)]


def number_indicators(facts: Number, cells: np.ndarray) -> np.ndarray:
    """Return the indicators of the learnt integers of a number, and then that of missing cells if it has one.

    Parameters
    ----------
    facts : Number
        The column.
    cells : ndarray of shape (n_samples,)
        Numbers, NaN where missing.

    Returns
    -------
    ndarray of shape (n_samples, n_indicators)
        0, or the weight of indicators of integers, or 1 for missing cells.
    """
    learnt = _learnt(facts)
    missing = np.isnan(cells)[:, None] if learnt.missing else np.empty((len(cells), 0))
    return np.hstack([(cells[:, None] == np.array(learnt.integers)) * learnt.weight, missing])


def bucket_codes(facts: Category, cells: np.ndarray) -> np.ndarray:
    """Return which indicator of each cell is 1: that of a hash bucket, of missing cells if they have one, or of all others.

    Parameters
    ----------
    facts : Category
        The column.
    cells : ndarray of shape (n_samples,)
        Numbers of buckets, NaN where missing.

    Returns
    -------
    ndarray of int of shape (n_samples,)
        Numbers of indicators.
    """
    kept = [*(facts.buckets or ()), *[BUCKETS] * facts.missing]
    places = np.full(BUCKETS + 1, len(kept))
    places[kept] = np.arange(len(kept))
    return np.take(places, bucket_bins(cells))


def between_bounds(facts: Number, cells: np.ndarray) -> np.ndarray:
    """Return where numbers lie between the bounds, on the scale of the column; missing ones lie at the centre or at the fill.

    Parameters
    ----------
    facts : Number
        The column.
    cells : ndarray of shape (n_samples,)
        Any numbers, NaN where missing.

    Returns
    -------
    ndarray of shape (n_samples,)
        Numbers in [-1, 1]; -1, 0 or 1 for a column of scale "sign".
    """
    filled = _filled(facts, cells)
    if facts.scale == "sign":
        return np.sign(filled - _learnt(facts).centre)
    low, high = _on_scale(facts, np.array(facts.bounds))
    width = max(float(high - low), math.ulp(0.0))
    with np.errstate(all="ignore"):  # a warning would reveal a cell
        return np.clip(2 * ((_on_scale(facts, np.clip(filled, *facts.bounds)) - low) / width) - 1, -1.0, 1.0)


def from_between(facts: Number, places: np.ndarray) -> np.ndarray:
    """Return the numbers that `between_bounds` maps to these places, increasing; a value on each side for the scale "sign"."""
    low, high = facts.bounds
    if facts.scale == "sign":
        centre = _learnt(facts).centre
        return np.where(places < 0, min(low, centre), np.where(places > 0, max(high, centre), centre))
    if facts.scale == "linear":
        return low + (high - low) * (places + 1) / 2
    unit, (low, high) = _learnt(facts).unit, _on_scale(facts, np.array(facts.bounds))
    logarithms = low + (high - low) * (places + 1) / 2
    return np.clip(np.copysign(np.expm1(np.abs(logarithms)) * unit, logarithms), *facts.bounds)


def _filled(facts: Number, cells: np.ndarray) -> np.ndarray:
    centre = _learnt(facts).centre if facts.fill is None else facts.fill
    return np.where(np.isnan(cells), centre, np.clip(cells, -LARGEST, LARGEST))


def parts_of(facts: Number | Category) -> list[str]:
    """Return the names of the features of a learnt column behind the column's own; that of a scaled number is empty."""
    if isinstance(facts, Category):
        prefix = "" if facts.are_codes else "bucket"
        return [*(f"{prefix}{bucket}" for bucket in facts.buckets or ()), *(["missing"] if facts.missing else []), OTHER]
    learnt = _learnt(facts)
    logarithm = ["log"] if learnt.logarithm else []
    return ["", *logarithm, *(f"{value:.15g}" for value in learnt.integers), *(["missing"] if learnt.missing else [])]


def separator_of(columns: Mapping[str, Any]) -> str:
    """Return the fewest underscores that give no feature of a learnt column the name of a column, or of a given category.

    Whether a fit that has learnt its columns can name its features must not depend on what was learnt.

    Parameters
    ----------
    columns : dict
        All columns of a schema, by name.

    Returns
    -------
    str
        One underscore, as a rule.
    """
    learnt = {name: parts_of(facts) for name, facts in columns.items() if _is_learnt(facts)}
    given = {name: facts.categories for name, facts in columns.items() if isinstance(facts, Category) and name not in learnt}
    taken = {*columns, *(f"{name}_{category}" for name, categories in given.items() for category in (*categories, OTHER))}
    separator = "_"
    while any(f"{name}{separator}{part}" in taken for name, parts in learnt.items() for part in parts if part):
        separator += "_"
    return separator


def _is_learnt(facts: Any) -> bool:
    return (facts.buckets if isinstance(facts, Category) else facts.learnt) is not None


def _learnt(facts: Number) -> LearntScale:
    if facts.learnt is None:
        raise ValueError("The column has bounds alone; expected a core and a centre.")
    return facts.learnt


def _scaled(facts: Number, values: np.ndarray) -> np.ndarray:
    """Return the distance from the centre, on the scale of the column and in sizes of its core."""
    learnt = _learnt(facts)
    if facts.scale == "sign":
        return np.sign(values - learnt.centre)
    low, high = facts.bounds
    around = _on_scale(facts, np.array([learnt.centre, *learnt.core]))
    size = max(float(np.abs(around[1:] - around[0]).max()), math.ulp(0.0))
    return np.clip((_on_scale(facts, np.clip(values, low, high)) - around[0]) / size, -FURTHEST, FURTHEST)


def _logarithm(facts: Number, values: np.ndarray) -> np.ndarray:
    """Return logarithms of numbers, of which those of the core are in [-1, 1]."""
    learnt = _learnt(facts)
    low, high = _signed_logarithm(np.array(learnt.core), learnt.logarithm)
    places = _signed_logarithm(np.clip(values, *facts.bounds), learnt.logarithm)
    return np.clip((2 * places - low - high) / max(float(high - low), math.ulp(0.0)), -FURTHEST, FURTHEST)


def _on_scale(facts: Number, values: np.ndarray) -> np.ndarray:
    return _signed_logarithm(values, _learnt(facts).unit) if facts.scale == "log" else values


def _signed_logarithm(values: np.ndarray, unit: float) -> np.ndarray:
    return np.copysign(np.log1p(np.abs(values / unit)), values)

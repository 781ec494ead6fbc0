"""Read the public facts about columns, from a schema or from bounds, and the columns that the user names."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdp._validation import check_feature_bounds, column_labels, shown
from skdp.preprocessing import Schema

PAIRS = "expected a list of pairs of different columns, such as [('age', 'job')], each pair once"


def check_public_columns(schema: Schema | None, feature_bounds: Any) -> Schema | None:
    """Check both, at most one of which may be given, and return the schema or None.

    Raises
    ------
    TypeError, ValueError
        If both are given, or if one is invalid.
    """
    if schema is None:
        check_feature_bounds(feature_bounds)
        return None
    if feature_bounds is not None:
        raise ValueError(
            f"feature_bounds={shown(feature_bounds)} beside schema=...; expected one of them: a schema has the bounds of numbers."
        )
    return schema


def public_columns(schema: Schema | None, feature_bounds: Any, n_features: int, names: Sequence[str] | None = None) -> Schema:
    """Return the public facts about the columns: the schema, or the bounds of a table of numbers.

    Parameters
    ----------
    schema : Schema or None
        Of the estimator.
    feature_bounds : float, array-like, dict or None
        As given to the estimator; None means 1.
    n_features : int
        Number of columns, if there is no schema.
    names : sequence of str or None, default=None
        Names of the columns. Columns of an array are called x0, x1, and so on.

    Returns
    -------
    Schema
        The facts, in the order of the columns.

    Raises
    ------
    TypeError, ValueError
        If the bounds do not match the table.
    """
    facts = check_public_columns(schema, feature_bounds)
    if facts is not None:
        return facts
    if isinstance(feature_bounds, Mapping) and names is None:
        names = list(feature_bounds)
    names = column_labels(names, n_features)
    pairs = check_feature_bounds(1.0 if feature_bounds is None else feature_bounds, n_features, names)
    if len(set(names)) < len(names):
        raise ValueError("Column names of X must be unique; expected a different name for each column.")
    of_columns = np.broadcast_to(np.asarray(pairs), (n_features, 2)).tolist()
    columns = {name: {"kind": "number", "bounds": pair} for name, pair in zip(names, of_columns, strict=True)}
    return Schema.read({"columns": columns})


def check_interactions(interactions: Any) -> None:
    """Raise TypeError or ValueError unless these are distinct pairs of different columns, by name or position."""
    if isinstance(interactions, (str, Mapping)) or not isinstance(interactions, Sequence):
        raise TypeError(f"interactions={shown(interactions)}; {PAIRS}.")
    for pair in interactions:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 or not all(map(_is_name, pair)):
            raise TypeError(f"interactions={shown(interactions)}; {PAIRS}.")
    _check_distinct(interactions, interactions)


def named_pairs(interactions: Sequence[Any], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the names of pairs of columns that are given by name or position.

    Raises
    ------
    ValueError
        If there is no such column, if a pair names one column twice, or if a pair occurs twice.
    """
    pairs = [named_columns("interactions", pair, names) for pair in interactions]
    _check_distinct(interactions, pairs)
    return tuple((one, other) for one, other in pairs)


def _check_distinct(interactions: Any, pairs: Sequence[Any]) -> None:
    distinct = {frozenset(pair) for pair in pairs}
    if len(distinct) < len(pairs) or any(len(pair) < 2 for pair in distinct):
        raise ValueError(f"interactions={shown(interactions)}; {PAIRS}.")


def named_columns(parameter: str, given: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns that are given by name or position.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    found = []
    for name in given:
        if isinstance(name, str) and name in names:
            found.append(name)
        elif not isinstance(name, str) and 0 <= name < len(names):
            found.append(names[name])
        else:
            raise ValueError(f"{parameter} has {name!r}; expected columns of X: {list(names)!r}, or their places.")
    return tuple(found)


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int, np.integer)) and not isinstance(value, (bool, np.bool_))

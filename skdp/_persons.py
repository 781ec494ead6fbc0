"""Take the ids of the persons whose rows a table has."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from skdp._data_validation import len_of
from skdp._table_types import as_table, is_lazy
from skdp._validation import shown
from skdp.privacy.budget import unit_of
from skdp.privacy.data.persons import Persons, SomeRows
from skdp.privacy.errors import silent

LARGEST = 2**53  # of an id that is a number: larger ones may have become equal as floats
OF_ROWS = r"\b(?:shapes?|samples?|lengths?|sizes?|rows?|records?|entries|elements|values)\b"  # beside a number of rows in errors
EXPECTED = "expected one id per row, integers or texts"
LENGTHS = f"X, y and persons have different lengths; {EXPECTED}."


def taken_persons(unit: Any, kind: str | None, X: Any, y: Any, ids: Any) -> tuple[Any, Any]:
    """Check the ids of persons against the unit of privacy; return X without a column of ids, and the persons of its rows.

    Parameters
    ----------
    unit : object
        Parameter ``privacy_unit``.
    kind : str or None
        Name of the class of the estimator, for messages; None for a class that nothing passes ids on to.
    X, y : object
        A table, of which only the number of rows is compared, and a column taken that ``ids`` names. y may be None. Of a table in
        partitions, the column is read.
    ids : array-like of shape (n_rows,), str, Persons, SomeRows or None
        An id per row, or the name of a column of a data frame; or the persons, if their column was taken before.

    Returns
    -------
    X : object
        The table, without the column.
    persons : Persons, SomeRows or None
        Weights alone for a table in partitions; None if records are protected.

    Raises
    ------
    TypeError, ValueError
        If ids and unit contradict each other, or ids do not tell the persons. No message quotes an id or the number of rows.
    """
    check_given(unit, ids, "fit(X, y, persons=ids)", kind and f"{kind}.set_fit_request")
    if ids is None or isinstance(ids, (Persons, SomeRows)):
        return X, ids
    if is_lazy(X):
        from skdp.data._ids import taken_ids  # which imports this module

        return taken_ids(X, ids)
    if isinstance(ids, str):
        check_column(ids, getattr(X, "columns", ()))
        ids, X = X[ids], X[[name for name in X.columns if name != ids]]
    persons = persons_of(ids)
    if any(len_of(part) != len(persons.numbers) for part in (X, y) if part is not None):
        raise ValueError(LENGTHS)
    return X, persons


def check_given(unit: Any, ids: Any, call: str, request: str | None = None) -> None:
    """Raise TypeError or ValueError if ids of persons are given where records are protected, or are missing."""
    if unit_of(unit) == "record" and ids is not None:
        raise TypeError(
            "persons is given with privacy_unit='record', which protects single rows; expected privacy_unit='person'."
        )
    if unit_of(unit) == "person" and ids is None:
        routed = (
            f" Searches and cross-validation pass ids on if metadata routing is on and {request}(persons='groups') asks for them."
        )
        raise ValueError(
            f"privacy_unit='person' without persons; expected {call} with one id per row.{'' if request is None else routed}"
        )


def planned_persons(unit: Any, kind: str, n_samples: Any, persons: Any) -> tuple[Any, int | None]:
    """Return the first argument of a plan without a column of ids, and the number of persons of a table; None without one."""
    if persons is None:
        if unit_of(unit) == "person" and not isinstance(n_samples, (Integral, tuple)):
            raise ValueError(
                "plan of a table with privacy_unit='person' without persons; expected plan(X, persons=ids), or "
                "plan(n_samples, n_features), where n_samples is the number of persons."
            )
        return n_samples, None
    n_samples, group = taken_persons(unit, kind, as_table(n_samples), None, persons)
    assert group is not None
    return n_samples, group.n_persons


def check_column(name: str, columns: Iterable[Any]) -> None:
    """Raise ValueError if a table has no column of ids with this name."""
    if name not in columns:
        raise ValueError(f"persons={shown(name)} is no column of X; {EXPECTED}, or the name of a column of a data frame.")


def persons_of(*parts: Any) -> Persons:
    """Return the persons of rows whose ids come in parts; raise TypeError or ValueError for ids that do not tell the persons."""
    return persons_of_unique([unique_ids(part) for part in parts])


def unique_ids(ids: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the different ids of some rows, and which of them each row has."""
    labels, places = np.unique(checked_ids(ids), return_inverse=True)
    return labels, places.astype(np.int32)


def persons_of_unique(parts: list[tuple[np.ndarray, np.ndarray]]) -> Persons:
    """Return the persons of rows from the different ids of each part, as `unique_ids` returns them."""
    parts = [(known, places) for known, places in parts if known.size]
    labels, numbers = np.unique(_joined([known for known, _ in parts]), return_inverse=True)
    if labels.size < 2:
        raise ValueError("persons has one person only; expected at least 2.")
    ends = np.cumsum([0] + [known.size for known, _ in parts]).tolist()
    numbers = numbers.astype(np.int32)
    rows = [numbers[start:][places] for start, (_, places) in zip(ends, parts, strict=False)]
    return Persons(np.concatenate(rows), int(labels.size))


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Return the labels of all parts, without rounding integers of different types; refuse integers beside texts."""
    kinds = {labels.dtype.kind for labels in parts}
    if "U" in kinds and len(kinds) > 1:
        raise TypeError(f"persons has entries that are neither all integers nor all texts; {EXPECTED}.")
    return np.concatenate(parts or [np.empty(0)], dtype=object if len(kinds) > 1 else None)


def checked_ids(ids: Any) -> np.ndarray:
    """Return ids as an array of integers, of integers of any size as objects, or of texts; refuse all others."""
    try:
        with silent():
            given = np.asarray(ids, dtype=object if isinstance(ids, (list, tuple)) else None)
    except MemoryError:
        raise
    except Exception:  # its message may quote an id
        given = np.empty((0, 0))
    if given.ndim != 1 or np.ma.getmaskarray(ids if isinstance(ids, np.ma.MaskedArray) else given).any():
        raise TypeError(f"persons is no vector; {EXPECTED}, such as table['patient'].")
    entries = given.tolist() if given.dtype.kind in "OfmM" else []
    if any(is_missing(entry) for entry in entries):
        raise ValueError(
            "persons has missing ids; a missing id could stand for one person or for many. Give each such row an id of its own, "
            "or leave it out."
        )
    if given.dtype.kind == "f" and all(entry.is_integer() and abs(entry) < LARGEST for entry in entries):
        given = given.astype(np.int64)
    if given.dtype.kind == "O" and all(isinstance(entry, str) for entry in entries):
        given = given.astype(str)
    elif given.dtype.kind == "O" and all(isinstance(entry, Integral) and not isinstance(entry, bool) for entry in entries):
        return np.array([int(entry) for entry in given], dtype=object)  # of any size
    if given.dtype.kind not in "iuU":
        raise TypeError(f"persons has entries that are neither all integers nor all texts; {EXPECTED}.")
    return given


def is_missing(entry: Any) -> bool:
    """Return whether an entry is None, a NaN, or what pandas has for them."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or bool(entry != entry)


@contextmanager
def without_number(n_rows: int | None) -> Iterator[None]:
    """Leave the number of rows, which is private, out of the errors of a fit."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if n_rows is None:
            raise
        # A parameter that happens to be this number stays, because a change of its error would tell the number of rows, too.
        number = rf"({OF_ROWS}[^\n]{{0,40}}?)\b{n_rows}\b|\b{n_rows}(?= (?:{OF_ROWS}))"
        text = re.sub(number, lambda found: f"{found[1] or ''}n_rows", str(error), flags=re.IGNORECASE)
        if text == str(error):
            raise
        failure = type(error)(text)
    else:
        return
    raise failure

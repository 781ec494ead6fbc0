"""Map values to public categories, and all other values to one more category."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from skdp._validation import shown
from skdp.preprocessing._base import CellTransformer

# Largest integer that float64 represents exactly, as all smaller ones. A missing value elsewhere can convert a column of integers
# to floats, which would change larger integers; they are spelt without this conversion only up to here.
LARGEST_INTEGER = 2**53
UNLIKE = {str, type(None), int, float}  # of these, equal cells have the same spelling; 1 and True are equal and have not


class KnownCategories(CellTransformer):
    """Replace each value that is not among the public categories of its column by one more category.

    With a subsequent ``OneHotEncoder(categories=...)``, the columns depend on public knowledge only. An encoder that is fitted on
    the records would publish which categories occur.

    Parameters
    ----------
    categories : list, or list of list
        The categories of all columns, or a list for each: text, numbers or booleans. Values are compared as text without
        surrounding spaces, so that 1, 1.0 and "1" are the same category.
    other : str or list of str, default="other"
        The category of all other values, including missing ones, or one for each column. It may be one of the categories.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if X had them.

    Raises
    ------
    ValueError
        From ``fit`` and ``transform``, if there are no categories, or if they do not match the table.

    See Also
    --------
    from_schema : Build the transformer of a whole table.

    Notes
    -----
    **Privacy.** Each value is mapped separately with public lists, so the mapping costs no privacy. Its spelling is also
    independent of other records: a missing value in one record may change the type of a whole column, and this must not change
    the spelling of any other value.

    Examples
    --------
    >>> from skdp.preprocessing._categories import KnownCategories
    >>> KnownCategories(["no", "yes"]).fit_transform([["yes"], ["perhaps"]])
    array([['yes'],
           ['other']], dtype=object)
    """

    def __init__(self, categories: Any = None, *, other: str | list[str] = "other") -> None:
        self.categories = categories
        self.other = other

    def _cells(self, X: Any, reset: bool) -> np.ndarray:
        """Return the cells as objects with the types of their columns: a common type of all columns would turn True into 1."""
        if not hasattr(X, "columns"):
            return validate_data(self, X, reset=reset, dtype=object, ensure_all_finite=False)
        validate_data(self, X, reset=reset, skip_check_array=True)
        cells = np.empty(X.shape, dtype=object)
        for column, name in enumerate(X.columns):
            cells[:, column] = np.asarray(X[name]).astype(object)
        return cells

    def _check(self, X: np.ndarray) -> None:
        if not all(isinstance(other, str) for other in self._others(X.shape[1])):
            raise TypeError(f"other={shown(self.other)}; expected a string, or one for each of {X.shape[1]} columns.")
        if self.categories is None:
            raise ValueError(
                "categories=None; expected lists from public knowledge, because categories taken from the records leak."
            )
        lists = self._lists(X.shape[1])
        if len(lists) != X.shape[1]:
            raise ValueError(f"categories has {len(lists)} lists; expected one, or one for each of {X.shape[1]} columns.")
        for categories, other in zip(lists, self._others(X.shape[1]), strict=True):
            category_names(categories, other)

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        found = np.empty(X.shape, dtype=object)
        others = self._others(X.shape[1])
        for column, categories in enumerate(self._lists(X.shape[1])):
            found[:, column] = named(category_names(categories, others[column]), others[column], X[:, column].tolist())
        return found

    def _lists(self, n_columns: int) -> list[Any]:
        given = self.categories
        nested = isinstance(given, (list, tuple)) and any(isinstance(entry, (list, tuple, np.ndarray)) for entry in given)
        return list(given) if nested else [given] * n_columns

    def _others(self, n_columns: int) -> list[Any]:
        given = self.other
        return [*given] if isinstance(given, list) and len(given) == n_columns else [given] * n_columns


def named(names: Sequence[str], other: str, cells: list[Any]) -> list[str]:
    """Return the category that each cell spells, or ``other``."""
    known = {text: name for name in names for text in spellings(name)}

    def name_of(cell: Any) -> str:
        if type(cell) is str and cell in known:  # the common case
            return known[cell]
        return known.get(spelling(cell), other)  # type: ignore[arg-type]

    with np.errstate(all="ignore"):  # a warning would reveal a NaN
        return of_each(name_of, cells)


def of_each(function: Callable[[Any], Any], cells: list[Any]) -> list[Any]:
    """Return a function of the spelling of each cell; where equal cells have the same spelling, it is worked out once for them.

    Parameters
    ----------
    function : callable
        Maps a cell to what its spelling gives.
    cells : list
        Cells.

    Returns
    -------
    list
        What the function gives for each cell.
    """
    return list(map(Known(function).__getitem__ if set(map(type, cells)) <= UNLIKE else function, cells))


class Known(dict[Any, Any]):
    """Works out a function of each value once.

    Parameters
    ----------
    function : callable
        The function.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __missing__(self, value: Any) -> Any:
        found = self._function(value)
        if value == value:  # each NaN is another key
            self[value] = found
        return found


def category_names(categories: Any, other: str | None = None) -> list[str]:
    """Return the categories of one column as text.

    Parameters
    ----------
    categories : list
        Text, numbers or booleans, all of one kind but for ``other``.
    other : str or None, default=None
        Category of all other values, which may be listed as well.

    Returns
    -------
    list of str
        In the order given.

    Raises
    ------
    ValueError
        If it is not a list, is empty, mixes kinds, or has two entries with the same spelling.
    """
    if not isinstance(categories, (list, tuple, np.ndarray)) or len(categories) == 0:
        raise ValueError(f"categories={shown(categories)}; expected a list of at least one category.")
    names = [spelling(category) for category in categories]
    kinds = {_kind(category) for category, name in zip(categories, names, strict=True) if name != other}
    if len(kinds) > 1 or not all(names):
        raise ValueError(f"categories={shown(categories)}; expected texts, numbers or booleans, all of one kind and none empty.")
    texts = [text for name in names for text in spellings(str(name))]
    if len(set(texts)) < len(texts):
        raise ValueError(f"categories={shown(categories)}; expected different texts, numbers or booleans.")
    return [str(name) for name in names]


def _kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "truth" if isinstance(value, (bool, np.bool_)) else "number"


def spelling(value: Any) -> str | None:
    """Return the text of a value, whether its column is one of integers or of floats; None if the value is not a category."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)) and value.imag == 0:
        return spelling(float(value.real))
    if isinstance(value, (int, np.integer)):
        return str(int(value)) if abs(int(value)) < LARGEST_INTEGER else None
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if number.is_integer():
            return spelling(int(number))
        return None if math.isnan(number) else repr(number)
    return None


def spellings(name: str) -> Sequence[str]:
    """Return the texts that stand for a category: "1" and "1.0" for "1", but not "01"."""
    try:
        number = float(name)
    except ValueError:
        return (name,)
    alike = {repr(number), spelling(number)} - {None}
    return tuple(str(text) for text in alike) if name in alike else (name,)

"""Categories that are public, and one more for whatever else is in a column."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from skdp._data_validation import quoting_no_data
from skdp._validation import shown
from skdp.preprocessing._base import StatelessTransformer

__all__ = ["KnownCategories", "category_names"]

LARGEST_INTEGER = 2**53  # beyond it, an integer changes when a missing value elsewhere makes its column one of floats


class KnownCategories(StatelessTransformer):
    """Replace every value that is not among the public categories of its column by one more category.

    Followed by ``OneHotEncoder(categories=...)`` it gives columns that depend on public knowledge only, where an encoder
    that is fitted on the records publishes which categories occur.

    Parameters
    ----------
    categories : list, or list of list
        The categories of all columns, or a list for each: text, numbers or booleans. Values are compared as text without
        surrounding spaces, so that 1, 1.0 and "1" are the same category.
    other : str, default="other"
        What any other value becomes, missing values included. May be one of the categories.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, where X had them.

    Raises
    ------
    ValueError
        From ``fit`` and ``transform``, if there are no categories or they do not fit the table.

    See Also
    --------
    from_schema : The transformer of a whole table.

    Notes
    -----
    **Privacy.** Every value is mapped by itself with public lists, so the mapping costs no privacy. It is spelt by itself, too:
    a missing value in one record may change the type of a whole column, and no other value may be spelt differently for it.

    Examples
    --------
    >>> from skdp.preprocessing._categories import KnownCategories
    >>> KnownCategories(["no", "yes"]).fit_transform([["yes"], ["perhaps"]])
    array([['yes'],
           ['other']], dtype=object)
    """

    def __init__(self, categories: Any = None, *, other: str = "other") -> None:
        self.categories = categories
        self.other = other

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: text and missing values are welcome, sparse tables are not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _read(self, X: Any, reset: bool) -> Any:
        return quoting_no_data(X, lambda: self._cells(X, reset))

    def _cells(self, X: Any, reset: bool) -> np.ndarray:
        """Cells as objects, each as its own column has it: one type for all columns would make a 1 of a True."""
        if not hasattr(X, "columns"):
            return validate_data(self, X, reset=reset, dtype=object, ensure_all_finite=False)
        validate_data(self, X, reset=reset, skip_check_array=True)
        cells = np.empty(X.shape, dtype=object)
        for column, name in enumerate(X.columns):
            cells[:, column] = np.asarray(X[name]).astype(object)
        return cells

    def _check(self, X: np.ndarray) -> None:
        if not isinstance(self.other, str):
            raise TypeError(f"other={shown(self.other)}; expected a string.")
        if self.categories is None:
            raise ValueError("categories=None; expected lists from public knowledge: what is read off the records leaks.")
        lists = self._lists(X.shape[1])
        if len(lists) != X.shape[1]:
            raise ValueError(f"categories has {len(lists)} lists; expected one, or one for each of {X.shape[1]} columns.")
        for categories in lists:
            category_names(categories)

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        named = np.empty(X.shape, dtype=object)
        for column, categories in enumerate(self._lists(X.shape[1])):
            known = {spelling: name for name in category_names(categories) for spelling in _spellings(name)}
            name_of = np.frompyfunc(partial(self._name, known), 1, 1)
            with np.errstate(all="ignore"):  # a warning about a NaN would tell of it
                named[:, column] = name_of(X[:, column])
        return named

    def _name(self, known: dict[str, str], value: Any) -> str:
        if type(value) is str and value in known:  # as nearly all are
            return known[value]
        return known.get(_spelling(value), self.other)  # type: ignore[arg-type]

    def _lists(self, n_columns: int) -> list[Any]:
        given = self.categories
        nested = isinstance(given, (list, tuple)) and any(isinstance(entry, (list, tuple, np.ndarray)) for entry in given)
        return list(given) if nested else [given] * n_columns


def category_names(categories: Any) -> list[str]:
    """Return the categories of one column as text.

    Parameters
    ----------
    categories : list
        Text, numbers or booleans, all of one kind.

    Returns
    -------
    list of str
        In the order given.

    Raises
    ------
    ValueError
        If it is no list, or empty, or mixes kinds, or two entries are spelt alike.
    """
    if not isinstance(categories, (list, tuple, np.ndarray)) or len(categories) == 0:
        raise ValueError(f"categories={shown(categories)}; expected a list of at least one category.")
    names = [_spelling(category) for category in categories]
    if len({_kind(category) for category in categories}) > 1 or not all(names):
        raise ValueError(f"categories={shown(categories)}; expected texts, numbers or booleans, all of one kind and none empty.")
    spellings = [spelling for name in names for spelling in _spellings(str(name))]
    if len(set(spellings)) < len(spellings):
        raise ValueError(f"categories={shown(categories)}; expected different texts, numbers or booleans.")
    return [str(name) for name in names]


def _kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "truth" if isinstance(value, (bool, np.bool_)) else "number"


def _spelling(value: Any) -> str | None:
    """Text of one value, whatever the type of its column: an integer may have become a float there. None is no category."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)) and value.imag == 0:
        return _spelling(float(value.real))
    if isinstance(value, (int, np.integer)):
        return str(int(value)) if abs(int(value)) < LARGEST_INTEGER else None
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if number.is_integer():
            return _spelling(int(number))
        return None if math.isnan(number) else repr(number)
    return None


def _spellings(name: str) -> Sequence[str]:
    """Texts that stand for a category: "1.0" for "1" as well, but not "01"."""
    try:
        number = float(name)
    except ValueError:
        return (name,)
    alike = {repr(number), _spelling(number)} - {None}
    return tuple(str(text) for text in alike) if name in alike else (name,)

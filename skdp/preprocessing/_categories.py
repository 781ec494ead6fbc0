"""Categories that are public, and one more for whatever else is in a column."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from skdp._tables import quoting_no_data
from skdp._validation import shown
from skdp.preprocessing._base import StatelessTransformer

__all__ = ["KnownCategories", "category_names"]


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
    **Privacy.** Every value is mapped by itself with public lists, so the mapping costs no privacy.

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
        options = {"dtype": None, "ensure_all_finite": False}
        return quoting_no_data(X, lambda: validate_data(self, X, reset=reset, **options))

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
            named[:, column] = self._named(X[:, column], categories)
        return named

    def _lists(self, n_columns: int) -> list[Any]:
        given = self.categories
        nested = isinstance(given, (list, tuple)) and any(isinstance(entry, (list, tuple, np.ndarray)) for entry in given)
        return list(given) if nested else [given] * n_columns

    def _named(self, values: np.ndarray, categories: Any) -> np.ndarray:
        names = category_names(categories)
        spellings = {spelling: name for name in names for spelling in _spellings(name)}
        known = np.array(sorted(spellings))
        text = np.char.strip(values.astype(str))
        position = np.minimum(np.searchsorted(known, text), known.size - 1)
        targets = np.array([spellings[spelling] for spelling in known.tolist()], dtype=object)
        return np.where(known[position] == text, targets[position], self.other)


def category_names(categories: Any) -> list[str]:
    """Return the categories of one column as text.

    Parameters
    ----------
    categories : list
        Text, numbers or booleans.

    Returns
    -------
    list of str
        In the order given.

    Raises
    ------
    ValueError
        If it is no list, or empty, or two entries are spelt alike.
    """
    if not isinstance(categories, (list, tuple, np.ndarray)) or len(categories) == 0:
        raise ValueError(f"categories has the entry {shown(categories)}; expected a list of at least one category.")
    names = [str(category).strip() for category in categories]
    spellings = [spelling for name in names for spelling in _spellings(name)]
    if len(set(spellings)) < len(spellings) or not all(isinstance(c, (str, int, float, np.generic)) for c in categories):
        raise ValueError(f"categories has the entry {shown(categories)}; expected different texts, numbers or booleans.")
    return names


def _spellings(name: str) -> set[str]:
    """All texts that a value may have: an integer may have become a float because some of its column are missing."""
    try:
        number = float(name)
    except ValueError:
        return {name}
    alike = {repr(number)} | ({str(int(number))} if number.is_integer() else set())
    return alike if name in alike else {name}

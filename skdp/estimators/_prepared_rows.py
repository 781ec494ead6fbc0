"""Prepare the rows of a data frame by the schema of an estimator."""

from collections import Counter
from typing import Any

from sklearn.utils.validation import validate_data

from skdp._table_types import as_table
from skdp.preprocessing import Schema, from_schema
from skdp.preprocessing._frame_facts import framed, warn_of_types
from skdp.preprocessing._parts import warn_of_hardly_seen, warn_of_unknown

__all__ = ["named_columns_of", "prepared"]


def prepared(schema: Schema, X: Any, fitted: Any = None) -> Any:
    """Return the features that a schema makes of each row.

    Parameters
    ----------
    schema : Schema
        The columns.
    X : DataFrame, or table in partitions
        Records.
    fitted : estimator or None, default=None
        The fitted estimator, for a table to predict for.

    Returns
    -------
    ndarray of shape (n_samples, n_features), or table in partitions
        Rows of length at most 1.
    """
    X = X if fitted is None else named_columns_of(fitted, X)
    return from_schema(schema).set_output(transform="default").fit_transform(X)


def named_columns_of(fitted: Any, X: Any) -> Any:
    """Return a table to predict for; raise ValueError unless it has the columns of the fit, if this has learned them.

    It may lack columns that the schema ignores. Records with what the fit has hardly seen warn.
    """
    X = as_table(X)
    if not hasattr(fitted, "learnt_"):
        warn_of_hardly_seen(fitted, X, warn_of_unknown(fitted, X))
        return X
    if getattr(X, "ndim", 2) == 1:
        raise ValueError(f"X is a {type(X).__name__}, one row or column; expected a table, such as X.iloc[[0]].")
    if twice := [name for name, times in Counter(getattr(X, "columns", ())).items() if times > 1]:
        raise ValueError(f"X has columns of the same name: {twice}; expected each column of the fit once.")
    if not _only_without_ignored(fitted, X):
        validate_data(fitted, X, reset=False, skip_check_array=True)
    X = framed(X, getattr(fitted, "feature_names_in_", None))
    warn_of_types(fitted.schema_, X, looking=True)
    warn_of_hardly_seen(fitted, X, warn_of_unknown(fitted, X))
    return X


def _only_without_ignored(fitted: Any, X: Any) -> bool:
    """Return whether a table has the columns of the fit, in their order, but for some that the schema ignores."""
    names, used = list(getattr(X, "columns", ())), fitted.schema_.columns
    return names == [name for name in getattr(fitted, "feature_names_in_", ()) if name in used or name in names] != []

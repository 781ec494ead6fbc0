"""Prepare the rows of a data frame by the schema of an estimator."""

from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from skdp._table_types import as_table
from skdp.preprocessing import Schema, from_schema
from skdp.preprocessing._frame_facts import framed, warn_of_types
from skdp.preprocessing._parts import warn_of_hardly_seen, warn_of_unknown


def prepared(schema: Schema, X: Any) -> Any:
    """Return the features that a schema makes of each row of a frame, or of a table in partitions: rows of length 1 at most."""
    return from_schema(schema).set_output(transform="default").fit_transform(X)


def named_columns_of(fitted: Any, X: Any) -> Any:
    """Return a table to predict for; raise ValueError unless it has the columns of the fit, if this has learned them.

    It may lack columns that the schema ignores. Records with what the fit has hardly seen warn.
    """
    X = as_table(X)
    if not hasattr(fitted, "learnt_"):
        _warn_of_cells(fitted, X)
        return X
    if getattr(X, "ndim", 2) == 1:
        raise ValueError(f"X is a {type(X).__name__}, one row or column; expected a table, such as X.iloc[[0]].")
    if twice := [name for name, times in Counter(getattr(X, "columns", ())).items() if times > 1]:
        raise ValueError(f"X has columns of the same name: {twice}; expected each column of the fit once.")
    known, names = list(getattr(fitted, "feature_names_in_", ())), list(getattr(X, "columns", ()))
    if names != [name for name in known if name in fitted.schema_.columns or name in names] or not names:
        validate_data(fitted, X, reset=False, skip_check_array=True)
    X = framed(X, getattr(fitted, "feature_names_in_", None))
    warn_of_types(fitted.schema_, X, looking=True)
    _warn_of_cells(fitted, X)
    return X


def _warn_of_cells(fitted: Any, X: Any) -> None:
    """Warn of cells that the fit has hardly seen, unless the model is a constant."""
    if np.any(getattr(fitted, "coef_", True)) or getattr(fitted, "trees_", None) is not None:
        warn_of_hardly_seen(fitted, X, warn_of_unknown(fitted, X))

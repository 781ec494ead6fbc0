"""Ask a model under evaluation for its predictions, such that a record decides about its own prediction alone."""

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from skdp._data_validation import columns_with_gaps, quoting_no_data

__all__ = ["by_record"]

Predict = Callable[[Any], np.ndarray]
# Numbers of which public records are made. A choice: most models take at least one of them, also those of logarithms and shares.
MADE_UP = (0.0, 1.0, 0.5, -1.0, 100.0)


def by_record(model: Any, predict: Predict, X: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return what a model predicts for each record, and for which records it raises an error or leaves them out.

    Parameters
    ----------
    model : object
        The model. Errors of skdp's models follow from public facts, or from records outside the domain, and are raised.
    predict : callable
        Maps records to an array with an entry per record.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Test records.
    shape : tuple of int
        Shape of the predictions; its first entry is the number of records.

    Returns
    -------
    predictions : ndarray
        What the model predicts, perhaps of another shape; arbitrary for records for which it raises an error.
    failed : ndarray of bool of shape (n_samples,)
        For which records it does.

    Raises
    ------
    TypeError, ValueError
        For a model of other columns, or one that fails for all of some made-up records, which are public. Also for missing
        values, if the model takes none. Messages quote no data.

    Notes
    -----
    **Privacy.** Whether an error is raised follows from public facts, and from the assumption that the records are valid for the
    model: without missing values, if it takes none. An error for one record of a model that is not of skdp would else be an
    answer without noise. Halves of the table are tried to find the records for which the model fails, and then all records are
    predicted for at once, each in its place, with another record in place of those. So no other record's prediction changes, not
    even in its last bit. Warnings of the model are suppressed.
    """
    if type(model).__module__.startswith("skdp.estimators."):
        return quoting_no_data(X, lambda: predict(X)), np.zeros(shape[0], dtype=bool)
    _refuse_public_facts(model, predict, X)
    if (found := _tried(predict, X)) is not None:
        return found, np.zeros(shape[0], dtype=bool)
    if columns_with_gaps(X) and (row := _row_like(X, np.nan)) is not None and _tried(predict, row) is None:
        quoting_no_data(X, lambda: predict(X))  # raises: the model takes no missing values
    failed = np.zeros(shape[0], dtype=bool)
    _find(predict, X, np.arange(shape[0]), failed)
    places = np.arange(shape[0])
    places[failed] = places[np.argmin(failed)]
    predictions = None if failed.all() else _tried(predict, _taken(X, places))
    return (np.zeros(shape), np.ones(shape[0], dtype=bool)) if predictions is None else (predictions, failed)


def _refuse_public_facts(model: Any, predict: Predict, X: Any) -> None:
    """Raise TypeError or ValueError if the model cannot predict for a table of this form, whatever the records are."""
    expected, size = getattr(model, "n_features_in_", None), X.shape[1] if getattr(X, "ndim", 0) == 2 else None
    if expected is not None and size is not None and size != expected:
        raise ValueError(f"X has {size} columns; the model expects {expected}.")
    names, given = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if names is not None and given is not None and set(names) - set(given):
        raise ValueError(f"X lacks the columns {sorted(map(str, set(names) - set(given)))} of the model.")
    rows = (_row_like(X, value) for value in MADE_UP)
    if not any(row is None or _tried(predict, row) is not None for row in rows):
        raise ValueError(
            f"{type(model).__name__} raises an error for each record of one number out of {MADE_UP}; expected a model for tables "
            "of this form, which predicts for every record."
        )


def _row_like(X: Any, value: float) -> Any:
    """Return a public row of one value with the columns of a table of numbers; None for other tables."""
    if sparse.issparse(X):
        return type(X)(np.full((1, X.shape[1]), value))
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        names, types = list(X.columns), list(X.dtypes)
        numeric = all(getattr(kind, "kind", "") in ("b", "i", "u", "f") for kind in types)
        return type(X)({name: [value] for name in names}) if numeric and len(set(names)) == len(names) else None
    return np.full((1, X.shape[1]), value) if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf" else None


def _tried(predict: Predict, X: Any) -> np.ndarray | None:
    """Return predictions, or None if the model raises an error, or has not one for each record."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = predict(X)
            return found if _length(X) in (None, len(found)) else None  # a step of the model may have left records out
        except KeyboardInterrupt:
            raise
        except MemoryError:
            pass
        except BaseException:  # whose text may quote data
            return None
    raise MemoryError("The predictions of the model need more memory than there is.")


def _length(X: Any) -> int | None:
    """Return the number of records, which is public; None if the table does not state it."""
    length = X.shape[0] if hasattr(X, "shape") else len(X)
    return int(length) if isinstance(length, Integral) else None


def _find(predict: Predict, X: Any, places: np.ndarray, failed: np.ndarray) -> None:
    """Mark the records for which the model raises an error, by halves of a table for which it raises one."""
    for half in np.array_split(places, 2):
        if half.size and _tried(predict, _taken(X, half)) is None:
            if half.size == 1:
                failed[half] = True
            else:
                _find(predict, X, half, failed)


def _taken(X: Any, places: np.ndarray) -> Any:
    """Return some records of a table."""
    if isinstance(X, (list, tuple)):
        return [X[place] for place in places]
    if sparse.issparse(X):
        return X.tocsr()[places]
    return X.iloc[places] if hasattr(X, "iloc") else X[places]

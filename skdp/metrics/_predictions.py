"""Ask a model under evaluation for its predictions, such that a record decides about its own prediction alone."""

import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from skdp._data_validation import columns_with_gaps, gaps_in, quoting_no_data
from skdp._scikit_learn.callers import parameters_of
from skdp._table_types import is_dask
from skdp.privacy.data.persons import Persons

Predict = Callable[[Any], np.ndarray]
# Numbers of which public records are made. A choice: most models take at least one of them, also those of logarithms and shares.
MADE_UP = (0.0, 1.0, 0.5, -1.0, 100.0)
# Persons of one table, and rows of a person that stand in the tables of others. Choices: tables large enough to predict quickly,
# and few repeated rows.
PERSONS, LAYERS = 2**14, 32


def by_record(
    model: Any, predict: Predict, X: Any, shape: tuple[int, ...], persons: Persons | None = None
) -> tuple[np.ndarray, np.ndarray]:
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
    persons : Persons or None, default=None
        Whose the records are, if persons are protected.

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
    predicted for at once, each in its place, with another record in place of those, in a table of the same storage. So no other
    record's prediction changes, not even in its last bit. Warnings of the model are suppressed, and so is what it prints: its
    calls tell whether it fails for a record, and how many rows a person has.

    Among persons, one with more rows would move those of others, and BLAS may give a row other bits at another place. So the
    model predicts for one row of each of `PERSONS` persons at a time, which stands at the place of her number, and for a person
    of more than `LAYERS` rows in a table of her own:

    ::

        rows a a a b c c  ->  a b c | a b c | a b c      (b has one row, which is repeated)
    """
    if _length(X) not in (None, shape[0]):
        raise ValueError(
            "X and y differ in length: there is not one prediction per target; expected one row per label, or per target."
        )
    if persons is None and type(model).__module__.startswith("skdp.estimators."):
        return quoting_no_data(X, lambda: predict(X)), np.zeros(shape[0], dtype=bool)
    X = quoting_no_data(X, X.compute) if is_dask(X) else X
    _refuse_public_facts(model, predict, X)
    if persons is None:
        return _predicted(predict, X, shape)
    X, found, failed = X.tocsr() if sparse.issparse(X) else X, np.zeros(shape), np.zeros(shape[0], dtype=bool)
    for places in _layers(persons):
        answer, without = _predicted(predict, taken(X, places), (places.size, *shape[1:]))
        right = answer.shape == (places.size, *shape[1:])
        found[places], failed[places] = (answer if right else 0.0), without | (not right)
    return found, failed


def _layers(persons: Persons) -> Iterator[np.ndarray]:
    """Return the row numbers of tables in which no row's place depends on another person's rows; they hold each row."""
    counts = np.bincount(persons.numbers, minlength=persons.n_persons)
    starts = np.cumsum(counts) - counts
    for first in range(0, persons.n_persons, PERSONS):
        part = slice(first, first + PERSONS)
        for layer in range(min(counts[part].max(), LAYERS)):
            yield persons.order[starts[part] + layer % counts[part]]
    for person in np.flatnonzero(counts > LAYERS):
        yield persons.order[starts[person] : starts[person] + counts[person]]


def _predicted(predict: Predict, X: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return what `by_record` does, for a table and for any model."""
    places, failed = np.arange(shape[0]), np.zeros(shape[0], dtype=bool)
    if (found := _tried(predict, taken(X, places))) is None:  # of a copy, whose storage is that of the next one
        _find(predict, X, places, failed, shape[1:])
        if failed.all():
            return np.zeros(shape), failed
        found = _tried(predict, taken(X, np.where(failed, np.argmin(failed), places)), scarce=True)
    return (np.zeros(shape), np.ones(shape[0], dtype=bool)) if found is None else (found, failed)


def _refuse_public_facts(model: Any, predict: Predict, X: Any) -> None:
    """Raise TypeError or ValueError if the model cannot predict for a table of this form, whatever the records are."""
    expected, size = getattr(model, "n_features_in_", None), X.shape[1] if getattr(X, "ndim", 0) == 2 else None
    if expected is not None and size is not None and size != expected:
        raise ValueError(f"X has {size} columns; the model expects {expected}.")
    names, given = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if names is not None and given is not None and set(names) - set(given):
        raise ValueError(f"X lacks the columns {sorted(map(str, set(names) - set(given)))} of the model.")
    if _row_like(X, 0.0) is None:
        return
    value = next((value for value in MADE_UP if _tried(predict, _row_like(X, value)) is not None), None)
    if value is None and any(hasattr(part, "categories") for part in parameters_of("", model).values()):
        return  # an encoder may refuse any number that is none of its categories
    if value is None:
        raise ValueError(
            f"{type(model).__name__} raises an error for each record of one number out of {MADE_UP}; expected a model for tables "
            "of this form, which predicts for every record."
        )
    if any(_tried(predict, _row_like(X, value, place)) is None for place in gaps_in(X)):
        raise ValueError(f"{type(model).__name__} raises an error for missing values.{columns_with_gaps(X)}")


def _row_like(X: Any, value: float, gap: int | None = None) -> Any:
    """Return a public row of one value, and perhaps a gap, with the columns of a table of numbers; None for other tables."""
    if getattr(X, "ndim", 0) != 2 and not hasattr(X, "columns"):
        return None
    cells = np.full((1, X.shape[1]), value)
    if gap is not None:
        cells[0, gap] = np.nan
    if sparse.issparse(X):
        return type(X)(cells)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        names, types = list(X.columns), list(X.dtypes)
        numeric = all(getattr(kind, "kind", "") in ("b", "i", "u", "f") for kind in types)
        twice = len(set(names)) < len(names)
        return type(X)({name: cells[:, place] for place, name in enumerate(names)}) if numeric and not twice else None
    return cells if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" else None


def _tried(predict: Predict, X: Any, size: int | None = None, scarce: bool = False) -> np.ndarray | None:
    """Return predictions, or None if the model raises an error, or has not one for each record, or not of the given size.

    A record may make the model raise MemoryError, too; it is raised only if memory is ``scarce``, whatever the records are.
    """
    interrupted = False
    with warnings.catch_warnings(), np.errstate(all="ignore"), _unprinted():
        warnings.simplefilter("ignore")
        try:
            found = predict(X)  # a step of the model may leave records out
            return found if _length(X) in (None, len(found)) and size in (None, found.size) else None
        except KeyboardInterrupt:
            interrupted = True
        except MemoryError:
            if not scarce:
                return None
        except BaseException:  # whose text may quote data
            return None
    if interrupted:
        raise KeyboardInterrupt
    raise MemoryError("The predictions of the model need more memory than there is.")


@contextmanager
def _unprinted() -> Iterator[None]:
    """Print nothing, in the main thread: several threads would leave each other's streams behind."""
    if threading.current_thread() is threading.main_thread():
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            yield
    else:
        yield


def _length(X: Any) -> int | None:
    """Return the number of records, which is public; None if the table does not state it."""
    length = X.shape[0] if hasattr(X, "shape") else len(X)
    return int(length) if isinstance(length, Integral) else None


def _find(predict: Predict, X: Any, places: np.ndarray, failed: np.ndarray, of_one: tuple[int, ...]) -> None:
    """Mark the records for which the model raises an error, by halves of a table for which it raises one."""
    for half in np.array_split(places, 2):
        if half.size and _tried(predict, taken(X, half), half.size * math.prod(of_one)) is None:
            if half.size == 1:
                failed[half] = True
            else:
                _find(predict, X, half, failed, of_one)


def taken(X: Any, places: np.ndarray) -> Any:
    """Return some records of a table."""
    if isinstance(X, (list, tuple)):
        return [X[place] for place in places]
    if sparse.issparse(X):
        return X.tocsr()[places]
    return X.iloc[places] if hasattr(X, "iloc") else X[places]

"""Parameters and data: one clear message each, before anything is charged.

A message about a parameter gives its name, its value and what is expected. A message about the training data names the rule
only: no value, no row, because messages are published too.
"""

import math
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

__all__ = [
    "SMALLEST",
    "Facts",
    "check_class_weight",
    "check_classes",
    "check_integer",
    "check_number",
    "check_scale",
    "read_table",
    "read_unlabelled",
]

LARGEST_FLOAT = sys.float_info.max
SMALLEST, LARGEST = 1e-50, 1e50  # range of norms and weights: squares and products stay normal numbers
INTEGERS = [np.dtype(f"{kind}{size}") for kind in ("int", "uint") for size in (8, 16, 32, 64)]
DTYPES = [np.float64, np.float32, np.bool_, *INTEGERS]  # kept as they are; anything else becomes float64
SAFE = re.compile(  # beginnings of messages that quote shapes and names only
    r"Found array with|Found input variables with inconsistent|Input [Xy] contains|X has \d+ features|The feature names"
    r"|Unknown label type: [\w-]+\. |y should be a 1d array, got an array of shape|This \w+ estimator requires y"
)
RULES = {  # messages that quote data, by how they begin, and what is said instead
    "Expected 2D array": "Expected a 2-dimensional X. Reshape your data: X.reshape(-1, 1) makes one feature of a vector, "
    "X.reshape(1, -1) one record.",
    "Complex data not supported": "Complex data not supported: X and y must hold real numbers.",
}


@dataclass(frozen=True)
class Facts:
    """What is public about a training table.

    Parameters
    ----------
    n_samples, n_features : int
        Shape.
    feature_names : ndarray of str or None
        Column names of a data frame.
    dtype, storage : str
        How the numbers are stored.
    classes : ndarray
        Sorted class labels.
    """

    n_samples: int
    n_features: int
    feature_names: np.ndarray | None
    dtype: str
    storage: str
    classes: np.ndarray


def check_number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    minimum: float = -math.inf,
    below: float = math.inf,
    maximum: float = math.inf,
    optional: bool = False,
) -> None:
    """Raise TypeError or ValueError unless ``value`` is a finite number with ``above < value < below`` in the closed range."""
    if optional and value is None:
        return
    bounds = ((">", above), (">=", minimum), ("<", below), ("<=", maximum))
    expected = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if math.isfinite(bound))
    expected = f"a finite number {expected}".rstrip() + (", or None" if optional else "")
    if not _is_real(value):
        raise TypeError(f"{name}={value!r}; expected {expected}.")
    number = float(value) if -LARGEST_FLOAT < value < LARGEST_FLOAT else math.inf  # an integer may be larger than any float
    if not (above < number < below and minimum <= number <= maximum and math.isfinite(number)):
        raise ValueError(f"{name}={value!r}; expected {expected}.")


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def check_scale(name: str, value: object, *, optional: bool = False) -> None:
    """Raise TypeError or ValueError unless ``value`` is a positive number that float64 can square."""
    check_number(name, value, above=0.0, optional=optional)
    if value is not None:
        check_number(name, value, minimum=SMALLEST, maximum=LARGEST)


def check_integer(name: str, value: object, *, minimum: int, optional: bool = False) -> None:
    """Raise TypeError or ValueError unless ``value`` is an integer of at least ``minimum``."""
    if optional and value is None:
        return
    expected = f"an integer >= {minimum}" + (", or None" if optional else "")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r}; expected {expected}.")
    if value < minimum:
        raise ValueError(f"{name}={value!r}; expected {expected}.")


def check_classes(classes: object) -> np.ndarray:
    """Return the sorted array of the labels given as ``classes``."""
    try:
        given = np.asarray(classes)
        labels = np.unique(given)
    except TypeError:
        given = labels = np.empty(0)
    finite = labels.dtype.kind != "f" or bool(np.isfinite(labels).all())
    if given.ndim != 1 or not 2 <= labels.size == given.size or not finite:
        raise ValueError(f"classes={classes!r}; expected a list of at least two different labels, or None.")
    return labels


def check_class_weight(class_weight: object, classes: np.ndarray | None = None) -> dict[Any, float]:
    """Return the weights that are given, after a check against the class labels where these are known."""
    if class_weight is None:
        return {}
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r}; expected a dict of numbers or None. Weights computed from y would publish the class "
            "counts without noise: give the numbers, from public knowledge."
        )
    if not isinstance(class_weight, dict):
        raise TypeError(f"class_weight={class_weight!r}; expected a dict from class label to number, or None.")
    for label, weight in class_weight.items():
        check_scale(f"class_weight[{label!r}]", weight)
        if classes is not None and label not in classes.tolist():
            raise ValueError(f"class_weight has the label {label!r}; expected labels among the classes {classes.tolist()!r}.")
    return {label: float(weight) for label, weight in class_weight.items()}


def read_table(estimator: Any, X: Any, y: Any, classes: object) -> tuple[Facts, Any, np.ndarray]:
    """Check a labelled table; learn only what is public about it.

    Parameters
    ----------
    estimator : estimator
        A scratch copy, which gets ``n_features_in_`` and ``feature_names_in_``.
    X, y : array-like
        As given to ``fit``.
    classes : object
        The estimator's parameter.

    Returns
    -------
    facts : Facts
        What is public.
    X : ndarray, CSR or CSC
        The table, not copied unless its format or dtype demands it.
    codes : ndarray of shape (n_samples,)
        Class numbers.
    """
    given = None if classes is None else check_classes(classes)
    X, labels, codes = _quoting_no_data(lambda: _read(estimator, X, y, given))
    if codes is None:
        raise ValueError(f"y has labels outside classes={labels.tolist()!r}; expected every label to be one of them.")
    if labels.size < 2:
        raise ValueError("y has only one class; expected at least two. classes=[...] names the classes without reading y.")
    storage = X.format.upper() if sparse.issparse(X) else "dense"
    names = getattr(estimator, "feature_names_in_", None)
    return Facts(X.shape[0], X.shape[1], names, str(X.dtype), storage, labels), X, codes


def read_unlabelled(estimator: Any, X: Any) -> Any:
    """Check a table to predict for: the features of the training table, finite numbers."""
    given = {"reset": False, "accept_sparse": ["csr", "csc"], "dtype": [np.float64, np.float32]}
    return _quoting_no_data(lambda: validate_data(estimator, X, **given))


def _read(estimator: Any, X: Any, y: Any, given: np.ndarray | None) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """The table, the label set, and the class numbers unless a label is outside."""
    X, y = validate_data(estimator, X, y, accept_sparse=["csr", "csc"], dtype=DTYPES, ensure_min_samples=2)
    if given is None:
        check_classification_targets(y)
    labels = np.unique(y) if given is None else given
    return _canonical(X), labels, _encode(y, labels)


def _quoting_no_data(read: Callable[[], Any]) -> Any:
    """Call a reader; other libraries put data into their messages, so only those known to be harmless pass."""
    failure: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with config_context(assume_finite=False):  # a NaN would show in the model
                result = read()
        except MemoryError:
            raise
        except Exception as error:
            failure = _safe(error)
    if any(issubclass(warning.category, DataConversionWarning) for warning in caught):
        message = "A column-vector y was passed when a 1d array was expected: y.ravel() makes one."
        warnings.warn(message, DataConversionWarning, stacklevel=4)
    if failure is not None:
        raise failure  # outside of the except clause, so that the original is not its context
    return result


def _safe(error: Exception) -> Exception:
    """The same error where its text quotes no data, else one of ours that states the rule."""
    text = str(error)
    if SAFE.match(text):
        return type(error)(text)
    for beginning, rule in RULES.items():
        if text.startswith(beginning):
            return ValueError(rule)
    if isinstance(error, TypeError):
        return TypeError("X and y hold objects that are no numbers or labels; each argument must be a string or a number.")
    return ValueError(
        "X must be a table of finite real numbers and y one label per row; something in them cannot be read as such. "
        "Encode text columns first, with categories that are public: OneHotEncoder(categories=[...])."
    )


def _canonical(X: Any) -> Any:
    """A sparse table whose duplicate entries are added up: the norm of a row is computed from its stored entries."""
    if not sparse.issparse(X):
        return X
    X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # drops cached flags, shares the arrays
    X.check_format(full_check=True)  # an index out of range would read other memory
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        if not np.isfinite(X.data).all():
            raise ValueError("Input X contains infinity: duplicate entries of the sparse table add up to it.")
    return X


def _encode(y: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    """Class numbers of y, in the smallest integer type; None if a label is not among ``labels``."""
    codes = np.empty(len(y), dtype=np.min_scalar_type(-labels.size))
    for start in range(0, len(y), 4096):
        part = y[start : start + 4096]
        found = np.minimum(np.searchsorted(labels, part), labels.size - 1)
        if not np.array_equal(labels[found], part):
            return None
        codes[start : start + 4096] = found
    return codes

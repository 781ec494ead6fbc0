"""Check parameters; each error message has the name of the parameter, its value and what is expected."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from skdp._label_types import same_label
from skdp.privacy.budget import to_float
from skdp.privacy.errors import shown, warn

Function = TypeVar("Function", bound=Callable[..., Any])
# Smallest and largest norm, weight or bound that a parameter may have. Within this range, squares and products of a few such
# numbers neither overflow float64 nor become subnormal.
SMALLEST, LARGEST = 1e-50, 1e50

LARGEST_LEVEL = 1 - 1e-9  # of intervals. A choice: closer to 1, quantiles have few digits, and the last one below 1 is infinite
MOST_NAMED = 10  # largest number of columns, or of other things, that a message lists

BOUNDS = (
    "expected a positive number B for |x| <= B, a pair (low, high) for all columns, one pair per column, as in "
    "list(zip(lows, highs)), or a dict from column name to a number or a pair; always low < high, numbers up to 1e50"
)


def explain_keywords(hints: Mapping[str, str], known: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Make a decorator: a function names itself where a keyword is unknown, with what is right if there is a hint.

    Parameters
    ----------
    hints : dict of str to str
        What is right, as a sentence without its end, by keywords that a user may try.
    known : iterable of str, default=()
        Keywords beside the parameters.

    Returns
    -------
    callable
        The decorator.
    """

    def decorate(function: Function) -> Function:
        names = {*known, *signature(function).parameters}

        @wraps(function)
        def checked(*arguments: Any, **given: Any) -> Any:
            if unknown := given.keys() - names:
                hint = f"; {hints[name]}." if (name := min(unknown)) in hints else ""
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}")
            return function(*arguments, **given)

        return checked  # type: ignore[return-value]

    return decorate


def first_of(items: Sequence[Any], what: str = "") -> tuple[list[Any], str]:
    """Return the items that a message lists, and how many more there are, as text."""
    more = f" and {len(items) - MOST_NAMED} more{what}" if len(items) > MOST_NAMED else ""
    return list(items[:MOST_NAMED]), more


def refuse_hiding(owner: object, name: str) -> None:
    """Raise AttributeError if an attribute would hide a method of skdp, by which the report judges an object."""
    ours = (base for base in type(owner).__mro__ if base.__module__.partition(".")[0] in ("skdp", "sklearn"))
    if callable(getattr(type(owner), name, None)) and any(name in vars(base) for base in ours):
        raise AttributeError(f"{type(owner).__name__}.{name} is a method; expected a derived class that overrides it.")


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
    """Raise TypeError or ValueError unless ``value`` is finite, ``above < value < below`` and ``minimum <= value <= maximum``."""
    if optional and value is None:
        return
    bounds = ((">", above), (">=", minimum), ("<", below), ("<=", maximum))
    expected = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if math.isfinite(bound))
    expected = f"a finite number {expected}".rstrip() + (", or None" if optional else "")
    if not _is_real(value):
        raise TypeError(f"{name}={shown(value)}; expected {expected}.")
    number = to_float(value)
    if not (above < number < below and minimum <= number <= maximum and math.isfinite(number)):
        raise ValueError(f"{name}={shown(value)}; expected {expected}.")


def check_level(level: Any, name: str = "level") -> None:
    """Raise ValueError unless ``level`` is a coverage of intervals."""
    if not _is_real(level) or not 0.5 <= float(level) <= LARGEST_LEVEL:
        raise ValueError(f"{name}={shown(level)}; expected a number from 0.5 to {LARGEST_LEVEL:.9f}.")


def check_truth(name: str, value: object, *, optional: bool = False) -> None:
    """Raise TypeError unless ``value`` is True or False, or None if that is allowed."""
    if not (isinstance(value, (bool, np.bool_)) or (optional and value is None)):
        raise TypeError(f"{name}={shown(value)}; expected True{', False or None' if optional else ' or False'}.")


def check_option(name: str, value: object, options: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of some strings."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}={shown(value)}; expected one of {options}.")


def check_random_state(random_state: object) -> None:
    """Raise TypeError or ValueError unless ``random_state`` seeds a generator of NumPy, or is None."""
    if random_state is None or isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        return
    expected = "expected None, a non-negative integer, a numpy Generator or RandomState"
    if not isinstance(random_state, Integral) or isinstance(random_state, bool):
        raise TypeError(f"random_state={shown(random_state)}; {expected}.")
    if random_state < 0:
        raise ValueError(f"random_state={shown(random_state)}; {expected}.")


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def check_scale(name: str, value: object, *, optional: bool = False) -> None:
    """Raise TypeError or ValueError unless ``value`` is a positive number that float64 can square."""
    check_number(name, value, above=0.0, optional=optional)
    if value is not None:
        check_number(name, value, minimum=SMALLEST, maximum=LARGEST)


def check_bounds(name: str, value: Any) -> tuple[float, float]:
    """Return a public range as two floats; raise unless it is an increasing pair of numbers up to 1e50."""
    expected = f"expected (low, high) with low < high, numbers up to {LARGEST:g}"
    pair = tuple(value) if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1) else ()
    if len(pair) != 2 or not all(_is_real(end) for end in pair):
        raise TypeError(f"{name}={shown(value)}; {expected}.")
    low, high = (to_float(end) for end in pair)
    if not (-LARGEST <= low < high <= LARGEST) or high - low < SMALLEST:
        raise ValueError(f"{name}={shown(value)}; {expected}.")
    return low, high


def check_feature_bounds(
    value: Any, n_features: int | None = None, names: Sequence[str] | None = None, *, parameter: str = "feature_bounds"
) -> np.ndarray | None:
    """Return the bounds of the columns as pairs; estimators, transformers and schemas all accept the same forms.

    Parameters
    ----------
    value : object
        None; a positive number B for ``|x| <= B``; a pair (low, high) for all columns; one pair per column; or a dict from column
        name to a number or a pair.
    n_features : int or None, default=None
        Number of columns of the table, if it is known.
    names : sequence of str or None, default=None
        Names of the columns in order, if they are known; a dict must have exactly these keys. If None, the order of the dict is
        used.
    parameter : str, default="feature_bounds"
        Name of the parameter in messages.

    Returns
    -------
    ndarray of shape (2,) or (n_features, 2), or None
        (low, high) for all columns, or one pair per column, with low < high.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return _named_bounds(value, n_features, names, parameter)
    ends = _numbers(value)
    if ends is None or not ends.size or (ends.shape not in ((), (2,)) and (ends.ndim != 2 or ends.shape[1] != 2)):
        raise TypeError(f"{parameter}={shown(value)}; {BOUNDS}{_flat_bounds(ends)}.")
    pairs = np.array([-ends, ends]) if ends.ndim == 0 else ends
    low, high = pairs.T
    with np.errstate(invalid="ignore", over="ignore"):
        in_range = (np.abs(pairs) <= LARGEST).all(axis=-1) & (low < high) & (high - low >= SMALLEST)
    if not in_range.all():
        place = int(np.argmin(in_range))
        where = f" (the pair at {parameter}[{place}])" if pairs.ndim == 2 else ""  # not its value, which may be data
        given = f"{parameter}={shown(value)}{where}"
        raise ValueError(f"{given}; {BOUNDS}{_flat_bounds(ends)}.")
    if n_features is not None and pairs.ndim == 2 and len(pairs) != n_features:
        raise ValueError(f"{parameter}={shown(value)} is for {len(pairs)} features; expected bounds for {n_features}.")
    return pairs


def column_labels(names: Any, n_features: int) -> list[str]:
    """Return the names of the columns as a list; the columns of an array are x0, x1, and so on, as in scikit-learn."""
    return [f"x{place}" for place in range(n_features)] if names is None else list(names)


def warn_of_two_numbers(value: Any, n_features: int, *, parameter: str = "feature_bounds") -> None:
    """Warn if a list of two numbers is given for two columns: the user may have meant one number per column."""
    if n_features == 2 and not isinstance(value, (tuple, Mapping)) and np.shape(value) == (2,):
        warn(
            f"{parameter}={shown(value)} is taken as (low, high) for both columns. Use one pair per column, such as "
            "[(-3, 3), (0, 10)], or a tuple (low, high), which is not ambiguous.",
            UserWarning,
        )


def _nameless(names: Sequence[str]) -> str:
    """Return advice for a table that has lost the names of its columns."""
    if list(names) != column_labels(None, len(names)):
        return ""
    return " X has no names here: it is an array, or a meta-estimator converted it to one; give one pair per column, in order."


def _flat_bounds(ends: np.ndarray | None) -> str:
    """Return advice for a user who gave one number per column."""
    return "; one number per column is written as pairs: [(-3, 3), (0, 10)]" if ends is not None and ends.ndim == 1 else ""


def _named_bounds(given: Mapping[Any, Any], n_features: int | None, names: Sequence[str] | None, parameter: str) -> np.ndarray:
    if not given:
        raise TypeError(f"{parameter}={shown(given)}; {BOUNDS}.")
    if names is not None and (len(names) != len(given) or set(names) != set(given)):
        columns = f"the columns of X: {list(names)!r}.{_nameless(names)}"
        raise ValueError(f"{parameter} has the keys {list(given)!r}; expected {columns}")
    if n_features is not None and len(given) != n_features:
        raise ValueError(f"{parameter} has {len(given)} keys; expected one for each of {n_features} columns of X.")
    named = {name: check_feature_bounds(ends, parameter=f"{parameter}[{name!r}]") for name, ends in given.items()}
    for name, ends in named.items():
        if ends is None or ends.ndim > 1:
            raise TypeError(f"{parameter}[{name!r}]={shown(given[name])}; expected a positive number B, or a pair (low, high).")
    return np.array([named[name] for name in (given if names is None else names)])


def _numbers(value: Any) -> np.ndarray | None:
    """Return a float64 array of a number or of an array-like of numbers of any type; None if it contains anything else."""
    if not (_is_real(value) or isinstance(value, (list, tuple)) or (hasattr(value, "shape") and value.shape != ())):
        return None
    try:
        cells = np.array(value, dtype=object)
    except Exception:  # the value is not an array
        return None
    if not all(_is_real(cell) for cell in cells.flat):
        return None
    return np.array([to_float(cell) for cell in cells.flat], dtype=np.float64).reshape(cells.shape)


def check_integer(name: str, value: object, *, minimum: int, maximum: int | None = None, optional: bool = False) -> None:
    """Raise TypeError or ValueError unless ``value`` is an integer from ``minimum`` to ``maximum``."""
    if optional and value is None:
        return
    upper = "" if maximum is None else f" and <= {maximum}"
    expected = f"an integer >= {minimum}{upper}" + (", or None" if optional else "")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name}={shown(value)}; expected {expected}.")
    if value < minimum or (maximum is not None and int(value) > maximum):
        raise ValueError(f"{name}={shown(value)}; expected {expected}.")


def check_classes(classes: object) -> np.ndarray:
    """Return the sorted array of the labels given as ``classes``."""
    try:
        given = np.asarray(classes)
        labels = np.unique(given)
    except (TypeError, ValueError):  # no common order, or lists of different lengths
        given = labels = np.empty(0)
    finite = labels.dtype.kind != "f" or bool(np.isfinite(labels).all())
    if given.ndim != 1 or not 2 <= labels.size == given.size or not finite:
        raise ValueError(f"classes={shown(classes)}; expected a list of at least two different labels, or None.")
    return labels


def check_class_weight(class_weight: object, classes: np.ndarray | None = None) -> dict[Any, float]:
    """Return the given weights by class; raise if a label is not among the classes, where these are known."""
    if class_weight is None:
        return {}
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={shown(class_weight)}; expected a dict of numbers or None. Weights computed from y would publish the "
            "class counts without noise: give the numbers, from public knowledge."
        )
    if not isinstance(class_weight, dict):
        raise TypeError(f"class_weight={shown(class_weight)}; expected a dict from class label to number, or None.")
    labels, weights = None if classes is None else classes.tolist(), {}
    for label, weight in class_weight.items():
        check_scale(f"class_weight[{label!r}]", weight)
        known = label if labels is None else same_label(label, labels)
        if known is None:
            raise ValueError(f"class_weight has the label {label!r}; expected labels among the classes {labels!r}.")
        if known in weights:
            raise ValueError(
                f"class_weight has the label {label!r} twice, as a number and as text; expected one weight per class."
            )
        weights[known] = float(weight)
    return weights

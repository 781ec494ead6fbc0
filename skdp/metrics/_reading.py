"""Read labels, groups, targets and predictions of test records; messages quote no data."""

from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._label_types import classes_of, told_apart
from skdp._validation import shown
from skdp.metrics._kind import FEWEST
from skdp.metrics._predictions import by_record
from skdp.privacy.data.persons import Persons

# Log-odds beyond this count as this, as for most classifiers' clipped probabilities. A choice.
LOG_ODDS_BOUND = 6.0
MOST_CLASSES = 30  # whose covariance has 900 rows and columns
MOST_GROUPS = 1000


def scores_of(model: Any, X: Any, y: Any, persons: Persons | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return clipped log-odds of the event, and class numbers: 1 is the event."""
    classes = getattr(model, "classes_", None)
    if not hasattr(model, "predict_proba") or classes is None or len(classes) != 2:
        raise TypeError(
            f"model, a {type(model).__name__}, has no predict_proba for two classes; expected a fitted classifier of two "
            "classes. skdp.load_model(path) reads one from a file."
        )
    known = classes_of(model)
    labels, event = class_numbers(y, known, "the model"), list(classes).index(known[1])
    shape = len(labels), 2
    probabilities, failed = by_record(model, lambda part: np.asarray(model.predict_proba(part), np.float64), X, shape, persons)
    if probabilities.shape != shape:
        raise ValueError("X and y differ in length, or predict_proba does not return two columns; expected one row per label.")
    return log_odds_of(np.where(failed, np.nan, probabilities[:, event])), labels


def class_numbers(y: Any, classes: tuple[Any, ...], knowing: str) -> np.ndarray:
    """Return the numbers of the classes of checked labels."""
    labels = quoting_no_data(y, lambda: column_or_1d(y))
    numbers = _numbers_of(labels, classes)
    if (numbers < 0).any():
        raise ValueError(f"y holds labels that {knowing} does not know; expected {shown(np.array(classes).tolist())} only.")
    if len(labels) < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} test records, of which no metric could be told.")
    return numbers


def _numbers_of(labels: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
    """Return the number of the class of each label, -1 for other labels."""
    numbers = np.full(labels.shape, -1, dtype=np.intp)
    for number, label in enumerate(classes if told_apart(np.array(classes), labels) else ()):
        numbers[labels == label] = number
    return numbers


def group_numbers(groups: Any, group_labels: Any, n_samples: int) -> tuple[np.ndarray | None, tuple[Any, ...]]:
    """Return the numbers of checked groups, and their names."""
    if (groups is None) != (group_labels is None):
        raise ValueError("Groups need their public names, and names need groups; expected both groups= and group_labels=.")
    if groups is None:
        return None, ()
    known = tuple(group_labels)
    if not 1 <= len(known) <= MOST_GROUPS or len(set(known)) < len(known):
        raise ValueError(f"group_labels has {len(known)} names; expected from 1 to {MOST_GROUPS} different ones.")
    given = quoting_no_data(groups, lambda: column_or_1d(groups))
    if len(given) != n_samples:
        raise ValueError("y and groups differ in length; expected one group per label.")
    numbers = np.full(n_samples, -1)
    for number, label in enumerate(known):
        numbers[given == label] = number
    if (numbers < 0).any():
        raise ValueError("groups holds a group that group_labels does not name; expected those only.")
    return numbers, known


def log_odds_of(probabilities: np.ndarray) -> np.ndarray:
    """Return the clipped log-odds of probabilities, which are clipped to [0, 1]; 0 where there is none (nan)."""
    with np.errstate(all="ignore"):  # a warning would reveal a record
        log_odds = logit(np.clip(np.where(np.isnan(probabilities), 0.5, probabilities), 0.0, 1.0))
        return np.asarray(np.clip(log_odds, -LOG_ODDS_BOUND, LOG_ODDS_BOUND))


def predicted_classes(model: Any, X: Any, y: Any, persons: Persons | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the true and of the predicted classes; the first class where the model predicts none."""
    classes = tuple(model.classes_)
    if len(classes) > MOST_CLASSES or not hasattr(model, "predict"):
        raise TypeError(f"model has {len(classes)} classes; expected at most {MOST_CLASSES}, and a method predict.")
    true = class_numbers(y, classes, "the model")
    predicted, failed = by_record(model, lambda part: _numbers_of(_labels(model.predict(part)), classes), X, true.shape, persons)
    if predicted.shape != true.shape:
        raise ValueError("X and y differ in length; expected one prediction per label.")
    return true, np.maximum(np.where(failed, -1, predicted), 0).astype(np.intp)  # numbers of `by_record` may be floats


def _labels(predicted: Any) -> np.ndarray:
    """Return predicted labels as an array in which none has another type: one text in a list would make text of all numbers."""
    listed = isinstance(predicted, (list, tuple))
    return np.fromiter(predicted, dtype=object, count=len(predicted)) if listed else np.asarray(predicted)


def targets_of(y: Any) -> np.ndarray:
    """Return checked targets."""
    column = quoting_no_data(y, lambda: column_or_1d(y))
    if column.dtype.kind in "mM":
        raise TypeError("y has dates or durations, whose unit may depend on a single record; expected numbers.")
    targets = quoting_no_data(y, lambda: np.asarray(column, dtype=np.float64))
    if len(targets) < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} test records, of which no metric could be told.")
    if not np.isfinite(targets).all():
        raise ValueError("A target is nan or infinite; expected finite numbers.")
    return targets


def column_of(predictions: np.ndarray, n_samples: int) -> np.ndarray:
    """Return one prediction per target."""
    predictions = predictions[:, 0] if predictions.ndim == 2 and predictions.shape[1] == 1 else predictions
    if predictions.shape != (n_samples,):
        raise ValueError("There is not one prediction per target; expected X and y of the same length, and one output.")
    return predictions


def predictions_of(model: Any, X: Any, n_samples: int, persons: Persons | None = None) -> np.ndarray:
    """Return the predictions of a regressor; nan where it has none."""
    found, failed = by_record(model, lambda part: np.asarray(model.predict(part), dtype=np.float64), X, (n_samples,), persons)
    return np.where(failed, np.nan, column_of(found, n_samples))

"""Match class labels that are given in one type and occur in another: 0 and "0", True and "True"."""

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

LARGEST_INTEGER = 2**53  # float64 represents all integers up to this exactly; larger ones never match a text
DTYPES = {"i": "number", "u": "number", "f": "number", "b": "truth", "U": "text"}
NAMES = {"number": "numbers", "truth": "booleans", "text": "text"}


def otherwise_spelt(classes: np.ndarray, y: Any, labels: np.ndarray) -> np.ndarray:
    """Return the classes converted to the type of y if both types spell the same labels, else unchanged.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted labels, from public knowledge.
    y : array-like
        As given to ``fit``. A list has no dtype, so its labels are compared without conversion.
    labels : ndarray of shape (n_samples,)
        The same as an array.

    Returns
    -------
    ndarray of shape (n_classes,)
        Sorted labels.

    Notes
    -----
    **Privacy.** The classes and the dtype of y are public. An array of objects has a type only if all its records have this type.
    A neighbour either has the same type, or mixes types and is refused. So two neighbours that can both be fitted have the same
    type.
    """
    ours, theirs = _kind(classes), None if isinstance(y, (list, tuple)) else _kind(labels)
    spellings = None if ours == theirs or theirs is None else _spellings(classes, ours, theirs)
    return classes if spellings is None else np.unique(spellings)


def type_mismatch(classes: np.ndarray, y: Any) -> str:
    """Return the part of a message that names the types of the classes and of y, which are public; empty if they agree."""
    ours, kind = _kind(classes), getattr(getattr(y, "dtype", None), "kind", "")
    if _is_large(classes):
        return (
            f" Classes beyond 2**53 are told apart only if all of y are integers, of dtype {classes.dtype} where y is an array."
        )
    if isinstance(y, (list, tuple)):
        spelt = _spellings(classes, ours, "number" if ours == "text" else "text")
        return (
            ""
            if spelt is None
            else f" The classes are {NAMES[str(ours)]}; an array y may have them in another type, a list may not."
        )
    if ours is None or ours == DTYPES.get(kind) or (ours, kind) == ("text", "O") or kind not in (*DTYPES, "O"):
        return ""
    given = {"U": "text", "O": "of dtype object"}.get(kind, f"of dtype {y.dtype}")  # the name of a text dtype would show a length
    return f" The classes are {NAMES[ours]}, and y is {given}."


def told_apart(classes: np.ndarray, labels: np.ndarray) -> bool:
    """Return whether all classes keep their values in a comparison with the labels, which then happens without rounding.

    One float among the integers of a list makes all of them floats, so that labels of other records would change.
    """
    numbers = labels.dtype.kind in "iuf" and np.result_type(classes.dtype, labels.dtype).kind == "f"
    return not (numbers and _is_large(classes))


def same_label(label: Any, classes: list[Any]) -> Any:
    """Return the class that equals a label, else the class with the same spelling, else None."""
    if label in classes:
        return label
    return next(
        (known for known in classes if isinstance(known, str) != isinstance(label, str) and str(known) == str(label)), None
    )


def event_of(stated: Any, classes: np.ndarray) -> dict[str, Any]:
    """Return the event of two classes as an attribute of a fitted classifier; none for more classes.

    Parameters
    ----------
    stated : array-like or None
        The classes in the order of the user, of which the second is the event.
    classes : ndarray of shape (n_classes,)
        The same, sorted, in the type of y. The larger one is the event if none are stated.

    Returns
    -------
    dict
        ``event_``, one of the classes.
    """
    labels = classes.tolist()
    if len(labels) != 2:
        return {}
    return {"event_": labels[1] if stated is None else same_label(np.asarray(stated).tolist()[1], labels)}


def classes_of(model: Any) -> tuple[Any, ...]:
    """Return the sorted classes of a classifier, or of a pipeline or a search with one; of two, that of the event comes last."""
    classes, part = tuple(model.classes_), model
    while part is not None and not hasattr(part, "event_"):
        part = part[-1] if isinstance(part, Pipeline) else getattr(part, "best_estimator_", None)
    return classes[::-1] if part is not None and len(classes) == 2 and part.event_ == classes[0] else classes


def kind_of_labels(labels: np.ndarray) -> str:
    """Return "text", "number" (also for booleans), or the letter of another dtype.

    Integers, floats and booleans are of one kind: one label 1.0 makes all integers of its partition floats.
    """
    kind = _kind(labels)
    return labels.dtype.kind if kind is None else "number" if kind == "truth" else kind


def numbered(labels: np.ndarray, known: dict[Any, int]) -> np.ndarray:
    """Return the number of each label, in the order in which those of all parts came; ``known`` gets the new ones."""
    for label in labels.tolist():
        known.setdefault(label, len(known))
    return np.array([known[label] for label in labels.tolist()], dtype=np.int64)


def are_mixed(labels: Any) -> bool:
    """Return whether the labels of a list are of more than one type out of text, numbers and booleans."""
    return len({_kind_of_object(label) for label in np.array(labels, dtype=object).ravel()}) > 1


def refuse_mixed_labels(parts: Iterable[np.ndarray]) -> None:
    """Raise ValueError if parts of a table have labels of different kinds; parts without labels have none."""
    if len({kind_of_labels(labels) for labels in parts if labels.size}) > 1:
        raise ValueError("The labels of the partitions have different types; expected labels that are all text or all numbers.")


def dtype_of_labels(source: Any, first: np.dtype[Any]) -> np.dtype[Any]:
    """Return the public dtype of the labels of a table in partitions, as `sorted_labels` takes it.

    Where a function of the user's makes the parts, one label 1.0 may make floats of all integers of the first one. So numbers of
    such a source have the dtype that follows from the label set.

    Parameters
    ----------
    source : object
        Source of the table; ``target_dtype`` is the dtype that it states, and ``made`` tells that a function makes the parts.
    first : dtype
        That of the labels of the first part.

    Returns
    -------
    dtype
        Of objects, if the label set decides.
    """
    stated = getattr(source, "target_dtype", None)
    if stated is not None:
        return stated if isinstance(stated, np.dtype) else np.dtype(object)
    return np.dtype(object) if getattr(source, "made", False) and first.kind in "iuf" else first


def sorted_labels(labels: Iterable[Any], like: np.dtype[Any]) -> np.ndarray:
    """Return labels that came from several parts of a table, sorted, in a public dtype if this changes none of them.

    Parameters
    ----------
    labels : iterable
        Labels of one kind, as Python objects.
    like : dtype
        As from `dtype_of_labels`.

    Returns
    -------
    ndarray
        A function of the label set and of this dtype, whatever the dtypes of the other parts are.
    """
    known = sorted(labels)
    if not all(isinstance(label, Real) for label in known):
        found = np.array(known)
        return found.astype(object) if like.kind == "O" else found
    with np.errstate(all="ignore"):
        cast = np.array(known).astype(like if like.kind in "biuf" else np.float64)
    if like.kind in "biuf" and cast.tolist() == known:
        return cast
    return np.array([int(label) if float(label).is_integer() else float(label) for label in known])


def _is_large(classes: np.ndarray) -> bool:
    """Return whether some classes are integers that float64 may round."""
    return classes.dtype.kind in "iu" and max(-int(classes.min()), int(classes.max())) > LARGEST_INTEGER


def _kind(labels: np.ndarray) -> str | None:
    """Return the common type of all labels; None if they differ, or if the type is not supported."""
    if labels.dtype.kind != "O":
        return DTYPES.get(labels.dtype.kind)
    kinds = {_kind_of_object(label) for label in labels}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_object(label: Any) -> str | None:
    if isinstance(label, (bool, np.bool_)):
        return "truth"
    return "text" if isinstance(label, str) else "number" if isinstance(label, Real) else None


def _spellings(classes: np.ndarray, ours: str | None, theirs: str) -> np.ndarray | None:
    """Return the classes in another type; None if one of them has no exact spelling in it."""
    listed = classes.tolist()
    if theirs == "text" and (ours == "truth" or (ours == "number" and all(isinstance(label, int) for label in listed))):
        return np.array([str(label) for label in listed])
    if ours == "text" and theirs == "truth" and set(listed) == {"False", "True"}:
        return np.array([False, True])
    if ours == "text" and theirs == "number" and all(_is_integer(label) for label in listed):
        return np.array([int(label) for label in listed])
    return None


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(text)) == text and abs(int(text)) < LARGEST_INTEGER

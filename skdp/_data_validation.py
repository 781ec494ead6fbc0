"""Validate tables, recording only public facts; errors name the violated rule.

No message quotes a value or a row of the training data, because messages are published too.
"""

import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import compress
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from skdp._extra_facts import NO_EXTRA, ExtraFacts
from skdp._label_types import are_mixed, otherwise_spelt, sorted_labels, told_apart, type_mismatch
from skdp._table_types import as_table
from skdp._validation import first_of
from skdp.privacy.data.persons import Persons
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import silent, warn

INTEGERS = [np.dtype(f"{kind}{size}") for kind in ("int", "uint") for size in (8, 16, 32, 64)]
FLOATS = [np.float64, np.float32]
DTYPES = [*FLOATS, np.bool_, *INTEGERS]  # X keeps these dtypes; any other one is converted to float64
LARGEST_TARGET = 1e150  # without target_bounds, targets in units of the threshold are clipped to this, so squares are finite
SAFE = re.compile(  # beginnings of messages of scikit-learn that quote only shapes and names, so users may see them
    r"Found array with|Found input variables with inconsistent|Input [Xy] contains|X has \d+ features|The feature names"
    r"|Feature names are only supported|Unknown label type: [\w-]+\. |y should be a 1d array, got an array of shape"
    r"|This \w+ estimator requires y|Sparse data was passed"
)
KEPT = "a copy of the records was in {kept} of this machine during the fit, which no other user can read"
READ_AGAIN = "the source was the same in each pass: fingerprints of the records were compared"
CLUSTER = (
    "the records were read by {n_workers} worker(s) of a Dask cluster: these, the scheduler, their disks, logs and network are "
    "trusted. Which machine computes a partition does not depend on the records"
)
MISSING = (
    ' Fill missing values with a public constant ("fill" in a schema) or give them a category of their own; an imputer that is '
    'fitted on the records leaks. A data frame with schema="learn" may have gaps.'
)
UNLABELLED = " Leave records without a target out of X and y before the fit; how many remain counts as public."
OF_Y = f"In y, a regression takes numbers only, and labels are all text or all numbers, none of them missing.{UNLABELLED}"
OF_OBJECTS = (
    " An array of objects, such as a ColumnTransformer makes of text, has lost the types of its columns: "
    'set_output(transform="pandas") of the transformer keeps them in a data frame.'
)
OF_TEXTS = (
    " Texts become rows of numbers by public rules: HashingVectorizer(alternate_sign=False), or CountVectorizer(vocabulary=...) "
    "of words that are not taken from the records."
)
OF_FIRST_LABEL = ("Unknown label type: unknown", "You appear to be using a legacy multi-label")
RULES = {  # beginnings of messages that may quote data, and the messages that replace them
    "Expected 2D array": "Expected a 2-dimensional X. Reshape your data: X.reshape(-1, 1) makes one feature of a vector, "
    "X.reshape(1, -1) one record.",
    "Expected a 2-dimensional container": "X is one column or row; expected a table, such as frame[['age']], which "
    "selects by a list, or series.to_frame().",
    "y should be a 1d array, got an array of shape () ": "y should be a 1d array, and is a single value; expected one label or "
    "number per row. If y names a column: fit(table.drop(columns=y), table[y]).",
    "Expected unique column names": "Column names of X must be unique; expected a different name for each column.",
    "Found array with 0 sample": "X has no records; expected at least one.",
    "Complex data not supported": "Complex data not supported: X and y must hold real numbers.",
}


@dataclass(frozen=True)
class Partitions:
    """Hold what is public about how a table is cut and stored.

    Parameters
    ----------
    source : str
        Where the records come from.
    number : int or None
        Number of partitions; None if persons are protected, whose number of rows it would tell.
    bytes_per_pass : int or None
        Bytes of X as a dense table of the stated dtype; None if neither the user nor the source states one: that of a batch, and
        the number of stored entries of a sparse one, may depend on the records. None if persons are protected.
    kept : str or None
        Where the copy is that the passes read; None if they read the source.
    n_workers : int or None, default=None
        Number of workers of a Dask cluster that read the records; None if the process of the fit does.
    first_reads : int, default=1
        How often the source is read before the passes.
    """

    source: str
    number: int | None
    bytes_per_pass: int | None
    kept: str | None
    n_workers: int | None = None
    first_reads: int = 1

    def stated(self, passes: int | None) -> dict[str, Any]:
        """Return an entry of the report: where the records are, and how often the source is read.

        Parameters
        ----------
        passes : int or None
            Passes over the data; None if their number is not known.

        Returns
        -------
        dict
            With the key "table".
        """
        table = {
            "source": self.source,
            **({} if self.number is None else {"partitions": self.number}),
            "kept_copy": "none: each pass reads the source" if self.kept is None else self.kept,
            "reads_of_source": self.first_reads + (0 if self.kept is not None or passes is None else passes),
            **({} if self.bytes_per_pass is None else {"bytes_per_pass": self.bytes_per_pass}),
            **({} if self.n_workers is None else {"n_workers": self.n_workers}),
        }
        return {"table": table}

    @property
    def trusted(self) -> str:
        """What the guarantee trusts beside the process of the fit."""
        if self.n_workers is not None:
            return CLUSTER.format(n_workers=self.n_workers)
        return READ_AGAIN if self.kept is None else KEPT.format(kept=self.kept)


@dataclass(frozen=True, kw_only=True)
class SeveralTargets(ExtraFacts):
    """What is public about a regression of several targets at once.

    Parameters
    ----------
    n_targets : int or None, default=None
        Number of columns of y; None if y is a vector of one target.
    """

    n_targets: int | None = None

    def resized(self, n_samples: int) -> "SeveralTargets":
        """Return the same: the number of targets does not depend on that of the records."""
        return self


@dataclass(frozen=True)
class Facts:
    """Hold what is public about a training table.

    Parameters
    ----------
    n_samples, n_features : int
        Shape.
    feature_names : ndarray of str or None, default=None
        Column names of a data frame.
    storage : str, default="dense"
        "dense", "CSR" or "CSC". A transformer may choose between dense and CSR by the data: nothing may depend on which.
    classes : ndarray or None, default=None
        Sorted class labels; None for regression.
    extra : ExtraFacts, default=NO_EXTRA
        Public facts of one kind of fit.
    partitions : Partitions or None, default=None
        Of a table in partitions; None for a table in memory.
    schema : Schema or None, default=None
        The columns of the table as the estimator was given it, if the features are what a schema makes of them.
    stated : Schema or None, default=None
        The same, if the estimator makes functions of the columns instead.
    """

    n_samples: int
    n_features: int
    feature_names: np.ndarray | None = None
    storage: str = "dense"
    classes: np.ndarray | None = None
    extra: ExtraFacts = NO_EXTRA
    partitions: "Partitions | None" = None
    schema: Any = None
    stated: Any = None

    @property
    def labels(self) -> list[Any]:
        """The class labels as plain types; empty for regression."""
        return [] if self.classes is None else self.classes.tolist()

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes by which scikit-learn's fitted estimators state the columns of the table."""
        if self.schema is not None:
            columns = np.array(list(self.schema.columns), dtype=object)
            prepared = {"schema_": self.schema, "prepared_features_": self.feature_names}
            return {"feature_names_in_": columns, "n_features_in_": columns.size, **prepared}
        names = {} if self.feature_names is None else {"feature_names_in_": self.feature_names}
        stated = {} if self.stated is None else {"schema_": self.stated}
        return {**names, "n_features_in_": self.n_features, **stated}


class Table:
    """A checked training table: its public facts, and its records until they are taken out.

    The attributes ``sample_weight`` and ``exposure`` have those of the records over their bounds, or None; ``persons`` whose
    each row is, or None if records are protected.

    Parameters
    ----------
    facts : Facts
        What is public.
    X : ndarray, CSR or CSC
        The records.
    y : ndarray of shape (n_samples,)
        Class numbers, or targets.
    groups : ndarray of shape (n_samples,) or None, default=None
        Number of each record's public group.
    given : tuple of array-like, default=(None, None)
        X and y as given to ``fit``, if callbacks ask for them.
    """

    def __init__(
        self, facts: Facts, X: Any, y: np.ndarray, groups: np.ndarray | None = None, *, given: tuple[Any, Any] = (None, None)
    ) -> None:
        self.facts, self.given = facts, given
        self.sample_weight: np.ndarray | None = None
        self.exposure: np.ndarray | None = None
        self.persons: Persons | None = None
        self._records: tuple[Any, np.ndarray, np.ndarray | None] | None = (X, y, groups)

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, *exception: object) -> None:
        self._records = self.sample_weight = self.exposure = self.persons = None

    def rows(self, bounds: dict[str, Any]) -> TrainingData:
        """Return the rows for the oracle, once, and drop the references, so that a copy made while reading can be freed.

        Parameters
        ----------
        bounds : dict
            Public constants of `TrainingData`.

        Returns
        -------
        TrainingData
            The records, clipped.
        """
        weights, self.sample_weight = self.sample_weight, None
        persons, self.persons = self.persons, None
        exposure, self.exposure = self.exposure, None
        return TrainingData(*self._taken(), sample_weight=weights, persons=persons, exposure=exposure, **bounds)

    def _taken(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return the records, in a function of its own, so that no frame holds them while their copy is made."""
        if self._records is None:
            raise RuntimeError("The records of this table were taken out before.")
        records, self._records = self._records, None
        return records


def check_label_set(labels: np.ndarray) -> None:
    """Raise ValueError unless there are two classes at least."""
    if labels.size < 2:
        raise ValueError("y has only one class; expected at least two. classes=[...] names the classes without reading y.")


class Part(NamedTuple):
    """Checked records of a part of a table.

    Parameters
    ----------
    facts : Facts
        What is public; the classes are those of the part alone, unless they are given.
    X : ndarray, CSR or CSC
        The records.
    y : ndarray of shape (n_samples,)
        Class numbers, or targets.
    """

    facts: Facts
    X: Any
    y: np.ndarray


class RecordReader(ABC):
    """Base of what reads a whole table with targets, or parts of it, and learns only what is public; errors quote no data."""

    @property
    def extra(self) -> ExtraFacts:
        """Further public facts, by the parameters alone."""
        return NO_EXTRA

    def __call__(self, X: Any, y: Any, whole: Any = None) -> Part:
        """Check some records.

        Parameters
        ----------
        X, y : array-like
            As given to ``fit``, or a part of them.
        whole : estimator or None, default=None
            For a whole table, a scratch copy of the estimator, which gets ``n_features_in_`` and ``feature_names_in_``. None for
            a part, which may have no records, and no record of some classes.

        Returns
        -------
        Part
            The records. X is not copied unless its format or dtype demands it.
        """
        scratch, y = BaseEstimator() if whole is None else whole, self._given(y, X, whole is None)

        def read() -> tuple[Any, tuple[np.ndarray | None, np.ndarray | None]]:
            if y is None:
                validate_data(scratch, y=y)  # raises an error
            fewest = 0 if whole is None else 2
            table = validate_data(scratch, _added_up(X), accept_sparse=["csr", "csc"], dtype=DTYPES, ensure_min_samples=fewest)
            target = self._read_target(y, table)
            keep_names(scratch, X)
            return _canonical(table), target

        table, target = quoting_no_data(X, read)
        numbers, labels = self._checked(y, *target)
        if whole is not None and labels is not None:
            check_label_set(labels)
        return Part(replace(facts_of(scratch, table, labels), extra=self.extra), table, numbers)

    def check_target(self, y: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Check y alone, for so many records; return numbers, and the labels that they stand for, None without labels."""
        y = self._given(y, range(n_samples), True)
        return self._checked(y, *quoting_no_data(np.empty((0, 1)), lambda: self._read_target(y, range(n_samples))))

    def _given(self, y: Any, X: Any, needed: bool) -> Any:
        """Return the targets, or raise ValueError if a table that needs some has none."""
        if y is None and needed:
            raise ValueError(
                "y is missing; expected fit(X, y), or a table that names its target: skdp.data.npy(X, y), "
                "skdp.data.parquet(source, target=...), or skdp.data.chunks of pairs (X, y)."
            )
        return y

    @abstractmethod
    def _read_target(self, y: Any, X: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return numbers and labels for as many records as X has; messages of other libraries may quote data."""

    def _checked(self, y: Any, numbers: Any, labels: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        return numbers, labels


@dataclass(frozen=True)
class NoTargetReader(RecordReader):
    """Read a table without targets: a table that names some has them in vain."""

    def _given(self, y: Any, X: Any, needed: bool) -> Any:
        return ()

    def _read_target(self, y: Any, X: Any) -> tuple[np.ndarray, None]:
        """Return zeros of one byte."""
        return np.zeros(len_of(X), dtype=np.int8), None


@dataclass(frozen=True)
class LabelReader(RecordReader):
    """Read labels.

    Parameters
    ----------
    classes : ndarray or None
        The public label set; None to read it from y.
    """

    classes: np.ndarray | None

    def _read_target(self, y: Any, X: Any) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the class numbers, None if a label is outside the stated set, and the label set."""
        given, listed = self.classes, _column(_of_truths(y), X)
        if given is None and isinstance(y, (list, tuple)) and are_mixed(y):  # as in an array of objects, one decided the type
            raise TypeError("Unknown label type: y has labels that are neither all text nor all numbers nor all booleans.")
        if given is None and listed.dtype.kind not in "biu":  # these dtypes are labels, whatever the values
            check_classification_targets(listed)
        if given is not None:
            labels = otherwise_spelt(given, y, listed)
        elif isinstance(y, (list, tuple)) and listed.dtype.kind in "iuf":  # a list has no dtype: 1.0 must not make all floats
            labels = sorted_labels(np.unique(listed).tolist(), np.dtype(object))
        else:
            labels = np.unique(listed)
        exact = given is None or told_apart(given, listed)
        return _encode(listed, labels) if exact else None, labels

    def _checked(self, y: Any, numbers: Any, labels: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        if numbers is None and self.classes is not None:
            raise ValueError(
                f"y has labels outside classes={self.classes.tolist()!r}; expected every label to be one of them, spelt as in y: "
                f"upper case counts.{type_mismatch(self.classes, y)}"
            )
        return numbers, labels


@dataclass(frozen=True)
class TargetReader(RecordReader):
    """Read targets that are numbers.

    Parameters
    ----------
    centre, half_width : float or ndarray of shape (n_targets,), default=0.0 and 1.0
        Centre and half width of the public range of y, to which targets are clipped; of each of several targets, if they are
        arrays. Without a range, the origin and the unit of y.
    bounded : bool, default=False
        Whether y has a public range; otherwise targets are clipped to values that float64 can square.
    optional : bool, default=False
        Whether the table may be without targets, which are then zeros.
    """

    centre: Any = 0.0
    half_width: Any = 1.0
    bounded: bool = False
    optional: bool = False

    @property
    def extra(self) -> ExtraFacts:
        """The number of several targets."""
        return SeveralTargets(n_targets=np.size(self.centre)) if np.ndim(self.centre) else NO_EXTRA

    def _given(self, y: Any, X: Any, needed: bool) -> Any:
        y = super()._given(np.zeros(len_of(X)) if y is None and self.optional else y, X, needed)
        if np.ndim(self.centre) and number_of_targets(y) != np.size(self.centre):
            raise ValueError(f"target_bounds has {np.size(self.centre)} pairs; expected as many as y has columns.")
        return y

    def _read_target(self, y: Any, X: Any) -> tuple[np.ndarray, None]:
        """Return finite numbers in the units of the solver, clipped; a column for each of several targets."""
        targets = _column(_of_truths(y), X, y_numeric=True, multi_output=np.ndim(self.centre) > 0)
        if targets.dtype.kind not in "biuf":
            raise ValueError  # text that looks like numbers, dates
        targets = targets.astype(np.float64)
        if not np.isfinite(targets).all():  # None, "nan" or infinities among objects pass scikit-learn's check
            raise ValueError("Input y contains NaN, infinity or a value too large for dtype('float64').")
        targets -= self.centre
        targets /= self.half_width
        limit = 1 / math.sqrt(np.size(self.centre)) if self.bounded else LARGEST_TARGET  # a vector of targets has norm at most 1
        return np.clip(targets, -limit, limit, out=targets), None


def _column(y: Any, X: Any, **options: Any) -> np.ndarray:
    """Return y as checked by scikit-learn, for as many records as X has."""
    column = validate_data(BaseEstimator(), y=y, **options)
    check_consistent_length(X, column)
    return np.asarray(column)


def read_weights(name: str, weights: Any, largest: float, n_samples: int) -> np.ndarray:
    """Check the weights, or the exposures, of the records.

    Parameters
    ----------
    name : {"sample_weight", "exposure"}
        What they are.
    weights : array-like of shape (n_samples,)
        As given to ``fit``.
    largest : float
        Their public bound.
    n_samples : int
        Number of records.

    Returns
    -------
    ndarray of shape (n_samples,)
        The weights over the bound, clipped to [0, 1].
    """
    values = None
    try:
        with silent():
            given = np.asarray(weights)
            kind = given.dtype.kind  # dates and durations become numbers in a list
            numbers = kind in "biuf" or (kind == "O" and all(isinstance(entry, Real) for entry in given.ravel().tolist()))
            values = given.astype(np.float64) if numbers else None
    except MemoryError:
        raise
    except Exception:  # its message may quote data
        values = None
    if values is None:
        if isinstance(weights, str):
            raise ValueError(
                f"{name}={weights!r}; expected the numbers themselves, one per record, such as the column table[{weights!r}]; "
                "leave this column out of X."
            )
        raise ValueError(f"{name} has entries that are not real numbers; expected one number per record.")
    if values.shape != (n_samples,):
        raise ValueError(f"{name} has another shape; expected a vector, one number for each of the {n_samples} records.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity; expected finite numbers.")
    if (values < 0).any():
        raise ValueError(f"{name} has negative entries; expected numbers from 0 to max_{name}, beyond which they count as this.")
    if name == "exposure" and (values == 0).any():
        raise ValueError("exposure has zeros; expected positive numbers: leave records without exposure out of the table.")
    with np.errstate(all="ignore"):  # also where a program makes them errors, which would tell of a weight's size
        return np.asarray(np.minimum(values / float(largest), 1.0))


def len_of(X: Any) -> int:
    """Return the number of rows of what is yet to be checked."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def number_of_targets(y: Any) -> int | None:
    """Return the number of columns of targets in memory; None unless they have two dimensions."""
    if hasattr(y, "shape"):
        return int(y.shape[1]) if len(y.shape) == 2 else None
    rows = isinstance(y, (list, tuple)) and len(y) > 0 and isinstance(y[0], (list, tuple, np.ndarray))
    return len(y[0]) if rows and np.ndim(y[0]) == 1 else None


def facts_of(estimator: Any, X: Any, labels: np.ndarray | None) -> Facts:
    """Return what is public about a checked table; the estimator has its column names."""
    storage = X.format.upper() if sparse.issparse(X) else "dense"
    names = getattr(estimator, "feature_names_in_", None)
    return Facts(X.shape[0], X.shape[1], names, storage, labels)


def read_numbers(estimator: Any, X: Any) -> np.ndarray:
    """Check a dense training table of finite numbers before its labels are read; keep column names."""
    refuse_dates(X)
    table = quoting_no_data(X, lambda: validate_data(estimator, X, dtype=np.float64))
    keep_names(estimator, X)
    return np.asarray(table)


def read_unlabelled(estimator: Any, X: Any, accept_sparse: Any = ("csr", "csc")) -> Any:
    """Check a table to predict for: it needs finite numbers and the features of the training table."""
    options, X = {"reset": False, "accept_sparse": accept_sparse, "dtype": [np.float64, np.float32]}, as_table(X)
    table = quoting_no_data(X, lambda: validate_data(estimator, X, **options))
    known: Any = getattr(estimator, "feature_names_in_", None)
    fitted, given = None if known is None else known.tolist(), _column_names(X)
    if (fitted is None) != (given is None):
        which = "X has no feature names, but fit had them" if given is None else "X has feature names, but fit had none"
        warn(f"{which}: the columns are taken in their order.", UserWarning)
    elif fitted != given:
        raise ValueError(f"The feature names should match those of fit: got {given!r}, expected {fitted!r}.")
    return table


def read_features(transformer: Any, X: Any, reset: bool, dtype: Any = FLOATS, finite: Any = True) -> Any:
    """Check a table for a transformer that learns nothing: finite numbers, in the columns that ``fit`` saw if it was called."""
    X = as_table(X)
    refuse_dates(X)
    options = {"accept_sparse": ["csr", "csc"], "dtype": dtype, "ensure_all_finite": finite}
    return quoting_no_data(X, lambda: validate_data(transformer, _added_up(X), reset=reset, **options))


def _of_truths(y: Any) -> Any:
    """Return labels that are objects as booleans, if each of them is one: scikit-learn takes objects for text alone."""
    if str(getattr(y, "dtype", "")) != "object":
        return y
    labels = np.asarray(y)
    return labels.astype(bool) if labels.size and all(isinstance(label, (bool, np.bool_)) for label in labels.flat) else y


def refuse_dates(X: Any) -> None:
    """Raise TypeError for columns of dates or durations: their unit, and so their numbers, may depend on a single record."""
    dtypes, names = getattr(X, "dtypes", None), _column_names(X) or []
    found = list(dtypes) if dtypes is not None and hasattr(dtypes, "__iter__") else [getattr(X, "dtype", None)]
    of_time = [getattr(dtype, "kind", "") in ("m", "M") or bool(getattr(dtype, "is_temporal", bool)()) for dtype in found]
    if any(of_time):
        named = f" in the columns {list(compress(names, of_time))}" if names else ""
        raise TypeError(
            f"X has dates or durations{named}, which are not numeric; expected numbers, such as days since a public date."
        )


def keep_names(estimator: Any, X: Any) -> None:
    """Set the column names of a frame on the estimator if scikit-learn did not."""
    if not hasattr(estimator, "feature_names_in_") and _column_names(X) is not None:
        estimator.feature_names_in_ = np.array(_column_names(X), dtype=object)  # polars 2 under scikit-learn < 1.8


def _column_names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, if all are strings."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def quoting_no_data(X: Any, read: Callable[[], Any]) -> Any:
    """Call a reader, and replace error messages of other libraries that may quote data.

    Parameters
    ----------
    X : array-like
        The table that is read; messages use the names of its columns.
    read : callable
        Function that reads the table.

    Returns
    -------
    object
        What the reader returns.

    Raises
    ------
    TypeError, ValueError
        If the reader fails, with a message that quotes no data.
    """
    failure: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with config_context(assume_finite=False), np.errstate(all="ignore"):  # a NaN would show in the model
                result = read()
        except MemoryError:
            raise
        except Exception as error:
            failure = _safe(error, X)
    if any(issubclass(warning.category, DataConversionWarning) for warning in caught):
        warn("A column-vector y was passed when a 1d array was expected: y.ravel() makes one.", DataConversionWarning)
    if failure is not None:
        raise failure  # outside of the except clause, so that the original is not its context
    return result


def _safe(error: Exception, X: Any) -> Exception:
    """Return an error that quotes no data: the first line of a known message, or one of our rules."""
    text = str(error)
    if text.startswith(OF_FIRST_LABEL):  # at which scikit-learn looks: it would tell its record
        error, text = TypeError(), ""
    for beginning, rule in RULES.items():
        if text.startswith(beginning):
            return ValueError(rule)
    if SAFE.match(text):
        advice = {"Input X": columns_with_gaps(X) + MISSING, "Input y": UNLABELLED}.get(text[:7])
        return type(error)(text.split("\n")[0] + advice if advice else text)
    if isinstance(error, TypeError):
        return TypeError(
            "Unknown label type: y has labels that are missing, or neither all text nor all numbers, or X has objects that are "
            f"neither; each argument must be a string or a number.{UNLABELLED}"
        )
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        return ValueError(f"y has values that cannot be read. {OF_Y}")
    return ValueError(
        f"X ({type(X).__name__}) or y has something that cannot be read; expected a table of finite real numbers as X, and one "
        f"label or number per row as y.{text_columns(X)} "
        'Text in a data frame needs schema="learn", or a schema of public categories, also as '
        "from_schema(schema) of skdp.preprocessing before the estimator, or OneHotEncoder(categories=[...])."
        f"{OF_TEXTS * (not hasattr(X, 'columns'))}{OF_OBJECTS * (isinstance(X, np.ndarray) and X.dtype.hasobject)} {OF_Y}"
    )


def text_columns(X: Any) -> str:
    """Return a sentence that names the columns of a pandas frame whose dtype, a public fact, is not numeric."""
    dtypes: Any = getattr(X, "dtypes", None)
    if not hasattr(dtypes, "items"):
        return ""
    columns = [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
    return f" These columns of X are not numeric: {columns}." if columns else ""


def gaps_in(X: Any) -> list[int]:
    """Return the places of the columns with missing or infinite numbers; none for a table with other defects."""
    try:
        table = sparse.csc_array(X) if sparse.issparse(X) else X
        return [place for place in range(np.shape(table)[1]) if not np.isfinite(_numbers_of(table, place)).all()]
    except Exception:
        return []


def columns_with_gaps(X: Any) -> str:
    """Return a sentence that names the columns with missing or infinite numbers. Column names are public; no row is named.

    The guarantee does not cover such tables: they raise an error before anything is charged.
    """
    if not (gaps := gaps_in(X)):
        return ""
    names = _column_names(X)
    listed, more = first_of([repr(names[place] if names else place) for place in gaps])
    return f" Columns with missing or infinite values: {', '.join(listed)}{more}{'' if names else ', counted from 0'}."


def _numbers_of(table: Any, place: int) -> np.ndarray:
    """Return the stored entries of one column, as float64."""
    if sparse.issparse(table):
        return np.asarray(table.data[table.indptr[place] : table.indptr[place + 1]], dtype=np.float64)
    if hasattr(table, "iloc"):
        return np.asarray(table.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan))
    if hasattr(table, "columns"):
        return np.asarray(table[:, place].cast(float).fill_null(np.nan).to_numpy(), dtype=np.float64)
    return np.asarray(table)[:, place].astype(np.float64)


def _added_up(X: Any) -> Any:
    """Return a COO table with duplicates added up; scikit-learn's conversion adds them in any order (see `_canonical`)."""
    if sparse.issparse(X) and X.format == "coo":
        X = X.copy()
        X.sum_duplicates()
    return X


def _canonical(X: Any) -> Any:
    """Return a sparse table with duplicate entries added up: the norm of a row is computed from its stored entries.

    They are added in the order in which they are stored. The unstable sort of compressed tables could make this order, and so the
    rounded sum, depend on other records.
    """
    if not sparse.issparse(X):
        return X
    X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # drops cached flags, shares the arrays
    X.check_format(full_check=True)  # an index out of range would read other memory
    if not X.has_canonical_format:
        triples = X.tocoo()
        triples.sum_duplicates()
        X = triples.asformat(X.format)
        if not np.isfinite(X.data).all():
            raise ValueError("Input X contains infinity: duplicate entries of the sparse table add up to it.")
    return X


def _encode(y: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    """Return the class numbers of y, in the smallest integer type; None if a label is not among ``labels``."""
    codes = np.empty(len(y), dtype=np.min_scalar_type(-labels.size))
    for start in range(0, len(y), 4096):
        part = y[start : start + 4096]
        found = np.minimum(_positions(part, labels), labels.size - 1)
        if not np.array_equal(labels[found], part):
            return None
        codes[start : start + 4096] = found
    return codes


def _positions(part: np.ndarray, labels: np.ndarray) -> np.ndarray:
    try:
        return np.searchsorted(labels, part)
    except TypeError:  # text and numbers have no common order, so the labels are not among the classes
        return np.full(len(part), labels.size)

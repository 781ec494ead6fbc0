"""Define the bases of the private linear classifiers: reading labels, predicting labels and probabilities."""

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts, LabelReader
from skdp._label_types import event_of
from skdp._progress import with_callbacks
from skdp._validation import check_class_weight, check_classes, check_integer
from skdp.data._predictions import scored, takes_tables
from skdp.estimators._base import DPEstimator
from skdp.estimators._plan import Plan
from skdp.estimators._raw_predictions import raw_predictions
from skdp.estimators._task import Task
from skdp.losses import Logistic, Multinomial
from skdp.preprocessing._schema import Schema
from skdp.privacy.errors import silent
from skdp.privacy.queries import Loss
from skdp.solvers import Problem, SolverResult

MOST_CLASSES = 2**20  # largest number of classes of a plan; a choice


class ClassificationTask(Task):
    """Task of a linear classifier: labels and their weights."""

    classes: Any
    class_weight: Any = None

    @abstractmethod
    def _loss(self, n_classes: int) -> Loss:
        """Return the loss of the raw predictions."""

    def label_set(self) -> Any:
        """Return the public class labels, or None."""
        facts = self.input_schema if self.classes is None else None
        return self.classes if facts is None else facts.classes

    def target_reader(self) -> LabelReader:
        given = self.label_set()
        return LabelReader(None if given is None else check_classes(given))

    def problem_of(self, facts: Facts) -> Problem:
        weights, classes = check_class_weight(self.class_weight, facts.classes), facts.labels
        class_weight = tuple(weights.get(label, 1.0) for label in classes) if weights else None
        return self._problem(facts.n_samples, facts.n_features, self._loss(len(classes)), class_weight=class_weight)

    def usable(self, schema: Schema, learned: Collection[str]) -> Schema:
        """Return a schema in which learned integers have indicators of less weight."""
        columns = {name: facts.lighter() if name in learned else facts for name, facts in schema.columns.items()}
        return super().usable(replace(schema, columns=columns), learned)

    def planned_classes(self, n_classes: int | None) -> tuple[np.ndarray | None, dict[str, Any]]:
        check_integer("n_classes", n_classes, minimum=2, maximum=MOST_CLASSES, optional=True)
        if self.label_set() is not None:
            return check_classes(self.label_set()), {}
        named = list(check_class_weight(self.class_weight))
        number = max(2, len(named)) if n_classes is None else int(n_classes)
        unknown = np.array([*named, *(object() for _ in range(number))], dtype=object)[:number]  # labels nobody named weigh 1
        assumed = n_classes is None and self.estimator.__sklearn_tags__().classifier_tags.multi_class
        return unknown, {"n_classes": f"{number}, assumed: neither classes nor n_classes is given"} if assumed else {}

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        coef, intercept = self.coefficients(plan, result.coef)
        return {**self._labels(facts), "coef_": coef, "intercept_": intercept}

    def _labels(self, facts: Facts) -> dict[str, Any]:
        """Return the sorted classes and, of two, the event, as attributes."""
        assert facts.classes is not None
        return {"classes_": facts.classes, **event_of(self.label_set(), facts.classes)}

    def assumed_of_y(self) -> str:
        if self.label_set() is None:
            return "the label set is read from y: neighbours have the same label set (classes=[...] removes this)"
        return "every label is one of the given classes, all of one type"


class DPClassifier(ClassifierMixin, DPEstimator):
    """Base of the linear classifiers: one raw prediction for two classes, one per class for more.

    Subclasses declare the parameters ``classes`` and ``class_weight`` in addition to those of `DPEstimator`.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    classes : array-like or None, default=None
        All class labels. None reads the label set from y; the guarantee then holds between tables with the same label set.
    class_weight : dict or None, default=None
        Positive weight per class label; a label that is missing has weight 1. The weights must come from public knowledge, not
        from y.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released coefficients; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercept; zero if ``fit_intercept=False``.
    """

    @abstractmethod
    def __init__(self) -> None: ...

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, persons: Any = None, **unsupported: Any) -> Any:
        """Fit the model, spending the budget once.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            {records}
        y : array-like of shape (n_samples,)
            Class labels.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row is, with ``privacy_unit="person"``: an id per row, integers or texts, or the name of a column of a data
            frame or a table in partitions, which is no feature then; or a Dask series beside a Dask frame. Ids are private, and
            nothing keeps them.
        **unsupported : dict
            ``sample_weight``, array-like of shape (n_samples,), where ``max_sample_weight`` is given: weights of the records,
            which are private. Refused else, as all other arguments: they raise a TypeError with the reason.

        Returns
        -------
        self
            The fitted estimator. An interrupted fit leaves it unchanged.
        """
        with silent():
            return self._fit(X, y, unsupported, persons=persons)

    @takes_tables
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the raw predictions.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, one raw prediction per record (the log-odds of a logistic model), positive for ``classes_[1]``; for
            more classes, one per class. It is finite for every finite row.
        """
        check_is_fitted(self)
        raw = self._raw(X)
        return raw[:, 0] if self.classes_.size == 2 else raw

    @takes_tables
    def predict(self, X: Any) -> np.ndarray:
        """Return the class label with the largest raw prediction for each record.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        return self._labels_of(self.decision_function(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of records whose label is predicted, without noise; a table in partitions may name y."""
        return float(super().score(*scored(X, y), sample_weight))

    def _raw(self, X: Any) -> np.ndarray:
        """Return the raw predictions of a table, of shape (n_samples, n_outputs)."""
        return self._raw_of(self._rows_of(X))

    def _raw_of(self, rows: Any) -> np.ndarray:
        """Return the raw predictions of prepared rows, of shape (n_samples, n_outputs)."""
        return raw_predictions(rows, self.coef_.T, self.intercept_)

    def _labels_of(self, raw: np.ndarray) -> np.ndarray:
        """Return the labels that raw predictions stand for."""
        return np.asarray(self.classes_[(raw > 0).astype(np.intp) if raw.ndim == 1 else raw.argmax(axis=1)])


class ProbabilisticTask(ClassificationTask):
    """Task of a classifier whose raw predictions are log-odds."""

    def _loss(self, n_classes: int) -> Loss:
        return Logistic() if n_classes == 2 else Multinomial(n_classes)


class DPProbabilisticClassifier(DPClassifier):
    """Base of classifiers whose raw predictions are log-odds, or logarithms of probabilities up to a constant."""

    @takes_tables
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that sum to 1, columns in the order of ``classes_``.
        """
        return probabilities(self.decision_function(X))

    @takes_tables
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Computed without underflow, columns in the order of ``classes_``.
        """
        raw = self.decision_function(X)
        return np.stack([log_expit(-raw), log_expit(raw)], axis=1) if raw.ndim == 1 else log_softmax(raw, axis=1)


def probabilities(raw: np.ndarray) -> np.ndarray:
    """Return the probability of each class from raw predictions."""
    return np.stack([expit(-raw), expit(raw)], axis=1) if raw.ndim == 1 else softmax(raw, axis=1)


def check_two_classes(n_classes: int, reason: str) -> None:
    """Raise ValueError unless there are two classes; scikit-learn's checks look for the first words of the message."""
    if n_classes != 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: there are "
            f"{n_classes} classes; expected two, {reason}."
        )

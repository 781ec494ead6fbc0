"""Evaluate a fitted model on sensitive test records: counts of classes, or sums of errors."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, TypeVar

from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._docstrings import fill_docstring, quoted
from skdp._label_types import classes_of
from skdp._persons import taken_persons, without_number
from skdp._scikit_learn.callers import protects_persons
from skdp._scikit_learn.copies import BoundToLedgers
from skdp._table_types import as_table, is_lazy
from skdp._validation import check_level, check_truth, shown
from skdp.metrics._definition import ErrorMetric, MetricDefinition
from skdp.metrics._error_kind import kind_of_errors, refuse_bounds
from skdp.metrics._evaluation import Evaluation
from skdp.metrics._kind import (
    FEWEST,
    EvaluationKind,
    budget_of,
    check_noise,
    noise_of,
    refuse_laplace,
    run_evaluation,
)
from skdp.metrics._metrics import CLASSIFICATION, METRICS, OF_EVENT, REGRESSION
from skdp.metrics._reading import (
    MOST_CLASSES,
    MOST_GROUPS,
    group_numbers,
    predicted_classes,
    predictions_of,
    scores_of,
    targets_of,
)
from skdp.metrics._score_kinds import SeveralClasses, kind_of_scores
from skdp.privacy.budget import unit_of
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.errors import silently, warn
from skdp.privacy.ledger.charging import along, in_worker
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.report.statement import PrivacyReport

Definition = TypeVar("Definition", bound=MetricDefinition)
SEVERAL = {name: metric for name, metric in CLASSIFICATION.items() if metric.several}


@fill_docstring(
    of_classes=quoted(CLASSIFICATION),
    of_event=quoted(name for name, metric in CLASSIFICATION.items() if metric.detail == OF_EVENT),
    of_several=quoted(SEVERAL),
    of_errors=quoted(REGRESSION),
    default_of_classes=quoted(name for name, metric in CLASSIFICATION.items() if metric.default),
    default_of_errors=quoted(name for name, metric in REGRESSION.items() if metric.default and not metric.needs_range),
    with_range=quoted(name for name, metric in REGRESSION.items() if metric.needs_range),
)
@silently
def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    metrics: Iterable[str] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    adjacency: str = "replace_one",
    level: float = 0.95,
    error_bound: float | None = None,
    target_bounds: tuple[float, float] | None = None,
    groups: Any = None,
    group_labels: Iterable[Any] | None = None,
    disjoint: bool = False,
    persons: Any = None,
    noise: str = "auto",
    random_state: Any = None,
) -> Evaluation:
    r"""Evaluate a fitted classifier or regressor on sensitive test records, with differential privacy for these.

    All metrics follow from one or two releases, so that several metrics cost one budget. For a classifier, the first shows where
    the log-odds are, and the second counts the test records by class and log-odds. Fewer metrics need less, and have less noise:
    accuracy, log loss or Brier score alone is one sum, and the metrics of predicted classes are four counts. Of a regressor, the
    first finds a bound of the errors, where none is given, and the second sums powers of the errors, clipped to the bound.

    Parameters
    ----------
    model : classifier or regressor
        Fitted, with ``predict_proba`` and two ``classes_``, with ``predict`` and up to 30 ``classes_``, or with ``predict``
        alone; from skdp or any other package. It is assumed to be public.
    X : array-like or data frame of shape (n_samples, n_features)
        Test records.
    y : array-like of shape (n_samples,)
        Their labels, or their targets.
    metrics : iterable of str or None, default=None
        Of a classifier, out of {of_classes}.
        Of these, {of_event} concern the second class, or ``event_`` of a model of skdp.
        Of more than two classes, {of_several} only; `ConfusionMatrixDisplay` shows the matrix that was released.
        Of a regressor, out of {of_errors}; "coverage" is the share of targets at or below the prediction.
        Metrics of deviances, of counts or of positive amounts, are not in one evaluation with those of absolute errors.
        None means {default_of_classes}, or {default_of_errors}, and {with_range} if ``target_bounds`` are given.
    epsilon, delta : float
        Budget of the evaluation. None as ``delta`` means ``max(1 / n_samples**2, 1e-11)``. Laplace noise spends no delta, and is
        taken for ``delta=0``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables of test records are neighbours.
    level : float, default=0.95
        Coverage of the confidence intervals.
    error_bound : float or None, default=None
        Of a regressor: absolute errors, or deviances, beyond this public number count as this number. None finds a bound within
        the budget.
    target_bounds : tuple of float or None, default=None
        Of a regressor: public range of the targets, to which they are clipped. Needed for {with_range}.
    groups : array-like of shape (n_samples,) or None, default=None
        Of a classifier: the group of each record, for metrics of each group (``found.groups``) from the same releases.
    group_labels : iterable or None, default=None
        Public names of all groups; a group may be empty. Needed with ``groups``.
    disjoint : bool, default=False
        Whether nobody in the test records is in the training records, which the report then states.
    persons : array-like of shape (n_samples,), str or None, default=None
        Whose each test record is: an id per row, or the name of a column of X. Persons are protected then, each with all her
        rows, and a row weighs one over their number. None protects single rows.
    noise : {"auto", "laplace", "gaussian"}, default="auto"
        Kind of noise of the evaluation of a classifier. "auto" takes the one with less error at this budget, but Gaussian noise
        under an active ledger: together with a fit it costs less. Regressors have Gaussian noise.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the noise inside `skdp.testing.reproducible_noise`; it changes nothing elsewhere.

    Returns
    -------
    Evaluation
        A mapping from name to `Metric`, with the privacy report.

    Raises
    ------
    TypeError, ValueError
        For a model that is neither a fitted classifier nor a regressor, or that no record fits, labels that it does not know,
        targets that are not finite, missing values if the model takes none, parameters that are not valid, or too few records to
        find a bound of the errors. Nothing is charged then.
    BudgetExceededError
        If an active ledger has too little left.
    PrivacyAccountingError
        In a worker process without an active ledger, for a model that is not of skdp: the ledgers of the process that started it
        are not seen there. Nothing is released then.

    Notes
    -----
    **Privacy.** Log-odds lie in [-6, 6]. The first release of a classifier counts the records in 64 ranges of them and gets a
    fifth of the budget, the second counts by class in 32 ranges that follow from the first. A record is in one cell. With Laplace
    noise the counts are released themselves (`skdp.privacy.queries.ScoreCounts`), and epsilon is the sum over both releases. With
    Gaussian noise their Haar coefficients are (`skdp.privacy.queries.ScoreTree`): a record contributes to L + 1 of them, for
    :math:`2^L` ranges, with the norm :math:`\sqrt{L + 1}`, and squared Gaussian-DP parameters add up. One metric alone is
    `skdp.privacy.queries.LossSums`; accuracy, recall, specificity and precision are `skdp.privacy.queries.ScoreCounts` with two
    ranges. Which release is made follows from public facts. The model is public, so its prediction for a record is a function of
    that record alone: a model that looks at other test records when it predicts breaks this. A record for which the model has no
    prediction decides about its own contribution alone, as an error would be an answer without noise: its log-odds count as 0,
    its class as the first one, its error as the largest one that counts. That holds for probabilities and predictions that are
    not finite, and for an error that a model that is not of skdp raises for some records. Errors that follow from public facts,
    such as the number of columns, are raised.

    Of more than two classes, the release is `skdp.privacy.queries.ClassCounts` of pairs of true and predicted class: a record
    is in one cell.

    Of a regressor, 15 % of the squared Gaussian-DP parameter count the errors in 130 ranges, from which the bound follows
    (`skdp.privacy.queries.TargetHistogram`). The other release is `skdp.privacy.queries.ErrorSums`. For deviances it is
    `skdp.privacy.queries.MomentSums`, of the deviance of each record alone, or also of the deviance from a constant and of the
    target. Then the first release counts the targets, from which their range and the constant follow, and the bound of the
    deviances is that of the target that is furthest from the constant. Without ``target_bounds``, targets are those up to 4e9.
    A prediction that is not positive counts as one just above 0, a negative count as 0, and an amount of 0 or less has the
    largest deviance that counts: none of them is an error, which would tell of a record.

    With groups, the last release has numbers by group and class. A record is in one group, so the norm is the same.
    Counts of all records are sums over the groups, whose noise grows with the root of the number of groups. Sizes of groups are
    not public.

    **Intervals** cover the noise and the sampling of the test records, or of persons, as if these were drawn independently. With
    persons they are wider than needed where the rows of a person differ, but for a mean of losses that is evaluated alone. Shares
    have Fieller's interval, the area under the ROC curve too, with the variance of DeLong et al. (1988) and at least half of that
    of Hanley and McNeil (1982). Values and intervals are clipped to the range of the metric; that of the log loss ends at 6.0025,
    the loss of a log-odds of 6. No value is given where an interval is wider than 0.5, or where the number of records of which a
    metric is a share is below 5 standard deviations of its noise. Log loss and Brier score count log-odds beyond 6 as 6. They,
    the area under the curve and the average precision are extrapolated to ranges of no width. The average precision has an
    interval by the delta method, is corrected for the bias of counts that are made non-negative, and is "not determined" below 20
    standard deviations of the noise of the number of positive records.

    Metrics of a regressor are those of the clipped errors; their bound is ``found.table.error_bound``. MAE and RMSE have
    intervals by normal theory, :math:`R^2` has Fieller's. MAE and RMSE are "not determined" where an interval is wider than half
    the bound. The same holds for mean deviances, and for :math:`D^2`, the share of the deviance of a constant that the model
    explains. It is scikit-learn's ``d2_tweedie_score`` but for the bounds: the constant is the mean of the targets that are
    clipped to the range that was found.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(40_000, 3))
    >>> y = (X @ [4, -2, 1] + rng.logistic(size=40_000) / 2 > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, data_norm=1.0, classes=[0, 1]).fit(X[:20_000], y[:20_000])
    >>> found = evaluate(model, X[20_000:], y[20_000:], epsilon=1.0, disjoint=True)
    >>> bool(found["roc_auc"].low < found["roc_auc"].value < found["roc_auc"].high)
    True

    A regressor, whose targets lie in a public range:

    >>> from skdp import DPLinearRegression
    >>> target = np.clip(X[:, 0] + 0.1 * rng.normal(size=40_000), -1, 1)
    >>> model = DPLinearRegression(epsilon=1.0, data_norm=1.0, target_bounds=(-1, 1)).fit(X[:20_000], target[:20_000])
    >>> found = evaluate(model, X[20_000:], target[20_000:], target_bounds=(-1, 1), disjoint=True)
    >>> list(found), found.table.error_bound > 0.2
    (['mae', 'rmse', 'r2'], True)
    """
    if persons is not None and is_lazy(X):
        raise TypeError(
            "persons with a table in partitions, of which the model cannot predict for one person after the other; expected "
            "test records in memory, as a data frame or an array."
        )
    X, group = taken_persons("record" if persons is None else "person", "evaluate", as_table(X), y, persons)
    del persons
    unit = "record" if group is None else "person"
    if group is not None and group.n_persons < FEWEST:
        raise ValueError(f"There are fewer than {FEWEST} persons with test records, of which no metric could be told.")
    if group is not None:  # a number is a place in the tables that the model predicts for
        group = group.in_secret_order(NoiseSource(random_state).key())
    with without_number(None if group is None else len(group.numbers)):
        _warn_of_unit(model, unit)
        _warn_of_exposure(model)
        noise = noise_of(noise, unit)
        check_level(level)
        check_noise(noise, delta)
        check_truth("disjoint", disjoint)
        facts: dict[str, Any] = {
            "level": float(level),
            "model": type(model).__name__,
            "disjoint": bool(disjoint),
            "random_state": random_state,
        }
        with along(_ledgers_of(model)):
            if _is_regressor(model):
                of_errors = _chosen(metrics, REGRESSION, target_bounds)
                moments = kind_of_errors(of_errors, error_bound, target_bounds)
                refuse_laplace(noise)
                if groups is not None or group_labels is not None:
                    raise ValueError("groups and group_labels are for classifiers; expected None for a regressor.")
                if isinstance(model, BaseEstimator):
                    check_is_fitted(model)
                targets = targets_of(y)
                predictions = predictions_of(model, X, len(targets), group)
                records = moments.records(targets, predictions).of_persons(group)
                budget = budget_of(records.n_samples, epsilon, delta, adjacency, unit=unit)
                return run_evaluation(moments, records, of_errors, budget, noise="gaussian", **facts)
            refuse_bounds(error_bound, target_bounds)
            if hasattr(model, "classes_") and len(model.classes_) > 2:
                chosen = _chosen(metrics, SEVERAL)
                if groups is not None or group_labels is not None:
                    raise ValueError("groups and group_labels are for two classes; expected None for more.")
                true, predicted = predicted_classes(model, X, y, group)
                kind: EvaluationKind = SeveralClasses(len(model.classes_))
                records, classes, names = ScoredRecords(predicted, true), tuple(model.classes_), ()
            else:
                chosen = _chosen(metrics, CLASSIFICATION)
                log_odds, labels = scores_of(model, X, y, group)
                numbers, names = group_numbers(groups, group_labels, len(labels))
                kind = kind_of_scores(chosen, len(names), unit)
                records, classes = ScoredRecords(log_odds, labels, numbers), classes_of(model)
            records = records.of_persons(group)
            budget = budget_of(records.n_samples, epsilon, delta, adjacency, pure=True, unit=unit)
            return run_evaluation(kind, records, chosen, budget, noise=noise, classes=classes, group_labels=names, **facts)


def plan_evaluation(
    n_samples: int,
    *,
    metrics: Iterable[str] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    adjacency: str = "replace_one",
    error_bound: float | None = None,
    target_bounds: tuple[float, float] | None = None,
    n_groups: int = 0,
    n_classes: int = 2,
    privacy_unit: str = "record",
    noise: str = "auto",
) -> PrivacyReport:
    """Return the report of an evaluation before any data is touched.

    Parameters
    ----------
    n_samples : int
        Number of test records, or of persons.
    metrics : iterable of str or None, default=None
        Those of a classifier, or those of a regressor, as of `evaluate`; None means those of a classifier.
    epsilon, delta : float
        Budget; None as ``delta`` means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables of test records are neighbours.
    error_bound, target_bounds : float or None, and tuple of float or None, default=None
        Public bounds of the evaluation of a regressor.
    n_groups : int, default=0
        Number of groups of the evaluation of a classifier; 0 without groups.
    n_classes : int, default=2
        Number of classes of the classifier.
    privacy_unit : {"record", "person"}, default="record"
        What is protected; "person" plans an evaluation with ``persons``.
    noise : {"auto", "laplace", "gaussian"}, default="auto"
        Kind of noise of the evaluation of a classifier, as of `evaluate`.

    Returns
    -------
    PrivacyReport
        Spent budget, releases and noise.

    Raises
    ------
    TypeError, ValueError
        For parameters that are not valid, or too few records to find a bound of the errors.
    """
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < FEWEST:
        raise ValueError(f"n_samples={shown(n_samples)}; expected an integer from {FEWEST} on.")
    noise = noise_of(noise, unit_of(privacy_unit))
    check_noise(noise, delta)
    chosen = _chosen(metrics, CLASSIFICATION if metrics is None else METRICS)
    names = tuple(metric.name for metric in chosen)
    of_errors = any(isinstance(metric, ErrorMetric) for metric in chosen)
    budget = budget_of(int(n_samples), epsilon, delta, adjacency, pure=not of_errors, unit=privacy_unit)
    if of_errors:
        refuse_laplace(noise)
        moments = kind_of_errors(_chosen(names, REGRESSION), error_bound, target_bounds)
        return moments.plan(int(n_samples), budget, "gaussian").report(names)
    refuse_bounds(error_bound, target_bounds)
    if not isinstance(n_groups, Integral) or isinstance(n_groups, bool) or not 0 <= n_groups <= MOST_GROUPS:
        raise ValueError(f"n_groups={shown(n_groups)}; expected an integer from 0 to {MOST_GROUPS}.")
    if not isinstance(n_classes, Integral) or isinstance(n_classes, bool) or not 2 <= n_classes <= MOST_CLASSES:
        raise ValueError(f"n_classes={shown(n_classes)}; expected an integer from 2 to {MOST_CLASSES}.")
    if n_classes > 2:
        names = tuple(metric.name for metric in _chosen(metrics, SEVERAL))
        kind: EvaluationKind = SeveralClasses(int(n_classes))
    else:
        kind = kind_of_scores(_chosen(names, CLASSIFICATION), int(n_groups), privacy_unit)
    return kind.plan(int(n_samples), budget, noise).report(names)


def _chosen(metrics: Iterable[str] | None, known: Mapping[str, Definition], target_bounds: Any = None) -> tuple[Definition, ...]:
    """Return the entries of the metrics that are asked for, or of those that are the default."""
    if metrics is None:
        return tuple(
            metric for metric in known.values() if metric.default and (not metric.needs_range or target_bounds is not None)
        )
    given = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    unknown = [name for name in given if name not in known]
    if unknown or not given:
        raise ValueError(f"metrics={shown(list(given))}; expected some of {', '.join(known)}.")
    return tuple(known[name] for name in dict.fromkeys(given))


def _ledgers_of(model: Any) -> tuple[tuple[str, str], ...] | None:
    """Return tokens of the ledgers that a model of skdp, or one that holds such a model, brought into a worker process.

    None if it brought none: a model from a file, or one that the worker has fitted, does not know whether there are some.
    """
    parts = (model, *(model.get_params(deep=True).values() if hasattr(model, "get_params") else ()))
    bound = [part._ledgers for part in parts if isinstance(part, BoundToLedgers)] if in_worker() else []
    return tuple(token for tokens in bound for token in tokens) or None


def _is_regressor(model: Any) -> bool:
    """Whether a model predicts, and is no classifier."""
    classes = hasattr(model, "predict_proba") or hasattr(model, "classes_")
    return hasattr(model, "predict") and not classes and not (isinstance(model, BaseEstimator) and is_classifier(model))


def _warn_of_exposure(model: Any) -> None:
    """Warn, before anything is charged, of a model whose predictions are per unit of exposure."""
    fitted = getattr(model, "best_estimator_", model)
    fitted = fitted[-1] if hasattr(fitted, "steps") else fitted
    if getattr(getattr(fitted, "calibration_", None), "exposure", None) is not None:
        warn(
            "The model was fitted with exposures, so its predictions are per unit of exposure, and this evaluation compares them "
            "with the targets of records whatever their exposures are. For exposures w, use "
            "skdp.metrics.dp_mean_poisson_deviance(y, w * model.predict(X)).",
            UserWarning,
        )


def _warn_of_unit(model: Any, unit: str) -> None:
    """Warn, before anything is charged, if a model that protects persons is evaluated on single rows."""
    if unit == "record" and protects_persons(model):
        warn(
            "The model protects persons, and this evaluation protects single rows: a person with k of them is protected less, by "
            "about k times the epsilon. Use evaluate(..., persons=ids).",
            UserWarning,
        )

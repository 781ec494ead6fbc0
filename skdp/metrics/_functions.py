"""Score predictions privately, as functions of labels and predictions in scikit-learn's manner."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skdp._data_validation import quoting_no_data
from skdp._docstrings import fill_docstring
from skdp._validation import check_level, shown
from skdp.metrics._definition import ClassMetric, ErrorMetric, MetricDefinition
from skdp.metrics._error_kind import kind_of_errors
from skdp.metrics._evaluation import Metric
from skdp.metrics._kind import budget_of, check_noise, run_evaluation
from skdp.metrics._reading import class_numbers, column_of, log_odds_of, targets_of
from skdp.metrics._score_kinds import kind_of_scores
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.errors import silently


def score_function(metric: MetricDefinition) -> Callable[..., Metric]:
    """Return the private twin of a function of scikit-learn.

    Parameters
    ----------
    metric : ClassMetric or ErrorMetric
        An entry that names the function.

    Returns
    -------
    callable
        Its name begins with "dp_".
    """
    score = _of_errors(metric) if isinstance(metric, ErrorMetric) else _of_classes(metric)  # type: ignore[arg-type]
    score.__name__ = score.__qualname__ = name = f"dp_{metric.function}"
    score.__module__ = "skdp.metrics"
    return fill_docstring(what=f"{metric.title}{metric.detail}", twin=metric.function, name=name)(score)


def _of_classes(metric: ClassMetric) -> Callable[..., Metric]:
    """Return the function of a metric of two classes."""

    @silently
    def score(
        y_true: Any,
        y_score: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "replace_one",
        level: float = 0.95,
        classes: Any = (0, 1),
        noise: str = "auto",
        random_state: Any = None,
    ) -> Metric:
        """Estimate the {what} on sensitive test records, with differential privacy for these.

        This is `sklearn.metrics.{twin}` with noise.
        Each call makes the best release for this score and charges the active ledgers. `evaluate` computes several metrics from
        one release.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of the test records.
        y_score : array-like of shape (n_samples,) or (n_samples, 2)
            Predicted probabilities of the second class, or of both classes, by a public model. Numbers outside [0, 1] count as
            the nearer end, and nan as 1/2: an error would reveal a record.
        epsilon, delta : float
            Budget of this call. None as ``delta`` means ``max(1 / n_samples**2, 1e-11)``.
        adjacency : {"replace_one", "zero_out"}, default="replace_one"
            Which tables of test records are neighbours.
        level : float, default=0.95
            Coverage of the confidence interval.
        classes : sequence of two labels, default=(0, 1)
            The classes, which are public; the second is the positive one.
        noise : {"auto", "laplace", "gaussian"}, default="auto"
            Kind of noise, as of `evaluate`.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the noise inside `skdp.testing.reproducible_noise`; it changes nothing elsewhere.

        Returns
        -------
        Metric
            The estimate with its interval; ``float`` returns the estimate. It is nan if the interval is wider than 0.5.

        Raises
        ------
        TypeError, ValueError
            For parameters or labels that are not valid, or scores of another shape. Nothing is charged then.
        BudgetExceededError
            If an active ledger has too little left.

        See Also
        --------
        evaluate : Several metrics for one budget. Its notes state the guarantee and how intervals are computed.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp.metrics import {name}
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(20_000)
        >>> y = (rng.random(20_000) < p).astype(int)
        >>> found = {name}(y, p, epsilon=1.0)
        >>> bool(found.low < float(found) < found.high)
        True
        """
        check_level(level)
        check_noise(noise, delta)
        known = tuple(classes)
        if len(known) != 2 or known[0] == known[1]:
            raise ValueError(f"classes={shown(known)}; expected two different labels.")
        labels = class_numbers(y_true, known, "classes=")
        scores = quoting_no_data(y_score, lambda: np.asarray(y_score, dtype=np.float64))
        scores = scores[:, 1] if scores.ndim == 2 and scores.shape[1] == 2 else scores
        if scores.shape != labels.shape:
            raise ValueError("y_true and y_score differ in length; expected a probability per label, or two.")
        found = run_evaluation(
            kind_of_scores((metric,), 0, "record"),
            ScoredRecords(log_odds_of(scores), labels),
            (metric,),
            budget_of(len(labels), epsilon, delta, adjacency, pure=True),
            noise=noise,
            level=float(level),
            model="unnamed",
            classes=known,
            random_state=random_state,
        )
        return found[metric.name]

    return score


def _of_errors(metric: ErrorMetric) -> Callable[..., Metric]:
    """Return the function of a metric of a regression."""

    @silently
    def score(
        y_true: Any,
        y_pred: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        adjacency: str = "replace_one",
        level: float = 0.95,
        error_bound: float | None = None,
        target_bounds: tuple[float, float] | None = None,
        random_state: Any = None,
    ) -> Metric:
        """Estimate the {what} on sensitive test records, with differential privacy for these.

        This is `sklearn.metrics.{twin}` with noise.
        Each call releases sums of errors and charges the active ledgers. `evaluate` computes several metrics from one release,
        for the budget of one of these functions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Targets of the test records.
        y_pred : array-like of shape (n_samples,)
            Predictions of a public model. One that is not finite has the largest error, or deviance, that counts.
        epsilon, delta : float
            Budget of this call. None as ``delta`` means ``max(1 / n_samples**2, 1e-11)``.
        adjacency : {"replace_one", "zero_out"}, default="replace_one"
            Which tables of test records are neighbours.
        level : float, default=0.95
            Coverage of the confidence interval.
        error_bound : float or None, default=None
            Absolute errors, or deviances, beyond this public number count as this number. None finds a bound within the budget.
        target_bounds : tuple of float or None, default=None
            Public range of the targets, to which they are clipped. R2 needs it.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the noise inside `skdp.testing.reproducible_noise`; it changes nothing elsewhere.

        Returns
        -------
        Metric
            The estimate of the clipped errors with its interval; ``float`` returns the estimate. It is nan if the interval is too
            wide.

        Raises
        ------
        TypeError, ValueError
            For parameters or targets that are not valid, or too few records to find a bound. Nothing is charged then.
        BudgetExceededError
            If an active ledger has too little left.

        See Also
        --------
        evaluate : Several metrics for one budget. Its notes state the guarantee and how intervals are computed.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp.metrics import {name}
        >>> rng = np.random.default_rng(0)
        >>> prediction = rng.uniform(1, 5, 20_000)
        >>> y = np.clip(prediction + rng.normal(size=20_000), 0.5, 6)
        >>> found = {name}(y, prediction, epsilon=1.0, error_bound=4.0, target_bounds=(0.5, 6))
        >>> bool(found.low < float(found) < found.high)
        True
        """
        check_level(level)
        kind = kind_of_errors((metric,), error_bound, target_bounds)
        targets = targets_of(y_true)
        predictions = column_of(quoting_no_data(y_pred, lambda: np.asarray(y_pred, dtype=np.float64)), len(targets))
        found = run_evaluation(
            kind,
            kind.records(targets, predictions),
            (metric,),
            budget_of(len(targets), epsilon, delta, adjacency),
            noise="gaussian",
            level=float(level),
            model="unnamed",
            random_state=random_state,
        )
        return found[metric.name]

    return score

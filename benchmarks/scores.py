"""Scores of a fitted model on test records, the time of a fit, and its memory."""

import time
import tracemalloc
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from benchmarks.tables import Table

__all__ = ["CHOSEN_BY", "SCORES", "Score", "calibration_error", "fit_and_score", "megabytes"]

BINS = 15


@dataclass(frozen=True)
class Score:
    """How a score is shown.

    Parameters
    ----------
    label : str
        In tables and plots.
    digits : int, default=3
        After the point.
    """

    label: str
    digits: int = 3


SCORES = {
    "classification": {
        "auc": Score("AUC", 4),
        "accuracy": Score("accuracy"),
        "log_loss": Score("log loss"),
        "calibration_error": Score("calibration error"),
    },
    "regression": {"r2": Score("R2")},
}
CHOSEN_BY = {"classification": "auc", "regression": "r2"}


def fit_and_score(model: BaseEstimator, table: Table) -> dict[str, float]:
    """Fit a model, and return its test scores and the time of the fit.

    Parameters
    ----------
    model : BaseEstimator
        Fitted in place.
    table : Table
        Training and test part.

    Returns
    -------
    dict of float
        The scores of the task, and ``fit_seconds``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected here: large epsilons, too few steps
        start = time.perf_counter()
        model.fit(table.X_train, table.y_train)
        seconds = time.perf_counter() - start
    if table.task == "regression":
        return {"r2": r2_score(table.y_test, model.predict(table.X_test)), "fit_seconds": seconds}
    probability = model.predict_proba(table.X_test)[:, 1]
    rank = model.decision_function(table.X_test) if hasattr(model, "decision_function") else probability
    return {
        "auc": roc_auc_score(table.y_test, rank),
        "accuracy": float(np.mean(model.predict(table.X_test) == table.y_test)),
        "log_loss": log_loss(table.y_test, np.clip(probability, 1e-15, 1 - 1e-15), labels=[0, 1]),
        "calibration_error": calibration_error(table.y_test, probability),
        "fit_seconds": seconds,
    }


def calibration_error(y: np.ndarray, probability: np.ndarray) -> float:
    r"""Return the expected calibration error of the probability of the label 1.

    The records fall into 15 bins of equal width by their probability; in each, the mean probability is compared with the share of
    the label 1, and :math:`\sum_b (n_b / n) |\bar p_b - \bar y_b|` is the error. Zero is perfect.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels 0 and 1.
    probability : ndarray of shape (n_samples,)
        Of the label 1.

    Returns
    -------
    float
        Between 0 and 1.
    """
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=probability - y, minlength=BINS)
    return float(np.abs(gaps).sum() / len(y))


def megabytes(model: BaseEstimator, table: Table) -> float:
    """Return the peak memory that a fit adds to the table, in millions of bytes.

    It is what ``tracemalloc`` sees, which NumPy reports to and compiled code beside NumPy does not. Tracing slows a fit down, so
    this is a fit of its own.

    Parameters
    ----------
    model : BaseEstimator
        Fitted in place.
    table : Table
        Of which the training part is used.

    Returns
    -------
    float
        The peak.
    """
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table.X_train, table.y_train)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()

"""Compute the scores of a fitted model on test records, which the command line prints."""

from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import mean_pinball_loss, median_absolute_error, r2_score, roc_auc_score

from skdp.estimators import DPAUCMaximizer, DPQuantileRegressor


def scores(fitted: Any, X: Any, y: np.ndarray) -> str:
    """Return a line with the scores on test records, computed without noise, and those of a constant prediction.

    Parameters
    ----------
    fitted : Pipeline
        Its last step is a fitted estimator.
    X : DataFrame
        Test records.
    y : ndarray of shape (n_samples,)
        Their targets.

    Returns
    -------
    str
        The line.
    """
    text = (_of_numbers if is_regressor(fitted) else _of_labels)(fitted, X, y)
    return f"On {len(y)} test records: {text} (computed without noise: not private, for your eyes only)"


def _of_labels(fitted: Any, X: Any, y: np.ndarray) -> str:
    counts = np.unique(y, return_counts=True)[1]
    both = fitted.classes_.size == 2 and len(counts) == 2
    auc = f"AUC {roc_auc_score(y == fitted.classes_[1], fitted.decision_function(X)):.4f}" if both else ""
    if isinstance(fitted[-1], DPAUCMaximizer):
        return f"{auc}; chance alone 0.5000" if auc else "no AUC, because all are of one class"
    parts = [f"accuracy {np.mean(fitted.predict(X) == y):.4f}", auc]
    return f"{', '.join(filter(None, parts))}; the larger class alone {counts.max() / counts.sum():.4f}"


def _of_numbers(fitted: Any, X: Any, y: np.ndarray) -> str:
    predicted, model = fitted.predict(X), fitted[-1]
    if isinstance(model, DPQuantileRegressor):
        constant = np.full(len(y), np.quantile(y, model.quantile))
        loss, alone = (mean_pinball_loss(y, values, alpha=model.quantile) for values in (predicted, constant))
        covered = f"{np.mean(y <= predicted):.4f} of the targets are at or below the prediction"
        return f"{covered} ({model.quantile:g} is asked for), pinball loss {loss:.4g}; a constant alone {alone:.4g}"
    error, alone = (median_absolute_error(y, values) for values in (predicted, np.full(len(y), np.median(y))))
    score = r2_score(y, predicted) if len(y) > 1 else float("nan")
    return f"R2 {score:.4f}, median absolute error {error:.4g}; a constant alone: R2 0, median absolute error {alone:.4g}"

"""Fits that ask every kind of sum over all records."""

import numpy as np

from skdp.estimators import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPAUCMaximizer,
    DPConstrainedRegression,
    DPGradientBoostingClassifier,
    DPGradientBoostingRegressor,
    DPGroupDROClassifier,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    DPMultinomialNB,
    DPQuantileRegressor,
)
from skdp.privacy.data.summation import BLOCK
from skdp.solvers import InferenceDescent, Newton, SufficientStatistics

__all__ = ["fits"]

N, D = 2 * BLOCK + 100, 4


def fits():
    """Models with their data: X, y and, of one, groups."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.4, 0.4, size=(N, D))
    score = X @ rng.normal(size=D)
    classes, numbers, groups = (score > 0).astype(int), np.clip(score, -1, 1), np.arange(N) % 3
    two, bounds = (
        {"epsilon": 2.0, "classes": [0, 1], "data_norm": 1.0},
        {"epsilon": 2.0, "target_bounds": (-1, 1), "data_norm": 1.0},
    )
    for solver in ("auto", "newton", Newton(hessian="direction")):
        yield DPLogisticRegression(solver=solver, **two), X, classes
    yield DPLogisticRegression(**{**two, "epsilon": 0.02}), X, classes  # calibrated by counts
    yield DPLogisticRegression(epsilon=2.0, classes=[0, 1, 2], data_norm=1.0), X, np.digitize(score, [-0.1, 0.1])
    yield DPConstrainedRegression(solver="frank_wolfe", constraint="l1", alpha=0.1, fit_intercept=False, **bounds), X, numbers
    for solver in ("auto", SufficientStatistics(adaptive=True)):
        yield DPLinearRegression(solver=solver, **bounds), X, numbers
    yield DPLinearRegression(**{**bounds, "target_bounds": (0, 9), "link": "log_count"}), X, np.floor(9 * np.abs(numbers))
    yield DPLinearRegression(solver=InferenceDescent(5, robust=True), **bounds), X, numbers
    yield DPLinearRegression(**{**bounds, "epsilon": 1e-4}), X, numbers  # an intercept alone
    for fit_intercept in (True, False):
        yield DPQuantileRegressor(epsilon=2.0, data_norm=1.0, fit_intercept=fit_intercept), X, 50 * numbers
    for solver in ("moments", "sgda", "privatediff"):
        yield DPAUCMaximizer(solver=solver, **two), X, classes
    yield DPMultinomialNB(epsilon=2.0, classes=[0, 1]), np.abs(X), classes
    yield DPPCA(epsilon=2.0, feature_bounds=0.4), X, classes
    yield DPGroupDROClassifier(**two), X, classes, groups
    yield DPAdditiveClassifier(epsilon=20.0, feature_bounds=0.4, classes=[0, 1], knots="private"), X, classes
    yield DPAdditiveRegressor(epsilon=20.0, feature_bounds=0.4, target_bounds=(-1, 1), inference=True), X, numbers
    yield DPGradientBoostingClassifier(epsilon=20.0, feature_bounds=0.4, classes=[0, 1, 2]), X, np.digitize(score, [-0.1, 0.1])
    for adjacency in ("replace_one", "zero_out"):
        yield DPKMeans(3, epsilon=2.0, adjacency=adjacency, feature_bounds=0.4), X, classes
    yield DPGradientBoostingRegressor(epsilon=20.0, feature_bounds=0.4, target_bounds=(-1, 1)), X, numbers

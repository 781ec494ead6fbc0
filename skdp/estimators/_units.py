"""Interpret the bounds of the features of a linear model: as units of the columns, or as bounds in the units of X."""

import math
from typing import Any

import numpy as np

from skdp._validation import check_feature_bounds, column_labels
from skdp.privacy.data.column_scaling import ColumnScaling
from skdp.solvers import SOLVERS, Solver

__all__ = ["described_units", "row_facts", "scaling_of"]


def row_facts(estimator: Any, n_features: int) -> dict[str, Any]:
    """Return the public facts about the rows behind the oracle, by field name of `Problem`."""
    feature_bounds, row_norm = estimator._public_rows()
    bounds = check_feature_bounds(feature_bounds, n_features)
    largest: Any = None if bounds is None else np.abs(bounds).max(axis=-1).tolist()
    largest = 1.0 if _scales_columns(estimator) else tuple(largest) if isinstance(largest, list) else largest
    data_norm = _longest_row(largest, n_features) if row_norm is None else float(row_norm)
    return {"n_features": n_features, "data_norm": data_norm, "feature_bounds": largest}


def scaling_of(estimator: Any, n_features: int, names: Any) -> ColumnScaling | None:
    """Return the map of the columns that ``feature_bounds`` define; None if they do not scale."""
    if not _scales_columns(estimator):
        return None
    bounds = check_feature_bounds(estimator._public_rows()[0], n_features, column_labels(names, n_features))
    return ColumnScaling.of_bounds(np.broadcast_to(np.asarray(bounds), (n_features, 2)), shifts=bool(estimator.fit_intercept))


def described_units(estimator: Any) -> dict[str, str]:
    """Return what the report says about the columns."""
    if not _scales_columns(estimator):
        return {}
    return {"columns": "clipped to feature_bounds and divided by the larger one; data_norm is in these units"}


def _scales_columns(estimator: Any) -> bool:
    """Return whether ``feature_bounds`` scale the columns.

    They do not if the coefficients are constrained in the units of X, or if the solver itself uses the bounds.
    """
    named = SOLVERS.get(estimator.solver) if isinstance(estimator.solver, str) else estimator.solver
    bounded = isinstance(named, (type, Solver)) and getattr(named, "uses_bounds", False)
    return estimator._public_rows()[0] is not None and estimator._constraint() is None and not bounded


def _longest_row(bounds: float | tuple[float, ...] | None, n_features: int) -> float:
    """Return the largest Euclidean norm of a row whose features are within their bounds, or within 1 without bounds."""
    if isinstance(bounds, tuple):
        return float(np.linalg.norm(bounds))
    return math.sqrt(n_features) * (1.0 if bounds is None else bounds)

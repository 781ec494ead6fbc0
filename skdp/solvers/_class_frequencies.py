"""How frequent the classes are: the question, and what a solver makes of the noisy answer."""

import math
from typing import cast

import numpy as np

from skdp.privacy.queries import ClassCounts, ClassLoss, LabelSum
from skdp.solvers._base import Problem

__all__ = ["class_frequencies", "is_binary", "labels_query"]

LEAST_DIFFERENCE = 0.5  # however noisy, a released difference of the class frequencies may be this large: its sign counts


def is_binary(problem: Problem) -> bool:
    """Tell whether there is one raw prediction, for two classes."""
    return problem.loss.n_outputs == 1


def labels_query(problem: Problem) -> LabelSum | ClassCounts:
    """Return the question: for two classes a difference, else counts."""
    return LabelSum() if is_binary(problem) else ClassCounts(problem.loss.n_outputs)


def class_frequencies(problem: Problem, counts: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """Return the intercept that fits the released class frequencies, and how balanced these are: 1 for equal ones."""
    if is_binary(problem):
        limit = max(1 - max(2 / problem.n_samples, noise), LEAST_DIFFERENCE)
        difference = float(np.clip(counts[0], -limit, limit))
        shares = np.array([1 - difference, 1 + difference]) / 2
        balance = math.sqrt(1 - difference**2)
    else:
        shares = np.maximum(counts, min(max(1 / problem.n_samples, noise / 2), 1 / problem.loss.n_outputs))
        shares /= shares.sum()
        balance = math.sqrt(2 / problem.loss.n_outputs)
    weighted = shares if problem.class_weight is None else shares * problem.class_weight
    return cast(ClassLoss, problem.loss).constant(weighted), balance

"""Provide the query for the class frequencies, and the settings that follow from its noisy answer."""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from skdp.privacy.queries import ClassCounts, ClassLoss, LabelSum
from skdp.solvers._base import Problem
from skdp.solvers.minimax._auc_problem import AUCProblem

# Largest absolute difference of the class frequencies that is believed however noisy it is: a fit that sees nothing else should
# still predict the larger class. A choice; a smaller value predicts it less often on small tables.
LEAST_DIFFERENCE = 0.5
# Share by which a raw prediction may gather less noise at class_balance=1 than at 0. Chosen between the values that did best for
# both on mammography, bank, ijcnn1 and spambase (docs/defaults.md, "Rankings"). A larger value makes shorter paths.
FEWER = 1 / 3


@dataclass(frozen=True)
class ClassFrequencies:
    """Settings of the steps that follow from the class frequencies.

    Parameters
    ----------
    start : ndarray of shape (n_outputs,)
        Best constant intercept.
    balance : float
        Factor of the noise that a raw prediction may gather: 1 for equal frequencies, less for a rare class.
    class_weight : tuple of float or None, default=None
        Factor of a record's gradient per class, at most 1; None unless the larger class weighs less.
    mean_weight : float, default=1.0
        Mean of that factor over the records.
    shares : tuple of float, default=()
        Frequencies of the classes.
    """

    start: np.ndarray
    balance: float
    class_weight: tuple[float, ...] | None = None
    mean_weight: float = 1.0
    shares: tuple[float, ...] = ()


def is_binary(problem: Problem) -> bool:
    """Return whether there is one raw prediction, for two classes."""
    return problem.loss.n_outputs == 1


def public_rate(problem: Problem) -> float | None:
    """Return the share of the second of two classes where it is public."""
    return problem.positive_rate if isinstance(problem, AUCProblem) else None


def labels_query(problem: Problem) -> LabelSum | ClassCounts | None:
    """Return the query: for two classes a difference, else counts; None where the frequencies are public."""
    if public_rate(problem) is not None:
        return None
    return LabelSum() if is_binary(problem) else ClassCounts(problem.loss.n_outputs)


def class_frequencies(problem: Problem, counts: np.ndarray | None, noise: float) -> ClassFrequencies:
    """Return the settings from the released frequencies, or from the public one of the second of two classes.

    Parameters
    ----------
    problem : Problem
        Public facts.
    counts : ndarray or None
        Answer to `labels_query` over n; None for public frequencies.
    noise : float
        Standard deviation of the answer's noise, over n.

    Returns
    -------
    ClassFrequencies
        Settings in which no class is rarer than the noise, or than one record.
    """
    n_outputs = problem.loss.n_outputs
    if is_binary(problem):
        difference = counts[0] if counts is not None else 2 * cast(float, public_rate(problem)) - 1
        # No class is rarer than one record, or half the noise of the difference. The balance is 2 sqrt(p (1 - p)).
        limit = max(1 - max(2 / problem.n_samples, noise), LEAST_DIFFERENCE)
        difference = float(np.clip(difference, -limit, limit))
        shares = np.array([1 - difference, 1 + difference]) / 2
        balance = math.sqrt(1 - difference**2)
    else:
        shares = np.maximum(cast(np.ndarray, counts), min(max(1 / problem.n_samples, noise / 2), 1 / n_outputs))
        shares /= shares.sum()
        balance = math.sqrt(2 / n_outputs)
    weighted = shares if problem.class_weight is None else shares * problem.class_weight
    if isinstance(problem, AUCProblem) and problem.class_balance:
        return _balanced(problem, shares, weighted)
    return ClassFrequencies(cast(ClassLoss, problem.loss).constant(weighted), balance, shares=tuple(shares.tolist()))


def _balanced(problem: AUCProblem, shares: np.ndarray, weighted: np.ndarray) -> ClassFrequencies:
    """Return the settings where the larger class weighs ``(p_min / p_maj)^b``, before the clip.

    The noise that a raw prediction may gather follows the weighted frequencies. Exponent and factor are between those that did
    best for b = 0 and for b = 1.
    """
    b = problem.class_balance
    # Weights of the classes, then the frequency of the rarer one among the weighted records.
    factors = np.where(shares == shares.max(), float(shares.min() / shares.max()) ** b, 1.0)
    mean_weight = float(shares @ factors)
    smaller = float((shares * factors).min()) / mean_weight
    balance = (1 - FEWER * b) * (4 * smaller * (1 - smaller)) ** ((1 + b) / 2)
    start = cast(ClassLoss, problem.loss).constant(weighted * factors)
    return ClassFrequencies(start, balance, tuple(factors.tolist()), mean_weight)

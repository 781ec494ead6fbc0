"""Measure errors of gradient estimates during a fit to the area under the ROC curve, and the gradient of its primal function.

A fit through the oracle says nothing of this, and nobody with its releases could know it: a witness compares each release with
the un-noised sums over the training records, which the benchmark has. What it writes down is outside any guarantee.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.tables import Table
from skdp import DPAUCMaximizer
from skdp.minimax import AUCSaddle
from skdp.privacy.data.gradient_factors import clipped_sum, lengths
from skdp.privacy.data.kernels import Batch
from skdp.privacy.queries import JointGradient, PrimalDifference, PrimalGradient

__all__ = ["WatchedMaximizer", "Witness", "best_dual", "clipped_mean", "primal_gradient"]

BLOCK = 4096  # records that go through a network at a time
Ask = Callable[[Any], np.ndarray]


class WatchedMaximizer(DPAUCMaximizer):
    """Run the estimator with a ``witness`` that sees the queries and answers of its solver."""

    witness: "Witness"

    class _task_class(DPAUCMaximizer._task_class):
        """Its task."""

        def solved(self, plan: Any, oracle: Any, rng: np.random.Generator) -> Any:
            return plan.solver.solve(plan.problem, self.estimator.witness.beside(oracle.ask), rng)


class Witness:
    """Compare releases with exact values during the fit of a solver of the saddle problem of ranking.

    Parameters
    ----------
    table : Table
        What the model is fitted to, and tested on.
    n_steps : int
        Of the primal variables.
    rate : float
        Probability that a record enters a release.
    n_places : int
        How often it looks; each time at two steps one after the other, as estimates restart every other step.
    """

    def __init__(self, table: Table, n_steps: int, rate: float, n_places: int) -> None:
        self.found: dict[str, list[Any]] = {"step": [], "gradient_norm": [], "squared_error": [], "sampling": [], "auc": []}
        self.seconds = 0.0
        self._table, self._expected, self._rate = table, rate * len(table.y_train), rate
        self._places = {2 * int(place / 2) for place in np.linspace(0, max(n_steps - 2, 0), n_places)}
        self._number, self._estimate, self._clip_norm = 0, np.zeros(0), 0.0

    def beside(self, ask: Ask) -> Ask:
        """Return what answers as ``ask`` does, and lets the witness see.

        Parameters
        ----------
        ask : callable
            Of the oracle.

        Returns
        -------
        callable
            The same answers.
        """

        def answered(query: Any) -> np.ndarray:
            answer = ask(query)
            if isinstance(query, (JointGradient, PrimalGradient, PrimalDifference)):
                self._take(query, answer)
            return answer

        return answered

    def _take(self, query: Any, answer: np.ndarray) -> None:
        """Compute the solver's estimate of the sum of primal gradients, and record it when it is due."""
        start = time.perf_counter()
        if isinstance(query, PrimalDifference):
            self._estimate = self._estimate + answer
        elif isinstance(query, PrimalGradient):
            self._estimate, self._clip_norm = answer, query.clip_norm
        else:
            self._estimate, self._clip_norm = query.split(answer)[0], query.primal_clip_norm
        if self._number in self._places:
            self._look(query)
        if {self._number, self._number - 1} & self._places:
            self._compare(query)
        self._number += 1
        self.seconds += time.perf_counter() - start

    def _look(self, query: Any) -> None:
        """Norm of the primal function's gradient, and AUC on test records, of an iterate."""
        saddle, table = query.saddle, self._table
        gradient = primal_gradient(saddle, query.primal, table.X_train, table.y_train)
        scores = saddle.scorer.at(saddle.scorer.read(table.X_test), query.primal[:-2]).scores
        self.found["step"].append(self._number)
        self.found["gradient_norm"].append(float(np.linalg.norm(gradient)))
        self.found["auc"].append(float(roc_auc_score(table.y_test, scores)))
        self.found["squared_error"].append([])

    def _compare(self, query: Any) -> None:
        """Squared distance of the estimate from the exact mean of clipped gradients, and the part due to sampling."""
        X, y = self._table.X_train, self._table.y_train
        mean, square = clipped_mean(query.saddle, query.primal, query.dual, X, y, self._clip_norm)
        error = self._estimate / (self._expected * query.saddle.divisor) - mean
        self.found["squared_error"][-1].append(float(error @ error))
        if self._number in self._places:
            self.found["sampling"].append(square * (1 - self._rate) / self._expected)


def blocks(X: np.ndarray, y: np.ndarray) -> list[Batch]:
    """Yield the records block by block."""
    return [Batch(X[first : first + BLOCK], y[first : first + BLOCK]) for first in range(0, len(y), BLOCK)]


def clipped_mean(
    saddle: AUCSaddle, primal: np.ndarray, dual: np.ndarray, X: np.ndarray, y: np.ndarray, clip_norm: float
) -> tuple[np.ndarray, float]:
    """Return the mean over all records of their clipped primal gradients, and of the squares of their norms.

    Parameters
    ----------
    saddle : AUCSaddle
        The problem.
    primal, dual : ndarray
        Where the gradients are taken.
    X : ndarray of shape (n, n_features)
        Rows.
    y : ndarray of shape (n,)
        Labels 0 and 1.
    clip_norm : float
        Bound on the norm of one gradient; ``inf`` clips none.

    Returns
    -------
    mean : ndarray of shape (n_primal,)
        In the units of the solver's steps: divided by the problem's divisor.
    square : float
        The same, divided by the square of it.
    """
    total, square = np.zeros(saddle.n_primal), 0.0
    for batch in blocks(X, y):
        parts = saddle.at(saddle.read(batch), primal, dual).primal()
        norms = lengths(parts)
        clip = min(clip_norm, float(norms.max()))
        total += clip * clipped_sum([[part] for part in parts], norms, None, clip)
        square += float((np.minimum(norms, clip) ** 2).sum())
    return total / (len(y) * saddle.divisor), square / (len(y) * saddle.divisor**2)


def best_dual(saddle: AUCSaddle, primal: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the dual variable that maximises the objective: its gradient is the mean of the records' at 0, less itself.

    Parameters
    ----------
    saddle : AUCSaddle
        The problem.
    primal : ndarray of shape (n_primal,)
        Parameters of the scorer, a, b.
    X : ndarray of shape (n, n_features)
        Rows.
    y : ndarray of shape (n,)
        Labels 0 and 1.

    Returns
    -------
    ndarray of shape (1,)
        Within its bounds.
    """
    slopes = [saddle.at(saddle.read(batch), primal, np.zeros(1)).dual()[0] for batch in blocks(X, y)]
    mean = math.fsum(float(part.total(np.ones(len(part.left)))[0]) for part in slopes) / (len(y) * saddle.divisor)
    return saddle.project(primal, np.array([mean]))[1]


def primal_gradient(saddle: AUCSaddle, primal: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the gradient of the primal function, the objective at its best dual variable, by the envelope theorem.

    Parameters
    ----------
    saddle : AUCSaddle
        The problem.
    primal : ndarray of shape (n_primal,)
        Parameters of the scorer, a, b.
    X : ndarray of shape (n, n_features)
        Rows.
    y : ndarray of shape (n,)
        Labels 0 and 1.

    Returns
    -------
    ndarray of shape (n_primal,)
        Of the mean over all records, not clipped.
    """
    return clipped_mean(saddle, primal, best_dual(saddle, primal, X, y), X, y, math.inf)[0]

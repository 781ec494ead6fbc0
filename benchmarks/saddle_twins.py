"""A saddle problem that an audit attacks, and solvers and estimators that break their guarantee on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.twins import FirstRepeated, Halved, Unscheduled, tampered
from skdp import DPLogisticRegression
from skdp.minimax import Batch, Factors, SaddleProblem
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.queries import Loss
from skdp.solvers import MinimaxProblem, PrivateDiff, Problem

__all__ = [
    "HalvedNoiseSaddle",
    "SaddleClassifier",
    "Tilted",
    "UnderstatedPrivateDiff",
    "UnnoisedDual",
    "UnnoisedDualSaddle",
    "UnscheduledReleasesSaddle",
]


@dataclass(frozen=True)
class Slopes:
    """Gradients of `Tilted`."""

    signed: np.ndarray
    dual_variable: float

    def primal(self) -> Sequence[Factors]:
        """Return ``-s x - v e``."""
        gradients = -self.signed
        gradients[:, 0] -= self.dual_variable
        return [_vectors(gradients)]

    def dual(self) -> Sequence[Factors]:
        """Return ``s x_1``."""
        return [_vectors(self.signed[:, :1])]


def _vectors(gradients: np.ndarray) -> Factors:
    return Factors(gradients, np.ones((len(gradients), 1)))


class Tilted(SaddleProblem):
    r"""The problem :math:`f(w, v; x, y) = -s\, x^\top w - v w_1 + v s\, x_1` with the sign s of the class: linear in both sides.

    The gradient of every record shows the dual variable, so what that reveals is multiplied by the number of records.

    Parameters
    ----------
    n_features : int
        Number of features.
    """

    name = "tilted"

    def __init__(self, n_features: int) -> None:
        self.n_primal, self.n_dual = n_features, 1

    def at(self, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> Slopes:
        """Return the gradients of the records of a batch at a point."""
        return Slopes((2 * batch.targets - 1)[:, None] * batch.rows, float(dual[0]))


class SaddleClassifier(DPLogisticRegression):
    """Class labels and a linear model, on `Tilted`."""

    class _task_class(DPLogisticRegression._task_class):
        """Its task."""

        def _problem(self, n_samples: int, n_features: int, loss: Loss, kind: Any = MinimaxProblem, **fields: Any) -> Problem:
            return super()._problem(n_samples, n_features, loss, kind, saddle=Tilted(n_features), **fields)


class HalvedNoiseSaddle(SaddleClassifier):
    """Half the noise, on a saddle problem."""

    _task_class = tampered(Halved, SaddleClassifier)


class UnscheduledReleasesSaddle(SaddleClassifier):
    """Makes additional releases, on a saddle problem."""

    _task_class = tampered(Unscheduled, SaddleClassifier)


class UnderstatedPrivateDiff(FirstRepeated, PrivateDiff):
    """Makes more queries than it states."""


class UnnoisedDual(PrivateDiff):
    """The algorithm as the paper prints it: the primal gradient is taken at dual variables before their noise."""

    rows: TrainingData

    def _ascend(self, descent: Any, ask: Any) -> np.ndarray:
        query = descent.dual_query(descent.dual)
        ask(query)
        return descent.ascended(query.evaluate(self.rows), descent.primal, descent.dual)


class UnnoisedDualSaddle(SaddleClassifier):
    """Gives the records to a solver that reads them."""

    class _task_class(SaddleClassifier._task_class):
        """Its task."""

        def run(self, plan: Any, rows: Any, *arguments: Any) -> Any:
            UnnoisedDual.rows = rows
            return super().run(plan, rows, *arguments)

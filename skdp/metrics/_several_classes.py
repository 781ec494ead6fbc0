"""Release the confusion matrix of a classifier of several classes on test records, with one release."""

from dataclasses import replace
from typing import Any

import numpy as np

from skdp.metrics._classes import class_numbers, numbers_of
from skdp.metrics._evaluation import Evaluation, metric
from skdp.metrics._evaluation_plan import EvaluationPlan, less_noise
from skdp.metrics._noisy_table import METRICS, NoisyTable
from skdp.metrics._predictions import by_record
from skdp.privacy.budget import Budget
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ClassCounts
from skdp.privacy.schedule import Gaussian, Laplace, Release, Schedule

__all__ = ["MOST_CLASSES", "SEVERAL", "NoisyMatrix", "evaluate_matrix", "plan_matrix", "predicted_classes"]

MOST_CLASSES = 30  # whose covariance has 900 rows and columns
SEVERAL = ("accuracy",)


class NoisyMatrix(NoisyTable):
    """Hold an unbiased estimate of the counts by true and predicted class, and the covariance of its noise."""

    @classmethod
    def from_counts(cls, answer: np.ndarray, noise: float, n_samples: int) -> "NoisyMatrix":
        """Return the matrix that fits noisy counts, of shape (n_classes**2,), and the public number of records best."""
        size = round(answer.size**0.5)
        counts = answer + (n_samples - answer.sum()) / answer.size
        covariance = noise**2 * (np.eye(answer.size) - 1 / answer.size)
        return cls(counts.reshape(size, size), covariance, np.zeros(0), n_samples)

    @property
    def predicted(self) -> np.ndarray:
        """Whether a class is predicted in a column of the counts: the identity."""
        return np.eye(len(self.counts))

    def smooth(self) -> np.ndarray:
        """Return the nearest counts that are not negative and have the same sum; for variances only, as they are biased."""
        falling = np.sort(self.counts.ravel())[::-1]
        excess = (np.cumsum(falling) - self.n_samples) / np.arange(1, falling.size + 1)
        return np.maximum(self.counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def plan_matrix(n_samples: int, budget: Budget, n_classes: int, noise: str) -> EvaluationPlan:
    """Return what the evaluation of a classifier of several classes releases."""
    counts = ClassCounts(n_classes**2)

    def make(laplace: bool) -> tuple[EvaluationPlan, float]:
        plan = EvaluationPlan(
            n_samples,
            replace(budget, delta=0.0) if laplace else budget,
            Schedule(((1, Release(ClassCounts, Laplace() if laplace else Gaussian(), counts.clip_norm, counts.size)),)),
            title="numbers of test records by true and predicted class",
            reason="the only one for more than two classes",
            unit="of the records in each cell of the confusion matrix",
            assumption=f"every label is one of the {n_classes} classes of the model",
            changes=(counts.l1_sensitivity(budget.adjacency),) if laplace else (),
        )
        return plan, plan.stds[0]

    return less_noise(make, budget, noise)


def evaluate_matrix(
    true: np.ndarray,
    predicted: np.ndarray,
    names: tuple[str, ...],
    *,
    budget: Budget,
    level: float,
    classes: tuple[Any, ...],
    model: str,
    disjoint: bool = False,
    random_state: Any = None,
    noise: str = "auto",
) -> Evaluation:
    """Charge the active ledgers and release the metrics of checked class numbers."""
    n_samples, n_classes = len(true), len(classes)
    plan, source = plan_matrix(n_samples, budget, n_classes, noise), NoiseSource(random_state)
    report = plan.report(names, model, source, disjoint=disjoint)
    plan.pay(report)
    rows = TrainingData(np.zeros((n_samples, 1)), true * n_classes + predicted, data_norm=1.0)
    oracle = Oracle(rows, plan.schedule, plan.budget, plan.scale, source)
    answer = oracle.ask(ClassCounts(n_classes**2))
    oracle.finish()
    table = NoisyMatrix.from_counts(answer, plan.stds[0], n_samples)
    found = {name: metric(name, METRICS[name](table, level), (0.0, 1.0)) for name in names}
    return Evaluation(found, level, table, report, classes)


def predicted_classes(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the true and of the predicted classes; the first class where the model predicts none."""
    classes = tuple(model.classes_)
    if len(classes) > MOST_CLASSES or not hasattr(model, "predict"):
        raise TypeError(f"model has {len(classes)} classes; expected at most {MOST_CLASSES}, and a method predict.")
    true = class_numbers(y, classes, "the model")
    predicted, failed = by_record(model, lambda part: numbers_of(_labels(model.predict(part)), classes), X, true.shape)
    if predicted.shape != true.shape:
        raise ValueError("X and y differ in length; expected one prediction per label.")
    return true, np.maximum(np.where(failed, -1, predicted), 0)


def _labels(predicted: Any) -> np.ndarray:
    """Return predicted labels as an array in which none has another type: one text in a list would make text of all numbers."""
    listed = isinstance(predicted, (list, tuple))
    return np.fromiter(predicted, dtype=object, count=len(predicted)) if listed else np.asarray(predicted)

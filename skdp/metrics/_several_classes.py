"""Release the confusion matrix of a classifier of several classes on test records, with one release."""

from dataclasses import dataclass

import numpy as np

from skdp.metrics._evaluation_plan import EvaluationPlan
from skdp.metrics._kind import Ask, EvaluationKind
from skdp.metrics._noisy_table import NoisyTable
from skdp.privacy.queries import ClassCounts, SumQuery

__all__ = ["NoisyMatrix", "SeveralClasses"]


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


@dataclass(frozen=True)
class SeveralClasses(EvaluationKind):
    """Release counts by true and predicted class.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    """

    n_classes: int

    title = "numbers of test records by true and predicted class"
    reason = "the only one for more than two classes"
    unit = "of the records in each cell of the confusion matrix"

    @property
    def assumption(self) -> str:  # type: ignore[override]
        """What is assumed of the labels."""
        return f"every label is one of the {self.n_classes} classes of the model"

    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return the one query."""
        return (ClassCounts(self.n_classes**2),)

    def release(self, ask: Ask, plan: EvaluationPlan) -> NoisyMatrix:
        """Ask for the counts, and return the matrix."""
        (query,) = self.queries(plan.laplace)
        return NoisyMatrix.from_counts(ask(query), plan.stds[0], plan.n_samples)

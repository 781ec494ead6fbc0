"""Release the sum of one loss of test records, or counts by class and log-odds or by predicted class, for metrics of classes."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import logit, ndtr, ndtri

from skdp.metrics._definition import ClassMetric
from skdp.metrics._kind import Ask, EvaluationKind, EvaluationPlan
from skdp.metrics._noisy_mean import STEPS, NoisyMean
from skdp.metrics._noisy_table import NoisyMatrix, NoisyTable
from skdp.metrics._windows import FIRST, SECOND, SHARE, edges_of, even_cuts, window
from skdp.privacy.budget import Budget
from skdp.privacy.queries import ClassCounts, LossSums, ScoreCounts, ScoreTree, SumQuery, tree

# What the noise of the area under the ROC curve is stated for: a usual area, and a number of simulated evaluations that leaves it
# an error of 7 %. Choices: for classes of equal size, areas from .6 to .95, and scores a fifth as wide, measured noise was .9 to
# 1.4 times as large.
USUAL_AUC, DRAWS = 0.8, 100
AT_HALF = (1,)  # the cut at the log-odds 0
LABELS = "every label is one of the two classes of the model"


@dataclass(frozen=True)
class LossMean(EvaluationKind):
    """Release the sum of the losses of which one metric is the mean.

    Parameters
    ----------
    metric : ClassMetric
        A metric with a loss.
    steps : int
        Steps of the loss on each side of its middle; 1 if each record's is at one of its ends.
    """

    metric: ClassMetric
    steps: int

    title = "the sum of one loss of the test records"
    reason = "the best one for one metric"
    unit = "of half the range of the loss in its mean"
    assumption = LABELS

    @cached_property
    def query(self) -> LossSums:
        """Sum of the losses, scaled to [-1, 1]; with a sum of squares, for the variance, if losses have more than two values."""
        (low, high), loss = self.metric.limits, self.metric.loss
        assert loss is not None

        def scaled(log_odds: np.ndarray, labels: np.ndarray) -> np.ndarray:
            return np.asarray((2 * loss(log_odds, labels == 1) - low - high) / (high - low))

        return LossSums(scaled, self.steps, squared=self.steps > 1)

    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return the one query."""
        return (self.query,)

    def release(self, ask: Ask, plan: EvaluationPlan) -> NoisyMean:
        """Ask for the sum, and return the mean."""
        return self._mean(ask(self.query), plan)

    def metric_noise(self, plan: EvaluationPlan) -> float:
        """Return the standard deviation of the noise of the metric."""
        low, high = self.metric.limits
        return (high - low) / 2 * self.relative_noise(plan)

    def relative_noise(self, plan: EvaluationPlan) -> float:
        """Return the noise of the mean of losses from -1 to 1; the sum counts their steps."""
        return self._mean(np.zeros(2), plan).noise

    def _mean(self, answer: np.ndarray, plan: EvaluationPlan) -> NoisyMean:
        return NoisyMean.from_sums(answer, plan.stds[0], plan.laplace, plan.n_samples, self.metric.limits, self.steps)


@dataclass(frozen=True)
class CountsByScore(EvaluationKind):
    """Base of the kinds that release counts by group, class and range of the log-odds, or coefficients of these counts.

    Parameters
    ----------
    n_groups : int
        Number of groups, at least 1.
    """

    n_groups: int

    @property
    def assumption(self) -> str:  # type: ignore[override]
        """What is assumed of the labels and the groups."""
        return LABELS + (
            f", and every record is in one of the {self.n_groups} groups that were named" if self.n_groups > 1 else ""
        )

    @abstractmethod
    def coefficients(self, laplace: bool) -> np.ndarray:
        """Return the matrix that maps the counts of a class to the numbers that are released of them."""

    def metric_noise(self, plan: EvaluationPlan) -> float:
        """Return the standard deviation of the noise of the accuracy: the sum of half of the cells of each class and group."""
        matrix = self.coefficients(plan.laplace)
        half = np.linalg.solve(matrix.T, np.repeat([1.0, 0.0], len(matrix) // 2))
        return plan.stds[-1] * math.sqrt(2 * self.n_groups) * float(np.linalg.norm(half)) / plan.n_samples

    def _table(self, answer: np.ndarray, plan: EvaluationPlan, cuts: tuple[int, ...]) -> NoisyTable:
        matrix = self.coefficients(plan.laplace)
        return NoisyTable.from_coefficients(answer, matrix, plan.stds[-1], edges_of(cuts), plan.n_samples, self.n_groups)


class ConfusionMatrix(CountsByScore):
    """Release counts by group, true class and the class that is predicted at the probability 1/2."""

    title = "numbers of test records by true and predicted class"
    reason = "these metrics need no more"
    unit = "of the records in each cell of the confusion matrix"

    def coefficients(self, laplace: bool) -> np.ndarray:
        """Return the identity: the counts are released themselves."""
        return np.eye(2)

    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return the one query."""
        return (ScoreCounts(None, AT_HALF, n_groups=self.n_groups),)

    def release(self, ask: Ask, plan: EvaluationPlan) -> NoisyTable:
        """Ask for the counts, and return the table."""
        (query,) = self.queries(plan.laplace)
        return self._table(ask(query), plan, AT_HALF)


class ScoreTable(CountsByScore):
    """Release counts in ranges of the log-odds that follow from a first release: themselves, or their Haar coefficients."""

    title = "counts of test records by class and log-odds, or differences of counts along a binary tree"
    reason = "the only one for these metrics; a fifth of the budget finds where the log-odds are"
    unit = "of the records in each number"
    shares = (SHARE, 1 - SHARE)

    def coefficients(self, laplace: bool) -> np.ndarray:
        """Return the identity for Laplace noise, and the Haar matrix for Gaussian noise."""
        return _coefficients(laplace, SECOND)

    def queries(self, laplace: bool) -> tuple[SumQuery, ...]:
        """Return queries with even ranges; those of the second release follow from the first one."""
        return self._first(laplace), self._second(laplace, even_cuts(SECOND))

    def release(self, ask: Ask, plan: EvaluationPlan) -> NoisyTable:
        """Ask for the counts by even ranges of the log-odds, then by class in ranges that follow from them."""
        answer = ask(self._first(plan.laplace))
        cuts = window(answer, _coefficients(plan.laplace, FIRST), plan.stds[0], plan.n_samples)
        return self._table(ask(self._second(plan.laplace, cuts)), plan, cuts)

    def error(self, plan: EvaluationPlan) -> float:
        """Return the root mean square of the noise of the counts of records below each cut."""
        sums = np.tril(np.ones((SECOND, SECOND))) @ np.linalg.inv(self.coefficients(plan.laplace))
        return plan.stds[-1] * math.sqrt(float((sums**2).sum()) / SECOND)

    def _first(self, laplace: bool) -> ScoreCounts:
        return (ScoreCounts if laplace else ScoreTree)(None, even_cuts(FIRST), n_classes=1)

    def _second(self, laplace: bool, cuts: tuple[int, ...]) -> ScoreCounts:
        return (ScoreCounts if laplace else ScoreTree)(None, cuts, n_groups=self.n_groups)


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


def _coefficients(laplace: bool, size: int) -> np.ndarray:
    return np.eye(size) if laplace else tree(size)


def kind_of_scores(metrics: Sequence[ClassMetric], n_groups: int, unit: str) -> EvaluationKind:
    """Return the smallest release from which some metrics follow.

    Parameters
    ----------
    metrics : sequence of ClassMetric
        The metrics.
    n_groups : int
        Number of groups; 0 without groups.
    unit : {"record", "person"}
        Whose loss a loss is: the mean of several rows may be anywhere between the ends.

    Returns
    -------
    EvaluationKind
        One sum for one metric that is a mean, counts for metrics of predicted classes, and a table for others.
    """
    if len(metrics) == 1 and metrics[0].loss is not None and not n_groups:
        return LossMean(metrics[0], metrics[0].steps if unit == "record" else STEPS)
    kind = ScoreTable if any(metric.needs_scores for metric in metrics) else ConfusionMatrix
    return kind(max(n_groups, 1))


@lru_cache(maxsize=64)
def score_noise(metric: ClassMetric, n_samples: int, budget: Budget, rate: float = 0.5) -> float:
    """Return the standard deviation of the Gaussian noise of one metric that is evaluated alone, from public facts.

    That of the mean of a loss is known. That of the area under the ROC curve depends on the scores, and on the share of the
    second class: it is simulated for well calibrated scores, with an area of `USUAL_AUC`, and with public random numbers.

    Parameters
    ----------
    metric : ClassMetric
        A metric that has a loss, or that is simulated.
    n_samples : int
        Number of test records.
    budget : Budget
        Budget of the evaluation.
    rate : float, default=0.5
        Share of the second class.

    Returns
    -------
    float
        The standard deviation.
    """
    kind = kind_of_scores((metric,), 0, budget.unit)
    plan = kind.plan(n_samples, budget, "gaussian")
    if isinstance(kind, LossMean):
        return kind.metric_noise(plan)
    assert metric.simulate is not None
    width, rng = math.sqrt(2) * ndtri(USUAL_AUC), np.random.default_rng(0)

    def counts(cuts: tuple[int, ...]) -> np.ndarray:
        """Return the expected counts of both classes by range of the log-odds, which are normal."""
        means = np.array([[-1.0], [1.0]]) * width**2 / 2 + logit(rate)
        below = ndtr((edges_of(cuts)[1:-1] - means) / width)
        return n_samples * np.array([[1 - rate], [rate]]) * np.diff(below, prepend=0.0, append=1.0)

    def noisy(query: Any) -> np.ndarray:
        """Answer a query as the oracle would, of the expected counts."""
        expected, first = counts(query.cuts), query.n_classes == 1
        answer, std = query.finish(expected.sum(axis=0) if first else expected), plan.stds[0 if first else 1]
        return np.asarray(answer + std * rng.standard_normal(answer.size))

    found = [metric.simulate(kind.release(noisy, plan)) for _ in range(DRAWS)]
    return float(np.std(np.clip(found, 0.0, 1.0)))

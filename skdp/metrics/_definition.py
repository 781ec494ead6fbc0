"""Define the entries of the list of metrics."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.metrics._evaluation import Metric
from skdp.metrics._noisy_mean import STEPS, NoisyMean
from skdp.metrics._noisy_table import WIDEST, NoisyTable


@dataclass(frozen=True)
class MetricDefinition:
    """State the names of a metric, and how it follows from a release.

    Parameters
    ----------
    name : str
        Name in `evaluate`.
    title : str
        What it is, in words that follow "the".
    estimate : callable
        Maps a released table and the coverage of an interval to the estimate, and to the lower and upper end of the interval.
    detail : str, default=""
        Continues the title in the documentation.
    function : str, default=""
        Name of the function of scikit-learn. The private function has this name after "dp_"; without a name there is none.
    scorer : str, default=""
        Name of the scorer of scikit-learn, which begins with "neg_" where less is better; without a name there is none.
    default : bool, default=False
        Whether `evaluate` returns the metric if none is asked for.
    limits : tuple of float, default=(0.0, 1.0)
        Range of the metric.
    needs_range : bool, default=False
        Whether it needs the public range of the targets of a regression.
    """

    name: str
    title: str
    estimate: Callable[[Any, float], tuple[float, float, float]]
    detail: str = ""
    function: str = ""
    scorer: str = ""
    default: bool = False
    limits: tuple[float, float] = (0.0, 1.0)
    needs_range: bool = False

    @property
    def sign(self) -> float:
        """Factor that makes larger values of the scorer better."""
        return -1.0 if self.scorer.startswith("neg_") else 1.0

    def interval(self, table: Any, level: float) -> tuple[float, float, float]:
        """Return the unclipped estimate and ends of the interval from a release."""
        return self.estimate(table, level)

    def metric(self, table: Any, level: float) -> Metric:
        """Return the metric, clipped to its range; without a value if its interval is too wide.

        Parameters
        ----------
        table : NoisyTable, NoisyMean or NoisyErrors
            What was released.
        level : float
            Coverage of the interval.

        Returns
        -------
        Metric
            With its range as the interval if it has no value.
        """
        found, unit = self.interval(table, level), self._unit(table)
        low, high = (unit * end for end in self.limits)
        if not found[2] - found[1] <= WIDEST * unit:
            return Metric(self.name, math.nan, low, high)
        return Metric(self.name, *(min(max(float(end), low), high) for end in found))

    def _unit(self, table: Any) -> float:
        return 1.0

    @property
    def form(self) -> str:
        """Format of the numbers as text."""
        return ".3f"


@dataclass(frozen=True)
class ClassMetric(MetricDefinition):
    """State a metric of a classifier, which follows from counts of records by class and log-odds.

    Parameters
    ----------
    name, title, estimate, detail, function, scorer, default, limits, needs_range : see `MetricDefinition`
        As of the base.
    needs_scores : bool, default=True
        Whether the confusion matrix at the probability 1/2 does not determine it.
    several : bool, default=False
        Whether it is a metric of more than two classes, too.
    loss : callable or None, default=None
        Maps log-odds and whether the class is the second one to numbers within the limits, if the metric is their mean. Then it
        is released as one sum where it is the only one.
    steps : int, default=65536
        Steps on each side of the middle of the limits to which the numbers are rounded; 1 if they are at the limits.
    simulate : callable or None, default=None
        Maps a table to the estimate. Searches offer metrics that have a loss or this, as they state the noise of a score.
    """

    needs_scores: bool = True
    several: bool = False
    loss: Callable[[np.ndarray, Any], np.ndarray] | None = None
    steps: int = STEPS
    simulate: Callable[[NoisyTable], float] | None = None

    @property
    def searchable(self) -> bool:
        """Whether searches offer it."""
        return bool(self.scorer) and (self.loss is not None or self.simulate is not None)

    def interval(self, table: Any, level: float) -> tuple[float, float, float]:
        """Return the unclipped estimate and ends of the interval from a release."""
        return table.interval(level) if isinstance(table, NoisyMean) else self.estimate(table, level)


@dataclass(frozen=True)
class ErrorMetric(MetricDefinition):
    """State a metric of a regressor, which follows from sums of powers of errors.

    Parameters
    ----------
    name, title, estimate, detail, function, scorer, default, limits, needs_range : see `MetricDefinition`
        As of the base.
    in_units : bool, default=False
        Whether it is in the units of the errors. Its limits are relative to the bound of the errors then.
    deviance : {"", "poisson", "gamma"}, default=""
        Which deviance the errors are; "" for absolute errors. Metrics of one evaluation have one kind of errors.
    of_constant : bool, default=False
        Whether it needs the deviance of a constant.
    """

    in_units: bool = False
    deviance: str = ""
    of_constant: bool = False

    def _unit(self, table: Any) -> float:
        return float(table.error_bound) if self.in_units else 1.0

    @property
    def form(self) -> str:
        """Format of the numbers as text."""
        return ".4g" if self.in_units else ".3f"

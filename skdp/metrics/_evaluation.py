"""Hold the result of a private evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from skdp.metrics._noisy_table import WIDEST, NoisyTable
from skdp.privacy.report.statement import PrivacyReport

__all__ = ["Evaluation", "Metric"]


@dataclass(frozen=True)
class Metric:
    """Hold a metric with its confidence interval.

    Parameters
    ----------
    name : str
        Name as it was requested.
    value : float
        Estimate; nan if the interval is too wide for one.
    low, high : float
        Ends of the interval, which covers the noise and the sampling of the test records.
    """

    name: str
    value: float
    low: float
    high: float

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    def __str__(self) -> str:
        """Return a line."""
        interval = f"[{self.low:.3f}, {self.high:.3f}]"
        if self.value != self.value:
            return f"{self.name:<12} not determined, {interval}: more test records or a larger epsilon are needed"
        return f"{self.name:<12} {self.value:.3f}, {interval}"


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Metric]):
    """Hold the metrics of a private evaluation, and what was guaranteed.

    Parameters
    ----------
    metrics : dict of str to Metric
        The requested metrics.
    level : float
        Coverage of the intervals.
    table : NoisyTable
        The released counts by class and log-odds: all metrics follow from them, and other ones can.
    privacy_report : PrivacyReport
        Guarantee, releases and noise.
    classes : tuple
        Labels of the model.
    """

    metrics: Mapping[str, Metric]
    level: float
    table: NoisyTable
    privacy_report: PrivacyReport
    classes: tuple[Any, ...] = ()

    def __getitem__(self, name: str) -> Metric:
        """Return a metric by name."""
        return self.metrics[name]

    def __iter__(self) -> Any:
        """Iterate over the names."""
        return iter(self.metrics)

    def __len__(self) -> int:
        """Return the number of metrics."""
        return len(self.metrics)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return value, low and high of each metric; ``pandas.DataFrame(found.to_dict()).T`` is a table."""
        return {name: {"value": m.value, "low": m.low, "high": m.high} for name, m in self.items()}

    def __str__(self) -> str:
        """Return a line per metric, and the guarantee."""
        head = f"Private evaluation, {self.level:.0%} intervals for noise and sampling"
        return "\n".join([head, *map(str, self.metrics.values()), self.privacy_report.summary])

    def _repr_html_(self) -> str:
        """Return the text for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"


def metric(name: str, found: tuple[float, float, float], bounded: bool) -> Metric:
    """Return a metric; one in [0, 1] whose interval is wider than half of that is not determined.

    Parameters
    ----------
    name : str
        Name of the metric.
    found : tuple of float
        Estimate, and lower and upper end of the interval.
    bounded : bool
        Whether the metric lies in [0, 1].

    Returns
    -------
    Metric
        With the interval [0, 1] and no value if it is not determined.
    """
    value, low, high = found
    if bounded and not high - low <= WIDEST:
        return Metric(name, float("nan"), 0.0, 1.0)
    return Metric(name, value, max(low, 0.0), min(high, 1.0) if bounded else high)

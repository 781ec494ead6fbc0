"""Hold the result of a private evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from skdp.metrics._noisy_errors import NoisyDeviances, NoisyErrors
from skdp.metrics._noisy_mean import NoisyMean
from skdp.metrics._noisy_table import NoisyTable
from skdp.privacy.report.statement import PrivacyReport


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
        from skdp.metrics._metrics import METRICS  # here, as the entries import this module

        form = METRICS[self.name].form if self.name in METRICS else ".3f"
        interval = f"[{self.low:{form}}, {self.high:{form}}]"
        if self.value != self.value:
            return f"{self.name:<12} not determined, {interval}: more test records or a larger epsilon are needed"
        return f"{self.name:<12} {self.value:{form}}, {interval}"


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Metric]):
    """Hold the metrics of a private evaluation and its privacy report.

    Parameters
    ----------
    metrics : dict of str to Metric
        The requested metrics.
    level : float
        Coverage of the intervals.
    table : NoisyTable, NoisyMean, NoisyErrors or NoisyDeviances
        The released counts by class and log-odds, the mean of one loss, or sums of errors: all metrics follow from them.
    privacy_report : PrivacyReport
        Guarantee, releases and noise.
    classes : tuple
        Labels of a classifier.
    groups : dict
        Evaluation of each group by its name, from the same release; empty if no groups were given.
    """

    metrics: Mapping[str, Metric]
    level: float
    table: NoisyTable | NoisyMean | NoisyErrors | NoisyDeviances
    privacy_report: PrivacyReport
    classes: tuple[Any, ...] = ()
    groups: Mapping[Any, "Evaluation"] = field(default_factory=dict)

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
        what = {NoisyErrors: "errors", NoisyDeviances: "deviances"}.get(type(self.table))
        clipped = [f"{what} clipped to {self.table.error_bound:.4g}"] if what else []  # type: ignore[union-attr]
        of_groups = [f"  group {name}: {one}" for name, found in self.groups.items() for one in found.values()]
        return "\n".join([head, *map(str, self.values()), *of_groups, *clipped, self.privacy_report.summary])

    def _repr_html_(self) -> str:
        """Return the text for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"

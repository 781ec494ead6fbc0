"""Hold a statistic with its interval and its privacy report."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from skdp._files._suffixes import imported
from skdp.privacy.report.statement import PrivacyReport, PrivacySpent

MOST_DIGITS = 9  # of a number that is printed, more of which nobody reads; a choice


class Reported(NDArrayOperatorsMixin):
    """Base of what functions of this package return: it states what was spent, prints, and counts as its value in formulas."""

    value: Any
    privacy_report: PrivacyReport

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Return the value as an array."""
        return np.array(self.value, dtype=dtype)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return what an operator, or a function of NumPy, makes of the value: numbers without interval."""
        numbers = [each.value if isinstance(each, Reported) else each for each in inputs]
        return getattr(function, method)(*numbers, **options)

    @property
    def privacy_spent(self) -> PrivacySpent:
        """Spent epsilon and delta."""
        return self.privacy_report.spent

    @property
    def cost_in_words(self) -> str:
        """What was spent, in words."""
        if not self.privacy_report.private:
            return "not private"
        spent = self.privacy_spent
        persons = ", persons" if self.privacy_report.budget.unit == "person" else ""
        return f"epsilon {spent.epsilon:.4g}" + (f", delta {spent.delta:.2g}" if spent.delta else "") + persons

    def __repr__(self) -> str:
        """Return the text of `print`."""
        return str(self)


@dataclass(frozen=True, eq=False, repr=False)
class Statistic(Reported):
    """Hold a statistic that was released with noise, and its interval.

    Parameters
    ----------
    name : str
        What it is, such as "mean".
    value : float
        The statistic, with noise, in the unit of the column.
    interval : tuple of (float, float)
        Interval that covers the noise and the sampling of the records, at ``confidence``.
    confidence : float
        Coverage of the interval.
    noise_std : float or None
        Standard deviation of the noise in ``value``; None for a selection.
    privacy_report : PrivacyReport
        Guarantee, releases and noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import mean
    >>> found = mean(np.repeat([20.0, 40.0], 5000), epsilon=0.5, bounds=(0, 100))
    >>> found.interval[0] < float(found) < found.interval[1]
    True
    """

    name: str
    value: float
    interval: tuple[float, float]
    confidence: float
    noise_std: float | None
    privacy_report: PrivacyReport

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    def __int__(self) -> int:
        """Return the value without its fraction."""
        return int(self.value)

    def __round__(self, digits: int | None = None) -> float:
        """Return the value, rounded."""
        return round(self.value, digits)

    def __format__(self, form: str) -> str:
        """Return the value in a format of numbers; without one, the text of `print`."""
        return format(self.value, form) if form else str(self)

    def __str__(self) -> str:
        """Return the value with as many digits as the interval supports, the interval, the epsilon, and what is clipped."""
        low, high = self.interval
        _, of, clipped = self.name.partition(" of values ")
        ends = f"{short(low, high - low)} to {short(high, high - low)}"
        return f"{short(self.value, high - low)} ({'; '.join([ends, self.cost_in_words, *([clipped] if of else [])])})"


@dataclass(frozen=True, eq=False, repr=False)
class StatisticTable(Reported):
    """Hold several statistics that were released together with noise, and their intervals.

    Parameters
    ----------
    name : str
        What they are, such as "quantile".
    value : ndarray
        The statistics, with noise; NaN where noise hides one.
    axes : tuple of (tuple of str)
        Labels of the rows, or of rows and columns.
    low, high : ndarray
        Ends of the intervals, which cover the noise and the sampling of the records, each at ``confidence``.
    confidence : float
        Coverage of an interval.
    noise_std : ndarray or None
        Standard deviation of the noise of each; None for selections.
    privacy_report : PrivacyReport
        Guarantee, releases and noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import quantile
    >>> found = quantile(np.arange(10_000) % 100, [0.25, 0.75], epsilon=1.0, bounds=(0, 99))
    >>> bool(np.all((found.low <= found.value) & (found.value <= found.high)))
    True
    """

    name: str
    value: np.ndarray
    axes: tuple[tuple[str, ...], ...]
    low: np.ndarray
    high: np.ndarray
    confidence: float
    noise_std: np.ndarray | None
    privacy_report: PrivacyReport

    @property
    def _labels(self) -> tuple[Sequence[str], ...]:
        """Labels of each side, for data frames and for print."""
        return self.axes

    @property
    def _head(self) -> str:
        """Name of the column of a data frame of one side."""
        return self.name

    @property
    def table(self) -> Any:
        """The values as a data frame of pandas; the last side is that of the columns."""
        *rows, columns = self._labels if len(self._labels) > 1 else (*self._labels, [self._head])
        return imported("pandas").DataFrame(self.value.reshape(-1, len(columns)), index=_index(rows), columns=[*columns])

    def to_frame(self) -> Any:
        """Return ``table``.

        Returns
        -------
        DataFrame
            The values.
        """
        return self.table

    @property
    def intervals(self) -> Any:
        """The values with both ends of their intervals as a data frame of pandas, a row for each."""
        parts = {"value": self.value, "low": self.low, "high": self.high}
        columns = {name: part.ravel() for name, part in parts.items()}
        return imported("pandas").DataFrame(columns, index=_index(self._labels))

    def __str__(self) -> str:
        """Return a line for each statistic, of a symmetric table for those below the diagonal once, with its interval."""
        lines = []
        for place, labels in zip(np.ndindex(self.value.shape), product(*self.axes), strict=True):
            if len(place) == 1 or place[0] <= place[1]:
                low, high = float(self.low[place]), float(self.high[place])
                value = short(float(self.value[place]), high - low) if np.isfinite(self.value[place]) else "not determined"
                lines.append([", ".join(labels), value, f"({short(low, high - low)} to {short(high, high - low)})"])
        widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
        rows = [f"{label:<{widths[0]}}  {value:>{widths[1]}}  {interval}" for label, value, interval in lines]
        return "\n".join([f"{self.name} ({self.cost_in_words})", *rows])


def _index(sides: Sequence[Sequence[str]]) -> Any:
    """Return the labels of the cells of a grid as an index of pandas."""
    return [*sides[0]] if len(sides) == 1 else imported("pandas").MultiIndex.from_product(sides)


def short(value: float, width: float) -> str:
    """Return a number as text, to a hundredth of the width of its interval."""
    if not width > 0:
        return f"{value:.6g}"
    digits = max(0, -int(f"{width:e}".partition("e")[2]) + 1)
    if not abs(value) < 1e12:
        return f"{value:.6g}"
    return f"{value:.{digits}f}" if len(f"{abs(value):.0f}") + digits <= MOST_DIGITS else f"{value:.{MOST_DIGITS}g}"

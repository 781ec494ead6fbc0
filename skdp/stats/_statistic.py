"""Hold a statistic with its interval and its privacy report."""

from dataclasses import dataclass

from skdp.privacy.report.statement import PrivacyReport, PrivacySpent


@dataclass(frozen=True)
class Statistic:
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

    @property
    def privacy_spent(self) -> PrivacySpent:
        """Spent epsilon and delta."""
        return self.privacy_report.spent

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    def __str__(self) -> str:
        """Return the value with as many digits as the interval supports, the interval and the epsilon."""
        low, high = self.interval
        return f"{short(self.value, high - low)} ({short(low, high - low)} to {short(high, high - low)}; {self.cost_in_words})"

    def __repr__(self) -> str:
        """Return the text of `print`."""
        return str(self)

    @property
    def cost_in_words(self) -> str:
        """What was spent, in words."""
        return f"epsilon {self.privacy_spent.epsilon:.4g}" if self.privacy_report.private else "not private"


def short(value: float, width: float) -> str:
    """Return a number as text, to a hundredth of the width of its interval."""
    if not width > 0:
        return f"{value:.6g}"
    digits = max(0, -int(f"{width:e}".partition("e")[2]) + 1)
    return f"{value:.{digits}f}" if abs(value) < 1e12 and digits < 12 else f"{value:.6g}"

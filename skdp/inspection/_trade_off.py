"""Plot the error rates of an attack, and the error rates that the claim forbids."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._plots import axes_or_new

BLUE, RED, DARK = "#1f5fa8", "#c0392b", "#333333"
VIEWS = {"transcript": "releases", "final": "final model"}


@dataclass(kw_only=True, eq=False, repr=False)
class TradeOffDisplay:
    """Plot the false negative rate of an attack against its false positive rate.

    Parameters
    ----------
    false_positive_rate, false_negative_rate : ndarray of shape (n_thresholds,)
        Observed error rates.
    permitted : ndarray of shape (2, k)
        False positive rates, and the least false negative rates that the claim permits there.
    epsilon, delta : float
        The claim.
    point : tuple of float
        Upper confidence bounds of the two rates at the threshold of the attack.
    bound : float
        The epsilon that this point proves.
    view : str
        What the adversary saw.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    line_ : matplotlib.lines.Line2D
        Curve of the attack.

    See Also
    --------
    skdp.audit.audit : Run the attack that is shown here.
    """

    false_positive_rate: np.ndarray
    false_negative_rate: np.ndarray
    permitted: np.ndarray
    epsilon: float
    delta: float
    point: tuple[float, float]
    bound: float
    view: str

    @classmethod
    def from_audit(cls, result: Any, *, view: str | None = None, ax: Any = None) -> "TradeOffDisplay":
        """Draw the result of an audit.

        Parameters
        ----------
        result : skdp.audit.AuditResult
            What `skdp.audit.audit` returned.
        view : {"transcript", "final"} or None, default=None
            What the adversary saw; None takes the first view that was audited.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        TradeOffDisplay
            The drawing.
        """
        bound = result.bounds[0] if view is None else result.bound(view)
        positive, negative = result.error_rates(bound.view)
        grid = np.linspace(0.0, 1.0, 1001)
        return cls(
            false_positive_rate=positive,
            false_negative_rate=negative,
            permitted=np.stack([grid, result.trade_off(bound.view, grid)]),
            epsilon=result.epsilon,
            delta=result.delta,
            point=(bound.false_positive_rate, bound.false_negative_rate),
            bound=bound.epsilon,
            view=bound.view,
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> "TradeOffDisplay":
        """Draw the curve of the attack, what the claim forbids, and the point of the bound.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        TradeOffDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        ax = axes_or_new(ax, (5.6, 5.2))
        self.ax_, self.figure_ = ax, ax.figure
        claim = f"forbidden by the claim, $\\varepsilon$ = {self.epsilon:g}, $\\delta$ = {self.delta:g}"
        ax.fill_between(*self.permitted, color=RED, alpha=0.2, linewidth=0, label=claim)
        ax.plot([0, 1], [1, 0], color=DARK, linewidth=1, linestyle=":", label="guessing")
        rates, observed = (self.false_positive_rate, self.false_negative_rate), "attack, as observed (the circle decides)"
        (self.line_,) = ax.plot(*rates, color=BLUE, linewidth=2, label=observed)
        bound = f"confidence bound, $\\varepsilon$ ≥ {self.bound:.3g}"
        ax.plot(*self.point, "o", color=BLUE, markersize=8, markerfacecolor="white", markeredgewidth=2, label=bound)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=f"Attack on the {VIEWS[self.view]}")
        ax.set(xlabel="false positive rate", ylabel="false negative rate")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="upper right", frameon=False)
        return self

"""Plot how the budget of a data set was spent, charge by charge."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._plots import axes_or_new

COLOURS = ("#1f5fa8", "#d9822b", "#3c8c5a", "#8a4fa3", "#666666")
RED, GREY = "#c0392b", "#999999"


@dataclass(kw_only=True, eq=False, repr=False)
class BudgetTimelineDisplay:
    """Plot the spent epsilon of a ledger after each charge, and its ceiling.

    Parameters
    ----------
    spent : ndarray of shape (n_charges,)
        Epsilon at the ceiling's delta after each charge, computed by the rule that the ledger enforces.
    labels : list of str of length n_charges
        Names of the charges.
    times : list of str of length n_charges
        Times of the charges, in ISO 8601.
    epsilon, delta : float
        The ceiling.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    line_ : matplotlib.lines.Line2D
        The steps of the plot.

    See Also
    --------
    skdp.PrivacyLedger : Record the charges that are shown here.
    """

    spent: np.ndarray
    labels: list[str]
    times: list[str]
    epsilon: float
    delta: float

    @classmethod
    def from_ledger(cls, ledger: Any, *, ax: Any = None) -> "BudgetTimelineDisplay":
        """Plot the entries of a ledger.

        Parameters
        ----------
        ledger : skdp.PrivacyLedger
            Its entries are read; nothing is charged.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        BudgetTimelineDisplay
            The drawing.
        """
        entries = ledger.entries
        return cls(
            spent=np.array(ledger.spent_after_each),
            labels=[entry.spending.estimator for entry in entries],
            times=[entry.time for entry in entries],
            epsilon=ledger.epsilon,
            delta=ledger.delta,
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> "BudgetTimelineDisplay":
        """Draw one step per charge and the ceiling.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        BudgetTimelineDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        ax = axes_or_new(ax, (8, 4))
        self.ax_, self.figure_ = ax, ax.figure
        numbers = np.arange(len(self.spent) + 1)
        (self.line_,) = ax.step(numbers, [0.0, *self.spent], where="post", color=GREY, linewidth=1)
        self._mark(ax)
        ax.axhline(self.epsilon, color=RED, linestyle="--", label=f"ceiling: epsilon {self.epsilon:g}, delta {self.delta:g}")
        ax.set(xlabel=self._span(), ylabel="epsilon spent", ylim=(0, 1.08 * self.epsilon), xlim=(0, max(len(numbers) - 0.5, 1)))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def _mark(self, ax: Any) -> None:
        """Draw one dot per charge, coloured by kind; from the fifth kind on, all kinds share a colour."""
        kinds = list(dict.fromkeys(self.labels))
        groups = {kind: [kind] for kind in kinds[:4]} | ({"others": kinds[4:]} if len(kinds) > 4 else {})
        for colour, (name, group) in zip(COLOURS, groups.items(), strict=False):
            places = [place for place, label in enumerate(self.labels) if label in group]
            ax.plot(np.array(places) + 1, self.spent[places], "o", color=colour, markersize=5, label=f"{name} ({len(places)})")

    def _span(self) -> str:
        if not self.times:
            return "charges (none yet)"
        first, last = (time[:16].replace("T", " ") for time in (self.times[0], self.times[-1]))
        return f"charge, from {first} to {last} UTC"

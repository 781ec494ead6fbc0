"""Plot the variances along private principal components with their intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._plots import axes_or_new

BLUE, PALE, GREY = "#1f5fa8", "#9dbfe3", "#777777"
SIZE = 6.0, 3.6  # inches
# Least variance that stands out, over the largest of noise alone: noise adds to it what makes it 1.05 (see `DPPCA`).
LEAST = 0.685


@dataclass(kw_only=True, eq=False, repr=False)
class ScreeDisplay:
    """Plot the variance along each component, with its interval; components that noise hides are grey.

    A dashed line is the least variance that stands out from the noise.

    Parameters
    ----------
    variance : ndarray of shape (n_components,)
        Variances along the components of rows clipped at the radius.
    interval : ndarray of shape (n_components, 2)
        Ends of 95 % intervals.
    n_above_noise : int
        Number of components that stand out from the noise.
    noise_edge : float
        Largest variance that noise alone would show.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.

    See Also
    --------
    skdp.DPPCA : The model.

    Notes
    -----
    **Privacy.** Everything in the plot follows from releases, so plotting costs no privacy.
    """

    variance: np.ndarray
    interval: np.ndarray
    n_above_noise: int
    noise_edge: float

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "ScreeDisplay":
        """Draw the variances of a fitted model.

        Parameters
        ----------
        estimator : DPPCA
            A fitted model, or a pipeline that ends in one.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ScreeDisplay
            The drawing.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If the model is not a DPPCA.
        """
        estimator = estimator[-1] if hasattr(estimator, "steps") else estimator
        check_is_fitted(estimator)
        if not hasattr(estimator, "n_above_noise_"):
            raise TypeError(f"estimator is a {type(estimator).__name__}; expected a DPPCA, or a pipeline that ends in one.")
        return cls(
            variance=estimator.explained_variance_,
            interval=estimator.explained_variance_interval_,
            n_above_noise=estimator.n_above_noise_,
            noise_edge=estimator.noise_edge_,
        ).plot(ax)

    def plot(self, ax: Any = None) -> "ScreeDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ScreeDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        from matplotlib.ticker import MaxNLocator

        ax = axes_or_new(ax, SIZE)
        self.ax_, self.figure_ = ax, ax.figure
        places = np.arange(1, len(self.variance) + 1)
        for found, pale, dark, label in ((True, PALE, BLUE, "above the noise"), (False, "#dddddd", GREY, "hidden by noise")):
            chosen = (places <= self.n_above_noise) == found
            if chosen.any():
                ax.vlines(places[chosen], *self.interval[chosen].T, color=pale, linewidth=5, zorder=2)
                ax.plot(
                    places[chosen],
                    self.variance[chosen],
                    "o",
                    color="white",
                    markeredgecolor=dark,
                    markersize=4,
                    zorder=3,
                    label=label,
                )
        least = LEAST * self.noise_edge
        ax.axhline(least, color=GREY, linewidth=1, linestyle="--", zorder=1, label="least that stands out")
        ax.set_xlim(0.4, len(places) + 0.6)
        ax.set_ylim(bottom=0.0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("component")
        ax.set_ylabel("variance of clipped rows,\n95 % interval")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
        return self

"""Plot released clusters in the plane in which their centres lie apart."""

from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._plots import axes_or_new
from skdp._validation import column_labels

BLUE, GREY = "#1f5fa8", "#777777"
SIZE = 5.0  # inches of the figure
LARGEST, SMALLEST = 1800.0, 20.0  # areas of the largest cluster and of one that is nearly empty, in square points
SHOWN = 0.3  # least weight of a feature that the label of an axis names, over the largest one
ALONE = 0.995  # weight from which the label names one feature alone
NAMED = 3  # largest number of features that it names
WIDTH = 1.2  # of the figure and of the plane that it shows, over the height
BREAK = 45  # characters in a line of the label of an axis, of which the figure has room for about 50
MARGIN = 1.5  # half the height of what is shown, over half the larger distance between centres: room for discs and counts


@dataclass(kw_only=True, eq=False, repr=False)
class ClusterDisplay:
    """Plot clusters by their centres, noisy counts, and the noise of both.

    The area of a disc is the number of records, which stands beside it with twice the standard deviation of its noise. A grey
    circle around a centre has twice that of the centre as radius. The plane is that of the first two components of the released
    centres, which count by their records; of two features, that of the features. Features are over the model's ``scale_``.

    Parameters
    ----------
    places : ndarray of shape (n_clusters, 2)
        Centres in the plane.
    spread : ndarray of shape (n_clusters,)
        Standard deviation of their noise along any direction of it.
    counts : ndarray of shape (n_clusters,)
        Noisy numbers of records.
    counts_std : float
        Standard deviation of the noise of a count.
    axes : tuple of str
        What each axis of the plane shows.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.

    See Also
    --------
    skdp.DPKMeans : Finds the clusters.

    Notes
    -----
    **Privacy.** Everything in the plot follows from releases, so plotting costs no privacy. There are no points: these would be
    records.
    """

    places: np.ndarray
    spread: np.ndarray
    counts: np.ndarray
    counts_std: float
    axes: tuple[str, str]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "ClusterDisplay":
        """Draw the clusters of a fitted model.

        Parameters
        ----------
        estimator : DPKMeans
            A fitted model, or a fitted pipeline that ends in one.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ClusterDisplay
            The drawing.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If it is no `skdp.DPKMeans`.
        """
        estimator = estimator[-1] if hasattr(estimator, "steps") else estimator
        check_is_fitted(estimator)
        if not hasattr(estimator, "cluster_counts_std_"):
            raise TypeError(f"estimator is a {type(estimator).__name__}; expected a DPKMeans.")
        centres, counts = estimator.cluster_centers_ / estimator.scale_, estimator.cluster_counts_
        spread = (estimator.cluster_centers_std_ / estimator.scale_).max(axis=1)
        names = getattr(estimator, "prepared_features_", getattr(estimator, "feature_names_in_", None))
        plane = plane_of(centres, counts)
        display = cls(
            places=centres @ plane,
            spread=spread,
            counts=counts,
            counts_std=estimator.cluster_counts_std_,
            axes=tuple(in_words(weights, column_labels(names, len(weights))) for weights in plane.T),  # type: ignore[arg-type]
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "ClusterDisplay":
        """Draw the clusters.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ClusterDisplay
            The display, with its axes and figure as attributes.
        """
        ax = axes_or_new(ax, (SIZE * WIDTH, SIZE))
        shares = np.clip(self.counts / max(float(self.counts.max()), 1e-300), 0.0, 1.0)
        ax.scatter(*self.places.T, s=np.maximum(LARGEST * shares, SMALLEST), color=BLUE, alpha=0.35, linewidth=0)
        ax.scatter(*self.places.T, s=12, color=BLUE, zorder=3)
        turn = np.linspace(0, 2 * np.pi, 100)
        for number, (place, spread, count) in enumerate(zip(self.places, self.spread, self.counts, strict=True)):
            ax.plot(*(place[:, None] + 2 * spread * np.stack([np.cos(turn), np.sin(turn)])), color=GREY, linewidth=0.8)
            text = f"{number}: {count:.0f} ± {2 * self.counts_std:.0f}"
            ax.annotate(text, place, xytext=(6, 6), textcoords="offset points", fontsize=9)
        low, high = self.places.min(axis=0), self.places.max(axis=0)
        half = MARGIN * max(float((high - low).max()) / 2, 2 * float(self.spread.max()), 1e-9)
        ends = (low + high)[:, None] / 2 + half * np.array([[-WIDTH, WIDTH], [-1.0, 1.0]])
        across, up = (fill(label, BREAK) for label in self.axes)
        ax.set(xlabel=across, ylabel=up, xlim=ends[0], ylim=ends[1], aspect="equal")
        ax.set_title("records ± 2 sd of the noise; circle: 2 sd of the centre", fontsize=10)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plane_of(centres: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return two orthonormal directions, as columns, in which centres lie apart most; those of the features if there are two."""
    d = centres.shape[1]
    if d <= 2:
        return np.eye(d, 2)
    weights = np.sqrt(np.maximum(counts, 0.0) + 1e-9 * max(float(counts.max()), 1.0))
    mean = np.average(centres, axis=0, weights=weights**2)
    vectors = np.linalg.svd((centres - mean) * weights[:, None], full_matrices=True)[2][:2].T
    return np.asarray(vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0))


def in_words(weights: np.ndarray, names: list[str]) -> str:
    """Return the largest weights of a direction with their features, such as ``0.8 age - 0.6 hours``."""
    order = np.argsort(-np.abs(weights), kind="stable")[:NAMED]
    shown = [place for place in order if abs(weights[place]) >= SHOWN * abs(weights[order[0]]) > 0]
    if len(shown) == 1:
        return f"{'mostly ' if abs(weights[shown[0]]) < ALONE else ''}{names[shown[0]]}"
    terms = [f"{'-' if weights[place] < 0 else '+'} {abs(weights[place]):.2g} {names[place]}" for place in shown]
    return " ".join(terms).removeprefix("+ ")

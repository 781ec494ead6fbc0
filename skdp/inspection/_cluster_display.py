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
    ellipse around a centre has twice that of the centre as radii. One or two features are drawn in the units of
    ``cluster_centers_``. Of more, the plane is that of the first two components of the released centres, which count by their
    records, of features over the model's ``scale_``, as the labels of the axes say.

    Parameters
    ----------
    places : ndarray of shape (n_clusters, 2)
        Centres in the plane.
    spread : ndarray of shape (n_clusters, 2)
        Standard deviations of their noise along its axes.
    counts : ndarray of shape (n_clusters,)
        Noisy numbers of records.
    counts_std : float
        Standard deviation of the noise of a count.
    axes : tuple of str
        What each axis of the plane shows.
    alike : bool, default=True
        Whether both axes have the same unit.

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
    alike: bool = True

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
        names = getattr(estimator, "prepared_features_", getattr(estimator, "feature_names_in_", None))
        few = estimator.cluster_centers_.shape[1] <= 2
        scale = np.ones_like(estimator.scale_) if few else estimator.scale_
        centres, spread = estimator.cluster_centers_ / scale, estimator.cluster_centers_std_ / scale
        plane = plane_of(centres, estimator.cluster_counts_)
        axes = [in_words(weights, column_labels(names, len(weights))) for weights in plane.T]
        over = "" if (scale == 1).all() else ", each over scale_"
        display = cls(
            places=centres @ plane,
            spread=spread @ plane if few else np.repeat(spread.max(axis=1, keepdims=True), 2, axis=1),  # the same for all
            counts=estimator.cluster_counts_,
            counts_std=estimator.cluster_counts_std_,
            axes=tuple(axes if few else [f"component {place}: {axis}{over}" for place, axis in enumerate(axes, 1)]),  # type: ignore[arg-type]
            alike=not few,
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
            ax.plot(*(place + 2 * spread * np.column_stack([np.cos(turn), np.sin(turn)])).T, color=GREY, linewidth=0.8)
            text = f"{number}: {count:.0f} ± {2 * self.counts_std:.0f}"
            ax.annotate(text, place, xytext=(6, 6), textcoords="offset points", fontsize=9)
        low, high = self.places.min(axis=0), self.places.max(axis=0)
        half = MARGIN * np.maximum((high - low) / 2, 2 * self.spread.max(axis=0))
        half = np.maximum(half.max(), 1e-9) * np.array([WIDTH, 1.0]) if self.alike else np.where(half > 0, half, 1.0)
        ends = (low + high)[:, None] / 2 + half[:, None] * np.array([-1.0, 1.0])
        across, up = (fill(label, BREAK) for label in self.axes)
        ax.set(xlabel=across, ylabel=up, xlim=ends[0], ylim=ends[1], aspect="equal" if self.alike else "auto")
        ax.set_title("records ± 2 sd of the noise; line: 2 sd of the centre", fontsize=10)
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

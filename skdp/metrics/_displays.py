"""Plot the ROC curve, the calibration curve and the confusion matrix that follow from a private evaluation."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from skdp._plots import axes_or_new
from skdp.metrics._evaluation import Evaluation
from skdp.metrics._noisy_mean import NoisyMean
from skdp.metrics._noisy_table import WIDEST, NoisyTable

BLUE, PALE, GREY = "#1f5fa8", "#9dbfe3", "#777777"
SIZE = (4.6, 4.4)  # inches


@dataclass(kw_only=True, eq=False, repr=False)
class RocCurveDisplay:
    """Plot the ROC curve of a private evaluation, with a band.

    Parameters
    ----------
    fpr, tpr : ndarray of shape (m,)
        Estimated false and true positive rates from the largest threshold to the smallest, without a decrease.
    fpr_interval, tpr_interval : ndarray of shape (m, 2)
        Ends of their intervals.
    thresholds : ndarray of shape (m,)
        Probabilities of the second class from which on a record counts as positive; inf for none.
    roc_auc : tuple of float
        Area under the curve, and both ends of its interval.
    level : float
        Level of the band.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.

    See Also
    --------
    sklearn.metrics.RocCurveDisplay : The display of exact scores.

    Notes
    -----
    **Privacy.** Everything in the plot follows from the released table, so plotting costs no privacy.

    **The band** joins one rectangle for each threshold. Both sides of a rectangle are Fieller intervals of half the error
    probability, so that it holds the point of its threshold with at least the stated level. The level is that of each threshold,
    not of the whole curve.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    fpr_interval: np.ndarray
    tpr_interval: np.ndarray
    thresholds: np.ndarray
    roc_auc: tuple[float, float, float]
    level: float

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Any = None) -> "RocCurveDisplay":
        """Draw the curve of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            What `evaluate` returned for a classifier.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        RocCurveDisplay
            The drawing.

        Raises
        ------
        TypeError
            If this is not the evaluation of a classifier, or if its release was made for fewer metrics.
        """
        table = _table(evaluation)
        size = len(table.middles)
        inner = np.arange(size - 1, 0, -1)
        rates = []
        for label in (0, 1):
            of_class = np.outer([label == 0, label == 1], np.ones(size))
            both = (1 + evaluation.level) / 2  # level of each of two intervals that hold at once with that of the evaluation
            found = np.array([table.ratio(of_class * (np.arange(size) >= k), of_class, both) for k in inner])
            rates.append(np.vstack([np.zeros(3), found, np.ones(3)]))
        steady = [isotonic_regression(np.nan_to_num(rate[:, 0], nan=0.5), y_min=0.0, y_max=1.0) for rate in rates]
        return cls(
            fpr=steady[0],
            tpr=steady[1],
            fpr_interval=rates[0][:, 1:],
            tpr_interval=rates[1][:, 1:],
            thresholds=np.concatenate([[np.inf], expit(table.edges[inner]), [0.0]]),
            roc_auc=table.auc(evaluation.level),
            level=evaluation.level,
        ).plot(ax)

    def plot(self, ax: Any = None) -> "RocCurveDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        RocCurveDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        ax = _axes(self, ax)
        value, low, high = self.roc_auc
        text = f"AUC {value:.3f} [{low:.3f}, {high:.3f}]" if high - low <= WIDEST else "AUC not determined"
        best = np.maximum.accumulate(np.column_stack([self.fpr_interval[:, 0], self.tpr_interval[:, 1]]))
        worst = np.maximum.accumulate(np.column_stack([self.fpr_interval[:, 1], self.tpr_interval[:, 0]]))
        ax.fill(*np.vstack([best, worst[::-1]]).T, color=PALE, alpha=0.6, linewidth=0, label=f"{100 * self.level:g} % band")
        ax.plot(self.fpr, self.tpr, color=BLUE, label=text)
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
        ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        ax.legend(loc="lower right", frameon=False)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class CalibrationDisplay:
    """Plot the share of the second class against its predicted probability, from a private evaluation, with intervals.

    Parameters
    ----------
    prob_true : ndarray of shape (m,)
        Estimated share of the second class in each range of the predicted probability.
    interval : ndarray of shape (m, 2)
        Ends of its interval.
    prob_pred : ndarray of shape (m,)
        Estimated mean of the predicted probability in each range.
    ranges : ndarray of shape (m, 2)
        Ends of the ranges.
    level : float
        Level of the intervals.
    pos_label : object, default=None
        The second class; None calls it so.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.

    See Also
    --------
    sklearn.calibration.CalibrationDisplay : The display of exact scores.

    Notes
    -----
    **Privacy.** Everything in the plot follows from the released table, so plotting costs no privacy.

    **Intervals** are those of Fieller, for noise and sampling. A range whose interval is wider than 0.5 is left out. The mean
    predicted probability of a range follows from the ranges of log-odds that were counted, in each of which it is taken to be in
    the middle. Probabilities are clipped to those of the log-odds from -6 to 6.
    """

    prob_true: np.ndarray
    interval: np.ndarray
    prob_pred: np.ndarray
    ranges: np.ndarray
    level: float
    pos_label: Any = None

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, n_bins: int = 10, ax: Any = None) -> "CalibrationDisplay":
        """Draw the curve of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            What `evaluate` returned for a classifier.
        n_bins : int, default=10
            Largest number of ranges. Neighbouring ranges of the table are joined until each holds about this part of the records.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        CalibrationDisplay
            The drawing.

        Raises
        ------
        TypeError
            If this is not the evaluation of a classifier, or if its release was made for fewer metrics.
        ValueError
            If ``n_bins`` is no integer from 1 on.
        """
        table = _table(evaluation)
        if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
            raise ValueError(f"n_bins={n_bins!r}; expected an integer from 1 on.")
        smooth, size = table.smooth(), len(table.middles)
        found, ranges, means = [], [], []
        for start, stop in _joined(smooth.sum(axis=0), int(n_bins)):
            within = (np.arange(size) >= start) & (np.arange(size) < stop)
            share = table.ratio(np.outer([0.0, 1.0], within), np.outer([1.0, 1.0], within), evaluation.level)
            if share[2] - share[1] > WIDEST or np.isnan(share[0]):
                continue
            found.append(share)
            ranges.append(expit(table.edges[[start, stop]]))
            means.append(np.average(expit(table.middles[start:stop]), weights=smooth.sum(axis=0)[start:stop] + 1e-9))
        shares = np.array(found).reshape(-1, 3)
        return cls(
            prob_true=shares[:, 0],
            interval=shares[:, 1:],
            prob_pred=np.array(means),
            ranges=np.array(ranges).reshape(-1, 2),
            level=evaluation.level,
            pos_label=evaluation.classes[1],
        ).plot(ax)

    def plot(self, ax: Any = None) -> "CalibrationDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        CalibrationDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        ax = _axes(self, ax)
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", label="perfectly calibrated")
        ax.vlines(self.prob_pred, *self.interval.T, color=PALE, linewidth=4, label=f"{100 * self.level:g} % intervals")
        ax.plot(self.prob_pred, self.prob_true, "o-", color=BLUE, markersize=4, linewidth=1)
        if not len(self.prob_pred):
            ax.text(0.7, 0.2, "no range is shown:\nnoise hides the shares", ha="center", color=GREY, transform=ax.transAxes)
        whose = "the second class" if self.pos_label is None else f"class {self.pos_label}"
        ax.set(xlabel="mean predicted probability", ylabel=f"share of {whose}")
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        ax.legend(loc="upper left", frameon=False)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ConfusionMatrixDisplay:
    """Plot the confusion matrix of a private evaluation, with the interval of each cell.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_classes)
        Estimates, by true class in rows and predicted class in columns.
    interval : ndarray of shape (n_classes, n_classes, 2)
        Ends of the intervals, in the last axis.
    display_labels : sequence of str
        Names of the classes.
    normalize : {"true", "pred", "all"} or None
        What the cells are shares of; None for numbers of records.
    level : float
        Level of the intervals.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.

    See Also
    --------
    sklearn.metrics.ConfusionMatrixDisplay : The display of exact predictions.

    Notes
    -----
    **Privacy.** Everything in the plot follows from the released table, so plotting costs no privacy.

    **Intervals** cover noise and sampling: those of numbers of records are for as many other records. Shares of a class have
    Fieller's intervals. A cell whose interval is wider than half of all has no value.
    """

    confusion_matrix: np.ndarray
    interval: np.ndarray
    display_labels: Any
    normalize: str | None
    level: float

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, normalize: str | None = None, display_labels: Any = None, ax: Any = None
    ) -> "ConfusionMatrixDisplay":
        """Draw the matrix of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            What `evaluate` returned for a classifier.
        normalize : {"true", "pred", "all"} or None, default=None
            Whether to show shares of the true classes, of the predicted classes or of all records; None for numbers of records.
        display_labels : sequence of str or None, default=None
            Names of the classes; None takes those of the model.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ConfusionMatrixDisplay
            The drawing.

        Raises
        ------
        TypeError
            If this is not the evaluation of a classifier, or if its release was made for fewer metrics.
        ValueError
            If ``normalize`` has another value, or if there is not one label per class.
        """
        table = _table(evaluation, several=True)
        if normalize not in ("true", "pred", "all", None):
            raise ValueError(f"normalize={normalize!r}; expected 'true', 'pred', 'all' or None.")
        labels = [str(label) for label in (evaluation.classes if display_labels is None else display_labels)]
        if len(labels) != len(table.counts):
            raise ValueError(f"{len(labels)} display labels; expected {len(table.counts)}.")
        found = table.confusion_matrix(evaluation.level, normalize)
        return cls(
            confusion_matrix=found[:, :, 0],
            interval=found[:, :, 1:],
            display_labels=labels,
            normalize=normalize,
            level=evaluation.level,
        ).plot(ax)

    def plot(self, ax: Any = None) -> "ConfusionMatrixDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ConfusionMatrixDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        ax = _axes(self, ax, len(self.confusion_matrix))
        form = ".0f" if self.normalize is None else ".3f"
        cells = np.nan_to_num(self.confusion_matrix)
        ax.imshow(cells, cmap="Blues", vmin=0)
        for row, column in np.ndindex(cells.shape):
            value, (low, high) = self.confusion_matrix[row, column], self.interval[row, column]
            text = "not determined" if np.isnan(value) else f"{value:{form}}\n[{low:{form}}, {high:{form}}]"
            dark = cells[row, column] > cells.max() / 2
            ax.text(column, row, text, ha="center", va="center", color="white" if dark else "black")
        ax.set_xticks(range(len(cells)), self.display_labels)
        ax.set_yticks(range(len(cells)), self.display_labels)
        ax.set(xlabel=f"predicted class, {100 * self.level:g} % intervals", ylabel="true class")
        return self


def _table(evaluation: Any, several: bool = False) -> NoisyTable:
    table = getattr(evaluation, "table", None)
    if isinstance(table, NoisyMean) or (isinstance(table, NoisyTable) and len(table.edges) == 3 and not several):
        more = "'recall'" if several else "'roc_auc'"
        raise TypeError(f"The evaluation released no more than its metrics need; expected {more} among its metrics.")
    if not isinstance(table, NoisyTable) or (len(table.counts) > 2 and not several):
        classifier = "a classifier" if several else "a classifier of two classes"
        raise TypeError(f"{type(evaluation).__name__}; expected what skdp.metrics.evaluate returned for {classifier}.")
    return table


def _axes(display: Any, ax: Any, n_classes: int = 2) -> Any:
    width, height = (length * max(n_classes / 4, 1) for length in SIZE)
    ax = axes_or_new(ax, (width, height))
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def _joined(counts: np.ndarray, n_bins: int) -> list[tuple[int, int]]:
    """Return the ends of joined ranges, each with about this part of the records."""
    shares = np.cumsum(counts) / max(counts.sum(), 1.0)
    ends = np.unique([int(np.argmin(np.abs(shares - k / n_bins))) + 1 for k in range(1, n_bins)])
    cuts = [0, *(int(end) for end in ends if 0 < end < counts.size), counts.size]
    return list(pairwise(cuts))

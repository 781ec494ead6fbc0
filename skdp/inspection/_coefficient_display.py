"""Plot the coefficients of a model fitted for inference, with the noise part and the whole of their intervals."""

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._plots import axes_or_new

BLUE, PALE, GREY = "#1f5fa8", "#9dbfe3", "#777777"
HEIGHT, LINE, WIDTH = 0.32, 0.17, 6.0  # inches: of a coefficient, of each further line of the longest name, and of the figure
LONGEST, LETTER = 30, 0.085  # letters of a line of a name, which is wrapped beyond; and inches of each beyond half of these
MOST_TICKS = 7  # of an axis of ratios; where these are more, only some are labelled
FEWER_TICKS = 0.01, 0.1, 0.5, 0.7, 1, 1.5, 2, 3, 10, 100


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientDisplay:
    """Plot coefficients with their confidence intervals, one per line.

    A thick line is the part of an interval that is due to the noise of the privacy mechanism; it would be there if the records
    were the whole population. A thin line is the confidence interval, which also includes the sampling of the records.
    Coefficients that the budget does not identify have a grey note in place of an interval.

    Parameters
    ----------
    names : sequence of str
        Names of the coefficients, from top to bottom.
    estimate : ndarray of shape (m,)
        Values.
    confidence, noise : ndarray of shape (m, 2)
        Ends of both intervals.
    estimable : ndarray of bool of shape (m,)
        Whether the budget identifies a coefficient.
    level : float
        Level of the intervals.
    odds : bool
        Whether to plot odds ratios, on a logarithmic axis.
    event : object, default=None
        Class with the odds; None for numbers.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.

    See Also
    --------
    skdp.DPLogisticRegression : With ``inference=True``.
    skdp.DPLinearRegression : With ``inference=True``.

    Notes
    -----
    **Privacy.** Everything in the plot follows from releases, so plotting costs no privacy.
    """

    names: Any
    estimate: np.ndarray
    confidence: np.ndarray
    noise: np.ndarray
    estimable: np.ndarray
    level: float
    odds: bool
    event: Any = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        features: Any = None,
        level: float = 0.95,
        odds_ratios: bool | None = None,
        units: Any = None,
        ax: Any = None,
    ) -> "CoefficientDisplay":
        """Draw the coefficients of a fitted model.

        Parameters
        ----------
        estimator : DPLogisticRegression or DPLinearRegression
            A model fitted with ``inference=True``, or a fitted pipeline or search that ends in one.
        features : list of str or None, default=None
            Names of the coefficients to draw, in this order; None draws all, without the intercept.
        level : float, default=0.95
            Level of the intervals, in (0, 1).
        odds_ratios : bool or None, default=None
            Whether to draw odds ratios; None does so for a classifier.
        units : dict or None, default=None
            Factor of a feature's coefficient, by name: with 10 the effect is that of 10 units. Others have 1, but for odds ratios
            of columns in large units: these have the power of ten of ``summary``.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        CoefficientDisplay
            The drawing.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If the model is not a linear one of `skdp`.
        AttributeError
            If the model was not fitted for inference.
        ValueError
            If there is no such feature, or if a regressor is asked for odds ratios.
        """
        estimator = getattr(estimator, "best_estimator_", estimator)
        estimator = estimator[-1] if hasattr(estimator, "steps") else estimator
        check_is_fitted(estimator)
        if not hasattr(estimator, "wald_test"):  # the linear models of skdp alone have tests of coefficients
            raise TypeError(
                f"estimator is a {type(estimator).__name__}; expected a DPLogisticRegression or DPLinearRegression, fitted with "
                "inference=True. AdditiveDisplay draws additive and boosted models."
            )
        if not hasattr(estimator, "inference_"):
            if getattr(estimator, "link", "identity") != "identity":
                raise AttributeError(
                    f"{type(estimator).__name__} was fitted with link={estimator.link!r}, which has no tests of coefficients; "
                    "expected link='identity' with inference=True. DPAdditiveRegressor with a link has bands for its curves, "
                    "which AdditiveDisplay draws."
                )
            raise AttributeError(f"{type(estimator).__name__} was not fitted for inference; expected inference=True, and a fit.")
        known = estimator._names()
        chosen = known if features is None else [str(name) for name in features]
        if unknown := [name for name in {**dict.fromkeys(chosen), **dict(units or {})} if name not in known]:
            raise ValueError(f"There are no features {unknown}; expected some of {known}.")
        classifier = hasattr(estimator, "classes_")
        if odds_ratios and not classifier:
            raise ValueError("odds_ratios=True for numbers; expected None or False: only a classifier has odds.")
        odds = classifier if odds_ratios is None else bool(odds_ratios)
        known_units = {**(estimator._per() if odds else {}), **(units or {})}
        factors = np.array([float(known_units.get(name, 1.0)) for name in chosen])
        rows = np.eye(len(known))[[known.index(name) for name in chosen]] * factors[:, None]
        whole = estimator.contrast(rows, chosen, level=level)
        noise = estimator._of_event(
            estimator.inference_.contrasts(rows, np.zeros(len(rows)), np.array(chosen), float(level), "noise")
        )
        references = estimator._references()
        labels = [name if factor == 1 else f"{name} (per {factor:g})" for name, factor in zip(chosen, factors, strict=True)]
        labels = [
            f"{label} (against {references[n]})" if n in references else label for n, label in zip(chosen, labels, strict=True)
        ]
        return cls(
            names=labels,
            estimate=whole.estimate,
            confidence=np.column_stack([whole.lower, whole.upper]),
            noise=np.column_stack([noise.lower, noise.upper]),
            estimable=whole.estimable,
            level=float(level),
            odds=odds,
            event=whole.event,
        ).plot(ax)

    def plot(self, ax: Any = None) -> "CoefficientDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        CoefficientDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        labels = ["\n".join(textwrap.wrap(name, LONGEST)) for name in self.names]
        lines = [label.split("\n") for label in labels]
        longest, most = max((len(line) for label in lines for line in label), default=0), max(map(len, lines), default=1)
        height = 1.1 + (HEIGHT + LINE * (most - 1)) * len(labels)
        ax = axes_or_new(ax, (WIDTH + LETTER * max(0, longest - LONGEST // 2), height))
        self.ax_, self.figure_ = ax, ax.figure
        shown = np.exp if self.odds else np.asarray
        places = np.arange(len(self.names))[::-1]
        for place, estimate, confidence, noise, known in zip(
            places, self.estimate, self.confidence, self.noise, self.estimable, strict=True
        ):
            if not known:
                ax.annotate(
                    "not identified at this budget",
                    (0.5, place),
                    xycoords=("axes fraction", "data"),
                    ha="center",
                    va="center",
                    color=GREY,
                    style="italic",
                )
                continue
            ax.plot(shown(confidence), [place, place], color=PALE, linewidth=2, zorder=2)
            ax.plot(shown(noise), [place, place], color=BLUE, linewidth=5, solid_capstyle="butt", zorder=3)
            ax.plot(shown(estimate), place, "o", color="white", markeredgecolor=BLUE, zorder=4)
        ax.axvline(1.0 if self.odds else 0.0, color=GREY, linewidth=1, zorder=1)
        if self.odds:
            ax.set_xscale("log")
            self._label_ratios(shown)
        ax.set_yticks(places, labels)
        ax.set_ylim(-0.7, len(self.names) - 0.3)
        of = "" if self.event is None else f" of {self.event}"
        what = f"odds ratio{of} (log scale)" if self.odds else f"coefficient{of}"
        ax.set_xlabel(f"{what}, {100 * self.level:g} % interval")
        ax.plot([], [], color=BLUE, linewidth=5, label="privacy noise")
        ax.plot([], [], color=PALE, linewidth=2, label="noise and sampling")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
        return self

    def _label_ratios(self, shown: Any) -> None:
        """Write ratios as plain numbers."""
        from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

        ends = shown(self.confidence[self.estimable])
        low, high = (float(ends.min()), float(ends.max())) if ends.size else (0.5, 2.0)
        coarse, fine = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100), (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3)
        ticks = [tick for tick in (fine if 0.5 <= low and high <= 3 else coarse) if low / 1.5 <= tick <= high * 1.5]
        ticks = ticks if len(ticks) <= MOST_TICKS else [tick for tick in ticks if tick in FEWER_TICKS]
        self.ax_.xaxis.set_major_locator(FixedLocator(ticks))
        self.ax_.xaxis.set_minor_locator(NullLocator())
        self.ax_.xaxis.set_minor_formatter(NullFormatter())
        self.ax_.set_xticklabels([f"{tick:g}" for tick in ticks])

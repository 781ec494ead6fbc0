"""Plot the functions of an additive model, with the bands of their noise."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from skdp._label_types import classes_of
from skdp.inspection._additive_panels import Panel, panels_of, plain

__all__ = ["AdditiveDisplay"]

WIDTH, HEIGHT, LETTER = 3.4, 2.1, 0.06  # inches: size of a panel, and of one letter of the vertical names below it
GAP = 0.1  # inches: space above and below the text around a panel
MOST = 4  # largest number of panels into which a single axes is divided


class AdditiveDisplay:
    """Plot the functions of an additive model, the most important first.

    A number has a curve, a category has one bar per value, and a pair of columns has a heat map. All panels except heat maps
    share the vertical axis, so heights can be compared. Bands and error bars are the 95 % band of the noise that was added for
    privacy. After a fit for inference they are 95 % confidence bands, with the band of the noise darker inside, and a curve has
    gaps where the budget does not identify it. In a heat map, the colours are interpolated between knots like the function, and a
    dot marks a point where the band contains 0. If a column has more than 60 categories, the 40 whose bands are farthest from 0
    are drawn.

    Parameters
    ----------
    functions : sequence of ShapeFunction
        Functions to draw, in this order.
    response : str
        The quantity to which the functions add; label of the vertical axis.
    classes : sequence or None, default=None
        Labels of the last axis of the values, if they have one.
    n_all : int or None, default=None
        Number of functions of the model, if some are left out.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        One panel per function, in their order; a pair has one per class.
    figure_ : matplotlib.figure.Figure
        The figure of the axes.

    See Also
    --------
    skdp.DPAdditiveClassifier : Classifier with such functions in ``shape_functions_``.
    skdp.DPAdditiveRegressor : Regressor with such functions in ``shape_functions_``.
    skdp.DPGradientBoostingClassifier : Classifier with partial dependences in ``shape_functions_``, and functions of all pairs.
    skdp.DPGradientBoostingRegressor : Regressor with the same.

    Notes
    -----
    **Privacy.** Everything in the plot was released or is public, so plotting costs no privacy.
    """

    def __init__(
        self, functions: Sequence[Any], *, response: str, classes: Sequence[Any] | None = None, n_all: int | None = None
    ) -> None:
        self.functions, self.response, self.classes, self.n_all = list(functions), response, classes, n_all

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        terms: Sequence[Any] | None = None,
        n_terms: int = 12,
        target: Any = None,
        order: str = "given",
        n_cols: int = 3,
        sharey: bool = True,
        ax: Any = None,
        simultaneous: bool = False,
    ) -> "AdditiveDisplay":
        """Draw the functions of a fitted model: of two classes, for the log-odds of the event.

        Parameters
        ----------
        estimator : DPAdditiveClassifier, DPAdditiveRegressor, DPGradientBoostingClassifier or DPGradientBoostingRegressor
            A fitted model, a fitted pipeline that ends in one, or a fitted search for one.
        terms : str, list of str or pair of str, or None, default=None
            Columns and pairs to draw, in this order; of a boosted model, any pairs. None draws the most important functions of
            ``shape_functions_``.
        n_terms : int, default=12
            Number of terms to draw if ``terms`` is None.
        target : object, default=None
            Class whose functions to draw, if there are more than two classes; None draws all classes.
        order : {"given", "value"}, default="given"
            Order of the bars of a category: as in the schema, or from the lowest to the highest.
        n_cols : int, default=3
            Panels in a row.
        sharey : bool, default=True
            Whether curves and bars share the vertical axis. False gives each panel its own, so that a function that is all noise
            does not make the others flat. Axes that are given one by one stay as they are.
        ax : matplotlib.axes.Axes, array-like of them, or None, default=None
            Where to draw: one axes, which is divided for up to 4 panels, or one per panel. None makes a figure. A figure of
            yours has room for long names if it was made with ``layout="constrained"``.
        simultaneous : bool, default=False
            Whether a band holds a whole curve at once, or each of its points by itself. Pairs of a boosted model have bands of
            points.

        Returns
        -------
        AdditiveDisplay
            The drawing.

        Raises
        ------
        TypeError, ValueError
            If the estimator is not an additive model, if it has no such term or class, or if there are too few axes.
        NotFittedError
            If the estimator is not fitted.
        """
        estimator = getattr(estimator, "best_estimator_", estimator)
        estimator = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        known = _functions(estimator, simultaneous)
        pair = getattr(estimator, "interaction", None)
        chosen = _most_important(known, n_terms) if terms is None else _named(known, terms, pair)
        classes = None if chosen[0].values.ndim == len(chosen[0].names) else np.asarray(estimator.classes_).tolist()
        response = _response(estimator, target if classes else None)
        if target is not None:
            chosen, classes = [_of_class(function, classes, target) for function in chosen], None
        if hasattr(estimator, "classes_") and tuple(estimator.classes_) != classes_of(estimator):
            chosen = [_negated(function) for function in chosen]
        display = cls(chosen, response=response, classes=classes, n_all=len(known) if terms is None else None)
        return display.plot(ax=ax, order=order, n_cols=n_cols, sharey=sharey)

    def plot(self, ax: Any = None, *, order: str = "given", n_cols: int = 3, sharey: bool = True) -> "AdditiveDisplay":
        """Draw a panel per function.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, array-like of them, or None, default=None
            Where to draw: one axes, which is divided for up to 4 panels, or one per panel. None makes a figure. A figure of
            yours has room for long names if it was made with ``layout="constrained"``.
        order : {"given", "value"}, default="given"
            Order of the bars of a category: as in the schema, or from the lowest to the highest.
        n_cols : int, default=3
            Panels in a row.
        sharey : bool, default=True
            Whether curves and bars share the vertical axis. False gives each panel its own, so that a function that is all noise
            does not make the others flat. Axes that are given one by one stay as they are.

        Returns
        -------
        AdditiveDisplay
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        ValueError
            If there are too few axes, or no such order.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("A plot needs matplotlib, which is missing; pip install matplotlib brings it.") from None
        if order not in ("given", "value"):
            raise ValueError(f"order={order!r}; expected 'given' or 'value'.")
        if not n_cols >= 1:
            raise ValueError(f"n_cols={n_cols!r}; expected a positive number.")
        panels = [panel for function in self.functions for panel in panels_of(function, self.classes, order)]
        self.axes_ = _axes(plt, panels, ax, n_cols, sharey)
        self.figure_ = self.axes_[0].figure
        for axes, panel in zip(self.axes_, panels, strict=True):
            panel.draw(axes)
            axes.spines[["top", "right"]].set_visible(False)
        self._say([axes for axes, panel in zip(self.axes_, panels, strict=True) if not panel.is_pair], own=ax is None)
        return self

    def _say(self, plots: list[Any], own: bool) -> None:
        """Add to the figure the meaning of the heights, the colours of the classes, and the number of functions left out."""
        if own:
            self.figure_.supylabel(plain(self.response), fontsize="medium")
        elif plots:
            plots[0].set_ylabel(plain(self.response))
        if self.classes and plots:
            where = {"loc": "outside upper center", "ncols": len(self.classes)} if own else {}
            (self.figure_ if own else plots[0]).legend(*plots[0].get_legend_handles_labels(), frameon=False, **where)
        if own and self.n_all is not None and self.n_all > len(self.functions):
            note = f"the {len(self.functions)} most important of {self.n_all} functions"
            self.figure_.supxlabel(note, fontsize="small")


def _functions(estimator: Any, simultaneous: bool) -> dict[Any, Any]:
    try:
        return dict(estimator.bands(simultaneous=True) if simultaneous else estimator.shape_functions_)
    except NotFittedError:
        raise
    except AttributeError as error:
        given, known = type(estimator).__name__, hasattr(type(estimator), "shape_functions_")  # as DPTabular estimators have
        why = f" {error}" if known else " CoefficientDisplay draws linear models."
        raise TypeError(
            f"estimator is a {given}; expected an additive model, or a pipeline that ends in one, such as "
            f"DPAdditiveClassifier or DPGradientBoostingRegressor.{why}"
        ) from None


def _most_important(known: dict[Any, Any], n_terms: int) -> list[Any]:
    if not n_terms >= 1:
        raise ValueError(f"n_terms={n_terms!r}; expected a positive number.")
    return sorted(known.values(), key=lambda function: -function.importance)[:n_terms]


def _named(known: dict[Any, Any], terms: Any, pair: Callable[[Any, Any], Any] | None) -> list[Any]:
    """Return the functions of terms; a boosted model has one of any pair."""
    terms = [terms] if isinstance(terms, str) else terms
    if len(terms) == 0:
        raise ValueError(f"terms={terms!r}; expected a list of some of {list(known)!r}.")
    found = []
    for term in terms:
        keys = [tuple(term), tuple(term)[::-1]] if isinstance(term, (tuple, list)) else [term]
        if not (same := [key for key in keys if key in known]):
            if pair is not None and len(keys) == 2 and len(term) == 2:
                found.append(pair(*term))
                continue
            more = " and pairs of them" if pair is not None else ""
            raise ValueError(f"terms has {term!r}; expected some of {list(known)!r}{more}.")
        found.append(known[same[0]])
    return found


def _of_class(function: Any, classes: list[Any] | None, target: Any) -> Any:
    """Return the function of one class."""
    if classes is None or target not in classes:
        known = "None: the model has one function per column" if classes is None else f"one of {classes!r}"
        raise ValueError(f"target={target!r}; expected {known}.")
    place = classes.index(target)
    parts = {name: getattr(function, name) for name in ("values", "lower", "upper", "missing")}
    return replace(function, **{name: None if part is None else part[..., place] for name, part in parts.items()})


def _negated(function: Any) -> Any:
    """Return the function for the log-odds of the other class."""

    missing = None if function.missing is None else -function.missing[[0, 2, 1]]
    noise = None if function.noise is None else (-function.noise[1], -function.noise[0])
    lower, upper = (None if end is None else -end for end in (function.upper, function.lower))
    return replace(function, values=-function.values, lower=lower, upper=upper, missing=missing, noise=noise)


def _response(estimator: Any, target: Any) -> str:
    if hasattr(estimator, "classes_"):
        classes = np.asarray(estimator.classes_).tolist()
        one = target if target is not None else classes_of(estimator)[1] if len(classes) == 2 else "the class"
        return f"added to the log-odds of {one}" if len(classes) == 2 else f"added to the score of {one}"
    facts = getattr(getattr(estimator, "basis_", None), "facts", None)
    return f"added to {getattr(facts, 'target', None) or 'the prediction'}"


def _axes(plt: Any, panels: list[Panel], ax: Any, n_cols: int, sharey: bool) -> np.ndarray:
    """One axes per panel."""
    if ax is not None and not hasattr(ax, "get_subplotspec"):
        given = np.asarray(ax, dtype=object).ravel()
        if len(given) < len(panels):
            raise ValueError(f"ax has {len(given)} axes; expected one for each of {len(panels)} panels, or a single one.")
        return given[: len(panels)]
    if ax is not None and len(panels) == 1:
        return np.array([ax], dtype=object)
    if ax is not None and len(panels) > MOST:
        raise ValueError(
            f"ax is a single axes, which has no room for {len(panels)} panels; expected at most {MOST}: select some with "
            "terms=[...], or leave out ax to create a figure."
        )
    n_cols = min(n_cols, max(len(panels), max(panel.n_units for panel in panels)))
    places, n_rows = _places([min(panel.n_units, n_cols) for panel in panels], n_cols)
    if ax is None:
        letters = np.zeros(n_rows)
        np.maximum.at(letters, [row for row, _ in places], [panel.n_upright for panel in panels])
        height = HEIGHT * n_rows + LETTER * letters.sum() + 0.4
        figure = plt.figure(figsize=(WIDTH * n_cols, height), layout="constrained")
        figure.get_layout_engine().set(h_pad=GAP)
        cells = figure.add_gridspec(n_rows, n_cols)
    else:
        figure = ax.figure
        room = {"hspace": 0.8, "wspace": 0.4} if figure.get_layout_engine() is None else {}
        cells = ax.get_subplotspec().subgridspec(n_rows, n_cols, **room)
        ax.set_axis_off()
    axes = [figure.add_subplot(cells[row, columns]) for row, columns in places]
    if sharey:
        _share([one for one, panel in zip(axes, panels, strict=True) if not panel.is_pair])
    return np.array(axes, dtype=object)


def _share(plots: list[Any]) -> None:
    """Give all plots the same vertical scale, which is labelled once per row."""
    for one in plots[1:]:
        one.sharey(plots[0])
    rows = [one.get_subplotspec().rowspan.start for one in plots]
    for place, one in enumerate(plots):
        one.tick_params(labelleft=rows[place] not in rows[:place])


def _places(widths: list[int], n_cols: int) -> tuple[list[tuple[int, slice]], int]:
    """Return the row and the columns of each panel, in their order, and the number of rows."""
    places, row, used = [], 0, 0
    for width in widths:
        row, used = (row, used) if used + width <= n_cols else (row + 1, 0)
        places.append((row, slice(used, used + width)))
        used += width
    return places, row + 1

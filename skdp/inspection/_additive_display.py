"""Plot the functions of an additive model, with the bands of their noise."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from skdp._label_types import classes_of
from skdp._plots import pyplot
from skdp.inspection._additive_panels import Panel, panels_of, plain

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

    The limits of the axes, and of the colours, follow the released shares of the records: at either end, the highest points are
    left out that at most 1 % of the records have together. There, as in a sparse tail, bands and curves are cut off. In the same
    way, a curve and a heat map end where the released shares end, and not at the bounds of the column: at the outermost values
    beyond which are at most 1 % of the records, and, after a fit for inference, at the outer knots at most.

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
    shares : dict or None, default=None
        Released shares of the records at the points of functions, by the names of their columns. A function without them sets
        the limits of the axes with all of its points.

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
        self,
        functions: Sequence[Any],
        *,
        response: str,
        classes: Sequence[Any] | None = None,
        n_all: int | None = None,
        shares: Mapping[tuple[str, ...], np.ndarray] | None = None,
    ) -> None:
        self.functions, self.response, self.classes, self.n_all = list(functions), response, classes, n_all
        self.shares = dict(shares or {})

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        features: Any = None,
        n_terms: int = 12,
        target: Any = None,
        order: str = "given",
        n_cols: int = 3,
        sharey: bool = True,
        ax: Any = None,
        simultaneous: bool = False,
        terms: Any = "deprecated",
    ) -> "AdditiveDisplay":
        """Draw the functions of a fitted model: of two classes, for the log-odds of the event.

        Parameters
        ----------
        estimator : DPAdditiveClassifier, DPAdditiveRegressor, DPGradientBoostingClassifier or DPGradientBoostingRegressor
            A fitted model, a fitted pipeline that ends in one, or a fitted search for one.
        features : list of str, int, or pair of these, or None, default=None
            Columns and pairs to draw, in this order, by name or by place in X; of a boosted model, any pairs. A single name or
            place is a list of one. None draws the most important functions of ``shape_functions_``.
        n_terms : int, default=12
            Number of functions to draw if ``features`` is None.
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
        terms : object
            The name of ``features`` up to version 0.2.

            .. deprecated:: 0.3
               Use ``features``. Version 0.5 removes ``terms``.

        Returns
        -------
        AdditiveDisplay
            The drawing.

        Raises
        ------
        TypeError, ValueError
            If the estimator is not an additive model, if it has no such column, pair or class, or if there are too few axes.
        NotFittedError
            If the estimator is not fitted.
        """
        if not (isinstance(terms, str) and terms == "deprecated"):
            warnings.warn("terms is deprecated; use features=... Version 0.5 removes terms.", FutureWarning, stacklevel=2)
            features = terms if features is None else features
        estimator = getattr(estimator, "best_estimator_", estimator)
        estimator = estimator[-1] if hasattr(estimator, "steps") else estimator
        known = _functions(estimator, simultaneous)
        chosen = _most_important(known, n_terms) if features is None else _named(estimator, known, features)
        classes = None if chosen[0].values.ndim == len(chosen[0].names) else np.asarray(estimator.classes_).tolist()
        response = _response(estimator, target if classes else None)
        if target is not None:
            chosen, classes = [_of_class(function, classes, target) for function in chosen], None
        if hasattr(estimator, "classes_") and tuple(estimator.classes_) != classes_of(estimator):
            chosen = [_negated(function) for function in chosen]
        n_all, shares = len(known) if features is None else None, _shares(estimator, chosen)
        display = cls(chosen, response=response, classes=classes, n_all=n_all, shares=shares)
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
        plt = pyplot()
        if order not in ("given", "value"):
            raise ValueError(f"order={order!r}; expected 'given' or 'value'.")
        if not n_cols >= 1:
            raise ValueError(f"n_cols={n_cols!r}; expected a positive number.")
        shares = [self.shares.get(tuple(function.names)) for function in self.functions]
        panels = [
            panel
            for function, at in zip(self.functions, shares, strict=True)
            for panel in panels_of(function, self.classes, order, at)
        ]
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


def _named(estimator: Any, known: dict[Any, Any], features: Any) -> list[Any]:
    """Return the functions of columns and pairs, by name or place; a boosted model has one of any pair."""
    if isinstance(features, (str, Integral)):
        features = [features]
    elif not np.iterable(features):
        raise TypeError(f"features={features!r}; expected a list of names of columns, their places, or pairs of these.")
    if len(features := list(features)) == 0:
        raise ValueError(f"features={features!r}; expected a list of some of {list(known)!r}.")
    columns = [name for name in known if not isinstance(name, tuple)]
    columns, pair = list(getattr(estimator, "feature_names_in_", columns)), getattr(estimator, "interaction", None)
    return [_function_of(feature, known, columns, pair) for feature in features]


def _function_of(feature: Any, known: dict[Any, Any], columns: list[Any], pair: Callable[[Any, Any], Any] | None) -> Any:
    is_pair = isinstance(feature, (tuple, list, np.ndarray))
    names = tuple(_name_of(one, columns) for one in (feature if is_pair else [feature]))
    for key in (names, names[::-1]) if is_pair else names:
        if key is not None and key in known:
            return known[key]
    if pair is not None and is_pair and len(set(names)) == len(names) == 2 and set(names) <= set(known):
        return pair(*names)
    more = "" if pair is None else ", pairs of different columns"
    places = f"the places of columns, from 0 to {len(columns) - 1}"
    raise ValueError(f"features has {feature!r}; expected some of {list(known)!r}{more}, or {places}.")


def _name_of(one: Any, columns: list[Any]) -> Any:
    """Return the name of a column that is given by name or place; None if it is neither."""
    if isinstance(one, Integral) and not isinstance(one, bool):
        return columns[int(one)] if 0 <= int(one) < len(columns) else None
    return str(one) if isinstance(one, str) else None


def _shares(estimator: Any, functions: list[Any]) -> dict[tuple[str, ...], np.ndarray]:
    """Return the released shares of the records at the points of functions, but for pairs that only trees have."""
    if not hasattr(estimator, "_shapes"):
        return {}
    shapes, chosen = estimator._shapes(), {tuple(function.names) for function in functions}
    hardly_seen, terms = getattr(estimator, "hardly_seen_", {}), [term for term in shapes.basis.terms if term.names in chosen]
    found = {term.names: shapes.shares(term, hardly_seen.get(term.names[0], ())) for term in terms}
    return {names: shares for names, shares in found.items() if shares is not None}


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
    scale = "" if getattr(estimator, "link_", "identity") == "identity" else "the logarithm of "
    return f"added to {scale}{getattr(facts, 'target', None) or 'the prediction'}"


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
            "features=[...], or leave out ax to create a figure."
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

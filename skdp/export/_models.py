"""Export predictors, a function for the raw predictions of each kind, and one for what follows from them."""

import math
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

import skdp.estimators as models
from skdp.estimators import DPKMeans
from skdp.estimators._classifier import DPClassifier, DPProbabilisticClassifier
from skdp.estimators._link import BentLine, LogCalibration
from skdp.estimators.additive._basis import Term
from skdp.estimators.boosting._trees import Trees
from skdp.export._columns import Rows, beside, between, bounded, filled, finite, on_scale, places, rows_of, shortened
from skdp.export._graph import Graph
from skdp.preprocessing._scaling import RowNormClipper
from skdp.privacy.data.bins import EDGES, FINEST, NEXT_EDGE, ROUNDING, ColumnBins

Output = tuple[str, np.dtype[Any], list[int]]  # tensor, type, and lengths behind the number of rows
DOUBLE = np.dtype(np.float64)


def linear(model: Any, rows: Rows) -> str:
    """Export the raw predictions of a linear model."""
    return rows.graph.linear(rows_of(model, rows), model.coef_.T, model.intercept_)


def counts(model: Any, rows: Rows) -> str:
    """Export those of DPMultinomialNB, which clips rows and cuts negative entries."""
    graph = rows.graph
    short = shortened(RowNormClipper(model.data_norm), rows).numbers()
    return graph.linear(graph("Max", short, 0.0), model.coef_.T, model.intercept_)


def scores(model: Any, rows: Rows) -> str:
    """Export the scores of DPAUCMaximizer: linear ones, or those of a network of rectified linear units."""
    if not hasattr(model, "coefs_"):
        return linear(model, rows)
    graph, units = rows.graph, rows_of(model, rows)
    for matrix, vector in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        units = graph("Max", graph.linear(units, matrix, vector), 0.0)
    return graph.linear(units, model.coefs_[-1], model.intercepts_[-1])


def additive(model: Any, rows: Rows) -> str:
    """Export the raw predictions of an additive model."""
    return Functions(model, rows).raw


def boosted(model: Any, rows: Rows) -> str:
    """Export those of an additive model and the trees beside it."""
    functions = Functions(model, rows)
    if model.trees_ is None:
        return functions.raw
    return rows.graph("Add", functions.raw, trees(model.trees_, functions))


def once(method: Callable[..., str]) -> Callable[..., str]:
    """Let a method of `Functions` add its nodes once for each column."""

    @wraps(method)
    def known(self: Any, name: str) -> str:
        key = method.__name__, name
        if key not in self.known:
            self.known[key] = method(self, name)
        return str(self.known[key])

    return known


class Functions:
    """The functions of an additive model in a graph.

    Parameters
    ----------
    model : estimator
        The fitted model.
    rows : Rows
        Its table.
    """

    def __init__(self, model: Any, rows: Rows) -> None:
        self.graph, self.basis, self.known = rows.graph, model.basis_, dict[tuple[str, str], str]()
        self._terms = {term.names[0]: term for term in self.basis.terms if len(term.names) == 1}
        self._places = {name: place for place, name in enumerate(self._terms)}
        self._rows = rows if rows.names is None else rows.select(list(self._terms))
        coef = np.atleast_2d(model.coef_)
        self.raw = self.graph.constant(np.atleast_2d(np.asarray(model.intercept_, dtype=np.float64)))
        for term in self.basis.terms:
            for part in self._parts(term, coef[:, term.columns].T):
                self.raw = self.graph("Add", self.raw, part)

    def _parts(self, term: Term, coef: np.ndarray) -> Iterator[str]:
        """Yield what a term adds to raw predictions, in parts of shape (n, n_outputs)."""
        graph, basis, (name, *second) = self.graph, self.basis, term.names
        if second:
            one = graph("Unsqueeze", self.family(name), np.array([2]))
            other = graph("Unsqueeze", self.family(second[0]), np.array([1]))
            products = graph("Reshape", graph("Mul", one, other), np.array([-1, len(coef)]))
            yield graph("MatMul", products, coef / np.sqrt(len(basis.interactions)))
            return
        facts, hats = basis.facts.columns[name], basis.hats_of(term)
        if facts.exhaustive:
            yield graph.entries(coef / basis.length_in_force, self.level(name))
            return
        yield graph("Mul", self.value(name), coef[:1])
        start, stop = hats.start - term.columns.start, hats.stop - term.columns.start
        if basis.n_intervals:
            heights = coef[start:stop] / np.sqrt(len(basis.numbers))
            yield graph("Add", graph("MatMul", self.steps(name), np.diff(heights, axis=0)), heights[:1])
        if further := list(beside(graph, facts, self.cells(name))):
            yield graph("MatMul", graph("Concat", *further, axis=1), coef[stop:] / basis.length_in_force)

    @once
    def cells(self, name: str) -> str:
        """Return the cells of a number, NaN where missing."""
        cells = self._rows.number(self._places[name])
        return cells if self.basis.facts.columns[name].learned is None else finite(self.graph, cells)

    @once
    def level(self, name: str) -> str:
        """Return the number of the level of each cell of a category, of shape (n, 1)."""
        return places(self.basis.facts.columns[name], self._rows, self._places[name])

    @once
    def place(self, name: str) -> str:
        """Return where a number lies between its bounds, from -1 to 1."""
        facts, cells, graph = self.basis.facts.columns[name], self.cells(name), self.graph
        bounds = np.array(facts.bounds)
        if facts.learned is None:
            return between(graph, *bounded(graph, cells, bounds[0], bounds[1], facts.scale, facts.fill))
        values = filled(graph, facts, cells)
        if facts.scale == "sign":
            return graph("Sign", graph("Sub", values, facts.centre))
        low, high = facts._on_scale(bounds)
        width = max(float(high - low), math.ulp(0.0))
        found = graph("Div", graph("Sub", on_scale(graph, facts, graph.clip(values, *bounds)), low), width)
        return graph.clip(graph("Sub", graph("Mul", found, 2.0), 1.0), -1.0, 1.0)

    @once
    def value(self, name: str) -> str:
        """Return the scaled value of a number as it stands in a row."""
        zero = self.basis._zero(name)
        scaled = self.graph("Div", self.graph("Sub", self.place(name), zero), 1 + abs(zero))
        return self.graph("Div", scaled, self.basis.length_in_force)

    @once
    def steps(self, name: str) -> str:
        """Return how much of each interval between two knots lies below a number, from 0 to 1."""
        knots = 2 * self.basis.knots_of(name)[None] - 1
        above = self.graph("Sub", self.place(name), knots[:, :-1])
        return self.graph.clip(self.graph("Div", above, np.diff(knots)), 0.0, 1.0)

    @once
    def family(self, name: str) -> str:
        """Return the hats of a number, or the indicators of a category, of shape (n, size)."""
        size = self.basis.n_functions(name)
        if self.basis.facts.columns[name].exhaustive:
            return self.graph.entries(np.eye(size), self.level(name))
        # The first hat is 1 less the first step; a step leads from the hat before it to the one behind it.
        leads = np.eye(size - 1, size, 1) - np.eye(size - 1, size)
        return self.graph("Add", self.graph("MatMul", self.steps(name), leads), np.eye(1, size))

    def bin(self, name: str, column: ColumnBins) -> str:
        """Return the bin of each cell, of shape (n, 1)."""
        if column.ends is None:
            return self.level(name)
        graph, (low, high) = self.graph, column.ends
        found = graph.clip(graph("Div", graph("Sub", self.value(name), low), high - low), 0.0, 1.0)
        found = graph("Where", graph("IsNaN", found), 0.0, found)
        fine = graph("Cast", graph("Add", graph("Mul", found, float(FINEST)), ROUNDING), to=graph.onnx.TensorProto.INT64)
        bins = graph("Gather", NEXT_EDGE.astype(np.int64), fine, axis=0)
        return graph("Where", graph("IsNaN", self.cells(name)), EDGES.size + 1, bins) if column.missing else bins


def trees(found: Trees, functions: Functions) -> str:
    """Export what trees add: a table per column has the sides of each of its bins, which lead to a table of all leaves."""
    graph, grown = functions.graph, list(found.grown())
    values = np.concatenate([own for *_, own in grown], axis=1).T
    index = graph.constant(np.cumsum([0, *(own.shape[1] for *_, own in grown[:-1])], dtype=np.int32)[None])
    sides = []  # added after all of them are in the graph: in another order onnxruntime computes all before it adds the first
    for place, (name, column) in enumerate(zip(functions.basis.facts.columns, found.bins.columns, strict=True)):
        if place not in found.columns:
            continue
        bits = [np.flatnonzero(columns == place) for columns, *_ in grown]
        table = np.stack(
            [(1 << own) @ splits[own, : column.size] for own, (_, splits, _) in zip(bits, grown, strict=True)], axis=1
        )
        own = graph.entries(table.astype(np.min_scalar_type(int(table.max()))), functions.bin(name, column))
        sides.append(graph("Cast", own, to=graph.onnx.TensorProto.INT32))
    for own in sides:
        index = graph("Add", index, own)
    added = graph("Cast", graph("Gather", values, index, axis=0), to=graph.onnx.TensorProto.DOUBLE)
    return graph("ReduceSum", added, np.array([1]), keepdims=0)


def means(model: Any, graph: Graph, raw: str) -> str:
    """Export the means of a regressor for raw predictions, within the range of y."""
    calibration, bounds = getattr(model, "calibration_", None), model.target_bounds_
    if isinstance(calibration, LogCalibration):
        ends = calibration.level - calibration.reach, calibration.level + calibration.reach
        return graph.clip(graph("Exp", graph.clip(raw, *ends)), *bounds)
    raw = raw if bounds is None else graph.clip(raw, *np.transpose(bounds))
    if not isinstance(calibration, BentLine):
        return raw
    mean = float(calibration.mean)
    low = graph.clip(graph("Sub", graph("Div", raw, mean), 1.0), -1.0, 0.0)
    bent = graph("Where", graph("Less", raw, mean), graph("Mul", graph("Exp", low), mean), raw)
    return graph("Div", bent, calibration.exposure or 1.0)


def nearest(model: Any, rows: Rows) -> str:
    """Export half the squared lengths of rows less those of the distances from the centres of DPKMeans."""
    return rows.graph.linear(rows_of(model, rows), *model._sides())


def outputs_of(model: Any, graph: Graph, raw: str) -> dict[str, Output]:
    """Return the outputs of a model by name, for raw predictions of shape (n, n_outputs)."""
    if isinstance(model, DPKMeans):
        return {"cluster": (graph("ArgMax", raw, axis=1, keepdims=0), np.dtype(np.int64), [])}
    if not isinstance(model, DPClassifier):
        found, lengths = means(model, graph, raw), list(model.coef_.shape[:-1])
        return {"prediction": (found if lengths else graph.vector(found), DOUBLE, lengths)}
    classes, two = labels_of(model.classes_), model.classes_.size == 2
    decision, size = graph.vector(raw) if two else raw, len(model.classes_)
    positive = graph("Cast", graph("Greater", decision, 0.0), to=graph.onnx.TensorProto.INT64) if two else ""
    chosen = positive or graph("ArgMax", raw, axis=1, keepdims=0)
    outputs: dict[str, Output] = {"label": (graph("Gather", classes, chosen, axis=0), classes.dtype, [])}
    if isinstance(model, DPProbabilisticClassifier):
        odds = graph("Concat", graph("Neg", raw), raw, axis=1) if two else raw
        outputs["probabilities"] = (graph("Sigmoid", odds) if two else graph("Softmax", odds, axis=1), DOUBLE, [size])
    return {**outputs, "decision": (decision, DOUBLE, [] if two else [size])}


# Raw predictions of each estimator; labels, probabilities and means follow from its base class.
PREDICTORS: dict[type, Callable[[Any, Rows], str]] = {
    **dict.fromkeys(
        (
            models.DPConstrainedClassifier,
            models.DPConstrainedRegression,
            models.DPGroupDROClassifier,
            models.DPLinearRegression,
            models.DPLinearSVC,
            models.DPLogisticRegression,
            models.DPQuantileRegressor,
            models.DPRobustRegressor,
        ),
        linear,
    ),
    models.DPAUCMaximizer: scores,
    models.DPMultinomialNB: counts,
    **dict.fromkeys((models.DPAdditiveClassifier, models.DPAdditiveRegressor), additive),
    **dict.fromkeys((models.DPGradientBoostingClassifier, models.DPGradientBoostingRegressor), boosted),
    DPKMeans: nearest,
}


def labels_of(classes: np.ndarray) -> np.ndarray:
    """Return classes as text, integers, floats or booleans; an array of objects has labels of one of these types."""
    found = np.array(classes.tolist())
    if found.dtype.kind not in "Uifb":
        raise TypeError(f"The classes have the type {classes.dtype}, which ONNX has not; expected text or numbers.")
    return found.astype(np.int64 if found.dtype.kind == "i" else np.float64) if found.dtype.kind in "if" else found

"""Export transformers of columns, a function each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp.estimators import DPPCA
from skdp.export._graph import Graph
from skdp.preprocessing import LearnedSchema, from_schema
from skdp.preprocessing._categories import KnownCategories, category_names, spelling, spellings
from skdp.preprocessing._cells import bucket_cells
from skdp.preprocessing._column_kinds import FURTHEST, LARGEST, OTHER, Category, Number, NumberInUnits
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._learned_columns import ColumnMap
from skdp.preprocessing._pipeline import SchemaPipeline
from skdp.preprocessing._scaling import BoundedNumbers, BoundedScaler, RowNormClipper, signed_log


class Rows:
    """The rows of a table on their way through a graph: the inputs, or what a transformer made of them.

    Parameters
    ----------
    graph : Graph
        The graph.
    names : sequence of str or None, default=None
        Inputs, a column each, which are declared when they are used.
    width : int, default=0
        Number of columns of a single input, where there are no names.
    numbers : str or None, default=None
        Tensor of shape (n, d).
    texts : sequence of str, default=()
        Tensors of shape (n, 1), each of one column of text.
    """

    def __init__(
        self,
        graph: Graph,
        names: Sequence[str] | None = None,
        width: int = 0,
        numbers: str | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        self.graph, self.names, self._width, self._numbers, self._texts = graph, names, width, numbers, texts

    def numbers(self) -> str:
        """Return all columns as one tensor of shape (n, d)."""
        if self._numbers is not None:
            return self._numbers
        if self._texts:
            raise TypeError("The model takes text as numbers; expected OneHotEncoder between KnownCategories and the model.")
        if self.names is None:
            return self.graph.input("X", width=self._width)
        columns = [self.graph.input(name) for name in self.names]
        return self.graph("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]

    def number(self, place: int) -> str:
        """Return one column of numbers, of shape (n, 1)."""
        if self.names is not None:
            return self.graph.input(self.names[place])
        return self.graph("Gather", self.numbers(), np.array([place]), axis=1)

    def text(self, place: int) -> str:
        """Return one column of text, of shape (n, 1)."""
        if self._texts:
            return self._texts[place]
        if self.names is None:
            raise TypeError("Columns of text in an array have no names; expected a model that was fitted to a data frame.")
        return self.graph.input(self.names[place], text=True)

    def select(self, names: Sequence[str]) -> "Rows":
        """Return some columns, by name."""
        return Rows(self.graph, names)


def scaled(step: Any, rows: Rows) -> Rows:
    """Export BoundedScaler or BoundedNumbers."""
    graph, x = rows.graph, rows.numbers()
    low, high = step._limits(step.n_features_in_ if rows.names is None else len(rows.names))
    if isinstance(step, BoundedNumbers):
        return Rows(graph, numbers=bounded(graph, x, low, high, step.scale, step.fill)[0])
    x, low, high = bounded(graph, x, low, high, step.scale, step.fill)
    if step.centre:
        return Rows(graph, numbers=between(graph, x, low, high))
    return Rows(graph, numbers=graph.clip(graph("Div", x, np.maximum(np.abs(low), np.abs(high))), -1.0, 1.0))


def bounded(graph: Graph, x: str, low: Any, high: Any, scale: str, fill: float | None) -> tuple[str, Any, Any]:
    """Return clipped and filled numbers and their bounds, or the logarithms of all three."""
    found = graph.clip(x, low, high)
    if fill is not None:
        found = graph("Where", graph("IsNaN", x), np.clip(np.float64(fill), low, high), found)
    return (graph.signed_log(found), signed_log(low), signed_log(high)) if scale == "log" else (found, low, high)


def between(graph: Graph, x: str, low: np.ndarray, high: np.ndarray) -> str:
    """Return where numbers lie between their bounds, from -1 to 1."""
    return graph.clip(graph("Div", graph("Sub", x, (low + high) / 2), (high - low) / 2), -1.0, 1.0)


def known(step: Any, rows: Rows) -> Rows:
    """Export KnownCategories."""
    n_columns, texts = len(rows.names or ()), []
    lists, others = step._lists(n_columns), step._others(n_columns)
    for place, (categories, other) in enumerate(zip(lists, others, strict=True)):
        names = category_names(categories, other)
        texts.append(rows.graph.lookup(rows.text(place), spelt({name: name for name in names}), other))
    return Rows(rows.graph, texts=texts)


def spelt(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of categories by all their spellings, with up to one blank on each side."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        for text in spellings(name):
            for spaced in (text, f" {text}", f"{text} ", f" {text} "):
                found.setdefault(spaced, value)
    return found


def indicators(step: Any, rows: Rows) -> Rows:
    """Export OneHotEncoder with listed categories of text; it may drop the first one of a column."""
    if isinstance(step.categories, str) or isinstance(step.drop, str):
        raise ValueError("OneHotEncoder takes its categories from records; expected lists of what there is and of what to drop.")
    graph, parts = rows.graph, []
    dropped = [None] * len(step.categories) if step.drop is None else list(step.drop)
    for place, (listed, without) in enumerate(zip(step.categories, dropped, strict=True)):
        table = np.eye(len(listed) + 1, len(listed))[:, [name != without for name in listed]]
        if step.handle_unknown == "error":
            table[-1] = np.nan
        keys = {str(name): number for number, name in enumerate(listed)}
        parts.append(graph.entries(table, graph.lookup(rows.text(place), keys, len(listed))))
    return Rows(graph, numbers=graph("Concat", *parts, axis=1))


def mapped(step: Any, rows: Rows) -> Rows:
    """Export ColumnMap."""
    parts = [part for place, facts in enumerate(step.facts) for part in features(facts, rows, place)]
    return Rows(rows.graph, numbers=rows.graph("Concat", *parts, axis=1))


def features(facts: Any, rows: Rows, place: int) -> Iterator[str]:
    """Yield the features of one column of a learned schema."""
    graph = rows.graph
    if isinstance(facts, Category):
        yield graph.entries(np.eye(facts.n_features), places(facts, rows, place))
        return
    cells = finite(graph, rows.number(place))
    values = filled(graph, facts, cells)
    yield number_scaled(graph, facts, values)
    if facts.learned.logarithm:
        low, high = signed_log(np.array(facts.learned.core) / facts.learned.logarithm)
        found = graph.signed_log(graph("Div", graph.clip(values, *facts.bounds), facts.learned.logarithm))
        size = max(float(high - low), np.nextafter(0, 1))
        yield graph.clip(graph("Div", graph("Sub", graph("Mul", found, 2.0), low + high), size), -FURTHEST, FURTHEST)
    yield from beside(graph, facts, cells)


def places(facts: Category, rows: Rows, place: int) -> str:
    """Return which indicator of each cell of a category is 1, of shape (n, 1)."""
    labels = facts.labels
    if facts.buckets is None:
        keys = spelt({name: number for number, name in enumerate(labels) if name in facts.categories})
        return rows.graph.lookup(rows.text(place), keys, labels.index(OTHER))
    name = (rows.names or [""])[place]
    if name not in rows.graph.categories and not facts.are_codes:
        raise ValueError(
            f"The column {name!r} was learned by a hash of its text, which ONNX does not have; expected the spellings that you "
            f"know, to_onnx(categories={{{name!r}: ['one', 'another']}}). All other text counts as 'other'."
        )
    cells = [*rows.graph.categories.get(name, ()), *map(str, facts.buckets)]
    of_cells = facts.places(bucket_cells(np.fromiter(cells, dtype=object, count=len(cells)))).tolist()
    texts = [spelling(cell) for cell in cells]
    empty = int(facts.places(np.array([np.nan]))[0])
    keys = spelt({"": empty, **{text: number for text, number in zip(texts, of_cells, strict=True) if text}})
    return rows.graph.lookup(rows.text(place), keys, len(labels) - 1)


def finite(graph: Graph, cells: str) -> str:
    """Return numbers of which infinite ones are missing."""
    return graph("Where", graph("IsInf", cells), np.nan, cells)


def filled(graph: Graph, facts: Number, cells: str) -> str:
    """Return the cells of a learned number, with its usual value where they are missing."""
    usual = facts.centre if facts.fill is None else facts.fill
    return graph("Where", graph("IsNaN", cells), float(usual), graph.clip(cells, -LARGEST, LARGEST))


def number_scaled(graph: Graph, facts: Number, values: str) -> str:
    """Return the distance of a learned number from its centre, on its scale and in sizes of its core."""
    learned = facts._known
    if isinstance(facts, NumberInUnits):
        return graph.clip(values, *facts.bounds)
    if facts.scale == "sign":
        return graph("Sign", graph("Sub", values, learned.centre))
    around = facts._on_scale(np.array([learned.centre, *learned.core]))
    size = max(float(np.abs(around[1:] - around[0]).max()), np.nextafter(0, 1))
    found = on_scale(graph, facts, graph.clip(values, *facts.bounds))
    return graph.clip(graph("Div", graph("Sub", found, around[0]), size), -FURTHEST, FURTHEST)


def on_scale(graph: Graph, facts: Number, values: str) -> str:
    """Return numbers, or their logarithms in the unit of a learned scale."""
    return graph.signed_log(graph("Div", values, facts._known.unit)) if facts.scale == "log" else values


def beside(graph: Graph, facts: Number, cells: str) -> Iterator[str]:
    """Yield the indicators of integers of a learned number, and that of missing cells."""
    if facts.integers:
        equal = graph("Cast", graph("Equal", cells, np.array([facts.integers])), to=graph.onnx.TensorProto.DOUBLE)
        yield graph("Mul", equal, facts.weight)
    if facts.gaps:
        yield graph("Cast", graph("IsNaN", cells), to=graph.onnx.TensorProto.DOUBLE)


def shortened(step: Any, rows: Rows) -> Rows:
    """Export RowNormClipper."""
    graph, x = rows.graph, rows.numbers()
    norms = graph("Sqrt", graph("ReduceSum", graph("Mul", x, x), np.array([1]), keepdims=1))
    factors = graph("Div", float(step.max_norm), graph("Max", norms, float(step.max_norm)))
    return Rows(graph, numbers=graph("Mul", x, factors))


def selected(step: Any, rows: Rows) -> Rows:
    """Export SchemaColumns."""
    return rows.select(step.names)


def chained(step: Any, rows: Rows) -> Rows:
    """Export a pipeline."""
    for _, part in step.steps:
        rows = rows if part in (None, "passthrough") else passed(part, rows)
    return rows


def side_by_side(step: Any, rows: Rows) -> Rows:
    """Export a ColumnTransformer of columns by name, as `from_schema` makes it."""
    graph, weights, parts = rows.graph, step.transformer_weights or {}, []
    if step.remainder != "drop" or rows.names is None:
        raise TypeError("ColumnTransformer is exported as from_schema makes it alone; expected from_schema(schema).")
    for name, part, columns in step.transformers:
        found = passed(part, rows.select(columns)).numbers()
        parts.append(found if name not in weights else graph("Mul", found, float(weights[name])))
    return Rows(graph, numbers=graph("Concat", *parts, axis=1))


def prepared(step: Any, rows: Rows) -> Rows:
    """Export LearnedSchema."""
    return passed(step._preparation(), rows)


def components(step: Any, rows: Rows) -> Rows:
    """Export DPPCA."""
    return Rows(rows.graph, numbers=rows.graph.linear(rows_of(step, rows), *step._projection()))


def rows_of(model: Any, rows: Rows) -> str:
    """Return the rows of the table with the columns of ``coef_``."""
    schema = getattr(model, "schema_", None)
    return (rows if schema is None else passed(from_schema(schema), rows)).numbers()


TRANSFORMERS: dict[type, Callable[[Any, Rows], Rows]] = {
    **dict.fromkeys((BoundedScaler, BoundedNumbers), scaled),
    KnownCategories: known,
    OneHotEncoder: indicators,
    ColumnMap: mapped,
    RowNormClipper: shortened,
    SchemaColumns: selected,
    **dict.fromkeys((Pipeline, SchemaPipeline), chained),
    ColumnTransformer: side_by_side,
    LearnedSchema: prepared,
    DPPCA: components,
}


def passed(step: Any, rows: Rows) -> Rows:
    """Return what a transformer makes of rows."""
    if type(step) not in TRANSFORMERS:
        names = ", ".join(sorted(kind.__name__ for kind in TRANSFORMERS if kind.__module__.startswith("skdp.")))
        raise TypeError(
            f"{type(step).__name__} is not exported to ONNX; expected steps of skdp, such as from_schema(schema), {names}."
        )
    return TRANSFORMERS[type(step)](step, rows)

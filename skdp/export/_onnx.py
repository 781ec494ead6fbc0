"""Export fitted models to ONNX."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._files._outputs import check_outputs, write_whole
from skdp._scikit_learn.pipelines import fitted_steps, reports_of, spent_together
from skdp._validation import shown
from skdp._version import __version__
from skdp.estimators import DPPCA, DPMinimax
from skdp.export._columns import TRANSFORMERS, Rows, passed
from skdp.export._graph import Graph
from skdp.export._models import PREDICTORS, labels_of, outputs_of
from skdp.preprocessing import SchemaColumns
from skdp.preprocessing._pipeline import SchemaPipeline

SUFFIXES = (".onnx",)
# Estimators that have no predictions, with the reason.
REFUSED: dict[type, str] = {DPMinimax: "it has no predictions: primal_ and dual_ are the model"}


def exported(model: Any, path: str | os.PathLike[str] | None, categories: Mapping[str, Sequence[Any]] | None) -> Any:
    """Export a fitted model to ONNX; see `skdp.to_onnx`."""
    check_fitted(model)
    if not isinstance(categories, (Mapping, type(None))):
        raise TypeError(f"categories={shown(categories)}; expected a dict of spellings by column, or None.")
    graph = Graph({str(name): list(cells) for name, cells in (categories or {}).items()})
    if path is not None:
        check_outputs([(Path(path), SUFFIXES)])
    steps, names, width = fitted_steps(model), *columns_of(model)
    if unknown := sorted(set(graph.categories) - set(names or ())):
        raise ValueError(f"categories has the columns {unknown}; expected columns of the model.")
    rows = Rows(graph, names, width)
    for step in steps[:-1]:
        rows = passed(step, rows)
    outputs = outputs_of_last(steps[-1], rows)
    found = graph.finished(outputs, ["X"] if names is None else names)
    add_facts(graph, found, model, steps[-1])
    if path is not None:
        write_whole(Path(path), found.SerializeToString(deterministic=True))
    return found


def check_fitted(model: Any) -> None:
    """Raise NotFittedError unless the model is fitted, or learns nothing."""
    if not isinstance(model, SchemaPipeline):
        check_is_fitted(model)


def columns_of(model: Any) -> tuple[list[str] | None, int]:
    """Return the names of the columns of a table, None if they have none, and their number."""
    first = fitted_steps(model)[0]
    if isinstance(first, SchemaColumns):
        return first.names, len(first.names)
    names = getattr(first, "feature_names_in_", None)
    if getattr(first, "schema_", None) is not None and names is None:
        names = list(first.schema_.columns)
    return (None if names is None else [str(name) for name in names]), int(getattr(first, "n_features_in_", 0))


def outputs_of_last(step: Any, rows: Rows) -> dict[str, Any]:
    """Return the outputs of the last step."""
    if type(step) in REFUSED:
        raise TypeError(f"{type(step).__name__} is not exported to ONNX: {REFUSED[type(step)]}.")
    if type(step) in PREDICTORS:
        return outputs_of(step, rows.graph, PREDICTORS[type(step)](step, rows))
    if type(step) in TRANSFORMERS:
        return transformed(step, passed(step, rows))
    raise TypeError(f"{type(step).__name__} is not exported to ONNX; expected an estimator or a transformer of skdp.")


def transformed(step: Any, rows: Rows) -> dict[str, Any]:
    """Return the output of a transformer."""
    numbers = rows.numbers()
    width = step._n_features_out if isinstance(step, DPPCA) else None
    return {"scores" if isinstance(step, DPPCA) else "features": (numbers, np.dtype(np.float64), [width])}


def add_facts(graph: Graph, found: Any, model: Any, last: Any) -> None:
    """Write what is public about the fit into the model: its guarantee, the digest of its report, and the classes."""
    reports = [*reports_of(model).values()]
    facts = {"skdp.version": __version__}
    if reports:
        epsilon, delta = spent_together(reports)
        facts |= {
            "skdp.private": json.dumps(all(report.private for report in reports)),
            "skdp.epsilon": repr(epsilon),
            "skdp.delta": repr(delta),
            "skdp.adjacency": reports[0].budget.adjacency,
            "skdp.privacy_unit": reports[0].budget.unit,
            "skdp.report_sha256": " ".join(hashlib.sha256(report.to_json().encode()).hexdigest() for report in reports),
        }
        found.doc_string = "; ".join(report.summary for report in reports)
    if hasattr(last, "classes_"):
        facts["skdp.classes"] = json.dumps(labels_of(last.classes_).tolist())
    graph.onnx.helper.set_model_props(found, facts)

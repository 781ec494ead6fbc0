"""Read a saved model, and records as it takes them."""

import sys
from pathlib import Path
from typing import Any

from skdp._files._suffixes import Forgiving
from skdp._files._tables import is_parquet, to_moments
from skdp._model_files import check_loadable, load_model
from skdp._scikit_learn.pipelines import fitted_steps
from skdp.preprocessing import Schema, SchemaColumns
from skdp.preprocessing._frame_facts import typed_columns

TRUTHS = {"True": "1", "False": "0"}  # as pandas writes them


def read_model(path: Path, trust: bool) -> Any:
    """Return a saved model; warn of a file that can run code."""
    check_loadable(path, trust)
    if path.suffix == ".joblib":
        print(f"warning: {path} can run any code while it is read; --trust allows this.", file=Forgiving(sys.stderr))
    return load_model(path, trust=trust)


def columns_of(fitted: Any, path: Path) -> tuple[SchemaColumns, list[str]]:
    """Return what reads the columns of a model, and their order, by its first step or by the schema of an estimator."""
    first = fitted_steps(fitted, chosen=False)[0]
    if isinstance(first, SchemaColumns):
        return first, first.names
    schema = getattr(first, "schema_", None)
    if not isinstance(schema, Schema):
        raise ValueError(
            f"{path} does not state the columns that it takes; expected a model that the command fit wrote, or an estimator "
            "that was fitted to a data frame with a schema, or that learned one."
        )
    return SchemaColumns.of(schema), [name for name in first.feature_names_in_ if name in schema.columns]


def records_of(fitted: Any, table: Path, frame: Any, names: list[str]) -> Any:
    """Return the columns of a model; each cell of a text becomes the truth or the date that its column held in the fit."""
    frame, schema = frame[names].copy(), getattr(fitted_steps(fitted, chosen=False)[-1], "schema_", None)
    if not is_parquet(table) and schema is not None:
        for name, learned in typed_columns(schema).items():
            frame[name] = frame[name].replace(TRUTHS)
            if learned.dates:
                to_moments(frame, name)  # numbers in a text are read by the model, which warns of other cells
    return frame

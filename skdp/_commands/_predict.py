"""Predict for the records of a table."""

import gzip
import sys
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import Forgiving
from skdp._files._tables import to_moments, to_numbers
from skdp._model_files import check_loadable, load_model
from skdp.data import parquet, write_predictions
from skdp.data._written import columns_of_predictions
from skdp.preprocessing._cells import is_number
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._frame_facts import typed_columns
from skdp.preprocessing._schema import Number, Schema
from skdp.privacy.errors import warn

__all__ = ["predict"]

TRUTHS = {"True": "1", "False": "0"}  # as pandas writes them


def predict(model: Path, table: Path, out: Path | None, trust: bool, sep: str) -> None:
    """Write predictions, and the probabilities or scores of the classes: as CSV, and as Parquet those for a folder.

    Parameters
    ----------
    model, table : Path
        A saved model, and records in a file or in a folder of Parquet files.
    out : Path or None
        Where to write; None prints.
    trust : bool
        Whether to read a model file that can run code.
    sep : str
        Separator of the fields of the table, if it is a CSV.
    """
    folder = table.is_dir()
    if folder and out is None:
        raise ValueError(f"{table} is a folder; expected --out FILE.parquet, which is written batch by batch.")
    check_outputs([(out, (".parquet",) if folder else (".csv", ".csv.gz"))], [table, model])
    check_loadable(model, trust)
    if model.suffix == ".joblib":
        print(f"warning: {model} can run any code while it is read; --trust allows this.", file=Forgiving(sys.stderr))
    fitted = load_model(model, trust=trust)
    columns, names = _columns_of(_part(fitted, 0), model)
    schema = getattr(_part(fitted, -1), "schema_", None)
    if folder:
        assert out is not None
        records = parquet(table, columns=names).mapped(partial(columns.described, str(table)))
        write_predictions(fitted, records, out)
        print(f"Written: {out}")
        return
    frame = columns.read(table, sep)[names]
    if table.suffix != ".parquet" and schema is not None:
        for name in typed_columns(schema):  # a CSV has no types
            text = frame[name]
            frame[name] = text.replace(TRUTHS)
            if not (to_moments if schema.columns[name].learnt.dates else to_numbers)(frame, name):
                frame[name] = text  # the model warns of it
        _warn_of_no_number(schema, frame, getattr(_part(fitted, -1), "learnt_", {}))
    text = type(frame)(columns_of_predictions(fitted, frame)).to_csv(index=False)
    if out is None:
        print(text, end="")
        return
    write_whole(out, gzip.compress(text.encode()) if out.suffix == ".gz" else text.encode())
    print(f"Written: {out}")


def _warn_of_no_number(schema: Schema, frame: Any, learnt: dict[str, Any]) -> None:
    """Warn of columns of text that were read as numbers cell by cell, and have no number now; not of those that had none."""
    none = []
    for name, facts in schema.columns.items():
        if learnt.get(name, {}).get("kind") == "undetermined" or is_number(frame[name].dtype):
            continue
        if isinstance(facts, Number) and facts.learnt is not None and not facts.learnt.typed:
            column = frame[[name]].copy()
            to_numbers(column, name)
            if column[name].isna().all():
                none.append(name)
    if none:
        warn(
            f"The columns {none} held numbers in the fit, and have no cell that is one, such as 5 or 1.5, in this table: all are "
            "taken for missing cells. Expected numbers without units, with a point, and the separator of --sep.",
            UserWarning,
        )


def _part(fitted: Any, place: int) -> Any:
    """Return the first or the last step of a model; the preparation may be a pipeline in the pipeline."""
    while isinstance(fitted, Pipeline):
        fitted = fitted[place]
    return fitted


def _columns_of(first: Any, model: Path) -> tuple[SchemaColumns, list[str]]:
    """Return what reads the columns of a model, and their order, by its first step or by the schema of an estimator."""
    if isinstance(first, SchemaColumns):
        return first, first.names
    schema = getattr(first, "schema_", None)
    if not isinstance(schema, Schema):
        raise ValueError(
            f"{model} does not state the columns that it takes; expected a model that the command fit wrote, or an estimator "
            "that was fitted to a data frame with a schema, or that learnt one."
        )
    return SchemaColumns.of(schema), [name for name in first.feature_names_in_ if name in schema.columns]

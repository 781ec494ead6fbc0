"""Predict for the records of a table."""

import gzip
import sys
from pathlib import Path

from sklearn.pipeline import Pipeline

from skdp._commands._predictions import columns_of_predictions
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import Forgiving
from skdp._model_files import check_loadable, load_model
from skdp.preprocessing._columns import SchemaColumns

__all__ = ["predict"]


def predict(model: Path, table: Path, out: Path | None, trust: bool, sep: str) -> None:
    """Write predictions, and the probabilities or scores of the classes, as CSV.

    Parameters
    ----------
    model, table : Path
        A saved model, and records.
    out : Path or None
        Where to write; None prints.
    trust : bool
        Whether to read a model file that can run code.
    sep : str
        Separator of the fields of the table, if it is a CSV.
    """
    check_outputs([(out, (".csv", ".csv.gz"))], [table, model])
    check_loadable(model, trust)
    if model.suffix == ".joblib":
        print(f"warning: {model} can run any code while it is read; --trust allows this.", file=Forgiving(sys.stderr))
    fitted = load_model(model, trust=trust)
    first = fitted
    while isinstance(first, Pipeline):  # the preparation may be a pipeline in the pipeline
        first = first[0]
    if not isinstance(first, SchemaColumns):
        raise ValueError(f"{model} is not a model that the command fit wrote.")
    frame = first.read(table, sep)
    text = type(frame)(columns_of_predictions(fitted, frame)).to_csv(index=False)
    if out is None:
        print(text, end="")
        return
    write_whole(out, gzip.compress(text.encode()) if out.suffix == ".gz" else text.encode())
    print(f"Written: {out}")

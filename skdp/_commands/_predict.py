"""Predict for the records of a table."""

import gzip
import sys
from functools import partial
from pathlib import Path

from sklearn.pipeline import Pipeline

from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import Forgiving
from skdp._model_files import check_loadable, load_model
from skdp.data import parquet, write_predictions
from skdp.data._written import columns_of_predictions
from skdp.preprocessing._columns import SchemaColumns

__all__ = ["predict"]


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
    first = fitted
    while isinstance(first, Pipeline):  # the preparation may be a pipeline in the pipeline
        first = first[0]
    if not isinstance(first, SchemaColumns):
        raise ValueError(f"{model} is not a model that the command fit wrote.")
    if folder:
        assert out is not None
        records = parquet(table, columns=first.get_feature_names_out()).mapped(partial(first.described, str(table)))
        write_predictions(fitted, records, out)
        print(f"Written: {out}")
        return
    frame = first.read(table, sep)
    text = type(frame)(columns_of_predictions(fitted, frame)).to_csv(index=False)
    if out is None:
        print(text, end="")
        return
    write_whole(out, gzip.compress(text.encode()) if out.suffix == ".gz" else text.encode())
    print(f"Written: {out}")

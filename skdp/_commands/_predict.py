"""Predict for the records of a table."""

import gzip
from functools import partial
from pathlib import Path

from skdp._commands._fitted import columns_of, read_model, records_of
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._tables import TextFormat
from skdp.data import parquet, write_predictions
from skdp.data._predictions import columns_of_predictions


def predict(model: Path, table: Path, out: Path | None, trust: bool, form: TextFormat) -> None:
    """Write predictions, and the probabilities or scores of the classes: as CSV, and as Parquet those for a folder.

    Parameters
    ----------
    model, table : Path
        A saved model, and records in a file or in a folder of Parquet files.
    out : Path or None
        Where to write; None prints.
    trust : bool
        Whether to read a model file that can run code.
    form : TextFormat
        How a text is written.
    """
    folder = table.is_dir()
    if folder and out is None:
        raise ValueError(f"{table} is a folder; expected --out FILE.parquet, which is written batch by batch.")
    check_outputs([(out, (".parquet",) if folder else (".csv", ".csv.gz"))], [table, model])
    fitted = read_model(model, trust)
    columns, names = columns_of(fitted, model)
    if folder:
        assert out is not None
        records = parquet(table, columns=names).mapped(partial(columns.described, str(table)))
        write_predictions(fitted, records, out)
        print(f"Written: {out}")
        return
    frame = records_of(fitted, table, columns.read(table, form), names)
    text = type(frame)(columns_of_predictions(fitted, frame)).to_csv(index=False)
    if out is None:
        print(text, end="")
        return
    write_whole(out, gzip.compress(text.encode()) if out.suffix == ".gz" else text.encode())
    print(f"Written: {out}")

"""Let methods of fitted models take a table in partitions, batch by batch."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_regressor

from skdp._files._outputs import Output, check_outputs, whole_folder
from skdp._files._suffixes import OF_PARQUET, imported
from skdp._table_types import is_dask
from skdp._validation import shown
from skdp.data._dask import lazy_predictions, table_of
from skdp.data._table import Table, check_number

Method = TypeVar("Method", bound=Callable[..., np.ndarray])


def takes_tables(method: Method) -> Method:
    """Let a method that maps each record alone take a table in partitions; only the result is in memory as a whole."""

    @wraps(method)
    def whole(self: Any, X: Any) -> np.ndarray:
        if is_dask(X):
            return lazy_predictions(partial(_unbound, method.__name__, self), X)
        return of_batches(lambda batch: method(self, batch), X) if isinstance(X, Table) else method(self, X)

    return whole  # type: ignore[return-value]


def scored(X: Any, y: Any) -> tuple[Any, Any]:
    """Return what to predict for and its targets: y, or those that a table in partitions names.

    Dask collections come to this process partition by partition.
    """
    if is_dask(X):
        X, y = table_of(X, y), None
    if y is not None:
        return X, y
    columns: list[Any] = [column for _, column in X.batches()] if isinstance(X, Table) else [None]
    if any(column is None for column in columns):
        raise TypeError("y is missing; expected score(X, y), or a table in partitions that names its target.")
    return X, np.concatenate(columns)


def _unbound(name: str, model: Any, X: Any) -> np.ndarray:
    return np.asarray(getattr(model, name)(X))


def of_batches(predict: Callable[[Any], np.ndarray], table: Table) -> np.ndarray:
    """Return the predictions for all records of a table, in their order."""
    if table.n_samples is None:
        return _joined(predict(X) for X, _ in table.batches())
    result, start = np.empty(0), 0
    for X, _ in table.batches():
        part = predict(X)
        if not start:
            result = np.empty((table.n_samples, *part.shape[1:]), part.dtype)
        begin, start = start, start + len(part)
        if start > table.n_samples:
            break
        result[begin:start] = part
    check_number(table.n_samples, start, "")
    return result


def _joined(parts: Iterator[np.ndarray]) -> np.ndarray:
    """Return the parts as one array, which grows in place: a list of them would need the memory twice."""
    result = np.array(next(parts, np.empty(0)))
    for part in parts:
        start = len(result)
        result.resize((start + len(part), *part.shape[1:]), refcheck=False)
        result[start:] = part
    return result


SUFFIX = ".parquet"


def write_predictions(model: Any, table: Table, path: str | os.PathLike[str], *, columns: Sequence[str] = ()) -> None:
    """Write the predictions for all records of a table, in their order, in bounded memory.

    The columns are "prediction" and the probabilities or scores of the classes, if the model has them. If anything fails, nothing
    is written.

    Parameters
    ----------
    model : estimator
        A fitted private estimator, or a pipeline that ends in one.
    table : Table
        The records.
    path : path
        Where to write: a name that ends in ".parquet" is one file, which is replaced if it exists; any other is a new folder,
        which gets a file per batch.
    columns : list of str, default=()
        Columns of a table of Parquet files that are written beside the predictions, such as an identifier.

    Raises
    ------
    ImportError, OSError, TypeError, ValueError
        If the files cannot be written, or there is no such column.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> from pathlib import Path
    >>> from skdp.data import parquet, write_predictions
    >>> from skdp.estimators import DPLinearRegression
    >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> trips = pd.DataFrame({"trip": np.arange(20_000), "fare": rng.uniform(-1, 1, size=20_000)})
    >>> trips.assign(tip=trips["fare"] / 2).to_parquet(folder / "trips.parquet")
    >>> table = parquet(folder / "trips.parquet", columns=["fare"], target="tip")
    >>> model = DPLinearRegression(feature_bounds=1.0, target_bounds=(-1, 1)).fit(table)
    >>> write_predictions(model, table, folder / "tips.parquet", columns=["trip"])
    >>> list(pd.read_parquet(folder / "tips.parquet"))
    ['trip', 'prediction']
    """
    if is_dask(table):
        raise TypeError(
            "table is a Dask collection, whose workers write by themselves; expected a table of skdp.data. For this one: "
            "model.predict(ddf).to_dask_dataframe(columns=['prediction']).to_parquet(folder)."
        )
    if not isinstance(table, Table):
        raise TypeError(f"table is a {type(table).__name__}; expected a table of skdp.data, such as parquet(folder).")
    place, n_samples = Path(path), 0
    if place.suffix == SUFFIX:
        check_outputs([(place, (SUFFIX,))])
    elif os.path.lexists(place):
        raise ValueError(f"{place} exists already; expected a new folder, or a name that ends in {SUFFIX}.")
    writer = imported("pyarrow.parquet", OF_PARQUET).ParquetWriter
    parts = _parts(model, table, list(columns))
    first = next(parts, None)
    if first is None:
        raise ValueError("The table has no records to predict for.")
    with ExitStack() as stack:
        if place.suffix == SUFFIX:
            output = stack.enter_context(Output(place))
            with writer(output.file, first.schema) as file:
                for part in _from(first, parts):
                    n_samples += part.num_rows
                    file.write_table(part)
            check_number(table.n_samples, n_samples, " Nothing was written.")
            output.complete()
            return
        folder = stack.enter_context(whole_folder(place))
        for number, part in enumerate(_from(first, parts)):
            n_samples += part.num_rows
            with writer(folder / f"part-{number:05d}{SUFFIX}", part.schema) as file:
                file.write_table(part)
        check_number(table.n_samples, n_samples, " Nothing was written.")


def columns_of_predictions(model: Any, X: Any) -> dict[str, Any]:
    """Return the predictions for some records.

    Parameters
    ----------
    model : estimator
        A fitted private estimator, or a pipeline that ends in one.
    X : array-like
        Records.

    Returns
    -------
    dict
        Columns by name: the prediction, and the probabilities or scores of the classes if the model has them.
    """
    if is_regressor(model):
        return {"prediction": model.predict(X)}
    if hasattr(model, "predict_proba"):
        values, what, labels = model.predict_proba(X), "probability", model.classes_.tolist()
    else:
        values, what, labels = model.decision_function(X), "score", model.classes_.tolist()
        values, labels = (values[:, None], labels[1:]) if values.ndim == 1 else (values, labels)
    of_classes = {f"{what} of {label}": column for label, column in zip(labels, values.T, strict=True)}
    last = model[-1] if hasattr(model, "steps") else model
    return of_classes if getattr(last, "_only_ranks", False) else {"prediction": model.predict(X), **of_classes}


def _parts(model: Any, table: Table, columns: list[str]) -> Iterator[Any]:
    """Yield tables of Arrow with the predictions for some records, all of one schema."""
    arrow, schema = imported("pyarrow", OF_PARQUET), None
    for X, others in _batches(table, columns):
        found = columns_of_predictions(model, X)
        if taken := [name for name in columns if name in found]:
            raise ValueError(f"columns={shown(columns)}: {taken} are names of predictions; expected other columns.")
        part = arrow.table({**{name: others[name] for name in columns}, **{name: arrow.array(v) for name, v in found.items()}})
        schema = part.schema if schema is None else schema
        yield part.cast(schema)


def _batches(table: Table, columns: list[str]) -> Iterator[tuple[Any, Any]]:
    if not columns:
        yield from ((X, None) for X, _ in table.batches())
    elif not hasattr(table.source, "batches_with"):
        raise TypeError(f"columns={shown(columns)}; expected none: only tables of Parquet files have further columns.")
    else:
        yield from ((table.batch(X), others) for X, _, others in table.source.batches_with(columns))


def _from(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others

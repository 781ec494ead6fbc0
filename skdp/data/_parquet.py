"""Read tables from Parquet files, one row group at a time."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skdp._files._suffixes import OF_PARQUET, imported
from skdp._persons import check_column
from skdp._validation import shown
from skdp.data._table import Table, check_cache, check_dtype
from skdp.preprocessing import Schema
from skdp.preprocessing._columns import as_described
from skdp.privacy.data.summation import chunk_rows
from skdp.privacy.errors import OutsideGuaranteeWarning, SourceError, warn

LARGEST = 512 * 2**20  # bytes of a decoded row group, at most; a choice: two of them are in memory at a time
CELL = 64  # bytes of a cell that is not a number, for this limit; a guess
ROWS = 2048  # rows that are brought into C order at a time: the fastest of 256 to 2**17 with 50 columns
NUMBERS = "biuf"
OF_PANDAS = "categorical"  # type of a column in the metadata that pandas writes


@dataclass(frozen=True)
class File:
    """A file of the table: where it is, and the values that the names of its folders give to all of its records."""

    path: str
    filesystem: Any
    groups: tuple[int, ...]
    constants: dict[str, Any]


class ParquetFiles:
    """A source of Parquet files; see `parquet`.

    Parameters
    ----------
    place : str
        What messages call the table. They never name the file of a record.
    dataset : pyarrow.dataset.Dataset
        Finds the files; they are read without it, since it reads ahead without bound.
    target : str or None
        The column of the targets.
    columns : list of str or None
        The columns of X; None for all others.
    schema : Schema or None
        Public facts, by which the columns are read.
    dtype : str or None
        What numbers are converted to; None for float32 if all columns have this type, else float64.
    """

    def __init__(
        self, place: str, dataset: Any, target: str | None, columns: list[str] | None, schema: Schema | None, dtype: str | None
    ) -> None:
        self._place, self._schema, self._given = place, schema, (dataset, target, schema, dtype)
        found = _found(place, dataset)
        kinds = _kinds(place, *found[0], dataset)
        self._present = list(kinds)
        self.target = target if schema is None or target in kinds else None
        listed = [name for name in kinds if name != target] if columns is None else columns
        self.names: list[str] | None = listed
        self.n_features: int | None = len(listed)
        self._columns = [*listed, *([] if self.target is None else [self.target])]
        if missing := [name for name in self._columns if name not in kinds]:
            raise ValueError(f"{place} has no columns {missing}; expected some of {shown(list(kinds))}.")
        if not listed:
            raise ValueError(f"{place} has no columns beside the target; expected at least one.")
        for file, metadata in found:
            others = _kinds(place, file, metadata, dataset)
            if any(others.get(name) != kinds[name] for name in self._columns) or (
                columns is None and list(others) != list(kinds)
            ):
                raise ValueError(
                    f"{place}: the files have different columns or types; expected the same in all of them, in the same order. "
                    "columns=[...] takes those that they have in common."
                )
        categorical = {name for _, metadata in found for name in _categorical(metadata)}
        stated = {} if schema is None else {name: column.dtype for name, column in schema.columns.items()}
        # the types in all frames that are read, whatever the records: those of the files, or of the schema
        self.types = {n: "category" if n in categorical else stated.get(n, str(kinds[n])) for n in listed}
        self._numeric = schema is None and all(_is_number(kinds[name]) for name in listed)
        self._dtype = np.dtype(dtype or ("float32" if all(str(kinds[name]) == "float" for name in listed) else "float64"))
        self._files = [file for file, _ in found]
        self.n_samples: int | None = sum(self._check_groups(file, metadata, kinds) for file, metadata in found)
        names = dict.fromkeys(name for file in self._files for name in file.constants)
        self.placing = tuple(name for name in names if len({repr(file.constants.get(name)) for file in self._files}) > 1)
        of_folders = f"; folders by {', '.join(map(repr, self.placing))} give the records their places" if self.placing else ""
        self.description = f"Parquet, number of files {len(found)}{of_folders}"

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Type of the numbers of X, of a table that is read as such."""
        return self._dtype if self._numeric else None

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield runs of rows, cut where the chunks of a table of so many columns are."""
        for X, y, _ in self.batches_with([]):
            yield X, y

    def batches_with(self, others: Sequence[str]) -> Iterator[tuple[Any, Any, Any]]:
        """Yield X, y (None without target) and other columns of the files.

        Parameters
        ----------
        others : sequence of str
            Names of columns.

        Yields
        ------
        X : pandas.DataFrame
            Some records.
        y : ndarray or None
            Their targets.
        others : pyarrow.Table
            The other columns.
        """
        if missing := [name for name in others if name not in self._present]:
            raise ValueError(f"{self._place} has no columns {missing}; expected some of {shown(self._present)}.")
        length, waiting, n_rows = chunk_rows(len(self.names or ())), [], 0
        for group in self._groups([*self._columns, *(name for name in others if name not in self._columns)]):
            start = 0
            while start < group.num_rows:
                waiting.append(group.slice(start, length - n_rows))
                n_rows, start = n_rows + waiting[-1].num_rows, start + waiting[-1].num_rows
                if n_rows == length:
                    yield self._read(waiting, others)
                    waiting, n_rows = [], 0
        if waiting:
            yield self._read(waiting, others)

    def without(self, name: str) -> "ParquetFiles":
        """Return the same files without a column that is no target, or raise ValueError if they have none of this name."""
        check_column(name, (column for column in self._present if column != self.target))
        dataset, target, schema, dtype = self._given
        others = [column for column in self.names or () if column != name]
        return self if others == self.names else ParquetFiles(self._place, dataset, target, others, schema, dtype)

    def column(self, name: str) -> Iterator[Any]:
        """Yield a column as series of pandas, one per row group."""
        for group in self._groups([name]):
            yield self._quoting_no_value(group[name].to_pandas)

    def _groups(self, columns: list[str]) -> Iterator[Any]:
        """Yield the row groups of all files, decoded."""
        reader, arrow = imported("pyarrow.parquet", OF_PARQUET), imported("pyarrow", OF_PARQUET)
        for file in self._files:
            stored = [name for name in columns if name not in file.constants]

            def decoded(number: int, file: File = file, stored: list[str] = stored) -> Any:
                with reader.ParquetFile(file.filesystem.open_input_file(file.path), pre_buffer=False) as opened:
                    found = opened.read_row_group(number, columns=stored)
                of_folders = {name: arrow.array([value] * found.num_rows) for name, value in file.constants.items()}
                return arrow.table([of_folders[n] if n in of_folders else found[n] for n in columns], names=columns)

            for number in file.groups:
                yield self._quoting_no_value(partial(decoded, number))

    def _read(self, parts: list[Any], others: Sequence[str]) -> tuple[Any, Any, Any]:
        """Return X, y and other columns of neighbouring parts of row groups."""
        whole = imported("pyarrow", OF_PARQUET).concat_tables(parts)
        further = whole.select(list(others))
        if self._numeric:
            return *self._quoting_no_value(lambda: self._numbers(parts, whole)), further
        frame = self._quoting_no_value(lambda: whole.select(self._columns).to_pandas(ignore_metadata=True, types_mapper=_kept))
        if self._schema is not None:
            frame = as_described(self._place, frame, self._schema)
        return frame[self.names], None if self.target is None else frame[self.target].to_numpy(), further

    def _numbers(self, parts: list[Any], whole: Any) -> tuple[Any, Any]:
        frame, names = imported("pandas", OF_PARQUET).DataFrame, self.names or []
        table, start = np.empty((whole.num_rows, len(names)), self._dtype), 0
        for part in parts:
            fill_rows(table[start : start + part.num_rows], [part[name] for name in names])
            start += part.num_rows
        X = frame(table, columns=names, copy=False)
        return X, None if self.target is None else whole[self.target].to_pandas().to_numpy()

    def _quoting_no_value(self, read: Callable[[], Any]) -> Any:
        """Return what a function of pyarrow returns, whose errors may quote a value."""
        try:
            return read()
        except MemoryError:
            raise
        except Exception:
            pass
        raise SourceError(f"{self._place}: a file cannot be read; is it damaged, or was it changed or removed?")

    def _check_groups(self, file: File, metadata: Any, kinds: dict[str, Any]) -> int:
        """Return the number of records of a file; refuse row groups that do not fit into memory, by public facts."""
        widths = [self._dtype.itemsize if _is_number(kinds[name]) else CELL for name in self._columns]
        numbers = [metadata.row_group(number).num_rows for number in file.groups]
        size = max(numbers, default=0) * sum(widths)
        if size > LARGEST:
            raise ValueError(
                f"{self._place}: a row group takes about {size / 2**20:.0f} MiB in memory; expected at most {LARGEST // 2**20} "
                f"MiB. Write the table anew with row_group_size={LARGEST // (2 * sum(widths))}, as pyarrow.parquet.write_table "
                "takes it, or read fewer columns."
            )
        return sum(numbers)


def parquet(
    source: Any,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    schema: Any = None,
    cache: str | None = "disk",
    dtype: str | None = None,
) -> Table:
    """Return a table whose records are in Parquet files.

    Parameters
    ----------
    source : path, list of path or pyarrow.dataset.Dataset
        A file; a folder, whose files are taken in the order of their names; files in this order; or a dataset without a filter.
    target : str or None, default=None
        Column of the targets; None for that of the schema, and for a table to predict for.
    columns : list of str or None, default=None
        Columns of X. None takes those that the schema names, and without schema all but the target.
    schema : path-like, dict, Schema or None, default=None
        Public facts about the columns, as `skdp.preprocessing.from_schema` takes them. The columns are then read as
        `skdp.preprocessing.read_table` reads them. Without schema, a table of numbers is read as such, and any other table as
        pandas reads it.
    cache : {"disk", None}, default="disk"
        Whether ``fit`` keeps a copy of the records in a private file, or decodes the files once per pass over the data.
    dtype : {"float32", "float64", None}, default=None
        What X is converted to, number by number, before it reaches the estimator. "float32" halves the kept copy and the time to
        read it; the numbers are rounded to 7 digits, so the model has other bits. None takes float32 if all columns of X have
        this type, else float64.

    Returns
    -------
    Table
        Only the ends of the files are read now, which hold the names, types and numbers of rows.

    Raises
    ------
    FileNotFoundError, ImportError, TypeError, ValueError
        If the files cannot be read, have unlike columns, or have row groups that take more than 512 MiB in memory.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> from pathlib import Path
    >>> from skdp.data import parquet
    >>> from skdp.estimators import DPLogisticRegression
    >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> for month in ("01", "02"):
    ...     trips = pd.DataFrame(rng.uniform(-1, 1, size=(10_000, 3)), columns=["length", "hour", "fare"])
    ...     trips.assign(tip=trips["fare"] > 0).to_parquet(folder / f"{month}.parquet")
    >>> table = parquet(folder, target="tip")
    >>> model = DPLogisticRegression(feature_bounds=1.0, classes=[False, True]).fit(table)
    >>> model.predict(table).shape
    (20000,)
    """
    facts = None if schema is None else Schema.read(schema, partial(names_of, source))
    if facts is not None and (columns is not None or target not in (None, facts.target)):
        raise ValueError("schema is given beside columns or another target; expected the schema alone, which names both.")
    if columns is not None and (isinstance(columns, str) or not all(isinstance(name, str) for name in columns)):
        raise TypeError(f"columns={shown(columns)}; expected a list of names.")
    if facts is not None:
        target, columns = facts.target, list(facts.columns)
    listed = None if columns is None else list(columns)
    if listed is not None and (target in listed or len(set(listed)) < len(listed)):
        raise ValueError(f"columns={shown(listed)} with target={shown(target)}; expected different names.")
    files = ParquetFiles(_shown(source), _dataset(source), target, listed, facts, check_dtype(dtype))
    if files.placing:
        warn(
            f"The folders have values of the columns {list(files.placing)} as names, so that a record's value of these says "
            "where in the table it is. The guarantee takes places for public. Write the records in an order that does not depend "
            "on them, or take these columns for public.",
            OutsideGuaranteeWarning,
        )
    return Table(files, cache=check_cache(cache), dtype=dtype)


def fill_rows(table: np.ndarray, columns: Sequence[Any]) -> None:
    """Copy columns of Arrow to a table in C order, with NaN for nulls."""
    arrays = [(column.cast("float64") if column.type == "bool" else column).to_numpy() for column in columns]
    with np.errstate(all="ignore"):  # a warning would tell of the size of a number; `fit` refuses infinities
        for start in range(0, len(table), ROWS):
            rows = slice(start, start + ROWS)
            for place, array in enumerate(arrays):
                table[rows, place] = array[rows]


def names_of(source: Any) -> list[str]:
    """Return the names of the columns of Parquet files, and of those that their folders name."""
    dataset = _dataset(source)
    return list(_kinds(_shown(source), *_found(_shown(source), dataset)[0], dataset))


def _shown(source: Any) -> str:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else "The table"


def _dataset(source: Any) -> Any:
    """Return the dataset of some files, which is only asked for these."""
    datasets = imported("pyarrow.dataset", OF_PARQUET)
    if isinstance(source, datasets.Dataset):
        return source
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(paths, (list, tuple)) or not paths or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise TypeError(f"source={shown(source)}; expected a path, a list of paths, or a pyarrow.dataset.Dataset.")
    texts = [os.fspath(path) for path in paths]
    for path in texts:
        if "://" not in path and any(sign in path for sign in "*?[") and not Path(path).exists():
            raise FileNotFoundError(
                f"There is no file {path}. Patterns are not taken; expected a folder, or sorted(glob.glob(...))."
            )
        if "://" not in path and not (Path(path).is_file() or (Path(path).is_dir() and len(texts) == 1)):
            raise FileNotFoundError(f"There is no file {path}." if len(texts) > 1 else f"There is no file or folder {path}.")
    try:
        one = texts[0] if len(texts) == 1 else texts
        return datasets.dataset(one, format="parquet", partitioning="hive")
    except Exception:
        pass
    raise ValueError(f"{_shown(source)} cannot be read; expected Parquet files.")


def _found(place: str, dataset: Any) -> list[tuple[File, Any]]:
    """Return the files and their metadata."""
    datasets, files = imported("pyarrow.dataset", OF_PARQUET), []
    fragments: list[Any] = []
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:
        raise ValueError("The dataset has a filter or a projection; expected one without.") from None
    for fragment in fragments:
        if not isinstance(fragment, datasets.ParquetFileFragment):
            raise TypeError(f"{place}: a part of it is not in Parquet; expected Parquet files.")
        try:
            metadata, groups = fragment.metadata, tuple(group.id for group in fragment.row_groups)
        except Exception:
            metadata = None
        if metadata is None:
            raise ValueError(f"{fragment.path} cannot be read; expected a Parquet file.")
        constants = dict(datasets.get_partition_keys(fragment.partition_expression))
        files.append((File(fragment.path, fragment.filesystem, groups, constants), metadata))
    if not files:
        raise ValueError(f"{place} has no Parquet files.")
    return files


def _kinds(place: str, file: File, metadata: Any, dataset: Any) -> dict[str, Any]:
    """Return the types of the columns of a file by name, and of those that its folders name; without the index of a frame."""
    schema = metadata.schema.to_arrow_schema()
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"{place} has columns with the same name; expected different names.")
    found = {field.name: _plain(field.type) for field in schema if field.name not in index}
    return found | {name: _plain(dataset.schema.field(name).type) for name in file.constants}


def _categorical(metadata: Any) -> list[str]:
    """Return the columns of a file that are categorical in pandas, or a dictionary of values."""
    schema = metadata.schema.to_arrow_schema()
    stated = [
        column["name"] for column in (schema.pandas_metadata or {}).get("columns", ()) if column["pandas_type"] == OF_PANDAS
    ]
    return [*stated, *(field.name for field in schema if str(field.type).startswith("dictionary"))]


def _plain(kind: Any) -> Any:
    """Return the type of the values of a column that is stored as a dictionary of values."""
    return kind.value_type if hasattr(kind, "value_type") and str(kind).startswith("dictionary") else kind


def _kept(kind: Any) -> Any:
    """Return the type of pandas that holds any date or time of Arrow, as objects of Python do not; None for other types."""
    types = imported("pyarrow.types", OF_PARQUET)
    return imported("pandas", OF_PARQUET).ArrowDtype(kind) if types.is_date(_plain(kind)) or types.is_time(_plain(kind)) else None


def _is_number(kind: Any) -> bool:
    try:
        return np.dtype(kind.to_pandas_dtype()).kind in NUMBERS
    except (NotImplementedError, TypeError):
        return False

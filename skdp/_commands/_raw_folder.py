"""Describe a folder of Parquet files of which not all columns are known, with targets as those of a file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skdp._commands._raw import RawTable, check_few, targets_of
from skdp._files._suffixes import imported
from skdp.data import Table, parquet


class RawFiles:
    """A source of Parquet files whose described numbers and whose targets are read as those of one file are.

    Parameters
    ----------
    table : Path
        The folder.
    raw : RawTable
        What is public about it.
    files : ParquetFiles
        Its files.
    """

    def __init__(self, table: Path, raw: RawTable, files: Any) -> None:
        self.description, self.n_samples, self.n_features = files.description, files.n_samples, files.n_features
        self.names, self.types = files.names, files.types
        self._table, self._raw, self._files, self._reader = table, raw, files, raw.reader
        self._labels: set[Any] = set()

    @property
    def labels(self) -> list[Any]:
        """The labels of the targets that were read, sorted; they are public."""
        return sorted(self._labels)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield X and y (None without target); errors quote no data."""
        for X, y in self._files.batches():
            yield self._reader.described(self._table, X), None if y is None else self._targets(y)

    def _targets(self, y: Any) -> Any:
        name = str(self._raw.target)
        targets = targets_of(self._table, imported("pandas").DataFrame({name: y}), self._raw)
        if self._raw.labelled and self._raw.classes is None:
            self._labels.update(targets.tolist())
            check_few(self._table, name, self._labels)
        return targets


def raw_in_partitions(table: Path, raw: RawTable, names: Sequence[str]) -> Table:
    """Return a folder as a table, of which only the ends of the files are read now.

    Parameters
    ----------
    table : Path
        The folder.
    raw : RawTable
        What is public about it.
    names : sequence of str
        Columns that predict.

    Returns
    -------
    Table
        Its source is `RawFiles`.
    """
    found = parquet(table, target=raw.target, columns=list(names))
    return replace(found, source=RawFiles(table, raw, found.source))

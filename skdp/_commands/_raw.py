"""Describe a table of which not all columns are known, so that the commands learn the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from skdp._files._suffixes import imported
from skdp._files._tables import TextFormat, column_names, column_types, is_parquet, missing_cells, no_column, to_numbers
from skdp._table_types import TypedColumns
from skdp.data import Table, parquet
from skdp.data._parquet import names_of
from skdp.estimators._planned_fit import most_labels
from skdp.preprocessing import Schema, SchemaColumns
from skdp.preprocessing._categories import category_names, spelling
from skdp.preprocessing._frame_facts import SHORT, columns_and_target, leaves_to_learn
from skdp.preprocessing._schema import read_json
from skdp.privacy.errors import warn

TASKS = ("classification", "regression")
NUMBERS = ("linear", "quantile", "robust")  # estimators that predict numbers only


def content_of(schema: Path | None) -> Any:
    """Return the content of a schema file; {} without one."""
    return {} if schema is None else read_json(schema)


@dataclass(frozen=True)
class RawTable:
    """Hold what is public about a table of which not all columns are known.

    Parameters
    ----------
    columns : dict
        Facts or a word for each column that predicts, by name.
    target : str or None
        Column to predict.
    classes : tuple or None
        Labels of the target; None if they are read from the table, or if the target is a number.
    target_bounds : tuple of float or None
        Range of a number to predict; None if it is learned.
    labelled : bool
        Whether the target has labels.
    """

    columns: Mapping[str, Any]
    target: str | None
    classes: tuple[Any, ...] | None
    target_bounds: tuple[float, float] | None
    labelled: bool

    @classmethod
    def of(
        cls,
        table: Path,
        form: TextFormat,
        content: Any,
        *,
        target: str | None = None,
        classes: str | None = None,
        task: str | None = None,
        estimator: str | None = None,
        apart: Sequence[str] = (),
        needs_target: bool = True,
    ) -> "RawTable | None":
        """Read the names of the columns; None if a schema leaves nothing to learn.

        Parameters
        ----------
        table : Path
            Records, of which the names of the columns are read.
        form : TextFormat
            How a text is written.
        content : object
            Content of a schema file, {} without.
        target, classes, task, estimator : str or None
            Options of the command line.
        apart : sequence of str
            Columns that do not predict.
        needs_target : bool, default=True
            Whether there must be a target.

        Returns
        -------
        RawTable or None
            Public facts.
        """
        if content != {} and not leaves_to_learn(content):
            check_complete(content, target, classes, task)
            return None
        described, of_target = columns_and_target(content)
        target = target or of_target.get("target")
        names = column_names(table, form, [str(target), *map(str, described)])
        if table.is_dir():
            names = names_of(table)  # with those that its folders name
        if needs_target and not target:
            raise ValueError("The column to predict is not stated; expected --target NAME, or a schema that names it.")
        for option, name in (("--target", target), *(("The command", name) for name in apart)):
            if name and name not in names:
                raise no_column(table, name, names, option)
        if unknown := [name for name in described if name not in names]:
            raise no_column(table, unknown[0], names, "The schema")
        word = "learn" if table.is_dir() or is_parquet(table) else "either"  # a CSV has no types
        left_out = {target, *apart}
        columns = {name: _said(described.get(name), word) for name in names if name not in left_out}
        stated = tuple(classes.split(",")) if classes else of_target.get("classes") or None
        bounds = of_target.get("target_bounds") or None
        labelled = _labelled(task, stated, bounds, estimator)
        if stated is not None:
            category_names(stated)
        if stated is not None and len(stated) < 2:
            raise ValueError("--classes has one label; expected at least two, with a comma between them.")
        return cls(
            columns, target, None if stated is None else tuple(stated), None if bounds is None else tuple(bounds), labelled
        )

    @property
    def content(self) -> dict[str, Any]:
        """The partial schema, as an estimator takes it."""
        return {"columns": {name: given for name, given in self.columns.items() if given != "ignore"}}

    @property
    def stated(self) -> dict[str, Any]:
        """What the report says of the table, as a schema has it."""
        known = {"target": self.target, "classes": self.classes, "target_bounds": self.target_bounds}
        return {**self.content, **{name: value for name, value in known.items() if value is not None}}

    def said(self, labels: Sequence[str] | None = None) -> str:
        """Return what the user should know of the target, in a line, with its labels where they were read from the records."""
        if not self.labelled:
            bounds = "is learned" if self.target_bounds is None else "is stated"
            return f"Target {self.target}: a number, whose range {bounds}."
        if self.classes is None:
            said = "its labels" if labels is None else f"labels {', '.join(labels)}; they"
            return (
                f"Target {self.target}: {said} are read from the table and are public (--classes states them; "
                "--task regression for a number)."
            )
        return f"Target {self.target}: labels, which are stated."

    @property
    def reader(self) -> SchemaColumns:
        """What reads and selects the columns."""
        facts = {name: given for name, given in self.columns.items() if isinstance(given, Mapping) and given != {"kind": "learn"}}
        known = Schema.read({"columns": facts}, facts).columns if facts else {}
        described = SchemaColumns.of(Schema(known, None, None))
        learned = [name for name in self.columns if name not in facts and self.columns[name] != "ignore"]
        return described.set_params(learned=[*(described.learned or []), *learned])

    def shape(self, table: Path, n_samples: int) -> TypedColumns:
        """Return what a plan reads of a data frame: number of records, names and types."""
        names = self.reader.names
        if table.is_dir():
            types = parquet(table, columns=names).source.types  # type: ignore[attr-defined]
        else:
            types = column_types(table) if "learn" in self.columns.values() else {}
        return TypedColumns({name: types.get(name, np.dtype(object)) for name in names}, n_samples)  # "either" needs no type

    def targets(self, table: Path, frame: Any) -> np.ndarray:
        """Return the targets of some records as numbers, or as labels, zeros without target; errors quote no data."""
        name = self.target
        if name is None:
            return np.zeros(len(frame))
        if not self.labelled:
            if not to_numbers(frame, name) or frame[name].isna().any():
                raise ValueError(
                    f"{table}: the target {name!r} has values that are missing or not finite; expected a number in every record, "
                    "or --task classification for labels. --drop-missing-target leaves records without target out; "
                    "--decimal , and --thousands . read a number such as 1.805,39."
                )
            return np.asarray(frame[name])
        if self.classes is not None:
            return Schema({}, name, self.classes).labels(frame[name])
        texts = [spelling(cell) or "" for cell in frame[name]]
        if "" in texts or missing_cells(frame[name]).any():
            raise ValueError(
                f"{table}: the target {name!r} is missing in some records; expected a label in every record. "
                "--drop-missing-target leaves the others out, and takes the number that remains for public; --classes states a "
                "label such as NA."
            )
        check_few(table, name, set(texts))
        return np.array(texts, dtype=str)


def schema_without(column: str | None, facts: Schema, content: Any) -> tuple[Schema, Any]:
    """Return a complete schema and its content without a column, such as that of ids of persons, if they describe it."""
    if column not in facts.columns:
        return facts, content
    columns = {name: given for name, given in columns_and_target(content)[0].items() if name != column}
    left = {name: given for name, given in facts.columns.items() if name != column}
    return replace(facts, columns=left), {**content, "columns": columns} if "columns" in content else columns


def check_complete(content: Any, target: str | None, classes: str | None, task: str | None) -> None:
    """Raise ValueError for options that say anything else of the target than a complete schema says.

    Parameters
    ----------
    content : object
        Content of a schema file that leaves nothing to learn.
    target, classes, task : str or None
        Options of the command line.
    """
    stated = content if isinstance(content, Mapping) else {}  # what is none, `Schema.read` refuses
    labels = stated.get("classes") or []
    facts = {
        "--target": (target, stated.get("target")),
        "--classes": (classes and sorted(classes.split(",")), sorted(category_names(labels)) if labels else None),
        "--task": (task, TASKS[not labels]),
    }
    if other := [option for option, (given, known) in facts.items() if given is not None and given != known]:
        raise ValueError(
            f"{' and '.join(other)} beside a complete schema that states {_of_target(stated)}; expected the same, or no such "
            "option, or another schema."
        )


def _of_target(stated: Mapping[str, Any]) -> str:
    """Return what a schema says of the target, as text."""
    found = {key: stated[key] for key in ("target", "classes", "target_bounds") if stated.get(key)}
    return ", ".join(f"{key} = {value!r}" for key, value in found.items()) or "no target"


def warn_of_alike(target: str, labels: Sequence[str]) -> None:
    """Warn of labels, which are public, that differ in capitals, spaces, a point at their end or the form of a number alone."""
    plain = [_plain(label) for label in labels]
    if alike := [label for label, form in zip(labels, plain, strict=True) if plain.count(form) > 1]:
        warn(
            f"The target {target} has labels that are probably the same, spelt apart: {', '.join(alike)}. Each is a class of its "
            "own. Use one spelling for each class in the table.",
            UserWarning,
        )


def _plain(label: str) -> str:
    try:
        return str(float(label))
    except ValueError:
        return " ".join(label.casefold().rstrip(".").split())


def check_few(table: Path, name: str, labels: set[str]) -> None:
    """Raise ValueError if a target has so many labels that they are probably numbers."""
    if len(labels) > (most := most_labels(labels)):
        raise ValueError(
            f"{table}: the target {name!r} has more than {most} different labels, which would be public; expected "
            "--task regression for a number, or --classes with the labels."
        )


def _said(given: Any, word: str) -> Any:
    """Return the facts of a column; a column to learn is read by its type, or cell by cell where there are no types."""
    if given is None or given == "learn" or given == {"kind": "learn"}:
        return word
    if isinstance(given, Mapping) and given.get("kind") == "ignore":
        return "ignore"
    if not isinstance(given, Mapping) and given not in SHORT:
        raise ValueError(f"The schema describes a column by {given!r}; expected an object of facts, or one of {list(SHORT)}.")
    return given


def _labelled(task: str | None, classes: Any, bounds: Any, estimator: str | None) -> bool:
    """Return whether the target has labels, by what the user says alone."""
    if task == "regression" and classes is not None:
        raise ValueError("--task regression with classes; expected classes for labels only.")
    if task == "classification" and bounds is not None:
        raise ValueError("--task classification with target_bounds; expected target_bounds for numbers only.")
    if task is not None:
        return task == "classification"
    return classes is not None or (bounds is None and estimator not in NUMBERS)


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
        targets = self._raw.targets(self._table, imported("pandas").DataFrame({name: y}))
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

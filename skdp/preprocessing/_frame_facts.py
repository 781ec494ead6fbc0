"""Read what is public about a data frame whose columns are to be learned, and put what was learned beside what was given."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from skdp._data_validation import quoting_no_data
from skdp._files._suffixes import imported
from skdp._table_types import is_lazy
from skdp._validation import column_labels, first_of, shown
from skdp.preprocessing._cells import (
    bucket_cells,
    column_values,
    either_cells,
    is_date,
    is_number,
    is_truth,
    number_cells,
    read_as_text,
    without_cells,
)
from skdp.preprocessing._column_kinds import Category, Column, LearnedScale, Number
from skdp.preprocessing._learning import Learned
from skdp.preprocessing._schema import (
    EXAMPLES,
    Schema,
    columns_and_target,
    matching,
    read_json,
)
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.persons import Persons, shares_of
from skdp.privacy.errors import TableWarning, warn

# Names of ids, as tables have them: whole words, or the last word of a name.
ID = re.compile(
    r"(?i:(^|[_\W])(id|uuid|guid|rowid)$|^unnamed: 0$)|[a-z](Id|ID)$"
    r"|(?i:^(patient|customer|client|user|subject|person|participant|respondent|household)([_ ]?(no|nr|num|number|code|key))?$)"
)
PERSON = re.compile(
    r"(?i:^(patient|customer|client|user|subject|person|participant|respondent)([_ ]?(id|no|nr|num|number|code|key))?$)"
)
OF_ONE = (
    " If a person has several rows, the guarantee is for one of them. persons=ids protects her with all of them, in a fit with "
    "privacy_unit='person'; on the command line, --persons does."
)
SHORT = ("category", "number", "either", "ignore", "learn")  # what may stand for a column's facts
# By whether a column is text; None if each cell is a number or text.
READERS = {False: number_cells, True: bucket_cells, None: either_cells}
READ_AS = {False: "number", True: "text", None: "number or text, cell by cell"}
TRUTH = "true or false"
OF_WORDS = {"number": False, "category": True, "either": None}
UNKNOWN = {"kind": "number", "bounds": [-1, 1]}  # stands for a column that is not learned yet
LIKELY = Number((-1.0, 1.0), "linear", None, LearnedScale((-1.0, 1.0), 0.0))
TYPES = (
    "the types of the columns are public, and decide which are read as numbers, which as true or false, which as categories, and "
    "which cell by cell, each as a number or as text; one cell that is no number can change the type of a column"
)


@dataclass(frozen=True)
class FrameFacts:
    """Hold what is public about a data frame.

    Parameters
    ----------
    n_samples : int
        Number of records.
    names : tuple of str
        All columns.
    given : dict
        Facts of the columns that the user describes, by name.
    are_text : dict
        For each column that is learned, whether it is text, by name; None if each cell is a number or text.
    of_target : dict, default={}
        What the user states of the target: entries "target", "classes" and "target_bounds" of a schema.
    typed : bool, default=False
        Whether the type of a column decides how it is read.
    truths : frozenset of str, default=frozenset()
        Columns that are learned whose type says that their cells are true, false or missing.
    codes : frozenset of str, default=frozenset()
        Columns that are learned of which the user says that they are categories.
    numbered : frozenset of str, default=frozenset()
        Columns that are learned whose type is a number, unless the user says that their cells are read whatever it is.
    dated : frozenset of str, default=frozenset()
        Those of them whose type is a date or a period.
    texts : frozenset of str, default=frozenset()
        Columns that are learned as numbers, although their type is none.
    described : dict, default={}
        Columns that the user describes and that are read, too, after those that are learned; in ``are_text`` as well.
    """

    n_samples: int
    names: tuple[str, ...]
    given: dict[str, Any]
    are_text: dict[str, bool | None]
    of_target: dict[str, Any] = field(default_factory=dict)
    typed: bool = False
    truths: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    dated: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    described: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, described: Any, target: bool = False) -> "FrameFacts":
        """Read names, types and the number of records; raise TypeError or ValueError for what is no data frame.

        There must be a column to learn, unless the range of the ``target`` is.
        """
        shape: Any = getattr(X, "shape", None) or (None,)
        names = list(getattr(X, "columns", ())) if isinstance(shape[0], Integral) else []
        if not names:
            raise TypeError(f"X is a {type(X).__name__}; expected a data frame in memory with columns, of pandas or polars.")
        check_names(names)
        if shape[0] < 2:
            raise ValueError(f"X has {shape[0]} records; expected at least 2.")
        described = _content(described)
        columns, of_target = columns_and_target(described) if isinstance(described, Mapping) else (described, {})
        kinds = _kinds(columns, names)
        learned = {
            name: OF_WORDS[kind] if kind in OF_WORDS else read_as_text(X[name].dtype)
            for name, kind in kinds.items()
            if isinstance(kind, str) and kind != "ignore"
        }
        given = {name: facts for name, facts in kinds.items() if isinstance(facts, Mapping)}
        if not learned and not (target and given):
            raise ValueError(
                "schema describes every column of X, so that nothing is left to learn; expected it as a complete schema, "
                '{"columns": schema}, with "target_bounds" for numbers to predict, as estimators and from_schema take it without '
                'any budget, or "learn" for one of the columns.'
            )
        typed = [name for name in learned if kinds[name] not in OF_WORDS]
        if other := {name: found for name in typed if (found := without_cells(X[name].dtype)) is not None}:
            raise TypeError(
                f"The columns {other} have types of which no cell is a number, a date or text, so that all would be missing; "
                'expected text, such as X[name].astype(str), or a schema that has "ignore" for these columns.'
            )
        truths = frozenset(name for name in typed if is_truth(X[name].dtype))
        codes = frozenset(name for name, kind in kinds.items() if kind == "category")
        numbered = frozenset(name for name in (*typed, *codes) if is_number(X[name].dtype))
        dated = frozenset(name for name in numbered if is_date(X[name].dtype))
        texts = frozenset(name for name, text in learned.items() if text is False and not is_number(X[name].dtype))
        typed_or_codes = bool(typed or codes)
        return cls(int(shape[0]), tuple(names), given, learned, of_target, typed_or_codes, truths, codes, numbered, dated, texts)

    def cells(self, X: Any) -> np.ndarray:
        """Return the cells of the columns that are learned, each read by itself with public rules."""
        columns = [self._read(name, X[name]) for name in self.are_text]
        return np.column_stack(columns) if columns else np.empty((len(X), 0))

    def rows(
        self, X: Any, targets: np.ndarray | None, persons: Persons | None = None, sample_weight: np.ndarray | None = None
    ) -> ColumnCells:
        """Return the records as the oracle gets them, with their weights, or the rows of persons; errors quote no data."""
        cells = quoting_no_data(X, lambda: list(self._kept(X)))
        n_rows = self.n_samples if persons is None else len(persons.numbers)
        if any(len(column) != n_rows for column in cells):
            raise ValueError(
                "The shape of X has another number of records than its columns; expected a frame that does not change."
            )
        weights = shares_of(sample_weight) if persons is None else persons.weights
        return ColumnCells(cells or np.empty((n_rows, 0)), targets, weights, self.n_samples)

    def _kept(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the cells of each column in few bytes: numbers as the frame holds them, and buckets in two bytes."""
        for name, text in self.are_text.items():
            values = column_values(X[name]) if text is False else None
            if values is not None and values.dtype.kind in "biuf":
                yield values
            else:
                small = text and name not in self.described
                yield from np.atleast_2d(self._read(name, X[name]).astype(np.float16 if small else np.float64, copy=False).T)

    def _read(self, name: str, column: Any) -> np.ndarray:
        """Return the cells of a column as numbers, or as numbers and buckets."""
        return self.described[name].coded(column) if name in self.described else READERS[self.are_text[name]](column)

    def with_described(self) -> "FrameFacts":
        """Return the facts of a reading of the columns that the user describes, too."""
        described = self.stated.columns
        return replace(
            self,
            are_text={**self.are_text, **{name: facts.ends is None for name, facts in described.items()}},
            described=described,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee takes for public, for the report."""
        return (TYPES,) if self.typed else ()

    @property
    def read_as(self) -> dict[str, str]:
        """How each learned column is read, by name."""
        return {name: TRUTH if name in self.truths else READ_AS[text] for name, text in self.are_text.items()}

    @property
    def stated(self) -> Schema:
        """What the user states of some columns, perhaps of none, and of the target."""
        every = {"columns": {**dict.fromkeys(self.are_text, UNKNOWN), **self.given}, **self.of_target}
        read = Schema.read(every, every["columns"])
        return replace(read, columns={name: read.columns[name] for name in self.names if name in self.given})

    def schema(self, learned: Learned) -> Schema:
        """Return the facts of all columns, in their order, and the range of the target if it was learned.

        Columns of which nothing was learned have those of a plan, which no model reads.
        """
        stated, likely = self.stated, self.likely().columns
        found = {**{name: likely[name] for name in self.are_text}, **learned.entries()}
        found |= {name: found[name].typed(name in self.dated) for name in self.numbered}
        bounds = stated.target_bounds if learned.target is None else learned.target.number().bounds
        return replace(self._with(found), target_bounds=bounds)

    def likely(self, of_text: int = 0) -> Schema:
        """Return a schema as it might be learned, for a plan: numbers are one feature, and columns of text 1 + ``of_text``."""
        made_up = {
            name: Category((), tuple(range(of_text))) if text is not False else LIKELY for name, text in self.are_text.items()
        }
        return self._with(made_up)

    def _with(self, found: Mapping[str, Column]) -> Schema:
        """Return what the user states, and these columns, in the order of the frame."""
        stated = self.stated
        columns = {**stated.columns, **found}
        return replace(stated, columns={name: columns[name] for name in self.names if name in columns})


def check_names(names: list[Any]) -> None:
    """Raise ValueError for names of columns that are no strings, or equal."""
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        wrong = [name for name in names if not isinstance(name, str) or names.count(name) > 1]
        raise ValueError(
            f"X has column names that are no strings, or the same name twice: {wrong[:10]!r}; expected different strings, "
            "such as from X.columns = X.columns.astype(str)."
        )


def typed_columns(schema: Schema) -> dict[str, LearnedScale]:
    """Return the learned columns of numbers that had a type of numbers."""
    numbers = {name: number.learned for name, number in schema.numbers.items()}
    return {name: learned for name, learned in numbers.items() if learned is not None and learned.typed}


def warn_of_types(schema: Schema, X: Any, looking: bool = False) -> None:
    """Warn of columns of a table whose type is text, although it was a number in the fit, and of numbers instead of dates.

    The types decide, which are public. Those of objects, and of categories, are not: one record can be the only text in them.

    Parameters
    ----------
    schema : Schema
        What was learned.
    X : DataFrame, or table in partitions
        Records; those of a table that does not tell the types of its columns are not checked.
    looking : bool, default=False
        Whether X holds records to predict for. Their cells tell what is no number, and are looked at elsewhere; types do not.
        Columns of numbers in which all is missing are no other columns than those of the fit.
    """
    typed, of_files = typed_columns(schema), getattr(getattr(X, "source", None), "types", None)
    if of_files is not None:
        types = {name: of_files[name] for name in typed if name in of_files}
        text = {name: dtype for name, dtype in types.items() if dtype in ("string", "large_string")}
    else:
        names = () if is_lazy(X) else getattr(X, "columns", ())
        types = {name: str(X[name].dtype).split("(")[0] for name in typed if name in names}
        text = {name: dtype for name, dtype in types.items() if not looking and is_text(X[name].dtype)}
    if text:
        warn(
            f"The columns {text} held numbers, dates or truths in the fit, by their types. Cells that are no numbers, such as "
            "'1,5', 'True' or '2024-05-01', are taken for missing cells. Use the types of the fit, such as from "
            "X[name].astype(float), pandas.to_datetime(X[name]) or X[name] == 'True'.",
            UserWarning,
        )
    numbers = {name: dtype for name, dtype in types.items() if is_number(dtype) and is_date(dtype) != typed[name].dates}
    empty = {name for name in numbers if looking and not is_date(numbers[name]) and np.isnan(number_cells(X[name])).all()}
    if others := {name: dtype for name, dtype in numbers.items() if name not in empty}:
        warn(
            f"The columns {others} held dates in the fit and do not here, or dates here and not in the fit, by their types. "
            "Dates are taken for seconds since 1970. Use the types of the fit, such as from pandas.to_datetime(X[name]).",
            UserWarning,
        )


def warn_of_left_out(described: Any, X: Any) -> None:
    """Warn, before anything is charged, of columns that a complete schema leaves out without saying so.

    Parameters
    ----------
    described : path-like, dict, Schema or None
        As given to an estimator. A Schema does not tell what it ignores.
    X : object
        The table, of which the names of the columns are read.
    """
    content = _content(described)
    if not isinstance(content, Mapping) or (columns := columns_and_target(content)[0]) is content:
        return
    names = [*(X.columns if hasattr(X, "columns") else getattr(X, "names", None) or ())]
    known = {*columns, content.get("target"), *(name for key in columns for name in matching(str(key), map(str, names)))}
    if left := [name for name in names if name not in known]:
        named, more = first_of(left)
        warn(
            f'schema has the key "columns", so that it describes all columns, and leaves out {named}{more} of X: '
            'they are not read. Use an entry for each, which "ignore" may be; or the dict of columns alone as schema, '
            "with which the others are learned.",
            TableWarning,
        )


def warn_of_ids(described: Any, X: Any, bounded: Any = None, unit: Any = "record") -> None:
    """Warn, before anything is charged, of columns that have names of ids, and that the user does not describe.

    Parameters
    ----------
    described : path-like, dict, Schema, str or None
        As given to an estimator. An entry that says what a column is, or "ignore", silences the warning for it.
    X : object
        The table, of which the names and types of the columns are read.
    bounded : object, default=None
        As given as ``feature_bounds``; a dict describes the columns that it names.
    unit : object, default="record"
        What the fit protects. The warning says how to protect persons where it is a record; whether ids repeat is private.
    """
    content = _content(described)
    entries = columns_and_target(content)[0] if isinstance(content, Mapping) else {}
    entries = content.columns if isinstance(content, Schema) else entries  # anything else is refused later
    known = {name for name, facts in entries.items() if facts not in ("learn", "either", {"kind": "learn"})}
    known |= {*bounded} if isinstance(bounded, Mapping) else set()
    ids = [
        name
        for name, dtype in _types(X).items()
        if name not in known and ID.search(name) and not (is_truth(dtype) or is_date(dtype) or read_as_text(dtype))
    ]
    if ids:
        named, more = first_of(ids)
        warn(
            f"The columns {named}{more} have names of ids. What tells records apart helps no model and no statistic, "
            f'and lowers the signal of the others. Use "ignore" for them in the schema, {{{ids[0]!r}: "ignore"}}, or X '
            'without them; an entry such as "number" or "category" says that it is no id.' + (OF_ONE if unit == "record" else ""),
            TableWarning,
        )
    index = getattr(X.index, "name", None) if hasattr(X, "columns") and hasattr(X, "index") else None
    if unit == "record" and isinstance(index, str) and PERSON.search(index):
        warn(f"The index of X has the name of ids of persons, {index!r}.{OF_ONE}", TableWarning)


def _types(X: Any) -> dict[str, Any]:
    """Return the types of the columns of a frame, or of a table in partitions that tells them, by name."""
    source = getattr(getattr(X, "source", None), "types", None)
    if type(X).__name__ == "LazyFrame":  # which would warn of a look at its columns
        return {}
    names, dtypes = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if source is not None or names is None or dtypes is None:
        return dict(source or {})
    return {name: dtype for name, dtype in zip(names, dtypes, strict=True) if isinstance(name, str)}


def is_text(dtype: Any) -> bool:
    """Return whether the cells of a column are text, by its type alone; those of objects and categories may be anything."""
    return str(dtype) != "object" and getattr(dtype, "categories", None) is None and not is_number(dtype)


def framed(X: Any, names: Any = None) -> Any:
    """Return an array, or a frame none of whose names is a string, as a frame with these columns or x0, x1, and so on.

    Anything else is returned unchanged. Columns of objects of an array stay objects: pandas would look for dates in them, so that
    a single cell would decide how all are read.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame) and not any(isinstance(name, str) for name in X.columns):
        return X.set_axis(column_labels(names, X.shape[1]), axis=1)
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return X
    kind = object if X.dtype == object else None
    return imported("pandas").DataFrame(X, columns=column_labels(names, X.shape[1]), dtype=kind)


def leaves_to_learn(described: Any, table: Any = None) -> bool:
    """Return whether a schema leaves columns to learn: it is the word "learn", has an entry to learn, or is a dict of columns.

    Parameters
    ----------
    described : path-like, dict, Schema, str or None
        As given to an estimator.
    table : DataFrame, table in partitions or None, default=None
        A dict of columns that states facts of each of its columns leaves nothing to learn.

    Returns
    -------
    bool
        False for None, and for a schema of public facts alone.
    """
    content = _content(described)
    if not isinstance(content, Mapping):
        return isinstance(content, str) and content == "learn"
    columns, _ = columns_and_target(content)
    if any(facts == {"kind": "learn"} or (isinstance(facts, str) and facts != "ignore") for facts in columns.values()):
        return True
    if columns is not content:
        return False
    names = getattr(table, "columns", getattr(table, "names", None)) if hasattr(table, "shape") else None  # not of a lazy frame
    return names is None or not set(names) <= set(columns)


def _content(described: Any) -> Any:
    """Return what a file holds, anything else unchanged; raise ValueError for a word that is neither "learn" nor a file."""
    if isinstance(described, str) and described == "learn":
        return described
    if isinstance(described, str) and described.isidentifier() and not Path(described).is_file():
        raise ValueError(
            f'schema={described!r}; expected "learn", the path of a JSON file, a dict from column name to facts or to one of '
            f"{list(SHORT)}, a Schema, or None."
        )
    return read_json(Path(described)) if isinstance(described, (str, os.PathLike)) else described


def _kinds(described: Any, names: list[str]) -> dict[str, Any]:
    """Return a word or the facts of each column; raise TypeError or ValueError for what is neither."""
    if described is None or (isinstance(described, str) and described == "learn"):
        return dict.fromkeys(names, "learn")
    if not isinstance(described, Mapping):
        raise TypeError(f"schema={shown(described)}; expected a dict from column name to facts or to one of {list(SHORT)}.")
    if unknown := [name for name in described if name not in names]:
        raise ValueError(f"schema names the columns {unknown}, which X does not have; expected columns of X: {shown(names)}.")
    kinds = {name: described.get(name, "learn") for name in names}
    for name, facts in kinds.items():
        if isinstance(facts, Mapping):
            if facts.get("kind") == "ignore":
                kinds[name] = "ignore"
            elif facts == {"kind": "learn"}:
                kinds[name] = "learn"
            else:
                Schema.read({"columns": {name: facts}}, [name])
        elif not isinstance(facts, str) or facts not in SHORT:
            raise ValueError(f"schema, column {name!r}: {shown(facts)}; expected {EXAMPLES}, or one of {list(SHORT)}.")
    return kinds

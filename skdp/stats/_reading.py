"""Read a column, a frame or a table in partitions for statistics, by public rules and before anything is charged."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skdp._data_validation import Partitions, read_weights
from skdp._persons import taken_persons, without_number
from skdp._table_types import as_table, check_holds_records, is_dask, is_lazy
from skdp._validation import check_number, shown
from skdp.preprocessing._cells import is_integer, is_number, is_truth
from skdp.preprocessing._frame_facts import FrameFacts, check_names, is_text
from skdp.privacy.data.private_data import PrivateData
from skdp.privacy.errors import TableWarning, silent, warn

NAME = "x"  # of a column that has none
Names = frozenset[str]


@dataclass(frozen=True)
class Columns:
    """Stand for a data frame of columns in memory, such as arrays.

    Parameters
    ----------
    columns : dict
        The columns by name.
    """

    columns: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of records and of columns."""
        return len(next(iter(self.columns.values()))), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, names: Any) -> Any:
        return Columns({name: self.columns[name] for name in names}) if isinstance(names, list) else self.columns[names]


@dataclass(frozen=True)
class Reading:
    """Hold the cells for the oracle, and what is public about them.

    Parameters
    ----------
    facts : FrameFacts
        Names, types and the public number of records, or of persons.
    rows : PrivateData
        The cells, in the order of ``facts.are_text``; a column of which each cell is a number or text takes two.
    unit : {"record", "person"}
        What is protected.
    complete : frozenset of str
        Columns in which no cell can be missing, by their types; none of a table in partitions.
    integers : frozenset of str
        Columns whose cells are integers or missing, by types that hold for all partitions.
    truths : frozenset of str
        Columns whose cells are true, false or missing, by their types.
    max_sample_weight : float or None
        Public bound of the weights, over which they are; None if all records count as 1.
    partitions : Partitions or None
        Where the cells are; None in memory.
    """

    facts: FrameFacts
    rows: PrivateData
    unit: str
    complete: frozenset[str]
    integers: frozenset[str]
    truths: frozenset[str]
    max_sample_weight: float | None = None
    partitions: Partitions | None = None

    @property
    def n_samples(self) -> int:
        """Public number of records, or of persons."""
        return self.facts.n_samples

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are read."""
        return tuple(self.facts.are_text)

    @property
    def weighted(self) -> bool:
        """Whether a record may count as less than 1, so that no total is public but that of persons."""
        return self.max_sample_weight is not None

    @property
    def of_weights(self) -> bool:
        """Whether rows have weights, so that counts are no integers but in grains."""
        return self.weighted or self.unit == "person"

    def bounds_of(self, name: str, given: tuple[float, float] | None) -> tuple[float, float] | None:
        """Return the bounds of a column that are given or follow from its type; None for those to learn."""
        return (0.0, 1.0) if given is None and name in self.truths else given


@contextmanager
def reading(
    x: Any,
    columns: tuple[str, ...] | None = None,
    *,
    kind: str | None = "number",
    described: Any = None,
    persons: Any = None,
    sample_weight: Any = None,
    max_sample_weight: float | None = None,
) -> Iterator[Reading]:
    """Read cells, and hold them until the context is left.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        A column, or a table of which ``columns`` are read.
    columns : tuple of str or None, default=None
        Columns to read; None for all, of which an array has one.
    kind : {"number", "any"} or None, default="number"
        How the columns are read: as numbers; or as numbers or texts, by their types; None for as ``described``, too.
    described : dict or None, default=None
        A schema as `FrameFacts` takes it, if ``kind`` is None; with ``columns``, of each of them.
    persons : array-like, str or None, default=None
        Whose each row is.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weight of each record.
    max_sample_weight : float or None, default=None
        Their public bound.

    Yields
    ------
    Reading
        The cells.

    Raises
    ------
    TypeError, ValueError
        For what cannot be read. Messages quote no data.
    """
    x, columns = _as_frame(x, columns)
    x, group = taken_persons("record" if persons is None else "person", None, x, None, persons)
    unit = "record" if group is None else "person"
    _check_weights(sample_weight, max_sample_weight, x, unit)
    with without_number(len(group.numbers) if hasattr(group, "numbers") else None):
        facts, complete, integers, truths = _facts(x, columns, kind, described)
        if is_lazy(x):
            from skdp.data._cells import CellReader, loaded_cells

            with loaded_cells(x, None, CellReader(facts), False, persons=group) as cells:
                facts = replace(facts, n_samples=cells.rows.n_samples)
                yield Reading(facts, cells.rows, unit, complete, integers, truths, partitions=cells.partitions)
            return
        presence = None
        if sample_weight is not None:
            presence = read_weights("sample_weight", sample_weight, float(max_sample_weight or 1), facts.n_samples)
        if group is not None:
            facts = replace(facts, n_samples=group.n_persons)
        rows = facts.rows(x, None, group, presence)
    del x, group, presence
    yield Reading(facts, rows, unit, complete, integers, truths, max_sample_weight)


def _as_frame(x: Any, columns: tuple[str, ...] | None) -> tuple[Any, tuple[str, ...] | None]:
    """Return a table with named columns, and the columns to read."""
    check_holds_records(x, "x")
    if hasattr(x, "to_frame") and hasattr(x, "to_series"):  # an Index of pandas
        x = x.to_series()
    if hasattr(x, "to_frame"):  # a Series of pandas, polars or Dask
        name = x.name if isinstance(x.name, str) and x.name else NAME
        x, columns = x.to_frame(name) if hasattr(x, "index") or is_dask(x) else x.alias(name).to_frame(), (name,)
    elif isinstance(x, Columns):
        columns = tuple(x.columns)
    elif not hasattr(x, "columns") and not is_lazy(x) and not hasattr(x, "__dataframe__"):
        values = _values(x)
        if columns is not None:
            raise ValueError(f"column={shown(columns[0])} of an array, which has no names; expected None, or a data frame.")
        if getattr(values, "ndim", 0) not in (1, 2) or not values.size or not hasattr(values, "dtype"):
            raise ValueError("x is no vector and no table; expected one number per record, or a row of numbers.")
        several = values.ndim == 2
        x = Columns({f"{NAME}{place}": column for place, column in enumerate(values.T)} if several else {NAME: values})
        columns = tuple(x.columns)
    return (x if isinstance(x, Columns) else as_table(x)), columns


def vector(x: Any) -> Any:
    """Return a column as a vector of NumPy, or as it is if it has a type of its own; raise ValueError for what is none."""
    if hasattr(x, "to_frame"):
        return x
    values = _values(x)
    if getattr(values, "ndim", 0) != 1 or not hasattr(values, "dtype"):
        raise ValueError("x or y is no vector; expected one number per record.")
    return values


def _values(x: Any) -> Any:
    """Return an array, in which masked cells are missing; messages quote no data."""
    if sparse.issparse(x):
        raise TypeError("x is sparse; expected an array, such as x.toarray(), or a data frame.")
    if isinstance(x, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(x), np.nan if x.dtype.kind in "biuf" else None, x.data)  # type: ignore[arg-type]
    if hasattr(x, "shape"):
        return as_table(x)
    try:
        with silent():
            return np.asarray(x)
    except MemoryError:
        raise
    except Exception:  # its message may quote a cell
        pass
    raise ValueError("x has something that cannot be read; expected one number per record, or a row of numbers.")


def _facts(x: Any, columns: tuple[str, ...] | None, kind: str | None, described: Any) -> tuple[FrameFacts, Names, Names, Names]:
    """Return what is public, and by their types the columns in which no cell can be missing, of integers, and of truths."""
    from skdp.data._cells import typed_columns  # which imports the readers of frames

    frame = typed_columns(x) if is_lazy(x) else x
    check_names(names := list(getattr(frame, "columns", ())))
    for name in columns or ():
        if name not in names:
            raise ValueError(f"column={shown(name)} is no column of x; expected one of {shown(names)}.")
    if kind is not None:
        described = dict.fromkeys(names, "ignore")
        for name in names if columns is None else columns:
            numbers = is_number(dtype := frame[name].dtype)
            if kind == "number" and not numbers:
                given = "text" if getattr(dtype, "kind", None) in ("U", "S") else dtype  # whose name would show a length
                raise TypeError(
                    f"The column {name!r} has the type {given}, which is not of numbers; expected numbers, such as from "
                    "x.astype(float), or column with names of columns of numbers. describe, crosstab and count take categories."
                )
            described[name] = "number" if numbers else "category"
    elif columns is not None:
        described = {name: described[name] if name in columns else "ignore" for name in frame.columns}
    facts = FrameFacts.of(frame, described) if kind else FrameFacts.of(frame, described, target=True).with_described()
    types = {name: frame[name].dtype for name in facts.are_text}
    if texts := {name: str(dtype) for name, dtype in types.items() if facts.are_text[name] is False and is_text(dtype)}:
        warn(
            f"The columns {texts} are described as numbers, and have types of text: cells that are no numbers count as missing. "
            'Use "category" for texts, or a type of numbers, such as from pandas.to_numeric(frame[name]).',
            TableWarning,
        )
    integers, truths = (frozenset(name for name, dtype in types.items() if rule(dtype)) for rule in (is_integer, is_truth))
    if is_lazy(x):  # the types may be those of the first partition, and other ones may have missing cells, or fractions
        stated = not getattr(x, "steps", ()) and getattr(getattr(x, "source", None), "types", None)
        return facts, frozenset(), integers if stated else frozenset(), truths
    complete = {name for name, dtype in types.items() if isinstance(dtype, np.dtype) and dtype.kind in "biu"}
    return facts, frozenset(complete), integers, truths


def _check_weights(weights: Any, largest: Any, x: Any, unit: str) -> None:
    if weights is None and largest is None:
        return
    if weights is None or largest is None:
        raise ValueError("sample_weight and max_sample_weight belong together; expected both, or neither.")
    check_number("max_sample_weight", largest, above=0)
    if unit == "person":
        raise ValueError("sample_weight with persons, whose rows have the weights of their persons; expected one of the two.")
    if is_lazy(x):
        raise ValueError("sample_weight with a table in partitions, which does not have it; expected a table in memory.")

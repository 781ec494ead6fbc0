"""Read what is public about a data frame whose columns are to be learnt, and put what was learnt beside what was given."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from skdp._data_validation import quoting_no_data
from skdp._validation import shown
from skdp.preprocessing._cells import bucket_cells, either_cells, is_number, number_cells
from skdp.preprocessing._learning import Learnt
from skdp.preprocessing._schema import Schema
from skdp.privacy.data.column_cells import ColumnCells

__all__ = ["TYPES", "FrameFacts", "finite_targets"]

SHORT = ("category", "number", "either", "ignore", "learn")  # what may stand for a column's facts
# By whether a column is text; None if each cell is a number or text.
READERS = {False: number_cells, True: bucket_cells, None: either_cells}
READ_AS = {False: "number", True: "text", None: "number or text, cell by cell"}
OF_WORDS = {"number": False, "category": True, "either": None}
TYPES = (
    "the types of the columns are public, and decide which are read as numbers and which as text; one cell that is no number can "
    "make a whole column text"
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
        For each column that is learnt, whether it is text, by name; None if each cell is a number or text.
    """

    n_samples: int
    names: tuple[str, ...]
    given: dict[str, Any]
    are_text: dict[str, bool | None]

    @classmethod
    def of(cls, X: Any, described: Any) -> "FrameFacts":
        """Read names, types and the number of records; raise TypeError or ValueError for what is no data frame."""
        shape: Any = getattr(X, "shape", None) or (None,)
        names = list(getattr(X, "columns", ())) if isinstance(shape[0], Integral) else []
        if not names:
            raise TypeError(f"X is a {type(X).__name__}; expected a data frame in memory, of pandas or polars.")
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError("X has column names that are no strings, or the same name twice; expected different strings.")
        if shape[0] < 2:
            raise ValueError(f"X has {shape[0]} records; expected at least 2.")
        kinds = _kinds(described, names)
        learnt = {
            name: OF_WORDS[kind] if kind in OF_WORDS else not is_number(X[name].dtype)
            for name, kind in kinds.items()
            if isinstance(kind, str) and kind != "ignore"
        }
        given = {name: facts for name, facts in kinds.items() if isinstance(facts, Mapping)}
        if not learnt:
            raise ValueError("schema describes every column, so that there is nothing to learn; from_schema needs no budget.")
        return cls(int(shape[0]), tuple(names), given, learnt)

    def cells(self, X: Any) -> np.ndarray:
        """Return the cells of the columns that are learnt, each read by itself with public rules."""
        columns = [READERS[text](X[name]) for name, text in self.are_text.items()]
        return np.column_stack(columns)

    def rows(self, X: Any, targets: np.ndarray | None) -> ColumnCells:
        """Return the records as the oracle gets them; errors quote no data."""
        return ColumnCells(quoting_no_data(X, lambda: self.cells(X)), targets)

    @property
    def read_as(self) -> dict[str, str]:
        """How each learnt column is read, by name."""
        return {name: READ_AS[text] for name, text in self.are_text.items()}

    def schema(self, learnt: Learnt) -> Schema:
        """Return the facts of all columns, in their order, and the range of the target if it was learnt."""
        given = Schema.read({"columns": self.given}).columns if self.given else {}
        found = learnt.entries()
        columns = {name: {**given, **found}[name] for name in self.names if name in given or name in found}
        return Schema(columns, None, None, None if learnt.target is None else learnt.target.number().bounds)


def _kinds(described: Any, names: list[str]) -> dict[str, Any]:
    """Return a word or the facts of each column; raise TypeError or ValueError for what is neither."""
    if described is None:
        return dict.fromkeys(names, "learn")
    if not isinstance(described, Mapping):
        raise TypeError(f"schema={shown(described)}; expected a dict from column name to facts or to one of {list(SHORT)}.")
    if unknown := [name for name in described if name not in names]:
        raise ValueError(f"schema names the columns {unknown}, which X does not have; expected columns of X.")
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
            raise ValueError(f"schema, column {name!r}: {shown(facts)}; expected a dict of facts or one of {list(SHORT)}.")
    return kinds


def finite_targets(y: Any, n_samples: int) -> np.ndarray:
    """Return numbers to predict as float64; raise TypeError or ValueError, which quote no data, for anything else."""
    if y is None:
        raise ValueError("y=None with learn_target=True; expected the numbers to predict.")
    column = quoting_no_data(y, lambda: column_or_1d(y))
    if column.dtype.kind in "mM":
        raise TypeError("y has dates or durations, whose unit may depend on a single record; expected numbers.")
    targets = quoting_no_data(y, lambda: check_array(column, ensure_2d=False, dtype=np.float64, input_name="y"))
    if targets.size != n_samples:
        raise ValueError(f"y has {targets.size} targets and X has {n_samples} records; expected as many.")
    return targets

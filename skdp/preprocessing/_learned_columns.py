"""Map cells by the facts of a learned schema: numbers around a centre, and spellings by hash bucket."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._data_validation import keep_names, quoting_no_data
from skdp._validation import column_labels
from skdp.preprocessing._base import CellTransformer
from skdp.preprocessing._cells import columns_of


class ColumnMap(CellTransformer):
    """Map each cell of a frame to a block of columns, by the public facts of its column.

    Parameters
    ----------
    facts : list of Column
        The facts of each column.
    separator : str, default="_"
        What is between the name of a column and that of an indicator.
    """

    def __init__(self, facts: list[Any], separator: str = "_") -> None:
        self.facts = facts
        self.separator = separator

    def fit(self, X: Any, y: Any = None) -> Any:
        """Store the number and the names of the columns; no cell is read."""
        quoting_no_data(X, lambda: self._named(X, reset=True))
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the prepared columns."""
        check_is_fitted(self, "n_features_in_")
        given = getattr(self, "feature_names_in_", input_features)
        names = column_labels(None if given is None else np.asarray(given), self.n_features_in_)
        pairs = zip(names, self.facts, strict=True)
        found = [f"{name}{self.separator}{part}" if part else name for name, facts in pairs for part in facts.parts]
        return np.array(found, dtype=object)

    def _cells(self, X: Any, reset: bool) -> np.ndarray:
        self._named(X, reset)
        return np.column_stack([facts.cells(column) for facts, column in zip(self.facts, columns_of(X), strict=True)])

    def _named(self, X: Any, reset: bool) -> None:
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            keep_names(self, X)
        if len(self.facts) != self.n_features_in_:
            raise ValueError(f"facts has {len(self.facts)} entries; expected one for each of {self.n_features_in_} columns.")

    def _check(self, X: np.ndarray) -> None:
        """Accept all cells."""

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):  # a warning would reveal a cell
            return np.hstack([facts.map(X[:, place]) for place, facts in enumerate(self.facts)])

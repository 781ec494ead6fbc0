"""Read the columns of the training table of an additive model, as a whole or part by part."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skdp._data_validation import Part, keep_names, read_numbers, refuse_dates, text_columns
from skdp._extra_facts import ExtraFacts
from skdp._validation import column_labels
from skdp.data import Table
from skdp.estimators.additive._inferred import ALIKE, fitted_first, independent
from skdp.estimators.additive._knot_placement import finest
from skdp.estimators.additive._support import Support
from skdp.preprocessing import AdditiveBasis, Schema, SchemaColumns
from skdp.preprocessing._parts import Shares
from skdp.privacy.data.partition import in_storage


@dataclass(frozen=True, kw_only=True)
class Additive(ExtraFacts):
    """Hold the public facts of a fit of an additive model, whose rows are functions of the rows of the table.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis functions: with even knots in `Facts` and `Problem`, and with the released knots, if any, in `SolverResult`.
    inference : bool, default=False
        Whether only the functions that are linearly independent are fitted.
    in_bins : dict, default={}
        In `SolverResult`, shares of the bins of each column, if they were released.
    """

    basis: AdditiveBasis
    inference: bool = False
    in_bins: Mapping[str, Shares] = field(default_factory=dict)

    @property
    def behind(self) -> AdditiveBasis:
        """The functions behind the oracle at first: with fine knots, if a release places others among them."""
        return self.basis if self.front is None else finest(self.basis, self.inference)

    @property
    def n_functions(self) -> int:
        """Number of functions that are fitted."""
        return independent(self.basis).size if self.inference else self.basis.n_features

    @property
    def data_norm(self) -> float:
        """Bound on the norm of a row. Fits for inference have hats, and indicators over their largest length, alone."""
        if not self.inference:
            return self.basis.data_norm
        hats = bool(self.basis.numbers and self.basis.n_intervals)
        return math.hypot(hats, bool(self.basis.categories) or not hats)

    @property
    def correlation_factor(self) -> float:
        """Factor of the noise that hides coefficients."""
        return ALIKE if self.inference else 1.0

    def rows(self, basis: AdditiveBasis, columns: Any) -> sparse.csr_array:
        """Return the functions of some records that are fitted, on the knots of a basis."""
        rows = basis.transform(columns)
        if not self.inference:
            return rows
        return rows[:, independent(basis) if self.front is None else fitted_first(basis)]

    def supported(self, found: Mapping[str, Support]) -> "Additive":
        """Return what a fit holds beside the coefficients, without effects of which the releases tell next to nothing."""
        return self

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return len(self.basis.facts.columns)


@dataclass(frozen=True)
class FunctionReader:
    """Read parts of a training table: map their columns by the basis functions, which depend on the number of all records.

    Parameters
    ----------
    n_samples : int
        Number of records of the table.
    additive : Additive
        Public facts of the fit.
    basis : AdditiveBasis
        The functions behind the oracle.
    schema : Schema or None
        The columns; None for an array or a frame of numbers alone.
    read : callable
        Checks the mapped rows and the targets.
    """

    n_samples: int
    additive: Additive
    basis: AdditiveBasis
    schema: Schema | None
    read: Callable[[Any, Any], Part]

    def __call__(self, X: Any, y: Any) -> Part:
        """Check some records and map them; errors quote no data."""
        scratch = BaseEstimator()
        X = in_storage(X, dense=True)  # also of one partition: its records may decide about it
        columns, names = training_columns(scratch, X, self.schema)
        if names != list(self.basis.facts.columns):
            raise ValueError("The partitions have different columns; expected the same, in the same order, in all of them.")
        part = self.read(self.additive.rows(self.basis, columns), y)
        known = getattr(scratch, "feature_names_in_", None)
        return part._replace(facts=replace(part.facts, n_features=len(names), feature_names=known, extra=self.additive))


def number_of_records(table: Table) -> int:
    """Return the number of records of a table, which is counted in a pass over the source unless that tells it."""
    if table.n_samples is not None:
        return table.n_samples
    if hasattr(table.source, "count"):
        return int(table.source.count())
    return sum(X.shape[0] if hasattr(X, "shape") else len(X) for X, *_ in table.source.batches())


def labels_of_columns(table: Table) -> list[str]:
    """Return the names of the columns of a table of numbers, x0, x1, ... if they have none; of its first records if need be."""
    n_columns, names = table.shape[1], table.names
    if table.steps or n_columns is None or table.n_samples is None:
        X, _ = next(table.batches(), (np.empty((0, 0)), None))
        given = list(getattr(X, "columns", ()))
        names, n_columns = (
            (given, len(given)) if all(isinstance(name, str) for name in given) and given else (None, np.shape(X)[1])
        )
    return column_labels(names, n_columns)


def training_columns(scratch: Any, X: Any, schema: Schema | None) -> tuple[Any, list[str]]:
    """Return the columns of a training table and their names.

    Parameters
    ----------
    scratch : estimator
        Gets ``n_features_in_``, and ``feature_names_in_`` for a frame.
    X : array-like
        As given to ``fit``.
    schema : Schema or None
        The columns; None for numbers alone.

    Returns
    -------
    columns : DataFrame or ndarray
        What `AdditiveBasis.transform` takes.
    names : list of str
        Of the columns, x0, x1, ... for those of an array.
    """
    if schema is not None:
        frame = columns_of(schema, X)
        validate_data(scratch, frame, skip_check_array=True)
        keep_names(scratch, frame)
        return frame, list(scratch.feature_names_in_)
    refuse_dates(X)
    if text := text_columns(X):
        raise ValueError(
            f"{text.strip()} schema='learn' learns them. Or name the categories that are public: schema={{'columns': {{'job': "
            "{'kind': 'category', 'categories': [...]}, 'age': {'kind': 'number', 'bounds': [0, 120]}}}."
        )
    numbers = read_numbers(scratch, X)
    return numbers, column_labels(getattr(scratch, "feature_names_in_", None), numbers.shape[1])


def columns_of(facts: Schema, X: Any) -> Any:
    """Return the columns of a data frame that a schema names, in its order."""
    return SchemaColumns.of(facts).transform(X)[list(facts.columns)]

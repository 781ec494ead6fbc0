"""Public functions of single columns, and of pairs that somebody names: what an additive model is a sum of."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from skdp._data_validation import quoting_no_data
from skdp.preprocessing._categories import KnownCategories
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._scaling import BoundedScaler
from skdp.preprocessing._schema import OTHER, Category, Number, Schema, encoded

__all__ = ["AdditiveBasis", "Term", "knots"]

DYADIC = 4  # knots under the first of the even ones, each half as far from the lower bound
PER_HAT = 16  # points of a grid between two knots
USUAL, SPREAD = (
    1 / 3,
    math.sqrt(4 / 45),
)  # mean and standard deviation of the square of a number that is spread evenly over [-1, 1]


@dataclass(frozen=True)
class Term:
    """A part of the model: a function of one column, or of two.

    Parameters
    ----------
    names : tuple of str
        One column, or two.
    columns : slice
        Of the basis: for a number its scaled value, then its hats; for a category its indicators; for two columns products.
    """

    names: tuple[str, ...]
    columns: slice


def knots(n_intervals: int, dyadic: bool = True) -> np.ndarray:
    """Return where the hats of a number in [0, 1] peak: evenly, and ever closer to 0, where counts and amounts crowd.

    Parameters
    ----------
    n_intervals : int
        m, number of even intervals, at least 1.
    dyadic : bool, default=True
        Whether there are four more under the first of them.

    Returns
    -------
    ndarray of shape (m + 5,), or (m + 1,) without the four
        Increasing from 0 to 1.
    """
    under = 0.5 ** np.arange(DYADIC if dyadic else 0, 0, -1) / n_intervals
    return np.concatenate([[0.0], under, np.arange(1, n_intervals + 1) / n_intervals])


@dataclass(frozen=True)
class AdditiveBasis:
    r"""The map from a row of a table to the functions of which an additive model is a linear combination.

    A number gives its scaled value, which is 0 at zero, or at the bound that is nearest to it, and reaches 1 or -1; and hats:
    piecewise linear functions on `knots` that are not negative and add up to 1. A category gives one indicator per
    public category, and one for all other values. Two columns that are named together give the products of their hats or
    indicators. Nothing is learnt from the records but, where a release tells, the knots in ``placed``.

    Parameters
    ----------
    facts : Schema
        Public bounds and categories.
    n_intervals : int
        Even intervals between knots; 0 for no hats.
    interactions : sequence of (str, str), default=()
        Pairs of columns.
    dyadic : bool, default=True
        Whether there are knots under the first even one.
    length : float or None, default=None
        What scaled values and indicators are divided by. None takes a norm that one row in 40 exceeds where all numbers are
        spread evenly over [-1, 1]: the root of :math:`c + p/3 + 2\sqrt{4p/45}` for c categories and p numbers, and of c + p at
        most.
    placed : mapping of str to tuple of float, default={}
        Knots of single columns of numbers, from 0 to 1, in place of the even ones; public, or released.

    Notes
    -----
    **The norm of a row.** Scaled values and indicators, divided by ``length``, have a norm of at most 1 unless the row is
    longer than ``length``. Hats of a number have squares that add up to at most :math:`(\sum h)^2 = 1`, and are divided by the
    root of the number p of such columns. The products of two such families have
    :math:`\sum_{ab} h_a^2 g_b^2 = \sum_a h_a^2 \sum_b g_b^2 \le 1`, and are divided by the root of the number of pairs. So
    each of up to three blocks has a norm of at most 1, and a row one of at most `data_norm`, the root of their number. With p
    numbers and c categories no row whatsoever is longer than `row_norm`, which is the same for ``length = sqrt(p + c)``.
    """

    facts: Schema
    n_intervals: int
    interactions: Sequence[tuple[str, str]] = ()
    dyadic: bool = True
    length: float | None = None
    placed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for name, column in self.facts.columns.items() if isinstance(column, Number)]

    @property
    def categories(self) -> list[str]:
        """Names of the other columns."""
        return [name for name, column in self.facts.columns.items() if isinstance(column, Category)]

    @property
    def data_norm(self) -> float:
        """Norm of a row of the basis, unless its scaled values and indicators are longer than ``length``."""
        return math.sqrt(1 + self._further_blocks)

    @property
    def row_norm(self) -> float:
        """Bound on the norm of every row of the basis."""
        return math.sqrt(max(len(self.facts.columns) / self._length**2, 1.0) + self._further_blocks)

    @property
    def n_features(self) -> int:
        """Number of functions."""
        return self.terms[-1].columns.stop

    @property
    def n_stored(self) -> int:
        """Number of functions that are not 0 at one record, at most."""
        hats = {name: 2 for name in self.numbers}
        alone = len(self.facts.columns) + (sum(hats.values()) if self.n_intervals else 0)
        return alone + sum(math.prod(hats.get(name, 1) for name in pair) for pair in self.interactions)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Parts of the model, in the order of the schema; pairs come last."""
        found, start = [], 0
        for names in (*((name,) for name in self.facts.columns), *map(tuple, self.interactions)):
            size = math.prod(self.n_functions(name) for name in names)
            if len(names) == 1 and names[0] in self.numbers:
                size = 1 + (size if self.n_intervals else 0)
            found.append(Term(names, slice(start, start + size)))
            start += size
        return tuple(found)

    @cached_property
    def knots(self) -> np.ndarray:
        """Where hats peak, for bounds at 0 and 1, but for columns that have knots of their own."""
        return knots(max(self.n_intervals, 1), self.dyadic)

    def knots_of(self, name: str) -> np.ndarray:
        """Return where the hats of a number peak.

        Parameters
        ----------
        name : str
            A column of numbers.

        Returns
        -------
        ndarray of shape (n_hats,)
            Increasing from 0 to 1, for bounds at 0 and 1.
        """
        return np.array(self.placed[name]) if name in self.placed else self.knots

    def n_functions(self, name: str) -> int:
        """Return the number of indicators of a column, or of its hats.

        Parameters
        ----------
        name : str
            A column of the schema.

        Returns
        -------
        int
            "other" among the indicators.
        """
        column = self.facts.columns[name]
        return len(encoded(column.categories)) if isinstance(column, Category) else self.knots_of(name).size

    def transform(self, X: Any) -> sparse.csr_array:
        """Return the functions of each record.

        Parameters
        ----------
        X : DataFrame, or ndarray of shape (n_samples, n_columns)
            With the columns of the schema; others of a frame are not looked at, an array has exactly them, all numbers.

        Returns
        -------
        CSR of shape (n_samples, n_features)
            A row of float64 per record.

        Raises
        ------
        TypeError, ValueError
            If a column is missing, or something in it is no finite number where one is expected; nothing is quoted.
        """
        with np.errstate(all="ignore"):  # whatever a program makes of it, an error would tell of a value
            parts = list(self._parts(self._columns(X), self.terms))
        table = sparse.csr_array(sparse.hstack(parts, format="csr"))
        table.sort_indices()
        return table

    def of_term(self, term: Term, values: dict[str, np.ndarray]) -> sparse.csr_array:
        """Return the functions of one term, at given values of its columns.

        Parameters
        ----------
        term : Term
            One of `terms`.
        values : dict of ndarray of shape (n,)
            Of the term's columns, in their units.

        Returns
        -------
        CSR of shape (n, width of the term)
            Rows as `transform` has them.
        """
        (part,) = self._parts({name: np.asarray(values[name])[:, None] for name in term.names}, [term])
        return part

    def grid(self, name: str, fine: bool = True) -> np.ndarray:
        """Return public values of a column at which to look at a term, in its units: all categories, or between bounds.

        Parameters
        ----------
        name : str
            A column of the schema.
        fine : bool, default=True
            Whether there are points between the knots of a number.

        Returns
        -------
        ndarray of shape (n_points,)
            Categories, "other" among them; or increasing numbers, all knots among them.
        """
        column = self.facts.columns[name]
        if isinstance(column, Category):
            return np.array(encoded(column.categories), dtype=object)
        steps = np.arange(PER_HAT) / PER_HAT if fine else np.zeros(1)
        peaks = self.knots_of(name)
        places = np.append((peaks[:-1, None] + np.diff(peaks)[:, None] * steps).ravel(), 1.0)
        low, high = column.bounds
        if column.scale == "linear":
            return low + (high - low) * places
        low, high = (math.copysign(math.log1p(abs(end)), end) for end in column.bounds)
        logarithms = low + (high - low) * places
        return np.clip(np.copysign(np.expm1(np.abs(logarithms)), logarithms), *column.bounds)

    @property
    def _further_blocks(self) -> int:
        return bool(self.numbers and self.n_intervals) + bool(self.interactions)

    @property
    def length_in_force(self) -> float:
        """What scaled values and indicators are divided by: ``length``, or its default."""
        return self._length

    @property
    def _length(self) -> float:
        if self.length is not None:
            return self.length
        p = len(self.numbers)
        return math.sqrt(min(USUAL * p + 2 * SPREAD * math.sqrt(p), p) + len(self.categories))

    def _columns(self, X: Any) -> dict[str, Any]:
        """A table of one column by name."""
        if not hasattr(X, "columns"):
            return {name: X[:, [place]] for place, name in enumerate(self.facts.columns)}
        frame = SchemaColumns.of(self.facts).transform(X)
        return {name: frame[[name]] for name in self.facts.columns}

    def _parts(self, columns: dict[str, Any], terms: Sequence[Term]) -> Iterator[sparse.csr_array]:
        """Functions of each term, from tables of one column."""
        paired = {name for term in terms if len(term.names) == 2 for name in term.names}
        families = {  # not negative, and no sum of squares above 1
            name: self._indicators(name, column) if name in self.categories else self._hats(name, column)
            for name, column in columns.items()
            if self.n_intervals or name in paired or name in self.categories
        }
        for term in terms:
            if len(term.names) == 2:
                one, other = (families[name] for name in term.names)
                yield products_by_row(one, other) / math.sqrt(len(self.interactions))
                continue
            (name,) = term.names
            if name in self.categories:
                yield families[name] / self._length
                continue
            value = sparse.csr_array(self._value(name, columns[name]) / self._length)
            hats = [families[name] / math.sqrt(len(self.numbers))] if self.n_intervals else []
            yield sparse.csr_array(sparse.hstack([value, *hats], format="csr"))

    def _value(self, name: str, column: Any) -> np.ndarray:
        """A number, scaled: from 0 at zero, or at the bound that is nearest to it, to 1 or -1."""
        (zero,) = self._scaled(name, np.zeros((1, 1)))[:, 0]
        return (self._scaled(name, column) - zero) / (1 + abs(zero))

    def _scaled(self, name: str, column: Any) -> np.ndarray:
        """A number in [-1, 1]."""
        facts = self.facts.columns[name]
        assert isinstance(facts, Number)
        scaler = BoundedScaler([facts.bounds], scale=facts.scale, fill=facts.fill)
        return np.asarray(scaler.fit_transform(quoting_no_data(column, lambda: cells(column))))

    def _hats(self, name: str, column: Any) -> sparse.csr_array:
        places = 2 * self.knots_of(name)[:, None] - 1
        hats = SplineTransformer(degree=1, knots=places, extrapolation="constant", sparse_output=True)
        return sparse.csr_array(hats.fit(places).transform(self._scaled(name, column)))

    def _indicators(self, name: str, column: Any) -> sparse.csr_array:
        facts = self.facts.columns[name]
        assert isinstance(facts, Category)
        known = KnownCategories([list(facts.categories)], other=OTHER).fit_transform(column)
        encoder = OneHotEncoder(categories=[encoded(facts.categories)])
        return sparse.csr_array(encoder.fit_transform(np.asarray(known, dtype=object)))


def cells(column: Any) -> np.ndarray:
    """Return the cells of a table of one column of numbers, NaN for whatever stands for a missing one."""
    if not hasattr(column, "to_numpy"):
        return np.asarray(column)
    found = column.to_numpy()
    return column.to_numpy(dtype=object, na_value=np.nan) if found.dtype == object and hasattr(column, "iloc") else found


def products_by_row(one: sparse.csr_array, other: sparse.csr_array) -> sparse.csr_array:
    """Return all products of an entry of one row and one of the other, row by row, those of the first entry first.

    Parameters
    ----------
    one : CSR of shape (n, a)
        Few entries per row.
    other : CSR of shape (n, b)
        The same.

    Returns
    -------
    CSR of shape (n, a * b)
        The products.
    """
    spread = one[:, np.repeat(np.arange(one.shape[1]), other.shape[1])]
    tiled = other[:, np.tile(np.arange(other.shape[1]), one.shape[1])]
    return sparse.csr_array(spread.multiply(tiled))

"""Compute the basis of additive models: public functions of single columns and of named pairs of columns."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import SplineTransformer

from skdp.preprocessing._cells import number_cells
from skdp.preprocessing._column_kinds import single
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._schema import Schema
from skdp.privacy.data.packed_rows import MOST_KNOTS, STEPS, PackedCategory, PackedNumber, PackedRows, code_of

# Bytes of an entry of CSR, and of a table in CSR from which on cells are packed: a smaller one is small beside Python. A choice.
ENTRY_BYTES, LARGE_BYTES = 12, 2**25
NEAR = 1e-9  # places that are taken to be the same
MOST_CODES = 2**16  # categories that two bytes can tell apart
DYADIC = 4  # additional knots below the first even knot, each at half the distance of the next one from the lower bound
PER_HAT = 16  # points between two knots in the grid on which functions are drawn
USUAL, SPREAD = (
    1 / 3,
    math.sqrt(4 / 45),
)  # mean and standard deviation of the square of a number that is uniform on [-1, 1]; they set the default of `length`


@dataclass(frozen=True)
class Term:
    """Describe one term of the model: a function of one column, or of two.

    Parameters
    ----------
    names : tuple of str
        One column, or two.
    columns : slice
        Columns of the basis: the scaled value and then the hats of a number, the indicators of a category, or the products of a
        pair.
    """

    names: tuple[str, ...]
    columns: slice


def knots(n_intervals: int, dyadic: bool = True) -> np.ndarray:
    """Return the knots of a number in [0, 1]: even ones, and ever closer ones near 0, where counts and amounts concentrate.

    Parameters
    ----------
    n_intervals : int
        Number m of even intervals, at least 1.
    dyadic : bool, default=True
        Whether to add four knots inside the first interval.

    Returns
    -------
    ndarray of shape (m + 5,), or (m + 1,) without the four
        Increasing from 0 to 1.
    """
    under = 0.5 ** np.arange(DYADIC if dyadic else 0, 0, -1) / n_intervals
    return np.concatenate([[0.0], under, np.arange(1, n_intervals + 1) / n_intervals])


@dataclass(frozen=True, eq=False)
class TermValues:
    """Hold what the functions of one term are made of, without a table of them.

    Parameters
    ----------
    term : Term
        The term.
    indicators : CSR of shape (n_samples, n_indicators) or None
        Indicators of a category, products of a pair, or further indicators of a number, as they stand in a row.
    value : ndarray of shape (n_samples,) or None, default=None
        Scaled value of a number, as it stands in a row.
    place : ndarray of shape (n_samples,) or None, default=None
        Where a number lies between its bounds, from -1 to 1, if it has hats.
    """

    term: Term
    indicators: sparse.csr_array | None
    value: np.ndarray | None = None
    place: np.ndarray | None = None


@dataclass(frozen=True)
class AdditiveBasis:
    r"""Map a row of a table to basis functions; an additive model is a linear combination of them.

    A number contributes its scaled value, which is 0 at zero (or at the bound closest to zero) and reaches 1 or -1, and its hats:
    piecewise linear functions on `knots` that are not negative and add up to 1. A category contributes one indicator per public
    category, and one for all other values. A number of a learned schema has its zero at its centre, and contributes indicators of
    its integers, and of missing cells, too. A pair of columns contributes the products of their hats or indicators. Nothing is
    learned from the records, except for the knots in ``placed`` and learned facts of the columns, if they come from a release.

    Parameters
    ----------
    facts : Schema
        Public bounds and categories.
    n_intervals : int
        Number of even intervals between knots; 0 for no hats.
    interactions : sequence of (str, str), default=()
        Pairs of columns.
    dyadic : bool, default=True
        Whether there are additional knots below the first even one.
    length : float or None, default=None
        Divisor of scaled values and indicators. None uses a norm that one row in 40 exceeds if all numbers are uniform on [-1,
        1]: the root of :math:`c + p/3 + 2\sqrt{4p/45}` for c categories and p numbers, and at most the root of c + p.
    placed : mapping of str to tuple of float, default={}
        Knots of single numeric columns, from 0 to 1, which replace the even ones; public, or released.

    Notes
    -----
    **The norm of a row.** Scaled values and indicators, divided by ``length``, have a norm of at most 1 unless the row is longer
    than ``length``. Hats of a number have squares that add up to at most :math:`(\sum h)^2 = 1`, and are divided by the root of
    the number p of such columns. The products of two such families have :math:`\sum_{ab} h_a^2 g_b^2 = \sum_a h_a^2 \sum_b g_b^2
    \le 1`, and are divided by the root of the number of pairs. So each of the up to three blocks has a norm of at most 1, and a
    row has a norm of at most `data_norm`, the root of the number of blocks. With p numbers and c categories no row at all is
    longer than `row_norm`, which equals `data_norm` for ``length = sqrt(p + c)``. Indicators of integers and of missing cells
    belong to the first block. At most one of each kind is 1 in a record, so that such a number counts up to three times.
    """

    facts: Schema
    n_intervals: int
    interactions: Sequence[tuple[str, str]] = ()
    dyadic: bool = True
    length: float | None = None
    placed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = self.facts.numbers
        if others := [name for name, column in self.facts.columns.items() if name not in numbers and not column.exhaustive]:
            raise ValueError(
                f"The columns {others} are neither numbers nor categories; expected no others in an additive model or in boosted "
                "trees."
            )

    @property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for name, column in self.facts.columns.items() if not column.exhaustive]

    @property
    def categories(self) -> list[str]:
        """Names of the other columns."""
        return [name for name, column in self.facts.columns.items() if column.exhaustive]

    @property
    def data_norm(self) -> float:
        """Bound on the norm of a row of the basis whose scaled values and indicators are not longer than ``length``."""
        return math.sqrt(1 + self._further_blocks)

    @property
    def row_norm(self) -> float:
        """Bound on the norm of every row of the basis."""
        ones = len(self.facts.columns) + sum(self._indicators_of(name)[1] for name in self.numbers)
        return math.sqrt(max(ones / self._length**2, 1.0) + self._further_blocks)

    @property
    def n_features(self) -> int:
        """Number of functions."""
        return self.terms[-1].columns.stop

    @property
    def n_stored(self) -> int:
        """Largest number of functions that are not 0 at one record."""
        hats = {name: 2 for name in self.numbers}
        alone = len(self.facts.columns) + (sum(hats.values()) if self.n_intervals else 0)
        alone += sum(self._indicators_of(name)[1] for name in self.numbers)
        return alone + sum(math.prod(hats.get(name, 1) for name in pair) for pair in self.interactions)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms of the model, in the order of the schema; pairs come last."""
        found, start = [], 0
        for names in (*((name,) for name in self.facts.columns), *map(tuple, self.interactions)):
            size = math.prod(self.n_functions(name) for name in names)
            if len(names) == 1 and names[0] in self.numbers:
                size = 1 + (size if self.n_intervals else 0) + self._indicators_of(names[0])[0]
            found.append(Term(names, slice(start, start + size)))
            start += size
        return tuple(found)

    @cached_property
    def knots(self) -> np.ndarray:
        """Knots in units in which the bounds are 0 and 1, of all columns without knots of their own."""
        return knots(max(self.n_intervals, 1), self.dyadic)

    def knots_of(self, name: str) -> np.ndarray:
        """Return the knots of a number, where its hats peak.

        Parameters
        ----------
        name : str
            A numeric column.

        Returns
        -------
        ndarray of shape (n_hats,)
            Increasing from 0 to 1, in units in which the bounds are 0 and 1.
        """
        return np.array(self.placed[name]) if name in self.placed else self.knots

    def n_functions(self, name: str) -> int:
        """Return the number of indicators or of hats of a column.

        Parameters
        ----------
        name : str
            A column of the schema.

        Returns
        -------
        int
            The count includes the indicator of "other".
        """
        column = self.facts.columns[name]
        return column.n_features if column.exhaustive else self.knots_of(name).size

    def hats_of(self, term: Term) -> slice:
        """Return the columns of the basis with the hats of a term of one number; other terms have none.

        Parameters
        ----------
        term : Term
            One of `terms`.

        Returns
        -------
        slice
            Consecutive columns, after the scaled value and before indicators.
        """
        if len(term.names) > 1 or term.names[0] not in self.numbers:
            return slice(term.columns.start, term.columns.start)
        return slice(term.columns.start + 1, term.columns.stop - self._indicators_of(term.names[0])[0])

    def scaled_cells(self, term: Term, cells: np.ndarray) -> np.ndarray:
        """Return the scaled values of a number, as they stand in a row.

        Parameters
        ----------
        term : Term
            The term of one number.
        cells : ndarray of shape (n,)
            Numbers, in the units of the column.

        Returns
        -------
        ndarray of shape (n,)
            Scaled values.
        """
        (name,) = term.names
        return np.asarray(self._from_zero(name, self._column(name).scaled(name, cells[:, None]))[:, 0] / self._length)

    def transform(self, X: Any) -> sparse.csr_array:
        """Return the functions of each record.

        Parameters
        ----------
        X : DataFrame, or ndarray of shape (n_samples, n_columns)
            Table with the columns of the schema. Other columns of a frame are ignored. An array has exactly these columns, all
            numeric.

        Returns
        -------
        CSR of shape (n_samples, n_features)
            A row of float64 per record.

        Raises
        ------
        TypeError, ValueError
            If a column is missing, or a numeric column has values that are not finite numbers; no message quotes data.
        """
        with np.errstate(all="ignore"):  # also if the program turns warnings into errors: an error would reveal a value
            parts = list(self._parts(self._columns(X), self.terms))
        table = sparse.csr_array(sparse.hstack(parts, format="csr"))
        table.sort_indices()
        return table

    def packs(self, n_samples: int) -> bool:
        """Return whether `packed` takes the place of `transform` for the records of a fit, by public facts alone.

        Parameters
        ----------
        n_samples : int
            Number of records.

        Returns
        -------
        bool
            Whether the table in CSR would be large, and all functions are of single columns.
        """
        small = n_samples * self.n_stored * ENTRY_BYTES < LARGE_BYTES
        if small or self.interactions or self.placed or self.knots.size > MOST_KNOTS:
            return False
        return max((self.n_functions(name) for name in self.categories), default=0) <= MOST_CODES

    def packed(self, X: Any) -> PackedRows:
        """Return the functions of each record in one or two bytes per cell; see `transform` for X and for errors.

        Numbers are rounded to 2048 even steps between two knots.
        """
        with np.errstate(all="ignore"):  # an error would reveal a value
            packed = [
                self._packed_column(name, term.columns.start, column)
                for term, (name, column) in zip(self.terms, self._columns(X).items(), strict=True)
            ]
        return PackedRows([column for column, _ in packed], [codes for _, codes in packed], self.n_features)

    def values_of(self, X: Any) -> Iterator[TermValues]:
        """Yield what the functions of each term are made of; see `transform` for X and for errors."""
        columns = self._columns(X)
        for term in self.terms:
            (name, *second) = term.names
            if second or name in self.categories:
                with np.errstate(all="ignore"):
                    (part,) = self._parts({name: columns[name] for name in term.names}, [term])
                yield TermValues(term, part)
                continue
            with np.errstate(all="ignore"):  # an error would reveal a value
                place = self._column(name).scaled(name, columns[name])
                further = [part / self._length for part in self._further(name, columns[name])]
            value = self._from_zero(name, place)[:, 0] / self._length
            yield TermValues(term, further[0] if further else None, value, place[:, 0] if self.n_intervals else None)

    def raw(self, values: TermValues, coef: np.ndarray) -> np.ndarray:
        """Return the functions of a term times coefficients, summed up.

        Parameters
        ----------
        values : TermValues
            The term.
        coef : ndarray of shape (n_outputs, n_features)
            Coefficients of all functions.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            What the term adds to raw predictions.
        """
        own = coef[:, values.term.columns]
        if values.value is None:
            assert values.indicators is not None
            return np.asarray(values.indicators @ own.T)
        total = values.value[:, None] * own[:, 0]
        if values.place is not None:
            knots = 2 * self.knots_of(values.term.names[0]) - 1
            for output, hats in enumerate(own[:, 1 : 1 + knots.size] / math.sqrt(len(self.numbers))):
                total[:, output] += np.interp(values.place, knots, hats)
        return total if values.indicators is None else total + values.indicators @ own[:, -values.indicators.shape[1] :].T

    def of_term(self, term: Term, values: dict[str, np.ndarray]) -> sparse.csr_array:
        """Return the basis functions of one term at given values of its columns.

        Parameters
        ----------
        term : Term
            One of `terms`.
        values : dict of ndarray of shape (n,)
            Values of the term's columns, in their units; labels such as "bucket 17" for a column with hash buckets.

        Returns
        -------
        CSR of shape (n, width of the term)
            Rows as in `transform`.
        """
        eyes = {}
        for name in term.names:
            column = self.facts.columns[name]
            if column.exhaustive and not column.plain:
                places = {label: place for place, label in enumerate(column.labels)}
                eyes[name] = sparse.eye_array(len(places), format="csr")[[places[label] for label in values[name]]]
        (part,) = self._parts({name: np.asarray(values[name])[:, None] for name in term.names}, [term], eyes)
        return part

    def grid(self, name: str, fine: bool = True, places: np.ndarray | None = None) -> np.ndarray:
        """Return public values of a column for plots of a term, in its units: all categories, or a grid between the bounds.

        Parameters
        ----------
        name : str
            A column of the schema.
        fine : bool, default=True
            Whether to add points between the knots of a number.
        places : ndarray of shape (n_points,) or None, default=None
            Increasing points from one bound (0) to the other one (1), in place of the knots and the points between them.

        Returns
        -------
        ndarray of shape (n_points,)
            Categories, including "other"; or increasing numbers, including all knots.
        """
        column = self._column(name)
        if column.exhaustive:
            return np.array(column.labels, dtype=object)
        if column.integers and fine:
            return np.array(column.integers)
        if column.binary and fine:
            return np.array(column.ends)
        return np.asarray(column.at(self.places(name, fine) if places is None else places))

    def places(self, name: str, fine: bool = True) -> np.ndarray:
        """Return the knots of a number, from 0 to 1, with points between them and both bounds if ``fine``.

        Parameters
        ----------
        name : str
            A numeric column.
        fine : bool, default=True
            Whether to add them.

        Returns
        -------
        ndarray of shape (n_points,)
            Increasing.
        """
        peaks = self.knots_of(name)
        if not fine:
            return peaks
        between = (peaks[:-1, None] + np.diff(peaks)[:, None] * np.arange(PER_HAT) / PER_HAT).ravel()
        return np.concatenate([[0.0] * int(peaks[0] > 0), between, peaks[-1:], [1.0] * int(peaks[-1] < 1)])

    def is_binary(self, name: str) -> bool:
        """Return whether a column is a number that has two values, as was learned.

        Parameters
        ----------
        name : str
            A column of the schema.

        Returns
        -------
        bool
            False for other numbers, and for categories.
        """
        column = self.facts.columns[name]
        return column.binary

    @property
    def _further_blocks(self) -> int:
        return bool(self.numbers and self.n_intervals) + bool(self.interactions)

    @property
    def length_in_force(self) -> float:
        """Divisor of scaled values and indicators: ``length``, or its default."""
        return self._length

    @property
    def _length(self) -> float:
        if self.length is not None:
            return self.length
        if not all(column.plain for column in self.facts.columns.values()):
            return self.facts.data_norm
        p = len(self.numbers)
        return math.sqrt(min(USUAL * p + 2 * SPREAD * math.sqrt(p), p) + len(self.categories))

    def _columns(self, X: Any) -> dict[str, Any]:
        """Split X into tables of one column, by name."""
        if not hasattr(X, "columns"):
            return {name: X[:, place : place + 1] for place, name in enumerate(self.facts.columns)}
        frame = SchemaColumns.of(self.facts).transform(X)
        return {name: frame[[name]] for name in self.facts.columns}

    def _parts(
        self, columns: dict[str, Any], terms: Sequence[Term], known: Mapping[str, sparse.csr_array] | None = None
    ) -> Iterator[sparse.csr_array]:
        """Yield the basis functions of each term, from tables of one column; ``known`` are indicators of categories."""
        # A term of two columns is made of the families of both: row by row, all products of a function of the one and a function
        # of the other. So a family is needed for each category, and for a number if there are hats or if a pair has it.
        #  pair (a, b):   a's family  h1 h2 h3    b's family  g1 g2    columns  h1g1 h1g2 h2g1 h2g2 h3g1 h3g2
        paired = {name for term in terms if len(term.names) == 2 for name in term.names}
        categories = set(self.categories)
        scaled = {name: self._column(name).scaled(name, column) for name, column in columns.items() if name not in categories}
        families = {  # each is non-negative, with a sum of squares of at most 1
            name: self._indicators(name, column) if name in categories else self._hats(name, scaled[name])
            for name, column in columns.items()
            if (self.n_intervals or name in paired or name in categories) and name not in (known or {})
        } | dict(known or {})
        for term in terms:
            if len(term.names) == 2:
                one, other = (families[name] for name in term.names)
                yield products_by_row(one, other) / math.sqrt(len(self.interactions))
                continue
            (name,) = term.names
            if name in categories:
                yield families[name] / self._length
                continue
            # Columns of a number: the value, its hats, and indicators of integers and of missing cells.
            value = sparse.csr_array(self._from_zero(name, scaled[name]) / self._length)
            hats = [families[name] / math.sqrt(len(self.numbers))] if self.n_intervals else []
            further = [part / self._length for part in self._further(name, columns[name])]
            yield sparse.csr_array(sparse.hstack([value, *hats, *further], format="csr"))

    def _from_zero(self, name: str, scaled: np.ndarray) -> np.ndarray:
        """Return a scaled number: 0 at its centre, at zero or at the bound closest to zero; 1 or -1 at the farther bound."""
        zero = self._zero(name)
        return (scaled - zero) / (1 + abs(zero))

    def _zero(self, name: str) -> float:
        """Return the scaled value of the centre of a number."""
        return self._column(name).scaled(name, np.full((1, 1), self._column(name).centre))[0, 0]  # type: ignore[no-any-return]

    def _codes(self, name: str, column: Any) -> np.ndarray:
        facts = self._column(name)
        return np.asarray(facts.places(facts.cells(single(column))))

    def _column(self, name: str) -> Any:
        return self.facts.columns[name]

    def _indicators_of(self, name: str) -> tuple[int, int]:
        """Return the number of indicators of a number, and how many of them are 1 at most."""
        column = self.facts.columns[name]
        return len(column.integers) + column.gaps, bool(column.integers) + column.gaps

    def _packed_column(self, name: str, first: int, column: Any) -> tuple[PackedCategory | PackedNumber, np.ndarray]:
        """Return the public facts of a column whose features start at ``first``, and the code of each cell."""
        if name in self.categories:
            size, codes = self.n_functions(name), self._codes(name, column)
            return PackedCategory(first, size, 1 / self._length), codes.astype(np.min_scalar_type(size - 1))
        facts, peaks = self.facts.columns[name], 2 * self.knots - 1 if self.n_intervals else np.linspace(-1, 1, 17)
        zero = self._zero(name)
        # The value has a kink where it is 0, unless a hat peaks there: one more knot.
        knots = peaks if np.abs(peaks - zero).min() < NEAR else np.union1d(peaks, [zero])
        codes, further, weights = (
            code_of(self._column(name).scaled(name, column)[:, 0], knots),
            np.empty(0, dtype=np.uint16),
            np.empty(0),
        )
        if self._indicators_of(name)[0]:
            kinds, cells = np.append(facts.integers, [np.nan] * facts.gaps), number_cells(single(column))
            further = code_of(self._column(name).scaled(name, kinds[:, None])[:, 0], knots)
            weights = np.where(np.isnan(kinds), 1.0, facts.weight) / self._length
            for number, kind in enumerate(kinds, (knots.size - 1) * STEPS + 1):
                codes[np.isnan(cells) if np.isnan(kind) else cells == kind] = number
        values = self._from_zero(name, knots[:, None])[:, 0] / self._length
        hats = np.array([np.interp(knots, peaks, hat) for hat in np.eye(peaks.size)[: peaks.size if self.n_intervals else 0]])
        hats = hats.reshape(-1, knots.size) / math.sqrt(len(self.numbers))
        return PackedNumber(first, knots, values, hats, further, weights), codes

    def _further(self, name: str, column: Any) -> list[sparse.csr_array]:
        """Return the indicators of integers and of missing cells of a number."""
        if not self._indicators_of(name)[0]:
            return []
        return [sparse.csr_array(self._column(name).beside(number_cells(single(column))))]

    def _hats(self, name: str, scaled: np.ndarray) -> sparse.csr_array:
        places = 2 * self.knots_of(name)[:, None] - 1
        hats = SplineTransformer(degree=1, knots=places, extrapolation="constant", sparse_output=True)
        hats.set_output(transform="default")  # whatever the program set for all: data frames cannot be sparse
        return sparse.csr_array(hats.fit(places).transform(scaled))

    def _indicators(self, name: str, column: Any) -> sparse.csr_array:
        codes = self._codes(name, column)
        return sparse.csr_array((np.ones(codes.size), codes, np.arange(codes.size + 1)), (codes.size, self.n_functions(name)))


def products_by_row(one: sparse.csr_array, other: sparse.csr_array) -> sparse.csr_array:
    """Return, row by row, all products of an entry of one table and an entry of the other, ordered by the first entry.

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

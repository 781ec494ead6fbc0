"""Public functions of single columns, and of pairs that somebody names: what an additive model is a sum of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from skdp.preprocessing._categories import KnownCategories
from skdp.preprocessing._columns import SchemaColumns
from skdp.preprocessing._scaling import BoundedScaler
from skdp.preprocessing._schema import OTHER, Category, Number, Schema, encoded

__all__ = ["AdditiveBasis", "Term", "knots"]

DYADIC = 4  # knots under the first of the even ones, each half as far from the lower bound


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


def knots(n_intervals: int) -> np.ndarray:
    """Return where the hats of a number in [0, 1] peak: evenly, and ever closer to 0, where counts and amounts crowd.

    Parameters
    ----------
    n_intervals : int
        m, number of even intervals, at least 1.

    Returns
    -------
    ndarray of shape (m + 5,)
        Increasing from 0 to 1.
    """
    dyadic = 0.5 ** np.arange(DYADIC, 0, -1) / n_intervals
    return np.concatenate([[0.0], dyadic, np.arange(1, n_intervals + 1) / n_intervals])


@dataclass(frozen=True)
class AdditiveBasis:
    r"""The map from a row of a table to the functions of which an additive model is a linear combination.

    A number gives its value scaled to [-1, 1], and hats: piecewise linear functions on public `knots` that are not negative and
    add up to 1. A category gives one indicator per public category, and one for all other values. Two columns that are named
    together give the products of their hats or indicators. Nothing is learnt from the records.

    Parameters
    ----------
    facts : Schema
        Public bounds and categories.
    n_intervals : int
        Even intervals between knots; 0 for no hats.
    interactions : sequence of (str, str), default=()
        Pairs of columns.

    Notes
    -----
    **The norm of a row** is at most `row_norm`, whatever the values are, so that nothing has to be clipped: with p numbers and c
    categories the scaled values and indicators have squares that add up to at most p + c, and are divided by its root; hats of
    a number have squares that add up to at most :math:`(\sum h)^2 = 1`, and are divided by :math:`\sqrt p`; the products of two
    such families have :math:`\sum_{ab} h_a^2 g_b^2 = \sum_a h_a^2 \sum_b g_b^2 \le 1`, and are divided by the root of the number
    of pairs. So each of the three blocks has a norm of at most 1.
    """

    facts: Schema
    n_intervals: int
    interactions: Sequence[tuple[str, str]] = ()

    @property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for name, column in self.facts.columns.items() if isinstance(column, Number)]

    @property
    def categories(self) -> list[str]:
        """Names of the other columns."""
        return [name for name, column in self.facts.columns.items() if isinstance(column, Category)]

    @property
    def row_norm(self) -> float:
        """Bound on the Euclidean norm of a row of the basis."""
        return math.sqrt(1 + bool(self.numbers and self.n_intervals) + bool(self.interactions))

    @property
    def n_features(self) -> int:
        """Number of functions."""
        return self.terms[-1].columns.stop

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Parts of the model, in the order of the schema; pairs come last."""
        found, start = [], 0
        for names in (*((name,) for name in self.facts.columns), *map(tuple, self.interactions)):
            size = math.prod(self._width(name) for name in names)
            if len(names) == 1 and names[0] in self.numbers:
                size = 1 + (size if self.n_intervals else 0)
            found.append(Term(names, slice(start, start + size)))
            start += size
        return tuple(found)

    def transform(self, frame: Any) -> sparse.csr_array:
        """Return the functions of each record.

        Parameters
        ----------
        frame : DataFrame
            With the columns of the schema; others are not looked at.

        Returns
        -------
        CSR of shape (n_samples, n_features)
            A row of float64 per record.

        Raises
        ------
        TypeError, ValueError
            If a column is missing, or something in it is no finite number where one is expected; nothing is quoted.
        """
        frame = SchemaColumns.of(self.facts).transform(frame)
        scaled, alone = self._scaled(frame), self._indicators(frame)
        hats = {name: self._hats(values) for name, values in scaled.items()} if self.n_intervals or self.interactions else {}
        linear = 1 / math.sqrt(len(self.facts.columns))
        blocks: list[Any] = []
        for term in self.terms:
            if len(term.names) == 2:
                one, other = (alone[name] if name in alone else hats[name] for name in term.names)
                blocks.append(products_by_row(one, other) / math.sqrt(len(self.interactions)))
                continue
            (name,) = term.names
            blocks.append(linear * (alone[name] if name in alone else sparse.csr_array(scaled[name])))
            if name in scaled and self.n_intervals:
                blocks.append(hats[name] / math.sqrt(len(scaled)))
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def _width(self, name: str) -> int:
        """Number of indicators, or of hats."""
        column = self.facts.columns[name]
        return len(encoded(column.categories)) if isinstance(column, Category) else len(knots(max(self.n_intervals, 1)))

    def _scaled(self, frame: Any) -> dict[str, np.ndarray]:
        """Numbers in [-1, 1], a column each."""
        columns = {name: column for name, column in self.facts.columns.items() if isinstance(column, Number)}
        return {
            name: BoundedScaler([column.bounds], scale=column.scale, fill=column.fill).fit_transform(frame[[name]].to_numpy())
            for name, column in columns.items()
        }

    def _hats(self, scaled: np.ndarray) -> sparse.csr_array:
        places = 2 * knots(max(self.n_intervals, 1))[:, None] - 1
        hats = SplineTransformer(degree=1, knots=places, extrapolation="constant", sparse_output=True)
        return sparse.csr_array(hats.fit(places).transform(scaled))

    def _indicators(self, frame: Any) -> dict[str, sparse.csr_array]:
        columns = {name: column for name, column in self.facts.columns.items() if isinstance(column, Category)}
        found = {}
        for name, column in columns.items():
            known = KnownCategories([list(column.categories)], other=OTHER).fit_transform(frame[[name]])
            encoder = OneHotEncoder(categories=[encoded(column.categories)])
            found[name] = sparse.csr_array(encoder.fit_transform(np.asarray(known, dtype=object)))
        return found


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

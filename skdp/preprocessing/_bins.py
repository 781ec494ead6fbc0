"""Bins of the columns of an additive basis."""

import numpy as np

from skdp.preprocessing._additive_basis import AdditiveBasis, TermValues
from skdp.preprocessing._schema import Number
from skdp.privacy.data.bins import Bins, ColumnBins

__all__ = ["bins_of", "bins_of_values"]


def bins_of(basis: AdditiveBasis) -> Bins:
    """Return what maps rows of a basis without pairs to bins of its columns."""
    return Bins(tuple(_of_column(basis, name, place) for place, name in enumerate(basis.facts.columns)))


def bins_of_values(bins: Bins, place: int, values: TermValues) -> np.ndarray:
    """Return the bins of one column, which are those of the rows of the basis.

    Parameters
    ----------
    bins : Bins
        Public facts of all columns.
    place : int
        Number of the column.
    values : TermValues
        Its term.

    Returns
    -------
    ndarray of int of shape (n_samples,)
        Numbers of bins.
    """
    column, indicators = bins.columns[place], values.indicators
    if values.value is None:
        assert indicators is not None
        return indicators.indices  # one to a row
    missing = indicators[:, [-1]].toarray()[:, 0] > 0 if column.missing and indicators is not None else None
    return column.of_numbers(values.value, missing)


def _of_column(basis: AdditiveBasis, name: str, place: int) -> ColumnBins:
    facts, term = basis.facts.columns[name], basis.terms[place]
    first, stop = term.columns.start, term.columns.stop
    if not isinstance(facts, Number):
        return ColumnBins(first, stop)
    return ColumnBins(first, stop, basis.ends_of(term), facts.learnt is not None and facts.learnt.missing)

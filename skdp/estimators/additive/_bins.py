"""Bins of the columns of an additive basis."""

import numpy as np

from skdp.estimators.additive._basis import AdditiveBasis, Term, TermValues
from skdp.privacy.data.bins import EDGES, Bins, ColumnBins


def bins_of(basis: AdditiveBasis) -> Bins:
    """Return what maps rows of a basis without pairs to bins of its columns."""
    return Bins(tuple(_of_column(basis, term) for term in basis.terms[: len(basis.facts.columns)]))


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


def bin_effects(basis: AdditiveBasis, bins: Bins, coef: np.ndarray) -> list[np.ndarray]:
    """Return what the functions of each column add in each of its bins.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis.
    bins : Bins
        Its bins.
    coef : ndarray of shape (n_outputs, n_features)
        Coefficients of the functions.

    Returns
    -------
    list of ndarray of shape (n_outputs, size)
        At the centre of each bin of a number, with its indicators of integers where these lie; of each category.
    """
    return [_effects(basis, column, place, coef) for place, column in enumerate(bins.columns)]


def bin_places(basis: AdditiveBasis, term: Term) -> np.ndarray:
    """Return the centres of the bins of a number, from 0 at its lower bound to 1; missing cells lie where its value is 0.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis.
    term : Term
        The term of the number.

    Returns
    -------
    ndarray of shape (n_bins,)
        Places.
    """
    return _places(_of_column(basis, term))


def _places(column: ColumnBins) -> np.ndarray:
    assert column.ends is not None
    low, high = column.ends
    ends = np.concatenate([[0.0], EDGES, [1.0]])
    centres = (ends[:-1] + ends[1:]) / 2
    return np.append(centres, np.clip(-low / (high - low), 0.0, 1.0)) if column.missing else centres


def _effects(basis: AdditiveBasis, column: ColumnBins, place: int, coef: np.ndarray) -> np.ndarray:
    of_indicators = coef / basis.length_in_force
    if column.ends is None:
        return of_indicators[:, column.first : column.stop]
    (name,), (low, high), centres = basis.terms[place].names, column.ends, _places(column)
    values = TermValues(basis.terms[place], None, low + (high - low) * centres, 2 * centres - 1 if basis.n_intervals else None)
    found = basis.raw(values, coef).T
    facts = basis.facts.columns[name]
    if facts.integers:
        first = column.stop - len(facts.integers) - facts.gaps
        cells = basis.scaled_cells(basis.terms[place], np.array(facts.integers))
        effects = facts.weight * of_indicators[:, first : column.stop - facts.gaps]
        np.add.at(found.T, column.of_numbers(cells, None), effects.T)
    if column.missing:
        found[:, -1] += of_indicators[:, column.stop - 1]
    return found


def _of_column(basis: AdditiveBasis, term: Term) -> ColumnBins:
    facts = basis.facts.columns[term.names[0]]
    first, stop = term.columns.start, term.columns.stop
    if facts.ends is None:
        return ColumnBins(first, stop)
    low, high = basis.scaled_cells(term, np.array(facts.ends)).tolist()
    return ColumnBins(first, stop, (low, high), facts.gaps)

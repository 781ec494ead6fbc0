"""Place knots where the records are: define a fine public basis, choose among its knots, and map it to a coarse basis."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import sparse

from skdp._projections import onto_simplex
from skdp.preprocessing._additive_basis import AdditiveBasis, Term, knots

__all__ = ["FINEST", "finest", "hat_columns", "place_knots", "placed", "refinement"]

FINEST = knots(32)
EVEN = 4  # number of even intervals whose ends are always knots, whatever the records are
# First and last quantile of knots at quantiles: those of F. Harrell, "Regression Modeling Strategies" (2015), section 2.4.6.
# Beyond them are few records, from which no budget tells the end of a line.
OUTER = (0.01, 0.99)
PRIOR = 0.01  # share of the weight that is spread evenly over the range; it places knots where the release shows no records


def finest(basis: AdditiveBasis) -> AdditiveBasis:
    """Return the basis that has the fine public knots `FINEST` for all numbers; the final knots are chosen among them."""
    return replace(basis, placed={name: tuple(FINEST.tolist()) for name in basis.numbers})


def hat_columns(basis: AdditiveBasis) -> np.ndarray:
    """Return the columns of the basis with the hats of single numbers; together they are non-negative with norm at most 1."""
    hats = [basis.hats_of(term) for term in basis.terms]
    return np.concatenate([np.arange(part.start, part.stop) for part in hats])


def placed(basis: AdditiveBasis, shares: np.ndarray, at_quantiles: bool = False) -> AdditiveBasis:
    """Return the basis with the same number of knots, placed for each number where its records are.

    Parameters
    ----------
    basis : AdditiveBasis
        A basis with even knots.
    shares : ndarray of shape (n_numbers * len(FINEST),)
        Noisy share of the records near each knot of `FINEST`, by column.
    at_quantiles : bool, default=False
        Whether the knots are at quantiles alone, so that functions are constant beyond the first and the last one.

    Returns
    -------
    AdditiveBasis
        It depends on the arguments alone.
    """
    by_column, place = zip(basis.numbers, shares.reshape(-1, FINEST.size), strict=True), place_knots
    if at_quantiles:
        place = quantile_knots
    return replace(basis, placed={name: tuple(place(part, basis.knots.size).tolist()) for name, part in by_column})


def quantile_knots(shares: np.ndarray, size: int) -> np.ndarray:
    """Return different knots out of `FINEST` near evenly spaced quantiles, the first and the last one not within the outer ones.

    See `place_knots` for the arguments.
    """
    below, levels = cumulated(shares), np.linspace(*OUTER, size)
    places = np.abs(below - levels[:, None]).argmin(axis=1)
    places[[0, -1]] = np.searchsorted(below, levels[0], side="right") - 1, np.searchsorted(below, levels[-1])
    for place in range(1, size):
        places[place] = max(places[place], places[place - 1] + 1)
    for place in range(size - 1, -1, -1):  # the last ones may be beyond the end
        places[place] = min(places[place], FINEST.size - size + place, *places[place + 1 : place + 2] - 1)
    return FINEST[places]


def place_knots(shares: np.ndarray, size: int) -> np.ndarray:
    """Return knots out of `FINEST` that divide the records about equally, including a few even knots.

    Starting from even intervals, the interval with the most records is divided at their median until there are enough knots.

    Parameters
    ----------
    shares : ndarray of shape (len(FINEST),)
        Noisy share of the records near each knot; any sign and any sum are possible.
    size : int
        Number of knots, from 3 to ``len(FINEST)``.

    Returns
    -------
    ndarray of shape (size,)
        Increasing from 0 to 1.
    """
    below = cumulated(shares)
    even = min(EVEN, (size - 1) // 2)
    chosen = [int(np.searchsorted(FINEST, place)) for place in np.arange(even + 1) / even]
    while len(chosen) < size:
        weights = [below[b] - below[a] if b - a > 1 else -1.0 for a, b in pairwise(chosen)]
        widest = int(np.argmax(weights))
        a, b = chosen[widest], chosen[widest + 1]
        middle = a + 1 + int(np.argmin(np.abs(below[a + 1 : b] - (below[a] + below[b]) / 2)))
        chosen.insert(widest + 1, middle)
    return FINEST[chosen]


def cumulated(shares: np.ndarray) -> np.ndarray:
    """Return the share of the records below each knot, from 0 to 1; records at a knot count half.

    To reduce the noise, the shares are projected onto non-negative shares that add up to 1.
    """
    even = np.diff(np.concatenate([[0.0], (FINEST[:-1] + FINEST[1:]) / 2, [1.0]]))
    likely = (1 - PRIOR) * onto_simplex(shares, 1.0) + PRIOR * even
    below = np.cumsum(likely) - likely / 2
    below[[0, -1]] = 0.0, 1.0
    return below


def refinement(fine: AdditiveBasis, coarse: AdditiveBasis) -> sparse.csr_array:
    """Return the matrix that maps rows of a fine basis to rows of a coarse one.

    A hat on a subset of the fine knots is linear between all fine knots. So it is the combination of the fine hats whose weights
    are its values at the fine knots.

    Parameters
    ----------
    fine, coarse : AdditiveBasis
        Bases of the same columns; every knot of the coarse one is also a knot of the fine one.

    Returns
    -------
    CSR of shape (fine.n_features, coarse.n_features)
        One block per term.
    """
    blocks = [_block(fine, coarse, term) for term in coarse.terms]
    return sparse.csr_array(sparse.block_diag(blocks, format="csr"))


def _block(fine: AdditiveBasis, coarse: AdditiveBasis, term: Term) -> sparse.csr_array:
    families = [_family(fine, coarse, name) for name in term.names]
    if len(families) == 2:
        return sparse.csr_array(sparse.kron(*families, format="csr"))
    if term.names[0] in coarse.categories:
        return families[0]
    further = sparse.eye_array(term.columns.stop - coarse.hats_of(term).stop, format="csr")
    return sparse.csr_array(sparse.block_diag([sparse.eye_array(1, format="csr"), *families, further], format="csr"))


def _family(fine: AdditiveBasis, coarse: AdditiveBasis, name: str) -> sparse.csr_array:
    """Return the values of the coarse hats at the fine knots; for categories, the identity."""
    if name in coarse.categories:
        return sparse.eye_array(coarse.n_functions(name), format="csr")
    peaks, places = coarse.knots_of(name), fine.knots_of(name)
    return sparse.csr_array(np.column_stack([np.interp(places, peaks, unit) for unit in np.eye(peaks.size)]))

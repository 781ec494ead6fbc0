"""Knots where the records are: a fine public basis, what is asked of it, and the way from it to a coarse one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import sparse

from skdp._projections import onto_simplex
from skdp.preprocessing._additive_basis import AdditiveBasis, Term, knots

__all__ = ["FINEST", "finest", "hat_columns", "place_knots", "placed", "refinement"]

FINEST = knots(32)
EVEN = 4  # intervals between knots that are there whatever the records are
PRIOR = 0.01  # of the weight, spread over the range: it decides where nothing is known


def finest(basis: AdditiveBasis) -> AdditiveBasis:
    """Return the basis with the public knots among which others are chosen, for all numbers."""
    return replace(basis, placed={name: tuple(FINEST.tolist()) for name in basis.numbers})


def hat_columns(basis: AdditiveBasis) -> np.ndarray:
    """Return the places of the hats of single numbers, which are not negative and have a norm of at most 1 together."""
    return np.concatenate(
        [
            np.arange(term.columns.start + 1, term.columns.stop)
            for term in basis.terms
            if len(term.names) == 1 and term.names[0] in basis.numbers
        ]
    )


def placed(basis: AdditiveBasis, shares: np.ndarray) -> AdditiveBasis:
    """Return the basis with as many knots as it has, for each number where its records are.

    Parameters
    ----------
    basis : AdditiveBasis
        With even knots.
    shares : ndarray of shape (n_numbers * len(FINEST),)
        Share of the records near each place of `FINEST`, by column, with noise.

    Returns
    -------
    AdditiveBasis
        A function of its arguments alone.
    """
    by_column = zip(basis.numbers, shares.reshape(-1, FINEST.size), strict=True)
    return replace(basis, placed={name: tuple(place_knots(part, basis.knots.size).tolist()) for name, part in by_column})


def place_knots(shares: np.ndarray, size: int) -> np.ndarray:
    """Return knots between which there are about as many records, out of `FINEST`, the even ones among them.

    Starting from even intervals, the one with the most records is divided at their median, until there are enough.

    Parameters
    ----------
    shares : ndarray of shape (len(FINEST),)
        Share of the records near each place, with noise: of any sign, and any sum.
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
    """Return the share of the records below each place, from 0 up to 1, half of those at a place among them.

    Noise is taken off by going to the nearest shares that are not negative and add up to 1.
    """
    even = np.diff(np.concatenate([[0.0], (FINEST[:-1] + FINEST[1:]) / 2, [1.0]]))
    likely = (1 - PRIOR) * onto_simplex(shares, 1.0) + PRIOR * even
    below = np.cumsum(likely) - likely / 2
    below[[0, -1]] = 0.0, 1.0
    return below


def refinement(fine: AdditiveBasis, coarse: AdditiveBasis) -> sparse.csr_array:
    """Return the matrix of the functions of a coarse basis as combinations of those of a fine one: rows are mapped by it.

    A hat on some of the fine knots is linear between all of them, so it is the combination of fine hats with its values there.

    Parameters
    ----------
    fine, coarse : AdditiveBasis
        Of the same columns; every knot of the coarse one is one of the fine one.

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
    return sparse.csr_array(sparse.block_diag([sparse.eye_array(1), *families], format="csr"))


def _family(fine: AdditiveBasis, coarse: AdditiveBasis, name: str) -> sparse.csr_array:
    """Values of the coarse hats at the peaks of the fine ones; categories as they are."""
    if name in coarse.categories:
        return sparse.eye_array(coarse.n_functions(name), format="csr")
    peaks, places = coarse.knots_of(name), fine.knots_of(name)
    return sparse.csr_array(np.column_stack([np.interp(places, peaks, unit) for unit in np.eye(peaks.size)]))

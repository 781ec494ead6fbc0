"""Place knots where the records are: define a fine public basis, choose among its knots, and map it to a coarse basis."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import sparse

from skdp._projections import onto_simplex
from skdp.estimators.additive._basis import AdditiveBasis, Term, knots

FINEST = knots(32)
FINE = knots(128)  # for knots at quantiles, which may all be within a small part of the range
EVEN = 4  # number of even intervals whose ends are always knots, whatever the records are
PRIOR = 0.01  # share of the weight that is spread evenly over the range; it places knots where the release shows no records
# First and last quantile of knots at quantiles: those of F. Harrell, "Regression Modeling Strategies" (2015), section 2.4.6.
# Beyond them are few records, from which no budget tells the end of a line.
OUTER = (0.01, 0.99)
SEEN = 3.0  # standard deviations of its noise from which on a sum of shares counts; with 2, knots were where nobody is
BESIDE, ROUNDS = 1, 50  # places on either side over which one value spreads, and rounds until shares are even; choices
LITTLE_PRIOR = 1e-4  # in place of PRIOR for knots at quantiles, of which the outer ones are near a share of 0


def finest(basis: AdditiveBasis, at_quantiles: bool = False) -> AdditiveBasis:
    """Return the basis that has fine public knots for all numbers; the final knots are chosen among them."""
    grid = FINE if at_quantiles else FINEST
    return replace(basis, placed={name: tuple(grid.tolist()) for name in basis.numbers})


def hat_columns(basis: AdditiveBasis) -> np.ndarray:
    """Return the columns of the basis with the hats of single numbers; together they are non-negative with norm at most 1."""
    hats = [basis.hats_of(term) for term in basis.terms]
    return np.concatenate([np.arange(part.start, part.stop) for part in hats])


def placed(basis: AdditiveBasis, shares: np.ndarray, noise: float | None = None) -> AdditiveBasis:
    """Return the basis with the same number of knots, placed for each number where its records are.

    Parameters
    ----------
    basis : AdditiveBasis
        A basis with even knots.
    shares : ndarray of shape (n_numbers * n_places,)
        Noisy share of the records near each knot of `FINEST`, or of `FINE`, by column.
    noise : float or None, default=None
        Standard deviation of the noise, for knots at quantiles alone, out of `FINE`: functions are constant beyond the first and
        the last one. None places them by `place_knots`.

    Returns
    -------
    AdditiveBasis
        It depends on the arguments alone.
    """
    by_column = zip(basis.numbers, shares.reshape(len(basis.numbers), -1), strict=True)
    size = basis.knots.size
    found = {
        name: place_knots(part, size) if noise is None else quantile_knots(without_noise(part, noise), size)
        for name, part in by_column
    }
    return replace(basis, placed={name: tuple(each.tolist()) for name, each in found.items()})


def without_noise(shares: np.ndarray, noise: float) -> np.ndarray:
    """Return shares with 0 where noise alone may be.

    A range of places holds something if its sum stands out from the noise. It is divided as long as one of its halves does. What
    cannot be divided counts where it is nearest to the median.

    Parameters
    ----------
    shares : ndarray of shape (n_places,)
        Noisy shares of the records.
    noise : float
        Standard deviation of the noise of each.

    Returns
    -------
    ndarray of shape (n_places,)
        At least 0.
    """
    found, ranges = np.zeros(len(shares)), [(0, len(shares))]
    median = int(np.searchsorted(np.cumsum(shares), shares.sum() / 2))
    while ranges:
        start, stop = ranges.pop()
        middle = (start + stop) // 2
        halves = [(a, b) for a, b in ((start, middle), (middle, stop)) if shares[a:b].sum() > SEEN * noise * math.sqrt(b - a)]
        if stop - start > 1 and halves:
            ranges += halves
        else:
            found[min(max(median, start), stop - 1)] = max(float(shares[start:stop].sum()), 0.0)
    return found


def quantile_knots(shares: np.ndarray, size: int) -> np.ndarray:
    """Return different knots out of `FINE` near evenly spaced quantiles, the first and the last one not within the outer ones.

    A place with many records counts as one knot's share, so that no two knots are at the same value of a column of few values:
    the hat of one of them would have no records. See `place_knots` for the arguments.
    """
    shares = np.maximum(shares, 0.0)
    # Cut places that hold more, with those beside them, than one knot's share, until all are about even.
    for _ in range(ROUNDS):
        beside = np.convolve(shares, np.ones(2 * BESIDE + 1), "same")
        shares = shares * np.minimum(1.0, shares.sum() / size / np.maximum(beside, 1e-300))
    below, levels = cumulated(shares / max(shares.sum(), 1e-300), FINE, LITTLE_PRIOR), np.linspace(*OUTER, size)
    places = np.abs(below - levels[:, None]).argmin(axis=1)
    places[[0, -1]] = np.searchsorted(below, levels[0], side="right") - 1, np.searchsorted(below, levels[-1])
    # Different places: move knots up where two are at one, and then down from the end of the grid.
    for place in range(1, size):
        places[place] = max(places[place], places[place - 1] + 1)
    for place in range(size - 1, -1, -1):  # the last ones may be beyond the end
        places[place] = min(places[place], FINE.size - size + place, *places[place + 1 : place + 2] - 1)
    return FINE[places]


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


def cumulated(shares: np.ndarray, grid: np.ndarray = FINEST, prior: float = PRIOR) -> np.ndarray:
    """Return the share of the records below each knot, from 0 to 1; records at a knot count half.

    To reduce the noise, the shares are projected onto non-negative shares that add up to 1.
    """
    even = np.diff(np.concatenate([[0.0], (grid[:-1] + grid[1:]) / 2, [1.0]]))
    likely = (1 - prior) * onto_simplex(shares, 1.0) + prior * even
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

"""Find levels, hats and ranges that hardly any record has, and take their effects out of an additive model."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skdp.preprocessing import AdditiveBasis, Category, Term
from skdp.preprocessing._parts import HardlySeen, Shares
from skdp.preprocessing._schema import OTHER
from skdp.solvers import SolverResult

__all__ = ["Reach", "supported"]

# A part of a column is taken to be empty if noise alone explains its share, up to SEEN deviations of it, and if the releases
# exclude, by DEVIATIONS, that it has more than LITTLE of the records; what no schema lists needs the first alone. Set on adult
# and bike, with bank and california in the same runs, then run once on mammography and spambase, where nothing changed. With .025
# for LITTLE adult lost .001 of AUC, which gains of capital have; without a limit bank lost .005 (months) and bike .24 of R2
# (hours) at epsilon 1.
SEEN, DEVIATIONS, LITTLE = 3.0, 2.0, 0.02
OF_EVEN = 0.25  # largest share of a pair of levels that is taken to be empty, over an even share: there are many pairs; a choice
# Share of the interval before a hat, over that of the hat, at which records reach its peak, if their density falls evenly to 0.
FALLING = 6.0

Reach = Mapping[str, tuple[float, float]]


def supported(
    basis: AdditiveBasis, result: SolverResult, counted: Mapping[str, Shares]
) -> tuple[SolverResult, Reach, dict[str, list[HardlySeen]]]:
    """Return the model without effects of which the releases tell next to nothing; post-processing.

    A level without records takes the average effect of its column, over the released shares. Between two knots with records, a
    function is a line. Beyond the last knot with records it is constant, from the place on up to which their share reaches.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis functions.
    result : SolverResult
        Released coefficients, the intercept last, and the means of the functions.
    counted : dict
        Shares of levels from an earlier release, by column.

    Returns
    -------
    result : SolverResult
        The same if no means were released.
    reach : dict
        Where the records of numbers are, from 0 to 1 between the bounds; of those that do not fill them.
    hardly_seen : dict
        What hardly any record has, and the largest shares that the releases do not exclude, by column.
    """
    if result.moments is None:
        return result, {}, {}
    reach, hardly_seen = {}, {}
    maps: list[tuple[int, np.ndarray]] = []
    released = shares_of(basis, result, counted)
    coef = result.coef.copy()
    for term in basis.terms:
        (name, *others), mapped = term.names, None
        found = released.get(name if not others else term.names)
        if found is None:
            pass
        elif others:
            empty = _is_empty(found.shares, found.noise, min(LITTLE, OF_EVEN / found.shares.size))
            mapped = 1.0 - empty  # of the many products, the noise of their mean counts as none
            coef[term.columns][empty] = _mean_weights(found, empty) @ coef[term.columns]
        elif isinstance(column := basis.facts.columns[name], Category):
            empty = empty_levels(column, found)
            mapped = np.diag(1.0 - empty) + np.outer(empty, _mean_weights(found, empty))
            coef[term.columns] = mapped @ coef[term.columns]
            hardly_seen[name] = levels_of(column, found)
        else:
            mapped = _flattened(basis, term, found)
            coef[term.columns] = mapped @ coef[term.columns]
            if (ends := reach_of(basis.knots_of(name), found)) != (0.0, 1.0):
                reach[name], hardly_seen[name] = ends, ranges_beyond(basis, name, ends, found)
        if mapped is not None:
            maps.append((term.columns.start, mapped))
    noise_left = None if result.noise is None else replace(result.noise, carried=tuple(maps))
    hardly_seen = {name: parts for name, parts in hardly_seen.items() if parts}
    return replace(result, coef=coef, noise=noise_left), reach, hardly_seen


def shares_of(basis: AdditiveBasis, result: SolverResult, counted: Mapping[str, Shares]) -> dict[Any, Shares]:
    """Return the released shares of levels, of hats, and of pairs of these, by name or names; none where nothing tells them."""
    if result.moments is None:
        return {}
    found: dict[Any, Shares] = {}
    for term in basis.terms:
        (name, *others), columns, weight = term.names, _family(basis, term), _weight(basis, term)
        size = columns.stop - columns.start
        if size:
            shares = Shares(result.moments.mean[columns] / weight, np.full(size, result.moments.mean_noise / weight))
            is_counted = not others and name in counted and name in basis.categories
            found[term.names if others else name] = shares.combined(counted[name]) if is_counted else shares
    return found


def levels_of(column: Category, found: Shares) -> list[HardlySeen]:
    """Return the levels that are taken to have no records, with their largest shares."""
    levels = zip(column.labels, found.most.tolist(), empty_levels(column, found).tolist(), strict=True)
    return [(label, most) for label, most, is_empty in levels if is_empty]


def empty_levels(column: Category, found: Shares) -> np.ndarray:
    """Return which levels are taken to have no records, by released shares in the order of the labels; never all of them."""
    unlisted = np.array([label == OTHER for label in column.labels]) & (OTHER not in column.categories)
    empty = _is_empty(found.shares, found.noise, np.where(unlisted, np.inf, LITTLE))
    return empty & (not empty.all())


def _is_empty(shares: np.ndarray, noise: np.ndarray, little: Any) -> np.ndarray:
    """Return which shares are those of nobody, or of so few records that the releases do not show them."""
    return (shares <= SEEN * noise) & (np.maximum(shares, 0.0) + DEVIATIONS * noise <= little)


def reach_of(peaks: np.ndarray, found: Shares) -> tuple[float, float]:
    """Return where the records of a number are, by the released shares of hats that peak at some places from 0 to 1."""
    first, last = _ends(found)
    if first > last or not found.noise.any():  # without privacy nothing is cut off
        return 0.0, 1.0
    low = 1 - _edge(found.shares[::-1], 1 - peaks[::-1], len(peaks) - 1 - first) if first else 0.0
    return low, _edge(found.shares, peaks, last) if last < len(peaks) - 1 else 1.0


def ranges_beyond(basis: AdditiveBasis, name: str, ends: tuple[float, float], found: Shares) -> list[HardlySeen]:
    """Return the ranges of a number beyond both ends, which are places between its bounds, with their largest shares."""
    (low, high), peaks = basis.grid(name, False, np.array(ends)).tolist(), basis.knots_of(name)
    found_beyond: list[HardlySeen] = []
    for part, end, is_empty, hats in (
        ((-math.inf, low), ends[0], ends[0] > 0, peaks <= ends[0]),
        ((high, math.inf), ends[1], ends[1] < 1, peaks >= ends[1]),
    ):
        total = Shares(found.shares[hats].sum(keepdims=True), np.sqrt(np.square(found.noise[hats]).sum(keepdims=True)))
        least = float(np.interp(end, peaks, hats))  # of these hats together, for every number beyond the end
        found_beyond += [(part, min(float(total.most[0]) / least, 1.0))] if is_empty else []
    return found_beyond


def _weight(basis: AdditiveBasis, term: Term) -> float:
    """Return the value of an indicator, of a hat at its peak, or of a product of these."""
    if len(term.names) > 1:
        return 1 / math.sqrt(len(basis.interactions))
    return 1 / math.sqrt(len(basis.numbers)) if term.names[0] in basis.numbers else 1 / basis.length_in_force


def _family(basis: AdditiveBasis, term: Term) -> slice:
    """Return the columns of the basis that share out each record: hats, indicators of a category, or products."""
    return basis.hats_of(term) if len(term.names) == 1 and term.names[0] in basis.numbers else term.columns


def _mean_weights(found: Shares, empty: np.ndarray) -> np.ndarray:
    """Return the weights of the coefficients of a family in their mean over the records."""
    kept = np.where(empty, 0.0, np.maximum(found.shares, found.noise / DEVIATIONS))
    return kept / max(float(kept.sum()), 1e-300)


def _flattened(basis: AdditiveBasis, term: Term, found: Shares) -> np.ndarray:
    """Return the matrix that makes a function a line where knots have no records, and constant beyond the outer ones that have.

    The function at the knots is the sum of the hats and of the scaled value, which is a line itself and keeps its coefficient.
    """
    (name,), peaks = term.names, basis.knots_of(term.names[0])
    size, hats, (first, last) = len(peaks), slice(1, 1 + len(peaks)), _ends(found)
    mapped = np.eye(term.columns.stop - term.columns.start)
    if first > last:
        return mapped
    full = ~_is_empty(found.shares, found.noise, LITTLE)
    full[[first, last]], full[:first], full[last + 1 :] = True, False, False
    lines = np.array([np.interp(peaks, peaks[full], unit) for unit in np.eye(int(full.sum()))]).T @ np.eye(size)[full]
    values = basis.of_term(term, {name: basis.grid(name, fine=False)}).toarray()[:, 0]
    mapped[hats, hats], mapped[hats, 0] = lines, (lines @ values - values) / _weight(basis, term)
    return mapped


def _ends(found: Shares) -> tuple[int, int]:
    """Return the first and the last hat that holds records; the former is larger if none does."""
    return _n_empty(found), found.shares.size - 1 - _n_empty(Shares(found.shares[::-1], found.noise[::-1]))


def _n_empty(found: Shares) -> int:
    """Return how many of the first hats are taken to hold no records, each of them and all together."""
    together = np.cumsum(found.shares) > SEEN * np.sqrt(np.cumsum(np.square(found.noise)))
    held = together | ~_is_empty(found.shares, found.noise, LITTLE)
    return int(np.argmax(held)) if held.any() else held.size


def _edge(shares: np.ndarray, peaks: np.ndarray, last: int) -> float:
    """Return up to where records are whose last knot is given: between it and the knot before, if its share is small."""
    if not last:
        return float(peaks[0])
    gap, width = peaks[last] - peaks[last - 1], (peaks[last] - peaks[max(last - 2, 0)]) / 2
    of_interval = max(float(shares[last - 1]), 0.0) * gap / width
    part = math.sqrt(FALLING * max(float(shares[last]), 0.0) / max(of_interval, 1e-300))
    return float(peaks[last - 1] + gap * min(part, 1.0))

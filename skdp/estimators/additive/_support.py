"""Find levels and outer ranges that hardly any record has, and take their effects out of an additive model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from skdp.estimators.additive._bins import bin_places
from skdp.preprocessing import AdditiveBasis, Term
from skdp.preprocessing._column_kinds import OTHER, Column
from skdp.preprocessing._parts import HardlySeen, Shares, support
from skdp.privacy.data.bins import EDGES
from skdp.solvers import ReleasedMoments, SolverResult

# A level, or all places beyond a knot, are taken to be empty if noise alone explains their share, up to SEEN deviations of it,
# and if the releases exclude, by DEVIATIONS, that they have more of the records than LITTLE over the number of categories, or of
# numbers. So wide tables, where the effects of many columns add up, are judged less.
# Both must have less than SPARSE times what evenly spread records would have there. Set on adult, bike, ijcnn1 and spambase: with
# .3 in place of .15 ijcnn1 lost .0014 of AUC, and without a limit .0036. The others were looked at more than once.
# Each hat beyond the last kept knot passes the first test by itself, too; a curve can still end one knot early.
# Of these constants, levels and ranges together, 3 paired fits at epsilon .1 and 1: covertype, ijcnn1 and bike 0;
# adult +.0003 and .0000; bank +.0012 +- .0007 and -.0012 +- .0010 (AUC); california -.012 +- .012 and +.0002 +- .0003 (R2).
SEEN, DEVIATIONS, LITTLE, SPARSE = 3.0, 2.0, 0.15, 0.5
# Odds, before the releases, that no record has what no schema lists: of learned columns of adult and bank about as many have
# records of rare levels there as none. It is taken to be empty if that is more likely than not. In its place the first test
# alone took out, in 3 of 11 fits at epsilon .5, the months of bank that few records have, for .007 to .010 of AUC each.
# Against none taken out, paired, at epsilon .5: adult +.00004 +- .00003 (6 fits), bank -.0004 +- .0007 (11 fits).
OTHER_EMPTY, LIKELY = 1.0, 0.5
# Share of the records beyond the place from which the function of a number is carried on, where nobody is: nearer to the end it
# is known less. Set on adult, where additive models lost .0003 of AUC with .03, and .002 with .05.
TAIL = 0.02


@dataclass(frozen=True, eq=False)
class Support:
    """Hold where the records of one column are, as the releases tell.

    Parameters
    ----------
    levels : ndarray of shape (n_levels, n_levels) or None, default=None
        Weights of the levels of a category in what each of them takes: itself, or the average over those with records.
    ends : tuple of int or None, default=None
        First and last knot of a number between which its function is kept.
    places : tuple of float, default=(0.0, 1.0)
        Where the value is taken from that the function has at the knots before the first one, and after the last one.
    hardly_seen : sequence, default=()
        What hardly any record has, and the largest shares that the releases do not exclude.
    """

    levels: np.ndarray | None = None
    ends: tuple[int, int] | None = None
    places: tuple[float, float] = (0.0, 1.0)
    hardly_seen: Sequence[HardlySeen] = ()

    def carries(self, basis: AdditiveBasis, term: Term) -> np.ndarray:
        """Return the matrix that maps the coefficients of the column."""
        if self.levels is not None:
            return self.levels
        assert self.ends is not None
        (name,), knots = term.names, np.arange(basis.knots_of(term.names[0]).size)
        upto = 1 + knots.size
        at_knots, at_places = (
            basis.of_term(term, {name: basis.grid(name, fine=False, places=places)}).toarray()[:, :upto]
            for places in (None, np.array(self.places))
        )
        # Beyond the ends the function keeps its value at a place: a hat there takes what functions add up to at that place, less
        # what the scaled value adds at the knot, over its own weight.
        mapped = np.eye(term.columns.stop - term.columns.start)
        own = at_knots[knots, 1 + knots]  # 0 where no value reaches the knot, as between the signs of a number
        for knot in knots[((knots < self.ends[0]) | (knots > self.ends[1])) & (own > 0)]:
            hat = 1 + knot
            mapped[hat, :upto] = at_places[int(knot > self.ends[1])]
            mapped[hat, 0] -= at_knots[knot, 0]
            mapped[hat] /= own[knot]
        return mapped


def supports(
    basis: AdditiveBasis, moments: ReleasedMoments | None, counted: Mapping[str, Shares], in_bins: Mapping[str, Shares]
) -> dict[str, Support]:
    """Return where the records of each column are, by name; of columns whose functions are kept as they are, nothing.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis functions.
    moments : ReleasedMoments or None
        Means of the functions; None if the solver releases none.
    counted : dict
        Shares of the levels of categories from an earlier release, by column.
    in_bins : dict
        Shares of the bins of all columns from another release, by column; empty if there was none.

    Returns
    -------
    dict of Support
        By column.

    Notes
    -----
    **Privacy.** Computed from releases and public facts.
    """
    found: dict[str, Support] = {}
    if moments is None:
        return found
    numbers, categories = (LITTLE / max(len(names), 1) for names in (basis.numbers, basis.categories))
    for term in basis.terms[: len(basis.facts.columns)]:
        (name,) = term.names
        column, support = basis.facts.columns[name], None
        if column.exhaustive:
            shares = _of_levels(basis, term, moments)
            for beside in (counted, in_bins):
                shares = shares.combined(beside[name]) if name in beside else shares
            support = _levels(column, shares, categories)
        elif basis.n_intervals and not basis.is_binary(name):
            support = _ends(basis, term, moments, in_bins.get(name), numbers)
        found |= {} if support is None else {name: support}
    return found


def supported(basis: AdditiveBasis, result: SolverResult, found: Mapping[str, Support]) -> SolverResult:
    """Return the model without effects of which the releases tell next to nothing; post-processing.

    A level without records takes the average effect of its column, over the released shares. Beyond the last knot that records
    are near, the function of a number goes on to a value that it has before, and is constant.

    Parameters
    ----------
    basis : AdditiveBasis
        The basis functions.
    result : SolverResult
        Released coefficients, the intercept last.
    found : dict
        As from `supports`.

    Returns
    -------
    SolverResult
        With other coefficients, and their noise.
    """
    coef, carried = result.coef.copy(), []
    for term in basis.terms:
        if (support := found.get(term.names[0])) is not None and len(term.names) == 1:
            mapped = support.carries(basis, term)
            coef[term.columns] = mapped @ coef[term.columns]
            carried.append((term.columns.start, mapped))
    noise = None if result.noise is None else replace(result.noise, carried=tuple(carried))
    return replace(result, coef=coef, noise=noise)


def _of_levels(basis: AdditiveBasis, term: Term, moments: ReleasedMoments) -> Shares:
    """Return the released shares of the levels of a category."""
    shares = moments.mean[term.columns] * basis.length_in_force
    return Shares(shares, np.full(shares.size, moments.mean_noise * basis.length_in_force))


def _of_hats(basis: AdditiveBasis, term: Term, moments: ReleasedMoments) -> Shares:
    """Return the released shares of the hats of a number."""
    of_hats = float(np.sqrt(len(basis.numbers)))
    shares = moments.mean[basis.hats_of(term)] * of_hats
    return Shares(shares, np.full(shares.size, moments.mean_noise * of_hats))


def _is_empty(found: Shares, limit: np.ndarray | float) -> np.ndarray:
    """Return what is taken to have no records, by released shares."""
    largest = np.maximum(found.shares, 0.0) + DEVIATIONS * found.noise
    return np.asarray((found.shares <= SEEN * found.noise) & (largest <= limit))


def _levels(column: Column, found: Shares, limit: float) -> Support | None:
    """Return the support of a category by shares in the order of its labels, if it has some levels without records."""
    unlisted = np.array([label == OTHER for label in column.labels]) & column.implies_other
    empty = _is_empty(found, min(limit, SPARSE / unlisted.size))
    empty = np.where(unlisted, support(found, np.full(unlisted.size, OTHER_EMPTY)) < LIKELY, empty)
    if empty.all() or not empty.any():
        return None
    kept = np.where(empty, 0.0, np.maximum(found.shares, found.noise / DEVIATIONS))
    # Kept levels stay; an empty one is the average of those, by their shares.
    levels = np.diag(1.0 - empty) + np.outer(empty, kept / max(float(kept.sum()), 1e-300))
    hardly_seen = list(compress(zip(column.labels, found.most.tolist(), strict=True), empty))
    return Support(levels=levels, hardly_seen=hardly_seen)


def _ends(basis: AdditiveBasis, term: Term, moments: ReleasedMoments, in_bins: Shares | None, limit: float) -> Support | None:
    """Return the support of a number by shares of its hats, and of its bins, if next to no record is near an outer knot."""
    (name,), knots = term.names, basis.knots_of(term.names[0])
    ends, taken, hardly_seen = [0, knots.size - 1], [0.0, 1.0], []
    for end, inwards in ((0, 1), (1, -1)):
        # From this end inwards: the first hats together, as long as they and each of them alone are taken to be empty.
        outer = _beyond(basis, term, moments, in_bins, inwards)
        between = (knots[1:] + knots[:-1]) / 2
        even = between if inwards > 0 else 1 - between[::-1]
        hats = _of_hats(basis, term, moments)
        alone = np.logical_and.accumulate((hats.shares <= SEEN * hats.noise)[::inwards])
        empty = np.flatnonzero((_is_empty(outer, np.minimum(limit, SPARSE * np.append(even, 1.0))) & alone)[:-1])
        if empty.size:
            last = int(empty[-1])
            ends[end] += inwards * (last + 1)
            taken[end] = _before_tail(basis, term, hats if in_bins is None else in_bins, float(knots[::inwards][last]), inwards)
            places = knots[::inwards][[last, last + 1]].mean(keepdims=True)  # there, hats of outer knots are a half
            middle = float(basis.grid(name, fine=False, places=places)[0])
            part = (-np.inf, middle) if inwards > 0 else (middle, np.inf)
            hardly_seen.append((part, min(2 * float(outer.most[last]), 1.0)))
    low, high = ends
    if not hardly_seen or low >= high:
        return None
    at_low, at_high = np.clip(taken, *knots[[low, high]]).tolist()
    return Support(ends=(low, high), places=(at_low, at_high), hardly_seen=hardly_seen)


def _before_tail(basis: AdditiveBasis, term: Term, found: Shares, end: float, inwards: int) -> float:
    """Return the place beyond which, up to an end, a share `TAIL` of the records is; the end itself if noise hides it.

    The shares are those of bins, or of hats.
    """
    knots = basis.knots_of(term.names[0])
    places = knots if found.shares.size == knots.size else bin_places(basis, term)[: EDGES.size + 1]
    inside = np.flatnonzero(places * inwards >= end * inwards)[::inwards]
    shares, noise = np.cumsum(found.shares[inside]), np.sqrt(np.cumsum(np.square(found.noise[inside])))
    first = int((shares >= TAIL).argmax())
    return float(places[inside[first]]) if shares[first] >= TAIL >= DEVIATIONS * noise[first] else end


def _beyond(basis: AdditiveBasis, term: Term, moments: ReleasedMoments, in_bins: Shares | None, inwards: int) -> Shares:
    """Return the shares of the first hat from an end of a number, of the first two, and so on."""
    knots, hats = basis.knots_of(term.names[0]), _of_hats(basis, term, moments)
    found = Shares(np.cumsum(hats.shares[::inwards]), hats.noise * np.sqrt(1 + np.arange(knots.size)))
    if in_bins is None:
        return found
    places = bin_places(basis, term)
    # The same sums from the shares of bins, with each hat's value in the middle of a bin.
    upto = np.cumsum([np.interp(places, knots, hat) for hat in np.eye(knots.size)[::inwards]], axis=0)
    return found.combined(Shares(upto @ in_bins.shares, np.sqrt(np.square(upto) @ np.square(in_bins.noise))))

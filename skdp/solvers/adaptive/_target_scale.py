"""Release a centre and a spread of targets in any unit, by histograms that each look closer at what the last one found."""

import math
from typing import NamedTuple

import numpy as np

from skdp.privacy.queries import LEAST_EXPONENT, TargetExponents, TargetHistogram
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers._base import Ask, Problem
from skdp.solvers._standardization import mean_noise

# Where no source is named, the constants are choices, made with california and bike in view (docs/defaults.md, "Numbers, a loss
# with a kink").

# Numbers of ranges of the histograms that zoom in: many find targets that are close together, few have less noise in a window.
ZOOMS = 4096, 64, 4096, 64
# Numbers of ranges of the last histogram: in the window with half of the records, and on each side of it. More ranges tell
# quantiles more finely, with more noise.
INNER, OUTER = 16, 8
# Share of the budget of the last histogram, over that of each other: quantiles are read from it.
FOR_LAST = 3.0
# Shares of the records in a window: a window of most targets aims at MOST_SHARE and has at least LEAST_SHARE, the inner one has
# HALF_SHARE. A larger LEAST_SHARE keeps more of the tail, and fails on smaller tables.
MOST_SHARE, LEAST_SHARE, HALF_SHARE = 0.98, 0.8, 0.5
# Largest noise of the densest window that is accepted, as a share of the records; no window is found where it is larger.
FALSE_ALARM = 0.3
# Binary exponents added above the densest window, for the tail of the targets.
HEADROOM = 2
# Where no window is found, the exponents of windows of PRIOR_WINDOW are weighed with a prior that falls by a factor of e per FAR
# exponents away from 0: an unknown unit is more likely near 1.
PRIOR_WINDOW, FAR = 4, 20.0
# Interquartile range over the spread, which is 1.349 for a normal distribution; and the range from 5 % to 95 % over the spread,
# twice the 3.3 of a normal distribution, so that the tail sets the spread only where it is heavy.
QUARTILES, DECILES = 1.349, 6.6
# Largest ratio of the range of most targets to the spread: more than half of the targets may be equal, and their quartiles too.
WIDEST = 64.0
# Least length of a range and least spread: quotients of floats stay finite.
SHORTEST_RANGE = 2.0**-900


class Location(NamedTuple):
    """A quantile of the targets, and a spread, which is the standard deviation of normal targets."""

    centre: float
    spread: float
    median: float = 0.0


def target_releases(problem: Problem, share: float) -> list[tuple[int, Release]]:
    """Return the histograms as entries of the schedule.

    Parameters
    ----------
    problem : Problem
        Public facts.
    share : float
        Share of the squared Gaussian-DP parameter for all of them.

    Returns
    -------
    list of (int, Release)
        Without a public range of the targets a histogram of exponents and four of 4096 and 64 ranges, with one two of these;
        then one of 32.
    """
    bounded, part = _bounded(problem), _part(problem, share)
    lines = [
        *((1, Release(TargetHistogram, Gaussian(1 / math.sqrt(part)), 1.0, size + 2)) for size in _zooms(problem)),
        (1, Release(TargetHistogram, Gaussian(1 / math.sqrt(FOR_LAST * part)), 1.0, INNER + 2 * OUTER + 2)),
    ]
    exponents = Release(TargetExponents, Gaussian(1 / math.sqrt(part)), 1.0, TargetExponents().size)
    return lines if bounded else [(1, exponents), *lines]


def release_location(problem: Problem, share: float, level: float, ask: Ask) -> Location:
    """Ask for the histograms, and return centre and spread of the targets.

    Parameters
    ----------
    problem : Problem
        Public facts.
    share : float
        Share of the squared Gaussian-DP parameter, as in `target_releases`.
    level : float
        Level of the quantile that is the centre, in (0, 1).
    ask : callable
        Answers a query with noise.

    Returns
    -------
    Location
        Without intercept the centre is 0, and the spread is that around 0.
    """
    n = problem.n_samples
    noise = n * mean_noise(problem, TargetExponents(), _part(problem, share))
    least = max(LEAST_SHARE, 1 - min(level, 1 - level) / 2)  # so that the quantile is in the window
    if _bounded(problem):
        high = 1.0
    else:
        high = _largest(ask(TargetExponents()), noise, n, least)
    # Each histogram looks closer at two windows that the one before has found: that of most targets, and that of half of them.
    #   low                                                   high     most targets
    #    |.....................|||||||||||||||..................|      even ranges from low to high
    #                        inner[0]     inner[1]                     half of the targets
    low, inner = -high, (-high, high)
    for size in _zooms(problem):
        edges = np.linspace(low, high, size + 1)
        counts = ask(TargetHistogram(edges))[1:-1]
        inner = _window(counts, edges, noise, n, HALF_SHARE, HALF_SHARE) or (low, high)
        low, high = _window(counts, edges, noise, n, least, MOST_SHARE) or (low, high)
        low, high = min(low, inner[0]), max(high, inner[1])
    edges = _last_edges(low, high, *inner)
    return _location(_cumulated(ask(TargetHistogram(edges)), n), edges, level, bool(problem.intercept_scaling))


def _bounded(problem: Problem) -> bool:
    return problem.target_bound < math.inf


def _part(problem: Problem, share: float) -> float:
    """Return the share of each histogram but the last one."""
    return share / (len(_zooms(problem)) + (not _bounded(problem)) + FOR_LAST)


def _zooms(problem: Problem) -> tuple[int, ...]:
    return ZOOMS[: len(ZOOMS) // 2] if _bounded(problem) else ZOOMS


def _largest(counts: np.ndarray, noise: float, n: int, least: float) -> float:
    """Return a power of two above the absolute values of nearly all targets."""
    exponents, size = counts[1:], counts.size - 1  # counts[0] has the zeros, which say nothing about the unit
    some = max(n - max(float(counts[0]), 0.0), n / 10)
    found = _densest(exponents, noise, some, least, MOST_SHARE)
    if found is None:
        tops = LEAST_EXPONENT + PRIOR_WINDOW + np.arange(size - PRIOR_WINDOW + 1)
        gains = _sums(exponents, PRIOR_WINDOW) * (LEAST_SHARE * some / (PRIOR_WINDOW * max(noise, 1e-9) ** 2))
        top = int(tops[np.argmax(gains - np.abs(tops - 1) / FAR)])
    else:
        top = LEAST_EXPONENT + found[1]
    return math.ldexp(1.0, min(max(top + HEADROOM, -900), 510))


def _sums(counts: np.ndarray, width: int) -> np.ndarray:
    """Return the sums of all runs of ``width`` neighbours."""
    cumulated = np.concatenate([[0.0], np.cumsum(counts)])
    return cumulated[width:] - cumulated[:-width]


def _densest(counts: np.ndarray, noise: float, n: float, least: float, most: float) -> tuple[int, int] | None:
    """Return first place and end (exclusive) of the shortest window with a share of the records; None if noise hides it."""
    width = 1
    while width <= counts.size:
        # Noise of a share of `width` ranges; the largest of `size` such noises is about sqrt(2 log size) times it.
        blur = noise * math.sqrt(width) / n
        if blur * math.sqrt(2 * math.log(counts.size)) > FALSE_ALARM:
            return None
        sums = _sums(counts, width)
        place = int(np.argmax(sums))
        # A window is found if its share is beyond the wanted one, or as near to it as noise allows.
        if sums[place] >= n * max(min(1 - 4 * blur, most), least - blur):
            return place, place + width
        width *= 2
    return None


def _window(counts: np.ndarray, edges: np.ndarray, noise: float, n: int, least: float, most: float) -> tuple[float, float] | None:
    """Return the ends of the densest window, each moved outwards by a quarter of its width."""
    found = _densest(counts, noise, n, least, most)
    if found is None:
        return None
    # The window leaves out a small share of the records, most of which are near it.
    more = max((found[1] - found[0]) // 4, 1)
    return float(edges[max(found[0] - more, 0)]), float(edges[min(found[1] + more, counts.size)])


def _last_edges(low: float, high: float, inner_low: float, inner_high: float) -> np.ndarray:
    """Return the edges of even ranges in the inner window, and of geometrically growing ranges around it."""
    #
    #   low        inner_low                 inner_high        high
    #    |    |   |  | | | | | | | | | | | | | | |  |   |    |
    #     OUTER: growing     INNER: even       OUTER: growing
    width = max((inner_high - inner_low) / INNER, SHORTEST_RANGE)

    def outward(reach: float) -> np.ndarray:
        steps = np.expm1(np.linspace(0.0, math.log1p(max(reach, 0.0) / width), OUTER + 1)[1:])
        return width * steps

    return np.concatenate(
        [
            inner_low - outward(inner_low - low)[::-1],
            np.linspace(inner_low, inner_high, INNER + 1),
            inner_high + outward(high - inner_high),
        ]
    )


def _cumulated(counts: np.ndarray, n: int) -> np.ndarray:
    """Return the shares of the targets below each edge, by the counts below and above it; see `noisy_quantile`."""
    size = counts.size
    below = np.cumsum(counts)[:-1] / n
    above = 1 - (counts.sum() / n - below)
    number = np.arange(1, size)
    return np.clip(np.maximum.accumulate((below * (size - number) + above * number) / size), 0.0, 1.0)


def _location(shares: np.ndarray, edges: np.ndarray, level: float, centred: bool) -> Location:
    # Interpolate quantiles; `np.interp` needs shares that increase.
    rising = shares + np.linspace(0.0, 1e-9, shares.size)
    tail, low, high, other = (float(np.interp(at, rising, edges)) for at in (0.05, 0.25, 0.75, 0.95))
    resolution = max(float(np.diff(edges).min()), float(edges[-1] - edges[0]) / WIDEST, SHORTEST_RANGE)
    if not centred:
        return Location(0.0, max(abs(low), abs(high), abs(tail) / 2, abs(other) / 2, resolution) * 2 / QUARTILES)
    spread = max((high - low) / QUARTILES, (other - tail) / DECILES, resolution)
    return Location(float(np.interp(level, rising, edges)), spread, float(np.interp(0.5, rising, edges)))

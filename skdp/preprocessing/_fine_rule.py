"""Conclude from a noisy fine histogram where the numbers of a column lie, and whether they are few integers.

All are functions of releases and of their noise. The constants are choices, made by the scores of models on public tables.
"""

import math
from dataclasses import replace

import numpy as np

from skdp.preprocessing._octave_rule import LEAST_MASS, LEAST_SQUARE, MODE, NEAR_Z, STEP_SQUARE, Finding, Z
from skdp.privacy.queries.column_histograms import EVEN_BINS, integers_between

__all__ = ["refine"]

# Share of the cells that are there which a window must hold, and the largest noise of its sum, in Z standard deviations.
INSIDE, BLUR = 0.99, 0.25
# Share of a window that is added on both sides as a margin, for a column and for a target: its predictions are clipped.
MARGIN, TARGET_MARGIN = 0.25, 0.5
# Share of the cells that are there which integers that count must hold, for a column to be these integers.
CLEAR = 0.95
# The least share for all integers together if they cannot be told apart; it is larger if less than the rest is in doubt.
# How many standard deviations of their sum are in doubt, and the largest doubt.
TOGETHER, DOUBT, LARGEST_DOUBT = 0.75, 3.0, 0.4
# Share of integers above which they are put into the even bins, too.
MANY = 0.5
# Smallest and largest number of integers that get an indicator each.
FEWEST_INTEGERS, MOST_INTEGERS = 3, 40


def refine(finding: Finding, shares: np.ndarray, sigma: float, target: bool = False) -> Finding:
    """Return what the second histogram of a column adds to the first.

    Parameters
    ----------
    finding : Finding
        What the first histogram told.
    shares : ndarray
        Noisy counts over n: of even bins between the limits, then of integers.
    sigma : float
        Standard deviation of their noise.
    target : bool, default=False
        Whether the column is to be predicted.

    Returns
    -------
    Finding
        The same, or narrower limits.
    """
    low, high = finding.limits
    even, at = shares[:EVEN_BINS], shares[EVEN_BINS:]
    if at.size:
        values, present = integers_between(low, high), 1 - finding.missing
        few = _few_integers(finding, values, at, sigma)
        if few is not None:
            return few
        if at.sum() > MANY * present:
            even = even + np.histogram(values, bins=EVEN_BINS, range=(low, high), weights=at)[0]
    return _narrowed(finding, even, sigma, TARGET_MARGIN if target else MARGIN)


def _few_integers(finding: Finding, values: np.ndarray, at: np.ndarray, sigma: float) -> Finding | None:
    """Return the integers that the column holds; None if it does not look like few integers."""
    present = 1 - finding.missing
    held = at > max(NEAR_Z * sigma, LEAST_MASS)
    if not held.any():
        return None
    clear = at[held].sum() >= CLEAR * present
    doubt = DOUBT * sigma * math.sqrt(values.size)
    enough = min(max(1 - doubt, TOGETHER), CLEAR)  # many zeros beside numbers that are no integers are not enough
    if not clear and not (doubt < LARGEST_DOUBT and at.sum() > enough * present):
        return None
    there = values[held]
    mode, top = float(there[np.argmax(at[held])]), min(float(at[held].max()) / max(present, 1e-9), 1.0)
    low, high = float(there[0]), float(there[-1])
    if low == high and clear:
        return replace(finding, kind="constant", limits=(low, low), core=(low, low), centre=low, square=STEP_SQUARE)
    if not clear:
        first, last = _shortest_run(at, sigma)
        low, high = float(values[first]), float(values[last])
        low, high = (low - 1, high + 1) if low == high else (low, high)
        there = np.arange(low, high + 1)
    return replace(
        finding,
        kind="integers",
        limits=(low, high),
        core=(low, high),
        centre=min(max(mode, low), high) if top > MODE else (low + high) / 2,
        integers=tuple(there.tolist()) if FEWEST_INTEGERS <= there.size <= MOST_INTEGERS else (),
        square=max((1 - top) / 3, LEAST_SQUARE) if top > MODE else 1 / 3,
    )


def _shortest_run(at: np.ndarray, sigma: float) -> tuple[int, int]:
    """Return the first and last place of the shortest run that holds nearly all."""
    total = at.sum()
    for width in range(1, at.size):
        sums = np.convolve(at, np.ones(width), "valid")
        place = int(np.argmax(sums))
        if sums[place] >= min(INSIDE, 1 - sigma * math.sqrt(at.size - width)) * total:
            return place, place + width - 1
    return 0, at.size - 1


def _narrowed(finding: Finding, even: np.ndarray, sigma: float, margin: float) -> Finding:
    """Return the finding with the shortest window of 1, 2, 4, ... bins as limits and core, where noise lets one be seen."""
    low, high = finding.limits
    edges, width = np.linspace(low, high, EVEN_BINS + 1), 1
    while width < EVEN_BINS and Z * sigma * math.sqrt(width) <= BLUR:
        sums = np.convolve(even, np.ones(width), "valid")
        place = int(np.argmax(sums))
        if sums[place] >= INSIDE * (1 - finding.missing):
            more = max(int(width * margin), 1)
            ends = float(edges[max(place - more, 0)]), float(edges[min(place + width + more, EVEN_BINS)])
            zero = finding.zeros > MODE and ends[0] <= 0 <= ends[1]
            return replace(finding, kind="linear", limits=ends, core=ends, centre=finding.centre if zero else sum(ends) / 2)
        width *= 2
    return finding

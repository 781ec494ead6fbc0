"""Conclude from noisy histograms by octave where numbers lie, and from those by hash bucket which spellings are common.

All are functions of releases and of their noise. The constants are choices, made by the scores of models on public tables.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.preprocessing._column_kinds import Category, LearnedScale, Number, further
from skdp.privacy.queries.column_histograms import LOWEST, NUMBER_BINS, OCTAVES, octave_bins, octave_ends

# The bins of a column of numbers, an octave each, by the binary exponent:
#
#     place        0        ...     120    121     122     ...       242        243
#     holds  up to -2^59         > -2^-60   0    < 2^-60        from 2^59 on   missing        (121 is OCTAVES)
#
# What a rule concludes goes from there to limits and a core of the column, in this order: which bins hold more than noise
# (`_believed`), where they end (`_ends`), on which scale they lie (`_magnitudes`).
#
# Standard deviations of the noise above which a single bin counts: one empty column of 243 bins in 35 has a bin above it. With
# 2.5 for buckets, adult gained .007 +- .003 of AUC (additive, epsilon .1, replace_one), bank lost .004 +- .002 (linear, .5,
# replace_one), and all else was level: not taken.
Z = 3.7
# The same for a bin with others at most 3 octaves away; for one without, unless it is the largest but 0; and for one 1, 2 and 3
# octaves beyond a bin that counts, of which the first is also for those between such a bin and 0. An octave too many can cost a
# column its integers or its scale, and the target its range, but only beyond the others: with 4.5 for all far bins and 2.5 for
# all near ones, the range of the target was too wide in 3 of 900 fits of bike at epsilon .3, by factors of 16 to 10**13, and
# hours were on a logarithmic scale in 10 of 400 at epsilon 1.
FAR_Z, LONE_Z, NEAR_Z = 4.5, 6.0, (2.5, 3.1, 3.7)
# Smallest share of the records for which a bin of numbers, or a bucket of spellings, counts: a rarer one is no help to a model.
LEAST_MASS, LEAST_BUCKET = 0.002, 0.001
# All buckets are alike, as those of an ID, if nine tenths of them hold more than half of the median. Then those are common that
# hold more than twice the median.
ALIKE, TWICE = 0.5, 2.0
# Numbers of first buckets that may hold all codes, which are small integers as a rule: the first of these that holds CODED of the
# cells but for a deviation of its noise, which is at most SEEN, if buckets that count by themselves leave out more than LEFT_OUT.
# USUAL_CODES of them where noise hides that, too. Choices, with hours of bike in view, each of which is hard to see;
# with powers of 2 alone, 24 codes got 32 indicators at a noise of .01.
RUNS, CODED, SEEN, LEFT_OUT, USUAL_CODES = (8, 12, 16, 24, 32, 48, 64, 96, 128), 0.95, 0.1, 0.02, 32
# Share of the records at either end that does not set the core: a few outliers would.
TRIM = 0.005
# Share of the records that may be in no bin that counts, beside twice the noise, before the core is made symmetric around 0; and
# the share of targets, whatever the noise, because predictions are clipped to their range.
UNSEEN, TARGET_UNSEEN = 0.25, 0.02
# Noise of a bin, as a share of the records, from which on limits are one octave, and two, beyond the core: it hides a tail.
FURTHER = (0.004, 0.015)
# Largest difference of neighbouring octaves of one group of magnitudes, for a robust loss. A choice: outliers from a wrong unit
# are hundreds or thousands of times as large as other values, and noise hides single octaves.
APART = 3
# Standard deviations of the noise above which the octaves beyond the core must be for the range of a target to reach there: the
# noise of a model is in proportion to this range. Of 0, .5, 1 and 2 (0 for always), chosen on bike and eight made-up targets at
# signals where noise hides a tail: R2 changed by -.0015 (amounts, whose R2 is .2) to +.0023, on average by +.0003. For other
# columns, whose limits cost little, the same lost .00 to .01 on bike and .00 to .02 on ijcnn1 (additive, epsilon .1 and .5).
HINT = 1.0
# Octaves from the median magnitude to the one at MOST from which on a column is on a logarithmic scale.
HEAVY = 3
# The same from which on a column of one sign is skewed. A linear model gets its logarithm beside it, because the effect may be
# linear in either. On made-up frames of skewed columns (seeds 0 to 3, epsilon .5 and 3) that gave +.001 to +.11 in AUC and R2,
# whether effects were linear, logarithms or roots. An additive model gets the logarithm alone (+.000 to +.002).
SKEWED = 2
# Shares of the magnitudes below the unit of a logarithm (of one sign), below the median, and below the far end.
TENTH, HALF, MOST = 0.1, 0.5, 0.98
# Octaves between the median magnitude and the largest bound of a logarithm: outliers do not set the scale.
FURTHEST_OCTAVES = 20
# Octaves of the window where no bin counts, the weight of the release there against exponents near 0, and their unit.
WINDOW, GAIN, PRIOR = 4, 0.1, 10
# Limits of a column that nothing is known of, in sizes of its core.
UNDETERMINED_LIMITS = 4.0
# Share of one value from which on it is mapped to 0.
MODE = 0.5
# What a column of a single value, or a share of it, adds to the squared length of a row, and the least of other columns.
STEP_SQUARE, LEAST_SQUARE = 0.1, 0.02


@dataclass(frozen=True)
class Finding:
    """What the releases tell of a column of numbers; shares are of the records.

    Parameters
    ----------
    kind : {"linear", "log", "constant", "integers", "undetermined"}
        What it looks like.
    limits : tuple of float
        Lowest and highest value to keep.
    core : tuple of float
        Ends of what is scaled to about [-1, 1].
    centre : float
        Value that is mapped to 0.
    missing : float
        Share of missing cells; 0 if they are too few to be told from noise, and 1 if all others are.
    zeros : float, default=0.0
        Share of zeros among the cells that are there.
    unit : float, default=1.0
        Unit of the logarithm.
    integers : tuple of float, default=()
        Integers that get an indicator each.
    square : float, default=1/3
        Mean square of the scaled value.
    binary : bool, default=False
        Whether the limits are its only two values.
    logarithm : float, default=0.0
        Unit of a logarithm beside the number; 0 if there is none.
    other : float, default=0.0
        Share that cells which are no numbers do not exceed, but for more than `Z` standard deviations of its noise.
    """

    kind: str
    limits: tuple[float, float]
    core: tuple[float, float]
    centre: float
    missing: float
    zeros: float = 0.0
    unit: float = 1.0
    integers: tuple[float, ...] = ()
    square: float = 1 / 3
    binary: bool = False
    logarithm: float = 0.0
    other: float = 0.0

    @property
    def narrows(self) -> bool:
        """Whether a fine histogram between the limits may tell more."""
        return self.kind in ("linear", "undetermined") and self.missing < 1

    def number(self) -> Number:
        """Return the entry of the schema."""
        scale = {"log": "log", "constant": "sign"}.get(self.kind, "linear")
        low, high = self.limits if self.limits[0] < self.limits[1] else (self.centre - 1.0, self.centre + 1.0)
        mean_square = self.square + self.missing + bool(self.integers)
        return Number(
            (low, high),
            scale,
            min(max(self.centre, low), high),
            LearnedScale(
                self.core, self.centre, self.unit, self.integers, self.missing > 0, mean_square, self.binary, self.logarithm
            ),
        )


def common_buckets(shares: np.ndarray, sigma: float, codes: bool = False) -> tuple[Category, float]:
    """Return the buckets that are common, and the share of missing cells, 0 if they are not.

    Parameters
    ----------
    shares : ndarray of shape (257,)
        Noisy counts over n; the last is of missing cells.
    sigma : float
        Standard deviation of their noise.
    codes : bool, default=False
        Whether the user says that the column is one of categories: codes, as a rule, because text needs no word.

    Returns
    -------
    tuple of (Category, float)
        The entry of the schema, and the share.
    """
    least, (low, median) = max(Z * sigma, LEAST_BUCKET), np.quantile(shares[:-1], (TENTH, HALF))
    missing = bool(shares[-1] > least)
    kept = shares[:-1] > max(TWICE * median if low > ALIKE * median else 0.0, least)
    if codes and 1 - shares[-1] * missing - shares[:-1][kept].sum() > LEFT_OUT:
        kept[: _number_of_codes(shares, sigma)] = True
    return Category((), tuple(np.flatnonzero(kept).tolist()), missing), min(float(shares[-1]), 1.0) if missing else 0.0


def _number_of_codes(shares: np.ndarray, sigma: float) -> int:
    """Return how many of the first buckets hold nearly all cells, 0 if all do not, and a usual number if noise hides it."""
    noises = [sigma * math.sqrt(number) for number in RUNS]
    for number, noise in zip(RUNS, noises, strict=True):
        if noise <= SEEN and shares[:number].sum() >= CODED - noise:
            return number
    return USUAL_CODES if noises[-1] > SEEN else 0


def number_or_text(shares: np.ndarray, sigma: float, target: bool = False) -> Finding | tuple[Category, float]:
    """Return what a column is whose cells are numbers or text: the kind of the larger mass that counts.

    A description, which counts numbers among text as such, takes it for text unless numbers that count are most of its cells.

    Parameters
    ----------
    shares : ndarray of shape (500,)
        Noisy counts over n: by octave, of missing cells, then by bucket.
    sigma : float
        Standard deviation of their noise.
    target : bool, default=False
        Whether nothing of the numbers is cut off, as for a description.

    Returns
    -------
    Finding or tuple of (Category, float)
        As from `place_octaves`, which takes text for missing cells, or as from `common_buckets`, which takes numbers for others.
    """
    octaves, buckets = np.split(shares, [NUMBER_BINS])
    numbers, texts = (float(part[part > max(Z * sigma, LEAST_MASS)].sum()) for part in (octaves[:-1], buckets))
    if texts > numbers or (target and 2 * numbers < 1 - missing_share(octaves, sigma)):
        return common_buckets(np.append(buckets, octaves[-1]), sigma)
    # One of 256 empty buckets is above Z in 3 of 100 columns, and would show as missing cells that there are not.
    texts = float(buckets[buckets > max(FAR_Z * sigma, LEAST_MASS)].sum())
    held = int(np.count_nonzero(octaves[:-1] > max(Z * sigma, LEAST_MASS)))
    other = min(max(1 - numbers + Z * sigma * math.sqrt(held), 0.0), 1.0)
    return replace(place_octaves(np.append(octaves[:-1], octaves[-1] + texts), sigma, target), other=other)


def text_share(shares: np.ndarray, sigma: float) -> float:
    """Return the share of the cells that are text; 0 if noise may be all of it. Parameters are those of `number_or_text`.

    All shares add up to 1, so that there are two estimates, whose noise is independent: the sum over the buckets, and 1 less all
    others. This is their mean.
    """
    others, buckets = np.split(shares, [NUMBER_BINS])
    share = float(buckets.sum() + 1 - others.sum()) / 2
    return min(share, 1.0) if share > Z * sigma * math.sqrt(shares.size) / 2 else 0.0


def place_octaves(shares: np.ndarray, sigma: float, target: bool = False, robust: bool = False) -> Finding:
    """Return what the first histogram of a column of numbers tells.

    Parameters
    ----------
    shares : ndarray of shape (244,)
        Noisy counts over n, by octave; the last is of missing cells.
    sigma : float
        Standard deviation of their noise.
    target : bool, default=False
        Whether the column is to be predicted: nothing of it is cut off or set on a logarithmic scale.
    robust : bool, default=False
        Whether magnitudes that are far from most others are cut off all the same, for a robust loss.

    Returns
    -------
    Finding
        Limits, core and centre.
    """
    # 1. Bins that hold more than noise, their mass, and the share of zeros among the cells that are there.
    missing = missing_share(shares, sigma)
    found = _believed(shares[:-1], sigma)
    if missing == 1 or not found.any():
        return _guess(shares[:-1] * (missing < 1), sigma, missing)
    mass = np.where(found, np.maximum(shares[:-1], 0.0), 0.0)
    total = float(mass.sum())
    zeros = float(mass[OCTAVES] / max(total, 1 - missing, 1e-9))
    if robust:
        found &= _together(mass, found)
    # 2. The core: from the first to the last of these bins. It is symmetric if noise hides much of the column.
    low, high = _ends(mass, found, 0.0 if target else TRIM)
    if low == high == 0.0:  # zero is all that shows
        return Finding("constant", (0.0, 0.0), (0.0, 0.0), 0.0, missing, zeros, square=STEP_SQUARE)
    both_signs = low < 0 < high
    unseen = TARGET_UNSEEN if target else UNSEEN + 2 * sigma
    if 1 - missing - total > unseen:
        low, high = -max(-low, high), max(-low, high)
    # 3. The limits: some octaves beyond, where noise may hide a tail.
    core, limits = (low, high), further(low, high, 2.0 ** sum(sigma > noise for noise in FURTHER[: 1 if target else 2]))
    if target:
        limits = _hinted(limits, core, shares[:-1], HINT * sigma)
    # 4. The scale: logarithmic if the largest magnitudes are octaves above the median, else linear around 0 or the middle.
    tenth, half, most = _magnitudes(mass)
    square = max((1 - zeros) / 3, LEAST_SQUARE)
    if most - half >= HEAVY and not target:
        unit, cap = 2.0 ** (LOWEST + (half if both_signs else tenth) - 1), 2.0 ** (LOWEST + half + FURTHEST_OCTAVES)
        limits = max(min(limits[0], 0.0), -cap), min(max(limits[1], 0.0), cap)
        return Finding("log", limits, (max(core[0], -cap), min(core[1], cap)), 0.0, missing, zeros, unit, square=square)
    if zeros > 0:  # zero is a value of the column
        core, limits = (min(low, 0.0), max(high, 0.0)), (min(limits[0], 0.0), max(limits[1], 0.0))
    if zeros > MODE:  # zero stays zero: rows of many such columns are short
        return Finding("linear", limits, core, 0.0, missing, zeros, square=square)
    skewed = most - half >= SKEWED and not both_signs and not target and sigma <= FURTHER[1]  # else noise hides one sign
    unit = 2.0 ** (LOWEST + tenth - 1) if skewed else 0.0
    return Finding("linear", limits, core, sum(core) / 2, missing, zeros, logarithm=unit)


def _together(mass: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return which bins are among those of similar magnitudes that hold the most records; 0 is."""
    # magnitudes: the positive side plus the mirrored negative side, smallest first
    sizes, beside = (part[OCTAVES + 1 :] + part[:OCTAVES][::-1] for part in (mass, found))
    places = np.flatnonzero(beside)
    if not places.size:
        return np.ones(found.size, dtype=bool)
    groups = np.split(places, np.flatnonzero(np.diff(places) > APART) + 1)
    largest = max(groups, key=lambda group: float(sizes[group].sum()))
    kept = np.zeros(sizes.size, dtype=bool)
    kept[largest] = True
    return np.concatenate([kept[::-1], [True], kept])


def missing_share(shares: np.ndarray, sigma: float) -> float:
    """Return the share of missing cells, whose noisy count is the last; 0 and 1 if noise hides that it is neither."""
    least = max(Z * sigma, LEAST_MASS)
    return 0.0 if shares[-1] <= least else 1.0 if shares[-1] >= 1 - least else float(shares[-1])


def _believed(mass: np.ndarray, sigma: float) -> np.ndarray:
    """Return which bins hold something: far ones by themselves, near ones by less, and also two neighbours together."""
    # 1. Bins that count by themselves: high, and with another within three octaves, or very high, or the largest of the likeliest
    #    octaves. The largest of all bins would be noise in 1 of 100 columns that have no high one.
    core, usual = mass > max(FAR_Z * sigma, LEAST_MASS), np.where(_usual(mass, sigma), mass, -np.inf)
    largest = np.delete(usual, OCTAVES).max()
    core &= (np.convolve(core, np.ones(2 * len(NEAR_Z) + 1), "same") > 1) | (mass > LONE_Z * sigma) | (mass == largest)
    if not core.any():
        core = (usual == usual.max()) & (usual > Z * sigma)
    # 2. Bins near these, on either side of 0; 3. the bin of zero.
    #  -2^60 .......... -2^-60 | 0 | 2^-60 .......... 2^60     bins; OCTAVES is the place of 0
    #      3 2 1 C 1 1 1 . . . . | 0 | . . . . 1 1 1 C 1 2 3    C counts by itself; the limits nearby are these of NEAR_Z
    found = core.copy()
    for side in (np.s_[OCTAVES + 1 :], np.s_[OCTAVES - 1 :: -1]):  # from 0 on
        found[side] |= _near(mass[side], core[side], sigma)
    found[OCTAVES] = mass[OCTAVES] > max(Z * sigma, LEAST_MASS)
    return found


def _near(mass: np.ndarray, core: np.ndarray, sigma: float) -> np.ndarray:
    """Return which bins of one sign, from 0 on, hold something near a bin that counts: inside of it by less than beyond it."""
    reach, found = len(NEAR_Z), np.zeros(core.size, dtype=bool)
    places = np.pad(core, reach)

    def is_core(octaves: int) -> np.ndarray:  # whether the bin at this distance, away from 0, counts
        return places[reach + octaves : reach + octaves + core.size]

    # Two neighbours together: their sum has sqrt(2) times the noise.
    pairs = np.append(mass[:-1] + mass[1:], 0.0)
    # `is_core(k)` looks k octaves further out: such a bin is inside. `is_core(-k)` looks back: it is k octaves beyond.
    for octaves, z in enumerate(NEAR_Z, start=1):
        found |= is_core(octaves) & (mass > max(NEAR_Z[0] * sigma, LEAST_MASS))
        found |= is_core(-octaves) & (mass > max(z * sigma, LEAST_MASS))
    # The pair (i, i + 1) begins 2 or 3 octaves before a bin that counts, or 1 or 2 beyond it.
    for octaves, z in ((2, NEAR_Z[0]), (3, NEAR_Z[0]), (-1, NEAR_Z[1]), (-2, NEAR_Z[1])):
        both = np.flatnonzero(is_core(octaves) & (pairs > max(z * sigma * math.sqrt(2), LEAST_MASS)))
        for place in both:
            if not (found | core)[place : place + 2].any():
                found[place : place + 2] = True
    return found


def _likeliest(mass: np.ndarray, sigma: float) -> int:
    """Return the first of the likeliest octaves, from the smallest one on; exponents near 0 are likely beforehand."""
    sizes = mass[OCTAVES + 1 :] + mass[:OCTAVES][::-1]
    sums = np.convolve(sizes, np.ones(WINDOW), "valid")
    exponents = LOWEST + WINDOW - 1 + np.arange(sums.size)
    # A log-likelihood in proportion to the mass of the window, and a prior that falls with the exponent.
    gain = GAIN / max(sigma, LEAST_MASS / Z) ** 2
    return int(np.argmax(sums * gain - np.abs(exponents) / PRIOR))


def _usual(mass: np.ndarray, sigma: float) -> np.ndarray:
    """Return which bins are the likeliest octaves, of either sign, or zero."""
    usual, first = np.zeros(mass.size, dtype=bool), 1 + _likeliest(mass, sigma)
    usual[OCTAVES + first : OCTAVES + first + WINDOW] = usual[OCTAVES - first - WINDOW + 1 : OCTAVES - first + 1] = True
    usual[OCTAVES] = True
    return usual


def _guess(mass: np.ndarray, sigma: float, missing: float) -> Finding:
    """Return the likeliest octaves of either sign where no bin counts."""
    top = 2.0 ** (LOWEST + WINDOW - 1 + _likeliest(mass, sigma))
    return Finding("undetermined", (-UNDETERMINED_LIMITS * top, UNDETERMINED_LIMITS * top), (-top, top), 0.0, missing)


def _ends(mass: np.ndarray, found: np.ndarray, trim: float) -> tuple[float, float]:
    """Return the ends of the bins that count, without a share of the mass at either end."""
    below, above = np.cumsum(mass) / mass.sum(), np.cumsum(mass[::-1])[::-1] / mass.sum()
    kept = np.flatnonzero(found & (below > trim) & (above > trim))
    low, high = octave_ends()
    return float(low[kept[0]]), float(high[kept[-1]])


def _hinted(limits: tuple[float, float], core: tuple[float, float], mass: np.ndarray, least: float) -> tuple[float, float]:
    """Return limits that are beyond the core only where bins there hold more than a mass together."""
    lows, highs = octave_ends()
    below = mass[(lows >= limits[0]) & (highs <= core[0])].sum()
    above = mass[(lows >= core[1]) & (highs <= limits[1])].sum()
    return (limits[0] if below > least else core[0]), (limits[1] if above > least else core[1])


def _magnitudes(mass: np.ndarray) -> tuple[int, int, int]:
    """Return the octaves of three magnitudes: one that a tenth is below, the median, and one that nearly all are below."""
    sizes = mass[OCTAVES + 1 :] + mass[:OCTAVES][::-1]
    cumulated = np.cumsum(sizes) / max(float(sizes.sum()), 1e-12)
    tenth, half, most = (int(np.searchsorted(cumulated, share)) for share in (TENTH, HALF, MOST))
    return tenth, half, most


FALSE_BIN, TRUE_BIN = octave_bins(np.array([0.0, 1.0])).tolist()
ENDS = 0.0, 1.0


def place_truths(shares: np.ndarray, sigma: float) -> Finding:
    """Return what the first histogram tells of a column whose cells are true, false or missing.

    Parameters
    ----------
    shares : ndarray of shape (244,)
        Noisy counts over n, by octave; the last is of missing cells.
    sigma : float
        Standard deviation of their noise.

    Returns
    -------
    Finding
        Limits are 0 and 1. What most cells are is mapped to 0.
    """
    missing = missing_share(shares, sigma)
    if missing == 1:
        return Finding("undetermined", ENDS, ENDS, 0.5, missing, binary=True)
    seen = {float(value): float(shares[place]) for value, place in ((0, FALSE_BIN), (1, TRUE_BIN))}
    mode = max(seen, key=seen.__getitem__)
    top = min(seen[mode] / (1 - missing), 1.0)
    if not (top > MODE and seen[mode] > max(Z * sigma, LEAST_MASS)):
        return Finding("integers", ENDS, ENDS, 0.5, missing, binary=True)
    return Finding("integers", ENDS, ENDS, mode, missing, square=max((1 - top) / 3, LEAST_SQUARE), binary=True)

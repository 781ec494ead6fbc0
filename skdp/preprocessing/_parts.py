"""Say of which parts of columns the releases tell next to nothing, and find records to predict for that have them.

A part of a column is a level of it, "other", "missing", or a range of numbers.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtrc, ndtr

from skdp._table_types import is_lazy
from skdp._validation import first_of
from skdp.preprocessing._cells import number_cells
from skdp.preprocessing._column_kinds import OTHER, Column
from skdp.privacy.errors import warn

# Name as from `Column.parts_of_cells`, or a range (low, high) of numbers, without its ends, which may be infinite.
Part = str | tuple[float, float]
# A part, and the largest share of the records of the fit that may have it; nan where no release tells a share.
HardlySeen = tuple[Part, float]
MISSING = "missing"
LARGEST = 2.0  # share of a part over the mean of its column, up to which all are equally likely; a choice
MOST_DEVIATIONS = 3.0  # of noise that a true share may be above the released one; a choice
# Share of cells that are no numbers, or of no category, which is usual besides that of the fit, and the same where nothing is
# known of the fit: a schema states categories and bounds, and not how many cells are beyond; and noise can hide tails from
# learned ones. How unlikely what is seen must be for such shares. Choices: of 1000 cells, 22 that are new warn, and 4 of 20.
BESIDE, MOST_UNKNOWN, UNLIKELY = 0.01, 0.5, 1e-3
LEAST_NOISE, MOST_NOISE = 1e-9, 1e3  # of a share; beyond, a release tells all, or nothing


@dataclass(frozen=True, eq=False)
class Shares:
    """Released shares of the records that have each part of a column.

    Parameters
    ----------
    shares : ndarray of shape (k,)
        Noisy shares.
    noise : ndarray of shape (k,)
        Standard deviations of their noise; infinite where nothing is released.
    """

    shares: np.ndarray
    noise: np.ndarray

    @property
    def most(self) -> np.ndarray:
        """Largest shares that the releases do not exclude, from 0 to 1."""
        return np.minimum(np.maximum(self.shares, 0.0) + MOST_DEVIATIONS * self.noise, 1.0)

    def combined(self, other: "Shares") -> "Shares":
        """Return the means of two releases, weighted by their precision."""
        with np.errstate(divide="ignore", invalid="ignore"):
            of_self = np.where(np.isinf(self.noise), 0.0, self.noise**-2.0)
            of_other = np.where(np.isinf(other.noise), 0.0, other.noise**-2.0)
            first = np.where(np.isinf(of_self), 1.0, np.where(np.isinf(of_other), 0.0, of_self / (of_self + of_other)))
            first = np.where(of_self + of_other == 0, 0.5, first)
            noise = (of_self + of_other) ** -0.5
        return Shares(first * self.shares + (1 - first) * other.shares, noise)


def support(found: Shares, odds: np.ndarray) -> np.ndarray:
    """Return how probable it is that records have each part.

    Before the releases a part is empty with given odds, or has any share up to `LARGEST` times the mean with equal probability.

    Parameters
    ----------
    found : Shares
        Released shares.
    odds : ndarray of shape (k,)
        Prior probability that no record has the part, over that of all other shares.

    Returns
    -------
    ndarray of shape (k,)
        Posterior probabilities.

    Notes
    -----
    **Privacy.** Computed from releases and public facts: post-processing.
    """
    largest = min(LARGEST / found.shares.size, 1.0)
    noise = np.clip(found.noise, LEAST_NOISE, MOST_NOISE)
    released = np.clip(found.shares, -MOST_NOISE, largest)
    low, high = (ndtr((end - released) / noise) for end in (0.0, largest))
    there = noise * math.sqrt(2 * math.pi) * (high - low) / largest
    with np.errstate(under="ignore"):
        empty = odds * np.exp(-0.5 * np.square(released / noise))
    return there / np.maximum(there + empty, np.finfo(float).tiny)


def hardly_seen_in_words(hardly_seen: Mapping[str, Sequence[HardlySeen]]) -> str:
    """Return the parts of all columns as text; "" if there are none."""
    found = [
        f"{name}: {_in_words(part)} ({'no share is released' if math.isnan(most) else f'at most {most:.2g}'})"
        for name, parts in hardly_seen.items()
        for part, most in parts
    ]
    return f"shares of the records: {', '.join(found)}" if found else ""


def warn_of_unknown(fitted: Any, X: Any) -> frozenset[str]:
    """Warn if records to predict for have more cells than those of the fit that are no numbers, of no category, or out of range.

    The records are those of the user who predicts, so that the message may count their cells.

    Parameters
    ----------
    fitted : estimator
        The fitted estimator; its ``learnt_`` tells how many such cells the fit may have had.
    X : DataFrame, or table in partitions
        Records; a table that is not in memory is not looked at.

    Returns
    -------
    frozenset of str
        The columns that it names.
    """
    names, told = [] if is_lazy(X) else list(getattr(X, "columns", ())), set[str]()
    found, learned = list[str](), getattr(fitted, "learnt_", {})
    for name, facts in ((name, facts) for name, facts in fitted.schema_.columns.items() if names.count(name) == 1):
        of_fit = learned.get(name, {})
        missing = max((of_fit[key] for key in ("missing", "other_at_most") if key in of_fit), default=MOST_UNKNOWN)
        for cells, usual, what in facts.unusual(X[name], of_fit, missing, MOST_UNKNOWN):
            if cells and bdtrc(cells - 1, len(X[name]), min(usual + BESIDE, 1.0)) < UNLIKELY:
                found.append(f"{cells} of {len(X[name])} cells of {name!r} {what}")
                told.add(name)
    if found:
        listed, more = first_of(found)
        warn(
            f"X does not look like the records of the fit: {'; '.join(listed)}{more}. Use the units, spellings and "
            "types of the fit, such as 'yes', and neither 'YES', True nor 1; 1.5, and not '1,5'; dates by their type, and not "
            "'2024-05-01'.",
            UserWarning,
        )
    return frozenset(told)


def warn_of_hardly_seen(fitted: Any, X: Any, told: Collection[str] = ()) -> None:
    """Warn if records to predict for have, more often than those of the fit may, what the releases tell next to nothing about.

    Parameters
    ----------
    fitted : estimator
        The fitted estimator; its ``hardly_seen_`` has parts by column, each with the largest share of those of the fit.
    X : DataFrame, or table in partitions
        Records; a table that is not in memory is not looked at.
    told : collection of str, default=()
        Columns that another warning names. Of these, levels alone are named here.
    """
    hardly_seen = {} if is_lazy(X) else getattr(fitted, "hardly_seen_", {})
    found = []
    for name in (name for name in hardly_seen if name in getattr(X, "columns", ())):
        parts = [
            (part, most)
            for part, most in hardly_seen[name]
            if name not in told or (isinstance(part, str) and part not in (MISSING, OTHER))
        ]
        parts = [part for part, most in parts if _share(fitted.schema_.columns[name], part, X[name]) > np.nan_to_num(most)]
        found += [f"{name!r}: {_in_words(part)}" for part in parts]
    if found:
        listed, more = first_of(found)
        warn(
            "X has what no training record had, or so few that the releases do not tell its effect. Predictions take what is "
            f"usual for the column: {', '.join(listed)}{more}. Use spellings and ranges as in the fit.",
            UserWarning,
        )


def _share(facts: Column, part: Part, column: Any) -> float:
    if isinstance(part, str):
        has = facts.parts_of_cells(column) == part
    else:
        numbers = number_cells(column)
        has = (numbers > part[0]) & (numbers < part[1])
    return float(np.mean(has)) if len(has) else 0.0


def _in_words(part: Part) -> str:
    if isinstance(part, str):
        return part
    low, high = part
    if np.isinf(low):
        return f"below {high:.6g}"
    return f"above {low:.6g}" if np.isinf(high) else f"{low:.6g} to {high:.6g}"

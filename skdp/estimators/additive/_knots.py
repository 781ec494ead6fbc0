"""Choose the knots of an additive model: how many are worth their noise, and where, perhaps from a first release."""

import math
from dataclasses import replace

import numpy as np

from skdp.estimators.additive._inferred import fitted_first, independent
from skdp.estimators.additive._knot_placement import finest, hat_columns, placed, refinement
from skdp.preprocessing import AdditiveBasis
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import HatSums
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers import Problem

# Signal-to-noise ratio per column of numbers below which a classifier gets no hats, and ratio up to which it gets
# FEWEST_INTERVALS; above it, the number grows with the cube root of the ratio. Choices: smaller values give more hats.
FAINTEST, USUAL = 6.0, 200.0
FEWEST_INTERVALS, MOST_INTERVALS = 4, 16  # limits of the number of even intervals of a classifier; choices
REGRESSION_INTERVALS = 16, 8, 4  # numbers of even intervals that a regression tries, in this order; choices
# Signal-to-noise ratio per function that a regression needs for each interval. A choice: with 4 intervals for none, R2 of bike
# falls by .016 at a ratio of 9 and by .001 at 14, and grows by .004 at 15 and 20; that of california grows by .03 at 7 to 40.
SIGNAL_PER_INTERVAL = 13 / 4

SHARE = 0.05  # share of the squared Gaussian-DP parameter for the release that places knots; a choice
# Largest standard deviation of the released share of the records near a place. A choice: a larger value releases knots with more
# noise. About ten places divide a quarter of the range.
DROWNED = 0.1
# By how much the noise of knots moves a function that is no line between them, over its largest distance from one, per noise of
# the share of the records near a place, relative to that in an interval; and at most. With noise in the shares, knots of refits
# differ. In 40 fits of the same records (10 cells: 4 numbers, two of them correlated by .9; seed 11), the curve with the largest
# bends varied by .05 to .3 of that distance, and the factor gives .1 to .3.
OF_KNOTS, MOST_OF_KNOTS = 15.0, 0.3


def intervals_for_classes(signal: float, basis: AdditiveBasis) -> int:
    """Return the number of even intervals that are worth their noise for class labels, 0 for no hats."""
    if not basis.numbers or signal / len(basis.numbers) < FAINTEST:
        return 0
    wanted = FEWEST_INTERVALS * (signal / len(basis.numbers) / USUAL) ** (1 / 3)
    return round(min(max(wanted, FEWEST_INTERVALS), MOST_INTERVALS))


def intervals_for_numbers(signal: float, basis: AdditiveBasis) -> int:
    """Return the same for a regression, whose solver releases the second moment of all functions."""
    sizes = {m: replace(basis, n_intervals=m).n_features for m in REGRESSION_INTERVALS if basis.numbers}
    return next((m for m, size in sizes.items() if signal / size >= SIGNAL_PER_INTERVAL * m), 0)


def drowned(budget: Budget, n_samples: int, basis: AdditiveBasis) -> bool:
    """Return whether noise would dominate the release that places knots, or there are none to place; from public facts."""
    if not basis.n_intervals or basis.knots.size < 4 or not basis.numbers:
        return True
    return _noise(budget) * _share_per_unit(n_samples, basis) > DROWNED


def moves(budget: Budget, n_samples: int, basis: AdditiveBasis) -> float:
    """Return the deviation of a function by the noise of its knots, over its largest distance from lines between them."""
    if not basis.placed:
        return 0.0
    return min(OF_KNOTS * basis.n_intervals * _noise(budget) * _share_per_unit(n_samples, basis), MOST_OF_KNOTS)


def front_of(basis: AdditiveBasis, inference: bool = False) -> Release:
    """Return the release that places the knots, for inference at quantiles."""
    return Release(HatSums, Gaussian(), 1.0, hat_columns(finest(basis, inference)).size)


def release_knots(problem: Problem, basis: AdditiveBasis, oracle: Oracle, inference: bool = False) -> AdditiveBasis:
    """Ask where the records are, place the knots, and map the rows from the finest basis to the basis with these knots.

    Parameters
    ----------
    problem : Problem
        Public facts.
    basis : AdditiveBasis
        The basis with even knots.
    oracle : Oracle
        The oracle, which holds rows of the basis `finest`, for inference those that `fitted_first` names.
    inference : bool, default=False
        Whether the fit is for inference.

    Returns
    -------
    AdditiveBasis
        The basis with the same number of knots, computed from the release and public facts.
    """
    fine = finest(basis, inference)
    behind = fitted_first(fine) if inference else np.arange(fine.n_features)
    sums = oracle.ask(HatSums(np.flatnonzero(np.isin(behind, hat_columns(fine)))))
    unit = _share_per_unit(problem.n_samples, basis)
    found = placed(basis, sums * unit, _noise(problem.budget) * unit if inference else None)
    matrix = refinement(fine, found)[behind]
    oracle.map_rows(matrix[:, independent(found)] if inference else matrix)
    return found


def _noise(budget: Budget) -> float:
    """Return the standard deviation of the noise of a sum of hats."""
    mu = math.sqrt(SHARE) * gaussian_mu(budget.epsilon, budget.delta)
    return HatSums.relative_sensitivity[budget.adjacency] / mu


def _share_per_unit(n_samples: int, basis: AdditiveBasis) -> float:
    """Return the share of all records that a unit of a sum of hats stands for; hats are divided by the root of their number."""
    return math.sqrt(len(basis.numbers)) / n_samples

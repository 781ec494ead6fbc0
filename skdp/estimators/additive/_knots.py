"""Knots of an additive model: how many are worth their noise, and where the records are, from one release before the solver's."""

import math
from dataclasses import replace

from skdp.preprocessing import AdditiveBasis
from skdp.preprocessing._knot_placement import finest, hat_columns, placed, refinement
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import HatSums
from skdp.privacy.schedule import Gaussian, Release
from skdp.solvers import Problem

__all__ = ["SHARE", "drowned", "front_of", "intervals_for_classes", "intervals_for_numbers", "release_knots"]

FAINTEST, USUAL = 6.0, 200.0  # signal-to-noise per number: the least for which hats are worth it, and that of the middle rule
FEWEST_INTERVALS, MOST_INTERVALS = 4, 16
REGRESSION_INTERVALS = 16, 8, 4
SIGNAL_PER_INTERVAL = 15 / 4  # signal-to-noise per function that an interval of a regression is worth

SHARE = 0.05  # of the squared Gaussian-DP parameter
DROWNED = 0.1  # standard deviation of a share of the records near a place: about ten places divide a quarter of the range


def intervals_for_classes(signal: float, basis: AdditiveBasis) -> int:
    """Return the number of even intervals that are worth their noise for class labels, 0 for no hats."""
    if not basis.numbers or signal / len(basis.numbers) < FAINTEST:
        return 0
    wanted = FEWEST_INTERVALS * (signal / len(basis.numbers) / USUAL) ** (1 / 3)
    return round(min(max(wanted, FEWEST_INTERVALS), MOST_INTERVALS))


def intervals_for_numbers(signal: float, basis: AdditiveBasis) -> int:
    """Return it for a regression, whose solver releases a second moment of all functions."""
    sizes = {m: replace(basis, n_intervals=m).n_features for m in REGRESSION_INTERVALS if basis.numbers}
    return next((m for m, size in sizes.items() if signal / size >= SIGNAL_PER_INTERVAL * m), 0)


def drowned(budget: Budget, n_samples: int, basis: AdditiveBasis) -> bool:
    """Return whether noise would hide where records are, or there is nothing to place; a public fact."""
    if not basis.n_intervals or basis.knots.size < 4 or not basis.numbers:
        return True
    mu = math.sqrt(SHARE) * gaussian_mu(budget.epsilon, budget.delta)
    noise = HatSums.relative_sensitivity[budget.adjacency] / mu
    return noise * _share_per_unit(n_samples, basis) > DROWNED


def front_of(basis: AdditiveBasis) -> Release:
    """Return the release by which knots are placed."""
    return Release(HatSums, Gaussian(), 1.0, hat_columns(finest(basis)).size)


def release_knots(problem: Problem, basis: AdditiveBasis, oracle: Oracle) -> AdditiveBasis:
    """Ask where the records are, place knots, and map the rows, which were of the finest basis, to the one with these knots.

    Parameters
    ----------
    problem : Problem
        Public facts.
    basis : AdditiveBasis
        With even knots.
    oracle : Oracle
        Holds rows of `finest`.

    Returns
    -------
    AdditiveBasis
        With as many knots; it follows from the release and public facts.
    """
    fine = finest(basis)
    sums = oracle.ask(HatSums(hat_columns(fine)))
    found = placed(basis, sums * _share_per_unit(problem.n_samples, basis))
    oracle.map_rows(refinement(fine, found))
    return found


def _share_per_unit(n_samples: int, basis: AdditiveBasis) -> float:
    """What a unit of a sum of hats, which are divided by the root of their number, is of all records."""
    return math.sqrt(len(basis.numbers)) / n_samples

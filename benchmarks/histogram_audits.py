"""Attack the two histograms from which columns are learned, each as the only release, and twins of half their noise."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import ADJACENCIES, Budget
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ColumnHistograms, FineHistograms
from skdp.privacy.schedule import Gaussian, Release, Schedule

__all__ = ["HISTOGRAMS", "audited_histograms"]

N_SAMPLES = 40
TOOTH = 0.5  # share of the claimed epsilon that the audit has to prove, from 3000 runs a side on
# Two columns of numbers and a target; the first histogram has a column of text, too.
LIMITS = np.array([[0.0, 8.0], [-8.0, 8.0], [0.0, 8.0]])
HISTOGRAMS = {
    "column_histograms": ColumnHistograms((False, False, True), target=True),
    "fine_histograms": FineHistograms((0, 1), LIMITS, target=True),
}
CANARY, OTHER, REST = ((3.7, -3.0, 17.0, 3.7), (5.5, 2.0, 203.0, 0.9), (1.5, 1.5, 5.0, 1.5))  # the target comes last


def audited_histograms(budget: dict[str, float], n_runs: int, confidence: float) -> Iterator[dict[str, Any]]:
    """Yield a record of each histogram and adjacency, and of its twin.

    Parameters
    ----------
    budget : dict
        epsilon and delta.
    n_runs : int
        Answers for each of the two tables.
    confidence : float
        Probability that a bound holds.

    Yields
    ------
    dict
        As the records of solvers; a release is all that there is to see.
    """
    for (name, query), adjacency, twin in itertools.product(HISTOGRAMS.items(), ADJACENCIES, (None, "noise halved")):
        claim = _claim(query, Budget(**budget, adjacency=adjacency))
        tables = _table(OTHER, adjacency == "zero_out"), _table(CANARY)
        without, canary = (query.evaluate(rows) for rows in tables)
        scale, scores = claim.scale / (1 if twin is None else 2), np.empty((2, n_runs))
        for run, place in itertools.product(range(n_runs), (0, 1)):
            answer = Oracle(tables[place], claim.schedule, claim.budget, scale, NoiseSource()).ask(query)
            scores[place, run] = (answer - without) @ (canary - without)  # increases with the likelihood ratio
        bound = lower_bound("transcript", scores, claim, claim.method, confidence)
        share = bound.epsilon / claim.budget.epsilon
        expected = share > 1 if twin else (TOOTH if n_runs >= 3000 else 0.0) <= share <= 1
        found = {"view": bound.view, "bound": bound.epsilon, "method": bound.method, "as_expected": bool(expected)}
        yield {"solver": name, "adjacency": adjacency, "twin": twin, **found}


def _claim(query: Any, budget: Budget) -> Claim:
    schedule = Schedule(((1, Release(type(query), Gaussian(), query.clip_norm, query.size)),))
    scale = math.sqrt(Composition.of(schedule, budget.adjacency).full) / gaussian_mu(budget.epsilon, budget.delta)
    return Claim(schedule, scale, budget)


def _table(first: tuple[float, ...], null: bool = False) -> ColumnCells:
    cells = np.array([first, *[REST] * (N_SAMPLES - 1)])
    rows = ColumnCells(cells[:, :-1], cells[:, -1])
    return rows.without(np.array([0])) if null else rows

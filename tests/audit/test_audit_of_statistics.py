"""An adversary hears counts along trees and variances: honest ones stay below the claim, and every broken twin is caught."""

import math
from itertools import product

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.privacy.budget import Budget
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ClippedMoments, Deviations, HaarCounts
from skdp.privacy.release_plan import ReleasePlan
from skdp.testing import reproducible_noise

pytestmark = pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough")
N, CONFIDENCE = 40, 1 - 1e-4
BUDGETS = {adjacency: Budget(2.0, 0.0, adjacency) for adjacency in ("replace_one", "zero_out")}
GAUSSIAN = Budget(9.0, 1e-3, "replace_one")
TREE = HaarCounts((0,), np.linspace(-1, 1, 511)[None])
CENTRE, MEAN = Deviations(-1.0, 1.0), Deviations(-1.0, 1.0, about_mean=True, n_samples=N)
# The canary is 1; what replaces it, and all other records, are far from it in the tree, at the centre, or at the other end.
OTHERS = {TREE: -1.0, CENTRE: 0.0, MEAN: -1.0}


def without_the_first_factor(patched):
    """Two records differ in two coefficients of each level: at the first level, it is one, by 2."""
    patched.setattr(HaarCounts, "relative_sensitivity", {"replace_one": math.sqrt(2)})


def noise_of_a_null_record(patched):
    patched.setattr(HaarCounts, "relative_sensitivity", {"replace_one": 1.0})


def half_the_change(patched):
    patched.setattr(Deviations, "l1_sensitivity", lambda query, adjacency: 2**21)


def about_the_exact_mean(patched):
    """The centre of the squares is a mean without noise."""
    honest = Oracle._answer
    patched.setattr(
        Oracle,
        "_answer",
        lambda *given: given[1].evaluate(given[0]._rows) if isinstance(given[1], ClippedMoments) else honest(*given),
    )


def attacked(query, budget, n_runs, twin=None):
    """Lower bound on epsilon of an answer, after one that is the centre for the twin of it."""
    queries = [ClippedMoments(-1.0, 1.0), query] if twin is about_the_exact_mean else [query]
    other, canary = (ColumnCells([np.r_[cell, np.full(N - 1, OTHERS[query])]]) for cell in (OTHERS[query], 1.0))
    tables = [canary.without(np.array([0])) if budget.adjacency == "zero_out" else other, canary]
    exact = [[one.evaluate(rows) for rows in tables] for one in queries]
    scores, noise = np.zeros((2, n_runs)), NoiseSource()
    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        if twin is not None:
            twin(patched)
        laplace, shares = budget.delta == 0, [1 / len(queries)] * len(queries)
        plan = ReleasePlan.of_queries(queries, shares, laplace, budget, n_samples=N)
        for run, present in product(range(n_runs), (0, 1)):
            oracle = plan.oracle(tables[present], noise)
            for one, (without, found) in zip(queries, exact, strict=True):
                patched.setattr(type(one), "evaluate", lambda query, rows, known=(without, found)[present]: known)
                answer = oracle.ask(one)
                near = np.abs(answer - without) - np.abs(answer - found)
                ratio = near.sum() if laplace else (answer - (without + found) / 2) @ (found - without)
                sure = float(np.array_equal(answer, found)) - float(np.array_equal(answer, without))
                scores[present, run] += ratio + 1e15 * sure
            oracle.finish()
        claim = Claim(plan.schedule, plan.scale, plan.budget)
        return lower_bound("transcript", scores, claim, claim.method, CONFIDENCE).epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    "query, budget",
    [(TREE, GAUSSIAN), *((query, budget) for query in (CENTRE, MEAN) for budget in BUDGETS.values())],
)
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(query, budget):
    """A false alarm has probability at most 1e-4; the noise is that of a seed."""
    assert 0.25 * budget.epsilon < attacked(query, budget, 600) <= budget.epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    "twin, query, budget, n_runs",
    [
        pytest.param(without_the_first_factor, TREE, GAUSSIAN, 40_000, marks=pytest.mark.exhaustive),
        (noise_of_a_null_record, TREE, GAUSSIAN, 1000),
        (half_the_change, CENTRE, BUDGETS["replace_one"], 800),
        (half_the_change, MEAN, BUDGETS["replace_one"], 800),
        (about_the_exact_mean, CENTRE, BUDGETS["replace_one"], 400),
    ],
)
def test_every_broken_twin_is_caught(twin, query, budget, n_runs):
    assert attacked(query, budget, n_runs, twin) > budget.epsilon

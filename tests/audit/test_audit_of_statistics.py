"""An adversary hears trees of counts, variances and products: honest ones stay below the claim, and each twin is caught."""

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
from skdp.privacy.queries import ClippedMoments, Deviations, HaarCounts, HalfVectorMoments, ProductMoments
from skdp.privacy.queries.clipped_moments import UNIT
from skdp.privacy.release_plan import ReleasePlan
from skdp.testing import reproducible_noise

pytestmark = pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough")
N, CONFIDENCE = 40, 1 - 1e-4
BUDGETS = {adjacency: Budget(2.0, 0.0, adjacency) for adjacency in ("replace_one", "zero_out")}
GAUSSIAN = Budget(9.0, 1e-3, "replace_one")
TREE = HaarCounts((0,), np.linspace(-1, 1, 511)[None])
CENTRE, MEAN = Deviations(-1.0, 1.0), Deviations(-1.0, 1.0, about_mean=True, n_samples=N)
INTEGERS = ProductMoments((0, 1), np.tile([-1.0, 1.0], (2, 1)))
PRODUCTS = HalfVectorMoments((0, 1, 2), np.tile([-1.0, 1.0], (3, 1)))
# Cells of the canary are 1; those of what replaces it, and of all other records, are far from it in the tree, at the centre, at
# the other end, or where sums of products change the most.
OTHERS = {TREE: (-1.0,), CENTRE: (0.0,), MEAN: (-1.0,), INTEGERS: (-1.0, 0.0), PRODUCTS: (1.0, -1.0, -1.0)}


def without_the_first_factor(patched):
    """Two records differ in two coefficients of each level: at the first level, it is one, by 2."""
    patched.setattr(HaarCounts, "relative_sensitivity", {"replace_one": math.sqrt(2)})


def noise_of_a_null_record(patched):
    patched.setattr(HaarCounts, "relative_sensitivity", {"replace_one": 1.0})


def half_the_change(patched):
    patched.setattr(Deviations, "l1_sensitivity", lambda query, adjacency: 2**21)


def halves_of_products(patched):
    """Sums of products change by what those on the diagonal do."""
    patched.setattr(ProductMoments, "l1_sensitivity", lambda query, adjacency: query.order * UNIT // 2)


def norm_of_the_vector(patched):
    """A record adds v, not the products of all pairs of its entries."""
    patched.setattr(HalfVectorMoments, "clip_norm", math.sqrt(PRODUCTS.order / 2) * UNIT)


def about_the_exact_mean(patched):
    """The centre of the squares is a mean without noise."""
    honest = Oracle._answer
    patched.setattr(
        Oracle,
        "_answer",
        lambda *given: given[1].evaluate(given[0]._rows) if isinstance(given[1], ClippedMoments) else honest(*given),
    )


def pair(query, adjacency):
    """Return a table without the canary, and with it."""
    cells = [np.full(N, cell) for cell in OTHERS[query]]
    canary = ColumnCells([np.r_[1.0, column[1:]] for column in cells])
    return [canary.without(np.array([0])) if adjacency == "zero_out" else ColumnCells(cells), canary]


def attacked(query, budget, n_runs, twin=None):
    """Lower bound on epsilon of an answer, after one that is the centre for the twin of it."""
    queries = [ClippedMoments(-1.0, 1.0), query] if twin is about_the_exact_mean else [query]
    tables = pair(query, budget.adjacency)
    exact = [[one.evaluate(rows) for rows in tables] for one in queries]
    scores = np.zeros((2, n_runs))
    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        noise = NoiseSource()  # made in the block, which seeds it
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
    [
        *((query, GAUSSIAN) for query in (TREE, PRODUCTS)),
        *((query, budget) for query in (CENTRE, MEAN) for budget in BUDGETS.values()),
        (INTEGERS, BUDGETS["replace_one"]),
    ],
)
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(query, budget):
    """A false alarm has probability at most 1e-4; the noise is that of a seed."""
    assert 0.25 * budget.epsilon < attacked(query, budget, 1000) <= budget.epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    "twin, query, budget, n_runs",
    [
        pytest.param(without_the_first_factor, TREE, GAUSSIAN, 40_000, marks=pytest.mark.exhaustive),
        (noise_of_a_null_record, TREE, GAUSSIAN, 1000),
        (half_the_change, CENTRE, BUDGETS["replace_one"], 800),
        (half_the_change, MEAN, BUDGETS["replace_one"], 800),
        (about_the_exact_mean, CENTRE, BUDGETS["replace_one"], 400),
        (halves_of_products, INTEGERS, BUDGETS["replace_one"], 800),
        (norm_of_the_vector, PRODUCTS, GAUSSIAN, 1000),
    ],
)
def test_every_broken_twin_is_caught(twin, query, budget, n_runs):
    assert attacked(query, budget, n_runs, twin) > budget.epsilon


@pytest.mark.parametrize(
    "twin", (None, halves_of_products, norm_of_the_vector), ids=lambda twin: getattr(twin, "__name__", "none")
)
def test_the_canary_changes_products_by_their_sensitivity(twin, monkeypatch):
    """Without runs: the pairs of the audit attain it, but for rounding, and go beyond that of the twins."""
    if twin is not None:
        twin(monkeypatch)
    for query, norm, stated in ((INTEGERS, 1, INTEGERS.l1_sensitivity), (PRODUCTS, 2, PRODUCTS.sensitivity)):
        without, canary = (query.evaluate(rows) for rows in pair(query, "replace_one"))
        moved = np.linalg.norm(canary - without, norm) / stated("replace_one")
        broken = twin is {INTEGERS: halves_of_products, PRODUCTS: norm_of_the_vector}[query]
        assert (moved > 1.5) if broken else (1 - 1e-5 < moved <= 1)

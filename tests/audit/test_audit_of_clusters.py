"""An adversary hears fits of clusters: honest ones stay below the claim."""

import math

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from skdp import DPKMeans
from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Centres, ClusterCounts, ClusterSteps, FewCountsSteps, Standardization
from skdp.solvers.statistics import clusters
from skdp.testing import reproducible_noise

pytestmark = [
    pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
N, EPSILON, DELTA, CONFIDENCE = 400, 6.0, 1e-5, 1 - 1e-4
# The canary, the first record, and the second one, which replaces it, are at opposite ends, beyond the clip.
X = np.random.default_rng(0).uniform(-0.1, 0.1, (N, 2))
X[:2, 0] = 0.9, -0.9


def half_the_sensitivity(patched):
    """Steps have the sensitivity r, that of one difference."""
    for kind in (ClusterSteps, FewCountsSteps):
        patched.setattr(kind, "sensitivity", lambda query, adjacency: query.radius)


def unclipped(patched):
    """Differences are as long as they are."""

    def nearest(self, raw, records, honest=Centres.nearest):
        labels, distances = honest(self, raw, records)
        return labels, np.full(distances.shape, 1e-9)

    patched.setattr(Centres, "nearest", nearest)


def cells_without_noise(patched):
    def answer(self, query, release, records, honest=Oracle._answer):
        exact = type(query).__name__ == "CellCounts"
        return query.evaluate(self._rows) if exact else honest(self, query, release, records)

    patched.setattr(Oracle, "_answer", answer)


def half_of_a_count(patched):
    """Counts of published centres have half the sensitivity, as if a record that moves took one of them along."""
    patched.setattr(ClusterCounts, "sensitivity", lambda query, adjacency: math.sqrt(0.5))


# With the number of runs that shows it; the last one is of fits that spend most on the counts.
TWINS = {half_the_sensitivity: 400, unclipped: 100, cells_without_noise: 100, half_of_a_count: 400}


class Adversary:
    """Knows the canary, and the record that replaces it under ``replace_one``."""

    def __init__(self, adjacency, patched):
        self.adjacency, self.score = adjacency, 0.0
        start, ask = Oracle.__init__, Oracle.ask

        def started(oracle, rows, *given, **named):
            replaced = [rows.without(np.array([1]))] if adjacency == "replace_one" else [rows]
            oracle.tables = [rows.without(np.array([0])), *replaced]
            start(oracle, oracle.tables[self.present], *given, **named)

        patched.setattr(Oracle, "__init__", started)
        patched.setattr(Oracle, "ask", lambda oracle, query: self.hears(oracle, query, ask(oracle, query)))

    def hears(self, oracle, query, answer):
        """Add the log-likelihood ratio of an answer under the stated noise; what has none decides."""
        without, canary = (query.evaluate(rows) for rows in oracle.tables)
        noise = noise_multiplier(oracle.transcript[-1], oracle._scale, self.adjacency) * query.clip_norm
        sure = 1e6 * (float(np.array_equal(answer, canary)) - float(np.array_equal(answer, without)))
        self.score += float((answer - (without + canary) / 2) @ (canary - without)) / noise**2 + sure
        return answer


def attacked(adjacency, n_runs, twin=None, counts=False):
    """Lower bound on the epsilon of all that a fit asks; the steps, or the counts of two centres, have most of the budget."""
    found = []
    model = DPKMeans(1 + counts, epsilon=EPSILON, delta=DELTA, adjacency=adjacency, feature_bounds=1.0)

    def run(task, plan, rows, noise, rng, progress):
        found[:] = plan, rows
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        for share in ("OF_CENTRE", "OF_LENGTHS", "OF_CELLS", "OF_DISTANCES"):
            patched.setattr(clusters, share, getattr(clusters, share) / 4)
        if counts:
            patched.setattr(clusters, "OF_COUNTS", 20.0)
        # Which of released points is no matter. Canary and second record are nearest to different ones.
        ends = [[-0.5, 0.0], [0.5, 0.0]]
        patched.setattr(clusters, "_k_means", lambda points, k, *given: np.linspace(*ends, k) if counts else points[:k])
        patched.setattr(type(model._task()), "run", run)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        plan, rows = found
        if twin is not None:
            twin(patched)
        scores, adversary = np.empty((2, n_runs)), Adversary(adjacency, patched)
        with reproducible_noise(0):
            rng, noise = np.random.default_rng(0), NoiseSource()
            for run in range(n_runs):
                for adversary.present in (0, 1):
                    adversary.score = 0.0
                    oracle = Oracle(rows, plan.schedule, plan.problem.budget, plan.scale, noise)
                    plan.solver.solve(plan.problem, oracle.ask, rng)
                    oracle.finish()
                    scores[adversary.present, run] = adversary.score
    claim = Claim(plan.schedule, plan.scale, plan.problem.budget)
    return lower_bound("transcript", scores, claim, "gaussian", CONFIDENCE).epsilon


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_every_broken_twin_is_caught(twin):
    assert attacked("replace_one", TWINS[twin], twin, counts=twin is half_of_a_count) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("counts", (False, True))
@pytest.mark.parametrize("adjacency", ("replace_one", pytest.param("zero_out", marks=pytest.mark.exhaustive)))
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(adjacency, counts):
    """A false alarm has probability at most 1e-4; the noise is that of a seed."""
    assert 0.25 * EPSILON < attacked(adjacency, 400 if counts else 800, counts=counts) <= EPSILON


@pytest.mark.parametrize("twin", (None, half_of_a_count))
def test_the_record_that_replaces_the_canary_moves_counts_by_their_sensitivity(twin, monkeypatch):
    """Without runs: the pair of the audit attains it, and goes beyond that of the twin."""
    if twin is not None:
        twin(monkeypatch)
    geometry = Standardization(np.zeros(2), np.ones(2), True, 2.0)
    counts = ClusterCounts(Centres(np.array([[-0.5, 0.0], [0.5, 0.0]]), geometry))
    rows = TrainingData(X, np.zeros(N), data_norm=2.0, intercept_scaling=1.0, by_row=True, by_column=False)
    moved = counts.evaluate(rows.without(np.array([0]))) - counts.evaluate(rows.without(np.array([1])))
    assert (np.linalg.norm(moved) > counts.sensitivity("replace_one")) == (twin is not None)
    assert np.linalg.norm(moved) == math.sqrt(2)

"""An adversary hears whole boosted fits, whose trees are most of the budget: honest ones stay below the claim."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from skdp import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.estimators import _plan
from skdp.estimators.boosting import _task
from skdp.estimators.boosting._rule import Rule
from skdp.estimators.boosting._trees import Marginals
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BinCounts, leaf_sums
from skdp.solvers import GradientDescent
from skdp.testing import reproducible_noise

pytestmark = [
    pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
N, EPSILON, DELTA, CONFIDENCE = 40, 4.0, 1e-5, 1 - 1e-4
VIEWS = ("transcript", "exact", "tree")
# The canary is the first record. The second one, which replaces it, is alike but for its label or target: all residuals of both
# point opposite ways, in the same leaf of whatever tree. Models stay near the start, where residuals are longer than the clip.
X = np.stack([np.linspace(-1, 1, N), np.linspace(1, -1, N)], axis=1)
X[:2] = 0.9, 0.9
LABELS, NUMBERS = np.arange(N) % 2, np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
MODELS = {
    "classifier": (DPGradientBoostingClassifier, {"classes": [0, 1]}, LABELS),
    "regressor": (DPGradientBoostingRegressor, {"target_bounds": (-1, 1)}, NUMBERS),
}
SOLVER = GradientDescent(2, step_size=1e-3)  # stays at the start
RULE = Rule(
    depth=2, share=0.02, of_residuals=False, clip=0.2, spread=0.01, curvature=1.0, limit=0.5, learns_weights=False, n_trees=5
)


def unclipped(patched):
    """Residuals are as long as they are."""
    patched.setattr(leaf_sums, "clip_residuals", lambda residuals, inverse_norms, bound: residuals * inverse_norms[:, None])


def two_leaves(patched):
    """A record counts in its leaf and in the next one."""

    def sums(self, columns, splits, kernel, honest=BinnedRecords.leaf_sums):
        once = honest(self, columns, splits, kernel)
        return once + once.reshape(-1, 1 << len(columns))[:, np.arange(1 << len(columns)) ^ 1].ravel()

    patched.setattr(BinnedRecords, "leaf_sums", sums)


def tree_of_the_records(patched):
    """Which column the trees split follows from a count without noise: whether it is odd in the bins of the canary."""
    exact = []

    def answer(self, query, release, records, honest=Oracle._answer):
        if isinstance(query, BinCounts):
            exact[:] = [query.evaluate(self._rows)[: query.sizes[0]][-8:].sum()]
        return honest(self, query, release, records)

    def tree(self, depth, weights, rng, honest=Marginals.tree):
        return honest(self, depth, np.array([exact[0] % 2, 1 - exact[0] % 2]), rng)

    patched.setattr(Oracle, "_answer", answer)
    patched.setattr(Marginals, "tree", tree)


def without_noise(name):
    """Return a twin that releases the sums of one query as they are."""

    def twin(patched):
        def answer(self, query, release, records, honest=Oracle._answer):
            exact = type(query).__name__ == name
            return query.evaluate(self._rows) if exact else honest(self, query, release, records)

        patched.setattr(Oracle, "_answer", answer)

    return twin


TWINS = {  # and the view that shows it, the number of runs, and the model
    "leaf sums unclipped": (unclipped, "transcript", 80, "regressor"),
    "a record in two leaves": (two_leaves, "transcript", 1600, "regressor"),
    "tree chosen from sums without noise": (tree_of_the_records, "tree", 80, "regressor"),
    "weight without noise": (without_noise("TreeWeight"), "exact", 80, "regressor"),
    "calibration without noise": (without_noise("SlopeDerivatives"), "exact", 80, "classifier"),
}


class Adversary:
    """Knows the canary, which is the first record, and the second one that replaces it under ``replace_one``."""

    def __init__(self, adjacency, patched):
        self.adjacency, self.scores = adjacency, dict.fromkeys(VIEWS, 0.0)
        nulls = [0, *([1] if adjacency == "replace_one" else [])]
        start, ask = Oracle.__init__, Oracle.ask

        def started(oracle, rows, *given, **named):
            oracle.tables = [rows.without(np.array([null])) for null in nulls] + [rows] * (len(nulls) == 1)
            start(oracle, oracle.tables[self.present], *given, **named)

        def binned(oracle, *given, honest=Oracle.bin_rows):
            oracle.tables = [rows.binned(*given) for rows in oracle.tables]
            honest(oracle, *given)

        def grown(oracle, *given, honest=Oracle.add_tree):
            oracle.tables = [rows.grown(*given) for rows in oracle.tables]
            honest(oracle, *given)

        patched.setattr(Oracle, "__init__", started)
        patched.setattr(Oracle, "bin_rows", binned)
        patched.setattr(Oracle, "add_tree", grown)
        patched.setattr(Oracle, "ask", lambda oracle, query: self.hears(oracle, query, ask(oracle, query)))

    def hears(self, oracle, query, answer):
        """Score an answer by its log-likelihood ratio under the stated noise, and by whether it is a sum without noise."""
        without, canary = (query.evaluate(rows) for rows in oracle.tables)
        noise = noise_multiplier(oracle.transcript[-1], oracle._scale, self.adjacency) * query.clip_norm
        self.scores["transcript"] += float((answer - (without + canary) / 2) @ (canary - without)) / noise**2
        self.scores["exact"] += float(np.array_equal(answer, canary)) - float(np.array_equal(answer, without))
        return answer

    def concludes(self, trees):
        scores = self.scores["transcript"], self.scores["exact"], -float(np.mean(trees.columns))
        self.scores = dict.fromkeys(VIEWS, 0.0)
        return scores


def planned(kind, given, y, adjacency):
    """A model, its plan and its rows behind the oracle, from a fit."""
    found = []

    def solved(model, plan, oracle, rng, honest=_task.BoostedTask.solved):
        found[:] = plan, oracle._rows
        return honest(model, plan, oracle, rng)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_plan, "choose_solver", lambda solver, problem: (SOLVER, ""))
        patched.setattr(_task, "rule_of", lambda *public: RULE)
        patched.setattr(_task.BoostedTask, "solved", solved)
        model = kind(EPSILON, delta=DELTA, adjacency=adjacency, feature_bounds=1.0, **given).fit(X, y)
    return model, *found


def attacked(name, adjacency, n_runs, twin=None):
    """Lower bounds on the epsilon of all that a fit asks, by view."""
    kind, given, y = MODELS[name]
    model, plan, rows = planned(kind, given, y, adjacency)
    scores = np.empty((len(VIEWS), 2, n_runs))
    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        if twin is not None:
            twin(patched)
        bins = _task.bins_of(model.basis_)
        patched.setattr(_task, "bins_of", lambda basis: bins)  # the same for all runs
        adversary, rng, noise = Adversary(adjacency, patched), np.random.default_rng(0), NoiseSource()
        for run in range(n_runs):
            for adversary.present in (0, 1):
                oracle = Oracle(rows, plan.schedule, plan.problem.budget, plan.scale, noise)
                scores[:, adversary.present, run] = adversary.concludes(model._task().solved(plan, oracle, rng).extra.trees)
                oracle.finish()
    claim = Claim(plan.schedule, plan.scale, plan.problem.budget)
    return {view: lower_bound(view, scores[i], claim, "gaussian", CONFIDENCE).epsilon for i, view in enumerate(VIEWS)}


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (TWINS[name][2] > 80)) for name in TWINS])
def test_every_broken_twin_is_caught(name):
    twin, view, n_runs, model = TWINS[name]
    adjacency = "zero_out" if view == "tree" else "replace_one"  # the canary alone is not counted
    bounds = attacked(model, adjacency, n_runs, twin)
    assert bounds[view] > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, adjacency", [("classifier", "replace_one"), pytest.param("regressor", "zero_out", marks=pytest.mark.exhaustive)]
)
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(name, adjacency):
    """A false alarm has probability at most 1e-4 per view; the noise is that of a seed."""
    bounds = attacked(name, adjacency, 800)
    assert max(bounds.values()) <= EPSILON
    assert bounds["transcript"] > 0.25 * EPSILON

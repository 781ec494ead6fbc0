"""An adversary hears both stages of fits that learn their columns: honest ones stay below the claim of the whole fit."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from packaging.version import Version

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.estimators import _task
from skdp.estimators._two_stages import Learning
from skdp.preprocessing import _learning as learning
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ColumnHistograms
from skdp.solvers import GradientDescent
from skdp.testing import reproducible_noise

pytestmark = [
    pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough"),
    pytest.mark.filterwarnings("ignore::skdp.privacy.errors.LowSignalWarning"),
]
N, EPSILON, DELTA, CONFIDENCE = 40, 4.0, 1e-5, 1 - 1e-4
VIEWS = ("transcript", "exact", "limits")
FRAME = pd.DataFrame({"a": [3.7, 1.7, *[1.5] * (N - 2)], "t": pd.Series(["z", "y", *["x"] * (N - 2)], dtype=object)})
# The record that replaces the canary is alike, but for its label or target: the gradients of both point opposite ways.
LABELS, NUMBERS = np.array([1, *[0] * (N - 1)]), np.array([3.7, -3.7, *[1.5, -1.5] * (N // 2 - 1)])
ALIKE = FRAME.assign(a=[3.7, *FRAME["a"][:1], *FRAME["a"][2:]], t=["z", "z", *FRAME["t"][2:]])
SOLVER = GradientDescent(2, step_size=1e-3)  # stays at the start, where the gradient of the canary is large
MODELS = {
    "classifier": (DPLogisticRegression(classes=[0, 1], clip_norm=0.1), LABELS),
    "regression": (DPLinearRegression(clip_norm=0.01), NUMBERS),
}


def exact_second_stage(patched):
    """The rows of the second stage are summed without noise."""

    def answer(self, query, release, records, honest=Oracle._answer):
        return honest(self, query, release, records) if learns(self) else query.evaluate(self._rows)

    patched.setattr(Oracle, "_answer", answer)


def limits_of_the_records(patched):
    """The columns of the second stage are limited by counts without noise."""
    rule, exact = learning.place_octaves, []

    def answer(self, query, release, records, honest=Oracle._answer):
        if isinstance(query, ColumnHistograms):
            exact[:] = np.split(query.evaluate(self._rows) / N, np.cumsum(query.sizes())[:-1])
        return honest(self, query, release, records)

    patched.setattr(Oracle, "_answer", answer)
    patched.setitem(learning.RULES, False, lambda shares, sigma, *others: rule(exact[0], 0.0, *others))


TWINS = {  # and the view that shows it; two stages that spend too much are found by their accounting
    "second stage without noise": (exact_second_stage, "exact"),
    "limits from the records": (limits_of_the_records, "limits"),
}


def learns(oracle):
    return type(oracle._rows).__name__ == "ColumnCells"


class Adversary:
    """Knows the canary, which is the first record, and the second one that replaces it under ``replace_one``."""

    def __init__(self, adjacency, patched):
        self.adjacency, self.scores, self.absent = adjacency, dict.fromkeys(VIEWS, 0.0), None
        start, ask = Oracle.__init__, Oracle.ask

        def started(oracle, rows, *given, **named):
            nulls = [0, *([1] if adjacency == "replace_one" else [])]
            oracle.tables = [rows.without(np.array([null])) for null in nulls] + [rows] * (len(nulls) == 1)
            start(oracle, oracle.tables[self.present], *given, **named)

        patched.setattr(Oracle, "__init__", started)
        patched.setattr(Oracle, "ask", lambda oracle, query: self.hears(oracle, query, ask(oracle, query)))

    def hears(self, oracle, query, answer):
        """Score an answer by its log-likelihood ratio under the stated noise, and by whether it is a sum without noise."""
        without, canary = (query.evaluate(rows) for rows in oracle.tables)
        noise = noise_multiplier(oracle.transcript[-1], oracle._scale, self.adjacency) * query.clip_norm
        if noise:
            self.scores["transcript"] += float((answer - (without + canary) / 2) @ (canary - without)) / noise**2
            self.scores["exact"] += np.array_equal(answer, canary) - np.array_equal(answer, without)
        return answer

    def concludes(self, model):
        low, high = model.schema_.columns["a"].bounds
        scores = self.scores["transcript"], self.scores["exact"], high - low
        self.scores = dict.fromkeys(VIEWS, 0.0)
        return scores


def attacked(name, adjacency, n_runs, twin=None, frame=FRAME):
    """Lower bounds on the epsilon of whole fits, by view."""
    model, y = MODELS[name]
    model = sklearn.base.clone(model).set_params(epsilon=EPSILON, delta=DELTA, adjacency=adjacency, schema="learn", solver=SOLVER)
    scores = np.empty((len(VIEWS), 2, n_runs))
    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        if twin is not None:
            twin(patched)
        adversary, plan = Adversary(adjacency, patched), Learning.of(model._task(), frame)
        second = plan.second_plan(np.array([0, 1]) if name == "classifier" else None)
        patched.setattr(Learning, "of", lambda task, X: plan)  # plans are the same for all runs; names matter to nobody
        patched.setattr(Learning, "second_plan", lambda self, classes: second)
        patched.setattr(
            _task, "prepared_names", lambda schema: np.array([f"x{i}" for i in range(schema.n_features)], dtype=object)
        )
        for run in range(n_runs):
            for adversary.present in (0, 1):
                scores[:, adversary.present, run] = adversary.concludes(model.fit(frame, y))
    claim = Claim(plan.plan.schedule, plan.plan.scale, plan.budget)
    return {view: lower_bound(view, scores[i], claim, "gaussian", CONFIDENCE).epsilon for i, view in enumerate(VIEWS)}


@pytest.mark.slow  # of learned columns alone, a twin is in test_audit_of_learned_columns.py
@pytest.mark.parametrize("name", ["limits from the records", "second stage without noise"])
def test_every_broken_twin_is_caught(name):
    twin, view = TWINS[name]
    assert attacked("classifier", "replace_one", 80, twin)[view] > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, adjacency", [("classifier", "replace_one"), pytest.param("regression", "zero_out", marks=pytest.mark.exhaustive)]
)
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(name, adjacency):
    """A false alarm has probability at most 1e-4 per view; the noise is that of a seed."""
    bounds = attacked(name, adjacency, 600, frame=ALIKE)
    assert max(bounds.values()) <= EPSILON
    assert bounds["transcript"] > 0.2 * EPSILON

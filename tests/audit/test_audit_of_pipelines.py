"""An adversary hears all steps of a private pipeline: honest ones stay below the claim of the whole, and broken twins do not."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from skdp import DPPCA
from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.pipeline import DPPipeline
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.oracle import Oracle
from skdp.testing import reproducible_noise

pytestmark = [
    pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
N, D, EPSILON, DELTA, CONFIDENCE = 60, 3, 8.0, 1e-5, 1 - 1e-4
X = np.zeros((N, D))
X[:, 0] = 0.9
X[0] = -1.0, 1.0, 0.0  # the canary
X[1] = 0.9, -1.0, 0.0  # which replaces it


def exact_components(patched):
    """The first step learns from exact data."""

    def answer(self, query, release, records, honest=Oracle._answer):
        return query.evaluate(self._rows) if self.step == 0 else honest(self, query, release, records)

    patched.setattr(Oracle, "_answer", answer)


def free_components(patched):
    """The first step has a budget of its own, which is not charged."""
    honest = DPPipeline._parts

    def parts(self, n_samples):
        first, *others = honest(self, n_samples)
        own = first.model.set_params(epsilon=12 * EPSILON)
        return [type(first)(first.name, own, 1e3), *others]

    patched.setattr(DPPipeline, "_parts", parts)


TWINS = {"learns from exact data": exact_components, "charges nothing": free_components}


def attacked(adjacency, n_runs, twin=None):
    """Lower bound on the epsilon of all that a fit asks, by the log-likelihood ratio of the answers under the stated noise."""
    steps = [("components", DPPCA(2, feature_bounds=1.0)), ("again", DPPCA(1))]
    model = DPPipeline(steps, epsilon=EPSILON, delta=DELTA, adjacency=adjacency, shares={"components": 0.5})
    scores, present, oracles, heard = np.zeros((2, n_runs)), 0, [], []
    start, ask = Oracle.__init__, Oracle.ask

    def started(oracle, rows, *given, **named):
        nulls = [0] if adjacency == "zero_out" else [0, 1]
        oracle.tables = [rows.without(np.array([null])) for null in nulls] + [rows] * (len(nulls) == 1)
        oracle.step = len(oracles)
        oracles.append(oracle)
        start(oracle, oracle.tables[present], *given, **named)

    def asked(oracle, query):
        answer = ask(oracle, query)
        without, canary = (query.evaluate(rows) for rows in oracle.tables)
        size = noise_multiplier(oracle.transcript[-1], oracle._scale, adjacency) * query.clip_norm
        sure = 1e6 * (float(np.array_equal(answer, canary)) - float(np.array_equal(answer, without)))
        heard.append(float((answer - (without + canary) / 2) @ (canary - without)) / size**2 + sure)
        return answer

    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        if twin is not None:
            twin(patched)
        patched.setattr(Oracle, "__init__", started)
        patched.setattr(Oracle, "ask", asked)
        for place in range(n_runs):
            for present in (0, 1):
                oracles.clear()
                heard.clear()
                model.fit(X)
                scores[present, place] = sum(heard)
    claim = Claim(oracles[-1]._schedule, oracles[-1]._scale, model._budget(N))
    return lower_bound("transcript", scores, claim, "gaussian", CONFIDENCE).epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_every_broken_twin_is_caught(name):
    assert attacked("zero_out", 150, TWINS[name]) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(adjacency):
    """A false alarm has probability at most 1e-4; the noise is that of a seed."""
    assert 0.2 * EPSILON < attacked(adjacency, 300) <= EPSILON

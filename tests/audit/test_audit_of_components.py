"""An adversary hears the releases of private components: honest ones stay below the claim, and broken twins do not."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from skdp import DPPCA
from skdp._data_validation import Facts
from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import FirstAndSecondMoment, FirstMoment, FourthMoments
from skdp.privacy.queries._unit_rows import UnitRows
from skdp.testing import reproducible_noise

pytestmark = pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough")
N, D, EPSILON, DELTA, CONFIDENCE = 60, 3, 6.0, 1e-5, 1 - 1e-4
X = np.zeros((N, D))
X[:, 0] = 0.9  # whose mean is far from the middle
X[0] = -1.0, 1.0, 0.0  # the canary
X[1] = -1.0, -1.0, 0.0  # which replaces it


def unclipped(patched):
    """Rows keep their length."""
    patched.setattr(UnitRows, "_factors", lambda self, records: np.ones(records.inverse_norms.size))


def exact(kind):
    """A release is made as it is."""

    def patch(patched):
        def answer(self, query, release, records, honest=Oracle._answer):
            return query.evaluate(self._rows) if type(query) is kind else honest(self, query, release, records)

        patched.setattr(Oracle, "_answer", answer)

    return patch


TWINS = {"unclipped": unclipped, "exact mean taken off": exact(FirstMoment)}
TWINS |= {kind.__name__: exact(kind) for kind in (FirstAndSecondMoment, FourthMoments)}


def attacked(adjacency, n_runs, twin=None):
    """Lower bound on the epsilon of all that a fit asks, by the log-likelihood ratio of the answers under the stated noise."""
    model = DPPCA(epsilon=EPSILON, delta=DELTA, adjacency=adjacency, feature_bounds=1.0)
    task = model._task()
    plan, scores = task.plan_of(Facts(N, D)), np.empty((2, n_runs))
    rows = TrainingData(X, np.zeros(N, dtype=np.int8), **plan.row_bounds)
    tables = [rows.without(np.array([0])), rows if adjacency == "zero_out" else rows.without(np.array([1]))]
    rng, noise = np.random.default_rng(0), NoiseSource()
    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        noise = NoiseSource()
        if twin is not None:
            twin(patched)
        for place in range(n_runs):
            for present in (0, 1):
                oracle, heard = Oracle(tables[present], plan.schedule, plan.problem.budget, plan.scale, noise), []

                def ask(query, oracle=oracle, heard=heard):
                    answer = oracle.ask(query)
                    without, canary = (query.evaluate(table) for table in tables)
                    size = noise_multiplier(oracle.transcript[-1], plan.scale, adjacency) * query.clip_norm
                    sure = 1e6 * (float(np.array_equal(answer, canary)) - float(np.array_equal(answer, without)))
                    heard.append(float((answer - (without + canary) / 2) @ (canary - without)) / size**2 + sure)
                    return answer

                plan.solver.solve(plan.problem, ask, rng)
                oracle.finish()
                scores[present, place] = sum(heard)
    claim = Claim(plan.schedule, plan.scale, plan.problem.budget)
    return lower_bound("transcript", scores, claim, "gaussian", CONFIDENCE).epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_every_broken_twin_is_caught(name):
    assert attacked("zero_out", 200, TWINS[name]) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(adjacency):
    """A false alarm has probability at most 1e-4; the noise is that of a seed."""
    assert 0.2 * EPSILON < attacked(adjacency, 500) <= EPSILON

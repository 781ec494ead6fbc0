"""An adversary hears fits with a log link, the releases around them above all: honest ones stay below the claim."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from skdp import DPLinearRegression
from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.estimators import _task
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.data import training_data
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import linked_sums
from skdp.testing import reproducible_noise

pytestmark = [
    pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
N, EPSILON, DELTA, CONFIDENCE = 400, 6.0, 1e-5, 1 - 1e-4
# The canary, the first record, and the second one, which replaces it, have the largest target at opposite ends of the scores.
X = np.stack([np.linspace(-0.2, 0.2, N), np.zeros(N)], axis=1)
X[:2, 0] = 1.0, -1.0
Y = (np.arange(N) % 3).astype(float)
Y[:2] = 99.0
EXPOSURE = np.full(N, 0.5)
EXPOSURE[:2] = 50.0  # counts as 1


def unclipped(patched):
    """Targets count for what they are, and not for the clip."""
    clip = lambda values, low, high: values if (low, high) == (0.0, 1.0) else np.clip(values, low, high)  # noqa: E731
    patched.setattr(linked_sums, "np", Patched(clip=clip))


class Patched:
    """NumPy with other functions."""

    def __init__(self, **functions):
        vars(self).update(functions)

    def __getattr__(self, name):
        return getattr(np, name)


def exact(name):
    """A release is made as it is."""

    def patch(patched):
        def answer(self, query, release, records, honest=Oracle._answer):
            return query.evaluate(self._rows) if type(query).__name__ == name else honest(self, query, release, records)

        patched.setattr(Oracle, "_answer", answer)

    return patch


def beyond_the_bound(patched):
    """Exposures count for what they are."""

    patched.setattr(_task, "read_weights", lambda name, given, largest, n_samples: given)
    patched.setattr(training_data, "shares_of", lambda given: given)


TWINS = {"targets unclipped": unclipped, "exposures beyond the bound": beyond_the_bound}
TWINS |= {name: exact(name) for name in ("TargetHistogram", "ScoreOctaves", "LinkSums", "ExposedHistogram", "ExposedLinkSums")}


class Adversary:
    """Knows the canary, and the record that replaces it under ``replace_one``."""

    def __init__(self, adjacency, patched):
        self.adjacency, self.score = adjacency, 0.0
        start, ask = Oracle.__init__, Oracle.ask

        def started(oracle, tables, *given, **named):
            oracle.tables = list(tables)
            start(oracle, oracle.tables[self.present], *given, **named)

        def both(name, method):
            honest = getattr(Oracle, name)

            def replaced(oracle, *given):
                oracle.tables = [getattr(rows, method)(*given) for rows in oracle.tables]
                honest(oracle, *given)

            patched.setattr(Oracle, name, replaced)

        patched.setattr(Oracle, "__init__", started)
        both("map_targets", "retargeted")
        both("bin_rows", "binned")
        patched.setattr(Oracle, "ask", lambda oracle, query: self.hears(oracle, query, ask(oracle, query)))

    def hears(self, oracle, query, answer):
        """Add the log-likelihood ratio of an answer under the stated noise; what has none decides."""
        without, canary = (query.evaluate(rows) for rows in oracle.tables)
        noise = noise_multiplier(oracle.transcript[-1], oracle._scale, self.adjacency) * query.clip_norm
        sure = 1e6 * (float(np.array_equal(answer, canary)) - float(np.array_equal(answer, without)))
        self.score += float((answer - (without + canary) / 2) @ (canary - without)) / noise**2 + sure
        return answer


def attacked(adjacency, n_runs, twin=None, exposed=False):
    """Lower bound on the epsilon of all that a fit asks."""
    found, given = [], {"feature_bounds": 1.0, "target_bounds": (0, 99), "link": "log_count", "solver": "ssp"}
    model = DPLinearRegression(EPSILON, delta=DELTA, adjacency=adjacency, **given)

    def run(task, plan, rows, noise, rng, progress):
        found[:] = task, plan, rows
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(type(model._task()), "run", run)
        if twin is not None:
            twin(patched)
        model.fit(X, Y, exposure=EXPOSURE if exposed else None)
    task, plan, rows = found
    others = [rows.without(np.array([0])), rows if adjacency == "zero_out" else rows.without(np.array([1]))]
    scores = np.empty((2, n_runs))
    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        if twin is not None:
            twin(patched)
        adversary, rng, noise = Adversary(adjacency, patched), np.random.default_rng(0), NoiseSource()
        for place in range(n_runs):
            for adversary.present in (0, 1):
                adversary.score = 0.0
                oracle = Oracle(others, plan.schedule, plan.problem.budget, plan.scale, noise)
                with np.errstate(all="ignore"):
                    task.answered(plan, oracle, rng)
                oracle.finish()
                scores[adversary.present, place] = adversary.score
    claim = Claim(plan.schedule, plan.scale, plan.problem.budget)
    return lower_bound("transcript", scores, claim, "gaussian", CONFIDENCE).epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_every_broken_twin_is_caught(name):
    assert attacked("zero_out", 100, TWINS[name], "xpos" in name) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("exposed", (False, True))
@pytest.mark.parametrize("adjacency", ("zero_out", "replace_one"))
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(adjacency, exposed):
    """A false alarm has probability at most 1e-4; the noise is that of a seed."""
    assert 0.15 * EPSILON < attacked(adjacency, 500, exposed=exposed) <= EPSILON

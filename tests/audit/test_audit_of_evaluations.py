"""An adversary sees published scores: honest evaluations stay below the claim, and those with too little noise do not."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version
from sklearn.linear_model import LogisticRegression

from skdp.audit._claim import definition_epsilon, gaussian_parameter
from skdp.audit._rates import best_threshold, error_rates, split, upper_bounds
from skdp.metrics import evaluate
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.noise.gaussian import GridGaussian
from skdp.privacy.noise.laplace import IntegerLaplace
from skdp.testing import reproducible_noise

pytestmark = pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="attacks on NumPy: once is enough")
N, DELTA, CONFIDENCE = 60, 1e-5, 1 - 1e-4
EPSILONS = {"laplace": 2.0, "gaussian": 8.0}  # at which 600 runs tell noise from half of it
MODEL = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
X, Y = np.linspace(-1, 1, N)[:, None], np.arange(N) % 2  # the canary is the last record; in the other table its label differs
CANARY = MODEL.decision_function(X)[-1]


class Ones:
    """A regressor that predicts 1."""

    def predict(self, X):
        return np.ones(len(X))


def attacked(noise, metrics, n_runs):
    """A lower bound on the epsilon of an evaluation, or on its mu with Gaussian noise, from what it publishes."""
    scores, of_deviance = np.empty((2, n_runs)), "deviance" in metrics[0]
    budget = {"epsilon": EPSILONS[noise], "delta": DELTA, "adjacency": "replace_one", "noise": noise}
    model, bound, labels = (Ones(), {"error_bound": 2.0}, 9 * Y) if of_deviance else (MODEL, {}, Y)
    with reproducible_noise(0):
        for run in range(n_runs):
            for present in (0, 1):
                y = labels.copy()
                y[-1] = (9 if present else 1) if of_deviance else present
                table = evaluate(model, X, y, metrics=metrics, **bound, **budget).table
                if of_deviance:
                    scores[present, run] = table.first[0] + table.second[0, 0] / 4
                elif len(metrics) == 1:
                    scores[present, run] = table.mean
                else:
                    place = min(int(np.searchsorted(table.edges, CANARY)), len(table.edges) - 1) - 1
                    scores[present, run] = table.counts[1, place] - table.counts[0, place]
    pilot, judged = split(scores)
    value = gaussian_parameter if noise == "gaussian" else lambda rates: definition_epsilon(rates, 0.0)
    one_sided = 1 - (1 - CONFIDENCE) / 2
    threshold = best_threshold(pilot, one_sided, value)
    return float(value(upper_bounds(error_rates(judged, np.array([threshold])), judged.shape[1], one_sided))[0])


def claimed(noise):
    """The parameter that a bound must not exceed."""
    return EPSILONS[noise] if noise == "laplace" else gaussian_mu(EPSILONS[noise], DELTA)


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise, metrics, least",
    [
        ("laplace", ["accuracy"], 0.5),
        ("gaussian", ["accuracy"], 0.5),
        ("laplace", ["accuracy", "log_loss"], 0.15),
        ("gaussian", ["poisson_deviance"], 0.5),
    ],
)
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(noise, metrics, least):
    """A false alarm has a probability of 1e-4; the noise is that of a seed."""
    assert least * claimed(noise) < attacked(noise, metrics, 600) <= claimed(noise)


@pytest.mark.parametrize(
    "kind, noise, metric",
    [
        (GridGaussian, "gaussian", "accuracy"),
        pytest.param(GridGaussian, "gaussian", "poisson_deviance", marks=pytest.mark.slow),
        pytest.param(IntegerLaplace, "laplace", "accuracy", marks=pytest.mark.slow),
    ],
)
def test_noise_that_is_too_small_is_caught(kind, noise, metric, monkeypatch):
    def smaller(cls, *, scale, honest=kind.calibrated.__func__, **more):
        return honest(cls, scale=scale / 2, **more)

    monkeypatch.setattr(kind, "calibrated", classmethod(smaller))
    assert attacked(noise, [metric], 600) > claimed(noise)

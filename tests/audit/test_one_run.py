"""The audit by one fit: its p-value against randomised response, its bound against the claim."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from skdp import DPLogisticRegression, WeakPrivacyWarning
from skdp.audit import audit_one_run
from skdp.audit._one_run import guessing_epsilon, p_value
from skdp.solvers import GradientDescent

X, Y = np.zeros((400, 200)), np.arange(400) % 2


def audited(adjacency, seed, view="transcript", epsilon=8.0, **params):
    solver = GradientDescent(4, step_size=1e-3)
    model = DPLogisticRegression(epsilon, delta=1e-8, adjacency=adjacency, solver=solver, fit_intercept=False, data_norm=1.0)
    return audit_one_run(model, X, Y, **{"n_canaries": 200, "view": view, "random_state": seed, **params})


@pytest.mark.parametrize("epsilon", (0.5, 2.0))
@pytest.mark.parametrize("n_correct", (12, 16, 20))
def test_the_p_value_is_that_of_randomised_response(epsilon, n_correct, rng):
    """Every coin is told truthfully with probability ``e^eps / (1 + e^eps)``: 20 guesses, 200 000 repeats, five deviations."""
    told = rng.random((200_000, 20)) < np.exp(epsilon) / (1 + np.exp(epsilon))
    share = (told.sum(axis=1) >= n_correct).mean()
    exact = p_value(50, 20, n_correct, epsilon, 0.0)
    assert abs(share - exact) <= 5 * np.sqrt(exact * (1 - exact) / 200_000)


@pytest.mark.parametrize("n_correct", (0, 3, 10))
def test_delta_enters_as_in_the_theorem(n_correct):
    """The largest of the averaged tails, one by one."""
    guesses = binom(10, 1 / (1 + np.exp(-1.0)))
    gaps = [sum(guesses.pmf(n_correct - j) for j in range(1, i + 1)) / i for i in range(1, n_correct + 1)]
    expected = sum(guesses.pmf(j) for j in range(n_correct, 11)) + 2 * 30 * 1e-3 * max(gaps, default=0.0)
    assert p_value(30, 10, n_correct, 1.0, 1e-3) == pytest.approx(min(expected, 1.0), rel=1e-9)


def test_the_bound_is_where_the_p_value_reaches_what_may_go_wrong():
    bound = guessing_epsilon(100, 40, 36, 1e-5, 0.95)
    assert p_value(100, 40, 36, bound, 1e-5) <= 0.05 < p_value(100, 40, 36, bound + 1e-5, 1e-5)
    assert bound > guessing_epsilon(100, 40, 36, 1e-3, 0.95) > guessing_epsilon(100, 40, 33, 1e-3, 0.95)
    assert guessing_epsilon(100, 40, 20, 1e-5, 0.95) == 0
    assert guessing_epsilon(100, 40, 36, 0.5, 0.95) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_bounds_stay_below_the_claim_and_prove_something(adjacency):
    """20 fits at confidence 0.9999: a false alarm has probability at most 0.002."""
    results = [audited(adjacency, seed, confidence=1 - 1e-4) for seed in range(20)]
    assert all(result.bound <= 8.0 for result in results)
    assert np.median([result.bound for result in results]) > 0.8
    assert np.median([result.n_correct / result.n_guesses for result in results]) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_final_model_alone_is_told_too(adjacency):
    assert np.median([audited(adjacency, seed, view="final").bound for seed in range(5)]) > 0.5


def test_too_little_noise_is_a_violation():
    model = Broken(1.0, delta=1e-5, solver=GradientDescent(4, step_size=1e-3), fit_intercept=False, data_norm=1.0)
    result = audit_one_run(model, X, Y, n_canaries=200, random_state=0)
    assert not result.consistent
    assert str(result).startswith("VIOLATION")


class Broken(DPLogisticRegression):
    """A tenth of the noise."""

    class _task_class(DPLogisticRegression._task_class):
        def run(self, plan, rows, *rest):
            return super().run(replace(plan, scale=plan.scale / 10), rows, *rest)


def test_a_warning_is_given_once():
    with pytest.warns(WeakPrivacyWarning) as caught:
        audited("replace_one", 0, epsilon=40.0)
    assert len(caught) == 1


@pytest.mark.slow
def test_a_seed_fixes_the_result():
    assert audited("replace_one", 1).to_dict() == audited("replace_one", 1).to_dict()
    assert audited("replace_one", 1, n_guesses=100).n_guesses == 100


@pytest.mark.parametrize(
    "params, message",
    (
        ({"n_guesses": 3}, "n_guesses=3; expected an even number up to n_canaries=200"),
        ({"n_guesses": 202}, "n_guesses=202; expected an even number"),
        ({"n_canaries": 400}, "n_canaries=400; expected fewer than the 400 records"),
        ({"view": "model"}, "views='model'"),
    ),
)
def test_parameters_out_of_range_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        audited("replace_one", 0, **params)


@pytest.mark.slow
def test_the_verdict_is_readable():
    text = str(audited("zero_out", 0))
    assert text.startswith("INCONCLUSIVE: 50 guesses can prove no more than epsilon 2.78, below the claimed epsilon of 8")
    assert "of 50 guesses right, about 200 canaries" in text

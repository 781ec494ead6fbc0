"""Mini-batches in a single pass: which records are used, by the oracle's own count, the updates, and what a fit spends."""

import math
from dataclasses import replace

import numpy as np
import pytest
import seeded
from scipy import sparse

from skdp import DPLogisticRegression, NotPrivateWarning
from skdp.losses import Hinge, Logistic
from skdp.privacy.budget import Budget
from skdp.privacy.oracle import Oracle
from skdp.privacy.schedule import SinglePass
from skdp.solvers import SGD, Problem
from skdp.solvers.first_order.sgd import fresh_batches, steps_for_half

N = 301


@pytest.fixture
def oracles(monkeypatch):
    """Every oracle that ends a fit."""
    found, finish = [], Oracle.finish
    monkeypatch.setattr(Oracle, "finish", lambda self: (found.append(self), finish(self))[1])
    return found


def problem(epsilon=1.0, adjacency="replace_one", n_samples=5000, **changes):
    budget = Budget(epsilon, 1e-7, adjacency)
    facts = Problem(n_samples, 10, Logistic(), budget, data_norm=1.0, intercept_scaling=1.0, alpha=0.01, clip_norm=1.0)
    return replace(facts, **changes)


def fitted(X, y, seed=0, **parameters):
    return seeded.fitted(DPLogisticRegression(solver=SGD(sampling="single_pass", **parameters)), X, y, seed=seed)


SETTINGS = ({}, {"n_steps": 3}, {"n_steps": 400, "batch_size": 7}, {"batch_size": 1}, {"batch_size": N}, {"standardize": 0.2})


@pytest.mark.each_value
@pytest.mark.parametrize("given", SETTINGS, ids=str)
@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, sparse.csc_array), ids=lambda s: s.__name__)
@pytest.mark.parametrize("n_classes", (2, 3))
def test_no_record_is_used_twice_and_half_of_them_at_most(given, storage, n_classes, rng, oracles):
    """By the oracle's count; exactly half, rounded up, where steps are enough for it."""
    fitted(storage(rng.normal(size=(N, 3))), np.arange(N) % n_classes, **given)
    (oracle,) = oracles
    assert oracle.uses.shape == (N,) and oracle.uses.max() == 1
    assert 0 < oracle.uses.sum() <= (N + 1) // 2
    assert given.get("n_steps") == 3 or oracle.uses.sum() == (N + 1) // 2


def test_which_records_are_used_depends_on_no_record(rng, oracles):
    for X in (rng.normal(size=(N, 3)), np.zeros((N, 3))):
        fitted(X, rng.permutation(np.arange(N) % 2), seed=7, n_steps=20)
    fitted(np.zeros((N, 3)), np.arange(N) % 2, seed=8, n_steps=20)
    first, second, other = (oracle.uses for oracle in oracles)
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("delta", (1e-6, 1e-30))
def test_what_is_spent_does_not_depend_on_the_number_of_steps(adjacency, delta):
    spent = set()
    for n_steps in (1, 10, 10_000):
        solver = SGD(n_steps, batch_size=20, sampling="single_pass")
        plan = DPLogisticRegression(2.0, delta=delta, adjacency=adjacency, solver=solver).plan(1000, 5)
        (line,) = plan.releases
        spent.add((plan.spent.epsilon, line.noise_multiplier))
        assert (line.mechanism, line.count) == ("SinglePass", n_steps)
    assert len(spent) == 1 and 0.999 * 2 <= spent.pop()[0] <= 2


def test_the_update_divides_by_the_public_size_and_averages_what_follows_fresh_records(rng):
    """Steps on repeats alone are noise and move, those after half of the records move nothing."""
    facts, asked, n_steps = problem(n_samples=40), [], 60
    answers = rng.normal(size=(n_steps, 11))

    def ask(query):
        asked.append(query)
        return answers[len(asked) - 1]

    solver = SGD(n_steps, batch_size=2, step_size=0.5, momentum=0.3, tail_average=1.0, sampling="single_pass")
    result = solver.solve(facts, ask, np.random.default_rng(1))
    sizes = np.array([query.records.size for query in asked])
    last = np.flatnonzero(sizes)[-1]
    assert sizes.sum() == 20 and sizes.max() == 2 and 0 in sizes[:last]
    iterates, velocity = [np.zeros((11, 1))], 0.0
    for answer in answers[: last + 1]:
        ridge = 0.01 * iterates[-1] * (np.arange(11) < 10)[:, None]
        velocity = 0.3 * velocity + answer[:, None] / 2 + ridge
        iterates.append(iterates[-1] - 0.5 * velocity)
    expected = iterates + (n_steps - len(iterates)) * iterates[-1:]
    np.testing.assert_allclose([query.coef for query in asked], expected)
    np.testing.assert_allclose(result.coef, np.mean([iterates[step + 1] for step in np.flatnonzero(sizes)], axis=0))
    assert result.n_iter == n_steps


@pytest.mark.parametrize("n_samples, batch_size", ((1, 1), (2, 5), (37, 4), (37, 37), (1000, 1)))
def test_batches_are_disjoint_and_end_with_half_of_the_records(n_samples, batch_size):
    rng = np.random.default_rng(3)
    batches = fresh_batches(n_samples, batch_size, steps_for_half(n_samples, batch_size), rng)
    used = np.concatenate(batches)
    assert used.size == np.unique(used).size == (n_samples + 1) // 2
    assert all(np.all(np.diff(batch) > 0) and batch.size <= batch_size for batch in batches) and batches[-1].size
    assert len(fresh_batches(n_samples, batch_size, 1, rng)) == 1


def test_every_record_is_as_likely():
    """Also in the batch that is cut short; 3000 passes, 5 standard deviations for each of 21 records and two places."""
    rng, passes = np.random.default_rng(4), 3000
    runs = [fresh_batches(21, 8, 9, rng) for _ in range(passes)]
    for share in (np.concatenate([r for run in runs for r in run]), np.concatenate([run[-1] for run in runs])):
        counts = np.bincount(share, minlength=21)
        mean = share.size / 21
        assert np.abs(counts - mean).max() < 5 * math.sqrt(mean)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
@pytest.mark.parametrize("epsilon", (1e-2, 1.0, 10.0, math.inf))
@pytest.mark.parametrize("loss", (Logistic(), Hinge(), Hinge(4)), ids=str)
def test_defaults_are_public_and_bounded(adjacency, epsilon, loss):
    solver = SGD(sampling="single_pass")
    for n_samples in (2, 300, 10**5, 10**8):
        facts = problem(epsilon, adjacency, n_samples, loss=loss)
        ((n_steps, release),) = solver.schedule(facts).entries
        assert isinstance(release.mechanism, SinglePass)
        assert 1 <= release.mechanism.batch_size <= n_samples
        assert n_steps * release.mechanism.batch_size >= n_samples * math.log(2)
        assert n_steps <= 3300
        assert 0 < solver._step_size(facts, n_steps) < math.inf


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
def test_one_pass_without_noise_learns(rng):
    """From half of 20 000 records, the mean loss is within 5 % of the least."""
    X = rng.uniform(-1, 1, size=(20_000, 3))
    y = (3 * X @ [1.0, -1.0, 0.5] + rng.logistic(size=20_000) > 0).astype(int)
    scores = {}
    for name, solver in (("once", SGD(sampling="single_pass")), ("all", "newton")):
        model = seeded.fitted(DPLogisticRegression(math.inf, solver=solver, alpha=0.0 if name == "once" else 1e-6), X, y)
        scores[name] = -np.mean(model.predict_log_proba(X)[np.arange(y.size), y])
    assert scores["once"] < 1.05 * scores["all"]


@pytest.mark.parametrize(
    "parameters, error",
    (
        ({"sampling": "shuffled"}, ValueError),
        ({"sampling": None}, ValueError),
        ({"sampling": 3}, ValueError),
        ({"batch_size": 5001}, ValueError),
        ({"batch_size": 0.5}, ValueError),
        ({"batch_size": "all"}, TypeError),
        ({"n_steps": 0}, ValueError),
    ),
)
def test_parameters_are_checked(parameters, error):
    name, value = next(iter(parameters.items()))
    with pytest.raises(error, match=f"{name}={value!r}"):
        SGD(**{"sampling": "single_pass", **parameters}).schedule(problem())


@pytest.mark.slow
def test_the_report_says_that_no_record_is_used_twice(rng):
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    report = fitted(sparse.csc_array(X), y, n_steps=30, batch_size=10).privacy_report_
    assert "30 x Gradient on disjoint parts of the table, Gaussian noise" in str(report)
    assert "exact accounting" in str(report) and "dp_accounting" not in report.versions
    (line,) = report.releases
    assert f"per coordinate, {line.noise_multiplier / 10:.3g} times the largest possible mean gradient" in report.noise_size
    many = fitted(X, y, n_steps=3000, batch_size=10).privacy_report_
    assert f"{line.noise_multiplier / 10 / math.sqrt(10):.3g} times in the average of all" in many.noise_size
    with pytest.warns(NotPrivateWarning):
        DPLogisticRegression(math.inf, solver=SGD(sampling="single_pass")).fit(X, y)

"""DP-SVRG and DP-SVRG++: their updates, their public defaults, and how the noise of a difference follows the iterate."""

import math
from dataclasses import replace

import numpy as np
import pytest
from seeded import fitted

from skdp import DPLogisticRegression
from skdp.losses import Logistic, Multinomial
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.budget import Budget
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Difference, Gradient
from skdp.privacy.schedule import Gaussian, PoissonGaussian
from skdp.solvers import SVRG, Problem, SVRGPlusPlus

ADJACENCIES = ("replace_one", "zero_out")
SOLVERS = (SVRG, SVRGPlusPlus)
LOGISTIC = Logistic()
both = pytest.mark.parametrize("kind", SOLVERS, ids=lambda kind: kind.name)


def problem(epsilon=1.0, adjacency="replace_one", n_samples=5000, loss=LOGISTIC, **changes):
    budget = Budget(epsilon, 1e-7, adjacency)
    facts = Problem(n_samples, 10, loss, budget, data_norm=1.0, intercept_scaling=1.0, alpha=0.1, clip_norm=1.0)
    return replace(facts, **changes)


def run(solver, facts, rng):
    """Queries and random answers of one run, and what it returns."""
    asked, answers = [], []

    def ask(query):
        asked.append(query)
        answers.append(10 * rng.normal(size=facts.shape))
        return answers[-1].ravel()

    return asked, answers, solver.solve(facts, ask, rng)


@both
@pytest.mark.parametrize("l1_ratio", (0.0, 0.6))
def test_updates_are_those_of_the_algorithm(kind, l1_ratio, rng):
    """Three epochs: the whole penalty in the proximal step, "svrg" back to the average, "svrg++" on and twice as long."""
    facts = problem(l1_ratio=l1_ratio)
    solver = kind(3, n_inner=2, batch_size=250, step_size=0.5, difference_clip=0.25)
    asked, answers, result = run(solver, facts, rng)
    remaining = iter(zip(asked, answers, strict=True))
    coef = snapshot = np.zeros((11, 1))
    for length in (2, 2, 2) if kind is SVRG else (2, 4, 8):
        query, gradient = next(remaining)
        assert type(query) is Gradient and query.clip_norm == 1.0
        np.testing.assert_allclose(query.coef, snapshot)
        iterates = []
        for _ in range(length):
            query, difference = next(remaining)
            assert type(query) is Difference
            assert (query.gradient_clip_norm, query.smoothness) == (1.0, 0.25 * facts.smoothness)
            np.testing.assert_allclose(query.coef, coef, atol=1e-15)
            np.testing.assert_allclose(query.snapshot, snapshot, atol=1e-15)
            coef = facts.prox(coef - 0.5 * (difference / 250 + gradient / 5000), 0.5)
            iterates.append(coef)
        snapshot = np.mean(iterates, axis=0)
        coef = snapshot if kind is SVRG else coef
    assert next(remaining, None) is None and result.n_iter == len(asked)
    np.testing.assert_allclose(result.coef, snapshot)


@both
@pytest.mark.parametrize("curvature, size", ((10.0, None), (1e4, "smallest"), (-0.09, "largest"), (-1.0, "largest")))
def test_the_step_of_barzilai_and_borwein_is_kept_within_public_bounds(kind, curvature, size, rng):
    """Gradients whose slope is known, differences of 0; the penalty bends by 0.1 in addition."""
    facts, steps = problem(adjacency="zero_out"), []
    solver = kind(2, n_inner=3, batch_size=10, step_size="bb")
    settings = solver._validated(facts)._settings(facts)
    bounds = {"smallest": 1 / (48 * facts.smoothness), "largest": settings.step_size}
    offset = rng.normal(size=facts.shape)

    def ask(query):
        steps.append(query)
        return 5000 * (curvature * query.coef + offset).ravel() if isinstance(query, Gradient) else np.zeros(11)

    solver.solve(facts, ask, rng)
    gradient = curvature * steps[-1].snapshot + offset
    expected = 10 / (settings.lengths[1] * (curvature + 0.1)) if size is None else bounds[size]
    assert bounds["smallest"] <= expected <= bounds["largest"]
    moved = facts.prox(steps[-2].coef - expected * gradient, expected)
    np.testing.assert_allclose(steps[-1].coef, moved, rtol=1e-2 if size is None else 1e-9)  # the intercept has no penalty


@pytest.mark.each_value
@both
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", (1e-2, 0.1, 1.0, 10.0, math.inf))
@pytest.mark.parametrize("loss", (Logistic(), Multinomial(4)), ids=lambda loss: loss.name)
@pytest.mark.parametrize("alpha", (0.0, 1e-3, 0.1))
def test_defaults_are_public_bounded_and_stable(kind, adjacency, epsilon, loss, alpha):
    solver = kind()
    for n_samples in (20, 300, 10**5, 10**8):
        facts = problem(epsilon, adjacency, n_samples, loss, alpha=alpha)
        facts = replace(facts, clip_norm=solver.default_clip_norm(facts))
        settings = solver._validated(facts)._settings(facts)
        steps, epochs = sum(settings.lengths), len(settings.lengths)
        assert epochs == (kind.noiseless_epochs if epsilon == math.inf else 4)
        assert 25 * epochs <= steps <= 520 * epochs + 2**epochs
        assert 0 < settings.step_size * facts.smoothness <= 1.5
        assert 0 < settings.rate <= 1
        expected = settings.rate * n_samples
        assert expected == min(32, n_samples) or 2 * expected * steps <= 4 * epochs * n_samples * (1 + 1e-9)
        schedule = solver.schedule(facts)
        assert [count for count, _ in schedule.entries] == [n for length in settings.lengths for n in (1, length)]
        gathered = [length**2 / share for length, share in zip(settings.lengths, settings.fractions, strict=True)]
        noise = settings.step_size * math.sqrt(sum(gathered) / 0.8) * facts.clip_norm / facts.signal_to_noise
        assert noise * facts.row_norm <= 3 * (1 + 1e-9)


@both
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_share_of_the_snapshots_is_what_is_asked_for(kind, adjacency):
    """Of the squared Gaussian-DP parameter; exactly so among snapshots, the last of which has about half."""
    facts = problem(1.0, adjacency, 20_000)
    solver = kind(4, n_inner=50, batch_size=2000, snapshot_share=0.7)
    schedule = solver.schedule(facts)
    scale, mu = calibrate(schedule, facts.budget), facts.signal_to_noise * (2 if adjacency == "replace_one" else 1) / 20_000
    outer = [release for _, release in schedule.entries if isinstance(release.mechanism, Gaussian)]
    spent = np.array([(1 / (release.mechanism.weight * scale)) ** 2 for release in outer])
    assert spent.sum() / mu**2 == pytest.approx(0.7, rel=0.03)
    np.testing.assert_allclose(spent[1:] / spent[:-1], 2.0)
    inner = {release.mechanism for _, release in schedule.entries if isinstance(release.mechanism, PoissonGaussian)}
    assert len(inner) == 1  # one kind, so that the accounting is quick


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_theorems_schedule(adjacency):
    """Theorem 4.2: the gap halves per epoch, by inequality (4) with the constants of its proof."""
    facts = problem(1.0, adjacency, 10**5)
    settings = SVRG(theorem=True)._validated(facts)._settings(facts)
    m, step = settings.lengths[0], settings.step_size
    shrunk = 8 * step * facts.smoothness
    contraction = 1 / (0.1 * step * (1 - shrunk) * m) + shrunk * (m + 1) / ((1 - shrunk) * m)
    assert 0.4 < contraction <= 0.5
    assert settings.rate == 1e-5 and settings.smoothness == facts.smoothness
    assert 2.0 ** len(settings.lengths) >= facts.signal_to_noise**2 * 0.1 / 11 > 2.0 ** (len(settings.lengths) - 1)
    assert sum(SVRG(theorem=True)._validated(facts)._settings(replace(facts, alpha=1e-9)).lengths) <= 10**6
    with pytest.raises(ValueError, match="strongly convex penalty"):
        SVRG(theorem=True).schedule(replace(facts, alpha=0.0))
    lengths = SVRGPlusPlus(theorem=True)._validated(facts)._settings(replace(facts, alpha=0.0)).lengths
    assert [2 * length for length in lengths[:-1]] == list(lengths[1:])
    assert sum(lengths) <= 10**6


def noise_of_differences(solver, monkeypatch, rng):
    """Distance to the snapshot and size of the noise, of every inner step of a fit."""
    seen, answer = [], Oracle._answer

    def watching(self, query, release, records):
        noisy = answer(self, query, release, records)
        if isinstance(query, Difference):
            deviation = noise_multiplier(release, self._scale, self._budget.adjacency) * query.clip_norm
            seen.append((np.linalg.norm(query.coef - query.snapshot), np.sqrt(np.mean(noisy**2)), deviation))
        return noisy

    monkeypatch.setattr(Oracle, "_answer", watching)
    X, y = np.zeros((500, 200)), np.arange(500) % 2  # rows of zeros: an answer is nothing but noise
    fitted(DPLogisticRegression(1.0, solver=solver, data_norm=1.0, fit_intercept=False), X, y)
    return np.array(seen).T


@pytest.mark.slow
@both
def test_the_noise_of_differences_shrinks_with_the_distance_to_the_snapshot(kind, monkeypatch, rng):
    """In proportion, and it is 0 at the snapshot itself; 200 coordinates: 5 % standard error, so 30 % is safe."""
    distance, size, deviation = noise_of_differences(kind(3, n_inner=8, batch_size=50), monkeypatch, rng)
    at_snapshot = distance == 0
    assert at_snapshot.any() and not size[at_snapshot].any()
    away = ~at_snapshot
    np.testing.assert_allclose(size[away], deviation[away], rtol=0.3)
    ratio = size[away] / distance[away]
    assert ratio.max() / ratio.min() < 1.7
    assert size[away].max() / size[away].min() > 3


@both
@pytest.mark.parametrize(
    "parameters, error",
    (
        ({"n_epochs": 0}, ValueError),
        ({"n_epochs": 2.5}, TypeError),
        ({"n_epochs": 10**6}, ValueError),
        ({"n_inner": 0}, ValueError),
        ({"batch_size": 0.1}, ValueError),
        ({"batch_size": 5001}, ValueError),
        ({"step_size": 0.0}, ValueError),
        ({"step_size": "fast"}, ValueError),
        ({"step_size": math.nan}, ValueError),
        ({"snapshot_share": 1.0}, ValueError),
        ({"difference_clip": 0.0}, ValueError),
        ({"difference_clip": 1.1}, ValueError),
        ({"theorem": "yes"}, TypeError),
    ),
)
def test_parameters_are_checked(kind, parameters, error):
    name, value = next(iter(parameters.items()))
    with pytest.raises(error, match=f"{name}={value!r}"):
        kind(**parameters).schedule(problem())


def test_too_many_doublings_are_refused():
    with pytest.raises(ValueError, match=r"n_epochs=30 and n_inner=5 make .* inner steps"):
        SVRGPlusPlus(30, n_inner=5).schedule(problem())


def test_the_report_states_both_kinds_of_release(rng):
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    report = DPLogisticRegression(solver=SVRG(3, n_inner=7, batch_size=20)).fit(X, y).privacy_report_
    text = " ".join(str(report).split())
    assert "21 x Difference on a Poisson sample of rate 0.1" in text and "clip norm set by earlier releases" in text
    assert sum(line.count for line in report.releases if line.query == "Gradient") == 3

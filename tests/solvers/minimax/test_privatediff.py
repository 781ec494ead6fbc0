"""PrivateDiff: its rounds, the noise of differences, and where it is SGDA; what both have in common is in test_sgda.py."""

import math

import numpy as np
import pytest
from marks import slow
from saddles import Instrumented
from seeded import fitted
from test_sgda import averaged, problem, run

from skdp import DPMinimax
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import DualGradient, PrimalDifference, PrimalGradient
from skdp.solvers import SGDA, PrivateDiff

ADJACENCIES = ("replace_one", "zero_out")


@pytest.mark.parametrize("output", ("average", "last", "random"))
@pytest.mark.parametrize("restart_every, n_dual_steps", ((1, 1), (2, 1), (3, 2), (10, 1)))
@pytest.mark.parametrize("batch_size", (None, 250))
def test_rounds_are_those_of_the_algorithm(output, restart_every, n_dual_steps, batch_size, rng):
    """Ascent first; the estimate restarts or is added to at the two last points of both sides; then one step of descent."""
    facts = problem(alpha=0.3)
    given = {"primal_step_size": 0.2, "dual_step_size": 0.3, "difference_offset": 0.01, "output": output}
    solver = PrivateDiff(7, restart_every=restart_every, n_dual_steps=n_dual_steps, batch_size=batch_size, **given)
    asked, answers, result = run(solver, facts, rng)
    remaining = iter(zip(asked, answers, strict=True))
    public, saddle = np.random.default_rng(3), facts.saddle
    chosen = int(public.integers(7)) if output == "random" else None
    w, v = saddle.project(*saddle.start(public))
    primals, duals, scale, before = [w], [v], (batch_size or 1000) * 0.5, None

    def at(query, primal, dual):
        np.testing.assert_allclose(query.primal, primal, atol=1e-14)
        np.testing.assert_allclose(query.dual, dual, atol=1e-14)

    for number in range(7):
        for _ in range(n_dual_steps):
            query, answer = next(remaining)
            assert type(query) is DualGradient and query.clip_norm == 2.0
            at(query, w, v)
            v = np.clip(v + 0.3 * (answer / scale + (w - v) / 4), -0.5, 0.5)
        query, answer = next(remaining)
        at(query, w, v)
        if number % restart_every == 0:
            assert type(query) is PrimalGradient and query.clip_norm == 2.0
            estimate = answer
        else:
            assert type(query) is PrimalDifference
            assert (query.slope, query.offset, query.largest) == (0.7, 0.01, 4.0)
            np.testing.assert_allclose(query.previous_primal, before[0], atol=1e-14)
            np.testing.assert_allclose(query.previous_dual, before[1], atol=1e-14)
            moved = np.linalg.norm(w - before[0]) + np.linalg.norm(v - before[1])
            assert query.clip_norm == pytest.approx(min(0.7 * moved + 0.01, 4.0))
            estimate = estimate + answer
        before = w, v
        w = np.clip(w - 0.2 * (estimate / scale + v / 4 + 0.3 * w * [1, 1, 0]), -1.5, 1.5)
        primals, duals = [*primals, w], [*duals, v]
    assert next(remaining, None) is None and result.n_iter == 7
    np.testing.assert_allclose(result.coef, averaged(primals, output, chosen)[:, None])
    np.testing.assert_allclose(result.dual, averaged(duals, output, chosen))


@pytest.mark.parametrize("dual_step_size", (1e-300, 0.3))
def test_with_restarts_in_every_round_it_is_sgda_with_steps_in_turn(dual_step_size):
    """On the same sums without noise: the same where the dual variables rest, else the descent is a dual step ahead."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 3))
    steps = {"primal_step_size": 0.2, "dual_step_size": dual_step_size, "output": "last"}
    fits = []
    for solver in (SGDA(5, **steps), PrivateDiff(5, restart_every=1, **steps)):
        with pytest.warns(UserWarning, match="not private"):
            fits.append(fitted(DPMinimax(Instrumented(3), epsilon=math.inf, solver=solver), X, X[:, 0]))
    apart = np.abs(fits[0].primal_ - fits[1].primal_).max()
    assert apart < 1e-12 if dual_step_size < 1e-100 else apart > 1e-4


def test_on_the_same_records_differences_add_up_to_gradients():
    """Without noise, clipping and samples, an estimate that never restarts is as good as one that always does."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 3))
    free = {"primal_clip_norm": 1e3, "dual_clip_norm": 1e3, "difference_slope": 1e3, "output": "last"}
    fits = []
    for restart_every in (1, 30):
        with pytest.warns(UserWarning, match="not private"):
            solver = PrivateDiff(30, restart_every=restart_every, **free)
            fits.append(fitted(DPMinimax(Instrumented(3), epsilon=math.inf, solver=solver), X, X[:, 0]))
    np.testing.assert_allclose(fits[0].primal_, fits[1].primal_, atol=1e-12)
    np.testing.assert_allclose(fits[0].dual_, fits[1].dual_, atol=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_shares_of_full_batches_are_exact(adjacency):
    facts = problem(1.0, adjacency)
    schedule = PrivateDiff(10, restart_every=4, n_dual_steps=3, dual_share=0.3, restart_share=0.6).schedule(facts)
    spent = {}
    for count, release in schedule.entries:
        name = release.query.__name__
        spent[name] = spent.get(name, 0.0) + count / release.mechanism.weight**2
    assert spent == {
        "DualGradient": pytest.approx(0.3),
        "PrimalGradient": pytest.approx(0.42),
        "PrimalDifference": pytest.approx(0.28),
    }
    assert [count for count, _ in schedule.entries] == [3, 1] * 10
    restarts = [number for number, (_, release) in enumerate(schedule.entries[1::2]) if release.query is PrimalGradient]
    assert restarts == [0, 4, 8]
    assert math.isclose(
        calibrate(schedule, facts.budget),
        facts.n_samples * {"replace_one": 0.5, "zero_out": 1}[adjacency] / facts.signal_to_noise,
    )


def test_without_differences_restarts_have_all_of_the_primal_share():
    for solver in (PrivateDiff(5, restart_every=1), PrivateDiff(1, restart_every=4)):
        entries = solver.schedule(problem()).entries
        assert {release.query for _, release in entries} == {DualGradient, PrimalGradient}
        parts = [count / release.mechanism.weight**2 for count, release in entries if release.query is PrimalGradient]
        assert sum(parts) == pytest.approx(0.9)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ("replace_one", *slow("zero_out")))
def test_the_noise_of_differences_is_in_proportion_to_the_move(adjacency, monkeypatch):
    """Rows of zeros: an answer is nothing but noise; 300 coordinates: 4 % standard error, so 25 % is safe."""
    seen, answer = [], Oracle._answer

    def watching(self, query, release, records):
        noisy = answer(self, query, release, records)
        if isinstance(query, PrimalDifference):
            moved = np.linalg.norm(query.primal - query.previous_primal) + np.linalg.norm(query.dual - query.previous_dual)
            deviation = noise_multiplier(release, self._scale, adjacency) * query.slope * moved
            seen.append((np.sqrt(np.mean(noisy**2)), deviation, moved))
        return noisy

    monkeypatch.setattr(Oracle, "_answer", watching)
    for step in (0.01, 1e-4):
        solver = PrivateDiff(8, restart_every=4, primal_step_size=step, dual_step_size=step, batch_size=100)
        fitted(DPMinimax(Instrumented, adjacency=adjacency, solver=solver), np.zeros((500, 300)))
    size, deviation, moved = np.array(seen).T
    assert len(seen) == 12 and moved.max() > 50 * moved.min()
    np.testing.assert_allclose(size, deviation, rtol=0.25)


BAD = (
    ({"restart_every": 0}, ValueError),
    ({"restart_every": 1.5}, TypeError),
    ({"n_dual_steps": 0}, ValueError),
    ({"difference_slope": -1.0}, ValueError),
    ({"difference_slope": "c2"}, TypeError),
    ({"difference_offset": math.nan}, ValueError),
    ({"difference_offset": None}, TypeError),
    ({"restart_share": 0.0}, ValueError),
    ({"restart_share": 1}, ValueError),
)


@pytest.mark.parametrize("parameters, error", BAD)
def test_parameters_are_checked(parameters, error):
    ((name, value),) = parameters.items()
    with pytest.raises(error, match=f"{name}={value!r}"):
        PrivateDiff(**parameters).schedule(problem())


@pytest.mark.slow
def test_the_report_states_all_kinds_of_release():
    report = DPMinimax(Instrumented(3), solver=PrivateDiff(9, restart_every=3, batch_size=20, n_dual_steps=2)).plan(200, 3)
    text = " ".join(str(report).split())
    for line in ("18 x DualGradient", "3 x PrimalGradient", "6 x PrimalDifference"):
        assert f"{line} on a Poisson sample of rate 0.1" in text
    assert "clip norm set by earlier releases" in text and "clip norm 2" in text
    assert "differences have noise in proportion to the last move" in text

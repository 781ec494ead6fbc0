"""Every solver passes its audit, which has teeth, and every broken twin fails it."""

import contextlib
import json
import math
import warnings
from itertools import cycle

import numpy as np
import pytest
import sklearn
from packaging.version import Version

import benchmarks.audit
import benchmarks.histogram_audits
from benchmarks.__main__ import main
from benchmarks.audit import AUDITED, BUDGET, CONFIDENCE, TABLE, usual
from benchmarks.histogram_audits import HISTOGRAMS, audited_histograms
from benchmarks.saddle_twins import UnnoisedDualSaddle
from benchmarks.twins import ExactGradientOverSet, ForgetfulGate, Halved, with_more
from skdp import DPLogisticRegression
from skdp.audit import audit
from skdp.audit._attack import Planned, _derived, planned
from skdp.audit._rates import best_threshold, error_rates, split, upper_bounds
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import ADJACENCIES
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.sampling import sample_of
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.solvers import SGD, SOLVERS, GradientDescent
from skdp.testing import reproducible_noise

pytestmark = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"),
    reason="minutes of attacks on NumPy and SciPy, not on scikit-learn: once is enough",
)


# Some take a minute, and solvers that `make test-slow` attacks ask the same queries. In `make test` is a twin of evaluations,
# which have a file of their own.
DEAR = ("frank_wolfe", "moments", "privatediff", "rescaled_gd", "skgd", "svrg++")
MARKS = {key: [pytest.mark.slow, pytest.mark.exhaustive] for key in DEAR}


def in_turn(cases):
    """Every case under one adjacency: half a minute each, and ``python -m benchmarks audit`` attacks all under both."""
    return [
        pytest.param(*case, adjacency, marks=MARKS.get(case[0], [pytest.mark.slow]))
        for case, adjacency in zip(cases, cycle(ADJACENCIES), strict=False)
    ]


# Solvers with a twin of the common kinds here, one for each way to release: such a twin breaks the same lines for all solvers.
# ``python -m benchmarks audit`` attacks all.
TWINNED = ("gd", "objective", "sgda", "ssp")


def chosen_twins():
    """Of the two breaches that any solver may have, one of some solvers in turn, and all that are a solver's own."""
    common = cycle(("noise halved", "unscheduled"))
    for solver, audited in AUDITED.items():
        one = next(common) if solver in TWINNED else ()
        yield from (
            (solver, twin) for twin in audited.twins if twin.endswith(one) or not twin.endswith(("halved", "unscheduled"))
        )


N_RUNS, N_RUNS_FOR_TEETH = 1000, 3000
# Share of the claim that so few runs prove less: an attack that sees all of a Gaussian release of epsilon 4 proves 3.0 with 4000
# runs, 2.5 with 1500 and 2.0 with 800, on average of 200 simulated audits.
LESS = 0.3
FAINT = {"moments": 2500}  # runs for a solver whose final model alone shows little


def attacked(estimator, n_runs):
    return audit(estimator, *TABLE, n_runs=n_runs, confidence=CONFIDENCE, n_jobs=1, random_state=0)  # pytest runs two at a time


def test_every_solver_has_an_audit_and_twins():
    assert {audited.solver.name for audited in AUDITED.values()} == set(SOLVERS)
    for audited in AUDITED.values():
        assert "noise halved" in audited.twins and any(name.endswith("unscheduled") for name in audited.twins)
    assert all(audited.solver.name == name.split()[0] for name, audited in AUDITED.items())  # a variant has more words


@pytest.mark.parametrize(
    "name, kind",
    (
        ("gd", "DPLogisticRegression"),
        ("whitened_gd", "DPLinearRegression"),
        ("accmd", "DPConstrainedClassifier"),
        ("rescaled_gd", "DPQuantileRegressor"),
        ("moments", "DPAUCMaximizer"),
        ("sgda", "SaddleClassifier"),
    ),
)
def test_a_solver_without_settings_of_its_own_is_attacked_too(name, kind):
    """On an estimator that it fits, with both twins; settings of gd are those that it has."""
    audited = usual(SOLVERS[name])
    assert audited.kind.__name__ == kind and type(audited.solver) is SOLVERS[name]
    assert list(audited.twins) == ["noise halved", "three releases unscheduled"]
    halved, unscheduled = (audited.twin(twin, "replace_one") for twin in audited.twins)
    assert issubclass(halved._task_class, Halved) and isinstance(halved, audited.kind) and type(halved.solver) is SOLVERS[name]
    assert issubclass(type(unscheduled.solver), SOLVERS[name]) and type(unscheduled.solver) is not SOLVERS[name]
    if name == "gd":
        assert repr(audited.solver) == repr(AUDITED[name].solver) and audited.tooth == AUDITED[name].tooth


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_audit_of_a_solver_without_settings_has_teeth():
    """A solver that clips nothing by default: the clip norm of the audit makes the canary contribute all that it may."""
    audited = usual(Unclipped)
    assert attacked(audited.estimator("replace_one"), 1200).bound("transcript").epsilon >= (audited.tooth - LESS) * 4
    for twin in audited.twins:
        assert attacked(audited.twin(twin, "replace_one"), 1200).bound("transcript").epsilon > 4


class Unclipped(GradientDescent):
    """The clip norm is the largest norm of a gradient."""

    def default_clip_norm(self, problem):
        return problem.lipschitz


@pytest.mark.slow
@pytest.mark.parametrize("solver, adjacency", in_turn((solver,) for solver in AUDITED))
def test_no_bound_is_above_the_claim_and_the_attack_has_teeth(solver, adjacency):
    """A false alarm has probability at most 1e-4 per view."""
    result = attacked(AUDITED[solver].estimator(adjacency), FAINT.get(solver, N_RUNS))
    assert (result.epsilon, result.delta) == (BUDGET["epsilon"], BUDGET["delta"]) == (4.0, 1e-5)
    assert result.consistent
    assert result.bound("transcript").epsilon >= (AUDITED[solver].tooth - LESS) * result.epsilon
    assert result.bound("final").epsilon > 0


def excess_of(twin, adjacency):
    """Gaussian-DP parameter that a twin spends, over the one that it claims."""
    if issubclass(twin._task_class, Halved):
        return 2.0
    if isinstance(twin, (ExactGradientOverSet, UnnoisedDualSaddle)):
        return math.inf
    if isinstance(twin, ForgetfulGate):
        return math.sqrt(twin.uses)
    plan = planned(twin, *TABLE)
    schedules = plan.schedule, with_more(plan.schedule, twin._task_class.number)
    if plan.schedule.curve is not None:  # alike and independent
        return math.sqrt(len(schedules[1]) / len(schedules[0]))
    claimed, spent = (Composition.of(schedule, adjacency).central_limit_mu(plan.scale) for schedule in schedules)
    return spent / claimed


def enough_runs(solver, excess):
    """So many that the bound is four standard deviations above the claim: one seed in 30 000 misses a twin; it is fixed.

    That holds for an attack that sees all there is; others have a bound as far above with twice as many runs.
    """
    if excess < 1.9:
        return N_RUNS_FOR_TEETH
    return 900 if AUDITED[solver].tooth >= 0.7 else 1800


@pytest.mark.parametrize("solver, twin, adjacency", in_turn(chosen_twins()))
def test_every_broken_twin_is_caught(solver, twin, adjacency):
    model = AUDITED[solver].twin(twin, adjacency)
    excess = excess_of(model, adjacency)
    assert excess >= 1.5  # a smaller breach would be missed now and then
    result = attacked(model, enough_runs(solver, excess))
    assert result.epsilon == 4.0
    assert result.bound(AUDITED[solver].shown_by(twin)).epsilon > result.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms_of_columns_stay_below_the_claim_and_their_twins_do_not(name, monkeypatch):
    """A false alarm has probability at most 1e-4 per bound; the noise is that of a seed."""
    monkeypatch.setattr(benchmarks.histogram_audits, "HISTOGRAMS", {name: HISTOGRAMS[name]})
    with reproducible_noise(0):
        records = list(audited_histograms(BUDGET, 1000, CONFIDENCE))
    assert [record["twin"] is None for record in records] == [True, False] * 2
    assert all((record["bound"] <= 4) == (record["twin"] is None) for record in records)
    assert min(record["bound"] for record in records) > 1


def releases_of_sgd(y):
    """Return the plan, and the rows, of a fit in which the first of 10 persons has 500 rows and the others contribute nothing."""
    solver, caught = SGD(3, batch_size=3, momentum=0, tail_average=0), []

    def stop(task, *given):
        caught.extend(given)
        raise Planned(given[0])

    budget = {"epsilon": 0.01, "delta": 0.44, "adjacency": "replace_one", "privacy_unit": "person"}
    model = DPLogisticRegression(**budget, data_norm=1.0, clip_norm=0.1, alpha=0, fit_intercept=False, solver=solver)
    with contextlib.suppress(Planned), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _derived(model, stop).fit(np.arange(509)[:, None] < 500, y, persons=np.maximum(np.arange(509) - 499, 0))
    return caught[:2]


@pytest.mark.slow
@pytest.mark.parametrize("broken", (False, True))
def test_a_person_of_500_rows_has_one_coin_and_a_coin_for_each_row_is_caught(broken, monkeypatch):
    """At a large delta, where many coins leak more than one: all that counts is the distance between the two laws of the model.

    A false alarm has a probability of at most 1e-3 for either; the noise is that of a seed.
    """
    if broken:
        monkeypatch.setattr(TrainingData, "sampled", lambda rows, key, rate: rows._of_rows(sample_of(key, 0, 509, rate)))
    scores = np.empty((2, 5000))
    with reproducible_noise(0):
        for label, row in enumerate(scores):
            plan, rows = releases_of_sgd(np.r_[np.full(500, label), np.arange(9) % 2])
            for run in range(row.size):
                oracle = Oracle(rows, plan.schedule, plan.budget, plan.scale, NoiseSource())
                row[run] = plan.solver.solve(plan.problem, oracle.ask, None).coef[0, 0]

    def least_delta(rates):
        return np.maximum(1 - rates[1] - math.exp(plan.budget.epsilon) * rates[0], 0.0)

    pilot, judged = split(scores)
    threshold = best_threshold(pilot, 1 - 5e-4, least_delta)
    bound = least_delta(upper_bounds(error_rates(judged, np.array([threshold])), judged.shape[1], 1 - 5e-4))[0]
    assert bound > 0.44 if broken else 0.35 < bound <= 0.44


@pytest.mark.slow
def test_the_table_is_written_and_a_twin_that_is_not_caught_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmarks.audit, "AUDITED", {"gd": AUDITED["gd"]})
    with pytest.raises(SystemExit, match="wrong side of the claim"):  # 20 runs catch nothing
        main(["audit", "--n-runs", "20", "--out", str(tmp_path / "docs" / "audit.md")])
    contents = json.loads((tmp_path / "docs" / "audit.json").read_text())
    assert len(contents["records"]) == 12 + 8
    assert all(record["as_expected"] == (record["bound"] <= 4) for record in contents["records"] if record["twin"] is None)
    text = (tmp_path / "docs" / "audit.md").read_text()
    assert text.count("| gd |") == 12
    assert text.count("| column_histograms |") == text.count("| fine_histograms |") == 4
    assert "| gd | noise halved | zero_out | transcript | 4 | " in text
    assert "NO |" in text
